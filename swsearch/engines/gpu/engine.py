"""The GPU engine: hand-written kernels with the interface that every engine has.

A chunk's residues are copied and rearranged once (`GpuEngine.load`) and may stay on the device. Looking for hits
(`GpuEngine.start_scan`) starts the kernels of a chunk on one of some slots and returns; while the last jobs of a
chunk are running, those of the next begin. Only hits come back.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from swsearch.blocks import LANES, Chunk, IntArray, RunLengths
from swsearch.engines.base import (
    ChunkHits,
    ChunkPlan,
    Engine,
    HitThresholds,
    LoadedChunk,
    PairAligner,
    PendingHits,
    Progress,
    QueryGroup,
    ScoreArray,
    Workload,
    scores_of_empty,
)
from swsearch.engines.gpu.compiler import find_compiler
from swsearch.engines.gpu.device import Device, GpuMemoryError, choose_device
from swsearch.engines.gpu.kernels import Kernels
from swsearch.engines.gpu.limits import check_memory, refuse_position_gaps
from swsearch.engines.gpu.memory import (
    FREE_SHARE,
    MIB,
    TILE_PADDING,
    Demand,
    MemoryPlan,
    Region,
    demand_of,
    make_plan,
)
from swsearch.engines.gpu.pair_scores import PairScorer
from swsearch.engines.gpu.queries import Group, Part, UploadedPart, UploadedParts, kernels_of
from swsearch.engines.gpu.slot import Turn
from swsearch.engines.gpu.slot_memory import EngineUsage, GpuChunk, Shared, SlotMemory, TurnOrder
from swsearch.engines.gpu.variants import SCORES, device_kind
from swsearch.errors import OptionError
from swsearch.recurrence import Recurrence
from swsearch.scoring import QueryProfile

UNPLANNED_QUERIES, UNPLANNED_ROWS = 64, 320_000
"""Queries and their residues that there is room for where no job has said what is coming."""

COLUMN_BYTES = LANES
"""Bytes of a column of a block."""

NO_RESIDUES = np.empty((0, LANES), dtype=np.uint8)
"""Substitute for residues that are only on the device."""

GPU_WORTH_HITS = 2_000
"""Hits from which on a GPU that has scored them also aligns them."""

STAGING_BYTES = 8 * MIB
"""Page-locked memory of each of two staging buffers."""


class GpuEngine(Engine):
    """Scores on an NVIDIA GPU.

    Parameters
    ----------
    device : int, optional
        Which one; by default the first of those with the most multiprocessors.
    memory : int, optional
        Bytes of its memory that may be used; by default nearly all that is free.

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
        self._memory_limit = memory
        self.compiler = find_compiler(self.info.architecture, self.info.driver_version)
        self._device = Device(self.info)
        self.kernels = Kernels(self._device, self.compiler)
        self._pairs = PairScorer(self._device, self.kernels)
        self.usage = EngineUsage()
        self.memory_plan: MemoryPlan | None = None
        self._planned, self._n_planned = False, 0
        self._foreseen = (0, 0)
        self._arena: Any = None
        self._slots: list[SlotMemory] = []
        self._regions: list[Region] = []
        self._uploaded: UploadedParts | None = None
        self._loaded: list[GpuChunk] = []
        self._closed = False
        with self._device.active("setting up"):
            self._copies = self._device.stream()
            self._staging = [(self._device.pinned(STAGING_BYTES), self._device.event()) for _ in range(2)]

    @property
    def description(self) -> str:
        """Device, architecture and compiler."""
        return f"gpu ({self.info.name}, {self.info.architecture}, {self.compiler.description})"

    @property
    def kernel_seconds(self) -> float:
        """Seconds in which kernels ran so far, by the device's clock."""
        return self.usage.kernel_seconds

    # memory

    def plan(self, workload: Workload, may_stay: bool = True, budget: int | None = None) -> ChunkPlan:
        """Plan a job; the database stays on the device if it may and there is room for it.

        The plan shrinks if the device turns out to have less memory than the budget.
        """
        self._make_room(replace(self._demand(workload), may_stay=may_stay), budget)
        self._planned, self._n_planned = True, len(workload.lengths)
        plan = self.memory_plan
        assert plan is not None
        if workload.recurrence is not None:
            at_once, kind = self._at_once(plan, self._n_planned), device_kind(self.info.capability)
            needed = [kernels_of(group, workload.recurrence, kind, at_once) for group in workload.groups]
            with self._device.active("loading kernels"):
                self.kernels.require([SCORES, *set().union(*needed)])
        return ChunkPlan(plan.chunk_bytes, plan.resident, not plan.resident, plan.n_slots, f"{self.info}: {plan}")

    def _demand(self, workload: Workload) -> Demand:
        """Count what a job needs: each group of queries comes and goes, so the most queries and the most rows."""
        return demand_of(
            workload.lengths,
            max(map(len, workload.groups), default=0),
            max(map(sum, workload.groups), default=0),
            workload.residue_bytes,
            self.info.multiprocessors,
            workload.n_segments,
        )

    def _make_room(self, demand: Demand, budget: int | None = None) -> None:
        """Allocate everything at once; on out-of-memory plan for less, until it fits or cannot be done."""
        self._free()
        budget = budget or self.budget()
        self._foreseen = (demand.residue_bytes, demand.longest)
        while True:
            plan = make_plan(demand, budget)
            try:
                with self._device.active(f"allocating {plan.total / MIB:,.0f} MiB"):
                    arena = self._device.allocate(plan.total)
                break
            except GpuMemoryError:
                # another process took what was free; what is asked for next is less than what just failed
                budget = min(plan.total, budget) * 3 // 4
        self._divide(plan, arena)

    def budget(self, sharing: int = 1) -> int:
        """Return the bytes that may be planned with now, where so many engines share the device."""
        with self._device.active("planning memory"):
            free = int(self._device.free_memory() * FREE_SHARE) // sharing
        return free if self._memory_limit is None else min(free, self._memory_limit)

    def would_stay(self, workload: Workload, budget: int) -> bool:
        """Say whether a database would stay on the device with so much memory; nothing is allocated."""
        try:
            return make_plan(self._demand(workload), budget).resident
        except GpuMemoryError:
            return False

    def forget(self) -> None:
        """Free what was allocated for a job, with every chunk; the engine can be used again."""
        self._free()
        self._planned = False

    @property
    def slots(self) -> int:
        """Chunks that may be loaded and in work at a time; without a job one, for which the memory is planned."""
        return self.memory_plan.n_slots if self._planned and self.memory_plan is not None else 1

    def _divide(self, plan: MemoryPlan, arena: Any) -> None:
        self.memory_plan, self._arena = plan, arena
        whole = Region(int(arena), plan.total)
        n_regions = 1 if plan.resident else plan.n_slots
        size = plan.residues // n_regions
        self._regions = [Region(whole.take(size), size) for _ in range(n_regions)]
        area = plan.queries // plan.n_areas
        areas = [Region(whole.take(area), area) for _ in range(plan.n_areas)]
        self._uploaded = UploadedParts(self._device, areas, self._copies, self._foreseen[1], self._settle)
        boundary = whole.take(plan.boundary)
        taken = boundary + plan.boundary - 4 * self.info.multiprocessors
        with self._device.active("setting up slots"):
            started = self._device.event(timing=True)
            started.record(self._copies)
            self._device.clear_async(taken, 4 * self.info.multiprocessors, self._copies)
            self._copies.synchronize()
            shared = Shared(
                self._device, self.kernels, plan, self.usage, started, boundary, taken,
                whole.take(plan.wavefront), self._device.event(),
                TurnOrder(self._device.event()) if plan.resident else None,
            )  # fmt: skip
            regions = [Region(whole.take(plan.slot), plan.slot) for _ in range(plan.n_slots)]
            self._slots = [SlotMemory(shared, region) for region in regions]

    def _free(self) -> None:
        with self._device.active("waiting for kernels"):
            for slot in self._slots:
                slot.close()
            for chunk in self._loaded:
                chunk.ready = None
        self._slots, self._regions, self._uploaded, self._loaded = [], [], None, []
        if self._arena is not None:
            with self._device.active("freeing memory"):
                self._arena.free()
        self._arena = self.memory_plan = None

    # queries

    def prepare(self, profiles: Sequence[QueryProfile], recurrence: Recurrence) -> QueryGroup:
        """Prepare a group of queries; the first launch of a kernel compiles it or reads it from the cache."""
        refuse_position_gaps(profiles)
        if recurrence.frame_shift is not None:
            why = "alignments with frame shifts are computed on the CPU alone: use engine cpu"
            raise OptionError("frame_shift", recurrence.frame_shift, "none on a GPU", why)
        bounds = recurrence.scoring.with_bounds_for(profiles)
        group = Group(profiles, bounds, recurrence.mode, device_kind(self.info.capability))
        if (plan := self.memory_plan) is not None and self._planned and plan.resident:
            group.parts(self._at_once(plan, self._n_planned))  # here, where a job scores other queries meanwhile
        return QueryGroup(profiles, recurrence, group)

    def _parts(self, group: QueryGroup, chunk: GpuChunk) -> list[Part]:
        assert self.memory_plan is not None
        parts: list[Part] = group.handle.parts(self._at_once(self.memory_plan, chunk.n_subjects))
        return parts

    @staticmethod
    def _at_once(plan: MemoryPlan, n_subjects: int) -> int:
        """Return the most queries that are scored together with so many subjects."""
        return min(plan.at_once, plan.scores // (4 * max(n_subjects, 1)))

    # chunks

    def load(self, chunk: Chunk) -> LoadedChunk:
        """Load a chunk, while earlier chunks are scored."""
        started = time.perf_counter()
        if not self._loaded and not self._foresaw(chunk):
            self._planned = False
            queries, rows, n_bytes = UNPLANNED_QUERIES, UNPLANNED_ROWS, chunk.residues.nbytes
            self._make_room(demand_of(chunk.runs, queries, rows, n_bytes, self.info.multiprocessors))
        assert self.memory_plan is not None
        region = self._free_region(chunk)
        with self._device.active("copying residues"):
            loaded = self._copy(chunk, region)
        self._loaded.append(loaded)
        self.usage.load_seconds += time.perf_counter() - started
        return LoadedChunk(loaded.chunk, loaded)

    def _foresaw(self, chunk: Chunk) -> bool:
        """Say whether the plan in force has room for a chunk; without a job each chunk gets its own plan."""
        longest = chunk.runs.longest
        return self._planned and chunk.residues.nbytes <= self._foreseen[0] and longest <= self._foreseen[1]

    def _free_region(self, chunk: Chunk) -> Region:
        assert self.memory_plan is not None
        if self.memory_plan.resident:
            return self._regions[0]
        taken = [loaded.region for loaded in self._loaded]
        free = [region for region in self._regions if not any(region is other for other in taken)]
        if not free:
            raise GpuMemoryError(f"gpu memory: more than {len(self._regions)} chunks are loaded; please report it")
        free[0].reset()
        return free[0]

    def _copy(self, chunk: Chunk, region: Region) -> GpuChunk:
        device, stream = self._device, self._copies
        n_bytes = chunk.residues.nbytes
        address = region.take(n_bytes)
        bytes_ = chunk.residues.reshape(-1)
        for number, start in enumerate(range(0, n_bytes, STAGING_BYTES)):
            pinned, free = self._staging[number % 2]
            free.synchronize()
            piece = bytes_[start : start + STAGING_BYTES]
            pinned[: len(piece)] = piece
            device.upload_async(address + start, pinned[: len(piece)], stream)
            free.record(stream)
        device.clear_async(address + n_bytes, TILE_PADDING, stream)
        self.kernels.arrange(stream, address, n_bytes // (LANES * 8))
        numbers = self._put_numbers(chunk, region)
        ready = device.event()
        ready.record(stream)
        columns: IntArray = np.diff(chunk.column_offsets)
        # a database that stays on the device need not stay in the host's memory as well
        return GpuChunk(chunk.without_residues(), address, *numbers, columns, region, ready)

    def _put_numbers(self, chunk: Chunk, region: Region) -> tuple[int, int]:
        """Copy each block's first tile and the subjects' lengths to the device; return their addresses."""
        addresses = []
        for array in ((chunk.column_offsets // 8).astype(np.uint32), chunk.lengths):
            addresses.append(region.take_end(array.nbytes))
            self._device.upload_async(addresses[-1], array, self._copies)
        return addresses[0], addresses[1]

    def merge(self, loaded: Sequence[LoadedChunk]) -> list[LoadedChunk]:
        """Merge chunks that are adjacent in memory, to be scored in one launch."""
        if len(loaded) < 2 or any(before.chunk.n_subjects % LANES for before in loaded[:-1]):
            return list(loaded)
        chunks = [each.chunk for each in loaded]
        lengths = RunLengths.concatenate([chunk.runs for chunk in chunks])
        assert self.memory_plan is not None
        if not lengths.is_descending or 4 * len(lengths) > self.memory_plan.scores:
            return list(loaded)
        first: GpuChunk = loaded[0].handle
        starts = [(each.handle.residues - first.residues) // COLUMN_BYTES for each in loaded]
        offsets = [chunk.column_offsets[:-1] + start for chunk, start in zip(chunks, starts, strict=True)]
        end = starts[-1] + chunks[-1].column_offsets[-1]
        merged = Chunk(
            NO_RESIDUES,
            np.concatenate((*offsets, [end])),
            lengths,
            np.concatenate([chunk.subjects for chunk in chunks]),
        )
        columns = np.concatenate([each.handle.columns for each in loaded])
        with self._device.active("merging chunks"):
            tiles, at = self._put_numbers(merged, self._regions[0])
            ready = self._device.event()
            ready.record(self._copies)
        whole = GpuChunk(merged, first.residues, tiles, at, columns, first.region, ready)
        for chunk, end in zip(chunks, np.cumsum([chunk.n_subjects for chunk in chunks]), strict=True):
            chunk.subjects = merged.subjects[end - chunk.n_subjects : end]  # not twice in memory
        self._loaded.append(whole)
        return [LoadedChunk(merged, whole)]

    def release(self, loaded: LoadedChunk) -> None:
        """Release a chunk; it may not be scored again."""
        self._loaded = [other for other in self._loaded if other is not loaded.handle]
        with self._device.active("releasing a chunk"):
            loaded.handle.ready = None  # events end while their context is current
        if not self._loaded:
            for region in self._regions:
                region.reset()

    def release_all(self) -> None:
        """Release every chunk."""
        for loaded in list(self._loaded):
            self.release(LoadedChunk(loaded.chunk, loaded))

    # scoring

    def start_scan(
        self, group: QueryGroup, loaded: LoadedChunk, thresholds: HitThresholds, progress: Progress | None = None
    ) -> PendingHits:
        """Begin to find the hits of every query of a group in a chunk."""
        chunk: GpuChunk = loaded.handle
        everything = any(thresholds.takes_all(query) for query in range(len(group.profiles)))
        # in global mode an empty side costs a gap, which the kernels, that skip it, do not know
        if group.recurrence.mode == "global":
            everything |= chunk.chunk.runs.n_nonempty < chunk.n_subjects or not all(map(len, group.profiles))
        if everything:
            return super().start_scan(group, loaded, thresholds, progress)
        parts = self._parts(group, chunk)
        slot = self._take_slot()
        first = self._start(slot, parts[0], chunk, thresholds)

        def wait() -> list[ChunkHits]:
            found: list[ChunkHits] = []
            for part, results in self._turns(parts, chunk, thresholds, slot, first):
                found += self._hits(part, chunk, thresholds, results)
                self._count(part, chunk, progress)
            return found

        def is_ready() -> bool:
            with self._device.active("scoring"):
                return first.is_ready()

        return PendingHits(wait, is_ready)

    def _turns(
        self, parts: Sequence[Part], chunk: GpuChunk, thresholds: HitThresholds | None, slot: SlotMemory, first: Turn
    ) -> Iterator[tuple[Part, Turn]]:
        """Yield each part with its turn; where the database stays, the next has begun before one is looked at.

        While chunks are streamed, other slots have other chunks.
        """
        assert self.memory_plan is not None
        alternate, turn = self.memory_plan.resident, first
        for part, following in zip(parts, [*parts[1:], None], strict=True):
            after = None
            if following is not None and alternate:
                after = self._start(self._take_slot(), following, chunk, thresholds)
            yield part, turn
            if following is not None:
                turn = after or self._start(slot, following, chunk, thresholds)

    def _take_slot(self) -> SlotMemory:
        """Return a slot that nothing is waited for on, or the one that was used longest ago."""
        slot = next((slot for slot in self._slots if not slot.is_awaited), self._slots[0])
        self._slots.remove(slot)
        self._slots.append(slot)
        return slot

    def _start(self, slot: SlotMemory, part: Part, chunk: GpuChunk, thresholds: HitThresholds | None) -> Turn:
        assert self._uploaded is not None
        with self._device.active("scoring"):
            uploaded = self._uploaded.get(part)
            if slot.turn is not None:
                slot.turn.settle()
            slot.turn = turn = Turn(slot, uploaded, chunk, thresholds)
            return turn

    def _hits(self, part: Part, chunk: GpuChunk, thresholds: HitThresholds, results: Turn) -> list[ChunkHits]:
        with self._device.active("scoring"):
            listed, values = results.get()
        if listed is not None:
            bounds = np.searchsorted(listed["query"], np.arange(len(part.profiles) + 1)).tolist()
            return [
                ChunkHits(listed["place"][a:b].astype(np.int64), listed["score"][a:b]) for a, b in pairwise(bounds)
            ]
        # more hits than the list holds: look through all scores here
        assert values is not None
        lengths = chunk.chunk.lengths
        places = [thresholds.select(part.first + query, lengths, row) for query, row in enumerate(values)]
        return [ChunkHits(found, row[found]) for found, row in zip(places, values, strict=True)]

    def _count(self, part: Part, chunk: GpuChunk, progress: Progress | None) -> None:
        residues = chunk.chunk.n_residues
        cells = [len(profile) * residues for profile in part.profiles]
        self.usage.cells += sum(cells)
        if progress is not None:
            progress(sum(cells))

    def score(self, group: QueryGroup, loaded: LoadedChunk, progress: Progress | None = None) -> ScoreArray:
        """Score a group against a chunk; the device scores saturated pairs again."""
        chunk: GpuChunk = loaded.handle
        lengths, filled = loaded.chunk.runs, loaded.chunk.runs.n_nonempty
        values = np.zeros((len(group.profiles), chunk.n_subjects), dtype=np.int32)
        parts, slot = self._parts(group, chunk), self._take_slot()
        for part, results in self._turns(parts, chunk, None, slot, self._start(slot, parts[0], chunk, None)):
            with self._device.active("scoring"):
                _, found = results.get()
            assert found is not None
            values[part.first : part.first + len(part.profiles)] = found
            self._count(part, chunk, progress)
        for query, profile in enumerate(group.profiles):
            start = filled if len(profile) else 0
            values[query, start:] = scores_of_empty(
                len(profile), lengths.part(start, chunk.n_subjects).array(), group.recurrence
            )
        return values

    def takes_pairs(self) -> bool:
        """Return whether to score pairs, unless a memory limit leaves no room for more.

        While a turn is in work these are left to the CPU too: the kernel would wait for those of the turn. With 1,000
        queries x Swiss-Prot, a scan of 10.4 s, the whole took 15.3 s with all copies on the device, 13.1 to 13.6 s
        with none, and 12.4 to 13.3 s so (H200, 16 processors, November 2026).
        """
        is_busy = any(slot.is_awaited for slot in self._slots)
        return not is_busy and self._memory_limit is None

    def score_pairs(
        self, profiles: Sequence[QueryProfile], of_subject: IntArray, chunk: Chunk, recurrence: Recurrence
    ) -> ScoreArray:
        """Score each subject of a chunk with one query."""
        return self._pairs.score(profiles, of_subject, chunk, recurrence)

    def pair_aligner(self, n_hits: int) -> PairAligner | None:
        """Make the aligner of hits: only the CPU if a memory limit leaves no room for both."""
        if n_hits < GPU_WORTH_HITS or self._memory_limit is not None:
            return None
        from swsearch.engines.gpu.pairs.aligner import GpuPairAligner

        return GpuPairAligner(self.info.index)

    def synchronize(self) -> None:
        """Wait until everything that was begun is done."""
        with self._device.active("waiting for the device"):
            self._copies.synchronize()
            self._settle()

    def _settle(self, parts: Collection[UploadedPart] | None = None) -> None:
        """Wait for what every slot has begun, or for what uses some parts, and keep its results; in the context."""
        for slot in self._slots:
            if slot.turn is not None and (parts is None or slot.turn.uploaded in parts):
                slot.turn.settle()

    def close(self) -> None:
        """Free the device's memory and let go of its context."""
        if self._closed or not self._device.is_here:
            return
        self._closed = True
        try:
            self._free()
            with self._device.active("closing"):
                self._copies.synchronize()
                self._staging.clear()
                self._pairs.close()
                self.kernels.close()
                del self._copies
        finally:
            self._device.close()
