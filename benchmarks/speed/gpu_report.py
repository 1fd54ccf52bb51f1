"""The report of `gpu.py` as text: made from the results file alone, so that `gpu.py --from` makes it again."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from benchmarks.speed.cudasw import (
    CLOSE,
    CUDASW,
    CUDASW_BATCH,
    CUDASW_BATCH_SECONDS,
    CUDASW_COMMAND,
    CUDASW_MEASURED,
    cudasw_cell,
    cudasw_length,
)
from benchmarks.support.common import table

Part = dict[str, Any]


def rate(value: float) -> str:
    """Format GCUPS."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def milliseconds(value: float) -> str:
    """Format seconds as milliseconds."""
    return f"{value * 1e3:.2f}"


def spread(values: Sequence[float]) -> str:
    """Format the least and the largest of some runs' seconds."""
    return f"{min(values):.3f} to {max(values):.3f}"


def times_theirs(one: Part) -> float | None:
    """Return our GCUPS over CUDASW++4.0's for a query; None where it was measured at no such length."""
    other = cudasw_length(one["length"])
    return None if other is None else one["gcups"] / CUDASW[other]


def singles_lines(part: Part) -> list[str]:
    rows = []
    for one in part["queries"]:
        ratio = times_theirs(one)
        rows.append([
            one["id"], one["length"], milliseconds(one["kernel_seconds"]), milliseconds(one["wall_seconds"]),
            rate(one["gcups"]), rate(one["wall_gcups"]), cudasw_cell(one["length"]),
            "" if ratio is None else f"{ratio:.2f}",
        ])  # fmt: skip
    columns = [
        "query", "length", "kernel ms", "wall ms", "GCUPS, kernel", "GCUPS, wall", "CUDASW++4.0 --dpx, kernel",
        "ours / theirs",
    ]  # fmt: skip
    return ["One query at a time, database resident:", "", *table(columns, rows)]


def cudasw_lines(results: Part) -> list[str]:
    """Say where CUDASW++4.0's figures come from, and how ours stand to them."""
    source = (
        f"CUDASW++4.0 --dpx: {CUDASW_MEASURED}; by query length in its second run (its first query is cold). "
        f"Lengths that differ by at most {CLOSE:.0%} are compared; theirs is in brackets where it is another. Its "
        f"scan of the 20 queries, one after the other, takes {CUDASW_BATCH_SECONDS} s, {CUDASW_BATCH:,} GCUPS; its "
        f"whole command, {CUDASW_COMMAND} s, was measured on an H100."
    )
    lines = textwrap.wrap(source, 118)
    ratios = [ratio for one in results.get("singles", {}).get("queries", []) if (ratio := times_theirs(one))]
    if ratios:
        lines.append(
            f"By kernel time swsearch is {min(ratios):.2f} to {max(ratios):.2f} times as fast, one query at a time."
        )
    for name, how in (("batch", "With all queries at once"), ("grouped", "In the groups of a search")):
        if name in results:
            lines.append(f"{how} it is {results[name]['gcups'] / CUDASW_BATCH:.2f} times as fast.")
    return lines


def batch_row(part: Part) -> list[str]:
    return [
        f"{part['kernel_seconds']:.3f}", f"{part['wall_seconds']:.3f}", spread(part["wall_runs"]),
        rate(part["gcups"]), rate(part["wall_gcups"]), f"{part['computing']:.1%}",
    ]  # fmt: skip


BATCH_COLUMNS = ["kernel s", "wall s", "wall s, all runs", "GCUPS, kernel", "GCUPS, wall", "share of wall computing"]


def batch_lines(part: Part) -> list[str]:
    return ["All queries as one group, database resident:", "", *table(BATCH_COLUMNS, [batch_row(part)])]


def grouped_lines(part: Part) -> list[str]:
    sizes = ", ".join(f"{size:,}" for size in part["groups"])
    heading = (
        f"All queries in the groups that a search makes of them ({sizes} residues: the first results come early):"
    )
    return [heading, "", *table(BATCH_COLUMNS, [batch_row(part)])]


def load_lines(part: Part) -> list[str]:
    keys = ("open_seconds", "plan_seconds", "copy_seconds", "seconds", "engine_seconds")
    row = [*(f"{part[key]:.3f}" for key in keys), spread(part["total_runs"])]
    columns = ["open s", "plan, allocate s", "read, copy s", "all three s", "engine before it s", "all three, runs"]
    return ["From opening the HDF5 file to all residues on the GPU, fresh engine:", "", *table(columns, [row])]


def command_lines(part: Part) -> list[str]:
    return [
        f"swsearch search --engine gpu --max-hits 10 --outfmt 6: {part['seconds']:.2f} s ({spread(part['runs'])}), "
        f"{part['hits']} hits with alignments; with --verbose it says:",
        "",
        *(f"    {line}" for line in part["verbose"]),
    ]


def streamed_lines(part: Part) -> list[str]:
    rows = [
        [
            name, f"{one['kernel_seconds']:.3f}", f"{one['wall_seconds']:.3f}", spread(one["wall_runs"]),
            rate(one["gcups"]), rate(one["wall_gcups"]), f"{one['computing']:.1%}",
        ]
        for name in ("resident", "streamed")
        for one in [part[name]]
    ]  # fmt: skip
    columns = ["database", "kernel s", "wall s", "wall s, all runs", "GCUPS, kernel", "GCUPS, wall", "computing"]
    return [
        f"All queries as one group, reading the database from the page cache; streamed through "
        f"{part['memory'] / 2**20:.0f} MiB it has {part['kernel_speed']:.1%} of the resident speed by kernel time, "
        f"{part['wall_speed']:.1%} by wall time:",
        "",
        *table(columns, rows),
    ]


def length_lines(part: Part, heading: str) -> list[str]:
    rows = [
        [
            one["length"], one["at_once"], milliseconds(one["kernel_seconds"]), milliseconds(one["wall_seconds"]),
            rate(one["gcups"]), rate(one["wall_gcups"]),
        ]
        for one in part["queries"]
    ]  # fmt: skip
    columns = ["length", "queries at once", "kernel ms", "wall ms", "GCUPS, kernel", "GCUPS, wall"]
    return [heading, "", *table(columns, rows)]


def short_lines(part: Part) -> list[str]:
    return length_lines(part, "Peptides, database resident:")


def equal_lines(part: Part) -> list[str]:
    made = f"{part['subjects']:,} made-up subjects of {part['subject_length']} residues, resident"
    return length_lines(part, f"{made} (of several queries, length is the sum):")


def memory_lines(part: Part) -> list[str]:
    rows = [[name, f"{one['bytes'] / 2**20:,.0f}", one["plan"]] for name, one in part.items() if name != "date"]
    return ["GPU memory:", "", *table(["database", "MiB allocated", "plan"], rows)]


SECTIONS: dict[str, Callable[[Part], list[str]]] = {
    "singles": singles_lines,
    "batch": batch_lines,
    "grouped": grouped_lines,
    "short": short_lines,
    "load": load_lines,
    "command": command_lines,
    "streamed": streamed_lines,
    "equal": equal_lines,
    "memory": memory_lines,
}


def about_lines(about: Part) -> list[str]:
    """Return the head of the report."""
    cells = about["query_residues"] * about["residues"] / 1e9
    return [
        *about["heading"],
        f"{about['device']}: compute capability {about['capability']}, {about['multiprocessors']} multiprocessors, "
        f"{about['device_memory'] / 2**30:.0f} GiB; driver's CUDA {about['driver_cuda']}; {about['description']}",
        f"kernels {about['kernels']}",
        f"engine  {about['engine']}",
        f"{about['queries_file']}: {about['queries']} queries, {about['query_residues']:,} residues; "
        f"{about['database']}: {about['subjects']:,} subjects, {about['residues']:,} residues; {cells:,.1f} Gcells",
        f"medians of {about['runs']} runs after one that is not counted",
    ]


class Goal(NamedTuple):
    """A row of the summary: what was asked for beside what was measured."""

    what: str
    measured: float
    limit: float
    theirs: str = ""
    form: str = ",.0f"
    is_least: bool = True

    def cells(self) -> list[str]:
        """Format the row."""
        met = self.measured >= self.limit if self.is_least else self.measured < self.limit
        return [
            self.what, format(self.measured, self.form), f"{'>=' if self.is_least else '<'} {self.limit:{self.form}}",
            "yes" if met else "NO", self.theirs,
        ]  # fmt: skip


def goals(results: Part) -> Iterator[Goal]:
    """Yield the goals of the parts that are there."""
    batch = results.get("batch")
    if "singles" in results:
        found = [(one["length"], one["gcups"]) for one in results["singles"]["queries"]]
        for length, least in ((144, 4600), (222, 4700)):
            for gcups in (gcups for n, gcups in found if n == length):
                yield Goal(f"query of {length}, GCUPS", gcups, least, cudasw_cell(length))
        if longer := [gcups for length, gcups in found if 375 <= length <= 5478]:
            theirs = [gcups for length, gcups in CUDASW.items() if 375 <= length <= 5478]
            for name, choose in (("slowest", min), ("fastest", max)):
                what = f"queries of 375 to 5,478, GCUPS, {name}"
                yield Goal(what, choose(longer), 5000, f"{choose(theirs):,}")
    if batch:
        yield Goal("batch by kernel time, GCUPS", batch["gcups"], 5700, f"{CUDASW_BATCH:,}")
        yield Goal("batch by wall time, GCUPS", batch["wall_gcups"], 5700, f"{CUDASW_BATCH:,}")
    if "command" in results:
        seconds = results["command"]["seconds"]
        yield Goal("whole command, s", seconds, 3.0, f"{CUDASW_COMMAND} (H100)", ".2f", is_least=False)
    if "load" in results:
        yield Goal("loading, s", results["load"]["seconds"], 0.5, form=".3f", is_least=False)
    if "streamed" in results:
        part = results["streamed"]
        yield Goal("streamed / resident, kernel", part["kernel_speed"], 0.9, form=".3f")
        yield Goal("streamed / resident, wall", part["wall_speed"], 0.9, form=".3f")
        if batch:
            ratio = batch["wall_seconds"] / part["streamed"]["wall_seconds"]
            yield Goal("streamed / resident and loaded before, wall", ratio, 0.9, form=".3f")


def summary(results: Part) -> list[str]:
    """Return what was asked for beside what was measured, for the parts that are there."""
    columns = ["what", "measured", "asked for", "met", "CUDASW++4.0 --dpx"]
    rows = [goal.cells() for goal in goals(results)]
    return ["Summary:", "", *table(columns, rows)] if rows else []


def report(results: Part) -> list[str]:
    """Return the whole report."""
    lines = about_lines(results["about"])
    for name, section in SECTIONS.items():
        if name in results:
            measured = results[name]["date"]
            lines += ["", *section(results[name])]
            if measured[:10] != results["about"]["date"][:10]:
                lines += ["", f"(measured {measured})"]
    return [*lines, "", *summary(results), "", *cudasw_lines(results)]
