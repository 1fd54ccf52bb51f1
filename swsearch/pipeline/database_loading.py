"""A database on its way through an engine: read ahead, loaded, kept or given back."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Protocol

from swsearch.blocks import Chunk, RunLengths
from swsearch.engines.base import ChunkPlan, Engine, LoadedChunk, Workload
from swsearch.errors import InputError
from swsearch.options.words import Mask
from swsearch.processors import OwnProcess, has_room_for_threads

if TYPE_CHECKING:
    from swsearch.db import Database

SHARE_OF_MEMORY = 4
"""A database is kept in the host's memory where it takes no more than this part of it."""


class ChunkSource(Protocol):
    """What is scored: a database, or some of its subjects."""

    length_runs: RunLengths
    n_residues: int
    residue_bytes: int
    n_segments: int

    def chunks(self, max_bytes: int, *, mixed: bool = ..., mask: Mask | None = ...) -> Iterator[Chunk]:
        """Load the residues, some blocks at a time; see `swsearch.db.Database`."""


class LoadedDatabase:
    """A database as an engine takes it: masked, read ahead in a thread, and kept by the engine if it can.

    Iterating yields the loaded chunks; each is given back by `done`.
    """

    def __init__(self, engine: Engine, database: ChunkSource, plan: ChunkPlan, mask: Mask | None = None) -> None:
        self._engine, self._database, self._plan, self._mask = engine, database, plan, mask
        self._kept: list[LoadedChunk] = []
        self._process = OwnProcess("this search")
        self._merged: list[LoadedChunk] | None = None
        engine.reads_again(self._chunks)

    def _chunks(self) -> Iterator[Chunk]:
        plan = self._plan
        return self._database.chunks(plan.chunk_bytes, mixed=plan.mixed, mask=self._mask)

    def __iter__(self) -> Iterator[LoadedChunk]:
        if self._kept:
            yield from self._held()
            return
        kept: list[LoadedChunk] = []
        with closing(read_ahead(self._chunks())) as chunks:
            for chunk in chunks:
                loaded = self._engine.load(chunk)
                if self._plan.keep:
                    kept.append(loaded)
                yield loaded
                del chunk, loaded  # while the next is read
        if self._plan.keep:
            self._kept = kept

    @property
    def whole(self) -> LoadedChunk | None:
        """The database as one chunk, where the engine keeps it so; None before it was gone through once."""
        held = self._held() if self._kept else []
        return held[0] if len(held) == 1 else None

    def _held(self) -> list[LoadedChunk]:
        if self._merged is None:
            self._merged = self._engine.merge(self._kept)
        return self._merged

    def done(self, loaded: LoadedChunk) -> None:
        """Say that a chunk was used."""
        if not self._plan.keep:
            self._engine.release(loaded)

    def close(self) -> None:
        """Give back every chunk that was kept; a fork has none of what an engine holds."""
        if not self._process.is_here:
            return
        for loaded in {id(each): each for each in [*self._kept, *(self._merged or [])]}.values():
            self._engine.release(loaded)
        self._kept, self._merged = [], None


def fits_the_host(database: ChunkSource | Workload) -> bool:
    """Say whether a database may stay in the host's memory between searches."""
    return bool(database.residue_bytes <= host_memory() // SHARE_OF_MEMORY)


def host_memory() -> int:
    """Return the bytes of memory that this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def read_ahead(chunks: Iterator[Chunk]) -> Generator[Chunk]:
    """Read the next chunk while one is used."""
    if not has_room_for_threads():
        yield from chunks
        return
    with ThreadPoolExecutor(1, thread_name_prefix="swsearch-read") as reader:
        try:
            coming = reader.submit(next, chunks, None)
        except RuntimeError:  # no thread to be had
            yield from chunks
            return
        while (chunk := coming.result()) is not None:
            coming = reader.submit(next, chunks, None)
            yield chunk


def database_mask(database: Database, wanted: str) -> Mask:
    """Return which of a database's masks is in force; ``"database"`` is its own.

    Raises
    ------
    InputError
        If the database was built without it.
    """
    if wanted in ("database", database.mask):
        return database.mask
    if wanted == "tantan":
        raise InputError(
            f"subject_mask: {database.name} was built without tantan; build it with: swsearch db build --mask tantan"
        )
    return "lower" if wanted == "lower" else "none"
