"""Facts and arrays of numbers as bytes and back: what a file of a checkpoint holds, and a frame of a transfer.

Bytes may come from anywhere. They hold numbers and JSON, and nothing that is run; what does not fit is refused, and
no more memory is taken than bytes have come.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.blocks import FloatArray, IntArray

NUMBERS = ("<i1", "<i2", "<i4", "<i8", "<u1", "<u2", "<u4", "<u8", "<f8")
"""Types of numbers in arrays."""

MAX_MAGNITUDE = 1 << 31
"""No score, length or variance comes near it; arithmetic with numbers below it stays finite."""

NumberArray = npt.NDArray[Any]

Facts = dict[str, Any]

Arrays = dict[str, NumberArray]
"""Numbers by name, each of shape (n,)."""

_SIZE = struct.Struct("<I")


class Unreadable(ValueError):  # noqa: N818  # the caller says what is wrong where
    """Bytes that are not what they should be, or of another search."""


def require(is_good: Any, what: str) -> None:
    """Raise `Unreadable` with what is wrong unless all is good."""
    if not is_good:
        raise Unreadable(what)


def narrowed(values: IntArray) -> npt.NDArray[np.integer]:
    """Return whole numbers, shape (n,), as the narrowest type that holds them all."""
    if not len(values):
        return values.astype(np.int8)
    kind = np.promote_types(np.min_scalar_type(values.min()), np.min_scalar_type(values.max()))
    return values.astype(kind) if kind.kind in "iu" else values


def joined(facts: Any, arrays: Mapping[str, NumberArray]) -> bytes:
    """Return what JSON can hold, and arrays, each of shape (n,), as bytes."""
    stored = {name: each.astype(each.dtype.newbyteorder("<"), copy=False) for name, each in arrays.items()}
    told = [[name, _type_of(values), len(values)] for name, values in stored.items()]
    text = json.dumps([facts, told], separators=(",", ":")).encode("ascii")
    return b"".join([_SIZE.pack(len(text)), text, *(values.tobytes() for values in stored.values())])


def _type_of(values: NumberArray) -> str:
    """Return an array's type by its name in `NUMBERS`; one byte has no order."""
    name = values.dtype.str.replace("|", "<").replace("<b1", "<u1")
    if name not in NUMBERS or values.ndim != 1:
        raise ValueError(f"got an array of {values.dtype} and shape {values.shape}")
    return name


def parted(data: bytes) -> tuple[Any, Arrays]:
    """Return the facts and the arrays that `joined` joined.

    Raises
    ------
    Unreadable
        If bytes hold something else.
    """
    try:
        (n,) = _SIZE.unpack_from(data)
        place = _SIZE.size + n
        facts, told = json.loads(data[_SIZE.size : place])
        arrays: Arrays = {}
        for name, kind, length in told:
            require(kind in NUMBERS and type(length) is int and length >= 0, "an array of no numbers")
            size = int(kind[2:]) * length
            require(place + size <= len(data), "less numbers than it tells of")
            arrays[str(name)] = np.frombuffer(data, dtype=kind, count=length, offset=place)
            place += size
        require(place == len(data), "more numbers than it tells of")
    except (ValueError, TypeError, RecursionError, struct.error) as error:
        raise Unreadable(f"other content than facts and numbers ({error})") from None
    return facts, arrays


class ArrayWriter:
    """Collects numbers by name, one part after the other."""

    def __init__(self) -> None:
        self._parts: dict[str, list[NumberArray]] = {}

    def add(self, **parts: NumberArray) -> None:
        """Add numbers, each of shape (n,), by name."""
        for name, part in parts.items():
            self._parts.setdefault(name, []).append(part)

    def arrays(self) -> Arrays:
        """Return all, whole numbers as narrow as they fit."""
        found = {name: np.concatenate(parts) for name, parts in self._parts.items()}
        return {name: narrowed(each) if each.dtype == np.int64 else each for name, each in found.items() if len(each)}


class ArrayReader:
    """Takes numbers out of arrays in the order in which an `ArrayWriter` got them, and checks them."""

    def __init__(self, arrays: Mapping[str, NumberArray]) -> None:
        self._arrays = arrays
        self._places = dict.fromkeys(arrays, 0)

    def _take(self, name: str, n: int, kinds: str) -> NumberArray:
        found, at = self._arrays.get(name, _NOTHING), self._places.get(name, 0)
        fits = found.ndim == 1 and (found.dtype.kind in kinds or found is _NOTHING)
        require(fits, f"{name} has type {found.dtype} and shape {found.shape}")
        if type(n) is not int:
            raise TypeError(f"{name}: {n!r} is no number of values")
        require(0 <= n <= len(found) - at, f"{name} has no {n} values more")
        self._places[name] = at + n
        return found[at : at + n]

    def whole(self, name: str, n: int, least: int = -(1 << 63), end: int = 1 << 63) -> IntArray:
        """Return the next whole numbers, shape (n,), int64, which are at least ``least`` and below ``end``."""
        values: IntArray = self._take(name, n, "iu").astype(np.int64)  # a copy: a part would keep the whole
        good = not n or least <= int(values.min()) <= int(values.max()) < end
        require(good, f"{name} has numbers beyond {max(abs(least), end)}")
        return values

    def codes(self, name: str, n: int) -> npt.NDArray[np.uint8]:
        """Return the next bytes, shape (n,), uint8."""
        values = self._take(name, n, "u")
        require(values.dtype == np.uint8 or not n, f"{name} has type {values.dtype}")
        return values.astype(np.uint8)

    def real(self, name: str, n: int, *, is_bounded: bool = False) -> FloatArray:
        """Return the next real numbers, shape (n,), float64; none is beyond `MAX_MAGNITUDE`, or NaN, if bounded."""
        values: FloatArray = self._take(name, n, "f").astype(np.float64)
        good = not is_bounded or bool((np.abs(values) < MAX_MAGNITUDE).all())
        require(good, f"{name} has numbers beyond {MAX_MAGNITUDE}")
        return values

    def offsets(self, name: str, n: int, pool: str) -> IntArray:
        """Return where the next n parts of an array begin, shape (n + 1,), int64, from the lengths of another."""
        left = self.left(pool)
        found: IntArray = np.concatenate([[0], np.cumsum(self.whole(name, n, 0, left + 1))]).astype(np.int64)
        require(int(found[-1]) <= left, f"{name} with a wrong total")
        return found

    def left(self, name: str) -> int:
        """Return how many numbers of an array were not taken."""
        return len(self._arrays.get(name, _NOTHING)) - self._places.get(name, 0)

    def check_empty(self) -> None:
        """Raise unless all was taken."""
        left = [name for name in self._arrays if self.left(name)]
        require(not left, f"{', '.join(left)[:80]} has more values than queries have")


_NOTHING = np.empty(0, dtype=np.int8)
