"""Pairs on the GPU: a long one alone, short ones many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from swsearch import reference
from swsearch.alignment import PairAlignment
from swsearch.alignments import AlignmentTable
from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.engines.cpu import tracing
from swsearch.engines.cpu.columns import FoundPairs, count_pools
from swsearch.engines.cpu.pairs import CpuPairAligner
from swsearch.engines.gpu.compiler import find_compiler
from swsearch.engines.gpu.device import Device, choose_device
from swsearch.engines.gpu.kernels import Kernels
from swsearch.engines.gpu.pairs.found import FoundAlignment
from swsearch.engines.gpu.pairs.handles import PairHandles, PairUsage, Scratch
from swsearch.engines.gpu.pairs.letters import letters_in, letters_of
from swsearch.engines.gpu.pairs.long_pair import LongPair
from swsearch.engines.gpu.pairs.plan import PAIR_MEMORY, direction_bytes
from swsearch.engines.gpu.pairs.short_pairs import ShortPairs
from swsearch.engines.pair_base import Pair, PairAligner
from swsearch.engines.pools import PoolLetters, SequencePool, check_lengths, places_of, pool_of
from swsearch.errors import EngineError, OptionError
from swsearch.recurrence import Recurrence
from swsearch.scoring import QueryLike, QueryRows, codes_of, specific_rows

SHORT_BYTES = 8 << 20
"""Most bytes of directions of a pair that one warp aligns: 4,096 by 4,096 residues."""

BATCH_PAIRS, BATCH_BYTES = 200_000, 64 << 20
"""Most pairs and residues that are aligned in one go."""


class GpuPairAligner(PairAligner):
    """Aligns on an NVIDIA GPU.

    Parameters
    ----------
    device : int, optional
        Which one; by default the first of those with the most multiprocessors.
    memory : int, optional
        Bytes of its memory that may be used; by default 3 GiB, or nearly all that is free if that is less.

    Raises
    ------
    GpuUnavailableError
        If there is no usable device, driver, PyCUDA or compiler.
    OptionError
        If there is no such device.
    """

    name = "gpu"

    def __init__(self, device: int | None = None, memory: int | None = None) -> None:
        if memory is not None and memory < 1:
            raise OptionError("gpu_memory", memory, "a positive number of bytes")
        self.info = choose_device(device)
        self.compiler = find_compiler(self.info.architecture, self.info.driver_version)
        self._device = Device(self.info)
        self.kernels = Kernels(self._device, self.compiler)
        self.usage = PairUsage()
        self._closed = False
        with self._device.active("setting up"):
            stream = self._device.stream()
        scratch = Scratch(self._device, PAIR_MEMORY if memory is None else memory)
        self._handles = PairHandles(self._device, self.kernels, stream, scratch, self.usage)

    @property
    def description(self) -> str:
        """Device, architecture and compiler."""
        return f"gpu ({self.info.name}, {self.info.architecture}, {self.compiler.description})"

    def align(self, query: QueryLike, subject: ByteArray, recurrence: Recurrence) -> PairAlignment:
        """See `PairAligner.align`."""
        return next(self.align_many([(query, subject)], recurrence))

    def score(self, query: QueryLike, subject: ByteArray, recurrence: Recurrence) -> int:
        """See `PairAligner.score`."""
        return next(self.score_many([(query, subject)], recurrence))

    def align_many(self, pairs: Iterable[Pair], recurrence: Recurrence) -> Iterator[PairAlignment]:
        """See `PairAligner.align_many`."""
        for batch in _batches(pairs):
            for (query, subject), found in zip(batch, self._find(batch, recurrence, True), strict=True):
                yield PairAlignment(
                    codes_of(query),
                    subject,
                    recurrence.scoring,
                    found.score,
                    found.query_start,
                    found.subject_start,
                    found.cigar,
                    query_rows=specific_rows(query),
                )

    def score_many(self, pairs: Iterable[Pair], recurrence: Recurrence) -> Iterator[int]:
        """See `PairAligner.score_many`."""
        for batch in _batches(pairs):
            yield from (found.score for found in self._find(batch, recurrence, False))

    def align_pools(
        self,
        queries: SequencePool,
        subjects: SequencePool,
        pairs: IntArray,
        recurrence: Recurrence,
        *,
        known: npt.NDArray[np.integer] | None = None,  # it would spare nothing here
        letters: PoolLetters | None = None,
        rows: QueryRows | None = None,
    ) -> AlignmentTable:
        """See `PairAligner.align_pools`."""
        if rows is not None:
            with CpuPairAligner() as aligner:
                return aligner.align_pools(
                    queries, subjects, pairs, recurrence, known=known, letters=letters, rows=rows
                )
        pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        places = places_of(queries, subjects, pairs)
        check_lengths(places, recurrence.lane_bits)
        m, n = places[:, 1], places[:, 3]
        short = (m > 0) & (n > 0) & (direction_bytes(m, n) <= SHORT_BYTES) & (len(pairs) > 1)
        parts = [
            (some, self._find_short(queries, subjects, pairs[some], recurrence, letters))
            for some in _parts(np.flatnonzero(short), m + n)
        ]
        if len(others := np.flatnonzero(~short)):
            found = [
                self._find([(queries[0][a : a + m], subjects[0][b : b + n])], recurrence, True)[0]
                for a, m, b, n in places[others].tolist()
            ]
            traced = FoundPairs.of([(one.score, one.query_start, one.subject_start, one.cigar) for one in found])
            matrix = recurrence.scoring.matrix
            parts.append((others, count_pools(traced, queries, subjects, pairs[others], matrix, letters)))
        return AlignmentTable.merge(parts)

    def _find(self, pairs: list[Pair], recurrence: Recurrence, align: bool) -> list[FoundAlignment]:
        """Find the alignments of some pairs; only scores are sure where they are not asked for."""
        scoring, mode, ends = recurrence.scoring, recurrence.mode, recurrence.ends
        found: dict[int, FoundAlignment] = {}
        short: list[int] = []
        for place, (query, subject) in enumerate(pairs):
            if specific_rows(query) is not None:
                found[place] = FoundAlignment(*tracing.trace(query, subject, recurrence))
                continue
            if not len(query) or not len(subject):
                found[place] = FoundAlignment(*reference.align(query, subject, scoring, mode, ends))
                continue
            recurrence.lane_bits(len(query), len(subject))  # raises where 32 bits are not enough
            if len(pairs) > 1 and direction_bytes(len(query), len(subject)) <= SHORT_BYTES:
                short.append(place)
            else:
                found[place] = self._find_long((codes_of(query), subject), recurrence, align)
        if short:
            queries, of_query = _pool([codes_of(pairs[place][0]) for place in short])
            subjects, of_subject = _pool([pairs[place][1] for place in short])
            table = self._find_short(queries, subjects, np.stack((of_query, of_subject), axis=1), recurrence)
            starts = zip(table.score.tolist(), table.query_start.tolist(), table.subject_start.tolist(), strict=True)
            for k, (place, one) in enumerate(zip(short, starts, strict=True)):
                found[place] = FoundAlignment(*one, table.cigar(k))
        return [found[place] for place in range(len(pairs))]

    def _find_short(
        self,
        queries: SequencePool,
        subjects: SequencePool,
        pairs: IntArray,
        recurrence: Recurrence,
        letters: PoolLetters | None = None,
    ) -> AlignmentTable:
        """Align short pairs in as few launches as their sizes allow."""
        with self._device.active("aligning pairs"), self._handles.scratch.lent():
            return ShortPairs(self._handles, recurrence).align(queries, subjects, pairs, letters)

    def _find_long(self, pair: tuple[ByteArray, ByteArray], recurrence: Recurrence, align: bool) -> FoundAlignment:
        """Do one pair with the whole device, and add its alignment up again."""
        letters = letters_of(recurrence.scoring, letters_in(pair[0]), letters_in(pair[1]))
        with self._device.active("aligning a pair"), self._handles.scratch.lent():
            one = LongPair(self._handles, pair, letters, recurrence)
            found = one.align() if align else FoundAlignment(one.score(), 0, 0, ())
        if align:
            aligned = PairAlignment(
                *pair, recurrence.scoring, found.score, found.query_start, found.subject_start, found.cigar
            )
            if aligned.rescored() != found.score:
                raise EngineError(
                    f"{self.info}: an alignment of {len(pair[0]):,} with {len(pair[1]):,} residues adds up to "
                    f"{aligned.rescored()} instead of its score {found.score}; please report it, and use --engine cpu"
                )
        return found

    def close(self) -> None:
        """Let go of the device."""
        if self._closed:
            return
        self._closed = True
        with self._device.active("closing"):
            self.kernels.close()
            del self._handles  # the stream ends while its context is current
        self._device.close()


def _batches(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Cut pairs into lists that are held in memory at a time."""
    batch: list[Pair] = []
    residues = 0
    for pair in pairs:
        batch.append(pair)
        residues += len(pair[0]) + len(pair[1])
        if len(batch) >= BATCH_PAIRS or residues >= BATCH_BYTES:
            yield batch
            batch, residues = [], 0
    if batch:
        yield batch


def _parts(chosen: IntArray, residues: IntArray) -> Iterator[IntArray]:
    """Cut chosen pairs into what is aligned in one go; ``residues`` has those of every pair."""
    ends, begin = np.cumsum(residues[chosen]), 0
    while begin < len(chosen):
        before = int(ends[begin - 1]) if begin else 0
        last = int(np.searchsorted(ends, before + BATCH_BYTES)) + 1
        yield chosen[begin : (end := min(last, begin + BATCH_PAIRS))]
        begin = end


def _pool(parts: Sequence[ByteArray]) -> tuple[SequencePool, IntArray]:
    """Lay sequences end to end, an array that comes again (the hits of a query) once; return the place of each."""
    different = {id(part): part for part in parts}
    places = dict(zip(different, range(len(different)), strict=True))
    return pool_of(list(different.values())), np.array([places[id(part)] for part in parts], dtype=np.int64)
