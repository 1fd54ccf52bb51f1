"""Compare a search with DNA queries, translated in six frames, with blastx: scores, E-values, and what is found.

Queries are cut from genomes, at random, from both strands, with some letters turned into N. blastx runs without
masking and composition adjustment, with and without sum statistics. Every one of its alignments is looked for among
those of `swsearch search --translate --statistics published`: where frame, places and path are the same, raw
score, E-value and bit score must be equal as printed. With sum statistics, E-values of a subject with a single
alignment should be 1/0.9 times as large; how many are is counted. No hit of blastx up to --least may be missing.

Needs: blastx and makeblastdb (benchmarks/README.md), genomes as FASTA, plain or xz. Five minutes on two cores.
Run:   python -m benchmarks.agreement.blastx --genomes FILE... --subjects DB.fasta [--queries 100]
           [--out benchmarks/results/agreement_blastx.txt]
Exit code 1 if anything else differs.
"""

from __future__ import annotations

import lzma
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
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
    numbered,
    read,
    residues,
    swsearch,
    table,
    write,
)

SEED = 20
"""Of the drawing."""

LENGTHS = (100, 101, 102, 200, 301, 500, 900, 1500, 3000)
"""Nucleotides of queries."""

SHARE_OF_N = 0.01
"""Of the letters, which become N."""

COLUMNS = "qseqid sseqid qframe qstart qend sstart send btop score evalue bitscore"
KEY = 8
"""Columns that tell one alignment from others; score, E-value and bit score follow."""

MOST = 20
"""Alignments of a subject."""

DECAY = 0.9
"""By which blastx's sum statistics divide the E-value of a single alignment."""

SHOWN = 10

Rows = list[list[str]]


def genome(path: Path) -> str:
    """Return the first record of a file, plain or xz."""
    raw = path.read_bytes()
    text = (lzma.decompress(raw) if path.suffix == ".xz" else raw).decode("ascii")
    return next(letters.upper() for _, letters in SimpleFastaParser(StringIO(text)))


def cut(genomes: Sequence[str], n: int) -> Records:
    """Cut queries from genomes in turn."""
    rng, other = random.Random(SEED), str.maketrans("ACGT", "TGCA")
    found: Records = []
    for place in range(n):
        whole = genomes[place % len(genomes)]
        length = rng.choice(LENGTHS)
        begin = rng.randrange(len(whole) - length)
        part = whole[begin : begin + length]
        if rng.random() < 0.5:
            part = part[::-1].translate(other)
        letters = ["N" if rng.random() < SHARE_OF_N else each for each in part]
        found.append((f"q{place}", "".join(letters)))
    return found


def blastx(queries: Path, database: Path, evalue: float, sums: bool, subjects: int) -> Rows:
    """Return the rows of blastx."""
    text = command(
        "blastx", "-query", queries, "-db", database, "-evalue", evalue, "-comp_based_stats", 0, "-seg", "no",
        "-sum_stats", str(sums).lower(), "-max_target_seqs", subjects, "-num_threads", 2, "-outfmt", f"6 {COLUMNS}",
    )  # fmt: skip
    return rows_of(text)


def rows_of(text: str) -> Rows:
    return [[cell.strip() for cell in line.split("\t")] for line in text.splitlines()]


def ours(queries: Path, subjects: Path, evalue: float) -> Rows:
    """Return the rows of swsearch: all subjects, several alignments of each."""
    text = swsearch(
        "search", queries, subjects, "--translate", "--statistics", "published", "--evalue", evalue, "--max-hits",
        10**6, "--max-alignments", MOST, "--engine", "cpu", "--quiet", "--outfmt", f"6 {COLUMNS}",
    )  # fmt: skip
    return rows_of(text)


def best(rows: Rows) -> dict[tuple[str, str], list[str]]:
    """Return the row of the best score of each query and subject."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        known = found.setdefault((row[0], row[1]), row)
        if int(row[KEY]) > int(known[KEY]):
            found[row[0], row[1]] = row
    return found


def nearly(one: str, other: float) -> bool:
    """Say whether a printed E-value is another one, to what both can be off by: two digits, or three decimals."""
    decimals = 0.0011 if float(one) >= 0.0009 else 0.0
    return abs(float(one) - other) <= max(0.06 * max(float(one), other), decimals)


def differences(theirs: Rows, known: dict[tuple[str, ...], list[str]]) -> Iterator[str]:
    """Yield what differs among alignments that both have."""
    for row in theirs:
        mine = known.get(tuple(row[:KEY]))
        if mine is not None and mine[KEY:] != row[KEY:]:
            yield f"{row}: swsearch {mine[KEY:]}"


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("--genomes", type=Path, nargs="+", required=True, help="FASTA, plain or xz")
    parser.add_argument("--subjects", type=Path, default=SUBJECTS, help="FASTA, default %(default)s")
    parser.add_argument("--queries", type=int, default=100, help="to cut, default %(default)s")
    parser.add_argument("--evalue", type=float, default=10.0, help="default %(default)s")
    parser.add_argument("--least", type=float, default=0.001, help="E-value up to which none may be missing")
    options = parser.parse_args()
    need("blastx", "makeblastdb")
    subjects = numbered(read(options.subjects), "s")
    queries = cut([genome(path) for path in options.genomes], options.queries)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        fasta, dna = write(work / "subjects.fasta", subjects), write(work / "queries.fasta", queries)
        command("makeblastdb", "-in", fasta, "-dbtype", "prot", "-out", work / "db")
        plain, summed = (blastx(dna, work / "db", options.evalue, sums, len(subjects)) for sums in (False, True))
        mine = ours(dna, fasta, options.evalue)
    known = {tuple(row[:KEY]): row for row in mine}
    both = [row for row in plain if tuple(row[:KEY]) in known]
    wrong = list(differences(plain, known))
    tops, theirs = best(mine), best(plain)
    lower = [pair for pair, row in theirs.items() if pair in tops and int(row[KEY]) < int(tops[pair][KEY])]
    wrong += [f"{row}: swsearch {tops[pair]}" for pair, row in theirs.items()
              if pair in tops and int(row[KEY]) > int(tops[pair][KEY])]  # fmt: skip
    sure = [pair for pair, row in theirs.items() if float(row[KEY + 1]) <= options.least]
    missing = [pair for pair in sure if pair not in tops]
    wrong += [f"{pair}: blastx finds it, with {theirs[pair][KEY:]}" for pair in missing]
    unfound = [pair for pair, row in tops.items() if float(row[KEY + 1]) <= options.least and pair not in theirs]
    counts = Counter((row[0], row[1]) for row in summed)
    single = [row for row in summed if counts[row[0], row[1]] == 1 and tuple(row[:KEY]) in known]
    decayed = [row for row in single if nearly(row[KEY + 1], float(known[tuple(row[:KEY])][KEY + 1]) / DECAY)]
    lines = [
        *heading(__file__, ("blastx", "biopython")),
        f"{len(queries)} queries cut from {', '.join(path.name for path in options.genomes)} (seed {SEED}): "
        f"{residues(queries):,} nucleotides, {sum(letters.count('N') for _, letters in queries):,} N;",
        f"{options.subjects.name}: {len(subjects):,} subjects, {residues(subjects):,} residues; "
        f"BLOSUM62 11/1, E <= {options.evalue:g}",
        "",
        *table(
            ["blastx -comp_based_stats 0 -seg no -sum_stats false", "number"],
            [
                ["its alignments", f"{len(plain):,}"],
                ["the same alignment, by frame, places and path", f"{len(both):,}"],
                ["of these, raw score, E-value and bit score equal as printed",
                 f"{len(both) - sum(1 for _ in differences(plain, known)):,}"],
                ["its subjects of a query", f"{len(theirs):,}"],
                ["of these, scored too low by it", f"{len(lower):,}"],
                [f"its subjects of a query with E <= {options.least:g}", f"{len(sure):,}"],
                ["of these, missing in swsearch", f"{len(missing):,}"],
                [f"subjects of a query with E <= {options.least:g} that it misses", f"{len(unfound):,}"],
            ],
        ),
        "",
        *table(
            ["the same with its sum statistics (its default)", "number"],
            [
                ["subjects with one alignment, which is the same", f"{len(single):,}"],
                [f"of these, E-value 1/{DECAY} times ours", f"{len(decayed):,}"],
            ],
        ),
        *wrong[:SHOWN],
    ]  # fmt: skip
    finish(lines, options.out)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
