"""How many relatives searches with contexts find in SCOPe, beside those without: one search each, or --iterations.

Queries are drawn of one half of the superfamilies: ``choice`` chooses settings, ``confirmation`` measures, since the
library is trained on nothing that is similar to it (`columns.py`). Right, wrong and not counted are those of
`sensitivity_measures.py`. Each row is a preset with the fields of `ContextSettings`, such as
``default:0:1.5:0.5``, and then a single search; or a preset, as ``context``, which has those of the package, with an
inclusion E-value of its own after ``@``.
Differences are with the first row, over the same queries: ± standard error over queries, in brackets over
superfamilies.

Needs: SCOPe, pandas. A row of 300 queries takes half a minute on one core.
Run:   python -m benchmarks.training.context_sensitivity --subjects scop40.fasta.xz [--half confirmation]
           [--queries 300] [--library contexts.npz] [--iterations 3] default context [--out FILE]
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import swsearch
from benchmarks.statistics.sensitivity import SEED
from benchmarks.statistics.sensitivity_measures import (
    HALVES,
    Labels,
    curve_of,
    difference,
    foldseek_sensitivity,
    halves,
    judged,
    read_scope,
    sensitivity,
)
from benchmarks.support.common import Records, arguments, finish, heading, residues, table
from benchmarks.support.timing import say
from swsearch.alphabet import PROTEIN
from swsearch.profiles.contexts import ContextLibrary, ContextSettings, context_profile, load_library

HEADS = [
    "", "found before wrong hit 1", "wrong hit 5", "hits before wrong hit 1", "difference in share, hit 1", "hit 5",
    "difference in hits", "Foldseek's family", "superfamily", "wrong hits per query, E <= 1", "E <= 0.01",
    "E <= 0.001",
]  # fmt: skip


def search_queries(name: str, queries: Records, library: ContextLibrary | None) -> tuple[Sequence[Any], str]:
    """Return queries of a row, and its preset."""
    preset, *numbers = name.split(":")
    if not numbers:
        return queries, preset
    settings = ContextSettings(*(float(one) for one in numbers if one))
    scoring: Any = swsearch.Scoring.of_preset(preset)  # type: ignore[arg-type]
    return [
        context_profile(key, "", PROTEIN.encode(letters.encode()), scoring, settings, library)
        for key, letters in queries
    ], preset


def find(
    name: str, queries: Records, database: swsearch.Database, options: argparse.Namespace, library: ContextLibrary
) -> pd.DataFrame:
    """Return all hits of a row, numbered as the domains."""
    name, _, inclusion = name.partition("@")
    asked, preset = search_queries(name, queries, library)
    found = swsearch.search(
        asked,
        database,
        preset=preset,
        engine=options.engine,
        threads=options.threads,
        evalue=100.0,
        max_hits=10**6,
        iterations=options.iterations,
        inclusion_evalue=float(inclusion) if inclusion else None,
    )  # type: ignore[arg-type]
    rows = [
        (int(result.query_id[1:]), int(hit.subject_id[1:]), hit.evalue, hit.score)
        for result in found
        for hit in result.hits
    ]
    return pd.DataFrame(rows, columns=["query", "subject", "evalue", "score"])


def first_hits(hits: pd.DataFrame, queries: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the number of right hits of each query before its first wrong one."""
    good = hits[hits["right"] & (hits["wrong_before"] == 0)].groupby("query").size()
    return np.asarray(good.reindex(queries, fill_value=0).to_numpy(), dtype=np.float64)


def paired(values: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> str:
    """Format a mean difference with its standard error over queries."""
    apart = values - other
    return f"{apart.mean():+.2f} ± {apart.std(ddof=1) / np.sqrt(len(apart)):.2f}" if apart.any() else ""


def measured(every: dict[str, pd.DataFrame], queries: npt.NDArray[np.int64], labels: Labels) -> list[list[str]]:
    """Return the rows of the table."""
    rows, firsts = [], None
    for name, found in every.items():
        hits = judged(found, labels)
        shares = [sensitivity(hits, queries, labels, k) for k in (1, 5)]
        counts = first_hits(hits, queries)
        firsts = firsts or (shares, counts)
        curve = curve_of(hits, queries, labels)
        by_level = foldseek_sensitivity(hits, queries, labels).mean(axis=0)
        rows.append([
            name, *(f"{one.mean():.2%}" for one in shares), f"{counts.mean():.2f}",
            *(difference(one, two, labels.superfamily[queries]) for one, two in zip(shares, firsts[0], strict=True)),
            paired(counts, firsts[1]), f"{by_level[0]:.2%}", f"{by_level[1]:.2%}",
            f"{curve.errors_at(1.0):.2f}", f"{curve.errors_at(0.01):.3f}", f"{curve.errors_at(0.001):.4f}",
        ])  # fmt: skip
    return rows


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = arguments(__doc__, files=False)
    parser.add_argument("rows", nargs="+", metavar="PRESET[:SETTINGS][@E]", help="the first is compared with")
    parser.add_argument("--subjects", type=Path, required=True, help="SCOPe's FASTA, plain or .xz")
    parser.add_argument("--half", choices=HALVES, default="confirmation", help="default %(default)s")
    parser.add_argument("--queries", type=int, default=300, help="so many, default %(default)s")
    parser.add_argument("--iterations", type=int, default=1, help="of each search, default %(default)s")
    parser.add_argument("--library", type=Path, help="default: that of the package")
    parser.add_argument("--engine", default="auto", help="default %(default)s")
    parser.add_argument("--threads", type=int, help="default: all processors")
    return parser.parse_args()


def main() -> None:
    options = read_options()
    domains, labels = read_scope(options.subjects)
    queries = halves(labels, options.queries)[HALVES.index(options.half)]
    library = load_library() if options.library is None else ContextLibrary.read(options.library)
    asked = [(f"q{place}", domains[place][1]) for place in queries.tolist()]
    subjects = [(f"s{place}", letters) for place, (_, letters) in enumerate(domains)]
    random.Random(SEED).shuffle(subjects)
    every = {}
    with swsearch.Database.from_records(subjects) as database:
        for name in options.rows:
            every[name] = find(name, asked, database, options, library)
            say(f"{name}: {len(every[name]):,} hits")
    lines = [
        *heading(__file__, ["numpy", "pandas"]),
        f"{options.subjects.name}: {len(domains):,} domains; half: {options.half}, {len(queries):,} queries of "
        f"{len(np.unique(labels.superfamily[queries])):,} superfamilies, {residues(asked):,} residues; "
        f"{library.weights.shape[2]:,} contexts; iterations: {options.iterations}, inclusion E-values "
        f"0.002, with contexts 0.01, unless a row says another",
        "",
        *table(HEADS, measured(every, queries, labels)),
    ]
    finish(lines, options.out)


if __name__ == "__main__":
    main()
