"""Jobs from their submission to their removal, and searches that are not kept."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.houses import CLIENT, OTHER, asked, built, done, settings, wait_until
from swsearch.errors import EngineError
from swsearch.server import house as house_module
from swsearch.server.house import House
from swsearch.server.problems import ServerProblem


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def house(database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with House(settings(database, tmp_path_factory.mktemp("served") / "folder")) as made:
        yield made


def code_of(caught: pytest.ExceptionInfo[ServerProblem]) -> str:
    return caught.value.code


def test_a_job_is_queued_runs_and_is_done(house: House) -> None:
    request = asked(3)
    (job,) = house.submit([request], CLIENT)
    assert (job.state, job.n_queries, job.client, job.group) == ("queued", 3, CLIENT, job.identifier)
    ended = house.wait(job.identifier, 60)
    assert (ended.state, ended.progress, ended.cells_done) == ("done", 1.0, job.cells)
    assert ended.n_hits is not None
    assert ended.n_hits >= 3
    assert ended.begun is not None
    assert job.submitted <= ended.begun <= (ended.ended or 0) < (ended.expires or 0)
    assert house.queries(job.identifier) == request.queries
    assert house.request(job.identifier).queries == request.queries
    assert house.jobs_of(CLIENT)[0] == ended
    assert house.jobs_of(OTHER) == []


def test_several_searches_are_a_group(house: House) -> None:
    jobs = house.submit([asked(1), asked(2)], CLIENT)
    assert [each.group for each in jobs] == [jobs[0].identifier] * 2
    for each in jobs:
        found = house.group(each.identifier)
        assert [each.identifier for each in found] == [each.identifier for each in jobs]


def test_results_cannot_be_had_before_there_are_any(house: House) -> None:
    with pytest.raises(ServerProblem, match="no such job") as caught:
        house.rendered("A" * 20, "6")
    assert code_of(caught) == "not_found"
    for identifier in ("../../jobs.sqlite", "", "a" * 20, "A" * 1000):
        with pytest.raises(ServerProblem, match="no such job"):
            house.job(identifier)


def test_subjects_of_hits_are_whole(house: House) -> None:
    job = done(house, asked(2))
    (record,) = house.subjects(job.identifier, 1, [1])
    header, *lines = record.decode().splitlines()
    assert header == ">s1 protein s1"
    assert "".join(lines) in house.queries(job.identifier).decode()
    for query, hits in ((0, [1]), (3, [1]), (1, [0]), (1, [1, 10_000])):
        with pytest.raises(ServerProblem, match="expected") as caught:
            house.subjects(job.identifier, query, hits)
        assert code_of(caught) == "wrong"


def test_a_job_that_is_forgotten_is_gone(house: House) -> None:
    job = done(house, asked(1))
    with pytest.raises(ServerProblem, match="another client") as caught:
        house.forget(job.identifier, OTHER)
    assert code_of(caught) == "not_allowed"
    rendered = house.rendered(job.identifier, "6")
    house.forget(job.identifier, CLIENT)
    with pytest.raises(ServerProblem, match="no such job"):
        house.job(job.identifier)
    folder = house.settings.folder / "jobs" / job.identifier
    assert folder.is_dir()  # somebody reads
    assert rendered.whole().startswith(b"qs1\ts1\t100.000")
    assert not folder.exists()


def test_a_search_now_is_not_kept(house: House) -> None:
    request, before = asked(3), house.jobs_of(CLIENT)
    found = house.search_now(request, "6", CLIENT)
    job = done(house, request)
    assert found.whole() == house.rendered(job.identifier, "6").whole()
    assert house.jobs_of(CLIENT)[1:] == before
    assert (found.content_type, found.file_name) == ("text/tab-separated-values; charset=utf-8", "swsearch-small.tsv")


def test_nothing_is_left_behind(database: Path, tmp_path: Path) -> None:
    def state() -> tuple[set[str], int]:
        gc.collect()  # a database's file is closed with the last object that may read from it
        return {each.name for each in threading.enumerate()}, len(list(Path("/proc/self/fd").iterdir()))

    before = state()
    for _ in range(2):
        with House(settings(database, tmp_path / "folder")) as house:
            job = done(house, asked(30))
            chunks = house.rendered(job.identifier, "15").chunks
            next(chunks)
            house.search_now(asked(1), "html", CLIENT)
    with pytest.raises(ServerProblem, match="ending"):
        next(chunks)
    wait_until(lambda: state() == before)


def test_a_large_answer_is_sent_as_it_is_found(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    request = asked(4)
    whole = {outfmt: house.search_now(request, outfmt, CLIENT).whole() for outfmt in ("15", "swsearch")}
    monkeypatch.setattr(house_module, "WHOLE_HITS", 1)
    for outfmt, text in whole.items():
        assert house.search_now(request, outfmt, CLIENT).whole() == text
    rendered = house.search_now(request, "15", CLIENT)
    assert house.counts().searches == 1
    rendered.close()
    assert house.counts().searches == 0
    place, failing = house.places["small"], EngineError(f"{house.settings.folder}/x: the device is lost")
    monkeypatch.setattr(place.engine, "score", raising(failing))
    with pytest.raises(ServerProblem, match=r"^x: the device is lost"):
        house.search_now(request, "15", CLIENT).whole()
    monkeypatch.setattr(place.engine, "score", raising(failing))  # it is another engine by now
    told = b"".join(until_it_fails(house.search_now(request, "swsearch", CLIENT).chunks))
    assert b"x: the device is lost" in told
    assert str(house.settings.folder).encode() not in told
    assert house.search_now(request, "15", CLIENT).whole() == whole["15"]


def raising(error: Exception) -> Callable[..., None]:
    def score(*_: object) -> None:
        raise error

    return score


def until_it_fails(pieces: Iterator[bytes]) -> Iterator[bytes]:
    with pytest.raises(ServerProblem):
        yield from pieces
