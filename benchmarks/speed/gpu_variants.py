"""Speed of each kernel variant on this GPU: the basis of the measured constants of `swsearch/engines/gpu/`.

Subjects are random. Their lengths are those of a real database (an int32 array, e.g. `Database.lengths` saved by
numpy), or log-normal like Swiss-Prot's. The database stays on the device. Every figure is the best of three scans,
by the device's clock, counted on real residues.

Parts; --only selects some:
  rows       each strip height, one and two queries per lane,
  queries    the table's choices for the standard lengths,
  long       the length from which the wavefront kernel is faster,
  wavefront  its own speed, 16 and 32 bits,
  small      the number of subjects that the inter-task kernel needs,
  modes      global and semi-global,
  profiles   queries with scores by position beside sequences of the same lengths, searches and pairs.

Needs: an NVIDIA GPU, a quiet machine; some minutes.
Run:   python -m benchmarks.speed.gpu_variants [--lengths lengths.npy] [--only part,part]
           [--out benchmarks/results/gpu_variants.txt]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import pairwise, product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

from benchmarks.support.common import arguments, finish, heading
from benchmarks.support.fingerprint import fingerprint
from benchmarks.support.timing import say
from swsearch.blocks import LANES, Chunk, block_columns
from swsearch.engines.base import HitThresholds, LoadedChunk, PendingHits, Workload
from swsearch.engines.gpu import launch, memory, queries, tracks, variants
from swsearch.engines.gpu.engine import GpuEngine
from swsearch.engines.gpu.pairs.aligner import GpuPairAligner
from swsearch.options.kinds import Mode
from swsearch.recurrence import Recurrence
from swsearch.scoring import QueryProfile, Scoring

COMPOSITION = np.array([8.25, 5.53, 4.06, 5.46, 1.38, 3.93, 6.72, 7.07, 2.27, 5.91,
                        9.65, 5.80, 2.41, 3.86, 4.74, 6.65, 5.36, 1.10, 2.92, 6.86])  # fmt: skip
"""Swiss-Prot's amino acids, per cent, in the order of the codes (ARNDCQEGHILKMFPSTWYV)."""

STANDARD = (
    144, 189, 222, 375, 464, 567, 657, 729, 850, 1000, 1500, 2005, 2504, 3005, 3564, 4061, 4548, 4743, 5147, 5478,
)  # fmt: skip
"""Lengths of the 20 queries of the CUDASW++ papers."""


def random_chunks(lengths: npt.NDArray[np.int32], chunk_bytes: int) -> list[Chunk]:
    """Make chunks of random subjects as a database does."""
    generator = np.random.default_rng(1)
    letters = generator.choice(20, 1 << 24, p=COMPOSITION / COMPOSITION.sum()).astype(np.uint8)
    ordered = np.sort(lengths)[::-1].astype(np.int32)
    columns = block_columns(ordered)
    edges = [0]
    while edges[-1] < len(columns):
        total = np.cumsum(columns[edges[-1] :]) * LANES
        edges.append(edges[-1] + max(1, int(np.searchsorted(total, chunk_bytes, side="right"))))
    chunks = []
    for first, last in pairwise(edges):
        offsets = np.concatenate(([0], np.cumsum(columns[first:last]))).astype(np.int64)
        own = ordered[first * LANES : last * LANES]
        start = int(generator.integers(0, 1 << 20))
        residues = np.resize(letters[start:], int(offsets[-1]) * LANES).reshape(-1, LANES)
        padded = np.zeros((last - first) * LANES, dtype=np.int64)
        padded[: len(own)] = own
        within = np.arange(len(residues)) - np.repeat(offsets[:-1], np.diff(offsets))
        residues[within[:, None] >= np.repeat(padded.reshape(-1, LANES), np.diff(offsets), axis=0)] = 31
        chunks.append(Chunk(residues, offsets, own, np.arange(first * LANES, first * LANES + len(own))))
    return chunks


class Scans:
    """A database on the device, and the scans over it."""

    def __init__(self, lengths: npt.NDArray[np.int32]) -> None:
        self.engine = GpuEngine()
        self.scoring = Scoring()
        self.residues = int(lengths.sum(dtype=np.int64))
        self.lengths = lengths
        self.generator = np.random.default_rng(2)
        self.chunks: list[LoadedChunk] = []
        self.lines: list[str] = []
        self.load(lengths)

    def load(self, lengths: npt.NDArray[np.int32]) -> None:
        """Replace the database."""
        for loaded in self.chunks:
            self.engine.release(loaded)
        self.residues = int(lengths.sum(dtype=np.int64))
        chunks = random_chunks(lengths, memory.CHUNK_BYTES)
        total = sum(chunk.residues.nbytes for chunk in chunks)
        self.engine.plan(Workload(total, lengths, [[1000] * 256]))
        self.chunks = self.engine.merge([self.engine.load(chunk) for chunk in chunks])

    def query(self, length: int) -> npt.NDArray[np.uint8]:
        """Make a sequence."""
        return self.generator.choice(20, length, p=COMPOSITION / COMPOSITION.sum()).astype(np.uint8)

    def profile(self, codes: npt.NDArray[np.uint8]) -> QueryProfile:
        """Make a profile that scores nearly as a sequence does: no two positions of a letter are alike."""
        scores = self.scoring.rows(codes).scores.copy()
        scores[:, :20] += self.generator.integers(-1, 2, (len(codes), 20), dtype=np.int8)
        return QueryProfile(scores, codes, is_specific=True)

    def scan(
        self, query_lengths: Sequence[int], mode: Mode = "local", repeats: int = 3, profiles: bool = False
    ) -> float:
        """Return the best kernel time of some scans, seconds."""
        codes = [self.query(n) for n in query_lengths]
        rows = [self.profile(code) if profiles else self.scoring.rows(code) for code in codes]
        group = self.engine.prepare(rows, Recurrence(self.scoring, mode))
        n = len(codes)
        longest = max(int(loaded.chunk.lengths[0]) for loaded in self.chunks)
        thresholds = HitThresholds([np.full(longest + 1, 100)] * n, [None] * n)
        best = float("inf")
        for _ in range(repeats + 1):
            before = self.engine.usage.kernel_seconds
            pending: list[PendingHits] = []
            for loaded in self.chunks:
                pending.append(self.engine.start_scan(group, loaded, thresholds))
                if len(pending) > 1:
                    pending.pop(0).wait()
            for each in pending:
                each.wait()
            best = min(best, self.engine.usage.kernel_seconds - before)
        return best

    def add(self, line: str) -> None:
        """Add a line to the report."""
        self.lines.append(line)
        say(line)

    def show(self, shots: Iterator[Shot]) -> None:
        """Time, and add a line for each."""
        for label, lengths, mode in shots:
            seconds, cells = self.scan(lengths, mode), sum(lengths) * self.residues
            self.add(f"{label:44s} {seconds * 1000:9.2f} ms {cells / seconds / 1e9:8.0f} GCUPS")


def one_variant(variant: variants.BatchVariant) -> Any:
    """Make every query take one variant."""

    def plan(profiles: Any, chosen: Any, form: variants.Form) -> list[tracks.BatchLayout]:
        if variant.queries == 1:
            return [tracks.single_track(profiles, chosen, variant)]
        lengths = {query: len(profiles[query]) for query in chosen}
        return [tracks.two_tracks(profiles, tracks.split_tracks(lengths, variant.rows), variant)]

    return mock.patch.multiple(queries, plan_batches=plan)


Shot = tuple[str, Sequence[int], Mode]
"""A line of the report: its label, the lengths of the queries, and the mode."""


def measure_rows(scans: Scans) -> Iterator[Shot]:
    """Each strip height, for queries that it divides."""
    for variant in variants.batch_variants():
        if variant.mode == "local":
            form = "half" if variant.half else "integers"
            with one_variant(variant):
                for strips in (8, 16, 64):
                    label = f"{form}, rows {variant.rows}, {variant.queries} per lane, {strips} strips"
                    yield label, [variant.rows * strips] * variant.queries, "local"


def measure_queries(scans: Scans) -> Iterator[Shot]:
    """Time what the table chooses."""
    for length in STANDARD:
        variant = variants.choose_single(length, variants.Form("local", True, (11, 1), variants.INTEGER_ROWS))
        yield f"query {length} (rows {variant.rows})", [length], "local"
    yield "20 queries", STANDARD, "local"
    for n, length in product((1, 200), (15, 30, 60)):
        yield f"{n} x {length} residues", [length] * n, "local"


def measure_long(scans: Scans) -> Iterator[Shot]:
    """From which length on subjects go to the wavefront kernel, and how much of the device it takes."""
    for columns, share in product((1024, 1536, 2048, 3072, 4608, 6144), (4, 6, 12)):
        with mock.patch.multiple(launch, LONG_COLUMNS=columns, WAVEFRONT_SHARE=share):
            for length in (144, 375, 3005):
                yield f"long {columns}, share 1/{share}, query {length}", [length], "local"


def measure_wavefront(scans: Scans) -> Iterator[Shot]:
    """Time the wavefront kernel alone."""
    for rows, bits in product(variants.WAVEFRONT_ROWS, (16, 32)):
        with (
            mock.patch.multiple(tracks, choose_wavefront_rows=lambda lengths, rows=rows: rows),
            mock.patch.multiple(launch, FAIR_SHARE=0),
            nullcontext() if bits == 16 else mock.patch.object(queries, "lane16", lambda *a: None),
        ):
            for length in (32 * rows, 96 * rows):
                yield f"wavefront rows {rows}, {bits} bits, {length}", [length], "local"


def measure_small(scans: Scans) -> Iterator[Shot]:
    """How many subjects the inter-task kernel needs."""
    for n in (2_000, 8_000, 16_000, 32_000, 64_000):
        scans.load(np.random.default_rng(3).choice(scans.lengths, n))
        for length in (144, 375, 1000):
            for name, jobs in (("batch", 10**9), ("wavefront", 0), ("both", launch.FAIR_SHARE)):
                with mock.patch.multiple(launch, FAIR_SHARE=jobs):
                    yield f"{n} subjects, {name}, query {length}", [length], "local"
    scans.load(scans.lengths)


def measure_modes(scans: Scans) -> Iterator[Shot]:
    """Global and semi-global."""
    modes: tuple[Mode, ...] = ("global", "semiglobal")
    for mode in modes:
        for lengths in ([375], [1000], [375, 464, 567, 657]):
            yield f"{mode} {lengths}", lengths, mode


def measure_profiles(scans: Scans) -> Iterator[Shot]:
    """Profiles beside sequences, in turn: lines of their own."""
    shapes = {"144": [144], "375": [375], "1000": [1000], "3005": [3005], "20 of 250": [250] * 20, "20": STANDARD}
    ways = {"both kernels": launch.FAIR_SHARE, "batch": 10**9, "wavefront": 0}
    for name, fair_share in ways.items():
        chosen = shapes if name != "wavefront" else {key: shapes[key] for key in ("144", "1000", "20 of 250")}
        for label, lengths in chosen.items():
            with mock.patch.multiple(launch, FAIR_SHARE=fair_share):
                plain, own = (scans.scan(lengths, profiles=profiles) for profiles in (False, True))
            cells = sum(lengths) * scans.residues
            scans.add(
                f"{f'{name}, queries {label}':32s} sequences {plain * 1000:9.2f} ms "
                f"{cells / plain / 1e9:6.0f} GCUPS, profiles {own * 1000:9.2f} ms "
                f"{cells / own / 1e9:6.0f} GCUPS, ratio {own / plain:.3f}"
            )
    recurrence = Recurrence(scans.scoring)
    with GpuPairAligner() as aligner:
        for n, length in ((4_000, 350), (400, 1_500), (1, 35_000)):
            codes = [(scans.query(length), scans.query(length)) for _ in range(n)]
            seconds = []
            for pairs in (codes, [(scans.profile(query), subject) for query, subject in codes]):
                taken = []
                for _ in range(3):
                    aligner.usage.kernel_seconds = 0.0
                    list(aligner.align_many(pairs, recurrence))
                    taken.append(aligner.usage.kernel_seconds)
                seconds.append(min(taken))
            plain, own = seconds
            scans.add(
                f"{f'{n:,} pairs of {length:,}':32s} sequences {plain * 1000:9.2f} ms, profiles "
                f"{own * 1000:9.2f} ms, ratio {own / plain:.3f}"
            )
    yield from ()


PARTS = {
    "rows": measure_rows, "queries": measure_queries, "long": measure_long, "wavefront": measure_wavefront,
    "small": measure_small, "modes": measure_modes, "profiles": measure_profiles,
}  # fmt: skip


def lengths_of(path: Path | None) -> npt.NDArray[np.int32]:
    """Read lengths, or draw them."""
    if path is not None:
        return np.asarray(np.load(path), dtype=np.int32)
    drawn = np.random.default_rng(0).lognormal(5.65, 0.72, 540_000)
    return np.clip(drawn, 20, 35_000).astype(np.int32)


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("--lengths", type=Path, metavar="FILE.npy", help="int32 array of subject lengths")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas, default %(default)s")
    options = parser.parse_args()
    wanted = options.only.split(",")
    if unknown := [part for part in wanted if part not in PARTS]:
        parser.error(f"--only: {unknown[0]!r}, expected some of {','.join(PARTS)}")
    lengths = lengths_of(options.lengths)
    scans = Scans(lengths)
    stamp = fingerprint()
    lines = [
        *heading(__file__, ["pycuda", "cuda-bindings", "numpy"]),
        scans.engine.description,
        f"kernels {stamp.kernels}",
        f"engine  {stamp.engine}",
        f"{len(lengths):,} random subjects, {scans.residues:,} residues; {scans.engine.memory_plan}",
    ]
    for part in wanted:
        scans.lines.append(f"-- {part}")
        scans.show(PARTS[part](scans))
    finish([*lines, *scans.lines], options.out)


if __name__ == "__main__":
    main()
