"""The CPU engine: SIMD kernels of two maintained libraries, over threads.

Chosen by measurement (``benchmarks/results/library_choice.txt``): pyopal puts a subject in each lane and scores
hundreds of them in one call, parasail stripes one subject at a time. pyopal is faster up to about 4,000 query
residues, most of all for short queries on several threads, because parasail's calls from Python, one a
subject, queue for the interpreter lock. parasail is faster beyond, does not need many subjects at once, takes the
database's bytes as they lie, has global and semi-global kernels with lanes to choose, and says what saturated.
`kernel_for` decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from swsearch.blocks import Chunk, IntArray, deinterleave
from swsearch.engines import opal_library, parasail_library
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
from swsearch.engines.parasail_library import ScoreProfile
from swsearch.errors import OptionError
from swsearch.scoring import LANE_BITS, Mode, Profile, Scoring, may_start_at

TASK_CELLS = 40_000_000
"""Cells of a unit of work, about 3 ms: short enough to balance threads and to stop soon after Ctrl-C."""

OPAL_TASK_SUBJECTS = 512
"""Least subjects of a unit of work for pyopal: fewer leave lanes idle while the last subjects finish."""

OPAL_PIECE_BLOCKS = 128
"""Blocks of a chunk that are encoded for pyopal at a time, while the threads score the piece before."""

OPAL_LONGEST_QUERY = 4_500
"""Query residues beyond which parasail is the faster library."""


Kernel = Literal["opal", "parasail"]
"""Which library scores."""


class _Rows:
    """A chunk's subjects one after the other, with the addresses of their codes."""

    def __init__(self, chunk: Chunk) -> None:
        self._rows = [deinterleave(block) for block in chunk]
        addresses = [
            row.ctypes.data + np.arange(chunk.lanes(block).stop - chunk.lanes(block).start) * row.shape[1]
            for block, row in enumerate(self._rows)
        ]
        self.addresses: list[int] = np.concatenate(addresses).tolist() if addresses else []
        self.lengths: list[int] = chunk.lengths.tolist()


class _Subjects:
    """A loaded chunk in the layouts of both libraries, each made when first needed."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk
        self._pieces: dict[int, opal_library.Subjects] = {}

    @cached_property
    def rows(self) -> _Rows:
        """For parasail."""
        return _Rows(self._chunk)

    def pieces(self) -> Iterator[tuple[slice, opal_library.Subjects]]:
        """For pyopal: yield runs of subjects, by their places in the chunk, as they are encoded."""
        chunk = self._chunk
        for first in range(0, chunk.n_blocks, OPAL_PIECE_BLOCKS):
            last = min(first + OPAL_PIECE_BLOCKS, chunk.n_blocks)
            if first not in self._pieces:
                self._pieces[first] = opal_library.Subjects(chunk, first, last)
            yield slice(chunk.lanes(first).start, chunk.lanes(last - 1).stop), self._pieces[first]


class _Profiles:
    """A query in the layouts of both libraries, each made when first needed."""

    def __init__(self, profile: Profile, scoring: Scoring, mode: Mode) -> None:
        self._arguments = (profile, scoring, mode)
        self._by_bits: dict[int, ScoreProfile] = {}

    def at(self, bits: int) -> ScoreProfile:
        """Return parasail's profile for a lane width."""
        if bits not in self._by_bits:
            self._by_bits[bits] = ScoreProfile(*self._arguments, bits)
        return self._by_bits[bits]

    @cached_property
    def opal(self) -> opal_library.Query:
        """The query as pyopal wants it."""
        return opal_library.Query(*self._arguments[:2])


def kernel_for(query_length: int, n_subjects: int, scoring: Scoring, mode: Mode) -> Kernel:
    """Choose the library for a query; either gives the same scores."""
    many = n_subjects >= OPAL_TASK_SUBJECTS
    if many and query_length <= OPAL_LONGEST_QUERY and opal_library.can_score(scoring, mode):
        return "opal"
    return "parasail"


class CpuEngine(Engine):
    """Scores on the CPU through pyopal and parasail.

    Parameters
    ----------
    threads : int, optional
        Worker threads; by default one for each processor that this process may use.
    """

    name = "cpu"
    kernel = staticmethod(kernel_for)
    """Chooses the library for a query; tests choose otherwise."""

    def __init__(self, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise OptionError("threads", threads, "an integer >= 1")
        self.threads = threads or available_processors()
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="swsearch")

    @property
    def description(self) -> str:
        """Library, instruction set and number of threads."""
        plural = "" if self.threads == 1 else "s"
        return (
            f"cpu (pyopal {opal_library.version()}, parasail {parasail_library.version()}, "
            f"{parasail_library.instruction_set()}, {self.threads} thread{plural})"
        )

    def prepare(self, profiles: Sequence[Profile], scoring: Scoring, mode: Mode) -> QueryGroup:
        """See `Engine.prepare`."""
        return QueryGroup(profiles, scoring, mode, [_Profiles(profile, scoring, mode) for profile in profiles])

    def load(self, chunk: Chunk) -> LoadedChunk:
        """See `Engine.load`. Takes as much memory again as the chunk."""
        return LoadedChunk(chunk, _Subjects(chunk))

    def score(self, group: QueryGroup, loaded: LoadedChunk, progress: Progress | None = None) -> Scores:
        """See `Engine.score`."""
        chunk: Chunk = loaded.chunk
        shape = (len(group.profiles), chunk.n_subjects)
        values = np.zeros(shape, dtype=np.int32)
        saturated = np.zeros(shape, dtype=np.bool_)
        filled = int(np.count_nonzero(chunk.lengths))  # descending, so the empty subjects stand last
        futures: dict[Future[None], int] = {}
        start = first_bits(group)
        subjects: _Subjects = loaded.handle
        by_opal: list[int] = []
        for query, profile in enumerate(group.profiles):
            if not len(profile):
                values[query] = empty_scores(0, chunk.lengths, group)
                continue
            values[query, filled:] = empty_scores(len(profile), chunk.lengths[filled:], group)
            if self.kernel(len(profile), filled, group.scoring, group.mode) == "opal":
                by_opal.append(query)
                continue
            profiles: _Profiles = group.handle[query]
            for task in cut_tasks(chunk.lengths[:filled], len(profile)):
                bits = start or group.scoring.lane_bits(group.mode, len(profile), int(chunk.lengths[task.start]))
                target = (values[query], saturated[query])
                future = self._pool.submit(_run, profiles.at(bits), subjects.rows, task, *target)
                futures[future] = _cells(profile, chunk, task)
        for place, piece in subjects.pieces() if by_opal else ():
            lengths = chunk.lengths[place.start : min(place.stop, filled)]
            for query in by_opal:
                profile, opal_query = group.profiles[query], group.handle[query].opal
                for task in cut_tasks(lengths, len(profile), OPAL_TASK_SUBJECTS):
                    whole = slice(place.start + task.start, place.start + task.stop)
                    future = self._pool.submit(_run_opal, opal_query, piece, task, values[query, whole])
                    futures[future] = _cells(profile, chunk, whole)
        self._wait(futures, progress)
        return Scores(values, saturated, start or LANE_BITS[1])

    def rescore(
        self, group: QueryGroup, loaded: LoadedChunk, query: int, subjects: IntArray, bits: int
    ) -> tuple[ScoreArray, npt.NDArray[np.bool_]]:
        """See `Engine.rescore`."""
        profile: ScoreProfile = group.handle[query].at(bits)
        rows: _Rows = loaded.handle.rows

        def work(part: IntArray) -> tuple[list[int], list[bool]]:
            return profile.score([rows.addresses[i] for i in part], [rows.lengths[i] for i in part])

        parts = [subjects[k :: self.threads] for k in range(self.threads)]
        results = list(self._pool.map(work, parts))
        values = np.empty(len(subjects), dtype=np.int32)
        saturated = np.empty(len(subjects), dtype=np.bool_)
        for k, (scores, flags) in enumerate(results):
            values[k :: self.threads], saturated[k :: self.threads] = scores, flags
        return values, saturated

    def _wait(self, futures: dict[Future[None], int], progress: Progress | None) -> None:
        try:
            for future in as_completed(futures):
                future.result()
                if progress is not None:
                    progress(futures[future])
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    def close(self) -> None:
        """Stop the threads; work under way is finished, work in the queue is dropped."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def first_bits(group: QueryGroup) -> int | None:
    """Return the lane width that a whole group starts with, or None to choose by the lengths of each task.

    Local scores are small for nearly every subject, so the narrowest lane that holds the costs is tried first.
    Global and semi-global values grow with the lengths, which say beforehand what lane they need.
    """
    if group.mode != "local":
        return None
    return next((bits for bits in LANE_BITS if may_start_at(bits, group.mode, group.scoring)), LANE_BITS[-1])


def cut_tasks(lengths: npt.NDArray[np.int32], query_length: int, least: int = 1) -> list[slice]:
    """Cut subjects into runs of about `TASK_CELLS` cells, or ``least`` subjects if those have more."""
    if not len(lengths):
        return []
    cells = np.cumsum(lengths, dtype=np.int64) * query_length
    edges = [0]
    while edges[-1] < len(lengths):
        done = int(cells[edges[-1] - 1]) if edges[-1] else 0
        full = int(np.searchsorted(cells, done + TASK_CELLS)) + 1
        edges.append(min(max(full, edges[-1] + least), len(lengths)))
    return [slice(a, b) for a, b in pairwise(edges)]


def _cells(profile: Profile, chunk: Chunk, task: slice) -> int:
    return len(profile) * int(chunk.lengths[task].sum(dtype=np.int64))


def _run_opal(query: opal_library.Query, subjects: opal_library.Subjects, task: slice, values: ScoreArray) -> None:
    values[:] = subjects.score(query, task.start, task.stop)


def _run(
    profile: ScoreProfile, rows: _Rows, task: slice, values: ScoreArray, saturated: npt.NDArray[np.bool_]
) -> None:
    scores, flags = profile.score(rows.addresses[task], rows.lengths[task])
    values[task], saturated[task] = scores, flags
