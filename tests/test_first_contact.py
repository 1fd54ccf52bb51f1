"""Calls that a new user tries first: those that work, and one sentence with the remedy for the others."""

from __future__ import annotations

import inspect
import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_overloads

import numpy as np
import pytest

import swsearch
from support.command_line import fails, run
from swsearch import api, db
from swsearch.errors import MemoryLimitError, SwsearchError
from swsearch.pipeline import score_matrix as everything
from swsearch.results import SearchResult

A, B = "MKVLAAGIVG", "WWPPWWPPMKVLAAG"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with two databases, three FASTA files and a file named like a sequence."""
    monkeypatch.chdir(tmp_path)
    for name, letters in (("a.fasta", A), ("b.fasta", B), ("q.fasta", A), ("sprot", A), ("MKVL", B)):
        Path(name).write_text(f">{name[0]}\n{letters}\n")
    for name in ("a", "b"):
        swsearch.Database.build(f"{name}.fasta", f"{name}.h5").close()
    return tmp_path


def search(subjects: Any, queries: Any = "q.fasta") -> list[SearchResult]:
    return list(swsearch.search(queries, subjects, engine="cpu", evalue=1e6))


def found(subjects: Any) -> list[str]:
    (result,) = search(subjects)
    return sorted(hit.subject_id for hit in result)


@pytest.mark.parametrize(
    "subjects",
    [
        ["a.h5", "b.h5"],
        ("a.h5", "b.h5"),
        ["a.fasta", "b.fasta"],
        ["a.h5", Path("b.fasta")],
        ["./a.h5", os.path.join(os.curdir, "b.h5")],  # noqa: PTH118
    ],
)
def test_strings_of_a_list_are_names_of_files(subjects: Any) -> None:
    assert found(subjects) == ["a", "b"]
    with swsearch.Searcher(subjects, engine="cpu", evalue=1e6) as searcher:
        assert [len(result) for result in searcher.search("q.fasta")] == [2]
    assert swsearch.score("q.fasta", subjects, engine="cpu").shape == (1, 2)


def test_a_name_without_an_ending_counts_where_the_file_is_there() -> None:
    assert found(["sprot"]) == ["s"]
    assert found(["MKVL"]) == ["M"]
    assert found(["sprot", "a.h5"]) == ["a", "s"]
    with swsearch.Database.open("a.h5") as database:
        assert found([database, "b.h5"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("subjects", "names"),
    [
        ([A, B], ["subject_1", "subject_2"]),
        ([A.lower(), B], ["subject_1", "subject_2"]),
        (["MKVL", B], ["subject_1", "subject_2"]),  # there is a file MKVL, and none with the other name
        ((A, B, A), ["subject_1", "subject_2", "subject_3"]),
        (("MKVL", B), ["MKVL"]),  # an identifier and its sequence
        ([("a.h5", A), ("b.h5", B)], ["a.h5", "b.h5"]),
    ],
)
def test_sequences_of_a_list_stay_sequences(subjects: Any, names: list[str]) -> None:
    assert found(subjects) == names


def test_a_search_of_results_is_still_taken_in_every_way() -> None:
    for take in (list, tuple, lambda results: [next(results)], lambda results: sorted(results, key=len)):
        with swsearch.search("q.fasta", "a.h5", engine="cpu") as results:
            assert bool(results)
            assert len(take(results)) == 1
            assert bool(results)


def results() -> Any:
    return swsearch.search("q.fasta", "a.h5", engine="cpu")


def opened(name: str) -> swsearch.Database:
    return swsearch.Database.open(name)


SWAPPED = (
    "queries: got the database a.h5, expected sequences; queries and subjects are swapped: give {} first and a.h5 "
    "second"
)

MIXED = (
    "subjects: got {}, expected only files and databases, or only sequences; check the name, or make a database of "
    "sequences with Database.from_records"
)

WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "missing database in a list": (lambda: search(["a.h5", "c.h5"]), "c.h5: no such database; check the name"),
    "missing FASTA in a list": (lambda: search(["c.fasta.gz"]), "c.fasta.gz: no such file; check the name"),
    "missing path in a list": (lambda: search(["data/c", "a.h5"]), "data/c: no such file; check the name"),
    "a name and a sequence": (lambda: search(["a.h5", A]), MIXED.format(f"'{A}'")),
    "a path and a record": (lambda: search([Path("a.h5"), ("b", B)]), MIXED.format(f"('b', '{B}')")),
    "files as a list of queries": (
        lambda: search("a.h5", ["q.fasta"]),
        "query 1: got 'q.fasta', expected residue letters; search one file at a time, or combine the files",
    ),
    "a database by its class": (
        lambda: swsearch.Database("a.h5"),  # type: ignore[arg-type]
        "Database: got 'a.h5', expected a call of one of its class methods; use Database.open('a.h5')",
    ),
    "a database by its class and a path": (
        lambda: swsearch.Database(Path("a.h5")),  # type: ignore[arg-type]
        "Database: got PosixPath('a.h5'), expected a call of one of its class methods; use Database.open('a.h5')",
    ),
    "a database of records by its class": (
        lambda: swsearch.Database([("a", A)]),  # type: ignore[list-item]
        f"Database: got [('a', '{A}')], expected a call of one of its class methods; use Database.open for files, "
        "Database.from_records for sequences",
    ),
    "swapped": (lambda: search("q.fasta", "a.h5"), SWAPPED.format("q.fasta")),
    "swapped paths": (lambda: search(Path("q.fasta"), Path("a.h5")), SWAPPED.format("q.fasta")),
    "swapped with several": (
        lambda: search(["a.fasta", "b.fasta"], "a.h5"), SWAPPED.format("a.fasta b.fasta"),
    ),
    "swapped with a sequence": (lambda: search(A, "a.h5"), SWAPPED.format("the queries")),
    "swapped in score": (lambda: swsearch.score("a.h5", "q.fasta"), SWAPPED.format("q.fasta")),
    "swapped with an open database": (
        lambda: search("q.fasta", opened("a.h5")),
        f"{SWAPPED.format('q.fasta')}, or list(database) as queries",
    ),
    "a database with a database": (
        lambda: search("b.h5", "a.h5"),
        "a.h5: is an HDF5 file, expected FASTA; a swsearch database is given as the subjects of a search",
    ),
    "length of a search": (
        lambda: len(results()),
        "SearchResults has no len(): it is an iterator; use list(results), or next(results) for the first",
    ),
    "index of a search": (
        lambda: results()[0],
        "SearchResults cannot be indexed: it is an iterator; use list(results), or next(results) for the first",
    ),
}  # fmt: skip
"""Wrong calls, and the sentence that each gets."""


KEYWORDS: list[tuple[dict[str, Any], str]] = [
    ({"max_target_seqs": 5}, "search() got an unexpected keyword argument 'max_target_seqs'; did you mean max_hits?"),
    ({"max_hit": 5}, "search() got an unexpected keyword argument 'max_hit'; did you mean max_hits?"),
    ({"num_iterations": 3}, "search() got an unexpected keyword argument 'num_iterations'; did you mean iterations?"),
    ({"gapopen": 11}, "search() got an unexpected keyword argument 'gapopen'; did you mean gap_open?"),
    ({"E": 10}, "search() got an unexpected keyword argument 'E'; did you mean evalue?"),
    ({"num_threads": 2}, "search() got an unexpected keyword argument 'num_threads'; did you mean threads?"),
    ({"colour": "red"}, "search() got an unexpected keyword argument 'colour'"),
    ({"task": "short"}, "search() got an unexpected keyword argument 'task'; did you mean preset?"),
    ({"qcov": 80}, "search() got an unexpected keyword argument 'qcov'; did you mean min_query_coverage?"),
    ({"max_hits": 0}, "max_hits: got 0, expected an integer >= 1"),
    ({"max_hits": "5"}, "max_hits: got '5', expected an integer >= 1"),
    ({"evalue": 0}, "evalue: got 0, expected a number > 0"),
    ({"mode": "lokal"}, "mode: got 'lokal', expected one of local, global, semiglobal"),
    ({"min_identity": 130}, "min_identity: got 130, expected a percentage, 0 to 100"),
    ({"dbsize": 0}, "dbsize: got 0, expected a number of residues from 1 to 1e+18"),
    ({"translate": "yes"}, "translate: got 'yes', expected True or False"),
    ({"iterations": 0}, "iterations: got 0, expected a whole number from 1 to 1,000"),
    (
        {"query_loc": "80-10"},
        "query_loc: got '80-10', expected first and last residue, counted from 1, such as 10-80; the first is above "
        "the last",
    ),
    (
        {"scoring": "BLOSUM62"},
        "scoring: got 'BLOSUM62', expected a swsearch.Scoring, such as Scoring('BLOSUM62', 11, 1)",
    ),
    (
        {"scoring": swsearch.Scoring(), "matrix": "PAM30"},
        "matrix: got 'PAM30', expected none together with scoring, which sets matrix and gap costs",
    ),
    (
        {"scoring": swsearch.Scoring(), "gap_open": 9},
        "gap_open: got 9, expected none together with scoring, which sets matrix and gap costs",
    ),
    ({"engine": "tpu"}, "engine: got 'tpu', expected one of auto, gpu, cpu, reference"),
]
"""Wrong keywords of a search, and the sentence that each gets."""


@pytest.mark.parametrize(("keywords", "sentence"), KEYWORDS)
def test_a_wrong_keyword_gets_its_remedy(keywords: dict[str, Any], sentence: str) -> None:
    with pytest.raises((SwsearchError, TypeError), match=f"^{re.escape(sentence)}$"):
        swsearch.search(A, [A], **keywords)


def test_matrix_and_gap_costs_are_keywords() -> None:
    (result,) = swsearch.search(A, [A], matrix="BLOSUM80", gap_open=10, engine="cpu")
    (same,) = swsearch.search(A, [A], scoring=swsearch.Scoring("BLOSUM80", 10), engine="cpu")
    assert result.scoring == same.scoring
    assert [hit.score for hit in result] == [hit.score for hit in same]
    with swsearch.Searcher([A], matrix="BLOSUM80", gap_open=10, engine="cpu") as searcher:
        assert [hit.score for hit in searcher.search(A)[0]] == [hit.score for hit in same]


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_gets_its_remedy(name: str) -> None:
    call, sentence = WRONG[name]
    with pytest.raises((SwsearchError, TypeError), match=f"^{re.escape(sentence)}$"):
        call()


def test_an_open_database_may_be_the_queries_of_another() -> None:
    with opened("a.h5") as database, opened("b.h5") as other:
        for subjects in (other, "b.h5", ["a.h5", other]):
            assert [result.query_id for result in search(subjects, database)] == ["a"]
        assert [result.query_id for result in search("b.fasta", list(database))] == ["a"]


@pytest.mark.parametrize("subjects", [["q.fasta"], ["q.fasta", "b.fasta"]])
def test_the_command_notices_swapped_files_too(subjects: list[str]) -> None:
    fails(run("search", "a.h5", *subjects), 1, SWAPPED.format(" ".join(subjects)))


def test_a_matrix_of_scores_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = (
        "^score: got 1 queries and 2 subjects, a score matrix of 0.0 GB, expected at most the memory "
        r"of .* GB; use top= to keep only the best subjects of each query$"
    )
    subjects = ["a.h5", "b.h5"]
    with monkeypatch.context() as patched:
        patched.setattr(everything, "host_memory", lambda: 7)
        with pytest.raises(MemoryLimitError, match=sentence):
            swsearch.score(A, subjects, engine="cpu")
        assert swsearch.score(A, subjects, engine="cpu", top=1).scores.shape == (1, 1)

    def zeros(shape: Any, dtype: Any = float, zeros: Any = np.zeros) -> Any:
        if shape == (1, 2):
            raise MemoryError
        return zeros(shape, dtype)

    with monkeypatch.context() as patched:
        patched.setattr(everything.np, "zeros", zeros)
        with pytest.raises(MemoryLimitError, match=sentence):
            swsearch.score(A, subjects, engine="cpu")


def parts(result: SearchResult) -> dict[str, Any]:
    """Return the parts of a result; their objects compare by value."""
    hit = result[0]
    return {
        "result": result, "run": result.run, "hit": hit, "hsp": hit.hsps[0], "pair": hit.pair,
        "scoring": result.scoring, "matrix": result.scoring.matrix, "statistics": result.statistics,
    }  # fmt: skip


@pytest.mark.parametrize("mode", ["local", "global", "semiglobal"])
def test_equal_results_hash_alike(mode: Any) -> None:
    with opened("a.h5") as database:
        one, same = (next(swsearch.search("q.fasta", database, mode=mode, evalue=1e6, engine="cpu")) for _ in "ab")
    other = next(swsearch.search("b.fasta", "b.h5", mode=mode, evalue=1e6, engine="cpu"))
    for name, value in parts(one).items():
        copies = [pickle.loads(pickle.dumps(value))]
        copies += [] if name == "run" else [parts(same)[name]]  # a run has its time
        for copy in copies:
            assert value == copy, name
            assert len({value, copy}) == 1, name
        hash(parts(other)[name])
        if name not in ("scoring", "matrix"):
            assert value != parts(other)[name], name
    assert len({one, other}) == 2


def test_alignments_of_translated_dna_and_records_hash_alike() -> None:
    dna = "ATGAAAGTTCTGGCTGCTGGTATTGTTGGT"
    pairs = []
    for _ in range(2):
        result = next(swsearch.search(dna, "a.h5", translate=True, frame_shift=15, evalue=1e6, engine="cpu"))
        pairs.append(result[0].hsps[0])
    assert pairs[0] == pairs[1]
    assert len({*pairs, pairs[0].pair, pairs[1].pair}) == 2
    records = [record for name in "aab" for record in db.read_fasta(f"{name}.fasta")]
    assert len(set(records)) == 2
    assert records[0] == records[1] != records[2]
    with opened("a.h5") as database:
        assert database[0] != records[0]


@pytest.mark.parametrize("function", [swsearch.score, swsearch.align])
def test_overloads_have_the_options_of_their_function(function: Callable[..., Any]) -> None:
    overloads = get_overloads(function)
    assert len(overloads) > 2
    for each in overloads:
        keywords = getattr(api, re.findall(r"\w+", each.__annotations__["options"])[1]).__annotations__
        names = [*(name for name in inspect.signature(each).parameters if name != "options"), *keywords]
        assert sorted(names) == sorted(inspect.signature(function).parameters)
