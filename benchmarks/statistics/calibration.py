"""Compare the chance hits that E-values promise with those found, for several scoring systems and all modes.

Queries are sequences of Swiss-Prot with their residues shuffled, or reversed: they have no relatives, so that every
hit is one of chance, and on average there should be E of them a query with an E-value of at most E. Shuffled residues
are the null that E-values promise; reversed sequences keep runs of few kinds of residues, which resemble those of
unrelated proteins. For each scoring system its statistics are judged, and in local mode those of maximum likelihood
beside them (`likely_gumbel.py`).

Needs: mmseqs2-examples, or any proteins as --subjects; Swiss-Prot; for the plot, matplotlib. Two cores take a
quarter of an hour; with --keep the scores are kept for the next time.
Run:   python -m benchmarks.statistics.calibration --queries uniprot_sprot.fasta [--first 1000] [--engine gpu] [--out
           FILE]
       [--plot FILE.svg]
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import swsearch
from benchmarks.statistics.calibration_scores import SEED, Scores, System, null_queries, score_all
from benchmarks.support.common import Records, arguments, finish, read, residues, table, version_of
from benchmarks.tried.likely_gumbel import fit_likely
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


def contenders(system: System, lengths: npt.NDArray[np.int32]) -> Iterator[tuple[str, Evalues]]:
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
    for name, evalues_of in contenders(system, lengths):
        counts, ordinary = [], []
        for (_, letters), row, bits in zip(queries, scores, entropies, strict=True):
            try:
                evalues = np.sort(evalues_of(row, len(letters)))
            except FitError:
                continue
            counts.append(np.searchsorted(evalues, LEVELS, side="right"))
            ordinary.append(bits > limit)
        yield Row(system, kind, name, np.array(counts), np.array(ordinary))


def draw(rows: list[Row], path: Path, title: str) -> None:
    """Plot the chance hits that were found over those that were expected."""
    import matplotlib as mpl

    mpl.use("agg")  # no display is needed
    mpl.rcParams["svg.hashsalt"] = "swsearch"  # the same results give the same bytes
    from matplotlib import pyplot as plt

    colours = dict(zip(sorted({row.system.name for row in rows}), mpl.color_sequences["tab10"], strict=False))
    styles = {"published": ":", "maximum likelihood": "--"}
    figure, panels = plt.subplots(1, 2, figsize=(10.5, 5.6), sharex=True, sharey=True, layout="constrained")
    for axes, kind in zip(panels, ("shuffled", "reversed"), strict=True):
        axes.plot(LEVELS, LEVELS, color="0.4", lw=1)
        axes.fill_between(LEVELS, [0.7 * x for x in LEVELS], [1.4 * x for x in LEVELS], color="0.9", lw=0)
        for row in (each for each in rows if each.kind == kind):
            found = np.where((means := row.counts.mean(axis=0)) > 0, means, np.nan)
            axes.plot(
                LEVELS, found, styles.get(row.statistics, "-"), color=colours[row.system.name], lw=1.6,
                label=f"{row.system.name}: {row.statistics}",
            )  # fmt: skip
        axes.set(xscale="log", yscale="log", ylim=(1e-3, 120), xlabel="E-value: chance hits expected a query")
        axes.set_title(f"{kind} sequences", fontsize=10.5, loc="left")
        axes.grid(True, color="0.92", lw=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("chance hits found a query, mean")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=7.5, frameon=False)
    figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    figure.savefig(path, dpi=160, metadata={"Date": None} if path.suffix == ".svg" else {})


def main() -> None:
    parser = arguments(__doc__)
    parser.set_defaults(first=1000)
    parser.add_argument("--others", type=int, default=1000, help="queries but for the first scoring, %(default)s")
    parser.add_argument("--engine", default="cpu", help="what scores, default %(default)s")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where scores are kept, or found")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw expected against found")
    options = parser.parse_args()
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
    lines = [
        f"benchmarks/statistics/calibration.py, {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}",
        ", ".join(version_of(name) for name in ("swsearch", "numpy")),
        f"{options.subjects.name}, {options.queries.name}: {what}",
        "",
        "Chance hits a query with an E-value of at most 0.01, 0.1, 1 and 10: that is how many there should be. Then,",
        "of E <= 1: the standard error of the mean, the most that one query had, and the mean without the twentieth",
        "of the queries whose composition has the least entropy.",
        "",
        *table([*columns, "error", "most", "ordinary"], (row.cells() for row in rows)),
    ]
    finish(lines, options.out)
    if options.plot is not None:
        draw(rows, options.plot, f"swsearch: {what}")


if __name__ == "__main__":
    main()
