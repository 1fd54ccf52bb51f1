"""HMMER3's profile HMMs, read and written: match emissions against HMMER's background.

Reading drops insert emissions, the statistics, and gap costs by position unless they are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PROTEIN
from swsearch.blocks import FloatArray
from swsearch.errors import printable
from swsearch.profiles import calibration
from swsearch.profiles.calibration import calibrate, occupancy
from swsearch.profiles.formats import (
    MODEL_LETTERS,
    MODEL_PLACES,
    TRANSITIONS,
    display_letters,
    one_word,
    probabilities,
    transitions,
)
from swsearch.profiles.profile import Profile
from swsearch.profiles.text_lines import MAX_COLUMNS, TextFile
from swsearch.scoring import PositionGapCosts, Scoring
from swsearch.version import version

_HEAD = "HMMER3/"
"""Beginning of a model; a letter from a to f follows."""

_FREQUENCIES = {
    "A": 0.0787945, "C": 0.0151600, "D": 0.0535222, "E": 0.0668298, "F": 0.0397062, "G": 0.0695071, "H": 0.0229198,
    "I": 0.0590092, "K": 0.0594422, "L": 0.0963728, "M": 0.0237718, "N": 0.0414386, "P": 0.0482904, "Q": 0.0395639,
    "R": 0.0540978, "S": 0.0683364, "T": 0.0540687, "V": 0.0673417, "W": 0.0114135, "Y": 0.0304133,
}  # fmt: skip
"""HMMER's background: amino acids in Swiss-Prot 50.8 (the Easel library's esl_composition_SW50)."""

HMMER_BACKGROUND: FloatArray = np.array([_FREQUENCIES[letter] for letter in calibration.AMINO_ACIDS])

FORBIDDEN_GAP_COST = 100
"""Cost of a gap that a model forbids, in matrix units."""

_SOURCE = "HMMER's model in {} (match states; gap costs and insert states by position left out)"
_SOURCE_WITH_GAPS = "HMMER's model in {} (match states and gap costs by position; insert states left out)"


@dataclass
class _Model:
    """Values read from a model."""

    at: int
    name: str = ""
    description: str = ""
    length: int = -1
    has_consensus: bool = False
    order: list[int] = field(default_factory=list)
    letters: list[str] = field(default_factory=list)
    emissions: list[list[float]] = field(default_factory=list)
    transitions: list[list[float]] = field(default_factory=list)


def read_hmm(text: TextFile, scoring: Scoring, position_gaps: bool = False) -> list[Profile]:
    """Read models of HMMER3, formats 3/a to 3/f.

    Parameters
    ----------
    scoring : Scoring
        That of the search, in whose units the profile is to be.
    position_gaps : bool, optional
        Whether to take gap costs by position from the models' transitions.
    """
    profiles: list[Profile] = []
    k, lines = 0, text.lines
    while k < len(lines):
        if not lines[k].strip():
            k += 1
        elif lines[k].startswith(_HEAD):
            model, k = _read_head(text, k)
            k = _read_states(text, model, k)
            profiles.append(_profile(text, model, scoring, position_gaps))
        elif lines[k].startswith("HMMER2"):
            text.fail("a model of HMMER2, expected one of HMMER3; hmmconvert turns it into one", k)
        else:
            text.fail(f"expected '{_HEAD}' at the beginning of a model", k)
    if not profiles:
        text.fail(f"no model, expected '{_HEAD}' in the first line")
    return profiles


def _read_head(text: TextFile, k: int) -> tuple[_Model, int]:
    """Read up to the line of the letters; return the index of the line after it."""
    model = _Model(k)
    for at in range(k + 1, len(text.lines)):
        tag, _, value = text.lines[at].partition(" ")
        value = value.strip()
        if tag == "NAME":
            model.name = value
        elif tag == "DESC":
            model.description = value
        elif tag == "LENG":
            model.length = text.parse_integer(value, "length", at)
        elif tag == "ALPH" and value.lower() != "amino":
            text.fail(f"a model of {value or 'nothing'}, expected ALPH amino: proteins are searched", at)
        elif tag == "CONS":
            model.has_consensus = value.lower() == "yes"
        elif tag == "HMM":
            if not 0 < model.length <= MAX_COLUMNS:
                text.fail("no LENG above 0 before the states, expected their number", at)
            letters = value.split()
            if sorted(letters) != sorted(calibration.AMINO_ACIDS):
                text.fail("expected the 20 letters of the amino acids", at)
            model.order = [letters.index(letter) for letter in calibration.AMINO_ACIDS]
            return model, at + 2  # after the names of the transitions
        elif tag.startswith("//") or tag.startswith(_HEAD):
            text.fail("the model ends before its states, expected a line that begins with HMM", at)
    text.ends_early("the states of a model, after a line that begins with HMM")


def _read_states(text: TextFile, model: _Model, k: int) -> int:
    """Read emissions and transitions; return the index of the line after the model."""
    lines = text.lines
    if k < len(lines) and lines[k].split()[:1] == ["COMPO"]:
        k += 1
    k += 1  # insert state 0
    model.transitions.append(_numbers(text, k, 0, len(TRANSITIONS)))
    for number in range(1, model.length + 1):
        k += 1
        words = lines[k].split() if k < len(lines) else []
        if not words:
            text.ends_early(f"state {number} of {model.length}") if k >= len(lines) - 1 else text.fail(
                f"expected state {number} of {model.length}", k
            )
        if words[0] != str(number):
            text.fail(f"expected state {number} of {model.length}, which LENG says; it begins with its number", k)
        values = _numbers(text, k, 1, len(calibration.AMINO_ACIDS))
        model.emissions.append([values[place] for place in model.order])
        more = words[1 + len(calibration.AMINO_ACIDS) :]
        model.letters.append(more[1] if model.has_consensus and len(more) > 1 else "-")
        _numbers(text, k + 1, 0, len(calibration.AMINO_ACIDS))
        k += 2
        model.transitions.append(_numbers(text, k, 0, len(TRANSITIONS)))
    k += 1
    if k >= len(lines):
        text.ends_early("'//' at the end of a model")
    if lines[k].strip() != "//":
        if not lines[k].strip():
            text.ends_early("'//' at the end of a model")
        text.fail(f"expected '//' after the {model.length} states that LENG says", k)
    return k + 1


def _numbers(text: TextFile, at: int, skipped: int, n: int) -> list[float]:
    """Return negative logarithms of probabilities, infinite for ``*``."""
    if at >= len(text.lines):
        text.ends_early(f"{n} numbers of a state")
    words = text.lines[at].split()[skipped : skipped + n]
    if len(words) < n:
        if at >= len(text.lines) - 2:
            text.ends_early(f"{n} numbers of a state")
        text.fail(f"{len(words)} numbers of a state, expected {n}", at)
    values = [math.inf if word == "*" else text.parse_float(word, "negative logarithm", at) for word in words]
    if min(values) < 0:
        text.fail("a negative number, expected negative logarithms of probabilities, which are none", at)
    return values


def _profile(text: TextFile, model: _Model, scoring: Scoring, position_gaps: bool) -> Profile:
    emissions = np.array(model.emissions)
    if not np.isfinite(emissions).any(axis=1).all():
        text.fail("a state that emits nothing, expected a probability above 0", model.at, model.name)
    frequencies = np.exp(-emissions)
    frequencies /= frequencies.sum(axis=1, keepdims=True)
    scores = calibration.scores_of_frequencies(frequencies, HMMER_BACKGROUND, scoring.matrix)
    likely = (frequencies / HMMER_BACKGROUND).argmax(axis=1)
    letters = [
        letter.upper() if letter.upper() in PROTEIN.letters else calibration.AMINO_ACIDS[best]
        for letter, best in zip(model.letters, likely.tolist(), strict=True)
    ]
    codes = text.encode("".join(letters), model.at, model.name)
    gaps = _gaps(np.array(model.transitions), scoring) if position_gaps else None
    return Profile(
        model.name or "model", model.description, codes, calibration.letter_scores(scores, codes, scoring.matrix),
        gaps=gaps, background=HMMER_BACKGROUND, frequencies=frequencies,
        source=(_SOURCE_WITH_GAPS if position_gaps else _SOURCE).format(text.source),
        lambda_=calibration.lambda_of(scoring.matrix),
    )  # fmt: skip


def _gaps(transitions: FloatArray, scoring: Scoring) -> PositionGapCosts:
    """Turn negative logarithms of transitions, shape (n + 1, 7), into costs; who opens a gap pays for leaving it."""
    unit = calibration.lambda_of(scoring.matrix)
    to_insert, to_delete, from_insert, inserting, from_delete, deleting = transitions[:, 1:].T / unit

    def whole(costs: FloatArray) -> npt.NDArray[np.int16]:
        return np.clip(np.floor(np.minimum(costs, FORBIDDEN_GAP_COST) + 0.5), 0, FORBIDDEN_GAP_COST).astype(np.int16)

    deletion_extend = whole(np.concatenate([[np.inf], deleting[1:-1]])[: len(transitions) - 1])
    deletion_extend[0] = deletion_extend[1] if len(deletion_extend) > 1 else FORBIDDEN_GAP_COST
    insertion_extend = whole(inserting[1:])
    return PositionGapCosts(
        whole(to_delete[:-1] + from_delete[1:] - deletion_extend),
        deletion_extend,
        whole(to_insert[1:] + from_insert[1:] - insertion_extend),
        insertion_extend,
    )


_FREQUENT = 0.5
"""From this probability on, a letter of the consensus is upper case, as HMMER has it."""


def hmm_lines(profile: Profile) -> Iterator[str]:
    """Yield the lines of a profile as a calibrated model of HMMER3/f.

    Match states have the profile's odds against HMMER's background, insert states that background, and transitions
    follow from the gap costs. The consensus is the sequence that the profile is shown as.
    """
    emissions, moves = probabilities(profile, HMMER_BACKGROUND), transitions(profile)
    fitted = calibrate(emissions, moves, HMMER_BACKGROUND)
    yield f"HMMER3/f [swsearch {version()}]"
    yield f"NAME  {one_word(profile.identifier)}"
    if description := printable(profile.description).strip():
        yield f"DESC  {description}"
    yield f"LENG  {len(profile)}"
    yield from ("ALPH  amino", "RF    no", "MM    no", "CONS  yes", "CS    no", "MAP   no")
    if profile.alignment is not None:
        yield f"NSEQ  {len(profile.alignment)}"
    for name, location in (("MSV", fitted.msv), ("VITERBI", fitted.viterbi), ("FORWARD", fitted.forward)):
        yield f"STATS LOCAL {name:<8} {location:8.4f} {fitted.lambda_:8.5f}"
    yield "HMM     " + "".join(f"{letter:>5}    " for letter in MODEL_LETTERS)
    yield "        " + "".join(f"{name:>8} " for name in TRANSITIONS)
    used = occupancy(moves)
    inserted = (used * moves[1:, 1] / moves[1:, 3]).sum()
    composition = used @ emissions + inserted * HMMER_BACKGROUND
    background = " " * 8 + _logarithms(HMMER_BACKGROUND[MODEL_PLACES])
    yield "  COMPO " + _logarithms((composition / composition.sum())[MODEL_PLACES])
    yield background
    yield " " * 8 + _logarithms(moves[0])
    for k, letter in enumerate(display_letters(profile)):
        place = calibration.AMINO_ACIDS.find(letter)
        consensus_letter = letter if place >= 0 and emissions[k, place] >= _FREQUENT else letter.lower()
        yield f"{k + 1:>7} {_logarithms(emissions[k, MODEL_PLACES])}      - {consensus_letter} - - -"
        yield background
        yield " " * 8 + _logarithms(moves[k + 1])
    yield "//"


def _logarithms(values: FloatArray) -> str:
    """Return negative natural logarithms of probabilities, ``*`` for 0."""
    return " ".join(f"{-math.log(value) + 0.0:8.5f}" if value > 0 else f"{'*':>8}" for value in values.tolist())
