"""Subjects that filters leave out are not scored, and results are the same to the last byte."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swsearch
from support.samples import sample
from swsearch.alphabet import PROTEIN
from swsearch.backends import local
from swsearch.db import Database
from swsearch.options.kinds import MODES
from swsearch.pipeline.subjects import ProteinSubjects

OPTIONS: list[dict[str, Any]] = [
    {},
    {"statistics": "published"},
    {"statistics": "none", "max_hits": 3, "sort": "score"},
    {"max_alignments": 3, "min_identity": 20, "evalue": 1e6},
    {"subject_mask": "lower", "dbsize": 1000},
    {"distribution": True},
    {"mode": "global"},
    {"mode": "semiglobal"},
]

CASES = sample([(e, p) for e in ("cpu", "reference") for p in range(len(OPTIONS))], lambda case: case == ("cpu", 3))


@pytest.fixture(scope="module")
def subjects() -> list[tuple[str, str]]:
    rng = np.random.default_rng(20)
    query = "MKVLAAGIVGWWHEAGAWGHEEPQSDPSVEPPLSQETFSDLWKLLPENNVLSPLPSQAMDDLMLSPDDIEQWFTED"
    found = []
    for place in range(400):
        codes = rng.integers(0, 20, rng.integers(1, 150))
        start = int(rng.integers(0, 60))
        letters = PROTEIN.decode(codes.astype(np.uint8)) + query[start : start + 40].lower() * int(place % 5 == 0)
        found.append((f"s{place}", letters))
    return found


def outputs(subjects: list[tuple[str, str]], engine: str, **options: Any) -> str:
    queries = [("q1", subjects[5][1].upper()), ("q2", subjects[35][1].upper()[:50]), ("q3", "")]
    text = io.StringIO()
    with (
        Database.from_records(subjects, name="db") as database,
        swsearch.search(queries, database, engine=engine, threads=1, **options) as results,
    ):
        swsearch.write(results, text, "jsonl")
    return text.getvalue()


@pytest.mark.parametrize(
    ("engine", "place"),
    CASES,
)
@pytest.mark.parametrize("kept", sample(["tenth", "few"], lambda kept: kept == "tenth"))
def test_results_are_the_same(
    subjects: list[tuple[str, str]], engine: str, place: int, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = {"tenth": 10, "few": 200}[kept]
    options = OPTIONS[place] | {"include_ids": [f"s{number}" for number in range(5, 400, step)]}
    if engine == "reference":
        subjects = subjects[:40]
        options["include_ids"] = ["s5", "s10", "s35"]
    if options.get("mode") in MODES[1:]:
        options["evalue"] = None
    found = outputs(subjects, engine, **options)
    seen = []
    part = local._subjects_to_score
    monkeypatch.setattr(local, "_subjects_to_score", lambda asked: seen.append(part(asked)) or asked.subjects)
    assert outputs(subjects, engine, **options) == found
    assert [isinstance(each, ProteinSubjects) for each in seen] == [bool(options.get("distribution"))]


def test_what_is_scored(subjects: list[tuple[str, str]], tmp_path: Path) -> None:
    cells: list[int] = []
    with Database.from_records(subjects) as database:
        named = [f"s{number}" for number in range(0, 400, 40)]
        for options in ({"include_ids": named}, {"exclude_ids": named}):
            with swsearch.search(
                "MKVL", database, progress=cells.append, checkpoint=tmp_path / next(iter(options)), **options
            ) as results:
                assert len(list(results)) == 1
                assert results.search.cells == sum(cells)
            residues = sum(int(database.lengths[place]) for place in range(0, 400, 40))
            assert sum(cells) == 4 * (residues if "include_ids" in options else database.n_residues)
            cells.clear()
