"""A search that a server runs: its job there, from the request to the results."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from swsearch.engines.base import Progress
from swsearch.engines.choice import checked
from swsearch.errors import InputError, ServerError
from swsearch.output_files import open_outputs
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.prefetch import Stopped
from swsearch.remote.asking import AskedQueries, request_for
from swsearch.remote.frames import BrokenOffError
from swsearch.remote.received import ReceivedResults, ReceivedSearch
from swsearch.remote.service import RECEIVED_BYTES, STATES_OF_JOBS, ServerNotice, Service
from swsearch.remote.transfer import TransferReader
from swsearch.remote.wire import SearchRequest
from swsearch.run_info import Origin

POLL_SECONDS = 1.0
"""Seconds that the server lets a question for a job's state wait, if the job does not end before."""

TIMES_REOPENED = 3
"""Times that results which broke off are asked for again."""


@dataclass(frozen=True)
class SearchToSend:
    """A search that is asked for, with its queries as they were read.

    Parameters
    ----------
    queries : AskedQueries
        The queries.
    options : SearchOptions
        What is asked for.
    origin : Origin
        Where queries and command come from.
    """

    queries: AskedQueries
    options: SearchOptions
    origin: Origin


class SearchThere:
    """A search on its way: its job on the server, from the first result that is asked for to its end.

    Parameters
    ----------
    service : Service
        Asks the server.
    asked : SearchToSend
        What to search with.
    database : str
        Of the server.
    threads : int or None
        Of this machine, for alignments.
    notice : callable or None
        Told why there is nothing to see for a while.
    """

    def __init__(
        self, service: Service, asked: SearchToSend, database: str, threads: int | None, notice: ServerNotice | None
    ) -> None:
        self._service, self._asked, self._database, self._notice = service, asked, database, notice
        self.threads = threads
        self.progress: Progress | None = None
        self._job: ServerJob | None = None
        self._close: Callable[[], None] = lambda: None
        self._left = TIMES_REOPENED
        self._is_stopped = False

    def stop(self) -> None:
        """Let whoever waits for the server raise `Stopped`, within a second."""
        self._is_stopped = True

    def opened(self, options: SearchOptions) -> ReceivedSearch:
        """Have the server search, and return what reads the results; on any error the job is removed."""
        asked = self._asked
        request = request_for(self._database, asked.queries, options, asked.origin)
        try:
            stated = self._service.submitted(request, self._notice)
            self._job = ServerJob(self._service, stated, request, asked.origin)
            for done in self._job.steps(notice=self._notice):
                if self._is_stopped:
                    raise Stopped
                if self.progress is not None and done:
                    self.progress(done)
            reader, threads = self._reader(), self.threads
            return ReceivedSearch(reader, request, asked.origin, threads, options.distribution, self._reopened)
        except BaseException:
            self.end()
            raise

    def _reader(self) -> TransferReader:
        assert self._job is not None
        self._close()
        reader, self._close = self._service.opened(self._job.identifier)
        return reader

    def _reopened(self, error: BrokenOffError) -> TransferReader:
        if not self._left:
            raise error
        self._left -= 1
        if self._notice is not None:
            self._notice(f"{error}")
        return self._reader()

    def end(self) -> None:
        """Close what is open, and have the server stop and remove the job."""
        self._close()
        job, self._job = self._job, None
        if job is not None:
            with contextlib.suppress(ServerError, InputError):  # it expires there otherwise
                self._service.forget(job.identifier)


class ServerJob:
    """A search that a server runs, or ran, and keeps.

    Parameters
    ----------
    service : Service
        Asks the server.
    stated : dict
        The job, as the server states it.
    request : SearchRequest, optional
        What was asked for, where it was submitted here.
    origin : Origin, optional
        Where queries and command come from, where it was submitted here.
    """

    def __init__(
        self, service: Service, stated: dict[str, Any],
        request: SearchRequest | None = None, origin: Origin | None = None,
    ) -> None:  # fmt: skip
        self._service, self._request, self._origin = service, request, origin
        identifier = stated.get("id")
        if not isinstance(identifier, str) or not identifier.isalnum() or stated.get("state") not in STATES_OF_JOBS:
            raise service.strange("describes jobs")
        self.identifier: str = identifier
        """What the server calls it; whoever knows it may read it."""
        self.stated = stated
        """All that the server said of it last."""

    def __repr__(self) -> str:
        return f"<ServerJob {self.identifier} of {self._service.where}: {self.stated['state']}>"

    @property
    def state(self) -> Literal["queued", "running", "done", "failed", "cancelled"]:
        """What has become of it, asked of the server now."""
        self.stated = self._service.state_of(self.identifier)
        found: Literal["queued", "running", "done", "failed", "cancelled"] = self.stated["state"]
        return found

    def wait(self, timeout: float | None = None, *, progress: Progress | None = None) -> ServerJob:
        """Wait until it is done, and return it.

        Parameters
        ----------
        timeout : float, optional
            Seconds after which to go on anyway; `state` then says how far it is.
        progress : callable, optional
            Called with the number of cells just finished.

        Raises
        ------
        InputError, ServerError
            If it failed or was cancelled, with the reason; if the server is out of reach for minutes.
        """
        for done in self.steps(timeout):
            if progress is not None and done:
                progress(done)
        return self

    def steps(self, timeout: float | None = None, notice: ServerNotice | None = None) -> Iterator[int]:
        """Yield the number of cells just finished, every second or so, until it is done; see `wait`.

        Parameters
        ----------
        timeout : float, optional
            As for `wait`.
        notice : callable, optional
            Told when the server cannot be reached for a while.
        """
        told = 0
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = POLL_SECONDS if end is None else min(POLL_SECONDS, end - time.monotonic())
            stated = self.stated = self._service.state_of(self.identifier, max(left, 0.01), notice)
            done = stated.get("cells_done")
            step = max(done - told, 0) if type(done) is int else 0  # after a restart a server may count from less
            told += step
            yield step
            if stated["state"] in ("failed", "cancelled"):
                if isinstance(problem := stated.get("problem"), dict):
                    raise self._service.connection.error_of(problem)
                raise ServerError(f"{self._service.where}: job {self.identifier} is {stated['state']}, expected done")
            if stated["state"] == "done" or (end is not None and time.monotonic() >= end):
                return

    def results(self, threads: int | None = None) -> ReceivedResults:
        """Wait until it is done, and return its results, as `Client.search` does; the server keeps them.

        They have how the whole database scores, which the report of ``html`` shows, where it was submitted with
        ``distribution=True``; `write` has it always.

        Parameters
        ----------
        threads : int, optional
            Of this machine, for alignments.

        Raises
        ------
        InputError, ServerError
            If it failed or was cancelled, with the reason.
        """
        self.wait()
        threads = checked("threads", threads)
        reader, close = self._service.opened(self.identifier)
        try:
            request = self._request or reader.header.request(self._queries())
            return ReceivedResults.of(ReceivedSearch(reader, request, self._origin, threads), threads, close)
        except BaseException:
            close()
            raise

    def _queries(self) -> bytes:
        def read() -> bytes:
            with self._service.connection.stream(f"/jobs/{self.identifier}/queries") as stream:
                return b"".join(iter(lambda: stream.read(RECEIVED_BYTES), b""))

        return self._service.patiently(read)

    def write(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Wait until it is done, and write a report of it, which the server makes.

        Parameters
        ----------
        path : path
            ``-`` is stdout. The file appears under its name when it is complete.
        format : str, optional
            As ``--outfmt``; by default what the path's extension says.

        Raises
        ------
        InputError, ServerError
            If it failed or was cancelled, with the reason; if there is no such format.
        OutputError
            If the file cannot be written.
        """
        from swsearch.report.outputs import pair_outputs

        (output,) = pair_outputs([os.fspath(path)], [] if format is None else [format])
        name, *columns = output.outfmt.split()
        query = {"format": name, **({"columns": ",".join(columns)} if columns else {})}
        self.wait()
        with (
            self._service.connection.stream(f"/jobs/{self.identifier}/results", query) as stream,
            open_outputs([(output.path, True)]) as (file,),
        ):
            for chunk in iter(lambda: stream.read(RECEIVED_BYTES), b""):
                file.write(chunk)

    def cancel(self) -> None:
        """Have the server stop it; what it found is lost.

        Raises
        ------
        InputError
            If it has ended, or was submitted by another client.
        """
        ask = self._service.connection.ask
        self.stated = self._service.patiently(lambda: ask("POST", f"/jobs/{self.identifier}/cancel"))

    def forget(self) -> None:
        """Have the server stop it, if it runs, and remove it.

        Raises
        ------
        InputError
            If it is gone, or was submitted by another client.
        """
        self._service.connection.ask("DELETE", f"/jobs/{self.identifier}")
