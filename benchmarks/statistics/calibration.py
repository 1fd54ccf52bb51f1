"""Compare the chance hits that E-values promise with those found, for several scoring systems and all modes.

Queries are sequences of Swiss-Prot with their residues shuffled, or reversed: they have no relatives, so that every
hit is one of chance, and on average there should be E of them per query with an E-value of at most E. Shuffled
residues are the null that E-values promise; reversed sequences keep runs of few kinds of residues, which resemble
those of unrelated proteins. For each scoring system its statistics are judged, and in local mode those of maximum
likelihood beside them (`likely_gumbel.py`).

Needs: mmseqs2-examples, or any proteins as --subjects; Swiss-Prot; for the plot, matplotlib. Two cores take a
quarter of an hour; with --keep the scores are kept for the next time.
Run:   python -m benchmarks.statistics.calibration --queries uniprot_sprot.fasta [--first 1000] [--engine gpu]
           [--keep FOLDER] [--out benchmarks/results/calibration.txt]
       python -m benchmarks.statistics.calibration --draw benchmarks/results/calibration.json
--out also writes the counts (.json) and, with matplotlib, the plot (.png) beside the text. --draw only draws the plot
again, beside the counts.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import swsearch
from benchmarks.statistics.calibration_scores import SEED, Scores, System, null_queries, score_all
from benchmarks.statistics.likely_gumbel import fit_likely
from benchmarks.support.common import Records, arguments, finish, read, residues, table, version_of
from swsearch.statistics.fitted import Fit, FitError, fit_scores
from swsearch.statistics.karlin_altschul import statistics_for
from swsearch.statistics.regression import Lengths

LEVELS = tuple(float(f"{10**exponent:.3g}") for exponent in np.arange(-2, 1.01, 0.25))
SHOWN = (0.01, 0.1, 1.0, 10.0)
LOWEST = 0.05
"""Share of the queries, those of the least entropy of composition, that are set aside in the table's last column."""

LongArray = npt.NDArray[np.int64]
Evalues = Callable[[npt.NDArray[np.int32], int], npt.NDArray[np.float64]]
"""Of a query's scores with every subject, and its length; `FitError` if there are none."""


@dataclass(frozen=True)
class Row:
    """Chance hits of some queries with some statistics.

    Parameters
    ----------
    system : System
        Scoring and mode.
    kind : str
        Shuffled or reversed.
    statistics : str
        Where E-values come from.
    counts : ndarray, shape (n_queries, n_levels), int64
        Hits at each of `LEVELS`; queries that allowed no fit are missing.
    ordinary : ndarray, shape (n_queries,), bool
        Queries that are not among those of the least entropy.
    """

    system: System
    kind: str
    statistics: str
    counts: LongArray
    ordinary: npt.NDArray[np.bool_]

    def cells(self) -> list[str]:
        """Return the row of the table."""
        at = [LEVELS.index(level) for level in SHOWN]
        means, one = self.counts.mean(axis=0), LEVELS.index(1.0)
        error = self.counts[:, one].std(ddof=1) / math.sqrt(len(self.counts))
        return [
            self.system.name, self.kind, self.statistics, f"{len(self.counts):,}", *(f"{means[k]:.3g}" for k in at),
            f"{error:.2g}", str(self.counts[:, one].max()), f"{self.counts[self.ordinary, one].mean():.3g}",
        ]  # fmt: skip


def entropy(letters: str) -> float:
    """Return the entropy of a sequence's composition, in bits."""
    return -sum(n / len(letters) * math.log2(n / len(letters)) for n in Counter(letters).values())


def judged_statistics(system: System, lengths: npt.NDArray[np.int32]) -> Iterator[tuple[str, Evalues]]:
    """Yield the statistics that are judged, by name."""
    size = int(lengths.sum())
    published = statistics_for(system.scoring, system.mode)
    if published is not None:
        yield "published", lambda scores, length: published.evalues(scores, length, lengths, size)
    fit = Fit(system.mode, system.scoring.gap_extend, len(lengths), size)
    by_length = Lengths(lengths)
    yield (
        f"fitted, {fit.distribution.name.split(' distribution')[0]}",
        lambda scores, length: fit_scores(fit, length, by_length, scores).evalues(scores, length, lengths, size),
    )
    if system.mode == "local":
        yield "maximum likelihood", lambda scores, _: fit_likely(scores, lengths).evalues(scores, lengths)


def judge(
    system: System, kind: str, queries: Records, lengths: npt.NDArray[np.int32], scores: Scores
) -> Iterator[Row]:
    """Count the hits of each query with each statistics."""
    entropies = np.array([entropy(letters) for _, letters in queries])
    limit = np.quantile(entropies, LOWEST)
    for name, evalues_of in judged_statistics(system, lengths):
        counts, ordinary = [], []
        for (_, letters), row, bits in zip(queries, scores, entropies, strict=True):
            try:
                evalues = np.sort(evalues_of(row, len(letters)))
            except FitError:
                continue
            counts.append(np.searchsorted(evalues, LEVELS, side="right"))
            ordinary.append(bits > limit)
        yield Row(system, kind, name, np.array(counts), np.array(ordinary))


def as_json(rows: list[Row], what: str, date: str) -> dict[str, Any]:
    """Return what the plot shows, and what it was measured with."""
    lines = [
        {
            "scoring": row.system.name, "queries": row.kind, "statistics": row.statistics,
            "searches": len(row.counts), "hits": row.counts.sum(axis=0).tolist(),
        }
        for row in rows
    ]  # fmt: skip
    return {"about": {"date": date, "what": what}, "levels": LEVELS, "rows": lines}


def draw(stored: Path) -> None:
    """Draw the plot beside the counts, if that can be done here."""
    try:
        from benchmarks.statistics.calibration_plot import save
    except ImportError:
        print(f"no plot: matplotlib is not installed; python -m benchmarks.statistics.calibration --draw {stored}")
        return
    save(json.loads(stored.read_text(encoding="utf-8")), stored.with_suffix(".png"))


def main() -> None:
    parser = arguments(__doc__)
    parser.set_defaults(first=1000)
    parser.add_argument("--others", type=int, default=1000, help="queries but for the first scoring, %(default)s")
    parser.add_argument("--engine", default="cpu", help="what scores, default %(default)s")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where scores are kept, or found")
    parser.add_argument("--draw", type=Path, metavar="FILE.json", help="measure nothing: draw these counts again")
    options = parser.parse_args()
    if options.draw is not None:
        draw(options.draw)
        return
    subjects = [each for each in read(options.subjects) if each[1]]
    queries = null_queries(read(options.queries), options.first)
    lengths = np.array([len(letters) for _, letters in subjects], dtype=np.int32)
    rows: list[Row] = []
    with swsearch.Database.from_records(subjects) as database:
        for system, kind, scores in score_all(database, queries, options.others, options.engine, options.keep):
            rows += judge(system, kind, queries[kind][: len(scores)], lengths, scores)
    columns = ["scoring", "queries", "statistics", "searches", *(f"E <= {level:g}" for level in SHOWN)]
    what = (
        f"{len(subjects):,} subjects, {residues(subjects):,} residues; {options.first:,} queries, "
        f"{residues(queries['shuffled']):,} residues, {options.others:,} but for the first scoring; seed {SEED}"
    )
    date = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    lines = [
        f"benchmarks/statistics/calibration.py, {date}",
        ", ".join(version_of(name) for name in ("swsearch", "numpy")),
        f"{options.subjects.name}, {options.queries.name}: {what}",
        "",
        "Chance hits per query with an E-value of at most 0.01, 0.1, 1 and 10: that is how many there should be.",
        "Then, of E <= 1: the standard error of the mean, the most that one query had, and the mean without the",
        "twentieth of the queries whose composition has the least entropy.",
        "",
        *table([*columns, "error", "most", "ordinary"], (row.cells() for row in rows)),
    ]
    finish(lines, options.out)
    if options.out is not None:
        stored = options.out.with_suffix(".json")
        stored.write_text(json.dumps(as_json(rows, what, date)) + "\n", encoding="utf-8")
        draw(stored)


if __name__ == "__main__":
    main()
