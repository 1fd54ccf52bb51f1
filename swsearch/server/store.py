"""Jobs on the disk: a table in SQLite, and a folder for each with its queries and what was found.

A server's folder holds::

    lock                     locked by the server that uses the folder
    jobs.sqlite              the table
    jobs/ID/queries          as they were sent
    jobs/ID/asked.json       the rest of the request
    jobs/ID/checkpoint/      what was found; see `swsearch.pipeline.checkpoint`

A job is there when its row is: its folder is written before, and removed after the row. What a server that was killed
left without a row is removed when the next one begins.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from swsearch.errors import InputError, OutputError
from swsearch.output_files import sync_folder
from swsearch.pipeline.checkpoint import LOCK
from swsearch.remote.wire import SearchRequest
from swsearch.server.jobs import Job, is_identifier
from swsearch.server.problems import ServerProblem

_QUERIES, _ASKED = "queries", "asked.json"

KEPT = "checkpoint"
"""What was found, in the folder of a job."""

OLD_RESULTS = "results"
"""The same of a job with iterations, as earlier versions stored it; it cannot be read."""

STORE_VERSION = 1
"""Of the table; one that a later server made is refused."""

MOST_DEATHS = 3
"""Deaths of the server that a job may be running at: it may be what kills it."""

SECONDS_BUSY = 30.0
"""That SQLite waits for a program that looks at the table."""

_COLUMNS = (
    "identifier", "grp", "client", "database", "title", "state", "options", "n_queries", "n_residues", "cells",
    "submitted", "begun", "ended", "expires", "problem", "n_hits", "notes", "deaths",
)  # fmt: skip

_AS_JSON = ("options", "problem", "notes")

_TABLES = f"""
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT, {", ".join(_COLUMNS)}, UNIQUE (identifier)
);
CREATE INDEX IF NOT EXISTS jobs_by_client ON jobs (client, number);
CREATE INDEX IF NOT EXISTS jobs_by_group ON jobs (grp, number);
CREATE INDEX IF NOT EXISTS jobs_by_state ON jobs (state, number);
CREATE TABLE IF NOT EXISTS gone (identifier PRIMARY KEY, until);
"""

FULL_NUMBERS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Store:
    """The jobs of a server on the disk; methods may be called from any thread.

    Parameters
    ----------
    folder : Path
        Made if it is not there, for its owner alone.

    Raises
    ------
    InputError
        If another server uses the folder, or what it holds cannot be read.
    OutputError
        If it cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._jobs = folder, folder / "jobs"
        self._guard = threading.RLock()
        self._unsaved: dict[str, dict[str, Any]] = {}
        """Changes that could not be written for want of room, by job; they count, and are tried again."""
        self._forgotten: dict[str, float | None] = {}
        """The same of jobs that are gone, with the time until which to remember them."""
        self._table: sqlite3.Connection | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = self._locked(folder / "lock")
        except OSError as error:
            raise OutputError(f"folder: {folder} cannot be used: {error.strerror or error}") from error
        try:
            with _full():
                self._jobs.mkdir(exist_ok=True)
                self._open(folder / "jobs.sqlite")
            self._remove_abandoned()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _locked(path: Path) -> int:
        number = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(number)
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise InputError(
                    f"folder: {path.parent} is in use by another server; end that one, or give another --folder"
                ) from None
            raise
        return number

    def _open(self, path: Path) -> None:
        try:
            self._table = table = sqlite3.connect(
                path, timeout=SECONDS_BUSY, isolation_level=None, check_same_thread=False
            )
            table.row_factory = sqlite3.Row
            table.execute("PRAGMA journal_mode = WAL")
            table.execute("PRAGMA synchronous = FULL")
            version = table.execute("PRAGMA user_version").fetchone()[0]
            if version > STORE_VERSION:
                raise InputError(
                    f"folder: {path} is of version {version}, this swsearch reads up to {STORE_VERSION}; upgrade "
                    "swsearch, or give another --folder"
                )
            table.executescript(_TABLES)
            table.execute(f"PRAGMA user_version = {STORE_VERSION}")
        except sqlite3.DatabaseError as error:
            if is_full(error):
                raise
            raise InputError(
                f"folder: {path} cannot be read ({error}); restore it, or move it away to begin without jobs"
            ) from error

    def close(self) -> None:
        """Let others use the folder; what could not be written before is tried once more."""
        with self._guard:
            table, self._table = self._table, None
            if table is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._save(table)
                table.close()
            lock, self._lock = self._lock, -1
            if lock >= 0:
                os.close(lock)

    def _remove_abandoned(self) -> None:
        """Remove the folders that no row tells of, and rows of jobs that were removed while there was no room."""
        known = {row[0] for row in self._held.execute("SELECT identifier FROM jobs")}
        there = {each.name for each in self._jobs.iterdir()}
        for name in there - known:
            shutil.rmtree(self._jobs / name, ignore_errors=True)
        for identifier in known - there:
            self.forget(identifier)

    @property
    def _held(self) -> sqlite3.Connection:
        if self._table is None:
            raise ServerProblem("unavailable", "the server is ending; ask again when it was started", retry_after=10)
        return self._table

    # jobs as rows

    def add(self, jobs: Sequence[Job], requests: Sequence[SearchRequest]) -> None:
        """Keep jobs that were submitted together; they are on the disk, all or none, when this returns.

        Raises
        ------
        ServerProblem
            ``disk_full`` if there is no room; nothing of them is left then.
        """
        folders = [self.folder_of(job.identifier) for job in jobs]
        try:
            with _full():
                for folder, request in zip(folders, requests, strict=True):
                    folder.mkdir(mode=0o700)
                    _write(folder / _QUERIES, request.queries)
                    asked = {name: value for name, value in request.stated().items() if name != "queries"}
                    _write(folder / _ASKED, json.dumps(asked).encode())
                    sync_folder(folder)
                sync_folder(self._jobs)
                with self._changing() as table:
                    marks = ", ".join("?" * len(_COLUMNS))
                    rows = [_row_of(job) for job in jobs]
                    table.executemany(f"INSERT INTO jobs ({', '.join(_COLUMNS)}) VALUES ({marks})", rows)
        except BaseException:
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)
            raise

    def update(self, identifier: str, *, lasting: bool = False, **changes: Any) -> None:
        """Change what is known of a job.

        Where there is no room, the change counts all the same, until the server ends, and is tried again.

        Parameters
        ----------
        identifier : str
            The job; if it is gone nothing is done.
        lasting : bool
            Whether it is on the disk when this returns. Otherwise it is there whatever becomes of the program, and
            lost if the machine fails: then the job is done again.
        **changes
            By the names of `Job`, and ``deaths``.
        """
        values = {name: _packed(name, value) for name, value in changes.items()}
        with self._guard:
            self._unsaved.setdefault(identifier, {}).update(values)
            self._write_waiting(lasting)

    def _write_waiting(self, lasting: bool) -> None:
        """Write what waits to be written, if there is room."""
        try:
            with self._changing(lasting):
                pass
        except ServerProblem as problem:
            if problem.code != "disk_full":
                raise

    def _save(self, table: sqlite3.Connection) -> None:
        for identifier, values in self._unsaved.items():
            names = ", ".join(f"{name} = ?" for name in values)
            table.execute(f"UPDATE jobs SET {names} WHERE identifier = ?", (*values.values(), identifier))
        for identifier, until in self._forgotten.items():
            table.execute("DELETE FROM jobs WHERE identifier = ?", [identifier])
            if until is not None:
                table.execute("INSERT OR REPLACE INTO gone VALUES (?, ?)", [identifier, until])
        if self._forgotten:
            table.execute("DELETE FROM gone WHERE until <= ?", [time.time()])

    @contextlib.contextmanager
    def _changing(self, lasting: bool = True) -> Iterator[sqlite3.Connection]:
        """Give the table to be changed, all or nothing."""
        with self._guard, _full():
            table = self._held
            table.execute(f"PRAGMA synchronous = {'FULL' if lasting else 'NORMAL'}")
            table.execute("BEGIN IMMEDIATE")
            try:
                self._save(table)
                yield table
                table.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    table.execute("ROLLBACK")
                raise
            self._unsaved.clear()
            self._forgotten.clear()

    def job(self, identifier: str) -> Job:
        """Return a job.

        Raises
        ------
        ServerProblem
            ``expired`` if it was there, ``not_found`` otherwise.
        """
        found = self._selected("identifier = ?", [identifier]) if is_identifier(identifier) else []
        if found:
            return found[0]
        with self._guard:
            gone = self._held.execute("SELECT 1 FROM gone WHERE identifier = ?", [identifier[:100]]).fetchone()
            gone = gone or self._forgotten.get(identifier)
        if gone:
            raise ServerProblem("expired", f"job {identifier}: its time is over and it was removed; submit it again")
        raise ServerProblem("not_found", f"job {identifier[:40]!r}: there is no such job; check the identifier")

    def group(self, identifier: str) -> list[Job]:
        """Return the jobs that were submitted together, in their order; none is an empty list."""
        return self._selected("grp = ?", [identifier])

    def jobs_of(self, client: str, most: int) -> list[Job]:
        """Return the jobs of a client, the last first."""
        return self._selected("client = ?", [client], f"DESC LIMIT {int(most)}")

    def in_state(self, *states: str) -> list[Job]:
        """Return the jobs in some states, in the order that they were submitted in."""
        return self._selected(f"state IN ({', '.join('?' * len(states))})", states)

    def counts(self) -> dict[str, int]:
        """Return how many jobs there are by state."""
        with self._guard:
            found = self._held.execute("SELECT state, COUNT(*) FROM jobs GROUP BY state").fetchall()
        return {str(state): int(count) for state, count in found}

    def expired(self, now: float) -> list[str]:
        """Return the jobs whose time is over."""
        with self._guard:
            found = self._held.execute("SELECT identifier FROM jobs WHERE expires <= ?", [now]).fetchall()
            return [str(row[0]) for row in found if row[0] not in self._forgotten]

    def _selected(self, where: str, values: Sequence[Any], order: str = "") -> list[Job]:
        with self._guard:
            rows = self._held.execute(f"SELECT * FROM jobs WHERE {where} ORDER BY number {order}", values).fetchall()
            there = [dict(row) for row in rows if row["identifier"] not in self._forgotten]
            return [_job_of({**row, **self._unsaved.get(row["identifier"], {})}) for row in there]

    def forget(self, identifier: str, until: float | None = None) -> None:
        """Remove a job's row; its folder is removed by `clear`.

        Where there is no room the job is gone all the same, so that removing its folder makes some.

        Parameters
        ----------
        identifier : str
            The job.
        until : float, optional
            Until when to remember that it was there; by default not at all.
        """
        with self._guard:
            self._forgotten[identifier] = until
            self._write_waiting(lasting=False)

    def clear(self, identifier: str) -> None:
        """Remove the folder of a job whose row is gone."""
        shutil.rmtree(self.folder_of(identifier), ignore_errors=True)

    def restarted(self) -> list[Job]:
        """Return the jobs that are to run, when a server begins; those that were running begin again.

        One that was running each time that the server died has failed.
        """
        with self._guard:
            rows = self._held.execute("SELECT identifier, deaths FROM jobs WHERE state = 'running'").fetchall()
        for identifier, deaths in rows:
            if deaths + 1 < MOST_DEATHS:
                self.update(identifier, state="queued", deaths=deaths + 1, begun=None)
            else:
                self.update(identifier, state="failed", deaths=deaths + 1, ended=time.time(), problem=_DEADLY)
        return self.in_state("queued")

    # jobs as folders

    def folder_of(self, identifier: str) -> Path:
        """Return where a job's files are."""
        assert is_identifier(identifier)  # nothing else may come near a path
        return self._jobs / identifier

    def drop_kept(self, identifier: str) -> None:
        """Remove what was found for a job that will not be done, unless another process uses it."""
        kept = self.folder_of(identifier) / KEPT
        with contextlib.suppress(OSError), (kept / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(kept, ignore_errors=True)

    def queries(self, identifier: str) -> bytes:
        """Return a job's queries as they were sent."""
        return (self.folder_of(identifier) / _QUERIES).read_bytes()

    def request(self, identifier: str) -> SearchRequest:
        """Return what a job was asked for."""
        asked = json.loads((self.folder_of(identifier) / _ASKED).read_bytes())
        return SearchRequest(asked.pop("database"), self.queries(identifier), **asked)


_DEADLY = ServerProblem(
    "failed", f"the server died {MOST_DEATHS} times while this job ran; send its queries in smaller parts"
).stated()["error"]


def _packed(name: str, value: Any) -> Any:
    return json.dumps(value) if name in _AS_JSON and value is not None else value


def _row_of(job: Job) -> list[Any]:
    known = {**vars(job), "grp": job.group, "deaths": 0}
    return [_packed(name, known[name]) for name in _COLUMNS]


def _job_of(row: Mapping[str, Any]) -> Job:
    done = row["state"] == "done"
    known = {name: json.loads(value) if name in _AS_JSON and value else value for name, value in row.items()}
    known |= {"group": row["grp"], "notes": tuple(known["notes"]), "progress": float(done)}
    known |= {"cells_done": row["cells"] if done else 0}
    return Job(**{each.name: known[each.name] for each in fields(Job) if each.name in known})


def _write(path: Path, data: bytes) -> None:
    """Write a file; it is on the disk when this returns, once its folder is."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def is_full(error: BaseException) -> bool:
    """Say whether an error means that nothing more can be written."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    return isinstance(error, OSError) and error.errno in FULL_NUMBERS


@contextlib.contextmanager
def _full() -> Iterator[None]:
    """Turn what says that there is no room, or nothing can be written, into what is told to whoever asked."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        if is_full(error):
            raise disk_full() from error
        raise


def disk_full() -> ServerProblem:
    """Return what is told of a disk that has no room."""
    return ServerProblem(
        "disk_full",
        "the server's disk has no room for this; tell whoever runs it, or try again later",
        retry_after=60,
    )
