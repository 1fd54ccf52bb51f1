"""Pairs that `swsearch.align` is asked for: one, those in order, or all with all; aligned, or scored alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from swsearch.alphabet import PROTEIN
from swsearch.blocks import FloatArray
from swsearch.engines.base import ScoreArray
from swsearch.engines.pair_base import Pair, PairAligner
from swsearch.errors import InputError, check_choice
from swsearch.inputs import Query, read_pair, read_queries, with_gap_costs_of
from swsearch.options.words import PairsKind
from swsearch.pipeline.options import check_is_whole
from swsearch.profiles.alignment import QueryAlignment
from swsearch.profiles.profile import Profile
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring

if TYPE_CHECKING:
    from Bio.Align import Alignment


@dataclass(frozen=True)
class AskedPairs:
    """Pairs to align.

    Parameters
    ----------
    queries, subjects : sequence of Query
        What was read.
    kind : {"one", "order", "all"}
        Which pairs of them.
    recurrence : Recurrence
        What is computed.
    """

    queries: Sequence[Query]
    subjects: Sequence[Query]
    kind: PairsKind
    recurrence: Recurrence

    @classmethod
    def read(cls, a: Any, b: Any, kind: str, recurrence: Recurrence, is_named: bool, allow_dna: bool) -> AskedPairs:
        """Read both sides, with the gap costs that profiles go with where none are named.

        Raises
        ------
        InputError
            If a side cannot be read, or they are not as many where pairs are those in order.
        """
        check_choice("pairs", kind, ("one", "order", "all"))
        scoring = recurrence.scoring
        if kind == "one":
            query, subject, used = read_pair(a, b, scoring, is_named, allow_dna)
            _check_scale([query], scoring)
            return cls([query], [subject], "one", replace(recurrence, scoring=used))
        if isinstance(b, (Profile, QueryAlignment)):
            raise InputError(f"b: got a {type(b).__name__}, expected sequences; give profiles as a")
        alphabet = scoring.matrix.alphabet
        profiles: Scoring | None = scoring if alphabet is PROTEIN else None
        queries = read_queries(a, alphabet, what="a", allow_dna=allow_dna, scoring=profiles)
        subjects = read_queries(b, alphabet, what="b", allow_dna=allow_dna)
        if kind == "order" and len(queries) != len(subjects):
            raise InputError(
                f"pairs: got {len(queries):,} sequences as a and {len(subjects):,} as b, expected equal numbers; use "
                "pairs='all' to align all with all"
            )
        _check_scale(queries, scoring)
        used = with_gap_costs_of(queries, scoring, is_named)
        return cls(queries, subjects, kind, replace(recurrence, scoring=used))  # type: ignore[arg-type]  # checked

    @property
    def n_pairs(self) -> int:
        """How many there are."""
        return len(self.queries) * (len(self.subjects) if self.kind == "all" else 1)

    @property
    def cells(self) -> int:
        """Cells of all of them."""
        return sum(len(query.codes) * len(subject.codes) for query, subject in self)

    def __iter__(self) -> Iterator[tuple[Query, Query]]:
        if self.kind == "all":
            return ((query, subject) for query in self.queries for subject in self.subjects)
        return zip(self.queries, self.subjects, strict=True)

    def _drawn(self) -> Iterator[Pair]:
        scoring = self.recurrence.scoring
        scored = {id(query): query.scored(scoring) for query in self.queries}
        return ((scored[id(query)], subject.codes) for query, subject in self)

    def scores(self, aligner: PairAligner) -> float | ScoreArray | FloatArray:
        """Return the pairs' scores: one, those in order, shape (n,), or all, shape (n_a, n_b).

        They are int32, or float64 where gap costs are fractions.
        """
        found: ScoreArray | FloatArray = np.fromiter(
            aligner.score_many(self._drawn(), self.recurrence), np.int32, self.n_pairs
        )
        scoring = self.recurrence.scoring
        if self.kind == "one":
            return scoring.shown(int(found[0]))
        found = found if scoring.scale == 1 else found / scoring.scale
        return found.reshape(len(self.queries), -1) if self.kind == "all" else found

    def alignments(self, aligner: PairAligner) -> Alignment | list[Alignment] | list[list[Alignment]]:
        """Return the pairs' alignments: one, those in order, or a list for each query."""
        if self.kind == "one":
            pair = aligner.align(*next(self._drawn()), self.recurrence)
            return pair.to_biopython(self.queries[0].identifier, self.subjects[0].identifier)
        found = aligner.align_many(self._drawn(), self.recurrence)
        every = [
            pair.to_biopython(query.identifier, subject.identifier)
            for pair, (query, subject) in zip(found, self, strict=True)
        ]
        n = len(self.subjects)
        return every if self.kind == "order" else [every[at : at + n] for at in range(0, len(every), n)]


def _check_scale(queries: Sequence[Query], scoring: Scoring) -> None:
    """Raise if gap costs are fractions, which profiles, whose scores are whole, do not go with."""
    if any(query.profile is not None for query in queries):
        check_is_whole(scoring, "with a profile")
