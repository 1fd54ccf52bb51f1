"""JSON lines: one object per query, each on a line of its own, for programs."""

from __future__ import annotations

import json
from typing import Any, TextIO

from swsearch.report import headers, numbers
from swsearch.report.base import Writer
from swsearch.results import Hit, Hsp, SearchResult
from swsearch.run_info import RunInfo
from swsearch.statistics.fitted import FittedStatistics


class JsonLinesWriter(Writer):
    """One JSON object per query, one line per object.

    An object holds ``query`` (id, description, length), ``database`` (name, subjects, residues), ``parameters``
    (matrix, gap_open, gap_extend, mode, statistics, effective_residues; filters, masks and the like where they were
    asked for, named as in Python) and ``hits``, best first. Coordinates of a
    hit (query_start, query_end, subject_start, subject_end) and ``subject.index`` count from 0, and ends are not
    included: ``query_sequence[query_start:query_end]`` is what was aligned. E-values and bit scores have full
    precision; they and ``statistics`` are null where there are no statistics. Where statistics were fitted,
    ``parameters`` has ``fit`` too (distribution, subjects, outliers, by_length: mean and standard_deviation of scores
    at the lengths between which they are interpolated; in local mode lambda and k), a hit has ``z_score``, and
    ``evalue_published`` where there are published statistics too; bit scores are null outside local mode. Where there
    are no statistics, ``no_statistics`` says why. Where several alignments per hit were asked for,
    ``further_alignments`` of a hit holds those after the best, which is the hit's own, with the same keys. Headers
    are as they were, merged ones (0x01) included; bytes that were not UTF-8 are U+FFFD. All is ASCII, by escapes.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        # ASCII, because readers that split lines as Python does would split at U+2028 or U+0085 too.
        self._encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode

    def begin(self, run: RunInfo) -> None:
        """Write nothing: each line says all of it."""

    def write(self, result: SearchResult) -> None:
        """Write the object of one query."""
        self._stream.write(self._encode(_result_object(result)) + "\n")

    def end(self) -> None:
        """Write nothing."""


def _result_object(result: SearchResult) -> dict[str, Any]:
    scoring, statistics = result.scoring, result.statistics
    fit: dict[str, Any] = {}
    if isinstance(statistics, FittedStatistics):
        fit["fit"] = statistics.parameters()
    elif result.no_statistics:
        fit["no_statistics"] = headers.encodable(result.no_statistics)
    return {
        "query": {
            "id": headers.encodable(result.query_id),
            "description": headers.encodable(result.query_description),
            "length": int(result.query_length),
        },
        "database": {
            "name": headers.encodable(result.database_name),
            "subjects": int(result.database_subjects),
            "residues": int(result.database_residues),
        },
        "parameters": {
            "matrix": headers.encodable(scoring.matrix.name),
            "gap_open": int(scoring.gap_open),
            "gap_extend": int(scoring.gap_extend),
            "mode": result.mode,
            "statistics": statistics.name if statistics else None,
            "effective_residues": int(result.effective_residues),
            **result.asked,
            **fit,
        },
        "hits": [_hit_object(hit) for hit in result.hits],
    }


def _hit_object(hit: Hit) -> dict[str, Any]:
    best, *further = [_alignment_object(hsp) for hsp in hit.hsps]
    return {
        "subject": {
            "id": headers.encodable(hit.subject_id),
            "description": headers.encodable(hit.subject_description),
            "length": int(hit.subject_length),
            "index": int(hit.subject_index),
        },
        **best,
        **({"further_alignments": further} if hit.may_have_several else {}),
    }


def _alignment_object(hsp: Hsp) -> dict[str, Any]:
    pair = hsp.pair
    length, identities, gaps = pair.length, pair.identities, pair.gaps
    query_row, midline, subject_row = pair.rows()
    return {
        "score": int(hsp.score),
        "bit_score": numbers.finite(hsp.bit_score),
        "evalue": numbers.finite(hsp.evalue),
        **({} if hsp.z_score is None else {"z_score": numbers.finite(hsp.z_score)}),
        **({} if hsp.evalue_published is None else {"evalue_published": numbers.finite(hsp.evalue_published)}),
        "query_start": int(pair.query_start),
        "query_end": int(pair.query_end),
        "subject_start": int(pair.subject_start),
        "subject_end": int(pair.subject_end),
        "alignment_length": int(length),
        "identities": identities,
        "positives": pair.positives,
        "mismatches": int(length - identities - gaps),
        "gaps": int(gaps),
        "gap_openings": pair.gap_openings,
        "cigar": pair.cigar_string,
        "query_row": query_row,
        "subject_row": subject_row,
        "midline": midline,
    }
