"""Requests that are beyond a limit, or hostile: each is refused with the reason, and in little memory."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.houses import CLIENT, OTHER, House, ObedientEngine, Opened, asked, done, settings
from swsearch.client.search_request import SearchRequest
from swsearch.server.errors import ServerProblem
from swsearch.server.validation import MAX_IDENTIFIERS, MAX_IN_PROFILES

LIMITS = {"hits": 50, "body": 200_000, "residues": 20_000, "queries": 100}


@pytest.fixture(scope="module")
def house(database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with House(settings(database, tmp_path_factory.mktemp("served"), **LIMITS)) as made:
        yield made


def of(queries: bytes, **more: Any) -> SearchRequest:
    return SearchRequest("small", queries, **more)


ONE = b">q\nMKVLAAGIVGLCAKAYRS\n"

REFUSED: dict[str, tuple[SearchRequest, int, str, str]] = {
    "bytes": (of(b">q\nM\n" + b" " * 200_000), 413, "queries", "got 200,005 bytes of queries, expected at most"),
    "residues": (of(b">q\n" + b"MK" * 10_001), 413, "queries", "got 20,002 query residues, expected at most 20,000"),
    "queries": (of(b">q\nM\n" * 101), 413, "queries", "got 101 queries, expected at most 100"),
    "hits": (of(ONE, options={"max_hits": 51}), 422, "max_hits", "at most 50, this server's limit"),
    "alignments": (of(ONE, options={"max_alignments": 51}), 422, "max_alignments", "at most 50"),
    "included": (
        of(ONE, options={"iterations": 2, "max_included": MAX_IN_PROFILES + 1}), 422, "max_included", "at most"
    ),
    "identifiers": (
        of(ONE, options={"include_ids": list(map(str, range(MAX_IDENTIFIERS + 1)))}), 413, "include_ids",
        "at most 100,000",
    ),
    "unknown identifiers": (of(ONE, options={"include_ids": ["nobody"]}), 422, "", "nobody"),
    "mask": (of(ONE, options={"subject_mask": "tantan"}), 422, "", "was built without tantan"),
    "database": (SearchRequest("nosuch", ONE), 422, "database", "expected one of small"),
    "gzip": (of(gzip.compress(ONE)), 422, "queries", "got gzip data"),
    "bzip2": (of(b"BZh91AY&SY"), 422, "queries", "got bzip2 data"),
    "xz": (of(b"\xfd7zXZ\0\0"), 422, "queries", "got xz data"),
    "zstd": (of(b"\x28\xb5\x2f\xfd\0"), 422, "queries", "got zstd data"),
    "zip": (of(b"PK\x03\x04\0"), 422, "queries", "got zip data"),
    "no sequence": (of(b""), 422, "", "queries: no FASTA records"),
    "no letters": (of(b">q\nMK1VL\n"), 422, "", "'q'"),
    "DNA": (of(b">q\n" + b"ACGT" * 50), 422, "", "DNA"),
    "binary": (of(bytes(range(256))), 422, "", ""),
    "nested": (of(b"[" * 100_000, query_format="json"), 422, "", ""),
    "deep": (of(b'{"a":' * 30_000, query_format="json"), 422, "", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_why(house: House, name: str) -> None:
    request, status, option, part = REFUSED[name]
    for ask in (lambda: house.submit([request], CLIENT), lambda: house.search_now(request, "6", CLIENT)):
        with pytest.raises(ServerProblem) as caught:
            ask()
        assert (caught.value.status, caught.value.option) == (status, option), caught.value
        assert part in str(caught.value)
        assert str(house.settings.folder) not in str(caught.value)
        assert str(house.settings.databases[0].parent) not in str(caught.value)
    assert not list((house.settings.folder / "jobs").iterdir())


def test_one_search_of_a_group_that_is_refused_refuses_all(house: House) -> None:
    with pytest.raises(ServerProblem, match="max_hits"):
        house.submit([asked(1), asked(1, max_hits=51)], CLIENT)
    with pytest.raises(ServerProblem, match="expected at least one"):
        house.submit([], CLIENT)
    assert not list((house.settings.folder / "jobs").iterdir())


def test_many_small_records_are_refused_before_they_take_memory(opened: Opened) -> None:
    with opened() as house:
        request = of(b">\n" * 1_000_000)
        tracemalloc.start()
        try:
            with pytest.raises(ServerProblem, match="got 1,000,000 queries, expected at most 100,000"):
                house.submit([request], CLIENT)
            assert tracemalloc.get_traced_memory()[1] < 1 << 20
        finally:
            tracemalloc.stop()


def test_a_usual_number_of_hits_above_the_limit_becomes_the_limit(house: House) -> None:
    job = done(house, asked(1))
    assert job.options == {"max_hits": 50}
    assert "at most 50 hits of a query are reported, which is this server's limit" in job.notes
    house.delete(job.identifier, CLIENT)


def test_queries_without_residues_have_no_hits(house: House) -> None:
    job = done(house, of(b">a\n>b\nMKVLAAGIVGLCAKAYRS\n>c\n"))
    assert (job.n_queries, job.n_residues) == (3, 18)
    with pytest.raises(ServerProblem, match="the query has no hits"):
        house.subjects(job.identifier, 1, [1])
    house.delete(job.identifier, CLIENT)
    none = done(house, of(b">a\n"))
    assert (none.cells, none.n_hits, none.progress) == (0, 0, 1.0)
    house.delete(none.identifier, CLIENT)


def test_too_many_jobs(opened: Opened) -> None:
    engine = ObedientEngine()
    limits = {"queued": 4, "client_jobs": 3}
    with opened(engine, **limits) as house:
        engine.may_go.clear()
        jobs = house.submit([asked(1)] * 3, CLIENT)
        with pytest.raises(ServerProblem, match="3 of your jobs wait or run, of at most 3") as caught:
            house.submit([asked(1)], CLIENT)
        assert (caught.value.status, bool(caught.value.retry_after)) == (429, True)
        with pytest.raises(ServerProblem, match="3 of your jobs wait or run"):  # another browser, at the same address
            house.submit([asked(1)], f"{CLIENT}/{'c' * 32}")
        house.submit([asked(1)], OTHER)
        with pytest.raises(ServerProblem, match="4 jobs wait or run, of at most 4") as caught:
            house.submit([asked(1)], OTHER)
        assert caught.value.status == 429
        assert sum(house.store.counts().values()) == 4
        engine.may_go.set()
        for job in jobs:
            assert house.wait(job.identifier, 60).state == "done"
        assert house.submit([asked(1)], CLIENT)


def test_origin_and_title_are_kept(house: House) -> None:
    origin = {"queries": "../../etc/passwd", "command": "mine"}
    request = replace(asked(1), title="Mine", origin=origin)
    job = done(house, request)
    assert job.title == "Mine"
    page = house.rendered(job.identifier, "html").whole().decode()
    assert "passwd" in page
    assert "root:" not in page
    house.delete(job.identifier, CLIENT)
