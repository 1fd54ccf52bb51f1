"""A folder of query states, from which a stopped search resumes.

A folder holds::

    manifest.json        what the search depends on; see `swsearch.pipeline.fingerprint`
    queries-000000007    states of some queries; see `swsearch.pipeline.codec`
    lock                 empty; locked by the process that uses the folder

The search stores a query after scoring, after each iteration, after its candidates have nulls, and after its hits
are chosen. It resumes from any of these states. States saved within a second go into one file. Files appear complete
or not at all. The first line of a file is a checksum of the rest; the second names its queries and has a checksum of
its own. Newer files override older ones, and a file without current states is deleted. A damaged file causes a
warning and is not used.
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
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from types import TracebackType
from weakref import WeakValueDictionary

from swsearch.errors import InputError, OtherCheckpointError, OutputError, SwsearchWarning
from swsearch.inputs import Query
from swsearch.output_files import PROFILES_FOLDER, TemporaryFile, remove_stale_files, sync_folder
from swsearch.pipeline.batch import Batch, QueryState
from swsearch.pipeline.codec import (
    Arrays,
    CorruptDataError,
    JsonFields,
    StateDecoder,
    encode,
    pack,
    require,
    unpack,
)
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.fingerprint import JsonValues, differences, digest_of, search_fingerprint
from swsearch.pipeline.iterate import ProfileGrower
from swsearch.pipeline.ranking import QueryCandidates
from swsearch.pipeline.scorer import group_states
from swsearch.pipeline.subjects import SubjectReader, Subjects

MANIFEST, LOCK = "manifest.json", "lock"

FILE_MAGIC = "swsearch checkpoint"
"""First words of a kept file, and the manifest's ``what``."""

MAX_MANIFEST = 1 << 20
"""Bytes; ours has two thousand."""

SAVE_SECONDS = 1.0
"""Seconds between files, and the longest that states wait to be written."""

CACHE_BYTES = 64 << 20
"""Bytes of files whose states are held until they are taken."""

_NAME = re.compile(r"queries-(\d{9,18})")

_Held = tuple[QueryState, SubjectReader]


def _place_of(stored: _Held) -> tuple[int, int]:
    return id(stored[1]), stored[0].index


class Checkpoint:
    """A folder with the states of queries.

    A context manager: the folder is locked from when this is made to the end of the block, and again in a later one.
    One thread may read while others save.

    Parameters
    ----------
    folder : Path
        Created if missing.
    queries : sequence of Query
        All that are searched, as `StateDecoder` takes them.
    criteria : Criteria
        Options and thresholds of the search.
    subjects : Subjects
        The searched subjects.
    grower : ProfileGrower or None
        Makes profiles, where hits make some.
    is_read_only : bool, optional
        Whether what is there is only read: nothing is written or locked, so that several may read at a time. Whoever
        asks knows that nobody writes.

    Raises
    ------
    InputError
        If the folder is in use, holds something else, or is of another search; the message names all that differs.
    OutputError
        If it cannot be written.
    """

    _lock = -1

    def __init__(
        self, folder: Path, queries: Sequence[Query], criteria: Criteria, subjects: Subjects,
        grower: ProfileGrower | None, is_read_only: bool = False,
    ) -> None:  # fmt: skip
        self.folder, self._is_read, self._subjects, self._queries = folder, is_read_only, subjects, queries
        self._decoder = StateDecoder(queries, criteria, grower, subjects)
        self._wants_distribution = criteria.options.distribution
        self._guard, self._writing = threading.Lock(), threading.Lock()
        self._file_of: dict[int, str] = {}
        """Name of the file that holds each query."""
        self._counts: Counter[str] = Counter()
        """Queries of each file that no later one has."""
        self._damaged: set[str] = set()
        self._held: dict[str, tuple[int, dict[int, _Held]]] = {}
        """Queries read from each file and not yet used, with the file's size in bytes."""
        self._known: WeakValueDictionary[int, QueryCandidates] = WeakValueDictionary()
        """Saved candidates by query, as long as another object refers to them."""
        self._waiting: dict[int, _Held] = {}
        self._written_at = -SAVE_SECONDS
        self._timer: threading.Timer | None = None
        self._error: OutputError | None = None
        """Error of the timer's thread."""
        if not folder.parent.exists():
            raise OutputError(
                f"checkpoint: {folder} cannot be created: folder {folder.parent} not found; create it first"
            )
        try:
            with _errors(folder, "opened"):
                if not is_read_only:
                    folder.mkdir(exist_ok=True)  # a name with a mistake in it should not become folders
                    self._take_lock()
                    remove_stale_files(folder)
                fingerprint = search_fingerprint(queries, subjects.database, subjects.mask, criteria.options)
                self._digest = digest_of(self._begin(fingerprint))
                self._number = self._read_index()
        except BaseException:
            self._release()
            raise

    @property
    def n_finished(self) -> int:
        """Queries of which something is kept."""
        return len(self._file_of)

    # reading

    def resume(self, states: Sequence[QueryState]) -> Iterator[Batch]:
        """Return states in batches, as stored or, if not stored, unchanged."""
        with self._guard:
            by_file = sorted(states, key=lambda state: self._file_of.get(state.index, ""))
        resumed = sorted([self._stored_state(state) or (state, self._subjects) for state in by_file], key=_place_of)
        for is_new in (False, True):
            yield from group_states([each for each in resumed if (each[0].selection is None) == is_new])

    def read_stored(self, places: Iterable[int]) -> Iterator[Batch]:
        """Return the stored states of finished queries."""
        states = [QueryState(place, self._queries[place]) for place in places]
        for batch in self.resume(states):
            if not batch.is_scored:
                raise OutputError(
                    f"checkpoint: the stored results of queries {batch.states[0].index + 1:,} to "
                    f"{batch.states[-1].index + 1:,} are damaged; search them again"
                )
            yield batch

    def _stored_state(self, state: QueryState) -> _Held | None:
        """Return the stored state of a query, unless an iteration of this run has returned it."""
        if state.history is not None and state.history.steps:
            return None
        with self._guard:
            name = self._file_of.get(state.index)
        if name is None or name in self._damaged:
            return None
        if name not in self._held or state.index not in self._held[name][1]:
            self._read_file(name)
        of_file = self._held[name][1]
        stored = of_file.pop(state.index, None)
        if not of_file:
            del self._held[name]
        if stored is not None and (selection := stored[0].selection) is not None:
            if self._wants_distribution and selection.distribution is None:
                return None
            self._known[state.index] = selection
        return stored

    def _read_file(self, name: str) -> None:
        """Read the current states of a file; warn and read none if it is damaged."""
        stored: dict[int, _Held] = {}
        n_bytes = 0
        with self._warn_of_damage(name):
            read = (self.folder / name).read_bytes()
            n_bytes = len(read)
            head, line, data = [*read.split(b"\n", 2), b"", b""][:3]
            require(head == self._checksum(name, line, data), "its checksum differs")
            every, arrays = unpack(data)
            require(isinstance(every, list), "it holds no queries")
            for k, facts in enumerate(every):
                some = {key[len(f"{k} ") :]: each for key, each in arrays.items() if key.startswith(f"{k} ")}
                batch = self._decoder.decode(facts, some, lambda place: self._file_of.get(place) == name)
                stored.update((state.index, (state, batch.subjects)) for state in batch.states)
        while self._held and sum(size for size, _ in self._held.values()) + n_bytes > CACHE_BYTES:
            del self._held[next(iter(self._held))]
        self._held[name] = n_bytes, {} if name in self._damaged else stored

    @contextlib.contextmanager
    def _warn_of_damage(self, name: str) -> Iterator[None]:
        """Warn about an unreadable file, and stop using it."""
        try:
            yield
        except (OSError, CorruptDataError) as error:
            self._damaged.add(name)
            if not self._is_read:
                why = error.strerror if isinstance(error, OSError) else error
                warning = f"checkpoint: {self.folder / name} is damaged ({why}); searching its queries again"
                warnings.warn(warning, SwsearchWarning, stacklevel=2)

    def _read_index(self) -> int:
        """Read which queries each file has, and return the number of the last file."""
        names = sorted(each.name for each in self.folder.iterdir() if _NAME.fullmatch(each.name))
        for name in names:
            with (self.folder / name).open("rb") as file:
                file.readline()
                line = file.readline().rstrip(b"\n")
            places: list[int] = []
            with self._warn_of_damage(name):
                places = _decode_places(line, len(self._queries))
                require(line == self._encode_places(name, places), "its checksum differs")
            self._count(name, [] if name in self._damaged else places)
        return int(names[-1].split("-")[1]) if names else 0

    # writing

    def save(self, states: Sequence[QueryState], subjects: SubjectReader) -> None:
        """Keep states as they are now, unless they are as they were kept.

        Nothing is kept where what is there is only read.

        Parameters
        ----------
        states : sequence of QueryState
            Of queries that were scored, or come back from an iteration.
        subjects : SubjectReader
            Subjects that places refer to.
        """
        is_known = (each.selection is not None and self._known.get(each.index) is each.selection for each in states)
        if self._is_read or all(is_known):
            return
        with self._writing:
            self._check_written()
            for state in states:
                self._waiting[state.index] = state, subjects
                if state.selection is not None:
                    self._known[state.index] = state.selection
            left = self._written_at + SAVE_SECONDS - time.monotonic()
            if left <= 0 or not self._write_after(left):
                self._write_waiting()

    def _write_after(self, seconds: float) -> bool:
        """Start a timer that writes the waiting states; return whether a thread could be started."""
        if self._timer is None:
            timer = threading.Timer(seconds, self._write_in_time)
            timer.daemon, timer.name = True, "swsearch-save"
            with contextlib.suppress(RuntimeError):  # no thread to be had
                timer.start()
                self._timer = timer
        return self._timer is not None

    def _write_in_time(self) -> None:
        with self._writing:
            try:
                self._write_waiting()
            except OutputError as error:  # raised where states are saved next, or at the end
                self._error = error

    def _check_written(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _write_waiting(self) -> None:
        """Write the waiting states to disk, and wait until they are there."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = sorted(self._waiting.values(), key=_place_of), {}
        if not waiting:
            return
        every: list[JsonFields] = []
        arrays: Arrays = {}
        for k, batch in enumerate(group_states(waiting)):
            facts, numbers = encode(batch.states, batch.subjects)
            every.append(facts)
            arrays |= {f"{k} {key}": each for key, each in numbers.items()}
        data = pack(every, arrays)
        places = sorted(state.index for state, _ in waiting)
        self._number += 1
        name = f"queries-{self._number:09d}"
        line = self._encode_places(name, places)
        with _errors(self.folder, "written"):
            _write(self.folder / name, b"\n".join([self._checksum(name, line, data), line, data]))
        self._count(name, places)
        self._written_at = time.monotonic()

    def _checksum(self, name: str, *rest: bytes) -> bytes:
        """Return the checksum of a file's name, of the manifest and of other bytes, as a file begins with it."""
        sha256 = hashlib.sha256(b"\n".join([f"{name}\n{self._digest}".encode(), *rest])).hexdigest()
        return f"{FILE_MAGIC} sha256 {sha256}".encode()

    def _encode_places(self, name: str, places: Sequence[int]) -> bytes:
        """Return a file's second line: places, ascending, counted from 1, and a checksum."""
        runs = groupby(enumerate(places), key=lambda each: each[1] - each[0])
        ends = [[place + 1 for _, place in run] for _, run in runs]
        line = b"queries " + ",".join(f"{each[0]}-{each[-1]}" for each in ends).encode()
        return line + self._checksum(name, line)[-16:].rjust(17)

    def _count(self, name: str, places: Sequence[int]) -> None:
        """Record the queries of a file, and delete files without current queries."""
        with self._guard:
            before = [self._file_of[place] for place in places if place in self._file_of]
            self._file_of.update(dict.fromkeys(places, name))
            self._counts.update({name: len(places)})
            self._counts.subtract(before)
            gone = [each for each in {name, *before} if not self._counts[each]]
            for each in gone:
                del self._counts[each]
        for each in () if self._is_read else gone:
            with contextlib.suppress(OSError):
                (self.folder / each).unlink()

    # the folder

    def __enter__(self) -> Checkpoint:
        if self._lock < 0 and not self._is_read:
            with _errors(self.folder, "opened"):
                self._take_lock()
                self._file_of, self._counts, self._held = {}, Counter(), {}
                self._number = self._read_index()  # another process may have gone on with it
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except OutputError as unwritten:
            if error is None or isinstance(error, GeneratorExit):
                raise
            warnings.warn(str(unwritten), SwsearchWarning, stacklevel=2)  # what ended the search is told first

    def close(self) -> None:
        """Write the waiting states, and unlock the folder."""
        timer = self._timer
        try:
            with self._writing:
                self._check_written()
                self._write_waiting()
        finally:
            if timer is not None:
                timer.join()
            self._release()

    def __del__(self) -> None:
        self._release()

    def _release(self) -> None:
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)

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

    def _begin(self, manifest: JsonValues) -> JsonValues:
        """Return the folder's manifest, which is this one if the folder is new."""
        path = self.folder / MANIFEST
        if not self._is_read and not path.exists():
            # hidden ones may be of a process that was killed, on a computer whose locks are not seen here
            names = sorted(each.name for each in self.folder.iterdir())
            if others := [name for name in names if name not in (LOCK, PROFILES_FOLDER) and not name.startswith(".")]:
                raise OtherCheckpointError(
                    f"checkpoint: {self.folder} contains files, e.g. {others[0]!r}, but no {MANIFEST}; choose a new "
                    "or empty folder"
                )
            _write(path, json.dumps({"what": FILE_MAGIC, **manifest}, indent=2).encode() + b"\n")
            return manifest
        was = _read_manifest(path)
        if changed := differences(was, manifest):
            raise OtherCheckpointError(
                f"checkpoint: {self.folder} belongs to another search: {'; '.join(changed)}; use its inputs and "
                "options, or choose another folder"
            )
        return was


def _decode_places(line: bytes, n: int) -> list[int]:
    """Return the places that a second line names, ascending, of n queries."""
    places: list[int] = []
    for part in line.partition(b" ")[2].partition(b" ")[0].split(b","):
        match = re.fullmatch(rb"(\d{1,18})-(\d{1,18})", part)
        good = match is not None and (places[-1] + 1 if places else 0) < int(match[1]) <= int(match[2]) <= n
        require(good, "it names no queries")
        assert match is not None
        places += range(int(match[1]) - 1, int(match[2]))
    return places


def _read_manifest(path: Path) -> JsonValues:
    with path.open("rb") as file:
        raw = file.read(MAX_MANIFEST)
    manifest = None
    with contextlib.suppress(ValueError):
        manifest = json.loads(raw)
    if not isinstance(manifest, dict) or manifest.pop("what", None) != FILE_MAGIC:
        raise OtherCheckpointError(
            f"checkpoint: {path} is damaged or not a {FILE_MAGIC}; choose another folder, or delete this one to "
            "start again"
        )
    return manifest


def _write(path: Path, data: bytes) -> None:
    """Write a file that appears only when its content is on disk."""
    file = TemporaryFile(path)
    try:
        with open(file.descriptor, "wb", closefd=False) as stream:
            stream.write(data)
        os.fsync(file.descriptor)
        file.publish(path)
    finally:
        file.discard()
    with contextlib.suppress(OSError):  # a folder that may be written may not be open to be read
        sync_folder(path.parent)


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
