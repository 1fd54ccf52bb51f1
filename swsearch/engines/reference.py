"""The reference recurrence as an engine, for searches and for pairs: slow, and the measure of every other engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from swsearch import reference
from swsearch.alignment import PairAlignment
from swsearch.alphabet import ByteArray
from swsearch.blocks import Chunk
from swsearch.engines.base import Engine, LoadedChunk, Progress, QueryGroup, ScoreArray
from swsearch.engines.pair_base import PairAligner
from swsearch.scoring import Ends, Mode, Profile, Scoring


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

    def score(self, group: QueryGroup, loaded: LoadedChunk, progress: Progress | None = None) -> ScoreArray:
        """See `Engine.score`."""
        chunk: Chunk = loaded.chunk
        values = np.empty((len(group.profiles), chunk.n_subjects), dtype=np.int32)
        for query, profile in enumerate(group.profiles):
            for place in range(chunk.n_subjects):
                values[query, place] = reference.score(profile.codes, chunk.subject(place), group.scoring, group.mode)
            if progress is not None:
                progress(len(profile) * chunk.n_residues)
        return values


class ReferencePairAligner(PairAligner):
    """Aligns with the plain recurrence of `swsearch.reference`."""

    name = "reference"

    @property
    def description(self) -> str:
        """What runs."""
        return "reference (plain Python, for tests)"

    def align(
        self, query: ByteArray, subject: ByteArray, scoring: Scoring, mode: Mode, ends: Ends | None = None
    ) -> PairAlignment:
        """See `PairAligner.align`."""
        return PairAlignment(query, subject, scoring, *reference.align(query, subject, scoring, mode, ends))

    def score(
        self, query: ByteArray, subject: ByteArray, scoring: Scoring, mode: Mode, ends: Ends | None = None
    ) -> int:
        """See `PairAligner.score`."""
        return reference.score(query, subject, scoring, mode, ends)
