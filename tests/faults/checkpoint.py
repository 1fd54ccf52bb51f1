"""SIGKILL at any moment of a search that keeps what is done: it goes on, loses nothing, writes the same bytes."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import time
from pathlib import Path

from faults.data import fasta, protein, relative, succeed
from faults.judging import Kind, Verdict, Wrong, check_end, check_left, succeeded, tail
from faults.running import Copy, Done, command, started

N_QUERIES, N_RECORDS = 24, 150
GROUP_ROWS = 300
"""Query residues of a group, so that there are a dozen of them in a search of less than a second."""

MOST_KILLS = 4

N_OTHERS = 2
"""Files of a checkpoint that are no groups."""

LONGEST_WAIT = 30.0
"""Seconds that groups are waited for; fewer may come."""

OPTIONS = ["--engine", "cpu", "--threads", "2", "--progress", "none", "--checkpoint", "kept"]
SEARCHES: dict[str, tuple[list[str], list[str]]] = {
    "table": (["-o", "out.tsv"], ["out.tsv"]),
    "stdout": (["--outfmt", "jsonl"], []),
    "several": (["-o", "a.jsonl", "-o", "b.xml", "--statistics", "published"], ["a.jsonl", "b.xml"]),
    "global": (["-o", "out.tsv", "--mode", "global", "--max-hits", "5"], ["out.tsv"]),
    "filtered": (["-o", "out.tsv", "--min-identity", "20", "--max-hits", "3"], ["out.tsv"]),
}
"""Options of the searches, and the files that they write."""


def small_groups() -> None:
    """Let the searches of this process cut their queries into small groups."""
    from swsearch.pipeline import search_job as job

    assert hasattr(job, "GROUP_ROWS"), "the size of groups stands elsewhere"
    job.GROUP_ROWS = GROUP_ROWS


class Checkpoints(Kind):
    """However often and whenever a search is killed, what it kept is used, and its output is the right one."""

    name = "checkpoint"
    what = "SIGKILL at up to four moments of a search with --checkpoint, which is started again until it ends"
    counts = (1, 20, 100)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        generator = random.Random(9)
        queries = [(f"q{n}", protein(generator, generator.randint(20, 300))) for n in range(N_QUERIES)]
        queries.insert(7, ("empty", ""))
        records = [(f"s{n}", protein(generator, generator.randint(50, 300))) for n in range(N_RECORDS)]
        mutants = (queries[n % N_QUERIES][1] or "MKV" for n in range(N_RECORDS // 3))
        records += [(f"r{n}", relative(generator, letters, 0.5)) for n, letters in enumerate(mutants)]
        (folder / "queries.fasta").write_text(fasta(queries))
        (folder / "subjects.fasta").write_text(fasta(records))
        succeed(command("db", "build", "subjects.fasta", "-o", "db.h5", "-q", cwd=folder))
        self.right: dict[str, tuple[float, list[bytes], list[str]]] = {}

    def _undisturbed(self, name: str, folder: Path) -> tuple[float, list[bytes], list[str]]:
        """Run a search to its end, once; return how long it took, what it wrote, and what was kept."""
        if name not in self.right:
            place = folder / "undisturbed"
            place.mkdir()
            self._link(place)
            done = succeed(self._start(name, place).end(60))
            kept = sorted(each.name for each in (place / "kept").iterdir())
            if len(kept) < 10:
                raise RuntimeError(f"the search has {len(kept)} groups, too few to be killed between them")
            self.right[name] = done.seconds, self._written(name, place, done), kept
        return self.right[name]

    def _link(self, folder: Path) -> None:
        for each in ("queries.fasta", "db.h5"):
            (folder / each).symlink_to(self.folder / each)

    def _start(self, name: str, folder: Path) -> Copy:
        words = ["search", "queries.fasta", "db.h5", *OPTIONS, *SEARCHES[name][0]]
        return started(*words, cwd=folder, before=small_groups)

    @staticmethod
    def _written(name: str, folder: Path, done: Done) -> list[bytes]:
        return [done.out, *((folder / each).read_bytes() for each in SEARCHES[name][1])]

    def judge(self, seed: int, folder: Path) -> Verdict:
        """Kill a search some times, let it come to its end, and compare."""
        generator = self.generator(seed)
        name = generator.choice(list(SEARCHES))
        takes, written, files = self._undisturbed(name, folder)
        place = folder / "killed"
        place.mkdir()
        self._link(place)
        moments: list[str] = []
        try:
            for _ in range(generator.randint(1, MOST_KILLS)):
                # the machine may be faster or slower now than it was: half of the moments follow what is kept
                groups = generator.randint(1, len(files) - N_OTHERS - 1) if generator.random() < 0.5 else 0
                after = generator.random() * (takes / len(files) if groups else takes)
                moments.append(f"{after:.3f} s" + (f" from group {groups} on" if groups else ""))
                done = self._killed(name, place, groups, after)
                if done.code == 0:
                    break
            before = self._queries(place)
            done = self._start(name, place).end(60)
            self._check_end(name, place, done, before)
            if self._written(name, place, done) != written:
                raise Wrong("what it wrote is not what an undisturbed search writes")
            check_left(place / "kept", *files)
            check_left(place, "queries.fasta", "db.h5", "kept", *SEARCHES[name][1])
        except Wrong as wrong:
            raise Wrong(f"{name}, killed after {', '.join(moments)} (it takes {takes:.3f} s): {wrong}") from None
        return succeeded()

    def _killed(self, name: str, place: Path, groups: int, after: float) -> Done:
        """Run a search and kill it so many seconds after so many groups are kept; what was kept must stay."""
        before = self._queries(place)
        process = self._start(name, place)
        until = time.monotonic() + LONGEST_WAIT
        while len(list((place / "kept").glob("queries-*"))) < groups and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.child, signal.SIGKILL)
        done = process.end(60)
        if done.code not in (0, -signal.SIGKILL):
            raise Wrong(f"exit {done.code}: {tail(done.err)}")
        if "damaged" in done.err:
            raise Wrong(f"it could not read what was kept: {tail(done.err)}")
        if not before <= self._queries(place):
            raise Wrong("a group that was kept is gone")
        for each, right in zip(SEARCHES[name][1], self.right[name][1][1:], strict=True):
            path = place / each
            if path.exists() and path.read_bytes() != right:
                raise Wrong(f"{each} has its name and is not complete")
        return done

    def _check_end(self, name: str, place: Path, done: Done, before: set[int]) -> None:
        check_end(done)
        if done.code:
            raise Wrong(f"the last run: exit {done.code}: {tail(done.err)}")
        if "damaged" in done.err:
            raise Wrong(f"it could not read what was kept: {tail(done.err)}")
        said = re.search(r"kept: (\d+) of \d+ queries are done", done.err)
        if int(said[1] if said else 0) != len(before):
            raise Wrong(f"{len(before)} queries were kept, and it says: {tail(done.err)}")

    @staticmethod
    def _queries(place: Path) -> set[int]:
        """Return the numbers of the queries that are kept, as the names of files have them."""
        found: set[int] = set()
        for path in (place / "kept").glob("queries-*"):
            first, last = path.name.split("-")[1:]
            found |= set(range(int(first), int(last) + 1))
        return found
