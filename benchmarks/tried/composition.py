"""Is a search better with scores scaled by composition? Sensitivity on SCOPe with and without.

blastp's first mode of composition-based statistics (Schaffer et al., Nucleic Acids Res. 29, 2994, 2001) multiplies
the matrix by the ratio of two lambdas: the ungapped one of query and subject as they are composed, and that of
proteins in general (Robinson and Robinson's frequencies); a ratio above 1 counts as 1, below 0.5 as 0.5. Here the
ratio is applied to the scores of `sensitivity.py`'s tables, which is the same but for hits whose best alignment would
be another with the scaled matrix. `both ways` does not stop at 1.

Tried: mode 1 on swsearch's own hits. It finds 30.3 % of a superfamily before the first wrong hit where plain scores
find 31.1 % (results/composition.txt). Not used: fewer relatives are found, although fewer wrong hits have E <= 1.

A table of fewer subjects would end before its errors: `sensitivity.py` writes all up to E = 100, and scaling makes
E-values larger, or smaller by less than what is missing.

Needs: `sensitivity.py` run before with the same --subjects, --queries and --work. A minute.
Run:   python -m benchmarks.tried.composition --subjects scop40.fasta.xz --work FOLDER [--queries 2000]
           [--out benchmarks/results/composition.txt]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.statistics.sensitivity import CONTENDERS, ERRORS, WRONGS, apart, chosen
from benchmarks.statistics.sensitivity_measures import Labels, curve_of, judged, read_scope, sensitivity
from benchmarks.support.common import Records, finish, heading, table
from benchmarks.support.contenders import Run
from swsearch.scoring import load_matrix

FloatArray = npt.NDArray[np.float64]

LETTERS = "ARNDCQEGHILKMFPSTWYV"

BACKGROUND = np.array([
    78.05, 51.29, 44.87, 53.64, 19.25, 42.64, 62.95, 73.77, 21.99, 51.42,
    90.19, 57.44, 22.43, 38.56, 52.03, 71.20, 58.41, 13.30, 32.16, 64.41,
])  # fmt: skip
"""Residues per thousand in the order of `LETTERS` (Robinson and Robinson, PNAS 88, 8880, 1991)."""

GAPPED_LAMBDA = 0.267
"""Of BLOSUM62 11/1, per unit of score."""

KEYS = ("ours-62", "blastp-0", "blastp")
"""Tables that are scaled; blastp adjusts its own already."""

SCALES = {"as it is": None, "mode 1": (0.5, 1.0), "both ways": (0.5, 2.0)}
"""Least and largest ratio."""


def compositions(domains: Records) -> FloatArray:
    """Return the share of each of the 20 residues, shape (n_domains, 20); other letters are left out."""
    counts = np.array([[letters.count(letter) for letter in LETTERS] for _, letters in domains], dtype=np.float64)
    return np.asarray(counts / np.maximum(1, counts.sum(axis=1, keepdims=True)))


class Lambdas:
    """Finds ungapped lambdas of BLOSUM62 by composition."""

    def __init__(self) -> None:
        matrix = load_matrix("BLOSUM62")
        codes = matrix.alphabet.encode(LETTERS)
        scores = np.asarray(matrix.scores)[np.ix_(codes, codes)].astype(np.int64)
        self.values = np.arange(scores.min(), scores.max() + 1)
        self._where = np.stack([(scores == value).astype(np.float64) for value in self.values])
        background = BACKGROUND / BACKGROUND.sum()
        self.standard = float(self.of(background, background[None])[0])

    def of(self, query: FloatArray, subjects: FloatArray) -> FloatArray:
        """Solve sum(p(s) * exp(lambda * s)) = 1 by bisection.

        Parameters
        ----------
        query : ndarray, shape (20,)
            Composition.
        subjects : ndarray, shape (n, 20)
            Compositions.

        Returns
        -------
        ndarray, shape (n,), float64
            Not a number where the mean score is not negative: there is no lambda.
        """
        of_query = np.einsum("i,vij->vj", query, self._where)
        probability = of_query @ subjects.T
        low, high = np.full(len(subjects), 1e-4), np.full(len(subjects), 4.0)
        for _ in range(40):
            middle = (low + high) / 2
            above = (probability * np.exp(np.outer(self.values, middle))).sum(axis=0) > 1
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        mean = (self.values[:, None] * probability).sum(axis=0)
        return np.where(mean < 0, (low + high) / 2, np.nan)


def ratios(hits: pd.DataFrame, shares: FloatArray, lambdas: Lambdas) -> FloatArray:
    """Return the ratio of lambdas of each hit, shape (n_hits,); the least of all scales where there is none."""
    found = np.empty(len(hits))
    subjects = hits["subject"].to_numpy()
    for query, rows in hits.groupby("query").indices.items():
        found[rows] = lambdas.of(shares[query], shares[subjects[rows]]) / lambdas.standard
    return np.nan_to_num(found, nan=0.0)


def scaled(hits: pd.DataFrame, ratio: FloatArray) -> pd.DataFrame:
    """Return hits with scores multiplied and E-values accordingly, ordered anew."""
    score = hits["score"] * ratio
    evalue = hits["evalue"] * np.exp(GAPPED_LAMBDA * (hits["score"] - score))
    rows = hits.assign(score=score, evalue=evalue, falling=-score)
    return rows.sort_values(["query", "evalue", "falling"], kind="stable", ignore_index=True).drop(columns="falling")


def rows_of(
    run: Run, shares: FloatArray, queries: npt.NDArray[np.int64], labels: Labels, lambdas: Lambdas
) -> list[list[str]]:
    """Return the rows of a contender's table, one for each scale."""
    hits, rows = run.table(), []
    ratio = ratios(hits, shares, lambdas)
    first: FloatArray | None = None
    for name, limits in SCALES.items():
        found = judged(hits if limits is None else scaled(hits, np.clip(ratio, *limits)), labels)
        curve = curve_of(found, queries, labels)
        shares_found = [sensitivity(found, queries, labels, k) for k in WRONGS]
        first = shares_found[0] if first is None else first
        rows.append([
            run.contender.name, name, *(f"{each.mean():.2%}" for each in shares_found), apart(shares_found[0], first),
            *(f"{curve.coverage_at(errors):.2%}" for errors in ERRORS), f"{curve.errors_at(1.0):.2f}",
        ])  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subjects", type=Path, required=True, help="SCOPe's FASTA, plain or .xz")
    parser.add_argument("--queries", type=int, default=0, metavar="N", help="as sensitivity.py was told")
    parser.add_argument("--work", type=Path, required=True, help="folder with the tables of sensitivity.py")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write the report here")
    options = parser.parse_args()
    by_key = {contender.key: contender for contender in CONTENDERS}
    for key in KEYS:
        if not (options.work / f"{key}.tsv").is_file():
            sys.exit(f"{options.work / key}.tsv: no such table; run sensitivity.py with --work {options.work} first")
    domains, labels = read_scope(options.subjects)
    queries = chosen(len(domains), options.queries)
    shares, lambdas = compositions(domains), Lambdas()
    rows = [
        row
        for key in KEYS
        for row in rows_of(
            Run(by_key[key], options.work / f"{key}.tsv", 0.0, 0.0, ""), shares, queries, labels, lambdas
        )
    ]
    heads = [
        "", "scores", *(f"up to wrong hit {k}" for k in WRONGS), "hit 1, against as it is",
        *(f"found at {errors:g} wrong hits per query" for errors in ERRORS), "wrong hits per query, E <= 1",
    ]  # fmt: skip
    lines = [
        *heading(__file__, ["pandas"]),
        f"{options.subjects.name}: {len(queries):,} queries against {len(domains):,} domains; measures are those of "
        f"sensitivity.py; standard lambda {lambdas.standard:.4f}", "",
        *table(heads, rows),
    ]  # fmt: skip
    finish(lines, options.out)


if __name__ == "__main__":
    main()
