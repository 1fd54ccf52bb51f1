"""A server that is killed at random moments of its jobs: they go on from what was stored, with the same results."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import ROOT

from support.houses import built, built_dna, fasta, proteins
from support.serving import PATIENCE, Served, until
from swsearch.server.store import MAX_DEATHS

N_KILLS, N_SUBJECTS, N_QUERIES = 6, 1_000, 150

ASKED = [
    ("small", N_QUERIES * 2 // 3, {"iterations": 3, "evalue": 10.0}),
    ("genome", N_QUERIES, {"max_alignments": 2}),
]
"""Databases, queries and options of the jobs that run at the same time: each for some seconds, so that several files
are stored of it at the pace of a server as it is shipped."""


@contextmanager
def killed(databases: list[Path], folder: Path) -> Iterator[Served]:
    """Give a server in a process of its own, which is killed in the end."""
    line = [sys.executable, "-m", "swsearch", "serve", *map(str, databases), "--port", "0", "--engine", "cpu"]
    log = folder.with_suffix(".log")
    with log.open("wb") as stream:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen([*line, "--threads", "1", "--folder", str(folder)], stderr=stream, env=environment)
    try:
        until(lambda: b"listening on" in log.read_bytes() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield Served("", int(log.read_text().rpartition(":")[2].strip("/\n")), *[None] * 4, [])  # type: ignore
    finally:
        process.kill()
        process.wait(PATIENCE)
    assert "Traceback" not in log.read_text()
    assert "damaged" not in log.read_text()


def submitted(served: Served) -> list[str]:
    """Submit the jobs; return their identifiers."""
    found = []
    for database, n_queries, options in ASKED:
        queries = fasta(proteins(n_queries)).decode()
        reply = served.post(
            "/jobs", {"database": database, "queries": queries, "options": options, "outputs": ["15"]}
        )
        assert reply.status == 202, reply.body
        found.append(reply.json["id"])
    return found


def results(served: Served, jobs: list[str]) -> list[bytes]:
    """Wait for jobs, and return what they found as a table, and the JSON that they wrote."""
    for job in jobs:
        while (stated := served.get(f"/jobs/{job}?wait=10").json)["state"] in ("queued", "running"):
            pass
        assert stated["state"] == "done", stated
    return [served.get(f"/jobs/{job}/{what}").body for job in jobs for what in ("results?format=6", "outputs/0")]


@pytest.mark.exhaustive
def test_jobs_of_a_server_that_is_killed_at_any_moment_find_the_same(tmp_path: Path) -> None:
    """At some kills each job runs and has stored something, and the next server does the rest."""
    databases = [built(tmp_path, count=N_SUBJECTS), built_dna(tmp_path)]
    draw, n_stored, n_kills = random.Random(47), [0, 0], 0
    with killed(databases, tmp_path / "undisturbed") as served:
        begun = time.monotonic()
        right = results(served, submitted(served))
        takes = time.monotonic() - begun
    assert all(right)
    while n_kills < N_KILLS:
        folder, jobs = tmp_path / f"served{n_kills}", list[str]()
        for _ in range(MAX_DEATHS - 1):  # a job that runs at one more has failed
            with killed(databases, folder) as served:
                jobs = jobs or submitted(served)
                time.sleep(draw.random() * takes)
                for place, job in enumerate(jobs):
                    is_stored = any((folder / "jobs" / job / "checkpoint").glob("queries-*"))
                    n_stored[place] += is_stored and served.get(f"/jobs/{job}").json["state"] == "running"
            n_kills += 1
        with killed(databases, folder) as served:
            assert results(served, jobs) == right, f"after {n_kills} kills"
    assert min(n_stored) > 0
