"""Interfaces between a search and the place that computes it.

A `Backend` holds the subjects and the engine, for any number of searches. A `Session` is one search's use of a
backend: it selects subjects, and its `PairBackend` computes nulls and alignments of the selected pairs.
`Session.select` starts a batch. The search waits for the `PendingSelection` after it has started the next batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from swsearch.alignment_table import AlignmentTable
from swsearch.engines.base import Progress
from swsearch.inputs import Query
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.null_models import NullModelRequest
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.pairs import HspPath, HspRequest, PairsToAlign
from swsearch.pipeline.ranking import QueryCandidates
from swsearch.pipeline.subjects import SubjectReader, Subjects
from swsearch.results import SubjectCodes
from swsearch.statistics.null_model import PairNullModels

if TYPE_CHECKING:
    from swsearch.db import Database


class PendingSelection(Protocol):
    """Queries whose subjects are being selected."""

    def is_ready(self) -> bool:
        """Return whether `wait` would return at once."""

    def wait(self) -> None:
        """Wait until engine and subjects are not needed any more.

        Raises
        ------
        SearchCancelled
            If the search is stopped meanwhile; see `swsearch.pipeline.prefetch.check_cancelled`.
        """

    def selections(self) -> list[QueryCandidates]:
        """Return the candidates of each query; called once, after `wait`, by any thread."""


class PairBackend(Protocol):
    """Computes nulls and alignments of selected pairs; `LocalPairBackend` does so in this process."""

    @property
    def parallel(self) -> int:
        """Number of batches to process at a time: more than one if other machines compute them."""

    def fit_null_models(self, requests: Sequence[NullModelRequest], subjects: SubjectReader) -> list[PairNullModels]:
        """Return the nulls of pairs; the null of a pair depends only on the pair."""

    def align(self, pairs: PairsToAlign, subjects: SubjectReader) -> tuple[AlignmentTable, SubjectCodes]:
        """Align pairs; return the alignments and the subjects, both in the order of the pairs."""

    def find_hsps(self, request: Callable[[], HspRequest], subjects: SubjectReader) -> list[list[HspPath]] | None:
        """Return further alignments of pairs; None if each is computed on access."""


class Session(Protocol):
    """One search's use of a backend."""

    @property
    def pairs(self) -> PairBackend:
        """Computes nulls and alignments of pairs while the search runs."""

    @property
    def note(self) -> str:
        """Description of the allocated memory, for users."""

    @property
    def n_residues(self) -> int:
        """Residues of subjects that each query is scored with; progress adds up to these times its own."""

    def prepare(self, queries: Sequence[Query]) -> Any:
        """Prepare queries for `select`, also while others are scored."""

    def select(self, prepared: Any) -> PendingSelection:
        """Begin to select, for each query, the subjects that may be reported.

        It is called by one thread, also before the last selection was waited for.
        """

    def close(self) -> None:
        """Release the resources of the search, its engines too, after the last query."""


@dataclass(frozen=True)
class SessionRequest:
    """Subjects, criteria and queries of a search, for a backend.

    Parameters
    ----------
    subjects : Subjects
        As `Backend.subjects` returned them.
    criteria : Criteria
        Criteria for the whole database, also when shares of it are scored.
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
    """Subjects and the engine that scores them."""

    @property
    def database(self) -> Database:
        """The searched database."""

    @property
    def threads(self) -> int:
        """Threads of this process for nulls, alignments and loci."""

    @property
    def is_shared(self) -> bool:
        """Whether other searches may use it at the same time. Short searches then start no threads."""

    @property
    def description(self) -> str:
        """Description of the engine, for reports."""

    @property
    def fallback(self) -> str:
        """Reason why the CPU replaces a requested GPU; empty if it does not."""

    def subjects(self, queries: Sequence[Query], options: SearchOptions) -> Subjects:
        """Return the subjects in the form that these queries are compared with."""

    def criteria(self, options: SearchOptions, subjects: Subjects) -> Criteria:
        """Return the criteria of options and subjects, cached or from `Criteria.from_options`."""

    def max_group_queries(self, criteria: Criteria) -> int | None:
        """Return the maximum number of queries in a group: `Criteria.max_queries` or fewer."""

    def open(self, request: SessionRequest) -> Session:
        """Begin a search."""
