"""Compare the chance hits that E-values promise with those found: classes of queries, all modes, four scorings.

Queries are made of proteins of Swiss-Prot so that they have no relatives, or are real proteins with a pattern, which
are searched in the subjects backwards (`chance_queries.py`): every hit is one of chance, and on average there should
be E of them per query with an E-value of at most E. swsearch's statistics are judged, and beside them other programs
with statistics of their own: blastp with its defaults, which adjust for
composition, and ssearch36, ggsearch36 and glsearch36, all with BLOSUM62 11/1.

Needs: Swiss-Prot; mmseqs2-examples, or any proteins as --subjects; ncbi-blast+ and fasta3, unless --sources leaves
them out; for the plot, matplotlib. Two cores take an hour, half of it for the other programs; with --keep each search
is kept for the next time.
Run:   python -m benchmarks.statistics.calibration --queries uniprot_sprot.fasta --seed SEED [--first 100]
           [--long 40] [--sources fitted,published] [--classes short,long] [--modes local] [--engine gpu]
           [--keep FOLDER] [--out benchmarks/results/calibration.txt]
       python -m benchmarks.statistics.calibration --draw benchmarks/results/calibration.json
--out also writes the counts (.json) and, with matplotlib, the plot (.png) beside the text. --draw only draws the plot
again, beside the counts.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from benchmarks.statistics.chance_queries import CLASSES, PATTERNS, draw_classes, draw_patterns
from benchmarks.support import plots
from benchmarks.support.common import Records, arguments, finish, heading, need, numbers, read, residues, table
from benchmarks.support.evalues import FASTA_PROGRAMS, OURS, Searches, System, by_query, kept_in
from benchmarks.support.timing import say
from swsearch.errors import SwsearchError
from swsearch.options.kinds import Mode
from swsearch.scoring import Scoring

LEVELS = tuple(float(f"{10**exponent:.3g}") for exponent in np.arange(-3, 1.01, 0.25))
SHOWN = (0.001, 0.01, 0.1, 1.0, 10.0)

COSTS = (("BLOSUM62", 11, 1), ("BLOSUM45", 10, 3), ("PAM70", 10, 1), ("PFASUM60", 12, 2), ("PFASUM60", 15, 1))
"""Matrix and gap costs; constants are published for the first three. The last are those of contexts."""

WANTED = (0.3, 1.7), 0.03
"""Targets: min and max of chance hits per query at E <= 1, and max at E <= 0.01."""

NOT_WANTED = ("coiled", "collagen", "low entropy", "poly-X")
"""Classes of which less is aimed at: no more than a few hits of E <= 0.001."""

MORE = 3
"""How many times as many queries, of another seed, say whether what is not as wanted stays so."""

SOURCES = (*OURS, "blastp", *FASTA_PROGRAMS.values())
"""Sources of E-values."""


@dataclass(frozen=True)
class Row:
    """Chance hits of some queries with some statistics.

    Parameters
    ----------
    system : System
        Scoring and mode.
    kind : str
        Class of the queries.
    source : str
        Where E-values come from.
    counts : ndarray, shape (n_queries, n_levels), int64
        Hits at each of `LEVELS`.
    """

    system: System
    kind: str
    source: str
    counts: npt.NDArray[np.int64]

    @property
    def name(self) -> str:
        """Mode and scoring."""
        return f"{self.system.mode} {self.system.costs}"

    def mean(self, level: float) -> float:
        """Return hits per query at a level."""
        return float(self.counts[:, LEVELS.index(level)].mean())

    def error(self, level: float) -> float:
        """Return the standard error of `mean`."""
        counts = self.counts[:, LEVELS.index(level)]
        return float(counts.std(ddof=1)) / math.sqrt(len(counts)) if len(counts) > 1 else math.nan

    def cells(self) -> list[str]:
        """Return the row of the table."""
        return [
            self.name, self.kind, self.source, f"{len(self.counts):,}",
            *(f"{self.mean(level):.3g}" for level in SHOWN),
            *(f"{self.error(level):.2g}" for level in (0.01, 1.0)), str(self.counts[:, LEVELS.index(1.0)].max()),
        ]  # fmt: skip

    def summary(self) -> str:
        """Return the two means that are judged, with their errors."""
        means = (f"{self.mean(level):.3g} ± {self.error(level):.2g} at {level:g}" for level in (1.0, 0.01))
        return ", ".join(means)

    def is_as_wanted(self) -> bool:
        """Whether it is within `WANTED`."""
        (least, most), rare = WANTED
        return least <= self.mean(1.0) <= most and self.mean(0.01) <= rare


def systems(modes: list[Mode], scorings: Sequence[int]) -> tuple[list[System], list[str]]:
    """Return what is judged, and what is missing here."""
    found, missing = [], []
    for matrix, gap_open, gap_extend in (COSTS[number - 1] for number in scorings):
        try:
            scoring = Scoring(matrix, gap_open, gap_extend)
        except SwsearchError:
            missing.append(f"{matrix} {gap_open}/{gap_extend}")
            continue
        found += [System(scoring, mode) for mode in modes]
    return sorted(found, key=lambda system: modes.index(system.mode)), missing


def judge(searches: Searches, queries: dict[str, Records], judged: list[System], sources: list[str]) -> Iterator[Row]:
    """Count the hits of each class, in every mode, with every scoring and each source of E-values."""
    for system in judged:
        for kind, records in queries.items():
            for source in [*system.statistics(), *system.peers()]:
                if source not in sources:
                    continue
                started = time.perf_counter()
                evalues = by_query(searches.found(source, records, system), len(records))
                counts = np.array([np.searchsorted(each, LEVELS, side="right") for each in evalues])
                row = Row(system, kind, source, counts)
                say(f"{' '.join(row.cells())}; {time.perf_counter() - started:.1f} s")
                yield row


def as_json(rows: list[Row], what: str) -> dict[str, Any]:
    """Return what the plot shows, and what it was measured with."""
    lines = [
        {
            "mode": row.system.mode, "scoring": row.system.costs, "queries": row.kind, "statistics": row.source,
            "searches": len(row.counts), "hits": row.counts.sum(axis=0).tolist(),
        }
        for row in rows
    ]  # fmt: skip
    return {"about": {"what": what}, "levels": LEVELS, "rows": lines}


def judge_again(searches: Searches, queries: dict[str, Records], rows: list[Row]) -> list[tuple[Row, Row]]:
    """Return the fitted rows that are not as wanted, each with what it is for other and more queries."""
    outside = [row for row in rows if row.source == "fitted" and not row.is_as_wanted()]
    return [
        (row, next(judge(searches, {row.kind: queries[row.kind]}, [row.system], [row.source]))) for row in outside
    ]


def report(rows: list[Row], again: list[tuple[Row, Row]], what: str, missing: list[str]) -> list[str]:
    """Return the text."""
    (least, most), rare = WANTED
    columns = ["mode and scoring", "queries", "statistics", "searches", *(f"E <= {level:g}" for level in SHOWN)]
    lines = [
        *heading(__file__, ["numpy", "blastp", "ssearch36"]),
        what,
        "",
        *(f"{kind}: {about}." for kind, about in CLASSES.items()),
        "Real proteins, whose subjects are backwards:",
        *(f"{kind}: {about}." for kind, about in PATTERNS.items()),
        "",
        "Chance hits per query with an E-value of at most 0.001 to 10: that is how many there should be.",
        "Then the standard errors of the means at 0.01 and 1, and the most that one query had of E <= 1. blastp with",
        "its defaults (composition adjusted), the programs of the FASTA package with their own statistics, all with",
        "BLOSUM62 11/1; ggsearch36 compares only subjects of 80 to 125 % of the query's length.",
        "",
        *table([*columns, "error at 0.01", "error at 1", "most"], (row.cells() for row in rows)),
        "",
        f"Fitted, and outside {least} to {most} at E <= 1, or above {rare} at E <= 0.01: {len(again)} rows. Each",
        f"again, with {MORE} times as many queries of the next seed:",
        *(f"  {row.name}, {row.kind}: {row.summary()}; again: {other.summary()}" for row, other in again),
    ]
    return lines + [f"Not here, and left out: {name}" for name in missing]


def parsed() -> argparse.Namespace:
    """Read the command line."""

    def names(known: tuple[str, ...]) -> Any:
        def chosen(text: str) -> list[str]:
            wanted = text.split(",")
            if not set(wanted) <= set(known):
                raise argparse.ArgumentTypeError(f"expected some of {','.join(known)}")
            return wanted

        return chosen

    parser = arguments(__doc__)
    parser.set_defaults(first=100)
    parser.add_argument("--long", type=int, default=40, help="queries of the class long, default %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn, default %(default)s")
    parser.add_argument("--scorings", type=numbers, default="1,2,3,4", help="numbers of `COSTS`, default %(default)s")
    modes = tuple(get_args(Mode))
    classes = (*CLASSES, *PATTERNS)
    for option, known in (("--sources", SOURCES), ("--classes", classes), ("--modes", modes)):
        parser.add_argument(option, type=names(known), default=list(known), help=f"some of {','.join(known)}")
    parser.add_argument("--engine", default="cpu", help="what scores, default %(default)s")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where each search is kept, or found")
    parser.add_argument("--draw", type=Path, metavar="FILE.json", help="measure nothing: draw these counts again")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    if options.draw is not None:
        plots.draw("benchmarks.statistics.calibration_plot", options.draw)
        return
    need(*(source for source in options.sources if source not in OURS))
    subjects = [each for each in read(options.subjects) if each[1]]
    proteins = read(options.queries)
    queries = draw_classes(proteins, options.first, options.long, options.seed)
    patterned = draw_patterns(proteins, options.first, options.seed)
    others = draw_classes(proteins, MORE * options.first, MORE * options.long, options.seed + 1)
    more = draw_patterns(proteins, MORE * options.first, options.seed + 1)
    judged, missing = systems(options.modes, options.scorings)
    backwards = [(name, letters[::-1]) for name, letters in subjects]
    rows, again = [], []
    with kept_in(options.keep) as folder:
        for where, drawn, anew in ((subjects, queries, others), (backwards, patterned, more)):
            asked = {kind: records for kind, records in drawn.items() if kind in options.classes}
            with Searches(where, folder, options.engine) as searches:
                found = list(judge(searches, asked, judged, options.sources))
                rows += found
                again += judge_again(searches, anew, [row for row in found if row.kind not in NOT_WANTED])
    what = (
        f"{options.subjects.name}: {len(subjects):,} subjects, {residues(subjects):,} residues; "
        f"{options.queries.name}: {options.first:,} queries of each class, "
        f"{options.long:,} long ones, seed {options.seed}"
    )
    finish(report(rows, again, what, missing), options.out)
    if options.out is not None:
        stored = options.out.with_suffix(".json")
        stored.write_text(json.dumps(as_json(rows, what)) + "\n", encoding="utf-8")
        plots.draw("benchmarks.statistics.calibration_plot", stored)


if __name__ == "__main__":
    main()
