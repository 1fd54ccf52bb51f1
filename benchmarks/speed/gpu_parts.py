"""Measurements of `gpu.py`, one function a part; each returns plain numbers for the results file."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import swsearch
from benchmarks.support.common import ENVIRONMENT
from benchmarks.support.scanning import MAX_HITS, Scan, Seconds
from swsearch import Database
from swsearch.alphabet import PAD, PROTEIN
from swsearch.engines import create_engine
from swsearch.engines.base import Engine, Workload
from swsearch.engines.gpu.engine import GpuEngine
from swsearch.inputs import Query
from swsearch.pipeline.batch import query_groups
from swsearch.pipeline.subjects import EngineDatabase

STREAMED_MEMORY = 100 << 20
"""GPU memory where the database does not fit."""

SHORT_LENGTHS = (8, 15, 30, 60)
SHORT_AT_ONCE = 200
"""Peptides of part ``short``."""

EQUAL_SUBJECTS, EQUAL_LENGTH = 200_000, 512
EQUAL_QUERIES = (384, 1_000)
"""Sizes of part ``equal``."""

MANY_QUERIES = 1_000
"""Proteins of the database, at equal distances, that part ``jobs`` searches with."""

TITIN, KINASE, RELATIVES = "Q8WZ42", "P17612", 5_000
"""Proteins of Swiss-Prot that part ``jobs`` searches with, and how many subjects its database of one family has."""

LOAD_RUNS = 3
"""Fresh engines of part ``load``."""

SEED = 2026


@dataclass
class Setup:
    """Inputs and contenders of the measurements.

    Parameters
    ----------
    database_path, queries_path : Path
        Paths as typed.
    database : Database
        The open database.
    queries : list of Query
        All queries of the file.
    engine_name : str
        ``gpu``; others are for trying the scripts.
    runs : int
        Timed runs of each measurement.
    cudasw : list of Path, optional
        CUDASW++4.0's ``align`` and the prefix of its database.
    """

    database_path: Path
    queries_path: Path
    database: Database
    queries: list[Query]
    engine_name: str
    runs: int
    cudasw: list[Path] | None = None

    def engine(self, memory: int | None = None) -> Engine:
        """Make a fresh engine."""
        if self.engine_name != "gpu":
            return create_engine(self.engine_name)
        return GpuEngine(memory=memory)


@contextmanager
def scanning(setup: Setup, database: Database, groups: Sequence[Sequence[Query]]) -> Iterator[Scan]:
    """Open a fresh engine with room for groups of queries."""
    with setup.engine() as engine, closing(Scan(engine, database, groups)) as scan:
        yield scan


def measured(runs: Sequence[Seconds], query_residues: int, residues: int) -> dict[str, Any]:
    """Return medians, every run, and GCUPS by the medians."""
    kernel, wall = (statistics.median(getattr(run, name) for run in runs) for name in ("kernel", "wall"))
    cells = query_residues * residues
    return {
        "kernel_seconds": kernel,
        "wall_seconds": wall,
        "gcups": cells / kernel / 1e9,
        "wall_gcups": cells / wall / 1e9,
        "computing": kernel / wall,
        "kernel_runs": [run.kernel for run in runs],
        "wall_runs": [run.wall for run in runs],
    }


def rows_of(queries: Sequence[Query]) -> int:
    """Count the residues of queries."""
    return sum(len(query.codes) for query in queries)


def repeated(scan: Scan, groups: Sequence[Sequence[Query]], runs: int, residues: int) -> dict[str, Any]:
    """Time groups of queries several times, after a run that is not counted."""
    scan.run(*groups)
    rows = sum(rows_of(group) for group in groups)
    return {"length": rows, **measured([scan.run(*groups) for _ in range(runs)], rows, residues)}


def singles(setup: Setup) -> dict[str, Any]:
    """Time each query alone, in turn."""
    runs: dict[int, list[Seconds]] = {number: [] for number in range(len(setup.queries))}
    with scanning(setup, setup.database, [setup.queries]) as scan:
        for turn in range(setup.runs + 1):
            for number, query in enumerate(setup.queries):
                taken = scan.run([query])
                if turn:
                    runs[number].append(taken)
    found = []
    for query, each in zip(setup.queries, runs.values(), strict=True):
        length = len(query.codes)
        figures = measured(each, length, setup.database.n_residues)
        found.append({"id": query.identifier, "length": length, **figures})
    return {"queries": found}


def batch(setup: Setup) -> dict[str, Any]:
    """Time all queries as one group."""
    with scanning(setup, setup.database, [setup.queries]) as scan:
        return repeated(scan, [setup.queries], setup.runs, setup.database.n_residues)


def short(setup: Setup) -> dict[str, Any]:
    """Time peptides cut from the queries, one at a time and many at once."""
    generator = np.random.default_rng(SEED)
    joined = np.concatenate([query.codes for query in setup.queries])
    peptides = {}
    for length in SHORT_LENGTHS:
        starts = generator.integers(0, len(joined) - length, SHORT_AT_ONCE).tolist()
        peptides[length] = [Query(f"{length}_{n}", "", joined[at : at + length]) for n, at in enumerate(starts)]
    found = []
    with scanning(setup, setup.database, [peptides[SHORT_LENGTHS[-1]]]) as scan:
        for length, many in peptides.items():
            for queries in (many[:1], many):
                figures = repeated(scan, [queries], setup.runs, setup.database.n_residues)
                found.append({**figures, "length": length, "at_once": len(queries)})
    return {"queries": found}


def jobs(setup: Setup) -> dict[str, Any]:
    """Time jobs of all sizes, in the groups that a search makes of them."""
    database = setup.database
    numbers = [k * database.n_subjects // MANY_QUERIES for k in range(MANY_QUERIES)]
    numbers += [database.find(name)[0] for name in (TITIN, KINASE)]
    *many, titin, kinase = [Query(database.identifier(k), "", database.codes(k)) for k in numbers]
    with setup.engine() as engine:
        named = (KINASE, database.sequence(numbers[-1]))
        _, best = swsearch.score([named], database, engine=engine, top=RELATIVES)
    relatives = [(database.identifier(k), database.sequence(k)) for k in best[0].tolist()]
    one = next(query for query in setup.queries if len(query.codes) >= 250)
    asked = {
        "1 query": ([one], database, setup.runs),
        "11 queries": (setup.queries[:11], database, setup.runs),
        f"{len(setup.queries)} queries": (setup.queries, database, setup.runs),
        f"{MANY_QUERIES:,} queries": (many, database, 1),
        "titin": ([titin], database, 2),
        f"{KINASE}, a kinase, {RELATIVES:,} relatives": ([kinase], Database.from_records(relatives), 4 * setup.runs),
    }
    found = {}
    for name, (queries, subjects, runs) in asked.items():
        groups = list(query_groups(queries))
        with scanning(setup, subjects, groups) as scan:
            found[name] = repeated(scan, groups, runs, subjects.n_residues)
    return {"jobs": found}


def load(setup: Setup) -> dict[str, Any]:
    """Time the way from opening the file to all residues on the device."""
    turns = []
    for _ in range(LOAD_RUNS + 1):
        started = time.perf_counter()
        with setup.engine() as engine:
            marks = [started, time.perf_counter()]
            with Database.open(setup.database_path) as database:
                marks.append(time.perf_counter())
                groups = [[len(query.codes) for query in group] for group in query_groups(setup.queries)]
                plan = engine.plan(Workload(database.residue_bytes, database.length_runs, groups))
                loaded = EngineDatabase(engine, database, plan)
                marks.append(time.perf_counter())
                for chunk in loaded:
                    if not plan.keep_loaded:
                        loaded.release(chunk)
                if isinstance(engine, GpuEngine):
                    engine.synchronize()
                marks.append(time.perf_counter())
                loaded.close()
        turns.append(np.diff(marks).tolist())
    names = ("engine_seconds", "open_seconds", "plan_seconds", "copy_seconds")
    counted = [dict(zip(names, turn, strict=True)) for turn in turns[1:]]
    totals = [turn["open_seconds"] + turn["plan_seconds"] + turn["copy_seconds"] for turn in counted]
    medians = {name: statistics.median(turn[name] for turn in counted) for name in names}
    return {"seconds": statistics.median(totals), "total_runs": totals, **medians}


def command(setup: Setup) -> dict[str, Any]:
    """Time the whole command as a process of its own."""
    with tempfile.TemporaryDirectory(prefix="swsearch-gpu-") as folder:
        output = Path(folder) / "hits.tsv"
        words = [
            "search", setup.queries_path, setup.database_path, "--engine", setup.engine_name, "--max-hits", MAX_HITS,
            "--outfmt", "6", "-o", output, "--statistics", "published",
        ]  # fmt: skip
        line = [sys.executable, "-m", "swsearch", *map(str, words)]

        def run(more: str) -> tuple[float, str]:
            started = time.perf_counter()
            done = subprocess.run([*line, more], capture_output=True, text=True, check=False, env=ENVIRONMENT)
            taken = time.perf_counter() - started
            if done.returncode:
                sys.exit(f"{' '.join(line)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
            return taken, done.stderr

        runs = [run("--quiet")[0] for _ in range(setup.runs + 1)][1:]
        said = run("--verbose")[1].replace(str(setup.database_path), setup.database_path.name)
        n_hits = len(output.read_text().splitlines())
    return {"seconds": statistics.median(runs), "runs": runs, "hits": n_hits, "verbose": said.splitlines()}


def streamed(setup: Setup) -> dict[str, Any]:
    """Time the batch with little memory beside the resident one; both read the database from the page cache."""
    memories = {"resident": None, "streamed": STREAMED_MEMORY}
    runs: dict[str, list[Seconds]] = {name: [] for name in memories}
    notes = {}
    with setup.engine() as resident, setup.engine(STREAMED_MEMORY) as small:
        for turn in range(setup.runs + 1):
            for name, engine in zip(memories, (resident, small), strict=True):
                with closing(Scan(engine, setup.database, [setup.queries])) as scan:
                    taken = scan.run(setup.queries)
                    notes[name] = scan.note
                if turn:
                    runs[name].append(taken)
    rows, residues = rows_of(setup.queries), setup.database.n_residues
    figures = {name: {**measured(runs[name], rows, residues), "plan": notes[name]} for name in memories}
    ratios = {
        which: statistics.median(
            getattr(a, which) / getattr(b, which) for a, b in zip(runs["resident"], runs["streamed"], strict=True)
        )
        for which in ("kernel", "wall")
    }
    return {"memory": STREAMED_MEMORY, **figures, "kernel_speed": ratios["kernel"], "wall_speed": ratios["wall"]}


CUDASW_SCAN = re.compile(r"Scan time: (\S+) s, (\S+) GCUPS")


def run_cudasw(setup: Setup, passes: int) -> tuple[float, str]:
    """Return the seconds of the whole command with the queries so many times, and what it prints."""
    assert setup.cudasw is not None, "left out otherwise"
    program, database = setup.cudasw
    options = f"--db {database} --dpx --verbose --uploadFull --prefetchDBFile --top {MAX_HITS}"
    options += f" --query {setup.queries_path}" * passes
    started = time.perf_counter()
    done = subprocess.run([program, *options.split()], capture_output=True, text=True, check=True, timeout=300)
    return time.perf_counter() - started, done.stdout


def cudasw(setup: Setup) -> dict[str, Any]:
    """Time CUDASW++4.0 with the same queries and database: the whole command, and each scan after the first pass.

    It is built from its source (github.com/asbschmidt/CUDASW4; NVCC_FLAGS names the architecture), and its database
    is made by its ``makedb``. ``--dpx`` is faster than its default on devices that have these instructions.
    """
    runs = setup.runs
    commands = [run_cudasw(setup, 1)[0] for _ in range(runs)]
    found = CUDASW_SCAN.findall(run_cudasw(setup, runs + 1)[1])
    n_queries = len(found) // (runs + 1)
    counted = [found[k + n_queries :: n_queries] for k in range(n_queries)]
    seconds = [statistics.median(float(taken) for taken, _ in query) for query in counted]
    rates = [statistics.median(float(gcups) for _, gcups in query) for query in counted]
    return {
        "command_seconds": statistics.median(commands),
        "seconds": sum(seconds),
        "gcups": sum(gcups * taken for gcups, taken in zip(rates, seconds, strict=True)) / sum(seconds),
        "queries": rates,
    }


def composition(database: Database) -> npt.NDArray[np.float64]:
    """Return the share of each of the 20 amino acids."""
    counts = np.zeros(256, dtype=np.int64)
    for chunk in database.chunks(64 << 20):
        counts += np.bincount(chunk.residues.reshape(-1), minlength=256)
    assert PAD >= 20
    shares: npt.NDArray[np.float64] = counts[:20] / counts[:20].sum()
    return shares


def equal(setup: Setup) -> dict[str, Any]:
    """Time queries against made-up subjects of one length, so that none waits for a longer one."""
    generator = np.random.default_rng(SEED)
    bounds = np.round(np.cumsum(composition(setup.database)) * 65_536).astype(np.int64)
    codes = np.repeat(np.arange(20, dtype=np.uint8), np.diff(bounds, prepend=0))
    letters = np.frombuffer(PROTEIN.letters.encode(), dtype=np.uint8)[codes]

    def draw(n: int) -> npt.NDArray[np.intp]:
        return generator.integers(0, len(codes), n).astype(np.intp)

    n_subjects = EQUAL_SUBJECTS if setup.engine_name == "gpu" else EQUAL_SUBJECTS // 100
    subjects = (
        (f"equal_{number}", letters[draw(EQUAL_LENGTH)].tobytes().decode("ascii")) for number in range(n_subjects)
    )
    queries = [Query(f"query_{length}", "", codes[draw(length)]) for length in EQUAL_QUERIES]
    found = []
    with Database.from_records(subjects) as database, scanning(setup, database, [queries]) as scan:
        for group in ([queries[0]], [queries[1]], queries):
            figures = repeated(scan, [group], setup.runs, database.n_residues)
            found.append({**figures, "at_once": len(group)})
    return {"subjects": n_subjects, "subject_length": EQUAL_LENGTH, "queries": found}


def memory(setup: Setup) -> dict[str, Any]:
    """Return what the engine plans, and so allocates, for the batch."""
    found: dict[str, Any] = {}
    for name, limit in (("resident", None), ("streamed", STREAMED_MEMORY)):
        with setup.engine(limit) as engine, closing(Scan(engine, setup.database, [setup.queries])) as scan:
            plan = getattr(engine, "memory_plan", None)
            found[name] = {"limit": limit, "bytes": plan.total if plan else 0, "plan": scan.note}
    return found


PARTS: dict[str, Callable[[Setup], dict[str, Any]]] = {
    "singles": singles,
    "batch": batch,
    "jobs": jobs,
    "cudasw": cudasw,
    "load": load,
    "command": command,
    "streamed": streamed,
    "short": short,
    "equal": equal,
    "memory": memory,
}
"""In the order in which they are measured: the headline first."""
