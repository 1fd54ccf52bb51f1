"""Score tables by letter pair, from files and from Python.

Letters that a table lacks are completed. This module reports errors of a table's form; `swsearch.scoring` checks its
letters and values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import DNA, PROTEIN
from swsearch.errors import InputError, OptionError, format_value

ScoreTable = dict[tuple[str, str], float]
"""Scores by two letters, the query's first."""

MATRIX_BYTES = 1 << 20
"""Most bytes of a matrix file; the longest of Biopython's have 30 kB."""

_AMBIGUOUS = {"B": "DN", "J": "IL", "Z": "EQ"}
"""Ambiguous amino acids and what they stand for."""

_AMBIGUOUS_BASES = {
    "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC",
    "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip
"""IUPAC codes of ambiguous bases."""


def read_file(path: str) -> str | None:
    """Return the text of a matrix file; None where a name is no file's."""
    try:
        if Path(path).is_dir() and not is_path(path):
            return None
        with Path(path).open("rb") as file:
            data = file.read(MATRIX_BYTES + 1)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # a name may be too long for a file, or hold a zero byte
        if not is_path(path) and not isinstance(error, PermissionError):
            return None
        problem = "is a directory" if isinstance(error, IsADirectoryError) else "cannot be read"
        why = "" if isinstance(error, IsADirectoryError) else f" ({getattr(error, 'strerror', None) or error})"
        raise InputError(f"matrix {path}: {problem}{why}, expected a file in NCBI's format") from error
    if len(data) > MATRIX_BYTES or b"\0" in data:
        what = "holds binary data" if b"\0" in data else f"is larger than {MATRIX_BYTES >> 20} MiB"
        raise InputError(f"matrix {path}: {what}, expected text in NCBI's format")
    return data.decode("utf-8-sig", errors="replace")


def is_path(name: str) -> bool:
    """Return whether a name can only be a file."""
    return "/" in name or "\\" in name


def entries_of(source: Any) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of letters, and scores, of an array or a mapping."""
    letters, scores = None, source
    if isinstance(source, Mapping):
        yield from source.items()
        return
    if isinstance(source, np.ndarray) and hasattr(source, "alphabet"):
        letters = source.alphabet
    elif isinstance(source, tuple) and len(source) == 2:
        letters, scores = source if isinstance(source[1], np.ndarray) else source[::-1]
    if not isinstance(scores, np.ndarray) or not isinstance(letters, (str, list, tuple)):
        raise OptionError(
            "matrix", source, "a name, a file, a mapping of pairs of letters to scores, an array of Biopython's, or "
            "letters with an array: ('ARND...', array)",
        )  # fmt: skip
    if scores.shape != (len(letters), len(letters)):
        raise InputError(
            f"matrix: got an array of shape {scores.shape} with {len(letters)} letters, expected a row and a column "
            "for each letter"
        )
    for row, values in zip(letters, np.asarray(scores), strict=True):
        yield from (((row, column), value) for column, value in zip(letters, values, strict=True))


def complete_symmetry(entries: Iterable[tuple[Any, Any]]) -> ScoreTable:
    """Make a table of pairs and scores; what is given for one order of two letters stands for the other too."""
    table: ScoreTable = {}
    for pair, value in entries:
        if not isinstance(pair, (tuple, str)) or [len(one) if isinstance(one, str) else 0 for one in pair] != [1, 1]:
            raise InputError(
                f"matrix: got {format_value(pair)} as a pair of letters, expected two letters such as ('A', 'R')"
            )
        a, b = (str(letter).upper() for letter in pair)
        if (a, b) in table:
            raise InputError(f"matrix: got more than one score for {a} with {b}; case makes no difference")
        try:
            table[a, b] = float(value)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"matrix: {a} with {b} scores {format_value(value)}, expected a whole number") from None
    return {**{(b, a): score for (a, b), score in table.items()}, **table}


def table_from_text(text: str, name: str) -> ScoreTable:
    """Read a matrix in NCBI's format: a line of column letters, then one line per row; ``#`` begins a comment."""
    columns: list[str] = []
    rows: set[str] = set()
    table: ScoreTable = {}
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split("#")[0].split()
        if not fields:
            continue
        place = f"matrix {name}: line {number}"
        if not columns:
            columns = [letter.upper() for letter in fields]
            if any(len(letter) != 1 for letter in columns):
                raise InputError(f"{place}: expected the column letters, got {format_value(line.strip())}")
            if len(set(columns)) < len(columns):
                raise InputError(f"{place}: a column letter stands twice, expected each letter once")
            continue
        row, values = fields[0].upper(), fields[1:]
        if len(row) != 1 or len(values) != len(columns):
            raise InputError(
                f"{place}: expected a row letter and {len(columns)} scores, got {len(values)} scores "
                f"after {format_value(fields[0])}"
            )
        if row in rows:
            raise InputError(f"{place}: row {row} stands twice, expected each letter once")
        rows.add(row)
        for column, value in zip(columns, values, strict=True):
            try:
                table[row, column] = float(value)
            except ValueError:
                raise InputError(f"{place}: {format_value(value)} is no score, expected a whole number") from None
    if not table:
        raise InputError(
            f"matrix {name}: no matrix found, expected NCBI's format (column letters, then one row per letter)"
        )
    return table


def complete_protein(table: ScoreTable, core: str) -> ScoreTable:
    """Add the letters that blastp knows by its rule: B, J, Z as the mean, X -1, U as C, O as X, ``*`` worst."""
    worst = min(-1.0, *(table[a, b] for a in core for b in core))
    alias = {"U": "C", "O": "X"}

    def mean(a: str, b: str) -> float:
        pairs = [table[x, y] for x in _AMBIGUOUS.get(a, a) for y in _AMBIGUOUS.get(b, b)]
        return math.floor(sum(pairs) / len(pairs) + 0.5)

    def score(a: str, b: str) -> float:
        if (a, b) in table:
            return table[a, b]
        if (b, a) in table:
            return table[b, a]
        if "*" in (a, b):
            return 1.0 if a == b else worst
        a, b = alias.get(a, a), alias.get(b, b)
        if (a, b) in table:
            return table[a, b]
        return -1.0 if "X" in (a, b) else mean(a, b)

    return {(a, b): score(a, b) for a in PROTEIN.letters for b in PROTEIN.letters}


def complete_dna(table: ScoreTable) -> ScoreTable:
    """Add U as T, and ambiguous bases as the mean over what they stand for."""

    def score(a: str, b: str) -> float:
        a, b = a.replace("U", "T"), b.replace("U", "T")
        if (a, b) in table:
            return table[a, b]
        pairs = [table[x, y] for x in _AMBIGUOUS_BASES.get(a, a) for y in _AMBIGUOUS_BASES.get(b, b)]
        return math.floor(sum(pairs) / len(pairs))

    return {(a, b): score(a, b) for a in DNA.letters for b in DNA.letters}


MAX_GAP_COST = 10_000
"""Largest gap cost accepted: far above any use, far below what a 16-bit lane holds."""

MAX_ENTRY = 127
"""Largest magnitude of a matrix entry; profiles hold int8."""


def parse_gap_cost(name: str, value: Any) -> Fraction:
    """Return a gap cost, of a fraction as its decimals say."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not is_number or not value >= 0:  # nan is none
        raise OptionError(name, value, "a number >= 0 (costs are positive here)")
    if value > MAX_GAP_COST:
        raise OptionError(name, value, f"a number <= {MAX_GAP_COST}")
    return Fraction(int(value)) if value == int(value) else Fraction(str(float(value)))


def scaled_scores(scores: npt.NDArray[np.int32], n_letters: int, scale: int, name: str) -> npt.NDArray[np.int32]:
    """Return a matrix, shape (32, 32), with the scores of letters times a factor."""
    largest = max(int(np.abs(scores[:n_letters, :n_letters]).max(initial=0)), 1)
    if largest * scale > MAX_ENTRY:
        expected = f"fractions of {MAX_ENTRY // largest} parts at most"
        why = f"scores of {name} are multiplied with them, from {largest} up to {MAX_ENTRY}"
        raise OptionError("gap_open, gap_extend", f"fractions of {scale:,} parts", expected, why)
    scaled = scores.copy()
    scaled[:n_letters, :n_letters] *= scale
    return scaled
