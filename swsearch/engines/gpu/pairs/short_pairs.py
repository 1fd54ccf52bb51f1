"""Many pairs in one launch, each aligned by one warp, with scratch memory for as many as there are warps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from swsearch.alphabet import ByteArray
from swsearch.engines.gpu.device import Device, GpuMemoryError
from swsearch.engines.gpu.kernels import Kernels
from swsearch.engines.gpu.pairs.letters import letters_in, letters_of
from swsearch.engines.gpu.pairs.long_pair import Found, PairUsage, Scratch, decode_runs, run_timed
from swsearch.engines.gpu.pairs.plan import CELL_BYTES, direction_bytes
from swsearch.engines.gpu.variants import PairsVariant
from swsearch.recurrence import Recurrence

PAIR = np.dtype([("query", "<u8"), ("columns", "<u8"), ("rows", "<i4"), ("n", "<i4")])
"""A pair in device memory, as ``cuda/pairs.cu`` has it."""

CLASS_RATIO = 4
"""Pairs of one launch have directions of at least the longest's divided by this: each warp's scratch memory has room
for the longest."""

RUN_SHARE = 64
"""Runs that there is room for a pair; what has more is aligned again, with more room."""

Pair = tuple[ByteArray, ByteArray]


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


class ShortPairs:
    """Aligns lists of pairs. The context must be current.

    Parameters
    ----------
    device, kernels, stream, scratch, usage
        As for `swsearch.engines.gpu.pairs.long_pair.LongPair`; the scratch memory is given back after each launch.
    recurrence : Recurrence
        What is computed.
    """

    def __init__(
        self,
        device: Device,
        kernels: Kernels,
        stream: Any,
        scratch: Scratch,
        recurrence: Recurrence,
        usage: PairUsage,
    ) -> None:
        self._device, self._kernels, self._stream, self._scratch = device, kernels, stream, scratch
        self._scoring, self._local, self._ends = recurrence.scoring, recurrence.is_local, recurrence.ends
        self._usage = usage

    def align(self, pairs: Sequence[Pair]) -> list[Found]:
        """Align pairs of which neither side is empty, in order."""
        found: dict[int, Found] = {}
        for places in classes([size_of(pair) for pair in pairs]):
            left, room = places, RUN_SHARE
            while left:
                found.update(self._launch(pairs, left, room))
                left = [place for place in left if place not in found]
                room *= 8
        return [found[place] for place in range(len(pairs))]

    def _launch(self, pairs: Sequence[Pair], places: list[int], room: int) -> dict[int, Found]:
        """Align the pairs at some places; those whose runs did not fit are missing."""
        chosen = [pairs[place] for place in places]
        queries, query_starts = _pool([query for query, _ in chosen])
        subjects, subject_starts = _pool([subject for _, subject in chosen])
        letters = letters_of(self._scoring, letters_in(queries), letters_in(subjects))
        table = np.empty(len(chosen), dtype=PAIR)
        table["query"], table["columns"] = query_starts, subject_starts
        table["rows"], table["n"] = [len(query) for query, _ in chosen], [len(subject) for _, subject in chosen]
        most_rows, most_columns = int(table["rows"].max()), int(table["n"].max())
        directions = max(map(size_of, chosen))
        mark = self._scratch.mark()
        most_runs = max(room * len(chosen), most_rows + most_columns)
        given = (queries, letters.columns(subjects), table, letters.table)
        codes, columns, pair_list, lookup = (self._scratch.put(data, self._stream) for data in given)
        run_list = self._scratch.take(4 * most_runs)
        results, run_places = self._scratch.take(16 * len(chosen)), self._scratch.take(4 * len(chosen))
        counters = self._scratch.take(8)
        self._device.clear_async(counters, 8, self._stream)
        variant = PairsVariant(letters.count, self._local)
        edge = most_rows + most_columns
        warp_bytes = directions + CELL_BYTES * most_columns + 8 * edge
        blocks, warps = self._grid(variant, warp_bytes, len(chosen))
        resident = blocks * warps
        sizes = (CELL_BYTES * most_columns, 4 * edge, 4 * edge, directions)
        scratch = [self._scratch.take(resident * size) for size in sizes]
        ends, scoring = self._ends, self._scoring
        self._usage.kernel_seconds += run_timed(
            self._device, self._stream, self._kernels.pairs(variant), blocks, warps * 32,
            (
                codes, columns, pair_list, len(chosen), lookup,
                int(ends.query_start), int(ends.query_end), int(ends.subject_start), int(ends.subject_end),
                scoring.gap_open, scoring.gap_extend, 1, most_rows, most_columns,
                *scratch, directions // 4, results, run_places, run_list, most_runs, counters,
            ),
        )  # fmt: skip
        self._usage.launches += 1
        self._usage.cells += int((table["rows"].astype(np.int64) * table["n"]).sum())
        self._usage.peak_bytes = max(self._usage.peak_bytes, self._scratch.peak)
        answers = np.empty((len(chosen), 4), dtype=np.int32)
        starts, counts = np.empty(len(chosen), dtype=np.uint32), np.empty(2, dtype=np.uint32)
        self._device.download(answers, results)
        self._device.download(starts, run_places)
        self._device.download(counts, counters)
        runs = np.empty(min(int(counts[1]), most_runs), dtype=np.uint32)
        self._device.download(runs, run_list)
        self._scratch.release(mark)
        found = {}
        for place, start, (score, row, column, n_runs) in zip(places, starts.tolist(), answers.tolist(), strict=True):
            if n_runs >= 0:
                cigar = tuple((length, op) for op, length in reversed(decode_runs(runs[start : start + n_runs])))
                found[place] = Found(score, row, column, cigar) if not self._local or score else Found(0, 0, 0, ())
        return found

    def _grid(self, variant: PairsVariant, warp_bytes: int, n_pairs: int) -> tuple[int, int]:
        """Return blocks, and warps of each: as many as there are pairs and memory for."""
        info = self._device.info
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
