"""Workers of a Dask client in this process: those that are left out, that are paused, and tasks that are stopped."""

from __future__ import annotations

import asyncio
import importlib
import threading
import time
import warnings
from types import SimpleNamespace

import pytest

import swsearch
from support.clusters import SOON, until
from swsearch.cluster import opening, pool, tasks
from swsearch.cluster.messages import EngineRequest
from swsearch.cluster.pool import WorkerPool
from swsearch.db import build_database
from swsearch.errors import ClusterError, GpuUnavailableError, OptionError, SwsearchWarning
from swsearch.pipeline.prefetch import PrefetchIterator, SearchCancelled, check_cancelled, map_in_threads

distributed = pytest.importorskip("distributed")

QUERY = "MKVLAAGIVGWWHHPEMKVLAAGIVGWWHHPE"


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pool")
    (folder / "in.fasta").write_text("".join(f">s{k}\n{QUERY[k % 7 :]}\n" for k in range(40)))
    build_database(folder / "in.fasta", folder / "db.h5")
    return folder / "db.h5"


def searched(database, client, **options):
    with swsearch.search(QUERY, database, engine="cpu", client=client, **options) as results:
        return [len(result.hits) for result in results]


def sent_by_name(monkeypatch, name, function):
    """Put a function in the place of a task; workers, threads of this process, then call it."""
    function.__module__, function.__qualname__, function.__name__ = tasks.__name__, name, name
    monkeypatch.setattr(tasks, name, function)


# workers


@pytest.mark.filterwarnings("ignore::swsearch.errors.SwsearchWarning")
def test_a_worker_of_another_version_is_not_used(database, dask_client, monkeypatch):
    told = iter(["", "swsearch 0.0.1, here 1.0", "swsearch 0.0.1, here 1.0"])  # the scheduler's is the first
    monkeypatch.setattr(pool, "version_mismatch", lambda theirs, ours: next(told))
    with pytest.raises(ClusterError, match=r": none of its workers can be used: .*: swsearch 0.0.1, here 1.0"):
        searched(database, dask_client)


def test_a_scheduler_of_another_version_is_refused(database, dask_client, monkeypatch):
    monkeypatch.setattr(pool, "version_mismatch", lambda theirs, ours: "swsearch 0.0.1, here 1.0")
    with pytest.raises(ClusterError, match=r"the scheduler cannot be used: swsearch 0.0.1, here 1.0; install swsear"):
        searched(database, dask_client)


@pytest.mark.filterwarnings("ignore::swsearch.errors.SwsearchWarning")
def test_a_worker_that_cannot_load_swsearch_is_not_used(database, dask_client, monkeypatch):
    async def look(engine, dask_worker=None):
        raise ModuleNotFoundError("No module named 'swsearch'")

    sent_by_name(monkeypatch, "inspect_worker", look)
    with pytest.raises(ClusterError, match=r"it cannot load swsearch .ModuleNotFoundError: No module named"):
        searched(database, dask_client)


def test_a_worker_that_cannot_be_reached_is_used_all_the_same(database, dask_client, monkeypatch):
    """Its connection breaks when it is killed; that it cannot load swsearch would be another thing."""

    async def look(engine, dask_worker=None):
        raise ConnectionResetError

    sent_by_name(monkeypatch, "inspect_worker", look)
    assert searched(database, dask_client) == [40]


@pytest.mark.filterwarnings("ignore::swsearch.errors.SwsearchWarning")
def test_an_engine_that_no_worker_has_is_told_before_anything_is_searched(database, dask_client, monkeypatch):
    monkeypatch.setattr("swsearch.engines.factory.chosen_package", lambda: "")
    with pytest.raises(GpuUnavailableError, match=r"a worker at inproc://.*: engine gpu cannot"):
        swsearch.search(QUERY, database, engine="gpu", client=dask_client)


def test_workers_that_do_many_tasks_at_a_time_are_told_of(database):
    options = {
        "processes": False,
        "dashboard_address": None,
        "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"},
    }
    with (
        importlib.import_module("dask").config.set(opening.DASK_SETTINGS),
        distributed.LocalCluster(n_workers=1, threads_per_worker=4, silence_logs=50, **options) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.warns(SwsearchWarning, match=r"workers do 4 tasks at a time.*SWSEARCH_THREADS=4 dask worker"),
    ):
        assert searched(database, client) == [40]


def pause(dask_worker) -> None:
    dask_worker.memory_manager.memory_pause_fraction = 1e-9


def resume(dask_worker) -> None:
    dask_worker.memory_manager.memory_pause_fraction = False
    dask_worker.status = type(dask_worker.status).running


def test_the_tasks_of_a_worker_that_dask_pauses_are_done_elsewhere(database, dask_client):
    paused = next(iter(dask_client.scheduler_info()["workers"]))
    dask_client.run(pause, workers=[paused])
    try:
        assert searched(database, dask_client) == [40]
    finally:
        dask_client.run(resume, workers=[paused])


def test_what_a_paused_worker_has_begun_ends_there_and_others_do_what_waits(dask_client, monkeypatch):
    started, released = [], threading.Event()

    def score(share, place):
        address = distributed.get_worker().address
        started.append((address, place))
        if address == started[0][0]:
            assert released.wait(SOON)
        return place

    sent_by_name(monkeypatch, "score", score)
    search = SimpleNamespace(file=SimpleNamespace(path="volume"))
    share = tasks.VolumeShare(search, n_bytes=1 << 28)  # as large as this, Dask itself moves no task
    notices = []
    with opening.pool_of_client(dask_client, EngineRequest("cpu"), on_message=notices.append) as of:
        calls = [of.call(tasks.score, tasks.encode_arguments(place), share) for place in range(30)]
        until(lambda: sum(address == started[0][0] for address, _ in started) == 2)
        paused = started[0][0]
        dask_client.run(pause, workers=[paused])
        try:
            until(lambda: len(started) == 30)
            released.set()
            assert of.collect(calls) == list(range(30))
        finally:
            released.set()
            dask_client.run(resume, workers=[paused])
    assert sorted(place for _, place in started) == list(range(30))
    assert set(notices) == {f"worker {paused}: Dask paused it for lack of memory; other workers do its tasks"}


# clients


def test_a_client_that_is_closed_or_none_is_refused(database, dask_client):
    with pytest.raises(OptionError, match=r"client: got an? .*expected a dask\.distributed\.Client"):
        searched(database, object())
    with distributed.Client(dask_client.scheduler.address, set_as_default=False) as client:
        closed = client
    with pytest.raises(ClusterError, match="the Dask client was closed, or its scheduler is gone"):
        searched(database, closed)


def test_an_asynchronous_client_is_refused(database, dask_client):
    async def refused() -> None:
        address = dask_client.scheduler.address
        async with distributed.Client(address, asynchronous=True, set_as_default=False) as client:
            with pytest.raises(OptionError, match="made without asynchronous=True"):
                searched(database, client)

    asyncio.run(refused())


# tasks that are stopped


class Endless:
    """A task that works until it is told to stop."""

    def __init__(self, monkeypatch) -> None:
        self.started, self.stopped = threading.Event(), threading.Event()

        def score(*given):
            try:
                self.started.set()
                while True:
                    check_cancelled()
                    time.sleep(0.001)
            finally:
                self.stopped.set()

        sent_by_name(monkeypatch, "score", score)


def test_what_runs_is_stopped_when_a_search_is_closed(database, dask_client, monkeypatch):
    endless = Endless(monkeypatch)
    results = swsearch.search(QUERY, database, engine="cpu", client=dask_client)
    raised: list[BaseException] = []

    def take() -> None:
        try:
            next(results)
        except BaseException as error:
            raised.append(error)

    waiting = threading.Thread(target=take, daemon=True)
    waiting.start()
    assert endless.started.wait(SOON)
    results.stop()
    assert endless.stopped.wait(SOON)
    waiting.join(SOON)
    assert [type(each) for each in raised] == [SearchCancelled]
    until(lambda: not any(dask_client.processing().values()))
    assert dask_client.status == "running"


def test_a_client_that_is_closed_meanwhile_ends_the_search(database, dask_client, monkeypatch):
    endless = Endless(monkeypatch)
    client = distributed.Client(dask_client.scheduler.address, set_as_default=False)
    results = swsearch.search(QUERY, database, engine="cpu", client=client)
    closing = threading.Thread(target=lambda: endless.started.wait(SOON) and client.close())
    closing.start()
    again = "run the search again, which goes on where it was if it has a checkpoint"
    with pytest.raises(ClusterError, match=f"the Dask client was closed, or its scheduler is gone; {again}"):
        next(results)
    closing.join()
    assert endless.stopped.wait(SOON)


def test_large_tasks_go_without_a_warning(dask_client, monkeypatch):
    def fit(data):
        return data * 2

    sent_by_name(monkeypatch, "fit_queries", fit)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with opening.pool_of_client(dask_client, EngineRequest("cpu")) as of:
            (found,) = of.collect([of.call(tasks.fit_queries, tasks.encode_arguments(bytes(12 << 20)))])
    assert len(found) == 24 << 20
    assert [str(each.message) for each in said] == []


def test_a_task_is_told_to_stop_before_its_number_is_forgotten(monkeypatch):
    looking, order = threading.Event(), []

    def get(key):
        looking.set()
        until(lambda: "returned" in order)
        time.sleep(0.2)  # in which the task would end

    dask_worker = SimpleNamespace(get_current_task=str, state=SimpleNamespace(tasks=SimpleNamespace(get=get)))
    monkeypatch.setattr(distributed, "get_worker", lambda: dask_worker)
    monkeypatch.setattr(tasks, "CANCEL_CHECK_SECONDS", 0.001)
    monkeypatch.setattr(tasks, "cancel_task", lambda number: order.append("stopped"))
    monkeypatch.setattr(tasks, "end_task", lambda number: order.append("forgotten"))

    def fit():
        assert looking.wait(SOON)
        order.append("returned")

    tasks.run(tasks.program_versions(), fit, tasks.encode_arguments())
    until(lambda: len(order) == 3)
    assert order == ["returned", "stopped", "forgotten"]


@pytest.mark.parametrize("end", ["close", "cancel"])
def test_threads_that_wait_for_a_result_end_when_its_task_is_stopped(dask_client, monkeypatch, end):
    of = WorkerPool(dask_client, EngineRequest("cpu"))
    fetching, cancelled = threading.Event(), threading.Event()

    def result(timeout):
        fetching.set()
        assert cancelled.wait(SOON)
        raise TimeoutError

    future = SimpleNamespace(done=lambda: True, result=result, release=lambda: None, status="finished")
    monkeypatch.setattr(dask_client, "submit", lambda *given, **options: future)
    of._busy = {"a": (set(), 0.0)}

    def wait(number):
        of.collect([of.call(tasks.fit_queries, tasks.encode_arguments())])

    results = map_in_threads(wait, range(4), 4)
    taking = PrefetchIterator(results, "rate")
    assert fetching.wait(SOON)
    taking.close()
    getattr(of, end)()
    cancelled.set()
    until(lambda: not any(each.name == "swsearch-beside" for each in threading.enumerate()))


# workers that hang, with time told by hand


class Client:
    """A client as a pool uses it, controlled by the test."""

    status, scheduler = "running", None

    def __init__(self) -> None:
        self.busy: dict[str, list[str]] = {}
        self.restarted: list[str] = []
        self.submitted: list[list[str] | None] = []

    def processing(self):
        return {address: tuple(keys) for address, keys in self.busy.items()}

    def submit(self, *given, workers=None, **options):
        self.submitted.append(workers)
        return SimpleNamespace(done=lambda: False, release=lambda: None, status="pending")

    def run_on_scheduler(self, function):
        return []

    def restart_workers(self, workers, **options):
        self.restarted += workers
        if "no nanny" in workers:
            raise ValueError("it has no nanny")


@pytest.fixture
def watched(monkeypatch):
    monkeypatch.setattr(pool, "ask", lambda *given, **options: None)
    notices = []
    return WorkerPool(Client(), EngineRequest("cpu"), "the cluster", timeout=10, on_message=notices.append), notices


def test_a_worker_that_gives_nothing_back_is_started_anew(watched):
    of, notices = watched
    of.client.busy = {"a": ["swsearch_1"], "b": ["swsearch_2"], "other": ["somebody's"], "idle": []}
    for second in range(30):
        of.client.busy["b"] = [f"swsearch_{second}"]
        of.update_workers()
        of.client.busy["a"].append(f"swsearch_new_{second}")  # which waits there
    assert set(of.client.restarted) == {"a"}
    assert notices[0] == "worker a: returned no result within the task timeout of 10 s; restarting it"
    assert "a" in of.workers


def test_a_worker_without_a_nanny_is_left_out(watched):
    of, notices = watched
    of.client.busy = {"no nanny": ["swsearch_1"], "b": []}
    for _ in range(15):
        of.update_workers()
    assert of.workers == ["b"]
    assert notices[-1] == (
        "worker no nanny is not used: it returned no result within 10 s (ValueError: it has no nanny)"
    )
    of.client.busy = {"b": []}
    of.update_workers()
    assert len(notices) == 2  # it was not in use any more


def test_a_search_that_ends_while_a_worker_is_started_anew_says_nothing_of_it(watched, monkeypatch):
    of, notices = watched
    monkeypatch.setattr(of._is_closed, "wait", lambda timeout: of._is_closed.is_set())  # time told by hand

    def restart_workers(workers, **options):
        of.close()
        raise OSError("the client was closed")

    monkeypatch.setattr(of.client, "restart_workers", restart_workers)
    of.client.busy = {"a": ["swsearch_1"]}
    for _ in range(15):
        of.update_later()
    assert notices == ["worker a: returned no result within the task timeout of 10 s; restarting it"]


def test_workers_are_there_while_the_scheduler_is_asked_for_them(watched, monkeypatch):
    of, _ = watched
    of.client.busy = {"a": [], "b": []}
    of.update_workers()
    seen = []

    def processing():
        seen.append((of.workers, of.call(tasks.fit_queries, tasks.encode_arguments()).future is not None))
        return of.client.busy

    monkeypatch.setattr(of.client, "processing", processing)
    of.update_workers()
    assert seen == [(["a", "b"], True)]


def test_a_task_for_a_worker_that_has_gone_goes_elsewhere(watched):
    of, _ = watched
    of.client.busy = {"a": [], "b": []}
    of.update_workers()
    call = of.call(tasks.fit_queries, tasks.encode_arguments())
    call.avoided.add("a")
    of._submit(call)
    of.client.busy = {"a": []}
    of.update_workers()
    assert of.client.submitted == [None, ["b"], None]


def test_without_a_worker_for_long_the_search_ends(watched, monkeypatch):
    of, notices = watched
    of.client.busy = {"a": []}
    of.update_workers()
    of.client.busy = {}
    for _ in range(int(pool.WORKER_WAIT_SECONDS) - 10):
        of.update_workers()
    assert notices == ["worker a was lost; repeating its tasks"]
    with pytest.raises(
        ClusterError, match="the cluster: waited 120 s for a worker, and there is none: start workers"
    ):
        [of.update_workers() for _ in range(20)]
