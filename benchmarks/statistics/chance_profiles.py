"""Count the chance hits of profiles: those that queries without relatives built, and those of real families.

Two tables of hits per query with an E-value of at most 0.01, 0.1, 1 and 10, of which there should be that many:
  queries of chance   proteins of Swiss-Prot with their residues shuffled, and the other classes of
                      `chance_queries.py`, searched by iteration: whatever enters their profiles is wrong;
  profiles of families  of SCOPe's domains, made in SCOPe by one and two iterations, and the domains themselves,
                      among the same subjects backwards, where nothing is related to anything.
The thresholds are those of defaults. Standard errors are those of the mean over queries.

Needs: Swiss-Prot, mmseqs2-examples or any proteins as --subjects. Ten minutes on two cores.
Run:   python -m benchmarks.statistics.chance_profiles --queries uniprot_sprot.fasta --domains scop40.fasta.xz
           [--subjects DB.fasta.gz] [--first 100] [--families 200] [--seed 1] [--classes shuffled,biased]
           [--out benchmarks/results/iterated_chance.txt]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

import swsearch
from benchmarks.statistics.chance_queries import CLASSES, draw_classes
from benchmarks.support.common import Records, arguments, finish, heading, numbered, read, residues, table
from benchmarks.support.timing import say
from swsearch.results import SearchResult

LEVELS = (0.01, 0.1, 1.0, 10.0)
N_ITERATIONS = 3
MOST = 10**6
"""More hits than any query has."""

SOURCES = ("fitted", "published")
"""What E-values come from."""


def counts_of(results: Iterable[SearchResult]) -> npt.NDArray[np.int64]:
    """Count the hits of each query at each of `LEVELS`, shape (n_queries, n_levels)."""
    evalues = (np.array([hit.evalue for hit in result.hits], dtype=np.float64) for result in results)
    return np.array([[int((each <= level).sum()) for level in LEVELS] for each in evalues])


def cells(counts: npt.NDArray[np.int64]) -> list[str]:
    """Return the last cells of a row: queries, hits per query at each level, the error at 1, and the most at 1."""
    at_one = counts[:, LEVELS.index(1.0)]
    error = float(at_one.std(ddof=1)) / math.sqrt(len(at_one)) if len(at_one) > 1 else math.nan
    means = (f"{mean:.3g}" for mean in counts.mean(axis=0))
    return [f"{len(counts):,}", *means, f"{error:.2g}", str(at_one.max())]


def by_iteration(queries: Records, database: swsearch.Database, source: str) -> Iterator[list[str]]:
    """Search queries that have no relatives, and count what each iteration finds."""
    for iteration in range(1, N_ITERATIONS + 1):
        found = list(
            swsearch.search(
                queries, database, iterations=iteration, evalue=max(LEVELS), max_hits=MOST, statistics=source
            )
        )
        included = [step.included for result in found for step in result.steps if step.iteration == iteration - 1]
        grown = f"{np.mean([n > 0 for n in included]):.0%}" if included else ""
        yield [str(iteration), source, grown, *cells(counts_of(found))]


def of_families(domains: Records, wanted: int, source: str) -> Iterator[list[str]]:
    """Make profiles of domains among all of them, and search these backwards."""
    places = np.arange(wanted) * len(domains) // wanted
    queries = [domains[place] for place in places.tolist()]
    backwards = [(name, letters[::-1]) for name, letters in numbered(domains, "s")]
    with (
        swsearch.Database.from_records(numbered(domains, "s")) as related,
        swsearch.Database.from_records(backwards) as unrelated,
    ):
        for iteration in range(N_ITERATIONS):
            asked: Sequence[object] = queries
            if iteration:
                grown = swsearch.search(
                    queries, related, iterations=iteration, keep_next=True, statistics=source, max_hits=1
                )
                asked = [result.next_profile or query for result, query in zip(grown, queries, strict=True)]
            found = swsearch.search(asked, unrelated, evalue=max(LEVELS), max_hits=MOST, statistics=source)
            yield [str(iteration), source, *cells(counts_of(found))]


def main() -> None:
    parser = arguments(__doc__)
    parser.set_defaults(first=100)
    parser.add_argument("--domains", type=Path, required=True, help="SCOPe's FASTA, plain or .xz")
    parser.add_argument("--families", type=int, default=200, help="of SCOPe's domains, default %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn, default %(default)s")
    parser.add_argument("--classes", default="shuffled,reversed,short,biased", help="default %(default)s")
    options = parser.parse_args()
    from benchmarks.statistics.sensitivity_measures import read_scope

    subjects = [each for each in read(options.subjects) if each[1]]
    drawn = draw_classes(read(options.queries), options.first, 1, options.seed)
    domains, _ = read_scope(options.domains)
    of_chance, related = [], []
    with swsearch.Database.from_records(numbered(subjects, "s")) as database:
        for kind in options.classes.split(","):
            for row in by_iteration(drawn[kind], database, "fitted"):
                of_chance.append([kind, *row])
                say(" ".join(of_chance[-1]))
    for source in SOURCES:
        for row in of_families(domains, options.families, source):
            related.append(row)
            say(" ".join(row))
    levels = [f"E <= {level:g}" for level in LEVELS]
    lines = [
        *heading(__file__, ["numpy"]),
        f"{options.subjects.name}: {len(subjects):,} subjects, {residues(subjects):,} residues; "
        f"{options.queries.name}: {options.first:,} queries of each class, seed {options.seed}; {options.domains.name}: {len(domains):,} "
        f"domains, {options.families:,} of them as queries",
        "",
        *(f"{kind}: {CLASSES[kind]}." for kind in options.classes.split(",")),
        "",
        "Hits per query by chance, by iteration; how many queries had a profile that something else was in; the",
        "standard error of the mean at 1, and the most that one query had of E <= 1:",
        "",
        *table(["queries", "iteration", "statistics", "grown", "searches", *levels, "error at 1", "most"], of_chance),
        "",
        "Profiles of SCOPe's domains after so many iterations among all of them, searched in the same backwards:",
        "",
        *table(["iterations before", "statistics", "searches", *levels, "error at 1", "most"], related),
    ]
    finish(lines, options.out)


if __name__ == "__main__":
    main()
