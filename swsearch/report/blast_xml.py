"""BLAST's XML (5), as NCBI_BlastOutput.dtd has it; elements and layout as BLAST+ 2.12 prints them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from html import escape  # xml.sax.saxutils imports all of urllib

from swsearch.report import blast_terms, headers
from swsearch.report.base import Writer
from swsearch.report.portions import AlignedPortion, aligned_portions
from swsearch.results import SearchResult
from swsearch.run_info import RunInfo

_HEAD = """<?xml version="1.0"?>
<!DOCTYPE BlastOutput PUBLIC "-//NCBI//NCBI BlastOutput/EN" "http://www.ncbi.nlm.nih.gov/dtd/NCBI_BlastOutput.dtd">
"""

_NEVER = re.compile("[\ufffe\uffff]")
"""What no XML 1.0 document may hold (section 2.2), beside the controls and surrogates that `headers` replaces."""

_UNSAFE = re.compile("[^\x00-\x7f]|[&<>\"']")
"""What cannot stand as it is; most texts have nothing of it."""

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
        for portion in aligned_portions(result):
            self._stream.write(_hits(portion))
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
            "program": run.program,
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


def _hits(portion: AlignedPortion) -> str:
    """Return the Hit elements of a portion."""
    names = [_escaped(name) for name in portion.names]
    titles = [_escaped(_definition(titles)) for titles in portion.titles]
    hsps = portion.by_hit(_hsps(portion))
    numbered = range(portion.first + 1, portion.first + 1 + portion.n_hits)
    known = [_escaped(name) for name in headers.accessions(portion.names, False)]
    columns = zip(numbered, names, known, titles, portion.subject_lengths.tolist(), hsps, strict=True)
    return "".join(
        [
            f"""<Hit>
  <Hit_num>{number}</Hit_num>
  <Hit_id>{name}</Hit_id>
  <Hit_def>{title}</Hit_def>
  <Hit_accession>{accession}</Hit_accession>
  <Hit_len>{length}</Hit_len>
  <Hit_hsps>
{"".join(elements)}  </Hit_hsps>
</Hit>
"""
            for number, name, accession, title, length, elements in columns
        ]
    )


def _definition(titles: list[str]) -> str:
    if len(titles) == 1:
        return titles[0].partition(" ")[2].strip()
    (_, first), *others = headers.entries_of(titles)
    return first + "".join([f" >{name} {title}".rstrip() for name, title in others])


def _hsps(portion: AlignedPortion) -> list[str]:
    """Return the Hsp element of each alignment of a portion."""
    found, known = portion.alignments, portion.numbers
    (query_start, query_end), (subject_start, subject_end) = portion.query_spans, portion.subject_spans
    # rows hold letters, gaps and signs alone, none of which XML reserves
    columns = zip(
        (portion.places + 1).tolist(),
        map(_number, known.bit_scores.tolist()),
        found.score.tolist(),
        map(_number, known.evalues.tolist()),
        (query_start + 1).tolist(),
        query_end.tolist(),
        (subject_start + 1).tolist(),
        subject_end.tolist(),
        portion.query_frames.tolist(),
        portion.subject_frames.tolist(),
        found.identities.tolist(),
        found.positives.tolist(),
        found.gaps.tolist(),
        found.length.tolist(),
        portion.rows,
        strict=True,
    )
    return [
        f"""    <Hsp>
      <Hsp_num>{number}</Hsp_num>
      <Hsp_bit-score>{bits}</Hsp_bit-score>
      <Hsp_score>{score}</Hsp_score>
      <Hsp_evalue>{evalue}</Hsp_evalue>
      <Hsp_query-from>{query_from}</Hsp_query-from>
      <Hsp_query-to>{query_to}</Hsp_query-to>
      <Hsp_hit-from>{hit_from}</Hsp_hit-from>
      <Hsp_hit-to>{hit_to}</Hsp_hit-to>
      <Hsp_query-frame>{query_frame}</Hsp_query-frame>
      <Hsp_hit-frame>{hit_frame}</Hsp_hit-frame>
      <Hsp_identity>{identity}</Hsp_identity>
      <Hsp_positive>{positive}</Hsp_positive>
      <Hsp_gaps>{gaps}</Hsp_gaps>
      <Hsp_align-len>{length}</Hsp_align-len>
      <Hsp_qseq>{query_row}</Hsp_qseq>
      <Hsp_hseq>{subject_row}</Hsp_hseq>
      <Hsp_midline>{middle}</Hsp_midline>
    </Hsp>
"""
        for (
            number, bits, score, evalue, query_from, query_to, hit_from, hit_to, query_frame, hit_frame, identity,
            positive, gaps, length, (query_row, middle, subject_row),
        ) in columns
    ]  # fmt: skip


def _element(indent: str, name: str, value: Value) -> str:
    if value is None or isinstance(value, float):
        text = _number(value)
    else:
        text = _escaped(value) if isinstance(value, str) else str(value)
    return f"{indent}<{name}>{text}</{name}>"


def _number(value: float | None) -> str:
    return XML_NO_NUMBER if value is None or not math.isfinite(value) else f"{value:g}"


def _escaped(text: str) -> str:
    """Escape a text as blastp does, quotes included, and what is not ASCII besides."""
    if not _UNSAFE.search(text):
        return text
    safe = escape(_NEVER.sub("\ufffd", text), quote=False).replace('"', "&quot;").replace("'", "&apos;")
    return safe.encode("ascii", "xmlcharrefreplace").decode("ascii")
