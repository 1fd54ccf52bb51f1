"""The study's tables as text: one per approach, and a summary with one line per variant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from swsearch.bench.study.baseline import NAMES
from swsearch.bench.study.runner import StudyResults
from swsearch.bench.study.timing import Measurement
from swsearch.bench.study.variants import APPROACHES

HEADINGS = (
    "variant", "gaps", "query x subject", "matrix checked, cells", "launches", f"{NAMES[0]}, s", f"{NAMES[1]}, s",
    "GPU, s", "GCUPS", "speed-up", "GPU memory, MiB",
)  # fmt: skip

SUMMARY = ("variant", "gaps", "query x subject", "GPU, s", "GCUPS", "speed-up")


def report(results: StudyResults) -> list[str]:
    """Return the lines of a whole report."""
    about = results.about
    lines = [
        f"{about['device']}, {about['multiprocessors']} multiprocessors; {about['processor']}; {about['date']}",
        f"swsearch {about['swsearch']}, pycuda {about['pycuda']}, parasail {about['parasail']}, kernels "
        f"{about['kernels'][:12]}",
        "",
        "GPU: median by CUDA events, all launches of a run, the boundary's too; strips with the copy of all "
        "directions to the host.",
        f"CPU: {NAMES[0]} on one thread, plain C without vector instructions, is what speed-up refers to;",
        f"{NAMES[1]} is its vectorised form. Both compute the score alone. For a database both scored a sample,",
        "scaled to all residues.",
    ]
    if "launch_microseconds" in about:
        lines.append(
            f"A launch from Python costs {about['launch_microseconds']:.1f} us, many in a row: the bound of what "
            "launches once a diagonal."
        )
    for approach in APPROACHES:
        rows = [row for row in results.rows if row.approach == approach]
        if rows:
            lines += ["", f"## {approach} ({rows[0].paper})", "", *table(HEADINGS, map(_cells, rows)), *_walks(rows)]
        for batch in results.batches if approach == "strips" else []:
            lines += [
                "",
                f"Batch of {batch['pairs']} pairs of {batch['length']:,}, {batch['gaps']} gaps, with alignments: "
                f"{batch['seconds']:.3f} s in turn, {batch['overlapped_seconds']:.3f} s with each traceback beside "
                "the next matrix.",
            ]
    if results.failures:
        lines += ["", "WRONG:", *(f"- {text}" for text in results.failures)]
    if results.skipped:
        lines += ["", "Not run:", *(f"- {text}" for text in results.skipped)]
    return lines


def summary(results: StudyResults) -> list[str]:
    """Return a short table: every variant at the largest size that it was timed with, else what was checked."""
    best: dict[tuple[str, str], Measurement] = {}
    for row in results.rows:
        key = (row.approach, row.variant)
        if key not in best or row.rows > best[key].rows:
            best[key] = row
    lines = table(SUMMARY, (_short(row) for row in best.values())) if best else []
    checked = sum(results.checks.values())
    lines.append(f"matrix checked: {checked:,} cells of {len(results.checks)} variants, all as the reference says")
    return [*lines, *(f"WRONG: {text}" for text in results.failures)]


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a markdown table's lines, columns aligned."""
    body = [list(columns), *(list(row) for row in rows)]
    widths = [max(len(row[place]) for row in body) for place in range(len(columns))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in body
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def _size(row: Measurement) -> str:
    return f"{row.rows:,} x {row.columns:,}"


def _cells(row: Measurement) -> list[str]:
    return [
        row.variant, row.gaps, _size(row), f"{row.checked:,}" if row.checked else "by its own tests",
        f"{row.launches:,}" if row.launches else "", f"{row.cpu_seconds:.4f}", f"{row.vector_seconds:.4f}",
        f"{row.seconds:.5f}", f"{row.gcups:,.2f}", f"{row.speedup:,.1f}",
        f"{row.extra['device_bytes'] / 2**20:,.1f}" if "device_bytes" in row.extra else "",
    ]  # fmt: skip


def _walks(rows: list[Measurement]) -> list[str]:
    """Return what the traceback on the CPU adds, for variants that have it."""
    walked = [row for row in rows if "traceback_seconds" in row.extra]
    columns = ("variant", "gaps", "query x subject", "matrix on the GPU, s", "traceback on the CPU, s")
    cells = (
        [row.variant, row.gaps, _size(row), f"{row.seconds:.4f}", f"{row.extra['traceback_seconds']:.4f}"]
        for row in walked
    )
    return ["", *table(columns, cells)] if walked else []


def _short(row: Measurement) -> list[str]:
    return [
        f"{row.approach}: {row.variant}", row.gaps, _size(row), f"{row.seconds:.5f}", f"{row.gcups:,.2f}",
        f"{row.speedup:,.1f}",
    ]  # fmt: skip
