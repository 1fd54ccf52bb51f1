"""Shuffled copies of sequences: what they hold, and that they follow from sequence and number alone."""

import numpy as np
import pytest

from support.shuffled import shuffled
from swsearch.alphabet import PAD
from swsearch.blocks import LANES
from swsearch.job.shuffled import shuffled_chunk
from swsearch.statistics.random_sequences import WINDOW


def some_sequences(lengths=(7, 350, 20, 1, 41, 64, 200), seed=3):
    random = np.random.default_rng(seed)
    return [random.integers(0, 24, n).astype(np.uint8) for n in lengths]


def rows(chunk, n_copies):
    """Return the copies by sequence and number."""
    found = {}
    for place, subject in enumerate(chunk.subjects.tolist()):
        found[divmod(subject, n_copies)] = chunk.subject(place)
    return found


@pytest.mark.parametrize("threads", [1, 3])
def test_copies_are_those_that_python_makes(threads):
    sequences = some_sequences()
    chunk = shuffled_chunk(sequences, range(2, 7), threads)
    found = rows(chunk, 5)
    assert len(found) == 5 * len(sequences)
    for (which, copy), codes in found.items():
        assert codes.tolist() == shuffled(sequences[which], 2 + copy, WINDOW).tolist()


def test_windows_keep_their_residues():
    (codes,) = some_sequences((127,))
    for copy in rows(shuffled_chunk([codes], range(4), 1), 4).values():
        assert copy.tolist() != codes.tolist()
        for start in range(0, len(codes), WINDOW):
            window = slice(start, start + WINDOW)
            assert sorted(copy[window].tolist()) == sorted(codes[window].tolist())


def test_every_order_of_a_window_is_as_likely():
    codes = np.array([0, 1, 2], dtype=np.uint8)
    n = 60_000
    found = rows(shuffled_chunk([codes], range(n), 2), n)
    orders, counts = np.unique([copy.tolist() for copy in found.values()], axis=0, return_counts=True)
    assert len(orders) == 6
    assert np.abs(counts - n / 6).max() < 5 * np.sqrt(n / 6)


def test_a_copy_does_not_depend_on_the_others():
    sequences = some_sequences()
    whole = rows(shuffled_chunk(sequences, range(8), 2), 8)
    alone = rows(shuffled_chunk(sequences[2:3], range(5, 6), 1), 1)
    assert alone[0, 0].tolist() == whole[2, 5].tolist()


def test_lanes_that_hold_nothing_are_padded():
    chunk = shuffled_chunk(some_sequences((9, 3)), range(2), 1)
    block = chunk.residues
    assert block.shape == (16, LANES)
    assert (block[:, 4:] == PAD).all()
    assert (block[9:, :2] == PAD).all()
    assert (block[3:, 2:4] == PAD).all()


def test_no_sequences_and_empty_ones():
    assert shuffled_chunk([], range(4), 1).n_subjects == 0
    chunk = shuffled_chunk([np.empty(0, dtype=np.uint8)], range(4), 1)
    assert chunk.lengths.tolist() == [0, 0, 0, 0]
