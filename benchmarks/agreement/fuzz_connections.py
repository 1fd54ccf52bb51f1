"""Connections that never become a request, thousands at a time, while somebody goes on searching."""

from __future__ import annotations

import json
import random
import resource
import socket
import statistics
import struct
import threading
import time
from collections import Counter
from contextlib import suppress

from benchmarks.support.common import table
from benchmarks.support.serving import API, Serving

WAVE = 1500
"""Connections at a time: more than a server has by default."""

HELD_SECONDS = 1.0
"""That a wave is held, while its connections send some bytes more."""

AT_REST_SECONDS = 90.0
"""In which a server must be rid of them."""

HEAD = b"POST /api/v1/jobs?database=tiny HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"

KINDS: dict[str, tuple[bytes, bytes]] = {
    "no bytes": (b"", b""),
    "a head line by line": (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X-Slow: 1\r\n"),
    "half a body": (HEAD + b"Content-Length: 1000\r\n\r\n>a\n", b"M"),
    "half a chunk": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3e8\r\n>a\n", b"M"),
    "reset amid a body": (HEAD + b"Content-Length: 1000\r\n\r\n>a\nMKV", b""),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)), b""),
    "garbage": (bytes(random.Random(1).randbytes(600)), b"\r\n\r\n"),
    "answers that nobody reads": (b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20, b""),
}
"""What is sent at once, and what now and then."""


class GoodClient:
    """Searches on, each time over a new connection, and counts.

    Parameters
    ----------
    serving : Serving
        The server.
    """

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._ended = threading.Event()
        self.seconds: list[float] = []
        self.failures: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> GoodClient:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _work(self) -> None:
        body = json.dumps({"database": "tiny", "queries": ">q\nMKVLAAGIVGWWHHKDEFRTYPCNQS\n"})
        while not self._ended.is_set():
            begun = time.perf_counter()
            try:
                with self._serving.asker() as asker:
                    status = asker.ask(f"{API}/search?format=6", body).status
            except OSError as error:
                self.failures[type(error).__name__] += 1
                continue
            self.seconds.append(time.perf_counter() - begun)
            if status != 200:
                self.failures[str(status)] += 1

    def told(self) -> list[object]:
        """Return cells of a table: searches, milliseconds, failures."""
        sorted_ms = sorted(1000 * each for each in self.seconds) or [0.0]
        times = (statistics.median(sorted_ms), sorted_ms[len(sorted_ms) * 99 // 100], sorted_ms[-1])
        return [len(self.seconds), *(f"{each:.0f}" for each in times), dict(self.failures) or "none"]


def wave(port: int, kinds: list[str]) -> None:
    """Open connections, hold them, and let some go in each way."""
    held: list[tuple[str, socket.socket]] = []
    try:
        for kind in kinds:
            with suppress(OSError):
                made = socket.create_connection(("127.0.0.1", port), 10)
                held.append((kind, made))
                made.setblocking(False)
                made.send(KINDS[kind][0])
        end = time.monotonic() + HELD_SECONDS
        while time.monotonic() < end:
            for kind, made in held:
                if KINDS[kind][1]:
                    with suppress(OSError):
                        made.send(KINDS[kind][1])
            time.sleep(HELD_SECONDS / 5)
    finally:
        for number, (kind, made) in enumerate(held):
            if "reset" in kind or number % 3 == 0:
                with suppress(OSError):
                    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            made.close()


def run(serving: Serving, number: int) -> tuple[list[str], list[str]]:
    """Open so many connections in waves; return lines of the report, and what is wrong."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WAVE + 200
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard < 0 else min(hard, wanted), hard))
    before = serving.look()
    with GoodClient(serving) as alone:
        time.sleep(3)
    draw, wrong, n_left = random.Random(number), [], number
    with GoodClient(serving) as client:
        while n_left > 0:
            wave(serving.port, draw.choices([*KINDS], k=min(WAVE, n_left)))
            n_left -= WAVE
    if client.failures:
        wrong.append(f"connections: a good client failed: {dict(client.failures)}")
    if serving.process.poll() is not None:
        return [], [*wrong, f"connections: the server ended: {serving.last_words()}"]
    latest = time.monotonic() + AT_REST_SECONDS
    while (after := serving.look()).descriptors > before.descriptors and time.monotonic() < latest:
        time.sleep(0.2)
    if after.descriptors > before.descriptors + 2:
        wrong.append(f"connections: {after.descriptors} descriptors, {before.descriptors} before")
    columns = ["a client that searches", "searches", "median, ms", "99 %, ms", "most, ms", "failures"]
    rows = [["alone", *alone.told()], [f"beside {number:,} connections", *client.told()]]
    told = [
        f"{number:,} connections in waves of {WAVE:,}, of which the server takes 1,000 at a time: {', '.join(KINDS)}",
        f"descriptors: {before.descriptors} before, {after.descriptors} afterwards", "", *table(columns, rows),
    ]  # fmt: skip
    return told, wrong
