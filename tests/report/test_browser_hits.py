"""A person's use of hits in the HTML report in headless Chromium: look, open, follow, tick, take away."""

from __future__ import annotations

import dataclasses
import io
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
from support.report_cases import QUERY, make_result, report, with_two_alignments
from swsearch.report.html import HtmlWriter, Link

pytestmark = MARKS

NAME = "sp_P05093_CP17A_HUMAN"
"""Of files with hits of the first query."""


@pytest.fixture(scope="module")
def hundred(examples: Path) -> Any:
    data = examples / "data"
    subjects = data / "swissprot_sample.fasta.gz"
    options: Any = {"evalue": 1e9, "max_hits": 100, "max_alignments": 3, "distribution": True, "engine": "cpu"}
    return next(swsearch.search(data / "queries.fasta", subjects, **options))


IS_ON_TOP = """
const b = arguments[0].getBoundingClientRect();
return arguments[0].contains(document.elementFromPoint(b.x + b.width / 2, b.y + b.height / 2));
"""

OVERLAPS = """
const found = [];
for (const svg of document.querySelectorAll("#query svg")) {
  const texts = Array.from(svg.querySelectorAll("text"), (text) => [text.textContent, text.getBoundingClientRect()]);
  const outer = svg.getBoundingClientRect();
  texts.forEach(([name, a], k) => {
    const isWhole = a.left > outer.left - 1 && a.right < outer.right + 1 && a.bottom < outer.bottom + 1;
    if (!isWhole) found.push(`${name} cut`);
    for (const [other, b] of texts.slice(k + 1)) {
      const isApart = a.left >= b.right || b.left >= a.right || a.top >= b.bottom || b.top >= a.bottom;
      if (!isApart) found.push(`${name} on ${other}`);
    }
  });
}
return found;
"""
"""Names of texts in pictures that lie on each other, or are cut."""


@pytest.mark.parametrize("width", [*WIDTHS, 768])
def test_no_words_of_a_picture_lie_on_others(opened: Any, hundred: Any, width: int, browser: Browser) -> None:
    browser.resize(width)
    many = dataclasses.replace(hundred.distribution, counts=hundred.distribution.counts * 100_000)
    driver = opened(report("html", hundred, dataclasses.replace(hundred, distribution=many)), "#query-1")
    all_of(driver, ".open-hit")[1].click()
    assert len(all_of(driver, "#query svg")) == 4
    assert driver.execute_script(OVERLAPS) == []
    driver.execute_script("location.hash = '#query-2'")
    until(lambda: "10,000,000" in drawn(driver))
    assert driver.execute_script(OVERLAPS) == []


def test_the_first_hit_is_seen_at_once_and_coverage_unfolds(opened: Any, hundred: Any) -> None:
    driver = opened(report("html", hundred, hundred), "#query-1")
    first = one(driver, "#query tbody tr")
    assert driver.execute_script("return arguments[0].getBoundingClientRect().bottom", first) < 850
    rows = lambda: len(all_of(driver, "svg .bar-row"))  # noqa: E731
    few = rows()
    assert 10 < few < 40  # some have several lanes
    button(driver, "Draw all 100").click()
    assert rows() == 100
    assert driver.switch_to.active_element.text == f"Draw the first {few}"
    driver.switch_to.active_element.click()
    assert rows() == few


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", WIDTHS)
def test_the_head_of_the_table_stays(opened: Any, hundred: Any, width: int, browser: Browser) -> None:
    browser.resize(width)
    driver = opened(report("html", hundred))
    driver.execute_script("arguments[0].scrollIntoView()", all_of(driver, ".open-hit")[70])
    for each in (heading(driver, "Subject"), all_of(driver, ".open-hit")[70]):
        assert 0 <= driver.execute_script("return arguments[0].getBoundingClientRect().top", each) < 80
        assert driver.execute_script(IS_ON_TOP, each)


def test_a_row_opens_its_alignment_and_what_is_in_it_keeps_its_purpose(opened: Any, hundred: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    driver = opened(report("html", hundred))
    row = all_of(driver, "#query tbody tr")[3]
    driver.execute_script("arguments[0].scrollIntoView({block: 'end'})", row)
    row.find_elements("css selector", "td")[-1].click()
    assert len(all_of(driver, "tr.detail pre")) >= 1
    detail = one(driver, "tr.detail")
    assert 0 <= driver.execute_script("return arguments[0].getBoundingClientRect().top", detail) < 300
    assert driver.switch_to.active_element.get_attribute("aria-expanded") == "true"
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert all_of(driver, "tr.detail") == []
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert len(all_of(driver, "tr.detail")) == 1
    one(driver, "tr.detail p").click()
    one(row, ".tick").click()
    driver.execute_script("arguments[0].addEventListener('click', (e) => e.preventDefault())", one(row, "a"))
    one(row, "a").click()
    assert len(all_of(driver, "tr.detail")) == 1
    driver.execute_script("getSelection().selectAllChildren(arguments[0])", row)
    driver.execute_script("arguments[0].click()", row.find_elements("css selector", "td")[-1])
    assert len(all_of(driver, "tr.detail")) == 1
    driver.execute_script("getSelection().removeAllRanges()")
    row.find_elements("css selector", "td")[-1].click()
    assert all_of(driver, "tr.detail") == []


def ticks(driver: Any) -> list[Any]:
    return all_of(driver, "#query tbody .tick input")


def test_ticked_hits_are_taken_away_as_fasta_and_table(opened: Any, hundred: Any) -> None:
    driver = opened(report("html", hundred))
    assert not button(driver, "Aligned parts as FASTA").is_enabled()
    for place in (2, 0):
        ticks(driver)[place].click()
    assert one(driver, ".ticked").text == "2 ticked"
    heading(driver, "Length").click()
    hits = sorted((hundred.hits[0], hundred.hits[2]), key=lambda hit: -hit.subject_length)
    button(driver, "Aligned parts as FASTA").click()
    records = [record.split("\n", 1) for record in downloaded(driver, f"{NAME}-ticked.fasta").split(">")[1:]]
    pairs = [(hit, hsp.pair) for hit in hits for hsp in hit.hsps]
    parts = [
        f"{hit.subject_id}/{pair.subject_start + 1}-{pair.subject_end} {hit.subject_description}"
        for hit, pair in pairs
    ]
    assert [header for header, _ in records] == parts
    assert [letters.replace("\n", "") for _, letters in records] == [
        pair.rows()[2].replace("-", "") for _, pair in pairs
    ]
    button(driver, "Table").click()
    names, *rows = [line.split("\t") for line in downloaded(driver, f"{NAME}-ticked.tsv").splitlines()]
    assert names == [
        "#", "Subject", "Description", "Organism", "Gene", "Score", "Bits", "Z", "E-value", "Ident.", "Cover",
        "Length", "Title",
    ]  # fmt: skip
    said = [(row[1], row[5], row[11]) for row in rows]
    assert said == [(hit.subject_id, str(hit.score), str(hit.subject_length)) for hit in hits]


@pytest.mark.exhaustive
def test_ticks_outlast_filters_and_all_that_is_shown_is_ticked_at_once(opened: Any, hundred: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    driver = opened(report("html", hundred))
    ticks(driver)[0].send_keys(Keys.SPACE)
    field, every = filter_field(driver, "Subject holds"), one(driver, "#query thead .tick input")
    field.send_keys(hundred.hits[5].subject_id)
    assert one(driver, ".ticked").text == "1 ticked, 1 of them not shown"
    every.click()
    assert one(driver, ".ticked").text == "2 ticked, 1 of them not shown"
    button(driver, "Show all").click()
    until(lambda: len(ticks(driver)) == 100)
    assert [place for place, each in enumerate(ticks(driver)) if each.is_selected()] == [0, 5]
    assert every.get_property("indeterminate")
    button(driver, "Copy FASTA").click()
    until(lambda: one(driver, ".shown").text == "Copied the aligned parts as FASTA.")
    field.send_keys(Keys.CONTROL, "v")
    assert field.get_attribute("value").startswith(f">{hundred.hits[0].subject_id}/")
    assert f">{hundred.hits[5].subject_id}/" in field.get_attribute("value")


LINKS = {
    "sp|P01308|INS_HUMAN": "https://www.uniprot.org/uniprotkb/P01308",
    "sp|P01308.1|INS_HUMAN": "https://www.uniprot.org/uniprotkb/P01308",
    "sp|P04637-2|P53_HUMAN": "https://www.uniprot.org/uniprotkb/P04637",
    "tr|A0A024R161|A0A024R161_HUMAN": "https://www.uniprot.org/uniprotkb/A0A024R161",
    "Q6YK33": "https://www.uniprot.org/uniprotkb/Q6YK33",
    "UniRef100_P01308-2": "https://www.uniprot.org/uniref/UniRef100_P01308-2",
    "UniRef50_UPI0000000001": "https://www.uniprot.org/uniref/UniRef50_UPI0000000001",
    "UPI000002DB1C": "https://www.uniprot.org/uniparc/UPI000002DB1C",
    "NP_000198.1": "https://www.ncbi.nlm.nih.gov/protein/NP_000198.1",
    "WP_000000001.1": "https://www.ncbi.nlm.nih.gov/protein/WP_000000001.1",
    "ref|XP_011518341.1|": "https://www.ncbi.nlm.nih.gov/protein/XP_011518341.1",
    "gi|4557671|ref|NP_000198.1|": "https://www.ncbi.nlm.nih.gov/protein/NP_000198.1",
    "gb|AAA59172.1|": "https://www.ncbi.nlm.nih.gov/protein/AAA59172.1",
    "pdb|1ZNI|A": "https://www.rcsb.org/structure/1ZNI",
    **dict.fromkeys(
        ["P01308_HUMAN", "INS_HUMAN", "p01308", "AAA59172.1", "1ZNI_A", "sp|INS_HUMAN", "sp|P01308", "UniRef90_",
         "NP_1", "gb|U00096|", "javascript:alert(1)", "sp|P01308/../x|Y", "NP_000198.1?x=1", "sp|P01308|A|B",
         "Q6YK33" * 1700]
    ),
}  # fmt: skip
"""Identifiers, and where they are looked up; None where they do not say whose they are."""


def test_identifiers_link_to_whose_they_are_and_no_others(opened: Any) -> None:
    driver = opened(report("html", make_result(subjects=[(name, "", QUERY) for name in LINKS])))
    rows = all_of(driver, "#query tbody tr")
    found = [[link.get_attribute("href") for link in row.find_elements("css selector", "a")] for row in rows]
    assert dict(zip(LINKS, found, strict=True)) == {name: [link] if link else [] for name, link in LINKS.items()}
    links = all_of(driver, "#query tbody a")
    assert {link.get_attribute("rel") for link in links} == {"noopener noreferrer"}
    assert {link.get_attribute("referrerpolicy") for link in links} <= {None, ""}


def test_several_alignments_are_plotted_query_against_subject(opened: Any) -> None:
    result = with_two_alignments(make_result())
    driver = opened(report("html", result))
    one(driver, ".open-hit").click()
    paths = [each.get_attribute("d") for each in all_of(driver, ".dot-line path:not(.near)")]
    assert len(paths) == len(result.hits[0].hsps) == 2
    assert paths[0].count("L") == len(result.hits[0].pair.cigar)
    ends = [[float(number) for number in path.replace("M", "").split("L")[-1].split()] for path in paths]
    assert ends[0] == ends[1]
    frame = [float(one(driver, ".frame").get_attribute(name)) for name in ("x", "y", "width", "height")]
    pair = result.hits[0].pair
    assert ends[0][0] == pytest.approx(frame[0] + frame[2] * pair.query_end / 70, abs=0.02)
    assert ends[0][1] == pytest.approx(frame[1] + frame[3] * (1 - pair.subject_end / 72), abs=0.02)
    one(driver, ".dot-line:last-of-type path:not(.near)").click()
    top = "return arguments[0].getBoundingClientRect().top"
    assert driver.execute_script(top, all_of(driver, "tr.detail h3")[1]) < 900
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 1280


@pytest.mark.exhaustive
def test_iterations_are_a_column_and_the_profile_unfolds(opened: Any, examples: Path) -> None:
    data = examples / "data"
    subjects = data / "swissprot_sample.fasta.gz"
    result = next(swsearch.search(data / "queries.fasta", subjects, iterations=2, engine="cpu"))
    driver = opened(report("html", result))
    place = 1 + [each.text for each in all_of(driver, "#query thead button")].index("Iter.")
    assert {*column(driver, place)} == {"1", "2"}
    heading(driver, "Iter.").click()
    assert column(driver, place) == sorted(column(driver, place))
    assert not one(driver, ".logo").is_displayed()
    one(driver, ".whole summary").click()
    until(lambda: one(driver, ".logo").is_displayed())


@pytest.mark.exhaustive
def test_the_lengths_of_the_hits(opened: Any, hundred: Any) -> None:
    driver = opened(report("html", hundred, make_result()), "#query-1")
    words = lambda: all_of(driver, ".pictures figcaption")[-1].text  # noqa: E731
    lengths = sorted(hit.subject_length for hit in hundred.hits)
    assert words().startswith(f"100 hits are shown: {lengths[0]:,} to {lengths[-1]:,} residues, median {lengths[49]}")
    figure = all_of(driver, ".pictures figure")[-1]
    bars = figure.find_elements("css selector", "rect.hits title")
    counts = [int(each.get_property("textContent").split(": ")[1].split()[0]) for each in bars]
    assert sum(counts) == 100
    filter_field(driver, "E-value at most").send_keys("1e-20")
    kept = sum(hit.evalue <= 1e-20 for hit in hundred.hits)
    until(lambda: words().startswith(f"{kept} hits are shown"))
    driver.execute_script("location.hash = '#query-2'")
    until(lambda: words() == "1 hit is shown: 72 to 72 residues, median 72; the query has 70.")
    assert "NaN" not in drawn(driver)


def test_a_server_has_whole_subjects(opened: Any, hundred: Any) -> None:
    stream = io.StringIO()
    links = [Link("Jobs", "https://lab.invalid/jobs")]
    writer = HtmlWriter(stream, bar=links, subjects_url="https://lab.invalid/jobs/ABC/subjects")
    writer.begin(dataclasses.replace(hundred.run, queries="x"))
    writer.write(make_result())
    writer.write(hundred)
    writer.end()
    driver = opened(stream.getvalue())
    assert one(driver, "nav.bar a").get_attribute("href") == "https://lab.invalid/jobs"
    driver.execute_script("location.hash = '#query-2'")
    until(lambda: one(driver, "h2").text.startswith("sp|P05093|CP17A_HUMAN"))
    assert button(driver, "Whole subjects").get_attribute("href") is None
    for place in (4, 1):
        ticks(driver)[place].click()
    expected = "https://lab.invalid/jobs/ABC/subjects?query=2&hits=2,5"
    assert button(driver, "Whole subjects").get_attribute("href") == expected


@pytest.mark.exhaustive
def test_five_thousand_hits_and_texts_without_end(opened: Any, browser: Browser) -> None:
    result = make_result()
    names = ["a" * 10_000, "\u202eltr \u0627\u0644", "-" * 500, *(f"s{k}" for k in range(4997))]
    hits = [
        dataclasses.replace(
            result[0], subject_index=k, subject_id=name, subject_description=f"\u202e{name} \U0001f9ec" * 2
        )
        for k, name in enumerate(names)
    ]
    browser.resize(360)
    result = dataclasses.replace(result, hits=hits, query_id="q" * 10_000, query_description="title " * 2000)
    driver = opened(report("html", result))
    assert one(driver, ".shown").text == "5,000 hits shown"
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 360
    driver.execute_script("document.querySelector('#query thead .tick input').click()")
    assert one(driver, ".ticked").text == "5,000 ticked"
    driver.execute_script("document.querySelector('.open-hit').click()")
    assert names[0] in one(driver, "tr.detail strong").text
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 360
    driver.execute_script("document.querySelector('.take button').click()")
    assert downloaded(driver, f"{'q' * 80}-ticked.fasta").count(">") == 5000
