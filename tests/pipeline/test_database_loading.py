"""A database on its way through an engine: what stays in memory, and what does not."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import numpy as np
import pytest

from swsearch.db import Database
from swsearch.engines.base import ChunkPlan, LoadedChunk
from swsearch.engines.reference import ReferenceEngine
from swsearch.pipeline import subjects as loaded
from swsearch.pipeline.subjects import LoadedDatabase


class Merging(ReferenceEngine):
    """Counts what is loaded and given back."""

    def __init__(self) -> None:
        self.n_loaded = 0

    def load(self, chunk: object) -> LoadedChunk:
        self.n_loaded += 1
        return super().load(chunk)  # type: ignore[arg-type]

    def release(self, given: LoadedChunk) -> None:
        self.n_loaded -= 1

    def merge(self, given: Sequence[LoadedChunk]) -> list[LoadedChunk]:
        return list(given)


@pytest.fixture
def database() -> Database:
    return Database.from_records("MKV" * n for n in range(1, 641))


@pytest.mark.parametrize("threads", [False, True])
def test_what_an_engine_does_not_keep_is_let_go(
    database: Database, threads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more than the chunk in use and the two that are read ahead are in memory."""
    monkeypatch.setattr(loaded, "has_room_for_threads", lambda: threads)
    engine = Merging()
    seen: list[weakref.ref[object]] = []
    subjects = 0
    chunks = LoadedDatabase(engine, database, ChunkPlan(chunk_bytes=1))
    for each in chunks:
        seen.append(weakref.ref(each.chunk))
        subjects += each.chunk.n_subjects
        chunks.done(each)
        assert sum(one() is not None for one in seen) <= 2
    assert subjects == 640 and len(seen) == 10 and engine.n_loaded == 0
    del each
    assert not any(one() for one in seen)


def test_what_an_engine_keeps_is_read_once(database: Database) -> None:
    engine = Merging()
    chunks = LoadedDatabase(engine, database, ChunkPlan(chunk_bytes=1, keep=True))
    first = [each.chunk.subjects for each in chunks]
    again = [each.chunk.subjects for each in chunks]
    assert all(one is other for one, other in zip(first, again, strict=True)) and engine.n_loaded == 10
    assert sorted(np.concatenate(first).tolist()) == list(range(640))
    chunks.close()
    assert engine.n_loaded == 0
