"""The hits that are kept are the best in the stated order, whatever the engine, statistics, limit and chunks."""

import itertools

import numpy as np
import pytest

import swsearch
from support.cases import random_codes
from support.command_line import run
from support.samples import sample
from swsearch import Database
from swsearch.alphabet import PROTEIN
from swsearch.backends.local import LocalBackend
from swsearch.engines.base import ChunkPlan, HitThresholds
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.engines.reference import ReferenceEngine
from swsearch.errors import OptionError
from swsearch.inputs import Query
from swsearch.options.kinds import MODES
from swsearch.pipeline.null_models import NullModelRequest
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search import Search
from swsearch.statistics.karlin_altschul import published_statistics

PUBLISHED, FITTED = {"statistics": "published"}, {"statistics": "fitted"}
CASES = [
    {"mode": mode, "sort": sort, **statistics, **limits}
    for mode, statistics in [
        ("local", PUBLISHED), ("local", FITTED), ("global", FITTED), ("semiglobal", FITTED),
        ("local", {"statistics": "none"}), ("global", {"statistics": "none"}),
    ]
    for sort in ("evalue", "score")
    for limits in ({"max_hits": 1000}, {"max_hits": 7}, {"max_hits": 1})
]  # fmt: skip
PLANS = {"whole": ChunkPlan(), "streamed": ChunkPlan(1), "mixed": ChunkPlan(1, mix_lengths=True, in_flight=3)}


def relatives(generator, ancestor, n, lengths):
    """Sequences that share a part with one another, of any length."""
    made = []
    for length in generator.integers(*lengths, n).tolist():
        codes = random_codes(generator, length, 20)
        first, size = sorted(generator.integers(0, len(ancestor), 2).tolist())
        piece = ancestor[first : first + min(size, length)]
        at = int(generator.integers(0, length - len(piece) + 1))
        codes[at : at + len(piece)] = piece
        made.append(codes)
    return made


@pytest.fixture(scope="module")
def queries():
    generator = np.random.default_rng(140)
    return [random_codes(generator, n, 20) for n in (12, 40, 90)]


@pytest.fixture(scope="module")
def subjects(queries):
    generator = np.random.default_rng(141)
    made = [random_codes(generator, n, 20) for n in generator.integers(1, 200, 600).tolist()]
    made += [codes for query in queries for codes in relatives(generator, query, 30, (5, 300))]
    made += [made[k] for k in generator.integers(0, len(made), 20)]  # equal ones, which their places tell apart
    return [made[k] for k in generator.permutation(len(made))]


@pytest.fixture(scope="module")
def database(subjects):
    with Database.from_records([PROTEIN.decode(codes) for codes in subjects]) as made:
        yield made


@pytest.fixture(scope="module")
def scores(database, queries):
    letters = [PROTEIN.decode(codes) for codes in queries]
    return {mode: swsearch.score(letters, database, mode=mode, engine="cpu") for mode in MODES}


@pytest.fixture(scope="module")
def fitted(database, queries, scores):
    """E-values of all pairs, each by a null of its own, by mode and query: what no search needs to make."""
    made = {}
    with CpuEngine() as engine:
        for mode in MODES:
            asked = [Query(f"query_{k}", "", codes) for k, codes in enumerate(queries, 1)]
            job = Search(asked, SearchOptions(mode=mode), LocalBackend(database, engine))
            maker = job.criteria.null_model_fitter(1)
            places = np.arange(database.n_subjects)
            for query, null, row in zip(asked, maker.fit_queries(asked), scores[mode], strict=True):
                each = NullModelRequest(
                    query, null, places, row.astype(np.int64), database.lengths.astype(np.int64), 1.0
                )
                (nulls,) = maker.fit_pairs([each], job.subjects.read_masked)
                made[mode, query.identifier] = nulls.evalues(row, database.n_residues)
    return made


def expected(result, row, lengths, options, evalues_of_pairs):
    """Put all subjects in order, one by one."""
    evalues = np.zeros(len(row))
    if evalues_of_pairs is not None:
        evalues = evalues_of_pairs
    elif result.statistics is not None:
        with np.errstate(divide="ignore"):
            evalues = result.statistics.evalues(
                row, result.query_length, np.maximum(lengths, 1), result.effective_residues
            )
    by_evalue = options["sort"] == "evalue" and result.statistics is not None
    order = sorted(range(len(row)), key=lambda k: (evalues[k] if by_evalue else 0, -row[k], k))
    reached = [k for k in order if evalues[k] <= options.get("evalue", 10.0)]
    hits = [k for k in reached if options["mode"] == "global" or row[k] > 0]
    return [(int(row[k]), k) for k in hits[: options["max_hits"]]]


@pytest.mark.parametrize(
    ("options", "plan"),
    sample(
        list(itertools.product(CASES, PLANS)),
        lambda case: case[0]["max_hits"] == 7 and case[0]["sort"] == "evalue" and case[1] != "streamed",
    ),
    ids=lambda part: "-".join(map(str, part.values())) if isinstance(part, dict) else part,
)
def test_the_best_are_the_best_in_the_order(database, queries, scores, fitted, monkeypatch, options, plan):
    monkeypatch.setattr(CpuEngine, "plan", lambda self, workload: PLANS[plan])
    letters = [PROTEIN.decode(codes) for codes in queries]
    for evalue in {"none": [{}]}.get(options["statistics"], [{}, {"evalue": 1e4}]):
        found = swsearch.search(letters, database, engine="cpu", **options, **evalue)
        for result, row in zip(found, scores[options["mode"]], strict=True):
            listed = [(hit.score, hit.subject_index) for hit in result.hits]
            own = fitted.get((options["mode"], result.query_id)) if options["statistics"] == "fitted" else None
            assert listed == expected(result, row, database.lengths, {**options, **evalue}, own)
            assert options["sort"] == "score" or result.statistics is None or _ascending(result)


def _ascending(result):
    return all(one.evalue <= other.evalue for one, other in itertools.pairwise(result.hits))


def test_the_orders_differ_here(database, queries):
    """Without which the tests above would say nothing."""
    for options in (PUBLISHED, FITTED, {"mode": "global"}):
        lists = [
            [
                [hit.subject_index for hit in result.hits]
                for result in swsearch.search(
                    [PROTEIN.decode(codes) for codes in queries],
                    database,
                    engine="cpu",
                    sort=sort,
                    max_hits=20,
                    **options,
                )
            ]
            for sort in ("evalue", "score")
        ]
        assert any(one != other for one, other in zip(*lists, strict=True)), options


def test_thresholds_rise_with_the_hits_and_know_lengths(database, queries, monkeypatch):
    asked = []
    find = CpuEngine.start_scan

    def watched(self, group, loaded, thresholds, progress=None):
        assert isinstance(thresholds, HitThresholds)
        asked.append((thresholds.by_length[0], thresholds.min_scores[0]))
        return find(self, group, loaded, thresholds, progress)

    monkeypatch.setattr(CpuEngine, "plan", lambda self, workload: ChunkPlan(1))
    monkeypatch.setattr(CpuEngine, "start_scan", watched)
    query = PROTEIN.decode(queries[1])
    list(swsearch.search(query, database, engine="cpu", max_hits=5, evalue=1e6, **PUBLISHED))
    tables, least = [table for table, _ in asked], [bound for _, bound in asked]
    assert len({id(table) for table in tables}) == 1, "a table is brought to a device once"
    assert len(set(tables[0][1:].tolist())) > 1
    assert least[0] is None
    assert least[-1] is not None
    statistics, n = published_statistics(swsearch.Scoring(), "local"), database.lengths.max()
    assert statistics.evalues([min(b for b in least if b)], len(query), [n], database.n_residues) < 1e6


@pytest.mark.parametrize("engine", [CpuEngine, ReferenceEngine])
def test_a_global_score_below_zero_is_a_hit(engine):
    arguments = "MKVLAAGIVG", [("far", "WWPPWWPPWW"), ("near", "MKVLAAGIVG"), ("none", "")]
    options = {"mode": "global", "statistics": "none"}
    with engine() as made:
        for more in ({}, {"distribution": True}, {"min_score": -100}):
            (result,) = swsearch.search(*arguments, engine=made, **options, **more)
            assert [(hit.subject_id, hit.score) for hit in result.hits] == [("near", 46), ("none", -21), ("far", -25)]
        for least, kept in ((-25, 3), (-24, 2), (0, 1), (50, 0)):
            (result,) = swsearch.search(*arguments, engine=made, min_score=least, **options)
            assert len(result.hits) == kept


@pytest.mark.parametrize("mode", ["local", "semiglobal"])
def test_nothing_aligned_is_no_hit_in_the_other_modes(mode):
    for more in ({}, {"distribution": True}, {"min_score": -100}):
        (result,) = swsearch.search(
            "WWWW", [("a", "PPPP"), ("b", ""), ("c", "W")], mode=mode, statistics="none", engine="cpu", **more
        )
        assert [hit.subject_id for hit in result.hits] == ["c"]


def test_the_order_is_chosen_on_the_command_line_and_recorded(database, queries, tmp_path):
    query, path = tmp_path / "q.fasta", tmp_path / "d.fasta"
    query.write_text(f">q\n{PROTEIN.decode(queries[2])}\n")
    path.write_text("".join(f">s{k}\n{database.sequence(k)}\n" for k in range(database.n_subjects)))
    common = "search", query, path, "--mode", "global", "--engine", "cpu", "--quiet"
    by_evalue, by_score = (
        run(*common, "--outfmt", "6 evalue score", *more).stdout.split() for more in ((), ("--sort", "score"))
    )
    assert [float(each) for each in by_evalue[::2]] == sorted(float(each) for each in by_evalue[::2])
    assert [int(each) for each in by_score[1::2]] == sorted((int(each) for each in by_score[1::2]), reverse=True)
    assert by_evalue != by_score
    assert "# Options: sort score\n" in run(*common, "--outfmt", 7, "--sort", "score").stdout
    assert "sort" not in run(*common, "--outfmt", 7).stdout
    with pytest.raises(OptionError, match="sort: got 'bits', expected one of evalue, score"):
        swsearch.search("MKV", database, sort="bits")
