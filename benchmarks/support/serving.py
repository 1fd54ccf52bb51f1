"""`swsearch serve` as a process of its own, what it holds of the system, and connections to ask it by."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.support.common import ENVIRONMENT, Records, write
from benchmarks.support.timing import say

API = "/api/v1"

START_SECONDS, END_SECONDS, ASK_SECONDS = 120.0, 60.0, 120.0
"""In which a server must be ready (kernels are compiled, the database is loaded), end after SIGTERM, and answer."""

ENDED = (0, 128 + signal.SIGTERM)
"""Exit codes of a server that ended in order."""


class Answer(NamedTuple):
    """Response of a server."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        """Return what the body states."""
        return json.loads(self.body)


class Look(NamedTuple):
    """When a process was looked at (`time.monotonic`), its bytes in memory, threads and descriptors."""

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

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next request makes another."""
        self._connection.close()

    def ask(
        self, path: str, body: bytes | str | None = None, method: str | None = None, kind: str = "application/json"
    ) -> Answer:
        """Ask, and read the whole answer; with a body by POST, unless another method is given."""
        headers = {} if body is None else {"Content-Type": kind}
        try:
            self._connection.request(method or ("GET" if body is None else "POST"), path, body, headers)
            got = self._connection.getresponse()
            return Answer(got.status, got.headers, got.read())
        except BaseException:
            self._connection.close()
            raise

    def ask_json(self, path: str, stated: Any) -> Answer:
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
    cwd : Path, optional
        Where it starts; a checkout, with its extension compiled in place, serves itself.
    """

    def __init__(self, databases: Sequence[Path], folder: Path, *options: object, cwd: Path | None = None) -> None:
        self.port = free_port()
        self.said = folder / "server.log"
        words = ["serve", *(path.absolute() for path in databases), "--port", self.port, "--folder", folder / "jobs"]
        line = [sys.executable, "-m", "swsearch", *map(str, [*words, *options])]
        started = time.monotonic()
        with self.said.open("wb") as log:
            self.process = subprocess.Popen(
                line, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=cwd, env=ENVIRONMENT
            )
        try:
            self._wait_until_ready()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        self.start_seconds = time.monotonic() - started

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
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
            time.sleep(0.05)


class Asked:
    """A search that is asked for with many queries, and the answer of the command line to each.

    Parameters
    ----------
    name : str
        What tables call it.
    database : Path
        As the server was given it.
    options : mapping of str to object
        As requests have them.
    """

    path = f"{API}/search?format=json"

    def __init__(self, name: str, database: Path, options: Mapping[str, Any]) -> None:
        self.name, self.database, self.options = name, database, options
        self.wrong = 0
        self._right: dict[str, bytes] = {}

    def stated(self, *queries: tuple[str, str]) -> dict[str, Any]:
        """Return what queries are asked for with."""
        text = "".join(f">{name}\n{letters}\n" for name, letters in queries)
        return {"database": self.database.stem, "queries": text, "options": dict(self.options)}

    def answer_by_command(self, queries: Records, folder: Path, *options: object) -> None:
        """Have the command line answer all queries, in the database's folder: a server gives it no other name.

        A report of several queries has a line for each, which differs from that of a query alone in its number.
        """
        out = folder / "answers.json"
        asked = [word for name, value in self.options.items() for word in (f"--{name.replace('_', '-')}", value)]
        words = [write(folder / "queries.fasta", queries), self.database.name, *asked, *options, "--outfmt", "json"]
        line = [sys.executable, "-m", "swsearch", "search", *map(str, words), "-o", str(out), "--quiet"]
        subprocess.run(line, check=True, cwd=self.database.absolute().parent, env=ENVIRONMENT)
        head, *reports, tail = out.read_bytes().splitlines(keepends=True)
        for number, ((name, _), report) in enumerate(zip(queries, reports, strict=True), start=1):
            alone = report.replace(b'"Query_%d"' % number, b'"Query_1"', 1).rstrip(b",\n")
            self._right[name] = head + alone + b"\n" + tail

    def is_right(self, query: tuple[str, str], answer: Answer) -> bool:
        """Say whether an answer is what the command line writes; what is not is counted, and shown."""
        if answer.status == 200 and answer.body == self._right[query[0]]:
            return True
        self.wrong += 1
        say(f"{query[0]}: {answer.status}, {answer.body[:200]!r}, expected {self._right[query[0]][:200]!r}")
        return False


def patiently(work: Callable[[], Answer]) -> tuple[Answer, int]:
    """Ask, and again whenever a server that is full says so; return the answer, and how often it said so."""
    waits = 0
    while (answer := work()).status in (429, 503):
        time.sleep(max(0.1, float(answer.headers.get("Retry-After", 1))))
        waits += 1
    return answer, waits


def free_port() -> int:
    """Return a port that nobody has."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])
