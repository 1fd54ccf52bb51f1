"""Report of the doctor on a cluster, and its exit code."""

from contextlib import contextmanager

import pytest

from swsearch.cli.doctor import describe_cluster as describe
from swsearch.cluster.messages import program_versions
from swsearch.cluster.opening import VolumeReport, WorkerReport


class _Volume:
    def __init__(self, path):
        self.path = path


VOLUMES = [_Volume("/data/v1.h5"), _Volume("/data/v2.h5")]
DASK = program_versions()["distributed"]
READ = {"/data/v1.h5": VolumeReport("/data/v1.h5"), "/data/v2.h5": VolumeReport("/local/v2.h5")}
LACKING = {
    "/data/v1.h5": VolumeReport("/data/v1.h5"),
    "/data/v2.h5": VolumeReport("", "worker on b: there is no /data/v2.h5"),
}


def seen(address="tcp://a:1", host="a", rank=0, **facts):
    given = {"python": "3.12.1", "description": "cpu (avx2, 4 threads)", "why": "PyCUDA is missing", **facts}
    return WorkerReport(address, host, 2, 8 << 30, rank, **{"threads": 4, "processors": 4, **given})


def lines(*workers, volumes=VOLUMES):
    return [(each.topic.strip(), each.text, each.is_ok) for each in describe("tcp://s:8786", workers, volumes)]


GPU = {"description": "gpu (NVIDIA H200)", "why": "", "devices": 1}
IDLE = {"threads": 2, "processors": 64}
OF_A = "tcp://a:1 on a, 4 threads, 8.0 GiB: cpu (avx2, 4 threads); no GPU: PyCUDA is missing"
OF_B = "tcp://b:1 on b, 4 threads, 8.0 GiB: gpu (NVIDIA H200)"
UNNAMED = WorkerReport("tcp://a:1", "", 2, 0, threads=1, python="3.12.1", description="cpu (avx2, 1 thread)")
MANY = WorkerReport("tcp://a:1", "a", 16, 0, threads=16, processors=16, python="3.12.1", description="cpu")
BOTH = ("volumes", "2 of 2 can be read, 1 of them copies of its own", True)
SAME = ("versions", f"as here: Python 3.12.1, dask.distributed {DASK}", True)

CASES = {
    "none": ([], VOLUMES, [
        ("cluster", "tcp://s:8786: no worker is there; start some: dask worker tcp://s:8786", False),
    ]),
    "well": ([seen(volumes=READ), seen("tcp://b:1", "b", volumes=READ, **GPU)], VOLUMES, [
        ("cluster", "tcp://s:8786: 2 workers on 2 hosts, 8 threads, 16.0 GiB", True), ("worker", OF_A, True), BOTH,
        ("worker", OF_B, True), BOTH, SAME, ("reading", "2 of 2 workers can read all volumes", True),
    ]),
    "another version": ([seen(problem="swsearch 0.0.9, here 0.1.0", threads=0)], (), [
        ("cluster", "tcp://s:8786: 1 worker on 1 host, 0 threads, 8.0 GiB", True),
        ("worker", "tcp://a:1 on a, 8.0 GiB: not used: swsearch 0.0.9, here 0.1.0", False),
        ("versions", "no worker has those of this machine", False),
    ]),
    "a volume that one can read": ([seen(volumes=READ), seen("tcp://b:1", "b", volumes=LACKING)], VOLUMES, [
        ("volumes", "1 of 2 can be read", True), ("volume", "worker on b: there is no /data/v2.h5", False), SAME,
        ("reading", "1 of 2 workers can read all volumes", False),
    ]),
    "a volume that none can read": ([seen(volumes=LACKING)], VOLUMES, [
        ("reading", "no worker can read /data/v2.h5: a search would fail", False),
    ]),
    "a GPU that is shared": ([seen(**GPU), seen("tcp://a:2", rank=1, **GPU)], (), [
        ("gpu", "device 0 has another worker, too; one worker for each GPU is as fast", True), SAME,
    ]),
    "no limit of memory": ([UNNAMED], (), [
        ("worker", "tcp://a:1 on an unnamed host, 1 thread, memory without limit: cpu (avx2, 1 thread)", True),
        SAME,
    ]),
    "many tasks at a time": ([MANY], (), [
        ("threads", "1 worker: workers do 16 tasks at a time, and share tasks out badly so; start them with "
         "SWSEARCH_THREADS=16 dask worker ... --nthreads 2", False), SAME,
    ]),
    "idle processors": ([seen(**IDLE), seen("tcp://a:2", rank=1, **IDLE)], (), [
        ("threads", "workers on a compute with 4 of its 64 processors; SWSEARCH_THREADS says how many each takes",
         False), SAME,
    ]),
    "idle processors that are meant": ([seen(is_set=True, **IDLE)], (), [SAME]),
}  # fmt: skip
"""Workers, volumes, and the last lines about them."""


@pytest.mark.parametrize(("workers", "volumes", "last"), CASES.values(), ids=CASES)
def test_what_is_said_of_a_cluster(workers, volumes, last):
    found = lines(*workers, volumes=volumes)
    assert found[-len(last) :] == last


def test_the_command_ends_with_what_was_found(monkeypatch, capsys):
    from swsearch.cli import main
    from swsearch.cluster import opening

    closed = []

    @contextmanager
    def connected(name):
        yield name
        closed.append(name)

    found = [seen()]
    monkeypatch.setattr(opening, "connect", connected)
    monkeypatch.setattr(opening, "inspect_cluster", lambda client, volumes: found)
    monkeypatch.setattr("sys.argv", ["swsearch", "doctor", "--cluster", "tcp://s:8786"])
    assert main.main() == 0
    assert "1 worker on 1 host" in capsys.readouterr().out
    assert closed == ["tcp://s:8786"]
    found[:] = [seen(problem="dask 1.0, here 2.0")]
    assert main.main() == 3
    assert "not used: dask 1.0, here" in capsys.readouterr().out
