"""The whole commands that `cpu.py` times. No report belongs here."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.support.common import command, need, swsearch
from benchmarks.support.peers import GAPS
from benchmarks.support.timing import EXACT, HEURISTIC

TOP = 10
"""Hits with alignments per query, of every program."""


def of_threads(threads: int) -> str:
    """Format a number of threads."""
    return f"{threads} thread{'s' if threads > 1 else ''}"


def search(queries: Path, subjects: Path, threads: int) -> str:
    """Search with swsearch's command, published statistics as the peers have, and return its output."""
    return swsearch(
        "search", queries, subjects, "--max-hits", TOP, "--engine", "cpu", "--threads", threads, "--quiet",
        "--statistics", "published",
    )  # fmt: skip


@dataclass
class Files:
    """What the commands search: FASTA files, and databases that were made of them before."""

    queries: Path
    subjects: Path
    folder: Path

    def prepare(self) -> None:
        """Make every program's database."""
        need("makeblastdb", "blastp", "diamond", "ssearch36", "mmseqs")
        swsearch("db", "build", self.subjects, "-o", self.database, "--quiet")
        command("makeblastdb", "-in", self.subjects, "-dbtype", "prot", "-out", self.folder / "blastp")
        command("diamond", "makedb", "--in", self.subjects, "-d", self.folder / "diamond", "--quiet")
        command("mmseqs", "createdb", self.subjects, self.folder / "mmseqs", "-v", 1)

    @property
    def database(self) -> Path:
        """Database of swsearch."""
        return self.folder / "s.h5"

    def blastp(self, threads: int, *options: object) -> str:
        """Search with blastp."""
        return command(
            "blastp", "-query", self.queries, "-db", self.folder / "blastp", "-matrix", "BLOSUM62", *GAPS,
            "-max_target_seqs", TOP, "-num_threads", threads, "-outfmt", 6, *options,
        )  # fmt: skip

    def diamond(self, threads: int) -> str:
        """Search with diamond's exact mode."""
        return command(
            "diamond", "blastp", "--swipe", "-q", self.queries, "-d", self.folder / "diamond", "-p", threads, "-k",
            TOP, "-e", 10, "--comp-based-stats", 0, "--masking", 0, "--quiet",
        )  # fmt: skip

    def ssearch36(self, threads: int) -> str:
        """Search with ssearch36."""
        return command(
            "ssearch36", "-q", "-T", threads, "-s", "BP62", "-f", -11, "-g", -1, "-m", 8, "-b", TOP, "-d", TOP,
            self.queries, self.subjects,
        )  # fmt: skip

    def mmseqs(self, threads: int) -> str:
        """Search with mmseqs2 at its highest sensitivity; it would take up what an earlier run left."""
        shutil.rmtree(self.folder / "mmseqs-tmp", ignore_errors=True)
        return command(
            "mmseqs", "easy-search", self.queries, self.folder / "mmseqs", self.folder / "mmseqs.tsv",
            self.folder / "mmseqs-tmp", "-s", 7.5, "-e", 10, "--threads", threads, "-v", 1,
        )  # fmt: skip


Contenders = dict[str, tuple[str, Callable[[], object]]]
"""What each contender does, and its turn; swsearch's own come first."""


def whole_commands(files: Files, threads: int) -> Contenders:
    """Return the whole commands that are compared."""
    return {
        "swsearch, database": (EXACT, lambda: search(files.queries, files.database, threads)),
        "diamond --swipe": (EXACT, lambda: files.diamond(threads)),
        "ssearch36": (EXACT, lambda: files.ssearch36(threads)),
        "blastp": (HEURISTIC, lambda: files.blastp(threads)),
        "blastp -comp_based_stats 0": (HEURISTIC, lambda: files.blastp(threads, "-comp_based_stats", 0)),
        "mmseqs easy-search -s 7.5": (HEURISTIC, lambda: files.mmseqs(threads)),
    }
