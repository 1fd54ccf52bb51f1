"""A search by a crew writes the same bytes as one process, whatever the volumes, the shares and the workers."""

from __future__ import annotations

import io
import re
import time
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from Bio.Data.CodonTable import unambiguous_dna_by_id

import swsearch
from support.cases import random_codes
from support.samples import sample
from swsearch import Database
from swsearch.alphabet import PROTEIN
from swsearch.cluster import job as jobs
from swsearch.cluster import tasks
from swsearch.cluster.client import shares_of
from swsearch.cluster.crew import InlineCrew
from swsearch.cluster.job import CrewEngine
from swsearch.cluster.running import ClusterResults, engine_of
from swsearch.cluster.sent import EngineWanted
from swsearch.db import build_database
from swsearch.db.volumes import write_manifest
from swsearch.errors import ClusterError, GpuUnavailableError, InputError, OptionError
from swsearch.pipeline import search_job as job
from swsearch.pipeline.arguments import options_of
from swsearch.pipeline.pair_work import PairWork
from swsearch.pipeline.prefetch import check_wanted
from swsearch.pipeline.search_queries import search_queries
from swsearch.pipeline.search_results import SearchResults
from swsearch.run_info import Origin

FORMATS = ("6", "0", "xml", "json")

CUTS = [0, 90, 91, 200, 240]
"""Where the records are cut into volumes; one of these is a volume of a single subject."""


def family(generator, n, length):
    """Sequences that are alike, in part in lower case."""
    parent = generator.integers(0, 20, length)
    for _ in range(n):
        codes = parent.copy()
        places = generator.random(length) < generator.uniform(0.1, 0.7)
        codes[places] = generator.integers(0, 20, int(places.sum()))
        cut = slice(int(generator.integers(0, length // 3)), length - int(generator.integers(0, length // 3)))
        letters = PROTEIN.decode(codes[cut].astype(np.uint8))
        yield letters[:20] + letters[20:40].lower() + letters[40:]


def records():
    generator = np.random.default_rng(18)
    found = [each for length in (60, 90, 150, 240) for each in family(generator, 25, length)]
    found += [found[0] + found[30] + found[0], "", found[5] * 3, "M" * 40 + "K" * 30, "W"]
    found += [PROTEIN.decode(random_codes(generator, int(n), 20)) for n in generator.integers(20, 200, 135)]
    order = generator.permutation(len(found))
    return [(f"s{place} protein {place % 7}", found[each]) for place, each in enumerate(order.tolist())]


RECORDS = records()
QUERIES = [
    ("q0 a family", next(letters for _, letters in RECORDS if len(letters) > 150)),
    ("q1 none", ""),
    ("q2 another", next(letters for _, letters in reversed(RECORDS) if 60 < len(letters) < 120)),
    ("q3 short", "MKVLAAGIVGWWHHPE"),
    ("q4 biased", "M" * 30 + "KKKKKPPPPP"),
]


CODONS = {letter: codon for codon, letter in unambiguous_dna_by_id[1].forward_table.items()}
DNA_QUERIES = [
    ("d0 shifted", "A".join("".join(CODONS.get(letter, "NNN") for letter in part) for part in parts))
    for parts in [(QUERIES[0][1][:70], QUERIES[0][1][70:]), (QUERIES[2][1], "")]
] + [("d1 none", "AC"), ("d2 short", "ATGAAA")]


def fasta(path, some):
    path.write_text("".join(f">{header}\n{letters}\n" for header, letters in some))
    return path


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The same database under one name in two folders: one file, and a manifest of four volumes."""
    one, four = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("four")
    source = fasta(one / "in.fasta", RECORDS)
    build_database(source, one / "db.h5", mask="tantan")
    volumes = []
    for number, (first, last) in enumerate(pairwise(CUTS)):
        volumes.append(four / f"part.{number}.h5")
        build_database(fasta(four / "part.fasta", RECORDS[first:last]), volumes[-1], mask="tantan", allow_dna=True)
    with Database.open(one / "db.h5") as opened:
        write_manifest(four / "db.h5", volumes, opened.sources())
    fasta(one / "queries.fasta", QUERIES)
    fasta(one / "dna.fasta", DNA_QUERIES)
    return {"one": one, "four": four, "queries": one / "queries.fasta", "dna": one / "dna.fasta"}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(job, "GROUP_ROWS", 150)
    monkeypatch.setattr(job, "FIRST_ROWS", (100,))
    monkeypatch.setattr(job, "HITS_TOGETHER", 20)
    monkeypatch.setattr(jobs, "FIT_ROWS", 100)


def bytes_of(results):
    streams = [io.StringIO() for _ in FORMATS]
    swsearch.write(results, streams, list(FORMATS))
    return {name: stream.getvalue() for name, stream in zip(FORMATS, streams, strict=True)}


def begun(folders, cut, engine, kind=SearchResults, progress=None, owns_engine=False, **options):
    asked = options_of(**options)
    queries = search_queries(folders["queries" if asked.translation is None else "dna"], asked)
    return kind(
        queries, folders[cut] / "db.h5", asked, engine, progress=progress,
        threads=1, owns_engine=owns_engine, origin=Origin("queries.fasta"),
    )  # fmt: skip


def by_crew(folders, cut, crew, checkpoint=None, **options):
    with begun(folders, cut, CrewEngine(crew, EngineWanted("cpu")), ClusterResults, **options) as results:
        if checkpoint is not None:
            results.keep_in(checkpoint)
        return bytes_of(results)


def by_one(folders, cpu, **options):
    with begun(folders, "one", cpu, **options) as results:
        return bytes_of(results)


def same(folders, cut, found, expected):
    """Compare, whatever the folder that the database was in."""
    for name in FORMATS:
        assert found[name].replace(str(folders[cut]), "") == expected[name].replace(str(folders["one"]), ""), name


OPTIONS = {
    "usual": {},
    "published": {"statistics": "published"},
    "few": {"max_hits": 3, "evalue": 1e6},
    "global": {"mode": "global"},
    "semiglobal": {"mode": "semiglobal", "evalue": 100},
    "no statistics": {"statistics": "none", "max_hits": 30},
    "global, no statistics": {"mode": "global", "statistics": "none", "max_hits": 20},
    "by score": {"sort": "score", "evalue": 50},
    "published by score": {"sort": "score", "statistics": "published", "evalue": 50},
    "masks": {"query_mask": "lower", "subject_mask": "lower"},
    "tantan": {"query_mask": "tantan", "subject_mask": "tantan"},
    "no mask": {"subject_mask": "none"},
    "dbsize": {"dbsize": 10**9},
    "published dbsize": {"dbsize": 10**9, "statistics": "published"},
    "least score": {"min_score": 60},
    "filters": {"min_identity": 40, "min_query_coverage": 30, "max_hits": 10, "evalue": 1e4},
    "published filters": {"min_identity": 40, "statistics": "published", "evalue": 1e4},
    "included": {"include_ids": [header.split()[0] for header, _ in RECORDS[::3]], "evalue": 1e4},
    "excluded": {"exclude_ids": ["s3", "s90", "s200", "s239"], "evalue": 1e4},
    "several": {"max_alignments": 4, "evalue": 1e3},
    "several, published": {"max_alignments": 3, "statistics": "published"},
    "several with filters": {"max_alignments": 3, "min_identity": 35},
    "distribution": {"distribution": True},
    "published distribution": {"distribution": True, "statistics": "published"},
    "iterations": {"iterations": 3},
    "published iterations": {"iterations": 2, "statistics": "published"},
    "dna": {"translate": True, "max_hits": 20},
    "dna, several": {"translate": True, "strand": "plus", "max_alignments": 3, "statistics": "published"},
    "dna, filters": {"translate": True, "min_query_coverage": 20, "distribution": True},
}
QUICK = {"usual", "published", "global", "masks", "filters", "included", "distribution", "iterations"}
EVERY_CUT = [("one", 1), ("one", 2), ("four", 1), ("four", 2), ("one", 4), ("four", 4)]


@pytest.mark.parametrize(
    ("name", "cut", "n_workers"),
    sample(
        [(name, cut, n) for name in OPTIONS for cut, n in EVERY_CUT],
        lambda each: (each[0] in QUICK and each[1:] == ("four", 2)) or (each[0] == "usual" and each[1] == "one"),
    ),
)
def test_the_bytes_are_those_of_one_process(folders, cpu, name, cut, n_workers):
    expected = by_one(folders, cpu, **OPTIONS[name])
    assert expected["6"].count("\n") > 2
    with InlineCrew(n_workers, 1) as crew:
        same(folders, cut, by_crew(folders, cut, crew, **OPTIONS[name]), expected)


class Killed(BaseException):
    pass


def refuse(*_):
    raise Killed


def test_a_search_goes_on_from_its_checkpoint_with_and_without_a_crew(folders, cpu, tmp_path):
    expected = by_one(folders, cpu)
    with pytest.MonkeyPatch.context() as patched, InlineCrew(2, 1) as crew:
        patched.setattr(job.SearchJob, "made", refuse)
        with pytest.raises(Killed):
            by_crew(folders, "four", crew, tmp_path)
    kept = sorted(path.name for path in tmp_path.glob("queries-*"))
    assert kept
    with InlineCrew(2, 1) as crew:
        same(folders, "four", by_crew(folders, "four", crew, tmp_path), expected)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(cpu), "score", refuse)  # all is there
        with begun(folders, "four", cpu) as results:
            results.keep_in(tmp_path)
            same(folders, "four", bytes_of(results), expected)


def test_what_one_process_kept_a_crew_does_not_search_again(folders, cpu, tmp_path):
    with begun(folders, "four", cpu) as results:
        results.keep_in(tmp_path)
        expected = bytes_of(results)
    sorted(tmp_path.glob("queries-*"))[1].unlink()
    with pytest.MonkeyPatch.context() as patched, InlineCrew(2, 1) as crew:
        scored = []
        score = tasks.score
        patched.setattr(tasks, "score", lambda *given: scored.append(1) or score(*given))
        found = by_crew(folders, "four", crew, tmp_path)
    assert found == expected
    assert len(scored) == 4  # the volumes, for one of the groups


def test_workers_do_the_work(folders, monkeypatch):
    called = []
    for name in ("score", "fit", "nulls", "align", "further"):
        monkeypatch.setattr(tasks, name, counted(name, called))
    with InlineCrew(2, 1) as crew, pytest.MonkeyPatch.context() as patched:
        patched.setattr(PairWork, "nulls", here_or_there(PairWork.nulls))
        patched.setattr(PairWork, "aligned", here_or_there(PairWork.aligned))
        by_crew(folders, "four", crew, max_alignments=2, evalue=100)
    assert set(called) == {"score", "fit", "nulls", "align", "further"}


def counted(name, called):
    """A function of tasks, which tells that it was called."""
    function = getattr(tasks, name)
    return lambda payload, worker: called.append(name) or function(payload, worker)


def here_or_there(function):
    """Refuse what the client itself computes of pairs."""

    def checked(self, *arguments):
        assert type(self) is PairWork, "the client computed pairs"
        return function(self, *arguments)

    return checked


def test_progress_is_that_of_all_cells(folders, cpu):
    cells, restored = [], []
    with InlineCrew(2, 1) as crew:
        engine = CrewEngine(crew, EngineWanted("cpu"))
        with begun(folders, "four", engine, ClusterResults, progress=cells.append) as results:
            results.job.restored = restored.append
            list(results)
            assert sum(cells) == results.job.cells
    assert not restored
    assert len(cells) > 10


def test_a_hit_is_aligned_after_the_crew_has_gone(folders, cpu):
    expected = by_one(folders, cpu)
    with InlineCrew(2, 1) as crew:
        engine = CrewEngine(crew, EngineWanted("cpu"))
        with begun(folders, "four", engine, ClusterResults) as results:
            kept = list(results)
        engine.close()
    assert not kept[0].hits.is_aligned
    streams = [io.StringIO() for _ in FORMATS]
    swsearch.write(kept, streams, list(FORMATS))
    found = {name: stream.getvalue() for name, stream in zip(FORMATS, streams, strict=True)}
    same(folders, "four", found, expected)


def test_what_a_task_raises_comes_to_the_client(folders, monkeypatch):
    def refuse(payload, worker):
        raise InputError("queries: no")

    monkeypatch.setattr(tasks, "align", refuse)
    with InlineCrew(2, 1) as crew, pytest.raises(InputError, match="queries: no"):
        by_crew(folders, "four", crew)


def test_a_mistake_in_a_task_ends_the_search_after_some_tries(folders, monkeypatch):
    tried = []

    def fail(payload, worker):
        tried.append(worker.index)
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(tasks, "align", fail)
    crew = InlineCrew(2, 1, notice=lambda text: None)
    with crew, pytest.raises(ClusterError, match=r"tried 3 times.*ZeroDivisionError: oh"):
        by_crew(folders, "one", crew, max_hits=2)
    assert len(tried) >= 3


def test_tasks_that_run_do_not_keep_a_search_from_its_end(folders, monkeypatch):
    score = tasks.score

    def slow(payload, worker):
        for _ in range(6000 if worker.index else 0):
            check_wanted()
            time.sleep(0.01)
        return score(payload, worker)

    monkeypatch.setattr(tasks, "score", slow)
    begin = time.monotonic()
    crew = InlineCrew(2, 1)
    with pytest.raises(Killed):
        begun_with = CrewEngine(crew, EngineWanted("cpu"))
        list(begun(folders, "four", begun_with, ClusterResults, progress=refuse, owns_engine=True))
    assert time.monotonic() - begin < 30


def test_a_group_that_one_process_would_score_at_once_is_many_tasks(folders):
    with InlineCrew(3, 1) as crew:
        engine = CrewEngine(crew, EngineWanted("cpu"))
        with begun(folders, "one", engine, ClusterResults) as results:
            remote = results.job.remote
            assert [(share.volume, share.place, share.of) for share in remote.shares] == [(0, k, 6) for k in range(6)]
            assert sum(share.n_residues for share in remote.shares) == results.job.database.n_residues
            assert "1 volume in 6 shares" in results.job.plan.note


def test_volumes_of_different_size_are_cut_into_shares_of_like_size():
    sizes = [8, 1, 4, 0]
    volumes = [SimpleNamespace(n_residues=100 * size, residue_bytes=size << 20) for size in sizes]
    shares = shares_of(volumes, 13)
    assert [sum(share.volume == k for share in shares) for k in range(4)] == [8, 1, 4, 1]
    assert [sum(share.n_residues for share in shares if share.volume == k) for k in range(4)] == [800, 100, 400, 0]


def test_a_refused_engine_is_told_before_anything_is_searched(folders):
    with (
        InlineCrew(1, 1) as crew,
        pytest.raises(GpuUnavailableError, match="a worker on localhost: engine gpu cannot"),
    ):
        engine_of(crew, EngineWanted("gpu"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": 0}, "device: got 0, expected none with client"),
        ({"threads": 2}, "threads: got 2, expected none with client"),
        ({"engine": "fast"}, "engine: got 'fast', expected one of"),
        ({"gpu_memory": 0}, "gpu_memory: got 0"),
        (
            {"client": "tcp://somewhere:8786"},
            "client: got 'tcp://somewhere:8786', expected a dask.distributed.Client",
        ),
    ],
)
def test_options_that_do_not_go_with_a_client(folders, options, message):
    with InlineCrew(1, 1) as crew, pytest.raises(OptionError, match=re.escape(message)):
        swsearch.search("MKVLAAGIVGWW", folders["one"] / "db.h5", **{"client": crew, **options})


def test_python_takes_a_client(folders, cpu):
    expected = list(swsearch.search(folders["queries"], folders["four"] / "db.h5", engine=cpu))
    with InlineCrew(2, 1) as crew:
        for _ in range(2):  # it stays open
            found = swsearch.search(folders["queries"], folders["four"] / "db.h5", engine="cpu", client=crew)
            assert [result.hits for result in found] == [result.hits for result in expected]
        with Database.open(folders["four"] / "db.h5") as database:
            found = swsearch.search(folders["queries"], database, engine="cpu", client=crew)
            assert [len(result.hits) for result in found] == [len(result.hits) for result in expected]


@pytest.mark.parametrize("subjects", ["MKVLAAGIVGWW", [("a", "MKVLAAGIVGWW")], "fasta", "memory"])
def test_subjects_that_are_in_no_database_file_are_refused(folders, subjects):
    given = subjects
    if subjects == "fasta":
        given = folders["one"] / "in.fasta"
    elif subjects == "memory":
        given = Database.from_records([("a", "MKVLAAGIVGWW")])
    with (
        InlineCrew(1, 1) as crew,
        pytest.raises(InputError, match="expected one that all workers can read; build it with swsearch db build"),
    ):
        swsearch.search("MKVLAAGIVGWW", given, client=crew)


@pytest.mark.parametrize("options", [{}, {"mode": "global"}])
def test_a_volume_without_residues_can_be_searched_alone(tmp_path, cpu, options):
    build_database(fasta(tmp_path / "in.fasta", [("a", "MKVLAAGIV"), ("b", "")]), tmp_path / "db.h5", volume_size=1)
    empty = sorted(tmp_path.glob("db.*.h5"))[-1]
    queries = [("q", "MKV"), ("e", "")]
    expected = [result.hits for result in swsearch.search(queries, empty, engine=cpu, **options)]
    with InlineCrew(2, 1) as crew:
        found = swsearch.search(queries, empty, engine="cpu", client=crew, **options)
        assert [result.hits for result in found] == expected
