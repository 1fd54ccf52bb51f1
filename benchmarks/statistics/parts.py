"""Compare the E-values of a hit in a part of the database with that in the whole, for the same --dbsize.

Proteins of Swiss-Prot are searched for in all subjects, and in each quarter and twentieth of them, which are
neighbours in the file. The size that E-values refer to is that of the whole (`dbsize`, in residues), as users of a
database in parts are told to set it. A hit with E <= 10 in the whole database is looked up in its part, among hits
with E <= 30; the ratio of its E-values, part's by whole's, should be 1. E-values below 1e-300 are left out, since
they are printed as 0.

Published E-values depend on nothing but score, lengths and size. A fitted one is a probability times the number of
subjects; a part's number of subjects is scaled by the whole's residues over its own, so that a part whose proteins
are longer or shorter than usual has E-values a little too small or too large.

Needs: Swiss-Prot; mmseqs2-examples, or any proteins as --subjects. Two cores take about ten minutes.
Run:   python -m benchmarks.statistics.parts --queries uniprot_sprot.fasta --seed SEED [--first 100] [--engine gpu]
           [--keep FOLDER] [--out benchmarks/results/parts.txt]
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import get_args

import numpy as np

from benchmarks.statistics.chance_queries import usual_proteins
from benchmarks.support.common import Records, arguments, finish, heading, read, residues, table
from benchmarks.support.evalues import DEFAULTS, Found, Searches, System, kept_in
from benchmarks.support.timing import say
from swsearch.options.kinds import Mode

PARTS = {4: "quarters", 20: "twentieths"}

MOST, MOST_IN_A_PART = 10.0, 30.0
"""E-values of the hits that are looked up, and where they are looked up."""

LEAST = 1e-300

RANGES = {LEAST: "all", 0.001: "0.001 to 10"}
"""E-values in the whole database, by the least."""

QUANTILES = (0.05, 0.5, 0.95)

SHORTEST, LONGEST = 100, 1000
"""Residues of a query."""


def pieces(subjects: Records, number: int) -> list[tuple[int, Records]]:
    """Cut the subjects into parts of neighbours: where each begins, and what is in it."""
    bounds = [len(subjects) * place // number for place in range(number + 1)]
    return [(start, subjects[start:end]) for start, end in pairwise(bounds)]


@dataclass(frozen=True)
class Asked:
    """Settings of a search.

    Parameters
    ----------
    source : str
        Source of E-values.
    queries : list of (str, str)
        Proteins.
    system : System
        Scoring and mode.
    """

    source: str
    queries: Records
    system: System


def in_parts(subjects: Records, number: int, asked: Asked, folder: Path, engine: str) -> Found:
    """Return the hits in every part, subjects counted as in the whole."""
    found: Found = {}
    for start, piece in pieces(subjects, number):
        with Searches(piece, folder, engine) as searches:
            own = searches.found(asked.source, asked.queries, asked.system, MOST_IN_A_PART, dbsize=residues(subjects))
        found |= {(query, start + subject): value for (query, subject), value in own.items()}
    return found


def compare(whole: Found, parts: Found, least: float) -> list[str]:
    """Describe the ratios of the hits with at least an E-value in the whole database."""
    judged = {pair: value for pair, value in whole.items() if value >= least}
    values = np.array([parts[pair] / value for pair, value in judged.items() if parts.get(pair, 0.0) >= LEAST])
    return [
        f"{len(values):,}", f"{len(judged) - len(values):,}", f"{values.min():.3g}",
        *(f"{value:.3g}" for value in np.quantile(values, QUANTILES)), f"{values.max():.3g}",
    ]  # fmt: skip


def rows(subjects: Records, queries: Records, folder: Path, engine: str) -> Iterator[list[str]]:
    """Yield the rows of the table."""
    with Searches(subjects, folder, engine) as searches:
        for mode in get_args(Mode):
            system = System(DEFAULTS, mode)
            for source in system.statistics():
                asked = Asked(source, queries, system)
                whole = searches.found(source, queries, system, MOST)
                for number, name in PARTS.items():
                    parts = in_parts(subjects, number, asked, folder, engine)
                    for least, what in RANGES.items():
                        say(f"{mode}, {source}, {name}, {what}")
                        yield [mode, source, name, what, *compare(whole, parts, least)]


def main() -> None:
    parser = arguments(__doc__)
    parser.set_defaults(first=100)
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn, default %(default)s")
    parser.add_argument("--engine", default="cpu", help="what scores, default %(default)s")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where each search is kept, or found")
    options = parser.parse_args()
    subjects = [each for each in read(options.subjects) if each[1]]
    proteins = usual_proteins(read(options.queries), SHORTEST, LONGEST)
    queries = random.Random(options.seed).sample(proteins, options.first)
    with kept_in(options.keep) as folder:
        cells = list(rows(subjects, queries, folder, options.engine))
    lines = [
        *heading(__file__, ["numpy"]),
        f"{options.subjects.name}: {len(subjects):,} subjects, {residues(subjects):,} residues; "
        f"{options.queries.name}: {len(queries):,} queries of {SHORTEST} to {LONGEST:,} residues, "
        f"seed {options.seed}; {DEFAULTS.describe()}",
        "",
        f"E-value of a hit in its part by that in the whole database, of hits of E <= {MOST:g} in the whole.",
        f"Missing: those that have more than {MOST_IN_A_PART:,.0f} in the part, or less than {LEAST:g}.",
        "",
        *table(
            ["mode", "statistics", "parts", "E-values", "hits", "missing", "least", "5 %", "median", "95 %", "most"],
            cells,
        ),
    ]
    finish(lines, options.out)


if __name__ == "__main__":
    main()
