"""Costs of whole commands: seconds, memory, bytes. A table for each case; contenders take turns (A B C, A B C, ...).

Cases, and their files:
  evalues QUERIES DATABASE...    E-values from shuffled copies (the default) beside published ones
  taxa SUBJECTS                  `--taxids` beside a database of only these sequences; hits must be the same
  memory DATABASE...             peak memory of a search for each subject, beside a database of one record
  msa QUERIES DATABASE           `swsearch msa` of 1, 20 and 100 queries of evenly spread lengths, once each
  long_pair [A B]                `swsearch align` of two proteins, by default two relatives of titin's size
  build FASTA                    `swsearch db build` of the file, of five times the file, and of --records made ones
  jobs SUBJECTS DATABASE TWENTY  jobs of usual sizes, beside the kernels' or the scan's seconds
  writers [SUBJECTS]             processor time and bytes of each output format, per hit
  places SUBJECTS DATABASE TWENTY  one process beside --workers, or one GPU beside --devices, kernels and scans
                                 as well; the bytes must be the same
  streamed SUBJECTS              one and three queries, as search and as msa, in --residues of subjects and random
                                 proteins, beside kernels; on a GPU also streamed
  blastx [SUBJECTS]              DNA queries cut from --genomes, beside their frames as proteins, blastx and diamond
  iterated SUBJECTS              three iterations of single proteins, and of SCOPe's --domains, beside jackhmmer,
                                 psiblast and mmseqs2
Databases of the last two are built before the measurement and stay in --work.

Needs: a quiet machine; pyarrow for writers, dask.distributed for places, ncbi-blast+, diamond-aligner, hmmer and
       mmseqs2 for the last two (programs that are not installed are skipped). Minutes each.
Run:   python -m benchmarks.speed.commands CASE [FILE ...] [--queries Q.fasta] [--first 20] [--engine cpu] [--runs 5]
           [--hits 500] [--records 5M 100M] [--out benchmarks/results/CASE.txt]
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.speed import command_cases, command_peers
from benchmarks.support.common import (
    QUERIES,
    SUBJECTS,
    arguments,
    finish,
    heading,
    numbers,
    read,
    residues,
    swsearch,
    table,
    write,
)
from benchmarks.support.timing import cost_of, in_turns, ratio, ratios
from swsearch.db import Database, build_database

MIB = 1 << 20
TAXID, OTHERS, HUMAN = 9606, 100, 20_240
"""Taxids of case ``taxa``: as many sequences have the first as Swiss-Prot has human proteins, others one of 100."""
LONG, CHANGED = 35_000, 0.4
"""Residues of the made pair of case ``long_pair``, and the share that differs."""
MADE, AT_ONCE = 30, 1 << 18
"""Residues of a made record of case ``build``, and records that are made at once."""
UNITS = {"K": 1000, "M": 1000_000, "G": 1000_000_000}
UNIREF90 = 45.4e9
"""Residues of UniRef90, to which case ``msa`` extrapolates."""
LETTERS = np.frombuffer(b"ACDEFGHIKLMNPQRSTVWY", dtype=np.uint8)


def number(text: str) -> int:
    """Read a number of records, such as 5M."""
    try:
        return int(text.rstrip("KMG").replace("_", "")) * UNITS.get(text[-1:], 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number such as 5M") from None


def lines_in(path: Path) -> int:
    """Count lines."""
    return path.read_bytes().count(b"\n")


def evalues(options: argparse.Namespace, folder: Path) -> list[str]:
    """Time both kinds of E-values, for each database and number of hits."""
    queries, *databases = options.files
    records, rows = read(queries), []
    for database in databases:
        for most in options.hits:
            words = ("search", queries, database, "--engine", options.engine, "--max-hits", most, "--quiet")
            works = {
                method: partial(swsearch, *words, "--statistics", method, "-o", folder / method)
                for method in ("published", "auto")
            }
            published, default = in_turns(works, options.runs, f"{database.name}, ").values()
            pairs = ratios(default.wall, published.wall)
            rows.append([
                database.name, most, f"{published.median:.2f}", f"{default.median:.2f}",
                f"{statistics.median(pairs):.3f} ({min(pairs):.2f} - {max(pairs):.2f})",
                f"{ratio(default.busy, published.busy):.3f}", *(f"{lines_in(folder / name):,}" for name in works),
            ])  # fmt: skip
    columns = ["database", "--max-hits", "published, s", "default, s", "ratio (range)", "ratio of processor time"]
    return [
        f"{queries.name}: {len(records):,} queries, {residues(records):,} residues; engine {options.engine}; "
        f"whole commands, {options.runs} turns, medians",
        "", *table([*columns, "hits, published", "hits, default"], rows),
    ]  # fmt: skip


def taxa(options: argparse.Namespace, folder: Path) -> list[str]:
    """Search some taxa of a database, and a database of these alone."""
    (path,) = options.files
    subjects, queries = read(path), read(options.queries, options.first)
    step = max(len(subjects) // HUMAN, 1)
    chosen = dict.fromkeys(range(0, len(subjects), step)[:HUMAN])
    human = [subjects[place] for place in chosen]
    (folder / "taxids").write_text("".join(
        f"{name} {TAXID if place in chosen else TAXID + 1 + place % OTHERS}\n"
        for place, (name, _) in enumerate(subjects)
    ))  # fmt: skip
    whole, alone = folder / "whole.h5", folder / "alone.h5"
    swsearch("db", "build", write(folder / "s", subjects), "-o", whole, "--taxids", folder / "taxids", "-q")
    swsearch("db", "build", write(folder / "h", human), "-o", alone, "-q")
    rows, names = [], {name for name, _ in human}
    for count in (1, len(queries)):
        asked = write(folder / "asked.fasta", queries[:count])
        shared = ("--engine", options.engine, "--threads", options.threads, "-q", "-o")
        everything = partial(
            swsearch, "search", asked, whole, "--max-hits", 10**6, *shared, folder / "everything.tsv"
        )
        works = {
            "taxa": partial(swsearch, "search", asked, whole, "--taxids", TAXID, *shared, folder / "taxa.tsv"),
            "alone": partial(swsearch, "search", asked, alone, *shared, folder / "alone.tsv"),
        }
        in_turns(works, 1, "not counted: ")  # reads the files into the system's memory
        times = [*in_turns(works, options.runs).values(), *in_turns({"whole": everything}, 1).values()]
        wanted = [
            line for line in (folder / "everything.tsv").read_text().splitlines() if line.split("\t")[1] in names
        ]
        if (folder / "taxa.tsv").read_text().splitlines() != wanted:
            sys.exit(f"{path}: the filter found other hits than all hits hold, with {options.threads} threads")
        cells = [f"{each.median:.2f}, {statistics.median(each.busy):.2f}" for each in times]
        both = f"{times[0].median / times[1].median:.2f}, "
        both += f"{statistics.median(times[0].busy) / statistics.median(times[1].busy):.2f}"
        rows.append([count, f"{residues(queries[:count]):,}", *cells[:2], both, cells[2]])
    columns = ["queries", "residues", "some taxa, s", "a database of these, s", "ratio", "the whole database, s"]
    return [
        f"{path.name}: {len(subjects):,} sequences, {residues(subjects):,} residues; {len(human):,} of them "
        f"({residues(human):,} residues) are given taxid {TAXID}; engine {options.engine}, {options.threads} "
        f"threads; medians of {options.runs} turns, the whole database once",
        "", *table(columns, rows),
        "", "Of each the wall seconds of the whole command, and the processor seconds in it.",
    ]  # fmt: skip


def memory(options: argparse.Namespace, folder: Path) -> list[str]:
    """Search each database with one query; what is more than with one record is divided by the subjects."""
    (query,) = read(options.queries, 1)
    asked, alone = write(folder / "query.fasta", [query]), folder / "alone.h5"
    build_database(asked, alone)
    base, rows = 0, []
    for path in (alone, *options.files):
        with Database.open(path) as database:
            n_subjects, n_residues = database.n_subjects, database.n_residues
        peak = cost_of("search", asked, path, "--max-hits", 10, "--engine", options.engine, "--quiet").peak_bytes
        base = base or peak
        above = f"{(peak - base) / n_subjects:.1f}" if path is not alone else ""
        rows.append([f"{n_subjects:,}", f"{n_residues:,}", f"{peak / MIB:,.0f}", above])
    columns = ["subjects", "residues", "peak RSS MiB", "bytes per subject above the first"]
    return [
        f"one query of {len(query[1]):,} residues, --max-hits 10 --engine {options.engine}",
        "",
        *table(columns, rows),
    ]


def msa(options: argparse.Namespace, folder: Path) -> list[str]:
    """Write alignments; seconds and bytes on disk are proportional to the residues of a database."""
    queries, path = options.files
    records = sorted(read(queries), key=lambda record: len(record[1]))
    with Database.open(path) as database:
        n_subjects, n_residues = database.n_subjects, database.n_residues
    times, rows = UNIREF90 / n_residues, []
    for n in options.counts:
        chosen = [records[(2 * k + 1) * len(records) // (2 * n)] for k in range(n)]
        asked, out = write(folder / "asked.fasta", chosen), folder / f"{n}"
        words = ("--engine", options.engine, "--threads", options.threads, "--quiet", "-o", out)
        cost = cost_of("msa", asked, path, *words)
        n_rows = sum(each.read_text().count(">") - 1 for each in out.iterdir())
        rows.append([
            n, f"{residues(chosen):,}", f"{n_rows:,}", f"{cost.seconds:.0f}", f"{cost.cpu_seconds:.0f}",
            f"{cost.peak_bytes / MIB:,.0f}", f"{cost.cpu_seconds * times / 3600 / options.threads / n:.2f}",
        ])  # fmt: skip
    columns = ["queries", "residues", "rows", "wall s", "CPU s", "peak RSS MiB", "UniRef90, hours a query"]
    return [
        f"{path.name}: {n_subjects:,} subjects, {n_residues:,} residues; engine {options.engine}, {options.threads} "
        "threads, defaults",
        "", *table(columns, rows), "",
        f"UniRef90, extrapolated: {UNIREF90:.3g} residues are {times:.0f} times as many, in "
        f"{path.stat().st_size * times / 1e9:.0f} GB of disk; hours if {options.threads} processors are free",
    ]  # fmt: skip


def long_pair(options: argparse.Namespace, folder: Path) -> list[str]:
    """Align two proteins in both modes."""
    pair, rows = options.files or made_pair(folder), []
    for mode in ("local", "global"):
        output, limit = folder / "score.tsv", options.memory or "256M"
        cost = cost_of("align", *pair, "--mode", mode, "--memory", limit, "--outfmt", "cigar", "-o", output)
        score = output.read_text().split("\t")[2]
        rows.append([mode, score, f"{cost.seconds:.1f}", f"{cost.peak_bytes / MIB:.0f}"])
    names = options.files or ("made-up", "made-up")
    about = f"{names[0]} x {names[1]}, --memory {limit}"
    return [about, "", *table(["mode", "score", "wall s", "peak RSS MiB"], rows)]


def made_pair(folder: Path) -> list[Path]:
    """Write two relatives, with gaps."""
    generator = np.random.default_rng(35)
    letters = np.frombuffer(b"ARNDCQEGHILKMFPSTWYV", dtype=np.uint8)
    a = generator.choice(letters, LONG)
    b = np.where(generator.random(LONG) < CHANGED, generator.choice(letters, LONG), a)
    pieces = np.split(b, np.sort(generator.integers(0, LONG, 60)))
    b = np.concatenate([piece[int(generator.integers(0, 8)) :] for piece in pieces])
    return [write(folder / f"{name}.fasta", [(name, each.tobytes().decode())]) for name, each in (("a", a), ("b", b))]


def build(options: argparse.Namespace, folder: Path) -> list[str]:
    """Build databases; memory must not follow the input's size."""
    (path,) = options.files
    budget = ["--memory", options.memory] if options.memory else []
    database, made, rows = folder / "built.h5", folder / "made.fasta", []

    def add(name: str, inputs: list[Path]) -> None:
        database.unlink(missing_ok=True)
        cost = cost_of("db", "build", *inputs, "-o", database, "--quiet", *budget)
        size, written = sum(each.stat().st_size for each in inputs), database.stat().st_size
        rows.append([
            name, f"{size / 1e6:,.0f}", f"{written / 1e6:,.0f}", f"{cost.seconds:.2f}", f"{cost.cpu_seconds:.2f}",
            f"{cost.peak_bytes / MIB:,.0f}", f"{cost.disk_bytes / 1e6:,.0f}", f"{size / 1e6 / cost.seconds:.0f}",
        ])  # fmt: skip

    for times in (1, 5):
        add(f"{path.name}, {times} x", [path] * times)
    for n in options.records:
        make(made, n)
        add(f"{n:,} records of {MADE}", [made])
    if options.keep:
        shutil.move(database, options.keep)
    columns = ["input", "FASTA MB", "database MB", "wall s", "CPU s", "peak RSS MiB", "peak disk MB", "FASTA MB/s"]
    return [f"--memory {options.memory or '(default)'}", "", *table(columns, rows)]


def make(path: Path, n: int) -> None:
    """Write random records, named by their number."""
    generator = np.random.default_rng(n)
    with path.open("wb") as file:
        for first in range(0, n, AT_ONCE):
            places = np.arange(first, min(first + AT_ONCE, n))
            rows = np.full((len(places), 12 + MADE + 1), ord("\n"), dtype=np.uint8)
            rows[:, :2] = np.frombuffer(b">r", dtype=np.uint8)
            for digit in range(9):
                rows[:, 10 - digit] = ord("0") + places // 10**digit % 10
            rows[:, 12:-1] = LETTERS[generator.integers(0, 20, (len(rows), MADE), dtype=np.uint8)]
            file.write(rows.data)


class Case(NamedTuple):
    """A case: its measurement, its default counts, and the packages and programs in its report."""

    measure: Callable[[argparse.Namespace, Path], list[str]]
    runs: int = 5
    names: tuple[str, ...] = ("numpy",)
    first: int = 20


CASES = {
    "evalues": Case(evalues),
    "taxa": Case(taxa, names=()),
    "memory": Case(memory),
    "msa": Case(msa, 1),
    "long_pair": Case(long_pair),
    "build": Case(build, names=("h5py", "numpy")),
    "jobs": Case(command_cases.jobs, 3),
    "places": Case(command_cases.places, 3),
    "streamed": Case(command_cases.streamed, 3, ("h5py", "numpy")),
    "writers": Case(command_cases.writers, names=("numpy", "pyarrow"), first=40),
    "blastx": Case(command_peers.blastx, 3, ("blastx", "diamond")),
    "iterated": Case(command_peers.iterated, 3, ("psiblast", "jackhmmer", "mmseqs"), first=5),
}


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = arguments(__doc__, files=False)
    add = parser.add_argument
    add("case", choices=CASES, help="what is measured, see above")
    add("files", type=Path, nargs="*", metavar="FILE", help="see above")
    add("--queries", type=Path, default=QUERIES, help="FASTA, default %(default)s")
    add("--first", type=int, help="queries to take")
    add("--engine", default="cpu", help="what searches, default %(default)s")
    add("--runs", type=int, help="turns of each, default 3 to 5")
    add("--threads", type=int, default=2, help="of every program, default %(default)s")
    add("--hits", type=numbers, default=[500], help="of a query at most; in evalues such as 10,500; default 500")
    add("--counts", type=numbers, default=[1, 20, 100], help="msa: numbers of queries, default 1,20,100")
    add("--records", type=number, nargs="+", default=[], help="records to make, such as 5M 100M")
    add("--residues", type=number, default=2 * 10**9, help="streamed: residues, such as 2G, the default")
    add("--memory", help="passed on to build and align")
    add("--keep", type=Path, metavar="FILE", help="build: move the last database here")
    add("--many", type=int, default=1000, help="jobs, places: how many queries are many, default %(default)s")
    add("--only", action="append", metavar="PART", help="jobs, places: whose name has this; may be repeated")
    add("--devices", type=numbers, default=[0, 0], help="places, with --engine gpu: against the first alone")
    add("--workers", type=numbers, default=[1, 2, 4], help="places: numbers of local workers, default 1,2,4")
    add("--cluster", metavar="ADDRESS", help="places: workers that run already")
    add("--genomes", type=Path, nargs="+", default=[], help="blastx: FASTA, plain or xz")
    add("--reads", type=int, default=200, help="blastx: queries of 150 nucleotides, default %(default)s")
    add("--genes", type=int, default=20, help="blastx: queries of 1,500 nucleotides, default %(default)s")
    add("--domains", type=Path, help="iterated: SCOPe's FASTA, plain or .xz")
    add("--work", type=Path, help="folder for what is made; it stays there")
    add("--note", default="", help="a sentence for the report, such as what else ran")
    options = parser.parse_intermixed_args()
    least = {"evalues": 2, "jobs": 3, "places": 3, "msa": 2}
    least |= {"iterated": 1, "taxa": 1, "memory": 1, "build": 1, "streamed": 1}
    if len(options.files) < least.get(options.case, 0):
        parser.error(f"{options.case}: got {len(options.files)} files, expected those that its line above names")
    if absent := [path for path in options.files if not path.exists()]:
        parser.error(f"{absent[0]}: no such file")
    case = CASES[options.case]
    options.runs, options.first = options.runs or case.runs, options.first or case.first
    if options.case == "blastx":
        options.files = options.files or [SUBJECTS]
    return options


def main() -> None:
    options = read_options()
    case = CASES[options.case]
    names = [name for name in case.names if options.case not in ("blastx", "iterated") or shutil.which(name)]
    head = heading(f"{__file__} {options.case}", names)
    if options.work is not None:
        options.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="swsearch-commands-") as name:
        lines = case.measure(options, options.work or Path(name))
    finish([*head, *lines], options.out)


if __name__ == "__main__":
    main()
