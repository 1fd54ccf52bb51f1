"""Measure one long pair on the CPU, with its alignment, beside peers that align globally with affine gaps.

Cases: a DNA sequence against itself with 1 % and with 10 % of its residues changed (substitutions, insertions and
deletions alike, seeded), and two unrelated sequences of 20,000 bases. Match 5, mismatch -4, gap 10/1, global.
Without a file the sequence is made up, 48,502 bases as phage lambda has.

Every run is a process of its own, so that its peak memory is its own; rounds go through the contenders in turn, and
medians are printed. Where other work shares the processors, processor time says more than wall time. A contender's
score is compared with ours. WFA2 minimises: with a = 5, b = -4 and a gap of k costing 10 + k, the costs mismatch
2 (a - b) = 18, open 20 and extend 2 * 1 + a = 7 give the same alignments, and our score is (a (m + n) - cost) / 2.
edlib counts edits, all equal: another problem, for orientation.

Needs: pip install 'swsearch[bench]' for parasail; pywfa and edlib, where they are installed. Six minutes.
Run:   python -m benchmarks.speed.pairs_cpu [--sequence FASTA[.xz]] [--rounds 5] [--limit 20]
           [--out benchmarks/results/pairs_cpu.txt]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.support.common import arguments, finish, genome, heading, table
from swsearch import extension
from swsearch.alphabet import DNA
from swsearch.engines.cpu import tracing
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring, dna_matrix

MATCH, MISMATCH, OPEN, EXTEND = 5, -4, 10, 1
LENGTH, UNRELATED = 48_502, 20_000
CASES = {"1 % changed": 0.01, "10 % changed": 0.1, "unrelated": None}
SLOW = "parasail"
"""One round does; in the first case it is given eight times the limit."""


class Run(NamedTuple):
    """Wall and processor seconds, MiB, score."""

    wall: float
    busy: float
    memory: float
    score: int


Work = Callable[[str, str], int]
"""Align two sequences and return the score in our units."""


def mutate(letters: str, rate: float, seed: int) -> str:
    """Change residues: a third substituted, a third preceded by another, a third left out."""
    generator = np.random.default_rng(seed)
    out = []
    for letter in letters:
        kind = generator.integers(3) if generator.random() < rate else -1
        other = "ACGT"[int(generator.integers(4))] if kind in (0, 1) else ""
        while kind == 0 and other == letter:
            other = "ACGT"[int(generator.integers(4))]
        out.append({-1: letter, 0: other, 1: other + letter, 2: ""}[int(kind)])
    return "".join(out)


def made_up(length: int, seed: int) -> str:
    """Make up bases."""
    return "".join(np.random.default_rng(seed).choice(list("ACGT"), length))


def pair_of(case: str, sequence: Path | None) -> tuple[str, str]:
    """Return the two sequences of a case."""
    rate = CASES[case]
    if rate is None:
        return made_up(UNRELATED, 2), made_up(UNRELATED, 3)
    letters = genome(sequence) if sequence else made_up(LENGTH, 1)
    return letters, mutate(letters, rate, 1)


def swsearch_with(threads: int) -> Work:
    scoring = Scoring(dna_matrix(MATCH, MISMATCH), OPEN, EXTEND)
    return lambda a, b: tracing.align(DNA.encode(a), DNA.encode(b), Recurrence(scoring, "global"), threads=threads)[0]


def parasail_path(a: str, b: str) -> int:
    import parasail

    matrix = parasail.matrix_create("ACGT", MATCH, MISMATCH)
    result = parasail.nw_trace_striped_32(a, b, OPEN + EXTEND, EXTEND, matrix)
    assert result.cigar.decode
    return int(result.score)


def wfa(memory_mode: str) -> Work:
    def work(a: str, b: str) -> int:
        from pywfa import WavefrontAligner

        costs = {"mismatch": 2 * (MATCH - MISMATCH), "gap_opening": 2 * OPEN, "gap_extension": 2 * EXTEND + MATCH}
        aligner = WavefrontAligner(match=0, distance="affine", span="end-to-end", memory_mode=memory_mode, **costs)
        cost = -int(aligner.wavefront_align(b, a))
        assert aligner.cigarstring
        return (MATCH * (len(a) + len(b)) - cost) // 2

    return work


def edlib_path(a: str, b: str) -> int:
    import edlib

    return -int(edlib.align(a, b, mode="NW", task="path")["editDistance"])


CONTENDERS: dict[str, tuple[str, Work]] = {
    "swsearch, 1 thread": ("swsearch", swsearch_with(1)),
    "swsearch, 2 threads": ("swsearch", swsearch_with(2)),
    "WFA2, memory high": ("pywfa", wfa("high")),
    "WFA2, memory medium": ("pywfa", wfa("medium")),
    "WFA2, memory low": ("pywfa", wfa("low")),
    "WFA2, biwfa": ("pywfa", wfa("biwfa")),
    "edlib (unit costs)": ("edlib", edlib_path),
    "parasail nw_trace_striped_32": ("parasail", parasail_path),
}


def child(name: str, case: str, sequence: Path | None) -> None:
    """Run one contender and print its seconds, the memory that it took beyond what was loaded, and the score."""
    a, b = pair_of(case, sequence)
    work = CONTENDERS[name][1]
    work("ACGTACGTAC", "ACGTCGTAC")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, busy = time.perf_counter(), time.process_time()
    score = work(a, b)
    seconds, busy = time.perf_counter() - started, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([seconds, busy, (peak - before) / 1024, score]))


def measure(name: str, case: str, options: argparse.Namespace, limit: float) -> Run | str:
    """Run one contender in a process of its own; a string says why there is no result."""
    line = [sys.executable, "-m", "benchmarks.speed.pairs_cpu", "--child", name, "--case", case]
    line += ["--sequence", str(options.sequence)] if options.sequence else []
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"over {limit:.0f} s"
    return Run(*json.loads(done.stdout.splitlines()[-1])) if done.returncode == 0 else f"failed ({done.returncode})"


def report(case: str, options: argparse.Namespace) -> list[str]:
    """Measure a case, contenders in turn."""
    found: dict[str, list[Run | str]] = {name: [] for name, (module, _) in CONTENDERS.items() if find_spec(module)}
    for turn in range(options.rounds):
        for name, runs in found.items():
            is_slow = name.startswith(SLOW)
            if (turn and is_slow) or any(isinstance(run, str) for run in runs):
                continue
            limit = options.limit * (8 if is_slow and case == next(iter(CASES)) else 1)
            runs.append(measure(name, case, options, limit))
    rows: list[list[str]] = []
    whole = {name: [run for run in runs if isinstance(run, Run)] for name, runs in found.items()}
    ours = statistics.median(run.wall for run in whole["swsearch, 2 threads"])
    score = whole["swsearch, 2 threads"][0].score
    for name, each in whole.items():
        if len(each) < len(found[name]):
            rows.append([name, str(found[name][-1]), "", "", "", "", ""])
            continue
        wall, busy = (statistics.median(column) for column in list(zip(*each, strict=True))[:2])
        low, high = min(run.wall for run in each), max(run.wall for run in each)
        verdict = "same" if {run.score for run in each} == {score} else f"{each[0].score}: WRONG"
        rows.append([
            name, f"{1e3 * wall:.0f}", f"{1e3 * low:.0f} - {1e3 * high:.0f}", f"{wall / ours:.2f}",
            f"{1e3 * busy:.0f}", f"{max(run.memory for run in each):.0f}",
            "another problem" if "edlib" in name else verdict,
        ])  # fmt: skip
    a, b = pair_of(case, options.sequence)
    columns = ["", "median ms", "range", "ratio to ours, 2 threads", "processor ms", "MiB taken", "score"]
    return ["", f"{case}: {len(a):,} x {len(b):,} bases, score {score}", "", *table(columns, rows)]


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("--sequence", type=Path, help="FASTA file of one DNA sequence, plain or .xz")
    parser.add_argument("--rounds", type=int, default=5, help="default %(default)s")
    parser.add_argument("--limit", type=float, default=20, help="seconds allowed for one run, default %(default)s")
    parser.add_argument("--child", help="for the script itself: run this contender once")
    parser.add_argument("--case", choices=[*CASES], help="only this case")
    options = parser.parse_args()
    if options.child:
        child(options.child, options.case, options.sequence)
        return
    lines = [
        *heading(__file__, ["numpy", "parasail", "pywfa", "edlib"]),
        f"{options.sequence.name if options.sequence else 'made-up sequence'}; extension: "
        f"{extension.active_instruction_set()}; "
        f"this process may use {len(os.sched_getaffinity(0))} processors; limit {options.limit:.0f} s a run",
    ]
    for case in [options.case] if options.case else CASES:
        lines += report(case, options)
    finish(lines, options.out)


if __name__ == "__main__":
    main()
