"""Hits of an exact search that heuristic programs miss, and scores that they report too low.

`swsearch search` finds hits with BLOSUM62, 11, 1 up to --evalue by published statistics. It neither masks nor adjusts
for composition. Each hit is looked up in the reports of blastp, diamond and mmseqs2. They report up to the same
--evalue, by their own statistics. Each program has two settings. With the same scoring system, a lower score is an
alignment that the program did not find. With its defaults, masking and adjustment for composition deliberately change
scores and E-values too. A subject that a program scores so low that its E-value passes --evalue counts as missed.

mmseqs2 counts gap costs otherwise: its 12, 1 is our 11, 1, and its default is our 10, 1. It prints raw scores that it
derives from whole bits, so that they are not compared. diamond scores U as X, we as C: a few units, few subjects.

Needs: ncbi-blast+, diamond-aligner, mmseqs2 (programs that are not installed are skipped), pandas.
benchmarks/README.md names the sources of the data. Raw tables stay in --work, and only missing ones are measured
again. Swiss-Prot and the 20 queries take about half an hour on two cores, 8 GB of memory.
Run:   python -m benchmarks.agreement.exactness --queries queries20.fasta --subjects swissprot.fasta --work FOLDER
           [--out benchmarks/results/exactness.txt]
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from benchmarks.support.common import arguments, data_line, finish, heading, numbered, read, table, write
from benchmarks.support.contenders import Comparison, Contender, Run, run_all, times_line, versions_needed

OURS = Contender("swsearch", "swsearch", "swsearch", "--statistics published")

SAME, DEFAULT = "same scoring", "defaults"

PEERS = [
    Contender("blastp-same", SAME, "blastp", "-comp_based_stats 0 -seg no -soft_masking false"),
    Contender("diamond-same", SAME, "diamond", "--very-sensitive --comp-based-stats 0 --masking 0"),
    Contender("mmseqs-same", SAME, "mmseqs", "-s 7.5 --gap-open 12 --comp-bias-corr 0 --mask 0"),
    Contender("blastp", DEFAULT, "blastp"),
    Contender("diamond", DEFAULT, "diamond", "--very-sensitive"),
    Contender("mmseqs", DEFAULT, "mmseqs", "-s 7.5"),
]
"""Programs, settings and their options; a line adds one."""

NAMES = {"blastp": "blastp", "diamond": "diamond very-sensitive", "mmseqs": "mmseqs2 -s 7.5"}

HEADS = [
    "", "settings", "reported", "missed", "missed, %", "exact score", "lower score", "lower, % of reported",
    "median difference", "in %", "largest", "higher score", "wall s", "processor s",
]  # fmt: skip


def differences(exact: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Join exact hits with what a program reports of them.

    Parameters
    ----------
    exact, theirs : DataFrame
        ``query``, ``subject``, ``score``, one row per pair.

    Returns
    -------
    DataFrame
        One row per exact hit: ``score``, ``found`` (its score there, NaN where it is missed), ``lower`` (by how much
        that is below the exact score, negative if it is above).
    """
    found = theirs[["query", "subject", "score"]].rename(columns={"score": "found"})
    joined = exact.merge(found, on=["query", "subject"], how="left", validate="one_to_one")
    return joined.assign(lower=joined["score"] - joined["found"])


def row_of(run: Run, joined: pd.DataFrame) -> list[str]:
    """Return a contender's row of the table."""
    reported = joined[joined["found"].notna()]
    missed = len(joined) - len(reported)
    scores = [""] * 7
    if run.contender.program != "mmseqs":
        lower = reported[reported["lower"] > 0]
        by, share = lower["lower"], lower["lower"] / lower["score"]
        amounts = [f"{by.median():.0f}", f"{share.median():.1%}", f"{by.max():.0f}"] if len(lower) else [""] * 3
        scores = [
            f"{(reported['lower'] == 0).sum():,}", f"{len(lower):,}", f"{len(lower) / max(1, len(reported)):.1%}",
            *amounts, f"{(reported['lower'] < 0).sum():,}",
        ]  # fmt: skip
    return [
        NAMES[run.contender.program], run.contender.name, f"{len(reported):,}", f"{missed:,}",
        f"{missed / max(1, len(joined)):.1%}", *scores, f"{run.seconds:.0f}", f"{run.busy:.0f}",
    ]  # fmt: skip


def worst_line(run: Run, joined: pd.DataFrame, names: tuple[list[str], list[str]]) -> str:
    """Name the hit that a program scores lowest, and the best of those that it misses."""

    def pair(row: pd.Series) -> str:
        return f"{names[0][int(row['query'])]} with {names[1][int(row['subject'])]}"

    parts = []
    if run.contender.program != "mmseqs" and joined["lower"].max() > 0:
        worst = joined.loc[joined["lower"].idxmax()]
        parts.append(
            f"the largest difference is {worst['found']:.0f} instead of {worst['score']:.0f} ({pair(worst)})"
        )
    missed = joined[joined["found"].isna()]
    if len(missed):
        best = missed.loc[missed["score"].idxmax()]
        parts.append(f"the best missed hit scores {best['score']:.0f}, E = {best['evalue']:.3g} ({pair(best)})")
    return f"{NAMES[run.contender.program]}, {run.contender.name}: {'; '.join(parts) or 'nothing missed or lower'}."


def report(ours: Run, peers: list[Run], thresholds: list[float], names: tuple[list[str], list[str]]) -> list[str]:
    """Return a table for each threshold, and the worst cases up to the first one."""
    exact, lines = ours.table(), []
    joined = [differences(exact, run.table()) for run in peers]
    for threshold in thresholds:
        rows = [row_of(run, pairs[pairs["evalue"] <= threshold]) for run, pairs in zip(peers, joined, strict=True)]
        hits = int((exact["evalue"] <= threshold).sum())
        lines += [f"{hits:,} hits have an exact E-value of at most {threshold:g}:", "", *table(HEADS, rows), ""]
    lines += [f"Worst cases, E <= {thresholds[0]:g}:"]
    for run, pairs in zip(peers, joined, strict=True):
        if run.contender.name == SAME:
            lines.append(f"- {worst_line(run, pairs[pairs['evalue'] <= thresholds[0]], names)}")
    return lines


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--evalue", type=float, default=10.0, help="the larger threshold, default %(default)g")
    parser.add_argument("--strict", type=float, default=1e-3, help="the smaller threshold, default %(default)g")
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps raw tables")
    parser.add_argument("--threads", type=int, default=2, help="of every program, default %(default)s")
    parser.add_argument("--note", default="", help="a sentence for the report, such as what else ran")
    options = parser.parse_args()
    queries, subjects = read(options.queries, options.first), read(options.subjects)
    options.work.mkdir(parents=True, exist_ok=True)
    files = (
        write(options.work / "queries.fasta", numbered(queries, "q")),
        write(options.work / "subjects.fasta", numbered(subjects, "s")),
    )
    comparison = Comparison(options.work, *files, options.evalue, options.threads)
    runs, skipped = run_all(comparison, [OURS, *PEERS])
    if len(runs) < 2:
        sys.exit("nothing to compare with; benchmarks/README.md names the packages")
    names = [name for name, _ in queries], [name for name, _ in subjects]
    ours = f"swsearch takes {runs[0].seconds:.0f} s, {runs[0].busy:.0f} processor seconds."
    lines = [
        *heading(__file__, ["pandas", *versions_needed(PEERS)]), data_line(queries, subjects, options),
        f"{times_line(runs, options.threads)} {ours} {options.note}".strip(), *skipped, "",
        *report(runs[0], runs[1:], [options.strict, options.evalue], names),
    ]  # fmt: skip
    finish(lines, options.out)


if __name__ == "__main__":
    main()
