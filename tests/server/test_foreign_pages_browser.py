"""Pages of other sites in headless Chromium: what they send changes nothing, and the server's own pages work."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from urllib.parse import urlencode

import pytest

from support.browsers import MARKS, Browser, chromium
from support.samples import sample
from support.serving import QUERY, SEQUENCES, Served, serving, until
from swsearch.server.settings import ServerSettings

pytestmark = MARKS

NAMES = ("lab.example", "evil.example")
"""Names that lead the browser to this machine, to which it sends no Sec-Fetch headers."""

PUT = {"CMD": "Put", "PROGRAM": "blastp", "DATABASE": "two", "QUERY": SEQUENCES["alpha"]}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    rules = ", ".join(f"MAP {name} 127.0.0.1" for name in NAMES)
    with chromium(tmp_path_factory.mktemp("downloads"), f"--host-resolver-rules={rules}") as found:
        yield found


@pytest.fixture
def log() -> list[str]:
    """Lines about all requests of the server."""
    return []


@pytest.fixture
def attacked(server_settings: ServerSettings, tmp_path: Path, log: list[str]) -> Iterator[Served]:
    settings = replace(
        server_settings, databases=server_settings.databases[1:], folder=tmp_path, hosts=("127.0.0.1", NAMES[0])
    )
    with serving(settings, is_verbose=True, lines=log) as found:
        yield found


@contextmanager
def elsewhere(page: str) -> Iterator[int]:
    """Serve a page on another port, whatever is asked for."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def form(action: str, fields: dict[str, str], kind: str, number: int) -> str:
    inputs = "".join(f"<input name={name} value='{value}'>" for name, value in fields.items())
    return (
        f"<iframe name=frame{number}></iframe>"
        f"<form method=post action='{action}' enctype={kind} target=frame{number}>{inputs}</form>"
    )


def attack(url: str, job: str) -> tuple[str, Counter[str]]:
    """Return a page that tries to submit searches and to delete a job, and the requests that it sends."""
    put, delete = f"{url}/Blast.cgi?{urlencode(PUT)}", f"{url}/Blast.cgi?CMD=Delete&RID={job}"
    links = [put, delete, f"{url}/blast/Blast.cgi?{urlencode(PUT)}"]
    page = ["<!DOCTYPE html><title>foreign</title>"]
    for number, link in enumerate(links):
        for policy in ("no-referrer", "unsafe-url"):
            # each by an address of its own, since browsers ask once for the same picture
            address = escape(f"{link}&HITLIST_SIZE={number + 1}" if link != delete else link)
            page.append(f"<img referrerpolicy={policy} src='{address}&amp;EXPECT={1 + len(page)}'>")
            page.append(f"<iframe referrerpolicy={policy} src='{address}'></iframe>")
    plain, parts = "text/plain", "multipart/form-data"
    page += [
        form(f"{url}/Blast.cgi", PUT, "application/x-www-form-urlencoded", 1),
        form(f"{url}/search", {"database": "two", "queries": SEQUENCES["alpha"]}, parts, 2),
        form(f"{url}/jobs/{job}/delete", {}, plain, 3),
        form(f"{url}/api/v1/jobs?database=two", {">q": SEQUENCES["alpha"]}, plain, 4),
        form(f"{url}/logout", {}, plain, 5),
    ]
    inner = form(f"{url}/jobs/{job}/cancel", {}, plain, 6) + "<script>document.forms[0].submit()</script>"
    page.append(f'<iframe sandbox="allow-forms allow-scripts" srcdoc="{escape(inner)}"></iframe>')
    page.append(
        f"""<script>
        for (const each of document.forms) each.submit();
        for (const path of ["/api/v1/search?database=two", "/Blast.cgi", "/api/v1/jobs?database=two"])
          fetch("{url}" + path, {{ method: "POST", mode: "no-cors", body: ">q\\n{SEQUENCES["alpha"]}" }});
        fetch("{url}/Blast.cgi?{urlencode(PUT)}&EXPECT=9", {{ mode: "no-cors", credentials: "include" }});
        navigator.sendBeacon("{url}/Blast.cgi", "{urlencode(PUT)}");
        </script>"""
    )
    sent = Counter({"GET /Blast.cgi": 9, "GET /blast/Blast.cgi": 4, "POST /Blast.cgi": 3, "POST /search": 1})
    sent |= Counter({f"POST /jobs/{job}/delete": 1, f"POST /jobs/{job}/cancel": 1, "POST /logout": 1})
    sent |= Counter({"POST /api/v1/jobs": 2, "POST /api/v1/search": 1})
    return "\n".join(page), sent


def seen(log: list[str], *statuses: int) -> Counter[str]:
    """Return methods and paths of requests that may change something, with these statuses or with any."""
    words = [line.split() for line in log]
    return Counter(
        f"{method} {path}"
        for _, method, path, status, *_ in words
        if (not statuses or int(status) in statuses) and (method == "POST" or path.endswith("/Blast.cgi"))
    )


PLACES = list(product(["127.0.0.1", "lab.example"], ["127.0.0.1", "lab.example", "evil.example"]))


@pytest.mark.parametrize(("own", "foreign"), sample(PLACES, lambda place: place == ("lab.example", "evil.example")))
def test_a_foreign_page_changes_nothing_and_the_own_page_does(
    browser: Browser, attacked: Served, log: list[str], own: str, foreign: str
) -> None:
    url = f"http://{own}:{attacked.port}"
    browser.begin_again()
    browser.get(f"{url}/")
    browser.one("#queries").send_keys(QUERY)
    browser.one("#go").click()
    browser.until(lambda: "/jobs/" in browser.driver.current_url)
    job = browser.driver.current_url.rpartition("/")[2]
    browser.until(lambda: browser.all("#query tbody tr"))
    log.clear()
    page, sent = attack(url, job)
    with elsewhere(page) as port:
        browser.get(f"http://{foreign}:{port}/")
        until(lambda: seen(log) >= sent)
    assert seen(log) - seen(log, 403) == Counter()
    assert seen(log, 403) == sent
    assert attacked.get("/jobs").json == {"jobs": []}
    browser.get(f"{url}/jobs")
    assert len(browser.all("tbody tr")) == 1
    browser.one("tbody button").click()
    browser.until(lambda: not browser.all("tbody tr"))


@pytest.mark.parametrize(("own", "is_told_to_be_typed"), [("127.0.0.1", True), ("lab.example", False)])
def test_a_typed_address_submits_where_the_browser_says_that_it_was_typed(
    browser: Browser, attacked: Served, own: str, is_told_to_be_typed: bool
) -> None:
    browser.begin_again()
    browser.get(f"http://{own}:{attacked.port}/Blast.cgi?{urlencode(PUT)}")
    # the driver can return before a loaded machine has drawn the page: wait for either page, then ask which it is
    browser.until(lambda: "RID =" in browser.driver.page_source or "names no page" in browser.text("body"))
    assert ("RID =" in browser.driver.page_source) is is_told_to_be_typed
    assert ("names no page" in browser.text("body")) is not is_told_to_be_typed
