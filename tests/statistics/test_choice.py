"""A hit's numbers, as arrays and one by one."""

import math

import numpy as np
import pytest

from swsearch.scoring import Scoring
from swsearch.statistics.karlin_altschul import statistics_for
from swsearch.statistics.methods import HitNumbers, numbers_as_arrays, numbers_of
from swsearch.statistics.null_model import Fit, PairNulls, fit_panel

SCORES, LENGTHS = np.array([51, 40, 90]), np.array([300, 60, 2000])
PUBLISHED = statistics_for(Scoring(), "local")


def nulls(mode):
    generator = np.random.default_rng(5)
    lengths = (64, 256, 1024)
    panel = [generator.normal(30, 5, (40, 8)).round().astype(np.int64) for _ in lengths]
    null = fit_panel(Fit(mode, 1, 1000, 300_000), 120, lengths, panel)
    return PairNulls(null, LENGTHS, np.array([31.0, 29.0, 45.0]), np.ones(3))


@pytest.mark.parametrize(
    ("statistics", "published"),
    [
        (None, None),
        (PUBLISHED, None),
        (PUBLISHED, PUBLISHED),
        (nulls("local"), PUBLISHED),
        (nulls("global"), None),
        (nulls("semiglobal"), None),
        (nulls("local").statistics, None),
    ],
    ids=str,
)
def test_arrays_hold_the_numbers_of_each_hit(statistics, published):
    given = (120, LENGTHS, 300_000)
    arrays = numbers_as_arrays(statistics, published, SCORES, *given)
    hits = numbers_of(statistics, published, SCORES.tolist(), *given)
    of_name = {
        "bit_score": arrays.bit_scores,
        "evalue": arrays.evalues,
        "z_score": arrays.z_scores,
        "evalue_published": arrays.evalues_published,
    }
    for name, column in of_name.items():
        assert column.dtype == np.float64
        found = [getattr(hit, name) for hit in hits]
        assert [None if math.isnan(value) else value for value in column.tolist()] == found
    has = {name for name, column in of_name.items() if not np.isnan(column).any()}
    pairs = isinstance(statistics, PairNulls)
    expected = {"evalue"} if statistics is not None else set()
    expected |= {"z_score"} if pairs else set()
    expected |= {"evalue_published"} if published is not None else set()
    if statistics is PUBLISHED or (pairs and statistics.statistics.fit.mode == "local"):
        expected.add("bit_score")
    assert has == expected
    if statistics is not None:
        again = numbers_as_arrays(statistics, published, SCORES, *given, known=arrays.evalues)
        assert again.evalues is arrays.evalues
        assert again.z_scores.tolist() == arrays.z_scores.tolist() or not pairs


def test_no_hits_have_no_numbers():
    for statistics in (None, PUBLISHED, nulls("local")[:0]):
        assert numbers_of(statistics, PUBLISHED, [], 120, LENGTHS[:0], 300_000) == []
    assert numbers_of(None, None, [3], 120, LENGTHS[:1], 300_000) == [HitNumbers()]
