"""DNA that was given where protein is expected: told by its letters, which are all letters of proteins too.

Nearly all letters of DNA are A, C, G, T (or U), and a third of a protein's letters (E, F, I, L, P, Q) stand for no
base. So few letters decide: by chance 20 of a protein's are all bases less often than once in 10^10.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import DNA, PROTEIN, ByteArray
from swsearch.blocks import IntArray
from swsearch.db.fasta import RecordBatch, header_text
from swsearch.errors import SequenceError, SwsearchWarning

ENOUGH_BASES = 20
"""Bases (A, C, G, T, U) from which on letters are taken for DNA."""

A_HINT = 10
"""Bases from which on a whole input gets a warning."""

BASES_PER_CODE = 9
"""Bases that there must be for each IUPAC code of several bases."""

FIRST_LETTERS = 32
"""Letters of a record that are looked at before all of its letters are: of proteins one in a million has none before
that stands for no base."""

_OVERRIDE = "--allow-dna (in Python allow_dna=True)"

_EACH_BASE, _CODE, _FOREIGN = 0b1111, 16, 32


def _marks() -> ByteArray:
    """Make the table of what each residue code is in DNA: a bit for each base, nothing for N and X."""
    marks = np.full(256, _FOREIGN, dtype=np.uint8)
    for letter in DNA.letters:
        marks[PROTEIN.letters.index(letter)] = _CODE
    for letters, mark in (("A", 1), ("C", 2), ("G", 4), ("TU", 8), ("NX", 0)):
        for letter in letters:
            marks[PROTEIN.letters.index(letter)] = mark
    return marks


_MARKS = _marks()
_MAY_BE_DNA = _MARKS != _FOREIGN

_Flags = npt.NDArray[np.bool_]


def _is_dna(present: IntArray, bases: IntArray, codes: IntArray) -> _Flags:
    """Say of sets of letters, shape (n,), whether they are DNA: enough of it, and all four bases."""
    all_bases: _Flags = present & ~_CODE == _EACH_BASE
    return all_bases & (bases >= ENOUGH_BASES) & (bases >= BASES_PER_CODE * codes)


class DnaWatch:
    """Counts the letters of an input as its batches go by, and says in the end whether they are DNA.

    Parameters
    ----------
    source : str
        The input, for messages.
    remedy : str
        What else to do about DNA, for messages.
    """

    def __init__(self, source: str, remedy: str = "build a DNA database with: swsearch db build --translate") -> None:
        self._source, self._remedy = source, remedy
        self.n_records = 0
        self.n_dna = 0
        self._first = b""  # header of the first record of DNA
        self._header = b""  # header of the record that is open
        # what is known of the open record, and of all that are closed: letters, bases, codes of several bases
        self._open, self._all = np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64)

    def watch(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        """Pass batches on, the first of which begins with a record, and judge them when there are no more."""
        for batch in batches:
            yield batch
            self._add(batch)
        self.judge()

    def _add(self, batch: RecordBatch) -> None:
        bounds = np.concatenate([[0], batch.starts, [len(batch.codes)]])
        found = _letters(batch.codes, bounds)
        found[0, 0] |= self._open[0]
        found[1:, 0] += self._open[1:]
        if not len(batch.starts):
            self._open = found[:, 0]
            return
        if not self.n_records:
            found = found[:, 1:]  # nothing stands before the first record
        offset = 1 if not self.n_records else 0
        closed = found[:, :-1]
        self._close(closed)
        dna = np.flatnonzero(_is_dna(closed[0], closed[1], closed[2])) + offset
        if len(dna) and not self.n_dna:
            self._first = self._header if dna[0] == 0 else self._header_of(batch, int(dna[0]) - 1)
        self.n_dna += len(dna)
        self.n_records += len(batch.starts)
        self._open = found[:, -1]
        self._header = self._header_of(batch, len(batch.starts) - 1)

    @staticmethod
    def _header_of(batch: RecordBatch, record: int) -> bytes:
        after = int(batch.header_lengths[record:].sum())
        return batch.headers[len(batch.headers) - after :][: int(batch.header_lengths[record])]

    def _close(self, records: IntArray) -> None:
        self._all[0] |= np.bitwise_or.reduce(records[0], initial=0)
        self._all[1:] += records[1:].sum(axis=1)

    def judge(self) -> None:
        """Raise if all records are DNA, warn if some are.

        Raises
        ------
        SequenceError
            If the input is DNA.
        """
        last = self._open.reshape(3, 1)
        self._close(last)
        if _is_dna(last[0], last[1], last[2])[0]:
            self._first = self._first if self.n_dna else self._header
            self.n_dna += 1
        present, bases, codes = self._all.tolist()
        name = header_text(self._first or self._header)[0]
        if present & ~_CODE == _EACH_BASE and bases >= max(BASES_PER_CODE * codes, A_HINT):
            records = f"{self.n_records:,} records, e.g. {name!r}," if self.n_records > 1 else f"record {name!r}"
            problem = f"holds only letters of DNA ({records} with {bases:,} bases), expected protein; {self._remedy}"
            if bases >= ENOUGH_BASES:
                raise SequenceError(self._source, f"{problem}, or pass {_OVERRIDE} to accept it as protein")
            self._warn(f"{problem} if it is DNA; {_OVERRIDE} turns this warning off")
        elif self.n_dna:
            problem = f"{self.n_dna:,} of {self.n_records:,} records hold only letters of DNA, e.g. {name!r}"
            self._warn(
                f"{problem}, expected protein; {self._remedy} if it is DNA; {_OVERRIDE} turns this warning off"
            )

    def _warn(self, problem: str) -> None:
        warnings.warn(f"{self._source}: {problem}", SwsearchWarning, stacklevel=3)


def _letters(codes: ByteArray, bounds: IntArray) -> IntArray:
    """Find out which marks the letters of each stretch have; most are known by the first letters to be no DNA.

    Returns
    -------
    ndarray, shape (3, n_stretches), int64
        All marks together, bases, and codes of several bases; counts only where there is no foreign letter.
    """
    begins, lengths = bounds[:-1], np.diff(bounds)
    found = np.zeros((3, len(begins)), dtype=np.int64)
    found[0, lengths > 0] = _FOREIGN
    left = _may_be_dna(codes, begins, lengths)
    if not len(left):
        return found
    begins, lengths = begins[left], lengths[left]
    if lengths.sum() > len(codes) // 8:
        marks = _MARKS[codes]
        left = np.flatnonzero(np.diff(bounds))  # stretches of reduceat end where the next one begins
        starts = bounds[left]
    else:
        starts = np.cumsum(lengths) - lengths
        marks = _MARKS[codes[np.repeat(begins - starts, lengths) + np.arange(lengths.sum())]]
    found[0, left] = np.bitwise_or.reduceat(marks, starts)
    found[1, left] = np.add.reduceat((marks & _EACH_BASE) > 0, starts, dtype=np.int64)
    found[2, left] = np.add.reduceat(marks == _CODE, starts, dtype=np.int64)
    return found


def _may_be_dna(codes: ByteArray, begins: IntArray, lengths: IntArray) -> IntArray:
    """Return the places of the stretches, ascending, that are not empty and whose first letters may all be DNA."""
    left = np.flatnonzero(lengths)
    whole: list[IntArray] = []  # shorter than the letters that were looked at
    for step in range(FIRST_LETTERS):
        left = left[_MAY_BE_DNA[codes[begins[left] + step]]]
        if not len(left):
            break
        ends = lengths[left] == step + 1
        if ends.any():
            whole.append(left[ends])
            left = left[~ends]
    return np.sort(np.concatenate([*whole, left]))


def check_no_dna(
    source: str,
    records: Iterable[tuple[str, ByteArray]],
    remedy: str = "build a DNA database with: swsearch db build --translate",
) -> None:
    """Raise if sequences are DNA, warn if some of them are.

    Parameters
    ----------
    source : str
        Where they come from, for messages.
    records : iterable of (str, ndarray of shape (n,), uint8)
        Identifiers and codes of `PROTEIN`.
    remedy : str, optional
        What else to do about DNA, for messages.

    Raises
    ------
    SequenceError
        If all are DNA.
    """
    names, codes = zip(*records, strict=True)
    headers = [name.encode("utf-8", "backslashreplace") for name in names]
    lengths = np.array([len(each) for each in codes], dtype=np.int64)
    none = np.empty(0, dtype=np.int64)
    batch = RecordBatch(
        np.concatenate(codes),
        np.cumsum(lengths) - lengths,
        b"".join(headers),
        np.array([len(header) for header in headers], dtype=np.int64),
        none,
        none,
    )
    for _ in DnaWatch(source, remedy).watch([batch]):
        pass
