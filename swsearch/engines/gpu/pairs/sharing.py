"""Who does which part of the pairs: a thread for each device, and one queue that all of them take from.

Nothing here knows what a part computes, or on what; `several` cuts the pairs and puts results in order.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from swsearch.engines.gpu.pairs.aligner import GpuPairAligner
from swsearch.engines.gpu.worker import is_failure
from swsearch.errors import EngineError, MemoryLimitError, SwsearchError
from swsearch.processors import OwnProcess, has_room_for_threads

PartResult = TypeVar("PartResult")
"""What a part is found to be: a list of alignments or of scores, or a table."""


class PairPart(Generic[PartResult]):
    """Some pairs: what is to be done with them, and, later, what was found or why nothing was.

    Parameters
    ----------
    run : callable
        Does them on an aligner; may be called again on another one.
    """

    def __init__(self, run: Callable[[GpuPairAligner], PartResult]) -> None:
        self.run = run
        self.refused: dict[int, MemoryLimitError] = {}
        """By places of devices: those that have too little memory for it."""
        self._done = threading.Event()
        self._found: list[PartResult] = []
        self._error: BaseException | None = None

    @property
    def is_done(self) -> bool:
        """Whether `wait` would return at once."""
        return self._done.is_set()

    def finish(self, found: PartResult) -> None:
        """Say what was found."""
        self._found.append(found)
        self._done.set()

    def fail(self, error: BaseException) -> None:
        """Say why nothing was found."""
        self._error = error
        self._done.set()

    def wait(self) -> None:
        """Wait until it is done, or has failed."""
        self._done.wait()

    def result(self) -> PartResult:
        """Return what was found, once; raise what went wrong."""
        if self._error is not None:
            raise self._error
        return self._found.pop()


class PairSharing:
    """Devices and the parts that wait for them.

    Parameters
    ----------
    opening : sequence of callable
        Make the aligner of each device; called in its thread, which also closes it.
    """

    def __init__(self, opening: Sequence[Callable[[], GpuPairAligner]]) -> None:
        self._changed, self._process = threading.Condition(), OwnProcess("this engine")
        self._waiting: deque[PairPart[Any]] = deque()
        self._made: dict[int, GpuPairAligner] = {}
        self._refused: dict[int, BaseException] = {}
        self._idle: set[int] = set()
        self._lost: dict[int, BaseException] = {}
        self._told: set[int] = set()
        self._closed = False
        self._n = len(opening)
        self._threads = [
            threading.Thread(target=self._work, args=(place, make), name=f"swsearch-pairs-{place}", daemon=True)
            for place, make in enumerate(opening)
        ]
        has_room = has_room_for_threads(self._n)
        for place, thread in enumerate(self._threads):
            try:
                if not has_room:
                    raise RuntimeError("a limit of memory, ulimit -v, is near")
                thread.start()
            except RuntimeError as error:  # no thread to be had
                with self._changed:
                    self._refused[place] = EngineError(
                        f"no thread for a GPU could be started ({error}); allow more processes and memory, or use "
                        "one device"
                    )

    @property
    def aligners(self) -> list[GpuPairAligner]:
        """Those of the devices that were opened, in the order given."""
        return [self._made[place] for place in sorted(self._made)]

    def opened(self) -> list[BaseException]:
        """Wait until every device was opened or could not be; return why those could not, in the order given."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._idle) + len(self._refused) == self._n)
            return [self._refused[place] for place in sorted(self._refused)]

    def put(self, run: Callable[[GpuPairAligner], PartResult]) -> PairPart[PartResult]:
        """Add a part to the end of the queue."""
        self._process.check()
        part = PairPart(run)
        with self._changed:
            self._waiting.append(part)
            self._settle()
        return part

    def drop(self, parts: Iterable[PairPart[Any]]) -> None:
        """Forget parts that nobody wants any more; those that were begun are done."""
        unwanted = set(map(id, parts))
        with self._changed:
            self._waiting = deque(part for part in self._waiting if id(part) not in unwanted)

    def losses(self) -> list[str]:
        """Say of devices that failed since this was last asked for that others do their work, if any is left."""
        with self._changed:
            new = sorted(self._lost.keys() - self._told) if self._alive() else []
            self._told.update(new)
            told = "is left out, and the other devices do its work"
            return [f"{self._made[place].info} {told}: {self._lost[place]}" for place in new]

    def close(self) -> None:
        """Let the threads close their devices and end; parts that wait fail."""
        if not self._process.is_here:
            return
        with self._changed:
            self._closed = True
            for aligner in self._made.values():
                aligner.stop()
            self._settle()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _work(self, place: int, make: Callable[[], GpuPairAligner]) -> None:
        """Open a device, do parts until it fails or nobody wants more, and close it: what its thread does."""
        try:
            aligner = make()
        except BaseException as error:
            with self._changed:
                self._refused[place] = error
                self._settle()
            return
        with self._changed:
            self._made[place] = aligner
            self._changed.notify_all()
        try:
            while (part := self._next(place)) is not None:
                self._do(place, aligner, part)
        finally:
            with suppress(SwsearchError):  # a device that failed cannot be closed either
                aligner.close()

    def _do(self, place: int, aligner: GpuPairAligner, part: PairPart[Any]) -> None:
        try:
            found = part.run(aligner)
        except MemoryLimitError as error:
            part.refused[place] = error
        except BaseException as error:
            with self._changed:
                if self._closed or not is_failure(error):  # what is wrong with the pairs is wrong everywhere
                    part.fail(error)
                    return
                self._lost[place] = error
        else:
            with self._changed:  # idle before anybody knows that it is done, so that the next part may come here
                self._idle.add(place)
                part.finish(found)
            return
        with self._changed:
            self._waiting.appendleft(part)
            self._settle()

    def _next(self, place: int) -> PairPart[Any] | None:
        """Wait for a part that no idle device with more multiprocessors takes; None where the thread is to end."""
        with self._changed:
            self._idle.add(place)
            try:
                self._changed.notify_all()
                while not self._closed and place not in self._lost:
                    for part in self._waiting:
                        if self._first_for(part) == place:
                            self._waiting.remove(part)
                            return part
                    self._changed.wait()
                return None
            finally:
                self._idle.discard(place)
                self._changed.notify_all()

    def _first_for(self, part: PairPart[Any]) -> int | None:
        """Return the place of the idle device that a part goes to: the one with the most multiprocessors."""
        able = sorted(self._idle - part.refused.keys())
        return max(able, key=lambda place: self._made[place].info.multiprocessors) if able else None

    def _alive(self) -> set[int]:
        return set(range(self._n)) - self._refused.keys() - self._lost.keys()

    def _settle(self) -> None:
        """Fail the parts that no device is left for, and wake all threads; the lock must be held."""
        alive = self._alive()
        for part in list(self._waiting):
            if self._closed:
                part.fail(EngineError("the aligner was closed"))
            elif not alive - part.refused.keys():
                part.fail((part.refused and part.refused[min(part.refused)]) or self._lost[min(self._lost)])
            else:
                continue
            self._waiting.remove(part)
        self._changed.notify_all()
