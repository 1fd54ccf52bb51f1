"""A database file that changes while it is in use: the results of the old one, or a refusal."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import swsearch
from faults.data import LETTERS, QUERIES, build_samples, fasta, records, succeed, write_samples
from faults.judging import Kind, Verdict, Wrong, check_end, check_success, refused, succeeded, told_of
from faults.running import command, copy
from faults.shared import USES, all_uses, found
from swsearch.db import Database
from swsearch.errors import DatabaseError

N_SUBJECTS = 3_300

Change = Callable[[random.Random, Path, Path], None]


def _over(path: Path, data: bytes, at: int = 0) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def replaced(generator: random.Random, path: Path, other: Path) -> None:
    """Put another file in its place, as db build does."""
    shutil.copy(other, path.with_name("new"))
    path.with_name("new").replace(path)


def overwritten(generator: random.Random, path: Path, other: Path) -> None:
    """Write another database over it, as cp does."""
    _over(path, other.read_bytes())
    os.truncate(path, other.stat().st_size)


def partly(generator: random.Random, path: Path, other: Path) -> None:
    """Write a part of another database over it."""
    data = other.read_bytes()
    at = generator.randrange(len(data))
    _over(path, data[at : at + generator.choice([64, 4096])], at)


def quietly(generator: random.Random, path: Path, other: Path) -> None:
    """Write another database over it and set its times back, as cp -p and rsync can."""
    before = path.stat()
    overwritten(generator, path, other)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def truncated(generator: random.Random, path: Path, other: Path) -> None:
    """Cut it off."""
    os.truncate(path, generator.choice([0, 600, generator.randrange(path.stat().st_size)]))


def deleted(generator: random.Random, path: Path, other: Path) -> None:
    """Delete it."""
    path.unlink()


def zeroed(generator: random.Random, path: Path, other: Path) -> None:
    """Fill a part with zeros."""
    at = generator.randrange(path.stat().st_size)
    _over(path, bytes(generator.choice([1, 64, 4096])), at)


def touched(generator: random.Random, path: Path, other: Path) -> None:
    """Change nothing but its times."""
    os.utime(path)


CHANGES: list[Change] = [replaced, overwritten, overwritten, partly, quietly, truncated, deleted, zeroed, touched]


class Changed(Kind):
    """Each use gives what it gave before the change, or raises DatabaseError; the command line would end with 2."""

    name = "changed"
    what = "a database replaced, overwritten, truncated, deleted or touched between and within uses of it"
    counts = (1, 15, 600)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        write_samples(folder)
        # larger than what HDF5 keeps of a file, and than a piece that has a checksum
        (folder / "subjects.fasta").write_text(fasta(records(1, N_SUBJECTS, 700)))
        self.bases = build_samples(folder)
        # another database with every byte at the same place: the same names and lengths, other letters
        rotated = str.maketrans(
            LETTERS + LETTERS.lower(), LETTERS[1:] + LETTERS[0] + (LETTERS[1:] + LETTERS[0]).lower()
        )
        others = [(header, letters.translate(rotated)) for header, letters in records(1, N_SUBJECTS, 700)]
        (folder / "others.fasta").write_text(fasta(others))
        (folder / "longer.fasta").write_text(fasta(records(9, N_SUBJECTS, 750)))
        for name in ("others", "longer"):
            succeed(command("db", "build", f"{name}.fasta", "-o", f"{name}.h5", "-q", cwd=folder))

    def judge(self, seed: int, folder: Path) -> Verdict:
        """Change a database at some time."""
        generator = self.generator(seed)
        base = generator.choice([*self.bases, "plain.h5"])
        shutil.copy(self.folder / base, folder / base)
        change = generator.choice(CHANGES)
        other = self.folder / generator.choice(["others.h5", "others.h5", "longer.h5"])
        within = generator.random() < 0.3
        work = _within if within else _between
        expected = all_uses(self.folder, base)
        done = copy(lambda: work(generator, Path(base), change, other, expected), cwd=folder, limit=60)
        where = f"{base}, {change.__name__} by {other.name}, {'within a search' if within else 'between uses'}"
        with told_of(where):
            check_end(done)
            check_success(done)
        return refused() if b"refused" in done.out else succeeded()


def _between(generator: random.Random, base: Path, change: Change, other: Path, expected: dict[str, Any]) -> None:
    with Database.open(base) as database:
        _use(generator, database, generator.choice([0, 0, 1, 3]), expected)
        change(generator, base, other)
        _use(generator, database, 3, expected)


def _use(generator: random.Random, database: Any, times: int, expected: dict[str, Any]) -> None:
    names = [name for name in USES if name != "info"]  # it tells the size of the file, whichever that is
    for name in generator.choices(names, k=times):
        try:
            got = USES[name](database)
        except DatabaseError as error:
            assert error.exit_code == 2
            print("refused")
            continue
        if got != expected[name]:
            raise Wrong(f"wrong results of {name} and no error")


def _within(generator: random.Random, base: Path, change: Change, other: Path, expected: dict[str, Any]) -> None:
    """Change it between the results of one search, and between a result and its alignments."""
    wanted = expected["search"]
    try:
        with Database.open(base) as database:
            for place, result in enumerate(swsearch.search(QUERIES, database, engine="cpu", threads=1)):
                if place == 0:
                    change(generator, base, other)
                if found([result]) != [wanted[place]]:
                    raise Wrong("wrong results of the search and no error")
    except DatabaseError as error:
        assert error.exit_code == 2
        print("refused")
