"""A run of the study: every variant checked, then timed, a line as each is done."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from swsearch.bench.study.baseline import NAMES
from swsearch.bench.study.checks import check_variant
from swsearch.bench.study.machine import Machine, open_machine, study_hash
from swsearch.bench.study.problem import GAPS
from swsearch.bench.study.timing import QUERIES, SWEEP_QUERY, Measurement, Timer
from swsearch.bench.study.variants import APPROACHES, MEDIUM, Variant, variants_of
from swsearch.errors import EngineError, MemoryLimitError, OptionError

SIZES = (1_024, 4_096, MEDIUM, 32_768, 37_000)
"""Lengths of the pairs: powers of two, and the longest of Huynh et al."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """What to run.

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
    """What a run found.

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
        rows = [row.as_json() for row in self.rows]
        return {"about": self.about, "checks": self.checks, "rows": rows, "batches": self.batches,
                "skipped": self.skipped, "failures": self.failures}  # fmt: skip


def run_study(
    settings: Settings, say: Say = print, save: Callable[[StudyResults], None] | None = None
) -> StudyResults:
    """Check and time everything that the settings name.

    Parameters
    ----------
    settings : Settings
        What to run.
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
    machine: Machine, settings: Settings, say: Say = print, save: Callable[[StudyResults], None] | None = None
) -> StudyResults:
    """Run on a machine that is open."""
    begun = time.monotonic()
    results, timer = StudyResults(_about(machine)), Timer(machine)
    say(f"{machine.name}, {machine.multiprocessors} multiprocessors; {results.about['processor']}")
    chosen = [variant for approach in settings.approaches for variant in variants_of(approach)]
    machine.compile(list(dict.fromkeys(code for variant in chosen for code in variant.kernels(settings.gaps))))
    if not settings.check_only:
        results.about["launch_microseconds"] = timer.launch_seconds() * 1e6
    for approach in settings.approaches:
        for variant in variants_of(approach):
            _run_variant(machine, timer, variant, settings, results, say, begun)
        if not settings.check_only:
            _beside(timer, approach, settings, results, say)
        if save is not None:
            save(results)
        say(f"{approach}: done after {time.monotonic() - begun:.0f} s")
    return results


def _run_variant(
    machine: Machine,
    timer: Timer,
    variant: Variant,
    settings: Settings,
    results: StudyResults,
    say: Say,
    begun: float,
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
        if time.monotonic() - begun > settings.budget:
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
    from swsearch.bench.study import own

    if approach == "inter-task" and gaps == "affine":
        yield from own.search_times(timer, gaps, settings.device)
    elif approach in own.PAIR_APPROACHES:
        yield from own.pair_times(timer, approach, gaps, settings.sizes, settings.device)


def line(row: Measurement) -> str:
    """Return one measurement in a line."""
    size = f"{row.rows:,} x {row.columns:,}"
    return (
        f"{row.variant}, {row.gaps}, {size}: GPU {row.seconds * 1e3:.2f} ms, {row.gcups:.2f} GCUPS, CPU "
        f"{row.cpu_seconds:.3f} s (vectorised {row.vector_seconds:.3f} s), speed-up {row.speedup:.1f}"
    )


def _about(machine: Machine) -> dict[str, Any]:
    versions = {}
    for name in ("swsearch", "numpy", "parasail", "pycuda"):
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
