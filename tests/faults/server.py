"""A server that is sent hostile requests, broken connections by the hundred, and that is killed at any moment."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import re
import resource
import select
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from benchmarks.support.serving import API, Asker, Look, Serving
from faults.data import fasta, protein, succeed
from faults.hostile_requests import ENDPOINTS, MARK, HostileRequest, Known, request_of
from faults.judging import MIB, Kind, Verdict, Wrong, succeeded
from faults.running import HERE, command
from swsearch.server.errors import MSA_PATHS, STATUSES

EACH = 2
"""Requests of each endpoint in a case."""
WAVE, HELD_SECONDS = 600, 1.0
"""Connections at a time, and how long they are held while they send some bytes more."""
N_SUBJECTS, MOST_QUERIES, KILLS, MOST_ALIVE = 1000, 20, 2, 1.5
"""Of a case that kills: subjects, queries of a job, kills, and seconds that a server lives at most."""
ANSWER_SECONDS, QUIET_SECONDS, DONE_SECONDS = 60.0, 60.0, 600.0
"""In which a request must be answered, connections and jobs must have ended, and all jobs must be done."""
LOOK_SECONDS = {"short": 0.02, "wrong": 0.3}
"""That is waited for an answer to what is no whole request: the server may wait for its end."""
MEANT = (503, 507)
"""Statuses from 500 on that say what is wrong, and not that the server failed."""
MORE_MEMORY, MORE_DESCRIPTORS = 128 * MIB, 8
"""That the server may hold more at the end."""
LEAKS = (b"Traceback (most recent", b"site-packages", b'.py", line', b"sqlite3.", b"root:x:0:0")
"""Texts that no response may contain, besides the names of the server's folders."""
DIED = "died 3 times"
"""In the reason of a job that ran when the server was killed for the third time."""
SUBJECTS = {
    "alpha": "MKVLAAGIVGWWHHKDEFRTYPCNQSMKVLAAGIVGWWHHKDEFRTYPCNQS",
    "beta": "MKVLAAGIVGWWHHKDEFRTAPCNQSMKVLSAGIVGWYHHKDEFRTYPCNQS",
    "gamma": "GSTPLDDEWRNKYFVQHACMILGSTPLDDEWRNKYFVQHACMILGSTPLDDE",
    "delta": "MKILAAGLVGWHHKDEFRSYPCNQAGSTPLDDEWRNKYFVQHACMIL",
}
HEAD = b"POST /api/v1/jobs?database=tiny HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
CONNECTIONS: dict[str, tuple[bytes, bytes]] = {
    "no bytes": (b"", b""),
    "a head line by line": (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X-Slow: 1\r\n"),
    "half a body": (HEAD + b"Content-Length: 1000\r\n\r\n>a\n", b"M"),
    "half a chunk": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3e8\r\n>a\n", b"M"),
    "reset amid a body": (HEAD + b"Content-Length: 1000\r\n\r\n>a\nMKV", b""),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)), b""),
    "garbage": (bytes(random.Random(1).randbytes(600)), b"\r\n\r\n"),
    "answers that nobody reads": (b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20, b""),
}
"""Bytes that broken connections send at once, and bytes that they send now and then."""


class HostileAnswer(NamedTuple):
    """Response to a hostile request."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        """Return a header; empty if there is none."""
        return next((value for key, value in self.headers if key.lower() == name), "")


def problem_with(request: HostileRequest, answer: HostileAnswer, folders: Iterable[bytes]) -> str:
    """Say what is wrong with an answer; empty if nothing is."""
    status, body = answer.status, answer.body
    kind = answer.header("content-type").partition(";")[0]
    if status >= 500 and status not in MEANT:
        return f"status {status}"
    if leak := next((each for each in (*LEAKS, *folders) if each in body), b""):
        return f"tells {leak!r}"
    if any(MARK in name.lower() for name, _ in answer.headers):
        return "has a header of the request's"
    place = answer.header("location")
    if place and (not place.startswith("/") or place.startswith(("//", "/\\"))):
        return f"leads to {place!r}"
    if kind == "text/html":
        if f"<{MARK}".encode() in body:
            return "has markup of the request's"
        if not answer.header("content-security-policy"):
            return "is a page without a policy"
    if status < 400 and answer.header("x-content-type-options") != "nosniff":
        return "may be taken for another type"
    return _problem_of_refusal(request, answer, kind) if status >= 400 and body else ""


def _problem_of_refusal(request: HostileRequest, answer: HostileAnswer, kind: str) -> str:
    if kind == "text/html":
        is_page = b"<html" in answer.body[:200] and b"</html>" in answer.body[-20:]
        if b"Status=READY" in answer.body and request.endpoint[1].endswith("Blast.cgi"):
            return "is a refusal that clients take for a report"
        return "" if is_page else "is half a page"
    if kind == "text/plain" and any(path in request.target for path in MSA_PATHS):
        return "" if answer.body.endswith(b"\n") and answer.body.count(b"\n") == 1 else "is no line of text"
    if kind == "application/json" and answer.status == 429 and request.endpoint[1] == "/ticket/msa":
        return "" if json.loads(answer.body).get("status") == "RATELIMIT" else "is no status"
    if kind != "application/json":
        return f"is a refusal of type {kind!r}"
    try:
        error = json.loads(answer.body)["error"]
        is_ours = STATUSES[error["code"]] in (answer.status, 400) and error["message"]
    except (ValueError, KeyError, TypeError):
        is_ours = False
    return "" if is_ours else f"is a refusal that is none of ours: {answer.body[:200]!r}"


class Sender:
    """A connection that is made anew when it was closed.

    Parameters
    ----------
    port : int
        Of the server.
    folders : sequence of bytes
        Names that no answer may tell.
    """

    def __init__(self, port: int, folders: Sequence[bytes]) -> None:
        self._port, self._folders = port, folders
        self._socket: socket.socket | None = None
        self.recent: list[str] = []
        """Identifiers of jobs that hostile requests submitted."""

    def close(self, *, is_rude: bool = False) -> None:
        """Close the connection, or break it."""
        if self._socket is not None:
            if is_rude:
                _break(self._socket)
            self._socket.close()
            self._socket = None

    def send(self, request: HostileRequest) -> HostileAnswer | None:
        """Send a request; return the answer, or None to what is no whole request.

        Raises
        ------
        Wrong
            If the answer may not be, or does not come.
        """
        try:
            answer = self._asked(request)
            problem = problem_with(request, answer, self._folders) if answer else ""
        except TimeoutError:
            problem = "no answer"
        except http.client.HTTPException as error:
            problem = f"the answer is no HTTP: {error!r}"
        if problem:
            sent = request.raw if len(request.raw) <= 600 else request.raw[:600] + b"..."
            raise Wrong(f"{' '.join(request.endpoint)}: {problem}; sent {sent!r}")
        if answer and answer.status in (202, 303):
            self.recent += re.findall(r"\b[A-Z0-9]{20}\b", answer.header("location"))
        return answer

    def _asked(self, request: HostileRequest) -> HostileAnswer | None:
        is_fresh = self._socket is None
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), ANSWER_SECONDS)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # the server may have closed it, or refuse before all is sent: what it says then is read
        with contextlib.suppress(ConnectionError):
            self._socket.sendall(request.raw)
        if request.framing != "whole":
            try:
                ready, _, _ = select.select([self._socket], [], [], LOOK_SECONDS[request.framing])
                return self._read(request) if ready else None
            except (http.client.HTTPException, OSError):
                return None
            finally:
                self.close(is_rude=len(request.raw) % 2 == 0)
        try:
            return self._read(request)
        except (ConnectionError, http.client.RemoteDisconnected):
            self.close()
            return None if is_fresh else self._asked(request)

    def _read(self, request: HostileRequest) -> HostileAnswer:
        assert self._socket is not None
        with http.client.HTTPResponse(self._socket, method=request.method) as response:
            response.begin()
            answer = HostileAnswer(response.status, response.getheaders(), response.read())
            if response.will_close:
                self.close()
        return answer


def _break(made: socket.socket) -> None:
    with contextlib.suppress(OSError):
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def wave(port: int, kinds: Iterable[str]) -> None:
    """Open connections, hold them, and let some go in each way."""
    held: list[tuple[str, socket.socket]] = []
    try:
        for kind in kinds:
            with contextlib.suppress(OSError):
                made = socket.create_connection(("127.0.0.1", port), 10)
                held.append((kind, made))
                made.setblocking(False)
                made.send(CONNECTIONS[kind][0])
        end = time.monotonic() + HELD_SECONDS
        while time.monotonic() < end:
            for kind, made in held:
                with contextlib.suppress(OSError):
                    made.send(CONNECTIONS[kind][1])
            time.sleep(HELD_SECONDS / 5)
    finally:
        for number, (kind, made) in enumerate(held):
            if "reset" in kind or number % 3 == 0:
                _break(made)
            made.close()


class Jobs:
    """Jobs that a server has said it has: what each was asked for, and what was read of it before a kill."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.asked: dict[str, str] = {}
        self.read: dict[str, bytes] = {}

    def submit(self, port: int, ended: threading.Event) -> None:
        """Submit jobs, and read the results of some that are done, until the server is gone."""
        with Asker(port) as asker:
            while not ended.is_set():
                count = self.draw.choice([1, 1, 5, MOST_QUERIES])
                queries = fasta([(f"q{n}", protein(self.draw, self.draw.randint(50, 400))) for n in range(count)])
                stated = {"database": "subjects", "queries": queries, "outputs": ["json"]}
                try:
                    answer = asker.ask_json(f"{API}/jobs", stated)
                    if answer.status == 202:
                        self.asked[answer.json()["id"]] = queries
                    for identifier in self.draw.sample([*self.asked], min(3, len(self.asked))):
                        answer = asker.ask(f"{API}/jobs/{identifier}/results?format=json")
                        if answer.status == 200:
                            self.read.setdefault(identifier, answer.body)
                except (OSError, http.client.HTTPException):
                    return
                ended.wait(self.draw.random() * 0.3)

    def judge(self, serving: Serving) -> None:
        """Wait for all jobs, and hold their results against those of searches that were left alone."""
        latest = time.monotonic() + DONE_SECONDS
        with serving.asker() as asker:
            for identifier, queries in self.asked.items():
                state = "queued"
                while state in ("queued", "running") and time.monotonic() < latest:
                    answer = asker.ask(f"{API}/jobs/{identifier}?wait=10")
                    if answer.status != 200:
                        raise Wrong(f"job {identifier} is lost: {answer.status} {answer.body!r}")
                    state, reason = answer.json()["state"], json.dumps(answer.json()["problem"])
                if state == "failed" and DIED in reason and identifier not in self.read:
                    continue
                if state != "done":
                    raise Wrong(f"job {identifier} is {state}: {reason}")
                found = asker.ask(f"{API}/jobs/{identifier}/results?format=json").body
                others = {
                    "than before a kill": self.read.get(identifier, found),
                    "in its output": asker.ask(f"{API}/jobs/{identifier}/outputs/0").body,
                    "than a search that was left alone": asker.ask_json(
                        f"{API}/search?format=json", {"database": "subjects", "queries": queries}
                    ).body,
                }
                for what, other in others.items():
                    if other != found:
                        raise Wrong(f"job {identifier} has other bytes {what}")


def check_table(folder: Path) -> set[str]:
    """Return the jobs of a server's table; raise unless it is whole."""
    if not (folder / "jobs.sqlite").exists():
        return set()
    with contextlib.closing(sqlite3.connect(folder / "jobs.sqlite", timeout=30)) as table:
        found = table.execute("PRAGMA integrity_check").fetchone()[0]
        if found != "ok":
            raise Wrong(f"the table: {found}")
        return {row[0] for row in table.execute("SELECT identifier FROM jobs")}


class Server(Kind):
    """Answers are in our words, the server is as it was, and no job that it acknowledged is lost or changed."""

    name = "server"
    what = "servers: hostile requests of every endpoint, broken connections, SIGKILL while jobs are submitted"
    counts = (1, 6, 30)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        generator = random.Random(3)
        many = [(f"s{n}", protein(generator, generator.randint(50, 400))) for n in range(N_SUBJECTS)]
        for name, entries in {"tiny": [*SUBJECTS.items()], "two": [*SUBJECTS.items()][:2], "subjects": many}.items():
            (folder / f"{name}.fasta").write_text(fasta(entries))
            succeed(command("db", "build", f"{name}.fasta", "-o", f"{name}.h5", "--quiet", cwd=folder))

    def judge(self, seed: int, folder: Path) -> Verdict:
        """Attack a server of its own in one of the ways."""
        (self._requests, self._connections, self._kills)[seed % 3](seed, folder)
        return succeeded()

    def serve(self, folder: Path, *options: object) -> Serving:
        """Start a server over the databases of all cases."""
        databases = [self.folder / f"{name}.h5" for name in ("tiny", "two", "subjects")]
        return Serving(databases, folder, "--engine", "cpu", "--threads", 1, *options, cwd=folder)

    def _requests(self, seed: int, folder: Path) -> None:
        before = self._files()
        with self.serve(folder, "--workers", 2) as serving:
            known = _known_to(serving)
            sender = Sender(serving.port, [str(folder).encode(), str(self.folder).encode(), str(HERE).encode()])
            look = serving.look()
            for number in range(seed * EACH, (seed + 1) * EACH):
                for endpoint in ENDPOINTS:
                    names = [*known.identifiers, *sender.recent[-5:]]
                    sender.send(request_of(endpoint, number, Known(names, known.port, known.static)))
            sender.close()
            if find_spec("schemathesis"):
                _ask_by_description(serving, folder, seed)
            _check_rest(serving, look)
        if self._files() != before:
            raise Wrong("files outside the server's folder changed")

    def _files(self) -> dict[str, tuple[int, int]]:
        return {each.name: (each.stat().st_size, each.stat().st_mtime_ns) for each in self.folder.iterdir()}

    def _connections(self, seed: int, folder: Path) -> None:
        draw, failures, ended = self.generator(seed), list[str](), threading.Event()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and soft < WAVE + 200:
            resource.setrlimit(resource.RLIMIT_NOFILE, (WAVE + 200 if hard < 0 else min(hard, WAVE + 200), hard))

        def search() -> None:
            stated = {"database": "tiny", "queries": ">q\nMKVLAAGIVGWWHHKDEFRTYPCNQS\n"}
            while not ended.is_set():
                try:
                    with serving.asker() as asker:
                        status = asker.ask_json(f"{API}/search?format=6", stated).status
                    failures.extend([str(status)] if status != 200 else [])
                except OSError as error:
                    failures.append(repr(error))

        with self.serve(folder) as serving:
            look = serving.look()
            client = threading.Thread(target=search)
            client.start()
            wave(serving.port, draw.choices([*CONNECTIONS], k=WAVE))
            ended.set()
            client.join()
            if failures:
                raise Wrong(f"a good client failed {len(failures)} times: {failures[:3]}")
            _check_rest(serving, look)

    def _kills(self, seed: int, folder: Path) -> None:
        draw = self.generator(seed)
        jobs, options = Jobs(draw), ("--max-client-jobs", 10**6, "--max-queued", 10**6)
        for _ in range(KILLS):
            serving, ended = self.serve(folder, *options), threading.Event()
            submitter = threading.Thread(target=jobs.submit, args=(serving.port, ended))
            submitter.start()
            time.sleep(draw.random() * MOST_ALIVE)
            serving.process.kill()
            serving.process.wait()
            ended.set()
            submitter.join()
            check_table(folder / "jobs")
        with self.serve(folder, *options) as serving:
            folders = {each.name for each in (folder / "jobs" / "jobs").iterdir()}
            if stray := folders - check_table(folder / "jobs"):
                raise Wrong(f"folders without a job: {sorted(stray)[:5]}")
            jobs.judge(serving)
        check_table(folder / "jobs")


def _known_to(serving: Serving) -> Known:
    """Have jobs done, of a client that no hostile request can pass for, and return what may be asked for."""
    found = []
    with serving.asker() as asker:
        for names in (("alpha",), ("alpha", "gamma")):
            queries = fasta([(name, SUBJECTS[name]) for name in names])
            stated = {"database": "tiny", "queries": queries, "title": "known", "outputs": ["json", "profile json"]}
            told = asker.ask_json(f"{API}/jobs?wait=60", stated).json()
            assert told["state"] == "done", told
            found.append(told["id"])
        static = re.search(r'"(/static/[^"]+)"', asker.ask("/").body.decode())
    return Known(found, serving.port, static[1] if static else "/static/x/page.css")


def _ask_by_description(serving: Serving, folder: Path, seed: int) -> None:
    """Let Schemathesis ask what it makes of the API's description."""
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    line = [
        str(Path(sys.executable).with_name("schemathesis")), "run",
        f"http://127.0.0.1:{serving.port}{API}/openapi.json", "--max-examples", "5", "--checks", checks,
        "--seed", str(seed), "--no-color", "--generation-database", "none",
    ]  # fmt: skip
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise Wrong(f"schemathesis: exit code {done.returncode}: {done.stdout[-3000:]}")


def _check_rest(serving: Serving, before: Look) -> None:
    """Raise unless a server that nobody asks is ready, has given back what it took, and said nothing of failures."""
    latest = time.monotonic() + QUIET_SECONDS
    is_busy = True
    while time.monotonic() < latest and is_busy:
        time.sleep(0.2)
        if serving.process.poll() is not None:
            raise Wrong(f"the server ended: {serving.last_words()}")
        with serving.asker() as asker:
            text = asker.ask("/metrics").body.decode()
        look = serving.look()
        is_busy = re.search(r'^swsearch_jobs\{state="(queued|running)"\} [1-9]', text, re.MULTILINE) is not None
        is_busy = is_busy or look.descriptors > before.descriptors + MORE_DESCRIPTORS
    if is_busy:
        raise Wrong(f"not at rest: {look.descriptors} descriptors, {before.descriptors} before")
    if look.resident > before.resident + MORE_MEMORY:
        raise Wrong(f"{look.resident // MIB} MiB, {before.resident // MIB} before")
    with serving.asker() as asker:
        for path in ("ready", "health"):
            if (status := asker.ask(f"{API}/{path}").status) != 200:
                raise Wrong(f"{path}: status {status} at the end")
    said = serving.said.read_text(errors="replace")
    if "Traceback" in said or "error " in said:
        raise Wrong(f"the log: {said[-3000:]}")
