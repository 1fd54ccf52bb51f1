"""For the tests of this folder: a server, started once over two tiny databases; and pages over a house of none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.fake_house import FakeHouse
from support.houses import House, Opened, built, engines, settings
from support.serving import Served, serving, tiny_database
from support.web_pages import Visitor, pages_alone
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


@pytest.fixture(scope="module")
def fakes() -> tuple[FakeHouse, Any]:
    """A house that does nothing, and its pages alone."""
    house = FakeHouse()
    return house, pages_alone(house)


@pytest.fixture
def house(fakes: tuple[FakeHouse, Any]) -> FakeHouse:
    """The house, as it was at first; modules that need a real one have their own."""
    fakes[0].begin_again()
    return fakes[0]


@pytest.fixture
def visitor(house: FakeHouse, fakes: tuple[FakeHouse, Any]) -> Visitor:
    """Somebody who has not been there."""
    return Visitor(fakes[1])


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of some proteins, which nobody writes to."""
    return built(tmp_path_factory.mktemp("data"))


@pytest.fixture
def opened(database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Open houses over the database, with engines that they get one after the other, or with those of a server."""

    @contextmanager
    def open_house(*made: Engine | BaseException, **changes: object) -> Iterator[House]:
        if not made:
            with House(settings(database, tmp_path, **changes)) as house:
                yield house
            return
        with engines(monkeypatch, *made) as names, House(settings(database, tmp_path, **changes)) as house:
            house.names = names
            yield house

    return open_house
