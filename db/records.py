"""Records in memory between an input and a segment, in input order."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PROTEIN, Alphabet, ByteArray
from swsearch.blocks import IntArray
from swsearch.db.arrays import Strips, offsets_of
from swsearch.db.fasta import BUFFER_BYTES, FastaReader, Record, RecordBatch, header_text
from swsearch.db.input_stream import ByteSource, Input
from swsearch.errors import MemoryLimitError, OptionError, SequenceError

MIB = 1 << 20

BUILD_MEMORY = 1024 * MIB
"""Memory of a build in bytes."""

MIN_MEMORY = 64 * MIB
"""Minimum memory of a build; the interpreter and the readers of the inputs take a little more."""

MAX_SEGMENT = 1 << 30
"""Bytes of memory that the records of a segment take at most, so that every machine can read one whole."""

RECORD_BYTES = 128
"""Bytes of memory that a record takes while it is sorted, besides its residues and its header."""

MAX_LENGTH = 2**31 - 9
"""Longest subject: lengths are 32-bit, and a block's columns are rounded up to a multiple of 8."""

InputOrigin = dict[str, Any]
"""The input that records are from: path, sha256 and bytes, which are known when it has been read."""

SourcePart = tuple[InputOrigin, int, int]
"""An input, and how many records and residues of it a segment has."""

Origins = Sequence[tuple[InputOrigin, int]]
"""Inputs, and how many of some records are from each: neighbours are from one input."""


def check_memory(memory: int) -> int:
    """Return the budget, or raise if a build cannot keep it."""
    if isinstance(memory, bool) or not isinstance(memory, int) or memory < MIN_MEMORY:
        raise OptionError("memory", memory, f"a number of bytes, at least {MIN_MEMORY} (64 MiB)")
    return memory


def segment_limit(memory: int, volume_size: int | None = None) -> int:
    """Return how many bytes of records fit the memory with what sorts them, and a volume a few times."""
    limit = min(memory // 3, MAX_SEGMENT)
    return limit if volume_size is None else min(limit, max(volume_size // 4, 1))


class SegmentInput:
    """Some records with their parts, and the inputs that they are from.

    Each has ``codes``, ``headers`` and ``mask``, the runs of lower case, shape (n_runs, 2), 0-based and half-open;
    where they are known the runs ``tantan``, and ``taxids``.
    """

    def __init__(self, parts: dict[str, Strips], origins: Origins = ()) -> None:
        self.parts, self.origins = parts, origins
        self.codes, self.headers = parts["codes"], parts["headers"]

    def __len__(self) -> int:
        return len(self.codes)

    def costs(self) -> IntArray:
        """Return the bytes that the first of them take in memory, shape (n,), from 1 to all."""
        sizes = (each.offsets[1:] * each.data[:1].nbytes for each in self.parts.values())
        costs: IntArray = sum(sizes, RECORD_BYTES * np.arange(1, len(self) + 1))
        return costs

    def sources(self) -> list[SourcePart]:
        """Return how many records and residues are from each input."""
        counts = [n for _, n in self.origins]
        residues = np.diff(self.codes.offsets[offsets_of(np.array(counts))])
        return [(origin, n, each) for (origin, n), each in zip(self.origins, residues.tolist(), strict=True)]

    def part(self, first: int, last: int) -> SegmentInput:
        """Return the records from ``first`` to ``last``, excluded, without a copy."""
        parts = {name: each.part(first, last) for name, each in self.parts.items()}
        return SegmentInput(parts, select_origins(self.origins, np.arange(first, last)))

    def take(self, chosen: IntArray) -> SegmentInput:
        """Return some records by their places, which ascend, shape (n,)."""
        parts = {name: each.take(chosen) for name, each in self.parts.items()}
        return SegmentInput(parts, select_origins(self.origins, chosen))


def select_origins(origins: Origins, chosen: IntArray) -> Origins:
    """Return where some records come from, by their places, which ascend, shape (n,)."""
    counts = np.diff(np.searchsorted(chosen, offsets_of(np.array([n for _, n in origins], dtype=np.int64))))
    return [(origin, n) for (origin, _), n in zip(origins, counts.tolist(), strict=True) if n]


class _RecordBuffer:
    """Puts records together, without a second copy of all."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.n_bytes = 0
        self._origins: list[tuple[InputOrigin, int]] = []
        self._parts: dict[str, tuple[npt.NDArray[Any], bytearray, bytearray]] = {}

    def add(self, records: SegmentInput) -> None:
        """Put records behind the others."""
        self.n_bytes += int(records.costs()[-1])
        self._origins += records.origins
        for name, each in records.parts.items():
            kind = np.empty((0, *each.data.shape[1:]), dtype=each.data.dtype)
            _, data, counts = self._parts.setdefault(name, (kind, bytearray(), bytearray()))
            data += each.data.data
            counts += each.counts.data

    def take_all(self) -> SegmentInput:
        """Return all of them, and forget them."""
        parts = {}
        for name, (kind, data, counts) in self._parts.items():
            rows = np.frombuffer(data, dtype=kind.dtype).reshape(-1, *kind.shape[1:])
            parts[name] = Strips.from_counts(rows, np.frombuffer(counts, dtype=np.int64))
        records = SegmentInput(parts, self._origins)
        self._clear()
        return records


class _OpenRecord:
    """The record that continues in the next batch."""

    def __init__(self, memory: int, where: str) -> None:
        self._most, self._where = memory // 2, where
        self.number = 0
        self._clear(b"")

    def _clear(self, header: bytes) -> None:
        self._header, self._codes = header, bytearray()
        self._runs: list[npt.NDArray[np.int32]] = []

    def begin(self, header: bytes, n_before: int) -> None:
        """Open a record; ``n_before`` are closed since the one before was opened."""
        self._clear(header)
        self.number += n_before + 1

    def add(self, codes: ByteArray, runs: npt.NDArray[np.int32]) -> None:
        """Append residues and masked runs to it."""
        self._runs.append(runs + len(self._codes))
        self._codes += codes.data
        n = len(self._codes)
        if n > MAX_LENGTH:
            problem = f"record {self.number} has more than {MAX_LENGTH:,} residues, expected at most so many"
            raise SequenceError(self._where, problem)
        if n > self._most:
            raise MemoryLimitError(
                f"memory: record {self.number} of {self._where} has more than {self._most:,} residues; allow "
                f"more than {2 * n >> 20:,} MiB"
            )

    def close(self) -> dict[str, Strips]:
        """Return the record's codes, header and mask, and clear it for the next record."""
        runs = np.concatenate(self._runs)
        # the end of a batch cuts a run in two
        firsts = np.flatnonzero(np.append(True, runs[1:, 0] != runs[:-1, 1])[: len(runs)])
        runs = np.column_stack([runs[firsts, 0], runs[np.append(firsts[1:], len(runs))[: len(firsts)] - 1, 1]])
        header = np.frombuffer(self._header, dtype=np.uint8)
        parts: dict[str, npt.NDArray[Any]] = {
            "codes": np.frombuffer(self._codes, dtype=np.uint8),
            "headers": header,
            "mask": runs,
        }
        self._clear(b"")
        return {name: Strips.from_counts(data, np.array([len(data)])) for name, data in parts.items()}


def whole_records(batches: Iterable[RecordBatch], memory: int, origin: InputOrigin) -> Iterator[SegmentInput]:
    """Turn batches of one input, in which a record may continue, into records."""
    last = _OpenRecord(memory, origin["path"])
    for batch in batches:
        runs = np.column_stack([batch.mask_starts, batch.mask_ends]).astype(np.int32)
        starts, bounds = batch.starts.astype(np.int32), np.append(batch.starts, len(batch.codes))
        # of several records that begin at one place all but the last are empty
        cuts = np.searchsorted(batch.mask_starts, bounds)
        if last.number:
            last.add(batch.codes[: bounds[0]], runs[: cuts[0]])
        n = len(batch.starts)
        if not n:
            continue
        if last.number:
            yield SegmentInput(last.close(), [(origin, 1)])
        every = SegmentInput(
            {
                "codes": Strips(batch.codes[bounds[0] :], bounds - bounds[0]),
                "headers": Strips.from_counts(np.frombuffer(batch.headers, dtype=np.uint8), batch.header_lengths),
                "mask": Strips.from_counts(
                    runs[cuts[0] :] - np.repeat(starts, np.diff(cuts))[:, None], np.diff(cuts)
                ),
            },
            [(origin, n)],
        )
        if n > 1:
            yield every.part(0, n - 1)
        rest = every.part(n - 1, n)
        last.begin(rest.headers.data.tobytes(), n - 1)
        last.add(rest.codes.data, rest.parts["mask"].data)
    if last.number:
        yield SegmentInput(last.close(), [(origin, 1)])


def read_fasta(
    source: str | os.PathLike[str], *, alphabet: Alphabet = PROTEIN, buffer_bytes: int = BUFFER_BYTES
) -> Iterator[Record]:
    """Read a FASTA file, or stdin for ``-``, record by record; it may be compressed.

    Results do not depend on ``buffer_bytes``. It raises `SequenceError` if a byte is no residue letter.
    """
    with Input(source) as opened:
        yield from records_of(opened, alphabet, buffer_bytes)


def records_of(
    source: ByteSource, alphabet: Alphabet = PROTEIN, buffer_bytes: int = BUFFER_BYTES
) -> Iterator[Record]:
    """Yield the records of an open FASTA file."""
    batches = FastaReader(source, alphabet, buffer_bytes)
    for records in whole_records(batches, 2 * MAX_LENGTH, {"path": source.name}):
        mask, headers = records.parts["mask"], records.headers.data.tobytes()
        runs = list(map(tuple, mask.data.tolist()))
        bounds = (pairwise(each.offsets.tolist()) for each in (records.headers, records.codes, mask))
        for (a, b), (c, d), (e, f) in zip(*bounds, strict=True):
            header = headers[a:b]
            yield Record(header, *header_text(header), records.codes.data[c:d].copy(), runs[e:f])


def group_into_segments(stream: Iterable[SegmentInput], limit: int) -> Iterator[SegmentInput]:
    """Join records until they take ``limit`` bytes of memory; larger ones are cut between two records."""
    waiting = _RecordBuffer()
    for some in stream:
        first, costs = 0, some.costs()
        while first < len(some):
            before = int(costs[first - 1]) if first else 0
            last = int(np.searchsorted(costs, before + limit - waiting.n_bytes, side="right"))
            if last > first:
                waiting.add(some.part(first, last))
            elif not waiting.n_bytes:  # one record that takes more is a segment, without a copy
                last = first + 1
                yield some.part(first, last)
            if waiting.n_bytes and last < len(some):
                yield waiting.take_all()
            first = last
        del some  # before the next are read
    if waiting.n_bytes:
        yield waiting.take_all()
