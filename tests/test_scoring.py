import os
from pathlib import Path

import numpy as np
import pytest
from Bio.Align import substitution_matrices
from hypothesis import given
from hypothesis import strategies as st

import swsearch
from support.cases import scorings
from support.command_line import fails, run
from swsearch.alphabet import DNA, PAD, PROTEIN
from swsearch.errors import InputError, OptionError
from swsearch.matrices import BLASTP_MATRICES, GAP_COSTS
from swsearch.options.kinds import MODES
from swsearch.scoring import (
    MAX_GAP_COST,
    PADDING_SCORE,
    Scoring,
    dna_matrix,
    fits_lane,
    lane_holds_gap_costs,
    lane_limits,
    load_matrix,
    matrix_from_text,
    matrix_names,
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


@pytest.mark.parametrize("name", [*GAP_COSTS, "RAO", "STR", "LEVIN"])
def test_the_rule_for_ambiguous_letters(name):
    matrix = load_matrix(name)
    for letter in PROTEIN.letters[:-1]:
        assert matrix["X", letter] == matrix["O", letter] == -1
        assert matrix["U", letter] == (matrix["C", letter] if letter != "U" else matrix["C", "C"])
    assert np.array_equal(matrix.scores, matrix.scores.T)


def test_padding_scores_below_every_letter():
    for name in GAP_COSTS:
        matrix = load_matrix(name)
        assert (matrix.scores[PAD] == PADDING_SCORE).all()
        assert matrix.min > PADDING_SCORE


@pytest.mark.parametrize("name", sorted(substitution_matrices.load()))
def test_every_name_that_biopython_knows_loads_or_says_why_not(name):
    if name in FRACTIONAL:
        with pytest.raises(OptionError, match="whole-number scores"):
            load_matrix(name)
    elif name in NUCLEOTIDE:
        with pytest.raises(InputError, match=r"no score for .*; this is a matrix for DNA"):
            load_matrix(name, PROTEIN)
        theirs = substitution_matrices.load(name)
        ours = load_matrix(name)
        assert ours.alphabet is DNA
        assert all(ours[a, b] == theirs[a, b] for a in "ACGT" for b in "ACGT")
    elif name == "SCHNEIDER":
        with pytest.raises(OptionError, match="codons"):
            load_matrix(name)
    else:
        matrix = load_matrix(name.lower())
        assert matrix.name == name.upper()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("BLOSUM61", r"matrix: got 'BLOSUM61', expected .*; did you mean BLOSUM62"),
        ("blosum-62", r"did you mean BLOSUM62"),
        ("PAM3O", r"did you mean PAM30"),
        (
            "nonsense",
            r"got 'nonsense', expected a file in NCBI's format or one of BLASTP, .*PFASUM60, [^;]*VTML200$",
        ),
        ("x" * 5000, r"got 'x+'\.\.\., expected a file"),
        ("mine.txt", "got 'mine.txt', expected a file in NCBI's format; file not found, check its name"),
        ("no/BLOSUM62", "file not found, check its name"),
        ("a\0b", "expected a file"),
        ("", "expected a file"),
    ],
)
def test_an_unknown_matrix(name, message):
    with pytest.raises(OptionError, match=message):
        load_matrix(name, PROTEIN)


@pytest.mark.parametrize("alphabet", [PROTEIN, DNA])
def test_the_names_that_are_listed_are_those_that_can_be_used(alphabet):
    names = matrix_names(alphabet)
    assert {load_matrix(name, alphabet).alphabet for name in names if name != "MATCHA"} == {alphabet}
    assert set(GAP_COSTS) <= set(names) if alphabet is PROTEIN else set(names) == NUCLEOTIDE
    with pytest.raises(OptionError) as caught:
        load_matrix("nonsense", alphabet)
    assert str(caught.value).endswith(f"one of {', '.join(names)}")
    for name in NUCLEOTIDE if alphabet is PROTEIN else GAP_COSTS:
        assert f" {name}" not in str(caught.value)


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
        ("A R A\n", "line 1: a column letter stands twice"),
        ("A a\n", "line 1: a column letter stands twice"),
        ("A R\nA 1 2\nA 1 2\n", "line 3: row A stands twice"),
        ("A R\nA 1 nan\nR 2 1\n", "no score for A with N"),
    ],
)
def test_a_bad_matrix_file_names_the_line(text, message):
    with pytest.raises(InputError, match=message):
        matrix_from_text(text, "bad.txt", PROTEIN)


def identity(letters=CORE, same=7, other=-3):
    return np.where(np.eye(len(letters), dtype=bool), same, other)


def pairs(letters=CORE, **scores):
    array = identity(letters, **scores)
    return {(a, b): array[i, j] for i, a in enumerate(letters) for j, b in enumerate(letters)}


def upper_half():
    """As older versions of Biopython had their matrices: each pair once."""
    return {(a, b): score for (a, b), score in pairs().items() if a <= b}


SOURCES = {
    "letters and array": lambda: (CORE, identity()),
    "array and letters": lambda: (identity().astype(float), list(CORE)),
    "mapping": pairs,
    "each pair once": upper_half,
    "pairs as text": lambda: {a + b.lower(): float(score) for (a, b), score in pairs().items()},
    "Biopython's array": lambda: substitution_matrices.Array(CORE, data=identity().astype(float)),
}


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_matrices_from_python(make):
    matrix = Scoring(make(), 3, 1).matrix
    expected = {(a, b): 7 if a == b else -3 for a in CORE for b in CORE}
    assert {(a, b): matrix[a, b] for a in CORE for b in CORE} == expected
    assert (matrix["B", "D"], matrix["X", "A"], matrix["*", "A"], matrix["*", "*"]) == (2, -1, -3, 1)
    assert (matrix.name, matrix.published, matrix.alphabet) == ("custom", False, PROTEIN)
    assert swsearch.score("MKV", [("a", "MKV")], scoring=Scoring(make(), 3, 1), engine="cpu").tolist() == [[21]]


def test_biopythons_arrays_of_proteins_and_of_dna():
    theirs = substitution_matrices.load("BLOSUM62")
    ours = Scoring(theirs).matrix
    assert all(ours[a, b] == theirs[a, b] for a in theirs.alphabet for b in theirs.alphabet)
    assert np.array_equal(Scoring(substitution_matrices.load("BLASTP")).matrix.scores, Scoring().matrix.scores)
    theirs = substitution_matrices.load("NUC.4.4")
    assert np.array_equal(Scoring(theirs).matrix.scores, load_matrix("nuc.4.4").scores)
    assert swsearch.align("ACGT", "ACGT", scoring=Scoring(theirs)).score == 20
    with pytest.raises(OptionError, match="expected whole-number scores"):
        Scoring(substitution_matrices.load("GONNET1992"))


def test_rows_of_a_matrix_are_the_querys_letters():
    table = pairs()
    table["A", "R"] = 5
    scoring = Scoring(table, 3, 1)
    assert (scoring.matrix["A", "R"], scoring.matrix["R", "A"]) == (5, -3)
    assert swsearch.score("A", [("a", "R")], scoring=scoring, engine="cpu").tolist() == [[5]]
    assert swsearch.align("A", "R", scoring=scoring).score == 5


def changed(pair, value):
    return {**pairs(), pair: value}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "matrix: got None, expected a name, a file, a mapping"),
        (5, "matrix: got 5, expected a name"),
        (identity(), "matrix: got an ndarray, expected .*letters with an array"),
        ([1, 2], r"matrix: got \[1, 2\], expected"),
        ((CORE, identity().tolist()), "expected a name, a file, .*letters with an array"),
        ((CORE, identity()[:5]), r"shape \(5, 20\) with 20 letters, expected a row and a column for each"),
        ((CORE[:19], identity()), r"shape \(20, 20\) with 19 letters"),
        ((CORE[:19] + "A", identity()), "more than one score for A with A"),
        ((CORE[:19] + "!", identity()), "no score for A with V"),
        ((CORE + "!", identity(CORE + "!")), "scores for '!', expected protein letters"),
        ((CORE.lower() + "A", identity(CORE + "!")), "more than one score for A with A; case makes no difference"),
        ((CORE, np.full((20, 20), "x")), "A with A scores .*x.*, expected a whole number"),
        ({}, "matrix custom: no score for A with A"),
        ({"AB": 1}, "no score for A with A"),
        ({"A": {"B": 1}}, "got 'A' as a pair of letters, expected two letters such as"),
        ({("A", 1): 1}, r"got \('A', 1\) as a pair of letters"),
        ({1: 1}, "got 1 as a pair of letters"),
        (changed(("A", "R"), None), "A with R scores None, expected a whole number"),
        (changed(("A", "R"), 0.5), "A with R scores 0.5: scale or round it"),
        (changed(("A", "R"), float("nan")), "A with R scores nan: give a number"),
        (changed(("A", "R"), float("inf")), "A with R scores inf: give a number"),
        (changed(("A", "R"), 10**400), "A with R scores an int, expected a whole number"),
        (changed(("A", "R"), 128), "whole-number scores from -127 to 127; A with R scores 128"),
        ({**pairs(), ("X", "X"): -300}, "X with X scores -300"),
        ({**pairs(), ("*", "*"): 0.25}, r"\* with \* scores 0.25"),
    ],
)
def test_matrices_from_python_that_cannot_be_used(source, message):
    with pytest.raises(InputError, match=message) as caught:
        Scoring(source)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_score_outside_the_core_of_a_matrix_file_is_checked_too(tmp_path):
    # it would wrap in the eight bits of a profile
    text = f"  {' '.join(CORE + 'X')}\n" + "".join(f"{a} {'1 ' * 20}{300 if a == 'X' else 0}\n" for a in CORE + "X")
    with pytest.raises(OptionError, match="X with X scores 300"):
        matrix_from_text(text, "m.txt", PROTEIN)


UNREADABLE = {
    "folder/": "is a directory, expected a file in NCBI's format",
    "empty.txt": "no matrix found, expected NCBI's format",
    "binary.txt": "holds binary data, expected text in NCBI's format",
    "utf16.txt": "holds binary data",
    "large.txt": "is larger than 1 MiB",
    "nan.txt": "A with A scores nan: give a number",
    "huge.txt": "A with A scores inf: give a number",
    "missing.txt": "file not found, check its name",
}


@pytest.fixture(scope="module")
def unreadable(tmp_path_factory):
    folder = tmp_path_factory.mktemp("matrices")
    (folder / "folder").mkdir()
    (folder / "empty.txt").write_bytes(b"")
    (folder / "binary.txt").write_bytes(bytes(range(256)))
    (folder / "utf16.txt").write_text("A R N", encoding="utf-16")
    (folder / "large.txt").write_bytes(b"# \n" * (1 << 19))
    for name, value in (("nan", "nan"), ("huge", "1e400")):
        rows = "".join(f"{a} {value} {'1 ' * 19}\n" for a in CORE)
        (folder / f"{name}.txt").write_text(f"  {' '.join(CORE)}\n{rows}")
    return folder


@pytest.mark.parametrize(("name", "message"), UNREADABLE.items())
def test_a_matrix_file_that_cannot_be_used(name, message, unreadable):
    with pytest.raises(InputError, match=message):
        load_matrix(f"{unreadable}/{name}")


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_matrix_file_that_cannot_be_used_ends_a_command_with_1(name, unreadable, examples):
    queries = examples / "data" / "queries.fasta"
    for command in (("search", queries, queries), ("align", "MKV", "MKV")):
        done = run(*command, "--matrix", f"{unreadable}/{name}")
        fails(done, 1, "matrix")
        assert len(done.stderr.splitlines()) == 1


def test_a_matrix_file_without_permission(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # root may read everything
    with pytest.raises(InputError, match=r"m.txt: cannot be read \(Permission denied\), expected"):
        load_matrix(tmp_path / "m.txt")


def test_a_matrix_may_come_through_a_pipe(tmp_path):
    text = f"  {' '.join(CORE)}\n" + "".join(f"{a} {'1 ' * 20}\n" for a in CORE)
    reader, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    try:
        assert load_matrix(f"/dev/fd/{reader}")["A", "R"] == 1
    finally:
        os.close(reader)


def test_gap_costs_of_numpy_become_pythons():
    scoring = Scoring(gap_open=np.int8(100), gap_extend=np.int8(100))
    assert scoring.gap_cost(10) == 1100
    assert (type(scoring.gap_open), type(scoring.gap_extend)) == (int, int)


def test_a_search_scores_proteins_only():
    # databases hold codes of amino acids, which a matrix for DNA would take for bases
    for call in (swsearch.search, swsearch.score):
        with pytest.raises(InputError, match="scoring: got matrix DNA 5/-4 for dna, expected a matrix for protein"):
            call("ACGT", [("a", "ACGT")], scoring=Scoring(dna_matrix()))


@pytest.mark.parametrize(
    ("gaps", "message"),
    [
        ((-11, 1), "gap_open: got -11, expected a number >= 0 (costs are positive here)"),
        ((11, -1), "gap_extend: got -1, expected a number >= 0 (costs are positive here)"),
        ((1.05, 1), "gap_open, gap_extend: got 'fractions of 20 parts', expected fractions of 11 parts at most"),
        ((-1.5, 1), "gap_open: got -1.5, expected a number >= 0"),
        (("11", 1), "gap_open: got '11'"),
        ((True, 1), "gap_open: got True"),
        ((np.int64(-3), 1), "gap_open: got np.int64(-3)"),
        ((11, float("nan")), "gap_extend: got nan"),
        ((11, float("inf")), "gap_extend: got inf"),
        ((11, 10**5000), "gap_extend: got an int, expected a number <= 10000"),
        ((MAX_GAP_COST + 1, 1), "gap_open: got 10001, expected a number <= 10000"),
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
    profile = scoring.rows(query)
    assert profile.scores.shape == (5, 32)
    assert profile.scores.dtype == np.int8
    for row, letter in enumerate("MKVX*"):
        for code, other in enumerate(PROTEIN.letters):
            assert profile.scores[row, code] == scoring.matrix[letter, other]
    assert (profile.scores[:, PAD] == PADDING_SCORE).all()
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
    assert not lane_holds_gap_costs(8, "local", Scoring(gap_open=60))
    assert lane_holds_gap_costs(8, "local", scoring)
    assert not lane_holds_gap_costs(8, "global", scoring)


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
