"""Small servers for tests: a database of some proteins, queries that are related to them, and jobs of it that run."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from Bio.Data import CodonTable
from Bio.Seq import Seq

from swsearch.client.search_request import SearchRequest
from swsearch.db import Database
from swsearch.engines.base import ChunkPlan, Engine, Workload
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.errors import GpuUnavailableError, MemoryLimitError, SwsearchError
from swsearch.pipeline.prefetch import check_wanted
from swsearch.server import databases
from swsearch.server.job_store import Job
from swsearch.server.jobs import open_jobs
from swsearch.server.results import Format
from swsearch.server.settings import ServerLimits, ServerSettings

T = TypeVar("T")

Opened = Callable[..., AbstractContextManager[Any]]
"""The type of fixtures that open servers for a test."""

LETTERS = np.array(list("ARNDCQEGHILKMFPSTWYV"))
N_SUBJECTS = 150
CLIENT, OTHER = "me", "another"


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


def asked(n_queries: int = 3, database: str = "small", first: int = 1, **options: Any) -> SearchRequest:
    """Return a request whose queries have relatives in the database."""
    queries = [(f"q{name}", letters) for name, letters in proteins(N_SUBJECTS)[first : first + n_queries]]
    return SearchRequest(database, fasta(queries), options=options)


def settings(database: Path, folder: Path, **changes: Any) -> ServerSettings:
    """Return settings of a server on the CPU; limits by their names."""
    names = vars(ServerLimits())
    limits = replace(ServerLimits(), **{name: changes.pop(name) for name in list(changes) if name in names})
    return ServerSettings(**{
        "databases": (database,), "folder": folder, "limits": limits, "engine": "cpu", "workers": 2, **changes
    })  # fmt: skip


@dataclass(frozen=True)
class Rendered:
    """A report: its bytes, and what HTTP calls it."""

    chunks: Generator[bytes]
    content_type: str
    file_name: str
    is_binary: bool

    def whole(self) -> bytes:
        return b"".join(self.chunks)

    def close(self) -> None:
        self.chunks.close()


class House:
    """Jobs that run in an event loop of their own, as a server's do, for tests in other threads."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self._closing = ExitStack()
        self.names: list[str] = []
        """The names by which engines were asked for, where a test gives them."""

    def __enter__(self) -> House:
        with ExitStack() as opened:
            self.jobs = opened.enter_context(open_jobs(self.settings))
            self._loop = asyncio.new_event_loop()
            opened.callback(self._loop.close)
            self._task = self._loop.create_task(self.jobs.run())
            thread = threading.Thread(target=self._run, name="test-jobs")
            thread.start()
            opened.callback(thread.join)
            opened.callback(self._end)
            self._closing = opened.pop_all()
        self.databases, self.store = self.jobs.databases, self.jobs.store
        return self

    def _run(self) -> None:
        with suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._task)
        self._loop.run_until_complete(self._loop.shutdown_default_executor())

    def _end(self) -> None:
        self.jobs.stop_all()
        self._loop.call_soon_threadsafe(self._task.cancel)

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Have something done in the loop."""
        with self.told():
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    @contextmanager
    def told(self) -> Iterator[None]:
        """Raise errors as whoever asks is told of them."""
        try:
            yield
        except SwsearchError as error:
            raise self.jobs.problem_for(error) from error

    def submit(self, requests: Sequence[SearchRequest], client: str = CLIENT) -> list[Job]:
        with self.told():
            return self.jobs.submit(requests, client)

    def job(self, identifier: str) -> Job:
        return self.jobs.job(identifier)

    def wait(self, identifier: str, seconds: float = 60) -> Job:
        return self.do(self.jobs.wait(identifier, seconds))

    def cancel(self, identifier: str, client: str = CLIENT) -> Job:
        return self.do(self.jobs.cancel(identifier, client))

    def delete(self, identifier: str, client: str = CLIENT) -> None:
        self.do(self.jobs.delete(identifier, client))

    def rendered(self, identifier: str, outfmt: str, queries: tuple[int, int] | None = None, **more: Any) -> Rendered:
        with self.told():
            wanted = Format(outfmt, **more)
            return self._rendered(wanted, "results", self.jobs.rendered(identifier, wanted, queries))

    def subjects(self, identifier: str, query: int, hits: Sequence[int]) -> list[bytes]:
        with self.told():
            return list(self.jobs.subjects(identifier, query, hits))

    def search_now(
        self, request: SearchRequest, outfmt: str, client: str = CLIENT, begun: Callable[[Any], None] = lambda _: None
    ) -> Rendered:
        """Search, to the first bytes; ``begun`` is given what can be stopped."""

        async def begin() -> Any:
            return self.jobs.begin_search(client)

        with self.told():
            wanted = Format(outfmt)
            running = self.do(begin())
            begun(running)
            chunks = self._search(request, wanted, running)
            return self._rendered(wanted, f"swsearch-{request.database}", self._pieces(next(chunks), chunks))

    def _search(self, request: SearchRequest, wanted: Format, running: Any) -> Generator[bytes]:
        try:
            yield from self.jobs.search(request, wanted, running)
        finally:
            self._loop.call_soon_threadsafe(self.jobs.end_search, running)
            wait_until(lambda: running not in self.jobs.searches)

    def _pieces(self, first: bytes, rest: Generator[bytes]) -> Generator[bytes]:
        with closing(rest):
            yield first
            yield from rest

    def _rendered(self, wanted: Format, name: str, chunks: Generator[bytes]) -> Rendered:
        def told() -> Generator[bytes]:
            with self.told(), closing(chunks):
                yield from chunks

        is_binary = wanted.output_format.writer.binary
        return Rendered(told(), wanted.media_type, wanted.file_name(name), is_binary)


def done(house: House, request: SearchRequest, client: str = CLIENT) -> Job:
    """Have a search done as a job."""
    job = house.wait(house.submit([request], client)[0].identifier, 60)
    assert job.state == "done", job.problem
    return job


def wait_until(is_so: Callable[[], object]) -> None:
    """Wait for something that is to become so."""
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.002)


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
        self.begun = threading.Semaphore(0)
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
            self.begun.release()
            while not self.may_go.wait(0.01):
                check_wanted()
        self.scored.append(len(group.profiles))
        if self.error is not None:
            raise self.error
        return super().score(group, loaded, progress)

    def wait(self) -> None:
        """Wait until something is about to be scored that may not go yet."""
        assert self.begun.acquire(timeout=60)

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
