"""The table of taxa of the HTML report in headless Chromium."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from support.browser import WIDTHS, all_of, one, until
from support.browsers import MARKS, Browser
from support.report_cases import SUBJECT, make_result, report
from swsearch.db.taxonomy import Taxa, Taxon
from swsearch.results import SearchResult

pytestmark = [*MARKS, pytest.mark.exhaustive]

N_TAXA = 520
"""More than are drawn at a time."""

HOSTILE = Taxon(1, "<b>bold</b> & " + "x" * 300, "</script>", "", "Viruses")


def of_taxa(*taxa: Taxa) -> SearchResult:
    result = make_result(subjects=[(f"s{place}", "", SUBJECT) for place in range(len(taxa))])
    hits = [dataclasses.replace(hit, taxa=each) for hit, each in zip(result.hits, taxa, strict=True)]
    return dataclasses.replace(result, hits=hits)


def many() -> SearchResult:
    several = [(Taxon(1000 + place, f"Genus{place} species"),) for place in range(N_TAXA - 2)]
    return of_taxa((HOSTILE,), (HOSTILE, Taxon(9606)), (), *several)


def rows(driver: Any, table: int = 0) -> list[list[str]]:
    body = all_of(driver, "#query .taxa table")[table]
    script = (
        "return Array.from(arguments[0].tBodies[0].rows, (row) => Array.from(row.cells, (cell) => cell.innerText))"
    )
    found: list[list[str]] = driver.execute_script(script, body)
    return found


@pytest.mark.parametrize("width", (*WIDTHS, 768))
def test_the_most_frequent_taxa_are_shown_and_the_others_unfold(opened: Any, browser: Browser, width: int) -> None:
    browser.resize(width)
    driver = opened(report("html", many(), make_result()), "#query-1")
    link = one(driver, ".note a")
    assert link.text == f"{N_TAXA} taxa"
    link.click()
    assert driver.switch_to.active_element.get_attribute("class") == "taxa"
    assert driver.execute_script("return location.hash") == "#query-1"  # the address keeps the query
    assert "1 hit has none" in one(driver, ".taxa caption").text
    shown = rows(driver)
    assert len(shown) == 10
    assert shown[0][0].startswith("<b>bold</b> & xxx") and "</script>" in shown[0][0]
    assert shown[0][1] == "1" and shown[0][3] == "2"
    assert shown[1][:2] == ["name not known", "9606"]
    assert one(driver, ".taxa tbody a").get_attribute("href") == "https://www.ncbi.nlm.nih.gov/datasets/taxonomy/1/"
    heads = [each.text for each in all_of(driver, ".taxa thead th") if each.is_displayed()]
    assert heads == ["Taxon", "Taxid", *(["Superkingdom"] if width > 820 else []), "Hits", "Best E-value"]
    one(driver, ".taxa summary").click()
    until(lambda: len(all_of(driver, ".taxa table")) == 2)
    assert len(rows(driver, 1)) == 500
    assert one(driver, ".taxa .more").text == "Show 10 more of 10"
    driver.execute_script("arguments[0].click()", one(driver, ".taxa .more button"))
    assert len(rows(driver, 1)) == N_TAXA - 10
    assert all_of(driver, ".taxa .more") == []
    for wide in all_of(driver, ".taxa .wide"):
        assert driver.execute_script("return arguments[0].scrollWidth - arguments[0].clientWidth", wide) <= 0
    assert driver.execute_script(
        "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    driver.execute_script("location.hash = '#query-2'")
    until(lambda: all_of(driver, ".taxa") == [])
    assert all_of(driver, ".note a") == []


def test_what_no_taxon_has_is_no_column(opened: Any) -> None:
    driver = opened(report("html", of_taxa((Taxon(9606),))))
    assert [each.text for each in all_of(driver, ".taxa thead th")] == ["Taxon", "Taxid", "Hits", "Best E-value"]
    assert one(driver, ".note a").text == "1 taxon"
    assert all_of(driver, ".taxa details") == []
