import numpy as np
import pytest
from Bio.Align import substitution_matrices
from hypothesis import given
from hypothesis import strategies as st

from support.cases import scorings
from swsearch.alphabet import DNA, PAD, PROTEIN
from swsearch.errors import InputError, OptionError
from swsearch.scoring import (
    BLASTP_MATRICES,
    MAX_GAP_COST,
    MODES,
    PAD_SCORE,
    Scoring,
    dna_matrix,
    fits_lane,
    lane_limits,
    load_matrix,
    matrix_from_text,
    may_start_at,
)

CORE = PROTEIN.letters[:20]
FRACTIONAL = {
    "BENNER22",
    "BENNER6",
    "BENNER74",
    "DAYHOFF",
    "GENETIC",
    "GONNET1992",
    "JOHNSON",
    "JONES",
    "MDM78",
    "RISLER",
}
NUCLEOTIDE = {"BLASTN", "HOXD70", "MEGABLAST", "NUC.4.4", "TRANS"}


def test_blosum62_is_biopythons_blastp_matrix_letter_by_letter():
    # PEERS: Biopython's matrix BLASTP reproduces what blastp does with ambiguous letters
    theirs = substitution_matrices.load("BLASTP")
    ours = load_matrix("BLOSUM62")
    assert {(a, b): ours[a, b] for a in PROTEIN.letters for b in PROTEIN.letters} == {
        (a, b): theirs[a, b] for a in PROTEIN.letters for b in PROTEIN.letters
    }


@pytest.mark.parametrize("name", [name for name in BLASTP_MATRICES if name != "BLOSUM80"])
def test_shipped_matrices_are_biopythons_on_the_twenty_amino_acids(name):
    theirs, ours = substitution_matrices.load(name), load_matrix(name)
    assert all(ours[a, b] == theirs[a, b] for a in CORE for b in CORE)
    assert ours.published


def test_blosum80_is_blastps_in_half_bits_and_not_biopythons_in_third_bits():
    # the published statistics belong to blastp's
    assert load_matrix("BLOSUM80")["A", "A"] == 5
    assert substitution_matrices.load("BLOSUM80")["A", "A"] == 7


@pytest.mark.parametrize("name", [*BLASTP_MATRICES, "RAO", "STR", "LEVIN"])
def test_the_rule_for_ambiguous_letters(name):
    matrix = load_matrix(name)
    for letter in PROTEIN.letters[:-1]:
        assert matrix["X", letter] == matrix["O", letter] == -1
        assert matrix["U", letter] == (matrix["C", letter] if letter != "U" else matrix["C", "C"])
    assert np.array_equal(matrix.scores, matrix.scores.T)


def test_padding_scores_below_every_letter():
    for name in BLASTP_MATRICES:
        matrix = load_matrix(name)
        assert (matrix.scores[PAD] == PAD_SCORE).all()
        assert matrix.min > PAD_SCORE


@pytest.mark.parametrize("name", sorted(substitution_matrices.load()))
def test_every_name_that_biopython_knows_loads_or_says_why_not(name):
    if name in FRACTIONAL:
        with pytest.raises(OptionError, match="whole-number scores"):
            load_matrix(name)
    elif name in NUCLEOTIDE:
        with pytest.raises(InputError, match="no score for"):
            load_matrix(name)
        theirs = substitution_matrices.load(name)
        ours = load_matrix(name, DNA)
        assert all(ours[a, b] == theirs[a, b] for a in "ACGT" for b in "ACGT")
    elif name == "SCHNEIDER":
        with pytest.raises(OptionError, match="codons"):
            load_matrix(name)
    else:
        matrix = load_matrix(name.lower())
        assert matrix.name == name.upper()


def test_an_unknown_matrix_is_an_error_that_lists_the_known():
    with pytest.raises(OptionError, match=r"matrix: got 'BLOSUM63'.*BLOSUM62"):
        load_matrix("BLOSUM63")


def test_a_matrix_file_stands_as_it_is(tmp_path):
    lines = ["# mine", "   " + "  ".join(CORE + "X")]
    for a in CORE + "X":
        lines.append(a + " " + " ".join(str(7 if a == b else -3) for b in CORE + "X"))
    path = tmp_path / "mine.txt"
    path.write_text("\n".join(lines))
    matrix = load_matrix(path)
    assert matrix["A", "A"] == 7
    assert matrix["X", "X"] == 7  # the file's own
    assert matrix["B", "D"] == 2  # the mean of 7 and -3
    assert not matrix.published


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no matrix found"),
        ("A R\nA 1\n", "line 2: expected a row letter and 2 scores, got 1"),
        ("A R\nA 1 x\n", "line 2: 'x' is no score"),
        ("A R\nA 1 2\nR 2 1\n", "no score for A with N"),
        ("hello world\n", "line 1: expected the column letters"),
    ],
)
def test_a_bad_matrix_file_names_the_line(text, message):
    with pytest.raises(InputError, match=message):
        matrix_from_text(text, "bad.txt", PROTEIN)


@pytest.mark.parametrize(
    ("gaps", "message"),
    [
        ((-11, 1), "gap_open: got -11, expected an integer >= 0 (costs are positive here)"),
        ((11, -1), "gap_extend: got -1, expected an integer >= 0 (costs are positive here)"),
        ((1.5, 1), "gap_open: got 1.5"),
        ((MAX_GAP_COST + 1, 1), "gap_open: got 10001, expected an integer <= 10000"),
    ],
)
def test_bad_gap_costs(gaps, message):
    with pytest.raises(OptionError) as caught:
        Scoring(load_matrix("BLOSUM62"), *gaps)
    assert message in str(caught.value)


def test_the_gap_formula():
    scoring = Scoring(gap_open=11, gap_extend=1)
    assert [scoring.gap_cost(k) for k in (0, 1, 2, 10)] == [0, 12, 13, 21]
    assert scoring.gap_first == 12


def test_a_profile_holds_the_scores_of_each_row():
    scoring = Scoring()
    query = PROTEIN.encode("MKVX*")
    profile = scoring.profile(query)
    assert profile.scores.shape == (5, 32)
    assert profile.scores.dtype == np.int8
    for row, letter in enumerate("MKVX*"):
        for code, other in enumerate(PROTEIN.letters):
            assert profile.scores[row, code] == scoring.matrix[letter, other]
    assert (profile.scores[:, PAD] == PAD_SCORE).all()
    assert np.array_equal(profile.codes, query)


@given(scorings, st.sampled_from(MODES), st.integers(0, 40_000), st.integers(0, 40_000))
def test_the_chosen_lane_holds_the_range_and_the_next_narrower_does_not(scoring, mode, m, n):
    low, high = scoring.score_range(mode, m, n)
    bits = scoring.lane_bits(mode, m, n)
    lane_low, lane_high = lane_limits(bits)
    assert lane_low < low <= high < lane_high
    if bits > 8:
        assert not fits_lane(bits // 2, low, high, scoring)


def test_lane_bounds_at_their_edges():
    scoring = Scoring()  # BLOSUM62: best 11; headroom 13, one more than a gap's first residue
    widest = (2**15 - 1 - 13 - 1) // 11
    assert scoring.lane_bits("local", widest, 10**6) == 16
    assert scoring.lane_bits("local", widest + 1, 10**6) == 32
    assert not may_start_at(8, "local", Scoring(gap_open=60))
    assert may_start_at(8, "local", scoring)
    assert not may_start_at(8, "global", scoring)


def test_more_than_32_bits_is_an_error():
    with pytest.raises(InputError, match="more than 32 bits"):
        Scoring(gap_open=0, gap_extend=10_000).lane_bits("global", 200_000, 200_000)


def test_dna_matrix():
    matrix = dna_matrix(5, -4)
    assert matrix["A", "A"] == 5
    assert matrix["A", "C"] == -4
    assert matrix["U", "T"] == 5
    assert matrix["N", "A"] == -2  # the mean of 5 and three -4 is -1.75
    assert matrix["R", "A"] == 0  # the mean of 5 and -4 is 0.5


def test_dna_matrix_and_ednafull_differ_as_the_docstring_says():
    ours, theirs = dna_matrix(), load_matrix("NUC.4.4", DNA)
    letters = DNA.letters
    differences = {(a, b): theirs[a, b] - ours[a, b] for a in letters for b in letters if theirs[a, b] != ours[a, b]}
    assert (len(differences), len(letters) ** 2) == (57, 256)
    assert set(differences.values()) == {-1, 1}
    assert all(set(pair) - set("ACGTU") for pair in differences)
    assert (theirs["S", "S"], ours["S", "S"], theirs["A", "W"], ours["A", "W"]) == (-1, 0, 1, 0)
    array = substitution_matrices.load("NUC.4.4")
    assert all(theirs[a, b] == array[a, b] for a in array.alphabet for b in array.alphabet)
