"""The hits of one query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from swsearch.results.hit import Hit
from swsearch.results.hit_list import HitList
from swsearch.results.table import HitTable, HspTable
from swsearch.run_info import Asked, RunInfo
from swsearch.scoring import Mode, Scoring
from swsearch.statistics.karlin_altschul import Statistics, why_no_statistics

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.axes import Axes

    from swsearch.statistics.observed import ScoreDistribution


@dataclass(frozen=True)
class SearchResult:
    """The hits of one query, best first.

    Parameters
    ----------
    query_id, query_description : str
        From the query's header.
    query_length : int
        Residues.
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

    @property
    def why_no_statistics(self) -> str:
        """Why there are no E-values, where there are none."""
        return self.no_statistics or why_no_statistics(self.scoring, self.mode)

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]

    def __repr__(self) -> str:
        best = f", best {self.hits[0].subject_id} {self.hits[0].score}" if self.hits else ""
        return f"<SearchResult {self.query_id}: {len(self.hits)} hits{best}>"

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
        """Return the hits as columns, one entry per alignment; coordinates are 0-based half-open."""
        hits, hsps = self.table, self.hsps
        found, rows = hsps.alignments, hsps.hits
        identifiers, descriptions = hits.headers.identifiers, hits.headers.descriptions
        bits, evalues, z_scores, published = hsps.numbers.optional
        of_hit = rows.tolist()
        return {
            "query_id": [self.query_id] * len(rows),
            "subject_id": [identifiers[row] for row in of_hit],
            "subject_description": [descriptions[row] for row in of_hit],
            "subject_index": hits.subjects[rows].tolist(),
            "query_length": [self.query_length] * len(rows),
            "subject_length": hits.subject_lengths[rows].tolist(),
            "score": found.score.tolist(),
            "bit_score": list(bits),
            "evalue": list(evalues),
            "z_score": list(z_scores),
            "evalue_published": list(published),
            "query_start": found.query_start.tolist(),
            "query_end": found.query_end.tolist(),
            "subject_start": found.subject_start.tolist(),
            "subject_end": found.subject_end.tolist(),
            "alignment_length": found.length.tolist(),
            "identities": found.identities.tolist(),
            "positives": found.positives.tolist(),
            "gaps": found.gaps.tolist(),
            "gap_openings": found.gap_openings.tolist(),
            "cigar": found.cigar_strings(),
        }

    def to_pandas(self) -> pandas.DataFrame:
        """Return the hits as a pandas DataFrame, one row per alignment; see `to_columns`."""
        import pandas

        frame = pandas.DataFrame(self.to_columns())
        return frame.astype(dict.fromkeys(("bit_score", "evalue", "z_score", "evalue_published"), "float64"))

    def to_arrow(self) -> pyarrow.Table:
        """Return the hits as a pyarrow Table, one row per alignment; see `to_columns`."""
        import pyarrow

        integers = pyarrow.int64()
        types = {
            "query_id": pyarrow.string(), "subject_id": pyarrow.string(), "subject_description": pyarrow.string(),
            "bit_score": pyarrow.float64(), "evalue": pyarrow.float64(), "cigar": pyarrow.string(),
            "z_score": pyarrow.float64(), "evalue_published": pyarrow.float64(),
        }  # fmt: skip
        columns = self.to_columns()
        schema = pyarrow.schema([(name, types.get(name, integers)) for name in columns])
        return pyarrow.table(columns, schema=schema)
