"""An append writes what is new behind what is there; whatever ends it, the file is the old or the new database."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import h5py
import pytest

from support.databases import Entry, Failing, content, cut_small, drawn, entries, files, held, names, written
from support.db_helpers import Bytes
from swsearch.db import Database, append_database, build_database, container, merge_databases, verify_database
from swsearch.db.file_contents import read_contents
from swsearch.db.format import USER_BLOCK
from swsearch.errors import OutputError, SwsearchWarning

SIZES = [3, 1, 5, 2, 4, 1, 1, 2, 3, 1, 2]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Write FASTA of some records each, for appends."""
    folder = tmp_path_factory.mktemp("parts")
    return [written(folder / f"{k}.fasta", drawn(k, n)) for k, n in enumerate([*SIZES, 4, 2])]


@pytest.fixture(scope="module")
def made(parts: list[Path]) -> Path:
    """Make a database of 11 segments."""
    path = parts[0].with_name("many.h5")
    build_database(parts[0], path)
    for each in parts[1:11]:
        append_database(path, each)
    return path


@pytest.fixture
def many(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made, tmp_path / "out.h5"))


def records_of(parts: list[Path]) -> list[Entry]:
    return [tuple(each.split("\n")[:2]) for part in parts for each in part.read_text().split(">")[1:]]  # type: ignore[misc]


def arrays(path: Path) -> dict[str, bytes]:
    """Return what h5py reads of the segments."""
    found: dict[str, bytes] = {}
    with h5py.File(path) as file:
        file["segments"].visititems(
            lambda name, each: found.update({name: each[()].tobytes()}) if isinstance(each, h5py.Dataset) else None
        )
    return found


KINDS: dict[str, dict[str, Any]] = {
    "tantan": {"mask": "tantan"},
    "taxa": {"taxids": "header"},
    "DNA": {"translate": True},
}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_that_is_there_is_written_again(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, options = tmp_path / "out.h5", KINDS[kind]
    old, new = (written(tmp_path / str(n), drawn(n, n, dna=kind == "DNA")) for n in (60, 40))
    build_database([old, new], tmp_path / "one.h5", **options)
    cut_small(monkeypatch)
    build_database(old, path, **options)
    before, file = path.read_bytes(), path.stat()
    calls: list[tuple[int, int]] = []
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: (calls.append((at, len(data))), write(fd, data, at))[1])
    with Database.open(path) as reader:
        first, last, identity = reader.header(0), reader.sequence(59), reader.identity()
        append_database(path, new, **(options if kind == "taxa" else {}))
        after = path.read_bytes()
        # it goes on with what it knows
        assert (path.stat().st_ino, reader.header(0), reader.sequence(59)) == (file.st_ino, first, last)
        assert len(reader) == 60
    with Database.open(path) as database:
        assert database.identity() != identity
    for begin, end in (bounds for segment in read_contents(Bytes(before)).segments for bounds in segment.ranges()):
        assert after[begin:end] == before[begin:end]
    inside = sum(n for at, n in calls if USER_BLOCK <= at < len(before))
    behind = sum(n for at, n in calls if at >= len(before))
    assert inside < 8_000 and behind < 2 * (len(after) - len(before))
    assert content(path) == content(tmp_path / "one.h5")
    assert len(arrays(path)) == sum(len(each.arrays) + 1 for each in read_contents(Bytes(after)).segments)


def test_many_appends(tmp_path: Path, many: Path, parts: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    assert held(many) == records_of(parts[:11])
    assert len({name.split("/")[0] for name in arrays(many)}) == 11
    monkeypatch.setattr("swsearch.db.editing.MANY_SEGMENTS", 12)
    with pytest.warns(SwsearchWarning, match="has 12 segments, which searches read one after the other; make large"):
        append_database(many, parts[11])
    merge_databases(many, tmp_path / "merged.h5")
    build_database(parts[:12], tmp_path / "one.h5")
    assert arrays(tmp_path / "merged.h5") == arrays(tmp_path / "one.h5")
    monkeypatch.setattr(container, "MAX_CONTENTS_BYTES", 15_000)
    before = many.read_bytes()
    with pytest.raises(OutputError, match="segments: got 1 new ones, expected fewer in one file; make large ones of"):
        append_database(many, parts[12])
    assert many.read_bytes() == before


def test_ended_after_each_write_the_next_append_completes_it(
    many: Path, parts: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """H5py then reads all."""
    monkeypatch.setattr("swsearch.db.editing.differences", lambda *_: ())  # h5py opens all of them here
    before, seen, ended = many.read_bytes(), list[bool](), True
    old, last = records_of(parts[:11]), records_of(parts[12:13])
    new = old + records_of(parts[11:12])
    while ended:
        many.write_bytes(before)
        with monkeypatch.context() as patch:
            end = Failing(patch, ["pwrite", "ftruncate", "fsync"], len(seen) + 1, SystemExit(), is_last=True)
            with suppress(SystemExit):
                append_database(many, parts[11])
            ended = end.left <= 0
        found = entries(many)
        assert found in (old, new)
        if found == new and not any(seen):
            with pytest.warns(
                SwsearchWarning, match="an append was ended before it had changed HDF5's metadata; the"
            ):
                assert verify_database(many)["subjects"] == len(new)
        seen.append(found == new)
        append_database(many, parts[12])
        assert len({name.split("/")[0] for name in arrays(many)}) == 12 + seen[-1]
        assert entries(many) == found + last
    assert seen.count(False) > 30 and seen.count(True) > 5 and seen == sorted(seen)
    verify_database(many)


FULL = (OSError(errno.ENOSPC, "No space left on device"), "No space left on device; free space there")
LARGE = (OSError(errno.EFBIG, "File too large"), r"File too large; raise the limit on file sizes \(ulimit -f\)")


@pytest.mark.parametrize(("error", "words"), [FULL, LARGE, (KeyboardInterrupt(), None)])
@pytest.mark.parametrize(("call", "number"), [("pwrite", 1), ("pwrite", 9), ("fsync", 1)])
def test_what_fails_leaves_what_was_there(
    tmp_path: Path, parts: list[Path], call: str, number: int, error: BaseException, words: str | None
) -> None:
    path = tmp_path / "out.h5"
    build_database(parts[:4], path)
    before = files(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        Failing(patch, [call], number, error)
        with pytest.raises(OutputError if words else KeyboardInterrupt, match=words):
            append_database(path, parts[4])
    assert files(tmp_path) == before


def refuse(*_: Any) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


@pytest.mark.parametrize("form", ["out.h5", "out.json", "by a program that heeds no locks"])
def test_without_locks_the_later_of_two_appends_at_once_notices_the_other_and_fails(
    tmp_path: Path, parts: list[Path], form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / ("out.json" if form == "out.json" else "out.h5")
    build_database(parts[0], path, volume_size=1 << 20 if form == "out.json" else None)
    if form.startswith("by"):
        monkeypatch.setattr("swsearch.db.editing.lock_for_change", lambda path: nullcontext(True))
    else:
        monkeypatch.setattr(fcntl, "flock", refuse)
    append_database(path, parts[1])
    pack = container.pack_piece

    def overtaken(*given: Any) -> Any:
        monkeypatch.setattr(container, "pack_piece", pack)
        append_database(path, parts[2])
        return pack(*given)

    monkeypatch.setattr(container, "pack_piece", overtaken)
    with pytest.raises(OutputError, match="changed"):
        append_database(path, parts[3])
    assert held(path) == records_of(parts[:3])
    append_database(path, parts[3])
    assert held(path) == records_of(parts[:4])
    assert not [name for name in names(tmp_path) if name.startswith(".")]
