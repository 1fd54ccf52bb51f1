"""Segments and volumes hold what one segment holds, whether they are built, appended, merged, split or converted."""

from __future__ import annotations

import lzma
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import swsearch
from support.databases import content, cut_small, drawn, names, written
from support.samples import sample
from support.taxa import write_taxonomy
from swsearch.db import Database, append_database, build_database, convert_database, merge_databases, split_database
from swsearch.errors import DatabaseDamageError, OptionError

OLD_FILES = Path(__file__).parent / "old_files"
QUERY = "MKVLAAGIVGHEAGAWGHEEMKVLAAGIVGHEAGAWGHEE"

KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "tantan": {"mask": "tantan"},
    "taxa": {"mask": "lower", "taxids": "header"},
    "DNA": {"translate": True, "genetic_code": 4},
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, list[Path]]:
    """Write FASTA of proteins, and of DNA."""
    folder = tmp_path_factory.mktemp("inputs")
    return {
        dna: [written(folder / f"{dna}{n}.fasta", drawn(n, n, dna=dna)) for n in (150, 3, 90)]
        for dna in (False, True)
    }


Making = Callable[[list[Path], Path, dict[str, Any]], None]


def built(inputs: list[Path], output: Path, options: dict[str, Any]) -> None:
    build_database(inputs, output, **options)


def appended(inputs: list[Path], output: Path, options: dict[str, Any]) -> None:
    build_database(inputs[0], output, **options)
    append_all(inputs[1:], output, options)


def append_all(inputs: list[Path], output: Path, options: dict[str, Any]) -> None:
    for each in inputs:
        append_database(output, each, **{name: options[name] for name in options.keys() & {"taxids", "taxonomy"}})


def merged(inputs: list[Path], output: Path, options: dict[str, Any]) -> None:
    parts = [output.with_name(f"part{number}.h5") for number in range(3)]
    for each, part in zip(inputs, parts, strict=True):
        build_database(each, part, **options)
    merge_databases(parts, output)


def in_volumes(inputs: list[Path], output: Path, options: dict[str, Any]) -> None:
    build_database(inputs, output.with_suffix(".json"), volume_size=60_000, **options)


def volumes_appended(inputs: list[Path], output: Path, options: dict[str, Any]) -> None:
    in_volumes(inputs[:1], output, options)
    append_all(inputs[1:], output.with_suffix(".json"), options)


def split(inputs: list[Path], output: Path, options: dict[str, Any]) -> None:
    appended(inputs, output.with_name("whole.h5"), options)
    split_database(output.with_name("whole.h5"), output.with_suffix(".json"), volume_size=60_000)


def split_twice(inputs: list[Path], output: Path, options: dict[str, Any]) -> None:
    in_volumes(inputs, output.with_name("first.json"), options)
    split_database(output.with_name("first.json"), output.with_suffix(".json"), volume_size=80_000)


WAYS = [built, appended, merged, in_volumes, volumes_appended, split, split_twice]

QUICK = [*zip(WAYS, ["DNA", "taxa", "plain", "tantan", "DNA", "taxa", "plain"], strict=True)]


@pytest.mark.parametrize(("make", "kind"), sample(product(WAYS, KINDS), QUICK.__contains__))
def test_it_is_what_one_segment_is(
    tmp_path: Path, inputs: dict[bool, list[Path]], make: Making, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the same records, masks, taxa, names and bytes of FASTA, and searches find the same."""
    options = KINDS[kind] | ({"taxonomy": write_taxonomy(tmp_path / "taxonomy")} if kind == "taxa" else {})
    files = inputs[kind == "DNA"]
    build_database(files, tmp_path / "one.h5", **options)
    cut_small(monkeypatch)
    make(files, tmp_path / "out.h5", options)
    output = next(path for path in (tmp_path / "out.json", tmp_path / "out.h5") if path.exists())
    with Database.open(output) as database, Database.open(tmp_path / "one.h5") as one:
        assert (database.info()["n_segments"] > 5, one.info()["n_segments"]) == (True, 1)
        assert output.suffix == ".h5" or len(database.volumes) > 1
        results = [next(swsearch.search(QUERY, each, engine="cpu", evalue=1e9)) for each in (database, one)]
        hits = [[(hit.subject_id, hit.score, hit.cigar) for hit in result] for result in results]
        assert hits[0] == hits[1] != []
    assert content(output) == content(tmp_path / "one.h5")


@pytest.mark.parametrize("limit", [1, 3_000, 20_000, 1 << 30])
def test_a_merge_and_a_conversion_cut_as_the_memory_asks(
    tmp_path: Path, inputs: dict[bool, list[Path]], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large segments are read in parts, small ones become large ones."""
    old = tmp_path / "old.h5"
    old.write_bytes(lzma.decompress((OLD_FILES / "format2_tantan.h5.xz").read_bytes()))
    convert_database(old, tmp_path / "one.h5")
    build_database(inputs[False], tmp_path / "whole.h5", mask="lower")
    cut_small(monkeypatch, limit)
    calls: list[tuple[int, int | None]] = []
    merge_databases(tmp_path / "whole.h5", tmp_path / "cut.h5", progress=lambda *done: calls.append(done))
    assert calls == sorted(calls) and calls[-1][0] == calls[-1][1]
    with Database.open(tmp_path / "cut.h5") as database:
        n = database.info()["n_segments"]
    assert n == 243 if limit == 1 else (n == 1) == (limit == 1 << 30)
    monkeypatch.setattr("swsearch.db.convert.segment_limit", lambda memory: limit)
    convert_database(old, tmp_path / "small.h5")
    for cut, whole in (("cut", "whole"), ("small", "one")):
        assert content(tmp_path / f"{cut}.h5") == content(tmp_path / f"{whole}.h5")


@pytest.mark.parametrize("dna", [False, True])
def test_sizes_of_volumes(tmp_path: Path, dna: bool) -> None:
    """No file is larger than was asked for, unless it holds one record; the last ones are not the only full ones."""
    records = drawn("sizes", 400, 600, dna=dna)
    records[200] = ("long", ("MKV" if not dna else "ACG") * 80_000)
    source = written(tmp_path / "in.fasta", records)
    for size in (60_000, 90_000, 200_000):
        build_database(source, tmp_path / "out.json", volume_size=size, translate=dna)
        with Database.open(tmp_path / "out.json") as database:
            volumes = database.volumes
        sizes = [Path(each.path).stat().st_size for each in volumes]
        large = [each for each, n_bytes in zip(volumes, sizes, strict=True) if n_bytes > size]
        assert [(each.first, each.n_subjects) for each in large] == [(200, 1)] * (len(large) == 1)
        if not dna:
            assert len(large) == 1 and sum(sizes) / len(sizes) > size / 3


@pytest.mark.parametrize("empty", [[0], [0, 2], range(1, 70)])
def test_volumes_of_a_record_each_even_of_empty_ones(tmp_path: Path, empty: Sequence[int]) -> None:
    records = [(f"e{place}", "") for place in empty]
    records.insert(1, ("m", "MKV"))
    source = written(tmp_path / "in.fasta", records)
    build_database(source, tmp_path / "one.h5")
    build_database(source, tmp_path / "built.json", volume_size=1)
    split_database(tmp_path / "one.h5", tmp_path / "split.json", volume_size=1)
    for name in ("built.json", "split.json"):
        with Database.open(tmp_path / name) as database:
            assert [volume.n_subjects for volume in database.volumes] == [1] * len(records)
            assert [(entry.identifier, entry.sequence) for entry in database] == records
    with Database.build(source, tmp_path / "enough", volume_size=1 << 40) as database:
        assert [Path(volume.path).name for volume in database.volumes] == ["enough.000.h5"]


def test_too_many_volumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = written(tmp_path / "in.fasta", drawn("many", 30))
    monkeypatch.setattr("swsearch.db.new_files.MAX_VOLUMES", 20)
    with pytest.raises(
        OptionError, match=r"volume_size: got 1, .* at most 20 volumes; so many hold the first 20 rec"
    ):
        build_database(source, tmp_path / "many.json", volume_size=1)
    assert names(tmp_path) == ["in.fasta"]


@pytest.mark.parametrize("size", [True, 0, "8G"])
def test_what_is_no_size_of_volumes_is_refused(tmp_path: Path, size: Any) -> None:
    source = written(tmp_path / "in.fasta", [("a", "MKV")])
    build_database(source, tmp_path / "one.h5")
    for work, read in ((split_database, tmp_path / "one.h5"), (build_database, source)):
        with pytest.raises(OptionError, match=f"volume_size: got {size!r}, expected a number of bytes"):
            work(read, tmp_path / "out.json", volume_size=size)
    assert names(tmp_path) == ["in.fasta", "one.h5"]


def test_a_damaged_database_is_not_split(tmp_path: Path) -> None:
    build_database(written(tmp_path / "in.fasta", drawn(1, 9)), tmp_path / "one.h5")
    raw = bytearray((tmp_path / "one.h5").read_bytes())
    raw[raw.index(b"s0_1")] ^= 1
    (tmp_path / "one.h5").write_bytes(raw)
    with pytest.raises(DatabaseDamageError, match="/segments/0/"):
        split_database(tmp_path / "one.h5", tmp_path / "out.json", volume_size=1 << 20)
    assert names(tmp_path) == ["in.fasta", "one.h5"]
