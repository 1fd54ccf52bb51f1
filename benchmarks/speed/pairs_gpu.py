"""Measure the alignment of pairs on the GPU: genomes, the sizes of the papers, proteins, and many short pairs.

Every pair is aligned with affine gaps (DNA: 5/-4, gap 10/1; protein: BLOSUM62, 11/1). "score" keeps nothing but the
score; "align" gives the alignment too, whose columns are added up again and must give the score. GPU time is that of
all kernels by the device's clock, median of --runs after one that is not counted; wall time is that of the Python
call, with copies, launches and the decoding of runs. GPU memory is the most that was held; host memory is the
process's peak so far. GCUPS count query times subject residues, once, whatever is computed again for the alignment.
The hash of a CIGAR lets results be compared between engines and machines: `--cpu` computes the smaller ones again on
the CPU and says whether they are equal.

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
import lzma
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.common import arguments, finish, heading, table
from benchmarks.support.fingerprint import fingerprint
from swsearch.alphabet import DNA, ByteArray
from swsearch.engines.cpu.pairs import CpuPairAligner
from swsearch.engines.gpu.pairs.aligner import GpuPairAligner
from swsearch.engines.pair_base import PairAligner
from swsearch.options.kinds import Mode
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring, dna_matrix

GENOMES = Scoring(dna_matrix(), 10, 1)
PROTEINS = Scoring()
SHORT_PAIRS, SHORT_LENGTH = 100_000, 350
CPU_CELLS = 3_000_000_000
"""Largest pair that --cpu does again."""

Pair = tuple[ByteArray, ByteArray]


def genome(folder: Path, name: str) -> ByteArray:
    """Return the first record of a file, encoded."""
    with lzma.open(folder / f"{name}.fasta.xz", "rt") as stream:
        record = stream.read().split(">")[1]
    return DNA.encode(record.partition("\n")[2])


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


class Measurements:
    """What tasks took, one after the other on one aligner.

    Parameters
    ----------
    aligner : GpuPairAligner
        Open.
    runs : int
        Timed runs of each task that takes less than two seconds.
    cpu : bool
        Whether smaller tasks are done again on the CPU and compared.
    """

    def __init__(self, aligner: GpuPairAligner, runs: int, cpu: bool) -> None:
        self.aligner, self.runs = aligner, runs
        self.cpu = CpuPairAligner() if cpu else None
        self.rows: list[dict[str, Any]] = []

    def measure(self, name: str, cells: int, work: Callable[[], tuple[int, str]]) -> dict[str, Any]:
        """Time a task that returns its score and the hash of its CIGARs."""
        usage = self.aligner.usage
        gpu: list[float] = []
        wall: list[float] = []
        traced: list[float] = []
        runs = self.runs
        while len(gpu) <= runs:
            usage.peak_bytes = 0
            before, followed, begun = usage.kernel_seconds, usage.trace_seconds, time.perf_counter()
            score, digest = work()
            wall.append(time.perf_counter() - begun)
            gpu.append(usage.kernel_seconds - before)
            traced.append(usage.trace_seconds - followed)
            if wall[0] > 2:
                runs = 0 if wall[0] > 8 else 1
        first = 1 if len(gpu) > 1 else 0
        row: dict[str, Any] = {
            "task": name,
            "cells": cells,
            "gpu_seconds": statistics.median(gpu[first:]),
            "trace_seconds": statistics.median(traced[first:]),
            "wall_seconds": statistics.median(wall[first:]),
            "runs": len(gpu[first:]),
            "gpu_bytes": usage.peak_bytes,
            "host_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "score": score,
            "cigar": digest,
        }
        print(f"{name}: {row['gpu_seconds'] * 1e3:.2f} ms GPU, {row['wall_seconds']:.2f} s", flush=True)
        self.rows.append(row)
        return row

    def pair(
        self, name: str, pair: Pair, scoring: Scoring, mode: Mode, align: bool = True, score: bool = True
    ) -> None:
        """Measure a pair's score and its alignment."""
        cells = len(pair[0]) * len(pair[1])
        if score:
            row = self.measure(
                f"{name}, {mode}, score", cells, lambda: (self.aligner.score(*pair, Recurrence(scoring, mode)), "")
            )
            self.check(row, pair, scoring, mode, False)
        if align:
            row = self.measure(f"{name}, {mode}, align", cells, lambda: aligned(self.aligner, [pair], scoring, mode))
            self.check(row, pair, scoring, mode, True)

    def check(self, row: dict[str, Any], pair: Pair, scoring: Scoring, mode: Mode, align: bool) -> None:
        """Do a pair again on the CPU, where that was asked for and is not too much."""
        if self.cpu is not None and row["cells"] <= CPU_CELLS:
            expected = aligned(self.cpu, [pair], scoring, mode)
            got = (row["score"], row["cigar"]) if align else (row["score"], expected[1])
            row["same_as_cpu"] = got == expected
            assert row["same_as_cpu"], f"{row['task']}: {got} on the GPU, {expected} on the CPU"


def aligned(aligner: PairAligner, pairs: list[Pair], scoring: Scoring, mode: Mode) -> tuple[int, str]:
    """Align pairs; return the sum of their scores and the hash of where they begin and of their CIGARs."""
    digest = hashlib.sha256()
    total = 0
    for found in aligner.align_many(pairs, Recurrence(scoring, mode)):
        total += found.score
        digest.update(f"{found.query_start} {found.subject_start} {found.cigar_string}\n".encode())
    return total, digest.hexdigest()[:16]


def tasks(folder: Path) -> dict[str, Callable[[Measurements], None]]:
    """Return what is measured, by name."""

    def huynh(measurements: Measurements) -> None:
        one, other = genome(folder, "H.Pylori_ELS37")[:37_000], genome(folder, "H.Pylori_G27")[:37_000]
        measurements.pair("37,000 x 37,000 DNA", (one, other), GENOMES, "global")
        measurements.pair("37,000 x 37,000 DNA", (one, other), GENOMES, "local")
        measurements.pair("37,000 x 37,000 DNA", (one, other), GENOMES, "semiglobal")
        related = changed(np.random.default_rng(1), one, 4, 0.02)
        measurements.pair("37,000 DNA x itself with 2 % changes", (one, related), GENOMES, "global")

    def proteins(measurements: Measurements) -> None:
        for mode in ("global", "local"):
            measurements.pair("32,768 x 32,768 protein", protein_pair(32_768, 0.3), PROTEINS, mode)

    def short(measurements: Measurements) -> None:
        pairs = short_pairs()
        cells = sum(len(query) * len(subject) for query, subject in pairs)
        measurements.measure(
            f"{len(pairs):,} protein pairs of about {SHORT_LENGTH}, local, align", cells,
            lambda: aligned(measurements.aligner, pairs, PROTEINS, "local"),
        )  # fmt: skip

    def pylori(measurements: Measurements) -> None:
        pair = genome(folder, "H.Pylori_ELS37"), genome(folder, "H.Pylori_G27")
        name = f"H. pylori ELS37 x G27 ({len(pair[0]):,} x {len(pair[1]):,})"
        measurements.pair(name, pair, GENOMES, "global")
        measurements.pair(name, pair, GENOMES, "local")

    def ecoli(measurements: Measurements) -> None:
        pair = genome(folder, "MG1655-K12"), genome(folder, "DH1")
        name = f"E. coli MG1655 x DH1 ({len(pair[0]):,} x {len(pair[1]):,})"
        measurements.pair(name, pair, GENOMES, "global", score=False)

    return {"huynh": huynh, "proteins": proteins, "short": short, "pylori": pylori, "ecoli": ecoli}


def lines(about: dict[str, Any], rows: list[dict[str, Any]]) -> Iterator[str]:
    """Format results."""
    yield from about["heading"]
    yield f"{about['description']}, {about['date']}"
    yield ""
    columns = [
        "task",
        "GPU time",
        "of it tracing",
        "GCUPS",
        "wall",
        "GPU memory",
        "host peak",
        "score",
        "CIGAR",
        "CPU",
    ]
    yield from table(
        columns,
        [
            [
                row["task"], f"{row['gpu_seconds'] * 1e3:,.2f} ms", f"{row['trace_seconds'] * 1e3:,.2f} ms",
                f"{row['cells'] / row['gpu_seconds'] / 1e9:,.0f}", f"{row['wall_seconds']:.3f} s",
                f"{row['gpu_bytes'] / 2**20:,.0f} MiB", f"{row['host_bytes'] / 2**20:,.0f} MiB",
                f"{row['score']:,}", row["cigar"] or "-", "same" if row.get("same_as_cpu") else "-",
            ]
            for row in rows
        ],
    )  # fmt: skip


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("folder", type=Path, help="genomes, .fasta.xz")
    parser.add_argument("--only", help="some of huynh,proteins,short,pylori,ecoli; default: all")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each, default %(default)s")
    parser.add_argument("--cpu", action="store_true", help="compare with the CPU")
    options: argparse.Namespace = parser.parse_args()
    known = tasks(options.folder)
    wanted = options.only.split(",") if options.only else list(known)
    if unknown := set(wanted) - set(known):
        parser.error(f"--only: {', '.join(sorted(unknown))}, expected some of {', '.join(known)}")
    with GpuPairAligner() as aligner:
        kernels, engine = fingerprint()
        about = {
            "heading": heading(__file__, ["pycuda", "numpy"]),
            "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
            "device": aligner.info.name,
            "description": aligner.description,
            "kernels": kernels,
            "engine": engine,
        }
        measurements = Measurements(aligner, options.runs, options.cpu)
        for name in wanted:
            known[name](measurements)
    if options.out is not None:
        stored = options.out.with_suffix(".json")
        stored.write_text(json.dumps({"about": about, "rows": measurements.rows}, indent=1) + "\n", encoding="utf-8")
    finish(list(lines(about, measurements.rows)), options.out)


if __name__ == "__main__":
    main()
