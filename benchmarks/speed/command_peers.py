"""Cases of `commands.py` with contenders from other places: tables of command lines, run in turns."""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from benchmarks.support.common import Records, command, genome, numbered, read, residues, table, write
from benchmarks.support.timing import EXACT, HEURISTIC, Timing, in_turns, ratio, ratios, say
from swsearch.alphabet import DNA, PROTEIN
from swsearch.translation.genetic_codes import translated_frames

SWSEARCH = "{python} -m swsearch search {queries} {work}/db.h5 --engine {engine} --threads {threads} --quiet"
OUT = "-o {work}/found"

BUILT = {
    "{python}": ("{python} -m swsearch db build {subjects} -o {work}/db.h5 --quiet", "db.h5"),
    "blastp": ("makeblastdb -in {subjects} -dbtype prot -out {work}/db", "db.pin"),
    "diamond": ("diamond makedb --in {subjects} -d {work}/diamond --quiet", "diamond.dmnd"),
    "mmseqs": ("mmseqs createdb {subjects} {work}/mmseqs -v 1", "mmseqs"),
}
"""How each program's database is built, and a file that it has then."""
SAME_DATABASE = {"blastx": "blastp", "psiblast": "blastp"}

AGAINST = "swsearch search, the frames as proteins"
_BLASTX = "blastx -query {queries} -db {work}/db -comp_based_stats 0 -seg no -num_threads {threads} -outfmt 6"
_DIAMOND = "diamond blastx -q {queries} -d {work}/diamond --threads {threads} --quiet -f 6 -k 500 -o {work}/found"
TRANSLATED = {
    "swsearch search --translate": f"{SWSEARCH} {OUT} --translate",
    AGAINST: f"{SWSEARCH} {OUT} --allow-dna".replace("{queries}", "{frames}"),
    "blastx -comp_based_stats 0 -seg no": f"{_BLASTX} -out {{work}}/found",
    "diamond blastx": _DIAMOND,
    "diamond blastx --ultra-sensitive": f"{_DIAMOND} --ultra-sensitive",
}
READ, GENE, SEED = 150, 1500, 21
"""Nucleotides of the queries of case ``blastx``, and the seed that they are cut by."""

ITERATED = {
    "swsearch, 3 iterations": f"{SWSEARCH} --outfmt 6 --iterations 3 {OUT}",
    "jackhmmer": "jackhmmer -N 3 --cpu {threads} -o {work}/found --tblout {work}/table {queries} {subjects}",
    "psiblast": "psiblast -num_iterations 3 -num_threads {threads} -query {queries} -db {work}/db -outfmt 6 "
    "-comp_based_stats 1 -out {work}/found",
    "mmseqs2 -s 7.5": "mmseqs easy-search {queries} {work}/mmseqs {work}/found {work}/temporary --num-iterations 3 "
    "-s 7.5 --threads {threads} -v 1",
    "swsearch, one pass": f"{SWSEARCH} --outfmt 6 {OUT}",
}
LENGTH, DOMAINS = 250, 30
"""Residues of the single queries of case ``iterated``, and how many of SCOPe's domains are taken."""

TOP = 10
"""Hits with alignments per query, of every program of `cpu.py`."""
_BLASTP = "blastp -query {queries} -db {work}/db -matrix BLOSUM62 -gapopen 11 -gapextend 1 -max_target_seqs 10 "
_BLASTP += "-num_threads {threads} -outfmt 6"
SEARCH = SWSEARCH + " --max-hits 10 --statistics published"
"""Published statistics, as the peers have."""
PROTEINS = {
    "swsearch, database": (EXACT, SEARCH),
    "diamond --swipe": (
        EXACT,
        "diamond blastp --swipe -q {queries} -d {work}/diamond -p {threads} -k 10 -e 10 --comp-based-stats 0 "
        "--masking 0 --quiet",
    ),
    "ssearch36": (
        EXACT, "ssearch36 -q -T {threads} -s BP62 -f -11 -g -1 -m 8 -b 10 -d 10 {queries} {subjects}"
    ),
    "blastp": (HEURISTIC, _BLASTP),
    "blastp -comp_based_stats 0": (HEURISTIC, f"{_BLASTP} -comp_based_stats 0"),
    "mmseqs easy-search -s 7.5": (
        HEURISTIC,
        "mmseqs easy-search {queries} {work}/mmseqs {work}/found {work}/temporary -s 7.5 -e 10 "
        "--threads {threads} -v 1",
    ),
}  # fmt: skip
"""Contenders of `cpu.py`: kind and command."""


class Programs:
    """Command lines over the same subjects; databases are built in a folder where they are missing.

    Parameters
    ----------
    lines : mapping of str to str
        Commands by the contender's name; {work}, {subjects}, {queries}, ... are filled in.
    work : Path
        For databases and outputs.
    subjects : list of (str, str)
        Named anew.
    values : object
        What else is filled in.
    """

    def __init__(self, lines: Mapping[str, str], work: Path, subjects: Records, **values: object) -> None:
        self.lines = {name: line for name, line in lines.items() if self._is_here(line)}
        self.work = work
        work.mkdir(parents=True, exist_ok=True)
        path = work / "subjects.fasta"
        if not path.is_file():
            write(path, numbered(subjects, "s"))
        self._values = {"python": sys.executable, "engine": "cpu", "work": work, "subjects": path, **values}
        programs = {line.split()[0] for line in self.lines.values()}
        for program in sorted({SAME_DATABASE.get(name, name) for name in programs} & {*BUILT}):
            line, made = BUILT[program]
            if not (work / made).exists():
                say(f"{program}: building")
                self.run(line)

    @staticmethod
    def _is_here(line: str) -> bool:
        return line.startswith("{python}") or shutil.which(line.split(maxsplit=1)[0]) is not None

    def run(self, line: str, **values: object) -> str:
        """Run a command, and return what it prints; mmseqs2 would take up what an earlier run left."""
        shutil.rmtree(self.work / "temporary", ignore_errors=True)
        return command(*(word.format(**self._values, **values) for word in line.split()))

    def works(self, **values: object) -> dict[str, Callable[[], str]]:
        """Return a turn of each contender."""
        return {name: partial(self.run, line, **values) for name, line in self.lines.items()}


def cut(genomes: list[str], n: int, length: int) -> Records:
    """Cut queries of one length from genomes in turn."""
    rng, found = random.Random(SEED), []
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


def blastx(options: argparse.Namespace, folder: Path) -> list[str]:
    """Search with reads and with genes; with the GPU, where processors wait, wall seconds are compared."""
    (path,) = options.files
    subjects, genomes = read(path), [genome(each) for each in options.genomes]
    lines = [
        f"{path.name}: {len(subjects):,} subjects, {residues(subjects):,} residues; queries cut from "
        f"{', '.join(each.name for each in options.genomes)} (seed {SEED}); engine {options.engine}, "
        f"{options.threads} threads, {options.runs} turns. {options.note}".rstrip()
    ]
    programs = Programs(TRANSLATED, folder, subjects, threads=options.threads, engine=options.engine)
    clock = "wall" if options.engine == "gpu" else "busy"
    for n, length in ((options.reads, READ), (options.genes, GENE)):
        queries = cut(genomes, n, length)
        frames = frames_of(queries)
        asked = {"queries": write(folder / "q.fasta", queries), "frames": write(folder / "f.fasta", frames)}
        pairs: dict[str, int] = {}

        def counted(name: str, work: Callable[[], str], pairs: dict[str, int] = pairs) -> None:
            work()
            found = (folder / "found").read_text().splitlines()
            pairs[name] = len({tuple(line.split("\t")[:2]) for line in found})

        works = {name: partial(counted, name, work) for name, work in programs.works(**asked).items()}
        timings = in_turns(works, options.runs)
        base = getattr(timings[AGAINST], clock)
        rows = [
            [name, f"{one.median:.2f}", one.spread(), f"{statistics.median(one.busy):.2f}",
             f"{ratio(getattr(one, clock), base):.2f}", "" if name == AGAINST else f"{pairs[name]:,}"]
            for name, one in timings.items()
        ]  # fmt: skip
        cells, what = residues(frames) * residues(subjects), "s" if clock == "wall" else "processor s"
        heads = ["", "median s", "extremes", "processor s", f"times proteins' {what}", "pairs found"]
        lines += ["", f"{n:,} queries of {length:,} nucleotides, {cells / 1e9:,.0f} Gcells in six frames:", ""]
        lines += table(heads, rows)
    return lines


def iterated(options: argparse.Namespace, folder: Path) -> list[str]:
    """Search with single proteins, each alone, and with domains of SCOPe; the ratio is to jackhmmer, turn by turn."""
    from benchmarks.statistics.sensitivity import chosen
    from benchmarks.statistics.sensitivity_measures import read_scope

    proteins, (domains, _) = read(options.files[0]), read_scope(options.domains)
    long_enough = [each for each in proteins if len(each[1]) == LENGTH]
    single = random.Random(1).sample(long_enough, options.first)
    some = [domains[k] for k in chosen(len(domains), DOMAINS)]

    def measured(name: str, subjects: Records, queries: list[Records]) -> list[str]:
        programs = Programs(ITERATED, folder / name, subjects, threads=options.threads)
        timings = {contender: Timing() for contender in programs.lines}
        files = [write(folder / f"{name}-{place}.fasta", each) for place, each in enumerate(queries)]
        for turn in range(options.runs):
            for file in files:
                for contender, one in in_turns(programs.works(queries=file), 1, f"{turn + 1}, {file.stem}: ").items():
                    timings[contender].wall += one.wall
                    timings[contender].busy += one.busy
        return table(HEADS, [_iterated_row(contender, one, timings) for contender, one in timings.items()])

    of_one = measured("large", proteins, [[each] for each in single])
    of_domains = measured("scope", domains, [numbered(some, "q")])
    return [
        f"{options.threads} threads; {options.runs} turns; whole commands, databases built before. "
        f"{options.note}".strip(),
        "",
        f"One query of {LENGTH} residues, 3 iterations: {', '.join(name for name, _ in single)} "
        f"against {len(proteins):,} proteins, {residues(proteins):,} residues",
        "", *of_one, "",
        f"{DOMAINS} of SCOPe's domains, {residues(some):,} residues, 3 iterations, against all "
        f"{len(domains):,}, {residues(domains):,} residues",
        "", *of_domains,
    ]  # fmt: skip


HEADS = [
    "", "median s", "extremes", "processor s", "times jackhmmer's", "extremes", "times jackhmmer's processor s",
]  # fmt: skip


def _iterated_row(name: str, one: Timing, timings: dict[str, Timing]) -> list[str]:
    other = timings.get("jackhmmer", one)
    times = ratios(one.wall, other.wall)
    return [
        name, f"{one.median:.2f}", one.spread(), f"{statistics.median(one.busy):.2f}",
        f"{statistics.median(times):.2f}", f"{min(times):.2f} - {max(times):.2f}",
        f"{ratio(one.busy, other.busy):.2f}",
    ]  # fmt: skip
