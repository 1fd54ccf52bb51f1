"""Inclusion in a profile: each rule against its plain definition, and real sequences of either kind."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsearch.alphabet import PROTEIN
from swsearch.errors import OptionError
from swsearch.pipeline.inclusion import CHARGED, CORE, FINE, Inclusion, select_hits, trim_ends
from swsearch.profiles.construction import lay_out
from swsearch.scoring import PositionGapCosts, QueryProfile, Scoring
from tests.support.runs import Alignments, some_alignments, table_of
from tests.support.samples import random_cases

TROPOMYOSIN = (
    "MDAIKKKMQMLKLDKENALDRAEQAEADKKAAEDRSKQLEDELVSLQKKLKGTEDELDKYSEALKDAQEKLELAEKKATDAEADVASLNRRIQLVEEELDRAQERLATALQKLEEAE"
    "KAADESERGMKVIESRAQKDEEKMEIQEIQLKEAKHIAEDADRKYEEVARKLVIIESDLERAEERAELSEGKCAELEEELKTVTNNLKSLEAQAEKYSQKEDRYEEEIKVLSDKLKEA"
    "ETRAEFAERSVTKLEKSIDDLEDELYAQKLKYKAISEELDHALNDMTSI"
)
MYOGLOBIN = (
    "MGLSDGEWQLVLNVWGKVEADIPGHGQEVLIRLFKGHPETLEKFDKFKHLKSEDEMKASEDLKKHGATVLTALGGILKKKGHHEAEIKPLAQSHATKHKIPVKYLEFISECIIQVLQS"
    "KHPGDFGADAQGAMNKALELFRKDMASNYKELGFQG"
)
UBIQUITIN = "MQIFVKTLTGKTITLEVEPSDTIENVKAKIQDKEGIPPDQQRLIFAGKQLEDGRTLSDYNIQKESTLHLVLRLRGG"
COLLAGEN = "GPPGPPGPPGPPGAPGPPGPPGPPGPAGPPGPPGPPGPPG"

ANY = {"coverage": 0, "columns": 0, "low_complexity": None, "coiled_coil": None}


def percentage_of_low_complexity(codes: np.ndarray) -> float:
    """Windows of 12 residues whose composition has an entropy below 2.2 bits."""
    low = []
    for place in range(len(codes) - 11):
        shares = np.unique(codes[place : place + 12], return_counts=True)[1] / 12
        low.append(-(shares * np.log2(shares)).sum() < 2.2)
    return 100 * sum(low) / max(len(low), 1)


def percentage_of_coiled_coil(codes: np.ndarray) -> float:
    """Windows of four heptads, in any register 6 core residues inside, at most 5 and 10 charged ones outside."""
    letters, coiled = PROTEIN.decode(codes), []
    for place in range(len(codes) - 27):
        window = letters[place : place + 28]
        coiled.append(False)
        for register in range(7):
            inside = [letter for k, letter in enumerate(window) if (k + register) % 7 in (0, 3)]
            outside = [letter for k, letter in enumerate(window) if (k + register) % 7 not in (0, 3)]
            numbers = [sum(each in kind for each in part) for part, kind in
                       ((inside, CORE), (outside, CORE), (outside, CHARGED))]  # fmt: skip
            coiled[-1] |= numbers[0] >= 6 and numbers[1] <= 5 and numbers[2] >= 10
    return 100 * sum(coiled) / max(len(coiled), 1)


PERCENTAGES = {"low_complexity": percentage_of_low_complexity, "coiled_coil": percentage_of_coiled_coil}


def passes(letters: str, **rules: float | None) -> bool:
    """Whether a sequence that is aligned with itself may enter, by these rules alone."""
    codes, n = PROTEIN.encode(letters), len(letters)
    table = table_of([(0, 0)], [[(n, "M")]])
    return bool(select_hits(Inclusion(**ANY | rules), codes, codes, np.array([0]), table)[0])


@pytest.mark.parametrize(
    ("letters", "low", "coiled"),
    [(TROPOMYOSIN, (0, 20), (50, 100)), (MYOGLOBIN, (0, 25), (0, 0)), (UBIQUITIN, (0, 25), (0, 0)),
     (COLLAGEN, (100, 100), (0, 0)), ("Q" * 60, (100, 100), (0, 0))],
)  # fmt: skip
def test_real_sequences(letters, low, coiled):
    for name, (least, most) in (("low_complexity", low), ("coiled_coil", coiled)):
        percentage = PERCENTAGES[name](PROTEIN.encode(letters))
        assert least <= percentage <= most
        assert passes(letters, **{name: percentage})
        assert not passes(letters, **{name: math.nextafter(percentage, -math.inf)})


@pytest.mark.parametrize(
    ("rules", "said"),
    [({"evalue": 0}, "inclusion_evalue"), ({"evalue": "x"}, "inclusion_evalue"), ({"most": 0}, "max_included"),
     ({"coverage": 101}, "inclusion_coverage"), ({"coverage": -1}, "inclusion_coverage"),
     ({"most": 2.5}, "max_included")],
)  # fmt: skip
def test_what_cannot_be_asked_for(rules, said):
    with pytest.raises(OptionError, match=said):
        Inclusion(**rules)


def partitions(n: int, largest: int) -> list[list[int]]:
    """The ways in which n is a sum of numbers up to the largest."""
    if n == 0:
        return [[]]
    return [[k, *rest] for k in range(min(n, largest), 0, -1) for rest in partitions(n - k, k)]


def test_the_entropy_of_every_composition_of_a_window():
    for counts in partitions(12, 12):
        letters = "".join(letter * k for letter, k in zip(PROTEIN.letters, counts, strict=False))
        entropy = -sum(k / 12 * math.log2(k / 12) for k in counts)
        assert abs(entropy - 2.2) > 0.01  # so that it does not matter how it is added up
        assert passes(letters, low_complexity=0) == (entropy >= 2.2), letters


@pytest.mark.parametrize("register", range(7))
def test_windows_at_the_limits_of_a_coiled_coil(register):
    inside = [(k + register) % 7 in (0, 3) for k in range(28)]
    for core_inside, core_outside, charged in product((5, 6), (5, 6), (9, 10)):
        sides = {True: iter("L" * core_inside + "G" * 3), False: iter("L" * core_outside + "E" * charged + "G" * 6)}
        letters = "".join(next(sides[is_inside]) for is_inside in inside)
        percentage = percentage_of_coiled_coil(PROTEIN.encode(letters))
        assert percentage == 100 or (core_inside, core_outside, charged) != (6, 5, 10)
        assert passes(letters, coiled_coil=0) == (percentage == 0)


def test_shares_of_neighbours_do_not_mix():
    codes = PROTEIN.encode("Q" * 34)
    table = table_of([(0, 0)] * 3, [[(n, "M")] for n in (11, 11, 12)])
    rules = Inclusion(**ANY | {"low_complexity": 0})
    assert select_hits(rules, codes, codes, np.array([0, 11, 22]), table).tolist() == [True, True, False]


@random_cases(300)
@given(some_alignments(), st.data())
def test_hits_that_are_selected(some: Alignments, data: st.DataObject) -> None:
    codes, n, draw = some.pool[0], len(some.query), data.draw
    parts = [
        (some.query[query_start:query_end], codes[start + subject_start : start + subject_end])
        for start, query_start, query_end, subject_start, subject_end in zip(
            some.starts, some.table.query_start, some.table.query_end, some.table.subject_start,
            some.table.subject_end, strict=True,
        )
    ]  # fmt: skip
    pairs = [sum(column[0] == "M" for column in some.columns(k)) for k in range(len(parts))]
    good = np.ones(len(parts), dtype=bool)
    rules: dict[str, float | None] = {}
    for name, percentage_of in PERCENTAGES.items():
        # limits that some of them just keep
        found = np.array([max(map(percentage_of, sides)) for sides in parts])
        rules[name] = draw(st.none() | st.sampled_from([0, 50, *found.tolist()]))
        if rules[name] is not None:
            good &= found <= rules[name]
    rules["columns"] = draw(st.sampled_from([0, 20, *pairs]))
    rules["coverage"] = draw(st.sampled_from([0, *(100 * each / n for each in pairs)]))
    for k, each in enumerate(pairs):
        good[k] &= each >= min(rules["columns"], n) and 100 * each >= rules["coverage"] * n
    assert np.array_equal(select_hits(Inclusion(**rules), some.query, codes, some.starts, some.table), good)


@pytest.mark.parametrize(
    ("start", "runs"),
    [((0, 0), [(7, "M")]), ((2, 0), [(5, "M")]), ((0, 3), [(5, "M")]), ((-1, 0), [(3, "M")]), ((0, -1), [(3, "M")]),
     ((0, 0), [(7, "I")]), ((0, 0), [(8, "D")]), ((0, 0), [(0, "M")]), ((0, 0), [(-1, "M")]), ((0, 0), [(3, "X")])],
)  # fmt: skip
def test_runs_beyond_their_sequences_are_refused(start, runs):
    query, subject, starts = np.zeros(6, dtype=np.uint8), np.zeros(7, dtype=np.uint8), np.array([0])
    table = table_of([start], [runs])
    for refused in (
        lambda: select_hits(Inclusion(), query, subject, starts, table),
        lambda: trim_ends(table, Scoring().rows(query), Scoring(), subject, starts, 0.1),
        lambda: lay_out(table, (subject, np.array([0, 7])), starts, 6),
    ):
        with pytest.raises(ValueError, match="expected"):
            refused()


def best_part(values: list[int]) -> tuple[int, int]:
    """Where the largest sum above 0 ends first, and begins last; nothing where there is none."""
    best, part = 0, (0, 0)
    for end in range(1, len(values) + 1):
        for begin in range(end - 1, -1, -1):
            if sum(values[begin:end]) > best:
                best, part = sum(values[begin:end]), (begin, end)
    return part


@random_cases(300)
@given(some_alignments(), st.data())
def test_ends_that_are_trimmed(some: Alignments, data: st.DataObject) -> None:
    generator = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    n, scoring = len(some.query), Scoring(gap_open=3, gap_extend=1)
    scores = generator.integers(-3, 5, (n, 32)).astype(np.int8)
    gaps = None
    if data.draw(st.booleans()):
        gaps = PositionGapCosts(*generator.integers(0, 4, (4, n)).astype(np.int16))
    costs = gaps or PositionGapCosts.uniform(n, 3, 1)
    min_score = data.draw(st.sampled_from([0, 0.1, 1, -1, 1000]))
    found = trim_ends(
        some.table, QueryProfile(scores, some.query, True, gaps), scoring, some.pool[0], some.starts, min_score
    )
    assert len(found) == len(some.table) and found.score is some.table.score
    for k, start in enumerate(some.starts.tolist()):
        columns, values = some.columns(k), []
        for operation, a, b, is_first in columns:
            if operation == "M":
                score = int(scores[a, some.pool[0][b]])
            elif operation == "I":
                score = -int(costs.deletion_extend[a]) - is_first * int(costs.deletion_open[a])
            else:
                before = max(a - 1, 0)
                score = -int(costs.insertion_extend[before]) - is_first * int(costs.insertion_open[before])
            values.append(FINE * score - round(FINE * min_score))
        begin, end = best_part(values)
        left = columns[begin:end]
        at = [int(some.table.query_start[k]), start + int(some.table.subject_start[k])]
        if left:
            at = list(left[0][1:3])
        runs: list[list] = []
        for place, (operation, _, _, is_first) in enumerate(left):
            if is_first or place == 0:
                runs.append([0, operation])
            runs[-1][0] += 1
        expected = table_of([(at[0], at[1] - start)], [[(n, operation) for n, operation in runs]])
        assert found.cigar(k) == expected.cigar(0)
        for name in ("query_start", "query_end", "subject_start", "subject_end", "length", "gaps"):
            assert getattr(found, name)[k] == getattr(expected, name)[0], name
