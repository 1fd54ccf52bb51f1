"""The compiled extension against the reference: every mode, tile bounds, checkpoints, first passes, threads."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import numpy_traceback as traceback
from support.cases import any_codes, flat_matrix, modes_with_ends, random_codes, scorings
from support.samples import random_cases
from swsearch import reference
from swsearch.alphabet import DNA, PROTEIN
from swsearch.engines.cpu import extension, tracing
from swsearch.errors import InputError, MemoryLimitError
from swsearch.options.kinds import MODES
from swsearch.recurrence import Recurrence
from swsearch.scoring import Ends, Scoring, dna_matrix

dna_scorings = st.builds(
    Scoring,
    st.builds(dna_matrix, st.sampled_from([1, 5, 127]), st.sampled_from([-127, -4, -1, 0])),
    st.sampled_from([0, 1, 10, 10_000]),
    st.sampled_from([0, 1, 3, 10_000]),
)
ways = st.fixed_dictionaries(
    {
        "tile": st.sampled_from([0, 1, 2, 3, 5, 16, 33, 256]),
        "beam": st.sampled_from([0, 1, 20, 350]),
        "threads": st.sampled_from([1, 2, 3]),
    }
)
instruction_sets = pytest.mark.parametrize("instructions", extension.known())


def least_memory(query, subject, tile):
    """Bytes that are needed before anything is kept."""
    tile = tile or 64
    return 20 * (len(query) + len(subject)) + 2 * tile * 32 * -(-tile // 32)


@st.composite
def relatives(draw):
    """Make a sequence and a copy of it with changes: pairs of which most of the matrix can be left out."""
    query = draw(any_codes(60))
    changes = draw(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2), st.integers(0, 3)), max_size=6))
    subject = query.tolist()
    for place, kind, letter in changes:
        at = place % (len(subject) + 1)
        subject[at : at + (kind != 1)] = [letter] if kind < 2 else []
    return query, np.array(subject, dtype=np.uint8)


pairs = st.one_of(st.tuples(any_codes(45), any_codes(45)), relatives())


@random_cases(400)
@given(pairs, st.one_of(scorings, dna_scorings), modes_with_ends, ways)
def test_the_references_alignment_is_found(pair, scoring, mode_and_ends, way):
    mode, ends = mode_and_ends
    expected = reference.align(*pair, scoring, mode, ends)
    assert tracing.trace(*pair, Recurrence(scoring, mode, ends), **way) == expected
    assert tracing.score(*pair, Recurrence(scoring, mode, ends), **way) == expected[0]


@random_cases(400)
@given(
    pairs, st.one_of(scorings, dna_scorings), modes_with_ends, ways, st.sampled_from([1_000, 3_000, 10_000, 40_000])
)
def test_memory_changes_nothing(pair, scoring, mode_and_ends, way, memory):
    mode, ends = mode_and_ends
    memory += least_memory(*pair, way["tile"])
    try:
        found = tracing.trace(*pair, Recurrence(scoring, mode, ends), memory, **way)
    except MemoryLimitError:
        return
    assert found == reference.align(*pair, scoring, mode, ends)


@instruction_sets
def test_every_instruction_set_gives_the_same(instructions, monkeypatch):
    monkeypatch.setenv(extension.SWITCH, instructions)
    if instructions not in extension.instruction_sets():
        pytest.skip(f"this processor has no {instructions}")
    generator = np.random.default_rng(3)
    for size in (1, 31, 32, 33, 300, 700):
        query = random_codes(generator, size, 4)
        subject = np.concatenate((query[size // 3 :], random_codes(generator, 20, 4), query[: size // 2]))
        for mode in MODES:
            for scoring in (Scoring(), Scoring(flat_matrix(127, -127), 10_000, 100), Scoring(gap_open=0)):
                expected = traceback.trace(query, subject, scoring, mode)
                assert tracing.trace(query, subject, Recurrence(scoring, mode)) == expected, (
                    size,
                    mode,
                    scoring.describe(),
                )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "scoring", [Scoring(), Scoring(flat_matrix(127, -127), 4_000, 200)], ids=["16 bits", "32 bits"]
)
def test_checkpoints_at_several_levels(mode, scoring):
    generator = np.random.default_rng(11)
    query = random_codes(generator, 1_500, 20)
    subject = np.concatenate((query[100:600], random_codes(generator, 150, 20), query[630:1_490]))
    expected = traceback.trace(query, subject, scoring, mode)
    found = 0
    for memory in (80_000, 160_000, 320_000, 1 << 20):
        budget = memory + least_memory(query, subject, 16)
        for beam in (0, 350):
            try:
                result = tracing.trace(
                    query, subject, Recurrence(scoring, mode), budget, tile=16, beam=beam, threads=2
                )
            except MemoryLimitError:
                continue
            assert result == expected, (memory, beam)
            found += 1
    assert found >= 6


@pytest.mark.parametrize("tile", [16, 64])
@pytest.mark.parametrize("shape", [(3_000, 3_000), (300, 4_000), (2_000, 100)])
def test_the_memory_that_the_message_asks_for_is_enough(shape, tile):
    generator = np.random.default_rng(12)
    query, subject = (random_codes(generator, size, 20) for size in shape)
    free = 15  # all four ends
    module, scores = extension.load(), Scoring().matrix.scores.astype(np.int8)
    needed = module.align(query, subject, scores, 11, 11, 1, False, free, True, 1_000, 1, tile, 0, "scalar")
    assert isinstance(needed, int) and needed < 150 * sum(shape) + 50_000
    found = tracing.trace(query, subject, Recurrence(Scoring(), "semiglobal"), needed, tile=tile, beam=0)
    assert found == traceback.trace(query, subject, Scoring(), "semiglobal")


def test_too_little_memory_says_so():
    query = np.zeros(1_000, dtype=np.uint8)
    with pytest.raises(MemoryLimitError, match="subject of 1000 residues takes more memory than the 0 MiB"):
        tracing.trace(query, query, Recurrence(Scoring(), "global"), 10_000)


def test_a_similar_pair_leaves_most_of_the_matrix_out():
    generator = np.random.default_rng(1)
    query = random_codes(generator, 20_000, 4)
    subject = np.delete(query, generator.integers(0, len(query), 100))
    scoring = Scoring(dna_matrix(), 10, 1)
    whole = tracing._run(query, subject, Recurrence(scoring, "global"), 1 << 28, 2, 0, 0, path=True)
    part = tracing._run(query, subject, Recurrence(scoring, "global"), 1 << 28, 2, 0, tracing.BEAM, path=True)
    assert part[:4] == whole[:4]
    assert part[4] < whole[4] / 5


def test_an_unrelated_pair_is_computed_once_and_a_little():
    generator = np.random.default_rng(2)
    query, subject = random_codes(generator, 6_000, 4), random_codes(generator, 6_000, 4)
    scoring = Scoring(dna_matrix(), 10, 1)
    for mode in MODES:
        found = tracing._run(query, subject, Recurrence(scoring, mode), 1 << 28, 2, 256, 350, path=True)
        assert found[4] < 1.35 * len(query) * len(subject)


def test_scores_beyond_32_bits_are_refused():
    scoring = Scoring(gap_extend=10_000)
    query = PROTEIN.encode("MKV")
    assert tracing.score(query, np.tile(query, 700), Recurrence(scoring, "global")) == -11 - 10_000 * 2_097 + 14
    said = (
        r"a pair of 3 and 27,000 residues with BLOSUM62, .*: scores may reach .*, expected less than 268,435,456; use"
    )
    for call in (tracing.trace, tracing.score):
        with pytest.raises(InputError, match=said):
            call(query, np.tile(query, 9_000), Recurrence(scoring, "global"))


@random_cases(200)
@given(st.lists(pairs, max_size=8), st.one_of(scorings, dna_scorings), modes_with_ends, ways, st.integers(-30, 30))
def test_many_are_the_references_in_order_whatever_is_known(several, scoring, mode_and_ends, way, off):
    mode, ends = mode_and_ends
    expected = [reference.align(*pair, scoring, mode, ends) for pair in several]
    for known in (None, [one[0] for one in expected], [one[0] + off for one in expected]):
        found = tracing.find_many(several, Recurrence(scoring, mode, ends), 1 << 20, known=known, **way)
        assert list(found) == expected, known
    scores = tracing.find_many(several, Recurrence(scoring, mode, ends), 1 << 20, path=False, **way)
    assert [one[0] for one in scores] == [one[0] for one in expected]


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("mode", MODES)
def test_many_are_found_by_any_number_of_threads(mode, threads):
    generator = np.random.default_rng(8)
    query, empty = random_codes(generator, 600, 20), np.zeros(0, dtype=np.uint8)
    several = [(empty, empty), (query, empty), (empty, query)]
    for n in generator.integers(1, 900, 40).tolist():
        subject = random_codes(generator, n, 20)
        several += [(query, subject), (query[:n], np.concatenate((subject[: n // 3], query[n // 2 :])))]
    expected = [tracing.trace(*pair, Recurrence(Scoring(), mode), threads=1) for pair in several]
    known = [one[0] for one in expected]
    assert list(tracing.find_many(several, Recurrence(Scoring(), mode), threads=threads)) == expected
    assert list(tracing.find_many(several, Recurrence(Scoring(), mode), threads=threads, known=known)) == expected
    assert list(tracing.find_many([], Recurrence(Scoring(), mode), threads=threads)) == []


def test_a_score_that_is_reached_spares_looking_for_one():
    generator = np.random.default_rng(9)
    query = random_codes(generator, 3_000, 20)
    subject = np.delete(query, generator.integers(0, len(query), 30))
    score = tracing.score(query, subject, Recurrence(Scoring(), "local"))
    assert tracing.find_many([(query, subject)], Recurrence(Scoring(), "local"), known=[score])[0][0] == score
    # one that nothing reaches leaves everything out at first, and is then forgotten
    assert tracing.find_many([(query, subject)], Recurrence(Scoring(), "local"), known=[10**8])[0][0] == score


def test_a_pair_that_does_not_fit_is_told_when_it_is_asked_for():
    long, short = np.zeros(20_000, dtype=np.uint8), np.zeros(10, dtype=np.uint8)
    found = tracing.find_many(
        [(short, short), (long, long), (short, short)], Recurrence(Scoring(), "global"), 100_000
    )
    assert found[0] == found[2] == (40, 0, 0, ((10, "M"),))
    with pytest.raises(MemoryLimitError, match="subject of 20000 residues takes more memory than the 0 MiB"):
        found[1]


def test_what_many_cannot_be_given():
    codes, nothing = np.zeros(3, dtype=np.uint8), np.zeros(0, dtype=np.int64)
    table = np.zeros((32, 32), dtype=np.int8)
    rest = (5, 11, 1, True, 15, True, 1 << 20, 1, 0, 0, "scalar")
    call = extension.load().align_many
    for places in ([0, 4, 0, 1], [-1, 1, 0, 1], [0, 1, 3, 1], [0, 1, 0, -1], [0, 1, 0], [1 << 62, 1 << 62, 0, 0]):
        with pytest.raises(ValueError, match="expected places within the codes"):
            call(codes, codes, np.array(places), nothing, table, *rest)
    with pytest.raises(ValueError, match="expected a known score for each pair"):
        call(codes, codes, np.array([0, 3, 0, 3]), np.zeros(2, dtype=np.int64), table, *rest)
    with pytest.raises(ValueError, match="expected codes below 32"):
        call(codes, codes + np.uint8(32), np.array([0, 3, 0, 3]), nothing, table, *rest)
    with pytest.raises(ValueError, match="expected a 32 x 32 table"):
        call(codes, codes, np.array([0, 3, 0, 3]), nothing, table[:5], *rest)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("threads", [1, 3])
def test_control_c_ends_many(threads):
    generator = np.random.default_rng(4)
    short = [(random_codes(generator, 2_000, 4), random_codes(generator, 2_000, 4))] * 20_000
    long = [(random_codes(generator, 150_000, 4), random_codes(generator, 150_000, 4))] * 2
    for several in (short, long):
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        begun = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            tracing.find_many(several, Recurrence(Scoring(dna_matrix(), 10, 1), "local"), threads=threads)
        assert time.perf_counter() - begun < 3


def test_codes_that_are_none_are_refused():
    with pytest.raises(ValueError, match="codes below 32"):
        tracing.trace(np.full(3, 32, dtype=np.uint8), np.zeros(3, dtype=np.uint8), Recurrence(Scoring(), "local"))


@pytest.mark.usefixtures("ctrl_c")
def test_control_c_is_answered_within_a_second():
    query = random_codes(np.random.default_rng(4), 150_000, 4)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        tracing.trace(query, query[::-1], Recurrence(Scoring(dna_matrix(), 10, 1), "local"))
    assert time.perf_counter() - begun < 2


def test_dna_with_free_ends_finds_a_read():
    genome = random_codes(np.random.default_rng(6), 5_000, 4)
    scoring, ends = Scoring(dna_matrix(), 10, 1), Ends(False, False, True, True)
    found = tracing.trace(genome[2_000:3_000], genome, Recurrence(scoring, "semiglobal", ends))
    assert found == (5_000, 0, 2_000, ((1_000, "M"),))
    assert DNA.decode(genome[:1]) in "ACGT"


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", MODES)
def test_titin_against_titin_equals_the_numpy_path(mode, shared_data):
    import lzma

    text = lzma.decompress((shared_data / "extremes.fasta.xz").read_bytes()).decode()
    records = [entry.partition("\n") for entry in text.split(">")[1:]]
    titins = {header.split()[0]: letters.replace("\n", "") for header, _, letters in records}
    query, subject = (PROTEIN.encode(titins[name]) for name in ("Q8WZ42", "A2ASS6"))
    assert tracing.trace(query, subject, Recurrence(Scoring(), mode), threads=2) == traceback.trace(
        query, subject, Scoring(), mode
    )
