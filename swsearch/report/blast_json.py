"""BLAST's JSON in one file (15), as NCBI_BlastOutput2.xsd has it with ``_`` for ``-``."""

from __future__ import annotations

import json
import math
from typing import IO, Any

from swsearch.report import blast_terms, headers
from swsearch.report.base import Writer
from swsearch.results import Hit, Hsp, SearchResult
from swsearch.run_info import RunInfo


class BlastJsonWriter(Writer):
    """One object whose list BlastOutput2 has one report per query, each on a line of its own, streamed.

    Coordinates count from 1 and include the end. What `swsearch.report.blast_terms` says holds; headers that were
    merged into one are several entries of a hit's ``description``. A number that is not there (bit scores and
    E-values without statistics, the threshold ``expect``) is null; blastp has no such case. All is ASCII, by escapes.
    """

    def __init__(self, stream: IO[Any]) -> None:
        super().__init__(stream)
        self._encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode
        self._run: RunInfo | None = None
        self._queries = 0

    def begin(self, run: RunInfo) -> None:
        """Open the list."""
        self._run = run
        self._stream.write('{"BlastOutput2":[\n')

    def write(self, result: SearchResult) -> None:
        """Write the report of one query."""
        assert self._run is not None, "begin comes first"
        self._queries += 1
        report = _report(self._run, self._queries, result)
        self._stream.write((",\n" if self._queries > 1 else "") + self._encode({"report": report}))

    def end(self) -> None:
        """Close the list."""
        self._stream.write("\n]}\n" if self._queries else "]}\n")


def _report(run: RunInfo, number: int, result: SearchResult) -> dict[str, Any]:
    scoring = result.scoring
    statistics = blast_terms.search_statistics(result)._asdict().items()
    search: dict[str, Any] = {
        "query_id": blast_terms.query_name(number),
        "query_title": blast_terms.query_title(result),
        "query_len": result.query_length,
        "hits": [_hit(place, hit) for place, hit in enumerate(result.hits, 1)],
        "stat": {name.rstrip("_"): value if isinstance(value, int) else _number(value) for name, value in statistics},
    }
    if said := blast_terms.message(result):
        search["message"] = said
    return {
        "program": blast_terms.PROGRAM,
        "version": blast_terms.version(run),
        "reference": blast_terms.REFERENCE,
        "search_target": {"db": headers.encodable(result.database_name)},
        "params": {
            "matrix": headers.encodable(scoring.matrix.name),
            "expect": _number(run.evalue),
            "gap_open": scoring.gap_open,
            "gap_extend": scoring.gap_extend,
            "filter": blast_terms.filtering(run),
        },
        "results": {"search": search},
    }


def _hit(place: int, hit: Hit) -> dict[str, Any]:
    entries = headers.entries(hit.subject_id, hit.subject_description)
    return {
        "num": place,
        "description": [{"id": name, "accession": name, "title": title} for name, title in entries],
        "len": int(hit.subject_length),
        "hsps": [_hsp(number, hsp) for number, hsp in enumerate(hit.hsps, 1)],
    }


def _hsp(number: int, hsp: Hsp) -> dict[str, Any]:
    pair = hsp.pair
    query_row, midline, subject_row = pair.rows()
    return {
        "num": number,
        "bit_score": _number(hsp.bit_score),
        "score": int(hsp.score),
        "evalue": _number(hsp.evalue),
        "identity": pair.identities,
        "positive": pair.positives,
        "query_from": pair.query_start + 1,
        "query_to": pair.query_end,
        "hit_from": pair.subject_start + 1,
        "hit_to": pair.subject_end,
        "align_len": pair.length,
        "gaps": pair.gaps,
        "qseq": query_row,
        "hseq": subject_row,
        "midline": midline,
    }


def _number(value: float | None) -> float | int | None:
    """Return a number with six digits, a whole one as blastp prints it; None for what JSON cannot say."""
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e6 else rounded
