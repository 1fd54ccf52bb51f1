"""Records from Python objects, in batches like those of a file.

Objects are Biopython's records, pairs, strings, mappings or open files.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from swsearch.alphabet import BLANK, PROTEIN, Alphabet
from swsearch.db.arrays import offsets_of
from swsearch.db.fasta import FastaReader, Record, RecordBatch, header_text, lower_case, split_header
from swsearch.db.input_stream import ByteSource, compression_of
from swsearch.errors import InputError, OptionError, SequenceError, format_value

SOURCE = "<records>"
RECORDS_PER_BATCH = 1 << 10
"""Records that are collected before they are passed on."""

READ_BYTES = 1 << 20
"""Bytes or characters that are read at once from a file that the caller opened."""

EXPECTED = "a Bio.SeqRecord, an (id, sequence) pair or a string of residue letters"
"""Valid sequences, for messages."""


class OpenFastaFile(ByteSource):
    """A file that the caller opened, in text or binary mode; it stays open."""

    def __init__(self, file: Any, name: str | None = None) -> None:
        own = getattr(file, "name", None)
        super().__init__(name or (own if isinstance(own, str) else f"<{type(file).__name__}>"), iter(self._read, b""))
        self._file = file

    def _read(self) -> bytes:
        try:
            read = self._file.read(READ_BYTES)
        except (OSError, ValueError, EOFError, TypeError) as error:
            problem = f"cannot be read: {str(error).rstrip('.')}; give an open file, or its path"
            raise SequenceError(self.name, problem) from error
        if isinstance(read, str):
            return read.encode("utf-8", "surrogateescape")
        if not isinstance(read, bytes):
            raise SequenceError(
                self.name, f"read() gave {format_value(read)}, expected text or bytes; give the file's path"
            )
        if compression_of(read):
            raise SequenceError(self.name, "holds compressed data; give the file's path, or open it with gzip.open")
        return read


class NamedSequence(NamedTuple):
    """A sequence as a caller gave it: residue letters, not checked yet, and its name.

    The description is empty where the caller gave one name for all of the header, which has both.
    """

    identifier: str
    description: str
    header: str
    letters: bytes


def is_open_file(value: Any) -> bool:
    """Return whether an object is an open file."""
    return callable(getattr(value, "read", None))


def is_letters(value: Any) -> bool:
    """Return whether an object has letters and no name: a string, bytes, or a Seq of Biopython."""
    return isinstance(value, (str, bytes, bytearray, memoryview)) or type(value).__name__ in ("Seq", "MutableSeq")


def is_record(value: Any) -> bool:
    """Return whether an object is like a Bio.SeqRecord; tables have attributes named after their columns."""
    return hasattr(value, "seq") and not hasattr(value, "columns") and type(value).__name__ != "Series"


def is_single(value: Any) -> bool:
    """Return whether an object is one sequence, not an iterable of sequences."""
    pair = isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and is_letters(value[1])
    return pair or is_letters(value) or is_record(value) or isinstance(value, Record)


def check_sequences(value: Any, argument: str) -> None:
    """Raise `OptionError` if an object cannot be sequences, as far as that shows before iteration."""
    if is_single(value) or is_open_file(value) or isinstance(value, Mapping):
        return
    remedy = ""
    if hasattr(value, "columns"):
        names = [str(name) for name in getattr(value, "column_names", value.columns)]
        first, second = names[:2] if len(names) > 1 else ("id", "sequence")
        values = ".to_pylist()" if hasattr(value, "to_pylist") else ""  # Arrow's own are no strings
        remedy = f"give two columns as pairs, such as zip(table[{first!r}]{values}, table[{second!r}]{values})"
    elif type(value).__name__ == "Series":
        remedy = "give list(series), or dict(series) for names from its index"
    elif isinstance(value, np.ndarray):
        is_list = value.ndim == 1 and value.dtype.kind in "USO" and value.dtype.str[1:] not in ("U1", "S1")
        remedy = "" if is_list else "give letters as a string, such as ''.join(array) of single characters"
    if remedy or isinstance(value, type) or not isinstance(value, Iterable):
        raise OptionError(argument, value, "a path, sequences, or a mapping of names to sequences", remedy)


def _text(value: Any, place: str, what: str, source: str) -> bytes:
    """Turn a string, bytes or a Biopython Seq into bytes."""
    try:
        if isinstance(value, str):
            return value.encode("utf-8")
        if is_letters(value):
            return bytes(value)
        problem = f"got {format_value(value)}"
    except (TypeError, ValueError) as error:  # a Seq of unknown content, half of a surrogate pair
        problem = str(error)
    raise SequenceError(source, f"{what} is not text ({problem}), expected letters", place)


def _split_seq_record(record: Any) -> tuple[str, str, str]:
    """Return identifier, description and header of a Bio.SeqRecord, as Biopython's FASTA writer has them."""
    identifier, description = str(record.id), str(getattr(record, "description", None) or "")
    if not description.strip() or description == "<unknown description>":
        return identifier, "", identifier
    if description.split(None, 1)[0] == identifier:
        return identifier, description.removeprefix(identifier).strip(), description
    return identifier, description, f"{identifier} {description}"


def split_record(item: Any, number: int, what: str, source: str) -> NamedSequence:
    """Return the parts of a sequence; ``number``, from 1, and ``what`` name one without a name.

    It is a Bio.SeqRecord, a pair, a string, bytes or a Bio.Seq. A Bio.SeqRecord in a pair is renamed. ``source`` is
    for messages.
    """
    name, sequence, description, header = f"{what}_{number}", item, "", ""
    if isinstance(item, (tuple, list)) and len(item) == 2:
        name_given, sequence = item
        if not isinstance(name_given, str):
            raise InputError(f"{what} {number}: got {format_value(name_given)} as its identifier, expected a string")
        name = name_given
        if not is_letters(sequence) and is_record(sequence):
            description, sequence = _split_seq_record(sequence)[1], sequence.seq
            header = f"{name} {description}".strip()
    elif is_record(item):
        sequence = item.seq
        if getattr(item, "id", None) not in (None, "<unknown id>"):  # what Biopython calls a nameless record
            name, description, header = _split_seq_record(item)
    elif not is_letters(item):
        remedy = f"; it has {len(item)} parts" if isinstance(item, tuple) else ""
        if hasattr(item, "__fspath__"):
            remedy = "; search one file at a time, or combine the files"
        raise InputError(f"{what} {number}: got {format_value(item)}, expected {EXPECTED}{remedy}")
    if sequence is None:
        raise SequenceError(source, "got no sequence, expected residue letters", name)
    return NamedSequence(name, description, header or name, _text(sequence, name, "the sequence", source))


def iter_sequences(sequences: Any) -> Iterable[Any]:
    """Return sequences as an iterable: of one, of the pairs of a mapping, or as they are."""
    if is_single(sequences):
        return [sequences]
    return sequences.items() if isinstance(sequences, Mapping) else sequences


def is_fasta_text(value: Any) -> bool:
    """Return whether a string or bytes are FASTA, which begins with ``>``."""
    return value[:1] in (">", b">") if isinstance(value, (str, bytes)) else False


def open_given(source: Any) -> OpenFastaFile:
    """Return an open file, or FASTA text, to be read."""
    if isinstance(source, OpenFastaFile):
        return source
    if isinstance(source, str):
        return OpenFastaFile(io.StringIO(source))
    return OpenFastaFile(io.BytesIO(source) if isinstance(source, bytes) else source)


def _record(item: Any, number: int, alphabet: Alphabet) -> Record:
    """Encode a sequence; a record is one already."""
    if isinstance(item, Record):
        return item
    one = split_record(item, number, "subject", SOURCE)
    header = _text(one.header, f"number {number}", "the identifier", SOURCE)
    if not split_header(header)[0] or any(byte in header for byte in b"\n\r\0"):
        problem = f"got identifier {format_value(one.header)}, expected a word and no line ends"
        raise SequenceError(SOURCE, problem, f"number {number}")
    identifier, description = header_text(header)
    codes = alphabet.encode(one.letters, source=SOURCE, record=identifier)
    letters = np.frombuffer(one.letters, dtype=np.uint8)
    letters = letters[alphabet.encode_table[letters] != BLANK]
    lower = () if one.letters.isupper() or not len(letters) else lower_case(letters, np.empty(0, np.int64))
    return Record(header, identifier, description, codes, list(zip(*map(np.ndarray.tolist, lower), strict=True)))


def record_batches(records: Any, alphabet: Alphabet = PROTEIN) -> Iterator[RecordBatch]:
    """Turn Python objects into batches of whole records; a record of an open file may continue in the next batch.

    Strings are called ``subject_1`` and so on by their place. It raises `InputError` for an object that is no
    sequence.
    """
    if is_single(records):
        raise OptionError("records", records, "an iterable of records", "put a single record into a list")
    check_sequences(records, "records")
    if is_open_file(records):
        yield from FastaReader(open_given(records), alphabet)
        return
    encoded = (_record(each, number, alphabet) for number, each in enumerate(iter_sequences(records), start=1))
    while some := list(islice(encoded, RECORDS_PER_BATCH)):
        offsets = offsets_of(np.array(list(map(len, some))))
        bases = offsets.tolist()
        runs = [(base + a, base + b) for each, base in zip(some, bases, strict=False) for a, b in each.masked]
        starts, ends = np.array(runs, dtype=np.int64).reshape(-1, 2).T
        headers = [each.header for each in some]
        codes, lengths = np.concatenate([each.codes for each in some]), np.array(list(map(len, headers)))
        yield RecordBatch(codes, offsets[:-1], b"".join(headers), lengths, starts, ends)
