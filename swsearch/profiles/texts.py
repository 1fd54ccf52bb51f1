"""What readers of profiles and alignments share: lines of a text, numbers in them, errors that name the line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from swsearch.alphabet import BLANK, ILLEGAL, PROTEIN, ByteArray
from swsearch.errors import SequenceError, shown

MOST_COLUMNS = 10_000_000
"""Most positions of a profile: hundreds of times the longest protein."""


@dataclass(frozen=True)
class Text:
    """The lines of a file.

    Parameters
    ----------
    source : str
        The file, as messages name it.
    lines : list of str
        Without line ends.
    """

    source: str
    lines: list[str]

    @classmethod
    def of(cls, source: str, data: bytes) -> Text:
        """Take bytes apart: UTF-8, or Latin-1 where they are not; lines end in LF, CRLF or CR."""
        data = data.removeprefix(b"\xef\xbb\xbf")
        if b"\0" in data:
            line = data.count(b"\n", 0, data.index(b"\0")) + 1
            raise SequenceError(source, "a NUL byte, expected text; is this the file that was meant?", None, line)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = data.decode("latin-1")
        return cls(source, text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))

    def fail(self, problem: str, at: int | None = None, record: str | None = None) -> NoReturn:
        """Raise for a line, by its index; for all of the text where there is none."""
        raise SequenceError(self.source, problem, record or None, None if at is None else at + 1)

    def ends_early(self, expected: str) -> NoReturn:
        """Raise since the text is at its end where something should stand."""
        at = max((k for k, line in enumerate(self.lines) if line.strip()), default=0)
        self.fail(f"the file ends here, expected {expected}; it may be truncated, fetch or make it again", at)

    def whole(self, word: str, what: str, at: int) -> int:
        """Return a whole number of at most nine digits."""
        digits = word.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 9:
            self.fail(f"{shown(word)} is no {what}, expected a whole number", at)
        return int(word)

    def real(self, word: str, what: str, at: int) -> float:
        """Return a finite number."""
        try:
            number = float(word) if "_" not in word else math.nan
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            self.fail(f"{shown(word)} is no {what}, expected a number", at)
        return number

    def encoded(self, letters: str, at: int, record: str | None = None) -> ByteArray:
        """Return the codes of residue letters, shape (n,), uint8, for a line."""
        data = np.frombuffer(letters.encode("utf-8", "surrogatepass"), dtype=np.uint8)
        codes: ByteArray = PROTEIN.encode_table[data]
        if (wrong := codes >= BLANK).any():
            byte = int(data[wrong.argmax()])
            problem = PROTEIN.complaint(byte) if codes[wrong.argmax()] == ILLEGAL else "a blank among the letters"
            self.fail(problem, at, record)
        return codes
