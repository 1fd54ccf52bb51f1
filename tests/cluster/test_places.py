"""The same bytes in every place: one file, volumes, several databases, workers, devices; ties decide by places."""

from __future__ import annotations

import io
import random
from functools import partial
from itertools import pairwise

import pytest

import swsearch
from support.fake_gpus import cards, fake_engines
from support.samples import sample
from swsearch.backends.local import LocalBackend
from swsearch.cluster.backend import ClusterBackend
from swsearch.cluster.messages import EngineRequest
from swsearch.cluster.opening import pool_of_client
from swsearch.db import build_database, write_manifest
from swsearch.inputs import read_queries
from swsearch.pipeline.options import make_search_options
from swsearch.pipeline.search_results import SearchResults

LETTERS = "ACDEFGHIKLMNPQRSTVWY"
FORMATS = ["6 std score stitle", "0", "xml", "json", "jsonl"]


def records():
    """Copies of two queries in all volumes, so that places decide; empty ones; the same names in several volumes."""
    chance = random.Random(5)
    found = [(f"s{number}", "".join(chance.choices(LETTERS, k=chance.randint(1, 70)))) for number in range(70)]
    for number in range(3, 70, 6):
        found[number] = (f"copy{number // 6 % 4} of one, {number}", QUERIES[0][1])
    for number in range(7, 70, 15):
        found[number] = (f"copy of two {number}", "mkvl" + QUERIES[1][1])
    return [(name, "" if 40 <= number < 44 else letters) for number, (name, letters) in enumerate(found)]


QUERIES = [
    ("one", "MKWVTFISLLFLFSSAYSRGVFRRDAHKSEVAHRFKDLG"),
    ("two", "GPLGSMSERVKQWEELHHHHRTRRNNDE"),
    ("none", ""),
]
RECORDS = records()
CUTS = {
    "even": [0, 24, 47, 70],
    "uneven": [0, 3, 4, 5, 39, 45, 69, 70],
}

CASES = {
    "ties, one hit": {"max_hits": 1},
    "ties, five hits": {"max_hits": 5, "statistics": "published"},
    "ties by score": {"max_hits": 6, "sort": "score", "evalue": 1e6},
    "ties, no statistics": {"max_hits": 9, "statistics": "none"},
    "ties, global": {"max_hits": 4, "mode": "global"},
    "ties with filters": {"max_hits": 3, "min_identity": 60, "subject_mask": "lower", "query_mask": "lower"},
    "ties, several": {"max_hits": 3, "max_alignments": 3, "evalue": 1e6},
    "names in several volumes": {"include_ids": ["copy1", "s2", "s68"], "evalue": 1e6},
    "names left out": {"exclude_ids": ["copy0", "copy2"], "statistics": "published", "max_hits": 8},
}
PLACES = ["manifest", "list", "workers", "workers, one file", "workers, list", "devices", "devices, volumes"]
EVERY = [
    (case, [*CUTS, "one each"][(2 - i - k) % 3], place)
    for i, case in enumerate(CASES)
    for k, place in enumerate(PLACES)
]
"""Every two of case, cut and place together."""

QUICK = [*[each for each in EVERY if each[1] != "one each"][::5], ("ties, one hit", "one each", "manifest")]


def fasta(path, some):
    path.write_text("".join(f">{header}\n{letters}\n" for header, letters in some))
    return path


@pytest.fixture(scope="module")
def databases(tmp_path_factory):
    """Build the files to search, by kind: one database, and manifests with the same file name."""
    folder = tmp_path_factory.mktemp("one")
    one = folder / "database.h5"
    build_database(fasta(folder / "in.fasta", RECORDS), one)
    found = {"one": one, "queries": fasta(folder / "queries.fasta", QUERIES)}
    for name, cuts in CUTS.items():
        folder = tmp_path_factory.mktemp("volumes")
        volumes = []
        for number, (first, last) in enumerate(pairwise(cuts)):
            volumes.append(folder / f"v{number}.h5")
            build_database(fasta(folder / "part.fasta", RECORDS[first:last]), volumes[-1], allow_dna=True)
        write_manifest(folder / "database.h5", volumes)
        found[name] = folder / "database.h5", volumes
    folder = tmp_path_factory.mktemp("volumes")
    # a volume for each subject, also for those without residues
    build_database(one.parent / "in.fasta", folder / "database.h5", volume_size=1)
    found["one each"] = folder / "database.h5", sorted(folder.glob("database.*.h5"))
    return found


def written(databases, subjects, backend_of, options):
    streams = [io.StringIO() for _ in FORMATS]
    found = read_queries(databases["queries"])
    with SearchResults(found, subjects, make_search_options(**options), backend_of, threads=1) as results:
        name = results.search.subjects.name
        swsearch.write(results, streams, FORMATS)
    # a name is broken into lines where it is long
    lines = [stream.getvalue().replace(name, "NAME") for stream in streams]
    lines[1] = "\n".join(line for line in lines[1].split("\n\n") if "Database:" not in line)
    return lines


@pytest.mark.parametrize(
    ("case", "cut", "place"),
    sample(EVERY, lambda each: each in QUICK),
)
def test_the_bytes_are_the_same_wherever_it_runs(databases, cpu, dask_client, monkeypatch, case, cut, place):
    expected = written(databases, databases["one"], partial(LocalBackend, engine=cpu), CASES[case])
    assert expected[0].count("\n") > 0
    manifest, volumes = databases[cut]
    where, _, kind = place.partition(", ")
    subjects = databases["one"] if kind == "one file" or place == "devices" else manifest
    if "list" in place:
        subjects = volumes
    if where == "workers":
        with pool_of_client(dask_client, EngineRequest("cpu")) as pool:
            found = written(databases, subjects, partial(ClusterBackend, pool=pool), CASES[case])
    elif where == "devices":
        with fake_engines(monkeypatch, cards(3)) as engine:
            found = written(databases, subjects, partial(LocalBackend, engine=engine), CASES[case])
    else:
        found = written(databases, subjects, partial(LocalBackend, engine=cpu), CASES[case])
    assert found == expected
