"""Child processes that tests interrupt, and ports for those that listen."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

LISTEN = (
    "import os, signal, sys; [signal.signal(number, signal.SIG_DFL) for number in (1, 2, 15)]; "
    "os.execv(sys.argv[1], sys.argv[1:])"
)
"""Undoes what a shell does to jobs in the background, which never hear Ctrl-C, and nohup; then runs the rest."""


@contextmanager
def started(line: list[str], **options: object) -> Iterator[subprocess.Popen]:
    """Start a process that hears Ctrl-C; whatever happens, it is gone afterwards."""
    listening = [sys.executable, "-c", LISTEN, *line]
    with subprocess.Popen(listening, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def free_ports(number: int) -> list[str]:
    """Return ports of this machine that nobody has."""
    held = [socket.socket() for _ in range(number)]
    for each in held:
        each.bind(("127.0.0.1", 0))
    ports = [str(each.getsockname()[1]) for each in held]
    for each in held:
        each.close()
    return ports
