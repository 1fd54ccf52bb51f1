"""Databases of a server: engines that fail and are made anew, files that change under them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.serving import Served, serving, until
from support.small_servers import ObedientEngine, Opened, asked, built, settings
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.errors import DatabaseError, EngineError, GpuUnavailableError, InputError
from swsearch.server.databases import FAILURES_IN_A_ROW

LOST = EngineError("the device is lost")


@pytest.fixture
def own(database: Path, tmp_path: Path) -> Path:
    """A database that may be written to."""
    return Path(shutil.copy(database, tmp_path / "small.h5"))


@contextmanager
def over(own: Path, tmp_path: Path) -> Iterator[Served]:
    with serving(settings(own, tmp_path / "served")) as served:
        yield served


def failed(served: Served, body: dict[str, Any]) -> dict[str, Any]:
    """Submit a job that fails, and return why."""
    job = served.ended(served.submit(body)["id"])
    assert job["state"] == "failed"
    return dict(job["problem"])


def lost_one() -> ObedientEngine:
    engine = ObedientEngine("gpu")
    engine.error = LOST
    return engine


def test_databases_that_cannot_be_opened_leave_nothing_open(database: Path, tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(2):
        with (
            pytest.raises(DatabaseError, match="no such database"),
            serving(settings(database, tmp_path, databases=(database, tmp_path / "none.h5"))),
        ):
            pass
    for paths, said in (
        ((database, tmp_path / "small.json"), "got two databases that go by 'small'"),
        ((), "got no"),
    ):
        with pytest.raises(InputError, match=said):
            serving(settings(database, tmp_path, databases=paths)).__enter__()
    # other threads of this process may have a file open for a moment
    until(lambda: len(list(Path("/proc/self/fd").iterdir())) <= before)


NEXT = {
    "a GPU again": ([lambda: ObedientEngine("gpu")], ["gpu", "gpu"]),
    "no device any more": ([lambda: GpuUnavailableError("no device"), CpuEngine], ["gpu", "gpu", "cpu"]),
    "one that fails too": ([lost_one, CpuEngine], ["gpu", "gpu", "cpu"]),
    "none": ([], ["gpu", "gpu", "cpu"]),
}  # fmt: skip
"""Engines that are available after one that fails, and the names requested."""


@pytest.mark.parametrize("case", NEXT)
def test_an_engine_that_fails_is_followed_by_another(opened: Opened, case: str) -> None:
    others, names = NEXT[case]
    first, after = ObedientEngine("gpu"), [make() for make in others]
    with opened(first, *after, engine="gpu") as served:
        served.done(asked(1))
        first.error = LOST
        problem = failed(served, asked(2))
        assert (problem["code"], problem["message"]) == ("unavailable", "the device is lost")
        assert first.is_closed
        if others:
            served.done(asked(2))
            assert served.search(asked(1)).status == 200
            (stated,) = served.get("/health").json["databases"]
            assert f"made anew, {names[-1]} now: the device is lost" in stated["note"]
            assert stated["engine"].startswith("cpu")  # an obedient engine is one
        else:
            for reply in (served.post("/jobs", asked(1)), served.search(asked(1))):
                assert reply.status == 503
                assert "no other can be had: the device is lost" in reply.error["message"]
            health = served.get("/health")
            assert (health.status, health.json["ok"]) == (503, False)
            assert "the device is lost" in health.json["why"]
    assert served.names == names
    assert all(each.is_closed for each in after if isinstance(each, ObedientEngine))


def test_jobs_that_another_brought_down_are_done_with_the_next_engine(opened: Opened) -> None:
    first, second = ObedientEngine(), ObedientEngine()
    with opened(first, second, workers=4) as served:
        first.may_go.clear()
        first.error = LOST
        jobs = [served.submit(asked(2, first=1 + k), **{"X-Forwarded-For": f"10.0.0.{k}"})["id"] for k in range(3)]
        first.wait()
        first.may_go.set()
        assert [served.ended(job)["state"] for job in jobs].count("done") >= 2
    assert second.started.acquire(blocking=False)


@pytest.mark.exhaustive
def test_a_device_that_fails_again_and_again_is_given_up(opened: Opened) -> None:
    made = [ObedientEngine("gpu") for _ in range(FAILURES_IN_A_ROW)]
    with opened(*made, CpuEngine(), engine="gpu") as served:
        for each in made:
            each.error = EngineError("it fails with this one")
            failed(served, asked(1))
        served.done(asked(1))
    assert served.names == ["gpu"] * FAILURES_IN_A_ROW + ["cpu"]


def test_a_search_for_which_there_is_no_memory_fails_and_the_next_one_does_not(opened: Opened) -> None:
    made = [ObedientEngine("gpu") for _ in range(FAILURES_IN_A_ROW + 2)]
    for each in made:
        each.longest = 120_000
    long_one = asked(1, max_hits=1, statistics="none") | {"queries": ">long\n" + "MK" * 35_000}
    with opened(*made, engine="gpu") as served:
        for _ in made[1:]:  # however often: that is no reason for the CPU
            assert failed(served, long_one)["message"] == "no memory for so many residues"
        served.done(asked(1))
    assert served.names == ["gpu"] * len(made)


def test_a_database_that_was_replaced_is_searched_until_the_end(own: Path, tmp_path: Path) -> None:
    with over(own, tmp_path) as served:
        before = served.done(asked(2))["id"]
        built(tmp_path / "new", "small.h5", seed=5).rename(own)
        stated = served.get("/databases/small").json
        assert (stated["state"], stated["problem"]) == (
            "replaced", "small.h5 was replaced on disk; restart to use the new one",
        )  # fmt: skip
        assert served.get("/health").json["ok"]
        assert b'value="small" checked' in served.ask("GET", "/").body
        after = served.done(asked(2))["id"]
        assert served.results(after, "6").body == served.results(before, "6").body
        own.unlink()
        assert "is gone from its folder" in served.get("/databases/small").json["problem"]
        served.done(asked(2))
    with over(built(tmp_path / "newer", "small.h5", seed=6), tmp_path) as served:
        reply = served.results(before, "6")
        assert (reply.status, "the database or the version" in reply.error["message"]) == (410, True)


def test_a_database_that_is_truncated_fails_jobs_and_not_the_server(own: Path, tmp_path: Path) -> None:
    with over(own, tmp_path) as served:
        before = served.done(asked(1))["id"]
        os.truncate(own, 1000)
        health = served.get("/health").json
        told = [served.get("/databases/small").json["problem"], failed(served, asked(3))["message"], health["why"]]
        told.append(served.results(before, "15").error["message"])
        assert served.get("/databases/small").json["state"] == "failed"
        assert b" disabled>" in served.ask("GET", "/").body
        assert served.ask("GET", "/about").status == 200
        assert "was written to: 1,000 bytes" in told[0] and not health["ok"]
        assert all("small.h5" in text and str(own.parent) not in text for text in told)


def test_a_database_whose_bytes_change_is_noticed(own: Path, tmp_path: Path) -> None:
    with over(own, tmp_path) as served:
        with own.open("r+b") as file:
            size = own.stat().st_size
            file.seek(size // 2)
            file.write(bytes(size // 4))
        stated = served.get("/databases/small").json
        assert stated["state"] == "ready"
        assert "was written to since it was opened" in stated["problem"]
        failed(served, asked(3))
        assert served.get("/databases/small").json["state"] == "failed"
