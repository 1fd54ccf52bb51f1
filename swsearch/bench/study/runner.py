"""A run of the study: every variant is checked, then timed.

The project's own kernels do the same work, so that a table shows both. The database search stands beside the
inter-task kernels: the same queries, subjects and scoring, by the engine as ``swsearch search`` runs it. The pair
kernels stand beside the diagonal blocks (DNA) and the strips (protein): the same pairs, as ``swsearch align`` aligns
them, with scores only and with alignments.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from swsearch.alphabet import PROTEIN
from swsearch.backends.local import LocalBackend
from swsearch.bench.study.checks import check_variant
from swsearch.bench.study.expected import GAPS, Problem, protein_scoring, random_problem
from swsearch.bench.study.machine import GpuMachine, open_machine, study_hash
from swsearch.bench.study.timing import NAMES, QUERIES, SWEEP_QUERY, TIMED_RUNS, Measurement, Timer, inter_task_query
from swsearch.bench.study.variants import APPROACHES, MEDIUM, Variant, variants_of
from swsearch.cuda_package import PACKAGES
from swsearch.db import Database
from swsearch.engines.base import PairAligner
from swsearch.errors import EngineError, MemoryLimitError, OptionError
from swsearch.inputs import Query
from swsearch.options.kinds import Mode, StatisticsMethod
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search import Search
from swsearch.statistics.karlin_altschul import published_statistics

SIZES = (1_024, 4_096, MEDIUM, 32_768, 37_000)
"""Lengths of the pairs: powers of two, and the longest of Huynh et al."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """Choices of a run.

    Parameters
    ----------
    approaches : sequence of str
        Some of `APPROACHES`.
    sizes : sequence of int
        Lengths of the pairs; a sweep takes the largest that is not above 16,384.
    gaps : sequence of str
        Kinds of gap costs. Sweeps are timed with the first of them only.
    check_only : bool
        Whether nothing is timed.
    device : int, optional
        Which GPU.
    budget : float
        Seconds after which nothing more is timed, so that a run on a lent machine ends.
    """

    approaches: Sequence[str] = APPROACHES
    sizes: Sequence[int] = SIZES
    gaps: Sequence[str] = GAPS
    check_only: bool = False
    device: int | None = None
    budget: float = float("inf")

    def __post_init__(self) -> None:
        for name in self.approaches:
            if name not in APPROACHES:
                raise OptionError("approach", name, f"one of {', '.join(APPROACHES)}")
        for name in self.gaps:
            if name not in GAPS:
                raise OptionError("gaps", name, f"{', '.join(GAPS)} or both")
        for size in self.sizes:
            if not 32 <= size <= 1 << 17:
                raise OptionError("sizes", size, f"lengths from 32 to {1 << 17}")


@dataclass
class StudyResults:
    """Results of a run.

    Parameters
    ----------
    about : dict
        Device, versions, date.
    checks : dict of str to int
        Variant to the cells that were compared.
    rows : list of Measurement
        In the order of the table of variants.
    batches : list of dict
        Szafarczyk's batches.
    skipped : list of str
        What did not run here, and why.
    failures : list of str
        What was wrong: a cell, an alignment, a score. Such a variant is not timed further.
    """

    about: dict[str, Any]
    checks: dict[str, int] = field(default_factory=dict)
    rows: list[Measurement] = field(default_factory=list)
    batches: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return {**vars(self), "rows": [row.as_json() for row in self.rows]}


def run_study(
    settings: Settings, say: Say = print, save: Callable[[StudyResults], None] | None = None
) -> StudyResults:
    """Check and time everything that the settings name.

    Parameters
    ----------
    say : callable
        Takes each line as it is known.
    save : callable, optional
        Called after each approach, so that nothing is lost when time runs out.

    Raises
    ------
    GpuUnavailableError
        If there is no GPU.
    """
    with open_machine(settings.device) as machine:
        return run_on(machine, settings, say, save)


def run_on(
    machine: GpuMachine, settings: Settings, say: Say = print, save: Callable[[StudyResults], None] | None = None
) -> StudyResults:
    """Run on a machine that is open."""
    started = time.monotonic()
    results, timer = StudyResults(_about(machine)), Timer(machine)
    say(f"{machine.name}, {machine.multiprocessors} multiprocessors; {results.about['processor']}")
    chosen = [variant for approach in settings.approaches for variant in variants_of(approach)]
    machine.compile(list(dict.fromkeys(code for variant in chosen for code in variant.kernels(settings.gaps))))
    if not settings.check_only:
        results.about["launch_microseconds"] = timer.launch_seconds() * 1e6
    for approach in settings.approaches:
        for variant in variants_of(approach):
            _run_variant(machine, timer, variant, settings, results, say, started)
        if not settings.check_only:
            _beside(timer, approach, settings, results, say)
        if save is not None:
            save(results)
        say(f"{approach}: done after {time.monotonic() - started:.0f} s")
    return results


def _run_variant(
    machine: GpuMachine,
    timer: Timer,
    variant: Variant,
    settings: Settings,
    results: StudyResults,
    say: Say,
    started: float,
) -> None:
    try:
        cells = sum(check_variant(machine, variant, gaps) for gaps in settings.gaps)
        results.checks[str(variant)] = cells
        say(f"{variant}: matrix checked, {cells:,} cells")
    except (OptionError, MemoryLimitError) as error:
        results.skipped.append(f"{variant}: {error}")
        say(f"{variant}: not here: {error}")
        return
    except EngineError as error:
        results.failures.append(str(error))
        say(f"WRONG: {error}")
        return
    if settings.check_only:
        return
    for gaps, size in _work(variant, settings):
        if time.monotonic() - started > settings.budget:
            results.skipped.append(f"{variant}, {gaps}, {size:,}: no time left")
            continue
        try:
            measure = timer.inter_task if variant.approach == "inter-task" else timer.pair
            row = measure(variant, gaps, size, cells)
        except (OptionError, MemoryLimitError) as error:
            results.skipped.append(f"{variant}, {gaps}, {size:,}: {error}")
            continue
        except EngineError as error:
            results.failures.append(str(error))
            say(f"WRONG: {error}")
            return
        results.rows.append(row)
        say(f"  {line(row)}")


def _work(variant: Variant, settings: Settings) -> Iterator[tuple[str, int]]:
    if variant.sweep:
        below = [size for size in settings.sizes if size <= MEDIUM] or [min(settings.sizes)]
        yield settings.gaps[0], SWEEP_QUERY if variant.approach == "inter-task" else max(below)
        return
    sizes = QUERIES if variant.approach == "inter-task" else [n for n in settings.sizes if n <= variant.largest]
    for gaps in settings.gaps:
        yield from ((gaps, size) for size in sizes)


def _beside(timer: Timer, approach: str, settings: Settings, results: StudyResults, say: Say) -> None:
    """Time what belongs to an approach but is no variant: batches, and the project's own kernels."""
    for gaps in settings.gaps:
        if approach == "strips":
            batch = timer.batches(gaps)
            results.batches.append(batch)
            say(
                f"  batch of {batch['pairs']} pairs of {batch['length']:,}, {gaps}: {batch['seconds']:.3f} s in "
                f"turn, {batch['overlapped_seconds']:.3f} s with the traceback overlapped"
            )
        for row in _own(timer, approach, gaps, settings):
            results.rows.append(row)
            say(f"  {line(row)}")


def _own(timer: Timer, approach: str, gaps: str, settings: Settings) -> Iterator[Measurement]:
    """Time the project's own kernels on an approach's work, if they stand beside it."""
    if approach == "inter-task" and gaps == "affine":
        yield from search_times(timer, gaps, settings.device)
    elif approach in PAIR_APPROACHES:
        yield from pair_times(timer, approach, gaps, settings.sizes, settings.device)


def line(row: Measurement) -> str:
    """Return one measurement in a line."""
    size = f"{row.rows:,} x {row.columns:,}"
    return (
        f"{row.variant}, {row.gaps}, {size}: GPU {row.seconds * 1e3:.2f} ms, {row.gcups:.2f} GCUPS, CPU "
        f"{row.cpu_seconds:.3f} s (vectorised {row.vector_seconds:.3f} s), speed-up {row.speedup:.1f}"
    )


def _about(machine: GpuMachine) -> dict[str, Any]:
    versions = {}
    for name in ("swsearch", "numpy", "parasail", *PACKAGES):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "device": machine.name,
        "multiprocessors": machine.multiprocessors,
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "processor": _processor(),
        "baseline": f"{NAMES[0]}, {NAMES[1]} beside it, one thread",
        "kernels": study_hash(),
        "python": platform.python_version(),
        **versions,
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    for text in information.read_text().splitlines() if information.exists() else []:
        if text.startswith("model name"):
            return text.split(":", 1)[1].strip()
    return platform.machine()


MAX_HITS = 10

PAIR_APPROACHES: dict[str, tuple[Mode, ...]] = {"diagonal-blocks": ("global",), "strips": ("global", "local")}
"""Approaches that the pair kernels stand beside, and the modes."""


def search_times(timer: Timer, gaps: str, device: int | None) -> Iterator[Measurement]:
    """Time the engine's search for each query of the inter-task kernels, by the time that its kernels run."""
    from swsearch.engines.gpu.engine import GpuEngine

    scoring = protein_scoring(gaps)
    database = Database.from_records((f"s{n}", PROTEIN.decode(one)) for n, one in enumerate(timer.subjects))
    with GpuEngine(device=device) as engine, database:
        queries = [Query(f"q{length}", "", inter_task_query(length)) for length in QUERIES]
        # hits above a threshold where that is known beforehand; scores with shuffled sequences are not timed
        method: StatisticsMethod = "none" if published_statistics(scoring, "local") is None else "published"
        options = SearchOptions(scoring=scoring, max_hits=MAX_HITS, statistics=method)
        with closing(Search(queries, options, LocalBackend(database, engine))) as search:
            for query in queries:
                runs = [_kernel_seconds(engine, search, query) for _ in range(TIMED_RUNS + 1)][1:]
                length = len(query.codes)
                cpu = timer.database_cpu(gaps, length)
                yield Measurement(
                    "inter-task", "swsearch's own search", "this project", "", gaps, "local", length,
                    database.n_residues, 0, 0, runs, cpu.seconds, cpu.vector_seconds,
                )  # fmt: skip


def pair_times(
    timer: Timer, approach: str, gaps: str, sizes: Sequence[int], device: int | None
) -> Iterator[Measurement]:
    """Time the pair aligner on an approach's pairs, by the time that its kernels run."""
    from swsearch.engines.gpu.pairs.aligner import GpuPairAligner

    protein = approach == "strips"
    with GpuPairAligner(device=device) as aligner:
        for mode in PAIR_APPROACHES.get(approach, ()):
            for size in sizes:
                problem = random_problem(size, size, mode, gaps, protein=protein)
                cpu = timer.cpu_pair(problem, gaps, protein)
                for name, task in (("swsearch's own, score", _score), ("swsearch's own, alignment", _align)):
                    runs = []
                    for _ in range(TIMED_RUNS + 1):
                        before = aligner.usage.kernel_seconds
                        score = task(aligner, problem)
                        runs.append(aligner.usage.kernel_seconds - before)
                        if score != cpu.scores[0]:
                            raise EngineError(
                                f"{name}, {gaps} gaps, {size} x {size}: score {score}, parasail's is {cpu.scores[0]}"
                            )
                    yield Measurement(
                        approach, name, "this project", "", gaps, mode, size, size, 0, 0, runs[1:], cpu.seconds,
                        cpu.vector_seconds,
                    )  # fmt: skip


def _score(aligner: PairAligner, problem: Problem) -> int:
    return aligner.score(problem.query, problem.subject, problem.recurrence)


def _align(aligner: PairAligner, problem: Problem) -> int:
    return aligner.align(problem.query, problem.subject, problem.recurrence).score


def _kernel_seconds(engine: Any, search: Search, query: Query) -> float:
    before, session = engine.usage.kernel_seconds, search.session
    session.select(session.prepare([query])).wait()
    return float(engine.usage.kernel_seconds - before)
