"""Subjects of a search: what engines score, and what the places in a selection mean.

- `ChunkSource` (`swsearch.pipeline.database_loading`): chunks for an engine. A database, or windows of DNA.
- `SubjectReader`: reads subjects by place. Every `Batch` carries the reader that its places are of.
- `Subjects`: both, and what statistics, filters and reports count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from swsearch.alignments import AlignmentTable
from swsearch.blocks import Chunk, IntArray
from swsearch.engines.pools import SequencePool, mask_pool
from swsearch.later import Later
from swsearch.options.words import Mask
from swsearch.pipeline.database_loading import ChunkSource
from swsearch.pipeline.filters import Allowed, HitFilters, allowed_subjects
from swsearch.results import Headers, SubjectCodes
from swsearch.translation import Frames

if TYPE_CHECKING:
    from swsearch.db import Database


class SubjectReader(Protocol):
    """Reads subjects by their places, arrays of shape (n,), int64."""

    def lengths_of(self, places: IntArray) -> IntArray:
        """Return the residues of subjects, shape (n,), int64."""

    def published_lengths_of(self, places: IntArray) -> IntArray:
        """Return the subject lengths that published statistics use, shape (n,), int64."""

    def scored(self, places: IntArray) -> SequencePool:
        """Return subjects, shape (n,), as they are scored: codes end to end, and where each begins."""

    def shown(self, places: IntArray) -> SubjectCodes:
        """Return subjects, shape (n,), as they are scored, with the letters that reports show."""

    def headers(self, places: IntArray) -> Headers:
        """Return the headers of subjects, shape (n,)."""

    def records(self, places: IntArray) -> tuple[IntArray, Frames | None]:
        """Return the records that subjects are from, shape (n,), and their frames where these are DNA."""

    def alignments_of(self, places: IntArray) -> AlignmentTable | None:
        """Return the alignments that subjects, shape (n,), were located by; None where there are none yet."""


@dataclass(frozen=True, eq=False)
class SubjectCounts:
    """What statistics and reports count of subjects.

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
    """What a search compares its queries with."""

    name: str
    """What messages and reports call it."""
    database: Database
    """What it is read from."""
    mask: Mask
    """What of it is scored as X."""
    n_places: int
    """Places that are scored."""

    @property
    def counts(self) -> SubjectCounts:
        """What statistics and reports count."""

    def allowed(self, filters: HitFilters) -> Allowed | None:
        """Return which places may be hits, shape (n_places,); None if all may."""

    def part(self, allowed: Allowed) -> ChunkSource | None:
        """Return the subjects that may be hits, shape (n_places,), to be scored alone; None where all are scored."""

    def share(self, place: int, of: int) -> Subjects:
        """Return the chunks of one of several shares; places remain those of the whole."""


class ProteinSubjects:
    """The proteins of a database; see `Subjects`. They stay open after the database was closed."""

    def __init__(self, database: Database, mask: Mask) -> None:
        self.database: Database = database.shared()
        self.name, self.mask, self.n_places = database.name, mask, database.n_subjects
        self.length_runs, self.n_residues = database.length_runs, database.n_residues
        self.residue_bytes, self.n_segments = database.residue_bytes, database.n_segments

    @cached_property
    def counts(self) -> SubjectCounts:
        """What statistics and reports count."""
        runs, n = self.length_runs, self.n_residues
        ascending: npt.NDArray[np.int32] = runs.values[::-1]
        lengths = ascending[ascending > 0]
        return SubjectCounts(self.n_places, n, runs.n_filled, n, lengths, n, lengths, int(runs.longest))

    def chunks(self, max_bytes: int, *, mixed: bool = False, mask: Mask | None = None) -> Iterator[Chunk]:
        """Load the residues, some blocks at a time."""
        yield from self.database.chunks(max_bytes, mixed=mixed, mask=self.mask if mask is None else mask)

    def share(self, place: int, of: int) -> ProteinSubjects:
        """Return the chunks of one of several shares."""
        return ProteinSubjects(self.database.share(place, of), self.mask)

    def allowed(self, filters: HitFilters) -> Allowed | None:
        """Return which subjects may be hits."""
        return allowed_subjects(self.database, filters)

    def part(self, allowed: Allowed) -> ChunkSource | None:
        """Return the subjects that may be hits."""
        part: ChunkSource = self.database.subset(allowed)
        return part

    def lengths_of(self, places: IntArray) -> IntArray:
        """See `SubjectReader.lengths_of`."""
        lengths: IntArray = self.database.lengths_of(places).astype(np.int64)
        return lengths

    published_lengths_of = lengths_of

    def scored(self, places: IntArray) -> SequencePool:
        """See `SubjectReader.scored`."""
        pool: SequencePool = self.database.codes_of(places)
        return pool if self.mask == "none" else mask_pool(pool, self._runs(places))[0]

    def shown(self, places: IntArray) -> SubjectCodes:
        """See `SubjectReader.shown`."""
        pool: SequencePool = self.database.codes_of(places)
        if self.mask == "none":
            return SubjectCodes(pool[0], None, pool[1])
        runs = self._runs(places)
        (codes, offsets), letters = mask_pool(pool, runs)
        return SubjectCodes(codes, letters, offsets, None if letters is None else np.diff(runs[0]) > 0)

    def _runs(self, places: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        offsets, starts, ends = self.database.masked_of(places, self.mask)
        return offsets, starts.astype(np.int64), ends.astype(np.int64)

    def headers(self, places: IntArray) -> Headers:
        """See `SubjectReader.headers`."""
        return headers_of(self.database, places)

    def records(self, places: IntArray) -> tuple[IntArray, Frames | None]:
        """See `SubjectReader.records`."""
        return places, None

    def alignments_of(self, places: IntArray) -> AlignmentTable | None:
        """See `SubjectReader.alignments_of`."""
        return None


def headers_of(database: Database, records: IntArray) -> Headers:
    """Return the headers of records of a database, shape (n,)."""
    pool, offsets = database.headers_of(records)
    taxa = Later(partial(database.taxa_of, records)) if database.has_taxa else None
    return Headers(pool.tobytes(), offsets, taxa)
