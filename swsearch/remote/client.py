"""The client of a server of swsearch: `Client` asks it for what `swsearch.search` does here."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Unpack
from urllib.parse import quote

from swsearch.engines.base import Progress
from swsearch.engines.choice import checked
from swsearch.errors import InputError, OptionError, check_choice
from swsearch.inputs import QueriesLike, path_of
from swsearch.options.words import QUERY_FORMATS, QueryFormat
from swsearch.pipeline.arguments import SearchKeywords, options_of
from swsearch.remote.asking import checksums_here, read_to_send, request_for
from swsearch.remote.received import ReceivedResults
from swsearch.remote.server_job import SearchThere, SearchToSend, ServerJob
from swsearch.remote.service import ServerNotice, Service
from swsearch.remote.urls import TOKEN_VARIABLE, server_url
from swsearch.run_info import Origin

CLIENT_TIMEOUT = 120.0
"""Seconds without a byte after which a server counts as out of reach, unless a client is told otherwise."""


class Client:
    """A server of swsearch: searches run there, and their results are those of `swsearch.search`.

    A context manager. Any threads may use it at a time.

    Parameters
    ----------
    url : str
        Of the server, or of a database there, which searches then take by default: ``http://host:8080/sprot``.
    token : str, optional
        What the server lets in by; by default what the environment variable ``SWSEARCH_TOKEN`` says, if anything.
    timeout : float, optional
        Seconds without a byte after which the server counts as out of reach.

    Raises
    ------
    InputError
        If the address is none. Nothing is asked of the server yet.

    Examples
    --------
    >>> with swsearch.Client("http://host:8080/sprot") as client:  # doctest: +SKIP
    ...     for result in client.search("queries.fasta", max_hits=10):
    ...         print(result.to_pandas())
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = CLIENT_TIMEOUT) -> None:
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < 1e6:
            raise OptionError("timeout", timeout, "a number of seconds > 0")
        if token is not None and not isinstance(token, str):
            raise OptionError("token", "what was given", "a string")
        token = os.environ.get(TOKEN_VARIABLE, "").strip() if token is None else token
        self._service = Service(server_url(url), token, float(timeout))

    @property
    def url(self) -> str:
        """The address of the server alone."""
        return self._service.where

    def databases(self) -> list[dict[str, Any]]:
        """Return the server's databases, as it states them: name, counts, checksums and more.

        Raises
        ------
        ServerError
            If the server cannot be reached, or what answers is no server of swsearch.
        InputError
            If it does not let this client in.
        """
        return self._service.databases()

    def database(self, name: str | None = None) -> dict[str, Any]:
        """Return a database of the server, as it states it.

        Parameters
        ----------
        name : str, optional
            By default the one that the address names, or the only one.

        Raises
        ------
        InputError
            If there is none of that name, or there are several and none is named.
        ServerError
            As `databases` does.
        """
        known = self.databases()
        if name is not None and not isinstance(name, str):
            raise OptionError("database", name, "the name of a database of the server")
        wanted = name or self._service.url.name
        names = [each["name"] for each in known]
        if wanted in names:
            return known[names.index(wanted)]
        listed = ", ".join(names) or "none"
        if wanted:
            raise InputError(f"{self.url}: got database {wanted[:80]!r}, expected one of {listed}")
        if len(known) != 1:
            raise InputError(f"{self.url}: has databases {listed}; name one, such as {self.url}/{quote(names[0])}"
                             if known else f"{self.url}: has no databases")  # fmt: skip
        return known[0]

    # searches

    def search(
        self,
        queries: QueriesLike,
        database: str | None = None,
        *,
        threads: int | None = None,
        progress: Progress | None = None,
        query_format: QueryFormat = "auto",
        **options: Unpack[SearchKeywords],
    ) -> ReceivedResults:
        """Search with every query, on the server.

        Parameters
        ----------
        queries : path, open file, str, Bio.SeqRecord, (id, sequence), mapping, Profile, or an iterable of these
            As for `swsearch.search`.
        database : str, optional
            Name of a database of the server; by default the one that the address names, or the only one.
        threads : int, optional
            Of this machine, for alignments; one for each processor by default.
        progress : callable, optional
            Called with the number of cells just finished.
        query_format : str, optional
            As for `swsearch.search`.
        **options
            As for `swsearch.search`, from ``scoring`` to ``keep_next``. Files that they name are read here.

        Returns
        -------
        SearchResults
            An iterator as of `swsearch.search`; the search begins when the first result is taken, and is removed from
            the server when the last one was, or when the iterator is closed.

        Raises
        ------
        InputError
            If a query or an argument cannot be used, or there is no such database.
        ServerError
            If the server cannot be reached, or cannot search.
        """
        asked = self._asked(queries, query_format, "Client.search", options)
        return self.results_of(asked, database, threads=threads, progress=progress)

    def submit(
        self,
        queries: QueriesLike,
        database: str | None = None,
        *,
        title: str = "",
        query_format: QueryFormat = "auto",
        **options: Unpack[SearchKeywords],
    ) -> ServerJob:
        """Submit a search and return at once; the server keeps it when this client has gone.

        Parameters
        ----------
        queries, database, query_format, **options
            As for `search`.
        title : str, optional
            What the server is to call it.

        Returns
        -------
        ServerJob

        Raises
        ------
        InputError, ServerError
            As `search` does, and if the server refuses it.
        """
        asked = self._asked(queries, query_format, "Client.submit", options)
        name = self.database(database)["name"]
        request = request_for(name, asked.queries, asked.options, asked.origin, title)
        return ServerJob(self._service, self._service.submitted(request), request, asked.origin)

    def job(self, identifier: str) -> ServerJob:
        """Return a job that was submitted before, by anyone, by its identifier.

        Raises
        ------
        InputError
            If there is none, or not any more.
        """
        if not isinstance(identifier, str) or not identifier.isalnum():
            raise OptionError("identifier", identifier, "20 letters and digits")
        return ServerJob(self._service, self._service.state_of(identifier, 0))

    def jobs(self) -> list[ServerJob]:
        """Return the jobs of this client, the last first."""
        return [ServerJob(self._service, each) for each in self._service.jobs()]

    def close(self) -> None:
        """Close connections; jobs on the server stay."""
        self._service.connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client {self._service.url}>"

    def _asked(
        self, queries: QueriesLike, query_format: QueryFormat, name: str, options: SearchKeywords
    ) -> SearchToSend:
        check_choice("query_format", query_format, QUERY_FORMATS)
        chosen = options_of(name, **options)
        read = read_to_send(queries, chosen, query_format, "queries")
        path = path_of(queries)
        return SearchToSend(read, chosen, Origin(path, checksums=checksums_here(path, read)))

    def results_of(
        self,
        asked: SearchToSend,
        database: str | None = None,
        *,
        threads: int | None = None,
        progress: Progress | None = None,
        notice: ServerNotice | None = None,
    ) -> ReceivedResults:
        """Return the results of a search whose queries were read; see `search`.

        Parameters
        ----------
        asked : SearchToSend
            What to search with.
        database, threads, progress
            As for `search`.
        notice : callable, optional
            Told when the server cannot be reached for a while, or is busy.
        """
        if progress is not None and not callable(progress):
            raise OptionError("progress", progress, "a function that takes a number of cells")
        running = SearchThere(
            self._service, asked, self.database(database)["name"], checked("threads", threads), notice
        )
        running.progress = progress
        return ReceivedResults(running.opened, asked.options, running.threads, running.end, running.stop)
