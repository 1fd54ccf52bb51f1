"""Measure what DNA queries cost, beside the same frames as proteins, blastx and diamond blastx.

Two files of queries are cut from genomes: --reads of 150 nucleotides, and --genes of 1,500. Whole commands against
--subjects, whose databases were built before; contenders take turns (A B C, A B C, ...), so that a machine whose
speed drifts, or that others use too, is fair to all. `swsearch search` of proteins searches with the six frames of
the same queries, so that its cells are the same; ratios are medians of those to it in the same turn.

Needs: ncbi-blast+, diamond-aligner (what is not installed is skipped), a quiet machine. Ten minutes on two cores.
Run:   python -m benchmarks.speed.blastx --genomes FILE... --subjects DB.fasta --work FOLDER [--reads 200]
           [--genes 20] [--runs 3] [--threads 2] [--engine cpu] [--out benchmarks/results/blastx_speed.txt]
Databases stay in --work. With --engine gpu, where processors wait, wall seconds are compared; results go into
benchmarks/results/blastx_gpu.txt.
"""

from __future__ import annotations

import random
import shutil
import statistics
import sys
from pathlib import Path

from benchmarks.agreement.blastx import genome
from benchmarks.support.common import (
    SUBJECTS,
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
from swsearch.alphabet import DNA, PROTEIN
from swsearch.translation.genetic_codes import translated_frames

SEED = 21
READ, GENE = 150, 1500
"""Nucleotides."""

AGAINST = "swsearch search, the frames as proteins"

BUILT = {
    "swsearch": ("{python} -m swsearch db build {subjects} -o {work}/db.h5 --quiet", "db.h5"),
    "blastx": ("makeblastdb -in {subjects} -dbtype prot -out {work}/db", "db.pin"),
    "diamond": ("diamond makedb --in {subjects} -d {work}/diamond --quiet", "diamond.dmnd"),
}
"""How each program's database is built, and a file that it has then."""

_SEARCH = (
    "{python} -m swsearch search {queries} {work}/db.h5 --engine {engine} --threads {threads} --quiet -o {work}/found"
)

LINES = {
    "swsearch search --translate": ("swsearch", f"{_SEARCH} --translate"),
    AGAINST: ("swsearch", _SEARCH.replace("{queries}", "{frames}") + " --allow-dna"),
    "blastx -comp_based_stats 0 -seg no": (
        "blastx",
        "blastx -query {queries} -db {work}/db -comp_based_stats 0 -seg no -num_threads {threads} -outfmt 6 "
        "-out {work}/found",
    ),
    "diamond blastx": (
        "diamond",
        "diamond blastx -q {queries} -d {work}/diamond --threads {threads} --quiet -f 6 -k 500 -o {work}/found",
    ),
    "diamond blastx --ultra-sensitive": (
        "diamond",
        "diamond blastx -q {queries} -d {work}/diamond --threads {threads} --quiet -f 6 -k 500 --ultra-sensitive "
        "-o {work}/found",
    ),
}
"""Program and command of each contender."""


def cut(genomes: list[str], n: int, length: int) -> Records:
    """Cut queries of one length from genomes in turn."""
    rng = random.Random(SEED)
    found: Records = []
    for place in range(n):
        whole = genomes[place % len(genomes)]
        begin = rng.randrange(len(whole) - length)
        found.append((f"q{place}", whole[begin : begin + length]))
    return found


def frames_of(queries: Records) -> Records:
    """Return the six frames of queries."""
    return [
        (f"{name}.{number}", PROTEIN.decode(codes))
        for name, letters in queries
        for number, codes in translated_frames(DNA.encode(letters))
    ]


def measured(queries: Records, work: Path, threads: int, runs: int, engine: str) -> list[list[str]]:
    """Time all contenders in turns; return the rows of the table."""
    values = {
        "python": sys.executable, "work": work, "threads": threads, "engine": engine,
        "subjects": work / "subjects.fasta",
        "queries": write(work / "queries.fasta", queries), "frames": write(work / "frames.fasta", frames_of(queries)),
    }  # fmt: skip
    names = [name for name, (program, _) in LINES.items() if program == "swsearch" or shutil.which(program)]
    for program, (line, made) in BUILT.items():
        if any(LINES[name][0] == program for name in names) and not (work / made).exists():
            command(*(word.format(**values) for word in line.split()))
    timings, hits = {name: Timing() for name in names}, dict.fromkeys(names, 0)
    for turn in range(runs):
        for name in names:
            words = [word.format(**values) for word in LINES[name][1].split()]
            take_turn(timings[name], lambda words=words: command(*words))  # type: ignore[misc]
            rows = {tuple(line.split("\t")[:2]) for line in (work / "found").read_text().splitlines()}
            hits[name] = len(rows)
            say(f"turn {turn + 1}, {name}: {timings[name].wall[-1]:.2f} s")
    found = []
    for name in names:
        one = timings[name]
        both = (one.wall, timings[AGAINST].wall) if engine == "gpu" else (one.busy, timings[AGAINST].busy)
        ratios = [mine / its for mine, its in zip(*both, strict=True)]
        shown = "" if name == AGAINST else f"{hits[name]:,}"
        found.append([name, f"{one.median:.2f}", one.spread(), f"{statistics.median(one.busy):.2f}",
                      f"{statistics.median(ratios):.2f}", shown])  # fmt: skip
    return found


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("--genomes", type=Path, nargs="+", required=True, help="FASTA, plain or xz")
    parser.add_argument("--subjects", type=Path, default=SUBJECTS, help="FASTA, default %(default)s")
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps databases")
    parser.add_argument("--reads", type=int, default=200, help=f"of {READ} nucleotides, default %(default)s")
    parser.add_argument("--genes", type=int, default=20, help=f"of {GENE:,} nucleotides, default %(default)s")
    parser.add_argument("--runs", type=int, default=3, help="turns, default %(default)s")
    parser.add_argument("--threads", type=int, default=2, help="of every program, default %(default)s")
    parser.add_argument("--engine", default="cpu", choices=("cpu", "gpu"), help="of swsearch, default %(default)s")
    parser.add_argument("--note", default="", help="a sentence for the report, such as what else ran")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    subjects = numbered(read(options.subjects), "s")
    write(options.work / "subjects.fasta", subjects)
    genomes = [genome(path) for path in options.genomes]
    lines = [
        *heading(__file__, [name for name in ("blastx", "diamond") if shutil.which(name)]),
        f"{options.subjects.name}: {len(subjects):,} subjects, {residues(subjects):,} residues; queries cut from "
        f"{', '.join(path.name for path in options.genomes)} (seed {SEED}); engine {options.engine}, "
        f"{options.threads} threads, {options.runs} turns. {options.note}".rstrip(),
    ]
    for n, length in ((options.reads, READ), (options.genes, GENE)):
        queries = cut(genomes, n, length)
        cells = residues(frames_of(queries)) * residues(subjects)
        rows = measured(queries, options.work, options.threads, options.runs, options.engine)
        clock = "s" if options.engine == "gpu" else "processor s"
        heads = ["", "median s", "extremes", "processor s", f"times proteins' {clock}", "pairs found"]
        lines += ["", f"{n:,} queries of {length:,} nucleotides, {cells / 1e9:,.0f} Gcells in six frames:", "",
                  *table(heads, rows)]  # fmt: skip
    finish(lines, options.out)


if __name__ == "__main__":
    main()
