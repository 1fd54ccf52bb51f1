"""The report of `gpu.py` as text: made from the results file alone, so that it can be made again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.support.common import table

CUDASW = {
    "dpx": {222: 3633, 375: 3812, 1000: 4030, 5478: 3930},
    "half2": {222: 3198, 375: 3359, 1000: 3426, 5478: 3342},
}
"""Kernel GCUPS of CUDASW++4.0 (``--dpx`` and its default) by query length, measured on an H100 with CUDA 13.0, the
same queries and the same Swiss-Prot, November 2026."""

CUDASW_BATCH = {"dpx": 3965, "half2": 3387}
"""The same for the scan of all 20 queries, which it takes one after the other."""

CUDASW_COMMAND = 2.86
"""Seconds of its whole command with ``--dpx``: scores of the ten best, no E-values, no alignments."""

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
            rate(one["gcups"]), rate(one["wall_gcups"]), CUDASW["dpx"].get(one["length"], ""),
        ]
        for one in part["queries"]
    ]  # fmt: skip
    columns = ["query", "length", "kernel ms", "wall ms", "GCUPS, kernel", "GCUPS, wall", "CUDASW++4.0 --dpx, H100"]
    return ["One query at a time, database resident:", "", *table(columns, rows)]


def batch_lines(part: Part) -> list[str]:
    row = [
        f"{part['kernel_seconds']:.3f}", f"{part['wall_seconds']:.3f}", spread(part["wall_runs"]),
        rate(part["gcups"]), rate(part["wall_gcups"]), f"{part['computing']:.1%}",
    ]  # fmt: skip
    columns = ["kernel s", "wall s", "wall s, all runs", "GCUPS, kernel", "GCUPS, wall", "share of wall computing"]
    return ["All queries as one group, database resident:", "", *table(columns, [row])]


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


def summary(results: Part) -> list[str]:
    """Return what was asked for beside what was measured, for the parts that are there."""
    rows: list[tuple[str, float, str, float, str, bool]] = []
    if "singles" in results:
        found = [(one["length"], one["gcups"]) for one in results["singles"]["queries"]]
        for length, least, peer in ((144, 4600, "2,740"), (222, 4700, "3,630")):
            of_length = [gcups for n, gcups in found if n == length]
            rows += [(f"query of {length}, GCUPS", gcups, peer, least, ",.0f", True) for gcups in of_length]
        longer = [gcups for length, gcups in found if 375 <= length <= 5478]
        if longer:
            text = "queries of 375 to 5,478, GCUPS"
            rows.append((f"{text}, slowest", min(longer), "3,810 to 4,100", 5000, ",.0f", True))
            rows.append((f"{text}, fastest", max(longer), "3,810 to 4,100", 5000, ",.0f", True))
    if "batch" in results:
        rows.append(("batch by kernel time, GCUPS", results["batch"]["gcups"], "3,965", 5700, ",.0f", True))
        rows.append(("batch by wall time, GCUPS", results["batch"]["wall_gcups"], "3,965", 5700, ",.0f", True))
    if "command" in results:
        rows.append(("whole command, s", results["command"]["seconds"], str(CUDASW_COMMAND), 3.0, ".2f", False))
    if "load" in results:
        rows.append(("loading, s", results["load"]["seconds"], "", 0.5, ".3f", False))
    if "streamed" in results:
        part = results["streamed"]
        rows.append(("streamed / resident, kernel", part["kernel_speed"], "", 0.9, ".3f", True))
        rows.append(("streamed / resident, wall", part["wall_speed"], "", 0.9, ".3f", True))
        if "batch" in results:
            ratio = results["batch"]["wall_seconds"] / part["streamed"]["wall_seconds"]
            rows.append(("streamed / resident and loaded before, wall", ratio, "", 0.9, ".3f", True))
    cells = [
        [
            text, format(value, form), f"{'>=' if more else '<'} {limit:{form}}",
            "yes" if (value >= limit if more else value < limit) else "NO", peer,
        ]
        for text, value, peer, limit, form, more in rows
    ]  # fmt: skip
    columns = ["what", "measured", "asked for", "met", "CUDASW++4.0 --dpx, H100"]
    return ["Summary:", "", *table(columns, cells)] if cells else []


def report(results: Part) -> list[str]:
    """Return the whole report."""
    lines = about_lines(results["about"])
    for name, section in SECTIONS.items():
        if name in results:
            measured = results[name]["date"]
            lines += ["", *section(results[name])]
            if measured[:10] != results["about"]["date"][:10]:
                lines += ["", f"(measured {measured})"]
    return [*lines, "", *summary(results)]
