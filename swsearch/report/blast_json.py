"""BLAST's JSON in one file (15), as NCBI_BlastOutput2.xsd has it with ``_`` for ``-``."""

from __future__ import annotations

import math
from typing import Any

from swsearch.blocks import FloatArray
from swsearch.report import blast_terms, headers, json_text, taxa
from swsearch.report.base import Writer
from swsearch.results import SearchResult
from swsearch.results.hit_batches import AlignedHitBatch, aligned_batches
from swsearch.run_info import RunInfo

_HSP_FIELDS = blast_terms.hsp_fields(
    "num bit_score score evalue identity positive query_from query_to query_frame hit_from hit_to hit_frame "
    "align_len gaps qseq hseq midline"
)


class BlastJsonWriter(Writer):
    """One object whose list BlastOutput2 has one report per query, each on a line of its own, streamed.

    Coordinates count from 1 and include the end. What `swsearch.report.blast_terms` says holds; headers that were
    merged into one are several entries of a hit's ``description``. A missing number (bit scores and
    E-values without statistics, the threshold ``expect``) is null; blastp has no such case. All is ASCII, by escapes.
    """

    _queries = 0

    def begin(self, run: RunInfo) -> None:
        """Open the list."""
        super().begin(run)
        self._stream.write('{"BlastOutput2":[\n')

    def write(self, result: SearchResult) -> None:
        """Write the report of one query."""
        self._queries += 1
        report = _report(self._run, self._queries, result)
        self._stream.write(",\n" if self._queries > 1 else "")
        self._stream.writelines(json_text.with_hits({"report": report}, map(_hits, aligned_batches(result))))

    def end(self) -> None:
        """Close the list."""
        self._stream.write("\n]}\n" if self._queries else "]}\n")


def _report(run: RunInfo, number: int, result: SearchResult) -> dict[str, Any]:
    """Describe a query's search, but for its hits."""
    search: dict[str, Any] = {
        "query_id": f"Query_{number}",
        "query_title": blast_terms.query_title(result),
        "query_len": result.query_length,
        "hits": [],
        "stat": _rounded(blast_terms.search_statistics(result)),
    }
    if said := blast_terms.message(result):
        search["message"] = said
    return {
        "program": run.program,
        "version": f"swsearch {run.version}",  # Biopython looks for three numbers with dots
        "reference": blast_terms.REFERENCE,
        "search_target": {"db": headers.encodable(result.database_name)},
        "params": {
            **_rounded(blast_terms.parameters(run)),
            **({} if run.genetic_code is None else {"query_gencode": run.genetic_code}),
            **({} if run.database_code is None else {"db_gencode": run.database_code}),
        },
        "results": {"search": search},
    }


def _hits(batch: AlignedHitBatch) -> list[str]:
    """Return the hits of a batch."""
    columns = {
        "num": range(batch.first + 1, batch.first + 1 + batch.n_hits),
        "description": list(map(_description, headers.subject_titles(batch), taxa.entry_members(batch))),
        "len": batch.subject_lengths.tolist(),
        "hsps": json_text.lists(batch.by_hit(_hsps(batch))),
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


def _hsps(batch: AlignedHitBatch) -> list[str]:
    """Return the alignments of a batch."""
    fields = [field for field in _HSP_FIELDS if batch.result.program in field.programs]
    return json_text.objects({field.hsp: field.cells(batch, _number_texts, json_text.printable) for field in fields})


def _number(value: float) -> float | int | None:
    """Return a number with six digits, a whole one as blastp prints it; None for what JSON cannot say."""
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e6 else rounded


def _rounded(values: blast_terms.Terms) -> blast_terms.Terms:
    """Apply `_number` to the floats of some values."""
    return {name: _number(value) if isinstance(value, float) else value for name, value in values.items()}


def _number_texts(values: FloatArray) -> list[str]:
    """Apply `_number` to numbers, shape (n,), and return JSON."""
    # both print six digits alike, except where a double has fewer, and from where JSON has an exponent
    return [
        f"{value:g}" if 1e-300 < abs(value) < 999_999 else json_text.encode(_number(value))
        for value in values.tolist()
    ]
