"""A server for the tests of this folder: started once, over two tiny databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.serving import Served, serving, tiny_database
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
