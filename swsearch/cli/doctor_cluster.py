"""What a cluster offers: which workers there are, with what they would search, and what they can read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from swsearch.cli.doctor import Finding
from swsearch.cluster.pool import MAX_TASKS_AT_ONCE, too_many_at_once
from swsearch.cluster.same_program import program

if TYPE_CHECKING:
    from swsearch.cluster.survey import WorkerSeen
    from swsearch.db.volumes import Volume


def examine_cluster(name: str, path: Path | None) -> Iterator[Finding]:
    """Yield findings about a cluster; one that is not good means that a search would do without something.

    Parameters
    ----------
    name : str
        As ``--cluster`` takes it.
    path : Path, optional
        A database that workers are to read.

    Raises
    ------
    DatabaseError
        If this machine cannot read the database.
    OptionError
        If it is no name of a cluster.
    ClusterError
        If the cluster cannot be reached.
    """
    from swsearch.cluster.opening import connected
    from swsearch.cluster.survey import survey
    from swsearch.db import Database
    from swsearch.version import version

    findings = [Finding("swsearch", version())]
    volumes: tuple[Volume, ...] = ()
    if path is not None:
        with Database.open(path) as database:
            volumes = database.volumes
            text = f"{database.name}: {_counted(len(volumes), 'volume')}, {database.n_subjects:,} subjects"
            findings.append(Finding("database", f"{text}, {database.n_residues:,} residues"))
            for volume in volumes:
                volume.identity()  # read while it is open
    with connected(name) as client:
        seen = survey(client, volumes)
    yield from findings  # what cannot be reached is told alone
    yield from describe(name, seen, volumes)


def describe(name: str, seen: Sequence[WorkerSeen], volumes: Sequence[Volume]) -> Iterator[Finding]:
    """Yield findings about workers that were seen."""
    if not seen:
        yield Finding("cluster", f"{name}: no worker is there; start some: dask worker {name}", good=False)
        return
    threads, memory = sum(each.threads for each in seen), sum(each.memory for each in seen)
    hosts = len({each.host for each in seen})
    yield Finding(
        "cluster",
        f"{name}: {_counted(len(seen), 'worker')} on {_counted(hosts, 'host')}, {_counted(threads, 'thread')}, "
        f"{_size(memory)}",
    )
    for worker in seen:
        yield from _worker(worker, volumes)
    usable = [each for each in seen if not each.problem]
    yield from _settings(usable)
    yield _versions(usable)
    if volumes:
        yield from _reading(seen, usable, volumes)


def _reading(
    seen: Sequence[WorkerSeen], usable: Sequence[WorkerSeen], volumes: Sequence[Volume]
) -> Iterator[Finding]:
    """Say who can read the volumes: a search needs somebody for each of them."""
    readers = {volume.path: sum(not each.volumes[volume.path].problem for each in usable) for volume in volumes}
    whole = sum(all(not each.problem for each in worker.volumes.values()) for worker in usable)
    text = f"{whole} of {_counted(len(seen), 'worker')} can read all volumes"
    yield Finding("reading", text, good=whole == len(seen))
    for path, number in readers.items():
        if not number:
            yield Finding("reading", f"no worker can read {path}: a search would fail", good=False)


def _worker(worker: WorkerSeen, volumes: Sequence[Volume]) -> Iterator[Finding]:
    head = f"{worker.address} on {worker.host or 'an unnamed host'}"
    head += f", {_counted(worker.threads, 'thread')}" if worker.threads else ""
    head += f", {_size(worker.memory)}" if worker.memory else ", memory without limit"
    if worker.problem:
        yield Finding("worker", f"{head}: not used: {worker.problem}", good=False)
        return
    why = f"; no GPU: {worker.why}" if worker.why else ""
    yield Finding("worker", f"{head}: {worker.description}{why}")
    if worker.shares_a_device:
        device = worker.on_host % worker.devices
        yield Finding("  gpu", f"device {device} has another worker, too; one worker for each GPU is as fast")
    if not volumes:
        return
    copies = sum(path != seen.path for path, seen in worker.volumes.items() if seen.path)
    read = sum(not seen.problem for seen in worker.volumes.values())
    note = f", {copies} of them copies of its own" if copies else ""
    yield Finding("  volumes", f"{read} of {len(volumes)} can be read{note}", good=read > 0)
    for seen in worker.volumes.values():
        if seen.problem:
            yield Finding("  volume", seen.problem, good=False)


def _versions(usable: Sequence[WorkerSeen]) -> Finding:
    """Say what runs on the workers that can be used, which all have the client's versions."""
    if not usable:
        return Finding("versions", "no worker has those of this machine", good=False)
    names = ", ".join(f"Python {each}" for each in sorted({each.python for each in usable}))
    return Finding("versions", f"as here: {names}, dask.distributed {program()['distributed']}")


def _settings(usable: Sequence[WorkerSeen]) -> Iterator[Finding]:
    """Say which workers were started so that processors stand idle, or tasks are badly shared out."""
    busy = [each for each in usable if each.at_once > MAX_TASKS_AT_ONCE]
    if busy:
        text = f"{_counted(len(busy), 'worker')}: {too_many_at_once(max(each.at_once for each in busy))}"
        yield Finding("threads", text, good=False)
    for host in sorted({each.host for each in usable}):
        there = [each for each in usable if each.host == host]
        threads, processors = sum(each.threads for each in there), max(each.processors for each in there)
        if threads < processors and not all(each.is_set for each in there):
            text = f"workers on {host or 'an unnamed host'} compute with {threads} of its {processors} processors"
            yield Finding("threads", f"{text}; SWSEARCH_THREADS says how many each takes", good=False)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _size(number: int) -> str:
    return f"{number / (1 << 30):,.1f} GiB"
