"""SIGKILL at any moment of a search that keeps what is done: it goes on, loses nothing, writes the same bytes."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import time
from pathlib import Path

from Bio.Data.CodonTable import unambiguous_dna_by_id

from faults.data import fasta, protein, relative, succeed
from faults.judging import Kind, Verdict, Wrong, check_end, check_left, succeeded, tail
from faults.running import Copy, Done, command, started

N_QUERIES, N_RECORDS = 24, 150
GROUP_RESIDUES = 300
"""Query residues of a group, so that there are a dozen of them in a search of less than a second."""

CODONS = {letter: codon for codon, letter in unambiguous_dna_by_id[1].forward_table.items()}

MOST_KILLS = 4

LONGEST_WAIT = 30.0
"""Seconds that queries are waited for; fewer may come."""

OPTIONS = ["--engine", "cpu", "--threads", "2", "--progress", "none", "--checkpoint", "kept"]
SEARCHES: dict[str, tuple[list[str], list[str]]] = {
    "table": (["-o", "out.tsv"], ["out.tsv"]),
    "stdout": (["--outfmt", "jsonl"], []),
    "several": (["-o", "a.jsonl", "-o", "b.xml", "--statistics", "published"], ["a.jsonl", "b.xml"]),
    "global": (["-o", "out.tsv", "--mode", "global", "--max-hits", "5"], ["out.tsv"]),
    "filtered": (["-o", "out.tsv", "--min-identity", "20", "--max-hits", "3"], ["out.tsv"]),
    "iterated": (
        ["-o", "out.tsv", "--save-profile", "next.jsonl", "--iterations", "3", "--evalue", "1"],
        ["out.tsv", "next.jsonl"],
    ),
    "genome": (["-o", "out.tsv", "--min-identity", "20"], ["out.tsv"]),
    "translated": (["-o", "out.tsv", "--translate", "--min-identity", "20"], ["out.tsv"]),
}
"""Options of the searches, and the files that they write."""

INPUTS = {"genome": ("queries.fasta", "dna.h5"), "translated": ("dna.fasta", "db.h5")}
"""Queries and databases of those that have other ones than the others."""

USUAL = ("queries.fasta", "db.h5")

NAMES = re.compile(r"queries-\d{9}|lock|manifest\.json")
"""Files of a checkpoint."""


def small_groups() -> None:
    """Let the searches of this process cut their queries into small groups."""
    from swsearch.pipeline import batch, checkpoint

    assert hasattr(batch, "GROUP_RESIDUES"), "the size of groups stands elsewhere"
    batch.GROUP_RESIDUES = batch.SMALL_GROUP_RESIDUES = GROUP_RESIDUES
    batch.FIRST_GROUP_RESIDUES = (GROUP_RESIDUES, GROUP_RESIDUES)
    assert hasattr(checkpoint, "SAVE_SECONDS"), "the time between files stands elsewhere"
    checkpoint.SAVE_SECONDS = 0


class Checkpoints(Kind):
    """However often and whenever a search is killed, what it kept is used, and its output is the right one."""

    name = "checkpoint"
    what = "SIGKILL at up to four moments of a search with --checkpoint, which is started again until it ends"
    counts = (1, 8, 100)

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
        genes = [(name, "".join(CODONS.get(letter, "NNN") for letter in letters)) for name, letters in queries]
        (folder / "dna.fasta").write_text(fasta(genes))
        succeed(command("db", "build", "dna.fasta", "-o", "dna.h5", "--translate", "-q", cwd=folder))
        self.right: dict[str, tuple[float, list[bytes], int]] = {}

    def _undisturbed(self, name: str, folder: Path) -> tuple[float, list[bytes], int]:
        """Run a search to its end, once; return how long it took, what it wrote, and how many files it kept."""
        if name not in self.right:
            place = folder / "undisturbed"
            place.mkdir()
            self._link(place)
            done = succeed(self._start(name, place).end(60))
            kept = len(list((place / "kept").glob("queries-*")))
            if kept < 8:
                raise RuntimeError(f"the search has {kept} groups, too few to be killed between them")
            self.right[name] = done.seconds, self._written(name, place, done), kept
        return self.right[name]

    def _link(self, folder: Path) -> None:
        for each in {*USUAL, *(file for files in INPUTS.values() for file in files)}:
            (folder / each).symlink_to(self.folder / each)

    def _start(self, name: str, folder: Path) -> Copy:
        words = ["search", *INPUTS.get(name, USUAL), *OPTIONS, *SEARCHES[name][0]]
        return started(*words, cwd=folder, before=small_groups)

    @staticmethod
    def _written(name: str, folder: Path, done: Done) -> list[bytes]:
        return [done.out, *((folder / each).read_bytes() for each in SEARCHES[name][1])]

    def judge(self, seed: int, folder: Path) -> Verdict:
        """Kill a search some times, let it come to its end, and compare."""
        generator = self.generator(seed)
        name = generator.choice(list(SEARCHES))
        takes, written, n_files = self._undisturbed(name, folder)
        place = folder / "killed"
        place.mkdir()
        self._link(place)
        moments: list[str] = []
        try:
            for _ in range(generator.randint(1, MOST_KILLS)):
                # the machine may be faster or slower now than it was: half of the moments follow what is kept
                files = generator.randint(1, n_files - 1) if generator.random() < 0.5 else 0
                after = generator.random() * (takes / n_files if files else takes)
                moments.append(f"{after:.3f} s" + (f" from file {files} on" if files else ""))
                done = self._killed(name, place, files, after)
                if done.code == 0:
                    break
            before = self._queries(place)
            done = self._start(name, place).end(60)
            self._check_end(name, place, done, before)
            if self._written(name, place, done) != written:
                raise Wrong("what it wrote is not what an undisturbed search writes")
            others = [each.name for each in (place / "kept").iterdir() if not NAMES.fullmatch(each.name)]
            if others:
                raise Wrong(f"left {', '.join(sorted(others))} among what was kept")
            check_left(
                place, *(each.name for each in place.iterdir() if each.is_symlink()), "kept", *SEARCHES[name][1]
            )
        except Wrong as wrong:
            raise Wrong(f"{name}, killed after {', '.join(moments)} (it takes {takes:.3f} s): {wrong}") from None
        return succeeded()

    def _killed(self, name: str, place: Path, files: int, after: float) -> Done:
        """Run a search and kill it so many seconds after so many files are there; what was kept must stay."""
        before = self._queries(place)
        process = self._start(name, place)
        until = time.monotonic() + LONGEST_WAIT
        while len(list((place / "kept").glob("queries-*"))) < files and time.monotonic() < until:
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
        said = re.search(r"kept: (\d+) of \d+ queries (?:are done|go on)", done.err)
        n_finished = len(before) // (6 if name == "translated" else 1)
        if int(said[1] if said else 0) != n_finished:
            raise Wrong(f"{n_finished} queries were kept, and it says: {tail(done.err)}")

    @staticmethod
    def _queries(place: Path) -> set[int]:
        """Return the numbers of the queries that are kept, as the second lines of files have them."""
        found: set[int] = set()
        for path in (place / "kept").glob("queries-*"):
            told = path.read_bytes().split(b"\n")[1].split()[1].decode()
            for first, last in (part.split("-") for part in told.split(",")):
                found |= set(range(int(first), int(last) + 1))
        return found
