"""Pages of jobs as a browser without a script gets them: states, whose they are, pages of many queries, downloads."""

from __future__ import annotations

from typing import Any

import pytest

from support.fake_house import FakeHouse
from support.serving import Served
from support.web_pages import Page, Visitor
from swsearch.errors import OptionError
from swsearch.options.kinds import JOB_STATES
from swsearch.report import OUTPUT_FORMATS
from swsearch.report.html import content_policy
from swsearch.server.errors import JOB_ADVICE, STATUSES, ServerProblem, answer_to
from swsearch.server.pages import ROWS_PER_PAGE, STATE_WORDS, progress_of, range_of, summary_of


def forms(page: Page) -> list[str]:
    return [each.attributes["action"] for each in page.all("form")]


def test_a_job_is_watched_until_it_ends(house: FakeHouse, visitor: Visitor) -> None:
    address = visitor.sent({})
    identifier = address.rpartition("/")[2]
    page = visitor.page(address)
    assert page.one("h2", id="state-title").text == "Waiting: 3 searches ahead"
    assert page.one("meta", http_equiv="refresh").attributes["content"] == "3"
    house.put(identifier, place=0)
    assert visitor.page(address).one("h2", id="state-title").text == "Waiting: next in the queue"
    house.put(identifier, state="running", begun=1.9e9, progress=0.426, place=None)
    page = visitor.page(address)
    bar = page.one("progress")
    assert (bar.attributes["value"], bar.attributes["max"], bar.attributes["aria-labelledby"]) == (
        "43", "100", "state-title",
    )  # fmt: skip
    found = visitor.get(page.one("div", id="watch").attributes["data-state"])
    assert found.headers["cache-control"] == "no-store"
    assert found.json() == {
        "state": "running", "percent": 43, "words": "Searching: 43%", "elapsed": found.json()["elapsed"],
        "is_ended": False,
    }  # fmt: skip
    house.put(identifier, state="done", n_hits=1, ended=1.95e9)
    assert visitor.get(f"{address}/state").json()["is_ended"] is True
    report = visitor.get(address)
    assert report.headers["content-security-policy"].startswith(content_policy())
    assert 'class="bar"' in report.text and f"{address}/details" in report.text
    assert house.rendered_with["subjects_url"] == f"{address}/report/1/subjects"


def test_the_time_that_is_left_is_told_when_it_can_be(house: FakeHouse, visitor: Visitor) -> None:
    identifier = visitor.sent({})[-20:]
    for state, begun, progress, words in (
        ("running", 1000.0, 0.5, "100 s so far, about 100 s left"),
        ("running", 1000.0, 0.01, "100 s so far"),
        ("running", 1099.5, 0.9, "0.5 s so far"),
        ("queued", None, 0.0, "0.0 s so far"),
    ):
        house.put(identifier, state=state, begun=begun, progress=progress)
        assert progress_of(house.jobs[identifier], 1100.0)["elapsed"] == words


@pytest.mark.parametrize("path", ["/none", "/jobs/none", "/api/v1/jobs/none", "/Blast.cgi", "/static/x/none"])
def test_who_reads_pages_gets_one_when_something_is_wrong(served: Served, path: str) -> None:
    browsers = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    shown, told = served.ask("GET", path, None, browsers), served.ask("GET", path)
    assert shown.status == told.status
    is_page = path in ("/none", "/jobs/none", "/static/x/none", "/Blast.cgi")
    assert shown.headers["content-type"].startswith("text/html") == is_page
    if path == "/none":
        assert told.error["code"] == "not_found"
        assert Page(shown.body.decode()).one("h1").text == "Not found"


def test_the_page_to_log_in_knows_where_one_was_going() -> None:
    problem = ServerProblem("not_authenticated", "a token")
    browsers = [(b"accept", b"text/html")]
    scope = {
        "method": "GET",
        "path": "/lab/jobs",
        "root_path": "/lab",
        "query_string": b"page=2",
        "headers": browsers,
    }
    answer = answer_to(scope, problem)
    page = Page(bytes(answer.body).decode())
    assert answer.status_code == 401 and page.one("form").attributes["action"] == "/lab/login"
    assert page.one("input", name="next").attributes["value"] == "/jobs?page=2"
    page = Page(bytes(answer_to({**scope, "method": "POST", "path": "/lab/search"}, problem).body).decode())
    assert page.one("input", name="next").attributes["value"] == "/"
    assert "Your input is still there" in page.one("div", role="alert").text
    assert answer_to({**scope, "path": "/lab/api/v1/jobs"}, problem).media_type == "application/json"
    busy = answer_to(scope, ServerProblem("too_many", "wait", retry_after=9))
    assert (busy.status_code, busy.headers["retry-after"]) == (429, "9")


def test_a_job_without_a_title_goes_by_its_identifier(house: FakeHouse, visitor: Visitor) -> None:
    address = visitor.sent({})
    house.put(address[-20:], title="")
    for path in (address, f"{address}/details"):
        assert visitor.page(path).one("h1").text == f"Job {address[-20:]}"
    assert visitor.page("/jobs").one("th", scope="row").text == f"Job {address[-20:]}"


def test_a_job_that_failed_says_why_and_what_to_do(house: FakeHouse, visitor: Visitor) -> None:
    address = visitor.sent({})
    for code in STATUSES:
        house.put(address[-20:], state="failed", problem={"code": code, "message": "no room <left>"}, ended=2e9)
        page = visitor.page(address)
        section = page.one("section", class_="alert")
        assert "no room <left>" in section.text
        assert JOB_ADVICE.get(code, "Change the search and submit it again.") in section.text
        assert not page.all("meta", http_equiv="refresh")
    house.put(address[-20:], state="cancelled")
    assert "was cancelled" in visitor.page(address).one("h2", id="state-title").text
    assert f"/?from={address[-20:]}" in {each.attributes["href"] for each in visitor.page(address).all("a")}


def test_only_who_sent_a_job_cancels_or_deletes_it(house: FakeHouse, visitor: Visitor, fakes: Any) -> None:
    address = visitor.sent({})
    stranger = Visitor(fakes[1])
    assert forms(visitor.page(address)) == [f"{address}/cancel"]
    assert forms(stranger.page(address)) == []
    for action in ("cancel", "delete"):
        answer = stranger.post(f"{address}/{action}")
        assert answer.status_code == 403
        assert "another client" in answer.text
    assert house.jobs[address[-20:]].state == "queued"
    assert visitor.post(f"{address}/cancel").headers["location"] == address
    assert house.jobs[address[-20:]].state == "cancelled"
    assert visitor.post(f"{address}/cancel", {"then": "jobs"}).headers["location"] == "/jobs"  # it had ended
    assert forms(visitor.page(address)) == [f"{address}/delete"]
    assert forms(visitor.page("/jobs")) == [f"{address}/delete"]
    assert stranger.page("/jobs").all("tr") == []
    assert visitor.post(f"{address}/delete").headers["location"] == "/jobs"
    assert visitor.get(address).status_code == 404


def test_a_browser_has_one_name_that_no_link_from_elsewhere_takes_away(visitor: Visitor, fakes: Any) -> None:
    for path in ("/", "/jobs", "/about"):
        assert "set-cookie" not in visitor.get(path).headers
    first = visitor.post("/search", {"queries": ">q\nMKV", "database": "sprot"})
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Secure" not in cookie
    second = visitor.post("/search", {"queries": ">q\nMKV", "database": "sprot"})
    assert "set-cookie" not in second.headers
    assert len(visitor.page("/jobs").all("tr")) == 1 + 2


def test_jobs_that_are_not_there_have_a_page_that_says_so(house: FakeHouse, visitor: Visitor) -> None:
    address = visitor.sent({})
    house.expired.add(address[-20:])
    for path, status in ((address, 410), ("/jobs/" + "A" * 20, 404), ("/jobs/x%0d%0aSet-Cookie:a=1", 404)):
        for method in ("", "/details", "/state", "/report", "/summary"):
            answer = visitor.get(path + method)
            assert answer.status_code == status
            assert Page(answer.text).one("h1").text == {410: "Results expired", 404: "Not found"}[status]
    assert visitor.get("/jobs/..%2f..%2fetc").status_code == 404


@pytest.mark.parametrize("path", ["report", "summary", "report/1/subjects?query=1&hits=1"])
def test_there_are_no_results_before_the_end(house: FakeHouse, visitor: Visitor, path: str) -> None:
    address = visitor.sent({})
    if path.startswith("report/"):
        visitor.get(f"{address}/{path}")
        assert house.asked_subjects == [(address[-20:], 1, [1])]  # the house says whether there are any
        return
    assert visitor.get(f"{address}/{path}").status_code == 409


def test_many_jobs_have_pages(house: FakeHouse, visitor: Visitor) -> None:
    visitor.sent({})
    client = next(iter(house.jobs.values())).client
    request = next(iter(house.requests.values()))
    for _ in range(ROWS_PER_PAGE):
        house.submit([request], client)
    page = visitor.page("/jobs")
    assert len(page.all("tr")) == 1 + ROWS_PER_PAGE
    (last,) = page.all("a", rel="next")
    assert len(visitor.page(last.attributes["href"]).all("tr")) == 1 + 1
    assert len(visitor.page("/jobs?page=999999").all("tr")) == 1 + 1
    for wrong in ("0", "-1", "x", "1e3", "9" * 30, "\u0662"):
        assert visitor.get("/jobs", params={"page": wrong}).status_code == 422


def test_many_queries_are_shown_page_by_page(house: FakeHouse, visitor: Visitor) -> None:
    address = visitor.sent({"database": ["sprot", "trembl"]})
    identifier = address[-20:]
    n_queries = 2 * ROWS_PER_PAGE + 7
    house.put(identifier, state="done", n_queries=n_queries, n_hits=n_queries)
    visitor.get(address)
    links = {each.text: each.href for each in house.rendered_with["bar"]}
    assert house.rendered_with["queries"] == (1, ROWS_PER_PAGE)
    assert "Previous queries" not in links
    assert links["trembl: waiting"].startswith("/jobs/")
    visitor.get(links["Next queries"])
    assert house.rendered_with["queries"] == (ROWS_PER_PAGE + 1, 2 * ROWS_PER_PAGE)
    assert house.rendered_with["subjects_url"] == f"{address}/report/{ROWS_PER_PAGE + 1}/subjects"
    links = {each.text: each.href for each in house.rendered_with["bar"]}
    assert links["Previous queries"] == f"{address}/report?queries=1-{ROWS_PER_PAGE}"
    visitor.get(links["Next queries"])
    assert house.rendered_with["queries"] == (2 * ROWS_PER_PAGE + 1, n_queries)
    assert "Next queries" not in {each.text for each in house.rendered_with["bar"]}
    answer = visitor.get(f"{address}/report/101/subjects?query=2&hits=1-3,7")
    assert answer.text == ">found\nMKV\n"
    assert house.asked_subjects == [(identifier, 102, [1, 2, 3, 7])]
    assert "attachment" in answer.headers["content-disposition"]
    for wrong in ("0/subjects?query=1", "108/subjects?query=1", "101/subjects?query=8", "x/subjects?query=1"):
        assert visitor.get(f"{address}/report/{wrong}&hits=1").status_code in (404, 422)


def test_the_summary_has_a_row_for_each_query(house: FakeHouse, visitor: Visitor) -> None:
    address = visitor.sent({})
    house.put(address[-20:], state="done", n_queries=ROWS_PER_PAGE + 2, n_hits=2)
    page = visitor.page(f"{address}/summary?page=2")
    rows = [[cell.text for cell in row.inside if cell.name in ("td", "th")] for row in page.all("tr")[1:]]
    assert [row[:4] for row in rows] == [
        ["51", "query_51 the query", "1", "s1"],
        ["52", "query_52 the query", "1", "s1"],
    ]
    assert all(float(row[4]) > 100 and float(row[5]) < 1e-20 for row in rows)
    links = [each.attributes["href"] for each in page.all("a")]
    assert f"{address}/report?queries=52-52" in links


def test_a_summary_knows_queries_without_hits() -> None:
    text = (
        "# swsearch 0\n# Query: a x\n# Database: d\n# 0 hits found\n# swsearch 0\n# Query: b\n# Database: d\n"
        "# Fields: s, e\n# 2 hits found\ns1\t50\t1e-9\ns2\t40\t1e-3\n# Query: # 3 hits found\n# 0 hits found\n"
        "# swsearch processed 3 queries\n"
    )
    assert [tuple(row.values()) for row in summary_of(text.encode(), 10)] == [
        (11, "a x", 0, "", "", ""),
        (12, "b", 2, "s1", "50", "1e-9"),
        (13, "# 3 hits found", 0, "", "", ""),
    ]


def test_details_offer_every_format_that_fits(house: FakeHouse, visitor: Visitor) -> None:
    assert set(STATE_WORDS) == set(JOB_STATES)
    address = visitor.sent({"evalue": "0.5", "include_ids": "a\nb\nc\nd\ne\nf", "matrix": "PAM70", "allow_dna": "on"})
    house.put(address[-20:], state="done", n_hits=1, notes=("a doubt",), begun=1_795_000_010.0, ended=1_795_000_012.0)
    page = visitor.page(f"{address}/details")
    offered = [each.attributes["href"].rpartition("=")[2] for each in page.all("a") if "download" in each.attributes]
    assert offered[:-1] == [kind.key for kind in OUTPUT_FORMATS]
    assert "a doubt" in page.one("p", class_="note").text
    assert page.one("input", id="share").attributes["value"] == f"http://lab:8080{address}"
    facts = {each.inside[0].text: each.inside[1].text for each in page.all("div") if each.inside[:1] and
             each.inside[0].name == "dt"}  # fmt: skip
    assert facts["Maximum E-value"] == "0.5" and facts["Include only subjects"] == "a, b, c, d, e, ... (6)"
    assert facts["Matrix"] == "PAM70 (10/1)" and facts["Accept DNA-like protein sequences"] == "yes"
    assert "distribution" not in facts
    house.put(address[-20:], n_queries=2)
    page = visitor.page(f"{address}/details")
    several = [each.attributes["href"].rpartition("=")[2] for each in page.all("a") if "download" in each.attributes]
    assert (
        set(offered) - set(several) == {kind.key for kind in OUTPUT_FORMATS if kind.writer.is_single_query} != set()
    )


@pytest.mark.parametrize("text", ["0-1", "1-0", "5-3", "1-101", "x", "1-2-3", "-1", "1-", "102", "\u0661", "1-51"])
def test_queries_of_a_report_are_checked(text: str) -> None:
    with pytest.raises(OptionError, match="queries: got"):
        range_of(text, 101)


def test_numbers_in_addresses_are_read() -> None:
    assert range_of("", 101) == (1, ROWS_PER_PAGE)
    assert range_of("", 3) == (1, 3)
    assert range_of("7", 101) == (7, 7)
    assert range_of("52-101", 101) == (52, 101)
