"""True and false rows that only jackhmmer or only swsearch has in the third iteration, in Swiss-Prot.

Rows are subjects of E <= 0.001. A single search of SCOPe labels them by the superfamilies of domains of E <= 0.001. A
row is *same* if the query has one of its superfamilies, *other* if not, and *none* if it has no label. One shared
domain is enough, such as the NAD-binding one of c.2.1. Shifts are medians of log10(E-value of swsearch /
E-value of jackhmmer), over subjects that both list, of E 1e-8 to 0.001 by jackhmmer.

Needs: hmmer, SCOPe, Swiss-Prot. jackhmmer's tables stay in --work and are taken from there. Two minutes a query.
Run:   python -m benchmarks.statistics.depth --queries queries.fasta --subjects sprot.fasta --scope scop40.fasta.xz
           --work FOLDER [--out benchmarks/results/depth.txt]
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import swsearch
from benchmarks.support import common
from benchmarks.support.common import Records

THRESHOLD = 0.001
SETTINGS: dict[str, dict[str, Any]] = {
    "context, 0.02": {"preset": "context", "inclusion_evalue": 0.02},
    "default, 0.002": {"preset": "default", "inclusion_evalue": 0.002},
    "default, 0.005": {"preset": "default", "inclusion_evalue": 0.005},
}
HEADS = [
    "query", "jackhmmer", "swsearch", "both", "only jackhmmer: same, other, none", "superfamilies",
    "only swsearch: same, other, none", "superfamilies", "shift (subjects)",
]  # fmt: skip


def search_jackhmmer(query: tuple[str, str], subjects: Path, work: Path) -> dict[str, float]:
    """Return the E-values of what jackhmmer lists in its third iteration, with its defaults."""
    hits = work / f"{query[0]}.tbl"
    if not hits.is_file():
        fasta, part = common.write(work / f"{query[0]}.fasta", [query]), work / f"{query[0]}.part"
        options = ["-N", 3, "--cpu", 1, "--noali", "-o", "/dev/null", "--tblout", part]
        common.command("jackhmmer", *options, fasta, subjects)
        part.rename(hits)
    lines = [line.split() for line in hits.read_text().splitlines() if not line.startswith("#")]
    return {words[0]: float(words[4]) for words in lines}


def search(queries: Records, subjects: Records, **settings: Any) -> list[dict[str, float]]:
    """Return the E-values of the hits of queries."""
    with swsearch.Database.from_records(subjects) as database:
        results = swsearch.search(queries, database, engine="cpu", max_hits=1_000_000, **settings)
        return [{str(hit.subject_id): hit.evalue or 0.0 for hit in result.hits} for result in results]


def label(records: Records, scope: Path) -> dict[str, set[str]]:
    """Return the superfamilies of the domains that each sequence finds."""
    domains = [(title.split(), letters) for title, letters in common.read_titles(scope)]
    names = {words[0]: words[1].rpartition(".")[0] for words, _ in domains}
    found = search(records, [(words[0], letters) for words, letters in domains], evalue=THRESHOLD)
    return {key: {names[hit] for hit in hits} for (key, _), hits in zip(records, found, strict=True)}


def rows_of(listed: dict[str, float]) -> set[str]:
    """Return the subjects that are rows."""
    return {subject for subject, evalue in listed.items() if evalue <= THRESHOLD}


def count_kinds(rows: Collection[str], own: set[str], labels: dict[str, set[str]]) -> tuple[list[int], str]:
    """Return how many rows are same, other and none, and their most frequent superfamilies."""
    kinds = Counter("none" if not labels[row] else "same" if labels[row] & own else "other" for row in rows)
    names = Counter(sorted(name for row in rows for name in labels[row] & own or labels[row]))
    return [kinds[kind] for kind in ("same", "other", "none")], ", ".join(f"{a} {n}" for a, n in names.most_common(3))


def shift(ours: dict[str, float], theirs: dict[str, float]) -> str:
    """Return the median shift of E-values."""
    both = [subject for subject, evalue in theirs.items() if 1e-8 <= evalue <= THRESHOLD and ours.get(subject)]
    return f"{np.median([math.log10(ours[one] / theirs[one]) for one in both]):.1f} ({len(both)})" if both else ""


def cells(counts: npt.NDArray[np.int64], left: str = "", more: str = "") -> list[str]:
    """Return the cells of a row's counts, shape (9,), with the superfamilies of either program's own rows."""
    words = [f"{count:,}" for count in counts.tolist()]
    return [*words[:3], ", ".join(words[3:6]), left, ", ".join(words[6:]), more]


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--scope", type=Path, required=True, help="SCOPe's FASTA, plain or .xz")
    parser.add_argument("--work", type=Path, required=True, metavar="FOLDER", help="where jackhmmer's tables stay")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    queries, subjects = common.read(options.queries, options.first), common.read(options.subjects)
    theirs = [search_jackhmmer(query, options.subjects, options.work) for query in queries]
    ours = {name: search(queries, subjects, evalue=10.0, iterations=3, **each) for name, each in SETTINGS.items()}
    pairs = [pair for every in ours.values() for pair in zip(every, theirs, strict=True)]
    alone = {row for mine, other in pairs for row in rows_of(mine) ^ rows_of(other)}
    labels = label([*queries, *(one for one in subjects if one[0] in alone)], options.scope)
    lines = common.heading(__file__, ["jackhmmer", "numpy"])
    lines.append(f"{options.subjects.name}: {len(subjects):,} subjects, {common.residues(subjects):,} residues")
    for name, every in ours.items():
        rows, sums = [], np.zeros(9, dtype=np.int64)
        for (key, _), mine, other in zip(queries, every, theirs, strict=True):
            a, b = rows_of(mine), rows_of(other)
            (left, names), (more, own_names) = (count_kinds(each, labels[key], labels) for each in (b - a, a - b))
            counts = np.array([len(b), len(a), len(a & b), *left, *more])
            rows.append([key, *cells(counts, names, own_names), shift(mine, other)])
            sums += counts
        lines += ["", f"{name}:", "", *common.table(HEADS, [*rows, ["all", *cells(sums), ""]])]
    common.finish(lines, options.out)


if __name__ == "__main__":
    main()
