"""Many pairs in one launch, each aligned by one warp, with scratch memory for as many pairs as there are warps.

What belongs here packs pairs together and reads what one launch found; `long_pair` does one pair at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swsearch.alignment_table import AlignmentTable
from swsearch.blocks import IntArray
from swsearch.engines.cpu.columns import UncountedAlignments, count_pools
from swsearch.engines.gpu.device import GpuMemoryError
from swsearch.engines.gpu.pairs.found import decode_answers
from swsearch.engines.gpu.pairs.handles import PairHandles
from swsearch.engines.gpu.pairs.letters import letters_by_row, letters_in, letters_of
from swsearch.engines.gpu.pairs.plan import CELL_BYTES, direction_bytes
from swsearch.engines.gpu.variants import PairsVariant
from swsearch.engines.pools import PoolPairs, SequencePool, subset_of
from swsearch.recurrence import Recurrence
from swsearch.scoring import QueryProfile

PAIR = np.dtype([("query", "<u8"), ("columns", "<u8"), ("rows", "<i4"), ("n", "<i4")])
"""A pair in device memory, as ``cuda/pairs.cu`` has it."""

CLASS_RATIO = 4
"""Pairs of one launch have directions of at least the longest's divided by this: each warp's scratch memory has room
for the longest."""

RUN_SHARE = 64
"""Runs that there is room for per pair; a pair that has more is aligned again, with more room."""


def classes(sizes: IntArray) -> list[IntArray]:
    """Group pairs, by their bytes of directions, shape (m,), into launches: places of each, longest first."""
    order = np.argsort(-sizes, kind="stable")
    descending = sizes[order]
    groups: list[IntArray] = []
    begin = 0
    while begin < len(order):
        end = int(np.searchsorted(-CLASS_RATIO * descending, -descending[begin], side="right"))
        groups.append(order[begin:end])
        begin = end
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
        Addresses of the pools of queries and of subjects, of the table and of the lookup of scores; 0 for queries
        where these are profiles, whose rows are in the lookup.
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

    def align(self, batch: PoolPairs) -> AlignmentTable:
        """Align pairs, no side of which is empty, and whose directions fit the scratch memory.

        Returns
        -------
        AlignmentTable
            One per pair, in their order.
        """
        parts: list[tuple[IntArray, AlignmentTable]] = []
        for group in classes(direction_bytes(batch.places[:, 1], batch.places[:, 3])):
            left, room = group, RUN_SHARE
            while len(left):
                fitted, found = self._launch(batch.take(left), room)
                done = left[fitted]
                parts.append((done, count_pools(found, batch.take(done), self._scoring.matrix)))
                left = left[~fitted]
                room *= 8
        return AlignmentTable.merge(parts)

    def _launch(self, batch: PoolPairs, room: int) -> tuple[npt.NDArray[np.bool_], UncountedAlignments]:
        """Align some pairs; say of which the runs fitted, and what was found for these."""
        handles = self._handles
        mark = self._scratch.mark()
        packed = self._put(batch)
        table = packed.table
        most_rows, most_columns = int(table["rows"].max()), int(table["n"].max())
        directions = int(direction_bytes(table["rows"].astype(np.int64), table["n"].astype(np.int64)).max())
        most_runs = max(room * len(batch), most_rows + most_columns)
        runs = self._scratch.take(4 * most_runs)
        results, run_places = self._scratch.take(16 * len(batch)), self._scratch.take(4 * len(batch))
        counters = self._scratch.take(8)
        handles.device.clear_async(counters, 8, handles.stream)
        edge = most_rows + most_columns
        sizes = (CELL_BYTES * most_columns, 4 * edge, 4 * edge, directions)
        blocks, warps = self._grid(packed.variant, sum(sizes), len(batch))
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
            n_pairs=len(batch),
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
        answers = handles.download(np.int32, (len(batch), 4), results)
        starts = handles.download(np.uint32, len(batch), run_places)
        n_runs = int(handles.download(np.uint32, 2, counters)[1])
        found = handles.download(np.uint32, min(n_runs, most_runs), runs)
        self._scratch.release(mark)
        return decode_answers(answers, starts, found, self._local)

    def _put(self, batch: PoolPairs) -> PackedPairs:
        """Copy pairs and the lookup of their scores to the device, each sequence once."""
        table, rows = np.empty(len(batch), dtype=PAIR), batch.rows
        (query_pool, query_offsets), query_of = _used(batch.queries, batch.pairs[:, 0])
        (subject_pool, subject_offsets), subject_of = _used(batch.subjects, batch.pairs[:, 1])
        table["query"], table["columns"] = query_offsets[query_of], subject_offsets[subject_of]
        table["rows"], table["n"] = np.diff(query_offsets)[query_of], np.diff(subject_offsets)[subject_of]
        subject_letters = letters_in(subject_pool)
        if rows is None:
            letters = letters_of(self._scoring, letters_in(query_pool), subject_letters)
        else:
            letters = letters_by_row(rows_of_pool(rows, batch.queries, np.unique(batch.pairs[:, 0])))
        put = self._handles.put
        at = put(query_pool) if rows is None else 0
        addresses = (at, put(letters.columns(subject_pool)), put(table), put(letters.table))
        return PackedPairs(PairsVariant(letters.count, self._local), table, *addresses)

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


def _used(pool: SequencePool, chosen: IntArray) -> tuple[SequencePool, IntArray]:
    """Return the sequences of a pool that are used, and the place of each of the chosen among them."""
    used, places = np.unique(chosen, return_inverse=True)
    return subset_of(pool, used), np.asarray(places).reshape(-1)


def rows_of_pool(rows: QueryProfile, pool: SequencePool, chosen: IntArray) -> QueryProfile:
    """Return the rows of some sequences of a pool, ascending places of shape (n,), of those of all its residues."""
    offsets = pool[1]
    places = np.concatenate([np.arange(offsets[place], offsets[place + 1]) for place in chosen.tolist()])
    return QueryProfile(rows.scores[places], rows.codes[places], is_specific=True)
