"""Survey of workers: workers that fit, others, and workers that do not answer."""

from __future__ import annotations

import shutil

import pytest

from support import fake_driver
from swsearch.cluster import opening, pool
from swsearch.cluster.opening import WorkerReport
from swsearch.db import Database

pytest.importorskip("distributed")


def built(path, letters):
    fasta = path.with_suffix(".fasta")
    fasta.write_text(f">a\n{letters}\n>b\nMKVLWW\n", encoding="utf-8")
    Database.build([fasta], path).close()


@pytest.fixture
def database(tmp_path):
    built(tmp_path / "two.h5", "MKVLAAGIVGLCAKWW")
    with Database.open(tmp_path / "two.h5") as opened:
        yield opened


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch):
    fake_driver.remove(monkeypatch)


def test_workers_say_what_they_are_and_find_the_database(dask_client, database):
    first, second = opening.inspect_cluster(dask_client, database.volumes)
    assert first.address < second.address
    assert (first.host, first.on_host, second.on_host) == (second.host, 0, 1)
    path = database.volumes[0].path
    for seen in (first, second):
        assert seen.problem == ""
        assert seen.description.startswith("cpu (")
        assert seen.why.startswith("neither PyCUDA nor cuda-bindings is installed")
        assert (seen.devices, seen.shares_a_device, seen.at_once, seen.is_set) == (0, False, 2, False)
        assert (seen.volumes[path].path, seen.volumes[path].problem) == (path, "")
        assert seen.python.count(".") == 2
        assert seen.memory > 1 << 20


def test_a_worker_of_another_version_is_not_asked_further(dask_client, monkeypatch):
    monkeypatch.setattr(pool, "version_mismatch", lambda theirs, ours: "swsearch 0.0.9, here 1.0")
    for seen in opening.inspect_cluster(dask_client):
        assert (seen.problem, seen.description) == ("swsearch 0.0.9, here 1.0", "")


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (ModuleNotFoundError("No module named 'swsearch'"),
         "it cannot load swsearch (ModuleNotFoundError: No module named 'swsearch')"),
        (TimeoutError(), "no answer; it is busy or hangs"),
        (OSError("gone\naway"), "OSError: gone away"),
    ],
)  # fmt: skip
def test_what_a_worker_cannot_say_is_its_problem(dask_client, monkeypatch, error, problem):
    looked = opening._examine

    def refuse(files, worker):
        if worker.address == bad:
            raise error
        return looked(files, worker)

    bad = min(dask_client.scheduler_info()["workers"])
    monkeypatch.setattr(opening, "_examine", refuse)
    assert [each.problem for each in opening.inspect_cluster(dask_client)] == [problem, ""]


def test_a_volume_that_is_missing_or_another_is_told_of(dask_client, database, tmp_path):
    path = database.volumes[0].path
    volumes = database.volumes
    volumes[0].identity()  # of the file as it was
    built(tmp_path / "other.h5", "MKVLAAGIVGLCAKWWW")
    shutil.copy(tmp_path / "other.h5", path)
    seen = opening.inspect_cluster(dask_client, volumes)[0]
    assert "another database" in seen.volumes[path].problem
    (tmp_path / "two.h5").unlink()
    seen = opening.inspect_cluster(dask_client, volumes)[0]
    assert f"{path} not found" in seen.volumes[path].problem
    assert seen.volumes[path].path == ""


def test_a_copy_of_the_workers_own_is_found_first(dask_client, database, tmp_path, monkeypatch):
    path = database.volumes[0].path
    (tmp_path / "local").mkdir()
    copy = shutil.copy(path, tmp_path / "local")
    monkeypatch.setenv("SWSEARCH_VOLUMES", str(tmp_path / "local"))
    assert opening.inspect_cluster(dask_client, database.volumes)[0].volumes[path].path == str(copy)


def test_two_workers_of_one_gpu_are_known():
    seen = [WorkerReport("tcp://a:1", "a", 2, 0, rank, devices=2) for rank in range(4)]
    assert [each.shares_a_device for each in seen] == [False, False, True, True]
    assert not WorkerReport("tcp://a:1", "a", 2, 0, 3, devices=0).shares_a_device
