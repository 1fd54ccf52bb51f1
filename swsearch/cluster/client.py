"""What the client of a search knows of its crew: shares of volumes, tasks that are under way, and waiting for them.

Tasks are submitted as far as there is room, so that the client's memory does not grow with their number.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from swsearch.blocks import IntArray
from swsearch.cluster.sent import AllowedPart, VolumeWork, to_bytes
from swsearch.cluster.transport import Task
from swsearch.engines.cpu import extension
from swsearch.pipeline.prefetch import Ahead, check_wanted, work_of_thread

if TYPE_CHECKING:
    from swsearch.cluster.crew import Crew
    from swsearch.db.volumes import Volume

HEARING = 0.1
"""Seconds after which a thread that waits for tasks looks whether they are wanted."""

Given = TypeVar("Given")
Gained = TypeVar("Gained")

MODULE = "swsearch.cluster.tasks"


class HasCrew(Protocol):
    """What a crew belongs to; it closes the crew."""

    crew: Crew
    is_closed: bool


@dataclass(frozen=True)
class TaskShare:
    """A part of a volume that is scored as one task.

    Parameters
    ----------
    volume : int
        Which of the database's volumes.
    place, of : int
        Which of how many shares of it.
    n_residues : int
        Residues, as nearly as is known without reading it; those of all shares are those of the volume.
    """

    volume: int
    place: int
    of: int
    n_residues: int


def shares_of(volumes: Sequence[Volume], wanted: int) -> list[TaskShare]:
    """Cut volumes into about ``wanted`` shares, or one for each volume where these are more, of about equal size."""
    total = max(sum(each.residue_bytes for each in volumes), 1)
    shares = []
    for number, volume in enumerate(volumes):
        of = max(round(wanted * volume.residue_bytes / total), 1)
        cuts = [volume.n_residues * place // of for place in range(of + 1)]
        shares += [TaskShare(number, place, of, cuts[place + 1] - cuts[place]) for place in range(of)]
    return shares


class Remote:
    """Submits the tasks of a search on a database's volumes.

    Parameters
    ----------
    engine : HasCrew
        Has the crew. Once it is closed, pairs are computed here, as those of hits whose alignments are asked for
        after the search.
    volumes : sequence of Volume
        Of the database, in order.
    work : callable
        Makes a `VolumeWork` of a volume's number.
    wanted : int
        Shares that the database is cut into.
    """

    def __init__(
        self, engine: HasCrew, volumes: Sequence[Volume], work: Callable[[int], VolumeWork], wanted: int
    ) -> None:
        self.engine, self.volumes = engine, volumes
        self.shares = shares_of(volumes, wanted)
        self.firsts: IntArray = np.array([each.first for each in volumes], dtype=np.int64)
        self._work = work
        self._common: dict[int, bytes] = {}

    @property
    def crew(self) -> Crew:
        """Who does tasks."""
        return self.engine.crew

    @property
    def is_closed(self) -> bool:
        """Whether there is nobody any more to do tasks."""
        return self.engine.is_closed

    def common(self, volume: int) -> bytes:
        """Return what all tasks on a volume have in common, as bytes."""
        found = self._common.get(volume)
        if found is None:
            found = self._common.setdefault(volume, to_bytes(self._work(volume)))
        return found

    def submit(
        self, function: str, payload: bytes, near: Hashable, cells: int, is_urgent: bool = False
    ) -> Future[bytes]:
        """Submit a task of `swsearch.cluster.tasks`."""
        return self.crew.submit(Task(f"{MODULE}:{function}", payload, near, cells, is_urgent))

    def score(self, group: bytes, rows: int) -> Iterator[tuple[TaskShare, Future[bytes]]]:
        """Submit the tasks of a group of queries of so many residues, each when there is room, the largest first."""
        waiting: set[Future[bytes]] = set()
        for share in self.shares:
            while waiting and self.crew.room <= 0:
                waiting = wait_for_some(waiting)
            volume = self.volumes[share.volume]
            payload = to_bytes((self.common(share.volume), group, share.place, share.of))
            near = (volume.path, share.place, share.of)
            future = self.submit("score", payload, near, rows * share.n_residues)
            waiting.add(future)
            yield share, future

    def volumes_of(self, subjects: IntArray) -> IntArray:
        """Return which volume each subject is in, by places in the input, shape (n,)."""
        found: IntArray = np.searchsorted(self.firsts, subjects, side="right") - 1
        return found


def wait_for_some(futures: set[Future[bytes]]) -> set[Future[bytes]]:
    """Wait for a moment, or until one of some tasks is done; return those that are not."""
    check_wanted()
    return wait(futures, HEARING, FIRST_COMPLETED).not_done


def result_of(future: Future[Any]) -> Any:
    """Wait for a task, as long as it is wanted, and return its result."""
    while not future.done():
        check_wanted()
        wait([future], HEARING)
    return future.result()


def results_of(futures: Sequence[Future[bytes]]) -> list[bytes]:
    """Wait for tasks, and return their results; where one fails the others are not waited for."""
    try:
        return [result_of(future) for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def side_by_side(work: Callable[[Given], Gained], items: Iterable[Given], n: int) -> Generator[Gained]:
    """Do something with items, about ``n`` at a time, each in a thread; yield what comes of it, in order.

    Items are taken as they come. When the caller's work is stopped, so is that of the threads.
    """
    number, alive = work_of_thread(), deque[Future[Gained]]()

    def begun() -> Generator[Future[Gained]]:
        for item in items:
            alive.append(_begun(work, item, number))
            yield alive[-1]

    try:
        with Ahead(begun(), "feed", max(n - 2, 1)) as coming:
            for future in coming:
                made = result_of(future)
                alive.remove(future)
                yield made
                del made, future
    finally:
        wait(alive, timeout=1.0)


def _begun(work: Callable[[Given], Gained], item: Given, number: int) -> Future[Gained]:
    """Do something in a thread that is stopped as the work of a number is."""
    future: Future[Gained] = Future()

    def run() -> None:
        try:
            extension.load().work_on(number)
            future.set_result(work(item))
        except BaseException as error:  # it is raised again where the result is asked for
            future.set_exception(error)

    try:
        threading.Thread(target=run, name="swsearch-beside", daemon=True).start()
    except RuntimeError:  # no thread to be had
        run()
    return future


def allowed_part(allowed: np.ndarray[Any, Any] | None, first: int, n: int) -> AllowedPart | None:
    """Return the part of what is allowed, shape (n_subjects,), that is of a volume."""
    return None if allowed is None else AllowedPart.of(allowed[first : first + n])
