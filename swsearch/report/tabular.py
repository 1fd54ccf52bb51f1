"""BLAST's tables: 6 (tab-separated), 7 (with comment lines) and 10 (comma-separated).

Columns have BLAST's names and values, so that programs that read blastp's tables read these. swsearch adds ``cigar``,
``subject_index``, ``zscore``, ``evalue_published`` and ``iteration``; ``qtitle`` and ``scovhsp`` are diamond's.
Values for translated DNA are those of blastx, tblastn and tblastx.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

import numpy as np

from swsearch.blocks import FloatArray, IntArray
from swsearch.errors import OptionError
from swsearch.report import base, headers
from swsearch.report.base import Writer, unknown_column
from swsearch.results import SearchResult
from swsearch.results.fields import HIT_FIELDS
from swsearch.results.hit_batches import AlignedHitBatch, HitBatch, aligned_batches, hit_batches
from swsearch.run_info import RunInfo
from swsearch.statistics.null_model import FittedStatistics
from swsearch.translation.genetic_codes import CODON

STANDARD = (
    "qaccver", "saccver", "pident", "length", "mismatch", "gapopen",
    "qstart", "qend", "sstart", "send", "evalue", "bitscore",
)  # fmt: skip
"""Columns of ``std``, and of a table if ``--outfmt`` names no columns."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name : str
        Name in ``--outfmt``.
    title : str
        Name in blastp's ``# Fields:`` line.
    values : callable
        Returns the value of each line of a `HitBatch`. If the column needs alignments, it takes an `AlignedHitBatch`.
    form : str
        How the values are written.
    needs_alignment : bool
        Whether the values need alignments.
    """

    name: str
    title: str
    values: Callable[[Any], base.Values]
    form: base.Form = "string"
    needs_alignment: bool = True


_FLOAT_FORMS: dict[str, base.Form] = {
    "bit_score": "bit_score", "z_score": ".1f", "evalue": "evalue", "evalue_published": "evalue"
}  # fmt: skip
"""Forms of numbers, by field."""


def _field_column(name: str) -> Column:
    """Return the column of a field."""
    field = HIT_FIELDS[name]
    form = _FLOAT_FORMS.get(name, field.type)
    return Column(field.column, field.title, field.line_values, form, field.needs_alignment)


def _hit_column(name: str, title: str, texts: Callable[[HitBatch], list[str]]) -> Column:
    """Return a column with the same text for all alignments of a hit."""
    return Column(name, title, lambda batch: batch.of_lines(texts(batch)), needs_alignment=False)


def _query_column(name: str, title: str, text: Callable[[SearchResult], str]) -> Column:
    """Return a column with the same text for all hits of a query."""
    return Column(name, title, lambda batch: [text(batch.result)] * len(batch), needs_alignment=False)


def _taxa_column(name: str, title: str, attribute: str, **kwargs: Any) -> Column:
    """Return a column with an attribute of each hit's taxa."""
    return _hit_column(name, title, lambda batch: batch.taxon_texts(attribute, **kwargs))


def _query_accession(result: SearchResult, with_version: bool) -> str:
    return headers.accessions([headers.identifier(result.query_id)], with_version)[0]


def _entry_names(batch: HitBatch) -> list[list[str]]:
    """Return the identifiers of the headers that each hit's header was merged from."""
    return [[name for name, _ in headers.entries_of(titles)] for titles in headers.subject_titles(batch)]


def _percentages(batch: AlignedHitBatch, field: str) -> FloatArray:
    """Return the percentage of each alignment's columns that a field counts."""
    return base.percentages(HIT_FIELDS[field].values(batch), batch.alignments.length)


def _frames(batch: AlignedHitBatch, side: str) -> IntArray:
    """Return the frame of one side of each alignment; of proteins, blastp writes 1 and the other programs 0."""
    if batch.result.program == "blastp":
        return np.ones(len(batch), dtype=np.int64)
    frames: IntArray = HIT_FIELDS[f"{side}_frame"].values(batch)
    return frames


def _both_frames(batch: AlignedHitBatch) -> list[str]:
    pairs = zip(_frames(batch, "query").tolist(), _frames(batch, "subject").tolist(), strict=True)
    return [f"{query}/{subject}" for query, subject in pairs]


def _query_coverages(batch: AlignedHitBatch) -> IntArray:
    """Return the percentage of the query between each alignment's first and last residue.

    Of DNA, blastx divides residues by nucleotides, so that a whole frame covers 33%; this does the same.
    """
    begins, ends = batch.query_spans
    residues = (ends - begins) // (CODON if batch.result.has_query_frames else 1)
    return base.whole_percentages(residues, np.full(len(batch), batch.result.query_length))


def _joint_query_coverages(batch: AlignedHitBatch) -> IntArray:
    """Return the percentage of the query that all alignments of each hit cover together."""
    if batch.is_single and not batch.result.has_query_frames:
        return _query_coverages(batch)
    begins, ends = batch.query_spans
    spans = batch.by_hit(list(zip(begins.tolist(), ends.tolist(), strict=True)))
    covered = np.array([*map(_n_covered, spans)])[batch.hit_of_line]
    return base.whole_percentages(covered, np.full(len(batch), batch.result.query_length))


def _n_covered(spans: list[tuple[int, int]]) -> int:
    covered = reached = 0
    for start, end in sorted(spans):
        covered += max(end, reached) - max(start, reached)
        reached = max(end, reached)
    return covered


def _subject_coverages(batch: AlignedHitBatch) -> IntArray:
    begins, ends = batch.subject_spans
    return base.whole_percentages(ends - begins, batch.subject_lengths[batch.hit_of_line])


# accessions are those that blastp prints of databases made with -parse_seqids
_BLAST_COLUMNS = (
    _query_column("qseqid", "query id", lambda of: headers.identifier(of.query_id)),
    _query_column("qacc", "query acc.", partial(_query_accession, with_version=False)),
    _query_column("qaccver", "query acc.ver", partial(_query_accession, with_version=True)),
    _hit_column("sseqid", "subject id", headers.subject_names),
    _hit_column("sacc", "subject acc.", lambda of: headers.accessions(headers.subject_names(of), False)),
    _hit_column("saccver", "subject acc.ver", lambda of: headers.accessions(headers.subject_names(of), True)),
    _query_column("qtitle", "query title", headers.query_title),
    _hit_column("sallseqid", "subject ids", lambda of: [";".join(names) for names in _entry_names(of)]),
    _hit_column(
        "sallacc",
        "subject accs.",
        lambda of: [";".join(headers.accessions(names, False)) for names in _entry_names(of)],
    ),
    _field_column("query_length"),
    _field_column("subject_length"),
    _hit_column("stitle", "subject title", lambda of: [titles[0] for titles in headers.subject_titles(of)]),
    _hit_column(
        "salltitles", "subject titles", lambda of: ["<>".join(titles) for titles in headers.subject_titles(of)]
    ),
    _taxa_column("staxid", "subject tax id", "taxid", count=1),
    _taxa_column("staxids", "subject tax ids", "taxid", missing="0"),
    _taxa_column("ssciname", "subject sci name", "scientific", count=1),
    _taxa_column("sscinames", "subject sci names", "scientific"),
    _taxa_column("scomname", "subject com names", "common", count=1),
    _taxa_column("scomnames", "subject com names", "common"),
    _taxa_column("sblastname", "subject blast name", "blast", count=1),
    _taxa_column("sblastnames", "subject blast names", "blast"),
    _taxa_column("sskingdom", "subject super kingdom", "kingdom", count=1),
    _taxa_column("sskingdoms", "subject super kingdoms", "kingdom"),
    *map(
        _field_column, ("subject_index", "iteration", "score", "bit_score", "evalue", "z_score", "evalue_published")
    ),
    Column("qstart", "q. start", lambda of: of.query_ends[0], "int64"),
    Column("qend", "q. end", lambda of: of.query_ends[1], "int64"),
    Column("sstart", "s. start", lambda of: of.subject_ends[0], "int64"),
    Column("send", "s. end", lambda of: of.subject_ends[1], "int64"),
    *map(_field_column, ("query_row", "subject_row", "alignment_length")),
    Column("pident", "% identity", partial(_percentages, field="identities"), ".3f"),
    *map(_field_column, ("identities", "mismatches", "positives")),
    Column("ppos", "% positives", partial(_percentages, field="positives"), ".2f"),
    *map(_field_column, ("gap_openings", "gaps")),
    Column("btop", "BTOP", lambda of: of.btops),
    Column("qframe", "query frame", partial(_frames, side="query"), "int64"),
    Column("sframe", "sbjct frame", partial(_frames, side="subject"), "int64"),
    Column("frames", "query/sbjct frames", _both_frames),
    _query_column("sstrand", "subject strand", lambda _: base.MISSING),
    _field_column("cigar"),
    Column("qcovs", "% query coverage per subject", _joint_query_coverages, "int64"),
    Column("qcovhsp", "% query coverage per hsp", _query_coverages, "int64"),
    Column("scovhsp", "% subject coverage per hsp", _subject_coverages, "int64"),
)

_FIELD_COLUMNS = [_field_column(field.name) for field in HIT_FIELDS.values() if field.column]

COLUMNS: dict[str, Column] = {column.name: column for column in (*_BLAST_COLUMNS, *_FIELD_COLUMNS)}
"""Every column by name; those of fields that are not placed among BLAST's follow them."""

STANDARD_COLUMNS = COLUMNS | {
    "qaccver": _query_column("qaccver", "query acc.ver", lambda of: headers.identifier(of.query_id)),
    "saccver": _hit_column("saccver", "subject acc.ver", headers.subject_names),
}
"""Columns as ``std`` has them: with whole identifiers, as blastp prints them of databases made without -parse_seqids,
so that a table can be joined with its FASTA files."""

_NO_GI = "NCBI no longer uses GI numbers; choose sseqid or qseqid"

REFUSED: dict[str, str] = {
    **dict.fromkeys(("qgi", "sgi", "sallgi"), _NO_GI),
    "qcovus": "only blastn has it; choose qcovs",
}
"""Columns of blastp 2.12 without values for proteins in FASTA, and why; blastp fills them with 0, 1 or N/A."""


def choose_columns(names: Iterable[str], outfmt: str) -> list[Column]:
    """Find columns by name; ``std`` means the twelve of `STANDARD`, no name at all means ``std``.

    As in blastp, a column that is named twice is printed once.
    """
    chosen: dict[str, Column] = {}
    for name in list(names) or ["std"]:
        if name == "std":
            chosen.update({each: STANDARD_COLUMNS[each] for each in STANDARD if each not in chosen})
        elif name in COLUMNS:
            chosen.setdefault(name, COLUMNS[name])
        elif name.lower() in REFUSED:
            raise OptionError("outfmt", outfmt, f"no column {name}", REFUSED[name.lower()])
        elif name.startswith("delim="):
            raise OptionError("outfmt", outfmt, "no delim=", "6 and 7 are tab-separated, 10 is comma-separated")
        else:
            raise unknown_column(name, ["std", *COLUMNS], outfmt)
    return list(chosen.values())


class TabularWriter(Writer):
    """One line per alignment, columns separated by tabs; coordinates count from 1 and include the end.

    With `has_header` the first line has the columns' names, as they are asked for. If no column needs an alignment,
    none is found, and a hit has one line, unless hits may have several alignments.

    Parameters
    ----------
    stream : TextIO
        Where to write.
    columns : list of Column
        What to write of each alignment.
    """

    has_columns = True
    takes_header = True
    _separator = "\t"

    def __init__(self, stream: IO[Any], columns: list[Column]) -> None:
        super().__init__(stream)
        self._columns = columns
        self.needs_alignments = any(column.needs_alignment for column in columns)

    @classmethod
    def create(cls, stream: IO[Any], columns: list[str], outfmt: str) -> TabularWriter:
        """Make a writer; raise `OptionError` if ``--outfmt`` names a column that does not exist."""
        return cls(stream, choose_columns(columns, outfmt))

    def begin(self, run: RunInfo) -> None:
        """Write the header line."""
        super().begin(run)
        if self.has_header:
            self._write_columns(([column.name], "string") for column in self._columns)

    def write(self, result: SearchResult) -> None:
        """Write the lines of one query."""
        is_aligned = result.may_have_more_hsps or self.needs_alignments
        for batch in aligned_batches(result) if is_aligned else hit_batches(result):
            self._write_columns((column.values(batch), column.form) for column in self._columns)

    def _write_columns(self, columns: Iterable[tuple[base.Values, base.Form]]) -> None:
        self._stream.write(base.write_table(columns, self._separator))


class CommaSeparatedWriter(TabularWriter):
    """One line per alignment, columns separated by commas; unlike blastp's, a value that holds a comma is quoted."""

    _separator = ","


class CommentedWriter(TabularWriter):
    """A table with comment lines before each query's hits, which name query, database and columns."""

    takes_header = False
    _queries = 0

    def write(self, result: SearchResult) -> None:
        """Write the comments and lines of one query."""
        self._queries += 1
        self._write_lines(*(f"# {line}" for line in self._comments(result)))
        super().write(result)

    def _comments(self, result: SearchResult) -> Iterator[str]:
        """Yield blastp's comments in its words, by which Bio.SearchIO and other readers know them."""
        yield f"swsearch {self._run.version}"
        yield f"Query: {headers.one_line(f'{result.query_id} {result.query_description}').rstrip()}"
        yield f"Database: {headers.one_line(result.database_name)}"
        if result.options:
            yield f"Options: {headers.describe_options(result.options)}"
        if isinstance(result.statistics, FittedStatistics):
            yield f"Note: E-values: {result.statistics.name}"
            yield f"Note: fit: {result.statistics.describe()}"
        elif note := headers.statistics_note(result):
            yield f"Note: {note}"
        if result.hits:  # blastp names no columns without hits, and SearchIO relies on that
            yield f"Fields: {', '.join(column.title for column in self._columns)}"
        # blastp counts lines too
        several = result.may_have_more_hsps
        yield f"{sum(len(hit.hsps) for hit in result.hits) if several else len(result.hits)} hits found"

    def end(self) -> None:
        """Write the number of queries."""
        self._write_lines(f"# swsearch processed {self._queries} queries")
