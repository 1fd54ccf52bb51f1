"""How matrix and gap costs of --preset sensitive are chosen."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pandas")

from benchmarks.statistics import preset
from benchmarks.statistics.sensitivity_measures import Labels
from swsearch.matrices import GAP_COSTS, PRESET_MATRICES

LABELS = Labels.of([f"a.{place // 9}.{place // 3}.{place}" for place in range(300)] + ["b.1.1.1"])
"""A hundred superfamilies of three domains, and one domain without relatives."""


def test_halves_share_no_superfamily() -> None:
    first, other = preset.halves(LABELS, 1000)
    assert len(first) + len(other) == 300
    assert abs(len(first) - len(other)) <= 6
    assert not set(LABELS.superfamily[first]) & set(LABELS.superfamily[other])
    assert 300 not in (*first, *other)
    fewer = preset.halves(LABELS, 10)
    assert [len(each) for each in fewer] == [10, 10]
    assert set(fewer[0]) <= set(first)


def test_a_domain_within_a_protein() -> None:
    (one, two), again = preset.flanked([("a", "MKV"), ("b", "WW")]), preset.flanked([("a", "MKV"), ("b", "WW")])
    assert [one, two] == again
    assert (one[0], one[1][preset.FLANK : -preset.FLANK]) == ("a", "MKV")
    assert len(two[1]) == 2 * preset.FLANK + 2
    assert set(one[1]) <= set("MKVW")


def test_the_best_gap_costs_are_those_of_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preset, "SYSTEMS", {"A": [(2, 1), (3, 1)], "B": [(4, 1)], "C": [(9, 9)]})
    domains = {"A-2-1": 0.5, "A-3-1": 0.4, "B-4-1": 0.1}
    proteins = {"A-2-1": 0.1, "A-3-1": 0.3, "B-4-1": 0.1}
    assert preset.best_of_each([domains, proteins]) == ["A-3-1", "B-4-1"]
    assert preset.best_of_each([domains]) == ["A-2-1", "B-4-1"]


def test_members_of_a_superfamily_count_as_one() -> None:
    differences = np.array([0.1, 0.1, -0.1, -0.1])
    assert preset.clustered(np.zeros(4), np.arange(4)) == ""
    assert preset.clustered(differences, np.arange(4)) == "+0.00% ± 5.00%"
    assert preset.clustered(differences, np.array([0, 0, 1, 1])) == "+0.00% ± 7.07%"


def test_what_is_shipped_was_measured() -> None:
    matrix = PRESET_MATRICES["sensitive"]
    assert all(GAP_COSTS[name] in preset.SYSTEMS[name] for name in (matrix, "VTML200"))
