"""What a file says of the search that it came from: everything that decides its content, and nothing else.

No time, host, engine or number of threads: the output has the same bytes whatever these are.
"""

from __future__ import annotations

from typing import Any

from swsearch.report import headers
from swsearch.results import SearchResult
from swsearch.run_info import RunInfo
from swsearch.statistics.karlin_altschul import KarlinAltschul


def translated(of: RunInfo | SearchResult) -> dict[str, Any]:
    """Say what was translated, and by which genetic codes; nothing of proteins."""
    if of.program == "blastp":
        return {}
    codes = {"genetic_code": of.genetic_code, "database_code": of.database_code}
    return {"program": of.program, **{name: code for name, code in codes.items() if code is not None}}


def provenance(run: RunInfo) -> dict[str, Any]:
    """Describe a run in values that JSON can hold.

    Returns
    -------
    dict
        ``program``, ``version``; ``database`` (name, subjects, residues, and the sources that it was built from, with
        their SHA-256); ``parameters`` (mode, matrix, gap_open, gap_extend, evalue, max_hits, effective_residues,
        of translated DNA program, genetic_code and database_code, and what was asked for besides: masks, filters,
        max_alignments);
        ``statistics`` (name and parameters), or null.
    """
    scoring, statistics = run.scoring, run.statistics
    described: dict[str, Any] | None = None
    if statistics is not None:
        constants = statistics.parameters() if isinstance(statistics, KarlinAltschul) else {}
        described = {"name": headers.statistics_name(statistics, run.program), **constants}
    return {
        "program": "swsearch",
        "version": run.version,
        "database": {
            "name": headers.encodable(run.database_name),
            "subjects": run.database_subjects,
            "residues": run.database_residues,
            "sources": [dict(source) for source in run.database_sources],
        },
        "parameters": {
            "mode": run.mode,
            "matrix": headers.encodable(scoring.matrix.name),
            "gap_open": scoring.gap_open,
            "gap_extend": scoring.gap_extend,
            "evalue": run.evalue,
            "max_hits": run.max_hits,
            "effective_residues": run.effective_residues or run.database_residues,
            **translated(run),
            **run.asked,
        },
        "statistics": described,
    }
