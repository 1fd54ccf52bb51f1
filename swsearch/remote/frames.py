"""Facts and arrays as bytes that follow each other: each frame has its length and a checksum, and the last says so.

What is read may come from anywhere. It holds numbers and JSON, and nothing that is run; what is cut off, altered or
in another order is refused, and no more memory is taken than bytes have come.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol

from swsearch.errors import ServerError, shown
from swsearch.pipeline.number_arrays import NumberArray, Unreadable, joined, parted

MAGIC = b"swsearch results\n"
"""What stands first."""

FrameKind = Literal["header", "batch", "problem", "end"]

KINDS_OF_FRAMES: dict[bytes, FrameKind] = {b"H": "header", b"B": "batch", b"P": "problem", b"E": "end"}

MOST_BYTES_OF_FRAME = 1 << 31
"""A query with a million hits of usual length fits."""

RECEIVED_AT_ONCE = 1 << 20
"""Bytes that are read at a time."""

_HEAD = struct.Struct("<cQ")
_CHECK = struct.Struct("<I")


class BrokenOffError(ServerError):
    """Bytes that end in the middle: what came is right, and the rest may be asked for again."""


class FrameSource(Protocol):
    """What bytes are read from."""

    def read(self, n: int, /) -> bytes:
        """Return up to n bytes; none at the end."""


def frame(kind: FrameKind, facts: Any, arrays: Mapping[str, NumberArray] | None = None, before: int = 0) -> bytes:
    """Return a frame.

    Parameters
    ----------
    kind : str
        One of `KINDS_OF_FRAMES`.
    facts : object
        What JSON can hold.
    arrays : dict of str to ndarray, shape (n,)
        Numbers by name.
    before : int, optional
        Checksum of the frame before, as `check_of` returns it.
    """
    payload = joined(facts, arrays or {})
    letter = next(letter for letter, known in KINDS_OF_FRAMES.items() if known == kind)
    head = _HEAD.pack(letter, len(payload))
    return b"".join([head, payload, _CHECK.pack(zlib.crc32(payload, zlib.crc32(head, before)))])


def check_of(made: bytes) -> int:
    """Return the checksum that stands at the end of a frame."""
    (found,) = _CHECK.unpack(made[-_CHECK.size :])
    return int(found)


def frames(stream: FrameSource, where: str) -> Iterator[tuple[FrameKind, Any, dict[str, NumberArray]]]:
    """Yield the frames of a stream, the last too: kind, facts, and arrays, each of shape (n,), by name.

    Parameters
    ----------
    stream : file object
        At `MAGIC`.
    where : str
        What messages call it.

    Raises
    ------
    ServerError
        If it is something else, or not whole.
    """
    found = stream.read(len(MAGIC))
    if found != MAGIC:
        raise ServerError(f"{where}: begins with {shown(found)}, expected results of swsearch")
    before = 0
    kind: FrameKind = "header"
    while kind not in ("end", "problem"):
        head = _exactly(stream, _HEAD.size, where)
        letter, size = _HEAD.unpack(head)
        if letter not in KINDS_OF_FRAMES or not _CHECK.size <= size <= MOST_BYTES_OF_FRAME:
            raise _damaged(where, "an invalid frame")
        kind = KINDS_OF_FRAMES[letter]
        payload = _exactly(stream, size, where)
        before = zlib.crc32(payload, zlib.crc32(head, before))
        if _CHECK.unpack(_exactly(stream, _CHECK.size, where)) != (before,):
            raise _damaged(where, "a wrong checksum")
        try:
            yield kind, *parted(payload)
        except Unreadable:
            raise _damaged(where, "a frame with other content than facts and numbers") from None
    if stream.read(1):
        raise _damaged(where, "bytes after the end")


def _damaged(where: str, what: str) -> ServerError:
    return ServerError(f"{where}: damaged in transit: {what}; try again")


def _exactly(stream: FrameSource, n: int, where: str) -> bytes:
    """Read so many bytes."""
    parts, left = [], n
    while left:
        part = stream.read(min(left, RECEIVED_AT_ONCE))
        if not part:
            raise BrokenOffError(f"{where}: incomplete: the server or the connection failed; try again")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
