"""Sequences without a header, DNA and compressed files in the form; results without a script; recent searches."""

from __future__ import annotations

import gzip
import hashlib
import time
import tracemalloc
from typing import Any

import pytest

from support.serving import Served, until
from support.web_pages import STRANGER, Page, Visitor
from swsearch.server import results
from swsearch.server.access import Access
from swsearch.server.page_words import LOOKS_LIKE_DNA

RECORD = b">x\nMKTAYIAKQRQISFVKSHF\n"

GENBANK = """ORIGIN
        1 mktayiakqr qisfvkshfs rqleerlgli evqapilsrv gdgtqdnlsg aekavqvkvk
       61 alpdaqfev
//
"""

UNIPROT = """SQ   SEQUENCE   69 AA;  7715 MW;  0000000000000000 CRC64;
     MKTAYIAKQR QISFVKSHFS RQLEERLGLI EVQAPILSRV GDGTQDNLSG AEKAVQVKVK
     ALPDAQFEV
//
"""

LETTERS = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVK\nALPDAQFEV\n"


def queries_of(visitor: Visitor, address: str) -> str:
    return visitor.get(f"/api/v1{address}/queries").text


def said(answer: Any, status: int = 422) -> str:
    assert answer.status_code == status
    return Page(answer.text).one("div", role="alert").text


@pytest.mark.parametrize(
    ("pasted", "expected"),
    [
        ("MKTAYIAKQR", "MKTAYIAKQR\n"),
        ("\ufeff\n mktay iakqr\r\nQISF*\r\n", "mktayiakqrQISF*\n"),
        (LETTERS, LETTERS),
        (GENBANK, LETTERS.lower()),
        (GENBANK.partition("\n")[2], LETTERS.lower()),
        (UNIPROT, LETTERS),
        ("       10         20\nMKTAYIAKQR QISFVKSHFS\n\n       30\nRQL", "MKTAYIAKQRQISFVKSHFSRQL\n"),
        ("mk tayia kqrqisfvk s", "mktayiakqrqisfvks\n"),
        ("MKTAY\rIAKQR", "MKTAYIAKQR\n"),
    ],
)
def test_a_sequence_without_a_header_is_one_query(visitor: Visitor, pasted: str, expected: str) -> None:
    address = visitor.sent({"queries": pasted})
    assert queries_of(visitor, address) == f">query\n{expected}"
    job = visitor.get(f"/api/v1{address}").json()
    assert (job["title"], job["n_queries"]) == ("query", 1)
    by_file = visitor.sent({"queries": ""}, files={"file": ("mine.txt", pasted.encode())})
    assert queries_of(visitor, by_file) == f">query\n{expected}"


@pytest.mark.parametrize(
    ("pasted", "problem"),
    [
        ("MKTAY\nIAK=QR", "Queries: line 2: '=' is no residue letter, expected one of the protein letters"),
        ("MKT-AY", "'-' is a gap character"),
        ("MKTAY\n\nIAKQR", "There is a blank line inside the sequence. For several sequences, put a line"),
        ("Please find here the sequence of a protein", "This looks like text."),
        ("P01308", "This looks like an accession. Paste the sequence itself."),
        ("NP_000198.1\nNP_000199.1", "This looks like an accession."),
        ("MKTAY\n>a\nIAKQR", "got 'M' before the first record"),
        ("LOCUS       AB000001", "this looks like a GenBank or GenPept file"),
        ("caf\u00e9", "byte 0xC3 is no residue letter"),
        ("ACGT" * 10, LOOKS_LIKE_DNA),
    ],
)
def test_what_is_no_sequence_is_told(visitor: Visitor, pasted: str, problem: str) -> None:
    assert problem in said(visitor.post("/search", {"queries": pasted, "database": "sprot"}))


def test_alignments_and_profiles_stay_as_they_are(visitor: Visitor) -> None:
    for text in ("# STOCKHOLM 1.0\nx MKTAYIAKQR\n//\n", "CLUSTAL W\n\nx MKTAYIAKQR\n", "\n\n>a\nMKV\n"):
        assert queries_of(visitor, visitor.sent({"queries": text})) == text


def test_dna_opens_the_section_of_translated_searches(visitor: Visitor) -> None:
    dna = "ACGTTGCAAC\nACGTTGCAAC\nGG"
    answer = visitor.post("/search", {"queries": dna, "database": "sprot"})
    assert said(answer).strip() == f"Search not started. {LOOKS_LIKE_DNA}\nGo to the field"
    page = Page(answer.text)
    (opened,) = page.all("details", open="")
    there = {each.attributes.get("id") for each in opened.inside}
    assert {"translate", "allow_dna", "translate-problem"} <= there
    assert page.one("div", role="alert").inside[-1].attributes["href"] == "#translate"
    assert page.one("textarea", name="queries").text.strip() == dna
    for ticked in ("translate", "allow_dna"):  # either remedy works
        address = visitor.sent({"queries": dna, ticked: "on"})
        assert queries_of(visitor, address) == ">query\nACGTTGCAACACGTTGCAACGG\n"


# compressed files


def test_a_gzip_file_is_searched(visitor: Visitor) -> None:
    data = gzip.compress(RECORD) + gzip.compress(b">y\nMKV\n") + b"\0" * 100  # as bgzip and tape drives write them
    address = visitor.sent({"queries": ""}, files={"file": ("mine.fa.gz", data)})
    job = visitor.get(f"/api/v1{address}").json()
    assert (job["title"], job["n_queries"]) == ("mine.fa.gz", 2)
    assert queries_of(visitor, address) == RECORD.decode() + ">y\nMKV\n"
    until(lambda: visitor.get(f"{address}/state").json()["is_ended"])
    assert hashlib.sha256(data).hexdigest() in visitor.get(address).text  # of the file as the user has it
    # a wrong option shows the content as text
    answer = visitor.post("/search", {"evalue": "x", "database": "sprot"}, files={"file": ("mine.fa.gz", data)})
    assert Page(answer.text).one("textarea", name="queries").text == "\n" + RECORD.decode() + ">y\nMKV\n"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (gzip.compress(RECORD)[:-9], "The .gz file ends early. Compress it again."),
        (gzip.compress(RECORD)[:20] + b"x" * 20, "The .gz file is damaged"),
        (gzip.compress(RECORD)[:-8] + b"\0" * 8, "The .gz file is damaged"),
        (gzip.compress(RECORD) + b"junk", "The .gz file is damaged"),
        (gzip.compress(gzip.compress(RECORD)), "The file is compressed with gzip."),
        (gzip.compress(b""), "Paste a sequence or choose a file."),
        (gzip.compress(b"") * 10_001, "The .gz file has too many parts."),
    ],
    ids=["truncated", "broken", "checksum", "junk", "twice", "empty", "parts"],
)
def test_a_gzip_file_that_cannot_be_searched_is_told(visitor: Visitor, data: bytes, problem: str) -> None:
    answer = visitor.post("/search", {"database": "sprot"}, files={"file": ("mine.fa.gz", data)})
    assert problem in said(answer, answer.status_code) and answer.status_code in (413, 422)
    assert Page(answer.text).one("textarea", name="queries").text.strip() == ""


def test_a_gzip_bomb_takes_no_memory(place: Served, visitor: Visitor) -> None:
    limit = place.jobs.settings.limits.body
    bomb = gzip.compress(b">x\n" + b"M" * (limit + (1 << 20)), 1)
    tracemalloc.start()
    try:
        answer = visitor.post("/search", {"database": "sprot"}, files={"file": ("bomb.fa.gz", bomb)})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert f"more than {limit:,} bytes when it is decompressed" in said(answer, 413)
    assert len(bomb) < limit / 100 and peak < limit / 4


def test_decompressed_bytes_count_for_the_memory_of_all_requests(place: Served, visitor: Visitor) -> None:
    gate = place.app.middleware_stack
    while not isinstance(gate, Access):
        gate = gate.app
    data = gzip.compress(b">x\n" + b"M" * (2 << 20))
    until(lambda: gate.n_held == 0)
    gate.n_held = gate.max_held - (1 << 20)  # other requests
    try:
        files = {"file": ("mine.fa.gz", data)}
        answer = visitor.post("/search", {"database": "sprot"}, files=files)
        assert answer.status_code == 503 and "reads as much as it can now" in said(answer, 503)
        until(lambda: gate.n_held == gate.max_held - (1 << 20))
    finally:
        gate.n_held = 0
    address = visitor.sent({"statistics": "none"} | {"queries": ""}, files=files)
    until(lambda: gate.n_held == 0)
    visitor.post(f"{address}/delete")


# results without a script, and recent searches


def test_results_without_a_script_are_tables_and_text(
    place: Served, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = "MKVLAAGIVGWWHHKDEFRTYPCNQSMKVLAAGIVGWWHHKDEFRTYPCNQS"
    address = visitor.sent({"queries": f">a <b> one\n{letters}\n>none\nW\n", "evalue": "1e-5"})
    place.ended(address[-20:])
    page = visitor.page(address)
    first, second, third = page.all("noscript")
    assert first.text.startswith("Without JavaScript, this page has tables of the best hits.")
    assert [each.text for each in second.inside if each.name == "h2"] == ["a <b> one"]
    rows = [[cell.text for cell in row.inside] for row in second.inside if row.name == "tr"]
    assert rows[0] == ["Subject", "Bit score", "E-value"]
    assert [row[0].partition(" ")[0] for row in rows[1:]] == ["P01308", "P69905", "P00698"][: len(rows) - 1]
    assert len(rows) > 2 and float(rows[1][1]) > 100 and float(rows[1][2]) < 1e-10
    assert third.text == "noneNo hits."
    (link,) = [each.attributes["href"] for each in page.all("a") if each.text == "Alignments (text)"]
    assert link == f"{address}/text?queries=1-2"
    answer = visitor.get(link)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "content-disposition" not in answer.headers
    assert letters in answer.text and "No hits found" in answer.text
    assert visitor.get(f"{address}/text?queries=3").status_code == 422
    monkeypatch.setattr(results, "MAX_TABLE_ROWS", 1)
    second = visitor.page(address).all("noscript")[1]
    assert "The best 1 of 2 hits." in second.text and "P69905" not in second.text


def test_recent_searches_are_listed_until_they_are_cleared(place: Served, visitor: Visitor) -> None:
    def listed(who: Visitor = visitor) -> list[str]:
        found = who.page("/").all("section", class_="card recent")
        return [each.attributes["href"] for section in found for each in section.inside if each.name == "a"][:-1]

    place.submit({"database": "sprot", "queries": RECORD.decode()})  # of a program at the same address
    assert listed() == []
    sent = [visitor.sent({"title": f"search {number}"}) for number in range(7)]
    for each in sent:
        place.ended(each[-20:])
    assert listed() == sent[:1:-1]
    shown = visitor.page("/").one("section", class_="card recent").text
    assert "search 6" in shown and "sprot, Done: " in shown and "UTC" in shown
    assert listed(Visitor(place.url)) == []
    visitor.post(f"{sent[6]}/delete")
    place.put(sent[5][-20:], database="gone")
    assert listed() == sent[4:0:-1]
    answer = visitor.post("/clear")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "HttpOnly" in answer.headers["set-cookie"] and "SameSite=strict" in answer.headers["set-cookie"]
    assert listed() == []
    assert len(visitor.page("/jobs").all("tr")) == 1 + 6  # the jobs stay
    time.sleep(0.01)
    assert listed() == [] and [visitor.sent({})] == listed()
    for wrong in ("x", "nan", "9" * 400, "-1", ""):
        answer = visitor.get("/", headers={"Cookie": f"{STRANGER}; swsearch-cleared={wrong}"})
        assert answer.status_code == 200
