"""The project's own kernels on the study's work, so that a table shows both.

The database search stands beside the inter-task kernels: the same queries, subjects and scoring, by the engine as
``swsearch search`` runs it. The pair kernels stand beside the diagonal blocks (DNA) and the strips (protein): the
same pairs, by what ``swsearch align`` runs, the score alone and with the alignment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from swsearch.alphabet import PROTEIN
from swsearch.backends.local import LocalBackend
from swsearch.bench.study.problem import Problem, protein_scoring, random_problem
from swsearch.bench.study.timing import QUERIES, TIMED_RUNS, Measurement, Timer, inter_task_query
from swsearch.db import Database
from swsearch.engines.pair_base import PairAligner
from swsearch.errors import EngineError
from swsearch.inputs import Query
from swsearch.options.words import Mode, StatisticsMethod
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search import Search
from swsearch.statistics.karlin_altschul import statistics_for

MAX_HITS = 10

PAIR_APPROACHES: dict[str, tuple[Mode, ...]] = {"diagonal-blocks": ("global",), "strips": ("global", "local")}
"""Approaches that the pair kernels stand beside, and the modes."""


def search_times(timer: Timer, gaps: str, device: int | None) -> Iterator[Measurement]:
    """Time the engine's search for each query of the inter-task kernels, by the time that its kernels run."""
    from swsearch.engines.gpu.engine import GpuEngine

    scoring = protein_scoring(gaps)
    database = Database.from_records((f"s{n}", PROTEIN.decode(one)) for n, one in enumerate(timer.subjects))
    with GpuEngine(device=device) as engine, database:
        queries = [Query(f"q{length}", "", inter_task_query(length)) for length in QUERIES]
        # hits above a threshold where that is known beforehand; scores with shuffled sequences are not timed
        method: StatisticsMethod = "none" if statistics_for(scoring, "local") is None else "published"
        options = SearchOptions(scoring=scoring, max_hits=MAX_HITS, statistics=method)
        with closing(Search(queries, options, LocalBackend(database, engine))) as search:
            for query in queries:
                runs = [_kernel_seconds(engine, search, query) for _ in range(TIMED_RUNS + 1)][1:]
                length = len(query.codes)
                cpu = timer.database_cpu(gaps, length)
                yield Measurement(
                    "inter-task", "swsearch's own search", "this project", "", gaps, "local", length,
                    database.n_residues, 0, 0, runs, cpu.seconds, cpu.vector_seconds,
                )  # fmt: skip


def pair_times(
    timer: Timer, approach: str, gaps: str, sizes: Sequence[int], device: int | None
) -> Iterator[Measurement]:
    """Time the pair aligner on an approach's pairs, by the time that its kernels run.

    Raises
    ------
    EngineError
        If it does not reach the CPU's score.
    """
    from swsearch.engines.gpu.pairs.aligner import GpuPairAligner

    protein = approach == "strips"
    with GpuPairAligner(device=device) as aligner:
        for mode in PAIR_APPROACHES.get(approach, ()):
            for size in sizes:
                problem = random_problem(size, size, mode, gaps, protein=protein)
                cpu = timer.cpu_pair(problem, gaps, protein)
                for name, task in (("swsearch's own, score", _score), ("swsearch's own, alignment", _align)):
                    runs = []
                    for _ in range(TIMED_RUNS + 1):
                        before = aligner.usage.kernel_seconds
                        score = task(aligner, problem)
                        runs.append(aligner.usage.kernel_seconds - before)
                        if score != cpu.scores[0]:
                            raise EngineError(
                                f"{name}, {gaps} gaps, {size} x {size}: score {score}, parasail's is {cpu.scores[0]}"
                            )
                    yield Measurement(
                        approach, name, "this project", "", gaps, mode, size, size, 0, 0, runs[1:], cpu.seconds,
                        cpu.vector_seconds,
                    )  # fmt: skip


def _score(aligner: PairAligner, problem: Problem) -> int:
    return aligner.score(problem.query, problem.subject, problem.recurrence)


def _align(aligner: PairAligner, problem: Problem) -> int:
    return aligner.align(problem.query, problem.subject, problem.recurrence).score


def _kernel_seconds(engine: Any, search: Search, query: Query) -> float:
    before, session = engine.usage.kernel_seconds, search.session
    session.select(session.prepare([query])).wait()
    return float(engine.usage.kernel_seconds - before)
