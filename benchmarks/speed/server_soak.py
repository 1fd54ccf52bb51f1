"""The part ``soak`` of `server.py`: mixed load for a long time, and whether what a server holds stays the same."""

from __future__ import annotations

import json
import random
import re
import socket
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from benchmarks.support.common import Records, table
from benchmarks.support.serving import API, Answer, Asked, Asker, Look, Serving, told_to_wait
from benchmarks.support.timing import say

CLIENTS = 6
"""That ask at a time."""

LOOK_EVERY = 10.0
"""Seconds between two looks at the server."""

WARM_SHARE = 0.1
"""Of the time, after which the server has seen everything and what it holds is compared with the end."""

QUIET_SECONDS = 90.0
"""In which a server that nobody asks must have given back connections and threads."""

GROWTH, GROWTH_BYTES = 0.03, 16 << 20
"""By which the memory of the last quarter may exceed that of the one before, as a share and in bytes."""

LEFT_OVER = 2
"""Threads and descriptors more than after warming up that are no leak: a pool may be larger for a while."""

FORMATS = ("json", "tabular", "xml", "html", "csv", "jsonl", "sam", "paf", "pairwise", "commented")
ONE_QUERY_FORMATS = ("a3m&queries=1-1", "stockholm&queries=1-1")
"""That results of jobs are fetched in; the latter hold those of one query."""

LONG = 40
"""Queries of a job that is cancelled or left."""


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
        self.random = random.Random(seed)
        self.asker: Asker = server.asker()
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
            "state": (2, self.state),
        }

    def run(self, until: Callable[[], bool]) -> None:
        """Ask until told to end."""
        names, weights = list(self.deeds), [weight for weight, _ in self.deeds.values()]
        while not until():
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

    def query(self) -> tuple[str, str]:
        """Choose a query."""
        return self.random.choice(self.queries)

    def fasta(self, number: int) -> str:
        """Choose queries, as FASTA."""
        return "".join(f">{name}\n{letters}\n" for name, letters in self.random.choices(self.queries, k=number))

    def patiently(self, work: Callable[[], Answer]) -> Answer:
        """Ask, and again where the server says so."""
        while wait := told_to_wait(answer := work()):
            self.counts["told to wait", "done"] += 1
            time.sleep(wait)
        return answer

    def search(self) -> None:
        """Search, and compare the answer with the command line's."""
        query = self.query()
        answer = self.patiently(lambda: self.asker.ask(self.asked.path, self.asked.body(query)))
        if not self.asked.is_right(query, answer):
            raise Unexpected("an answer that differs")

    def submitted(self, number: int) -> str:
        """Submit a job, and return its path."""
        stated = {"database": self.asked.database.stem, "queries": self.fasta(number), "title": "soak"}
        answer = self.patiently(lambda: self.asker.ask_json(f"{API}/jobs", stated))
        return str(expect(answer, 202).headers["Location"])

    def finished(self, path: str) -> dict[str, Any]:
        """Wait for a job's end."""
        while True:
            stated: dict[str, Any] = expect(self.asker.ask(f"{path}?wait=5"), 200).json()
            if stated["state"] in ("done", "failed", "cancelled"):
                return stated
            time.sleep(0.2)

    def job(self) -> None:
        """Submit a job, fetch its results in two formats, and remove it."""
        path = self.submitted(self.random.randint(1, 4))
        stated = self.finished(path)
        if stated["state"] != "done":
            raise Unexpected(f"a job ended as {stated}")
        for outfmt in self.random.sample(FORMATS + ONE_QUERY_FORMATS, 2):
            expect(self.asker.ask(f"{path}/results?format={outfmt}"), 200)
        expect(self.asker.ask(f"{path}/queries"), 200)
        expect(self.asker.ask(path, method="DELETE"), 200, 204)
        expect(self.asker.ask(path), 404, 410)

    def cancelled(self) -> None:
        """Submit a long job, and cancel it at some time."""
        path = self.submitted(LONG)
        time.sleep(self.random.random() * 0.5)
        expect(self.asker.ask(f"{path}/cancel", b""), 200, 202, 409)
        if self.finished(path)["state"] not in ("cancelled", "done"):
            raise Unexpected("a job that was cancelled went on")
        expect(self.asker.ask(path, method="DELETE"), 200, 204)

    def left(self) -> None:
        """Ask for a search, and leave before the answer."""
        body = json.dumps({"database": self.asked.database.stem, "queries": self.fasta(LONG)})
        self.leave(f"{API}/search?format=json", body, 0)

    def download_left(self) -> None:
        """Leave in the middle of results."""
        path = self.submitted(4)
        self.finished(path)
        self.leave(f"{path}/results?format=html", "", 1000)
        expect(self.asker.ask(path, method="DELETE"), 200, 204)

    def leave(self, path: str, body: str, read: int) -> None:
        """Send a request on a connection of its own, read so many bytes, and close it."""
        method = "POST" if body else "GET"
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.server.port), 30) as connection:
            connection.sendall((head + body).encode("ascii"))
            if read:
                connection.recv(read)
            else:
                time.sleep(self.random.random() * 0.5)

    def blast(self) -> None:
        """Search by BLAST's URL API, as its clients do."""
        put = {"CMD": "Put", "PROGRAM": "blastp", "DATABASE": self.asked.database.stem, "QUERY": self.fasta(1)}
        answer = expect(self.patiently(lambda: self.asker.ask(f"/Blast.cgi?{urlencode(put)}")), 200)
        (rid,) = re.findall(r"RID = (\w+)", answer.body.decode("utf-8"))
        for _ in range(600):
            info = self.asker.ask(f"/Blast.cgi?CMD=Get&FORMAT_OBJECT=SearchInfo&RID={rid}")
            (status,) = re.findall(r"Status=(\w+)", expect(info, 200).body.decode("utf-8"))
            if status != "WAITING":
                break
            time.sleep(0.2)
        if status != "READY":
            raise Unexpected(f"{rid}: {status}")
        outfmt = self.random.choice(("XML", "Text", "JSON2_S", "HTML"))
        expect(self.asker.ask(f"/Blast.cgi?CMD=Get&RID={rid}&FORMAT_TYPE={outfmt}"), 200)
        expect(self.asker.ask(f"/Blast.cgi?CMD=Delete&RID={rid}"), 200)

    def pages(self) -> None:
        """Look at pages, and what they are made of."""
        start = expect(self.asker.ask("/"), 200).body.decode("utf-8")
        for path in {*re.findall(r'(?:href|src)="(/static/[^"]+)"', start), "/jobs", "/about", "/api"}:
            expect(self.asker.ask(path), 200)
        expect(self.asker.ask(f"{API}/openapi.json"), 200)

    def wrong(self) -> None:
        """Ask for what cannot be."""
        name = self.asked.database.stem
        stated: list[Any] = [
            {"database": "nowhere", "queries": ">a\nMKV"}, {"database": name},
            {"database": name, "queries": ">a\nM1K"},
            {"database": name, "queries": ">a\nMKV", "options": {"max_hits": -1}}, [], "text", {"database": 1},
            {"database": name, "queries": ">a\nMKV", "options": {"matrix": "/etc/passwd"}},
        ]  # fmt: skip
        expect(self.asker.ask_json(f"{API}/search", self.random.choice(stated)), 400, 404, 422)
        expect(self.asker.ask_json(f"{API}/jobs", self.random.choice(stated)), 400, 404, 422)
        for path in (f"{API}/jobs/{'A' * 20}", f"{API}/jobs/..%2f..", "/nowhere", f"/{quote('§' * 50)}", "/jobs/x"):
            expect(self.asker.ask(path), 404, 410)
        expect(self.asker.ask(f"{API}/search", b"{", kind="application/json"), 400, 422)
        expect(self.asker.ask(f"{API}/databases", b"{}", method="PATCH"), 405)
        expect(self.asker.ask("/Blast.cgi?CMD=Get&RID=nothing"), 200, 400, 404)

    def broken(self) -> None:
        """Send what is no HTTP, or not all of it."""
        sent = self.random.choice((
            b"\0" * 100, b"GET / HTTP/1.1\r\nHost: a",
            b"POST /api/v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{",
            b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 100_000, b"",
        ))  # fmt: skip
        with socket.create_connection(("127.0.0.1", self.server.port), 30) as connection:
            connection.settimeout(self.random.random() * 0.5)
            try:
                connection.sendall(sent)
                connection.recv(1000)
            except OSError:
                pass  # it may hang up, and need not answer

    def state(self) -> None:
        """Ask how the server is."""
        for path in (
            f"{API}/health",
            f"{API}/ready",
            f"{API}/databases",
            f"{API}/formats",
            f"{API}/jobs",
            "/metrics",
        ):
            expect(self.asker.ask(path), 200)


def load(server: Serving, visitors: Sequence[Visitor], seconds: float) -> list[Look]:
    """Let all ask for some time; return what the server held meanwhile."""
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=each.run, args=(lambda: time.monotonic() > until,)) for each in visitors]
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
) -> tuple[list[str], dict[str, Any], bool]:
    """Keep a server busy; return lines, numbers, and whether all was as expected and nothing grew."""
    asked = Asked("defaults", database, {"max_hits": 100})
    asked.answer_by_command(queries, folder)
    with Serving([database], folder, *options) as server:
        visitors = [Visitor(server, asked, queries, seed) for seed in range(CLIENTS)]
        warm = seconds * WARM_SHARE
        load(server, visitors, warm)
        before = quiet(server, None)
        looks = load(server, visitors, seconds - warm)
        after = quiet(server, before)
        metrics = server.metrics()
    counts: Counter[tuple[str, str]] = sum((visitor.counts for visitor in visitors), Counter())
    said = [text for visitor in visitors for text in visitor.said]
    numbers = {
        "looks": [vars(look) for look in looks], "before": vars(before), "after": vars(after), "metrics": metrics,
        "counts": {f"{name}: {what}": number for (name, what), number in sorted(counts.items())}, "said": said[:100],
    }  # fmt: skip
    grown = grown_by(looks, before, after)
    lines = [
        f"{database.name}, {' '.join(map(str, options))}: {CLIENTS} clients for {seconds / 60:.0f} minutes, of which "
        f"the first {warm / 60:.0f} warm it up; looked at every {LOOK_EVERY:.0f} s",
        "", *deeds(counts), "", *tenths(looks), "", *verdict(before, after, looks, said, grown),
    ]  # fmt: skip
    return lines, numbers, not said and not grown


def deeds(counts: Counter[tuple[str, str]]) -> list[str]:
    """Say what was done how often."""
    names = sorted({name for name, _ in counts})
    rows = [[name, f"{counts[name, 'done']:,}", f"{counts[name, 'not as expected']:,}"] for name in names]
    return table(["what clients did", "times", "not as expected"], rows)


def tenths(looks: Sequence[Look]) -> list[str]:
    """Say what the server held in each tenth of the time."""
    cut = [looks[len(looks) * k // 10 : len(looks) * (k + 1) // 10] or looks[-1:] for k in range(10)]
    rows = [
        ["MiB, median", *(f"{statistics.median(look.resident for look in part) / (1 << 20):.0f}" for part in cut)],
        ["threads, most", *(str(max(look.threads for look in part)) for part in cut)],
        ["descriptors, most", *(str(max(look.descriptors for look in part)) for part in cut)],
    ]
    return table(["tenth of the time", *map(str, range(1, 11))], rows)


def quarters(looks: Sequence[Look]) -> tuple[float, float]:
    """Return the median bytes of the third and the last quarter."""
    third, last = looks[len(looks) // 2 : len(looks) * 3 // 4], looks[len(looks) * 3 // 4 :]
    return (statistics.median(look.resident for look in third or looks),
            statistics.median(look.resident for look in last or looks))  # fmt: skip


def slope(looks: Sequence[Look]) -> float:
    """Return the bytes a second by which memory grows over the second half, by least squares."""
    half = looks[len(looks) // 2 :]
    if len(half) < 2:
        return 0.0
    return statistics.linear_regression([look.at for look in half], [look.resident for look in half]).slope


def grown_by(looks: Sequence[Look], before: Look, after: Look) -> list[str]:
    """Name what has grown."""
    third, last = quarters(looks)
    grown = ["memory"] if last > third * (1 + GROWTH) and last > third + GROWTH_BYTES else []
    grown += ["threads"] if after.threads > before.threads + LEFT_OVER else []
    return grown + (["descriptors"] if after.descriptors > before.descriptors + LEFT_OVER else [])


def verdict(
    before: Look, after: Look, looks: Sequence[Look], said: Sequence[str], grown: Sequence[str]
) -> Iterator[str]:
    """Say whether nothing grew, and what was not as expected."""
    third, last = quarters(looks)
    yield (
        f"Memory in the last quarter: {last / third:.3f} times that of the one before; over the second half "
        f"it grew by {slope(looks) * 3600 / (1 << 20):.1f} MiB an hour."
    )
    for name in ("threads", "descriptors"):
        held = [getattr(look, name) for look in (before, after)]
        yield f"{name}, with nobody asking: {held[0]} after warming up, {held[1]} at the end."
    yield f"Grown: {', '.join(grown) or 'nothing'}."
    yield f"Not as expected: {len(said)}."
    yield from (text[:300] for text in said[:10])
