"""Searches whose workers are killed, hang, come late or are strangers: the bytes are those of one process."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support import command_line
from support.clusters import ROOT, SOON, cluster, descendants, is_alive, until, worker_processes
from support.processes import started

pytest.importorskip("distributed")

LETTERS = "ACDEFGHIKLMNPQRSTVWY"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Queries that take some seconds, a database of four volumes, and what one process writes."""
    folder = tmp_path_factory.mktemp("faults")
    chance = random.Random(11)
    records = ["".join(chance.choices(LETTERS, k=chance.randint(100, 600))) for _ in range(2500)]
    (folder / "in.fasta").write_text("".join(f">s{k}\n{each}\n" for k, each in enumerate(records)))
    (folder / "queries.fasta").write_text("".join(f">q{k}\n{each}\n" for k, each in enumerate(records[:240:3])))
    done = command_line.run("db", "build", "in.fasta", "-o", "db.json", "--volume-size", "250K", "-q", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert len(list(folder.glob("db.*.h5"))) >= 3
    done = command_line.run("search", "queries.fasta", "db.json", "-o", "alone.tsv", "-q", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def line(where, *more):
    words = ["search", "queries.fasta", "db.json", "--cluster", where, "--engine", "cpu", "-o", "there.tsv", *more]
    return [sys.executable, "-m", "swsearch", *words]


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def searched(files, where, fault, *more):
    """Search, let something happen meanwhile, and return what was said; the bytes must be those of one process."""
    (files / "there.tsv").unlink(missing_ok=True)
    with started(line(where, *more), cwd=files, env=environment(), text=True) as search:
        fault(search)
        _, told = search.communicate(timeout=SOON)
    assert search.returncode == 0, told
    assert (files / "there.tsv").read_bytes() == (files / "alone.tsv").read_bytes()
    return told


def work_has_begun(process):
    """Wait until a worker of a process computes."""

    def ticks():
        found = 0
        for each in worker_processes(process):
            words = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            found += int(words[11])
        return found

    until(lambda: len(worker_processes(process)) >= 1)
    before = ticks()
    until(lambda: ticks() > before + 30)


@pytest.mark.exhaustive
@pytest.mark.parametrize("n_killed", [1, 2])
def test_workers_that_are_killed_are_replaced(files, n_killed):
    def kill(search):
        until(lambda: len(worker_processes(search.pid)) == 2)
        time.sleep(2.5)
        for each in worker_processes(search.pid)[:n_killed]:
            os.kill(each, signal.SIGKILL)

    told = searched(files, "local:2", kill)
    assert "Traceback" not in told


@pytest.mark.exhaustive
def test_a_worker_that_hangs_is_started_anew(files, tmp_path):
    with cluster(tmp_path) as here:
        looking_after = here.worker("--nworkers", "2")
        here.wait_for(2)

        def stop(search):
            work_has_begun(looking_after.pid)
            os.kill(worker_processes(looking_after.pid)[0], signal.SIGSTOP)

        told = searched(files, here.address, stop, "--task-timeout", "5")
    assert "returned no result within the task timeout of 5 s; restarting it" in told


@pytest.mark.exhaustive
def test_a_worker_that_hangs_and_has_no_nanny_is_left_out(files, tmp_path):
    with cluster(tmp_path) as here:
        workers = [here.worker("--no-nanny") for _ in range(2)]
        here.wait_for(2)

        def stop(search):
            time.sleep(3)
            os.kill(workers[0].pid, signal.SIGSTOP)

        told = searched(files, here.address, stop, "--task-timeout", "5")
    assert "is not used: it returned no result within 5 s" in told


@pytest.mark.exhaustive
def test_workers_that_come_late_are_used(files, tmp_path):
    with cluster(tmp_path) as here:

        def come(search):
            time.sleep(4)
            here.worker()
            here.wait_for(1)
            time.sleep(1)
            here.worker()
            here.wait_for(2)

        assert "Traceback" not in searched(files, here.address, come)


@pytest.mark.exhaustive
def test_workers_that_have_other_sources_or_none_are_not_used(files, tmp_path):
    other, none = tmp_path / "other", tmp_path / "none" / "swsearch"
    shutil.copytree(ROOT / "swsearch", other / "swsearch")
    for name in ("db", "cuda"):
        shutil.copytree(ROOT / name, other / "swsearch" / name)
    (other / "swsearch" / "pipeline" / "another.py").write_text("")
    none.mkdir(parents=True)
    (none / "__init__.py").write_text("raise ModuleNotFoundError('No module named swsearch')\n")
    with cluster(tmp_path) as here:
        here.worker()
        here.worker(PYTHONPATH=str(other))
        here.worker(PYTHONPATH=str(none.parent))
        here.wait_for(3)
        told = searched(files, here.address, lambda search: None)
    assert "is not used: the sources of swsearch " in told
    assert "is not used: it cannot load swsearch (" in told


@pytest.mark.exhaustive
def test_a_scheduler_that_is_killed_ends_the_search(files, tmp_path):
    with cluster(tmp_path) as here:
        looking_after = here.worker()
        here.wait_for(1)
        with started(line(here.address), cwd=files, env=environment(), text=True) as search:
            work_has_begun(looking_after.pid)
            time.sleep(1)
            here.scheduler.kill()
            _, told = search.communicate(timeout=SOON)
    assert search.returncode == 3, told
    assert f"error: {here.address}: the Dask client was closed, or its scheduler is gone; run the search" in told


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("after", [0.5, 1.5, 4.0])
def test_nothing_goes_on_running(files, number, after):
    with started(line("local:2"), cwd=files, env=environment(), text=True, start_new_session=True) as search:
        if after > 1:
            until(lambda: len(worker_processes(search.pid)) == 2)
        time.sleep(after)
        there = descendants(search.pid)
        if number == signal.SIGINT:
            os.killpg(search.pid, number)  # as a terminal does
        else:
            search.kill()
        _, told = search.communicate(timeout=SOON)
    until(lambda: not any(is_alive(process) for process in there))
    if number == signal.SIGINT:
        assert search.returncode == 130
        assert "Traceback" not in told
        assert "leaked" not in told


ENDS_AT_ONCE = """
import os
from swsearch.cluster.messages import EngineRequest
from swsearch.cluster.opening import open_pool
if __name__ == "__main__":
    pool = open_pool("local:2", EngineRequest("cpu"))
    os._exit(130)
"""


@pytest.mark.exhaustive
def test_who_ends_at_once_leaves_no_word(tmp_path):
    (tmp_path / "child.py").write_text(ENDS_AT_ONCE)
    ended = subprocess.run(
        [sys.executable, str(tmp_path / "child.py")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False, timeout=SOON, env=environment(),
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (130, "")
