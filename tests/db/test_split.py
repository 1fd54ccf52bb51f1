"""Volumes hold what the whole holds, whether they are built or a database is split."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from support.db_helpers import LETTERS
from support.samples import sample
from swsearch.db import Database, append_database, build_database, split_database, verify_database
from swsearch.db.manifest import read_manifest
from swsearch.errors import DatabaseDamageError, DatabaseError, InputError, OptionError, OutputError
from swsearch.options.words import Mask


def write_random(path: Path, seed: int, n: int, longest: int = 300) -> Path:
    pick = random.Random(seed)

    def letters() -> str:
        parts = [
            "".join(pick.choices(LETTERS, k=pick.randint(0, longest // 3))),
            "".join(pick.choices(LETTERS, k=pick.randint(0, longest // 3))).lower(),
            pick.choice("ACDP") * pick.randint(0, longest // 3),
        ]
        return "".join(parts) if pick.random() < 0.9 else ""

    path.write_text("".join(f">s{i} {seed} {'x' * pick.randint(0, 90)}\n{letters()}\n" for i in range(n)))
    return path


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("inputs")
    return [write_random(folder / f"{n}.fasta", n, n) for n in (150, 3, 90)]


def content(path: Path) -> dict[str, Any]:
    """Return all that a database gives, but for how it is kept."""
    with Database.open(path) as database:
        every = np.arange(database.n_subjects)
        return {
            "counts": (database.n_subjects, database.n_residues, database.mask),
            "headers": [each.tobytes() for each in database.headers_of(every)],
            "codes": [each.tobytes() for each in database.codes_of(every)],
            "lower": [each.tolist() for each in database.masked_of(every, "lower")],
            "in force": [each.tolist() for each in database.masked_of(every, database.mask)],
            "sources": database.sources(),
            "chunks": sorted(
                (subject, chunk.subject(place).tobytes())
                for chunk in database.chunks(1 << 16)
                for place, subject in enumerate(chunk.subjects.tolist())
            ),
        }


def volumes_of(manifest: Path) -> list[Path]:
    return [manifest.parent / each.path for each in read_manifest(manifest).volumes]


def datasets(path: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, each: found.update({name: each[()].tobytes()}) if hasattr(each, "dtype") else None
        )
    return found


Making = Callable[[list[Path], Path, Mask], None]


def built(inputs: list[Path], output: Path, mask: Mask) -> None:
    build_database(inputs, output, mask=mask, volume_size=60_000)


def was_split(inputs: list[Path], output: Path, mask: Mask) -> None:
    build_database(inputs, output.with_name("whole.h5"), mask=mask)
    split_database(output.with_name("whole.h5"), output, volume_size=60_000)


def was_appended_and_split(inputs: list[Path], output: Path, mask: Mask) -> None:
    whole = output.with_name("whole.h5")
    build_database(inputs[0], whole, mask=mask)
    append_database(whole, inputs[1], on_duplicate="keep")
    append_database(whole, inputs[2], on_duplicate="keep")
    split_database(whole, output, volumes=5)


def was_split_twice(inputs: list[Path], output: Path, mask: Mask) -> None:
    build_database(inputs, output.with_name("first.json"), mask=mask, volume_size=60_000)
    split_database(output.with_name("first.json"), output, volumes=2)


@pytest.mark.parametrize("mask", sample(["none", "lower", "tantan"], lambda mask: mask == "tantan"))
@pytest.mark.parametrize("make", [built, was_split, was_appended_and_split, was_split_twice])
def test_volumes_hold_what_the_whole_holds(tmp_path: Path, inputs: list[Path], make: Making, mask: Mask) -> None:
    build_database(inputs, tmp_path / "one.h5", mask=mask)
    make(inputs, tmp_path / "out.json", mask)
    volumes = volumes_of(tmp_path / "out.json")
    assert len(volumes) > 1
    assert [each.name for each in volumes] == [f"out.{number:03d}.h5" for number in range(len(volumes))]
    for each in volumes:
        verify_database(each)
    assert content(tmp_path / "out.json") == content(tmp_path / "one.h5")


def test_a_split_makes_the_volumes_of_a_build(
    tmp_path: Path, inputs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many groups, in several passes over the database, too."""
    build_database(inputs, tmp_path / "one.h5", mask="tantan")
    build_database(inputs, tmp_path / "built.json", mask="tantan", volume_size=45_000)
    for name in ("layout", "gathered"):
        monkeypatch.setattr(f"swsearch.db.{name}.group_budget", lambda memory: 20_000)
    monkeypatch.setattr("swsearch.db.split.VOLUMES_AT_ONCE", 2)
    monkeypatch.setattr("swsearch.db.gathered.SUBJECTS_AT_ONCE", 50)
    monkeypatch.setattr("swsearch.db.split.MOST_CHUNK_BYTES", 30_000)
    calls: list[tuple[int, int | None]] = []
    split_database(
        tmp_path / "one.h5", tmp_path / "split.json", volume_size=45_000,
        progress=lambda done, total: calls.append((done, total)),
    )  # fmt: skip
    build_database(inputs, tmp_path / "small.json", mask="tantan", volume_size=45_000)
    wanted = [datasets(each) for each in volumes_of(tmp_path / "built.json")]
    assert len(wanted) > 3
    assert [datasets(each) for each in volumes_of(tmp_path / "split.json")] == wanted
    assert [datasets(each) for each in volumes_of(tmp_path / "small.json")] == wanted
    assert calls == sorted(calls) and calls[-1][0] == calls[-1][1]


def test_one_volume_is_enough(tmp_path: Path, inputs: list[Path]) -> None:
    build_database(inputs, tmp_path / "one.h5")
    with Database.build(inputs, tmp_path / "built", volume_size=1 << 40) as database:
        assert [Path(volume.path).name for volume in database.volumes] == ["built.000.h5"]
    split_database(tmp_path / "one.h5", tmp_path / "split.h5", volumes=1)
    for name in ("built.000.h5", "split.000.h5"):
        assert datasets(tmp_path / name) == datasets(tmp_path / "one.h5")


def test_a_block_of_empty_records(tmp_path: Path) -> None:
    (tmp_path / "in.fasta").write_text(">m\nMKV\n" + ">e\n" * 200)
    build_database(tmp_path / "in.fasta", tmp_path / "one.h5")
    split_database(tmp_path / "one.h5", tmp_path / "split.json", volumes=3)
    assert content(tmp_path / "split.json") == content(tmp_path / "one.h5")


@pytest.mark.parametrize(
    "text", sample([">a\nM\n", ">a\n\n>b\nMKV\n>c\n", ">a\n>b\nMKVLA\n"], lambda text: text.count(">") == 3)
)
def test_volumes_of_a_record_each_even_of_empty_ones(tmp_path: Path, text: str) -> None:
    (tmp_path / "in.fasta").write_text(text)
    build_database(tmp_path / "in.fasta", tmp_path / "one.h5")
    build_database(tmp_path / "in.fasta", tmp_path / "built.json", volume_size=1)
    split_database(tmp_path / "one.h5", tmp_path / "split.json", volumes=text.count(">"))
    for name in ("built.json", "split.json"):
        assert len(volumes_of(tmp_path / name)) == text.count(">")
        assert content(tmp_path / name) == content(tmp_path / "one.h5")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "expected one of them"),
        ({"volumes": 2, "volume_size": 2}, "expected one of them"),
        ({"volumes": 0}, "volumes: got 0, expected an integer >= 1"),
        ({"volumes": 1000}, "volumes: got 1000"),
        ({"volumes": True}, "volumes: got True"),
        ({"volume_size": 0}, "volume_size: got 0, expected a number of bytes"),
        ({"volume_size": "8G"}, "volume_size: got '8G', expected a number of bytes"),
        ({"volumes": 2, "memory": 1}, "memory: got 1"),
    ],
)
def test_wrong_options(tmp_path: Path, inputs: list[Path], options: dict[str, Any], words: str) -> None:
    build_database(inputs[1], tmp_path / "one.h5")
    with pytest.raises(InputError, match=words):
        split_database(tmp_path / "one.h5", tmp_path / "out.json", **options)
    if "volumes" not in options and options:
        with pytest.raises(OptionError, match=words):
            build_database(inputs[1], tmp_path / "out.json", **options)
    assert [path.name for path in tmp_path.iterdir()] == ["one.h5"]


def test_what_cannot_be_split(tmp_path: Path, inputs: list[Path]) -> None:
    with pytest.raises(DatabaseError, match="no such database"):
        split_database(tmp_path / "none.h5", tmp_path / "out.json", volumes=1)
    with pytest.raises(DatabaseError, match="is not a swsearch database"):
        split_database(inputs[0], tmp_path / "out.json", volumes=1)
    build_database(inputs, tmp_path / "one.h5")
    with pytest.raises(OutputError, match="is one of the inputs"):
        split_database(tmp_path / "one.h5", tmp_path / "one.h5", volumes=2)
    split_database(tmp_path / "one.h5", tmp_path / "all.json", volumes=2)
    with pytest.raises(OutputError, match=r"all\.json: is one of the inputs"):
        split_database(tmp_path / "all.json", tmp_path / "all.json", volumes=3)
    with pytest.raises(OutputError, match=r"all\.000\.h5: is one of the inputs"):
        split_database(tmp_path / "all.000.h5", tmp_path / "all.json", volumes=3)


def test_damage_is_not_copied(tmp_path: Path, inputs: list[Path]) -> None:
    build_database(inputs, tmp_path / "one.h5")
    with h5py.File(tmp_path / "one.h5") as file:
        places = {name: file[f"segments/0/{name}"].id.get_offset() for name in ("residues", "headers", "mask_ends")}
    sound = (tmp_path / "one.h5").read_bytes()
    for place in places.values():
        (tmp_path / "bad.h5").write_bytes(sound[: place + 1] + bytes([sound[place + 1] ^ 1]) + sound[place + 2 :])
        with pytest.raises(DatabaseDamageError, match="/segments/0/"):
            split_database(tmp_path / "bad.h5", tmp_path / "out.json", volumes=2)
    assert {path.name for path in tmp_path.iterdir()} == {"one.h5", "bad.h5"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("what", ["build", "split"])
def test_memory_does_not_grow_with_the_records(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all pieces small, 40,000 records more take no more but the 4 bytes of each that a database takes."""
    for name, value in {
        "build.BUFFER_BYTES": 1 << 15, "numbers.IN_MEMORY": 1 << 12, "layout.MIB": 1 << 14,
        "layout.WINDOW_COLUMNS": 1 << 10, "gathered.SUBJECTS_AT_ONCE": 1 << 8, "split.MOST_CHUNK_BYTES": 1 << 15,
        **{f"{module}.NUMBERS_AT_ONCE": 1 << 10 for module in ("numbers", "layout", "parts")},
        **{f"{module}.group_budget": lambda memory: 100_000 for module in ("layout", "gathered")},
    }.items():  # fmt: skip
        monkeypatch.setattr(f"swsearch.db.{name}", value)
    pick = random.Random(2)
    some = [f">r and more\n{'M' * pick.randint(1, 60)}{'mv' * pick.randint(0, 3)}\n" for _ in range(1000)]
    peaks = []
    for times in (1, 40, 80):
        (tmp_path / "in.fasta").write_text("".join(some * times))
        if what == "split":
            build_database(tmp_path / "in.fasta", tmp_path / "one.h5")
        tracemalloc.start()
        try:
            if what == "build":
                build_database(tmp_path / "in.fasta", tmp_path / "out.json", volume_size=1 << 20, memory=64 << 20)
            else:
                split_database(tmp_path / "one.h5", tmp_path / "out.json", volume_size=1 << 20, memory=64 << 20)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[2] < peaks[1] + 50_000 + (5 * 40_000 if what == "split" else 0), peaks
