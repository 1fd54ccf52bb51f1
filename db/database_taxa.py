"""Taxa of the subjects of a database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from swsearch.blocks import IntArray
from swsearch.db.arrays import Strips
from swsearch.db.segment import Segment
from swsearch.db.taxonomy import Taxa, TaxidArray, Taxonomy
from swsearch.errors import OptionError


class TaxonomyMixin:
    """Subjects in segments whose taxa may be known; a part of `Database`."""

    if TYPE_CHECKING:

        @property
        def _segments(self) -> Sequence[Segment]:
            """Segments of the database, in order."""

        def _strips(self, subjects: Any, read: Callable[[Segment, IntArray], Strips]) -> Strips:
            """Put together what segments give of subjects, in their order."""

    @property
    def has_taxa(self) -> bool:
        """Whether it, or one of its files, was built with taxids."""
        return any(segment.has_taxids for segment in self._segments)

    @property
    def n_without_taxids(self) -> int:
        """Number of subjects in segments without taxids."""
        return sum(segment.n_subjects for segment in self._segments if not segment.has_taxids)

    @cached_property
    def taxonomy(self) -> Taxonomy:
        """Names and ancestors of the taxa of its subjects; read on first use."""
        return Taxonomy.merge([segment.taxonomy() for segment in self._segments if segment.has_taxids])

    def taxa_of(self, subjects: Sequence[int] | np.ndarray[Any, Any]) -> list[Taxa]:
        """Return the taxa of many subjects, shape (n,), with their names, as for `taxids_of`."""
        strips = self.taxids_of(subjects)
        taxids = strips.data.tolist()
        taxon_by_taxid = {taxid: self.taxonomy.taxon(taxid) for taxid in {*taxids}}
        return [tuple(taxon_by_taxid[each] for each in taxids[a:b]) for a, b in pairwise(strips.offsets.tolist())]

    @property
    def taxids(self) -> TaxidArray:
        """The taxids of all subjects, each once, ascending, shape (n,); read anew whenever they are asked for."""
        kinds = [np.unique(strips.data) for segment in self._segments for strips, _ in segment.all_taxids()]
        return np.unique(np.concatenate([np.empty(0, dtype=np.int32), *kinds]))

    def taxids_of(self, subjects: Sequence[int] | np.ndarray[Any, Any]) -> Strips:
        """Return the taxids of subjects, ascending for each, by ordinals in any order, shape (n,)."""
        return self._strips(subjects, lambda segment, places: segment.taxids_of(places))

    def subjects_of(self, taxids: Iterable[int]) -> IntArray:
        """Return the ordinals of all subjects that have one of some taxids itself, ascending, shape (n,)."""
        requested = list(taxids) if isinstance(taxids, Iterable) else [None]
        if not all(isinstance(each, (int, np.integer)) and 0 <= each < 1 << 62 for each in requested):
            raise OptionError("taxids", taxids, "numbers of taxa")
        wanted_taxids, ordinals = np.array(sorted({*requested}), dtype=np.int64), [np.empty(0, dtype=np.int64)]
        for strips, first in (each for segment in self._segments for each in segment.all_taxids()):
            owners = (
                np.searchsorted(strips.offsets, np.flatnonzero(np.isin(strips.data, wanted_taxids)), side="right") - 1
            )
            ordinals.append(np.unique(owners) + first)
        return np.concatenate(ordinals)

    def _taxa_info(self) -> dict[str, int]:
        """Return what `Database.info` says of the taxa of subjects; nothing for a database without any."""
        if not self.has_taxa:
            return {}
        filled = sum(int((strips.counts > 0).sum()) for each in self._segments for strips, _ in each.all_taxids())
        return {"n_with_taxid": filled, "n_taxids": len(self.taxids), "n_taxonomy": len(self.taxonomy)}
