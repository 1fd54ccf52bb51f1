"""Several at once on one database file: who reads gets one whole version, and nothing that was added is lost."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from faults.data import SEARCH, build_samples, fasta, protein, write_samples
from faults.judging import Kind, Verdict, Wrong, check_end, check_refusal, refused, succeeded
from faults.running import Copy, Done, started
from swsearch.db import Database, verify_database

READING: dict[str, list[object]] = {
    "search": ["search", "queries.fasta", "db.h5", "--statistics", "none", "--max-hits", 3, *SEARCH],
    "fetch": ["db", "fetch", "db.h5", "s1_3", "s1_65"],
    "verify": ["db", "verify", "db.h5", "-q"],
}
"""Commands whose output is the same before and after an append: what is added resembles no query."""

N_ADDED = 4


class Users(Kind):
    """Readers see the old database or the new one; appends that succeed are all there."""

    name = "users"
    what = "readers, appenders and a build that replaces it at the same time on one database"
    counts = (2, 20, 200)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        write_samples(folder)
        build_samples(folder)
        generator = random.Random(8)
        for number in range(N_ADDED):
            added = [(f"added{number}_{n}", protein(generator, 40)) for n in range(5)]
            (folder / f"added{number}.fasta").write_text(fasta(added))
        shutil.copy(folder / "plain.h5", folder / "db.h5")
        self.outputs = {name: {started(*words, cwd=folder).end().out} for name, words in READING.items()}

    def judge(self, seed: int, folder: Path) -> Verdict:
        """Let some read while others write."""
        generator = self.generator(seed)
        for each in ("queries.fasta", "subjects.fasta", *(f"added{n}.fasta" for n in range(N_ADDED))):
            (folder / each).symlink_to(self.folder / each)
        shutil.copy(self.folder / "plain.h5", folder / "db.h5")
        inputs = {each.name for each in folder.iterdir()}
        appending = generator.random() < 0.6
        at_once: list[tuple[str, Copy]] = []
        for number in range(generator.choice([1, 2, N_ADDED])):
            words = ["db", "append", "db.h5", f"added{number}.fasta", "-q", "--on-duplicate", "keep"]
            if not appending:  # the same sequences: readers get the same, whenever they come
                words = ["db", "build", "subjects.fasta", "-o", "db.h5", "-q"]
            at_once.append((f"added{number}" if appending else "build", self._start(generator, folder, words)))
        for _ in range(generator.choice([1, 3, 6])):
            name = generator.choice(list(READING))
            at_once.append((name, self._start(generator, folder, READING[name])))
        done = [(name, copy.end(30)) for name, copy in at_once]
        for name, each in done:
            try:
                self._check(name, each)
            except Wrong as wrong:
                raise Wrong(f"{'appends' if appending else 'builds'} at the same time: {name}: {wrong}") from None
        left = {each.name for each in folder.iterdir()} - inputs
        if left:
            raise Wrong(f"left {', '.join(sorted(left))}")
        verify_database(folder / "db.h5")
        with Database.open(folder / "db.h5") as database:
            found = {source["path"].removesuffix(".fasta") for source in database.sources()}
        wanted = {name for name, each in done if name.startswith("added") and each.code == 0} | {"subjects"}
        if found != wanted:
            raise Wrong(f"the database holds {sorted(found)}, but what succeeded is {sorted(wanted)}")
        return refused() if any(each.code for _, each in done) else succeeded()

    @staticmethod
    def _start(generator: random.Random, folder: Path, words: list[object]) -> Copy:
        pause = generator.choice([0, 0, generator.random() * 0.2])
        before: Callable[[], None] = lambda: time.sleep(pause)  # noqa: E731
        return started(*words, cwd=folder, before=before)

    def _check(self, name: str, done: Done) -> None:
        check_end(done)
        if name in READING:
            if done.code or done.out not in self.outputs[name]:
                raise Wrong(f"exit {done.code}, or other output: {done.err.strip()}")
        elif name == "build" and done.code:
            raise Wrong(f"exit {done.code}: {done.err.strip()}")
        elif done.code:
            check_refusal(done, [6], "db.h5")
