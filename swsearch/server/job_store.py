"""Jobs in one SQLite file: requests, states and the queue.

A server's folder holds ``lock`` and ``jobs.sqlite``; ``jobs/ID/checkpoint/``, the saved results of a job
(`swsearch.pipeline.checkpoint`); and ``jobs/ID/outputs/``, its files. A job exists if its row does. The table is the
queue, too, so a restart restores nothing.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import secrets
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from swsearch.client.search_request import SearchRequest
from swsearch.errors import InputError, OutputError
from swsearch.options.kinds import JOB_STATES, JobState
from swsearch.pipeline.checkpoint import LOCK
from swsearch.pipeline.fingerprint import PROGRAM_NAMES
from swsearch.report.outputs import JobOutput
from swsearch.run_info import Program
from swsearch.server.errors import ServerProblem

ENDED: tuple[JobState, ...] = ("done", "failed", "cancelled")

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Letters of identifiers; no two look alike."""

IDENTIFIER_LENGTH = 20
"""Letters of an identifier: 100 bits, which nobody can guess."""

STORE_VERSION = 3
"""Version of the table."""

MAX_CRASHES = 3
"""Deaths of the server while a job ran, without progress since the one before; the job may be the cause."""

TABLE_BUSY_SECONDS = 30.0
"""Seconds that SQLite waits for another program that reads the table."""

SECONDS_PER_DAY = 86_400.0

FULL_NUMBERS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def new_identifier() -> str:
    """Return a random identifier of a job, which is its RID in BLAST's URL API too."""
    return "".join(secrets.choice(LETTERS) for _ in range(IDENTIFIER_LENGTH))


def is_identifier(text: str) -> bool:
    """Return whether a text has the form of an identifier; no other text may become part of a path."""
    return len(text) == IDENTIFIER_LENGTH and all(letter in LETTERS for letter in text)


def payer_of(client: str) -> str:
    """Return the token or address that a client's jobs count for, whatever browser it names."""
    return client.partition("/")[0]


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job at one moment. Times are seconds of the Unix clock. All fields but the last four are columns."""

    identifier: str
    group: str
    """Identifier of the first of the jobs that were submitted together, one per database."""
    client: str
    payer: str
    database: str
    title: str
    options: dict[str, Any]
    n_queries: int
    n_residues: int
    cells: int
    """Query residues times subject residues."""
    submitted: float
    state: JobState = "queued"
    started: float | None = None
    ended: float | None = None
    expires: float | None = None
    problem: dict[str, Any] | None = None
    """Reason for the failure of the job, as the inner part of `ServerProblem.to_json`."""
    n_hits: int | None = None
    outputs: tuple[str, ...] = ()
    """Formats of its files."""
    notes: tuple[str, ...] = ()
    """Warnings, and queries without E-values."""
    progress: float = field(default=0.0, metadata={"stored": False})
    cells_done: int = field(default=0, metadata={"stored": False})
    work_left: float | None = field(default=None, metadata={"stored": False})
    """Cells to score per cell that was scored since `started`; None if too few were."""
    queue_position: int | None = field(default=None, metadata={"stored": False})
    """Number of jobs ahead in the queue."""

    def program(self, is_dna: bool) -> Program:
        """Return BLAST's name of the search, by whether the database is DNA."""
        return PROGRAM_NAMES[bool(self.options.get("translate")), is_dna]

    @property
    def is_ended(self) -> bool:
        """Whether the job is done, failed or cancelled."""
        return self.state in ENDED


_COLUMNS = tuple(each.name for each in fields(Job) if each.metadata.get("stored", True))

_JSON_COLUMNS = ("options", "problem", "notes", "outputs")

_TABLES = f"""
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT, {", ".join(f'"{name}"' for name in _COLUMNS)},
    deaths INTEGER DEFAULT 0, saved INTEGER DEFAULT 0, UNIQUE (identifier)
);
CREATE TABLE IF NOT EXISTS inputs (identifier PRIMARY KEY, queries BLOB, asked TEXT);
CREATE TABLE IF NOT EXISTS submissions (client, key, "group", digest, PRIMARY KEY (client, key));
CREATE TABLE IF NOT EXISTS gone (identifier PRIMARY KEY, until REAL);
CREATE INDEX IF NOT EXISTS jobs_by_state ON jobs (state, payer, number);
CREATE INDEX IF NOT EXISTS jobs_by_payer ON jobs (payer, started);
CREATE INDEX IF NOT EXISTS jobs_by_client ON jobs (client, number);
CREATE INDEX IF NOT EXISTS jobs_by_group ON jobs ("group", number);
CREATE TEMP VIEW turns AS  -- payers take turns, each with its oldest job; who had the last turn longest ago is first
    SELECT identifier, payer, row_number() OVER (ORDER BY turn, coalesce(last, 0), first) - 1 AS queue_position FROM (
        SELECT identifier, payer, last, row_number() OVER own AS turn, first_value(number) OVER own AS first
        FROM jobs LEFT JOIN (SELECT payer, max(started) AS last FROM jobs GROUP BY payer) USING (payer)
        WHERE state = 'queued' WINDOW own AS (PARTITION BY payer ORDER BY number));
PRAGMA user_version = {STORE_VERSION};
"""


class JobStore:
    """The jobs of a server. Any thread may call its methods.

    The constructor makes the folder, for its owner only. It raises `InputError` if another server uses the folder or
    the table cannot be read, and `OutputError` if the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._jobs = folder, folder / "jobs"
        self._guard = threading.RLock()
        path = folder / "jobs.sqlite"
        with contextlib.ExitStack() as opened:
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._jobs.mkdir(exist_ok=True, mode=0o700)
                lock = opened.enter_context((folder / "lock").open("w"))
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._table = sqlite3.connect(path, TABLE_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
                opened.callback(self._table.close)
                self._table.row_factory = sqlite3.Row
                (version,) = self._table.execute("PRAGMA user_version").fetchone()
                if version not in (0, STORE_VERSION):
                    raise InputError(
                        f"folder: {path} is of version {version}, expected {STORE_VERSION}; let the version of "
                        "swsearch that wrote it finish its jobs, then move it away, or give another --folder"
                    )
                self._table.executescript(f"PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; {_TABLES}")
                self._restart()
            except BlockingIOError:
                raise InputError(
                    f"folder: {folder} is in use by another server; end that one, or give another --folder"
                ) from None
            except OSError as error:
                raise OutputError(f"folder: {folder} cannot be used: {error.strerror or error}") from error
            except sqlite3.Error as error:
                if is_full(error):
                    raise disk_full() from error
                raise InputError(
                    f"folder: {path} cannot be read ({error}); move it away, or give another --folder"
                ) from error
            self._closing = opened.pop_all()

    def close(self) -> None:
        """Release the folder for other servers."""
        with self._guard:
            self._closing.close()

    def _restart(self) -> None:
        """Queue the jobs that ran when the server died, unless they may be the cause; remove folders of no job."""
        problem = ServerProblem(
            "failed",
            f"the server died {MAX_CRASHES} times while this job ran, without progress; send its queries in smaller "
            "parts",
        ).to_json()["error"]
        with self._transaction() as table:
            for row in table.execute("SELECT identifier, deaths, saved FROM jobs WHERE state = 'running'").fetchall():
                saved = self._n_saved(row["identifier"])
                deaths = 0 if saved > row["saved"] else row["deaths"] + 1
                end = (
                    ("failed", time.time(), json.dumps(problem)) if deaths >= MAX_CRASHES else ("queued", None, None)
                )
                table.execute(
                    "UPDATE jobs SET deaths = ?, saved = ?, state = ?, ended = ?, problem = ? WHERE identifier = ?",
                    (deaths, saved, *end, row["identifier"]),
                )
            identifiers = {row["identifier"] for row in table.execute("SELECT identifier FROM jobs")}
        for folder in self._jobs.iterdir():
            if folder.name not in identifiers:
                shutil.rmtree(folder, ignore_errors=True)

    def _n_saved(self, identifier: str) -> int:
        """Return the number of the last file of a job's checkpoint, which grows as the job advances."""
        names = [each.name for each in self.checkpoint_of(identifier).glob("queries-*")]
        return max((int(name.partition("-")[2]) for name in names if name.partition("-")[2].isdecimal()), default=0)

    @contextlib.contextmanager
    def _transaction(self, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """Open a transaction; if ``durable``, it is on disk when this ends."""
        with self._guard:
            try:
                self._table.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._table.execute("BEGIN IMMEDIATE")
                try:
                    yield self._table
                    self._table.execute("COMMIT")
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):
                        self._table.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise (disk_full() if is_full(error) else error) from error

    # the queue

    def add(
        self,
        jobs: Sequence[Job],
        requests: Sequence[SearchRequest],
        max_active: int,
        max_of_payer: int,
        key: str = "",
    ) -> str:
        """Queue jobs that one client submitted together, and return their group: all are on disk then, or none.

        If the client submitted the same with this key before, return that group and queue nothing. It raises
        ``too_many`` if the queue is full, ``disk_full``, or ``wrong`` if the key was used for other searches.
        """
        group, client = jobs[0].group, jobs[0].client
        digest = _digest(requests) if key else ""
        names = ", ".join(f'"{name}"' for name in _COLUMNS)
        with self._transaction(durable=True) as table:
            same = 'SELECT "group", digest FROM submissions WHERE client = ? AND key = ?'
            for row in table.execute(same, [client, key]).fetchall() if key else ():
                if row["digest"] != digest:
                    message = (
                        f"Idempotency-Key: got {key[:80]!r} again for another search, expected a new key; with "
                        "--checkpoint choose another folder"
                    )
                    raise ServerProblem("wrong", message, option="Idempotency-Key")
                return str(row["group"])
            counted = "SELECT count(*), coalesce(sum(payer = ?), 0) FROM jobs WHERE state IN ('queued', 'running')"
            active, own = table.execute(counted, [jobs[0].payer]).fetchone()
            if active + len(jobs) > max_active:
                why = f"{active:,} jobs wait or run, of at most {max_active:,}"
                raise ServerProblem("too_many", f"the queue is full: {why}; ask again later", retry_after=10)
            if own + len(jobs) > max_of_payer:
                why = f"{own:,} of your jobs wait or run, of at most {max_of_payer:,}"
                raise ServerProblem("too_many", f"{why}; submit more when some are done", retry_after=10)
            for job, request in zip(jobs, requests, strict=True):
                values = [_encode_column(name, getattr(job, name)) for name in _COLUMNS]
                table.execute(f"INSERT INTO jobs ({names}) VALUES ({', '.join('?' * len(values))})", values)
                fields = {name: value for name, value in request.to_json().items() if name != "queries"}
                row = (job.identifier, request.queries, json.dumps(fields))
                table.execute("INSERT INTO inputs VALUES (?, ?, ?)", row)
            if key:
                table.execute("INSERT INTO submissions VALUES (?, ?, ?, ?)", [client, key, group, digest])
        return group

    def claim(self, n_workers: int) -> Job | None:
        """Set the next job of the queue running and return it; None if no job may run.

        A payer gets at most as many workers as then remain for others, so that later payers find one.
        """
        with self._transaction() as table:
            counted = "SELECT payer, count(*) FROM jobs WHERE state = 'running' GROUP BY payer"
            running = {payer: int(count) for payer, count in table.execute(counted)}
            free = n_workers - sum(running.values())
            for row in table.execute("SELECT identifier, payer FROM turns ORDER BY queue_position"):
                if running.get(row["payer"], 0) < free:
                    started = "UPDATE jobs SET state = 'running', started = ? WHERE identifier = ?"
                    table.execute(started, [time.time(), row["identifier"]])
                    return self.job(row["identifier"])
        return None

    def release(self, identifier: str) -> None:
        """Queue a job again that runs."""
        with self._transaction() as table:
            table.execute("UPDATE jobs SET state = 'queued', started = NULL WHERE identifier = ?", [identifier])

    def end(self, identifier: str, was: JobState, state: JobState, keep_days: float, **changes: Any) -> bool:
        """Record the end of a job, on disk; return False if the job was in another state."""
        now = time.time()
        changes |= {"state": state, "ended": now, "expires": now + keep_days * SECONDS_PER_DAY}
        names = ", ".join(f"{name} = ?" for name in changes)
        values = [_encode_column(name, value) for name, value in changes.items()]
        with self._transaction(durable=True) as table:
            where = "identifier = ? AND state = ?"
            n_changed = table.execute(f"UPDATE jobs SET {names} WHERE {where}", [*values, identifier, was]).rowcount
        if state != "done" and n_changed:
            self._drop_checkpoint(identifier)
        return n_changed > 0

    def _drop_checkpoint(self, identifier: str) -> None:
        """Remove what a job found, unless another process uses it."""
        checkpoint = self.checkpoint_of(identifier)
        with contextlib.suppress(OSError), (checkpoint / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(checkpoint.parent, ignore_errors=True)

    def delete(self, identifier: str, until: float | None = None) -> None:
        """Remove a job and all that it has; remember until a time that it existed, if there is one."""
        with self._guard:  # who finds the row finds the folder
            shutil.rmtree(self._jobs / identifier, ignore_errors=True)  # first: it may make room for the rest
            with self._transaction() as table:
                table.execute("DELETE FROM jobs WHERE identifier = ?", [identifier])
                table.execute("DELETE FROM inputs WHERE identifier = ?", [identifier])
                table.execute('DELETE FROM submissions WHERE "group" = ?', [identifier])
                table.execute("DELETE FROM gone WHERE until <= ?", [time.time()])
                if until is not None:
                    table.execute("INSERT OR REPLACE INTO gone VALUES (?, ?)", [identifier, until])
            self._table.execute("PRAGMA incremental_vacuum").fetchall()

    # reading

    def job(self, identifier: str) -> Job:
        """Return a job; raise ``expired`` if it was removed when its time was over, else ``not_found``."""
        for job in self._select("identifier = ?", [identifier]):
            return job
        with self._guard:
            gone = self._table.execute("SELECT 1 FROM gone WHERE identifier = ?", [identifier[:100]]).fetchone()
        if gone:
            raise ServerProblem("expired", f"job {identifier}: its time is over and it was removed; submit it again")
        raise ServerProblem("not_found", f"job {identifier[:40]!r}: there is no such job; check the identifier")

    def jobs_of(self, client: str, count: int, states: Sequence[str] = JOB_STATES) -> list[Job]:
        """Return the last jobs of a client that are in some states, the last first."""
        marks = ", ".join("?" * len(states))
        return self._select(f"client = ? AND state IN ({marks})", [client, *states], f"DESC LIMIT {int(count)}")

    def group(self, identifier: str) -> list[Job]:
        """Return the jobs that were submitted with a job, in their order."""
        return self._select('"group" = ?', [self.job(identifier).group])

    def expired(self) -> list[str]:
        """Return the identifiers of jobs whose time is over."""
        return [job.identifier for job in self._select("expires <= ?", [time.time()])]

    def request(self, identifier: str) -> SearchRequest:
        """Return the request of a job; raise as `job` does."""
        with self._guard:
            row = self._table.execute("SELECT * FROM inputs WHERE identifier = ?", [identifier]).fetchone()
        if row is None:
            self.job(identifier)
        fields = json.loads(row["asked"])
        return SearchRequest(fields.pop("database"), row["queries"], **fields)

    def counts(self) -> dict[str, int]:
        """Return the number of jobs by state."""
        with self._guard:
            rows = self._table.execute("SELECT state, count(*) FROM jobs GROUP BY state").fetchall()
        return {str(state): int(count) for state, count in rows}

    def checkpoint_of(self, identifier: str) -> Path:
        """Return the folder of a job's checkpoint."""
        assert is_identifier(identifier)
        return self._jobs / identifier / "checkpoint"

    def outputs_of(self, job: Job) -> list[JobOutput]:
        """Return the files of a job, which are there when it is done."""
        folder = self._jobs / job.identifier / "outputs"
        return [JobOutput(folder, number, outfmt) for number, outfmt in enumerate(job.outputs)]

    def _select(self, where: str, values: Sequence[Any], order: str = "") -> list[Job]:
        position = "SELECT queue_position FROM turns WHERE turns.identifier = jobs.identifier"
        columns = f"*, CASE state WHEN 'queued' THEN ({position}) END AS queue_position"
        with self._guard:
            query = f"SELECT {columns} FROM jobs WHERE {where} ORDER BY number {order}"
            return [_job_of(row) for row in self._table.execute(query, values).fetchall()]


def _digest(requests: Sequence[SearchRequest]) -> str:
    """Return the checksum of requests, whose times differ when they are repeated."""
    contents = [{**each.to_json(), "origin": {**each.origin, "started": ""}} for each in requests]
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()


def _encode_column(name: str, value: Any) -> Any:
    return json.dumps(value) if name in _JSON_COLUMNS and value is not None else value


def _job_of(row: sqlite3.Row) -> Job:
    columns = {name: row[name] for name in (*_COLUMNS, "queue_position")}
    columns |= {name: json.loads(columns[name]) for name in _JSON_COLUMNS if columns[name] is not None}
    columns |= {name: tuple(columns[name]) for name in ("notes", "outputs")}
    if columns["state"] == "done":
        columns |= {"progress": 1.0, "cells_done": columns["cells"]}
    return Job(**columns)


def is_full(error: BaseException) -> bool:
    """Return whether an error means that the disk is full."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    return isinstance(error, OSError) and error.errno in FULL_NUMBERS


def disk_full() -> ServerProblem:
    """Return the problem of a request or a job that the disk has no room for."""
    message = "the server's disk has no room for this; tell whoever runs it, or try again later"
    return ServerProblem("disk_full", message, retry_after=60)
