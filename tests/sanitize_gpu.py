"""Small inputs through every kernel, for compute-sanitizer:

compute-sanitizer --tool memcheck python tests/sanitize_gpu.py
compute-sanitizer --tool racecheck python tests/sanitize_gpu.py

Scores are compared with the CPU engine's as well; exits with 1 if one differs.
"""

import sys

import numpy as np
from cases import make_chunk, random_codes

from swsearch.engines.base import Thresholds, exact_scores
from swsearch.engines.cpu import CpuEngine
from swsearch.engines.gpu import launch, queries
from swsearch.engines.gpu.engine import GpuEngine
from swsearch.engines.gpu.limits import lane16
from swsearch.scoring import MODES, Scoring


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
                        prepared = engine.prepare([scoring.profile(query) for query in members], scoring, mode)
                        results.append(exact_scores(engine, prepared, loaded))
                        n = len(members)
                        engine.find(prepared, loaded, Thresholds([np.full(81, 30)] * n, [None] * n)).wait()
                    engine.release(loaded)
                for expected, got in zip(results[:3], results[3:], strict=True):
                    wrong += int((expected != got).sum())
                    compared += expected.size
    print(f"{compared} scores compared, {wrong} differ")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
