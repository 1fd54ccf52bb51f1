"""The reference recurrence behind the engine interface: slow, and the measure of every other engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from swsearch import reference
from swsearch.blocks import Chunk, IntArray
from swsearch.engines.base import Engine, LoadedChunk, Progress, QueryGroup, ScoreArray, Scores
from swsearch.scoring import Mode, Profile, Scoring


class ReferenceEngine(Engine):
    """Scores one cell at a time, in Python."""

    name = "reference"

    @property
    def description(self) -> str:
        """What runs."""
        return "reference (plain Python, for tests)"

    def prepare(self, profiles: Sequence[Profile], scoring: Scoring, mode: Mode) -> QueryGroup:
        """See `Engine.prepare`."""
        return QueryGroup(profiles, scoring, mode)

    def load(self, chunk: Chunk) -> LoadedChunk:
        """See `Engine.load`."""
        return LoadedChunk(chunk)

    def score(self, group: QueryGroup, loaded: LoadedChunk, progress: Progress | None = None) -> Scores:
        """See `Engine.score`; nothing ever saturates."""
        values = np.empty((len(group.profiles), loaded.chunk.n_subjects), dtype=np.int32)
        everything: IntArray = np.arange(loaded.chunk.n_subjects, dtype=np.int64)
        for query, profile in enumerate(group.profiles):
            values[query], _ = self.rescore(group, loaded, query, everything, 32)
            if progress is not None:
                progress(len(profile) * loaded.chunk.n_residues)
        return Scores(values, np.zeros(values.shape, dtype=np.bool_), 32)

    def rescore(
        self, group: QueryGroup, loaded: LoadedChunk, query: int, subjects: IntArray, bits: int
    ) -> tuple[ScoreArray, npt.NDArray[np.bool_]]:
        """See `Engine.rescore`."""
        codes, chunk = group.profiles[query].codes, loaded.chunk
        values = [reference.score(codes, chunk.subject(int(place)), group.scoring, group.mode) for place in subjects]
        return np.array(values, dtype=np.int32), np.zeros(len(values), dtype=np.bool_)
