"""Numbers as people write them: ``5M``, ``1e9``, ``1,000,000``, ``50 %``, ``2G``.

The readers return finite numbers, or None for other text. Each option checks its own range, for Python too.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal

MAX_INTEGER = 10**18
"""Largest magnitude of an integer: it fits 64 bits, and no count comes near it."""

COUNT_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
"""Units of counts."""

BYTE_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
"""Units of sizes in bytes."""

_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:[,_]\d{3})+|\d{1,99})?(?:\.\d{1,99}|\.)?(?:e[+-]?\d{1,4})?", re.ASCII | re.I)


def parse_decimal(text: str) -> Decimal | None:
    """Parse digits with an optional point, exponent and groups of three."""
    from decimal import Decimal

    trimmed = text.strip()
    if not _NUMBER.fullmatch(trimmed) or not re.match(r"[+-]?\.?\d", trimmed):
        return None
    return Decimal(re.sub("[,_]", "", trimmed))


def parse_integer(text: str) -> int | None:
    """Parse an integer of at most 18 digits with an optional unit of counts."""
    number = _parse_scaled(text.strip().upper(), COUNT_UNITS)
    return None if number is None or number != int(number) else int(number)


def parse_size(text: str) -> int | None:
    """Parse a number of bytes, such as ``512M`` or ``1.5GiB``; a fraction of a byte is dropped."""
    number = _parse_scaled(text.strip().upper().removesuffix("B").removesuffix("I"), BYTE_UNITS)
    return None if number is None or number < 1 else int(number)


def parse_real(text: str) -> float | None:
    """Parse a finite number; None for one so small that it would become 0."""
    number = parse_decimal(text)
    if number is None or not math.isfinite(float(number)) or (number and not float(number)):
        return None
    return float(number)


def _parse_scaled(text: str, units: dict[str, int]) -> Decimal | None:
    unit = text[-1:] if text[-1:] in units else ""
    number = parse_decimal(text.removesuffix(unit))
    if number is None or not -MAX_INTEGER <= number * units[unit] <= MAX_INTEGER:
        return None
    return number * units[unit]
