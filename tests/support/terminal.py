"""Text that acts on a terminal: what a header may hold, and what no output may."""

from __future__ import annotations

import re

UNPRINTABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""All that is to be seen nowhere; of line ends it allows the one of each line."""

HOSTILE = "e\x1b[2Jsc\x9b31m\x7f\x08\u202ertl\u2066iso\u2069\u2028sep"
"""A hostile header: an erased screen, colours, a reversed direction, another line."""

NAME = HOSTILE + "\nswsearch: all is well\r"
"""A hostile file name: the hostile header, and line ends."""


def clean(text: str, lines: int | None = None) -> None:
    """Check that a text has nothing that acts on a terminal but line feeds, a number of them, and tabs."""
    text = text.replace("\t", " ")
    assert text, "nothing was printed"
    found = UNPRINTABLE.search(text)
    assert found is None, ascii(text[max(found.start() - 40, 0) : found.end() + 10])
    assert lines is None or text.count("\n") == lines, text
