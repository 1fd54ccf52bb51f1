"""What a server of swsearch is asked for, again where it is only out of reach for a while, or busy."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, TypeVar

from swsearch.errors import InputError, ServerError
from swsearch.remote.connection import BusyError, Connection, NoServerError, UnreachableError
from swsearch.remote.frames import BrokenOffError
from swsearch.remote.transfer import TransferReader
from swsearch.remote.urls import ServerUrl
from swsearch.remote.wire import SearchRequest

STATES_OF_JOBS = ("queued", "running", "done", "failed", "cancelled")

OUT_OF_REACH_SECONDS = 300.0
"""Seconds for which a server that was there may be out of reach: it takes its jobs up again when it is restarted."""

BUSY_SECONDS = 3600.0
"""Seconds for which a server may say that it takes no more, before a search is given up."""

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds between attempts to reach a server."""

LAST_SECONDS = 5.0
"""Seconds that a server has to take note that a job is not wanted any more."""

RECEIVED_BYTES = 1 << 18
"""Bytes of a download that are taken at a time."""

Answered = TypeVar("Answered")

ServerNotice = Callable[[str], None]
"""Told in a sentence why there is nothing to see for a while."""


class Service:
    """Asks a server; any threads may at a time.

    Parameters
    ----------
    url : ServerUrl
        Of it, or of a database there.
    token : str
        As for `Connection`.
    timeout : float
        The same.
    """

    def __init__(self, url: ServerUrl, token: str, timeout: float) -> None:
        self.url, self._token, self._timeout = url, token, timeout
        self.connection = Connection(url, token, timeout)

    @property
    def where(self) -> str:
        """The address of the server alone."""
        return self.url.server

    def databases(self) -> list[dict[str, Any]]:
        """Return the databases, as the server states them.

        Where the address has the name of a database, and there is no server without that, it may be that of a server
        behind a proxy, and is taken for one from then on.
        """
        try:
            return self._listed()
        except NoServerError:
            if not self.url.name:
                raise
            longer = Service(self.url.with_longer_root(), self._token, self._timeout)
            try:
                found = longer._listed()
            except (ServerError, InputError):
                found = None
            if found is None:
                raise
        self.url, self.connection = longer.url, longer.connection
        return found

    def _listed(self) -> list[dict[str, Any]]:
        found = self.connection.ask("GET", "/databases").get("databases")
        if not isinstance(found, list) or not all(map(_is_database, found)):
            raise self.strange("lists databases")
        return found

    def strange(self, what: str) -> NoServerError:
        """Return an error for an answer that another version may have given."""
        return NoServerError(f"{self.where}: {what} in an unknown format; install the same version on both sides")

    def jobs(self) -> list[dict[str, Any]]:
        """Return the jobs of this client, as the server states them, the last first."""
        found = self.connection.ask("GET", "/jobs").get("jobs")
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise self.strange("lists jobs")
        return found

    def submitted(self, request: SearchRequest, notice: ServerNotice | None = None) -> dict[str, Any]:
        """Submit a search: once, for a server that may have got it may run it."""
        stated = request.stated()
        return self.patiently(lambda: self.connection.ask("POST", "/jobs", body=stated), notice, is_safe=False)

    def patiently(
        self, ask: Callable[[], Answered], notice: ServerNotice | None = None, is_safe: bool = True
    ) -> Answered:
        """Ask until there is an answer, if the server is only out of reach for a while, or busy."""
        begun, pause = time.monotonic(), FIRST_PAUSE
        last_told = ""
        while True:
            try:
                return ask()
            except (BusyError, UnreachableError) as error:
                passed = time.monotonic() - begun
                if isinstance(error, BusyError):
                    pause = max(error.seconds, FIRST_PAUSE)
                    if passed + pause > BUSY_SECONDS:
                        raise
                elif passed + pause > OUT_OF_REACH_SECONDS:
                    raise
                elif error.was_sent and not is_safe:
                    raise ServerError(
                        f"{error}; the server may have accepted the search; check its list of jobs"
                    ) from None
                if notice is not None and str(error) != last_told:
                    last_told = str(error)
                    notice(f"{error}; trying again")
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def state_of(self, identifier: str, wait: float = 0.0, notice: ServerNotice | None = None) -> dict[str, Any]:
        """Return a job as it is now, or when it has ended or the time is over; only who waits is patient."""

        def ask() -> dict[str, Any]:
            query = {"wait": f"{wait:.3g}"} if wait else None
            return self.connection.ask("GET", f"/jobs/{identifier}", query=query)

        found = self.patiently(ask, notice) if wait else ask()
        if found.get("state") not in STATES_OF_JOBS or found.get("id") != identifier:
            raise self.strange("describes jobs")
        return found

    def forget(self, identifier: str) -> None:
        """Have the server stop and remove a job, if it can soon: whoever waits has pressed Ctrl-C."""
        with contextlib.closing(Connection(self.url, self._token, min(self._timeout, LAST_SECONDS))) as connection:
            connection.ask("DELETE", f"/jobs/{identifier}")

    def opened(self, identifier: str) -> tuple[TransferReader, Callable[[], None]]:
        """Return the reader of a job's results, and what closes it."""

        def begin() -> tuple[TransferReader, Callable[[], None]]:
            closing = contextlib.ExitStack()
            try:
                query = {"format": "swsearch"}
                stream = closing.enter_context(self.connection.stream(f"/jobs/{identifier}/results", query))
                return TransferReader(stream, f"{self.where}: results"), closing.close
            except BrokenOffError as error:
                closing.close()
                raise UnreachableError(str(error), was_sent=True) from None
            except BaseException:
                closing.close()
                raise

        return self.patiently(begin)


def _is_database(given: Any) -> bool:
    """Say whether something states a database, as far as is needed here."""
    return (
        isinstance(given, dict)
        and isinstance(given.get("name"), str)
        and all(type(given.get(name, 0)) is int for name in ("n_subjects", "n_residues"))
    )
