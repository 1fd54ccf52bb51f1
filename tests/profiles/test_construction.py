"""Profiles made of alignments."""

from __future__ import annotations

import numpy as np
import pytest

from swsearch.alphabet import PROTEIN
from swsearch.errors import InputError
from swsearch.profiles.construction import ProfileSettings, build_profile
from swsearch.profiles.query_alignment import GAP, QueryAlignment
from swsearch.scoring import Scoring, dna_matrix

SCORING = Scoring()


def aligned(*rows: str) -> QueryAlignment:
    """An alignment of rows of letters and dashes; the first is the query."""
    codes = [[GAP if letter == "-" else PROTEIN.letters.index(letter) for letter in row] for row in rows]
    columns = np.array(codes, dtype=np.uint8).reshape(len(rows), len(rows[0]))
    return of_columns(columns)


def of_columns(columns: np.ndarray) -> QueryAlignment:
    """An alignment of codes; what it says beside its columns does not matter."""
    n = len(columns)
    zeros, alone = np.zeros(n, dtype=np.int64), QueryAlignment.from_query("q", "", columns[0])
    return QueryAlignment(
        ["q", *(f"s{k}" for k in range(1, n))], ["about"] + [""] * (n - 1), columns, zeros,
        (columns != GAP).sum(axis=1), alone.insertions, alone.inserted, zeros - 1, np.zeros(n), zeros,
    )  # fmt: skip


def family(generator: np.random.Generator, n: int, n_columns: int, change: float = 0.6) -> QueryAlignment:
    """Random relatives of a random query, ragged and with gaps; some letters are ambiguous."""
    query = generator.integers(0, 20, n_columns)
    columns = np.tile(query, (n, 1))
    places = generator.random(columns.shape) < change
    places[0] = False
    columns[places] = generator.choice([*range(20), *range(27), GAP], int(places.sum()))
    begins, ends = (generator.integers(0, n_columns // 3 + 1, n) for _ in range(2))
    ends = n_columns - ends
    begins[0], ends[0] = 0, n_columns
    where = np.arange(n_columns)
    columns[(where < begins[:, None]) | (where >= ends[:, None])] = GAP
    return of_columns(columns.astype(np.uint8))


@pytest.mark.parametrize("name", ["BLOSUM62", "PFASUM60", "PAM30"])
def test_the_query_alone_scores_as_the_matrix_does(name: str) -> None:
    scoring = Scoring(name)
    codes = PROTEIN.encode(PROTEIN.letters)
    made = build_profile(QueryAlignment.from_query("q", "about", codes), scoring)
    assert np.array_equal(made.scores, scoring.matrix.scores[codes][:, :27])
    assert (made.identifier, made.description) == ("q", "about")
    assert (made.gap_open, made.gap_extend) == (scoring.gap_open, scoring.gap_extend)
    assert made.frequencies is not None
    assert made.frequencies.sum(axis=1) == pytest.approx(np.ones(27))


def test_what_is_conserved_scores_more_than_what_is_not() -> None:
    rows = ["MKWLCDEFGA", "MRWICNQYGS", "LKWVCSTHGT", "IQWMCAPRGV", "VEWFCGKLGP"]
    made = build_profile(aligned(*rows), SCORING)
    score = {column: int(made.scores[column, code]) for column, code in enumerate(made.codes.tolist())}
    matrix = SCORING.matrix
    assert score[5] < matrix["D", "D"]
    assert score[9] < matrix["A", "A"]
    assert all(score[column] >= matrix[rows[0][column], rows[0][column]] - 1 for column in (2, 4, 8))
    assert made.scores[3, PROTEIN.letters.index("V")] > matrix["L", "V"]
    assert "4 aligned sequences" in made.source


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_sequences_does_not_matter(seed: int) -> None:
    generator = np.random.default_rng(seed)
    made = family(generator, 70, 60)
    order = np.concatenate([[0], 1 + generator.permutation(69)])
    one, other = build_profile(made, SCORING), build_profile(of_columns(made.columns[order]), SCORING)
    assert one.frequencies is not None
    assert other.frequencies is not None
    assert one.frequencies.tobytes() == other.frequencies.tobytes(), f"seed {seed}"
    assert np.array_equal(one.scores, other.scores), f"seed {seed}"


@pytest.mark.parametrize("matrix", ["BLOSUM62", "BLOSUM45", "VTML200", "PAM250"])
@pytest.mark.parametrize("settings", [ProfileSettings(), ProfileSettings(2.0, 1, 5, 10.0, False)])
def test_profiles_of_any_family_are_frequencies_and_fit(matrix: str, settings: ProfileSettings) -> None:
    generator = np.random.default_rng(8)
    for n, n_columns in ((2, 1), (2, 30), (40, 30), (300, 40)):
        made = build_profile(family(generator, n, n_columns), Scoring(matrix), settings)
        assert made.frequencies is not None
        assert made.frequencies.sum(axis=1) == pytest.approx(np.ones(n_columns))
        assert made.frequencies.min() > 0
        assert np.abs(made.scores.astype(int)).max() <= 127


def test_scores_have_the_matrixs_lambda() -> None:
    """The mean of exp(lambda score) over random residues is 1 in each column, but for rounding."""
    from swsearch.profiles.calibration import BACKGROUND, lambda_of

    made = build_profile(family(np.random.default_rng(5), 100, 200), SCORING, ProfileSettings(scale=1.0))
    means = np.exp(lambda_of(SCORING.matrix) * made.scores[:, :20].astype(float)) @ BACKGROUND
    assert means.mean() == pytest.approx(1.0, abs=0.01)


def test_what_is_no_protein_is_refused() -> None:
    with pytest.raises(InputError, match="DNA"):
        build_profile(QueryAlignment.from_query("q", "", np.zeros(4, dtype=np.uint8)), Scoring(dna_matrix(), 5, 2))
    with pytest.raises(InputError, match="column 3"):
        build_profile(aligned("AC-E", "ACDE"), SCORING)
