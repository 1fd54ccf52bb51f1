"""Find reciprocal best hits of two proteomes, write them as a table, and draw how similar they are.

Run: python examples/reciprocal_best_hits.py a.fasta b.fasta [--output pairs.tsv] [--orthologs orthologs.tsv]
[--figure identity.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import swsearch

FILTERS = {"evalue": 1e-3, "min_query_coverage": 50, "min_subject_coverage": 50}
"""A best hit aligns at least half of both proteins."""


def best_hits(queries: str, subjects: str) -> dict[str, swsearch.Hit]:
    """Return the best hit of each query that has one."""
    results = swsearch.search(queries, subjects, max_hits=1, **FILTERS)
    return {result.query_id: result[0] for result in results if result}


def reciprocal(forward: dict[str, swsearch.Hit], backward: dict[str, swsearch.Hit]) -> list[swsearch.Hit]:
    """Return the hits of one search that the other search confirms."""
    confirmed = {(hit.subject_id, hit.query_id) for hit in backward.values()}
    return [hit for hit in forward.values() if (hit.query_id, hit.subject_id) in confirmed]


def read_pairs(path: str) -> set[tuple[str, str]]:
    """Return the pairs of a file with two tab-separated names a line."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return {(first, second) for first, second in (line.split("\t")[:2] for line in lines)}


def compare(what: str, hits: list[swsearch.Hit], orthologs: set[tuple[str, str]]) -> None:
    """Print how many hits are orthologs, and how many orthologs are hits."""
    right = sum((hit.query_id, hit.subject_id) in orthologs for hit in hits)
    print(f"{what}: {len(hits)} pairs, precision {right / len(hits):.1%}, recall {right / len(orthologs):.1%}")


def identity(hit: swsearch.Hit) -> float:
    """Return the percentage of identical alignment columns."""
    return 100 * hit.identities / hit.pair.length


def write(hits: list[swsearch.Hit], path: str) -> None:
    """Write a table of the pairs, tab-separated, with a header."""
    rows = [("a", "b", "identity", "evalue")]
    rows += [(hit.query_id, hit.subject_id, f"{identity(hit):.1f}", f"{hit.evalue:.2e}") for hit in hits]
    Path(path).write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def draw(hits: list[swsearch.Hit], orthologs: set[tuple[str, str]], path: str) -> None:
    """Draw the identities of the pairs as a histogram, known errors in red."""
    from matplotlib.figure import Figure

    groups: tuple[list[float], list[float]] = ([], [])
    for hit in hits:
        is_wrong = bool(orthologs) and (hit.query_id, hit.subject_id) not in orthologs
        groups[is_wrong].append(identity(hit))
    figure = Figure(figsize=(7, 3), layout="constrained", facecolor="white")
    axes = figure.subplots()
    labels = ["orthologs", "not orthologs"] if orthologs else ["reciprocal best hits", ""]
    axes.hist(groups, range(0, 105, 5), stacked=True, color=["#1f77b4", "#c0392b"], label=labels)
    axes.set(xlabel="Identity of the alignment (%)", ylabel="Reciprocal best hits", xlim=(0, 100))
    axes.spines[["top", "right"]].set_visible(False)
    if orthologs:
        axes.legend(frameon=False)
    figure.savefig(path, dpi=110)


def main(arguments: list[str] | None = None) -> list[swsearch.Hit]:
    parser = argparse.ArgumentParser(description="Reciprocal best hits of two proteomes.")
    parser.add_argument("a", help="FASTA file")
    parser.add_argument("b", help="FASTA file")
    parser.add_argument("--output", help="file for a table of the pairs")
    parser.add_argument("--orthologs", help="known pairs, two names a line, to compare with")
    parser.add_argument("--figure", help="file for a histogram of identities")
    options = parser.parse_args(arguments)
    forward, backward = best_hits(options.a, options.b), best_hits(options.b, options.a)
    pairs = reciprocal(forward, backward)
    orthologs = read_pairs(options.orthologs) if options.orthologs else set()
    if orthologs:
        compare("best hits", list(forward.values()), orthologs)
        compare("reciprocal best hits", pairs, orthologs)
    else:
        print(f"{len(forward)} best hits, {len(pairs)} of them reciprocal")
    if options.output:
        write(pairs, options.output)
    if options.figure:
        draw(pairs, orthologs, options.figure)
    return pairs


if __name__ == "__main__":
    main()
