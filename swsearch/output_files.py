"""Files that appear under their names only when they are complete, one or several at once, and stdout."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, TextIO

from swsearch.errors import OutputError


@contextlib.contextmanager
def open_output(path: str | None) -> Iterator[TextIO]:
    """Open stdout, or a file that appears under its name only when it is complete; see `open_outputs`."""
    with open_outputs([(path, False)]) as (stream,):
        yield stream  # type: ignore[misc]  # it takes text


@contextlib.contextmanager
def open_outputs(targets: Sequence[tuple[str | None, bool]]) -> Iterator[list[IO[Any]]]:
    """Open files that appear under their names when all of them are complete, and not at all where something fails.

    Parameters
    ----------
    targets : sequence of (str or None, bool)
        Name (None and ``-`` are stdout), and whether bytes are written instead of text.

    Yields
    ------
    list of file objects
        In the same order.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    opened: list[_Target] = []
    files = ", ".join(str(path) for path, _ in targets if not is_stdout(path))
    try:
        for path, binary in targets:
            opened.append(_Stdout(binary) if is_stdout(path) else _file_target(str(path), binary))
        yield [each.stream for each in opened]
        for each in opened:
            each.complete()
        for each in opened:
            each.publish()
    except BrokenPipeError as error:
        if not files or not any(isinstance(each, _Stdout) for each in opened):
            raise
        raise OutputError(f"stdout: its reader ended before all was written; {files} not written either") from error
    except OSError as error:
        if not files:
            raise
        said = error.strerror or error
        raise OutputError(f"{files}: cannot be written: {said}; nothing was left there") from error
    finally:
        for each in opened:
            each.discard()


def is_stdout(path: str | None) -> bool:
    """Say whether an output goes to stdout."""
    return path is None or path == "-"


def check_output(target: Path) -> None:
    """Raise `OutputError` before any work if a file can surely not be written."""
    if target.is_dir():
        raise OutputError(f"{target}: is a directory, expected a file name")
    if not target.parent.is_dir():
        raise OutputError(f"{target}: the folder {target.parent} does not exist; make it first")
    if not os.access(target.parent, os.W_OK):
        raise OutputError(f"{target}: no permission to write in {target.parent}; choose another folder")


class _Target:
    """Something to write to. This one is written in place: a device or a pipe can have no temporary name."""

    def __init__(self, stream: IO[Any]) -> None:
        self.stream = stream

    def complete(self) -> None:
        """Take note that all was written."""
        self.stream.close()

    def publish(self) -> None:
        """Take note that all targets are complete."""

    def discard(self) -> None:
        """Remove what was not published; called last."""
        with contextlib.suppress(OSError):  # what could not be written cannot be flushed either
            self.stream.close()


class _Stdout(_Target):
    def __init__(self, binary: bool) -> None:
        # a record's header may hold any character; stdout's own encoding may not
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
        super().__init__(sys.stdout.buffer if binary else sys.stdout)

    def complete(self) -> None:
        self.stream.flush()

    def discard(self) -> None:
        pass  # others write there too


class _Temporary(_Target):
    """A file beside its place, under another name until it is published."""

    def __init__(self, target: Path, binary: bool) -> None:
        self._target = target
        try:
            handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        except OSError as error:
            raise OutputError(f"{target}: cannot be written: {error.strerror}; choose another --output") from error
        self._temporary = Path(name)
        super().__init__(_open(handle, binary))

    def publish(self) -> None:
        self._temporary.chmod(0o666 & ~umask())
        self._temporary.replace(self._target)

    def discard(self) -> None:
        super().discard()
        self._temporary.unlink(missing_ok=True)


def _file_target(path: str, binary: bool) -> _Target:
    target = Path(path)
    check_output(target)
    if not target.is_file() and target.exists():
        return _Target(_open(path, binary))
    return _Temporary(target, binary)


def _open(file: str | int, binary: bool) -> IO[Any]:
    if binary:
        return open(file, "wb")  # noqa: PTH123  # a descriptor has no path
    return open(file, "w", encoding="utf-8", errors="backslashreplace", newline="\n")  # noqa: PTH123


def umask() -> int:
    """Return the process's mask for new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
