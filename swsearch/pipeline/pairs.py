"""Null models and alignments of pairs, in batches, and the job behind `swsearch.align`.

`LocalPairBackend` computes them in this process, on threads or on a GPU.

Additional local alignments (HSPs) of a hit: each is the best alignment that shares no residue pair with those before
it (Waterman and Eggert, J. Mol. Biol. 197:723, 1987). They correspond to BLAST's HSPs, but are exact. Each has the
E-value of its own score; BLAST's sum statistics are not used. One additional alignment costs one to two times the
cells of the pair (``cpu/pairs/further.cpp``, ``cpu/pairs/rows.cpp``).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import FloatArray, IntArray
from swsearch.engines.base import Engine, Pair, PairAligner, ScoreArray
from swsearch.engines.cpu import tracing
from swsearch.engines.cpu.pairs import align_codes
from swsearch.engines.pools import PoolPairs, make_pool, rows_pool
from swsearch.errors import EngineError, InputError, MemoryLimitError, check_choice
from swsearch.inputs import Query, apply_profile_scoring, read_pair, read_queries
from swsearch.options.kinds import PairSelection
from swsearch.pipeline.null_models import UNCHANGED, NullModelFitter, NullModelRequest, score_shuffled
from swsearch.pipeline.options import check_integer_gap_costs
from swsearch.pipeline.subjects import SubjectReader
from swsearch.profiles.profile import Profile
from swsearch.profiles.query_alignment import QueryAlignment
from swsearch.recurrence import Recurrence
from swsearch.results import SubjectCodes
from swsearch.scoring import Scoring, position_specific_rows
from swsearch.statistics.null_model import PairNullModels

if TYPE_CHECKING:
    from Bio.Align import Alignment
from itertools import groupby, pairwise
from operator import itemgetter

import numpy.typing as npt

from swsearch import extension
from swsearch.db.arrays import offsets_of
from swsearch.engines.cpu.columns import UncountedAlignments, count_pools
from swsearch.engines.cpu.tracing import align_strands, position_gap_costs
from swsearch.frameshift_alignment import NUCLEOTIDES_OF, SHIFT_MARKS, ShiftedAlignment
from swsearch.reference import Cigar
from swsearch.translation.frameshift_reference import read_codons


def aligned_pairs(pair: PairAlignment) -> npt.NDArray[np.int64]:
    """Return the residues that an alignment pairs: places in query and subject, shape (n, 2), int64."""
    ops = pair.column_ops
    paired = ops == ord("M")
    query = pair.query_start + np.cumsum(ops != ord("D")) - 1
    subject = pair.subject_start + np.cumsum(ops != ord("I")) - 1
    return np.ascontiguousarray(np.stack([query[paired], subject[paired]], axis=1), dtype=np.int64)


HspPath = tuple[int, int, int, Cigar]
"""A further alignment: score, first residues of query and subject, and CIGAR."""


def find_further_hsps(first: PairAlignment, max_hsps: int, min_score: int = 1) -> list[HspPath]:
    """Find alignments of a pair after its best local one.

    Parameters
    ----------
    min_score : int, optional
        The least score of one, at least 1.

    Returns
    -------
    list of tuple
        Scores descend; `PairAlignment.with_path` makes an alignment of each.
    """
    scoring = first.scoring
    paths = extension.load().align_further(
        np.ascontiguousarray(first.query),
        np.ascontiguousarray(first.subject),
        np.ascontiguousarray(scoring.matrix.scores.astype(np.int8)),
        aligned_pairs(first),
        int(scoring.gap_open),
        int(scoring.gap_extend),
        min_score,
        max_hsps,
        *position_gap_costs(first.query_rows),
    )
    return [each[:4] for each in paths]


def align_with_shifts(
    queries: Sequence[Query], of_query: IntArray, subjects: SubjectCodes, recurrence: Recurrence, threads: int
) -> AlignmentTable:
    """Align strands with subjects.

    Parameters
    ----------
    of_query : ndarray, shape (n,), int64
        The strand that each subject is aligned with.
    subjects : SubjectCodes
        n of them.

    Returns
    -------
    AlignmentTable
        n alignments, counted as `swsearch.frameshift_alignment.ShiftedAlignment` counts them.
    """
    rows = np.arange(len(of_query), dtype=np.int64)
    pool, of_subjects = make_pool([query.codes for query in queries]), (subjects.codes, subjects.offsets)
    raw = align_strands(pool, of_subjects, np.stack([of_query, rows], axis=1), recurrence, threads)
    cigars = _cigars(raw)
    read, letters = _read_residues(queries, of_query, raw.query_start, cigars)
    plain = [
        tuple((sum(n for n, _ in some), op) for op, some in groupby(_without_shifts(cigar), key=itemgetter(1)))
        for cigar in cigars
    ]
    traced = zip(raw.score.tolist(), [0] * len(rows), raw.subject_start.tolist(), plain, strict=True)
    pairs, matrix = np.stack([rows, rows], axis=1), recurrence.scoring.matrix
    batch = PoolPairs(make_pool(read), of_subjects, pairs, (letters, subjects.letters))
    counted = count_pools(UncountedAlignments.from_raw(list(traced)), batch, matrix, threads)
    steps = np.zeros(256, dtype=np.int64)
    for operation, n in NUCLEOTIDES_OF.items():
        steps[ord(operation)] = n
    is_shift = np.isin(raw.run_operations, [ord(operation) for operation in SHIFT_MARKS])
    shifts = _sum_runs(raw.run_lengths * is_shift, raw.run_offsets)
    openings = _sum_runs((raw.run_operations != ord("M")).astype(np.int64), raw.run_offsets)
    nucleotides = _sum_runs(raw.run_lengths * steps[raw.run_operations], raw.run_offsets)
    return replace(
        counted, score=raw.score, query_start=raw.query_start, query_end=raw.query_start + nucleotides,
        subject_start=raw.subject_start, length=counted.length + shifts, gaps=counted.gaps + shifts,
        gap_openings=openings, run_offsets=raw.run_offsets, run_lengths=raw.run_lengths,
        run_operations=raw.run_operations,
    )  # fmt: skip


def align_strand(
    query: Query, subject: ByteArray, letters: ByteArray | None, recurrence: Recurrence
) -> ShiftedAlignment:
    """Align one strand with a subject, codes of shape (n,), uint8, that is shown with letters of that shape."""
    pair = np.zeros((1, 2), dtype=np.int64)
    raw = align_strands(make_pool([query.codes]), make_pool([subject]), pair, recurrence, 1)
    (cigar,) = _cigars(raw)
    return ShiftedAlignment(
        query.codes, subject, recurrence.scoring, int(raw.score[0]), int(raw.query_start[0]),
        int(raw.subject_start[0]), cigar, query.letters, letters, frame_shift=recurrence.frame_shift,
    )  # fmt: skip


def _cigars(raw: UncountedAlignments) -> list[tuple[tuple[int, str], ...]]:
    operations = raw.run_operations.tobytes().decode("ascii")
    runs = tuple(zip(raw.run_lengths.tolist(), operations, strict=True))
    return [runs[begin:end] for begin, end in pairwise(raw.run_offsets.tolist())]


def _without_shifts(cigar: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    return [(n, operation) for n, operation in cigar if operation not in SHIFT_MARKS]


def _read_residues(
    queries: Sequence[Query], of_query: IntArray, starts: IntArray, cigars: Sequence[tuple[tuple[int, str], ...]]
) -> tuple[list[ByteArray], ByteArray | None]:
    """Return the residues that alignments read, and their letters, one after the other, where some are masked."""
    strands = [queries[k] for k in of_query.tolist()]
    of_each = list(zip(strands, starts.tolist(), cigars, strict=True))
    read = [read_codons(strand.codes, start, cigar) for strand, start, cigar in of_each]
    if all(strand.letters is None for strand in strands):
        return read, None
    letters_read = [PROTEIN.decode_table[each.codes] if each.letters is None else each.letters for each in strands]
    letters = [read_codons(row, start, cigar) for row, (_, start, cigar) in zip(letters_read, of_each, strict=True)]
    return read, np.concatenate(letters)


def _sum_runs(of_runs: IntArray, offsets: IntArray) -> IntArray:
    """Add up what runs have, by alignment; offsets of shape (n + 1,), result of shape (n,)."""
    return np.diff(offsets_of(of_runs)[offsets])


ALIGNMENT_MEMORY = 32 << 20
"""Bytes for the tables of each hit that is being aligned; two titins fit, and more memory saves little time. Hits of
more than 200,000 residues together take what `swsearch.engines.cpu.tracing.memory_needed` says, one at a time."""


CPU_ALIGN_MIN_THREADS = 4
"""Threads from which on the CPU aligns hits, and not a GPU that is scoring meanwhile: a hit of 350 residues takes a
thread 85 us, and launches on the GPU would wait for the scoring kernels each time. A choice."""


@dataclass(frozen=True)
class PairsToAlign:
    """Pairs of queries and subjects, as a search has found them.

    Parameters
    ----------
    queries : sequence of Query
        Some.
    query_indices : ndarray, shape (n,), int64
        The query of each pair, by its place among these.
    subjects : ndarray, shape (n,), int64
        Places in the input.
    scores : ndarray, shape (n,), int64
        Matrix units.
    """

    queries: Sequence[Query]
    query_indices: IntArray
    subjects: IntArray
    scores: IntArray


@dataclass(frozen=True)
class HspRequest:
    """Pairs whose further alignments are wanted, after the best of each.

    Parameters
    ----------
    pairs : PairsToAlign
        n of them.
    best : AlignmentTable
        Their best alignments.
    min_scores : ndarray, shape (n,), int64
        Least scores of others, matrix units.
    max_hsps : int
        Most others of a pair.
    """

    pairs: PairsToAlign
    best: AlignmentTable
    min_scores: IntArray
    max_hsps: int


class LocalPairBackend:
    """Computes nulls and alignments of pairs in this process; see `swsearch.pipeline.backend.PairBackend`.

    Parameters
    ----------
    recurrence : Recurrence
        Scoring, mode and frameshift cost of alignments.
    threads : int
        Pairs that are aligned at a time.
    fitter : NullModelFitter or None
        Makes nulls, where statistics are fitted.
    engine : Engine or None
        May score copies, and lend an aligner, which works in place of few threads.
    parallel : int
        Batches that are worked on at a time: with two, one computes while Python prepares the other.
    """

    def __init__(
        self,
        recurrence: Recurrence,
        threads: int,
        fitter: NullModelFitter | None,
        engine: Engine | None = None,
        parallel: int = 1,
    ) -> None:
        self.parallel = parallel
        self.recurrence, self.threads, self.fitter = recurrence, threads, fitter
        self._engine = engine
        self._guard, self._aligner = threading.Lock(), ExitStack()
        self._lent: PairAligner | None = None

    def fit_null_models(self, requests: Sequence[NullModelRequest], subjects: SubjectReader) -> list[PairNullModels]:
        """Return the nulls of the pairs of some queries."""
        assert self.fitter is not None
        return self.fitter.fit_pairs(requests, partial(subjects.read_masked, threads=self.threads), self._engine)

    def align(self, pairs: PairsToAlign, subjects: SubjectReader) -> tuple[AlignmentTable, SubjectCodes]:
        """Align pairs; return the alignments and the subjects."""
        codes = subjects.read_with_letters(pairs.subjects, self.threads)
        return self.align_codes(pairs.queries, pairs.query_indices, codes, pairs.scores), codes

    def align_codes(
        self, queries: Sequence[Query], of_query: IntArray, subjects: SubjectCodes, scores: IntArray | None = None
    ) -> AlignmentTable:
        """Align n subjects, each with a query: ``of_query``, and ``scores`` if they are known, are of shape (n,)."""
        if self.recurrence.frame_shift is not None:
            return align_with_shifts(queries, of_query, subjects, self.recurrence, self.threads)
        with self._guard:
            aligner = self._aligner_for(len(of_query))
        with nullcontext() if aligner is None else self._guard:
            return align_pairs(self.recurrence, queries, subjects, of_query, scores, self.threads, aligner)

    def score_codes(self, queries: Sequence[Query], of_query: IntArray, subjects: SubjectCodes) -> ScoreArray:
        """Score n subjects, each with a query of ``of_query``, shape (n,): twenty times as fast as to align them."""
        inputs = [query.alignment_input(self.recurrence.scoring) for query in queries]
        pairs, pool = np.stack([of_query, np.arange(len(of_query))], axis=1), (subjects.codes, subjects.offsets)
        itself = range(UNCHANGED, UNCHANGED + 1)
        return score_shuffled(inputs, pool, pairs, itself, self.recurrence, self.threads, self._engine)[:, 0]

    def _aligner_for(self, n: int) -> PairAligner | None:
        if self._lent is None and self._engine is not None and self.threads < CPU_ALIGN_MIN_THREADS:
            self._lent = self._engine.pair_aligner(n)
            if self._lent is not None:
                self._aligner.enter_context(self._lent)
        return self._lent

    def find_hsps(self, request: Callable[[], HspRequest], subjects: SubjectReader) -> list[list[HspPath]] | None:
        """Return None: further alignments are computed on access."""
        return None

    def align_pair(self, query: Query, place: int, subjects: SubjectReader) -> PairAlignment:
        """Align a query with one subject, e.g. on access to a hit after the search."""
        subject = subjects.read_with_letters(np.array([place], dtype=np.int64))
        codes, letters = subject.codes_of(0), subject.letters_of(0)
        if self.recurrence.frame_shift is not None:
            return align_strand(query, codes, letters, self.recurrence)
        return align_alone(self.recurrence, query, codes, letters)

    def close(self) -> None:
        """Release the aligner."""
        with self._guard:
            self._engine = self._lent = None
            self._aligner.close()


def align_alone(recurrence: Recurrence, query: Query, codes: ByteArray, letters: ByteArray | None) -> PairAlignment:
    """Align a query with a subject, codes and letters of shape (n,), uint8, in as much memory as that takes."""
    scored = query.alignment_input(recurrence.scoring)
    rows = position_specific_rows(scored)
    gaps_vary = rows is not None and rows.gaps is not None
    memory = max(ALIGNMENT_MEMORY, tracing.memory_needed(len(scored), len(codes), gaps_vary=gaps_vary))
    return align_codes(scored, codes, recurrence, memory=memory).with_letters(query.letters, letters)


def align_pairs(
    recurrence: Recurrence,
    queries: Sequence[Query],
    subjects: SubjectCodes,
    of_query: IntArray,
    scores: IntArray | None,
    threads: int,
    aligner: PairAligner | None = None,
) -> AlignmentTable:
    """Align subjects with queries.

    Parameters
    ----------
    subjects : SubjectCodes
        n of them.
    of_query : ndarray, shape (n,), int64
        The query that each is aligned with.
    scores : ndarray, shape (n,), int64, or None
        The pairs' scores, where these are known.
    threads : int
        Pairs that are aligned at a time.
    aligner : PairAligner, optional
        What aligns instead of the CPU, which goes on where it fails.
    """
    scored = [query.alignment_input(recurrence.scoring) for query in queries]
    has_profiles = any(query.profile is not None for query in queries)
    places = np.stack([of_query, np.arange(len(of_query), dtype=np.int64)], axis=1)
    letters = _display_letters(queries), subjects.letters
    rows = rows_pool(scored, recurrence.scoring) if has_profiles else None
    pool = make_pool([query.codes for query in queries])
    batch = PoolPairs(pool, (subjects.codes, subjects.offsets), places, letters, rows, scores)
    if aligner is not None:
        with contextlib.suppress(EngineError, MemoryLimitError):
            return aligner.align_pools(batch, recurrence)
    table, needed = tracing.align_pools(batch, recurrence, tracing.BatchLimits(ALIGNMENT_MEMORY, threads))
    alone = np.flatnonzero(needed)
    if not len(alone):
        return table
    alignments = [
        align_alone(recurrence, queries[k], subjects.codes_of(row), subjects.letters_of(row))
        for row, k in zip(alone.tolist(), of_query[alone].tolist(), strict=True)
    ]
    done = np.flatnonzero(needed == 0)
    return AlignmentTable.merge([(done, table.take(done)), (alone, AlignmentTable.from_pairs(alignments))])


def _display_letters(queries: Sequence[Query]) -> ByteArray | None:
    """Return the letters that queries are shown with, one after the other; None where nothing is masked."""
    if all(query.letters is None for query in queries):
        return None
    decode = PROTEIN.decode_table
    return np.concatenate([decode[query.codes] if query.letters is None else query.letters for query in queries])


@dataclass(frozen=True)
class PairwiseJob:
    """Pairs to align.

    Parameters
    ----------
    queries, subjects : sequence of Query
        The sequences read.
    kind : {"one", "order", "all"}
        Which pairs of them.
    recurrence : Recurrence
        Scoring, mode and frameshift cost.
    """

    queries: Sequence[Query]
    subjects: Sequence[Query]
    kind: PairSelection
    recurrence: Recurrence

    @classmethod
    def read(
        cls, a: Any, b: Any, kind: str, recurrence: Recurrence, has_explicit_scoring: bool, allow_dna: bool
    ) -> PairwiseJob:
        """Read both sides, with the gap costs that profiles go with where none are named."""
        check_choice("pairs", kind, ("one", "order", "all"))
        scoring = recurrence.scoring
        if kind == "one":
            query, subject, used = read_pair(a, b, scoring, has_explicit_scoring, allow_dna)
            _check_scale([query], scoring)
            return cls([query], [subject], "one", replace(recurrence, scoring=used))
        if isinstance(b, (Profile, QueryAlignment)):
            raise InputError(f"b: got a {type(b).__name__}, expected sequences; give profiles as a")
        alphabet = scoring.matrix.alphabet
        profiles: Scoring | None = scoring if alphabet is PROTEIN else None
        queries = read_queries(a, alphabet, what="a", allow_dna=allow_dna, scoring=profiles)
        subjects = read_queries(b, alphabet, what="b", allow_dna=allow_dna)
        if kind == "order" and len(queries) != len(subjects):
            raise InputError(
                f"pairs: got {len(queries):,} sequences as a and {len(subjects):,} as b, expected equal numbers; use "
                "pairs='all' to align all with all"
            )
        _check_scale(queries, scoring)
        used = apply_profile_scoring(queries, scoring, has_explicit_scoring)
        return cls(queries, subjects, kind, replace(recurrence, scoring=used))  # type: ignore[arg-type]  # checked

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.queries) * (len(self.subjects) if self.kind == "all" else 1)

    @cached_property
    def cells(self) -> int:
        """Query length times subject length, over all pairs."""
        if self.kind == "all":
            return sum(len(each.codes) for each in self.queries) * sum(len(each.codes) for each in self.subjects)
        return sum(len(query.codes) * len(subject.codes) for query, subject in self)

    def __iter__(self) -> Iterator[tuple[Query, Query]]:
        if self.kind == "all":
            return product(self.queries, self.subjects)
        return zip(self.queries, self.subjects, strict=True)

    def _iterate(self) -> Iterator[Pair]:
        scoring = self.recurrence.scoring
        scored = {id(query): query.alignment_input(scoring) for query in self.queries}
        return ((scored[id(query)], subject.codes) for query, subject in self)

    def scores(self, aligner: PairAligner) -> float | ScoreArray | FloatArray:
        """Return the pairs' scores: one, those in order, shape (n,), or all, shape (n_a, n_b).

        They are int32, or float64 where gap costs are fractions.
        """
        scores: ScoreArray | FloatArray = np.fromiter(
            aligner.score_many(self._iterate(), self.recurrence), np.int32, self.n_pairs
        )
        scoring = self.recurrence.scoring
        if self.kind == "one":
            return scoring.to_display(int(scores[0]))
        scores = scores if scoring.scale == 1 else scores / scoring.scale
        return scores.reshape(len(self.queries), -1) if self.kind == "all" else scores

    def alignments(self, aligner: PairAligner) -> Alignment | list[Alignment] | list[list[Alignment]]:
        """Return the pairs' alignments: one, those in order, or a list for each query."""
        if self.kind == "one":
            pair = aligner.align(*next(self._iterate()), self.recurrence)
            return pair.to_biopython(self.queries[0].identifier, self.subjects[0].identifier)
        alignments = aligner.align_many(self._iterate(), self.recurrence)
        every = [
            pair.to_biopython(query.identifier, subject.identifier)
            for pair, (query, subject) in zip(alignments, self, strict=True)
        ]
        n = len(self.subjects)
        return every if self.kind == "order" else [every[at : at + n] for at in range(0, len(every), n)]


def _check_scale(queries: Sequence[Query], scoring: Scoring) -> None:
    """Raise if gap costs are fractions, which profiles, whose scores are whole, do not go with."""
    if any(query.profile is not None for query in queries):
        check_integer_gap_costs(scoring, "with a profile")
