"""Servers that end, are killed, run out of time or of disk: no job is lost, and nothing is left half-written."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.samples import sample
from support.serving import Served, serving, until
from support.small_servers import ObedientEngine, Opened, asked, built_dna, counting_saves, engines, settings
from swsearch.errors import InputError, OutputError
from swsearch.pipeline import batch, checkpoint
from swsearch.report import tabular
from swsearch.server import jobs as jobs_module

N_QUERIES = 30
TESTS = Path(__file__).resolve().parents[1]
OTHER = {"X-Forwarded-For": "10.0.0.2"}


@pytest.fixture(autouse=True)
def _many_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let queries be scored a few at a time, and kept when they are."""
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 500)


@pytest.fixture
def started(opened: Opened) -> Opened:
    """Give servers that have scored some of a job's queries, and wait."""

    @contextmanager
    def begin(**changes: object) -> Iterator[tuple[Served, str, ObedientEngine]]:
        engine = ObedientEngine()
        engine.may_go.clear()
        engine.free = 2
        with counting_saves() as saved, opened(engine, **changes) as served:
            job = served.submit(asked(N_QUERIES))["id"]
            engine.wait()
            until(lambda: len(saved) == sum(engine.scored))
            yield served, job, engine

    return begin


@pytest.mark.parametrize("options", sample([{}, {"iterations": 2, "evalue": 100.0}], lambda each: not each), ids=str)
def test_what_runs_when_the_server_ends_goes_on_where_it_was(
    started: Opened, opened: Opened, options: dict[str, object]
) -> None:
    with started(workers=1) as (served, job, engine):
        running = served.get(f"/jobs/{job}").json
        assert running["state"] == "running"
        assert 0 < running["progress"] < 1
        assert running["cells_done"] == pytest.approx(running["progress"] * running["cells"], abs=1)
        waiting = served.submit(asked(2, **options))["id"]
        assert served.get(f"/jobs/{waiting}").json["queue_position"] == 0
        n_scored = sum(engine.scored)
    assert 0 < n_scored < N_QUERIES
    again = ObedientEngine()
    with opened(again) as served:
        served.ended(job)
        if not options:
            served.ended(waiting)
            assert sum(again.scored) == N_QUERIES - n_scored + 2
        found = served.results(job, "15").body
        assert found == served.search(asked(N_QUERIES), "15").body
        assert [served.ended(each)["state"] for each in (job, waiting)] == ["done"] * 2
    with opened() as served:  # and once more: it is still there
        assert served.results(job, "15").body == found
        assert [each["id"] for each in served.get("/jobs?state=done").json["jobs"]] == [waiting, job]


def test_what_was_kept_stays_while_it_is_in_use(started: Opened, opened: Opened, tmp_path: Path) -> None:
    """Only what cannot be used is removed: what belongs to another search, or is damaged."""
    with started(workers=1) as (_, job, _):
        pass
    folder = tmp_path / "jobs" / job / "checkpoint"
    kept = {each.name: each.read_bytes() for each in folder.iterdir()}
    assert any(name.startswith("queries-") for name in kept)
    with (folder / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with opened() as served:
            message = served.ended(job)["problem"]["message"]
        assert "in use by another search" in message and str(tmp_path) not in message
        assert {each.name: each.read_bytes() for each in folder.iterdir()} == kept


@pytest.mark.parametrize("was", [b'{"what": "swsearch checkpoint", "format": 1}', b"nonsense"])
def test_what_another_version_kept_is_not_used(started: Opened, opened: Opened, tmp_path: Path, was: bytes) -> None:
    with started(workers=1) as (_, job, _):
        pass
    manifest = tmp_path / "jobs" / job / "checkpoint" / "manifest.json"
    manifest.write_bytes(was)
    with opened() as served:
        assert served.ended(job)["state"] == "done"
        assert served.results(job, "15").body == served.search(asked(N_QUERIES), "15").body
        for each in manifest.parent.glob("queries-*"):
            each.write_bytes(b"")
        assert "is damaged or gone from the disk; submit it again" in served.results(job, "6").error["message"]
        manifest.write_text('{"what": "swsearch checkpoint"}')
        reply = served.results(job, "6")
        assert reply.status == 410
        assert "the version of swsearch is another one since; submit it" in reply.error["message"]


def test_cancelling_stops_the_work(started: Opened, opened: Opened, tmp_path: Path) -> None:
    with started(workers=1) as (served, job, engine):
        waiting = served.submit(asked(1))["id"]
        cancelled = served.post(f"/jobs/{waiting}/cancel").json
        assert (cancelled["state"], cancelled["started"]) == ("cancelled", None)
        refused = served.post(f"/jobs/{job}/cancel", None, **OTHER)
        assert (refused.status, "another client's" in refused.error["message"]) == (403, True)
        refused = served.results(job, "6")
        assert (refused.status, refused.headers["retry-after"]) == (409, "1")
        assert "is running, and has no results" in refused.error["message"]
        n_scored = len(engine.scored)
        for _ in range(2):
            assert served.post(f"/jobs/{job}/cancel").json["state"] == "cancelled"
        assert len(engine.scored) == n_scored
        refused = served.results(job, "6")
        assert (refused.status, "was cancelled, and has no results" in refused.error["message"]) == (409, True)
        assert not (tmp_path / "jobs" / job).exists()
        engine.may_go.set()
        served.done(asked(1))
        assert served.ask("DELETE", f"/api/v1/jobs/{waiting}").status == 204
    with opened() as served:
        assert served.get(f"/jobs/{job}").json["state"] == "cancelled"
        assert served.get(f"/jobs/{waiting}").status == 404


def test_a_job_that_runs_is_forgotten(started: Opened, tmp_path: Path) -> None:
    with started() as (served, job, _):
        assert served.ask("DELETE", f"/api/v1/jobs/{job}").status == 204
        assert served.get("/jobs").json == {"jobs": []}
        assert not list((tmp_path / "jobs").iterdir())


def test_a_job_that_takes_too_long_fails_with_that_reason(opened: Opened) -> None:
    engine = ObedientEngine()
    engine.may_go.clear()
    with opened(engine, seconds=0.3) as served:
        failed = served.ended(served.submit(asked(1))["id"])
        for problem in (failed["problem"], served.search(asked(1)).error):
            assert (problem["code"], "took longer than 0 s" in problem["message"]) == ("too_large", True)


def test_a_search_is_stopped_with_its_client_or_its_server(opened: Opened) -> None:
    engine = ObedientEngine()
    engine.may_go.clear()
    body = asked(1)["queries"].encode()
    head = b"POST /api/v1/search?database=small HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
    with ThreadPoolExecutor() as threads:
        with opened(engine) as served:
            with served.connect() as leaving:
                leaving.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                engine.wait()
            until(lambda: not served.jobs.searches)
            waiting = threads.submit(served.search, asked(1))
            engine.wait()
        reply = waiting.result()
    assert (reply.status, "the server is ending" in reply.error["message"]) == (503, True)
    assert engine.scored == []


def test_a_job_that_runs_out_of_disk_fails_with_that_reason(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with opened() as served:
        with monkeypatch.context() as patch:
            patch.setattr(checkpoint, "_write", full)
            problem = served.ended(served.submit(asked(3))["id"])["problem"]
        assert problem["code"] == "disk_full"
        assert problem["message"].startswith("the server's disk has no room")
        served.done(asked(3))


def test_jobs_expire_but_not_while_they_are_read(opened: Opened, tmp_path: Path, monkeypatch: Any) -> None:
    started, may_go, write = threading.Event(), threading.Event(), tabular.TabularWriter.write

    def slowly(*given: Any) -> None:
        started.set()
        assert may_go.wait(60)
        write(*given)

    monkeypatch.setattr(jobs_module, "SWEEP_SECONDS", 0.01)
    monkeypatch.setattr(tabular.TabularWriter, "write", slowly)
    with opened() as served, ThreadPoolExecutor() as threads:
        job = served.done(asked(3))["id"]
        reading = threads.submit(served.results, job, "6")
        assert started.wait(60)
        served.put(job, expires=1.0)
        time.sleep(0.1)  # in which it would be removed
        assert served.get(f"/jobs/{job}").status == 200
        may_go.set()
        assert reading.result().status == 200
        until(lambda: served.get(f"/jobs/{job}").status == 410)
        assert "its time is over" in served.get(f"/jobs/{job}/queries").error["message"]
        until(lambda: not (tmp_path / "jobs" / job).exists())


# the folder


def test_a_folder_that_cannot_be_used_is_told(opened: Opened, database: Path, tmp_path: Path) -> None:
    with opened() as served:
        kept = served.done(asked(1))["id"]
        with pytest.raises(InputError, match="in use by another server; end that one, or give another --folder"):
            opened().__enter__()
    assert tmp_path.stat().st_mode & 0o777 == 0o700 or (tmp_path / "jobs").stat().st_mode & 0o777 == 0o700
    lost = tmp_path / "jobs" / ("A" * 20) / "checkpoint"  # of no row
    lost.mkdir(parents=True)
    with opened():
        assert [each.name for each in (tmp_path / "jobs").iterdir()] == [kept]
    with closing(sqlite3.connect(tmp_path / "jobs.sqlite")) as table:
        table.execute("PRAGMA user_version = 1")
    with pytest.raises(InputError, match="is of version 1, expected 3; let the version of swsearch that wrote it"):
        opened().__enter__()
    (tmp_path / "jobs.sqlite").write_bytes(b"no database at all" * 1000)
    for _ in range(2):
        with pytest.raises(InputError, match="cannot be read"):
            opened().__enter__()
    with pytest.raises(OutputError, match="cannot be used"):
        serving(settings(database, tmp_path / "jobs.sqlite" / "folder")).__enter__()


@pytest.mark.parametrize("advances", [False, True])
def test_jobs_that_were_running_begin_again_but_not_for_ever(opened: Opened, tmp_path: Path, advances: bool) -> None:
    def deaths() -> Iterator[tuple[str, str]]:
        """Yield the states of a job and of one that waits after each death of the server."""
        for death in range(9):
            engine = ObedientEngine()
            engine.may_go.clear()
            with opened(engine, workers=1) as served:
                if not death:
                    jobs = [served.submit(asked(1))["id"], served.submit(asked(1), **OTHER)["id"]]
                yield tuple(served.get(f"/jobs/{job}").json["state"] for job in jobs)
                failed = served.get(f"/jobs/{jobs[0]}").json["problem"]
                if failed is not None:
                    assert "the server died 3 times while this job ran, without progress" in failed["message"]
                    return
            with (
                closing(sqlite3.connect(tmp_path / "jobs.sqlite")) as table,
                table,
            ):  # as one that was killed leaves it
                started = "UPDATE jobs SET state = 'running', started = 1.0 WHERE identifier = ?"
                table.execute(started, [jobs[0]])
                table.execute("UPDATE jobs SET started = NULL WHERE identifier = ?", [jobs[1]])
            if advances and death < 4:
                folder = tmp_path / "jobs" / jobs[0] / "checkpoint"
                folder.mkdir(parents=True, exist_ok=True)
                for old in folder.glob("queries-*"):  # nothing of it counts any more
                    old.unlink()
                (folder / f"queries-{death + 1:09d}").touch()

    states = list(deaths())
    assert len(states) == (8 if advances else 4)
    assert states[-1][0] == "failed"
    assert {first for first, _ in states[:-1]} <= {"queued", "running"}


# whose turn it is


def payer(name: str) -> dict[str, str]:
    return {"X-Forwarded-For": f"10.0.0.{ord(name)}"}


ORDERS = {
    "a1 a2 a3 b1 c1 c2": "a1 b1 c1 a2 c2 a3",
    "a1 a2 b1 - c1": "a1 b1 c1 a2",
    "a1 a2 a3 b1 b2 x c1 - b3 d1 x - a4": None,
}
"""Jobs of payers as they are submitted, where - ends the one that runs and x one that waits; and their order."""


@pytest.mark.parametrize("submitted", ORDERS)
def test_clients_take_turns_and_places_say_when_a_job_begins(opened: Opened, submitted: str) -> None:
    engine = ObedientEngine()
    engine.may_go.clear()

    def named(state: str) -> list[str]:
        return [name for name, job in jobs.items() if served.get(f"/jobs/{job}").json["state"] == state]

    with opened(engine, workers=1) as served:
        jobs: dict[str, str] = {}
        for word in submitted.split():
            if word in "-x":
                found = named("running" if word == "-" else "queued")
                name = found[len(found) // 2]
                assert served.post(f"/jobs/{jobs[name]}/cancel", None, **payer(name[0])).status == 200
                if word == "x":
                    del jobs[name]
            else:
                jobs[word] = served.submit(asked(1), **payer(word[0]))["id"]
            until(lambda: named("running"))
        stated = {name: served.get(f"/jobs/{job}").json for name, job in jobs.items()}
        expected = sorted(
            (each["queue_position"], name) for name, each in stated.items() if each["state"] == "queued"
        )
        assert [place for place, _ in expected] == list(range(len(expected)))
        engine.may_go.set()
        started = sorted(jobs, key=lambda name: served.ended(jobs[name])["started"])
    assert started[-len(expected) :] == [name for _, name in expected]
    assert ORDERS[submitted] is None or started == ORDERS[submitted].split()


def test_whoever_comes_later_finds_a_worker(opened: Opened) -> None:
    engine = ObedientEngine()
    engine.may_go.clear()

    def running(name: str) -> list[dict[str, Any]]:
        return list(served.get("/jobs?state=running", **payer(name)).json["jobs"])

    with opened(engine, workers=8) as served:
        for name, count, n_running in (("a", 20, 4), ("b", 20, 2), ("c", 1, 1), ("d", 1, 1), ("e", 1, 0)):
            for _ in range(count):
                served.submit(asked(1), **payer(name))
            until(lambda name=name, n_running=n_running: len(running(name)) == n_running)
        assert [len(running(name)) for name in "abcde"] == [4, 2, 1, 1, 0]
        (ending,) = running("d")
        served.post(f"/jobs/{ending['id']}/cancel", None, **payer("d"))
        until(lambda: running("e"))
        assert [len(running(name)) for name in "abcde"] == [4, 2, 1, 0, 1]


SERVER = """
import json, sys
from pathlib import Path
from support.serving import serving, until
from support.small_servers import *
from swsearch.pipeline import batch, checkpoint
from swsearch.server import databases

batch.GROUP_RESIDUES = 500
checkpoint.SAVE_SECONDS = 0.0
engine = ObedientEngine()
databases.create_engine = lambda name, **options: engine
database, folder = Path(sys.argv[1]), Path(sys.argv[2])
with counting_saves() as saved, serving(settings(database, folder)) as served:
    engine.may_go.clear()
    engine.free = int(sys.argv[3])
    job = served.submit(asked(30, database.stem, **json.loads(sys.argv[4])))
    engine.wait()
    until(lambda: len(saved) == sum(engine.scored))
    print(job["id"], sum(engine.scored), flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("kind", "free", "options"),
    [("proteins", 9, {"iterations": 3, "evalue": 100.0}), ("dna", 2, {}), ("dna", 2, {"max_alignments": 2})],
    ids=str,
)
def test_a_job_of_a_server_that_is_killed_goes_on_where_it_was(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, free: int, options: dict[str, object]
) -> None:
    """Iterations that were done, and places of hits that were located, are not computed again."""
    searched = built_dna(tmp_path) if kind == "dna" else database
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)])}
    line = [sys.executable, "-c", SERVER, str(searched), str(tmp_path / "served"), str(free), json.dumps(options)]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        identifier, n_scored = process.stdout.readline().split()
        process.kill()
        assert process.wait(60) == -signal.SIGKILL
    again = ObedientEngine()
    with engines(monkeypatch, again), serving(settings(searched, tmp_path / "served")) as served:
        assert served.ended(identifier)["state"] == "done"
        n_rest = sum(again.scored)
        found = served.results(identifier, "15").body
        assert found == served.search(asked(30, searched.stem, **options), "15").body
        n_all = sum(again.scored) - n_rest
    assert (int(n_scored) > 0, n_rest > 0) == (True, True)
    assert int(n_scored) + n_rest == n_all
