"""Parts ``profiles`` and ``kernels`` of `parity.py`: random profiles, scored and aligned in other ways."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import chain, product
from typing import NamedTuple
from unittest import mock

import numpy as np
import numpy.typing as npt

from benchmarks.speed.cpu_scans import engine_for
from benchmarks.support.common import table
from benchmarks.support.timing import say
from swsearch import Database, extension
from swsearch.alignment import PairAlignment
from swsearch.alphabet import N_CODES, PROTEIN, ByteArray
from swsearch.blocks import Chunk
from swsearch.engines import create_engine, create_pair_aligner
from swsearch.engines.base import Engine, LoadedChunk, PairAligner, ScoreArray
from swsearch.engines.cpu.engine import LANE_LAYOUTS
from swsearch.options.kinds import MODES, Mode
from swsearch.recurrence import Recurrence
from swsearch.scoring import PADDING_SCORE, PositionGapCosts, QueryLike, QueryProfile, Scoring, matrix_names, rows_of

N_LETTERS = len(PROTEIN.letters)
ENTRIES = ((-8, 11), (-127, 127), (-127, -1), (-20, 127))
"""Least and largest scores of profiles."""

KERNELS = {"both": None, "batch": 10**9, "wavefront": 0}
"""Ways of the GPU engine, with what they set `launch.FAIR_SHARE` to."""

QUERIES, LONGEST = 24, 300
"""Queries that are scored together, one in four a sequence, and most residues of them and of subjects."""

LIMITS = {2_047: (20, 1), 32_767: (4, 200)}
"""Scores that lanes end at, with queries that are scored together, and how many times fewer pairs there are."""

ALIGNED = 600
"""Pairs of each mode and kind of entries that are aligned."""

SHOWN = 5
"""Differences of each kind that are printed."""

RANGES = [(-9, 12), (-9, 12), (-4, 5), (-127, 127), (-30, 60), (-127, -1), (100, 127)]
COSTS = [0, 3, 14, 14, 60, 3000, 10_000]

Scores = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Profiles of one length, subjects of one length, and what is computed."""

    queries: list[QueryProfile]
    subjects: npt.NDArray[np.uint8]
    recurrence: Recurrence


def draw(generator: np.random.Generator, n_queries: int, n_subjects: int, long: bool) -> Batch:
    """Draw a batch; long ones have scores beyond 16 bits."""
    m, n = (560, 560) if long else generator.integers(1, 61, 2).tolist()
    low, high = (100, 127) if long else RANGES[generator.integers(len(RANGES))]
    mode: Mode = "local" if long else MODES[generator.integers(3)]
    scoring = Scoring("BLOSUM62", int(generator.integers(0, 20)), int(generator.integers(0, 4)))
    with_gaps = not long and generator.random() < 0.4
    most = int(COSTS[generator.integers(len(COSTS))])
    queries = []
    for place in range(n_queries):
        codes = generator.integers(0, N_LETTERS, m).astype(np.uint8)
        if not long and place % 10 == 9:
            queries.append(scoring.rows(codes))
            continue
        scores = np.full((m, N_CODES), PADDING_SCORE, dtype=np.int8)
        scores[:, :N_LETTERS] = generator.integers(low, high + 1, (m, N_LETTERS))
        gaps = PositionGapCosts(*generator.integers(0, most + 1, (4, m))) if with_gaps and place % 2 else None
        queries.append(QueryProfile(scores, codes, is_specific=True, gaps=gaps))
    subjects = generator.integers(0, N_LETTERS, (n_subjects, n)).astype(np.uint8)
    for place in range(0, n_subjects, 3):  # relatives: the best letters of a profile, some changed
        best = queries[place % n_queries].scores[:, :N_LETTERS].argmax(axis=1).astype(np.uint8)
        kept = generator.random(n) < 0.85
        subjects[place] = np.where(kept, np.resize(np.roll(best, int(generator.integers(0, 3))), n), subjects[place])
    return Batch(queries, subjects, Recurrence(scoring, mode))


def oracle(batch: Batch) -> Scores:
    """Score all pairs, shape (n_queries, n_subjects), by the recurrence, cell by cell over all pairs at once."""
    scoring, mode = batch.recurrence.scoring, batch.recurrence.mode
    n_queries, (n_subjects, n), m = len(batch.queries), batch.subjects.shape, len(batch.queries[0])
    shape = n_queries, n_subjects
    uniform = PositionGapCosts.uniform(m, scoring.gap_open, scoring.gap_extend)
    gaps = [query.gaps or uniform for query in batch.queries]
    F_open, F_extend, E_open, E_extend = (
        np.stack([getattr(each, name) for each in gaps]).astype(np.int64)[:, :, None]
        for name in ("deletion_open", "deletion_extend", "insertion_open", "insertion_extend")
    )
    scores = np.stack([query.scores for query in batch.queries]).astype(np.int64)
    H = np.zeros((n + 1, *shape), dtype=np.int64)
    if mode == "global":
        H[1:] -= (scoring.gap_open + scoring.gap_extend * np.arange(1, n + 1))[:, None, None]
    F = np.full((n + 1, *shape), -(10**12))
    left = np.zeros(shape, dtype=np.int64)
    best = np.zeros(shape, dtype=np.int64)
    for i in range(m):
        diagonal, E = H[0].copy(), F[0]
        left = left - F_extend[:, i] - (F_open[:, i] if i == 0 else 0)
        H[0] = left if mode == "global" else 0
        for j in range(1, n + 1):
            E = np.maximum(E, H[j - 1] - E_open[:, i]) - E_extend[:, i]
            F[j] = np.maximum(F[j], H[j] - F_open[:, i]) - F_extend[:, i]
            h = np.maximum(diagonal + scores[:, i][:, batch.subjects[:, j - 1]], np.maximum(E, F[j]))
            diagonal = H[j].copy()
            H[j] = np.maximum(h, 0) if mode == "local" else h
            if mode == "local":
                np.maximum(best, H[j], out=best)
        if mode == "semiglobal":
            np.maximum(best, H[n], out=best)
    if mode == "global":
        return H[n]
    return best if mode == "local" else np.maximum(best, H.max(axis=0))


def compare_with_numpy(options: argparse.Namespace) -> tuple[list[str], int]:
    """Compare the CPU engine with the oracle; return lines, and how many scores differ."""
    generator = np.random.default_rng(options.seed)
    pairs = dict.fromkeys(MODES, 0)
    by_position = batches = beyond_8 = beyond_16 = 0
    different = dict.fromkeys(extension.instruction_sets(), 0)
    while sum(pairs.values()) < options.pairs:
        batches += 1
        is_long = batches % 10 == 1
        batch = draw(generator, *((8, 24) if is_long else (60, 300)), is_long)
        expected, chunk = oracle(batch), chunk_of(list(batch.subjects))
        for name, way in product(different, LANE_LAYOUTS):
            engine = engine_for(name, 2)
            engine.way = way
            found = engine.score(engine.prepare(batch.queries, batch.recurrence), LoadedChunk(chunk))
            different[name] += int((found != expected[:, chunk.subjects]).sum())
        pairs[batch.recurrence.mode] += expected.size
        by_position += sum(query.gaps is not None for query in batch.queries) * len(batch.subjects)
        beyond_8 += int((expected > 255).sum())
        beyond_16 += int((expected > 65_535).sum())
        say(f"batch {batches}, {sum(pairs.values()):,} pairs, {sum(different.values())} different scores")
    rows = [
        [name, f"{sum(pairs.values()):,}", f"{len(LANE_LAYOUTS)}", f"{count}"] for name, count in different.items()
    ]
    modes = ", ".join(f"{count:,} {mode}" for mode, count in pairs.items())
    return [
        f"{sum(pairs.values()):,} pairs of a profile, or a sequence among profiles, with a subject, in {batches} "
        f"batches from seed {options.seed}: {modes};",
        f"{by_position:,} with gap costs by position; {beyond_8:,} scores above 255, {beyond_16:,} above 65,535.", "",
        *table(["", "pairs", "ways of using lanes", "different scores"], rows),
    ], sum(different.values())  # fmt: skip


def sequence(generator: np.random.Generator, length: int) -> ByteArray:
    return generator.integers(0, N_LETTERS, length).astype(np.uint8)


def profile(generator: np.random.Generator, length: int, entries: tuple[int, int]) -> QueryProfile:
    """Make a profile of random entries, in which its own sequence scores well."""
    codes = sequence(generator, length)
    scores = np.full((length, N_CODES), PADDING_SCORE, dtype=np.int8)
    scores[:, :N_LETTERS] = generator.integers(entries[0], entries[1] + 1, (length, N_LETTERS))
    liked = generator.random(length) < 0.5
    scores[np.flatnonzero(liked), codes[liked]] = entries[1]
    return QueryProfile(scores, codes, is_specific=True)


def related(generator: np.random.Generator, codes: ByteArray) -> ByteArray:
    """Return a changed copy of a sequence, with some residues lost and some put in."""
    kept = codes[generator.random(len(codes)) > 0.04]
    copied = np.where(generator.random(len(kept)) < 0.3, sequence(generator, len(kept)), kept).astype(np.uint8)
    at = int(generator.integers(0, len(copied) + 1))
    return np.concatenate((copied[:at], sequence(generator, int(generator.integers(0, 9))), copied[at:]))


def chunk_of(subjects: Sequence[ByteArray]) -> Chunk:
    """Lay subjects out as one chunk."""
    with Database.from_records([PROTEIN.decode(each) for each in subjects]) as database:
        (chunk,) = database.chunks(1 << 40)
    return chunk


def scores_of(engine: Engine, queries: Sequence[QueryLike], chunk: Chunk, recurrence: Recurrence) -> ScoreArray:
    """Score every query with every subject, in the chunk's order."""
    loaded = engine.load(chunk)
    rows = [rows_of(each, recurrence.scoring) for each in queries]
    try:
        return engine.score(engine.prepare(rows, recurrence), loaded)
    finally:
        engine.release(loaded)


class Comparison:
    """Rows of the table by their name: how many were compared, how many differ, and between what the scores were."""

    def __init__(self) -> None:
        self.counts: dict[str, list[int]] = {}
        self.examples: list[str] = []

    def add(self, what: str, n: int, differing: Sequence[str], low: int, high: int) -> None:
        """Add to a row."""
        seen = self.counts.setdefault(what, [0, 0, low, high])
        seen[:] = seen[0] + n, seen[1] + len(differing), min(seen[2], low), max(seen[3], high)
        self.examples += [f"{what}: {each}" for each in differing[:SHOWN]]
        say(f"{what}: {n:,} compared, {len(differing):,} differing")


class Case(NamedTuple):
    """Queries and subjects that the GPU and the CPU score."""

    name: str
    queries: list[QueryLike]
    subjects: list[ByteArray]
    recurrence: Recurrence


def random_cases(n_pairs: int, seed: int) -> Iterator[Case]:
    """Yield random profiles, and a sequence among four, in every mode, with every range of entries."""
    kinds = list(product(MODES, ENTRIES))
    n_subjects = -(-n_pairs // (len(kinds) * len(KERNELS) * QUERIES))
    for number, (mode, entries) in enumerate(kinds):
        generator = np.random.default_rng([seed, number])
        lengths = generator.integers(0, LONGEST + 1, QUERIES).tolist()
        first = profile(generator, 700, entries)  # its own sequence scores beyond 16 bits with large entries
        queries: list[QueryLike] = [first]
        queries += [
            sequence(generator, n) if k % 4 == 3 else profile(generator, n, entries) for k, n in enumerate(lengths)
        ]
        codes = first.codes
        subjects = [sequence(generator, int(n)) for n in generator.integers(1, LONGEST + 1, n_subjects)]
        subjects += [codes, *(codes[: 255 + k] for k in range(5)), *(related(generator, codes) for _ in range(6))]
        name = f"{mode}, entries {entries[0]} to {entries[1]}"
        yield Case(name, queries, subjects, Recurrence(Scoring(), mode))


def limit_cases(n_pairs: int, seed: int) -> Iterator[Case]:
    """Yield copies of a sequence and pieces of it that score about what a lane can hold, with every matrix."""
    names = matrix_names(PROTEIN)
    for (number, (limit, (n_queries, fewer))), (place, name) in product(enumerate(LIMITS.items()), enumerate(names)):
        generator = np.random.default_rng([seed, 2_000 + number, place])
        scoring = Scoring(name) if place % 2 else Scoring(name, 7 + place, 2)
        codes = generator.integers(0, 20, limit).astype(np.uint8)
        own = np.cumsum(scoring.matrix.scores[codes, codes], dtype=np.int64)
        codes = codes[: int(np.searchsorted(own, limit * 1.2))]
        queries: list[QueryLike] = [
            np.where(generator.random(len(codes)) < 0.002 * k, 19, codes).astype(np.uint8) for k in range(n_queries)
        ]
        subjects = []
        for _ in range(-(-n_pairs // (len(names) * len(KERNELS) * n_queries * fewer))):
            first = int(generator.integers(0, int(np.searchsorted(own, limit * 0.1))))
            last = int(np.searchsorted(own, own[first] + limit + int(generator.integers(-60, 61))))
            subjects.append(np.concatenate((sequence(generator, 9), codes[first:last], sequence(generator, 9))))
        what = f"{len(names)} matrices, scores around {limit:,}"
        yield Case(what, queries, subjects, Recurrence(scoring, "local"))


def compare_scores(comparison: Comparison, gpu: Engine, cpu: Engine, cases: Iterable[Case]) -> None:
    """Compare scores of the GPU, by each kernel, with those of the CPU."""
    from swsearch.engines.gpu import launch

    for case in cases:
        chunk = chunk_of(case.subjects)
        expected = scores_of(cpu, case.queries, chunk, case.recurrence)
        for way, fair_share in KERNELS.items():
            share = launch.FAIR_SHARE if fair_share is None else fair_share
            with mock.patch.object(launch, "FAIR_SHARE", share):
                found = scores_of(gpu, case.queries, chunk, case.recurrence)
            differing = [
                f"query {q} x {chunk.lengths[s]}: {found[q, s]}, expected {expected[q, s]}"
                for q, s in np.argwhere(found != expected).tolist()
            ]
            what = f"{case.name}, gpu ({way}) with cpu"
            comparison.add(what, found.size, differing, int(expected.min()), int(expected.max()))


def told(pair: PairAlignment) -> tuple[int, int, int, object]:
    """Return what makes an alignment."""
    return pair.score, pair.query_start, pair.subject_start, pair.cigar


def compare_alignments(comparison: Comparison, gpu: PairAligner, cpu: PairAligner, seed: int) -> None:
    """Compare alignments of the GPU with those of the CPU, many at a time and some alone."""
    for number, (mode, entries) in enumerate(product(MODES, ENTRIES)):
        generator = np.random.default_rng([seed, 1_000 + number])
        recurrence = Recurrence(Scoring(), mode)
        queries = [profile(generator, int(n), entries) for n in generator.integers(1, 2 * LONGEST, ALIGNED // 4)]
        pairs = [(query, related(generator, query.codes)) for query in queries for _ in range(4)]
        expected, many = ([told(each) for each in one.align_many(pairs, recurrence)] for one in (cpu, gpu))
        alone = {k: told(gpu.align(*pairs[k], recurrence)) for k in range(0, len(pairs), 20)}
        differing = [f"pair {k}" for k, (a, b) in enumerate(zip(many, expected, strict=True)) if a != b]
        differing += [f"pair {k} alone" for k, each in alone.items() if each != expected[k]]
        scores = [each[0] for each in expected]
        name = f"{mode}, entries {entries[0]} to {entries[1]}, alignments"
        comparison.add(name, len(many) + len(alone), differing, min(scores), max(scores))


def compare_kernels(options: argparse.Namespace) -> tuple[list[str], int]:
    """Compare the GPU with the CPU; return lines, and how much differs."""
    comparison, n_pairs, seed = Comparison(), options.pairs, options.seed
    with ExitStack() as opened:
        cpu, gpu = (opened.enter_context(create_engine(name)) for name in ("cpu", "gpu"))
        compare_scores(comparison, gpu, cpu, chain(random_cases(n_pairs, seed), limit_cases(n_pairs, seed)))
        fast, slow = (opened.enter_context(closing(create_pair_aligner(name))) for name in ("gpu", "cpu"))
        compare_alignments(comparison, fast, slow, seed)
        about = f"engine {gpu.description}; seed {seed}"
    rows = [
        [what, f"{n:,}", f"{wrong:,}", f"{low:,} to {high:,}"]
        for what, (n, wrong, low, high) in comparison.counts.items()
    ]
    lines = [about, "", *table(["what", "compared", "differing", "scores"], rows), *comparison.examples]
    return lines, sum(wrong for _, wrong, _, _ in comparison.counts.values())
