"""Everything that may stand for queries or subjects, turned into records or a database."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Union

import numpy as np

from swsearch.alphabet import PROTEIN, Alphabet, ByteArray
from swsearch.errors import DatabaseError, InputError, SequenceError
from swsearch.masking import Mask, masked_codes, runs_of, shown_letters, tantan

if TYPE_CHECKING:
    from Bio.Seq import Seq
    from Bio.SeqRecord import SeqRecord

    from swsearch.db import Database, Record

ResidueLetters = Union[str, bytes, "Seq"]
"""Residue letters."""

SequenceLike = Union["SeqRecord", "Record", "tuple[str, ResidueLetters | SeqRecord]", ResidueLetters]
"""One sequence: a Bio.SeqRecord, an (identifier, sequence) pair or the letters themselves."""

Sequences = Union[
    str, "os.PathLike[str]", IO[Any], SequenceLike, Mapping[str, "ResidueLetters | SeqRecord"], Iterable[SequenceLike]
]
"""Sequences: a FASTA path (``-`` is stdin), an open FASTA file, one sequence, a mapping of names to sequences, or an
iterable of sequences."""


@dataclass(frozen=True)
class Query:
    """An encoded query.

    Parameters
    ----------
    identifier, description : str
        Its header.
    codes : ndarray, shape (n,), uint8
        What is scored, X where it is masked.
    lower : tuple of (int, int)
        Runs of lower case in the input, 0-based and half-open.
    letters : ndarray, shape (n,), uint8, or None
        ASCII letters as alignments show them, masked ones in lower case; None where nothing is masked.
    """

    identifier: str
    description: str
    codes: ByteArray
    lower: tuple[tuple[int, int], ...] = ()
    letters: ByteArray | None = None

    def masked(self, mask: Mask) -> Query:
        """Return the query with X where a mask covers it."""
        runs = tantan()(self.codes) if mask == "tantan" else list(self.lower) if mask == "lower" else []
        if not runs:
            return self
        letters = shown_letters(self.codes, runs)
        return Query(self.identifier, self.description, masked_codes(self.codes, runs), self.lower, letters)


def read_queries(
    queries: Sequences, alphabet: Alphabet = PROTEIN, what: str = "query", argument: str = ""
) -> list[Query]:
    """Read sequences from whatever stands for them.

    Parameters
    ----------
    queries : path, open file, str, Bio.SeqRecord, (id, sequence), mapping or an iterable of sequences
        A string is a path if such a file exists, if it is ``-`` (stdin), or if it holds a dot or a slash; it is FASTA
        itself if it begins with ``>``; otherwise it is a sequence, as are bytes and a ``Bio.Seq``. A mapping is names
        to sequences. An open file, in text or binary mode, holds FASTA.
    alphabet : Alphabet, optional
        What the letters mean.
    what : str, optional
        Named in error messages and in the identifiers of nameless sequences.
    argument : str, optional
        What messages call the whole; ``what`` by default.

    Returns
    -------
    list of Query
        Not empty.

    Raises
    ------
    InputError
        If there is no sequence, or one has a byte that is no residue letter.
    """
    from swsearch.db import Record, read_fasta
    from swsearch.db.records import is_fasta_text, is_handle, items_of, named, opened, read_handle

    check_sequences(queries, argument or what)
    records: Iterable[Any]
    if path := path_of(queries):
        records = read_fasta(path, alphabet=alphabet)
    elif is_handle(queries) or is_fasta_text(queries):
        records = read_handle(opened(queries), alphabet)
    else:
        records = items_of(queries)
    found: list[Query] = []
    for number, item in enumerate(records, 1):
        if isinstance(item, Record):
            found.append(Query(item.identifier, item.description, item.codes, tuple(item.masked)))
        else:
            one = named(item, number, what, what)
            codes = alphabet.encode(one.letters, source=what, record=one.identifier)
            found.append(Query(one.identifier, one.description, codes, _lower(one.letters)))
    if not found:
        raise InputError(f"no {what} sequences were given, expected at least one")
    return found


def check_sequences(given: Any, argument: str) -> None:
    """Raise `swsearch.errors.OptionError` if an argument cannot stand for sequences, as far as its kind says."""
    from swsearch.db import records

    if not isinstance(given, (str, os.PathLike)):
        records.check_sequences(given, argument)


def path_of(sequences: Any) -> str:
    """Return the path that sequences are read from, as `read_queries` understands it; empty where it is none."""
    is_path = isinstance(sequences, (str, os.PathLike)) and _is_path(sequences)
    return os.fsdecode(sequences) if is_path else ""


def _lower(letters: bytes) -> tuple[tuple[int, int], ...]:
    """Return the runs of lower case; blanks and line ends do not count."""
    kept = b"".join(letters.split())
    if kept.isupper():
        return ()
    return tuple(runs_of(np.frombuffer(kept, dtype=np.uint8) > ord("Z")))


def _is_path(text: str | os.PathLike[str]) -> bool:
    if not isinstance(text, str):
        return True
    if text.startswith(">"):
        return False
    if text == "-" or any(c in text for c in "./\\"):
        return True
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # a sequence may be longer than a file name can be
        return False


def check_subjects(subjects: Any) -> None:
    """Raise if an argument cannot stand for subjects, or is a database that was closed; opens nothing."""
    from swsearch.db import Database

    if isinstance(subjects, Database):
        subjects.check_open()
    else:
        check_sequences(subjects, "subjects")


def open_subjects(subjects: Any, mask: str = "database") -> Database:
    """Open whatever stands for subjects.

    Parameters
    ----------
    subjects : Database, or as for `read_queries`
        A path may name a database file or a FASTA file, which is then built in memory, as all else is.
    mask : {"database", "none", "lower", "tantan"}
        What is in force where the database is made here; one that is built already has its own.

    Returns
    -------
    Database
        ``subjects`` itself if it is one; otherwise the caller's to close.

    Raises
    ------
    DatabaseError
        If the subjects cannot be read, or are a database that was closed.
    """
    from swsearch.db import Database, is_database
    from swsearch.db.records import is_fasta_text, is_handle, is_single, opened

    check_subjects(subjects)
    if isinstance(subjects, Database):
        return subjects
    own: Mask = "tantan" if mask == "tantan" else "lower" if mask == "lower" else "none"
    try:
        if path := path_of(subjects):
            if path != "-" and (is_database(path) or Path(path).suffix == ".h5"):
                return Database.open(path)
            return Database.from_fasta([path], mask=own)
        if is_handle(subjects) or is_fasta_text(subjects):
            handle = opened(subjects)
            return Database.from_records(handle, name=handle.name, mask=own)
        return Database.from_records([subjects] if is_single(subjects) else subjects, mask=own)
    except SequenceError as error:
        raise DatabaseError(str(error)) from error
