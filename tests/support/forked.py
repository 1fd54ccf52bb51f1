"""Work done in a fork of the test's process."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable

SECONDS = 60
"""After which a fork counts as hanging."""


def in_fork(work: Callable[[], object]) -> str:
    """Do something in a fork, and return its result or error as text."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: of a process that has threads
        child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)  # ends it where it waits forever
        try:
            said = repr(work())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as stream:
        return stream.read().decode() or "it hangs, or ended without a word"


def refused(what: str) -> str:
    return (
        f"EngineError: {what}: was made before this process was forked, and cannot be used in the fork; make one in "
        "each process (e.g. in the initializer of a multiprocessing.Pool)"
    )
