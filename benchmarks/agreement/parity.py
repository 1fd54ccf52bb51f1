"""Are scores and alignments those of something that computes them otherwise? Every one of them is compared.

What is compared with which oracle:
  libraries  `swsearch.score` with parasail and pyopal, given swsearch's own matrix, so that ambiguous letters score
             alike, and mapped gap costs: in local mode every query with every subject, in the others with the first
             2,000 (--first-subjects). swsearch says that the empty alignment scores 0; the libraries are compared
             after max(score, 0), and the table counts how often that mattered.
  profiles   random profiles with the recurrence in numpy, over many pairs at a time: every mode, instruction set and
             way of using lanes, gap costs by position, ranges up to the limits of a profile, so that lanes saturate.
  gpu        all scores and the output of the GPU engine with those of the CPU engine: all queries at once, one at a
             time, and with the database streamed through 100 MiB.
  kernels    random profiles and sequences on the GPU with the CPU engine, in every mode and by each kernel, scores at
             and around what a lane can hold, alignments of pairs whole.

Needs: parasail and pyopal (pip install 'swsearch[bench]') for libraries, a GPU for gpu and kernels. Minutes each.
Run:   python -m benchmarks.agreement.parity libraries --queries queries20.fasta [--subjects DB.fasta.gz]
           [--out benchmarks/results/agreement_scores.txt]
       python -m benchmarks.agreement.parity profiles [--pairs 1000000] [--seed 1] [--out FILE]
       python -m benchmarks.agreement.parity gpu --database DB.h5 --queries Q.fasta
           [--out benchmarks/results/gpu_parity.txt]
       python -m benchmarks.agreement.parity kernels [--pairs 1000000] [--seed 1] [--out FILE]
Exit code 1 if anything differs; the first differences are printed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import swsearch
from benchmarks.agreement import parity_profiles
from benchmarks.speed.cpu_scans import library_scans
from benchmarks.support.common import Records, arguments, data_line, finish, heading, read, table
from benchmarks.support.common import swsearch as command
from benchmarks.support.fingerprint import fingerprint
from swsearch import Database
from swsearch.engines import create_engine
from swsearch.options.kinds import MODES

Scores = npt.NDArray[np.integer[Any]]
FORMATS = ("6", "0")
"""Output formats that are compared; 0 holds every alignment."""
STREAMED_MEMORY = 100 << 20
"""GPU memory of the last way that the GPU engine is asked."""
SHOWN = 5
"""Differing pairs that are listed."""


def examples(name: str, found: Scores, expected: Scores, queries: Records, subjects: list[str]) -> list[str]:
    """Name the first pairs that differ."""
    return [
        f"{name}: {queries[q][0]} x {subjects[s]}: {found[q, s]}, expected {expected[q, s]}"
        for q, s in np.argwhere(found != expected)[:SHOWN].tolist()
    ]


def libraries(options: argparse.Namespace) -> tuple[list[str], int]:
    """Compare with both libraries; return lines, and how many scores differ."""
    queries, everyone = read(options.queries, options.first), read(options.subjects)
    threads = os.cpu_count() or 1
    rows, cases, wrong = [], [], 0
    for mode in MODES:
        subjects = everyone if mode == "local" else everyone[: options.first_subjects]
        ours = swsearch.score(queries, subjects, mode=mode, engine="cpu", threads=threads).astype(np.int64)
        for name, scan in library_scans(subjects, threads, mode).items():
            raw = np.stack([scan.scores(scan.run(letters)) for _, letters in queries])
            theirs = raw if mode == "global" else np.maximum(raw, 0)
            differing = int(np.count_nonzero(ours != theirs))
            wrong += differing
            floored = "" if mode == "global" else f"{np.count_nonzero(raw < 0):,}"
            rows.append(
                [mode, name, f"{ours.size:,}", f"{differing:,}", floored, f"{ours.min():,} to {ours.max():,}"]
            )
            cases += examples(f"{mode}, {name}", ours, theirs, queries, [each for each, _ in subjects])
    columns = ["mode", "peer", "compared", "differing", "peer below 0, taken as 0", "scores"]
    return [data_line(queries, everyone, options), *cases, "", *table(columns, rows)], wrong


def ways_of_gpu(queries: Records, database: Database) -> Iterator[tuple[str, Scores]]:
    """Yield the scores of each way in which the GPU engine can be asked."""
    yield "all at once", swsearch.score(queries, database, engine="gpu")
    yield "one at a time", np.stack([swsearch.score([each], database, engine="gpu")[0] for each in queries])
    with create_engine("gpu", gpu_memory=STREAMED_MEMORY) as small:
        yield f"streamed, {STREAMED_MEMORY >> 20} MiB", swsearch.score(queries, database, engine=small)


def engines(options: argparse.Namespace) -> tuple[list[str], int]:
    """Compare the GPU engine with the CPU engine; return lines, and how many scores and outputs differ."""
    queries = read(options.queries)
    cases, rows, outputs, compared = [], [], [], 0
    with Database.open(options.database) as database, create_engine("gpu") as engine:
        description = engine.description
        expected = swsearch.score(queries, database, engine="cpu")
        names = [database.identifier(place) for place in range(database.n_subjects)]
        differing = {}
        for way, found in ways_of_gpu(queries, database):
            differing[way] = np.count_nonzero(found != expected, axis=1)
            compared += found.size
            cases += examples(way, found, expected, queries, names)
        about = f"{options.queries.name}: {len(queries)} queries; {options.database.name}: {len(names):,} subjects"
    for q, (name, letters) in enumerate(queries):
        rows.append([name, len(letters), f"{expected[q].max():,}", *(f"{each[q]:,}" for each in differing.values())])
    wrong = sum(int(each.sum()) for each in differing.values())
    with tempfile.TemporaryDirectory() as folder:
        for outfmt in FORMATS:
            written = []
            for name in ("cpu", "gpu"):
                out = Path(folder) / name
                words = (options.queries, options.database, "--engine", name, "--outfmt", outfmt, "-o", out)
                command("search", *words, "--quiet")
                written.append(out.read_bytes())
            outputs.append([outfmt, *(f"{len(each):,}" for each in written), written[0] == written[1]])
            wrong += written[0] != written[1]
    return [
        f"engine {description}", "kernels {}, engine {}".format(*fingerprint()), about,
        f"compared: {compared:,} scores and {len(FORMATS)} outputs, differing: {wrong:,}", "",
        *table(["query", "length", "best score", *(f"differing, {way}" for way in differing)], rows), "",
        *table(["output format", "bytes, cpu", "bytes, gpu", "equal"], outputs), *cases,
    ], wrong  # fmt: skip


COMPARISONS: dict[str, tuple[Callable[[argparse.Namespace], tuple[list[str], int]], tuple[str, ...]]] = {
    "libraries": (libraries, ("parasail", "pyopal")),
    "profiles": (parity_profiles.compare_with_numpy, ("numpy",)),
    "gpu": (engines, ("numpy",)),
    "kernels": (parity_profiles.compare_kernels, ("numpy",)),
}


def main() -> None:
    parser = arguments(__doc__)
    add = parser.add_argument
    add("what", choices=COMPARISONS, help="see above")
    add("--first-subjects", type=int, default=2000, help="libraries: of the other modes, default %(default)s")
    add("--pairs", type=int, default=1_000_000, help="profiles, kernels: at least, default %(default)s")
    add("--seed", type=int, default=1, help="profiles, kernels: of everything random, default %(default)s")
    add("--database", type=Path, help="gpu: made by swsearch db build")
    options = parser.parse_args()
    if options.what == "gpu" and options.database is None:
        parser.error("gpu: expected --database DB.h5")
    compare, names = COMPARISONS[options.what]
    lines, wrong = compare(options)
    finish([*heading(f"{__file__} {options.what}", names), *lines], options.out)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
