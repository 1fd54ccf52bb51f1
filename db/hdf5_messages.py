"""The parts of an HDF5 object's header, from their bytes: types, shapes, links, attributes; and the checksum."""

from __future__ import annotations

import struct
from collections.abc import Iterator

UNDEFINED = (1 << 64) - 1
"""The address of what does not exist."""

LONGEST_NAME = 1000
"""Bytes of the name of a link or an attribute."""


class StructureError(ValueError):
    """Metadata that our writer cannot have made; the message names the place."""


def checksum(data: bytes) -> int:
    """Compute HDF5's checksum of metadata: Bob Jenkins's lookup3 (hashlittle), which starts from 0."""
    n = len(data)
    a: int
    b: int
    c: int
    a = b = c = (0xDEADBEEF + n) & 0xFFFFFFFF
    whole = (n - 1) // 12 * 12 if n else 0
    words = iter(struct.unpack_from(f"<{whole // 4}I", data))
    for x, y, z in zip(words, words, words, strict=True):
        a, b, c = a + x, b + y, c + z
        a = (a - c & 0xFFFFFFFF) ^ (c << 4 & 0xFFFFFFFF | (c & 0xFFFFFFFF) >> 28)
        c += b
        b = (b - a & 0xFFFFFFFF) ^ (a << 6 & 0xFFFFFFFF | (a & 0xFFFFFFFF) >> 26)
        a += c
        c = (c - b & 0xFFFFFFFF) ^ (b << 8 & 0xFFFFFFFF | (b & 0xFFFFFFFF) >> 24)
        b += a
        a = (a - c & 0xFFFFFFFF) ^ (c << 16 & 0xFFFFFFFF | (c & 0xFFFFFFFF) >> 16)
        c += b
        b = (b - a & 0xFFFFFFFF) ^ (a << 19 & 0xFFFFFFFF | (a & 0xFFFFFFFF) >> 13)
        a += c
        c = (c - b & 0xFFFFFFFF) ^ (b << 4 & 0xFFFFFFFF | (b & 0xFFFFFFFF) >> 28)
        b += a
    if not n:
        return c
    x, y, z = struct.unpack("<3I", data[whole:].ljust(12, b"\0"))
    a, b, c = a + x & 0xFFFFFFFF, b + y & 0xFFFFFFFF, c + z & 0xFFFFFFFF
    for shift in (14, 11, 25, 16, 4, 14, 24):  # each step changes the first of three by the one before it
        c = (c ^ b) - (b << shift & 0xFFFFFFFF | b >> (32 - shift)) & 0xFFFFFFFF
        a, b, c = b, c, a
    return b


def split(data: bytes, width: int, where: str) -> Iterator[tuple[int, bytes]]:
    """Split the messages of a header, each after ``width`` bytes of its own: yield kinds and bodies."""
    at = 0
    while at + width <= len(data):
        kind, size, flags = data[at], int.from_bytes(data[at + 1 : at + 3], "little"), data[at + 3]
        at += width
        if at + size > len(data):
            raise StructureError(f"{where}: a message leaves the header")
        if kind and flags & 2:
            raise StructureError(f"{where}: a message is shared with another object")
        if kind:
            yield kind, data[at : at + size]
        at += size


def dense_places(info: bytes, width: int, where: str) -> tuple[int, int] | None:
    """Return the addresses of the heap and the tree of links or attributes that are many; None if there are none.

    The number of bytes that the greatest order of creation takes is ``width``.
    """
    at = 2 + (width if len(info) > 1 and info[1] & 1 else 0)
    if len(info) < at + 16 or info[0]:
        raise StructureError(f"{where}: its list is not of the version that was written")
    heap, tree = struct.unpack_from("<2Q", info, at)
    if heap == UNDEFINED:
        return None
    return heap, tree


def link(body: bytes, where: str) -> tuple[str, int]:
    """Return name and address of a link; `UNDEFINED` if it leads to a name, here or in another file."""
    if len(body) < 4 or body[0] != 1:
        raise StructureError(f"{where}: a link is not of the version that was written")
    flags, at, kind = body[1], 2, 0
    if flags & 8:
        kind, at = body[at], at + 1
    at += (8 if flags & 4 else 0) + (1 if flags & 16 else 0)
    width = 1 << (flags & 3)
    length = int.from_bytes(body[at : at + width], "little")
    at += width
    if not 0 < length <= LONGEST_NAME or at + length > len(body):
        raise StructureError(f"{where}: a link's name is too long")
    name = body[at : at + length].decode("utf-8", "replace")
    at += length
    if kind:
        return name, UNDEFINED
    if at + 8 > len(body):
        raise StructureError(f"{where}: a link is too short")
    return name, int.from_bytes(body[at : at + 8], "little")


def dataspace(body: bytes, where: str) -> tuple[int, ...] | None:
    """Return a shape; None if there is no element."""
    if len(body) < 4 or body[0] not in (1, 2):
        raise StructureError(f"{where}: its shape is not of the version that was written")
    rank, at = body[1], 8 if body[0] == 1 else 4
    if body[0] == 2 and body[3] == 2:
        return None
    if rank > 32 or len(body) < at + 8 * rank:
        raise StructureError(f"{where}: its shape is too short")
    return struct.unpack_from(f"<{rank}Q", body, at)


def datatype(body: bytes, where: str) -> str:
    """Return a type as numpy writes it: a whole number such as ``<i8``, ``S`` and a length, or nothing for others."""
    if len(body) < 8:
        raise StructureError(f"{where}: its type is too short")
    kind, size = body[0] & 15, int.from_bytes(body[4:8], "little")
    if kind == 3:
        return f"S{size}"
    if kind or size not in (1, 2, 4, 8) or len(body) < 12:
        return ""
    if struct.unpack_from("<2H", body, 8) != (0, 8 * size):
        return ""
    order = "" if size == 1 else ">" if body[1] & 1 else "<"
    return f"{order}{'i' if body[1] & 8 else 'u'}{size}"


def attribute(body: bytes, where: str) -> tuple[str, int | str | None]:
    """Return name and value of an attribute; None for what is neither a whole number nor a text of fixed length."""
    if len(body) < 9 or body[0] not in (1, 2, 3) or (body[0] > 1 and body[1]):
        raise StructureError(f"{where}: an attribute is not of the version that was written")
    sizes = struct.unpack_from("<3H", body, 2)
    at = 9 if body[0] == 3 else 8
    parts: list[bytes] = []
    for size in sizes:
        parts.append(body[at : at + size])
        at += (size + 7) // 8 * 8 if body[0] == 1 else size
    if at > len(body) or not 0 < sizes[0] <= LONGEST_NAME:
        raise StructureError(f"{where}: an attribute is too short")
    name = parts[0].rstrip(b"\0").decode("utf-8", "replace")
    kind, shape = (
        datatype(parts[1], f"{where} attribute {name!r}"),
        dataspace(parts[2], f"{where} attribute {name!r}"),
    )
    if shape != () or not kind:
        return name, None
    size = int(kind[1:]) if kind[0] == "S" else int(kind[-1])
    value = body[at : at + size]
    if len(value) != size:
        raise StructureError(f"{where}: attribute {name!r} is too short")
    if kind[0] == "S":
        return name, value.rstrip(b"\0").decode("utf-8", "replace")
    return name, int.from_bytes(value, "big" if kind[0] == ">" else "little", signed="i" in kind)
