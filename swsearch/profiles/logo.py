"""What a profile's logo shows: how much each position says, in bits, and which amino acids say it."""

from __future__ import annotations

import numpy as np

from swsearch.blocks import FloatArray
from swsearch.profiles import units
from swsearch.profiles.profile import Profile

LEAST_BITS = 0.02
"""Lower letters cannot be seen."""

_USUAL_LAMBDA = 0.3176
"""Of BLOSUM62: what a unit is taken for where a profile does not say it."""


def frequencies_of(profile: Profile) -> FloatArray:
    """Return the frequencies of the amino acids in each position, shape (n, 20), from scores where there are none."""
    if profile.frequencies is not None:
        return profile.frequencies
    background = units.BACKGROUND if profile.background is None else profile.background
    unit = _USUAL_LAMBDA if profile.lambda_ is None else profile.lambda_
    weights = background * np.exp(unit * profile.scores[:, : units.N_AMINO_ACIDS].astype(np.float64))
    shares: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return shares


def logo_of(profile: Profile) -> list[tuple[str, list[float]]]:
    """Return the letters of each position, the highest first, and their heights in bits.

    A position is as high as its information, the relative entropy of its frequencies and the background; a letter has
    its share of it (T. D. Schneider and R. M. Stephens, Nucleic Acids Res. 18:6097, 1990).
    """
    frequencies = frequencies_of(profile)
    heights = frequencies * units.information(frequencies, profile.background)[:, None]
    order = np.argsort(-heights, axis=1, kind="stable")
    counts = (heights >= LEAST_BITS).sum(axis=1).tolist()
    rounded = np.round(np.take_along_axis(heights, order, axis=1), 2).tolist()
    letters = np.array(list(units.AMINO_ACIDS))[order]
    return [("".join(names[:n]), values[:n]) for names, values, n in zip(letters, rounded, counts, strict=True)]
