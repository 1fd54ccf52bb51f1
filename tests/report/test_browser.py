"""The HTML report in headless Chromium: what a person does with it, and what it must never do."""

from __future__ import annotations

import csv
import dataclasses
import io
import time
from pathlib import Path
from typing import Any

import pytest

import swsearch
from support.browser import (
    WIDTHS,
    all_of,
    button,
    column,
    downloaded,
    drawn,
    filter_field,
    heading,
    one,
    until,
)
from support.browsers import MARKS, Browser
from support.report_cases import QUERY, make_result, report
from swsearch.alphabet import PROTEIN
from swsearch.report import create_writer
from swsearch.run_info import RunInfo
from swsearch.scoring import Scoring

pytestmark = MARKS


@pytest.fixture(scope="module")
def found(examples: Path) -> list[Any]:
    data = examples / "data"
    return list(
        swsearch.search(data / "queries.fasta", data / "swissprot_sample.fasta.gz", distribution=True, engine="cpu")
    )


def test_it_shows_hits_and_pictures(opened: Any, found: list[Any]) -> None:
    driver = opened(report("html", *found), "#query-1")
    assert one(driver, "h2").text.startswith(found[0].query_id)
    assert len(all_of(driver, "#query svg")) == 3
    assert len(all_of(driver, "svg .bar")) == len(found[0].hits)
    assert [cell.split()[0] for cell in column(driver, 2)] == [hit.subject_id for hit in found[0].hits]
    assert one(driver, ".shown").text == f"{len(found[0].hits)} hits shown"
    expected = one(driver, "svg .expected").get_attribute("d")
    assert expected.startswith("M")
    assert "NaN" not in drawn(driver)


@pytest.mark.exhaustive
def test_sorting(opened: Any, found: list[Any]) -> None:
    driver = opened(report("html", *found), "#query-1")
    heading(driver, "Length").click()
    lengths = [int(text.replace(",", "")) for text in column(driver, 12)]
    assert lengths == sorted((hit.subject_length for hit in found[0].hits), reverse=True)
    (head,) = all_of(driver, "th[aria-sort]")
    assert head.get_attribute("aria-sort") == "descending"
    heading(driver, "Length").click()
    assert [int(text.replace(",", "")) for text in column(driver, 12)] == lengths[::-1]
    assert one(driver, "th[aria-sort]").get_attribute("aria-sort") == "ascending"
    heading(driver, "E-value").click()
    assert [float(text) for text in column(driver, 9)] == sorted(float(text) for text in column(driver, 9))


def test_filtering(opened: Any, found: list[Any]) -> None:
    driver = opened(report("html", *found), "#query-1")
    hits = found[0].hits
    filter_field(driver, "E-value at most").send_keys("1e-20")
    assert len(column(driver, 1)) == sum(hit.evalue <= 1e-20 for hit in hits)
    assert len(all_of(driver, "svg .bar")) == len(column(driver, 1))
    filter_field(driver, "Subject holds").send_keys(hits[2].subject_id[2:].lower())
    assert [text.split()[0] for text in column(driver, 2)] == [hits[2].subject_id]
    assert one(driver, ".shown").text == f"1 of {len(hits)} hits shown"
    one(driver, "button[type=reset]").click()
    time.sleep(0.2)
    assert len(column(driver, 1)) == len(hits)
    filter_field(driver, "Identity from %").send_keys("x")
    assert filter_field(driver, "Identity from %").get_attribute("aria-invalid") == "true"
    assert len(column(driver, 1)) == len(hits)
    filter_field(driver, "Identity from %").clear()
    filter_field(driver, "Coverage from %").send_keys("101")
    assert column(driver, 1) == []
    assert not button(driver, "Download TSV").is_enabled()


@pytest.mark.parametrize(
    "options",
    [{"statistics": "published"}, {"query_mask": "tantan", "subject_mask": "tantan", "statistics": "fitted"}],
)
def test_alignments_are_those_of_the_pairwise_rows(opened: Any, examples: Path, options: Any) -> None:
    subjects = examples / "data" / "swissprot_sample.fasta.gz"
    with swsearch.Database.from_fasta(subjects, mask="tantan") as database:
        (biased,) = database.find("Q4KMP7")
        query = "biased", database.sequence(biased)
        (result,) = swsearch.search([query], database, engine="cpu", max_hits=4, **options)
    driver = opened(report("html", result))
    shown = result.hits[0].pair.query_row()
    assert shown.isupper() == (options["statistics"] == "published")
    for place in (0, len(result.hits) - 1):
        hit = result.hits[place]
        opener = all_of(driver, ".open-hit")[place]
        driver.execute_script("arguments[0].scrollIntoView()", opener)
        opener.click()
        assert opener.get_attribute("aria-expanded") == "true"
        lines = [line for line in one(driver, "tr.detail pre").get_property("textContent").split("\n") if line]
        cut = [slice(len(line) - len(line.lstrip()), None) for line in lines]
        assert len(cut) == len(lines)
        prefix = len(lines[0]) - len(lines[0].split(" ", 1)[1].lstrip(" 0123456789"))
        ends = [line.rfind(" ") for line in lines]
        top = "".join(line[prefix:end] for line, end in zip(lines[0::3], ends[0::3], strict=True))
        bottom = "".join(line[prefix:end] for line, end in zip(lines[2::3], ends[2::3], strict=True))
        middle = "".join(line[prefix:] for line in lines[1::3])
        assert (top, middle, bottom) == hit.pair.rows()
        said = one(driver, "tr.detail").text
        assert f"identities {hit.identities}/" in said
        assert ("by published statistics" in said) == (options["statistics"] == "fitted")
        assert lines[0].split()[1] == str(hit.pair.query_start + 1)
        assert lines[-3].split()[-1] == str(hit.pair.query_end)
        assert lines[-1].split()[-1] == str(hit.pair.subject_end)
        opener.click()
        assert all_of(driver, "tr.detail") == []
    one(driver, "svg .bar").click()
    assert len(all_of(driver, "tr.detail")) == 1


def test_the_rows_are_downloaded_as_blasts_table(opened: Any, found: list[Any]) -> None:
    driver = opened(report("html", *found), "#query-1")
    heading(driver, "Length").click()
    filter_field(driver, "E-value at most").send_keys("1")
    button(driver, "Download TSV").click()
    names, *rows = [line.split("\t") for line in downloaded(driver, "sp_P05093_CP17A_HUMAN.tsv").splitlines()]
    assert names[:2] + names[-1:] == ["qaccver", "saccver", "stitle"]
    expected = report("6 std score qcovs stitle", found[0]).splitlines()
    kept = [line.split("\t") for line in expected if float(line.split("\t")[10]) <= 1]
    lengths = {hit.subject_id: hit.subject_length for hit in found[0].hits}
    assert rows == sorted(kept, key=lambda row: -lengths[row[1]])
    button(driver, "Download CSV").click()
    assert list(csv.reader(downloaded(driver, "sp_P05093_CP17A_HUMAN.csv").splitlines())) == [names, *rows]


@pytest.mark.exhaustive
def test_a_keyboard_is_enough(opened: Any, found: list[Any]) -> None:
    from selenium.webdriver.common.keys import Keys

    driver = opened(report("html", *found), "#query-1")
    chain = [driver.switch_to.active_element]
    for _ in range(40):
        driver.switch_to.active_element.send_keys(Keys.TAB)
        chain.append(driver.switch_to.active_element)
        if "open-hit" in (chain[-1].get_attribute("class") or ""):
            break
    names = [each.get_property("textContent") or each.get_attribute("id") for each in chain]
    assert names[1] == "Skip to the hits"
    assert {"Next", "Download TSV", "Length"} <= {name.strip() for name in names}
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert len(all_of(driver, "tr.detail pre")) == 1
    outline = driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


@pytest.mark.exhaustive
def test_going_from_query_to_query(opened: Any, found: list[Any]) -> None:
    driver = opened(report("html", *found))
    shows = lambda text: until(lambda: one(driver, "h2").text.startswith(text))  # noqa: E731
    shows("5 queries")
    before, after = all_of(driver, ".steps button")
    assert (before.text, before.is_enabled(), after.text) == ("Previous", False, "Next")
    for result in found[:2]:
        after.click()
        shows(result.query_id)
    driver.back()
    shows(found[0].query_id)
    before.click()
    shows("5 queries")
    links = all_of(driver, "#all a")
    assert [link.text for link in links] == [result.query_id for result in found]
    links[3].click()
    shows(found[3].query_id)
    assert one(driver, "#which").get_attribute("value") == "3"


def test_all_queries_come_first_and_need_no_script(opened: Any, found: list[Any], browser: Browser) -> None:
    numbers = [
        [
            result.query_id,
            f"{result.query_length:,}",
            str(len(result.hits)),
            str(sum(hit.evalue <= 0.001 for hit in result.hits)),
            result.hits[0].subject_id,
            str(result.hits[0].score),
        ]
        for result in found
    ]
    page = report("html", *found, make_result(("q6", "", "WWW"), []))
    for has_scripts in (False, True):
        browser.scripts(has_scripts)
        driver = opened(page)
        body = all_of(driver, "#all tbody tr")
        rows = [[cell.text.split(" ")[0] for cell in all_of(row, "th, td")] for row in body]
        assert [row[:-1] for row in rows[:-1]] == numbers
        assert rows[-1] == ["q6", "3", "0", "", "", "", ""]
        assert [float(row[-1]) for row in rows[:-1]] == [
            pytest.approx(result.hits[0].evalue, rel=0.01, abs=1e-180) for result in found
        ]
        assert len(all_of(driver, "#all a[href]")) == (6 if has_scripts else 0)


def test_hostile_headers_run_nothing(opened: Any) -> None:
    hostile = "<img src=x onerror=window.ran=1><svg/onload=window.ran=1>\"'</script><script>window.ran=1</script><!--"
    subjects = [(f"{hostile}{k}", f"{hostile} & title", QUERY) for k in range(3)]
    result = make_result((hostile, hostile, QUERY), subjects)
    driver = opened(report("html", result, result), "#query-1")
    for each in all_of(driver, ".open-hit"):
        each.click()
    assert driver.execute_script("return window.ran === undefined")
    assert all_of(driver, "img, iframe, [onerror], [onload]") == []
    assert hostile.split(maxsplit=1)[0] in one(driver, "h2").text
    assert f"{hostile} & title" in one(driver, "tr.detail strong").text


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", ["global", "semiglobal"])
def test_fitted_statistics_and_none(opened: Any, examples: Path, mode: Any) -> None:
    data = examples / "data"
    first = next(
        swsearch.search(
            data / "queries.fasta", data / "swissprot_sample.fasta.gz", mode=mode, distribution=True, engine="cpu"
        )
    )
    driver = opened(report("html", first, make_result(mode=mode), make_result(("q", "", "WWW"), [])), "#query-1")
    names = [each.text for each in all_of(driver, "thead button")]
    assert "Z" in names
    assert "Bits" not in names
    assert "NaN" not in drawn(driver)
    one(driver, ".counts summary").click()
    time.sleep(0.2)
    rows = all_of(driver, ".counts tbody tr")
    counts = sum(int(one(row, "td").get_property("textContent")) for row in rows)
    assert counts + first.distribution.n_below == first.distribution.n_subjects
    driver.execute_script("location.hash = '#query-2'")
    time.sleep(0.2)
    assert "E-value" not in [each.text for each in all_of(driver, "thead button")]
    driver.execute_script("location.hash = '#query-3'")
    time.sleep(0.2)
    assert "No hits." in one(driver, "#query").text


@pytest.mark.exhaustive
def test_a_profile_is_drawn_where_it_is_looked_at(opened: Any) -> None:
    """A logo of 2,000 positions scrolls; those in view, and some beside them, are there."""
    codes = PROTEIN.encode((QUERY * 30)[:2000])
    result = make_result(("long", "", (QUERY * 30)[:2000]))
    profile = swsearch.Profile("long", "", codes, Scoring().matrix.scores[codes][:, :27], source="<b>made up</b>")
    driver = opened(report("html", dataclasses.replace(result, profile=profile)))
    one(driver, ".whole summary").click()
    logo = one(driver, ".logo")
    positions = lambda: [each.get_property("textContent") for each in all_of(driver, ".logo g g > title")]  # noqa: E731
    until(positions)
    assert positions()[0].startswith("M1: L 0.")
    assert 60 < len(positions()) < 200
    driver.execute_script("arguments[0].scrollLeft = 16 * 1500", logo)
    time.sleep(0.3)
    assert any(title.startswith(f"{(QUERY * 30)[1500]}1501: ") for title in positions())
    assert len(positions()) < 200
    assert "<b>made up</b>" in one(driver, ".whole figcaption").text
    assert "NaN" not in drawn(driver)
    content, room = driver.execute_script("const d = document.documentElement; return [d.scrollWidth, d.clientWidth]")
    assert content <= room


@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_the_screen(opened: Any, found: list[Any], width: int, browser: Browser) -> None:
    browser.resize(width)
    driver = opened(report("html", *found), "#query-1")
    one(driver, ".open-hit").click()
    time.sleep(0.2)
    script = "const d = document.documentElement; return [d.scrollWidth, d.clientWidth]"
    content, room = driver.execute_script(script)
    assert content <= room <= width
    wide = one(driver, "#query .hits-table")
    assert driver.execute_script("return arguments[0].scrollWidth - arguments[0].clientWidth", wide) <= 0


@pytest.mark.exhaustive
def test_printing_draws_what_is_open(opened: Any, found: list[Any]) -> None:
    driver = opened(report("html", *found), "#query-1")
    one(driver, ".open-hit").click()
    pdf = driver.print_page()
    assert len(pdf) > 10_000
    driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    lines = one(driver, "tr.detail pre").get_property("textContent").split("\n")
    assert len(lines[0].split()[2]) == 60
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    wide = "return Array.from(document.querySelectorAll('svg .bar'), (bar) => bar.getBoundingClientRect().width)"
    assert min(driver.execute_script(wide)) > 1
    assert [all_of(driver, name)[0].is_displayed() for name in (".filters", ".take", "thead .tick")] == [False] * 3
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_nothing_at_all(opened: Any) -> None:
    stream = io.StringIO()
    writer = create_writer("html", stream)
    result = make_result()
    size = result.database_name, result.database_subjects, result.database_residues
    writer.begin(RunInfo("0", *size, result.scoring, result.mode, None, None, 500))
    writer.end()
    driver = opened(stream.getvalue())
    assert "Parameters" in one(driver, "main").text
