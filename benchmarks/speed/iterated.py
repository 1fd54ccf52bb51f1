"""Measure what an iterated search costs, beside jackhmmer, psiblast and mmseqs2.

Two tables, of whole commands whose databases were built before, with the thresholds of the programs' defaults:
  one query         --first proteins of 250 residues (--length), drawn from the subjects by --seed, each alone against
                    all subjects (Swiss-Prot): three iterations, and one exact pass;
  SCOPe's domains   30 of them, evenly spaced over the classification, against all.
Contenders take turns (A B C, A B C, ...), so that a machine whose speed drifts is fair to all. Times of a table are
medians over its turns and queries; the ratio is the median of those in the same turn, to jackhmmer.

Needs: ncbi-blast+, hmmer, mmseqs2 (what is not installed is skipped), a quiet machine. Ten minutes on two cores.
Run:   python -m benchmarks.speed.iterated --subjects uniprot_sprot.fasta --domains scop40.fasta.xz --work FOLDER
           [--first 5] [--runs 3] [--threads 2] [--out benchmarks/results/iterated_speed.txt]
Databases stay in --work.
"""

from __future__ import annotations

import random
import shutil
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.statistics.sensitivity import chosen
from benchmarks.statistics.sensitivity_measures import read_scope
from benchmarks.support.common import (
    Records,
    arguments,
    command,
    finish,
    heading,
    numbered,
    read,
    residues,
    table,
    write,
)
from benchmarks.support.timing import Timing, say, take_turn

N_ITERATIONS = 3
AGAINST = "jackhmmer"

BUILT: dict[str, tuple[str, str]] = {
    "swsearch": ("{python} -m swsearch db build {subjects} -o {database}.h5 --quiet", "{database}.h5"),
    "psiblast": ("makeblastdb -in {subjects} -dbtype prot -out {database}", "{database}.pdb"),
    "mmseqs": ("mmseqs createdb {subjects} {database} -v 1", "{database}"),
}
"""How each program's database is built, and a file that it has then."""

LINES = {
    f"swsearch, {N_ITERATIONS} iterations": (
        "swsearch",
        "{python} -m swsearch search {queries} {database}.h5 --engine cpu --threads {threads} --quiet --outfmt 6 "
        f"--iterations {N_ITERATIONS} -o {{out}}",
    ),
    "jackhmmer": (
        "jackhmmer",
        f"jackhmmer -N {N_ITERATIONS} --cpu {{threads}} -o {{out}} --tblout {{out}}.table {{queries}} {{subjects}}",
    ),
    "psiblast": (
        "psiblast",
        f"psiblast -num_iterations {N_ITERATIONS} -num_threads {{threads}} -query {{queries}} -db {{database}} "
        "-outfmt 6 -comp_based_stats 1 -out {out}",
    ),
    "mmseqs2 -s 7.5": (
        "mmseqs",
        f"mmseqs easy-search {{queries}} {{database}} {{out}} {{temporary}} --num-iterations {N_ITERATIONS} -s 7.5 "
        "--threads {threads} -v 1",
    ),
    "swsearch, one pass": (
        "swsearch",
        "{python} -m swsearch search {queries} {database}.h5 --engine cpu --threads {threads} --quiet --outfmt 6 "
        "-o {out}",
    ),
}
"""Program and command of each contender."""


class Place:
    """Where some subjects and their databases are.

    Parameters
    ----------
    folder : Path
        Of the databases, which are built where they are missing.
    records : list of (str, str)
        The subjects; names are replaced.
    threads : int
        Of every program.
    """

    def __init__(self, folder: Path, records: Records, threads: int):
        self.folder, self.threads = folder, threads
        folder.mkdir(parents=True, exist_ok=True)
        self.subjects = folder / "subjects.fasta"
        if not self.subjects.is_file():
            write(self.subjects, numbered(records, "s"))

    def filled(self, line: str, program: str, queries: Path | None = None) -> list[str]:
        """Fill in a command line."""
        values = {
            "python": sys.executable, "subjects": self.subjects, "database": self.folder / f"db-{program}",
            "queries": queries, "threads": self.threads, "out": self.folder / "found",
            "temporary": self.folder / "temporary",
        }  # fmt: skip
        return [word.format(**values) for word in line.split()]

    def build(self) -> None:
        """Build what is missing."""
        for program, (line, made) in BUILT.items():
            there = program == "swsearch" or shutil.which(program)
            if there and not Path(self.filled(made, program)[0]).exists():
                say(f"{program}: building")
                command(*self.filled(line, program))

    def work(self, name: str, queries: Path) -> Callable[[], object]:
        """Return what one turn of a contender does."""
        program, line = LINES[name]
        words = self.filled(line, program, queries)
        return lambda: command(*words)

    def clear(self) -> None:
        """Leave nothing that mmseqs2 would go on with."""
        shutil.rmtree(self.folder / "temporary", ignore_errors=True)


def here() -> list[str]:
    """Name the contenders whose programs are installed."""
    return [name for name, (program, _) in LINES.items() if program == "swsearch" or shutil.which(program)]


def measured(place: Place, queries: list[Path], runs: int) -> list[list[str]]:
    """Time all contenders in turns over some files of queries; return the rows of the table."""
    place.build()
    names = here()
    timings: dict[str, Timing] = {name: Timing() for name in names}
    for turn in range(runs):
        for path in queries:
            for name in names:
                place.clear()
                take_turn(timings[name], place.work(name, path))
                say(f"turn {turn + 1}, {path.name}, {name}: {timings[name].wall[-1]:.2f} s")
    rows = []
    for name in names:
        one, other = timings[name], timings.get(AGAINST, timings[name])
        ratios = [mine / its for mine, its in zip(one.wall, other.wall, strict=True)]
        busy = [mine / its for mine, its in zip(one.busy, other.busy, strict=True)]
        rows.append([
            name, f"{one.median:.2f}", one.spread(), f"{statistics.median(one.busy):.2f}",
            f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f} - {max(ratios):.2f}",
            f"{statistics.median(busy):.2f}",
        ])  # fmt: skip
    return rows


HEADS = [
    "", "median s", "extremes", "processor s", f"times {AGAINST}'s", "extremes", f"times {AGAINST}'s processor s",
]  # fmt: skip


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("--subjects", type=Path, required=True, help="FASTA of Swiss-Prot")
    parser.add_argument("--domains", type=Path, required=True, help="SCOPe's FASTA, plain or .xz")
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps databases")
    parser.add_argument("--length", type=int, default=250, help="residues of the single queries, default %(default)s")
    parser.add_argument("--first", type=int, default=5, help="single queries, default %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn, default %(default)s")
    parser.add_argument("--runs", type=int, default=3, help="turns, default %(default)s")
    parser.add_argument("--threads", type=int, default=2, help="of every program, default %(default)s")
    parser.add_argument("--note", default="", help="a sentence for the report, such as what else ran")
    options = parser.parse_args()
    proteins = read(options.subjects)
    domains, _ = read_scope(options.domains)
    long_enough = [each for each in proteins if len(each[1]) == options.length]
    single = random.Random(options.seed).sample(long_enough, options.first)
    large = Place(options.work / "large", proteins, options.threads)
    files = [write(options.work / f"{name}.fasta", [(name, letters)]) for name, letters in single]
    of_one = measured(large, files, options.runs)
    some = [domains[k] for k in chosen(len(domains), 30)]
    scope = Place(options.work / "scope", domains, options.threads)
    of_domains = measured(scope, [write(options.work / "domains.fasta", numbered(some, "q"))], options.runs)
    lines = [
        *heading(__file__, [name for name in ("psiblast", "jackhmmer", "mmseqs") if shutil.which(name)]),
        f"{options.threads} threads; {options.runs} turns; whole commands, databases built before. "
        f"{options.note}".strip(),
        "",
        f"One query of {options.length} residues, {N_ITERATIONS} iterations: {', '.join(name for name, _ in single)} "
        f"against {len(proteins):,} proteins, {residues(proteins):,} residues",
        "",
        *table(HEADS, of_one),
        "",
        f"30 of SCOPe's domains, {residues(some):,} residues, {N_ITERATIONS} iterations, against all "
        f"{len(domains):,}, {residues(domains):,} residues",
        "",
        *table(HEADS, of_domains),
    ]
    finish(lines, options.out)


if __name__ == "__main__":
    main()
