"""A command under a limit of memory (``ulimit -v``): it succeeds, or ends with exit code 4 and one sentence.

Libraries that run out of memory may end the process where no exception can be caught: OpenBLAS calls exit, Arrow and
the C++ library call abort, others write through a null pointer. So where there is a limit, the command runs in a
copy of the process, before anything large was imported, and this one waits for it: it says what happened, and removes
the files that the other would have removed. Without a limit nothing of this takes place.
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
"""That of `swsearch.errors.MemoryLimitError`, which is not imported where memory may be too little for it."""

CLOSE = 32 << 20
"""Bytes below the limit within which a library may have asked for more than there was."""

REASON = 1000
"""Characters of an error, at most, that are told to the process that waits: a pipe takes so many at once."""

_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP)
"""Signals that a process without memory sends itself."""

_SPARING = {"OMP_NUM_THREADS": "1", "ARROW_IO_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
"""Settings by which libraries take fewer threads, and no address space in advance."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""Of glibc's mallopt: arenas, each of which takes 64 MiB of address space; every thread has its own otherwise."""

_PR_SET_PDEATHSIG = 1
"""Of Linux's prctl: the signal that comes when the process that waits for this one is gone."""


class _Watch:
    """What is known in the copy: the limit, the pipe to the process that waits, and the exit code that was told."""

    limit: tuple[int, str] | None = None
    pipe: int | None = None
    code: int | None = None


_watch = _Watch()


def find_limit() -> tuple[int, str] | None:
    """Return the least of this process's limits of memory, in bytes, and what sets it; None without one."""
    import resource

    found = []
    for kind, name in ((resource.RLIMIT_AS, "ulimit -v"), (resource.RLIMIT_DATA, "ulimit -d")):
        soft = resource.getrlimit(kind)[0]
        if soft != resource.RLIM_INFINITY:
            found.append((soft, name))
    return min(found, default=None)


def sentence() -> str:
    """Say that there is too little memory, and what to do."""
    if _watch.limit is None:
        return "out of memory; use fewer threads, or a database instead of FASTA"
    size, name = _watch.limit
    return (
        f"out of memory within the limit of {size >> 20} MiB for this process ({name}); raise the limit, use fewer "
        "threads, or a database instead of FASTA"
    )


def was_short() -> bool:
    """Say whether a watched process has come close to its limit, so that what failed may have failed for it."""
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
    """Go on in a copy of this process if memory is limited; this one ends when the copy has ended."""
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
    _settle()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def is_watched() -> bool:
    """Say whether another process waits for this one."""
    return _watch.pipe is not None


def tell_of_file(path: Path) -> None:
    """Tell the process that waits of a temporary file, which it removes if this one cannot."""
    if _watch.pipe is not None:
        os.write(_watch.pipe, os.fsencode(path.absolute()) + b"\0")


def tell_of_error(code: int) -> None:
    """Tell the process that waits that an error was said, and its exit code; whatever fails now says nothing more."""
    if _watch.pipe is not None:
        _watch.code = code
        os.write(_watch.pipe, b"=%d\0" % code)


def end(code: int) -> None:
    """End a watched process with an exit code, without what libraries do at their end; return in any other."""
    if _watch.pipe is not None:
        os.write(_watch.pipe, b"=%d\0" % code)
        os._exit(code)


def give_up(error: BaseException) -> None:
    """End a watched process that failed where nothing is known to fail but for lack of memory; return in any other.

    Imports fail in many ways where one of their many steps has no memory.
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


def _settle() -> None:
    """Use less address space, keep what libraries print about their end apart, and end with the one that waits."""
    # messages go where they went; what is written to descriptor 2 itself is a library's last word
    sys.stderr = signals.messages_to(os.dup(2))
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
    for name, value in _SPARING.items():
        os.environ.setdefault(name, value)
    few_arenas(1)
    with contextlib.suppress(Exception):  # it is not there on other systems
        import ctypes

        library = ctypes.CDLL(None)
        library.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def few_arenas(number: int, mapped: int | None = None, kept: int = 0) -> None:
    """Let all threads share so many arenas of glibc's, instead of one each; call this before there are threads.

    What a thread frees stays in its arena, and is of no use to the others: a server whose threads take turns holds
    twice the memory.

    Parameters
    ----------
    number : int
        Of arenas.
    mapped : int, optional
        Bytes from which on a block is mapped by itself, and goes back as a whole when it is freed. Without it the
        bound grows with what is freed, and what stands behind large blocks keeps their pages.
    kept : int, optional
        With ``mapped``: bytes at the end of an arena that are kept, and not given back and asked for again.
    """
    with contextlib.suppress(Exception):  # other C libraries have none
        import ctypes

        library = ctypes.CDLL(None)
        library.mallopt(_M_ARENA_MAX, number)
        if mapped is not None:
            library.mallopt(_M_MMAP_THRESHOLD, mapped)
            library.mallopt(_M_TRIM_THRESHOLD, kept)


def _forward_signals(child: int) -> None:
    def forward(number: int, frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    for number in signals.ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, forward)


def _wait(child: int, pipe: int) -> int:
    """Wait for the copy's end; return the exit code, after saying and removing what the copy could not."""
    told = b""
    while piece := os.read(pipe, 1 << 16):
        told += piece
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    words = told.split(b"\0")[:-1]
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
        print(f"swsearch: error: {sentence()} (it ended with {how})", file=sys.stderr, flush=True)
    return EXIT_CODE
