import numpy as np
from Bio.Align import PairwiseAligner, substitution_matrices
from cases import any_codes, modes, scorings
from hypothesis import given

from swsearch import reference
from swsearch.alphabet import PROTEIN
from swsearch.scoring import Scoring


def biopython_score(query, subject, scoring, mode):
    """Score with an implementation that others wrote."""
    letters = PROTEIN.letters
    table = substitution_matrices.Array(letters, dims=2)
    n = len(letters)
    table[:, :] = scoring.matrix.scores[:n, :n]
    aligner = PairwiseAligner(mode="local" if mode == "local" else "global", substitution_matrix=table)
    aligner.open_gap_score = -scoring.gap_first
    aligner.extend_gap_score = -scoring.gap_extend
    if mode == "semiglobal":
        aligner.end_gap_score = 0
    return aligner.score(PROTEIN.decode(subject), PROTEIN.decode(query))


@given(any_codes(30, 1), any_codes(30, 1), scorings, modes)
def test_scores_equal_biopythons(query, subject, scoring, mode):
    assert reference.score(query, subject, scoring, mode) == biopython_score(query, subject, scoring, mode)


@given(any_codes(25), any_codes(25), scorings, modes)
def test_swapping_query_and_subject_keeps_the_score(query, subject, scoring, mode):
    assert reference.score(query, subject, scoring, mode) == reference.score(subject, query, scoring, mode)


@given(any_codes(25), any_codes(25), scorings, modes)
def test_reversing_both_keeps_the_score(query, subject, scoring, mode):
    forward = reference.score(query, subject, scoring, mode)
    assert forward == reference.score(query[::-1], subject[::-1], scoring, mode)


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
