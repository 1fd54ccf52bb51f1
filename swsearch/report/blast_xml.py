"""BLAST's XML (5), as NCBI_BlastOutput.dtd defines it.

Elements and layout are those of BLAST+ 2.12.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape  # xml.sax.saxutils imports all of urllib

from swsearch.blocks import FloatArray
from swsearch.report import blast_json, headers
from swsearch.report.base import Writer
from swsearch.results import SearchResult
from swsearch.results.hit_batches import AlignedHitBatch, aligned_batches

_HEAD = """<?xml version="1.0"?>
<!DOCTYPE BlastOutput PUBLIC "-//NCBI//NCBI BlastOutput/EN" "http://www.ncbi.nlm.nih.gov/dtd/NCBI_BlastOutput.dtd">
<BlastOutput>
"""

_NEVER = re.compile("[\ufffe\uffff]")
"""Characters of no XML 1.0 document (section 2.2), beside the controls and surrogates that `headers` replaces."""

XML_NO_NUMBER = "NaN"
"""Text of a missing E-value, threshold or bit score: XML Schema's word, which every reader of floats takes. The
elements may not be left out."""

_HSP_FIELDS = blast_json.hsp_fields(
    "num bit_score score evalue query_from query_to hit_from hit_to query_frame hit_frame identity positive gaps "
    "align_len qseq hseq midline"
)
_HSP_TAGS = [f"Hsp_{field.hsp.replace('_', '-')}" for field in _HSP_FIELDS]
_HSP = "    <Hsp>\n" + "".join(f"      <{tag}>%s</{tag}>\n" for tag in _HSP_TAGS) + "    </Hsp>\n"


class BlastXmlWriter(Writer):
    """BLAST XML: one Iteration per query, streamed; coordinates count from 1 and include the end.

    `swsearch.report.blast_json` says what names and titles are. Headers that were merged into one are joined by
    `` >`` in Hit_def, as in blastp's, and Biopython's SearchIO splits them again. All is ASCII, other characters by
    reference.
    """

    _queries = 0

    def write(self, result: SearchResult) -> None:
        """Write the Iteration of one query, after the first lines if it is the first."""
        title = headers.query_title(result)
        if not self._queries:
            self._write_head(title, result.query_length)
        self._queries += 1
        query: blast_json.Terms = {
            "iter_num": self._queries,
            "query-ID": f"Query_{self._queries}",
            "query-def": title,
            "query-len": result.query_length,
        }
        self._write_lines("<Iteration>", *_elements("  ", "Iteration", query), "<Iteration_hits>")
        for batch in aligned_batches(result):
            self._stream.write(_hits(batch))
        message = blast_json.message(result)
        self._write_lines(
            "</Iteration_hits>",
            "  <Iteration_stat>",
            "    <Statistics>",
            *_elements("      ", "Statistics", blast_json.search_statistics(result)),
            "    </Statistics>",
            "  </Iteration_stat>",
            *_elements("  ", "Iteration", {"message": message} if message else {}),
            "</Iteration>",
        )

    def end(self) -> None:
        """Close all elements."""
        if not self._queries:
            self._write_head("", 0)
        self._write_lines("</BlastOutput_iterations>", "</BlastOutput>")

    def _write_head(self, first_title: str, first_length: int) -> None:
        """Write the first lines, which name the first query too."""
        run = self._run
        program: blast_json.Terms = {
            "program": run.program,
            "version": f"swsearch {run.version}",  # Biopython looks for three numbers with dots
            "reference": blast_json.REFERENCE,
            "db": run.database_name,
            "query-ID": "Query_1",
            "query-def": first_title,
            "query-len": first_length,
        }
        self._stream.write(_HEAD)
        self._write_lines(
            *_elements("  ", "BlastOutput", program),
            "  <BlastOutput_param>",
            "    <Parameters>",
            *_elements("      ", "Parameters", blast_json.parameters(run)),
            "    </Parameters>",
            "  </BlastOutput_param>",
            "<BlastOutput_iterations>",
        )


def _hits(batch: AlignedHitBatch) -> str:
    """Return the Hit elements of a batch."""
    names = headers.subject_names(batch)
    columns = zip(
        range(batch.first + 1, batch.first + 1 + batch.n_hits),
        _escape(names),
        _escape(list(map(_definition, headers.subject_titles(batch)))),
        _escape(headers.accessions(names, False)),
        batch.subject_lengths.tolist(),
        batch.by_hit(_hsps(batch)),
        strict=True,
    )
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
            for number, name, title, accession, length, elements in columns
        ]
    )


def _definition(titles: list[str]) -> str:
    if len(titles) == 1:
        return titles[0].partition(" ")[2].strip()
    (_, first), *others = headers.entries_of(titles)
    return first + "".join([f" >{name} {title}".rstrip() for name, title in others])


def _hsps(batch: AlignedHitBatch) -> list[str]:
    """Return the Hsp element of each alignment of a batch."""
    columns = [field.cells(batch, _numbers, _escape) for field in _HSP_FIELDS]
    return [_HSP % row for row in zip(*columns, strict=True)]


def _elements(indent: str, kind: str, values: blast_json.Terms) -> list[str]:
    tags = [f"{kind}_{name.replace('_', '-')}" for name in values]
    return [f"{indent}<{tag}>{_text(value)}</{tag}>" for tag, value in zip(tags, values.values(), strict=True)]


def _text(value: str | float | None) -> str:
    if isinstance(value, str):
        return _escape([headers.one_line(value)])[0]
    return str(value) if isinstance(value, int) else _number(value)


def _number(value: float | None) -> str:
    return XML_NO_NUMBER if value is None or not math.isfinite(value) else f"{value:g}"


def _numbers(values: FloatArray) -> list[str]:
    return list(map(_number, values.tolist()))


def _escape(texts: Sequence[str]) -> Sequence[str]:
    """Escape texts as blastp does, quotes included, and characters that are not ASCII."""
    together = "".join(texts)
    if together.isascii() and not any(sign in together for sign in "&<>\"'"):  # most texts: one look at all of them
        return texts
    safe = (escape(_NEVER.sub("\ufffd", text), quote=False) for text in texts)
    quoted = (text.replace('"', "&quot;").replace("'", "&apos;") for text in safe)
    return [text.encode("ascii", "xmlcharrefreplace").decode("ascii") for text in quoted]
