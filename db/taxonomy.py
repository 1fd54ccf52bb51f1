"""The taxa of a database: which there are, what stands above each, and what they are called.

A database keeps of NCBI's taxonomy the taxa of its subjects and all above them, the numbers that these had before
they were merged, and which numbers there are at all, so that a search can say what is wrong with one.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

TaxidArray = npt.NDArray[np.int32]

MOST_TAXID = 2**31 - 1
"""Largest taxid: they are numbers of 32 bits; NCBI's have seven digits today."""

MOST_KNOWN = 1 << 24
"""Most taxids that a database says of whether they are there; NCBI has 3.5 million, deleted ones included."""

KINGDOM_RANKS = frozenset({"superkingdom", "domain", "acellular root"})
"""Ranks of what BLAST calls the super kingdom of a subject; NCBI's dumps of 2025 changed their names."""

NO_NAME = "N/A"
"""What tables have where a name is not known, as BLAST writes it."""

TaxidState = Literal["here", "merged", "elsewhere", "deleted", "unknown"]
"""Of a taxid: one of the database's taxa or above one; merged into such a one; known without a subject; deleted; or
none that the taxonomy has."""


class TaxonName(NamedTuple):
    """What a taxon is called; what it does not have is an empty string."""

    rank: str
    scientific: str
    common: str
    blast: str


NAMELESS = TaxonName("", "", "", "")


class Taxon(NamedTuple):
    """A taxon as reports show it; what is not known of it is an empty string.

    Attributes
    ----------
    taxid : int
        NCBI's number, as the database's subjects have it.
    scientific, common : str
        Its names.
    blast : str
        The BLAST name of it, or of the nearest taxon above it that has one.
    kingdom : str
        The super kingdom that it belongs to, such as Bacteria.
    """

    taxid: int
    scientific: str = ""
    common: str = ""
    blast: str = ""
    kingdom: str = ""


Taxa = tuple[Taxon, ...]
"""The taxa of a subject, by taxid; none where nothing is known."""


class TaxonomyDamageError(ValueError):
    """What is wrong with a stored taxonomy."""


@dataclass(frozen=True)
class Taxonomy:
    """Taxa and what stands above each.

    Parameters
    ----------
    taxa, parents : ndarray, shape (n,), int32
        Taxids, ascending, and that of the taxon above each; a root's is its own.
    names : bytes
        A line for each taxon, in UTF-8: rank, scientific name, common name and BLAST name, with tabs between them.
    merged, merged_into : ndarray, shape (m,), int32
        Taxids that taxa had before, ascending, and those that they have.
    known : bytes
        All taxids there are, as `packed_taxids` writes them; none of them if empty.
    """

    taxa: TaxidArray
    parents: TaxidArray
    names: bytes
    merged: TaxidArray
    merged_into: TaxidArray
    known: bytes = b""

    def check(self) -> None:
        """Raise `TaxonomyDamageError` if this is none that was written."""
        for what, values in (("taxa", self.taxa), ("merged taxids", self.merged)):
            if (values[1:] <= values[:-1]).any() or (values < 1).any():
                raise TaxonomyDamageError(f"{what} do not ascend")
        if not np.isin(self.parents, self.taxa).all() or not np.isin(self.merged_into, self.taxa).all():
            raise TaxonomyDamageError("taxa stand below, or were merged into, some that are not there")
        if not (self._place_above[self._above] == self._above).all():
            raise TaxonomyDamageError("a taxon stands above itself")
        if len(self._names) != len(self.taxa) or any(len(name) != len(NAMELESS) for name in self._names):
            raise TaxonomyDamageError("names do not fit the taxa")
        _ = self._known

    @classmethod
    def empty(cls) -> Taxonomy:
        """Return that of a database that was built without one."""
        none = np.empty(0, dtype=np.int32)
        return cls(none, none, b"", none, none)

    @classmethod
    def joined(cls, parts: Sequence[Taxonomy]) -> Taxonomy:
        """Return what several say together; of a taxon that two have, the later one counts.

        Each holds all that stands above its taxa, so that no taxon comes to stand above itself: from one of the last
        part the way goes up through that part alone.
        """
        parts = [each for each in parts if len(each.taxa) or each.known]
        if len(parts) < 2:
            return parts[0] if parts else cls.empty()
        taxa, last = _last_of([each.taxa for each in parts])
        names = [name for each in parts for name in each.names.split(b"\n")[: len(each.taxa)]]
        merged, last_merged = _last_of([each.merged for each in parts])
        into = np.concatenate([each.merged_into for each in parts])[last_merged]
        known = max((each for each in parts), key=lambda each: len(each._known)).known
        return cls(
            taxa, np.concatenate([each.parents for each in parts])[last],
            b"\n".join(names[place] for place in last.tolist()), merged, into, known,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.taxa)

    @cached_property
    def _place_above(self) -> npt.NDArray[np.int64]:
        """The place of the taxon above each, shape (n,)."""
        return np.searchsorted(self.taxa, self.parents)

    @cached_property
    def _above(self) -> npt.NDArray[np.int64]:
        """The place of the root above each taxon, shape (n,)."""
        above = self._place_above
        for _ in range(len(above).bit_length()):
            above = above[above]
        return above

    @cached_property
    def _names(self) -> list[TaxonName]:
        if not len(self.taxa):
            return []
        try:
            lines = self.names.decode("utf-8").split("\n")
            return [TaxonName(*line.split("\t")) for line in lines]
        except (UnicodeDecodeError, TypeError) as error:
            raise TaxonomyDamageError("names are no lines of four") from error

    @cached_property
    def _known(self) -> npt.NDArray[np.int64]:
        return unpacked_taxids(self.known)

    def state(self, taxid: int) -> TaxidState:
        """Say what is known of a taxid."""
        if _place(self.taxa, taxid) is not None:
            return "here"
        if _place(self.merged, taxid) is not None:
            return "merged"
        if _place(self._known, 2 * taxid) is not None:
            return "elsewhere"
        return "deleted" if _place(self._known, 2 * taxid + 1) is not None else "unknown"

    def current(self, taxid: int) -> int:
        """Return the taxid that one was merged into; itself where it was not."""
        place = _place(self.merged, taxid)
        return taxid if place is None else int(self.merged_into[place])

    def below(self, taxids: Iterable[int]) -> TaxidArray:
        """Return taxids and all below them, ascending, shape (n,); one that is not here is itself alone."""
        wanted = np.array(sorted({*taxids}), dtype=np.int32)
        chosen = np.isin(self.taxa, wanted)
        while True:  # at most as often as the tree is deep
            more = chosen | chosen[self._place_above]
            if (more == chosen).all():
                return np.union1d(wanted, self.taxa[chosen])
            chosen = more

    def name(self, taxid: int) -> TaxonName:
        """Return what a taxon is called."""
        place = _place(self.taxa, self.current(taxid))
        return NAMELESS if place is None else self._names[place]

    def lineage(self, taxid: int) -> Iterator[tuple[int, TaxonName]]:
        """Yield a taxon and all above it, the root last, each with its name; nothing for one that is not here."""
        place = _place(self.taxa, self.current(taxid))
        before = -1
        while place is not None and place != before:
            yield int(self.taxa[place]), self._names[place]
            place, before = int(self._place_above[place]), place

    def taxon(self, taxid: int) -> Taxon:
        """Return what reports show of a taxon."""
        name = self.name(taxid)
        return Taxon(taxid, name.scientific, name.common, self.blast_name(taxid), self.kingdom(taxid))

    def blast_name(self, taxid: int) -> str:
        """Return the BLAST name of a taxon: its own, or that of the nearest above it that has one."""
        return next((name.blast for _, name in self.lineage(taxid) if name.blast), "")

    def kingdom(self, taxid: int) -> str:
        """Return the super kingdom that a taxon belongs to."""
        return next((name.scientific for _, name in self.lineage(taxid) if name.rank in KINGDOM_RANKS), "")


def _place(values: npt.NDArray[np.integer], value: int) -> int | None:
    """Return where a number stands among ascending ones; None if it does not."""
    place = int(np.searchsorted(values, value))
    return place if place < len(values) and values[place] == value else None


def _last_of(parts: Sequence[TaxidArray]) -> tuple[TaxidArray, npt.NDArray[np.int64]]:
    """Return all numbers of some parts, ascending, and where each stands last among them one after the other."""
    every = np.concatenate(parts)
    values, first = np.unique(every[::-1], return_index=True)
    return values, len(every) - 1 - first


def packed_taxids(taxids: npt.NDArray[np.integer], deleted: npt.NDArray[np.integer]) -> bytes:
    """Write which taxids there are, and which were deleted, each of shape (n,), in few bytes.

    The numbers are twice a taxid, and 1 more for one that was deleted. Of these, ascending, the differences (the
    first from 0) as uint32: first the lowest byte of each, then the second one of each, and so on; under zlib.
    """
    numbers = np.union1d(2 * taxids.astype(np.int64), 2 * np.setdiff1d(deleted, taxids).astype(np.int64) + 1)
    steps = np.diff(numbers, prepend=0).astype("<u4")
    return zlib.compress(steps.view(np.uint8).reshape(-1, 4).T.tobytes(), 6) if len(steps) else b""


def unpacked_taxids(packed: bytes) -> npt.NDArray[np.int64]:
    """Read what `packed_taxids` wrote: the numbers, ascending, shape (n,).

    Raises
    ------
    TaxonomyDamageError
        If it wrote no such thing.
    """
    if not packed:
        return np.empty(0, dtype=np.int64)
    try:
        unpacker = zlib.decompressobj()
        planes = unpacker.decompress(packed, 4 * MOST_KNOWN)
    except zlib.error as error:
        raise TaxonomyDamageError(f"known taxids cannot be unpacked ({error})") from error
    if not unpacker.eof or unpacker.unused_data or len(planes) % 4:
        raise TaxonomyDamageError("known taxids are not those that were written")
    steps = np.ascontiguousarray(np.frombuffer(planes, dtype=np.uint8).reshape(4, -1).T).view("<u4").reshape(-1)
    if not steps.all():
        raise TaxonomyDamageError("known taxids do not ascend")
    numbers: npt.NDArray[np.int64] = np.cumsum(steps, dtype=np.int64)
    return numbers
