"""The result of one query, and results of many queries as one table or one alignment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from swsearch.alphabet import ByteArray
from swsearch.blocks import FloatArray, IntArray
from swsearch.engines.pools import SequencePool, make_pool
from swsearch.errors import InputError, OptionError
from swsearch.options.kinds import Mode
from swsearch.profiles.query_alignment import QueryAlignment
from swsearch.results.fields import FLOAT, HIT_FIELDS, TEXT, Field, fields_in
from swsearch.results.hit import Hit
from swsearch.results.hit_batches import AlignedHitBatch
from swsearch.results.hit_list import HitList
from swsearch.results.table import HitTable, HspTable
from swsearch.run_info import ActiveOptions, Program, RunInfo
from swsearch.scoring import Matrix, Scoring
from swsearch.statistics.karlin_altschul import Statistics, why_no_statistics
from swsearch.statistics.methods import optional

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

    from swsearch.profiles.profile import Profile
    from swsearch.statistics.score_distribution import ScoreDistribution

ColumnValues = list[str] | IntArray | FloatArray
"""A column of a table of hits."""

SHOWN_HITS = 10
"""Hits that a notebook shows."""

_FIRST_COLUMNS = ("query_id", "subject_id", "subject_description", "subject_index", "query_length")
"""Columns of `SearchResult.to_columns` before the others, which stand in the order of `HIT_FIELDS`."""


@dataclass(frozen=True)
class IterationStep:
    """Subjects that an iteration included in the profile.

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
        Source of bit scores and E-values.
    database_name : str
        Path of the database or FASTA file.
    database_subjects, database_residues : int
        Size of the database.
    effective_residues : int
        Database size that E-values refer to (``dbsize``, or ``database_residues``).
    no_evalue_reason : str
        Why there are none, where they could not be fitted; see also `why_no_statistics`.
    options : dict of str to (int, float or str)
        Filters, masks and the like, for reports to show; empty where nothing of the kind was asked for.
    distribution : ScoreDistribution or None
        How the whole database scores, if the search was asked to keep it.
    warning : str
        What to tell of subjects that are sure hits by published statistics, and hardly or none by these, if any.
    run : RunInfo or None
        The search that it is of, which `swsearch.write` writes beside the hits.
    profile : Profile or None
        What found the hits, if it was not a sequence, with its alignment.
    iteration : int
        The number of the search that found them, counted from 1.
    converged : bool
        Whether another iteration would have searched with a profile of the same subjects, so that it was left out.
    first_iterations : ndarray, shape (n_hits,), int64, or None
        The iteration whose hits first included each one's subject in a profile; the last one, where none did. None
        where the search had no iterations.
    steps : tuple of IterationStep
        Subjects that each iteration included.
    next_profile : Profile or None
        What goes on where this stopped, if the search was asked to keep it: made of these hits, or what found them
        where the query converged.
    program : {"blastp", "blastx", "tblastn", "tblastx"}
        BLAST's name for what was searched with what: proteins with proteins, DNA with proteins, proteins with DNA, or
        DNA with DNA, which is translated in each case.
    genetic_code, database_genetic_code : int or None
        NCBI's numbers of the codes that the query and the database were translated by; None where they are protein.

    Examples
    --------
    >>> result = next(swsearch.search("MKVLAAGIVGW", {"first": "AAMKVLAGIVGWAA", "second": "MKVLWAGVGW"}))
    >>> [hit.subject_id for hit in result.hits]
    ['first', 'second']
    >>> result.to_columns()["score"]
    [41, 34]
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
    no_evalue_reason: str = field(default="", repr=False)
    options: ActiveOptions = field(default_factory=dict, repr=False)
    distribution: ScoreDistribution | None = field(default=None, repr=False)
    warning: str = field(default="", repr=False)
    run: RunInfo | None = field(default=None, repr=False, compare=False)
    profile: Profile | None = field(default=None, repr=False, compare=False)
    iteration: int = 1
    converged: bool = False
    first_iterations: IntArray | None = field(default=None, repr=False, compare=False)
    steps: tuple[IterationStep, ...] = field(default=(), repr=False)
    next_profile: Profile | None = field(default=None, repr=False, compare=False)
    program: Program = "blastp"
    genetic_code: int | None = None
    database_genetic_code: int | None = None

    @property
    def has_query_frames(self) -> bool:
        """Whether the query is DNA, so that alignments have a query frame."""
        return self.program in ("blastx", "tblastx")

    @property
    def has_subject_frames(self) -> bool:
        """Whether subjects are DNA, so that alignments have a subject frame."""
        return self.program in ("tblastn", "tblastx")

    @property
    def why_no_statistics(self) -> str:
        """Reason for missing E-values."""
        return self.no_evalue_reason or why_no_statistics(self.scoring, self.mode)

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
        """Return the table for notebooks: the best hits, without values that need alignments."""
        hits = self.table
        names = hits.headers.texts[:SHOWN_HITS]
        bits, evalues = (column.tolist() for column in (hits.statistics.bit_scores, hits.statistics.evalues))
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
        return self.hits.table if isinstance(self.hits, HitList) else HitTable.from_hits(self.hits)

    @property
    def hsps(self) -> HspTable:
        """The alignments of all hits as columns, found now where they are not known."""
        return self.hits.hsps if isinstance(self.hits, HitList) else HspTable.from_hits(self.hits)

    @property
    def may_have_more_hsps(self) -> bool:
        """Whether hits may have more than one alignment."""
        if isinstance(self.hits, HitList):
            return self.hits.may_have_more_hsps
        return any(hit.may_have_more_hsps for hit in self.hits)

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the hits as columns, one entry per alignment; coordinates are 0-based half-open.

        Where the query or the subjects are DNA, coordinates and lengths are in nucleotides of the given strand,
        and the columns ``query_frame`` and ``subject_frame`` say how each alignment was read from it.
        """
        return {name: _as_list(values) for name, values in self.columns().items()}

    def columns(self) -> dict[str, ColumnValues]:
        """Return the columns of `to_columns` with numbers as arrays: int64, or float64 with NaN for None."""
        hits, hsps = self.table, self.hsps
        batch = AlignedHitBatch(self, hits, slice(0, len(hits)), hsps, slice(0, len(hsps)))
        fields = _fields_of(self.program, self.first_iterations is not None)
        return {field.name: field.line_values(batch) for field in fields}

    def to_pandas(self) -> pandas.DataFrame:
        """Return the hits as a pandas DataFrame, one row per alignment; see `to_columns`."""
        return pandas_frame(self.columns())

    def to_arrow(self) -> pyarrow.Table:
        """Return the hits as a pyarrow Table, one row per alignment; see `to_columns`."""
        return arrow_table(self.columns())

    def to_polars(self) -> polars.DataFrame:
        """Return the hits as a polars DataFrame, one row per alignment; see `to_columns`."""
        return polars_frame(self.columns())

    @staticmethod
    def no_columns() -> dict[str, ColumnValues]:
        """Return the columns of a protein query without hits."""
        fields = _fields_of("blastp", is_iterated=False)
        return {each.name: [] if each.type == TEXT else np.zeros(0, dtype=each.type) for each in fields}


def _fields_of(program: Program, is_iterated: bool) -> list[Field]:
    """Return the fields of `SearchResult.to_columns`, in its order."""
    names = [*_FIRST_COLUMNS, *(field.name for field in fields_in("python", program))]
    return [HIT_FIELDS[name] for name in dict.fromkeys([*names, "iteration"] if is_iterated else names)]


def _as_list(values: ColumnValues) -> list[Any]:
    if isinstance(values, list):
        return values
    return optional(values.astype(np.float64, copy=False)) if values.dtype == FLOAT else values.tolist()


def pandas_frame(columns: dict[str, ColumnValues]) -> pandas.DataFrame:
    """Return columns of `SearchResult.columns` as pandas has them, of the same types where there are no rows."""
    import pandas

    no_texts = pandas.Series([""]).iloc[:0]  # of whatever type this version has for texts
    return pandas.DataFrame({
        name: no_texts if isinstance(values, list) and not values else values for name, values in columns.items()
    })  # fmt: skip


def join_columns(parts: Sequence[ColumnValues]) -> ColumnValues:
    """Return parts of a column as one, an array of shape (n,) or a list of texts."""
    if isinstance(parts[0], list):
        return [value for part in parts for value in part]
    return np.concatenate(parts)


def arrow_table(columns: dict[str, ColumnValues]) -> pyarrow.Table:
    """Return columns of `SearchResult.columns` as Arrow has them."""
    import pyarrow

    return pyarrow.table({name: arrow_array(values) for name, values in columns.items()})


def polars_frame(columns: dict[str, ColumnValues]) -> polars.DataFrame:
    """Return columns of `SearchResult.columns` as polars has them."""
    import polars

    frame = polars.from_arrow(arrow_table(columns))
    assert isinstance(frame, polars.DataFrame)
    return frame


def arrow_array(values: ColumnValues) -> pyarrow.Array:
    """Return a column, shape (n,), as Arrow has it: int64, float64 with null for NaN, or string."""
    import pyarrow

    if isinstance(values, list):
        return pyarrow.array(values, pyarrow.string())
    if values.dtype != FLOAT:
        return pyarrow.array(values, pyarrow.int64())
    missing = np.isnan(values)
    return pyarrow.array(np.where(missing, 0.0, values), mask=missing)


def columns_of(results: Iterable[SearchResult]) -> dict[str, ColumnValues]:
    """Return the hits of several queries as columns.

    Parameters
    ----------
    results : iterable of SearchResult
        Taken one after the other; alignments that are not known are found.

    Returns
    -------
    dict of str to (list of str or ndarray, shape (n,))
        ``query_index``, the place of each row's query among the results, counted from 0, then what
        `SearchResult.to_columns` has: int64, or float64 that is NaN where there is none. One row per alignment; a
        query without hits has none. Without results there are the columns of proteins.

    Raises
    ------
    OptionError
        If something is no `SearchResult`, or results have different columns.
    """
    if isinstance(results, (str, bytes)) or not isinstance(results, Iterable):
        raise OptionError("results", results, "what swsearch.search returns, or results taken from it")
    parts: list[dict[str, ColumnValues]] = []
    for place, result in enumerate([results] if isinstance(results, SearchResult) else results):
        if not isinstance(result, SearchResult):
            raise OptionError("results", result, "what swsearch.search returns, or results taken from it")
        columns = result.columns()
        if parts and list(columns) != list(parts[0])[1:]:
            raise OptionError("results", result, f"columns as those of {place} before: results of one search")
        parts.append({"query_index": np.full(len(columns["score"]), place, dtype=np.int64), **columns})
    if not parts:
        return {"query_index": np.zeros(0, dtype=np.int64), **SearchResult.no_columns()}
    return {name: join_columns([part[name] for part in parts]) for name in parts[0]}


def to_pandas(results: Iterable[SearchResult]) -> pandas.DataFrame:
    """Return the hits of several queries as a pandas DataFrame, one row per alignment; see `columns_of`."""
    return pandas_frame(columns_of(results))


def to_arrow(results: Iterable[SearchResult]) -> pyarrow.Table:
    """Return the hits of several queries as a pyarrow Table, null where there is no number; see `columns_of`."""
    return arrow_table(columns_of(results))


def to_polars(results: Iterable[SearchResult]) -> polars.DataFrame:
    """Return the hits of several queries as a polars DataFrame, null where there is no number; see `columns_of`."""
    return polars_frame(columns_of(results))


def alignment_of(
    result: SearchResult,
    iteration: int | None = None,
    *,
    earlier: QueryAlignment | None = None,
    largest: float | None = None,
) -> QueryAlignment:
    """Return a query with the alignments of its hits as rows, the best hit first, those of a hit one below the other.

    Letters are those of the sequences themselves, also where a mask scored X.

    Parameters
    ----------
    result : SearchResult
        Its hits are aligned now, one by one, where that was not done before.
    iteration : int, optional
        The search that it is of; what the result says by default.
    earlier : QueryAlignment, optional
        What the search was made with, the alignment of the result's profile by default: a subject that is in it has
        its iteration.
    largest : float, optional
        Largest E-value of a row; all are taken by default, and those without an E-value only then.

    Raises
    ------
    InputError
        If the result has no hits, and was made or pickled without its query's letters.
    """
    from swsearch.profiles.construction import AlignedSubjects, build_alignment

    matrix = result.scoring.matrix
    query = QueryAlignment.from_query(result.query_id, result.query_description, query_codes(result))
    if not len(result.hits):
        return query
    hits, hsps = result.table, result.hsps
    subjects = AlignedSubjects(
        hits.headers.identifiers, hits.headers.descriptions, _subjects(result, matrix), hits.subjects,
        hsps.hits, hsps.statistics.evalues,
    )  # fmt: skip
    alignments = hsps.alignments
    if largest is not None:
        some = np.flatnonzero(hsps.statistics.evalues <= largest)
        subjects, alignments = subjects.take(some), alignments.take(some)
    if earlier is None and result.profile is not None:
        earlier = result.profile.alignment
    return build_alignment(query, subjects, alignments, result.iteration if iteration is None else iteration, earlier)


def query_codes(result: SearchResult) -> ByteArray:
    """Return the codes of a result's query as it was given, not as a mask scores it; shape (n,), uint8."""
    matrix = result.scoring.matrix
    if isinstance(result.hits, HitList):
        return _unmask(result.hits.query.codes, result.hits.query.letters, matrix)
    if len(result.hits):
        pair = result.hits[0].pair
        return _unmask(pair.query, pair.query_letters, matrix)
    if not result.query_length:
        return np.zeros(0, dtype=np.uint8)
    raise InputError(
        f"query {result.query_id!r}: the result has no hits and does not hold the query's letters, which an "
        "alignment begins with; write results as a search gives them"
    )


def _subjects(result: SearchResult, matrix: Matrix) -> SequencePool:
    """Return the hits' subjects as they are in the database."""
    hits = result.hits
    if isinstance(hits, HitList) and (subjects := hits.subjects) is not None:
        return _unmask(subjects.codes, subjects.letters, matrix), subjects.offsets
    pairs = [hit.pair for hit in hits]
    return make_pool([_unmask(pair.subject, pair.subject_letters, matrix) for pair in pairs])


def _unmask(codes: ByteArray, letters: ByteArray | None, matrix: Matrix) -> ByteArray:
    """Return the codes of letters that are shown, in lower case where codes are X; codes where nothing is masked."""
    return codes if letters is None else matrix.alphabet.encode_table[letters]
