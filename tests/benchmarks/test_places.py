"""Comparison of places: it sees every difference, and plants hard cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.agreement import places
from benchmarks.agreement.place_cases import CASES, PLACES, Case, Place
from benchmarks.agreement.places import Result
from benchmarks.support.common import write

RECORDS = [(f"s{number} protein", "MKVLAAGIVGLWWPPKLMNRSTACDEFGHIK" * 3) for number in range(100)]


def result(**digests: str) -> Result:
    return Result("search", digests, dict.fromkeys(digests, 10), 1.0)


def test_what_differs_fails_or_is_missing_is_counted() -> None:
    right = {"published": result(tsv="a", txt="b"), "fitted": result(tsv="c", txt="d")}
    same = dict(right)
    other = {"published": result(tsv="a", txt="x"), "fitted": result(tsv="c")}
    failed = {"fitted": Result("search", {}, {}, 1.0, "exit code 3: no")}
    found = {PLACES[0].name: right, "same": same, "other": other, "failed": failed}
    lines, n_wrong = places.report(found)
    assert n_wrong == 3
    assert lines[-3:] == ["other: published: 0", "other: fitted: 0", "failed: fitted: exit code 3: no"]
    assert places.report({PLACES[0].name: right, "same": same})[1] == 0
    assert places.report({PLACES[0].name: failed})[1] == 1


def test_copies_lie_in_every_volume_and_masks_have_letters() -> None:
    found = places.planted(RECORDS, ("q", "MKVQ"))
    copies = [place for place, (name, _) in enumerate(found) if name.startswith("copy_")]
    assert len(found) == len(RECORDS) + places.COPIES and len(copies) == places.COPIES
    quarter = len(found) // places.VOLUMES
    assert {place // quarter for place in copies} >= {0, 1, 2}
    assert sum(not letters.isupper() for _, letters in found) == len(RECORDS) // 10
    assert [letters.upper() for name, letters in found if name[0] == "s"] == [letters for _, letters in RECORDS]


def test_a_digest_is_known_of_the_same_command_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "swsearch", lambda *parts: "")
    (tmp_path / "kept" / "one").mkdir(parents=True)
    (tmp_path / "kept" / "one" / places.DATABASE).touch()  # as db build would
    files = [write(tmp_path / name, RECORDS[:5]) for name in ("queries.fasta", "subjects.fasta")]
    place, case = PLACES[0], CASES[0]
    data = places.Data(tmp_path / "kept", *files, 3)
    command = "search all.fasta database.h5 --statistics published --engine cpu"
    data.keep(place, case, Result(command, {"tsv": "a"}, {"tsv": 1}, 1.0))
    data.keep(place, CASES[1], Result("search", {}, {}, 1.0, "failed"))
    again = places.Data(tmp_path / "kept", *files, 3)
    assert again.known(place, case) == Result(command, {"tsv": "a"}, {"tsv": 1}, 1.0)
    assert again.known(place, CASES[1]) is None
    assert again.known(place, Case(case.name, "--statistics fitted", "all")) is None
    with pytest.raises(SystemExit, match="another --few"):
        places.Data(tmp_path / "kept", *files, 4)


def test_names_of_several_databases_may_differ(tmp_path: Path) -> None:
    data = places.Data.__new__(places.Data)
    data.folder = tmp_path
    (tmp_path / "list").mkdir()
    for name in ("database.000.h5", "database.001.h5"):
        (tmp_path / "list" / name).touch()
    (tmp_path / "hits").write_text("Database: database.000.h5,\ndatabase.001.h5\nswsearch 0.0\n")
    several = Place("4 databases", "list", "")
    assert places.comparable(data, several, tmp_path / "hits") == b"Database: database.h5\nswsearch 0.0\n"
