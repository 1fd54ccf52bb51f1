"""Lists of identifiers: a file with one a line, as people keep them."""

from __future__ import annotations

import os
from pathlib import Path

from swsearch.db.input_stream import Input
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
    try:
        with Input(name, is_fasta=False) as opened:
            raw = opened.read(LIST_BYTES + 1)
    except SequenceError as error:
        reason = getattr(error.__cause__, "strerror", "") or error.problem
        raise InputError(f"{source}: cannot be read: {reason}; expected {what}, one per line") from error
    if len(raw) > LIST_BYTES:
        raise InputError(f"{source}: got more than {LIST_BYTES:,} bytes; split the list into several")
    if b"\0" in raw:
        raise InputError(f"{source}: got NUL bytes, expected {what} as text, one per line")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    found = dict.fromkeys(map(str.strip, text.replace("\r", "\n").split("\n")))
    found.pop("", None)
    names = [each for each in found if each[0] != "#"] if "#" in text else list(found)
    if not names:
        raise InputError(f"{source}: no {what} found, expected one per line")
    return names
