"""Throughput of the engines and of installed peers on this machine.

Every program runs as a whole command, with alignments of the best hits where it can make them. Runs alternate
(A B C, A B C, ...), so that a machine whose speed drifts is fair to all. The median is reported.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from swsearch.engines import create_engine
from swsearch.errors import EngineError, GpuUnavailableError, InputError
from swsearch.inputs import read_queries

RANDOM_QUERIES, RANDOM_SUBJECTS = 4, 10_000
"""Size of the made-up work when no files are given."""


@dataclass
class Work:
    """Files to search, and how."""

    queries: Path
    subjects: Path
    cells: int
    threads: int
    top: int
    folder: Path


@dataclass
class Contender:
    """A program to be measured.

    Parameters
    ----------
    name : str
        Shown in the table.
    what : str
        What it does: exact or heuristic, and with what output.
    program : str
        Looked up on the PATH.
    prepare : callable
        Work -> commands that make its database, not timed.
    run : callable
        Work -> the timed command.
    """

    name: str
    what: str
    program: str
    prepare: Callable[[Work], list[list[str]]]
    run: Callable[[Work], list[str]]
    seconds: list[float] = field(default_factory=list)


def _engine(name: str) -> Contender:
    def build(work: Work) -> list[list[str]]:
        database = work.folder / f"{name}.h5"
        return [[sys.executable, "-m", "swsearch", "db", "build", str(work.subjects), "-o", str(database), "--quiet"]]

    def search(work: Work) -> list[str]:
        return [
            sys.executable, "-m", "swsearch", "search", str(work.queries), str(work.folder / f"{name}.h5"),
            "--engine", name, "--threads", str(work.threads), "--max-hits", str(work.top),
            "-o", str(work.folder / f"{name}.tsv"), "--quiet",
        ]  # fmt: skip

    return Contender(f"swsearch {name}", "exact, alignments", sys.executable, build, search)


def _engine_list() -> tuple[list[Contender], list[str]]:
    """Return an entry for each engine that works here, and why another does not."""
    try:
        create_engine("gpu").close()
    except GpuUnavailableError as error:
        return [_engine("cpu")], [f"swsearch gpu ({error})"]
    return [_engine("cpu"), _engine("gpu")], []


def _peer_list() -> list[Contender]:
    def none(_: Work) -> list[list[str]]:
        return []

    return [
        Contender(
            "diamond --swipe", "exact, alignments", "diamond",
            lambda w: [["diamond", "makedb", "--in", str(w.subjects), "-d", str(w.folder / "d"), "--quiet"]],
            lambda w: ["diamond", "blastp", "--swipe", "-q", str(w.queries), "-d", str(w.folder / "d"), "-p",
                       str(w.threads), "-k", str(w.top), "--comp-based-stats", "0", "--masking", "0", "--quiet"],
        ),
        Contender(
            "ssearch36", "exact, alignments", "ssearch36", none,
            lambda w: ["ssearch36", "-T", str(w.threads), "-s", "BP62", "-f", "-11", "-g", "-1", "-m", "8", "-b",
                       str(w.top), "-d", str(w.top), str(w.queries), str(w.subjects)],
        ),
        Contender(
            "swipe", "exact, alignments", "swipe",
            lambda w: [["makeblastdb", "-in", str(w.subjects), "-dbtype", "prot", "-out", str(w.folder / "b"),
                        "-blastdb_version", "4"]],
            lambda w: ["swipe", "-i", str(w.queries), "-d", str(w.folder / "b"), "-a", str(w.threads), "-v",
                       str(w.top), "-b", str(w.top), "-m", "8"],
        ),
        Contender(
            "blastp", "heuristic, alignments", "blastp",
            lambda w: [["makeblastdb", "-in", str(w.subjects), "-dbtype", "prot", "-out", str(w.folder / "n")]],
            lambda w: ["blastp", "-query", str(w.queries), "-db", str(w.folder / "n"), "-num_threads", str(w.threads),
                       "-max_target_seqs", str(w.top), "-outfmt", "6"],
        ),
    ]  # fmt: skip


def measure(
    queries: str | None, subjects: str | None, *, peers: bool = True, runs: int = 3, top: int = 10, threads: int = 1
) -> tuple[list[Contender], list[str], Work]:
    """Time every contender that is installed.

    Parameters
    ----------
    queries, subjects : str or None
        FASTA files; None for made-up sequences.
    runs : int
        Timed runs of each, after one that is not counted.

    Returns
    -------
    contenders : list of Contender
        With their seconds, in the order of the table.
    missing : list of str
        Engines and programs that cannot run here.
    work : Work
        What was run.
    """
    with tempfile.TemporaryDirectory(prefix="swsearch-bench-") as name:
        work = _make_work(queries, subjects, Path(name), top, threads)
        engines, missing = _engine_list()
        others = _peer_list() if peers else []
        contenders = engines + [one for one in others if shutil.which(one.program)]
        missing += [one.name for one in others if one not in contenders]
        for one in contenders:
            for line in one.prepare(work):
                _execute(line)
        for turn in range(runs + 1):
            for one in contenders:
                started = time.perf_counter()
                _execute(one.run(work))
                if turn:
                    one.seconds.append(time.perf_counter() - started)
        return contenders, missing, work


def _make_work(queries: str | None, subjects: str | None, folder: Path, top: int, threads: int) -> Work:
    if queries is None or subjects is None:
        generator = np.random.default_rng(2014)
        lengths = generator.lognormal(5.7, 0.65, RANDOM_SUBJECTS).astype(int).clip(30, 5000)
        _write_random(folder / "queries.fasta", [150, 375, 1000, 3000][:RANDOM_QUERIES], generator)
        _write_random(folder / "subjects.fasta", lengths.tolist(), generator)
        queries, subjects = str(folder / "queries.fasta"), str(folder / "subjects.fasta")
    for path in (queries, subjects):
        if not Path(path).is_file():
            raise InputError(f"{path}: no such file, expected FASTA")
    residues = [sum(len(record.codes) for record in read_queries(Path(path))) for path in (queries, subjects)]
    return Work(Path(queries), Path(subjects), residues[0] * residues[1], threads, top, folder)


def _write_random(path: Path, lengths: list[int], generator: np.random.Generator) -> None:
    letters = np.frombuffer(b"ARNDCQEGHILKMFPSTWYV", dtype=np.uint8)
    with path.open("w", encoding="ascii") as stream:
        for number, length in enumerate(lengths, 1):
            sequence = generator.choice(letters, length).tobytes().decode()
            stream.write(f">random_{number}\n{sequence}\n")


def _execute(line: list[str]) -> None:
    done = subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, text=True)
    if done.returncode:
        raise EngineError(f"{' '.join(line)} failed with exit code {done.returncode}: {done.stderr.strip()[-300:]}")


def print_table(measured: tuple[list[Contender], list[str], Work]) -> None:
    """Print the measurement as a table on stdout."""
    from rich.console import Console
    from rich.table import Table

    contenders, missing, work = measured
    table = Table(
        title=f"{work.cells / 1e9:.1f} Gcells, {work.threads} threads, whole command, top {work.top}",
        title_justify="left",
    )
    for column in ("program", "what", "median s", "min s", "max s", "GCUPS", "time / swsearch cpu"):
        table.add_column(column, justify="left" if column in ("program", "what") else "right")
    base = statistics.median(contenders[0].seconds)
    for one in contenders:
        median = statistics.median(one.seconds)
        table.add_row(
            one.name, one.what, f"{median:.2f}", f"{min(one.seconds):.2f}", f"{max(one.seconds):.2f}",
            f"{work.cells / median / 1e9:.1f}", f"{median / base:.2f}",
        )  # fmt: skip
    Console(width=100).print(table)
    if missing:
        print(f"not here, so not measured: {', '.join(missing)}")
    print("a heuristic program does not visit every cell: its GCUPS are what an exact one would need")
