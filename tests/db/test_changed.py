"""A database that is written to while it is in use: what was read stays right, and what is read next is noticed."""

from __future__ import annotations

import fcntl
import mmap
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.databases import names, written
from support.db_helpers import LETTERS
from swsearch import output_files
from swsearch.db import Database, append_database, build_database
from swsearch.errors import DatabaseError, OutputError, SwsearchError, SwsearchWarning

N = 130


def fasta(path: Path, seed: int) -> Path:
    """Write records whose lengths and names do not depend on the seed."""
    pick = random.Random(seed)
    headers = [f"{number:04}{''.join(pick.choices('abcdef', k=8))}" for number in range(N)]
    letters = ["".join(pick.choices(LETTERS[:20], k=40 + number)) for number in range(N)]
    letters = [each.lower() if number % 3 else each for number, each in enumerate(letters)]
    return written(path, [*zip(headers, letters, strict=True)])


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Make two databases of the same size and shapes: only residues and names differ."""
    folder = tmp_path_factory.mktemp("two")
    for name, seed in (("one", 1), ("two", 2)):
        shutil.copy(fasta(folder / f"{name}.fasta", seed), folder / "same.fasta")
        build_database(folder / "same.fasta", folder / f"{name}.h5", mask="lower")
    one, other = folder / "one.h5", folder / "two.h5"
    assert one.stat().st_size == other.stat().st_size and one.read_bytes() != other.read_bytes()
    return one, other


def unseen(target: Path, change: Callable[[], object]) -> None:
    """Set the times back, as cp -p does with a file of the same age; some file systems have coarse times."""
    status = target.stat()
    change()
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def map_over(target: Path, other: Path) -> None:
    """Write through memory."""
    with target.open("r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        view[:] = other.read_bytes()


WRITERS: dict[str, Callable[[Path, Path], object]] = {
    "copied": lambda target, other: shutil.copyfile(other, target),
    "copied unseen": lambda target, other: unseen(target, lambda: shutil.copyfile(other, target)),
    "mapped unseen": lambda target, other: unseen(target, lambda: map_over(target, other)),
    "truncated": lambda target, other: os.truncate(target, other.stat().st_size // 3),
}

READS: dict[str, Callable[[Database], object]] = {
    "codes": lambda database: [database.codes(place).tobytes() for place in range(N)],
    "header": lambda database: [database.header(place) for place in range(N)],
    "find": lambda database: database.find("nothing"),
    "chunks": lambda database: list(database.chunks(1 << 20)),
    "masked": lambda database: [database.masked_runs(place, "lower") for place in range(N)],
    "sources": lambda database: database.sources(),
    "codes_of": lambda database: [each.tobytes() for each in database.codes_of(range(N))],
    "headers_of": lambda database: [each.tobytes() for each in database.headers_of(range(N))],
    "masked_runs_of": lambda database: [each.tobytes() for each in database.masked_runs_of(range(N), "lower")],
}


@pytest.fixture
def opened(two: tuple[Path, Path], tmp_path: Path) -> Iterator[Database]:
    shutil.copyfile(two[0], tmp_path / "used.h5")
    with Database.open(tmp_path / "used.h5") as database:
        yield database


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("before", ["nothing", "chunks", "all"])
def test_what_is_read_is_as_it_was_or_said_to_be_changed(
    two: tuple[Path, Path], opened: Database, write: str, before: str
) -> None:
    with Database.open(two[0]) as sound:
        expected = {name: READS[name](sound) for name in ("masked", "masked_runs_of")}  # the same in both
    if before != "nothing":
        READS["chunks"](opened)
    if before == "all":
        assert all(read(opened) is not None for read in READS.values())
    WRITERS[write](Path(opened.name), two[1])
    if write != "truncated":
        assert {name: READS[name](opened) for name in expected} == expected
    for name in ("codes", "header", "chunks", "codes_of", "headers_of", *(("find",) if before != "all" else ())):
        with pytest.raises(DatabaseError, match="was changed while it was in use") as caught:
            READS[name](opened)
        assert caught.value.exit_code == 2 and str(caught.value).startswith(opened.name)


def test_a_closed_database(two: tuple[Path, Path]) -> None:
    database = Database.open(two[0])
    database.close()
    for read in READS.values():
        with pytest.raises(SwsearchError, match="was closed"):
            read(database)
    database.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Build a database of a single record."""
    build_database(written(tmp_path / "in.fasta", [("a", "MKVLAAGIVG")]), tmp_path / "db.h5")
    return tmp_path / "db.h5"


def append_again(path: Path) -> int:
    """Append the record once more; return how many there are."""
    return append_database(path, path.with_name("in.fasta"), on_duplicate="keep").n_subjects


def test_a_command_waits_for_another_and_says_so(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_files, "LOCK_SECONDS", 0.2)
    monkeypatch.setattr(output_files, "NOTICE_SECONDS", 0.1)
    with (
        output_files.lock_for_change(path),
        pytest.warns(SwsearchWarning, match=f"^{path}: another command is changing it; waiting up to 0 s$"),
        pytest.raises(OutputError, match=f"^{path}: other commands have been changing it for 0 s; run this again"),
    ):
        append_again(path)
    append_again(path)
    with output_files.lock_for_change(path), pytest.warns(SwsearchWarning, match="another command is changing it"):
        build_database(tmp_path / "in.fasta", path)  # an hour's work is not thrown away
    with Database.open(path) as database:
        assert len(database) == 1
    assert names(tmp_path) == ["db.h5", "in.fasta"]


def test_a_lock_that_is_a_link_or_a_pipe_is_not_followed(path: Path, tmp_path: Path) -> None:
    lock = tmp_path / ".db.h5.swsearch-lock"
    lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match=f"^{path}: cannot be written"):
        append_again(path)
    assert not (tmp_path / "elsewhere").exists()
    lock.unlink()
    os.mkfifo(lock)
    assert append_again(path) == 2


def test_a_script_may_hold_a_lock_on_the_database(path: Path) -> None:
    with path.open("rb") as held:  # as flock(1) does for the command that it runs
        fcntl.flock(held, fcntl.LOCK_EX)
        assert append_again(path) == 2


def test_the_lock_of_a_command_that_was_killed_is_nobodys(path: Path, tmp_path: Path) -> None:
    killed = "import os, sys; from swsearch.output_files import lock_for_change; from pathlib import Path\n"
    killed += "with lock_for_change(Path(sys.argv[1])): os._exit(9)"
    for name in ("db.h5", "gone.h5"):
        subprocess.run([sys.executable, "-c", killed, tmp_path / name], check=False)
    append_again(path)
    assert names(tmp_path) == ["db.h5", "in.fasta"]


@pytest.mark.parametrize(("interrupted", "code"), [(1, 130), (2, 130), (3, 0)])
def test_an_interrupted_command_leaves_no_lock(path: Path, tmp_path: Path, interrupted: int, code: int) -> None:
    command = f"""
import os, sys
from swsearch.cli.main import main

opened, calls = os.open, 0

def interrupt(path, *rest, **named):
    global calls
    calls += str(path).endswith(".db.h5.swsearch-lock")
    if calls == {interrupted}:  # the lock is taken, then removed
        calls += 1
        opened(path, *rest, **named)
        raise KeyboardInterrupt
    return opened(path, *rest, **named)

os.open = interrupt
sys.argv[1:] = ["db", "append", "db.h5", "in.fasta", "--on-duplicate", "keep", "-q"]
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, "")
    assert names(tmp_path) == ["db.h5", "in.fasta"]
