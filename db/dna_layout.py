"""A segment of DNA: records end to end, two letters a byte, which searches translate when they read them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from swsearch.alphabet import ByteArray
from swsearch.db.format import Parts
from swsearch.db.layout import DatasetWriter, Records, Sink, dataset_bytes, write_numbers, write_texts
from swsearch.db.numbers import MIB, running_sums
from swsearch.options.words import Mask

LETTERS_AT_ONCE = 4 * MIB
"""Letters that are packed at a time; an even number."""


def packed(codes: ByteArray) -> ByteArray:
    """Pack codes of `swsearch.alphabet.DNA`, shape (n,), two in a byte; of an odd number the last half is 0."""
    pairs: ByteArray = np.zeros(2 * -(-len(codes) // 2), dtype=np.uint8)
    pairs[: len(codes)] = codes
    return (pairs[::2] << np.uint8(4)) | pairs[1::2]


def unpacked(data: ByteArray) -> ByteArray:
    """Return the codes in bytes, shape (n,), as shape (2 * n,)."""
    codes = np.empty(2 * len(data), dtype=np.uint8)
    codes[::2], codes[1::2] = data >> 4, data & 15
    return codes


class DnaLayout:
    """The plan of one segment of DNA: what is known once all input has been read.

    Parameters
    ----------
    spool : Records
        All input of the segment, whose codes are those of `swsearch.alphabet.DNA`; nothing can be added any more.
    genetic_code : int
        NCBI's number.
    """

    mask: Mask = "none"
    """What is in lower case is remembered."""

    def __init__(self, spool: Records, genetic_code: int) -> None:
        self._spool, self.genetic_code = spool, genetic_code
        self._classes = spool.finish()
        self._sources = json.dumps(spool.sources).encode()

    @property
    def n_bytes(self) -> int:
        """Bytes of the segment's datasets, to a few KiB."""
        return sum(dataset_bytes(self.shapes()).values())

    @property
    def parts(self) -> Parts:
        """The optional parts of the segment."""
        return tuple(each.name for each in self._spool.extras)

    @property
    def counts(self) -> dict[str, int]:
        """Attributes of the segment; its subjects are records, and its residues nucleotides."""
        return {
            "n_subjects": self._classes.n_subjects,
            "n_residues": self._classes.n_residues,
            "n_empty": self._classes.n_empty,
            "n_masked": self._spool.masks.n_masked,
            "longest": int(self._classes.values[0]),
        }

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of every dataset of the segment."""
        n, n_runs = self._classes.n_subjects, len(self._spool.masks)
        shapes: dict[str, tuple[int, ...]] = {
            "nucleotides": (-(-self._classes.n_residues // 2),),
            "record_lengths": (n,),
            "headers": (self._spool.n_header_bytes,),
            "header_offsets": (n + 1,),
            "mask_offsets": (n + 1,),
            "mask_starts": (n_runs,),
            "mask_ends": (n_runs,),
            "sources": (len(self._sources),),
        }
        for each in self._spool.extras:
            shapes |= each.shapes()
        return shapes

    def write(self, sink: Sink) -> None:
        """Write every dataset and its checksums."""
        spool = self._spool
        numbers: dict[str, Iterator[Any]] = {
            "record_lengths": spool.lengths.pieces(),
            "header_offsets": running_sums(spool.header_lengths.pieces()),
            "mask_offsets": running_sums(spool.masks.counts(self._classes.n_subjects)),
            "mask_starts": spool.masks.starts.pieces(),
            "mask_ends": spool.masks.ends.pieces(),
        }
        for each in spool.extras:
            numbers |= each.pieces()
        write_numbers(sink, numbers)
        write_texts(sink, spool, self._sources)
        writer = DatasetWriter(sink, "nucleotides")
        spool.codes.seek(0)
        while piece := spool.codes.read(LETTERS_AT_ONCE):
            writer.write(packed(np.frombuffer(piece, dtype=np.uint8)))
        writer.close()
