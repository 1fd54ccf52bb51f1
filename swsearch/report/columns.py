"""The columns of tables: for each its name, the name that comment lines give it, and how a hit fills it.

Names and values are BLAST's, so that whatever reads blastp's tables reads these; ``cigar`` and ``subject_index``
are ours.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from swsearch.alignment import PairAlignment, btop_of_rows
from swsearch.errors import OptionError
from swsearch.report import headers, numbers
from swsearch.results import Hit, Hsp, SearchResult

STANDARD = (
    "qaccver", "saccver", "pident", "length", "mismatch", "gapopen",
    "qstart", "qend", "sstart", "send", "evalue", "bitscore",
)  # fmt: skip
"""What ``std`` stands for, and what a table holds when no columns are asked for."""


class Row:
    """A hit as the columns see it: what several columns need is found once, what none needs is not found.

    Parameters
    ----------
    hit : Hit
        What the line is about.
    query_id : str
        The query's identifier, fit to print.
    shown : Hsp, optional
        The alignment of the line; by default the hit's own.
    """

    def __init__(self, hit: Hit, query_id: str, shown: Hsp | None = None) -> None:
        self.hit = hit
        self.query_id = query_id
        self.shown = shown or hit

    @cached_property
    def subject_id(self) -> str:
        """The subject's identifier, fit to print."""
        return headers.identifier(self.hit.subject_id)

    @cached_property
    def titles(self) -> list[str]:
        """The subject's titles; several where NCBI merged identical sequences."""
        return headers.titles(self.hit.subject_id, self.hit.subject_description)

    @cached_property
    def pair(self) -> PairAlignment:
        """The alignment."""
        return self.shown.pair

    @cached_property
    def length(self) -> int:
        """Columns of the alignment."""
        return self.pair.length

    @cached_property
    def gaps(self) -> int:
        """Residues opposite a gap."""
        return self.pair.gaps

    @cached_property
    def identities(self) -> int:
        """Identical pairs."""
        return self.pair.identities

    @cached_property
    def positives(self) -> int:
        """Pairs that are identical or score above 0."""
        return self.pair.positives

    @cached_property
    def query_row(self) -> str:
        """The query's aligned part, gaps as ``-``."""
        return self.pair.query_row()

    @cached_property
    def subject_row(self) -> str:
        """The subject's aligned part, gaps as ``-``."""
        return self.pair.subject_row()

    @cached_property
    def query_span(self) -> tuple[int, int]:
        """First and last aligned residue of the query, counted from 1."""
        return one_based(self.pair.query_start, self.pair.query_end)

    @cached_property
    def subject_span(self) -> tuple[int, int]:
        """First and last aligned residue of the subject, counted from 1."""
        return one_based(self.pair.subject_start, self.pair.subject_end)

    @cached_property
    def coverage(self) -> int:
        """Part of the query between its first and last aligned residue, in per cent."""
        return numbers.whole_percentage(self.pair.query_end - self.pair.query_start, self.hit.query_length)

    @cached_property
    def coverage_by_all(self) -> int:
        """Part of the query that the hit's alignments cover together, in per cent."""
        if not self.hit.may_have_several:
            return self.coverage
        covered = end = 0
        for first, last in sorted((hsp.pair.query_start, hsp.pair.query_end) for hsp in self.hit.hsps):
            covered += max(last - max(first, end), 0)
            end = max(end, last)
        return numbers.whole_percentage(covered, self.hit.query_length)


def one_based(start: int, end: int) -> tuple[int, int]:
    """Turn a 0-based half-open range into a 1-based inclusive one; an empty range into 0, 0."""
    return (start + 1, end) if end > start else (0, 0)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name : str
        As the user asks for it.
    field : str
        As blastp's ``# Fields:`` line calls it.
    text : callable
        Fills the column of a row.
    needs_alignment : bool
        Whether it takes the alignment to do so.
    """

    name: str
    field: str
    text: Callable[[Row], str]
    needs_alignment: bool = True


def _known_columns() -> list[Column]:
    def query_id(row: Row) -> str:
        return row.query_id

    def subject_id(row: Row) -> str:
        return row.subject_id

    # blastp sets accessions apart from identifiers only in databases made with -parse_seqids; others, and so ours,
    # have one identifier for all three.
    return [
        Column("qseqid", "query id", query_id, False),
        Column("qacc", "query acc.", query_id, False),
        Column("qaccver", "query acc.ver", query_id, False),
        Column("sseqid", "subject id", subject_id, False),
        Column("sacc", "subject acc.", subject_id, False),
        Column("saccver", "subject acc.ver", subject_id, False),
        Column("qlen", "query length", lambda row: str(row.hit.query_length), False),
        Column("slen", "subject length", lambda row: str(row.hit.subject_length), False),
        Column("stitle", "subject title", lambda row: row.titles[0], False),
        Column("salltitles", "subject titles", lambda row: "<>".join(row.titles), False),
        Column("subject_index", "subject index", lambda row: str(row.hit.subject_index), False),
        Column("score", "score", lambda row: str(row.shown.score), False),
        Column("bitscore", "bit score", lambda row: numbers.bit_score_text(row.shown.bit_score), False),
        Column("evalue", "evalue", lambda row: numbers.evalue_table(row.shown.evalue), False),
        Column("qstart", "q. start", lambda row: str(row.query_span[0])),
        Column("qend", "q. end", lambda row: str(row.query_span[1])),
        Column("sstart", "s. start", lambda row: str(row.subject_span[0])),
        Column("send", "s. end", lambda row: str(row.subject_span[1])),
        Column("qseq", "query seq", lambda row: row.query_row or headers.MISSING),
        Column("sseq", "subject seq", lambda row: row.subject_row or headers.MISSING),
        Column("length", "alignment length", lambda row: str(row.length)),
        Column("pident", "% identity", lambda row: numbers.percentage(row.identities, row.length, 3)),
        Column("nident", "identical", lambda row: str(row.identities)),
        Column("mismatch", "mismatches", lambda row: str(row.length - row.identities - row.gaps)),
        Column("positive", "positives", lambda row: str(row.positives)),
        Column("ppos", "% positives", lambda row: numbers.percentage(row.positives, row.length, 2)),
        Column("gapopen", "gap opens", lambda row: str(row.pair.gap_openings)),
        Column("gaps", "gaps", lambda row: str(row.gaps)),
        Column("btop", "BTOP", lambda row: btop_of_rows(row.query_row, row.subject_row) or headers.MISSING),
        Column("cigar", "cigar", lambda row: row.pair.cigar_string or headers.MISSING),
        Column("qcovs", "% query coverage per subject", lambda row: str(row.coverage_by_all)),
        Column("qcovhsp", "% query coverage per hsp", lambda row: str(row.coverage)),
    ]


COLUMNS: dict[str, Column] = {column.name: column for column in _known_columns()}
"""Every column by name."""


def choose_columns(names: Iterable[str], outfmt: str) -> list[Column]:
    """Find columns by name; ``std`` stands for twelve of them, none at all means ``std``.

    A column that is named again is not printed again, as in blastp.

    Raises
    ------
    OptionError
        If there is no such column.
    """
    chosen: dict[str, Column] = {}
    for name in list(names) or ["std"]:
        if name == "std":
            chosen.update({each: COLUMNS[each] for each in STANDARD if each not in chosen})
        elif name in COLUMNS:
            chosen.setdefault(name, COLUMNS[name])
        else:
            close = difflib.get_close_matches(name.lower(), [*COLUMNS, "std"], n=3)
            remedy = f"did you mean {' or '.join(close)}?" if close else ""
            raise OptionError("outfmt", outfmt, f"columns out of std, {', '.join(COLUMNS)}, not {name!r}", remedy)
    return list(chosen.values())


def table_rows(result: SearchResult, columns: list[Column]) -> Iterable[list[str]]:
    """Fill the columns for each alignment of each hit of a result, one at a time."""
    query_id = headers.identifier(result.query_id)
    texts = [column.text for column in columns]
    for hit in result.hits:
        # a hit's own alignment is not looked for where no column needs it
        for shown in hit.hsps if hit.may_have_several else (None,):
            row = Row(hit, query_id, shown)
            yield [text(row) for text in texts]
