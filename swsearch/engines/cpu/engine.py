"""The CPU engine: the extension's scan, one subject per SIMD lane, over threads.

Its C++ is in ``cpu/search/``: ``scan_kernel.hpp`` holds the recurrence, ``search.cpp`` the threads. The chunk is
read as it lies in the database, a block of 64 subjects at a time. What saturates in narrow lanes the extension
scores again in wider ones before a call returns.
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
    empty_scores,
)
from swsearch.engines.cpu import extension
from swsearch.errors import OptionError
from swsearch.processors import available_processors
from swsearch.recurrence import Recurrence
from swsearch.scoring import LANE_BITS, Mode, QueryRows, fits_lane, may_start_at

_MODES: dict[Mode, int] = {"local": 0, "global": 1, "semiglobal": 2}
"""Mode's values in ``cpu/search/scan.hpp``."""

WAYS = ("chosen", "lanes", "striped")
"""How lanes are used: `Way` in ``cpu/search/search.hpp``, in its order."""

_LONGEST = 1 << 20
"""Lengths from here on are not tried: hardly any scoring system would fit lanes of 16 bits there."""


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
    """How lanes are used; tests and benchmarks set it, and the scores are the same."""

    def __init__(self, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise OptionError("threads", threads, "an integer >= 1")
        self.threads = threads or available_processors()
        self.instructions = extension.chosen()

    @property
    def description(self) -> str:
        """Instruction set and number of threads."""
        return f"cpu ({self.instructions}, {self.threads} thread{'' if self.threads == 1 else 's'})"

    def prepare(self, profiles: Sequence[QueryRows], recurrence: Recurrence) -> QueryGroup:
        """See `Engine.prepare`."""
        places = [place for place, profile in enumerate(profiles) if len(profile)]
        codes = [profiles[place].codes for place in places]
        offsets = np.zeros(len(codes) + 1, dtype=np.int64)
        offsets[1:] = np.cumsum([len(each) for each in codes])
        joined = np.concatenate(codes) if codes else np.zeros(0, dtype=np.uint8)
        longest = np.array([longest_subject(len(each), recurrence, 16) for each in codes], dtype=np.int32)
        handle = _Queries(np.array(places, dtype=np.int64), joined, offsets, longest)
        return QueryGroup(profiles, recurrence, handle)

    def load(self, chunk: Chunk) -> LoadedChunk:
        """See `Engine.load`. Takes no memory of its own."""
        return LoadedChunk(chunk)

    def score(self, group: QueryGroup, loaded: LoadedChunk, progress: Progress | None = None) -> ScoreArray:
        """See `Engine.score`."""
        chunk: Chunk = loaded.chunk
        values = np.zeros((len(group.profiles), chunk.n_subjects), dtype=np.int32)
        lengths, filled = chunk.lengths, chunk.runs.n_filled  # descending, so the empty subjects stand last
        for query, profile in enumerate(group.profiles):
            if not len(profile):
                values[query] = empty_scores(0, lengths, group.recurrence)
                continue
            if filled:
                group.recurrence.lane_bits(len(profile), chunk.runs.longest)  # raises where 32 are not enough
            values[query, filled:] = empty_scores(len(profile), lengths[filled:], group.recurrence)
        queries: _Queries = group.handle
        # where no query is empty, the extension writes straight into the result
        whole = len(queries.places) == len(group.profiles)
        found = values if whole else values[queries.places]
        self._search(group, queries, chunk, found, progress)
        if not whole:
            values[queries.places] = found
        return values

    def _search(
        self,
        group: QueryGroup,
        queries: _Queries,
        chunk: Chunk,
        values: ScoreArray,
        progress: Progress | None,
    ) -> None:
        """Call the extension, which writes ``values``, shape (n_queries, n_subjects), int32."""
        extension.load().search(
            queries.codes,
            queries.offsets,
            queries.longest_16,
            np.ascontiguousarray(chunk.residues),
            np.ascontiguousarray(chunk.column_offsets),
            chunk.lengths,
            np.zeros(0, dtype=np.int64),  # all subjects, not only some
            False,
            *what_is_computed(group.recurrence),
            self.threads,
            WAYS.index(self.way),
            self.instructions,
            progress,
            values,
            np.zeros(values.shape, dtype=np.uint8),  # flags what passes the widest lane; `score` has refused that
        )


def what_is_computed(recurrence: Recurrence) -> tuple[npt.NDArray[np.int8], int, int, int, int, int]:
    """Return what the extension takes of a recurrence: scores, gap costs, mode, lanes to begin with and to end with.

    The scores have shape (32, 32), the costs are those of a gap's first residue and of each other one, and lanes are
    in bits.
    """
    scoring, mode = recurrence.scoring, recurrence.mode
    first_bits = next((bits for bits in LANE_BITS if may_start_at(bits, mode, scoring)), LANE_BITS[-1])
    scores = np.ascontiguousarray(scoring.matrix.scores.astype(np.int8))
    return scores, scoring.gap_first, scoring.gap_extend, _MODES[mode], first_bits, LANE_BITS[-1]


@lru_cache(maxsize=1024)
def longest_subject(query_length: int, recurrence: Recurrence, bits: int) -> int:
    """Return the length up to which every subject's values fit a lane, whatever it scores; at most 1,048,576."""

    def too_long(length: int) -> bool:
        return not fits_lane(bits, *recurrence.score_range(query_length, length), recurrence.scoring)

    return bisect_left(range(1, _LONGEST), True, key=too_long)
