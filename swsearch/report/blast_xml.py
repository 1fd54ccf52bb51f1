"""BLAST's XML (5), as NCBI_BlastOutput.dtd has it; elements and layout as blastp 2.12 prints them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from html import escape  # xml.sax.saxutils imports all of urllib

from swsearch.report import blast_terms, headers
from swsearch.report.base import Writer
from swsearch.results import Hit, Hsp, SearchResult
from swsearch.run_info import RunInfo

_HEAD = """<?xml version="1.0"?>
<!DOCTYPE BlastOutput PUBLIC "-//NCBI//NCBI BlastOutput/EN" "http://www.ncbi.nlm.nih.gov/dtd/NCBI_BlastOutput.dtd">
"""

_NEVER = re.compile("[\ufffe\uffff]")
"""What no XML 1.0 document may hold (section 2.2), beside the controls and surrogates that `headers` replaces."""

XML_NO_NUMBER = "NaN"
"""What stands for an E-value, threshold or bit score where there is none: XML Schema's word, which every reader of
floats takes. The elements may not be left out."""

Value = str | int | float | None


class BlastXmlWriter(Writer):
    """BLAST XML: one Iteration per query, streamed; coordinates count from 1 and include the end.

    What `swsearch.report.blast_terms` says holds. Headers that were merged into one are joined by `` >`` in Hit_def,
    as blastp does it, and Biopython's SearchIO takes them apart again. All is ASCII, other characters by reference.
    """

    _run: RunInfo | None = None
    _queries = 0

    def begin(self, run: RunInfo) -> None:
        """Take note of the run: the first lines name the first query too."""
        self._run = run

    def write(self, result: SearchResult) -> None:
        """Write the Iteration of one query, after the first lines if it is the first."""
        if not self._queries:
            self._write_head(blast_terms.query_title(result), result.query_length)
        self._queries += 1
        number = self._queries
        lines = [
            "<Iteration>",
            _element("  ", "Iteration_iter-num", number),
            _element("  ", "Iteration_query-ID", blast_terms.query_name(number)),
            _element("  ", "Iteration_query-def", blast_terms.query_title(result)),
            _element("  ", "Iteration_query-len", result.query_length),
            "<Iteration_hits>",
        ]
        self._put(lines)
        for place, hit in enumerate(result.hits, 1):
            self._put(_hit_lines(place, hit))
        numbers = zip(
            ("db-num", "db-len", "hsp-len", "eff-space", "kappa", "lambda", "entropy"),
            blast_terms.search_statistics(result),
            strict=True,
        )
        lines = ["</Iteration_hits>", "  <Iteration_stat>", "    <Statistics>"]
        lines += [_element("      ", f"Statistics_{name}", value) for name, value in numbers]
        lines += ["    </Statistics>", "  </Iteration_stat>"]
        if said := blast_terms.message(result):
            lines.append(_element("  ", "Iteration_message", said))
        self._put([*lines, "</Iteration>"])

    def end(self) -> None:
        """Close what is open."""
        if not self._queries:
            self._write_head("", 0)
        self._put(["</BlastOutput_iterations>", "</BlastOutput>"])

    def _write_head(self, first_title: str, first_length: int) -> None:
        run = self._run
        assert run is not None, "begin comes first"
        self._stream.write(_HEAD)
        scoring = run.scoring
        texts: dict[str, Value] = {
            "program": blast_terms.PROGRAM,
            "version": blast_terms.version(run),
            "reference": blast_terms.REFERENCE,
            "db": headers.one_line(run.database_name),
            "query-ID": blast_terms.query_name(1),
            "query-def": first_title,
            "query-len": first_length,
        }
        parameters: dict[str, Value] = {
            "matrix": headers.one_line(scoring.matrix.name),
            "expect": run.evalue,
            "gap-open": scoring.gap_open,
            "gap-extend": scoring.gap_extend,
            "filter": blast_terms.filtering(run),
        }
        self._put(
            [
                "<BlastOutput>",
                *(_element("  ", f"BlastOutput_{name}", value) for name, value in texts.items()),
                "  <BlastOutput_param>",
                "    <Parameters>",
                *(_element("      ", f"Parameters_{name}", value) for name, value in parameters.items()),
                "    </Parameters>",
                "  </BlastOutput_param>",
                "<BlastOutput_iterations>",
            ]
        )

    def _put(self, lines: Iterable[str]) -> None:
        self._stream.writelines(line + "\n" for line in lines)


def _hit_lines(place: int, hit: Hit) -> list[str]:
    (_, first), *others = headers.entries(hit.subject_id, hit.subject_description)
    identifier = headers.identifier(hit.subject_id)
    merged = [f" >{name} {title}".rstrip() for name, title in others]
    return [
        "<Hit>",
        _element("  ", "Hit_num", place),
        _element("  ", "Hit_id", identifier),
        _element("  ", "Hit_def", first + "".join(merged)),
        _element("  ", "Hit_accession", identifier),
        _element("  ", "Hit_len", hit.subject_length),
        "  <Hit_hsps>",
        *(line for number, hsp in enumerate(hit.hsps, 1) for line in _hsp_lines(number, hsp)),
        "  </Hit_hsps>",
        "</Hit>",
    ]


def _hsp_lines(number: int, hsp: Hsp) -> list[str]:
    pair = hsp.pair
    query_row, midline, subject_row = pair.rows()
    values: dict[str, Value] = {
        "num": number,
        "bit-score": hsp.bit_score,
        "score": hsp.score,
        "evalue": hsp.evalue,
        "query-from": pair.query_start + 1,
        "query-to": pair.query_end,
        "hit-from": pair.subject_start + 1,
        "hit-to": pair.subject_end,
        "query-frame": 0,
        "hit-frame": 0,
        "identity": pair.identities,
        "positive": pair.positives,
        "gaps": pair.gaps,
        "align-len": pair.length,
        "qseq": query_row,
        "hseq": subject_row,
        "midline": midline,
    }
    return ["    <Hsp>", *(_element("      ", f"Hsp_{name}", value) for name, value in values.items()), "    </Hsp>"]


def _element(indent: str, name: str, value: Value) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        text = XML_NO_NUMBER
    elif isinstance(value, float):
        text = f"{value:g}"
    else:
        text = _escaped(value) if isinstance(value, str) else str(value)
    return f"{indent}<{name}>{text}</{name}>"


def _escaped(text: str) -> str:
    """Escape a text as blastp does, quotes included, and what is not ASCII besides."""
    safe = escape(_NEVER.sub("\ufffd", text), quote=False).replace('"', "&quot;").replace("'", "&apos;")
    return safe.encode("ascii", "xmlcharrefreplace").decode("ascii")
