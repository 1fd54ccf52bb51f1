"""Signals at any moment of what writes files: the old file, or the new one, and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import swsearch
import swsearch.db
from faults.data import fasta, protein, relative, succeed
from faults.judging import Kind, Verdict, Wrong, check_left, refused, succeeded, tail
from faults.running import Done, Process, command, started
from swsearch.db import Database, verify_database
from swsearch.errors import SwsearchError

N_RECORDS = 2_000
ENDED = {signal.SIGTERM: (143, -signal.SIGTERM), signal.SIGINT: (130, -signal.SIGINT)}
"""The code of a command that cleaned up, and of one that had not begun."""

OURS = [f'File "{Path(package.__file__ or "").parent}' for package in (swsearch, swsearch.db)]
"""How lines of a traceback begin that name a module of ours."""

QUIET = ("-q", "--on-duplicate", "keep")
VOLUMES = ("--volume-size", "1M", "-q")


class Killed(NamedTuple):
    """A command that is killed."""

    words: tuple[str, ...]
    files: tuple[str, ...]
    """Output files; for a manifest the volumes too."""
    records: int = N_RECORDS + 200
    """Of the database that it makes."""
    in_place: bool = False
    """Whether it changes a database that is there."""


COMMANDS = {
    "build": Killed(("db", "build", "subjects.fasta", "-o", "out.h5", "-q"), ("out.h5",)),
    "build volumes": Killed(("db", "build", "subjects.fasta", "-o", "out.json", *VOLUMES), ("out.json",)),
    "append": Killed(("db", "append", "out.h5", "subjects.fasta", *QUIET), ("out.h5",), N_RECORDS + 400, True),
    "append a volume": Killed(
        ("db", "append", "out.json", "subjects.fasta", *QUIET), ("out.json",), N_RECORDS + 400, True
    ),
    "remove": Killed(("db", "remove", "out.h5", "--ids", "ids.txt", "-q"), ("out.h5",), 100, True),
    "remove from volumes": Killed(("db", "remove", "out.json", "--ids", "ids.txt", "-q"), ("out.json",), 100, True),
    "merge": Killed(("db", "merge", "base.h5", "all.h5", "-o", "out.h5", *QUIET), ("out.h5",), N_RECORDS + 400),
    "split": Killed(("db", "split", "all.h5", "-o", "out.json", *VOLUMES), ("out.json",)),
    "search": Killed(
        ("search", "queries.fasta", "base.h5", "-o", "a.tsv", "-o", "b.html", "-o", "c.xml", "--outfmt", "6",
         "--outfmt", "html", "--outfmt", "5", "--engine", "cpu", "-q"),
        ("a.tsv", "b.html", "c.xml"),
    ),
    "align": Killed(
        ("align", "queries.fasta", "some.fasta", "-o", "a.txt", "--engine", "cpu", "-q"), ("a.txt",)
    ),
}  # fmt: skip
"""Commands to kill, by name."""


class Kills(Kind):
    """No half file has a final name, signals that can be caught leave nothing, and the next run cleans up."""

    name = "kills"
    what = (
        "SIGKILL, SIGTERM and SIGINT at any moment of db build, append and remove, of files and of volumes, db merge "
        "and split, search with three outputs, and align"
    )
    counts = (1, 25, 1_500)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        generator = random.Random(5)
        queries = [(f"q{n}", protein(generator, 300)) for n in range(4)]
        records = [(f"s{n}", protein(generator, generator.randint(50, 400))) for n in range(N_RECORDS)]
        records += [(f"r{n}", relative(generator, queries[n % 4][1], 0.4)) for n in range(200)]
        (folder / "queries.fasta").write_text(fasta(queries))
        (folder / "subjects.fasta").write_text(fasta(records))
        (folder / "some.fasta").write_text(fasta(records[-200:]))
        succeed(command("db", "build", "some.fasta", "-o", "base.h5", cwd=folder))
        succeed(command("db", "build", "subjects.fasta", "-o", "all.h5", cwd=folder))
        (folder / "volumes").mkdir()
        succeed(command("db", "split", "base.h5", "-o", "volumes/out.json", "--volume-size", "120K", cwd=folder))
        (folder / "ids.txt").write_text("".join(f"r{n}\n" for n in range(100)))
        self.inputs = ["queries.fasta", "subjects.fasta", "some.fasta", "base.h5", "all.h5", "ids.txt"]
        self.seconds: dict[tuple[str, bool], float] = {}
        self.right: dict[str, bytes] = {}

    def _takes(self, name: str, fresh: bool) -> float:
        """Measure how long a command takes, once, in a fresh process or a copy of this one; keep what it writes."""
        if (name, fresh) not in self.seconds:
            words, files, _, in_place = COMMANDS[name]
            with tempfile.TemporaryDirectory(dir=self.folder) as place:
                folder = Path(place)
                self._link(folder, files if in_place else ())
                process = Process(words, folder) if fresh else started(*words, cwd=folder)
                self.seconds[name, fresh] = succeed(process.end(60)).seconds
                for each in files:
                    if not each.endswith((".h5", ".json", ".html")):  # they hold the time
                        self.right[each] = (folder / each).read_bytes()
        return self.seconds[name, fresh]

    def _link(self, folder: Path, earlier: Sequence[str]) -> None:
        """Put inputs into a folder, and files that are there before."""
        for name in self.inputs:
            (folder / name).symlink_to(self.folder / name)
        for each in earlier:
            if each.endswith(".json"):
                shutil.copytree(self.folder / "volumes", folder, dirs_exist_ok=True)
            else:
                shutil.copy(self.folder / ("base.h5" if each.endswith(".h5") else "some.fasta"), folder / each)

    def judge(self, seed: int, folder: Path) -> Verdict:
        """Kill a command and run it again."""
        generator = self.generator(seed)
        name = generator.choice(list(COMMANDS))
        chosen = COMMANDS[name]
        words, files = chosen.words, chosen.files
        old = chosen.in_place or generator.random() < 0.5
        self._link(folder, files if old else ())
        before = {each: (folder / each).read_bytes() for each in files} if old else {}
        number = generator.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
        fresh = generator.random() < 0.4  # imports take most of the time of a fresh process
        # the machine may be slower now than it was: a little more than the whole time
        takes = self._takes(name, fresh)
        after = generator.random() * takes * 1.05
        process = Process(words, folder) if fresh else started(*words, cwd=folder)
        time.sleep(after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.child, number)
        done = process.end(60)
        try:
            self._check_code(done, number)
            for each in files:
                self._check_file(folder / each, before.get(each), chosen, number == signal.SIGKILL)
            left = {each.name for each in folder.iterdir()} - self._expected(folder, files)
            if number != signal.SIGKILL and left:
                raise Wrong(f"left {', '.join(sorted(left))}")
            if f".{files[0]}.swsearch-volumes" not in left and any(not each.startswith(".") for each in left):
                raise Wrong(f"left {', '.join(sorted(left))}, which the next run would not know")
            again = number == signal.SIGKILL or generator.random() < 0.3
            if again and (not chosen.in_place or self._is_old(folder / files[0])):
                following = command(*words, cwd=folder, limit=60)
                if following.code:
                    raise Wrong(f"the next run: exit {following.code}: {tail(following.err)}")
                for each in files:
                    self._check_file(folder / each, None, chosen)
                check_left(folder, *self._expected(folder, files))
        except Wrong as wrong:
            where = f"{name}, {number.name} after {after:.3f} of {takes:.3f} s"
            raise Wrong(f"{where}{', a fresh process' if fresh else ''}: {wrong}") from None
        return succeeded() if done.code == 0 else refused()

    def _is_old(self, path: Path) -> bool:
        with Database.open(path) as database:
            return len(database) == 200

    def _expected(self, folder: Path, files: Sequence[str]) -> set[str]:
        """Return what may be in a folder: inputs, outputs, and the volumes of these."""
        manifests = [folder / each for each in files if each.endswith(".json") and (folder / each).exists()]
        volumes = [each["file"] for path in manifests for each in json.loads(path.read_text())["segments"]]
        return {*self.inputs, *volumes, *(each for each in files if (folder / each).exists())}

    def _check_code(self, done: Done, number: signal.Signals) -> None:
        if done.late:
            raise Wrong("still ran after a minute")
        # before our first line it is the interpreter that ends, with 1 and a traceback if a module of its own is read
        ours = any(line in done.err for line in OURS)
        if "Traceback" in done.err and ours:
            raise Wrong(f"traceback: {tail(done.err)}")
        early = number == signal.SIGINT and done.code == 1 and "Traceback" in done.err
        if done.code not in (0, *ENDED.get(number, (-number,))) and not early:
            raise Wrong(f"exit {done.code}: {tail(done.err)}")

    def _check_file(self, path: Path, before: bytes | None, chosen: Killed, is_killed: bool = False) -> None:
        if not path.exists():
            if before is not None:
                raise Wrong(f"{path.name} is gone")
            return
        found = path.read_bytes()
        if found == self.right.get(path.name) or (found == before and path.suffix != ".json"):
            return
        if path.suffix == ".html" and found.rstrip().endswith(b"</html>"):
            return
        if path.suffix not in (".h5", ".json"):
            raise Wrong(f"{path.name} is neither the old file nor the whole new one")
        try:
            verify_database(path)
            with Database.open(path) as database:
                number = len(database)
        except SwsearchError as error:
            raise Wrong(f"{path.name}: {error}") from None
        # a killed append leaves bytes after the end of the database, which the next one writes over
        if number != chosen.records and (before is None or number != 200 or (found != before and not is_killed)):
            raise Wrong(f"{path.name} has {number} records")
