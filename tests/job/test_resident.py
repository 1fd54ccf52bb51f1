"""A database that stays with its engine: results, calls from several threads, long queries, errors, and the end."""

from __future__ import annotations

import gc
import io
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import swsearch
from swsearch.alphabet import PROTEIN
from swsearch.engines.base import ChunkPlan
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.errors import EngineError, InputError, OptionError
from swsearch.job import resident

N_SUBJECTS = 300


@pytest.fixture(scope="module")
def database():
    rng = random.Random(7)
    records = [
        (f"s{k}", "".join(rng.choices(PROTEIN.letters[:20], k=rng.randint(0, 120)))) for k in range(N_SUBJECTS)
    ]
    with swsearch.Database.from_records(records) as made:
        yield made


@pytest.fixture(scope="module")
def queries(database):
    return [(f"q{k}", database.sequence(k)) for k in range(0, N_SUBJECTS, 12) if database.lengths_of([k])[0]]


def text_of(results):
    stream = io.StringIO()
    swsearch.write(results, stream, "jsonl")
    return stream.getvalue()


def expected(database, queries, **options):
    return text_of(swsearch.search(queries, database, engine="cpu", **options))


@pytest.mark.parametrize("options", [{}, {"statistics": "published"}, {"mode": "global", "max_hits": 3}])
@pytest.mark.parametrize("aligned", [True, False])
def test_results_are_those_of_a_search(database, queries, options, aligned):
    with swsearch.Searcher(database, engine="cpu", **options) as searcher:
        for _ in range(2):
            results = searcher.search(queries, aligned=aligned)
            assert all(result.hits.is_aligned == (aligned or not result.hits) for result in results)
            assert text_of(results) == expected(database, queries, **options)
    assert text_of(results) == expected(database, queries, **options)  # results outlive the searcher


def test_more_queries_than_are_scored_together(database, queries, monkeypatch):
    monkeypatch.setattr(resident, "QUERIES_TOGETHER", 3)
    with swsearch.Searcher(database, engine="cpu") as searcher:
        assert text_of(searcher.search(queries)) == expected(database, queries)
        assert [result.query_id for result in searcher.search(queries)] == [name for name, _ in queries]


def test_a_query_longer_than_was_planned(database, monkeypatch):
    monkeypatch.setattr(resident, "GROUP_ROWS", 50)
    planned = []
    plan = CpuEngine.plan
    monkeypatch.setattr(CpuEngine, "plan", lambda self, work: planned.append(work.groups) or plan(self, work))
    long_one = [("long", "".join(database.sequence(k) for k in range(20)))]
    with swsearch.Searcher(database, engine="cpu") as searcher:
        for _ in range(2):
            assert text_of(searcher.search(long_one)) == expected(database, long_one)
    rows = [sum(map(sum, groups)) for groups in planned]
    assert 50 in rows
    assert 2 * len(long_one[0][1]) in rows


@pytest.mark.parametrize("keep", [True, False])
def test_calls_from_several_threads_get_their_own_results(database, queries, keep, monkeypatch):
    monkeypatch.setattr(CpuEngine, "plan", lambda self, work: ChunkPlan(1 << 12, keep=keep, in_flight=2))
    monkeypatch.setattr(resident, "fits_the_host", lambda database: keep)
    wanted = {name: expected(database, [(name, letters)]) for name, letters in queries}
    with swsearch.Searcher(database, engine="cpu") as searcher, ThreadPoolExecutor(8) as threads:
        found = threads.map(lambda query: text_of(searcher.search([query])), queries)
        assert dict(zip([name for name, _ in queries], found, strict=True)) == wanted


def test_calls_that_meet_are_scored_together(database, queries, monkeypatch):
    """While one is scored, two more come: these are one group."""
    first, others = threading.Event(), threading.Event()
    groups = []
    score = CpuEngine.score

    def waiting(self, group, loaded, progress=None):
        groups.append(len(group.profiles))
        first.set()
        assert others.wait(60)
        return score(self, group, loaded, progress)

    with swsearch.Searcher(database, engine="cpu", statistics="none") as searcher:
        monkeypatch.setattr(CpuEngine, "score", waiting)
        with ThreadPoolExecutor(3) as threads:
            found = [threads.submit(searcher.search, [queries[0]])]
            assert first.wait(60)
            found += [threads.submit(searcher.search, [queries[k]]) for k in (1, 2)]
            while len(searcher._resident._waiting) < 2:
                pass
            others.set()
            names = [each.result()[0].query_id for each in found]
    assert names == [queries[k][0] for k in range(3)]
    assert groups == [1, 2]


def test_an_error_of_the_engine_comes_in_the_call_and_the_next_call_works(database, queries, monkeypatch):
    with swsearch.Searcher(database, engine="cpu", statistics="none") as searcher:
        with monkeypatch.context() as broken:
            broken.setattr(CpuEngine, "score", lambda *_: (_ for _ in ()).throw(EngineError("the device fell off")))
            with pytest.raises(EngineError, match="the device fell off"):
                searcher.search(queries)
        assert len(searcher.search(queries)) == len(queries)


def test_wrong_queries_and_options(database):
    with swsearch.Searcher(database, engine="cpu") as searcher:
        with pytest.raises(InputError):
            searcher.search("")
        with pytest.raises(OptionError):
            searcher.search("MKTAYIAKQR", aligned="yes")
        assert searcher.search("MKTAYIAKQR")[0].query_length == 10
    with pytest.raises(OptionError):
        swsearch.Searcher(database, engine="cpu", max_hits=0)
    with pytest.raises(TypeError, match="max_hit'"):
        swsearch.Searcher(database, engine="cpu", max_hit=3)


def test_a_closed_searcher_says_so_and_leaves_nothing(database, tmp_path):
    def threads():
        return [each for each in threading.enumerate() if each.name.startswith("swsearch-")]

    searcher = swsearch.Searcher(database, engine="cpu")
    assert threads()
    searcher.close()
    searcher.close()
    assert not threads()
    with pytest.raises(EngineError, match="was closed"):
        searcher.search("MKTAYIAKQR")
    assert database.sequence(0)  # it was given open, and stays so
    fasta = tmp_path / "a.fasta"
    fasta.write_text(">a\nMKTAYIAKQR\n")
    dropped = swsearch.Searcher(fasta, engine="cpu")
    assert dropped.search("MKTAYIAKQR")[0].hits[0].subject_id == "a"
    del dropped
    gc.collect()
    assert not threads()
