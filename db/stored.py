"""Reading a segment: bytes are checked against their checksums when they are read, what they say when first met."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import LANES, Chunk, IntArray, RunLengths, each_once
from swsearch.db.classes import offsets_of
from swsearch.db.content import (
    N_LETTERS,
    header_problem,
    headers_problem,
    lengths_problem,
    ranges,
    residues_problem,
    runs_problem,
    some_offsets_problem,
)
from swsearch.db.contents import SegmentContents
from swsearch.db.finding import AskedNames, Matches, NamedHeaders, NameIndex, in_turn
from swsearch.db.names import NamedPool
from swsearch.db.source import Source
from swsearch.db.stored_array import STEP, StoredArray
from swsearch.errors import DatabaseDamageError
from swsearch.masking import MASKED
from swsearch.options.words import Mask

RUNS = {"lower": "mask", "tantan": "tantan"}
"""How the names of each mask's datasets begin."""

MASK_COUNTS = {"lower": "n_masked", "tantan": "n_tantan"}
"""The attributes that say how many residues each mask covers."""

HEADER = "header"
"""How the name of the headers' offsets begins."""

ITEMS = {HEADER: "headers", "taxid": "taxids"}
"""What offsets count, but for those of masked runs, by how their names begin."""

OFFSETS_AT_ONCE = STEP // 8
"""Offsets that are read for one subject, and kept until others are: subjects are often read in the input's order."""

_NONE_NEAR = 0, np.empty(0, dtype=np.int64)

HEADERS_AT_ONCE, HEADER_BYTES_AT_ONCE = 1 << 16, 8 << 20
"""Headers that are read at a time where all are, and their bytes."""

INDEXED_SUBJECTS = 2 << 20
"""Most subjects whose names are indexed: 8 bytes for each name, of which most have three."""

FEW_ASKED = 64
"""Subjects for each identifier that is asked for, from which on an index is made."""

MASKED_AT_ONCE = 1 << 20
"""Residues that are masked at a time."""


class Segment:
    """One segment of a database.

    Parameters
    ----------
    source : Source
        The database's bytes.
    contents : SegmentContents
        What the segment is made of.
    first : int
        Ordinal of its first subject in the whole database.
    """

    counted: ClassVar[str] = "lengths"
    """The dataset that has a row for each subject."""

    def __init__(self, source: Source, contents: SegmentContents, first: int) -> None:
        self.source, self.first, self.name = source, first, contents.name
        self.attributes = contents.attributes
        self.stored = {
            name: StoredArray(source, dataset, contents.checksums[name])
            for name, dataset in contents.datasets.items()
        }
        self.n_subjects = self.stored[self.counted].shape[0]
        if problem := self._misfit():  # before anything is loaded
            raise self._wrong(problem)
        self._ranks: npt.NDArray[Any] | None = None
        self._index: NameIndex | None = None
        self._n_masked: dict[Mask, int] = {}
        self._near: dict[str, tuple[int, IntArray]] = {}
        self._take_lengths()
        for name, count in self.counts().items():
            if self.attributes.get(name) != count:
                raise self._wrong(f"attribute {name} is {self.attributes.get(name)!r}, expected {count}")

    def _take_lengths(self) -> None:
        """Read how long the subjects are and where they stand, and check that the residues fit this."""
        self.lengths = RunLengths.joined([RunLengths.of(part) for _, part in self.stored["lengths"].parts()])
        """Of the sorted subjects."""
        self.block_offsets: IntArray = self.stored["block_offsets"].all()
        self._seen = np.zeros(max(len(self.block_offsets) - 1, 0), dtype=bool)
        if problem := lengths_problem(self.lengths, self.block_offsets):
            raise self._wrong(problem)
        if self.stored["residues"].shape[0] != self.block_offsets[-1]:
            raise self._wrong("residues do not fit the block offsets")

    def placed(self, first: int) -> Segment:
        """Return the same segment with another ordinal for its first subject."""
        twin = copy.copy(self)
        twin.first = first
        return twin

    def _misfit(self) -> str:
        """Say which dataset has not as many rows as the number of subjects asks for."""
        n, rows = self.n_subjects, {name: stored.shape[0] for name, stored in self.stored.items()}
        expected = {"order": n, "block_offsets": -(-n // LANES) + 1, "header_offsets": n + 1}
        for name in ("mask", "tantan") if "tantan_offsets" in rows else ("mask",):
            expected |= {f"{name}_offsets": n + 1, f"{name}_ends": rows[f"{name}_starts"]}
        if "taxids" in rows:
            expected |= {"taxid_offsets": n + 1, "taxon_parents": rows["taxa"], "merged_into": rows["merged_taxids"]}
        return next(
            (f"{name} does not fit the number of subjects" for name in expected if rows[name] != expected[name]), ""
        )

    def counts(self) -> dict[str, int]:
        """Return what the attributes must say of the lengths."""
        return {
            "n_subjects": self.n_subjects,
            "n_residues": self.lengths.n_residues,
            "n_empty": self.n_subjects - self.lengths.n_filled,
            "n_columns": int(self.block_offsets[-1]),
            "n_blocks": len(self.block_offsets) - 1,
            "longest": self.lengths.longest,
        }

    def _wrong(self, problem: str) -> DatabaseDamageError:
        """Make the error for what a wrong writer made."""
        return DatabaseDamageError(self.source.name, [f"{self.name}: {problem}"])

    @property
    def ranks(self) -> npt.NDArray[Any]:
        """The sorted place of each subject, shape (n_subjects,), in input order.

        Made when first asked for, of type uint32 where that is enough; it is all that is kept for each subject.
        """
        # no lock, which a process that is forked meanwhile would find locked for ever: two threads make it twice
        ranks = self._ranks
        if ranks is None:
            ranks = self._ranks = self._found_ranks()
        return ranks

    def _found_ranks(self) -> npt.NDArray[Any]:
        """Invert the order, and check it."""
        n = self.n_subjects
        nowhere = np.iinfo(np.uint32 if n < np.iinfo(np.uint32).max else np.int64).max
        ranks = np.full(n, nowhere, dtype=np.uint32 if n < np.iinfo(np.uint32).max else np.int64)
        problem, before = "", -1
        for start, order in self.stored["order"].parts():
            if order.min() < 0 or order.max() >= n:
                raise self._wrong("order is not a permutation")
            ranks[order] = np.arange(start, start + len(order), dtype=ranks.dtype)
            falls = np.flatnonzero(order[1:] <= order[:-1]) + (start + 1)
            falls = np.append(falls, start) if order[0] <= before else falls
            # where the order falls another length must begin
            if (self.lengths.ends[np.searchsorted(self.lengths.ends, falls)] != falls).any():
                problem = "equal lengths are not in input order"
            before = int(order[-1])
        if ranks.max() == nowhere:  # as many places as subjects: if one stands twice, another is missing
            problem = "order is not a permutation"
        if problem:
            raise self._wrong(problem)
        return ranks

    def input_lengths(self) -> npt.NDArray[np.int32]:
        """Return the lengths in input order, shape (n_subjects,)."""
        lengths = np.empty(self.n_subjects, dtype=np.int32)
        _ = self.ranks  # checks the order
        for start, order in self.stored["order"].parts():
            lengths[order] = self.lengths.part(start, start + len(order)).array()
        return lengths

    def chunk(self, first: int, last: int, mask: Mask = "none") -> Chunk:
        """Load the blocks ``first`` to ``last`` (excluded), X in the place of what is masked."""
        start, stop = int(self.block_offsets[first]), int(self.block_offsets[last])
        lanes = slice(first * LANES, min(last * LANES, self.n_subjects))
        lengths, offsets = self.lengths.part(lanes.start, lanes.stop), self.block_offsets[first : last + 1] - start
        _ = self.ranks  # checks the order
        order: IntArray = self.stored["order"].load(lanes.start, lanes.stop)
        residues: ByteArray = self.stored["residues"].load(start, stop)
        if not self._seen[first:last].all():
            if problem := residues_problem(residues, offsets, lengths.array()):
                raise self._wrong(f"blocks {first} to {last}: {problem}")
            self._seen[first:last] = True
        if mask != "none":
            self._mask(residues, offsets, mask, order)
        return Chunk(residues, offsets, lengths, order + self.first)

    def _mask(self, residues: ByteArray, offsets: IntArray, mask: Mask, subjects: IntArray) -> None:
        """Put X where the subjects of blocks are masked; ``offsets`` are the first columns of the blocks."""
        counts, starts, ends = self.runs_of(subjects, mask)
        places = np.repeat(np.arange(len(subjects)), counts)
        first = (offsets[places // LANES] + starts) * LANES + places % LANES
        lengths = (ends - starts).astype(np.int64)
        flat = residues.reshape(-1)
        total = np.cumsum(lengths)
        at = 0
        while at < len(lengths):  # some runs at a time: their places take 24 bytes per residue
            limit = (int(total[at - 1]) if at else 0) + MASKED_AT_ONCE
            last = max(int(np.searchsorted(total, limit, side="right")), at + 1)
            chosen = slice(at, last)
            inside = ranges(np.zeros(last - at, dtype=np.int64), lengths[chosen])
            flat[np.repeat(first[chosen], lengths[chosen]) + inside * LANES] = MASKED
            at = last

    def check_blocks(self) -> None:
        """Raise `DatabaseError` if the subjects stand in no blocks; those of proteins, and of frames, do."""

    def next_block(self, first: int, max_bytes: int) -> int:
        """Return the end of the longest run of blocks from ``first`` that takes at most ``max_bytes``."""
        limit = int(self.block_offsets[first]) + max_bytes // LANES
        return max(int(np.searchsorted(self.block_offsets, limit, side="right")) - 1, first + 1)

    def codes(self, index: int) -> ByteArray:
        """Return one subject's codes, shape (length,), uint8."""
        rank = int(self.ranks[index])
        start = int(self.block_offsets[rank // LANES])
        slab = self.stored["residues"].read(start, start + int(self.lengths.at(rank)))
        codes: ByteArray = slab[:, rank % LANES].copy()
        if not self._seen[rank // LANES] and len(codes) and codes.max() >= N_LETTERS:
            raise self._wrong(f"subject {self.first + index}: residues are not letters")
        return codes

    def header(self, index: int) -> bytes:
        """Return one subject's header line."""
        start, stop = self._bounds(HEADER, index)
        header: bytes = self.stored["headers"].read(start, stop).tobytes()
        if problem := header_problem(header):
            raise self._wrong(f"subject {self.first + index}: {problem}")
        return header

    def masked(self, index: int, mask: Mask = "lower") -> list[tuple[int, int]]:
        """Return what of one subject is masked."""
        if mask == "none":
            return []
        start, stop = self._bounds(RUNS[mask], index)
        starts, ends = (self.stored[f"{RUNS[mask]}_{part}"].read(start, stop).tolist() for part in ("starts", "ends"))
        bounds = [0, *(bound for run in zip(starts, ends, strict=True) for bound in run)]
        length = int(self.lengths.at(int(self.ranks[index])))
        # runs are not empty and do not touch; the first may begin at 0
        if any(a >= b for a, b in pairwise(bounds[1:])) or min(bounds) < 0 or max(bounds) > length:
            raise self._wrong("masked runs overlap or leave their subject")
        return list(zip(starts, ends, strict=True))

    def _bounds(self, what: str, index: int) -> tuple[int, int]:
        """Return what `bounds_of` does, for one subject."""
        first, offsets = self._near.get(what, _NONE_NEAR)
        if not first <= index < first + len(offsets) - 1:
            first = index // OFFSETS_AT_ONCE * OFFSETS_AT_ONCE
            last = min(first + OFFSETS_AT_ONCE, self.n_subjects + 1)
            if last < index + 2:
                first, last = index, index + 2
            offsets = self.stored[f"{what}_offsets"].read(first, last).copy()  # not a part of a piece
            self._near[what] = first, offsets
        start, stop = int(offsets[index - first]), int(offsets[index - first + 1])
        end = self._end(what)
        fits = 0 <= start < stop + (what != HEADER) <= end + (what != HEADER)
        if not fits or (index == 0 and start != 0) or (index == self.n_subjects - 1 and stop != end):
            raise self._wrong(f"{what} offsets do not fit the {what}s")
        return start, stop

    def _end(self, what: str) -> int:
        """Return what the offsets of headers, masked runs or taxids end with."""
        return self.stored[ITEMS.get(what, f"{what}_starts")].shape[0]

    # many at once: subjects are given by their places in the segment, shape (n,), int64, repeats allowed

    def lengths_of(self, places: IntArray) -> npt.NDArray[np.int32]:
        """Return the lengths of subjects, shape (n,), int32."""
        return self.lengths.at(self.ranks[places])

    def bounds_of(self, what: str, places: IntArray) -> tuple[IntArray, IntArray]:
        """Return where the headers, masked runs or taxids of subjects begin and end: two of shape (n,), int64.

        Parameters
        ----------
        what : {"header", "mask", "tantan", "taxid"}
            How the name of the offsets begins.
        places : ndarray, shape (n,), int64
            The subjects.
        """
        chosen, back = each_once(places)  # each once: rows must ascend
        rows = (chosen[:, None] + np.arange(2)).reshape(-1)
        found = self.stored[f"{what}_offsets"].take(rows)
        if problem := some_offsets_problem(rows, found, self.n_subjects, self._end(what), what, int(what == HEADER)):
            raise self._wrong(problem)
        bounds = found.reshape(-1, 2).astype(np.int64, copy=False)[back]
        return bounds[:, 0], bounds[:, 1]

    def copy_codes(self, places: IntArray, to: IntArray, pool: ByteArray) -> None:
        """Write the codes of subjects into a pool, shape (n_bytes,), uint8, at ``to``, shape (n,), int64."""
        ranks = self.ranks[places].astype(np.int64)
        lengths = self.lengths.at(ranks).astype(np.int64)
        self.stored["residues"].copy(self.block_offsets[ranks // LANES], lengths, to, pool, column=ranks % LANES)
        if self._seen[ranks // LANES].all():
            return
        for place, start, length in zip(places.tolist(), to.tolist(), lengths.tolist(), strict=True):
            if length and pool[start : start + length].max() >= N_LETTERS:
                raise self._wrong(f"subject {self.first + place}: residues are not letters")

    def copy_headers(
        self, places: IntArray, begins: IntArray, counts: IntArray, to: IntArray, pool: ByteArray
    ) -> None:
        """Write header lines into ``pool``, shape (n_bytes,), uint8.

        Parameters
        ----------
        places : ndarray, shape (n,), int64
            The subjects.
        begins, counts : ndarray, shape (n,), int64
            Where their header lines begin, as of `bounds_of`, and their bytes.
        to : ndarray, shape (n,), int64
            Where each goes.
        pool : ndarray, shape (n_bytes,), uint8
            Written: the header lines.
        """
        self.stored["headers"].copy(begins, counts, to, pool)
        first = headers_problem(pool, to, counts)
        if first is not None:
            start, stop = int(to[first]), int(to[first] + counts[first])
            problem = header_problem(pool[start:stop].tobytes())
            raise self._wrong(f"subject {self.first + int(places[first])}: {problem}")

    def runs_of(self, places: IntArray, mask: str) -> tuple[IntArray, npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return the runs of subjects that a mask covers: how many each has, shape (n,), where they start and end."""
        first, last = self.bounds_of(RUNS[mask], places)
        counts = last - first
        rows = ranges(first, counts)
        order = np.argsort(rows, kind="stable")
        starts, ends = (np.empty(len(rows), dtype=np.int32) for _ in range(2))
        for part, values in (("starts", starts), ("ends", ends)):
            values[order] = self.stored[f"{RUNS[mask]}_{part}"].take(rows[order])
        if problem := runs_problem(offsets_of(counts), starts, ends, self.lengths_of(places)):
            raise self._wrong(problem)
        return counts, starts, ends

    def n_masked(self, mask: Mask) -> int:
        """Count the residues that a mask covers."""
        if mask not in self._n_masked:
            starts, ends = (self.stored[f"{RUNS[mask]}_{part}"].parts() for part in ("starts", "ends"))
            pairs = zip(starts, ends, strict=True)
            self._n_masked[mask] = sum(int((b.astype(np.int64) - a).sum()) for (_, a), (_, b) in pairs)
        count, name = self._n_masked[mask], MASK_COUNTS[mask]
        if self.attributes.get(name) != count:
            raise self._wrong(f"attribute {name} is {self.attributes.get(name)!r}, expected {count}")
        return count

    def matches(self, asked: AskedNames, keep: bool = True) -> Matches:
        """Find what is asked for; subjects are ordinals.

        Where much is asked for all headers are read. Else an index of their names is made and kept, unless it would
        be too large.
        """
        if not keep or self.n_subjects > INDEXED_SUBJECTS or asked.n > max(self.n_subjects // FEW_ASKED, 1):
            quick = self.n_subjects < HEADERS_AT_ONCE
            parts = self.header_bounds(0, self.n_subjects)
            found = in_turn(lambda part: asked.among(*self._headers(*part)), parts, quick)
            matches = Matches.joined(list(found))
            return matches._replace(subjects=matches.subjects + self.first)
        if self._index is None:
            self._index = NameIndex(self.all_headers())
        places = self._index.places(asked)
        begins, ends = self.bounds_of(HEADER, places)
        bounds = offsets_of(ends - begins)
        pool = np.empty(int(bounds[-1]), dtype=np.uint8)
        self.copy_headers(places, begins, ends - begins, bounds[:-1], pool)
        return asked.among(NamedPool(pool), bounds, places + self.first)

    def all_headers(self) -> Iterator[NamedHeaders]:
        """Yield all headers, some at a time."""
        for part in self.header_bounds(0, self.n_subjects):
            yield self._headers(*part)

    def _headers(self, first: int, bounds: IntArray) -> NamedHeaders:
        """Read headers from a place on, whose offsets are known."""
        pool = self.stored["headers"].load(int(bounds[0]), int(bounds[-1]))
        return NamedPool(pool), bounds - bounds[0], np.arange(first, first + len(bounds) - 1)

    def header_bounds(self, first: int, last: int) -> Iterator[tuple[int, IntArray]]:
        """Yield where the headers of subjects stand, some at a time: the first one, and offsets, shape (n + 1,).

        All offsets are checked; no more is yielded at a time than `HEADER_BYTES_AT_ONCE`, or one header.
        """
        for start in range(first, last, HEADERS_AT_ONCE):
            stop = min(start + HEADERS_AT_ONCE, last)
            rows = np.arange(start, stop + 1)
            offsets = self.stored["header_offsets"].load(start, stop + 1)
            pairs = np.repeat(rows, 2)[1:-1], np.repeat(offsets, 2)[1:-1]
            if problem := some_offsets_problem(*pairs, self.n_subjects, self._end(HEADER), HEADER, 1):
                raise self._wrong(problem)
            at = 0
            while at < stop - start:
                until = int(np.searchsorted(offsets, offsets[at] + HEADER_BYTES_AT_ONCE, side="right")) - 1
                until = max(until, at + 1)
                yield start + at, offsets[at : until + 1]
                at = until

    def check_masked(self, mask: Mask) -> None:
        """Check every run that a mask covers, and their number of residues."""
        for start in range(0, self.n_subjects, HEADERS_AT_ONCE):
            self.runs_of(np.arange(start, min(start + HEADERS_AT_ONCE, self.n_subjects)), mask)
        self.n_masked(mask)

    def sources(self) -> list[dict[str, Any]]:
        """Return the files that the segment was made from."""
        try:
            sources = json.loads(self.stored["sources"].all().tobytes())
        except (ValueError, RecursionError) as error:
            raise self._wrong("sources are not JSON") from error
        if not isinstance(sources, list) or not all(is_source(each) for each in sources):
            raise self._wrong("sources are not a list of files")
        return sources


def is_source(value: Any) -> bool:
    """Say whether something read from JSON describes a file."""
    if not isinstance(value, dict) or not isinstance(value.get("path"), str):
        return False
    counts = [value.get(name) for name in ("bytes", "records", "residues")]
    return isinstance(value.get("sha256"), (str, type(None))) and all(
        type(count) is int and count >= 0 for count in counts
    )
