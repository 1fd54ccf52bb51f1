"""The taxa of a database, with their ancestors and names.

A database has the part of NCBI's taxonomy with the taxa of its subjects and all their ancestors, and the former
taxids of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray

TaxidArray = npt.NDArray[np.int32]

MAX_TAXID = 2**31 - 1
"""Largest taxid: they are numbers of 32 bits; NCBI's have seven digits today."""

KINGDOM_RANKS = frozenset({"superkingdom", "domain", "acellular root"})
"""Ranks of what BLAST calls the super kingdom of a subject; NCBI's dumps of 2025 changed their names."""

NO_NAME = "N/A"
"""Value of tables for an unknown name, as BLAST writes it."""


class TaxonName(NamedTuple):
    """Rank and names of a taxon; empty strings for unknown ones."""

    rank: str
    scientific: str
    common: str
    blast: str


TREE_ARRAYS = ("taxa", "taxon_parents", "taxon_names", "merged_taxids", "merged_into")
"""Arrays of a `Taxonomy`, as the database file has them."""


class Taxon(NamedTuple):
    """A taxon as reports show it; unknown values are empty strings."""

    taxid: int
    scientific: str = ""
    common: str = ""
    blast: str = ""
    """BLAST name of it, or of the nearest ancestor with one."""
    kingdom: str = ""
    """Super kingdom, e.g. Bacteria."""


Taxa = tuple[Taxon, ...]
"""The taxa of a subject, by taxid; none where nothing is known."""


class TaxonomyDamageError(ValueError):
    """Describes damage of a stored taxonomy."""


@dataclass(frozen=True)
class Taxonomy:
    """Taxa with their parents, names and former taxids."""

    taxa: TaxidArray
    """Taxids, ascending, shape (n,), int32."""
    taxon_parents: TaxidArray
    """Parent of each taxon, shape (n,), int32; a root is its own."""
    taxon_names: ByteArray
    """One line per taxon, UTF-8, shape (n_bytes,), uint8: rank, scientific, common and BLAST name, separated by
    tabs.
    """
    merged_taxids: TaxidArray
    """Former taxids, ascending, shape (m,), int32."""
    merged_into: TaxidArray
    """Present taxids of these, shape (m,), int32."""

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Taxonomy:
        """Return the taxonomy of arrays as `arrays` returns them: taxa of shape (n,), merged taxids of shape (m,)."""
        return cls(*(arrays[name] for name in TREE_ARRAYS))

    @classmethod
    def empty(cls) -> Taxonomy:
        """Return the taxonomy of a database that was built without one."""
        none = np.empty(0, dtype=np.int32)
        return cls(none, none, none.astype(np.uint8), none, none)

    @classmethod
    def merge(cls, parts: Sequence[Taxonomy]) -> Taxonomy:
        """Return what several say together; of a taxon that two have, the later one counts.

        Each holds all that stands above its taxa, so that no taxon comes to stand above itself: from one of the last
        part the way goes up through that part alone.
        """
        parts = [each for each in parts if len(each)] or [cls.empty()]
        if len(parts) == 1:
            return parts[0]
        every = {name: np.concatenate([each.arrays()[name] for each in parts]) for name in TREE_ARRAYS}
        names = [name for each in parts for name in each._names]
        taxa, last = _last_of(every["taxa"])
        merged, last_merged = _last_of(every["merged_taxids"])
        pool = pool_of_names(names[place] for place in last.tolist())
        return cls(taxa, every["taxon_parents"][last], pool, merged, every["merged_into"][last_merged])

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of shapes (n,), (n_bytes,) and (m,), by their names in the database file."""
        return {name: getattr(self, name) for name in TREE_ARRAYS}

    def check(self) -> None:
        """Raise `TaxonomyDamageError` if no writer wrote this taxonomy."""
        for what, values in (("taxa", self.taxa), ("merged taxids", self.merged_taxids)):
            if (values[1:] <= values[:-1]).any() or (values < 1).any():
                raise TaxonomyDamageError(f"{what} do not ascend")
        if not np.isin(np.append(self.taxon_parents, self.merged_into), self.taxa).all():
            raise TaxonomyDamageError("taxa stand below, or were merged into, some that are not there")
        if len(in_circles(self._place_above)):
            raise TaxonomyDamageError("a taxon stands above itself")
        if len(self._names) != len(self.taxa):
            raise TaxonomyDamageError("names do not fit the taxa")

    def __len__(self) -> int:
        return len(self.taxa)

    @cached_property
    def _place_above(self) -> IntArray:
        """The place of the taxon above each, shape (n,)."""
        return np.searchsorted(self.taxa, self.taxon_parents)

    @cached_property
    def _names(self) -> list[TaxonName]:
        if not len(self.taxa):
            return []
        try:
            return [TaxonName(*line.split("\t")) for line in self.taxon_names.tobytes().decode().split("\n")]
        except (UnicodeDecodeError, TypeError) as error:
            raise TaxonomyDamageError("names are no lines of four") from error

    def has(self, taxid: int) -> bool:
        """Return whether a taxid, present or former, is that of a subject's taxon or of an ancestor."""
        return _place(self.taxa, self.current_taxid(taxid)) is not None

    def current_taxid(self, taxid: int) -> int:
        """Return the taxid that one was merged into; itself where it was not."""
        place = _place(self.merged_taxids, taxid)
        return taxid if place is None else int(self.merged_into[place])

    def descendants(self, taxids: Iterable[int]) -> TaxidArray:
        """Return taxids and all below them, ascending, shape (n,); one that is not here is itself alone."""
        requested = np.array(sorted({*taxids}), dtype=np.int32)
        chosen = np.isin(self.taxa, requested)
        while True:  # at most as often as the tree is deep
            more = chosen | chosen[self._place_above]
            if (more == chosen).all():
                return np.union1d(requested, self.taxa[chosen])
            chosen = more

    def taxon(self, taxid: int) -> Taxon:
        """Return what reports show of a taxon."""
        lineage = [*self._lineage(taxid)] or [TaxonName("", "", "", "")]
        blast = next((name.blast for name in lineage if name.blast), "")
        kingdom = next((name.scientific for name in lineage if name.rank in KINGDOM_RANKS), "")
        return Taxon(taxid, lineage[0].scientific, lineage[0].common, blast, kingdom)

    def _lineage(self, taxid: int) -> Iterator[TaxonName]:
        """Yield the names of a taxon and of all above it, the root last; nothing for one that is not here."""
        place, before = _place(self.taxa, self.current_taxid(taxid)), None
        while place is not None and place != before:
            yield self._names[place]
            place, before = int(self._place_above[place]), place


def pool_of_names(names: Iterable[TaxonName]) -> ByteArray:
    """Return the names of taxa as a `Taxonomy` has them, shape (n_bytes,), uint8."""
    return np.frombuffer("\n".join(map("\t".join, names)).encode(), dtype=np.uint8)


def in_circles(above: IntArray) -> IntArray:
    """Return the places from which the way up, to ``above[place]``, ends at no root; both of shape (n,)."""
    root = above
    for _ in range(len(above).bit_length()):
        root = root[root]
    return np.flatnonzero(above[root] != root)


def _place(values: npt.NDArray[np.integer], value: int) -> int | None:
    """Return where a number stands among ascending ones; None if it does not."""
    place = int(np.searchsorted(values, value))
    return place if place < len(values) and values[place] == value else None


def _last_of(values: TaxidArray) -> tuple[TaxidArray, IntArray]:
    """Return all numbers, ascending, each once, and where each stands last."""
    unique, first = np.unique(values[::-1], return_index=True)
    return unique, len(values) - 1 - first
