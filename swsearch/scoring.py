"""Substitution matrices, gap costs, query profiles and the bounds of lane widths.

Matrices have three sources. Eleven are shipped: the eight that blastp supports as blastp scores them, ambiguous
letters included (X is -1 with everything, U scores as C, O as X), and three of publications, completed by that rule.
Every other name is looked up in Biopython's ``substitution_matrices`` and completed likewise. A file in NCBI's
format, an array or a mapping is used as it is; only missing letters are completed.
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ALPHABETS, DNA, N_CODES, PROTEIN, Alphabet, ByteArray
from swsearch.errors import InputError, OptionError, check_choice, format_value
from swsearch.matrices import BLASTP_MATRICES, FALLBACK_GAP_COSTS, GAP_COSTS, MATRIX_ALPHABETS, PRESET_MATRICES
from swsearch.matrices.tables import (
    MAX_ENTRY,
    MAX_GAP_COST,
    ScoreTable,
    complete_dna,
    complete_protein,
    complete_symmetry,
    entries_of,
    is_path,
    parse_gap_cost,
    read_file,
    scaled_scores,
    table_from_text,
)
from swsearch.options.kinds import MODES, PRESETS, Preset
from swsearch.options.kinds import Mode as Mode  # noqa: PLC0414  # engines/gpu, whose hash its measurements name


def check_mode(mode: str) -> None:
    """Raise `OptionError` if there is no such mode."""
    check_choice("mode", mode, MODES)


END_NAMES = ("query-start", "query-end", "subject-start", "subject-end")
"""Names of the four ends of a pair, as ``--free-ends`` takes them."""


@dataclass(frozen=True)
class Ends:
    """Ends of a pair that may stay unaligned at no cost.

    An end that is not free is paid for as a gap. In local mode all four are free, and the alignment may begin and
    end anywhere; in semi-global mode it begins in the first row or column and ends in the last row or column.

    Parameters
    ----------
    query_start, query_end : bool
        Whether residues of the query before the first or after the last aligned column cost nothing.
    subject_start, subject_end : bool
        The same of the subject.
    """

    query_start: bool = True
    query_end: bool = True
    subject_start: bool = True
    subject_end: bool = True

    @classmethod
    def from_mode(cls, mode: Mode) -> Ends:
        """Return the ends that a mode leaves free."""
        return cls() if mode != "global" else cls(False, False, False, False)

    @classmethod
    def parse(cls, text: str) -> Ends:
        """Read ``query``, ``subject``, ``all`` or names of `END_NAMES`, separated by commas.

        Raises
        ------
        OptionError
            If a name is not known, or none is given.
        """
        if not isinstance(text, str):
            raise OptionError("free_ends", text, f"a text that lists {', '.join(END_NAMES)}, query, subject, all")
        groups = {"query": END_NAMES[:2], "subject": END_NAMES[2:], "all": END_NAMES}
        free: set[str] = set()
        for name in text.split(","):
            word = name.strip().lower()
            if word not in groups and word not in END_NAMES:
                raise OptionError("free_ends", text, f"a list of {', '.join((*END_NAMES, *groups))}")
            free.update(groups.get(word, (word,)))
        return cls(*(name in free for name in END_NAMES))

    def names(self) -> list[str]:
        """Return the `END_NAMES` of the free ends."""
        flags = (self.query_start, self.query_end, self.subject_start, self.subject_end)
        return [name for name, free in zip(END_NAMES, flags, strict=True) if free]

    def describe(self) -> str:
        """Return ``query-start, query-end``, or ``none``."""
        return ", ".join(self.names()) or "none"


def check_ends(mode: Mode, ends: Ends | None) -> Ends:
    """Return the ends in force."""
    if ends is None:
        return Ends.from_mode(mode)
    if not isinstance(ends, Ends):
        raise OptionError("free_ends", ends, "Ends, or their names such as 'query' or 'query-end, subject-start'")
    if mode != "semiglobal" and ends != Ends.from_mode(mode):
        raise OptionError("free_ends", ends.describe(), f"none in {mode} mode", "use semiglobal mode")
    return ends


PADDING_SCORE = -128
"""Score of padding and of codes without a letter, against everything: no path through it gains."""

LANE_BITS = (8, 16, 32)
"""Lane widths that engines use, in bits."""


@dataclass(frozen=True)
class Matrix:
    """A substitution matrix over an alphabet's codes.

    Parameters
    ----------
    name : str
        Its name, or the file it came from.
    alphabet : Alphabet
        What the codes mean.
    scores : ndarray, shape (32, 32), int32
        Score of each pair of codes; `PADDING_SCORE` where a code has no letter.
    published : bool
        Whether these are blastp's own scores, to which published statistics apply.
    """

    name: str
    alphabet: Alphabet
    scores: npt.NDArray[np.int32] = field(repr=False, compare=False)
    published: bool = False

    @cached_property
    def max(self) -> int:
        """Largest score of two letters."""
        n = len(self.alphabet.letters)
        return int(self.scores[:n, :n].max())

    @cached_property
    def min(self) -> int:
        """Smallest score of two letters."""
        n = len(self.alphabet.letters)
        return int(self.scores[:n, :n].min())

    def __getitem__(self, letters: tuple[str, str]) -> int:
        """Score of two letters, such as ``matrix["A", "R"]``."""
        a, b = (self.alphabet.letters.index(letter.upper()) for letter in letters)
        return int(self.scores[a, b])


@dataclass(frozen=True, eq=False)
class PositionGapCosts:
    """Gap costs of each query row, where they are not the same for all; not negative, matrix units.

    Parameters
    ----------
    deletion_open, deletion_extend : ndarray, shape (n_rows,), int16
        Of a gap in the subject: what it costs to begin one with this row, and to leave this row over.
    insertion_open, insertion_extend : ndarray, shape (n_rows,), int16
        Of a gap in the query after this row: what it costs to begin one there, and for each subject residue in it.

    Raises
    ------
    ValueError
        If the arrays are of different lengths, or hold what is no cost.
    """

    deletion_open: npt.NDArray[np.int16]
    deletion_extend: npt.NDArray[np.int16]
    insertion_open: npt.NDArray[np.int16]
    insertion_extend: npt.NDArray[np.int16]

    def __post_init__(self) -> None:
        n = len(self.deletion_open)
        for name in GAP_COLUMNS:
            costs = np.ascontiguousarray(getattr(self, name), dtype=np.int16)
            if costs.shape != (n,) or (n and not 0 <= costs.min() <= costs.max() <= MAX_GAP_COST):
                raise ValueError(f"expected {name} of shape ({n},) with costs from 0 to {MAX_GAP_COST}")
            object.__setattr__(self, name, costs)

    @classmethod
    def uniform(cls, n_rows: int, gap_open: int, gap_extend: int) -> PositionGapCosts:
        """Return the same costs for every row, matrix units, equivalent to a `Scoring` with these costs."""
        opens, extends = (np.full(n_rows, cost, dtype=np.int16) for cost in (gap_open, gap_extend))
        return cls(opens, extends, opens, extends)

    def __len__(self) -> int:
        return len(self.deletion_open)


GAP_COLUMNS = ("deletion_open", "deletion_extend", "insertion_open", "insertion_extend")
"""Names of the four costs of a row."""


@dataclass(frozen=True, eq=False)
class QueryProfile:
    """Query profile: the score of each query position against every letter.

    Parameters
    ----------
    scores : ndarray, shape (n_rows, 32), int8
        Row i holds the scores of query residue i against the 32 codes, in matrix units; a row is 32 bytes, so that a
        lookup is one byte permute. The columns of padding and of codes without a letter hold `PADDING_SCORE`.
    codes : ndarray, shape (n_rows,), uint8
        The query itself, or the sequence that a profile is shown as.
    is_specific : bool, optional
        Whether the scores are the positions' own; otherwise they are the matrix's for ``codes``.
    gaps : PositionGapCosts, optional
        Gap costs by row; by default those of the scoring. Only with scores that are the positions' own.
    """

    scores: npt.NDArray[np.int8]
    codes: ByteArray
    is_specific: bool = False
    gaps: PositionGapCosts | None = None

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True, init=False)
class Scoring:
    """A substitution matrix with gap costs.

    A gap of k residues costs ``gap_open + k * gap_extend``, as BLAST+, SWIPE and ssearch36 count. parasail,
    EMBOSS and CUDASW++ charge ``open + (k - 1) * extend``: their 12/1 is our 11/1.

    Parameters
    ----------
    matrix : Matrix, or what `load_matrix` takes
        A matrix, a name, a path, an array of Biopython's, letters with an array, or a mapping of pairs to scores;
        BLOSUM62 by default.
    gap_open : int or float, optional
        Cost of opening a gap, not negative, matrix units; by default that of `swsearch.matrices.GAP_COSTS` for the
        matrix, and 11 for a matrix that is not shipped. Of fractions, which `swsearch.align` takes, matrix and costs
        are held multiplied by ``scale``, which makes them whole.
    gap_extend : int or float, optional
        Cost of each residue of a gap, the first included, not negative, matrix units; by default as ``gap_open``, and
        1 for a matrix that is not shipped.

    Raises
    ------
    OptionError
        If a gap cost is negative or too large, or the matrix is unknown.
    InputError
        If the matrix cannot be read.

    Examples
    --------
    >>> scoring = swsearch.Scoring("BLOSUM80", gap_open=10, gap_extend=1)
    >>> scoring.gap_cost(3)
    13
    """

    matrix: Matrix
    gap_open: int
    gap_extend: int
    scale: int = 1
    _reach: tuple[int, int, int, int] | None = field(default=None, repr=False)
    """Least and largest score of a row, largest costs of opening and extending a gap, where rows go beyond these."""

    def __init__(
        self, matrix: Any = "BLOSUM62", gap_open: float | None = None, gap_extend: float | None = None
    ) -> None:
        loaded = matrix if isinstance(matrix, Matrix) else load_matrix(matrix)
        usual = GAP_COSTS.get(loaded.name, FALLBACK_GAP_COSTS)
        costs = {}
        for name, value, default in zip(("gap_open", "gap_extend"), (gap_open, gap_extend), usual, strict=True):
            costs[name] = parse_gap_cost(name, default if value is None else value)
        scale = math.lcm(*(each.denominator for each in costs.values()))
        if scale > 1:
            n = len(loaded.alphabet.letters)
            loaded = replace(loaded, scores=scaled_scores(loaded.scores, n, scale, loaded.name), published=False)
        object.__setattr__(self, "matrix", loaded)
        for name, cost in costs.items():
            object.__setattr__(self, name, int(cost * scale))
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "_reach", None)

    def to_display(self, score: int) -> float:
        """Return a score or a cost that is held multiplied by ``scale`` as it is shown; an int where that is 1."""
        return score if self.scale == 1 else score / self.scale

    @classmethod
    def of_preset(cls, preset: Preset) -> Scoring:
        """Return the matrix and gap costs of ``default``, ``sensitive`` or ``short``.

        Raises
        ------
        OptionError
            If there is no such preset.
        """
        check_choice("preset", preset, PRESETS)
        return cls(PRESET_MATRICES[preset])

    def gap_cost(self, length: int) -> int:
        """Return the cost of a gap of ``length`` residues; 0 for none. The only home of the gap formula."""
        return self.gap_open + length * self.gap_extend if length > 0 else 0

    @property
    def gap_first(self) -> int:
        """Cost of a gap's first residue, which parasail and the kernels call open."""
        return self.gap_cost(1)

    @property
    def max_score(self) -> int:
        """Largest score that a row has with a letter: the matrix's, or that of the rows which this covers."""
        return self.matrix.max if self._reach is None else self._reach[1]

    @property
    def min_score(self) -> int:
        """Smallest score that a row has with a letter."""
        return self.matrix.min if self._reach is None else self._reach[0]

    @property
    def max_first_gap_cost(self) -> int:
        """Largest cost of a gap's first residue; none costs more."""
        return self.max_gap_cost(1)

    def max_gap_cost(self, length: int) -> int:
        """Return the maximum cost of a gap of ``length`` residues anywhere in the query; 0 for none."""
        if self._reach is None or length <= 0:
            return self.gap_cost(length)
        return self._reach[2] + length * self._reach[3]

    def with_bounds_for(self, queries: Iterable[QueryProfile]) -> Scoring:
        """Return a scoring whose bounds hold for some queries too; itself where they do anyway.

        Scores and gap costs are the same. Engines take it for all that follows from bounds: lane widths, saturation.
        """
        low, high, opening, extending = self.min_score, self.max_score, self.gap_open, self.gap_extend
        n_letters = len(self.matrix.alphabet.letters)
        for rows in queries:
            if rows.is_specific and len(rows):
                scores = rows.scores[:, :n_letters]
                low, high = min(low, int(scores.min())), max(high, int(scores.max()))
            if rows.gaps is not None and len(rows):
                gaps = rows.gaps
                opening = max(opening, int(gaps.deletion_open.max()), int(gaps.insertion_open.max()))
                extending = max(extending, int(gaps.deletion_extend.max()), int(gaps.insertion_extend.max()))
        reach = low, high, opening, extending
        if reach == (self._reach or (self.matrix.min, self.matrix.max, self.gap_open, self.gap_extend)):
            return self
        wider = copy(self)
        object.__setattr__(wider, "_reach", reach)
        return wider

    def rows(self, codes: ByteArray) -> QueryProfile:
        """Build the rows of an encoded query, shape (n_rows,), uint8."""
        rows = self.matrix.scores[codes].astype(np.int8)
        return QueryProfile(np.ascontiguousarray(rows), np.ascontiguousarray(codes))

    def score_range(self, mode: Mode, query_length: int, subject_length: int) -> tuple[int, int]:
        """Bound every value that the recurrence can hold, intermediate ones included.

        Returns
        -------
        low, high : int
            Matrix units. H never falls below the cost of gapping both prefixes away (0 in local mode), and
            E and F lie at most one opened gap below; H never rises above a best match of every residue.
        """
        high = min(query_length, subject_length) * max(self.max_score, 0)
        if mode == "local":
            return -self.max_first_gap_cost, high
        low = -self.max_gap_cost(query_length) - self.max_gap_cost(subject_length) - self.max_first_gap_cost
        return low + min(self.min_score, 0), high

    def lane_bits(self, mode: Mode, query_length: int, subject_length: int) -> int:
        """Return the narrowest lane, in bits, that can never saturate for these lengths.

        Raises
        ------
        InputError
            If even 32 bits could overflow.
        """
        low, high = self.score_range(mode, query_length, subject_length)
        for bits in LANE_BITS:
            if fits_lane(bits, low, high, self):
                return bits
        raise InputError(
            f"scores of {query_length} x {subject_length} residues may reach {max(high, -low)}, more than 32 bits "
            "can hold; use smaller matrix entries or gap costs"
        )

    def describe(self) -> str:
        """Return ``BLOSUM62, gap open 11, gap extend 1``."""
        opened, extended = self.to_display(self.gap_open), self.to_display(self.gap_extend)
        return f"{self.matrix.name}, gap open {opened}, gap extend {extended}"


QueryLike = ByteArray | QueryProfile
"""A query to align with a subject: its codes, shape (n,), uint8, or its scores by position."""


def rows_of(query: QueryLike, scoring: Scoring) -> QueryProfile:
    """Return the scores of a query by position, which are the scoring's where only its codes are given."""
    return query if isinstance(query, QueryProfile) else scoring.rows(query)


def codes_of(query: QueryLike) -> ByteArray:
    """Return the codes of a query, shape (n,), uint8: those that a profile is shown as."""
    return query.codes if isinstance(query, QueryProfile) else query


def position_specific_rows(query: QueryLike) -> QueryProfile | None:
    """Return the scores of a query by position where these are its own; None where codes and matrix say them."""
    return query if isinstance(query, QueryProfile) and query.is_specific else None


def lane_limits(bits: int) -> tuple[int, int]:
    """Return the smallest and largest value of a signed lane of ``bits`` bits."""
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def fits_lane(bits: int, low: int, high: int, scoring: Scoring) -> bool:
    """Return whether values from ``low`` to ``high`` fit a lane without reaching its limits.

    One matrix entry or gap opening of headroom is kept on either side: engines detect saturation by comparing
    with the limit less the largest cost.
    """
    lane_low, lane_high = lane_limits(bits)
    headroom = max(abs(scoring.max_score), abs(scoring.min_score), scoring.max_first_gap_cost) + 1
    return lane_low + headroom < low and high < lane_high - headroom


def lane_holds_gap_costs(bits: int, mode: Mode, scoring: Scoring) -> bool:
    """Return whether a lane can hold the costs themselves, so that trying it first and rescoring is sound.

    A lane that cannot hold one gap opening or one matrix entry would wrap without noticing.
    """
    lane_low, _ = lane_limits(bits)
    floor = scoring.max_first_gap_cost + abs(min(scoring.min_score, 0)) + abs(scoring.max_score)
    return (mode == "local" or bits > 8) and lane_low // 2 < -floor


def load_matrix(source: Any, alphabet: Alphabet | None = None) -> Matrix:
    """Load a substitution matrix.

    Parameters
    ----------
    source : str, path, array, (letters, array) or mapping
        A name that Biopython knows (any case); a file in NCBI's format; an array of Biopython's
        ``substitution_matrices``; letters, such as ``"ARND..."``, with a square array of their scores; or a mapping
        of pairs of letters to scores. Rows are the query's letters: a matrix need not be symmetric.
    alphabet : Alphabet, optional
        What is to be scored; by default what the matrix has scores for.

    Returns
    -------
    Matrix

    Raises
    ------
    OptionError
        If there is no such matrix, or it has no whole-number scores for this alphabet.
    InputError
        If it cannot be read, or is no matrix.
    """
    if isinstance(source, (str, os.PathLike)):
        text = os.fsdecode(source)
        if alphabet is not DNA and text.upper() in GAP_COSTS:
            return _shipped_matrix(text.upper())
        if (read := read_file(text)) is not None:
            return matrix_from_text(read, text, alphabet)
        return _biopythons_matrix(text, alphabet)
    return matrix_from_table(complete_symmetry(entries_of(source)), "custom", alphabet)


def _biopythons_matrix(name: str, alphabet: Alphabet | None) -> Matrix:
    """Return a matrix that Biopython knows."""
    from Bio.Align import substitution_matrices

    entries = {entry.upper(): entry for entry in substitution_matrices.load()}
    if name.upper() not in entries:
        usable = matrix_names(alphabet)
        close = difflib.get_close_matches(name.upper(), usable, n=2, cutoff=0.8)
        if is_path(name) or ("." in name and not close):
            raise OptionError("matrix", name, "a file in NCBI's format", "file not found, check its name")
        remedy = f"did you mean {' or '.join(close)}?" if close else ""
        raise OptionError("matrix", name, f"a file in NCBI's format or one of {', '.join(usable)}", remedy)
    entry = entries[name.upper()]
    array = substitution_matrices.load(entry)
    if isinstance(array.alphabet, tuple):
        matrix_alphabet = alphabet or PROTEIN
        raise OptionError(
            "matrix", name, f"a matrix of single {matrix_alphabet.name} letters", "this one scores codons"
        )
    table = {(a, b): float(array[a, b]) for a in array.alphabet for b in array.alphabet}
    return matrix_from_table(table, entry, alphabet, biopythons=True)


@cache
def matrix_names(alphabet: Alphabet | None) -> tuple[str, ...]:
    """Return the names of the matrices that score an alphabet; of all alphabets for None."""
    from Bio.Align import substitution_matrices

    usable = set() if alphabet is DNA else set(GAP_COSTS)
    for name in substitution_matrices.load():
        try:
            _biopythons_matrix(name, alphabet)
        except InputError:
            continue
        usable.add(name)
    return tuple(sorted(usable))


@lru_cache(maxsize=len(GAP_COSTS))
def _shipped_matrix(name: str) -> Matrix:
    text = resources.files("swsearch").joinpath("matrices", f"{name}.txt").read_text(encoding="utf-8")
    matrix = matrix_from_text(text, name, ALPHABETS[MATRIX_ALPHABETS.get(name, "protein")])
    return replace(matrix, published=name in BLASTP_MATRICES)


def dna_matrix(match: int = 5, mismatch: int = -4) -> Matrix:
    """Build a match/mismatch matrix for DNA; by default A, C, G, T and U score 5 and -4, as in EMBOSS's EDNAFULL.

    An ambiguous base scores the mean over the bases that it stands for, rounded down. EDNAFULL (NCBI's
    NUC.4.4) has another rule: 57 of its 256 entries, all of ambiguous bases, are one more or one less (S with S is -1
    there and 0 here, A with W 1 and 0). ``load_matrix("NUC.4.4", DNA)`` gives these.

    Examples
    --------
    >>> scoring = swsearch.Scoring(swsearch.dna_matrix(match=2, mismatch=-3), gap_open=5, gap_extend=2)
    >>> swsearch.align("GATTACA", "GATACA", scoring=scoring).score
    5
    """
    for option, value in (("match", match), ("mismatch", mismatch)):
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not whole or abs(int(value)) > MAX_ENTRY:
            raise OptionError(option, value, f"an integer from -{MAX_ENTRY} to {MAX_ENTRY}")
    table: ScoreTable = {(a, b): float(match if a == b else mismatch) for a in "ACGT" for b in "ACGT"}
    return matrix_from_table(table, f"DNA {match}/{mismatch}", DNA)


def matrix_from_text(text: str, name: str, alphabet: Alphabet | None) -> Matrix:
    """Read a matrix in NCBI's format: a line of column letters, then one line per row; ``#`` begins a comment."""
    return matrix_from_table(table_from_text(text, name), name, alphabet)


def matrix_from_table(table: ScoreTable, name: str, alphabet: Alphabet | None, *, biopythons: bool = False) -> Matrix:
    """Make a matrix of a table of letter pairs, completing the letters that it lacks.

    Parameters
    ----------
    table : dict of (str, str) to float
        Scores by letter pair, the query's letter first.
    alphabet : Alphabet or None
        What is scored; the table must hold its unambiguous letters. None is what the table has scores for.
    biopythons : bool
        Whether blastp's rule for ambiguous amino acids replaces what the table says of them.
    """
    letters = {letter for pair in table for letter in pair}
    scores_dna = set("ACGT") <= letters <= set(DNA.letters)
    alphabet = alphabet or (DNA if scores_dna else PROTEIN)
    core = "ACGT" if alphabet is DNA else PROTEIN.letters[:20]
    for a in core:
        for b in core:
            if (a, b) not in table:
                hint = "; this is a matrix for DNA" if scores_dna and alphabet is not DNA else ""
                raise InputError(
                    f"matrix {name}: no score for {a} with {b}, expected all of {core} ({alphabet.name}){hint}"
                )
    if unknown := letters - set(alphabet.letters):
        raise InputError(
            f"matrix {name}: scores for {format_value(min(unknown))}, expected {alphabet.name} letters "
            f"{alphabet.letters}"
        )
    for a, b in table:
        value = table[a, b]
        if not abs(value) <= MAX_ENTRY or value != round(value):
            remedy = "scale or round it into a matrix file" if math.isfinite(value) else "give a number there"
            raise OptionError(
                "matrix", name, f"whole-number scores from -{MAX_ENTRY} to {MAX_ENTRY}",
                f"{a} with {b} scores {value:g}: {remedy}",
            )  # fmt: skip
    rule_over_table = biopythons and alphabet is not DNA
    matrix_scores = {pair: score for pair, score in table.items() if not rule_over_table or set(pair) <= set(core)}
    complete = complete_dna(matrix_scores) if alphabet is DNA else complete_protein(matrix_scores, core)
    scores = np.full((N_CODES, N_CODES), PADDING_SCORE, dtype=np.int32)
    for i, a in enumerate(alphabet.letters):
        for j, b in enumerate(alphabet.letters):
            scores[i, j] = round(complete[a, b])
    scores.setflags(write=False)
    return Matrix(name, alphabet, scores)
