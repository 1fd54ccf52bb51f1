"""Compare scores and alignments of profiles on the GPU with those of the CPU engine, and these with the reference.

Random profiles, with random sequences among them, are scored with random subjects in every mode, by the inter-task
kernel, by the wavefront kernel and as the engine shares subjects out, with entries as matrices have them and with
entries up to the limits of -127 and 127; some subjects reach scores far beyond 16 bits. As many pairs of sequences
have scores at and around the largest of half precision, 2,047, and, fewer, of 16 bits, 32,767, with every matrix and
with costs of gaps that the kernels are not made for beforehand. Alignments of pairs are compared whole: score,
beginning and CIGAR, many at a time and one alone. A sample of the CPU engine's scores is held against
`swsearch.reference`.

Needs: an NVIDIA GPU for --engine gpu; a minute. --engine cpu compares the CPU engine with the reference alone.
Run:   python -m benchmarks.agreement.profile_parity [--engine gpu] [--pairs 1000000] [--seed 1]
           [--out benchmarks/results/profile_parity.txt]
Exit code 1 if anything differs; the first differences are printed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import product

import numpy as np

from benchmarks.support.common import arguments, finish, heading, table
from swsearch import Database, reference
from swsearch.alphabet import N_CODES, PROTEIN, ByteArray
from swsearch.blocks import Chunk
from swsearch.engines import create_engine, create_pair_aligner
from swsearch.engines.base import Engine, ScoreArray
from swsearch.options.kinds import MODES
from swsearch.recurrence import Recurrence
from swsearch.scoring import PAD_SCORE, QueryLike, QueryRows, Scoring, rows_of, usable_matrices

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

N_LETTERS = len(PROTEIN.letters)


def sequence(generator: np.random.Generator, length: int) -> ByteArray:
    return generator.integers(0, N_LETTERS, length).astype(np.uint8)


def profile(generator: np.random.Generator, length: int, entries: tuple[int, int]) -> QueryRows:
    """Make a profile of random entries, in which its own sequence scores well."""
    codes = sequence(generator, length)
    scores = np.full((length, N_CODES), PAD_SCORE, dtype=np.int8)
    scores[:, :N_LETTERS] = generator.integers(entries[0], entries[1] + 1, (length, N_LETTERS))
    liked = generator.random(length) < 0.5
    scores[np.flatnonzero(liked), codes[liked]] = entries[1]
    return QueryRows(scores, codes, is_specific=True)


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
    """What was compared, and what differed."""

    def __init__(self) -> None:
        self.rows: list[list[object]] = []
        self.examples: list[str] = []
        self.wrong = 0

    def add(self, what: str, n: int, differing: Sequence[str], extremes: str) -> None:
        """Note how many were compared and which differed; ``extremes`` says between what the scores were."""
        self.rows.append([what, f"{n:,}", f"{len(differing):,}", extremes])
        self.examples += [f"{what}: {each}" for each in differing[:SHOWN]]
        self.wrong += len(differing)
        print(f"{what}: {n:,} compared, {len(differing):,} differing, {extremes}", file=sys.stderr, flush=True)


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
            differing = [
                f"query {q} ({lengths[q]}) x {chunk.lengths[s]}: {found[q, s]}, expected {expected[q, s]}"
                for q, s in np.argwhere(found != expected).tolist()
            ]
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
    matrices = usable_matrices(PROTEIN)
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
                differing[way] += [f"{name}: {found[q, s]}, expected {expected[q, s]}"
                                   for q, s in np.argwhere(found != expected).tolist()]  # fmt: skip
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
    with (
        closing(create_pair_aligner("gpu")) as gpu,
        closing(create_pair_aligner("cpu")) as cpu,
    ):
        for number, (mode, entries) in enumerate(product(MODES, ENTRIES)):
            generator = np.random.default_rng([seed, 1_000 + number])
            recurrence = Recurrence(Scoring(), mode)
            queries = [profile(generator, int(n), entries) for n in generator.integers(1, 2 * LONGEST, ALIGNED // 4)]
            pairs = [(query, related(generator, query.codes)) for query in queries for _ in range(4)]
            expected = [(each.score, each.query_start, each.subject_start, each.cigar) for each in
                        cpu.align_many(pairs, recurrence)]  # fmt: skip
            many = [(each.score, each.query_start, each.subject_start, each.cigar) for each in
                    gpu.align_many(pairs, recurrence)]  # fmt: skip
            few = range(0, len(pairs), 20)
            alone = [gpu.align(*pairs[k], recurrence) for k in few]
            differing = [f"pair {k}" for k, (a, b) in enumerate(zip(many, expected, strict=True)) if a != b]
            differing += [
                f"pair {k} alone" for k, each in zip(few, alone, strict=True)
                if (each.score, each.query_start, each.subject_start, each.cigar) != expected[k]
            ]  # fmt: skip
            name = f"{mode}, entries {entries[0]} to {entries[1]}, alignments"
            highest = max(each[0] for each in expected)
            comparison.add(name, len(many) + len(alone), differing, f"up to {highest:,}")


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument(
        "--engine", choices=("gpu", "cpu"), default="gpu", help="what is compared, default %(default)s"
    )
    parser.add_argument("--pairs", type=int, default=1_000_000, help="scores, default %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of everything random, default %(default)s")
    options = parser.parse_args()
    comparison = Comparison()
    with closing(create_engine("cpu")) as cpu:
        engines = {"cpu": cpu}
        if options.engine == "gpu":
            with closing(create_engine("gpu")) as gpu:
                engines["gpu"] = gpu
                compare_scores(comparison, engines, options.pairs, options.seed)
                compare_limits(comparison, engines, options.pairs, options.seed)
                described = gpu.description
            compare_alignments(comparison, options.seed)
        else:
            compare_scores(comparison, engines, options.pairs, options.seed)
            described = cpu.description
    lines = [
        *heading(__file__, ["numpy"]),
        f"engine {described}; seed {options.seed}",
        "",
        *table(["what", "compared", "differing", "scores"], comparison.rows),
        *comparison.examples,
    ]
    finish(lines, options.out)
    sys.exit(1 if comparison.wrong else 0)


if __name__ == "__main__":
    main()
