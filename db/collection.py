"""A database as a collection of its subjects: by place, in order, by identifier, and given to another process."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any, overload

import numpy as np

from swsearch.alphabet import PROTEIN
from swsearch.blocks import IntArray
from swsearch.db.entries import in_order
from swsearch.db.fasta import Record, header_text
from swsearch.errors import DatabaseError, shown


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
        letters = PROTEIN.decode_table[self.codes]
        for start, end in self.masked:
            letters[start:end] |= 0x20  # ASCII: lower case
        return letters.tobytes().decode("ascii")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Entry):
            return NotImplemented
        return (self.index, self.header, self.sequence) == (other.index, other.header, other.sequence)

    def __hash__(self) -> int:
        return hash((self.index, self.header))

    def __repr__(self) -> str:
        return f"<Entry {self.index} {self.identifier}: {len(self):,} residues>"


class Collection:
    """What a `Database` has of a sequence: its length, ``database[i]``, iteration, and ``name in database``."""

    name: str
    n_subjects: int
    n_residues: int
    _shares: tuple[tuple[int, int], ...] = ()
    """Which share of which it is, as `Database.share` counts them."""

    @property
    def _database(self) -> Any:
        """Itself, with all that a `Database` has, whose module imports this one."""
        return self

    def __len__(self) -> int:
        return self.n_subjects

    @overload
    def __getitem__(self, index: int) -> Entry: ...

    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...

    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            return list(_entries(self._database, np.arange(self.n_subjects, dtype=np.int64)[index]))
        if isinstance(index, (bool, np.bool_)) or not hasattr(index, "__index__"):
            remedy = "; database.find(...) gives those of an identifier" if isinstance(index, str) else ""
            raise TypeError(f"index: got {shown(index)}, expected an integer or a slice{remedy}")
        place = operator.index(index)
        if not -self.n_subjects <= place < self.n_subjects:
            raise IndexError(f"subject {shown(index)}, expected {-self.n_subjects} to {self.n_subjects - 1}")
        return next(_entries(self._database, np.array([place % self.n_subjects], dtype=np.int64)))

    def __iter__(self) -> Iterator[Entry]:
        self._database.check_open()
        return _entries(self._database, np.arange(self.n_subjects, dtype=np.int64))

    def __contains__(self, name: object) -> bool:
        """Say whether a subject has an identifier, or is found by a name; see `Database.find`."""
        return isinstance(name, str) and bool(self._database.find(name))

    def __repr__(self) -> str:
        return f"<Database {self.name!r}: {self.n_subjects:,} subjects, {self.n_residues:,} residues>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        facts = {"database": self.name, "subjects": f"{self.n_subjects:,}", "residues": f"{self.n_residues:,}"}
        rows = "".join(f"<tr><th>{name}</th><td>{escape(value)}</td></tr>" for name, value in facts.items())
        return f"<table>{rows}</table>"

    def __reduce__(self) -> tuple[Any, ...]:
        paths = tuple(volume.path for volume in self._database.volumes)
        if not all(paths):
            raise TypeError(
                f"{self.name}: a Database in memory cannot be pickled or copied; build a file with Database.build, "
                "and open it"
            )
        return _reopened, (self._database.open, paths, self.name, self._database.identity(), self._shares)


def _reopened(
    opened: Callable[[Any], Any],
    paths: tuple[str, ...],
    name: str,
    identity: str,
    shares: tuple[tuple[int, int], ...],
) -> Any:
    """Open the files of a database that was pickled; raise `DatabaseError` if they are others now."""
    found = opened(paths)
    if found.identity() != identity:
        found.close()
        raise DatabaseError(
            f"{', '.join(paths)}: got another database than the pickled one; pickle the database again"
        )
    for place, of in shares:
        whole, found = found, found.share(place, of)
        whole.close()
    found.name = name
    return found


def _entries(database: Any, subjects: IntArray) -> Iterator[Entry]:
    """Yield subjects in an order that is asked for, some thousands read at once."""
    for batch in in_order(database, subjects):
        headers, bounds = database.headers_of(batch.subjects)
        runs, starts, ends = database.masked_of(batch.subjects, "lower")
        spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
        text, offsets = headers.tobytes(), batch.offsets.tolist()
        columns = zip(
            batch.subjects.tolist(),
            pairwise(bounds.tolist()),
            pairwise(offsets),
            pairwise(runs.tolist()),
            strict=True,
        )
        for subject, (begin, end), (first, last), (run, after) in columns:
            header = text[begin:end]
            codes = batch.codes[first:last].copy()
            yield Entry(header, *header_text(header), codes, spans[run:after], subject)
