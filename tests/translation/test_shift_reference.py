"""The recurrence of frame shifts against enumeration, and against the plain recurrence where it must be the same."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.samples import sample
from swsearch import reference
from swsearch.scoring import Scoring
from swsearch.translation.frameshift_reference import nucleotides, read_codons, shifted_align, shifted_score

NEVER = 100_000
"""Cost at which no shift is worth it."""


def enumerated(codons, subject, scoring, shift):
    """The best score of all alignments, which are written down one by one: a column after the other."""
    n, m, scores = nucleotides(codons), len(subject), scoring.matrix.scores
    best = 0

    def go_on(i, j, last, total):
        nonlocal best
        best = max(best, total)
        for late in (-1, 0, 1):
            begin = i + late
            if begin >= 0 and begin + 3 <= n and j < m:
                cost = shift if late else 0
                go_on(begin + 3, j + 1, "pair", total - cost + int(scores[codons[begin], subject[j]]))
        if i + 3 <= n:
            go_on(i + 3, j, "I", total - scoring.gap_extend - (scoring.gap_open if last != "I" else 0))
        if j < m:
            go_on(i, j + 1, "D", total - scoring.gap_extend - (scoring.gap_open if last != "D" else 0))

    for i in range(n):
        for j in range(m):
            if i + 3 <= n:  # an alignment begins with a pair
                go_on(i + 3, j + 1, "pair", int(scores[codons[i], subject[j]]))
    return best


def frames(codons):
    """The residues of the three frames of a strand."""
    return [codons[frame::3] for frame in range(3)]


def added_up(codons, subject, scoring, shift, found):
    """The score of an alignment, column by column, and where it ends."""
    _, i, j, cigar = found
    total = 0
    for length, operation in cigar:
        if operation == "M":
            total += int(scoring.matrix.scores[codons[i : i + 3 * length : 3], subject[j : j + length]].sum())
        elif operation in "ID":
            total -= scoring.gap_cost(length)
        else:
            assert length == 1
            total -= shift
        i += length * {"M": 3, "I": 3, "D": 0, "F": 1, "R": -1}[operation]
        j += length * (operation in "MD")
    return total, i, j


def codes(rng, length, letters):
    return rng.integers(0, letters, length).astype(np.uint8)


@pytest.mark.parametrize("case", sample(range(40), lambda case: case < 8))
def test_every_alignment_of_tiny_cases(case):
    rng = np.random.default_rng(case)
    scoring = Scoring("BLOSUM62", int(rng.integers(0, 5)), int(rng.integers(1, 3)))
    shift = int(rng.integers(1, 7))
    codons, subject = codes(rng, int(rng.integers(1, 9)), 3), codes(rng, int(rng.integers(1, 4)), 3)
    assert shifted_score(codons, subject, scoring, shift) == enumerated(codons, subject, scoring, shift)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_what_is_aligned_has_the_score_and_lies_within_the_sequences(data):
    letters = st.integers(0, 4)
    codons = np.array(data.draw(st.lists(letters, max_size=30)), dtype=np.uint8)
    subject = np.array(data.draw(st.lists(letters, max_size=10)), dtype=np.uint8)
    scoring = Scoring("BLOSUM62", data.draw(st.integers(0, 12)), data.draw(st.integers(0, 3)))
    shift = data.draw(st.integers(1, 20))
    found = shifted_align(codons, subject, scoring, shift)
    total, i, j = added_up(codons, subject, scoring, shift, found)
    assert found[0] == total == shifted_score(codons, subject, scoring, shift)
    assert 0 <= found[1] <= i <= nucleotides(codons) and 0 <= found[2] <= j <= len(subject)
    assert len(read_codons(codons, found[1], found[3])) == sum(n for n, op in found[3] if op in "MI")
    # the more a shift costs, the less is found, and never less than without any
    dearer = shifted_score(codons, subject, scoring, shift + 1)
    plain = max([0, *(reference.score(frame, subject, scoring) for frame in frames(codons))])
    assert plain == shifted_score(codons, subject, scoring, NEVER) <= dearer <= found[0]


@cache
def hidden():
    """A protein, and a strand that holds its codons: a nucleotide's place holds an amino acid of its own."""
    rng = np.random.default_rng(1)
    return codes(rng, 30, 20), np.full(100, 22, dtype=np.uint8)


@pytest.mark.parametrize(("moved", "operation"), [(1, "F"), (-1, "R")])
def test_a_protein_whose_frame_changes_is_found_whole(moved, operation):
    protein, strand = hidden()[0], hidden()[1].copy()
    strand[4 : 4 + 3 * 12 : 3] = protein[:12]
    begin = 4 + 3 * 12 + moved
    strand[begin : begin + 3 * 18 : 3] = protein[12:]
    score, start, subject_start, cigar = shifted_align(strand, protein, Scoring("BLOSUM62"), 15)
    assert (start, subject_start, cigar) == (4, 0, ((12, "M"), (1, operation), (18, "M")))
    assert score == Scoring("BLOSUM62").matrix.scores[protein, protein].sum() - 15
    assert (read_codons(strand, start, cigar) == protein).all()


def test_nothing_aligned_is_no_error():
    empty = np.empty(0, dtype=np.uint8)
    assert shifted_align(empty, empty, Scoring(), 15) == (0, 0, 0, ())
