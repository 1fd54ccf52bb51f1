"""HH-suite's HMMs: what their match states emit, against their own background.

They hold observed frequencies; pseudo-counts come from the search's matrix, by how different the sequences are. What
is lost: gap costs by position, insert states, secondary structure, and the alignment that they show.
"""

from __future__ import annotations

import numpy as np

from swsearch.blocks import FloatArray
from swsearch.profiles import units
from swsearch.profiles.profile import Profile
from swsearch.profiles.pseudocounts import by_diversity
from swsearch.profiles.texts import MOST_COLUMNS, Text
from swsearch.scoring import Scoring

_HEAD = "HHsearch "
"""How a model begins; its version follows."""

_SOURCE = "HH-suite's model in {} (match states; gap costs and structure left out, pseudo-counts of the matrix)"

_LETTERS = "ACDEFGHIKLMNPQRSTVWY"
_ORDER = [_LETTERS.index(letter) for letter in units.AMINO_ACIDS]
_SCALE = 1000
"""Numbers are thousandths: of negative logarithms to base 2, and of the effective numbers of sequences."""


def read_hhm(text: Text, scoring: Scoring) -> list[Profile]:
    """Read models of HH-suite, one or several.

    Raises
    ------
    SequenceError
        If there are none, or one is damaged.
    """
    found: list[Profile] = []
    k = 0
    while k < len(text.lines):
        if not text.lines[k].strip():
            k += 1
        elif text.lines[k].startswith(_HEAD):
            profile, k = _read_model(text, k, scoring)
            found.append(profile)
        else:
            text.fail(f"expected '{_HEAD.strip()}' at the beginning of a model", k)
    if not found:
        text.fail(f"no model, expected '{_HEAD.strip()}' in the first line")
    return found


def _read_model(text: Text, begin: int, scoring: Scoring) -> tuple[Profile, int]:
    """Read a model; return the index of the line after it."""
    name, length, background, k = _read_head(text, begin)
    letters: list[str] = []
    table: list[FloatArray] = []
    diversity: list[float] = []
    while True:
        k += 1
        if k >= len(text.lines):
            text.ends_early("'//' at the end of a model")
        words = text.lines[k].split()
        if not words:
            continue
        if words[0] == "//":
            break
        if len(words) < 2 or len(words[0]) != 1 or words[1] != str(len(table) + 1):
            text.fail(f"expected a letter and {len(table) + 1}, the number of the next state", k)
        letters.append(words[0])
        table.append(_probabilities(text, k, words[2:22]))
        k += 1
        more = text.lines[k].split() if k < len(text.lines) else []
        if len(more) < 8:
            text.ends_early("10 numbers of a state") if k >= len(text.lines) - 2 else text.fail(
                f"{len(more)} numbers of a state, expected 10", k
            )
        diversity.append(text.real(more[7], "effective number of sequences", k) / _SCALE)
    if len(table) != length:
        text.fail(f"{len(table)} states, expected {length} as LENG says", k, name)
    codes = text.encoded("".join(letters), begin, name)
    observed = np.array(table)
    if not (observed.sum(axis=1) > 0).all():
        text.fail("a state that emits nothing, expected a probability above 0", begin, name)
    observed /= observed.sum(axis=1, keepdims=True)
    frequencies = by_diversity(observed, np.maximum(diversity, 1.0), scoring.matrix)
    scores = units.scores_of_frequencies(frequencies, background, scoring.matrix)
    identifier, _, description = name.partition(" ")
    profile = Profile(
        identifier or "model", description, codes, units.letter_scores(scores, codes, scoring.matrix),
        background=background, frequencies=frequencies, source=_SOURCE.format(text.source),
        lambda_=units.lambda_of(scoring.matrix),
    )  # fmt: skip
    return profile, k + 1


def _read_head(text: Text, begin: int) -> tuple[str, int, FloatArray, int]:
    """Return name, number of states, background and the index of the last line before the states."""
    name, length = "", 0
    background: FloatArray | None = None
    states = False
    for k in range(begin + 1, len(text.lines)):
        line = text.lines[k]
        words = line.split()
        if line.startswith("NAME"):
            name = line[4:].strip()
        elif line.startswith("LENG"):
            length = text.whole(words[1] if len(words) > 1 else "", "number of states", k)
        elif line.startswith("NULL"):
            background = _probabilities(text, k, words[1:21])
        elif line.startswith("HMM ") and words[1:] == list(_LETTERS):
            states = True
        elif states and words and words[0] == "M->M":
            if background is None or not (background > 0).all() or not 0 < length <= MOST_COLUMNS:
                text.fail("no LENG above 0 or no NULL before the states, expected both", k, name)
            return name, length, background / background.sum(), k + 1  # the begin state's transitions
        elif line.startswith("//"):
            text.fail("the model ends before its states, expected a line that begins with HMM", k, name)
    text.ends_early("the states of a model, after lines that begin with NULL and HMM")


def _probabilities(text: Text, at: int, words: list[str]) -> FloatArray:
    """Return 20 probabilities in the order of the codes; ``*`` is 0."""
    if len(words) != len(_LETTERS):
        if at >= len(text.lines) - 2:
            text.ends_early(f"{len(_LETTERS)} numbers")
        text.fail(f"{len(words)} numbers, expected {len(_LETTERS)}", at)
    logs = [np.inf if word == "*" else text.whole(word, "thousandth of a logarithm", at) / _SCALE for word in words]
    if min(logs) < 0:
        text.fail("a negative number, expected negative logarithms of probabilities, which are none", at)
    probabilities: FloatArray = np.exp2(-np.array(logs))[_ORDER]
    return probabilities
