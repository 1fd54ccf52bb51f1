"""Reader of segments: checksums are checked on reading, values on first use."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PAD, PROTEIN, ByteArray
from swsearch.blocks import LANES, MASK_CODE, Chunk, IntArray, RunLengths, unique_with_places
from swsearch.db.arrays import StoredArray, Strips, cut_into_groups, offsets_of, ranges
from swsearch.db.byte_source import FileSource
from swsearch.db.fasta import split_header
from swsearch.db.file_contents import SegmentEntry
from swsearch.db.records import SegmentInput
from swsearch.db.taxonomy import TREE_ARRAYS, Taxonomy, TaxonomyDamageError
from swsearch.errors import DatabaseDamageError, format_value
from swsearch.options.kinds import Mask

N_LETTERS = len(PROTEIN.letters)

ENDS_PER_BATCH = 1 << 11
"""Columns in which subjects end that are checked at a time: 128 KiB of codes, so that all stays in the cache."""


def lengths_problem(lengths: RunLengths, block_offsets: IntArray) -> str:
    """Check the numbers that say where the sorted subjects stand; block offsets have the shape (n_blocks + 1,)."""
    if not len(lengths) or lengths.values[-1] < 0 or not lengths.is_descending:
        return "lengths do not descend"
    if block_offsets[0] or (np.diff(block_offsets) != lengths.block_columns()).any():
        return "block offsets do not fit the lengths"
    return ""


def some_offsets_problem(rows: IntArray, offsets: Any, n: int, end: int, what: str, min_step: int = 0) -> str:
    """Check pairs of neighbours among offsets from 0 to ``end`` that ascend in steps of at least ``min_step``.

    ``rows`` and ``offsets``, shape (2 * n_pairs,), int64, are places from 0 to ``n`` and the values there, pair after
    pair.
    """
    fine = not offsets[rows == 0].any() and bool((offsets[rows == n] == end).all())
    # compared, not subtracted: a difference of two int64 may wrap
    fine = fine and bool((offsets >= 0).all() and (offsets <= end).all())
    starts, stops = offsets[::2], offsets[1::2]
    fine = fine and bool((stops > starts).all() if min_step else (stops >= starts).all())
    return "" if fine else f"{what} offsets do not fit the {what}s"


def runs_problem(offsets: IntArray, starts: Any, ends: Any, lengths: npt.NDArray[np.integer]) -> str:
    """Check masked runs: ascending, apart and inside their subjects, whose lengths stand in input order.

    Offsets have the shape (n_subjects + 1,), starts and ends (n_runs,), lengths (n_subjects,).
    """
    counts = np.diff(offsets)
    if not len(starts):
        return ""
    inside = (starts >= 0) & (starts < ends) & (ends <= np.repeat(lengths, counts))
    apart = starts[1:] > ends[:-1]
    firsts = offsets[1:-1][(offsets[1:-1] > 0) & (offsets[1:-1] < len(starts))]
    apart[firsts - 1] = True  # the first of a subject need not come after the last of another
    return "" if inside.all() and apart.all() else "masked runs overlap or leave their subject"


def residues_problem(residues: ByteArray, offsets: IntArray, lengths: npt.NDArray[np.integer]) -> str:
    """Check blocks: letters at every place of a subject, padding after its end and nowhere else.

    ``residues`` have shape (n_columns, 64), uint8; ``offsets``, the first column of each block, shape (n_blocks +
    1,), int64; ``lengths`` of the subjects, descending, shape (n_subjects,).
    """
    n_blocks = len(offsets) - 1
    table: npt.NDArray[np.int32] = np.zeros((n_blocks, LANES), dtype=np.int32)
    table.reshape(-1)[: len(lengths)] = lengths
    # up to the end of a block's shortest subject there are letters only, and hardly anything stands after it
    shortest = table[:, -1].astype(np.int64)
    if (max_code := _max_of_ranges(residues.reshape(-1), offsets[:-1] * LANES, shortest * LANES)) >= N_LETTERS:
        return "residues or padding do not fit the lengths" if max_code == PAD else "residues are not letters"
    counts = np.diff(offsets) - shortest
    ends = np.cumsum(counts)
    for at in range(0, int(ends[-1]) if n_blocks else 0, ENDS_PER_BATCH):
        places = np.arange(at, min(at + ENDS_PER_BATCH, int(ends[-1])))
        blocks = np.searchsorted(ends, places, side="right")
        columns = places - (ends - counts)[blocks] + shortest[blocks]
        inside = columns[:, None] < table[blocks]
        values = residues[offsets[blocks] + columns]
        padding = values == PAD
        if ((values >= N_LETTERS) & ~padding).any():
            return "residues are not letters"
        if (padding == inside).any():
            return "residues or padding do not fit the lengths"
    return ""


def _max_of_ranges(values: ByteArray, begins: IntArray, counts: IntArray) -> int:
    """Return the greatest byte of ranges, which ascend and are apart; 0 if all are empty.

    One call reads each byte once and lets other threads run meanwhile.
    """
    filled = counts > 0
    if not filled.any():
        return 0
    bounds = np.column_stack([begins[filled], (begins + counts)[filled]]).reshape(-1)
    if bounds[-1] == len(values):  # the last range goes to the end, where no further one may begin
        bounds = bounds[:-1]
    return int(np.maximum.reduceat(values, bounds)[::2].max())


def headers_problem(pool: ByteArray, begins: IntArray, counts: IntArray) -> int | None:
    """Return the place of the first header line that fails `header_problem`, or None.

    Headers are in ``pool``, shape (n_bytes,), uint8, from ``begins``, with ``counts`` bytes, at least one, both of
    shape (n,), int64.
    """
    if not len(begins):
        return None
    text = pool.data
    # most begin with their identifier, and hold no control characters
    odd = pool[begins] <= ord(" ")
    low = np.flatnonzero(pool < ord(" "))
    if len(low):
        order = np.argsort(begins, kind="stable")
        odd[order[np.searchsorted(begins[order], low, side="right") - 1]] = True
    for place in np.flatnonzero(odd).tolist():
        if header_problem(bytes(text[begins[place] : begins[place] + counts[place]])):
            return int(place)
    return None


def header_problem(header: bytes) -> str:
    """Check one header line."""
    if b"\n" in header or b"\r" in header or b"\0" in header:
        return "a header holds a line end or a NUL"
    # most begin with their identifier
    return "" if header[:1] > b" " or split_header(header)[0] else "a header has no identifier"


RUNS: dict[Mask, str] = {"lower": "mask", "tantan": "tantan"}
"""Prefixes of the names of each mask's arrays."""

MASK_COUNTS: dict[Mask, str] = {"lower": "n_masked", "tantan": "n_tantan"}
"""The attributes that say how many residues each mask covers."""

SUBJECTS_PER_BATCH, HEADER_BYTES_PER_BATCH = 1 << 16, 8 << 20
"""Subjects whose headers, runs or taxids are read at a time where all are, and bytes of headers."""

RESIDUE_BYTES_PER_BATCH = 8 << 20
"""Bytes of interleaved residues that are read at a time where all are."""

MASKED_RUNS_PER_BATCH = 1 << 20
"""Residues that are masked at a time."""


class Segment:
    """A segment of a database; ``first`` is the ordinal of its first subject, ``number`` its place in the file.

    Subjects are given by their places in it, arrays of shape (n,), int64, in any order, repeats allowed.
    """

    def __init__(self, source: FileSource, entry: SegmentEntry, first: int, number: int) -> None:
        self.source, self.first, self.name = source, first, f"/segments/{number}"
        self.attributes = entry.attributes
        self.stored = {name: StoredArray(source, each, self.name) for name, each in entry.arrays.items()}
        self.n_subjects = int(entry.attributes["n_subjects"])
        self.has_taxids = "taxids" in self.stored
        self._n_masked: dict[Mask, int] = {}
        self._ranks: npt.NDArray[np.uint32] | None = None
        self._read_lengths()
        self._check_count("n_residues", self.lengths.n_residues)
        self._check_count("n_empty", self.n_subjects - self.lengths.n_nonempty)
        self._check_count("longest", self.lengths.longest)

    def _read_lengths(self) -> None:
        """Read how long the subjects are and where they stand, and check that the residues fit this."""
        self.lengths = RunLengths.concatenate(
            [RunLengths.from_lengths(part) for _, part in self.stored["lengths"].parts()]
        )
        """Lengths of the sorted subjects."""
        self.block_offsets: IntArray = self.stored["block_offsets"].all()
        self._seen = np.zeros(max(len(self.block_offsets) - 1, 0), dtype=bool)
        if problem := lengths_problem(self.lengths, self.block_offsets):
            raise self.damage_error(problem)
        if self.stored["residues"].shape[0] != self.block_offsets[-1]:
            raise self.damage_error("residues do not fit the block offsets")

    def _check_count(self, name: str, count: int) -> None:
        """Raise unless an attribute says how many there are."""
        if self.attributes.get(name) != count:
            raise self.damage_error(f"attribute {name} is {self.attributes.get(name)!r}, expected {count}")

    @property
    def stored_bytes(self) -> int:
        """Bytes of all its arrays."""
        return sum(each.n_bytes for each in self.stored.values())

    def damage_error(self, problem: str) -> DatabaseDamageError:
        """Return the error for values that no writer writes."""
        return DatabaseDamageError(self.source.name, [f"{self.name}: {problem}"])

    @property
    def ranks(self) -> npt.NDArray[np.uint32]:
        """The sorted place of each subject, shape (n_subjects,), in input order: all that is kept for each."""
        # no lock, which a process that is forked meanwhile would find locked for ever: two threads make it twice
        if self._ranks is None:
            self._ranks = self._compute_ranks()
        return self._ranks

    def _compute_ranks(self) -> npt.NDArray[np.uint32]:
        """Return the rank of each subject, the inverse of the stored order, which is checked to be a permutation."""
        n, nowhere = self.n_subjects, np.iinfo(np.uint32).max
        ranks = np.full(n, nowhere, dtype=np.uint32)
        problem, before = "", -1
        for start, order in self.stored["order"].parts():
            if order.min() < 0 or order.max() >= n:
                raise self.damage_error("order is not a permutation")
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
            raise self.damage_error(problem)
        return ranks

    def input_lengths(self) -> npt.NDArray[np.int32]:
        """Return the lengths in input order, shape (n_subjects,)."""
        return self.lengths_of(np.arange(self.n_subjects))

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
                raise self.damage_error(f"blocks {first} to {last}: {problem}")
            self._seen[first:last] = True
        if mask != "none":
            self._mask(residues, offsets, self.runs_of(order, mask))
        return Chunk(residues, offsets, lengths, order + self.first)

    def _mask(self, residues: ByteArray, offsets: IntArray, runs: Strips) -> None:
        """Put X where the subjects of blocks are masked; ``offsets`` are the first columns of the blocks."""
        places = np.repeat(np.arange(len(runs)), runs.counts)
        starts, ends = runs.data[:, 0], runs.data[:, 1]
        first = (offsets[places // LANES] + starts) * LANES + places % LANES
        lengths = (ends - starts).astype(np.int64)
        flat = residues.reshape(-1)
        for begin, end in cut_into_groups(
            offsets_of(lengths), MASKED_RUNS_PER_BATCH
        ):  # their places take 24 bytes per residue
            inside = ranges(np.zeros(end - begin, dtype=np.int64), lengths[begin:end])
            flat[np.repeat(first[begin:end], lengths[begin:end]) + inside * LANES] = MASK_CODE

    def lengths_of(self, places: IntArray) -> npt.NDArray[np.int32]:
        """Return the lengths of subjects, shape (n,)."""
        return self.lengths.at(self.ranks[places])

    def codes_of(self, places: IntArray, threads: int = 1) -> Strips:
        """Return the residue codes of subjects, shape (n,), nothing masked."""
        ranks = self.ranks[places].astype(np.int64)
        lengths = self.lengths.at(ranks).astype(np.int64)
        blocks, offsets = ranks // LANES, offsets_of(lengths)
        begins = self.block_offsets[blocks] * LANES + ranks % LANES
        pool = self.stored["residues"].gather(begins, offsets, LANES, threads)
        if not self._seen[blocks].all() and len(pool) and pool.max() >= N_LETTERS:
            owner = int(np.searchsorted(offsets, int(pool.argmax()), side="right")) - 1
            raise self.damage_error(f"subject {self.first + int(places[owner])}: residues are not letters")
        return Strips(pool, offsets)

    def headers_of(self, places: IntArray) -> Strips:
        """Return the header lines of subjects, shape (n,)."""
        strips = self._items("header", "headers", places, 1)
        bad = headers_problem(strips.data, strips.offsets[:-1], strips.counts)
        if bad is not None:
            problem = header_problem(strips.part(bad, bad + 1).data.tobytes())
            raise self.damage_error(f"subject {self.first + int(places[bad])}: {problem}")
        return strips

    def runs_of(self, places: IntArray, mask: Mask) -> Strips:
        """Return what a mask covers of subjects: runs, shape (n_runs, 2), int32, 0-based and half-open."""
        if mask == "none":
            return Strips(np.empty((0, 2), dtype=np.int32), np.zeros(len(places) + 1, dtype=np.int64))
        starts, ends = (self._items(RUNS[mask], f"{RUNS[mask]}_{part}", places) for part in ("starts", "ends"))
        if problem := runs_problem(starts.offsets, starts.data, ends.data, self.lengths_of(places)):
            raise self.damage_error(problem)
        return Strips(np.column_stack([starts.data, ends.data]), starts.offsets)

    def taxids_of(self, places: IntArray) -> Strips:
        """Return the taxids of subjects, shape (n,), ascending within each."""
        if not self.has_taxids:
            return Strips(np.empty(0, dtype=np.int32), np.zeros(len(places) + 1, dtype=np.int64))
        strips = self._items("taxid", "taxids", places)
        ascend = strips.data[1:] > strips.data[:-1]
        firsts = strips.offsets[1:-1]
        ascend[firsts[(firsts > 0) & (firsts < len(strips.data))] - 1] = True  # that of another subject
        if not ascend.all() or (strips.data < 1).any():
            raise self.damage_error("taxids do not ascend within a subject")
        return strips

    def _items(self, what: str, items: str, places: IntArray, min_length: int = 0) -> Strips:
        """Return the rows of the array ``items`` of subjects, shape (n,), at least ``min_length`` each.

        ``what`` is the prefix of the array of offsets.
        """
        chosen, back = unique_with_places(places)
        rows = (chosen[:, None] + np.arange(2)).reshape(-1)
        offsets = self.stored[f"{what}_offsets"].take(rows).astype(np.int64, copy=False)
        stored = self.stored[items]
        if problem := some_offsets_problem(rows, offsets, self.n_subjects, stored.shape[0], what, min_length):
            raise self.damage_error(problem)
        bounds = offsets.reshape(-1, 2)[back]
        return stored.ranges(bounds[:, 0], bounds[:, 1])

    def n_masked(self, mask: Mask) -> int:
        """Count the residues that a mask covers."""
        if mask not in self._n_masked:
            starts, ends = (self.stored[f"{RUNS[mask]}_{part}"].parts() for part in ("starts", "ends"))
            pairs = zip(starts, ends, strict=True)
            self._n_masked[mask] = sum(int((b.astype(np.int64) - a).sum()) for (_, a), (_, b) in pairs)
        self._check_count(MASK_COUNTS[mask], self._n_masked[mask])
        return self._n_masked[mask]

    def all_headers(self) -> Iterator[tuple[Strips, int]]:
        """Yield all header lines, some at a time, and the ordinal of the first."""
        step = max(HEADER_BYTES_PER_BATCH * self.n_subjects // max(self.stored["headers"].n_bytes, 1), 1)
        for places in self._every_place(step):
            yield self.headers_of(places), self.first + int(places[0])

    def all_taxids(self) -> Iterator[tuple[Strips, int]]:
        """Yield the taxids of all subjects, some at a time, and the ordinal of the first; none where none has any."""
        for places in self._every_place() if self.has_taxids else ():
            yield self.taxids_of(places), self.first + int(places[0])

    def _every_place(self, max_places: int = SUBJECTS_PER_BATCH) -> Iterator[IntArray]:
        """Yield the places of all subjects, at most so many at a time."""
        step = min(max_places, SUBJECTS_PER_BATCH)
        return (np.arange(first, min(first + step, self.n_subjects)) for first in range(0, self.n_subjects, step))

    def taxonomy(self) -> Taxonomy:
        """Return the taxa of its file."""
        taxonomy = Taxonomy.from_arrays({name: self.stored[name].all() for name in TREE_ARRAYS})
        try:
            taxonomy.check()
        except TaxonomyDamageError as error:
            raise self.damage_error(str(error)) from error
        return taxonomy

    def sources(self) -> list[dict[str, Any]]:
        """Return the files that the segment was made from."""
        try:
            sources = json.loads(self.stored["sources"].all().tobytes())
        except (ValueError, RecursionError) as error:
            raise self.damage_error("sources are not JSON") from error
        if not isinstance(sources, list) or not all(is_source(each) for each in sources):
            raise self.damage_error("sources are not a manifest")
        return sources

    def info(self) -> dict[str, Any]:
        """Return what `Database.info` says of it."""
        return {
            "n_subjects": self.n_subjects,
            "n_residues": self.lengths.n_residues,
            "n_blocks": len(self.block_offsets) - 1,
            "n_columns": int(self.block_offsets[-1]),
            "created": str(self.attributes.get("created")),
            "software": str(self.attributes.get("software")),
            "sources": self.sources(),
        }

    def records(self, first: int, last: int) -> SegmentInput:
        """Return the subjects from ``first`` to ``last``, excluded, in the order of the input, as they came in."""
        places = np.arange(first, last)
        parts = {"codes": self._codes_between(first, last), "headers": self.headers_of(places)}
        parts |= {RUNS[mask]: self.runs_of(places, mask) for mask in self.masks}
        parts |= {"taxids": self.taxids_of(places)} if self.has_taxids else {}
        return SegmentInput(parts)

    def _codes_between(self, first: int, last: int) -> Strips:
        """Return the residue codes of neighbours in the input; every block is checked once."""
        if not self._seen.all():
            self._check_residues()
        return self.codes_of(np.arange(first, last))

    def find_damage(self) -> list[str]:
        """Check all that is not checked when a segment is opened; return what is wrong."""
        try:
            if self.has_taxids:
                self.taxonomy()
            self.sources()
            _ = self.ranks
            for places in self._every_place():
                self.headers_of(places)
                self.taxids_of(places)
                for mask in self.masks:
                    self.runs_of(places, mask)
            for mask in self.masks:
                self.n_masked(mask)
            self._check_residues()
        except DatabaseDamageError as error:
            return [problem.removeprefix(f"{self.name}: ") for problem in error.problems]
        return []

    @property
    def masks(self) -> list[Mask]:
        """The masks that it has."""
        return [mask for mask, name in RUNS.items() if f"{name}_offsets" in self.stored]

    def _every_block(self) -> Iterator[tuple[int, int]]:
        """Yield all blocks, some at a time."""
        return cut_into_groups(self.block_offsets, RESIDUE_BYTES_PER_BATCH // LANES)

    def _check_residues(self) -> None:
        """Check that every residue is a letter and that padding stands after every end and nowhere else."""
        for first, last in self._every_block():
            self.chunk(first, last)


def check_subjects(subjects: Any, n_subjects: int) -> IntArray:
    """Return ordinals as an array, shape (n,), int64; raise ``TypeError`` or ``IndexError`` for wrong ones."""
    array = np.asarray(subjects)
    if array.ndim != 1 or (len(array) and not np.issubdtype(array.dtype, np.integer)):
        raise TypeError(f"subjects: got {format_value(subjects)}, expected integers in one dimension")
    outside = (array < 0) | (array >= n_subjects) if len(array) else array
    if outside.any():
        raise IndexError(f"subject {array[np.argmax(outside)]}, expected 0 to {n_subjects - 1}")
    return array.astype(np.int64)


def by_segment(segments: Sequence[Segment], subjects: IntArray) -> Iterator[tuple[Segment, IntArray, IntArray]]:
    """Yield each segment that holds some of the subjects, shape (n,), which of them, and their places in it.

    Where there are no subjects it yields the first segment.
    """
    if len(segments) == 1 or not len(subjects):
        yield segments[0], np.arange(len(subjects)), subjects - segments[0].first
        return
    firsts = np.array([segment.first for segment in segments])
    of = np.searchsorted(firsts, subjects, side="right") - 1
    for number in np.flatnonzero(np.bincount(of)).tolist():
        which, segment = np.flatnonzero(of == number), segments[number]
        yield segment, which, subjects[which] - segment.first


def gather_strips(
    segments: Sequence[Segment], subjects: IntArray, read: Callable[[Segment, IntArray, IntArray], Strips]
) -> Strips:
    """Join the strips that ``read`` returns for the subjects of each segment, shape (n,), in their order."""
    parts, order = [], []
    for segment, which, places in by_segment(segments, subjects):
        parts.append(read(segment, which, places))
        order.append(which)
    joined, which = Strips.concatenate(parts), np.concatenate(order)
    return joined if (which[1:] > which[:-1]).all() else joined.take(np.argsort(which, kind="stable"))


def is_source(value: Any) -> bool:
    """Return whether a value read from JSON describes a file."""
    if not isinstance(value, dict) or not isinstance(value.get("path"), str):
        return False
    counts = [value.get(name) for name in ("bytes", "records", "residues")]
    return isinstance(value.get("sha256"), (str, type(None))) and all(
        type(count) is int and count >= 0 for count in counts
    )
