"""Alignments as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.reference import Cigar


@dataclass(frozen=True, eq=False)
class AlignmentTable:
    """Alignments as columns."""

    score: IntArray
    query_start: IntArray
    query_end: IntArray
    subject_start: IntArray
    subject_end: IntArray
    length: IntArray
    identities: IntArray
    positives: IntArray
    gaps: IntArray
    gap_openings: IntArray
    run_offsets: IntArray
    run_lengths: IntArray
    run_operations: ByteArray

    def __len__(self) -> int:
        return len(self.score)

    def __getitem__(self, rows: slice) -> AlignmentTable:
        begin, end, _ = rows.indices(len(self))
        runs = slice(int(self.run_offsets[begin]), int(self.run_offsets[end]))
        columns = (
            self.score, self.query_start, self.query_end, self.subject_start, self.subject_end, self.length,
            self.identities, self.positives, self.gaps, self.gap_openings,
        )  # fmt: skip
        offsets = self.run_offsets[begin : end + 1] - runs.start
        parts = (column[begin:end] for column in columns)
        return AlignmentTable(*parts, offsets, self.run_lengths[runs], self.run_operations[runs])

    def cigar(self, row: int) -> Cigar:
        """Return the runs of an alignment."""
        runs = slice(int(self.run_offsets[row]), int(self.run_offsets[row + 1]))
        operations = self.run_operations[runs].tobytes().decode("ascii")
        return tuple(zip(self.run_lengths[runs].tolist(), operations, strict=True))

    def cigar_strings(self) -> list[str]:
        """Return every alignment's CIGAR, such as ``12M1D30M``."""
        lengths = map(str, self.run_lengths.tolist())
        operations = self.run_operations.tobytes().decode("ascii")
        runs = [length + operation for length, operation in zip(lengths, operations, strict=True)]
        offsets = self.run_offsets.tolist()
        return ["".join(runs[a:b]) for a, b in pairwise(offsets)]

    @classmethod
    def of(cls, pairs: Sequence[PairAlignment]) -> AlignmentTable:
        """Return the columns of alignments that were found one by one."""
        names = (
            "score", "query_start", "query_end", "subject_start", "subject_end", "length", "identities", "positives",
            "gaps", "gap_openings",
        )  # fmt: skip
        columns = [np.array([getattr(pair, name) for pair in pairs], dtype=np.int64) for name in names]
        runs = [run for pair in pairs for run in pair.cigar]
        counts = [len(pair.cigar) for pair in pairs]
        offsets = np.concatenate([[0], np.cumsum(np.array(counts, dtype=np.int64))]).astype(np.int64)
        operations = np.frombuffer("".join(op for _, op in runs).encode("ascii"), dtype=np.uint8)
        return cls(*columns, offsets, np.array([n for n, _ in runs], dtype=np.int64), operations)
