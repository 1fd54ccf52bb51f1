"""Who asks: tokens, clients, and the names that a server may be asked for under."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import stat
from collections.abc import Iterable
from pathlib import Path

from swsearch.errors import InputError, OptionError

TOKEN_COOKIE = "swsearch-token"  # its name
"""Says which token a browser has logged in with; the value is of `Tokens.cookie`."""

CLIENT_COOKIE = "swsearch"
"""Tells browsers with one address or token apart: a random text."""

LEAST_TOKEN = 16
"""Characters of a token: fewer can be guessed."""

_TOKEN = re.compile(r"[A-Za-z0-9._~-]+")
"""What stands in a header and in a path as it is."""

_CLIENT = re.compile(r"[A-Za-z0-9_-]{16,64}")


class Tokens:
    """The tokens of a server, of which a request must bring one; with none everybody is let in.

    Parameters
    ----------
    tokens : iterable of str
        All of them.
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        self._known = [(_digest(token), _digest(self.cookie(token))) for token in sorted(tokens)]

    def __bool__(self) -> bool:
        return bool(self._known)

    def owner(self, token: str) -> str | None:
        """Return what a token's client goes by; None if there is no such token."""
        return self._found(token, 0)

    def owner_of_cookie(self, value: str) -> str | None:
        """Return what the client of a cookie goes by; None if no token has it."""
        return self._found(value, 1)

    def _found(self, given: str, kind: int) -> str | None:
        digest, found = _digest(given), None
        for known in self._known:  # all of them, so that the time tells nothing
            if hmac.compare_digest(known[kind], digest):
                found = known[0].hex()[:32]
        return found

    @staticmethod
    def cookie(token: str) -> str:
        """Return what a browser keeps instead of a token, from which the token cannot be had."""
        return hmac.new(token.encode("utf-8", "surrogatepass"), b"swsearch page", hashlib.sha256).hexdigest()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def read_tokens(path: Path) -> tuple[frozenset[str], str]:
    """Read a file of tokens, one a line; lines with # are comments.

    Returns
    -------
    tokens : frozenset of str
        At least one.
    doubt : str
        What is doubtful about the file; empty if nothing is.

    Raises
    ------
    InputError
        If it cannot be read, holds none, or one that cannot be used.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or "it is no text"
        raise InputError(f"--token-file {path}: cannot be read: {said}") from None
    found = set()
    for number, line in enumerate(lines, 1):
        token = line.strip()
        if not token or token.startswith("#"):
            continue
        if len(token) < LEAST_TOKEN or not _TOKEN.fullmatch(token):
            raise InputError(  # it may be a token but for a letter, and is not shown
                f"--token-file {path}: line {number} is no token, expected at least {LEAST_TOKEN} letters, digits "
                "and -._~, such as openssl rand -hex 16 prints"
            )
        found.add(token)
    if not found:
        raise InputError(
            f"--token-file {path}: holds no token, expected one a line; without the option all are let in"
        )
    doubt = ""
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        doubt = f"--token-file {path}: others on this machine can read it; chmod 600 keeps it to you"
    return frozenset(found), doubt


def client_name(owner: str | None, address: str, cookie: str) -> str:
    """Return what a client goes by: its token or its address, and its browser if it has a cookie of ours."""
    who = f"token:{owner}" if owner else address
    return f"{who}/{cookie}" if _CLIENT.fullmatch(cookie) else who


class Hosts:
    """The names that a server may be asked for under.

    A page elsewhere can let its own name lead to this server's address, and would then have the right to read its
    answers; so a request that names another host is refused. Addresses are no names that others can have.

    Parameters
    ----------
    names : iterable of str
        Those that are meant; ``*.lab.org`` is all of a domain, ``*`` any.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = {"localhost", *(name.lower().rstrip(".") for name in names)}
        self.given = frozenset(
            name for name in self.names if name != "localhost" and "*" not in name and not _is_address(name)
        )
        """Names of this server alone: neither patterns nor those that every machine has."""

    def may_be(self, header: str) -> bool:
        """Say whether a request may have this ``Host``."""
        name = host_of(header)
        if not name or "*" in self.names or name in self.names or _is_address(name):
            return True
        return any(known.startswith("*.") and name.endswith(known[1:]) for known in self.names)


def host_of(header: str) -> str:
    """Return the name in a ``Host`` header, without its port."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.rpartition(":")[0] if text.count(":") == 1 else text.rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def check_host_name(name: str) -> str:
    """Return a value of --allow-host, or raise `OptionError`."""
    if not re.fullmatch(r"\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", name) or len(name) > 253:
        raise OptionError("--allow-host", name, "a host name such as blast.lab.org, *.lab.org, or * for any")
    return name


def check_networks(given: str) -> list[str]:
    """Return the addresses of --forwarded-allow-ips, or raise `OptionError`."""
    found = [part.strip() for part in given.split(",") if part.strip()]
    for part in found:
        try:
            ipaddress.ip_network(part)
        except ValueError:
            expected = "addresses or networks with commas between them, such as 127.0.0.1,10.0.0.0/8"
            raise OptionError("--forwarded-allow-ips", part, expected) from None
    return found
