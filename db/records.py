"""Records from Python objects: Biopython's, pairs, strings; as the batches that a FASTA file makes too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from swsearch.alphabet import BLANK, PROTEIN, Alphabet, ByteArray
from swsearch.blocks import IntArray
from swsearch.db.fasta import Record, RecordBatch, lower_case, split_header
from swsearch.errors import OptionError, SequenceError

SOURCE = "<records>"
RECORD_BATCH_RESIDUES = 1 << 22
"""Residues that are collected before they are passed on."""


def _text(value: Any, place: str, what: str) -> bytes:
    """Turn a string, bytes or a Biopython Seq into bytes."""
    try:
        return value.encode("utf-8") if isinstance(value, str) else bytes(value)
    except (TypeError, ValueError) as error:  # a Seq of unknown content raises a ValueError
        raise SequenceError(SOURCE, f"{what} is no text ({error}), expected letters", place) from error


def _described(record: Any) -> str:
    """Make the header of a Bio.SeqRecord as Biopython's FASTA writer makes it."""
    identifier, description = str(record.id), str(record.description or "")
    if description in ("", "<unknown description>"):
        return identifier
    return description if description.split(None, 1)[0] == identifier else f"{identifier} {description}"


def _parts(record: Any, number: int, alphabet: Alphabet) -> tuple[bytes, ByteArray, IntArray, IntArray]:
    """Return header, codes and runs of lower case of one record."""
    if isinstance(record, Record):
        runs = np.array(record.masked, dtype=np.int64).reshape(-1, 2)
        return record.header, record.codes, runs[:, 0], runs[:, 1]
    if hasattr(record, "seq") and hasattr(record, "id"):
        name, sequence = _described(record), record.seq
    elif isinstance(record, (tuple, list)) and len(record) == 2:
        name, sequence = record
    elif isinstance(record, (str, bytes)) or type(record).__name__ in ("Seq", "MutableSeq"):
        name, sequence = f"subject_{number}", record
    else:
        raise OptionError(
            f"records[{number - 1}]", record, "a Bio.SeqRecord, a pair (identifier, sequence) or a string"
        )
    header = _text(name, f"number {number}", "the identifier")
    if not split_header(header)[0] or any(byte in header for byte in b"\n\r\0"):
        problem = f"got identifier {name!r}, expected a word and no line ends"
        raise SequenceError(SOURCE, problem, f"number {number}")
    identifier = split_header(header)[0].decode("utf-8", "replace")
    if sequence is None:
        raise SequenceError(SOURCE, "got no sequence, expected residue letters", identifier)
    raw = _text(sequence, identifier, "the sequence")
    codes = alphabet.encode(raw, source=SOURCE, record=identifier)
    letters = np.frombuffer(raw, dtype=np.uint8)
    letters = letters[alphabet.encode_table[letters] != BLANK]
    return header, codes, *lower_case(letters, np.empty(0, np.int64))


def record_batches(records: Iterable[Any], alphabet: Alphabet = PROTEIN) -> Iterator[RecordBatch]:
    """Turn Python objects into batches.

    Parameters
    ----------
    records : iterable
        `Bio.SeqRecord.SeqRecord`, pairs (identifier, sequence), `Record`, or strings, which are called ``subject_1``
        and so on by their place.
    alphabet : Alphabet, optional
        Letters that are legal.

    Yields
    ------
    RecordBatch
        Whole records.

    Raises
    ------
    SequenceError
        If a sequence holds something else than residue letters.
    OptionError
        If an object is none of the above.
    """
    if isinstance(records, (str, bytes)) or (hasattr(records, "seq") and hasattr(records, "id")):
        raise OptionError("records", records, "an iterable of records", "put a single record into a list")
    waiting: list[tuple[bytes, ByteArray, IntArray, IntArray]] = []
    n_residues = 0
    for number, record in enumerate(records, start=1):
        waiting.append(_parts(record, number, alphabet))
        n_residues += len(waiting[-1][1])
        if n_residues >= RECORD_BATCH_RESIDUES:
            yield _batch(waiting)
            waiting, n_residues = [], 0
    if waiting:
        yield _batch(waiting)


def _batch(waiting: list[tuple[bytes, ByteArray, IntArray, IntArray]]) -> RecordBatch:
    headers, codes, starts, ends = zip(*waiting, strict=True)
    bounds = np.cumsum([0, *(len(each) for each in codes)])
    return RecordBatch(
        np.concatenate(codes),
        bounds[:-1],
        b"".join(headers),
        np.array([len(header) for header in headers], dtype=np.int64),
        np.concatenate([each + base for each, base in zip(starts, bounds.tolist(), strict=False)]),
        np.concatenate([each + base for each, base in zip(ends, bounds.tolist(), strict=False)]),
    )
