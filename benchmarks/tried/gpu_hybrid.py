"""Measure whether the CPU should score a share of the database beside the GPU: the hybrid of CUDASW++3.0.

Tried: 16 CPU threads beside one H200. The best share, 0.5 % of the residues, makes the search 0.6 % faster
(results/gpu_hybrid.txt, with an earlier CPU engine). Not used: two engines for one search are not worth that.

For each share s the last s of the database's residues, in whole blocks, go to the CPU engine, in a thread of its own;
they are the shortest subjects, which keep a SIMD lane each. The GPU engine scores the rest. All queries are one
group, and hits are those with E <= 10, as searches have them. Wall time runs from the start until both sides are
done; s = 0 is the GPU alone. Before it, queries are prepared, the GPU's chunks stand on the device, merged as in a
search that keeps its database, and the CPU's chunk is encoded, so that the hybrid pays for nothing but the scoring.
The GPU's launch goes first: it takes a moment of Python, and the CPU's tasks would hold the interpreter.

Shares take turns within each round, in an order that is reversed every time, after a round that is not counted. Times
are medians of --runs rounds; speeds against the GPU alone are medians of the ratios within a round. Each counted
round also times the CPU engine alone on its chunk. GCUPS count residues of query and subjects, padding is no work.

Needs: an NVIDIA GPU, a database from one `swsearch db build`, a quiet machine; about two minutes with Swiss-Prot and
16 threads.
Run:   python -m benchmarks.tried.gpu_hybrid DATABASE.h5 QUERIES.fasta [--threads N]
           [--out benchmarks/results/gpu_hybrid.txt]
Exit code 1 if the hits of any share are not those of the GPU alone.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.speed.gpu_parts import rows_of
from benchmarks.speed.gpu_report import rate, spread
from benchmarks.support.common import arguments, finish, heading, table
from benchmarks.support.fingerprint import fingerprint
from benchmarks.support.scanning import SCANNED
from swsearch import Database
from swsearch.blocks import LANES, Chunk, IntArray
from swsearch.engines import create_engine
from swsearch.engines.base import Candidates, ChunkPlan, Engine, LoadedChunk, Pending, Thresholds, Workload
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.inputs import Query, read_queries
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.scorer import prepare
from swsearch.pipeline.windows import subjects_of

SHARES = [0.0, 0.01, 0.02, 0.03, 0.05]
"""What the CPU takes, unless --shares says otherwise."""

Found = list[tuple[Chunk, list[Candidates]]]
"""A chunk, and the hits of each query in it."""


class Turn(NamedTuple):
    """Seconds of one turn: both sides together, and each from its own start to its own end."""

    wall: float
    gpu: float
    cpu: float


@dataclass
class Split:
    """The database in two.

    Parameters
    ----------
    share : float
        Of the residues, as asked for.
    gpu : list of Chunk
        The longer subjects, cut as the engine wants them.
    cpu : LoadedChunk or None
        The shorter ones; None where there are none.
    turns : list of Turn
        Counted turns, in the order of the rounds.
    alone : list of float
        Seconds of the CPU engine on its chunk, with nothing beside it.
    """

    share: float
    gpu: list[Chunk]
    cpu: LoadedChunk | None
    turns: list[Turn] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)

    def median(self, name: str) -> float:
        """Return the median of a time of the turns."""
        return statistics.median(float(getattr(turn, name)) for turn in self.turns)

    def speeds(self, base: Split) -> list[float]:
        """Return how many times as fast as another split each round was."""
        return [other.wall / turn.wall for turn, other in zip(self.turns, base.turns, strict=True)]


class Hybrid:
    """Two engines, ready to score a group of queries.

    Parameters
    ----------
    gpu : Engine
        Open.
    cpu : CpuEngine
        Open.
    database : Database
        Open.
    queries : list of Query
        Scored together.
    """

    def __init__(self, gpu: Engine, cpu: CpuEngine, database: Database, queries: list[Query]) -> None:
        self.engine, self.cpu = gpu, cpu
        workload = Workload(database.residue_bytes, database.lengths, [[len(query.codes) for query in queries]])
        self.plan: ChunkPlan = gpu.plan(workload)
        cpu.plan(workload)
        criteria = Criteria.of(SCANNED, subjects_of(database, queries, SCANNED))
        by_length = [criteria.thresholds.of(len(query.codes)) for query in queries]
        self._thresholds = Thresholds(by_length, [None] * len(queries))
        self._groups = {engine: prepare(engine, queries, criteria.recurrence) for engine in (gpu, cpu)}

    def _find(self, engine: Engine, loaded: LoadedChunk) -> Pending:
        return engine.find(self._groups[engine], loaded, self._thresholds)

    def score_on_cpu(self, loaded: LoadedChunk) -> tuple[Found, float]:
        """Return the CPU engine's hits, and the seconds that it took."""
        begun = time.perf_counter()
        hits = self._find(self.cpu, loaded).wait()
        return [(loaded.chunk, hits)], time.perf_counter() - begun

    def _score_on_gpu(self, chunks: Sequence[LoadedChunk], launched: Callable[[], None]) -> Found:
        """Return the other engine's hits, with as many chunks in work as it wants; tell when the first one is."""
        found: Found = []
        pending: list[tuple[LoadedChunk, Pending]] = []

        def finish_first() -> None:
            loaded, hits = pending.pop(0)
            found.append((loaded.chunk, hits.wait()))

        for loaded in chunks:
            pending.append((loaded, self._find(self.engine, loaded)))
            if loaded is chunks[0]:
                launched()
            while len(pending) >= self.plan.in_flight:
                finish_first()
        while pending:
            finish_first()
        return found

    def run(self, split: Split) -> tuple[Turn, Found]:
        """Take a turn: load what the GPU takes, then time both sides."""
        kept = [self.engine.load(chunk) for chunk in split.gpu]
        chunks = self.engine.merge(kept)
        synchronize = getattr(self.engine, "synchronize", None)
        if synchronize is not None:
            synchronize()
        beside: list[Future[tuple[Found, float]]] = []
        with ThreadPoolExecutor(1, thread_name_prefix="hybrid") as background:
            background.submit(int).result()  # starts the thread

            def launched() -> None:
                if split.cpu is not None:
                    beside.append(background.submit(self.score_on_cpu, split.cpu))

            begun = time.perf_counter()
            found = self._score_on_gpu(chunks, launched)
            gpu = time.perf_counter() - begun
            others = [future.result() for future in beside]
            wall = time.perf_counter() - begun
        for loaded in {id(each): each for each in [*kept, *chunks]}.values():
            self.engine.release(loaded)
        both = list(chain(found, *(hits for hits, _ in others)))
        return Turn(wall, gpu, sum(seconds for _, seconds in others)), both


def some_blocks(chunk: Chunk, first: int, last: int) -> Chunk:
    """Return the blocks ``first`` to ``last`` (excluded) as a chunk, without a copy."""
    offsets = chunk.column_offsets[first : last + 1]
    lanes = slice(first * LANES, last * LANES)
    return Chunk(
        chunk.residues[offsets[0] : offsets[-1]], offsets - offsets[0], chunk.lengths[lanes], chunk.subjects[lanes]
    )


def cut(chunk: Chunk, n_blocks: int, chunk_bytes: int) -> Iterator[Chunk]:
    """Cut the first blocks of the database as it cuts itself."""
    first = 0
    while first < n_blocks:
        most = int(chunk.column_offsets[first]) + chunk_bytes // LANES
        last = int(np.searchsorted(chunk.column_offsets, most, side="right")) - 1
        last = min(max(last, first + 1), n_blocks)
        yield some_blocks(chunk, first, last)
        first = last


def first_cpu_block(chunk: Chunk, share: float) -> int:
    """Return the block from which on the residues are closest to a share; at least one is left for the GPU."""
    if not share:
        return chunk.n_blocks
    of_blocks = np.add.reduceat(chunk.lengths.astype(np.int64), np.arange(0, chunk.n_subjects, LANES))
    behind: IntArray = np.cumsum(of_blocks[::-1])[::-1]
    return 1 + int(np.argmin(np.abs(behind[1:] - share * behind[0])))


def split_at(hybrid: Hybrid, chunk: Chunk, share: float) -> Split:
    """Cut the database in two; the CPU takes in its part now."""
    block = first_cpu_block(chunk, share)
    rest = some_blocks(chunk, block, chunk.n_blocks) if block < chunk.n_blocks else None
    longer = list(cut(chunk, block, hybrid.plan.chunk_bytes))
    return Split(share, longer, None if rest is None else hybrid.cpu.load(rest))


def ordered(found: Found) -> npt.NDArray[np.int64]:
    """Return (query, subject, score) of all hits in an order that tells nothing of who found them."""
    rows = [
        np.stack(
            [np.full(len(hits.places), query), chunk.subjects[hits.places], hits.scores.astype(np.int64)], axis=1
        )
        for chunk, of_queries in found
        for query, hits in enumerate(of_queries)
    ]
    every = np.concatenate(rows).astype(np.int64)
    return every[np.lexsort(every.T[::-1])]


def measure(hybrid: Hybrid, splits: list[Split], runs: int) -> tuple[int, list[str]]:
    """Fill in the turns of each split; return the number of hits, and what differs from those of the GPU alone."""
    expected: npt.NDArray[np.int64] | None = None
    differing: set[float] = set()
    for number in range(runs + 1):
        begun = time.perf_counter()
        for split in splits if number % 2 == 0 else splits[::-1]:
            turn, found = hybrid.run(split)
            hits = ordered(found)
            expected = hits if expected is None else expected  # the first split is the GPU alone
            if not np.array_equal(hits, expected):
                differing.add(split.share)
            if number:
                split.turns.append(turn)
                if split.cpu is not None:
                    split.alone.append(hybrid.score_on_cpu(split.cpu)[1])
        kind = f"round {number}" if number else "round that is not counted"
        print(f"{kind}: {time.perf_counter() - begun:.1f} s", file=sys.stderr, flush=True)
    assert expected is not None
    return len(expected), [f"HITS DIFFER at share {percent(share)}" for share in sorted(differing)]


def percent(share: float) -> str:
    """Format a share."""
    return f"{share * 100:g} %"


def verdict(splits: Sequence[Split], threads: int) -> str:
    """Say in a sentence what the numbers say."""
    alone = splits[0]
    best = max(splits[1:], key=lambda split: statistics.median(split.speeds(alone)))
    speeds = best.speeds(alone)
    gain, faster = 100 * (statistics.median(speeds) - 1), sum(speed > 1 for speed in speeds)
    who = f"{percent(best.share)} on {threads} CPU thread{'' if threads == 1 else 's'}"
    times = f"{best.median('wall'):.3f} s where the GPU alone takes {alone.median('wall'):.3f} s"
    rounds = f"{faster} of {len(speeds)} rounds"
    if gain <= 0:
        return (
            f"No share makes the search faster: the best, {who}, takes {times}, {-gain:.1f} % slower, and was "
            f"faster in {rounds}."
        )
    if faster < len(speeds):
        return (
            f"No share is clearly faster: the best, {who}, takes {times}, {gain:.1f} % faster, but only in {rounds}."
        )
    return f"The best share, {who}, takes {times}: {gain:.1f} % faster, in {rounds}."


def report(splits: Sequence[Split], query_residues: int, residues: int) -> list[str]:
    """Return the tables."""
    base = splits[0]
    cpu_rows, rows = [], []
    for split in splits:
        wall = split.median("wall")
        rows.append(
            [
                percent(split.share), f"{wall:.3f}", rate(query_residues * residues / wall / 1e9),
                f"{split.median('gpu'):.3f}", f"{split.median('cpu'):.3f}" if split.cpu is not None else "",
                f"{statistics.median(split.speeds(base)):.3f}", spread([turn.wall for turn in split.turns]),
            ]
        )  # fmt: skip
        if split.cpu is None:
            continue
        chunk = split.cpu.chunk
        gcells = query_residues * chunk.n_residues / 1e9
        alone, beside = statistics.median(split.alone), split.median("cpu")
        cpu_rows.append(
            [
                percent(split.share), f"{chunk.n_residues / residues * 100:.3f} %", f"{chunk.n_subjects:,}",
                f"{chunk.lengths[0]:,}", f"{alone:.3f}", rate(gcells / alone), f"{beside:.3f}", rate(gcells / beside),
            ]
        )  # fmt: skip
    cpu_columns = [
        "share", "of the residues", "subjects", "longest", "alone s", "GCUPS", "beside the GPU s", "GCUPS",
    ]  # fmt: skip
    columns = [
        "share", "wall s", "GCUPS", "GPU side s", "CPU side s", "speed against GPU alone", "wall s, all runs",
    ]  # fmt: skip
    return [
        "The CPU engine on its chunk:", "", *table(cpu_columns, cpu_rows), "",
        "Both:", "", *table(columns, rows),
    ]  # fmt: skip


def shares_of(text: str) -> list[float]:
    """Read --shares; 0 is always among them, and first."""
    try:
        shares = {float(each) for each in text.split(",")}
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}, expected numbers such as 0,0.01,0.02") from error
    if not all(0 <= share < 1 for share in shares) or shares == {0.0}:
        raise argparse.ArgumentTypeError(f"{text!r}, expected shares from 0 to less than 1, and one above 0")
    return sorted(shares | {0.0})


def whole(database: Database) -> Chunk:
    """Read the database as one chunk; exit unless its subjects are all in order of length."""
    chunks: list[Chunk] = list(database.chunks(max(database.residue_bytes, 1)))
    if len(chunks) != 1 or chunks[0].n_blocks < 2:
        sys.exit(f"{database.name}: expected more than {LANES} subjects, built at once (nothing appended)")
    return chunks[0]


def about(hybrid: Hybrid, database: Database, queries: list[Query], options: argparse.Namespace) -> list[str]:
    """Return the lines that say what was measured."""
    kernels, hash_of_engine = fingerprint()
    lines = heading(__file__, ["pycuda", "numpy"])
    info = getattr(hybrid.engine, "info", None)
    if info is not None:
        lines.append(
            f"{info.name}, compute capability {'.'.join(map(str, info.capability))}, {info.multiprocessors} "
            f"multiprocessors, {info.memory / 2**30:.0f} GiB; driver for CUDA "
            f"{'.'.join(map(str, info.driver_version))}"
        )
    else:
        lines.append("NO GPU: another engine in its place, to try this script; these are no GPU results")
    query_residues = rows_of(queries)
    return [
        *lines,
        f"GPU side: {hybrid.engine.description}",
        f"CPU side: {hybrid.cpu.description}",
        f"kernels {kernels}",
        f"engine {hash_of_engine}",
        f"{options.queries.name}: {len(queries)} queries, {query_residues:,} residues; {options.database.name}: "
        f"{database.n_subjects:,} subjects, {database.n_residues:,} residues; "
        f"{query_residues * database.n_residues / 1e9:,.1f} Gcells",
    ]


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("database", type=Path, help="made by swsearch db build")
    parser.add_argument("queries", type=Path, help="FASTA")
    parser.add_argument("--threads", type=int, help="of the CPU engine, default one for each processor")
    parser.add_argument(
        "--shares", type=shares_of, default=SHARES, metavar="S,...", help="default 0,0.01,0.02,0.03,0.05"
    )
    parser.add_argument("--runs", type=int, default=3, help="counted rounds, default %(default)s")
    parser.add_argument(
        "--gpu-engine", choices=["gpu", "cpu"], default="gpu",
        help="cpu: one CPU thread in the GPU's place, to try this script; default %(default)s",
    )  # fmt: skip
    options = parser.parse_args()
    if options.runs < 1:
        parser.error(f"--runs: {options.runs}, expected at least 1")
    queries = read_queries(options.queries)
    with (
        Database.open(options.database) as database,
        create_engine("gpu") if options.gpu_engine == "gpu" else CpuEngine(1) as engine,
        CpuEngine(options.threads) as cpu,
    ):
        assert isinstance(cpu, CpuEngine)
        hybrid = Hybrid(engine, cpu, database, queries)
        if options.gpu_engine == "gpu" and not hybrid.plan.keep:
            sys.exit(f"{database.name}: does not fit the GPU's memory ({hybrid.plan.note})")
        every = whole(database)
        splits = [split_at(hybrid, every, share) for share in options.shares]
        n_hits, differing = measure(hybrid, splits, options.runs)
        lines = [
            *about(hybrid, database, queries, options),
            f"medians of {options.runs} rounds; {n_hits:,} hits with E <= 10"
            + ("" if differing else ", the same at every share"),
            *differing,
            "",
            *report(splits, rows_of(queries), database.n_residues),
            "",
            verdict(splits, hybrid.cpu.threads),
        ]
        for split in splits:
            if split.cpu is not None:
                cpu.release(split.cpu)
    finish(lines, options.out)
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
