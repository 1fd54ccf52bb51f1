"""The alignments of a search's hits, all of them at a time: on threads, or many in one launch on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from swsearch.errors import EngineError, MemoryLimitError
from swsearch.job import HitSequences, SearchJob
from swsearch.results import Hit, SearchResult

if TYPE_CHECKING:
    from swsearch.pairs import PairAligner

GPU_WORTH_HITS = 2_000
"""Hits from which on a GPU that has scored them also aligns them."""


def align_hits(results: Sequence[SearchResult], threads: int, aligner: PairAligner | None = None) -> None:
    """Find the alignments of all hits, in parallel; afterwards ``hit.pair`` costs nothing.

    Parameters
    ----------
    results : sequence of SearchResult
        From a search job.
    threads : int
        Hits that are aligned side by side on the CPU, the longest first, so that the threads end together.
    aligner : PairAligner, optional
        What aligns instead; where it fails the CPU goes on. The alignments are the same.
    """
    hits = [hit for result in results for hit in result.hits]
    if aligner is not None and _align_together(hits, results, aligner):
        return
    hits.sort(key=lambda hit: -hit.query_length * hit.subject_length)
    if threads == 1 or len(hits) < 2:
        for hit in hits:
            _ = hit.pair
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="swsearch-align") as pool:
        try:
            for _ in pool.map(lambda hit: hit.pair, hits):
                pass
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _align_together(hits: Sequence[Hit], results: Sequence[SearchResult], aligner: PairAligner) -> bool:
    """Let an aligner do all hits; say whether it did."""
    sequences = [hit._align for hit in hits]
    pairs = [each.codes() for each in sequences if isinstance(each, HitSequences)]
    if len(pairs) < len(hits):
        return False
    try:
        for hit, pair in zip(hits, aligner.align_many(pairs, results[0].scoring, results[0].mode), strict=True):
            hit.__dict__["pair"] = pair  # where the cached property keeps it
    except (EngineError, MemoryLimitError):
        return False
    return True


def aligner_for(job: SearchJob, n_hits: int) -> PairAligner | None:
    """Return the GPU's pair aligner where the job runs on a GPU without a bound on its memory, and has many hits."""
    if job.engine.name != "gpu" or n_hits < GPU_WORTH_HITS:
        return None
    from swsearch.engines.gpu.engine import GpuEngine
    from swsearch.engines.gpu.pairs import GpuPairAligner

    assert isinstance(job.engine, GpuEngine)
    return GpuPairAligner(job.engine.info.index) if job.engine.may_share else None
