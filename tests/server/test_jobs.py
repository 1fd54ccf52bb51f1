"""Jobs from their submission to their removal, and searches that are not kept."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.houses import CLIENT, OTHER, House, asked, done, settings, wait_until
from swsearch.errors import EngineError
from swsearch.server import jobs as jobs_module
from swsearch.server.errors import ServerProblem


@pytest.fixture(scope="module")
def house(database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with House(settings(database, tmp_path_factory.mktemp("served") / "folder")) as made:
        yield made


def code_of(caught: pytest.ExceptionInfo[ServerProblem]) -> str:
    return caught.value.code


def test_a_job_that_is_forgotten_is_gone(house: House) -> None:
    job = done(house, asked(1))
    with pytest.raises(ServerProblem, match="another client") as caught:
        house.delete(job.identifier, OTHER)
    assert code_of(caught) == "not_allowed"
    rendered = house.rendered(job.identifier, "6")
    house.delete(job.identifier, CLIENT)
    with pytest.raises(ServerProblem, match="no such job"):
        house.job(job.identifier)
    assert not (house.settings.folder / "jobs" / job.identifier).exists()
    with pytest.raises(ServerProblem, match="no such job"):
        rendered.whole()


def test_nothing_is_left_behind(database: Path, tmp_path: Path) -> None:
    def state() -> tuple[set[str], int]:
        gc.collect()  # a database's file is closed with the last object that may read from it
        return {each.name for each in threading.enumerate()}, len(list(Path("/proc/self/fd").iterdir()))

    before = state()
    for _ in range(2):
        with House(settings(database, tmp_path / "folder")) as house:
            job = done(house, asked(30))
            assert next(house.rendered(job.identifier, "15").chunks)
            assert house.search_now(asked(1), "html", CLIENT).whole()
    wait_until(lambda: state() == before)


def test_a_large_answer_is_sent_as_it_is_found(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    request = asked(4)
    whole = {outfmt: house.search_now(request, outfmt, CLIENT).whole() for outfmt in ("15", "jsonl")}
    monkeypatch.setattr(jobs_module, "MAX_BUFFERED_HITS", 1)
    for outfmt, text in whole.items():
        assert house.search_now(request, outfmt, CLIENT).whole() == text
    rendered = house.search_now(request, "15", CLIENT)
    next(rendered.chunks)
    assert len(house.jobs.searches) == 1
    rendered.close()
    assert not house.jobs.searches
    place, failing = house.databases["small"], EngineError(f"{house.settings.folder}/x: the device is lost")
    monkeypatch.setattr(place.engine, "score", raising(failing))
    with pytest.raises(ServerProblem, match=r"^x: the device is lost"):
        house.search_now(request, "15", CLIENT).whole()
    assert house.search_now(request, "15", CLIENT).whole() == whole["15"]


def raising(error: Exception) -> Callable[..., None]:
    def score(*_: object) -> None:
        raise error

    return score
