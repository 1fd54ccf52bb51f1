"""One pass brings together what stands together in the database, whatever the groups and the pieces."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from support.samples import random_cases
from swsearch.blocks import LANES
from swsearch.db.classes import LengthCounts
from swsearch.db.numbers import NumberFile, temporary
from swsearch.db.regroup import Groups, pieces, rows_at, sorted_places, whole_group

lengths_of_many = st.lists(st.sampled_from([0, 1, 2, 30, 30, 31]) | st.integers(0, 60), min_size=1, max_size=300)


@random_cases(200)
@given(lengths_of_many)
def test_sorted_places(lengths: list[int]) -> None:
    found = sorted_places(np.array(lengths, dtype=np.int32))
    assert found.tolist() == np.lexsort((np.arange(len(lengths)), -np.array(lengths))).tolist()


def test_the_longest_are_sorted() -> None:
    lengths = np.array([0, 2**31 - 9, 5, 2**31 - 9, 0], dtype=np.int32)
    assert sorted_places(lengths).tolist() == [1, 3, 2, 0, 4]


@pytest.mark.parametrize("width", [1, 7, 32, 41])
def test_rows_at(width: int) -> None:
    residues = np.arange(41, dtype=np.uint8)
    starts = np.array([41 - width, 0, min(3, 41 - width)])
    assert rows_at(residues, starts, width).tolist() == [residues[at : at + width].tolist() for at in starts]


@random_cases(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lengths=lengths_of_many,
    piece_bytes=st.integers(1, 200),
    at_once=st.integers(1, 100),
    cuts=st.lists(st.integers(0, 5)),
)
def test_groups(
    lengths: list[int], piece_bytes: int, at_once: int, cuts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tiny pieces and tiny groups, those of one length in several: the order is that of a sort of all."""
    monkeypatch.setattr("swsearch.db.numbers.NUMBERS_AT_ONCE", at_once)
    records = [np.full(n, place % 251, dtype=np.uint8) for place, n in enumerate(lengths)]
    expected = np.lexsort((np.arange(len(lengths)), -np.array(lengths))).tolist()
    counts = LengthCounts()
    counts.add(np.array(lengths))
    classes = counts.classes()
    bounds = sorted({0, len(lengths), *(min(cut * LANES, len(lengths)) for cut in cuts)})
    with temporary(None) as codes:
        codes.write(np.concatenate(records).tobytes())
        stored = NumberFile(None, "<i4")
        stored.write(np.array(lengths))
        read = list(pieces(codes, stored, piece_bytes))
        assert [each.first for each in read] == np.cumsum([0, *(len(each.lengths) for each in read[:-1])]).tolist()
        assert all(len(each.residues) <= piece_bytes or len(each.lengths) == 1 for each in read)
        groups = Groups(None, classes, bounds, piece_bytes)
        groups.fill(codes, stored)
        whole = whole_group(codes, stored, classes.n_residues, 5)
        order: list[int] = []
        for group in [*(groups.read(number, 5) for number in range(len(groups))), whole]:
            assert group.residues[-5:].tolist() == [0] * 5
            starts = np.cumsum(group.lengths) - group.lengths
            for at, place, n in zip(starts.tolist(), group.places.tolist(), group.lengths.tolist(), strict=True):
                assert n == lengths[place] and (group.residues[at : at + n] == records[place]).all()
            order += group.places[sorted_places(group.lengths)].tolist()
        assert order == expected * 2
        groups.close()
        stored.close()


def test_what_comes_first_and_goes_to_the_end_takes_no_memory() -> None:
    """A file in memory would be filled with zeros up to it."""
    lengths = np.array([1] * 64 + [100_000] * 64)
    counts = LengthCounts()
    counts.add(lengths)
    with temporary(None) as codes:
        codes.write(bytes(int(lengths.sum())))
        stored = NumberFile(None, "<i4")
        stored.write(lengths)
        tracemalloc.start()
        try:
            groups = Groups(None, counts.classes(), [0, 64, 128], 200_000)
            groups.fill(codes, stored)
            assert tracemalloc.get_traced_memory()[1] < 2_000_000
        finally:
            tracemalloc.stop()
        groups.close()
        stored.close()
