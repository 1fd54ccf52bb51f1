"""A Dask scheduler and two workers as processes of this machine, which can be killed, stopped and looked at."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

START_LIMIT = 90.0
"""Seconds that a scheduler or a worker may take to be there, on a machine that has much else to do."""
N_WORKERS = 2


class Workers:
    """A scheduler with workers of one thread, each under a nanny, which starts it again when it dies.

    Parameters
    ----------
    folder : Path
        For their files; what they print goes to ``workers.log`` there.
    """

    def __init__(self, folder: Path) -> None:
        from distributed import Client

        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # of a scheduler that is killed
        self._folder, self._log = folder, (folder / "workers.log").open("ab")
        self._nannies: list[subprocess.Popen[bytes]] = []
        self._client: Any = None
        file = folder / "scheduler.json"
        file.unlink(missing_ok=True)
        words = ["--port", "0", "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file)]
        self.scheduler = self._start("distributed.cli.dask_scheduler", *words)
        try:
            wait_until(lambda: file.is_file() and file.stat().st_size > 0, "a scheduler")
            self._client = Client(scheduler_file=str(file), set_as_default=False, timeout=START_LIMIT)
            self.address = str(self._client.scheduler_info()["address"])
            self.restore()
        except BaseException:
            self.close()
            raise

    def _start(self, module: str, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", module, *words], stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
            env={**os.environ, "SWSEARCH_THREADS": "1"},
        )  # fmt: skip

    def add(self) -> None:
        """Start another worker; it comes when it comes."""
        words = ["--host", "127.0.0.1", "--nworkers", "1", "--nthreads", "2", "--nanny", "--no-dashboard"]
        words += ["--local-directory", str(self._folder), "--memory-limit", "0", self.address]
        self._nannies.append(self._start("distributed.cli.dask_worker", *words))

    def nannies(self) -> list[subprocess.Popen[bytes]]:
        """Return the nannies that live."""
        self._nannies = [nanny for nanny in self._nannies if nanny.poll() is None]
        return self._nannies

    def processes(self) -> list[psutil.Process]:
        """Return the processes that work; some may have died meanwhile."""
        found = []
        for nanny in self.nannies():
            with contextlib.suppress(psutil.Error):
                found += [each for each in psutil.Process(nanny.pid).children() if is_worker(each)]
        return found

    def n_connected(self) -> int:
        """Count the workers that the scheduler knows."""
        return len(self._client.scheduler_info(n_workers=-1)["workers"])

    def n_tasks(self) -> int:
        """Count the tasks that the scheduler knows, of whichever client."""
        return int(self._client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))

    def n_at_work(self) -> int:
        """Count the workers that have tasks at the moment."""
        return int(
            self._client.run_on_scheduler(
                lambda dask_scheduler: sum(bool(each.processing) for each in dask_scheduler.workers.values())
            )
        )

    def _set_status(self, name: str, **options: Any) -> None:
        def change(dask_worker: Any) -> None:
            dask_worker.status = type(dask_worker.status)[name]

        self._client.run(change, **options)

    def pause(self, number: int) -> None:
        """Have Dask pause one of the workers, as if it lacked memory, until `restore`."""
        self._set_status("paused", workers=[sorted(self._client.nthreads())[number]])

    def rest(self, limit: float) -> None:
        """Wait until no task is known and no worker uses its processor; `TimeoutError` if that takes too long."""
        wait_until(lambda: self.n_tasks() == 0, "a scheduler without tasks", limit)
        wait_until(lambda: self._share_used(0.5) < 0.2, "workers that rest", limit)

    def _share_used(self, seconds: float) -> float:
        """Return the processors that the workers use on average for some seconds."""
        before = {process: _processor_seconds(process) for process in self.processes()}
        time.sleep(seconds)
        return sum(_processor_seconds(process) - used for process, used in before.items()) / seconds

    def restore(self) -> None:
        """Let what was stopped go on, and wait until there are as many workers as at first, and they answer."""
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGCONT)
        while len(self.nannies()) > N_WORKERS:
            self.end(self.nannies()[-1])
        while len(self.nannies()) < N_WORKERS:
            self.add()
        wait_until(self._all_answer, f"{N_WORKERS} workers")
        self._set_status("running")

    def _all_answer(self) -> bool:
        with contextlib.suppress(Exception):  # one that is gone, which the scheduler has not noticed
            return self.n_connected() == N_WORKERS == len(self._client.run(int, on_error="ignore"))
        return False

    def end(self, nanny: subprocess.Popen[bytes]) -> None:
        """Kill a nanny and its worker at once."""
        with contextlib.suppress(psutil.Error):
            below = psutil.Process(nanny.pid).children(recursive=True)
            nanny.kill()
            for process in below:
                kill(process)
        nanny.wait()

    def close(self) -> None:
        """End all."""
        with contextlib.suppress(Exception):
            self._client.close(timeout=2)
        for nanny in self.nannies():
            self.end(nanny)
        self.scheduler.kill()
        self.scheduler.wait()
        self._log.close()


def is_worker(process: psutil.Process) -> bool:
    """Return whether a process is a worker, not its nanny."""
    return "spawn_main" in " ".join(process.cmdline())


def kill(process: psutil.Process) -> None:
    """Kill a process that may have died meanwhile."""
    with contextlib.suppress(psutil.Error):
        process.kill()


def _processor_seconds(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.Error):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0


def wait_until(is_so: Callable[[], bool], what: str, limit: float = START_LIMIT) -> None:
    """Wait until something is so; `TimeoutError` if it is not after ``limit`` seconds."""
    end = time.monotonic() + limit
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: expected within {limit:.0f} s")
        time.sleep(0.05)


def with_mark(mark: str) -> Iterator[psutil.Process]:
    """Yield the processes whose environment has a mark."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if mark in process.environ().values() and process.status() != psutil.STATUS_ZOMBIE:
                yield process
