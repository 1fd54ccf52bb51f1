"""Databases of a server with their engines.

An engine that failed is replaced by a new one.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, Literal, NamedTuple, TypeVar

from swsearch.alphabet import ALPHABETS, PROTEIN
from swsearch.backends.resident import ResidentBackend
from swsearch.client.search_request import SearchRequest
from swsearch.cuda_package import is_driver_error
from swsearch.db import Database
from swsearch.db.database_files import is_manifest
from swsearch.db.dna_segment import frame_lengths
from swsearch.engines.base import Engine, Progress
from swsearch.engines.factory import create_engine
from swsearch.errors import DatabaseError, EngineError, InputError, MemoryLimitError
from swsearch.inputs import Query
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search_results import SearchResults
from swsearch.run_info import Checksum, Origin, database_checksums
from swsearch.scoring import Scoring, load_matrix
from swsearch.server.errors import ServerProblem
from swsearch.server.settings import ServerSettings

DatabaseState = Literal["ready", "failed", "replaced"]
"""``failed``: jobs fail until the server restarts. ``replaced``: another file has the name of the open one."""

FAILURES_IN_A_ROW = 5
"""Failures of an engine without a finished search between them, after which the CPU replaces it."""

COMMAND = "swsearch serve"
"""Command in reports of requests that name none."""

_PROBE = "ARNDCQEGHILKMFPSTWYV"
"""Query that a new engine must search with after a failure."""

MAX_BEGUN = 5
"""Attempts of a search whose engine fails under other searches."""

Outcome = TypeVar("Outcome")

log = logging.getLogger(__name__)


def _compare_state(path: Path, was: os.stat_result) -> tuple[DatabaseState, str]:
    """Return the state of a file that is open, with a note; ``was`` is from its opening."""
    try:
        now = path.stat()
    except OSError as error:
        what = f"{path.name} is gone from its folder ({error.strerror})"
        return "replaced", f"{what}; the open one is searched until the server is started again"
    if not os.path.samestat(now, was):
        return "replaced", f"{path.name} was replaced on disk; restart to use the new one"
    if now.st_size != was.st_size:
        return "failed", f"{path.name} was written to: {now.st_size:,} bytes, expected {was.st_size:,}; restore it"
    if now.st_mtime_ns != was.st_mtime_ns:
        return "ready", f"{path.name} was written to since it was opened; what is read is checked"
    return "ready", ""


class EngineLease(NamedTuple):
    """Backend of a search; a search needs another lease after its engine failed."""

    backend: ResidentBackend
    generation: int
    """Number of engines before."""


def begin_search(
    backend: ResidentBackend, queries: Sequence[Query], options: SearchOptions, *,
    keep_distribution: bool = False, progress: Progress | None = None, origin: Origin | None = None,
) -> SearchResults:  # fmt: skip
    """Return the results of a search, which runs as they are read; arguments are those of `SearchResults`.

    With ``keep_distribution``, results have the scores of the whole database, unless it contains DNA.
    """
    results = SearchResults(
        queries, backend.database, options, lambda _: backend,
        progress=progress, threads=backend.threads, origin=origin,
    )  # fmt: skip
    if keep_distribution:
        results.keep_distribution()
    return results


class ServedDatabase:
    """A database file or manifest with its engine; ``name`` is its name in requests.

    The constructor raises `SwsearchError` if the database cannot be opened.
    """

    def __init__(self, name: str, path: Path, settings: ServerSettings) -> None:
        self.name, self.title, self.path = name, path.name, path
        self._settings = settings
        self._guard = threading.Lock()
        """Held while a new engine is created; a job that needs it waits."""
        self._generation = self._failures = 0
        self._problem = self._note = ""
        self._cells_before, self._seconds_before = 0, 0.0
        files = [path.absolute()]
        self.database = Database.open(path)
        try:
            files += [Path(each.path) for each in self.database.volumes if each.path]
            self._files = {each: each.stat() for each in files}
            # reports name the file without its folder
            self.database.name = self.title
            self.checksums: tuple[Checksum, ...] = database_checksums(str(path), self.title)
            self._described = self._description()
            self._engine: Engine | None = self._create_engine(settings.engine)
            self.backend = self._open_backend(self._engine)
        except BaseException:
            self.database.close()
            raise

    # content

    @property
    def is_dna(self) -> bool:
        """Whether it contains DNA, which is searched in its six reading frames."""
        return self.database.genetic_code is not None

    @property
    def n_residues(self) -> int:
        """Number of residues that a query is compared with."""
        return int(frame_lengths(self.database.lengths).sum()) if self.is_dna else self.database.n_residues

    @property
    def engine(self) -> Engine:
        """Engine that scores now."""
        return self.backend.engine

    def to_json(self) -> dict[str, Any]:
        """Return names, counts, checksums, state and engine as JSON, without the server's folders."""
        state, problem = self.check_files()
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
            **({} if database.alphabet == "protein" else {"alphabet": database.alphabet}),
            "mask": database.mask,
            "identity": database.identity(),
            "sha256": self.checksums[0].sha256 if self.checksums else None,
            "sources": [{**each, "path": PurePath(str(each["path"])).name} for each in database.sources()],
            "built": max(built, default=None),
        }

    def origin(self, request: SearchRequest, submitted: float | None = None, ended: float | None = None) -> Origin:
        """Return the origin of a search for reports, with the checksums of the files and times of the Unix clock.

        Values of the request's own origin stay.
        """
        changes: dict[str, Any] = {"ended": None if ended is None else datetime.fromtimestamp(ended, UTC)}
        if "command" not in request.origin:
            changes["command"] = COMMAND
        if "started" not in request.origin and submitted is not None:
            changes["started"] = datetime.fromtimestamp(submitted, UTC)
        return replace(request.origin_with(self.checksums), **changes)

    def check_files(self) -> tuple[DatabaseState, str]:
        """Look at the files, and return the state with a note."""
        if self._problem:
            return "failed", self._problem
        order = ("failed", "replaced", "ready")
        states = [_compare_state(path, was) for path, was in self._files.items()]
        state, note = min(states, key=lambda each: (order.index(each[0]), not each[1]))
        return state, (self._note or note) if state == "ready" else note

    # the engine

    @property
    def scoring_totals(self) -> tuple[int, float]:
        """Number of scored cells, and the seconds of scoring."""
        with self._guard:
            return self._cells_before + self.backend.cells, self._seconds_before + self.backend.seconds

    def lease(self) -> EngineLease:
        """Return the backend; wait while an engine is created, and raise `EngineError` if there is none."""
        with self._guard:
            if self._engine is None:
                raise EngineError(self._problem or f"{self.title}: the database was closed, as the server is ending")
            return EngineLease(self.backend, self._generation)

    def is_current(self, lease: EngineLease) -> bool:
        """Return whether the engine has not been replaced since."""
        with self._guard:
            return self._engine is not None and lease.generation == self._generation

    def report_success(self, lease: EngineLease) -> None:
        """Record that a search finished: failures in a row begin at 0."""
        with self._guard:
            if lease.generation == self._generation:
                self._failures = 0

    def report_damage(self, why: str) -> None:
        """Record that the database file is damaged."""
        self._problem = why

    def reopen(self, lease: EngineLease, why: str, counts: bool = True) -> None:
        """Replace an engine that failed, as its state is unknown; only the first caller of a lease does.

        ``why`` is the failure. With ``counts``, it is one of the failures in a row after which the CPU replaces the
        engine.
        """
        with self._guard:
            if self._engine is None or lease.generation != self._generation:
                return
            self._failures += counts
            self._generation += 1
            log.warning(f"{self.title}: the engine failed ({why}); it is made anew")
            self._close_engine()
            engine_name = self._settings.engine if self._failures < FAILURES_IN_A_ROW else "cpu"
            before = self.backend
            for kind in [engine_name, "cpu"] if engine_name in ("auto", "gpu") else [engine_name]:
                try:
                    engine = self._create_engine(kind)
                    self.backend = self._open_backend(engine, is_probed=True)
                    self._engine = engine
                except Exception as error:  # a lost device may raise anything
                    log.warning(f"{self.title}: engine {kind} cannot be had: {error}")
                    continue
                self._cells_before += before.cells
                self._seconds_before += before.seconds
                self._note = f"the engine failed and was made anew, {engine.name} now: {why}"
                log.warning(f"{self.title}: goes on with engine {engine.name}")
                return
            self._problem = f"the engine failed and no other can be had: {why}"

    def _create_engine(self, kind: str) -> Engine:
        """Create an engine.

        Each database has its own, which takes some hundred megabytes of a GPU's memory and the residues. Databases
        are opened from the smallest to the largest, and those that do not fit are streamed. So as many databases as
        possible stay on the device.
        """
        settings = self._settings
        of_gpu = {"device": settings.device, "gpu_memory": settings.gpu_memory} if kind in ("gpu", "auto") else {}
        return create_engine(kind, threads=settings.threads, on_message=log.warning, **of_gpu)

    def _open_backend(self, engine: Engine, is_probed: bool = False) -> ResidentBackend:
        """Load the database in an engine, which is closed on failure; a probe is a search that must succeed."""
        with ExitStack() as closing:
            closing.callback(engine.close)
            backend = ResidentBackend(self.database, engine, self._settings.threads)
            closing.callback(backend.close)
            if is_probed:
                matrix = replace(load_matrix("BLOSUM62"), alphabet=ALPHABETS[self.database.alphabet])
                options = SearchOptions(statistics="none", max_hits=1, scoring=Scoring(matrix))
                for _ in begin_search(backend, [Query("probe", "", PROTEIN.encode(_PROBE))], options):
                    pass
            closing.pop_all()
        return backend

    def _close_engine(self) -> None:
        """Close the engine; one that has lost its device may fail at that, too."""
        engine, self._engine = self._engine, None
        for close in (self.backend.close, engine.close) if engine is not None else ():
            try:
                close()
            except Exception as error:
                log.warning(f"{self.title}: the engine could not be closed: {error}")

    def close(self) -> None:
        """Close the engine and the database."""
        with self._guard:
            self._close_engine()
            self.database.close()


def names_of(paths: Sequence[Path]) -> dict[str, Path]:
    """Return database files by their names in requests, which are the file names without the extension."""
    named: dict[str, Path] = {}
    for path in paths:
        if (name := path.stem) in named:
            raise InputError(
                f"{named[name]} and {path}: got two databases that go by {name!r}, expected different names; rename "
                "one of the files"
            )
        named[name] = path
    if not named:
        raise InputError("got no database, expected at least one")
    return named


@contextlib.contextmanager
def open_databases(settings: ServerSettings) -> Iterator[dict[str, ServedDatabase]]:
    """Open all databases in the order of the settings, and close them at the end."""
    named = names_of(settings.databases)
    with ExitStack() as opened:
        databases: dict[str, ServedDatabase] = {}
        for name in sorted(named, key=lambda name: _size_of(named[name])):
            databases[name] = ServedDatabase(name, named[name], settings)
            opened.callback(databases[name].close)
        yield {name: databases[name] for name in named}


def _size_of(path: Path) -> int:
    """Return the approximate size of a database; a manifest names files that are larger than itself."""
    with contextlib.suppress(OSError):
        return path.stat().st_size << 20 * is_manifest(path)
    return 0


def with_engine(database: ServedDatabase, work: Callable[[EngineLease], Outcome]) -> Outcome:
    """Run a search with a database's engine, which is replaced if it fails.

    A search that fails because another search made the engine fail runs again with the new engine.
    """
    for _ in range(MAX_BEGUN):
        lease = database.lease()
        try:
            outcome = work(lease)
        except Exception as error:
            if isinstance(error, (InputError, ServerProblem)) or database.is_current(lease):
                note_failure(database, lease, error)
                raise
        else:
            database.report_success(lease)
            return outcome
    raise EngineError(f"the engine failed {MAX_BEGUN} times under other searches; submit this one again")


def note_failure(database: ServedDatabase, lease: EngineLease, error: Exception) -> None:
    """Replace the engine, or record damage of the file, if the error of a search shows that."""
    if isinstance(error, (InputError, ServerProblem)) or not database.is_current(lease):
        return
    if isinstance(error, DatabaseError):
        database.report_damage(str(error))
    elif isinstance(error, (EngineError, MemoryLimitError)) or is_driver_error(error):
        # a search that is too large for the memory does not show that the engine is broken
        database.reopen(lease, str(error) or type(error).__name__, counts=not isinstance(error, MemoryLimitError))


def without_folders(text: str, folders: Sequence[Path]) -> str:
    """Return a message for clients, without the names of the server's folders."""
    for folder in folders:
        text = text.replace(str(folder).rstrip(os.sep) + os.sep, "")
    return text
