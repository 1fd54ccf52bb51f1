"""The browser that the tests of the HTML report share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browser import BROWSER, DRIVER, resize


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser that keeps its console and every request that it makes."""
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for each in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(each)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.add_experimental_option(
        "prefs", {"download.default_directory": str(tmp_path_factory.mktemp("downloads"))}
    )
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER)) as driver:
        driver.downloads = Path(options.experimental_options["prefs"]["download.default_directory"])
        resize(driver, 1280)
        yield driver


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    """Open a report's text; afterwards nothing was said on the console and nothing was loaded but the file."""
    page = tmp_path / "report.html"
    chromium.get_log("browser")
    chromium.get_log("performance")

    def show(text: str) -> Any:
        page.write_text(text, encoding="ascii")
        chromium.get(page.as_uri())
        return chromium

    yield show
    assert chromium.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in chromium.get_log("performance")]
    asked = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
    outside = {url for url in asked if not url.startswith(("blob:", page.as_uri(), "data:"))}
    assert outside == set()
    assert page.as_uri() in asked  # so that the log is known to be kept
    resize(chromium, 1280)
