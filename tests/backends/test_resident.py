"""A database that stays with its engine: results, calls from several threads, long queries, errors, and the end."""

from __future__ import annotations

import gc
import io
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest
from Bio.Data import CodonTable
from Bio.Seq import Seq

import swsearch
from swsearch.alphabet import PROTEIN
from swsearch.backends import resident
from swsearch.backends.resident import ResidentBackend, ResidentSession
from swsearch.engines.base import ChunkPlan
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.errors import EngineError, InputError, OptionError
from swsearch.inputs import read_queries
from swsearch.pipeline import batch
from swsearch.pipeline.options import make_search_options
from swsearch.pipeline.prefetch import SearchCancelled, check_cancelled
from swsearch.pipeline.search_queries import search_queries
from swsearch.pipeline.search_results import SearchResults
from swsearch.scoring import Scoring, load_matrix

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
    monkeypatch.setattr(resident, "MAX_BATCH_QUERIES", 3)
    with swsearch.Searcher(database, engine="cpu") as searcher:
        assert text_of(searcher.search(queries)) == expected(database, queries)
        assert [result.query_id for result in searcher.search(queries)] == [name for name, _ in queries]


def test_a_query_longer_than_was_planned(database, monkeypatch):
    monkeypatch.setattr(resident, "GROUP_RESIDUES", 50)
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
    monkeypatch.setattr(CpuEngine, "plan", lambda self, work: ChunkPlan(1 << 12, keep_loaded=keep, in_flight=2))
    monkeypatch.setattr(resident, "fits_in_memory", lambda database: keep)
    wanted = {name: expected(database, [(name, letters)]) for name, letters in queries}
    with swsearch.Searcher(database, engine="cpu") as searcher, ThreadPoolExecutor(8) as threads:
        found = threads.map(lambda query: text_of(searcher.search([query])), queries)
        assert dict(zip([name for name, _ in queries], found, strict=True)) == wanted


class GatedEngine(CpuEngine):
    """Scores when it is told to, and keeps how many queries it scored together."""

    def __init__(self):
        super().__init__()
        self.groups, self.n_loads, self.is_open = [], 0, True
        self.started, self.may_go = threading.Semaphore(0), threading.Semaphore(0)

    def load(self, chunk):
        self.n_loads += 1
        return super().load(chunk)

    def score(self, group, loaded, progress=None):
        self.groups.append(len(group.profiles))
        self.started.release()
        while not self.is_open and not self.may_go.acquire(timeout=0.01):
            check_cancelled()
        return super().score(group, loaded, progress)

    def wait(self):
        """Wait until a group is about to be scored."""
        assert self.started.acquire(timeout=60)


@contextmanager
def gated(database, kind=GatedEngine):
    """Give a resident database whose engine scores when it is told to, and some threads for callers."""
    with kind() as engine, closing(ResidentBackend(database, engine)) as place, ThreadPoolExecutor(20) as threads:
        engine.is_open = False
        try:
            yield place, engine, threads
        finally:
            engine.is_open = True


def searching(place, queries, options, progress=None):
    """Begin a search, which runs as results are taken."""
    return SearchResults(queries, place.database, options, lambda _: place, progress=progress)


def n_waiting(place):
    return sum(len(parts) for parts in list(place._waiting.values()))


def wait_until(is_so):
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_calls_that_meet_are_scored_together(database, queries):
    """While one is scored, two more come: these are one group."""
    with GatedEngine() as engine, swsearch.Searcher(database, engine=engine, statistics="none") as searcher:
        engine.is_open = False
        with ThreadPoolExecutor(3) as threads:
            found = [threads.submit(searcher.search, [queries[0]])]
            engine.wait()
            found += [threads.submit(searcher.search, [queries[k]]) for k in (1, 2)]
            wait_until(lambda: n_waiting(searcher._backend) == 2)
            engine.is_open = True
            names = [each.result()[0].query_id for each in found]
    assert names == [queries[k][0] for k in range(3)]
    assert engine.groups == [1, 2]


ASKED = [
    {},
    {"statistics": "published", "max_hits": 3},
    {"statistics": "none", "max_hits": 7, "sort": "score"},
    {"min_score": 30, "evalue": 100.0},
    {"include_ids": [f"s{k}" for k in range(0, N_SUBJECTS, 12)], "evalue": 1e6},
    {"max_alignments": 3, "evalue": 1e3, "min_identity": 20.0},
    {"query_mask": "lower", "max_hits": 5},
    {"preset": "default", "iterations": 2, "evalue": 1e3},
    {"iterations": 3, "statistics": "published"},
]
OTHERS = [
    {"mode": "global", "max_hits": 4},
    {"mode": "semiglobal", "statistics": "none", "max_hits": 20},
    {"scoring": Scoring(load_matrix("PAM30", PROTEIN), 9, 1)},
    {"subject_mask": "lower"},
    {"distribution": True},
]
"""Options of searches that are scored neither together with the others nor with each other."""


def test_searches_with_other_options_are_scored_together_where_that_is_possible(database, queries):
    options = [make_search_options(**each) for each in [*ASKED, *OTHERS]]
    read = read_queries(queries[:4], PROTEIN)
    with gated(database) as (place, engine, threads):
        first = threads.submit(list, searching(place, read[:1], options[0]))
        engine.wait()
        found = [threads.submit(lambda each: text_of(searching(place, read, each)), each) for each in options]
        wait_until(lambda: n_waiting(place) == len(options))
        engine.is_open = True
        assert len(first.result()) == 1
        texts = [each.result() for each in found]
    assert engine.groups[1] == 4 * len(ASKED)
    assert texts == [expected(database, queries[:4], **each) for each in [*ASKED, *OTHERS]]


def test_a_short_search_waits_for_a_turn_of_a_long_one(database, queries, monkeypatch):
    monkeypatch.setattr(resident, "MAX_BATCH_QUERIES", 2)
    options, read = make_search_options(statistics="none"), read_queries(queries, PROTEIN)
    with gated(database) as (place, engine, threads):
        long_one = threads.submit(list, searching(place, read, options))
        engine.wait()
        short = threads.submit(
            list, searching(place, read[:1], make_search_options(mode="global", statistics="none"))
        )
        wait_until(lambda: len(place._waiting) == 2)
        engine.may_go.release(3)
        assert len(short.result(timeout=60)) == 1
        assert not long_one.done()
        engine.is_open = True
        assert len(long_one.result()) == len(queries)
    assert engine.groups[:4] == [2, 2, 1, 2]


@pytest.mark.parametrize("n_others", [0, 1])
def test_a_search_that_is_stopped_does_not_keep_others_waiting(database, queries, n_others):
    """A search stops while it is scored if no other search shares the scoring; the database stays loaded."""
    options, read = make_search_options(statistics="none"), read_queries(queries, PROTEIN)
    with gated(database) as (place, engine, threads):
        before = threads.submit(list, searching(place, read[:1], options))
        engine.wait()
        stopped = searching(place, read, options)
        assert len(stopped.search.queries) == len(read)
        results = threads.submit(list, stopped)
        wait_until(lambda: n_waiting(place) == 1)
        others = [threads.submit(list, searching(place, read[1:2], options)) for _ in range(n_others)]
        wait_until(lambda: n_waiting(place) == 1 + n_others)
        engine.may_go.release()
        assert len(before.result()) == 1
        engine.wait()
        n_loads = engine.n_loads
        stopped.stop()
        with pytest.raises(SearchCancelled):
            results.result(timeout=60)
        if not n_others:
            wait_until(lambda: not place._running)
        engine.is_open = True
        assert [each.result()[0].query_id for each in others] == [queries[1][0]] * n_others
        assert text_of(searching(place, read, options)) == expected(database, queries, statistics="none")
    assert engine.groups[1] == len(queries) + n_others
    assert engine.n_loads == n_loads


def test_a_search_that_is_stopped_before_it_is_scored_is_not_scored(database, queries):
    options, read = make_search_options(statistics="none"), read_queries(queries, PROTEIN)
    with gated(database) as (place, engine, threads):
        first = threads.submit(list, searching(place, read[:1], options))
        engine.wait()
        searches = [searching(place, read, make_search_options(statistics="published", iterations=k)) for k in (1, 2)]
        assert all(search.search for search in searches)
        waiting = [threads.submit(list, search) for search in searches]
        wait_until(lambda: n_waiting(place) == 2)
        for search in searches:
            search.stop()
        for each in waiting:
            with pytest.raises(SearchCancelled):
                each.result(timeout=60)
        wait_until(lambda: not n_waiting(place))
        engine.is_open = True
        assert len(first.result()) == 1
        never = searching(place, read, options)
        never.stop()
        with pytest.raises(SearchCancelled):
            list(never)
    assert engine.groups == [1]


@pytest.mark.parametrize("options", [{}, {"distribution": True}, {"iterations": 2}], ids=str)
def test_a_search_that_cannot_be_scored_fails_no_other(database, queries, options, monkeypatch):
    """The database comes in several chunks, and scoring fails at the second one, when some was found already."""
    read, asked = read_queries([*queries[:3], ("bad", "W" * 77)], PROTEIN), make_search_options(evalue=1e4, **options)

    class Picky(GatedEngine):
        def plan(self, workload):
            return ChunkPlan(1 << 12, keep_loaded=True)

        def score(self, group, loaded, progress=None):
            scores = super().score(group, loaded, progress)
            if 77 in map(len, group.profiles) and loaded.chunk.runs.longest < 77:
                raise InputError("a score might not fit 32 bits")
            return scores

    with gated(database, Picky) as (place, engine, threads):
        first = threads.submit(list, searching(place, read[:1], make_search_options()))
        engine.wait()
        found = [threads.submit(lambda each: text_of(searching(place, [each], asked)), each) for each in read]
        wait_until(lambda: n_waiting(place) == 4)
        engine.is_open = True
        with pytest.raises(InputError, match="32 bits"):
            found.pop().result()
        texts = [each.result() for each in found]
        assert len(first.result()) == 1
    assert texts == [expected(database, [query], evalue=1e4, **options) for query in queries[:3]]
    assert 4 in engine.groups


def test_progress_of_searches_that_are_scored_together_is_their_own(database, queries):
    read = read_queries(queries, PROTEIN)
    parts = [read[:1], read[1:4], read[4:]]
    seen = [[] for _ in parts]
    with gated(database) as (place, engine, threads):
        first = threads.submit(list, searching(place, read[:1], make_search_options()))
        engine.wait()
        each = zip(parts, seen, strict=True)
        found = [
            threads.submit(list, searching(place, part, make_search_options(), progress=told.append))
            for part, told in each
        ]
        wait_until(lambda: n_waiting(place) == 3)
        engine.is_open = True
        assert [len(each.result()) for each in [first, *found]] == [1, 1, 3, len(read) - 4]
    assert engine.groups == [1, len(read)]
    cells = [sum(len(query.codes) for query in part) * database.n_residues for part in parts]
    assert list(map(sum, seen)) == cells


def test_a_checkpoint_keeps_what_was_scored(database, queries, tmp_path):
    options, read = make_search_options(max_hits=20), read_queries(queries, PROTEIN)
    with gated(database) as (place, engine, _):
        engine.is_open = True
        for _ in range(2):
            with searching(place, read, options) as results:
                results.use_checkpoint(tmp_path / "kept")
                assert text_of(results) == expected(database, queries, max_hits=20)
    assert engine.groups == [len(read)]


@pytest.fixture(scope="module")
def genome(database):
    """Records of DNA, of which each has some of the proteins in it, every other one on its other strand."""
    table, rng = CodonTable.unambiguous_dna_by_id[1].forward_table, random.Random(8)
    codons = {residue: codon for codon, residue in table.items()}
    records = []
    for first in range(0, N_SUBJECTS, 60):
        genes = ["".join(map(codons.__getitem__, database.sequence(k))) for k in range(first, first + 6)]
        strand = "".join("".join(rng.choices("ACGT", k=rng.randint(50, 400))) + gene for gene in genes)
        records.append((f"n{first}", strand if first % 120 else str(Seq(strand).reverse_complement())))
    with swsearch.Database.from_records(records, translate=True) as made:
        yield made


@pytest.fixture(scope="module")
def longer(database):
    """Queries whose alignments may be longer one after the other."""
    proteins = [database.sequence(k) for k in range(60, 66)]
    return [(f"l{n}", "".join(proteins[:n])) for n in range(1, 6)]


@pytest.mark.parametrize("max_margin", [resident.MAX_SHARED_MARGIN, 1024], ids=["shared", "of their own"])
def test_a_dna_database_is_cut_anew_for_longer_queries(genome, longer, max_margin, monkeypatch):
    """Proteins and DNA, of several callers at a time, find what a search of each alone does."""
    monkeypatch.setattr(resident, "MAX_SHARED_MARGIN", max_margin)
    dna = [(f"d{k}", genome.sequence(k)[:600]) for k in range(3)]
    asked = [([query], {}) for query in longer]
    asked += [(longer[2:4], {"statistics": "published", "max_hits": 3}), (longer[:1], {"max_alignments": 3})]
    asked += [([query], {"translate": True, "evalue": 1e-3}) for query in dna]
    wanted = [expected(genome, queries, **options) for queries, options in asked]
    with CpuEngine() as engine, closing(ResidentBackend(genome, engine)) as place, ThreadPoolExecutor(4) as threads:

        def text(each):
            queries, chosen = each[0], make_search_options(**each[1])
            return text_of(searching(place, search_queries(queries, chosen), chosen))

        margins = [place.subjects((), make_search_options()).windows.margin]
        assert list(map(text, asked)) == wanted
        assert list(threads.map(text, asked * 2)) == wanted * 2
        margins.append(place.subjects((), make_search_options()).windows.margin)
    assert margins[0] < margins[1] <= max_margin


def test_a_search_keeps_its_windows_while_they_are_cut_anew(genome, longer):
    read = search_queries(longer, make_search_options())
    with gated(genome) as (place, engine, threads):
        found = [threads.submit(lambda: text_of(searching(place, read[:1], make_search_options())))]
        engine.wait()
        found += [
            threads.submit(lambda k=k: text_of(searching(place, read[k : k + 1], make_search_options())))
            for k in (4, 1)
        ]
        wait_until(lambda: n_waiting(place) == 2)
        engine.is_open = True
        assert [each.result() for each in found] == [expected(genome, [longer[k]]) for k in (0, 4, 1)]


def test_windows_are_cut_anew_for_searches_that_run_alone(genome, longer):
    """A search that is only opened, as to read stored results, reloads nothing; one that runs shares its windows."""
    options = make_search_options()
    read = search_queries(longer, options)
    with gated(genome) as (place, engine, _):
        engine.is_open = True
        assert text_of(searching(place, read[:1], options)) == expected(genome, longer[:1])
        n_loads, criteria = engine.n_loads, place.criteria(options, place.subjects((), options))
        opened = [searching(place, read[4:], options) for _ in range(2)]
        assert all(each.search for each in opened)
        assert text_of(searching(place, read[:1], options)) == expected(genome, longer[:1])
        assert engine.n_loads == n_loads
        assert place.criteria(options, place.subjects((), options)) is criteria
        for each in [*opened, searching(place, read[4:], options)]:
            assert text_of(each) == expected(genome, longer[4:])
        assert engine.n_loads == 2 * n_loads


def test_other_searches_do_not_wait_for_windows_to_be_cut(genome, longer, monkeypatch):
    cut, started, may_go = resident.subjects_of, threading.Event(), threading.Event()

    def slowly(database, queries, *others):
        if len(queries) > 1:
            started.set()
            assert may_go.wait(60)
        return cut(database, queries, *others)

    read = search_queries(longer, make_search_options())
    with gated(genome) as (place, engine, threads):
        engine.is_open = True
        monkeypatch.setattr(resident, "subjects_of", slowly)
        long_one = threads.submit(lambda: text_of(searching(place, read, make_search_options())))
        try:
            assert started.wait(60)
            short = threads.submit(lambda: text_of(searching(place, read[:1], make_search_options())))
            assert short.result(timeout=10) == expected(genome, longer[:1])
        finally:
            may_go.set()
        assert long_one.result() == expected(genome, longer)


def test_a_searcher_has_a_dna_database(genome, longer):
    with swsearch.Searcher(genome, engine="cpu", translate=True) as searcher:
        queries = [("d", genome.sequence(0)[:600])]
        assert text_of(searcher.search(queries)) == expected(genome, queries, translate=True)
    with swsearch.Searcher(genome, engine="cpu") as searcher:
        assert text_of(searcher.search(longer)) == expected(genome, longer)
        assert text_of(searcher.search(longer[:1], aligned=False)) == expected(genome, longer[:1])
    with pytest.raises(InputError, match="cannot be combined with"):
        swsearch.Searcher(genome, engine="cpu", iterations=2)
    with pytest.raises(InputError, match="n_none"):
        swsearch.Searcher(genome, engine="cpu", include_ids=["n_none"])


@pytest.fixture
def several_pending(monkeypatch):
    """Cut queries into small groups; the first one of iterations waits for the engine when two more are ready."""
    monkeypatch.setattr(batch, "FIRST_GROUP_RESIDUES", (150, 150))
    monkeypatch.setattr(batch, "SMALL_GROUP_RESIDUES", 150)
    monkeypatch.setattr(batch, "MIN_GROUPS", 100)
    monkeypatch.setattr(resident, "MAX_BATCH_QUERIES", 8)
    ready, prepare, select = [], ResidentSession.prepare, ResidentSession.select

    def prepared(self, queries):
        made = prepare(self, queries)
        ready.append(self)
        return made

    def selected(self, queries):
        wait_until(lambda: self.request.criteria.options.iterations == 1 or ready.count(self) > 2)
        return select(self, queries)

    monkeypatch.setattr(ResidentSession, "prepare", prepared)
    monkeypatch.setattr(ResidentSession, "select", selected)


@pytest.mark.parametrize("statistics", ["fitted", "published"])
def test_iterations_of_several_groups_go_on_beside_each_other(database, queries, statistics, several_pending):
    """Groups wait for the engine together, and their profiles go on with the next iteration."""
    asked = {"statistics": statistics, "iterations": 3, "evalue": 1e3}
    read = read_queries(queries, PROTEIN)
    with gated(database) as (place, engine, threads):
        first = threads.submit(lambda: text_of(searching(place, read[:1], make_search_options(mode="global"))))
        engine.wait()
        found = threads.submit(lambda: text_of(searching(place, read, make_search_options(**asked))))
        wait_until(lambda: n_waiting(place) == 2)
        engine.is_open = True
        assert found.result() == expected(database, queries, **asked)
        assert first.result() == expected(database, queries[:1], mode="global")


def test_pending_groups_of_a_search_that_is_stopped_are_not_scored(database, queries, several_pending):
    with gated(database) as (place, engine, threads):
        first = threads.submit(list, searching(place, read_queries(queries[:1], PROTEIN), make_search_options()))
        engine.wait()
        search = searching(place, read_queries(queries, PROTEIN), make_search_options(iterations=2))
        found = threads.submit(list, search)
        wait_until(lambda: n_waiting(place) == 2)
        search.stop()
        with pytest.raises(SearchCancelled):
            found.result(timeout=60)
        assert not n_waiting(place)
        engine.is_open = True
        assert len(first.result()) == 1
    assert engine.groups == [1]


def test_profiles_of_a_search_go_on_in_the_next(database, queries):
    read, asked = read_queries(queries[:5], PROTEIN), make_search_options(iterations=2, evalue=10.0)
    keeping = replace(asked, keep_profiles=True)
    with CpuEngine() as engine, closing(ResidentBackend(database, engine)) as place:
        profiles = [result.next_profile for result in searching(place, read, keeping)]
        text = text_of(searching(place, search_queries(profiles, asked), asked))
    whole = swsearch.search(queries[:5], database, engine="cpu", iterations=2, evalue=10.0, keep_profiles=True)
    assert text == expected(database, [result.next_profile for result in whole], iterations=2, evalue=10.0)


def test_tables_are_kept_for_few_options(database):
    with CpuEngine() as engine, closing(ResidentBackend(database, engine)) as place:

        def kind(**options):
            return searching(place, [], make_search_options(**options)).search.criteria

        kinds = [kind(max_hits=k) for k in range(1, resident.CACHED_JOBS + 2)]
        assert kind(max_hits=2) is kinds[1]
        assert kind(max_hits=1) is not kinds[0]
        with pytest.raises(InputError, match="s_none"):
            kind(include_ids=["s_none"])


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
