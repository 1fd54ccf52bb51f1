"""Files of a database appear all together or not at all, and replace only what they should."""

from __future__ import annotations

import errno
import json
import lzma
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import h5py
import pytest

from support.databases import Failing, drawn, entries, files, held, names, written
from support.db_helpers import HBA, HBB
from swsearch.db import (
    Database,
    append_database,
    build_database,
    convert_database,
    merge_databases,
    remove_records,
    split_database,
)
from swsearch.errors import OutputError, SequenceError

RECORD = f"{HBA}{HBB}"


def volumes(folder: Path, n: int, name: str = "out.json", **options: Any) -> None:
    """Build a database in ``n`` volumes, of one record each."""
    part = written(folder / "part.fasta", [(f"r{i}", RECORD) for i in range(n)])
    try:
        build_database(part, folder / name, volume_size=1, **options)
    finally:
        part.unlink()


@pytest.mark.parametrize(
    ("manifest", "stem"),
    [("t.json", "t"), ("t.h5", "t"), ("t", "t"), ("u_2026.03", "u_2026.03"), ("a b.v2.json", "a b.v2")],
)
def test_volumes_are_named_after_the_manifest_and_replace_nothing(tmp_path: Path, manifest: str, stem: str) -> None:
    (tmp_path / f"{stem}.001.h5").touch()
    volumes(tmp_path, 2, manifest)
    assert names(tmp_path) == sorted([manifest, *(f"{stem}.00{k}.h5" for k in range(3))])
    assert not (tmp_path / f"{stem}.001.h5").stat().st_size


def test_a_build_leaves_none_of_the_earlier_volumes(tmp_path: Path) -> None:
    volumes(tmp_path, 4)
    assert names(tmp_path) == ["out.000.h5", "out.001.h5", "out.002.h5", "out.003.h5", "out.json"]
    (tmp_path / "out.json").chmod(0o640)
    with Database.open(tmp_path / "out.json") as earlier:
        volumes(tmp_path, 2)
        assert earlier.identifier(3) == "r3"  # whoever has it open keeps it
    assert names(tmp_path) == ["out.004.h5", "out.005.h5", "out.json"]
    assert [path.stat().st_mode & 0o777 for path in tmp_path.iterdir()] == [0o640] * 3
    assert held(tmp_path / "out.json") == [(f"r{i}", RECORD) for i in range(2)]
    source = written(tmp_path / "in", [("r", RECORD)])
    build_database(source, tmp_path / "out.json")  # one file under the manifest's name
    assert names(tmp_path) == ["in", "out.json"]
    volumes(tmp_path, 2)  # and volumes in its place
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "elsewhere" / "real.json")
    volumes(tmp_path, 2, "link.json")
    assert names(tmp_path / "elsewhere") == ["real.000.h5", "real.001.h5", "real.json"]
    assert names(tmp_path) == ["elsewhere", "in", "link.json", "out.000.h5", "out.001.h5", "out.json"]


def test_the_volumes_of_a_damaged_manifest_stay(tmp_path: Path) -> None:
    volumes(tmp_path, 2)
    said = json.loads((tmp_path / "out.json").read_text())
    (tmp_path / "out.json").write_text(json.dumps(said | {"format_version": 5}))
    volumes(tmp_path, 1)
    assert len(held(tmp_path / "out.json")) == 1 and len(names(tmp_path)) == 4


WORKS: dict[str, Callable[[Path], object]] = {
    "build": lambda folder: volumes(folder, 2, "new.json"),
    "build again": lambda folder: volumes(folder, 2),
    "append": lambda folder: append_database(folder / "out.json", folder / "in"),
    "remove": lambda folder: remove_records(folder / "out.json", ["s0_1", "s50_1", "s89_1"]),
}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
@pytest.mark.parametrize("what", WORKS)
def test_whichever_call_fails_the_files_are_as_before_or_as_after(
    tmp_path: Path, what: str, error: BaseException
) -> None:
    build_database(written(tmp_path / "old", drawn(1, 90)), tmp_path / "out.json", volume_size=60_000)
    written(tmp_path / "in", drawn(2, 9))
    before, found = files(tmp_path), list[bool]()
    for number in count(1):
        with pytest.MonkeyPatch.context() as patch:
            failing = Failing(patch, ["fsync", "replace"], number, error)
            with suppress(KeyboardInterrupt, OutputError):
                WORKS[what](tmp_path)
        found.append(files(tmp_path) != before)
        if failing.left > 0:
            break
        if found[-1]:
            assert not [name for name in names(tmp_path) if name.startswith(".")]
            entries(tmp_path / ("new.json" if what == "build" else "out.json"))
            for name in names(tmp_path):
                (tmp_path / name).unlink()
            for name, data in before.items():
                (tmp_path / name).write_bytes(data)
    assert found[-1] and found.count(False) > 5


@pytest.mark.parametrize("earlier", [0, 3])
def test_volumes_of_a_killed_command_go_with_the_next(tmp_path: Path, earlier: int) -> None:
    """Killed when some have names and no manifest lists them, or when the earlier ones are no longer listed."""
    for number in count(1):
        for name in names(tmp_path):
            (tmp_path / name).unlink()
        if earlier:
            volumes(tmp_path, earlier)
        child = os.fork()
        if child == 0:
            Failing(pytest.MonkeyPatch(), ["replace", "unlink"], number, None)
            volumes(tmp_path, 2)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert status in (0, signal.SIGKILL)
        if earlier or (tmp_path / "out.json").exists():
            assert len(entries(tmp_path / "out.json")) in (earlier, 2)
        volumes(tmp_path, 1)
        assert len(entries(tmp_path / "out.json")) == 1 and len(names(tmp_path)) == 2
        if not status:
            assert number > 4
            break


def test_a_bad_record_late_in_the_input_leaves_nothing(tmp_path: Path) -> None:
    source = written(tmp_path / "in.fasta", [("a", RECORD), ("b", "M-")])
    with pytest.raises(SequenceError, match="gap character"):
        build_database(source, tmp_path / "out.json", volume_size=1)
    assert names(tmp_path) == ["in.fasta"]


# what may be replaced

OLD_FILE = Path(__file__).parent / "old_files" / "format1.h5.xz"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs")
    source = written(folder / "in.fasta", [("a", "MKV"), ("b", "MKV")])
    build_database(source, folder / "one.h5")
    build_database(source, folder / "masked.h5", mask="lower")
    build_database(source, folder / "v.json", volume_size=1 << 20)
    (folder / "old.h5").write_bytes(lzma.decompress(OLD_FILE.read_bytes()))
    (folder / "other.json").write_text('{"format": "something else"}')
    with h5py.File(folder / "foreign.h5", "w") as file:
        file["x"] = 1
    return folder


def merge(read: str, **size: int) -> Callable[..., object]:
    return lambda output, **options: merge_databases(read, output, on_duplicate="keep", **size, **options)


WRITERS: dict[str, tuple[Callable[..., object], list[str]]] = {
    "build": (lambda output, **options: build_database("in.fasta", output, **options), ["in.fasta"]),
    "merge": (merge("one.h5"), ["one.h5"]),
    "merge volumes": (merge("v.json", volume_size=1 << 20), ["v.json", "v.000.h5"]),
    "split a volume": (
        lambda output, **options: split_database("v.000.h5", output, volume_size=9, **options),
        ["v.json"],
    ),
    "convert": (lambda output, **options: convert_database("old.h5", output, **options), ["old.h5"]),
}
"""Functions that write databases, with the files that each reads, or a manifest of them."""

OTHERS = {
    ".": "is a directory",
    "none/out.h5": "none not found; create it",
    "foreign.h5": "foreign.h5: exists and is not a swsearch database; choose another name",
    "other.json": "exists and is not a swsearch database",
    "/dev/null": "exists and is not a swsearch database",
}


@pytest.mark.parametrize("what", WRITERS)
def test_inputs_and_foreign_files_are_never_replaced(
    folder: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before, (work, read) = files(folder), WRITERS[what]
    for output, words in (OTHERS | dict.fromkeys(read, "is one of the inputs")).items():
        with pytest.raises(OutputError, match=words):
            work(output)
    with pytest.raises(OutputError, match=r"masked\.h5: exists; choose another name or allow to overwrite it"):
        work("masked.h5", overwrite=False)
    assert files(folder) == before
