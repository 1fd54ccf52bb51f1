"""Measure the HTML report: bytes, and seconds until a browser shows it.

Searches with `--outfmt html` so that every query has 500 hits (any E-value), in local and in global mode, whose
alignments are as long as the proteins, then opens each report in headless Chromium at three widths. A time is the
browser's own, from the start of the navigation until the first query is painted: tables, pictures and all; medians of
several loads, each in a new tab. Then it goes to the query with the longest sequence, and sorts its table.

Needs: chromium, chromium-driver (Debian), selenium. Ten minutes, most of it searching.
Run:   python -m benchmarks.speed.html_report --queries Q.fasta [--hits 500] [--loads 5]
           [--out benchmarks/results/html_report.txt]
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.support.common import arguments, data_line, finish, heading, need, read, swsearch, table, write

WIDTHS = (360, 1280, 1920)

PAINTED = """
const done = arguments[arguments.length - 1];
const tell = () => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
document.readyState === "complete" ? tell() : addEventListener("load", tell);
"""
"""Milliseconds from the start of the navigation to the frame after the one that holds the first query."""

TAKE = """
const done = arguments[arguments.length - 1], begun = performance.now();
{action}
requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begun)));
"""

GO = "location.hash = '#query-' + arguments[0]; dispatchEvent(new HashChangeEvent('hashchange'));"
SORT = "document.querySelectorAll('#query thead button')[1].click();"


def browser() -> Any:
    """Start headless Chromium."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for each in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(each)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def times(driver: Any, page: Path, width: int, loads: int, longest: int) -> list[float]:
    """Return seconds to load, to go to the longest query, and to sort."""
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    found: list[list[float]] = []
    for _ in range(loads):
        driver.switch_to.new_window("tab")
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get(page.as_uri())
        row = [driver.execute_async_script(PAINTED)]
        row += [driver.execute_async_script(TAKE.format(action=action), longest) for action in (GO, SORT)]
        found.append(row)
        driver.close()
        driver.switch_to.window(driver.window_handles[0])
    return [statistics.median(column) / 1000 for column in zip(*found, strict=True)]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--hits", type=int, default=500, help="hits of each query, default %(default)s")
    parser.add_argument("--loads", type=int, default=5, help="times that each page is loaded, default %(default)s")
    options = parser.parse_args()
    need("chromium", "chromedriver")
    queries, subjects = read(options.queries, options.first), read(options.subjects)
    longest = 1 + max(range(len(queries)), key=lambda place: len(queries[place][1]))
    rows = []
    with tempfile.TemporaryDirectory(prefix="swsearch-report-") as name, browser() as driver:
        folder = Path(name)
        asked = write(folder / "queries.fasta", queries)
        version = driver.capabilities["browserVersion"]
        for mode in ("local", "global"):
            page = folder / f"{mode}.html"
            what = ("--mode", mode, "--evalue", "1e300", "--max-hits", options.hits)
            swsearch("search", asked, options.subjects, *what, "--outfmt", "html", "-o", page, "--quiet")
            size = f"{page.stat().st_size / 1e6:.1f}"
            for width in WIDTHS:
                seconds = times(driver, page, width, options.loads, longest)
                rows.append([mode, size, f"{width:,}", *(f"{each:.2f}" for each in seconds)])
    lines = [*heading(__file__, ["selenium"]), f"Chromium {version}, headless", data_line(queries, subjects, options)]
    lines += [f"{len(queries)} queries x {options.hits} hits; medians of {options.loads} loads", ""]
    columns = ["mode", "MB", "pixels wide", "s to show it", "s to the longest query", "s to sort it"]
    finish([*lines, *table(columns, rows)], options.out)


if __name__ == "__main__":
    main()
