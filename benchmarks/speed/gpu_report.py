"""The report of `gpu.py` as text: made from the results file alone, so that `gpu.py --from` makes it again."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.support.common import table

Part = dict[str, Any]


def rate(value: float) -> str:
    """Format GCUPS."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def spread(values: Sequence[float]) -> str:
    """Format the least and the largest of some runs' seconds."""
    return f"{min(values):.3f} to {max(values):.3f}"


CELLS: dict[str, Callable[[Part], object]] = {
    "query": lambda one: one["id"],
    "length": lambda one: one["length"],
    "queries at once": lambda one: one["at_once"],
    "residues of queries": lambda one: f"{one['length']:,}",
    "kernel ms": lambda one: f"{one['kernel_seconds'] * 1e3:.2f}",
    "wall ms": lambda one: f"{one['wall_seconds'] * 1e3:.2f}",
    "kernel s": lambda one: f"{one['kernel_seconds']:.3f}",
    "wall s": lambda one: f"{one['wall_seconds']:.3f}",
    "wall s, all runs": lambda one: spread(one["wall_runs"]),
    "GCUPS, kernel": lambda one: rate(one["gcups"]),
    "GCUPS, wall": lambda one: rate(one["wall_gcups"]),
    "share of wall computing": lambda one: f"{one['computing']:.1%}",
    "CUDASW++4.0 --dpx": lambda one: rate(one["theirs"]) if "theirs" in one else "",
    "ours / theirs": lambda one: f"{one['gcups'] / one['theirs']:.2f}" if "theirs" in one else "",
}
"""Columns of tables, and what a measurement has in them."""


def measured(columns: str, rows: Iterable[Part]) -> list[str]:
    """Return a table of measurements; columns are separated by ``|``."""
    names = columns.split("|")
    return table(names, [[CELLS[name](row) for name in names] for row in rows])


def singles_lines(part: Part) -> list[str]:
    columns = "query|length|kernel ms|wall ms|GCUPS, kernel|GCUPS, wall|CUDASW++4.0 --dpx|ours / theirs"
    return ["One query at a time, database resident:", "", *measured(columns, part["queries"])]


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


BATCH = "kernel s|wall s|wall s, all runs|GCUPS, kernel|GCUPS, wall|share of wall computing"


def batch_lines(part: Part) -> list[str]:
    return ["All queries as one group, database resident:", "", *measured(BATCH, [part])]


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
    names = BATCH.split("|")
    rows = [[name, *(CELLS[column](part[name]) for column in names)] for name in ("resident", "streamed")]
    return [
        f"All queries as one group, reading the database from the page cache; streamed through "
        f"{part['memory'] / 2**20:.0f} MiB it has {part['kernel_speed']:.1%} of the resident speed by kernel time, "
        f"{part['wall_speed']:.1%} by wall time:",
        "",
        *table(["database", *names[:-1], "computing"], rows),
    ]


LENGTHS = "length|queries at once|kernel ms|wall ms|GCUPS, kernel|GCUPS, wall"


def short_lines(part: Part) -> list[str]:
    return ["Peptides, database resident:", "", *measured(LENGTHS, part["queries"])]


def equal_lines(part: Part) -> list[str]:
    made = f"{part['subjects']:,} made-up subjects of {part['subject_length']} residues, resident"
    return [f"{made} (of several queries, length is the sum):", "", *measured(LENGTHS, part["queries"])]


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


def report(results: Part) -> list[str]:
    """Return the whole report."""
    results = with_theirs(results)
    lines = about_lines(results["about"])
    for name, section in SECTIONS.items():
        if name in results:
            date = results[name]["date"]
            lines += ["", *section(results[name])]
            if date[:10] != results["about"]["date"][:10]:
                lines += ["", f"(measured {date})"]
    return lines


def seconds_of(turn: Part) -> dict[str, float]:
    """Return the seconds of each part of a results file, by its name in the table of two revisions."""
    parts = {}
    if "singles" in turn:
        queries, keys = turn["singles"]["queries"], ("kernel_seconds", "wall_seconds")
        parts["one query at a time"] = {key: sum(each[key] for each in queries) for key in keys}
    if "batch" in turn:
        parts["all queries at once"] = turn["batch"]
    if "streamed" in turn:
        parts["all queries at once, 100 MiB"] = turn["streamed"]["streamed"]
    parts |= turn.get("jobs", {}).get("jobs", {})
    names = {"kernels": "kernel_seconds", "wall": "wall_seconds"}
    found = {f"{name}, {what}": part[key] for name, part in parts.items() for what, key in names.items()}
    return found | ({"whole command": turn["command"]["seconds"]} if "command" in turn else {})


def compare_turns(folder: Path) -> list[str]:
    """Compare two revisions by the files turn-old-N.json and turn-new-N.json: medians, and their ratio."""
    old, new = (
        [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob(f"turn-{side}-*.json"))]
        for side in ("old", "new")
    )
    if not old or not new:
        raise SystemExit(f"{folder}: got {len(old)} old and {len(new)} new turns, expected some of both")
    sides, rows = [[seconds_of(turn) for turn in side] for side in (old, new)], []
    for name in sides[1][0]:
        before, after = (statistics.median(turn[name] for turn in side) for side in sides)
        rows.append((name, f"{before:.4f}", f"{after:.4f}", f"{after / before:.3f}"))
    about, earlier = new[-1]["about"], old[-1]["about"]
    return [
        f"benchmarks/speed/gpu.py --turns, {about['date']}", *about["heading"][1:], about["description"],
        f"{about['database']}: {about['subjects']:,} subjects, {about['residues']:,} residues",
        f"old: kernels {earlier['kernels'][:12]}, engine {earlier['engine'][:12]}; "
        f"new: kernels {about['kernels'][:12]}, engine {about['engine'][:12]}; medians of {len(new)} turns", "",
        *table(["", "old, s", "new, s", "new / old"], rows),
    ]  # fmt: skip
