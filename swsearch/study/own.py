"""The project's own kernels on the study's work, so that a table shows both.

The database search stands beside the inter-task kernels: the same queries, subjects and scoring, by the engine as
``swsearch search`` runs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from swsearch import Database
from swsearch.alphabet import PROTEIN
from swsearch.inputs import Query
from swsearch.job import SearchJob, SearchOptions
from swsearch.loaded import LoadedDatabase
from swsearch.study.problem import protein_scoring
from swsearch.study.timing import QUERIES, RUNS, Measurement, Timer, inter_task_query

MAX_HITS = 10


def search_times(timer: Timer, gaps: str, device: int | None) -> Iterator[Measurement]:
    """Time the engine's search for each query of the inter-task kernels, by the time that its kernels run."""
    from swsearch.engines.gpu.engine import GpuEngine

    scoring = protein_scoring(gaps)
    database = Database.from_records((f"s{n}", PROTEIN.decode(one)) for n, one in enumerate(timer.subjects))
    with GpuEngine(device=device) as engine, database:
        queries = [Query(f"q{length}", "", inter_task_query(length)) for length in QUERIES]
        job = SearchJob(queries, database, engine, SearchOptions(scoring, max_hits=MAX_HITS, evalue=None))
        loaded = LoadedDatabase(engine, database, job.plan)
        try:
            for query in queries:
                runs = [_kernel_seconds(engine, job, query, loaded) for _ in range(RUNS + 1)][1:]
                length = len(query.codes)
                cpu = timer.database_cpu(gaps, length)
                yield Measurement(
                    "inter-task", "swsearch's own search", "this project", "", gaps, "local", length,
                    database.n_residues, 0, 0, runs, cpu.seconds, cpu.vector_seconds,
                )  # fmt: skip
        finally:
            loaded.close()


def _kernel_seconds(engine: Any, job: SearchJob, query: Query, loaded: LoadedDatabase) -> float:
    before = engine.usage.kernel_seconds
    job.run_group([query], loaded)
    return float(engine.usage.kernel_seconds - before)
