"""BLAST's JSON in one file (15), as NCBI_BlastOutput2.xsd has it with ``_`` for ``-``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import IO, Any

from swsearch.report import blast_terms, headers, json_text, taxa
from swsearch.report.base import Writer
from swsearch.report.portions import AlignedPortion, aligned_portions
from swsearch.results import SearchResult
from swsearch.run_info import RunInfo


class BlastJsonWriter(Writer):
    """One object whose list BlastOutput2 has one report per query, each on a line of its own, streamed.

    Coordinates count from 1 and include the end. What `swsearch.report.blast_terms` says holds; headers that were
    merged into one are several entries of a hit's ``description``. A number that is not there (bit scores and
    E-values without statistics, the threshold ``expect``) is null; blastp has no such case. All is ASCII, by escapes.
    """

    def __init__(self, stream: IO[Any]) -> None:
        super().__init__(stream)
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
        self._stream.write(",\n" if self._queries > 1 else "")
        self._stream.writelines(json_text.with_hits({"report": report}, map(_hits, aligned_portions(result))))

    def end(self) -> None:
        """Close the list."""
        self._stream.write("\n]}\n" if self._queries else "]}\n")


def _report(run: RunInfo, number: int, result: SearchResult) -> dict[str, Any]:
    """Describe a query's search, but for its hits."""
    scoring = result.scoring
    statistics = blast_terms.search_statistics(result)._asdict().items()
    search: dict[str, Any] = {
        "query_id": blast_terms.query_name(number),
        "query_title": blast_terms.query_title(result),
        "query_len": result.query_length,
        "hits": [],
        "stat": {name.rstrip("_"): value if isinstance(value, int) else _number(value) for name, value in statistics},
    }
    if said := blast_terms.message(result):
        search["message"] = said
    return {
        "program": run.program,
        "version": blast_terms.version(run),
        "reference": blast_terms.REFERENCE,
        "search_target": {"db": headers.encodable(result.database_name)},
        "params": {
            "matrix": headers.encodable(scoring.matrix.name),
            "expect": _number(run.evalue),
            "gap_open": scoring.gap_open,
            "gap_extend": scoring.gap_extend,
            "filter": blast_terms.filtering(run),
            **({} if run.genetic_code is None else {"query_gencode": run.genetic_code}),
            **({} if run.database_code is None else {"db_gencode": run.database_code}),
        },
        "results": {"search": search},
    }


def _hits(portion: AlignedPortion) -> list[str]:
    """Return the hits of a portion."""
    numbered = range(portion.first + 1, portion.first + 1 + portion.n_hits)
    columns = {
        "num": numbered,
        "description": list(map(_description, portion.titles, taxa.entry_members(portion))),
        "len": portion.subject_lengths.tolist(),
        "hsps": json_text.lists(portion.by_hit(_hsps(portion))),
    }
    return json_text.objects(columns)


def _description(titles: list[str], taxon: str) -> str:
    entries = [json_text.strings(entry) for entry in headers.entries_of(titles)]
    known = json_text.strings(headers.accessions([name for name, _ in headers.entries_of(titles)], False))
    objects = [
        f'{{"id":{name},"accession":{accession},"title":{title}{taxon}}}'
        for (name, title), accession in zip(entries, known, strict=True)
    ]
    return f"[{','.join(objects)}]"


def _hsps(portion: AlignedPortion) -> list[str]:
    """Return the alignments of a portion."""
    found, known = portion.alignments, portion.numbers
    query_rows, middle_lines, subject_rows = zip(*portion.rows, strict=True)
    (query_start, query_end), (subject_start, subject_end) = portion.query_spans, portion.subject_spans
    of = portion.result
    columns: dict[str, Sequence[str | int]] = {
        "num": (portion.places + 1).tolist(),
        "bit_score": list(map(_number_text, known.bit_scores.tolist())),
        "score": found.score.tolist(),
        "evalue": list(map(_number_text, known.evalues.tolist())),
        "identity": found.identities.tolist(),
        "positive": found.positives.tolist(),
        "query_from": (query_start + 1).tolist(),
        "query_to": query_end.tolist(),
        **({"query_frame": portion.query_frames.tolist()} if of.has_query_frames else {}),
        "hit_from": (subject_start + 1).tolist(),
        "hit_to": subject_end.tolist(),
        **({"hit_frame": portion.subject_frames.tolist()} if of.has_subject_frames else {}),
        "align_len": found.length.tolist(),
        "gaps": found.gaps.tolist(),
        "qseq": json_text.rows(query_rows),
        "hseq": json_text.plain(subject_rows),
        "midline": json_text.plain(middle_lines),
    }
    return json_text.objects(columns)


def _number(value: float | None) -> float | int | None:
    """Return a number with six digits, a whole one as blastp prints it; None for what JSON cannot say."""
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e6 else rounded


def _number_text(value: float) -> str:
    """Return what `_number` makes of a number as JSON."""
    # six digits are printed alike by both, but where a double has fewer, or from where on JSON has an exponent
    return f"{value:g}" if 1e-300 < abs(value) < 999_999 else json_text.encode(_number(value))
