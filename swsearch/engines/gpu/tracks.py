"""Layout of queries for the kernels: strips, tracks and the scores of their rows.

The module works only with arrays on the host; `uploaded` copies them to the device.

A *track* is a run of strips of equal height, query after query. The inter-task kernel takes one track, with two
subjects per lane, or two tracks of nearly equal height in the two halves of its lanes. Query rows that fill up the
last strip score `PADDING_SCORE` and follow the query; in semi-global mode, where the last row must be the query's
own, they come first and score 0, which leaves the boundary's zeros as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swsearch.engines.gpu.variants import (
    BatchVariant,
    Form,
    OpenExtend,
    WavefrontVariant,
    choose_single,
    choose_wavefront_rows,
    count_strips,
    track_cost,
)
from swsearch.scoring import PADDING_SCORE, Mode, QueryProfile

QUERY_PAIR_GAIN = 1.1
"""Throughput of two queries per lane over one, with strips of 28 rows (H100, 7,400 to 6,740 GCUPS, November 2026,
benchmarks/speed/gpu_variants.py)."""


STRIP = np.dtype([("query", "<i4", 2), ("row", "<i4", 2), ("last", "<i4", 2), ("unused", "<i4", 2)])
"""``Strip`` of ``cuda/batch.cu``."""

QUERY = np.dtype([("profile", "<u4"), ("passes", "<i4"), ("length", "<i4"), ("padding", "<i4")])
"""``Query`` of ``cuda/wavefront.cu``."""


@dataclass(frozen=True)
class BatchLayout:
    """The queries of one launch of the inter-task kernel, laid out in strips.

    Parameters
    ----------
    variant : BatchVariant
        The kernel.
    queries : list of int
        The part's queries that are in it.
    strips : ndarray, shape (n_strips,), `STRIP`
        Strips of both halves.
    profile : ndarray, shape (n_strips, lines, 32, 4), int8
        Scores of every strip's rows by letter, matrix units, in the kernel's order; C-contiguous. With one query per
        lane a line holds four rows, with two it holds two rows of both.
    """

    variant: BatchVariant
    queries: list[int]
    strips: npt.NDArray[np.void]
    profile: npt.NDArray[np.int8]


@dataclass(frozen=True)
class WavefrontLayout:
    """The queries of one launch of the wavefront kernel, laid out for its rows per lane.

    Parameters
    ----------
    rows : int
        Query rows of a lane.
    queries : list of int
        The part's queries that are in it.
    table : ndarray, shape (n_queries of the part,), `QUERY`
        By the part's numbering; zero where a query is not in it.
    profile : ndarray, shape (n_rows / 4, 32, 4), int8
        Scores of four rows for each letter, matrix units; C-contiguous.
    """

    rows: int
    queries: list[int]
    table: npt.NDArray[np.void]
    profile: npt.NDArray[np.int8]

    def variant(self, bits: int, mode: Mode, gaps: OpenExtend) -> WavefrontVariant:
        """Return the kernel for a lane width."""
        return WavefrontVariant(self.rows, bits, mode, gaps)

    @property
    def pass_rows(self) -> int:
        """Query rows of a pass."""
        return 32 * self.rows

    @property
    def passes(self) -> int:
        """Most passes of a query."""
        return int(self.table["passes"].max())


def padded_rows(profile: QueryProfile, rows: int, mode: Mode) -> npt.NDArray[np.int8]:
    """Return a query's scores, matrix units, filled up to a multiple of ``rows`` rows: shape (n_rows, 32), int8."""
    padding = -len(profile) % rows
    scores = profile.scores
    if mode == "semiglobal":
        return np.concatenate((np.zeros((padding, 32), dtype=np.int8), scores))
    return np.concatenate((scores, np.full((padding, 32), PADDING_SCORE, dtype=np.int8)))


def _track(profiles: Sequence[QueryProfile], queries: Sequence[int], rows: int, mode: Mode) -> npt.NDArray[np.int32]:
    """Lay strips end to end; return their query, first row and last row, shape (n_strips, 3)."""
    strips = []
    for query in queries:
        n = -(-len(profiles[query]) // rows)
        padding = n * rows - len(profiles[query])
        first, end = (-padding, rows - 1) if mode == "semiglobal" else (0, rows - 1 - padding)
        strips += [(query, first + k * rows, end if k == n - 1 else -1) for k in range(n)]
    return np.array(strips, dtype=np.int32).reshape(-1, 3)


def single_track(profiles: Sequence[QueryProfile], queries: Sequence[int], variant: BatchVariant) -> BatchLayout:
    """Lay queries out with one query and two subjects per lane."""
    rows, mode = variant.rows, variant.mode
    track = _track(profiles, queries, rows, mode)
    strips = np.zeros(len(track), dtype=STRIP)
    for place, name in enumerate(("query", "row", "last")):
        strips[name] = track[:, place, None]
    scores = np.concatenate([padded_rows(profiles[query], rows, mode) for query in queries])
    filled = np.full((len(track), variant.lines * 4, 32), PADDING_SCORE, dtype=np.int8)
    filled[:, :rows] = scores.reshape(len(track), rows, 32)
    lines = filled.reshape(len(track), variant.lines, 4, 32).transpose(0, 1, 3, 2)
    return BatchLayout(variant, list(queries), strips, np.ascontiguousarray(lines))


def two_tracks(
    profiles: Sequence[QueryProfile], halves: Sequence[Sequence[int]], variant: BatchVariant
) -> BatchLayout:
    """Lay queries out with two queries and one subject per lane."""
    rows, mode = variant.rows, variant.mode
    tracks = [_track(profiles, queries, rows, mode) for queries in halves]
    n = max(map(len, tracks))
    strips = np.zeros(n, dtype=STRIP)
    strips["query"], strips["last"] = -1, -1
    scores = np.full((n, rows, 32, 2), PADDING_SCORE, dtype=np.int8)
    for half, (track, queries) in enumerate(zip(tracks, halves, strict=True)):
        for place, name in enumerate(("query", "row", "last")):
            strips[name][: len(track), half] = track[:, place]
        if queries:
            joined = np.concatenate([padded_rows(profiles[query], rows, mode) for query in queries])
            scores[: len(track), :, :, half] = joined.reshape(len(track), rows, 32)
    lines = scores.reshape(n, variant.lines, 2, 32, 2).transpose(0, 1, 3, 2, 4).reshape(n, variant.lines, 32, 4)
    return BatchLayout(variant, sorted([*halves[0], *halves[1]]), strips, np.ascontiguousarray(lines))


def split_tracks(lengths: dict[int, int], rows: int) -> tuple[list[int], list[int]]:
    """Divide queries between two tracks of nearly equal height: the longest first, to the lower track."""
    halves: tuple[list[int], list[int]] = ([], [])
    heights = [0, 0]
    for query in sorted(lengths, key=lambda query: (-lengths[query], query)):
        half = 0 if heights[0] <= heights[1] else 1
        halves[half].append(query)
        heights[half] += -(-lengths[query] // rows)
    return halves


def choose_pair(lengths: dict[int, int], form: Form) -> tuple[float, BatchVariant, tuple[list[int], list[int]]]:
    """Choose strip height and tracks for two queries per lane; return their cost (in rows of one track), and both."""
    options = []
    for rows in form.heights(2):
        halves = split_tracks(lengths, rows)
        height = max(count_strips((lengths[query] for query in half), rows) for half in halves)
        options.append((track_cost(height, rows), form.variant(rows, 2), halves))
    return min(options, key=lambda option: (option[0], -option[1].rows))


def plan_batches(profiles: Sequence[QueryProfile], queries: Sequence[int], form: Form) -> list[BatchLayout]:
    """Divide queries among launches of the inter-task kernel, as `choose_batches` says, and lay them out."""
    chosen = choose_batches({query: len(profiles[query]) for query in queries}, form)
    return [
        two_tracks(profiles, halves, variant) if len(halves) == 2 else single_track(profiles, halves[0], variant)
        for variant, halves in chosen
    ]


def choose_batches(lengths: dict[int, int], form: Form) -> list[tuple[BatchVariant, Sequence[Sequence[int]]]]:
    """Divide queries of some lengths among launches of the inter-task kernel: its form, and the queries of each half.

    Two queries per lane are the faster form if the two tracks can be balanced; the longest queries, which would make
    them unequal, go alone.
    """
    by_length = sorted(lengths, key=lambda query: (-lengths[query], query))
    # more than three queries that outweigh all others together are rare, and each launch has its end
    counts = range(min(4, len(by_length) + 1))
    costs = {count: _cost(lengths, by_length, count, form) for count in counts}
    alone = min(counts, key=lambda count: (costs[count], count))
    batches: list[tuple[BatchVariant, Sequence[Sequence[int]]]]
    batches = [(choose_single(lengths[query], form), [[query]]) for query in sorted(by_length[:alone])]
    if rest := by_length[alone:]:
        _, variant, halves = choose_pair({query: lengths[query] for query in rest}, form)
        batches.append((variant, halves))
    return batches


def _cost(lengths: dict[int, int], by_length: list[int], alone: int, form: Form) -> float:
    """Estimate what it costs to take the longest queries alone, in rows of one query per lane."""
    variants = [(lengths[query], choose_single(lengths[query], form).rows) for query in by_length[:alone]]
    cost = sum(track_cost(-(-length // rows), rows) for length, rows in variants)
    if rest := by_length[alone:]:
        cost += 2 * choose_pair({query: lengths[query] for query in rest}, form)[0] / QUERY_PAIR_GAIN
    return cost


def plan_wavefront(profiles: Sequence[QueryProfile], queries: Sequence[int], mode: Mode) -> WavefrontLayout:
    """Lay queries out for the wavefront kernel, all with the same rows per lane, so that one launch takes them."""
    rows = choose_wavefront_rows([len(profiles[query]) for query in queries])
    table = np.zeros(len(profiles), dtype=QUERY)
    words, at = [], 0
    for query in queries:
        scores = padded_rows(profiles[query], 32 * rows, mode)
        padding = len(scores) - len(profiles[query]) if mode == "semiglobal" else 0
        table[query] = (at, len(scores) // (32 * rows), len(profiles[query]), padding)
        words.append(scores.reshape(-1, 4, 32).transpose(0, 2, 1))
        at += words[-1].shape[0] * 32
    return WavefrontLayout(rows, list(queries), table, np.ascontiguousarray(np.concatenate(words)))
