"""Hits of a search aligned together: on threads, and by a pair aligner."""

import numpy as np
import pytest

from support.cases import random_codes
from support.host_pairs import HostFunction, host_aligner
from swsearch import Database
from swsearch.alphabet import PROTEIN
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.engines.gpu.engine import GPU_WORTH_HITS
from swsearch.errors import EngineError
from swsearch.inputs import Query
from swsearch.job.hit_alignments import align_hits
from swsearch.job.job import SearchJob
from swsearch.job.options import SearchOptions
from swsearch.scoring import Scoring


@pytest.fixture(scope="module")
def job():
    generator = np.random.default_rng(3)
    queries = [Query(f"q{n}", "", random_codes(generator, n, 20)) for n in (30, 90)]
    subjects = [np.concatenate((random_codes(generator, 9, 20), queries[n % 2].codes[: 20 + n])) for n in range(20)]
    records = [(f"s{place}", PROTEIN.decode(codes)) for place, codes in enumerate(subjects)]
    with Database.from_records(records) as database, CpuEngine(1) as engine:
        yield SearchJob(queries, database, engine, SearchOptions(Scoring(), evalue=1e9))


def alignments(results):
    return [(hit.subject_id, hit.pair.query_start, hit.pair.cigar) for result in results for hit in result.hits]


def test_an_aligner_finds_what_the_threads_find(job, monkeypatch):
    expected, found = list(job.results()), list(job.results())
    align_hits(expected, 2)
    with host_aligner(monkeypatch) as aligner:
        align_hits(found, 2, aligner)
    assert alignments(found) == alignments(expected)
    assert [kernel.source for kernel, _, _ in HostFunction.launches] == ["pairs"]


def test_the_cpu_goes_on_where_an_aligner_fails(job, monkeypatch):
    expected, found = list(job.results()), list(job.results())
    with host_aligner(monkeypatch) as aligner:

        def fail(*_):
            raise EngineError("the device is gone")

        monkeypatch.setattr(aligner, "align_many", fail)
        align_hits(found, 2, aligner)
    assert alignments(found) == alignments(expected)


def test_only_a_gpu_that_scores_aligns_and_only_many(job, gpu, monkeypatch):
    assert job.engine.pair_aligner(GPU_WORTH_HITS) is None  # the CPU engine
    made = []
    monkeypatch.setattr("swsearch.engines.gpu.pairs.aligner.GpuPairAligner", made.append)
    assert gpu.pair_aligner(GPU_WORTH_HITS - 1) is None
    assert not made
    gpu.pair_aligner(GPU_WORTH_HITS)
    assert made == [gpu.info.index]
    monkeypatch.setattr(gpu, "_memory_limit", 1 << 20)
    assert gpu.pair_aligner(GPU_WORTH_HITS) is None
    assert len(made) == 1
