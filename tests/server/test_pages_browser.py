"""The pages in headless Chromium: what a person does with them, by mouse, by keyboard and without a script."""

from __future__ import annotations

import gzip
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browsers import MARKS, Browser, chromium
from support.serving import QUERY, Served
from support.web_pages import site

WIDTHS = (360, 768, 1280, 1920)

pytestmark = MARKS


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("downloads")) as browser:
        yield browser


@pytest.fixture
def browser(started: Browser) -> Iterator[Browser]:
    """A browser that was nowhere; afterwards its console said nothing and it went nowhere else."""
    started.begin_again()
    yield started
    started.scripts(True)
    started.resize(1280)
    assert started.said() == []
    addresses = started.asked()
    assert addresses
    assert {
        each for each in addresses if not each.startswith(("http://127.0.0.1:", "about:", "data:", "blob:"))
    } == set()


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Served]:
    """A server of databases sprot and trembl whose only worker is busy, so that a test says what becomes of jobs."""
    with site(tmp_path) as served:
        for each in served.engines:
            each.may_go.clear()
        served.submit({"database": "sprot", "queries": QUERY})
        served.engines[0].wait()
        yield served


def release(served: Served) -> None:
    """Let all jobs be done."""
    for each in served.engines:
        each.may_go.set()


def identifier_of(browser: Browser) -> str:
    browser.until(lambda: "/jobs/" in browser.driver.current_url)
    return str(browser.driver.current_url).rpartition("/")[2]


def is_report(browser: Browser) -> bool:
    return bool(browser.all("#query tbody tr"))


def test_a_search_from_the_form_to_its_downloads(browser: Browser, served: Served) -> None:
    browser.get(f"{served.url}/")
    assert [each.get_attribute("value") for each in browser.all("[name=database]:checked")] == ["tiny"]
    browser.one("#queries").send_keys(QUERY)
    browser.until(lambda: browser.text("#queries-count") == "1 sequence, 52 residues.")
    browser.one("#max_hits").send_keys("3")
    browser.one("[value=two]").click()
    browser.one("#go").click()
    identifier = identifier_of(browser)
    browser.until(lambda: is_report(browser))
    shown = [each.text for each in browser.all("#query .open-hit")]
    assert len(shown) == 3 and "alpha" in shown[0]
    (elsewhere,) = [each for each in browser.all(".bar a") if each.text.startswith("two:")]
    assert elsewhere.get_attribute("href") != browser.driver.current_url
    browser.one(".bar a[href$='/details']").click()
    browser.until(lambda: browser.all(".downloads"))
    assert browser.one("#share").get_attribute("value") == f"{served.url}/jobs/{identifier}"
    facts = {each.find_element("css selector", "dt").text: each.text for each in browser.all(".facts div")}
    assert facts["Maximum hits"].endswith("3")
    (table,) = [each for each in browser.all(".downloads a") if each.text == "Table"]
    with urllib.request.urlopen(table.get_attribute("href")) as answer:
        lines = answer.read().decode().splitlines()
    assert len(lines) == 3 and lines[0].startswith("query\talpha\t100")
    table.click()
    browser.until(lambda: [each for each in browser.downloads.iterdir() if each.suffix == ".tsv"])
    browser.get(f"{served.url}/jobs")
    assert len(browser.all("tbody tr")) == 2
    browser.one("tbody button").click()
    browser.until(lambda: len(browser.all("tbody tr")) == 1)


@pytest.mark.exhaustive
def test_a_job_is_watched_without_loading_the_page_again(browser: Browser, held: Served) -> None:
    browser.get(f"{held.url}/?example=insulin")
    browser.one("#go").click()
    identifier = identifier_of(browser)
    assert browser.text("#state-title") == "Waiting: next in the queue"
    browser.run("window.stays = true")
    held.put(identifier, state="running", started=1_795_000_001.0, progress=0.3)
    browser.until(lambda: browser.text("#state-title").startswith("Searching: 30%, about "))
    assert browser.one("progress").get_attribute("value") == "30"
    held.put(identifier, state="running", progress=0.7)
    browser.until(lambda: browser.one("progress").get_attribute("value") == "70")
    assert "70%" in browser.driver.title
    assert browser.run("return window.stays")
    held.put(identifier, state="queued")
    release(held)
    browser.until(lambda: is_report(browser))


@pytest.mark.exhaustive
def test_my_jobs_are_told_of_while_they_run(browser: Browser, held: Served) -> None:
    browser.get(f"{held.url}/?example=insulin")
    browser.one("#go").click()
    identifier = identifier_of(browser)
    browser.get(f"{held.url}/jobs")
    held.put(identifier, state="running", started=1_795_000_001.0, progress=0.5)
    browser.until(lambda: browser.text("tbody .state").startswith("Searching: 50%, about "))
    held.put(identifier, state="done", ended=1_795_000_002.0, n_hits=12)
    browser.until(lambda: browser.all(".state.done"))
    assert "12" in browser.text("tbody tr")


@pytest.mark.exhaustive
def test_a_page_survives_the_server_being_started_again(started: Browser, tmp_path: Path) -> None:
    with site(tmp_path) as first:
        first.engines[0].may_go.clear()
        started.begin_again()
        started.get(f"{first.url}/?example=insulin")
        started.one("#go").click()
        identifier = identifier_of(started)
    started.until(lambda: "does not respond" in started.text("[data-trouble]"))
    with site(tmp_path, port=first.port) as second:
        started.until(lambda: is_report(started) or started.text("[data-trouble]") == "")
        second.ended(identifier)
        started.until(lambda: is_report(started))
    refused = started.said()
    assert refused and all("ERR_CONNECTION_REFUSED" in each or "ERR_" in each for each in refused)


@pytest.mark.exhaustive
def test_everything_can_be_done_by_keyboard(browser: Browser, held: Served) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.get(f"{held.url}/")
    browser.press(Keys.TAB)
    assert browser.focus.text == "Skip to the content"
    assert browser.run("const box = document.activeElement.getBoundingClientRect(); return box.left >= 0")
    browser.press(Keys.ENTER)
    seen: list[str] = []
    while not seen or seen[-1] != "go":
        browser.press(Keys.TAB)
        focus = browser.focus
        seen.append(focus.get_attribute("id") or focus.get_attribute("value") or focus.text)
        assert len(seen) < 60, seen
        style = browser.run(
            "const s = getComputedStyle(document.activeElement); return s.outlineStyle + s.outlineWidth"
        )
        assert style == "solid3px", seen
        hidden = browser.run(
            "const box = document.activeElement.getBoundingClientRect(), x = box.left + box.width / 2;"
            "const top = document.elementFromPoint(x, Math.min(box.bottom, box.top + 10) - 3);"
            "const here = document.activeElement; return !(here.contains(top) || top.contains(here));"
        )
        assert not hidden, seen
        if seen[-1] == "queries":
            browser.press(QUERY)
        if focus.text.startswith("Hits and E-values"):
            browser.press(Keys.ENTER)
        if seen[-1] == "dbsize":
            browser.press("5M")
    assert seen.index("queries") < seen.index("sprot") < seen.index("evalue") < seen.index("dbsize")
    browser.press(Keys.ENTER)
    identifier = identifier_of(browser)
    assert held.get(f"/jobs/{identifier}").json["options"]["dbsize"] == 5_000_000
    for _ in range(20):
        browser.press(Keys.TAB)
        if browser.focus.text == "Cancel this search":
            break
    browser.press(Keys.SPACE)
    browser.until(lambda: browser.text("#state-title") == "The search was cancelled")


@pytest.mark.exhaustive
def test_it_all_works_without_a_script(browser: Browser, held: Served) -> None:
    browser.scripts(False)
    browser.get(f"{held.url}/")
    (globins,) = [each for each in browser.all(".examples a") if each.text == "Four globins"]
    globins.click()
    browser.until(lambda: "P69905" in browser.one("#queries").get_attribute("value"))
    browser.one("#evalue").send_keys("ten")
    browser.one("#go").click()
    browser.until(lambda: browser.all("#evalue-problem"))
    assert browser.focus.get_attribute("id") == "evalue"
    browser.one("#evalue").clear()
    browser.one("#evalue").send_keys("10")
    browser.one("#go").click()
    identifier = identifier_of(browser)
    assert browser.text("#state-title").startswith("Waiting")
    held.put(identifier, state="running", started=1_795_000_001.0, progress=0.5)
    # the page looks again by itself
    browser.until(lambda: browser.text("#state-title").startswith("Searching: 50%, about "))
    held.put(identifier, state="queued")
    browser.get(f"{held.url}/jobs")
    browser.one("tbody button").click()
    browser.until(lambda: browser.text("tbody .state") == "Cancelled")
    browser.get(f"{held.url}/")
    browser.one("#queries").send_keys("ACGTTGCAACACGTTGCAACGG")
    browser.one("#go").click()
    browser.until(lambda: browser.all("#translate-problem"))
    assert browser.focus.get_attribute("id") == "translate"
    browser.one("#allow_dna").click()
    browser.one("#go").click()
    identifier = identifier_of(browser)
    release(held)
    browser.until(lambda: browser.text("noscript p").startswith("Without JavaScript"))  # the report follows by itself
    assert browser.all("noscript tbody tr") and "query" in browser.text("noscript h2")
    browser.resize(360)
    assert browser.run("return document.documentElement.scrollWidth") <= 360
    browser.one(".bar a[href*='/text?']").click()
    browser.until(lambda: "Query= query" in browser.text("body"))
    browser.get(f"{held.url}/")
    assert len(browser.all(".recent li")) == 2
    browser.one(".recent button").click()
    browser.until(lambda: not browser.all(".recent"))
    browser.said()  # the answers of 422 are in it


HINTS = [
    (">a\nMKVLAAG\n>b\nMKV", "2 sequences, 10 residues."),
    ("MKVLAAGIVGWWHHKDEFRTYPCNQSMKVLAAGIVGWWHHK", "1 sequence, 41 residues."),
    (">a\n" + 10 * "ACGT", 'This looks like DNA. Tick "Queries are DNA" for a translated search'),
    ("P01308", "looks like an accession"),
    ("NP_000198.1, NP_000199", "looks like an accession"),
    (">a\n", "Paste the sequences as well"),
    ("{\\rtf1 hello}", "profile"),
    (">a\nMKV=LAAG", '"=" is no residue'),
    ("Dear all, please find here the sequence", "no residue"),
    ("Please find here the sequence", "looks like text"),
    ("        1 mktayiakqr qisfvkshfs rqleerlgli\n       31 evqap\n//", "1 sequence, 35 residues."),
    ("MKTAYIAKQR\n\nQISFVKSHFS", "For several sequences"),
    ("CLUSTAL W\n\na MKV", "Recognized as an alignment or a profile"),
    (">a\nHSQGTFTSDYSKYLDSRRAQ", "For peptides"),
    ("", ""),
]


@pytest.mark.exhaustive
def test_hints_come_while_one_types(browser: Browser, held: Served) -> None:
    browser.get(f"{held.url}/")
    for text, hint in HINTS:
        browser.run(
            "const field = document.querySelector('#queries'); field.value = arguments[0];"
            "field.dispatchEvent(new Event('input'));",
            text,
        )
        browser.until(
            lambda hint=hint: (
                hint in browser.text("#queries-count") and bool(hint) == bool(browser.text("#queries-count"))
            )
        )
        is_shown = browser.one("#allow_dna").is_displayed()
        assert is_shown == ("This looks like DNA" in hint)
        if is_shown:
            browser.one("#allow_dna").click()
            browser.until(lambda: browser.text("#queries-count") == "1 sequence, 40 residues.")
            browser.one("#translate").click()
            browser.until(lambda: browser.text("#queries-count") == "1 sequence, 40 nucleotides.")
            browser.run("document.querySelector('#search').reset()")
            (summary,) = [each for each in browser.all("summary") if each.text == "Translated search"]
            summary.click()


DROP = """
const [name, text, length] = arguments, given = new DataTransfer();
given.items.add(new File([text.repeat(length)], name));
for (const kind of ["dragenter", "drop"]) {
  const event = new DragEvent(kind, { dataTransfer: given, bubbles: true, cancelable: true });
  document.querySelector("#queries").dispatchEvent(event);
}
"""
DROP_BYTES = DROP.replace("text.repeat(length)", "new Uint8Array(text)")
PASTE = """
const given = new DataTransfer();
given.setData("text/plain", arguments[0].repeat(arguments[1]));
const event = new ClipboardEvent("paste", { clipboardData: given, bubbles: true, cancelable: true });
document.querySelector("#queries").dispatchEvent(event);
"""


@pytest.mark.exhaustive
def test_files_are_dropped_and_long_texts_pasted(browser: Browser, held: Served) -> None:
    browser.get(f"{held.url}/")
    browser.run(DROP, "mine.fasta", QUERY, 1)
    browser.until(lambda: browser.one("#queries").get_attribute("value") == QUERY)
    assert browser.one("#title").get_attribute("value") == "mine.fasta"
    browser.one("#queries").clear()
    browser.run(DROP, "large.fasta", QUERY, 30_000)
    browser.until(lambda: browser.text("#queries-count").startswith("large.fasta, "))
    browser.one("#no-file").click()
    browser.until(lambda: browser.text("#queries-count") == "")
    browser.run(PASTE, QUERY, 100_000)  # 6 MB
    browser.until(lambda: browser.text("#queries-count").startswith("pasted.fasta, "))
    assert browser.one("#queries").get_attribute("value") == ""
    browser.one("#title").clear()
    browser.one("#go").click()
    identifier = identifier_of(browser)
    assert held.get(f"/jobs/{identifier}/queries").body == QUERY.encode() * 100_000
    assert held.get(f"/jobs/{identifier}").json["title"] == "pasted.fasta"
    browser.get(f"{held.url}/")
    browser.run(DROP_BYTES, "mine.fa.gz", list(gzip.compress(QUERY.encode())))
    browser.until(lambda: browser.text("#queries-count") == "mine.fa.gz, 1 kB, compressed.")
    browser.one("#go").click()
    identifier = identifier_of(browser)
    assert held.get(f"/jobs/{identifier}/queries").body == QUERY.encode()
    browser.get(f"{held.url}/")  # a page that asks for nothing when the server ends


@pytest.mark.exhaustive
def test_gap_costs_are_shown_that_go_with_a_matrix(browser: Browser, held: Served) -> None:
    browser.get(f"{held.url}/")

    def shown() -> tuple[str, ...]:
        return tuple(browser.one(each).get_attribute("placeholder") for each in ("#gap_open", "#gap_extend"))

    assert shown() == ("11", "1")
    for field, value, costs in (
        ("preset", "sensitive", ("15", "1")),
        ("matrix", "BLOSUM45", ("14", "2")),
        ("matrix", "", ("15", "1")),
        ("preset", "short", ("9", "1")),
    ):
        browser.one(f"#{field} option[value='{value}']").click()
        assert shown() == costs


@pytest.mark.exhaustive
def test_an_example_fills_the_form_and_leaves_the_options(browser: Browser, held: Served) -> None:
    browser.get(f"{held.url}/")
    browser.one("#evalue").send_keys("3")
    (glucagon,) = [each for each in browser.all(".examples a") if "glucagon" in each.text]
    glucagon.click()
    browser.until(lambda: browser.one("#queries").get_attribute("value").endswith("QWLMNT\n"))
    assert browser.one("#preset").get_attribute("value") == "short"
    assert browser.one("#evalue").get_attribute("value") == "3"
    assert browser.one("#gap_open").get_attribute("placeholder") == "9"
    browser.until(lambda: browser.text("#queries-count") == "1 sequence, 29 residues.")


@pytest.mark.exhaustive
def test_the_address_to_share_is_copied(browser: Browser, held: Served) -> None:
    browser.get(f"{held.url}/?example=insulin")
    browser.one("#go").click()
    identifier = identifier_of(browser)
    browser.get(f"{held.url}/jobs/{identifier}/details")
    browser.one("[data-copy]").click()
    browser.until(lambda: browser.text("[data-copy]") == "Copied")


@pytest.mark.exhaustive
def test_pages_fit_every_width_in_both_schemes(browser: Browser, held: Served) -> None:
    browser.get(f"{held.url}/?example=globins")
    browser.one("[value=trembl]").click()
    browser.one("#title").send_keys("x" * 200)
    browser.one("#go").click()
    identifier = identifier_of(browser)
    paths = ["/?example=globins", "/about", "/jobs", f"/jobs/{identifier}", f"/jobs/{identifier}/details"]
    seen = {path: held.url + path for path in paths}
    for width in WIDTHS:
        browser.resize(width)
        for scheme in ("light", "dark"):
            browser.colours(scheme)
            for path, address in seen.items():
                browser.get(address)
                browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
                assert browser.run("return document.documentElement.scrollWidth") <= width, (path, width)
                assert_contrast(browser, (path, scheme))
    release(held)
    held.ended(identifier)
    for width in WIDTHS:
        browser.resize(width)
        for path in (f"/jobs/{identifier}", f"/jobs/{identifier}/summary", f"/jobs/{identifier}/details"):
            browser.get(held.url + path)
            assert browser.run("return document.documentElement.scrollWidth") <= width, (path, width)


CONTRAST = """
const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
  .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
  .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
const parts = (text) => text.match(/[\\d.]+/g).map(Number);
const behind = (element) => {
  for (let each = element; each; each = each.parentElement) {
    const found = parts(getComputedStyle(each).backgroundColor);
    if (found.length === 3 || found[3] === 1) return found;
  }
  return [255, 255, 255];
};
const poor = [];
for (const each of document.querySelectorAll("body *")) {
  const own = [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  if (!own || !each.getClientRects().length || each.closest(":disabled, script, option, noscript")) continue;
  const [a, b] = [light(parts(getComputedStyle(each).color)), light(behind(each))];
  const found = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (found < 4.5) poor.push([each.tagName, each.className, each.textContent.trim().slice(0, 40), found]);
}
return poor;
"""


def assert_contrast(browser: Browser, where: Any) -> None:
    assert browser.run(CONTRAST) == [], where


TOKEN = "a-token-of-24-characters"


@pytest.mark.exhaustive
def test_one_logs_in_with_a_token_and_comes_to_where_one_was_going(started: Browser, tmp_path: Path) -> None:
    with site(tmp_path, tokens=frozenset([TOKEN])) as found:
        started.begin_again()
        started.get(f"{found.url}/jobs?page=1")
        assert started.text("h1") == "Log in"
        started.one("#token").send_keys("another-token-of-the-lab\n")
        started.until(lambda: started.all("#token-problem"))
        started.one("#token").send_keys(f"{TOKEN}\n")
        started.until(lambda: started.text("h1") == "My jobs")
        assert started.driver.current_url == f"{found.url}/jobs?page=1"
        # a link from elsewhere comes without the cookie; the page to log in asks again with it
        started.get(f"data:text/html,<a href='{found.url}/about'>x</a>")
        started.one("a").click()
        started.until(lambda: started.text("h1") == "About this server")
        (out,) = [each for each in started.all("button") if each.text == "Log out"]
        out.click()
        started.until(lambda: started.text("h1") == "Log in")
        started.get(f"{found.url}/about")
        assert started.text("h1") == "Log in"
    said = started.said()
    assert [each for each in said if "401" not in each] == []
