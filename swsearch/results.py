"""What a search gives back: one result per query, with its hits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from swsearch.alignment import PairAlignment
from swsearch.later import Later
from swsearch.run_info import Asked, RunInfo
from swsearch.scoring import Mode, Scoring
from swsearch.statistics.karlin_altschul import Statistics, why_no_statistics

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from Bio.Align import Alignment
    from matplotlib.axes import Axes

    from swsearch.statistics.observed import ScoreDistribution


@dataclass(frozen=True)
class Hsp:
    """One alignment of a hit, as BLAST's high-scoring segment pairs.

    Parameters
    ----------
    pair : PairAlignment
        The alignment.
    score : int
        Its score, matrix units.
    bit_score, evalue, z_score, evalue_published : float or None
        As of a `Hit`, for this score.
    """

    pair: PairAlignment
    score: int
    bit_score: float | None
    evalue: float | None
    z_score: float | None = None
    evalue_published: float | None = None


@dataclass(frozen=True)
class Hit:
    """A subject that a query found.

    Parameters
    ----------
    query_id, subject_id : str
        Identifiers.
    subject_description : str
        The header after the identifier.
    subject_index : int
        The subject's place in the database's input, counted from 0.
    query_length, subject_length : int
        Residues.
    score : int
        Exact, matrix units.
    bit_score, evalue : float or None
        None where there are no statistics; in global and semi-global mode there are no bit scores.
    z_score : float or None
        Standard deviations above the mean of what chance gives with this subject, where statistics were fitted.
    evalue_published : float or None
        E-value by published statistics, where `evalue` is by fitted ones and both exist.
    """

    query_id: str
    subject_id: str
    subject_description: str
    subject_index: int
    query_length: int
    subject_length: int
    score: int
    bit_score: float | None
    evalue: float | None
    _alignment: Later[PairAlignment] | None = field(default=None, repr=False, compare=False)
    z_score: float | None = None
    evalue_published: float | None = None
    _further: Later[list[Hsp]] | None = field(default=None, repr=False, compare=False)

    @property
    def pair(self) -> PairAlignment:
        """The alignment, found when first asked for and kept."""
        if self._alignment is None:
            raise AttributeError("this hit was made without sequences, so it has no alignment")
        return self._alignment.get()

    @property
    def is_aligned(self) -> bool:
        """Whether `pair` costs nothing."""
        return self._alignment is not None and self._alignment.is_known

    @property
    def sequences(self) -> Callable[[], PairAlignment] | None:
        """What finds `pair`, and reads the two sequences for it; None where there are none, or `pair` is known."""
        return None if self._alignment is None else self._alignment.source

    def align_as(self, pair: PairAlignment) -> None:
        """Let `pair` be an alignment that was found elsewhere, together with others."""
        assert self._alignment is not None
        self._alignment.give(pair)

    @property
    def hsps(self) -> list[Hsp]:
        """The alignments that are reported, the best first, which is the hit's own; found when first asked for."""
        best = Hsp(self.pair, self.score, self.bit_score, self.evalue, self.z_score, self.evalue_published)
        return [best] if self._further is None else [best, *self._further.get()]

    @property
    def may_have_several(self) -> bool:
        """Whether `hsps` may hold more than the hit's own alignment."""
        return self._further is not None

    @property
    def alignment(self) -> Alignment:
        """The alignment as a Bio.Align.Alignment, whose target is the subject; coordinates count from 0."""
        return self.pair.to_biopython(self.query_id, self.subject_id)

    @property
    def identities(self) -> int:
        """Columns with the same letter on both sides."""
        return self.pair.identities

    @property
    def positives(self) -> int:
        """Columns that are identical or score above 0."""
        return self.pair.positives

    @property
    def gaps(self) -> int:
        """Residues that stand opposite a gap."""
        return self.pair.gaps

    @property
    def cigar(self) -> str:
        """CIGAR; I consumes the query, D the subject."""
        return self.pair.cigar_string

    @property
    def query_range(self) -> tuple[int, int]:
        """Aligned part of the query, 0-based half-open."""
        return self.pair.query_start, self.pair.query_end

    @property
    def subject_range(self) -> tuple[int, int]:
        """Aligned part of the subject, 0-based half-open."""
        return self.pair.subject_start, self.pair.subject_end

    def plot_dots(self, ax: Axes | None = None, *, window: int = 11, threshold: int | None = None) -> Axes:
        """Draw a dot plot of both sequences with the alignments; see `swsearch.plots.plot_dots`."""
        from swsearch.plots import plot_dots

        return plot_dots(self, ax, window=window, threshold=threshold)


@dataclass(frozen=True)
class SearchResult:
    """The hits of one query, best first.

    Parameters
    ----------
    query_id, query_description : str
        From the query's header.
    query_length : int
        Residues.
    hits : list of Hit
        Score descending, then the subject's place in the input ascending.
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
    hits: list[Hit] = field(repr=False)
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

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the hits as columns, one entry per alignment; coordinates are 0-based half-open."""
        rows: dict[str, Callable[[Hit], Any]] = {
            "query_id": lambda hit: hit.query_id,
            "subject_id": lambda hit: hit.subject_id,
            "subject_description": lambda hit: hit.subject_description,
            "subject_index": lambda hit: hit.subject_index,
            "query_length": lambda hit: hit.query_length,
            "subject_length": lambda hit: hit.subject_length,
        }
        columns: dict[str, Callable[[Hsp], Any]] = {
            "score": lambda hsp: hsp.score,
            "bit_score": lambda hsp: hsp.bit_score,
            "evalue": lambda hsp: hsp.evalue,
            "z_score": lambda hsp: hsp.z_score,
            "evalue_published": lambda hsp: hsp.evalue_published,
            "query_start": lambda hsp: hsp.pair.query_start,
            "query_end": lambda hsp: hsp.pair.query_end,
            "subject_start": lambda hsp: hsp.pair.subject_start,
            "subject_end": lambda hsp: hsp.pair.subject_end,
            "alignment_length": lambda hsp: hsp.pair.length,
            "identities": lambda hsp: hsp.pair.identities,
            "positives": lambda hsp: hsp.pair.positives,
            "gaps": lambda hsp: hsp.pair.gaps,
            "gap_openings": lambda hsp: hsp.pair.gap_openings,
            "cigar": lambda hsp: hsp.pair.cigar_string,
        }
        shown = [(hit, hsp) for hit in self.hits for hsp in hit.hsps]
        return {
            **{name: [value(hit) for hit, _ in shown] for name, value in rows.items()},
            **{name: [value(hsp) for _, hsp in shown] for name, value in columns.items()},
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
