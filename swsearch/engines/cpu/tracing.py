"""Alignment of pairs by the compiled extension `swsearch.engines.cpu._simd`, whose sources are in ``cpu/``.

It finds the alignment that `swsearch.reference` states, in bounded memory, with SIMD lanes and threads.
In similar pairs it leaves out the tiles that no alignment as good as one already found can pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from swsearch import extension
from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import N_CODES, ByteArray
from swsearch.blocks import IntArray
from swsearch.engines.base import Pair
from swsearch.engines.cpu.columns import UncountedAlignments, count_pools
from swsearch.engines.pools import PoolPairs, SequencePool, check_lengths, make_pool, pair_bounds, rows_pool
from swsearch.errors import InputError, MemoryLimitError, OptionError
from swsearch.processors import available_processors
from swsearch.recurrence import Recurrence
from swsearch.reference import Cigar
from swsearch.scoring import GAP_COLUMNS, QueryLike, QueryProfile, codes_of, position_specific_rows

RawAlignment = tuple[int, int, int, Cigar]
"""Score, start in the query and in the subject, and CIGAR, as `swsearch.reference.align` returns them."""

Counted = tuple[int, int, int, Cigar, int, int]
"""Values of a `RawAlignment`, then the numbers of cells computed and of passes."""

ScoreBytes = npt.NDArray[np.int8]

GapCosts = npt.NDArray[np.int16]
"""Gap costs by position, shape (n_rows, 4): those of `swsearch.scoring.GAP_COLUMNS`."""

FoundBytes = tuple[bytes, bytes, bytes]
"""Alignments of many pairs, as the extension returns them: numbers, run lengths and run operations."""

Residues = TypeVar("Residues", int, IntArray)

TABLE_MEMORY = 256 << 20
"""Bytes that the tables of a pair may take by default."""

SHIFT_TABLE_MEMORY = 64 << 20
"""Bytes for the tables of each pair with frame shifts that is aligned beside others; others are aligned one by one.
These tables grow with the subject's length and the root of the strand's."""

BEAM_WIDTH = 700
"""Distance below the best score to which a first pass follows alignments, in matrix units.
With 700 the pass bridges insertions of 4,000 bases in DNA (5, -4, 10, 1), with 350 those of 500. It saves four fifths
of the time where 1 % of the bases differ."""


class BatchLimits(NamedTuple):
    """Limits of a batch of pairs: bytes for the tables of each running pair, and threads (default all)."""

    memory: int = TABLE_MEMORY
    threads: int | None = None


DEFAULT_LIMITS = BatchLimits()

REACH_LIMIT = 1 << 28
"""Scores are kept in 32 bits; this leaves room for minus infinity."""


def check_score_range(query_length: int, subject_length: int, recurrence: Recurrence) -> None:
    """Raise `InputError` where a pair of these lengths could have scores that 32 bits do not hold."""
    scoring = recurrence.scoring
    low, high = recurrence.score_range(query_length, subject_length)
    reach = max(-low, high) + scoring.max_gap_cost(subject_length) + scoring.max_first_gap_cost
    if reach >= REACH_LIMIT:
        raise InputError(
            f"a pair of {query_length:,} and {subject_length:,} residues with {scoring.describe()}: scores may reach "
            f"{reach:,}, expected less than {REACH_LIMIT:,}; use smaller costs or shorter sequences"
        )


def align(
    query: QueryLike,
    subject: ByteArray,
    recurrence: Recurrence,
    memory: int = TABLE_MEMORY,
    threads: int | None = None,
    *,
    tile: int = 0,
    beam: int = BEAM_WIDTH,
) -> RawAlignment:
    """Align a query with a subject in bounded memory.

    Parameters
    ----------
    query : ndarray, shape (n,), uint8, or QueryProfile
        Codes of the scoring's alphabet, or scores by position; may be empty.
    subject : ndarray, shape (n,), uint8
        Codes; may be empty.
    recurrence : Recurrence
        What is computed.
    memory : int, optional
        Bytes to be used for tables; each thread takes up to a megabyte besides.
    threads : int, optional
        At most this many; by default all processors that this process may use.
    tile, beam : int, optional
        How to go about it: rows and columns that are computed at a time (0: the extension chooses), and `BEAM_WIDTH`
        (0: no first pass). They change nothing in the result.

    Returns
    -------
    score, query_start, subject_start : int
    cigar : tuple of (int, str)
        As `swsearch.reference.align` returns them.

    Raises
    ------
    MemoryLimitError
        If the pair does not fit ``memory``.
    InputError
        If scores could be beyond `REACH_LIMIT`.
    EngineError
        If the extension cannot be used.
    """
    return _run(query, subject, recurrence, memory, threads, tile, beam, path=True)[:4]


def score(
    query: QueryLike,
    subject: ByteArray,
    recurrence: Recurrence,
    memory: int = TABLE_MEMORY,
    threads: int | None = None,
    *,
    tile: int = 0,
    beam: int = BEAM_WIDTH,
) -> int:
    """Score a query with a subject; parameters, shapes and errors as for `trace`."""
    return _run(query, subject, recurrence, memory, threads, tile, beam, path=False)[0]


def memory_needed(query_length: Residues, subject_length: Residues, *, gaps_vary: bool = False) -> Residues:
    """Return bytes in which pairs can be aligned whatever they are like; lengths of any shape.

    They are linear in the lengths; where gap costs are by position, the root of the query's length times the
    subject's is added.
    """
    linear = 150 * (query_length + subject_length) + (1 << 20)
    if not gaps_vary:
        return linear
    rows: Residues = np.ceil(np.sqrt(query_length)).astype(np.int64)
    return linear + 8 * (rows + 2) * (subject_length + 1)


class AlignmentBatch:
    """Sequence of the alignments of `align_many`, each as `trace` returns it, made on access.

    Access to a pair that needs more than the memory limit raises `MemoryLimitError`.
    """

    def __init__(self, raw: FoundBytes, pairs: Sequence[Pair], memory: int) -> None:
        self._pairs, self._memory = pairs, memory
        self._numbers = np.frombuffer(raw[0], dtype=np.int64).reshape(-1, 5)
        self._lengths = np.frombuffer(raw[1], dtype=np.int64)
        self._operations = raw[2].decode("ascii")
        self._ends = np.cumsum(self._numbers[:, 3])

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[RawAlignment]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, place: int) -> RawAlignment:
        score, query_start, subject_start, runs, needed = self._numbers[place].tolist()
        if needed:
            raise _too_large(len(self._pairs[place][1]), self._memory, needed)
        end = int(self._ends[place])
        lengths = self._lengths[end - runs : end].tolist()
        cigar = tuple(zip(lengths, self._operations[end - runs : end], strict=True))
        return score, query_start, subject_start, cigar


def align_many(
    pairs: Sequence[Pair],
    recurrence: Recurrence,
    memory: int = TABLE_MEMORY,
    threads: int | None = None,
    *,
    known_scores: Sequence[int] | None = None,
    path: bool = True,
    tile: int = 0,
    beam: int = BEAM_WIDTH,
) -> AlignmentBatch:
    """Align pairs side by side, each on one thread, the largest first.

    Parameters
    ----------
    pairs : sequence of (query, subject)
        As `trace` takes them; a sequence that is in several pairs is passed on once if it is the same object.
    recurrence, tile, beam
        As for `trace`.
    memory : int, optional
        Bytes to be used for the tables of each of the pairs that are worked on.
    threads : int, optional
        Pairs at a time; by default as many as there are processors that this process may use.
    known_scores : sequence of int, optional
        A score that each pair reaches, such as its own from a search: what cannot reach it is left out. One that is
        not reached costs time, but changes nothing in the result.
    path : bool, optional
        Whether more than the scores is wanted.

    Returns
    -------
    AlignmentBatch
        One per pair, in their order.

    Raises
    ------
    InputError, EngineError
        As `trace` does.
    """
    queries: dict[int, QueryLike] = {id(query): query for query, _ in pairs}
    subjects = {id(subject): subject for _, subject in pairs}
    rows = None
    if any(position_specific_rows(query) is not None for query in queries.values()):
        rows = rows_pool(list(queries.values()), recurrence.scoring)
        recurrence = recurrence.with_bounds_for([rows])
    for m, n in {(len(query), len(subject)) for query, subject in pairs}:
        check_score_range(m, n, recurrence)
    pools = make_pool([codes_of(query) for query in queries.values()]), make_pool(list(subjects.values()))
    numbers = [dict(zip(side, range(len(side)), strict=True)) for side in (queries, subjects)]
    chosen = [(numbers[0][id(query)], numbers[1][id(subject)]) for query, subject in pairs]
    places = pair_bounds(*pools, np.array(chosen, dtype=np.int64).reshape(-1, 2))
    scores = np.array([] if known_scores is None else known_scores, dtype=np.int64)
    settings = _settings(recurrence, memory, threads, tile, beam, path=path)
    codes = pools[0][0], pools[1][0]
    return AlignmentBatch(
        extension.load().align_many(*codes, places, scores, *settings, *position_gap_costs(rows)), pairs, memory
    )


def align_pools(
    batch: PoolPairs, recurrence: Recurrence, limits: BatchLimits = DEFAULT_LIMITS
) -> tuple[AlignmentTable, IntArray]:
    """Align pairs of sequences of two pools side by side, each on one thread, the largest first, and count them.

    No Python object is made for a pair.

    Parameters
    ----------
    batch : PoolPairs
        m of them.
    recurrence : Recurrence
        As for `align_many`.
    limits : BatchLimits, optional
        What may be used.

    Returns
    -------
    table : AlignmentTable
        One per pair, in their order.
    needed : ndarray, shape (m,), int64
        0 where a pair was aligned; otherwise bytes, more than ``limits`` allow, that it takes at least, and the table
        says of it that its score is 0 and that it has no columns.

    Raises
    ------
    InputError, EngineError
        As `trace` does.
    ValueError
        If places, offsets, letters or rows are not within or beside the pools.
    """
    rows, places = batch.rows, batch.places
    covering = recurrence.with_bounds_for([] if rows is None else [rows])
    check_lengths(places, lambda m, n: check_score_range(m, n, covering))
    scores = np.ascontiguousarray([] if batch.known_scores is None else batch.known_scores, dtype=np.int64)
    settings = _settings(covering, *limits, 0, BEAM_WIDTH, path=True)
    codes = (np.ascontiguousarray(batch.queries[0]), np.ascontiguousarray(batch.subjects[0]))
    raw = extension.load().align_many(*codes, places, scores, *settings, *position_gap_costs(rows))
    aligned, needed = _decode_found([raw], 5)
    return count_pools(aligned, batch, recurrence.scoring.matrix, limits.threads), needed


def align_strands(
    strands: SequencePool,
    subjects: SequencePool,
    pairs: IntArray,
    recurrence: Recurrence,
    threads: int | None = None,
) -> UncountedAlignments:
    """Align pairs of strands and proteins, with frame shifts, side by side, each on one thread, the largest first.

    Parameters
    ----------
    strands : (ndarray, ndarray)
        Amino acids of the codons that begin at each nucleotide, and offsets; see `SequencePool`.
    subjects : (ndarray, ndarray)
        Codes and offsets.
    pairs : ndarray, shape (m, 2), int64
        Which strand and which subject, by their places in the pools.
    recurrence : Recurrence
        What is computed, with frame shifts.
    threads : int, optional
        At most this many; by default all processors that this process may use.

    Returns
    -------
    UncountedAlignments
        One per pair, in their order; ``query_start`` is a nucleotide of the strand, and operations are those of
        `swsearch.translation.frameshift_reference.shifted_align`.

    Raises
    ------
    OptionError
        If the recurrence has no frame shifts.
    InputError
        If scores might not fit what is computed with.
    EngineError
        If the extension cannot be used.
    """
    if recurrence.frame_shift is None:
        raise OptionError("frame_shift", None, "what a shift costs")
    places = pair_bounds(strands, subjects, pairs)
    check_lengths(places, lambda n, m: check_score_range(n, m, recurrence))
    scoring, load = recurrence.scoring, extension.load()
    codes = np.ascontiguousarray(strands[0]), np.ascontiguousarray(subjects[0])
    scores = np.ascontiguousarray(scoring.matrix.scores.astype(np.int8))
    costs = int(scoring.gap_open), int(scoring.gap_extend), recurrence.frame_shift
    raw = [
        load.align_shifted(*codes, np.ascontiguousarray(places[part]), scores, *costs, n_threads)
        for part, n_threads in _split_strands(places, threads or available_processors())
    ]
    return _decode_found(raw, 4)[0]


def _split_strands(places: IntArray, threads: int) -> Iterator[tuple[slice, int]]:
    """Cut pairs, shape (m, 4), into runs that are aligned together, and say by how many threads; at least one run."""
    memory = extension.load().shifted_memory
    begin = 0
    for place, (_, n, _, m) in enumerate(places.tolist()):
        if memory(n, m) > SHIFT_TABLE_MEMORY:
            if begin < place:
                yield slice(begin, place), threads
            yield slice(place, place + 1), 1
            begin = place + 1
    if begin < len(places) or not len(places):
        yield slice(begin, len(places)), threads


def _decode_found(calls: Sequence[FoundBytes], width: int) -> tuple[UncountedAlignments, IntArray]:
    """Decode what calls of the extension found of m pairs; return also the last of each pair's ``width`` numbers."""
    numbers = np.concatenate([np.frombuffer(each[0], dtype=np.int64) for each in calls]).reshape(-1, width)
    lengths = np.concatenate([np.frombuffer(each[1], dtype=np.int64) for each in calls])
    operations = np.concatenate([np.frombuffer(each[2], dtype=np.uint8) for each in calls])
    offsets = np.zeros(len(numbers) + 1, dtype=np.int64)
    np.cumsum(numbers[:, 3], out=offsets[1:])
    score, query_start, subject_start = np.ascontiguousarray(numbers[:, :3].T)
    return UncountedAlignments(score, query_start, subject_start, offsets, lengths, operations), numbers[:, -1].copy()


def _settings(
    recurrence: Recurrence,
    memory: int,
    threads: int | None,
    tile: int,
    beam: int,
    *,
    path: bool,
) -> tuple[ScoreBytes | int | str, ...]:
    """Return what both functions of the extension take after the sequences."""
    scoring, ends = recurrence.scoring, recurrence.ends
    free = (ends.query_start, ends.query_end, ends.subject_start, ends.subject_end)
    return (
        np.ascontiguousarray(scoring.matrix.scores.astype(np.int8)),
        max(scoring.max_score, 0),
        int(scoring.gap_open),
        int(scoring.gap_extend),
        recurrence.is_local,
        sum(flag << place for place, flag in enumerate(free)),
        path,
        memory,
        threads or available_processors(),
        tile,
        beam,
        extension.active_instruction_set(),
    )


def position_gap_costs(rows: QueryProfile | None) -> tuple[ScoreBytes, GapCosts]:
    """Return scores and gap costs by position as the extension takes them, empty where there are none.

    Returns
    -------
    scores : ndarray, shape (n_rows, 32) or (0, 32), int8
    gaps : ndarray, shape (n_rows, 4) or (0, 4), int16
    """
    scores, gaps = np.zeros((0, N_CODES), dtype=np.int8), np.zeros((0, len(GAP_COLUMNS)), dtype=np.int16)
    if rows is not None:
        scores = np.ascontiguousarray(rows.scores)
    if rows is not None and rows.gaps is not None:
        gaps = np.stack([getattr(rows.gaps, name) for name in GAP_COLUMNS], axis=1)
    return scores, gaps


def _run(
    query: QueryLike,
    subject: ByteArray,
    recurrence: Recurrence,
    memory: int,
    threads: int | None,
    tile: int,
    beam: int,
    *,
    path: bool,
) -> Counted:
    """Call the extension, the path left out unless asked for."""
    rows = position_specific_rows(query)
    recurrence = recurrence.with_bounds_for([] if rows is None else [rows])
    check_score_range(len(query), len(subject), recurrence)
    settings = _settings(recurrence, memory, threads, tile, beam, path=path)
    result: Counted | int = extension.load().align(
        np.ascontiguousarray(codes_of(query)), np.ascontiguousarray(subject), *settings, *position_gap_costs(rows)
    )
    if isinstance(result, int):
        raise _too_large(len(subject), memory, result)
    return result


def _too_large(subject_length: int, memory: int, needed: int) -> MemoryLimitError:
    return MemoryLimitError(
        f"aligning with a subject of {subject_length} residues takes more memory than the {memory >> 20} MiB left "
        f"for it; allow at least {-(-needed >> 20)} MiB"
    )
