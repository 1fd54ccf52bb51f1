"""BLAST's pairwise format (0), for reading.

A list of the hits, and then each alignment in rows of 60 columns.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

import numpy as np

from swsearch.blocks import FloatArray, IntArray
from swsearch.frameshift_alignment import SHIFT_MARKS
from swsearch.report import base, headers
from swsearch.report.base import Writer
from swsearch.results import SearchResult
from swsearch.results.hit_batches import AlignedHitBatch, aligned_batches, hit_batches
from swsearch.run_info import RunInfo
from swsearch.statistics.karlin_altschul import KarlinAltschul
from swsearch.statistics.methods import HitStatistics
from swsearch.statistics.null_model import FitSettings
from swsearch.translation.genetic_codes import CODON

LETTERS_PER_LINE = 60
"""Alignment columns per line."""

TITLE_WIDTH = 68
"""Characters of a title in the list of hits, and of a line of a wrapped title, as in blastp's report."""


_LINE = re.compile(rf"[^ ](?:.{{0,{TITLE_WIDTH - 2}}}[^ ])?(?= |$)|[^ ]+")
"""Pattern of a line: as many words as fit it, or a single longer word."""


class PairwiseWriter(Writer):
    """A report for reading; coordinates count from 1 and include the end.

    Fitted statistics of global and semi-global alignment have no bits, so raw scores stand in their place; a note
    with each query says what was fitted. Without statistics (none asked for, or a database too small for a fit) raw
    scores stand alone, and a note says why. An alignment's side without residues in a row of 60 columns shows the
    number of the residue before it. Of translated DNA a line names the frames, and numbers are of nucleotides.
    """

    _has_statistics = False

    def begin(self, run: RunInfo) -> None:
        """Write program, version and database."""
        super().begin(run)
        self._write_lines(
            f"swsearch {run.version}",
            "",
            *_wrap(f"Database: {headers.one_line(run.database_name)}"),
            f"           {run.database_subjects:,} sequences; {run.database_residues:,} total letters",
            *(_wrap(f"Options: {headers.describe_options(run.options)}") if run.options else []),
            "",
        )

    def write(self, result: SearchResult) -> None:
        """Write the list of hits and the alignments of one query."""
        self._has_statistics |= result.statistics is not None
        self._write_lines(*_query_heading(result))
        if not result.hits:
            self._write_lines("", "***** No hits found *****", "", "")
            return
        self._stream.writelines(f"{line}\n" for line in _hit_list(result))
        for batch in aligned_batches(result):
            self._stream.write("".join(_hits(batch)))

    def end(self) -> None:
        """Write statistics, database and scoring system."""
        self._write_lines(*_closing_lines(self._run, self._has_statistics))


def _wrap(text: str) -> list[str]:
    """Wrap a title; words stay whole, however long, so that identifiers can be searched for."""
    if text.isascii() and text.isprintable() and text[:1].strip():  # the same, in a tenth of the time
        return _LINE.findall(text)
    return textwrap.wrap(text, TITLE_WIDTH, break_long_words=False, break_on_hyphens=False) or [""]


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= TITLE_WIDTH else text[: TITLE_WIDTH - 3] + "..."


def _query_heading(result: SearchResult) -> Iterator[str]:
    title = headers.one_line(f"{result.query_id} {result.query_description}")
    yield ""
    yield from _wrap(f"Query= {title}")
    yield ""
    yield f"Length={result.query_length}"
    if note := headers.statistics_note(result):
        yield ""
        yield from _wrap(f"Note: {note}")
    if result.statistics is not None and result.effective_residues != result.database_residues:
        yield f"E-values refer to a database of {result.effective_residues:,} letters"


def _hit_list(result: SearchResult) -> Iterator[str]:
    width, has_statistics = TITLE_WIDTH + 2, result.statistics is not None
    if has_statistics:
        unit = " (Raw)" if np.isnan(result.table.statistics.bit_scores[0]) else "(Bits)"
        yield f"{'':{width}}Score     E"
        yield f"{'Sequences producing significant alignments:':{width - 1}}{unit}  Value"
    else:
        yield f"{'':{width}}Score"
        yield f"{'Best sequences:':{width}}(Raw)"
    yield ""
    for batch in hit_batches(result):
        numbers = _number_texts(batch.hit_statistics)
        columns = zip(headers.subject_titles(batch), batch.hit_scores.tolist(), *numbers, strict=True)
        for titles, score, bits, evalue, *_ in columns:
            title = _shorten(titles[0])
            if has_statistics:
                yield f"{title:{width}}{score if bits == base.NO_NUMBER else bits!s:7} {evalue}"
            else:
                yield f"{title:{width}}{score}"
    yield ""


def _number_texts(statistics: HitStatistics) -> list[list[str]]:
    """Return bit scores, E-values, z-scores and published E-values as the report prints them."""
    forms: list[tuple[FloatArray, base.Form]] = [
        (statistics.bit_scores, "bit_score"),
        (statistics.evalues, "short_evalue"),
        (statistics.z_scores, ".1f"),
        (statistics.evalues_published, "short_evalue"),
    ]
    return [base.number_texts(values, form) for values, form in forms]


def _hits(batch: AlignedHitBatch) -> Iterator[str]:
    """Yield the text of each hit of a batch."""
    alignments = batch.by_hit(_alignments(batch))
    lengths = batch.subject_lengths.tolist()
    for titles, length, texts in zip(headers.subject_titles(batch), lengths, alignments, strict=True):
        lines = _wrap(">" + titles[0])
        for title in titles[1:]:
            lines += _wrap(" " + title)
        heading = "\n".join(lines)
        yield f"\n{heading}\nLength={length}\n\n" + "\n".join(texts)


def _alignments(batch: AlignedHitBatch) -> list[str]:
    """Return the text of each alignment of a batch."""
    alignments = batch.alignments
    counts = alignments.identities, alignments.positives, alignments.gaps
    columns = zip(
        _score_lines(batch),
        *(_shares(each, alignments.length) for each in counts),
        zip(*batch.rows, strict=True),
        _sides(batch.query_spans, batch.query_frames),
        _sides(batch.subject_spans, batch.subject_frames),
        np.maximum(batch.query_spans[1], batch.subject_spans[1]).tolist(),
        _frame_lines(batch),
        strict=True,
    )
    return [
        f"{score}\n Identities = {identities}, Positives = {positives}, Gaps = {gaps}\n{frames}\n"
        f"{_blocks(rows, query, subject, largest)}"
        for score, identities, positives, gaps, rows, query, subject, largest, frames in columns
    ]


_Side = tuple[int, int]
"""Numbering of a row of an alignment: the place before its first residue, and the step of its numbers."""


def _sides(spans: tuple[IntArray, IntArray], frames: IntArray) -> list[_Side]:
    """Return where each row of one side begins: at the first nucleotide, or the last where it is read backwards."""
    at = np.where(frames < 0, spans[1], spans[0])
    return list(zip(at.tolist(), np.where(frames == 0, 1, CODON * np.sign(frames)).tolist(), strict=True))


def _frame_lines(batch: AlignedHitBatch) -> list[str]:
    """Return the line that names the frames of each alignment; nothing of proteins."""
    if batch.result.program == "blastp":
        return [""] * len(batch)
    pairs = zip(batch.query_frames.tolist(), batch.subject_frames.tolist(), strict=True)
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


def _shares(parts: IntArray, lengths: IntArray) -> list[str]:
    """Return parts of alignments with their percentages."""
    columns = parts.tolist(), lengths.tolist(), base.whole_percentages(parts, lengths).tolist()
    return [f"{part}/{length} ({percentage}%)" for part, length, percentage in zip(*columns, strict=True)]


def _score_lines(batch: AlignedHitBatch) -> Iterator[str]:
    has_statistics = batch.result.statistics is not None
    columns = zip(batch.scores.tolist(), *_number_texts(batch.statistics), strict=True)
    for score, bits, evalue, z_score, published in columns:
        if not has_statistics:
            yield f" Score = {score}"
        elif bits == base.NO_NUMBER:
            yield f" Score = {score},  Z-score = {z_score},  Expect = {evalue}"
        else:
            beside = "" if published == base.NO_NUMBER else f",  Published Expect = {published}"
            yield f" Score = {bits} bits ({score}),  Expect = {evalue}{beside}"


def _blocks(rows: tuple[str, str, str], query: _Side, subject: _Side, largest: int) -> str:
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


def _closing_lines(run: RunInfo, has_statistics: bool) -> Iterator[str]:
    statistics = run.statistics
    if isinstance(statistics, FitSettings) and not has_statistics:
        statistics = None  # no query allowed a fit
    yield ""
    if isinstance(statistics, KarlinAltschul):
        values = (getattr(statistics, name) for name in ("lambda_", "k", "h", "a", "alpha", "sigma"))
        yield "Lambda      K        H        a         alpha    sigma"
        yield " ".join(f"{value:#8.3g}" for value in values)
        yield ""
    yield from _wrap(f"  Database: {headers.one_line(run.database_name)}")
    yield f"  Number of letters in database: {run.database_residues:,}"
    yield f"  Number of sequences in database: {run.database_subjects:,}"
    yield ""
    yield f"Matrix: {headers.one_line(run.scoring.matrix.name)}"
    yield f"Gap Penalties: Existence: {run.scoring.gap_open}, Extension: {run.scoring.gap_extend}"
    yield f"Mode: {run.mode}, exact"
    yield f"Statistics: {headers.statistics_name(statistics, run.program)}"
