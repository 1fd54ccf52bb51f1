"""Runs of the command line in copies of a process that has imported all of it.

A fresh interpreter spends half a second on imports, a forked copy none; everything from the command's first line to
its exit is the same. Of its surroundings a copy is given what `OPTIONS` names. Where the first word is the name of a
Python file, that is run in place of the command line.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

OPTIONS = {"cwd", "input"}
"""Options of `subprocess.run` that are understood here."""

_looks: list[list[str]] = []


def can(options: dict[str, Any]) -> bool:
    """Tell whether a run with these options can be forked."""
    return hasattr(os, "fork") and not options.keys() - OPTIONS


def run(
    words: list[str],
    text: bool,
    cwd: str | os.PathLike[str] | None = None,
    input: str | bytes | None = None,
    stdin: int | None = None,
    closed: Sequence[int] = (),
    full: Sequence[int] = (),
) -> subprocess.CompletedProcess[Any]:
    """Run the command line with these arguments to its end, with some of the standard descriptors closed or full.

    A descriptor to read from stands in place of an input.
    """
    given = input.encode() if isinstance(input, str) else input
    with tempfile.TemporaryFile() as file, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        file.write(given or b"")
        file.seek(0)
        asked = {"words": words, "cwd": os.fspath(cwd or Path.cwd()), "environment": dict(os.environ)}
        asked |= {"closed": list(closed), "full": list(full)}
        with _server() as connection:
            # the length first: the files go with the first bytes, the rest may come in pieces
            body = json.dumps(asked).encode()
            head = len(body).to_bytes(8, "little")
            socket.send_fds(
                connection, [head], [file.fileno() if stdin is None else stdin, out.fileno(), err.fileno()]
            )
            connection.sendall(body)
            told = connection.recv(64)
        out.seek(0)
        err.seek(0)
        got = [out.read(), err.read()]
    shown = [each.decode() for each in got] if text else got
    return subprocess.CompletedProcess(["swsearch", *words], int(told), *shown)


def look(
    words: list[str], stdin: int, timeout: float, check: bool, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Stand for `subprocess.run` in `swsearch.db.hdf5_view`: only the first look is one of a fresh interpreter."""
    if not _looks or timeout < 1:
        _looks.append(words)
        return subprocess.run(words, stdin=stdin, timeout=timeout, check=check, **options)
    program = importlib.import_module("swsearch.db.hdf5_view").__file__
    return run([str(program), words[-1]], text=False, stdin=stdin)


def _server() -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(_address())
    return connection


@cache
def _address() -> str:
    """Start the process that is copied; it ends with this one."""
    folder = tempfile.TemporaryDirectory(prefix="swsearch_fork_")
    address = str(Path(folder.name) / "socket")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen()
    line = [sys.executable, __file__, str(listener.fileno())]
    # a process that has threads is not copied whole, and numpy's linear algebra would start some
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(line, pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL, env=environment)
    listener.close()

    def end() -> None:
        process.kill()
        process.wait()
        folder.cleanup()

    atexit.register(end)
    return address


# what follows runs in the process that is copied, and in its copies


def serve(listener: socket.socket) -> None:
    """Fork for every connection; return in the copies, which then are what was asked for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests, which then end this
    parent = os.getppid()
    listener.settimeout(5)
    while os.getppid() == parent:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        connection.settimeout(None)
        if os.fork() == 0:  # waits for the command, so that the next one need not
            copy = os.fork()
            if copy == 0:
                listener.close()
                become(connection)
                return
            _, status = os.waitpid(copy, 0)
            connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
            os._exit(0)
        connection.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    os._exit(0)


def become(connection: socket.socket) -> None:
    """Take on arguments, folder, environment and files."""
    head, files, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as stream:
        asked = json.loads(stream.read(int.from_bytes(head, "little")))
    connection.close()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    for number in asked["full"]:
        device = os.open("/dev/full", os.O_WRONLY)
        os.dup2(device, number)
        os.close(device)
    for number in asked["closed"]:  # as python has them that was started so
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    for number in asked["closed"]:
        os.close(number)
    sys.modules["__main__"].__package__ = "swsearch"  # as python -m has it, which usage messages name
    program = Path(importlib.import_module("swsearch").__file__ or "").with_name("__main__.py")
    sys.argv = [str(program), *asked["words"]]


def import_everything() -> None:
    """Import what commands import, and what the parser imports when it first parses."""
    for name in ("swsearch", "swsearch.db"):
        package = importlib.import_module(name)
        # in a checkout the package's second folder is the checkout, with its setup.py
        for module in pkgutil.walk_packages(package.__path__[:1], f"{name}."):
            if not module.name.endswith("__main__"):
                with contextlib.suppress(ImportError):  # of what is not installed
                    importlib.import_module(module.name)
    importlib.import_module("h5py")
    app = importlib.import_module("swsearch.cli.main").app
    with contextlib.suppress(Exception):
        app(["db", "info", os.devnull], standalone_mode=False)


if __name__ == "__main__":
    sys.path[0] = ""  # as python -m has it; this folder is no place for imports
    import_everything()
    gc.freeze()  # what copies never look at is not copied
    serve(socket.socket(fileno=int(sys.argv[1])))
    if sys.argv[1:2] and sys.argv[1].endswith(".py"):
        del sys.argv[0]
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        from swsearch.__main__ import main

        main()
