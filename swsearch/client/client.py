"""The client of a swsearch server, with the arguments of `swsearch.search`."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Unpack
from urllib.parse import quote

from swsearch.client.connection import Connection, NotASearchServerError, ServerNotice
from swsearch.client.job import ServerJob
from swsearch.client.search_request import SearchRequest, make_request
from swsearch.client.urls import TOKEN_VARIABLE, server_url
from swsearch.engines.base import Progress
from swsearch.errors import InputError, OptionError, ServerError, check_choice
from swsearch.inputs import QueriesLike, input_path
from swsearch.options.kinds import QUERY_FORMATS, QueryFormat
from swsearch.pipeline.options import SearchKeywords, make_search_options
from swsearch.run_info import Origin

TIMEOUT_SECONDS = 120.0
"""Seconds without a byte after which a server counts as out of reach, unless a client is told otherwise."""


class Client:
    """A server of swsearch: it searches, and writes the reports of `swsearch.search` byte for byte.

    A context manager. Any threads may use it at a time. It needs httpx, the extra ``client``.

    Parameters
    ----------
    url : str
        URL of the server, or of a database on it, the default of searches: ``http://host:8080/sprot``.
    token : str, optional
        Token of the server; by default the environment variable ``SWSEARCH_TOKEN``.
    timeout : float, optional
        Seconds without a byte after which the server counts as out of reach.
    notice : callable, optional
        Called with a sentence when the server is busy or cannot be reached.

    Raises
    ------
    InputError
        If the URL is invalid. No request is sent yet.

    Examples
    --------
    >>> with swsearch.Client("http://host:8080/sprot") as client:  # doctest: +SKIP
    ...     with client.search("queries.fasta", max_hits=10) as job:
    ...         print(job.to_pandas())
    ...         job.write("hits.html")
    """

    def __init__(
        self, url: str, token: str | None = None, timeout: float = TIMEOUT_SECONDS,
        notice: ServerNotice | None = None,
    ) -> None:  # fmt: skip
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < 1e6:
            raise OptionError("timeout", timeout, "a number of seconds > 0")
        if token is not None and not isinstance(token, str):
            raise OptionError("token", "what was given", "a string")
        token = os.environ.get(TOKEN_VARIABLE, "").strip() if token is None else token
        self._connection = Connection(server_url(url), token, float(timeout), notice)

    @property
    def url(self) -> str:
        """The address of the server alone."""
        return self._connection.url.server

    def databases(self) -> list[dict[str, Any]]:
        """Return the server's databases, as it states them: name, counts, checksums and more.

        Raises
        ------
        ServerError
            If the server cannot be reached, or is not a swsearch server.
        InputError
            If the server rejects the token.
        """
        try:
            return _databases_of(self._connection)
        except NotASearchServerError:  # the path may be that of a server behind a proxy, and no database's name
            if not self._connection.url.name:
                raise
            longer = self._connection.with_longer_root()
            with suppress(ServerError, InputError):
                databases = _databases_of(longer)
                self._connection = longer
                return databases
            raise

    def database(self, name: str | None = None) -> dict[str, Any]:
        """Return a database of the server, as it states it.

        Parameters
        ----------
        name : str, optional
            Name of the database; by default that of the URL, or the only one.

        Raises
        ------
        InputError
            If there is none of that name, or there are several and none is named.
        ServerError
            As `databases` does.
        """
        databases = self.databases()
        if name is not None and not isinstance(name, str):
            raise OptionError("database", name, "the name of a database of the server")
        name_or_default = name or self._connection.url.name
        names = [each["name"] for each in databases]
        if name_or_default in names:
            return databases[names.index(name_or_default)]
        listed = ", ".join(names) or "none"
        if name_or_default:
            raise InputError(f"{self.url}: got database {name_or_default[:80]!r}, expected one of {listed}")
        if len(databases) != 1:
            raise InputError(f"{self.url}: has databases {listed}; name one, such as {self.url}/{quote(names[0])}"
                             if databases else f"{self.url}: has no databases")  # fmt: skip
        return databases[0]

    # searches

    def search(
        self, queries: QueriesLike, database: str | None = None, *,
        progress: Progress | None = None, title: str = "", outputs: Sequence[str] = (),
        query_format: QueryFormat = "auto", **options: Unpack[SearchKeywords],
    ) -> ServerJob:  # fmt: skip
        """Search on the server, and wait until it is done.

        Parameters
        ----------
        queries : path, open file, str, Bio.SeqRecord, (id, sequence), mapping, Profile, or an iterable of these
            As for `swsearch.search`.
        database : str, optional
            Name of a database of the server; by default the one that the address names, or the only one.
        progress : callable, optional
            Called with the number of cells just finished.
        title : str, optional
            Name of the job on the server.
        outputs : sequence of str, optional
            Reports that the job is to write, as ``--outfmt``: together they cost one alignment of each hit.
        query_format : str, optional
            As for `swsearch.search`.
        **options
            As for `swsearch.search`, from ``scoring`` to ``inclusion``. Files that they name are read here.

        Returns
        -------
        ServerJob
            It is done, and stays on the server until `ServerJob.delete`, the end of a ``with`` block, or its expiry.
            If the search fails or is interrupted, it is removed.

        Raises
        ------
        InputError
            If a query or an argument cannot be used, or there is no such database.
        ServerError
            If the server cannot be reached, or cannot search.
        """
        if progress is not None and not callable(progress):
            raise OptionError("progress", progress, "a function that takes a number of cells")
        job = self.submit(queries, database, title=title, outputs=outputs, query_format=query_format, **options)
        try:
            return job.wait(progress=progress)
        except BaseException:
            job.delete_quietly()
            raise

    def submit(
        self, queries: QueriesLike, database: str | None = None, *, title: str = "", outputs: Sequence[str] = (),
        query_format: QueryFormat = "auto", **options: Unpack[SearchKeywords],
    ) -> ServerJob:  # fmt: skip
        """Submit a search and return at once; the server keeps it when this client has gone.

        Parameters
        ----------
        queries, database, title, outputs, query_format, **options
            As for `search`.

        Returns
        -------
        ServerJob

        Raises
        ------
        InputError, ServerError
            As `search` does, and if the server refuses it.
        """
        check_choice("query_format", query_format, QUERY_FORMATS)
        chosen = make_search_options("Client.submit", **options)
        if chosen.keep_profiles:
            raise OptionError(
                "keep_profiles", True, "none for a server", 'add "profile json" to outputs, and download it'
            )
        request = make_request(
            self.database(database)["name"], queries, chosen, Origin(input_path(queries)), query_format=query_format,
            title=title, outputs=outputs,
        )  # fmt: skip
        return self.submit_request(request)

    def submit_request(self, request: SearchRequest, key: str = "") -> ServerJob:
        """Submit a request once, however often it is sent with a key; by default a new one."""
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        data = self._connection.request("POST", "/jobs", body=request.to_json(), headers=headers, is_patient=True)
        return ServerJob(self._connection, data)

    def job(self, identifier: str) -> ServerJob:
        """Return a job that was submitted before, by anyone.

        Raises
        ------
        InputError
            If there is none, or not any more.
        """
        if not isinstance(identifier, str) or not identifier.isalnum():
            raise OptionError("identifier", identifier, "20 letters and digits")
        return ServerJob(self._connection, self._connection.request("GET", f"/jobs/{identifier}"))

    def jobs(self) -> list[ServerJob]:
        """Return the jobs of this client, the last first."""
        jobs = self._connection.request("GET", "/jobs").get("jobs")
        if not isinstance(jobs, list) or not all(isinstance(each, dict) for each in jobs):
            raise self._connection.unexpected_response("lists jobs")
        return [ServerJob(self._connection, each) for each in jobs]

    def close(self) -> None:
        """Close connections; jobs on the server stay."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client {self._connection.url}>"


def _databases_of(connection: Connection) -> list[dict[str, Any]]:
    databases = connection.request("GET", "/databases").get("databases")
    if not isinstance(databases, list) or not all(map(_is_database_description, databases)):
        raise connection.unexpected_response("lists databases")
    return databases


def _is_database_description(value: Any) -> bool:
    """Return whether a value describes a database, as far as the client reads it."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("name"), str)
        and all(type(value.get(name, 0)) is int for name in ("n_subjects", "n_residues"))
    )
