"""The alignments of a search's hits, all of them at a time: on threads, or many in one launch on a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from swsearch.alignment import PairAlignment
from swsearch.alphabet import ByteArray
from swsearch.engines.cpu import tracing
from swsearch.engines.cpu.pairs import align_codes
from swsearch.errors import EngineError, MemoryLimitError
from swsearch.inputs import Query
from swsearch.masking import Mask, masked_codes, shown_letters
from swsearch.processors import has_room_for_threads
from swsearch.recurrence import Recurrence
from swsearch.results import Hit, SearchResult

if TYPE_CHECKING:
    from swsearch.db import Database
    from swsearch.engines.pair_base import PairAligner

ALIGNMENT_MEMORY = 32 << 20
"""Bytes for the tables of each hit that is being aligned; two titins fit, and more memory saves little time. Hits of
more than 200,000 residues together take what `swsearch.engines.cpu.tracing.enough_memory` says, one at a time."""

HIT_BATCH_RESIDUES = 16 << 20
"""Subject residues of the hits that are aligned in one call of the extension; about 40,000 hits."""


@dataclass(frozen=True)
class SubjectReader:
    """Reads subjects as a search scores and shows them, also after the search's database was closed.

    Parameters
    ----------
    database : Database
        Open. As an attribute, the same database, which stays open as long as the reader is there.
    mask : {"none", "lower", "tantan"}
        What of the subjects is scored as X.
    recurrence : Recurrence
        What they are aligned by.
    """

    database: Database
    mask: Mask
    recurrence: Recurrence

    def __post_init__(self) -> None:
        object.__setattr__(self, "database", self.database.shared())

    def masked(self, subject: int) -> list[tuple[int, int]]:
        """Return the runs that are scored as X, 0-based and half-open."""
        return [] if self.mask == "none" else self.database.masked(subject, self.mask)

    def scored(self, subject: int) -> ByteArray:
        """Return a subject's codes, shape (length,), uint8, X where they are masked."""
        codes: ByteArray = self.database.codes(subject)
        runs = self.masked(subject)
        return masked_codes(codes, runs) if runs else codes


@dataclass(frozen=True)
class HitSequences:
    """The two sequences of a hit, to be aligned when that is asked for.

    Parameters
    ----------
    reader : SubjectReader
        Reads the subject.
    query : Query
        The query.
    subject : int
        The subject's place in the input.
    scored : ndarray, shape (n,), uint8, or None
        Its codes, X where they are masked, if they are at hand; otherwise they are read.
    """

    reader: SubjectReader
    query: Query
    subject: int
    scored: ByteArray | None = field(default=None, repr=False, compare=False)

    def __call__(self) -> PairAlignment:
        """Align them on the CPU."""
        query, subject = self.codes()
        memory = max(ALIGNMENT_MEMORY, tracing.enough_memory(len(query), len(subject)))
        return self.shown(align_codes(query, subject, self.reader.recurrence, memory=memory))

    def codes(self) -> tuple[ByteArray, ByteArray]:
        """Return the query's and the subject's codes, each of shape (n,), uint8, X where they are masked."""
        return self.query.codes, self.reader.scored(self.subject) if self.scored is None else self.scored

    def shown(self, pair: PairAlignment) -> PairAlignment:
        """Give an alignment of these codes the letters that it is shown with, where something is masked."""
        runs = self.reader.masked(self.subject)
        if self.query.letters is None and not runs:
            return pair
        subject = shown_letters(self.reader.database.codes(self.subject), runs) if runs else None
        return replace(pair, query_letters=self.query.letters, subject_letters=subject)


def align_hits(results: Sequence[SearchResult], threads: int, aligner: PairAligner | None = None) -> None:
    """Find the alignments of all hits, in parallel; afterwards ``hit.pair`` and ``hit.hsps`` cost nothing.

    Parameters
    ----------
    results : sequence of SearchResult
        From a search job.
    threads : int
        Hits that are aligned side by side on the CPU, the longest first, so that all threads end at about the same
        time; the tables of each take at most `ALIGNMENT_MEMORY`.
    aligner : PairAligner, optional
        What aligns instead of the CPU, which goes on where it fails. The alignments are the same.
    """
    everything = [hit for result in results for hit in result.hits]
    hits = [hit for hit in everything if not hit.is_aligned]
    if aligner is None or not _align_elsewhere(hits, aligner):
        align_together(hits, threads)
    if any(hit.may_have_several for hit in everything):
        if has_room_for_threads(threads):
            with (
                contextlib.suppress(RuntimeError),  # not as many threads to be had
                ThreadPoolExecutor(threads, thread_name_prefix="swsearch-align") as workers,
            ):
                for _ in workers.map(lambda hit: hit.hsps, everything):
                    pass
        for hit in everything:
            _ = hit.hsps  # where threads have not found them


def align_together(hits: Sequence[Hit], threads: int) -> None:
    """Find the alignments of hits on the CPU, ``threads`` at a time."""
    for batch in _batches(hits):
        pairs = [sequences.codes() for _, sequences in batch]
        recurrence = batch[0][1].reader.recurrence
        known = [hit.score for hit, _ in batch]
        found = tracing.find_many(pairs, recurrence, ALIGNMENT_MEMORY, threads, known=known)
        for (hit, sequences), (query, subject), one in zip(batch, pairs, found, strict=True):
            hit.align_as(sequences.shown(PairAlignment(query, subject, recurrence.scoring, *one)))
    for hit in hits:
        _ = hit.pair  # those in no batch


def _batches(hits: Sequence[Hit]) -> Iterator[list[tuple[Hit, HitSequences]]]:
    """Yield runs of hits that are aligned in one call; those that take more memory than others are left out."""
    batch: list[tuple[Hit, HitSequences]] = []
    residues = 0
    for hit in hits:
        sequences = hit.sequences
        needed = tracing.enough_memory(hit.query_length, hit.subject_length)
        if not isinstance(sequences, HitSequences) or needed > ALIGNMENT_MEMORY:  # None where it is aligned already
            continue
        if batch and (residues > HIT_BATCH_RESIDUES or sequences.reader is not batch[0][1].reader):
            yield batch
            batch, residues = [], 0
        batch.append((hit, sequences))
        residues += hit.subject_length
    if batch:
        yield batch


def _align_elsewhere(hits: Sequence[Hit], aligner: PairAligner) -> bool:
    """Let an aligner do all hits; say whether it did."""
    sequences = [each for hit in hits if isinstance(each := hit.sequences, HitSequences)]
    if not sequences or len(sequences) < len(hits) or any(s.reader is not sequences[0].reader for s in sequences):
        return False
    pairs = [each.codes() for each in sequences]
    try:
        found = aligner.align_many(pairs, sequences[0].reader.recurrence)
        for hit, each, pair in zip(hits, sequences, found, strict=True):
            hit.align_as(each.shown(pair))
    except (EngineError, MemoryLimitError):
        return False
    return True
