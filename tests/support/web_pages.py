"""Pages asked for without a network, and read as a browser without a script reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import anyio
import httpx
from fastapi import FastAPI, Request, Response

from swsearch.server import pages
from swsearch.server.access import CLIENT_COOKIE, client_name
from swsearch.server.streaming import Threads

EMPTY = frozenset(("input", "meta", "link", "br", "hr", "img"))
"""Elements that have no end."""


@dataclass
class Element:
    """An element: its name, its attributes, and the text in it."""

    name: str
    attributes: dict[str, str]
    text: str = ""
    inside: list[Element] = field(default_factory=list)


class Page(HTMLParser):
    """A page, read.

    Parameters
    ----------
    text : str
        What the server sent.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.seen = ""
        """What is to be read, but for what was typed."""
        self._open: list[Element] = []
        self.feed(text)
        self.close()
        assert self._open == [], [each.name for each in self._open]

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        found = Element(tag, {name: value or "" for name, value in attrs})
        assert len(found.attributes) == len(attrs), (tag, attrs)
        self.elements.append(found)
        for each in self._open:
            each.inside.append(found)
        if tag not in EMPTY:
            self._open.append(found)

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open[-1].name == tag, (tag, [each.name for each in self._open])
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for each in self._open:
            each.text += data
        if self._open and self._open[-1].name not in ("textarea", "script", "title"):
            self.seen += data

    def all(self, kind: str, /, **attributes: str) -> list[Element]:
        """Elements of a name with these attributes, underscores for dashes."""
        wanted = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
        return [each for each in self.elements if each.name == kind and wanted.items() <= each.attributes.items()]

    def one(self, kind: str, /, **attributes: str) -> Element:
        """The element of a name with these attributes."""
        (found,) = self.all(kind, **attributes)
        return found


class Visitor:
    """A browser: it keeps cookies.

    Parameters
    ----------
    app : FastAPI
        What it visits.
    root : str
        What a proxy takes away from the path.
    """

    def __init__(self, app: FastAPI, root: str = "") -> None:
        self._app, self._root = app, root
        self.cookies = httpx.Cookies()

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Ask, and follow nothing."""

        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(self._app, root_path=self._root)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://lab:8080", cookies=self.cookies
            ) as one:
                answer = await one.request(method, path, **more)
                self.cookies = one.cookies
                return answer

        return asyncio.run(asked())

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.ask("GET", path, **more)

    def post(self, path: str, data: Mapping[str, Any] | None = None, **more: Any) -> httpx.Response:
        return self.ask("POST", path, data=data, **more)

    def page(self, path: str) -> Page:
        """A page that is there."""
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        return Page(answer.text)

    def sent(self, data: Mapping[str, Any], **more: Any) -> str:
        """Fill in the form, and return the address of the job."""
        answer = self.post("/search", {"database": "sprot", "queries": ">q\nMKTAYIAKQRQISFVKSHF", **data}, **more)
        assert answer.status_code == 303, Page(answer.text).one("div", role="alert").text
        return answer.headers["location"]


def pages_alone(house: Any) -> FastAPI:
    """The pages without what stands before them on a server; who asks is told by the cookie alone."""
    app = FastAPI(openapi_url=None)

    @app.middleware("http")
    async def gate(request: Request, proceed: Any) -> Response:
        request.state.client = client_name(None, "10.0.0.1", request.cookies.get(CLIENT_COOKIE, ""))
        return await proceed(request)

    app.state.jobs, app.state.threads = house, Threads(anyio.CapacityLimiter(1), anyio.CapacityLimiter(1))
    app.include_router(pages.router)
    return app
