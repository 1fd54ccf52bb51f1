"""BLAST's URL API of a real server, asked by Biopython and as other clients ask NCBI's."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from Bio import Blast
from Bio.Blast import NCBIWWW, NCBIXML

from support.samples import sample
from support.serving import SEQUENCES, Reply, Served, serving
from support.small_servers import N_SUBJECTS, built_dna, proteins
from swsearch.api import search
from swsearch.db import Database
from swsearch.server.blast import BLAST_FORMATS, likely_seconds
from swsearch.server.errors import ServerProblem
from swsearch.server.job_store import Job, new_identifier
from swsearch.server.settings import ServerSettings

TWO = "".join(f">{name} protein {name} Status=1\n{SEQUENCES[name]}\n" for name in ("alpha", "delta"))
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def ask(served: Served, words: Mapping[str, object], method: str = "POST", path: str = "/Blast.cgi") -> Reply:
    """Ask as clients do."""
    text = urlencode(words)
    return served.ask("GET", f"{path}?{text}") if method == "GET" else served.ask("POST", path, text, FORM)


def put(served: Served, **changed: object) -> str:
    """Submit a search, and return its RID."""
    page = ask(served, {"CMD": "Put", "PROGRAM": "blastp", "DATABASE": "tiny", "QUERY": TWO, **changed}).body.decode()
    found = re.findall(r"^    (?:RID|RTOE) = (.*)$", page, re.MULTILINE)
    assert len(found) == 2, page
    assert int(found[1]) >= 1
    return str(found[0])


@pytest.fixture(autouse=True)
def _no_pause() -> Iterator[None]:
    """Let Biopython ask at once: it waits 20 seconds between two searches."""
    Blast.qblast.previous = NCBIWWW.qblast.previous = 0
    yield
    Blast.qblast.previous = NCBIWWW.qblast.previous = 0


def expected(served: Served, **options: Any) -> list[list[tuple[Any, ...]]]:
    """Return the hits of `swsearch.search`, in the form of `seen`."""
    results = search(TWO, str(served.jobs.settings.databases[0]), **{"evalue": 10, "max_hits": 50} | options)
    return [[fact_of(hit) for hit in result.hits] for result in results]


def fact_of(hit: Any) -> tuple[Any, ...]:
    return hit.subject_id, hit.score, f"{hit.evalue:g}", f"{hit.bit_score:g}", hit.alignment[1], hit.alignment[0]


@pytest.mark.parametrize("composition", [None, "0"])
def test_biopython_finds_what_a_search_finds(served: Served, composition: str | None) -> None:
    options = {"statistics": "published"} if composition else {}
    known = expected(served, **options)
    asked = {"url_base": f"{served.url}/Blast.cgi", "composition_based_statistics": composition}
    seen = []
    for record in NCBIXML.parse(NCBIWWW.qblast("blastp", "tiny", TWO, **asked)):
        hits = [(alignment.hit_id, alignment.hsps[0]) for alignment in record.alignments]
        seen.append([(n, h.score, f"{h.expect:g}", f"{h.bits:g}", h.query, h.sbjct) for n, h in hits])
    assert seen == known
    Blast.qblast.previous = 0
    with Blast.qblast("blastp", "tiny", TWO, **asked) as stream:
        records = list(Blast.parse(stream))
    seen = [
        [
            (hit.target.id, hsp.score, f"{hsp.annotations['evalue']:g}",
             f"{hsp.annotations['bit score']:g}", hsp[1], hsp[0])
            for hit in record for hsp in hit
        ]
        for record in records
    ]  # fmt: skip
    assert seen == known
    assert sum(map(len, known)) > 2


@pytest.mark.parametrize("name", sample(["Text", "Tabular", "JSON2"], lambda name: name == "JSON2"))
def test_other_reports_by_biopython(served: Served, name: str) -> None:
    with Blast.qblast("blastp", "tiny", TWO, url_base=f"{served.url}/Blast.cgi", format_type=name) as stream:
        content = stream.read()
    if name != "JSON2":
        assert content.decode().partition("<PRE>\n")[2].rstrip().endswith("</PRE>")
        return
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        listed = json.loads(archive.read(f"{stream.rid}.json"))["BlastJSON"]
        titles = [
            json.loads(archive.read(each["File"]))["BlastOutput2"]["report"]["results"]["search"]["query_title"]
            for each in listed
        ]
    assert titles == ["alpha protein alpha Status=1", "delta protein delta Status=1"]


@pytest.mark.parametrize("name", sample(["HTML", "JSON2_S", "CSV"], lambda name: name == "HTML"))
def test_no_header_makes_ncbiwww_wait(served: Served, name: str) -> None:
    """It takes the first ``Status=`` for the search's, and the queries have one in their headers."""
    content = NCBIWWW.qblast("blastp", "tiny", TWO, url_base=f"{served.url}/Blast.cgi", format_type=name).read()
    assert "alpha" in content


@pytest.mark.parametrize("module", [Blast, NCBIWWW], ids=["Bio.Blast", "NCBIWWW"])
@pytest.mark.parametrize(
    ("database", "options", "said"),
    [
        ("nr", {}, "DATABASE: got 'nr', expected one of tiny, two"),
        ("tiny", {"filter": "L"}, "there is no SEG here"),
        ("tiny", {"query_from": 3, "query_to": 2}, "QUERY_TO: got '2', expected a place from QUERY_FROM, 3"),
        ("tiny", {"composition_based_statistics": "2"}, "COMPOSITION_BASED_STATISTICS: got '2', expected 0"),
        ("tiny", {"hitlist_size": 100_000}, "HITLIST_SIZE"),
        ("tiny", {"entrez_query": "human[orgn]"}, "ENTREZ_QUERY: got 'human[orgn]', which is not supported"),
    ],
)
def test_biopython_shows_why_not(
    served: Served, module: Any, database: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match="Error message from NCBI") as caught:
        module.qblast("blastp", database, SEQUENCES["alpha"], url_base=f"{served.url}/Blast.cgi", **options)
    assert said in str(caught.value)


def test_the_way_of_ncbis_own_example(served: Served) -> None:
    """Put, then SearchInfo until it is ready, then the report as text, by GET and by the older path."""
    words = {"CMD": "Put", "PROGRAM": "blastp", "DATABASE": "tiny", "QUERY": SEQUENCES["alpha"]}
    page = ask(served, words, "GET", "/blast/Blast.cgi").body.decode()
    rid = re.search(r"^    RID = (.*$)", page, re.MULTILINE)[1]  # type: ignore[index]
    info = ask(served, {"CMD": "Get", "FORMAT_OBJECT": "SearchInfo", "RID": rid}, "GET").body.decode()
    assert re.findall(r"(?:Status|ThereAreHits)=(.+?)[\n\s]", info) == ["READY", "yes"]
    marked = (
        (r"QBlastInfoBegin\s+RID", page),
        (r"QBlastInfoBegin\s+Status", info),
        (r"QBlastInfoBegin\s+ThereAre", info),
    )
    assert all(re.search(mark, text) for mark, text in marked)  # where other clients look
    reply = ask(served, {"CMD": "Get", "FORMAT_TYPE": "Text", "RID": rid}, "GET")
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert "\n>alpha protein alpha\n" in reply.body.decode()


def test_queries_as_a_file_with_the_words_in_the_address(served: Served) -> None:
    """As cblaster sends them; its regular expressions read the answers."""
    address = urlencode({"CMD": "PUT", "PROGRAM": "blastp", "DATABASE": "tiny", "HITLIST_SIZE": 2, "ALIGNMENTS": 2})
    body = f'--b\r\nContent-Disposition: form-data; name="QUERY"; filename="QUERY"\r\n\r\n{TWO}\r\n--b--\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    page = served.ask("POST", f"/Blast.cgi?{address}", body, headers).body.decode()
    rid, _rtoe = re.findall(r"(?:RID|RTOE) = (.+?)[\n\s]", page)
    asked = {"CMD": "Get", "RID": rid, "FORMAT_TYPE": "Tabular", "FORMAT_OBJECT": "Alignment", "NCBI_GI": "F"}
    text = ask(served, asked, "GET").body.decode()
    table = re.search("<PRE>(.+?)</PRE>", text, re.DOTALL)[1]  # type: ignore[index]
    rows = [line.split("\t") for line in table.splitlines() if line and not line.startswith("#")]
    assert [row[0] for row in rows] == ["alpha", "alpha", "delta", "delta"]
    assert {len(row) for row in rows} == {13}


@pytest.mark.parametrize("name", sorted(BLAST_FORMATS))
def test_every_report(served: Served, name: str) -> None:
    rid = put(served)
    reply = ask(served, {"CMD": "Get", "RID": rid, "FORMAT_TYPE": name})
    assert reply.status == 200
    assert b"alpha" in reply.body or name == "JSON2"
    if name == "HTML":
        assert reply.headers["content-type"] == "text/html; charset=utf-8"
        assert "Status=READY" in reply.body.decode()
        assert "default-src" not in reply.headers["content-security-policy"]  # the report brings its own
    if name == "XML":
        assert reply.body.startswith(b"<?xml ")
        assert b"Status=" not in reply.body
        records = list(NCBIXML.parse(io.StringIO(reply.body.decode())))
        assert [record.query[-8:] for record in records] == ["Status=1"] * 2


def test_a_search_without_hits_is_ready_and_has_none(served: Served) -> None:
    rid = put(served, QUERY="PPPPPPPPPPPP", EXPECT="1e-9")
    info = ask(served, {"CMD": "Get", "FORMAT_OBJECT": "SearchInfo", "RID": rid}).body.decode()
    assert re.findall(r"(?:Status|ThereAreHits)=(.+?)[\n\s]", info) == ["READY", "no"]


def test_what_is_deleted_is_unknown(served: Served) -> None:
    rid = put(served)
    assert ask(served, {"CMD": "Delete", "RID": rid}).status == 200
    info = ask(served, {"CMD": "Get", "FORMAT_OBJECT": "SearchInfo", "RID": rid})
    assert (info.status, re.findall(r"Status=(\w+)", info.body.decode())) == (200, ["UNKNOWN"])
    report = ask(served, {"CMD": "Get", "FORMAT_TYPE": "XML", "RID": rid})
    assert report.status in (404, 410)
    assert "Status=UNKNOWN" in report.body.decode()
    assert ask(served, {"CMD": "Delete", "RID": rid}).status in (404, 410)


@pytest.mark.parametrize("rid", ["", "x", "../../../etc/passwd", "A" * 20, "<script>alert(1)</script>", "\r\nX: y"])
def test_no_rid_reaches_a_path_or_comes_back_as_markup(served: Served, rid: str) -> None:
    for words, status in (({"FORMAT_TYPE": "XML"}, 404), ({"FORMAT_OBJECT": "SearchInfo"}, 200)):
        reply = ask(served, {"CMD": "Get", "RID": rid, **words}, "GET")
        assert reply.status == status
        assert "Status=UNKNOWN" in reply.body.decode()
        assert b"<script" not in reply.body
        assert "x" not in reply.headers


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ({"CMD": "Get", "RID": new_identifier(), "FORMAT_TYPE": "XML2"}, 422),
        ({"CMD": "Get", "RID": new_identifier(), "FORMAT_TYPE": "Text", "ALIGNMENT_VIEW": "QueryAnchored"}, 422),
        ({"CMD": "Get", "RID": new_identifier(), "FORMAT_OBJECT": "PSSM"}, 422),
        ({"CMD": "Info"}, 422),
        ({"CMD": "Put", "EXPCT": "1"}, 200),
        ({"CMD": "Put", "PROGRAM": "blastp", "DATABASE": "tiny", "QUERY": "MKV", "FORMAT_TYPE": "ASN.1"}, 200),
        ({"CMD": "Put", "X" * 1_000_000: "1"}, 200),
        ({"RID": "A"}, 422),
    ],
)
def test_what_is_refused_has_a_sentence_and_its_status(served: Served, words: dict[str, str], status: int) -> None:
    reply = ask(served, words)
    assert reply.status == status
    assert '<p class="error">' in reply.body.decode()
    assert "Status=" not in reply.body.decode()


def test_forms_that_cannot_be_read(served: Served) -> None:
    for kind, body, status in (
        ("application/json", "{}", 415),
        ("multipart/form-data", "CMD=Put", 400),
        ("multipart/form-data; boundary=b", "--b\r\nnothing", 422),
        ("application/x-www-form-urlencoded", "&".join(f"a{n}=1" for n in range(200)), 400),
    ):
        reply = served.ask("POST", "/Blast.cgi", body, {"Content-Type": kind})
        assert reply.status == status, (kind, reply.body)
        assert '<p class="error">' in reply.body.decode()


def test_nothing_asked_for_is_told_what_there_is(served: Served) -> None:
    page = served.ask("GET", "/Blast.cgi").body.decode()
    assert "<li>tiny</li>\n<li>two</li>" in page


def test_a_token_may_stand_in_the_path(tmp_path: Any, server_settings: ServerSettings) -> None:
    token = "0123456789abcdef0123"
    with serving(replace(server_settings, folder=tmp_path, tokens=frozenset({token}))) as served:
        assert served.ask("GET", "/Blast.cgi").status == 401
        found = NCBIWWW.qblast("blastp", "tiny", TWO, url_base=f"{served.url}/{token}/Blast.cgi")
        assert len(list(NCBIXML.parse(found))) == 2


def test_a_dna_database_is_searched_by_names_of_programs_for_dna(tmp_path: Path) -> None:
    database = built_dna(tmp_path)
    (name, protein) = proteins(N_SUBJECTS)[4]
    with serving(ServerSettings((database,), tmp_path / "state", engine="cpu", threads=1, workers=1)) as served:
        for program, query in (("tblastn", protein), ("tblastx", Database.open(database).sequence(0)[:900])):
            rid = put(served, PROGRAM=program, DATABASE="genome", QUERY=f">{name}\n{query}\n")
            xml = ask(served, {"CMD": "Get", "RID": rid, "FORMAT_TYPE": "XML"}).body
            (record,) = Blast.parse(io.BytesIO(xml))
            assert record[0].target.id == "n0"
            assert f"<BlastOutput_program>{program}</BlastOutput_program>".encode() in xml
        page = ask(served, {"CMD": "Put", "PROGRAM": "blastp", "DATABASE": "genome", "QUERY": protein})
        assert b"PROGRAM: got 'blastp', expected tblastn, or tblastx for DNA queries: genome holds DNA" in page.body
        stated = served.get("/databases/genome").json
    with Database.open(database) as opened:
        assert (stated["nucleotides"], stated["genetic_code"]) == (opened.n_residues, 1)
    assert 1.9 < stated["n_residues"] / stated["nucleotides"] < 2


def raising(error: Exception) -> Callable[..., None]:
    def submit(*_: object) -> None:
        raise error

    return submit


def job_of(**changed: Any) -> Job:
    rid = new_identifier()
    known = {
        "identifier": rid, "group": rid, "client": "c", "payer": "c", "database": "tiny", "title": "", "options": {},
        "n_queries": 1, "n_residues": 9, "cells": 500, "submitted": 0.0,
    }  # fmt: skip
    return Job(**{**known, **changed})


@pytest.mark.parametrize(
    ("changed", "state", "status"),
    [
        ({"state": "running"}, "WAITING", 200),
        ({"state": "cancelled"}, "FAILED", 410),
        ({"state": "failed", "problem": {"code": "unavailable", "message": "the GPU is gone <b>"}}, "FAILED", 503),
        ({"state": "failed", "problem": {"code": "what", "message": "Status=READY"}}, "FAILED", 500),
        ({"state": "failed"}, "FAILED", 500),
    ],
)
def test_states_of_a_search(
    served: Served, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], state: str, status: int
) -> None:
    async def wait(identifier: str, seconds: float) -> Job:
        return job_of(identifier=identifier, **changed)

    monkeypatch.setattr(served.jobs, "wait", wait)
    rid = new_identifier()
    info = ask(served, {"CMD": "Get", "FORMAT_OBJECT": "SearchInfo", "RID": rid}).body.decode()
    assert re.findall(r"(?:Status|ThereAreHits)=(.+?)[\n\s]", info) == [state]
    report = ask(served, {"CMD": "Get", "FORMAT_TYPE": "XML", "RID": rid})
    assert report.status == status
    assert re.findall(r"(?:Status|ThereAreHits)=(.+?)[\n\s]", report.body.decode()) == [state]
    assert report.body.startswith(b"<!DOCTYPE html") == (state == "WAITING")
    assert b"<b>" not in report.body


@pytest.mark.parametrize(
    ("code", "status"), [("too_many", 429), ("unavailable", 503), ("too_large", 200), ("disk_full", 507)]
)
def test_a_put_that_may_be_tried_again_says_when(
    served: Served, monkeypatch: pytest.MonkeyPatch, code: str, status: int
) -> None:
    problem = ServerProblem(code, "max_hits: too much", option="max_hits", retry_after=7)
    monkeypatch.setattr(served.jobs, "submit", raising(problem))
    reply = ask(served, {"CMD": "Put", "PROGRAM": "blastp", "DATABASE": "tiny", "QUERY": "MKV"})
    assert reply.status == status
    assert '<p class="error">HITLIST_SIZE: too much</p>' in reply.body.decode()
    assert reply.headers.get("retry-after") == ("7" if status in (429, 503) else None)


def test_a_bug_is_no_page_of_ours(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served.jobs, "submit", raising(RuntimeError("secret")))
    reply = ask(served, {"CMD": "Put", "PROGRAM": "blastp", "DATABASE": "tiny", "QUERY": "MKV"})
    assert reply.status == 500
    assert b"secret" not in reply.body


@pytest.mark.parametrize(
    ("cells", "seconds", "queue_position", "likely"),
    [(0, 0, None, 1), (1000, 0.0, None, 1), (1000, 1.0, None, 1), (100, 100.0, 1, 1000), (1, 1e9, 0, 3600)],
)
def test_how_long_it_is_likely_to_take(cells: int, seconds: float, queue_position: int | None, likely: int) -> None:
    assert likely_seconds(job_of(queue_position=queue_position), cells, seconds) == likely
