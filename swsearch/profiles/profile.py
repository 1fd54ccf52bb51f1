"""Profile: a query with scores by position and letter."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import N_CODES, PROTEIN, ByteArray
from swsearch.blocks import MASK_CODE, FloatArray
from swsearch.errors import InputError
from swsearch.scoring import PADDING_SCORE, PositionGapCosts, QueryProfile, Scoring

if TYPE_CHECKING:
    from swsearch.profiles.query_alignment import QueryAlignment

PROFILE_LETTERS = len(PROTEIN.letters)
"""Letters that a profile has scores for, in the order of the codes; the first 20 are the amino acids."""


@dataclass(frozen=True, eq=False)
class Profile:
    """Scores by position and letter, with their source.

    Parameters
    ----------
    identifier, description : str
        As of a sequence.
    codes : ndarray, shape (n,), uint8
        The sequence that it is shown as: the query that it grew from, or the consensus.
    scores : ndarray, shape (n, 27), int8
        Score of each position with each letter of `swsearch.alphabet.PROTEIN`, in the units of the matrix that the
        search takes: -127 to 127.
    gap_open, gap_extend : int or None
        Gap costs that the scores go with; None where whatever the search has will do.
    gaps : PositionGapCosts or None
        Gap costs by position, in place of these.
    background : ndarray, shape (20,), float64, or None
        Frequencies of the amino acids that the scores compare with.
    frequencies : ndarray, shape (n, 20), float64, or None
        Of the amino acids in each position, pseudo-counts included.
    source : str
        Where it comes from, such as ``PSI-BLAST's matrix in p53.pssm``, for reports.
    alignment : QueryAlignment or None
        What it was made from, to which an iterated search adds.
    iteration : int
        Searches whose hits are in it; 0 where it was read.
    lambda_ : float or None
        Nats per unit of the scores, by which a search knows whether they are in the units of its matrix; None where
        that is not known, and taken for granted.
    scale : float
        By how much the scores are larger than in such units; see `swsearch.profiles.construction.ProfileSettings`.
        Published statistics hold for 1 alone.

    Raises
    ------
    InputError
        If an array has another shape or an entry is beyond what engines hold.

    Examples
    --------
    >>> profile = swsearch.Profile.read("family.a3m")  # doctest: +SKIP
    >>> results = swsearch.search(profile, "uniprot.h5")  # doctest: +SKIP
    >>> profile.save("family.hmm")  # doctest: +SKIP
    """

    identifier: str
    description: str
    codes: ByteArray
    scores: npt.NDArray[np.int8] = field(repr=False)
    gap_open: int | None = None
    gap_extend: int | None = None
    gaps: PositionGapCosts | None = field(default=None, repr=False)
    background: FloatArray | None = field(default=None, repr=False)
    frequencies: FloatArray | None = field(default=None, repr=False)
    source: str = ""
    alignment: QueryAlignment | None = field(default=None, repr=False)
    iteration: int = 0
    lambda_: float | None = None
    scale: float = 1.0

    def __post_init__(self) -> None:
        n, scores = len(self.codes), np.asarray(self.scores)
        if scores.shape != (n, PROFILE_LETTERS):
            raise InputError(
                f"profile {self.identifier}: got scores of shape {scores.shape}, expected {n, PROFILE_LETTERS}"
            )
        if n and not -127 <= int(scores.min()) <= int(scores.max()) <= 127:
            raise InputError(f"profile {self.identifier}: scores must be from -127 to 127, in whole numbers")
        if self.gaps is not None and len(self.gaps) != n:
            raise InputError(f"profile {self.identifier}: got {len(self.gaps)} gap costs, expected {n}")
        object.__setattr__(self, "scores", np.ascontiguousarray(scores, dtype=np.int8))

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def read(cls, path: str | os.PathLike[str], format: str = "auto", scoring: Scoring | None = None) -> Profile:
        """Read the profile of a file, or make it of the alignment in it.

        Parameters
        ----------
        path : path
            Plain or compressed; ``-`` is stdin.
        format : str, optional
            ``a3m``, ``fasta-aligned``, ``stockholm``, ``clustal``, ``pssm`` (NCBI's ASCII), ``asn`` (ASN.1 text:
            ``.asn``, ``.smp``), ``hmm`` (HMMER3), ``hhm`` (HH-suite) or ``json`` (as `save` writes it); by default
            what its content says.
        scoring : Scoring, optional
            That of the search, in whose units the scores are to be; BLOSUM62 with its gap costs by default.

        Returns
        -------
        Profile

        Raises
        ------
        InputError
            If it cannot be read, or holds several.
        """
        reading = _reading()
        profile: Profile = reading.single(reading.read_profiles(path, format, scoring), str(path), "profiles")
        return profile

    @classmethod
    def from_alignment(
        cls, alignment: QueryAlignment | str | os.PathLike[str], scoring: Scoring | None = None
    ) -> Profile:
        """Make a profile of an alignment, whose first sequence is the query.

        Parameters
        ----------
        alignment : QueryAlignment or path
            Or a file in a format of alignments, as its content says.
        scoring : Scoring, optional
            As for `read`.

        Returns
        -------
        Profile

        Raises
        ------
        InputError
            If the file cannot be read, or holds several.
        """
        profile: Profile = _reading().profile_from(alignment, scoring)
        return profile

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save it in the format that the file's ending names.

        JSON keeps all, the alignment too, so that what is read again is equal, and goes on. Other programs' formats
        keep less, and have scores without `scale`.

        Parameters
        ----------
        path : path
            ``.json`` or ``.jsonl``, ``.asn``, ``.smp`` or ``.chk`` (PSI-BLAST's ASN.1 text), ``.pssm`` (its ASCII),
            ``.hmm`` (HMMER3) or ``.hhm`` (HH-suite); ``-`` is stdout, in JSON.

        Raises
        ------
        OutputError
            If the file cannot be written.
        InputError
            If the name has another ending, or a format cannot hold the profile.
        """
        import_module("swsearch.profiles.json_profile").save(self, path)

    def rows(self, scoring: Scoring, masked: npt.NDArray[np.bool_] | None = None) -> QueryProfile:
        """Return what engines take.

        Parameters
        ----------
        scoring : Scoring
            That of the search, whose scores of X masked positions have.
        masked : ndarray, shape (n,), bool, optional
            Positions that are masked.
        """
        table = np.full((len(self), N_CODES), PADDING_SCORE, dtype=np.int8)
        table[:, :PROFILE_LETTERS] = self.scores
        if masked is not None and masked.any():
            table[masked] = scoring.matrix.scores[MASK_CODE].astype(np.int8)
        return QueryProfile(table, self.codes, is_specific=True, gaps=self.gaps)


def _reading() -> Any:
    """Return what reads profiles. It makes them and so imports this module, which hence finds it by its name."""
    return import_module("swsearch.profiles.readers")
