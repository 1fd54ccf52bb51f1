"""The content of a database checked a piece at a time, for one that is copied.

What `verify_database` finds is found here, in memory that hardly grows: a bit for each record, and a table of lengths
for `PLACES_AT_ONCE` of them where there are masked runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.blocks import LANES, IntArray, block_columns
from swsearch.db.content import header_problem, residues_problem
from swsearch.db.contents import Contents, SegmentContents
from swsearch.db.fasta import split_header
from swsearch.db.numbers import NUMBERS_AT_ONCE
from swsearch.db.source import Source
from swsearch.db.stored import MASK_COUNTS, RUNS, is_source
from swsearch.db.stored_array import StoredArray
from swsearch.errors import DatabaseDamageError

BYTES_AT_ONCE = 8 << 20
"""Residues and headers that are loaded at once."""

PLACES_AT_ONCE = 1 << 24
"""Records whose lengths are held while their masked runs are checked: 64 MiB. The numbers of all records are read
once for so many."""

_BITS = np.unpackbits(np.arange(256, dtype=np.uint8).reshape(-1, 1), axis=1).sum(axis=1, dtype=np.uint8)
"""How many bits of a byte are set."""


def check_content(source: Source, contents: Contents) -> None:
    """Check what a database says, its checksums being right.

    Raises
    ------
    DatabaseDamageError
        At the first thing that no build makes.
    """
    totals = {"n_subjects": 0, "n_residues": 0}
    for segment in contents.segments:
        check = SegmentCheck(source, segment)
        counts = check.counts()
        check.attributes(counts)
        for name in totals:
            totals[name] += counts[name]
    for name, total in totals.items():
        if contents.attributes.get(name) != total:
            found = contents.attributes.get(name)
            raise DatabaseDamageError(source.name, [f"attribute {name} is {found!r}, its segments have {total}"])
    for segment in contents.segments:
        check = SegmentCheck(source, segment)
        check.residues()
        check.sources()
        check.headers()
        for mask, name in RUNS.items():
            if f"{name}_offsets" in segment.datasets:
                check.runs(name, MASK_COUNTS[mask])


class SegmentCheck:
    """Checks of one segment.

    Parameters
    ----------
    source : Source
        The database's bytes.
    segment : SegmentContents
        Where they stand.
    """

    def __init__(self, source: Source, segment: SegmentContents) -> None:
        self._source, self._segment = source, segment
        self._stored = {
            name: StoredArray(source, dataset, segment.checksums[name]) for name, dataset in segment.datasets.items()
        }
        self._n = self._rows("lengths")
        expected = {"order": self._n, "block_offsets": -(-self._n // LANES) + 1, "header_offsets": self._n + 1}
        for name in RUNS.values():
            if f"{name}_offsets" in self._stored:
                expected |= {f"{name}_offsets": self._n + 1, f"{name}_ends": self._rows(f"{name}_starts")}
        for name, rows in expected.items():
            self._require(self._rows(name) == rows, f"{name} does not fit the number of subjects")

    def _rows(self, name: str) -> int:
        return int(self._stored[name].shape[0])

    def _require(self, fine: Any, problem: str) -> None:
        """Raise the error for what a wrong writer made unless something is fine."""
        if not fine:
            raise DatabaseDamageError(self._source.name, [f"{self._segment.name}: {problem}"])

    def attributes(self, counts: dict[str, int]) -> None:
        """Check that the attributes say what was counted."""
        for name, count in counts.items():
            found = self._segment.attributes.get(name)
            self._require(found == count, f"attribute {name} is {found!r}, expected {count}")

    def _numbers(self) -> Iterator[tuple[int, IntArray, IntArray]]:
        """Yield rank of the first, lengths and places of the subjects in their order."""
        for first in range(0, self._n, NUMBERS_AT_ONCE):
            last = min(first + NUMBERS_AT_ONCE, self._n)
            yield first, self._stored["lengths"].load(first, last).astype(np.int64), self._order(first, last)

    def _order(self, first: int, last: int) -> IntArray:
        order: IntArray = self._stored["order"].load(first, last)
        return order

    def counts(self) -> dict[str, int]:
        """Check lengths, order, block offsets and residues; return what the attributes must say of them."""
        met = np.zeros(-(-self._n // 8), dtype=np.uint8)
        n_residues = n_empty = longest = n_columns = 0
        length, place = 1 << 32, -1  # of the subject before
        self._require(self._n, "lengths do not descend")
        for first, lengths, order in self._numbers():
            steps = np.diff(lengths, prepend=length)
            self._require(lengths[-1] >= 0 and (steps <= 0).all(), "lengths do not descend")
            self._require(order.min() >= 0 and order.max() < self._n, "order is not a permutation")
            equal = steps == 0
            self._require((np.diff(order, prepend=place)[equal] > 0).all(), "equal lengths are not in input order")
            offsets = self._stored["block_offsets"].load(first // LANES, -(-(first + len(order)) // LANES) + 1)
            fine = offsets[0] == n_columns and (np.diff(offsets) == block_columns(lengths)).all()
            self._require(fine, "block offsets do not fit the lengths")
            np.bitwise_or.at(met, order >> 3, np.left_shift(1, order & 7).astype(np.uint8))
            n_residues += int(lengths.sum())
            n_empty += int(np.count_nonzero(lengths == 0))
            longest = max(longest, int(lengths[0]))
            length, place, n_columns = int(lengths[-1]), int(order[-1]), int(offsets[-1])
        # each place is met, so none is met twice
        n_met = sum(
            int(_BITS[met[at : at + NUMBERS_AT_ONCE]].sum(dtype=np.int64))
            for at in range(0, len(met), NUMBERS_AT_ONCE)
        )
        self._require(n_met == self._n, "order is not a permutation")
        self._require(self._rows("residues") == n_columns, "residues do not fit the block offsets")
        return {
            "n_subjects": self._n,
            "n_residues": n_residues,
            "n_empty": n_empty,
            "n_columns": n_columns,
            "n_blocks": self._rows("block_offsets") - 1,
            "longest": longest,
        }

    def residues(self) -> None:
        """Check that every residue is a letter, and that padding stands after every end and nowhere else."""
        for first, lengths, _ in self._numbers():
            offsets = self._stored["block_offsets"].load(first // LANES, -(-(first + len(lengths)) // LANES) + 1)
            block = 0
            while block < len(offsets) - 1:
                limit = offsets[block] + BYTES_AT_ONCE // LANES
                after = max(int(np.searchsorted(offsets, limit, side="right")) - 1, block + 1)
                residues = self._stored["residues"].load(int(offsets[block]), int(offsets[after]))
                inside = offsets[block : after + 1] - offsets[block]
                problem = residues_problem(residues, inside, lengths[block * LANES : after * LANES])
                self._require(not problem, f"blocks {first // LANES + block} to {first // LANES + after}: {problem}")
                block = after

    def sources(self) -> None:
        """Check the list of the files that the segment was made from."""
        try:
            sources = json.loads(self._stored["sources"].all().tobytes())
        except (ValueError, RecursionError):
            sources = None
            self._require(False, "sources are not JSON")
        self._require(isinstance(sources, list) and all(map(is_source, sources)), "sources are not a list of files")

    def _offsets(self, name: str, end: int, least: int) -> Iterator[tuple[int, IntArray]]:
        """Yield the number of a record, its offset and `NUMBERS_AT_ONCE` more; they must ascend to ``end``."""
        what = name.partition("_")[0]
        problem = f"{what} offsets do not fit the {what}s"
        before = 0
        for first in range(0, self._n, NUMBERS_AT_ONCE):
            last = min(first + NUMBERS_AT_ONCE, self._n)
            offsets: IntArray = self._stored[name].load(first, last + 1)
            # compared, not subtracted: a difference of two int64 may wrap
            rising = offsets[1:] > offsets[:-1] if least else offsets[1:] >= offsets[:-1]
            inside = offsets[0] == before and offsets.min() >= 0 and offsets.max() <= end
            self._require(inside and rising.all() and (last < self._n or offsets[-1] == end), problem)
            before = int(offsets[-1])
            yield first, offsets

    def headers(self) -> None:
        """Check that every header is a line with an identifier."""
        stored = self._stored["headers"]
        for first, offsets in self._offsets("header_offsets", self._rows("headers"), 1):
            begin = 0
            while begin < len(offsets) - 1:
                limit = offsets[begin] + BYTES_AT_ONCE
                after = max(int(np.searchsorted(offsets, limit, side="right")) - 1, begin + 1)
                bounds = (offsets[begin : after + 1] - offsets[begin]).tolist()
                text = stored.load(int(offsets[begin]), int(offsets[after])).tobytes()
                problem = header_problem(b"x" + text)
                self._require(not problem, problem)
                letters = np.frombuffer(text, dtype=np.uint8)[bounds[:-1]]
                for number in np.flatnonzero(letters <= ord(" ")).tolist():  # most begin with their identifier
                    named = split_header(text[bounds[number] : bounds[number + 1]])[0]
                    self._require(named, f"subject {first + begin + number}: a header has no identifier")
                begin = after

    def runs(self, name: str, attribute: str) -> None:
        """Check masked runs: ascending, apart and inside their subjects; and how many residues they cover."""
        n_masked, n_runs = 0, self._rows(f"{name}_starts")
        begin, lengths = 0, np.empty(0, dtype=np.int32)  # lengths of records from ``begin`` on
        problem = "masked runs overlap or leave their subject"
        for first, offsets in self._offsets(f"{name}_offsets", n_runs, 0):
            if offsets[0] == offsets[-1]:
                continue
            if first + len(offsets) - 1 > begin + len(lengths):
                begin, lengths = first, self._lengths_at(first)
            for at in range(int(offsets[0]), int(offsets[-1]), NUMBERS_AT_ONCE):
                until = min(at + NUMBERS_AT_ONCE, int(offsets[-1]))
                starts = self._stored[f"{name}_starts"].load(at, until).astype(np.int64)
                ends = self._stored[f"{name}_ends"].load(at, until).astype(np.int64)
                owners = np.searchsorted(offsets, np.arange(at, until), side="right") - 1
                inside = (starts >= 0) & (starts < ends) & (ends <= lengths[owners + (first - begin)])
                apart = (starts[1:] > ends[:-1]) | (owners[1:] > owners[:-1])
                if at > offsets[0] and offsets[owners[0]] < at:  # the run before it is of the same subject
                    before = self._stored[f"{name}_ends"].load(at - 1, at)
                    apart = np.append(apart, starts[0] > before[0])
                self._require(inside.all() and apart.all(), problem)
                n_masked += int((ends - starts).sum())
        self.attributes({attribute: n_masked})

    def _lengths_at(self, first: int) -> npt.NDArray[np.int32]:
        """Return the lengths of up to `PLACES_AT_ONCE` records in input order, from one on."""
        lengths = np.zeros(min(PLACES_AT_ONCE, self._n - first), dtype=np.int32)
        for _, of, order in self._numbers():
            places = order - first
            inside = (places >= 0) & (places < len(lengths))
            lengths[places[inside]] = of[inside]
        return lengths
