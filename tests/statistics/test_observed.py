"""The distribution of a query's scores with the whole database."""

import numpy as np
import pytest

import swsearch
from swsearch.options.kinds import MODES
from swsearch.scoring import Scoring
from swsearch.statistics.distributions import Lengths
from swsearch.statistics.karlin_altschul import statistics_for
from swsearch.statistics.score_distribution import (
    MOST_BINS,
    count_scores,
    distribution_of,
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
        assert 2 <= len(found.edges) <= MOST_BINS + 1


@pytest.mark.parametrize("mode", MODES)
def test_what_is_expected_is_about_what_is_there(database, queries, mode):
    for result in swsearch.search(queries, database, mode=mode, distribution=True):
        found = result.distribution
        scores = np.repeat(found.scores, found.counts)
        below = (scores[:, None] < found.edges[1:]).sum(axis=0) - found.n_below
        # nearly all subjects are chance; the curve is that of random sequences, which are all of one composition
        assert np.abs(below - np.cumsum(found.expected)).max() < 0.15 * database.n_subjects


def test_expected_numbers_follow_from_evalues():
    # far out, where chance hits are rare, an E-value is the number of subjects that score so or more
    statistics = statistics_for(Scoring(), "local")
    lengths = np.full(10_000, 300, dtype=np.int64)
    scores = np.full(10_000, 40, dtype=np.int64)
    found = distribution_of(count_scores(scores), 250, Lengths(lengths), statistics, 3_000_000)
    for score in (56, 58, 60):
        expected = found.expected[found.edges[:-1] >= score].sum()
        evalue = float(statistics.evalues([score], 250, [300], 3_000_000)[0])
        beyond = float(statistics.evalues([found.edges[-1]], 250, [300], 3_000_000)[0])
        assert expected == pytest.approx(evalue - beyond, rel=0.01)
