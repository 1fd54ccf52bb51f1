"""What a worker keeps: volumes where they are found, and shares as far as its memory goes."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from support.db_helpers import HBA, HBB
from swsearch import Database
from swsearch.cluster import tasks
from swsearch.cluster.crew import InlineCrew, Task
from swsearch.cluster.on_worker import as_one
from swsearch.cluster.sent import AllowedPart, EngineWanted, GroupSent, VolumeWanted, VolumeWork, of_bytes, to_bytes
from swsearch.cluster.transport import WorkerPlace
from swsearch.cluster.worker import FOLDERS, Bench, bench_of, forget, make_engine, open_volume
from swsearch.db import build_database
from swsearch.engines.base import ChunkPlan
from swsearch.errors import DatabaseError
from swsearch.inputs import read_queries
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.scorer import Scorer
from swsearch.version import version

PLACE = WorkerPlace(0, 0, 1, 1 << 30, "here")


def build(path, *letters):
    path.parent.mkdir(exist_ok=True)
    fasta = path.with_suffix(".fasta")
    fasta.write_text("".join(f">s{k}\n{each}\n" for k, each in enumerate(letters)))
    build_database(fasta, path)
    with Database.open(path) as database:
        return VolumeWanted(str(path), database.identity())


@pytest.fixture
def volume(tmp_path):
    return build(tmp_path / "shared" / "v1.h5", HBA, HBB, HBA[:40])


@pytest.fixture
def bench():
    made = Bench(PLACE)
    yield made
    made.close()


def work_on(volume, **others):
    values = {"allowed": None, "fit": None, "includes": False, "largest": (2, 300), "mask": "none"} | others
    return VolumeWork(volume, EngineWanted("cpu"), SearchOptions(), **values)


def test_a_volume_is_taken_from_where_it_is(volume):
    with open_volume(volume, "here") as database:
        assert database.name == volume.path


def test_a_copy_on_a_workers_disk_is_taken_first(volume, tmp_path, monkeypatch):
    local, empty = tmp_path / "local", tmp_path / "empty"
    local.mkdir()
    empty.mkdir()
    shutil.copy(volume.path, local / "v1.h5")
    monkeypatch.setenv(FOLDERS, f"{empty}:{local}")
    with open_volume(volume, "here") as database:
        assert database.name == str(local / "v1.h5")
    (tmp_path / "shared" / "v1.h5").unlink()
    with open_volume(volume, "here") as database:
        assert database.name == str(local / "v1.h5")


def test_another_volume_of_that_name_is_not_taken(volume, tmp_path, monkeypatch):
    other = build(tmp_path / "local" / "v1.h5", HBB, HBA)
    monkeypatch.setenv(FOLDERS, str(tmp_path / "local"))
    with open_volume(volume, "here") as database:
        assert database.name == volume.path
    wanted = VolumeWanted(volume.path, "0" * 64)
    with pytest.raises(
        DatabaseError, match=r"worker on here: volume v1.h5: .*local.*is another database .*; .*shared"
    ):
        open_volume(wanted, "here")
    (tmp_path / "shared" / "v1.h5").write_bytes(b"no database")
    with pytest.raises(DatabaseError, match=f"sha256 {other.identity[:12]}, expected {volume.identity[:12]}"):
        open_volume(volume, "here")


def test_a_volume_that_is_nowhere_is_told_with_the_remedy(tmp_path):
    with pytest.raises(DatabaseError, match=r"v9.h5 not found; move it where this machine can read it.*SWSEARCH_VOL"):
        open_volume(VolumeWanted(str(tmp_path / "v9.h5"), "0" * 64), "here")


def test_shares_are_kept_as_far_as_memory_goes(volume, bench, monkeypatch):
    data = to_bytes(work_on(volume))
    work = bench.work(data)
    assert bench.work(data) is work
    engine = bench.engine(EngineWanted("cpu"))
    assert bench.engine(EngineWanted("cpu")) is engine
    held = {}
    for place in (0, 1):
        share = work.volume  # both of the same size
        key = (volume, "none", place, 2)
        held[key] = bench.loaded(engine, key, share, (1, 100))
        assert held[key].plan.keep
        assert bench.loaded(engine, key, share, (1, 100)) is held[key]
    first, second = held
    monkeypatch.setattr(Bench, "memory", 3 * work.volume.residue_bytes)
    third = bench.loaded(engine, (volume, "none", 2, 3), work.volume, (1, 100))
    assert third.plan.keep
    assert set(bench._held) == {(volume, "none", 2, 3)}
    monkeypatch.setattr(Bench, "memory", work.volume.residue_bytes)
    assert not bench.loaded(engine, first, work.volume, (1, 100)).plan.keep
    assert second not in bench._held


class Device:
    """An engine with room for some bytes."""

    name = "gpu"

    def __init__(self, room):
        self.room, self.plans, self.released = room, [], []

    def plan(self, workload):
        self.plans.append(workload.residue_bytes)
        return ChunkPlan(1 << 20, keep=workload.residue_bytes <= self.room)

    def reads_again(self, chunks):
        pass

    def release(self, loaded):
        self.released.append(loaded)


def test_a_device_holds_as_many_shares_as_fit_one_plan(volume, bench):
    share = bench.work(to_bytes(work_on(volume))).volume
    n, engine = share.residue_bytes, Device(2 * share.residue_bytes)
    keys = [(volume, "none", place, 3) for place in range(3)]
    for key in keys:
        bench.loaded(engine, key, share, (1, 100))
    assert engine.plans == [n, 2 * n, 3 * n, 2 * n]
    assert list(bench._held) == keys[1:]
    bench.loaded(engine, keys[1], share, (1, 100))
    assert len(engine.plans) == 4
    bench.loaded(engine, keys[1], share, (1000, 10**6))  # more queries than were planned for
    assert engine.plans[4:] == [2 * n]


def test_what_fails_on_an_engine_is_loaded_anew(volume, bench):
    work = bench.work(to_bytes(work_on(volume)))
    engine = bench.engine(EngineWanted("cpu"))
    bench.loaded(engine, (volume, "none", 0, 1), work.volume, (1, 100))
    with pytest.raises(ZeroDivisionError), bench.turn(engine):
        raise ZeroDivisionError
    assert not bench._held
    with bench.turn(engine):
        pass  # the next may have it


def test_each_worker_of_a_host_takes_a_gpu_of_its_own(monkeypatch):
    made = []
    monkeypatch.setattr("swsearch.cluster.worker.create_engine", lambda name, **options: made.append((name, options)))
    monkeypatch.setattr("swsearch.engines.choice.pycuda_is_installed", lambda: True)
    monkeypatch.setattr("swsearch.engines.gpu.device.list_devices", lambda: ["a", "b"])
    for on_host in range(3):
        make_engine(EngineWanted("auto", 1 << 30), WorkerPlace(0, on_host, 4, 0, "here"), 4)
    assert [(name, options["device"], options["gpu_memory"]) for name, options in made] == [
        ("auto", 0, 1 << 30), ("auto", 1, 1 << 30), ("auto", 0, 1 << 30),
    ]  # fmt: skip


def test_a_worker_without_a_gpu_takes_the_cpu_whatever_gpu_memory_says(monkeypatch):
    monkeypatch.setattr("swsearch.engines.choice.pycuda_is_installed", lambda: False)
    with make_engine(EngineWanted("auto", 1 << 30), PLACE, 1) as engine:
        assert engine.name == "cpu"


def test_facts_tell_of_engine_and_volumes(volume, tmp_path):
    missing = VolumeWanted(str(tmp_path / "v2.h5"), "0" * 64)
    try:
        told = json.loads(tasks.facts(to_bytes((EngineWanted("cpu"), [volume, missing])), PLACE))
        assert told["name"] == "cpu"
        assert told["engine"].startswith("cpu (")
        assert (told["host"], told["version"], told["threads"], told["problem"]) == ("here", version(), 1, "")
        assert told["volumes"][volume.path] == ""
        assert "v2.h5 not found" in told["volumes"][missing.path]
        assert "gpu cannot be used" in json.loads(tasks.facts(to_bytes((EngineWanted("gpu"), [])), PLACE))["problem"]
    finally:
        forget(PLACE)
    assert bench_of(PLACE) is not None
    forget(PLACE)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999, 1.0])
def test_what_is_allowed_is_sent_in_little_memory(share):
    generator = np.random.default_rng(3)
    for n in (0, 1, 7, 70_000):
        allowed = generator.random(n) < share
        sent = of_bytes(to_bytes(AllowedPart.of(allowed)))
        assert sent.array().dtype == np.bool_
        assert np.array_equal(sent.array(), allowed)
        assert len(to_bytes(sent)) < 1000 + n // (100 if share in (0.0, 0.001, 0.999, 1.0) else 7)


def test_what_a_worker_keeps_is_its_own_however_clients_count_it():
    with as_one("w", PLACE) as first, as_one("w", replace(PLACE, index=7)) as second:
        assert second.index == 7
        assert bench_of(first) is bench_of(second)
    with as_one("other", PLACE) as other:
        assert bench_of(other) is not bench_of(first)
    forget(first)
    forget(other)


def test_a_worker_of_another_rank_lets_go_of_what_it_kept_when_no_task_runs():
    moved = replace(PLACE, on_host=1)
    with as_one("w2", PLACE) as first:
        before = bench_of(first)
        before.engine(EngineWanted("cpu"))
        with as_one("w2", moved) as second:
            assert bench_of(second) is before
    with as_one("w2", moved) as third:
        after = bench_of(third)
        assert third.on_host == 1
        assert after is not before
        assert before._made is None
    forget(third)


def test_two_crews_of_one_process_share_nothing():
    """Closed, one would take the engine from under the tasks of the other."""
    task = Task("swsearch.cluster.tasks:facts", to_bytes((EngineWanted("cpu"), [])), ("facts",), 1)
    with InlineCrew(1, 1) as stays:
        stays.submit(task).result()
        (place,) = stays._transport._places.values()
        kept = bench_of(place)
        with InlineCrew(1, 1) as other:
            other.submit(task).result()
        assert kept._made is not None
        assert bench_of(place) is kept


def test_an_engine_that_another_search_replaced_is_not_given_anything(volume, monkeypatch):
    place = replace(PLACE, owner="replaced")
    bench, used = bench_of(place), []
    payload = to_bytes((to_bytes(work_on(volume)), to_bytes(GroupSent(read_queries(HBA), [None])), 0, 1))
    prepare, loaded = Scorer.prepare, Bench.loaded

    def replaced(scorer, *given):
        made = prepare(scorer, *given)
        if len(used) == 0:
            used.append(scorer.engine)
            bench.engine(EngineWanted("reference"))
        return made

    def noted(bench, engine, *given):
        used.append(engine)
        return loaded(bench, engine, *given)

    monkeypatch.setattr(Scorer, "prepare", replaced)
    monkeypatch.setattr(Bench, "loaded", noted)
    tasks.score(payload, place)
    assert len(used) == 2
    assert used[1] is bench.engine(EngineWanted("cpu"))
    assert used[1] is not used[0]
    forget(place)
