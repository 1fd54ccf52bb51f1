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
           [--only latency,together] [--kinds defaults] [--json FILE] [--out benchmarks/results/server.txt]
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
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.server_soak import soaked
from benchmarks.support.common import Records, arguments, finish, heading, residues, table, timed
from benchmarks.support.scanning import Scan
from benchmarks.support.serving import Asked, Asker, Serving, told_to_wait
from benchmarks.support.timing import say
from swsearch import Database, Searcher
from swsearch.engines import create_engine
from swsearch.inputs import read_queries

PARTS = ("latency", "together")

LENGTH = 250
"""Residues of a query."""

SETTLE_SECONDS = 2.0
"""After which a server that is ready has nothing to do."""

BLOCK = 20
"""Queries after which another contender takes its turn."""

WARM = 5
"""Queries that each contender is given before, and that do not count."""

KINDS_OF_SEARCHES: dict[str, dict[str, Any]] = {"defaults": {}, "all hits": {"evalue": 1e6}}
"""What is asked for: hits with E <= 10, and with a largest E-value with which any query finds as many hits as it may:
then many more candidates than these are held against shuffled copies, which takes longer than a scan."""

MEDIAN_MS, LAST_MS, SUM_GCUPS, MOST_SCANS = 40.0, 100.0, 5000.0, 1.3
"""What was aimed at: median and 99th percentile of one client, and the sum of all, on one H200 with Swiss-Prot; the
median by that of the scan on two CPU cores with 20,000 proteins."""


def cut_queries(database: Database, number: int) -> Records:
    """Cut queries from the middle of proteins at equal distances in the database."""
    long = np.flatnonzero(database.lengths >= LENGTH)
    if len(long) < number:
        sys.exit(f"--queries {number}: the database has {len(long)} proteins of {LENGTH} residues or more")
    found = []
    for place in range(number):
        letters = database.sequence(int(long[place * len(long) // number]))
        begin = (len(letters) - LENGTH) // 2
        found.append((f"query_{place}", letters[begin : begin + LENGTH]))
    return found


def percentile(seconds: Sequence[float], share: float) -> float:
    """Return the least of the values that this share of all does not exceed."""
    return sorted(seconds)[max(0, -(-len(seconds) * round(share * 1000) // 1000) - 1)]


class Contenders:
    """What takes turns: the scan, the resident searcher, and the server.

    Parameters
    ----------
    options : Namespace
        Of the command line.
    queries : list of (str, str)
        Names and residues.
    asker : Asker
        To the server.
    asked : Asked
        What the server is asked, and what it must answer.
    """

    def __init__(self, options: argparse.Namespace, queries: Records, asker: Asker, asked: Asked) -> None:
        self.queries, self.asker, self.asked = queries, asker, asked
        self.differing = 0
        self._engine = create_engine(options.engine, threads=options.threads)
        self._database = Database.open(options.database)
        read = read_queries(queries)
        self._read = dict(zip([name for name, _ in queries], read, strict=True))
        self._scan = Scan(self._engine, self._database, [read])
        given = dict(asked.options)
        self._searcher = Searcher(options.database, engine=options.engine, threads=options.threads, **given)
        self.hits: list[int] = []

    def close(self) -> None:
        """Let go of both engines."""
        self._searcher.close()
        self._scan.close()
        self._engine.close()
        self._database.close()

    def scan(self, query: tuple[str, str]) -> float:
        """Score a query with the loaded database, and no more."""
        return self._scan.run([self._read[query[0]]]).kernel

    def search(self, query: tuple[str, str]) -> float:
        """Search with a resident searcher, until hits and alignments are arrays."""

        def work() -> None:
            (result,) = self._searcher.search([query])
            hits, alignments = result.table, result.hsps.alignments
            columns = hits.subjects, hits.scores, hits.numbers.evalues, alignments.query_start, alignments.identities
            assert all(len(column) == len(result) for column in columns)
            self.hits.append(len(result))

        return timed(work)

    def ask(self, query: tuple[str, str]) -> float:
        """Ask the server, until the whole answer was read."""
        begun = time.perf_counter()
        answer = self.asker.ask(self.asked.path, self.asked.body(query))
        taken = time.perf_counter() - begun
        self.differing += not self.asked.is_right(query, answer)
        return taken

    def measure(self) -> dict[str, list[float]]:
        """Give all queries to all, in turns."""
        contenders: dict[str, Callable[[tuple[str, str]], float]] = {
            "scan": self.scan, "searcher": self.search, "server": self.ask,
        }  # fmt: skip
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        for work in contenders.values():
            for query in self.queries[:WARM]:
                work(query)
        self.hits.clear()
        for begin in range(0, len(self.queries), BLOCK):
            for name, work in contenders.items():
                seconds[name] += [work(query) for query in self.queries[begin : begin + BLOCK]]
        return seconds


NAMES = {
    "scan": "the scan alone",
    "searcher": "`Searcher.search`, to arrays",
    "server": "the server, `POST /api/v1/search`, JSON",
}


def latency(options: argparse.Namespace, queries: Records, server: Serving, asked: Asked) -> dict[str, Any]:
    """Measure one client."""
    with server.asker() as asker, closing(Contenders(options, queries, asker, asked)) as contenders:
        seconds = contenders.measure()
    return {
        "asked": asked.name, "seconds": seconds, "hits": statistics.median(contenders.hits),
        "differing": contenders.differing,
    }  # fmt: skip


def together(options: argparse.Namespace, queries: Records, server: Serving, asked: Asked) -> dict[str, Any]:
    """Measure many clients that begin at the same time."""
    n_clients = options.clients
    seconds: list[float] = []
    differing, waits, errors = [0], [0], list[str]()
    guard, gate = threading.Lock(), threading.Barrier(n_clients + 1)

    def client(number: int) -> None:
        with server.asker() as asker:
            asker.ask(f"{asked.api}/health")  # the connection is there
            gate.wait()
            for query in queries[number::n_clients]:
                body, begun = asked.body(query), time.perf_counter()
                try:
                    while wait := told_to_wait(answer := asker.ask(asked.path, body)):
                        waits[0] += 1
                        time.sleep(wait)
                except OSError as error:
                    errors.append(repr(error))
                    continue
                with guard:
                    seconds.append(time.perf_counter() - begun)
                    differing[0] += not asked.is_right(query, answer)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(n_clients)]
    for thread in threads:
        thread.start()
    gate.wait()
    before, begun = server.scored(), time.perf_counter()
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - begun
    after = server.scored()
    return {
        "asked": asked.name, "clients": n_clients, "searches": len(queries), "answered": len(seconds),
        "told_to_wait": waits[0], "errors": errors[:5], "differing": differing[0], "seconds": seconds, "wall": wall,
        "cells": after.cells - before.cells, "scoring_seconds": after.seconds - before.seconds,
    }  # fmt: skip


def beside_old(options: argparse.Namespace, queries: Records, folder: Path) -> Iterator[str]:
    """Measure a server of another revision and one of this in turns, and write what each took."""
    databases = {"old": options.old_database or options.database, "new": options.database}
    checkouts = {"old": options.old.absolute(), "new": None}
    with ExitStack() as opened:
        servers, seconds, resident = {}, defaultdict[tuple[str, str], list[float]](list), {}
        for name, database in databases.items():
            (folder / name).mkdir()
            server = Serving([database], folder / name, *engine_options(options), checkout=checkouts[name])
            servers[name] = opened.enter_context(server)
            time.sleep(SETTLE_SECONDS)
            resident[name] = server.look().resident / 2**20
        askers = {name: opened.enter_context(server.asker()) for name, server in servers.items()}
        asked = {name: Asked(name, database, {"max_hits": options.hits}) for name, database in databases.items()}
        for begin in range(0, len(queries), BLOCK):
            for what, work in (("search", whole_search), ("job", whole_job)):
                found = {}
                for name, asker in askers.items():
                    block = queries[begin : begin + BLOCK]
                    begun = time.perf_counter()
                    found[name] = [work(asker, asked[name], query) for query in block]
                    seconds[what, name].append((time.perf_counter() - begun) / len(block))
                assert [hits_in(each) for each in found["old"]] == [hits_in(each) for each in found["new"]]
        for _ in range(3):
            for name, server in servers.items():
                part = together(options, queries, server, asked[name])
                assert part["answered"] == len(queries)
                seconds["clients", name].append(part["wall"])
    shown = {"search": (1e3, "ms"), "job": (1e3, "ms"), "clients": (1, f"s, {options.clients} clients")}
    rows = [
        [f"{what}, {unit}", *(f"{factor * statistics.median(seconds[what, name]):.2f}" for name in databases),
         f"{statistics.median(seconds[what, 'new']) / statistics.median(seconds[what, 'old']):.2f}"]
        for what, (factor, unit) in shown.items()
    ]  # fmt: skip
    rows.append(["idle memory, MiB", *(f"{each:.0f}" for each in resident.values())])
    rows[-1].append(f"{resident['new'] / resident['old']:.2f}")
    yield from table(["medians", "old", "new", "new / old"], rows)


def whole_search(asker: Asker, asked: Asked, query: tuple[str, str]) -> bytes:
    """Search, and return the report."""
    answer = asker.ask(asked.path, asked.body(query))
    assert answer.status == 200, answer.body
    return answer.body


def whole_job(asker: Asker, asked: Asked, query: tuple[str, str]) -> bytes:
    """Submit a job, wait for its end, and return its report."""
    submitted = asker.ask(f"{asked.api}/jobs?wait=60", asked.body(query))
    assert submitted.status == 202, submitted.body
    answer = asker.ask(f"{asked.api}/jobs/{submitted.json()['id']}/results?format=json")
    assert answer.status == 200, answer.body
    return answer.body


def hits_in(report: bytes) -> object:
    """Return the hits of a report, which says of its database what revisions say differently."""
    return json.loads(report)["BlastOutput2"][0]["report"]["results"]["search"]["hits"]


def latency_lines(found: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Write the part ``latency``."""
    for part in found:
        scan = statistics.median(part["seconds"]["scan"])
        rows = []
        for name, seconds in part["seconds"].items():
            shown = [statistics.median(seconds), percentile(seconds, 0.9), percentile(seconds, 0.99), max(seconds)]
            rows.append([NAMES[name], *(f"{1e3 * each:.1f}" for each in shown), f"{shown[0] / scan:.2f}"])
        yield f"One client, {part['asked']}: {part['hits']:.0f} hits in the median."
        yield ""
        yield from table(["", "median ms", "90 %", "99 %", "longest", "times the scan"], rows)
        yield ""


def together_lines(found: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Write the part ``together``."""
    rows = []
    for part in found:
        seconds = part["seconds"] or [float("nan")]
        rows.append([
            part["asked"], f"{part['answered']} of {part['searches']}", f"{part['wall']:.2f}",
            f"{statistics.median(seconds):.2f} ({max(seconds):.2f})", f"{part['answered'] / part['wall']:.1f}",
            f"{part['cells'] / max(part['scoring_seconds'], 1e-9) / 1e9:,.0f}",
            f"{part['cells'] / part['wall'] / 1e9:,.0f}",
        ])  # fmt: skip
    if found:
        yield f"{found[0]['clients']} clients at once."
        yield ""
        yield from table(
            [
                "searches", "answered", "s in all", "s for an answer (longest)", "answers a second",
                "GCUPS by the engine's clock", "GCUPS by the wall's",
            ],
            rows,
        )  # fmt: skip
        yield ""


def verdicts(found: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """Say what differs or is lost, and what was aimed at beside what was reached."""
    parts = [part for all_of_a_kind in found.values() for part in all_of_a_kind]
    yield f"Answers that differ from the command line's: {sum(part['differing'] for part in parts)}."
    for part in found["together"]:
        lost = part["searches"] - part["answered"]
        yield (
            f"{part['asked']}, {part['clients']} clients: {lost} lost, {part['told_to_wait']} told to ask later."
            + "".join(f" {error}" for error in part["errors"])
        )
    for part in found["latency"]:
        server, scan = part["seconds"]["server"], statistics.median(part["seconds"]["scan"])
        median, last = 1e3 * statistics.median(server), 1e3 * percentile(server, 0.99)
        yield (
            f"{part['asked']}: median {median:.1f} ms (GPU: at most {MEDIAN_MS:.0f}), 99th percentile {last:.1f} ms "
            f"(GPU: {LAST_MS:.0f}), {median / 1e3 / scan:.2f} times the scan (two CPU cores: {MOST_SCANS})"
        )
    for part in found["together"]:
        sum_of_all = part["cells"] / max(part["scoring_seconds"], 1e-9) / 1e9
        yield f"{part['asked']}: {sum_of_all:,.0f} GCUPS by the engine's clock (GPU: at least {SUM_GCUPS:,.0f})"


def measured(options: argparse.Namespace, folder: Path) -> tuple[list[str], dict[str, Any], bool]:
    """Measure the parts that are asked for; return lines, numbers, and whether all is right."""
    with Database.open(options.database) as database:
        queries = cut_queries(database, options.queries)
        about = f"{options.database.name}: {len(database):,} subjects, {database.n_residues:,} residues"
    asked = [
        Asked(name, options.database, {"max_hits": options.hits, **more})
        for name, more in KINDS_OF_SEARCHES.items() if name in options.kinds
    ]  # fmt: skip
    for one in asked:
        one.answer_by_command(queries, folder, "--engine", options.engine)
        say(f"{one.name}: the command line's output is there")
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in PARTS}
    with Serving([options.database], folder, *engine_options(options)) as server:
        say(f"the server is ready after {server.start_seconds:.1f} s")
        for name, measure, shown in (("latency", latency, latency_lines), ("together", together, together_lines)):
            for one in asked if name in options.only else ():
                found[name].append(measure(options, queries, server, one))
                say("\n".join([f"{name}, {one.name}: done", *shown(found[name][-1:])]))  # a run may be cut short
    lines = [
        f"{about}; {len(queries)} queries, {residues(queries):,} residues, at most {options.hits} hits of each; "
        f"engine {options.engine}",
        "", *latency_lines(found["latency"]), *together_lines(found["together"]), *verdicts(found),
    ]  # fmt: skip
    parts = [part for all_of_a_kind in found.values() for part in all_of_a_kind]
    lost = sum(part["searches"] - part["answered"] for part in found["together"])
    return lines, found, not lost and not any(part["differing"] for part in parts)


def engine_options(options: argparse.Namespace) -> list[object]:
    """Return the options of ``swsearch serve`` for the engine."""
    threads = [] if options.threads is None else ["--threads", options.threads]
    return ["--engine", options.engine, *threads]


def parts_named(text: str) -> list[str]:
    """Read --only."""
    names = text.split(",")
    if unknown := [name for name in names if name not in PARTS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r}, expected some of {','.join(PARTS)}")
    return names


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("database", type=Path, help="made by swsearch db build")
    parser.add_argument("--engine", default="cpu", help="what scores, default %(default)s")
    parser.add_argument("--threads", type=int, help="of the engine, default: one for each processor")
    parser.add_argument("--queries", type=int, default=500, help="different ones, default %(default)s")
    parser.add_argument("--hits", type=int, default=100, help="of a query, at most; default %(default)s")
    parser.add_argument("--clients", type=int, default=100, help="at once, default %(default)s")
    parser.add_argument(
        "--kinds", nargs="+", choices=list(KINDS_OF_SEARCHES), default=list(KINDS_OF_SEARCHES), help="default: both"
    )
    parser.add_argument("--only", type=parts_named, default=list(PARTS), metavar="PART,...", help="default: both")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="of mixed load, instead of the other parts")
    parser.add_argument("--old", type=Path, metavar="CHECKOUT", help="compare with the server of another revision")
    parser.add_argument("--old-database", type=Path, metavar="FILE", help="made by that revision")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    options = parser.parse_args()
    lines = [*heading(__file__, ("numpy", "fastapi", "uvicorn")), ""]
    with tempfile.TemporaryDirectory(prefix="swsearch-server-") as name:
        if options.old is not None:
            with Database.open(options.database) as database:
                queries = cut_queries(database, options.queries)
            more, numbers, is_right = list(beside_old(options, queries, Path(name))), {}, True
        elif options.soak is None:
            more, numbers, is_right = measured(options, Path(name))
        else:
            with Database.open(options.database) as database:
                queries = cut_queries(database, min(options.queries, 100))
            more, numbers, is_right = soaked(
                options.database, queries, 60 * options.soak, Path(name), engine_options(options)
            )
    finish([*lines, *more], options.out)
    if options.json is not None:
        options.json.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    sys.exit(not is_right)


if __name__ == "__main__":
    main()
