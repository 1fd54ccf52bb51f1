"""Signals at any moment of what writes files: the old file, or the new one, and nothing else."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import tempfile
import time
from pathlib import Path

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

COMMANDS: dict[str, tuple[list[object], list[str]]] = {
    "build": (["db", "build", "subjects.fasta", "-o", "out.h5", "-q"], ["out.h5"]),
    "append": (["db", "append", "out.h5", "subjects.fasta", "-q", "--on-duplicate", "keep"], ["out.h5"]),
    "remove": (["db", "remove", "out.h5", "--ids", "ids.txt", "-q"], ["out.h5"]),
    "merge": (
        ["db", "merge", "base.h5", "all.h5", "-o", "out.h5", "--on-duplicate", "skip", "-q"],
        ["out.h5"],
    ),
    "search": (
        ["search", "queries.fasta", "base.h5", "-o", "a.tsv", "-o", "b.html", "-o", "c.xml", "--outfmt", "6",
         "--outfmt", "html", "--outfmt", "5", "--engine", "cpu", "-q"],
        ["a.tsv", "b.html", "c.xml"],
    ),
    "align": (["align", "queries.fasta", "some.fasta", "-o", "a.txt", "--engine", "cpu", "-q"], ["a.txt"]),
}  # fmt: skip
"""What is run, and the files that it writes."""

IN_PLACE = {"append": N_RECORDS + 400, "remove": 100}
"""What changes a database that is there, and how many records it then has."""


class Kills(Kind):
    """No half file has a final name, signals that can be caught leave nothing, and the next run cleans up."""

    name = "kills"
    what = (
        "SIGKILL, SIGTERM and SIGINT at any moment of db build, append, remove and merge, search with three outputs, "
        "and align"
    )
    counts = (3, 60, 1_500)

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
        (folder / "ids.txt").write_text("".join(f"r{n}\n" for n in range(100)))
        self.inputs = ["queries.fasta", "subjects.fasta", "some.fasta", "base.h5", "all.h5", "ids.txt"]
        self.seconds: dict[tuple[str, bool], float] = {}
        self.right: dict[str, bytes] = {}

    def _takes(self, name: str, fresh: bool) -> float:
        """Measure how long a command takes, once, in a fresh process or a copy of this one; keep what it writes."""
        if (name, fresh) not in self.seconds:
            words, files = COMMANDS[name]
            with tempfile.TemporaryDirectory(dir=self.folder) as place:
                folder = Path(place)
                self._link(folder)
                if name in IN_PLACE:
                    shutil.copy(self.folder / "base.h5", folder / "out.h5")
                process = Process(words, folder) if fresh else started(*words, cwd=folder)
                self.seconds[name, fresh] = succeed(process.end(60)).seconds
                for each in files:
                    if not each.endswith((".h5", ".html")):  # they hold the time
                        self.right[each] = (folder / each).read_bytes()
        return self.seconds[name, fresh]

    def _link(self, folder: Path) -> None:
        for name in self.inputs:
            (folder / name).symlink_to(self.folder / name)

    def judge(self, seed: int, folder: Path) -> Verdict:
        """Kill a command and run it again."""
        generator = self.generator(seed)
        self._link(folder)
        chosen = generator.choice(list(COMMANDS))
        words, files = COMMANDS[chosen]
        old = chosen in IN_PLACE or generator.random() < 0.5
        if old:
            for each in files:
                shutil.copy(self.folder / ("base.h5" if each.endswith(".h5") else "some.fasta"), folder / each)
        before = {each: (folder / each).read_bytes() for each in files} if old else {}
        number = generator.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
        fresh = generator.random() < 0.4  # imports take most of the time of a fresh process
        # the machine may be slower now than it was: a little more than the whole time
        takes = self._takes(chosen, fresh)
        after = generator.random() * takes * 1.05
        process = Process(words, folder) if fresh else started(*words, cwd=folder)
        time.sleep(after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.child, number)
        done = process.end(60)
        try:
            self._check_code(done, number)
            for each in files:
                self._check_file(folder / each, before.get(each), chosen)
            left = {each.name for each in folder.iterdir()} - {*self.inputs, *files}
            if number != signal.SIGKILL and left:
                raise Wrong(f"left {', '.join(sorted(left))}")
            again = number == signal.SIGKILL or generator.random() < 0.3
            if again and (chosen not in IN_PLACE or (folder / "out.h5").read_bytes() == before["out.h5"]):
                following = command(*words, cwd=folder, limit=60)
                if following.code:
                    raise Wrong(f"the next run: exit {following.code}: {tail(following.err)}")
                check_left(folder, *self.inputs, *files)
                for each in files:
                    self._check_file(folder / each, None, chosen)
        except Wrong as wrong:
            where = f"{chosen}, {number.name} after {after:.3f} of {takes:.3f} s"
            raise Wrong(f"{where}{', a fresh process' if fresh else ''}: {wrong}") from None
        return succeeded() if done.code == 0 else refused()

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

    def _check_file(self, path: Path, before: bytes | None, chosen: str) -> None:
        if not path.exists():
            if before is not None:
                raise Wrong(f"{path.name} is gone")
            return
        found = path.read_bytes()
        if found == before or found == self.right.get(path.name):
            return
        if path.suffix == ".html" and found.rstrip().endswith(b"</html>"):
            return
        if path.suffix != ".h5":
            raise Wrong(f"{path.name} is neither the old file nor the whole new one")
        try:
            verify_database(path)
            with Database.open(path) as database:
                number = len(database)
        except SwsearchError as error:
            raise Wrong(f"{path.name}: {error}") from None
        if number != IN_PLACE.get(chosen, N_RECORDS + 200):
            raise Wrong(f"{path.name} has {number} records")
