"""Predict the time of a search from its measured parts, for N GPUs or workers and 10^9 to 10^12 residues.

`growth_model.py` has the model and all that it assumes; `growth_parts.py` measures the parts on this machine's CPU
(start, reading, scoring, shuffled copies, aligning, writing, merging, tasks of a bare Dask cluster), and the parts of
a GPU are read from results/gpu.json and results/devices_two.txt. Predictions for places where a search was measured
stand beside what was measured: the jobs of results/jobs_gpu.txt, whole commands of results/cpu.txt and
results/devices_two.txt, and the points of results/cluster.json (written by `benchmarks/speed/cluster.py`) and
results/devices.json (one GPU, and the same opened twice). No part is fitted to what it is held against, and what the
model does not explain stays as a deviation. What was not measured is said to be missing.

A file of points has {"about": {"heading": [lines]}, "points": [point, ...]}. A point has what `Job` and `Place` of
the model have, by the same names (those with defaults may be left out), "name", "seconds" (a median), and optionally
"turns" (list of seconds) and "streamed". Where "about" has "task_seconds", it is what a task costs a cluster.

Needs: Swiss-Prot as FASTA and its database, Dask; two processors. Two minutes.
With --from the report is made again of numbers that are there, in a moment.
Run:   python -m benchmarks.speed.growth SPROT.fasta DATABASE [--queries 24] [--turns 3] [--disk BYTES_PER_SECOND]
           [--out benchmarks/results/growth.txt]
       python -m benchmarks.speed.growth --from benchmarks/results/growth.json [--out benchmarks/results/growth.txt]
With --out, numbers are kept beside the report, as .json.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from benchmarks.speed.growth_model import Job, Parts, Place, Prediction, Work, predict
from benchmarks.speed.growth_parts import RESULTS, measure, number, parts_of, read_json, tables_of
from benchmarks.support.common import arguments, finish, heading, read, table
from swsearch.pipeline.batch import GROUP_RESIDUES

VOLUME = 8e9
"""Bytes of residues in a volume."""

VOLUMES = (1e9, 2e9, 8e9, 16e9)
"""Bytes of volumes that tasks are shown of."""

RESIDUES = (10**9, 10**10, 10**11, 10**12)
"""Sizes that are predicted: Swiss-Prot has 2 x 10^8 residues, TrEMBL about 10^11."""

THOUSAND = (1000, 353_926)
"""Queries and their residues: those of results/jobs_gpu.txt, every 516th protein of Swiss-Prot."""

PLACES = {
    "1 GPU": Place("gpu", 1, 16),
    "2 GPUs, one process": Place("gpu", 2, 16),
    "4 GPUs, one process": Place("gpu", 4, 16),
    "8 GPUs, one process": Place("gpu", 8, 16),
    "8 workers, a GPU each": Place("gpu", 8, 16, cluster=True),
    "64 workers, a GPU each": Place("gpu", 64, 16, cluster=True),
    "16 processors, one process": Place("cpu", 1, 16),
    "16 workers of 16 processors": Place("cpu", 16, 16, cluster=True),
    "256 workers of 16 processors": Place("cpu", 256, 16, cluster=True),
}
"""What is predicted: GPUs are those of gpu.json with 16 processors for each process."""

EXPECTED = {
    "cluster.json": (
        "one process, 2 threads",
        "one process, 2 threads, 10 x Swiss-Prot",
        "1 local worker, 1 thread",
        "2 local workers, 1 thread each",
        "4 local workers, 1 thread each",
    ),
    "devices.json": ("one GPU", "one GPU opened twice", "one GPU, 10 x Swiss-Prot", "one GPU, streamed"),
}
"""Points that are to be measured, by the file that has them."""


@dataclass(frozen=True)
class Point:
    """A search that was measured, or that is to be; seconds are None where it was not."""

    name: str
    source: str
    seconds: float | None
    job: Job | None = None
    place: Place | None = None
    streamed: bool = False


def taken(kind: type, values: dict[str, Any]) -> Any:
    """Make a dataclass of those values that it has."""
    return kind(**{each.name: values[each.name] for each in fields(kind) if each.name in values})


def points_in(name: str) -> Iterator[Point]:
    """Yield the points of a file of them, and those that it lacks."""
    stored = read_json(name) or {"points": []}
    for each in stored["points"]:
        place, job = taken(Place, each), taken(Job, each)
        yield Point(each["name"], name, each["seconds"], job, place, each.get("streamed", False))
    there = {each["name"] for each in stored["points"]}
    yield from (Point(each, name, None) for each in EXPECTED[name] if each not in there)


def whole_jobs(gpu: dict[str, Any]) -> Iterator[Point]:
    """Yield the whole jobs of a GPU; its command in gpu.json is none, since its start is one of the parts."""
    name = "jobs_gpu.txt"
    text = (RESULTS / name).read_text(encoding="utf-8")
    threads = int(re.search(r", (\d+) processors", text)[1])  # type: ignore[index]
    residues = int(re.search(r"queries have ([\d,]+) residues", text)[1].replace(",", ""))  # type: ignore[index]
    about, place = gpu["about"], Place("gpu", 1, threads)
    for row in tables_of(name):
        if row[0].startswith("1,000 queries") and row[4]:
            many, n_queries, n_residues = row[0], 1000, residues
        elif row[0].startswith("20 queries"):
            many, n_queries, n_residues = row[0], about["queries"], about["query_residues"]
        else:
            continue
        most = 10 if re.search("best 10|max-hits 10", many) else 500
        job = Job(
            n_queries, n_residues, about["residues"], most, "published" not in many, int(number(row[4])),
            spread=spread_of(gpu) if n_queries == 20 else None,
        )  # fmt: skip
        yield Point(f"1 GPU, {many}", name, number(row[2]), job, place)


def spread_of(gpu: dict[str, Any]) -> float:
    """Return the mean square of the residues of the twenty queries by the square of their mean."""
    lengths = [each["length"] for each in gpu["singles"]["queries"]]
    return sum(each**2 for each in lengths) * len(lengths) / sum(lengths) ** 2


def two_devices(points: list[Point]) -> Iterator[Point]:
    """Yield what was measured on two GPUs of one machine; the jobs are those of points of one GPU."""
    jobs = {point.job.queries: point.job for point in points if point.job is not None}
    for name in ("devices_two.txt", "devices_two_20.txt"):
        text = (RESULTS / name).read_text(encoding="utf-8")
        threads = int(re.search(r", (\d+) processors", text)[1])  # type: ignore[index]
        for row in tables_of(name):
            if row[1] == "command":
                job = jobs[int(row[0].split()[0].replace(",", ""))]
                for engines in (1, 2):
                    what = f"{engines} GPU{'s' * (engines > 1)}, {job.queries:,} queries"
                    yield Point(what, name, number(row[1 + engines]), job, Place("gpu", engines, threads))


def whole_commands(gpu: dict[str, Any]) -> Iterator[Point]:
    """Yield the whole commands of a CPU."""
    name = "cpu.txt"
    text = (RESULTS / name).read_text(encoding="utf-8")
    sizes = re.search(r"(\d+) queries, ([\d,]+) residues; .*? subjects, ([\d,]+) residues", text)
    large = re.search(r" subjects, ([\d,]+) residues; query of (\d+)", text)
    assert sizes is not None
    assert large is not None
    queries, query_residues, residues = (int(each.replace(",", "")) for each in sizes.groups())
    swissprot, length = (int(each.replace(",", "")) for each in large.groups())
    for threads, part in zip((2, 1), re.findall(r"^\| swsearch, database \|.*", text, re.MULTILINE), strict=True):
        job = Job(queries, query_residues, residues, 10, spread=spread_of(gpu))
        cells = [cell.strip() for cell in part.split("|")]
        what = f"{threads} threads, {queries} queries, 20,000 proteins, best 10"
        yield Point(what, name, number(cells[3]), job, Place("cpu", 1, threads))
    for row in tables_of(name):
        if len(row) == 5 and re.fullmatch(r"\d threads?", row[0]):
            threads = int(row[0][0])
            job = Job(1, length, swissprot)
            yield Point(f"{threads} threads, query of {length}, Swiss-Prot", name, number(row[3]), job,
                        Place("cpu", 1, threads))  # fmt: skip


def shown(seconds: float) -> str:
    """Format a time: three digits at the most, in seconds, minutes, hours or days."""
    for unit, size in (("s", 1.0), ("min", 60.0), ("h", 3600.0), ("d", 86400.0)):
        value = seconds / size
        if value < {"s": 120, "min": 120, "h": 48}.get(unit, math.inf):
            break
    return f"{value:.{max(0, 2 - len(str(int(value))) + (value < 10))}f} {unit}"


def cell_of(prediction: Prediction) -> str:
    """Format a prediction: time, and how it comes about where it is not scoring that sets it."""
    notes = [] if prediction.resident else ["streamed"]
    if prediction.busiest not in ("devices", "processors"):
        notes.append(prediction.busiest)
    return shown(prediction.seconds) + (f" ({', '.join(notes)})" if notes else "")


def job_of(queries: int, query_residues: int, residues: int, bytes_per_residue: float) -> Job:
    """Make a job whose database has volumes of `VOLUME` bytes."""
    volumes = math.ceil(residues * bytes_per_residue / VOLUME)
    return Job(queries, query_residues, residues, volumes=volumes)


def predictions(parts: Parts, disk: float | None) -> list[str]:
    """Return the tables of what is predicted."""
    lines = []
    for queries, query_residues in (THOUSAND, (1, 350)):
        rows = []
        for name, place in PLACES.items():
            jobs = [job_of(queries, query_residues, residues, parts.bytes_per_residue) for residues in RESIDUES]
            rows.append([name, *(cell_of(predict(job, place, parts, disk)) for job in jobs)])
        what = f"{queries:,} queries, {query_residues:,} residues" if queries > 1 else "One query of 350 residues"
        heads = ["", *(f"10^{round(math.log10(residues))} residues" for residues in RESIDUES)]
        lines += ["", f"{what}, at most 500 hits of each, default statistics:", "", *table(heads, rows)]
    return lines


def tasks(parts: Parts) -> list[str]:
    """Return the table of how long a task takes, a group of queries by a volume, and how long to read the volume."""
    rows = []
    for size in VOLUMES:
        residues = size / parts.bytes_per_residue
        on_gpu = GROUP_RESIDUES * residues / parts.gpu_cells
        on_cpu = GROUP_RESIDUES * residues / parts.cpu_cells / 16
        rows.append([f"{size / 1e9:g} GB", *map(shown, (on_gpu, on_cpu, size * parts.copy))])
    what = (
        f"A task, {GROUP_RESIDUES:,} query residues by a volume of so many bytes of residues, and reading the volume:"
    )
    return ["", what, "", *table(["", "a GPU", "16 processors", "reading it to a GPU"], rows)]


def comparison(points: list[Point], parts: Parts) -> list[str]:
    """Return the table of what was measured beside what is predicted."""
    rows = []
    for point in points:
        if point.seconds is None or point.job is None or point.place is None:
            rows.append([point.name, point.source, "missing", "", "", "", ""])
            continue
        found = predict(point.job, point.place, parts, streamed=point.streamed)
        deviation = found.seconds / point.seconds - 1
        rows.append([
            point.name, point.source, f"{point.seconds:.2f}", f"{found.seconds:.2f}", f"{deviation:+.0%}",
            ", ".join(f"{name} {seconds:.2f}" for name, seconds in found.stages.items()),
            ", ".join(f"{name} {seconds:.2f}" for name, seconds in found.resources.items()),
        ])  # fmt: skip
    heads = ["", "measured in", "measured s", "predicted s", "deviation", "stages, s", "shared, s"]
    return ["", "Held against what was measured:", "", *table(heads, rows)]


def constants(parts: Parts) -> list[str]:
    """Return the table of the parts."""
    rows = []
    for each in fields(parts):
        value, source = getattr(parts, each.name), parts.sources.get(each.name, "")
        if isinstance(value, Work):
            rows.append([each.name, f"{value.parallel:.3g} parallel, {value.serial:.3g} serial", source])
        elif isinstance(value, tuple):
            rows.append([each.name, f"{min(value):,} to {max(value):,}, mean {sum(value) / len(value):.4g}", source])
        elif each.name != "sources":
            rows.append([each.name, f"{value:.4g}", source])
    return table(["part", "value", "from"], rows)


def report(stored: dict[str, Any]) -> list[str]:
    """Return the lines of the report."""
    gpu = read_json("gpu.json")
    if gpu is None:
        sys.exit("results/gpu.json: no such file; it has the parts of a GPU, and benchmarks/speed/gpu.py writes it")
    parts = parts_of(stored["measured"], gpu)
    about = (read_json("cluster.json") or {}).get("about", {})
    if "task_seconds" in about:
        sources = {**parts.sources, "task": "cluster.json: the job of many tasks"}
        parts = replace(parts, task=about["task_seconds"], sources=sources)
    disk = stored["disk"]
    of_devices = [
        replace(point, job=replace(point.job, spread=spread_of(gpu)))
        if point.job is not None and point.job.queries == gpu["about"]["queries"]
        else point
        for point in points_in("devices.json")
    ]
    points = [
        *whole_jobs(gpu), *of_devices, *two_devices(of_devices), *whole_commands(gpu), *points_in("cluster.json"),
    ]  # fmt: skip
    return [
        *stored["heading"],
        f"GPU: {gpu['about']['device']}, {gpu['about']['date']}; "
        + ("databases in the page cache" if disk is None else f"disks of {disk / 1e9:.3g} GB/s for each process"),
        "",
        "Seconds, bytes and cells of parts, of one thread; prepare is per query, rate and copies per rated "
        "candidate, align and write per hit:",
        "",
        *constants(parts),
        *tasks(parts),
        *predictions(parts, disk),
        "",
        "In brackets: streamed, where the database does not fit the devices; what sets the time, if not scoring.",
        *comparison(points, parts),
    ]


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("fasta", type=Path, nargs="?", help="Swiss-Prot, of which queries are taken")
    parser.add_argument("database", type=Path, nargs="?", help="made of it by swsearch db build")
    parser.add_argument("--from", type=Path, dest="stored", metavar="FILE", help="numbers that were measured before")
    parser.add_argument("--queries", type=int, default=24, help="that parts are measured with, default %(default)s")
    parser.add_argument("--turns", type=int, default=3, help="of which the shortest counts, default %(default)s")
    parser.add_argument("--disk", type=float, help="bytes that a process reads in a second; default: the page cache")
    options = parser.parse_args()
    if options.stored is not None:
        stored = json.loads(options.stored.read_text(encoding="utf-8"))
    elif options.database is None:
        parser.error("expected SPROT.fasta and DATABASE, or --from")
    else:
        measured = measure(options.database, read(options.fasta), options.queries, options.turns)
        stored = {"heading": heading(__file__, ("numpy", "distributed")), "disk": options.disk, "measured": measured}
        if options.out is not None:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.with_suffix(".json").write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    finish(report(stored), options.out)


if __name__ == "__main__":
    main()
