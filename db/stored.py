"""Reading a segment: bytes are checked against their checksums when they are read, what they say when first met."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import LANES, Chunk, IntArray
from swsearch.db.classes import offsets_of
from swsearch.db.content import (
    N_LETTERS,
    header_problem,
    headers_problem,
    offsets_problem,
    order_problem,
    ranges,
    residues_problem,
    runs_problem,
    some_offsets_problem,
)
from swsearch.db.contents import SegmentContents
from swsearch.db.fasta import header_text, split_header
from swsearch.db.source import Source
from swsearch.db.stored_array import StoredArray
from swsearch.errors import DatabaseDamageError
from swsearch.masking import MASKED, Mask

RUNS = {"lower": "mask", "tantan": "tantan"}
"""How the names of each mask's datasets begin."""

MASK_COUNTS = {"lower": "n_masked", "tantan": "n_tantan"}
"""The attributes that say how many residues each mask covers."""

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

    def __init__(self, source: Source, contents: SegmentContents, first: int) -> None:
        self.source, self.first, self.name = source, first, contents.name
        self.attributes = contents.attributes
        self.stored = {
            name: StoredArray(source, dataset, contents.checksums[name])
            for name, dataset in contents.datasets.items()
        }
        self.n_subjects = self.stored["lengths"].shape[0]
        if problem := self._misfit():  # before anything is loaded
            raise self._wrong(problem)
        self.lengths: npt.NDArray[np.int32] = self.stored["lengths"].all()
        self.order: IntArray = self.stored["order"].all()
        self.block_offsets: IntArray = self.stored["block_offsets"].all()
        self._lazy: dict[str, npt.NDArray[Any]] = {}
        self._seen = np.zeros(max(len(self.block_offsets) - 1, 0), dtype=bool)
        if problem := order_problem(self.lengths, self.order, self.block_offsets):
            raise self._wrong(problem)
        if self.stored["residues"].shape[0] != self.block_offsets[-1]:
            raise self._wrong("residues do not fit the block offsets")
        for name, count in self.counts().items():
            if self.attributes.get(name) != count:
                raise self._wrong(f"attribute {name} is {self.attributes.get(name)!r}, expected {count}")

    def _misfit(self) -> str:
        """Say which dataset has not as many rows as the number of subjects asks for."""
        n, rows = self.n_subjects, {name: stored.shape[0] for name, stored in self.stored.items()}
        expected = {"order": n, "block_offsets": -(-n // LANES) + 1, "header_offsets": n + 1}
        for name in ("mask", "tantan") if "tantan_offsets" in rows else ("mask",):
            expected |= {f"{name}_offsets": n + 1, f"{name}_ends": rows[f"{name}_starts"]}
        return next(
            (f"{name} does not fit the number of subjects" for name in expected if rows[name] != expected[name]), ""
        )

    def counts(self) -> dict[str, int]:
        """Return what the attributes must say of the lengths."""
        return {
            "n_subjects": self.n_subjects,
            "n_residues": int(self.lengths.sum(dtype=np.int64)),
            "n_empty": int(np.count_nonzero(self.lengths == 0)),
            "n_columns": int(self.block_offsets[-1]),
            "n_blocks": len(self.block_offsets) - 1,
            "longest": int(self.lengths[0]),
        }

    def _wrong(self, problem: str) -> DatabaseDamageError:
        """Make the error for what a wrong writer made."""
        return DatabaseDamageError(self.source.name, [f"{self.name}: {problem}"])

    @property
    def input_lengths(self) -> npt.NDArray[np.int32]:
        """Lengths in input order, shape (n_subjects,)."""
        lengths = np.empty(self.n_subjects, dtype=np.int32)
        lengths[self.order] = self.lengths
        return lengths

    def lazy(self, name: str) -> npt.NDArray[Any]:
        """Return a dataset that is loaded whole at its first use; shape and type are the dataset's.

        Or ``ranks``, shape (n_subjects,), int64: the inverse of the order.
        """
        if name not in self._lazy:
            if name == "ranks":
                ranks = np.empty(self.n_subjects, dtype=np.int64)
                ranks[self.order] = np.arange(self.n_subjects)
                self._lazy[name] = ranks
            else:
                self._lazy[name] = self._checked(name, self.stored[name].all())
        return self._lazy[name]

    def _checked(self, name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what was loaded if it makes sense; runs make it once their starts were loaded before their ends."""
        what, _, part = name.partition("_")
        problem = ""
        if part == "offsets":
            end = self.stored["headers" if what == "header" else f"{what}_starts"].shape[0]
            problem = offsets_problem(values, end, what, least=1 if what == "header" else 0)
        elif part == "ends":
            problem = runs_problem(
                self.lazy(f"{what}_offsets"), self.lazy(f"{what}_starts"), values, self.input_lengths
            )
        if problem:
            raise self._wrong(problem)
        return values

    def chunk(self, first: int, last: int, mask: Mask = "none") -> Chunk:
        """Load the blocks ``first`` to ``last`` (excluded), X in the place of what is masked."""
        start, stop = int(self.block_offsets[first]), int(self.block_offsets[last])
        lanes = slice(first * LANES, min(last * LANES, self.n_subjects))
        residues: ByteArray = self.stored["residues"].load(start, stop)
        if not self._seen[first:last].all():
            problem = residues_problem(residues, self.block_offsets[first : last + 1] - start, self.lengths[lanes])
            if problem:
                raise self._wrong(f"blocks {first} to {last}: {problem}")
            self._seen[first:last] = True
        if mask != "none":
            self._mask(residues, mask, lanes)
        return Chunk(
            residues,
            self.block_offsets[first : last + 1] - start,
            self.lengths[lanes],
            self.order[lanes] + self.first,
        )

    def _mask(self, residues: ByteArray, mask: Mask, lanes: slice) -> None:
        """Put X where subjects, given by their sorted places, are masked in blocks that begin with the first."""
        offsets, starts, ends = (self.lazy(f"{RUNS[mask]}_{part}") for part in ("offsets", "starts", "ends"))
        places = self.order[lanes]
        counts = offsets[places + 1] - offsets[places]
        runs = ranges(offsets[places], counts)
        ranks = np.repeat(np.arange(lanes.start, lanes.stop), counts)
        columns = self.block_offsets[ranks // LANES] - self.block_offsets[lanes.start // LANES]
        first = (columns + starts[runs]) * LANES + ranks % LANES
        lengths = (ends[runs] - starts[runs]).astype(np.int64)
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

    def next_block(self, first: int, max_bytes: int) -> int:
        """Return the end of the longest run of blocks from ``first`` that takes at most ``max_bytes``."""
        limit = int(self.block_offsets[first]) + max_bytes // LANES
        return max(int(np.searchsorted(self.block_offsets, limit, side="right")) - 1, first + 1)

    def codes(self, index: int) -> ByteArray:
        """Return one subject's codes, shape (length,), uint8."""
        rank = int(self.lazy("ranks")[index])
        start = int(self.block_offsets[rank // LANES])
        slab = self.stored["residues"].read(start, start + int(self.lengths[rank]))
        codes: ByteArray = slab[:, rank % LANES].copy()
        if not self._seen[rank // LANES] and len(codes) and codes.max() >= N_LETTERS:
            raise self._wrong(f"subject {self.first + index}: residues are no letters")
        return codes

    # many at once: subjects are given by their places in the segment, shape (n,), int64, repeats allowed

    def lengths_of(self, places: IntArray) -> npt.NDArray[np.int32]:
        """Return the lengths of subjects, shape (n,), int32."""
        lengths: npt.NDArray[np.int32] = self.lengths[self.lazy("ranks")[places]]
        return lengths

    def bounds_of(self, what: str, places: IntArray) -> tuple[IntArray, IntArray]:
        """Return where the headers or masked runs of subjects begin and end: two of shape (n,), int64.

        Parameters
        ----------
        what : {"header", "mask", "tantan"}
            How the name of the offsets begins.
        places : ndarray, shape (n,), int64
            The subjects.
        """
        order = np.argsort(places, kind="stable")
        rows = (places[order][:, None] + np.arange(2)).reshape(-1)
        found = self.stored[f"{what}_offsets"].take(rows)
        end = self.stored["headers" if what == "header" else f"{what}_starts"].shape[0]
        if problem := some_offsets_problem(rows, found, self.n_subjects, end, what, least=int(what == "header")):
            raise self._wrong(problem)
        bounds = np.empty((len(places), 2), dtype=np.int64)
        bounds[order] = found.reshape(-1, 2)
        return bounds[:, 0], bounds[:, 1]

    def copy_codes(self, places: IntArray, to: IntArray, pool: ByteArray) -> None:
        """Write the codes of subjects into a pool, shape (n_bytes,), uint8, at ``to``, shape (n,), int64."""
        ranks = self.lazy("ranks")[places]
        lengths = self.lengths[ranks].astype(np.int64)
        self.stored["residues"].copy(self.block_offsets[ranks // LANES], lengths, to, pool, column=ranks % LANES)
        if self._seen[ranks // LANES].all():
            return
        for place, start, length in zip(places.tolist(), to.tolist(), lengths.tolist(), strict=True):
            if length and pool[start : start + length].max() >= N_LETTERS:
                raise self._wrong(f"subject {self.first + place}: residues are no letters")

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
        starts, ends = (self.lazy(f"{RUNS[mask]}_{part}") for part in ("starts", "ends"))
        count, name = int((ends.astype(np.int64) - starts).sum()), MASK_COUNTS[mask]
        if self.attributes.get(name) != count:
            raise self._wrong(f"attribute {name} is {self.attributes.get(name)!r}, expected {count}")
        return count

    def masked(self, index: int, mask: Mask = "lower") -> list[tuple[int, int]]:
        """Return what of one subject is masked."""
        if mask == "none":
            return []
        start, stop = self.lazy(f"{RUNS[mask]}_offsets")[index : index + 2].tolist()
        starts, ends = (self.stored[f"{RUNS[mask]}_{part}"].read(start, stop).tolist() for part in ("starts", "ends"))
        bounds = [0, *(bound for run in zip(starts, ends, strict=True) for bound in run)]
        length = int(self.lengths[int(self.lazy("ranks")[index])])
        # runs are not empty and do not touch; the first may begin at 0
        if any(a >= b for a, b in pairwise(bounds[1:])) or min(bounds) < 0 or max(bounds) > length:
            raise self._wrong("masked runs overlap or leave their subject")
        return list(zip(starts, ends, strict=True))

    def header(self, index: int) -> bytes:
        """Return one subject's header line."""
        start, stop = self.lazy("header_offsets")[index : index + 2].tolist()
        header: bytes = self.stored["headers"].read(start, stop).tobytes()
        if problem := header_problem(header):
            raise self._wrong(f"subject {self.first + index}: {problem}")
        return header

    def find(self, identifiers: Sequence[str]) -> list[list[int]]:
        """Return for each identifier the subjects that have it, in input order."""
        if "identifier_sums" not in self._lazy:
            sums = self._identifier_sums()
            by_sum = np.argsort(sums, kind="stable")
            self._lazy["identifier_sums"], self._lazy["by_identifier_sum"] = sums[by_sum], by_sum
        sums, by_sum = self._lazy["identifier_sums"], self._lazy["by_identifier_sum"]
        found: list[set[int]] = [set() for _ in identifiers]
        for encoding in ("utf-8", "latin-1"):
            # what cannot be encoded has the sum of something else, which its header then tells
            wanted = [zlib.crc32(identifier.encode(encoding, "replace")) for identifier in identifiers]
            wanted_sums = np.array(wanted, dtype=np.uint32)
            bounds = zip(
                np.searchsorted(sums, wanted_sums, side="left").tolist(),
                np.searchsorted(sums, wanted_sums, side="right").tolist(),
                strict=True,
            )
            for places, (start, stop) in zip(found, bounds, strict=True):
                places.update(by_sum[start:stop].tolist())
        return [
            sorted(place for place in places if header_text(self.header(place))[0] == identifier)
            for identifier, places in zip(identifiers, found, strict=True)
        ]

    def _identifier_sums(self) -> npt.NDArray[np.uint32]:
        """Compute the CRC-32 of every identifier: four bytes per subject in the place of a dictionary."""
        offsets = self.lazy("header_offsets")
        sums = np.empty(self.n_subjects, dtype=np.uint32)
        step = 1 << 16
        for first in range(0, self.n_subjects, step):
            bounds = offsets[first : first + step + 1].tolist()
            pool = self.stored["headers"].load(bounds[0], bounds[-1]).tobytes()
            headers = (pool[a - bounds[0] : b - bounds[0]] for a, b in pairwise(bounds))
            sums[first : first + step] = [zlib.crc32(split_header(header)[0]) for header in headers]
        return sums

    def sources(self) -> list[dict[str, Any]]:
        """Return the files that the segment was made from."""
        try:
            sources = json.loads(self.stored["sources"].all().tobytes())
        except (ValueError, RecursionError) as error:
            raise self._wrong("sources are no JSON") from error
        if not isinstance(sources, list) or not all(is_source(each) for each in sources):
            raise self._wrong("sources are no list of files")
        return sources


def is_source(value: Any) -> bool:
    """Say whether something read from JSON describes a file."""
    if not isinstance(value, dict) or not isinstance(value.get("path"), str):
        return False
    counts = [value.get(name) for name in ("bytes", "records", "residues")]
    return isinstance(value.get("sha256"), (str, type(None))) and all(
        type(count) is int and count >= 0 for count in counts
    )
