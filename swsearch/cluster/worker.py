"""What a worker keeps from task to task: its engine, made once, open volumes, and shares that the engine has loaded.

A worker computes one task on its engine at a time; others may be made ready meanwhile. What it keeps is bounded by
its memory: a CPU's shares by a part of that, a GPU's by what the engine's plan says fits the device, and what was
used longest ago goes first.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from swsearch.blocks import RunLengths
from swsearch.cluster.calls import forgetting
from swsearch.cluster.sent import EngineWanted, VolumeWanted, VolumeWork, of_bytes
from swsearch.cluster.transport import WorkerPlace
from swsearch.engines import create_engine
from swsearch.engines.base import ChunkPlan, Engine, Workload
from swsearch.engines.pair_base import PairAligner
from swsearch.errors import DatabaseError, GpuUnavailableError
from swsearch.pipeline.database_loading import LoadedDatabase
from swsearch.pipeline.filters import Allowed
from swsearch.pipeline.search_job import ENOUGH_THREADS, GROUP_ROWS
from swsearch.pipeline.thresholds import LeastScores
from swsearch.processors import threads_that_help

if TYPE_CHECKING:
    from swsearch.db import Database

FOLDERS = "SWSEARCH_VOLUMES"
"""Environment variable of a worker: folders that hold copies of volumes, separated as in PATH. They are looked at
before a volume's own path: a copy was put there to be used."""

SHARE_FOR_CHUNKS = 2
"""A CPU's shares take no more than this part of the worker's memory."""

SHARE_FOR_VOLUMES = 8
"""Open volumes take no more than this part of it; each keeps some 8 bytes for each subject."""

BYTES_PER_SUBJECT = 8
"""See `SHARE_FOR_VOLUMES`."""

WORKS_KEPT = 64
"""Searches on volumes of which a worker keeps what all tasks have in common, or more where there is memory."""

BYTES_OF_WORK, SHARE_FOR_WORKS = 8 << 20, 16
"""Bytes of one such at most, in tables by score and length, and the part of the memory that they may take."""

USUAL_QUERIES = 256
"""Queries that a GPU plans for at least, so that the next groups do not take a new plan."""

ShareKey = tuple[VolumeWanted, str, int, int]
"""A volume, its mask, and which of how many shares."""


@dataclass(eq=False)
class HeldShare:
    """A share of a volume, as the engine has it.

    Parameters
    ----------
    share : Database
        Its subjects.
    plan : ChunkPlan
        How the engine wants it.
    loaded : LoadedDatabase
        Its chunks.
    planned : (int, int)
        Queries and residues of a group that the plan is for.
    """

    share: Database
    plan: ChunkPlan
    loaded: LoadedDatabase
    planned: tuple[int, int]

    @property
    def n_bytes(self) -> int:
        """Bytes of its residues in memory."""
        return int(self.share.residue_bytes)


class OpenWork:
    """A search on a volume, with what follows from it."""

    def __init__(self, work: VolumeWork, volume: Database) -> None:
        self.work, self.volume = work, volume
        self._least: dict[tuple[int, int], tuple[Database, LeastScores, LeastScores | None]] = {}

    @cached_property
    def allowed(self) -> Allowed | None:
        """Which subjects may be hits."""
        return None if self.work.allowed is None else self.work.allowed.array()

    def share(self, place: int, of: int) -> tuple[Database, LeastScores, LeastScores | None]:
        """Return a share, and the least scores of hits, and of what makes profiles, with its subjects."""
        found = self._least.get((place, of))
        if found is None:
            share, options = self.volume.share(place, of), self.work.options
            included = LeastScores(options.of_inclusion(), share) if self.work.includes else None
            found = self._least.setdefault((place, of), (share, LeastScores(options, share), included))
        return found


class Bench:
    """What one worker keeps.

    Parameters
    ----------
    place : WorkerPlace
        The worker.
    """

    def __init__(self, place: WorkerPlace) -> None:
        self._place = place
        self._guard, self._turn = threading.RLock(), threading.Lock()
        self._made: tuple[EngineWanted, Engine] | None = None
        self._volumes: OrderedDict[VolumeWanted, Database] = OrderedDict()
        self._works: OrderedDict[bytes, OpenWork] = OrderedDict()
        self._held: OrderedDict[ShareKey, HeldShare] = OrderedDict()

    @property
    def threads(self) -> int:
        """Threads to work with."""
        return threads_that_help(self._place.n_threads)

    @property
    def memory(self) -> int:
        """Bytes that the worker may use."""
        return self._place.memory or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2

    # what is asked for

    def work(self, data: bytes) -> OpenWork:
        """Return a search on a volume, which is opened.

        Raises
        ------
        DatabaseError
            If the volume is not to be found, or another one stands where it was.
        """
        with self._guard:
            found = self._works.get(data)
            if found is None:
                work: VolumeWork = of_bytes(data)
                found = self._works[data] = OpenWork(work, self._volume(work.volume))
                most = max(WORKS_KEPT, self.memory // SHARE_FOR_WORKS // BYTES_OF_WORK)
                while len(self._works) > most:
                    self._works.popitem(last=False)
            self._works.move_to_end(data)
            return found

    def _volume(self, wanted: VolumeWanted) -> Database:
        database = self._volumes.get(wanted)
        if database is None:
            database = self._volumes[wanted] = open_volume(wanted, self._place.host)
            most = self.memory // SHARE_FOR_VOLUMES
            while len(self._volumes) > 1 and self._bytes_of_volumes() > most:
                dropped, _ = self._volumes.popitem(last=False)  # closed when nothing reads from it any more
                for data in [data for data, each in self._works.items() if each.work.volume == dropped]:
                    del self._works[data]
        self._volumes.move_to_end(wanted)
        return database

    def _bytes_of_volumes(self) -> int:
        return sum(BYTES_PER_SUBJECT * each.n_subjects for each in self._volumes.values())

    # the engine

    def engine(self, wanted: EngineWanted) -> Engine:
        """Return the worker's engine, made now if it is not there.

        Raises
        ------
        GpuUnavailableError
            If a GPU is asked for by name and there is none.
        """
        with self._guard:
            if self._made is not None and self._made[0] == wanted:
                return self._made[1]
        with self._turn, self._guard:
            if self._made is None or self._made[0] != wanted:
                self._let_go()
                self._made = wanted, make_engine(wanted, self._place, self.threads)
            return self._made[1]

    @contextmanager
    def turn(self, engine: Engine) -> Iterator[bool]:
        """Have the engine alone; what is loaded is let go of where something fails, since its state is not known.

        It is said whether the engine is still the worker's: another search may have asked for another one meanwhile,
        which does not know what this one would load.
        """
        with self._turn:
            try:
                yield self._made is not None and self._made[1] is engine
            except BaseException:
                self._unload(engine)
                raise

    def loaded(self, engine: Engine, key: ShareKey, share: Database, largest: tuple[int, int]) -> HeldShare:
        """Return a share as the engine has it; to be called while this thread has the engine.

        Parameters
        ----------
        engine : Engine
            The worker's.
        key : ShareKey
            Which share.
        share : Database
            The share.
        largest : (int, int)
            Queries and residues of the largest group.
        """
        held = self._held.get(key)
        if held is None or held.planned[0] < largest[0] or held.planned[1] < largest[1]:
            load = self._on_device if engine.name == "gpu" else self._in_memory
            held = load(engine, key, share, largest)
        if key in self._held:
            self._held.move_to_end(key)
        return held

    def _in_memory(self, engine: Engine, key: ShareKey, share: Database, largest: tuple[int, int]) -> HeldShare:
        """Keep a share in the host's memory, if there is room for it, in place of others."""
        self._drop(key)
        most = self.memory // SHARE_FOR_CHUNKS
        fits = share.residue_bytes <= most
        while fits and self._held and sum(each.n_bytes for each in self._held.values()) + share.residue_bytes > most:
            self._drop(next(iter(self._held)))
        plan = engine.plan(_workload([share], largest))
        plan = replace(plan, keep=True) if fits else plan
        mask = key[1]
        held = HeldShare(share, plan, LoadedDatabase(engine, share, plan, mask), largest)  # type: ignore[arg-type]
        if fits:  # what does not is read whenever it is scored
            self._held[key] = held
        return held

    def _on_device(self, engine: Engine, key: ShareKey, share: Database, largest: tuple[int, int]) -> HeldShare:
        """Keep as many shares on a device as fit, the new one and those used last: one plan is for all of them."""
        before = [(each, held.share) for each, held in reversed(self._held.items()) if each != key]
        largest = max(largest[0], USUAL_QUERIES), max(largest[1], GROUP_ROWS)
        self._unload(engine)
        wanted = [(key, share), *before]
        plan = engine.plan(_workload([each for _, each in wanted], largest))
        while not plan.keep and len(wanted) > 1:
            wanted.pop()
            plan = engine.plan(_workload([each for _, each in wanted], largest))
        for each, database in reversed(wanted):
            loaded = LoadedDatabase(engine, database, plan, each[1])  # type: ignore[arg-type]
            self._held[each] = HeldShare(database, plan, loaded, largest)
        return self._held[key]

    def _drop(self, key: ShareKey) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            held.loaded.close()

    def _unload(self, engine: Engine) -> None:
        """Let go of all shares; what was loaded in part goes, too."""
        while self._held:
            _, held = self._held.popitem()
            held.loaded.close()

    @contextmanager
    def aligner(self, engine: Engine, n_hits: int) -> Iterator[PairAligner | None]:
        """Give what aligns hits in place of the CPU, where the worker has a GPU and few threads; None elsewhere."""
        if self.threads >= ENOUGH_THREADS:
            yield None
            return
        made = engine.pair_aligner(n_hits)
        if made is None:
            yield None
            return
        with made:
            yield made

    def close(self) -> None:
        """Let go of everything."""
        with self._turn, self._guard:
            self._let_go()
            self._works.clear()
            self._volumes.clear()

    def _let_go(self) -> None:
        if self._made is not None:
            self._unload(self._made[1])
            self._made[1].close()
            self._made = None


def _workload(shares: list[Database], largest: tuple[int, int]) -> Workload:
    """Return what is asked of an engine that is to hold some shares."""
    queries, rows = largest
    group = [max(rows - (queries - 1), 1)] + [1] * (queries - 1)
    lengths = RunLengths.joined([each.length_runs for each in shares])
    return Workload(sum(each.residue_bytes for each in shares), lengths, [group])


def make_engine(wanted: EngineWanted, place: WorkerPlace, threads: int) -> Engine:
    """Make a worker's engine: each worker of a host has a GPU of its own, where there are as many."""
    device = None
    if wanted.name in ("auto", "gpu"):
        device = _device(place)
    name = "cpu" if wanted.name == "auto" and device is None else wanted.name
    gpu_memory = None if name in ("cpu", "reference") else wanted.gpu_memory
    return create_engine(name, threads=threads, device=device, gpu_memory=gpu_memory)


def _device(place: WorkerPlace) -> int | None:
    """Return the GPU of a worker, among those that its environment lets it see; None where there is none."""
    from swsearch.engines.choice import pycuda_is_installed

    if not pycuda_is_installed():
        return None
    from swsearch.engines.gpu.device import list_devices

    try:
        return place.on_host % len(list_devices())
    except GpuUnavailableError:
        return None


def open_volume(wanted: VolumeWanted, host: str) -> Database:
    """Open a volume: a copy in the folders of `FOLDERS`, else the file itself.

    Raises
    ------
    DatabaseError
        If it is in neither place, or other files stand there.
    """
    from swsearch.db import Database

    name = Path(wanted.path).name
    folders = [each for each in os.environ.get(FOLDERS, "").split(os.pathsep) if each]
    problems: list[str] = []
    for path in dict.fromkeys([*(str(Path(folder) / name) for folder in folders), wanted.path]):
        if not Path(path).exists():
            problems.append(f"{path} not found")
            continue
        try:
            database = Database.open(path)
        except DatabaseError as error:
            problems.append(str(error))
            continue
        if (found := database.identity()) == wanted.identity:
            return database
        database.close()
        problems.append(f"{path} is another database (sha256 {found[:12]}, expected {wanted.identity[:12]})")
    raise DatabaseError(
        f"worker on {host}: volume {name}: {'; '.join(problems)}; move it where this machine can read it, or copy it "
        f"into a folder in the worker's {FOLDERS}"
    )


_benches: dict[Hashable, Bench] = {}
_of_all = threading.Lock()


def _kept_for(place: WorkerPlace) -> WorkerPlace:
    """Return the place without its number, which follows from who counts, where the worker has a name."""
    return replace(place, index=0) if place.owner else place


def bench_of(place: WorkerPlace) -> Bench:
    """Return what a worker of this process keeps."""
    with _of_all:
        return _benches.setdefault(_kept_for(place), Bench(place))


def forget(place: WorkerPlace) -> None:
    """Let go of what a worker of this process keeps."""
    with _of_all:
        bench = _benches.pop(_kept_for(place), None)
    if bench is not None:
        bench.close()


forgetting.append(forget)
