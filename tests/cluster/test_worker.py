"""State of a worker: volumes where they are found, shares within its memory, and its own GPU."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.db_helpers import HBA, HBB
from swsearch import Database
from swsearch.cluster import worker
from swsearch.cluster.messages import EngineRequest, VolumeFile
from swsearch.cluster.worker import FOLDERS_VARIABLE, THREADS_VARIABLE, WorkerState, open_volume, own_device
from swsearch.db import build_database
from swsearch.engines.base import ChunkPlan
from swsearch.errors import DatabaseError
from swsearch.pipeline.subjects import ProteinSubjects


def build(path, *letters):
    path.parent.mkdir(exist_ok=True)
    fasta = path.with_suffix(".fasta")
    fasta.write_text("".join(f">s{k}\n{each}\n" for k, each in enumerate(letters)))
    build_database(fasta, path)
    with Database.open(path) as database:
        return VolumeFile(str(path), database.identity())


@pytest.fixture
def volume(tmp_path):
    return build(tmp_path / "shared" / "v1.h5", HBA, HBB, HBA[:40])


def of_dask(nthreads=1, memory=1 << 30):
    """Return what a state asks of Dask's worker."""
    return SimpleNamespace(
        state=SimpleNamespace(nthreads=nthreads), memory_manager=SimpleNamespace(memory_limit=memory)
    )


@pytest.fixture
def state():
    return WorkerState(of_dask())


@pytest.fixture
def subjects(volume):
    return ProteinSubjects(open_volume(volume), "none")


# volumes


def test_a_copy_on_a_workers_disk_is_taken_first(volume, tmp_path, monkeypatch):
    local, empty = tmp_path / "local", tmp_path / "empty"
    local.mkdir()
    empty.mkdir()
    shutil.copy(volume.path, local / "v1.h5")
    monkeypatch.setenv(FOLDERS_VARIABLE, f"{empty}:{local}")
    assert open_volume(volume).name == str(local / "v1.h5")
    (tmp_path / "shared" / "v1.h5").unlink()
    open_volume.cache_clear()
    assert open_volume(volume).name == str(local / "v1.h5")


def test_another_volume_of_that_name_is_not_taken(volume, tmp_path, monkeypatch):
    other = build(tmp_path / "local" / "v1.h5", HBB, HBA)
    monkeypatch.setenv(FOLDERS_VARIABLE, str(tmp_path / "local"))
    assert open_volume(volume).name == volume.path
    wanted = VolumeFile(volume.path, "0" * 64)
    with pytest.raises(DatabaseError, match=r"volume v1.h5: .*local.*is another database .*; .*shared"):
        open_volume(wanted)
    (tmp_path / "shared" / "v1.h5").write_bytes(b"no database")
    open_volume.cache_clear()
    with pytest.raises(DatabaseError, match=f"sha256 {other.identity[:12]}, expected {volume.identity[:12]}"):
        open_volume(volume)


def test_a_volume_that_is_nowhere_is_told_with_the_remedy(tmp_path):
    with pytest.raises(DatabaseError, match=r"v9.h5 not found; move it where this machine can read it.*SWSEARCH_VOL"):
        open_volume(VolumeFile(str(tmp_path / "v9.h5"), "0" * 64))


# threads, shares and memory


def test_the_environment_says_how_many_threads_compute(monkeypatch):
    monkeypatch.setattr("swsearch.processors.available_processors", lambda: 64)
    assert WorkerState(of_dask(nthreads=2)).threads == 2
    monkeypatch.setenv(THREADS_VARIABLE, "16")
    assert WorkerState(of_dask(nthreads=2)).threads == 16
    monkeypatch.setenv(THREADS_VARIABLE, "1000")
    assert WorkerState(of_dask(nthreads=2)).threads == 64


def test_shares_are_kept_up_to_half_of_the_memory(state, subjects):
    engine, n = state.engine(EngineRequest("cpu")), subjects.residue_bytes
    assert state.engine(EngineRequest("cpu")) is engine
    held = {place: state.share(engine, place, subjects, "none", (1, 100)) for place in (0, 1)}
    assert [state.share(engine, place, subjects, "none", (1, 100)) for place in (0, 1)] == list(held.values())
    state.memory = 2 * 2 * n
    state.share(engine, 2, subjects, "none", (1, 100))
    assert list(state._shares) == [1, 2]
    state.memory = n
    alone = state.share(engine, 3, subjects, "none", (1, 100))
    assert 3 not in state._shares
    list(alone.loaded)
    assert alone.loaded.resident_chunk is None  # it is read again


class Device:
    """An engine with room for some bytes."""

    name = "gpu"

    def __init__(self, room):
        self.room, self.plans = room, []

    def plan(self, workload):
        self.plans.append(workload.residue_bytes)
        return ChunkPlan(1 << 20, keep_loaded=workload.residue_bytes <= self.room)

    def set_reload(self, chunks):
        pass


def test_a_device_holds_as_many_shares_as_fit_one_plan(state, subjects):
    n, engine = subjects.residue_bytes, Device(2 * subjects.residue_bytes)
    for key in range(3):
        state.share(engine, key, subjects, "none", (1, 100))
    assert engine.plans == [n, 2 * n, 3 * n, 2 * n]
    assert list(state._shares) == [1, 2]
    state.share(engine, 1, subjects, "none", (1, 100))
    assert len(engine.plans) == 4
    state.share(engine, 1, subjects, "none", (1000, 10**6))  # more queries than were planned for
    assert engine.plans[4:] == [2 * n]


def test_another_engine_takes_the_place_of_the_first(state, subjects):
    first = state.engine(EngineRequest("cpu"))
    state.share(first, 0, subjects, "none", (1, 100))
    assert state.engine(EngineRequest("reference")) is not first
    assert not state._shares
    assert state.request == EngineRequest("reference")


PROGRAM = """
import resource
import numpy as np
from swsearch.cluster.worker import _keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(200):
        np.ones(512 << 10, dtype=np.int8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = faults()
_keep_freed_memory()
faults()
print(first, faults())
"""
"""Prints how many pages the system gave for 200 arrays of 128 pages each, before and after."""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such setting")
@pytest.mark.parametrize(("trim", "is_kept"), [("65536", True), ("131072", False)])
def test_what_a_task_frees_is_kept_for_the_next_one_unless_the_user_set_something(trim, is_kept):
    environment = {**os.environ, "MALLOC_TRIM_THRESHOLD_": trim}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    before, after = map(int, done.stdout.split())
    assert before > 150 * 128
    assert (after < 10 * 128) == is_kept, (before, after)


# GPUs


@pytest.fixture
def gpus(monkeypatch, tmp_path):
    """Two GPUs, whose locks are files of this test."""
    monkeypatch.setattr("swsearch.cuda_package.chosen_package", lambda: "pycuda")
    devices = [SimpleNamespace(index=0), SimpleNamespace(index=1)]
    monkeypatch.setattr("swsearch.engines.gpu.device.list_devices", lambda: devices)
    bus = SimpleNamespace(Device=lambda index: SimpleNamespace(pci_bus_id=lambda: f"test:{os.getpid()}:{index}"))
    monkeypatch.setattr("swsearch.engines.gpu.driver.driver", lambda: bus)
    own_device.cache_clear()
    yield devices
    own_device.cache_clear()
    for index in range(2):
        Path(f"/tmp/swsearch-gpu-{os.getuid()}-test-{os.getpid()}-{index}").unlink(missing_ok=True)


def test_each_worker_of_a_host_makes_its_engine_on_its_gpu(gpus, monkeypatch):
    made = []
    monkeypatch.setattr(worker, "create_engine", lambda name, **options: made.append((name, options)))
    for _ in range(3):
        WorkerState(of_dask()).engine(EngineRequest("auto", 1 << 30))
        own_device.cache_clear()
    assert [(name, options["device"], options["gpu_memory"]) for name, options in made] == [
        ("auto", 0, 1 << 30), ("auto", 1, 1 << 30), ("auto", 0, 1 << 30),
    ]  # fmt: skip


def test_a_gpu_that_another_worker_has_costs_no_descriptor(gpus):
    kept = [own_device.__wrapped__() for _ in gpus]
    before = len(list(Path("/proc/self/fd").iterdir()))
    assert [own_device.__wrapped__() for _ in kept] == [0, 0]
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_link_in_place_of_a_gpus_lock_is_not_followed(gpus, tmp_path):
    Path(f"/tmp/swsearch-gpu-{os.getuid()}-test-{os.getpid()}-0").symlink_to(tmp_path / "target")
    assert own_device() == 1
    assert not (tmp_path / "target").exists()


def test_a_worker_without_a_gpu_takes_the_cpu_whatever_gpu_memory_says(state, monkeypatch):
    monkeypatch.setattr(worker, "own_device", lambda: None)
    assert state.engine(EngineRequest("auto", 1 << 30)).name == "cpu"
