"""Compare scores of random profiles with an oracle of its own: the recurrence in numpy, over many pairs at a time.

Each batch draws profiles, subjects, a mode, a range of scores, and gap costs that are the same everywhere or differ
by position. Every profile is scored with every subject, by each instruction set and each way of using lanes, in
groups that hold a sequence now and then. Ranges go up to the limits of what a profile holds, so that lanes of 8 bits
saturate; every tenth batch is long enough for lanes of 16 bits to saturate as well.

Needs: numpy; about five minutes. Exit code 1 if a score differs.
Run:   python -m benchmarks.agreement.profile_scores [--pairs 1000000] [--seed 1]
           [--out benchmarks/results/exactness_profiles.txt]
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.speed.cpu_scans import engine_for
from benchmarks.support.common import arguments, finish, heading, table
from benchmarks.support.timing import say
from swsearch.blocks import Chunk, block_columns, interleave
from swsearch.engines.base import LoadedChunk
from swsearch.engines.cpu import extension
from swsearch.engines.cpu.engine import WAYS
from swsearch.options.kinds import MODES, Mode
from swsearch.recurrence import Recurrence
from swsearch.scoring import PAD_SCORE, PositionGaps, QueryRows, Scoring

LETTERS = 27
RANGES = [(-9, 12), (-9, 12), (-4, 5), (-127, 127), (-30, 60), (-127, -1), (100, 127)]
COSTS = [0, 3, 14, 14, 60, 3000, 10_000]

Scores = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Profiles of one length, subjects of one length, and what is computed."""

    queries: list[QueryRows]
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
        codes = generator.integers(0, LETTERS, m).astype(np.uint8)
        if not long and place % 10 == 9:
            queries.append(scoring.rows(codes))
            continue
        scores = np.full((m, 32), PAD_SCORE, dtype=np.int8)
        scores[:, :LETTERS] = generator.integers(low, high + 1, (m, LETTERS))
        gaps = PositionGaps(*generator.integers(0, most + 1, (4, m))) if with_gaps and place % 2 else None
        queries.append(QueryRows(scores, codes, is_specific=True, gaps=gaps))
    subjects = generator.integers(0, LETTERS, (n_subjects, n)).astype(np.uint8)
    for place in range(0, n_subjects, 3):  # relatives: the best letters of a profile, some changed
        best = queries[place % n_queries].scores[:, :LETTERS].argmax(axis=1).astype(np.uint8)
        kept = generator.random(n) < 0.85
        subjects[place] = np.where(kept, np.resize(np.roll(best, int(generator.integers(0, 3))), n), subjects[place])
    return Batch(queries, subjects, Recurrence(scoring, mode))


def oracle(batch: Batch) -> Scores:
    """Score all pairs, shape (n_queries, n_subjects), by the recurrence, cell by cell over all pairs at once."""
    scoring, mode = batch.recurrence.scoring, batch.recurrence.mode
    n_queries, (n_subjects, n), m = len(batch.queries), batch.subjects.shape, len(batch.queries[0])
    shape = n_queries, n_subjects
    uniform = PositionGaps.uniform(m, scoring.gap_open, scoring.gap_extend)
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


def chunk_of(subjects: npt.NDArray[np.uint8]) -> Chunk:
    """Lay subjects of one length out as the database does."""
    lengths = np.full(len(subjects), subjects.shape[1], dtype=np.int32)
    offsets = np.concatenate([[0], np.cumsum(block_columns(lengths))]).astype(np.int64)
    residues = np.empty((int(offsets[-1]), 64), dtype=np.uint8)
    for block in range(len(offsets) - 1):
        part = slice(64 * block, 64 * (block + 1))
        interleave(subjects[part].ravel(), lengths[part], residues[offsets[block] : offsets[block + 1]])
    return Chunk(residues, offsets, lengths, np.arange(len(subjects)))


def compare(batch: Batch) -> tuple[Scores, dict[str, int]]:
    """Score a batch; return what the oracle says, and the differences of each instruction set."""
    expected = oracle(batch)
    loaded, different = LoadedChunk(chunk_of(batch.subjects)), {}
    for name in extension.instruction_sets():
        different[name] = 0
        for way in WAYS:
            engine = engine_for(name, 2)
            engine.way = way
            found = engine.score(engine.prepare(batch.queries, batch.recurrence), loaded)
            different[name] += int((found != expected).sum())
    return expected, different


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("--pairs", type=int, default=1_000_000, help="at least, default %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of the random numbers, default %(default)s")
    options = parser.parse_args()
    generator = np.random.default_rng(options.seed)
    pairs = dict.fromkeys(MODES, 0)
    by_position = batches = beyond_8 = beyond_16 = 0
    different = dict.fromkeys(extension.instruction_sets(), 0)
    while sum(pairs.values()) < options.pairs:
        batches += 1
        long = batches % 10 == 1
        batch = draw(generator, *((8, 24) if long else (60, 300)), long)
        expected, found = compare(batch)
        pairs[batch.recurrence.mode] += expected.size
        by_position += sum(query.gaps is not None for query in batch.queries) * len(batch.subjects)
        beyond_8 += int((expected > 255).sum())
        beyond_16 += int((expected > 65_535).sum())
        for name, count in found.items():
            different[name] += count
        say(f"batch {batches}, {sum(pairs.values()):,} pairs, {sum(different.values())} different scores")
    rows = [[name, f"{sum(pairs.values()):,}", f"{len(WAYS)}", f"{count}"] for name, count in different.items()]
    modes = ", ".join(f"{count:,} {mode}" for mode, count in pairs.items())
    lines = [
        *heading(__file__, ["numpy"]),
        f"{sum(pairs.values()):,} pairs of a profile, or a sequence among profiles, with a subject, in {batches} "
        f"batches from seed {options.seed}: {modes};",
        f"{by_position:,} with gap costs by position; {beyond_8:,} scores above 255, {beyond_16:,} above 65,535.", "",
        *table(["", "pairs", "ways of using lanes", "different scores"], rows),
    ]  # fmt: skip
    finish(lines, options.out)
    if any(different.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
