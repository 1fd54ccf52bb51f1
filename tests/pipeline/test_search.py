import pickle
from functools import partial

import numpy as np
import pytest
from Bio.Seq import Seq
from Bio.SeqRecord import SeqRecord
from hypothesis import given
from hypothesis import strategies as st

import swsearch
from support.cases import any_codes
from support.samples import random_cases
from swsearch import reference
from swsearch.alphabet import PROTEIN
from swsearch.backends.local import LocalBackend
from swsearch.engines import create_engine
from swsearch.engines.base import ChunkPlan
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.errors import DatabaseError, InputError, SequenceError
from swsearch.inputs import read_queries
from swsearch.options.kinds import MODES
from swsearch.pipeline import batch
from swsearch.pipeline import options as asked_for
from swsearch.pipeline.hit_alignments import align_hits
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search_results import SearchResults
from swsearch.scoring import Scoring, load_matrix

SUBJECTS = [("a", "MKVLAAGIVGWW"), ("b", "WWPPWWPP"), ("c", "MKVLAAGIVGWW"), ("d", ""), ("e", "MKVAAGIVGW")]


@pytest.fixture
def database():
    with swsearch.Database.from_records(SUBJECTS) as made:
        yield made


def only(results):
    (result,) = results
    return result


@random_cases(40)
@given(
    st.lists(any_codes(25, 1), min_size=1, max_size=3),
    st.lists(any_codes(25), min_size=1, max_size=80),
    st.sampled_from(MODES),
    st.integers(1, 100),
)
def test_hits_are_the_best_by_score_then_by_place(queries, subjects, mode, max_hits):
    scoring = Scoring(gap_open=3)
    named = [(f"s{k}", PROTEIN.decode(codes)) for k, codes in enumerate(subjects)]
    if not any(letters for _, letters in named):
        return
    found = list(
        swsearch.search(
            [PROTEIN.decode(q) for q in queries],
            named,
            scoring=scoring,
            mode=mode,
            max_hits=max_hits,
            statistics="none",  # so that every subject is a candidate
        )
    )
    for query, result in zip(queries, found, strict=True):
        scores = [reference.score(query, subject, scoring, mode) for subject in subjects]
        order = sorted(range(len(subjects)), key=lambda k: (-scores[k], k))
        expected = [(scores[k], k) for k in order if mode == "global" or scores[k] > 0][:max_hits]
        assert [(hit.score, hit.subject_index) for hit in result.hits] == expected
        assert all(hit.pair.score == hit.pair.recompute_score() == hit.score for hit in result.hits)


def test_ties_are_in_the_order_of_the_input(database):
    result = only(swsearch.search("MKVLAAGIVGWW", database, evalue=1e9))
    assert [hit.subject_id for hit in result.hits][:3] == ["a", "c", "e"]
    assert "d" not in [hit.subject_id for hit in result.hits]


def test_the_evalue_threshold_is_exact_and_applied_before_the_limit(database):
    everything = only(swsearch.search("MKVLAAGIVGWW", database, evalue=1e9))
    evalues = [hit.evalue for hit in everything.hits]
    middle = sorted(evalues)[2]
    kept = only(swsearch.search("MKVLAAGIVGWW", database, evalue=middle))
    assert [hit.subject_id for hit in kept.hits] == [
        hit.subject_id for hit in everything.hits if hit.evalue <= middle
    ]


def test_a_better_score_with_a_worse_evalue_does_not_take_a_place():
    # for equal scores blastp's correction favours some lengths; a hit that fails the threshold must not use up
    # one of the max_hits places
    query = "MKVLAAGIVGWWHHRKDE" * 3
    subjects = [("long", "A" * 4000 + query[:14] + "A" * 4000), ("short", query[:14] + "A" * 40)]
    both = only(swsearch.search(query, subjects, evalue=1e6, dbsize=10**9)).hits
    by_id = {hit.subject_id: hit for hit in both}
    assert by_id["long"].evalue != by_id["short"].evalue
    better = min(both, key=lambda hit: hit.evalue)
    kept = only(swsearch.search(query, subjects, evalue=better.evalue, dbsize=10**9, max_hits=1)).hits
    assert [hit.subject_id for hit in kept] == [better.subject_id]


def test_dbsize_replaces_the_databases_own(database):
    own = only(swsearch.search("MKVLAAGIVGWW", database, evalue=1e9))
    larger = only(swsearch.search("MKVLAAGIVGWW", database, evalue=1e9, dbsize=10 * database.n_residues))
    assert larger.effective_residues == 10 * own.database_residues
    assert larger.hits[0].evalue == pytest.approx(10 * own.hits[0].evalue)
    assert larger.hits[0].bit_score == own.hits[0].bit_score


def test_output_does_not_depend_on_chunks_groups_threads_or_engine(monkeypatch):
    generator = np.random.default_rng(21)
    letters = PROTEIN.letters
    subjects = ["".join(letters[k] for k in generator.integers(0, 20, n)) for n in generator.integers(1, 60, 150)]
    queries = [subjects[3] * 2, subjects[70], subjects[149]]

    def run(**options):
        found = swsearch.search(queries, subjects, statistics="published", evalue=1e6, **options)
        return [[(h.subject_index, h.score, h.evalue, h.cigar) for h in result.hits] for result in found]

    expected = run(threads=1)
    assert expected == run(threads=3)
    assert expected == run(engine="reference")
    monkeypatch.setattr(CpuEngine, "plan", lambda self, workload: ChunkPlan(chunk_bytes=1))
    assert expected == run(threads=2)
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 1)
    assert expected == run(threads=2)
    monkeypatch.setattr(CpuEngine, "plan", lambda self, workload: ChunkPlan(1, keep_loaded=True, in_flight=3))
    assert expected == run(threads=2)


def test_score_gives_every_score_in_input_order(database):
    queries = ["MKVLAAGIVGWW", "WWPP", ""]
    got = swsearch.score(queries, database)
    assert got.dtype == np.int32
    expected = [
        [reference.score(PROTEIN.encode(q), PROTEIN.encode(s), Scoring()) for _, s in SUBJECTS] for q in queries
    ]
    assert got.tolist() == expected


def test_everything_that_may_stand_for_queries(tmp_path, database):
    path = tmp_path / "q.fasta"
    path.write_text(">q1 first\nMKVLAAGIVG\n>q2\nWWPP\n")
    record = SeqRecord(Seq("MKVLAAGIVG"), id="q1", description="q1 first")
    expected = ("q1", "first", "MKVLAAGIVG")
    for given_ in (path, str(path), record, [record], ("q1", "MKVLAAGIVG"), [("q1", "MKVLAAGIVG")]):
        query = read_queries(given_)[0]
        assert (query.identifier, PROTEIN.decode(query.codes)) == (expected[0], expected[2])
    assert read_queries(path)[0].description == read_queries(record)[0].description == "first"
    assert [q.identifier for q in read_queries(["MKV", "MKL"])] == ["query_1", "query_2"]
    assert [len(r.hits) > 0 for r in swsearch.search(path, database, evalue=1e9)] == [True, True]


@pytest.mark.parametrize(
    ("queries", "error", "message"),
    [
        ("missing.fasta", SequenceError, "missing.fasta"),
        ([], InputError, "no query sequences"),
        ([17], InputError, "query 1: got 17, expected a Bio.SeqRecord"),
        ("MK-V", SequenceError, "record 'query_1'.*gap character"),
        ([("q", "MK1V")], SequenceError, "record 'q'.*digit"),
    ],
)
def test_bad_queries(queries, error, message, database):
    with pytest.raises(error, match=message):
        swsearch.search(queries, database)


@pytest.mark.parametrize("subjects", ["missing.fasta", "missing.h5"])
def test_missing_subjects_are_a_database_error(subjects):
    with pytest.raises(DatabaseError, match=subjects):
        list(swsearch.search("MKV", subjects))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "glocal"}, "mode: got 'glocal', expected one of local, global, semiglobal"),
        ({"max_hits": 0}, "max_hits: got 0"),
        ({"evalue": 0.0}, "evalue: got 0.0"),
        ({"evalue": float("nan")}, "evalue: got nan"),
        ({"dbsize": 0}, "dbsize: got 0"),
        ({"statistics": "guessed"}, "statistics: got 'guessed', expected one of auto, published, fitted, none"),
        (
            {"statistics": "published", "scoring": Scoring(gap_open=3)},
            "statistics: no statistics are published for BLOSUM62, gap open 3.*; use 'auto' or 'fitted'",
        ),
        ({"statistics": "published", "mode": "global"}, "statistics: no statistics are published for global"),
        ({"statistics": "none", "evalue": 1.0}, "evalue: got 1.0, expected none with statistics 'none'"),
        (
            {"statistics": "none", "dbsize": 9, "mode": "global"},
            "dbsize: got 9, expected none with statistics 'none'",
        ),
        ({"engine": "tpu"}, "engine: got 'tpu'"),
    ],
)
def test_arguments_are_checked_before_the_search_begins(options, message, database):
    with pytest.raises(InputError, match=message):
        swsearch.search("MKV", database, **options)


def test_without_statistics_there_are_no_numbers(database):
    unasked = only(swsearch.search("MKVLAAGIVGWW", database, statistics="none"))
    assert unasked.why_no_statistics == "no E-values: none were asked for; hits are ranked by score"
    assert unasked.statistics is None
    assert {(hit.bit_score, hit.evalue) for hit in unasked.hits} == {(None, None)}
    fitted = only(swsearch.search("MKVLAAGIVGWW", database, scoring=Scoring(load_matrix("RAO"))))
    assert fitted.statistics is not None
    assert fitted.hits[0].evalue < 1e-9
    assert SearchOptions(statistics="none").evalue_threshold is None
    assert SearchOptions(scoring=Scoring(gap_open=3)).evalue_threshold == 10


def test_hits_outlive_the_search_and_survive_pickling():
    result = only(swsearch.search("MKVLAAGIVGWW", SUBJECTS, evalue=1e9))
    hit = result.hits[0]
    assert hit.cigar == "12M"
    assert hit.query_range == hit.subject_range == (0, 12)
    assert hit.alignment.score == hit.score
    copy = pickle.loads(pickle.dumps(result))
    assert copy == result
    assert copy.hits[0].cigar == "12M"
    assert "best a" in repr(result)
    assert len(result) == len(list(result)) == len(result.hits)
    assert result[0] is hit


def test_results_as_pandas_and_arrow(database):
    pyarrow = pytest.importorskip("pyarrow")
    result = only(swsearch.search("MKVLAAGIVGWW", database, evalue=1e9))
    frame, table = result.to_pandas(), result.to_arrow()
    assert list(frame.columns) == table.column_names
    assert frame["subject_id"].tolist() == [hit.subject_id for hit in result.hits]
    assert table.schema.field("score").type == pyarrow.int64()
    assert frame["evalue"].dtype == "float64"


def test_an_empty_result_has_typed_columns(database):
    result = only(swsearch.search("HHHH", database, evalue=1e-50))
    assert len(result.hits) == 0
    assert result.to_pandas()["score"].tolist() == []
    assert result.to_pandas()["score"].dtype == "int64"


def test_align_hits_in_parallel_finds_what_each_hit_would(database):
    results = list(swsearch.search(["MKVLAAGIVGWW", "WWPPWW"], database, evalue=1e9))
    align_hits(results, 3)
    for result in results:
        for hit in result.hits:
            assert hit.is_aligned
            assert hit.pair.recompute_score() == hit.score


def test_engines_can_be_shared_by_searches(database):
    with create_engine("cpu", threads=1) as engine:
        for _ in range(2):
            assert only(swsearch.search("WWPPWWPP", database, engine=engine)).hits[0].subject_id == "b"


def test_gpu_options_reach_the_engine_that_is_made(database, monkeypatch):
    asked = []

    def create(name, **options):
        asked.append((name, options))
        return create_engine("cpu", threads=1)

    monkeypatch.setattr(asked_for, "create_engine", create)
    list(swsearch.search("MKV", database, engine="gpu", device=1, gpu_memory=1 << 30, evalue=1e9))
    swsearch.score("MKV", database, threads=2, gpu_memory=5)
    assert asked == [
        ("gpu", {"threads": None, "device": 1, "gpu_memory": 1 << 30, "cpu_only": ""}),
        ("auto", {"threads": 2, "device": None, "gpu_memory": 5, "cpu_only": ""}),
    ]


def test_gpu_options_with_an_engine_that_is_made_already(database):
    with create_engine("cpu", threads=1) as engine:
        for options in ({"device": 0}, {"gpu_memory": 1 << 30}):
            for call in (swsearch.search, swsearch.score):
                with pytest.raises(
                    InputError, match="device and gpu_memory: got an Engine object, expected the name of an engine"
                ):
                    call("MKV", database, engine=engine, **options)


def test_progress_counts_every_cell(database):
    seen: list[int] = []
    list(swsearch.search(["MKV", "WWPPWW"], database, progress=seen.append))
    assert sum(seen) == 9 * database.n_residues


class Closing:
    """An engine that says when it was closed."""

    def __init__(self, engine):
        self._engine, self.closed = engine, 0

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def close(self):
        self.closed += 1


@pytest.mark.parametrize("taken", [0, 1, 2])
def test_an_engine_that_a_search_made_is_closed_as_soon_as_its_results_are_dropped(database, taken):
    queries = read_queries(["MKVLAAGIVGWW", "WWPPWW"])
    with create_engine("cpu", threads=1) as engine:
        made = Closing(engine)
        results = SearchResults(
            queries, database, SearchOptions(evalue=1e9), partial(LocalBackend, engine=made), close=made.close
        )
        for _ in range(taken):
            next(results)
        assert not made.closed
        results.close()
        assert made.closed
        again = Closing(engine)
        results = SearchResults(
            queries, database, SearchOptions(evalue=1e9), partial(LocalBackend, engine=again), close=again.close
        )
        next(results)
        del results
        assert again.closed, "no cycle of references keeps it open"
