"""Whether `swsearch serve` stands whatever is sent to it.

A server over two tiny databases is sent, to every route, requests that are made from seeds: usable and unusable
options, hostile paths, headers, bodies, sequence files, methods and framing. Every answer is judged: no status from
500 on but 503 and 507, every refusal in one of our shapes, no header or markup of the request's, no path or stack of
the server's. With --schemathesis, Schemathesis asks what the API's description makes of it, too. Then come
connections that are slow or broken, thousands at a time, while a client goes on searching; and a server that is
killed again and again while jobs are submitted, and must have lost none. At the end the server must be as it was:
ready, nothing in its log, no file outside its folder, its threads and descriptors back.

Needs: pip install 'swsearch[server]' h5py, and schemathesis for --schemathesis. Two cores: with 10,000 requests of
       each endpoint about an hour.
Run:   python -m benchmarks.agreement.server_fuzz --each 10000 --connections 10000 --kills 100 --schemathesis 100
           [--out benchmarks/results/server_fuzz.txt]
One:   python -m benchmarks.agreement.server_fuzz --only "POST /api/v1/search" --each 1 --seed 1234
Exit code 1 if anything is wrong.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.agreement import fuzz_connections, fuzz_kills
from benchmarks.agreement.fuzz_judging import Sender, Tally
from benchmarks.agreement.fuzz_requests import ENDPOINTS, Known, request_of
from benchmarks.support.common import arguments, finish, heading, table
from benchmarks.support.serving import API, Look, Serving
from benchmarks.support.timing import say

SENDERS = 3
"""Connections that send at a time to a server."""

SHOWN = 60
"""What is wrong that is printed."""

QUIET_SECONDS = 60.0
"""In which connections and jobs must have ended after the last request."""

MOST_GROWN = 128 << 20
"""Bytes that the server may hold more after all requests than after half of them, when its caches are full."""

SUBJECTS = {
    "alpha": "MKVLAAGIVGWWHHKDEFRTYPCNQSMKVLAAGIVGWWHHKDEFRTYPCNQS",
    "beta": "MKVLAAGIVGWWHHKDEFRTAPCNQSMKVLSAGIVGWYHHKDEFRTYPCNQS",
    "gamma": "GSTPLDDEWRNKYFVQHACMILGSTPLDDEWRNKYFVQHACMILGSTPLDDE",
    "delta": "MKILAAGLVGWHHKDEFRSYPCNQAGSTPLDDEWRNKYFVQHACMIL",
}


def build(folder: Path) -> list[Path]:
    """Build the databases ``tiny`` and ``two``; what a database says of its source is the name that it was given."""
    made = []
    for name, number in (("tiny", 4), ("two", 2)):
        fasta = folder / f"{name}.fasta"
        fasta.write_text("".join(f">{each} {each}\n{SUBJECTS[each]}\n" for each in [*SUBJECTS][:number]))
        line = [sys.executable, "-m", "swsearch", "db", "build", fasta.name, "-o", f"{name}.h5", "--quiet"]
        subprocess.run(line, check=True, cwd=folder)
        made.append(folder / f"{name}.h5")
    return made


def known_to(serving: Serving) -> Known:
    """Have jobs done, of a client that no hostile request can pass for, and return what may be asked for."""
    import http.client
    import json

    headers = {"Cookie": f"swsearch={os.urandom(16).hex()}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=60)
    found = []
    for queries in (f">a\n{SUBJECTS['alpha']}\n", f">a\n{SUBJECTS['alpha']}\n>b\n{SUBJECTS['gamma']}\n"):
        stated = {"database": "tiny", "queries": queries, "title": "known", "outputs": ["json", "profile json"]}
        connection.request("POST", f"{API}/jobs?wait=60", json.dumps(stated), headers)
        told = json.loads(connection.getresponse().read())
        assert told["state"] == "done", told
        found.append(told["id"])
    connection.request("GET", "/", headers=headers)
    page = connection.getresponse().read().decode()
    static = re.search(r'"(/static/[^"]+)"', page)
    connection.close()
    return Known(found, serving.port, static[1] if static else "/static/x/page.css")


class Fuzz:
    """Hostile requests of all endpoints.

    Parameters
    ----------
    serving : Serving
        The server.
    folders : sequence of bytes
        Names that no answer may tell.
    """

    def __init__(self, serving: Serving, folders: Sequence[bytes]) -> None:
        self.serving, self.tally, self._folders = serving, Tally(), folders
        self._known = known_to(serving)
        self.seconds = 0.0

    def run(self, endpoints: Sequence[tuple[str, str]], seeds: range) -> None:
        """Send a request of each endpoint for each seed; endpoints take turns. Wait until all has come to rest."""
        begun = time.monotonic()
        cases = ((seed, endpoint) for seed in seeds for endpoint in endpoints)
        guard = threading.Lock()
        n_sent = 0

        def work() -> None:
            nonlocal n_sent
            sender = Sender(self.serving.port, self.tally, self._folders)
            while True:
                with guard:
                    case = next(cases, None)
                    n_sent += 1
                    if n_sent % 10_000 == 0:
                        rate = n_sent / (time.monotonic() - begun)
                        say(f"{n_sent:,} requests, {rate:.0f} a second, {len(self.tally.wrong)} wrong")
                if case is None or self.serving.process.poll() is not None:
                    break
                recent = [identifier for identifier, _ in list(self.tally.recent)[-5:]]
                known = Known([*self._known.identifiers, *recent], self._known.port, self._known.static)
                sender.send(request_of(case[1], case[0], known), case[0])
            sender.close()

        threads = [threading.Thread(target=work) for _ in range(SENDERS)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.seconds += time.monotonic() - begun
        wait_for_rest(self.serving)
        if self.serving.process.poll() is not None:
            self.tally.wrong.append(f"the server ended: {self.serving.last_words()}")


def rows_of(fuzzes: Sequence[Fuzz]) -> list[list[object]]:
    """Return rows of a table: endpoints and how many requests had which answer."""
    summed: dict[tuple[str, str], Counter[str]] = {}
    for fuzz in fuzzes:
        for endpoint, counts in fuzz.tally.statuses.items():
            summed.setdefault(endpoint, Counter()).update(counts)
    found: list[list[object]] = []
    for endpoint, counts in sorted(summed.items(), key=lambda item: item[0][::-1]):
        answers = ", ".join(f"{status}: {number:,}" for status, number in sorted(counts.items()))
        found.append([" ".join(endpoint), sum(counts.values()), answers])
    return found


def run_all(fuzzes: Sequence[Fuzz], endpoints: Sequence[tuple[str, str]], seeds: range) -> None:
    """Send a part of the seeds to each server, all at a time."""
    threads = [
        threading.Thread(target=fuzz.run, args=(endpoints, seeds[place :: len(fuzzes)]))
        for place, fuzz in enumerate(fuzzes)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def quiet_look(serving: Serving, before: Look | None = None) -> Look:
    """Return what the server holds once it is at rest, or has not come to it in time."""
    latest = time.monotonic() + QUIET_SECONDS
    while True:
        look = serving.look()
        if before is None or look.descriptors <= before.descriptors or time.monotonic() > latest:
            return look
        time.sleep(0.2)


def wait_for_rest(serving: Serving) -> None:
    """Wait until no job is queued or runs."""
    latest = time.monotonic() + QUIET_SECONDS
    while time.monotonic() < latest:
        with serving.asker() as asker:
            text = asker.ask("/metrics").body.decode()
        if not re.search(r'^swsearch_jobs\{state="(queued|running)"\} [1-9]', text, re.MULTILINE):
            return
        time.sleep(0.2)


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """Return all files but the servers' with sizes and times."""
    files = [each for each in folder.rglob("*") if each.is_file() and not each.is_relative_to(folder / "served")]
    return {str(each.relative_to(folder)): (each.stat().st_size, each.stat().st_mtime_ns) for each in files}


def of_schemathesis(serving: Serving, number: int, folder: Path) -> tuple[list[str], list[str]]:
    """Let Schemathesis ask; return what is told of it, and what is wrong."""
    program = Path(sys.executable).with_name("schemathesis")
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    line = [
        str(program), "run", f"http://127.0.0.1:{serving.port}{API}/openapi.json", "--max-examples", str(number),
        "--checks", checks, "--seed", "1", "--no-color", "--generation-database", "none",
    ]  # fmt: skip
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=folder)
    told = [row.rstrip() for row in done.stdout.splitlines() if row.strip()]
    if done.returncode == 0:
        return told[-12:], []
    return told[-12:], [f"schemathesis: exit code {done.returncode}", *told[-150:]]


def fuzzed(options: Any, folder: Path, databases: list[Path]) -> tuple[list[str], list[str]]:
    """Send everything to some servers; return lines of the report, and what is wrong."""
    endpoints = [each for each in ENDPOINTS if not options.only or " ".join(each) == options.only]
    seeds = range(options.seed, options.seed + options.each)
    first = max(1, options.each // 2)
    told = [str(folder).encode(), str(Path(__file__).parents[2]).encode()]
    (folder / "served").mkdir()
    with contextlib.ExitStack() as servers:
        servings = [servers.enter_context(served(databases, folder / f"served/{n}")) for n in range(options.servers)]
        outside = tree(folder)
        fuzzes = [Fuzz(serving, told) for serving in servings]
        run_all(fuzzes, endpoints, seeds[:first])
        before = [quiet_look(each) for each in servings]
        run_all(fuzzes, endpoints, seeds[first:])
        rows = rows_of(fuzzes)
        total = sum(int(str(row[1])) for row in rows)
        lines = [f"{total:,} requests in {max(each.seconds for each in fuzzes):,.0f} s by {len(fuzzes)} servers; "
                 "left: no whole request, not answered before the client went", "",
                 *table(["endpoint", "requests", "answers"], rows)]  # fmt: skip
        wrong = [each for fuzz in fuzzes for each in fuzz.tally.wrong]
        more, broken = others(options, servings[0], folder / "served")
        lines, wrong = lines + more, wrong + broken
        after = [quiet_look(each, look) for each, look in zip(servings, before, strict=True)]
        for serving, one, other in zip(servings, before, after, strict=True):
            wrong += _left(serving, one, other)
        looks = [("after half of the requests", before), ("at the end", after)]
        lines += ["", *table(["servers", "memory, MiB", "threads", "descriptors"], [
            [name, *(", ".join(map(str, each)) for each in zip(*((look.resident >> 20, look.threads, look.descriptors)
                                                                 for look in found), strict=True))]
            for name, found in looks
        ])]  # fmt: skip
    if changed := set(tree(folder).items()) ^ set(outside.items()):
        wrong.append(f"files outside the servers' folders: {sorted(changed)[:10]}")
    said = "".join(serving.said.read_text(errors="replace") for serving in servings)
    if "Traceback" in said or "error " in said:
        wrong.append(f"the log: {said[-3000:]}")
    lines.append(f"the servers' logs: {len(said.splitlines())} lines")
    return lines, wrong


def served(databases: list[Path], folder: Path) -> Serving:
    """Start a server in a folder of its own."""
    folder.mkdir()
    return Serving(databases, folder, "--engine", "cpu", "--threads", 1, "--workers", 2)


def others(options: Any, serving: Serving, folder: Path) -> tuple[list[str], list[str]]:
    """Let Schemathesis ask a server, and broken connections come; return lines of the report, and what is wrong."""
    lines, wrong = [], []
    if options.schemathesis:
        told, broken = of_schemathesis(serving, options.schemathesis, folder)
        lines += ["", f"schemathesis, {options.schemathesis} examples an operation:", *told]
        wrong += broken
    if options.connections:
        told, broken = fuzz_connections.run(serving, options.connections)
        lines += ["", *told]
        wrong += broken
    wait_for_rest(serving)
    return lines, wrong


def _left(serving: Serving, before: Look, after: Look) -> list[str]:
    found = []
    with serving.asker() as asker:
        for path in ("ready", "health"):
            if (status := asker.ask(f"{API}/{path}").status) != 200:
                found.append(f"{path}: status {status} at the end")
    if after.descriptors > before.descriptors + 8:
        found.append(f"{after.descriptors} descriptors, {before.descriptors} before")
    if after.resident > before.resident + MOST_GROWN:
        found.append(f"{after.resident >> 20} MiB, {before.resident >> 20} before")
    return found


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("--each", type=int, default=100, help="requests of each endpoint, default %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of the first, default %(default)s")
    parser.add_argument("--servers", type=int, default=2, help="that share the requests, default %(default)s")
    parser.add_argument("--only", metavar="ENDPOINT", help="such as 'GET /jobs'")
    parser.add_argument("--connections", type=int, default=0, help="slow or broken ones, default none")
    parser.add_argument("--kills", type=int, default=0, help="of the server, default none")
    parser.add_argument(
        "--schemathesis", type=int, default=0, metavar="N", help="examples an operation, default none"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swsearch-fuzz-") as made:
        folder = Path(made)
        for name in ("tmp", "home"):
            (folder / name).mkdir()
        os.environ |= {"TMPDIR": str(folder / "tmp"), "HOME": str(folder / "home"), "XDG_STATE_HOME": ""}
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH")]))
        databases = build(folder)
        lines, wrong = fuzzed(options, folder, databases)
        if options.kills:
            told, broken = fuzz_kills.run(databases, folder / "killed", options.kills, options.seed)
            lines += ["", *told]
            wrong += broken
        shutil.rmtree(folder / "served")
    report = [*heading(__file__, ["fastapi", "uvicorn", "h11", "schemathesis"]),
              f"{options.each:,} requests an endpoint from seed {options.seed}", "", *lines, "",
              f"{len(wrong)} wrong", *(f"WRONG {each}" for each in wrong[:SHOWN])]  # fmt: skip
    finish(report, options.out)
    if wrong:
        sys.exit(1)


if __name__ == "__main__":
    main()
