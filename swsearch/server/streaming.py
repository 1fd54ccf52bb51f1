"""Responses whose bytes come from threads, whole or streamed.

A short response has its length. A long one is streamed as the client reads it.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from typing import Literal
from urllib.parse import quote

import anyio
from anyio.to_thread import run_sync
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from swsearch.errors import printable

MIN_PIECE_BYTES = 256 << 10
"""Bytes below which a response is sent whole, with its length."""

MAX_NAME_LENGTH = 100
"""Characters of a file name in a header."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def gather_pieces(pieces: Generator[bytes]) -> Generator[bytes]:
    """Yield the same bytes in pieces of at least `MIN_PIECE_BYTES` bytes, and close the generator at the end."""
    parts: list[bytes] = []
    size = 0
    with closing(pieces):
        for piece in pieces:
            parts.append(piece)
            size += len(piece)
            if size >= MIN_PIECE_BYTES:
                yield b"".join(parts)
                parts, size = [], 0
        if parts:
            yield b"".join(parts)


class _Stream(Response):
    """A response whose bytes come from threads; the work stops when the client leaves."""

    def __init__(
        self, request: Request, pieces: Generator[bytes], limiter: anyio.CapacityLimiter, stop: Callable[[], None]
    ) -> None:
        self._pieces, self._limiter, self._stop = gather_pieces(pieces), limiter, stop
        self._guard = threading.Lock()
        self.has_left = False
        self.first = b""
        self._watch = asyncio.ensure_future(self._watch_disconnect(request.receive))

    async def _watch_disconnect(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.has_left = True
        self._stop()

    async def next(self) -> bytes:
        """Return the next bytes, or empty bytes at the end."""
        return await run_sync(self._next, limiter=self._limiter)

    def _next(self) -> bytes:
        with self._guard:
            return next(self._pieces, b"")

    def _close(self) -> None:
        with self._guard:  # a thread may still work for a request that was cancelled
            self._pieces.close()

    async def close(self) -> None:
        """End the work."""
        self._watch.cancel()
        self._stop()
        with anyio.CancelScope(shield=True):
            await run_sync(self._close, limiter=self._limiter)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            piece = self.first
            while piece and not self.has_left:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                piece = await self.next()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except Exception:
            if not self.has_left:
                raise
        finally:
            await self.close()


async def stream_response(
    request: Request, pieces: Generator[bytes], media_type: str, work_kind: Literal["searches", "reports"],
    file_name: str = "", *, headers: Mapping[str, str] | None = None, status: int = 200,
    stop: Callable[[], None] = lambda: None,
) -> Response:  # fmt: skip
    """Return a response with the bytes of a generator, which threads run; raise an error before its first bytes.

    The body of the request has been read. ``work_kind`` is a key of ``app.state.limiters``. A browser saves the bytes
    under ``file_name``, and shows them without one. ``stop`` is called when the client leaves, and at the end.
    """
    headers = {**(headers or {}), **({"Content-Disposition": disposition(file_name)} if file_name else {})}
    stream = _Stream(request, pieces, request.app.state.limiters[work_kind], stop)
    try:
        stream.first = await stream.next()
    except BaseException:
        if stream.has_left:
            raise ClientDisconnect from None
        raise
    finally:
        if len(stream.first) < MIN_PIECE_BYTES:  # an error, or the whole response
            await stream.close()
    if len(stream.first) < MIN_PIECE_BYTES:
        return Response(stream.first, status, headers, media_type)
    stream.status_code, stream.media_type, stream.background = status, media_type, None
    stream.init_headers(headers)
    return stream


def disposition(name: str) -> str:
    """Return the header with which a browser saves a response as a file of any name."""
    plain = _UNSAFE.sub("_", name)[:MAX_NAME_LENGTH].lstrip(".") or "results"
    if plain == name:
        return f'attachment; filename="{plain}"'
    safe = printable(name, "_").replace("/", "_").replace("\\", "_")[:MAX_NAME_LENGTH].lstrip(".") or "results"
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(safe, safe='', errors='replace')}"
