"""Bytes of an input: a file or standard input, plain or compressed, hashed and counted as they pass."""

from __future__ import annotations

import bz2
import hashlib
import lzma
import os
import selectors
import stat
import sys
import time
import zlib
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from swsearch.db.foreign import FILE_HEAD_BYTES, foreign_bytes, foreign_database
from swsearch.errors import SequenceError

RAW_BYTES = 1 << 16
"""Bytes of a compressed file that are read at once."""

OUTPUT_BYTES = 1 << 20
"""Bytes that a decompressor may return at once, where it takes a limit."""

ZSTD_BYTES = 1 << 11
"""Bytes given to zstd at once: its decompressor takes no limit, and 4 bytes can become 128 KiB, so that
this limits what a hostile file unpacks to in one step to 64 MiB."""

XZ_MEMORY = 1 << 30
"""Memory that an xz file may ask for; `xz -9` asks for 65 MiB."""

ASK_AGAIN = 0.05
"""Seconds after which a stream without data is asked again that cannot be waited for."""


class _Gzip:
    """gzip through zlib, with the interface of `bz2.BZ2Decompressor`."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)

    def decompress(self, data: bytes, limit: int) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, limit)

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data


class _Zstd:
    """zstd with the interface of `bz2.BZ2Decompressor`."""

    needs_input = True

    def __init__(self) -> None:
        import zstandard

        self.error: type[Exception] = zstandard.ZstdError
        self._zstd = zstandard.ZstdDecompressor().decompressobj()

    def decompress(self, data: bytes, limit: int) -> bytes:
        return bytes(self._zstd.decompress(data)) if data else b""

    @property
    def eof(self) -> bool:
        return bool(self._zstd.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._zstd.unused_data)


def _kind(head: bytes) -> str:
    """Name the compression that a file's first bytes show, '' if none."""
    if head[:2] == b"\x1f\x8b":
        return "gzip"
    if head[:6] == b"\xfd7zXZ\0":
        return "xz"
    if head[:3] == b"BZh" and head[4:6] in (b"1A", b"\x17r"):  # pi, or its root for an empty file
        return "bzip2"
    if head[:4] == b"\x28\xb5\x2f\xfd" or (head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5):
        return "zstd"  # the second is a skippable frame: pzstd and others begin with one
    return ""


def plain_size(path: str) -> int:
    """Return the size of a regular file that is not compressed; 0 for everything else, missing files included."""
    try:
        if path == "-" or not Path(path).is_file():  # to look into a pipe would take something out of it
            return 0
        with Path(path).open("rb") as file:
            return 0 if _kind(file.read(32)) else file.seek(0, os.SEEK_END)
    except (OSError, ValueError):
        return 0


def _decoder(kind: str) -> Any:
    if kind == "gzip":
        return _Gzip()
    if kind == "xz":
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)
    if kind == "bzip2":
        return bz2.BZ2Decompressor()
    return _Zstd()


def stream_of(path: str) -> tuple[int, int]:
    """Return device and inode of a pipe or socket, which can be read only once; zeros for everything else."""
    try:
        status = os.fstat(0) if path == "-" else Path(path).stat()
    except (OSError, ValueError):
        return 0, 0
    once = stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode)
    return (status.st_dev, status.st_ino) if once else (0, 0)


class Input:
    """One input, opened for reading once from its beginning to its end.

    Parameters
    ----------
    source : str or path
        A file name, or ``-`` for standard input.

    Raises
    ------
    SequenceError
        If the input cannot be opened or read, changes while it is read, or is compressed and damaged.
    """

    def __init__(self, source: str | os.PathLike[str]) -> None:
        self.path = os.fspath(source)
        self.name = "<stdin>" if self.path == "-" else self.path
        self.n_bytes = 0
        """Bytes of the input that were read so far, before decompression."""
        self.total: int | None = None
        """Size of the file, None for a pipe."""
        self._hash = hashlib.sha256()
        self._ended = False
        self._begin = 0
        self._status: os.stat_result | None = None
        self._raw = self._open()
        self._window = memoryview(b"")
        self._text = memoryview(b"")
        self._is_begun = False
        try:
            self._note_state()
            head = self._head()
            self.kind = _kind(head)
            if trouble := self._foreign(head):
                raise SequenceError(self.name, trouble)
            self._decode: Any = _decoder(self.kind) if self.kind else None
            zstd_error = getattr(self._decode, "error", OSError)
            self._errors = (OSError, EOFError, zlib.error, lzma.LZMAError, zstd_error)
        except BaseException:
            self.close()
            raise

    def _open(self) -> BinaryIO:
        if self.path == "-":
            if sys.stdin is None or sys.stdin.closed:
                raise SequenceError(self.name, "standard input is closed; give a file or pipe FASTA into it")
            if not hasattr(sys.stdin, "buffer"):  # such as that of a notebook
                raise SequenceError(self.name, "standard input gives text, expected bytes; give a file")
            return sys.stdin.buffer
        if not self.path:
            raise SequenceError("''", "a file name is empty, expected the name of a FASTA file, or - for stdin")
        try:
            return Path(self.path).open("rb", buffering=0)
        except (FileNotFoundError, IsADirectoryError) as error:
            raise SequenceError(self.name, foreign_database(self.path) or self._reason(error)) from error
        except (OSError, ValueError) as error:
            raise SequenceError(self.name, self._reason(error)) from error

    def _note_state(self) -> None:
        """Remember how a regular file is, to see at its end whether it changed while it was read."""
        try:
            status = os.fstat(self._raw.fileno())
            if not stat.S_ISREG(status.st_mode):
                return
            self._begin = self._raw.tell()  # of standard input others may have read a part
        except (OSError, ValueError):  # no stream of the operating system
            return
        self._status = status
        if self.path != "-":
            self.total = status.st_size

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
            raise SequenceError(
                self.name,
                f"changed while it was read: {expected:,} bytes at first, {self.n_bytes:,} bytes read, "
                f"{after.st_size - self._begin:,} bytes now; wait until the file is complete and start again",
            )

    def _foreign(self, head: bytes) -> str:
        """Recognise what people give by mistake; say what to do instead, or ''."""
        trouble = foreign_bytes(head, self._status is not None and self.path != "-")
        if not trouble and self.path != "-" and not self.kind and head.lstrip()[:1] != b">":
            trouble = foreign_database(self.path, head)
        return trouble

    @staticmethod
    def _reason(error: OSError | ValueError) -> str:
        what = getattr(error, "strerror", None) or str(error)
        if isinstance(error, FileNotFoundError):
            return "no such file; check the name"
        if isinstance(error, IsADirectoryError):
            return "is a directory, expected a FASTA file; give the files in it"
        if isinstance(error, PermissionError):
            return "permission denied; the file must be readable"
        return f"cannot be read: {what}"

    def _fill(self, view: memoryview) -> int:
        """Read raw bytes into a view that is not empty; 0 at the end, and ever after."""
        if self._ended:
            return 0
        try:
            while (n := self._try_to_read(view)) is None:
                self._wait()
        except (OSError, ValueError) as error:
            raise SequenceError(self.name, self._reason(error)) from error
        self._hash.update(view[:n])
        self.n_bytes += n
        if not n:
            self._ended = True
            self._check_unchanged()
        return n

    def _try_to_read(self, view: memoryview) -> int | None:
        """Read once; None where a stream that does not block has nothing yet."""
        try:
            n: int | None = self._raw.readinto(view)  # type: ignore[attr-defined]
        except BlockingIOError:
            return None
        return n

    def _wait(self) -> None:
        """Sleep until a stream that does not block has more, or has ended."""
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._raw.fileno(), selectors.EVENT_READ)
                selector.select()
        except (OSError, ValueError):  # nothing that can be waited for
            time.sleep(ASK_AGAIN)

    def _head(self) -> bytes:
        """Look at the first bytes without consuming them; a pipe may bring them one by one."""
        buffer = bytearray(FILE_HEAD_BYTES)
        have = 0
        while have < len(buffer) and (n := self._fill(memoryview(buffer)[have:])):
            have += n
        self._window = memoryview(bytes(buffer[:have]))
        return bytes(self._window)

    def _piece(self) -> bytes:
        """Return the next compressed bytes, b'' at the end."""
        if not self._window:
            buffer = bytearray(RAW_BYTES)
            self._window = memoryview(buffer)[: self._fill(memoryview(buffer))]
        size = ZSTD_BYTES if self.kind == "zstd" else RAW_BYTES
        piece, self._window = bytes(self._window[:size]), self._window[size:]
        return piece

    def _next_frame(self) -> bool:
        """Start on what follows a finished frame (gzip member, xz stream...); False at the end."""
        rest, padding = self._decode.unused_data, 0
        while True:
            if self.kind in ("gzip", "xz"):  # both allow zeros as padding
                padding += len(rest)
                rest = rest.lstrip(b"\0")
                padding -= len(rest)
            if len(rest) >= 6:
                break
            more = self._piece()
            if not more:
                break
            rest += more
        if self.kind == "xz" and padding % 4:  # xz pads by four zeros at a time
            raise SequenceError(
                self.name, f"truncated xz data: {padding} zeros after a stream; fetch or compress the file again"
            )
        if not rest:
            return False
        if _kind(rest) != self.kind:
            problem = f"other bytes follow the {self.kind} data; fetch or compress the file again"
            raise SequenceError(self.name, problem)
        self._window = memoryview(rest + bytes(self._window))
        self._decode = _decoder(self.kind)
        return True

    def _unpacked(self) -> bytes:
        """Return the next decompressed bytes, b'' at the end; what they are is looked at first."""
        text = self._decompress()
        if not self._is_begun:
            self._is_begun = True
            while len(text) < FILE_HEAD_BYTES and (more := self._decompress()):
                text += more
            if inner := _kind(text):
                problem = f"is compressed twice, {inner} inside {self.kind}; decompress it once"
                raise SequenceError(self.name, problem)
            if trouble := foreign_bytes(text[:FILE_HEAD_BYTES], is_file=True, compression=self.kind):
                raise SequenceError(self.name, trouble)
        return text

    def _decompress(self) -> bytes:
        """Return the next decompressed bytes, b'' at the end."""
        while True:
            if self._decode.eof and not self._next_frame():
                return b""
            pending = not self._decode.needs_input
            piece = b"" if pending else self._piece()
            try:
                text: bytes = self._decode.decompress(piece, OUTPUT_BYTES)
            except self._errors as error:
                problem = f"corrupt {self.kind} data ({error}); fetch or compress the file again"
                raise SequenceError(self.name, problem) from error
            if text:
                return text
            if not piece and not pending and not self._decode.eof:
                problem = f"truncated {self.kind} data: the file ends early; fetch or compress it again"
                raise SequenceError(self.name, problem)

    def read_into(self, view: memoryview) -> int:
        """Fill a buffer with decompressed bytes.

        Parameters
        ----------
        view : memoryview
            Where the bytes go.

        Returns
        -------
        int
            Number of bytes; less than the buffer holds only at the end of the input.
        """
        have = 0
        while have < len(view):
            if self._decode is not None:
                self._text = self._text or memoryview(self._unpacked())
                n = min(len(self._text), len(view) - have)
                view[have : have + n] = self._text[:n]
                self._text = self._text[n:]
            elif self._window:
                n = min(len(self._window), len(view) - have)
                view[have : have + n] = self._window[:n]
                self._window = self._window[n:]
            else:
                n = self._fill(view[have:])
            if not n:
                break
            have += n
        return have

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes read so far, before decompression."""
        return self._hash.hexdigest()

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self.path != "-":
            self._raw.close()

    def __enter__(self) -> Input:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
