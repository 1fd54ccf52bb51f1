"""Messages of the pages: labels of fields, no option of the command line, no parameter of Python or JSON."""

from __future__ import annotations

import re
from typing import Any

import pytest

from support.serving import Served
from support.web_pages import Page, Visitor
from swsearch.server.page_words import LABELS, LOOKS_LIKE_DNA
from swsearch.server.search_form import FORM_FIELDS

DNA = ">d\nACGTTGCAACACGTTGCAACACGTTGCAAC\n"

FOREIGN_WORDS = re.compile(r"--[a-z]|\b[a-z]+_[a-z_]+\b|in Python|swsearch [a-z]+ |\{'|\('")
"""Of other interfaces."""


def refused(visitor: Visitor, typed: dict[str, Any]) -> tuple[Page, str]:
    """Return the page that says what is wrong with a form, and all that it says of it."""
    answer = visitor.post("/search", {"queries": ">q\nMKTAYIAKQRQISFVKSHF", "database": "sprot", **typed})
    assert answer.status_code in (413, 422), (typed, answer.status_code)
    page = Page(answer.text)
    said = " / ".join(each.text for each in (page.one("div", role="alert"), *page.all("p", class_="problem")))
    assert not FOREIGN_WORDS.search(said), said
    return page, said


@pytest.mark.parametrize("text", ["x?y", "-5", "1" + "0" * 17, "9" * 40])
def test_a_wrong_value_of_any_field_is_named_by_its_label(visitor: Visitor, text: str) -> None:
    n_wrong = 0
    for name, field in FORM_FIELDS.items():
        typed = {"translate": "on", "queries": DNA} if field.group == "translation" else {}
        answer = visitor.post("/search", {"queries": ">q\nMKTAYIAK", "database": "sprot", **typed, name: text})
        if answer.status_code == 303:  # a large number may be right
            visitor.post(f"{answer.headers['location']}/delete")
            continue
        n_wrong += 1
        page, said = refused(visitor, {**typed, name: text})
        assert f"Search not started. {LABELS[name]}: " in said, said
        marked = [each.attributes["id"] for each in page.elements if "autofocus" in each.attributes]
        assert marked == [name]
        (details,) = [each for each in page.all("details") if name in {e.attributes.get("id") for e in each.inside}
                      ] or [page.one("html")]  # fmt: skip
        assert details.name == "html" or "open" in details.attributes
    assert n_wrong >= (len(FORM_FIELDS) - 6 if text[:1] != "1" else 20)


COMBINED: list[tuple[dict[str, Any], str, str]] = [
    ({"queries": DNA}, "translate", LOOKS_LIKE_DNA),
    ({"queries": DNA, "translate": "on", "mode": "global"}, "mode", 'expected local with "Queries are DNA"'),
    ({"queries": DNA, "translate": "on", "iterations": "3"}, "translate", 'with "Maximum iterations" 3'),
    ({"queries": DNA, "translate": "on", "query_loc": "2-5"}, "query_loc",
     "'2-5', expected none with \"Queries are DNA\""),
    ({"queries": DNA, "translate": "on", "query_format": "a3m"}, "query_format",
     'got "an alignment: A3M", expected recognized by content or FASTA; untick "Queries are DNA"'),
    ({"queries": DNA, "translate": "on", "frame_shift": "15", "statistics": "published"}, "statistics",
     'got "BLAST\'s constants", expected shuffled sequences or no E-values with "Frameshift cost"'),
    ({"queries": DNA, "translate": "on", "frame_shift": "15", "query_mask": "tantan"}, "query_mask",
     'got "low complexity (tantan)", expected none or lower case with "Frameshift cost"'),
    ({"queries": DNA, "translate": "on", "frame_shift": "15", "max_alignments": "2"}, "max_alignments", "expected 1"),
    ({"translate": "on"}, "queries", 'untick "Queries are DNA" for proteins'),
    ({"queries": "MKTAYIAKQR", "translate": "on"}, "queries", 'untick "Queries are DNA" for proteins'),
    ({"queries": ">p\nWWSSKKMMRRHHVV", "translate": "on"}, "queries", "are bases"),
    ({"genetic_code": "11"}, "genetic_code", 'tick "Queries are DNA" for DNA queries'),
    ({"strand": "plus"}, "strand", 'got "plus (as given)", expected none without translation'),
    ({"frame_shift": "15"}, "frame_shift", 'tick "Queries are DNA"'),
    ({"query_loc": "2-5", "iterations": "2"}, "query_loc", 'none with "Maximum iterations" 2'),
    ({"query_loc": "5-2"}, "query_loc", "the first is above the last"),
    ({"max_alignments": "2", "mode": "global"}, "max_alignments", "expected 1 in global mode"),
    ({"statistics": "published", "mode": "global"}, "statistics", 'use "shuffled sequences (default)"'),
    ({"statistics": "published", "gap_open": "3"}, "statistics", "no statistics are published"),
    ({"statistics": "none", "evalue": "1"}, "evalue", '"E-values from" set to "no E-values"'),
    ({"statistics": "none", "dbsize": "100"}, "dbsize", '"E-values from" set to "no E-values"'),
    ({"statistics": "none", "iterations": "2"}, "statistics", '"Maximum iterations" 2 needs E-values'),
    ({"include_ids": "nosuch"}, "include_ids", 'tick "Ignore unknown identifiers" to skip the missing ones'),
    ({"exclude_ids": "P01308\nP69905\nP00698"}, "exclude_ids", "Exclude subjects: no subject of sprot.h5 is left"),
    ({"include_ids": "P01308", "exclude_ids": "P01308"}, "", '"Include only subjects", "Exclude subjects": no'),
    ({"taxids": "1000000"}, "taxids", 'tick "Ignore unknown identifiers"'),
    ({"max_hits": "6000"}, "max_hits", "at most 5,000, this server's limit"),
    ({"max_alignments": "6000"}, "max_alignments", "this server's limit"),
    ({"max_included": "200000"}, "max_included", "this server's limit"),
    ({"include_ids": "\n".join(map(str, range(100_001)))}, "include_ids", "at most 100,000 identifiers"),
    ({"queries": ">a\n\n" * 100_001}, "queries", "this server's limit"),
    ({"queries": ">a\nMK-V\n>b\nMKAV"}, "queries",
     'choose "an alignment: gapped FASTA" or "an alignment: A3M" in "Query format"'),
    ({"matrix_text": "A B\nA 1"}, "matrix_text", "Custom matrix: line 2"),
    ({"matrix": "x"}, "matrix", "expected one of BLASTP"),
    ({"queries": ">q\nMK=V"}, "queries", "Queries: record 'q' line 2: '=' is no residue letter"),
    ({"queries": ""}, "queries", "Search not started. Paste a sequence or choose a file."),
    ({"queries": " \n 1 \n"}, "queries", "Search not started. Paste a sequence or choose a file."),
    ({"database": []}, "database", "Search not started. Choose at least one database."),
]  # fmt: skip
"""Forms, the field that is wrong, and what is said."""


@pytest.mark.parametrize(("typed", "field", "expected"), COMBINED)
def test_options_that_do_not_go_together_are_named_by_their_labels(
    visitor: Visitor, typed: dict[str, Any], field: str, expected: str
) -> None:
    page, said = refused(visitor, typed)
    assert expected in said, said
    marked = [each.attributes["id"] for each in page.elements if "autofocus" in each.attributes]
    assert marked == [field] * bool(field)


def test_the_api_keeps_its_words(place: Served) -> None:
    body = {"database": "sprot", "queries": DNA}
    assert "add --translate (in Python translate=True)" in place.post("/jobs", body).error["message"]
    told = place.post("/jobs", {**body, "options": {"max_hits": 6000, "allow_dna": True}}).error
    assert told["option"] == "max_hits" and told["message"].startswith("max_hits: got 6,000")


def test_failures_and_notes_of_jobs_are_in_words_of_the_page(place: Served, visitor: Visitor) -> None:
    address = visitor.sent({})
    place.ended(address[-20:])
    notes = ["only the best enter its profile; raise the limit with --max-included", "min_identity 0.5 means 0.5%"]
    place.put(address[-20:], notes=notes)
    shown = [each.text for each in visitor.page(f"{address}/details").all("p", class_="note")]
    assert shown == [
        'only the best enter its profile; raise the limit with "Maximum subjects in profile"',
        '"Minimum identity (%)" 0.5 means 0.5%',
    ]
    message = "GPU memory: 100 MiB is not enough, expected 300 MiB; allow more with --gpu-memory, or use --engine cpu"
    place.put(address[-20:], state="failed", ended=2e9, problem={"code": "unavailable", "message": message})
    shown = visitor.page(address).one("section", class_="alert").text
    assert "GPU memory: 100 MiB is not enough, expected 300 MiB\n" in shown and "--" not in shown


def test_a_form_that_is_too_large_names_no_option(place: Served) -> None:
    headers = {"Accept": "text/html", "Content-Length": str(1 << 40)}
    with place.connect() as connection:
        lines = [f"POST /search HTTP/1.1\r\nHost: 127.0.0.1:{place.port}", *(f"{a}: {b}" for a, b in headers.items())]
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        answer = b""
        while b"</html>" not in answer and (piece := connection.recv(1 << 16)):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 413") and b"the request is too large" in answer
    assert not FOREIGN_WORDS.search(Page(answer.partition(b"\r\n\r\n")[2].decode()).one("main").text)
