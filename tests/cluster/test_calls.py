"""Calls on a worker: what becomes of them, how they stop, and errors as bytes."""

from __future__ import annotations

import inspect
import threading

import pytest

from support import crew_tasks
from swsearch import errors
from swsearch.cluster.calls import (
    ERROR,
    RESULT,
    STOPPED,
    packed_error,
    run_call,
    stop_calls,
    unpacked_error,
)
from swsearch.cluster.transport import WorkerPlace
from swsearch.errors import ClusterError, DatabaseDamageError, MemoryLimitError, OptionError, SequenceError
from swsearch.pipeline.prefetch import Stopped, check_wanted

PLACE = WorkerPlace(0, 0, 1, 0, "here")
SOON = 20


def call(name: str, payload: bytes = b"", **options) -> tuple[str, bytes]:
    return run_call("key", f"support.crew_tasks:{name}", payload, PLACE, **options)


def test_a_result_is_bytes() -> None:
    assert call("double", b"ab") == (RESULT, b"abab")


def test_an_error_is_bytes() -> None:
    what, packed = call("no_file", b"v.h5")
    assert what == ERROR
    assert str(unpacked_error(packed)) == "v.h5: no such database; check the name"


@pytest.mark.parametrize("function", ["no.such.module:f", "support.crew_tasks:nothing", "nothing", ""])
def test_what_does_not_exist_is_an_error(function: str) -> None:
    what, packed = run_call("key", function, b"", PLACE)
    assert what == ERROR
    assert type(unpacked_error(packed)) is ClusterError


def test_a_call_stops_wherever_it_is() -> None:
    crew_tasks.begun.clear()
    told = []
    thread = threading.Thread(target=lambda: told.append(call("endless")))
    thread.start()
    assert crew_tasks.begun.wait(SOON)
    assert stop_calls("other") == 0
    assert stop_calls("ke") == 1
    assert stop_calls("ke") == 0
    thread.join(SOON)
    assert told == [(STOPPED, b"")]
    assert call("double", b"a") == (RESULT, b"aa")  # in a thread that has not been told


def test_a_call_that_was_stopped_before_it_began_does_nothing() -> None:
    crew_tasks.begun.clear()
    assert call("endless", is_wanted=lambda: False) == (STOPPED, b"")
    assert not crew_tasks.begun.is_set()


def test_what_ends_in_spite_of_being_stopped_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    def deaf(payload: bytes, place: WorkerPlace) -> bytes:
        stop_calls("key")
        with pytest.raises(Stopped):
            check_wanted()
        return b"after all"

    monkeypatch.setattr(crew_tasks, "double", deaf)
    assert call("double") == (STOPPED, b"")


def test_nothing_is_stopped_outside_of_a_call() -> None:
    assert stop_calls("") == 0
    check_wanted()


@pytest.mark.parametrize(
    "error",
    [
        OptionError("matrix", 3, "a name", "see the list"),
        SequenceError("a.fa", "bad byte", "sp|P1", 12),
        DatabaseDamageError("v.h5", ["one", "two"]),
        MemoryLimitError("2 GiB do not fit"),
        *(
            kind("a sentence")
            for _, kind in inspect.getmembers(errors, inspect.isclass)
            if issubclass(kind, errors.SwsearchError) and kind.__init__ is errors.SwsearchError.__init__
        ),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_of_ours_travel_as_they_are(error: Exception) -> None:
    come = unpacked_error(packed_error(error))
    assert type(come) is type(error)
    assert str(come) == str(error)
    assert vars(come) == vars(error)
    assert come.exit_code == error.exit_code


def test_other_errors_become_one_of_ours() -> None:
    assert str(unpacked_error(packed_error(KeyError("a\nb")))) == "KeyError: 'a\\nb'"
    assert type(unpacked_error(packed_error(MemoryError()))) is MemoryLimitError
    cyclic = ClusterError("with a thread")
    cyclic.thread = threading.Lock()
    assert str(unpacked_error(packed_error(cyclic))) == "with a thread"


def test_an_error_that_cannot_be_read_is_one() -> None:
    assert "could not be read" in str(unpacked_error(b"nonsense"))
