"""Alignments with frame shifts by the compiled extension, whose sources are in ``cpu/shift/``.

It finds the alignment that `swsearch.translation.frameshift_reference` states. Its tables grow with the subject's
length and the root of the strand's.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from swsearch.blocks import IntArray
from swsearch.engines.cpu import extension
from swsearch.engines.cpu.columns import FoundPairs
from swsearch.engines.cpu.tracing import check_reach
from swsearch.engines.pools import SequencePool, check_lengths, places_of
from swsearch.errors import OptionError
from swsearch.processors import available_processors
from swsearch.recurrence import Recurrence

SHIFT_TABLE_MEMORY = 64 << 20
"""Bytes for the tables of each pair that is aligned beside others; those that take more are aligned one by one."""


def align_strands(
    strands: SequencePool,
    subjects: SequencePool,
    pairs: IntArray,
    recurrence: Recurrence,
    threads: int | None = None,
) -> FoundPairs:
    """Align pairs of strands and proteins side by side, each on one thread, the largest first.

    Parameters
    ----------
    strands : (ndarray, ndarray)
        Amino acids of the codons that begin at each nucleotide, and offsets; see `SequencePool`.
    subjects : (ndarray, ndarray)
        Codes and offsets.
    pairs : ndarray, shape (m, 2), int64
        Which strand and which subject, by their places in the pools.
    recurrence : Recurrence
        What is computed, with frame shifts.
    threads : int, optional
        At most this many; by default all processors that this process may use.

    Returns
    -------
    FoundPairs
        One per pair, in their order; ``query_start`` is a nucleotide of the strand, and operations are those of
        `swsearch.translation.frameshift_reference.shifted_align`.

    Raises
    ------
    OptionError
        If the recurrence has no frame shifts.
    InputError
        If scores might not fit what is computed with.
    EngineError
        If the extension cannot be used.
    """
    if recurrence.frame_shift is None:
        raise OptionError("frame_shift", None, "what a shift costs")
    places = places_of(strands, subjects, pairs)
    check_lengths(places, lambda n, m: check_reach(n, m, recurrence))
    scoring, load = recurrence.scoring, extension.load()
    codes = np.ascontiguousarray(strands[0]), np.ascontiguousarray(subjects[0])
    scores = np.ascontiguousarray(scoring.matrix.scores.astype(np.int8))
    costs = int(scoring.gap_open), int(scoring.gap_extend), recurrence.frame_shift
    found = [
        load.align_shifted(*codes, np.ascontiguousarray(places[part]), scores, *costs, n_threads)
        for part, n_threads in _parts(places, threads or available_processors())
    ]
    numbers = np.concatenate([np.frombuffer(each[0], dtype=np.int64).reshape(-1, 4) for each in found])
    offsets = np.zeros(len(numbers) + 1, dtype=np.int64)
    np.cumsum(numbers[:, 3], out=offsets[1:])
    lengths = np.concatenate([np.frombuffer(each[1], dtype=np.int64) for each in found])
    operations = np.concatenate([np.frombuffer(each[2], dtype=np.uint8) for each in found])
    score, nucleotide, residue = np.ascontiguousarray(numbers[:, :3].T)
    return FoundPairs(score, nucleotide, residue, offsets, lengths, operations)


def _parts(places: IntArray, threads: int) -> Iterator[tuple[slice, int]]:
    """Cut pairs, shape (m, 4), into runs that are aligned together, and say by how many threads; at least one run."""
    memory = extension.load().shifted_memory
    begin = 0
    for place, (_, n, _, m) in enumerate(places.tolist()):
        if memory(n, m) > SHIFT_TABLE_MEMORY:
            if begin < place:
                yield slice(begin, place), threads
            yield slice(place, place + 1), 1
            begin = place + 1
    if begin < len(places) or not len(places):
        yield slice(begin, len(places)), threads
