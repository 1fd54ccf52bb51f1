"""Lines of text files, and the tokens of NCBI's ASN.1 text."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from swsearch.alphabet import BLANK, ILLEGAL, PROTEIN, ByteArray
from swsearch.errors import SequenceError, format_value

MAX_COLUMNS = 10_000_000
"""Most positions of a profile: hundreds of times the longest protein."""


@dataclass(frozen=True)
class TextFile:
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
    def from_bytes(cls, source: str, data: bytes) -> TextFile:
        """Split bytes into lines: UTF-8, or else Latin-1; lines end in LF, CRLF or CR."""
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

    def parse_integer(self, word: str, what: str, at: int) -> int:
        """Return a whole number of at most nine digits."""
        digits = word.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 9:
            self.fail(f"{format_value(word)} is no {what}, expected a whole number", at)
        return int(word)

    def parse_float(self, word: str, what: str, at: int) -> float:
        """Return a finite number."""
        try:
            number = float(word) if "_" not in word else math.nan
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            self.fail(f"{format_value(word)} is no {what}, expected a number", at)
        return number

    def encode(self, letters: str, at: int, record: str | None = None) -> ByteArray:
        """Return the codes of residue letters, shape (n,), uint8, for a line."""
        data = np.frombuffer(letters.encode("utf-8", "surrogatepass"), dtype=np.uint8)
        codes: ByteArray = PROTEIN.encode_table[data]
        if (wrong := codes >= BLANK).any():
            byte = int(data[wrong.argmax()])
            problem = (
                PROTEIN.describe_illegal_byte(byte)
                if codes[wrong.argmax()] == ILLEGAL
                else "a blank among the letters"
            )
            self.fail(problem, at, record)
        return codes


_TOKEN = re.compile(
    r"""\s+|--[^\n]*|"(?:[^"]|"")*"|'[^']*'[HB]|::=|[{},]|[A-Za-z][\w-]*|[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"""
)

MAX_NESTED = 40
"""Braces within each other; PSSMs have about ten."""


@dataclass
class AsnNode:
    """Content of a pair of braces.

    Parameters
    ----------
    at : int
        Index of the line where it begins.
    entries : dict of str to AsnNode or str
        Entries that have a name; what stands between name and value, the kind of a choice, is left out.
    items : list of AsnNode or str
        Entries without a name: numbers as text, or nodes.
    """

    at: int
    entries: dict[str, AsnValue] = field(default_factory=dict)
    items: list[AsnValue] = field(default_factory=list)

    def find(self, *path: str) -> AsnValue | None:
        """Return the value at the end of a path of names; None where a name is missing."""
        value: AsnValue | None = self
        for name in path:
            value = value.entries.get(name) if isinstance(value, AsnNode) else None
        return value

    def node(self, *path: str) -> AsnNode | None:
        """Return the node at the end of a path of names."""
        value = self.find(*path)
        return value if isinstance(value, AsnNode) else None

    def text(self, *path: str) -> str:
        """Return a word or a number as text; empty where there is none."""
        value = self.find(*path)
        return value if isinstance(value, str) else ""


AsnValue = AsnNode | str
"""A node, or a word, number, string or run of hexadecimal digits, as it is written."""


def parse(text: TextFile) -> list[AsnNode]:
    """Return the values of a file that begin with ``NAME ::= {``."""
    nodes: list[AsnNode] = []
    open_: list[tuple[AsnNode, list[AsnValue], int]] = []
    words: list[AsnValue] = []
    whole, at, place = "\n".join(text.lines), 0, 0
    while place < len(whole):
        token = _TOKEN.match(whole, place)
        if token is None:
            if whole[place] in "\"'":
                text.ends_early("the end of a text in quotes")
            text.fail(f"{whole[place]!r} has no place in ASN.1 text, expected PssmWithParameters ::= {{ ... }}", at)
        word, place, begin = token[0], token.end(), at
        at += word.count("\n")
        if word[0].isspace() or word.startswith("--"):
            continue
        if word == "{":
            if len(open_) >= MAX_NESTED:
                text.fail(f"more than {MAX_NESTED} braces within each other, expected a PSSM", begin)
            open_.append((AsnNode(begin), words, begin))
            words = []
        elif word in ("}", ","):
            if not open_:
                text.fail(f"{word!r} outside of braces, expected PssmWithParameters ::= {{", begin)
            _enter(open_[-1][0], words)
            words = []
            if word == "}":
                node, words, _ = open_.pop()
                words.append(node)
                if not open_:
                    nodes.append(node)
                    words = []
        else:
            words.append(word)
    if open_ or words or not nodes:
        text.ends_early("'}'" if open_ else "PssmWithParameters ::= {")
    return nodes


def _enter(node: AsnNode, words: list[AsnValue]) -> None:
    """Put an entry where it belongs: by its first word where it has several."""
    if len(words) > 1 and isinstance(words[0], str):
        node.entries[words[0]] = words[-1]
        if len(words) > 2 and isinstance(words[1], str):
            node.entries.setdefault(f"{words[0]} {words[1]}", words[-1])
    elif words:
        node.items.append(words[-1])


def join_quoted(value: str) -> str:
    """Return what stands between quotes, whose lines are broken anywhere."""
    return value.strip('"').replace('""', '"').replace("\n", "")
