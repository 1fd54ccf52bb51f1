"""Writer of segments: sorts and interleaves records."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PAD, ByteArray
from swsearch.blocks import LANES, IntArray, block_columns, tantan_finder
from swsearch.db.arrays import Strips, offsets_of, rows_at
from swsearch.db.container import SegmentFile, SegmentSink
from swsearch.db.file_contents import Attributes
from swsearch.db.format import DatabaseKind
from swsearch.db.records import SegmentInput

WINDOW_COLUMNS = 1 << 15
"""Columns of blocks that are interleaved at once: 2 MiB. Titin's block has 35,216."""

LETTERS_PER_WRITE = 1 << 22
"""Letters of DNA that are packed at a time; an even number."""

_MAX_FIRST = np.uint64(2**32 - 1)


def sorted_places(lengths: npt.NDArray[np.int32]) -> IntArray:
    """Sort subjects by descending length, those of one length as they stand: return places, both of shape (n,)."""
    # one number of 64 bits each: numpy sorts these many times as fast as it sorts pairs or keeps ties in order
    keys = lengths.astype(np.uint64)
    np.subtract(_MAX_FIRST, keys, out=keys)
    keys <<= np.uint64(32)
    keys |= np.arange(len(lengths), dtype=np.uint64)
    keys.sort()
    keys &= _MAX_FIRST
    return keys.view(np.int64)


def segment_bytes(records: SegmentInput, kind: DatabaseKind) -> int:
    """Return how many bytes records take as a segment, but for checksums, taxa and what HDF5 adds."""
    lengths, n = records.codes.counts, len(records)
    columns = int(block_columns(np.sort(lengths)[::-1]).sum())
    residues = columns * LANES + 12 * n if kind.genetic_code is None else int(lengths.sum()) // 2 + 4 * n
    runs = [each for name, each in records.parts.items() if name in ("mask", "tantan")]
    return residues + len(records.headers.data) + 8 * n + sum(8 * len(each.data) + 8 * n for each in runs)


def find_low_complexity(codes: Strips) -> Strips:
    """Find what tantan masks of records: runs, shape (n_runs, 2)."""
    find = tantan_finder()
    runs_found = [find(codes.data[a:b]) for a, b in zip(codes.offsets[:-1], codes.offsets[1:], strict=True)]
    runs = np.array([run for of_one in runs_found for run in of_one], dtype=np.int32).reshape(-1, 2)
    return Strips.from_counts(runs, np.array([len(of_one) for of_one in runs_found]))


def write_segment(file: SegmentFile, records: SegmentInput) -> None:
    """Write records as a segment of a file, but for its sources and what is not known of its taxa."""
    kind, sink = file.kind, file.add(counts_of(records, file.kind), records.sources())
    lengths = records.codes.counts.astype(np.int32)
    if kind.genetic_code is None:
        order = sorted_places(lengths)
        offsets = offsets_of(block_columns(lengths[order]))
        for name, values in (("order", order), ("lengths", lengths[order]), ("block_offsets", offsets)):
            sink.put(name, values)
        sink.create("residues", (int(offsets[-1]), LANES))
        for blocks in interleave_records(records.codes, order):
            sink.write("residues", blocks)
    else:
        sink.put("record_lengths", lengths)
        letters = records.codes.data
        sink.create("nucleotides", (-(-len(letters) // 2),))
        for at in range(0, len(letters), LETTERS_PER_WRITE):
            sink.write("nucleotides", pack_nucleotides(letters[at : at + LETTERS_PER_WRITE]))
    sink.put("headers", records.headers.data)
    sink.put("header_offsets", records.headers.offsets)
    for name in ("mask", "tantan") if kind.mask == "tantan" else ("mask",):
        runs = records.parts[name]
        sink.put(f"{name}_offsets", runs.offsets)
        sink.put(f"{name}_starts", runs.data[:, 0])
        sink.put(f"{name}_ends", runs.data[:, 1])
    if "taxids" in records.parts:
        write_taxids(sink, records.parts["taxids"])


def write_taxids(sink: SegmentSink, taxids: Strips) -> None:
    """Write the taxids of the subjects of a segment."""
    sink.put("taxid_offsets", taxids.offsets)
    sink.put("taxids", taxids.data)


def counts_of(records: SegmentInput, kind: DatabaseKind) -> Attributes:
    """Return the attributes of a segment that count."""
    lengths = records.codes.counts

    def n_masked(name: str) -> int:
        runs = records.parts[name].data
        return int((runs[:, 1] - runs[:, 0]).sum())

    return {
        "n_subjects": len(records),
        "n_residues": len(records.codes.data),
        "n_empty": int((lengths == 0).sum()),
        "n_masked": n_masked("mask"),
        **({"n_tantan": n_masked("tantan")} if kind.mask == "tantan" else {}),
        "longest": int(lengths.max()),
    }


def pack_nucleotides(codes: ByteArray) -> ByteArray:
    """Pack codes of `swsearch.alphabet.DNA`, shape (n,), two in a byte; of an odd number the last half is 0."""
    pairs: ByteArray = np.zeros(2 * -(-len(codes) // 2), dtype=np.uint8)
    pairs[: len(codes)] = codes
    return (pairs[::2] << np.uint8(4)) | pairs[1::2]


def interleave_records(codes: Strips, order: IntArray) -> Iterator[ByteArray]:
    """Yield the blocks of records in an order in which they descend by length, as shape (n_blocks, columns, 64)."""
    lengths = codes.counts[order]
    columns = block_columns(lengths)
    firsts = np.flatnonzero(np.diff(columns, prepend=-1)).tolist()
    # blocks of as many columns are one array
    for first, last in zip(firsts, [*firsts[1:], len(columns)], strict=True):
        n_columns = int(columns[first])
        step = max(WINDOW_COLUMNS // max(n_columns, 1), 1)
        for block in range(first, last, step):
            lanes = slice(block * LANES, min(block + step, last) * LANES)
            for column in range(0, n_columns, WINDOW_COLUMNS):
                width = min(WINDOW_COLUMNS, n_columns - column)
                yield _window(codes.data, codes.offsets[order[lanes]] + column, lengths[lanes] - column, width)


def _window(data: ByteArray, begins: IntArray, lengths: IntArray, width: int) -> ByteArray:
    """Interleave so many columns of blocks; of each record ``lengths`` residues are left from ``begins`` on."""
    n_blocks = -(-len(begins) // LANES)
    rows = np.full((n_blocks * LANES, width), PAD, dtype=np.uint8)
    inside = begins + width <= len(data)
    # what stands after a subject's end does not matter: it is replaced by padding
    if inside.any():
        rows[: len(begins)][inside] = rows_at(data, begins[inside], width)
    for lane in np.flatnonzero(~inside).tolist():  # those that end where all ends
        n = min(max(int(lengths[lane]), 0), width)
        rows[lane, :n] = data[begins[lane] : begins[lane] + n]
    shortest = max(int(lengths.min()), 0)
    rows[: len(begins), shortest:][np.arange(shortest, width) >= lengths[:, None]] = PAD
    return np.ascontiguousarray(rows.reshape(n_blocks, LANES, width).transpose(0, 2, 1))
