"""Output files that appear only when complete, and stdout."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import re
import stat
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any, TextIO

from swsearch.errors import OptionError, OutputError, SwsearchWarning

LOCK_SECONDS = 600.0
"""Seconds to wait for another command that changes the same file."""

NOTICE_SECONDS = 2.0
"""Seconds after which the user is told of the wait."""


@contextlib.contextmanager
def open_output(path: str | None) -> Iterator[TextIO]:
    """Open stdout, or a file that appears under its name only when it is complete; see `open_outputs`."""
    with open_outputs([(path, False)]) as (stream,):
        yield stream  # type: ignore[misc]  # it takes text


@contextlib.contextmanager
def open_outputs(targets: Sequence[tuple[str | None, bool]], sweep: bool = True) -> Iterator[list[IO[Any]]]:
    """Open files that appear under their names when all of them are complete, and not at all where something fails.

    Parameters
    ----------
    targets : sequence of (str or None, bool)
        Name (None and ``-`` are stdout), and whether bytes are written instead of text.
    sweep : bool, optional
        Whether to look for what killed runs left beside them, which takes a look at each file that is there.
    """
    opened: list[_Target] = []
    files = ", ".join(str(path) for path, _ in targets if not is_stdout(path))
    try:
        for path, binary in targets:
            opened.append(_Stdout(binary) if is_stdout(path) else _file_target(str(path), binary, sweep))
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
        reason = error.strerror or error
        raise OutputError(f"{files}: cannot be written: {reason}; nothing was left there") from error
    finally:
        for each in opened:
            each.discard()


def is_stdout(path: str | None) -> bool:
    """Return whether an output goes to stdout."""
    return path is None or path == "-"


def canonical_path(path: str | None) -> str:
    """Return where an output goes, the same for all names of a file: ``stdout``, or an absolute path."""
    return "stdout" if is_stdout(path) else str(Path(str(path)).resolve())


def check_output(target: Path) -> None:
    """Raise `OutputError` before any work if a file can surely not be written."""
    if target.is_dir():
        raise OutputError(f"{target}: is a directory, expected a file name")
    if not target.parent.is_dir():
        raise OutputError(f"{target}: the folder {target.parent} does not exist; make it first")
    is_device = target.exists() and not target.is_file()
    if not is_device and not os.access(target.parent, os.W_OK):
        raise OutputError(f"{target}: no permission to write in {target.parent}; choose another folder")


def check_not_an_input(outputs: Iterable[str | None], inputs: Iterable[str | None]) -> None:
    """Raise if an output would take the place of a file that is read.

    Parameters
    ----------
    outputs : iterable of str or None
        Where results go; None is stdout.
    inputs : iterable of str or None
        What is read; what is no regular file, such as a pipe or letters that were given as they are, is left alone.
    """
    written = [each for each in outputs if each is not None]
    for name in filter(None, inputs):
        for each in written:
            if is_same_file(each, name) and Path(name).is_file():
                raise OutputError(f"{each}: is one of the inputs; choose another name for the output")


def is_same_file(first: str | Path, second: str | Path) -> bool:
    """Return whether two names are the same file; names of missing files are not."""
    try:
        return Path(first).samefile(second)
    except (OSError, ValueError):
        return False


class _Target:
    """Something to write to. This one is written in place: a device or a pipe can have no temporary name."""

    def __init__(self, stream: IO[Any]) -> None:
        self.stream = stream

    def complete(self) -> None:
        """Mark the output as complete."""
        self.stream.close()

    def publish(self) -> None:
        """Mark all targets as complete."""

    def discard(self) -> None:
        """Remove unpublished files; called last."""
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

    def __init__(self, target: Path, binary: bool, sweep: bool) -> None:
        self._target = target
        temporary = None
        try:
            self._temporary = temporary = TemporaryFile(target, sweep)
            super().__init__(_open(temporary.descriptor, binary))
        except BaseException as error:
            if temporary is not None:
                temporary.discard()
            if not isinstance(error, OSError):
                raise
            raise OutputError(f"{target}: cannot be written: {error.strerror}; choose another --output") from error

    def publish(self) -> None:
        self._temporary.publish(self._target)

    def discard(self) -> None:
        super().discard()
        self._temporary.discard()


def _file_target(path: str, binary: bool, sweep: bool) -> _Target:
    target = Path(path)
    check_output(target)
    if not target.is_file() and target.exists():
        return _Target(_open(target, binary))
    return _Temporary(target, binary, sweep)


def _open(file: Path | int, binary: bool) -> IO[Any]:
    """Open a file for writing; one that is given by its descriptor stays open when the stream is closed."""
    raw: IO[bytes] = open(file, "wb", closefd=isinstance(file, Path))  # noqa: SIM115
    return raw if binary else io.TextIOWrapper(raw, "utf-8", "backslashreplace", newline="\n")


class TemporaryFile:
    """An empty file beside the place where it is to appear, under a hidden name, kept while this process lives.

    The name says which computer made it, and the file is locked: so a later run beside it knows that nobody writes it
    any more, when a process was killed, and removes it. Its permissions are those that the process's umask leaves.

    Parameters
    ----------
    target : path
        The place; its folder must be there.
    sweep : bool, optional
        Whether to remove what killed runs left in the folder.

    Raises
    ------
    OSError
        If it cannot be made.
    """

    def __init__(self, target: Path, sweep: bool = True) -> None:
        if sweep:
            remove_stale_files(target.parent)
        self.descriptor = -1
        """File descriptor, open for reading and writing; its lock lasts as long as it is open."""
        while self.descriptor < 0:
            self.path = target.with_name(_hidden_name(target.name))
            _unfinished.add(self.path)  # before it is there, for a signal may come at any moment
            self.descriptor = _create_locked(self.path)
            if self.descriptor < 0:
                _unfinished.discard(self.path)
        for watcher in temporary_file_listeners:
            watcher(self.path)

    def publish(self, target: Path) -> None:
        """Rename the file to its target, replacing any file of that name."""
        self.path.replace(target)
        _unfinished.discard(self.path)
        self._close()

    def discard(self) -> None:
        """Remove it, if it was not published."""
        if self.descriptor >= 0:
            with contextlib.suppress(FileNotFoundError):
                self.path.unlink()
            _unfinished.discard(self.path)
            self._close()

    def _close(self) -> None:
        os.close(self.descriptor)
        self.descriptor = -1


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to disk."""
    with contextlib.suppress(OSError):  # some file systems have no such thing, and some folders cannot be read
        number = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(number)
        finally:
            os.close(number)


@contextlib.contextmanager
def lock_for_change(target: Path, is_needed: bool = True) -> Iterator[bool]:
    """Serialise changes of a file by commands, with a lock on a hidden file beside it.

    The file itself stays free to be locked by its users, e.g. ``flock db.h5 swsearch db append db.h5 new.fasta``.

    Parameters
    ----------
    is_needed : bool, optional
        Whether to fail if other commands hold the lock for `LOCK_SECONDS`; otherwise the work goes on without it.

    Yields
    ------
    bool
        Whether this has the lock; some file systems have none.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    lock = _ChangeLock(target.with_name(f".{_shorten_name(target.name)}{_LOCK}"))
    _locks.add(lock)  # before its file is there, for a signal may come at any moment
    try:
        yield lock.wait(target, is_needed)
    finally:
        lock.release()


class _ChangeLock:
    """A lock file by its path, and its descriptor while it is open."""

    def __init__(self, path: Path) -> None:
        self._path, self._descriptor = path, -1

    def wait(self, target: Path, is_needed: bool) -> bool:
        """Lock the file, made if missing; return False if it cannot be had and is not needed."""
        started, is_told = time.monotonic(), False
        flags = os.O_CREAT | os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        while True:
            self._descriptor = os.open(self._path, flags, 0o666)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(self._descriptor, self._path):  # not removed by the command that held it before
                    return True
            except BlockingIOError:
                pass
            except OSError:  # a file system without locks
                self._path.unlink(missing_ok=True)
                return False
            self._close()
            waited = time.monotonic() - started
            if waited >= LOCK_SECONDS and not is_needed:
                return False
            if waited >= LOCK_SECONDS:
                raise OutputError(
                    f"{target}: other commands have been changing it for {LOCK_SECONDS:,.0f} s; run this again when "
                    "they have ended"
                )
            if waited >= NOTICE_SECONDS and not is_told:
                is_told = True
                warnings.warn(
                    f"{target}: another command is changing it; waiting up to {LOCK_SECONDS:,.0f} s",
                    SwsearchWarning,
                    stacklevel=4,
                )
            time.sleep(0.02)

    def release(self) -> None:
        """Remove the file if no other command has it locked; may be called in any state, and again."""
        self._close()
        with contextlib.suppress(OSError):
            _remove_if_unlocked(self._path)
        _locks.discard(self)

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


_locks: set[_ChangeLock] = set()
"""Locks that were not released."""


temporary_file_listeners: list[Callable[[Path], None]] = []
"""Told of each temporary file when it is made."""


_unfinished: set[Path] = set()
"""Temporary files that were neither published nor removed."""


def remove_unfinished() -> None:
    """Remove what files and locks there still are, when a command ends: a signal came between two lines of ours."""
    for path in list(_unfinished):
        _unfinished.discard(path)
        if f"-{os.getpid()}-" in path.name:  # a process that was copied has its parent's here too
            with contextlib.suppress(OSError):
                path.unlink()
    for lock in list(_locks):
        lock.release()


def remove_stale_files(folder: Path) -> None:
    """Remove temporary files of this user whose processes were killed; whatever is in doubt is left.

    In doubt are files of other computers, which a file system may have in common, and those that cannot be locked.
    """
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(folder)):
            if re.fullmatch(_NAME, entry.name):
                with contextlib.suppress(OSError):
                    _remove_if_abandoned(Path(entry.path))
            elif entry.name.startswith(".") and entry.name.endswith(_LOCK):
                with contextlib.suppress(OSError):
                    if _is_ours(entry.stat(follow_symlinks=False)):
                        _remove_if_unlocked(Path(entry.path))


_NAME = r"(?s)\..*\.swsearch-([0-9a-f]{8})-([0-9a-f]{8})-[0-9]+-[0-9a-f]{8}\.tmp"
"""Names of temporary files: the computer, its start, the process, and a random number."""


_LOCK = ".swsearch-lock"
"""End of the names of lock files."""


def _hidden_name(name: str) -> str:
    computer, start = _machine_and_boot()
    return f".{_shorten_name(name)}.swsearch-{computer}-{start}-{os.getpid()}-{os.urandom(4).hex()}.tmp"


def _shorten_name(name: str) -> str:
    """Return the beginning of a name: the longest that file systems take is 255 bytes."""
    return os.fsencode(name)[:150].decode(errors="ignore")


@cache
def _machine_and_boot() -> tuple[str, str]:
    """Return what tells this computer, and this start of it, from others."""
    computer = _digest(f"{os.uname().nodename} {_content('/etc/machine-id')}")
    start = _content("/proc/sys/kernel/random/boot_id")  # Linux: one for all containers, whose names differ
    return computer, _digest(start) if start else computer


def _content(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text(encoding="ascii").strip()
    return ""


def _digest(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def _create_locked(path: Path) -> int:
    """Make a file and lock it; return its descriptor, or -1 if another run took it for abandoned in between."""
    number = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        return -1
    except OSError:  # a file system without locks: then nobody removes the file either
        return number
    if _is_at(number, path):
        return number
    os.close(number)
    return -1


def _is_at(number: int, path: Path) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(number), path.lstat())
    return False


def _remove_if_abandoned(path: Path) -> None:
    """Remove a temporary file of swsearch if no process has it locked."""
    match = re.fullmatch(_NAME, path.name)
    status = path.lstat()
    if match is None or not _is_ours(status):
        return
    computer, start = _machine_and_boot()
    # of another start: this computer's before, or another computer's, whose locks may not be seen here
    if match[2] != start and (match[1] != computer or status.st_mtime > _boot_time()):
        return
    _remove_if_unlocked(path)


def _is_ours(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def _remove_if_unlocked(path: Path) -> None:
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(number, path):
            path.unlink()
    finally:
        os.close(number)


def _boot_time() -> float:
    """Return when this computer was started, in seconds since 1970; 0 if that is not known."""
    for line in _content("/proc/stat").splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    return 0.0


PROFILES_FOLDER = "profiles"
"""Folder in a checkpoint that holds the checkpoint of the iterations that search another database."""


def checkpoint_folder(argument: object) -> Path:
    """Return the folder that an argument names."""
    name = os.fsdecode(argument) if isinstance(argument, (str, os.PathLike)) else ""
    if not name or "\0" in name:
        raise OptionError("checkpoint", argument, "the name of a folder")
    if os.path.exists(name) and not os.path.isdir(name):  # noqa: PTH110, PTH112  # pathlib's raise for long names
        raise OptionError("checkpoint", name, "a folder, not a file")
    return Path(name)
