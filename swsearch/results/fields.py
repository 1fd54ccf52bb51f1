"""Table of fields: all values of hits and alignments, by format.

Tables (6, 7, 10), BLAST's XML and JSON (5, 15), JSON lines, Parquet, Arrow and `SearchResult.to_columns` read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from swsearch.results.hit_batches import HitBatch
from swsearch.run_info import Program

FieldType = Literal["int64", "float64", "string"]

FormatValues = Callable[[Any], Sequence[str]]
"""Writes the values of a field, shape (n,), as a format has them."""

INT: FieldType = "int64"
FLOAT: FieldType = "float64"
TEXT: FieldType = "string"


@dataclass(frozen=True)
class Field:
    """A field of a hit or of an alignment.

    Parameters
    ----------
    name : str
        Name in Python, JSON lines, Parquet and Arrow.
    type : {"int64", "float64", "string"}
        Type of the values, as `pyarrow` names it. A float is NaN where there is no number.
    values : callable
        Returns an array or a list of a `HitBatch`: a value for each line, or as ``per`` says. If the field needs
        alignments, it takes an `AlignedHitBatch`.
    column, title : str
        Name in tables (6, 7, 10), and in the ``# Fields:`` line of 7; empty if tables do not have it.
    hsp : str
        Name in BLAST's JSON (15), and with ``-`` for ``_`` in its XML (5); empty if they do not have it.
    shown_in : str
        Where it is under its own name: ``python`` (`SearchResult.to_columns`), ``json`` (JSON lines), ``typed``
        (Parquet and Arrow), ``asked`` (these on request).
    per : {"line", "hit", "query"}
        What has one value.
    needs_alignment : bool
        Whether the values need alignments.
    programs : tuple of str
        Searches with values, where others have none.
    """

    name: str
    type: FieldType
    values: Callable[[Any], Any]
    column: str = ""
    title: str = ""
    hsp: str = ""
    shown_in: str = "python json typed"
    per: Literal["line", "hit", "query"] = "line"
    needs_alignment: bool = True
    programs: tuple[Program, ...] = get_args(Program)

    def line_values(self, batch: HitBatch) -> Any:
        """Return the value of each line of a batch, as an array of shape (n,) or a list of texts."""
        values = self.values(batch)
        if self.per == "line":
            return values
        if self.per == "query":
            return [values] * len(batch) if self.type == TEXT else np.full(len(batch), values)
        return batch.of_lines(values) if self.type == TEXT else values[batch.hit_of_line]

    def cells(self, batch: HitBatch, floats: FormatValues, texts: FormatValues) -> Sequence[str | int]:
        """Return the value of each line of a batch, floats and texts as a format writes them."""
        values = self.line_values(batch)
        if self.type == INT:
            integers: list[int] = values.tolist()
            return integers
        return floats(values) if self.type == FLOAT else texts(values)


_query_field = partial(Field, shown_in="python typed", per="query", needs_alignment=False)
_hit_field = partial(Field, shown_in="python typed", per="hit", needs_alignment=False)
_score_field = partial(Field, needs_alignment=False)
_hsp_field = partial(Field, shown_in="")

HIT_FIELDS: dict[str, Field] = {field.name: field for field in (
    _query_field("query_index", INT, lambda of: of.query_index, shown_in="typed"),
    _query_field("query_id", TEXT, lambda of: of.result.query_id),
    _query_field("query_description", TEXT, lambda of: of.result.query_description, shown_in="typed"),
    _query_field("query_length", INT, lambda of: of.result.query_length, "qlen", "query length"),
    Field("hit_index", INT, lambda of: of.hit_of_line + of.first, shown_in="typed", needs_alignment=False),
    _hit_field("subject_id", TEXT, lambda of: of.identifiers),
    _hit_field("subject_description", TEXT, lambda of: of.descriptions),
    _hit_field("subject_taxids", TEXT, lambda of: of.taxon_texts("taxid", missing="0"), shown_in="asked"),
    _hit_field("subject_scientific_names", TEXT, lambda of: of.taxon_texts("scientific"), shown_in="asked"),
    _hit_field("subject_index", INT, lambda of: of.subjects, "subject_index", "subject index"),
    _hit_field("subject_length", INT, lambda of: of.subject_lengths, "slen", "subject length"),
    _hit_field("iteration", INT, lambda of: of.iterations, "iteration", "iteration", shown_in="asked"),
    Field("alignment_index", INT, lambda of: of.places, shown_in="typed"),
    _hsp_field("alignment_number", INT, lambda of: of.places + 1, hsp="num"),
    _score_field("score", INT, lambda of: of.scores, "score", "score", "score"),
    _score_field("bit_score", FLOAT, lambda of: of.statistics.bit_scores, "bitscore", "bit score", "bit_score"),
    _score_field("evalue", FLOAT, lambda of: of.statistics.evalues, "evalue", "evalue", "evalue"),
    _score_field("z_score", FLOAT, lambda of: of.statistics.z_scores, "zscore", "z-score"),
    _score_field(
        "evalue_published", FLOAT, lambda of: of.statistics.evalues_published, "evalue_published", "published evalue"
    ),
    Field("query_start", INT, lambda of: of.query_spans[0]),
    _hsp_field("query_from", INT, lambda of: of.query_spans[0] + 1, hsp="query_from"),
    Field("query_end", INT, lambda of: of.query_spans[1], hsp="query_to"),
    Field("subject_start", INT, lambda of: of.subject_spans[0]),
    _hsp_field("subject_from", INT, lambda of: of.subject_spans[0] + 1, hsp="hit_from"),
    Field("subject_end", INT, lambda of: of.subject_spans[1], hsp="hit_to"),
    Field("query_frame", INT, lambda of: of.query_frames, hsp="query_frame", programs=("blastx", "tblastx")),
    Field("subject_frame", INT, lambda of: of.subject_frames, hsp="hit_frame", programs=("tblastn", "tblastx")),
    Field("alignment_length", INT, lambda of: of.alignments.length, "length", "alignment length", "align_len"),
    Field("identities", INT, lambda of: of.alignments.identities, "nident", "identical", "identity"),
    Field("positives", INT, lambda of: of.alignments.positives, "positive", "positives", "positive"),
    Field("mismatches", INT, lambda of: of.mismatches, "mismatch", "mismatches", shown_in="json typed"),
    Field("gaps", INT, lambda of: of.alignments.gaps, "gaps", "gaps", "gaps"),
    Field("gap_openings", INT, lambda of: of.alignments.gap_openings, "gapopen", "gap opens"),
    Field("cigar", TEXT, lambda of: of.alignments.cigar_strings(), "cigar", "cigar"),
    Field("query_row", TEXT, lambda of: of.rows[0], "qseq", "query seq", "qseq", shown_in="json asked"),
    Field("subject_row", TEXT, lambda of: of.rows[2], "sseq", "subject seq", "hseq", shown_in="json asked"),
    Field("midline", TEXT, lambda of: of.rows[1], hsp="midline", shown_in="json"),
)}  # fmt: skip
"""Every field by name, in the order of typed tables and JSON lines."""


def fields_in(place: str, program: Program) -> list[Field]:
    """Return the fields that a format has under their own names; see `Field.shown_in`."""
    return [field for field in HIT_FIELDS.values() if place in field.shown_in.split() and program in field.programs]
