"""What a server writes has the bytes of ``swsearch search``, is made as it is taken, and scores nothing again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.command_line import run
from support.houses import CLIENT, House, asked, built, built_dna, done, settings
from support.samples import sample
from swsearch import report
from swsearch.backends.resident import ResidentBackend
from swsearch.db import Database
from swsearch.errors import InputError, OptionError
from swsearch.pipeline.hits import ResultBuilder
from swsearch.server.errors import ServerProblem
from swsearch.server.results import Format, fasta

N_QUERIES = 40

OPTIONS: list[dict[str, Any]] = [
    {},
    {
        "max_alignments": 3,
        "evalue": 100.0,
        "max_hits": 5,
        "min_identity": 20.0,
        "query_mask": "lower",
        "sort": "score",
    },
    {"statistics": "published", "max_hits": 3, "dbsize": 10**9, "matrix": "BLOSUM45"},
    {"mode": "global", "statistics": "none", "max_hits": 4},
    {"iterations": 2, "evalue": 100.0},
]

KEYS = [kind.key for kind in report.OUTPUT_FORMATS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("data")).parent


@pytest.fixture(scope="module")
def house(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with House(settings(folder / "small.h5", tmp_path_factory.mktemp("served"))) as made:
        yield made


def arguments_of(options: dict[str, Any]) -> list[str]:
    words = ((f"--{name.replace('_', '-')}", value) for name, value in options.items())
    return [text for name, value in words for text in ((name,) if value is True else (name, str(value)))]


def expected(
    folder: Path, queries: bytes, keys: list[str], options: dict[str, Any], name: str = "small.h5"
) -> dict[str, bytes]:
    """What the command line writes in the database's folder, by format."""
    (folder / "q.fa").write_bytes(queries)
    outputs = [text for key in keys for text in ("--outfmt", key, "--output", f"out-{key}")]
    words = ["search", "q.fa", name, "--engine", "cpu", "--quiet", *arguments_of(options), *outputs]
    ended = run(*words, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    return {key: (folder / f"out-{key}").read_bytes() for key in keys}


def without_circumstances(page: bytes) -> bytes:
    """A report of HTML without when, how long, and by which command."""
    found, count = re.subn(rb"<div><dt>(Begun|Seconds|Command)</dt><dd>[^<]*</dd></div>\n", b"", page)
    assert count == 3
    return found


CASES = [(options, n_queries) for options in OPTIONS for n_queries in (1, 3)] + [({}, N_QUERIES)]


@pytest.mark.parametrize(("options", "n_queries"), sample(CASES, lambda case: case in (CASES[0], CASES[3])), ids=str)
def test_every_format_has_the_bytes_of_the_command_line(
    folder: Path, house: House, options: dict[str, Any], n_queries: int
) -> None:
    keys = [kind.key for kind in report.OUTPUT_FORMATS if n_queries == 1 or not kind.writer.is_single_query]
    request = replace(asked(n_queries, **options), origin={"queries": "q.fa"}, outputs=keys)
    wanted = expected(folder, request.queries, keys, options)
    job = done(house, request)
    for number, key in enumerate(keys):
        same = without_circumstances if key == "html" else bytes
        assert same(house.jobs.output(job.identifier, number)[1].path.read_bytes()) == same(wanted[key]), key
        now = [house.search_now(request, key, CLIENT)] if key in ("html", "15") else []
        for rendered in (house.rendered(job.identifier, key), *now):
            assert same(rendered.whole()) == same(wanted[key]), key
            assert rendered.is_binary == report.find_format(key).writer.binary


@pytest.mark.parametrize("options", [{"max_alignments": 2}, {"statistics": "published", "translate": True}], ids=str)
def test_a_dna_database_has_the_bytes_of_the_command_line(tmp_path: Path, options: dict[str, Any]) -> None:
    database, program = built_dna(tmp_path / "data"), "tblastx" if "translate" in options else "tblastn"
    request = replace(asked(3, "genome", **options), origin={"queries": "q.fa"})
    if "translate" in options:
        with Database.open(database) as opened:
            request = replace(request, queries=f">q1 some DNA\n{opened.sequence(1)[300:900]}\n>q2\nACGT\n".encode())
    kinds = [kind for kind in report.OUTPUT_FORMATS if not kind.writer.is_single_query]
    keys = [kind.key for kind in kinds if program in kind.writer.programs]
    wanted = expected(tmp_path / "data", request.queries, keys, options, "genome.h5")
    with House(settings(database, tmp_path / "served")) as house:
        job = done(house, request)
        assert job.n_hits
        for key in keys:
            same = without_circumstances if key == "html" else bytes
            assert same(house.rendered(job.identifier, key).whole()) == same(wanted[key]), key
            assert same(house.search_now(request, key, CLIENT).whole()) == same(wanted[key]), key
        for kind in kinds:
            if kind.key not in keys:
                with pytest.raises(ServerProblem, match=f"format {kind.key}: got results of translated DNA"):
                    house.rendered(job.identifier, kind.key)
        (record,) = house.subjects(job.identifier, 1, [1])
        found = wanted["6"].split(b"\t")[1]
        assert record.startswith(b">" + found)
        stated = house.databases["genome"].to_json()
    with Database.open(database) as opened:
        assert "".join(record.decode().splitlines()[1:]) == opened.sequence(opened.find(found.decode())[0])
        assert (stated["n_subjects"], stated["nucleotides"]) == (opened.n_subjects, opened.n_residues)
    assert (stated["genetic_code"], job.cells) == (1, job.n_residues * stated["n_residues"])


def test_what_a_dna_database_is_not_for_is_refused_when_it_is_asked(tmp_path: Path) -> None:
    with House(settings(built_dna(tmp_path / "data"), tmp_path / "served")) as house:
        for options, said in (
            ({"mode": "global"}, "genome.h5 is a DNA database, whose frames are only aligned locally"),
            ({"iterations": 2}, "genome.h5: a DNA database cannot be combined with"),
            ({"distribution": True}, "which has no scores of whole subjects"),
        ):
            with pytest.raises(ServerProblem, match=said):
                house.submit([asked(1, "genome", **options)], CLIENT)
        assert not house.jobs.jobs_of(CLIENT)


def test_a_database_in_volumes_goes_by_the_name_of_its_manifest(folder: Path, tmp_path: Path) -> None:
    source, manifest = folder / "small.fasta", tmp_path / "data" / "parts.json"
    manifest.parent.mkdir()
    Database.build(source, manifest, volume_size=36_000).close()
    request = replace(asked(1, "parts", statistics="published", max_hits=5), origin={"queries": "q.fa"})
    keys = ["0", "jsonl", "html"]
    wanted = expected(manifest.parent, request.queries, keys, dict(request.options), manifest.name)
    databases = (folder / "small.h5", manifest)
    with House(settings(manifest, tmp_path / "served", databases=databases)) as house:
        assert list(house.databases) == ["small", "parts"]
        jobs = [house.wait(job.identifier, 60) for job in house.submit([asked(2), request], CLIENT)]
        assert [(job.database, job.state) for job in jobs] == [("small", "done"), ("parts", "done")]
        for key in keys:
            same = without_circumstances if key == "html" else bytes
            assert same(house.rendered(jobs[1].identifier, key).whole()) == same(wanted[key])
        manifest.unlink()
        assert [each["state"] for each in house.jobs.health()["databases"]] == ["ready", "replaced"]
        volume = next(manifest.parent.glob("parts*.h5"))
        with volume.open("r+b") as file:
            file.truncate(100)
        stated = house.databases["parts"].to_json()
        assert stated["state"] == "failed"
        assert f"{volume.name} was written to: 100 bytes" in stated["problem"]
        assert str(tmp_path) not in str(stated)


def test_a_report_says_how_long_the_search_took_and_not_how_long_ago_it_was(house: House) -> None:
    request = replace(asked(1), origin={"begun": "2020-01-01T00:00:00+00:00", "command": "my own"})
    job = done(house, request)
    page = house.rendered(job.identifier, "html").whole().decode()
    assert "2020-01-01 00:00:00" in page
    assert "<dd>my own</dd>" in page
    assert job.ended is not None
    assert page == house.rendered(job.identifier, "html").whole().decode()


@pytest.mark.parametrize("options", [{}, {"iterations": 2, "evalue": 100.0}], ids=str)
def test_nothing_is_scored_again(house: House, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    job = done(house, asked(5, **options))
    before = house.jobs.scoring_totals()[0]
    monkeypatch.setattr(ResidentBackend, "open", None)
    for key in ("6", "15", "html", "parquet"):
        assert house.rendered(job.identifier, key).whole()
    assert house.jobs.scoring_totals()[0] == before


def test_some_of_the_queries(house: House) -> None:
    job = done(house, asked(36))
    lines = house.rendered(job.identifier, "6 qseqid sseqid").whole().splitlines()
    some = house.rendered(job.identifier, "6 qseqid sseqid", (33, 35)).whole().splitlines()
    assert some == [line for line in lines if line.split(b"\t")[0] in (b"qs33", b"qs34", b"qs35")]
    assert house.rendered(job.identifier, "a3m", (2, 2)).whole().startswith(b">qs2")
    for first, last in ((0, 1), (2, 1), (1, 37)):
        with pytest.raises(ServerProblem, match="expected a range") as caught:
            house.rendered(job.identifier, "6", (first, last))
        assert caught.value.status == 422
    with pytest.raises(ServerProblem, match="got 36 queries, expected one"):
        house.rendered(job.identifier, "a3m")


def test_subjects_are_those_of_the_hits(house: House) -> None:
    job = done(house, asked(3))
    query, subject = house.rendered(job.identifier, "6 qseqid sseqid", (2, 2)).whole().splitlines()[0].split()
    assert query == b"qs2"
    assert house.subjects(job.identifier, 2, [1])[0].startswith(b">%b protein" % subject)


def test_pieces_come_as_they_are_made_and_are_made_no_more_once_they_are_closed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = done(house, asked(8))
    monkeypatch.setattr("swsearch.server.results.PIECE_BYTES", 1000)
    monkeypatch.setattr("swsearch.pipeline.search.STORED_QUERIES", 4)
    made, real = [], ResultBuilder._results
    monkeypatch.setattr(
        ResultBuilder, "_results", lambda self, batch, lists: made.append(len(lists)) or real(self, batch, lists)
    )
    rendered = house.rendered(job.identifier, "15")
    assert len(next(rendered.chunks)) >= 1000
    assert made == [4]
    assert house.jobs.results.is_read(job.identifier)
    rendered.close()
    assert not house.jobs.results.is_read(job.identifier)
    with pytest.raises(StopIteration):
        next(rendered.chunks)
    assert made == [4]


def test_a_writer_that_fails_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[report.Writer] = []

    def discard(self: report.Writer) -> None:
        closed.append(self)

    monkeypatch.setattr(report.TabularWriter, "discard", discard)

    def failing() -> Any:
        raise InputError("no more")

    with pytest.raises(InputError, match="no more"):
        list(Format("6").written(failing, []))
    assert len(closed) == 1
    with pytest.raises(OptionError):
        Format(None)  # type: ignore[arg-type]


def test_fasta_has_lines_of_sixty() -> None:
    assert fasta(b"a b", "M" * 121) == b">a b\n" + b"M" * 60 + b"\n" + b"M" * 60 + b"\nM\n"
    assert fasta(b"a", "") == b">a\n"
