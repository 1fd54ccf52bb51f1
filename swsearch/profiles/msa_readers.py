"""Readers of alignments: A3M, aligned FASTA, Stockholm and Clustal.

The first sequence is the query; its residues are the columns. Where it has a gap, residues of the others are
insertions. A name such as ``P12345/17-92`` gives the aligned part of a sequence, if the numbers fit its residues.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import BLANK, ILLEGAL, PROTEIN, ByteArray
from swsearch.blocks import IntArray
from swsearch.profiles.query_alignment import GAP, QueryAlignment
from swsearch.profiles.text_lines import TextFile

GAP_CHARACTERS = "-.~_"
"""Characters of gaps in aligned formats."""

_RANGE = re.compile(r"(.+)/([0-9]{1,9})-([0-9]{1,9})")

_NO_SEQUENCE = re.compile(r"(ss|sa|aa)_(pred|conf|dssp|2dssp)\b|Consensus$|.*_consensus$")
"""Names of A3M's records that hold a structure, its confidence or the consensus."""

_COLABFOLD = re.compile(r"#([0-9]+(?:,[0-9]+)*)\t[0-9]+(?:,[0-9]+)*\s*")

_A3M_HINT = "in A3M upper-case letters and '-' are columns, lower-case letters are insertions"


@dataclass
class AlignmentRow:
    """A sequence as a file has it: its name, its pieces, and the index of the line where it begins."""

    identifier: str
    description: str
    at: int
    pieces: list[str] = field(default_factory=list)

    @property
    def letters(self) -> str:
        """All of it, without blanks."""
        return "".join("".join(self.pieces).split())


def read_a3m(text: TextFile) -> list[QueryAlignment]:
    """Read alignments in A3M, each of which may begin with a line of comment, ``#``."""
    return [_place_a3m(text, rows) for rows in _headed_rows(text, "A3M")]


def read_aligned_fasta(text: TextFile) -> list[QueryAlignment]:
    """Read an alignment in FASTA: all sequences are equally long with their gaps."""
    return [_place_aligned(text, rows) for rows in _headed_rows(text, "FASTA")]


def _headed_rows(text: TextFile, format_: str) -> list[list[AlignmentRow]]:
    """Read the sequences below header lines, by alignment; in A3M a line with ``#`` begins another alignment."""
    alignments: list[list[AlignmentRow]] = []
    begins = True
    for k, line in enumerate(text.lines):
        if line.startswith("#") and format_ == "A3M":
            begins = True
            head = _COLABFOLD.fullmatch(line)
            if head and "," in head[1]:
                n = head[1].count(",") + 1
                text.fail(
                    f"an alignment of {n} chains together, expected one chain; give each chain's own alignment", k
                )
        elif line.startswith(">"):
            if begins:
                alignments.append([])
            begins = False
            alignments[-1].append(_make_row(text, line[1:], k))
        elif line.strip():
            if not alignments or begins:
                text.fail("letters stand before the first name, expected a line that begins with '>'", k)
            alignments[-1][-1].pieces.append(line)
    if not alignments:
        text.fail(
            f"no sequences, expected an alignment in {format_}: lines with '>' and a name, and sequences below them"
        )
    return alignments


def read_stockholm(text: TextFile) -> list[QueryAlignment]:
    """Read alignments in Stockholm format; of what is annotated, only the descriptions of sequences are taken."""
    alignments: list[QueryAlignment] = []
    rows: dict[str, AlignmentRow] | None = None
    described: dict[str, str] = {}
    for k, line in enumerate(text.lines):
        words = line.split(None, 1)
        if line.startswith("# STOCKHOLM"):
            if rows is not None:
                text.fail("a new alignment begins here, expected '//' after the last one", k)
            rows, described = {}, {}
        elif not words:
            continue
        elif rows is None:
            text.fail("expected '# STOCKHOLM 1.0' before an alignment", k)
        elif words[0] == "//":
            if not rows:
                text.fail("an alignment without sequences, expected lines with a name and a sequence", k)
            for row in rows.values():
                row.description = described.get(row.identifier, "")
            alignments.append(_place_aligned(text, rows.values()))
            rows = None
        elif line.startswith("#"):
            parts = line.split(None, 3)
            if parts[0] == "#=GS" and len(parts) == 4 and parts[2] == "DE":
                described[parts[1]] = (
                    f"{described[parts[1]]} {parts[3]}" if parts[1] in described else parts[3].strip()
                )
        else:
            if len(words) != 2:
                text.fail("expected a name and a sequence, or '//' at the end of the alignment", k)
            rows.setdefault(words[0], AlignmentRow(words[0], "", k)).pieces.append(words[1])
    if rows is not None:
        text.ends_early("'//' at the end of a Stockholm alignment")
    if not alignments:
        text.fail("no alignment, expected '# STOCKHOLM 1.0' in the first line")
    return alignments


def read_clustal(text: TextFile) -> list[QueryAlignment]:
    """Read an alignment in Clustal format: blocks of lines with a name and a part of its sequence."""
    rows: dict[str, AlignmentRow] = {}
    started = False
    for k, line in enumerate(text.lines):
        if not started:
            started = bool(line.strip())  # the head: CLUSTAL W, MUSCLE and others
        elif line.strip() and not line[0].isspace():
            words = line.split()
            if len(words) == 3 and words[2].isdigit():  # residues so far
                words.pop()
            if len(words) != 2:
                text.fail("expected a name and a part of its sequence, or a line of blanks and marks", k)
            rows.setdefault(words[0], AlignmentRow(words[0], "", k)).pieces.append(words[1])
    if not rows:
        text.fail("no sequences, expected a head such as CLUSTAL and blocks of lines with a name and a sequence")
    pieces = {len(row.pieces) for row in rows.values()}
    if len(pieces) > 1:
        short = min(rows.values(), key=lambda row: len(row.pieces))
        problem = f"{len(short.pieces)} lines of its sequence, expected {max(pieces)}, one in each block"
        text.fail(f"{problem}; the file may be truncated, fetch or make it again", short.at, short.identifier)
    return [_place_aligned(text, rows.values())]


def _make_row(text: TextFile, header: str, at: int) -> AlignmentRow:
    """Return an empty row for a header line."""
    identifier, _, description = header.strip().partition(" ")
    if "\t" in identifier:
        identifier, _, description = header.strip().partition("\t")
    if not identifier:
        text.fail("a header without an identifier, expected a word after '>'", at)
    return AlignmentRow(identifier, description.strip(), at)


@dataclass
class _PlacedRow:
    """Residues of a sequence, and the columns of the file in which, or before which, they stand."""

    row: AlignmentRow
    codes: ByteArray
    places: IntArray
    in_columns: npt.NDArray[np.bool_]


def _place_a3m(text: TextFile, rows: list[AlignmentRow]) -> QueryAlignment:
    """Place the letters of A3M."""
    placed: list[_PlacedRow] = []
    n_columns = 0
    for row in rows:
        if _NO_SEQUENCE.match(row.identifier):
            continue
        data = _bytes(text, row, ".")
        inserted = (data >= ord("a")) & (data <= ord("z"))
        before = np.cumsum(~inserted)
        n = int(before[-1]) if len(before) else 0
        if placed and n != n_columns:
            first = placed[0].row.identifier
            text.fail(f"{n} columns, expected {n_columns} as of {first}; {_A3M_HINT}", row.at, row.identifier)
        n_columns = n
        is_residue = data != ord("-")
        codes = PROTEIN.encode_table[data[is_residue]]
        places: IntArray = (before - ~inserted)[is_residue]
        placed.append(_PlacedRow(row, codes, places, ~inserted[is_residue]))
    if not placed:
        text.fail("no sequences beside annotation, expected a query first", rows[0].at, rows[0].identifier)
    return _anchor_to_query(text, placed, n_columns)


def _place_aligned(text: TextFile, rows: Iterable[AlignmentRow]) -> QueryAlignment:
    """Place the letters of sequences that are equally long with their gaps."""
    placed: list[_PlacedRow] = []
    n_columns = 0
    for row in rows:
        data = _bytes(text, row)
        if placed and len(data) != n_columns:
            first = placed[0].row.identifier
            problem = f"{len(data)} columns, expected {n_columns} as of {first}: aligned sequences are equally long"
            text.fail(f"{problem}; name the format if this is A3M", row.at, row.identifier)
        n_columns = len(data)
        places = np.flatnonzero(data != ord("-"))
        codes = PROTEIN.encode_table[data[places]]
        placed.append(_PlacedRow(row, codes, places, np.ones(len(places), dtype=bool)))
    return _anchor_to_query(text, placed, n_columns)


def _bytes(text: TextFile, row: AlignmentRow, ignored: str = "") -> ByteArray:
    """Return a row's characters, every gap as ``-``; raise for what is neither gap nor letter."""
    letters = row.letters.translate(
        str.maketrans({**dict.fromkeys(GAP_CHARACTERS, "-"), **dict.fromkeys(ignored, None)})
    )
    data = np.frombuffer(letters.encode("utf-8"), dtype=np.uint8)
    wrong = (PROTEIN.encode_table[data] >= BLANK) & (data != ord("-"))
    if wrong.any():
        byte = int(data[wrong.argmax()])
        problem = PROTEIN.describe_illegal_byte(byte)
        assert PROTEIN.encode_table[byte] == ILLEGAL  # blanks are gone
        text.fail(problem, row.at, row.identifier)
    return data


def _anchor_to_query(text: TextFile, placed: list[_PlacedRow], n_columns: int) -> QueryAlignment:
    """Return the alignment with the query's residues as its columns."""
    query = placed[0]
    if not len(query.codes):
        problem = "the first sequence has no residues, expected the query there"
        text.fail(f"{problem}; its residues are the columns", query.row.at, query.row.identifier)
    # how many of the query's residues stand before each place: in columns before it, and inserted before or at it
    in_column = np.bincount(query.places[query.in_columns], minlength=n_columns + 1)
    inserted = np.bincount(query.places[~query.in_columns], minlength=n_columns + 1)
    column_of = np.cumsum(in_column) - in_column + np.cumsum(inserted)
    columns = np.full((len(placed), len(query.codes)), GAP, dtype=np.uint8)
    columns[0] = query.codes
    inserted_before: dict[int, IntArray] = {}
    inserted_codes: list[ByteArray] = []
    for k, one in enumerate(placed[1:], 1):
        stays = one.in_columns & (in_column[one.places] > 0)
        columns[k, column_of[one.places[stays]]] = one.codes[stays]
        if stays.all():
            continue
        before = column_of[one.places] - np.where(one.in_columns, 0, inserted[one.places])
        inserted_before[k] = before[~stays]
        inserted_codes.append(one.codes[~stays])
    names, starts_, ends_ = zip(*map(_part, placed), strict=True)
    return QueryAlignment(
        list(names),
        [one.row.description for one in placed],
        columns,
        np.array(starts_, dtype=np.int64),
        np.array(ends_, dtype=np.int64),
        insertion_runs(inserted_before),
        np.concatenate([np.zeros(0, dtype=np.uint8), *inserted_codes]),
        np.full(len(placed), -1, dtype=np.int64),
        np.array([0.0] + [np.nan] * (len(placed) - 1)),
        np.zeros(len(placed), dtype=np.int64),
    )


def insertion_runs(before: Mapping[int, IntArray]) -> IntArray:
    """Return the insertions of a `QueryAlignment`, shape (n, 4), from the column after each inserted residue."""
    nothing = np.zeros(0, dtype=np.int64)
    rows = np.concatenate([nothing, *(np.full(len(columns), row) for row, columns in before.items())])
    columns = np.concatenate([nothing, *before.values()])
    starts = np.flatnonzero((np.diff(rows, prepend=-1) != 0) | (np.diff(columns, prepend=-1) != 0))
    bounds = np.append(starts, len(rows))
    return np.column_stack([rows[starts], columns[starts], bounds[:-1], bounds[1:]])


def _part(one: _PlacedRow) -> tuple[str, int, int]:
    """Return a sequence's name, and which of its residues are here."""
    n = len(one.codes)
    match = _RANGE.fullmatch(one.row.identifier)
    if match and int(match[2]) >= 1 and int(match[3]) - int(match[2]) + 1 == n:
        return match[1], int(match[2]) - 1, int(match[3])
    return one.row.identifier, 0, n


def rows_of(alignment: QueryAlignment) -> Iterator[str]:
    """Yield the sequences of an alignment as A3M has them; an inserted ``*``, which has no lower case, is ``.``."""
    bounds = np.searchsorted(alignment.insertions[:, 0], np.arange(len(alignment) + 1))
    letters = PROTEIN.decode_table.copy()
    letters[GAP] = ord("-")
    for k in range(len(alignment)):
        row = letters[alignment.columns[k]].tobytes().decode("ascii")
        parts, last = [], 0
        for _, before, begin, end in alignment.insertions[bounds[k] : bounds[k + 1]].tolist():
            inserted = PROTEIN.decode(alignment.inserted[begin:end]).lower().replace("*", ".")
            parts += [row[last:before], inserted]
            last = before
        yield "".join([*parts, row[last:]])
