"""Whatever the extension's functions are given: a result or ValueError, soon, and nothing outside the buffers."""

from __future__ import annotations

import os
import tempfile
import zlib
from typing import Any

import numpy as np
import pytest

from swsearch import extension
from swsearch.blocks import LANES
from swsearch.engines.cpu import columns
from swsearch.engines.pools import PoolPairs
from swsearch.scoring import Scoring

LARGEST, LEAST = 2**31 - 1, -(2**31)
TABLE = np.eye(32, dtype=np.int8)
CODES = np.zeros(40, dtype=np.uint8)
NOTHING = np.zeros(0, dtype=np.int64)
NO_ROWS = np.empty(0, dtype=np.int8)
ROWS, GAPS = np.ones((40, 32), dtype=np.int8), np.ones((40, 4), dtype=np.int16)
NO_GAPS = np.zeros((0, 4), dtype=np.int16)
COLUMNS = ("count", "rows", "trace_back_operations")
FOUND = columns.UncountedAlignments(
    np.array([5, 5]),
    np.array([0, 30]),
    np.array([10, 0]),
    np.array([0, 3, 4]),
    np.array([10, 20, 10, 10]),
    np.frombuffer(b"MDIM", dtype=np.uint8),
)
POOL = (CODES, np.array([0, 40]))

STORED, _PATH = tempfile.mkstemp()
os.write(STORED, bytes(300))
os.unlink(_PATH)  # noqa: PTH108  # open for all tests
STORED_SUMS = np.array([zlib.crc32(bytes(n)) for n in (128, 122)], dtype=np.uint32)
"""Those of an array of 250 bytes behind 50 others."""

Given = dict[str, Any]


def moved(array: Any) -> Any:
    """Return the same items where no item of their size may begin."""
    raw = np.empty(array.nbytes + 1, dtype=np.uint8)
    raw[1:] = array.view(np.uint8).reshape(-1)
    return raw[1:]


def two_blocks() -> Any:
    """Return two blocks of 16 columns."""
    residues = np.full((32, LANES), 31, dtype=np.uint8)
    residues[:10] = residues[16:26] = 0
    return residues


SCORED: Given = {
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
    "instructions": extension.active_instruction_set(),
}
ALIGNED: Given = {
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
    "instructions": extension.active_instruction_set(),
}
COMMON: Given = dict(
    zip(
        (
            *("codes", "other_codes", "letters", "other_letters", "places", "starts", "offsets", "lengths"),
            *("operations", "scores", "identities", "encode", "decode", "threads"),
        ),
        columns._common(FOUND, PoolPairs(POOL, POOL, np.zeros((2, 2), dtype=np.int64)), Scoring().matrix, 1),
        strict=True,
    )
)
GIVEN: dict[str, Given] = {
    "search": {
        "codes": CODES,
        "query_offsets": np.array([0, 40]),
        "longest_16": np.array([500], dtype=np.int32),
        "row_scores": NO_ROWS,
        "row_costs": NO_ROWS,
        "residues": two_blocks(),
        "column_offsets": np.array([0, 16, 32]),
        "lengths": np.full(LANES + 3, 10, dtype=np.int32),
        "chosen": NOTHING,
        "some": False,
        **SCORED,
        "progress": None,
        "out": np.zeros((1, LANES + 3), dtype=np.int32),
        "saturated": np.zeros((1, LANES + 3), dtype=np.uint8),
    },
    "score_shuffled": {
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
        **SCORED,
        "out": np.zeros((3, 2), dtype=np.int32),
    },
    "shuffle": {
        "codes": CODES,
        "offsets": np.array([0, 20, 40]),
        "sequences": np.array([0, 1, 1]),
        "copies": np.array([0, 0, 1], dtype=np.int32),
        "column_offsets": np.array([0, 24]),
        "window": 20,
        "threads": 1,
        "residues": np.zeros((24, LANES), dtype=np.uint8),
    },
    "align": {"query": CODES, "subject": CODES, **ALIGNED},
    "align_many": {
        "query": CODES, "subject": CODES, "places": np.array([0, 40, 0, 40]), "known": NOTHING, **ALIGNED,
    },
    "align_further": {
        "query": CODES, "subject": CODES, "scores": TABLE, "pairs": NOTHING, "open": 11, "extend": 1, "least": 1,
        "most": 3,
    },
    "count": COMMON | {"numbers": np.zeros(14, dtype=np.int64)},
    "rows": COMMON
    | {"ends": np.array([0, 40, 50])}
    | {name: np.zeros(50, dtype=np.uint8) for name in ("query_row", "middle", "subject_row")},
    "trace_back_operations": COMMON | {"numbers": np.zeros(2, dtype=np.int64)},
    "read_ranges": {
        "file": STORED,
        "at": 50,
        "n_bytes": 250,
        "piece_bytes": 128,
        "sums": STORED_SUMS,
        "begins": np.array([0, 249, 250, 1]),
        "offsets": np.array([0, 4, 5, 5, 6]),
        "step": 64,
        "threads": 1,
        "values": np.zeros(6, dtype=np.uint8),
    },
    "copy_ranges": {
        "source": CODES,
        "begins": np.array([0, 41, 30]),
        "target": np.zeros(20, dtype=np.uint8),
        "to": np.array([0, 20, 10]),
        "counts": np.array([20, 0, 10]),
    },
}  # fmt: skip
"""Arguments of each function with which it succeeds, in their order."""


def call(name: str, **changed: Any) -> Any:
    """Call a function, some arguments changed, and rows and gap costs given besides."""
    given = GIVEN[name]
    assert not changed.keys() - given.keys() - {"rows", "gaps"}
    values = list((given | changed).values())
    if name in COLUMNS:
        values[: len(COMMON)] = [tuple(values[: len(COMMON)])]
    return getattr(extension.load(), name)(*values)


NOT_SCORED: list[Given] = [
    {"scores": TABLE[:31]},
    {"first": LARGEST},
    {"first": LARGEST, "extend": LARGEST},
    {"first": 1, "extend": 2},
    {"first": 1, "extend": -1},
    {"first": 0},
    {"first": -1, "extend": -1},
    {"first": LEAST, "extend": LEAST},
    {"mode": 3},
    {"mode": -1},
    {"first_bits": 7},
    {"first_bits": 64},
    {"last_bits": 64},
    {"threads": 0},
    {"threads": LEAST},
    {"way": 3},
    {"row_scores": np.zeros(4 * 32, dtype=np.int8)},
    {"row_costs": np.zeros((5, 4), dtype=np.int16)},
]
"""Arguments that neither `search` nor `score_shuffled` accepts."""

OTHER_ROWS: list[Given] = [
    {"rows": ROWS[:39], "gaps": NO_GAPS},
    {"rows": NO_ROWS, "gaps": GAPS},
    {"rows": ROWS, "gaps": GAPS[:39]},
    {"rows": ROWS, "gaps": -GAPS},
    {"rows": ROWS, "gaps": GAPS[:39].tobytes() + b"1234567"},
]

REFUSED: dict[tuple[str, str], list[Given]] = {
    ("search", "expected codes below 32"): [
        *NOT_SCORED,
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
        {"codes": np.full(40, 32, dtype=np.uint8)},
        {"out": np.zeros((1, LANES), dtype=np.int32)},
        {"saturated": np.zeros((1, LANES), dtype=np.uint8)},
        {"chosen": np.array([67]), "some": True, "out": np.zeros(1, dtype=np.int32), "saturated": bytearray(1)},
        {"chosen": np.array([-1]), "some": True, "out": np.zeros(1, dtype=np.int32), "saturated": bytearray(1)},
        {"chosen": np.array([3, 3]), "some": True, "out": np.zeros(2, dtype=np.int32), "saturated": bytearray(2)},
    ],
    ("score_shuffled", "expected"): [
        *NOT_SCORED,
        {"queries": np.full(40, 32, dtype=np.uint8)},
        {"query_offsets": np.array([0, 10, 41])},
        {"query_offsets": np.array([0, 11, 10])},
        {"query_offsets": np.array([-1, 10, 40])},
        {"query_offsets": np.array([0, 40])},
        {"query_offsets": NOTHING},
        {"query_offsets": moved(np.array([0, 10, 40]))},
        {"longest_16": np.full(3, 1000, dtype=np.int32)},
        {"longest_16": np.array([5, -1], dtype=np.int32)},
        {"codes": np.full(40, 255, dtype=np.uint8)},
        {"offsets": np.array([0, 20, 20, 41])},
        {"offsets": np.array([0, 20, 19, 40])},
        {"offsets": np.array([0, 2**62, 2**62, 40])},
        {"offsets": np.array([0, 20, 40])},
        {"offsets": NOTHING},
        {"offsets": moved(np.array([0, 20, 20, 40]))},
        {"pairs": np.array([[0, 0], [1, 1], [2, 2]])},
        {"pairs": np.array([[0, 0], [1, 1], [1, 3]])},
        {"pairs": np.array([[0, 0], [-1, 1], [1, 2]])},
        {"pairs": np.array([[0, 0], [1, -(2**63)], [1, 2]])},
        {"pairs": np.array([0, 0, 1, 1, 1])},
        {"pairs": np.array([[0, 0], [1, 1]])},
        {"first_copy": -3},
        {"first_copy": LARGEST},
        {"n_copies": 0},
        {"n_copies": 3},
        {"n_copies": LARGEST},
        {"window": 0},
        {"out": np.zeros((3, 1), dtype=np.int32)},
        {"out": moved(np.zeros((3, 2), dtype=np.int32))},
    ],
    ("search score_shuffled", "expected .*instruction"): [{"instructions": "vax"}],
    ("shuffle", "expected lanes"): [
        {"offsets": np.array([0, 20, 41])},
        {"offsets": np.array([0, 21, 20])},
        {"offsets": np.array([-1, 20, 40])},
        {"offsets": np.array([0, 2**62, 40])},
        {"offsets": NOTHING},
        {"offsets": moved(np.array([0, 20, 40]))},
        {"sequences": np.array([0, 1, 2])},
        {"sequences": np.array([0, -1, 1])},
        {"sequences": np.array([0, 1])},
        {"copies": np.array([0, 0, -3], dtype=np.int32)},
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
    ],
    ("align align_many", "expected a 32 x 32 table"): [
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
    ],
    ("align align_many", "expected codes below 32"): [
        {"query": np.full(40, 32, dtype=np.uint8)},
        {"subject": np.full(40, 32, dtype=np.uint8)},
    ],
    ("align_many", "expected places within the codes"): [
        {"places": moved(np.array([0, 3, 0, 3]))},
        {"places": np.array([0, 2**63 - 1, 0, 1])},
        {"places": np.array([2**62] * 4)},
        {"places": np.array([0, 41, 0, 1])},
        {"places": np.array([-1, 1, 0, 1])},
        {"places": np.array([0, 1, 40, 1])},
        {"places": np.array([0, 1, 0, -1])},
        {"places": np.array([0, 1, 0])},
    ],
    ("align_many", "expected a known score for each pair"): [
        {"known": np.zeros(2, dtype=np.int64)},
        *({"known": np.array([known])} for known in (2**63 - 1, -(2**63) + 1, 1 << 33)),
    ],
    ("align_further", "expected a 32 x 32 table"): [
        {"open": LARGEST, "extend": LARGEST},
        {"open": -1},
        {"least": 0},
        {"most": -1},
        {"pairs": np.array([0])},
        {"pairs": np.array([0, 40])},
        {"pairs": np.array([-(2**63), 0])},
        {"pairs": moved(np.array([0, 0]))},
        {"scores": TABLE[:2]},
    ],
    ("align align_many align_further", "expected 32 scores and four costs for each residue"): OTHER_ROWS,
    ("align align_many", "expected 32 scores and four costs"): [{"rows": ROWS + 1, "gaps": NO_GAPS}],
    (" ".join(COLUMNS), "expected"): [
        {"codes": CODES + np.uint8(32)},
        {"other_codes": CODES + np.uint8(32)},
        {"letters": CODES[1:]},
        {"other_letters": CODES[1:]},
        {"places": np.array([[0, 40, 0, 40]])},
        {"places": np.array([[0, 40, 0, 40], [1, 40, 0, 40]])},
        {"places": np.array([[0, 40, 0, 40], [0, 40, -1, 40]])},
        {"places": np.array([[0, 40, 0, 40], [2**62, 2**62, 0, 40]])},
        {"starts": np.array([0, 10])},
        {"starts": np.array([0, 10, 30])},
        {"starts": np.array([[0, 10], [-1, 0]])},
        {"starts": np.array([[0, 10], [31, 0]])},
        {"starts": np.array([[0, 10], [0, 2**63 - 1]])},
        {"starts": moved(np.array([0, 10, 30, 0]))},
        {"offsets": np.array([0, 4])},
        {"offsets": np.array([0, 5, 4])},
        {"offsets": np.array([1, 3, 4])},
        {"offsets": np.array([0, 3, 5])},
        *({"lengths": np.array([10, 20, 10, last])} for last in (0, 11, -(2**63))),
        {"lengths": np.array([10, 20, 2**63 - 1, 10])},
        {"lengths": np.array([10, 20, 10])},
        {"operations": np.frombuffer(b"MDXM", dtype=np.uint8)},
        {"operations": np.frombuffer(b"MDI", dtype=np.uint8)},
        {"scores": np.zeros((31, 32), dtype=np.int8)},
        *({name: CODES} for name in ("identities", "encode", "decode")),
        {"threads": 0},
    ],
    ("count", "expected room for seven"): [{"numbers": np.zeros(n, dtype=np.int64)} for n in (13, 15)],
    ("trace_back_operations", "expected room for a number a pair"): [{"numbers": np.zeros(13, dtype=np.int64)}],
    ("rows", "expected"): [
        {"ends": np.array(ends)}
        for ends in ([0, 40, 51], [0, 50], [0, 39, 50], [0, 2**62, 50], [-1, 40, 50], [0, 40, 50, 50])
    ],
    ("read_ranges", "expected ranges within an array"): [
        *({"at": at} for at in (-1, 2**63 - 1)),
        *({"n_bytes": n_bytes} for n_bytes in (-1, 0, 249, 257, 2**63 - 1)),
        *({"piece_bytes": piece_bytes} for piece_bytes in (0, -1, 64, 256, 2**63 - 1)),
        *({"step": step} for step in (0, -1, 65, 2**63 - 1)),
        *({"threads": threads} for threads in (0, LEAST)),
        {"sums": STORED_SUMS[:1]},
        {"sums": STORED_SUMS.view(np.uint8)[1:]},
        *({"begins": np.array([begin, 249, 250, 1])} for begin in (-1, 58, -(2**63), 2**63 - 1)),
        {"begins": np.array([0, 250, 250, 1])},
        {"begins": NOTHING},
        {"begins": moved(np.array([0, 249, 250, 1]))},
        {"offsets": np.array([0, 4, 5, 5])},
        *({"offsets": np.array(offsets)} for offsets in ([0, 4, 5, 5, 7], [0, 4, 5, 5, 5], [1, 4, 5, 5, 6])),
        *({"offsets": np.array([0, 4, last, 5, 6])} for last in (3, 7, -(2**63), 2**63 - 1)),
        {"values": np.zeros(5, dtype=np.uint8)},
    ],
    ("copy_ranges", "expected ranges within both"): [
        *({"begins": np.array([begin, 40, 30])} for begin in (-1, 21, 2**63 - 1, -(2**63))),
        *({"to": np.array([to, 20, 10])} for to in (-1, 1, 2**63 - 1, -(2**63))),
        *({"counts": np.array([count, 0, 10])} for count in (-1, 21, 2**63 - 1, -(2**63))),
        {"to": np.array([0, 20])},
        {"begins": moved(np.array([0, 40, 30]))},
    ],
    ("rows", "three rows of one size"): [{"subject_row": np.zeros(49, dtype=np.uint8)}],
}
"""By functions and message: arguments that are refused."""

CASES = [
    (name, message, changed)
    for (names, message), every in REFUSED.items()
    for name in names.split()
    for changed in every
]


@pytest.mark.parametrize(("name", "message", "changed"), CASES, ids=str)
def test_what_is_refused(name: str, message: str, changed: Given) -> None:
    with pytest.raises(ValueError, match=message):
        call(name, **changed)


@pytest.mark.parametrize("name", GIVEN)
def test_what_the_cases_change_is_fine(name: str) -> None:
    call(name)


def test_many_threads_are_no_more_than_help() -> None:
    for threads in (1, LARGEST):
        out = np.zeros((1, LANES + 3), dtype=np.int32)
        call("search", out=out, threads=threads)
        assert (out == 10).all()
        assert call("align", threads=threads)[0] == 40
        call("shuffle", threads=threads, window=LARGEST)


def test_no_contiguous_buffer() -> None:
    for name, value in (("residues", np.zeros((64, LANES), dtype=np.uint8)[::2]), ("out", np.zeros(134, "i4")[::2])):
        with pytest.raises((ValueError, TypeError, BufferError)):
            call("search", **{name: value})
    with pytest.raises((TypeError, BufferError)):
        call("search", out=bytes(4 * (LANES + 3)))
    with pytest.raises(OverflowError):
        call("search", threads=2**31)
    with pytest.raises(TypeError):
        call("search", first=float("nan"))


@pytest.mark.parametrize("local", [True, False])
def test_costs_that_long_sequences_make_too_large(local: bool) -> None:
    codes = np.zeros(2_000, dtype=np.uint8)
    given = {"open": 1 << 20, "extend": 1 << 20, "local": local, "ends": 15 if local else 0}
    for name, places in (("align", {}), ("align_many", {"places": np.array([0, 2_000, 0, 2_000])})):
        with pytest.raises(ValueError, match="whose scores are within"):
            call(name, query=codes, subject=codes, **places, **given)
    assert call("align", query=codes[:500], subject=codes[:500], **given)[0] == 500
    costly = np.zeros(40_000, dtype=np.uint8)
    rows, gaps = np.ones((40_000, 32), dtype=np.int8), np.full((40_000, 4), 32_000, dtype=np.int16)
    with pytest.raises(ValueError, match="whose scores are within"):
        call("align", query=costly, subject=costly, local=False, ends=0, rows=rows, gaps=gaps)


@pytest.mark.parametrize("known", [LARGEST, LEAST, 41, 40, -1, -(2**63)])
@pytest.mark.parametrize("local", [True, False])
def test_a_known_score_that_is_not_reached_changes_nothing(known: int, local: bool) -> None:
    numbers, lengths, _ = call("align_many", known=np.array([known]), local=local, ends=15 if local else 0)
    assert np.frombuffer(numbers, dtype=np.int64)[0] == 40
    assert np.frombuffer(lengths, dtype=np.int64).tolist() == [40]


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_what_can_be_shuffled_and_scored_is(mode: int) -> None:
    nothing = {"pairs": NOTHING, "out": NOTHING.astype(np.int32)}
    flat = {"pairs": np.array([1, 0, 0, 0, 1, 0])}
    for changed in ({}, {"first_copy": -1}, {"threads": LARGEST, "window": LARGEST}, nothing, flat):
        assert call("score_shuffled", mode=mode, **changed) is None
    assert call("shuffle", copies=np.array([-1, 0, -1], dtype=np.int32)) is None


def test_a_copy_that_no_lane_holds_is_told_of() -> None:
    """Python looks at lengths before it calls."""
    with pytest.raises(RuntimeError, match="please report this"):
        call("score_shuffled", scores=np.full((32, 32), 20, dtype=np.int8), last_bits=8)
