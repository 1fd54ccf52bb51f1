"""The model of growth: its arithmetic on round numbers, and that its report shows what is missing as missing."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import ROOT

from benchmarks.speed import growth, growth_parts
from benchmarks.speed.growth_model import GROUP_RESIDUES, MEMORY_USED, MOST_AT_ONCE, Job, Parts, Place, Work, predict
from benchmarks.speed.growth_parts import Clock, number, parts_of, read_json

FREE = Work(0, 0)

PARTS = Parts(
    start_cpu=1, start_gpu=2, start_cluster=3, read=1e-9, copy=2e-9, cpu_cells=1e10, gpu_cells=1e13, gpu_streamed=0.5,
    gpu_memory=1e11, collect=0, prepare=FREE, rate=0, copy_cells=math.inf, rounds=1, copies=10, alike=1, align=FREE,
    write=0, merge=0, task=0, query_length=100, query_square=1e4, spread=1, hits=(10.0,), candidates=(20.0,),
    hits_in=1e9, bytes_per_residue=1,
)  # fmt: skip
"""Round numbers: only reading and scoring cost anything."""

JOB = Job(1000, 2 * GROUP_RESIDUES, 10**9)
"""Four groups of queries, of 4,000, 16,000, 50,000 and 30,000 residues; 10^14 cells."""

GROUPS = 4


def seconds(place: Place, job: Job = JOB, parts: Parts = PARTS, **options: Any) -> float:
    return predict(job, place, parts, **options).seconds


def test_a_gpu_starts_loads_and_scores() -> None:
    assert seconds(Place("gpu")) == pytest.approx(2 + 2 + 10)


def test_several_gpus_share_scoring_and_those_of_one_process_not_loading() -> None:
    assert seconds(Place("gpu", 4)) == pytest.approx(2 + 2 + 10 / 4)
    assert seconds(Place("gpu", 4, cluster=True)) == pytest.approx(1 + 3 + 2 / 4 + 10 / 4)


def test_a_gpu_that_is_opened_twice_is_one() -> None:
    assert seconds(Place("gpu", 2, distinct=1)) == seconds(Place("gpu"))


def test_a_database_is_streamed_where_it_does_not_fit() -> None:
    large = replace(JOB, residues=int(PARTS.gpu_memory * MEMORY_USED) + 1)
    found = predict(large, Place("gpu"), PARTS)
    assert not found.resident
    assert found.resources["reading"] == pytest.approx(GROUPS * large.residues * PARTS.copy)  # beside scoring
    assert found.seconds == pytest.approx(2 + max(large.cells / (PARTS.gpu_cells / 2), found.resources["reading"]))
    assert predict(large, Place("gpu", 2), PARTS).resident
    assert not predict(large, Place("gpu", 2, distinct=1), PARTS).resident


def test_reading_sets_the_time_of_short_queries() -> None:
    one = Job(1, 100, 10**10)
    found = predict(one, Place("gpu"), PARTS, streamed=True)
    assert found.busiest == "reading"
    assert found.seconds == pytest.approx(2 + 20)
    assert predict(one, Place("gpu"), PARTS, streamed=True, disk=1e8).seconds == pytest.approx(2 + 100)
    assert seconds(Place("gpu"), one, disk=1e8) == pytest.approx(2 + 100 + 0.1)


def test_processors_share_scoring_and_reading() -> None:
    assert seconds(Place("cpu", 1, 4)) == pytest.approx(1 + (10_000 + GROUPS) / 4)
    assert seconds(Place("cpu", 4, 2, cluster=True)) == pytest.approx(1 + 3 + (10_000 + GROUPS) / 8)


def test_workers_share_the_processors_that_there_are() -> None:
    busy = Place("cpu", 4, 1, cluster=True, processors=2)
    assert seconds(busy) == seconds(Place("cpu", 2, 1, cluster=True))


def test_the_last_tasks_leave_workers_idle() -> None:
    # 1 group x 5 volumes on 4 workers are two rounds, where one and a quarter would do
    job = Job(10, 1000, 10**9, volumes=5)
    found = seconds(Place("cpu", 4, 1, cluster=True), job)
    assert found == pytest.approx(1 + 3 + (job.cells / PARTS.cpu_cells * 8 / 5 + 1) / 4)


def test_the_client_merges_and_writes_one_thing_after_the_other() -> None:
    parts = replace(PARTS, task=1.0, merge=0.01, write=0.1)
    found = predict(replace(JOB, volumes=4, hits=100), Place("cpu", 4, 1000, cluster=True), parts)
    assert found.busiest == "client"
    assert found.resources["client"] == pytest.approx(GROUPS * 4 * 1.0 + 1000 * 20 * 0.01 + 100 * 0.1)


def test_what_one_thread_of_python_does_is_not_divided() -> None:
    parts = replace(PARTS, align=Work(parallel=0.1, serial=0.2))
    job = replace(JOB, hits=1000, fitted=False)
    found = predict(job, Place("gpu", 1, 10), parts).resources
    assert found["Python"] == pytest.approx(200)
    assert found["processors"] == pytest.approx((100 + 200) / 10)
    of_workers = predict(job, Place("gpu", 10, 10, cluster=True), parts).resources
    assert of_workers["Python of a worker"] == pytest.approx(20)


def test_stages_overlap_but_for_the_first_and_the_last_group() -> None:
    parts = replace(PARTS, prepare=Work(0, 0.004), write=0.01)
    found = predict(replace(JOB, hits=1000), Place("gpu"), parts)
    assert found.stages == pytest.approx(
        {"prepare": 4, "score": 10, "collect": 0, "rate": 0, "align": 0, "write": 10}
    )
    # until the first group is prepared; scoring; writing what comes last
    first, last = 4 * 0.04, 10 * 0.3
    assert found.shares == pytest.approx([0.04, 0.16, 0.5, 0.3])
    assert first + 10 + last < found.pipeline < 4 + 10 + 10
    one = predict(Job(10, 1000, 10**9, hits=1000), Place("gpu"), parts)
    assert one.pipeline == pytest.approx(0.04 + 0.1 + 10)  # a single group overlaps with nothing


def test_what_shares_pythons_lock_is_not_done_at_the_same_time() -> None:
    parts = replace(PARTS, align=Work(0, 0.02), write=0.02)
    found = predict(replace(JOB, hits=1000, fitted=False), Place("gpu"), parts)
    assert found.seconds == pytest.approx(2 + 2 + 40)


def test_copies_of_candidates_cost_cells() -> None:
    parts = replace(PARTS, copy_cells=1e6)
    cells = 1000 * 20 * 10 * 100**2  # queries, candidates, copies, residues of both
    assert predict(JOB, Place("gpu", 1, 4), parts).stages["rate"] == pytest.approx(cells / 1e6 / 4)
    assert predict(replace(JOB, spread=3.0), Place("gpu", 1, 4), parts).stages["rate"] == pytest.approx(
        3 * cells / 1e6 / 4
    )
    large = predict(replace(JOB, residues=10**12), Place("gpu"), parts).stages["rate"]
    assert large == pytest.approx(cells / 1e6 * MOST_AT_ONCE / 20)
    again = replace(parts, rounds=1.5)
    assert predict(replace(JOB, residues=10**12), Place("gpu"), again).stages["rate"] == pytest.approx(1.5 * large)
    assert predict(JOB, Place("gpu", 1, 4), again).stages["rate"] == pytest.approx(
        cells / 1e6 / 4
    )  # there are no more
    assert "rate" not in predict(replace(JOB, fitted=False), Place("gpu"), parts).stages


def test_what_the_extension_takes_is_told_from_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def pass_by(seconds: float) -> float:
        now[0] += seconds
        return seconds

    monkeypatch.setattr(growth_parts.time, "process_time", lambda: now[0])
    clock = Clock(SimpleNamespace(search=pass_by))
    takes = iter([(4.0, 5.0), (3.0, 2.0)])  # the second turn is the shorter one

    def work() -> None:
        inside, outside = next(takes)
        assert clock.search(inside) == inside
        pass_by(outside)

    assert clock.divided(work, 2) == {"parallel": 3.0, "serial": 2.0}


def test_hits_grow_with_the_database_to_the_most_that_are_asked_for() -> None:
    parts = replace(PARTS, write=1.0)
    place = Place("cpu", 1, 1000)
    assert predict(JOB, place, parts).resources["Python"] == pytest.approx(1000 * 10)
    assert predict(replace(JOB, residues=10**12), place, parts).resources["Python"] == pytest.approx(1000 * 500)


def test_nothing_to_search_takes_no_time_but_the_start() -> None:
    assert seconds(Place("gpu"), Job(1, 1, 0)) == 2
    assert seconds(Place("cpu", 4, cluster=True), Job(0, 0, 0)) == 1 + 3


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.05, "0.05 s"), (1.234, "1.23 s"), (12.34, "12 s"), (119.9, "120 s"), (121, "2.02 min"), (3600 * 30, "30 h"),
     (86400 * 3, "3.00 d"), (86400 * 1000, "1000 d")],
)  # fmt: skip
def test_times_are_shown_in_a_unit_that_fits(value: float, text: str) -> None:
    assert growth.shown(value) == text


def test_a_cell_begins_with_a_number() -> None:
    assert number("1,234.5 (1 - 2)") == 1234.5


def test_points_that_are_not_there_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "read_json", lambda name: None)
    points = list(growth.points_in("devices.json"))
    assert [point.name for point in points] == list(growth.EXPECTED["devices.json"])
    lines = growth.comparison(points, PARTS)
    assert sum("| missing |" in line for line in lines) == len(points)


def test_points_are_read_as_they_are_described(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = {
        "about": {"heading": ["a machine"]},
        "points": [{
            "name": "one GPU opened twice", "engine": "gpu", "engines": 2, "distinct": 1, "threads": 16,
            "queries": 1000, "query_residues": 2 * GROUP_RESIDUES, "residues": 10**9, "seconds": 28.0,
            "turns": [28.0], "hits": 0,
        }],
    }  # fmt: skip
    monkeypatch.setattr(growth, "read_json", lambda name: stored)
    point = next(growth.points_in("devices.json"))
    assert (point.name, point.seconds) == ("one GPU opened twice", 28.0)
    assert point.place == Place("gpu", 2, 16, distinct=1)
    row = growth.comparison([point], PARTS)[-1]
    assert row.startswith(
        "| one GPU opened twice | devices.json | 28.00 | 14.00 | -50% | prepare 0.00, score 10.00, "
    )


RESULTS = ROOT / "benchmarks" / "results"


def test_the_report_is_that_of_the_numbers() -> None:
    stored = json.loads((RESULTS / "growth.json").read_text(encoding="utf-8"))
    again = (
        "python -m benchmarks.speed.growth --from benchmarks/results/growth.json --out benchmarks/results/growth.txt"
    )
    assert "\n".join(growth.report(stored)) + "\n" == (RESULTS / "growth.txt").read_text(encoding="utf-8"), again


def test_the_committed_parts_are_all_there_and_positive() -> None:
    stored, gpu = read_json("growth.json"), read_json("gpu.json")
    assert stored is not None
    assert gpu is not None
    parts = parts_of(stored["measured"], gpu)
    for name, value in vars(parts).items():
        if isinstance(value, float):
            assert math.isfinite(value), name
            assert value > 0, name
        assert name == "sources" or name in parts.sources, name
