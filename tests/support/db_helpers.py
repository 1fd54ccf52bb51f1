"""What several tests of the database need: a parser that is too simple to be wrong, and small files."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from swsearch.alphabet import PROTEIN
from swsearch.db import Record
from swsearch.db.format import read_user_block
from swsearch.db.writing import seal

LETTERS = PROTEIN.letters
SHARED = Path(__file__).parents[2] / ".." / "shared" / "data"
"""Sequence files that are not part of the project; tests that read them skip where they are missing."""

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


def wrong(sound: Path, path: Path, name: str, change: Callable[[Any], Any]) -> Path:
    """Change one dataset, and make its checksums and the user block right again."""
    path.write_bytes(sound.read_bytes())
    with h5py.File(path, "r+") as file:
        group = file["segments/0"]
        values = group[name][()]
        changed = change(values)
        group[name][...] = values if changed is None else changed
        group[f"checksums/{name}"][0] = zlib.crc32(np.ascontiguousarray(group[name][()]).tobytes())
    block = read_user_block(sound)
    assert block is not None
    seal(path, block.version)
    return path


def put(place: Any, value: Any) -> Callable[[Any], None]:
    def change(values: Any) -> None:
        values[place] = value

    return change
