"""Queries with scores and gap costs by position: the CPU engine equals the reference with every instruction set."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from support.cases import make_chunk, random_codes
from support.samples import sample
from swsearch import reference
from swsearch.alphabet import N_CODES, ByteArray
from swsearch.engines.cpu import extension
from swsearch.engines.cpu.engine import WAYS, CpuEngine
from swsearch.errors import InputError
from swsearch.options.kinds import MODES, Mode
from swsearch.recurrence import Recurrence
from swsearch.scoring import PAD_SCORE, PositionGaps, QueryRows, Scoring

SCORING = Scoring()
N_LETTERS = len(SCORING.matrix.alphabet.letters)


@pytest.fixture(params=extension.instruction_sets())
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> CpuEngine:
    """The CPU engine, with each instruction set."""
    monkeypatch.setenv(extension.SWITCH, request.param)
    return CpuEngine(2)


def scored(
    engine: CpuEngine, queries: list[QueryRows], subjects: list[ByteArray], mode: Mode, scoring: Scoring = SCORING
) -> npt.NDArray[np.int32]:
    """Score in input order."""
    chunk = make_chunk(subjects)
    found = engine.score(engine.prepare(queries, Recurrence(scoring, mode)), engine.load(chunk))
    ordered = np.empty_like(found)
    ordered[:, chunk.subjects] = found
    return ordered


def profile(
    generator: np.random.Generator, n: int, low: int = -9, high: int = 12, gaps: PositionGaps | None = None
) -> QueryRows:
    """Draw a profile of n rows."""
    scores = np.full((n, N_CODES), PAD_SCORE, dtype=np.int8)
    scores[:, :N_LETTERS] = generator.integers(low, high + 1, (n, N_LETTERS))
    return QueryRows(scores, random_codes(generator, n), is_specific=True, gaps=gaps)


def as_profile(codes: ByteArray, gaps: PositionGaps | None = None) -> QueryRows:
    """The matrix's scores of a sequence, as the positions' own."""
    return QueryRows(SCORING.rows(codes).scores, codes, is_specific=True, gaps=gaps)


def random_gaps(generator: np.random.Generator, n: int, highest: int = 14) -> PositionGaps:
    """Draw costs that differ from row to row."""
    return PositionGaps(*generator.integers(0, highest + 1, (4, n)))


def fitting(rows: QueryRows, generator: np.random.Generator, n: int) -> ByteArray:
    """Make a subject of good letters of some rows, with a gap of either kind."""
    best = rows.scores[:, :N_LETTERS].argmax(axis=1).astype(np.uint8)
    begin = int(generator.integers(0, max(len(best) - n, 1)))
    part = best[begin : begin + n]
    return np.concatenate([part[: n // 3], random_codes(generator, 2), part[n // 3 : n // 2], part[n // 2 + 3 :]])


def check(
    engine: CpuEngine, queries: list[QueryRows], subjects: list[ByteArray], mode: Mode, scoring: Scoring = SCORING
) -> npt.NDArray[np.int32]:
    found = scored(engine, queries, subjects, mode, scoring)
    for q, query in enumerate(queries):
        for s, subject in enumerate(subjects):
            expected = reference.score(query, subject, scoring, mode)
            assert found[q, s] == expected, (engine.description, engine.way, mode, q, s)
    return found


def ways(engine: CpuEngine) -> Iterator[CpuEngine]:
    for way in WAYS:
        engine.way = way
        yield engine


@pytest.mark.parametrize("mode", MODES)
def test_profiles_of_all_lengths_score_as_the_reference_has_it(engine: CpuEngine, mode: Mode) -> None:
    generator = np.random.default_rng(5)
    queries = [profile(generator, n) for n in (1, 2, 17, 33)]
    subjects = [random_codes(generator, n) for n in (0, 1, 9, 30)] + [fitting(queries[3], generator, 24)]
    for _ in ways(engine):
        check(engine, queries, subjects, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("low", "high"), [(-127, 127), (-127, -1), (-40, 60), (120, 127)])
def test_scores_at_the_limits(engine: CpuEngine, mode: Mode, low: int, high: int) -> None:
    generator = np.random.default_rng(high - low)
    queries = [profile(generator, n, low, high) for n in (3, 20)]
    subjects = [random_codes(generator, n) for n in (4, 19)] + [fitting(queries[1], generator, 20)]
    for _ in ways(engine):
        check(engine, queries, subjects, mode)


def test_lanes_that_saturate(engine: CpuEngine) -> None:
    """Every score around what lanes of 8 and of 16 bits hold."""
    letters = np.arange(20, dtype=np.uint8)
    rows = np.full((800, N_CODES), -60, dtype=np.int8)
    rows[:, 0] = 1
    rows[:400, 1] = 12  # a lane of 8 bits takes these
    narrow = QueryRows(rows, np.zeros(800, dtype=np.uint8), is_specific=True)
    assert engine.prepare([narrow], Recurrence(SCORING)).handle.queries.recurrence.scoring.lowest == -60
    few = rows.copy()
    few[:, :] = -20
    few[:, 0], few[:, 1] = 1, 12
    narrow = QueryRows(few, np.zeros(800, dtype=np.uint8), is_specific=True)
    subjects = [np.repeat(letters[[1, 0]], (n, k)) for n in (17, 18, 19, 20) for k in range(12)]
    found = scored(engine, [narrow], subjects, "local")
    assert found[0].tolist() == [12 * n + k for n in (17, 18, 19, 20) for k in range(12)]
    high = few.copy()
    high[:, 1] = 127
    wide = QueryRows(high, np.zeros(800, dtype=np.uint8), is_specific=True)
    subjects = [np.repeat(letters[[1, 0]], (n, k)) for n in (257, 258, 515, 516) for k in range(0, 130, 8)]
    for _ in ways(engine):
        found = scored(engine, [wide], subjects, "local")
        assert found[0].tolist() == [127 * n + k for n in (257, 258, 515, 516) for k in range(0, 130, 8)]


@pytest.mark.parametrize("mode", MODES)
def test_profiles_of_the_matrix_score_as_sequences_do(engine: CpuEngine, mode: Mode) -> None:
    """Longer than a strip, and many short ones in one strip; long subjects, blocks of many, and empty ones."""
    generator = np.random.default_rng(6)
    codes = [random_codes(generator, n) for n in (2, 0, 2100, 60, 31)]
    subjects = [random_codes(generator, n) for n in (0, 1, 40, 150, 600, *generator.integers(1, 90, 66))]
    subjects += [codes[2][1000:1100], codes[2][2040:2070]]
    expected = scored(engine, [SCORING.rows(each) for each in codes], subjects, mode)
    for _ in ways(engine):
        assert (scored(engine, [as_profile(each) for each in codes], subjects, mode) == expected).all()
        mixed = [as_profile(each) if k % 2 else SCORING.rows(each) for k, each in enumerate(codes)]
        assert (scored(engine, mixed, subjects, mode) == expected).all()
    costs = [as_profile(each, PositionGaps.uniform(len(each), 11, 1)) for each in codes]
    assert (scored(engine, costs, subjects, mode) == expected).all()


@pytest.mark.parametrize("mode", MODES)
def test_a_group_may_be_mixed(engine: CpuEngine, mode: Mode) -> None:
    generator = np.random.default_rng(7)
    queries = [
        SCORING.rows(random_codes(generator, 12)),
        profile(generator, 15, -30, 40),
        profile(generator, 0),
        profile(generator, 11, gaps=random_gaps(generator, 11)),
    ]
    subjects = [random_codes(generator, n) for n in (14, 0, 9)] + [fitting(queries[1], generator, 14)]
    for _ in ways(engine):
        check(engine, queries, subjects, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("highest", sample([0, 3, 14, 60, 3000, 10_000], lambda highest: highest in (14, 3000)))
def test_gap_costs_by_position(engine: CpuEngine, mode: Mode, highest: int) -> None:
    generator = np.random.default_rng(highest)
    queries = [profile(generator, n, -6, 9, random_gaps(generator, n, highest)) for n in (1, 9, 34)]
    subjects = [random_codes(generator, n) for n in (0, 1, 12)]
    subjects += [fitting(queries[2], generator, n) for n in (20, 30)]
    check(engine, queries, subjects, mode)


@pytest.mark.parametrize("mode", MODES)
def test_gap_costs_beyond_a_strip(engine: CpuEngine, mode: Mode) -> None:
    """Rows in several strips, of which the lower ones pay for all rows above them."""
    generator = np.random.default_rng(9)
    query = profile(generator, 1200, -6, 6, random_gaps(generator, 1200, 9))
    subject = fitting(query, generator, 12)
    check(engine, [query], [subject, random_codes(generator, 3)], mode)


def test_what_32_bits_might_not_hold_is_refused() -> None:
    n = 110_000
    costly = as_profile(np.zeros(n, dtype=np.uint8), PositionGaps.uniform(n, 10_000, 10_000))
    codes = np.zeros(n, dtype=np.uint8)
    Recurrence(SCORING, "global").lane_bits(n, n)
    with pytest.raises(InputError, match="more than 32 bits"):
        scored(CpuEngine(1), [costly], [codes], "global")
