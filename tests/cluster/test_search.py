"""A search by workers writes the same bytes as one process, whatever the options, the volumes and the shares."""

from __future__ import annotations

import io
import re
import threading
from itertools import pairwise

import numpy as np
import pytest
from Bio.Data.CodonTable import unambiguous_dna_by_id

import swsearch
from support import command_line
from support.cases import random_codes
from support.samples import sample
from swsearch import Database
from swsearch.alphabet import PROTEIN
from swsearch.cluster import backend, tasks
from swsearch.db import build_database, write_manifest
from swsearch.errors import ClusterError, DatabaseError, InputError, MemoryLimitError, OptionError
from swsearch.pipeline import batch, hits, iterate
from swsearch.pipeline.pairs import LocalPairBackend

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


def coding(letters):
    """Return DNA of a protein."""
    return "".join(CODONS.get(letter.upper(), "NNN") for letter in letters)


DNA_QUERIES = [
    ("d0 shifted", "A" + coding(QUERIES[0][1][:70]) + "A" + coding(QUERIES[0][1][70:])),
    ("d1 none", "AC"),
    ("d2 another", coding(QUERIES[2][1])),
    ("d3 short", "ATGAAA"),
]
GENOME = [(f"c{place} contig", "ACGTT" * (place % 9) + coding(letters)) for place, (_, letters) in enumerate(RECORDS)]


def fasta(path, some):
    path.write_text("".join(f">{header}\n{letters}\n" for header, letters in some))
    return path


def built(one, four, name, some, **options):
    """Build a database under one name in two folders: one file, and a manifest of four volumes."""
    build_database(fasta(one / "in.fasta", some), one / name, **options)
    volumes = []
    for number, (first, last) in enumerate(pairwise(CUTS)):
        volumes.append(four / f"{name[:-3]}.{number}.h5")
        build_database(fasta(four / "in.fasta", some[first:last]), volumes[-1], allow_dna=True, **options)
    write_manifest(four / name, volumes)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    one, four = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("four")
    built(one, four, "genome.h5", GENOME, translate=True)
    built(one, four, "db.h5", RECORDS, mask="tantan")
    fasta(one / "in.fasta", RECORDS)
    fasta(one / "queries.fasta", QUERIES)
    fasta(one / "dna.fasta", DNA_QUERIES)
    return {"one": one, "four": four, "queries": one / "queries.fasta", "dna": one / "dna.fasta"}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Cut little work into many parts, here and on workers, which are threads of this process."""
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 150)
    monkeypatch.setattr(batch, "FIRST_GROUP_RESIDUES", (100,))
    monkeypatch.setattr(hits, "HITS_PER_BATCH", 20)
    monkeypatch.setattr(iterate, "HITS_PER_BATCH", 20)
    monkeypatch.setattr(backend, "FIT_RESIDUES", 100)
    monkeypatch.setattr(backend, "MIN_CELLS", 20_000)


def found(folders, cut, name="db.h5", **options):
    """Search one file or four volumes, and return what the formats hold, whatever the folder."""
    queries = folders["dna" if options.get("translate") else "queries"]
    with swsearch.search(queries, folders[cut] / name, engine="cpu", **options) as results:
        return bytes_of(results, folders[cut])


def bytes_of(results, folder):
    streams = [io.StringIO() for _ in FORMATS]
    swsearch.write(results, streams, list(FORMATS))
    return [stream.getvalue().replace(str(folder), "") for stream in streams]


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
    "iterations with filters": {"iterations": 2, "min_identity": 30, "max_alignments": 2},
    "dna": {"translate": True, "max_hits": 20},
    "dna, several": {"translate": True, "strand": "plus", "max_alignments": 3, "statistics": "published"},
    "dna, filters": {"translate": True, "min_query_coverage": 20, "distribution": True},
    "frame shifts": {"translate": True, "frame_shift": 15},
    "frame shifts, filters": {"translate": True, "frame_shift": 15, "min_identity": 40, "evalue": 1e3},
    "frame shifts, no statistics": {"translate": True, "frame_shift": 15, "statistics": "none", "max_hits": 9},
    "genome": {"name": "genome.h5", "evalue": 100},
    "genome, published": {"name": "genome.h5", "statistics": "published"},
    "genome, no statistics": {"name": "genome.h5", "statistics": "none", "max_hits": 20},
    "genome, filters": {"name": "genome.h5", "min_identity": 40, "evalue": 1e3, "max_hits": 7},
    "genome, included": {"name": "genome.h5", "include_ids": [f"c{n}" for n in range(0, 240, 3)], "evalue": 1e3},
    "genome and dna": {"name": "genome.h5", "translate": True, "sort": "score"},
}
QUICK = {"usual", "masks", "filters", "several", "iterations", "genome and dna"}
"""Of a quick run, which has every kind of search on workers in tests/matrix as well."""


@pytest.mark.parametrize(
    ("name", "cut"),
    sample(
        [(name, cut) for name in OPTIONS for cut in ("one", "four") if cut == "four" or name in QUICK],
        lambda each: (each[0] in QUICK and each[1] == "four") or each == ("usual", "one"),
    ),
)
def test_the_bytes_are_those_of_one_process(folders, dask_client, name, cut):
    expected = found(folders, "one", **OPTIONS[name])
    assert expected[0].count("\n") > 2
    assert found(folders, cut, client=dask_client, **OPTIONS[name]) == expected


def test_several_files_of_dna_are_one_database(folders, dask_client):
    volumes = sorted(folders["four"].glob("genome.?.h5"))
    expected = list(swsearch.search(folders["queries"], volumes, engine="cpu", evalue=100))
    results = list(swsearch.search(folders["queries"], volumes, engine="cpu", client=dask_client, evalue=100))
    assert [each.hits for each in results] == [each.hits for each in expected]
    assert sum(len(each.hits) for each in results) > 10


def test_a_profile_is_searched_with(folders, dask_client):
    with swsearch.search(
        QUERIES[:1], folders["one"] / "db.h5", engine="cpu", iterations=2, keep_profiles=True
    ) as results:
        profile = next(results).next_profile
    given = {"engine": "cpu", "max_alignments": 2}
    (expected,) = swsearch.search(profile, folders["one"] / "db.h5", **given)
    (result,) = swsearch.search(profile, folders["four"] / "db.h5", client=dask_client, **given)
    assert result.hits == expected.hits
    assert len(result.hits) > 5


def test_workers_do_the_work(folders, dask_client, monkeypatch):
    called = set()
    for name in ("score", "fit_queries", "fit_pairs", "align", "find_hsps"):
        monkeypatch.setattr(tasks, name, noted(getattr(tasks, name), called))
    for name in ("fit_null_models", "align"):
        monkeypatch.setattr(LocalPairBackend, name, on_workers_only(getattr(LocalPairBackend, name)))
    found(folders, "four", client=dask_client, max_alignments=2, evalue=100)
    assert called == {"score", "fit_queries", "fit_pairs", "align", "find_hsps"}


def noted(function, called):
    """Return a task that says that it was called; Dask sends it by its name."""

    def task(*given):
        called.add(function.__name__)
        return function(*given)

    task.__module__, task.__qualname__, task.__name__ = function.__module__, function.__name__, function.__name__
    return task


def on_workers_only(function):
    """Refuse what the client itself computes of pairs."""

    def checked(self, *given):
        assert "-Dask-" in threading.current_thread().name, "the client computed pairs"
        return function(self, *given)

    return checked


def test_progress_is_that_of_all_cells(folders, dask_client):
    cells = []
    given = {"engine": "cpu", "client": dask_client, "progress": cells.append}
    with swsearch.search(folders["queries"], folders["four"] / "db.h5", **given) as results:
        expected = results.search.cells
        list(results)
    assert sum(cells) == expected
    assert len(cells) > 10


def test_a_hit_is_aligned_after_the_workers_have_gone(folders, dask_client):
    expected = found(folders, "one")
    with swsearch.search(folders["queries"], folders["four"] / "db.h5", engine="cpu", client=dask_client) as results:
        kept = list(results)
    assert not kept[0].hits.is_aligned
    assert bytes_of(kept, folders["four"]) == expected


# what goes wrong


def failing(monkeypatch, name, error):
    tried = []

    def fail(*given):
        tried.append(1)
        raise error

    function = getattr(tasks, name)
    fail.__module__, fail.__qualname__, fail.__name__ = function.__module__, name, name
    monkeypatch.setattr(tasks, name, fail)
    return tried


@pytest.mark.parametrize(
    ("error", "kind", "text", "tries"),
    [
        (OptionError("matrix", "none", "a matrix"), OptionError, "matrix: got 'none', expected a matrix", 1),
        (ZeroDivisionError("a mistake\nof two lines"), ClusterError, "ZeroDivisionError: a mistake of two lines", 3),
        (MemoryError(), MemoryLimitError, "out of memory on the worker", 3),
        (DatabaseError("no such database"), DatabaseError, "no worker can read it: tcp|inproc", 2),
    ],
)
@pytest.mark.filterwarnings("ignore::swsearch.errors.SwsearchWarning")
def test_errors_keep_their_class_after_some_tries(folders, dask_client, monkeypatch, error, kind, text, tries):
    tried = failing(monkeypatch, "score", error)
    with pytest.raises(kind, match=text) as raised:
        found(folders, "one", client=dask_client, max_hits=2)
    assert raised.value.exit_code == kind.exit_code
    assert len(tried) >= tries


def test_a_group_is_a_task_of_every_share(folders, dask_client):
    with swsearch.search(folders["queries"], folders["one"] / "db.h5", engine="cpu", client=dask_client) as results:
        session = results.search.session
        assert [(share.index, share.count) for share in session.shares] == [(k, 4) for k in range(4)]
        assert sum(share.subjects.n_residues for share in session.shares) == session.n_residues
        assert "1 volume in 4 shares" in session.note


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
def test_options_that_do_not_go_with_a_client(folders, dask_client, options, message):
    with pytest.raises(OptionError, match=re.escape(message)):
        swsearch.search("MKVLAAGIVGWW", folders["one"] / "db.h5", **{"client": dask_client, **options})


def test_python_takes_an_open_database(folders, dask_client):
    expected = list(swsearch.search(folders["queries"], folders["four"] / "db.h5", engine="cpu"))
    for _ in range(2):  # the client stays open
        with Database.open(folders["four"] / "db.h5") as database:
            results = swsearch.search(folders["queries"], database, engine="cpu", client=dask_client)
            assert [result.hits for result in results] == [result.hits for result in expected]


@pytest.mark.parametrize("subjects", ["MKVLAAGIVGWW", [("a", "MKVLAAGIVGWW")], "fasta", "memory"])
def test_subjects_that_are_in_no_database_file_are_refused(folders, dask_client, subjects):
    given = subjects
    if subjects == "fasta":
        given = folders["one"] / "in.fasta"
    elif subjects == "memory":
        given = Database.from_records([("a", "MKVLAAGIVGWW")])
    with pytest.raises(InputError, match="expected one that all workers can read; build it with swsearch db build"):
        swsearch.search("MKVLAAGIVGWW", given, client=dask_client)


@pytest.mark.parametrize("options", [{}, {"mode": "global"}])
def test_a_volume_without_residues_can_be_searched_alone(tmp_path, dask_client, options):
    build_database(fasta(tmp_path / "in.fasta", [("a", "MKVLAAGIV"), ("b", "")]), tmp_path / "db.h5", volume_size=1)
    empty = sorted(tmp_path.glob("db.*.h5"))[-1]
    queries = [("q", "MKV"), ("e", "")]
    expected = [result.hits for result in swsearch.search(queries, empty, engine="cpu", **options)]
    results = swsearch.search(queries, empty, engine="cpu", client=dask_client, **options)
    assert [result.hits for result in results] == expected


@pytest.mark.exhaustive
def test_rows_of_msa_are_those_of_one_process(folders, tmp_path, dask_client):
    given = ["msa", folders["queries"], folders["four"] / "db.h5", "--engine", "cpu", "-q", "-o"]
    done = command_line.run(*given, "alone", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = command_line.run(*given, "there", "--cluster", "local:1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    files = sorted(path.name for path in (tmp_path / "alone").iterdir())
    assert files
    for name in files:
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()


@pytest.mark.parametrize("options", [{}, {"iterations": 3}, {"name": "genome.h5", "evalue": 100}], ids=str)
def test_a_search_goes_on_from_its_checkpoint_with_and_without_workers(
    folders, dask_client, tmp_path, monkeypatch, options
):
    expected = found(folders, "four", **options)
    name = options.get("name", "db.h5")
    given = {key: value for key, value in options.items() if key != "name"}
    with swsearch.search(
        folders["queries"], folders["four"] / name, engine="cpu", client=dask_client, checkpoint=tmp_path, **given
    ) as results:
        next(results)  # and leave the rest
    assert found(folders, "four", client=dask_client, checkpoint=tmp_path, **options) == expected
    failing(monkeypatch, "score", InputError("nothing is left to score"))
    assert found(folders, "four", client=dask_client, checkpoint=tmp_path, **options) == expected
    assert found(folders, "four", checkpoint=tmp_path, **options) == expected
