"""Lists of identifiers: a file with one a line, as people keep them."""

from __future__ import annotations

import os
from pathlib import Path

from swsearch.db.foreign import foreign_bytes
from swsearch.db.inputs import Input
from swsearch.errors import InputError, SequenceError

LIST_BYTES = 1 << 30
"""Most bytes of a list, unpacked: a hundred million accessions."""


def read_list(path: str | Path, option: str, what: str = "identifiers") -> list[str]:
    """Return what stands in a list, each once, in its order.

    Parameters
    ----------
    path : str or path
        A file in UTF-8, or else in Latin-1 as FASTA headers are; plain or compressed with gzip, bzip2, xz or zstd;
        ``-`` is standard input. Lines end in LF, CRLF or CR. Blank lines, blanks around an identifier and lines that
        begin with ``#`` are skipped.
    option, what : str
        Named in messages: the option, and what is to stand there.

    Raises
    ------
    InputError
        If it cannot be read, is no text, or there is nothing in it.
    """
    name = os.fspath(path)
    source = f"{option}: {'<stdin>' if name == '-' else name}"
    raw = _read(name, source, what)
    if b"\0" in raw:
        raise InputError(f"{source}: got NUL bytes, expected {what} as text, one per line")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    found = dict.fromkeys(map(str.strip, text.split("\n")))
    found.pop("", None)
    names = [each for each in found if each[0] != "#"] if "#" in text else list(found)
    if not names:
        raise InputError(f"{source}: no {what} found, expected one per line")
    return names


class _List(Input):
    """A list as an input: what is no FASTA may be one."""

    def _foreign(self, head: bytes) -> str:
        return "is not text" if foreign_bytes(head, is_file=False) else ""


def _read(name: str, source: str, what: str) -> bytes:
    """Return all bytes of a list, unpacked."""
    parts: list[bytes] = []
    total = 0
    try:
        with _List(name) as opened:
            buffer = bytearray(1 << 20)
            while n := opened.read_into(memoryview(buffer)):
                parts.append(bytes(buffer[:n]))
                total += n
                if total > LIST_BYTES:
                    raise InputError(f"{source}: got more than {LIST_BYTES:,} bytes; split the list into several")
    except SequenceError as error:
        system = error.__cause__
        reason = system.strerror if isinstance(system, OSError) else ""
        raise InputError(
            f"{source}: cannot be read: {reason or error.problem}; expected {what}, one per line"
        ) from error
    return b"".join(parts)
