"""Pages of jobs as a browser without a script gets them: states, whose they are, pages of many queries, downloads."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from support.serving import Served
from support.web_pages import STRANGER, Page, Visitor, site
from swsearch.options.kinds import JOB_STATES
from swsearch.report import OUTPUT_FORMATS
from swsearch.report.html import content_policy
from swsearch.server import pages
from swsearch.server.errors import JOB_ADVICE, STATUSES
from swsearch.server.pages import STATE_WORDS
from swsearch.server.settings import ServerLimits


@pytest.fixture
def held(place: Served) -> Iterator[str]:
    """Let jobs wait behind one that runs, whose identifier this is."""
    for each in place.engines:
        each.may_go.clear()
    first = place.submit({"database": "sprot", "queries": ">first\nMKV"}, Cookie=STRANGER)["id"]
    place.engines[0].wait()
    yield first
    for each in place.engines:
        each.may_go.set()


@pytest.fixture
def _few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "ROWS_PER_PAGE", 3)


def forms(page: Page) -> list[str]:
    return [each.attributes["action"] for each in page.all("form")]


def links_of(page: Page) -> dict[str, str]:
    return {each.text: each.attributes["href"] for each in page.all("a")}


def test_a_job_is_watched_until_it_ends(place: Served, visitor: Visitor, held: str) -> None:
    address, last = visitor.sent({}), visitor.sent({"database": ["sprot", "trembl"]})
    assert visitor.page(address).one("h2", id="state-title").text == "Waiting: next in the queue"
    page = visitor.page(last)
    assert page.one("h2", id="state-title").text == "Waiting: 1 search ahead"
    assert page.one("meta", http_equiv="refresh").attributes["content"] == "3"
    place.put(address[-20:], state="running", started=time.time() - 100, progress=0.5)
    page = visitor.page(address)
    bar = page.one("progress")
    assert (bar.attributes["value"], bar.attributes["max"], bar.attributes["aria-labelledby"]) == (
        "50", "100", "state-title",
    )  # fmt: skip
    found = visitor.get(page.one("div", id="watch").attributes["data-state"])
    assert found.headers["cache-control"] == "no-store"
    stated = found.json()
    elapsed, words = stated["elapsed"], stated["words"]
    assert re.fullmatch(r"10\d s so far", elapsed) and re.fullmatch(r"Searching: 50%, about 10\d s left", words)
    assert stated == {"state": "running", "percent": 50, "words": words, "elapsed": elapsed, "is_ended": False}
    assert page.one("h2", id="state-title").text.startswith("Searching: 50%, about 10")  # without a script
    for seconds, progress, so_far, words in (
        (100, 0.01, r"10\d s", "Searching: 1%"), (0, 0.9, r"0\.\d s", "Searching: 90%"),
        (3600, 0.5, "60 minutes", "Searching: 50%, about 60 minutes left"),
        (9.9 * 3600, 0.5, "10 hours", "Searching: 50%, about 10 hours left"),
        (7 * 86400, 0.01, "7 days", "Searching: 1%"),
    ):  # fmt: skip
        place.put(address[-20:], started=time.time() - seconds, progress=progress)
        stated = visitor.get(f"{address}/state").json()
        assert re.fullmatch(f"{so_far} so far", stated["elapsed"]) and stated["words"] == words
    place.put(address[-20:], started=time.time() - 3600, progress=0.9)
    # scored before the server was started again
    place.jobs.running[address[-20:]].cells_skipped = 800
    assert visitor.get(f"{address}/state").json()["words"] == "Searching: 90%, about 60 minutes left"
    del place.jobs.running[address[-20:]]
    place.put(address[-20:], state="queued", started=None)
    for each in place.engines:
        each.may_go.set()
    for each in (address, last):
        place.ended(each[-20:])
    assert visitor.get(f"{last}/state").json()["is_ended"] is True
    report = visitor.get(last)
    assert report.headers["content-security-policy"].startswith(content_policy())
    assert 'class="bar"' in report.text and f"{last}/details" in report.text
    assert f"{last}/report/1/subjects" in report.text and "trembl: " in report.text


@pytest.mark.parametrize("path", ["/none", "/jobs/none", "/api/v1/jobs/none", "/Blast.cgi", "/static/x/none"])
def test_who_reads_pages_gets_one_when_something_is_wrong(place: Served, path: str) -> None:
    browsers = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    shown, told = place.ask("GET", path, None, browsers), place.ask("GET", path)
    assert shown.status == told.status
    is_page = path in ("/none", "/jobs/none", "/static/x/none", "/Blast.cgi")
    assert shown.headers["content-type"].startswith("text/html") == is_page
    if path == "/none":
        assert told.error["code"] == "not_found"
        assert Page(shown.body.decode()).one("h1").text == "Not found"


def test_a_job_without_a_title_goes_by_its_identifier(place: Served, visitor: Visitor, held: str) -> None:
    address = visitor.sent({})
    place.put(address[-20:], title="")
    for path in (address, f"{address}/details"):
        assert visitor.page(path).one("h1").text == f"Job {address[-20:]}"
    assert visitor.page("/jobs").one("th", scope="row").text == f"Job {address[-20:]}"


def test_a_job_that_failed_says_why_and_what_to_do(place: Served, visitor: Visitor, held: str) -> None:
    address = visitor.sent({})
    for code in STATUSES:
        place.put(address[-20:], state="failed", problem={"code": code, "message": "no room <left>"}, ended=2e9)
        page = visitor.page(address)
        section = page.one("section", class_="alert")
        assert "no room <left>" in section.text
        assert JOB_ADVICE.get(code, "Change the search and submit it again.") in section.text
        assert not page.all("meta", http_equiv="refresh")
    place.put(address[-20:], state="cancelled")
    assert "was cancelled" in visitor.page(address).one("h2", id="state-title").text
    assert f"/?from={address[-20:]}" in links_of(visitor.page(address)).values()


def test_only_who_sent_a_job_cancels_or_deletes_it(place: Served, visitor: Visitor, held: str) -> None:
    address = visitor.sent({})
    stranger = Visitor(place.url)
    assert forms(visitor.page(address)) == [f"{address}/cancel"]
    assert forms(stranger.page(address)) == []
    for action in ("cancel", "delete"):
        answer = stranger.post(f"{address}/{action}")
        assert answer.status_code == 403
        assert "another client" in answer.text
    for path in ("report", "summary", "report/1/subjects?query=1&hits=1"):  # before its end
        assert visitor.get(f"{address}/{path}").status_code == 409
    assert visitor.post(f"{address}/cancel").headers["location"] == address
    assert place.get(f"/jobs/{address[-20:]}").json["state"] == "cancelled"
    assert visitor.post(f"{address}/cancel", {"then": "jobs"}).headers["location"] == "/jobs"  # it had ended
    assert forms(visitor.page(address)) == [f"{address}/delete"]
    assert forms(visitor.page("/jobs")) == [f"{address}/delete"]
    assert stranger.page("/jobs").all("tr") == []
    assert visitor.post(f"{address}/delete").headers["location"] == "/jobs"
    assert visitor.get(address).status_code == 404


def test_a_browser_has_one_name_that_no_link_from_elsewhere_takes_away(visitor: Visitor) -> None:
    for path in ("/", "/jobs", "/about"):
        assert "set-cookie" not in visitor.get(path).headers
    typed = {"queries": ">q\nMKV", "database": "sprot"}
    cookie = visitor.post("/search", typed).headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Secure" not in cookie
    assert "set-cookie" not in visitor.post("/search", typed).headers
    assert len(visitor.page("/jobs").all("tr")) == 1 + 2


def test_a_full_queue_is_said(tmp_path: Any) -> None:
    with site(tmp_path, limits=ServerLimits(client_jobs=1)) as served:
        served.engines[0].may_go.clear()
        visitor = Visitor(served.url)
        visitor.sent({})
        answer = visitor.post("/search", {"queries": ">q\nMKV", "database": "sprot"})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "10")
        page = Page(answer.text)
        assert "1 of your jobs wait or run" in page.one("div", role="alert").text
        assert not [each for each in page.elements if "autofocus" in each.attributes]


def test_jobs_that_are_not_there_have_a_page_that_says_so(place: Served, visitor: Visitor) -> None:
    address = visitor.sent({})
    place.ended(address[-20:])
    place.put(address[-20:], expires=1.0)
    place.jobs.remove_expired()
    for path, status in ((address, 410), ("/jobs/" + "A" * 20, 404), ("/jobs/x%0d%0aSet-Cookie:a=1", 404)):
        for method in ("", "/details", "/state", "/report", "/summary"):
            answer = visitor.get(path + method)
            assert answer.status_code == status
            assert Page(answer.text).one("h1").text == {410: "Results expired", 404: "Not found"}[status]
    assert visitor.get("/jobs/..%2f..%2fetc").status_code == 404


@pytest.mark.usefixtures("_few_rows")
def test_many_jobs_have_pages(visitor: Visitor) -> None:
    for _ in range(4):
        visitor.sent({})
    page = visitor.page("/jobs")
    assert len(page.all("tr")) == 1 + 3
    (last,) = page.all("a", rel="next")
    assert len(visitor.page(last.attributes["href"]).all("tr")) == 1 + 1
    assert len(visitor.page("/jobs?page=999999").all("tr")) == 1 + 1
    for wrong in ("0", "-1", "x", "1e3", "9" * 30, "\u0662"):
        assert visitor.get("/jobs", params={"page": wrong}).status_code == 422


@pytest.mark.usefixtures("_few_rows")
def test_many_queries_are_shown_page_by_page(place: Served, visitor: Visitor) -> None:
    records = [">P01308 one", ">b", ">c", ">d", ">e", ">f", ">g"]
    letters = ["MKVLAAGIVGWWHHKDEFRTYPCNQS", *[""] * 5, "MKVLAAGIVGWWHHKDEFRTAPCNQS"]
    address = visitor.sent({"queries": "".join(f"{a}\n{b}\n" for a, b in zip(records, letters, strict=True))})
    place.ended(address[-20:])
    links = links_of(page := visitor.page(address))
    assert "Previous queries" not in links and "1 to 3 of 7" in page.seen
    middle = visitor.get(links["Next queries"])
    assert links["Next queries"].endswith("queries=4-6")
    assert f"{address}/report/4/subjects" in middle.text
    links = links_of(Page(middle.text))
    assert links["Previous queries"] == f"{address}/report?queries=1-3"
    assert links["Next queries"] == f"{address}/report?queries=7-7"
    assert "Next queries" not in links_of(visitor.page(links["Next queries"]))
    answer = visitor.get(f"{address}/report/7/subjects?query=1&hits=1-2")
    assert [line for line in answer.text.splitlines() if line[0] == ">"] == [">P69905 OX=10090", ">P01308 OX=9606"]
    assert "attachment" in answer.headers["content-disposition"]
    for wrong in ("0/subjects?query=1", "8/subjects?query=1", "7/subjects?query=2", "x/subjects?query=1"):
        assert visitor.get(f"{address}/report/{wrong}&hits=1").status_code in (404, 422)
    assert visitor.page(f"{address}/report?queries=5").seen
    for wrong in ("0-1", "1-0", "5-3", "1-8", "x", "1-2-3", "-1", "1-", "8", "\u0661", "1-4"):
        answer = visitor.get(f"{address}/report", params={"queries": wrong})
        assert (answer.status_code, "queries: got" in answer.text) == (422, True)
    rows = []
    for number in (1, 2, 3):
        page = visitor.page(f"{address}/summary?page={number}")
        rows += [[cell.text for cell in row.inside if cell.name in ("td", "th")] for row in page.all("tr")[1:]]
    assert [row[:4] for row in rows] == [
        ["1", "P01308 one", "3", "P01308"], *([str(number), name[1:], "0", ""] for number, name in
        enumerate(records[1:6], 2)), ["7", "g", "3", "P69905"],
    ]  # fmt: skip
    assert float(rows[0][4]) > 100 and float(rows[0][5]) < 1e-9
    assert f"{address}/report?queries=7-7" in links_of(page).values()


def test_details_offer_every_format_that_fits(place: Served, visitor: Visitor) -> None:
    assert set(STATE_WORDS) == set(JOB_STATES)
    names = {"include_ids": "P01308\nb\nc\nd\ne\nf", "ignore_missing_ids": "on"}
    address = visitor.sent({"evalue": "0.5", "matrix": "PAM70", "allow_dna": "on", **names})
    place.ended(address[-20:])
    place.put(address[-20:], notes=["a doubt"])
    page = visitor.page(f"{address}/details")
    offered = [each.attributes["href"].rpartition("=")[2] for each in page.all("a") if "download" in each.attributes]
    assert offered[:-1] == [kind.key for kind in OUTPUT_FORMATS]
    assert "a doubt" in page.one("p", class_="note").text
    assert page.one("input", id="share").attributes["value"] == f"{place.url}{address}"
    facts = {each.inside[0].text: each.inside[1].text for each in page.all("div") if each.inside[:1] and
             each.inside[0].name == "dt"}  # fmt: skip
    assert facts["Maximum E-value"] == "0.5" and facts["Include only subjects"] == "P01308, b, c, d, e, ... (6)"
    assert facts["Matrix"] == "PAM70 (10/1)" and facts["Accept DNA-like protein sequences"] == "yes"
    assert "distribution" not in facts
    place.put(address[-20:], n_queries=2)
    page = visitor.page(f"{address}/details")
    several = [each.attributes["href"].rpartition("=")[2] for each in page.all("a") if "download" in each.attributes]
    single = {kind.key for kind in OUTPUT_FORMATS if kind.writer.is_single_query}
    assert set(offered) - set(several) == single != set()
