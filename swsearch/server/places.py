"""The databases of a server, each with its engine: opened once, and once more when the engine has failed."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, Literal, NamedTuple

from swsearch.alphabet import PROTEIN
from swsearch.backends.resident import ResidentBackend
from swsearch.db import Database
from swsearch.db.dna_stored import frame_lengths
from swsearch.engines.base import Engine, Progress
from swsearch.engines.choice import create_engine
from swsearch.errors import EngineError, InputError
from swsearch.inputs import Query
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search_results import SearchResults
from swsearch.remote.wire import SearchRequest
from swsearch.run_info import Checksum, Origin, database_checksums
from swsearch.server.settings import ServerSettings

PlaceState = Literal["ready", "failed", "replaced"]
"""ready; failed: jobs fail until the server is started again; replaced: its file is another one now."""

FAILURES_IN_A_ROW = 5
"""Failures of an engine, with no search that came to its end between them, after which the CPU takes its place: a
device may seem to be there and fail again."""

COMMAND = "swsearch serve"
"""What reports name as the command, where whoever asked told none."""

_PROBE = "ARNDCQEGHILKMFPSTWYV"
"""A query that an engine which was made anew must be able to search with."""

Log = Callable[[str], None]
"""Is told what whoever runs the server should know."""


class _File(NamedTuple):
    """What tells a file from another one, and from itself after it was written to."""

    device: int
    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> _File:
        status = path.stat()
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _compared(path: Path, was: _File) -> tuple[PlaceState, str]:
    """Return what has become of a file, and what is to be said of that."""
    try:
        now = _File.of(path)
    except OSError as error:
        what = f"{path.name} is gone from its folder ({error.strerror})"
        return "replaced", f"{what}; the open one is searched until the server is started again"
    if now[:2] != was[:2]:
        return "replaced", f"{path.name} was replaced on disk; restart to use the new one"
    if now.size != was.size:
        return "failed", f"{path.name} was written to: {now.size:,} bytes, expected {was.size:,}; restore it"
    if now.changed != was.changed:
        return "ready", f"{path.name} was written to since it was opened; what is read is checked"
    return "ready", ""


class Lease(NamedTuple):
    """What a job is scored with: it is asked for anew after an engine failed.

    Parameters
    ----------
    backend : ResidentBackend
        Has the database and the engine.
    generation : int
        How many engines there were before.
    """

    backend: ResidentBackend
    generation: int


def begin_search(
    backend: ResidentBackend, queries: Sequence[Query], options: SearchOptions, *,
    distribution: bool = False, progress: Progress | None = None, origin: Origin | None = None,
) -> SearchResults:  # fmt: skip
    """Return the results of a search, which runs as they are taken.

    Parameters
    ----------
    backend : ResidentBackend
        Scores the queries.
    queries, options, progress, origin
        As for `SearchResults`.
    distribution : bool, optional
        Whether results are to have how the whole database scores, unless it is of DNA.
    """
    results = SearchResults(
        queries, backend.database, options, lambda _: backend,
        progress=progress, threads=backend.threads, origin=origin,
    )  # fmt: skip
    if distribution:
        results.keep_distribution()
    return results


class ServedPlace:
    """A database of the server, with its engine.

    Parameters
    ----------
    name : str
        What requests call it.
    path : Path
        The database file, or a manifest.
    settings : ServerSettings
        Which engine.
    log : callable
        Is told of failures.

    Raises
    ------
    DatabaseError, EngineError, MemoryLimitError
        If it cannot be opened.
    """

    def __init__(self, name: str, path: Path, settings: ServerSettings, log: Log) -> None:
        self.name, self.title, self.path = name, path.name, path
        self._settings, self._log = settings, log
        self._guard = threading.Lock()
        """Held by whoever makes an engine anew; a job that asks for one waits for it."""
        self._generation = self._failures = 0
        self._problem = self._note = ""
        self._cells_before, self._seconds_before = 0, 0.0
        files = [path.absolute()]
        self.database = Database.open(path)
        try:
            files += [Path(each.path) for each in self.database.volumes if each.path]
            self._files: Mapping[Path, _File] = {each: _File.of(each) for each in dict.fromkeys(files)}
            # in reports it goes by the name that it has in its folder, so that they tell nobody where that is
            self.database.name = self.title
            self.checksums: tuple[Checksum, ...] = database_checksums(str(path), self.title)
            self._described = self._description()
            self._engine: Engine | None = self._made(settings.engine)
            self.backend = self._opened(self._engine)
        except BaseException:
            self.database.close()
            raise

    # what it is

    @property
    def is_dna(self) -> bool:
        """Whether it holds DNA, which is searched in its six reading frames."""
        return self.database.genetic_code is not None

    @property
    def n_residues(self) -> int:
        """Residues that a query is compared with."""
        return int(frame_lengths(self.database.lengths).sum()) if self.is_dna else self.database.n_residues

    @property
    def engine(self) -> Engine:
        """What scores now."""
        return self.backend.engine

    def stated(self) -> dict[str, Any]:
        """Return what JSON says of it: names, counts, checksums, state and engine; no folder of the server's."""
        state, problem = self.looked()
        return {**self._described, "engine": self.engine.description, "state": state, "problem": problem}

    def _description(self) -> dict[str, Any]:
        database, info = self.database, self.database.info()
        built = [each["created"] for each in info["segments"] if each.get("created")]
        return {
            "name": self.name,
            "title": self.title,
            "n_subjects": database.n_subjects,
            "n_residues": self.n_residues,
            **({"nucleotides": database.n_residues, "genetic_code": database.genetic_code} if self.is_dna else {}),
            "longest": info["longest"],
            "mask": database.mask,
            "identity": database.identity(),
            "sha256": self.checksums[0].sha256 if self.checksums else None,
            "sources": [{**each, "path": PurePath(str(each["path"])).name} for each in database.sources()],
            "built": max(built, default=None),
        }

    def origin(self, request: SearchRequest, submitted: float | None = None, ended: float | None = None) -> Origin:
        """Return what reports say of where a search comes from, with the checksums of its files.

        Parameters
        ----------
        request : SearchRequest
            What was asked for; what it says of its origin stands as it is.
        submitted, ended : float, optional
            Seconds of the Unix clock; now, and none yet.
        """
        told: dict[str, Any] = {"ended": None if ended is None else datetime.fromtimestamp(ended, UTC)}
        if "command" not in request.origin:
            told["command"] = COMMAND
        if "begun" not in request.origin and submitted is not None:
            told["begun"] = datetime.fromtimestamp(submitted, UTC)
        return replace(request.origin_with(self.checksums), **told)

    def looked(self) -> tuple[PlaceState, str]:
        """Look at the files, and return the state and what is to be said of it."""
        if self._problem:
            return "failed", self._problem
        order = ("failed", "replaced", "ready")
        found = [_compared(path, was) for path, was in self._files.items()]
        state, what = min(found, key=lambda each: (order.index(each[0]), not each[1]))
        return state, (self._note or what) if state == "ready" else what

    # the engine

    @property
    def scored(self) -> tuple[int, float]:
        """Cells that were scored, and the seconds that engines took."""
        with self._guard:
            return self._cells_before + self.backend.cells, self._seconds_before + self.backend.seconds

    def lease(self) -> Lease:
        """Return what to score with; waits while an engine is made.

        Raises
        ------
        EngineError
            If there is none to be had.
        """
        with self._guard:
            if self._engine is None:
                raise EngineError(self._problem or f"{self.title}: the database was closed, as the server is ending")
            return Lease(self.backend, self._generation)

    def is_current(self, lease: Lease) -> bool:
        """Say whether an engine was not made anew since."""
        with self._guard:
            return self._engine is not None and lease.generation == self._generation

    def worked(self, lease: Lease) -> None:
        """Be told that a job came to its end."""
        with self._guard:
            if lease.generation == self._generation:
                self._failures = 0

    def damaged(self, why: str) -> None:
        """Be told that the database's bytes are not those that were written."""
        self._problem = why

    def reopen(self, lease: Lease, why: str, counts: bool = True) -> None:
        """Make the engine anew, as one that a job failed with is in an unknown state; only the first caller does.

        Parameters
        ----------
        lease : Lease
            What the job was scored with.
        why : str
            What it failed with.
        counts : bool, optional
            Whether it is one of the failures in a row after which the CPU takes the engine's place.
        """
        with self._guard:
            if self._engine is None or lease.generation != self._generation:
                return
            self._failures += counts
            self._generation += 1
            self._log(f"{self.title}: the engine failed ({why}); it is made anew")
            self._close_engine()
            wanted = self._settings.engine if self._failures < FAILURES_IN_A_ROW else "cpu"
            before = self.backend
            for kind in [wanted] if wanted in ("cpu", "reference") else [wanted, "cpu"]:
                try:
                    engine = self._made(kind)
                    self.backend = self._opened(engine, is_probed=True)
                    self._engine = engine
                except Exception as error:  # whatever a device that was lost makes of it
                    self._log(f"{self.title}: engine {kind} cannot be had: {error}")
                    continue
                self._cells_before += before.cells
                self._seconds_before += before.seconds
                self._note = f"the engine failed and was made anew, {engine.name} now: {why}"
                self._log(f"{self.title}: goes on with engine {engine.name}")
                return
            self._problem = f"the engine failed and no other can be had: {why}"

    def _made(self, kind: str) -> Engine:
        """Make the engine.

        Each place has its own, and takes what its database needs of a GPU's memory: some hundred megabytes and the
        residues. Places are opened from the smallest database to the largest one, so that the last finds least, and
        is streamed if it does not fit: as many databases as possible stay on the device.
        """
        asked = self._settings
        of_gpu = {"device": asked.device, "gpu_memory": asked.gpu_memory} if kind in ("gpu", "auto") else {}
        return create_engine(kind, threads=asked.threads, notice=self._log, **of_gpu)

    def _opened(self, engine: Engine, is_probed: bool = False) -> ResidentBackend:
        with ExitStack() as closing:
            closing.callback(engine.close)
            backend = ResidentBackend(self.database, engine, self._settings.threads)
            closing.callback(backend.close)
            if is_probed:
                options = SearchOptions(statistics="none", max_hits=1)
                for _ in begin_search(backend, [Query("probe", "", PROTEIN.encode(_PROBE))], options):
                    pass
            closing.pop_all()
        return backend

    def _close_engine(self) -> None:
        """Let go of the engine; one that has lost its device may fail at that, too."""
        engine, self._engine = self._engine, None
        if engine is None:
            return
        for step in (self.backend.close, engine.close):
            try:
                step()
            except Exception as error:
                self._log(f"{self.title}: the engine could not be closed: {error}")

    def close(self) -> None:
        """Let go of the engine and the database."""
        with self._guard:
            self._close_engine()
            self.database.close()


def names_of(paths: Sequence[Path]) -> dict[str, Path]:
    """Return database files by what requests call them: the name without the extension.

    Raises
    ------
    InputError
        If there is none, or two have the same name.
    """
    found: dict[str, Path] = {}
    for path in paths:
        if (name := path.stem) in found:
            raise InputError(
                f"{found[name]} and {path}: got two databases that go by {name!r}, expected different names; rename "
                "one of the files"
            )
        found[name] = path
    if not found:
        raise InputError("got no database, expected at least one")
    return found


@contextlib.contextmanager
def opened_places(settings: ServerSettings, log: Log) -> Iterator[dict[str, ServedPlace]]:
    """Open all databases, and close them at the end; in the order that they are given in.

    Raises
    ------
    InputError, DatabaseError, EngineError, MemoryLimitError
        If one cannot be opened.
    """
    named = names_of(settings.databases)
    with ExitStack() as opened:
        places: dict[str, ServedPlace] = {}
        for name in sorted(named, key=lambda name: _size_of(named[name])):
            places[name] = ServedPlace(name, named[name], settings, log)
            opened.callback(places[name].close)
        yield {name: places[name] for name in named}


def _size_of(path: Path) -> int:
    """Return about how large a database is: a manifest names larger files than it is itself."""
    from swsearch.db.format import is_manifest

    with contextlib.suppress(OSError):
        n_bytes = path.stat().st_size
        return n_bytes << 20 if is_manifest(path) else n_bytes
    return 0


def without_folders(text: str, folders: Sequence[Path]) -> str:
    """Return a message for whoever asked, without the names of the server's folders."""
    for folder in folders:
        text = text.replace(str(folder).rstrip(os.sep) + os.sep, "")
    return text
