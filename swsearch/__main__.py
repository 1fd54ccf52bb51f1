"""Where the ``swsearch`` command and ``python -m swsearch`` begin."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # nothing more is imported where memory may be too little for it
if TYPE_CHECKING:
    from types import ModuleType


def main() -> None:
    """Run the command line; what it stands on comes first: signals, the standard streams, and memory."""
    try:
        code = _run()
    except KeyboardInterrupt:  # before signals were set
        os._exit(130)
    except (MemoryError, SystemError) as error:  # Python itself has a SystemError where it finds no memory
        if _watch() is not None:
            os._exit(4)  # the process that waits for this one says so
        if isinstance(error, SystemError):
            raise
        os.write(2, b"swsearch: error: out of memory; raise the limit of memory for this process\n")
        os._exit(4)
    except OSError as error:  # of an import, such as one file too many; what a command meets is an error of its own
        os.write(sys.stderr.fileno(), f"swsearch: error: cannot start: {error}\n".encode())
        if (watch := _watch()) is not None:
            watch.end(255)
        os._exit(255)
    sys.exit(code)


def _watch() -> ModuleType | None:
    """Return the module ``memory_watch`` in a process that another waits for, else None."""
    watch = sys.modules.get("swsearch.cli.memory_watch")
    return watch if watch is not None and watch.is_watched() else None


def _run() -> int:
    from swsearch.cli import signals

    signals.quit_at_once()  # there is nothing to be cleaned up while modules are being imported
    from swsearch.cli import memory_watch, streams

    streams.repair()
    # numpy is not asked for what would take threads of its library, which ends a process that may not start them
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        memory_watch.begin()
        from swsearch.cli.main import main as run

        code = run()
    except Exception as error:
        memory_watch.give_up(error)
        raise
    memory_watch.end(code)
    if signals.received():
        # python would kill itself by SIGINT if that came while it ran a string, as it does to make data classes
        os._exit(code)
    return code


if __name__ == "__main__":
    main()
