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

import json
import lzma
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.support.common import arguments, finish, heading, table
from swsearch.alphabet import DNA
from swsearch.engines.cpu import extension, tracing
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring, dna_matrix

MATCH, MISMATCH, OPEN, EXTEND = 5, -4, 10, 1
LENGTH, UNRELATED = 48_502, 20_000
CASES = {"1 % changed": 0.01, "10 % changed": 0.1, "unrelated": None}
SLOW = ("parasail",)
"""One round does; in the first case it is given eight times the limit."""

Run = tuple[float, float, float, int]
"""Wall and processor seconds, MiB, score."""

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
    if sequence is None:
        letters = made_up(LENGTH, 1)
    else:
        data = sequence.read_bytes()
        text = (lzma.decompress(data) if sequence.suffix == ".xz" else data).decode()
        letters = "".join(line for line in text.splitlines() if not line.startswith(">")).upper()
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


def measure(name: str, case: str, sequence: Path | None, limit: float) -> Run | str:
    """Run one contender in a process of its own; a string says why there is no result."""
    line = [sys.executable, "-m", "benchmarks.speed.pairs_cpu", "--child", name, "--case", case]
    if sequence:
        line += ["--sequence", str(sequence)]
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"over {limit:.0f} s"
    if done.returncode:
        return f"failed ({done.returncode})"
    seconds, busy, memory, score = json.loads(done.stdout.splitlines()[-1])
    return float(seconds), float(busy), float(memory), int(score)


def report(case: str, sequence: Path | None, rounds: int, limit: float) -> list[str]:
    """Measure a case."""
    runs: dict[str, list[Run]] = {}
    failures: dict[str, str] = {}
    for turn in range(rounds):
        for name, (module, _) in CONTENDERS.items():
            slow = any(word in name for word in SLOW)
            if name in failures or (slow and turn > 0) or find_spec(module) is None:
                continue
            found = measure(name, case, sequence, limit * (8 if slow and case == next(iter(CASES)) else 1))
            if isinstance(found, str):
                failures[name] = found
            else:
                runs.setdefault(name, []).append(found)
    ours = statistics.median(run[0] for run in runs["swsearch, 2 threads"])
    score = runs["swsearch, 2 threads"][0][3]
    rows = []
    for name in CONTENDERS:
        if name in runs:
            seconds = sorted(run[0] for run in runs[name])
            middle = statistics.median(seconds)
            same = {run[3] for run in runs[name]} == {score}
            rows.append(
                [
                    name, f"{1e3 * middle:.0f}", f"{1e3 * seconds[0]:.0f} - {1e3 * seconds[-1]:.0f}",
                    f"{middle / ours:.2f}", f"{1e3 * statistics.median(run[1] for run in runs[name]):.0f}",
                    f"{max(run[2] for run in runs[name]):.0f}",
                    "same" if same else "another problem" if "edlib" in name else f"{runs[name][0][3]}: WRONG",
                ]
            )  # fmt: skip
        elif name in failures:
            rows.append([name, failures[name], "", "", "", "", ""])
    a, b = pair_of(case, sequence)
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
        lines += report(case, options.sequence, options.rounds, options.limit)
    finish(lines, options.out)


if __name__ == "__main__":
    main()
