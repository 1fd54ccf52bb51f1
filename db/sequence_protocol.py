"""A database as a Python sequence: indexing, iteration, lookup, pickling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any, overload

import numpy as np

from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import IntArray
from swsearch.db.fasta import Record, header_text
from swsearch.db.fetch import in_order
from swsearch.errors import DatabaseError, format_value


def soft_mask(codes: ByteArray, runs: Iterable[tuple[int, int]]) -> str:
    """Return the letters of residue codes, shape (n,), uint8, those of runs in lower case."""
    letters = PROTEIN.decode_table[codes]
    for start, end in runs:
        letters[start:end] |= 0x20  # ASCII: lower case; a masked '*' has it set already
    return letters.tobytes().decode("ascii")


@dataclass(frozen=True, eq=False)
class Entry(Record):
    """A subject of a database, as a FASTA record has it.

    Parameters
    ----------
    header, identifier, description, codes, masked
        As of a `Record`.
    index : int
        Its place in the database's input, counted from 0.
    """

    index: int

    @property
    def sequence(self) -> str:
        """Its letters, soft-masked ones in lower case."""
        return soft_mask(self.codes, self.masked)

    def __eq__(self, other: object) -> bool:
        mine = self.index, self.header, self.sequence
        return isinstance(other, Entry) and mine == (other.index, other.header, other.sequence)

    def __hash__(self) -> int:
        return hash((self.index, self.header))

    def __repr__(self) -> str:
        return f"<Entry {self.index} {self.identifier}: {len(self):,} residues>"


class SequenceMixin:
    """Sequence methods of a `Database`: length, ``database[i]``, iteration, and ``name in database``."""

    # self is of type Any where it is used as a Database, whose module imports this one
    name: str
    n_subjects: int
    n_residues: int
    _shares: tuple[tuple[int, int], ...] = ()
    """Shares that it is, each of the one before; see `Database.share`."""

    def __len__(self) -> int:
        return self.n_subjects

    @overload
    def __getitem__(self, index: int) -> Entry: ...

    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...

    def __getitem__(self: Any, index: int | slice) -> Entry | list[Entry]:
        n = self.n_subjects
        if isinstance(index, slice):
            return list(_entries(self, np.arange(*index.indices(n), dtype=np.int64)))
        if isinstance(index, (bool, np.bool_)) or not hasattr(index, "__index__"):
            remedy = "; database.find(...) gives those of an identifier" if isinstance(index, str) else ""
            raise TypeError(f"index: got {format_value(index)}, expected an integer or a slice{remedy}")
        if not -n <= (place := index.__index__()) < n:
            raise IndexError(f"subject {format_value(index)}, expected {-n} to {n - 1}")
        return next(_entries(self, np.array([place % n])))

    def __iter__(self: Any) -> Iterator[Entry]:
        self.check_open()
        return _entries(self, np.arange(self.n_subjects))

    def __contains__(self: Any, name: object) -> bool:
        """Return whether `Database.find` finds a name."""
        return isinstance(name, str) and bool(self.find(name))

    def __repr__(self) -> str:
        return f"<Database {self.name!r}: {self.n_subjects:,} subjects, {self.n_residues:,} residues>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        facts = {"database": self.name, "subjects": f"{self.n_subjects:,}", "residues": f"{self.n_residues:,}"}
        rows = "".join(f"<tr><th>{name}</th><td>{escape(value)}</td></tr>" for name, value in facts.items())
        return f"<table>{rows}</table>"

    def __reduce__(self: Any) -> tuple[Any, ...]:
        paths = tuple(volume.path for volume in self.volumes)
        if not all(paths):
            remedy = "build a file with Database.build, and open it"
            raise TypeError(f"{self.name}: a Database in memory cannot be pickled or copied; {remedy}")
        return _reopen, (self.open, paths, self.name, self.identity(), self._shares)


def _reopen(opened: Any, paths: Sequence[str], name: str, identity: str, shares: Any) -> Any:
    """Open the files of a database that was pickled; raise `DatabaseError` if they are others now."""
    database = opened(paths)
    if database.identity() != identity:
        database.close()
        raise DatabaseError(f"{', '.join(paths)}: got another database than the pickled one; pickle it again")
    for place, of in shares:
        whole, database = database, database.share(place, of)
        whole.close()
    database.name = name
    return database


def _entries(database: Any, subjects: IntArray) -> Iterator[Entry]:
    """Yield entries of subjects in the given order; some thousands are read at a time."""
    for some, codes in in_order(database, subjects):
        headers, bounds = database.headers_of(some)
        runs, starts, ends = database.masked_runs_of(some, "lower")
        text, spans = headers.tobytes(), list(zip(starts.tolist(), ends.tolist(), strict=True))
        pairs = (pairwise(offsets.tolist()) for offsets in (bounds, codes.offsets, runs))
        for subject, (a, b), (c, d), (e, f) in zip(some.tolist(), *pairs, strict=True):
            yield Entry(text[a:b], *header_text(text[a:b]), codes.data[c:d].copy(), spans[e:f], subject)
