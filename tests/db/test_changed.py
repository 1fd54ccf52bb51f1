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
from typing import Any

import pytest

import swsearch
from support.db_helpers import LETTERS
from swsearch import output_files
from swsearch.blocks import Chunk
from swsearch.db import Database, append_database, build_database, verify_database
from swsearch.errors import DatabaseError, OutputError, SwsearchError, SwsearchWarning

N = 130


def fasta(path: Path, seed: int) -> Path:
    """Write records whose lengths and names do not depend on the seed."""
    pick = random.Random(seed)
    records = []
    for number in range(N):
        letters, name = "".join(pick.choices(LETTERS[:20], k=40 + number)), "".join(pick.choices("abcdef", k=8))
        records.append(f">{number:04}{name} {name}\n{letters.lower() if number % 3 else letters}\n")
    path.write_text("".join(records))
    return path


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


def copied(target: Path, other: Path) -> None:
    """As cp does."""
    shutil.copyfile(other, target)


def copied_unseen(target: Path, other: Path) -> None:
    """As cp -p does with a file of the same age, or a file system with coarse times."""
    status = target.stat()
    shutil.copyfile(other, target)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def mapped(target: Path, other: Path) -> None:
    """Through memory: some file systems do not touch the times."""
    with target.open("r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        view[:] = other.read_bytes()
    status = target.stat()
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def truncated(target: Path, other: Path) -> None:
    """Cut off."""
    os.truncate(target, other.stat().st_size // 3)


WRITERS: list[Callable[[Path, Path], None]] = [copied, copied_unseen, mapped, truncated]

READS: dict[str, Callable[[Database], object]] = {
    "codes": lambda database: [database.codes(place).tobytes() for place in range(N)],
    "header": lambda database: [database.header(place) for place in range(N)],
    "find": lambda database: database.find("nothing"),
    "chunks": lambda database: list(database.chunks(1 << 20)),
    "masked": lambda database: [database.masked(place, "lower") for place in range(N)],
    "sources": lambda database: database.sources(),
    "codes_of": lambda database: [each.tobytes() for each in database.codes_of(range(N))],
    "headers_of": lambda database: [each.tobytes() for each in database.headers_of(range(N))],
    "masked_of": lambda database: [each.tobytes() for each in database.masked_of(range(N), "lower")],
}


@pytest.fixture
def opened(two: tuple[Path, Path], tmp_path: Path) -> Iterator[Database]:
    shutil.copyfile(two[0], tmp_path / "used.h5")
    with Database.open(tmp_path / "used.h5") as database:
        yield database


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
@pytest.mark.parametrize("before", ["nothing", "chunks", "all"])
def test_noticed(two: tuple[Path, Path], opened: Database, write: Callable[[Path, Path], None], before: str) -> None:
    """Whatever was read before, whatever is read after: the content at the time of opening, or an error."""
    with Database.open(two[0]) as sound:
        expected = {name: READS[name](sound) for name in ("codes", "header", "masked", "masked_of")}
    if before != "nothing":
        READS["chunks"](opened)
    if before == "all":
        assert all(read(opened) is not None for read in READS.values())
    write(Path(opened.name), two[1])
    if write is not truncated:
        for name in ("masked", "masked_of"):
            assert READS[name](opened) == expected[name]  # the same in both
    for name in ("codes", "header", "chunks", "codes_of", "headers_of", *(("find",) if before != "all" else ())):
        with pytest.raises(DatabaseError, match="was changed while it was in use") as caught:
            READS[name](opened)
        assert caught.value.exit_code == 2 and str(caught.value).startswith(opened.name)


def test_a_page_at_a_time(two: tuple[Path, Path], opened: Database) -> None:
    """Not one wrong residue or letter comes out, wherever the writer is."""
    with Database.open(two[0]) as sound:
        expected = [(sound.codes(place).tobytes(), sound.header(place)) for place in range(N)]
    assert [(opened.codes(place).tobytes(), opened.header(place)) for place in range(N)] == expected
    raw = two[1].read_bytes()
    refused = 0
    with Path(opened.name).open("r+b", buffering=0) as file:
        for at in range(0, len(raw), 4096):
            os.pwrite(file.fileno(), raw[at : at + 4096], at)
            for place in range(0, N, 41):
                for part, read in enumerate((lambda place: opened.codes(place).tobytes(), opened.header)):
                    try:
                        assert read(place) == expected[place][part]
                    except DatabaseError:
                        refused += 1
    assert refused


@pytest.mark.parametrize("how", ["renamed", "deleted", "touched", "appended", "moved"])
def test_what_does_no_harm(two: tuple[Path, Path], opened: Database, tmp_path: Path, how: str) -> None:
    path = Path(opened.name)
    if how == "renamed":
        shutil.copyfile(two[1], tmp_path / "new.h5")
        (tmp_path / "new.h5").replace(path)
    elif how == "deleted":
        path.unlink()
    elif how == "touched":
        os.utime(path, (1, 1))
    elif how == "moved":
        path.replace(tmp_path / "elsewhere.h5")
    else:
        append_database(path, two[1].parent / "two.fasta", on_duplicate="keep")
    with Database.open(two[0]) as sound:
        for name in ("codes", "header", "masked", "codes_of", "headers_of", "masked_of"):
            assert READS[name](opened) == READS[name](sound)


def test_a_closed_database(two: tuple[Path, Path]) -> None:
    database = Database.open(two[0])
    database.close()
    for name, read in READS.items():
        with pytest.raises(SwsearchError, match="was closed"):
            read(database)
        assert name in READS
    database.close()


@pytest.mark.parametrize("write", [copied, mapped])
def test_a_search(
    two: tuple[Path, Path], opened: Database, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path, Path], None]
) -> None:
    """Overwritten once all subjects were scored: their alignments and names are not those of the other database."""
    chunks = Database.chunks

    def then_overwritten(database: Database, *given: Any, **options: Any) -> Iterator[Chunk]:
        yield from chunks(database, *given, **options)
        write(Path(opened.name), two[1])

    monkeypatch.setattr(Database, "chunks", then_overwritten)
    with pytest.raises(DatabaseError, match="was changed while it was in use"):
        list(swsearch.search(("q", LETTERS[:20] * 3), opened, engine="reference", statistics="none"))


def test_commands_that_change_a_database_at_once_wait_for_each_other(tmp_path: Path) -> None:
    path = fasta(tmp_path / "in.fasta", 1)
    build_database(path, tmp_path / "db.h5")
    with Database.open(tmp_path / "db.h5") as database:
        n, gone = len(database), [database.identifier(place) for place in (3, 70)]
    for number in range(3):
        (tmp_path / f"{number}.fasta").write_text(f">new{number}\nMKVLAAGIVG\n")
    build_database(tmp_path / "0.fasta", tmp_path / "other.h5")
    commands = [["db", "append", "db.h5", f"{number}.fasta"] for number in range(3)]
    commands += [["db", "remove", "db.h5", identifier] for identifier in gone]
    commands += [["db", "merge", "db.h5", "other.h5", "-o", "both.h5", "--on-duplicate", "skip"]] * 2
    running = [
        subprocess.Popen([sys.executable, "-m", "swsearch", *words, "-q"], cwd=tmp_path, stderr=subprocess.PIPE)
        for words in commands
    ]
    assert [(each.communicate()[1], each.returncode) for each in running] == [(b"", 0)] * len(commands)
    verify_database(tmp_path / "db.h5")
    with Database.open(tmp_path / "db.h5") as database:
        found = {database.identifier(place) for place in range(len(database))}
        assert len(database) == n + 3 - 2
    assert {"new0", "new1", "new2"} <= found and not found & set(gone)
    assert not [each.name for each in tmp_path.iterdir() if each.name.startswith(".")]


def test_a_command_waits_for_another_up_to_a_limit_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.fasta").write_text(">a\nMKVLAAGIVG\n")
    path = tmp_path / "db.h5"
    build_database(tmp_path / "in.fasta", path)
    monkeypatch.setattr(output_files, "LOCK_SECONDS", 0.2)
    monkeypatch.setattr(output_files, "NOTICE_SECONDS", 0.1)
    with (
        output_files.lock_for_change(path),
        pytest.warns(SwsearchWarning, match=f"^{path}: another command is changing it; waiting up to 0 s$"),
        pytest.raises(
            OutputError, match=f"^{path}: other commands have been changing it for 0 s; run this again when"
        ),
    ):
        append_database(path, tmp_path / "in.fasta", on_duplicate="keep")
    append_database(path, tmp_path / "in.fasta", on_duplicate="keep")
    with output_files.lock_for_change(path), pytest.warns(SwsearchWarning, match="another command is changing it"):
        build_database(tmp_path / "in.fasta", path)  # an hour's work is not thrown away
    with Database.open(path) as database:
        assert len(database) == 1
    assert sorted(each.name for each in tmp_path.iterdir()) == ["db.h5", "in.fasta"]


def test_a_lock_that_is_a_link_or_a_pipe_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "in.fasta").write_text(">a\nMKVLAAGIVG\n")
    path = tmp_path / "db.h5"
    build_database(tmp_path / "in.fasta", path)
    lock = tmp_path / ".db.h5.swsearch-lock"
    lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match=f"^{path}: cannot be written"):
        append_database(path, tmp_path / "in.fasta", on_duplicate="keep")
    assert not (tmp_path / "elsewhere").exists()
    lock.unlink()
    os.mkfifo(lock)
    append_database(path, tmp_path / "in.fasta", on_duplicate="keep")
    with Database.open(path) as database:
        assert len(database) == 2


def test_a_script_may_hold_a_lock_on_the_database(tmp_path: Path) -> None:
    (tmp_path / "in.fasta").write_text(">a\nMKVLAAGIVG\n")
    path = tmp_path / "db.h5"
    build_database(tmp_path / "in.fasta", path)
    with path.open("rb") as held:  # as flock(1) does for the command that it runs
        fcntl.flock(held, fcntl.LOCK_EX)
        append_database(path, tmp_path / "in.fasta", on_duplicate="keep")
    with Database.open(path) as database:
        assert len(database) == 2


def test_the_lock_of_a_command_that_was_killed_is_nobodys(tmp_path: Path) -> None:
    (tmp_path / "in.fasta").write_text(">a\nMKVLAAGIVG\n")
    build_database(tmp_path / "in.fasta", tmp_path / "db.h5")
    killed = "import os, sys; from swsearch.output_files import lock_for_change; from pathlib import Path\n"
    killed += "with lock_for_change(Path(sys.argv[1])): os._exit(9)"
    for name in ("db.h5", "gone.h5"):
        subprocess.run([sys.executable, "-c", killed, tmp_path / name], check=False)
    append_database(tmp_path / "db.h5", tmp_path / "in.fasta", on_duplicate="keep")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["db.h5", "in.fasta"]


@pytest.mark.parametrize(("interrupted", "code"), [(1, 130), (2, 130), (3, 0)])
def test_an_interrupted_command_leaves_no_lock(interrupted: int, code: int, tmp_path: Path) -> None:
    (tmp_path / "in.fasta").write_text(">a\nMKVLAAGIVG\n")
    build_database(tmp_path / "in.fasta", tmp_path / "db.h5")
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
    assert sorted(each.name for each in tmp_path.iterdir()) == ["db.h5", "in.fasta"]
