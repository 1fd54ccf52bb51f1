"""Shuffled copies of sequences as a chunk that engines score.

A copy follows from the sequence and the copy's number alone: ``cpu/shuffle/shuffle.hpp`` says how. It is made by the
extension, on all threads, since it takes as long as scoring short queries does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import LANES, Chunk, block_columns
from swsearch.engines.base import Engine
from swsearch.engines.cpu import extension
from swsearch.recurrence import Recurrence
from swsearch.scoring import Profile
from swsearch.statistics.random_sequences import WINDOW

MOST_RESIDUES = 8 << 20
"""Residues of shuffled copies that are scored at a time."""


def shuffled_chunk(sequences: Sequence[ByteArray], copies: range, threads: int) -> Chunk:
    """Return shuffled copies of sequences.

    Parameters
    ----------
    sequences : sequence of ndarray, shape (length,), uint8
        Codes; none is empty.
    copies : range
        Numbers of the copies, from 0 on; other numbers are other copies.
    threads : int
        How many to use.

    Returns
    -------
    Chunk
        Its ``subjects`` count the copies of the first sequence, then those of the second, and so on.
    """
    lengths = np.array([len(each) for each in sequences], dtype=np.int32)
    order = np.argsort(-lengths, kind="stable")
    of_lane = np.repeat(order, len(copies)).astype(np.int64)
    copy_of_lane = np.tile(np.arange(copies.start, copies.stop, dtype=np.int32), len(sequences))
    lane_lengths = lengths[of_lane]
    columns = np.concatenate([[0], np.cumsum(block_columns(lane_lengths))]).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    residues = np.empty((int(columns[-1]), LANES), dtype=np.uint8)
    codes = np.concatenate(sequences) if len(sequences) else np.empty(0, dtype=np.uint8)
    extension.load().shuffle(codes, offsets, of_lane, copy_of_lane, columns, WINDOW, threads, residues)
    places = of_lane * len(copies) + (copy_of_lane - copies.start)
    return Chunk(residues, columns, lane_lengths, places)


def scores_with_copies(
    engine: Engine, profiles: Sequence[Profile], recurrence: Recurrence, chunk: Chunk
) -> npt.NDArray[np.int32]:
    """Score queries with a chunk of copies.

    Returns
    -------
    ndarray, shape (n_queries, n_copies), int32
        Exact scores, matrix units, in the order of the chunk's ``subjects``.
    """
    group = engine.prepare(profiles, recurrence)
    loaded = engine.load(chunk)
    try:
        found = engine.score(group, loaded)
    finally:
        engine.release(loaded)
    scores = np.empty_like(found)
    scores[:, chunk.subjects] = found
    return scores
