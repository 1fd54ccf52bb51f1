"""Reading subjects as a search scores and shows them, many at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.engines.pools import SequencePool, mask_pool
from swsearch.later import Later
from swsearch.masking import masked_codes, shown_letters
from swsearch.options.words import Mask
from swsearch.recurrence import Recurrence
from swsearch.results import Headers, SubjectCodes

if TYPE_CHECKING:
    from swsearch.db import Database


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
        """Return a subject's codes as they are scored, and its letters if some are masked; shape (length,), uint8."""
        codes: ByteArray = self.database.codes(subject)
        runs = [] if self.mask == "none" else self.database.masked(subject, self.mask)
        return (masked_codes(codes, runs), shown_letters(codes, runs)) if runs else (codes, None)

    def scored(self, subjects: IntArray) -> SequencePool:
        """Return subjects as they are scored: codes one after the other, uint8, and their offsets, shape (n + 1,)."""
        pool: SequencePool = self.database.codes_of(subjects)
        return pool if self.mask == "none" else mask_pool(pool, self._runs(subjects))[0]

    def shown(self, subjects: IntArray) -> SubjectCodes:
        """Return subjects as they are scored and shown, in the order of their places, shape (n,)."""
        pool: SequencePool = self.database.codes_of(subjects)
        if self.mask == "none":
            return SubjectCodes(pool[0], None, pool[1])
        runs = self._runs(subjects)
        (codes, offsets), letters = mask_pool(pool, runs)
        return SubjectCodes(codes, letters, offsets, None if letters is None else np.diff(runs[0]) > 0)

    def _runs(self, subjects: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        offsets, starts, ends = self.database.masked_of(subjects, self.mask)
        return offsets, starts.astype(np.int64), ends.astype(np.int64)

    def headers(self, subjects: IntArray) -> Headers:
        """Return the headers of subjects, in the order of their places, shape (n,)."""
        pool, offsets = self.database.headers_of(subjects)
        taxa = Later(partial(self.database.taxa_of, subjects)) if self.database.has_taxa else None
        return Headers(pool.tobytes(), offsets, taxa)
