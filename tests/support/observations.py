"""Plain statement of what an alignment's columns observe: ``cpu/profiles/``, one row and one column at a time."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from swsearch.alphabet import PROTEIN
from swsearch.profiles.calibration import BACKGROUND
from swsearch.profiles.construction import ProfileSettings
from swsearch.profiles.query_alignment import GAP, QueryAlignment
from swsearch.profiles.sequence_weights import ColumnObservations

UNKNOWN, INNER_GAP, ABSENT = 20, 21, 22
U, C = PROTEIN.letters.index("U"), PROTEIN.letters.index("C")
MAX_OBSERVATIONS = 400

Row = list[int]


def expected_observations(alignment: QueryAlignment, settings: ProfileSettings) -> tuple[ColumnObservations, int]:
    """Return what `observations_of` returns."""
    longest = alignment.n_columns if settings.max_gap_length is None else settings.max_gap_length
    rows = unique([cells(row, longest) for row in alignment.columns.tolist()], settings.purge_identity)
    n = alignment.n_columns
    weights, observations = np.zeros((n, ABSENT)), np.zeros(n)
    for begin, end in stretches(rows):
        here = [row for row in rows if any(cell != ABSENT for cell in row[begin:end])]
        shares = [1.0]
        if len(here) > 1:
            left, right = block(here, begin, end, settings.min_block_columns, settings.max_block_columns)
            shares = shares_of([row[left:right] for row in here])
            observed = independent([row[left:right] for row in here])
            observations[begin:end] = max(0.0, min(observed, len(here)) - 1.0)
        for column in range(begin, end):
            sums = [0.0] * (ABSENT + 1)
            for row, share in zip(here, shares, strict=True):
                sums[row[column]] += share
            weights[column] = [each / add(sums[:ABSENT]) for each in sums[:ABSENT]]
    n_rows = np.array([sum(row[column] != ABSENT for row in rows) for column in range(n)], dtype=np.int64)
    return ColumnObservations(weights[:, :20], weights[:, 20], weights[:, 21], observations, n_rows), len(rows) - 1


def add(values: list[float]) -> float:
    """Return a sum, one value after the other; `sum` of a later Python rounds once."""
    total = 0.0
    for value in values:
        total += value
    return total


def cells(codes: Row, max_gap_length: int) -> Row:
    """Return the kinds of cells of a row; it is absent outside of its residues and in long gaps."""
    row = [C if code == U else INNER_GAP if code == GAP else min(code, UNKNOWN) for code in codes]
    begin, end = extent(row)
    column = 0
    while column < len(row):
        after = column + 1
        while row[column] == INNER_GAP and after < len(row) and row[after] == INNER_GAP:
            after += 1
        if row[column] == INNER_GAP and (column < begin or after > end or after - column > max_gap_length):
            row[column:after] = [ABSENT] * (after - column)
        column = after
    return row


def extent(row: Row) -> tuple[int, int]:
    """Return the columns from the first residue to the last, half-open; 0 and 0 where there is none."""
    residues = [column for column, cell in enumerate(row) if cell < INNER_GAP]
    return (residues[0], residues[-1] + 1) if residues else (0, 0)


def unique(rows: list[Row], identity: float) -> list[Row]:
    """Return the query, and the other rows that are not copies, by their letters."""
    query = rows[0]
    others = sorted(
        row
        for row in rows[1:]
        if any(a != b and a < ABSENT and UNKNOWN not in (a, b) for a, b in zip(row, query, strict=True))
    )
    kept: list[Row] = []
    for row in sorted(others, key=lambda row: row.count(ABSENT)):
        if identity > 1 or all(share(row, other) < identity - 1e-9 for other in kept):
            kept.append(row)
    return [query, *sorted(kept)]


def share(row: Row, other: Row) -> float:
    """Return the share of a row's columns that another has too, where both are known."""
    counted = [(a, b) for a, b in zip(row, other, strict=True) if a != ABSENT and UNKNOWN not in (a, b)]
    return sum(a == b for a, b in counted) / max(1, len(counted))


def stretches(rows: list[Row]) -> list[tuple[int, int]]:
    """Return runs of columns that the same rows cover, but for one in 32."""
    n_columns, begin, changed = len(rows[0]), 0, 0
    found = []
    for column in range(1, n_columns):
        changes = sum((row[column] == ABSENT) != (row[column - 1] == ABSENT) for row in rows)
        changed += changes
        if changes and changed * 32 > sum(row[column] != ABSENT for row in rows):
            found.append((begin, column))
            begin, changed = column, 0
    return [*found, (begin, n_columns)] if n_columns else []


def block(rows: list[Row], begin: int, end: int, least: int, most: int) -> tuple[int, int]:
    """Return the columns over which rows are weighted that are somewhere in a stretch."""
    left = min(begin, max(extent(row)[0] for row in rows))
    right = max(end, min(extent(row)[1] for row in rows))
    n_columns = len(rows[0])
    if right - left < least:
        left = max(0, left - (least - (right - left) + 1) // 2)
        right = min(n_columns, left + least)
        left = max(0, right - least)
    elif right - left > max(most, end - begin):
        margin = max(0, most - (end - begin)) // 2
        left, right = max(left, begin - margin), min(right, end + margin)
    return left, right


def shares_of(rows: list[Row]) -> list[float]:
    """Return the weights of rows by position, which sum to 1: means over the columns where each is present."""
    totals = [0.0] * len(rows)
    for column in zip(*rows, strict=True):
        present = len(column) - column.count(ABSENT)
        n_kinds = len(set(column) - {ABSENT})
        for k, cell in enumerate(column):
            if cell != ABSENT:
                totals[k] += present / (n_kinds * column.count(cell))
    means = [total / (len(row) - row.count(ABSENT)) for total, row in zip(totals, rows, strict=True)]
    return [mean / add(means) for mean in means]


def independent(rows: list[Row]) -> float:
    """Return how many random sequences show as many amino acids as the more varied half of the columns does."""
    kinds = sorted(len({cell for cell in column if cell < UNKNOWN}) for column in zip(*rows, strict=True))
    half = kinds[len(kinds) // 2 :]
    mean = sum(half) / len(half)
    above = bisect_right(EXPECTED_KINDS, mean)
    if above > MAX_OBSERVATIONS:
        return MAX_OBSERVATIONS
    below = EXPECTED_KINDS[above - 1]
    return max(1.0, above - (EXPECTED_KINDS[above] - mean) / (EXPECTED_KINDS[above] - below))


def _expected_kinds() -> list[float]:
    """Return how many kinds of amino acids 0, 1, 2, ... random residues are expected to be."""
    missing, expected = [1.0] * 20, [0.0]
    for _ in range(MAX_OBSERVATIONS):
        missing = [each * (1.0 - frequency) for each, frequency in zip(missing, BACKGROUND.tolist(), strict=True)]
        expected.append(20 - add(missing))
    return expected


EXPECTED_KINDS = _expected_kinds()
