"""Databases of a server: engines that fail and are made anew, files that change under them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from support.houses import CLIENT, OTHER, House, ObedientEngine, Opened, asked, built, done, settings, wait_until
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.errors import DatabaseError, EngineError, GpuUnavailableError, InputError
from swsearch.server.databases import FAILURES_IN_A_ROW, names_of, without_folders
from swsearch.server.errors import ServerProblem


@pytest.fixture
def own(database: Path, tmp_path: Path) -> Path:
    """A database that may be written to."""
    return Path(shutil.copy(database, tmp_path / "small.h5"))


def test_a_database_goes_by_its_name_without_extension() -> None:
    found = names_of([Path("a/sprot.h5"), Path("b/trembl.json")])
    assert found == {"sprot": Path("a/sprot.h5"), "trembl": Path("b/trembl.json")}
    with pytest.raises(InputError, match=r"a/x.h5 and b/x.json: got two databases that go by 'x'"):
        names_of([Path("a/x.h5"), Path("b/x.json")])
    with pytest.raises(InputError, match="got no database"):
        names_of([])


def test_folders_are_not_told() -> None:
    text = without_folders("/data/of/me/sprot.h5: damaged; see /data/of/you", [Path("/data/of/me"), Path("/data/of")])
    assert text == "sprot.h5: damaged; see you"


def test_databases_that_cannot_be_opened_leave_nothing_open(database: Path, tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(2):
        with (
            pytest.raises(DatabaseError, match="no such database"),
            House(settings(database, tmp_path, databases=(database, tmp_path / "none.h5"))),
        ):
            pass
    # other threads of this process may have a file open for a moment
    wait_until(lambda: len(list(Path("/proc/self/fd").iterdir())) <= before)


def test_an_engine_that_fails_is_made_anew(opened: Opened) -> None:
    first, second = ObedientEngine("gpu"), ObedientEngine("gpu")
    with opened(first, second, engine="gpu") as house:
        done(house, asked(1))
        first.error = EngineError("the device is lost")
        failed = house.wait(house.submit([asked(2)], CLIENT)[0].identifier, 60)
        assert failed.state == "failed"
        assert (failed.problem["code"], failed.problem["message"]) == ("unavailable", "the device is lost")
        assert first.is_closed
        health = house.jobs.health()
        assert health["ok"]
        assert "the engine failed and was made anew, gpu now: the device is lost" in health["databases"][0]["note"]
        done(house, asked(2))
        assert house.search_now(asked(1), "6", CLIENT).whole()
    assert house.names == ["gpu", "gpu"]
    assert second.is_closed


def test_jobs_that_another_brought_down_are_done_with_the_next_engine(opened: Opened) -> None:
    first, second = ObedientEngine(), ObedientEngine()
    with opened(first, second, workers=4) as house:
        first.may_go.clear()
        first.error = EngineError("the device is lost")
        jobs = [house.submit([asked(2, first=1 + k)], f"client {k}")[0] for k in range(3)]
        first.wait()
        first.may_go.set()
        states = sorted(house.wait(job.identifier, 60).state for job in jobs)
        assert states.count("done") >= 2
        assert len(house.databases["small"].check_files()[1]) > 0
    assert second.begun.acquire(blocking=False)


def test_the_cpu_takes_the_place_of_a_device_that_is_gone(opened: Opened) -> None:
    gone = GpuUnavailableError("no device")
    first = ObedientEngine("gpu")
    with opened(first, gone, CpuEngine(), engine="gpu") as house:
        first.error = EngineError("the device is lost")
        assert house.wait(house.submit([asked(1)], CLIENT)[0].identifier, 60).state == "failed"
        done(house, asked(1))
        assert house.jobs.health()["databases"][0]["engine"].startswith("cpu")
    assert house.names == ["gpu", "gpu", "cpu"]


def test_an_engine_that_cannot_search_is_none(opened: Opened) -> None:
    first, second = ObedientEngine("gpu"), ObedientEngine("gpu")
    first.error = second.error = EngineError("the device is lost")
    with opened(first, second, CpuEngine(), engine="gpu") as house:
        assert house.wait(house.submit([asked(1)], CLIENT)[0].identifier, 60).state == "failed"
        done(house, asked(1))
    assert house.names == ["gpu", "gpu", "cpu"]
    assert second.is_closed


def test_without_any_engine_searches_are_refused_with_the_reason(opened: Opened) -> None:
    first = ObedientEngine("gpu")
    with opened(first, engine="gpu") as house:
        first.error = EngineError("the device is lost")
        assert house.wait(house.submit([asked(1)], CLIENT)[0].identifier, 60).state == "failed"
        for ask in (lambda: house.submit([asked(1)], CLIENT), lambda: house.search_now(asked(1), "6", CLIENT)):
            with pytest.raises(ServerProblem, match="no other can be had: the device is lost") as caught:
                ask()
            assert caught.value.status == 503
        health = house.jobs.health()
        assert not health["ok"]
        assert "the device is lost" in health["why"]


@pytest.mark.exhaustive
def test_a_device_that_fails_again_and_again_is_given_up(opened: Opened) -> None:
    made = [ObedientEngine("gpu") for _ in range(FAILURES_IN_A_ROW)]
    with opened(*made, CpuEngine(), engine="gpu") as house:
        for each in made:
            each.error = EngineError("it fails with this one")
            assert house.wait(house.submit([asked(1)], CLIENT)[0].identifier, 60).state == "failed"
        done(house, asked(1))
    assert house.names == ["gpu"] * FAILURES_IN_A_ROW + ["cpu"]


def test_a_search_for_which_there_is_no_memory_fails_and_the_next_one_does_not(opened: Opened) -> None:
    made = [ObedientEngine("gpu") for _ in range(FAILURES_IN_A_ROW + 2)]
    for each in made:
        each.longest = 120_000
    long_one = asked(1, max_hits=1, statistics="none")
    long_one = type(long_one)("small", b">long\n" + b"MK" * 35_000, options=long_one.options)
    with opened(*made, engine="gpu") as house:
        for _ in made[1:]:  # however often: that is no reason for the CPU
            failed = house.wait(house.submit([long_one], CLIENT)[0].identifier, 60)
            assert failed.problem["message"] == "no memory for so many residues"
        done(house, asked(1))
    assert house.names == ["gpu"] * len(made)


def test_a_database_that_was_replaced_is_searched_until_the_end(own: Path, tmp_path: Path) -> None:
    with House(settings(own, tmp_path / "served")) as house:
        before = done(house, asked(2))
        built(tmp_path / "new", "small.h5", seed=5).rename(own)
        place = house.databases["small"]
        assert place.check_files()[0] == "replaced"
        assert place.check_files()[1] == "small.h5 was replaced on disk; restart to use the new one"
        assert house.jobs.health()["ok"]
        after = done(house, asked(2))
        assert house.rendered(after.identifier, "6").whole() == house.rendered(before.identifier, "6").whole()
        own.unlink()
        assert "is gone from its folder" in place.check_files()[1]
        done(house, asked(2), OTHER)
    with House(settings(built(tmp_path / "newer", "small.h5", seed=6), tmp_path / "served")) as house:
        with pytest.raises(ServerProblem, match="the database or the version") as caught:
            house.rendered(before.identifier, "6").whole()
        assert caught.value.status == 410


def test_a_database_that_is_truncated_fails_jobs_and_not_the_server(own: Path, tmp_path: Path) -> None:
    with House(settings(own, tmp_path / "served")) as house:
        before = done(house, asked(1))
        os.truncate(own, 1000)
        place = house.databases["small"]
        assert place.check_files()[0] == "failed"
        assert "was written to: 1,000 bytes" in place.check_files()[1]
        failed = house.wait(house.submit([asked(3)], CLIENT)[0].identifier, 60)
        assert failed.state == "failed"
        assert "small.h5" in failed.problem["message"]
        assert str(own.parent) not in failed.problem["message"]
        health = house.jobs.health()
        assert not health["ok"]
        assert str(own.parent) not in health["why"]
        with pytest.raises(ServerProblem, match=r"small\.h5"):
            house.rendered(before.identifier, "15").whole()


def test_a_database_whose_bytes_change_is_noticed(own: Path, tmp_path: Path) -> None:
    with House(settings(own, tmp_path / "served")) as house:
        place = house.databases["small"]
        with own.open("r+b") as file:
            size = own.stat().st_size
            file.seek(size // 2)
            file.write(bytes(size // 4))
        assert place.check_files()[0] == "ready"
        assert "was written to since it was opened" in place.check_files()[1]
        failed = house.wait(house.submit([asked(3)], CLIENT)[0].identifier, 60)
        assert failed.state == "failed"
        assert place.check_files()[0] == "failed"
