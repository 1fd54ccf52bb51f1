"""HH-suite's HMMs, read and written: match emissions against their background.

Files hold observed frequencies. Pseudo-counts come from the search's matrix, by the diversity of the sequences,
unless the model says that it has some. Reading drops gap costs by position, insert states, secondary structure and
the alignment.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

import numpy as np

from swsearch.blocks import FloatArray
from swsearch.errors import printable
from swsearch.profiles import calibration
from swsearch.profiles.construction import observations_of
from swsearch.profiles.formats import (
    MODEL_LETTERS,
    MODEL_PLACES,
    display_letters,
    one_word,
    probabilities,
    transitions,
)
from swsearch.profiles.profile import Profile
from swsearch.profiles.query_alignment import QueryAlignment
from swsearch.profiles.sequence_weights import mix_by_diversity
from swsearch.profiles.text_lines import MAX_COLUMNS, TextFile
from swsearch.scoring import Scoring

_HEAD = "HHsearch "
"""First word of a model; its version follows."""

_SOURCE = "HH-suite's model in {} (match states; gap costs and structure left out, pseudo-counts of the matrix)"

_ORDER = [MODEL_LETTERS.index(letter) for letter in calibration.AMINO_ACIDS]

_HAS_PSEUDOCOUNTS = "PCT"
"""Begins a line of models whose probabilities have pseudo-counts already."""

_SCALE = 1000
"""Numbers are thousandths: of negative logarithms to base 2, and of the effective numbers of sequences."""


def read_hhm(text: TextFile, scoring: Scoring) -> list[Profile]:
    """Read models of HH-suite, one or several."""
    profiles: list[Profile] = []
    k = 0
    while k < len(text.lines):
        if not text.lines[k].strip():
            k += 1
        elif text.lines[k].startswith(_HEAD):
            profile, k = _read_model(text, k, scoring)
            profiles.append(profile)
        else:
            text.fail(f"expected '{_HEAD.strip()}' at the beginning of a model", k)
    if not profiles:
        text.fail(f"no model, expected '{_HEAD.strip()}' in the first line")
    return profiles


def _read_model(text: TextFile, begin: int, scoring: Scoring) -> tuple[Profile, int]:
    """Read a model; return the index of the line after it."""
    name, length, background, is_mixed, k = _read_head(text, begin)
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
        diversity.append(text.parse_float(more[7], "effective number of sequences", k) / _SCALE)
    if len(table) != length:
        text.fail(f"{len(table)} states, expected {length} as LENG says", k, name)
    codes = text.encode("".join(letters), begin, name)
    observed = np.array(table)
    if not (observed.sum(axis=1) > 0).all():
        text.fail("a state that emits nothing, expected a probability above 0", begin, name)
    observed /= observed.sum(axis=1, keepdims=True)
    frequencies = observed if is_mixed else mix_by_diversity(observed, np.maximum(diversity, 1.0), scoring.matrix)
    scores = calibration.scores_of_frequencies(frequencies, background, scoring.matrix)
    identifier, _, description = name.partition(" ")
    profile = Profile(
        identifier or "model", description, codes, calibration.letter_scores(scores, codes, scoring.matrix),
        background=background, frequencies=frequencies, source=_SOURCE.format(text.source),
        lambda_=calibration.lambda_of(scoring.matrix),
    )  # fmt: skip
    return profile, k + 1


def _read_head(text: TextFile, begin: int) -> tuple[str, int, FloatArray, bool, int]:
    """Return name, length, background, whether it has pseudo-counts, and the index of the line before the states."""
    name, length, is_mixed = "", 0, False
    background: FloatArray | None = None
    states = False
    for k in range(begin + 1, len(text.lines)):
        line = text.lines[k]
        words = line.split()
        if line.startswith("NAME"):
            name = line[4:].strip()
        elif line.startswith("LENG"):
            length = text.parse_integer(words[1] if len(words) > 1 else "", "number of states", k)
        elif line.startswith(_HAS_PSEUDOCOUNTS):
            is_mixed = True
        elif line.startswith("NULL"):
            background = _probabilities(text, k, words[1:21])
        elif line.startswith("HMM ") and words[1:] == list(MODEL_LETTERS):
            states = True
        elif states and words and words[0] == "M->M":
            if background is None or not (background > 0).all() or not 0 < length <= MAX_COLUMNS:
                text.fail("no LENG above 0 or no NULL before the states, expected both", k, name)
            return name, length, background / background.sum(), is_mixed, k + 1  # the begin state's transitions
        elif line.startswith("//"):
            text.fail("the model ends before its states, expected a line that begins with HMM", k, name)
    text.ends_early("the states of a model, after lines that begin with NULL and HMM")


def _probabilities(text: TextFile, at: int, words: list[str]) -> FloatArray:
    """Return 20 probabilities in the order of the codes; ``*`` is 0."""
    if len(words) != len(MODEL_LETTERS):
        if at >= len(text.lines) - 2:
            text.ends_early(f"{len(MODEL_LETTERS)} numbers")
        text.fail(f"{len(words)} numbers, expected {len(MODEL_LETTERS)}", at)
    logs = [
        np.inf if word == "*" else text.parse_integer(word, "thousandth of a logarithm", at) / _SCALE
        for word in words
    ]
    if min(logs) < 0:
        text.fail("a negative number, expected negative logarithms of probabilities, which are none", at)
    probabilities: FloatArray = np.exp2(-np.array(logs))[_ORDER]
    return probabilities


_BLOCK = 25
"""Positions to each side over which the effective number of sequences is a mean."""

_UPPER, _LOWER = 0.6, 0.4
"""From these probabilities on, the consensus has a letter in upper or in lower case."""


def hhm_lines(profile: Profile) -> Iterator[str]:
    """Yield the lines of a profile as a model of HH-suite.

    Match states have the frequencies that the alignment shows, without pseudo-counts, as hhmake writes them; those of
    a profile without an alignment have pseudo-counts, and the model says so. The null model is the profile's
    background. Transitions follow from the gap costs; HH-suite mixes them with its own by the effective number of
    sequences. The consensus and the sequence that the profile is shown as stand at the head.
    """
    background = calibration.BACKGROUND if profile.background is None else profile.background
    emissions, n_finished, n_rows = probabilities(profile, background), 1, 1
    if profile.alignment is not None:
        emissions, n_finished = _observed(profile.alignment)
        n_rows = len(profile.alignment)
    moves, diversity, n = transitions(profile), _diversity(emissions), len(profile)
    emissions[~emissions.any(axis=1)] = background
    letters = display_letters(profile)
    head = f"{one_word(profile.identifier)} {printable(profile.description)}".strip()
    yield from ("HHsearch 1.5", f"NAME  {head}", "FAM   ")
    yield from (f"LENG  {n} match states, {n} columns in multiple alignment", "")
    yield from (f"FILT  {n_finished} out of {n_rows} sequences passed filter", f"NEFF  {diversity.mean():.1f}")
    if profile.alignment is None:
        yield f"{_HAS_PSEUDOCOUNTS}   true"
    yield from ("SEQ", ">Consensus", *wrap(_consensus(emissions), 100), f">{head}", *wrap(letters, 100), "#")
    yield f"NULL   {_thousandths(background[MODEL_PLACES])}"
    yield "HMM    " + "".join(f"{letter}\t" for letter in MODEL_LETTERS)
    yield "       M->M\tM->I\tM->D\tI->M\tI->I\tD->M\tD->D\tNeff\tNeff_I\tNeff_D"
    yield f"       {_thousandths(moves[0])}*\t*\t*\t"
    for k, letter in enumerate(letters):
        yield f"{letter} {k + 1:<4} {_thousandths(emissions[k, MODEL_PLACES])}{k + 1}"
        yield f"       {_thousandths(moves[k + 1])}" + f"{round(_SCALE * diversity[k])}\t" * 3
        yield ""
    yield "//"


def _observed(alignment: QueryAlignment) -> tuple[FloatArray, int]:
    """Return the frequencies of residues, shape (n, 20), 0 where none is known, and the number of sequences used."""
    observed, n_others = observations_of(alignment)
    sums = observed.frequencies.sum(axis=1, keepdims=True)
    return observed.frequencies / np.where(sums > 0, sums, 1.0), n_others + 1


def _diversity(frequencies: FloatArray) -> FloatArray:
    """Return the effective number of sequences by position, shape (n,): 2 to the mean entropy around it."""
    logs = np.log2(np.maximum(frequencies, 1e-300))
    sums = np.concatenate([[0.0], np.cumsum(-(frequencies * logs).sum(axis=1))])
    places = np.arange(len(frequencies))
    begins, ends = np.maximum(places - _BLOCK, 0), np.minimum(places + _BLOCK + 1, len(frequencies))
    diversity: FloatArray = np.exp2((sums[ends] - sums[begins]) / (ends - begins))
    return diversity


def _consensus(emissions: FloatArray) -> str:
    """Return the likeliest letters, in lower case or x where they are less likely."""
    best = zip(emissions.argmax(axis=1).tolist(), emissions.max(axis=1).tolist(), strict=True)
    letters = ((calibration.AMINO_ACIDS[place], share) for place, share in best)
    return "".join(one if share >= _UPPER else one.lower() if share >= _LOWER else "x" for one, share in letters)


def _thousandths(values: FloatArray) -> str:
    """Return negative logarithms to base 2 of probabilities, each with a tab, ``*`` for 0."""
    with np.errstate(divide="ignore"):
        logs = (-_SCALE * np.log2(values)).tolist()
    return "".join("*\t" if log == np.inf else f"{round(log)}\t" for log in logs)
