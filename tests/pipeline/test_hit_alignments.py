"""Hits of a search aligned together: on threads, and by a pair aligner."""

from itertools import chain

import numpy as np
import pytest

from support.cases import random_codes
from support.host_pairs import host_aligner
from support.profiles import random_rows
from swsearch import Database, Profile, reference, search
from swsearch.alphabet import PROTEIN
from swsearch.backends.local import LocalBackend
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.engines.gpu.engine import GPU_WORTH_HITS
from swsearch.engines.gpu.pairs.aligner import GpuPairAligner
from swsearch.errors import EngineError
from swsearch.inputs import Query
from swsearch.pipeline.hit_alignments import align_hits
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search import Search
from swsearch.scoring import Scoring


@pytest.fixture(scope="module")
def job():
    generator = np.random.default_rng(3)
    queries = [Query(f"q{n}", "", random_codes(generator, n, 20)) for n in (30, 90)]
    subjects = [np.concatenate((random_codes(generator, 9, 20), queries[n % 2].codes[: 20 + n])) for n in range(20)]
    records = [(f"s{place}", PROTEIN.decode(codes)) for place, codes in enumerate(subjects)]
    with Database.from_records(records) as database, CpuEngine(1) as engine:
        yield Search(queries, SearchOptions(evalue=1e9), LocalBackend(database, engine, threads=1))


def alignments(results):
    return [(hit.subject_id, hit.pair.query_start, hit.pair.cigar) for result in results for hit in result.hits]


def test_the_cpu_goes_on_where_an_aligner_fails(job, monkeypatch):
    expected = list(chain(*job.results()))
    asked = []

    def fail(*_, **__):
        asked.append(1)
        raise EngineError("the device is gone")

    monkeypatch.setattr(GpuPairAligner, "align_pools", fail)
    monkeypatch.setattr(CpuEngine, "pair_aligner", lambda *_: host_aligner(monkeypatch))
    found = list(chain(*job.results(aligned=True)))
    assert asked
    assert alignments(found) == alignments(expected)


def test_only_a_gpu_that_scores_aligns_and_only_many(job, gpu, monkeypatch):
    assert job.backend.engine.pair_aligner(GPU_WORTH_HITS) is None  # the CPU engine
    made = []
    monkeypatch.setattr("swsearch.engines.gpu.pairs.aligner.GpuPairAligner", made.append)
    assert gpu.pair_aligner(GPU_WORTH_HITS - 1) is None
    assert not made
    gpu.pair_aligner(GPU_WORTH_HITS)
    assert made == [gpu.info.index]
    monkeypatch.setattr(gpu, "_memory_limit", 1 << 20)
    assert gpu.pair_aligner(GPU_WORTH_HITS) is None
    assert len(made) == 1


def test_hits_of_profiles_are_aligned_by_their_rows(tmp_path):
    """One by one, together, and the further ones: each adds up to its score, and is the reference's."""
    generator = np.random.default_rng(4)
    rows = random_rows(generator, 25, -9, 9, most_cost=12)
    profile = Profile("p", "", rows.codes, rows.scores[:, :27], gaps=rows.gaps)
    best = rows.scores[:, :20].argmax(axis=1).astype(np.uint8)  # what each position wants
    subjects = [random_codes(generator, 30, 20), np.concatenate((best[3:20], random_codes(generator, 6, 20), best))]
    records = [(f"s{place}", PROTEIN.decode(codes)) for place, codes in enumerate(subjects)]
    sequence = PROTEIN.decode(random_codes(generator, 12, 20))
    with Database.from_records(records) as database:
        for aligned in (False, True):
            results = search(
                [profile, ("sequence", sequence)], database, engine="reference", statistics="none",
                max_alignments=3, sort="score",
            )  # fmt: skip
            from_profile, of_sequence = results
            if aligned:
                align_hits([from_profile, of_sequence], 1)
            for hit in from_profile.hits:
                subject = subjects[int(hit.subject_id[1:])]
                expected = reference.align_with_hsps(rows, subject, Scoring(), 3)
                found = [hit.pair, *(hsp.pair for hsp in hit.hsps[1:])]
                assert [(each.score, each.query_start, each.subject_start, each.cigar) for each in found] == expected
                assert [each.recompute_score() for each in found] == [each[0] for each in expected]
                assert hit.alignment.score == hit.score == expected[0][0]
                assert found[0].identities <= found[0].positives
            assert {hit.pair.recompute_score() == hit.score for hit in of_sequence.hits} == {True}
