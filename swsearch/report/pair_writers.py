"""What writers of pairs have in common, and those of text and JSON: EMBOSS-like blocks, CIGAR, or the score alone.

A writer is made for a run and gives the text of its head, of each pair and of its end; it keeps no pair.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.inputs import Query
from swsearch.recurrence import Recurrence
from swsearch.report import headers

WIDTH = 50
"""Alignment columns of a block, as EMBOSS has them."""

PREFIX_WIDTH = 21
"""Name, number and blanks before a block's columns: parsers of EMBOSS's format cut there."""


@dataclass(frozen=True)
class PairRun:
    """What is aligned with what, and how.

    Parameters
    ----------
    queries, subjects : sequence of Query
        Encoded sequences.
    in_order : bool
        First with first, second with second; otherwise all with all, the subjects of a query one after the other.
    recurrence : Recurrence
        What is computed.
    version : str
        swsearch's version.
    """

    queries: Sequence[Query]
    subjects: Sequence[Query]
    in_order: bool
    recurrence: Recurrence
    version: str

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.queries) if self.in_order else len(self.queries) * len(self.subjects)

    @cached_property
    def cells(self) -> int:
        """Query length times subject length, over all pairs."""
        queries = [len(query.codes) for query in self.queries]
        subjects = [len(subject.codes) for subject in self.subjects]
        if self.in_order:
            return sum(m * n for m, n in zip(queries, subjects, strict=True))
        return sum(queries) * sum(subjects)

    def pairs(self) -> Iterator[tuple[Query, Query]]:
        """Yield the pairs in the order of the output."""
        if self.in_order:
            yield from zip(self.queries, self.subjects, strict=True)
        else:
            for query in self.queries:
                for subject in self.subjects:
                    yield query, subject


class PairWriter:
    """Gives the text of a run; this one prints ids and score, one tab-separated line per pair.

    The text may go to a terminal, as that of `swsearch.report.base.Writer`, whose rules for it hold here.

    Parameters
    ----------
    run : PairRun
        What is going to be written.
    """

    needs_alignment = False
    """Whether `write` is given alignments; otherwise it is given scores."""

    def __init__(self, run: PairRun) -> None:
        self.run = run

    def begin(self) -> str:
        """Return what comes before the pairs.

        Raises
        ------
        InputError
            If the format cannot hold what is to be written.
        """
        return ""

    def write(self, found: PairAlignment | int, query: Query, subject: Query) -> str:
        """Return one pair's text."""
        score = self.run.recurrence.scoring.shown(found if isinstance(found, int) else found.score)
        return f"{headers.identifier(query.identifier)}\t{headers.identifier(subject.identifier)}\t{score}\n"

    def end(self) -> str:
        """Return what comes after the pairs."""
        return ""


class AlignmentWriter(PairWriter, ABC):
    """Base of the formats that show alignments."""

    needs_alignment = True

    def write(self, found: PairAlignment | int, query: Query, subject: Query) -> str:
        """See `PairWriter.write`."""
        assert isinstance(found, PairAlignment), "this format was promised an alignment"
        return self.show(found, query, subject)

    @abstractmethod
    def show(self, pair: PairAlignment, query: Query, subject: Query) -> str:
        """Return one alignment's text."""


class CigarWriter(AlignmentWriter):
    """One tab-separated line per pair: ids, score, 1-based coordinates of both, CIGAR."""

    def show(self, pair: PairAlignment, query: Query, subject: Query) -> str:
        """See `AlignmentWriter.show`."""
        places = (pair.query_start + 1, pair.query_end, pair.subject_start + 1, pair.subject_end)
        names = (headers.identifier(one.identifier) for one in (query, subject))
        fields = (*names, pair.scoring.shown(pair.score), *places, pair.cigar_string or "*")
        return "\t".join(map(str, fields)) + "\n"


class JsonWriter(AlignmentWriter):
    """One line of JSON per pair; coordinates are 0-based half-open."""

    def show(self, pair: PairAlignment, query: Query, subject: Query) -> str:
        """See `AlignmentWriter.show`."""
        top, middle, bottom = pair.rows()
        record = {
            "query": self._described(query),
            "subject": self._described(subject),
            "mode": self.run.recurrence.mode,
            "free_ends": self.run.recurrence.ends.names(),
            "matrix": headers.encodable(pair.scoring.matrix.name),
            "gap_open": pair.scoring.shown(pair.scoring.gap_open),
            "gap_extend": pair.scoring.shown(pair.scoring.gap_extend),
            "score": pair.scoring.shown(pair.score),
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

    @staticmethod
    def _described(one: Query) -> dict[str, object]:
        identifier, description = headers.encodable(one.identifier), headers.encodable(one.description)
        return {"id": identifier, "description": description, "length": len(one.codes)}


class BlockWriter(AlignmentWriter):
    """EMBOSS's srspair format, as needle and water print it: a header per pair, then blocks, 1-based.

    ``|`` marks an identity, ``:`` another pair that scores above 0, ``.`` any other pair. Free ends are not shown.
    The gap penalty is given as EMBOSS counts it: what a gap's first residue costs.
    """

    def begin(self) -> str:
        """Return the head that tells programs which format this is."""
        recurrence, rule = self.run.recurrence, "#" * 40
        scoring = recurrence.scoring
        gaps = f"{scoring.shown(scoring.gap_open)} + {scoring.shown(scoring.gap_extend)} a residue"
        lines = [
            rule,
            "# Program: swsearch align",
            f"# Version: {self.run.version}",
            f"# Mode: {recurrence.describe_ends()}",
        ]
        return "\n".join([*lines, f"# Gap cost: {gaps}", "# Align_format: srspair", rule]) + "\n\n"

    def show(self, pair: PairAlignment, query: Query, subject: Query) -> str:
        """See `AlignmentWriter.show`."""
        query, subject = (replace(one, identifier=_word(one.identifier)) for one in (query, subject))
        length, scoring, rule = pair.length, pair.scoring, "#" + "=" * 39
        names = [headers.identifier(one.identifier) for one in (query, subject)]

        def share(label: str, count: int) -> str:
            percent = 100 * count / length if length else 0.0
            return f"# {label}:{count:>{16 - len(label)}}/{length} ({percent:4.1f}%)"

        header = [
            rule,
            "#",
            "# Aligned_sequences: 2",
            f"# 1: {names[0]}",
            f"# 2: {names[1]}",
            f"# Matrix: {headers.one_line(scoring.matrix.name)}",
            f"# Gap_penalty: {scoring.shown(scoring.gap_first):.1f}",
            f"# Extend_penalty: {scoring.shown(scoring.gap_extend):.1f}",
            "#",
            f"# Length: {length}",
            share("Identity", pair.identities),
            share("Similarity", pair.positives),
            share("Gaps", pair.gaps),
            f"# Score: {scoring.shown(pair.score):.1f}",
            "#",
            "#",
            rule,
            "",
        ]
        return "\n".join([*header, *blocks(pair, names[0], names[1]), "", ""])

    def end(self) -> str:
        """See `PairWriter.end`."""
        return ("#" + "-" * 39 + "\n") * 2


def _word(name: str) -> str:
    """Return a name as a block's lines can hold it: they are read as words between blanks."""
    return "".join(c if c.isprintable() and not c.isspace() else "_" for c in name) or "_"


def blocks(pair: PairAlignment, query_name: str, subject_name: str) -> list[str]:
    """Return the lines of the blocks; none for an alignment without columns."""
    top, _, bottom = pair.rows()
    marks = emboss_marks(pair)
    digits = max(len(str(max(len(pair.query), len(pair.subject)))), 6)
    name_width = PREFIX_WIDTH - digits - 2
    names = [name[:name_width].ljust(name_width) for name in (query_name, subject_name)]
    margin = " " * PREFIX_WIDTH
    lines = []
    i, j = pair.query_start, pair.subject_start
    for start in range(0, len(top), WIDTH):
        a, b = top[start : start + WIDTH], bottom[start : start + WIDTH]
        used_a, used_b = len(a) - a.count("-"), len(b) - b.count("-")
        lines += [
            f"{names[0]} {i + (used_a > 0):>{digits}} {a} {i + used_a:>{digits}}",
            f"{margin}{marks[start : start + WIDTH]}",
            f"{names[1]} {j + (used_b > 0):>{digits}} {b} {j + used_b:>{digits}}",
            "",
        ]
        i, j = i + used_a, j + used_b
    return lines


def emboss_marks(pair: PairAlignment) -> str:
    """Return EMBOSS's middle line."""
    a, b = pair.paired_codes
    marks = np.full(pair.length, ord(" "), dtype=np.uint8)
    similar = np.where(pair.scoring.matrix.scores[a, b] > 0, ord(":"), ord("."))
    marks[pair.column_ops == ord("M")] = np.where(pair.same, ord("|"), similar)
    return marks.tobytes().decode("ascii")
