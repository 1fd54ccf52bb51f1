"""How `swsearch align` prints a pair: EMBOSS-like blocks, CIGAR, JSON, or the score alone."""

from __future__ import annotations

import json
from collections.abc import Callable

from swsearch.alignment import PairAlignment
from swsearch.inputs import Query
from swsearch.scoring import Mode

WIDTH = 60
"""Alignment columns of a block."""

NAME_WIDTH = 16
"""Longer identifiers are cut in the blocks; the header has them whole."""


def emboss(pair: PairAlignment, query: Query, subject: Query, mode: Mode) -> str:
    """Format as people know it from needle and water: a commented header, then blocks with 1-based coordinates.

    ``|`` marks an identity, ``:`` another pair that scores above 0. Free ends are not shown.
    """
    length = pair.length
    scoring = pair.scoring

    def share(count: int) -> str:
        percent = 100 * count / length if length else 0.0
        return f"{count}/{length} ({percent:.1f}%)"

    header = [
        f"# 1: {query.identifier} ({len(query.codes)} residues)",
        f"# 2: {subject.identifier} ({len(subject.codes)} residues)",
        f"# Mode: {mode}",
        f"# Matrix: {scoring.matrix.name}",
        f"# Gap cost: {scoring.gap_open} + {scoring.gap_extend} a residue",
        f"# Length: {length}",
        f"# Identity:   {share(pair.identities)}",
        f"# Similarity: {share(pair.positives)}",
        f"# Gaps:       {share(pair.gaps)}",
        f"# Score: {pair.score}",
        "",
    ]
    return "\n".join(header + blocks(pair, query.identifier, subject.identifier)) + "\n"


def blocks(pair: PairAlignment, query_name: str, subject_name: str) -> list[str]:
    """Return the lines of the blocks; an alignment of no columns has one line that says so."""
    top, middle, bottom = pair.rows()
    if not top:
        return ["(nothing aligns)", ""]
    marks = "".join("|" if mark not in "+ " else ":" if mark == "+" else " " for mark in middle)
    width = max(len(str(max(len(pair.query), len(pair.subject)))), 6)
    names = [name[:NAME_WIDTH].ljust(NAME_WIDTH) for name in (query_name, subject_name)]
    lines = []
    i, j = pair.query_start, pair.subject_start
    for start in range(0, len(top), WIDTH):
        a, b = top[start : start + WIDTH], bottom[start : start + WIDTH]
        used_a, used_b = len(a) - a.count("-"), len(b) - b.count("-")
        lines += [
            f"{names[0]} {i + (used_a > 0):>{width}} {a} {i + used_a:>{width}}",
            f"{'':{NAME_WIDTH}} {'':{width}} {marks[start : start + WIDTH]}".rstrip(),
            f"{names[1]} {j + (used_b > 0):>{width}} {b} {j + used_b:>{width}}",
            "",
        ]
        i, j = i + used_a, j + used_b
    return lines


def cigar(pair: PairAlignment, query: Query, subject: Query, mode: Mode) -> str:
    """Format as one tab-separated line: ids, score, 1-based coordinates of both, CIGAR."""
    ends = (pair.query_start + 1, pair.query_end, pair.subject_start + 1, pair.subject_end)
    fields = (query.identifier, subject.identifier, pair.score, *ends, pair.cigar_string or "*")
    return "\t".join(map(str, fields)) + "\n"


def as_json(pair: PairAlignment, query: Query, subject: Query, mode: Mode) -> str:
    """Format as one line of JSON; coordinates are 0-based half-open."""
    top, middle, bottom = pair.rows()
    record = {
        "query": {"id": query.identifier, "description": query.description, "length": len(query.codes)},
        "subject": {"id": subject.identifier, "description": subject.description, "length": len(subject.codes)},
        "mode": mode,
        "matrix": pair.scoring.matrix.name,
        "gap_open": pair.scoring.gap_open,
        "gap_extend": pair.scoring.gap_extend,
        "score": pair.score,
        "query_start": pair.query_start,
        "query_end": pair.query_end,
        "subject_start": pair.subject_start,
        "subject_end": pair.subject_end,
        "alignment_length": pair.length,
        "identities": pair.identities,
        "positives": pair.positives,
        "gaps": pair.gaps,
        "cigar": pair.cigar_string,
        "query_row": top,
        "midline": middle,
        "subject_row": bottom,
    }
    return json.dumps(record) + "\n"


def score_only(pair: PairAlignment, query: Query, subject: Query, mode: Mode) -> str:
    """Format as one tab-separated line: ids and score."""
    return f"{query.identifier}\t{subject.identifier}\t{pair.score}\n"


PAIR_FORMATS: dict[str, Callable[[PairAlignment, Query, Query, Mode], str]] = {
    "pairwise": emboss,
    "cigar": cigar,
    "json": as_json,
    "score": score_only,
}
"""Formats of `swsearch align` by the name that ``--outfmt`` takes."""
