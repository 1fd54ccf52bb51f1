"""Parts ``profiles`` and ``kernels`` of `parity.py`: random profiles, scored and aligned in other ways."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from benchmarks.speed.cpu_scans import engine_for
from benchmarks.support.common import table
from benchmarks.support.timing import say
from swsearch import Database, reference
from swsearch.alignment import PairAlignment
from swsearch.alphabet import N_CODES, PROTEIN, ByteArray
from swsearch.blocks import Chunk
from swsearch.engines import create_engine, create_pair_aligner
from swsearch.engines.base import Engine, LoadedChunk, ScoreArray
from swsearch.engines.cpu import extension
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

SAMPLE = 40
"""Pairs of each group of queries that the reference scores."""

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
            engine.lane_layout = way
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


@contextmanager
def kernels(fair_share: int | None) -> Iterator[None]:
    """Let one of the kernels take everything for a while."""
    from swsearch.engines.gpu import launch

    before = launch.FAIR_SHARE
    if fair_share is not None:
        launch.FAIR_SHARE = fair_share
    try:
        yield
    finally:
        launch.FAIR_SHARE = before


def scores_of(engine: Engine, queries: Sequence[QueryLike], chunk: Chunk, recurrence: Recurrence) -> ScoreArray:
    """Score every query with every subject, in the chunk's order."""
    loaded = engine.load(chunk)
    try:
        return engine.score(
            engine.prepare([rows_of(each, recurrence.scoring) for each in queries], recurrence), loaded
        )
    finally:
        engine.release(loaded)


def chunk_of(subjects: Sequence[ByteArray]) -> Chunk:
    """Lay subjects out as one chunk."""
    with Database.from_records([PROTEIN.decode(each) for each in subjects]) as database:
        (chunk,) = database.chunks(1 << 40)
    return chunk


class Comparison:
    """Counts of compared and differing scores, with examples."""

    def __init__(self) -> None:
        self.rows: list[list[object]] = []
        self.examples: list[str] = []
        self.wrong = 0

    def add(self, what: str, n: int, differing: Sequence[str], extremes: str) -> None:
        """Note how many were compared and which differed; ``extremes`` says between what the scores were."""
        self.rows.append([what, f"{n:,}", f"{len(differing):,}", extremes])
        self.examples += [f"{what}: {each}" for each in differing[:SHOWN]]
        self.wrong += len(differing)
        say(f"{what}: {n:,} compared, {len(differing):,} differing, {extremes}")


def differences(found: ScoreArray, expected: ScoreArray) -> Iterator[tuple[int, int, str]]:
    """Yield the places of scores that differ, and both scores."""
    for q, s in np.argwhere(found != expected).tolist():
        yield q, s, f"{found[q, s]}, expected {expected[q, s]}"


def told(pair: PairAlignment) -> tuple[object, ...]:
    """Return what makes an alignment."""
    return pair.score, pair.query_start, pair.subject_start, pair.cigar


def compare_scores(comparison: Comparison, engines: dict[str, Engine], n_pairs: int, seed: int) -> None:
    """Compare scores: each engine's with the CPU engine's, and a sample of those with the reference's."""
    scoring, cpu = Scoring(), engines["cpu"]
    others: list[tuple[str, int | None]] = list(KERNELS.items()) if "gpu" in engines else []
    cases = list(product(MODES, ENTRIES))
    n_subjects = -(-n_pairs // (len(cases) * max(len(others), 1) * QUERIES))
    for number, (mode, entries) in enumerate(cases):
        generator = np.random.default_rng([seed, number])
        lengths = generator.integers(0, LONGEST + 1, QUERIES).tolist()
        queries: list[QueryLike] = [
            sequence(generator, n) if k % 4 == 3 else profile(generator, n, entries) for k, n in enumerate(lengths)
        ]
        queries[0] = profile(generator, 700, entries)  # its own sequence scores beyond 16 bits with large entries
        first = queries[0].codes
        subjects = [sequence(generator, int(n)) for n in generator.integers(1, LONGEST + 1, n_subjects - 12)]
        subjects += [first, *(first[: 255 + k] for k in range(5)), *(related(generator, first) for _ in range(6))]
        chunk = chunk_of(subjects)
        recurrence = Recurrence(scoring, mode)
        expected = scores_of(cpu, queries, chunk, recurrence)
        extremes = f"{expected.min():,} to {expected.max():,}"
        name = f"{mode}, entries {entries[0]} to {entries[1]}"
        compare_reference(comparison, f"{name}, cpu with reference", queries, chunk, recurrence, expected, generator)
        for way, fair_share in others:
            with kernels(fair_share):
                found = scores_of(engines["gpu"], queries, chunk, recurrence)
            differing = [f"query {q} x {chunk.lengths[s]}: {text}" for q, s, text in differences(found, expected)]
            comparison.add(f"{name}, gpu ({way}) with cpu", found.size, differing, extremes)


def around(
    generator: np.random.Generator, scoring: Scoring, limit: int, n_queries: int, n_subjects: int
) -> tuple[list[QueryLike], list[ByteArray]]:
    """Make copies of a sequence with a few changes, and pieces of it that score about the limit with it."""
    codes = generator.integers(0, 20, limit).astype(np.uint8)
    own = np.cumsum(scoring.matrix.scores[codes, codes], dtype=np.int64)
    codes = codes[: int(np.searchsorted(own, limit * 1.2))]
    queries: list[QueryLike] = [
        np.where(generator.random(len(codes)) < 0.002 * k, 19, codes).astype(np.uint8) for k in range(n_queries)
    ]
    subjects = []
    for _ in range(n_subjects):
        first = int(generator.integers(0, int(np.searchsorted(own, limit * 0.1))))
        last = int(np.searchsorted(own, own[first] + limit + int(generator.integers(-60, 61))))
        subjects.append(np.concatenate((sequence(generator, 9), codes[first:last], sequence(generator, 9))))
    return queries, subjects


def compare_limits(comparison: Comparison, engines: dict[str, Engine], n_pairs: int, seed: int) -> None:
    """Compare scores at and around what a lane can hold, with every matrix."""
    matrices = matrix_names(PROTEIN)
    for number, (limit, (n_queries, fewer)) in enumerate(LIMITS.items()):
        n_subjects = -(-n_pairs // (len(matrices) * len(KERNELS) * n_queries * fewer))
        counts = dict.fromkeys(KERNELS, 0)
        near, differing = 0, {way: list[str]() for way in KERNELS}
        for place, name in enumerate(matrices):
            generator = np.random.default_rng([seed, 2_000 + number, place])
            scoring = Scoring(name) if place % 2 else Scoring(name, 7 + place, 2)
            queries, subjects = around(generator, scoring, limit, n_queries, n_subjects)
            chunk = chunk_of(subjects)
            recurrence = Recurrence(scoring, "local")
            expected = scores_of(engines["cpu"], queries, chunk, recurrence)
            near += int((np.abs(expected.astype(np.int64) - limit) <= 2).sum())
            for way, fair_share in KERNELS.items():
                with kernels(fair_share):
                    found = scores_of(engines["gpu"], queries, chunk, recurrence)
                counts[way] += found.size
                differing[way] += [f"{name}: {text}" for _, _, text in differences(found, expected)]
        for way in KERNELS:
            what = f"{len(matrices)} matrices, scores around {limit:,}, gpu ({way}) with cpu"
            comparison.add(what, counts[way], differing[way], f"{near:,} within 2 of it")


def compare_reference(
    comparison: Comparison, name: str, queries: Sequence[QueryLike], chunk: Chunk, recurrence: Recurrence,
    expected: ScoreArray, generator: np.random.Generator,
) -> None:  # fmt: skip
    """Hold some scores against the reference."""
    differing = []
    for _ in range(SAMPLE):
        q, s = int(generator.integers(1, len(queries))), int(generator.integers(chunk.n_subjects))
        right = reference.score(queries[q], chunk.subject(s), recurrence.scoring, recurrence.mode)
        if right != expected[q, s]:
            differing.append(f"query {q} x {chunk.lengths[s]}: {expected[q, s]}, expected {right}")
    comparison.add(name, SAMPLE, differing, "")


def compare_alignments(comparison: Comparison, seed: int) -> None:
    """Compare alignments of the GPU with those of the CPU, many at a time and some alone."""
    with closing(create_pair_aligner("gpu")) as gpu, closing(create_pair_aligner("cpu")) as cpu:
        for number, (mode, entries) in enumerate(product(MODES, ENTRIES)):
            generator = np.random.default_rng([seed, 1_000 + number])
            recurrence = Recurrence(Scoring(), mode)
            queries = [profile(generator, int(n), entries) for n in generator.integers(1, 2 * LONGEST, ALIGNED // 4)]
            pairs = [(query, related(generator, query.codes)) for query in queries for _ in range(4)]
            expected, many = ([told(each) for each in one.align_many(pairs, recurrence)] for one in (cpu, gpu))
            alone = {k: told(gpu.align(*pairs[k], recurrence)) for k in range(0, len(pairs), 20)}
            differing = [f"pair {k}" for k, (a, b) in enumerate(zip(many, expected, strict=True)) if a != b]
            differing += [f"pair {k} alone" for k, each in alone.items() if each != expected[k]]
            name = f"{mode}, entries {entries[0]} to {entries[1]}, alignments"
            highest = max(each[0] for each in expected)
            comparison.add(name, len(many) + len(alone), differing, f"up to {highest:,}")


def compare_kernels(options: argparse.Namespace) -> tuple[list[str], int]:
    """Compare the GPU, or the CPU alone with the reference; return lines, and how much differs."""
    comparison = Comparison()
    with closing(create_engine("cpu")) as cpu:
        if options.engine == "cpu":
            compare_scores(comparison, {"cpu": cpu}, options.pairs, options.seed)
            described = cpu.description
        else:
            with closing(create_engine("gpu")) as gpu:
                engines = {"cpu": cpu, "gpu": gpu}
                compare_scores(comparison, engines, options.pairs, options.seed)
                compare_limits(comparison, engines, options.pairs, options.seed)
                described = gpu.description
            compare_alignments(comparison, options.seed)
    return [
        f"engine {described}; seed {options.seed}",
        "",
        *table(["what", "compared", "differing", "scores"], comparison.rows),
        *comparison.examples,
    ], comparison.wrong  # fmt: skip
