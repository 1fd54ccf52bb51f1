"""Report formats of `swsearch align`.

They are EMBOSS-like blocks, CIGAR, SAM, PAF, JSON lines and scores.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import IO, NamedTuple

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.alphabet import DNA
from swsearch.errors import InputError, OptionError
from swsearch.inputs import Query
from swsearch.pipeline.pairs import PairwiseJob
from swsearch.report import format_for_path, headers, sam
from swsearch.report.base import StreamWriter, did_you_mean

WIDTH = 50
"""Alignment columns of a block, as EMBOSS has them."""

PREFIX_WIDTH = 21
"""Name, number and blanks before a block's columns: parsers of EMBOSS's format cut there."""


@dataclass(frozen=True)
class PairRun(PairwiseJob):
    """The pairs that a report is of.

    Parameters
    ----------
    version : str
        swsearch's version.
    """

    version: str


class ScoredPair(NamedTuple):
    """A pair with its alignment, or with its score if the writer needs no alignments."""

    query: Query
    subject: Query
    result: PairAlignment | int

    @property
    def alignment(self) -> PairAlignment:
        """The alignment."""
        assert isinstance(self.result, PairAlignment), "this format needs alignments"
        return self.result

    @property
    def names(self) -> tuple[str, str]:
        """Identifiers as they are printed."""
        return headers.identifier(self.query.identifier), headers.identifier(self.subject.identifier)


class PairWriter(StreamWriter[PairRun, ScoredPair]):
    """Writes pairs in one format; `begin` raises `InputError` if the format cannot hold them."""

    def _write_fields(self, *fields: object) -> None:
        self._write_lines("\t".join(map(str, fields)))


class ScoreWriter(PairWriter):
    """One tab-separated line per pair: ids and score."""

    needs_alignments = False

    def write(self, pair: ScoredPair) -> None:
        """Write the line of one pair."""
        score = pair.result if isinstance(pair.result, int) else pair.result.score
        self._write_fields(*pair.names, self._run.recurrence.scoring.to_display(score))


class CigarWriter(PairWriter):
    """One tab-separated line per pair: ids, score, 1-based coordinates of both, CIGAR."""

    def write(self, pair: ScoredPair) -> None:
        """Write the line of one pair."""
        alignment = pair.alignment
        places = (alignment.query_start + 1, alignment.query_end, alignment.subject_start + 1, alignment.subject_end)
        self._write_fields(
            *pair.names, alignment.scoring.to_display(alignment.score), *places, alignment.cigar_string or "*"
        )


class JsonWriter(PairWriter):
    """One line of JSON per pair; coordinates are 0-based half-open."""

    def write(self, pair: ScoredPair) -> None:
        """Write the line of one pair."""
        alignment, recurrence = pair.alignment, self._run.recurrence
        to_display = alignment.scoring.to_display
        top, middle, bottom = alignment.rows()
        record = {
            "query": _sequence_facts(pair.query),
            "subject": _sequence_facts(pair.subject),
            "mode": recurrence.mode,
            "free_ends": recurrence.ends.names(),
            "matrix": headers.encodable(alignment.scoring.matrix.name),
            "gap_open": to_display(alignment.scoring.gap_open),
            "gap_extend": to_display(alignment.scoring.gap_extend),
            "score": to_display(alignment.score),
            **{
                name: getattr(alignment, name)
                for name in ("query_start", "query_end", "subject_start", "subject_end")
            },
            "alignment_length": alignment.length,
            **{name: getattr(alignment, name) for name in ("identities", "positives", "gaps")},
            "cigar": alignment.cigar_string,
            "query_row": top,
            "midline": middle,
            "subject_row": bottom,
        }
        self._write_lines(json.dumps(record))


def _sequence_facts(one: Query) -> dict[str, object]:
    identifier, description = headers.encodable(one.identifier), headers.encodable(one.description)
    return {"id": identifier, "description": description, "length": len(one.codes)}


class BlockWriter(PairWriter):
    """EMBOSS's srspair format, as needle and water print it: a header per pair, then blocks, 1-based.

    ``|`` marks an identity, ``:`` another pair that scores above 0, ``.`` any other pair. Free ends are not shown.
    The gap penalty is given as EMBOSS counts it: the cost of a gap's first residue.
    """

    def begin(self, run: PairRun) -> None:
        """Write the head that tells programs which format this is."""
        super().begin(run)
        scoring, rule = run.recurrence.scoring, "#" * 40
        gaps = f"{scoring.to_display(scoring.gap_open)} + {scoring.to_display(scoring.gap_extend)} a residue"
        self._write_lines(
            rule,
            "# Program: swsearch align",
            f"# Version: {run.version}",
            f"# Mode: {run.recurrence.describe_ends()}",
            f"# Gap cost: {gaps}",
            "# Align_format: srspair",
            rule,
            "",
        )

    def write(self, pair: ScoredPair) -> None:
        """Write the header and the blocks of one pair."""
        alignment, rule = pair.alignment, "#" + "=" * 39
        length, scoring = alignment.length, alignment.scoring
        names = [headers.identifier(_word(one.identifier)) for one in (pair.query, pair.subject)]

        def share(label: str, count: int) -> str:
            percent = 100 * count / length if length else 0.0
            return f"# {label}:{count:>{16 - len(label)}}/{length} ({percent:4.1f}%)"

        self._write_lines(
            rule,
            "#",
            "# Aligned_sequences: 2",
            f"# 1: {names[0]}",
            f"# 2: {names[1]}",
            f"# Matrix: {headers.one_line(scoring.matrix.name)}",
            f"# Gap_penalty: {scoring.to_display(scoring.gap_first):.1f}",
            f"# Extend_penalty: {scoring.to_display(scoring.gap_extend):.1f}",
            "#",
            f"# Length: {length}",
            share("Identity", alignment.identities),
            share("Similarity", alignment.positives),
            share("Gaps", alignment.gaps),
            f"# Score: {scoring.to_display(alignment.score):.1f}",
            "#",
            "#",
            rule,
            "",
            *blocks(alignment, *names),
            "",
        )

    def end(self) -> None:
        """Write two rules."""
        self._write_lines(*["#" + "-" * 39] * 2)


def _word(name: str) -> str:
    """Return a name without blanks: parsers read a block's lines as words."""
    return "".join(c if c.isprintable() and not c.isspace() else "_" for c in name) or "_"


def blocks(pair: PairAlignment, query_name: str, subject_name: str) -> list[str]:
    """Return the lines of the blocks; none for an alignment without columns."""
    top, _, bottom = pair.rows()
    marks = emboss_marks(pair)
    digits = max(len(str(max(len(pair.query), len(pair.subject)))), 6)
    name_width = PREFIX_WIDTH - digits - 2
    names = [name[:name_width].ljust(name_width) for name in (query_name, subject_name)]
    margin = " " * PREFIX_WIDTH
    lines = []
    i, j = pair.query_start, pair.subject_start
    for start in range(0, len(top), WIDTH):
        a, b = top[start : start + WIDTH], bottom[start : start + WIDTH]
        used_a, used_b = len(a) - a.count("-"), len(b) - b.count("-")
        lines += [
            f"{names[0]} {i + (used_a > 0):>{digits}} {a} {i + used_a:>{digits}}",
            f"{margin}{marks[start : start + WIDTH]}",
            f"{names[1]} {j + (used_b > 0):>{digits}} {b} {j + used_b:>{digits}}",
            "",
        ]
        i, j = i + used_a, j + used_b
    return lines


def emboss_marks(pair: PairAlignment) -> str:
    """Return EMBOSS's middle line."""
    a, b = pair.paired_codes
    marks = np.full(pair.length, ord(" "), dtype=np.uint8)
    similar = np.where(pair.scoring.matrix.scores[a, b] > 0, ord(":"), ord("."))
    marks[pair.column_ops == ord("M")] = np.where(pair.identical_pairs, ord("|"), similar)
    return marks.tobytes().decode("ascii")


class PairSamWriter(PairWriter):
    """SAM 1.6 with the tags AS (score), NM (differences) and, for DNA, MD (which subject letters differ).

    A read has one primary line, its first; those to further subjects are marked secondary, whatever their scores,
    since lines are written as they are found. A pair without a column of two residues is an unmapped read.
    """

    _last: Query | None = None

    def begin(self, run: PairRun) -> None:
        """Check names and letters, and write the header lines."""
        super().begin(run)
        self._check_names()
        self._write_fields("@HD", "VN:1.6", "SO:unsorted", "GO:query")
        for subject in run.subjects:
            if len(subject.codes):  # a reference without residues has no place in SAM, and nothing aligns to it
                self._write_fields("@SQ", f"SN:{subject.identifier}", f"LN:{len(subject.codes)}")
        how = headers.one_line(run.recurrence.describe())  # which names the matrix's file
        if run.recurrence.scoring.matrix.alphabet.name == "protein":
            how += f"; {sam.NO_PROTEIN_IN_BAM}"
        # in a field of @PG rather than in @CO, whose free text Biopython does not read
        self._write_fields("@PG", "ID:swsearch", "PN:swsearch", f"VN:{run.version}", f"DS:{how}")

    def _check_names(self) -> None:
        for subject in self._run.subjects:
            if not subject.identifier or sam.NOT_IN_REFERENCE.search(subject.identifier):
                raise _sam_error(
                    f"subject {subject.identifier!r} has a name that SAM does not allow for a reference (blanks, "
                    "commas, quotes, brackets, or a leading * or =); rename it"
                )
        (name, count), *_ = Counter(subject.identifier for subject in self._run.subjects).most_common(1)
        if count > 1:
            raise _sam_error(f"{count} subjects are named {name!r}, expected unique names; rename them")
        star = self._run.recurrence.scoring.matrix.alphabet.letters.find("*")
        for query in self._run.queries:
            beginning = f"query {query.identifier!r} has"
            fits = 1 <= len(query.identifier) <= sam.READ_NAME_LENGTH
            if not fits or sam.NOT_IN_READ.search(query.identifier):
                allowed = "at most 254 printable characters, no @"
                raise _sam_error(f"{beginning} a name that SAM does not allow for a read ({allowed}); rename it")
            stop = np.flatnonzero(query.codes == star)
            if len(stop):
                where = f"at position {stop[0] + 1}"
                raise _sam_error(f"{beginning} '*' {where}, which SAM does not allow in a sequence; remove it")

    def write(self, pair: ScoredPair) -> None:
        """Write the line of one pair."""
        flag = sam.SECONDARY if pair.query is self._last else 0
        self._last = pair.query
        alignment, aligned = pair.alignment, sam.LineValues.from_pair(pair.alignment)
        alphabet = alignment.scoring.matrix.alphabet
        tags = [f"MD:Z:{sam.md_tag(alignment)}"] if alphabet is DNA and aligned.has_pairs else []
        names, letters = (pair.query.identifier, pair.subject.identifier), alphabet.decode(pair.query.codes)
        self._stream.write(sam.sam_line(aligned, *names, flag, letters, *tags))


def _sam_error(problem: str) -> InputError:
    return InputError(f"outfmt sam: {problem}, or use --outfmt paf")


class PairPafWriter(PairWriter):
    """PAF (minimap2's): 12 columns, then AS:i (score), NM:i (differences) and cg:Z (CIGAR).

    Coordinates are 0-based half-open; the block length counts gaps. A pair without a column of two residues has
    ``*`` for its subject, as minimap2 writes it with --paf-no-hit.
    """

    def write(self, pair: ScoredPair) -> None:
        """Write the line of one pair."""
        self._stream.write(sam.paf_line(sam.LineValues.from_pair(pair.alignment), *pair.names))


PAIR_FORMATS: dict[str, type[PairWriter]] = {
    "pairwise": BlockWriter,
    "cigar": CigarWriter,
    "sam": PairSamWriter,
    "paf": PairPafWriter,
    "jsonl": JsonWriter,
    "score": ScoreWriter,
}
"""Every format of pairs and its writer."""


def check_format(name: str) -> None:
    """Raise `OptionError` if there is no such format."""
    if name not in PAIR_FORMATS:
        raise OptionError(
            "outfmt", name, f"one of {', '.join(PAIR_FORMATS)}", did_you_mean(name.lower(), PAIR_FORMATS, 1)
        )


def format_of_file(path: str | None) -> str:
    """Return the format that a file's name means: that of its extension, else blocks."""
    output_format = format_for_path(path or "")
    if output_format is not None and output_format.key == "15":
        remedy = "pairs are written as JSON lines"
        raise OptionError("output", path, "another extension, such as .jsonl", remedy)
    return output_format.key if output_format is not None and output_format.key in PAIR_FORMATS else "pairwise"


def create_pair_writer(name: str, stream: IO[str]) -> PairWriter:
    """Make the writer of a format."""
    check_format(name)
    return PAIR_FORMATS[name](stream)
