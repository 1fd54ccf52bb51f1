"""What a survey says of workers: of those that fit, of others, and of those that do not answer."""

import json
import shutil

import pytest

from support import fake_pycuda
from swsearch.cluster.same_program import program
from swsearch.cluster.survey import WorkerSeen, look, survey
from swsearch.cluster.transport import WorkerFound, WorkerPlace
from swsearch.db import Database


class FakeCluster:
    """Workers of this process; `answers` replaces what some of them would say."""

    def __init__(self, *workers, versions=None, answers=None):
        self.workers = {each.address: each for each in workers}
        self.versions, self.answers = versions or {}, answers or {}
        self.asked = []

    def present(self):
        return self.workers

    def describe(self, worker):
        told = self.versions.get(worker.address, program())
        if isinstance(told, Exception):
            raise told
        return told

    def ask(self, worker, function, *arguments):
        self.asked.append((worker.address, arguments[1]))
        answer = self.answers.get(worker.address)
        if isinstance(answer, Exception):
            raise answer
        return function(*arguments) if answer is None else json.dumps(answer).encode()


def worker(number=1, host="alpha", **facts):
    return WorkerFound(f"tcp://{host}:{number}", host, **{"n_threads": 1, "memory": 1 << 30, **facts})


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
    fake_pycuda.remove(monkeypatch)


def test_a_worker_says_what_it_is_and_finds_the_database(database):
    (seen,) = survey(FakeCluster(worker()), database.volumes)
    assert seen.problem == ""
    assert seen.engine.startswith("cpu (")
    assert seen.why.startswith("PyCUDA is not installed")
    assert (seen.devices, seen.shares_a_device) == (0, False)
    path = database.volumes[0].path
    assert (seen.volumes[path].path, seen.volumes[path].problem) == (path, "")
    assert seen.versions["swsearch"] == program()["swsearch"]
    assert seen.versions["python"].count(".") == 2


def test_no_workers_and_no_volumes():
    assert survey(FakeCluster()) == []
    (seen,) = survey(FakeCluster(worker()))
    assert seen.volumes == {}


def test_workers_are_put_in_order_and_counted_by_host():
    cluster = FakeCluster(worker(2), worker(1, "beta"), worker(1))
    seen = survey(cluster)
    assert [each.found.address for each in seen] == ["tcp://alpha:1", "tcp://alpha:2", "tcp://beta:1"]
    assert [each.on_host for each in seen] == [0, 1, 0]
    assert sorted((address, place.on_host) for address, place in cluster.asked) == [
        ("tcp://alpha:1", 0), ("tcp://alpha:2", 1), ("tcp://beta:1", 0),
    ]  # fmt: skip


def test_a_worker_of_another_version_is_not_asked_further():
    cluster = FakeCluster(worker(), versions={"tcp://alpha:1": {**program(), "swsearch": "0.0.9"}})
    (seen,) = survey(cluster)
    assert seen.problem == f"swsearch 0.0.9, here {program()['swsearch']}"
    assert cluster.asked == []


@pytest.mark.parametrize(
    ("cluster", "problem"),
    [
        ({"versions": ModuleNotFoundError("No module named 'swsearch'")},
         "it cannot load swsearch (ModuleNotFoundError: No module named 'swsearch')"),
        ({"versions": TimeoutError()}, "no answer"),
        ({"answers": TimeoutError()}, "no answer; it is busy or hangs"),
        ({"answers": OSError("gone\naway")}, "OSError: gone away"),
    ],
)  # fmt: skip
def test_what_a_worker_cannot_say_is_its_problem(cluster, problem):
    one = {name: {"tcp://alpha:1": error} for name, error in cluster.items()}
    bad, good = survey(FakeCluster(worker(1), worker(2), **one))
    assert bad.problem == problem
    assert good.problem == ""


def test_a_volume_that_is_missing_or_another_is_told_of(database, tmp_path):
    path = database.volumes[0].path
    volumes = database.volumes
    volumes[0].identity()  # of the file as it was
    built(tmp_path / "other.h5", "MKVLAAGIVGLCAKWWW")
    shutil.copy(tmp_path / "other.h5", path)
    (seen,) = survey(FakeCluster(worker()), volumes)
    assert "another database" in seen.volumes[path].problem
    (tmp_path / "two.h5").unlink()
    (seen,) = survey(FakeCluster(worker()), volumes)
    assert f"{path} not found" in seen.volumes[path].problem
    assert seen.volumes[path].path == ""


def test_a_copy_of_the_workers_own_is_found_first(database, tmp_path, monkeypatch):
    path = database.volumes[0].path
    (tmp_path / "local").mkdir()
    copy = shutil.copy(path, tmp_path / "local")
    monkeypatch.setenv("SWSEARCH_VOLUMES", str(tmp_path / "local"))
    (seen,) = survey(FakeCluster(worker()), database.volumes)
    assert seen.volumes[path].path == str(copy)


def test_two_workers_of_one_gpu_are_known():
    assert [WorkerSeen(worker(), rank, devices=2).shares_a_device for rank in range(4)] == [False, False, True, True]
    assert not WorkerSeen(worker(), 3, devices=0).shares_a_device


def test_looking_leaves_nothing_on_the_worker():
    from swsearch.cluster import worker as of_worker

    before = dict(of_worker._benches)
    look(b"\x80\x05].", WorkerPlace(1 << 30, 0, 1, 0, "alpha"))  # an empty list, pickled
    assert of_worker._benches == before
