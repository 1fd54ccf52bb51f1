"""Shared code of database tests: a parser that is too simple to be wrong, and small files."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from swsearch.alphabet import PROTEIN
from swsearch.db import Database, Record
from swsearch.db.file_contents import ArrayEntry, BytesPlace, UserBlock, read_contents
from swsearch.db.format import CHECKED_BYTES, USER_BLOCK

LETTERS = PROTEIN.letters

HBA = "MVLSPADKTNVKAAWGKVGAHAGEYGAEALERMFLSFPTTKTYFPHFDLSHGSAQVKGHGKKVADALTNAVAHVDDMPNALSALSDLHAHKLRVDPVNFK"
HBB = "MVHLTPEEKSAVTALWGKVNVDEVGGEALGRLLVVYPWTQRFFESFGDLSTPDAVMGNPKVKAHGKKVLGAFSDGLAHLDNLKGTFATLSELHCDKLHVD"

Naive = list[tuple[bytes, str]]


def naive_fasta(data: bytes) -> Naive:
    """Parse legal FASTA line by line: headers, and letters as they are written."""
    records: Naive = []
    for line in re.split(rb"\r\n|\n|\r", data.removeprefix(b"\xef\xbb\xbf")):
        if line.startswith(b">"):
            records.append((line[1:], ""))
        elif records:
            header, letters = records.pop()
            records.append((header, letters + re.sub(rb"[ \t\v\f]", b"", line).decode("ascii")))
        else:
            assert not line.strip()
    return records


def letters_of(record: Record) -> str:
    """Write a record's residues as they were, lower case included."""
    letters = list(PROTEIN.decode(record.codes))
    for start, end in record.masked:
        assert start < end <= len(letters)
        letters[start:end] = [letter.lower() for letter in letters[start:end]]
    return "".join(letters)


def runs_of_lower(letters: str) -> list[tuple[int, int]]:
    return [found.span() for found in re.finditer("[a-z]+", letters.replace("*", "A"))]


class Bytes:
    """The bytes of a database, as `read_contents` reads them."""

    def __init__(self, raw: bytes | bytearray) -> None:
        self._raw, self.n_bytes = raw, len(raw)

    def read(self, at: int, n_bytes: int) -> bytes:
        return bytes(self._raw[at : at + n_bytes])


def piece_of(raw: bytes | bytearray) -> dict[str, Any]:
    """Return the contents of a database as one piece that has all of its segments."""
    places = read_contents(Bytes(raw)).pieces
    pieces = [json.loads(raw[each.at : each.at + each.n_bytes]) for each in places]
    segments = [segment for piece in pieces for segment in piece["segments"]]
    return {name: value for name, value in pieces[-1].items() if name != "before"} | {"segments": segments}


def seal(raw: bytearray, piece: dict[str, Any] | bytes) -> BytesPlace:
    """Put another piece of contents at the end of a file as its newest, with right checksums; return its place."""
    place = BytesPlace.from_bytes(len(raw), piece if isinstance(piece, bytes) else json.dumps(piece).encode())
    raw += piece if isinstance(piece, bytes) else json.dumps(piece).encode()
    raw[:USER_BLOCK] = UserBlock(len(raw), place).pack()
    return place


def change_contents(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change what the contents of a file say, or put a text in their place, with right checksums."""
    raw = bytearray(path.read_bytes())
    piece = piece_of(raw)
    text = change(piece)
    seal(raw, text if isinstance(text, bytes) else piece)
    path.write_bytes(raw)


def entry_of(raw: bytes | bytearray, name: str, number: int = 0) -> ArrayEntry:
    """Return where an array of a segment is."""
    return read_contents(Bytes(raw)).segments[number].arrays[name]


def rewrite(raw: bytearray, name: str, change: Callable[[Any], Any], number: int = 0) -> None:
    """Change the values of an array of a segment, with right checksums all the way up."""
    entry, piece = entry_of(raw, name, number), piece_of(raw)
    values = np.frombuffer(bytes(raw[entry.at : entry.at + entry.n_bytes]), entry.dtype).reshape(entry.shape).copy()
    changed = change(values)
    data = (values if changed is None else changed).astype(entry.dtype).tobytes()
    sums = [zlib.crc32(data[at : at + CHECKED_BYTES]) for at in range(0, len(data), CHECKED_BYTES)]
    packed = np.array(sums, dtype="<u4").tobytes()
    assert len(data) == entry.n_bytes
    raw[entry.at : entry.at + len(data)], raw[entry.sums_at : entry.sums_at + len(packed)] = data, packed
    piece["segments"][number]["arrays"][name][2] = hashlib.sha256(packed).hexdigest()
    seal(raw, piece)


def wrong(sound: Path, path: Path, name: str, change: Callable[[Any], Any], number: int = 0) -> Path:
    """Write a database in which an array of another one is changed, with right checksums all the way up."""
    raw = bytearray(sound.read_bytes())
    rewrite(raw, name, change, number)
    path.write_bytes(raw)
    return path


def put(place: Any, value: Any) -> Callable[[Any], None]:
    def change(values: Any) -> None:
        values[place] = value

    return change


def all_of(path: Any) -> dict[str, Any]:
    """Return what searches and reports read of a database."""
    with Database.open(path) as database:
        every = range(database.n_subjects)
        chunks = [] if database.genetic_code else [*database.chunks(1 << 14)]
        return {
            "records": [(database.header(k), database.sequence(k)) for k in every],
            "runs": {mask: [database.masked_runs(k, mask) for k in every] for mask in ("lower", database.mask)},
            "taxa": [list(of_one) for of_one in database.taxa_of(every)],
            "chunks": [(each.residues.tobytes(), each.lengths.tolist(), each.subjects.tolist()) for each in chunks],
            "facts": [database.mask, database.genetic_code, database.identity(), database.lengths.tolist()],
            "sources": [source["sha256"] for source in database.sources()],
        }
