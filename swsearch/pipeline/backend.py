"""Interfaces between a search and the place that computes it.

A `Backend` holds the subjects and the engine, for any number of searches. A `Session` is one search's use of a
backend: it selects subjects, and its `PairWork` computes nulls and alignments of the selected pairs.
`Session.select` starts a batch. The search waits for the `PendingSelection` after it has started the next batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from swsearch.alignment_table import AlignmentTable
from swsearch.engines.base import Progress
from swsearch.inputs import Query
from swsearch.pipeline.additional_hsps import FoundFurther
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.null_models import PairsAsked
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.pairs import FurtherToFind, PairsToAlign
from swsearch.pipeline.ranking import Selection
from swsearch.pipeline.subjects import SubjectReader, Subjects
from swsearch.results import SubjectCodes
from swsearch.statistics.null_model import PairNulls

if TYPE_CHECKING:
    from swsearch.db import Database


class PendingSelection(Protocol):
    """Queries whose subjects are being selected."""

    def is_ready(self) -> bool:
        """Say whether `wait` returns at once."""

    def wait(self) -> None:
        """Wait until engine and subjects are not needed any more.

        Raises
        ------
        Stopped
            If the search is stopped meanwhile; see `swsearch.pipeline.prefetch.check_wanted`.
        """

    def selections(self) -> list[Selection]:
        """Return what was selected for each query; called once, after `wait`, by any thread."""


class PairWork(Protocol):
    """Computes what is asked of pairs that were found; `LocalPairWork` does it here."""

    @property
    def parallel(self) -> int:
        """How many batches to work on at a time: more than one where each waits for other machines."""

    def nulls(self, asked: Sequence[PairsAsked], subjects: SubjectReader) -> list[PairNulls]:
        """Return the nulls of the pairs of some queries; those of a pair follow from it alone."""

    def align(self, pairs: PairsToAlign, subjects: SubjectReader) -> tuple[AlignmentTable, SubjectCodes]:
        """Align pairs; return the alignments and the subjects, both in the order of the pairs."""

    def further(
        self, wanted: Callable[[], FurtherToFind], subjects: SubjectReader
    ) -> list[list[FoundFurther]] | None:
        """Return further alignments of pairs; None where each is found when it is asked for."""


class Session(Protocol):
    """A search's hold on a backend."""

    @property
    def pairs(self) -> PairWork:
        """Computes what is asked of found pairs, while the search runs."""

    @property
    def note(self) -> str:
        """What was allocated for it, as text for people."""

    @property
    def n_residues(self) -> int:
        """Residues of subjects that each query is scored with; progress adds up to these times its own."""

    def prepare(self, queries: Sequence[Query]) -> Any:
        """Make queries ready, in the form that `select` takes; the next ones while others are scored."""

    def select(self, prepared: Any) -> PendingSelection:
        """Begin to select, for each query, the subjects that may be reported.

        It is called by one thread, also before the last selection was waited for.
        """

    def close(self) -> None:
        """Release what was made for the search, engines too, when nothing is scored any more."""


@dataclass(frozen=True)
class SessionRequest:
    """What a search tells a backend when it begins.

    Parameters
    ----------
    subjects : Subjects
        As `Backend.subjects` returned them.
    criteria : Criteria
        What it looks for, of the whole database: shares are scored with these.
    groups : sequence of sequence of int
        Query lengths of each group that is scored together.
    progress : callable or None
        Called with the cells just finished, by one thread at a time.
    """

    subjects: Subjects
    criteria: Criteria
    groups: Sequence[Sequence[int]]
    progress: Progress | None = None


class Backend(Protocol):
    """Subjects, and what scores them."""

    @property
    def database(self) -> Database:
        """What is searched."""

    @property
    def threads(self) -> int:
        """Threads of this process for nulls, alignments and loci."""

    @property
    def is_shared(self) -> bool:
        """Whether other searches may use it at the same time: a short one then starts no threads."""

    @property
    def description(self) -> str:
        """What scores, for reports."""

    @property
    def fallback(self) -> str:
        """Why the CPU scores where a GPU was asked for; empty where none was missed."""

    def subjects(self, queries: Sequence[Query], options: SearchOptions) -> Subjects:
        """Return the subjects as these queries are compared with them."""

    def criteria(self, options: SearchOptions, subjects: Subjects) -> Criteria:
        """Return what follows from options and subjects: `Criteria.of`, unless it is kept."""

    def max_group_queries(self, criteria: Criteria) -> int | None:
        """Return how many queries a group has at most: `Criteria.max_queries`, or fewer."""

    def open(self, asked: SessionRequest) -> Session:
        """Begin a search."""
