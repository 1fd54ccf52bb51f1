"""HDF5's own checksums of its metadata: Jenkins' lookup3, and where the file format puts them."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_MASK = 0xFFFFFFFF


def _rotated(x: int, k: int) -> int:
    return (x << k | x >> 32 - k) & _MASK


def lookup3(data: bytes) -> int:
    """Return the hash of some bytes, as HDF5 computes it: the initial value is 0."""
    a = b = c = (0xDEADBEEF + len(data)) & _MASK
    if not data:
        return c
    whole = data.ljust(-(-len(data) // 12) * 12, b"\0")
    words = struct.unpack(f"<{len(whole) // 4}I", whole)
    for at in range(0, len(words) - 3, 3):
        a, b, c = a + words[at] & _MASK, b + words[at + 1] & _MASK, c + words[at + 2] & _MASK
        for first, second, third, shift in (
            (0, 2, 1, 4),
            (1, 0, 2, 6),
            (2, 1, 0, 8),
            (0, 2, 1, 16),
            (1, 0, 2, 19),
            (2, 1, 0, 4),
        ):
            value = [a, b, c]
            value[first] = (value[first] - value[second] & _MASK) ^ _rotated(value[second], shift)
            value[second] = value[second] + value[third] & _MASK
            a, b, c = value
    a, b, c = a + words[-3] & _MASK, b + words[-2] & _MASK, c + words[-1] & _MASK
    for first, second, shift in ((2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24)):
        value = [a, b, c]
        value[first] = (value[first] ^ value[second]) - _rotated(value[second], shift) & _MASK
        a, b, c = value
    return c


def _find(raw: bytes, signature: bytes) -> Iterator[int]:
    at = raw.find(signature)
    while at >= 0:
        yield at
        at = raw.find(signature, at + 1)


def summed(raw: bytes) -> Iterator[tuple[int, int]]:
    """Find what has a checksum: the superblock, object headers and their continuations, from and to its place."""
    for at in _find(raw, b"\x89HDF\r\n\x1a\n"):
        if raw[at + 8 : at + 9] in (b"\x02", b"\x03"):
            yield at, at + 44
    for at in _find(raw, b"OHDR"):
        if at + 8 > len(raw):
            continue
        flags = raw[at + 5]
        start = at + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
        width = 1 << (flags & 3)
        stop = start + width + int.from_bytes(raw[start : start + width], "little")
        if stop + 4 > len(raw):
            continue
        yield at, stop
        yield from _continuations(raw, start + width, stop, 6 if flags & 4 else 4)


def _continuations(raw: bytes, start: int, stop: int, head: int) -> Iterator[tuple[int, int]]:
    while start + head <= stop:
        kind, size = raw[start], int.from_bytes(raw[start + 1 : start + 3], "little")
        if kind == 0x10 and size == 16:
            at, length = struct.unpack("<QQ", raw[start + head : start + head + 16])
            at += 512  # addresses count from after the user block
            if length > 8 and at + length <= len(raw) and raw[at : at + 4] == b"OCHK":
                yield at, at + length - 4
        start += head + size


def sealed_metadata(raw: bytearray) -> bytearray:
    """Make the checksums of a file's metadata right again."""
    for start, stop in list(summed(bytes(raw))):
        raw[stop : stop + 4] = struct.pack("<I", lookup3(bytes(raw[start:stop])))
    return raw
