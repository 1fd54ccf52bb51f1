"""The arithmetic of `growth.py`: how long a search takes, from what its parts take.

A search is a pipeline, as in `swsearch.pipeline.search`: groups of queries go through preparing, scoring,
collecting, rating, aligning and writing, which work at the same time on different groups. A stage begins a group
when it is done with the one before, and the stage before it is done with this one, so that all together take about
as long as the longest stage and the first and the last group. Stages share processors, and Python's lock, which
bound the time, too:

    time = start + loading + the longest of: the pipeline, and each resource that stages share

What is assumed, each of which is a simplification:

1.  Groups of queries are those of `swsearch.pipeline.batch` for queries of one length; what a stage does is divided
    among them by residues. No stage waits for the next.
2.  Cells are scored at one speed, whatever the query's length and the subjects' lengths; devices are alike.
3.  A database is divided equally, and nothing is scored twice (no worker dies). With fewer than some tasks for each
    worker the last ones leave workers idle: whole rounds of tasks are counted.
4.  Hits and candidates of a query grow with the database, those of each measured query by itself, until the most that
    are asked for. Candidates are rated as many at a time as `swsearch.pipeline.evalues` takes, and in so many rounds
    in the mean as those of the measured queries, `Parts.rounds`.
5.  What threads do for a query's null grows with its length. Rating scores shuffled copies: their cells are counted,
    for candidates that are as long for their query as those of the measured ones; so cells, and what aligning takes,
    grow with the square of the length. Queries have lengths as different as Swiss-Prot's, unless theirs are known.
6.  What Python does (and NumPy, and HDF5) holds one lock for each process, and what the extension does is divided
    over all processors without loss. Both are processor time of one thread here, and each processor of the GPU's host
    counts as one here, though two of them may be threads of one core.
7.  A database is resident where a device's part fits `MEMORY_USED` of its memory. Otherwise every group of queries
    reads all of it, from the host's page cache, by one thread for each process, while devices compute. A disk that
    is slower than `Parts.read` sets the time itself: give --disk.
8.  Workers have hosts of their own, unless the place says how many processors they share.
9.  The network takes no time. Packed selections are some 32 bytes for each candidate: less than 0.2 s for a million
    of them at 1.25 GB/s, though workers that read volumes over the network are as if their disk were that slow.
10. Merging is done by the client alone, candidate after candidate; each task costs it and the scheduler the same.
11. What the host does for a device's scan beside its kernels (`Parts.collect`) grows with queries times residues, is
    divided among devices, and goes on while kernels run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from swsearch.pipeline.batch import FIRST_GROUP_RESIDUES, GROUP_RESIDUES
from swsearch.pipeline.evalues import FEWEST_AT_ONCE, MOST_AT_ONCE

MEMORY_USED = 0.9
"""Part of a device's memory for residues; the rest has queries, boundaries and scores."""

CANDIDATES_PER_PART = 1000
"""Candidates of a query that a part of the database sends at most. A choice: enough for 500 hits of the whole."""


STAGES = ("prepare", "score", "collect", "rate", "align", "write")
"""Stages in their order."""


@dataclass(frozen=True)
class Work:
    """Seconds of one thread for one of something.

    Parameters
    ----------
    parallel : float
        What any number of threads divide.
    serial : float
        What one thread of a process does while the others wait: Python.
    """

    parallel: float
    serial: float


@dataclass(frozen=True)
class Parts:
    """What the parts of a search cost.

    Parameters
    ----------
    start_cpu, start_gpu : float
        Seconds of a command before it scores, without the database.
    start_cluster : float
        Seconds until a client has its cluster.
    read : float
        Seconds to read the residues that take a byte, from the page cache, by one thread.
    copy : float
        The same to a device, from the file.
    cpu_cells : float
        Cells that a thread scores in a second.
    gpu_cells : float
        Cells that a device scores in a second, the database resident.
    gpu_streamed : float
        Part of that speed, the database streamed.
    gpu_memory : float
        Bytes of a device.
    collect : float
        Seconds of a device's host, beside the kernels, for a query and a residue of the database.
    prepare : Work
        Of a query.
    rate : float
        Seconds of Python for a rated candidate.
    copy_cells : float
        Cells with shuffled copies that a thread scores in a second, shuffling included.
    rounds : float
        Candidates that are rated for each that is rated at first.
    copies : float
        Shuffled copies of a rated candidate.
    alike : float
        Residues of a candidate for each of its query, so many that the cells of the copies are right.
    align : Work
        Of a hit.
    write : float
        Seconds to write a hit, by one thread.
    merge : float
        Seconds to unpack and merge a candidate.
    task : float
        Seconds of the client and the scheduler for a task.
    query_length : float
        Mean residues of the queries that prepare was measured with.
    query_square : float
        Mean square of the residues of each hit's query, of the hits that align was measured with.
    spread : float
        Mean square of a query's residues by the square of their mean, where queries are not known.
    hits : tuple of float
        Hits of each measured query in so many residues as below.
    candidates : tuple of float
        Candidates of each.
    hits_in : float
        Residues of the database that they were found in.
    bytes_per_residue : float
        What a residue takes in memory, padding included.
    sources : dict
        Where each comes from.
    """

    start_cpu: float
    start_gpu: float
    start_cluster: float
    read: float
    copy: float
    cpu_cells: float
    gpu_cells: float
    gpu_streamed: float
    gpu_memory: float
    collect: float
    prepare: Work
    rate: float
    copy_cells: float
    rounds: float
    copies: float
    alike: float
    align: Work
    write: float
    merge: float
    task: float
    query_length: float
    query_square: float
    spread: float
    hits: tuple[float, ...]
    candidates: tuple[float, ...]
    hits_in: float
    bytes_per_residue: float
    sources: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """What is searched.

    Parameters
    ----------
    queries, query_residues, residues : int
        Numbers of queries, of their residues, and of the database's.
    max_hits : int
        Most hits of a query.
    fitted : bool
        Whether candidates are held against shuffled copies, as by default.
    hits : int or None
        Hits, where they were counted.
    volumes : int
        Of the database.
    spread : float or None
        Mean square of the queries' residues by the square of their mean, where they are known.
    """

    queries: int
    query_residues: int
    residues: int
    max_hits: int = 500
    fitted: bool = True
    hits: int | None = None
    volumes: int = 1
    spread: float | None = None

    @property
    def cells(self) -> float:
        """Query residues times subject residues."""
        return float(self.query_residues) * self.residues

    @property
    def shares(self) -> list[float]:
        """Part of the queries' residues that each group has."""
        total = self.query_residues
        sizes, left = [], total
        first = iter(FIRST_GROUP_RESIDUES if total > 2 * FIRST_GROUP_RESIDUES[0] else ())
        length = total / max(1, self.queries)
        while left > 0:
            sizes.append(min(left, max(next(first, GROUP_RESIDUES), length)))
            left -= sizes[-1]
        return [size / total for size in sizes] or [1.0]

    @property
    def groups(self) -> int:
        """Groups of queries."""
        return len(self.shares)


@dataclass(frozen=True)
class Place:
    """Where it is searched.

    Parameters
    ----------
    engine : {"cpu", "gpu"}
        What scores.
    engines : int
        Devices of one process, or workers of a cluster.
    threads : int
        Of each process; one that serves several devices has them for all.
    cluster : bool
        Whether each engine has a process of its own.
    distinct : int or None
        Devices that are there, where one is opened several times; by default as many as engines.
    processors : int or None
        That workers share, where there are fewer than their threads.
    """

    engine: str
    engines: int = 1
    threads: int = 1
    cluster: bool = False
    distinct: int | None = None
    processors: int | None = None

    @property
    def processes(self) -> int:
        """Processes that search."""
        return self.engines if self.cluster or self.engine == "cpu" else 1

    @property
    def all_threads(self) -> int:
        """Threads that can run at a time, in all processes."""
        asked = self.threads * self.processes
        return min(asked, self.processors or asked)

    @property
    def devices(self) -> int:
        """Devices that are there."""
        return self.distinct or self.engines


@dataclass(frozen=True)
class Prediction:
    """How long a search takes.

    Parameters
    ----------
    before : dict
        Seconds of what comes before, by name.
    stages : dict
        Seconds of each stage by itself, all groups, in their order.
    resources : dict
        Seconds that each resource is busy, by name.
    shares : list of float
        Of each group of queries.
    resident : bool
        Whether the database stays on the devices; True on the CPU, which reads it for each group.
    """

    before: dict[str, float]
    stages: dict[str, float]
    resources: dict[str, float]
    shares: list[float]
    resident: bool

    @property
    def busiest(self) -> str:
        """Name of the resource that is busy longest."""
        return max(self.resources, key=lambda name: self.resources[name])

    @property
    def pipeline(self) -> float:
        """Seconds until the last group leaves the last stage."""
        done = [0.0] * len(self.stages)
        for share in self.shares:
            before = 0.0
            for place, seconds in enumerate(self.stages.values()):
                before = done[place] = max(before, done[place]) + share * seconds
        return max(done)

    @property
    def seconds(self) -> float:
        """Wall seconds of the whole command."""
        return sum(self.before.values()) + max(self.pipeline, self.resources[self.busiest])


def grown(found: tuple[float, ...], job: Job, parts: Parts, most: float) -> float:
    """Return how many of all queries there are, of what was found of each measured one; of each at most so many."""
    factor = job.residues / parts.hits_in
    return job.queries * sum(min(most, each * factor) for each in found) / len(found)


def hits_of(job: Job, parts: Parts) -> float:
    """Return the hits of all queries: those that were counted, or those that are expected."""
    return job.hits if job.hits is not None else grown(parts.hits, job, parts, job.max_hits)


def rated_of(job: Job, parts: Parts) -> float:
    """Return the candidates of all queries that are held against shuffled copies."""
    at_once = min(max(2 * job.max_hits, FEWEST_AT_ONCE), MOST_AT_ONCE)
    first = grown(parts.candidates, job, parts, at_once)
    return min(first * parts.rounds, grown(parts.candidates, job, parts, math.inf)) if job.fitted else 0.0


def sent_of(job: Job, place: Place, parts: Parts) -> float:
    """Return the candidates of all queries that workers send to the client."""
    return min(max(rated_of(job, parts), hits_of(job, parts)), job.queries * CANDIDATES_PER_PART * place.engines)


def is_resident(job: Job, place: Place, parts: Parts) -> bool:
    """Say whether each device holds its part of the database."""
    return job.residues * parts.bytes_per_residue <= MEMORY_USED * parts.gpu_memory * place.devices


def tasks_of(job: Job, place: Place) -> int:
    """Return the tasks of a cluster: groups of queries times volumes, or the shares that volumes are cut into."""
    return job.groups * max(job.volumes, place.engines)


def predict(job: Job, place: Place, parts: Parts, disk: float | None = None, streamed: bool = False) -> Prediction:
    """Predict the time of a search.

    Parameters
    ----------
    job : Job
        What is searched.
    place : Place
        Where.
    parts : Parts
        What its parts cost.
    disk : float, optional
        Bytes that a process reads in a second; by default from the page cache.
    streamed : bool, optional
        Whether the database is streamed although it fits the devices.
    """
    gpu = place.engine == "gpu"
    resident = not gpu or (not streamed and is_resident(job, place, parts))
    n_bytes = job.residues * parts.bytes_per_residue
    read = max(parts.copy if gpu else parts.read, 0.0 if disk is None else 1 / disk)
    before = {"start": parts.start_gpu if gpu else parts.start_cpu}
    idle = 1.0
    if place.cluster:
        before["start"] = parts.start_cpu + parts.start_cluster
        tasks = tasks_of(job, place)
        idle = math.ceil(tasks / place.engines) * place.engines / tasks
    if gpu and resident:
        before["loading"] = n_bytes * read / place.processes
    works = works_by_stage(job, parts)
    stages = {
        name: work.parallel / place.all_threads + work.serial / min(place.processes, place.all_threads)
        for name, work in works.items()
    }
    reading = job.groups * n_bytes * read
    resources: dict[str, float] = {}
    busy = sum(work.parallel + work.serial for work in works.values())
    if gpu:
        speed = parts.gpu_cells * (1.0 if resident else parts.gpu_streamed) * place.devices
        score = resources["devices"] = job.cells / speed * idle
        if not resident:
            resources["reading"] = reading / place.processes
            score = max(score, resources["reading"])
        stages = {**stages, "collect": job.queries * job.residues * parts.collect / place.devices}
    else:
        on_processors = job.cells / parts.cpu_cells * idle + reading
        score, busy = on_processors / place.all_threads, busy + on_processors
        if disk is not None:
            resources["reading"] = reading / place.processes
            score = max(score, resources["reading"])
    resources["processors"] = busy / place.all_threads
    python = sum(work.serial for work in works.values())
    write = hits_of(job, parts) * parts.write
    if place.cluster:
        write = resources["client"] = tasks * parts.task + sent_of(job, place, parts) * parts.merge + write
        resources["Python of a worker"] = python / place.processes
    else:
        resources["Python"] = python + write
    stages = {**stages, "score": score, "write": write}
    in_order = {name: stages[name] for name in STAGES if name in stages}
    return Prediction(before, in_order, resources, job.shares, resident)


def works_by_stage(job: Job, parts: Parts) -> dict[str, Work]:
    """Return what preparing, rating and aligning take of all queries, by stage."""
    hits, rated = hits_of(job, parts), rated_of(job, parts)
    length = job.query_residues / max(1, job.queries)
    square = length**2 * (job.spread or (parts.spread if job.queries > 1 else 1.0))
    prepare, align = parts.prepare, parts.align
    found = {"align": Work(align.parallel * hits * square / parts.query_square, align.serial * hits)}
    if job.fitted:
        of_lengths = length / parts.query_length
        found["prepare"] = Work(prepare.parallel * job.queries * of_lengths, prepare.serial * job.queries)
        found["rate"] = Work(rated * parts.copies * square * parts.alike / parts.copy_cells, rated * parts.rate)
    return found
