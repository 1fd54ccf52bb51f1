"""Do E-values hold where a database is full of the query's relatives? Kinases, mitochondrial and planted families.

Kinases: of the subjects' proteins whose description says so (`KINASE`), at least 250 residues, --first are drawn and
searched for among all subjects. Of the hits that blastp gives E <= 0.001 with its defaults, how many keep it?

Mitochondrial families: the 13 proteins of human mitochondrial DNA, known by their accessions in --queries
(Swiss-Prot), and their families, what blastp's defaults find with them there at E <= 1e-5, with at least 70 % of both
sequences between the ends of the alignment. A database of 1,797 subjects has 11 of each family, one of which is its
query, 143 or 8 %, and proteins that none of the 13 finds at E <= 10; all drawn. In 13 others one family alone is 143
of 1,797, or as many as it has. How many of the hits that ssearch36, and the FASTA package's program for the mode,
give E <= 0.001 keep it, and what is the E-value of each query itself?

Planted families: 1,000 proteins of Swiss-Prot with their residues shuffled, a protein, and copies of it in which the
residues at 25, 40 or 70 % of the places stay, the others becoming other ones, as frequent as in Swiss-Prot. Copies
are 0.1, 1, 10 and 30 % of copies and strangers. What is the E-value of the query itself, and how many copies are
found at E <= 0.001?

Needs: Swiss-Prot with accessions as identifiers, mmseqs2-examples, ncbi-blast+ and fasta3. Two cores take about ten
minutes; with --keep each search is kept for the next time.
Run:   python -m benchmarks.statistics.families --queries uniprot_sprot.fasta --seed SEED [--first 60]
           [--replicates 5] [--engine gpu] [--keep FOLDER] [--out benchmarks/results/families.txt]
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import get_args

from benchmarks.statistics.chance_queries import shuffled, usual_proteins
from benchmarks.support.common import (
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
from benchmarks.support.evalues import DEFAULTS, FASTA_PROGRAMS, Found, Searches, System, kept_in
from benchmarks.support.timing import say
from swsearch.options.kinds import Mode

KEPT = 0.001
"""The E-value that hits should keep."""

MODES: tuple[Mode, ...] = get_args(Mode)

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
    local = System(DEFAULTS, "local")
    theirs = searches.found("blastp", queries, local, KEPT)
    for source in ("fitted", "published", "ssearch36"):
        found = searches.found(source, queries, local, KEPT)
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
                    own, reached, planted = zip(*values[mode, source, identity, share], strict=True)
                    cells += [f"{max(own):.2g}", f"{sum(reached) / sum(planted):.1%}"]
                rows.append([mode, source, f"{identity:.0%}", *cells])
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.set_defaults(first=60)
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn, default %(default)s")
    parser.add_argument("--replicates", type=int, default=5, help="proteins whose copies are planted, %(default)s")
    parser.add_argument("--engine", default="cpu", help="what scores, default %(default)s")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where each search is kept, or found")
    options = parser.parse_args()
    need("blastp", *FASTA_PROGRAMS.values())
    subjects = [each for each in read(options.subjects) if each[1]]
    proteins = [each for each in read(options.queries) if each[1]]
    with kept_in(options.keep) as folder:
        queries = kinases(options.subjects, options.first, random.Random(options.seed))
        with Searches(subjects, folder, options.engine) as searches:
            of_kinases = list(kinase_rows(searches, queries))
        of_genes = [
            row
            for name, sets in mitochondrial(proteins, folder, random.Random(options.seed)).items()
            for row in mitochondrial_rows(name, sets, folder, options.engine)
        ]
        planted = planted_rows(proteins, folder, options.engine, options.replicates, random.Random(options.seed))
    what = (
        f"{options.subjects.name}: {len(subjects):,} subjects, {residues(subjects):,} residues; "
        f"{options.queries.name}; {DEFAULTS.describe()}; seed {options.seed}"
    )
    lines = [
        *heading(__file__, ["blastp", "ssearch36"]),
        what,
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
    finish(lines, options.out)


if __name__ == "__main__":
    main()
