"""The report for people: blastp's format 0, a list of the hits and then each alignment in rows of 60 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TextIO

from swsearch.report import headers, numbers
from swsearch.report.base import Writer
from swsearch.results import Hit, Hsp, SearchResult
from swsearch.run_info import RunInfo
from swsearch.statistics.fitted import Fit
from swsearch.statistics.karlin_altschul import KarlinAltschul, Statistics

LETTERS_PER_LINE = 60
"""Alignment columns per line."""

TITLE_WIDTH = 68
"""Characters of a title in the list of hits, and of a line of a wrapped title, as in blastp's report."""


class PairwiseWriter(Writer):
    """A report for reading; coordinates count from 1 and include the end.

    Fitted statistics of global and semi-global alignment have no bits, so raw scores stand in their place; a note
    with each query says what was fitted. Without statistics (none asked for, or a database too small for a fit) raw
    scores stand alone, and a note says why. An alignment's side without residues in a row of 60 columns shows the
    number of the residue before it.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._run: RunInfo | None = None
        self._has_statistics = False

    def begin(self, run: RunInfo) -> None:
        """Write program, version and database."""
        self._run = run
        self._put(
            [
                f"swsearch {run.version}",
                "",
                *_wrapped(f"Database: {headers.one_line(run.database_name)}"),
                f"           {run.database_subjects:,} sequences; {run.database_residues:,} total letters",
                *(_wrapped(f"Options: {headers.asked(run.asked)}") if run.asked else []),
                "",
            ]
        )

    def write(self, result: SearchResult) -> None:
        """Write the list of hits and the alignments of one query."""
        self._has_statistics |= result.statistics is not None
        self._put(_query_heading(result))
        if not result.hits:
            self._put(["", "***** No hits found *****", "", ""])
            return
        self._put(_hit_list(result))
        for hit in result.hits:
            self._put(_hit_lines(hit, result.statistics))

    def end(self) -> None:
        """Write statistics, database and scoring system."""
        if self._run is not None:
            self._put(_closing(self._run, self._has_statistics))

    def _put(self, lines: Iterator[str] | list[str]) -> None:
        self._stream.writelines(line + "\n" for line in lines)


def _wrapped(text: str) -> list[str]:
    """Wrap a title; words stay whole, however long, so that identifiers can be searched for."""
    return textwrap.wrap(text, TITLE_WIDTH, break_long_words=False, break_on_hyphens=False) or [""]


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= TITLE_WIDTH else text[: TITLE_WIDTH - 3] + "..."


def _query_heading(result: SearchResult) -> Iterator[str]:
    title = headers.one_line(f"{result.query_id} {result.query_description}")
    yield ""
    yield from _wrapped(f"Query= {title}")
    yield ""
    yield f"Length={result.query_length}"
    if note := headers.statistics_note(result):
        yield ""
        yield from _wrapped(f"Note: {note}")
    if result.statistics is not None and result.effective_residues != result.database_residues:
        yield f"E-values refer to a database of {result.effective_residues:,} letters"


def _hit_list(result: SearchResult) -> Iterator[str]:
    width = TITLE_WIDTH + 2
    if result.statistics is None:
        yield f"{'':{width}}Score"
        yield f"{'Best sequences:':{width}}(Raw)"
    elif result.hits[0].bit_score is None:
        yield f"{'':{width}}Score     E"
        yield f"{'Sequences producing significant alignments:':{width}}(Raw)  Value"
    else:
        yield f"{'':{width}}Score     E"
        yield f"{'Sequences producing significant alignments:':{width - 1}}(Bits)  Value"
    yield ""
    for hit in result.hits:
        title = _shortened(headers.titles(hit.subject_id, hit.subject_description)[0])
        if result.statistics is None:
            yield f"{title:{width}}{hit.score}"
        else:
            shown = str(hit.score) if hit.bit_score is None else numbers.bit_score_text(hit.bit_score)
            yield f"{title:{width}}{shown:7} {numbers.evalue_text(hit.evalue)}"
    yield ""


def _hit_lines(hit: Hit, statistics: Statistics | None) -> Iterator[str]:
    yield ""
    for number, title in enumerate(headers.titles(hit.subject_id, hit.subject_description)):
        yield from _wrapped((" " if number else ">") + title)
    yield f"Length={hit.subject_length}"
    yield ""
    for number, hsp in enumerate(hit.hsps):
        if number:
            yield ""
        yield from _alignment_lines(hsp, statistics)


def _alignment_lines(hsp: Hsp, statistics: Statistics | None) -> Iterator[str]:
    pair = hsp.pair
    length = pair.length

    def share(part: int) -> str:
        return f"{part}/{length} ({numbers.whole_percentage(part, length)}%)"

    published = numbers.evalue_text(hsp.evalue_published)
    beside = "" if hsp.evalue_published is None else f",  Published Expect = {published}"
    if statistics is None:
        yield f" Score = {hsp.score}"
    elif hsp.bit_score is None:
        z_score = numbers.z_score_text(hsp.z_score)
        yield f" Score = {hsp.score},  Z-score = {z_score},  Expect = {numbers.evalue_text(hsp.evalue)}"
    else:
        bits, evalue = numbers.bit_score_text(hsp.bit_score), numbers.evalue_text(hsp.evalue)
        yield f" Score = {bits} bits ({hsp.score}),  Expect = {evalue}{beside}"
    yield (f" Identities = {share(pair.identities)}, Positives = {share(pair.positives)}, Gaps = {share(pair.gaps)}")
    yield ""
    yield from _blocks(pair.rows(), pair.query_start, pair.subject_start, max(pair.query_end, pair.subject_end))


def _blocks(rows: tuple[str, str, str], query_at: int, subject_at: int, largest: int) -> Iterator[str]:
    """Cut the rows of an alignment into blocks, coordinates on either side."""
    top, middle, bottom = rows
    width = len(str(largest))
    indent = " " * (len("Query  ") + width + 2)
    for start in range(0, len(top), LETTERS_PER_LINE):
        part = slice(start, start + LETTERS_PER_LINE)
        query_line, query_at = _side("Query", top[part], query_at, width)
        subject_line, subject_at = _side("Sbjct", bottom[part], subject_at, width)
        yield query_line
        yield indent + middle[part]
        yield subject_line
        yield ""


def _side(name: str, letters: str, at: int, width: int) -> tuple[str, int]:
    """Return a side's line in a block, and how many of its residues lie before the next block."""
    end = at + len(letters) - letters.count("-")
    return f"{name}  {at + (end > at):<{width}}  {letters}  {end}", end


def _closing(run: RunInfo, has_statistics: bool) -> Iterator[str]:
    statistics = run.statistics
    if isinstance(statistics, Fit) and not has_statistics:
        statistics = None  # no query allowed a fit
    yield ""
    if isinstance(statistics, KarlinAltschul):
        values = (
            statistics.lambda_,
            statistics.k,
            statistics.h,
            statistics.a,
            statistics.alpha,
            statistics.sigma,
        )
        yield "Lambda      K        H        a         alpha    sigma"
        yield " ".join(f"{value:#8.3g}" for value in values)
        yield ""
    yield from _wrapped(f"  Database: {headers.one_line(run.database_name)}")
    yield f"  Number of letters in database: {run.database_residues:,}"
    yield f"  Number of sequences in database: {run.database_subjects:,}"
    yield ""
    yield f"Matrix: {headers.one_line(run.scoring.matrix.name)}"
    yield f"Gap Penalties: Existence: {run.scoring.gap_open}, Extension: {run.scoring.gap_extend}"
    yield f"Mode: {run.mode}, exact"
    yield f"Statistics: {statistics.name if statistics is not None else 'none'}"
