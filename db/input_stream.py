"""Bytes of an input file or stdin, decompressed, hashed and counted."""

from __future__ import annotations

import bz2
import hashlib
import lzma
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any, cast

from swsearch.db.foreign_formats import FILE_HEAD_BYTES, foreign_bytes, foreign_database
from swsearch.errors import SequenceError

try:
    from isal.isal_zlib import crc32, decompressobj, error
except ImportError:
    from zlib import crc32, decompressobj, error

__all__ = ["crc32", "decompressobj", "error"]


RAW_BYTES = 1 << 16
"""Bytes of a file that are read at once."""

ZSTD_BYTES = 1 << 11
"""The same for zstd, whose decompressor takes no limit: 4 bytes can become 128 KiB, and these 64 MiB."""

OUTPUT_BYTES = 1 << 20
"""Bytes that a decompressor may return at once, where it takes a limit."""

XZ_MEMORY = 1 << 30
"""Memory that an xz file may ask for; `xz -9` asks for 65 MiB."""

# bzip2 shows a block's pi, or the end's root of pi; pzstd and others begin with a skippable frame
_COMPRESSED = re.compile(
    rb"(?P<gzip>\x1f\x8b)|(?P<xz>\xfd7zXZ\0)|(?P<bzip2>BZh[1-9](?:1A|\x17r))"
    rb"|(?P<zstd>\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18)"
)

_REASONS: dict[type[Exception], str] = {
    IsADirectoryError: "is a directory, expected a FASTA file; give the files in it",
    PermissionError: "permission denied; the file must be readable",
}


def compression_of(head: bytes) -> str:
    """Name the compression that a file's first bytes show, ``''`` if none."""
    match = _COMPRESSED.match(head)
    return str(match.lastgroup) if match else ""


def _decompressor(kind: str) -> tuple[Callable[[], Any], type[Exception]]:
    """Return a constructor of decompressors of one gzip member, xz stream or frame, and their type of error."""
    if kind == "gzip":
        return partial(decompressobj, wbits=31), error
    if kind == "xz":
        return partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, XZ_MEMORY), lzma.LZMAError
    if kind == "bzip2":
        return bz2.BZ2Decompressor, OSError
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj, zstandard.ZstdError


def _reason(path: str, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        if Path(f"{path}.h5").exists():
            return f"no such file; use {path}.h5"
        is_sequence = re.fullmatch("[A-Z]{12,}", path)
        return f"no such file; {'write the sequence into a FASTA file' if is_sequence else 'check the name'}"
    return _REASONS.get(type(error)) or f"cannot be read: {getattr(error, 'strerror', None) or error}"


def stream_identity(path: str) -> tuple[int, int]:
    """Return device and inode of a pipe or socket, which can be read only once; zeros for everything else."""
    try:
        status = os.fstat(0) if path == "-" else Path(path).stat()
    except (OSError, ValueError):
        return 0, 0
    once = stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode)
    return (status.st_dev, status.st_ino) if once else (0, 0)


BytePiece = bytes | memoryview


class ByteSource:
    """Bytes that come in pieces of any size and go out in buffers.

    No piece is empty, and each is used before the next is taken. ``name`` is that of messages.
    """

    def __init__(self, name: str, pieces: Iterator[BytePiece]) -> None:
        self.name = name
        self._pieces = pieces
        self._rest = memoryview(b"")

    def _take(self, size: int) -> Iterator[memoryview]:
        """Yield the next ``size`` bytes, fewer only at the end."""
        while size and (piece := self._rest or memoryview(next(self._pieces, b""))):
            part, self._rest = piece[:size], piece[size:]
            size -= len(part)
            yield part

    def read_into(self, view: memoryview) -> int:
        """Fill a buffer; return the number of bytes, less than it holds only at the end."""
        have = 0
        for part in self._take(len(view)):
            view[have : have + len(part)] = part
            have += len(part)
        return have

    def read(self, size: int) -> bytes:
        """Return the next ``size`` bytes, fewer only at the end."""
        return b"".join(map(bytes, self._take(size)))

    def peek(self, size: int) -> bytes:
        """Return what `read` returns next."""
        head = self.read(size)
        self._rest = memoryview(head + bytes(self._rest))
        return head


class Input(ByteSource, AbstractContextManager["Input"]):
    """An input, a file or ``-`` for stdin, to be read once from its beginning to its end.

    If ``is_fasta``, other formats are refused with the remedy. An error is a `SequenceError`: unreadable, changed
    while it is read, or damaged compression.
    """

    def __init__(self, source: str | os.PathLike[str], is_fasta: bool = True) -> None:
        self.path = os.fspath(source)
        super().__init__("<stdin>" if self.path == "-" else self.path, self._raw_pieces(FILE_HEAD_BYTES))
        self.n_bytes = 0
        """Bytes of the input that were read so far, before decompression."""
        self.total: int | None = None
        """Size of the file, None for a pipe."""
        self._hash = hashlib.sha256()
        self._ended = False
        self._begin = 0
        self._status: os.stat_result | None = None
        self._raw = self._open()
        try:
            self._note_state()
            self._detect_format(is_fasta)
        except BaseException:
            self.close()
            raise

    def _open(self) -> BufferedReader:
        if self.path == "-":
            if sys.stdin is None or sys.stdin.closed:
                raise SequenceError(self.name, "standard input is closed; give a file or pipe FASTA into it")
            if not hasattr(sys.stdin, "buffer"):  # such as that of a notebook
                raise SequenceError(self.name, "standard input gives text, expected bytes; give a file")
            return cast("BufferedReader", sys.stdin.buffer)
        if not self.path:
            raise SequenceError("''", "a file name is empty, expected the name of a FASTA file, or - for stdin")
        try:
            return Path(self.path).open("rb")
        except (OSError, ValueError) as error:
            is_missing = isinstance(error, (FileNotFoundError, IsADirectoryError))
            trouble = (is_missing and foreign_database(self.path)) or _reason(self.path, error)
            raise SequenceError(self.name, trouble) from error

    def _note_state(self) -> None:
        """Record the state of a regular file to detect changes; make other streams blocking."""
        with suppress(OSError, ValueError):  # no stream of the operating system
            status = os.fstat(self._raw.fileno())
            if stat.S_ISREG(status.st_mode):
                self._begin = self._raw.tell()  # of standard input others may have read a part
                self._status = status
                self.total = None if self.path == "-" else status.st_size
            else:
                os.set_blocking(self._raw.fileno(), True)

    def _check_unchanged(self) -> None:
        """Raise if a regular file is not as it was when it was opened."""
        before = self._status
        if before is None:
            return
        after = os.fstat(self._raw.fileno())
        expected = max(before.st_size - self._begin, 0)
        # files of size 0 that hold something are made as they are read, such as those in /proc
        whole = self.n_bytes == expected or before.st_size == 0
        if not whole or (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            problem = f"changed while it was read: {expected:,} bytes at first, {self.n_bytes:,} bytes read"
            raise SequenceError(self.name, f"{problem}; wait until the file is complete and start again")

    def _detect_format(self, is_fasta: bool) -> None:
        """Recognise the compression by the first bytes, and refuse other formats."""
        head = self.peek(FILE_HEAD_BYTES)
        self.kind = compression_of(head)
        trouble = foreign_bytes(head, is_fasta and self._status is not None and self.path != "-")
        if not is_fasta:
            trouble = "is not text" if trouble else ""
        elif not trouble and self.path != "-" and not self.kind and head.lstrip()[:1] != b">":
            trouble = foreign_database(self.path, head)
        self._pieces = self._raw_pieces(RAW_BYTES)
        if self.kind and not trouble:
            self._pieces, self._rest = self._decompress(bytes(self._rest)), memoryview(b"")
            head = self.peek(FILE_HEAD_BYTES)
            inner = compression_of(head)
            twice = f"is compressed twice, {inner} inside {self.kind}; decompress it once"
            trouble = twice if inner else foreign_bytes(head, is_file=True, compression=self.kind)
        if trouble:
            raise SequenceError(self.name, trouble)

    def _raw_pieces(self, size: int) -> Iterator[BytePiece]:
        """Yield bytes as they are in the file, up to ``size`` at a time; the end is asked for once."""
        view = memoryview(bytearray(size))
        while not self._ended:
            try:
                n = cast("int | None", self._raw.readinto1(view))
            except (OSError, ValueError) as error:
                raise SequenceError(self.name, _reason(self.path, error)) from error
            if n is None:
                problem = "got nothing from a stream that does not block, expected one that waits; give a file"
                raise SequenceError(self.name, problem)
            self._hash.update(view[:n])
            self.n_bytes += n
            self._ended = not n
            if n:
                yield view[:n]
            else:
                self._check_unchanged()

    def _decompress(self, data: BytePiece) -> Iterator[BytePiece]:
        """Yield the decompressed bytes of an input that begins with ``data``, one frame after the other."""
        make, error_kind = _decompressor(self.kind)
        size, *limit = (ZSTD_BYTES,) if self.kind == "zstd" else (RAW_BYTES, OUTPUT_BYTES)
        raw = self._raw_pieces(size)
        while data:
            frame = make()
            while not frame.eof:
                if not data and getattr(frame, "needs_input", True) and not (data := next(raw, b"")):
                    problem = f"truncated {self.kind} data: the file ends early; fetch or compress it again"
                    raise SequenceError(self.name, problem)
                try:
                    text: bytes = frame.decompress(data, *limit)
                except error_kind as error:
                    problem = f"corrupt {self.kind} data ({error}); fetch or compress the file again"
                    raise SequenceError(self.name, problem) from error
                data = getattr(frame, "unconsumed_tail", b"")  # gzip's
                if text:
                    yield text
            data = self._next_frame(frame.unused_data, raw)

    def _next_frame(self, rest: bytes, raw: Iterator[BytePiece]) -> bytes:
        """Return the beginning of the next frame (gzip member, xz stream...); b'' at the end."""
        begin, n_zeros = b"", 0
        for more in chain([rest], raw):
            begin += more
            if self.kind in ("gzip", "xz"):  # both allow zeros as padding
                n_zeros += len(begin) - len(begin.lstrip(b"\0"))
                begin = begin.lstrip(b"\0")
            if len(begin) >= 6:
                break
        problem = ""
        if self.kind == "xz" and n_zeros % 4:  # xz pads by four zeros at a time
            problem = f"truncated xz data: {n_zeros} zeros after a stream"
        elif begin and compression_of(begin) != self.kind:
            problem = f"other bytes follow the {self.kind} data"
        if problem:
            raise SequenceError(self.name, f"{problem}; fetch or compress the file again")
        return begin

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes read so far, before decompression."""
        return self._hash.hexdigest()

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self.path != "-":
            self._raw.close()

    def __exit__(self, *error: object) -> None:
        self.close()
