"""Scores with frame shifts, of every instruction set, against the reference; in all widths: tests/cpu/search.cpp."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cases import any_codes, random_codes, scores_in_order, scorings
from support.samples import random_cases
from swsearch import extension
from swsearch.engines.cpu import tracing
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.engines.cpu.tracing import align_strands
from swsearch.engines.pools import make_pool
from swsearch.engines.reference import ReferenceEngine
from swsearch.errors import OptionError
from swsearch.pipeline.null_models import make_shuffled_chunk, score_shuffled, scores_with_copies
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring
from swsearch.translation.frameshift_reference import shifted_align, shifted_score


@random_cases(60)
@given(
    st.lists(any_codes(40), min_size=1, max_size=3),
    st.lists(any_codes(20), min_size=1, max_size=4),
    scorings,
    st.sampled_from([1, 5, 15, 64, 65, 10_000]),
)
def test_every_instruction_set_equals_the_reference(strands, subjects, scoring, shift):
    expected = [[shifted_score(a, b, scoring, shift) for b in subjects] for a in strands]
    for name in extension.instruction_sets():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(extension.SIMD_VARIABLE, name)
            found = scores_in_order(CpuEngine(2), strands, subjects, Recurrence(scoring, frame_shift=shift))
        assert found.tolist() == expected, name
    reference = scores_in_order(ReferenceEngine(), strands, subjects, Recurrence(scoring, frame_shift=shift))
    assert reference.tolist() == expected


def test_shuffled_copies_are_scored_with_shifts():
    generator = np.random.default_rng(5)
    strands = [random_codes(generator, n, 20) for n in (40, 0, 75)]
    subjects = [random_codes(generator, n, 20) for n in (20, 31)]
    recurrence = Recurrence(Scoring(), frame_shift=3)
    chunk = make_shuffled_chunk(subjects, range(2), 1)
    copies = [None] * 4
    for place, subject in enumerate(chunk.subjects.tolist()):
        copies[subject] = chunk.subject(place)
    expected = [[shifted_score(strand, copy, Scoring(), 3) for copy in copies] for strand in strands]
    assert scores_with_copies(strands, recurrence, chunk, 2).tolist() == expected
    pairs = np.array([[a, b] for a in range(3) for b in range(2)], dtype=np.int64)
    found = score_shuffled(strands, make_pool(subjects), pairs, range(2), recurrence, 2)
    assert found.reshape(3, 4).tolist() == expected


@pytest.mark.parametrize("shift", [0, -1, 1.5, 10_001, "15", True])
def test_costs_that_no_shift_can_have_are_refused(shift):
    with pytest.raises(OptionError, match="frame_shift"):
        Recurrence(Scoring(), frame_shift=shift)


def test_shifts_are_refused_where_alignments_are_not_local():
    with pytest.raises(OptionError, match="only local alignments"):
        Recurrence(Scoring(), "global", frame_shift=15)
    assert Recurrence(Scoring(), frame_shift=15).describe().endswith(", frame shift 15")


def aligned(strands, subjects, recurrence, threads=2):
    """Align every strand with every subject; as `shifted_align` returns it, by strand, then by subject."""
    pairs = np.array([[a, b] for a in range(len(strands)) for b in range(len(subjects))], dtype=np.int64)
    found = align_strands(make_pool(strands), make_pool(subjects), pairs, recurrence, threads)
    operations = found.run_operations.tobytes().decode()
    runs = list(zip(found.run_lengths.tolist(), operations, strict=True))
    ends = found.run_offsets.tolist()
    cigars = [tuple(runs[begin:end]) for begin, end in pairwise(ends)]
    starts = found.query_start.tolist(), found.subject_start.tolist()
    return list(zip(found.score.tolist(), *starts, cigars, strict=True))


@random_cases(150)
@given(
    st.lists(any_codes(60), min_size=1, max_size=3),
    st.lists(any_codes(20), min_size=1, max_size=4),
    scorings,
    st.sampled_from([1, 2, 5, 15, 10_000]),
)
def test_alignments_are_the_references(strands, subjects, scoring, shift):
    expected = [shifted_align(a, b, scoring, shift) for a in strands for b in subjects]
    expected = [each if each[0] else (0, 0, 0, ()) for each in expected]  # nothing aligned has no place
    assert aligned(strands, subjects, Recurrence(scoring, frame_shift=shift)) == expected


def test_long_alignments_pass_many_checkpoints(monkeypatch):
    generator = np.random.default_rng(7)
    protein = random_codes(generator, 120, 20)
    strand = random_codes(generator, 3, 20)
    for code in protein:  # each codon at a nucleotide of its own, now and then early or late
        between = random_codes(generator, int(generator.choice([1, 2, 2, 2, 2, 2, 3])), 20)
        strand = np.concatenate([strand, [code], between]).astype(np.uint8)
    recurrence = Recurrence(Scoring(), frame_shift=6)
    expected = shifted_align(strand, protein, Scoring(), 6)
    assert {"F", "R"} < {operation for _, operation in expected[3]}
    assert aligned([strand], [protein, protein[:60]], recurrence)[0] == expected
    monkeypatch.setattr(tracing, "SHIFT_TABLE_MEMORY", 0)  # one by one
    assert aligned([strand], [protein[:60], protein], recurrence)[1] == expected
