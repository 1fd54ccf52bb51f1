"""The client with a real server, and with servers that do what they should not."""

from __future__ import annotations

import io
import socket
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from Bio.Data import CodonTable
from Bio.Seq import Seq

import swsearch
from support.forked import in_fork, refused
from support.scripted_server import Canned, Script, scripted
from support.serving import Served, serving
from support.small_searches import PARENT, build
from swsearch.client import connection
from swsearch.client.search_request import make_request
from swsearch.errors import InputError, ServerError
from swsearch.pipeline.options import make_search_options
from swsearch.profiles.readers import read_profiles
from swsearch.results.result import to_arrow
from swsearch.run_info import Origin
from swsearch.scoring import Scoring
from swsearch.server.settings import ServerLimits, ServerSettings

TOKEN = "0123456789abcdef"

AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}

JOB = "ABCDEFGHJKLMNPQRSTUV"

FORWARD = {residue: codon for codon, residue in CodonTable.unambiguous_dna_by_id[1].forward_table.items()}

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


def rows(table: Any) -> list[dict[str, Any]]:
    return table.to_pylist()


@pytest.mark.parametrize(
    ("queries", "options"),
    [
        ([("q", PARENT), "MKTAYIAKQR"], {"max_hits": 5}),
        (PARENT, {"query_loc": (5, 60)}),
        ({"q": PARENT}, {"scoring": ASYMMETRIC, "evalue": 1e5}),
        (PARENT, {"max_alignments": 3, "mode": "local", "include_ids": ["s2", "s6"]}),
        pytest.param(PARENT, {"mode": "global", "statistics": "none"}, marks=pytest.mark.exhaustive),
        pytest.param([("q", PARENT)], {"iterations": 2}, marks=pytest.mark.exhaustive),
    ],
)
def test_hits_and_tables_are_those_of_a_search_here(
    queries: Any, options: dict[str, Any], client: swsearch.Client, database: Path
) -> None:
    scored: list[int] = []
    here = list(swsearch.search(queries, database, engine="cpu", threads=1, **options))
    with client.search(queries, progress=scored.append, **options) as job:
        found = list(job)
        table, frame = job.to_arrow(), job.to_pandas()
        assert job.to_polars().height == len(frame) == table.num_rows
    assert sum(scored) > 0
    assert client.jobs() == []  # the job was removed at the end of the block
    assert [result.query_id for result in found] == [result.query_id for result in here]
    wanted = to_arrow(here)
    names = [name for name in wanted.column_names if name != "iteration"]
    assert rows(table.select(names)) == rows(wanted.select(names))
    for there, expected in zip(found, here, strict=True):
        assert len(there.hits) == len(expected.hits)
        for hit, same in zip(there.hits, expected.hits, strict=True):
            facts = (hit.subject_id, hit.score, hit.evalue, hit.cigar, hit.query_range, hit.identities)
            assert facts == (same.subject_id, same.score, same.evalue, same.cigar, same.query_range, same.identities)
            pairs = [(hsp.pair.cigar_string, hsp.pair.rows()) for hsp in hit.hsps]
            assert pairs == [(hsp.pair.cigar_string, hsp.pair.rows()) for hsp in same.hsps]
            shift = [[0], [hit.query_start - same.pair.query_start]]  # there a range of the query is all of it
            assert (hit.alignment.coordinates == same.alignment.coordinates + shift).all()


def test_hits_of_dna_lie_where_those_of_a_search_here_do(database: Path, tmp_path: Path) -> None:
    gene = "".join(FORWARD[letter] for letter in PARENT)
    for queries in ([("q", f"AC{gene}ACGT")], [("q", str(Seq(f"AC{gene}ACGT").reverse_complement()))]):
        (here,) = swsearch.search(queries, database, engine="cpu", translate=True, max_hits=3)
        with serving(ServerSettings((database,), tmp_path / "dna", engine="cpu", threads=1, workers=1)) as served:
            (found,) = swsearch.Client(served.url).search(queries, translate=True, max_hits=3)
        for hit, same in zip(found.hits, here.hits, strict=True):
            assert (hit.query_range, hit.subject_range) == (same.query_range, same.subject_range)
            assert hit.query_frame.number == same.query_frame.number
            assert hit.query_frame.dna_span(0, len(hit.pair.query)) == same.query_range
            assert hit.pair.rows() == same.pair.rows()


def test_pictures_are_drawn_of_hits(client: swsearch.Client) -> None:
    with client.search([("q", PARENT)], max_hits=4) as job:
        (result,) = job
    assert len(result.plot_coverage().patches) == 4
    assert result.hits[0].plot_dots().get_xlabel() == "q (residue)"
    with pytest.raises(AttributeError, match="this hit has no 'colour', only subject_id"):
        result.hits[0].colour  # noqa: B018


def test_a_job_stays_until_it_is_forgotten(client: swsearch.Client, served: Served, tmp_path: Path) -> None:
    outputs = ["6", "6 qseqid score", "profile json", "msa a3m"]
    job = client.submit([("q", PARENT)], title="mine", max_hits=4, outputs=outputs)
    assert job.wait().state == "done"
    assert client.job(job.identifier).data["title"] == "mine"
    (found,) = client.job(job.identifier)
    assert len(found.hits) == 4
    job.write(tmp_path / "hits.tsv")
    job.write(tmp_path / "hits.txt", "6 qseqid score")
    job.write(tmp_path / "others.txt", "6 qseqid evalue")
    assert (tmp_path / "hits.txt").read_text().splitlines() == [f"q\t{hit.score}" for hit in found.hits]
    assert (tmp_path / "others.txt").read_text().count("\n") == 4
    assert [line.split("\t")[1] for line in (tmp_path / "hits.tsv").read_text().splitlines()] == [
        hit.subject_id for hit in found.hits
    ]
    saved = tmp_path / "next.json"
    saved.write_bytes(b"".join(job.download("profile json")))
    assert [profile.identifier for profile in read_profiles(saved)] == ["q"]
    with zipfile.ZipFile(io.BytesIO(b"".join(job.download("msa a3m")))) as archive:
        assert archive.namelist() == ["q.a3m"]
    path = f"/jobs/{job.identifier}/outputs"
    whole = served.get(f"{path}/1", **AUTHORIZED).body
    for asked, status, body in (
        ("bytes=2-5", 206, whole[2:6]), ("bytes=3-", 206, whole[3:]), (f"bytes={len(whole)}-", 200, whole),
        ("bytes=0-1,3-4", 200, whole), ("junk", 200, whole),
    ):  # fmt: skip
        reply = served.get(f"{path}/1", Range=asked, **AUTHORIZED)
        assert (reply.status, reply.body) == (status, body), asked
    assert served.get(f"{path}/4", **AUTHORIZED).json["error"]["message"].endswith("no output 4, it has 4")
    assert [each.identifier for each in client.jobs()] == [job.identifier]
    with swsearch.Client(served.url, token=TOKEN) as other, pytest.raises(InputError):
        other.job(job.identifier).write(tmp_path / "x.a3m", "xml")
    job.delete()
    with pytest.raises(InputError, match=job.identifier):
        job.state  # noqa: B018
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hits.tsv", "hits.txt", "next.json", "others.txt"]


def test_a_request_that_is_repeated_makes_one_job(client: swsearch.Client) -> None:
    request = make_request("db", PARENT, make_search_options(), Origin(), outputs=["15"])
    later = make_request("db", PARENT, make_search_options(), Origin(), outputs=["15"])
    first = client.submit_request(request, "a key")
    assert client.submit_request(later, "a key").identifier == first.identifier
    with pytest.raises(InputError, match=r"^Idempotency-Key: got 'a key' again for another search"):
        client.submit_request(replace(request, outputs=["6"]), "a key")
    assert client.submit_request(request).identifier != first.identifier
    for job in client.jobs():
        job.delete()
    assert client.submit_request(request, "a key").identifier != first.identifier
    client.jobs()[0].delete()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"outputs": ["15", "nonsense"]}, "^outfmt: got 'nonsense'"),
        ({"outputs": ["a3m"]}, "^--outfmt a3m: got 2 queries, expected one"),
        ({"outputs": ["profile hhm"]}, r"^profile\.hhm: got 2 profiles, expected one in a file of HH-suite"),
        ({"outputs": ["6"] * 21}, "^outputs: got .*, expected a list of at most 20 formats"),
        ({"outputs": "6"}, "^outputs: got '6', expected a list"),
        ({"outputs": ["6 " + "qseqid " * 300]}, "^outputs: got .*, expected a text of at most 2,000 characters"),
        ({"outputs": ["15"], "header": True}, "^--header: got --outfmt 15, expected"),
        ({"header": "yes"}, "^header: got 'yes', expected true or false"),
    ],
)
def test_outputs_that_cannot_be_are_refused(more: dict[str, Any], message: str, client: swsearch.Client) -> None:
    queries = [("a", PARENT), ("b", PARENT)]
    with pytest.raises(InputError, match=message):
        client.submit_request(make_request("db", queries, make_search_options(), Origin(), **more))
    assert client.jobs() == []


def test_a_search_that_is_not_wanted_any_more_is_stopped(client: swsearch.Client) -> None:
    job = client.submit([(f"q{k}", PARENT * 40) for k in range(200)], mode="global")
    job.cancel()
    assert job.state == "cancelled"
    with pytest.raises((InputError, ServerError), match="cancelled"):
        job.wait()
    job.delete()


def test_what_the_server_refuses_is_told_in_its_words(client: swsearch.Client, served: Served) -> None:
    with pytest.raises(InputError, match="expected at most 600, this server's limit"):
        client.search(PARENT, max_hits=601)
    with pytest.raises(InputError, match=r"include_ids: 1 of 1 identifiers not found in db.h5: 'nobody'"):
        client.search(PARENT, include_ids=["nobody"])
    with pytest.raises(InputError, match=r"got database 'nope', expected one of db$"):
        client.search(PARENT, "nope")
    with pytest.raises(InputError, match="SWSEARCH_TOKEN"):
        swsearch.Client(served.url, token="").databases()
    with pytest.raises(InputError, match=r"^identifier: got '../x'"):
        client.job("../x")
    with pytest.raises(InputError, match='keep_profiles: got True, expected none for a server; add "profile json"'):
        client.submit(PARENT, keep_profiles=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'engine'"):
        client.search(PARENT, engine="gpu")  # type: ignore[call-arg]
    assert client.jobs() == []


def test_the_token_comes_from_the_environment(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWSEARCH_TOKEN", TOKEN)
    assert [each["name"] for each in swsearch.Client(served.url).databases()] == ["db"]


# servers that do what they should not


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    monkeypatch.setattr(connection, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(connection, "UNREACHABLE_SECONDS", 30.0)
    with scripted() as found:
        found.tell("GET /databases", Canned({"databases": [{"name": "db"}]}))
        yield found


def stated(state: str, **more: Any) -> Canned:
    return Canned({
        "id": JOB, "state": state, "cells": 10, "cells_done": 5, "problem": None, "outputs": ["15"], **more
    })  # fmt: skip


SENT = b"some results" * 100_000


def asked_for(url: str) -> bytes:
    with swsearch.Client(url) as client, client.search(PARENT, outputs=["15"]) as job:
        return b"".join(job.download("15"))


@pytest.fixture(autouse=True)
def prepared(request: pytest.FixtureRequest) -> None:
    """Let the script answer as a server does."""
    if "script" not in request.fixturenames:
        return
    script = request.getfixturevalue("script")
    script.tell("POST /jobs", Canned({"id": JOB, "state": "queued"}, 202))
    script.tell(f"GET /jobs/{JOB}", stated("running"), stated("done"))
    script.tell(f"GET /jobs/{JOB}/outputs/0", Canned(SENT))
    script.tell(f"DELETE /jobs/{JOB}", Canned(b"", 204))


@pytest.mark.parametrize("takes_range", [True, False])
def test_results_that_break_off_are_asked_for_again(script: Script, takes_range: bool) -> None:
    rest = Canned(SENT[100:], 206) if takes_range else Canned(SENT)
    script.tell(f"GET /jobs/{JOB}/outputs/0", Canned(SENT, cut=0), Canned(SENT, cut=100), rest)
    assert asked_for(script.url) == SENT
    asked = [headers.get("Range") for what, headers, _ in script.asked if what.endswith("outputs/0")]
    assert asked == [None, None, "bytes=100-"]
    assert script.count(f"DELETE /jobs/{JOB}") == 1


def test_results_that_never_come_whole_are_an_error(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "UNREACHABLE_SECONDS", 0.1)
    script.tell(f"GET /jobs/{JOB}/outputs/0", Canned(SENT, cut=0))
    with pytest.raises(ServerError, match=r"cannot be reached: .*; check the address, and that the server runs"):
        asked_for(script.url)
    assert script.count(f"DELETE /jobs/{JOB}") == 1


def test_a_submission_is_repeated_with_its_key(script: Script) -> None:
    busy = Canned({"error": {"code": "too_many", "message": "1,000 jobs wait", "retry_after": 0}}, 429)
    taken = Canned({"id": JOB, "state": "queued"}, 202)
    script.tell("POST /jobs", busy, Canned({"id": JOB, "state": "queued"}, 202, cut=3), taken)
    assert asked_for(script.url) == SENT
    keys = {headers["Idempotency-Key"] for what, headers, _ in script.asked if what.startswith("POST")}
    assert (len(keys), script.count("POST /jobs")) == (1, 3)


def test_a_server_that_is_started_again_is_waited_for(script: Script) -> None:
    script.tell(
        f"GET /jobs/{JOB}",
        stated("running"),
        Canned(b"", cut=0, headers={"Content-Length": "5"}),
        Canned({"error": {"code": "unavailable", "message": "ending", "retry_after": 0}}, 503),
        stated("queued"),
        stated("done"),
    )
    notices: list[str] = []
    with swsearch.Client(script.url, notice=notices.append) as client, client.search(PARENT) as job:
        assert b"".join(job.download("15")) == SENT
    assert len(notices) == 2
    assert all(each.endswith("; trying again") for each in notices)


def test_results_that_end_in_the_middle_are_an_error(script: Script) -> None:
    script.tell(f"GET /jobs/{JOB}/results", Canned(b'{"query": '))
    with swsearch.Client(script.url) as client, client.search(PARENT) as job, pytest.raises(ServerError) as caught:
        list(job)
    assert str(caught.value).endswith("the results end in the middle of a line; try again")
    script.tell(f"GET /jobs/{JOB}/results", Canned(b'{"query": 1}\n'))
    with swsearch.Client(script.url) as client, pytest.raises(ServerError, match="describes hits in an unknown"):
        list(client.job(JOB))


def test_a_closed_client_opens_again_and_an_open_download_is_of_its_process(script: Script) -> None:
    with swsearch.Client(script.url) as client:
        job = client.search(PARENT)
        pieces = job.download("15")
        first = next(pieces)
        assert in_fork(lambda: list(pieces)) == refused("this download")
        assert first + b"".join(pieces) == SENT
    assert job.state == "done"
    client.close()


def test_a_search_that_is_interrupted_is_removed(script: Script) -> None:
    def interrupt(cells: int) -> None:
        raise KeyboardInterrupt

    with swsearch.Client(script.url) as client, pytest.raises(KeyboardInterrupt):
        client.search(PARENT, progress=interrupt)
    assert script.count(f"DELETE /jobs/{JOB}") == 1


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
def test_a_job_that_cannot_be_is_told(state: Canned, kind: type, message: str, script: Script) -> None:
    script.tell(f"GET /jobs/{JOB}", state)
    with pytest.raises(kind, match=message):
        asked_for(script.url)
    assert script.count(f"DELETE /jobs/{JOB}") == 1


@pytest.mark.parametrize(
    ("canned", "message"),
    [
        (Canned(b"<!DOCTYPE html>"), "got status 200 and application/octet"),
        (Canned(b"", 302, {"Location": "https://else/x"}), "redirects to https://else/x; use that address"),
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
