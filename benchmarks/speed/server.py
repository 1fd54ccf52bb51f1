"""Measure `swsearch serve` over loopback: one client, many at once, and an hour of mixed load.

Parts:
  latency   one client on a kept connection asks for one query after the other, JSON with alignments; in turns with
            it, in this process, the scan alone (by the engine's own clock on a GPU) and `Searcher.search` with the
            hits and alignments as arrays. Queries are cut from the database's own proteins. Two kinds of searches:
            the default, which has hits with E <= 10, and one that finds as many hits as it may.
  together  --clients clients at once, each on a connection of its own, until each has asked for its share of the
            queries; cells by the seconds in which the server's engine scored, and by the wall's clock.
  old       with --old CHECKOUT only: a server of another revision and this one, in turns: `POST /api/v1/search`, a
            job until its results were read, many clients at once, and the memory of a server that has nothing to do.
  soak      --soak MINUTES of everything that clients do, and some should not, with the server's memory, threads and
            descriptors looked at every ten seconds; instead of the other parts.
Every answer must be what the command line writes for its query, byte for byte, and none may be lost; otherwise, or if
what the server holds grows in the second half of the soak, this exits with 1. The load is made by this process, the
server is another one; on two processors they share them.

Needs: the extra server, Linux, a database from `swsearch db build`, a quiet machine. Two minutes, or those of --soak.
Run:   python -m benchmarks.speed.server DATABASE.h5 [--engine gpu] [--queries 500] [--clients 100] [--hits 100]
           [--only latency] [--kinds defaults] [--out benchmarks/results/server.txt]
       python -m benchmarks.speed.server DATABASE.h5 --old CHECKOUT [--old-database OLD.h5] [--engine gpu]
           [--out benchmarks/results/server_old_cpu.txt, or server_old_gpu.txt]
       python -m benchmarks.speed.server DATABASE.h5 --soak 60 --out benchmarks/results/server_soak.txt
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.command_cases import search_seconds
from benchmarks.speed.server_soak import soaked
from benchmarks.support.common import Records, arguments, finish, heading, residues, table
from benchmarks.support.scanning import Scan
from benchmarks.support.serving import API, Asked, Asker, Serving, patiently
from benchmarks.support.timing import say
from swsearch import Database, Searcher
from swsearch.engines import create_engine
from swsearch.inputs import read_queries

PARTS = ("latency", "together")
LENGTH = 250
"""Residues of a query."""
BLOCK, WARM = 20, 5
"""Queries after which another contender takes its turn, and that each is given before and do not count."""
SETTLE_SECONDS = 2.0
"""After which a server that is ready has nothing to do."""
KINDS: dict[str, dict[str, Any]] = {"defaults": {}, "all hits": {"evalue": 1e6}}
"""Settings of the searches: E <= 10, and a maximum E-value that fills each query's hit list. The second setting
compares many more candidates with shuffled copies, which takes longer than a scan."""
MEDIAN_MS, LAST_MS, SUM_GCUPS, MOST_SCANS = 40.0, 100.0, 5000.0, 1.3
"""Targets. On one H200 with Swiss-Prot: median and 99th percentile of one client, and the sum of all clients. On two
CPU cores with 20,000 proteins: the median as a multiple of the scan's."""
CELLS, SECONDS = "swsearch_cells_total", "swsearch_scoring_seconds_total"
"""Metrics of what the engine has done."""

Work = Callable[[tuple[str, str]], float]
"""Search with a query; return the seconds that count."""


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


def percentile(seconds: Sequence[float], share: float) -> float:
    """Return the least of the values that this share of all does not exceed."""
    return sorted(seconds)[max(0, -(-len(seconds) * round(share * 1000) // 1000) - 1)]


def in_blocks(works: Mapping[str, Work], queries: Records) -> dict[str, list[float]]:
    """Give all queries to all contenders, in turns; return the seconds of each query."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        for query in queries[:WARM]:
            work(query)
    for begin in range(0, len(queries), BLOCK):
        for name, work in works.items():
            seconds[name] += [work(query) for query in queries[begin : begin + BLOCK]]
    return seconds


def ask(asker: Asker, asked: Asked, answers: dict[str, object], query: tuple[str, str]) -> float:
    """Search by the server; keep the hits, which revisions say alike."""
    started = time.perf_counter()
    answer = asker.ask(asked.path, asked.body(query))
    taken = time.perf_counter() - started
    if asked.is_right(query, answer):
        answers[query[0]] = hits_in(answer.body)
    return taken


def ask_job(asker: Asker, asked: Asked, answers: dict[str, object], query: tuple[str, str]) -> float:
    """Submit a job, wait for its end, and read its report."""
    started = time.perf_counter()
    submitted = asker.ask(f"{API}/jobs?wait=60", asked.body(query))
    assert submitted.status == 202, submitted.body
    answer = asker.ask(f"{API}/jobs/{submitted.json()['id']}/results?format=json")
    taken = time.perf_counter() - started
    assert answer.status == 200, answer.body
    answers[query[0]] = hits_in(answer.body)
    return taken


def hits_in(report: bytes) -> object:
    """Return the hits of a report, which says of its database what revisions say differently."""
    return json.loads(report)["BlastOutput2"][0]["report"]["results"]["search"]["hits"]


def latency(options: argparse.Namespace, queries: Records, server: Serving, asked: Asked) -> Iterator[str]:
    """Measure one client beside the scan and a resident searcher."""
    read = dict(zip([name for name, _ in queries], read_queries(queries), strict=True))
    hits: dict[str, int] = {}
    given = {"engine": options.engine, "threads": options.threads, **asked.options}
    with (
        server.asker() as asker,
        create_engine(options.engine, threads=options.threads) as engine,
        Database.open(options.database) as database,
        closing(Scan(engine, database, [list(read.values())])) as scan,
        Searcher(options.database, **given) as searcher,
    ):

        def search(query: tuple[str, str]) -> float:
            taken, hits[query[0]] = search_seconds(searcher, query)
            return taken

        works: dict[str, Work] = {
            "the scan alone": lambda query: scan.run([read[query[0]]]).kernel,
            "`Searcher.search`, to arrays": search,
            "the server, `POST /api/v1/search`, JSON": partial(ask, asker, asked, {}),
        }
        found = in_blocks(works, queries)
    alone, _, served = found.values()
    base, rows = statistics.median(alone), []
    for name, seconds in found.items():
        cells = [statistics.median(seconds), percentile(seconds, 0.9), percentile(seconds, 0.99), max(seconds)]
        rows.append([name, *(f"{1e3 * each:.1f}" for each in cells), f"{cells[0] / base:.2f}"])
    yield f"One client, {asked.name}: {statistics.median(hits.values()):.0f} hits in the median."
    yield ""
    yield from table(["", "median ms", "90 %", "99 %", "longest", "times the scan"], rows)
    median, last = 1e3 * statistics.median(served), 1e3 * percentile(served, 0.99)
    yield ""
    yield (
        f"{asked.name}: median {median:.1f} ms (GPU: at most {MEDIAN_MS:.0f}), 99th percentile {last:.1f} ms "
        f"(GPU: {LAST_MS:.0f}), {median / 1e3 / base:.2f} times the scan (two CPU cores: {MOST_SCANS})"
    )
    yield ""


class Together(NamedTuple):
    """Times of clients that begin together: seconds of each answer and of all, cells, seconds of scoring."""

    seconds: list[float]
    wall: float
    cells: float
    scoring: float
    waits: int
    errors: list[str]


def together(clients: int, queries: Records, server: Serving, asked: Asked) -> Together:
    """Measure many clients that begin at the same time."""
    seconds: list[float] = []
    waits, errors = list[int](), list[str]()
    gate = threading.Barrier(clients + 1)

    def client(number: int) -> None:
        with server.asker() as asker:
            asker.ask(f"{API}/health")  # the connection is there
            gate.wait()
            for query in queries[number::clients]:
                started = time.perf_counter()
                try:
                    answer, waited = patiently(partial(asker.ask, asked.path, asked.body(query)))
                except OSError as error:
                    errors.append(repr(error))
                    continue
                waits.append(waited)
                seconds.append(time.perf_counter() - started)
                asked.is_right(query, answer)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    gate.wait()
    before, started = server.metrics(), time.perf_counter()
    for thread in threads:
        thread.join()
    wall, after = time.perf_counter() - started, server.metrics()
    cells, scoring = (after[name] - before[name] for name in (CELLS, SECONDS))
    return Together(seconds, wall, cells, max(scoring, 1e-9), sum(waits), errors)


def many_clients(options: argparse.Namespace, queries: Records, server: Serving, asked: Asked) -> Iterator[str]:
    """Measure many clients, and say what was lost."""
    found = together(options.clients, queries, server, asked)
    columns = ["searches", "answered", "s in all", "s for an answer (longest)", "answers a second"]
    shown = found.seconds or [float("nan")]
    row = [
        asked.name, f"{len(found.seconds)} of {len(queries)}", f"{found.wall:.2f}",
        f"{statistics.median(shown):.2f} ({max(shown):.2f})", f"{len(found.seconds) / found.wall:.1f}",
        f"{found.cells / found.scoring / 1e9:,.0f}", f"{found.cells / found.wall / 1e9:,.0f}",
    ]  # fmt: skip
    yield f"{options.clients} clients at once."
    yield ""
    yield from table([*columns, "GCUPS by the engine's clock", "GCUPS by the wall's"], [row])
    yield ""
    lost = len(queries) - len(found.seconds)
    asked.wrong += lost
    yield (
        f"{asked.name}, {options.clients} clients: {lost} lost, {found.waits} told to ask later."
        + "".join(f" {error}" for error in found.errors[:5])
    )
    yield f"{asked.name}: {row[5]} GCUPS by the engine's clock (GPU: at least {SUM_GCUPS:,.0f})"
    yield ""


def measured(options: argparse.Namespace, folder: Path) -> tuple[list[str], bool]:
    """Measure the parts that are asked for; return lines, and whether all is right."""
    about, queries = cut_queries(options.database, options.queries)
    lines = [
        f"{about}; {len(queries)} queries, {residues(queries):,} residues, at most {options.hits} hits of each; "
        f"engine {options.engine}",
        "",
    ]
    asked = [Asked(name, options.database, {"max_hits": options.hits, **KINDS[name]}) for name in options.kinds]
    for one in asked:
        one.answer_by_command(queries, folder, "--engine", options.engine)
    with Serving([options.database], folder, *engine_options(options)) as server:
        say(f"the server is ready after {server.start_seconds:.1f} s")
        for name, measure in zip(PARTS, (latency, many_clients), strict=True):
            for one in asked if name in options.only else ():
                lines += measure(options, queries, server, one)
                say("\n".join(lines))  # a run may be cut short
    wrong = sum(one.wrong for one in asked)
    return [*lines, f"Answers that are lost or differ from the command line's: {wrong}."], not wrong


def beside_old(options: argparse.Namespace, folder: Path) -> tuple[list[str], bool]:
    """Measure a server of another revision and one of this in turns, and write what each took."""
    _, queries = cut_queries(options.database, options.queries)
    databases = {"old": options.old_database or options.database, "new": options.database}
    seconds: dict[str, dict[str, float]] = {"clients": {}, "idle": {}}
    with ExitStack() as opened:
        servers, asked = {}, {}
        for name, database in databases.items():
            (folder / name).mkdir()
            checkout = options.old.absolute() if name == "old" else None
            started = Serving([database], folder / name, *engine_options(options), cwd=checkout)
            servers[name] = opened.enter_context(started)
            asked[name] = Asked(name, database, {"max_hits": options.hits})
            time.sleep(SETTLE_SECONDS)
            seconds["idle"][name] = servers[name].look().resident / 2**20
        askers = {name: opened.enter_context(server.asker()) for name, server in servers.items()}
        for what, work in (("search", ask), ("job", ask_job)):
            answers: dict[str, dict[str, object]] = {name: {} for name in askers}
            works: dict[str, Work] = {
                name: partial(work, asker, asked[name], answers[name]) for name, asker in askers.items()
            }
            seconds[what] = {name: statistics.median(each) for name, each in in_blocks(works, queries).items()}
            assert answers["old"] == answers["new"]
        walls: dict[str, list[float]] = {name: [] for name in servers}
        for _ in range(3):
            for name, server in servers.items():
                found = together(options.clients, queries, server, asked[name])
                assert len(found.seconds) == len(queries)
                walls[name].append(found.wall)
        seconds["clients"] = {name: statistics.median(each) for name, each in walls.items()}
    shown = {
        "search": ("search, ms", 1e3, 2), "job": ("job, ms", 1e3, 2),
        "clients": (f"clients, s, {options.clients} clients", 1, 2), "idle": ("idle memory, MiB", 1, 0),
    }  # fmt: skip
    rows = []
    for what, (name, factor, digits) in shown.items():
        old, new = seconds[what].values()
        rows.append([name, f"{factor * old:.{digits}f}", f"{factor * new:.{digits}f}", f"{new / old:.2f}"])
    return table(["medians", "old", "new", "new / old"], rows), True


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
    add("--only", nargs="+", choices=PARTS, default=list(PARTS), help="default: both")
    add("--soak", type=float, metavar="MINUTES", help="of mixed load, instead of the other parts")
    add("--old", type=Path, metavar="CHECKOUT", help="compare with the server of another revision")
    add("--old-database", type=Path, metavar="FILE", help="made by that revision")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swsearch-server-") as name:
        if options.old is not None:
            lines, is_right = beside_old(options, Path(name))
        elif options.soak is None:
            lines, is_right = measured(options, Path(name))
        else:
            _, queries = cut_queries(options.database, min(options.queries, 100))
            seconds = 60 * options.soak
            lines, is_right = soaked(options.database, queries, seconds, Path(name), engine_options(options))
    finish([*heading(__file__, ("numpy", "fastapi", "uvicorn")), "", *lines], options.out)
    sys.exit(not is_right)


if __name__ == "__main__":
    main()
