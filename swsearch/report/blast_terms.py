"""What BLAST's XML (5) and JSON (15) have in common: program, parameters, statistics and messages.

Identifiers are those that blastp prints with a database made with ``-parse_seqids``, and that diamond prints: queries
are ``Query_1``, ``Query_2`` ... with their whole header as the title, hits have their identifier, and the rest of the
header as the title. Numbers have six digits, as blastp's.
"""

from __future__ import annotations

from typing import NamedTuple

from swsearch.report import headers
from swsearch.results import SearchResult
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


class SearchStatistics(NamedTuple):
    """A query's statistics, in the order in which both formats have them.

    There is no effective length of an alignment: Park's correction, which E-values have, takes its place and differs
    from subject to subject. So ``hsp_len`` is 0, and ``eff_space`` is the product of the lengths in residues; blastp
    gives both so for short queries.
    """

    db_num: int
    db_len: int
    hsp_len: int
    eff_space: int
    kappa: float
    lambda_: float
    entropy: float


def filtering(run: RunInfo) -> str:
    """Return what was masked, in blastp's place for it: ``query_mask tantan``."""
    masks = {name: mask for name, mask in run.asked.items() if name in ("query_mask", "subject_mask")}
    return headers.asked(masks) or UNFILTERED


def version(run: RunInfo) -> str:
    """Return program and version; Biopython looks for three numbers with dots."""
    return f"swsearch {run.version}"


def query_name(number: int) -> str:
    """Return what a query is called, counted from 1."""
    return f"Query_{number}"


def query_title(result: SearchResult) -> str:
    """Return the query's whole header, on one line."""
    return headers.one_line(f"{result.query_id} {result.query_description}").strip()


def search_statistics(result: SearchResult) -> SearchStatistics:
    """Return a query's statistics; parameters are -1 where E-values do not come from Karlin and Altschul's."""
    constants = (NONE, NONE, NONE)
    if isinstance(result.statistics, KarlinAltschul) and result.query_length:
        constants = (result.statistics.k, result.statistics.lambda_, result.statistics.h)
    query_length = result.query_length // CODON if result.has_query_frames else result.query_length
    space = query_length * result.effective_residues
    return SearchStatistics(result.database_subjects, result.database_residues, 0, space, *constants)


def message(result: SearchResult) -> str:
    """Return the message of a query's result; mostly empty."""
    parts = []
    if not result.query_length:
        parts.append("Sequence contains no data")
    if not result.hits:
        parts.append("No hits found")
    return "; ".join(filter(None, [*parts, headers.statistics_note(result)]))
