"""The CPU engine: the extension's scan, one subject per SIMD lane, over threads.

Its C++ is in ``cpu/search/``: ``scan_kernel.hpp`` holds the recurrence, ``search.cpp`` the threads. The chunk is
read as it lies in the database, a block of 64 subjects at a time. What saturates in narrow lanes the extension
scores again in wider ones before a call returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from swsearch import extension
from swsearch.blocks import Chunk, IntArray
from swsearch.engines.base import (
    Engine,
    LoadedChunk,
    Progress,
    QueryGroup,
    ScoreArray,
    scores_of_empty,
)
from swsearch.engines.cpu.queries import QueryArguments, recurrence_arguments, shift_cost
from swsearch.errors import OptionError
from swsearch.processors import available_processors
from swsearch.recurrence import Recurrence
from swsearch.scoring import QueryProfile

LANE_LAYOUTS = ("chosen", "lanes", "striped")
"""Uses of lanes: `Way` in ``cpu/search/search.hpp``, in its order."""


@dataclass(frozen=True)
class _Group:
    """Queries of a group, prepared for the extension.

    Parameters
    ----------
    places : ndarray, shape (n,), int64
        Places in the group of the queries that are not empty.
    queries : QueryArguments
        Queries that are not empty.
    """

    places: IntArray
    queries: QueryArguments


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
    lane_layout = LANE_LAYOUTS[0]
    """Use of lanes, set by tests and benchmarks; it changes no score."""

    def __init__(self, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise OptionError("threads", threads, "an integer >= 1")
        self.threads = threads or available_processors()
        self.instructions = extension.active_instruction_set()

    @property
    def description(self) -> str:
        """Instruction set and number of threads."""
        return f"cpu ({self.instructions}, {self.threads} thread{'' if self.threads == 1 else 's'})"

    def prepare(self, profiles: Sequence[QueryProfile], recurrence: Recurrence) -> QueryGroup:
        """Prepare a group of queries."""
        places = [place for place, profile in enumerate(profiles) if len(profile)]
        queries = QueryArguments.from_queries([profiles[place] for place in places], recurrence)
        return QueryGroup(profiles, recurrence, _Group(np.array(places, dtype=np.int64), queries))

    def load(self, chunk: Chunk) -> LoadedChunk:
        """Load a chunk, without memory of its own."""
        return LoadedChunk(chunk)

    def score(self, group: QueryGroup, loaded: LoadedChunk, progress: Progress | None = None) -> ScoreArray:
        """Score every query of a group against every subject of a chunk."""
        chunk: Chunk = loaded.chunk
        values = np.zeros((len(group.profiles), chunk.n_subjects), dtype=np.int32)
        lengths, filled = chunk.lengths, chunk.runs.n_nonempty  # descending, so the empty subjects stand last
        handle: _Group = group.handle
        covering = handle.queries.recurrence
        for query, profile in enumerate(group.profiles):
            if not len(profile):
                values[query] = scores_of_empty(0, lengths, group.recurrence)
                continue
            if filled:
                covering.lane_bits(len(profile), chunk.runs.longest)  # raises where 32 are not enough
            values[query, filled:] = scores_of_empty(profile, lengths[filled:], group.recurrence)
        # where no query is empty, the extension writes straight into the result
        whole = len(handle.places) == len(group.profiles)
        scores = values if whole else values[handle.places]
        self._search(handle.queries, chunk, scores, progress)
        if not whole:
            values[handle.places] = scores
        return values

    def _search(self, queries: QueryArguments, chunk: Chunk, values: ScoreArray, progress: Progress | None) -> None:
        """Call the extension, which writes ``values``, shape (n_queries, n_subjects), int32."""
        extension.load().search(
            *queries.arguments,
            np.ascontiguousarray(chunk.residues),
            np.ascontiguousarray(chunk.column_offsets),
            chunk.lengths,
            np.zeros(0, dtype=np.int64),  # all subjects, not only some
            False,
            *recurrence_arguments(queries.recurrence),
            self.threads,
            LANE_LAYOUTS.index(self.lane_layout),
            self.instructions,
            progress,
            values,
            np.zeros(values.shape, dtype=np.uint8),  # flags what passes the widest lane; `score` has refused that
            *shift_cost(queries.recurrence),
        )
