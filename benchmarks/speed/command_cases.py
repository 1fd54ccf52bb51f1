"""Cases of `commands.py` that also look into this process."""

from __future__ import annotations

import argparse
import io
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import swsearch as library
from benchmarks.support.common import Records, read, residues, sha256_of, spread, swsearch, table, write
from benchmarks.support.scanning import Scan, Seconds
from benchmarks.support.timing import Timing, cost_of, in_turns, say
from swsearch.db import Database
from swsearch.engines import create_engine
from swsearch.inputs import read_queries
from swsearch.options.kinds import Mode
from swsearch.pipeline.batch import query_groups
from swsearch.report import OUTPUT_FORMATS, create_writer
from swsearch.results import SearchResult
from swsearch.run_info import RunInfo

PEPTIDES, RESIDENT_CALLS = 990, 30
"""Peptides of case ``jobs``, and calls of its resident searcher, after three that do not count."""
SAMPLE = Path("examples/data/swissprot_sample.fasta.gz")
"""3,183 proteins of Swiss-Prot."""
STREAMED_MEMORY = 200 << 20
"""Bytes of a GPU's memory where Swiss-Prot, which takes 186 MiB, is not to stay there."""
LARGE_MEMORY, TYPICAL, PIECES = 1 << 30, 350, 1 << 16
"""Of case ``streamed``: bytes of a GPU's memory, residues of a query, and those that random ones are drawn from."""
TITLE = "RecName: Full=Probable protein {0}; OS=Arabidopsis thaliana (Mouse-ear cress) OX=3702 GN={0} PE=1 SV=2"
"""Header of each subject in case ``writers``: as long as UniProt's, which the sample lacks."""
FORMATS = [kind.key for kind in OUTPUT_FORMATS]
FORMATS += ["6 qseqid sseqid evalue bitscore", "6 std qseq sseq btop", "parquet subject_id evalue"]
TOGETHER = ("html", "parquet", "5")
"""Formats whose sum is shown."""


def peptides(records: Records) -> Records:
    """Cut a peptide of 9 to 15 residues out of the middle of each of some proteins."""
    chosen = spread([each for each in records if len(each[1]) >= 60], PEPTIDES)
    return [
        (f"peptide_{k}", letters[len(letters) // 2 :][: 9 + k % 7]) for k, (_, letters) in enumerate(chosen)
    ]  # fmt: skip


def scan_seconds(engine: str, queries: Path, database: Path, **options: Any) -> Seconds:
    """Time the scoring of queries with a loaded database."""
    found = read_queries(queries)
    groups = list(query_groups(found))
    with (
        create_engine(engine, **options) as made,
        Database.open(database) as opened,
        closing(Scan(made, opened, groups)) as scan,
    ):
        for _ in range(2):  # kernels are compiled, and the database is on the device in one piece, if it stays
            scan.select(groups[0] if engine == "gpu" else found[:1])
        return scan.score(*groups)


def search_seconds(searcher: library.Searcher, record: tuple[str, str]) -> tuple[float, int]:
    """Return the seconds of a call of a resident searcher until hits and alignments are arrays, and its hits."""
    started = time.perf_counter()
    (result,) = searcher.search([record])
    hits, alignments = result.table, result.hsps.alignments
    columns = hits.subjects, hits.scores, hits.statistics.evalues, alignments.query_start, alignments.identities
    seconds = time.perf_counter() - started
    assert all(len(column) == len(result) for column in columns)
    return seconds, len(result)


def jobs(options: argparse.Namespace, folder: Path) -> list[str]:
    """Time whole commands beside the scan that they are for, and a resident searcher."""
    fasta, database, twenty = options.files
    records, engine, rows = read(fasta), options.engine, []
    chosen = spread(records, options.many)
    paths = {"many": write(folder / "many.fasta", chosen), "twenty": twenty}
    paths["peptides"] = write(folder / "peptides.fasta", peptides(records))
    paths["eleven"] = write(folder / "eleven.fasta", read(twenty, 11))
    many, typed = f"{options.many:,} queries", "parquet" if find_spec("pyarrow") else "jsonl"
    short, iterated = ("--evalue", 1000, "--max-hits", 10), f"{many}, three iterations, a file of A3M each"
    every: dict[str, tuple[str, tuple[object, ...], tuple[str, ...]]] = {
        f"{many}, defaults": ("many", (), ("o.tsv",)),
        f"{many}, `--max-hits 10`": ("many", ("--max-hits", 10), ("o.tsv",)),
        f"{many}, `--statistics published`": ("many", ("--statistics", "published"), ("o.tsv",)),
        f"{many}, published, best 10": ("many", ("--statistics", "published", "--max-hits", 10), ("o.tsv",)),
        f"{many}, html, {typed} and xml": ("many", (), ("o.html", f"o.{typed}", "o.xml")),
        f"{PEPTIDES} peptides, E <= 1000, best 10": ("peptides", short, ("o.tsv",)),
        "20 queries, defaults": ("twenty", (), ("o.tsv",)),
        "20 queries, best 10": ("twenty", ("--max-hits", 10), ("o.tsv",)),
        "11 queries, best 10": ("eleven", ("--max-hits", 10), ("o.tsv",)),
        iterated: ("many", ("--iterations", 3), ("a3m",)),
    }
    parts = options.only or [""]
    scans: dict[str, float] = {}
    for name, (which, asked, outputs) in every.items():
        if not any(part in name for part in parts):
            continue
        if which not in scans:
            scans[which] = scan_seconds(engine, paths[which], database).kernel
        given = [part for output in outputs for part in ("-o", folder / output)]
        words = ("msa" if name == iterated else "search", paths[which], database, "--engine", engine, *asked, *given)
        (timing,) = in_turns({name: partial(swsearch, *words, "--quiet")}, options.runs).values()
        times, count = 3 if name == iterated else 1, ""
        if name == iterated:
            count = f"{sum(one.read_text('utf-8').count('>') for one in (folder / 'a3m').iterdir()):,}"
        elif outputs == ("o.tsv",):
            count = f"{len((folder / 'o.tsv').read_bytes().splitlines()):,}"
        rows.append([
            name, f"{'3 x ' * (times == 3)}{scans[which]:.2f}", f"{timing.median:.2f} ({timing.spread()})",
            f"{timing.median / scans[which] / times:.2f}", count,
        ])  # fmt: skip
    for length in (250, 1133) if any(part in "resident searcher" for part in parts) else ():
        record = min(records, key=lambda each: abs(len(each[1]) - length))
        scan = scan_seconds(engine, write(folder / "one.fasta", [record]), database).kernel
        with library.Searcher(database, engine=engine, max_hits=100) as searcher:
            calls = [search_seconds(searcher, record) for _ in range(RESIDENT_CALLS + 3)][3:]
        walls, hits = [seconds for seconds, _ in calls], calls[0][1]
        wall, name = statistics.median(walls), f"resident searcher, {len(record[1]):,} residues, best 100"
        rows.append(
            [name, f"{scan:.4f}", f"{wall:.4f} (longest {max(walls):.4f})", f"{wall / scan:.2f}", f"{hits:,}"]
        )
    return [
        f"{database.name}; {options.many:,} queries have {residues(chosen):,} residues; engine {engine}; medians of "
        f"{options.runs}",
        "", *table(["job", "kernels or scan, s", "whole, s", "ratio", "lines or hits"], rows),
    ]  # fmt: skip


def places_of(options: argparse.Namespace, limit: int | None) -> dict[str, tuple[object, ...]]:
    """Return the options of a search in each place, the first of which the others are compared with."""
    if options.engine != "gpu":
        found: dict[str, tuple[object, ...]]
        found = {f"one process, {options.threads} threads": ("--threads", options.threads)}
        found |= {f"{n} local workers": ("--cluster", f"local:{n}") for n in options.workers}
        return found | ({"workers that run": ("--cluster", options.cluster)} if options.cluster else {})
    memory, devices = ("--gpu-memory", limit) if limit else (), ",".join(map(str, options.devices))
    found = {"one GPU": ("--device", options.devices[0], *memory), f"GPUs {devices}": ("--device", devices, *memory)}
    if limit is None and len(set(options.devices)) == len(options.devices):
        found["as many workers"] = ("--cluster", f"local:{len(options.devices)}")
    return found


def places(options: argparse.Namespace, folder: Path) -> list[str]:
    """Time commands in every place, and scans by one GPU and by all."""
    fasta, database, twenty = options.files
    many, rows = write(folder / "many.fasta", spread(read(fasta), options.many)), []
    for limit in (None, STREAMED_MEMORY) if options.engine == "gpu" else (None,):
        for queries, count in ((twenty, 20), (many, options.many)):
            name = f"{count:,} queries, {'streamed' if limit else 'resident'}"
            if not any(part in name for part in options.only or [""]):
                continue
            where = places_of(options, limit)
            words = ("search", queries, database, "--engine", options.engine, "--quiet", "-o")
            works = {place: partial(swsearch, *words, folder / place, *more) for place, more in where.items()}
            parts = {"command": in_turns(works, options.runs, f"{name}, ")}
            if options.engine == "gpu":
                parts |= scans_in_turns(options, queries, database, limit, list(where)[:2])
            for what, timings in parts.items():
                first = next(iter(timings.values())).median
                for place, one in timings.items():
                    shown = f"{one.median:.3f} ({one.spread()})"
                    rows.append([name, what, place, shown, f"{one.median / first:.3f}"])
            if len({sha256_of(folder / place) for place in works}) > 1:
                sys.exit(f"{name}: the bytes differ between places")
    return [
        f"{database.name}; engine {options.engine}; medians of {options.runs} turns; streamed through "
        f"{STREAMED_MEMORY >> 20} MiB; the same bytes in all places",
        "", *table(["job", "what", "where", "seconds", "times the first"], rows),
    ]  # fmt: skip


def scans_in_turns(
    options: argparse.Namespace, queries: Path, database: Path, limit: int | None, names: list[str]
) -> dict[str, dict[str, Timing]]:
    """Time kernels and scans by the first device and by all."""
    found = {what: {name: Timing() for name in names} for what in Seconds._fields}
    for turn in range(options.runs):
        for name, device in zip(names, (options.devices[0], options.devices), strict=True):
            seconds = scan_seconds("gpu", queries, database, device=device, gpu_memory=limit)
            say(f"turn {turn + 1}, {name}: {seconds}")
            for what, each in seconds._asdict().items():
                found[what][name].wall.append(each)
    return {"kernels": found["kernel"], "scan": found["wall"]}


def write_large(path: Path, records: Records, wanted: int) -> int:
    """Write records, and random proteins of their lengths and composition until there are residues enough; count."""
    lengths = np.array([len(letters) for _, letters in records])
    ends = np.cumsum(lengths)
    pool = np.frombuffer("".join(letters for _, letters in records[:: len(records) // 1000 + 1]).encode(), np.uint8)
    generator, total = np.random.default_rng(wanted), int(ends[-1])
    with write(path, records).open("ab") as file:
        while total < wanted:
            drawn = pool[generator.integers(0, min(len(pool), PIECES), ends[-1], dtype=np.uint32)].tobytes()
            for k, (end, length) in enumerate(zip(ends.tolist(), lengths.tolist(), strict=True)):
                file.write(b">r%d_%d\n%b\n" % (total, k, drawn[end - length : end]))
            total += int(ends[-1])
    return total


def streamed(options: argparse.Namespace, folder: Path) -> list[str]:
    """Time searches of a large database that stays in a GPU's memory, or is streamed through a part of it."""
    records, database = read(options.files[0]), folder / "large.h5"
    total, count = write_large(folder / "large.fasta", records, options.residues), len(records)
    typical = sorted(records, key=lambda each: abs(len(each[1]) - TYPICAL))
    jobs = {n: write(folder / f"{n}.fasta", typical[:n]) for n in (1, 3)}
    del records, typical  # the peak of a process begins at its parent's
    build = cost_of("db", "build", folder / "large.fasta", "-o", database, "--quiet")
    (folder / "large.fasta").unlink()
    places: list[tuple[str, dict[str, int]]] = [("resident", {})]
    if options.engine == "gpu":
        places.append((f"streamed through {LARGE_MEMORY >> 20} MiB", {"gpu_memory": LARGE_MEMORY}))
    rows = []
    for where, limit in places:
        given = ["--engine", options.engine, "--quiet", *(f"--gpu-memory={value}" for value in limit.values())]
        for n, queries in jobs.items():
            scan = scan_seconds(options.engine, queries, database, **limit)
            for word, times, output in (("search", 1, "o.tsv"), ("msa", 3, "a3m")):
                words = (word, queries, database, *given, "-o", folder / output)
                costs = [cost_of(*words) for _ in range(options.runs)]
                seconds, kernel = [cost.seconds for cost in costs], times * scan.kernel
                rows.append([
                    f"{word}, {n} {'query' if n == 1 else 'queries'}", where, f"{kernel:.3f}", f"{scan.wall:.3f}",
                    f"{statistics.median(seconds):.2f} ({min(seconds):.2f} - {max(seconds):.2f})",
                    f"{statistics.median(seconds) / kernel:.1f}", f"{max(cost.peak_bytes for cost in costs) >> 20:,}",
                ])  # fmt: skip
                say(" ".join(rows[-1]))
    return [
        f"{count:,} records of {options.files[0].name} among random proteins: {total:,} residues, "
        f"{database.stat().st_size:,} bytes, built in {build.seconds:.0f} s with {build.peak_bytes >> 20:,} MiB; "
        f"queries of {TYPICAL} residues; engine {options.engine}; medians of {options.runs}; three iterations of msa",
        "", *table(["command", "database", "kernels, s", "one scan, s", "whole, s", "ratio", "peak MiB"], rows),
    ]  # fmt: skip


def written(outfmt: str, run: RunInfo, results: Sequence[SearchResult]) -> int:
    """Write all results into memory, each by itself where the format takes one; return characters, or bytes."""
    writer = create_writer(outfmt, io.StringIO())
    if writer.is_single_query and len(results) > 1:
        return sum(written(outfmt, run, [result]) for result in results)
    stream: io.BytesIO | io.StringIO = io.BytesIO() if writer.binary else io.StringIO()
    writer = create_writer(outfmt, stream)
    writer.begin(run)
    for result in results:
        writer.write(result)
    writer.end()
    writer.discard()
    return stream.tell()


def busy(work: Callable[[], object], runs: int = 1) -> float:
    """Return the processor seconds of a call, the median of several."""
    seconds = []
    for _ in range(runs):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return statistics.median(seconds)


def writers(options: argparse.Namespace, folder: Path) -> list[str]:
    """Search once in each mode, and write all results in each format."""
    path = options.files[0] if options.files else SAMPLE
    queries, subjects = read(path, options.first), read(path)
    titled = [(f"{name} {TITLE.format(name)}", letters) for name, letters in subjects]
    about = f"{path.name}: {len(queries)} queries, {residues(queries):,} residues; {len(subjects):,} subjects, "
    lines, names = [f"{about}{residues(subjects):,} residues"], ["format"]
    cells: dict[str, list[str]] = {}
    modes: tuple[Mode, ...] = ("local", "global")
    for mode in modes:
        found = library.search(
            queries, titled, engine="cpu", mode=mode, max_hits=options.hits[0], distribution=True,
            statistics="published" if mode == "local" else "none", evalue=1e300 if mode == "local" else None,
        )  # fmt: skip
        results = [result for batch in found.batches(True) for result in batch]
        hits = sum(len(result) for result in results)
        columns = sum(int(result.hsps.alignments.length.sum()) for result in results)
        # headers are taken apart when the first format asks for them
        times = {"headers, once": busy(lambda these=results: [each.table.headers.texts for each in these])}  # type: ignore[misc]
        sizes = {outfmt: written(outfmt, found.run, results) for outfmt in FORMATS}
        times |= {each: busy(partial(written, each, found.run, results), options.runs) for each in FORMATS}
        times[" and ".join(TOGETHER)] = sum(times[outfmt] for outfmt in TOGETHER)
        lines.append(f"{mode}: {hits:,} hits, {columns / hits:.0f} columns per alignment")
        names += [f"us per hit, {mode}", "bytes per hit"]
        for outfmt, seconds in times.items():
            size = f"{sizes[outfmt] / hits:,.0f}" if outfmt in sizes else ""
            cells.setdefault(outfmt, []).extend((f"{seconds / hits * 1e6:.2f}", size))
    rows = [[outfmt, *row] for outfmt, row in cells.items()]
    return [*lines, f"processor time, medians of {options.runs}", "", *table(names, rows)]
