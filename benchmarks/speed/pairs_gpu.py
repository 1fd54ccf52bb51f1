"""Measure the alignment of pairs on the GPU: genomes, the sizes of the papers, proteins, and many short pairs.

Every pair is aligned with affine gaps (DNA: 5/-4, gap 10/1; protein: BLOSUM62, 11/1). "score" keeps nothing but the
score; "align" gives the alignment too, whose columns are added up again and must give the score. GPU time is that of
all kernels by the device's clock, median of --runs after one that is not counted; wall time is that of the Python
call, with copies, launches and the decoding of runs. GPU memory is the most that was held; host memory is the
process's peak so far. GCUPS count query times subject residues, once, whatever is computed again for the alignment.
The hash of a CIGAR lets results be compared between engines and machines; `agreement.parity kernels` compares them.

Needs: an NVIDIA GPU; FOLDER with H.Pylori_ELS37.fasta.xz, H.Pylori_G27.fasta.xz and, for the largest pair,
MG1655-K12.fasta.xz and DH1.fasta.xz (Debian's ragout-examples has them; recompress). About two minutes.
Run:   python -m benchmarks.speed.pairs_gpu FOLDER [--only pylori,ecoli,...] [--runs 3]
           [--out benchmarks/results/pairs_gpu.txt]
--out also writes the numbers (pairs_gpu.json) beside the text, of which `gpu_current.py` reads what they are of.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.support.common import arguments, finish, genome, heading, table
from benchmarks.support.fingerprint import fingerprint
from benchmarks.support.timing import say
from swsearch.alphabet import DNA, ByteArray
from swsearch.engines.gpu.pairs.aligner import GpuPairAligner
from swsearch.options.kinds import Mode
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring, dna_matrix

PYLORI, COLI = ("H.Pylori_ELS37", "H.Pylori_G27"), ("MG1655-K12", "DH1")
GENOMES = Scoring(dna_matrix(), 10, 1)
PROTEINS = Scoring()
SHORT_PAIRS, SHORT_LENGTH = 100_000, 350

Pair = tuple[ByteArray, ByteArray]


def changed(generator: np.random.Generator, query: ByteArray, letters: int, share: float) -> ByteArray:
    """Return a copy with a share of its residues exchanged, and a third of that taken out and put in."""
    kept = query[generator.random(len(query)) > share / 3]
    put = np.where(generator.random(len(kept)) < share, generator.integers(0, letters, len(kept)), kept)
    places = np.flatnonzero(generator.random(len(put)) < share / 3)
    return np.insert(put, places, generator.integers(0, letters, len(places))).astype(np.uint8)


def protein_pair(length: int, share: float) -> Pair:
    """Return a made-up protein and a changed copy, both of a length."""
    generator = np.random.default_rng(length)
    query = generator.integers(0, 20, length).astype(np.uint8)
    subject = changed(generator, query, 20, share)
    return query, np.resize(subject, length)


def short_pairs() -> list[Pair]:
    """Return pairs as a search finds them: 200 queries, with 500 changed copies each."""
    generator = np.random.default_rng(SHORT_LENGTH)
    pairs = []
    for _ in range(200):
        query = generator.integers(0, 20, int(generator.normal(SHORT_LENGTH, 60))).astype(np.uint8)
        pairs += [(query, changed(generator, query, 20, 0.5)) for _ in range(SHORT_PAIRS // 200)]
    return pairs


class Task(NamedTuple):
    """A measurement: one pair in some modes, score and alignment, or many alignments at once."""

    name: str
    pairs: Callable[[], list[Pair]]
    scoring: Scoring
    modes: tuple[Mode, ...]
    with_score: bool = True


def tasks(folder: Path) -> dict[str, list[Task]]:
    """Return what is measured, by name."""

    def encoded(name: str) -> ByteArray:
        return DNA.encode(genome(folder / f"{name}.fasta.xz"))

    def genomes(one: str, other: str, length: int | None = None) -> list[Pair]:
        return [(encoded(one)[:length], encoded(other)[:length])]

    def related() -> list[Pair]:
        one = encoded(PYLORI[0])[:37_000]
        return [(one, changed(np.random.default_rng(1), one, 4, 0.02))]

    every: tuple[Mode, ...] = ("global", "local", "semiglobal")
    return {
        "huynh": [
            Task("37,000 x 37,000 DNA", lambda: genomes(*PYLORI, 37_000), GENOMES, every),
            Task("37,000 DNA x itself with 2 % changes", related, GENOMES, every[:1]),
        ],
        "proteins": [Task("32,768 x 32,768 protein", lambda: [protein_pair(32_768, 0.3)], PROTEINS, every[:2])],
        "short": [
            Task(f"{SHORT_PAIRS:,} protein pairs of about {SHORT_LENGTH}", short_pairs, PROTEINS, ("local",), False)
        ],
        "pylori": [Task("H. pylori ELS37 x G27 ({} x {})", lambda: genomes(*PYLORI), GENOMES, every[:2])],
        "ecoli": [Task("E. coli MG1655 x DH1 ({} x {})", lambda: genomes(*COLI), GENOMES, every[:1], False)],
    }


def measured(task: Task, aligner: GpuPairAligner, runs: int) -> Iterator[dict[str, Any]]:
    """Yield a row of the table for each mode, of the score and of the alignment."""
    pairs = task.pairs()
    name = task.name.format(*(f"{len(each):,}" for each in pairs[0]))
    cells = sum(len(query) * len(subject) for query, subject in pairs)
    for mode in task.modes:
        for what in ("score", "align") if task.with_score else ("align",):
            row = timed(aligner, pairs, Recurrence(task.scoring, mode), runs, is_score=what == "score")
            row = {"task": f"{name}, {mode}, {what}", "cells": cells, **row}
            say(f"{row['task']}: {row['gpu_seconds'] * 1e3:.2f} ms GPU, {row['wall_seconds']:.2f} s")
            yield row


def timed(
    aligner: GpuPairAligner, pairs: list[Pair], recurrence: Recurrence, runs: int, *, is_score: bool
) -> dict[str, Any]:
    """Time the scores or the alignments of pairs; the first run is not counted if there are more.

    Tasks of more than two seconds run once more, those of more than eight not.
    """
    usage, taken = aligner.usage, list[tuple[float, float, float]]()
    while len(taken) <= runs:
        usage.peak_bytes = 0
        before, followed, started = usage.kernel_seconds, usage.trace_seconds, time.perf_counter()
        score, digest = (
            (aligner.score(*pairs[0], recurrence), "") if is_score else aligned(aligner, pairs, recurrence)
        )
        wall = time.perf_counter() - started
        taken.append((usage.kernel_seconds - before, usage.trace_seconds - followed, wall))
        if taken[0][2] > 2:
            runs = 0 if taken[0][2] > 8 else 1
    counted = taken[1:] or taken
    gpu, traced, wall = (statistics.median(column) for column in zip(*counted, strict=True))
    return {
        "gpu_seconds": gpu, "trace_seconds": traced, "wall_seconds": wall, "runs": len(counted),
        "gpu_bytes": usage.peak_bytes, "host_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "score": score, "cigar": digest,
    }  # fmt: skip


def aligned(aligner: GpuPairAligner, pairs: list[Pair], recurrence: Recurrence) -> tuple[int, str]:
    """Align pairs; return the sum of their scores and the hash of where they begin and of their CIGARs."""
    digest = hashlib.sha256()
    total = 0
    for found in aligner.align_many(pairs, recurrence):
        total += found.score
        digest.update(f"{found.query_start} {found.subject_start} {found.cigar_string}\n".encode())
    return total, digest.hexdigest()[:16]


def lines(about: dict[str, Any], rows: list[dict[str, Any]]) -> Iterator[str]:
    """Format results."""
    yield from about["heading"]
    yield f"{about['description']}, {about['date']}"
    yield ""
    columns = ["task", "GPU time", "of it tracing", "GCUPS", "wall", "GPU memory", "host peak"]
    yield from table(
        [*columns, "score", "CIGAR"],
        [
            [
                row["task"], f"{row['gpu_seconds'] * 1e3:,.2f} ms", f"{row['trace_seconds'] * 1e3:,.2f} ms",
                f"{row['cells'] / row['gpu_seconds'] / 1e9:,.0f}", f"{row['wall_seconds']:.3f} s",
                f"{row['gpu_bytes'] / 2**20:,.0f} MiB", f"{row['host_bytes'] / 2**20:,.0f} MiB",
                f"{row['score']:,}", row["cigar"] or "-",
            ]
            for row in rows
        ],
    )  # fmt: skip


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("folder", type=Path, help="genomes, .fasta.xz")
    parser.add_argument("--only", help="some of huynh,proteins,short,pylori,ecoli; default: all")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each, default %(default)s")
    options: argparse.Namespace = parser.parse_args()
    known = tasks(options.folder)
    wanted = options.only.split(",") if options.only else list(known)
    if unknown := set(wanted) - set(known):
        parser.error(f"--only: {', '.join(sorted(unknown))}, expected some of {', '.join(known)}")
    with GpuPairAligner() as aligner:
        kernels, engine = fingerprint()
        about = {
            "heading": heading(__file__, ["pycuda", "cuda-bindings", "numpy"]),
            "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
            "device": aligner.info.name,
            "description": aligner.description,
            "kernels": kernels,
            "engine": engine,
        }
        chosen = (task for name in wanted for task in known[name])
        rows = [row for task in chosen for row in measured(task, aligner, options.runs)]
    if options.out is not None:
        stored = options.out.with_suffix(".json")
        stored.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    finish(list(lines(about, rows)), options.out)


if __name__ == "__main__":
    main()
