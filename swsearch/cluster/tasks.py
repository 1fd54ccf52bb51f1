"""Task functions, which Dask calls on workers.

The result of a task depends only on its arguments, so any worker may run it, and repeat it.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from typing import Any

from swsearch.alignment import PairAlignment
from swsearch.alignment_table import AlignmentTable
from swsearch.blocks import FloatArray
from swsearch.cluster.messages import (
    MAX_SHARE_BYTES,
    EngineRequest,
    OtherProgramError,
    TaskFailure,
    VolumeSearch,
    one_line,
    program_versions,
    version_mismatch,
)
from swsearch.cluster.worker import open_volume, worker_state
from swsearch.errors import ClusterError, MemoryLimitError, SwsearchError
from swsearch.inputs import Query
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.null_models import NullModelFitter, NullModelRequest
from swsearch.pipeline.pairs import HspPath, HspRequest, LocalPairBackend, PairsToAlign, find_further_hsps
from swsearch.pipeline.prefetch import (
    SearchCancelled,
    begin_task,
    cancel_task,
    check_cancelled,
    current_task,
    end_task,
    join_work,
    parallel_for,
)
from swsearch.pipeline.ranking import QueryCandidates, shift_subjects
from swsearch.pipeline.scorer import Scorer
from swsearch.pipeline.subjects import ProteinSubjects, Subjects
from swsearch.pipeline.windows import FrameWindows
from swsearch.recurrence import Recurrence
from swsearch.results import SubjectCodes
from swsearch.statistics.null_model import FitSettings, FittedStatistics

CANCEL_CHECK_SECONDS = 0.5
"""Seconds between two looks at whether a task is wanted."""


class VolumeShare:
    """A share of a volume: share ``index`` of ``count``, with ``n_bytes`` bytes of residues.

    It is a token. Dask takes it to be as large as the residues, so it sends tasks to a worker that has it. The
    pickled share is small; a worker opens the files on first use.
    """

    def __init__(self, search: VolumeSearch, index: int = 0, count: int = 1, n_bytes: int = 0) -> None:
        self.search, self.index, self.count, self.n_bytes = search, index, count, n_bytes

    def __reduce__(self) -> Any:
        return VolumeShare, (self.search, self.index, self.count, self.n_bytes)

    def __sizeof__(self) -> int:
        return min(self.n_bytes, MAX_SHARE_BYTES)

    @property
    def key(self) -> tuple[Any, ...]:
        """Key of the residues that an engine loads for it."""
        return self.search.file, self.search.mask, self.search.windows, self.index, self.count

    @cached_property
    def volume(self) -> Subjects:
        """All subjects of the volume."""
        database, windows = open_volume(self.search.file), self.search.windows
        return ProteinSubjects(database, self.search.mask) if windows is None else FrameWindows(database, windows)

    @cached_property
    def subjects(self) -> Subjects:
        """Its subjects."""
        return self.volume.share(self.index, self.count)

    @cached_property
    def criteria(self) -> Criteria:
        """Criteria of hits in its volume."""
        n, search = self.volume.n_places, self.search
        return Criteria(search.options, search.counts, search.subject_mask(n), n)

    @property
    def make_pair_backend(self) -> LocalPairBackend:
        """Backend for nulls and alignments of pairs with the volume; the caller closes it."""
        here, criteria = worker_state(), self.criteria
        engine = here.engine(self.search.engine)
        return LocalPairBackend(criteria.recurrence, here.threads, criteria.null_model_fitter(here.threads), engine)


def token(data: bytes) -> VolumeShare:
    """Return what tasks on a share take as an argument."""
    (share,) = pickle.loads(data)
    assert isinstance(share, VolumeShare)
    return share


def encode_arguments(*arguments: Any) -> bytes:
    """Return arguments of a task as bytes: Dask's scheduler unpickles what tasks are given."""
    return pickle.dumps(arguments, protocol=5)


def run(versions: dict[str, str], function: Callable[..., Any], data: bytes, *share: VolumeShare) -> Any:
    """Call a task function with an optional share and packed arguments; return a `TaskFailure` if it fails.

    It fails if ``versions``, the client's `program`, differs from this worker's.
    """
    from distributed import get_worker

    worker = get_worker()
    try:
        if problem := version_mismatch(program_versions(), versions):
            raise OtherProgramError(problem)
        with _watched(worker):
            return function(*share, *pickle.loads(data))
    except SwsearchError as error:
        return TaskFailure(worker.address, error)
    except (SearchCancelled, KeyboardInterrupt):
        return TaskFailure(worker.address, ClusterError("the task was stopped"))
    except Exception as error:
        logging.getLogger("distributed.worker").exception("swsearch: %s", function.__name__)
        if isinstance(error, MemoryError):
            return TaskFailure(worker.address, MemoryLimitError("out of memory on the worker"))
        return TaskFailure(worker.address, ClusterError(one_line(error)))


@contextmanager
def _watched(worker: Any) -> Iterator[None]:
    """Stop this thread's work when Dask has cancelled its task: Dask leaves one that runs as it is.

    Shown by ``test_what_runs_is_stopped_when_a_search_is_closed``.
    """
    key, before, is_done = worker.get_current_task(), current_task(), threading.Event()
    number = begin_task()

    def watch() -> None:
        while not is_done.wait(CANCEL_CHECK_SECONDS):
            task = worker.state.tasks.get(key)
            if task is None or task.state == "cancelled":
                cancel_task(number)

    watching = threading.Thread(target=watch, name="swsearch-wanted", daemon=True)
    watching.start()
    try:
        yield
    finally:
        is_done.set()
        watching.join()
        join_work(before)
        end_task(number)


def score(
    share: VolumeShare, queries: Sequence[Query], null_models: Sequence[FittedStatistics | None]
) -> list[QueryCandidates]:
    """Score queries with a share, given their nulls; return what was selected for each, by places in the whole."""
    search, here = share.search, worker_state()
    while True:
        check_cancelled()
        engine = here.engine(search.engine)
        scorer = Scorer(engine, share.criteria, here.threads)
        prepared = scorer.prepare(queries, null_models)
        with here.exclusive_engine:
            if here.engine(search.engine) is not engine:  # it was closed for another search
                continue
            try:
                share_loaded = here.share(engine, share.key, share.subjects, search.mask, search.largest)
                results = scorer.scan(prepared, share_loaded.loaded, share_loaded.in_flight)
            except BaseException:
                here.unload()  # what is loaded is not known
                raise
        return [shift_subjects(each, search.first) for each in scorer.candidates(prepared, results)]


def fit_queries(
    settings: FitSettings, recurrence: Recurrence, sample: bytes, queries: Sequence[Query]
) -> list[FittedStatistics | None]:
    """Make the nulls of queries."""
    return NullModelFitter(settings, recurrence, worker_state().threads, sample).fit_queries(queries)


def fit_pairs(share: VolumeShare, requests: Sequence[NullModelRequest]) -> list[tuple[FloatArray, FloatArray]]:
    """Make the nulls of pairs; return the levels and bounds of each query's n pairs, both of shape (n,)."""
    with closing(share.make_pair_backend) as pairs:
        return [(each.levels, each.bounds) for each in pairs.fit_null_models(requests, share.volume)]


def align(share: VolumeShare, request: PairsToAlign) -> tuple[AlignmentTable, SubjectCodes]:
    """Align pairs."""
    with closing(share.make_pair_backend) as pairs:
        return pairs.align(request, share.volume)


def find_hsps(share: VolumeShare, request: HspRequest) -> list[list[HspPath]]:
    """Find further alignments of pairs."""
    pairs, best, scoring = request.pairs, request.best, share.search.options.scoring
    subjects = share.volume.read_with_letters(pairs.subjects)
    rows = [None if query.profile is None else query.rows(scoring) for query in pairs.queries]
    paths: list[list[HspPath]] = [[] for _ in pairs.scores]

    def find(place: int) -> None:
        check_cancelled()
        k = int(pairs.query_indices[place])
        first = PairAlignment(
            pairs.queries[k].codes, subjects.codes_of(place), scoring, int(best.score[place]),
            int(best.query_start[place]), int(best.subject_start[place]), best.cigar(place), query_rows=rows[k],
        )  # fmt: skip
        paths[place] = find_further_hsps(first, request.max_hsps, int(request.min_scores[place]))

    parallel_for(find, range(len(paths)), worker_state().threads)
    return paths


def paused_workers(dask_scheduler: Any = None) -> list[str]:
    """Return the workers that Dask has paused for lack of memory; called by its scheduler."""
    return [address for address, worker in dask_scheduler.workers.items() if worker.status.name == "paused"]


async def waiting_tasks(dask_worker: Any = None) -> set[Any]:
    """Return the keys of tasks that a worker has not begun."""
    states = ("waiting", "ready", "constrained")
    return {key for key, task in dask_worker.state.tasks.items() if task.state in states}


async def inspect_worker(engine: EngineRequest, dask_worker: Any = None) -> dict[str, Any]:
    """Return the engine of a worker. As a coroutine it does not block the worker's event loop."""
    return await asyncio.to_thread(describe, engine, dask_worker)


def describe(engine: EngineRequest, worker: Any) -> dict[str, Any]:
    """Return what `inspect_worker` tells; the engine is made now."""
    here = worker_state(worker)
    facts = {"engine": "", "description": "", "fallback": "", "problem": "", "at_once": worker.state.nthreads}
    try:
        own_engine = here.engine(engine)
        facts |= {"engine": own_engine.name, "description": own_engine.description, "fallback": own_engine.fallback}
    except SwsearchError as error:
        facts["problem"] = str(error)
    return facts
