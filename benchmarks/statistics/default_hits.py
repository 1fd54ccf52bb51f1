"""How many hits does a search with defaults list, beside blastp's defaults? Five human proteins in Swiss-Prot.

With defaults swsearch lists hits of E <= 10, 500 at most, and blastp the same. Counted are what each lists, and how
much of it is on the other's list, for E <= 10 and E <= 0.001; of swsearch also without the limit of 500.

Needs: Swiss-Prot as --subjects, ncbi-blast+; --queries are examples/data/queries.fasta unless said otherwise. Three
minutes on two cores.
Run:   python -m benchmarks.statistics.default_hits --subjects uniprot_sprot.fasta [--engine gpu]
           [--keep FOLDER] [--out benchmarks/results/default_hits.txt]
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.support.common import Records, arguments, finish, heading, need, read, residues, table
from benchmarks.support.evalues import DEFAULTS, Found, Searches, System, kept_in

EXAMPLES = Path("examples/data/queries.fasta")

LISTED = 500
"""Hits of a query that are listed by default, by both programs."""

LEVELS = (10.0, 0.001)


def listed(found: Found, query: int, level: float) -> list[int]:
    """Return the places of a query's subjects, the best first."""
    values = sorted(
        (value, subject) for (place, subject), value in found.items() if place == query and value <= level
    )
    return [subject for _, subject in values]


def rows(searches: Searches, queries: Records) -> Iterator[list[str]]:
    """Yield the rows of the table."""
    local = System(DEFAULTS, "local")
    by_source = {source: searches.found(source, queries, local) for source in ("blastp", "fitted", "published")}
    for query, (name, letters) in enumerate(queries):
        for source, found in by_source.items():
            cells = []
            for level in LEVELS:
                own, theirs = listed(found, query, level), set(listed(by_source["blastp"], query, level)[:LISTED])
                cells += [str(len(own[:LISTED])), f"{len(own):,}", f"{len(theirs.intersection(own[:LISTED]))}"]
            yield [name, f"{len(letters):,}", source, *cells]


def main() -> None:
    parser = arguments(__doc__)
    parser.set_defaults(queries=EXAMPLES, first=None)
    parser.add_argument("--engine", default="cpu", help="what scores, default %(default)s")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where each search is kept, or found")
    options = parser.parse_args()
    need("blastp")
    subjects = [each for each in read(options.subjects) if each[1]]
    queries = read(options.queries, options.first)
    with kept_in(options.keep) as folder, Searches(subjects, folder, options.engine) as searches:
        cells = list(rows(searches, queries))
    columns = [each for level in LEVELS for each in (f"listed, E <= {level:g}", "without limit", "on blastp's list")]
    lines = [
        *heading(__file__, ["blastp"]),
        f"{options.subjects.name}: {len(subjects):,} subjects, {residues(subjects):,} residues; "
        f"{options.queries.name}: {len(queries)} queries; {DEFAULTS.describe()}",
        "",
        f"Hits up to an E-value that are listed ({LISTED} at most), that there are, and how many of those listed are",
        "among those that blastp lists with its defaults.",
        "",
        *table(["query", "residues", "statistics", *columns], cells),
    ]
    finish(lines, options.out)


if __name__ == "__main__":
    main()
