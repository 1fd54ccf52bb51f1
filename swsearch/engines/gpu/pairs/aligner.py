"""Pairs on the GPU: a long one alone, short ones many at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from swsearch import reference
from swsearch.alignment import PairAlignment
from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.engines.base import Pair, PairAligner
from swsearch.engines.cpu.columns import UncountedAlignments, count_pools
from swsearch.engines.gpu.compiler import find_compiler
from swsearch.engines.gpu.device import Device, choose_device
from swsearch.engines.gpu.kernels import Kernels
from swsearch.engines.gpu.limits import check_memory, refuse_position_gaps
from swsearch.engines.gpu.pairs.found import FoundAlignment
from swsearch.engines.gpu.pairs.handles import PairHandles, PairUsage, Scratch
from swsearch.engines.gpu.pairs.letters import letters_by_row, letters_in, letters_of
from swsearch.engines.gpu.pairs.long_pair import LongPair
from swsearch.engines.gpu.pairs.plan import PAIR_MEMORY, direction_bytes
from swsearch.engines.gpu.pairs.short_pairs import ShortPairs
from swsearch.engines.pools import PoolPairs, check_lengths, make_pool, rows_pool
from swsearch.errors import EngineError
from swsearch.recurrence import Recurrence
from swsearch.scoring import QueryLike, QueryProfile, codes_of, position_specific_rows

Side = TypeVar("Side", ByteArray, QueryLike)

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
        If there is no usable device, driver, package for it or compiler.
    OptionError
        If there is no such device.
    """

    name = "gpu"

    def __init__(self, device: int | None = None, memory: int | None = None) -> None:
        check_memory(memory)
        self.info = choose_device(device)
        self.compiler = find_compiler(self.info.architecture, self.info.driver_version)
        self._device = Device(self.info)
        self.kernels = Kernels(self._device, self.compiler)
        self.usage = PairUsage()
        self._closed, self._stopping = False, threading.Event()
        with self._device.active("setting up"):
            stream = self._device.stream()
        scratch = Scratch(self._device, PAIR_MEMORY if memory is None else memory)
        self._handles = PairHandles(self._device, self.kernels, stream, scratch, self.usage, self._stopping)

    @property
    def description(self) -> str:
        """Device, architecture and compiler."""
        return f"gpu ({self.info.name}, {self.info.architecture}, {self.compiler.description})"

    def align(self, query: QueryLike, subject: ByteArray, recurrence: Recurrence) -> PairAlignment:
        """Align a query with a subject."""
        return next(self.align_many([(query, subject)], recurrence))

    def score(self, query: QueryLike, subject: ByteArray, recurrence: Recurrence) -> int:
        """Score a query with a subject, without their alignment."""
        return next(self.score_many([(query, subject)], recurrence))

    def align_many(self, pairs: Iterable[Pair], recurrence: Recurrence) -> Iterator[PairAlignment]:
        """Align (query, subject) pairs, in order."""
        for batch in batches_of(pairs):
            for (query, subject), found in zip(batch, self._find(batch, recurrence, True), strict=True):
                yield _alignment(query, subject, recurrence, found)

    def score_many(self, pairs: Iterable[Pair], recurrence: Recurrence) -> Iterator[int]:
        """Score (query, subject) pairs, in order."""
        for batch in batches_of(pairs):
            yield from (found.score for found in self._find(batch, recurrence, False))

    def align_pools(self, batch: PoolPairs, recurrence: Recurrence) -> AlignmentTable:
        """Align pairs of sequences of two pools, and count their columns; known scores save no time here.

        Raises
        ------
        InputError
            Also if queries have gap costs by position.
        """
        check_pairs(batch, recurrence)
        m, n = batch.places[:, 1], batch.places[:, 3]
        short = (m > 0) & (n > 0) & (direction_bytes(m, n) <= SHORT_BYTES) & (len(batch) > 1)
        parts = [
            (some, self._find_short(batch.take(some), recurrence)) for some in _parts(np.flatnonzero(short), m + n)
        ]
        if len(others := np.flatnonzero(~short)):
            alone = batch.take(others)
            found = [self._find([pair], recurrence, True)[0] for pair in alone.sequences()]
            traced = UncountedAlignments.from_raw(
                [(one.score, one.query_start, one.subject_start, one.cigar) for one in found]
            )
            parts.append((others, count_pools(traced, alone, recurrence.scoring.matrix)))
        return AlignmentTable.merge(parts)

    def _find(self, pairs: list[Pair], recurrence: Recurrence, align: bool) -> list[FoundAlignment]:
        """Find the alignments of some pairs; only scores are sure where they are not asked for."""
        scoring, mode, ends = recurrence.scoring, recurrence.mode, recurrence.ends
        bounds = _covering(
            recurrence, _different(query for query, _ in pairs if position_specific_rows(query) is not None)
        )
        found: dict[int, FoundAlignment] = {}
        short: dict[bool, list[int]] = {False: [], True: []}  # by whether the query is a profile
        for place, (query, subject) in enumerate(pairs):
            if not len(query) or not len(subject):
                found[place] = FoundAlignment(*reference.align(query, subject, scoring, mode, ends))
                continue
            bounds.lane_bits(len(query), len(subject))  # raises where 32 bits are not enough
            if len(pairs) > 1 and direction_bytes(len(query), len(subject)) <= SHORT_BYTES:
                short[position_specific_rows(query) is not None].append(place)
            else:
                found[place] = self._find_long((query, subject), recurrence, align)
        for are_profiles, places in short.items():
            if places:
                some = self._find_batch([pairs[place] for place in places], recurrence, are_profiles)
                found.update(zip(places, some, strict=True))
        return [found[place] for place in range(len(pairs))]

    def _find_batch(self, pairs: list[Pair], recurrence: Recurrence, are_profiles: bool) -> list[FoundAlignment]:
        """Find the alignments of short pairs whose queries are all profiles, or all sequences."""
        every, of_query = _placed([query for query, _ in pairs])
        subjects, of_subject = _placed([subject for _, subject in pairs])
        rows = rows_pool(every, recurrence.scoring) if are_profiles else None
        places = np.stack((of_query, of_subject), axis=1)
        queries = make_pool([codes_of(query) for query in every])
        table = self._find_short(PoolPairs(queries, make_pool(subjects), places, rows=rows), recurrence)
        starts = zip(table.score.tolist(), table.query_start.tolist(), table.subject_start.tolist(), strict=True)
        return [FoundAlignment(*one, table.cigar(k)) for k, one in enumerate(starts)]

    def _find_short(self, batch: PoolPairs, recurrence: Recurrence) -> AlignmentTable:
        """Align short pairs in as few launches as their sizes allow."""
        with self._device.active("aligning pairs"), self._handles.scratch.lent():
            return ShortPairs(self._handles, recurrence).align(batch)

    def _find_long(self, pair: Pair, recurrence: Recurrence, align: bool) -> FoundAlignment:
        """Do one pair with the whole device, and add its alignment up again."""
        query, subject = pair
        rows, subject_letters = position_specific_rows(query), letters_in(subject)
        if rows is None:
            letters = letters_of(recurrence.scoring, letters_in(codes_of(query)), subject_letters)
        else:
            letters = letters_by_row(rows)
        with self._device.active("aligning a pair"), self._handles.scratch.lent():
            one = LongPair(self._handles, (codes_of(query), subject), letters, recurrence)
            found = one.align() if align else FoundAlignment(one.score(), 0, 0, ())
        if align:
            aligned = _alignment(query, subject, recurrence, found)
            if aligned.recompute_score() != found.score:
                raise EngineError(
                    f"{self.info}: an alignment of {len(query):,} with {len(subject):,} residues adds up to "
                    f"{aligned.recompute_score()} instead of its score {found.score}; "
                    "please report it, and use --engine cpu"
                )
        return found

    def stop(self) -> None:
        """End the work of another thread after the running kernel, with an `EngineError`."""
        self._stopping.set()

    def close(self) -> None:
        """Release the device."""
        if self._closed or not self._device.is_here:
            return
        self._closed = True
        with self._device.active("closing"):
            self.kernels.close()
            del self._handles  # the stream ends while its context is current
        self._device.close()


def check_pairs(batch: PoolPairs, recurrence: Recurrence) -> None:
    """Check pairs for `PairAligner.align_pools`.

    Raises
    ------
    InputError
        If a score might not fit 32 bits, or gap costs are by position.
    ValueError
        If pairs, offsets or rows are not within or beside the pools.
    """
    rows = [] if batch.rows is None else [batch.rows]
    check_lengths(batch.places, _covering(recurrence, rows).lane_bits)


def batches_of(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
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


def _different(parts: Iterable[Side]) -> list[Side]:
    """Return objects that come again (the query of many hits) once, in order."""
    return list({id(part): part for part in parts}.values())


def _placed(parts: Sequence[Side]) -> tuple[list[Side], IntArray]:
    """Return the different ones of some objects, and the place of each among them, shape (n,)."""
    different = _different(parts)
    places = {id(part): place for place, part in enumerate(different)}
    return different, np.array([places[id(part)] for part in parts], dtype=np.int64)


def _covering(recurrence: Recurrence, queries: Sequence[QueryLike]) -> Recurrence:
    """Return the recurrence with bounds that hold for profiles; raise `InputError` where their gap costs vary."""
    rows = [query for query in queries if isinstance(query, QueryProfile)]
    refuse_position_gaps(rows)
    return recurrence.with_bounds_for(rows)


def _alignment(query: QueryLike, subject: ByteArray, recurrence: Recurrence, found: FoundAlignment) -> PairAlignment:
    return PairAlignment(
        codes_of(query), subject, recurrence.scoring, found.score, found.query_start, found.subject_start,
        found.cigar, query_rows=position_specific_rows(query),
    )  # fmt: skip
