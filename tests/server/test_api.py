"""The HTTP API as its clients see it, on a server that runs."""

import json
import sys
import threading

import pytest

from support.serving import QUERY, SEQUENCES
from swsearch.server import api
from swsearch.server.models import (
    DatabasesAnswer,
    ErrorAnswer,
    FormatsAnswer,
    HealthAnswer,
    JobsAnswer,
    ReadyAnswer,
    SubmittedAnswer,
)

FASTA = {"Content-Type": "text/x-fasta"}


def submitted(served, path="/jobs?database=tiny&wait=30", body=QUERY, **headers):
    """Submit, and check what is answered."""
    reply = served.post(path, body, **(FASTA if isinstance(body, str) else {}) | headers)
    assert reply.status == 202, reply.body
    SubmittedAnswer.model_validate(reply.json)
    assert reply.headers["location"] == f"/api/v1/jobs/{reply.json['id']}"
    return reply.json


def refused(reply, status, *parts, option=None):
    """Check that a request was refused, and why."""
    assert reply.status == status, reply.body
    ErrorAnswer.model_validate(reply.json)
    for part in parts:
        assert part in reply.error["message"]
    if option is not None:
        assert reply.error["option"] == option
    return reply.error


def test_databases_are_told_with_counts_and_checksums(served):
    found = served.get("/databases").json
    DatabasesAnswer.model_validate(found)
    assert [each["name"] for each in found["databases"]] == ["tiny", "two"]
    tiny = served.get("/databases/tiny").json
    assert tiny == found["databases"][0]
    assert (tiny["n_subjects"], tiny["n_residues"]) == (4, sum(map(len, SEQUENCES.values())))
    assert len(tiny["sha256"]) == len(tiny["identity"]) == 64
    assert tiny["sources"][0]["path"] == "tiny.fasta"  # and no folder
    refused(served.get("/databases/nothing"), 404, "tiny, two")


def test_a_job_is_submitted_waited_for_read_and_removed(served):
    job = submitted(served)
    assert (job["state"], job["progress"], job["n_queries"], job["database"]) == ("done", 1.0, 1, "tiny")
    assert job["cells_done"] == job["cells"] > 0 and job["n_hits"] > 0
    assert job["submitted"] <= job["started"] <= job["ended"] < job["expires"]
    path = f"/jobs/{job['id']}"
    assert served.get(path).json == {name: value for name, value in job.items() if name != "jobs"}
    assert served.get(f"{path}/queries").body == QUERY.encode()
    table = served.get(f"{path}/results?format=6&columns=qseqid,sseqid,score").body.decode()
    assert table.splitlines()[0].split("\t")[:2] == ["query", "alpha"]
    assert json.loads(served.get(f"{path}/results").body)["BlastOutput2"]
    assert served.get(f"{path}/subjects?hits=1").body.decode() == f">alpha protein alpha\n{SEQUENCES['alpha']}\n"
    listed = served.get("/jobs?limit=1000").json
    JobsAnswer.model_validate(listed)
    assert job["id"] in [each["id"] for each in listed["jobs"]]
    assert served.ask("DELETE", f"/api/v1{path}").status == 204
    assert served.get(path).status in (404, 410)


def test_a_job_that_is_removed_while_it_is_read_has_never_failed(served, server_settings):
    job = submitted(served, body={"database": "tiny", "queries": QUERY, "outputs": ["6"]}, path="/jobs?wait=30")
    path = f"/jobs/{job['id']}"
    for number in range(150):  # takes as long to remove as what a large job found
        folder = server_settings.folder / "jobs" / job["id"] / f"more-{number}"
        folder.mkdir()
        for name in map(str, range(20)):
            (folder / name).touch()
    removing = threading.Thread(target=served.ask, args=("DELETE", f"/api/v1{path}"))
    removing.start()
    statuses, reads = set(), ("results?format=6", "outputs/0", "subjects?hits=1")
    while removing.is_alive():
        statuses |= {served.get(f"{path}/{what}").status for what in reads}
    removing.join()
    assert statuses <= {200, 404}


def test_several_databases_make_a_group(served):
    job = submitted(served, "/jobs?database=tiny&database=two&wait=30")
    assert len(job["jobs"]) == 2
    second = served.get(f"/jobs/{job['jobs'][1]}?wait=30").json
    assert (second["database"], second["group"], second["state"]) == ("two", job["id"], "done")
    stated = {"database": ["two", "tiny"], "queries": QUERY}
    assert len(submitted(served, "/jobs", stated)["jobs"]) == 2


def test_json_text_and_forms_ask_for_the_same(served):
    parts = "\r\n".join(
        line
        for name, value in (("database", "tiny"), ("max_hits", "1"), ("queries", QUERY))
        for line in ("--limit", f'Content-Disposition: form-data; name="{name}"', "", value)
    )
    file = parts.replace('name="queries"', 'name="queries"; filename="q.fasta"')
    curl = {"Content-Type": "application/x-www-form-urlencoded"}
    form = {"Content-Type": "multipart/form-data; boundary=limit"}
    asked = [
        ("?", {"database": "tiny", "queries": QUERY, "options": {"max_hits": 1}}, {}),
        ("?database=tiny&max_hits=1", QUERY, FASTA),
        ("?database=tiny&max_hits=1", QUERY, curl),
        ("?", f"{parts}\r\n--limit--\r\n", form),
        ("?", f"{file}\r\n--limit--\r\n", form),
        ("?", f"database=tiny&max_hits=1&queries=%3Equery%0A{SEQUENCES['alpha']}", curl),
    ]
    tables, before = set(), [each["id"] for each in served.get("/jobs?limit=1000").json["jobs"]]
    for query, body, headers in asked:
        reply = served.post(f"/search{query}", body, **headers)
        assert reply.status == 200, reply.body
        assert reply.headers["content-disposition"].startswith('attachment; filename="')
        assert int(reply.headers["content-length"]) == len(reply.body)
        tables.add(json.dumps(reply.json["BlastOutput2"][0]["report"]["results"]["search"]["hits"]))
    assert len(tables) == 1
    assert [each["id"] for each in served.get("/jobs?limit=1000").json["jobs"]] == before  # nothing is stored


def test_formats_are_told_without_the_package_that_some_need(monkeypatch):
    whole = api._formats.__wrapped__()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert api._formats.__wrapped__() == whole


def test_what_there_is_is_told(served):
    FormatsAnswer.model_validate(served.get("/formats").json)
    HealthAnswer.model_validate(served.get("/health").json)
    assert served.get("/health").json["ok"]
    ReadyAnswer.model_validate(served.get("/ready").json)
    for path in ("/api/v1/ready", "/api/v1/health"):
        reply = served.ask("HEAD", path)
        assert (reply.status, reply.body) == (200, b"")


@pytest.mark.parametrize(
    ("path", "option"),
    [
        ("/jobs?database=tiny&max_hit=1", "max_hit"),
        ("/jobs?database=tiny&max_hits=many", "max_hits"),
        ("/jobs?database=tiny&max_hits=1&max_hits=2", "max_hits"),
        ("/jobs?database=tiny&evalue=nan", "evalue"),
        ("/jobs?database=tiny&allow_dna=perhaps", "allow_dna"),
        ("/jobs?database=tiny&wait=61", "wait"),
        ("/jobs?database=tiny&wait=soon", "wait"),
        ("/jobs?database=tiny&database=tiny", "database"),
        ("/jobs", "database"),
        ("/search?database=tiny&format=nothing", "outfmt"),
        ("/search?database=tiny&format=6&columns=nothing", "outfmt"),
        ("/search?database=tiny&format=6%20qseqid", "format"),
    ],
)
def test_what_is_wrong_with_an_option_is_told(served, path, option):
    refused(served.post(path, QUERY, **FASTA), 422, option=option)


@pytest.mark.parametrize("path", ["/jobs", "/search"])
def test_a_wrong_value_is_told_in_the_same_words_in_a_form_and_in_an_address(served, path):
    asked, told = "database=tiny&max_hits=many", "max_hits: got 'many', expected a whole number"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    refused(served.post(f"{path}?{asked}", QUERY, **FASTA), 422, told, option="max_hits")
    refused(served.post(path, f"{asked}&queries=%3Eq%0AMKV", **form), 422, told, option="max_hits")


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"{", 400, "no JSON"),
        (b"\xff", 400, "no JSON"),
        (b'{"queries": NaN}', 400, "no JSON"),
        (b'{"queries": "A", "queries": "B"}', 422, "database"),  # the last one counts
        (b'{"title": "\\ud800"}', 400, "no JSON"),
        (b"[" * 100_000, 400, "no JSON"),
        (b"[" + b"[]," * 600_000 + b"0]", 413, "very many values"),
        (b"[" + b'"",' * 1_100_000 + b"0]", 413, "very many values"),
        (b'{"title": "' + b'{,\\"\\\\' * 600_000 + b'"}', 422, "database"),
        (b"1" * 5000, 400, "no JSON"),
        (b"[]", 422, "expected names"),
        (b"{}", 422, "database"),
        (b'{"database": [], "queries": ">a\\nMKV"}', 422, "name of a database"),
        (b'{"database": "tiny", "queries": ">a\\nMKV", "option": {}}', 422, "did you mean options"),
        (b'{"database": "tiny", "queries": ">a\\nMKV", "options": {"max_hits": "1"}}', 422, "max_hits"),
    ],
)
def test_what_is_wrong_with_json_is_told(served, body, status, told):
    for path in ("/jobs", "/search"):
        refused(served.post(path, body, **{"Content-Type": "application/json"}), status, told)


def test_bodies_of_other_kinds_are_refused(served):
    refused(served.post("/jobs?database=tiny", QUERY, **{"Content-Type": "image/png"}), 415, "image/png")
    packed = FASTA | {"Content-Encoding": "gzip"}
    refused(served.post("/jobs?database=tiny", QUERY, **packed), 415, "compressed")
    refused(served.post("/jobs", "--x", **{"Content-Type": "multipart/form-data"}), 400, "form")
    refused(served.post("/jobs?database=tiny", None), 422)


def test_what_is_not_there_is_told(served):
    refused(served.get("/jobs/nothing"), 404, "'nothing'")
    refused(served.get("/jobs/AAAAAAAAAAAAAAAAAAAA"), 404)
    refused(served.get("/nothing"), 404, "'/api/v1/nothing'")
    refused(served.ask("PUT", "/api/v1/jobs"), 405, "PUT")
    assert served.ask("PUT", "/api/v1/jobs").headers["allow"] in ("GET", "POST")
    assert served.ask("PUT", "/api/v1/jobs/AAAAAAAAAAAAAAAAAAAA").headers["allow"] in ("GET", "DELETE")
    refused(served.get("/jobs?state=lost"), 422, option="state")
    refused(served.get("/jobs?limit=0"), 422, option="limit")
    refused(served.get("/health?x=1"), 422, option="x")


def test_results_are_refused_where_there_are_none(served):
    job = submitted(served)
    path = f"/jobs/{job['id']}"
    refused(served.get(f"{path}/results?format=nothing"), 422)
    refused(served.get(f"{path}/results?queries=2-1"), 422, option="queries")
    refused(served.get(f"{path}/results?queries=0"), 422, option="queries")
    refused(served.get(f"{path}/subjects"), 422, option="hits")
    refused(served.get(f"{path}/subjects?hits=1-100000000"), 422, option="hits")
    refused(served.get(f"{path}/subjects?hits=500"), 422)
    refused(served.get(f"{path}/subjects?hits=1&query=2"), 422)


def test_only_who_submitted_a_job_may_end_it(served):
    cookie = {"Cookie": "swsearch=" + "a" * 32}
    job = submitted(served, **cookie)
    assert job["is_mine"]
    assert not served.get(f"/jobs/{job['id']}").json["is_mine"]
    refused(served.post(f"/jobs/{job['id']}/cancel"), 403)
    refused(served.ask("DELETE", f"/api/v1/jobs/{job['id']}"), 403)
    assert served.post(f"/jobs/{job['id']}/cancel", **cookie).json["state"] == "done"
