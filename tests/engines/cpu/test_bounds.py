"""Whatever the extension's functions are given: a result or ValueError, soon, and nothing outside the buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from swsearch.blocks import LANES
from swsearch.engines.cpu import extension

LARGEST, LEAST = 2**31 - 1, -(2**31)
TABLE = np.eye(32, dtype=np.int8)
CODES = np.zeros(40, dtype=np.uint8)
NO_ROWS = np.empty(0, dtype=np.int8)


def moved(array: Any) -> Any:
    """Return the same items where no item of their size may begin."""
    raw = np.empty(array.nbytes + 1, dtype=np.uint8)
    raw[1:] = array.view(np.uint8).reshape(-1)
    return raw[1:]


def search(**changed: Any) -> Any:
    """Search two blocks of 16 columns, some arguments changed."""
    lengths = np.full(LANES + 3, 10, dtype=np.int32)
    residues = np.full((32, LANES), 31, dtype=np.uint8)
    residues[:10] = residues[16:26] = 0
    given = {
        "codes": CODES,
        "query_offsets": np.array([0, 40]),
        "longest_16": np.array([500], dtype=np.int32),
        "row_scores": NO_ROWS,
        "row_costs": NO_ROWS,
        "residues": residues,
        "column_offsets": np.array([0, 16, 32]),
        "lengths": lengths,
        "chosen": np.zeros(0, dtype=np.int64),
        "some": False,
        "scores": TABLE,
        "first": 12,
        "extend": 1,
        "most_first": 12,
        "most_extend": 1,
        "mode": 0,
        "first_bits": 8,
        "last_bits": 32,
        "threads": 1,
        "way": 0,
        "instructions": extension.chosen(),
        "progress": None,
        "out": np.zeros((1, len(lengths)), dtype=np.int32),
        "saturated": np.zeros((1, len(lengths)), dtype=np.uint8),
    }
    assert not changed.keys() - given.keys()
    return extension.load().search(*(given | changed).values())


NOT_SEARCHED: list[dict[str, Any]] = [
    {"column_offsets": np.array([0, 2**63 - 8, -(2**63) + 8])},
    {"column_offsets": np.array([0, -(2**63), 32])},
    {"column_offsets": np.array([0, 1 << 40, 32])},
    {"column_offsets": np.array([-16, 0, 16])},
    {"column_offsets": np.array([32, 16, 0])},
    {"column_offsets": np.array([0, 16, 40])},
    {"column_offsets": np.array([0, 16])},
    {"column_offsets": moved(np.array([0, 16, 32]))},
    {"column_offsets": np.array([0, 16, 32], dtype=np.int32)},
    {"residues": np.zeros((16, LANES), dtype=np.uint8)},
    {"residues": np.zeros(32 * LANES + 1, dtype=np.uint8)},
    {"query_offsets": np.array([0, 41])},
    {"query_offsets": np.array([0, 0])},
    {"query_offsets": np.array([-(2**63), 2**63 - 1])},
    {"query_offsets": np.array([40, 0])},
    {"longest_16": np.array([-1], dtype=np.int32)},
    {"longest_16": np.array([5, 5], dtype=np.int32)},
    {"lengths": np.full(LANES + 3, -1, dtype=np.int32)},
    {"lengths": np.full(LANES + 3, 17, dtype=np.int32)},
    {"lengths": np.arange(LANES + 3, dtype=np.int32)},
    {"first": LARGEST},
    {"first": LARGEST, "extend": LARGEST},
    {"first": 1, "extend": 2},
    {"first": 1, "extend": -1},
    {"first": LEAST, "extend": LEAST},
    {"mode": 3},
    {"mode": -1},
    {"way": 3},
    {"threads": 0},
    {"threads": LEAST},
    {"first_bits": 64},
    {"scores": TABLE[:31]},
    {"codes": np.full(40, 32, dtype=np.uint8)},
    {"out": np.zeros((1, LANES), dtype=np.int32)},
    {"saturated": np.zeros((1, LANES), dtype=np.uint8)},
    {"chosen": np.array([67]), "some": True, "out": np.zeros(1, dtype=np.int32), "saturated": bytearray(1)},
    {"chosen": np.array([-1]), "some": True, "out": np.zeros(1, dtype=np.int32), "saturated": bytearray(1)},
    {"chosen": np.array([3, 3]), "some": True, "out": np.zeros(2, dtype=np.int32), "saturated": bytearray(2)},
]


@pytest.mark.parametrize("changed", NOT_SEARCHED, ids=str)
def test_what_is_not_searched(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected codes below 32"):
        search(**changed)


def test_what_is_searched() -> None:
    out = np.zeros((1, LANES + 3), dtype=np.int32)
    search(out=out)
    assert (out == 10).all()
    search(out=out, threads=LARGEST)
    assert (out == 10).all()


def test_no_contiguous_buffer() -> None:
    for name, value in (("residues", np.zeros((64, LANES), dtype=np.uint8)[::2]), ("out", np.zeros(134, "i4")[::2])):
        with pytest.raises((ValueError, TypeError, BufferError)):
            search(**{name: value})
    with pytest.raises((TypeError, BufferError)):
        search(out=bytes(4 * (LANES + 3)))
    with pytest.raises(OverflowError):
        search(threads=2**31)
    with pytest.raises(TypeError):
        search(first=float("nan"))


def settings(**changed: Any) -> list[Any]:
    given = {
        "scores": TABLE,
        "max_score": 1,
        "open": 11,
        "extend": 1,
        "local": True,
        "ends": 15,
        "with_path": True,
        "memory": 1 << 20,
        "threads": 1,
        "tile": 0,
        "beam": 700,
        "instructions": extension.chosen(),
    }
    assert not changed.keys() - given.keys()
    return list((given | changed).values())


NOT_ALIGNED: list[dict[str, Any]] = [
    {"extend": LARGEST},
    {"open": LARGEST},
    {"open": LARGEST, "extend": LARGEST},
    {"extend": 1 << 21},
    {"open": -1},
    {"extend": LEAST},
    {"max_score": LARGEST},
    {"max_score": -1},
    {"max_score": 0},
    {"memory": -1},
    {"memory": -(2**63)},
    {"threads": 0},
    {"threads": LEAST},
    {"tile": -1},
    {"tile": 4097},
    {"beam": -1},
    {"beam": 2**63 - 1},
    {"scores": TABLE[:3]},
]


@pytest.mark.parametrize("changed", NOT_ALIGNED, ids=str)
def test_what_is_not_aligned(changed: dict[str, Any]) -> None:
    nothing = np.zeros(0, dtype=np.int64)
    with pytest.raises(ValueError, match="expected a 32 x 32 table"):
        extension.load().align(CODES, CODES, *settings(**changed))
    with pytest.raises(ValueError, match="expected a 32 x 32 table"):
        extension.load().align_many(CODES, CODES, np.array([0, 40, 0, 40]), nothing, *settings(**changed))


@pytest.mark.parametrize("local", [True, False])
def test_costs_that_long_sequences_make_too_large(local: bool) -> None:
    codes = np.zeros(2_000, dtype=np.uint8)
    given = settings(open=1 << 20, extend=1 << 20, local=local, ends=15 if local else 0)
    with pytest.raises(ValueError, match="whose scores are within"):
        extension.load().align(codes, codes, *given)
    with pytest.raises(ValueError, match="whose scores are within"):
        extension.load().align_many(codes, codes, np.array([0, 2_000, 0, 2_000]), np.zeros(0, dtype=np.int64), *given)
    short = codes[:500]
    score = extension.load().align(short, short, *given)[0]
    assert score == 500


@pytest.mark.parametrize("known", [2**63 - 1, -(2**63) + 1, 1 << 33])
def test_known_scores(known: int) -> None:
    places = np.array([0, 40, 0, 40])
    with pytest.raises(ValueError, match="expected a known score for each pair"):
        extension.load().align_many(CODES, CODES, places, np.array([known]), *settings())


@pytest.mark.parametrize("known", [LARGEST, LEAST, 41, 40, -1, -(2**63)])
@pytest.mark.parametrize("local", [True, False])
def test_a_known_score_that_is_not_reached_changes_nothing(known: int, local: bool) -> None:
    given = settings(local=local, ends=15 if local else 0)
    places = np.array([0, 40, 0, 40])
    numbers, lengths, _ = extension.load().align_many(CODES, CODES, places, np.array([known]), *given)
    assert np.frombuffer(numbers, dtype=np.int64)[0] == 40
    assert np.frombuffer(lengths, dtype=np.int64).tolist() == [40]


def test_many_threads_are_no_more_than_help() -> None:
    assert extension.load().align(CODES, CODES, *settings(threads=LARGEST))[0] == 40


@pytest.mark.parametrize(
    "places", [moved(np.array([0, 3, 0, 3])), np.array([0, 2**63 - 1, 0, 1]), np.array([2**62] * 4)]
)
def test_places(places: Any) -> None:
    with pytest.raises(ValueError, match="expected places within the codes"):
        extension.load().align_many(CODES, CODES, places, np.zeros(0, dtype=np.int64), *settings())


@pytest.mark.parametrize(
    "given",
    [
        (TABLE, np.zeros(0, dtype=np.int64), LARGEST, LARGEST, 1, 3),
        (TABLE, np.zeros(0, dtype=np.int64), -1, 1, 1, 3),
        (TABLE, np.zeros(0, dtype=np.int64), 11, 1, 0, 3),
        (TABLE, np.zeros(0, dtype=np.int64), 11, 1, 1, -1),
        (TABLE, np.array([0]), 11, 1, 1, 3),
        (TABLE, np.array([0, 40]), 11, 1, 1, 3),
        (TABLE, np.array([-(2**63), 0]), 11, 1, 1, 3),
        (TABLE, moved(np.array([0, 0])), 11, 1, 1, 3),
        (TABLE[:2], np.array([0, 0]), 11, 1, 1, 3),
    ],
)
def test_further(given: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="expected a 32 x 32 table"):
        extension.load().align_further(CODES, CODES, *given)


def shuffle(**changed: Any) -> Any:
    """Shuffle three copies of two sequences into a block of 24 columns, some arguments changed."""
    given = {
        "codes": CODES,
        "offsets": np.array([0, 20, 40]),
        "sequences": np.array([0, 1, 1]),
        "copies": np.array([0, 0, 1], dtype=np.int32),
        "column_offsets": np.array([0, 24]),
        "window": 20,
        "threads": 1,
        "residues": np.zeros((24, LANES), dtype=np.uint8),
    }
    assert not changed.keys() - given.keys()
    return extension.load().shuffle(*(given | changed).values())


NOT_SHUFFLED: list[dict[str, Any]] = [
    {"offsets": np.array([0, 20, 41])},
    {"offsets": np.array([0, 21, 20])},
    {"offsets": np.array([-1, 20, 40])},
    {"offsets": np.array([0, 2**62, 40])},
    {"offsets": np.zeros(0, dtype=np.int64)},
    {"sequences": np.array([0, 1, 2])},
    {"sequences": np.array([0, -1, 1])},
    {"sequences": np.array([0, 1])},
    {"copies": np.array([0, 0, -2], dtype=np.int32)},
    {"copies": np.zeros(2, dtype=np.int32)},
    {"column_offsets": np.array([0, 16])},
    {"column_offsets": np.array([0, 32])},
    {"column_offsets": np.array([0, 24, 24])},
    {"column_offsets": np.array([-24, 0])},
    {"column_offsets": np.array([0, 2**62])},
    {"window": 0},
    {"window": LEAST},
    {"threads": 0},
    {"residues": np.zeros((16, LANES), dtype=np.uint8)},
    {"offsets": moved(np.array([0, 20, 40]))},
]


def test_what_can_be_shuffled_is() -> None:
    assert shuffle() is None
    assert shuffle(copies=np.array([-1, 0, -1], dtype=np.int32)) is None
    assert shuffle(threads=LARGEST, window=LARGEST) is None


@pytest.mark.parametrize("changed", NOT_SHUFFLED, ids=str)
def test_what_cannot_be_shuffled_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected lanes"):
        shuffle(**changed)


def score_shuffled(**changed: Any) -> Any:
    """Score two copies of three pairs, some arguments changed."""
    given = {
        "queries": CODES,
        "query_offsets": np.array([0, 10, 40]),
        "longest_16": np.full(2, 1000, dtype=np.int32),
        "row_scores": NO_ROWS,
        "row_costs": NO_ROWS,
        "codes": CODES,
        "offsets": np.array([0, 20, 20, 40]),
        "pairs": np.array([[0, 0], [1, 1], [1, 2]]),
        "first_copy": 4,
        "n_copies": 2,
        "window": 20,
        "scores": TABLE,
        "first": 12,
        "extend": 1,
        "most_first": 12,
        "most_extend": 1,
        "mode": 0,
        "first_bits": 8,
        "last_bits": 32,
        "threads": 1,
        "way": 0,
        "instructions": "scalar",
        "out": np.zeros((3, 2), dtype=np.int32),
    }
    assert not changed.keys() - given.keys()
    return extension.load().score_shuffled(*(given | changed).values())


NOT_SCORED: list[dict[str, Any]] = [
    {"queries": np.full(40, 32, dtype=np.uint8)},
    {"query_offsets": np.array([0, 10, 41])},
    {"query_offsets": np.array([0, 11, 10])},
    {"query_offsets": np.array([-1, 10, 40])},
    {"query_offsets": np.array([0, 40])},
    {"query_offsets": np.zeros(0, dtype=np.int64)},
    {"query_offsets": moved(np.array([0, 10, 40]))},
    {"longest_16": np.full(3, 1000, dtype=np.int32)},
    {"longest_16": np.array([5, -1], dtype=np.int32)},
    {"codes": np.full(40, 255, dtype=np.uint8)},
    {"offsets": np.array([0, 20, 20, 41])},
    {"offsets": np.array([0, 20, 19, 40])},
    {"offsets": np.array([0, 2**62, 2**62, 40])},
    {"offsets": np.array([0, 20, 40])},
    {"offsets": np.zeros(0, dtype=np.int64)},
    {"offsets": moved(np.array([0, 20, 20, 40]))},
    {"pairs": np.array([[0, 0], [1, 1], [2, 2]])},
    {"pairs": np.array([[0, 0], [1, 1], [1, 3]])},
    {"pairs": np.array([[0, 0], [-1, 1], [1, 2]])},
    {"pairs": np.array([[0, 0], [1, -(2**63)], [1, 2]])},
    {"pairs": np.array([0, 0, 1, 1, 1])},
    {"pairs": np.array([[0, 0], [1, 1]])},
    {"first_copy": -2},
    {"first_copy": LARGEST},
    {"n_copies": 0},
    {"n_copies": 3},
    {"n_copies": LARGEST},
    {"window": 0},
    {"scores": TABLE[:3]},
    {"first": -1, "extend": -1},
    {"first": 1, "extend": 2},
    {"first": LARGEST},
    {"mode": 3},
    {"mode": -1},
    {"first_bits": 7},
    {"last_bits": 64},
    {"threads": 0},
    {"way": 3},
    {"instructions": "none"},
    {"out": np.zeros((3, 1), dtype=np.int32)},
    {"out": moved(np.zeros((3, 2), dtype=np.int32))},
]


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_what_can_be_shuffled_and_scored_is(mode: int) -> None:
    assert score_shuffled(mode=mode) is None
    assert score_shuffled(mode=mode, first_copy=-1) is None
    assert score_shuffled(mode=mode, threads=LARGEST, window=LARGEST) is None
    nothing = np.zeros(0, dtype=np.int64)
    assert score_shuffled(mode=mode, pairs=nothing, out=nothing.astype(np.int32)) is None
    assert score_shuffled(mode=mode, pairs=np.array([1, 0, 0, 0, 1, 0])) is None


@pytest.mark.parametrize("changed", NOT_SCORED, ids=str)
def test_what_cannot_be_shuffled_and_scored_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        score_shuffled(**changed)


def test_a_copy_that_no_lane_holds_is_told_of() -> None:
    """Python looks at lengths before it calls."""
    identical = {"codes": np.zeros(40, dtype=np.uint8), "queries": np.zeros(40, dtype=np.uint8), "last_bits": 8}
    with pytest.raises(RuntimeError, match="please report this"):
        score_shuffled(scores=np.full((32, 32), 20, dtype=np.int8), **identical)
