"""Reading subjects as a search scores and shows them, many at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import IntArray
from swsearch.masking import MASKED, Mask, masked_codes, shown_letters
from swsearch.recurrence import Recurrence
from swsearch.results import Headers, SubjectCodes

if TYPE_CHECKING:
    from swsearch.db import Database

LOWER = np.uint8(0x20)
"""What makes an ASCII letter lower case; a '*' has it set already."""


@dataclass(frozen=True)
class SubjectReader:
    """Reads subjects as a search scores and shows them, also after the search's database was closed.

    Parameters
    ----------
    database : Database
        Open. As an attribute, the same database, which stays open as long as the reader is there.
    mask : {"none", "lower", "tantan"}
        What of the subjects is scored as X.
    recurrence : Recurrence
        What they are aligned by.
    """

    database: Database
    mask: Mask
    recurrence: Recurrence

    def __post_init__(self) -> None:
        object.__setattr__(self, "database", self.database.shared())

    def one(self, subject: int) -> tuple[ByteArray, ByteArray | None]:
        """Return a subject's codes as they are scored, and its letters if something of it is masked."""
        codes: ByteArray = self.database.codes(subject)
        runs = [] if self.mask == "none" else self.database.masked(subject, self.mask)
        return (masked_codes(codes, runs), shown_letters(codes, runs)) if runs else (codes, None)

    def scored(self, subjects: IntArray) -> tuple[ByteArray, IntArray]:
        """Return subjects as they are scored: codes one after the other, uint8, and their offsets, shape (n + 1,)."""
        codes, offsets = self.database.codes_of(subjects)
        places, _ = self._masked(subjects, offsets)
        if places is not None:
            codes[places] = MASKED
        return codes, offsets

    def shown(self, subjects: IntArray) -> SubjectCodes:
        """Return subjects as they are scored and shown, in the order asked for."""
        codes, offsets = self.database.codes_of(subjects)
        places, masked = self._masked(subjects, offsets)
        if places is None:
            return SubjectCodes(codes, None, offsets)
        letters: ByteArray = PROTEIN.decode_table[codes]
        letters[places] |= LOWER
        codes[places] = MASKED
        return SubjectCodes(codes, letters, offsets, masked)

    def _masked(
        self, subjects: IntArray, offsets: IntArray
    ) -> tuple[IntArray | None, np.ndarray[tuple[int], np.dtype[np.bool_]] | None]:
        """Return the places that are masked in subjects one after the other, and which subjects have some."""
        if self.mask == "none":
            return None, None
        runs, starts, ends = self.database.masked_of(subjects, self.mask)
        if not len(starts):
            return None, None
        counts = np.diff(runs)
        begins = np.repeat(offsets[:-1], counts) + starts
        lengths = (ends - starts).astype(np.int64)
        total = np.cumsum(lengths)
        places: IntArray = np.arange(int(total[-1]), dtype=np.int64) + np.repeat(begins - (total - lengths), lengths)
        return places, counts > 0

    def headers(self, subjects: IntArray) -> Headers:
        """Return the headers of subjects, in the order asked for."""
        pool, offsets = self.database.headers_of(subjects)
        return Headers(pool.tobytes(), offsets)
