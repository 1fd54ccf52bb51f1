"""Several at once on one database file: readers get one whole version, and no change is lost."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from faults.data import SEARCH, build_samples, fasta, protein, write_samples
from faults.judging import Kind, Verdict, Wrong, check_end, check_success, succeeded, told_of
from faults.running import Copy, Done, started
from swsearch.db import Database, append_database, build_database, verify_database

READING: dict[str, list[object]] = {
    "search": ["search", "queries.fasta", "db.h5", "--statistics", "none", "--max-hits", 3, *SEARCH],
    "fetch": ["db", "fetch", "db.h5", "s1_3", "s1_65"],
    "verify": ["db", "verify", "db.h5", "-q"],
}
"""Commands whose output is the same before and after an append: what is added resembles no query."""

N_ADDED = 4

CHANGING: dict[str, list[object]] = {
    "remove": ["db", "remove", "db.h5", "removed", "-q"],
    "merge": ["db", "merge", "db.h5", "added0.h5", "-o", "merged.h5", "--on-duplicate", "skip", "-q"],
}
"""Commands beside appends; what is removed resembles no query."""


class Users(Kind):
    """Readers see the old database or the new one; all commands that change it succeed, and are all there."""

    name = "users"
    what = "readers, appends, removals, merges and a build that replaces it at the same time on one database"
    counts = (1, 20, 200)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        write_samples(folder)
        build_samples(folder)
        generator = random.Random(8)
        for number in range(N_ADDED):
            added = [(f"added{number}_{n}", protein(generator, 40)) for n in range(5)]
            (folder / f"added{number}.fasta").write_text(fasta(added))
            build_database(folder / f"added{number}.fasta", folder / f"added{number}.h5")
        (folder / "removed.fasta").write_text(fasta([("removed", protein(generator, 40))]))
        shutil.copy(folder / "plain.h5", folder / "db.h5")
        append_database(folder / "db.h5", folder / "removed.fasta")
        self.outputs = {name: {started(*words, cwd=folder).end().out} for name, words in READING.items()}

    def judge(self, seed: int, folder: Path) -> Verdict:
        """Let some read while others write."""
        generator = self.generator(seed)
        added = [f"added{n}.{ending}" for n in range(N_ADDED) for ending in ("fasta", "h5")]
        for each in ("queries.fasta", "subjects.fasta", *added):
            (folder / each).symlink_to(self.folder / each)
        shutil.copy(self.folder / "db.h5", folder / "db.h5")
        inputs = {each.name for each in folder.iterdir()}
        appending = generator.random() < 0.6
        at_once: list[tuple[str, Copy]] = []
        for number in range(generator.choice([1, 2, N_ADDED])):
            words = ["db", "append", "db.h5", f"added{number}.fasta", "-q", "--on-duplicate", "keep"]
            if not appending:  # the same sequences: readers get the same, whenever they come
                words = ["db", "build", "subjects.fasta", "-o", "db.h5", "-q"]
            at_once.append((f"added{number}" if appending else "build", self._start(generator, folder, words)))
        if appending:
            for name in generator.sample(list(CHANGING), generator.randrange(len(CHANGING) + 1)):
                at_once.append((name, self._start(generator, folder, CHANGING[name])))
        for _ in range(generator.choice([1, 3, 6])):
            name = generator.choice(list(READING))
            at_once.append((name, self._start(generator, folder, READING[name])))
        done = [(name, copy.end(30)) for name, copy in at_once]
        for name, each in done:
            with told_of(f"{'appends' if appending else 'builds'} at the same time: {name}"):
                self._check(name, each)
        left = {each.name for each in folder.iterdir()} - inputs - {"merged.h5"}
        if left:
            raise Wrong(f"left {', '.join(sorted(left))}")
        verify_database(folder / "db.h5")
        with Database.open(folder / "db.h5") as database:
            found = {name for name in (f"added{n}" for n in range(N_ADDED)) if f"{name}_0" in database}
            is_removed = "removed" not in database
        names = {name for name, _ in done}
        wanted = {name for name in names if name.startswith("added")}
        if found != wanted or is_removed != bool(names & {"remove", "build"}):
            raise Wrong(f"the database holds {sorted(found)}, but what succeeded is {sorted(names)}")
        return succeeded()

    @staticmethod
    def _start(generator: random.Random, folder: Path, words: list[object]) -> Copy:
        pause = generator.choice([0, 0, generator.random() * 0.2])
        before: Callable[[], None] = lambda: time.sleep(pause)  # noqa: E731
        return started(*words, cwd=folder, before=before)

    def _check(self, name: str, done: Done) -> None:
        check_end(done)
        check_success(done)
        if name in READING and done.out not in self.outputs[name]:
            raise Wrong("other output")
