"""Entry points of the commands ``swsearch`` and ``swsearch-jackhmmer``, and of ``python -m swsearch``."""

import os
import sys

WATCH = "swsearch.cli.memory_limit"
"""Looked up among the modules that are there: for another import there may be no memory."""


def main(module: str = "swsearch.cli.main") -> None:
    """Run the ``main`` of a module, after setting up signals, standard streams and memory limits."""
    try:
        code = _run(module)
    except KeyboardInterrupt:  # before signals were set
        os._exit(130)
    except (MemoryError, SystemError) as error:  # Python itself has a SystemError where it finds no memory
        if _is_watched():
            os._exit(4)  # the process that waits for this one says so
        if isinstance(error, SystemError):
            raise
        os.write(2, b"swsearch: error: out of memory; raise the limit of memory for this process\n")
        os._exit(4)
    except OSError as error:  # of an import, such as one file too many; what a command meets is an error of its own
        os.write(sys.stderr.fileno(), f"swsearch: error: cannot start: {error}\n".encode())
        if _is_watched():
            sys.modules[WATCH].end(255)
        os._exit(255)
    sys.exit(code)


def jackhmmer() -> None:
    """Run ``swsearch-jackhmmer``."""
    main("swsearch.cli.jackhmmer")


def _is_watched() -> bool:
    return WATCH in sys.modules and bool(sys.modules[WATCH].is_watched())


def _run(module: str) -> int:
    from swsearch.cli import signals

    signals.quit_at_once()  # there is nothing to be cleaned up while modules are being imported
    from swsearch.cli import memory_limit

    signals.reopen_closed_streams()
    # numpy is not asked for what would take threads of its library, which ends a process that may not start them
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import gc
    from importlib import import_module

    gc.disable()  # until a command begins: what modules make stays, and looking through it takes a tenth of the time
    try:
        memory_limit.begin()
        code: int = import_module(module).main()
    except Exception as error:
        memory_limit.exit_if_out_of_memory(error)
        raise
    memory_limit.end(code)
    if signals.received():
        # python would kill itself by SIGINT if that came while it ran a string, as it does to make data classes
        os._exit(code)
    return code


if __name__ == "__main__":
    main()
