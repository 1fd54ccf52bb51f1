"""A report in headless Chromium: which tests need it, and how they find what is on the page."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

WIDTHS = (360, 1280, 1920)


def all_of(driver: Any, selector: str) -> list[Any]:
    return list(driver.find_elements("css selector", selector))


def one(driver: Any, selector: str) -> Any:
    return driver.find_element("css selector", selector)


def until(condition: Callable[[], Any]) -> Any:
    """Wait for what a condition returns to be true."""
    deadline = time.monotonic() + 30
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


def button(driver: Any, text: str) -> Any:
    """Return the only button or link of the query that has this text."""
    named = f"//*[@id='query']//*[self::button or self::a][normalize-space()='{text}']"
    (found,) = driver.find_elements("xpath", named)
    return found


def downloaded(driver: Any, name: str) -> str:
    """Return the text of a file once it is there, which it then no longer is."""
    path = driver.downloads / name
    until(lambda: path.exists() and path.stat().st_size)
    text = path.read_bytes().decode()
    path.unlink()
    return text


def drawn(driver: Any) -> str:
    return "".join(svg.get_attribute("outerHTML") for svg in all_of(driver, "#query svg"))


def column(driver: Any, place: int) -> list[str]:
    """Return the cells of a column of numbers or subjects, counted from 1; a column of ticks stands before them."""
    rows = "tbody > tr:not(.detail)"
    return [cell.text for cell in all_of(driver, f"#query .hits-table > table > {rows} > :nth-child({place + 1})")]


def heading(driver: Any, text: str) -> Any:
    (button,) = [each for each in all_of(driver, "#query .hits-table > table > thead button") if each.text == text]
    return button


def filter_field(driver: Any, label: str) -> Any:
    (found,) = [each for each in all_of(driver, ".filters label") if each.text == label]
    return one(found, "input")
