"""Log-odds, probabilities and transitions of a profile, for the formats of other programs.

The scores of a profile are its log-odds times `Profile.scale`, so that they fit the matrix's gap costs. Other
programs expect the log-odds, or the probabilities behind them.
"""

from __future__ import annotations

import numpy as np

from swsearch.alphabet import PROTEIN
from swsearch.blocks import FloatArray
from swsearch.errors import InputError, printable
from swsearch.matrices import GAP_COSTS, OTHER_GAP_COSTS
from swsearch.profiles.profile import Profile
from swsearch.profiles.units import AMINO_ACIDS, N_AMINO_ACIDS, lambda_of
from swsearch.scoring import PositionGaps, load_matrix

TRANSITIONS = ("m->m", "m->i", "m->d", "i->m", "i->i", "d->m", "d->d")
"""Of a model of HMMER or HH-suite, in the order of both formats: match, insert and delete states."""

MODEL_LETTERS = "".join(sorted(AMINO_ACIDS))
"""The amino acids in the order of both formats."""

MODEL_PLACES = [AMINO_ACIDS.index(letter) for letter in MODEL_LETTERS]
"""Codes of these letters."""

_LEAST = 1e-9
"""Smallest probability of a letter: none is impossible."""

_MOST_EXTENSION = 0.99
"""Largest probability that a gap goes on, where going on costs nothing."""


def unit_of(profile: Profile) -> float:
    """Return the size of a unit of the profile's log-odds, nats.

    Raises
    ------
    InputError
        If the profile does not say.
    """
    if profile.lambda_ is None:
        raise InputError(
            f"profile {profile.identifier}: lambda_ is None, expected the nats of a unit of its scores; give it, or "
            "save the profile as .json"
        )
    return profile.lambda_


def log_ratios(profile: Profile) -> FloatArray:
    """Return the log-odds of the amino acids against the profile's background, nats, shape (n, 20)."""
    if profile.frequencies is not None and profile.background is not None:
        with np.errstate(divide="ignore"):
            ratios: FloatArray = np.log(profile.frequencies / profile.background)
        unseen = ~ratios.any(axis=1)  # letters such as B that only the query has: their scores are the matrix's
        ratios[unseen] = unit_of(profile) * profile.scores[unseen, :N_AMINO_ACIDS]
        return ratios
    return profile.scores[:, :N_AMINO_ACIDS].astype(np.float64) * (unit_of(profile) / profile.scale)


def probabilities(profile: Profile, background: FloatArray) -> FloatArray:
    """Return frequencies whose odds against another background, shape (20,), are the profile's; shape (n, 20)."""
    found = np.maximum(background * np.exp(log_ratios(profile)), _LEAST)
    found /= found.sum(axis=1, keepdims=True)
    return found


def matrix_name(profile: Profile) -> str | None:
    """Return the shipped matrix in whose units the profile is; None where there is none."""
    unit = unit_of(profile)
    return next((name for name in GAP_COSTS if np.isclose(lambda_of(load_matrix(name)), unit, rtol=1e-6)), None)


def gap_costs(profile: Profile) -> tuple[int, int]:
    """Return the costs to open and to extend a gap: the profile's, else those that its matrix has by default."""
    if profile.gap_open is not None and profile.gap_extend is not None:
        return profile.gap_open, profile.gap_extend
    return GAP_COSTS.get(matrix_name(profile) or "", OTHER_GAP_COSTS)


def transitions(profile: Profile) -> FloatArray:
    """Return the probabilities of `TRANSITIONS` after the begin and after each position, shape (n + 1, 7).

    A gap begins with the odds exp(-lambda (open + extend)) to a match, and goes on with probability
    exp(-lambda extend): of BLOSUM62 11/1, 0.021 and 0.73, where jackhmmer takes 0.02 and 0.4. Its end costs what
    normalization makes it cost. No gap begins before the first position, or after the last.
    """
    n, unit = len(profile), unit_of(profile)
    costs = profile.gaps or PositionGaps.uniform(n, *gap_costs(profile))
    found = np.tile([1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0], (n + 1, 1))
    insertion_extend, deletion_extend = costs.insertion_extend[:-1], costs.deletion_extend[1:]
    to_insert = np.exp(-unit * (costs.insertion_open[:-1] + insertion_extend))
    to_delete = np.exp(-unit * (costs.deletion_open[1:] + deletion_extend))
    begins = np.column_stack([np.ones(n - 1), to_insert, to_delete])
    inner = found[1:n]
    inner[:, :3] = begins / begins.sum(axis=1, keepdims=True)
    inner[:, 4] = np.minimum(np.exp(-unit * insertion_extend), _MOST_EXTENSION)
    inner[:, 6] = np.minimum(np.exp(-unit * deletion_extend), _MOST_EXTENSION)
    inner[:, 3], inner[:, 5] = 1 - inner[:, 4], 1 - inner[:, 6]
    return found


def one_word(text: str) -> str:
    """Return a name as formats take it in which a name ends at a blank."""
    return "_".join(printable(text).split()) or "profile"


def shown_letters(profile: Profile) -> str:
    """Return the sequence that a profile is shown as, with X for a stop."""
    return PROTEIN.decode(profile.codes).replace("*", "X")
