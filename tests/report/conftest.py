"""The browser that the tests of the HTML report share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support import browsers


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browsers.Browser]:
    """A browser that keeps its console and every request that it makes."""
    with browsers.chromium(tmp_path_factory.mktemp("downloads")) as found:
        found.driver.downloads = found.downloads
        yield found


@pytest.fixture
def opened(browser: browsers.Browser, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Open a report's text, at a part if named; nothing is said on the console, and nothing loaded but the file."""
    page = tmp_path / "report.html"
    browser.said()
    browser.asked()

    def show(text: str, part: str = "") -> Any:
        page.write_text(text, encoding="ascii")
        browser.get(page.as_uri() + part)
        return browser.driver

    yield show
    browser.resize(1280)
    browser.scripts(True)
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    assert browser.said() == []
    asked = browser.asked()
    assert {url for url in asked if not url.startswith(("blob:", page.as_uri(), "data:"))} == set()
    assert page.as_uri() in asked  # so that the log is known to be kept
