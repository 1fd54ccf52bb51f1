"""The matrices that are shipped, the gap costs that go with each, and presets."""

import json
import math
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

import swsearch
from support.command_line import fails, run
from swsearch.alphabet import PROTEIN
from swsearch.errors import InputError, OptionError
from swsearch.matrices import BLASTP_MATRICES, GAP_COSTS, PRESET_MATRICES
from swsearch.options.kinds import PRESETS
from swsearch.scoring import Scoring, load_matrix, matrix_from_table
from swsearch.statistics.karlin_altschul import supported_gap_costs

CORE = PROTEIN.letters[:20]

PUBLICATIONS = {
    "PFASUM60": ("10.1186/s12859-017-1703-z", "CC BY 4.0"),
    "VTML200": ("Mol. Biol. Evol. 19:8-13 (2002)", "state no licence"),
    "MATCHA": ("bioRxiv 2025.11.27.690975", "MIT"),
}
"""Matrices that are no one's but their authors', and what the head of the file says of source and licence."""

BACKGROUND = [
    78.05, 51.29, 44.87, 53.64, 19.25, 42.64, 62.95, 73.77, 21.99, 51.42,
    90.19, 57.44, 22.43, 38.56, 52.03, 71.20, 58.41, 13.30, 32.16, 64.41,
]  # fmt: skip
"""Residues per thousand in the order of `CORE` (Robinson and Robinson, PNAS 88, 8880, 1991)."""

LETTERS = "MKVLAAGIVGWWHHKDEFRTYPCNQS"


def files():
    return Path(swsearch.__file__).parent / "matrices"


def test_every_matrix_is_one_file_with_all_letters():
    assert {path.stem for path in files().glob("*.txt")} == set(GAP_COSTS)
    for name in GAP_COSTS:
        lines = [line.split() for line in (files() / f"{name}.txt").read_text().splitlines() if line[0] != "#"]
        assert lines[0] == [line[0] for line in lines[1:]] == list(PROTEIN.letters)


@pytest.mark.parametrize("name", PUBLICATIONS)
def test_a_matrix_of_a_publication(name):
    matrix = load_matrix(name.lower())
    assert (matrix.name, matrix.published) == (name, False)
    assert np.array_equal(matrix.scores, matrix.scores.T)
    core = {(a, b): float(matrix[a, b]) for a in CORE for b in CORE}
    assert np.array_equal(matrix.scores, matrix_from_table(core, name, PROTEIN).scores), "the rule for other letters"
    head = " ".join(
        line.lstrip("# ") for line in (files() / f"{name}.txt").read_text().splitlines() if line[0] == "#"
    )
    units = "half bits" if name == "MATCHA" else "third bits"
    assert all(part in head for part in (units, *PUBLICATIONS[name])), head


def test_the_licences_of_others_are_installed():
    files = set(metadata.metadata("swsearch").get_all("License-File"))
    licences = {f"LICENSES/{name}.txt" for name in ("BSD-3-Clause", "CC-BY-4.0", "CC0-1.0", "MIT")}
    assert files == {"LICENSE", "NOTICE", *licences}
    notice = (ROOT / "NOTICE").read_text()
    assert all(name in notice for name in (*licences, *PUBLICATIONS))
    assert all((ROOT / name).stat().st_size > 1000 for name in licences)


def ungapped_lambda(name):
    """Solve sum p_a p_b exp(lambda s_ab) = 1 by halving."""
    matrix, shares = load_matrix(name), np.array(BACKGROUND) / sum(BACKGROUND)
    scores = np.array([[matrix[a, b] for b in CORE] for a in CORE])
    low, high = 0.01, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if shares @ np.exp(middle * scores) @ shares < 1 else (low, middle)
    return low


def test_the_solution_is_the_published_one_for_blosum62():
    assert ungapped_lambda("BLOSUM62") == pytest.approx(0.3176, abs=1e-4)


@pytest.mark.parametrize("name", ["PFASUM60", "VTML200"])
def test_a_matrix_is_in_third_bits(name):
    # rounding, and other frequencies than the authors', move it a little: half bits would be 50 % off
    assert ungapped_lambda(name) / (math.log(2) / 3) == pytest.approx(1, abs=0.05)


@pytest.mark.peer
def test_pfasum60_is_that_of_scoring_matrices():
    theirs = pytest.importorskip("scoring_matrices").ScoringMatrix.from_name("PFASUM60")
    rows, ours = dict(zip(theirs.alphabet, theirs, strict=True)), load_matrix("PFASUM60")
    for a in CORE:
        for b in CORE:
            assert ours[a, b] == round(rows[a][theirs.alphabet.index(b)]), (a, b)


@pytest.mark.peer
def test_vtml200_is_that_of_ssearch36(tmp_path):
    if shutil.which("ssearch36") is None:
        pytest.skip("ssearch36 is not installed")
    matrix, flank = load_matrix("VTML200"), 10 * "W"  # no letter between these splits the alignment
    fasta = tmp_path / "letters.fasta"
    fasta.write_text("".join(f">{letter}\n{flank}{letter}{flank}\n" for letter in CORE))
    line = ["ssearch36", "-q", "-T", "1", "-z", "-1", "-s", "VT200", "-f", "-30", "-g", "-9", "-b", "20", "-d", "0"]
    printed = subprocess.run([*line, fasta, fasta], capture_output=True, text=True, check=True).stdout
    found, query = {}, ""
    for text in printed.splitlines():
        if begins := re.match(r"\s*\d+>>>(\w) ", text):
            query = begins[1]
        elif listed := re.match(r"(\w) .*\(\s*\d+\)\s+(\d+)$", text):
            found[query, listed[1]] = int(listed[2]) - 20 * matrix["W", "W"]
    assert found == {(a, b): matrix[a, b] for a in CORE for b in CORE}


@pytest.mark.parametrize("name", GAP_COSTS)
def test_a_matrix_has_gap_costs_of_its_own(name):
    scoring = Scoring(name)
    assert (scoring.matrix.name, scoring.gap_open, scoring.gap_extend) == (name, *GAP_COSTS[name])
    assert Scoring(load_matrix(name.lower())) == scoring
    assert (GAP_COSTS[name] in supported_gap_costs(name)) == (name in BLASTP_MATRICES)


def test_what_is_asked_for_goes_before_them():
    scoring = Scoring("BLOSUM50", 12)
    assert (scoring.gap_open, scoring.gap_extend) == (12, GAP_COSTS["BLOSUM50"][1])
    scoring = Scoring("BLOSUM50", gap_extend=0)
    assert (scoring.gap_open, scoring.gap_extend) == (GAP_COSTS["BLOSUM50"][0], 0)
    assert Scoring() == Scoring("BLOSUM62", 11, 1)


def test_gap_costs_of_other_matrices_are_blosum62s():
    for source in ("RAO", {(a, b): 5 if a == b else -4 for a in CORE for b in CORE}):
        scoring = Scoring(source)
        assert (scoring.gap_open, scoring.gap_extend) == (11, 1)


@pytest.mark.peer
@pytest.mark.parametrize("name", BLASTP_MATRICES)
def test_gap_costs_are_those_that_blastp_takes(name, tmp_path):
    if shutil.which("blastp") is None:
        pytest.skip("blastp is not installed")
    fasta = tmp_path / "one.fasta"
    fasta.write_text(f">one\n{LETTERS}\n")
    line = ["blastp", "-query", fasta, "-subject", fasta, "-matrix", name, "-outfmt", "5"]
    printed = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    taken = [int(re.search(rf"<Parameters_gap-{cost}>(\d+)<", printed)[1]) for cost in ("open", "extend")]
    assert tuple(taken) == GAP_COSTS[name]


def test_presets():
    assert tuple(PRESET_MATRICES) == (*PRESETS, "context")
    assert Scoring.of_preset("default") == Scoring()
    assert Scoring.of_preset("sensitive").matrix.name == "PFASUM60"
    assert Scoring.of_preset("short") == Scoring("PAM30", 9, 1)
    with pytest.raises(OptionError, match="preset: got 'fast', expected one of default, sensitive, short"):
        Scoring.of_preset("fast")


def test_a_preset_in_python():
    subjects = [("one", LETTERS), ("two", LETTERS[5:])]
    for preset in PRESETS:
        scoring = Scoring.of_preset(preset)
        expected = swsearch.score(LETTERS, subjects, scoring=scoring, engine="cpu").tolist()
        assert swsearch.score(LETTERS, subjects, preset=preset, engine="cpu").tolist() == expected
        assert swsearch.align(LETTERS, LETTERS[5:], preset=preset) == swsearch.align(
            LETTERS, LETTERS[5:], scoring=scoring
        )
        results = swsearch.search(LETTERS, subjects, preset=preset, statistics="none", engine="cpu")
        assert [hit.score for hit in next(results).hits] == expected[0]


def test_a_preset_beside_a_scoring_is_one_too_many():
    message = "preset: got 'short', expected none together with scoring, which sets matrix and gap costs"
    for call in (swsearch.search, swsearch.score, swsearch.align):
        with pytest.raises(InputError, match=message):
            call("MKV", "MKV", scoring=Scoring(), preset="short")
        with pytest.raises(InputError, match="preset: got 'fast', expected one of default, sensitive, short"):
            call("MKV", "MKV", preset="fast")


SENSITIVE = GAP_COSTS["PFASUM60"]

CHOSEN = {
    "": ("BLOSUM62", 11, 1),
    "--preset default": ("BLOSUM62", 11, 1),
    "--preset sensitive": ("PFASUM60", *SENSITIVE),
    "--preset short": ("PAM30", 9, 1),
    "--preset sensitive --gap-open 20": ("PFASUM60", 20, SENSITIVE[1]),
    "--gap-extend 3 --preset sensitive": ("PFASUM60", SENSITIVE[0], 3),
    "--preset sensitive --matrix BLOSUM62": ("BLOSUM62", 11, 1),
    "--matrix BLOSUM50": ("BLOSUM50", 13, 2),
    "--preset short --matrix vtml200 --gap-extend 4": ("VTML200", GAP_COSTS["VTML200"][0], 4),
    "--matrix RAO": ("RAO", 11, 1),
}
"""Options, and the matrix and gap costs that they mean."""


@pytest.fixture(scope="module")
def fasta(tmp_path_factory):
    path = tmp_path_factory.mktemp("presets") / "some.fasta"
    path.write_text(f">one\n{LETTERS}\n>two\n{LETTERS[5:]}\n")
    return path


@pytest.mark.parametrize("options", CHOSEN)
def test_what_options_mean_together(options, fasta):
    words = options.split()
    done = run("search", fasta, fasta, "--engine", "cpu", "--statistics", "none", "--outfmt", "jsonl", "-q", *words)
    shown = json.loads(done.stdout.splitlines()[0])["parameters"]
    assert (shown["matrix"], shown["gap_open"], shown["gap_extend"]) == CHOSEN[options]


def test_they_mean_the_same_to_align():
    for options in ("--preset sensitive", "--preset short --matrix vtml200 --gap-extend 4"):
        shown = json.loads(run("align", LETTERS, LETTERS, "--outfmt", "jsonl", *options.split()).stdout)
        assert (shown["matrix"], shown["gap_open"], shown["gap_extend"]) == CHOSEN[options]


def test_presets_that_cannot_be(fasta):
    fails(run("search", fasta, fasta, "--preset", "fast"), 1, "--preset", "'fast'", "sensitive")
    fails(run("align", "ACGT", "ACGT", "--alphabet", "dna", "--preset", "short"), 1, "--preset short is for protein")
    fails(
        run("search", fasta, fasta, "--preset", "sensitive", "--statistics", "published"),
        1,
        "no statistics are published for matrix PFASUM60, only for BLOSUM45",
    )


def test_dna_has_gap_costs_of_its_own():
    for options in ([], ["--matrix", "NUC.4.4"]):
        done = run("align", "ACGT", "ACGA", "--alphabet", "dna", "--outfmt", "jsonl", "-q", *options)
        shown = json.loads(done.stdout)
        assert (shown["gap_open"], shown["gap_extend"]) == (10, 1)
