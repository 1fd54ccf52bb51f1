"""A headless Chromium that keeps what its console says and which addresses it asks for."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.serving import PATIENCE

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

MARKS = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None or DRIVER is None, reason="needs chromium and chromedriver"),
    # warnings of the driver's own libraries are theirs
    pytest.mark.filterwarnings("default"),
]
"""Of modules whose tests drive the browser."""


class Browser:
    """A browser: actions of a person, and questions of a test.

    Parameters
    ----------
    driver : WebDriver
        Selenium's driver.
    downloads : Path
        Folder of downloaded files.
    """

    def __init__(self, driver: Any, downloads: Path) -> None:
        self.driver, self.downloads = driver, downloads
        self.resize(1280)

    def begin_again(self) -> None:
        """Forget cookies and what was logged."""
        self.driver.get("about:blank")
        self.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        self.driver.get_log("browser")
        self.driver.get_log("performance")

    def resize(self, width: int, height: int = 900) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def colours(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def scripts(self, on: bool) -> None:
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not on})

    def get(self, address: str) -> None:
        self.driver.get(address)

    def run(self, script: str, *given: Any) -> Any:
        return self.driver.execute_script(script, *given)

    def all(self, selector: str) -> list[Any]:
        return list(self.driver.find_elements("css selector", selector))

    def one(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def text(self, selector: str) -> str:
        return str(self.one(selector).text)

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    @property
    def focus(self) -> Any:
        """The element that has the focus."""
        return self.driver.switch_to.active_element

    def until(self, condition: Callable[[], Any]) -> Any:
        """Wait until something is so, whatever a page that is changing says meanwhile."""
        from selenium.common.exceptions import (
            NoSuchElementException,
            StaleElementReferenceException,
            WebDriverException,
        )
        from selenium.webdriver.support.wait import WebDriverWait

        def look(_: Any) -> Any:
            try:
                return condition()
            except WebDriverException as error:
                # the driver has no class of its own for an element of a page that has just been left
                if "does not belong to the document" in str(error):
                    raise StaleElementReferenceException from error
                raise

        ignored = (NoSuchElementException, StaleElementReferenceException)
        return WebDriverWait(self.driver, PATIENCE, 0.05, ignored).until(look)

    def said(self) -> list[str]:
        """Return the console's messages since the last call, including violations of a policy."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def asked(self) -> set[str]:
        """The addresses that were asked for since the last time."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}


@contextmanager
def chromium(downloads: Path, *arguments: str) -> Iterator[Browser]:
    """Start a browser, with further arguments."""
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for each in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", *arguments):
        options.add_argument(each)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER)) as driver:
        yield Browser(driver, downloads)
