"""Subjects of a search, by place.

- `ChunkSource`: chunks for an engine, from a database or from windows of DNA.
- `SubjectReader`: reads subjects by place. Every `Batch` carries the reader of its places.
- `Subjects`: both, and the counts for statistics, filters and reports.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from swsearch.alignment_table import AlignmentTable
from swsearch.blocks import Chunk, IntArray, RunLengths
from swsearch.engines.base import ChunkPlan, Engine, LoadedChunk, Workload
from swsearch.engines.pools import SequencePool, mask_pool
from swsearch.errors import InputError
from swsearch.lazy import Lazy
from swsearch.options.kinds import Mask
from swsearch.pipeline.filters import HitFilters, SubjectMask, allowed_subjects
from swsearch.processors import OwnProcess, can_start_threads
from swsearch.results import Headers, SubjectCodes
from swsearch.translation import Frames

if TYPE_CHECKING:
    from swsearch.db import Database


SHARE_OF_MEMORY = 4
"""A database is kept in the host's memory where it takes no more than this part of it."""


class ChunkSource(Protocol):
    """Chunks for an engine: a database, or some of its subjects."""

    length_runs: RunLengths
    n_residues: int
    residue_bytes: int
    n_segments: int

    def chunks(self, max_bytes: int, *, mixed: bool = ..., mask: Mask | None = ...) -> Iterator[Chunk]:
        """Load the residues, some blocks at a time; see `swsearch.db.Database`."""


class EngineDatabase:
    """A database as an engine takes it: masked, read ahead in a thread, and kept by the engine if it can.

    Iterating yields the loaded chunks; each is given back by `release`.
    """

    def __init__(self, engine: Engine, database: ChunkSource, plan: ChunkPlan, mask: Mask | None = None) -> None:
        self._engine, self._database, self._plan, self._mask = engine, database, plan, mask
        self._kept: list[LoadedChunk] = []
        self._process = OwnProcess("this search")
        self._merged: list[LoadedChunk] | None = None
        engine.set_reload(self._chunks)

    def _chunks(self) -> Iterator[Chunk]:
        plan = self._plan
        return self._database.chunks(plan.chunk_bytes, mixed=plan.mix_lengths, mask=self._mask)

    def __iter__(self) -> Iterator[LoadedChunk]:
        if self._kept:
            yield from self._held()
            return
        loaded_chunks: list[LoadedChunk] = []
        with closing(prefetch_chunks(self._chunks())) as chunks:
            for chunk in chunks:
                loaded = self._engine.load(chunk)
                if self._plan.keep_loaded:
                    loaded_chunks.append(loaded)
                yield loaded
                del chunk, loaded  # while the next is read
        if self._plan.keep_loaded:
            self._kept = loaded_chunks

    @property
    def resident_chunk(self) -> LoadedChunk | None:
        """The database as one chunk, where the engine keeps it so; None before it was gone through once."""
        chunks = self._held() if self._kept else []
        return chunks[0] if len(chunks) == 1 else None

    def _held(self) -> list[LoadedChunk]:
        if self._merged is None:
            self._merged = self._engine.merge(self._kept)
        return self._merged

    def release(self, loaded: LoadedChunk) -> None:
        """Release a chunk after use."""
        if not self._plan.keep_loaded:
            self._engine.release(loaded)

    def close(self) -> None:
        """Release all loaded chunks; a fork holds none."""
        if not self._process.is_here:
            return
        for loaded in {id(each): each for each in [*self._kept, *(self._merged or [])]}.values():
            self._engine.release(loaded)
        self._kept, self._merged = [], None


def fits_in_memory(database: ChunkSource | Workload) -> bool:
    """Return whether a database may stay in the host's memory between searches."""
    return bool(database.residue_bytes <= host_memory() // SHARE_OF_MEMORY)


def host_memory() -> int:
    """Return the bytes of memory that this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def prefetch_chunks(chunks: Iterator[Chunk]) -> Generator[Chunk]:
    """Read the next chunk while one is used."""
    if not can_start_threads():
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


def database_mask(database: Database, mask: str) -> Mask:
    """Return which of a database's masks is in force; ``"database"`` is its own."""
    if mask in ("database", database.mask):
        return database.mask
    if mask == "tantan":
        raise InputError(
            f"subject_mask: {database.name} was built without tantan; build it with: swsearch db build --mask tantan"
        )
    return "lower" if mask == "lower" else "none"


class SubjectReader(Protocol):
    """Reads subjects by their places, arrays of shape (n,), int64."""

    def lengths_of(self, places: IntArray) -> IntArray:
        """Return the residues of subjects, shape (n,), int64."""

    def published_lengths_of(self, places: IntArray) -> IntArray:
        """Return the subject lengths that published statistics use, shape (n,), int64."""

    def read_masked(self, places: IntArray, threads: int = 1) -> SequencePool:
        """Return subjects, shape (n,), as they are scored: codes end to end, and where each begins."""

    def read_with_letters(self, places: IntArray, threads: int = 1) -> SubjectCodes:
        """Return subjects, shape (n,), as they are scored, with the letters that reports show."""

    def headers(self, places: IntArray) -> Headers:
        """Return the headers of subjects, shape (n,)."""

    def records(self, places: IntArray) -> tuple[IntArray, Frames | None]:
        """Return the records that subjects are from, shape (n,), and their frames where these are DNA."""

    def alignments_of(self, places: IntArray) -> AlignmentTable | None:
        """Return the alignments that located subjects, shape (n,); None if there are none yet."""


@dataclass(frozen=True, eq=False)
class SubjectCounts:
    """Counts of subjects for statistics and reports.

    Parameters
    ----------
    n_records, n_letters : int
        What the user gave: proteins and residues, or DNA records and nucleotides.
    n_subjects, residues : int
        What is compared: subjects that have residues, and their residues; of DNA, regions of frames.
    lengths : ndarray, shape (n,), int32
        Every length of what is compared, ascending, without 0.
    published_residues, published_lengths
        The same as published statistics count it: of DNA, a third of the nucleotides.
    longest : int
        The longest of what engines score.
    are_windows : bool
        Whether engines score windows of DNA, in which hits have yet to be located.
    """

    n_records: int
    n_letters: int
    n_subjects: int
    residues: int
    lengths: npt.NDArray[np.int32]
    published_residues: int
    published_lengths: npt.NDArray[np.int32]
    longest: int
    are_windows: bool = False


class Subjects(SubjectReader, ChunkSource, Protocol):
    """Subjects of a search."""

    name: str
    """Name in messages and reports."""
    database: Database
    """Database that the subjects come from."""
    mask: Mask
    """Regions of the subjects that are scored as X."""
    n_places: int
    """Places that are scored."""

    @property
    def counts(self) -> SubjectCounts:
        """Counts for statistics and reports."""

    def find_allowed(self, filters: HitFilters) -> SubjectMask | None:
        """Return which places may be hits, shape (n_places,); None if all may."""

    def select(self, subject_mask: SubjectMask) -> ChunkSource | None:
        """Return the subjects that may be hits, shape (n_places,), to be scored alone; None where all are scored."""

    def share(self, index: int, count: int) -> Subjects:
        """Return the chunks of one of several shares; places still refer to the whole database."""


class ProteinSubjects:
    """The proteins of a database; see `Subjects`. They stay open after the database was closed."""

    def __init__(self, database: Database, mask: Mask) -> None:
        self.database: Database = database.duplicate()
        self.name, self.mask, self.n_places = database.name, mask, database.n_subjects
        self.length_runs, self.n_residues = database.length_runs, database.n_residues
        self.residue_bytes, self.n_segments = database.residue_bytes, database.n_segments

    @cached_property
    def counts(self) -> SubjectCounts:
        """Counts for statistics and reports."""
        runs, n = self.length_runs, self.n_residues
        ascending: npt.NDArray[np.int32] = runs.values[::-1]
        lengths = ascending[ascending > 0]
        return SubjectCounts(self.n_places, n, runs.n_nonempty, n, lengths, n, lengths, int(runs.longest))

    def chunks(self, max_bytes: int, *, mixed: bool = False, mask: Mask | None = None) -> Iterator[Chunk]:
        """Load the residues, some blocks at a time."""
        yield from self.database.chunks(max_bytes, mixed=mixed, mask=self.mask if mask is None else mask)

    def share(self, index: int, count: int) -> ProteinSubjects:
        """Return the chunks of one of several shares."""
        return ProteinSubjects(self.database.share(index, count), self.mask)

    def find_allowed(self, filters: HitFilters) -> SubjectMask | None:
        """Return which subjects may be hits."""
        return allowed_subjects(self.database, filters)

    def select(self, subject_mask: SubjectMask) -> ChunkSource | None:
        """Return the subjects that may be hits."""
        return self.database.subset(subject_mask)

    def lengths_of(self, places: IntArray) -> IntArray:
        """Return the residues of subjects, shape (n,), int64."""
        return self.database.lengths_of(places).astype(np.int64)

    published_lengths_of = lengths_of

    def read_masked(self, places: IntArray, threads: int = 1) -> SequencePool:
        """Return subjects as they are scored: codes end to end, and where each begins."""
        pool: SequencePool = self.database.codes_of(places, threads=threads)
        return pool if self.mask == "none" else mask_pool(pool, self._runs(places))[0]

    def read_with_letters(self, places: IntArray, threads: int = 1) -> SubjectCodes:
        """Return subjects as they are scored, with the letters that reports show."""
        pool: SequencePool = self.database.codes_of(places, threads=threads)
        if self.mask == "none":
            return SubjectCodes(pool[0], None, pool[1])
        runs = self._runs(places)
        (codes, offsets), letters = mask_pool(pool, runs)
        return SubjectCodes(codes, letters, offsets, None if letters is None else np.diff(runs[0]) > 0)

    def _runs(self, places: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        offsets, starts, ends = self.database.masked_runs_of(places, self.mask)
        return offsets, starts.astype(np.int64), ends.astype(np.int64)

    def headers(self, places: IntArray) -> Headers:
        """Return the headers of subjects."""
        return headers_of(self.database, places)

    def records(self, places: IntArray) -> tuple[IntArray, Frames | None]:
        """Return the records that subjects are from, and their frames if these are DNA."""
        return places, None

    def alignments_of(self, places: IntArray) -> AlignmentTable | None:
        """Return the alignments that located subjects; None if there are none yet."""
        return None


def headers_of(database: Database, records: IntArray) -> Headers:
    """Return the headers of records of a database, shape (n,)."""
    pool, offsets = database.headers_of(records)
    taxa = Lazy(partial(database.taxa_of, records)) if database.has_taxa else None
    return Headers(pool.tobytes(), offsets, taxa)
