"""Searches whose statistics are fitted: all modes, and local mode beside published statistics."""

import gzip
import io
import shutil
import subprocess

import numpy as np
import pytest

import swsearch
from swsearch import report
from swsearch.alphabet import PROTEIN
from swsearch.engines.base import ChunkPlan
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.pipeline import batch, hits
from swsearch.pipeline import prefetch as ahead
from swsearch.run_info import RunInfo

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
    assert '"no_statistics":"no E-values: the query has no residues' in expected
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
    monkeypatch.setattr(hits, "HITS_PER_PART", 1)
    monkeypatch.setattr(ahead, "has_room_for_threads", lambda *_: False)
    assert run(threads=2) == expected
    monkeypatch.setattr(CpuEngine, "plan", lambda self, workload: ChunkPlan(chunk_bytes=1))
    assert run(threads=2) == expected
    monkeypatch.setattr(CpuEngine, "plan", lambda self, workload: ChunkPlan(1, keep=True, in_flight=3))
    assert run(threads=2) == expected


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
        assert len(pairs) > 50
        assert [score for (score, *_), _ in pairs] == [hit.score for _, hit in pairs]
        ratios = [hit.evalue / evalue for (_, _, evalue), hit in pairs if 0.01 < evalue < 50]
        assert 1 < np.median(ratios) < 30, query
        assert all(hit.evalue < 1e-6 for (_, _, evalue), hit in pairs if evalue < 1e-6)


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("glsearch36") is None, reason="glsearch36 is not installed")
def test_what_glsearch_is_sure_of_is_found_in_semiglobal_mode(examples, found, tmp_path):
    """Its queries are aligned whole, ours may hang over at either end, so only scores of relatives are alike."""
    hits = {(name, hit.subject_id): hit for name, result in found["semiglobal"].items() for hit in result.hits}
    for pair, (score, _, evalue) in peer_hits("glsearch36", examples, tmp_path).items():
        assert pair not in hits or hits[pair].score >= score
        if evalue < 1e-6:
            assert hits[pair].evalue < 1e-4, pair
