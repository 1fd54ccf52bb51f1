"""The columns of tables: for each its name, the name that comment lines give it, and how a hit fills it.

Names and values are BLAST's, so that whatever reads blastp's tables reads these; ``cigar``, ``subject_index``,
``zscore`` and ``evalue_published`` are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from swsearch.alignment import PairAlignment, btop_of_rows
from swsearch.errors import OptionError
from swsearch.report import blast_terms, headers, numbers
from swsearch.report.base import did_you_mean
from swsearch.results import Hit, Hsp, SearchResult

STANDARD = (
    "qaccver", "saccver", "pident", "length", "mismatch", "gapopen",
    "qstart", "qend", "sstart", "send", "evalue", "bitscore",
)  # fmt: skip
"""What ``std`` stands for, and what a table holds when no columns are asked for."""


class Row:
    """A line of a table as the columns see it: what several columns need is worked out once, what none needs is not.

    Parameters
    ----------
    hit : Hit
        The subject.
    hsp : Hsp or None
        The alignment that the line is about; None if no column asks for one.
    query : tuple of (str, str)
        The query's identifier and its whole header, fit to print.
    """

    def __init__(self, hit: Hit, hsp: Hsp | None, query: tuple[str, str]) -> None:
        self.hit = hit
        self.scored = hsp or hit
        self._hsp = hsp
        self.query_id, self.query_title = query

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
        return self._hsp.pair if self._hsp else self.hit.pair

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
        """Part of the query between the alignment's first and last residue, in per cent."""
        return numbers.whole_percentage(self.pair.query_end - self.pair.query_start, self.hit.query_length)

    @cached_property
    def coverage_by_all(self) -> int:
        """Part of the query that all alignments with the subject cover together, in per cent."""
        if not self.hit.may_have_several:
            return self.coverage
        covered = reached = 0
        for start, end in sorted((hsp.pair.query_start, hsp.pair.query_end) for hsp in self.hit.hsps):
            covered += max(end, reached) - max(start, reached)
            reached = max(end, reached)
        return numbers.whole_percentage(covered, self.hit.query_length)

    @cached_property
    def subject_coverage(self) -> int:
        """Part of the subject between the alignment's first and last residue, in per cent."""
        return numbers.whole_percentage(self.pair.subject_end - self.pair.subject_start, self.hit.subject_length)


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

    def all_subject_ids(row: Row) -> str:
        return ";".join(headers.identifiers(row.hit.subject_id, row.hit.subject_description))

    # blastp sets accessions apart from identifiers only in databases made with -parse_seqids; others, and so ours,
    # have one identifier for all three. Names are blastp's; qtitle and scovhsp are diamond's.
    return [
        Column("qseqid", "query id", query_id, False),
        Column("qacc", "query acc.", query_id, False),
        Column("qaccver", "query acc.ver", query_id, False),
        Column("sseqid", "subject id", subject_id, False),
        Column("sacc", "subject acc.", subject_id, False),
        Column("saccver", "subject acc.ver", subject_id, False),
        Column("qtitle", "query title", lambda row: row.query_title, False),
        Column("sallseqid", "subject ids", all_subject_ids, False),
        Column("sallacc", "subject accs.", all_subject_ids, False),
        Column("qlen", "query length", lambda row: str(row.hit.query_length), False),
        Column("slen", "subject length", lambda row: str(row.hit.subject_length), False),
        Column("stitle", "subject title", lambda row: row.titles[0], False),
        Column("salltitles", "subject titles", lambda row: "<>".join(row.titles), False),
        Column("subject_index", "subject index", lambda row: str(row.hit.subject_index), False),
        Column("score", "score", lambda row: str(row.scored.score), False),
        Column("bitscore", "bit score", lambda row: numbers.bit_score_text(row.scored.bit_score), False),
        Column("evalue", "evalue", lambda row: numbers.evalue_table(row.scored.evalue), False),
        Column("zscore", "z-score", lambda row: numbers.z_score_text(row.scored.z_score), False),
        Column(
            "evalue_published",
            "published evalue",
            lambda row: numbers.evalue_table(row.scored.evalue_published),
            False,
        ),
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
        Column("scovhsp", "% subject coverage per hsp", lambda row: str(row.subject_coverage)),
    ]


COLUMNS: dict[str, Column] = {column.name: column for column in _known_columns()}
"""Every column by name."""

_NO_TAXA = "a database knows no taxonomy; stitle has what the header says"
_NO_GI = "NCBI has given up GI numbers; sseqid and qseqid have identifiers"
_NO_FRAME = "proteins have no frame and no strand"

REFUSED: dict[str, str] = {
    **dict.fromkeys(("qgi", "sgi", "sallgi"), _NO_GI),
    **dict.fromkeys(("frames", "qframe", "sframe", "sstrand"), _NO_FRAME),
    **dict.fromkeys(("staxid", "ssciname", "scomname", "sblastname", "sskingdom"), _NO_TAXA),
    **dict.fromkeys(("staxids", "sscinames", "scomnames", "sblastnames", "sskingdoms"), _NO_TAXA),
    "qcovus": "it is blastn's alone; qcovs has a protein's coverage",
}
"""The columns of blastp 2.12 that proteins in FASTA have nothing for, and why; blastp fills them with 0, 1 or N/A."""


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
        elif name.lower() in REFUSED:
            raise OptionError("outfmt", outfmt, f"no column {name}", REFUSED[name.lower()])
        elif name.startswith("delim="):
            raise OptionError("outfmt", outfmt, "no delim=", "6 and 7 are separated by tabs, 10 by commas")
        else:
            remedy = did_you_mean(name.lower(), [*COLUMNS, "std"], 3)
            raise OptionError("outfmt", outfmt, f"columns out of std, {', '.join(COLUMNS)}, not {name!r}", remedy)
    return list(chosen.values())


def table_rows(result: SearchResult, columns: list[Column]) -> Iterable[list[str]]:
    """Fill the columns for each alignment of a result, one hit at a time."""
    query = (
        headers.identifier(result.query_id),
        blast_terms.query_title(result) or headers.MISSING,
    )
    texts = [column.text for column in columns]
    for hit in result.hits:
        # a hit's own alignment is not looked for where no column needs it
        for hsp in hit.hsps if hit.may_have_several else (None,):
            row = Row(hit, hsp, query)
            yield [text(row) for text in texts]
