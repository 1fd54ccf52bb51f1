"""A database of DNA as one of windows of its reading frames, for a search."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.db import bulk
from swsearch.db.database import Database, Ordinals
from swsearch.db.dna_stored import DnaSegment
from swsearch.db.frames import FramePieces, FrameSegment, Windows, cores_of, pieces_of, translated
from swsearch.db.shares import all_blocks
from swsearch.db.stored_taxa import taxids_of, with_names
from swsearch.db.taxonomy import Taxa
from swsearch.errors import OptionError


class FramedDatabase(Database):
    """An open database of DNA whose subjects are windows of frames: counts, lengths, codes and chunks are theirs.

    Headers are those of the records that they are of. `of` makes one.
    """

    windows: Windows
    """How frames are cut."""

    @classmethod
    def of(cls, database: Database, windows: Windows) -> FramedDatabase:
        """Return windows of a database, to be closed on its own.

        Parameters
        ----------
        database : Database
            Open, of DNA.
        windows : Windows
            How frames are to be cut.

        Raises
        ------
        OptionError
            If the database holds proteins.
        """
        if database.genetic_code is None:
            raise OptionError("windows", windows, "a database of DNA", f"{database.name} holds proteins")
        twin = object.__new__(cls)
        twin.__dict__.update(database.__dict__)
        segments: list[FrameSegment] = []
        first = 0
        for dna in twin._held.segments:
            assert isinstance(dna, DnaSegment)
            segments.append(FrameSegment(dna, database.genetic_code, windows, first))
            first += segments[-1].n_subjects
        twin.windows, twin.n_subjects = windows, first
        twin._firsts = [segment.first for segment in segments]
        twin._take(twin._held._replace(segments=segments, runs=all_blocks(segments)))
        return twin

    @property
    def _framed(self) -> list[FrameSegment]:
        return [each for each in self._segments if isinstance(each, FrameSegment)]

    def pieces_of(self, subjects: Ordinals) -> FramePieces:
        """Return which pieces of frames windows are, by ordinal, shape (n,)."""
        return pieces_of(self._framed, bulk.checked_subjects(subjects, self.n_subjects))

    def cores_of(self, subjects: Ordinals) -> tuple[IntArray, IntArray]:
        """Return where the cores of windows begin and end in their frames, two of shape (n,), int64."""
        return cores_of(self._framed, bulk.checked_subjects(subjects, self.n_subjects))

    def translated(self, pieces: FramePieces) -> tuple[ByteArray, IntArray]:
        """Translate n pieces of frames, whose records are places in the input.

        Returns
        -------
        codes : ndarray, shape (n_residues,), uint8
            End to end.
        offsets : ndarray, shape (n + 1,), int64
            Where each begins.
        """
        return translated(self._framed, pieces)

    def record_headers(self, records: IntArray) -> tuple[ByteArray, IntArray]:
        """Return the header lines of records, shape (n,), as `headers_of` does: shapes (m,) and (n + 1,)."""
        return bulk.headers_of([each.dna for each in self._framed], records)

    def record_taxa(self, records: IntArray) -> list[Taxa]:
        """Return the taxa of records, shape (n,), as `taxa_of` does those of subjects."""
        return with_names(taxids_of([each.dna for each in self._framed], records), self.taxonomy)

    def record_lengths(self) -> npt.NDArray[np.int32]:
        """Return the nucleotides of every record, shape (n_records,)."""
        return np.concatenate([each.dna.input_lengths() for each in self._framed])
