"""Groups of queries that are done, kept in a folder, so that a search that was killed goes on where it was.

A folder holds::

    manifest.json                       what the search depends on; see `swsearch.pipeline.fingerprint`
    queries-000000001-000000142         their selections; see `swsearch.pipeline.candidate_codec`
    lock                                empty; locked by the process that uses the folder

What is kept of a query is its selection: which subjects, with which scores and E-values. A group is kept when it was
scored, and in place of that once more when its candidates have nulls of their own; `swsearch.pipeline.search_job`
goes on from either. Alignments are made again. Every file is complete or not there, begins with the checksum of all
the rest, and belongs to one manifest; one that is damaged is told of and not used. A file says which queries it is
of, so that it can be used whatever the groups are.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from swsearch.errors import InputError, OptionError, OutputError, SwsearchWarning
from swsearch.output_files import TemporaryFile, remove_abandoned
from swsearch.pipeline.candidate_codec import Unreadable, packed, unpacked
from swsearch.pipeline.fingerprint import Stated, differences, digest_of
from swsearch.pipeline.selection import Selection
from swsearch.statistics.karlin_altschul import KarlinAltschul

MANIFEST, LOCK = "manifest.json", "lock"

TITLE = "swsearch checkpoint"
"""First words of a kept file, and the manifest's ``what``."""

_NAME = re.compile(r"queries-(\d{9,18})-(\d{9,18})")

LONGEST_MANIFEST = 1 << 20
"""Bytes; ours has two thousand."""


class Checkpoint:
    """A folder with the selections of the queries that are done.

    A context manager: the folder is locked from when this is made to the end of the block, and again in a later one.
    One thread may load while another saves.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    manifest : dict
        What the search depends on, as `swsearch.pipeline.fingerprint.manifest` has it.
    published : KarlinAltschul or None
        The statistics that the options name.
    n_subjects : int
        Of the database.
    is_read : bool, optional
        Whether what is there is only read: nothing is written or locked, so that several may read at a time. Whoever
        asks knows that nobody writes.

    Raises
    ------
    InputError
        If the folder is in use, holds something else, or is of another search; the message names all that differs.
    OutputError
        If it cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Mapping[str, Any],
        published: KarlinAltschul | None,
        n_subjects: int,
        is_read: bool = False,
    ) -> None:
        self.folder, self._published, self._n_subjects = folder, published, n_subjects
        self._wants_distribution = bool(manifest["distribution"])
        self._lock = -1
        self._last: tuple[str, list[Selection]] | None = None
        self._guard = threading.Lock()
        self._is_read = is_read
        if not folder.parent.exists():
            raise OutputError(
                f"checkpoint: {folder} cannot be created: folder {folder.parent} not found; create it first"
            )
        try:
            with _errors(folder, "opened"):
                if not is_read:
                    folder.mkdir(exist_ok=True)  # a name with a mistake in it should not become folders
                    self._take_lock()
                    remove_abandoned(folder)
                self._digest = digest_of(self._begin(dict(manifest)))
            self._kept = dict(self._files())
        except BaseException:
            self.close()
            raise

    @property
    def n_kept(self) -> int:
        """Queries that are done, as the names of files have it."""
        done = 0
        reached = 0
        for begin, end in sorted(self._kept):
            done += max(end - max(begin, reached), 0)
            reached = max(reached, end)
        return done

    def load(self, first: int, count: int) -> list[Selection] | None:
        """Return the selections of some queries in a row, if they are all there and whole.

        Parameters
        ----------
        first : int
            Place of the first query, counted from 0.
        count : int
            How many.

        Returns
        -------
        list of Selection or None
            One for each.
        """
        found: list[Selection] = []
        while len(found) < count:
            at = first + len(found)
            with self._guard:
                held = next((each for each in self._kept if each[0] <= at < each[1]), None)
            if held is None:
                return None
            some = self._read(held)
            if some is None:
                with self._guard:
                    del self._kept[held]
                continue
            found += some[at - held[0] : first + count - held[0]]
        if self._wants_distribution and any(each.distribution is None for each in found):
            return None
        return found

    def save(self, first: int, selections: Sequence[Selection]) -> None:
        """Keep the selections of some queries in a row; when this returns they are on the disk.

        Nothing is kept where what is there is only read.

        Parameters
        ----------
        first : int
            Place of the first query, counted from 0.
        selections : sequence of Selection
            One for each, at least one.

        Raises
        ------
        OutputError
            If they cannot be written.
        """
        if self._is_read:
            return
        held = first, first + len(selections)
        name = _name(*held)
        data = packed(selections)
        with _errors(self.folder, "written"):
            _write(self.folder / name, _seal(name, self._digest, data) + data)
        with self._guard:
            self._kept[held] = name

    def __enter__(self) -> Checkpoint:
        if self._lock < 0 and not self._is_read:
            with _errors(self.folder, "opened"):
                self._take_lock()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let others use the folder."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)

    def __del__(self) -> None:
        self.close()

    def _take_lock(self) -> None:
        number = os.open(self.folder / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                os.close(number)
                raise InputError(
                    f"checkpoint: {self.folder} is in use by another search; wait for that search, or choose another "
                    "folder"
                ) from None
            # a file system without locks: then nobody is kept out
        self._lock = number

    def _begin(self, manifest: Stated) -> Stated:
        """Return the folder's manifest, which is this one if the folder is new."""
        path = self.folder / MANIFEST
        if not self._is_read and not path.exists():
            # hidden ones may be of a process that was killed, on a computer whose locks are not seen here
            names = [each.name for each in self.folder.iterdir()]
            others = sorted(name for name in names if name != LOCK and not name.startswith("."))
            if others:
                raise InputError(
                    f"checkpoint: {self.folder} contains files, e.g. {others[0]!r}, but no {MANIFEST}; choose a new "
                    "or empty folder"
                )
            text = json.dumps({"what": TITLE, **manifest}, indent=2)
            _write(path, text.encode("utf-8") + b"\n")
            return manifest
        was = _read_manifest(path)
        changed = differences(was, manifest)
        if changed:
            raise InputError(
                f"checkpoint: {self.folder} belongs to another search: {'; '.join(changed)}; use its inputs and "
                "options, or choose another folder"
            )
        return was

    def _files(self) -> Iterator[tuple[tuple[int, int], str]]:
        """Yield which queries are kept in which file."""
        for name in sorted(each.name for each in self.folder.iterdir()):
            match = _NAME.fullmatch(name)
            if match and 0 < int(match[1]) <= int(match[2]) and name == _name(int(match[1]) - 1, int(match[2])):
                yield (int(match[1]) - 1, int(match[2])), name

    def _read(self, held: tuple[int, int]) -> list[Selection] | None:
        """Read a file; None if it is damaged, of which a warning tells."""
        name = self._kept[held]
        if self._last is not None and self._last[0] == name:
            return self._last[1]
        try:
            raw = (self.folder / name).read_bytes()
            data = raw[len(_seal(name, self._digest, b"")) :]
            if not raw.startswith(_seal(name, self._digest, data)):
                raise Unreadable("its checksum differs")
            found = unpacked(data, self._published, self._n_subjects)
            if len(found) != held[1] - held[0]:
                raise Unreadable(f"it holds {len(found)} queries")
        except (OSError, Unreadable) as error:
            if self._is_read:
                return None
            why = error.strerror if isinstance(error, OSError) else error
            warnings.warn(
                f"checkpoint: {self.folder / name} is damaged ({why}); searching its queries again",
                SwsearchWarning,
                stacklevel=2,
            )
            return None
        self._last = name, found
        return found


def checkpoint_folder(given: object) -> Path:
    """Return the folder that an argument names.

    Raises
    ------
    OptionError
        If it is no path, or that of a file.
    """
    name = os.fsdecode(given) if isinstance(given, (str, os.PathLike)) else ""
    if not name or "\0" in name:
        raise OptionError("checkpoint", given, "the name of a folder")
    if os.path.exists(name) and not os.path.isdir(name):  # noqa: PTH110, PTH112  # pathlib's raise for long names
        raise OptionError("checkpoint", name, "a folder, not a file")
    return Path(name)


def _name(begin: int, end: int) -> str:
    return f"queries-{begin + 1:09d}-{end:09d}"


def _seal(name: str, digest: str, data: bytes) -> bytes:
    """Return what stands before the bytes of a file: the checksum of these, of its name and of the manifest."""
    sha256 = hashlib.sha256(f"{name}\n{digest}\n".encode() + data).hexdigest()
    return f"{TITLE}\nsha256 {sha256}\n".encode()


def _read_manifest(path: Path) -> Stated:
    with path.open("rb") as file:
        raw = file.read(LONGEST_MANIFEST)
    try:
        found = json.loads(raw)
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.pop("what", None) != TITLE:
        raise InputError(
            f"checkpoint: {path} is damaged or not a {TITLE}; choose another folder, or delete this one to start "
            "again"
        )
    return found


def _write(path: Path, data: bytes) -> None:
    """Let a file appear with its content on the disk."""
    file = TemporaryFile(path)
    try:
        with open(file.descriptor, "wb", closefd=False) as stream:
            stream.write(data)
        os.fsync(file.descriptor)
        file.publish(path)
    finally:
        file.discard()
    with contextlib.suppress(OSError):  # some file systems have no such thing
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextlib.contextmanager
def _errors(folder: Path, what: str) -> Iterator[None]:
    """Turn errors of the operating system into ours."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"checkpoint: {folder} cannot be {what}: {error.strerror or error}; finished queries are safe; free disk "
            "space or set permissions, and run the same command again"
        ) from error
