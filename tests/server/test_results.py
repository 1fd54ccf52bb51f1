"""Results from a server: the bytes of ``swsearch search``, made while they are sent, without scoring again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.command_line import run
from support.samples import sample
from support.serving import Served, serving
from support.small_servers import asked, built, built_dna, settings
from swsearch import report
from swsearch.db import Database
from swsearch.errors import EngineError
from swsearch.server import jobs as jobs_module

N_QUERIES = 40

OPTIONS: list[dict[str, Any]] = [
    {},
    {
        "max_alignments": 3, "evalue": 100.0, "max_hits": 5, "min_identity": 20.0, "query_mask": "lower",
        "sort": "score",
    },
    {"statistics": "published", "max_hits": 3, "dbsize": 10**9, "matrix": "BLOSUM45"},
    {"mode": "global", "statistics": "none", "max_hits": 4},
    {"iterations": 2, "evalue": 100.0},
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("data")).parent


@pytest.fixture(scope="module")
def small(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(settings(folder / "small.h5", tmp_path_factory.mktemp("served"))) as made:
        yield made


def expected(folder: Path, body: dict[str, Any], keys: list[str], name: str = "small.h5") -> dict[str, bytes]:
    """Write results with the command line in the database's folder, and return the bytes by format."""
    (folder / "q.fa").write_text(body["queries"])
    outputs = [text for key in keys for text in ("--outfmt", key, "--output", f"out-{key}")]
    options = [(f"--{name.replace('_', '-')}", value) for name, value in body["options"].items()]
    options = [text for name, value in options for text in ((name,) if value is True else (name, str(value)))]
    ended = run("search", "q.fa", name, "--engine", "cpu", "--quiet", *options, *outputs, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    return {key: same(key, (folder / f"out-{key}").read_bytes()) for key in keys}


def same(key: str, content: bytes) -> bytes:
    """A report, of HTML without when, how long, and by which command."""
    if key != "html":
        return content
    found, count = re.subn(rb"<div><dt>(Begun|Seconds|Command)</dt><dd>[^<]*</dd></div>\n", b"", content)
    assert count == 3
    return found


def named(body: dict[str, Any], **more: Any) -> dict[str, Any]:
    return body | {"origin": {"queries": "q.fa"}, **more}


CASES = [(options, n_queries) for options in OPTIONS for n_queries in (1, 3)] + [({}, N_QUERIES)]


@pytest.mark.parametrize(("options", "n_queries"), sample(CASES, lambda case: case in (CASES[0], CASES[3])), ids=str)
def test_every_format_has_the_bytes_of_the_command_line(
    folder: Path, small: Served, options: dict[str, Any], n_queries: int
) -> None:
    keys = [kind.key for kind in report.OUTPUT_FORMATS if n_queries == 1 or not kind.writer.is_single_query]
    body = named(asked(n_queries, **options))
    wanted = expected(folder, body, keys)
    job = small.done(body | {"outputs": keys})
    for number, key in enumerate(keys):
        replies = [small.get(f"/jobs/{job['id']}/outputs/{number}"), small.results(job["id"], key)]
        if key in ("html", "15"):
            replies.append(small.search(body, key))
        for reply in replies:
            assert (reply.status, same(key, reply.body) == wanted[key]) == (200, True), key


@pytest.mark.parametrize("options", [{"max_alignments": 2}, {"statistics": "published", "translate": True}], ids=str)
def test_a_dna_database_has_the_bytes_of_the_command_line(tmp_path: Path, options: dict[str, Any]) -> None:
    database, program = built_dna(tmp_path / "data"), "tblastx" if "translate" in options else "tblastn"
    body = named(asked(3, "genome", **options))
    opened = Database.open(database)
    if "translate" in options:
        body["queries"] = f">q1 some DNA\n{opened.sequence(1)[300:900]}\n>q2\nACGT\n"
    kinds = [kind for kind in report.OUTPUT_FORMATS if not kind.writer.is_single_query]
    keys = [kind.key for kind in kinds if program in kind.writer.programs]
    wanted = expected(tmp_path / "data", body, keys, "genome.h5")
    with serving(settings(database, tmp_path / "served")) as served:
        job = served.done(body)
        assert job["n_hits"]
        for kind in kinds:
            reply, now = served.results(job["id"], kind.key), served.search(body, kind.key)
            if kind.key in keys:
                assert same(kind.key, reply.body) == same(kind.key, now.body) == wanted[kind.key], kind.key
            else:
                assert f"format {kind.key}: got results of translated DNA" in reply.error["message"]
        record = served.get(f"/jobs/{job['id']}/subjects?hits=1").body.decode()
        found = wanted["6"].decode().split("\t")[1]
        assert record.startswith(f">{found}")
        stated = served.get("/databases/genome").json
        for wrong, said in (
            ({"mode": "global"}, "genome.h5 is a DNA database, whose frames are only aligned locally"),
            ({"iterations": 2}, "genome.h5: a DNA database cannot be combined with"),
            ({"distribution": True}, "which has no scores of whole subjects"),
        ):
            assert said in served.post("/jobs", asked(1, "genome", **wrong)).error["message"]
    with opened:
        assert "".join(record.splitlines()[1:]) == opened.sequence(opened.find(found)[0])
        assert (stated["n_subjects"], stated["nucleotides"]) == (opened.n_subjects, opened.n_residues)
    assert (stated["genetic_code"], job["cells"]) == (1, job["n_residues"] * stated["n_residues"])


def test_a_database_in_volumes_goes_by_the_name_of_its_manifest(folder: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "data" / "parts.json"
    manifest.parent.mkdir()
    Database.build(folder / "small.fasta", manifest, volume_size=36_000).close()
    body = named(asked(1, "parts", statistics="published", max_hits=5))
    wanted = expected(manifest.parent, body, ["0", "jsonl", "html"], manifest.name)
    databases = (folder / "small.h5", manifest)
    with serving(settings(manifest, tmp_path / "served", databases=databases)) as served:
        (job, other), found = served.submit(body | {"database": ["parts", "small"]})["jobs"], []
        found = [served.ended(each) for each in (job, other)]
        assert [(each["database"], each["state"]) for each in found] == [("parts", "done"), ("small", "done")]
        for key in wanted:
            assert same(key, served.results(job, key).body) == wanted[key]
        manifest.unlink()
        assert [each["state"] for each in served.get("/health").json["databases"]] == ["ready", "replaced"]
        volume = next(manifest.parent.glob("parts*.h5"))
        with volume.open("r+b") as file:
            file.truncate(100)
        stated = served.get("/databases/parts").json
        assert stated["state"] == "failed"
        assert f"{volume.name} was written to: 100 bytes" in stated["problem"]
        assert str(tmp_path) not in str(stated)


@pytest.mark.parametrize("options", [{}, {"iterations": 2, "evalue": 100.0}], ids=str)
def test_nothing_is_scored_again_and_a_report_says_when_the_search_was(
    small: Served, options: dict[str, Any]
) -> None:
    def scored() -> bytes:
        found = re.search(rb"^swsearch_cells_total (.*)$", small.ask("GET", "/metrics").body, re.MULTILINE)
        assert found is not None
        return found[1]

    job = small.done(asked(5, **options) | {"origin": {"started": "2020-01-01T00:00:00+00:00", "command": "my own"}})
    before = scored()
    for key in ("6", "15", "html", "parquet"):
        assert small.results(job["id"], key).status == 200
    page = small.results(job["id"], "html").body
    assert b"2020-01-01 00:00:00" in page and b"<dd>my own</dd>" in page
    assert page == small.results(job["id"], "html").body
    assert scored() == before


def test_some_of_the_queries(small: Served) -> None:
    job = small.done(asked(36))["id"]
    lines = small.results(job, "6 qseqid sseqid").body.splitlines()
    some = small.results(job, "6 qseqid sseqid", "33-35").body.splitlines()
    assert some == [line for line in lines if line.split(b"\t")[0] in (b"qs33", b"qs34", b"qs35")]
    assert small.results(job, "a3m", "2").body.startswith(b">qs2")
    for wrong in ("0-1", "2-1", "1-37"):
        assert small.results(job, "6", wrong).status == 422
    assert "got 36 queries, expected one" in small.results(job, "a3m").error["message"]
    query, subject = some[0].split()
    records = small.get(f"/jobs/{job}/subjects?query={int(query[2:])}&hits=1").body.splitlines()
    assert records[0].startswith(b">%b protein" % subject)
    assert {len(line) for line in records[1:-1]} <= {60} and 0 < len(records[-1]) <= 60


def test_a_large_answer_is_sent_as_it_is_found(small: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    body = asked(4)
    whole = {outfmt: small.search(body, outfmt).body for outfmt in ("15", "jsonl")}
    monkeypatch.setattr(jobs_module, "MAX_BUFFERED_HITS", 1)
    for outfmt, text in whole.items():
        assert small.search(body, outfmt).body == text

    def fail(*_: object) -> None:
        raise EngineError(f"{small.jobs.settings.folder}/x: the device is lost")

    with monkeypatch.context() as patch:
        patch.setattr(small.jobs.databases["small"].engine, "score", fail)
        assert small.search(body, "15").error["message"] == "x: the device is lost"
    assert small.search(body, "15").body == whole["15"]
    assert "the engine failed and was made anew" in small.get("/health").json["databases"][0]["note"]
