"""A profile made of an alignment, in the steps of PSI-BLAST.

Near-identical sequences are left out (`purge`), the others weighted by position (`weights`), what a matrix expects is
added (`pseudocounts`), and scores are log-odds in the matrix's units, a little larger, so that its gap costs go with
them (S. F. Altschul et al., Nucleic Acids Res. 25:3389, 1997; A. A. Schaffer et al., 29:2994, 2001). A column that no
other sequence covers scores as the matrix does: an alignment of the query alone makes the plain search's scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsearch.alphabet import PROTEIN
from swsearch.blocks import FloatArray
from swsearch.errors import InputError, OptionError
from swsearch.profiles.alignment import GAP, QueryAlignment
from swsearch.profiles.profile import Profile
from swsearch.profiles.pseudocounts import replacements, with_pseudocounts
from swsearch.profiles.purge import kept_rows
from swsearch.profiles.units import BACKGROUND, N_AMINO_ACIDS, lambda_of, letter_scores, scores_of_ratios
from swsearch.profiles.weights import ABSENT, UNKNOWN, Observed, cells_of, observe
from swsearch.scoring import Scoring
from swsearch.statistics import functions


@dataclass(frozen=True)
class Construction:
    """How a profile is made.

    Parameters
    ----------
    purge_identity : float
        Of sequences that share so many of their columns only one is kept; above 1 only copies of the query go.
    least_block, most_block : int
        Least and largest number of columns that sequences are weighted over.
    pseudocounts : float or None
        Of each column; None lets them follow from its entropy.
    gaps_as_background : bool
        Whether a gap counts as the background's frequencies, as in PSI-BLAST, or as nothing.
    scale : float
        Scores are so many times those of the matrix's units, where there are other sequences: a profile's scores are
        flatter than a matrix's, and gaps would be too dear for them. Of BLOSUM62 11/1, in SCOPe, 1.15 finds half a
        percentage point more than 1 (benchmarks/tried/construction.py).
    longest_gap : int or None
        Columns of the longest gap that is one; a sequence does not count where it has longer ones, of 10 columns or
        more in psiblast. None is any, which finds as much in SCOPe.

    Raises
    ------
    OptionError
        If a value is out of range.
    """

    purge_identity: float = 0.94
    least_block: int = 25
    most_block: int = 100
    pseudocounts: float | None = None
    gaps_as_background: bool = True
    scale: float = 1.15
    longest_gap: int | None = None

    def __post_init__(self) -> None:
        if not self.purge_identity > 0:
            raise OptionError("purge_identity", self.purge_identity, "a share above 0")
        if not 1 <= self.least_block <= self.most_block:
            raise OptionError("least_block", self.least_block, f"a number from 1 to most_block, {self.most_block}")
        if self.pseudocounts is not None and not 0 < self.pseudocounts < float("inf"):
            raise OptionError("pseudocounts", self.pseudocounts, "a number above 0, or None")
        if self.longest_gap is not None and not self.longest_gap >= 0:
            raise OptionError("longest_gap", self.longest_gap, "a number of columns, or None")
        if not 0 < self.scale <= 10:
            raise OptionError("scale", self.scale, "a number above 0, 10 at most")


USUAL = Construction()
"""How a search makes its profiles."""

UNSCALED = Construction(scale=1.0)
"""How it makes them for published statistics, whose constants are of scores in the matrix's own units."""


def build_profile(alignment: QueryAlignment, scoring: Scoring, settings: Construction = USUAL) -> Profile:
    """Make a profile of an alignment.

    Parameters
    ----------
    alignment : QueryAlignment
        The query and what is aligned with it, in any order but that the query is first.
    scoring : Scoring
        That of the search: its matrix gives the units and the pseudo-counts, its gap costs become the profile's.
    settings : Construction, optional
        How it is made.

    Returns
    -------
    Profile
        Shown as the query, which it has the identifier of. The same alignment, in any order, gives the same scores
        on every machine.

    Raises
    ------
    InputError
        If the matrix is not one of proteins or has no lambda, or the query has gaps.
    """
    matrix, codes = scoring.matrix, alignment.query
    if matrix.alphabet is not PROTEIN:
        raise InputError(
            f"profile {alignment.identifiers[0]}: made of proteins only, got matrix {matrix.name} of DNA"
        )
    if (codes >= len(PROTEIN.letters)).any():
        column = int((codes == GAP).argmax())
        raise InputError(
            f"profile {alignment.identifiers[0]}: the query has a gap in column {column + 1}, expected none"
        )
    observed, n = observations_of(alignment, settings)
    is_aligned = (observed.n_rows > 1) & (observed.frequencies > 0).any(axis=1)
    frequencies = np.empty((len(codes), N_AMINO_ACIDS))
    opposite = replacements(matrix)
    scores = matrix.scores[codes][:, : len(PROTEIN.letters)].astype(np.int8)
    frequencies[~is_aligned] = _alone(opposite)[codes[~is_aligned]]
    mixed = with_pseudocounts(
        shares_of(observed, settings)[is_aligned], observed.observations[is_aligned], opposite, settings.pseudocounts
    )
    frequencies[is_aligned] = mixed
    scored = settings.scale * scores_of_ratios(functions.log(mixed / BACKGROUND), matrix)
    scores[is_aligned] = letter_scores(scored, codes[is_aligned], matrix)
    return Profile(
        alignment.identifiers[0],
        alignment.descriptions[0],
        codes,
        scores,
        gap_open=scoring.gap_open,
        gap_extend=scoring.gap_extend,
        background=BACKGROUND,
        frequencies=frequencies,
        source=f"made of the query and {n} aligned sequence{'' if n == 1 else 's'}, {matrix.name}",
        alignment=alignment,
        iteration=int(alignment.iterations.max()),
        lambda_=lambda_of(matrix),
        scale=settings.scale if is_aligned.any() else 1.0,
    )


def observations_of(alignment: QueryAlignment, settings: Construction = USUAL) -> tuple[Observed, int]:
    """Return what an alignment observes, frequencies of shape (n_columns, 20), and the number of other sequences.

    Copies are left out of both.
    """
    longest_gap = alignment.n_columns if settings.longest_gap is None else settings.longest_gap
    cells = cells_of(alignment.columns, longest_gap)
    cells = cells[kept_rows(cells, ABSENT, UNKNOWN, settings.purge_identity)]
    return observe(cells, settings.least_block, settings.most_block), len(cells) - 1


def shares_of(observed: Observed, settings: Construction = USUAL) -> FloatArray:
    """Return frequencies that sum to 1, shape (n_columns, 20).

    Letters that are no amino acid count as the background, gaps as settled.
    """
    spread = observed.unknown + observed.gaps if settings.gaps_as_background else observed.unknown
    found = observed.frequencies + spread[:, None] * BACKGROUND
    shares: FloatArray = found / np.maximum(np.cumsum(found, axis=1)[:, -1:], 1e-300)
    return shares


def _alone(opposite: FloatArray) -> FloatArray:
    """Return what is expected opposite each letter, shape (27, 20), of columns that only the query covers."""
    table = np.tile(BACKGROUND, (len(PROTEIN.letters), 1))
    table[:N_AMINO_ACIDS] = opposite
    return table
