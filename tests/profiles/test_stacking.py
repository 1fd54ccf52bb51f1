"""Alignments as rows below a query: against the rows of each pair."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from swsearch import reference
from swsearch.alignment import PairAlignment
from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import PROTEIN
from swsearch.engines.pools import pool_of
from swsearch.options.kinds import MODES, Mode
from swsearch.profiles import construction
from swsearch.profiles.construction import FoundSequences, stack
from swsearch.profiles.query_alignment import QueryAlignment
from swsearch.scoring import Scoring
from tests.support.cases import random_codes
from tests.support.query_alignments import a3m_rows

SCORING = Scoring(gap_open=2, gap_extend=1)


def found_of(subjects: list[np.ndarray], of_subject: list[int], places: list[int] | None = None) -> FoundSequences:
    """Subjects, and which of them alignments are of."""
    names = [f"s{k}" for k in range(len(subjects))]
    numbers = np.arange(len(subjects)) if places is None else np.array(places)
    evalues = np.arange(len(of_subject)) / 100
    return FoundSequences(
        names,
        [f"is {name}" for name in names],
        pool_of(subjects),
        numbers,
        np.array(of_subject, dtype=np.int64),
        evalues,
    )


def expected_row(pair: PairAlignment) -> str:
    """A pair's row as A3M has it: unaligned columns are gaps."""
    top, _, bottom = pair.rows()
    middle = "".join(b.lower() if a == "-" else b for a, b in zip(top, bottom, strict=True))
    return "-" * pair.query_start + middle + "-" * (len(pair.query) - pair.query_end)


@pytest.mark.parametrize("together", [1, 7, construction.PAIRS_TOGETHER])
@pytest.mark.parametrize("mode", MODES)
def test_rows_are_those_of_the_pairs(mode: Mode, together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(construction, "PAIRS_TOGETHER", together)
    generator = np.random.default_rng(5)
    query = random_codes(generator, 30, 3)
    subjects = [random_codes(generator, int(n), 3) for n in generator.integers(8, 50, 12)]
    pairs = []
    for subject in subjects:
        score, *ends, cigar = reference.align(query, subject, SCORING, mode)
        pairs.append(PairAlignment(query, subject, SCORING, score, ends[0], ends[1], cigar))
    alone = QueryAlignment.of_query("q", "", query)
    stacked = stack(alone, found_of(subjects, list(range(12))), AlignmentTable.of(pairs), 2)
    assert a3m_rows(stacked)[1:] == [expected_row(pair) for pair in pairs]
    assert any(pair.gaps for pair in pairs) and len(stacked.insertions)
    assert stacked.starts.tolist() == [0, *(pair.subject_start for pair in pairs)]
    assert stacked.ends.tolist() == [30, *(pair.subject_end for pair in pairs)]
    assert stacked.identifiers == ["q", *(f"s{k}" for k in range(12))] and stacked.descriptions[1] == "is s0"
    assert stacked.subjects.tolist() == [-1, *range(12)] and stacked.iterations.tolist() == [0, *[2] * 12]
    assert stacked.evalues[-1] == 0.11
    for row, pair in enumerate(pairs, 1):
        whole = a3m_rows(stacked)[row].replace("-", "").upper()
        assert whole == PROTEIN.decode(pair.subject[pair.subject_start : pair.subject_end])


def table_of(*given: tuple[int, int, str]) -> AlignmentTable:
    """Alignments of query start, subject start and a CIGAR such as ``3M1D2M``."""
    codes, pairs = np.zeros(40, dtype=np.uint8), []
    for query_start, subject_start, text in given:
        runs = [(int(length), operation) for length, operation in re.findall(r"(\d+)([MID])", text)]
        pairs.append(PairAlignment(codes, codes, SCORING, 0, query_start, subject_start, tuple(runs)))
    return AlignmentTable.of(pairs)


def test_several_alignments_of_a_subject_are_rows_and_the_same_one_enters_once() -> None:
    query = QueryAlignment.of_query("q", "", PROTEIN.encode("MKTAYIAK"))
    subjects = [PROTEIN.encode("MKTAYIAKMKTAYIAK"), PROTEIN.encode("GGMKTAYGG")]
    table = table_of((0, 0, "8M"), (0, 8, "8M"), (0, 0, "8M"), (0, 2, "5M"), (3, 0, "5M"))
    found = found_of(subjects, [0, 0, 0, 1, 0], [70, 12])
    once = stack(query, found, table)
    assert a3m_rows(once) == ["MKTAYIAK", "MKTAYIAK", "MKTAYIAK", "MKTAY---", "---MKTAY"]
    assert once.subjects.tolist() == [-1, 70, 70, 12, 70] and once.evalues.tolist() == [0, 0, 0.01, 0.03, 0.04]
    again = stack(once, found, table_of((0, 0, "8M"), (0, 8, "8M"), (0, 0, "8M"), (1, 3, "4M"), (3, 0, "5M")), 2)
    assert a3m_rows(again) == [*a3m_rows(once), "-KTAY---"] and again.iterations.tolist() == [0, 1, 1, 1, 1, 2]
    elsewhere = replace(found, places=np.array([-1, -1]))
    assert len(stack(stack(query, elsewhere, table), elsewhere, table)) == 9, "nothing says that they are the same"


def test_what_pairs_nothing_is_no_row() -> None:
    query = QueryAlignment.of_query("q", "", PROTEIN.encode("MKTAYIAK"))
    found = found_of([PROTEIN.encode("MKT"), PROTEIN.encode(""), PROTEIN.encode("MKT")], [0, 1, 2])
    assert len(stack(query, found, table_of((0, 0, ""), (0, 0, "8I"), (0, 0, "8I3D")))) == 1
    assert len(stack(query, found_of([], []), table_of())) == 1
    empty = QueryAlignment.of_query("q", "", PROTEIN.encode(""))
    assert len(stack(empty, found, table_of((0, 0, ""), (0, 0, ""), (0, 0, "3D")))) == 1


def test_a_subject_keeps_the_search_that_found_it_first() -> None:
    query = QueryAlignment.of_query("q", "", PROTEIN.encode("MKTAYIAK"))
    subjects = [PROTEIN.encode("MKTAYIAK")] * 3
    first = stack(query, found_of(subjects, [0, 1], [4, 9, 2]), table_of((0, 0, "8M"), (0, 0, "8M")), 1)
    second = stack(query, found_of(subjects, [1, 2, 0], [4, 9, 2]), table_of(*[(1, 1, "7M")] * 3), 2, earlier=first)
    assert second.subjects.tolist() == [-1, 9, 2, 4] and second.iterations.tolist() == [0, 1, 2, 1]
