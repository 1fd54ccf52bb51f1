"""Numbers of the command line as people write them: ``5M``, ``1e9``, ``1,000,000``, ``50%``.

What is read here is a number and finite; which numbers make sense is checked where they are used, for Python too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from swsearch.cli.parameters import Refused

if TYPE_CHECKING:
    from decimal import Decimal

_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:[,_]\d{3})+|\d{1,99})?(?:\.\d{1,99}|\.)?(?:e[+-]?\d{1,4})?", re.ASCII | re.I)

THOUSANDS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
"""Units of what is counted, in either case; those of bytes are `swsearch.cli.console.SIZE_UNITS`."""

_DEVICES = re.compile(r"\s*(?:0|[1-9]\d{0,8})\s*(?:,\s*(?:0|[1-9]\d{0,8})\s*){0,63}", re.ASCII)
"""Numbers of devices, without signs and groups of digits."""

GREATEST = 10**18
"""Largest magnitude of a whole number: it fits 64 bits, and nothing that is counted comes near it."""


def exact(text: str) -> Decimal | None:
    """Read digits with or without a point, an exponent and groups of three; None if it is no such number."""
    from decimal import Decimal

    trimmed = text.strip()
    if not _NUMBER.fullmatch(trimmed) or not re.match(r"[+-]?\.?\d", trimmed):
        return None
    return Decimal(re.sub("[,_]", "", trimmed))


def whole(expected: str = "", least: int = -GREATEST, most: int = GREATEST) -> Callable[[str], int]:
    """Make the parser of an option that counts something.

    Parameters
    ----------
    expected : str, optional
        For the message.
    least, most : int, optional
        Range.
    """

    def parse(given: str) -> int:
        if not isinstance(given, str):  # a default
            return given
        text = given.strip()
        unit = THOUSANDS.get(text[-1:].lower(), 1)
        value = exact(text[:-1] if unit > 1 else text)
        if value is None or not least <= value * unit <= most or value * unit != int(value * unit):
            raise Refused(expected or "a whole number of at most 18 digits, such as 500, 5k or 1e6")
        return int(value * unit)

    return parse


def real(expected: str = "a number, such as 10, 0.001 or 1e-5") -> Callable[[str], float]:
    """Make the parser of an option that takes any finite number."""

    def parse(given: str) -> float:
        if not isinstance(given, str):
            return given
        value = exact(given)
        if value is None or not math.isfinite(float(value)) or (value and not float(value)):
            raise Refused(expected)
        return float(value)

    return parse


def percentage(given: str) -> float:
    """Read a percentage, with or without its sign."""
    expected = "a percentage, 0 to 100"
    return real(expected)(given.strip().removesuffix("%") if isinstance(given, str) else given)


def devices(given: str) -> int | tuple[int, ...] | str:
    """Read which GPUs: a number, several with commas between them, or ``all``."""
    if not isinstance(given, str):
        return given
    if given.strip().lower() == "all":
        return "all"
    if not _DEVICES.fullmatch(given):
        from swsearch.engines.devices import devices_there

        raise Refused("the number of a GPU, several with commas between them, such as 0,1, or all", devices_there())
    numbers = tuple(int(each) for each in given.split(","))
    return numbers[0] if len(numbers) == 1 else numbers
