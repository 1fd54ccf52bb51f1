"""The form as a browser without a script gets it: what is asked for by it, what is wrong with it, and all pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from support.serving import Served
from support.small_servers import built_dna
from support.web_pages import STRANGER, Page, Visitor, site
from swsearch.client.search_request import OPTION_NAMES, SERVER_ROWS
from swsearch.pipeline.options import DEFAULT_EVALUE, SearchOptions
from swsearch.server.search_form import EXAMPLES, FORM_FIELDS, MAX_FILE_TEXT, NOT_ON_THE_PAGE

TOKEN = "secret-secret-secret"

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
    "mode": ("semiglobal", "semiglobal"), "query_loc": (" 2-9 ", "2-9"),
    "max_alignments": ("3", 3), "query_mask": ("lower", "lower"), "subject_mask": ("none", "none"),
    "allow_dna": ("on", True), "ignore_missing_ids": ("on", True), "statistics": ("fitted", "fitted"),
    "dbsize": ("5M", 5_000_000),
    "sort": ("score", "score"), "min_score": ("50", 50), "min_identity": ("30 %", 30.0),
    "min_query_coverage": ("50", 50.0), "min_subject_coverage": ("12.5", 12.5),
    "include_ids": ("P01308,\nP69905\n", ["P01308", "P69905"]), "exclude_ids": ("P00698", ["P00698"]),
    "taxids": ("9606, 10090", ["9606", "10090"]), "exclude_taxids": ("63221", ["63221"]), "iterations": ("3", 3),
    "inclusion_evalue": (".001", 0.001), "inclusion_coverage": ("50", 50.0), "max_included": ("2k", 2000),
}  # fmt: skip
"""Fields of the form: what is typed, and what is asked for then."""


def asked_for(visitor: Visitor, address: str) -> tuple[dict[str, Any], bytes]:
    """Return the job at an address, and its queries."""
    stated = visitor.get(f"/api/v1{address}").json()
    return stated, visitor.get(f"/api/v1{address}/queries").content


def typed_in(page: Page) -> dict[str, str]:
    """Return what the fields of a form hold, but for ticks."""
    found = {each.attributes["name"]: each.attributes.get("value", "") for each in page.all("input", type="text")}
    found |= {each.attributes["name"]: each.text.removeprefix("\n") for each in page.all("textarea")}
    for select in page.all("select"):
        (chosen,) = [each for each in select.inside if "selected" in each.attributes]
        found[select.attributes["name"]] = chosen.attributes["value"]
    return found


# every option is there, in words that are true


def test_every_option_of_a_search_is_in_the_form_and_an_empty_one_asks_for_none(visitor: Visitor) -> None:
    page = visitor.page("/")
    there = {each.attributes["name"] for kind in ("input", "select", "textarea") for each in page.all(kind)}
    assert set(OPTION_NAMES) - set(NOT_ON_THE_PAGE) | set(FORM_FIELDS) <= there
    assert {"queries", "file", "database", "title", "query_format"} <= there
    assert set(NOT_ON_THE_PAGE) < set(OPTION_NAMES)
    usual = SearchOptions()
    shown = {name: getattr(usual, name) for name in SERVER_ROWS if name not in NO_USUAL} | {"evalue": DEFAULT_EVALUE}
    assert {"mode", "max_hits", "sort", "iterations"} < set(shown)
    for name, value in shown.items():
        if name in FORM_FIELDS and FORM_FIELDS[name].widget != "flag":
            default = FORM_FIELDS[name].default
            assert default == value if isinstance(value, str) else float(default) == value, name
    job, _ = asked_for(visitor, visitor.sent(typed_in(page) | {"queries": ">q\nMKTAYIAKQRQISFVKSHF"}))
    assert (job["options"], job["database"], job["title"]) == ({"distribution": True}, "sprot", "q")


@pytest.mark.filterwarnings("ignore::swsearch.errors.SwsearchWarning")  # of databases without a taxonomy
def test_what_is_typed_is_asked_for(visitor: Visitor) -> None:
    assert set(OPTIONS_TYPED) == set(OPTION_NAMES) - set(NOT_ON_THE_PAGE) - {"alphabet"}  # that of the database
    for name, (typed, meant) in OPTIONS_TYPED.items():
        with_it = {"translate": True} if name in TRANSLATION_OPTIONS else {}  # they are for DNA alone
        dna = {"queries": ">q\nACGTACGTTGCA\n"} if with_it or name == "translate" else {}
        job, _ = asked_for(visitor, visitor.sent({name: typed, **dna, **dict.fromkeys(with_it, "on")}))
        assert job["options"] == {"distribution": True, **with_it, name: meant}


def test_a_matrix_of_ones_own_can_be_pasted(visitor: Visitor) -> None:
    text = (files("swsearch.matrices") / "PAM70.txt").read_text("ascii")
    address = visitor.sent({"matrix_text": text.replace("\n", "\r\n"), "matrix": "PAM30", "gap_open": "9"})
    assert asked_for(visitor, address)[0]["options"]["matrix"] == {"name": "custom", "text": text.strip("\n") + "\n"}
    again = visitor.page(f"/?from={address[-20:]}")
    assert again.one("textarea", name="matrix_text").text.strip("\n") == text.strip("\n")


def test_files_are_searched_with_under_names_that_are_tame(visitor: Visitor) -> None:
    records = b">x\nMKV\n>y\nMKL\n"
    for name, title in (
        ("C:\\home\\mine/..\\a<b>.fasta", "a<b>.fasta"), ("x" * 1000, "x" * 200), ("..", ".."),
        ("a\u202eb.fa", "a?b.fa"),
    ):  # fmt: skip
        job, queries = asked_for(visitor, visitor.sent({"queries": ""}, files={"file": (name, records)}))
        assert (queries, job["title"]) == (records, title)


@pytest.mark.parametrize(
    ("queries", "name"),
    [
        (">sp|P01308|INS human\nMKV", "sp|P01308|INS"),
        (">a\nMKV\n>b\nMKV\n>c\nMKV", "a and 2 more"),
        ("# STOCKHOLM 1.0\nx MKTAYIAKQR\n//\n", "pasted"),
        ("\n>a\nMKV\n>b\nM", "a and 1 more"),
        (">" + "x" * 500 + "\nMKV\n>b\nM", "x" * 189 + " and 1 more"),
    ],
)
def test_a_search_without_a_name_has_that_of_its_queries(visitor: Visitor, queries: str, name: str) -> None:
    assert asked_for(visitor, visitor.sent({"queries": queries}))[0]["title"] == name


def test_a_long_paste_is_taken_and_taken_from_its_job_again(visitor: Visitor) -> None:
    text = ">long\n" + "MKTAYIAKQR\r\n" * 110_000
    address = visitor.sent(
        {"queries": text, "statistics": "none"}, files={"file": ("none", b"")}
    )  # makes it multipart
    assert len(text) > 1 << 20
    expected = text.replace("\r", "").encode()
    assert asked_for(visitor, address)[1] == expected
    page = visitor.page(f"/?from={address[-20:]}")
    assert page.one("textarea", name="queries").text.strip() == ""
    assert page.one("input", name="queries_of").attributes["value"] == address[-20:]
    again = visitor.sent({"queries": "", "queries_of": address[-20:]})
    assert asked_for(visitor, again)[1] == expected
    other = visitor.sent({"queries": ">q\nMKV", "queries_of": address[-20:]})
    assert asked_for(visitor, other)[1] == b">q\nMKV"
    for each in (again, other, address):
        visitor.post(f"{each}/delete")


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
def test_a_wrong_value_comes_back_at_its_field(visitor: Visitor, name: str, text: str) -> None:
    typed = {"queries": ">q\nMKV", "database": "trembl", "title": "mine", "exclude_ids": "P1\nP2", name: text}
    answer = visitor.post("/search", typed)
    assert answer.status_code == 422
    page = Page(answer.text)
    kind = {"choice": "select", "text": "textarea"}.get(FORM_FIELDS[name].widget, "input")
    field = page.one(kind, name=name)
    assert "autofocus" in field.attributes and field.attributes["aria-invalid"] == "true"
    said = [page.one("p", id=each).text for each in field.attributes["aria-describedby"].split()]
    assert "expected" in said[0] and name not in said[0]
    assert name == "matrix_text" or f"{FORM_FIELDS[name].label}: got" in page.one("div", role="alert").text
    found = typed_in(page) if kind != "select" else {name: text}  # what is no choice cannot be shown as chosen
    assert (found[name], "selected" in str(field.inside)) == (text, kind == "select")
    assert {**typed, **found} == typed | found
    assert page.one("textarea", name="queries").text == "\n>q\nMKV"
    assert "checked" in page.one("input", name="database", value="trembl").attributes
    assert "checked" not in page.one("input", name="database", value="sprot").attributes
    folded = [each for each in page.all("details") if field in each.inside]
    assert all("open" in each.attributes for each in folded) and bool(folded) == (FORM_FIELDS[name].group != "main")
    assert visitor.page("/jobs").all("tr") == []


LARGE = ("a.fa", b">q\n" + b"M" * MAX_FILE_TEXT)

REFUSED: list[tuple[dict[str, Any], tuple[str, bytes] | None, int, str, str]] = [
    ({"queries": ">q\nMK1"}, None, 422, "queries", "record 'q' line 2"),
    ({"queries": ""}, None, 422, "queries", "Paste a sequence or choose a file."),
    ({"database": []}, None, 422, "database", "Choose at least one database."),
    ({"database": "nosuch"}, None, 422, "database", "expected one of sprot, trembl"),
    ({}, ("a.fa", b">r\nMK"), 422, "queries", "only one of them can be searched"),
    ({"queries": ""}, ("a.fa.gz", b"\x1f\x8b\x08\0\0"), 422, "queries", "The .gz file ends early."),
    ({"queries": ""}, ("a.fa.xz", b"\xfd7zXZ\0\0"), 422, "queries", "Decompress it, or send it as .gz."),
    ({"queries": ""}, ("a.zip", b"PK\x03\x04"), 422, "queries", "is a zip archive; unpack it"),
    ({"queries": "", "evalue": "x"}, ("a.fa", b">q\nMKV\n"), 422, "evalue", "\n>q\nMKV\n"),
    ({"queries": "", "evalue": "x"}, LARGE, 422, "evalue", "Choose a.fa again"),
    ({"engine": "gpu<script>"}, None, 400, "", "unknown form field &#39;engine&#39;"),
    ({f"x{number}": "1" for number in range(501)}, ("none", b""), 400, "", ""),
]
"""Changes of a form that is right, a file, and how it is answered."""


@pytest.mark.parametrize(("changes", "file", "status", "field", "said"), REFUSED)
def test_what_cannot_be_searched_is_said_at_its_field(
    visitor: Visitor, changes: dict[str, Any], file: Any, status: int, field: str, said: str
) -> None:
    typed = {"queries": ">q\nMKV", "database": "sprot", **changes}
    answer = visitor.post("/search", typed, files={"file": file} if file else None)
    elements = Page(answer.text).elements
    assert answer.status_code == status
    assert said in answer.text or any(said in each.text for each in elements)
    assert "gpu" not in answer.text or "gpu<" not in answer.text
    assert len(answer.text) < 60_000
    if status == 422:
        assert [each.attributes["id"] for each in elements if "autofocus" in each.attributes] == [field]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_others_is_markup(place: Served, visitor: Visitor, text: str) -> None:
    answer = visitor.post("/search", {"queries": text, "title": text[:5000], "matrix": text, "evalue": text})
    pages = [answer.text]
    address = visitor.sent({"title": text[:200], "queries": f">{text.split(maxsplit=1)[0]}\nMKV"})
    place.jobs.databases["trembl"].problem = text
    problem = {"code": "failed", "message": text}
    for changed in (
        {"state": "running", "notes": [text]},
        {"state": "failed", "problem": problem, "ended": 2e9},
        {"title": text, "database": text, "options": {"matrix": text, "evalue": text, "unknown": text}},
    ):
        place.put(address[-20:], **changed)
        pages += [visitor.get(path).text for path in (address, f"{address}/details", "/jobs", "/", "/about")]
    for page in pages:
        read = Page(page)  # everything that was opened is closed where it should be
        assert not [each for each in read.elements if each.name in ("img", "svg") or "onerror" in each.attributes]
        assert all(each.attributes.get("src", "x") or not each.text for each in read.all("script"))
        assert "alert(1)" not in "".join(each.text for each in read.all("script"))
        assert "a" * 1000 not in read.seen
        assert "\x1b" not in read.seen and "\u202e" not in read.seen
    assert "49 " not in pages[0]


# examples, jobs as forms


def test_examples_are_real_queries_that_fill_the_form(visitor: Visitor) -> None:
    page = visitor.page("/")
    links = [each.attributes["href"] for each in page.all("a") if "data-fasta" in each.attributes]
    assert len(links) == len(EXAMPLES) >= 4
    for example in EXAMPLES.values():
        filled = visitor.page(f"/?example={example.key}")
        text = filled.one("textarea", name="queries").text.lstrip("\n")
        assert text == example.fasta == visitor.get(f"/examples/{example.key}").text
        job, _ = asked_for(visitor, visitor.sent({"queries": text, **example.values}))
        assert job["n_queries"] == len(example.identifiers)
    assert "selected" in visitor.page("/?example=glucagon").one("option", value="short").attributes
    assert visitor.get("/examples/..%2fpage.css").status_code == 404
    assert visitor.get("/?example=none").status_code == 200


@pytest.mark.filterwarnings("ignore::swsearch.errors.SwsearchWarning")
def test_a_job_fills_the_form(place: Served, visitor: Visitor) -> None:
    others = ("alphabet", "preset", "max_alignments", "query_loc", "translate", *TRANSLATION_OPTIONS)
    typed: dict[str, Any] = {name: text for name, (text, _) in OPTIONS_TYPED.items() if name not in others}
    typed |= {"database": ["sprot", "trembl"], "title": "again", "statistics": "published", "gap_open": "10"}
    typed |= {"matrix": "BLOSUM80", "gap_extend": "1", "mode": "local"}
    first = visitor.sent(typed)
    page = visitor.page(f"/?from={first[-20:]}")
    ticked = [each for each in page.all("input", type="checkbox") if "checked" in each.attributes]
    assert [each.attributes["value"] for each in ticked if each.attributes["name"] == "database"] == typed["database"]
    second = visitor.sent(typed_in(page) | {"allow_dna": "on", "ignore_missing_ids": "on"})
    (job, queries), (again, their_queries) = asked_for(visitor, first), asked_for(visitor, second)
    assert (again["options"], again["title"], their_queries) == (job["options"], job["title"], queries)
    assert visitor.get("/?from=../../etc").status_code == 404
    assert not page.all("p", class_="note")
    # options of other clients, one of which the form does not have
    pages = []
    for options in (
        {"keep_profiles": True},
        {"query_loc": [2, 9], "include_ids": ["P01308"], "taxids": [9606, 10090]},
    ):
        body = {"database": "sprot", "queries": ">q\nMKTAYIAKQRQISFVKSHF", "options": options}
        pages.append(visitor.page(f"/?from={place.submit(body, Cookie=STRANGER)['id']}"))
    assert "also used saved profiles." in pages[0].one("p", class_="note").text
    found, _ = asked_for(visitor, visitor.sent(typed_in(pages[1])))
    expected = {"query_loc": "2-9", "include_ids": ["P01308"], "taxids": ["9606", "10090"]}
    assert found["options"] == {"distribution": True, **expected}


# all pages


def test_pages_are_sound_and_allow_nothing_from_elsewhere(place: Served, visitor: Visitor) -> None:
    address = visitor.sent({"database": ["sprot", "trembl"]})
    identifier = address[-20:]
    place.ended(identifier)
    paths = ("/", "/about", "/jobs", f"{address}/details", f"{address}/summary", "/jobs/none", "/?example=globins")
    found = {path: visitor.get(path) for path in paths}
    found["wrong"] = visitor.post("/search", {"queries": "", "evalue": "x"})
    for state in ("queued", "running", "failed", "cancelled"):
        place.put(identifier, state=state, ended=2e9 if state in ("failed", "cancelled") else None, started=1.9e9)
        found |= {f"{state} {path}": visitor.get(path) for path in (address, f"{address}/details", "/jobs")}
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


def test_static_files_are_kept_under_the_address_of_their_content(visitor: Visitor) -> None:
    style = visitor.page("/").one("link", rel="stylesheet").attributes["href"]
    answer = visitor.get(style)
    assert answer.headers["content-type"].startswith("text/css")
    assert "immutable" in answer.headers["cache-control"]
    assert visitor.get("/static/old/page.css").headers["cache-control"] == "no-cache"
    for path in ("/static/x/pages.py", "/static/x/..%2f__init__.py", "/static/x/examples.fasta"):
        assert visitor.get(path).status_code == 404


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that asks for a token, under a path of a proxy."""
    with site(tmp_path_factory.mktemp("site"), tokens=frozenset([TOKEN]), root_path="/lab/search") as served:
        yield served


def test_a_token_becomes_a_cookie_and_links_lead_through_the_proxys_path(guarded: Served, visitor: Visitor) -> None:
    for each in guarded.engines:
        each.may_go.clear()  # a report has other links
    inside, root = Visitor(guarded.url.removesuffix("/lab/search")), "/lab/search"
    page = Page(inside.get("/jobs?page=2", headers={"Accept": "text/html"}).text)
    assert page.one("form").attributes["action"] == f"{root}/login"
    assert page.one("input", name="next").attributes["value"] == "/jobs?page=2"
    page = Page(inside.post("/search", headers={"Accept": "text/html"}).text)
    assert page.one("input", name="next").attributes["value"] == "/"
    assert "Your input is still there" in page.one("div", role="alert").text
    assert inside.get("/api/v1/jobs").json()["error"]["code"] == "not_authenticated"
    answer = inside.post("/login", {"token": "wrong-wrong-wrong-wrong", "next": "/jobs"})
    assert answer.status_code == 401 and "Unknown token." in answer.text
    assert "wrong-wrong" not in answer.text
    ways = {path: path for path in ("/jobs", "/jobs/ABC?queries=1-50")}
    elsewhere = ("//evil.org", "/\\evil.org", "https://evil.org", "/a\r\nSet-Cookie: x=1", "/" + "a" * 600, "")
    for path, way in (ways | dict.fromkeys(elsewhere, "/")).items():
        answer = inside.post("/login", {"token": f" {TOKEN} ", "next": path})
        assert (answer.status_code, answer.headers["location"]) == (303, root + way)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "secret-secret" not in cookie
    inside = Visitor(guarded.url)
    inside.post("/login", {"token": TOKEN})
    address = inside.sent({})
    assert re.fullmatch(rf"{root}/jobs/[A-Z0-9]{{20}}", address)
    for path in ("/", "/about", "/jobs", address[11:], f"{address[11:]}/details", "/jobs/none"):
        page = Page((answer := inside.get(path)).text)
        links = [each.attributes[name] for each in page.elements for name in ("href", "src", "action", "data-state")
                 if name in each.attributes]  # fmt: skip
        assert len(links) > 6
        assert all(each.startswith((f"{root}/", "#")) for each in links), links
        assert "Log out" in answer.text or path == "/jobs/none"
    about = inside.page("/about").seen
    assert f"{guarded.url}/sprot" in about
    assert 'curl -H "Authorization: Bearer $SWSEARCH_TOKEN" -F' in about
    assert "Max-Age=0" in inside.post("/logout").headers["set-cookie"]
    assert visitor.get("/login").headers["location"] == "/"
    assert "Log out" not in visitor.get("/").text


def test_a_dna_database_is_shown_as_one(tmp_path: Any) -> None:
    with site(tmp_path, databases=(built_dna(tmp_path / "dna"),)) as served:
        stated = served.get("/databases/genome").json
        form, about = (Visitor(served.url).page(path).seen for path in ("/", "/about"))
    assert f"{stated['n_subjects']} DNA records, {stated['nucleotides']:,} nucleotides" in form
    assert "Search databases" in form
    for text in ("DNA databases are searched in their six reading frames", f"Nucleotides{stated['nucleotides']:,}",
                 "Genetic code1", f"Residues of six frames{stated['n_residues']:,}",
                 'qblast("tblastn", "genome"'):  # fmt: skip
        assert text in " ".join(about.split()), text
