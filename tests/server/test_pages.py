"""The pages as a browser without a script gets them: the form, what is wrong with it, and who may do what."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest

from support.fake_house import FakeHouse
from support.web_pages import Page, Visitor, pages_alone
from swsearch.client.search_request import OPTION_NAMES, SERVER_ROWS
from swsearch.errors import OptionError, SequenceError
from swsearch.pipeline.options import DEFAULT_EVALUE, SearchOptions
from swsearch.server.errors import ServerProblem
from swsearch.server.pages import safe_path
from swsearch.server.search_form import (
    EXAMPLES,
    FORM_FIELDS,
    MAX_FILE_TEXT,
    NOT_ON_THE_PAGE,
    default_title,
)
from swsearch.server.templating import lasting, named

HOSTILE = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }} {% include 'base.html' %}",
    "\u202egnirts\u2066 \x1b[31m\x07",
    "a" * 10_000,
    "</textarea></title><svg onload=alert(1)>",
)

NO_USUAL = {name for name, row in SERVER_ROWS.items() if row.default is None}
"""Options that are None unless they are given, whose field says what that means."""

TRANSLATION_OPTIONS = [name for name, row in SERVER_ROWS.items() if row.requires == "translate"]

OPTIONS_TYPED = {
    "translate": ("on", True), "genetic_code": ("11", 11), "strand": ("minus", "minus"), "frame_shift": ("15", 15),
    "evalue": ("1e-5", 1e-5), "max_hits": ("1,000", 1000), "preset": ("short", "short"),
    "matrix": ("BLOSUM80", "BLOSUM80"), "gap_open": ("12", 12), "gap_extend": (" 2 ", 2),
    "mode": ("semiglobal", "semiglobal"), "query_loc": (" 2-9 ", "2-9"), "max_alignments": ("3", 3),
    "query_mask": ("lower", "lower"), "subject_mask": ("none", "none"), "allow_dna": ("on", True),
    "ignore_missing_ids": ("on", True), "statistics": ("fitted", "fitted"), "dbsize": ("5M", 5_000_000),
    "sort": ("score", "score"), "min_score": ("50", 50), "min_identity": ("30 %", 30.0),
    "min_query_coverage": ("50", 50.0), "min_subject_coverage": ("12.5", 12.5),
    "include_ids": ("P01308,\nP69905\n", ["P01308", "P69905"]), "exclude_ids": ("P00698", ["P00698"]),
    "taxids": ("9606, 10090", ["9606", "10090"]), "exclude_taxids": ("63221", ["63221"]), "iterations": ("3", 3),
    "inclusion_evalue": (".001", 0.001), "inclusion_coverage": ("50", 50.0), "max_included": ("2k", 2000),
}  # fmt: skip
"""Fields of the form: what is typed, and what is asked for then."""


def request_of(house: FakeHouse, address: str) -> Any:
    return house.requests[address.rpartition("/")[2]]


# every option is there, in words that are true


def test_every_option_of_a_search_is_in_the_form(visitor: Visitor) -> None:
    page = visitor.page("/")
    there = {each.attributes["name"] for kind in ("input", "select", "textarea") for each in page.all(kind)}
    assert set(OPTION_NAMES) - set(NOT_ON_THE_PAGE) <= there
    assert {"queries", "file", "database", "title", "query_format"} <= there
    assert set(NOT_ON_THE_PAGE) < set(OPTION_NAMES)
    assert set(FORM_FIELDS) <= there


def test_what_an_empty_field_says_is_what_it_means() -> None:
    usual = SearchOptions()
    shown = {name: getattr(usual, name) for name in SERVER_ROWS if name not in NO_USUAL} | {"evalue": DEFAULT_EVALUE}
    assert {"mode", "max_hits", "sort", "iterations", "inclusion_evalue", "preset"} < set(shown)
    for name, value in shown.items():
        if name in FORM_FIELDS and FORM_FIELDS[name].widget != "flag":
            default = FORM_FIELDS[name].default
            assert default == value if isinstance(value, str) else float(default) == value, name


def test_what_is_typed_is_asked_for(visitor: Visitor, house: FakeHouse) -> None:
    assert set(OPTIONS_TYPED) == set(OPTION_NAMES) - set(NOT_ON_THE_PAGE)
    for name, (typed, meant) in OPTIONS_TYPED.items():
        with_it = {"translate": True} if name in TRANSLATION_OPTIONS else {}  # they are for DNA alone
        dna = {"queries": ">q\nACGTACGTTGCA\n"} if with_it or name == "translate" else {}
        found = request_of(house, visitor.sent({name: typed, **dna, **dict.fromkeys(with_it, "on")})).options
        assert {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()} == {
            "distribution": True,
            **with_it,
            name: meant,
        }


def test_an_empty_form_asks_for_nothing_but_what_the_report_draws(visitor: Visitor, house: FakeHouse) -> None:
    page = visitor.page("/")
    filled = {each.attributes["name"]: each.attributes.get("value", "") for each in page.all("input", type="text")}
    filled |= {
        select.attributes["name"]: next(each for each in select.inside if "selected" in each.attributes).attributes[
            "value"
        ]
        for select in page.all("select")
    }
    request = request_of(house, visitor.sent(filled))
    assert request.options == {"distribution": True}
    assert (request.database, request.query_format, request.title) == ("sprot", "auto", "q")


def test_a_matrix_of_ones_own_can_be_pasted(visitor: Visitor, house: FakeHouse) -> None:
    text = (files("swsearch.matrices") / "PAM70.txt").read_text("ascii")
    found = request_of(
        house, visitor.sent({"matrix_text": text.replace("\n", "\r\n"), "matrix": "PAM30", "gap_open": "9"})
    )
    assert found.options["matrix"] == {"name": "custom", "text": text.strip("\n") + "\n"}
    again = visitor.page(f"/?from={next(reversed(house.jobs))}")
    assert again.one("textarea", name="matrix_text").text.strip("\n") == text.strip("\n")


def test_a_file_is_searched_with_under_its_name(visitor: Visitor, house: FakeHouse) -> None:
    file = ("C:\\home\\mine/..\\a<b>.fasta", b">x\nMKV\n>y\nMKL\n")
    found = request_of(house, visitor.sent({"queries": ""}, files={"file": file}))
    assert found.queries == file[1]
    assert found.title == found.origin["queries"] == "a<b>.fasta"


def test_no_name_of_a_file_is_too_odd(visitor: Visitor, house: FakeHouse) -> None:
    for name in ("x" * 1000, "a\u202eb\ud800.fa".encode("utf-8", "replace").decode(), "<b>", "..", "a\tb"):
        found = request_of(house, visitor.sent({"queries": ""}, files={"file": (name, b">x\nMKV\n")}))
        assert 1 <= len(found.title) <= 200 and "\u202e" not in found.title and "\t" not in found.title


def test_a_long_paste_is_taken(visitor: Visitor, house: FakeHouse) -> None:
    text = ">long\n" + "MKTAYIAKQR\r\n" * 150_000
    file = {"file": ("none", b"")}  # makes it multipart, as the form is
    assert len(text) > 1 << 20
    assert request_of(house, visitor.sent({"queries": text}, files=file)).queries == text.replace("\r", "").encode()


# what is wrong


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("evalue", "ten"), ("evalue", "-1"), ("evalue", "1e400"), ("max_hits", "1.5"), ("max_hits", "0"),
        ("max_hits", "9" * 40), ("max_hits", "\u0663"), ("dbsize", "1e19"), ("gap_open", "-3"),
        ("min_identity", "101"), ("matrix", "NOPE"), ("matrix_text", "no matrix"), ("iterations", "0"),
        ("inclusion_evalue", "x"),
    ],
)  # fmt: skip
def test_a_wrong_value_comes_back_at_its_field(visitor: Visitor, house: FakeHouse, name: str, text: str) -> None:
    typed = {"queries": ">q\nMKV", "database": "trembl", "title": "mine", "exclude_ids": "P1\nP2", name: text}
    answer = visitor.post("/search", typed)
    assert answer.status_code == 422
    assert house.jobs == {}
    page = Page(answer.text)
    kind = {"choice": "select", "text": "textarea"}.get(FORM_FIELDS[name].widget, "input")
    field = page.one(kind, name=name)
    assert "autofocus" in field.attributes and field.attributes["aria-invalid"] == "true"
    said = [page.one("p", id=each).text for each in field.attributes["aria-describedby"].split()]
    assert "expected" in said[0] and name not in said[0]
    assert name == "matrix_text" or f"{FORM_FIELDS[name].label}: got" in page.one("div", role="alert").text
    if kind == "input":
        assert field.attributes["value"] == text
    elif kind == "textarea":
        assert field.text.strip("\n") == text
    else:
        assert [each.attributes["value"] for each in field.inside if "selected" in each.attributes] == [text]
    assert page.one("textarea", name="queries").text == "\n>q\nMKV"
    assert page.one("input", name="title").attributes["value"] == "mine"
    assert page.one("textarea", name="exclude_ids").text == "\nP1\nP2"
    assert "checked" in page.one("input", name="database", value="trembl").attributes
    assert "checked" not in page.one("input", name="database", value="sprot").attributes
    folded = [each for each in page.all("details") if field in each.inside]
    assert all("open" in each.attributes for each in folded) and bool(folded) == (FORM_FIELDS[name].group != "main")


@pytest.mark.parametrize(
    ("error", "field"),
    [
        (SequenceError("queries", "no residue", "q"), "queries"),
        (ServerProblem("too_large", "at most 10 residues", option="queries"), "queries"),
        (OptionError("database", "x", "one of sprot, trembl"), "database"),
        (ServerProblem("too_many", "100 jobs wait", retry_after=7), ""),
        (RuntimeError("bug"), None),
    ],
)
def test_what_the_house_refuses_is_said(
    visitor: Visitor, house: FakeHouse, error: BaseException, field: str | None
) -> None:
    house.refuses = error
    if field is None:
        with pytest.raises(RuntimeError, match="bug"):  # the gate answers, and logs it
            visitor.post("/search", {"queries": ">q\nMKV", "database": "sprot"})
        return
    answer = visitor.post("/search", {"queries": ">q\nMKV", "database": "sprot"})
    page = Page(answer.text)
    assert str(error).removeprefix("database: ").removeprefix("queries: ") in page.one("div", role="alert").text
    assert [each.attributes["id"] for each in page.elements if "autofocus" in each.attributes] == [field] * bool(
        field
    )
    if field == "":
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")


def test_nothing_to_search_with_or_in_is_said_at_its_field(visitor: Visitor) -> None:
    for typed, field in (
        ({"database": "sprot", "queries": " \r\n"}, "queries"),
        ({"queries": ">q\nMKV"}, "database"),
    ):
        answer = visitor.post("/search", typed)
        assert answer.status_code == 422
        page = Page(answer.text)
        assert [each.attributes["id"] for each in page.elements if "autofocus" in each.attributes] == [field]
        assert "checked" not in page.one("input", name="database", value="trembl").attributes


def test_a_file_comes_back_as_text_and_a_large_one_is_asked_for_again(visitor: Visitor) -> None:
    typed = {"database": "sprot", "evalue": "x"}
    answer = visitor.post("/search", typed, files={"file": ("a.fa", b">q\nMKV\n")})
    assert Page(answer.text).one("textarea", name="queries").text == "\n>q\nMKV\n"
    large = b">q\n" + b"M" * MAX_FILE_TEXT
    answer = visitor.post("/search", typed, files={"file": ("a.fa", large)})
    assert "Choose a.fa again" in answer.text
    assert len(answer.text) < 50_000
    answer = visitor.post("/search", {**typed, "queries": ">q\nMKV"}, files={"file": ("a.fa", b">q\nMKV\n")})
    assert "not both" in Page(answer.text).one("p", id="queries-problem").text or "evalue" in answer.text


def test_pasted_queries_and_a_file_are_not_searched_with(visitor: Visitor, house: FakeHouse) -> None:
    answer = visitor.post("/search", {"database": "sprot", "queries": ">q\nMKV"}, files={"file": ("a.fa", b">r\nMK")})
    assert "not both" in Page(answer.text).one("p", id="queries-problem").text
    answer = visitor.post("/search", {"database": "sprot"}, files={"file": ("a.fa.gz", b"\x1f\x8b\x08\0\0")})
    assert "decompress the file first" in Page(answer.text).one("p", id="queries-problem").text
    assert house.jobs == {}


def test_fields_that_the_form_does_not_have_are_refused(visitor: Visitor) -> None:
    answer = visitor.post("/search", {"database": "sprot", "queries": ">q\nMKV", "engine": "gpu<script>"})
    assert answer.status_code == 400
    assert "gpu" not in answer.text and "unknown form field &#39;engine&#39;" in answer.text
    many = {f"x{number}": "1" for number in range(501)}
    assert visitor.post("/search", many, files={"file": ("none", b"")}).status_code == 400


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_others_is_markup(house: FakeHouse, visitor: Visitor, text: str) -> None:
    house.databases["odd"] = FakeHouse(names=("odd",), title=text, problem=text, state="failed").databases["odd"]
    answer = visitor.post("/search", {"queries": text, "title": text[:5000], "matrix": text, "evalue": text})
    pages = [answer.text, visitor.get("/").text, visitor.get("/about").text]
    address = visitor.sent({"title": text[:200], "queries": f">{text.split(maxsplit=1)[0]}\nMKV"})
    identifier = address.rpartition("/")[2]
    for changed in (
        {"state": "running"},
        {"state": "failed", "problem": {"code": "failed", "message": text}, "ended": 2e9},
        {"notes": (text,)},
        {"title": text, "database": text, "options": {"matrix": text, "evalue": text, "unknown": text}},
    ):
        house.put(identifier, **changed)
        pages += [visitor.get(address).text, visitor.get(f"{address}/details").text, visitor.get("/jobs").text]
    for page in pages:
        read = Page(page)  # everything that was opened is closed where it should be
        assert not [each for each in read.elements if each.name in ("img", "svg") or "onerror" in each.attributes]
        assert all(each.attributes.get("src", "x") or not each.text for each in read.all("script"))
        assert "alert(1)" not in "".join(each.text for each in read.all("script"))
        assert "a" * 1000 not in read.seen
        assert "\x1b" not in read.seen and "\u202e" not in read.seen
    assert "49 " not in pages[0]


# examples, jobs as forms, names


def test_examples_are_real_queries_that_fill_the_form(visitor: Visitor, house: FakeHouse) -> None:
    page = visitor.page("/")
    links = [each.attributes["href"] for each in page.all("a") if "data-fasta" in each.attributes]
    assert len(links) == len(EXAMPLES) >= 4
    for example in EXAMPLES.values():
        filled = visitor.page(f"/?example={example.key}")
        text = filled.one("textarea", name="queries").text.lstrip("\n")
        assert text == example.fasta == visitor.get(f"/examples/{example.key}").text
        house_request = request_of(house, visitor.sent({"queries": text, **example.values}))
        assert len(house_request.read_queries()[0]) == len(example.identifiers)
    assert "selected" in visitor.page("/?example=glucagon").one("option", value="short").attributes
    assert visitor.get("/examples/..%2fpage.css").status_code == 404
    assert visitor.get("/?example=none").status_code == 200


def test_a_job_fills_the_form(visitor: Visitor, house: FakeHouse) -> None:
    others = ("preset", "max_alignments", "query_loc", "translate", *TRANSLATION_OPTIONS)
    typed = {name: text for name, (text, _) in OPTIONS_TYPED.items() if name not in others}
    typed |= {"database": ["sprot", "trembl"], "title": "again", "statistics": "published", "gap_open": "10"}
    typed |= {"matrix": "BLOSUM80", "gap_extend": "1", "mode": "local"}
    first = request_of(house, visitor.sent(typed))
    identifier = next(iter(house.jobs))
    page = visitor.page(f"/?from={identifier}")
    again = {each.attributes["name"]: each.attributes.get("value", "") for each in page.all("input", type="text")}
    again |= {each.attributes["name"]: each.text.removeprefix("\n") for each in page.all("textarea")}
    for select in page.all("select"):
        chosen = [each for each in select.inside if "selected" in each.attributes]
        again[select.attributes["name"]] = chosen[0].attributes["value"]
    ticked = [each for each in page.all("input", type="checkbox") if "checked" in each.attributes]
    assert [each.attributes["value"] for each in ticked if each.attributes["name"] == "database"] == typed["database"]
    again |= {"allow_dna": "on", "ignore_missing_ids": "on"}
    second = request_of(house, visitor.sent(again))
    assert (second.queries, second.options, second.title) == (first.queries, first.options, first.title)
    assert visitor.get("/?from=../../etc").status_code == 404
    assert not page.all("p", class_="note")
    house.requests[identifier] = replace(first, options={**first.options, "keep_next": True})
    assert "also used keep_next." in visitor.page(f"/?from={identifier}").one("p", class_="note").text


def test_values_of_other_clients_fill_the_form_as_they_are(visitor: Visitor, house: FakeHouse) -> None:
    options = {"query_loc": [2, 9], "include_ids": ["a,b", "c"], "taxids": [9606, 10090]}
    request_of(house, visitor.sent({}))
    identifier = next(iter(house.jobs))
    house.requests[identifier] = replace(house.requests[identifier], options=options)
    page = visitor.page(f"/?from={identifier}")
    assert page.one("input", name="query_loc").attributes["value"] == "2-9"
    again = {name: page.one("textarea", name=name).text for name in ("include_ids", "taxids")}
    found = request_of(house, visitor.sent({**again, "query_loc": "2-9"})).options
    assert {name: found[name] for name in options} == options | {"query_loc": "2-9", "taxids": ["9606", "10090"]}


def test_queries_of_a_job_that_are_too_many_to_show_are_taken_from_it(visitor: Visitor, house: FakeHouse) -> None:
    text = ">long\n" + "MKTAYIAKQR\n" * 110_000
    visitor.sent({"queries": text}, files={"file": ("none", b"")})
    identifier = next(iter(house.jobs))
    page = visitor.page(f"/?from={identifier}")
    assert page.one("textarea", name="queries").text.strip() == ""
    assert page.one("input", name="queries_of").attributes["value"] == identifier
    found = request_of(house, visitor.sent({"queries": "", "queries_of": identifier}))
    assert found.queries == text.encode()
    other = request_of(house, visitor.sent({"queries": ">q\nMKV", "queries_of": identifier}))
    assert other.queries == b">q\nMKV"


@pytest.mark.parametrize(
    ("queries", "file", "name"),
    [
        (b">sp|P01308|INS human\nMKV", "", "sp|P01308|INS"),
        (b">a\nMKV\n>b\nMKV\n>c\nMKV", "", "a and 2 more"),
        (b"MKV", "", "pasted"),
        (b">\nMKV", "", "pasted"),
        (b"; note\n>a\nMKV\n>b\nM", "", "a and 1 more"),
        (b">a\nMKV", "mine.fa", "mine.fa"),
        (b">" + b"x" * 500 + b"\nMKV\n>b\nM", "", "x" * 189 + " and 1 more"),
    ],
)
def test_a_search_without_a_name_has_that_of_its_queries(queries: bytes, file: str, name: str) -> None:
    assert default_title(queries, file) == name


def test_words_of_durations_and_names() -> None:
    assert [lasting(each) for each in (-1, 0.26, 9.96, 61, 119.6, 3600, 86400 * 7)] == [
        "0.0 s", "0.3 s", "10.0 s", "61 s", "2 min", "60 min", "7 days",
    ]  # fmt: skip
    assert named("a\u202eb\nc") == "a\ufffdb\ufffdc"
    assert len(named("x" * 10_000)) == 301


# all pages


def test_pages_are_sound_and_allow_nothing_from_elsewhere(visitor: Visitor, house: FakeHouse) -> None:
    address = visitor.sent({"database": ["sprot", "trembl"]})
    identifier = address.rpartition("/")[2]
    wrong = visitor.post("/search", {"queries": "", "evalue": "x"})
    found = {"wrong": wrong}
    for state in ("queued", "running", "failed", "cancelled"):
        house.put(identifier, state=state, ended=2e9 if state in ("failed", "cancelled") else None, begun=1.9e9)
        found |= {f"{state} {path}": visitor.get(path) for path in (address, f"{address}/details", "/jobs")}
    house.put(identifier, state="done", n_hits=3)
    paths = ("/", "/about", "/jobs", f"{address}/details", f"{address}/summary", "/jobs/none", "/?example=globins")
    found |= {path: visitor.get(path) for path in paths}
    for where, answer in found.items():
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert answer.headers["referrer-policy"] == "same-origin"
        page = Page(answer.text)
        assert page.one("html").attributes["lang"] == "en"
        assert re.fullmatch(r"\S.* - swsearch", page.one("title").text), where
        assert len(page.all("main")) == len(page.all("h1")) == 1
        assert page.all("nav") and page.all("header") and page.all("a", class_="skip", href="#main")
        names = [each.attributes["id"] for each in page.elements if "id" in each.attributes]
        assert len(names) == len(set(names)), where
        labelled = {each.attributes["for"] for each in page.all("label") if "for" in each.attributes}
        within = [each for label in page.all("label") for each in label.inside]
        for each in page.elements:
            assert not {"style", "onclick"} & set(each.attributes) and each.name != "style"
            if each.name == "script":
                is_ours = each.attributes.get("src", "").startswith("/static/")
                assert is_ours or each.attributes["type"] == "application/json"
            for name in ("href", "src", "action"):
                assert each.attributes.get(name, "/").startswith(("/", "#")), where
            if each.name in ("input", "select", "textarea") and each.attributes.get("type") != "hidden":
                assert each.attributes.get("id") in labelled or each in within, (where, each)
            for name in ("aria-describedby", "aria-labelledby"):
                assert set(each.attributes.get(name, "").split()) <= set(names), (where, each)


def test_links_lead_through_the_proxys_path(house: FakeHouse) -> None:
    visitor = Visitor(pages_alone(house), root="/lab/search")
    address = visitor.post("/search", {"queries": ">q\nMKV", "database": "sprot"}).headers["location"]
    assert re.fullmatch(r"/lab/search/jobs/[A-Z0-9]{20}", address)
    assert "path=/lab/search" in str(visitor.cookies.jar).lower() or "/lab/search" in repr(visitor.cookies.jar)
    plain = address.removeprefix("/lab/search")
    for path in ("/", "/about", "/jobs", plain, f"{plain}/details", "/jobs/none"):
        page = Page(visitor.get(path).text)
        links = [each.attributes[name] for each in page.elements for name in ("href", "src", "action", "data-state")
                 if name in each.attributes]  # fmt: skip
        assert len(links) > 6
        assert all(each.startswith(("/lab/search/", "#")) for each in links), links
    assert "http://lab:8080/lab/search/sprot" in visitor.get("/about").text


def test_static_files_are_kept_under_the_address_of_their_content(visitor: Visitor) -> None:
    page = visitor.page("/")
    style = page.one("link", rel="stylesheet").attributes["href"]
    answer = visitor.get(style)
    assert answer.headers["content-type"].startswith("text/css")
    assert "immutable" in answer.headers["cache-control"]
    assert visitor.get("/static/old/page.css").headers["cache-control"] == "no-cache"
    for path in ("/static/x/pages.py", "/static/x/..%2f__init__.py", "/static/x/examples.fasta"):
        assert visitor.get(path).status_code == 404


def test_who_logs_in_stays_here() -> None:
    assert [safe_path(path) for path in ("/jobs", "/jobs/ABC?queries=1-50")] == ["/jobs", "/jobs/ABC?queries=1-50"]
    for path in ("//evil.org", "/\\evil.org", "https://evil.org", "/a\r\nSet-Cookie: x=1", "/" + "a" * 600, ""):
        assert safe_path(path) == "/", path


def test_a_token_becomes_a_cookie_that_no_script_reads() -> None:
    visitor = Visitor(pages_alone(FakeHouse(tokens=["secret-secret-secret"])))
    answer = visitor.post("/login", {"token": "wrong-wrong-wrong-wrong", "next": "/jobs"})
    assert answer.status_code == 401 and "Unknown token." in answer.text
    assert "wrong-wrong" not in answer.text
    answer = visitor.post("/login", {"token": " secret-secret-secret ", "next": "/jobs"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "secret-secret" not in cookie
    assert "Log out" in visitor.get("/").text
    assert 'curl -H "Authorization: Bearer $SWSEARCH_TOKEN" -F' in Page(visitor.get("/about").text).seen
    assert "Max-Age=0" in visitor.post("/logout").headers["set-cookie"]
    alone = Visitor(pages_alone(FakeHouse()))
    assert alone.get("/login").headers["location"] == "/"
    assert "Log out" not in alone.get("/").text


def test_a_dna_database_is_shown_as_one() -> None:
    dna = {"nucleotides": 5_000_000, "n_residues": 9_999_900, "n_subjects": 3, "genetic_code": 11}
    alone = Visitor(pages_alone(FakeHouse(names=("genome",), **dna)))
    form, about = alone.page("/").seen, alone.page("/about").seen
    assert "3 DNA records, 5,000,000 nucleotides" in form
    assert "Search databases" in form
    for text in ("DNA databases are searched in their six reading frames", "Nucleotides5,000,000", "Genetic code11",
                 "Residues of six frames9,999,900", 'qblast("tblastn", "genome"'):  # fmt: skip
        assert text in " ".join(about.split()), text
