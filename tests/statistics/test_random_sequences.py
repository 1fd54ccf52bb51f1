"""The panel of random sequences: the same everywhere, and of the composition of proteins."""

import hashlib

import numpy as np
import pytest

from swsearch.alphabet import PROTEIN
from swsearch.statistics import random_panel
from swsearch.statistics.random_panel import COPIES, Panel, choose_panel, probability_of, random_codes


def test_the_residues_are_the_same_on_every_machine():
    codes = b"".join(random_codes(seed, 1000).tobytes() for seed in (16, 17, 2048))
    assert hashlib.sha256(codes).hexdigest() == "a0cda0da4149b992632c711ab26c58ca98166faf15ba78e54a450bd4881fc9bd"


def test_the_composition_is_that_of_proteins():
    n = 400_000
    counts = np.bincount(random_codes(5, n), minlength=27)
    for code, letter in enumerate(PROTEIN.letters):
        expected = n * random_panel._FREQUENCIES.get(letter, 0) / 100_000
        assert abs(counts[code] - expected) <= 5 * np.sqrt(expected), letter


def test_frequencies_are_whole_and_known():
    assert sum(random_panel._FREQUENCIES.values()) == 100_000
    assert len(random_panel._FREQUENCIES) == 20


def test_seeds_give_unrelated_residues():
    one, other = random_codes(1, 5000), random_codes(2, 5000)
    same = int((one == other).sum())
    assert abs(same - 5000 * 0.06) < 100


@pytest.mark.parametrize("mode", ["local", "semiglobal"])
def test_the_panel_does_not_depend_on_the_query(mode):
    assert choose_panel(mode, 1) == choose_panel(mode, 35_213)


@pytest.mark.parametrize("length", [1, 2, 15, 350, 5478, 35_213])
def test_the_panel_of_global_mode_is_about_the_query(length):
    panel = choose_panel("global", length)
    assert length in panel.lengths
    assert list(panel.lengths) == sorted(set(panel.lengths))
    assert panel.lengths[0] >= 1
    assert all(n >= 1 for n in panel.sequences)
    assert [len(codes) for codes in panel.codes()] == list(np.repeat(panel.lengths, panel.sequences))


def test_scores_are_parted_by_length():
    panel = Panel((3, 5), (2, 1))
    one, other = (part[0] for part in panel.split_scores(np.arange(panel.n_scores)[None]))
    assert one.tolist() == [list(range(COPIES)), list(range(COPIES, 2 * COPIES))]
    assert other.tolist() == [list(range(2 * COPIES, 3 * COPIES))]


def test_the_probability_of_a_sequence():
    assert probability_of(PROTEIN.encode("A")) == pytest.approx(0.07805, rel=1e-12)
    assert probability_of(PROTEIN.encode("WWQX")) == pytest.approx(0.0133**2 * 0.04264, rel=1e-12)
    assert probability_of(PROTEIN.encode("W" * 1000)) == 0
