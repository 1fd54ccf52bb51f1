"""Profiles of single sequences: pseudo-counts that depend on the neighbouring residues.

A library of contexts, windows of 13 columns of alignments, says which residues stand in place of a residue with such
neighbours (A. Biegert and J. Soeding, PNAS 106:3770, 2009). ``python -m benchmarks.training.contexts`` trains it, and
``benchmarks/training/columns.py`` says on what.

Weights of contexts, their exponentials and frequencies are whole numbers, and all sums are exact, in any order.
Divisions, logarithms and roundings follow, each with one result, so that a profile is the same on every machine.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources

import numpy as np
import numpy.typing as npt

from swsearch import extension
from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import FloatArray
from swsearch.errors import InputError, OptionError
from swsearch.profiles.calibration import BACKGROUND, N_AMINO_ACIDS, lambda_of, letter_scores
from swsearch.profiles.profile import Profile
from swsearch.scoring import Scoring
from swsearch.statistics import portable_math

REACH = 6
"""Columns of a window on either side of its centre."""

WIDTH = 2 * REACH + 1

VERSION = 1
"""Of the format of the library."""

_UNITS = 16
"""Units of a weight in a nat."""

_EMISSION_UNITS = 32
"""Units of the logarithm of a frequency in a nat."""

_LEAST = 10
"""Nats by which a context may be less probable than the best one of a position, to be counted."""

_ONE = float(2**20)
"""Whole number that stands for 1 in exponentials and frequencies: sums of products of 2**13 contexts are exact."""

LARGEST = 900
"""Largest score of a context, in units: times `SHARE_UNITS`, with some that round up, it fits 16 bits."""

SHARE_UNITS = 32
"""Parts of a column that holds one residue alone: ``kShareUnits`` of ``cpu/profiles/contexts.hpp``."""


@dataclass(frozen=True)
class ContextSettings:
    """Parameters of the profile of a single sequence, chosen on one half of SCOPe's superfamilies.

    `benchmarks/results/contexts_choice.txt` has that half, `benchmarks/results/contexts.txt` the other.

    Parameters
    ----------
    residue : float
        Share of the query's own residue in the frequencies of a position, beside what the contexts say of it.
    scale : float
        Scores are so many times those of the matrix's units: contexts expect distant relatives, whose odds are small.
    composition : float
        Share of the profile's own composition in the background of scores. With less, proteins of a similar
        composition score too high: with 0.75 and a scale of 1.35, transmembrane proteins had three times as many
        chance hits, for 0.4 points more found in SCOPe.

    Raises
    ------
    OptionError
        If a value is out of range.
    """

    residue: float = 0.0
    scale: float = 1.4
    composition: float = 1.0

    def __post_init__(self) -> None:
        for name in ("residue", "composition"):
            if not 0 <= getattr(self, name) <= 1:
                raise OptionError(name, getattr(self, name), "a share from 0 to 1")
        if not 0 < self.scale <= 10:
            raise OptionError("scale", self.scale, "a number above 0, 10 at most")


DEFAULT_SETTINGS = ContextSettings()
"""Settings of the library of the package."""


@dataclass(frozen=True, eq=False)
class ContextLibrary:
    """Contexts, as they are stored.

    Parameters
    ----------
    weights : ndarray, shape (13, 20, K), int8
        Logarithm of how much a residue in a column of the window speaks for each context, in sixteenths of a nat.
    bias : ndarray, shape (K,), int16
        That of each context without any residue, in the same units.
    emission : ndarray, shape (K, 20), uint8
        Negative logarithm of the frequency of each amino acid in the centre, in 32nds of a nat.
    """

    weights: npt.NDArray[np.int8]
    bias: npt.NDArray[np.int16]
    emission: npt.NDArray[np.uint8]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> ContextLibrary:
        """Read a library that `save` wrote."""
        with np.load(path, allow_pickle=False) as file:
            if int(file["version"]) != VERSION:
                raise InputError(f"{path}: got a library of version {int(file['version'])}, expected {VERSION}")
            read = cls(file["weights"], file["bias"], file["emission"])
        largest = np.abs(read.weights.astype(np.int64)).max(axis=1).sum(axis=0) + np.abs(read.bias)
        if largest.max() > LARGEST:
            raise InputError(f"{path}: got scores of up to {largest.max()} units, expected at most {LARGEST}")
        return read

    @classmethod
    def from_floats(cls, weights: FloatArray, bias: FloatArray, emission: FloatArray) -> ContextLibrary:
        """Round a library, in nats; a constant that all contexts share goes, and emission is normalised."""
        weights = weights - (weights.max(axis=2, keepdims=True) + weights.min(axis=2, keepdims=True)) / 2
        whole = np.clip(np.rint(weights * _UNITS), -127, 127).astype(np.int8)
        offset = np.clip(np.rint((bias - bias.max()) * _UNITS), -(2**14), 0).astype(np.int16)
        shares = np.exp(emission - emission.max(axis=1, keepdims=True))
        logs = -np.log(shares / shares.sum(axis=1, keepdims=True))
        return cls(whole, offset, np.clip(np.rint(logs * _EMISSION_UNITS), 0, 255).astype(np.uint8))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a compressed file."""
        np.savez_compressed(
            path, version=np.array(VERSION), weights=self.weights, bias=self.bias, emission=self.emission
        )

    @cached_property
    def frequencies(self) -> FloatArray:
        """Frequencies of the amino acids in the centres, shape (K, 20), float64: whole numbers, in parts of 2**20."""
        shares = portable_math.exp(-self.emission.astype(np.float64) / _EMISSION_UNITS)
        shares /= np.cumsum(shares, axis=1)[:, -1:]
        whole: FloatArray = np.floor(shares * _ONE + 0.5)
        return whole

    def predict(self, codes: ByteArray) -> FloatArray:
        """Return the frequencies of the amino acids that contexts expect, shape (n, 20); each row sums to 1."""
        shares = np.zeros((len(codes), N_AMINO_ACIDS), dtype=np.uint8)
        known = np.flatnonzero(codes < N_AMINO_ACIDS)
        shares[known, codes[known]] = SHARE_UNITS
        return self.predict_columns(shares)

    def predict_columns(self, shares: ByteArray) -> FloatArray:
        """Return what contexts expect in columns, shape (n, 20).

        Parameters
        ----------
        shares : ndarray, shape (n, 20), uint8
            Frequencies of the amino acids in each column, in parts of `SHARE_UNITS`; 0 where nothing is known.
        """
        expected = np.empty(shares.shape)
        library = self.weights, self.bias, self.frequencies, _exponentials()
        extension.load().predict_contexts(np.ascontiguousarray(shares), *library, expected)
        return expected / np.cumsum(expected, axis=1)[:, -1:]


@lru_cache(maxsize=1)
def _exponentials() -> FloatArray:
    """Return the exponentials of so many negative units, shape (257,), float64: whole numbers; the last is 0."""
    powers: FloatArray = np.floor(portable_math.exp(-np.arange(_LEAST * _UNITS + 1) / _UNITS) * _ONE + 0.5)
    powers[-1] = 0.0
    return powers


@lru_cache(maxsize=1)
def load_library() -> ContextLibrary:
    """Read the library of the package, once."""
    with resources.as_file(resources.files("swsearch.profiles") / "contexts.npz") as path:
        return ContextLibrary.read(path)


def background_of(frequencies: FloatArray, share: float) -> FloatArray:
    """Return the background of scores, shape (20,), with a share of the mean of a profile's frequencies."""
    composition: FloatArray = np.cumsum(frequencies, axis=0)[-1] / len(frequencies)
    return (1 - share) * BACKGROUND + share * composition


def context_profile(
    identifier: str,
    description: str,
    codes: ByteArray,
    scoring: Scoring,
    settings: ContextSettings = DEFAULT_SETTINGS,
    library: ContextLibrary | None = None,
) -> Profile:
    """Make a profile of a sequence alone.

    Parameters
    ----------
    identifier, description : str
        Of the query.
    codes : ndarray, shape (n,), uint8
        The query; letters that are no amino acid score as the matrix does.
    scoring : Scoring
        That of the search: its matrix gives the units, its gap costs become the profile's.
    settings : ContextSettings, optional
        How it is made.
    library : ContextLibrary, optional
        By default that of the package.

    Returns
    -------
    Profile
        The same scores on every machine.

    Raises
    ------
    InputError
        If the matrix is not one of proteins or has no lambda.
    """
    matrix = scoring.matrix
    if matrix.alphabet is not PROTEIN:
        raise InputError(f"profile {identifier}: made of proteins only, got matrix {matrix.name} of DNA")
    is_known = codes < N_AMINO_ACIDS
    frequencies = (load_library() if library is None else library).predict(codes)
    frequencies *= 1 - settings.residue
    frequencies[is_known, codes[is_known]] += settings.residue
    scores = matrix.scores[codes][:, : len(PROTEIN.letters)].astype(np.int8)
    if is_known.any():
        known = frequencies[is_known]
        background = background_of(known, settings.composition)
        scored = settings.scale * (portable_math.log(known / background) / lambda_of(matrix))
        scores[is_known] = letter_scores(scored, codes[is_known], matrix)
    return Profile(
        identifier,
        description,
        codes,
        scores,
        gap_open=scoring.gap_open,
        gap_extend=scoring.gap_extend,
        background=BACKGROUND,
        frequencies=frequencies,
        source=f"made of the query by contexts of its residues, {matrix.name}",
        lambda_=lambda_of(matrix),
        scale=settings.scale,
    )
