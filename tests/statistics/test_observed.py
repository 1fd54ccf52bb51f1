"""The distribution of a query's scores with the whole database."""

import pickle

import numpy as np
import pytest

import swsearch
from swsearch.alphabet import PROTEIN
from swsearch.options.kinds import MODES
from swsearch.pipeline import criteria
from swsearch.scoring import Scoring
from swsearch.statistics.distributions import Lengths
from swsearch.statistics.karlin_altschul import published_statistics
from swsearch.statistics.score_distribution import (
    FEW_KEPT,
    MAX_BINS,
    ScoreCounter,
    ScoreDistribution,
    count_scores,
    make_distribution,
)


@pytest.fixture(scope="module")
def database(examples):
    with swsearch.Database.from_fasta([examples / "data" / "swissprot_sample.fasta.gz"]) as made:
        yield made


@pytest.fixture(scope="module")
def queries(examples):
    return examples / "data" / "queries.fasta"


@pytest.mark.parametrize("mode", MODES)
def test_counts_are_those_of_every_score(database, queries, mode):
    results = list(swsearch.search(queries, database, mode=mode, distribution=True))
    scores = swsearch.score(queries, database, mode=mode)
    for result, row in zip(results, scores, strict=True):
        found = result.distribution
        values, counts = np.unique(row, return_counts=True)
        assert np.array_equal(found.scores, values)
        assert np.array_equal(found.counts, counts)
        starts, binned = found.histogram()
        assert binned.sum() + found.n_below == found.n_subjects == database.n_subjects
        assert found.n_below <= 0.001 * database.n_subjects
        assert ((starts - found.edges[0]) % found.width == 0).all()
        for start, count in zip(starts, binned, strict=True):
            assert count == ((row >= start) & (row < start + found.width)).sum()
        assert 2 <= len(found.edges) <= MAX_BINS + 1


@pytest.mark.parametrize("mode", MODES)
def test_what_is_expected_is_about_what_is_there(database, queries, mode):
    for result in swsearch.search(queries, database, mode=mode, distribution=True):
        found = result.distribution
        scores = np.repeat(found.scores, found.counts)
        below = (scores[:, None] < found.edges[1:]).sum(axis=0) - found.n_below
        # nearly all subjects are chance; the curve is that of random sequences, which are all of one composition
        assert np.abs(below - np.cumsum(found.expected)).max() < 0.15 * database.n_subjects


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "global"},
        {"mode": "semiglobal", "sort": "score"},
        {"statistics": "published"},
        {"scoring": Scoring(gap_open=3)},
        {"evalue": 1e-5, "max_hits": 7},
    ],
)
def test_the_hits_are_those_of_a_search_without_it(database, queries, options):
    def run(distribution):
        found = swsearch.search(queries, database, distribution=distribution, **options)
        return [(result.query_id, result.hits) for result in found]

    assert run(True) == run(False)


def test_it_is_kept_only_when_asked_for(database, queries):
    assert next(swsearch.search(queries, database)).distribution is None
    assert next(swsearch.search(queries, database, mode="global")).distribution is None


def test_without_statistics_there_is_no_expectation(database, queries):
    found = swsearch.search(queries, database, statistics="none", distribution=True)
    for result in found:
        assert result.statistics is None
        assert result.distribution.expected is None
        assert result.distribution.n_subjects == database.n_subjects


def test_it_is_the_same_for_engines_groups_and_threads(monkeypatch):
    generator = np.random.default_rng(8)
    subjects = [PROTEIN.decode(generator.integers(0, 20, n).astype(np.uint8)) for n in generator.integers(1, 60, 90)]
    asked = [subjects[3] * 2, subjects[70], ("none", "")]

    def run(**options):
        return [result.distribution for result in swsearch.search(asked, subjects, distribution=True, **options)]

    expected = run(threads=1)
    assert expected == run(threads=2) == run(engine="reference")
    monkeypatch.setattr(criteria, "SCORES_MEMORY", 8 * len(subjects))
    assert expected == run(threads=2)


def test_expected_numbers_follow_from_evalues():
    # far out, where chance hits are rare, an E-value is the number of subjects that score so or more
    statistics = published_statistics(Scoring(), "local")
    lengths = np.full(10_000, 300, dtype=np.int64)
    scores = np.full(10_000, 40, dtype=np.int64)
    found = make_distribution(count_scores(scores), 250, Lengths(lengths), statistics, 3_000_000)
    for score in (56, 58, 60):
        expected = found.expected[found.edges[:-1] >= score].sum()
        evalue = float(statistics.evalues([score], 250, [300], 3_000_000)[0])
        beyond = float(statistics.evalues([found.edges[-1]], 250, [300], 3_000_000)[0])
        assert expected == pytest.approx(evalue - beyond, rel=0.01)


def test_a_few_subjects_far_off_do_not_squeeze_the_bins():
    scores = np.concatenate((np.arange(4000) % 100, [-30_000, 25_000]))
    found = make_distribution(count_scores(scores), 100, Lengths(np.full(4002, 100)), None, 400_200)
    assert found.expected is None
    assert found.n_below == 1
    assert found.width < 20
    assert found.histogram()[0][-1] > 24_000


def test_edges_of_odd_input():
    assert make_distribution(count_scores([]), 10, Lengths(np.zeros(0, dtype=np.int64)), None, 0) is None
    same = make_distribution(
        count_scores([5, 5, 5]), 10, Lengths(np.array([3, 3, 0])), published_statistics(Scoring(), "local"), 6
    )
    assert same.scores.tolist() == [5]
    assert same.counts.tolist() == [3]
    assert len(same.edges) >= 2
    empty_query = make_distribution(
        count_scores([0, 0]), 0, Lengths(np.array([3, 4])), published_statistics(Scoring(), "local"), 7
    )
    assert empty_query.expected is None


def test_it_survives_pickling(database, queries):
    result = next(swsearch.search(queries, database, distribution=True, max_hits=2))
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    assert again.distribution == result.distribution
    assert isinstance(again.distribution, ScoreDistribution)
    assert again.distribution != result.distribution.counts.tolist()


def drawn(kind, generator, n):
    """Draw scores as they occur: local ones, global ones with a few very long subjects, and any 32 bits hold."""
    if kind == "local":
        return generator.gumbel(40, 8, n).astype(np.int32)
    if kind == "global":
        return (generator.normal(-300, 80, n) - 400_000 * (generator.random(n) < 0.01)).astype(np.int32)
    return generator.integers(-(2**31), 2**31, n).astype(np.int32)


@pytest.mark.parametrize("kind", ["local", "global", "any"])
def test_counting_chunk_by_chunk_counts_the_same(kind):
    generator = np.random.default_rng(12)
    chunks = [drawn(kind, generator, n) for n in (0, 5000, 1, 64, 0, 3000, 4000, 1, 2000)]
    tally = ScoreCounter()
    for k, chunk in enumerate(chunks, 1):
        tally.add(chunk)
        if k in (2, 6):  # may be asked for before the end, too
            assert tally.counts().counts.sum() == sum(len(each) for each in chunks[:k])
    values, counts = np.unique(np.concatenate(chunks), return_counts=True)
    found = tally.counts()
    assert found == count_scores(np.concatenate(chunks))
    assert found.scores.tolist() == values.tolist()
    assert found.counts.tolist() == counts.tolist()
    parts = [count_scores(chunk) for chunk in chunks]
    assert sum(parts[1:], parts[0]) == found


def test_a_tally_of_nothing_is_empty():
    assert ScoreCounter().counts() == count_scores([])
    assert count_scores([7]).scores.tolist() == [7]


def test_a_tally_keeps_no_more_than_it_has_to():
    tally, generator = ScoreCounter(), np.random.default_rng(13)
    for _ in range(200):
        tally.add(drawn("local", generator, 500))
        assert sum(len(part.scores) for part in tally._parts) < FEW_KEPT + 3 * 200
