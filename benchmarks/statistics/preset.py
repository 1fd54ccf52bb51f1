"""Which matrix with which gap costs finds most in SCOPe? What --preset sensitive is, and what it is worth.

Domains are short, and cheap gaps find most of them; in whole proteins the same gaps string chance matches together.
So each system is measured twice: on SCOPe's domains as they are, and on domains that lie in a protein, with `FLANK`
random residues on either side of query and subject, which makes them as long as Swiss-Prot's proteins on average.

SCOPe's superfamilies are split into two halves, by lot (`SEED`). On queries of the first half every system of
`SYSTEMS` is measured, and the best gap costs of each matrix are chosen: those with the largest share of a query's
superfamily before the first wrong hit, mean of both measures. The chosen ones alone are measured on queries of the
other half, beside ssearch36 with its own defaults. No superfamily has queries in both halves: luck does not last. The
subjects are all domains each time; `sensitivity_measures.py` says what counts as right and wrong.

Differences are those of the same queries, against the first row. Their standard errors count superfamilies, not
queries: members of one superfamily gain and lose together.

Needs: pandas, scoring-matrices (PFASUM51, which is not shipped; without it, it is skipped), fasta3 (skipped if it is
not installed). Raw tables stay in --work, and only what is missing is measured again. On two cores a system takes
half a minute and one minute, ssearch36 two and six.
Run:   python -m benchmarks.statistics.preset --subjects scop40.fasta.xz --work FOLDER [--queries 1000] [--longer 400]
           [--out benchmarks/results/preset.txt]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.statistics.sensitivity import ERRORS, WRONGS, prepare
from benchmarks.statistics.sensitivity_measures import Labels, curve_of, judged, read_scope, sensitivity
from benchmarks.support.common import Records, arguments, finish, heading, residues, table
from benchmarks.support.contenders import Comparison, Contender, Run, run_all, versions_needed
from swsearch.matrices import GAP_COSTS

SYSTEMS = {
    "BLOSUM62": [(11, 1), (10, 1)],
    "BLOSUM50": [(13, 2), (12, 2), (10, 2)],
    "VTML200": [(14, 1), (12, 2), (10, 2)],
    "PFASUM51": [(12, 2), (11, 2)],
    "PFASUM60": [(16, 1), (15, 1), (14, 1), (12, 1), (13, 2), (12, 2), (11, 2), (10, 2)],
}
"""Matrices, all but BLOSUM62 in third bits, and the gap costs of each; the first is what all are compared with."""

FLANK = 90
"""Random residues on either side: a domain has 182 on average, a protein of Swiss-Prot 362."""

SEED = 15
"""Of the halves, and of the queries in each."""

PEER = Contender("ssearch36", "ssearch36 BLOSUM50 10/2", "ssearch36")
"""Beside what was chosen: the most sensitive of the other programs (`sensitivity.py`)."""


@dataclass(frozen=True)
class Half:
    """Queries of one half of the superfamilies, and what they are searched in.

    Parameters
    ----------
    what : str
        For the report.
    queries : ndarray, shape (n_queries,), int64
        Places of the domains, ascending; all have relatives.
    comparison : Comparison
        The files that are searched.
    """

    what: str
    queries: npt.NDArray[np.int64]
    comparison: Comparison


def halves(labels: Labels, wanted: int) -> list[npt.NDArray[np.int64]]:
    """Draw the queries of both halves: domains with relatives, of superfamilies that are split by lot."""
    generator = np.random.default_rng(SEED)
    n_superfamilies = int(labels.superfamily.max()) + 1
    first = np.zeros(n_superfamilies, dtype=bool)
    first[generator.permutation(n_superfamilies)[: n_superfamilies // 2]] = True
    related = labels.relatives() > 0
    drawn = []
    for side in (first, ~first):
        there = np.flatnonzero(side[labels.superfamily] & related)
        drawn.append(np.sort(generator.permutation(there)[:wanted]))
    return drawn


def flanked(domains: Records) -> Records:
    """Put every domain into a protein, of residues drawn as often as the domains have them."""
    generator = np.random.default_rng(SEED)
    pool = np.frombuffer("".join(letters for _, letters in domains).encode(), dtype=np.uint8)
    drawn = generator.choice(pool, (len(domains), 2, FLANK))
    return [
        (name, f"{left.tobytes().decode()}{letters}{right.tobytes().decode()}")
        for (name, letters), (left, right) in zip(domains, drawn, strict=True)
    ]


def system(matrix: str, gap_open: int, gap_extend: int, folder: Path) -> Contender | None:
    """Return a line of the table; None for a matrix that cannot be had here."""
    source = matrix if matrix in GAP_COSTS else other_matrix(matrix, folder)
    if source is None:
        return None
    return Contender(
        f"{matrix}-{gap_open}-{gap_extend}",
        f"{matrix} {gap_open}/{gap_extend}",
        "swsearch",
        f"--matrix {source} --gap-open {gap_open} --gap-extend {gap_extend} --statistics fitted",
    )


def other_matrix(name: str, folder: Path) -> str | None:
    """Write a matrix of the package scoring-matrices, rounded, for --matrix; None if that is not installed."""
    try:
        from scoring_matrices import ScoringMatrix
    except ImportError:
        return None
    rows = dict(zip((made := ScoringMatrix.from_name(name)).alphabet, made, strict=True))
    letters = "ARNDCQEGHILKMFPSTWYV"
    places = [made.alphabet.index(letter) for letter in letters]
    lines = ["  ".join(letters)]
    lines += [" ".join([letter, *(f"{rows[letter][place]:.0f}" for place in places)]) for letter in letters]
    path = folder / f"{name}.txt"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def clustered(differences: npt.NDArray[np.float64], clusters: npt.NDArray[np.int64]) -> str:
    """Format a mean difference and its standard error, which counts clusters of values as one each."""
    if not differences.any():
        return ""
    return f"{differences.mean():+.2%} ± {clustered_error(differences, clusters):.2%}"


def clustered_error(differences: npt.NDArray[np.float64], clusters: npt.NDArray[np.int64]) -> float:
    """Return the standard error of a mean difference, which counts clusters of values as one each."""
    sums = pd.Series(differences - differences.mean()).groupby(clusters).sum()
    return float(np.sqrt(float((sums**2).sum())) / len(differences))


def measure(runs: Sequence[Run], half: Half, labels: Labels) -> tuple[list[list[str]], dict[str, float]]:
    """Return a row of the table for each run, and by its key what it is chosen by."""
    rows, found = [], {}
    superfamilies = labels.superfamily[half.queries]
    firsts: dict[int, npt.NDArray[np.float64]] = {}
    for run in runs:
        hits = judged(run.table(), labels)
        values = {k: sensitivity(hits, half.queries, labels, k) for k in WRONGS}
        firsts = firsts or values
        curve = curve_of(hits, half.queries, labels)
        found[run.contender.key] = float(values[WRONGS[0]].mean())
        rows.append([
            run.contender.name, *(f"{values[k].mean():.2%}" for k in WRONGS),
            *(clustered(values[k] - firsts[k], superfamilies) for k in WRONGS),
            *(f"{curve.coverage_at(errors):.2%}" if errors <= curve.complete() else "" for errors in ERRORS),
            f"{curve.errors_at(1.0):.2f}",
        ])  # fmt: skip
    return rows, found


def best_of_each(found: Sequence[dict[str, float]]) -> list[str]:
    """Return the key of each matrix's best gap costs, by the mean of several measures of the same systems."""
    best = []
    for matrix, costs in SYSTEMS.items():
        keys = [key for gaps in costs if (key := f"{matrix}-{gaps[0]}-{gaps[1]}") in found[0]]
        if keys:
            best.append(max(keys, key=lambda key: sum(one[key] for one in found)))
    return best


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = arguments(__doc__, files=False)
    parser.add_argument("--subjects", type=Path, required=True, help="SCOPe's FASTA, plain or .xz")
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps raw tables")
    parser.add_argument("--queries", type=int, default=1000, help="of each half, default %(default)s")
    parser.add_argument("--longer", type=int, default=400, help="of these within proteins, default %(default)s")
    parser.add_argument("--evalue", type=float, default=100.0, help="threshold, default %(default)g")
    parser.add_argument("--threads", type=int, default=2, help="default %(default)s")
    parser.add_argument("--note", default="", help="a sentence for the report")
    return parser.parse_args()


HEADS = [
    "matrix, gap costs", *(f"up to wrong hit {k}" for k in WRONGS),
    *(f"hit {k}, against the first row" for k in WRONGS),
    *(f"found at {errors:g} wrong hits per query" for errors in ERRORS), "wrong hits per query, E <= 1",
]  # fmt: skip


def prepared(options: argparse.Namespace, domains: Records, labels: Labels) -> list[list[Half]]:
    """Write the files of both halves, each as they are and within proteins."""
    made = []
    longer = flanked(domains)
    for name, queries in zip(("choice", "confirmation"), halves(labels, options.queries), strict=True):
        n_fewer = min(options.longer, len(queries))
        fewer = queries[np.arange(n_fewer) * len(queries) // n_fewer]
        measures = (("domains", domains, queries), ("proteins", longer, fewer))
        made.append([
            Half(
                f"{what}: {len(places):,} queries of {len(np.unique(labels.superfamily[places])):,} superfamilies",
                places,
                prepare(options.work / f"{name}-{what}", records, places, options.evalue, options.threads)[0],
            )
            for what, records, places in measures
        ])  # fmt: skip
    return made


def main() -> None:
    options = read_options()
    domains, labels = read_scope(options.subjects)
    first, other = prepared(options, domains, labels)
    made = [system(matrix, *gaps, options.work) for matrix, costs in SYSTEMS.items() for gaps in costs]
    contenders = [one for one in made if one is not None]
    lines, found = [], []
    for half in first:
        rows, shares = measure(run_all(half.comparison, contenders)[0], half, labels)
        found.append(shares)
        lines += [f"First half, {half.what}", "", *table(HEADS, rows), ""]
    best = best_of_each(found)
    again = [one for one in contenders if one.key in {contenders[0].key, *best}]
    skipped: list[str] = []
    for half in other:
        runs, skipped = run_all(half.comparison, [*again, PEER])
        lines += [f"Other half, {half.what}", "", *table(HEADS, measure(runs, half, labels)[0]), ""]
    finish(
        [
            *heading(__file__, ["pandas", *versions_needed([PEER])]),
            f"{options.subjects.name}: {len(domains):,} domains, {residues(domains):,} residues; within proteins "
            f"{FLANK} random residues on either side; E <= {options.evalue:g}; seed {SEED}. {options.note}".strip(),
            *skipped, "",
            "Share of a query's superfamily found before its first and fifth wrong hit, mean over queries",
            "(percentage points ± standard error of the difference, superfamilies counted); and up to the E-value",
            "at which there are so many wrong hits per query, queries weighted equally.",
            f"Best of each matrix, by the first column, mean of both measures: {', '.join(best)}.", "", *lines[:-1],
        ],
        options.out,
    )  # fmt: skip


if __name__ == "__main__":
    main()
