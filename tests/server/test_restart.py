"""Servers that end, are killed, run out of time or of disk: no job is lost, and nothing is left half-written."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from support.houses import (
    CLIENT,
    House,
    ObedientEngine,
    Opened,
    asked,
    built_dna,
    done,
    engines,
    settings,
    wait_until,
)
from support.samples import sample
from swsearch.pipeline import batch, checkpoint
from swsearch.pipeline.batch import QueryState
from swsearch.pipeline.subjects import SubjectReader
from swsearch.server import jobs as jobs_module
from swsearch.server.errors import ServerProblem
from swsearch.server.job_store import Job, JobStore
from swsearch.server.jobs import RunningSearch

N_QUERIES = 30
TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _many_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let queries be scored a few at a time, and kept when they are."""
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 500)


@pytest.fixture
def begun(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Give servers that have scored some of a job's queries, and wait."""

    @contextmanager
    def begin(**changes: object) -> Iterator[tuple[House, Job, ObedientEngine]]:
        engine = ObedientEngine()
        engine.may_go.clear()
        engine.free = 2
        saved: set[int] = set()
        save = checkpoint.Checkpoint.save

        def save_and_count(
            self: checkpoint.Checkpoint, states: Sequence[QueryState], subjects: SubjectReader
        ) -> None:
            save(self, states, subjects)
            saved.update(state.place for state in states)

        with monkeypatch.context() as patch, opened(engine, **changes) as house:
            patch.setattr(checkpoint.Checkpoint, "save", save_and_count)
            (job,) = house.submit([asked(N_QUERIES)], CLIENT)
            engine.wait()
            wait_until(lambda: len(saved) == sum(engine.scored))
            yield house, job, engine

    return begin


@pytest.mark.parametrize("options", sample([{}, {"iterations": 2, "evalue": 100.0}], lambda each: not each), ids=str)
def test_what_runs_when_the_server_ends_goes_on_where_it_was(
    begun: Opened, opened: Opened, tmp_path: Path, options: dict[str, object]
) -> None:
    with begun(workers=1) as (house, job, engine):
        running = house.job(job.identifier)
        assert running.state == "running"
        assert 0 < running.progress < 1
        assert running.cells_done == pytest.approx(running.progress * running.cells)
        (waiting,) = house.submit([asked(2, **options)], CLIENT)
        assert house.job(waiting.identifier).place == 0
        n_scored = sum(engine.scored)
    assert 0 < n_scored < N_QUERIES
    with closing(JobStore(tmp_path)) as store:
        states = [(each.identifier, each.state) for each in store.jobs_of(CLIENT, 9)]
        assert states == [(waiting.identifier, "queued"), (job.identifier, "queued")]
    again = ObedientEngine()
    with opened(again) as house:
        assert house.wait(job.identifier, 60).state == "done"
        if not options:
            assert house.wait(waiting.identifier, 60).state == "done"
            assert sum(again.scored) == N_QUERIES - n_scored + 2
        found = house.rendered(job.identifier, "15").whole()
        assert found == house.search_now(asked(N_QUERIES), "15", CLIENT).whole()
        assert house.wait(waiting.identifier, 60).state == "done"
    with opened() as house:  # and once more: it is still there
        assert house.rendered(job.identifier, "15").whole() == found
        assert house.job(job.identifier).state == "done"


def test_what_was_kept_stays_while_it_is_in_use(begun: Opened, opened: Opened, tmp_path: Path) -> None:
    """Only what cannot be used is removed: what belongs to another search, or is damaged."""
    with begun(workers=1) as (_, job, _):
        pass
    folder = tmp_path / "jobs" / job.identifier / "checkpoint"
    kept = {each.name: each.read_bytes() for each in folder.iterdir()}
    assert any(name.startswith("queries-") for name in kept)
    with (folder / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with opened() as house:
            failed = house.wait(job.identifier, 60)
        assert "in use by another search" in failed.problem["message"]
        assert str(tmp_path) not in failed.problem["message"]
        assert {each.name: each.read_bytes() for each in folder.iterdir()} == kept


@pytest.mark.parametrize("was", [b'{"what": "swsearch checkpoint", "format": 1}', b"nonsense"])
def test_what_another_version_kept_is_not_used(begun: Opened, opened: Opened, tmp_path: Path, was: bytes) -> None:
    with begun(workers=1) as (_, job, _):
        pass
    (tmp_path / "jobs" / job.identifier / "checkpoint" / "manifest.json").write_bytes(was)
    with opened() as house:
        assert house.wait(job.identifier, 60).state == "done"
        found = house.rendered(job.identifier, "15").whole()
        assert found == house.search_now(asked(N_QUERIES), "15", CLIENT).whole()


def test_results_of_another_version_are_to_be_submitted_again(opened: Opened) -> None:
    with opened() as house:
        job = done(house, asked(2, iterations=2))
        (house.store.checkpoint_of(job.identifier) / "manifest.json").write_text('{"what": "swsearch checkpoint"}')
        with pytest.raises(ServerProblem, match="the version of swsearch is another one since; submit it") as caught:
            house.rendered(job.identifier, "6").whole()
        assert caught.value.status == 410


def test_cancelling_stops_the_work(begun: Opened, opened: Opened, tmp_path: Path) -> None:
    with begun(workers=1) as (house, job, engine):
        (waiting,) = house.submit([asked(1)], CLIENT)
        cancelled = house.cancel(waiting.identifier, CLIENT)
        assert (cancelled.state, cancelled.begun) == ("cancelled", None)
        with pytest.raises(ServerProblem, match="another client's") as caught:
            house.cancel(job.identifier, "another")
        assert caught.value.status == 403
        n_scored = len(engine.scored)
        assert house.cancel(job.identifier, CLIENT).state == "cancelled"
        assert len(engine.scored) == n_scored
        assert house.cancel(job.identifier, CLIENT).state == "cancelled"
        with pytest.raises(ServerProblem, match="was cancelled, and has no results") as caught:
            house.rendered(job.identifier, "6")
        assert caught.value.status == 409
        assert not (tmp_path / "jobs" / job.identifier).exists()
        engine.may_go.set()
        done(house, asked(1))
        house.delete(waiting.identifier, CLIENT)
    with opened() as house:
        assert house.job(job.identifier).state == "cancelled"
        with pytest.raises(ServerProblem, match="no such job"):
            house.job(waiting.identifier)


def test_a_job_that_runs_is_forgotten(begun: Opened, tmp_path: Path) -> None:
    with begun() as (house, job, _):
        with pytest.raises(ServerProblem, match="is running, and has no results") as caught:
            house.rendered(job.identifier, "6")
        assert caught.value.retry_after == 1
        house.delete(job.identifier, CLIENT)
        assert house.jobs.jobs_of(CLIENT) == []
        assert not list((tmp_path / "jobs").iterdir())


def test_a_job_that_takes_too_long_fails_with_that_reason(opened: Opened) -> None:
    engine = ObedientEngine()
    engine.may_go.clear()
    with opened(engine, seconds=0.3) as house:
        failed = house.wait(house.submit([asked(1)], CLIENT)[0].identifier, 60)
        assert failed.state == "failed"
        assert (failed.problem["code"], "took longer than 0 s" in failed.problem["message"]) == ("too_large", True)
        with pytest.raises(ServerProblem, match="took longer than"):
            house.search_now(asked(1), "6", CLIENT)


def test_a_search_that_is_not_wanted_any_more_is_stopped(opened: Opened) -> None:
    engine = ObedientEngine()
    with opened(engine) as house:
        engine.may_go.clear()

        def leave(running: RunningSearch) -> None:
            threading.Thread(target=lambda: (engine.wait(), running.stop("unwanted"))).start()

        with pytest.raises(ServerProblem, match="cancelled"):
            house.search_now(asked(1), "6", CLIENT, leave)
        assert engine.scored == []
        assert not house.jobs.searches


def test_jobs_expire_but_not_while_they_are_read(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_gone() -> bool:
        try:
            house.job(job.identifier)
        except ServerProblem as problem:
            assert problem.status in (404, 410)
            return True
        return False

    monkeypatch.setattr(jobs_module, "SWEEP_SECONDS", 0.01)
    with opened(days=1e-7) as house:
        job = house.submit([asked(3)], CLIENT)[0]
        with suppress(ServerProblem):  # it may be gone already
            house.wait(job.identifier, 60)
        wait_until(is_gone)
        wait_until(lambda: not (tmp_path / "jobs" / job.identifier).exists())
    monkeypatch.setattr(jobs_module, "SWEEP_SECONDS", 1e9)
    with opened(days=1e-7) as house:
        job = done(house, asked(3))
        rendered = house.rendered(job.identifier, "6").chunks
        assert next(rendered)
        house.jobs.remove_expired()
        assert house.job(job.identifier).state == "done"
        assert not list(rendered)
        house.jobs.remove_expired()
        assert is_gone()
        wait_until(lambda: not (tmp_path / "jobs" / job.identifier).exists())


def test_a_job_that_runs_out_of_disk_fails_with_that_reason(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    real = checkpoint._write
    monkeypatch.setattr(checkpoint, "_write", full)
    with opened() as house:
        failed = house.wait(house.submit([asked(3)], CLIENT)[0].identifier, 60)
        assert failed.state == "failed"
        assert failed.problem["code"] == "disk_full"
        assert failed.problem["message"].startswith("the server's disk has no room")
        monkeypatch.setattr(checkpoint, "_write", real)
        done(house, asked(3))


SERVER = """
import json, sys
from pathlib import Path
from support.houses import *
from swsearch.pipeline import batch, checkpoint
from swsearch.pipeline.batch import QueryState
from swsearch.pipeline.subjects import SubjectReader
from swsearch.server import databases

batch.GROUP_RESIDUES = 500
checkpoint.SAVE_SECONDS = 0.0
saved, save = set(), checkpoint.Checkpoint.save

def save_and_count(self, states, subjects):
    save(self, states, subjects)
    saved.update((each.place, 0 if each.history is None else len(each.history.steps)) for each in states)

checkpoint.Checkpoint.save = save_and_count
engine = ObedientEngine()
databases.create_engine = lambda name, **options: engine
database, folder = Path(sys.argv[1]), Path(sys.argv[2])
with House(settings(database, folder)) as house:
    engine.may_go.clear()
    engine.free = int(sys.argv[3])
    job, = house.submit([asked(30, database.stem, **json.loads(sys.argv[4]))], CLIENT)
    engine.wait()
    wait_until(lambda: len(saved) == sum(engine.scored))
    print(job.identifier, sum(engine.scored), flush=True)
    sys.stdin.read()
"""


def server(database: Path, folder: Path, *more: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)])}
    line = [sys.executable, "-c", SERVER, str(database), str(folder), *more]
    return subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)


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
    with server(searched, tmp_path / "served", str(free), json.dumps(options)) as process:
        assert process.stdout is not None
        identifier, n_scored = process.stdout.readline().split()
        process.kill()
        assert process.wait(60) == -signal.SIGKILL
    again = ObedientEngine()
    with engines(monkeypatch, again), House(settings(searched, tmp_path / "served")) as house:
        assert house.wait(identifier, 60).state == "done"
        n_rest = sum(again.scored)
        found = house.rendered(identifier, "15").whole()
        assert found == house.search_now(asked(30, searched.stem, **options), "15", CLIENT).whole()
        n_all = sum(again.scored) - n_rest
    assert (int(n_scored) > 0, n_rest > 0) == (True, True)
    assert int(n_scored) + n_rest == n_all
