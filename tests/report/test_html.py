"""The HTML report as a file: structure, escaping, and what may differ between runs. The browser's part is in
test_browser.py and test_browser_hits.py."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import io
import json
import re
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import swsearch
from support.report_cases import QUERY, SUBJECT, make_result, report
from support.web_pages import Page
from swsearch.alphabet import PROTEIN
from swsearch.report import create_writer
from swsearch.report.html import HtmlWriter, Link, content_policy
from swsearch.results import Hsp, SearchResult
from swsearch.run_info import Checksum, Execution, RunInfo, checksums
from swsearch.scoring import Scoring
from swsearch.statistics.distributions import Lengths
from swsearch.statistics.score_distribution import count_scores, make_distribution

HOSTILE = (
    "<img src=x onerror=alert(1)></script><script>alert(2)</script><!-- \u2028 & \" ' \x01 second \ud800 \x1b[0m"
)


def data_of(page: Page, identifier: str) -> Any:
    return json.loads(page.one("script", id=identifier).text)


def counted(result: SearchResult) -> SearchResult:
    scores = [20, 21, 21, 30, *[hit.score for hit in result.hits]]
    lengths = Lengths(np.full(len(scores), 70))
    found = make_distribution(count_scores(scores), result.query_length, lengths, result.statistics, 1_000_000)
    return dataclasses.replace(result, distribution=found)


def test_a_page_that_is_well_formed_and_allows_nothing_but_itself() -> None:
    text = report("html", counted(make_result()), make_result(("q2", "", "WWW"), []))
    assert text.isascii()
    page = Page(text)
    policy = page.one("meta", http_equiv="Content-Security-Policy").attributes["content"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    (script,) = [each.text for each in page.all("script") if not each.attributes]
    style = page.one("style").text
    for code in (script, style):
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert not [a for a in map(attrgetter("attributes"), page.elements) if "src" in a or a.get("href", "#")[0] != "#"]
    assert not re.search(
        r"innerHTML|insertAdjacentHTML|document\.write|\beval\b|\bfetch\b|\bimport\b|\.src\b|style=", script
    )
    assert set(re.findall(r"https?://[^/\"]+", script)) == {
        "http://www.w3.org",  # the name space of SVG
        *(f"https://www.{name}" for name in ("uniprot.org", "ncbi.nlm.nih.gov", "rcsb.org")),  # links of identifiers
    }
    assert not re.search(r"@import|url\(", style)


def written(run: dict[str, Any], **options: Any) -> str:
    """Return a page made by the writer itself, as a server makes it, of a run with some values."""
    stream, result = io.StringIO(), make_result()
    size = result.database_name, result.database_subjects, result.database_residues
    plain = RunInfo("0", *size, result.scoring, result.mode, result.statistics, 10.0, 500)
    writer = HtmlWriter(stream, **options)
    writer.begin(dataclasses.replace(plain, **run))
    writer.write(result)
    writer.end()
    return stream.getvalue()


@pytest.mark.parametrize(
    ("queries", "database", "title"),
    [
        ("/data/all queries.fa", "/data/sprot.h5", "all queries.fa against sprot.h5"),
        ("-", "dbs/one.h5, dbs/two.fa", "one.h5, two.fa"),
        ("", "sprot", "sprot"),
        ("q.fa", "", "q.fa"),
        ("", "", "swsearch report"),
        ("a/<b>&.fa", "s.h5", "<b>&.fa against s.h5"),
    ],
)
def test_the_title_is_the_files_names_and_the_paths_are_parameters(queries: str, database: str, title: str) -> None:
    page = Page(written({"queries": queries, "database_name": database}))
    assert title in [line.strip() for line in page.seen.splitlines()]
    assert page.one("title").text == f"{title} - swsearch"
    assert database in page.seen
    assert queries == "-" or queries in page.seen


def test_a_server_adds_its_links_and_where_subjects_are_and_sends_the_policy() -> None:
    links = [Link("Jobs & all", "/jobs?a=1&b=<2>"), Link('"New"', '/"search"')]
    page = Page(written({}, bar=links, subjects_url="/jobs/ABC</script>/subjects"))
    assert [each.attributes["href"] for each in page.all("a")][1:3] == [link.href for link in links]
    assert 'Jobs & all\n"New"' in page.seen
    assert data_of(page, "index")["subjects"] == "/jobs/ABC</script>/subjects"
    policy = page.one("meta", http_equiv="Content-Security-Policy").attributes["content"]
    assert policy == content_policy()
    plain = Page(written({}))
    assert data_of(plain, "index")["subjects"] is None
    assert not [each for each in plain.elements if each.attributes.get("class") == "bar"]


def test_the_data_are_those_of_the_result() -> None:
    result = counted(make_result(effective=5_000_000))
    page = Page(report("html", result, make_result(("q2", "none here", "WWW"), [])))
    data = data_of(page, "data-0")
    hit = result[0]
    assert (data["id"], data["title"], data["length"], data["sequence"]) == ("q1", "the query", 70, QUERY)
    assert "5,000,000" in data["note"]
    (found,) = data["hits"]
    assert (found["id"], found["titles"], found["length"]) == ("s1", ["s1 a subject"], 72)
    assert (found["score"], found["bits"], found["evalue"], found["z"]) == (293, hit.bit_score, hit.evalue, None)
    pair = hit.pair
    assert found["hsps"] == [
        {
            "q": 0, "s": 2, "cigar": hit.cigar, "subject": SUBJECT[2:70], "identities": hit.identities,
            "positives": hit.positives, "score": 293, "bits": hit.bit_score, "evalue": hit.evalue,
        }
    ]  # fmt: skip
    assert pair.query_end == 67
    assert data["distribution"]["subjects"] == 5
    assert sum(data["distribution"]["counts"]) == 5
    assert len(data["distribution"]["expected"]) > 10
    assert data_of(page, "data-1")["hits"] == []
    index = data_of(page, "index")
    assert [query["hits"] for query in index["queries"]] == [1, 0]
    assert index["positive"]["I"] == "ILMVJ" or set(index["positive"]["I"]) >= set("ILMV")
    assert set(index["positive"]["W"]) >= set("WY")


def test_several_alignments_of_a_hit_and_a_masked_query(monkeypatch: pytest.MonkeyPatch) -> None:
    result = make_result()
    pair = result[0].pair
    masked = dataclasses.replace(pair, query=np.where(np.arange(70) > 60, 22, pair.query).astype(np.uint8))
    two = [Hsp(pair, 293, 100.0, 1e-9), Hsp(masked, 40, 20.0, None)]
    monkeypatch.setattr(type(result[0]), "hsps", property(lambda self: two))
    first, second = data_of(Page(report("html", result)), "data-0")["hits"][0]["hsps"]
    assert "query" not in first
    assert len(second["query"]) == 70
    assert second["query"] != QUERY
    assert (second["score"], second["evalue"]) == (40, None)


def test_hostile_headers_are_never_markup() -> None:
    result = make_result((HOSTILE, HOSTILE, QUERY), [(HOSTILE, HOSTILE, SUBJECT)])
    result = dataclasses.replace(result, database_name=HOSTILE, no_evalue_reason=HOSTILE)
    text = report("html", result)
    page = Page(text)
    assert {each.name for each in page.elements} == {
        "html", "head", "meta", "title", "style", "body", "a", "header", "h1", "p", "main", "noscript",
        "code", "nav", "section", "h2", "dl", "div", "dt", "dd", "footer", "script",
        "table", "thead", "tbody", "tr", "th", "td", "span",
    }  # fmt: skip
    assert text.count("<script") == text.count("</script") == 3
    assert not [name for each in page.elements for name in each.attributes if name.startswith("on")]
    titles = data_of(page, "data-0")["hits"][0]["titles"]
    assert titles[0].startswith("<img src=x onerror=alert(1)></script>")
    assert titles[1].startswith("second")
    assert "\x1b" not in "".join(titles)


@pytest.mark.parametrize("mode", ["global", "semiglobal"])
def test_without_statistics_there_are_no_numbers(mode: Any) -> None:
    page = Page(report("html", make_result(mode=mode)))
    data = data_of(page, "data-0")
    assert data["note"].startswith("no E-values")
    assert data["hits"][0]["bits"] is data["hits"][0]["evalue"] is data["distribution"] is None
    assert "Statistics" in page.seen


def test_only_the_run_differs() -> None:
    started = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    sums = (Checksum("queries", "q & a.fa", "ab" * 32),)
    runs = [Execution(engine, f"swsearch search '<b>' --engine {engine}", started) for engine in ("cpu", "gpu")]
    pages = [written({"checksums": sums, "execution": run}) for run in runs]
    assert "ab" * 32 + " q &amp; a.fa" in pages[0]
    assert "2026-01-02 03:04:05" in pages[0]
    assert "&lt;b&gt;" in pages[0]
    cut = [re.subn(r'<section id="run".*?</section>', "", page, flags=re.DOTALL) for page in pages]
    assert cut[0] == cut[1]
    assert cut[0][1] == 1
    assert pages[0] != pages[1]


def test_checksums_are_those_of_the_files(tmp_path: Any) -> None:
    queries, subjects, path = (tmp_path / name for name in ("q.fa", "s.fa", "s.h5"))
    queries.write_text(">q\nMKV\n")
    subjects.write_text(">s\nMKVL\n")
    with swsearch.Database.build([subjects], path) as database:
        found = checksums(str(queries), database.name, database.sources())
    assert [each.what for each in found] == ["queries", "database", "built from"]
    assert found[0].sha256 == hashlib.sha256(queries.read_bytes()).hexdigest()
    at, n_bytes, sha256 = path.read_bytes()[:512].split(b"\n")[3].split()[1:]
    assert (
        found[1].sha256 == sha256.decode() == hashlib.sha256(path.read_bytes()[int(at) :][: int(n_bytes)]).hexdigest()
    )
    assert found[2].sha256 == hashlib.sha256(subjects.read_bytes()).hexdigest()
    with swsearch.Database.from_records([("s", "MKVL")]) as database:
        assert checksums("-", database.name, database.sources()) == ()


def test_other_scoring_systems_have_their_own_middle_lines() -> None:
    gaps = Scoring(gap_open=9)
    assert data_of(Page(report("html", make_result(scoring=gaps))), "index")["positive"]["W"]


def test_a_profile_has_its_logo_and_nothing_else_has() -> None:
    result, matrix = make_result(), Scoring().matrix
    assert "profile" not in data_of(Page(report("html", result)), "data-0")
    codes = PROTEIN.encode(QUERY)
    profile = swsearch.Profile("q1", "", codes, matrix.scores[codes][:, :27], source=f"made of {HOSTILE}")
    page = Page(report("html", dataclasses.replace(result, profile=profile)))
    data = data_of(page, "data-0")["profile"]
    assert all(own in letters for own, (letters, _) in zip(QUERY, data["logo"], strict=True) if own in "WCHFYGPD")
    assert all(len(letters) == len(bits) and bits == sorted(bits, reverse=True) for letters, bits in data["logo"])
    assert data["source"].startswith("made of <img")
    assert "img" not in {each.name for each in page.elements}


def test_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="html without columns"):
        create_writer("html qseqid", io.StringIO())
