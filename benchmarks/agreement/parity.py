"""Are scores and alignments those of something that computes them otherwise? Every one of them is compared.

What is compared with which oracle:
  libraries  `swsearch.score` with parasail's scan kernels and with pyopal, given swsearch's own matrix, so that
             ambiguous letters score alike, and mapped gap costs: in local mode every query with every subject, in the
             others with the first 2,000 (--first-subjects). swsearch says that the empty alignment scores 0; the
             libraries are compared after max(score, 0), and the table counts how often that mattered.
  profiles   random profiles with the recurrence in numpy, over many pairs at a time: every mode, instruction set and
             way of using lanes, gap costs by position, ranges up to the limits of a profile, so that lanes saturate.
  gpu        all scores and the output of the GPU engine with those of the CPU engine (--write makes this reference,
             on a machine without a GPU; --reference compares): all queries at once, one at a time, and with the
             database streamed through 100 MiB. A reference of other residues or queries is refused.
  kernels    random profiles and sequences on the GPU with the CPU engine, in every mode and by each kernel, scores at
             and around what a lane can hold, alignments of pairs whole; a sample of the CPU's with the reference.
             --engine cpu compares that sample alone.

Needs: pip install 'swsearch[bench]' for libraries, an NVIDIA GPU for gpu and kernels. Minutes each on two cores; the
       reference of 20 queries and Swiss-Prot 12.
Run:   python -m benchmarks.agreement.parity libraries --queries queries20.fasta [--subjects DB.fasta.gz]
           [--out benchmarks/results/agreement_scores.txt]
       python -m benchmarks.agreement.parity profiles [--pairs 1000000] [--seed 1] [--out FILE]
       python -m benchmarks.agreement.parity gpu --database DB.h5 --queries Q.fasta --write REFERENCE.npz
       python -m benchmarks.agreement.parity gpu --database DB.h5 --queries Q.fasta --reference REFERENCE.npz
           [--out benchmarks/results/gpu_parity.txt]
       python -m benchmarks.agreement.parity kernels [--engine gpu] [--pairs 1000000] [--seed 1] [--out FILE]
Exit code 1 if anything differs; the first differences are printed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

import swsearch
from benchmarks.agreement import parity_gpu, parity_profiles
from benchmarks.support.common import (
    PARASAIL_GAPS,
    Records,
    arguments,
    blosum62,
    data_line,
    finish,
    heading,
    read,
    table,
)
from swsearch.options.kinds import MODES, Mode

Scores = npt.NDArray[np.int64]
Scorer = Callable[[str, Sequence[str], Mode], list[int]]
NAMES: dict[str, dict[Mode, str]] = {
    "parasail": {"local": "sw", "global": "nw", "semiglobal": "sg"},
    "pyopal": {"local": "sw", "global": "nw", "semiglobal": "ov"},
}
SHOWN = 5
"""Differing pairs that are listed in full."""


def parasail_scores(query: str, subjects: Sequence[str], mode: Mode) -> list[int]:
    import parasail

    profile = parasail.profile_create_sat(query, blosum62())
    score = getattr(parasail, f"{NAMES['parasail'][mode]}_scan_profile_sat")
    return [score(profile, subject, *PARASAIL_GAPS).score for subject in subjects]


def pyopal_scores(query: str, subjects: Sequence[str], mode: Mode) -> list[int]:
    import pyopal
    from scoring_matrices import ScoringMatrix  # type: ignore[attr-defined]

    matrix = swsearch.Scoring().matrix
    letters = matrix.alphabet.letters
    scores = matrix.scores[: len(letters), : len(letters)].astype(float)
    aligner = pyopal.Aligner(ScoringMatrix(scores.tolist(), alphabet=letters), *PARASAIL_GAPS)
    database = pyopal.Database(subjects, aligner.alphabet)
    found = aligner.align(query, database, mode="score", overflow="simple", algorithm=NAMES["pyopal"][mode])
    return [result.score for result in found]


def all_scores(scorer: Scorer, queries: Records, subjects: Records, mode: Mode, threads: int) -> Scores:
    """Score everything; each thread takes every n-th subject."""
    letters = [sequence for _, sequence in subjects]
    scores = np.zeros((len(queries), len(subjects)), dtype=np.int64)

    def work(task: tuple[int, int]) -> None:
        row, part = task
        scores[row, part::threads] = scorer(queries[row][1], letters[part::threads], mode)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, [(row, part) for row in range(len(queries)) for part in range(threads)]))
    return scores


def libraries(options: argparse.Namespace) -> tuple[list[str], int]:
    """Compare with both libraries; return lines, and how many scores differ."""
    queries, everyone = read(options.queries, options.first), read(options.subjects)
    threads = os.cpu_count() or 1
    rows, cases, wrong = [], [], 0
    for mode in MODES:
        subjects = everyone if mode == "local" else everyone[: options.first_subjects]
        ours = swsearch.score(queries, subjects, mode=mode, engine="cpu", threads=threads).astype(np.int64)
        scorers: dict[str, Scorer] = {"parasail": parasail_scores, "pyopal": pyopal_scores}
        for name, scorer in scorers.items():
            raw = all_scores(scorer, queries, subjects, mode, threads)
            theirs = raw if mode == "global" else np.maximum(raw, 0)
            differing = np.argwhere(ours != theirs)
            wrong += len(differing)
            floored = "" if mode == "global" else f"{np.count_nonzero(raw < 0):,}"
            extremes = f"{ours.min():,} to {ours.max():,}"
            rows.append([mode, name, f"{ours.size:,}", f"{len(differing):,}", floored, extremes])
            for i, j in differing[:SHOWN].tolist():
                (query, a), (subject, b) = queries[i], subjects[j]
                said = f"{query} x {subject}: swsearch {ours[i, j]}, peer {theirs[i, j]}"
                cases.append(f"{mode}, {name}:\n  {said}\n  {a}\n  {b}")
    columns = ["mode", "peer", "compared", "differing", "peer below 0, taken as 0", "scores"]
    return [data_line(queries, everyone, options), *cases, "", *table(columns, rows)], wrong


COMPARISONS: dict[str, tuple[Callable[[argparse.Namespace], tuple[list[str], int]], tuple[str, ...]]] = {
    "libraries": (libraries, ("parasail", "pyopal")),
    "profiles": (parity_profiles.compare_with_numpy, ("numpy",)),
    "gpu": (parity_gpu.compare_engines, ("numpy",)),
    "kernels": (parity_profiles.compare_kernels, ("numpy",)),
}


def main() -> None:
    parser = arguments(__doc__)
    add = parser.add_argument
    add("what", choices=COMPARISONS, help="see above")
    add("--first-subjects", type=int, default=2000, help="libraries: of the other modes, default %(default)s")
    add("--pairs", type=int, default=1_000_000, help="profiles, kernels: at least, default %(default)s")
    add("--seed", type=int, default=1, help="profiles, kernels: of everything random, default %(default)s")
    add("--engine", help="gpu: default cpu with --write, gpu with --reference; kernels: gpu or cpu")
    add("--database", type=Path, help="gpu: made by swsearch db build")
    add("--write", type=Path, metavar="FILE.npz", help="gpu: make the reference")
    add("--reference", type=Path, metavar="FILE.npz", help="gpu: compare with a reference")
    add("--keep", type=Path, metavar="FOLDER", help="gpu: where outputs that differ are written")
    options = parser.parse_args()
    if options.what == "gpu" and (options.database is None or (options.write is None) == (options.reference is None)):
        parser.error("gpu: expected --database, and one of --write and --reference")
    if options.write is not None:
        parity_gpu.write_reference(options)
        return
    compare, names = COMPARISONS[options.what]
    lines, wrong = compare(options)
    finish([*heading(f"{__file__} {options.what}", names), *lines], options.out)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
