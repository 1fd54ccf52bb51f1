"""Observations of alignment columns: copies left out, rows weighted, independent observations counted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.observations import expected_observations
from support.query_alignments import alignment_from
from support.samples import random_cases
from swsearch import extension
from swsearch.alphabet import PROTEIN
from swsearch.profiles.construction import ProfileSettings, observations_of
from swsearch.profiles.query_alignment import GAP, QueryAlignment

BY_COLUMN = ("frequencies", "unknown", "gaps", "observations", "n_rows")
ALL_COUNT = ProfileSettings(purge_identity=2.0)


def of_columns(columns: np.ndarray) -> QueryAlignment:
    """An alignment of codes."""
    alone = QueryAlignment.from_query("q", "", columns[0].astype(np.uint8))
    zeros = np.zeros(len(columns), dtype=np.int64)
    names = [f"s{k}" for k in zeros]
    return QueryAlignment(
        names, names, columns.astype(np.uint8), zeros, zeros, alone.insertions, alone.inserted, zeros, zeros, zeros
    )


@st.composite
def alignments(draw: st.DrawFn) -> QueryAlignment:
    """Clusters of relatives of a query: ragged, with gaps, fragments, copies, and letters that are no amino acid."""
    n, n_columns = draw(st.sampled_from([1, 2, 3, 12, 60])), draw(st.sampled_from([1, 2, 8, 9, 33, 70, 150]))
    change, gaps, others = (draw(st.sampled_from([0.0, 0.03, 0.3])) for _ in range(3))
    ragged = draw(st.sampled_from([1, 3, 20]))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))

    def put(rows: np.ndarray, parts: np.ndarray | float, codes: list[int]) -> None:
        places = generator.random(rows.shape) < parts
        rows[places] = generator.choice(codes, int(places.sum()))

    clusters = np.tile(generator.integers(0, 20, n_columns), (1 + n // 5, 1))
    put(clusters[1:], change, list(range(20)))
    rows = clusters[generator.integers(0, len(clusters), n)]
    put(rows, generator.choice([0.0, 0.02, 0.05, 0.08], (n, 1)), list(range(20)))
    put(rows, gaps * generator.random((n, 1)), [GAP])
    put(rows, others / 3, list(range(20, 27)))
    for row in rows:
        begin, end = generator.integers(0, n_columns // ragged + 1, 2)
        row[:begin], row[n_columns - end :] = GAP, GAP
        begin, length = generator.integers(0, n_columns), generator.integers(0, 30)
        row[begin : begin + length * int(generator.integers(0, 2))] = GAP
    rows[0] = clusters[0]
    put(rows[:1], others / 3, list(range(20, 27)))
    return of_columns(rows)


def same(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether not a bit differs."""
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


@random_cases(300)
@given(
    alignments(),
    st.sampled_from([0.94, 0.94, 0.94, 0.3, 0.8, 0.97, 1.0, 2.0]),
    st.sampled_from([(25, 100), (1, 1), (1, 10), (40, 40), (10**6, 10**9)]),
    st.sampled_from([None, 0, 2, 9]),
)
def test_observations_equal_the_plain_ones_bit_for_bit(alignment, identity, columns, max_gap_length) -> None:
    settings = ProfileSettings(identity, *columns, max_gap_length=max_gap_length)
    found, n_found = observations_of(alignment, settings)
    expected, n_expected = expected_observations(alignment, settings)
    assert n_found == n_expected
    for name in BY_COLUMN:
        assert same(getattr(found, name), getattr(expected, name)), name


def test_many_copies_and_long_rows_are_as_the_plain_ones() -> None:
    """More words than are compared at once, and more rows."""
    generator = np.random.default_rng(4)
    bases = generator.integers(0, 20, (8, 700))
    rows = bases[generator.integers(0, 8, 150)]
    changed = generator.random(rows.shape) < generator.choice([0.02, 0.05, 0.08], (150, 1))
    rows[changed] = generator.integers(0, 27, int(changed.sum()))
    rows[0] = bases[0]
    found, expected = (of(of_columns(rows), ProfileSettings()) for of in (observations_of, expected_observations))
    assert found[1] == expected[1]
    assert 20 < found[1] < 100
    assert all(same(getattr(found[0], name), getattr(expected[0], name)) for name in BY_COLUMN)


@pytest.mark.parametrize(("differences", "stays"), [(6, False), (7, True)])
def test_rows_of_94_percent_identity_are_one(differences: int, stays: bool) -> None:
    query, one = np.arange(100) % 20, (np.arange(100) * 3 + 1) % 20
    other = one.copy()
    places = list(range(0, 90, 90 // differences))[:differences]
    other[places] = (other[places] + 7) % 20
    assert observations_of(of_columns(np.stack([query, one, other])))[1] == (2 if stays else 1)


def test_weights_are_those_of_the_paper() -> None:
    """The example of Henikoff and Henikoff, J. Mol. Biol. 243:574, 1994: 0.27, 0.27, 0.2 and 0.27."""
    figure = alignment_from("GYVGS", "GFDGF", "GYDGF", "GYQGG")
    first = (1 / 4 + 1 / 6 + 1 / 3 + 1 / 4 + 1 / 3) / 5
    second = (1 / 4 + 1 / 2 + 1 / 6 + 1 / 4 + 1 / 6) / 5
    third = (1 / 4 + 1 / 6 + 1 / 6 + 1 / 4 + 1 / 6) / 5
    found, _ = observations_of(figure, ALL_COUNT)
    d, f, g, v, s = (PROTEIN.letters.index(letter) for letter in "DFGVS")
    assert found.frequencies[2, [v, d]] == pytest.approx([first, second + third])
    assert found.frequencies[4, [s, f, g]] == pytest.approx([first, second + third, first])


def test_a_row_is_not_counted_where_it_is_absent() -> None:
    """In the last column two rows share, and the third has the mean of its first three."""
    shares = [[3 / (2 * 2), 1, 1, 2 / (2 * 1)], [3 / (2 * 2), 1, 1, 2 / (2 * 1)], [3 / (2 * 1), 1, 1]]
    means = np.array([np.mean(share) for share in shares])
    found, _ = observations_of(alignment_from("ACDE", "ACDF", "WCD-"), ALL_COUNT)
    assert found.frequencies[0].max() == pytest.approx((means[0] + means[1]) / means.sum())
    assert found.n_rows.tolist() == [3, 3, 3, 2]


def test_many_rows_share_weights_between_neighbouring_columns() -> None:
    """Rows that begin one at a time get the weights of rows that begin together; frequencies hardly differ."""
    generator = np.random.default_rng(1)
    rows = generator.integers(0, 20, (128, 80))
    for row in range(1, len(rows)):
        rows[row, : row % 40] = GAP
    found, _ = observations_of(of_columns(rows), ALL_COUNT)
    exact = np.array([np.bincount(column[column < 20], minlength=20) for column in rows.T])
    assert found.frequencies.sum(axis=1) == pytest.approx(np.ones(80))
    assert found.n_rows.tolist() == (rows != GAP).sum(axis=0).tolist()
    assert np.abs(found.frequencies - exact / exact.sum(axis=1, keepdims=True)).max() < 0.05


@pytest.mark.parametrize(
    ("place", "value"),
    [(0, b"\0" * 9), (1, 0), (2, b"\0" * 255), (2, b"\x16" * 256), (2, b"\x15" * 256), (3, b"\0" * 8), (4, 0.0),
     (4, float("nan")), (5, -1), (6, 0), (7, 4), (8, bytearray(8)), (9, bytearray(32)), (10, bytearray(8))],
)  # fmt: skip
def test_the_extension_checks_what_it_gets(place: int, value: object) -> None:
    n = 5
    arguments = [bytes(2 * n), 2, bytes(256), np.full(20, 0.05), 0.94, n, 5, 100]
    arguments += [np.empty((n, 22)), np.empty(n), np.empty(n, dtype=np.int64)]
    assert extension.load().observe(*arguments) == 1
    arguments[place] = value
    with pytest.raises(ValueError, match="expected an alignment"):
        extension.load().observe(*arguments)
