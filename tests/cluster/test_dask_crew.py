"""Crews of Dask's workers: one cluster in this process for all; what kills processes is `exhaustive`."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from support import crew_tasks
from swsearch.cluster import board, calls, dask_crew
from swsearch.cluster.crew import Crew
from swsearch.cluster.dask_crew import DaskTransport, crew_of, open_cluster
from swsearch.cluster.same_program import program
from swsearch.cluster.transport import Task
from swsearch.errors import ClusterError, DatabaseError, EngineError, InputError, MemoryLimitError, OptionError

pytest.importorskip("distributed")

SOON = 60
"""Seconds within which things happen, on however slow a machine; reached only where a test fails."""

SWSEARCH_TESTS = str(Path(__file__).resolve().parents[1])


def task(name: str, payload: bytes = b"", near: object = "volume", cells: int = 1) -> Task:
    return Task(f"support.crew_tasks:{name}", payload, near, cells)


def until(is_so: Callable[[], object]) -> None:
    end = time.monotonic() + SOON
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture(scope="module")
def crew(dask_client):
    notices = []
    with crew_of(dask_client, notice=notices.append) as crew:
        yield crew
    assert dask_client.status == "running"


# A client of the user


def test_results_come_to_their_tasks(crew: Crew) -> None:
    futures = [crew.submit(task("double", b"%d" % number, ("v", number % 3))) for number in range(30)]
    assert [future.result(SOON) for future in futures] == [b"%d" % number * 2 for number in range(30)]


def test_workers_are_those_of_dask(crew: Crew, dask_client) -> None:
    assert crew.n_workers == 2
    assert {place.n_threads for place in crew.workers} == {2}
    assert all(place.memory > 1 << 20 for place in crew.workers)
    assert crew.name == dask_client.scheduler.address
    futures = [crew.submit(task("where", near=near)) for near in "abcd"]
    assert {future.result(SOON).decode() for future in futures} == {repr(place) for place in crew.workers}


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("bad_option", OptionError, "matrix: got 'none', expected a matrix"),
        ("broken_engine", EngineError, "the device has gone"),
        ("mistake", ClusterError, "ZeroDivisionError: a mistake of two lines"),
        ("no_memory", MemoryLimitError, "out of memory on the worker"),
        ("no_file", DatabaseError, "v: no worker can read it: "),
    ],
)
def test_errors_come_back(crew: Crew, monkeypatch, name: str, kind: type[Exception], text: str) -> None:
    monkeypatch.setattr(board, "SETTLED", 0)
    error = crew.submit(task(name, b"/nowhere", ("v", name))).exception(SOON)
    assert isinstance(error, kind)
    assert text in str(error)


def test_large_payloads_and_results_go_without_a_warning(crew: Crew) -> None:
    payload = bytes(12 << 20)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert len(crew.submit(task("double", payload)).result(SOON)) == 24 << 20
    assert [str(each.message) for each in said] == []


def test_closing_stops_what_runs_and_leaves_the_client(dask_client) -> None:
    crew_tasks.begun.clear()
    crew_tasks.stopped.clear()
    crew = crew_of(dask_client)
    futures = [crew.submit(task("endless", near=near)) for near in "abcdefgh"]
    assert crew_tasks.begun.wait(SOON)
    crew.close()
    assert {str(future.exception(0)) for future in futures} == {"the worker pool is closed"}
    assert crew_tasks.stopped.wait(SOON)
    until(lambda: not calls._running)
    until(lambda: not any(dask_client.processing().values()))
    assert dask_client.status == "running"


def pause(dask_worker) -> None:
    dask_worker.memory_manager.memory_pause_fraction = 1e-9


def resume(dask_worker) -> None:
    dask_worker.memory_manager.memory_pause_fraction = False
    dask_worker.status = type(dask_worker.status).running


def test_the_tasks_of_a_worker_that_dask_pauses_are_done_elsewhere(
    dask_client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "PAUSED_SECONDS", 0.5)
    notices: list[str] = []
    with crew_of(dask_client, notice=notices.append) as crew:
        paused = next(iter(dask_client.scheduler_info()["workers"]))
        futures = [crew.submit(task("slow", b"20", near)) for near in range(8)]
        dask_client.run(pause, workers=[paused])
        try:
            assert {future.result(SOON) for future in futures} == {b"20"}
        finally:
            dask_client.run(resume, workers=[paused])
    assert len(notices) == 1
    assert f"worker {paused}: Dask paused it for lack of memory; other workers" in notices[0]


def test_a_worker_of_another_version_is_not_used(dask_client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_crew, "program", lambda: {**program(), "swsearch": "0.0.1"})
    monkeypatch.setattr(board, "SETTLED", 0)
    notices: list[str] = []
    with pytest.raises(ClusterError) as raised:
        crew_of(dask_client, notice=notices.append)
    assert ": none of its workers can be used: " in str(raised.value)
    assert f"swsearch {program()['swsearch']}, here 0.0.1" in str(raised.value)
    assert len(notices) == 1


def test_a_worker_that_cannot_load_swsearch_is_not_used(dask_client, monkeypatch: pytest.MonkeyPatch) -> None:
    def describe() -> None:
        raise ModuleNotFoundError("No module named 'swsearch'")

    monkeypatch.setattr(dask_crew, "describe_worker", describe)
    monkeypatch.setattr(board, "SETTLED", 0)
    with pytest.raises(ClusterError, match=r"it cannot load swsearch .ModuleNotFoundError: No module named"):
        crew_of(dask_client, notice=lambda text: None)


def test_a_worker_that_cannot_be_reached_is_asked_again(dask_client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection breaks when it is killed; that it cannot load swsearch would be another thing."""
    from distributed.comm import CommClosedError

    errors = [CommClosedError("in <TCP>: Stream is closed"), ConnectionResetError(), OSError("Timed out trying")]
    run = dask_client._run

    def broken(function, *args, workers, **options):
        if errors and function is dask_crew.describe_worker:
            told = {worker: errors.pop() for worker in workers}
            return asyncio.sleep(0, told)
        return run(function, *args, workers=workers, **options)

    monkeypatch.setattr(dask_client, "_run", broken)
    monkeypatch.setattr(dask_crew, "UNREACHED", 0)
    notices: list[str] = []
    with crew_of(dask_client, notice=notices.append) as crew:
        assert crew.n_workers == 2
    assert (errors, notices) == ([], [])


def test_what_a_worker_says_of_its_files_is_no_lost_connection() -> None:
    for error in (PermissionError("x.py"), FileNotFoundError("x.py"), ImportError("x"), {"swsearch": "1"}, None):
        assert not dask_crew._is_unreachable(error)


def test_a_client_that_is_closed_or_none_is_refused(dask_client) -> None:
    import distributed

    with pytest.raises(OptionError, match=r"client: got an? .*expected a dask\.distributed\.Client"):
        crew_of(object())
    with distributed.Client(dask_client.scheduler.address, set_as_default=False) as client:
        closed = client
    with pytest.raises(ClusterError, match="the Dask client was closed, or its scheduler is gone"):
        crew_of(closed)


def test_an_asynchronous_client_is_refused(dask_client) -> None:
    import distributed

    async def refused() -> None:
        address = dask_client.scheduler.address
        async with distributed.Client(address, asynchronous=True, set_as_default=False) as client:
            with pytest.raises(OptionError, match="made without asynchronous=True"):
                crew_of(client)

    asyncio.run(refused())


def test_a_client_closed_meanwhile_ends_all_tasks(dask_client) -> None:
    import distributed

    crew_tasks.begun.clear()
    client = distributed.Client(dask_client.scheduler.address, set_as_default=False)
    with crew_of(client) as crew:
        futures = [crew.submit(task("endless", near=near)) for near in "ab"]
        assert crew_tasks.begun.wait(SOON)
        client.close()
        for future in futures:
            assert "the Dask client was closed" in str(future.exception(SOON))
        assert isinstance(crew.submit(task("double")).exception(SOON), ClusterError)
    until(lambda: not calls._running)


def test_a_task_that_dask_cancels_stops(dask_client) -> None:
    """As where the client is killed: the scheduler forgets its tasks, and nobody else tells the worker."""
    import distributed

    crew_tasks.begun.clear()
    with crew_of(dask_client) as crew:
        future = crew.submit(task("endless"))
        assert crew_tasks.begun.wait(SOON)
        (key,) = calls._running
        distributed.Future(key, dask_client).cancel()
        until(lambda: key not in calls._running)
    assert isinstance(future.exception(SOON), ClusterError)


# Names of clusters


def test_a_name_that_is_none_is_refused() -> None:
    for name in ("local:0", "local:x", "nonsense", "tcp://host"):
        with pytest.raises(OptionError, match="--cluster: got"):
            open_cluster(name)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), "soon", True])
def test_a_limit_of_time_that_is_none_is_refused(timeout: object) -> None:
    with pytest.raises(OptionError, match="task_timeout: got"):
        open_cluster("local:1", task_timeout=timeout)


def test_a_scheduler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_crew, "CONNECTING", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ClusterError, match=f"^tcp://127.0.0.1:{port}: no Dask scheduler answered") as raised:
        open_cluster(f"127.0.0.1:{port}")
    assert raised.value.exit_code == 3


def test_without_dask_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    for name in ("local:2", "tcp://host:8786"):
        with pytest.raises(InputError, match=r"pip install 'swsearch\[cluster\]'"):
            open_cluster(name)


def test_dask_is_not_loaded_before_it_is_asked_for() -> None:
    code = "import sys, swsearch.cluster.dask_crew; assert not {'dask', 'distributed', 'tornado'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# What is left at the end


class Closing:
    """Notes that it is closed, and may be interrupted there."""

    def __init__(self, said: list[str], name: str, error: type[BaseException] | None = None) -> None:
        self.said, self.name, self.error = said, name, error

    def close(self, timeout: float) -> None:
        self.said.append(self.name)
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("which", ["client", "workers", "none"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_whatever_comes_at_the_end_all_is_closed(which: str, error: type[BaseException], tmp_path: Path) -> None:
    said: list[str] = []
    opened = [Closing(said, name, error if name == which else None) for name in ("workers", "client")]
    folder = tmp_path / "cluster"
    folder.mkdir()
    try:
        dask_crew._close_cluster(opened, str(folder))
    except KeyboardInterrupt:
        assert error is KeyboardInterrupt
    assert said == ["client", "workers"]
    assert not folder.exists()


@pytest.mark.parametrize("before", [None, "error"])
def test_semaphores_are_removed_without_a_word(monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    seen: list[str | None] = []
    monkeypatch.setattr(
        dask_crew.resource_tracker, "ensure_running", lambda: seen.append(os.environ.get("PYTHONWARNINGS"))
    )
    monkeypatch.delenv("PYTHONWARNINGS", raising=False)
    if before is not None:
        monkeypatch.setenv("PYTHONWARNINGS", before)
    dask_crew._track_quietly()
    assert seen == ["ignore:resource_tracker" if before is None else "error,ignore:resource_tracker"]
    assert os.environ.get("PYTHONWARNINGS") == before


# Processes


def process_ids(crew: Crew) -> dict[str, int]:
    transport = crew._transport
    assert isinstance(transport, DaskTransport)
    return transport._client.run(os.getpid)


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.exhaustive
def test_workers_that_are_killed_are_replaced() -> None:
    notices: list[str] = []
    with open_cluster("local:2", notice=notices.append) as crew:
        futures = [crew.submit(task("slow", b"20", number % 2)) for number in range(16)]
        futures[0].result(SOON)
        os.kill(next(iter(process_ids(crew).values())), signal.SIGKILL)
        assert {future.result(SOON) for future in futures} == {b"20"}
        for process in process_ids(crew).values():
            os.kill(process, signal.SIGKILL)
        assert crew.submit(task("slow", b"1")).result(SOON) == b"1"
        until(lambda: crew.n_workers == 2)
        assert sorted(place.on_host for place in crew.workers) == [0, 1]
    assert any("was lost; repeating its tasks" in text for text in notices)


@pytest.mark.exhaustive
def test_a_worker_that_hangs_is_started_anew(tmp_path: Path) -> None:
    notices: list[str] = []
    with open_cluster("local:1", task_timeout=2, notice=notices.append) as crew:
        assert crew.submit(task("hang_once", str(tmp_path / "mark").encode())).result(SOON) == b"done"
    assert "returned no result within the task timeout of 2 s; restarting it" in notices[0]


CHILD = """
import os, signal
from swsearch.cluster.dask_crew import open_cluster
from swsearch.cluster.transport import Task
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open_cluster("local:2") as crew:
        futures = [crew.submit(Task("support.crew_tasks:slow", b"100000", near, 1)) for near in range(8)]
        processes = crew._transport._client.run(os.getpid).values()
        try:
            print(*processes, flush=True)
            futures[0].result()
        except KeyboardInterrupt:
            print("interrupted")
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_goes_on_running(number: int, tmp_path: Path) -> None:
    program = tmp_path / "child.py"
    program.write_text(CHILD)
    path = os.pathsep.join([SWSEARCH_TESTS, str(Path(SWSEARCH_TESTS).parent)])
    child = subprocess.Popen(
        [sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert child.stdout is not None
    workers = [int(word) for word in child.stdout.readline().split()]
    assert len(workers) == 2
    if number == signal.SIGINT:
        os.killpg(child.pid, number)  # as a terminal does
    else:
        child.kill()
    told, _ = child.communicate(timeout=SOON)
    if number == signal.SIGINT:
        assert told == "interrupted\n"
    assert "Traceback" not in told
    until(lambda: not any(is_alive(process) for process in workers))


ENDS_AT_ONCE = """
import os
from swsearch.cluster.dask_crew import open_cluster
if __name__ == "__main__":
    crew = open_cluster("local:2")
    os._exit(130)
"""


@pytest.mark.exhaustive
def test_who_ends_at_once_leaves_no_word(tmp_path: Path) -> None:
    program = tmp_path / "child.py"
    program.write_text(ENDS_AT_ONCE)
    ended = subprocess.run(
        [sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        timeout=SOON, env={**os.environ, "PYTHONPATH": str(Path(SWSEARCH_TESTS).parent)},
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (130, "")


@pytest.mark.exhaustive
def test_a_scheduler_that_is_killed_ends_the_search() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    path = os.pathsep.join([SWSEARCH_TESTS, str(Path(SWSEARCH_TESTS).parent)])
    options = {"stderr": subprocess.DEVNULL, "env": {**os.environ, "PYTHONPATH": path}}
    start = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--no-dashboard"]
    scheduler = subprocess.Popen([*start, "--port", str(port)], **options)
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-dashboard"], **options
    )
    try:
        with open_cluster(address, notice=lambda text: None) as crew:
            future = crew.submit(task("slow", b"100000"))
            time.sleep(0.5)
            scheduler.kill()
            error = future.exception(SOON)
            assert str(error).startswith(f"{address}: the scheduler is gone; run the search again; with --checkpoint")
            assert error.exit_code == 3
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    assert threading.active_count() < 50
