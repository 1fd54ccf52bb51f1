"""The reference recurrence as an engine, for searches and for pairs: slow, and the measure of every other engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from swsearch import reference
from swsearch.alignment import PairAlignment
from swsearch.alphabet import ByteArray
from swsearch.blocks import Chunk
from swsearch.engines.base import Engine, LoadedChunk, PairAligner, Progress, QueryGroup, ScoreArray
from swsearch.recurrence import Recurrence
from swsearch.scoring import QueryLike, QueryProfile, codes_of, position_specific_rows
from swsearch.translation.frameshift_reference import shifted_score


class ReferenceEngine(Engine):
    """Scores one cell at a time, in Python."""

    name = "reference"

    @property
    def description(self) -> str:
        """Implementation."""
        return "reference (plain Python, for tests)"

    def prepare(self, profiles: Sequence[QueryProfile], recurrence: Recurrence) -> QueryGroup:
        """Prepare a group of queries."""
        return QueryGroup(profiles, recurrence)

    def load(self, chunk: Chunk) -> LoadedChunk:
        """Load a chunk."""
        return LoadedChunk(chunk)

    def score(self, group: QueryGroup, loaded: LoadedChunk, progress: Progress | None = None) -> ScoreArray:
        """Score every query of a group against every subject of a chunk."""
        chunk: Chunk = loaded.chunk
        scoring, mode, shift = group.recurrence.scoring, group.recurrence.mode, group.recurrence.frame_shift
        values = np.empty((len(group.profiles), chunk.n_subjects), dtype=np.int32)
        for query, profile in enumerate(group.profiles):
            for place in range(chunk.n_subjects):
                subject = chunk.subject(place)
                values[query, place] = (
                    reference.score(profile, subject, scoring, mode)
                    if shift is None
                    else shifted_score(profile.codes, subject, scoring, shift)
                )
            if progress is not None:
                progress(len(profile) * chunk.n_residues)
        return values


class ReferencePairAligner(PairAligner):
    """Aligns with the plain recurrence of `swsearch.reference`."""

    name = "reference"

    @property
    def description(self) -> str:
        """Implementation."""
        return "reference (plain Python, for tests)"

    def align(self, query: QueryLike, subject: ByteArray, recurrence: Recurrence) -> PairAlignment:
        """Align a query with a subject."""
        scoring, mode, ends = recurrence.scoring, recurrence.mode, recurrence.ends
        raw = reference.align(query, subject, scoring, mode, ends)
        return PairAlignment(codes_of(query), subject, scoring, *raw, query_rows=position_specific_rows(query))

    def score(self, query: QueryLike, subject: ByteArray, recurrence: Recurrence) -> int:
        """Score a query with a subject, without their alignment."""
        return reference.score(query, subject, recurrence.scoring, recurrence.mode, recurrence.ends)
