"""Sensitivity on SCOPe: labels, right and wrong hits, the measures and the curve. Nothing runs here.

A hit is right if query and subject share the superfamily, and wrong if their folds differ. A hit that shares only the
fold is not counted, because SCOPe does not say whether both are related. The query itself is not counted either.

`sensitivity` is the share of a query's superfamily, its own family included, before the k-th wrong hit. MMseqs2
(Steinegger and Söding, Nat. Biotechnol. 35, 1026, 2017) and Foldseek (van Kempen et al., Nat. Biotechnol. 42, 243,
2024) also report sensitivity up to the first wrong hit, but of other relatives: MMseqs2 of the family only, Foldseek
of family, superfamily and fold apart. `foldseek_sensitivity` is Foldseek's measure.

The curve of coverage against errors per query is that of Brenner, Chothia and Hubbard (PNAS 95, 6073, 1998), except
that every query has the same weight, whatever the size of its superfamily.
"""

from __future__ import annotations

import lzma
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.support.common import Records

RIGHT, WRONG, UNCOUNTED = 1, -1, 0


@dataclass(frozen=True)
class Labels:
    """SCOPe's classes of the domains, as numbers.

    Parameters
    ----------
    family, superfamily, fold : ndarray, shape (n_domains,), int64
        The same number for the same class.
    """

    family: npt.NDArray[np.int64]
    superfamily: npt.NDArray[np.int64]
    fold: npt.NDArray[np.int64]

    @classmethod
    def of(cls, names: Sequence[str]) -> Labels:
        """Make numbers of names such as ``a.1.1.2``: class, fold, superfamily, family."""
        parts = [name.split(".") for name in names]
        codes = [pd.factorize(pd.Series([".".join(one[:n]) for one in parts]))[0].astype(np.int64) for n in (4, 3, 2)]
        return cls(*codes)

    def relatives(self) -> npt.NDArray[np.int64]:
        """Count the other domains of each domain's superfamily, shape (n_domains,)."""
        return np.asarray(np.bincount(self.superfamily)[self.superfamily] - 1)

    def relatives_by_level(self) -> npt.NDArray[np.int64]:
        """Count the other domains of each domain's family, superfamily without family, and fold without superfamily.

        The shape is (n_domains, 3).
        """
        members = [np.bincount(codes)[codes] for codes in (self.family, self.superfamily, self.fold)]
        return np.diff(members, axis=0, prepend=1).T


def read_scope(path: Path) -> tuple[Records, Labels]:
    """Read SCOPe's FASTA, plain or xz; the second word of a header is the domain's class."""
    from Bio.SeqIO.FastaIO import SimpleFastaParser

    if not path.is_file():
        sys.exit(f"{path}: no such file; benchmarks/README.md says where the data comes from")
    records, names = [], []
    with lzma.open(path, "rt") if path.suffix == ".xz" else path.open() as stream:
        for title, letters in SimpleFastaParser(stream):
            words = title.split()
            if len(words) < 2 or words[1].count(".") != 3:
                sys.exit(f"{path}: {title[:60]!r}: expected class.fold.superfamily.family as the second word")
            records.append((words[0], letters.upper()))
            names.append(words[1])
    return records, Labels.of(names)


def judged(hits: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Say of each hit whether it is right.

    Parameters
    ----------
    hits : DataFrame
        ``query`` and ``subject``: places of the domains; hits of a query from the best to the worst.
    labels : Labels
        Of all domains.

    Returns
    -------
    DataFrame
        The same without the queries themselves; ``right`` and ``wrong`` are new, ``wrong_before`` is the number of
        better hits of the query that are wrong.
    """
    query, subject = hits["query"].to_numpy(), hits["subject"].to_numpy()
    right = labels.superfamily[query] == labels.superfamily[subject]
    wrong = labels.fold[query] != labels.fold[subject]
    rows = hits.assign(right=right, wrong=wrong)[query != subject].reset_index(drop=True)
    before = rows.groupby("query")["wrong"].cumsum() - rows["wrong"]
    return rows.assign(wrong_before=before)


def sensitivity(
    rows: pd.DataFrame, queries: npt.NDArray[np.int64], labels: Labels, k: int
) -> npt.NDArray[np.float64]:
    """Return the fraction of its superfamily that each query finds before its k-th wrong hit.

    Parameters
    ----------
    rows : DataFrame
        What `judged` returns.
    queries : ndarray of int64
        Places of the queries; those without relatives are left out.
    labels : Labels
        Of all domains.
    k : int
        From 1. A list that ends before its k-th wrong hit counts as a whole.

    Returns
    -------
    ndarray, float64
        One value for each query that has relatives, in their order.
    """
    relatives = labels.relatives()
    found = rows[rows["right"] & (rows["wrong_before"] < k)].groupby("query").size()
    asked = queries[relatives[queries] > 0]
    return np.asarray(found.reindex(asked, fill_value=0).to_numpy() / relatives[asked])


def foldseek_sensitivity(
    rows: pd.DataFrame, queries: npt.NDArray[np.int64], labels: Labels
) -> npt.NDArray[np.float64]:
    """Return the fractions of its family, superfamily and fold that each query finds before its first wrong hit.

    The superfamily is counted without the family, and the fold without the superfamily. Queries without relatives at
    one of the three levels are left out. `scopbenchmark/scripts/bench.noselfhit.awk` of the repository
    steineggerlab/foldseek-analysis computes the same. As there, the divisors of superfamily and fold are one larger
    than the number of relatives.

    Parameters
    ----------
    rows : DataFrame
        What `judged` returns.
    queries : ndarray of int64
        Places of the queries.
    labels : Labels
        Of all domains.

    Returns
    -------
    ndarray, shape (n_counted, 3), float64
        One row for each counted query, in their order.
    """
    relatives = labels.relatives_by_level()
    counted = queries[(relatives[queries] > 0).all(axis=1)]
    before = rows[~rows["wrong"] & (rows["wrong_before"] == 0)]
    query, subject = before["query"].to_numpy(), before["subject"].to_numpy()
    shared = [codes[query] == codes[subject] for codes in (labels.family, labels.superfamily, labels.fold)]
    found = np.zeros_like(relatives)
    np.add.at(found, (query, np.argmax(shared, axis=0)), 1)
    return np.asarray(found[counted] / (relatives[counted] + [0, 1, 1]))


HALVES = ("choice", "confirmation")
SEED = 15
"""Of the halves, of the queries in each, and of flanks."""


def halves(labels: Labels, wanted: int | None) -> list[npt.NDArray[np.int64]]:
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


def drawn_queries(labels: Labels, half: str, wanted: int) -> npt.NDArray[np.int64]:
    """Return the places of at most 2,000 queries of one half, ascending; fewer are some of more."""
    queries = halves(labels, 2000)[HALVES.index(half)]
    order = np.random.default_rng(17).permutation(len(queries))
    return np.sort(queries[order[:wanted]])


def flanked(domains: Records, length: int) -> Records:
    """Put random residues on either side of every domain, drawn as often as the domains have them."""
    generator = np.random.default_rng(SEED)
    pool = np.frombuffer("".join(letters for _, letters in domains).encode(), dtype=np.uint8)
    drawn = generator.choice(pool, (len(domains), 2, length))
    return [
        (name, f"{left.tobytes().decode()}{letters}{right.tobytes().decode()}")
        for (name, letters), (left, right) in zip(domains, drawn, strict=True)
    ]


def difference(values: npt.NDArray[np.float64], other: npt.NDArray[np.float64], of: npt.NDArray[np.int64]) -> str:
    """Format a mean difference with its standard errors: over queries, and in brackets over their superfamilies.

    Members of one superfamily (``of`` has its number) gain and lose together.
    """
    apart = values - other
    if not apart.any():
        return ""
    sums = pd.Series(apart - apart.mean()).groupby(of).sum()
    error, clustered = apart.std(ddof=1) / np.sqrt(len(apart)), np.sqrt(float((sums**2).sum())) / len(apart)
    return f"{apart.mean():+.2%} ± {error:.2%} ({clustered:.2%})"


@dataclass(frozen=True)
class Curve:
    """Coverage against errors, as the E-value threshold grows.

    Parameters
    ----------
    evalue : ndarray, shape (n,)
        The thresholds, ascending.
    errors : ndarray, shape (n,)
        Wrong hits per query up to there.
    coverage : ndarray, shape (n,)
        Mean fraction of its superfamily that a query finds up to there.
    """

    evalue: npt.NDArray[np.float64]
    errors: npt.NDArray[np.float64]
    coverage: npt.NDArray[np.float64]

    def coverage_at(self, errors: float) -> float:
        """Return the largest coverage with at most that many wrong hits per query."""
        place = int(np.searchsorted(self.errors, errors, side="right"))
        return float(self.coverage[place - 1]) if place else 0.0

    def errors_at(self, evalue: float) -> float:
        """Return the wrong hits per query up to an E-value."""
        place = int(np.searchsorted(self.evalue, evalue, side="right"))
        return float(self.errors[place - 1]) if place else 0.0

    def complete(self) -> float:
        """Return the wrong hits per query of the whole list, where the curve ends."""
        return float(self.errors[-1]) if len(self.errors) else 0.0


def curve_of(rows: pd.DataFrame, queries: npt.NDArray[np.int64], labels: Labels) -> Curve:
    """Return the curve over all queries; hits of the same E-value are one step.

    Parameters
    ----------
    rows : DataFrame
        What `judged` returns.
    queries : ndarray of int64
        Places of all queries. Those without relatives have wrong hits, too.
    labels : Labels
        Of all domains.
    """
    relatives = labels.relatives()
    asked = int((relatives[queries] > 0).sum())
    ordered = rows.sort_values("evalue", kind="stable")
    weight = np.where(ordered["right"], 1 / np.maximum(1, relatives[ordered["query"].to_numpy()]), 0.0)
    evalue = ordered["evalue"].to_numpy()
    last = np.append(evalue[1:] != evalue[:-1], True)[: len(evalue)]
    errors = ordered["wrong"].to_numpy().cumsum() / max(1, len(queries))
    return Curve(evalue[last], errors[last], weight.cumsum()[last] / max(1, asked))


def thinned(curve: Curve, points: int, least: float) -> Curve:
    """Keep as many points as a plot with a logarithmic axis needs.

    Parameters
    ----------
    curve : Curve
        Of thousands of points.
    points : int
        How many to keep.
    least : float
        Wrong hits per query at which the plot begins.
    """
    if not len(curve.errors):
        return curve
    wanted = np.geomspace(least, max(curve.complete(), least), points)
    places = np.unique(np.maximum(0, np.searchsorted(curve.errors, wanted, side="right") - 1))
    return Curve(curve.evalue[places], curve.errors[places], curve.coverage[places])
