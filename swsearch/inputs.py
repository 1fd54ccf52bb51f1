"""Everything that may stand for queries or subjects, turned into records or a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from swsearch.alphabet import PROTEIN, Alphabet, ByteArray
from swsearch.errors import DatabaseError, InputError, SequenceError
from swsearch.masking import Mask, masked_codes, runs_of, shown_letters, tantan

if TYPE_CHECKING:
    from Bio.SeqRecord import SeqRecord

    from swsearch.db import Database

SequenceLike = Union["SeqRecord", "tuple[str, str]", str]
"""One sequence: a Bio.SeqRecord, an (identifier, sequence) pair or the letters themselves."""

Sequences = Union[str, Path, "SeqRecord", Iterable[SequenceLike]]
"""Sequences: a FASTA path (``-`` is stdin), one sequence, or an iterable of sequences."""


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


def read_queries(queries: Sequences, alphabet: Alphabet = PROTEIN, what: str = "query") -> list[Query]:
    """Read sequences from whatever stands for them.

    Parameters
    ----------
    queries : path, str, Bio.SeqRecord, (id, sequence) or an iterable of these
        A string is a path if such a file exists, if it is ``-`` (stdin), or if it holds a dot or a slash;
        otherwise it is a sequence.
    alphabet : Alphabet, optional
        What the letters mean.
    what : str, optional
        Named in error messages and in the identifiers of nameless sequences.

    Returns
    -------
    list of Query
        Not empty.

    Raises
    ------
    InputError
        If there is no sequence, or one has a byte that is no residue letter.
    """
    if path := path_of(queries):
        from swsearch.db import read_fasta

        found = [
            Query(record.identifier, record.description, record.codes, tuple(record.masked))
            for record in read_fasta(path, alphabet=alphabet)
        ]
    else:
        found = [
            Query(identifier, description, alphabet.encode(letters, source=what, record=identifier), _lower(letters))
            for identifier, description, letters in _name_sequences(queries, what)
        ]
    if not found:
        raise InputError(f"no {what} sequences were given, expected at least one")
    return found


def path_of(sequences: Any) -> str:
    """Return the path that sequences are read from, as `read_queries` understands it; empty where it is none."""
    return str(sequences) if isinstance(sequences, (str, Path)) and _is_path(sequences) else ""


def _lower(letters: str) -> tuple[tuple[int, int], ...]:
    """Return the runs of lower case; blanks and line ends do not count."""
    kept = "".join(letters.split())
    if kept.isupper():
        return ()
    return tuple(runs_of(np.frombuffer(kept.encode("ascii"), dtype=np.uint8) > ord("Z")))


def _is_path(text: str | Path) -> bool:
    if isinstance(text, Path) or text == "-" or any(c in text for c in "./\\"):
        return True
    try:
        return Path(text).exists()
    except OSError:  # a sequence may be longer than a file name can be
        return False


def _name_sequences(sequences: Any, what: str) -> Iterator[tuple[str, str, str]]:
    """Yield (identifier, description, letters)."""
    if isinstance(sequences, str) or hasattr(sequences, "seq") or _is_pair(sequences):
        sequences = [sequences]
    for number, item in enumerate(sequences, 1):
        if isinstance(item, str):
            yield f"{what}_{number}", "", item
        elif _is_pair(item):
            yield item[0], "", item[1]
        elif hasattr(item, "seq"):
            identifier = str(item.id)
            yield identifier, str(item.description).removeprefix(identifier).strip(), str(item.seq)
        else:
            raise InputError(
                f"{what} {number}: got {type(item).__name__}, expected a Bio.SeqRecord, an (id, sequence) pair or "
                "a string of residue letters"
            )


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and all(isinstance(part, str) for part in item)


def open_subjects(subjects: Any, mask: str = "database") -> Database:
    """Open whatever stands for subjects.

    Parameters
    ----------
    subjects : Database, path, Bio.SeqRecord, (id, sequence), str or an iterable of sequences
        A path may name a database file or a FASTA file, which is then built in memory.
    mask : {"database", "none", "lower", "tantan"}
        What is in force where the database is made here; one that is built already has its own.

    Returns
    -------
    Database
        ``subjects`` itself if it is one; otherwise the caller's to close.

    Raises
    ------
    DatabaseError
        If the subjects cannot be read.
    """
    from swsearch.db import Database, is_database

    if isinstance(subjects, Database):
        return subjects
    own: Mask = "tantan" if mask == "tantan" else "lower" if mask == "lower" else "none"
    try:
        if path := path_of(subjects):
            if path != "-" and (is_database(path) or Path(path).suffix == ".h5"):
                return Database.open(path)
            return Database.from_fasta([path], mask=own)
        return Database.from_records(
            ((identifier, letters) for identifier, _, letters in _name_sequences(subjects, "subject")), mask=own
        )
    except SequenceError as error:
        raise DatabaseError(str(error)) from error
