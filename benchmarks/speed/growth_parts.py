"""What the parts of a search cost: measured on this machine's CPU, and read from the results of a GPU.

Parts that are measured are the stages of a search, each by itself with one thread. Processor time is taken, which
others at work on the machine disturb little, of calls of the extension, which any number of threads divide, and of
all else, which Python does alone.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.speed.growth_model import Parts, Work
from benchmarks.speed.jobs import spread
from benchmarks.support.common import Records, write
from benchmarks.support.scanning import batch_of
from benchmarks.support.timing import say
from swsearch.backends.local import LocalBackend
from swsearch.db import Database
from swsearch.engines import create_engine
from swsearch.engines.cpu import extension
from swsearch.inputs import read_queries
from swsearch.pipeline import null_models as nulls
from swsearch.pipeline.batch import Batch
from swsearch.pipeline.evalues import MOST_AT_ONCE, assign_evalues
from swsearch.pipeline.null_models import REVERSED
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.ranking import Selection, merge
from swsearch.pipeline.search import Search
from swsearch.report import create_writer

RESULTS = Path(__file__).resolve().parent.parent / "results"

Measured = dict[str, float]
"""Seconds and numbers, by name."""

TASKS = 500
"""Tasks that a bare cluster is given."""

PAYLOAD = 20_000
"""Bytes of a task's payload and of its result: a group of queries, and what was selected."""

COLLECTED = "devices_two.txt"
"""Has scans beside the time of their kernels."""

PARTS_MERGED = 4
"""Parts that selections are cut into before they are merged again."""


def shortest(work: Callable[[], object], turns: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the shortest seconds of a call's turns: others at work on the machine only make it longer."""
    found = []
    for _ in range(turns):
        begun = clock()
        work()
        found.append(clock() - begun)
    return min(found)


def processor_seconds(work: Callable[[], object], turns: int) -> float:
    """Return the least processor seconds of a call's turns, of all threads: a busy machine disturbs them little."""
    return shortest(work, turns, time.process_time)


class Clock:
    """Stands in for the extension, and adds up the processor seconds of its calls; all others are Python's.

    Parameters
    ----------
    module : module
        The extension.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self.inside = 0.0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if not callable(found) or isinstance(found, type):
            return found

        def timed(*given: Any, **named: Any) -> Any:
            begun = time.process_time()
            try:
                return found(*given, **named)
            finally:
                self.inside += time.process_time() - begun

        return timed

    def divided(self, work: Callable[[], object], turns: int) -> Measured:
        """Return processor seconds of a call, in the extension and outside, of the turn with the least of both."""
        found = []
        for _ in range(turns):
            before, begun = self.inside, time.process_time()
            work()
            inside = self.inside - before
            found.append((time.process_time() - begun - inside, inside))
        outside, inside = min(found, key=sum)
        return {"parallel": inside, "serial": outside}


class Copies:
    """Counts the shuffled copies that rating asks for.

    Parameters
    ----------
    score : callable
        `swsearch.pipeline.null_models.score_shuffled`, in whose place it stands.
    """

    def __init__(self, score: Callable[..., Any]) -> None:
        self._score = score
        self.rated = self.copies = 0
        self.cells = self.squares = 0.0

    def __call__(self, queries: Any, sequences: Any, pairs: Any, copies: range, *more: Any) -> Any:
        """Score, and count."""
        rows = np.array([len(query) for query in queries])[pairs[:, 0]]
        self.rated += len(pairs) if copies.start == REVERSED else 0  # of each, the reversed copy comes first
        self.copies += len(pairs) * len(copies)
        self.cells += float((rows * sequences.lengths[pairs[:, 1]]).sum()) * len(copies)
        self.squares += float((rows * rows).sum()) * len(copies)
        return self._score(queries, sequences, pairs, copies, *more)


def measured_start(folder: Path, turns: int) -> float:
    """Return the processor seconds of a command that has next to nothing to search, one thread's."""
    path = write(folder / "one.fasta", [("one", "MKVLAAGIVGLCAKWW")])
    asked = ["search", path, path, "--engine", "cpu", "--threads", "1", "--quiet", "-o", folder / "o.tsv"]
    line = [sys.executable, "-m", "swsearch", *map(str, asked)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    found = []
    for _ in range(turns):
        before = os.times()
        subprocess.run(line, check=True, env=environment)
        after = os.times()
        found.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(found)


def measured_read(database: Path, turns: int) -> float:
    """Return the processor seconds of one thread to read a byte of residues that is in the page cache."""
    with Database.open(database) as opened:

        def read() -> None:
            for _ in opened.chunks(64 << 20):
                pass

        return processor_seconds(read, turns + 1) / opened.residue_bytes


def measured_stages(database: Path, queries: Path, turns: int) -> dict[str, Any]:
    """Return what one thread found, all queries at once, and the processor seconds of each stage by itself."""
    asked = read_queries(queries)
    clock, copies = Clock(extension.load()), Copies(nulls.score_shuffled)
    with (
        create_engine("cpu", threads=1) as engine,
        Database.open(database) as opened,
        closing(Search(asked, SearchOptions(), LocalBackend(opened, engine, threads=1))) as search,
    ):
        session = search.session
        prepared = session.prepare(asked)
        begun = time.process_time()
        pending = session.select(prepared)
        pending.wait()
        selections = pending.selections()
        scan = time.process_time() - begun
        selected = batch_of(search, asked, selections)

        def rated() -> Batch:
            return next(assign_evalues([selected], search.criteria, session.pairs))

        with patch.object(nulls, "score_shuffled", copies):
            hits = rated()
        with patch.object(extension, "load", lambda: clock):
            found = {
                "prepare": clock.divided(lambda: session.prepare(asked), turns),
                "rate": clock.divided(rated, turns),
                "align": clock.divided(lambda: list(search.results_of([hits], aligned=True)), turns),
            }
        lengths, n = opened.length_runs.values, opened.length_runs.counts
        mean = float((lengths * n).sum() / n.sum())
        found["found"] = {
            "scan": scan, "write": _written(search, hits, turns),
            "merge": _merged(selections, turns),
            "query_lengths": [len(query.codes) for query in asked], "residues": opened.n_residues,
            "spread": float((lengths.astype(float) ** 2 * n).sum() / n.sum()) / mean**2,
            "hits": [len(each.candidates) for each in hits.selections],
            "candidates": [len(each.candidates) for each in selections],
            "rated": copies.rated, "copies": copies.copies, "cells": copies.cells, "squares": copies.squares,
        }  # fmt: skip
    return found


def _written(search: Search, hits: Batch, turns: int) -> float:
    """Return the processor seconds to write a table of what was found."""
    results = [result for results in search.results_of([hits], aligned=True) for result in results]

    def written() -> None:
        writer = create_writer("6", io.StringIO())
        writer.begin(search.run)
        for result in results:
            writer.write(result)
        writer.end()

    return processor_seconds(written, turns)


def _merged(selections: Sequence[Selection], turns: int) -> float:
    """Return the processor seconds to unpack and merge selections that came in parts."""
    parts = [
        pickle.dumps([
            replace(each, candidates=each.candidates[each.candidates.subjects % PARTS_MERGED == part])
            for each in selections
        ])
        for part in range(PARTS_MERGED)
    ]  # fmt: skip

    def together() -> None:
        taken = [pickle.loads(data) for data in parts]
        for of_query in zip(*taken, strict=True):
            merge(of_query)

    return processor_seconds(together, turns)


def _echo(payload: bytes) -> bytes:
    return payload


def measured_tasks(turns: int) -> Measured:
    """Return the seconds of a bare Dask cluster for a task that does nothing, and to connect to it."""
    from distributed import Client, LocalCluster, wait

    payload = bytes(PAYLOAD)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:  # type: ignore[no-untyped-call]
        program = (
            "import sys, time; begun = time.perf_counter()\n"
            "from distributed import Client\n"
            "client = Client(sys.argv[1]); print(time.perf_counter() - begun); client.close()"
        )
        line = [sys.executable, "-c", program, cluster.scheduler_address]
        connect = min(float(subprocess.check_output(line, text=True)) for _ in range(turns))
        with Client(cluster) as client:  # type: ignore[no-untyped-call]

            def run() -> None:
                flight = []
                for _ in range(TASKS):
                    flight.append(client.submit(_echo, payload, pure=False))
                    if len(flight) == 4:
                        wait(flight, return_when="FIRST_COMPLETED")
                        flight = [each for each in flight if not each.done() or each.result() is None]

            return {"task": shortest(run, turns) / TASKS, "start_cluster": connect}


def measure(database: Path, proteins: Records, n_queries: int, turns: int) -> dict[str, Any]:
    """Measure every part of this machine; a minute or two, most of it to score the queries."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        queries = write(folder / "queries.fasta", spread(proteins, n_queries))
        found: dict[str, Any] = {"start": measured_start(folder, turns)}
        say(f"start: {found['start']:.2f} s")
        found["read"] = measured_read(database, turns)
        found |= measured_stages(database, queries, turns)
        for name in ("found", "prepare", "rate", "align"):
            say(f"{name}: " + ", ".join(f"{key} {value}" for key, value in found[name].items()))
    found |= measured_tasks(turns)
    say(f"a task of a bare cluster: {found['task'] * 1e3:.2f} ms")
    return found


def parts_of(measured: dict[str, Any], gpu: dict[str, Any]) -> Parts:
    """Return the parts of a search.

    Parameters
    ----------
    measured : dict
        What `measure` returned.
    gpu : dict
        What `gpu.json` holds.
    """
    found = measured["found"]
    lengths, hits, rated = found["query_lengths"], sum(found["hits"]), found["rated"]
    about, load, batch, command = gpu["about"], gpu["load"], gpu["batch"], gpu["command"]
    searched = next(float(each[1]) for line in command["verbose"] if (each := re.search(r", ([\d.]+) s, ", line)))
    kernels, scan = (
        number(row[2]) for row in tables_of(COLLECTED) if row[0] == "1,000 queries, resident" and row[1] != "command"
    )
    here, there = "measured here, processor time", "gpu.json"
    return Parts(
        start_cpu=measured["start"],
        start_gpu=command["seconds"] - searched,
        start_cluster=measured["start_cluster"],
        read=measured["read"],
        copy=load["copy_seconds"] / about["residue_bytes"],
        cpu_cells=sum(lengths) * found["residues"] / found["scan"],
        gpu_cells=batch["gcups"] * 1e9,
        gpu_streamed=gpu["streamed"]["kernel_speed"],
        gpu_memory=float(about["device_memory"]),
        collect=(scan - kernels) / 1000 / about["residues"],
        prepare=Work(*(measured["prepare"][each] / len(lengths) for each in ("parallel", "serial"))),
        rate=measured["rate"]["serial"] / rated,
        copy_cells=found["cells"] / measured["rate"]["parallel"],
        rounds=rated / sum(min(MOST_AT_ONCE, each) for each in found["candidates"]),
        copies=found["copies"] / rated,
        alike=found["cells"] / found["squares"],
        align=Work(*(measured["align"][each] / hits for each in ("parallel", "serial"))),
        write=found["write"] / hits,
        merge=found["merge"] / sum(found["candidates"]),
        task=measured["task"],
        query_length=sum(lengths) / len(lengths),
        query_square=sum(n * length**2 for n, length in zip(found["hits"], lengths, strict=True)) / hits,
        spread=found["spread"],
        hits=tuple(found["hits"]),
        candidates=tuple(found["candidates"]),
        hits_in=found["residues"],
        bytes_per_residue=about["residue_bytes"] / about["residues"],
        sources={
            "start_cpu": f"{here}: a command with nothing to search",
            "start_gpu": f"{there}: a command, less what it says that its search took",
            "start_cluster": "measured here: connecting to a Dask cluster",
            "read": f"{here}: `Database.chunks`, page cache",
            "copy": f"{there}: file to device, 16 processors",
            "cpu_cells": f"{here}: a scan by one thread",
            "gpu_cells": f"{there}: all queries at once, resident",
            "gpu_streamed": f"{there}: streamed through 100 MiB",
            "gpu_memory": f"{there}: the device",
            "collect": f"{COLLECTED}: scan less kernels, 1,000 queries on one device",
            "prepare": f"{here}: in the extension, and outside of it",
            "rate": f"{here}: outside of the extension",
            "copy_cells": f"{here}: in the extension, while rating",
            "rounds": "counted here, while rating, at most 500 hits",
            "copies": "counted here, while rating",
            "alike": "counted here, while rating",
            "align": f"{here}: in the extension, and outside of it",
            "write": f"{here}: format 6",
            "merge": f"{here}: selections in {PARTS_MERGED} parts",
            "task": "measured here: a bare Dask cluster of 2 local workers",
            "query_length": "queries evenly spread over Swiss-Prot",
            "query_square": "the same, weighted by their hits",
            "spread": "all proteins of Swiss-Prot",
            "hits": "counted here: queries evenly spread over Swiss-Prot",
            "candidates": "counted here: the same",
            "hits_in": "Swiss-Prot",
            "bytes_per_residue": f"{there}: the database's padding",
        },
    )


def read_json(name: str) -> dict[str, Any] | None:
    """Return what a committed file of numbers holds; None where it is not there."""
    path = RESULTS / name
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def tables_of(name: str) -> list[list[str]]:
    """Return the rows of all tables of a committed report, headings included; none where it is not there."""
    path = RESULTS / name
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]


def number(text: str) -> float:
    """Return the number that a cell begins with, such as that of ``5.83 (5.67 - 5.83)``."""
    return float(text.split(maxsplit=1)[0].replace(",", ""))
