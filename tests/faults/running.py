"""Runs of the command line with a limit on time: in copies of this process, or in processes of their own."""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from support.processes import LISTEN

TIME_LIMIT = 10.0
"""Seconds after which a command is said to hang, at one processor's usual speed; see `limit`."""

_SLOWER = float(os.environ.get("SWSEARCH_FAULTS_SLOWER", "1"))


class Wrong(Exception):  # noqa: N818
    """A violation of what must hold; the message describes it."""


class Done(NamedTuple):
    """How a command ended."""

    code: int
    """The exit code; minus the number of the signal that ended it."""
    out: bytes
    err: str
    seconds: float
    peak: int
    """Bytes of memory at most; of a copy, those of the process that was copied are among them."""
    late: bool
    """Whether it was killed for taking too long."""


def command(*words: object, limit: float = TIME_LIMIT, **options: Any) -> Done:
    """Run the command line in a copy of this process, to its end; options are those of `Copy`."""
    return started(*words, **options).end(limit)


def started(*words: object, **options: Any) -> Copy:
    """Start the command line in a copy of this process; options are those of `Copy`."""

    def work() -> None:
        from swsearch.__main__ import main

        sys.argv = ["swsearch", *map(str, words)]
        sys.exit(main())  # whether it returns its code or exits with it

    return Copy(work, **options)


class Copy:
    """A copy of this process that does something and ends as a program does.

    Parameters
    ----------
    work : callable
        What to do.
    cwd : Path, optional
        Its folder.
    stdin : bytes, optional
        Its input.
    before : callable, optional
        Called in the copy first.
    """

    def __init__(
        self,
        work: Callable[[], object],
        *,
        cwd: Path | None = None,
        stdin: bytes = b"",
        before: Callable[[], object] | None = None,
    ) -> None:
        self._files = [tempfile.TemporaryFile() for _ in range(3)]  # noqa: SIM115
        self._files[0].write(stdin)
        self._files[0].seek(0)
        self._begun = time.monotonic()
        # a signal may reach the copy inside fork(), where it would run what this process does at its end
        unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        self.child = os.fork()
        if self.child == 0:
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
                _become(self._files, cwd)
                _end(work, before)
            finally:
                os._exit(130)  # a signal came before there was a program that could end by it
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)

    def end(self, limit: float = TIME_LIMIT) -> Done:
        """Wait for its end, for so many seconds."""
        code, late, usage = wait(self.child, limit)
        seconds = time.monotonic() - self._begun
        out, err = _contents(self._files)
        return Done(code, out, err, seconds, _peak(usage), late)


def copy(work: Callable[[], object], *, limit: float = TIME_LIMIT, **options: Any) -> Done:
    """Do something in a copy of this process, to its end; options are those of `Copy`."""
    return Copy(work, **options).end(limit)


def _contents(files: list[IO[bytes]]) -> tuple[bytes, str]:
    """Return what was written to stdout and stderr, and close all files."""
    for file in files:
        file.seek(0)
    _, out, err = (file.read() for file in files)
    for file in files:
        file.close()
    return out, err.decode("utf-8", "replace")


def _become(files: list[IO[bytes]], cwd: Path | None) -> None:
    """Take the files for stdin, stdout and stderr, and the handlers of a fresh process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for number, file in enumerate(files):
        os.dup2(file.fileno(), number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    if cwd is not None:
        os.chdir(cwd)


def _end(work: Callable[[], object], before: Callable[[], object] | None) -> None:
    """Do the work and end this process, as the interpreter would."""
    code = 0
    try:
        if before is not None:
            before()
        work()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except Wrong as wrong:
        print(f"wrong: {wrong}", file=sys.stderr)
        code = 99
    except BaseException:
        traceback.print_exc()
        code = 1
    with contextlib.suppress(BaseException):
        sys.stderr.flush()
    try:
        sys.stdout.flush()
    except BaseException:
        code = 120  # as the interpreter ends
    os._exit(code & 0xFF)


def wait(child: int, limit: float) -> tuple[int, bool, resource.struct_rusage]:
    """Wait for a child, kill it when its time is over; return its code, whether that was so, and what it took."""
    late = not _ended(child, limit * _SLOWER)
    if late:
        os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), late, usage


def _ended(child: int, limit: float) -> bool:
    if hasattr(os, "pidfd_open"):
        watched = os.pidfd_open(child)
        try:
            return bool(select.select([watched], [], [], limit)[0])
        finally:
            os.close(watched)
    until = time.monotonic() + limit
    while time.monotonic() < until:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return True
        time.sleep(0.003)
    return False


def _peak(usage: resource.struct_rusage) -> int:
    return int(usage.ru_maxrss) * (1 if sys.platform == "darwin" else 1024)


SWSEARCH = [sys.executable, "-m", "swsearch"]
"""The command line in a process of its own."""


HERE = Path(importlib.import_module("swsearch").__file__ or "").parents[1]
"""Where the package is that this process has, so that others take the same."""


class Process:
    """A command in a process of its own, that hears Ctrl-C.

    Parameters
    ----------
    words : list of object
        Its arguments, or the whole line where ``program`` is empty.
    cwd : Path
        Its folder.
    files : mapping of int to object, optional
        What its stdin, stdout and stderr are, in place of nothing and of files that `end` returns: a descriptor, or
        None for a closed one.
    program : list of str, optional
        What is run.
    limits : mapping of int to int, optional
        Limits as the module resource names them, in bytes.
    """

    def __init__(
        self,
        words: list[object],
        cwd: Path,
        *,
        files: Mapping[int, int | None] | None = None,
        program: list[str] | None = None,
        limits: Mapping[int, int] | None = None,
    ) -> None:
        self._kept = [tempfile.TemporaryFile() for _ in range(3)]  # noqa: SIM115
        given: dict[int, Any] = dict(enumerate(self._kept)) | dict(files or {})
        closed = [number for number, file in given.items() if file is None]

        def prepare() -> None:
            for number in closed:
                os.close(number)
            for kind, most in (limits or {}).items():
                resource.setrlimit(kind, (most, most))

        line = [*(SWSEARCH if program is None else program), *map(str, words)]
        if limits is None:
            line = [sys.executable, "-c", LISTEN, *line] if _ignores() else line
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            line,
            cwd=cwd,
            stdin=given[0] if given[0] is not None else subprocess.DEVNULL,
            stdout=given[1] if given[1] is not None else subprocess.DEVNULL,
            stderr=given[2] if given[2] is not None else subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": str(HERE)},
            preexec_fn=prepare if closed or limits else None,  # noqa: PLW1509  # this process has one thread
        )

    @property
    def child(self) -> int:
        """The number of the process."""
        return self.process.pid

    def end(self, limit: float = 60.0) -> Done:
        """Wait for its end."""
        code, late, usage = wait(self.process.pid, limit)
        self.process.returncode = code
        seconds = time.monotonic() - self.started
        out, err = _contents(self._kept)
        return Done(code, out, err, seconds, _peak(usage), late)


def _ignores() -> bool:
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN
