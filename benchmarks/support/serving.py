"""`swsearch serve` as a process of its own, what it holds of the system, and connections to ask it by."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from benchmarks.support.common import Records, write
from benchmarks.support.timing import say

API = "/api/v1"

START_SECONDS = 120.0
"""In which a server must be ready: kernels are compiled, and the database is loaded."""

END_SECONDS = 60.0
"""In which it must have ended after SIGTERM."""

ENDED = (0, 128 + signal.SIGTERM)
"""Exit codes of a server that ended in order."""

ASK_SECONDS = 120.0
"""In which an answer must come."""

MOST_TOLD = 5
"""Answers that differ of which is told how."""

PACED_EVERY = 0.05
"""Seconds between two looks at something that is waited for."""


CELLS, SECONDS = "swsearch_cells_total", "swsearch_scoring_seconds_total"
"""Metrics of what the engine has done."""


class Scored(NamedTuple):
    """What an engine has scored, and the seconds in which it did."""

    cells: float
    seconds: float


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        """Return what the body states."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Look:
    """What a process holds at some time.

    Parameters
    ----------
    at : float
        Seconds of `time.monotonic`.
    resident : int
        Bytes in memory.
    threads, descriptors : int
        How many.
    """

    at: float
    resident: int
    threads: int
    descriptors: int


class Asker:
    """A connection that is kept between requests, and made anew when it was closed.

    Parameters
    ----------
    port : int
        Of the server on this machine.
    """

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ASK_SECONDS)

    def __enter__(self) -> Asker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next request makes another."""
        self._connection.close()

    def ask(
        self, path: str, body: bytes | str | None = None, method: str | None = None, kind: str = "application/json"
    ) -> Answer:
        """Ask, and read the whole answer.

        Parameters
        ----------
        path : str
            With its query.
        body : bytes or str, optional
            What is sent.
        method : str, optional
            POST with a body, else GET.
        kind : str
            Of the body.
        """
        headers = {} if body is None else {"Content-Type": kind}
        if self._connection.sock is None:
            self._connection.connect()
            made: Any = self._connection.sock
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._connection.request(method or ("GET" if body is None else "POST"), path, body, headers)
            got = self._connection.getresponse()
            return Answer(got.status, got.headers, got.read())
        except BaseException:
            self._connection.close()
            raise

    def ask_json(self, path: str, stated: Mapping[str, Any]) -> Answer:
        """Send JSON."""
        return self.ask(path, json.dumps(stated))


class Serving:
    """A server over some databases on a free port of this machine, from when it is ready to the end of the block.

    Parameters
    ----------
    databases : sequence of Path
        To be served.
    folder : Path
        For jobs, and for what the server says.
    options : sequence of object
        More options of ``swsearch serve``.
    checkout : Path, optional
        Another revision that serves, with its extension compiled in place.
    """

    def __init__(
        self, databases: Sequence[Path], folder: Path, *options: object, checkout: Path | None = None
    ) -> None:
        self.port = free_port()
        self.said = folder / "server.log"
        jobs = folder / "jobs"
        line = [
            sys.executable,
            "-m",
            "swsearch",
            "serve",
            *(path.absolute() for path in databases),
            "--port",
            self.port,
            "--folder",
            jobs,
            *options,
        ]
        with self.said.open("wb") as log:
            self.process = subprocess.Popen(
                list(map(str, line)), stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=checkout
            )
        begun = time.monotonic()
        try:
            self._wait_until_ready()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        self.start_seconds = time.monotonic() - begun

    def __enter__(self) -> Serving:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        code = self.end()
        if error is None and code not in ENDED:
            sys.exit(f"the server ended with exit code {code}\n{self.last_words()}")

    def end(self) -> int:
        """End the server as systemd and containers do, and return its exit code; one that hangs is killed."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return -9

    def asker(self) -> Asker:
        """Return a new connection."""
        return Asker(self.port)

    def last_words(self) -> str:
        """Return the end of what the server said."""
        return self.said.read_text(encoding="utf-8", errors="replace")[-3000:]

    def look(self) -> Look:
        """Return what the server's process holds now."""
        process = Path(f"/proc/{self.process.pid}")
        held = dict(re.findall(r"^(VmRSS|Threads):\s+(\d+)", (process / "status").read_text("ascii"), re.MULTILINE))
        descriptors = sum(1 for _ in (process / "fd").iterdir())
        return Look(time.monotonic(), int(held["VmRSS"]) << 10, int(held["Threads"]), descriptors)

    def scored(self) -> Scored:
        """Return what the server's engine has scored so far."""
        found = self.metrics()
        return Scored(found[CELLS], found[SECONDS])

    def metrics(self) -> dict[str, float]:
        """Return the sum of each metric over its labels."""
        with self.asker() as asker:
            text = asker.ask("/metrics").body.decode("utf-8")
        found: dict[str, float] = {}
        for name, value in re.findall(r"^(\w+)(?:\{[^}\n]*\})? (\S+)", text, re.MULTILINE):
            found[name] = found.get(name, 0.0) + float(value)
        return found

    def _wait_until_ready(self) -> None:
        latest = time.monotonic() + START_SECONDS
        while True:
            if self.process.poll() is not None:
                sys.exit(f"the server ended with exit code {self.process.returncode}\n{self.last_words()}")
            try:
                with self.asker() as asker:
                    if asker.ask(f"{API}/ready").status == 200:
                        return
            except OSError:
                pass
            if time.monotonic() > latest:
                sys.exit(f"the server was not ready in {START_SECONDS:.0f} s\n{self.last_words()}")
            time.sleep(PACED_EVERY)


class Asked:
    """A search that is asked for with many queries, and the answer to each.

    Parameters
    ----------
    name : str
        What tables call it.
    database : Path
        As the server was given it.
    options : mapping of str to object
        As requests have them.
    """

    api = API

    def __init__(self, name: str, database: Path, options: Mapping[str, Any]) -> None:
        self.name, self.database, self.options = name, database, options
        self.path = f"{API}/search?format=json"
        self._right: dict[str, bytes] = {}
        self._told = 0

    def body(self, query: tuple[str, str]) -> bytes:
        """Return what a query is asked for with."""
        stated = {
            "database": self.database.stem, "queries": f">{query[0]}\n{query[1]}\n", "options": dict(self.options),
        }  # fmt: skip
        return json.dumps(stated).encode("ascii")

    def answer_by_command(self, queries: Records, folder: Path, *options: object) -> None:
        """Have the command line answer all queries, in the database's folder: a server gives it no other name.

        A report of several queries has a line for each, which differs from that of a query alone in its number.
        """
        out = folder / "answers.json"
        asked = [word for name, value in self.options.items() for word in (f"--{name.replace('_', '-')}", value)]
        line = [
            sys.executable, "-m", "swsearch", "search", write(folder / "queries.fasta", queries), self.database.name,
            *asked, *options, "--outfmt", "json", "-o", out, "--quiet",
        ]  # fmt: skip
        paths = os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH")]))
        subprocess.run(
            list(map(str, line)), check=True, cwd=self.database.parent, env={**os.environ, "PYTHONPATH": paths}
        )
        head, *reports, tail = out.read_bytes().splitlines(keepends=True)
        assert len(reports) == len(queries)
        for number, ((name, _), report) in enumerate(zip(queries, reports, strict=True), start=1):
            alone = report.replace(b'"Query_%d"' % number, b'"Query_1"', 1).rstrip(b",\n")
            self._right[name] = head + alone + b"\n" + tail

    def is_right(self, query: tuple[str, str], answer: Answer) -> bool:
        """Say whether an answer is what the command line writes, if that was asked; what is not is told."""
        if not self._right:
            return answer.status == 200
        right = self._right[query[0]]
        if answer.status == 200 and answer.body == right:
            return True
        self._told += 1
        if self._told <= MOST_TOLD:
            pairs = enumerate(zip(answer.body, right, strict=False))
            at = next((place for place, (one, other) in pairs if one != other), min(len(answer.body), len(right)))
            part = slice(max(0, at - 50), at + 150)
            say(f"{query[0]}: {answer.status}, from byte {at}: {answer.body[part]!r}, expected {right[part]!r}")
        return False


def told_to_wait(answer: Answer) -> float:
    """Return the seconds after which a server that is full wants to be asked again; 0 for an answer."""
    if answer.status not in (429, 503):
        return 0.0
    return max(0.1, float(answer.headers.get("Retry-After", 1)))


def free_port() -> int:
    """Return a port that nobody has."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])
