"""How pages are made: templates, the words of times and numbers, static files, and headers that forbid all else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from swsearch.errors import printable
from swsearch.server.jobs import Job
from swsearch.version import version

CONTENT_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Of every page but the report, which has its own: nothing inline, nothing from elsewhere."""

PAGE_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    # not "no-referrer", with which browsers do not say where a form came from
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    # kept for the way back, with what is typed in it, and asked for again each time
    "Cache-Control": "private, no-cache",
}

STATIC_TYPES = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}

LONGEST_SHOWN = 300
"""Characters of a name that somebody else gave, as pages show it."""


@dataclass(frozen=True)
class Shell:
    """Builds pages of the templates.

    Parameters
    ----------
    root : str
        What stands before the paths of all links, without a slash at its end.
    has_tokens : bool
        Whether there is anybody to log out.
    """

    root: str
    has_tokens: bool = False

    @classmethod
    def of(cls, request: Request, has_tokens: bool = False) -> Shell:
        """Return the shell of a request's answer."""
        return cls(str(request.scope.get("root_path", "")).rstrip("/"), has_tokens)

    def page(
        self, template: str, values: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
    ) -> HTMLResponse:
        """Return a page."""
        text = templates().get_template(template).render(
            root=self.root, has_tokens=self.has_tokens, version=version(), static=self.static, **values
        )  # fmt: skip
        # a header may hold half of a surrogate pair, which is no UTF-8
        body = text.encode("utf-8", errors="replace")
        return HTMLResponse(body, status, {**PAGE_HEADERS, **(headers or {})})

    def static(self, name: str) -> str:
        """Return the address of a static file, which changes with its content."""
        return f"{self.root}/static/{static_file(name)[1]}/{name}"


@cache
def templates() -> Environment:
    """Return the templates, which escape what they are given."""
    made = Environment(
        loader=PackageLoader("swsearch.server"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {
        "n": lambda value: f"{value:,}",
        "named": named,
        "titled": lambda job: named(job.title.strip()) or f"Job {job.identifier}",
        "moment": moment,
        "machine_time": lambda seconds: datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds"),
        "lasting": lasting,
        "segment": lambda text: quote(str(text), safe=""),
        "of": counted,
    }
    return made


def named(text: object) -> str:
    """Return a name that somebody else gave: on one line, in one direction, and not endless."""
    found = printable(str(text), "\ufffd")
    return found if len(found) <= LONGEST_SHOWN else f"{found[:LONGEST_SHOWN]}…"


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def moment(seconds: float) -> str:
    """Return a time of the Unix clock for people."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def lasting(seconds: float) -> str:
    """Return a duration for people."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours = round(minutes / 60)
    return f"{hours} h" if hours < 48 else f"{round(hours / 24)} days"


LEAST_PROGRESS = 0.05
"""From which the time that is left can be told."""


def progress_of(job: Job, now: float) -> dict[str, Any]:
    """Return how far a job is, in numbers and words, for the page and for the script that asks again."""
    percent = min(max(round(100 * job.progress), 0), 100)
    words = {
        "queued": "Waiting",
        "running": f"Searching: {percent}%",
        "done": "Done",
        "failed": "Failed",
        "cancelled": "Cancelled",
    }[job.state]
    if job.state == "queued" and job.place is not None:
        words = (
            f"Waiting: {counted(job.place, 'search', 'searches')} ahead"
            if job.place
            else "Waiting: next in the queue"
        )
    since = job.begun if job.begun is not None else job.submitted
    elapsed = (job.ended if job.ended is not None else now) - since
    spent = f"{lasting(elapsed)} so far"
    if job.state == "running" and job.progress >= LEAST_PROGRESS and elapsed >= 1:
        spent += f", about {lasting(elapsed * (1 - job.progress) / job.progress)} left"
    return {
        "state": job.state,
        "percent": percent if job.state != "done" else 100,
        "words": words,
        "elapsed": spent,
        "is_ended": job.is_ended,
    }


@cache
def static_file(name: str) -> tuple[bytes, str]:
    """Return a static file and what its address has for its content."""
    content = (files("swsearch.server") / "static" / name).read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:16]


def static_answer(digest: str, name: str) -> Response:
    """Return a static file: for ever, under the address of its content; to be asked for again under another."""
    content, current = static_file(name)
    lasts = "public, max-age=31536000, immutable" if digest == current else "no-cache"
    headers = {
        "Cache-Control": lasts, "X-Content-Type-Options": "nosniff", "Content-Security-Policy": CONTENT_POLICY,
    }  # fmt: skip
    return Response(content, media_type=STATIC_TYPES[name], headers=headers)
