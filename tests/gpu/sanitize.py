"""Small inputs through every kernel, for compute-sanitizer:

compute-sanitizer --tool memcheck python tests/gpu/sanitize.py
compute-sanitizer --tool racecheck python tests/gpu/sanitize.py

Scores are compared with the CPU engine's as well; exits with 1 if one differs.
"""

import sys

import numpy as np

from support import numpy_traceback as traceback
from support.cases import make_chunk, random_codes
from swsearch.engines.base import HitThresholds
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.engines.gpu import launch, queries
from swsearch.engines.gpu.engine import GpuEngine
from swsearch.engines.gpu.limits import lane16
from swsearch.engines.gpu.pairs import long_pair, plan
from swsearch.engines.gpu.pairs.aligner import GpuPairAligner
from swsearch.options.kinds import MODES
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring, dna_matrix


def pairs(generator: np.random.Generator) -> tuple[int, int]:
    """Align pairs whole, divided, and many at a time; return how many, and how many differ from the CPU's."""
    compared = wrong = 0
    for letters, scoring in ((4, Scoring(dna_matrix(), 10, 1)), (7, Scoring(dna_matrix(), 0, 3)), (20, Scoring())):
        long = [(random_codes(generator, 1_400, letters), random_codes(generator, 1_500, letters))]
        short = [
            tuple(random_codes(generator, int(n), letters) for n in generator.integers(1, 300, 2)) for _ in "12345"
        ]
        for mode in MODES:
            for direct, batch in ((1 << 30, long), (80_000, long), (1 << 30, short)):
                long_pair.DIRECT_BYTES, plan.LEAST_SPACING = direct, 256
                with GpuPairAligner(memory=64 << 20) as aligner:
                    for pair, found in zip(batch, aligner.align_many(batch, Recurrence(scoring, mode)), strict=True):
                        expected = traceback.trace(*pair, scoring, mode)
                        got = (found.score, found.query_start, found.subject_start, found.cigar)
                        scores = aligner.score(*pair, Recurrence(scoring, mode)), found.score
                        compared += 1
                        wrong += got != expected or scores[0] != scores[1]
    return compared, wrong


def main() -> int:
    generator = np.random.default_rng(1)
    scoring = Scoring()
    group = [random_codes(generator, n, 20) for n in (20, 100, 150, 700)]
    chunk = make_chunk([random_codes(generator, int(n), 20) for n in generator.integers(0, 80, 200)])
    wrong = compared = 0
    with CpuEngine() as cpu, GpuEngine(memory=64 << 20) as gpu:
        for mode in MODES:
            for share, lanes in ((10**9, lane16), (0, lane16), (0, lambda *arguments: None)):
                launch.FAIR_SHARE, queries.lane16 = share, lanes
                results = []
                for engine in (cpu, gpu):
                    loaded = engine.load(chunk)
                    for members in (group, group[1:2], group[3:]):
                        prepared = engine.prepare(
                            [scoring.rows(query) for query in members], Recurrence(scoring, mode)
                        )
                        results.append(engine.score(prepared, loaded))
                        n = len(members)
                        engine.start_scan(prepared, loaded, HitThresholds([np.full(81, 30)] * n, [None] * n)).wait()
                    engine.release(loaded)
                for expected, got in zip(results[:3], results[3:], strict=True):
                    wrong += int((expected != got).sum())
                    compared += expected.size
    print(f"{compared} scores compared, {wrong} differ")
    compared, different = pairs(generator)
    print(f"{compared} alignments compared, {different} differ")
    return int(wrong + different > 0)


if __name__ == "__main__":
    sys.exit(main())
