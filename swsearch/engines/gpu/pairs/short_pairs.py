"""Many pairs in one launch, each aligned by one warp, with scratch memory for as many pairs as there are warps.

What belongs here packs pairs together and reads what one launch found; `long_pair` does one pair at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.engines.gpu.device import GpuMemoryError
from swsearch.engines.gpu.pairs.found import FoundAlignment, decode_runs
from swsearch.engines.gpu.pairs.handles import PairHandles
from swsearch.engines.gpu.pairs.letters import letters_in, letters_of
from swsearch.engines.gpu.pairs.plan import CELL_BYTES, direction_bytes
from swsearch.engines.gpu.variants import PairsVariant
from swsearch.engines.pair_base import Pair
from swsearch.recurrence import Recurrence

PAIR = np.dtype([("query", "<u8"), ("columns", "<u8"), ("rows", "<i4"), ("n", "<i4")])
"""A pair in device memory, as ``cuda/pairs.cu`` has it."""

CLASS_RATIO = 4
"""Pairs of one launch have directions of at least the longest's divided by this: each warp's scratch memory has room
for the longest."""

RUN_SHARE = 64
"""Runs that there is room for per pair; a pair that has more is aligned again, with more room."""


def size_of(pair: Pair) -> int:
    """Return the bytes of a pair's directions."""
    return direction_bytes(len(pair[0]), len(pair[1]))


def classes(sizes: Sequence[int]) -> list[list[int]]:
    """Group pairs, by their bytes of directions, into launches; longest first."""
    groups: list[list[int]] = []
    for place in sorted(range(len(sizes)), key=lambda place: (-sizes[place], place)):
        if not groups or sizes[place] * CLASS_RATIO < sizes[groups[-1][0]]:
            groups.append([])
        groups[-1].append(place)
    return groups


@dataclass(frozen=True)
class PackedPairs:
    """Pairs on the device.

    Parameters
    ----------
    variant : PairsVariant
        The kernel for them.
    table : ndarray, shape (n_pairs,), `PAIR`
        Where each pair's sequences begin and how long they are.
    queries, subjects, pairs, letters : int
        Addresses of the pools of queries and of subjects, of the table and of the lookup of scores.
    """

    variant: PairsVariant
    table: npt.NDArray[np.void]
    queries: int
    subjects: int
    pairs: int
    letters: int


class ShortPairs:
    """Aligns lists of pairs. The context must be current; scratch memory is given back after each launch.

    Parameters
    ----------
    handles : PairHandles
        Where they are aligned.
    recurrence : Recurrence
        What is computed.
    """

    def __init__(self, handles: PairHandles, recurrence: Recurrence) -> None:
        self._handles, self._scratch = handles, handles.scratch
        self._scoring, self._local, self._ends = recurrence.scoring, recurrence.is_local, recurrence.ends

    def align(self, pairs: Sequence[Pair]) -> list[FoundAlignment]:
        """Align pairs of codes, each of shape (n,), uint8, neither side empty; return the alignments in order."""
        found: dict[int, FoundAlignment] = {}
        for places in classes([size_of(pair) for pair in pairs]):
            left, room = places, RUN_SHARE
            while left:
                found.update(self._launch(pairs, left, room))
                left = [place for place in left if place not in found]
                room *= 8
        return [found[place] for place in range(len(pairs))]

    def _launch(self, pairs: Sequence[Pair], places: list[int], room: int) -> dict[int, FoundAlignment]:
        """Align the pairs at some places; those whose runs did not fit are missing."""
        handles, chosen = self._handles, [pairs[place] for place in places]
        mark = self._scratch.mark()
        packed = self._put([query for query, _ in chosen], [subject for _, subject in chosen])
        table = packed.table
        most_rows, most_columns = int(table["rows"].max()), int(table["n"].max())
        directions = max(map(size_of, chosen))
        most_runs = max(room * len(chosen), most_rows + most_columns)
        runs = self._scratch.take(4 * most_runs)
        results, run_places = self._scratch.take(16 * len(chosen)), self._scratch.take(4 * len(chosen))
        counters = self._scratch.take(8)
        handles.device.clear_async(counters, 8, handles.stream)
        edge = most_rows + most_columns
        sizes = (CELL_BYTES * most_columns, 4 * edge, 4 * edge, directions)
        blocks, warps = self._grid(packed.variant, sum(sizes), len(chosen))
        boundaries, edges, scratch_runs, all_directions = (
            self._scratch.take(blocks * warps * size) for size in sizes
        )
        ends, scoring = self._ends, self._scoring
        handles.run(
            handles.kernels.pairs(packed.variant),
            blocks,
            warps * 32,
            queries=packed.queries,
            subjects=packed.subjects,
            pairs=packed.pairs,
            n_pairs=len(chosen),
            table=packed.letters,
            free_query_start=int(ends.query_start),
            free_query_end=int(ends.query_end),
            free_subject_start=int(ends.subject_start),
            free_subject_end=int(ends.subject_end),
            open=scoring.gap_open,
            extend=scoring.gap_extend,
            one=1,
            most_rows=most_rows,
            most_columns=most_columns,
            boundaries=boundaries,
            edges=edges,
            scratch_runs=scratch_runs,
            directions=all_directions,
            direction_words=directions // 4,
            results=results,
            run_places=run_places,
            runs=runs,
            most_runs=most_runs,
            counters=counters,
        )
        handles.usage.cells += int((table["rows"].astype(np.int64) * table["n"]).sum())
        answers = handles.download(np.int32, (len(chosen), 4), results)
        starts = handles.download(np.uint32, len(chosen), run_places)
        n_runs = int(handles.download(np.uint32, 2, counters)[1])
        found = self._found(answers, starts, handles.download(np.uint32, min(n_runs, most_runs), runs))
        self._scratch.release(mark)
        return {place: each for place, each in zip(places, found, strict=True) if each is not None}

    def _put(self, queries: Sequence[ByteArray], subjects: Sequence[ByteArray]) -> PackedPairs:
        """Bring pairs and the lookup of their scores to the device."""
        query_pool, query_starts = _pool(queries)
        subject_pool, subject_starts = _pool(subjects)
        letters = letters_of(self._scoring, letters_in(query_pool), letters_in(subject_pool))
        table = np.empty(len(queries), dtype=PAIR)
        table["query"], table["columns"] = query_starts, subject_starts
        table["rows"], table["n"] = [len(query) for query in queries], [len(subject) for subject in subjects]
        put = self._handles.put
        addresses = (put(query_pool), put(letters.columns(subject_pool)), put(table), put(letters.table))
        return PackedPairs(PairsVariant(letters.count, self._local), table, *addresses)

    def _found(
        self, answers: npt.NDArray[np.int32], starts: npt.NDArray[np.uint32], runs: npt.NDArray[np.uint32]
    ) -> Iterator[FoundAlignment | None]:
        """Translate what the kernel found, pair by pair; None where its runs did not fit."""
        for start, (score, row, column, n_runs) in zip(starts.tolist(), answers.tolist(), strict=True):
            if n_runs < 0:
                yield None
            elif self._local and not score:
                yield FoundAlignment(0, 0, 0, ())
            else:
                cigar = tuple((length, op) for op, length in reversed(decode_runs(runs[start : start + n_runs])))
                yield FoundAlignment(score, row, column, cigar)

    def _grid(self, variant: PairsVariant, warp_bytes: int, n_pairs: int) -> tuple[int, int]:
        """Return blocks, and warps of each: as many as there are pairs and memory for."""
        info = self._handles.device.info
        most = min(n_pairs, self._scratch.left // warp_bytes)
        if not most:
            raise GpuMemoryError(
                f"one pair takes {warp_bytes >> 20} MiB of GPU memory and {self._scratch.left >> 20} MiB are left; "
                "allow more with --gpu-memory"
            )
        blocks = min(info.multiprocessors, most)
        return blocks, min(variant.block_warps(info.shared_limit), most // blocks)


def _pool(parts: Sequence[ByteArray]) -> tuple[ByteArray, list[int]]:
    """Lay sequences end to end, an array that comes again (the hits of a query) once; return where each begins."""
    starts: dict[int, int] = {}
    kept: list[ByteArray] = []
    size = 0
    for part in parts:
        if id(part) not in starts:
            starts[id(part)] = size
            kept.append(part)
            size += len(part)
    return np.concatenate(kept), [starts[id(part)] for part in parts]
