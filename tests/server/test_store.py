"""Jobs on the disk: all or nothing, whatever there is room for, and whose turn it is."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.houses import CLIENT, OTHER, asked
from support.samples import random_cases
from swsearch.errors import InputError, OutputError
from swsearch.server.errors import ServerProblem
from swsearch.server.job_store import MAX_DEATHS, Job, JobStore, new_identifier, payer_of


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    made = JobStore(tmp_path / "folder")
    yield made
    made.close()


def job(**changes: Any) -> Job:
    identifier = new_identifier()
    known = {
        "identifier": identifier, "group": identifier, "client": CLIENT, "database": "small", "title": "",
        "options": {"max_hits": 3}, "n_queries": 1, "n_residues": 10, "cells": 100, "submitted": time.time(),
        **changes,
    }  # fmt: skip
    return Job(**{"payer": payer_of(str(known["client"])), **known})


def added(store: JobStore, **changes: Any) -> Job:
    made = job(**changes)
    store.add([made], [asked(1)], 1000, 1000)
    return store.job(made.identifier)


def test_a_second_server_is_told_of_the_first(store: JobStore) -> None:
    with pytest.raises(InputError, match="in use by another server; end that one, or give another --folder"):
        JobStore(store.folder)
    store.close()
    JobStore(store.folder).close()


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OutputError, match="cannot be used"):
        JobStore(tmp_path / "file" / "folder")
    (tmp_path / "jobs.sqlite").write_bytes(b"no database at all" * 1000)
    for _ in range(2):
        with pytest.raises(InputError, match="cannot be read"):
            JobStore(tmp_path)
    (tmp_path / "jobs.sqlite").unlink()
    table = sqlite3.connect(tmp_path / "jobs.sqlite")
    table.execute("PRAGMA user_version = 1")
    table.close()
    with pytest.raises(InputError, match="is of version 1, expected 3; let the version of swsearch that wrote it"):
        JobStore(tmp_path)


def test_what_was_left_without_a_row_is_removed(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    made = added(store)
    store.checkpoint_of(made.identifier).mkdir(parents=True)
    store.checkpoint_of(new_identifier()).mkdir(parents=True)
    store.close()
    again = JobStore(tmp_path)
    assert [each.name for each in (tmp_path / "jobs").iterdir()] == [made.identifier]
    again.close()


def died(store: JobStore) -> JobStore:
    """Begin again as after the death of a server."""
    store.close()
    return JobStore(store.folder)


def test_jobs_that_were_running_begin_again_but_not_for_ever(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    made, waiting = added(store), added(store, client=OTHER)
    for death in range(1, MAX_DEATHS + 1):
        assert store.claim(2) is not None
        store = died(store)
        assert store.job(made.identifier).state == ("queued" if death < MAX_DEATHS else "failed")
        assert store.job(waiting.identifier).state == "queued"
        if death < MAX_DEATHS:  # the other one had a turn meanwhile, which leaves this one first again
            store._table.execute("UPDATE jobs SET begun = NULL")
    failed = store.job(made.identifier)
    assert failed.ended is not None
    assert failed.problem is not None
    assert "the server died 3 times while this job ran, without progress" in failed.problem["message"]
    store.close()


def test_deaths_of_a_job_that_advances_are_not_counted(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    made = added(store)
    checkpoint = store.checkpoint_of(made.identifier)
    checkpoint.mkdir(parents=True)
    for death in range(2 * MAX_DEATHS):
        assert store.claim(1) is not None
        (checkpoint / f"queries-{death + 1:09d}").touch()
        (checkpoint / f"queries-{death:09d}").unlink(missing_ok=True)  # nothing of it counts any more
        store = died(store)
    for _ in range(MAX_DEATHS):
        assert store.job(made.identifier).state == "queued"
        assert store.claim(1) is not None
        store = died(store)
    assert store.job(made.identifier).state == "failed"
    store.close()


def test_lists_are_in_order(store: JobStore) -> None:
    first, second = added(store), added(store)
    third = added(store, client=OTHER, group=first.identifier)

    def names(jobs: list[Job]) -> list[str]:
        return [each.identifier for each in jobs]

    assert names(store.jobs_of(CLIENT, 10)) == [second.identifier, first.identifier]
    assert names(store.jobs_of(CLIENT, 1)) == [second.identifier]
    assert store.jobs_of(CLIENT, 10, ["done"]) == []
    assert names(store.group(third.identifier)) == [first.identifier, third.identifier]
    assert store.end(second.identifier, "queued", "done", -1.0, n_hits=3, notes=("x",))
    assert not store.end(second.identifier, "queued", "cancelled", 1.0)
    assert store.counts() == {"queued": 2, "done": 1}
    assert store.expired() == [second.identifier]
    found = store.job(second.identifier)
    assert (found.state, found.n_hits, found.notes, found.progress) == ("done", 3, ("x",), 1.0)


def test_a_job_that_is_gone_is_remembered_for_a_while(store: JobStore) -> None:
    first, second = added(store), added(store)
    store.delete(first.identifier, time.time() + 1000)
    store.delete(second.identifier)
    with pytest.raises(ServerProblem, match="its time is over") as caught:
        store.job(first.identifier)
    assert caught.value.status == 410
    with pytest.raises(ServerProblem) as caught:
        store.request(second.identifier)
    assert caught.value.status == 404
    store.delete(first.identifier, time.time() - 1)
    store.delete(second.identifier)
    with pytest.raises(ServerProblem) as caught:
        store.job(first.identifier)
    assert caught.value.status == 404


def test_without_room_nothing_is_added(store: JobStore) -> None:
    before = added(store)
    store._table.execute("PRAGMA max_page_count = 1")
    with pytest.raises(ServerProblem, match="no room") as caught:
        for _ in range(200):  # until the pages that there are do not do
            store.add([job(), job(title="x" * 4000)], [asked(1), asked(1)], 9999, 9999)
    assert caught.value.status == 507
    found = [each.identifier for each in store.jobs_of(CLIENT, 9999)]
    assert found[-1] == before.identifier
    assert len(found) % 2 == 1
    store.delete(before.identifier)
    assert len(store.jobs_of(CLIENT, 9999)) == len(found) - 1


def test_only_its_owner_may_read_the_folder(store: JobStore) -> None:
    assert store.folder.stat().st_mode & 0o777 == 0o700
    assert (store.folder / "jobs").stat().st_mode & 0o777 == 0o700
    with pytest.raises(AssertionError):
        store.checkpoint_of("../..")


# whose turn it is


def claimed(store: JobStore, n_workers: int = 1000) -> Job:
    found = store.claim(n_workers)
    assert found is not None
    return found


def test_clients_take_turns_and_the_jobs_of_each_stay_in_order(store: JobStore) -> None:
    for name in ("a1", "a2", "a3", "b1", "c1", "c2"):
        added(store, title=name, client=name[0])
    titles = [store.claim(1000) for _ in range(6)]
    assert [each.title for each in titles if each] == ["a1", "b1", "c1", "a2", "c2", "a3"]
    assert store.claim(1000) is None


def test_whoever_had_a_turn_comes_after_those_who_had_none(store: JobStore) -> None:
    for name in ("a1", "a2", "b1"):
        added(store, title=name, client=name[0])
    assert claimed(store).title == "a1"
    added(store, title="c1", client="c")
    assert [claimed(store).title for _ in range(3)] == ["b1", "c1", "a2"]


@random_cases(30)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3)), max_size=25))
def test_a_place_in_the_queue_is_the_number_of_jobs_that_are_claimed_before(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    """Jobs are added, claimed and cancelled in any order; then all are claimed as their places said."""
    store = JobStore(tmp_path_factory.mktemp("turns"))
    waiting: list[str] = []
    for client, what in steps:
        if what == 0 and waiting:
            assert store.end(waiting.pop(len(waiting) // 2), "queued", "cancelled", 1.0)
        elif what == 1 and waiting:
            waiting.remove(claimed(store).identifier)
        else:
            waiting.append(added(store, client=client).identifier)
    places = {name: store.job(name).place for name in waiting}
    assert places == {claimed(store).identifier: place for place in range(len(waiting))}
    store.close()


def test_whoever_comes_later_finds_a_worker(store: JobStore) -> None:
    def claim_all() -> Counter[str]:
        return Counter(found.client for found in iter(lambda: store.claim(8), None))

    for client, expected in (("a", {"a": 4}), ("b", {"b": 2}), ("c", {"c": 1}), ("d", {"d": 1}), ("e", {})):
        for _ in range(1 if client in "cde" else 20):
            added(store, client=client)
        assert claim_all() == expected
    assert store.end(store.jobs_of("d", 1)[0].identifier, "running", "done", 1.0)
    assert claim_all() == {"e": 1}
