"""The part ``soak`` of `server.py`: mixed load for a long time, and whether what a server holds stays the same."""

from __future__ import annotations

import random
import re
import socket
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from benchmarks.support.common import Records, table
from benchmarks.support.serving import API, Answer, Asked, Look, Serving, patiently
from benchmarks.support.timing import say

CLIENTS, LOOK_EVERY = 6, 10.0
"""That ask at a time, and seconds between two looks at the server."""
WARM_SHARE = 0.1
"""Of the time, after which the server has seen everything and what it holds is compared with the end."""
QUIET_SECONDS = 90.0
"""In which a server that nobody asks must have given back connections and threads."""
GROWTH, GROWTH_BYTES = 0.03, 16 << 20
"""By which the memory of the last quarter may exceed that of the one before, as a share and in bytes."""
LEFT_OVER = 2
"""Threads and descriptors more than after warming up that are no leak: a pool may be larger for a while."""
FORMATS = (
    "json", "tabular", "xml", "html", "csv", "jsonl", "sam", "paf", "pairwise", "commented", "a3m&queries=1-1",
    "stockholm&queries=1-1",
)  # fmt: skip
"""That results of jobs are fetched in; the last two hold those of one query."""
LONG = 40
"""Queries of a job that is cancelled or left."""
STATE = (*(f"{API}/{each}" for each in ("health", "ready", "databases", "formats", "jobs")), "/metrics")
NOWHERE = (f"{API}/jobs/{'A' * 20}", f"{API}/jobs/..%2f..", "/nowhere", f"/{quote('§' * 50)}", "/jobs/x")
BROKEN = (
    b"\0" * 100, b"GET / HTTP/1.1\r\nHost: a",
    b"POST /api/v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{",
    b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 100_000, b"",
)  # fmt: skip
"""Bytes that are not HTTP, or only part of a request."""


class Unexpected(Exception):  # noqa: N818  # it is told, and counted
    """An answer that should not have come."""


def expect(answer: Answer, *statuses: int) -> Answer:
    """Check an answer's status."""
    if answer.status not in statuses:
        raise Unexpected(f"{answer.status}, expected {' or '.join(map(str, statuses))}: {answer.body[:200]!r}")
    return answer


class Visitor:
    """One client, which does something else each time.

    Parameters
    ----------
    server : Serving
        Whom to ask.
    asked : Asked
        Searches whose answers are known.
    queries : list of (str, str)
        Of them.
    seed : int
        What is done follows from it.
    """

    def __init__(self, server: Serving, asked: Asked, queries: Records, seed: int) -> None:
        self.server, self.asked, self.queries = server, asked, queries
        self.name, self.random, self.asker = asked.database.stem, random.Random(seed), server.asker()
        self.counts: Counter[tuple[str, str]] = Counter()
        self.said: list[str] = []
        self.deeds: dict[str, tuple[int, Callable[[], None]]] = {
            "search": (6, self.search),
            "job": (4, self.job),
            "job, cancelled": (2, self.cancelled),
            "search, left": (2, self.left),
            "download, left": (1, self.download_left),
            "Blast.cgi": (3, self.blast),
            "pages": (4, self.pages),
            "wrong": (4, self.wrong),
            "broken": (2, self.broken),
            "state": (2, lambda: self.see(*STATE)),
        }

    def run(self, until: float) -> None:
        """Ask until some time."""
        names, weights = list(self.deeds), [weight for weight, _ in self.deeds.values()]
        while time.monotonic() < until:
            (name,) = self.random.choices(names, weights)
            try:
                self.deeds[name][1]()
                self.counts[name, "done"] += 1
            except (Unexpected, OSError, ValueError, KeyError) as error:
                self.counts[name, "not as expected"] += 1
                self.said.append(f"{name}: {error!r}")
                say(self.said[-1])
                self.asker.close()
            if self.random.random() < 0.05:  # new connections come and go
                self.asker.close()
        self.asker.close()

    def stated(self, number: int) -> dict[str, str]:
        """Choose queries, and state a search with them."""
        drawn = self.random.choices(self.queries, k=number)
        return {"database": self.name, "queries": "".join(f">{name}\n{letters}\n" for name, letters in drawn)}

    def patiently(self, path: str, body: Any = None) -> Answer:
        """Ask, and again where the server says so."""
        ask = partial(self.asker.ask, path, body) if body is None or isinstance(body, bytes) else None
        answer, waits = patiently(ask or partial(self.asker.ask_json, path, body))
        self.counts["told to wait", "done"] += waits
        return answer

    def see(self, *paths: str) -> Answer:
        """Ask for what is there."""
        for path in paths:
            answer = expect(self.asker.ask(path), 200)
        return answer

    def search(self) -> None:
        """Search, and compare the answer with the command line's."""
        query = self.random.choice(self.queries)
        if not self.asked.is_right(query, self.patiently(self.asked.path, self.asked.body(query))):
            raise Unexpected("an answer that differs")

    def submitted(self, number: int) -> str:
        """Submit a job, and return its path."""
        answer = self.patiently(f"{API}/jobs", {**self.stated(number), "title": "soak"})
        return str(expect(answer, 202).headers["Location"])

    def finished(self, path: str, *states: str) -> None:
        """Wait for a job's end."""
        while (stated := self.see(f"{path}?wait=5").json())["state"] not in ("done", "failed", "cancelled"):
            time.sleep(0.2)
        if stated["state"] not in states:
            raise Unexpected(f"a job ended as {stated}")

    def removed(self, path: str) -> None:
        """Remove a job."""
        expect(self.asker.ask(path, method="DELETE"), 200, 204)
        expect(self.asker.ask(path), 404, 410)

    def job(self) -> None:
        """Submit a job, fetch its results in two formats, and remove it."""
        path = self.submitted(self.random.randint(1, 4))
        self.finished(path, "done")
        self.see(*(f"{path}/results?format={outfmt}" for outfmt in self.random.sample(FORMATS, 2)), f"{path}/queries")
        self.removed(path)

    def cancelled(self) -> None:
        """Submit a long job, and cancel it at some time."""
        path = self.submitted(LONG)
        time.sleep(self.random.random() * 0.5)
        expect(self.asker.ask(f"{path}/cancel", b""), 200, 202, 409)
        self.finished(path, "cancelled", "done")
        self.removed(path)

    def left(self) -> None:
        """Ask for a search, and leave before the answer."""
        body = self.asked.body(("q", self.stated(LONG)["queries"].partition("\n")[2]))
        head = f"POST {self.asked.path} HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.leave(head.encode("ascii") + body, 0)

    def download_left(self) -> None:
        """Leave in the middle of results."""
        path = self.submitted(4)
        self.finished(path, "done", "failed")
        self.leave(f"GET {path}/results?format=html HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode("ascii"), 1000)
        self.removed(path)

    def leave(self, sent: bytes, read: int) -> None:
        """Send something on a connection of its own, read so many bytes, and close it."""
        with socket.create_connection(("127.0.0.1", self.server.port), 30) as connection:
            connection.sendall(sent)
            if read:
                connection.recv(read)
            else:
                time.sleep(self.random.random() * 0.5)

    def blast(self) -> None:
        """Search by BLAST's URL API, as its clients do."""
        put = {"CMD": "Put", "PROGRAM": "blastp", "DATABASE": self.name, "QUERY": self.stated(1)["queries"]}
        answer = expect(self.patiently(f"/Blast.cgi?{urlencode(put)}"), 200)
        (rid,) = re.findall(r"RID = (\w+)", answer.body.decode("utf-8"))
        status = "WAITING"
        while status == "WAITING":
            time.sleep(0.2)
            info = self.see(f"/Blast.cgi?CMD=Get&FORMAT_OBJECT=SearchInfo&RID={rid}")
            (status,) = re.findall(r"Status=(\w+)", info.body.decode("utf-8"))
        if status != "READY":
            raise Unexpected(f"{rid}: {status}")
        outfmt = self.random.choice(("XML", "Text", "JSON2_S", "HTML"))
        self.see(f"/Blast.cgi?CMD=Get&RID={rid}&FORMAT_TYPE={outfmt}", f"/Blast.cgi?CMD=Delete&RID={rid}")

    def pages(self) -> None:
        """Look at pages, and what they are made of."""
        start = self.see("/").body.decode("utf-8")
        parts = {*re.findall(r'(?:href|src)="(/static/[^"]+)"', start)}
        self.see(*parts, "/jobs", "/about", "/api", f"{API}/openapi.json")

    def wrong(self) -> None:
        """Ask for what cannot be."""
        short = {"database": self.name, "queries": ">a\nMKV"}
        stated: list[Any] = [
            short | {"database": "nowhere"}, {"database": self.name}, short | {"queries": ">a\nM1K"}, [], "text",
            short | {"options": {"max_hits": -1}}, {"database": 1}, short | {"options": {"matrix": "/etc/passwd"}},
        ]  # fmt: skip
        for path in (f"{API}/search", f"{API}/jobs"):
            expect(self.asker.ask_json(path, self.random.choice(stated)), 400, 404, 422)
        for path in NOWHERE:
            expect(self.asker.ask(path), 404, 410)
        expect(self.asker.ask(f"{API}/search", b"{"), 400, 422)
        expect(self.asker.ask(f"{API}/databases", b"{}", method="PATCH"), 405)
        expect(self.asker.ask("/Blast.cgi?CMD=Get&RID=nothing"), 200, 400, 404)

    def broken(self) -> None:
        """Send what is no HTTP; the server may hang up, and need not answer."""
        with socket.create_connection(("127.0.0.1", self.server.port), 30) as connection:
            connection.settimeout(self.random.random() * 0.5)
            try:
                connection.sendall(self.random.choice(BROKEN))
                connection.recv(1000)
            except OSError:
                pass


def load(server: Serving, visitors: Sequence[Visitor], seconds: float) -> list[Look]:
    """Let all ask for some time; return what the server held meanwhile."""
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=each.run, args=(until,)) for each in visitors]
    for thread in threads:
        thread.start()
    looks = [server.look()]
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(LOOK_EVERY, left))
        looks.append(server.look())
        done = sum(sum(each.counts.values()) for each in visitors)
        say(f"{left / 60:.1f} minutes left, {done:,} deeds, {looks[-1]}")
    for thread in threads:
        thread.join()
    return looks


def quiet(server: Serving, before: Look | None) -> Look:
    """Wait until a server that nobody asks has given back what it will; return what it holds then."""
    until = time.monotonic() + QUIET_SECONDS
    look = server.look()
    while time.monotonic() < until and (
        before is None or look.threads > before.threads or look.descriptors > before.descriptors
    ):
        time.sleep(1.0)
        look = server.look()
    return look


def soaked(
    database: Path, queries: Records, seconds: float, folder: Path, options: Sequence[object]
) -> tuple[list[str], bool]:
    """Keep a server busy; return lines, and whether all was as expected and nothing grew."""
    asked = Asked("defaults", database, {"max_hits": 100})
    asked.answer_by_command(queries, folder)
    warm = seconds * WARM_SHARE
    with Serving([database], folder, *options) as server:
        visitors = [Visitor(server, asked, queries, seed) for seed in range(CLIENTS)]
        load(server, visitors, warm)
        before = quiet(server, None)
        looks = load(server, visitors, seconds - warm)
        after = quiet(server, before)
    counts: Counter[tuple[str, str]] = sum((visitor.counts for visitor in visitors), Counter())
    said = [text for visitor in visitors for text in visitor.said]
    names = sorted({name for name, _ in counts})
    done = [[name, f"{counts[name, 'done']:,}", f"{counts[name, 'not as expected']:,}"] for name in names]
    grown, verdict = held(looks, before, after)
    lines = [
        f"{database.name}, {' '.join(map(str, options))}: {CLIENTS} clients for {seconds / 60:.0f} minutes, of which "
        f"the first {warm / 60:.0f} warm it up; looked at every {LOOK_EVERY:.0f} s",
        "", *table(["what clients did", "times", "not as expected"], done), "", *verdict,
        f"Grown: {', '.join(grown) or 'nothing'}.", f"Not as expected: {len(said)}.",
        *(text[:300] for text in said[:10]),
    ]  # fmt: skip
    return lines, not said and not grown


def held(looks: Sequence[Look], before: Look, after: Look) -> tuple[list[str], list[str]]:
    """Name what has grown, and say what the server held in each tenth of the time."""
    cut = [looks[len(looks) * k // 10 : len(looks) * (k + 1) // 10] or looks[-1:] for k in range(10)]
    rows = [
        ["MiB, median", *(f"{statistics.median(look.resident for look in part) / (1 << 20):.0f}" for part in cut)],
        *([f"{name}, most", *(max(getattr(look, name) for look in part) for part in cut)]
          for name in ("threads", "descriptors")),
    ]  # fmt: skip
    half = looks[len(looks) // 2 :]
    third, last = (
        statistics.median(look.resident for look in part or looks)
        for part in (half[: len(half) // 2], half[len(half) // 2 :])
    )
    slope = 0.0  # bytes a second over the second half, by least squares
    if len(half) > 1:
        slope = statistics.linear_regression([look.at for look in half], [look.resident for look in half]).slope
    grown = ["memory"] if last > third * (1 + GROWTH) and last > third + GROWTH_BYTES else []
    lines = [
        *table(["tenth of the time", *map(str, range(1, 11))], rows), "",
        f"Memory in the last quarter: {last / third:.3f} times that of the one before; over the second half "
        f"it grew by {slope * 3600 / (1 << 20):.1f} MiB an hour.",
    ]  # fmt: skip
    for name in ("threads", "descriptors"):
        first, end = (getattr(look, name) for look in (before, after))
        lines.append(f"{name}, with nobody asking: {first} after warming up, {end} at the end.")
        grown += [name] if end > first + LEFT_OVER else []
    return grown, lines
