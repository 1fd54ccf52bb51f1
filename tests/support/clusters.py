"""Clusters of processes that tests start, stop and kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from support.processes import free_ports

SOON = 120
"""Seconds within which things happen, on however slow a machine; reached only where a test fails."""

ROOT = Path(__file__).resolve().parents[2]


def until(is_so: Callable[[], object]) -> None:
    end = time.monotonic() + SOON
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def descendants(process: int) -> list[int]:
    """Return the processes that a process has started, and these, and so on."""
    found: list[int] = []
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(each) for each in children.read_text().split()]
    return [each for child in found for each in (child, *descendants(child))]


def worker_processes(process: int) -> list[int]:
    """Return the worker processes that a process has started, not those that look after them."""
    found = []
    for each in descendants(process):
        with suppress(OSError):
            if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes():
                found.append(each)
    return found


class Cluster:
    """A scheduler, and workers that a test starts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (port,) = free_ports(1)
        self.address = f"tcp://127.0.0.1:{port}"
        self._started: list[subprocess.Popen[bytes]] = []
        quiet = ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
        self.scheduler = self._start("scheduler", ["--host", "127.0.0.1", "--port", port, *quiet])

    def _start(self, kind: str, words: list[str], **environment: str) -> subprocess.Popen[bytes]:
        env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        line = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words]
        with (self._folder / f"{kind}{len(self._started)}.log").open("wb") as log:
            self._started.append(subprocess.Popen(line, stdout=log, stderr=log, env=env, cwd=self._folder))
        return self._started[-1]

    def worker(self, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start a worker; what is started is the process that looks after it, if there is one."""
        given = [self.address, "--nthreads", "2", "--memory-limit", "2GB", "--no-dashboard", *words]
        folder = self._folder / f"local{len(self._started)}"
        environment = {"SWSEARCH_THREADS": "1", **environment}
        return self._start("worker", [*given, "--local-directory", str(folder)], **environment)

    def wait_for(self, n: int) -> None:
        """Wait until so many workers have said that they are there."""
        until(lambda: sum(each.read_text().count("Registered to") for each in self._folder.glob("worker*.log")) >= n)

    def close(self) -> None:
        for each in reversed(self._started):
            for process in [*descendants(each.pid), each.pid]:
                with suppress(OSError):
                    os.kill(process, signal.SIGKILL)
            each.wait()


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Start a scheduler; whatever happens, all that was started is gone afterwards."""
    made = Cluster(folder)
    try:
        yield made
    finally:
        made.close()
