"""Measurements of E-values: random queries, counts and kept searches."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import swsearch
from benchmarks.statistics import evalues
from benchmarks.statistics.calibration import LEVELS, Row, systems
from benchmarks.statistics.chance_queries import CLASSES, draw_classes, entropy
from benchmarks.support.evalues import DEFAULTS, Searches, System, by_query

LETTERS = "ACDEFGHIKLMNPQRSTVWY"


def proteins(n: int, seed: int = 3) -> list[tuple[str, str]]:
    chance = random.Random(seed)
    lengths = [chance.randint(100, 600) for _ in range(n)] + [chance.randint(1500, 3000) for _ in range(10)]
    return [(f"p{k}", "".join(chance.choices(LETTERS, k=length))) for k, length in enumerate(lengths)]


def test_a_seed_draws_the_same_queries_and_another_one_others() -> None:
    drawn = draw_classes(proteins(200), 5, 2, seed=7)
    assert list(drawn) == list(CLASSES)
    assert drawn == draw_classes(proteins(200), 5, 2, seed=7)
    assert not set(drawn["shuffled"]) & set(draw_classes(proteins(200), 5, 2, seed=8)["shuffled"])


def test_queries_of_chance_are_made_of_proteins() -> None:
    records = proteins(200)
    by_name, drawn = dict(records), draw_classes(records, 5, 2, seed=7)
    for kind in ("shuffled", "long", "biased"):
        assert all(Counter(letters) == Counter(by_name[name]) for name, letters in drawn[kind])
    assert [(name, letters[::-1]) for name, letters in drawn["reversed"]] == [
        (name, by_name[name]) for name, _ in drawn["shuffled"]
    ]
    assert all(15 <= len(letters) <= 40 for _, letters in drawn["short"])
    assert len(drawn["long"]) == 2
    assert max(entropy(letters) for _, letters in drawn["biased"]) < np.median([entropy(each[1]) for each in records])


def test_a_copy_keeps_as_many_residues_as_it_is_told() -> None:
    chance = random.Random(5)
    original = "".join(chance.choices(LETTERS, k=200))
    copy = evalues.copy(original, 0.4, dict.fromkeys(LETTERS, 1), chance)
    assert sum(a == b for a, b in zip(original, copy, strict=True)) == 80


def test_what_is_kept_is_counted_by_query() -> None:
    theirs = {(0, 1): 1e-5, (0, 2): 1e-4, (1, 1): 0.5, (2, 0): 1e-9}
    ours = {(0, 1): 1e-9, (0, 2): 0.002, (1, 1): 1e-9}
    assert evalues.kept(ours, theirs) == {0: (2, 1), 2: (1, 0)}
    assert evalues.share_kept(evalues.kept(ours, theirs)) == "33.3% of 3"


def test_parts_are_compared_hit_by_hit() -> None:
    assert [(start, len(piece)) for start, piece in evalues.pieces(proteins(0), 4)] == [
        (0, 2),
        (2, 3),
        (5, 2),
        (7, 3),
    ]
    whole = {(0, 0): 1e-3, (0, 1): 2.0, (1, 4): 1e-310, (1, 5): 4.0}
    cells = evalues.compare(whole, {(0, 0): 2e-3, (0, 1): 1.0, (1, 4): 1e-310}, evalues.LEAST)
    assert cells[:3] == ["2", "1", "0.5"]
    assert cells[-1] == "2"


def test_a_row_holds_means_errors_and_the_most() -> None:
    row = Row(System(DEFAULTS, "local"), "short", "fitted", np.array([[0] * len(LEVELS), [2] * len(LEVELS)]))
    assert row.cells() == ["local BLOSUM62 11/1", "short", "fitted", "2", "1", "1", "1", "1", "1", "1", "1", "2"]
    assert not row.is_as_wanted()  # half a hit of E <= 0.01 would be too many


def test_every_scoring_and_mode_that_is_judged_exists() -> None:
    judged, missing = systems(["local", "global"], [1, 2, 3, 4])
    assert not missing
    assert {system.mode for system in judged[:4]} == {"local"}
    assert len({system.costs for system in judged}) == 4
    assert judged[0].peers() == ["blastp", "ssearch36"]


def test_a_search_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subjects = proteins(20)[:20]
    system = System(DEFAULTS, "local")
    with Searches(subjects, tmp_path) as searches:
        found = searches.found("published", subjects[:2], system)
        assert {(0, 0), (1, 1)} <= set(found)
        assert by_query(found, 2)[0] == sorted(value for (query, _), value in found.items() if query == 0)
        monkeypatch.setattr(swsearch, "search", None)
        assert searches.found("published", subjects[:2], system) == found
        with pytest.raises(TypeError):
            searches.found("published", subjects[:3], system)
