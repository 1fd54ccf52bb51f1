"""Measure `swsearch serve` over loopback: one client, many at once, and an hour of mixed load.

Parts:
  latency   one client on a kept connection asks for one query after the other, JSON with alignments; in turns with
            it, in this process, the scan alone (by the engine's own clock on a GPU) and `Searcher.search` with the
            hits and alignments as arrays. Queries are cut from the database's own proteins. Two kinds of searches:
            the default, which has hits with E <= 10, and one that finds as many hits as it may.
  together  --clients clients at once, each on a connection of its own, until each has asked for its share of the
            queries; cells by the seconds in which the server's engine scored, and by the wall's clock.
  msa       100 queries through the MSA API, as one ticket and as a ticket each by ten clients at once, in turns with
            `swsearch msa`, whose rows the alignments must have.
  soak      --soak MINUTES of searches, jobs, BLAST's URL API and pages, some of which are cancelled or left, with the
            server's memory, threads and descriptors looked at every ten seconds; instead of the other parts.
Every answer must be what the command line writes for its query, byte for byte, and none may be lost; otherwise, or if
what the server holds grows in the second half of the soak, this exits with 1. The load is made by this process, the
server is another one; on two processors they share them.

Needs: the extra server, Linux, a database from `swsearch db build`, a quiet machine. Two minutes, or those of --soak.
Run:   python -m benchmarks.speed.server DATABASE.h5 [--engine gpu] [--queries 500] [--clients 100] [--hits 100]
           [--only latency] [--kinds defaults] [--out benchmarks/results/server.txt]
       python -m benchmarks.speed.server DATABASE.h5 --soak 60 --out benchmarks/results/server_soak.txt
"""

from __future__ import annotations

import argparse
import io
import json
import random
import re
import socket
import statistics
import sys
import tarfile
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from benchmarks.speed.command_cases import search_seconds
from benchmarks.support.common import Records, arguments, finish, heading, residues, swsearch, table, timed, write
from benchmarks.support.scanning import Scan
from benchmarks.support.serving import API, Answer, Asked, Asker, Look, Serving, patiently
from benchmarks.support.timing import say
from swsearch import Database, Searcher
from swsearch.engines import create_engine
from swsearch.inputs import read_queries

PARTS = ("latency", "together", "msa")
TICKETS, MSA_CLIENTS, TURNS, POLL_SECONDS = 100, 10, 3, 0.2
"""Queries of the part ``msa``, its clients at once, turns, and seconds between two looks at a ticket."""
LENGTH = 250
"""Residues of a query."""
BLOCK, WARM = 20, 5
"""Queries after which another contender takes its turn, and that each is given before and do not count."""
KINDS: dict[str, dict[str, Any]] = {"defaults": {}, "all hits": {"evalue": 1e6}}
"""Settings of the searches: E <= 10, and a maximum E-value that fills each query's hit list. The second setting
compares many more candidates with shuffled copies, which takes longer than a scan."""
CELLS, SECONDS = "swsearch_cells_total", "swsearch_scoring_seconds_total"
"""Metrics of what the engine has done."""
SOAKING, LOOK_SECONDS, WARM_SHARE, QUIET_SECONDS = 6, 10.0, 0.1, 90.0
"""Of a soak: clients, seconds between two looks, the share of the time that warms the server up, and seconds in which
a server that nobody asks must have given back connections and threads."""
GROWTH, GROWTH_BYTES, LEFT_OVER = 0.03, 16 << 20, 2
"""By which the memory of the last quarter may exceed that of the one before, as a share and in bytes; and threads and
descriptors more than after warming up that are no leak."""
FORMATS = ("json", "tabular", "xml", "html", "csv", "jsonl", "sam", "paf", "pairwise", "commented")
"""That results of jobs are fetched in."""
LONG = 40
"""Queries of a search that is cancelled or left."""

Query = tuple[str, str]


def cut_queries(path: Path, number: int) -> tuple[str, Records]:
    """Describe a database, and cut queries from the middle of its proteins at equal distances."""
    found = []
    with Database.open(path) as database:
        long = np.flatnonzero(database.lengths >= LENGTH)
        if len(long) < number:
            sys.exit(f"--queries {number}: the database has {len(long)} proteins of {LENGTH} residues or more")
        for place in range(number):
            letters = database.sequence(int(long[place * len(long) // number]))
            begin = (len(letters) - LENGTH) // 2
            found.append((f"query_{place}", letters[begin : begin + LENGTH]))
        return f"{path.name}: {len(database):,} subjects, {database.n_residues:,} residues", found


def ask(asker: Asker, asked: Asked, query: Query) -> float:
    """Search by the server, again where it is full; return the seconds."""
    started = time.perf_counter()
    answer, _ = patiently(partial(asker.ask_json, asked.path, asked.stated(query)))
    taken = time.perf_counter() - started
    asked.is_right(query, answer)
    return taken


def latency(options: argparse.Namespace, queries: Records, server: Serving, asked: Asked) -> list[str]:
    """Measure one client beside the scan and a resident searcher, in turns of some queries."""
    read = dict(zip([name for name, _ in queries], read_queries(queries), strict=True))
    given = {"engine": options.engine, "threads": options.threads, **asked.options}
    with (
        server.asker() as asker,
        create_engine(options.engine, threads=options.threads) as engine,
        Database.open(options.database) as database,
        closing(Scan(engine, database, [list(read.values())])) as scan,
        Searcher(options.database, **given) as searcher,
    ):
        works: dict[str, Callable[[Query], float]] = {
            "the scan alone": lambda query: scan.run([read[query[0]]]).kernel,
            "`Searcher.search`, to arrays": lambda query: search_seconds(searcher, query)[0],
            "the server, `POST /api/v1/search`, JSON": partial(ask, asker, asked),
        }
        hits = statistics.median(search_seconds(searcher, query)[1] for query in queries)
        seconds: dict[str, list[float]] = {name: [] for name in works}
        for begin in range(-WARM, len(queries), BLOCK):
            for name, work in works.items():
                taken = [work(query) for query in (queries[:WARM] if begin < 0 else queries[begin : begin + BLOCK])]
                seconds[name] += taken if begin >= 0 else []
    base, rows = statistics.median(seconds["the scan alone"]), []
    for name, each in seconds.items():
        cells = [*np.quantile(each, (0.5, 0.9, 0.99), method="inverted_cdf").tolist(), max(each)]
        rows.append([name, *(f"{1e3 * cell:.1f}" for cell in cells), f"{cells[0] / base:.2f}"])
    return [
        f"One client, {asked.name}: {hits:.0f} hits in the median.",
        "", *table(["", "median ms", "90 %", "99 %", "longest", "times the scan"], rows), "",
    ]  # fmt: skip


def together(options: argparse.Namespace, queries: Records, server: Serving, asked: Asked) -> list[str]:
    """Measure many clients that begin at the same time, and say what was lost."""
    seconds: list[float] = []
    gate = threading.Barrier(options.clients + 1)

    def client(number: int) -> None:
        with server.asker() as asker:
            asker.ask(f"{API}/health")  # the connection is there
            gate.wait()
            for query in queries[number :: options.clients]:
                try:
                    seconds.append(ask(asker, asked, query))
                except OSError as error:
                    say(f"{query[0]}: {error!r}")

    threads = [threading.Thread(target=client, args=(number,)) for number in range(options.clients)]
    for thread in threads:
        thread.start()
    gate.wait()
    before, started = server.metrics(), time.perf_counter()
    for thread in threads:
        thread.join()
    wall, after = time.perf_counter() - started, server.metrics()
    cells, scoring = (after[name] - before[name] for name in (CELLS, SECONDS))
    asked.wrong += len(queries) - len(seconds)
    shown = seconds or [float("nan")]
    row = [
        asked.name, f"{len(seconds)} of {len(queries)}", f"{wall:.2f}",
        f"{statistics.median(shown):.2f} ({max(shown):.2f})", f"{len(seconds) / wall:.1f}",
        f"{cells / max(scoring, 1e-9) / 1e9:,.0f}", f"{cells / wall / 1e9:,.0f}",
    ]  # fmt: skip
    columns = ["searches", "answered", "s in all", "s for an answer (longest)", "answers a second"]
    columns += ["GCUPS by the engine's clock", "GCUPS by the wall's"]
    return [f"{options.clients} clients at once.", "", *table(columns, [row]), ""]


def msa_ticket(server: Serving, database: Path, text: str) -> bytes:
    """Submit queries, wait until their ticket is complete, and return their alignments."""
    form = urlencode({"q": text, "mode": "all-nofilter-notemplates", "database[]": database.stem})
    with server.asker() as asker:
        submit = partial(asker.ask, "/ticket/msa", form, kind="application/x-www-form-urlencoded")
        state = patiently(submit)[0].json()
        while state["status"] in ("PENDING", "RUNNING"):
            time.sleep(POLL_SECONDS)
            state = asker.ask(f"/ticket/{state['id']}").json()
        if state["status"] != "COMPLETE":
            sys.exit(f"the MSA API: {state}")
        packed = io.BytesIO(asker.ask(f"/result/download/{state['id']}").body)
    with tarfile.open(fileobj=packed) as archive:
        member = archive.extractfile("uniref.a3m")
        assert member is not None
        return member.read()


def msa(options: argparse.Namespace, queries: Records, server: Serving, folder: Path) -> tuple[list[str], int]:
    """Measure the MSA API beside the command; return lines, and how many alignments differ."""
    seconds: dict[str, list[float]] = {}
    wrong, count = 0, min(TICKETS, len(queries))
    for turn in range(TURNS):  # other residues each time, since a ticket that is known is complete
        part = [(name, letters[turn:]) for name, letters in queries[:count]]
        each = [f">{name}\n{letters}\n" for name, letters in part]
        words: list[object] = ["msa", write(folder / "msa.fasta", part), options.database, "--max-seqs", 10**6]
        words += [*engine_options(options), "--quiet", "-o", folder / "a3m"]
        seconds.setdefault("`swsearch msa`", []).append(timed(partial(swsearch, *words)))
        expected = b"".join((folder / "a3m" / f"{name}.a3m").read_bytes() + b"\0" for name, _ in part).split(b"\0")
        for name, texts in {f"{count} queries, one ticket": ["".join(each)], f"{count} tickets": each}.items():
            started = time.perf_counter()
            with ThreadPoolExecutor(MSA_CLIENTS) as clients:
                found = b"".join(clients.map(partial(msa_ticket, server, options.database), texts)).split(b"\0")
            seconds.setdefault(name, []).append(time.perf_counter() - started)
            wrong += sum(one != other for one, other in zip_longest(found, expected))
        say(f"turn {turn + 1}: {', '.join(f'{name} {taken[-1]:.1f} s' for name, taken in seconds.items())}")
    base = statistics.median(seconds["`swsearch msa`"])
    rows = [
        [name, f"{statistics.median(each):.2f}", f"{statistics.median(each) / base:.2f}"]
        for name, each in seconds.items()
    ]
    return [
        f"{count} alignments of {LENGTH} residues, three iterations; medians of {TURNS} turns; the command starts "
        f"anew and loads the database each time. Alignments that differ from the command's: {wrong}.",
        "", *table(["", "s", "times the command"], rows), "",
    ], wrong  # fmt: skip


def measured(options: argparse.Namespace, folder: Path) -> tuple[list[str], bool]:
    """Measure the parts that are asked for; return lines, and whether all is right."""
    about, queries = cut_queries(options.database, options.queries)
    lines = [
        f"{about}; {len(queries)} queries, {residues(queries):,} residues, at most {options.hits} hits of each; "
        f"engine {options.engine}",
        "",
    ]
    kinds = options.kinds if {*options.only} & {"latency", "together"} else ()
    asked = [Asked(name, options.database, {"max_hits": options.hits, **KINDS[name]}) for name in kinds]
    for one in asked:
        one.answer_by_command(queries, folder, "--engine", options.engine)
    with Serving([options.database], folder, *engine_options(options)) as server:
        say(f"the server is ready after {server.start_seconds:.1f} s")
        for name, measure in zip(PARTS, (latency, together), strict=False):
            for one in asked if name in options.only else ():
                lines += measure(options, queries, server, one)
                say("\n".join(lines))  # a run may be cut short
        wrong = 0
        if "msa" in options.only:
            more, wrong = msa(options, queries, server, folder)
            lines += more
    wrong += sum(one.wrong for one in asked)
    return [*lines, f"Answers that are lost or differ from the command line's: {wrong}."], not wrong


class Visitor:
    """One client of a soak, which does something else each time.

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
        self.random, self.asker = random.Random(seed), server.asker()
        self.counts: Counter[tuple[str, str]] = Counter()
        self.deeds: dict[str, tuple[int, Callable[[], object]]] = {
            "search": (6, self.search), "job": (4, self.job), "job, cancelled": (2, self.cancelled),
            "search, left": (2, self.left), "Blast.cgi": (3, self.blast), "pages": (4, self.pages),
        }  # fmt: skip

    def run(self, until: float) -> None:
        """Ask until some time; connections come and go."""
        weights = [weight for weight, _ in self.deeds.values()]
        while time.monotonic() < until:
            (name,) = self.random.choices(list(self.deeds), weights)
            try:
                self.deeds[name][1]()
                self.counts[name, "done"] += 1
            except (AssertionError, OSError, ValueError, KeyError) as error:
                self.counts[name, "not as expected"] += 1
                say(f"{name}: {error!r}")
                self.asker.close()
            if self.random.random() < 0.05:
                self.asker.close()
        self.asker.close()

    def expect(self, path: str, *statuses: int, body: Any = None, method: str | None = None) -> Answer:
        """Ask, again where the server is full, and check the status."""
        text = body if body is None else json.dumps(body)
        answer, _ = patiently(partial(self.asker.ask, path, text, method))
        assert answer.status in (statuses or (200,)), f"{path}: {answer.status}: {answer.body[:200]!r}"
        return answer

    def stated(self, number: int) -> dict[str, Any]:
        """Return a search with some of the queries."""
        return self.asked.stated(*self.random.choices(self.queries, k=number))

    def search(self) -> None:
        """Search, and compare the answer with the command line's."""
        query = self.random.choice(self.queries)
        ask(self.asker, self.asked, query)

    def finished(self, number: int, *states: str, cancel: bool = False) -> str:
        """Submit a job, cancel it at some time or not, and wait for its end; return its path."""
        path = str(self.expect(f"{API}/jobs", 202, body=self.stated(number)).headers["Location"])
        if cancel:
            time.sleep(self.random.random() * 0.5)
            self.expect(f"{path}/cancel", 200, 202, 409, body={})
        while (stated := self.expect(f"{path}?wait=5").json())["state"] not in ("done", "failed", "cancelled"):
            time.sleep(0.2)
        assert stated["state"] in states, stated
        return path

    def removed(self, path: str) -> None:
        """Remove a job."""
        self.expect(path, 200, 204, method="DELETE")
        self.expect(path, 404, 410)

    def job(self) -> None:
        """Submit a job, fetch its results in two formats, and remove it."""
        path = self.finished(self.random.randint(1, 4), "done")
        for outfmt in self.random.sample(FORMATS, 2):
            self.expect(f"{path}/results?format={outfmt}")
        self.removed(path)

    def cancelled(self) -> None:
        """Submit a long job, and cancel it at some time."""
        self.removed(self.finished(LONG, "cancelled", "done", cancel=True))

    def left(self) -> None:
        """Ask for a long search, and leave before the answer."""
        body = json.dumps(self.stated(LONG)).encode()
        head = f"POST {self.asked.path} HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.server.port), 30) as connection:
            connection.sendall(head.encode("ascii") + body)
            time.sleep(self.random.random() * 0.5)

    def blast(self) -> None:
        """Search by BLAST's URL API, as its clients do."""
        stated = self.stated(1)
        put = {"CMD": "Put", "PROGRAM": "blastp", "DATABASE": stated["database"], "QUERY": stated["queries"]}
        (rid,) = re.findall(r"RID = (\w+)", self.expect(f"/Blast.cgi?{urlencode(put)}").body.decode())
        get, status = f"/Blast.cgi?CMD=Get&RID={rid}", "WAITING"
        while status == "WAITING":
            time.sleep(0.2)
            info = self.expect(f"{get}&FORMAT_OBJECT=SearchInfo").body.decode()
            (status,) = re.findall(r"Status=(\w+)", info)
        assert status == "READY", f"{rid}: {status}"
        self.expect(f"{get}&FORMAT_TYPE={self.random.choice(('XML', 'Text', 'JSON2_S', 'HTML'))}")
        self.expect(f"/Blast.cgi?CMD=Delete&RID={rid}")

    def pages(self) -> None:
        """Look at pages, what they are made of, and what there is."""
        parts = {*re.findall(r'(?:href|src)="(/static/[^"]+)"', self.expect("/").body.decode())}
        for path in (*parts, "/jobs", "/about", f"{API}/openapi.json", f"{API}/health", f"{API}/jobs", "/metrics"):
            self.expect(path)


def load(server: Serving, visitors: Sequence[Visitor], seconds: float) -> list[Look]:
    """Let all ask for some time; return what the server held meanwhile."""
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=each.run, args=(until,)) for each in visitors]
    for thread in threads:
        thread.start()
    looks = [server.look()]
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(LOOK_SECONDS, left))
        looks.append(server.look())
        say(f"{left / 60:.1f} minutes left, {looks[-1]}")
    for thread in threads:
        thread.join()
    return looks


def soaked(options: argparse.Namespace, folder: Path) -> tuple[list[str], bool]:
    """Keep a server busy; return lines, and whether all was as expected and nothing grew."""
    _, queries = cut_queries(options.database, min(options.queries, 100))
    asked, seconds = Asked("defaults", options.database, {"max_hits": options.hits}), 60 * options.soak
    asked.answer_by_command(queries, folder)
    with Serving([options.database], folder, *engine_options(options)) as server:
        visitors = [Visitor(server, asked, queries, seed) for seed in range(SOAKING)]
        load(server, visitors, seconds * WARM_SHARE)
        quiet = QUIET_SECONDS * min(1.0, options.soak / 10)
        time.sleep(quiet)
        before = server.look()
        looks = load(server, visitors, seconds * (1 - WARM_SHARE))
        time.sleep(quiet)
        after = server.look()
    counts: Counter[tuple[str, str]] = sum((visitor.counts for visitor in visitors), Counter())
    names = sorted({name for name, _ in counts})
    done = [[name, f"{counts[name, 'done']:,}", f"{counts[name, 'not as expected']:,}"] for name in names]
    grown, held = growth(looks, before, after)
    wrong = sum(counts[name, "not as expected"] for name in names) + asked.wrong
    return [
        f"{options.database.name}, engine {options.engine}: {SOAKING} clients for {options.soak:.0f} minutes, after "
        f"{WARM_SHARE:.0%} of which the server counts as warm; looked at every {LOOK_SECONDS:.0f} s",
        "", *table(["what clients did", "times", "not as expected"], done), "", *held,
        f"Grown: {', '.join(grown) or 'nothing'}.", f"Not as expected: {wrong}.",
    ], not wrong and not grown  # fmt: skip


def growth(looks: Sequence[Look], before: Look, after: Look) -> tuple[list[str], list[str]]:
    """Name what has grown, and say what the server held in each tenth of the time."""

    def parts(number: int) -> Iterator[Sequence[Look]]:
        return (looks[len(looks) * k // number : len(looks) * (k + 1) // number] or looks[-1:] for k in range(number))

    def resident(part: Sequence[Look]) -> float:
        return statistics.median(look.resident for look in part)

    rows: list[list[object]] = [["MiB, median", *(f"{resident(part) / (1 << 20):.0f}" for part in parts(10))]]
    third, last = map(resident, list(parts(4))[2:])
    grown = ["memory"] if last > max(third * (1 + GROWTH), third + GROWTH_BYTES) else []
    said = []
    for name in ("threads", "descriptors"):
        rows.append([f"{name}, most", *(max(getattr(look, name) for look in part) for part in parts(10))])
        first, end = (getattr(look, name) for look in (before, after))
        said.append(f"{name}, with nobody asking: {first} after warming up, {end} at the end.")
        grown += [name] if end > first + LEFT_OVER else []
    ratio = f"Memory in the last quarter: {last / third:.3f} times that of the one before."
    return grown, [*table(["tenth of the time", *map(str, range(1, 11))], rows), "", ratio, *said]


def engine_options(options: argparse.Namespace) -> list[object]:
    """Return the options of ``swsearch serve`` for the engine."""
    threads = [] if options.threads is None else ["--threads", options.threads]
    return ["--engine", options.engine, *threads]


def main() -> None:
    parser = arguments(__doc__, files=False)
    add = parser.add_argument
    add("database", type=Path, help="made by swsearch db build")
    add("--engine", default="cpu", help="what scores, default %(default)s")
    add("--threads", type=int, help="of the engine, default: one for each processor")
    add("--queries", type=int, default=500, help="different ones, default %(default)s")
    add("--hits", type=int, default=100, help="of a query, at most; default %(default)s")
    add("--clients", type=int, default=100, help="at once, default %(default)s")
    add("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS), help="default: both")
    add("--only", nargs="+", choices=PARTS, default=list(PARTS), help="default: all")
    add("--soak", type=float, metavar="MINUTES", help="of mixed load, instead of the other parts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swsearch-server-") as name:
        lines, is_right = (measured if options.soak is None else soaked)(options, Path(name))
    finish([*heading(__file__, ("numpy", "fastapi", "uvicorn")), "", *lines], options.out)
    sys.exit(not is_right)


if __name__ == "__main__":
    main()
