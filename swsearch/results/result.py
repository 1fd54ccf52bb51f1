"""The hits of one query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from swsearch.blocks import FloatArray, IntArray
from swsearch.options.words import Mode
from swsearch.results.hit import Hit
from swsearch.results.hit_list import HitList
from swsearch.results.table import HitTable, HspTable, optional
from swsearch.run_info import Asked, Program, RunInfo
from swsearch.scoring import Scoring
from swsearch.statistics.karlin_altschul import Statistics, why_no_statistics

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

    from swsearch.profiles.profile import Profile
    from swsearch.statistics.observed import ScoreDistribution


ColumnValues = list[str] | IntArray | FloatArray
"""A column of a table of hits."""

SHOWN_HITS = 10
"""Hits that a notebook shows."""

_PROTEIN_COLUMNS = (
    "query_id", "subject_id", "subject_description", "subject_index", "query_length", "subject_length", "score",
    "bit_score", "evalue", "z_score", "evalue_published", "query_start", "query_end", "subject_start", "subject_end",
    "alignment_length", "identities", "positives", "gaps", "gap_openings", "cigar",
)  # fmt: skip
_TEXTS = ("query_id", "subject_id", "subject_description", "cigar")
_FLOATS = ("bit_score", "evalue", "z_score", "evalue_published")
"""Columns that have no number where there are no such statistics."""


@dataclass(frozen=True)
class IterationStep:
    """What an iteration found for the profile of the next one.

    Parameters
    ----------
    iteration : int
        Its number.
    included : int
        Subjects that make the next profile.
    new : int
        Those of them that the profile before was not made of.
    """

    iteration: int
    included: int
    new: int


@dataclass(frozen=True)
class SearchResult:
    """The hits of one query, best first.

    Parameters
    ----------
    query_id, query_description : str
        From the query's header.
    query_length : int
        Residues, or nucleotides where the query is DNA that was translated.
    hits : sequence of Hit
        The best first: E-value ascending, then score descending, then the subject's place in the input ascending.
    scoring : Scoring
        Matrix and gap costs.
    mode : {"local", "global", "semiglobal"}
        Which ends were free.
    statistics : KarlinAltschul, FittedStatistics or None
        What bit scores and E-values come from.
    database_name : str
        Path of the database or FASTA file.
    database_subjects, database_residues : int
        Size of the database.
    effective_residues : int
        Database size that E-values refer to (``dbsize``, or ``database_residues``).
    no_statistics : str
        Why there are none, where they could not be fitted; see also `why_no_statistics`.
    asked : dict of str to (int, float or str)
        Filters, masks and the like, for reports to show; empty where nothing of the kind was asked for.
    distribution : ScoreDistribution or None
        How the whole database scores, if the search was asked to keep it.
    doubt : str
        What to tell of subjects that are sure hits by published statistics, and hardly or none by these, if any.
    run : RunInfo or None
        The search that it is of, which `swsearch.write` writes beside the hits.
    profile : Profile or None
        What found the hits, if it was not a sequence, with its alignment.
    iteration : int
        The number of the search that found them, counted from 1.
    converged : bool
        Whether another iteration would have searched with a profile of the same subjects, so that it was left out.
    first_found : ndarray, shape (n_hits,), int64, or None
        The iteration whose hits first included each one's subject in a profile; the last one, where none did. None
        where the search had no iterations.
    steps : tuple of IterationStep
        What each iteration found for the next profile.
    next_profile : Profile or None
        What goes on where this stopped, if the search was asked to keep it: made of these hits, or what found them
        where the query converged.
    program : {"blastp", "blastx", "tblastn", "tblastx"}
        BLAST's name for what was searched with what: proteins with proteins, DNA with proteins, proteins with DNA, or
        DNA with DNA, which is translated in each case.
    genetic_code, database_code : int or None
        NCBI's numbers of the codes that the query and the database were translated by; None where they are protein.
    """

    query_id: str
    query_description: str
    query_length: int
    hits: Sequence[Hit] = field(repr=False)
    scoring: Scoring
    mode: Mode
    statistics: Statistics | None = field(repr=False)
    database_name: str
    database_subjects: int
    database_residues: int
    effective_residues: int
    no_statistics: str = field(default="", repr=False)
    asked: Asked = field(default_factory=dict, repr=False)
    distribution: ScoreDistribution | None = field(default=None, repr=False)
    doubt: str = field(default="", repr=False)
    run: RunInfo | None = field(default=None, repr=False, compare=False)
    profile: Profile | None = field(default=None, repr=False, compare=False)
    iteration: int = 1
    converged: bool = False
    first_found: IntArray | None = field(default=None, repr=False, compare=False)
    steps: tuple[IterationStep, ...] = field(default=(), repr=False)
    next_profile: Profile | None = field(default=None, repr=False, compare=False)
    program: Program = "blastp"
    genetic_code: int | None = None
    database_code: int | None = None

    @property
    def has_query_frames(self) -> bool:
        """Whether the query is DNA, so that alignments have a frame of it."""
        return self.program in ("blastx", "tblastx")

    @property
    def has_subject_frames(self) -> bool:
        """Whether subjects are DNA, so that alignments have a frame of theirs."""
        return self.program in ("tblastn", "tblastx")

    @property
    def why_no_statistics(self) -> str:
        """Why there are no E-values, where there are none."""
        return self.no_statistics or why_no_statistics(self.scoring, self.mode)

    def __hash__(self) -> int:
        return hash((self.query_id, self.query_length, len(self.hits), self.database_name, self.iteration))

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]

    def __repr__(self) -> str:
        best = f", best {self.hits[0].subject_id} {self.hits[0].score}" if self.hits else ""
        return f"<SearchResult {self.query_id}: {len(self.hits)} hits{best}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the best hits, without what takes their alignments."""
        hits = self.table
        names = hits.headers.texts[:SHOWN_HITS]
        bits, evalues = (found.tolist() for found in (hits.numbers.bit_scores, hits.numbers.evalues))
        rows = "".join(
            f"<tr><td>{escape(identifier)}</td><td>{escape(description[:80])}</td><td>{score}</td><td>{bit:.4g}</td>"
            f"<td>{evalue:.2e}</td></tr>"
            for (identifier, description), score, bit, evalue in zip(
                names, hits.scores.tolist()[:SHOWN_HITS], bits[:SHOWN_HITS], evalues[:SHOWN_HITS], strict=True
            )
        ).replace("<td>nan</td>", "<td></td>")
        heads = "".join(f"<th>{name}</th>" for name in ("subject", "description", "score", "bits", "E-value"))
        more = f", the first {SHOWN_HITS} shown" if len(hits) > SHOWN_HITS else ""
        title = f"{escape(self.query_id)}: {len(hits):,} {'hit' if len(hits) == 1 else 'hits'}{more}"
        return f"<table><caption>{title}</caption><tr>{heads}</tr>{rows}</table>"

    def plot_scores(self, ax: Axes | None = None) -> Axes:
        """Draw how the whole database scores; see `swsearch.plots.plot_scores`."""
        from swsearch.plots import plot_scores

        return plot_scores(self, ax)

    def plot_coverage(self, ax: Axes | None = None, *, max_hits: int = 100) -> Axes:
        """Draw where the hits lie along the query; see `swsearch.plots.plot_coverage`."""
        from swsearch.plots import plot_coverage

        return plot_coverage(self, ax, max_hits=max_hits)

    @property
    def table(self) -> HitTable:
        """The hits as columns."""
        return self.hits.table if isinstance(self.hits, HitList) else HitTable.of(self.hits)

    @property
    def hsps(self) -> HspTable:
        """The alignments of all hits as columns, found now where they are not known."""
        return self.hits.hsps if isinstance(self.hits, HitList) else HspTable.of(self.hits)

    @property
    def may_have_several(self) -> bool:
        """Whether hits may have more than one alignment."""
        if isinstance(self.hits, HitList):
            return self.hits.may_have_several
        return any(hit.may_have_several for hit in self.hits)

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the hits as columns, one entry per alignment; coordinates are 0-based half-open.

        Where the query or the subjects are DNA, coordinates and lengths are in nucleotides of the given strand,
        and the columns ``query_frame`` and ``subject_frame`` say how each alignment was read from it.
        """
        columns = self.columns()
        return {
            name: values
            if isinstance(values, list)
            else optional(values.astype(np.float64, copy=False))
            if name in _FLOATS
            else values.tolist()
            for name, values in columns.items()
        }

    def columns(self) -> dict[str, ColumnValues]:
        """Return what `to_columns` does, numbers as arrays: int64, or float64 that is NaN where there is none."""
        hits, hsps = self.table, self.hsps
        found, rows, numbers = hsps.alignments, hsps.hits, hsps.numbers
        identifiers, descriptions = hits.headers.identifiers, hits.headers.descriptions
        of_hit = rows.tolist()
        (query_start, query_end), (subject_start, subject_end) = hsps.query_spans, hsps.subject_spans
        return {
            "query_id": [self.query_id] * len(rows),
            "subject_id": [identifiers[row] for row in of_hit],
            "subject_description": [descriptions[row] for row in of_hit],
            "subject_index": hits.record_places[rows],
            "query_length": np.full(len(rows), self.query_length, dtype=np.int64),
            "subject_length": hits.record_lengths[rows],
            "score": found.score,
            "bit_score": numbers.bit_scores,
            "evalue": numbers.evalues,
            "z_score": numbers.z_scores,
            "evalue_published": numbers.evalues_published,
            "query_start": query_start,
            "query_end": query_end,
            "subject_start": subject_start,
            "subject_end": subject_end,
            **({"query_frame": _known(hsps.query_frame_numbers)} if self.has_query_frames else {}),
            **({"subject_frame": _known(hsps.subject_frame_numbers)} if self.has_subject_frames else {}),
            "alignment_length": found.length,
            "identities": found.identities,
            "positives": found.positives,
            "gaps": found.gaps,
            "gap_openings": found.gap_openings,
            "cigar": found.cigar_strings(),
            **({} if self.first_found is None else {"iteration": self.first_found[rows]}),
        }

    def to_pandas(self) -> pandas.DataFrame:
        """Return the hits as a pandas DataFrame, one row per alignment; see `to_columns`."""
        return pandas_frame(self.columns())

    def to_arrow(self) -> pyarrow.Table:
        """Return the hits as a pyarrow Table, one row per alignment; see `to_columns`."""
        import pyarrow

        return pyarrow.table({name: arrow_array(name, values) for name, values in self.columns().items()})

    def to_polars(self) -> polars.DataFrame:
        """Return the hits as a polars DataFrame, one row per alignment; see `to_columns`."""
        import polars

        found = polars.from_arrow(self.to_arrow())
        assert isinstance(found, polars.DataFrame)
        return found

    @staticmethod
    def no_columns() -> dict[str, ColumnValues]:
        """Return the columns of a query of protein without hits."""
        found: dict[str, ColumnValues] = {}
        for name in _PROTEIN_COLUMNS:
            numbers = np.zeros(0, dtype=np.float64) if name in _FLOATS else np.zeros(0, dtype=np.int64)
            found[name] = [] if name in _TEXTS else numbers
        return found


def pandas_frame(columns: dict[str, ColumnValues]) -> pandas.DataFrame:
    """Return columns of `SearchResult.columns` as pandas has them, of the same types where there are no rows."""
    import pandas

    no_texts = pandas.Series([""]).iloc[:0]  # of whatever type this version has for texts
    return pandas.DataFrame({
        name: no_texts if isinstance(values, list) and not values else values for name, values in columns.items()
    })  # fmt: skip


def arrow_array(name: str, values: ColumnValues) -> pyarrow.Array:
    """Return a column of `SearchResult.columns`, shape (n,), as Arrow has it, null where there is no number."""
    import pyarrow

    if isinstance(values, list):
        return pyarrow.array(values, pyarrow.string())
    if name in _FLOATS:
        return pyarrow.array(values, pyarrow.float64(), mask=np.isnan(values))
    return pyarrow.array(values, pyarrow.int64())


def _known(numbers: IntArray | None) -> IntArray:
    """Return numbers of frames, shape (m,); of no alignments there are none."""
    return np.zeros(0, dtype=np.int64) if numbers is None else numbers
