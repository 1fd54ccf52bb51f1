"""Cases of `commands.py` that also look into this process or into a browser."""

from __future__ import annotations

import argparse
import io
import shutil
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import swsearch as library
from benchmarks.support.common import Records, need, read, residues, spread, swsearch, table, timed, write
from benchmarks.support.scanning import Scan
from benchmarks.support.timing import cost_of, in_turns, say
from swsearch.db import Database, build_database
from swsearch.engines import create_engine
from swsearch.inputs import read_queries
from swsearch.options.kinds import Mode
from swsearch.pipeline.batch import query_groups
from swsearch.pipeline.filters import HitFilters, allowed_subjects
from swsearch.pipeline.table.values import read_identifiers
from swsearch.report import OUTPUT_FORMATS, create_writer
from swsearch.results import SearchResult
from swsearch.run_info import RunInfo

ASKED, MADE = 1_000_000, 30
"""Identifiers of the list of case ``identifiers``, and residues of its records."""
PEPTIDES, RESIDENT_CALLS = 990, 30
"""Peptides of case ``jobs``, and calls of its resident searcher, after three that do not count."""
SAMPLE = Path("examples/data/swissprot_sample.fasta.gz")
"""3,575 proteins of Swiss-Prot."""
TITLE = "RecName: Full=Probable protein {0}; OS=Arabidopsis thaliana (Mouse-ear cress) OX=3702 GN={0} PE=1 SV=2"
"""Header of each subject in case ``writers``: as long as UniProt's, which the sample lacks."""
FORMATS = [kind.key for kind in OUTPUT_FORMATS]
FORMATS += ["6 qseqid sseqid evalue bitscore", "6 std qseq sseq btop", "parquet subject_id evalue"]
TOGETHER = ("html", "parquet", "5")
"""Formats whose sum is shown."""
WIDTHS = (360, 1280, 1920)
PAINTED = """
const done = arguments[arguments.length - 1];
const tell = () => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
document.readyState === "complete" ? tell() : addEventListener("load", tell);
"""
"""Milliseconds from the start of the navigation to the frame after the one that holds the first query."""
TAKE = """
const done = arguments[arguments.length - 1], begun = performance.now();
{action}
requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begun)));
"""
GO = "location.hash = '#query-' + arguments[0]; dispatchEvent(new HashChangeEvent('hashchange'));"
SORT = "document.querySelectorAll('#query thead button')[1].click();"


def accession(place: int) -> str:
    """Return the accession of a made record; records that are not made have some too."""
    return f"Q{place:05X}" if place < 1 << 20 else f"A0A{place:07X}"


def make(path: Path, n: int) -> None:
    """Write records with headers like UniProt's."""
    draw = np.random.default_rng(7)
    letters = draw.choice(np.frombuffer(b"ACDEFGHIKLMNPQRSTVWY", dtype=np.uint8), 1 << 16).tobytes().decode()
    kinds = ("Insulin-like growth factor I", "ATP synthase subunit beta, chloroplastic", "Uncharacterized protein")
    with path.open("w", encoding="ascii") as file:
        for place in range(n):
            name, at = accession(place), place * 7 % ((1 << 16) - MADE)
            file.write(
                f">sp|{name}|{name[-5:]}_HUMAN {kinds[place % 3]} OS=Homo sapiens OX=9606 GN=ABC{place} PE=2 SV=1\n"
                f"{letters[at : at + MADE]}\n"
            )


def identifiers(options: argparse.Namespace, folder: Path) -> list[str]:
    """Read a list, find it in an open database, turn it into who may be a hit; then fetch all entries, and half."""
    source, path, listed, rows = folder / "made.fasta", folder / "made.h5", folder / "ids.txt", []
    places = np.arange(ASKED)
    np.random.default_rng(8).shuffle(places)
    listed.write_text("".join(f"{accession(place)}\n" for place in places.tolist()), encoding="ascii")
    names = read_identifiers(listed, "include_ids")
    filters = HitFilters(include_ids=names, ignore_missing_ids=True)
    for n in options.records or [575_000, 5_000_000]:
        make(source, n)
        path.unlink(missing_ok=True)
        build_database(source, path)
        with Database.open(path) as database:
            assert len(database.find_many_as_arrays(names)[0]) == min(n, ASKED)
            works = (
                partial(read_identifiers, listed, "include_ids"), partial(database.find_many_as_arrays, names),
                partial(allowed_subjects, database, filters),
            )  # fmt: skip
            spent = [[timed(work) for _ in range(options.runs)] for work in works]
        source.write_text("".join(f"{accession(place)}\n" for place in range(0, n, 2)), encoding="ascii")
        fetch = ("db", "fetch", path, "-o", folder / "out.fasta")
        whole, half = (cost_of(*fetch, *which).seconds for which in (["--all"], ["--ids", source]))
        shown = [f"{min(each):.2f} to {max(each):.2f}" for each in spent]
        rows.append([f"{n:,}", f"{path.stat().st_size / 1e6:,.0f}", *shown, f"{whole:.2f}", f"{half:.2f}"])
    columns = ["records", "database MB", "read the list, s", "find, s", "find and filter, s", "fetch --all, s"]
    return [f"{ASKED:,} accessions", "", *table([*columns, "fetch half, s"], rows)]


def peptides(records: Records) -> Records:
    """Cut a peptide of 9 to 15 residues out of the middle of each of some proteins."""
    chosen = spread([each for each in records if len(each[1]) >= 60], PEPTIDES)
    return [
        (f"peptide_{k}", letters[len(letters) // 2 :][: 9 + k % 7]) for k, (_, letters) in enumerate(chosen)
    ]  # fmt: skip


def scan_seconds(engine: str, queries: Path, database: Path) -> float:
    """Return the seconds of scoring the queries with a loaded database: of the kernels, or of the scan on the CPU."""
    found = read_queries(queries)
    groups = list(query_groups(found))
    with (
        create_engine(engine) as made,
        Database.open(database) as opened,
        closing(Scan(made, opened, groups)) as scan,
    ):
        scan.select(found[:1])  # now the database is on the device, and kernels are compiled
        return scan.score(*groups).kernel


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
    many, typed = f"{options.many:,} queries", "parquet" if find_spec("pyarrow") else "jsonl"
    short, iterated = ("--evalue", 1000, "--max-hits", 10), f"{many}, three iterations, a file of A3M each"
    every: dict[str, tuple[str, tuple[object, ...], tuple[str, ...]]] = {
        f"{many}, defaults": ("many", (), ("o.tsv",)),
        f"{many}, `--max-hits 10`": ("many", ("--max-hits", 10), ("o.tsv",)),
        f"{many}, `--statistics published`": ("many", ("--statistics", "published"), ("o.tsv",)),
        f"{many}, published, best 10": ("many", ("--statistics", "published", "--max-hits", 10), ("o.tsv",)),
        f"{many}, html, {typed} and xml": ("many", (), ("o.html", f"o.{typed}", "o.xml")),
        f"{PEPTIDES} peptides, E <= 1000, best 10": ("peptides", short, ("o.tsv",)),
        "20 queries, best 10": ("twenty", ("--max-hits", 10), ("o.tsv",)),
        iterated: ("many", ("--iterations", 3), ("a3m",)),
    }
    parts = options.only or [""]
    scans: dict[str, float] = {}
    for name, (which, asked, outputs) in every.items():
        if not any(part in name for part in parts):
            continue
        if which not in scans:
            scans[which] = scan_seconds(engine, paths[which], database)
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
        scan = scan_seconds(engine, write(folder / "one.fasta", [record]), database)
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


def searched(name: str, queries: Records, path: Path, subjects: Records) -> str:
    """Say what was searched."""
    cells = residues(queries) * residues(subjects) / 1e9
    return (
        f"{name}: {len(queries)} queries, {residues(queries):,} residues; {path.name}: {len(subjects):,} subjects, "
        f"{residues(subjects):,} residues; {cells:.1f} Gcells"
    )


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
    lines, names = [searched(path.name, queries, path, subjects)], ["format"]
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


def browser() -> Any:
    """Start headless Chromium."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for each in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(each)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def shown(driver: Any, page: Path, width: int, loads: int, longest: int) -> list[float]:
    """Return seconds to load, to go to the longest query, and to sort: medians of loads, each in a new tab."""
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    found: list[list[float]] = []
    for _ in range(loads):
        driver.switch_to.new_window("tab")
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get(page.as_uri())
        row = [driver.execute_async_script(PAINTED)]
        row += [driver.execute_async_script(TAKE.format(action=action), longest) for action in (GO, SORT)]
        found.append(row)
        driver.close()
        driver.switch_to.window(driver.window_handles[0])
    return [statistics.median(column) / 1000 for column in zip(*found, strict=True)]


def html_report(options: argparse.Namespace, folder: Path) -> list[str]:
    """Write reports in which every query has as many hits as it may, and show them at three widths."""
    need("chromium", "chromedriver")
    (path,), hits, rows = options.files, options.hits[0], []
    queries, subjects = read(options.queries, options.first), read(path)
    longest = 1 + max(range(len(queries)), key=lambda place: len(queries[place][1]))
    asked = write(folder / "queries.fasta", queries)
    with browser() as driver:
        version = driver.capabilities["browserVersion"]
        for mode in ("local", "global"):
            page = folder / f"{mode}.html"
            what = (
                "--mode",
                mode,
                "--evalue",
                "1e300",
                "--max-hits",
                hits,
                "--outfmt",
                "html",
                "-o",
                page,
                "--quiet",
            )
            swsearch("search", asked, path, *what)
            say(f"{mode}: the report is there")
            for width in WIDTHS:
                seconds = shown(driver, page, width, options.runs, longest)
                size = f"{page.stat().st_size / 1e6:.1f}"
                rows.append([mode, size, f"{width:,}", *(f"{each:.2f}" for each in seconds)])
    columns = ["mode", "MB", "pixels wide", "s to show it", "s to the longest query", "s to sort it"]
    return [
        f"Chromium {version}, headless", searched(options.queries.name, queries, path, subjects),
        f"{len(queries)} queries x {hits} hits; medians of {options.runs} loads", "", *table(columns, rows),
    ]  # fmt: skip
