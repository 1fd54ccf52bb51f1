"""Iterators that run ahead in threads.

The stages of a search are iterators. `PrefetchIterator` runs one in a thread of its own. It pauses when the next
stage falls behind, so that memory stays bounded. Items stay in order.
"""

from __future__ import annotations

import atexit
import itertools
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any, Generic, TypeVar

from swsearch import extension
from swsearch.processors import OwnProcess, can_start_threads

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

CHECK_SECONDS = 0.1
"""Seconds after which a wait for another thread checks whether the work is still wanted."""

SWITCH_SECONDS = 0.0002
"""Switch interval of the interpreter while stages run, in seconds; see `_SwitchInterval`."""


class SearchCancelled(BaseException):
    """Raised in a thread whose work is not wanted any more."""


def check_cancelled() -> None:
    """Raise `SearchCancelled` in a thread whose task was cancelled; call it between long steps."""
    if extension.load().is_stopped():
        raise SearchCancelled


def current_task() -> int:
    """Return the number of the work that this thread does, by which others can be stopped with it; 0 for none."""
    return int(getattr(_thread_state, "work", 0))


def begin_task() -> int:
    """Start numbered work in this thread, so that another thread may stop it."""
    number = next(_task_numbers)
    join_work(number)
    return number


def join_work(number: int) -> None:
    """Join the work of a number in this thread; see `current_task`."""
    extension.load().work_on(number)
    _thread_state.work = number


def cancel_task(number: int) -> None:
    """Make the threads of some work raise `SearchCancelled` at their next check."""
    extension.load().stop(number)


def end_task(number: int) -> None:
    """Release a number of `begin_task`; call it once, whether or not the work was stopped."""
    extension.load().forget(number)


class PrefetchIterator(Iterator[ItemT]):
    """The items of an iterator, made ahead in a thread.

    Errors of the iterator come when its next item is asked for. `close` ends the thread, whatever it does, and closes
    the iterator; any thread may call it, and one that waits for the next item then raises `SearchCancelled`. Where no
    thread can be had, items are made when they are asked for.

    Parameters
    ----------
    items : generator
        Used by the thread alone.
    name : str
        Of the thread.
    max_ahead : int, optional
        Items that may wait to be taken.
    """

    def __init__(self, items: Generator[ItemT], name: str, max_ahead: int = 1) -> None:
        self.name, self._shared, self._in_place = name, _Shared(items, max_ahead), InlineIterator(items)
        self._closing, self._process = threading.Lock(), OwnProcess("this search")
        self._thread: threading.Thread | None = None
        if can_start_threads():
            thread = threading.Thread(target=self._shared.run, name=f"swsearch-{name}", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no thread to be had
                return
            self._thread = thread
            _switch_interval.begin()
            _running.add(self)

    def __next__(self) -> ItemT:
        if self._thread is None:
            return next(self._in_place)
        if not self._shared.is_done:
            self._process.check()
        return self._shared.take()

    def is_ready(self) -> bool:
        """Return whether the next item is ready; False if it is made on request."""
        return self._thread is not None and bool(self._shared.n_made)

    @property
    def times(self) -> tuple[float, float, float]:
        """Seconds that the thread ran, that it waited for room, and that others waited for its items."""
        return self._shared.ran, self._shared.waited, self._shared.awaited

    def close(self) -> None:
        """End the thread, and drop its items."""
        if self._thread is None:
            self._in_place.close()
            return
        if not self._process.is_here:  # the thread is not, and may have held a lock
            return
        self._shared.stop()
        with self._closing:  # whoever comes second has nothing left to do
            if self._thread.is_alive():
                cancel_task(self._shared.work)
                try:
                    self._thread.join()
                finally:
                    end_task(self._shared.work)
            if self in _running:
                _switch_interval.end()
                _running.discard(self)

    def __enter__(self) -> PrefetchIterator[ItemT]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class InlineIterator(Iterator[ItemT]):
    """The items of an iterator, made on request in the caller's thread.

    Any thread may call `close`; the one that waits for an item, or asks for one later, then raises `SearchCancelled`.

    Parameters
    ----------
    items : generator
        Closed with this.
    """

    def __init__(self, items: Generator[ItemT]) -> None:
        self._items, self._guard = items, threading.Lock()
        self._work = 0
        self._is_closed = False

    def __next__(self) -> ItemT:
        before = current_task()
        try:
            with self._guard:
                if self._is_closed:
                    raise SearchCancelled
                self._work = begin_task()
            return next(self._items)
        except KeyboardInterrupt:  # so the extension says that the work was stopped
            if self._is_closed:
                raise SearchCancelled from None
            raise
        finally:
            with self._guard:
                work, self._work = self._work, 0
                join_work(before)
                end_task(work)

    def close(self) -> None:
        """Make no more items."""
        with self._guard:
            self._is_closed = True
            if self._work:
                cancel_task(self._work)
            else:
                self._items.close()


def parallel_for(work: Callable[[ItemT], ResultT], items: Collection[ItemT], threads: int) -> list[ResultT]:
    """Apply a function to every item on at most ``threads`` threads; return the values in order.

    No more threads are started than there are items: for nothing or for one item, on 16 processors, that took 3 ms.
    """
    threads = min(threads, len(items))
    left, guard, errors = enumerate(items), threading.Lock(), deque[BaseException]()
    results: dict[int, ResultT] = {}

    def take() -> None:
        try:
            while not errors:
                with guard:
                    place, item = next(left)
                results[place] = work(item)
        except StopIteration:
            pass
        except BaseException as error:  # raised again below
            errors.append(error)

    started: list[threading.Thread] = []
    with suppress(RuntimeError):  # no more threads to be had
        for _ in range(threads - 1 if can_start_threads(threads) else 0):
            thread = threading.Thread(target=take, name="swsearch-each", daemon=True)
            thread.start()
            started.append(thread)
    take()
    for thread in started:
        thread.join()
    if errors:
        raise errors[0]
    return [results[place] for place in range(len(items))]


def map_in_threads(work: Callable[[ItemT], ResultT], items: Iterable[ItemT], n: int) -> Generator[ResultT]:
    """Apply a function to items, about ``n`` at a time, each in a thread; yield the values in order.

    Items are taken as they come. When the caller's work is stopped, so is that of the threads.
    """
    if n == 1:
        yield from map(work, items)
        return
    number, alive = current_task(), deque[Future[ResultT]]()

    def started() -> Generator[Future[ResultT]]:
        for item in items:
            alive.append(_start_thread(work, item, number))
            yield alive[-1]

    try:
        with PrefetchIterator(started(), "feed", max(n - 2, 1)) as coming:
            for future in coming:
                while not future.done():
                    check_cancelled()
                    wait([future], CHECK_SECONDS)
                result = future.result()
                alive.remove(future)
                yield result
                del result, future
    finally:
        wait(alive, timeout=1.0)


def _start_thread(work: Callable[[ItemT], ResultT], item: ItemT, number: int) -> Future[ResultT]:
    """Do something in a thread that is stopped as the work of a number is."""
    future: Future[ResultT] = Future()

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


class _Shared(Generic[ItemT]):
    """State shared by the thread and its user; it does not keep the user alive."""

    def __init__(self, items: Generator[ItemT], max_ahead: int) -> None:
        self.items, self._room, self.work = items, max_ahead, next(_task_numbers)
        self.n_made: deque[ItemT] = deque()
        self._changed = threading.Condition()
        self.is_done = self._is_stopped = False
        self._error: BaseException | None = None
        self.ran = self.waited = self.awaited = 0.0

    def run(self) -> None:
        """Run the iterator in the thread, to its end or an error, and close it."""
        error: BaseException | None = None
        started = time.perf_counter()
        try:
            join_work(self.work)
            for item in self.items:
                if not self._put(item):
                    break
                del item
        except BaseException as caught:  # it is raised again where items are taken
            error = caught
        try:
            self.items.close()
        except BaseException as caught:
            error = error or caught
        with self._changed:
            self.ran = time.perf_counter() - started
            self._error, self.is_done = error, True
            self._changed.notify_all()

    def _put(self, item: ItemT) -> bool:
        with self._changed:
            started = time.perf_counter()
            self._changed.wait_for(lambda: self._is_stopped or len(self.n_made) < self._room)
            self.waited += time.perf_counter() - started
            if not self._is_stopped:
                self.n_made.append(item)
                self._changed.notify_all()
            return not self._is_stopped

    def take(self) -> ItemT:
        """Wait for the next item; raise `SearchCancelled` if there is to be none."""
        with self._changed:
            started = time.perf_counter()
            self._changed.wait_for(lambda: self.n_made or self.is_done or self._is_stopped)
            self.awaited += time.perf_counter() - started
            if self.n_made:
                self._changed.notify_all()
                return self.n_made.popleft()
            if self._is_stopped:
                raise SearchCancelled
            error, self._error = self._error, None
        if error is not None:
            raise error
        raise StopIteration

    def stop(self) -> None:
        """Make no more items."""
        with self._changed:
            self._is_stopped = True
            self.n_made.clear()
            self._changed.notify_all()


class _SwitchInterval:
    """The interpreter's switch interval while stages run: short, so that no thread waits for long.

    A stage that formats text holds the interpreter for as long as it may, which is 5 ms otherwise, and each time that
    another comes back from the extension or the device it would wait for so long.
    """

    def __init__(self) -> None:
        self._guard, self._users, self._before = threading.Lock(), 0, 0.0

    def begin(self) -> None:
        with self._guard:
            if not self._users:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, SWITCH_SECONDS))
            self._users += 1

    def end(self) -> None:
        with self._guard:
            self._users -= 1
            if not self._users:
                sys.setswitchinterval(self._before)


_switch_interval = _SwitchInterval()
_task_numbers = itertools.count(1)
_thread_state = threading.local()
_running: weakref.WeakSet[PrefetchIterator[Any]] = weakref.WeakSet()


def _begin_in_child() -> None:
    """Forget the threads of the process that this was forked from: they are not here, and may have held a lock."""
    _switch_interval.__init__()  # type: ignore[misc]
    _running.clear()


os.register_at_fork(after_in_child=_begin_in_child)


@atexit.register
def _close_all() -> None:
    """End unfinished iterators: no thread may run while the interpreter exits."""
    for ahead in list(_running):
        ahead.close()
