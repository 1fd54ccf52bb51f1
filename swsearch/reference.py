"""The plain, slow, obviously right recurrence: the oracle of every test.

Gotoh's three matrices, one cell at a time (O. Gotoh, J. Mol. Biol. 162:705, 1982):

    E[i][j] = max(E[i][j-1], H[i][j-1] - gap_open) - gap_extend      gap in the query, subject residue j left over
    F[i][j] = max(F[i-1][j], H[i-1][j] - gap_open) - gap_extend      gap in the subject, query residue i left over
    H[i][j] = max(H[i-1][j-1] + score(i, j), E[i][j], F[i][j])       and 0 in local mode

The score of a pair is the matrix's for its two letters, or, where the query is a profile, that of the query's
position for the subject's letter. A profile may have gap costs of its own for each position i: what opening and
extending cost in F when residue i is left over, and in E when subject residues stand after residue i. In row 0,
before the first residue, the scoring's costs hold.

It also fixes, for every engine, which of several equally good alignments is reported:

- the end is the best cell with the smallest subject position, then the smallest query position: any cell in local
  mode, else the corner, with the last row where the subject's end is free and the last column where the query's is;
- going back from H: a pair of residues before a gap in the subject (F) before a gap in the query (E);
- going back inside a gap: extending it before opening it;
- a local alignment begins where H first falls to 0.

Further alignments of a pair are found as Waterman and Eggert find them (J. Mol. Biol. 197:723, 1987): a pair of
residues that an alignment has used is forbidden, its score minus infinity, and all is computed again.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from itertools import groupby

from swsearch.alphabet import ByteArray
from swsearch.options.kinds import Mode
from swsearch.scoring import Ends, PositionGapCosts, QueryLike, QueryProfile, Scoring, check_ends, rows_of

NEG = -(10**15)
"""Substitute for minus infinity; Python's integers do not overflow."""

Table = list[list[int]]
Cigar = tuple[tuple[int, str], ...]
Pairs = AbstractSet[tuple[int, int]]
"""Places in the query and in the subject."""


def _costs(rows: QueryProfile, scoring: Scoring) -> tuple[list[int], list[int], list[int], list[int]]:
    """Return what opening and extending F, then E, cost in each row of the tables; row 0 is before the query."""
    gaps = rows.gaps or PositionGapCosts.uniform(len(rows), scoring.gap_open, scoring.gap_extend)
    opening, extending = scoring.gap_open, scoring.gap_extend
    return (
        [opening, *gaps.deletion_open.tolist()],
        [extending, *gaps.deletion_extend.tolist()],
        [opening, *gaps.insertion_open.tolist()],
        [extending, *gaps.insertion_extend.tolist()],
    )


def tables(
    query: QueryLike,
    subject: ByteArray,
    scoring: Scoring,
    mode: Mode,
    ends: Ends | None = None,
    forbidden_pairs: Pairs = frozenset(),
) -> tuple[Table, Table, Table]:
    """Fill the three matrices; the parameters are those of `align`.

    Parameters
    ----------
    query : ndarray, shape (n,), uint8, or QueryProfile
        Codes of the scoring's alphabet, or scores by position; may be empty.
    subject : ndarray, shape (n,), uint8
        Codes; may be empty.

    Returns
    -------
    H, E, F : list of lists of int
        Each of len(query) + 1 rows and len(subject) + 1 columns, matrix units.
    """
    ends = check_ends(mode, ends)
    m, n = len(query), len(subject)
    rows = rows_of(query, scoring)
    scores, letters = rows.scores.tolist(), subject.tolist()
    F_open, F_extend, E_open, E_extend = _costs(rows, scoring)
    H = [[0] * (n + 1) for _ in range(m + 1)]
    E = [[NEG] * (n + 1) for _ in range(m + 1)]
    F = [[NEG] * (n + 1) for _ in range(m + 1)]
    if not ends.query_start:
        for i in range(1, m + 1):
            H[i][0] = F[i][0] = -F_open[1] - sum(F_extend[1 : i + 1])
    if not ends.subject_start:
        for j in range(1, n + 1):
            H[0][j] = E[0][j] = -scoring.gap_cost(j)
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            E[i][j] = max(E[i][j - 1], H[i][j - 1] - E_open[i]) - E_extend[i]
            F[i][j] = max(F[i - 1][j], H[i - 1][j] - F_open[i]) - F_extend[i]
            paired = H[i - 1][j - 1] + scores[i - 1][letters[j - 1]]
            if (i - 1, j - 1) in forbidden_pairs:
                paired = NEG
            H[i][j] = max(paired, E[i][j], F[i][j])
            if mode == "local":
                H[i][j] = max(H[i][j], 0)
    return H, E, F


def end_cell(H: Table, mode: Mode, ends: Ends | None = None) -> tuple[int, int]:
    """Return the cell where the alignment ends: (query rows used, subject columns used)."""
    ends = check_ends(mode, ends)
    m, n = len(H) - 1, len(H[0]) - 1
    cells = [(m, n)]
    if mode == "local":
        cells = [(i, j) for i in range(m + 1) for j in range(n + 1)]
    else:
        cells += [(m, j) for j in range(n + 1) if ends.subject_end]
        cells += [(i, n) for i in range(m + 1) if ends.query_end]
    return min(cells, key=lambda cell: (-H[cell[0]][cell[1]], cell[1], cell[0]))


def score(
    query: QueryLike, subject: ByteArray, scoring: Scoring, mode: Mode = "local", ends: Ends | None = None
) -> int:
    """Score a pair of encoded sequences.

    Parameters
    ----------
    query : ndarray, shape (n,), uint8, or QueryProfile
        Codes of the scoring's alphabet, or scores by position; may be empty.
    subject : ndarray, shape (n,), uint8
        Codes; may be empty.
    ends : Ends, optional
        Which ends are free in semi-global mode; all four by default.

    Returns
    -------
    int
        Matrix units.
    """
    H, _, _ = tables(query, subject, scoring, mode, ends)
    i, j = end_cell(H, mode, ends)
    return H[i][j]


def align(
    query: QueryLike,
    subject: ByteArray,
    scoring: Scoring,
    mode: Mode = "local",
    ends: Ends | None = None,
    forbidden_pairs: Pairs = frozenset(),
) -> tuple[int, int, int, Cigar]:
    """Align a pair of encoded sequences.

    Parameters
    ----------
    query : ndarray, shape (n,), uint8, or QueryProfile
        Codes of the scoring's alphabet, or scores by position; may be empty.
    subject : ndarray, shape (n,), uint8
        Codes; may be empty.
    forbidden_pairs : set of (int, int)
        Residues of query and subject, counted from 0, that may not be paired.

    Returns
    -------
    score : int
        Matrix units.
    query_start, subject_start : int
        Where the first operation begins, counted from 0.
    cigar : tuple of (int, str)
        Runs of ``M`` (a pair), ``I`` (a query residue alone) and ``D`` (a subject residue alone). Free ends are not
        part of it.
    """
    ends = check_ends(mode, ends)
    H, E, F = tables(query, subject, scoring, mode, ends, forbidden_pairs)
    i, j = end_cell(H, mode, ends)
    best = H[i][j]
    rows = rows_of(query, scoring)
    _, F_extend, _, E_extend = _costs(rows, scoring)
    steps: list[str] = []
    state = "M"
    while True:
        if state == "M":
            free = (i == 0 and ends.subject_start) or (j == 0 and ends.query_start)
            if (mode == "local" and H[i][j] == 0) or free or i == j == 0:
                break
            paired = NEG
            if i and j and (i - 1, j - 1) not in forbidden_pairs:
                paired = H[i - 1][j - 1] + int(rows.scores[i - 1, subject[j - 1]])
            if paired == H[i][j]:
                steps.append("M")
                i, j = i - 1, j - 1
            else:
                state = "I" if F[i][j] == H[i][j] else "D"
        elif state == "I":
            steps.append("I")
            state = "I" if F[i - 1][j] - F_extend[i] == F[i][j] and i > 1 else "M"
            i -= 1
        else:
            steps.append("D")
            state = "D" if E[i][j - 1] - E_extend[i] == E[i][j] and j > 1 else "M"
            j -= 1
    cigar = tuple((len(list(run)), op) for op, run in groupby(reversed(steps)))
    return best, i, j, cigar


def pairs_of(i: int, j: int, cigar: Cigar) -> Pairs:
    """Return the pairs of residues of an alignment that begins at i in the query and at j in the subject."""
    pairs = set()
    for length, operation in cigar:
        if operation == "M":
            pairs |= {(i + k, j + k) for k in range(length)}
        i += length if operation != "D" else 0
        j += length if operation != "I" else 0
    return pairs


def align_with_hsps(
    query: QueryLike, subject: ByteArray, scoring: Scoring, max_hsps: int, min_score: int = 1
) -> list[tuple[int, int, int, Cigar]]:
    """Return the best local alignment, the best without its pairs of residues, and so on.

    Parameters
    ----------
    query : ndarray, shape (n,), uint8, or QueryProfile
        As for `align`.
    subject : ndarray, shape (n,), uint8
        Codes of the scoring's alphabet.
    max_hsps : int
        How many to find, the best included.
    min_score : int, optional
        The least score of one, matrix units.

    Returns
    -------
    list of (int, int, int, Cigar)
        As `align` returns them; scores descend.
    """
    hsps: list[tuple[int, int, int, Cigar]] = []
    used: set[tuple[int, int]] = set()
    while len(hsps) < max_hsps:
        best = align(query, subject, scoring, forbidden_pairs=used)
        if best[0] < min_score:
            break
        hsps.append(best)
        used |= pairs_of(*best[1:])
    return hsps
