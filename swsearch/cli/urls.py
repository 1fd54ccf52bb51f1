"""Subjects that are on a server: told from files, with nothing imported that files would not need."""

from __future__ import annotations

from collections.abc import Sequence

from swsearch.errors import InputError
from swsearch.remote.urls import is_url, server_url


def url_among(subjects: Sequence[str]) -> str | None:
    """Return the address of a server that is to search; None where all subjects are files.

    Raises
    ------
    InputError
        If there is something beside it, or it is no address, or holds a password.
    """
    urls = [each for each in subjects if is_url(each)]
    if urls:
        server_url(urls[0])
    if urls and len(subjects) > 1:
        raise InputError(
            f"subjects: got {urls[0]} and {len(subjects) - 1} more, expected one database of a server alone; search "
            "the others after it"
        )
    return urls[0] if urls else None


def refuse_urls(subjects: Sequence[str], command: str) -> None:
    """Raise `InputError` if a command that reads subjects itself is given those of a server."""
    if (url := url_among(subjects)) is not None:
        raise InputError(f"subjects: got {url}, expected files; of servers swsearch {command} asks none, search does")
