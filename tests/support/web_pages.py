"""Pages of a server, asked for and read as a browser without a script does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.serving import PATIENCE, SEQUENCES, Served, serving
from support.small_servers import ObedientEngine, engines
from swsearch.db import Database
from swsearch.server.settings import ServerSettings

EMPTY = frozenset(("input", "meta", "link", "br", "hr", "img"))
"""Elements that have no end."""

STRANGER = f"swsearch={'s' * 32}"
"""The cookie of another browser."""


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
        """Text to be read, except typed text."""
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
    url : str
        Of the server that it visits.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self.cookies = httpx.Cookies()

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Ask, and follow nothing."""
        options = {"verify": False, "trust_env": False, "timeout": PATIENCE}  # contexts of TLS take long to make
        with httpx.Client(base_url=self._url, cookies=self.cookies, **options) as one:
            answer = one.request(method, path, **more)
            self.cookies = one.cookies
            return answer

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


def site_databases(folder: Path) -> None:
    """Build databases sprot and trembl, whose subjects have taxids."""
    folder.mkdir(parents=True, exist_ok=True)
    taxids = {"P01308": 9606, "P69905": 10090, "P00698": 63221}
    records = zip(taxids.items(), SEQUENCES.values(), strict=False)
    texts = [f">{name} OX={taxid}\n{letters}\n" for (name, taxid), letters in records]
    (folder / "in.fasta").write_text("".join(texts))
    for name in ("sprot.h5", "trembl.h5"):
        Database.build(folder / "in.fasta", folder / name, taxids="header").close()


@contextmanager
def site(folder: Path, port: int = 0, **changes: Any) -> Iterator[Served]:
    """Start a server of one worker, whose engines, ``served.engines``, obey; the databases are built once."""
    paths = folder / "sprot.h5", folder / "trembl.h5"
    if not paths[0].exists():
        site_databases(folder)
    settings = replace(ServerSettings(paths, folder / "state", engine="cpu", workers=1), **changes)
    with pytest.MonkeyPatch.context() as patch:
        made = [ObedientEngine() for _ in settings.databases]
        with engines(patch, *made), serving(settings, port=port) as served:
            served.engines = made
            yield served
