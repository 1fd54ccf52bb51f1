"""A server that is killed at any moment, again and again, while jobs are submitted: none may be lost or changed."""

from __future__ import annotations

import http.client
import json
import random
import sqlite3
import statistics
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.support.common import swsearch
from benchmarks.support.serving import API, Asker, Serving
from benchmarks.support.timing import say

N_SUBJECTS, MOST_QUERIES = 3000, 60

MOST_ALIVE = 1.5
"""Seconds that a server lives, at most; a third is killed sooner than it is ready."""

DONE_SECONDS = 600.0
"""In which all jobs must have ended after the last start."""

LETTERS = "ARNDCQEGHILKMFPSTWYV"

DIED = "died 3 times"
"""In the reason of a job that ran when the server was killed for the third time."""


@dataclass
class Acknowledged:
    """Jobs that the server has said it has: what each was asked for, and what was read of it before a kill."""

    asked: dict[str, str] = field(default_factory=dict)
    read: dict[str, bytes] = field(default_factory=dict)


def protein(draw: random.Random) -> str:
    return "".join(draw.choices(LETTERS, k=draw.randint(50, 400)))


def build(folder: Path, draw: random.Random) -> Path:
    """Build a database of random proteins; jobs over it take a moment."""
    source = folder / "subjects.fasta"
    source.write_text("".join(f">s{number}\n{protein(draw)}\n" for number in range(N_SUBJECTS)))
    swsearch("db", "build", source, "-o", folder / "subjects.h5", "--quiet")
    return folder / "subjects.h5"


def submit(port: int, draw: random.Random, known: Acknowledged, ended: threading.Event) -> None:
    """Submit jobs, and read the results of some that are done, until the server is gone."""
    with Asker(port) as asker:
        while not ended.is_set():
            count = draw.choice([1, 1, 5, MOST_QUERIES])
            queries = "".join(f">q{number}\n{protein(draw)}\n" for number in range(count))
            try:
                asked = {"database": "subjects", "queries": queries, "outputs": ["json"]}
                answer = asker.ask_json(f"{API}/jobs", asked)
                if answer.status == 202:
                    known.asked[answer.json()["id"]] = queries
                for identifier in draw.sample([*known.asked], min(3, len(known.asked))):
                    answer = asker.ask(f"{API}/jobs/{identifier}/results?format=json")
                    if answer.status == 200:
                        assert known.read.setdefault(identifier, answer.body) == answer.body, identifier
            except (OSError, http.client.HTTPException):
                return
            ended.wait(draw.random() * 0.3)


def check_store(folder: Path) -> list[str]:
    """Say what is wrong with the table of a server that was killed."""
    path = folder / "jobs.sqlite"
    if not path.exists():
        return []
    with sqlite3.connect(path, timeout=30) as table:
        found = table.execute("PRAGMA integrity_check").fetchone()[0]
    table.close()
    return [] if found == "ok" else [f"kills: the table: {found}"]


def check_folders(folder: Path, when: str) -> list[str]:
    """Say what is wrong with the folders of jobs of a server that runs."""
    with sqlite3.connect(folder / "jobs.sqlite", timeout=30) as table:
        rows = {row[0] for row in table.execute("SELECT identifier FROM jobs")}
    table.close()
    folders = {each.name for each in (folder / "jobs").iterdir()}
    return [f"kills: {when}: folders without a job: {sorted(folders - rows)[:5]}"] if folders - rows else []


def run(databases: list[Path], folder: Path, number: int, seed: int) -> tuple[list[str], list[str]]:
    """Kill a server so many times; return lines of the report, and what is wrong."""
    draw, known = random.Random(seed), Acknowledged()
    folder.mkdir()
    database, wrong = build(folder, draw), []
    options = ("--engine", "cpu", "--threads", 1, "--max-client-jobs", 10**6, "--max-queued", 10**6)
    after = []
    for count in range(number):
        serving = Serving([database, *databases], folder, *options)
        ended = threading.Event()
        submitter = threading.Thread(target=submit, args=(serving.port, draw, known, ended))
        submitter.start()
        after.append(draw.random() * MOST_ALIVE)
        time.sleep(after[-1])
        serving.process.kill()
        serving.process.wait()
        ended.set()
        submitter.join()
        wrong += check_store(folder / "jobs")
        if (count + 1) % 10 == 0:
            say(f"{count + 1} kills, {len(known.asked):,} jobs, {len(wrong)} wrong")
    with Serving([database, *databases], folder, *options) as serving:
        wrong += check_folders(folder / "jobs", "after the last start")
        states = outcome(serving, known, wrong)
    wrong += check_store(folder / "jobs")
    told = [
        f"{number} kills, {statistics.median(after):.2f} s (median) after the server was ready, while jobs of "
        f"1 to {MOST_QUERIES} queries were submitted; {N_SUBJECTS:,} subjects",
        f"{len(known.asked):,} jobs acknowledged: {dict(states)}; {len(known.read):,} were read before a kill and "
        "have the same bytes",
    ]
    return told, wrong


def outcome(serving: Serving, known: Acknowledged, wrong: list[str]) -> Counter[str]:
    """Wait for all jobs, and hold their results against those of searches that were left alone."""
    states: Counter[str] = Counter()
    latest = time.monotonic() + DONE_SECONDS
    with serving.asker() as asker:
        for identifier, queries in known.asked.items():
            while True:
                answer = asker.ask(f"{API}/jobs/{identifier}?wait=10")
                if answer.status != 200:
                    wrong.append(f"kills: job {identifier} is lost: {answer.status} {answer.body!r}")
                    break
                stated = answer.json()
                if stated["state"] in ("queued", "running") and time.monotonic() < latest:
                    continue
                states[stated["state"]] += 1
                _judge(asker, known, stated, queries, wrong)
                break
    return states


def _judge(asker: Asker, known: Acknowledged, stated: dict[str, object], queries: str, wrong: list[str]) -> None:
    identifier = str(stated["id"])
    if stated["state"] == "failed" and DIED in json.dumps(stated["problem"]) and identifier not in known.read:
        return
    if stated["state"] != "done":
        wrong.append(f"kills: job {identifier} is {stated['state']}: {stated['problem']}")
        return
    found = asker.ask(f"{API}/jobs/{identifier}/results?format=json")
    if found.body != known.read.get(identifier, found.body):
        wrong.append(f"kills: job {identifier} has other bytes than before a kill")
    if asker.ask(f"{API}/jobs/{identifier}/outputs/0").body != found.body:
        wrong.append(f"kills: job {identifier} has written other bytes than its results")
    right = asker.ask_json(f"{API}/search?format=json", {"database": "subjects", "queries": queries})
    if found.body != right.body:
        wrong.append(f"kills: job {identifier} has other bytes than a search that was left alone")
