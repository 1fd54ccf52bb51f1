"""The report for people: blastp's format 0, a list of the hits and then each alignment in rows of 60 columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import TextIO

import numpy as np

from swsearch.blocks import IntArray
from swsearch.report import headers, numbers
from swsearch.report.alignment_rows import Rows
from swsearch.report.base import Writer
from swsearch.report.portions import AlignedPortion, Portion, aligned_portions, portions
from swsearch.results import SearchResult
from swsearch.run_info import RunInfo
from swsearch.shifted_alignment import SHIFT_MARKS
from swsearch.statistics.fitted import Fit
from swsearch.statistics.karlin_altschul import KarlinAltschul
from swsearch.translation.frame import CODON

LETTERS_PER_LINE = 60
"""Alignment columns per line."""

TITLE_WIDTH = 68
"""Characters of a title in the list of hits, and of a line of a wrapped title, as in blastp's report."""


_LINE = re.compile(rf"[^ ](?:.{{0,{TITLE_WIDTH - 2}}}[^ ])?(?= |$)|[^ ]+")
"""As many words as fit a line, or one that is longer."""


class PairwiseWriter(Writer):
    """A report for reading; coordinates count from 1 and include the end.

    Fitted statistics of global and semi-global alignment have no bits, so raw scores stand in their place; a note
    with each query says what was fitted. Without statistics (none asked for, or a database too small for a fit) raw
    scores stand alone, and a note says why. An alignment's side without residues in a row of 60 columns shows the
    number of the residue before it. Of translated DNA a line names the frames, and numbers are of nucleotides.
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
        for portion in aligned_portions(result):
            self._stream.write("".join(_hits(portion)))

    def end(self) -> None:
        """Write statistics, database and scoring system."""
        if self._run is not None:
            self._put(_closing(self._run, self._has_statistics))

    def _put(self, lines: Iterator[str] | list[str]) -> None:
        self._stream.writelines(line + "\n" for line in lines)


def _wrapped(text: str) -> list[str]:
    """Wrap a title; words stay whole, however long, so that identifiers can be searched for."""
    if text.isascii() and text.isprintable() and text[:1].strip():  # the same, in a tenth of the time
        return _LINE.findall(text)
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
    elif np.isnan(result.table.numbers.bit_scores[0]):
        yield f"{'':{width}}Score     E"
        yield f"{'Sequences producing significant alignments:':{width}}(Raw)  Value"
    else:
        yield f"{'':{width}}Score     E"
        yield f"{'Sequences producing significant alignments:':{width - 1}}(Bits)  Value"
    yield ""
    for portion in portions(result):
        yield from _hit_list_lines(portion)
    yield ""


def _hit_list_lines(portion: Portion) -> Iterator[str]:
    width = TITLE_WIDTH + 2
    has_statistics = portion.result.statistics is not None
    bits, evalues, _, _ = portion.hit_numbers.optional
    columns = zip(portion.titles, portion.hit_scores.tolist(), bits, evalues, strict=True)
    for titles, score, bit_score, evalue in columns:
        title = _shortened(titles[0])
        if has_statistics:
            shown = str(score) if bit_score is None else numbers.bit_score_text(bit_score)
            yield f"{title:{width}}{shown:7} {numbers.evalue_text(evalue)}"
        else:
            yield f"{title:{width}}{score}"


def _hits(portion: AlignedPortion) -> Iterator[str]:
    """Yield the text of each hit of a portion."""
    alignments = portion.by_hit(_alignments(portion))
    for titles, length, texts in zip(portion.titles, portion.subject_lengths.tolist(), alignments, strict=True):
        lines = _wrapped(">" + titles[0])
        for title in titles[1:]:
            lines += _wrapped(" " + title)
        heading = "\n".join(lines)
        yield f"\n{heading}\nLength={length}\n\n" + "\n".join(texts)


def _alignments(portion: AlignedPortion) -> list[str]:
    """Return the text of each alignment of a portion."""
    found = portion.alignments
    columns = zip(
        _score_lines(portion),
        found.length.tolist(),
        found.identities.tolist(),
        found.positives.tolist(),
        found.gaps.tolist(),
        portion.rows,
        _sides(portion.query_spans, portion.query_frames),
        _sides(portion.subject_spans, portion.subject_frames),
        np.maximum(portion.query_spans[1], portion.subject_spans[1]).tolist(),
        _frame_lines(portion),
        strict=True,
    )
    return [
        f"{score}\n Identities = {_share(identities, length)}, Positives = {_share(positives, length)}, "
        f"Gaps = {_share(gaps, length)}\n{frames}\n{_blocks(rows, query, subject, largest)}"
        for score, length, identities, positives, gaps, rows, query, subject, largest, frames in columns
    ]


_Side = tuple[int, int]
"""Where a row of an alignment begins: the place before its first residue, and how its numbers go on."""


def _sides(spans: tuple[IntArray, IntArray], frames: IntArray) -> list[_Side]:
    """Return where each row of one side begins: at the first nucleotide, or the last where it is read backwards."""
    at = np.where(frames < 0, spans[1], spans[0])
    return list(zip(at.tolist(), np.where(frames == 0, 1, CODON * np.sign(frames)).tolist(), strict=True))


def _frame_lines(portion: AlignedPortion) -> list[str]:
    """Return the line that names the frames of each alignment; nothing of proteins."""
    if portion.result.program == "blastp":
        return [""] * len(portion)
    pairs = zip(portion.query_frames.tolist(), portion.subject_frames.tolist(), strict=True)
    return [f" Frame = {'/'.join(f'{frame:+d}' for frame in frames if frame)}\n" for frames in pairs]


def _numbers(at: int, step: int, letters: str) -> tuple[int, int, int]:
    """Return the first and the last number of some letters of a row, and where the next ones begin."""
    if step == 1:
        following = at + len(letters) - letters.count("-")
        return at + (following > at), following, following
    late, early = letters.count(SHIFT_MARKS["F"]), letters.count(SHIFT_MARKS["R"])
    n = len(letters) - letters.count("-") - late - early
    following = at + n * step + (late - early) * (1 if step > 0 else -1)
    if step > 0:
        return at + (following > at), following, following
    return at + (following == at), following + 1, following


def _share(part: int, length: int) -> str:
    return f"{part}/{length} ({numbers.whole_percentage(part, length)}%)"


def _score_lines(portion: AlignedPortion) -> Iterator[str]:
    has_statistics = portion.result.statistics is not None
    for score, bits, evalue, z_score, published in zip(
        portion.scores.tolist(), *portion.numbers.optional, strict=True
    ):
        if not has_statistics:
            yield f" Score = {score}"
        elif bits is None:
            shown = numbers.z_score_text(z_score)
            yield f" Score = {score},  Z-score = {shown},  Expect = {numbers.evalue_text(evalue)}"
        else:
            beside = "" if published is None else f",  Published Expect = {numbers.evalue_text(published)}"
            expected = numbers.evalue_text(evalue)
            yield f" Score = {numbers.bit_score_text(bits)} bits ({score}),  Expect = {expected}{beside}"


def _blocks(rows: Rows, query: _Side, subject: _Side, largest: int) -> str:
    """Cut the rows of an alignment into blocks, coordinates on either side."""
    top, middle, bottom = rows
    (query_at, query_step), (subject_at, subject_step) = query, subject
    width = len(str(largest))
    indent = " " * (len("Query  ") + width + 2)
    blocks = []
    for start in range(0, len(top), LETTERS_PER_LINE):
        end = start + LETTERS_PER_LINE
        above, below = top[start:end], bottom[start:end]
        query_from, query_to, query_at = _numbers(query_at, query_step, above)
        subject_from, subject_to, subject_at = _numbers(subject_at, subject_step, below)
        blocks.append(
            f"Query  {query_from:<{width}}  {above}  {query_to}\n"
            f"{indent}{middle[start:end]}\n"
            f"Sbjct  {subject_from:<{width}}  {below}  {subject_to}\n\n"
        )
    return "".join(blocks)


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
    yield f"Statistics: {headers.statistics_name(statistics, run.program)}"
