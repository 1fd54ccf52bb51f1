"""The report of `gpu.py` as text: made from the results file alone, so that `gpu.py --from` makes it again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

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


def singles_lines(part: Part) -> list[str]:
    rows = [
        [
            one["id"], one["length"], milliseconds(one["kernel_seconds"]), milliseconds(one["wall_seconds"]),
            rate(one["gcups"]), rate(one["wall_gcups"]), *theirs_cells(one),
        ]
        for one in part["queries"]
    ]  # fmt: skip
    columns = [
        "query", "length", "kernel ms", "wall ms", "GCUPS, kernel", "GCUPS, wall", "CUDASW++4.0 --dpx",
        "ours / theirs",
    ]  # fmt: skip
    return ["One query at a time, database resident:", "", *table(columns, rows)]


def theirs_cells(one: Part) -> list[str]:
    """Format CUDASW++4.0's GCUPS for a query, and ours over them."""
    return [rate(one["theirs"]), f"{one['gcups'] / one['theirs']:.2f}"] if "theirs" in one else ["", ""]


def with_theirs(results: Part) -> Part:
    """Put CUDASW++4.0's GCUPS beside ours, query by query."""
    if not {"singles", "cudasw"} <= results.keys():
        return results
    pairs = zip(results["singles"]["queries"], results["cudasw"]["queries"], strict=True)
    queries = [{**one, "theirs": gcups} for one, gcups in pairs]
    return {**results, "singles": {**results["singles"], "queries": queries}}


def cudasw_lines(part: Part) -> list[str]:
    return [
        f"CUDASW++4.0 --dpx on the same device, {part['date']}: the queries one after the other in "
        f"{part['seconds']:.2f} s,",
        f"{rate(part['gcups'])} GCUPS, by its own clock; whole command, scores of the ten best: "
        f"{part['command_seconds']:.2f} s.",
    ]


def jobs_lines(part: Part) -> list[str]:
    rows = [
        [name, f"{one['length']:,}", f"{one['kernel_seconds']:.4f}", f"{one['wall_seconds']:.4f}", rate(one["gcups"])]
        for name, one in part["jobs"].items()
    ]
    columns = ["job", "residues of queries", "kernel s", "wall s", "GCUPS, kernel"]
    heading = "In the groups of a search, database resident (1,000 queries once, titin twice):"
    return [heading, "", *table(columns, rows)]


def batch_row(part: Part) -> list[str]:
    return [
        f"{part['kernel_seconds']:.3f}", f"{part['wall_seconds']:.3f}", spread(part["wall_runs"]),
        rate(part["gcups"]), rate(part["wall_gcups"]), f"{part['computing']:.1%}",
    ]  # fmt: skip


BATCH_COLUMNS = ["kernel s", "wall s", "wall s, all runs", "GCUPS, kernel", "GCUPS, wall", "share of wall computing"]


def batch_lines(part: Part) -> list[str]:
    return ["All queries as one group, database resident:", "", *table(BATCH_COLUMNS, [batch_row(part)])]


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
    "jobs": jobs_lines,
    "cudasw": cudasw_lines,
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
    batch, theirs = results.get("batch"), results.get("cudasw", {})
    queries = results.get("singles", {}).get("queries", [])
    for what, first, last, least in (("144", 144, 144, 5600), ("250 and more, the slowest", 250, 10_000, 6100)):
        if some := [one for one in queries if first <= one["length"] <= last]:
            slowest = min(some, key=lambda one: one["gcups"])
            yield Goal(f"query of {what}, GCUPS", slowest["gcups"], least, theirs_cells(slowest)[0])
    peer_gcups = rate(theirs["gcups"]) if theirs else ""
    if batch:
        yield Goal("batch by kernel time, GCUPS", batch["gcups"], 6700, peer_gcups)
        yield Goal("batch by wall time, GCUPS", batch["wall_gcups"], 6000, peer_gcups)
    if "jobs" in results:
        seconds = results["jobs"]["jobs"]["1,000 queries"]["kernel_seconds"]
        yield Goal("1,000 queries, kernels, s", seconds, 10.0, form=".2f", is_least=False)
    if "command" in results:
        peer_seconds = f"{theirs['command_seconds']:.2f}" if theirs else ""
        yield Goal("whole command, s", results["command"]["seconds"], 3.0, peer_seconds, ".2f", is_least=False)
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
    results = with_theirs(results)
    lines = about_lines(results["about"])
    for name, section in SECTIONS.items():
        if name in results:
            measured = results[name]["date"]
            lines += ["", *section(results[name])]
            if measured[:10] != results["about"]["date"][:10]:
                lines += ["", f"(measured {measured})"]
    return [*lines, "", *summary(results)]
