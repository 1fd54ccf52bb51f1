"""Ends of alignments that are cut back: against what Python's loops find."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cases import any_codes, modes
from support.samples import random_cases
from swsearch import reference
from swsearch.alignment import PairAlignment
from swsearch.alignment_table import AlignmentTable
from swsearch.engines.pools import pool_of
from swsearch.pipeline import inclusion
from swsearch.pipeline.inclusion import best_parts, trimmed
from swsearch.scoring import Scoring

SCORING = Scoring(gap_open=2)


def aligned(query, subject, mode):
    found = reference.align(query, subject, SCORING, mode)
    return PairAlignment(query, subject, SCORING, *found)


def columns_of(pair, rows):
    """Score each column: (operation, query place, subject place, score)."""
    found, i, j = [], pair.query_start, pair.subject_start
    for n, op in pair.cigar:
        for k in range(n):
            cost = SCORING.gap_extend + (SCORING.gap_open if k == 0 else 0)
            found.append((op, i, j, int(rows.scores[i, pair.subject[j]]) if op == "M" else -cost))
            i, j = i + (op != "D"), j + (op != "I")
    return found


def best_part(scores):
    """Return the shortest part of the largest sum above 0, the first of equal ends; (0, 0) for none."""
    best, chosen = 0, (0, 0)
    for end in range(1, len(scores) + 1):
        for begin in range(end - 1, -1, -1):
            if (total := sum(scores[begin:end])) > best:
                best, chosen = total, (begin, end)
    return chosen


@random_cases(200)
@given(st.lists(st.lists(st.integers(-4, 4), max_size=8), max_size=5))
def test_the_best_part_of_each_run(runs):
    offsets = np.cumsum([0, *map(len, runs)])
    begins, ends = best_parts(np.array([value for run in runs for value in run], dtype=np.int64), offsets)
    for run, begin, end, offset in zip(runs, begins.tolist(), ends.tolist(), offsets.tolist(), strict=False):
        expected = best_part(run)
        assert (begin - offset, end - offset) == expected or expected == (0, 0) == (begin - offset, end - begin)


@random_cases(60)
@given(any_codes(25, 1), st.lists(any_codes(25, 1), max_size=4), modes, st.sampled_from([0.0, 0.5, 1.25, 4.0]))
def test_parts_are_those_of_the_columns(query, subjects, mode, least):
    pairs = [aligned(query, subject, mode) for subject in subjects]
    codes, offsets = pool_of(list(subjects))
    table, rows = AlignmentTable.of(pairs), SCORING.rows(query)
    found = trimmed(table, rows, SCORING, codes, offsets[:-1], least)
    for place, pair in enumerate(pairs):
        columns = columns_of(pair, rows)
        assert sum(score for *_, score in columns) == pair.score
        begin, end = best_part([inclusion.FINE * score - round(inclusion.FINE * least) for *_, score in columns])
        assert found.length[place] == end - begin
        if begin == end:
            continue
        kept = columns[begin:end]
        assert found.cigar(place) == cigar_of([op for op, *_ in kept])
        assert (found.query_start[place], found.subject_start[place]) == kept[0][1:3]
        assert found.query_end[place] == kept[0][1] + sum(op != "D" for op, *_ in kept)
        assert found.subject_end[place] == kept[0][2] + sum(op != "I" for op, *_ in kept)
        assert found.gaps[place] == sum(op != "M" for op, *_ in kept)


def cigar_of(operations):
    runs = []
    for op in operations:
        if runs and runs[-1][1] == op:
            runs[-1] = (runs[-1][0] + 1, op)
        else:
            runs.append((1, op))
    return tuple(runs)


def test_an_end_that_runs_out_of_the_family_is_cut():
    query = np.array([0] * 10 + [4] * 10, dtype=np.uint8)
    subject = query.copy()
    rows = SCORING.rows(query)
    rows.scores[10:] = 0  # a stretch where everything scores 0
    rows.scores[19] = 1
    pair = PairAlignment(query, subject, SCORING, 41, 0, 0, ((20, "M"),), query_rows=rows)
    table = AlignmentTable.of([pair])
    whole, cut = (trimmed(table, rows, SCORING, subject, np.zeros(1, dtype=np.int64), least) for least in (0.0, 0.2))
    assert (whole.length[0], cut.length[0]) == (20, 10)
    assert (cut.query_end[0], cut.subject_end[0], cut.cigar(0)) == (10, 10, ((10, "M"),))


@pytest.mark.parametrize("n", [0, 1])
def test_no_alignments_and_one_without_columns(n):
    query = np.zeros(3, dtype=np.uint8)
    pairs = [PairAlignment(query, query, SCORING, 0, 0, 0, ())] * n
    found = trimmed(AlignmentTable.of(pairs), SCORING.rows(query), SCORING, query, np.zeros(n, dtype=np.int64), 0.0)
    assert found.length.tolist() == [0] * n
