"""Gap costs that are fractions: aligned as if all were multiplied to whole numbers, and shown as they were given."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swsearch
from support import command_line
from swsearch import Scoring
from swsearch.errors import OptionError
from swsearch.options.kinds import MODES
from swsearch.scoring import dna_matrix, load_matrix

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"


def related(seed: int) -> tuple[str, str]:
    draw = random.Random(seed)
    core = "".join(draw.choice(AMINO_ACIDS) for _ in range(draw.randrange(10, 60)))

    def mutant() -> str:
        letters = (draw.choice([letter, letter, letter, letter + draw.choice(AMINO_ACIDS), ""]) for letter in core)
        return "".join(letters) or "A"

    return mutant(), mutant()


@pytest.mark.parametrize("mode", MODES)
def test_scores_are_those_of_whole_numbers_divided(mode: Any) -> None:
    matrix = load_matrix("BLOSUM62")
    doubled = Scoring({(a, b): 2 * matrix[a, b] for a in AMINO_ACIDS for b in AMINO_ACIDS}, 19, 1)
    halves = Scoring("BLOSUM62", 9.5, 0.5)
    assert (halves.scale, halves.gap_open, halves.gap_extend) == (2, 19, 1)
    assert halves.describe() == "BLOSUM62, gap open 9.5, gap extend 0.5"
    for engine in ("cpu", "reference"):
        for seed in range(4):
            a, b = ([each] for each in related(seed))
            found, whole = (
                swsearch.align(a, b, mode=mode, scoring=each, engine=engine) for each in (halves, doubled)
            )
            assert found.score == whole.score / 2
            assert np.array_equal(found.coordinates, whole.coordinates)
            assert swsearch.align(a, b, mode=mode, scoring=halves, engine=engine, score_only=True) == found.score
    scores = swsearch.align([a[0], b[0]], b, mode=mode, scoring=halves, pairs="all", score_only=True)
    assert (scores.dtype, scores[0, 0]) == (np.float64, found.score)


def test_whole_numbers_stay_what_they_are() -> None:
    for same in (Scoring("BLOSUM62", 11.0, 1.0), Scoring("BLOSUM62", np.float64(11), np.int8(1))):
        assert same == Scoring("BLOSUM62", 11, 1)
        assert (same.scale, same.matrix.published, type(same.gap_open)) == (1, True, int)
    assert swsearch.align("MKVWW", "MKVWW", scoring=Scoring("BLOSUM62", 11.0, 1.0), score_only=True) == 36
    assert Scoring(dna_matrix(), 10, 0.1).scale == 10
    assert Scoring("BLOSUM62", 0.2, 0.5).scale == 10


@pytest.mark.parametrize("cost", [-0.5, float("nan"), float("inf"), 1e5, "1", True, None])
def test_what_is_no_cost_is_refused(cost: Any) -> None:
    if cost is None:
        assert Scoring("BLOSUM62", None).gap_open == 11
        return
    with pytest.raises(OptionError, match=r"gap_open: got .*, expected a number"):
        Scoring("BLOSUM62", cost)


def test_fractions_that_scores_have_no_room_for_and_searches_are_refused() -> None:
    with pytest.raises(OptionError, match="expected fractions of 11 parts at most; scores of BLOSUM62"):
        Scoring("BLOSUM62", 0.333)
    halves = Scoring("BLOSUM62", 9.5, 0.5)
    for function in (swsearch.search, swsearch.score):
        with pytest.raises(OptionError, match=r"gap costs: got .9\.5/0\.5., expected whole numbers in a search"):
            function("MKV", "MKV", scoring=halves)


def test_formats_show_what_was_given(tmp_path: Path) -> None:
    a, b = "MKVLAAGIVGWWHHKDEF", "MKVLAAGWWHHKDEF"
    words = ["align", a, b, "--gap-open", "9.5", "--gap-extend", ".5", "--quiet", "--outfmt"]

    def text(outfmt: str) -> str:
        done = command_line.run(*words, outfmt)
        assert done.returncode == 0, done.stderr
        return done.stdout

    score = swsearch.align([a], [b], scoring=Scoring("BLOSUM62", 9.5, 0.5)).score
    assert score % 1 == 0.0 or score % 1 == 0.5
    assert text("score").split()[2] == text("cigar").split()[2] == str(score)
    record = json.loads(text("jsonl"))
    assert (record["score"], record["gap_open"], record["gap_extend"]) == (score, 9.5, 0.5)
    assert f"AS:f:{score}" in text("sam") and f"AS:f:{score}" in text("paf")
    shown = text("pairwise")
    assert f"# Score: {score:.1f}" in shown
    assert "# Gap_penalty: 10.0" in shown and "# Extend_penalty: 0.5" in shown  # as EMBOSS counts


@pytest.mark.peer
@pytest.mark.exhaustive
@pytest.mark.skipif(not shutil.which("needle"), reason="EMBOSS is not installed")
@pytest.mark.parametrize("program", ["water", "needle"])
def test_emboss_scores_the_same(program: str, tmp_path: Path) -> None:
    for seed in range(15):
        pair = related(seed)
        for name, letters in zip("ab", pair, strict=True):
            (tmp_path / name).write_text(f">{name}\n{letters}\n")
        words = [program, "-asequence", "a", "-bsequence", "b", "-gapopen", "10", "-gapextend", "0.5"]
        words += ["-datafile", "EBLOSUM62", "-stdout", "-auto"]
        words += ["-endweight", "Y", "-endopen", "10", "-endextend", "0.5"] if program == "needle" else []
        said = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
        found = re.search(r"# Score: ([\d.-]+)", said)
        assert found is not None
        mode: Any = "local" if program == "water" else "global"
        ours = swsearch.align([pair[0]], [pair[1]], mode=mode, scoring=Scoring("BLOSUM62", 9.5, 0.5), score_only=True)
        assert float(found[1]) == ours, pair
