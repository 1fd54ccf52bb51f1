"""The table of contents of a database file.

A file begins with the user block: 512 bytes of text with the length of the file and the place of the newest piece of
its contents. A piece is JSON: segments, and the place of the piece before it if it was appended. Checksums form a
chain: the user block has the SHA-256 of the newest piece, each piece that of the piece before, and of each array's
checksums. A manifest is a file of JSON only: a piece whose segments are in other files.

A table may come from anywhere. `read_contents` accepts only tables that a writer of swsearch could write: the right
arrays with the right types, inside the file, without a byte in two of them.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from swsearch.alphabet import DNA, STRUCTURAL
from swsearch.blocks import LANES
from swsearch.db.byte_source import FileSource
from swsearch.db.format import (
    ARRAY_TYPES,
    CHECKED_BYTES,
    FORMAT_NAME,
    FORMAT_VERSION,
    LAYOUT,
    USER_BLOCK,
    DatabaseKind,
)
from swsearch.errors import format_value
from swsearch.options.kinds import MASKS

MAX_CONTENTS_BYTES = 3 << 20
"""Bytes of all pieces of a file's contents, enough for 1,000 segments, and of a manifest, enough for 15,000 files."""

MIN_BYTES_PER_ITEM = 8
"""Bytes of contents for each bracket and comma, at least. It bounds the memory of hostile JSON's objects."""

MAX_NUMBER = 1 << 62
MAX_TEXT = 200

Attributes = dict[str, int | str]

SEGMENT_COUNTS = ("n_subjects", "n_residues", "n_empty", "n_masked", "longest")
"""Attributes of every segment that count."""

_SHA256 = re.compile("[0-9a-f]{64}")
_BLOCK = re.compile(rb"%s\nformat ([1-9]\d{0,8})\n" % FORMAT_NAME.encode())
_PLACE = rb"(0|[1-9]\d{0,17}) (0|[1-9]\d{0,9}) ([0-9a-f]{64})\n"
_REST = re.compile(rb"bytes ([1-9]\d{0,17})\ncontents %s(?:changes %s)?\0*" % (_PLACE, _PLACE))


class ContentsError(Exception):
    """Describes what is wrong with a table of contents."""


@dataclass(frozen=True)
class BytesPlace:
    """Place, number and SHA-256 (lower-case hexadecimal) of some bytes of a file."""

    at: int
    n_bytes: int
    sha256: str

    @classmethod
    def from_bytes(cls, at: int, data: bytes) -> BytesPlace:
        """Return the place of known bytes."""
        return cls(at, len(data), hashlib.sha256(data).hexdigest())

    def matches(self, data: bytes) -> bool:
        """Return whether bytes read there are those that were written."""
        return self == self.from_bytes(self.at, data)


@dataclass(frozen=True)
class UserBlock:
    """Content of the first 512 bytes of a file."""

    n_bytes: int
    """Length of the file."""
    contents: BytesPlace
    """Place of the newest piece of the contents."""
    changes: BytesPlace | None = None
    """Place of changes of HDF5's metadata that an append has not completed."""

    @property
    def end(self) -> int:
        """End of the bytes in use."""
        return self.n_bytes + (self.changes.n_bytes if self.changes else 0)

    def pack(self) -> bytes:
        """Write the block, 512 bytes; there is exactly one way to write it."""
        lines = [FORMAT_NAME, f"format {FORMAT_VERSION}", f"bytes {self.n_bytes}"]
        for name, place in (("contents", self.contents), ("changes", self.changes)):
            lines += [f"{name} {place.at} {place.n_bytes} {place.sha256}"] if place else []
        return "\n".join([*lines, ""]).encode("ascii").ljust(USER_BLOCK, b"\0")

    @classmethod
    def parse(cls, head: bytes) -> UserBlock | None:
        """Read a block; None if it is not one of this version."""
        start = _BLOCK.match(head)
        match = _REST.fullmatch(head, start.end()) if start and int(start[1]) == FORMAT_VERSION else None
        if match is None:
            return None
        places = [BytesPlace(int(match[k]), int(match[k + 1]), match[k + 2].decode()) for k in (2, 5) if match[k]]
        return cls(int(match[1]), *places)


def version_of(head: bytes) -> int | None:
    """Return the format version that the first bytes of a file say; None if it is not a database file."""
    match = _BLOCK.match(head)
    return int(match[1]) if match else None


@dataclass(frozen=True)
class ArrayEntry:
    """Place, type and shape of an array."""

    name: str
    """One of `swsearch.db.format.ARRAY_TYPES`."""
    shape: tuple[int, ...]
    at: int
    """First byte in the file; 0 if the array is empty."""
    sums_at: int
    """First byte of its checksums."""
    sha256: str | None = None
    """SHA-256 of its checksums; None in the formats before 4."""
    piece_bytes: int = CHECKED_BYTES
    """Bytes under one checksum."""

    @property
    def dtype(self) -> str:
        """Its type, as numpy names it."""
        return ARRAY_TYPES[self.name]

    @property
    def n_bytes(self) -> int:
        """Length in bytes."""
        return int(self.dtype[-1]) * math.prod(self.shape)

    @property
    def n_pieces(self) -> int:
        """Number of its checksums."""
        return -(-self.n_bytes // self.piece_bytes)


@dataclass(frozen=True)
class SegmentEntry:
    """A segment of a file: its attributes, and its arrays by name, ascending."""

    attributes: Attributes
    arrays: Mapping[str, ArrayEntry]

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the bytes of the file that are its own, from and to."""
        for each in self.arrays.values():
            yield each.at, each.at + each.n_bytes
            yield each.sums_at, each.sums_at + 4 * each.n_pieces


@dataclass(frozen=True)
class FileEntry:
    """A volume of a manifest: its path relative to the manifest's folder, with slashes, its identity and its size."""

    path: str
    identity: str
    n_subjects: int
    n_residues: int


@dataclass(frozen=True)
class Contents:
    """Contents of a file: segments, or, for a manifest, files with segments; in the order of the subjects."""

    kind: DatabaseKind
    segments: tuple[SegmentEntry, ...] = ()
    files: tuple[FileEntry, ...] = ()
    pieces: tuple[BytesPlace, ...] = field(default=(), compare=False)
    """Places of the pieces of the contents, the oldest first."""
    n_bytes: int = 0
    """Length of the file; 0 for a manifest."""

    def identity(self) -> str:
        """Return the checksum that two databases share only if searches of both give the same hits, hexadecimal."""
        alphabet = "" if self.kind.alphabet == "protein" else f", alphabet {self.kind.alphabet}"
        text = f"mask {self.kind.mask}, genetic code {self.kind.genetic_code}{alphabet}\n"
        digest = hashlib.sha256(text.encode())
        for each in (each for segment in self.segments for each in segment.arrays.values()):
            if each.name != "sources":
                digest.update(f"{each.name} {each.shape} {each.sha256}\n".encode())
        return digest.hexdigest()

    def total(self, name: str) -> int:
        """Add up an attribute of its segments."""
        return sum(int(each.attributes[name]) for each in self.segments)


def pack_piece(
    kind: DatabaseKind, entries: Sequence[SegmentEntry | FileEntry], before: BytesPlace | None = None
) -> bytes:
    """Write a piece of the contents; a manifest is one line an entry, for people read it."""
    members: dict[str, Any] = {"format": FORMAT_NAME, "format_version": FORMAT_VERSION, **kind.attributes, **LAYOUT}
    if before is not None:
        members["before"] = [before.at, before.n_bytes, before.sha256]
    head = json.dumps(members, separators=(",", ":"), ensure_ascii=False)[:-1]
    listed = ",\n".join(
        json.dumps(_entry_to_json(each), separators=(",", ":"), ensure_ascii=False) for each in entries
    )
    return f'{head},"segments":[\n{listed}\n]}}\n'.encode()


def _entry_to_json(entry: SegmentEntry | FileEntry) -> dict[str, Any]:
    if isinstance(entry, FileEntry):
        return {"file": entry.path, **{k: v for k, v in vars(entry).items() if k != "path"}}
    arrays = {name: [list(each.shape), each.at, each.sha256] for name, each in entry.arrays.items()}
    first = next(iter(entry.arrays.values()))
    return {"attributes": entry.attributes, "arrays": arrays, "checksums": first.sums_at}


def read_contents(source: FileSource) -> Contents:
    """Read and check the contents of a file of this format, or of a manifest; raise `ContentsError` for any other."""
    head = source.read(0, USER_BLOCK)
    if version_of(head) is None:
        if source.n_bytes > MAX_CONTENTS_BYTES:
            raise ContentsError(f"more than {MAX_CONTENTS_BYTES:,} bytes, too long for a manifest")
        kind, entries, before = _parse_piece(source.read(0, source.n_bytes))
        files = tuple(each for each in entries if isinstance(each, FileEntry))
        _require(len({each.path for each in files}) == len(files), "a file is given twice; name each file once")
        _require(before is None and len(files) == len(entries), "a manifest names something else")
        return Contents(kind, files=files)
    block = UserBlock.parse(head)
    if block is None:
        raise ContentsError(f"user block (bytes 0 to {USER_BLOCK})")
    if source.n_bytes < block.n_bytes:
        raise ContentsError(f"truncated: {source.n_bytes} bytes, expected {block.n_bytes}")
    return _read_pieces(source, block)


def _read_pieces(source: FileSource, block: UserBlock) -> Contents:
    """Read all pieces, the newest first."""
    place: BytesPlace | None = block.contents
    pieces, parts, kinds = list[BytesPlace](), list[tuple[SegmentEntry, ...]](), list[DatabaseKind]()
    end, total = block.n_bytes, 0
    while place is not None:
        total += place.n_bytes
        if place.at < USER_BLOCK or place.at + place.n_bytes > end or total > MAX_CONTENTS_BYTES:
            raise ContentsError(f"contents (byte {place.at}): not where they can be")
        text = source.read(place.at, place.n_bytes)
        if not place.matches(text):
            raise ContentsError(f"contents (bytes {place.at} to {place.at + place.n_bytes}): checksum differs")
        kind, entries, before = _parse_piece(text)
        segments = tuple(each for each in entries if isinstance(each, SegmentEntry))
        _require(len(segments) == len(entries), "a database file lists other files")
        kinds.append(kind)
        parts.append(segments)
        pieces.append(place)
        end, place = place.at, before
    _require(len({*kinds}) == 1, "its segments are of different kinds")
    every = tuple(segment for part in reversed(parts) for segment in part)
    _check_apart([*((each.at, each.at + each.n_bytes) for each in pieces), *_ranges(every)], block.n_bytes)
    return Contents(kinds[0], every, (), tuple(reversed(pieces)), block.n_bytes)


def _ranges(segments: Sequence[SegmentEntry]) -> Iterator[tuple[int, int]]:
    for number, segment in enumerate(segments):
        for each in segment.arrays.values():
            if each.at and not each.n_bytes:
                raise ContentsError(f"/segments/{number}/{each.name} has a place and no bytes")
        yield from segment.ranges()


def _check_apart(ranges: Sequence[tuple[int, int]], n_bytes: int) -> None:
    """Raise if an array is outside the file, or shares bytes with another."""
    ranges = sorted(each for each in ranges if each[0] < each[1])
    if ranges and (ranges[0][0] < USER_BLOCK or max(end for _, end in ranges) > n_bytes):
        raise ContentsError("an array reaches beyond the file")
    for (_, end), (begin, _) in pairwise(ranges):
        if begin < end:
            raise ContentsError(f"bytes {begin} to {end} are in two arrays")


def _parse_piece(text: bytes) -> tuple[DatabaseKind, list[SegmentEntry | FileEntry], BytesPlace | None]:
    """Read one piece: the kind, segments or files, and where the piece before it stands."""
    if sum(map(text.count, (b"{", b"[", b","))) > len(text) // MIN_BYTES_PER_ITEM:
        raise ContentsError("the contents have too many parts")
    try:
        piece = json.loads(text)
    except (ValueError, RecursionError):
        raise ContentsError("the contents are not JSON") from None
    _require(isinstance(piece, dict) and piece.get("format") == FORMAT_NAME, "the contents are of something else")
    for name, value in {"format_version": FORMAT_VERSION, **LAYOUT}.items():
        if type(piece.get(name)) is not type(value) or piece[name] != value:
            raise ContentsError(f"attribute {name} is {format_value(piece.get(name))}, expected {value!r}")
    kind = kind_from_attributes(piece)
    listed = piece.get("segments")
    _require(isinstance(listed, list) and listed, "no segments found")
    before = piece.get("before")
    if before is not None:
        _require(isinstance(before, list) and len(before) == 3 and _is_sha256(before[2]), "before is not a place")
        before = BytesPlace(_number("before", before[0]), _number("before", before[1]), before[2])
    return kind, [_entry(number, each, kind) for number, each in enumerate(listed)], before


def kind_from_attributes(attributes: Mapping[str, Any]) -> DatabaseKind:
    """Return the kind of database that attributes say."""
    from swsearch.translation.genetic_codes import genetic_codes

    mask, code, taxids = attributes.get("mask"), attributes.get("genetic_code"), attributes.get("taxids")
    if mask not in MASKS:
        raise ContentsError(f"mask is {format_value(mask)}, expected one of {', '.join(MASKS)}")
    _require(type(taxids) is int and taxids in (0, 1), f"taxids is {format_value(taxids)}, expected 0 or 1")
    if code is not None:
        fits = type(code) is int and code in genetic_codes()
        _require(fits, f"genetic_code is {format_value(code)}, expected NCBI's number of one")
        letters = attributes.get("dna_letters")
        _require(letters == DNA.letters, f"dna_letters is {format_value(letters)}, expected {DNA.letters!r}")
        _require(mask == "none", f"mask is {format_value(mask)}, expected 'none' with DNA")
    alphabet = attributes.get("alphabet", "protein")
    names = ("protein", *STRUCTURAL)
    _require(alphabet in names, f"alphabet is {format_value(alphabet)}, expected one of {', '.join(names)}")
    return DatabaseKind(mask, code, bool(taxids), alphabet)


def _require(condition: Any, problem: str) -> None:
    if not condition:
        raise ContentsError(problem)


def _number(what: str, value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_NUMBER:
        raise ContentsError(f"{what} is {format_value(value)}, expected a number from 0 on")
    return value


def _is_sha256(value: Any) -> bool:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def _entry(number: int, value: Any, kind: DatabaseKind) -> SegmentEntry | FileEntry:
    """Check what is said of a segment, or of a file that holds some."""
    where = f"/segments/{number}"
    _require(isinstance(value, dict), f"{where} is not an object")
    if "file" in value:
        return _file_entry(where, value)
    arrays, attributes = value.get("arrays"), value.get("attributes")
    if not isinstance(arrays, dict) or not isinstance(attributes, dict):
        raise ContentsError(f"{where} has no arrays or no attributes")
    sums_at, entries = _number(f"{where}/checksums", value.get("checksums")), {}
    if other := arrays.keys() ^ {*kind.arrays}:
        what = "not expected" if (name := min(other)) in arrays else "missing"
        raise ContentsError(f"{where}/{name[:MAX_TEXT]} is {what}")
    for name in kind.arrays:
        at, each = f"{where}/{name}", arrays[name]
        if not isinstance(each, list) or len(each) != 3 or not isinstance(each[0], list):
            raise ContentsError(f"{at} is no array")
        if not _is_sha256(each[2]):
            raise ContentsError(f"{at} has no SHA-256")
        shape = tuple([_number(at, extent) for extent in each[0]])
        entries[name] = entry = ArrayEntry(name, shape, _number(at, each[1]), sums_at, each[2])
        sums_at += 4 * entry.n_pieces
    return check_segment(where, SegmentEntry(attributes, entries))


def check_segment(where: str, segment: SegmentEntry) -> SegmentEntry:
    """Return a segment; raise if arrays have not as many rows as the number of subjects asks for."""
    for name, value in segment.attributes.items():
        is_text = isinstance(value, str) and len(value) <= MAX_TEXT and value.isascii() and value.isprintable()
        if not is_text and (type(value) is not int or not 0 <= value <= MAX_NUMBER):
            raise ContentsError(f"{where}: attribute {name[:MAX_TEXT]!r} is not a number or a line of text")
    for name in SEGMENT_COUNTS:
        if type(segment.attributes.get(name)) is not int:
            raise ContentsError(f"{where}: attribute {name} is missing")
    for name, each in segment.arrays.items():
        columns = (LANES,) if name == "residues" else ()
        if len(each.shape) != 1 + len(columns) or each.shape[1:] != columns:
            raise ContentsError(f"{where}/{name}: wrong shape")
    n, rows = int(segment.attributes["n_subjects"]), {k: each.shape[0] for k, each in segment.arrays.items()}
    expected = {"header_offsets": n + 1, "mask_offsets": n + 1, "mask_ends": rows["mask_starts"]}
    if "order" in rows:
        expected |= {"lengths": n, "order": n, "block_offsets": -(-n // LANES) + 1}
    else:
        expected |= {"record_lengths": n, "nucleotides": -(-int(segment.attributes["n_residues"]) // 2)}
    if "tantan_ends" in rows:
        expected |= {"tantan_offsets": n + 1, "tantan_ends": rows["tantan_starts"]}
    if "taxids" in rows:
        expected |= {"taxid_offsets": n + 1, "taxon_parents": rows["taxa"], "merged_into": rows["merged_taxids"]}
    for name, count in expected.items():
        if rows[name] != count:
            raise ContentsError(f"{where}/{name} does not fit the number of subjects")
    _require(n, f"{where} has no subjects")
    return segment


def _file_entry(where: str, value: dict[str, Any]) -> FileEntry:
    path = value["file"]
    if not isinstance(path, str) or not path or "\0" in path:
        raise ContentsError(f"{where}: file is {format_value(path)}, expected the name of a file")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts:
        raise ContentsError(
            f"{where}: file is {format_value(path)}, expected a file in the manifest's folder or below it; it may "
            f"be a link"
        )
    identity = value.get("identity")
    if not _is_sha256(identity):
        raise ContentsError(f"{where}: identity is {format_value(identity)}, expected 64 hexadecimal digits")
    return FileEntry(
        "/".join(parts), str(identity), *(_number(f"{where}: {name}", value.get(name)) for name in SEGMENT_COUNTS[:2])
    )
