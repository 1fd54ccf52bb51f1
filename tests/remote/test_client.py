"""The client with a real server, and with servers that do what they should not."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swsearch
from support.scripted_server import Canned, Script, scripted
from support.serving import Served, serving, until
from support.small_searches import PARENT, QUERIES, build, searched, transferred, written
from swsearch.db import Database
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.errors import InputError, ServerError
from swsearch.pipeline.arguments import options_of
from swsearch.pipeline.prefetch import Stopped
from swsearch.remote import service
from swsearch.remote.asking import read_to_send, request_for
from swsearch.results import SearchResult
from swsearch.run_info import Origin
from swsearch.scoring import Scoring
from swsearch.server.settings import ServerLimits, ServerSettings

TOKEN = "0123456789abcdef"

JOB = "ABCDEFGHJKLMNPQRSTUV"

ASYMMETRIC = Scoring(("ARNDCQEGHILKMFPSTWYV", np.random.default_rng(3).integers(-6, 9, (20, 20))), 9, 2)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="module")
def served(database: Path) -> Iterator[Served]:
    limits = ServerLimits(hits=600)
    with serving(
        ServerSettings((database,), database.parent / "state", limits, "cpu", 1, workers=1, tokens=frozenset([TOKEN]))
    ) as found:
        yield found


@pytest.fixture
def client(served: Served) -> Iterator[swsearch.Client]:
    with swsearch.Client(f"{served.url}/db", token=TOKEN) as made:
        yield made


def alignments(result: SearchResult) -> list[tuple[Any, ...]]:
    return [(hsp.score, hsp.bit_score, hsp.evalue, str(hsp.pair.cigar_string)) for hit in result for hsp in hit.hsps]


def same(there: SearchResult, here: SearchResult) -> bool:
    assert [hit.cigar for hit in there] == [hit.cigar for hit in here]
    assert (there.to_columns(), there.statistics, there.asked) == (here.to_columns(), here.statistics, here.asked)
    return alignments(there) == alignments(here)


@pytest.mark.parametrize(
    ("queries", "options"),
    [
        ([("q", PARENT), "MKTAYIAKQR"], {"max_hits": 5}),
        (PARENT, {"query_loc": (5, 60)}),
        ({"q": PARENT}, {"scoring": ASYMMETRIC, "evalue": 1e5, "distribution": True}),
        (PARENT, {"max_alignments": 3, "mode": "local", "include_ids": ["s2", "s6"]}),
        pytest.param(PARENT, {"mode": "global", "statistics": "none"}, marks=pytest.mark.exhaustive),
        pytest.param([("q", PARENT)], {"iterations": 2}, marks=pytest.mark.exhaustive),
    ],
)
def test_results_are_those_of_a_search_here(
    queries: Any, options: dict[str, Any], client: swsearch.Client, database: Path
) -> None:
    scored: list[int] = []
    there = list(client.search(queries, progress=scored.append, threads=1, **options))
    here = list(swsearch.search(queries, database, engine="cpu", threads=1, **options))
    assert len(there) == len(here)
    assert all(same(a, b) and a.distribution == b.distribution for a, b in zip(there, here, strict=True))
    assert sum(scored) > 0
    assert client.jobs() == []  # what was taken is not left there


def test_what_is_written_has_the_bytes_of_a_search_here(client: swsearch.Client, database: Path) -> None:
    kinds = ["6", "15", "sam", "arrow"]
    with Database.open(database) as opened:
        opened.name = database.name
        expected = written(swsearch.search(io.BytesIO(QUERIES), opened, engine="cpu", threads=1), kinds)
    assert written(client.search(io.BytesIO(QUERIES)), kinds) == expected


def test_a_job_stays_until_it_is_forgotten(client: swsearch.Client, served: Served, tmp_path: Path) -> None:
    job = client.submit([("q", PARENT)], title="mine", max_hits=4)
    assert job.wait().state == "done"
    assert client.job(job.identifier).stated["title"] == "mine"
    (found,) = job.results()
    (again,) = client.job(job.identifier).results(threads=1)
    assert same(found, again)
    assert [hit.subject_id for hit in found] == ["s0", "s1", "s2", "s3"] or len(found) == 4
    job.write(tmp_path / "hits.tsv")
    job.write(tmp_path / "hits.txt", "6 qseqid score")
    assert (tmp_path / "hits.txt").read_text().splitlines() == [f"q\t{hit.score}" for hit in found]
    assert [line.split("\t")[1] for line in (tmp_path / "hits.tsv").read_text().splitlines()] == [
        hit.subject_id for hit in found
    ]
    assert [each.identifier for each in client.jobs()] == [job.identifier]
    with swsearch.Client(served.url, token=TOKEN) as other, pytest.raises(InputError):
        other.job(job.identifier).write(tmp_path / "x.a3m", "xml")
    job.forget()
    with pytest.raises(InputError, match=job.identifier):
        job.state  # noqa: B018
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hits.tsv", "hits.txt"]


def test_a_search_that_is_not_wanted_any_more_is_stopped(client: swsearch.Client, database: Path) -> None:
    client.search(PARENT).close()  # nothing was asked for
    assert client.jobs() == []
    job = client.submit([(f"q{k}", PARENT * 40) for k in range(200)], mode="global")
    job.cancel()
    assert job.state == "cancelled"
    with pytest.raises((InputError, ServerError), match="cancelled"):
        job.wait()
    job.forget()


def test_what_the_server_refuses_is_told_in_its_words(
    client: swsearch.Client, served: Served, database: Path
) -> None:
    with pytest.raises(InputError, match="expected at most 600, this server's limit"):
        next(client.search(PARENT, max_hits=601))
    with pytest.raises(InputError, match=r"include_ids: 1 of 1 identifiers not found in db.h5: 'nobody'"):
        next(client.search(PARENT, include_ids=["nobody"]))
    with pytest.raises(InputError, match=r"got database 'nope', expected one of db$"):
        client.search(PARENT, "nope")
    with pytest.raises(InputError, match="SWSEARCH_TOKEN"):
        swsearch.Client(served.url, token="").databases()
    with pytest.raises(InputError, match=r"^identifier: got '../x'"):
        client.job("../x")
    with pytest.raises(TypeError, match="unexpected keyword argument 'engine'"):
        client.search(PARENT, engine="gpu")  # type: ignore[call-arg]
    assert client.jobs() == []


def test_the_token_comes_from_the_environment(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWSEARCH_TOKEN", TOKEN)
    assert [each["name"] for each in swsearch.Client(served.url).databases()] == ["db"]


# servers that do what they should not


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    monkeypatch.setattr(service, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(service, "OUT_OF_REACH_SECONDS", 30.0)
    with scripted() as found:
        found.tell("GET /databases", Canned({"databases": [{"name": "db"}]}))
        yield found


def stated(state: str, **more: Any) -> Canned:
    return Canned({"id": JOB, "state": state, "cells": 10, "cells_done": 5, "problem": None, **more})


def asked_for(url: str) -> list[SearchResult]:
    with swsearch.Client(url) as client:
        return list(client.search(io.BytesIO(QUERIES), threads=1))


def prepared(script: Script, sent: bytes) -> None:
    """Answer as a server does."""
    script.tell("POST /jobs", Canned({"id": JOB, "state": "queued"}, 202))
    script.tell(f"GET /jobs/{JOB}", stated("running"), stated("done"))
    script.tell(f"GET /jobs/{JOB}/results", Canned(sent))
    script.tell(f"DELETE /jobs/{JOB}", Canned(b"", 204))


@pytest.fixture(scope="module")
def good(database: Path) -> bytes:
    """What a server sends for the search of `asked_for`."""
    request = request_for("db", read_to_send(io.BytesIO(QUERIES), options_of()), options_of(), Origin())
    with Database.open(database) as opened, CpuEngine(threads=1) as engine:
        return transferred(searched(request, opened, engine), request)


def test_results_that_break_off_are_asked_for_again(script: Script, good: bytes) -> None:
    prepared(script, good)
    whole = asked_for(script.url)
    script.tell(f"GET /jobs/{JOB}/results", Canned(good, cut=len(good) - 5), Canned(good, cut=0), Canned(good))
    again = asked_for(script.url)
    assert [each.to_columns() for each in again] == [each.to_columns() for each in whole]
    assert script.count(f"DELETE /jobs/{JOB}") == 2
    script.tell(f"GET /jobs/{JOB}/results", Canned(good, cut=len(good) - 5))
    with pytest.raises(ServerError, match=r"the connection broke|incomplete"):
        asked_for(script.url)
    assert script.count(f"DELETE /jobs/{JOB}") == 3


def test_a_busy_server_is_asked_again_and_a_search_is_sent_once(script: Script, good: bytes) -> None:
    prepared(script, good)
    busy = Canned({"error": {"code": "too_many", "message": "1,000 jobs wait", "retry_after": 0}}, 429)
    script.tell("POST /jobs", busy, busy, Canned({"id": JOB, "state": "queued"}, 202))
    assert len(asked_for(script.url)) == 4
    assert script.count("POST /jobs") == 3
    script.tell("POST /jobs", Canned({"id": JOB, "state": "queued"}, 202, cut=3))
    with pytest.raises(ServerError, match="the server may have accepted the search"):
        asked_for(script.url)
    assert script.count("POST /jobs") == 4


def test_a_server_that_is_started_again_is_waited_for(script: Script, good: bytes) -> None:
    prepared(script, good)
    script.tell(
        f"GET /jobs/{JOB}",
        stated("running"),
        Canned(b"", cut=0, headers={"Content-Length": "5"}),
        Canned({"error": {"code": "unavailable", "message": "ending", "retry_after": 0}}, 503),
        stated("queued"),
        stated("done"),
    )
    assert len(asked_for(script.url)) == 4


def test_a_search_that_is_interrupted_is_removed(script: Script, good: bytes) -> None:
    prepared(script, good)

    def interrupt(cells: int) -> None:
        raise KeyboardInterrupt

    with swsearch.Client(script.url) as client:
        with pytest.raises(KeyboardInterrupt):
            next(client.search(io.BytesIO(QUERIES), progress=interrupt))
        assert script.count(f"DELETE /jobs/{JOB}") == 1
        results = client.search(io.BytesIO(QUERIES))
        script.tell(f"GET /jobs/{JOB}", stated("running"))
        stopper = threading.Thread(target=lambda: (until(lambda: script.count("POST /jobs") == 2), results.stop()))
        stopper.start()
        with pytest.raises(Stopped):
            next(results)
        stopper.join()
    assert script.count(f"DELETE /jobs/{JOB}") == 2


@pytest.mark.parametrize(
    ("state", "kind", "message"),
    [
        (stated("failed", problem={"code": "unavailable", "message": "the device is gone"}), ServerError, "is gone"),
        (stated("failed", problem={"code": "too_large", "message": "longer than 60 s"}), InputError, "longer than"),
        (stated("cancelled"), ServerError, "is cancelled, expected done"),
        (stated("odd"), ServerError, "install the same version on both sides"),
        (Canned([]), ServerError, "expected a swsearch server"),
        (Canned({"error": {"code": "expired", "message": "it is gone"}}, 410), InputError, "^it is gone$"),
        (Canned({"error": {"code": "failed", "message": "its log says more"}}, 500), ServerError, "log says more"),
        (Canned({"error": "x"}, 500), ServerError, "without a reason"),
    ],
)
def test_a_job_that_cannot_be_is_told(state: Canned, kind: type, message: str, script: Script, good: bytes) -> None:
    prepared(script, good)
    script.tell(f"GET /jobs/{JOB}", state)
    with pytest.raises(kind, match=message):
        asked_for(script.url)
    assert script.count(f"DELETE /jobs/{JOB}") == 1


@pytest.mark.parametrize(
    ("canned", "message"),
    [
        (Canned(b"<!DOCTYPE html>"), "got status 200 and application/octet"),
        (Canned(b"", 302, {"Location": "https://else\x1b[0m/"}), r"redirects to https://else\\x1b\[0m/; use"),
        (Canned({"databases": {}}), "lists databases in an unknown format"),
        (Canned(b"{" * 100_000), "expected a swsearch server"),
        (Canned({}, 404), "status 404 without a reason"),
    ],
)
def test_what_is_no_server_is_told_from_one(canned: Canned, message: str, script: Script) -> None:
    script.tell("GET /databases", canned)
    with pytest.raises(ServerError, match=message):
        swsearch.Client(script.url).databases()


def test_a_server_behind_a_proxy_is_found_without_a_database(script: Script) -> None:
    script.answers["GET /lab/api/v1/databases"] = [Canned({"databases": [{"name": "a"}, {"name": "b"}]})]
    script.answers.pop("GET /api/v1/databases")
    with swsearch.Client(f"{script.url}/lab") as client:
        assert len(client.databases()) == 2
        with pytest.raises(InputError, match=r"/lab: has databases a, b; name one, such as http://.*/lab/a$"):
            client.search(PARENT)


def test_nothing_there_is_told_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        port = taken.getsockname()[1]
        for url, said in (
            (f"http://127.0.0.1:{port}", "refused"),
            ("http://no-such-host.invalid", "host not found"),
        ):
            with pytest.raises(ServerError, match=said):
                swsearch.Client(url).databases()


def test_tls_where_there_is_none_is_told(script: Script) -> None:
    with pytest.raises(ServerError, match=r"got no TLS .*, expected https; try http:// in the address"):
        swsearch.Client(script.url.replace("http:", "https:")).databases()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            with listening.accept()[0] as found:
                found.recv(1 << 16)
                found.sendall(b"\x15\x03\x01\x00\x02\x02\x50\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ServerError, match="got no HTTP answer; try https://"):
            swsearch.Client(f"http://127.0.0.1:{listening.getsockname()[1]}").databases()
        thread.join()


def test_a_proxy_of_the_environment_is_asked(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    script.answers["GET http://lab.invalid:8080/api/v1/databases"] = script.answers["GET /api/v1/databases"]
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("http_proxy", script.url.replace("http://", "http://me:pass@"))
    assert swsearch.Client("http://lab.invalid:8080", token="t").databases() == [{"name": "db"}]
    _, headers, _ = script.asked[-1]
    assert (headers["Host"], headers["Authorization"]) == ("lab.invalid:8080", "Bearer t")
    assert headers["Proxy-Authorization"].startswith("Basic ")


def test_what_can_be_no_argument_is_refused() -> None:
    with pytest.raises(InputError, match=r"^timeout: got 0"):
        swsearch.Client("http://host", timeout=0)
    with pytest.raises(InputError, match=r"^token: got a string|^token: got other characters"):
        swsearch.Client("http://host", token="a\nb")
