"""Profiles of single sequences, by contexts of their residues."""

from __future__ import annotations

import math
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import swsearch
from swsearch.alphabet import PROTEIN
from swsearch.errors import InputError, OptionError
from swsearch.profiles.calibration import BACKGROUND, lambda_of
from swsearch.profiles.contexts import (
    REACH,
    WIDTH,
    ContextLibrary,
    ContextSettings,
    context_profile,
    load_library,
)
from swsearch.scoring import Scoring, dna_matrix

SCORING = Scoring()
INSULIN = "FVNQHLCGSHLVEALYLVCGERGFFYTPKT"


def random_library(n: int, seed: int = 1) -> ContextLibrary:
    generator = np.random.default_rng(seed)
    return ContextLibrary.from_floats(
        generator.normal(size=(WIDTH, 20, n)), generator.normal(size=n), generator.normal(size=(n, 20))
    )


def expected_frequencies(library: ContextLibrary, codes: list[int]) -> list[list[float]]:
    """Compute `ContextLibrary.predict` context by context and residue by residue."""
    rows = []
    for place in range(len(codes)):
        row = [0.0] * 20
        for context in range(library.weights.shape[2]):
            score = int(library.bias[context])
            for column in range(WIDTH):
                at = place + column - REACH
                if 0 <= at < len(codes) and codes[at] < 20:
                    score += int(library.weights[column, codes[at], context])
            odds = math.exp(score / 16)
            shares = [math.exp(-int(one) / 32) for one in library.emission[context]]
            for letter, share in enumerate(shares):
                row[letter] += odds * share / sum(shares)
        rows.append([one / sum(row) for one in row])
    return rows


@pytest.mark.parametrize("n", [1, 5, 13, 150])
def test_frequencies_are_those_of_the_plain_formula(n: int) -> None:
    library = random_library(23)
    codes = np.random.default_rng(n).integers(0, 23, n).astype(np.uint8)
    predicted = library.predict(codes)
    assert predicted == pytest.approx(np.array(expected_frequencies(library, codes.tolist())), abs=2e-4)
    assert predicted.sum(axis=1) == pytest.approx(np.ones(n))


def test_scores_are_log_odds_in_the_units_of_the_matrix() -> None:
    library, codes = random_library(40), PROTEIN.encode(INSULIN + "XB")
    settings = ContextSettings(residue=0.2, scale=1.1, composition=0.3)
    profile = context_profile("q", "about", codes, SCORING, settings, library)
    frequencies = 0.8 * library.predict(codes)[:30]
    frequencies[np.arange(30), codes[:30]] += 0.2
    background = 0.7 * BACKGROUND + 0.3 * frequencies.mean(axis=0)
    odds = 1.1 * np.log(frequencies / background) / lambda_of(SCORING.matrix)
    assert np.abs(profile.scores[:30, :20] - odds).max() <= 0.5 + 1e-9
    assert np.array_equal(profile.scores[30:], SCORING.matrix.scores[codes[30:]][:, :27])
    assert (profile.identifier, profile.description, profile.scale) == ("q", "about", 1.1)
    assert (profile.gap_open, profile.gap_extend) == (11, 1)


@pytest.mark.parametrize("name", ["residue", "composition", "scale"])
def test_settings_out_of_range_are_an_error(name: str) -> None:
    with pytest.raises(OptionError, match=name):
        ContextSettings(**{name: -0.1})


def test_a_position_depends_on_its_neighbours_alone() -> None:
    codes = np.random.default_rng(3).integers(0, 20, 400).astype(np.uint8)
    whole = load_library().predict(codes)
    for begin, end in [(0, 90), (120, 140), (250, 400)]:
        first, last = max(0, begin - REACH), min(400, end + REACH)
        assert np.array_equal(
            load_library().predict(codes[first:last])[begin - first : end - first], whole[begin:end]
        )


def test_sums_are_exact_in_any_order_of_contexts() -> None:
    library, codes = load_library(), np.random.default_rng(4).integers(0, 20, 100).astype(np.uint8)
    order = np.random.default_rng(5).permutation(library.weights.shape[2])
    other = ContextLibrary(
        np.ascontiguousarray(library.weights[:, :, order]), library.bias[order], library.emission[order]
    )
    assert np.array_equal(library.predict(codes), other.predict(codes))


def test_the_library_of_the_package() -> None:
    library = load_library()
    n = library.weights.shape[2]
    assert library.weights.shape == (WIDTH, 20, n)
    assert library.weights.dtype == np.int8
    assert (library.bias.shape, library.emission.shape) == ((n,), (n, 20))
    assert n <= 2**13
    assert (resources.files("swsearch.profiles") / "contexts.npz").stat().st_size <= 3 * 10**6  # type: ignore[attr-defined]
    # a position shows its own residue more often than the background does
    codes = np.arange(20, dtype=np.uint8)
    assert (library.predict(codes)[np.arange(20), codes] > BACKGROUND).all()


def test_a_library_is_read_as_it_was_saved(tmp_path: Path) -> None:
    library = random_library(7)
    library.save(tmp_path / "library.npz")
    again = ContextLibrary.read(tmp_path / "library.npz")
    assert np.array_equal(library.weights, again.weights)
    assert np.array_equal(library.bias, again.bias)
    assert np.array_equal(library.emission, again.emission)


def test_a_library_of_another_version_is_an_error(tmp_path: Path) -> None:
    np.savez(tmp_path / "library.npz", version=np.array(2))
    with pytest.raises(InputError, match="got a library of version 2, expected 1"):
        ContextLibrary.read(tmp_path / "library.npz")


def test_dna_is_an_error() -> None:
    with pytest.raises(InputError, match="made of proteins only"):
        context_profile("q", "", PROTEIN.encode("ACGT"), Scoring(dna_matrix(2, -3), 5, 2))


def test_a_query_of_no_residues_and_of_unknown_ones() -> None:
    assert len(context_profile("q", "", PROTEIN.encode(""), SCORING)) == 0
    unknown = context_profile("q", "", PROTEIN.encode("XXX"), SCORING)
    assert np.array_equal(unknown.scores, SCORING.matrix.scores[PROTEIN.encode("XXX")][:, :27])


def test_a_search_takes_it_and_finds_relatives() -> None:
    profile = context_profile("insulin", "", PROTEIN.encode(INSULIN), SCORING)
    hits = next(iter(swsearch.search(profile, "examples/data/swissprot_sample.fasta.gz"))).hits
    assert {"sp|Q28933|IGF1_SUNMU"} <= {hit.subject_id for hit in hits[:5]}
