"""BLAST's JSON (15), and the terms that XML (5) shares.

It follows NCBI_BlastOutput2.xsd with ``_`` for ``-``. Identifiers are those that blastp prints for a database made
with ``-parse_seqids``, and that diamond prints. Queries are ``Query_1``, ``Query_2`` ... with their whole header as
the title. Hits have their identifier, and the rest of the header as the title. Numbers have six digits, as
blastp's.
"""

from __future__ import annotations

import math
from typing import Any

from swsearch.blocks import FloatArray
from swsearch.report import base, headers
from swsearch.report.base import Writer
from swsearch.results import SearchResult
from swsearch.results.fields import HIT_FIELDS, Field
from swsearch.results.hit_batches import AlignedHitBatch, aligned_batches
from swsearch.run_info import RunInfo
from swsearch.statistics.karlin_altschul import KarlinAltschul
from swsearch.translation.genetic_codes import CODON

REFERENCE = (
    "The swsearch maintainers (2026), swsearch: exact protein database search. E-values: Y. Park, S. Sheetlin, "
    "N. Ma, T. L. Madden, J. L. Spouge (2012), New finite-size correction for local alignment score distributions, "
    "BMC Res. Notes 5:286."
)

UNFILTERED = "F"
"""blastp's word for no filtering."""

NONE = -1.0
"""blastp's value for statistical parameters that do not exist."""

Terms = dict[str, str | int | float | None]
"""Values by name, in the order in which both formats have them; the names of JSON, with ``-`` for ``_`` in XML."""


def hsp_fields(order: str) -> list[Field]:
    """Return the fields of an alignment in a format's order of names, and then the fields that it does not name."""
    by_name = {field.hsp: field for field in HIT_FIELDS.values() if field.hsp}
    return [by_name[name] for name in dict.fromkeys([*order.split(), *by_name])]


def parameters(run: RunInfo) -> Terms:
    """Return the parameters of a search; its masks stand where blastp has its filter: ``query_mask tantan``."""
    masks = {name: mask for name, mask in run.options.items() if name in ("query_mask", "subject_mask")}
    return {
        "matrix": headers.encodable(run.scoring.matrix.name),
        "expect": run.evalue,
        "gap_open": run.scoring.gap_open,
        "gap_extend": run.scoring.gap_extend,
        "filter": headers.describe_options(masks) or UNFILTERED,
    }


def search_statistics(result: SearchResult) -> Terms:
    """Return a query's statistics; parameters are -1 where E-values do not come from Karlin and Altschul's.

    There is no effective length of an alignment: Park's correction, which E-values have, takes its place and differs
    from subject to subject. So ``hsp_len`` is 0, and ``eff_space`` is the product of the lengths in residues; blastp
    gives both so for short queries.
    """
    k, lambda_, h = NONE, NONE, NONE
    if isinstance(statistics := result.statistics, KarlinAltschul) and result.query_length:
        k, lambda_, h = statistics.k, statistics.lambda_, statistics.h
    query_length = result.query_length // CODON if result.has_query_frames else result.query_length
    return {
        "db_num": result.database_subjects,
        "db_len": result.database_residues,
        "hsp_len": 0,
        "eff_space": query_length * result.effective_residues,
        "kappa": k,
        "lambda": lambda_,
        "entropy": h,
    }


def message(result: SearchResult) -> str:
    """Return the message of a query's result; mostly empty."""
    parts = []
    if not result.query_length:
        parts.append("Sequence contains no data")
    if not result.hits:
        parts.append("No hits found")
    return "; ".join(filter(None, [*parts, headers.statistics_note(result)]))


_HSP_FIELDS = hsp_fields(
    "num bit_score score evalue identity positive query_from query_to query_frame hit_from hit_to hit_frame "
    "align_len gaps qseq hseq midline"
)


class BlastJsonWriter(Writer):
    """One object whose list BlastOutput2 has one report per query, each on a line of its own, streamed.

    Coordinates count from 1 and include the end. What `swsearch.report.blast_json` says holds; headers that were
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
        self._stream.writelines(base.with_hits({"report": report}, map(_hits, aligned_batches(result))))

    def end(self) -> None:
        """Close the list."""
        self._stream.write("\n]}\n" if self._queries else "]}\n")


def _report(run: RunInfo, number: int, result: SearchResult) -> dict[str, Any]:
    """Describe a query's search, but for its hits."""
    search: dict[str, Any] = {
        "query_id": f"Query_{number}",
        "query_title": headers.query_title(result),
        "query_len": result.query_length,
        "hits": [],
        "stat": _round_values(search_statistics(result)),
    }
    if text := message(result):
        search["message"] = text
    return {
        "program": run.program,
        "version": f"swsearch {run.version}",  # Biopython looks for three numbers with dots
        "reference": REFERENCE,
        "search_target": {"db": headers.encodable(result.database_name)},
        "params": {
            **_round_values(parameters(run)),
            **({} if run.genetic_code is None else {"query_gencode": run.genetic_code}),
            **({} if run.database_genetic_code is None else {"db_gencode": run.database_genetic_code}),
        },
        "results": {"search": search},
    }


def _hits(batch: AlignedHitBatch) -> list[str]:
    """Return the hits of a batch."""
    columns = {
        "num": range(batch.first + 1, batch.first + 1 + batch.n_hits),
        "description": list(map(_description, headers.subject_titles(batch), headers.entry_members(batch))),
        "len": batch.subject_lengths.tolist(),
        "hsps": base.lists(batch.by_hit(_hsps(batch))),
    }
    return base.objects(columns)


def _description(titles: list[str], taxon: str) -> str:
    entries = [base.strings(entry) for entry in headers.entries_of(titles)]
    accessions = base.strings(headers.accessions([name for name, _ in headers.entries_of(titles)], False))
    objects = [
        f'{{"id":{name},"accession":{accession},"title":{title}{taxon}}}'
        for (name, title), accession in zip(entries, accessions, strict=True)
    ]
    return f"[{','.join(objects)}]"


def _hsps(batch: AlignedHitBatch) -> list[str]:
    """Return the alignments of a batch."""
    fields = [field for field in _HSP_FIELDS if batch.result.program in field.programs]
    return base.objects({field.hsp: field.cells(batch, _number_texts, base.printable) for field in fields})


def _number(value: float) -> float | int | None:
    """Return a number with six digits, a whole one as blastp prints it; None for what JSON cannot say."""
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e6 else rounded


def _round_values(values: Terms) -> Terms:
    """Apply `_number` to the floats of some values."""
    return {name: _number(value) if isinstance(value, float) else value for name, value in values.items()}


def _number_texts(values: FloatArray) -> list[str]:
    """Apply `_number` to numbers, shape (n,), and return JSON."""
    # both print six digits alike, except where a double has fewer, and from where JSON has an exponent
    return [
        f"{value:g}" if 1e-300 < abs(value) < 999_999 else base.encode(_number(value)) for value in values.tolist()
    ]
