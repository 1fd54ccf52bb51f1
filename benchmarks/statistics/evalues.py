"""Do E-values hold where `calibration.py` says little? A table, or some, for each case.

Cases, and what they need:
  parts         Is the E-value of a hit in a quarter or a twentieth of the database that in the whole, for the same
                --dbsize? Proteins of Swiss-Prot (--queries) are searched for in all --subjects, and in parts that are
                neighbours in the file. A hit of E <= 10 in the whole is looked up in its part, among hits of
                E <= 30; the ratio of its E-values, part's by whole's, should be 1.
  families      Where a database is full of the query's relatives?
                Kinases: of the --subjects whose description says so (`KINASE`), --first are drawn and searched for
                among all. Of the hits that blastp gives E <= 0.001 with its defaults, how many keep it?
                Mitochondrial: the 13 proteins of human mitochondrial DNA, by their accessions in --queries, and what
                blastp's defaults find with them at E <= 1e-5, with 70 % of both sequences in the alignment. One
                database of 1,797 subjects has 11 of each family, and proteins that none finds at E <= 10. In 13
                others one family alone is 143 of 1,797. How many of the hits that the FASTA package's programs give
                E <= 0.001 keep it, and what is the E-value of each query itself?
                Planted: 1,000 shuffled proteins of --queries, a protein, and copies of it in which 25, 40 or 70 % of
                the residues stay. Copies are 0.1, 1, 10 and 30 % of all.
  default_hits  How many hits does a search with defaults list, beside blastp's? Five human proteins in --subjects.
  repeats       How many of the hits that blastp and phmmer give E <= 1e-6 with proteins of coiled coils and repeats
                (`REPEATS`, by accessions in --queries) does swsearch, in the same proteins?
  chance_dna    How many chance hits have windows of a genome (--queries), as they are and shuffled, in --subjects
                backwards?

Needs: Swiss-Prot with accessions as identifiers; ncbi-blast+ and fasta3 for families, ncbi-blast+ and hmmer for the
next two. Three to ten minutes on two cores; with --keep each search is kept for the next time.
Run:   python -m benchmarks.statistics.evalues CASE --queries uniprot_sprot.fasta [--subjects DB.fasta.gz] [--seed 1]
           [--first 100] [--engine gpu] [--keep FOLDER] [--out benchmarks/results/CASE.txt]
"""

from __future__ import annotations

import argparse
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import get_args

import numpy as np

import swsearch
from benchmarks.statistics.chance_queries import COLUMNS, LEVELS, cells, counts_of, shuffled, usual_proteins
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
    read_titles,
    residues,
    table,
    write,
)
from benchmarks.support.evalues import ALL, DEFAULTS, FASTA_PROGRAMS, Found, Searches, System, kept_in
from benchmarks.support.timing import say
from swsearch.options.kinds import Mode

LOCAL = System(DEFAULTS, "local")

MODES: tuple[Mode, ...] = get_args(Mode)

PARTS = {4: "quarters", 20: "twentieths"}
LARGEST, LARGEST_IN_A_PART = 10.0, 30.0
"""E-values of the hits that are looked up, and where they are looked up."""
LEAST = 1e-300
"""Smaller E-values are left out, since they are printed as 0."""
RANGES = {LEAST: "all", 0.001: "0.001 to 10"}
"""E-values in the whole database, by the least."""
SHORTEST, LONGEST = 100, 1000
"""Residues of a query of case ``parts``."""


def pieces(subjects: Records, number: int) -> list[tuple[int, Records]]:
    """Cut the subjects into parts of neighbours: where each begins, and what is in it."""
    bounds = [len(subjects) * place // number for place in range(number + 1)]
    return [(start, subjects[start:end]) for start, end in pairwise(bounds)]


def compare(whole: Found, parts: Found, least: float) -> list[str]:
    """Describe the ratios of the hits with at least an E-value in the whole database."""
    judged = {pair: value for pair, value in whole.items() if value >= least}
    values = np.array([parts[pair] / value for pair, value in judged.items() if parts.get(pair, 0.0) >= LEAST])
    shown = (values.min(), *np.quantile(values, (0.05, 0.5, 0.95)), values.max())
    return [f"{len(values):,}", f"{len(judged) - len(values):,}", *(f"{value:.3g}" for value in shown)]


def parts(options: argparse.Namespace, folder: Path) -> list[str]:
    """Compare parts of the database with the whole."""
    subjects, rows = real(options.subjects), []
    proteins = usual_proteins(read(options.queries), SHORTEST, LONGEST)
    queries = random.Random(options.seed).sample(proteins, options.first)

    def found(source: str, system: System, number: int) -> Found:
        every: Found = {}
        for start, piece in pieces(subjects, number):
            with Searches(piece, folder, options.engine) as searches:
                limit, size = (LARGEST, None) if number == 1 else (LARGEST_IN_A_PART, residues(subjects))
                own = searches.found(source, queries, system, limit, size)
            every |= {(query, start + subject): value for (query, subject), value in own.items()}
        return every

    for system in (System(DEFAULTS, mode) for mode in MODES):
        for source in system.statistics():
            whole = found(source, system, 1)
            for number, name in PARTS.items():
                in_parts = found(source, system, number)
                for least, what in RANGES.items():
                    rows.append([system.mode, source, name, what, *compare(whole, in_parts, least)])
                    say(" ".join(rows[-1]))
    columns = ["mode", "statistics", "parts", "E-values", "hits", "missing", "least", "5 %", "median", "95 %", "most"]
    return [
        described(options, subjects, f"{len(queries):,} queries of {SHORTEST} to {LONGEST:,} residues"), "",
        f"E-value of a hit in its part by that in the whole database, of hits of E <= {LARGEST:g} in the whole.",
        f"Missing: those that have more than {LARGEST_IN_A_PART:,.0f} in the part, or less than {LEAST:g}.", "",
        *table(columns, rows),
    ]  # fmt: skip


def real(path: Path) -> Records:
    """Read a file's records that have residues."""
    return [each for each in read(path) if each[1]]


def described(options: argparse.Namespace, subjects: Records, queries: str) -> str:
    """Say what is searched with what."""
    return (
        f"{options.subjects.name}: {len(subjects):,} subjects, {residues(subjects):,} residues; "
        f"{options.queries.name}: {queries}, seed {options.seed}; {DEFAULTS.describe()}"
    )


KEPT = 0.001
"""The E-value that hits of a family should keep."""

KINASE = re.compile(r"(protein|tyrosine|threonine|receptor) kinase", re.IGNORECASE)
NO_KINASE = re.compile(
    r"inhibitor|activator|substrate|anchor|ligand|regulatory|phosphatase|histidine|fragment", re.IGNORECASE
)
"""Patterns that a kinase's description matches (first), and must not match (second)."""

SHORTEST_KINASE = 250
"""Residues; the domain has about so many."""

MITOCHONDRIAL = {
    "COX1": "P00395", "COX2": "P00403", "COX3": "P00414", "CYTB": "P00156", "ND1": "P03886", "ND2": "P03891",
    "ND3": "P03897", "ND4": "P03905", "ND4L": "P03901", "ND5": "P03915", "ND6": "P03923", "ATP6": "P00846",
    "ATP8": "P03928",
}  # fmt: skip
"""Accessions of the human proteins."""

OF_A_FAMILY, OF_ONE_FAMILY, ALL_SUBJECTS = 11, 143, 1797
"""Members of each family where all are together, of a family by itself (or as many as it has), and all subjects."""

FAMILY_EVALUE, FAMILY_COVERAGE = 1e-5, 70.0
"""Thresholds of a relative: blastp's maximum E-value, and the minimum percentage of either sequence."""

IDENTITIES, SHARES = (0.25, 0.4, 0.7), (0.001, 0.01, 0.1, 0.3)
STRANGERS = 1000


MITOCHONDRIAL_COLUMNS = [
    "families", "mode", "statistics", "listed", "largest E", "of ssearch36's", "of the mode's program's", "hits",
]  # fmt: skip
PLANTED_COLUMNS = [
    "mode", "statistics", "identical",
    *(column for share in SHARES for column in (f"{share:.1%}: itself", "copies")),
]  # fmt: skip


def kept(found: Found, of: Found) -> dict[int, tuple[int, int]]:
    """Count for each query the hits of `of` with E <= 0.001, and how many of them `found` has with E <= 0.001."""
    counts: dict[int, tuple[int, int]] = {}
    for (query, subject), value in of.items():
        if value <= KEPT:
            all_, own = counts.get(query, (0, 0))
            counts[query] = all_ + 1, own + (found.get((query, subject), KEPT * 2) <= KEPT)
    return counts


def share_kept(counts: dict[int, tuple[int, int]]) -> str:
    """Format the share of all queries' hits that is kept."""
    whole = sum(each[0] for each in counts.values())
    return f"{sum(each[1] for each in counts.values()) / whole:.1%} of {whole:,}" if whole else ""


def kinases(path: Path, first: int, chance: random.Random) -> Records:
    """Draw kinases of a FASTA file."""
    found = [
        (title.split(maxsplit=1)[0], letters)
        for title, letters in read_titles(path)
        if KINASE.search(title) and not NO_KINASE.search(title) and len(letters) >= SHORTEST_KINASE
    ]
    say(f"{len(found)} kinases")
    return chance.sample(found, first)


def kinase_rows(searches: Searches, queries: Records) -> Iterator[list[str]]:
    """Say how much of blastp's hits each source of E-values keeps."""
    theirs = searches.found("blastp", queries, LOCAL, KEPT)
    for source in ("fitted", "published", "ssearch36"):
        found = searches.found(source, queries, LOCAL, KEPT)
        counts = kept(found, theirs)
        shares = [own / all_ for all_, own in counts.values()]
        yield [
            source, share_kept(counts), f"{sum(share < 0.5 for share in shares)}", f"{min(shares):.1%}",
            f"{len(found):,}",
        ]  # fmt: skip


def relatives(proteins: Records, folder: Path) -> tuple[dict[str, list[int]], Records]:
    """Return the places of each mitochondrial family in Swiss-Prot, and the proteins that no family has found."""
    by_name = dict(proteins)
    asked = [(gene, by_name[accession]) for gene, accession in MITOCHONDRIAL.items()]
    subjects = write(folder / "swissprot.fasta", numbered(proteins, "s"))
    command("makeblastdb", "-in", subjects, "-dbtype", "prot", "-out", folder / "swissprot")
    text = command(
        "blastp", "-query", write(folder / "mitochondrial.fasta", asked), "-db", folder / "swissprot", "-evalue", 10,
        "-max_hsps", 1, "-max_target_seqs", 10**6, "-num_threads", 2,
        "-outfmt", "6 qseqid sseqid evalue qcovhsp sstart send slen",
    )  # fmt: skip
    families: dict[str, set[int]] = {gene: set() for gene in MITOCHONDRIAL}
    related = set()
    for gene, subject, evalue, covered, start, end, length in (line.split("\t") for line in text.splitlines()):
        place = int(subject[1:])
        related.add(place)
        of_subject = 100 * (int(end) - int(start) + 1) / int(length)
        if float(evalue) <= FAMILY_EVALUE and min(float(covered), of_subject) >= FAMILY_COVERAGE:
            families[gene].add(place)
    say(f"families of {', '.join(f'{gene} {len(places)}' for gene, places in families.items())}")
    strangers = [each for place, each in enumerate(proteins) if place not in related and each[1]]
    return {gene: sorted(places) for gene, places in families.items()}, strangers


Sets = list[tuple[Records, Records]]
"""Queries, each with E-values from the database beside it, which holds them."""


def mitochondrial(proteins: Records, folder: Path, chance: random.Random) -> dict[str, Sets]:
    """Return the databases of families and strangers: one of all families, and one for each."""
    families, strangers = relatives(proteins, folder)
    members = {
        gene: [proteins[place] for place in chance.sample(places, min(len(places), OF_ONE_FAMILY))]
        for gene, places in families.items()
    }

    def filled(family: Records) -> Records:
        return family + chance.sample(strangers, ALL_SUBJECTS - len(family))

    together = [each for family in members.values() for each in family[:OF_A_FAMILY]]
    return {
        "all together": [([family[0] for family in members.values()], filled(together))],
        "each by itself": [([family[0]], filled(family)) for family in members.values()],
    }


def found_in(sets: Sets, folder: Path, engine: str, source: str, mode: Mode) -> tuple[Found, list[float]]:
    """Return all hits, queries numbered through, and each query's own E-value; infinite if it is not listed."""
    found: Found = {}
    own: list[float] = []
    for queries, database in sets:
        with Searches(database, folder, engine) as searches:
            each = searches.found(source, queries, System(DEFAULTS, mode))
        found |= {(len(own) + query, subject): value for (query, subject), value in each.items()}
        letters = [subject for _, subject in database]
        own += [each.get((place, letters.index(query)), math.inf) for place, (_, query) in enumerate(queries)]
    return found, own


def sources_of(mode: Mode) -> list[str]:
    """Name what gives E-values with BLOSUM62 11/1, swsearch's first."""
    return [*System(DEFAULTS, mode).statistics(), FASTA_PROGRAMS[mode]]


def mitochondrial_rows(name: str, sets: Sets, folder: Path, engine: str) -> Iterator[list[str]]:
    """Say what becomes of the queries themselves, and of what the FASTA programs find."""
    ssearch36, _ = found_in(sets, folder, engine, "ssearch36", "local")
    for mode in MODES:
        theirs, _ = found_in(sets, folder, engine, FASTA_PROGRAMS[mode], mode)
        for source in sources_of(mode):
            found, own = found_in(sets, folder, engine, source, mode)
            yield [
                name, mode, source, f"{sum(map(math.isfinite, own))} of {len(own)}", f"{max(own):.2g}",
                share_kept(kept(found, ssearch36)), share_kept(kept(found, theirs)),
                f"{sum(value <= KEPT for value in found.values()):,}",
            ]  # fmt: skip


def copy(letters: str, identity: float, usual: dict[str, int], chance: random.Random) -> str:
    """Return a sequence of which a share of the residues stays where it is."""
    stays = set(chance.sample(range(len(letters)), round(identity * len(letters))))
    made = []
    for place, letter in enumerate(letters):
        others = [other for other in usual if other != letter]
        made.append(letter if place in stays else chance.choices(others, [usual[other] for other in others])[0])
    return "".join(made)


def planted_rows(
    proteins: Records, folder: Path, engine: str, replicates: int, chance: random.Random
) -> list[list[str]]:
    """Say what becomes of queries whose copies are a share of the database."""
    usual = usual_proteins(proteins, 200, 500)
    frequent = dict(Counter("".join(letters for _, letters in chance.sample(usual, 2000))))
    strangers = [(name, shuffled(letters, chance)) for name, letters in chance.sample(usual, STRANGERS)]
    queries = chance.sample(usual, replicates)
    values: dict[tuple[Mode, str, float, float], list[tuple[float, int, int]]] = {}
    for identity in IDENTITIES:
        for share in SHARES:
            copies = round(share * STRANGERS / (1 - share))
            for query in queries:
                family = [query] + [("copy", copy(query[1], identity, frequent, chance)) for _ in range(copies)]
                with Searches(family + strangers, folder, engine) as searches:
                    for mode in MODES:
                        for source in sources_of(mode):
                            found = searches.found(source, [query], System(DEFAULTS, mode))
                            reached = sum(found.get((0, place), 1.0) <= KEPT for place in range(1, len(family)))
                            row = found.get((0, 0), math.inf), reached, len(family) - 1
                            values.setdefault((mode, source, identity, share), []).append(row)
            say(f"planted: {identity:.0%} identical, {share:.1%} of the database")
    rows = []
    for mode in MODES:
        for source in sources_of(mode):
            for identity in IDENTITIES:
                cells = []
                for share in SHARES:
                    own, found_copies, planted = zip(*values[mode, source, identity, share], strict=True)
                    cells += [f"{max(own):.2g}", f"{sum(found_copies) / sum(planted):.1%}"]
                rows.append([mode, source, f"{identity:.0%}", *cells])
    return rows


def families(options: argparse.Namespace, folder: Path) -> list[str]:
    """Search for kinases, mitochondrial and planted families."""
    subjects, proteins, engine = real(options.subjects), real(options.queries), options.engine
    queries = kinases(options.subjects, options.first, random.Random(options.seed))
    with Searches(subjects, folder, engine) as searches:
        of_kinases = list(kinase_rows(searches, queries))
    of_genes = [
        row
        for name, sets in mitochondrial(proteins, folder, random.Random(options.seed)).items()
        for row in mitochondrial_rows(name, sets, folder, engine)
    ]
    planted = planted_rows(proteins, folder, engine, options.replicates, random.Random(options.seed))
    return [
        described(options, subjects, f"{len(proteins):,} proteins"),
        "",
        f"{len(queries)} kinases, {median(len(letters) for _, letters in queries):,.0f} residues in the median: how",
        "many of the hits that blastp's defaults give E <= 0.001 keep it, the queries of which less than half do,",
        "the least share of a query, and all hits of E <= 0.001.",
        "",
        *table(["statistics", "kept", "queries that keep less than half", "least", "hits, E <= 0.001"], of_kinases),
        "",
        f"13 mitochondrial families in {ALL_SUBJECTS:,} subjects, {OF_A_FAMILY} of each all together, or up to "
        f"{OF_ONE_FAMILY} of each by itself:",
        "queries that are listed themselves (E <= 10), the largest E-value of one, how many of ssearch36's hits of",
        "E <= 0.001 keep it, and of those of the FASTA package's program for the mode, and all hits of E <= 0.001.",
        "ggsearch36 compares only subjects of 80 to 125 % of the query's length.",
        "",
        *table(MITOCHONDRIAL_COLUMNS, of_genes),
        "",
        f"Planted families among {STRANGERS:,} strangers, {options.replicates} proteins each: the largest E-value of",
        "the query itself (inf: above 10), and the share of its copies found at E <= 0.001, by the share of the",
        "database that is copies.",
        "",
        *table(PLANTED_COLUMNS, planted),
    ]


LISTED = 500
"""Hits of a query that are listed by default, by both programs."""


def default_hits(options: argparse.Namespace, folder: Path) -> list[str]:
    """Count what swsearch and blastp list, and how much of it is on the other's list."""
    options.queries, rows, limits = Path("examples/data/queries.fasta"), [], (10.0, 0.001)
    subjects, queries = real(options.subjects), read(options.queries)
    with Searches(subjects, folder, options.engine) as searches:
        by_source = {source: searches.found(source, queries, LOCAL) for source in ("blastp", *LOCAL.statistics())}

    def listed(source: str, query: int, limit: float) -> list[int]:
        hits = ((value, pair[1]) for pair, value in by_source[source].items() if pair[0] == query and value <= limit)
        return [subject for _, subject in sorted(hits)]

    for query, (name, letters) in enumerate(queries):
        for source in by_source:
            shown = []
            for limit in limits:
                own, theirs = listed(source, query, limit), listed("blastp", query, limit)[:LISTED]
                shown += [str(len(own[:LISTED])), f"{len(own):,}", str(len({*theirs} & {*own[:LISTED]}))]
            rows.append([name, f"{len(letters):,}", source, *shown])
    columns = [each for limit in limits for each in (f"listed, E <= {limit:g}", "without limit", "on blastp's list")]
    return [
        described(options, subjects, f"{len(queries)} queries"), "",
        f"Hits up to an E-value that are listed ({LISTED} at most), that there are, and how many of those listed are",
        "among those that blastp lists with its defaults.", "",
        *table(["query", "residues", "statistics", *columns], rows),
    ]  # fmt: skip


REPEATS = {
    "P09493": "tropomyosin", "P04264": "keratin", "P02452": "collagen", "P16157": "ankyrin",
    "P13489": "leucine-rich repeats", "P62873": "WD40",
}  # fmt: skip
"""Human proteins, by accession: what repeats in them."""
LEVEL = 1e-6


def repeats(options: argparse.Namespace, folder: Path) -> list[str]:
    """Count what is found of families of coiled coils and repeats, whose reversed subjects raise E-values."""
    options.subjects = options.queries
    proteins = real(options.queries)
    queries = [(accession, dict(proteins)[accession]) for accession in REPEATS]
    with Searches(proteins, folder, options.engine) as searches:
        found = [searches.found(source, queries, LOCAL, LEVEL) for source in ("fitted", "blastp", "phmmer")]
    rows = []
    for query, (accession, letters) in enumerate(queries):
        ours, blastp, phmmer = ({subject for each, subject in one if each == query} for one in found)
        pairs = ((ours, blastp), (ours, phmmer), (blastp, phmmer), (phmmer, blastp))
        rows.append([
            f"{REPEATS[accession]}, {accession}", len(letters), *(f"{len(one):,}" for one in (ours, blastp, phmmer)),
            *(f"{100 * len(one & other) / max(len(other), 1):.1f}%" for one, other in pairs),
        ])  # fmt: skip
    columns = ["query", "residues", "swsearch", "blastp", "phmmer", "swsearch, of blastp's", "swsearch, of phmmer's"]
    columns += ["blastp, of phmmer's", "phmmer, of blastp's"]
    return [f"{described(options, proteins, 'six proteins')}; E <= {LEVEL:g}", "", *table(columns, rows)]


SHORTEST_WINDOW, LONGEST_WINDOW = 300, 1500
"""Nucleotides."""


def chance_dna(options: argparse.Namespace, folder: Path) -> list[str]:
    """Count the chance hits of windows of a genome: their frames hold genes, or short pieces if shuffled."""
    chance, windows = random.Random(options.seed), Records()
    genome = max((letters for _, letters in read(options.queries)), key=len)
    while len(windows) < options.first:
        place = chance.randrange(len(genome) - LONGEST_WINDOW)
        window = genome[place : place + chance.randint(SHORTEST_WINDOW, LONGEST_WINDOW)]
        if set(window) <= set("ACGT"):
            windows.append((f"w{len(windows)}", window))
    queries = {"windows": windows, "shuffled": [(name, shuffled(letters, chance)) for name, letters in windows]}
    subjects, rows = [(name, letters[::-1]) for name, letters in real(options.subjects)], []
    with swsearch.Database.from_records(numbered(subjects, "s")) as database:
        for kind, records in queries.items():
            found = swsearch.search(records, database, translate=True, evalue=max(LEVELS), max_hits=ALL)
            rows.append([kind, *cells(counts_of(found))])
            say(" ".join(rows[-1]))
    what = f"{options.first:,} windows of {SHORTEST_WINDOW:,} to {LONGEST_WINDOW:,} nucleotides, subjects backwards"
    return [
        described(options, subjects, what), "",
        "Chance hits per query with an E-value of at most 0.001 to 10, the standard error of the mean at 1, and the",
        "most that one query had of E <= 1:", "",
        *table(["queries", *COLUMNS], rows),
    ]  # fmt: skip


CASES: dict[str, tuple[Callable[[argparse.Namespace, Path], list[str]], int, tuple[str, ...]]] = {
    "parts": (parts, 100, ()),
    "families": (families, 60, ("blastp", "ssearch36", "ggsearch36", "glsearch36")),
    "default_hits": (default_hits, 5, ("blastp",)),
    "repeats": (repeats, 6, ("blastp", "phmmer")),
    "chance_dna": (chance_dna, 100, ()),
}
"""Measurement, queries that are drawn by default, and programs."""


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("case", choices=CASES, help="see above")
    parser.add_argument("--queries", type=Path, required=True, help="Swiss-Prot, or a genome; see above")
    parser.add_argument("--subjects", type=Path, default=SUBJECTS, help="FASTA, default %(default)s")
    parser.add_argument("--first", type=int, help="queries that are drawn")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn, default %(default)s")
    parser.add_argument("--replicates", type=int, default=5, help="proteins whose copies are planted, %(default)s")
    parser.add_argument("--engine", default="cpu", help="what scores, default %(default)s")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where each search is kept, or found")
    options = parser.parse_args()
    measure, first, programs = CASES[options.case]
    options.first = options.first or first
    need(*programs)
    with kept_in(options.keep) as folder:
        lines = measure(options, folder)
    finish([*heading(f"{__file__} {options.case}", [*programs[:2], "numpy"]), *lines], options.out)


if __name__ == "__main__":
    main()
