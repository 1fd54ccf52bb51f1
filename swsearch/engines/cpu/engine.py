"""The CPU engine: the extension's scan, one subject a SIMD lane, over threads.

Its C++ is in ``cpu/``: `scan_kernel.hpp` holds the recurrence, `search.cpp` the threads. The chunk is read as it
lies in the database, a block of 64 subjects at a time. What saturates in narrow lanes is scored again in wider ones
before a call returns, so that nothing is ever flagged here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import Chunk, IntArray
from swsearch.engines.base import (
    Engine,
    LoadedChunk,
    Progress,
    QueryGroup,
    ScoreArray,
    Scores,
    available_processors,
    empty_scores,
)
from swsearch.engines.cpu import extension
from swsearch.errors import OptionError
from swsearch.scoring import LANE_BITS, Mode, Profile, Scoring, fits_lane, may_start_at

_MODES: dict[Mode, int] = {"local": 0, "global": 1, "semiglobal": 2}
"""Mode's values in ``cpu/search/scan.hpp``."""

WAYS = ("chosen", "lanes", "striped")
"""How lanes are used: `Way` in ``cpu/search/search.hpp``, in its order."""

_LONGEST = 1 << 20
"""Longer subjects than lanes of 16 bits hold in any global or semi-global alignment that scores at all."""


@dataclass(frozen=True)
class _Queries:
    """What the extension takes of a group: its queries that are not empty.

    Parameters
    ----------
    places : ndarray, shape (n,), int64
        Their places in the group.
    codes : ndarray, shape (total length,), uint8
        One after the other.
    offsets : ndarray, shape (n + 1,), int64
        Where each begins, and the last one ends.
    longest_16 : ndarray, shape (n,), int32
        The longest subject that lanes of 16 bits hold, whatever it scores.
    """

    places: IntArray
    codes: ByteArray
    offsets: IntArray
    longest_16: npt.NDArray[np.int32]

    def one(self, query: int) -> _Queries:
        """Return the query at a place of the group alone, which is not empty."""
        k = int(np.searchsorted(self.places, query))
        codes = self.codes[self.offsets[k] : self.offsets[k + 1]]
        ends = np.array([0, len(codes)], dtype=np.int64)
        return _Queries(self.places[k : k + 1], codes, ends, self.longest_16[k : k + 1])


class CpuEngine(Engine):
    """Scores on the CPU.

    Parameters
    ----------
    threads : int, optional
        Worker threads; by default one for each processor that this process may use.

    Raises
    ------
    OptionError
        If ``threads`` is less than one, or the environment asks for instructions that this machine lacks.
    EngineError
        If the extension was not built.
    """

    name = "cpu"
    way = WAYS[0]
    """How lanes are used; tests and benchmarks choose, and the scores are the same."""

    def __init__(self, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise OptionError("threads", threads, "an integer >= 1")
        self.threads = threads or available_processors()
        self.instructions = extension.chosen()

    @property
    def description(self) -> str:
        """Instruction set and number of threads."""
        return f"cpu ({self.instructions}, {self.threads} thread{'' if self.threads == 1 else 's'})"

    def prepare(self, profiles: Sequence[Profile], scoring: Scoring, mode: Mode) -> QueryGroup:
        """See `Engine.prepare`."""
        places = [place for place, profile in enumerate(profiles) if len(profile)]
        codes = [profiles[place].codes for place in places]
        offsets = np.zeros(len(codes) + 1, dtype=np.int64)
        offsets[1:] = np.cumsum([len(each) for each in codes])
        joined = np.concatenate(codes) if codes else np.zeros(0, dtype=np.uint8)
        longest = np.array([longest_subject(len(each), scoring, mode, 16) for each in codes], dtype=np.int32)
        handle = _Queries(np.array(places, dtype=np.int64), joined, offsets, longest)
        return QueryGroup(profiles, scoring, mode, handle)

    def load(self, chunk: Chunk) -> LoadedChunk:
        """See `Engine.load`. Takes no memory of its own."""
        return LoadedChunk(chunk)

    def score(self, group: QueryGroup, loaded: LoadedChunk, progress: Progress | None = None) -> Scores:
        """See `Engine.score`; nothing is flagged.

        Raises
        ------
        InputError
            If a score might not fit 32 bits.
        """
        chunk: Chunk = loaded.chunk
        values = np.zeros((len(group.profiles), chunk.n_subjects), dtype=np.int32)
        filled = int(np.count_nonzero(chunk.lengths))  # descending, so the empty subjects stand last
        for query, profile in enumerate(group.profiles):
            if not len(profile):
                values[query] = empty_scores(0, chunk.lengths, group)
                continue
            if filled:
                group.scoring.lane_bits(group.mode, len(profile), int(chunk.lengths[0]))
            values[query, filled:] = empty_scores(len(profile), chunk.lengths[filled:], group)
        queries: _Queries = group.handle
        # every query has a row of its own in the result: without empty ones, the extension writes where it stays
        whole = len(queries.places) == len(group.profiles)
        found = values if whole else values[queries.places]
        self._search(group, queries, chunk, found, np.zeros(found.shape, dtype=np.uint8), None, LANE_BITS, progress)
        if not whole:
            values[queries.places] = found
        return Scores(values, np.zeros(values.shape, dtype=np.bool_), LANE_BITS[-1])

    def rescore(
        self, group: QueryGroup, loaded: LoadedChunk, query: int, subjects: IntArray, bits: int
    ) -> tuple[ScoreArray, npt.NDArray[np.bool_]]:
        """See `Engine.rescore`; no subject may be empty. Here 8 bits are a width like the others."""
        queries: _Queries = group.handle.one(query)
        limit = np.where(bits == 32, 0, _LONGEST)
        queries = _Queries(queries.places, queries.codes, queries.offsets, np.full(1, limit, dtype=np.int32))
        order = np.argsort(subjects)
        found = np.zeros((1, len(subjects)), dtype=np.int32)
        flags = np.zeros((1, len(subjects)), dtype=np.uint8)
        chosen = np.ascontiguousarray(subjects[order], dtype=np.int64)
        self._search(group, queries, loaded.chunk, found, flags, chosen, (bits,), None)
        values, saturated = np.empty(len(subjects), dtype=np.int32), np.empty(len(subjects), dtype=np.bool_)
        values[order], saturated[order] = found[0], flags[0] != 0
        return values, saturated

    def _search(
        self,
        group: QueryGroup,
        queries: _Queries,
        chunk: Chunk,
        values: ScoreArray,
        saturated: npt.NDArray[np.uint8],
        chosen: IntArray | None,
        widths: Sequence[int],
        progress: Progress | None,
    ) -> None:
        """Call the extension; ``values`` and ``saturated`` are written."""
        scoring = group.scoring
        usable = [bits for bits in widths if len(widths) == 1 or may_start_at(bits, group.mode, scoring)]
        extension.load().search(
            queries.codes,
            queries.offsets,
            queries.longest_16,
            np.ascontiguousarray(chunk.residues),
            np.ascontiguousarray(chunk.column_offsets),
            np.ascontiguousarray(chunk.lengths),
            np.zeros(0, dtype=np.int64) if chosen is None else chosen,
            chosen is not None,
            np.ascontiguousarray(scoring.matrix.scores.astype(np.int8)),
            scoring.gap_first,
            scoring.gap_extend,
            _MODES[group.mode],
            usable[0] if usable else LANE_BITS[-1],
            widths[-1],
            self.threads,
            WAYS.index(self.way),
            self.instructions,
            progress,
            values,
            saturated,
        )


@lru_cache(maxsize=1024)
def longest_subject(query_length: int, scoring: Scoring, mode: Mode, bits: int) -> int:
    """Return the length up to which every subject's values fit a lane, whatever it scores; at most 1,048,576."""

    def too_long(length: int) -> bool:
        return not fits_lane(bits, *scoring.score_range(mode, query_length, length), scoring)

    return bisect_left(range(1, _LONGEST), True, key=too_long)
