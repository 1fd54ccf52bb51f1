from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swsearch
from support.cases import any_codes
from support.samples import random_cases
from swsearch import reference
from swsearch.alphabet import PROTEIN
from swsearch.backends.local import LocalBackend
from swsearch.engines import create_engine
from swsearch.errors import InputError, SequenceError
from swsearch.inputs import read_queries
from swsearch.options.kinds import MODES
from swsearch.pipeline import options as asked_for
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search_results import SearchResults
from swsearch.scoring import Scoring

SUBJECTS = [("a", "MKVLAAGIVGWW"), ("b", "WWPPWWPP"), ("c", "MKVLAAGIVGWW"), ("d", ""), ("e", "MKVAAGIVGW")]


@pytest.fixture
def database():
    with swsearch.Database.from_records(SUBJECTS) as made:
        yield made


def only(results):
    (result,) = results
    return result


@random_cases(40)
@given(
    st.lists(any_codes(25, 1), min_size=1, max_size=3),
    st.lists(any_codes(25), min_size=1, max_size=80),
    st.sampled_from(MODES),
    st.integers(1, 100),
)
def test_hits_are_the_best_by_score_then_by_place(queries, subjects, mode, max_hits):
    scoring = Scoring(gap_open=3)
    named = [(f"s{k}", PROTEIN.decode(codes)) for k, codes in enumerate(subjects)]
    if not any(letters for _, letters in named):
        return
    found = list(
        swsearch.search(
            [PROTEIN.decode(q) for q in queries],
            named,
            scoring=scoring,
            mode=mode,
            max_hits=max_hits,
            statistics="none",  # so that every subject is a candidate
        )
    )
    for query, result in zip(queries, found, strict=True):
        scores = [reference.score(query, subject, scoring, mode) for subject in subjects]
        order = sorted(range(len(subjects)), key=lambda k: (-scores[k], k))
        expected = [(scores[k], k) for k in order if mode == "global" or scores[k] > 0][:max_hits]
        assert [(hit.score, hit.subject_index) for hit in result.hits] == expected
        assert all(hit.pair.score == hit.pair.rescored() == hit.score for hit in result.hits)


def test_a_better_score_with_a_worse_evalue_does_not_take_a_place():
    # for equal scores blastp's correction favours some lengths; a hit that fails the threshold must not use up
    # one of the max_hits places
    query = "MKVLAAGIVGWWHHRKDE" * 3
    subjects = [("long", "A" * 4000 + query[:14] + "A" * 4000), ("short", query[:14] + "A" * 40)]
    both = only(swsearch.search(query, subjects, evalue=1e6, dbsize=10**9)).hits
    by_id = {hit.subject_id: hit for hit in both}
    assert by_id["long"].evalue != by_id["short"].evalue
    better = min(both, key=lambda hit: hit.evalue)
    kept = only(swsearch.search(query, subjects, evalue=better.evalue, dbsize=10**9, max_hits=1)).hits
    assert [hit.subject_id for hit in kept] == [better.subject_id]


def test_score_gives_every_score_in_input_order(database):
    queries = ["MKVLAAGIVGWW", "WWPP", ""]
    got = swsearch.score(queries, database)
    assert got.dtype == np.int32
    expected = [
        [reference.score(PROTEIN.encode(q), PROTEIN.encode(s), Scoring()) for _, s in SUBJECTS] for q in queries
    ]
    assert got.tolist() == expected


@pytest.mark.parametrize(
    ("queries", "error", "message"),
    [
        ("missing.fasta", SequenceError, "missing.fasta"),
        ([], InputError, "no query sequences"),
        ([17], InputError, "query 1: got 17, expected a Bio.SeqRecord"),
        ("MK-V", SequenceError, "record 'query_1'.*gap character"),
        ([("q", "MK1V")], SequenceError, "record 'q'.*digit"),
    ],
)
def test_bad_queries(queries, error, message, database):
    with pytest.raises(error, match=message):
        swsearch.search(queries, database)


def test_gpu_options_reach_the_engine_that_is_made(database, monkeypatch):
    asked = []

    def create(name, **options):
        asked.append((name, options))
        return create_engine("cpu", threads=1)

    monkeypatch.setattr(asked_for, "create_engine", create)
    list(swsearch.search("MKV", database, engine="gpu", device=1, gpu_memory=1 << 30, evalue=1e9))
    swsearch.score("MKV", database, threads=2, gpu_memory=5)
    assert asked == [
        ("gpu", {"threads": None, "device": 1, "gpu_memory": 1 << 30, "cpu_only": ""}),
        ("auto", {"threads": 2, "device": None, "gpu_memory": 5, "cpu_only": ""}),
    ]


def test_gpu_options_with_an_engine_that_is_made_already(database):
    with create_engine("cpu", threads=1) as engine:
        for options in ({"device": 0}, {"gpu_memory": 1 << 30}):
            for call in (swsearch.search, swsearch.score):
                with pytest.raises(
                    InputError, match="device and gpu_memory: got an Engine object, expected the name of an engine"
                ):
                    call("MKV", database, engine=engine, **options)


class Closing:
    """An engine that says when it was closed."""

    def __init__(self, engine):
        self._engine, self.closed = engine, 0

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def close(self):
        self.closed += 1


@pytest.mark.parametrize("taken", [0, 1, 2])
def test_an_engine_that_a_search_made_is_closed_as_soon_as_its_results_are_dropped(database, taken):
    queries = read_queries(["MKVLAAGIVGWW", "WWPPWW"])
    with create_engine("cpu", threads=1) as engine:
        made = Closing(engine)
        results = SearchResults(
            queries, database, SearchOptions(evalue=1e9), partial(LocalBackend, engine=made), close=made.close
        )
        for _ in range(taken):
            next(results)
        assert not made.closed
        results.close()
        assert made.closed
        again = Closing(engine)
        results = SearchResults(
            queries, database, SearchOptions(evalue=1e9), partial(LocalBackend, engine=again), close=again.close
        )
        next(results)
        del results
        assert again.closed, "no cycle of references keeps it open"
