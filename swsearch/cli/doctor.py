"""``swsearch doctor``: engines of this machine, or the workers of a cluster.

The command line imports this module to describe it, so each function imports the modules that it examines.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swsearch.cli.console import size_of
from swsearch.cli.parameters import takes
from swsearch.cli.tables import RunTable
from swsearch.errors import GpuUnavailableError, OptionError, format_count

if TYPE_CHECKING:
    from swsearch.cluster.opening import WorkerReport
    from swsearch.db.database_files import Volume
    from swsearch.engines.base import Engine
    from swsearch.engines.gpu.compiler import Compiler
    from swsearch.engines.gpu.device import DeviceInfo

DEPENDENCIES = ("numpy", "Bio", "h5py", "typer", "zstandard")
"""Modules that swsearch cannot do without."""


@dataclass(frozen=True)
class Finding:
    """One line of the examination."""

    topic: str
    text: str
    is_ok: bool = True


@takes(
    RunTable,
    names="cluster",
    cluster={
        "help": "Examine the workers of a Dask cluster (scheduler address), e.g. tcp://host:8786.",
        "unset": "this machine",
        "metavar": "ADDRESS",
        "heading": None,
    },
)
def doctor_command(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="DATABASE", help="With --cluster: a database that the workers must be able to read."),
    ] = None,
    **given: Any,
) -> None:
    """Report which engine runs here and why not a faster one, or what the workers of a cluster can do."""
    cluster = RunTable.from_values(given).cluster
    if cluster is None and path is not None:
        raise OptionError("DATABASE", str(path), "--cluster beside it", "swsearch db verify checks a database here")
    healthy = True
    for line in check_machine() if cluster is None else examine_cluster(cluster, path):
        healthy = healthy and line.is_ok
        typer.echo(f"{line.topic:<12} {line.text}")
    if not healthy:
        raise typer.Exit(3)


def check_machine() -> Iterator[Finding]:
    """Yield findings, the most general first; one that is not good means that searching would fail.

    A machine without a usable GPU is fine: ``auto`` takes the CPU there.
    """
    from swsearch import extension
    from swsearch.version import version

    yield Finding("swsearch", f"{version()}, Python {platform.python_version()}, {platform.platform()}")
    yield _examine_libraries()
    engine = yield from _examine_gpu()
    yield from _examine_cpu()
    yield Finding("extension", f"used to align pairs, with {extension.active_instruction_set()} instructions")
    yield Finding("auto", f"--engine auto takes {engine}")


def _examine_libraries() -> Finding:
    """Return the versions of what swsearch needs, and what is missing."""
    texts, is_ok = [], True
    for name in DEPENDENCIES:
        try:
            texts.append(f"{name} {getattr(importlib.import_module(name), '__version__', '?')}")
        except ImportError:
            texts.append(f"{name} is missing (pip install swsearch)")
            is_ok = False
    return Finding("libraries", ", ".join(texts), is_ok)


def _examine_gpu() -> Generator[Finding, None, str]:
    """Yield findings, one part after the other until something is missing; return what ``auto`` takes."""
    from swsearch.cuda_package import chosen_package, why_no_package

    if not chosen_package():
        yield Finding("gpu", f"not used: {why_no_package()}")
        return "cpu"
    try:
        return (yield from _examine_gpu_parts())
    except Exception as error:
        yield (finding := _failure("gpu", error, "search with --engine cpu"))
        return "cpu" if finding.is_ok else "gpu, which fails: use --engine cpu"


def _failure(topic: str, error: Exception, remedy: str) -> Finding:
    """Return the finding for a GPU that cannot be opened, or that fails when a search uses it."""
    from swsearch.cuda_package import UNUSABLE

    if isinstance(error, GpuUnavailableError):
        return Finding(topic, f"not used: {str(error).removeprefix(UNUSABLE)}")
    return Finding(topic, f"failed: {error}; {remedy}", is_ok=False)


def _examine_gpu_parts() -> Generator[Finding, None, str]:
    from swsearch.engines.gpu.compiler import find_compiler
    from swsearch.engines.gpu.device import choose_device, list_devices
    from swsearch.engines.gpu.engine import GpuEngine

    yield Finding("gpu package", _describe_packages())
    devices = list_devices()
    yield Finding("driver", "for CUDA {}.{}".format(*devices[0].driver_version))
    for device in devices:
        yield Finding(f"device {device.index}", _describe_device(device))
    chosen = choose_device(None)
    compiler = find_compiler(chosen.architecture, chosen.driver_version)
    yield Finding("compiler", f"{compiler.description} ({compiler.toolchain.path}), for {chosen.architecture}")
    yield Finding("kernel cache", _describe_cache(compiler))
    with GpuEngine() as engine:
        yield Finding("gpu", f"usable: {engine.description}")
        finding = _test_engine(engine)
    yield finding
    if len(devices) > 1:
        yield from _examine_other_devices(devices, chosen)
    return "gpu" if finding.is_ok else "gpu, which is wrong: use --engine cpu"


def _examine_other_devices(devices: Sequence[DeviceInfo], chosen: DeviceInfo) -> Iterator[Finding]:
    """Yield whether every other device than the one that was examined computes, and what ``--device all`` takes."""
    from swsearch.engines.gpu.device import names_of, why_too_old
    from swsearch.engines.gpu.engine import GpuEngine

    usable = []
    for each in devices:
        name, is_opened = f"device {each.index}", not why_too_old(each)
        if is_opened and each.index != chosen.index:
            try:
                with GpuEngine(each.index) as engine:
                    yield _test_engine(engine, name)
            except Exception as error:
                is_opened = not isinstance(error, GpuUnavailableError)
                yield _failure(name, error, "search with another --device")
        if is_opened:
            usable.append(each)
    yield Finding("device all", f"--device all takes {names_of(usable)}")


def _describe_device(device: DeviceInfo) -> str:
    from swsearch.engines.gpu.device import OLDEST_CAPABILITY

    major, minor = device.capability
    text = (
        f"{device.name}, compute capability {major}.{minor}, {device.memory / (1 << 30):.1f} GiB, "
        f"{device.multiprocessors} multiprocessors"
    )
    if device.capability < OLDEST_CAPABILITY:
        text += "; too old, expected compute capability {}.{} or later".format(*OLDEST_CAPABILITY)
    return text


def _describe_cache(compiler: Compiler) -> str:
    if compiler.cache_folder is None:
        return compiler.cache_note
    # another process may rename or remove entries meanwhile
    sizes = []
    for entry in compiler.cache_folder.glob("*.cubin"):
        with contextlib.suppress(OSError):
            sizes.append(entry.stat().st_size)
    return f"{compiler.cache_folder}: {len(sizes)} kernels, {sum(sizes) / (1 << 20):.1f} MiB"


def _describe_packages() -> str:
    """Say which package reaches CUDA's driver, why that one, and which are missing."""
    from swsearch.cuda_package import EXTRAS, VARIABLE, chosen_package, installed_packages

    installed, chosen = installed_packages(), chosen_package()
    texts = {each: f"{each} {_distribution_version(each)}" for each in installed}
    why = f", as {VARIABLE} says" if os.environ.get(VARIABLE) else ""
    others = [
        f"not used: {texts[each]} ({VARIABLE}={each})" if each in texts
        else f"{each} is not installed (pip install 'swsearch[{extra}]')"
        for each, extra in EXTRAS.items() if each != chosen
    ]  # fmt: skip
    return "; ".join([texts[chosen] + why, *others])


def _distribution_version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "of unknown version"


def _examine_cpu() -> Iterator[Finding]:
    from swsearch.engines.cpu.engine import CpuEngine

    try:
        with CpuEngine() as engine:
            yield Finding("cpu", f"usable: {engine.description}")
            yield _test_engine(engine)
    except Exception as error:
        yield Finding("cpu", f"failed: {error}", is_ok=False)


def _test_engine(engine: Engine, name: str = "") -> Finding:
    wrong, name = self_test(engine), name or engine.name
    if wrong:
        text = f"{name}: {wrong} scores differ from the reference; use another --engine and report this"
        return Finding("self-test", text, is_ok=False)
    return Finding("self-test", f"{name}: 192 scores equal to the reference, local, global and semi-global")


def self_test(engine: Engine) -> int:
    """Score 64 made-up subjects in every mode and count the scores that differ from the reference."""
    import numpy as np

    from swsearch import reference
    from swsearch.db import Database
    from swsearch.options.kinds import MODES
    from swsearch.recurrence import Recurrence
    from swsearch.scoring import Scoring

    generator = np.random.default_rng(1)
    scoring = Scoring()
    letters = scoring.matrix.alphabet.letters
    sequences = ["".join(letters[k] for k in generator.integers(0, 20, length)) for length in range(1, 65)]
    query = scoring.matrix.alphabet.encode(sequences[40] * 2)
    wrong = 0
    with Database.from_records(sequences) as database:
        for mode in MODES:
            group = engine.prepare([scoring.rows(query)], Recurrence(scoring, mode))
            for chunk in database.chunks(1 << 20):
                loaded = engine.load(chunk)
                values = engine.score(group, loaded)[0]
                engine.release(loaded)
                for place in range(chunk.n_subjects):
                    wrong += int(values[place]) != reference.score(query, chunk.subject(place), scoring, mode)
    return wrong


def examine_cluster(name: str, path: Path | None) -> Iterator[Finding]:
    """Yield findings about a cluster; a finding that is not good means that a search would lack something."""
    from swsearch.cluster.opening import connect, inspect_cluster
    from swsearch.db import Database
    from swsearch.version import version

    findings = [Finding("swsearch", version())]
    volumes: tuple[Volume, ...] = ()
    if path is not None:
        with Database.open(path) as database:
            volumes = database.volumes
            size = size_of(database.n_subjects, database.n_residues)
            findings.append(Finding("database", f"{database.name}: {format_count(len(volumes), 'volume')}, {size}"))
            for volume in volumes:
                volume.identity()  # read while it is open
    with connect(name) as client:
        seen = inspect_cluster(client, volumes)
    yield from findings  # what cannot be reached is told alone
    yield from describe_cluster(name, seen, volumes)


def describe_cluster(name: str, seen: Sequence[WorkerReport], volumes: Sequence[Volume]) -> Iterator[Finding]:
    """Yield findings about workers that were seen."""
    if not seen:
        yield Finding("cluster", f"{name}: no worker is there; start some: dask worker {name}", is_ok=False)
        return
    threads, memory = sum(each.threads for each in seen), sum(each.memory for each in seen)
    hosts = len({each.host for each in seen})
    yield Finding(
        "cluster",
        f"{name}: {format_count(len(seen), 'worker')} on {format_count(hosts, 'host')}, "
        f"{format_count(threads, 'thread')}, {_size(memory)}",
    )
    for worker in seen:
        yield from _worker(worker, volumes)
    usable = [each for each in seen if not each.problem]
    yield from _settings(usable)
    yield _versions(usable)
    if volumes:
        yield from _reading(seen, usable, volumes)


def _reading(
    seen: Sequence[WorkerReport], usable: Sequence[WorkerReport], volumes: Sequence[Volume]
) -> Iterator[Finding]:
    """Yield findings about the volumes that the workers can read; a search needs one reader for each."""
    readers = {volume.path: sum(not each.volumes[volume.path].problem for each in usable) for volume in volumes}
    whole = sum(all(not each.problem for each in worker.volumes.values()) for worker in usable)
    text = f"{whole} of {format_count(len(seen), 'worker')} can read all volumes"
    yield Finding("reading", text, is_ok=whole == len(seen))
    for path, number in readers.items():
        if not number:
            yield Finding("reading", f"no worker can read {path}: a search would fail", is_ok=False)


def _worker(worker: WorkerReport, volumes: Sequence[Volume]) -> Iterator[Finding]:
    head = f"{worker.address} on {worker.host or 'an unnamed host'}"
    head += f", {format_count(worker.threads, 'thread')}" if worker.threads else ""
    head += f", {_size(worker.memory)}" if worker.memory else ", memory without limit"
    if worker.problem:
        yield Finding("worker", f"{head}: not used: {worker.problem}", is_ok=False)
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
    yield Finding("  volumes", f"{read} of {len(volumes)} can be read{note}", is_ok=read > 0)
    for seen in worker.volumes.values():
        if seen.problem:
            yield Finding("  volume", seen.problem, is_ok=False)


def _versions(usable: Sequence[WorkerReport]) -> Finding:
    """Return the finding about the versions of usable workers, which are the client's."""
    from swsearch.cluster.messages import program_versions

    if not usable:
        return Finding("versions", "no worker has those of this machine", is_ok=False)
    names = ", ".join(f"Python {each}" for each in sorted({each.python for each in usable}))
    return Finding("versions", f"as here: {names}, dask.distributed {program_versions()['distributed']}")


def _settings(usable: Sequence[WorkerReport]) -> Iterator[Finding]:
    """Yield findings about workers with idle processors or too many tasks at a time."""
    from swsearch.cluster.pool import MAX_CONCURRENT_TASKS, too_many_at_once

    busy = [each for each in usable if each.at_once > MAX_CONCURRENT_TASKS]
    if busy:
        text = f"{format_count(len(busy), 'worker')}: {too_many_at_once(max(each.at_once for each in busy))}"
        yield Finding("threads", text, is_ok=False)
    for host in sorted({each.host for each in usable}):
        there = [each for each in usable if each.host == host]
        threads, processors = sum(each.threads for each in there), max(each.processors for each in there)
        if threads < processors and not all(each.is_set for each in there):
            text = f"workers on {host or 'an unnamed host'} compute with {threads} of its {processors} processors"
            yield Finding("threads", f"{text}; SWSEARCH_THREADS says how many each takes", is_ok=False)


def _size(number: int) -> str:
    return f"{number / (1 << 30):,.1f} GiB"
