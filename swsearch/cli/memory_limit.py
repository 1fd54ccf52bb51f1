"""Commands under a memory limit, as set by ``ulimit -v``.

They succeed, or end with exit code 4 and one sentence. Libraries that run out of memory may end the process without
an exception: OpenBLAS calls exit, Arrow and the C++ library call abort, others write through a null pointer. So if
there is a limit, the command runs in a fork of the process, made before large imports. The parent waits for the fork,
reports the failure, and removes the files that the fork would have removed. Without a limit, the process does not
fork.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from pathlib import Path

from swsearch.cli import signals

EXIT_CODE = 4
"""Exit code of `swsearch.errors.MemoryLimitError`, which is not imported because memory may be too small for it."""

CLOSE = 32 << 20
"""Bytes below the limit within which a library may have asked for more than there was."""

REASON = 1000
"""Characters of an error, at most, that are told to the process that waits: a pipe takes so many at once."""

_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP)
"""Signals that a process without memory sends itself."""

_SPARING = {"OMP_NUM_THREADS": "1", "ARROW_IO_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
"""Settings by which libraries take fewer threads, and no address space in advance."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""Parameters of glibc's mallopt. By default every thread has its own arena of 64 MiB of address space."""

_PR_SET_PDEATHSIG = 1
"""Option of Linux's prctl: signal that is sent when the parent ends."""


class _Watch:
    """State of the fork: the limit, the pipe to the parent, and the reported exit code."""

    limit: tuple[int, str] | None = None
    pipe: int | None = None
    code: int | None = None


_watch = _Watch()


def find_limit() -> tuple[int, str] | None:
    """Return the least of this process's limits of memory, in bytes, and what sets it; None without one."""
    import resource

    limits = []
    for kind, name in ((resource.RLIMIT_AS, "ulimit -v"), (resource.RLIMIT_DATA, "ulimit -d")):
        soft = resource.getrlimit(kind)[0]
        if soft != resource.RLIM_INFINITY:
            limits.append((soft, name))
    return min(limits, default=None)


def out_of_memory_message() -> str:
    """Return the message that memory is short, with the remedy."""
    if _watch.limit is None:
        return "out of memory; use fewer threads, or a database instead of FASTA"
    size, name = _watch.limit
    return (
        f"out of memory within the limit of {size >> 20} MiB for this process ({name}); raise the limit, use fewer "
        "threads, or a database instead of FASTA"
    )


def hit_memory_limit() -> bool:
    """Return whether a watched process came close to its limit, which may explain a failure."""
    if _watch.pipe is None or _watch.limit is None:
        return False
    limit, name = _watch.limit
    used = {"ulimit -v": "VmPeak:", "ulimit -d": "VmData:"}[name]
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith(used):
                return limit - 1024 * int(line.split()[1]) < CLOSE
    return True


def begin() -> None:
    """Continue in a fork of this process if memory is limited; the parent exits when the fork has ended."""
    _watch.limit = find_limit()
    if _watch.limit is None:
        return
    ours, theirs = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals.ENDING)
    try:
        child = os.fork()
    except OSError:  # no process to be had: then there is no watch
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(ours)
        os.close(theirs)
        return
    if child:
        os.close(theirs)
        _forward_signals(child)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os._exit(_wait(child, ours))
    os.close(ours)
    _watch.pipe = theirs
    _prepare_process()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def is_watched() -> bool:
    """Return whether a parent waits for this process."""
    return _watch.pipe is not None


def report_file(path: Path) -> None:
    """Report a temporary file to the parent, which removes the file if this process cannot."""
    if _watch.pipe is not None:
        os.write(_watch.pipe, os.fsencode(path.absolute()) + b"\0")


def report_error(code: int) -> None:
    """Report to the parent that an error was printed, and its exit code; later failures print nothing."""
    if _watch.pipe is not None:
        _watch.code = code
        os.write(_watch.pipe, b"=%d\0" % code)


def end(code: int) -> None:
    """Exit a watched process with an exit code, without exit handlers of libraries; return in any other."""
    if _watch.pipe is not None:
        os.write(_watch.pipe, b"=%d\0" % code)
        os._exit(code)


def exit_if_out_of_memory(error: BaseException) -> None:
    """Exit a watched process that failed for an unknown reason, probably for lack of memory; return in any other.

    Imports fail in many ways without memory.
    """
    if _watch.code is not None:
        end(_watch.code)
    if isinstance(error, OSError) and error.errno != errno.ENOMEM:
        return
    if _watch.pipe is not None:
        try:  # the process that waits says it: there may be no memory for that here
            how = f"{type(error).__name__}: {error}".splitlines()[0][:REASON]
            os.write(_watch.pipe, b"!" + os.fsencode(how) + b"\0")
        finally:
            os._exit(EXIT_CODE)


def _prepare_process() -> None:
    """Use less address space, keep what libraries print about their end apart, and end with the one that waits."""
    # messages go where they went; what is written to descriptor 2 itself is a library's last word
    sys.stderr = signals.messages_to(os.dup(2))
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
    for name, value in _SPARING.items():
        os.environ.setdefault(name, value)
    limit_malloc_arenas(1)
    with contextlib.suppress(Exception):  # it is not there on other systems
        import ctypes

        library = ctypes.CDLL(None)
        library.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def limit_malloc_arenas(number: int, mapped: int | None = None, kept_bytes: int = 0) -> None:
    """Limit the number of glibc's arenas, which threads then share; call this before threads start.

    Memory that a thread frees stays in its arena, so a server whose threads take turns holds twice the memory. Blocks
    of at least ``mapped`` bytes are mapped one by one and returned to the system as a whole; without it the bound
    grows. ``kept_bytes`` is the number of free bytes at the end of an arena that are not returned.
    """
    with contextlib.suppress(Exception):  # other C libraries have none
        import ctypes

        library = ctypes.CDLL(None)
        library.mallopt(_M_ARENA_MAX, number)
        if mapped is not None:
            library.mallopt(_M_MMAP_THRESHOLD, mapped)
            library.mallopt(_M_TRIM_THRESHOLD, kept_bytes)


def _forward_signals(child: int) -> None:
    def forward(number: int, frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    for number in signals.ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, forward)


def _wait(child: int, pipe: int) -> int:
    """Wait for the copy's end; return the exit code, after saying and removing what the copy could not."""
    report = b""
    while piece := os.read(pipe, 1 << 16):
        report += piece
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    words = report.split(b"\0")[:-1]
    codes = [int(word[1:]) for word in words if word.startswith(b"=")]
    reasons = [os.fsdecode(word[1:]) for word in words if word.startswith(b"!")]
    for word in words:
        if not word.startswith((b"=", b"!")):  # files; after an orderly end they are gone already
            with contextlib.suppress(OSError):
                os.unlink(word)  # noqa: PTH108  # bytes
    if codes:
        return codes[-1]
    if status < 0 and -status not in _CRASHES:  # another process ended it
        return 128 - status
    ended = signal.Signals(-status).name if status < 0 else f"exit code {status}"
    with contextlib.suppress(OSError):
        how = reasons[-1] if reasons else ended
        print(f"swsearch: error: {out_of_memory_message()} (it ended with {how})", file=sys.stderr, flush=True)
    return EXIT_CODE
