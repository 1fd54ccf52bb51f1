from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings

from support.cases import any_codes, modes, modes_with_ends, scorings
from support.pair_checks import biopython_aligner, biopython_score
from swsearch import reference
from swsearch.alphabet import PROTEIN
from swsearch.scoring import Ends, Scoring


@given(any_codes(30, 1), any_codes(30, 1), scorings, modes)
def test_scores_equal_biopythons(query, subject, scoring, mode):
    theirs = biopython_score(biopython_aligner(scoring, mode), PROTEIN.decode(query), PROTEIN.decode(subject))
    assert reference.score(query, subject, scoring, mode) == theirs


ALL_ENDS = [Ends(*flags) for flags in product((False, True), repeat=4)]


@pytest.mark.parametrize("ends", ALL_ENDS, ids=lambda ends: ends.describe())
@settings(max_examples=15)
@given(query=any_codes(20, 1), subject=any_codes(20, 1), scoring=scorings)
def test_scores_with_any_free_ends_equal_biopythons(ends, query, subject, scoring):
    aligner = biopython_aligner(scoring, "semiglobal", ends)
    theirs = biopython_score(aligner, PROTEIN.decode(query), PROTEIN.decode(subject))
    assert reference.score(query, subject, scoring, "semiglobal", ends) == theirs


@given(any_codes(25), any_codes(25), scorings, modes_with_ends)
def test_swapping_query_and_subject_keeps_the_score(query, subject, scoring, mode_and_ends):
    mode, ends = mode_and_ends
    swapped = ends and Ends(ends.subject_start, ends.subject_end, ends.query_start, ends.query_end)
    assert reference.score(query, subject, scoring, mode, ends) == reference.score(
        subject, query, scoring, mode, swapped
    )


@given(any_codes(25), any_codes(25), scorings, modes_with_ends)
def test_reversing_both_keeps_the_score(query, subject, scoring, mode_and_ends):
    mode, ends = mode_and_ends
    turned = ends and Ends(ends.query_end, ends.query_start, ends.subject_end, ends.subject_start)
    forward = reference.score(query, subject, scoring, mode, ends)
    assert forward == reference.score(query[::-1], subject[::-1], scoring, mode, turned)


@given(any_codes(20), any_codes(20), scorings)
def test_freeing_an_end_never_costs(query, subject, scoring):
    scores = {ends: reference.score(query, subject, scoring, "semiglobal", ends) for ends in ALL_ENDS}
    for ends, score in scores.items():
        for name in ("query_start", "query_end", "subject_start", "subject_end"):
            assert scores[replace(ends, **{name: True})] >= score
    local = reference.score(query, subject, scoring, "local")
    assert local >= scores[Ends()]
    assert scores[Ends.from_mode("global")] == reference.score(query, subject, scoring, "global")


@given(any_codes(25), any_codes(25), scorings, modes)
def test_the_alignment_adds_up_to_the_score_and_stays_inside(query, subject, scoring, mode):
    score, i, j, cigar = reference.align(query, subject, scoring, mode)
    assert score == reference.score(query, subject, scoring, mode)
    total = 0
    for length, op in cigar:
        if op == "M":
            total += int(scoring.matrix.scores[query[i : i + length], subject[j : j + length]].sum())
        else:
            total -= scoring.gap_cost(length)
        i += length if op != "D" else 0
        j += length if op != "I" else 0
    assert total == score
    assert i <= len(query)
    assert j <= len(subject)
    if mode == "global":
        assert (i, j) == (len(query), len(subject))
    if mode == "local" and cigar:
        assert cigar[0][1] == cigar[-1][1] == "M"


def test_known_values():
    scoring = Scoring()
    query, subject = PROTEIN.encode("MKVLAAGIVGWW"), PROTEIN.encode("MKVAAGIVG")
    assert reference.align(query, subject, scoring, "global") == (17, 0, 0, ((3, "M"), (1, "I"), (6, "M"), (2, "I")))
    # 5+5+4 for MKV, then a gap of one (12) would cost more than the 29 of AAGIVG gain: it pays
    assert reference.score(query, subject, scoring, "local") == 14 - 12 + 28


def test_nothing_aligns_with_an_empty_sequence():
    scoring, empty, query = Scoring(), np.zeros(0, dtype=np.uint8), PROTEIN.encode("MKV")
    assert reference.align(query, empty, scoring, "local") == (0, 0, 0, ())
    assert reference.align(query, empty, scoring, "semiglobal")[0] == 0
    assert reference.align(query, empty, scoring, "global") == (-14, 0, 0, ((3, "I"),))
    assert reference.align(empty, query, scoring, "global") == (-14, 0, 0, ((3, "D"),))
    assert reference.align(empty, empty, scoring, "global") == (0, 0, 0, ())
