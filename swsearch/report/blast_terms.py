"""What BLAST's XML (5) and JSON (15) have in common: program, parameters, statistics and messages.

Identifiers are those that blastp prints with a database made with ``-parse_seqids``, and that diamond prints: queries
are ``Query_1``, ``Query_2`` ... with their whole header as the title, hits have their identifier, and the rest of the
header as the title. Numbers have six digits, as blastp's.
"""

from __future__ import annotations

from swsearch.report import headers
from swsearch.results import SearchResult
from swsearch.results.fields import HIT_FIELDS, Field
from swsearch.run_info import RunInfo
from swsearch.statistics.karlin_altschul import KarlinAltschul
from swsearch.translation.frame import CODON

REFERENCE = (
    "The swsearch maintainers (2026), swsearch: exact protein database search. E-values: Y. Park, S. Sheetlin, "
    "N. Ma, T. L. Madden, J. L. Spouge (2012), New finite-size correction for local alignment score distributions, "
    "BMC Res. Notes 5:286."
)

UNFILTERED = "F"
"""What blastp calls no filtering."""

NONE = -1.0
"""What blastp gives as parameters of statistics where there are none."""

Terms = dict[str, str | int | float | None]
"""Values by name, in the order in which both formats have them; the names of JSON, with ``-`` for ``_`` in XML."""


def hsp_fields(order: str) -> list[Field]:
    """Return the fields of an alignment in a format's order of names, and then the fields that it does not name."""
    known = {field.hsp: field for field in HIT_FIELDS.values() if field.hsp}
    return [known[name] for name in dict.fromkeys([*order.split(), *known])]


def query_title(result: SearchResult) -> str:
    """Return the query's whole header, on one line."""
    return headers.one_line(f"{result.query_id} {result.query_description}").strip()


def parameters(run: RunInfo) -> Terms:
    """Return the parameters of a search; its masks stand where blastp has its filter: ``query_mask tantan``."""
    masks = {name: mask for name, mask in run.asked.items() if name in ("query_mask", "subject_mask")}
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
    if isinstance(found := result.statistics, KarlinAltschul) and result.query_length:
        k, lambda_, h = found.k, found.lambda_, found.h
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
