"""Subjects that come with what was found, for whoever has no database."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from swsearch.alignments import AlignmentTable
from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import IntArray
from swsearch.db.taxonomy import Taxon
from swsearch.engines.pools import SequencePool
from swsearch.later import Later
from swsearch.masking import MASKED
from swsearch.pipeline.number_arrays import ArrayReader, ArrayWriter, Facts, require
from swsearch.pipeline.subjects import SubjectCounts, SubjectReader
from swsearch.results import Headers, SubjectCodes
from swsearch.translation import Frames
from swsearch.translation.frame import CODON, FRAME_NUMBERS

IS_MASKED = 0x80
"""Bit of a residue that is scored as X."""

LOWER = 0x20
"""Bit of a letter in lower case."""


@dataclass(frozen=True, eq=False)
class ReceivedSubjects:
    """Subjects by their places among those that came; see `swsearch.pipeline.subjects.SubjectReader`.

    Parameters
    ----------
    codes : SubjectCodes
        As they are scored and shown, n of them.
    names : Headers
        Their headers.
    of_records : ndarray, shape (n,), int64
        Places in the input of the records that they are from.
    frames : Frames or None
        Where these are DNA.
    """

    codes: SubjectCodes
    names: Headers
    of_records: IntArray
    frames: Frames | None

    def __len__(self) -> int:
        return len(self.of_records)

    def lengths_of(self, places: IntArray) -> IntArray:
        """See `SubjectReader.lengths_of`."""
        lengths: IntArray = np.diff(self.codes.offsets)[places]
        return lengths

    def published_lengths_of(self, places: IntArray) -> IntArray:
        """See `SubjectReader.published_lengths_of`: of DNA, a third of the nucleotides of records."""
        if self.frames is None:
            return self.lengths_of(places)
        return np.maximum(self.frames.dna_lengths[places] // CODON, 1)

    def scored(self, places: IntArray) -> SequencePool:
        """See `SubjectReader.scored`."""
        taken = self.codes.take(places)
        return taken.codes, taken.offsets

    def shown(self, places: IntArray) -> SubjectCodes:
        """See `SubjectReader.shown`."""
        return self.codes.take(places)

    def headers(self, places: IntArray) -> Headers:
        """See `SubjectReader.headers`."""
        some = self.names.take(places)
        lines = [f"{identifier} {description}".encode() for identifier, description in some.texts]
        taxa = None if some.taxa is None else Later.known(some.taxa)
        return Headers(b"".join(lines), np.cumsum([0, *map(len, lines)], dtype=np.int64), taxa)

    def records(self, places: IntArray) -> tuple[IntArray, Frames | None]:
        """See `SubjectReader.records`."""
        return self.of_records[places], None if self.frames is None else self.frames.take(places)

    def alignments_of(self, places: IntArray) -> AlignmentTable | None:
        """See `SubjectReader.alignments_of`; alignments that were needed come with the hits."""
        return None


def add_subjects(subjects: SubjectReader, places: IntArray, writer: ArrayWriter) -> Facts:
    """Give what reports need of subjects, places of shape (n,), to a writer, and return the rest."""
    shown, headers, (records, frames) = subjects.shown(places), subjects.headers(places), subjects.records(places)
    residues = shown.codes
    if shown.letters is not None:
        residues = PROTEIN.encode_table[shown.letters]
        masked = (residues != shown.codes) | (PROTEIN.decode_table[residues] != shown.letters)
        residues = residues | (masked * np.uint8(IS_MASKED))
    lines = [f"{identifier} {description}".rstrip().encode() for identifier, description in headers.texts]
    writer.add(
        records=records, residues=residues, residue_counts=np.diff(shown.offsets),
        headers=np.frombuffer(b"".join(lines), dtype=np.uint8),
        header_sizes=np.array([len(line) for line in lines], dtype=np.int64),
    )  # fmt: skip
    if frames is not None:
        writer.add(frame_numbers=frames.numbers, frame_starts=frames.starts, dna_lengths=frames.dna_lengths)
    taxa = headers.taxa
    known = {each: row for row, each in enumerate(dict.fromkeys(each for of_one in taxa or () for each in of_one))}
    if taxa is not None:
        writer.add(n_taxa=np.array([len(of_one) for of_one in taxa], dtype=np.int64))
        writer.add(taxa=np.array([known[each] for of_one in taxa for each in of_one], dtype=np.int64))
    return {"n": len(places), "taxa": None if taxa is None else [list(each) for each in known]}


def take_subjects(facts: Facts, reader: ArrayReader, counts: SubjectCounts) -> ReceivedSubjects:
    """Return the subjects of facts and of the next numbers of a reader, of subjects that have these counts."""
    n = facts["n"]
    records = reader.whole("records", n, 0, counts.n_records)
    offsets = reader.offsets("residue_counts", n, "residues")
    codes = _codes(reader.codes("residues", int(offsets[-1])), offsets)
    ends = reader.offsets("header_sizes", n, "headers")
    lines = reader.codes("headers", int(ends[-1]))
    require(not np.isin(lines, (0x0A, 0x0D, 0)).any(), "headers of several lines")
    frames = None
    lengths = np.diff(offsets)
    if counts.are_windows:
        frames = Frames(
            reader.whole("frame_numbers", n), reader.whole("frame_starts", n, 0, 1 << 31),
            reader.whole("dna_lengths", n, 0, 1 << 31),
        )  # fmt: skip
        in_frame = (frames.dna_lengths - (np.abs(frames.numbers) - 1)) // CODON
        good = np.isin(frames.numbers, FRAME_NUMBERS) & (frames.starts + lengths <= in_frame)
        require(good.all(), "invalid frames")
    else:
        require((np.diff(records) > 0).all(), "invalid subjects")
        require(lengths.max(initial=0) <= counts.longest, "subjects that are too long")
    later = None
    if (taxa := facts["taxa"]) is not None:
        known = [Taxon(*each) for each in taxa]
        good = all(type(each.taxid) is int and all(isinstance(text, str) for text in each[1:]) for each in known)
        require(good, "invalid taxa")
        bounds = reader.offsets("n_taxa", n, "taxa")
        rows = reader.whole("taxa", int(bounds[-1]), 0, len(known)).tolist()
        of_each = [tuple(known[row] for row in rows[begin:end]) for begin, end in pairwise(bounds.tolist())]
        later = Later.known(of_each)
    return ReceivedSubjects(codes, Headers(lines.tobytes(), ends, later), records, frames)


def _codes(residues: ByteArray, offsets: IntArray) -> SubjectCodes:
    """Return residues with their masks, shape (n_residues,), as they are scored and shown."""
    stored, is_masked = residues & ~np.uint8(IS_MASKED), residues >= IS_MASKED
    require(stored.max(initial=0) < len(PROTEIN.letters), "invalid residues")
    if not is_masked.any():
        return SubjectCodes(stored, None, offsets)
    letters = PROTEIN.decode_table[stored]
    letters[is_masked] |= LOWER
    before = np.concatenate([[0], np.cumsum(is_masked)])
    codes = np.where(is_masked, np.uint8(MASKED), stored)
    return SubjectCodes(codes, letters, offsets, np.diff(before[offsets]) > 0)
