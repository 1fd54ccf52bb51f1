"""Results as bytes and back: every report is the same, and bytes that are not whole or not right are refused."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from Bio.Data.CodonTable import unambiguous_dna_by_id

from support.small_searches import (
    CASES,
    PARENT,
    QUERIES,
    build,
    fasta,
    read_transfer,
    request_of,
    searched,
    transferred,
    written,
)
from swsearch.db import Database, build_database
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.errors import EngineError, ServerError
from swsearch.profiles.saving import line_of
from swsearch.remote import transfer
from swsearch.remote.frames import MAGIC, check_of, frame, frames
from swsearch.remote.transfer import write_transfer
from swsearch.remote.wire import SearchRequest
from swsearch.report import OUTPUT_FORMATS
from swsearch.run_info import Checksum

ONE_QUERY = [kind.key for kind in OUTPUT_FORMATS if kind.writer.is_single_query]
SEVERAL = [kind.key for kind in OUTPUT_FORMATS if not kind.writer.is_single_query]
QUICK = ("default", "several", "filters", "iterated")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with Database.open(build(tmp_path_factory.mktemp("transfer"))) as opened:
        opened.name = "db.h5"
        yield opened


@pytest.fixture(scope="module")
def engine() -> Iterator[CpuEngine]:
    with CpuEngine(threads=1) as made:
        yield made


DIGEST = Checksum("database", "db.h5", "c" * 64)


def sent(
    request: SearchRequest, database: Database, engine: CpuEngine, checksums: Sequence[Checksum] = (DIGEST,)
) -> bytes:
    results = searched(request, database, engine, request.origin_with(checksums))
    results.keep_distribution()
    return transferred(results, request)


@pytest.mark.parametrize(
    "case", [case if case in QUICK else pytest.param(case, marks=pytest.mark.exhaustive) for case in CASES]
)
def test_reports_of_what_was_sent_have_the_same_bytes(case: str, database: Database, engine: CpuEngine) -> None:
    request = request_of(case)
    here = searched(request, database, engine, request.origin_with([Checksum("database", "db.h5", "c" * 64)]))
    expected = written(here, SEVERAL)
    with read_transfer(io.BytesIO(sent(request, database, engine)), request, threads=1) as there:
        found = written(there, SEVERAL)
    assert found.keys() == expected.keys()
    for key in expected:
        assert found[key] == expected[key], key
    assert (there.doubts, there.unfitted, there.iterated) == (here.doubts, here.unfitted, here.iterated)
    assert b"s1" in found["6"]
    assert b"c" * 64 in found["html"]


CODONS = {letter: codon for codon, letter in unambiguous_dna_by_id[1].forward_table.items()}


@pytest.mark.parametrize(
    "options",
    [
        {"max_alignments": 3, "max_hits": 6},
        pytest.param({"max_alignments": 3}, marks=pytest.mark.exhaustive),
        pytest.param({"statistics": "published", "strand": "plus", "sort": "score"}, marks=pytest.mark.exhaustive),
    ],
    ids=str,
)
def test_dna_queries_are_sent_as_they_were_found(
    options: dict[str, Any], database: Database, engine: CpuEngine
) -> None:
    dna = "".join(CODONS[letter] for letter in PARENT)
    queries = fasta([("q1 shifted", f"{dna[:150]}A{dna[150:]}"), ("q2 of nothing", "AC"), ("q3", dna[30:120])])
    request = SearchRequest("db", queries, options={"translate": True, "evalue": 1e3, **options})
    expected = written(searched(request, database, engine), ["6", "15", "jsonl"])
    found = written(read_transfer(io.BytesIO(sent(request, database, engine)), request, threads=1), [*expected])
    assert found == expected
    assert b"s1" in found["6"]


DNA = "".join(CODONS[letter] for letter in PARENT)
GENES = fasta([("q1 shifted", f"{DNA[:150]}A{DNA[150:]}"), ("q2 of nothing", "AC"), ("q3", DNA[30:120])])

OF_GENOMES = {
    "tblastn": SearchRequest("db", QUERIES, options={"max_hits": 8, "evalue": 1e3}),
    "tblastn, filtered": SearchRequest("db", QUERIES, options={"min_identity": 30, "statistics": "published"}),
    "tblastx": SearchRequest("db", GENES, options={"translate": True, "max_hits": 6}),
}
"""Searches of a database of DNA."""


@pytest.fixture(scope="module")
def genome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder = tmp_path_factory.mktemp("genome")
    draw = random.Random(4)
    records = [(f"s{k}", "".join(draw.choices("ACGT", k=200)) + DNA[15 * k : 300] + "ACCA" * k) for k in range(9)]
    (folder / "dna.fasta").write_bytes(fasta(records))
    build_database(folder / "dna.fasta", folder / "dna.h5", translate=True)
    with Database.open(folder / "dna.h5") as opened:
        opened.name = "dna.h5"
        yield opened


@pytest.mark.parametrize("case", OF_GENOMES)
def test_hits_in_dna_are_sent_with_their_places(case: str, genome: Database, engine: CpuEngine) -> None:
    request = OF_GENOMES[case]
    kinds = ["6", "jsonl", "0", "html"]
    expected = written(searched(request, genome, engine, request.origin_with([])), kinds)
    with read_transfer(io.BytesIO(sent(request, genome, engine, [])), request, threads=1) as there:
        assert written(there, kinds) == expected
    assert b"s1" in expected["6"]


def test_what_was_stored_is_sent_as_it_was_found(
    database: Database, genome: Database, engine: CpuEngine, tmp_path: Path
) -> None:
    for name, subjects, request in (
        ("aligned", database, request_of("filters")),
        ("iterated", database, replace(request_of("iterated"), options={"iterations": 3, "keep_next": True})),
        ("genome", genome, OF_GENOMES["tblastx"]),
    ):
        results = searched(request, subjects, engine)
        results.keep_in(tmp_path / name)
        expected = transferred(results, request)
        again = searched(request, subjects, engine).search
        again.keep_in(tmp_path / name, is_read=True)
        found = b"".join(write_transfer(again, again.stored_batches(0, len(again.queries)), request, str))
        lines = [lines_of(read_transfer(io.BytesIO(each), request)) for each in (found, expected)]
        np.testing.assert_equal(*lines)
        reports = [written(read_transfer(io.BytesIO(each), request), ["6", "jsonl"]) for each in (found, expected)]
        assert reports[0] == reports[1]
        assert reports[0]["6"]


FEW = replace(request_of("masked"), options={**CASES["masked"], "max_hits": 4, "max_alignments": 2})
"""A request whose results have everything but profiles."""


def lines_of(results: Any) -> list[tuple[Any, ...]]:
    def line(profile: Any) -> str | None:
        return None if profile is None else line_of(profile)

    return [
        (line(each.profile), line(each.next_profile), each.steps, each.converged, each.iteration, each.first_found)
        for each in results
    ]


def test_profiles_go_on_from_what_was_sent(database: Database, engine: CpuEngine) -> None:
    one = fasta([("q1 the parent", PARENT)])
    request = replace(request_of("iterated", one), options={"iterations": 2, "keep_next": True})
    here = lines_of(searched(request, database, engine))
    there = lines_of(read_transfer(io.BytesIO(sent(request, database, engine)), request))
    np.testing.assert_equal(there, here)
    profile = here[0][1]
    assert profile is not None
    again = SearchRequest("db", profile.encode(), options={"max_hits": 9})
    expected = searched(again, database, engine)
    results = read_transfer(io.BytesIO(sent(again, database, engine)), again, threads=1)
    assert written(results, [*ONE_QUERY, "jsonl", "15"]) == written(expected, [*ONE_QUERY, "jsonl", "15"])
    assert b'"iteration":' in written(searched(again, database, engine), ["jsonl"])["jsonl"].replace(b" ", b"")


def test_what_was_sent_in_many_frames_is_the_same(
    database: Database, engine: CpuEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = request_of("default")
    whole = sent(request, database, engine)
    monkeypatch.setattr(transfer, "RESIDUES_OF_FRAME", 1)
    parts = sent(request, database, engine)
    kinds = [kind for kind, _, _ in frames(io.BytesIO(parts), "results")]
    assert kinds == ["header", *["batch"] * 4, "end"]
    found = [written(read_transfer(io.BytesIO(each), request), ["jsonl"]) for each in (parts, whole)]
    assert found[0] == found[1]


@pytest.fixture(scope="module")
def good(database: Database, engine: CpuEngine) -> bytes:
    return sent(FEW, database, engine)


def taken(data: bytes, request: SearchRequest | None = None) -> int:
    results = read_transfer(io.BytesIO(data), request or FEW, threads=1)
    return sum(len(result.hits) for result in results)


def test_what_is_cut_off_anywhere_is_noticed(good: bytes) -> None:
    assert taken(good)
    draw = random.Random(1)
    for end in [0, 5, len(MAGIC), len(MAGIC) + 4, len(good) - 1, *(draw.randrange(len(good)) for _ in range(20))]:
        with pytest.raises(ServerError, match=r"incomplete|begins with"):
            taken(good[:end])


def test_what_was_altered_or_moved_is_noticed(good: bytes) -> None:
    draw = random.Random(2)
    for _ in range(30):
        place = draw.randrange(len(good))
        altered = good[:place] + bytes([good[place] ^ 1 << draw.randrange(8)]) + good[place + 1 :]
        with pytest.raises(ServerError):
            taken(altered)
    with pytest.raises(ServerError, match="bytes after the end"):
        taken(good + b"\0")


def made_again(good: bytes, alter: Any) -> bytes:
    """Return the same frames with facts and arrays that were altered, and right checksums."""
    before, made = 0, [MAGIC]
    for kind, facts, arrays in frames(io.BytesIO(good), "results"):
        alter(kind, facts, arrays)
        made.append(frame(kind, facts, arrays, before))
        before = check_of(made[-1])
    return b"".join(made)


VALUES: list[Any] = [None, -1, 0, 10**30, 1.5, "x", [], {}, [[]], True, "published", [1, "a"], float("nan")]


def places_in(facts: Any) -> list[tuple[Any, Any]]:
    """Return every container with a key, however deep."""
    items = facts.items() if isinstance(facts, dict) else enumerate(facts) if isinstance(facts, list) else ()
    return [each for key, value in items for each in [(facts, key), *places_in(value)]]


@pytest.fixture(scope="module")
def several(database: Database, genome: Database, engine: CpuEngine) -> dict[str, tuple[SearchRequest, bytes]]:
    """What is sent of searches of several kinds."""
    asked = {
        "masked": (FEW, database),
        "iterated": (SearchRequest("db", QUERIES, options={"iterations": 2, "keep_next": True}), database),
        "profile": (profile_request(database, engine), database),
        "translated": (SearchRequest("db", GENES, options={"translate": True, "max_hits": 5}), database),
        "shifted": (
            SearchRequest("db", GENES, options={"translate": True, "frame_shift": 15, "min_identity": 20}),
            database,
        ),
        "genome": (OF_GENOMES["tblastn, filtered"], genome),
        "genes": (OF_GENOMES["tblastx"], genome),
    }
    return {name: (request, sent(request, of, engine)) for name, (request, of) in asked.items()}


def profile_request(database: Database, engine: CpuEngine) -> SearchRequest:
    one = replace(
        request_of("iterated", fasta([("q1 the parent", PARENT)])), options={"iterations": 2, "keep_next": True}
    )
    profile = next(iter(searched(one, database, engine))).next_profile
    assert profile is not None
    return SearchRequest("db", line_of(profile).encode(), "lines", options={"iterations": 2, "keep_next": True})


HOSTILE = ["masked", "iterated", "profile", "translated", "shifted", "genome", "genes"]


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("seed", [pytest.param(k, marks=[pytest.mark.exhaustive] * (k >= 20)) for k in range(400)])
def test_hostile_facts_and_numbers_end_in_one_error_or_in_results(
    several: dict[str, tuple[SearchRequest, bytes]], case: str, seed: int
) -> None:
    draw = random.Random(seed)
    chosen = draw.choice(["header", "batch", "batch", "end"])
    request, good = several[case]

    def alter(kind: str, facts: Any, arrays: dict[str, Any]) -> None:
        if kind != chosen:
            return
        if arrays and draw.random() < 0.6:
            name = draw.choice(sorted(arrays))
            values = arrays[name].copy()
            if len(values) and draw.random() < 0.7:
                info = np.iinfo(values.dtype) if values.dtype.kind in "iu" else np.finfo(values.dtype)
                values[draw.randrange(len(values))] = draw.choice([info.min, info.max, 0, 1])
            else:
                values = draw.choice([values[:-1], values[:0], np.append(values, values[:1]), values.astype("<f8")])
            arrays[name] = values
        else:
            place, key = draw.choice(places_in(facts))
            place[key] = draw.choice(VALUES)

    data = made_again(good, alter)
    try:
        results = list(read_transfer(io.BytesIO(data), request, threads=1))
        written(results, ["jsonl", "0"])
    except ServerError as error:
        assert str(error).startswith("results: ")


def test_another_version_is_told_from_this_one(good: bytes) -> None:
    def alter(kind: str, facts: Any, arrays: dict[str, Any]) -> None:
        if kind == "header":
            facts |= {"transfer": 3, "version": "9.9"}

    with pytest.raises(
        ServerError, match=r"got results of swsearch 9\.9, expected those of .*; install the same version"
    ):
        taken(made_again(good, alter))


@pytest.mark.parametrize("body", [b"", b"<!DOCTYPE html><html>", b'{"error": {}}', b"swsearch results 2\n"])
def test_something_else_is_told_from_results(body: bytes) -> None:
    with pytest.raises(ServerError, match=r"expected results of swsearch|ends in the middle|damaged"):
        taken(body)


def test_results_of_another_search_are_refused(good: bytes) -> None:
    for other in (request_of("default"), replace(FEW, queries=QUERIES + b">more\nMKV\n")):
        with pytest.raises(ServerError, match="results: belong to another search"):
            taken(good, other)


def test_a_search_that_fails_tells_why(database: Database, engine: CpuEngine) -> None:
    request = request_of("default")
    search = searched(request, database, engine).search

    def fail() -> Iterator[Any]:
        raise EngineError("the device was taken away")
        yield

    stream, made = write_transfer(search, fail(), request, str), []
    with pytest.raises(EngineError):
        for part in stream:
            made.append(part)  # what came before the error counts
    with pytest.raises(ServerError, match="results: the device was taken away"):
        taken(b"".join(made), request)
