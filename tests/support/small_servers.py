"""Parts of small servers: databases, queries that are related to them, and an engine that obeys."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from Bio.Data import CodonTable
from Bio.Seq import Seq

from support.serving import Served
from swsearch.db import Database
from swsearch.engines.base import ChunkPlan, Engine, Workload
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.errors import GpuUnavailableError, MemoryLimitError
from swsearch.pipeline import checkpoint
from swsearch.pipeline.prefetch import check_cancelled
from swsearch.server import databases
from swsearch.server.settings import ServerLimits, ServerSettings

Opened = Callable[..., AbstractContextManager[Served]]
"""The type of fixtures that open servers for a test."""

LETTERS = np.array(list("ARNDCQEGHILKMFPSTWYV"))
N_SUBJECTS = 150


def proteins(count: int, seed: int = 0, least: int = 30, most: int = 150) -> list[tuple[str, str]]:
    """Return random proteins; each third one is like the one before."""
    draw = np.random.default_rng(seed)
    found: list[tuple[str, str]] = []
    for number in range(count):
        letters = draw.choice(LETTERS, draw.integers(least, most))
        if number % 3 == 2:
            letters = np.array(list(found[-1][1]))
            changed = draw.random(len(letters)) < 0.3
            letters = np.where(changed, draw.choice(LETTERS, len(letters)), letters)
        found.append((f"s{number}", "".join(letters)))
    return found


def fasta(records: list[tuple[str, str]]) -> bytes:
    return "".join(f">{name} protein {name}\n{letters}\n" for name, letters in records).encode()


def built(folder: Path, name: str = "small.h5", seed: int = 0, count: int = N_SUBJECTS) -> Path:
    """Build a database."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{Path(name).stem}.fasta"
    source.write_bytes(fasta(proteins(count, seed)))
    Database.build(source, folder / name).close()
    return folder / name


def built_dna(folder: Path, name: str = "genome.h5", seed: int = 0) -> Path:
    """Build a database of DNA, whose records code for the proteins of `built`, on either strand."""
    codons = {residue: codon for codon, residue in CodonTable.unambiguous_dna_by_id[1].forward_table.items()}
    draw, records = np.random.default_rng(seed), []
    genes = ["".join(map(codons.__getitem__, letters)) for _, letters in proteins(N_SUBJECTS, seed)]
    for first in range(0, N_SUBJECTS, 10):
        between = ["".join(draw.choice(list("ACGT"), draw.integers(20, 300))) for _ in range(10)]
        strand = "".join(map("".join, zip(between, genes[first : first + 10], strict=True)))
        records.append((f"n{first}", strand if first % 20 else str(Seq(strand).reverse_complement())))
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{Path(name).stem}.fasta"
    source.write_bytes(fasta(records))
    Database.build(source, folder / name, translate=True).close()
    return folder / name


def asked(n_queries: int = 3, database: str = "small", first: int = 1, **options: Any) -> dict[str, Any]:
    """Return the body of a request whose queries have relatives in the database."""
    queries = [(f"q{name}", letters) for name, letters in proteins(N_SUBJECTS)[first : first + n_queries]]
    return {"database": database, "queries": fasta(queries).decode(), "options": options}


def settings(database: Path, folder: Path, **changes: Any) -> ServerSettings:
    """Return settings of a server on the CPU; limits by their names."""
    names = vars(ServerLimits())
    limits = replace(ServerLimits(), **{name: changes.pop(name) for name in list(changes) if name in names})
    return ServerSettings(**{
        "databases": (database,), "folder": folder, "limits": limits, "engine": "cpu", "workers": 2, **changes
    })  # fmt: skip


class ObedientEngine(CpuEngine):
    """Scores when it is told to, and fails as it is told to."""

    def __init__(self, name: str = "cpu") -> None:
        super().__init__()
        self.name = name
        self.may_go = threading.Event()
        self.may_go.set()
        self.free = 0
        """Groups of queries that may go before."""
        self.scored: list[int] = []
        """Queries of each group."""
        self.started = threading.Semaphore(0)
        self.error: BaseException | None = None
        self.longest = 1 << 30
        """Query residues that there is memory for."""
        self.is_closed = False

    def plan(self, workload: Workload) -> ChunkPlan:
        if max(map(sum, workload.groups)) > self.longest:
            raise MemoryLimitError("no memory for so many residues")
        return super().plan(workload)

    def score(self, group: Any, loaded: Any, progress: Any = None) -> Any:
        self.free -= 1
        if self.free < 0:
            self.started.release()
            while not self.may_go.wait(0.01):
                check_cancelled()
        self.scored.append(len(group.profiles))
        if self.error is not None:
            raise self.error
        return super().score(group, loaded, progress)

    def wait(self) -> None:
        """Wait until something is about to be scored that may not go yet."""
        assert self.started.acquire(timeout=60)

    def close(self) -> None:
        self.is_closed = True
        super().close()


@contextmanager
def engines(monkeypatch: pytest.MonkeyPatch, *made: Engine | BaseException) -> Iterator[list[str]]:
    """Let servers have these engines, one after the other, and then none; give the names they were asked for by."""
    left, names = list(made), []

    def create(name: str, **options: Any) -> Engine:
        names.append(name)
        found = left.pop(0) if left else GpuUnavailableError("no engine is left")
        if isinstance(found, BaseException):
            raise found
        return found

    with monkeypatch.context() as patched:
        patched.setattr(databases, "create_engine", create)
        yield names


@contextmanager
def counting_saves() -> Iterator[set[tuple[int, int]]]:
    """Give the places of queries that are in checkpoints, each with its number of iterations."""
    saved: set[tuple[int, int]] = set()
    save = checkpoint.Checkpoint.save

    def save_and_count(self: checkpoint.Checkpoint, states: Any, subjects: Any) -> None:
        save(self, states, subjects)
        saved.update((each.index, 0 if each.history is None else len(each.history.steps)) for each in states)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint.Checkpoint, "save", save_and_count)
        yield saved
