"""What a request can be refused with: a code that programs read, a sentence for people, and HTTP's status."""

from __future__ import annotations

import errno
from typing import Any

from swsearch.errors import EngineError, InputError, MemoryLimitError, OptionError, OutputError, SwsearchError

STATUSES = {
    "broken": 400,
    "not_authenticated": 401,
    "not_allowed": 403,
    "not_found": 404,
    "not_possible": 405,
    "conflict": 409,
    "expired": 410,
    "too_large": 413,
    "wrong_type": 415,
    "wrong": 422,
    "too_many": 429,
    "failed": 500,
    "unavailable": 503,
    "disk_full": 507,
}
"""Every code of a problem, and the status that it is answered with."""


class ServerProblem(SwsearchError):  # noqa: N818  # it may be nobody's error
    """What is wrong with a request, or with the server.

    Parameters
    ----------
    code : str
        One of `STATUSES`.
    message : str
        What was wrong, where, what was expected and the remedy.
    option : str, optional
        The option that it is about.
    expected : str, optional
        What it may be.
    retry_after : int, optional
        Seconds after which to ask again.
    """

    def __init__(
        self, code: str, message: str, *, option: str = "", expected: str = "", retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.status = code, STATUSES[code]
        self.option, self.expected, self.retry_after = option, expected, retry_after

    def stated(self) -> dict[str, Any]:
        """Return it as JSON has it: ``{"error": {...}}``."""
        found: dict[str, Any] = {"code": self.code, "message": str(self)}
        found |= {name: value for name in ("option", "expected", "retry_after") if (value := getattr(self, name))}
        return {"error": found}


def problem_of(error: BaseException) -> ServerProblem:
    """Return what an error is to whoever asked: a wrong request, or a server that cannot."""
    if isinstance(error, ServerProblem):
        return error
    if isinstance(error, OptionError):
        return ServerProblem("wrong", str(error), option=error.name, expected=error.expected)
    if isinstance(error, MemoryLimitError):
        return ServerProblem("unavailable", str(error))
    if isinstance(error, InputError):
        return ServerProblem("wrong", str(error))
    if isinstance(error, OutputError):
        return ServerProblem("disk_full", str(error))
    if isinstance(error, EngineError):
        return ServerProblem("unavailable", str(error))
    if isinstance(error, SwsearchError):
        return ServerProblem("unavailable", str(error))
    if isinstance(error, MemoryError):
        return ServerProblem("unavailable", "the server is out of memory; ask for less, or again later")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ServerProblem("disk_full", "the server's disk is full")
    return ServerProblem("failed", "the server failed; its log says more")
