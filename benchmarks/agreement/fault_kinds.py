"""Faults that hit a search by Dask workers at a random moment, and checks of the outcome."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil

from benchmarks.support.workers import Workers, wait_until, with_mark

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
        """Wait for its end; return the exit code.

        Raises
        ------
        Wrong
            If it still runs after ``limit`` seconds.
        """
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

    def __init__(self, folder: Path, machines: Workers, right: dict[str, bytes], takes: float, seed: str) -> None:
        self.folder, self.machines, self.right, self.takes = folder, machines, right, takes
        self.chance = random.Random(seed)
        self.after, self.at_work, self.said, self.client = 0.0, 0, "", None  # type: ignore[var-annotated]

    def search(self, *words: str, cluster: str) -> None:
        """Begin a search by workers."""
        self.client = Client(self.folder, ["--cluster", cluster, *words])

    def wait(self, share: float = 1.05) -> None:
        """Wait for a random moment, and see whether workers have tasks then."""
        self.after = self.chance.random() * self.takes * share
        time.sleep(max(0.0, self.client.started + self.after - time.monotonic()))
        self.at_work = self.machines.n_at_work()

    def some_worker(self) -> psutil.Process:
        """Return the process of one of the workers."""
        wait_until(lambda: bool(self.machines.processes()), "a worker")
        return self.chance.choice(self.machines.processes())

    def same_bytes(self) -> None:
        """Wait for the search, which must have written what is right."""
        code = self.client.end()
        self.said = self.client.err.strip()
        if code:
            raise Wrong(f"exit code {code}: {self.said[-400:]!r}")
        found = self.client.written()
        if found != self.right:
            sizes = {name: len(each) for name, each in found.items()}
            raise Wrong(
                f"other bytes: {sizes}, expected { ({name: len(each) for name, each in self.right.items()}) }"
            )

    def one_sentence(self, codes: Sequence[int], limit: float = END_LIMIT) -> None:
        """Wait for the search, which must end soon, with a sentence and without outputs, or have been done before."""
        code = self.client.end(limit + self.takes)
        self.said = self.client.err.strip()
        if code == 0 and self.client.written() == self.right:
            return
        if code not in codes:
            raise Wrong(f"exit code {code}, expected one of {codes}: {self.said[-400:]!r}")
        if len([line for line in self.said.splitlines() if "error" in line]) != 1:
            raise Wrong(f"exit code {code}, and not one sentence: {self.said[-400:]!r}")
        if left := self.client.written():
            raise Wrong(f"exit code {code}, and left {', '.join(left)}")


def kill(process: psutil.Process) -> None:
    """Kill a process that may have died meanwhile."""
    with contextlib.suppress(psutil.Error):
        process.kill()


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
    processes = [each for each in with_mark(trial.client.mark) if "spawn_main" in " ".join(each.cmdline())]
    if processes:
        kill(trial.chance.choice(processes))


def one_sentence_of_start(trial: Trial) -> None:
    """Check the end of a client whose own worker was killed: only where none could be started may it fail."""
    trial.one_sentence((3,))
    if trial.client.process.returncode and "no workers could be started" not in trial.said:
        raise Wrong(f"a worker at work was killed, and the search ended: {trial.said[-400:]!r}")


def after_signal(trial: Trial, codes: Sequence[int]) -> None:
    """Check the end of a client that was sent a signal, and that nothing goes on."""
    client = trial.client
    early = (1, -signal.SIGINT)  # the interpreter ends, which was about to import something
    try:
        code = client.end(END_LIMIT)
    except Wrong as wrong:
        if trial.after > 0.5 or "traceback" not in str(wrong):
            raise
        code = early[0]
    trial.said = client.err.strip()
    left = client.written()
    is_whole = code <= 0 and left == trial.right  # the signal came when all was written, or later
    if code == 0 and is_whole:
        return
    if code not in codes and not is_whole and not (trial.after <= 0.5 and code in early):
        raise Wrong(f"exit code {code}, expected one of {codes}: {client.err.strip()[-400:]!r}")
    if left and not is_whole and -signal.SIGKILL not in codes:
        raise Wrong(f"exit code {code}, and left {', '.join(left)}")
    try:
        trial.machines.rest(END_LIMIT)
        wait_until(lambda: not list(with_mark(client.mark)), "no process", END_LIMIT / 2)
    except TimeoutError as late:
        left = [f"{each.pid} {' '.join(each.cmdline())[:80]}" for each in with_mark(client.mark)]
        raise Wrong(f"{late}; {trial.machines.n_tasks()} tasks, processes: {left}") from None


class Fault(NamedTuple):
    """A fault at a random moment, the check of its outcome, and the start of the search."""

    happens: Callable[[Trial], None]
    judge: Callable[[Trial], None] = Trial.same_bytes
    words: tuple[str, ...] = ()
    before: Callable[[Trial], None] | None = None
    is_local: bool = False
    """Whether the client starts its workers itself."""

    def run(self, trial: Trial) -> None:
        """Make one run."""
        if self.before:
            self.before(trial)
        trial.search(*self.words, cluster="local:2" if self.is_local else trial.machines.address)
        trial.wait(1.5 if self.is_local else 1.05)
        self.happens(trial)
        self.judge(trial)


def signalled(number: signal.Signals, *codes: int, is_local: bool = False) -> Fault:
    """Send the client a signal; nothing goes on, and no process is left."""
    return Fault(
        lambda trial: trial.client.process.send_signal(number), partial(after_signal, codes=codes), is_local=is_local
    )


FAULTS: dict[str, Fault] = {
    "a worker killed": Fault(killed),
    "a worker killed twice": Fault(killed_twice),
    "all workers killed": Fault(all_killed),
    "a worker hangs": Fault(stopped, words=("--task-timeout", str(TASK_TIMEOUT))),
    "a worker comes late": Fault(lambda trial: trial.machines.add(), before=one_or_none),
    "a worker paused": Fault(paused),
    "workers gone for good": Fault(none_left, partial(Trial.one_sentence, codes=(3,), limit=WAIT_LIMIT)),
    "scheduler killed": Fault(no_scheduler, partial(Trial.one_sentence, codes=(3,))),
    "Ctrl-C": signalled(signal.SIGINT, 130),
    "SIGTERM": signalled(signal.SIGTERM, 143, -signal.SIGTERM),
    "client killed": signalled(signal.SIGKILL, -signal.SIGKILL),
    "own workers, one killed": Fault(killed_local, one_sentence_of_start, is_local=True),
    "own workers, Ctrl-C": signalled(signal.SIGINT, 130, is_local=True),
    "own workers, client killed": signalled(signal.SIGKILL, -signal.SIGKILL, is_local=True),
}
"""Faults, by their names in the table."""
