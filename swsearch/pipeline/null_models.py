"""Null models of queries and pairs, from shuffled and reversed sequences.

Every candidate is scored with its reversed subject and a few shuffled copies. More copies follow while the error of
their mean could change whether the pair is a hit. A copy depends only on the sequence and the copy's number
(``cpu/shuffle/shuffle.hpp``). The pairs of all queries of a group are scored together: by a GPU that searches, if
they are many, or by the CPU extension, on all threads.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from swsearch import extension
from swsearch.alphabet import ByteArray
from swsearch.blocks import LANES, Chunk, FloatArray, IntArray, block_columns, unique_with_places
from swsearch.engines.base import PAIR_RESIDUES, Engine, ScoreArray
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.engines.cpu.queries import QueryArguments, recurrence_arguments, shift_cost
from swsearch.engines.pools import SequencePool, make_pool
from swsearch.errors import EngineError, InputError, MemoryLimitError
from swsearch.inputs import Query
from swsearch.recurrence import Recurrence
from swsearch.scoring import QueryLike, rows_of
from swsearch.statistics.null_model import (
    NO_BOUND,
    FitSettings,
    FittedStatistics,
    PairNullModels,
    fit_panels,
    probabilities_of,
)
from swsearch.statistics.random_panel import WINDOW, Panel, choose_panel, probability_of

REVERSED, UNCHANGED = -1, -2
"""Numbers of the copies that are the sequence backwards, and the sequence itself."""

CELLS_OF_CALL = 1 << 33
"""Cells of each thread in one call of the extension, a quarter of a second: where the call does not come from the
main thread, what ends a search is heard between calls alone."""

ENGINE_WORTH_CELLS = 300_000_000
"""Cells from which on an engine may score copies: fewer are done by 16 threads before a GPU has them. A choice."""


def score_shuffled(
    queries: Sequence[QueryLike],
    sequences: SequencePool,
    pairs: IntArray,
    copies: range,
    recurrence: Recurrence,
    threads: int,
    engine: Engine | None = None,
) -> ScoreArray:
    """Score queries with shuffled copies of sequences.

    Parameters
    ----------
    queries : sequence of (ndarray, shape (length,), uint8, or QueryProfile)
        Codes, or scores by position; may be empty.
    sequences : (ndarray, shape (total length,), uint8; ndarray, shape (n + 1,), int64)
        Codes, one sequence after the other, and where each begins; may be empty.
    pairs : ndarray, shape (n_pairs, 2), int64
        The query's place and the sequence's.
    copies : range
        Numbers of the copies, from `UNCHANGED` on; other numbers are other copies.
    engine : Engine, optional
        Scores what is worth it, if it does; by default the CPU extension scores everything.

    Returns
    -------
    ndarray, shape (n_pairs, n_copies), int32
        Exact scores, matrix units.
    """
    scores = np.empty((len(pairs), len(copies)), dtype=np.int32)
    if not scores.size:
        return scores
    joined = QueryArguments.from_queries(queries, recurrence)
    rows, lengths = joined.lengths[pairs[:, 0]], np.diff(sequences[1])[pairs[:, 1]]
    _check_reach(rows, lengths, joined.recurrence)
    cells = rows * lengths * len(copies)
    is_plain = not len(joined.costs) and joined.recurrence.frame_shift is None and rows.all() and lengths.all()
    if engine is not None and is_plain and cells.sum() >= ENGINE_WORTH_CELLS and engine.takes_pairs():
        with contextlib.suppress(EngineError, MemoryLimitError):
            return _score_by_engine(queries, sequences, pairs, copies, recurrence, threads, engine)
    score, computed = extension.load().score_shuffled, recurrence_arguments(joined.recurrence)
    rest = *computed, threads, 0, extension.active_instruction_set()
    for part in split_by_residues(cells, CELLS_OF_CALL * threads):
        score(
            *joined.arguments, *sequences,
            np.ascontiguousarray(pairs[part]), copies.start, len(copies), WINDOW, *rest, scores[part],
            *shift_cost(joined.recurrence),
        )  # fmt: skip
    return scores


def _score_by_engine(
    queries: Sequence[QueryLike],
    sequences: SequencePool,
    pairs: IntArray,
    copies: range,
    recurrence: Recurrence,
    threads: int,
    engine: Engine,
) -> ScoreArray:
    """Score queries with shuffled copies for `score_shuffled`."""
    lengths = np.diff(sequences[1])[pairs[:, 1]]
    used, of_pair = unique_with_places(pairs[:, 0])
    profiles = [rows_of(queries[k], recurrence.scoring) for k in used.tolist()]
    scores = np.empty((len(pairs), len(copies)), dtype=np.int32)
    for part in split_by_residues(lengths * len(copies), PAIR_RESIDUES):
        chunk = _shuffle(sequences, pairs[part, 1], copies, threads)
        found = engine.score_pairs(profiles, of_pair[part][chunk.subjects // len(copies)], chunk, recurrence)
        scores[part].reshape(-1)[chunk.subjects] = found
    return scores


def _check_reach(rows: IntArray, lengths: IntArray, recurrence: Recurrence) -> None:
    """Raise `InputError` where a pair's score might not fit 32 bits."""
    m, n = int(rows.max()), int(lengths.max())
    try:
        recurrence.lane_bits(max(m, 1), max(n, 1))  # what is enough for the longest of both is enough for every pair
    except InputError:
        for m in np.unique(rows[rows > 0]).tolist():
            recurrence.lane_bits(m, max(int(lengths[rows == m].max()), 1))


def split_by_residues(sizes: IntArray, max_residues: int) -> Iterator[slice]:
    """Cut items of these sizes, shape (n,), into runs of about ``max_residues``; a larger item is its own run."""
    before = np.cumsum(sizes) - sizes
    begin = 0
    while begin < len(sizes):
        end = max(begin + 1, int(np.searchsorted(before + sizes, before[begin] + max_residues, side="right")))
        yield slice(begin, end)
        begin = end


def make_shuffled_chunk(sequences: Sequence[ByteArray], copies: range, threads: int) -> Chunk:
    """Return shuffled copies of sequences, as a chunk that engines score.

    Parameters
    ----------
    sequences : sequence of ndarray, shape (length,), uint8
        Codes; none is empty.
    copies : range
        Numbers of the copies, from `REVERSED` on; other numbers are other copies.

    Returns
    -------
    Chunk
        Its ``subjects`` count the copies of the first sequence, then those of the second, and so on.
    """
    return _shuffle(make_pool(list(sequences)), np.arange(len(sequences)), copies, threads)


def _shuffle(sequences: SequencePool, places: IntArray, copies: range, threads: int) -> Chunk:
    """Return copies of some sequences of a pool, by their places, shape (n,); see `make_shuffled_chunk`."""
    codes, offsets = sequences
    lengths = np.diff(offsets)[places].astype(np.int32)
    of_lane = np.repeat(np.argsort(-lengths, kind="stable"), len(copies))
    copy_of_lane = np.tile(np.arange(copies.start, copies.stop, dtype=np.int32), len(places))
    lane_lengths = lengths[of_lane]
    columns = np.concatenate([[0], np.cumsum(block_columns(lane_lengths))]).astype(np.int64)
    residues = np.empty((int(columns[-1]), LANES), dtype=np.uint8)
    extension.load().shuffle(codes, offsets, places[of_lane], copy_of_lane, columns, WINDOW, threads, residues)
    return Chunk(residues, columns, lane_lengths, of_lane * len(copies) + (copy_of_lane - copies.start))


def scores_with_copies(
    queries: Sequence[QueryLike], recurrence: Recurrence, chunk: Chunk, threads: int
) -> npt.NDArray[np.int32]:
    """Score queries with one and the same chunk of copies.

    Returns
    -------
    ndarray, shape (n_queries, n_copies), int32
        Exact scores, matrix units, in the order of the chunk's ``subjects``.
    """
    with CpuEngine(threads) as engine:
        group = engine.prepare([rows_of(query, recurrence.scoring) for query in queries], recurrence)
        scored = engine.score(group, engine.load(chunk))
    scores = np.empty_like(scored)
    scores[:, chunk.subjects] = scored
    return scores


ReadMany = Callable[[IntArray], SequencePool]
"""Returns the codes of some subjects as they are scored, by their places in the input, shape (n,), int64: one after
the other, shape (total length,), uint8, and where each begins, shape (n + 1,), int64."""

N_COPIES = (3, 7, 15, 31)
"""Numbers of shuffled copies: the first for each candidate, beside the reversed subject, and the others for those
whose E-value is still uncertain."""

MAX_ERROR = 0.2
"""Error of a null's mean from which more copies are scored, in standard deviations: 1.3 fold in terms of E-values."""

DECISIVE_ERRORS = 4.0
"""Errors by which a mean may be off: a pair that then still is no hit, or a sure one, gets no more copies. So it
hardly ever matters to a pair what the threshold is."""

NEGLIGIBLE_PROBABILITY = 1e-12
"""Probability by chance below which a pair is sure; see `DECISIVE_ERRORS`."""

QUERIES_PER_BATCH, ROWS_PER_BATCH = 1024, 50_000
"""Queries, and their residues, that are scored at a time with the same random sequences: 11 MB of scores."""

FITS_PER_BATCH = 64
"""Queries whose nulls are made at a time: sums over their scores take 3 MB."""

MAX_RESIDUES = 64 << 20
"""Residues of subjects, or of random sequences, that are at hand at a time."""

FIRST_SUBJECTS = 16
"""Residues by which most subjects that are not the query are told from it."""


@dataclass(frozen=True, eq=False)
class NullModelRequest:
    """Pairs of one query that are to get their nulls.

    Parameters
    ----------
    query : Query
        With residues.
    statistics : FittedStatistics
        Its null.
    subjects, scores : ndarray, shape (n,), int64
        Places in the input, and scores in matrix units.
    lengths : ndarray, shape (n,), int64
        Residues of the subjects.
    limit : float
        Probability by chance up to which a pair is a hit.
    """

    query: Query
    statistics: FittedStatistics
    subjects: IntArray
    scores: IntArray
    lengths: IntArray
    limit: float

    def __getitem__(self, part: slice | IntArray) -> NullModelRequest:
        return replace(self, subjects=self.subjects[part], scores=self.scores[part], lengths=self.lengths[part])


@dataclass(frozen=True)
class NullModelFitter:
    """Makes nulls.

    Parameters
    ----------
    fit : FitSettings
        The search.
    recurrence : Recurrence
        Scoring, mode and frameshift cost.
    threads : int
        For shuffling and scoring, on the CPU.
    sample : bytes
        Codes of subjects, of which reversed pieces stand for random sequences; empty for proteins.
    """

    fit: FitSettings
    recurrence: Recurrence
    threads: int
    sample: bytes = b""

    def fit_queries(self, queries: Sequence[Query]) -> list[FittedStatistics | None]:
        """Return the null of each query; None for one without residues."""
        fitted: list[FittedStatistics | None] = [None] * len(queries)
        filled = [k for k, query in enumerate(queries) if len(query.codes)]
        of_lengths = self._fit_relative_panel if self.fit.mode == "global" else self._fit_fixed_panel
        for k, null in zip(filled, of_lengths([self._aligner_input(queries[k]) for k in filled]), strict=True):
            fitted[k] = null
        return fitted

    def _aligner_input(self, query: Query) -> QueryLike:
        """Return the codes or the profile rows of a query."""
        return query.codes if query.profile is None else query.rows(self.recurrence.scoring)

    def _fit_fixed_panel(self, queries: Sequence[QueryLike]) -> Iterator[FittedStatistics]:
        """Make nulls with the random sequences that all queries have in common."""
        for part in _group_queries(queries):
            panel = choose_panel(self.fit.mode, 1, self.sample)
            chunk = _panel_chunk(panel, self.threads)
            scores = scores_with_copies(part, self.recurrence, chunk, self.threads)
            for begin in range(0, len(part), FITS_PER_BATCH):
                some = slice(begin, begin + FITS_PER_BATCH)
                lengths = [len(query) for query in part[some]]
                yield from fit_panels(self.fit, lengths, panel.lengths, panel.split_scores(scores[some]))

    def _fit_relative_panel(self, queries: Sequence[QueryLike]) -> Iterator[FittedStatistics]:
        """Make nulls with random sequences whose lengths follow the query's."""
        panels = [choose_panel(self.fit.mode, len(query), self.sample) for query in queries]
        copies = panels[0].copies if panels else range(0)
        for part in split_by_residues(np.array([panel.n_residues for panel in panels], dtype=np.int64), MAX_RESIDUES):
            sequences = [codes for panel in panels[part] for codes in panel.codes()]
            n = [panel.n_scores // len(copies) for panel in panels[part]]
            pairs = np.stack([np.repeat(np.arange(len(n)), n), np.arange(len(sequences))], axis=1)
            scores = score_shuffled(queries[part], make_pool(sequences), pairs, copies, self.recurrence, self.threads)
            rows = np.split(scores.ravel(), len(copies) * np.cumsum(n)[:-1])
            for query, panel, row in zip(queries[part], panels[part], rows, strict=True):
                yield from fit_panels(self.fit, [len(query)], panel.lengths, panel.split_scores(row[None]))

    def fit_pairs(
        self, requests: Sequence[NullModelRequest], read: ReadMany, engine: Engine | None = None
    ) -> list[PairNullModels]:
        """Return the nulls of the pairs of some queries; an engine may score copies in place of the CPU."""
        parts: list[list[PairNullModels]] = [[] for _ in requests]
        for places, run in _split_requests(requests):
            for place, nulls in zip(places, self._fit_run(run, read, engine), strict=True):
                parts[place].append(nulls)
        return [
            PairNullModels.concatenate(each.statistics, models) for each, models in zip(requests, parts, strict=True)
        ]

    def _fit_run(
        self, requests: Sequence[NullModelRequest], read: ReadMany, engine: Engine | None
    ) -> list[PairNullModels]:
        """Return the nulls of pairs whose subjects may all be at hand."""
        subjects, place = np.unique(np.concatenate([each.subjects for each in requests]), return_inverse=True)
        sequences = read(subjects)
        queries = [self._aligner_input(each.query) for each in requests]
        sizes = [len(each.subjects) for each in requests]
        pairs = np.stack([np.repeat(np.arange(len(requests)), sizes), place], axis=1)
        of_query = [slice(begin, end) for begin, end in pairwise(np.cumsum([0, *sizes]).tolist())]

        def scores(pairs: IntArray, copies: range) -> IntArray:
            scored = score_shuffled(queries, sequences, pairs, copies, self.recurrence, self.threads, engine)
            return scored.astype(np.int64)

        is_reversed = self.fit.is_reversed
        first = scores(pairs, range(REVERSED, 0 if is_reversed else N_COPIES[0]))
        reversed_, totals, n = first[:, 0], first[:, 1:].sum(axis=1), np.full(len(pairs), N_COPIES[0])
        whose = zip(requests, of_query, strict=True)
        bounds = [
            np.full(part.stop - part.start, NO_BOUND)
            if is_reversed
            else _copy_probabilities(each.query.codes, sequences, place[part])
            for each, part in whose
        ]
        whole = zip(requests, bounds, strict=True)
        nulls = [PairNullModels(each.statistics, each.lengths, np.zeros(len(bound)), bound) for each, bound in whole]
        if is_reversed:
            return [each.with_reversed(reversed_[part]) for each, part in zip(nulls, of_query, strict=True)]
        rows = [np.arange(size) for size in sizes]
        for done, more in pairwise(N_COPIES):
            asked = [part.start + some for part, some in zip(of_query, rows, strict=True)]
            moments = [(totals[some] / done, reversed_[some]) for some in asked]
            wanted = [each[some] for each, some in zip(requests, rows, strict=True)]
            current = [
                each[some].with_copies(*copies) for each, some, copies in zip(nulls, rows, moments, strict=True)
            ]
            errors = [each.errors(*copies, done) for each, copies in zip(current, moments, strict=True)]
            near = _undecided(wanted, current, errors)
            rows = [some[chosen] for some, chosen in zip(rows, near, strict=True)]
            again = np.concatenate([some[chosen] for some, chosen in zip(asked, near, strict=True)])
            if not len(again):
                break
            totals[again] += scores(pairs[again], range(done, more)).sum(axis=1)
            n[again] = more
        means = totals / n
        return [each.with_copies(means[part], reversed_[part]) for each, part in zip(nulls, of_query, strict=True)]


def _undecided(
    requests: Sequence[NullModelRequest], nulls: Sequence[PairNullModels], errors: Sequence[FloatArray]
) -> list[IntArray]:
    """Return the places, shape (n,) by query, of the pairs that need more copies, given the errors of their means."""
    doubted = [np.flatnonzero(error > MAX_ERROR) for error in errors]
    some = [of_query[rows] for of_query, rows in zip(nulls, doubted, strict=True)]
    scores = [each.scores[rows] for each, rows in zip(requests, doubted, strict=True)]
    shifts = [
        DECISIVE_ERRORS * error[rows] * np.sqrt(of_query.variances)
        for error, rows, of_query in zip(errors, doubted, some, strict=True)
    ]
    bounds = [score + shift for score, shift in zip(scores, shifts, strict=True)]
    bounds += [score - shift for score, shift in zip(scores, shifts, strict=True)]
    chances = probabilities_of(some * 2, bounds)
    return [
        rows[(low <= each.limit) & (high >= NEGLIGIBLE_PROBABILITY)]
        for each, rows, low, high in zip(requests, doubted, chances, chances[len(some) :], strict=False)
    ]


def _group_queries(queries: Sequence[QueryLike]) -> Iterator[Sequence[QueryLike]]:
    """Cut queries into runs that are scored together with one panel."""
    sizes = np.array([max(len(query), -(-ROWS_PER_BATCH // QUERIES_PER_BATCH)) for query in queries], dtype=np.int64)
    return (queries[part] for part in split_by_residues(sizes, ROWS_PER_BATCH))


def _split_requests(requests: Sequence[NullModelRequest]) -> Iterator[tuple[list[int], list[NullModelRequest]]]:
    """Cut pairs into runs of at most `MAX_RESIDUES`, or of one pair; yield the queries of each run too."""
    whose = np.repeat(np.arange(len(requests)), [len(each.subjects) for each in requests])
    starts = np.searchsorted(whose, np.arange(len(requests)))
    sizes = np.concatenate([np.empty(0, dtype=np.int64), *(each.lengths for each in requests)])
    for part in split_by_residues(sizes, MAX_RESIDUES):
        # not np.unique, which imports numpy's masked arrays: 20 ms at the start of each search
        places = np.flatnonzero(np.bincount(whose[part])).tolist()
        bounds = [(max(part.start - int(starts[k]), 0), part.stop - int(starts[k])) for k in places]
        yield places, [requests[k][begin:end] for k, (begin, end) in zip(places, bounds, strict=True)]


@lru_cache(maxsize=2)
def _panel_chunk(panel: Panel, threads: int) -> Chunk:
    return make_shuffled_chunk(panel.codes(), panel.copies, threads)


def _copy_probabilities(query: ByteArray, subjects: SequencePool, places: IntArray) -> FloatArray:
    """Return the probability of identical subjects by chance, and `NO_BOUND` for those that differ; shape (n,)."""
    bounds = np.full(len(places), NO_BOUND)
    (codes, offsets), n = subjects, len(query)
    begins = offsets[places]
    alike = np.flatnonzero(offsets[places + 1] - begins == n)
    columns = np.arange(min(n, FIRST_SUBJECTS))
    started = (codes[begins[alike][:, None] + columns] == query[columns]).all(axis=1)
    same = [k for k in alike[started].tolist() if np.array_equal(query, codes[begins[k] : begins[k] + n])]
    if same:
        bounds[same] = probability_of(query)
    return bounds
