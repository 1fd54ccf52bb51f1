"""Compare a search of genomes in their reading frames with tblastn: places, scores, E-values, and what is found.

tblastn runs without masking and composition adjustment, and without sum statistics. Every one of its alignments is
looked for among those of `swsearch search --statistics published` in a database of `db build --translate`: where
frame, places and path are the same, raw score, E-value and bit score must be equal as printed. Every other one must
meet, in its frame, one of swsearch that scores at least as much: tblastn looks near seeds and gives up gaps that cost
too much, and swsearch gives each nucleotide of a frame to one alignment, the best.

Needs: tblastn and makeblastdb (benchmarks/README.md), genomes as FASTA, plain or xz. Two minutes on two cores.
Run:   python -m benchmarks.agreement.tblastn --genomes FILE... --proteins DB.fasta [--queries 50] [--genetic-code 11]
           [--out benchmarks/results/agreement_tblastn.txt]
Exit code 1 if anything else differs.
"""

from __future__ import annotations

import lzma
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from io import StringIO
from pathlib import Path

from Bio.SeqIO.FastaIO import SimpleFastaParser

from benchmarks.support.common import (
    SUBJECTS,
    Records,
    arguments,
    command,
    finish,
    heading,
    need,
    read,
    residues,
    swsearch,
    table,
    write,
)

COLUMNS = "qseqid sseqid sframe qstart qend sstart send btop score evalue bitscore"
KEY = 8
"""Columns that tell one alignment from others; score, E-value and bit score follow."""

SURE = 0.001
"""E-value up to which what tblastn does not find is counted."""

SHOWN = 10

Rows = list[list[str]]


def genomes(paths: list[Path]) -> Records:
    """Return the records of files, plain or xz, each by the first word of its header."""
    found: Records = []
    for path in paths:
        raw = path.read_bytes()
        text = (lzma.decompress(raw) if path.suffix == ".xz" else raw).decode("ascii")
        found += [(f"g{len(found)}", letters) for _, letters in SimpleFastaParser(StringIO(text))]
    return found


def rows_of(text: str) -> Rows:
    """Return the cells of a table."""
    return [[cell.strip() for cell in line.split("\t")] for line in text.splitlines()]


def meets(row: list[str], others: Rows) -> bool:
    """Say whether an alignment shares nucleotides with another one that scores at least as much."""
    begin, end = sorted((int(row[5]), int(row[6])))
    for other in others:
        first, last = sorted((int(other[5]), int(other[6])))
        if first <= end and begin <= last and int(other[KEY]) >= int(row[KEY]):
            return True
    return False


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("--genomes", type=Path, nargs="+", required=True, help="FASTA, plain or xz")
    parser.add_argument("--proteins", type=Path, default=SUBJECTS, help="FASTA to take from, default %(default)s")
    parser.add_argument("--queries", type=int, default=50, help="to take, evenly, default %(default)s")
    parser.add_argument("--genetic-code", type=int, default=11, help="default %(default)s")
    parser.add_argument("--evalue", type=float, default=0.1, help="default %(default)s")
    options = parser.parse_args()
    need("tblastn", "makeblastdb")
    every = read(options.proteins)
    queries = every[:: max(len(every) // options.queries, 1)][: options.queries]
    dna = genomes(options.genomes)
    seconds: dict[str, float] = {}

    def timed(name: str, run: Callable[..., str], *words: object) -> str:
        begun = time.monotonic()
        text = run(*words)
        seconds[name] = time.monotonic() - begun
        return text

    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        fasta, proteins = write(work / "genomes.fasta", dna), write(work / "queries.fasta", queries)
        command("makeblastdb", "-in", fasta, "-dbtype", "nucl", "-out", work / "db")
        theirs = rows_of(timed(
            "tblastn", command, "tblastn", "-query", proteins, "-db", work / "db", "-db_gencode",
            options.genetic_code, "-evalue", options.evalue, "-comp_based_stats", 0,
            "-seg", "no", "-sum_stats", "false", "-num_threads", 2,
            "-outfmt", f"6 {COLUMNS}",
        ))  # fmt: skip
        timed(
            "swsearch db build", swsearch, "db", "build", "--translate", "--genetic-code", options.genetic_code,
            fasta, "-o", work / "db.h5", "--quiet",
        )  # fmt: skip
        size = (work / "db.h5").stat().st_size
        search = ["search", proteins, work / "db.h5", "--engine", "cpu", "--quiet", "--outfmt", f"6 {COLUMNS}"]
        timed("swsearch search", swsearch, *search)
        mine = rows_of(timed(
            "swsearch search --statistics published", swsearch, *search, "--statistics", "published", "--evalue",
            options.evalue, "--max-hits", 10**6,
        ))  # fmt: skip
    known = {tuple(row[:KEY]): row for row in mine}
    by_frame: defaultdict[tuple[str, ...], Rows] = defaultdict(list)
    for row in mine:
        by_frame[tuple(row[:3])].append(row)
    same = [row for row in theirs if tuple(row[:KEY]) in known]
    wrong = [f"{row}: swsearch {known[tuple(row[:KEY])]}" for row in same if known[tuple(row[:KEY])] != row]
    rest = [row for row in theirs if tuple(row[:KEY]) not in known]
    places = {(*row[: KEY - 1], row[KEY]) for row in mine}
    other_path = [row for row in rest if (*row[: KEY - 1], row[KEY]) in places]
    missing = [row for row in rest if not meets(row, by_frame[tuple(row[:3])])]
    wrong += [f"{row}: tblastn finds it" for row in missing]
    of_theirs: defaultdict[tuple[str, ...], Rows] = defaultdict(list)
    for row in theirs:
        of_theirs[tuple(row[:3])].append([*row[:KEY], "1000000000"])
    sure = [row for row in mine if float(row[KEY + 1]) <= SURE]
    unfound = [row for row in sure if not meets(row, of_theirs[tuple(row[:3])])]
    lines = [
        *heading(__file__, ("tblastn", "biopython")),
        f"{len(queries)} proteins of {options.proteins.name}, evenly, {residues(queries):,} residues; "
        f"{len(dna)} genomes of {', '.join(path.name for path in options.genomes)}, {residues(dna):,} nucleotides, "
        f"genetic code {options.genetic_code}; BLOSUM62 11/1, E <= {options.evalue:g}",
        "",
        *table(
            ["tblastn -comp_based_stats 0 -seg no -sum_stats false", "number"],
            [
                ["its alignments", f"{len(theirs):,}"],
                ["the same alignment, by frame, places and path", f"{len(same):,}"],
                ["of these, raw score, E-value and bit score equal as printed",
                 f"{sum(known[tuple(row[:KEY])] == row for row in same):,}"],
                ["another alignment of the same frame, places and score", f"{len(other_path):,}"],
                ["all that differ and meet one of swsearch, in their frame, that scores as much or more",
                 f"{len(rest) - len(missing):,}"],
                ["missing in swsearch", f"{len(missing):,}"],
                [f"alignments of swsearch with E <= {SURE:g}", f"{len(sure):,}"],
                ["of these, where tblastn has none", f"{len(unfound):,}"],
            ],
        ),
        "",
        *table(["whole command", "seconds"], [[name, f"{value:.1f}"] for name, value in seconds.items()]),
        "",
        f"the database file has {size:,} bytes",
        *wrong[:SHOWN],
    ]  # fmt: skip
    finish(lines, options.out)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
