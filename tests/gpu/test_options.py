"""Further options of a search on a GPU: the same results, alignments and bytes as on the CPU."""

import io

import pytest

import swsearch
from swsearch import report
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.engines.gpu.engine import GpuEngine

pytestmark = pytest.mark.gpu

OPTIONS = {
    "fitted": {"statistics": "fitted"},
    "no statistics": {"statistics": "none", "max_hits": 50},
    "few of many": {"evalue": 1e6, "max_hits": 7},
    "few of many, fitted": {"mode": "global", "evalue": 1e6, "max_hits": 7},
    "by score": {"evalue": 1e6, "max_hits": 7, "sort": "score"},
    "scores below zero": {"mode": "global", "statistics": "none", "min_score": -500, "max_hits": 10_000},
    "every global score": {"mode": "global", "statistics": "none", "max_hits": 10_000},
    "masks": {"query_mask": "lower", "subject_mask": "lower"},
    "masks, fitted": {"query_mask": "lower", "subject_mask": "lower", "statistics": "fitted"},
    "global, masks": {"mode": "global", "subject_mask": "lower", "max_hits": 50},
    "several alignments": {"max_alignments": 5, "max_hits": 40},
    "several alignments, fitted": {"max_alignments": 5, "max_hits": 40, "statistics": "fitted"},
    "filters": {"min_identity": 25, "min_query_coverage": 50, "min_score": 60, "exclude_ids": ["P62632"]},
    "distribution": {"distribution": True},
    "distribution, semi-global": {"distribution": True, "mode": "semiglobal", "max_hits": 50},
}


@pytest.fixture(scope="module")
def engines(has_gpu):
    """A GPU engine and a CPU engine, or a skip that says why."""
    with GpuEngine() as gpu, CpuEngine() as cpu:
        yield gpu, cpu


@pytest.fixture(scope="module")
def subjects(examples):
    """The sample with every tenth stretch of 30 residues in lower case, in memory."""
    with swsearch.Database.from_fasta([examples / "data" / "swissprot_sample.fasta.gz"]) as plain:
        records = [(plain.identifier(k), speckled(plain.sequence(k))) for k in range(plain.n_subjects)]
    with swsearch.Database.from_records(records) as made:
        yield made


def speckled(letters):
    return "".join(
        letters[k : k + 30].lower() if k % 300 == 90 else letters[k : k + 30] for k in range(0, len(letters), 30)
    )


def written(results, outfmt):
    """Return what a format writes of results, without what tells of the run."""
    stream = io.StringIO()
    writer = report.create_writer(outfmt, stream)
    first = results[0]
    size = first.database_name, first.database_subjects, first.database_residues
    writer.begin(swsearch.run_info.RunInfo("0", *size, first.scoring, first.mode, None, 10.0, 500))
    for result in results:
        writer.write(result)
    writer.end()
    return stream.getvalue()


@pytest.mark.parametrize("name", OPTIONS)
def test_results_are_those_of_the_cpu(engines, subjects, examples, tmp_path, name):
    queries = tmp_path / "queries.fasta"
    text = (examples / "data" / "queries.fasta").read_text()
    queries.write_text("".join(part if part.startswith(">") else speckled(part) for part in text.splitlines(True)))
    found = [list(swsearch.search(queries, subjects, engine=engine, **OPTIONS[name])) for engine in engines]
    assert sum(len(result.hits) for result in found[1]) > 20
    assert found[0] == found[1]
    for outfmt in ("jsonl", "html", "5", "6 std zscore evalue_published qcovs", "0"):
        assert written(found[0], outfmt) == written(found[1], outfmt), outfmt
