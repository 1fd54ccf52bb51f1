"""Requests that are beyond a limit, or hostile: each is refused with the reason, and in little memory."""

from __future__ import annotations

import base64
import gzip
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.serving import Served, serving
from support.small_servers import ObedientEngine, Opened, asked, settings

LIMITS = {"hits": 50, "body": 4_000_000, "residues": 20_000, "queries": 100}


@pytest.fixture(scope="module")
def limited(database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(settings(database, tmp_path_factory.mktemp("served"), **LIMITS)) as made:
        yield made


ONE = ">q\nMKVLAAGIVGLCAKAYRS\n"


def of(queries: str | bytes, query_format: str = "auto", **options: Any) -> dict[str, Any]:
    content = {"base64": base64.b64encode(queries).decode()} if isinstance(queries, bytes) else queries
    return {"database": "small", "queries": content, "query_format": query_format, "options": options}


REFUSED: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "residues": (of(">q\n" + "MK" * 10_001), 413, "queries", "got 20,002 query residues, expected at most 20,000"),
    "queries": (of(">q\nM\n" * 101), 413, "queries", "got 101 queries, expected at most 100"),
    "lines": (of('{"sequence": "M"}\n' * 101, "lines"), 413, "queries", "got 101 queries, expected at most 100"),
    "hits": (of(ONE, max_hits=51), 422, "max_hits", "at most 50, this server's limit"),
    "alignments": (of(ONE, max_alignments=51), 422, "max_alignments", "at most 50"),
    "included": (of(ONE, iterations=2, max_included=100_001), 422, "max_included", "at most"),
    "identifiers": (of(ONE, include_ids=list(map(str, range(100_001)))), 413, "include_ids", "at most 100,000"),
    "unknown identifiers": (of(ONE, include_ids=["nobody"]), 422, "", "nobody"),
    "mask": (of(ONE, subject_mask="tantan"), 422, "", "was built without tantan"),
    "database": (of(ONE) | {"database": "nosuch"}, 422, "database", "expected one of small"),
    "gzip": (of(gzip.compress(ONE.encode())), 422, "queries", "got gzip data"),
    "bzip2": (of(b"BZh91AY&SY"), 422, "queries", "got bzip2 data"),
    "xz": (of(b"\xfd7zXZ\0\0"), 422, "queries", "got xz data"),
    "zstd": (of(b"\x28\xb5\x2f\xfd\0"), 422, "queries", "got zstd data"),
    "zip": (of(b"PK\x03\x04\0"), 422, "queries", "got zip data"),
    "no sequence": (of(""), 422, "", "queries: no FASTA records"),
    "no letters": (of(">q\nMK1VL\n"), 422, "", "'q'"),
    "DNA": (of(">q\n" + "ACGT" * 50), 422, "", "DNA"),
    "binary": (of(bytes(range(256))), 422, "", ""),
    "nested": (of("[" * 100_000, "json"), 422, "", ""),
    "deep": (of('{"a":' * 30_000, "json"), 422, "", ""),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_why(limited: Served, name: str) -> None:
    body, status, option, part = REFUSED[name]
    for path in ("/jobs", "/search"):
        error = (reply := limited.post(path, body)).error
        assert (reply.status, error.get("option") or "") == (status, option), error
        assert part in error["message"]
        assert str(limited.jobs.settings.folder) not in error["message"]
        assert str(limited.jobs.settings.databases[0].parent) not in error["message"]
    assert limited.get("/jobs").json == {"jobs": []}


def test_many_small_records_are_refused_before_they_take_memory(limited: Served) -> None:
    body = json.dumps(of(">\n" * 1_000_000))
    tracemalloc.start()
    try:
        reply = limited.post("/jobs", body, **{"Content-Type": "application/json"})
        assert "got 1,000,000 queries, expected at most 100" in reply.error["message"]
        assert tracemalloc.get_traced_memory()[1] < 8 * len(body)  # a record of two bytes would take a kilobyte
    finally:
        tracemalloc.stop()


def test_a_usual_number_of_hits_above_the_limit_becomes_the_limit(limited: Served) -> None:
    job = limited.done(asked(1))
    assert job["options"] == {"max_hits": 50}
    assert "at most 50 hits of a query are reported, which is this server's limit" in job["notes"]
    limited.ask("DELETE", job["links"]["self"])


def test_queries_without_residues_have_no_hits(limited: Served) -> None:
    job = limited.done(of(">a\n>b\nMKVLAAGIVGLCAKAYRS\n>c\n"))
    assert (job["n_queries"], job["n_residues"]) == (3, 18)
    assert "the query has no hits" in limited.get(f"/jobs/{job['id']}/subjects?hits=1").error["message"]
    none = limited.done(of(">a\n"))
    assert (none["cells"], none["n_hits"], none["progress"]) == (0, 0, 1.0)
    for each in (job, none):
        assert limited.ask("DELETE", each["links"]["self"]).status == 204


def test_too_many_jobs(opened: Opened) -> None:
    engine = ObedientEngine()
    other = {"X-Forwarded-For": "10.0.0.2"}
    with opened(engine, queued=4, client_jobs=3) as served:
        engine.may_go.clear()
        jobs = [served.submit(asked(1))["id"] for _ in range(3)]
        for cookie in ("", f"swsearch={'c' * 32}"):  # of another browser, at the same address
            reply = served.post("/jobs", asked(1), Cookie=cookie)
            assert (reply.status, bool(reply.headers["retry-after"])) == (429, True)
            assert "3 of your jobs wait or run, of at most 3" in reply.error["message"]
        served.submit(asked(1), **other)
        reply = served.post("/jobs", asked(1), **other)
        assert (reply.status, "4 jobs wait or run, of at most 4" in reply.error["message"]) == (429, True)
        engine.may_go.set()
        assert [served.ended(job)["state"] for job in jobs] == ["done"] * 3
        served.submit(asked(1))


def test_origin_and_title_are_kept(limited: Served) -> None:
    body = asked(1) | {"title": "Mine", "origin": {"queries": "../../etc/passwd", "command": "mine"}}
    job = limited.done(body)
    assert job["title"] == "Mine"
    page = limited.results(job["id"], "html").body.decode()
    assert "passwd" in page and "root:" not in page
    limited.ask("DELETE", job["links"]["self"])
