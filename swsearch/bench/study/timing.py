"""Times of kernels, and of parasail on one CPU thread.

Papers compare with plain C without vector instructions. The scan form, with vector instructions, shows what a CPU can
do. Both give only the score, which every timed run on the GPU must equal. The striped form is not used: with linear
gaps its scores can be too low, because its lazy F loop stops too early where opening a gap costs no more than
extending it (parasail 1.3.4).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.bench.study.diagonals import MatrixRun, StripRun, align_batch
from swsearch.bench.study.expected import Problem, protein_scoring, random_problem
from swsearch.bench.study.inter_task import DATABASE_SEED, DatabaseOnDevice, InterTaskRun, random_subjects
from swsearch.bench.study.machine import GpuMachine
from swsearch.bench.study.variants import SZAFARCZYK, Variant, variants_of
from swsearch.errors import EngineError, InputError
from swsearch.scoring import Matrix, Scoring

NAMES = ("parasail nw/sw", "parasail scan")
"""Columns of the report."""

QUICK_SECONDS = 0.2
"""Seconds below which a time is the best of three."""

SAMPLE = 400
"""Subjects of a database that the CPU scores; its time for all is scaled by the residues."""


def check_parasail() -> None:
    """Raise `InputError` if there is no parasail."""
    if find_spec("parasail") is None:
        raise InputError(
            "times beside one thread of the CPU need parasail; pip install 'swsearch[bench]', or use --check-only"
        )


@dataclass(frozen=True)
class CpuTime:
    """Seconds of one CPU thread, and the scores.

    Parameters
    ----------
    seconds, vector_seconds : float
        Without and with vector instructions.
    scores : tuple of int
        Of the pairs scored.
    """

    seconds: float
    vector_seconds: float
    scores: tuple[int, ...]


def cpu_pair(problem: Problem) -> CpuTime:
    """Time one pair."""
    query, subject = _letters(problem)
    return _time(query, [subject], problem.recurrence.scoring, problem.recurrence.mode)


def last_row(problem: Problem) -> npt.NDArray[np.int32]:
    """Return the last row of H without column 0, shape (columns,), int32, which depends on nearly every cell."""
    import parasail

    fill = getattr(parasail, f"{_program(problem.recurrence.mode)}_rowcol_scan_32")
    gaps = (problem.recurrence.scoring.gap_first, problem.recurrence.scoring.gap_extend)
    result = fill(*_letters(problem), *gaps, _parasail_matrix(problem.recurrence.scoring.matrix))
    return np.array(result.score_row, np.int32)  # copied while the result, whose memory it is, still lives


def _letters(problem: Problem) -> tuple[str, str]:
    decode = problem.recurrence.scoring.matrix.alphabet.decode
    return decode(problem.query), decode(problem.subject)


def _program(mode: str) -> str:
    return "sw" if mode == "local" else "nw"


def cpu_database(query: ByteArray, subjects: Sequence[ByteArray], scoring: Scoring) -> CpuTime:
    """Time a sample of a database, the first `SAMPLE` subjects, local, and scale it to all residues.

    Parameters
    ----------
    query : ndarray, shape (n,), uint8
        Codes of the scoring's alphabet.
    subjects : sequence of ndarray, each of shape (n,), uint8
        The database.
    """
    sample = subjects[:SAMPLE]
    measured = _time(PROTEIN.decode(query), [PROTEIN.decode(one) for one in sample], scoring, "local")
    scale = sum(map(len, subjects)) / sum(map(len, sample))
    return CpuTime(measured.seconds * scale, measured.vector_seconds * scale, measured.scores)


def _time(query: str, subjects: Sequence[str], scoring: Scoring, mode: str) -> CpuTime:
    import parasail

    matrix = _parasail_matrix(scoring.matrix)
    name = _program(mode)
    plain, vectorised = getattr(parasail, name), getattr(parasail, f"{name}_scan_32")
    # parasail charges open + (k - 1) * extend
    gaps = (scoring.gap_first, scoring.gap_extend)

    def scores(function: Any) -> tuple[int, ...]:
        return tuple(function(query, subject, *gaps, matrix).score for subject in subjects)

    seconds, result = _best_of(lambda: scores(plain))
    vector_seconds, again = _best_of(lambda: scores(vectorised))
    if result != again:
        raise AssertionError(f"parasail's {name} gives {result[:3]}..., its scan form {again[:3]}...")
    return CpuTime(seconds, vector_seconds, result)


def _best_of(work: Callable[[], tuple[int, ...]]) -> tuple[float, tuple[int, ...]]:
    best = np.inf
    result: tuple[int, ...] = ()
    for _ in range(3):
        started = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - started)
        if best > QUICK_SECONDS:
            break
    return float(best), result


@lru_cache(maxsize=4)
def _parasail_matrix(matrix: Matrix) -> Any:
    import parasail

    letters = matrix.alphabet.letters[:20] if matrix.alphabet is PROTEIN else "ACGT"
    table = parasail.matrix_create(letters, 1, -1)
    for i in range(len(letters)):
        for j in range(len(letters)):
            table.set_value(i, j, int(matrix.scores[i, j]))
    return table


TIMED_RUNS, SLOW_RUNS = 3, 1
SLOW_SECONDS = 0.15
"""Timed runs after one that is not counted; fewer if that one took longer than this, in seconds."""

ROW_LENGTH = 16_384
"""Longest pair whose last row of H is compared with parasail's."""

LAUNCHES = 1_000
"""Runs of two launches each, to learn what a launch costs."""

SUBJECTS = 131_072
QUERIES = (8, 16, 32, 64, 128, 256, 512)
SWEEP_QUERY = 128
"""Database and queries of the inter-task kernels."""

STUDY_PAIRS, BATCH_LENGTH = 8, 8_192
"""Szafarczyk's batches: pairs of this length."""


@dataclass
class Measurement:
    """A row of the report.

    Parameters
    ----------
    approach, variant, paper, sweep : str
        As the table of variants has them.
    gaps, mode : str
        Kind of gap costs; global or local.
    rows, columns : int
        Query and subject, in residues; of a database, all subjects.
    checked : int
        Cells compared before.
    launches : int
        Kernels of a run.
    runs : list of float
        Seconds on the GPU.
    cpu_seconds, vector_seconds : float
        One thread of the CPU, without and with vector instructions; 0 where it was not timed.
    threads, blocks : int
        As the variant has them.
    extra : dict
        What only some approaches have.
    """

    approach: str
    variant: str
    paper: str
    sweep: str
    gaps: str
    mode: str
    rows: int
    columns: int
    checked: int
    launches: int
    runs: list[float]
    cpu_seconds: float
    vector_seconds: float
    threads: int = 0
    blocks: int = 0
    extra: dict[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Median of the runs."""
        return statistics.median(self.runs)

    @property
    def gcups(self) -> float:
        """Cells per second on the GPU, in units of 10^9."""
        return self.rows * self.columns / self.seconds / 1e9

    @property
    def speedup(self) -> float:
        """Times faster than the CPU without vector instructions."""
        return self.cpu_seconds / self.seconds

    def as_json(self) -> dict[str, Any]:
        """Return the row as plain values."""
        return {**asdict(self), "seconds": self.seconds, "gcups": self.gcups, "speedup": self.speedup}


class Timer:
    """Times variants on one machine; the CPU is timed once for each size.

    Parameters
    ----------
    machine : GpuMachine
        Where they run.
    """

    def __init__(self, machine: GpuMachine) -> None:
        self.machine = machine
        self._cpu: dict[tuple[object, ...], CpuTime] = {}
        self._rows: dict[tuple[object, ...], npt.NDArray[np.int32]] = {}

    def pair(self, variant: Variant, gaps: str, length: int, checked: int) -> Measurement:
        """Time a variant with a pair of equally long sequences."""
        protein = variant.approach == "strips"
        problem = random_problem(length, length, variant.mode, gaps, protein=protein)
        cpu = self.cpu_pair(problem, gaps, protein)
        extra: dict[str, float] = {}
        make = StripRun if protein else MatrixRun
        run: StripRun | MatrixRun = make(self.machine, variant, problem, gaps)
        runs = self._times(run)
        if run.last_score() != cpu.scores[0]:
            raise EngineError(
                f"{variant}, {gaps} gaps, {length} x {length}: score {run.last_score()}, parasail's is "
                f"{cpu.scores[0]}"
            )
        self._compare_last_row(variant, problem, gaps, run)
        extra["device_bytes"] = run.device_bytes
        if isinstance(run, StripRun):
            extra["concurrent"] = run.concurrent
            if not variant.sweep:
                started = time.perf_counter()
                run.trace()
                extra["traceback_seconds"] = time.perf_counter() - started
        return _measurement(variant, gaps, (length, length), checked, run.launches, runs, cpu, extra)

    def _compare_last_row(self, variant: Variant, problem: Problem, gaps: str, run: StripRun | MatrixRun) -> None:
        """Compare the last row of a matrix that is too large to be compared whole."""
        length, row = len(problem.query), run.last_row()
        if length > ROW_LENGTH or row is None:
            return
        key = (length, problem.recurrence.mode, gaps, variant.approach == "strips")
        if key not in self._rows:
            self._rows[key] = last_row(problem)
        wrong = np.flatnonzero(row != self._rows[key])
        if len(wrong):
            raise EngineError(
                f"{variant}, {gaps} gaps, {length} x {length}: H of cell ({length}, {wrong[0] + 1}) is "
                f"{row[wrong[0]]}, parasail's is {self._rows[key][wrong[0]]}"
            )

    def inter_task(self, variant: Variant, gaps: str, length: int, checked: int) -> Measurement:
        """Time a variant with a query against the whole database."""
        scoring, query = protein_scoring(gaps), inter_task_query(length)
        run = InterTaskRun(self.machine, variant, self.database, query, scoring, gaps)
        cpu = self.database_cpu(gaps, length)
        runs = self._times(run)
        result = tuple(run.scores()[: len(cpu.scores)].tolist())
        if result != cpu.scores:
            place = next(k for k, score in enumerate(cpu.scores) if score != result[k])
            raise EngineError(
                f"{variant}, {gaps} gaps, query of {length}: subject {place} scores {result[place]}, "
                f"parasail's score is {cpu.scores[place]}"
            )
        residues = self.database.layout.n_residues
        return _measurement(variant, gaps, (length, residues), checked, run.launches, runs, cpu, {})

    def launch_seconds(self) -> float:
        """Return the seconds of one launch from Python, of a kernel with almost no work, many in a row."""
        problem = random_problem(8, 8, "global", "linear")
        run = MatrixRun(self.machine, variants_of("diagonal-blocks")[0], problem, "linear")

        def work() -> None:
            for _ in range(LAUNCHES):
                run.enqueue()

        self.machine.seconds(work)
        return self.machine.seconds(work) / (LAUNCHES * run.launches)

    def batches(self, gaps: str) -> dict[str, Any]:
        """Align a batch with the traceback after each pair, and with it beside the next pair's matrix."""
        variant = next(one for one in variants_of("strips") if one.mode == "global" and one.constant("CHUNK") == 32)
        pairs = [
            random_problem(BATCH_LENGTH, BATCH_LENGTH - k, "global", gaps, protein=True) for k in range(STUDY_PAIRS)
        ]
        runs = [StripRun(self.machine, variant, problem, gaps) for problem in pairs]
        self.machine.seconds(runs[0].enqueue)  # compiled and loaded
        seconds, results = {}, {}
        for name, overlap in (("in turn", False), ("overlapped", True)):
            started = time.perf_counter()
            results[name] = list(align_batch(runs, overlap=overlap))
            seconds[name] = time.perf_counter() - started
        if results["in turn"] != results["overlapped"]:
            raise EngineError(f"{variant}: a batch with overlapped traceback gives other alignments")
        return {
            "approach": "strips", "variant": variant.name, "paper": SZAFARCZYK, "gaps": gaps, "pairs": STUDY_PAIRS,
            "length": BATCH_LENGTH, "seconds": seconds["in turn"], "overlapped_seconds": seconds["overlapped"],
        }  # fmt: skip

    @cached_property
    def subjects(self) -> list[ByteArray]:
        """Return the made-up database: subjects, each of shape (n,), uint8."""
        return random_subjects(SUBJECTS)

    @cached_property
    def database(self) -> DatabaseOnDevice:
        """Return the database on the machine."""
        return DatabaseOnDevice(self.machine, self.subjects)

    def database_cpu(self, gaps: str, length: int) -> CpuTime:
        """Return the CPU's time for a query against the database."""
        key = ("database", gaps, length)
        if key not in self._cpu:
            self._cpu[key] = cpu_database(inter_task_query(length), self.subjects, protein_scoring(gaps))
        return self._cpu[key]

    def cpu_pair(self, problem: Problem, gaps: str, protein: bool) -> CpuTime:
        """Return the CPU's time for a pair."""
        key = (len(problem.query), problem.recurrence.mode, gaps, protein)
        if key not in self._cpu:
            self._cpu[key] = cpu_pair(problem)
        return self._cpu[key]

    def _times(self, run: MatrixRun | StripRun | InterTaskRun) -> list[float]:
        first = self.machine.seconds(run.enqueue)
        return [self.machine.seconds(run.enqueue) for _ in range(SLOW_RUNS if first > SLOW_SECONDS else TIMED_RUNS)]


def inter_task_query(length: int) -> ByteArray:
    """Make up a query, shape (length,), uint8."""
    return np.random.default_rng([DATABASE_SEED, length]).integers(0, 20, length, dtype=np.uint8)


def _measurement(
    variant: Variant, gaps: str, size: tuple[int, int], checked: int, launches: int, runs: list[float], cpu: CpuTime,
    extra: dict[str, float],
) -> Measurement:  # fmt: skip
    return Measurement(
        variant.approach, variant.name, variant.paper, variant.sweep, gaps, variant.mode, *size, checked,
        launches, runs, cpu.seconds, cpu.vector_seconds, variant.threads, variant.blocks, extra,
    )  # fmt: skip
