"""Work of threads that the event loop waits for: pools of a chosen size, clients that leave, and jobs that end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from swsearch.server.jobs import Job

Made = TypeVar("Made")

SHORT_THREADS = 16
"""For what takes milliseconds: a look into the store, a submission."""

SEARCH_THREADS = 256
"""For searches that a client waits for. They wait together for the engine, which scores them together."""

RENDERING_THREADS = 16
"""For reports."""

GATHERED = 256 << 10
"""Bytes of an answer up to which it is sent as one, with its length."""

LEAST_PAUSE, MOST_PAUSE = 0.01, 1.0
"""Seconds between looks at jobs that clients wait for."""

PAUSE_SHARE = 20
"""How many times as long as a look the pause after it is: so all who wait cost a twentieth of a core."""


class Pools:
    """The threads of a server."""

    def __init__(self) -> None:
        self._short = ThreadPoolExecutor(SHORT_THREADS, "swsearch-short")
        self._searching = ThreadPoolExecutor(SEARCH_THREADS, "swsearch-search")
        self._rendering = ThreadPoolExecutor(RENDERING_THREADS, "swsearch-report")

    async def short(self, function: Callable[..., Made], *arguments: Any) -> Made:
        """Do something short."""
        return await asyncio.get_running_loop().run_in_executor(self._short, function, *arguments)

    async def searched(self, watch: Watch, work: Callable[[Callable[[], bool]], Made]) -> Made | None:
        """Do something that a client waits for; it is told when the client has left, and then gives None.

        The watch goes on: what was done may be the beginning of an answer whose rest is made only while it is wanted.
        """

        def run() -> Made | None:
            try:
                return work(watch.is_there) if watch.is_there() else None
            except BaseException:
                if watch.is_there():
                    raise
                return None

        return await asyncio.get_running_loop().run_in_executor(self._searching, run)

    async def rendered(self, function: Callable[..., Made], *arguments: Any) -> Made:
        """Make a part of a report."""
        return await asyncio.get_running_loop().run_in_executor(self._rendering, function, *arguments)

    def drop(self, chunks: Iterator[bytes]) -> None:
        """Close what makes a report."""
        close = getattr(chunks, "close", None)
        if close is not None:
            self._rendering.submit(close)

    def close(self, wait: bool = True) -> None:
        """End the threads; work that has not begun is dropped."""
        for pool in (self._short, self._searching, self._rendering):
            pool.shutdown(wait=wait, cancel_futures=True)


class Watch:
    """Sees that a client leaves, whose request has been read.

    Parameters
    ----------
    receive : callable
        Of the request.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._there = True
        self.task = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._there = False

    def is_there(self) -> bool:
        """Say whether the client still waits; any thread may ask."""
        return self._there

    def leave(self) -> None:
        """Look no more; whoever still works for the client need not."""
        self._there = False
        self.task.cancel()


class ChunkedAnswer(Response):
    """Sends what a report's writer makes, as it is made; a client that leaves ends the writing.

    Parameters
    ----------
    begun : bytes
        What was made before.
    chunks : iterator of bytes
        The rest; closed in the end.
    pools : Pools
        Whose threads make them.
    headers : dict of str to str
        Of the answer.
    media_type : str
        Its type.
    watch : Watch, optional
        That sees the client leave already; ended with the answer.
    """

    def __init__(
        self, begun: bytes, chunks: Iterator[bytes], pools: Pools, headers: dict[str, str], media_type: str,
        watch: Watch | None = None,
    ) -> None:  # fmt: skip
        self.status_code, self.media_type, self.background = 200, media_type, None
        self._begun, self._chunks, self._pools, self._watch = begun, chunks, pools, watch
        self.init_headers(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        watch = self._watch or Watch(receive)
        making: asyncio.Future[bytes] | None = None
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            chunk = self._begun
            while chunk:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                if not watch.is_there():
                    return
                making = asyncio.ensure_future(self._pools.rendered(gathered, self._chunks, GATHERED))
                chunk = await asyncio.shield(making)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            watch.leave()
            if making is None or making.done():
                self._pools.drop(self._chunks)
            else:  # a thread is in it
                making.add_done_callback(self._drop)

    def _drop(self, made: asyncio.Future[bytes]) -> None:
        if not made.cancelled():
            made.exception()  # whoever wanted to know has gone
        self._pools.drop(self._chunks)


def gathered(chunks: Iterator[bytes], most: int) -> bytes:
    """Take chunks until they have so many bytes, or there are no more."""
    parts: list[bytes] = []
    n_bytes = 0
    for chunk in chunks:
        parts.append(chunk)
        n_bytes += len(chunk)
        if n_bytes >= most:
            break
    return b"".join(parts)


class Waiters:
    """Requests that wait for the ends of jobs, without a thread each: one task looks for all of them.

    Parameters
    ----------
    job : callable
        Returns the job of an identifier.
    pools : Pools
        Whose threads look.
    """

    def __init__(self, job: Callable[[str], Job], pools: Pools) -> None:
        self._job, self._pools = job, pools
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    async def wait(self, identifier: str, seconds: float, receive: Receive) -> Job:
        """Return a job when it has ended, the time is over, or the client has left."""
        job = await self._pools.short(self._job, identifier)
        if job.is_ended or seconds <= 0 or self._is_closed:
            return job
        watch = Watch(receive)
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(identifier, set()).add(ended)
        if self._task is None:
            self._task = asyncio.ensure_future(self._look())
        try:
            await asyncio.wait({ended, watch.task}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            watch.leave()
            self._forget(identifier, ended)
        return await self._pools.short(self._job, identifier)

    def close(self) -> None:
        """Let all go on at once, and those that come later."""
        self._is_closed = True
        for identifier in list(self._waiting):
            self._tell(identifier)

    def _forget(self, identifier: str, ended: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(identifier, set())
        waiting.discard(ended)
        if not waiting:
            self._waiting.pop(identifier, None)

    def _tell(self, identifier: str) -> None:
        for ended in self._waiting.get(identifier, ()):
            if not ended.done():
                ended.set_result(None)

    async def _look(self) -> None:
        pause = LEAST_PAUSE
        try:
            while self._waiting:
                await asyncio.sleep(pause)
                begun = time.perf_counter()
                for identifier in await self._pools.short(self._ended, list(self._waiting)):
                    self._tell(identifier)
                cost = time.perf_counter() - begun
                pause = min(max(LEAST_PAUSE, PAUSE_SHARE * cost), MOST_PAUSE)
        finally:
            self._task = None

    def _ended(self, identifiers: list[str]) -> list[str]:
        found = []
        for identifier in identifiers:
            try:
                is_ended = self._job(identifier).is_ended
            except Exception:
                is_ended = True  # whoever waits asks again, and is told what is wrong
            if is_ended:
                found.append(identifier)
        return found
