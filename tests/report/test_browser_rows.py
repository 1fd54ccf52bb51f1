"""Rows of the HTML report in headless Chromium: parts of titles, one line a hit, and hits that may be chance."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
from typing import Any

import pytest

from support.browser import all_of, button, column, downloaded, filter_field, heading, one, until
from support.browsers import MARKS, Browser
from support.report_cases import SUBJECT, make_result, report, with_two_alignments
from swsearch.results import SearchResult

pytestmark = MARKS

HOSTILE = "<img src=x onerror=window.ran=1>"

TITLES = {
    "Insulin n=1 OS=Homo sapiens OX=9606 GN=INS PE=1 SV=1": ("Insulin n=1", "Homo sapiens", "INS"),
    "Isocitrate dehydrogenase [NADP], a=b OS=E. coli (strain K12 / x=y) OX=83333 PE=1 SV=1": (
        "Isocitrate dehydrogenase [NADP], a=b", "E. coli (strain K12 / x=y)", "",
    ),
    "Cluster: Insulin n=12 Tax=Hominidae TaxID=9604 RepID=INS_HUMAN": ("Cluster: Insulin", "Hominidae", ""),
    "insulin preproprotein [Homo sapiens]": ("insulin preproprotein", "Homo sapiens", ""),
    "MULTISPECIES: porin [Enterobacteriaceae]": ("porin", "Enterobacteriaceae", ""),
    "RecName: Full=Insulin; Contains: RecName: Full=Insulin B chain [Bos taurus]": ("Insulin", "Bos taurus", ""),
    "NADH dehydrogenase [ubiquinone] 1 [[Clostridium] symbiosum]": (
        "NADH dehydrogenase [ubiquinone] 1", "[Clostridium] symbiosum", "",
    ),
    "kinase [GTP]": ("kinase [GTP]", "", ""),
    "[gene=thrL] [protein=leader peptide] [location=190..255]": ("leader peptide", "", "thrL"),
    "INS [organism=Homo sapiens] [GeneID=3630]": ("INS", "Homo sapiens", ""),
    "first [Pan paniscus]\x01XP_2 second [Gorilla gorilla]": ("first", "Pan paniscus", ""),
    "first [Pongo abelii] >XP_2.1 second [Hylobates lar]": ("first", "Pongo abelii", ""),
    "binds A >B, of [x": ("binds A >B, of [x", "", ""),
    f"{HOSTILE} OS={HOSTILE} GN={HOSTILE}": (HOSTILE, HOSTILE, HOSTILE),
    """5' end, "so called" """: ("""5' end, "so called\"""", "", ""),
    "": ("", "", ""),
}  # fmt: skip
"""Descriptions of subjects, and what of them is shown: description, organism and gene."""

OVERFLOWS = "const page = document.documentElement; return page.scrollWidth - page.clientWidth"


def titled(*descriptions: str) -> SearchResult:
    return make_result(subjects=[(f"sp|P{k:05}|INS_HUMAN", each, SUBJECT) for k, each in enumerate(descriptions)])


def with_evalues(result: SearchResult, *evalues: float) -> SearchResult:
    """Return a result with an E-value for each hit; these have one alignment."""
    hits = [dataclasses.replace(hit, evalue=value) for hit, value in zip(result.hits, evalues, strict=True)]
    return dataclasses.replace(result, hits=hits)


def names(driver: Any) -> list[str]:
    return [each.text for each in all_of(driver, "#query thead button")]


def cells(driver: Any, name: str) -> list[str]:
    return column(driver, 1 + names(driver).index(name))


def test_titles_are_parted_into_columns_that_sort_and_filter(opened: Any) -> None:
    driver = opened(report("html", titled(*TITLES)))
    shown = [cells(driver, name) for name in ("Description", "Organism", "Gene")]
    assert list(zip(*shown, strict=True)) == list(TITLES.values())
    assert driver.execute_script("return window.ran") is None
    heading(driver, "Organism").click()
    organisms = sorted(filter(None, shown[1]), key=lambda name: re.sub(r"\W", "", name).lower())
    found = cells(driver, "Organism")
    assert sorted(found[: len(organisms)]) == sorted(organisms) and not any(found[len(organisms) :])
    assert found.index("Bos taurus") < found.index("Hominidae") < found.index("Pan paniscus")
    filter_field(driver, "Organism holds").send_keys("SAPIENS homo")
    assert cells(driver, "Organism") == ["Homo sapiens"] * 3
    filter_field(driver, "Gene holds").send_keys("ins")
    assert cells(driver, "Description") == ["Insulin n=1"]
    button(driver, "Show all").click()
    until(lambda: len(cells(driver, "Gene")) == len(TITLES))
    for other in ("Gorilla", "Hylobates"):  # of the second title of merged records
        field = filter_field(driver, "Organism holds")
        field.clear()
        field.send_keys(other)
        (opener,) = all_of(driver, ".open-hit")
        opener.click()
        assert [each.text.split()[0] for each in all_of(driver, "tr.detail strong")][1].startswith("XP_2")
        opener.click()


def test_cells_of_csv_are_quoted(opened: Any) -> None:
    result = titled(*TITLES)
    driver = opened(report("html", result))
    button(driver, "Download CSV").click()
    text = downloaded(driver, "q1.csv")
    lines = text.split("\r\n")
    assert len(lines) == len(TITLES) + 2 and not lines[-1] and "\n" not in "".join(lines)
    expected = [line.split("\t") for line in report("6 std score qcovs stitle", result).splitlines()]
    assert list(csv.reader(io.StringIO(text, newline="")))[1:] == expected
    assert ""","sp|P00014|INS_HUMAN 5' end, ""so called\"""" in text


@pytest.mark.exhaustive
def test_parts_that_no_title_has_are_no_columns(opened: Any) -> None:
    driver = opened(report("html", titled("", ""), titled("name only", "")), "#query-1")
    assert names(driver)[:3] == ["#", "Subject", "Score"]
    fields = [each.text for each in all_of(driver, ".filters label")]
    assert "Organism holds" not in fields and "Gene holds" not in fields
    driver.execute_script("location.hash = '#query-2'")
    until(lambda: names(driver)[:4] == ["#", "Subject", "Description", "Score"])


@pytest.mark.parametrize("width", [360, pytest.param(768, marks=pytest.mark.exhaustive), 1280])
def test_a_hit_has_one_line_whatever_its_title(opened: Any, browser: Browser, width: int) -> None:
    browser.resize(width)
    long = "Probable serine/threonine-protein kinase, long isoform, similar to conserved family" * 3
    title = f"{long} OS=Escherichia coli O157:H7 (strain EDL933 / ATCC 700927) OX=9606 GN=asnB PE=1 SV=1"
    driver = opened(report("html", with_two_alignments(titled(title, "Short OS=Mus musculus", ""))))
    rows = all_of(driver, "#query tbody tr")
    heights = [row.size["height"] for row in rows]
    assert max(heights) <= (55 if width == 360 else 33)  # on a phone, the description is below the identifier
    assert rows[0].get_attribute("title") == f"sp|P00000|INS_HUMAN {title}"
    openers = all_of(driver, ".open-hit")
    assert [each.text for each in openers] == [f"sp|P{k:05}|INS_HUMAN" for k in range(3)]
    assert max(each.size["height"] for each in openers) < 30
    heads = [each.text for each in all_of(driver, "#query thead th") if each.is_displayed()]
    assert {"Subject", "Score", "E-value"} <= set(heads)
    assert driver.execute_script(OVERFLOWS) <= 0
    one(driver, ".open-hit").click()
    assert title in one(driver, "tr.detail strong").text
    assert driver.execute_script(OVERFLOWS) <= 0


def test_hits_that_may_be_chance_are_told_from_the_others(opened: Any) -> None:
    result = with_evalues(titled("a", "bb", "ccc", "dddd"), 1e-50, 0.001, 0.0011, 5.0)
    driver = opened(report("html", result))
    order = lambda: [row.get_attribute("class") for row in all_of(driver, "#query tbody tr")]  # noqa: E731
    assert order() == ["", "", "divider", "weak", "weak"]
    assert one(driver, ".divider").text == "E-value above 0.001 from here on: may be chance"
    bars = all_of(driver, "svg .bar")
    assert ["weak" in bar.get_attribute("class") for bar in bars] == [False, False, True, True]
    fills = [bar.value_of_css_property("fill") for bar in bars]
    assert fills[0] == fills[1] != fills[2] == fills[3]
    assert bars[2].size["height"] < bars[0].size["height"]  # not by colour alone
    assert "E-value above 0.001: may be chance" in one(driver, ".pictures .legend").text
    heading(driver, "E-value").click()
    heading(driver, "E-value").click()
    assert order() == ["weak", "weak", "divider", "", ""]
    filter_field(driver, "E-value at most").send_keys("0.001")
    assert order() == ["", ""]


@pytest.mark.exhaustive
def test_a_result_without_chance_hits_says_nothing_of_them(opened: Any) -> None:
    driver = opened(report("html", with_evalues(titled("a"), 1e-9), make_result(mode="global")), "#query-1")
    for part in ("#query-1", "#query-2"):
        driver.execute_script("location.hash = arguments[0]", part)
        until(lambda place=part: one(driver, "#which").get_attribute("value") == str(int(place[-1]) - 1))
        assert all_of(driver, ".weak, .divider") == []
        assert "chance" not in one(driver, "#query").text


def test_alignments_of_a_hit_are_bars_of_their_own(opened: Any) -> None:
    driver = opened(report("html", with_two_alignments(titled("twice", "again"))))
    boxes = [bar.rect for bar in all_of(driver, "svg .bar")]
    assert len(boxes) == 4
    for k, a in enumerate(boxes):
        for b in boxes[k + 1 :]:
            beside = a["x"] + a["width"] < b["x"] or b["x"] + b["width"] < a["x"]
            assert beside or a["y"] + a["height"] < b["y"] or b["y"] + b["height"] < a["y"]
    said = [each.get_property("textContent") for each in all_of(driver, "svg .bar title")]
    assert said[1].startswith("sp|P00000|INS_HUMAN, alignment 2 of 2: query ")
    all_of(driver, "svg .bar")[3].click()
    second = all_of(driver, "tr.detail h3")[1]
    assert 0 <= driver.execute_script("return arguments[0].getBoundingClientRect().top", second) < 800


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.exhaustive), "dark"])
def test_paper_has_all_rows_in_light_colours_and_no_controls(opened: Any, browser: Browser, scheme: str) -> None:
    result = titled(*[f"kinase {k} OS=Homo sapiens" for k in range(520)])
    browser.colours(scheme)
    driver = opened(report("html", result))
    assert len(all_of(driver, ".open-hit")) == 500
    one(driver, ".open-hit").click()
    driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert len(all_of(driver, ".open-hit")) == 520
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    assert one(driver, "body").value_of_css_property("background-color") == "rgba(255, 255, 255, 1)"
    assert one(driver, ".open-hit").value_of_css_property("color") == "rgba(0, 0, 0, 1)"
    seen = [each for each in all_of(driver, "input, select, .filters button, .saves button") if each.is_displayed()]
    assert seen == []
    script = "return getComputedStyle(arguments[0], '::after').content"
    address = driver.execute_script(script, one(driver, ".detail .entry"))
    assert address == '" (https://www.uniprot.org/uniprotkb/P00000)"'
    driver.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert len(all_of(driver, ".open-hit")) == 500
