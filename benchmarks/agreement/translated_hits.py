"""Programs ``blastx`` and ``tblastn`` of `hits.py`: alignments of reading frames."""

from __future__ import annotations

import argparse
import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from benchmarks.support.common import (
    Records,
    command,
    genome,
    need,
    numbered,
    read,
    residues,
    swsearch,
    table,
    timed,
    write,
)

SEED, LENGTHS, SHARE_OF_N = 20, (100, 101, 102, 200, 301, 500, 900, 1500, 3000), 0.01
"""Of the drawing; nucleotides of queries; share of their letters that become N."""
KEY = 8
"""Columns that tell one alignment from others; score, E-value and bit score follow."""
SURE = 0.001
"""E-value up to which nothing may be missing."""
MOST, DECAY = 20, 0.9
"""Alignments of a subject, and what blastx's sum statistics divide the E-value of a single alignment by."""
PLAIN = ("-comp_based_stats", 0, "-seg", "no", "-num_threads", 2, "-outfmt")
Rows = list[list[str]]


def columns_of(frame: str) -> str:
    """Return the table's format, with the frame of the query or of the subject."""
    return f"6 qseqid sseqid {frame} qstart qend sstart send btop score evalue bitscore"


def rows_of(text: str) -> Rows:
    """Return the cells of a table."""
    return [[cell.strip() for cell in line.split("\t")] for line in text.splitlines()]


def known_by_key(rows: Rows) -> dict[tuple[str, ...], list[str]]:
    """Return rows by what tells their alignment from others."""
    return {tuple(row[:KEY]): row for row in rows}


def differing(theirs: Rows, known: dict[tuple[str, ...], list[str]]) -> list[str]:
    """Return what is printed differently of alignments that both have."""
    mine = [(row, known[tuple(row[:KEY])]) for row in theirs if tuple(row[:KEY]) in known]
    return [f"{row}: swsearch {own[KEY:]}" for row, own in mine if own != row]


def counted(head: str, counts: Iterable[tuple[str, int]]) -> list[str]:
    """Return a table of counts."""
    return table([head, "number"], [[what, f"{number:,}"] for what, number in counts])


def cut(genomes: list[str], n: int) -> Records:
    """Cut queries from genomes in turn, from both strands."""
    rng, other = random.Random(SEED), str.maketrans("ACGT", "TGCA")
    found: Records = []
    for place in range(n):
        whole = genomes[place % len(genomes)]
        length = rng.choice(LENGTHS)
        begin = rng.randrange(len(whole) - length)
        part = whole[begin : begin + length]
        if rng.random() < 0.5:
            part = part[::-1].translate(other)
        found.append((f"q{place}", "".join("N" if rng.random() < SHARE_OF_N else each for each in part)))
    return found


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


def blastx(options: argparse.Namespace, work: Path) -> tuple[list[str], list[str]]:
    """Compare with blastx, with and without its sum statistics; return lines, and what may not be."""
    need("blastx", "makeblastdb")
    subjects = numbered(read(options.subjects), "s")
    queries = cut([genome(path) for path in options.genomes], options.first)
    fasta, dna = write(work / "subjects.fasta", subjects), write(work / "queries.fasta", queries)
    command("makeblastdb", "-in", fasta, "-dbtype", "prot", "-out", work / "db")
    asked: tuple[object, ...] = ("blastx", "-query", dna, "-db", work / "db", "-evalue", options.evalue)
    asked += ("-max_target_seqs", len(subjects), *PLAIN, columns_of("qframe"), "-sum_stats")
    plain, summed = (rows_of(command(*asked, sums)) for sums in ("false", "true"))
    mine = rows_of(swsearch(
        "search", dna, fasta, "--translate", "--statistics", "published", "--evalue", options.evalue, "--max-hits",
        10**6, "--max-alignments", MOST, "--engine", "cpu", "--quiet", "--outfmt", columns_of("qframe"),
    ))  # fmt: skip
    known, tops, theirs = known_by_key(mine), best(mine), best(plain)
    wrong = differing(plain, known)
    both = [row for row in plain if tuple(row[:KEY]) in known]
    score = {pair: (int(row[KEY]), int(tops[pair][KEY])) for pair, row in theirs.items() if pair in tops}
    equal = len(both) - len(wrong)
    wrong += [f"{theirs[pair]}: swsearch {tops[pair]}" for pair, (their, our) in score.items() if their > our]
    sure, our_sure = ([pair for pair, row in each.items() if float(row[KEY + 1]) <= SURE] for each in (theirs, tops))
    missing = [pair for pair in sure if pair not in tops]
    wrong += [f"{pair}: blastx finds it, with {theirs[pair][KEY:]}" for pair in missing]
    counts = Counter((row[0], row[1]) for row in summed)
    single = [row for row in summed if counts[row[0], row[1]] == 1 and tuple(row[:KEY]) in known]
    decayed = [row for row in single if nearly(row[KEY + 1], float(known[tuple(row[:KEY])][KEY + 1]) / DECAY)]
    return [
        f"{len(queries)} queries cut from {', '.join(path.name for path in options.genomes)} (seed {SEED}): "
        f"{residues(queries):,} nucleotides, {sum(letters.count('N') for _, letters in queries):,} N;",
        f"{options.subjects.name}: {len(subjects):,} subjects, {residues(subjects):,} residues; "
        f"BLOSUM62 11/1, E <= {options.evalue:g}",
        "",
        *counted("blastx -comp_based_stats 0 -seg no -sum_stats false", [
            ("its alignments", len(plain)),
            ("the same alignment, by frame, places and path", len(both)),
            ("of these, raw score, E-value and bit score equal as printed", equal),
            ("its subjects of a query", len(theirs)),
            ("of these, scored too low by it", sum(their < our for their, our in score.values())),
            (f"its subjects of a query with E <= {SURE:g}", len(sure)),
            ("of these, missing in swsearch", len(missing)),
            (f"subjects of a query with E <= {SURE:g} that it misses", len({*our_sure} - {*theirs})),
        ]),
        "",
        *counted("the same with its sum statistics (its default)", [
            ("subjects with one alignment, which is the same", len(single)),
            (f"of these, E-value 1/{DECAY} times ours", len(decayed)),
        ]),
    ], wrong  # fmt: skip


def meets(row: list[str], others: Rows, is_scored: bool = True) -> bool:
    """Say whether an alignment shares nucleotides with another one, which scores at least as much if that counts."""
    begin, end = sorted((int(row[5]), int(row[6])))
    for other in others:
        first, last = sorted((int(other[5]), int(other[6])))
        if first <= end and begin <= last and (not is_scored or int(other[KEY]) >= int(row[KEY])):
            return True
    return False


def by_frame(rows: Rows) -> dict[tuple[str, ...], Rows]:
    """Return rows by query, subject and frame."""
    found: defaultdict[tuple[str, ...], Rows] = defaultdict(list)
    for row in rows:
        found[tuple(row[:3])].append(row)
    return found


def tblastn(options: argparse.Namespace, work: Path) -> tuple[list[str], list[str]]:
    """Compare with tblastn, without sum statistics; return lines, and what may not be."""
    need("tblastn", "makeblastdb")
    every = read(options.subjects)
    queries = every[:: max(len(every) // options.first, 1)][: options.first]
    dna = [letters for path in options.genomes for _, letters in read(path)]
    genomes = [(f"g{number}", letters) for number, letters in enumerate(dna)]
    fasta, proteins = write(work / "genomes.fasta", genomes), write(work / "queries.fasta", queries)
    command("makeblastdb", "-in", fasta, "-dbtype", "nucl", "-out", work / "db")
    columns, code, texts = columns_of("sframe"), options.genetic_code, dict[str, str]()
    search = ("search", proteins, work / "db.h5", "--engine", "cpu", "--quiet", "--outfmt", columns)
    published = ("--statistics", "published", "--evalue", options.evalue, "--max-hits", 10**6)
    asked = ("-query", proteins, "-db", work / "db", "-db_gencode", code, "-evalue", options.evalue)
    works = {
        "tblastn": lambda: command("tblastn", *asked, "-sum_stats", "false", *PLAIN, columns),
        "swsearch db build": lambda: swsearch(
            "db", "build", "--translate", "--genetic-code", code, fasta, "-o", work / "db.h5", "--quiet"
        ),
        "swsearch search": lambda: swsearch(*search),
        "swsearch search --statistics published": lambda: swsearch(*search, *published),
    }
    seconds = {name: timed(lambda name=name, run=run: texts.update({name: run()})) for name, run in works.items()}  # type: ignore[misc]
    theirs, mine = rows_of(texts["tblastn"]), rows_of(texts["swsearch search --statistics published"])
    known = known_by_key(mine)
    same = [row for row in theirs if tuple(row[:KEY]) in known]
    wrong = differing(theirs, known)
    equal = len(same) - len(wrong)
    rest = [row for row in theirs if tuple(row[:KEY]) not in known]
    places = {(*row[: KEY - 1], row[KEY]) for row in mine}
    other_path = [row for row in rest if (*row[: KEY - 1], row[KEY]) in places]
    ours_by_frame, theirs_by_frame = by_frame(mine), by_frame(theirs)
    missing = [row for row in rest if not meets(row, ours_by_frame.get(tuple(row[:3]), []))]
    wrong += [f"{row}: tblastn finds it" for row in missing]
    sure = [row for row in mine if float(row[KEY + 1]) <= SURE]
    unfound = [row for row in sure if not meets(row, theirs_by_frame.get(tuple(row[:3]), []), is_scored=False)]
    return [
        f"{len(queries)} proteins of {options.subjects.name}, evenly, {residues(queries):,} residues; "
        f"{len(genomes)} genomes of {', '.join(path.name for path in options.genomes)}, {residues(genomes):,} "
        f"nucleotides, genetic code {code}; BLOSUM62 11/1, E <= {options.evalue:g}",
        "",
        *counted("tblastn -comp_based_stats 0 -seg no -sum_stats false", [
            ("its alignments", len(theirs)),
            ("the same alignment, by frame, places and path", len(same)),
            ("of these, raw score, E-value and bit score equal as printed", equal),
            ("another alignment of the same frame, places and score", len(other_path)),
            ("all that differ and meet one of swsearch, in their frame, that scores as much or more",
             len(rest) - len(missing)),
            ("missing in swsearch", len(missing)),
            (f"alignments of swsearch with E <= {SURE:g}", len(sure)),
            ("of these, where tblastn has none", len(unfound)),
        ]),
        "",
        *table(["whole command", "seconds"], [[name, f"{value:.1f}"] for name, value in seconds.items()]),
        "",
        f"the database file has {(work / 'db.h5').stat().st_size:,} bytes",
    ], wrong  # fmt: skip
