"""Host code of the inter-task kernels.

It interleaves the sorted database, packs the query profile, and returns scores in input order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import N_CODES, PAD, ByteArray
from swsearch.bench.study.diagonals import IntTable
from swsearch.bench.study.machine import POISON, GpuMachine
from swsearch.bench.study.variants import Variant
from swsearch.errors import OptionError
from swsearch.scoring import PADDING_SCORE, Scoring

WARP_LANES, SIDE = 32, 4
"""Subjects of a group; residues in a word, rows and columns of a tile."""

INTER_TASK = "PPPiPiiiIPPPi"
"""Arguments of ``study_inter_task``, as `struct` has them."""

MAX_PACKED_SCORE = (1 << 15) - 1
"""Maximum score that the packed buffer between tiles holds."""

DATABASE_SEED = 2014


@dataclass(frozen=True)
class Interleaved:
    """Subjects sorted by length and interleaved in groups of 32.

    Parameters
    ----------
    words : ndarray, shape (n_words,), uint32
        Group after group; in a group word w of lane l stands at 32 w + l and holds four residues.
    begins : ndarray, shape (n_groups,), uint64
        First word of each group.
    lengths : ndarray, shape (n_groups,), int32
        Words of a lane.
    order : ndarray, shape (n_subjects,), intp
        Which subject stands in which place.
    n_residues : int
        Without padding.
    """

    words: npt.NDArray[np.uint32]
    begins: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.int32]
    order: npt.NDArray[np.intp]
    n_residues: int


def interleave(subjects: list[ByteArray]) -> Interleaved:
    """Lay out subjects, each of shape (n,), uint8, for the kernels, shortest first."""
    order = np.argsort([len(one) for one in subjects], kind="stable")
    pieces, begins, lengths, at = [], [], [], 0
    for start in range(0, len(order), WARP_LANES):
        group = [subjects[place] for place in order[start : start + WARP_LANES]]
        words = -(-len(group[-1]) // SIDE)
        residues = np.full((WARP_LANES, words * SIDE), PAD, dtype=np.uint8)
        for lane, one in enumerate(group):
            residues[lane, : len(one)] = one
        pieces.append(np.ascontiguousarray(residues).view(np.uint32).T.ravel())
        begins.append(at)
        lengths.append(words)
        at += words * WARP_LANES
    return Interleaved(
        np.concatenate(pieces), np.array(begins, np.uint64), np.array(lengths, np.int32), order,
        sum(map(len, subjects)),
    )  # fmt: skip


def random_subjects(count: int, longest: int = 3072) -> list[ByteArray]:
    """Make up subjects of protein-like lengths, each of shape (n,), uint8."""
    generator = np.random.default_rng(DATABASE_SEED)
    lengths = generator.lognormal(5.7, 0.65, count).astype(int).clip(30, longest)
    residues = generator.integers(0, 20, int(lengths.sum()), dtype=np.uint8)
    return np.split(residues, np.cumsum(lengths)[:-1])


def packed_profile(query: ByteArray, scoring: Scoring) -> npt.NDArray[np.uint32]:
    """Return scores of four query rows per word, shape (n_rows / 4, 32), uint32; rows after the query never gain."""
    rows = -(-len(query) // SIDE) * SIDE
    scores = np.full((rows, N_CODES), PADDING_SCORE, dtype=np.int8)
    scores[: len(query)] = scoring.matrix.scores[query]
    by_letter = scores.reshape(-1, SIDE, N_CODES).transpose(0, 2, 1)
    return np.ascontiguousarray(by_letter).view(np.uint32).reshape(-1, N_CODES)


class InterTaskRun:
    """A variant with a query and a database that is on the machine.

    Parameters
    ----------
    machine : GpuMachine
        GPU of the run.
    variant : Variant
        Grid, and where the buffers stand.
    database : DatabaseOnDevice
        Shared between variants and queries.
    query : ndarray, shape (n,), uint8
        Protein codes.
    scoring : Scoring
        Matrix and gap costs.
    gaps : {"linear", "affine"}
        As the gap costs are.
    keep : bool
        Whether every cell is written too, to be checked.

    Raises
    ------
    OptionError
        If the query is too long for the kernel's shared memory or for 16 bits.
    """

    def __init__(
        self, machine: GpuMachine, variant: Variant, database: DatabaseOnDevice, query: ByteArray, scoring: Scoring,
        gaps: str, *, keep: bool = False,
    ) -> None:  # fmt: skip
        self.machine, self.variant, self.database, self._n_rows = machine, variant, database, len(query)
        if len(query) * scoring.matrix.max > MAX_PACKED_SCORE:
            raise OptionError("query", len(query), f"scores of at most {MAX_PACKED_SCORE}")
        profile = packed_profile(query, scoring)
        rows, shared = len(profile) * SIDE, 0
        threads = variant.threads * variant.blocks
        if variant.constant("SHARED"):
            shared = 4 * rows * variant.threads
            if shared > machine.shared_limit:
                raise OptionError("query", len(query), f"at most {machine.shared_limit} bytes of buffers a block")
        self._buffer = None if shared else machine.allocate(4 * rows * threads)
        self._profile = machine.upload(profile)
        groups = database.layout
        self._scores = machine.allocate(4 * WARP_LANES * len(groups.lengths))
        self._matrix = machine.allocate(4 * SIDE * len(groups.words) * len(query)) if keep else None
        self._arguments = (
            *database.addresses, len(groups.lengths), self._profile.address, len(profile), scoring.gap_open,
            scoring.gap_extend, 1, self._buffer.address if self._buffer else 0, self._scores.address,
            self._matrix.address if self._matrix else 0, len(query),
        )  # fmt: skip
        code = variant.kernel(gaps, keep=keep)
        self._launch = machine.kernel(code, "study_inter_task", INTER_TASK, shared)
        self.launches = 1

    def poison(self) -> None:
        """Overwrite all outputs."""
        for one in (self._scores, self._matrix, self._buffer):
            if one is not None:
                self.machine.fill(one, POISON)

    def enqueue(self) -> None:
        """Start the scan."""
        self._launch(self.variant.blocks, self.variant.threads, self._arguments)

    def scores(self) -> npt.NDArray[np.int32]:
        """Return each subject's score, shape (n_subjects,), int32, in input order."""
        layout = self.database.layout
        stored = self.machine.download(self._scores, np.int32, (WARP_LANES * len(layout.lengths),))
        scores = np.empty(len(layout.order), np.int32)
        scores[layout.order] = stored[: len(layout.order)]
        return scores

    def matrices(self) -> list[IntTable]:
        """Return H of each subject, shape (query rows, subject columns), int32, in input order."""
        assert self._matrix is not None
        layout = self.database.layout
        shape = (len(layout.words), SIDE, self._n_rows)
        cells = self.machine.download(self._matrix, np.int32, shape)
        matrices: list[IntTable] = [np.empty((0, 0), np.int32)] * len(layout.order)
        for place, subject in enumerate(layout.order):
            group, lane = divmod(place, WARP_LANES)
            begin = int(layout.begins[group])
            words = slice(begin + lane, begin + int(layout.lengths[group]) * WARP_LANES, WARP_LANES)
            matrices[subject] = cells[words].reshape(-1, self._n_rows)[: self.database.lengths[subject]].T
        return matrices


class DatabaseOnDevice:
    """Interleaved subjects, uploaded once.

    Parameters
    ----------
    machine : GpuMachine
        Where they are wanted.
    subjects : list of ndarray
        Protein codes, not empty.
    """

    def __init__(self, machine: GpuMachine, subjects: list[ByteArray]) -> None:
        self.subjects, self.layout = subjects, interleave(subjects)
        self.lengths = [len(one) for one in subjects]
        layout = self.layout
        self._buffers = [machine.upload(one) for one in (layout.words, layout.begins, layout.lengths)]
        self.addresses = tuple(one.address for one in self._buffers)
