"""Faults that hit a search by Dask workers at a random moment, and checks of the outcome."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from benchmarks.support.workers import Workers, is_worker, kill, wait_until, with_mark

OUTPUTS = {"hits.tsv": "6", "hits.txt": "0"}
"""Output format of each file that a run writes."""

SEARCH = ["search", "queries.fasta", "database.h5", "--engine", "cpu", "--max-hits", "100", "--quiet"]

END_LIMIT = 60.0
"""Seconds in which a command that cannot go on ends, and all that it began."""

WAIT_LIMIT = 150.0
"""Seconds in which it ends where there is no worker left; it waits two minutes for one."""

RUN_LIMIT = 300.0
"""Seconds after which a command hangs."""

TASK_TIMEOUT = 6
"""Seconds of a task, where one hangs."""


class Wrong(Exception):  # noqa: N818
    """A violation of what must hold; the message describes it."""


class Client:
    """A search that has begun.

    Parameters
    ----------
    folder : Path
        Where it runs and writes.
    words : sequence of str
        Options beyond those of all searches.
    """

    def __init__(self, folder: Path, words: Sequence[str]) -> None:
        self.folder, self.mark = folder, f"swsearch-fault-{uuid.uuid4()}"
        for name in OUTPUTS:
            (folder / name).unlink(missing_ok=True)
        outputs = [word for name, outfmt in OUTPUTS.items() for word in ("-o", name, "--outfmt", outfmt)]
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "swsearch", *SEARCH, *words, *outputs], cwd=folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "SWSEARCH_FAULT": self.mark},
        )  # fmt: skip
        self.seconds, self.err = 0.0, ""

    def end(self, limit: float = RUN_LIMIT) -> int:
        """Wait for its end, `Wrong` if it still runs after ``limit`` seconds; return the exit code."""
        try:
            out, err = self.process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, err = self.process.communicate()
            said = err.decode(errors="replace").strip()[-300:]
            raise Wrong(f"still ran after {limit:.0f} s; it said {said!r}") from None
        self.seconds, self.err = time.monotonic() - self.started, err.decode(errors="replace")
        if out:
            raise Wrong(f"stdout: {out[:200]!r}")
        if "Traceback" in self.err:
            raise Wrong(f"exit code {self.process.returncode} and a traceback: {self.err.strip()[-400:]!r}")
        return self.process.returncode

    def written(self) -> dict[str, bytes]:
        """Return what it wrote."""
        return {name: (self.folder / name).read_bytes() for name in OUTPUTS if (self.folder / name).exists()}


class Trial:
    """One run: what it may do to the machines, and what was seen.

    Parameters
    ----------
    folder : Path
        Has the database and the queries.
    machines : Workers
        Two.
    right : dict of str to bytes
        What a search writes.
    takes : float
        Seconds of an undisturbed search.
    seed : str
        Draws the moment.
    """

    client: Client

    def __init__(self, folder: Path, machines: Workers, right: dict[str, bytes], takes: float, seed: str) -> None:
        self.folder, self.machines, self.right, self.takes = folder, machines, right, takes
        self.chance = random.Random(seed)
        self.after, self.at_work, self.problem = 0.0, 0, ""

    def run(self, fault: Fault) -> None:
        """Make the run, and note what is wrong with it."""
        try:
            if fault.before:
                fault.before(self)
            cluster = "local:2" if fault.is_local else self.machines.address
            self.client = Client(self.folder, ["--cluster", cluster, *fault.words])
            self.after = self.chance.random() * self.takes * (1.5 if fault.is_local else 1.05)
            time.sleep(max(0.0, self.client.started + self.after - time.monotonic()))
            self.at_work = self.machines.n_at_work()
            fault.happens(self)
            self.judge(fault)
        except (Wrong, TimeoutError) as wrong:
            self.problem = f"after {self.after:.2f} s, {self.at_work} at work: {wrong}"
        finally:
            self.client.process.kill()
            self.client.process.wait()

    def judge(self, fault: Fault) -> None:
        """Wait for the end, which must be with the right bytes, or as the fault allows."""
        early = fault.is_signal and self.after <= 0.5  # the interpreter ends, which was about to import something
        codes = (*fault.codes, 1, -signal.SIGINT) if early else fault.codes
        try:
            code = self.client.end(fault.limit + self.takes)
        except Wrong as wrong:
            if not early or "traceback" not in str(wrong):
                raise
            code = 1
        said, left = self.client.err.strip(), self.client.written()
        is_whole = left == self.right
        if code == 0 and is_whole:
            return
        if code not in codes and not (fault.is_signal and is_whole and code < 0):
            sizes = {name: len(each) for name, each in left.items()}
            raise Wrong(f"exit code {code}, expected the right bytes or one of {codes}: {sizes}, {said[-400:]!r}")
        if left and not is_whole and -signal.SIGKILL not in fault.codes:
            raise Wrong(f"exit code {code}, and left {', '.join(left)}")
        if fault.is_signal:
            self._rests()
        elif sum("error" in line for line in said.splitlines()) != 1 or fault.says not in said:
            raise Wrong(f"exit code {code}, and not one sentence {fault.says!r}: {said[-400:]!r}")

    def _rests(self) -> None:
        """Check that nothing goes on after a signal."""
        try:
            self.machines.rest(END_LIMIT)
            wait_until(lambda: not list(with_mark(self.client.mark)), "no process", END_LIMIT / 2)
        except TimeoutError as late:
            left = [f"{each.pid} {' '.join(each.cmdline())[:80]}" for each in with_mark(self.client.mark)]
            raise Wrong(f"{late}; {self.machines.n_tasks()} tasks, processes: {left}") from None

    def some_worker(self) -> psutil.Process:
        """Return the process of one of the workers."""
        wait_until(lambda: bool(self.machines.processes()), "a worker")
        return self.chance.choice(self.machines.processes())


def killed(trial: Trial) -> None:
    """Kill a worker; every fourth time with its nanny, and start another later."""
    if trial.chance.random() < 0.25:
        trial.machines.end(trial.chance.choice(trial.machines.nannies()))
        time.sleep(trial.chance.random() * trial.takes / 2)
        trial.machines.add()
    else:
        trial.some_worker().kill()


def killed_twice(trial: Trial) -> None:
    """Kill a worker, then another or the one that came for it."""
    trial.some_worker().kill()
    time.sleep(trial.chance.random() * trial.takes / 2)
    kill(trial.some_worker())


def all_killed(trial: Trial) -> None:
    """Kill both workers at once; their nannies start others."""
    for process in trial.machines.processes():
        kill(process)


def stopped(trial: Trial) -> None:
    """Stop a worker, which never answers again."""
    trial.some_worker().send_signal(signal.SIGSTOP)


def paused(trial: Trial) -> None:
    """Have Dask pause a worker, and not let it go on."""
    trial.machines.pause(trial.chance.randrange(trial.machines.n_connected()))


def one_or_none(trial: Trial) -> None:
    """Begin with one worker, or none."""
    machines, first = trial.machines, trial.chance.randrange(2)
    while len(machines.nannies()) > first:
        machines.end(machines.nannies()[-1])
    wait_until(lambda: machines.n_connected() == first, f"{first} workers")


def none_left(trial: Trial) -> None:
    """Kill both workers with their nannies; none comes."""
    for nanny in list(trial.machines.nannies()):
        trial.machines.end(nanny)


def no_scheduler(trial: Trial) -> None:
    """Kill the scheduler."""
    trial.machines.scheduler.kill()
    trial.machines.scheduler.wait()


def killed_local(trial: Trial) -> None:
    """Kill a worker that the client started itself."""
    processes = [each for each in with_mark(trial.client.mark) if is_worker(each)]
    if processes:
        kill(trial.chance.choice(processes))


class Fault(NamedTuple):
    """A fault at a random moment: how the search may end beside writing the right bytes, and how it starts."""

    happens: Callable[[Trial], None]
    codes: tuple[int, ...] = ()
    limit: float = RUN_LIMIT
    is_signal: bool = False
    """Whether the client is sent a signal: then nothing may go on."""
    words: tuple[str, ...] = ()
    before: Callable[[Trial], None] | None = None
    is_local: bool = False
    """Whether the client starts its workers itself."""
    says: str = ""
    """Words of the sentence that it ends with."""


def signalled(number: signal.Signals, *codes: int, is_local: bool = False) -> Fault:
    """Send the client a signal."""
    return Fault(lambda trial: trial.client.process.send_signal(number), codes, END_LIMIT, True, is_local=is_local)


FAULTS: dict[str, Fault] = {
    "a worker killed": Fault(killed),
    "a worker killed twice": Fault(killed_twice),
    "all workers killed": Fault(all_killed),
    "a worker hangs": Fault(stopped, words=("--task-timeout", str(TASK_TIMEOUT))),
    "a worker comes late": Fault(lambda trial: trial.machines.add(), before=one_or_none),
    "a worker paused": Fault(paused),
    "workers gone for good": Fault(none_left, (3,), WAIT_LIMIT),
    "scheduler killed": Fault(no_scheduler, (3,), END_LIMIT),
    "Ctrl-C": signalled(signal.SIGINT, 130),
    "SIGTERM": signalled(signal.SIGTERM, 143, -signal.SIGTERM),
    "client killed": signalled(signal.SIGKILL, -signal.SIGKILL),
    "own workers, one killed": Fault(killed_local, (3,), is_local=True, says="no workers could be started"),
    "own workers, Ctrl-C": signalled(signal.SIGINT, 130, is_local=True),
    "own workers, client killed": signalled(signal.SIGKILL, -signal.SIGKILL, is_local=True),
}
"""Faults, by their names in the table."""
