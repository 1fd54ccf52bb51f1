"""Every format of `swsearch.report.OUTPUT_FORMATS` is whole: on the command line, over HTTP and on the page."""

from __future__ import annotations

import re

import pytest

from support.command_line import run
from support.serving import QUERY, Served
from support.web_pages import Page
from swsearch import report
from swsearch.report.outputs import match_outputs_to_formats

FORMATS = {each.key: each for each in report.OUTPUT_FORMATS}

BY_OTHER_OPTIONS = {"toml": "--save-config"}
"""Formats that the help of --outfmt leaves out, and the option that writes them."""


@pytest.fixture(scope="module")
def job(served: Served) -> str:
    """Return the path of a job of one query that is done."""
    submitted = served.post("/jobs", {"database": "tiny", "queries": QUERY}).json
    (identifier,) = submitted["jobs"]
    assert served.get(f"/jobs/{identifier}?wait=60").json["state"] == "done"
    return f"/jobs/{identifier}"


@pytest.mark.parametrize("key", FORMATS)
def test_a_format_has_a_media_type_and_an_extension_or_that_of_another(served: Served, job: str, key: str) -> None:
    (stated,) = [each for each in served.get("/formats").json["formats"] if each["format"] == key]
    reply = served.get(f"{job}/results?format={key}")
    assert reply.status == 200
    assert reply.headers["content-type"] == stated["content_type"]
    assert re.fullmatch(r"(text/[a-z-]+; charset=utf-8|application/[a-z.-]+)", stated["content_type"])
    assert stated["content_type"].startswith("application/") or not stated["is_binary"]
    found = re.fullmatch(r'attachment; filename="[^.]+((?:\.[a-z0-9]+)+)"', reply.headers["content-disposition"])
    assert found is not None
    name = f"hits{found[1]}"
    assert [each.outfmt for each in match_outputs_to_formats([name], [key])] == [key]
    (meant,) = match_outputs_to_formats([name], [])
    if not FORMATS[key].extensions:  # the file's name means a table
        assert FORMATS[key].is_blast_text and meant.outfmt == "6"
    else:
        assert meant.outfmt == key


def test_a_format_has_a_description_and_words_of_the_page(served: Served, job: str) -> None:
    stated = {each["format"]: each["description"] for each in served.get("/formats").json["formats"]}
    assert [*stated] == [*FORMATS]
    assert all(re.fullmatch(r"[A-Z].{10,}\.", text) for text in stated.values()), stated
    downloads = Page(served.ask("GET", f"{job}/details").body.decode()).one("ul", class_="downloads")
    labels = [each.text for each in downloads.inside if each.name == "a"]
    hints = [each.text for each in downloads.inside if each.name == "span"]
    assert len(set(labels)) == len(set(hints)) == len(FORMATS)
    assert all(text.strip() for text in (*labels, *hints))


def test_the_help_names_every_format() -> None:
    words = run("search", "--help").stdout.split("--outfmt", 1)[1].split("--header", 1)[0]
    named = set(re.findall(r"[\w-]+", re.sub(r"[│\s]+", " ", words)))
    for key, each in FORMATS.items():
        assert named.intersection((key, *each.names)) or key in BY_OTHER_OPTIONS, key
