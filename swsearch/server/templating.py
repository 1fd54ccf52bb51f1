"""Templates of the pages, their filters, static files and headers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from fastapi import Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.types import Scope

from swsearch.errors import format_count, printable
from swsearch.version import version

CONTENT_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Policy of every page but the report, which has its own: nothing inline, nothing from other sites."""

PAGE_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    # not "no-referrer", with which browsers do not send the origin of a form
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    # "Back" shows the page with the user's input; a visit asks the server
    "Cache-Control": "private, no-cache",
}

STATIC_TYPES = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}

MAX_NAME_SHOWN = 300
"""Characters of another user's text that a page shows on one line."""


def root_of(scope: Scope) -> str:
    """Return the beginning of the paths of all links, without a slash at its end."""
    return str(scope.get("root_path", "")).rstrip("/")


def page(
    scope: Scope, template: str, values: Mapping[str, Any], status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> HTMLResponse:  # fmt: skip
    """Return a page."""
    root = root_of(scope)

    def static(name: str) -> str:
        return f"{root}/static/{static_file(name)[1]}/{name}"  # changes with the content

    shared = {"root": root, "has_tokens": False, "version": version(), "static": static}
    text = templates().get_template(template).render(shared | dict(values))
    # a header may hold half of a surrogate pair, which is not UTF-8
    body = text.encode("utf-8", errors="replace")
    return HTMLResponse(body, status, {**PAGE_HEADERS, **(headers or {})})


@cache
def templates() -> Environment:
    """Return the templates, which escape all values."""
    environment = Environment(
        loader=PackageLoader("swsearch.server"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "n": lambda value: f"{value:,}",
        "named": safe_name,
        "titled": lambda job: safe_name(job.title.strip()) or f"Job {job.identifier}",
        "moment": lambda seconds: datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine_time": lambda seconds: datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds"),
        "lasting": format_duration,
        "in_days": lambda days: (
            format_count(int(days), "day") if days >= 1 and days % 1 == 0 else format_duration(days * 86400)
        ),
        "segment": lambda text: quote(str(text), safe=""),
        "of": format_count,
    }
    return environment


def safe_name(text: object) -> str:
    """Return another user's text on one line, in one direction and cut."""
    line = printable(str(text), "\ufffd")
    return line if len(line) <= MAX_NAME_SHOWN else f"{line[:MAX_NAME_SHOWN]}…"


def format_duration(seconds: float) -> str:
    """Return a duration for people."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} minutes"
    hours = round(minutes / 60)
    return f"{hours} hours" if hours < 48 else f"{round(hours / 24)} days"


@cache
def static_file(name: str) -> tuple[bytes, str]:
    """Return the content of a static file, and the digest in its address."""
    content = (files("swsearch.server") / "static" / name).read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:16]


def static_answer(digest: str, name: str) -> Response:
    """Return a static file, which a browser keeps if the digest is that of its content."""
    content, current = static_file(name)
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable" if digest == current else "no-cache",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": CONTENT_POLICY,
    }
    return Response(content, media_type=STATIC_TYPES[name], headers=headers)
