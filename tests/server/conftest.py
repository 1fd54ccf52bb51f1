"""For the tests of this folder: a server over two tiny databases, started once; and others over some proteins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.serving import Served, serving, tiny_database
from support.small_servers import Opened, built, engines, settings
from support.web_pages import Visitor, site
from swsearch.engines.base import Engine
from swsearch.server.settings import ServerSettings


@pytest.fixture(scope="session")
def server_settings(tmp_path_factory: pytest.TempPathFactory) -> ServerSettings:
    """Return settings of a small server: databases ``tiny`` and ``two``."""
    folder = tmp_path_factory.mktemp("server")
    databases = (tiny_database(folder / "tiny.h5"), tiny_database(folder / "two.h5", ("alpha", "beta")))
    return ServerSettings(databases, folder / "state", engine="cpu", threads=1, workers=2)


@pytest.fixture(scope="session")
def served(server_settings: ServerSettings) -> Iterator[Served]:
    """Return a real server that all tests share."""
    with serving(server_settings) as found:
        yield found


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of some proteins, which nobody writes to."""
    return built(tmp_path_factory.mktemp("data"))


@pytest.fixture
def opened(database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Start servers over the database, with engines that they get one after the other, or with those of a server."""

    @contextmanager
    def open_server(*made: Engine | BaseException, **changes: object) -> Iterator[Served]:
        chosen = settings(database, tmp_path, **changes)
        if not made:
            with serving(chosen) as found:
                yield found
            return
        with engines(monkeypatch, *made) as names, serving(chosen, forwarded=["127.0.0.1"]) as found:
            found.names = names
            yield found

    return open_server


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of a module's own, with pages."""
    with site(tmp_path_factory.mktemp("site")) as served:
        yield served


@pytest.fixture
def visitor(place: Served) -> Visitor:
    """Somebody who has not been there."""
    return Visitor(place.url)
