"""Do other ways of making profiles find more? Iterated searches of SCOPe within SCOPe.

Queries are those of the half of superfamilies on which constants may be chosen (`iterated.py`, --half choice). The
first search is the same for all; then profiles are made in each of the ways of `VARIANTS`, searched with, and made
and searched with again. Differences are those of the same queries, against profiles as searches make them.

`pseudo-counts of 10` are those of PSI-BLAST before 2009. `gaps by position` lets a gap cost less where the alignment
has gaps and more where it has none, up to 5 less and 2 more: the share of sequences that open a gap in a column, with
five observations of 2 % added, is compared with these 2 %, and 0.7 of the logarithm of the ratio, in matrix units,
is the difference.

Tried on 2026-11-22 with 500 queries, of which profiles with scores as they are found 42.9 % of a superfamily before
the first wrong hit. Scores 1.15 times as large, which are used since: +0.49 +- 0.18 points; 1.3 times: +0.36 +- 0.23;
gap open 10: +0.31 +- 0.13, 12: -0.52 +- 0.14. Ten pseudo-counts in every column: -1.07 +- 0.21. Gaps left out of a
column's frequencies: -0.27 +- 0.11. Six tenths of the pseudo-counts: +0.09 +- 0.13; a sharper matrix for them (1.08
lambda): -0.02 +- 0.12; blocks of any width: -0.01 +- 0.02. Gaps of 10 columns or more not counted: +0.01, and -0.02
before the fifth wrong hit. Within SCOPe, where no two domains are alike in more than 40 %, purging makes no
difference. Gap costs by position found 0.21 +- 0.13 more than scores 1.15 times as large (0.19 +- 0.10 before the
fifth wrong hit): not used, as that is within twice its error and the GPU has none. PFASUM60 15/1 in place of
BLOSUM62, from the first search on: +0.85 +- 0.29 with scores 1.15 times as large, +0.66 +- 0.28 without; that is
`--preset sensitive`.

Needs: pandas. Some minutes for each row on two cores.
Run:   python -m benchmarks.tried.construction --subjects scop40.fasta.xz [--queries 500] [--only NAME]
           [--out benchmarks/results/construction.txt]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pandas as pd

import swsearch
from benchmarks.statistics.iterated import drawn
from benchmarks.statistics.sensitivity import ERRORS, WRONGS, apart
from benchmarks.statistics.sensitivity_measures import curve_of, judged, read_scope, sensitivity
from benchmarks.support.common import finish, heading, table
from swsearch.pipeline import iterate
from swsearch.profiles.calibration import lambda_of
from swsearch.profiles.construction import Construction, build_profile
from swsearch.profiles.profile import Profile
from swsearch.profiles.query_alignment import QueryAlignment
from swsearch.profiles.sequence_weights import ABSENT, INNER_GAP, cells_of
from swsearch.scoring import PositionGaps, Scoring

FloatArray = npt.NDArray[np.float64]

PRIOR, PRIOR_COUNT, PART, LEAST, MOST = 0.02, 5.0, 0.7, -5, 2
"""Of gaps by position: see above."""

MOST_COUNTED = 20.0
"""Sequences that are observations of gaps; more are not independent."""


@dataclass(frozen=True)
class Variant:
    """A way to make profiles, and to search with them.

    Parameters
    ----------
    name : str
        Of the row.
    settings : Construction
        How profiles are made.
    scoring : Scoring
        Of searches with profiles.
    by_position : bool
        Whether gap costs follow from the alignment.
    """

    name: str
    settings: Construction = field(default_factory=Construction)
    scoring: Scoring = field(default_factory=Scoring)
    by_position: bool = False

    def made(self, alignment: QueryAlignment, scoring: Scoring, _: object = None) -> Profile:
        """Make a profile, in place of `build_profile` and whatever settings that is given."""
        profile = build_profile(alignment, scoring, self.settings)
        return replace(profile, gaps=gaps_of(alignment, scoring)) if self.by_position else profile


VARIANTS = (
    Variant("as searches do"),
    Variant("scores not scaled", Construction(scale=1.0)),
    Variant("gap open 10, scores not scaled", Construction(scale=1.0), Scoring(gap_open=10)),
    Variant("gap open 12, scores not scaled", Construction(scale=1.0), Scoring(gap_open=12)),
    Variant("blocks of any width", Construction(least_block=1)),
    Variant("gaps left out", Construction(gaps_as_background=False)),
    Variant("pseudo-counts of 10", Construction(pseudocounts=10.0)),
    Variant("gaps of 10 columns not counted", Construction(longest_gap=9)),
    Variant("gaps by position", by_position=True),
)


def gaps_of(alignment: QueryAlignment, scoring: Scoring) -> PositionGaps:
    """Return gap costs by position that follow from the gaps of an alignment."""
    cells = cells_of(alignment.columns, alignment.n_columns)[1:]
    n = alignment.n_columns
    present, is_gap = cells != ABSENT, cells == INNER_GAP
    opens = is_gap.copy()
    opens[:, 1:] &= ~is_gap[:, :-1]
    between = np.zeros(n)
    between[:-1] = (present[:, :-1] & present[:, 1:]).sum(axis=0)
    inserted = np.bincount(np.clip(alignment.insertions[:, 1] - 1, 0, n - 1), minlength=n) * (between > 0)

    def costs(count: FloatArray, of: FloatArray) -> npt.NDArray[np.int16]:
        seen = np.minimum(of, MOST_COUNTED)
        share = (seen * count / np.maximum(of, 1) + PRIOR_COUNT * PRIOR) / (seen + PRIOR_COUNT)
        less = PART * np.log(share / PRIOR) / lambda_of(scoring.matrix)
        return (scoring.gap_open + np.clip(np.rint(-less), LEAST, MOST)).astype(np.int16)

    extend = np.full(n, scoring.gap_extend, dtype=np.int16)
    deletions = costs(opens.sum(axis=0).astype(np.float64), present.sum(axis=0).astype(np.float64))
    return PositionGaps(deletions, extend, costs(inserted.astype(np.float64), between), extend)


def searched(
    variant: Variant, alignments: list[QueryAlignment], database: swsearch.Database, queries: npt.NDArray[np.int64]
) -> pd.DataFrame:
    """Return the hits of the third search, where the first made these alignments."""
    with patch.object(iterate, "build_profile", variant.made):
        profiles = [replace(variant.made(one, variant.scoring), alignment=one, iteration=1) for one in alignments]
        second = swsearch.search(
            profiles, database, scoring=variant.scoring, evalue=0.01, max_hits=1_000_000, keep_next=True, engine="cpu"
        )
        third = swsearch.search(
            [result.next_profile for result in second], database, scoring=variant.scoring, evalue=100.0,
            max_hits=1_000_000, engine="cpu",
        )  # fmt: skip
        frames = [
            pd.DataFrame({"query": place, "subject": one.table.subjects, "evalue": one.table.numbers.evalues})
            for place, one in zip(queries.tolist(), third, strict=True)
        ]
    return pd.concat(frames, ignore_index=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subjects", type=Path, required=True, help="SCOPe's FASTA, plain or .xz")
    parser.add_argument("--queries", type=int, default=500, metavar="N", help="so many, default %(default)s")
    parser.add_argument("--only", action="append", choices=[one.name for one in VARIANTS], help="default: all")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write the report here")
    options = parser.parse_args()
    domains, labels = read_scope(options.subjects)
    queries = drawn(labels, "choice", options.queries)
    database = swsearch.Database.from_records([(f"s{place}", one) for place, (_, one) in enumerate(domains)])
    first = swsearch.search(
        [(f"q{place}", domains[place][1]) for place in queries], database, scoring=Scoring(), evalue=0.01,
        max_hits=1_000_000, keep_next=True, engine="cpu",
    )  # fmt: skip
    alignments = [result.next_profile.alignment for result in first]
    rows, before = [], None
    for variant in VARIANTS:
        if options.only and variant.name not in options.only and before is not None:
            continue
        hits = judged(searched(variant, alignments, database, queries), labels)
        curve = curve_of(hits, queries, labels)
        found = [sensitivity(hits, queries, labels, k) for k in WRONGS]
        before = before or found
        rows.append([
            variant.name, *(f"{each.mean():.2%}" for each in found),
            *(apart(each, other) for each, other in zip(found, before, strict=True)),
            *(f"{curve.coverage_at(errors):.2%}" for errors in ERRORS), f"{curve.errors_at(1.0):.2f}",
        ])  # fmt: skip
    heads = [
        "profiles", *(f"up to wrong hit {k}" for k in WRONGS), *(f"hit {k}, against the first row" for k in WRONGS),
        *(f"found at {errors:g} wrong hits per query" for errors in ERRORS), "wrong hits per query, E <= 1",
    ]  # fmt: skip
    lines = [
        *heading(__file__, ["pandas"]),
        f"{options.subjects.name}: {len(queries):,} queries of the half of choice, third search", "",
        *table(heads, rows),
    ]  # fmt: skip
    finish(lines, options.out)


if __name__ == "__main__":
    main()
