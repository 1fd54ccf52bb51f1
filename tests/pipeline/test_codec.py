"""Selections become bytes and the same selections, to the bit; other bytes are refused."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from swsearch.alphabet import PROTEIN
from swsearch.backends.local import LocalBackend
from swsearch.db import Database
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.inputs import Query
from swsearch.pipeline.batch import QueryState
from swsearch.pipeline.codec import CorruptDataError, StateDecoder, encode, pack, unpack
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.ranking import QueryCandidates, RankedSubjects
from swsearch.pipeline.search import Search
from swsearch.scoring import Scoring
from swsearch.statistics.distributions import Gumbel, PearsonThree
from swsearch.statistics.karlin_altschul import published_statistics
from swsearch.statistics.null_model import FitSettings, FittedStatistics, PairNullModels
from swsearch.statistics.score_distribution import ScoreCounts

PUBLISHED = published_statistics(Scoring(), "local")
N_SUBJECTS = 10**10

whole = st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300)
scores = st.integers(1 - 2**31, 2**31 - 1) | st.integers(-300, 300)
real = st.floats(width=64)
text = st.text(max_size=20)
parameters = st.floats(-1e6, 1e6)


def arrays(values, size, kind):
    return st.lists(values, min_size=size, max_size=size).map(lambda found: np.array(found, dtype=kind))


@st.composite
def fits(draw):
    lengths = tuple(sorted(draw(st.sets(st.integers(1, 10**6), min_size=2, max_size=5))))
    means, variances = (
        tuple(draw(st.lists(each, min_size=len(lengths), max_size=len(lengths))))
        for each in (parameters, st.floats(0.1, 1e6))
    )
    fit = FitSettings(draw(st.sampled_from(["local", "global"])), draw(st.integers(0, 9)), draw(whole), draw(whole))
    distribution = draw(st.builds(PearsonThree, st.integers(9, 100)) | st.builds(Gumbel))
    return FittedStatistics(fit, draw(st.integers(1, 10**6)), lengths, means, variances, distribution)


@st.composite
def selections(draw):
    n, statistics = draw(st.integers(0, 6)), draw(st.none() | st.just(PUBLISHED) | fits())
    evalues = draw(st.none() | arrays(real, n, np.float64))
    places = draw(arrays(st.integers(0, N_SUBJECTS - 1), n, np.int64))
    nulls = counted = None
    if isinstance(statistics, FittedStatistics) and draw(st.booleans()):
        lengths = draw(arrays(st.integers(0, 10**6), n, np.int64))
        nulls = PairNullModels(statistics, lengths, draw(arrays(parameters, n, float)), draw(arrays(real, n, float)))
    if draw(st.booleans()):
        k = draw(st.integers(0, 4))
        counted = ScoreCounts(draw(arrays(whole, k, np.int64)), draw(arrays(whole, k, np.int64)))
    ranked = RankedSubjects(draw(arrays(scores, n, np.int64)), places, evalues)
    limit = draw(st.sampled_from([1, 500, sys.maxsize]))
    return QueryCandidates(ranked, limit, statistics, draw(text), counted, nulls, draw(text))


@pytest.fixture(scope="module")
def search():
    with Database.from_records([f"MKTAYIAKQR{'A' * k}" for k in range(10)]) as database, CpuEngine(1) as engine:
        yield Search(
            [Query("q", "", PROTEIN.encode("MKTAYIAKQR"))],
            SearchOptions(statistics="published"),
            LocalBackend(database, engine),
        )


def written(search):
    """Facts and arrays of what a search found."""
    selection = QueryCandidates(RankedSubjects(np.array([5, 4]), np.array([2, 3])), 3, PUBLISHED)
    return encode([QueryState(0, search.searched[0], selection)], search.subjects)


def read(search, data, options=None):
    criteria = replace(search.criteria, options=options or search.options)
    return StateDecoder(search.searched, criteria, None, search.subjects).decode(*unpack(data))


FIT = {"fit": ["global", 1, 5, 50, 1], "query_length": 7, "lengths": [5, 9], "shape": 9,
       "means": ["0x1p0"] * 2, "variances": ["0x1p0"] * 2}  # fmt: skip


@pytest.mark.parametrize(
    ("others", "problem"),
    [
        ({"scores": np.array([1.0, 2.0])}, "scores has type float64"),
        ({"scores": np.array([1 << 40, 2])}, "scores has numbers beyond"),
        ({"scores": np.array([1])}, "scores has no 2 values more"),
        ({"scores": np.array([1, 2, 3])}, "scores has more values than queries have"),
        ({"subjects": np.array([0, 10])}, "subjects that the database lacks"),
        ({"subjects": np.array([-1, 0])}, "subjects that the database lacks"),
        ({"bounds": np.array([1])}, "bounds has more values than queries have"),
        ({"facts": {"candidates": -1}}, "scores has no -1 values more"),
        ({"facts": {"candidates": "2"}}, "TypeError"),
        ({"facts": {"nulls": 0}}, "nulls without a fit"),
        ({"facts": {"statistics": "unheard of"}}, "statistics that were not asked for"),
        ({"facts": {"statistics": {"shape": 3}}}, "KeyError"),
        ({"facts": {"statistics": FIT | {"shape": 500}}}, "distribution of shape 500"),
        ({"facts": {"statistics": FIT | {"lengths": [5]}}}, "without lengths, means or variances"),
        ({"facts": {"statistics": FIT | {"variances": ["0x1p0", "-0x1p0"]}}}, "without lengths, means or variances"),
        ({"facts": {"statistics": FIT | {"means": ["nan", "0x1p0"]}}}, "means has numbers beyond"),
        ({"facts": {"statistics": FIT | {"variances": ["inf", "0x1p0"]}}}, "variances has numbers beyond"),
    ],
)
def test_what_does_not_fit_is_refused(others, problem, search):
    facts, arrays = written(search)
    facts["states"][0]["selection"] |= others.get("facts", {})
    with pytest.raises(CorruptDataError, match=problem):
        read(search, pack(facts, arrays | {name: each for name, each in others.items() if name != "facts"}))


def test_any_bytes_are_refused(search):
    data = pack(*written(search))
    assert len(read(search, data).states[0].candidates.candidates) == 2
    for other in (b"", b"PK", data[:-30], data[30:], b"\x93NUMPY" + data, np.arange(3).tobytes()):
        with pytest.raises(CorruptDataError):
            read(search, other)
    with pytest.raises(CorruptDataError, match="not asked for"):
        read(search, data, SearchOptions(statistics="fitted"))
