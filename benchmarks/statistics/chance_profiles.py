"""Count the chance hits of profiles: of queries without relatives, of real families, and of proteins with a pattern.

Hits per query with an E-value of at most 0.001 to 10, of which there should be that many. Where whatever enters a
profile is wrong, by iteration: proteins of Swiss-Prot with their residues shuffled and the other classes of
`chance_queries.py`, and real proteins with a pattern, such as coiled coils, among subjects that are backwards. And
profiles among subjects backwards, where nothing is related to anything, made among the same subjects as they are by
one and two iterations: those of SCOPe's domains in SCOPe, those of proteins with a pattern, and those of shuffled
queries made with a threshold so large that chance hits enter.

Needs: Swiss-Prot, mmseqs2-examples or any proteins as --subjects. Half an hour on two cores.
Run:   python -m benchmarks.statistics.chance_profiles --queries uniprot_sprot.fasta --domains scop40.fasta.xz
           [--subjects DB.fasta.gz] [--first 100] [--families 200] [--seed 1] [--classes shuffled,coiled]
           [--out benchmarks/results/iterated_chance.txt]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import swsearch
from benchmarks.statistics.chance_queries import (
    CLASSES,
    COLUMNS,
    LEVELS,
    PATTERNS,
    cells,
    counts_of,
    draw_classes,
    draw_patterns,
)
from benchmarks.statistics.sensitivity import chosen
from benchmarks.statistics.sensitivity_measures import read_scope
from benchmarks.support.common import Records, arguments, finish, heading, numbered, read, residues, table
from benchmarks.support.timing import say
from swsearch.profiles.profile import Profile

N_ITERATIONS = 3
MOST = 10**6
"""More hits than any query has."""

FORCED = 10.0
"""E-value up to which hits of shuffled queries are included where profiles of chance are wanted."""


@contextmanager
def both_ways(subjects: Records) -> Iterator[tuple[swsearch.Database, swsearch.Database]]:
    """Make a database of subjects, and one of them backwards."""
    backwards = [(name, letters[::-1]) for name, letters in subjects]
    with (
        swsearch.Database.from_records(numbered(subjects, "s")) as database,
        swsearch.Database.from_records(numbered(backwards, "s")) as unrelated,
    ):
        yield database, unrelated


def by_iteration(queries: Records, database: swsearch.Database) -> Iterator[list[str]]:
    """Search queries that have no relatives, and count what each iteration finds."""
    asked: Any = queries
    for iteration in range(1, N_ITERATIONS + 1):
        found = list(swsearch.search(asked, database, evalue=max(LEVELS), max_hits=MOST, keep_profiles=True))
        grown = sum(n > 1 for n in rows_of(asked))
        yield [str(iteration), str(grown), *cells(counts_of(found))]
        asked = [result.next_profile for result in found]


def rows_of(queries: Sequence[tuple[str, str] | Profile]) -> list[int]:
    """Return from how many sequences each query was made, itself among them."""
    return [len(each.alignment or ()) if isinstance(each, Profile) else 1 for each in queries]


def elsewhere(
    queries: Records, related: swsearch.Database, unrelated: swsearch.Database, **options: Any
) -> Iterator[list[str]]:
    """Make profiles in one database, and count what they find in another, where nothing is related to anything."""
    asked: Any = queries
    for iterations in range(N_ITERATIONS):
        if iterations:
            found = swsearch.search(asked, related, keep_profiles=True, max_hits=1, **options)
            asked = [result.next_profile for result in found]
        hits = swsearch.search(asked, unrelated, evalue=max(LEVELS), max_hits=MOST)
        yield [str(iterations), f"{np.mean(rows_of(asked)):.1f}", *cells(counts_of(hits))]


def main() -> None:
    parser = arguments(__doc__)
    parser.set_defaults(first=100)
    parser.add_argument("--domains", type=Path, required=True, help="SCOPe's FASTA, plain or .xz")
    parser.add_argument("--families", type=int, default=200, help="of SCOPe's domains, default %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn, default %(default)s")
    parser.add_argument("--classes", default="shuffled,coiled,collagen,low entropy", help="default %(default)s")
    options = parser.parse_args()
    subjects = [each for each in read(options.subjects) if each[1]]
    proteins = read(options.queries)
    made = draw_classes(proteins, options.first, 1, options.seed)
    real = draw_patterns(proteins, options.first, options.seed)
    domains, _ = read_scope(options.domains)
    families = [domains[place] for place in chosen(len(domains), options.families).tolist()]
    of_chance, others = [], []
    with both_ways(subjects) as (database, unrelated):
        for kind in options.classes.split(","):
            where = (made[kind], database) if kind in made else (real[kind], unrelated)
            for row in by_iteration(*where):
                of_chance.append([kind, *row])
                say(" ".join(of_chance[-1]))
            for row in elsewhere(real[kind], database, unrelated) if kind in real else ():
                others.append([kind, *row])
                say(" ".join(others[-1]))
        for row in elsewhere(made["shuffled"], database, unrelated, inclusion_evalue=FORCED):
            others.append([f"shuffled, included up to {FORCED:g}", *row])
            say(" ".join(others[-1]))
    with both_ways(domains) as (database, unrelated):
        for row in elsewhere(families, database, unrelated):
            others.append(["domains", *row])
            say(" ".join(others[-1]))
    lines = [
        *heading(__file__, ["numpy"]),
        f"{options.subjects.name}: {len(subjects):,} subjects, {residues(subjects):,} residues; "
        f"{options.queries.name}: {options.first:,} queries of each class, seed {options.seed}; "
        f"{options.domains.name}: {len(domains):,} domains, {len(families):,} of them as queries",
        "",
        *(f"{kind}: {(CLASSES | PATTERNS)[kind]}." for kind in options.classes.split(",")),
        "",
        "Hits per query by chance, by iteration; the queries whose profile something else was in;",
        "the standard error of the mean at 1, and the most that one query had of E <= 1:",
        "",
        *table(["queries", "iteration", "grown", *COLUMNS], of_chance),
        "",
        "Profiles after so many iterations among subjects (rows of their alignments on average), searched among the",
        f"same subjects backwards; those of shuffled queries made with --inclusion-evalue {FORCED:g}, so that they",
        "are made of what is not related:",
        "",
        *table(["queries", "iterations", "rows", *COLUMNS], others),
    ]
    finish(lines, options.out)


if __name__ == "__main__":
    main()
