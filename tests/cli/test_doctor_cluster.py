"""What the doctor says of a cluster, and how it ends."""

from contextlib import contextmanager

from swsearch.cli.doctor import describe_cluster as describe
from swsearch.cluster.same_program import program
from swsearch.cluster.survey import VolumeSeen, WorkerSeen


class _Volume:
    def __init__(self, path):
        self.path = path


VOLUMES = [_Volume("/data/v1.h5"), _Volume("/data/v2.h5")]
DASK = program()["distributed"]
READ = {"/data/v1.h5": VolumeSeen("/data/v1.h5"), "/data/v2.h5": VolumeSeen("/local/v2.h5")}
LACKING = {
    "/data/v1.h5": VolumeSeen("/data/v1.h5"),
    "/data/v2.h5": VolumeSeen("", "worker on b: there is no /data/v2.h5"),
}


def seen(address="tcp://a:1", host="a", rank=0, **facts):
    given = {"python": "3.12.1", "description": "cpu (avx2, 4 threads)", "why": "PyCUDA is missing", **facts}
    return WorkerSeen(address, host, 2, 8 << 30, rank, **{"threads": 4, "processors": 4, **given})


def lines(*workers, volumes=VOLUMES):
    return [(each.topic.strip(), each.text, each.good) for each in describe("tcp://s:8786", workers, volumes)]


def test_a_cluster_that_is_well():
    found = lines(
        seen(volumes=READ), seen("tcp://b:1", "b", description="gpu (NVIDIA H200)", why="", devices=1, volumes=READ)
    )
    assert found == [
        ("cluster", "tcp://s:8786: 2 workers on 2 hosts, 8 threads, 16.0 GiB", True),
        (
            "worker",
            "tcp://a:1 on a, 4 threads, 8.0 GiB: cpu (avx2, 4 threads); no GPU: PyCUDA is missing",
            True,
        ),
        ("volumes", "2 of 2 can be read, 1 of them copies of its own", True),
        ("worker", "tcp://b:1 on b, 4 threads, 8.0 GiB: gpu (NVIDIA H200)", True),
        ("volumes", "2 of 2 can be read, 1 of them copies of its own", True),
        ("versions", f"as here: Python 3.12.1, dask.distributed {DASK}", True),
        ("reading", "2 of 2 workers can read all volumes", True),
    ]


def test_no_workers():
    assert lines() == [("cluster", "tcp://s:8786: no worker is there; start some: dask worker tcp://s:8786", False)]


def test_a_worker_that_does_not_fit():
    found = lines(seen(problem="swsearch 0.0.9, here 0.1.0", threads=0), volumes=())
    assert found[1:] == [
        ("worker", "tcp://a:1 on a, 8.0 GiB: not used: swsearch 0.0.9, here 0.1.0", False),
        ("versions", "no worker has those of this machine", False),
    ]


def test_a_volume_that_one_or_none_can_read():
    found = lines(seen(volumes=READ), seen("tcp://b:1", "b", volumes=LACKING))
    assert found[-4:] == [
        ("volumes", "1 of 2 can be read", True),
        ("volume", "worker on b: there is no /data/v2.h5", False),
        ("versions", f"as here: Python 3.12.1, dask.distributed {DASK}", True),
        ("reading", "1 of 2 workers can read all volumes", False),
    ]
    found = lines(seen(volumes=LACKING))
    assert found[-1] == ("reading", "no worker can read /data/v2.h5: a search would fail", False)


def test_workers_that_share_a_gpu():
    gpu = {"description": "gpu (NVIDIA H200)", "why": "", "devices": 1}
    found = lines(seen(**gpu), seen("tcp://a:2", rank=1, **gpu), volumes=())
    assert ("gpu", "device 0 has another worker, too; one worker for each GPU is as fast", True) in found


def test_a_worker_without_a_limit_of_memory():
    worker = WorkerSeen("tcp://a:1", "", 2, 0, threads=1, description="cpu (avx2, 1 thread)")
    assert lines(worker, volumes=())[1][1] == (
        "tcp://a:1 on an unnamed host, 1 thread, memory without limit: cpu (avx2, 1 thread)"
    )


def test_workers_that_do_many_tasks_at_a_time():
    worker = WorkerSeen("tcp://a:1", "a", 16, 0, threads=16, processors=16, description="cpu (avx2, 16 threads)")
    assert lines(worker, volumes=())[2] == (
        "threads",
        "1 worker: workers do 16 tasks at a time, and share tasks out badly so; start them with SWSEARCH_THREADS=16 "
        "dask worker ... --nthreads 2",
        False,
    )


def test_workers_that_leave_processors_idle():
    idle = {"threads": 2, "processors": 64}
    text = "workers on a compute with 4 of its 64 processors; SWSEARCH_THREADS says how many each takes"
    assert lines(seen(**idle), seen("tcp://a:2", rank=1, **idle), volumes=())[3] == ("threads", text, False)
    meant = seen(is_set=True, **idle)
    assert "threads" not in [topic for topic, _, _ in lines(meant, volumes=())]


def test_the_command_ends_with_what_was_found(monkeypatch, capsys):
    from swsearch.cli import main
    from swsearch.cluster import opening, survey

    closed = []

    @contextmanager
    def connected(name):
        yield name
        closed.append(name)

    found = [seen()]
    monkeypatch.setattr(opening, "connected", connected)
    monkeypatch.setattr(survey, "survey", lambda client, volumes: found)
    monkeypatch.setattr("sys.argv", ["swsearch", "doctor", "--cluster", "tcp://s:8786"])
    assert main.main() == 0
    assert "1 worker on 1 host" in capsys.readouterr().out
    assert closed == ["tcp://s:8786"]
    found[:] = [seen(problem="dask 1.0, here 2.0")]
    assert main.main() == 3
    assert "not used: dask 1.0, here" in capsys.readouterr().out
