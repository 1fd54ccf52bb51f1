"""Searches whose statistics are fitted: all modes, and local mode beside published statistics."""

import gzip
import io
import json
import math
import pickle
import shutil
import subprocess

import numpy as np
import pytest
from Bio import SearchIO

import swsearch
from support.number_texts import evalue_text
from swsearch import report
from swsearch.alphabet import PROTEIN
from swsearch.backends.local import LocalBackend
from swsearch.engines.base import ChunkPlan
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.engines.pools import make_pool
from swsearch.inputs import read_queries
from swsearch.pipeline import batch, criteria, hits
from swsearch.pipeline import prefetch as ahead
from swsearch.pipeline import search as searching
from swsearch.pipeline.null_models import NullModelFitter, NullModelRequest
from swsearch.pipeline.options import SearchOptions
from swsearch.recurrence import Recurrence
from swsearch.run_info import RunInfo
from swsearch.scoring import Scoring, load_matrix
from swsearch.statistics.null_model import FittedStatistics

MODES = ("local", "global", "semiglobal")
N_SUBJECTS = 520


def some_proteins(n, longest, seed=4):
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, longest + 1, n)
    return [(f"s{k}", PROTEIN.decode(generator.integers(0, 20, m).astype(np.uint8))) for k, m in enumerate(lengths)]


@pytest.fixture(scope="module")
def small():
    """A database that the reference can search."""
    with swsearch.Database.from_records([*some_proteins(N_SUBJECTS, 24), ("empty", "")]) as made:
        yield made


@pytest.fixture(scope="module")
def sample(examples, tmp_path_factory):
    """The sample of Swiss-Prot that ships with the project."""
    path = tmp_path_factory.mktemp("fitted") / "sample.h5"
    with swsearch.Database.build([examples / "data" / "swissprot_sample.fasta.gz"], path) as made:
        yield made


@pytest.fixture(scope="module")
def found(examples, sample):
    """Everything of E <= 200 that the example queries find, by mode and query."""
    queries = examples / "data" / "queries.fasta"
    return {
        mode: {
            result.query_id: result
            for result in swsearch.search(
                queries, sample, statistics="fitted", mode=mode, evalue=200.0, max_hits=10_000, engine="cpu"
            )
        }
        for mode in MODES
    }


def text_of(results, outfmt="jsonl"):
    stream = io.StringIO()
    writer = report.create_writer(outfmt, stream)
    for number, result in enumerate(results):
        if not number:
            size = result.database_name, result.database_subjects, result.database_residues
            method = result.statistics.fit if result.statistics else None
            writer.begin(RunInfo("0", *size, result.scoring, result.mode, method, 10.0, 500))
        writer.write(result)
    writer.end()
    return stream.getvalue()


@pytest.mark.parametrize("mode", MODES)
def test_every_engine_writes_the_same_bytes(small, gpu, mode):
    queries = [small.sequence(7), small.sequence(40) * 2, ("none", "")]

    def run(engine):
        return text_of(
            swsearch.search(queries, small, statistics="fitted", mode=mode, engine=engine, evalue=50, max_hits=30)
        )

    expected = run("reference")
    assert '"fit":' in expected
    assert '"no_evalue_reason":"no E-values: the query has no residues' in expected
    assert run("cpu") == expected
    assert run(gpu) == expected


@pytest.mark.parametrize("mode", MODES)
def test_output_does_not_depend_on_chunks_groups_or_threads(small, mode, monkeypatch):
    queries = [small.sequence(k) for k in (7, 40, 99)]

    def run(**options):
        return text_of(
            swsearch.search(queries, small, statistics="fitted", mode=mode, engine="cpu", evalue=50, **options)
        )

    expected = run(threads=1)
    assert run(threads=2) == expected
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 1)
    assert run(threads=2) == expected
    monkeypatch.setattr(hits, "HITS_PER_BATCH", 1)
    monkeypatch.setattr(ahead, "can_start_threads", lambda *_: False)
    assert run(threads=2) == expected
    monkeypatch.setattr(CpuEngine, "plan", lambda self, workload: ChunkPlan(chunk_bytes=1))
    assert run(threads=2) == expected
    monkeypatch.setattr(CpuEngine, "plan", lambda self, workload: ChunkPlan(1, keep_loaded=True, in_flight=3))
    assert run(threads=2) == expected


def test_memory_bounds_the_queries_of_a_group(small, monkeypatch):
    monkeypatch.setattr(criteria, "SCORES_MEMORY", 2 * 8 * small.n_subjects)
    queries = swsearch.inputs.read_queries([small.sequence(k) for k in range(5)], PROTEIN)
    with CpuEngine(1) as engine:
        for more, expected in (({"distribution": True}, [2, 2, 1]), ({}, [5])):
            options = SearchOptions(mode="global", **more)
            batches = list(searching.Search(queries, options, LocalBackend(small, engine)).results())
            assert [len(batch) for batch in batches] == expected


@pytest.mark.parametrize("mode", MODES)
def test_the_threshold_is_applied_to_each_hit_and_before_the_limit(examples, sample, found, mode):
    queries = examples / "data" / "queries.fasta"
    for evalue, max_hits in ((None, 500), (1e-3, 10_000), (200.0, 60)):
        for result in swsearch.search(
            queries, sample, statistics="fitted", mode=mode, evalue=evalue, max_hits=max_hits, engine="cpu"
        ):
            everything, threshold = found[mode][result.query_id].hits, evalue or 10
            kept = [hit for hit in everything if hit.evalue <= threshold][:max_hits]
            # of few copies an E-value may be above the threshold that more copies put below it, but hardly ever
            rejected = [hit for hit in kept if hit not in result.hits]
            assert len(rejected) <= 1 and all(hit.evalue > threshold / 2 for hit in rejected)
            accepted = [hit for hit in kept if hit not in rejected]
            assert result.hits[: len(accepted)] == accepted
    for result in found[mode].values():
        keys = [(hit.evalue, -hit.score, hit.subject_index) for hit in result.hits]
        assert keys == sorted(keys)
    # E-values know both sequences, so that scores go up and down
    assert mode != "global" or any(
        (np.diff([hit.score for hit in each.hits]) > 0).any() for each in found[mode].values()
    )


def nulls_of(result, database, queries):
    """Make the nulls of a result's hits anew."""
    maker = NullModelFitter(result.statistics.fit, Recurrence(result.scoring, result.mode), 2)
    (query,) = [query for query in read_queries(queries) if query.identifier == result.query_id]
    subjects = np.array([hit.subject_index for hit in result.hits])
    scores, lengths = np.array([hit.score for hit in result.hits]), database.lengths[subjects].astype(np.int64)

    def read(places):
        return make_pool([database.codes(place) for place in places.tolist()])

    (found,) = maker.fit_pairs([NullModelRequest(query, result.statistics, subjects, scores, lengths, 1.0)], read)
    return found


@pytest.mark.parametrize("mode", MODES)
def test_hits_say_what_their_statistics_say(examples, found, sample, mode):
    for result in found[mode].values():
        assert isinstance(result.statistics, FittedStatistics)
        nulls = nulls_of(result, sample, examples / "data" / "queries.fasta")
        scores = [hit.score for hit in result.hits]
        bits = [hit.bit_score for hit in result.hits]
        if mode == "local":
            assert bits == nulls.bit_scores(scores).tolist()
        else:
            assert set(bits) == {None}
        assert [hit.evalue for hit in result.hits] == nulls.evalues(scores, sample.n_residues).tolist()
        assert [hit.z_score for hit in result.hits] == nulls.z_scores(scores).tolist()
        # the sample has 4 relatives of testisin, 40 of protein kinase C
        assert 4 <= sum(hit.evalue < 1e-3 for hit in result.hits) <= 80


@pytest.mark.parametrize("mode", MODES)
def test_dbsize_scales_evalues(examples, sample, found, mode):
    queries = examples / "data" / "queries.fasta"
    ten = swsearch.search(
        queries, sample, statistics="fitted", mode=mode, dbsize=10 * sample.n_residues, engine="cpu"
    )
    for result in ten:
        own = {hit.subject_index: hit.evalue for hit in found[mode][result.query_id].hits}
        assert result.hits
        assert all(hit.evalue == pytest.approx(10 * own[hit.subject_index]) for hit in result.hits)
        assert max(hit.evalue for hit in result.hits) <= 10


def test_only_a_query_without_residues_has_no_evalues_and_the_reason_is_given():
    subjects = [("a", "MKVLAAGIVGWW"), ("b", "WWPPWWPP"), ("d", "")]
    result, other = swsearch.search(
        [("none", ""), "MKVLAAGIVGWW"], subjects, mode="global", evalue=1e-9, engine="cpu"
    )
    assert result.statistics is None
    assert result.why_no_statistics == "no E-values: the query has no residues; hits are ranked by score"
    assert [(hit.subject_id, hit.evalue, hit.z_score) for hit in result.hits[:2]] == [
        ("d", None, None),
        ("b", None, None),
    ]
    assert [hit.subject_id for hit in other.hits] == ["a"]
    assert other.hits[0].evalue < 1e-9
    assert json.loads(text_of([result]))["parameters"]["no_evalue_reason"] == result.no_evalue_reason
    assert f"# Note: {result.no_evalue_reason}" in text_of([result], "7")
    assert "Statistics: none" in text_of([result], "0")


def test_fitted_evalues_are_reported_beside_published_ones(examples, sample, found):
    queries = examples / "data" / "queries.fasta"
    published = swsearch.search(queries, sample, statistics="published", evalue=1e9, max_hits=10_000, engine="cpu")
    for result in published:
        hits = {hit.subject_index: hit for hit in result.hits}
        beside = found["local"][result.query_id].hits
        assert len(hits) > 1_000
        assert {(hit.z_score, hit.evalue_published) for hit in result.hits} == {(None, None)}
        assert [hit.evalue_published for hit in beside] == [hits[hit.subject_index].evalue for hit in beside]
        chance = [(hit.evalue_published, hit.evalue) for hit in beside if 0.1 < hit.evalue < 100]
        assert len(chance) > 20
        assert np.abs(np.log([ours / theirs for ours, theirs in chance])).mean() < math.log(4), result.query_id


@pytest.mark.parametrize("scoring", [Scoring(gap_open=13, gap_extend=3), Scoring(load_matrix("PAM30"), 13, 3)])
def test_scoring_without_published_constants_is_fitted(examples, sample, scoring):
    queries = examples / "data" / "queries.fasta"
    for result in swsearch.search(queries, sample, scoring=scoring, engine="cpu"):
        assert result.statistics.name.startswith("Gumbel")
        assert result.hits[0].evalue < 1e-10
        assert max(hit.evalue for hit in result.hits) <= 10
        assert {hit.evalue_published for hit in result.hits} == {None}
        assert 3 <= sum(hit.evalue < 1e-3 for hit in result.hits) <= 80


def test_local_formats_show_bits_and_both_evalues(examples, sample):
    queries = examples / "data" / "queries.fasta"
    results = list(swsearch.search(queries, sample, statistics="fitted", max_hits=3, engine="cpu"))
    best = results[0].hits[0]
    rows = text_of(results, "6 score bitscore zscore evalue evalue_published").splitlines()
    numbers = [float(cell) for cell in rows[0].split("\t")]
    # as printed: a bit score above 99.9 is cut, not rounded
    assert numbers[:2] == [best.score, int(best.bit_score)]
    assert numbers[2:] == pytest.approx([best.z_score, best.evalue, best.evalue_published], rel=0.01)
    first = json.loads(text_of(results).splitlines()[0])
    assert first["hits"][0]["bit_score"] == best.bit_score
    assert first["hits"][0]["evalue_published"] == best.evalue_published
    assert first["parameters"]["fit"]["by_length"][0].keys() == {"length", "mean", "standard_deviation"}
    pairwise = text_of(results, "0")
    assert f" Score = {int(best.bit_score)} bits ({best.score})," in pairwise
    assert pairwise.count("(Bits)  Value") == 5
    assert f",  Published Expect = {evalue_text(best.evalue_published)}\n" in pairwise
    assert f'"published":{best.evalue_published!r}' in text_of(results, "html")
    frame = results[0].to_pandas()
    assert frame["z_score"].tolist() == [hit.z_score for hit in results[0].hits]
    assert frame["evalue_published"].dtype == "float64"


@pytest.mark.parametrize(
    ("mode", "name"), [("global", "Pearson's type III distribution"), ("semiglobal", "Gumbel distribution")]
)
def test_every_format_names_the_statistics(examples, sample, mode, name):
    queries = examples / "data" / "queries.fasta"
    results = list(swsearch.search(queries, sample, statistics="fitted", mode=mode, max_hits=3, engine="cpu"))
    commented = text_of(results, "7")
    assert (
        commented.count(f"# Note: E-values: {name}")
        == commented.count("# Note: fit: random sequences of the query's length score ")
        == 5
    )
    assert [len(query) for query in SearchIO.parse(io.StringIO(commented), "blast-tab", comments=True)] == [3] * 5
    pairwise = text_of(results, "0")
    assert pairwise.count(f"Note: E-values: {name}") == 5
    assert f"Statistics: {name}" in pairwise
    assert "Lambda" not in pairwise
    best = results[0].hits[0]
    assert f" Score = {best.score},  Z-score = {best.z_score:.1f},  Expect = " in pairwise
    first = json.loads(text_of(results).splitlines()[0])
    assert first["parameters"]["statistics"].startswith(name)
    assert first["parameters"]["fit"] == results[0].statistics.parameters()
    assert first["hits"][0]["z_score"] == best.z_score
    assert first["hits"][0]["bit_score"] is None
    assert pickle.loads(pickle.dumps(results[0])) == results[0]
    assert results[0].to_pandas()["bit_score"].isna().all()


def peer_hits(program, examples, folder):
    """Run ggsearch36 or glsearch36; return {(query, subject): (score, z-score, E-value)}."""
    fasta = folder / "sample.fasta"
    fasta.write_bytes(gzip.decompress((examples / "data" / "swissprot_sample.fasta.gz").read_bytes()))
    command = [program, "-q", "-s", "BP62", "-E", "50", "-m", "10", examples / "data" / "queries.fasta", fasta]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    hits = {}
    query = subject = ""
    values = {}
    for line in done.stdout.splitlines():
        if line.startswith(">>>"):
            if line[3] not in "</":
                query = line[3:].split()[0].rstrip(",")
        elif line.startswith(">>"):
            subject, values = line[2:].split()[0], {}
        elif line.startswith("; g") and ": " in line:
            name, value = line.split(": ")
            values[name.split("_")[-1]] = value
            if name.endswith("expect"):
                z_score = (float(values["z-score"]) - 50) / 10  # FASTA prints 50 + 10 z
                hits[query, subject] = int(values["n-w opt"]), z_score, float(value)
    return hits


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("ggsearch36") is None, reason="ggsearch36 is not installed")
def test_what_ggsearch_is_sure_of_is_found_in_global_mode(examples, sample, tmp_path):
    """It looks only at subjects of 80 to 125 % of the query's length, with one mean and variance for all of them.

    So only scores are alike, and what is sure; it counts a tenth to a fifth of the subjects, and ours counts all.
    """
    theirs = peer_hits("ggsearch36", examples, tmp_path)
    everything = {"mode": "global", "evalue": 1e9, "max_hits": 10_000}
    for result in swsearch.search(examples / "data" / "queries.fasta", sample, engine="cpu", **everything):
        query = result.query_id
        ours = {hit.subject_id: hit for hit in result.hits}
        pairs = [(values, ours[subject]) for (name, subject), values in theirs.items() if name == query]
        assert len(pairs) > 30
        assert [score for (score, *_), _ in pairs] == [hit.score for _, hit in pairs]
        ratios = [hit.evalue / evalue for (_, _, evalue), hit in pairs if 0.01 < evalue < 50]
        assert 0.3 < np.median(ratios) < 30, query
        assert all(hit.evalue < 1e-4 for (_, _, evalue), hit in pairs if evalue < 1e-6)


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("glsearch36") is None, reason="glsearch36 is not installed")
def test_what_glsearch_is_sure_of_is_found_in_semiglobal_mode(examples, found, tmp_path):
    """Its queries are aligned whole, ours may hang over at either end, so only scores of relatives are alike."""
    hits = {(name, hit.subject_id): hit for name, result in found["semiglobal"].items() for hit in result.hits}
    for pair, (score, _, evalue) in peer_hits("glsearch36", examples, tmp_path).items():
        assert pair not in hits or hits[pair].score >= score
        if evalue < 1e-6:
            assert hits[pair].evalue < 1e-4, pair
