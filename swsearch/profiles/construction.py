"""Construction of a profile from an alignment, in the steps of PSI-BLAST.

Near-identical sequences are removed, because a hundred strains are one observation of a family
(``cpu/profiles/purge.hpp``). The others are weighted by position (``cpu/profiles/weights.hpp``), and pseudo-counts
from a matrix added (`sequence_weights`). Scores are log-odds in the matrix's units, slightly scaled up to fit its gap
costs (S. F. Altschul et al., Nucleic Acids Res. 25:3389, 1997; A. A. Schaffer et al., 29:2994, 2001). A column that
no other sequence covers scores as the matrix does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from swsearch import extension
from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import FloatArray, IntArray
from swsearch.engines.cpu.columns import run_arguments
from swsearch.engines.pools import SequencePool
from swsearch.errors import InputError, OptionError
from swsearch.profiles.calibration import BACKGROUND, N_AMINO_ACIDS, lambda_of, letter_scores
from swsearch.profiles.contexts import DEFAULT_SETTINGS as CONTEXT_SETTINGS
from swsearch.profiles.contexts import SHARE_UNITS, background_of, context_profile, load_library
from swsearch.profiles.profile import Profile
from swsearch.profiles.query_alignment import GAP, QueryAlignment
from swsearch.profiles.sequence_weights import ColumnObservations, opposite, replacements, with_pseudocounts
from swsearch.scoring import Scoring
from swsearch.statistics import portable_math

CONTEXT_COUNTS = 0.5
"""Part of the matrix's pseudo-counts that contexts have: in SCOPe as much is found as with all of them, with fewer
errors of E <= 0.01, and close homologs score higher."""


@dataclass(frozen=True)
class ProfileSettings:
    """Parameters of the construction of a profile.

    Parameters
    ----------
    purge_identity : float
        Of sequences that share so many of their columns only one is kept; above 1 only copies of the query go.
    min_block_columns, max_block_columns : int
        Least and largest number of columns that sequences are weighted over.
    pseudocounts : float or None
        Of each column; None lets them follow from its entropy.
    gaps_as_background : bool
        Whether a gap counts as the background's frequencies, as in PSI-BLAST, or as nothing.
    scale : float
        Scores are so many times those of the matrix's units, where there are other sequences: a profile's scores are
        flatter than a matrix's, and gaps would be too dear for them. Of BLOSUM62 11/1, in SCOPe, 1.15 finds half a
        percentage point more than 1 (benchmarks/results/construction.txt).
    max_gap_length : int or None
        Columns of the longest gap that is one; a sequence does not count where it has longer ones, of 10 columns or
        more in psiblast. None is any, which finds as much in SCOPe.
    contexts : bool
        Whether pseudo-counts follow from the neighbouring columns (`swsearch.profiles.contexts`), and not from the
        matrix.

    Raises
    ------
    OptionError
        If a value is out of range.
    """

    purge_identity: float = 0.94
    min_block_columns: int = 25
    max_block_columns: int = 100
    pseudocounts: float | None = None
    gaps_as_background: bool = True
    scale: float = 1.15
    max_gap_length: int | None = None
    contexts: bool = False

    def __post_init__(self) -> None:
        if not self.purge_identity > 0:
            raise OptionError("purge_identity", self.purge_identity, "a share above 0")
        if not 1 <= self.min_block_columns <= self.max_block_columns:
            expected = f"a number from 1 to max_block_columns, {self.max_block_columns}"
            raise OptionError("min_block_columns", self.min_block_columns, expected)
        if self.pseudocounts is not None and not 0 < self.pseudocounts < float("inf"):
            raise OptionError("pseudocounts", self.pseudocounts, "a number above 0, or None")
        if self.max_gap_length is not None and not self.max_gap_length >= 0:
            raise OptionError("max_gap_length", self.max_gap_length, "a number of columns, or None")
        if not 0 < self.scale <= 10:
            raise OptionError("scale", self.scale, "a number above 0, 10 at most")


DEFAULT_SETTINGS = ProfileSettings()
"""Default settings of the profiles of a search."""

UNSCALED = ProfileSettings(scale=1.0)
"""Settings for published statistics, whose constants hold for scores in the matrix's own units."""


def build_profile(
    alignment: QueryAlignment, scoring: Scoring, settings: ProfileSettings = DEFAULT_SETTINGS
) -> Profile:
    """Make a profile of an alignment.

    Parameters
    ----------
    alignment : QueryAlignment
        The query and what is aligned with it, in any order but that the query is first.
    scoring : Scoring
        That of the search: its matrix gives the units and the pseudo-counts, its gap costs become the profile's.
    settings : ProfileSettings, optional
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
    normalized = normalize(observed, settings)[is_aligned]
    if settings.contexts:
        alone = context_profile(alignment.identifiers[0], "", codes, scoring)
        assert alone.frequencies is not None
        frequencies, scores = alone.frequencies, alone.scores
        expected = load_library().predict_columns(_shares(observed, codes, is_aligned))[is_aligned]
    else:
        replaced = replacements(matrix)
        scores = matrix.scores[codes][:, : len(PROTEIN.letters)].astype(np.int8)
        frequencies[~is_aligned] = _uncovered_frequencies(replaced)[codes[~is_aligned]]
        expected = opposite(normalized, replaced)
    part = CONTEXT_COUNTS if settings.contexts else 1
    mixed, share = with_pseudocounts(
        normalized, observed.observations[is_aligned], expected, settings.pseudocounts, part
    )
    frequencies[is_aligned] = mixed
    scales, background = np.full((len(mixed), 1), settings.scale), BACKGROUND
    if settings.contexts:
        scales += (CONTEXT_SETTINGS.scale - settings.scale) * share[:, None]
        background = background_of(frequencies, CONTEXT_SETTINGS.composition)
    scored = scales * (portable_math.log(mixed / background) / lambda_of(matrix))
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


def _shares(observed: ColumnObservations, codes: ByteArray, is_aligned: npt.NDArray[np.bool_]) -> ByteArray:
    """Return the residues of columns as contexts take them, shape (n, 20): the query's own where it is alone."""
    shares = np.zeros((len(codes), N_AMINO_ACIDS), dtype=np.uint8)
    alone = np.flatnonzero(~is_aligned & (codes < N_AMINO_ACIDS))
    shares[alone, codes[alone]] = SHARE_UNITS
    counts = observed.frequencies[is_aligned]
    shares[is_aligned] = np.floor(SHARE_UNITS * counts / np.cumsum(counts, axis=1)[:, -1:] + 0.5).astype(np.uint8)
    return shares


_UNKNOWN, _INNER_GAP, _KINDS = N_AMINO_ACIDS, N_AMINO_ACIDS + 1, N_AMINO_ACIDS + 2
"""Kinds of cells beside the amino acids: other letters, and gaps within a row's aligned part."""


def _kind_of_codes() -> ByteArray:
    """Return the kind of cell of each code, shape (256,), uint8; U is C."""
    kinds = np.full(256, _UNKNOWN, dtype=np.uint8)
    kinds[:N_AMINO_ACIDS] = np.arange(N_AMINO_ACIDS)
    kinds[PROTEIN.letters.index("U")] = PROTEIN.letters.index("C")
    kinds[GAP] = _INNER_GAP
    return kinds


_KIND_OF_CODES = _kind_of_codes()


def observations_of(
    alignment: QueryAlignment, settings: ProfileSettings = DEFAULT_SETTINGS
) -> tuple[ColumnObservations, int]:
    """Return the observations of an alignment, frequencies of shape (n_columns, 20), and the number of other rows.

    Copies are left out of both. The query has no gaps.
    """
    n = alignment.n_columns
    weights, observations, n_rows = np.empty((n, _KINDS)), np.empty(n), np.empty(n, dtype=np.int64)
    n_kept = extension.load().observe(
        np.ascontiguousarray(alignment.columns),
        len(alignment),
        _KIND_OF_CODES,
        BACKGROUND,
        settings.purge_identity,
        n if settings.max_gap_length is None else settings.max_gap_length,
        settings.min_block_columns,
        settings.max_block_columns,
        weights,
        observations,
        n_rows,
    )
    frequencies, unknown, gaps = weights[:, :N_AMINO_ACIDS], weights[:, _UNKNOWN], weights[:, _INNER_GAP]
    return ColumnObservations(frequencies, unknown, gaps, observations, n_rows), n_kept - 1


def normalize(observed: ColumnObservations, settings: ProfileSettings = DEFAULT_SETTINGS) -> FloatArray:
    """Return frequencies that sum to 1, shape (n_columns, 20).

    Letters that are no amino acid count as the background, gaps as settled.
    """
    spread = observed.unknown + observed.gaps if settings.gaps_as_background else observed.unknown
    frequencies = observed.frequencies + spread[:, None] * BACKGROUND
    return frequencies / np.maximum(np.cumsum(frequencies, axis=1)[:, -1:], 1e-300)


def _uncovered_frequencies(opposite: FloatArray) -> FloatArray:
    """Return the expected residues opposite each letter, shape (27, 20), for columns that only the query covers."""
    table = np.tile(BACKGROUND, (len(PROTEIN.letters), 1))
    table[:N_AMINO_ACIDS] = opposite
    return table


@dataclass(frozen=True, eq=False)
class AlignedSubjects:
    """The subjects of a query's alignments, and which of them each alignment is of.

    Parameters
    ----------
    identifiers, descriptions : sequence of str
        One per subject.
    pool : (ndarray, ndarray)
        Codes of the whole subjects as they are stored, not as a mask scores them, end to end, and their offsets.
    places : ndarray, shape (n_subjects,), int64
        In the database; -1 of what does not come from one.
    of_subject : ndarray, shape (n_alignments,), int64
        Which of the subjects each alignment is of, counted from 0.
    evalues : ndarray, shape (n_alignments,), float64
        Of each alignment; NaN where there is none.
    """

    identifiers: Sequence[str]
    descriptions: Sequence[str]
    pool: SequencePool
    places: IntArray
    of_subject: IntArray
    evalues: FloatArray

    def take(self, chosen: npt.NDArray[np.integer]) -> AlignedSubjects:
        """Return what is found with some of the alignments only, their places of shape (n,); subjects all stay."""
        return replace(self, of_subject=self.of_subject[chosen], evalues=self.evalues[chosen])


def build_alignment(
    query: QueryAlignment,
    subjects: AlignedSubjects,
    alignments: AlignmentTable,
    iteration: int = 1,
    earlier: QueryAlignment | None = None,
) -> QueryAlignment:
    """Add alignments with a query as rows below the existing ones.

    Residues that stand opposite a gap of the query are kept as insertions. A row is left out if the same part of the
    same subject is there already in the same columns, and if it pairs no residues.

    Parameters
    ----------
    query : QueryAlignment
        The query alone, or with sequences, which stay as they are.
    alignments : AlignmentTable
        Of the query's columns with these, in any order, which the rows keep.
    earlier : QueryAlignment, optional
        What the search before this was made with: a subject that is in it has its iteration.
    """
    places = subjects.places[subjects.of_subject]
    of_subject = subjects.of_subject.tolist()
    columns, spans, insertions, inserted = lay_out(alignments, subjects.pool, subjects.of_subject, query.n_columns)
    rows = QueryAlignment(
        [subjects.identifiers[row] for row in of_subject],
        [subjects.descriptions[row] for row in of_subject],
        columns,
        alignments.subject_start,
        alignments.subject_end,
        insertions,
        inserted,
        places,
        subjects.evalues,
        _first_found(places, iteration, earlier),
    )
    chosen = _find_new(query, rows, spans, np.where(places < 0, -1 - subjects.of_subject, places))
    return query.with_rows(rows if len(chosen) == len(rows) else rows.take(chosen))


def lay_out(
    alignments: AlignmentTable, pool: SequencePool, of_subject: IntArray, n_columns: int
) -> tuple[ByteArray, IntArray, IntArray, ByteArray]:
    """Lay subjects out in the columns of a query.

    Parameters
    ----------
    alignments : AlignmentTable
        m of them.
    of_subject : ndarray, shape (m,), int64
        The subject of each.
    n_columns : int
        Residues of the query.

    Returns
    -------
    columns : ndarray, shape (m, n_columns), uint8
    spans : ndarray, shape (m, 2), int64
        First column with a residue of each, and one past the last; 0 and 0 where there is none.
    insertions : ndarray, shape (n_insertions, 4), int64
    inserted : ndarray, shape (n_inserted,), uint8
        These three as `QueryAlignment` has them; sequences are counted from 0.
    """
    codes, offsets = pool
    m, operations = len(alignments), alignments.run_operations
    inserted = alignments.run_lengths[operations == ord("D")]
    laid_out = (
        np.empty((m, n_columns), dtype=np.uint8),
        np.empty((m, 2), dtype=np.int64),
        np.empty((len(inserted), 4), dtype=np.int64),
        np.empty(int(inserted.sum()), dtype=np.uint8),
    )
    runs = run_arguments(alignments, offsets[:-1][of_subject] + alignments.subject_start)
    extension.load().lay_out(runs, np.ascontiguousarray(codes), n_columns, *laid_out)
    return laid_out


def _find_new(query: QueryAlignment, rows: QueryAlignment, spans: IntArray, places: IntArray) -> IntArray:
    """Return which rows have residues in columns and are not there already; subjects of no database are < 0."""
    keys = np.column_stack([places, rows.starts, rows.ends, spans])
    above = np.empty((0, 5), dtype=np.int64)
    if len(query) > 1:
        above = np.stack([query.subjects, query.starts, query.ends, *query.spans], axis=1)
        above = above[query.subjects >= 0]
    everything = np.concatenate([above, keys])
    order = np.lexsort(everything.T)
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = (everything[order[1:]] != everything[order[:-1]]).any(axis=1)
    first = np.sort(order[is_first])
    new = first[first >= len(above)] - len(above)
    return new[(spans[:, 1] > spans[:, 0])[new]]


def _first_found(places: IntArray, iteration: int, earlier: QueryAlignment | None) -> IntArray:
    """Return the search that found each subject first."""
    iterations = np.full(len(places), iteration, dtype=np.int64)
    if earlier is None:
        return iterations
    subjects, first = np.unique(earlier.subjects, return_index=True)
    at = np.minimum(np.searchsorted(subjects, places), len(subjects) - 1)
    is_known = (places >= 0) & (subjects[at] == places)
    iterations[is_known] = np.minimum(earlier.iterations[first[at]], iteration)[is_known]
    return iterations
