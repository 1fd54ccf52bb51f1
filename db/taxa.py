"""What a database says of the taxa of its subjects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from swsearch.blocks import IntArray
from swsearch.db import bulk
from swsearch.db.stored import Segment
from swsearch.db.stored_taxa import (
    SubjectTaxa,
    has_taxa,
    subjects_of,
    taxids_of,
    taxids_there,
    taxonomy_of,
    with_names,
)
from swsearch.db.taxonomy import Taxa, TaxidArray, Taxonomy
from swsearch.errors import OptionError


class TaxaOfSubjects:
    """Subjects in segments whose taxa may be known; a part of `Database`."""

    n_subjects: int
    """How many there are."""

    if TYPE_CHECKING:

        @property
        def _segments(self) -> Sequence[Segment]:
            """What the database consists of, in order."""

    @property
    def has_taxa(self) -> bool:
        """Whether it, or one of its files, was built with taxids."""
        return has_taxa(self._segments)

    @property
    def n_of_no_taxa(self) -> int:
        """How many subjects stand in files, or were appended to such, that were built without taxids."""
        return sum(segment.n_subjects for segment in self._segments if not has_taxa([segment]))

    @cached_property
    def taxonomy(self) -> Taxonomy:
        """What stands above the taxa of its subjects and what they are called; read when first asked for."""
        return taxonomy_of(self._segments)

    def taxa_of(self, subjects: Sequence[int] | np.ndarray[Any, Any]) -> list[Taxa]:
        """Return the taxa of many subjects, shape (n,), with their names, as for `taxids_of`."""
        return with_names(self.taxids_of(subjects), self.taxonomy)

    @property
    def taxids(self) -> TaxidArray:
        """The taxids of all subjects, each once, ascending, shape (n,); read anew whenever they are asked for."""
        return taxids_there(self._segments)

    def taxids_of(self, subjects: Sequence[int] | np.ndarray[Any, Any]) -> SubjectTaxa:
        """Return the taxids of many subjects, by their ordinals in any order, shape (n,), any integer type.

        Raises
        ------
        IndexError
            If there is no such subject.
        DatabaseError
            If the bytes are not those that were written.
        """
        return taxids_of(self._segments, bulk.checked_subjects(subjects, self.n_subjects))

    def subjects_of(self, taxids: Iterable[int]) -> IntArray:
        """Return the ordinals of all subjects that have one of some taxids itself, ascending, shape (n,)."""
        wanted = list(taxids) if isinstance(taxids, Iterable) else [None]
        if not all(isinstance(each, (int, np.integer)) and 0 <= each < 1 << 62 for each in wanted):
            raise OptionError("taxids", taxids, "numbers of taxa")
        return subjects_of(self._segments, np.array(sorted({*wanted}), dtype=np.int64))
