"""Are swsearch's scores those of other exact libraries? Every one of them is compared.

Compares `swsearch.score` with parasail's scan kernels and with pyopal, all three given swsearch's own matrix, so that
ambiguous letters score alike, and mapped gap costs:
  local                 every query with every subject,
  global, semiglobal    every query with the first 2,000 subjects (--pairs).
swsearch says that the empty alignment scores 0 and that a local or semi-global score is never less; the libraries
are compared after max(score, 0), and the table counts how often that mattered.

Needs: pip install 'swsearch[bench]'. Two minutes on two cores. Exit code 1 if a score differs.
Run:   python -m benchmarks.agreement.scores --queries queries20.fasta [--subjects DB.fasta.gz]
           [--out benchmarks/results/agreement_scores.txt]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import parasail
import pyopal
from scoring_matrices import ScoringMatrix  # type: ignore[attr-defined]

import swsearch
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

PARASAIL_NAMES: dict[Mode, str] = {"local": "sw", "global": "nw", "semiglobal": "sg"}
PYOPAL_NAMES: dict[Mode, str] = {"local": "sw", "global": "nw", "semiglobal": "ov"}

SHOWN = 5
"""Differing pairs that are listed in full."""


def parasail_scores(query: str, subjects: Sequence[str], mode: Mode) -> list[int]:
    profile = parasail.profile_create_sat(query, blosum62())
    score = getattr(parasail, f"{PARASAIL_NAMES[mode]}_scan_profile_sat")
    return [score(profile, subject, *PARASAIL_GAPS).score for subject in subjects]


def pyopal_scores(query: str, subjects: Sequence[str], mode: Mode) -> list[int]:
    matrix = swsearch.Scoring().matrix
    letters = matrix.alphabet.letters
    scores = matrix.scores[: len(letters), : len(letters)].astype(float)
    aligner = pyopal.Aligner(ScoringMatrix(scores.tolist(), alphabet=letters), *PARASAIL_GAPS)
    database = pyopal.Database(subjects, aligner.alphabet)
    found = aligner.align(query, database, mode="score", overflow="simple", algorithm=PYOPAL_NAMES[mode])
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


def describe(pair: tuple[int, int], queries: Records, subjects: Records, ours: Scores, theirs: Scores) -> str:
    """Give a whole failing case in a line."""
    query, subject = queries[pair[0]], subjects[pair[1]]
    return f"  {query[0]} x {subject[0]}: swsearch {ours[pair]}, peer {theirs[pair]}\n  {query[1]}\n  {subject[1]}"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--pairs", type=int, default=2000, help="subjects of the other modes, default 2000")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="default one per processor")
    options = parser.parse_args()
    queries, everyone = read(options.queries, options.first), read(options.subjects)

    rows, cases, wrong = [], [], 0
    for mode in MODES:
        subjects = everyone if mode == "local" else everyone[: options.pairs]
        ours = swsearch.score(queries, subjects, mode=mode, engine="cpu", threads=options.threads).astype(np.int64)
        scorers: dict[str, Scorer] = {"parasail": parasail_scores, "pyopal": pyopal_scores}
        for name, scorer in scorers.items():
            raw = all_scores(scorer, queries, subjects, mode, options.threads)
            theirs = raw if mode == "global" else np.maximum(raw, 0)
            differing = np.argwhere(ours != theirs)
            wrong += len(differing)
            floored = "" if mode == "global" else f"{np.count_nonzero(raw < 0):,}"
            extremes = f"{ours.min():,} to {ours.max():,}"
            rows.append([mode, name, f"{ours.size:,}", f"{len(differing):,}", floored, extremes])
            cases += [
                f"{mode}, {name}:\n" + describe((int(i), int(j)), queries, subjects, ours, theirs)
                for i, j in differing[:SHOWN]
            ]
    columns = ["mode", "peer", "compared", "differing", "peer below 0, taken as 0", "scores"]
    lines = [*heading(__file__, ["parasail", "pyopal"]), data_line(queries, everyone, options)]
    finish([*lines, *cases, "", *table(columns, rows)], options.out)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
