"""Stages of a search: generators in a row, each in a thread of its own, so that all work at the same time.

Each stage waits for the next when it is ahead by a batch, so that memory stays flat however many queries there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import groupby
from typing import Any

from swsearch.pipeline.backend import PendingSelection, Session
from swsearch.pipeline.batch import Batch, QueryState
from swsearch.pipeline.iteration_queue import Rounds
from swsearch.pipeline.prefetch import Ahead, InPlace, Item, Stopped
from swsearch.pipeline.subjects import SubjectReader

PENDING_BATCHES = 2
"""Batches that are being selected at a time: the next one is begun before one is waited for."""


class Stages:
    """The stages of one search, in the order in which they are added."""

    def __init__(self) -> None:
        self._in_threads = True
        self._stages: list[Ahead[Any] | InPlace[Any]] = []
        self._closing: list[Callable[[], None]] = []
        self._is_stopped = False

    def begin(self, in_threads: bool) -> None:
        """Say whether each stage has a thread; otherwise all work when the last one is asked."""
        self.check_wanted()
        self._in_threads = in_threads

    def add(self, name: str, items: Generator[Item]) -> Iterator[Item]:
        """Run a generator as the next stage, and return its items."""
        if not self._in_threads:
            return items
        stage = Ahead(items, name)
        self._stages.append(stage)
        return stage

    def last(self, name: str, items: Generator[Item]) -> Iterator[Item]:
        """Return the items of the last stage, which end with `Stopped` once the search was stopped."""
        self._stages.append(Ahead(items, name) if self._in_threads else InPlace(items))
        self.check_wanted()
        yield from self._stages[-1]

    def on_close(self, call: Callable[[], None]) -> None:
        """Let something be called when the stages are closed, before they are: what a stage waits for."""
        self._closing.append(call)

    def check_wanted(self) -> None:
        """Raise `Stopped` if the search was stopped."""
        if self._is_stopped:
            raise Stopped

    def close(self) -> None:
        """End all threads, the first one first: those after it wait for it."""
        for call in self._closing:
            call()
        for stage in list(self._stages):
            stage.close()

    def stop(self) -> None:
        """End the search from any thread, at any time."""
        self._is_stopped = True
        self.close()


def prepare_batches(batches: Iterable[Batch], session: Session) -> Generator[tuple[Batch, Any]]:
    """Make batches ready to be scored, but for those that were."""
    for batch in batches:
        yield batch, None if batch.is_scored else session.prepare(batch.queries)


def select_subjects(
    batches: Iterator[tuple[Batch, Any]], session: Session
) -> Generator[tuple[Batch, PendingSelection | None]]:
    """Select the subjects of batches; where the backend can, the next batch is begun before one is waited for.

    The next batch is taken only if it is there: in iterations it may come of one that is still being selected.
    """
    begun: deque[tuple[Batch, PendingSelection | None]] = deque()

    def first() -> tuple[Batch, PendingSelection | None]:
        batch, pending = begun.popleft()
        if pending is not None:
            pending.wait()
        return batch, pending

    while True:
        if begun and not (isinstance(batches, Ahead) and batches.is_ready()):
            yield first()
            continue
        batch, ready = next(batches, (None, None))
        if batch is None:
            break
        begun.append((batch, None if batch.is_scored else session.select(ready)))
        while begun and (len(begun) >= PENDING_BATCHES or begun[0][1] is None or begun[0][1].is_ready()):
            yield first()
    while begun:
        yield first()


def collect_selections(batches: Iterable[tuple[Batch, PendingSelection | None]]) -> Generator[Batch]:
    """Collect what was selected, which takes neither engine nor subjects: the next batch is scored meanwhile."""
    for batch, pending in batches:
        yield batch if pending is None else batch.having(pending.selections())


def restore_order(batches: Iterable[Batch], rounds: Rounds | None = None, first: int = 0) -> Generator[Batch]:
    """Hold states back until all before them are there, and yield them in order.

    New queries begin as these go on, so that every chain with rounds has this stage.

    Parameters
    ----------
    batches : iterable of Batch
        Those of a query once.
    rounds : Rounds, optional
        Begins new queries.
    first : int, optional
        The place of the first state.
    """
    held: dict[int, tuple[QueryState, SubjectReader]] = {}
    place = first
    for batch in batches:
        held.update((state.place, (state, batch.subjects)) for state in batch.states)
        ready: list[tuple[QueryState, SubjectReader]] = []
        while place in held:
            ready.append(held.pop(place))
            place += 1
        if rounds is not None:
            rounds.passed_on(place)
        yield from batches_of(ready)


def batches_of(states: Iterable[tuple[QueryState, SubjectReader]]) -> Iterator[Batch]:
    """Return states in batches of those that have their subjects in common."""
    for _, some in groupby(states, key=lambda each: id(each[1])):
        each = list(some)
        yield Batch([state for state, _ in each], each[0][1])
