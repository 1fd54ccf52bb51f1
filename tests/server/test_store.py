"""Jobs on the disk: all or nothing, whatever there is room for."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.houses import CLIENT, OTHER, asked
from swsearch.errors import InputError, OutputError
from swsearch.server import store as store_module
from swsearch.server.jobs import Job, new_identifier
from swsearch.server.problems import ServerProblem
from swsearch.server.store import MOST_DEATHS, Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "folder")
    yield made
    made.close()


def job(**changes: Any) -> Job:
    identifier = new_identifier()
    known = {
        "identifier": identifier, "group": identifier, "client": CLIENT, "database": "small", "title": "",
        "notes": (), "state": "queued", "options": {"max_hits": 3}, "n_queries": 1, "n_residues": 10,
        "submitted": time.time(),
    }  # fmt: skip
    return Job(**{**known, **changes})


def added(store: Store, **changes: Any) -> Job:
    made = job(**changes)
    store.add([made], [asked(1)])
    return made


def test_what_was_added_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    request, made = asked(2, max_hits=7), job(title="\u00fc \"'", notes=("a", "b"))
    store.add([made], [request])
    store.close()
    again = Store(tmp_path)
    assert again.job(made.identifier) == made
    assert again.request(made.identifier) == request
    assert again.queries(made.identifier) == request.queries
    again.close()


def test_a_second_server_is_told_of_the_first(store: Store) -> None:
    with pytest.raises(InputError, match="in use by another server; end that one, or give another --folder"):
        Store(store.folder)
    store.close()
    Store(store.folder).close()


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OutputError, match="cannot be used"):
        Store(tmp_path / "file" / "folder")
    (tmp_path / "jobs.sqlite").write_bytes(b"no database at all" * 1000)
    for _ in range(2):
        with pytest.raises(InputError, match="cannot be read"):
            Store(tmp_path)
    (tmp_path / "jobs.sqlite").unlink()
    table = sqlite3.connect(tmp_path / "jobs.sqlite")
    table.execute("PRAGMA user_version = 99")
    table.close()
    with pytest.raises(InputError, match="is of version 99"):
        Store(tmp_path)


def test_what_was_left_without_a_row_is_removed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    made = added(store)
    store.close()
    (tmp_path / "jobs" / new_identifier()).mkdir()
    (tmp_path / "jobs" / new_identifier() / "checkpoint").mkdir(parents=True)
    again = Store(tmp_path)
    assert [each.name for each in (tmp_path / "jobs").iterdir()] == [made.identifier]
    again.close()


def test_jobs_that_were_running_begin_again_but_not_for_ever(tmp_path: Path) -> None:
    store = Store(tmp_path)
    made = [added(store), added(store, state="done"), added(store)]
    store.close()
    for death in range(1, MOST_DEATHS + 1):
        store = Store(tmp_path)
        queued = [each.identifier for each in store.restarted()]
        store.update(made[0].identifier, state="running", begun=1.0)
        if death < MOST_DEATHS:
            assert queued == [made[0].identifier, made[2].identifier]
        store.close()
    store = Store(tmp_path)
    assert [each.identifier for each in store.restarted()] == [made[2].identifier]
    failed = store.job(made[0].identifier)
    assert (failed.state, failed.ended is not None) == ("failed", True)
    assert failed.problem is not None
    assert "the server died 3 times while this job ran" in failed.problem["message"]
    store.close()


def test_lists_are_in_order(store: Store) -> None:
    first, second = added(store), added(store)
    third = added(store, client=OTHER, group=first.identifier)
    assert store.jobs_of(CLIENT, 10) == [second, first]
    assert store.jobs_of(CLIENT, 1) == [second]
    assert store.group(first.identifier) == [first, third]
    assert store.in_state("queued", "running") == [first, second, third]
    store.update(second.identifier, state="done", expires=5.0, n_hits=3, notes=("x",))
    assert store.counts() == {"queued": 2, "done": 1}
    assert (store.expired(4.9), store.expired(5.0)) == ([], [second.identifier])
    found = store.job(second.identifier)
    assert (found.state, found.n_hits, found.notes, found.progress) == ("done", 3, ("x",), 1.0)


def test_a_job_that_is_gone_is_remembered_for_a_while(store: Store) -> None:
    first, second = added(store), added(store)
    store.forget(first.identifier, time.time() + 1000)
    store.clear(first.identifier)
    store.forget(second.identifier)
    with pytest.raises(ServerProblem, match="its time is over") as caught:
        store.job(first.identifier)
    assert caught.value.status == 410
    with pytest.raises(ServerProblem) as caught:
        store.job(second.identifier)
    assert caught.value.status == 404
    store.forget(first.identifier, time.time() - 1)
    store.forget(second.identifier)
    with pytest.raises(ServerProblem) as caught:
        store.job(first.identifier)
    assert caught.value.status == 404


def full(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("what", ["_write", "sync_folder", "table"])
def test_without_room_nothing_is_added(store: Store, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    before = added(store)
    if what == "table":
        assert store._table is not None
        store._table.execute("PRAGMA max_page_count = 1")
    else:
        monkeypatch.setattr(store_module, what, full)
    with pytest.raises(ServerProblem, match="no room") as caught:
        for _ in range(200):  # until the pages that there are do not do
            store.add([job(), job(title="x" * 4000)], [asked(1), asked(1)])
    assert caught.value.status == 507
    rows = {each.identifier for each in store.in_state("queued")}
    assert before.identifier in rows
    assert {each.name for each in (store.folder / "jobs").iterdir()} == rows
    assert len(rows) % 2 == 1


def test_a_change_without_room_counts_and_is_kept_as_soon_as_there_is_some(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, other = added(store), added(store)
    real = store._save
    monkeypatch.setattr(store, "_save", full)
    store.update(made.identifier, state="failed", problem={"code": "disk_full", "message": "no room"})
    assert store.job(made.identifier).state == "failed"
    monkeypatch.setattr(store, "_save", real)
    store.update(other.identifier, state="running")
    store.close()
    again = Store(store.folder)
    found = again.job(made.identifier)
    assert (found.state, found.problem) == ("failed", {"code": "disk_full", "message": "no room"})
    again.close()


def test_a_job_is_gone_from_a_full_disk_whether_or_not_there_is_room_before_the_end(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_table(*_: object) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    made, expired, other = added(store), added(store, expires=1.0), added(store)
    real = store._save
    monkeypatch.setattr(store, "_save", full_table)
    for each, until in ((made, None), (expired, time.time() + 60)):
        store.forget(each.identifier, until)
        store.clear(each.identifier)
        with pytest.raises(ServerProblem) as caught:
            store.job(each.identifier)
        assert caught.value.code == ("not_found" if until is None else "expired")
    assert [each.identifier for each in store.jobs_of(CLIENT, 9)] == [other.identifier]
    assert store.expired(time.time()) == []
    store.close()  # without room to the end
    again = Store(store.folder)
    assert again.counts() == {"queued": 1}
    monkeypatch.setattr(again, "_save", full_table)
    again.forget(other.identifier, time.time() + 60)
    monkeypatch.setattr(again, "_save", real.__func__.__get__(again))
    again.update(made.identifier, state="done")
    again.close()
    with sqlite3.connect(store.folder / "jobs.sqlite") as table:
        assert table.execute("SELECT (SELECT COUNT(*) FROM jobs), (SELECT COUNT(*) FROM gone)").fetchone() == (0, 1)
    table.close()


def test_only_its_owner_may_read_the_folder(store: Store) -> None:
    made = added(store)
    for path in (store.folder, store.folder_of(made.identifier), store.folder / "jobs.sqlite"):
        assert path.stat().st_mode & 0o077 == 0 or path.parent.stat().st_mode & 0o077 == 0
    assert store.folder.stat().st_mode & 0o777 == 0o700
    with pytest.raises(AssertionError):
        store.folder_of("../..")
