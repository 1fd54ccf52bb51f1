"""Every public function with something wrong in every argument: an error of ours, or a TypeError, in one sentence."""

import inspect
import io
import pickle

import numpy as np
import pytest

import swsearch
from swsearch import db
from swsearch.errors import SwsearchError
from swsearch.scoring import Ends, load_matrix

A = "MKVLAAGIVG"


class Nothing:
    """An object that is nothing that anybody asks for."""

    def __init__(self, *_):
        pass

    def __repr__(self):
        return "<nothing\nin two lines>"


WRONG = {
    "None": None,
    "int": -5,
    "float": 1.5,
    "nan": float("nan"),
    "infinite": float("inf"),
    "huge": 10**400,
    "bool": True,
    "text": "no/such thing",
    "bytes": b"\x00\xff",
    "tuple": (1, 2, 3),
    "list": [None],
    "empty": [],
    "mapping": {"a": object()},
    "set": {5},
    "array": np.arange(6).reshape(2, 3),
    "object": Nothing(),
    "type": Nothing,
    "function": lambda *_: 0,
}

FIRST = {
    swsearch.search: {"queries": A, "subjects": [A], "engine": "cpu"},
    swsearch.Searcher: {"subjects": [A], "engine": "cpu"},
    swsearch.score: {"queries": A, "subjects": [A], "engine": "cpu"},
    swsearch.align: {"a": A, "b": A, "engine": "cpu"},
    swsearch.write: {"results": [], "output": io.StringIO(), "format": "6"},
    swsearch.Profile.read: {"path": "PROFILE"},
    swsearch.Profile.from_alignment: {"alignment": "ALIGNMENT"},
    swsearch.Profile.save: {"path": "OUTPUT"},
    swsearch.dna_matrix: {},
    load_matrix: {"source": "BLOSUM62"},
    swsearch.Scoring: {},
    Ends.parse: {"text": "query"},
    db.Database.open: {"path": "FASTA"},
    db.Database.concatenate: {"databases": ()},
    db.Database.from_records: {"records": [A]},
    db.Database.from_fasta: {"inputs": "FASTA"},
    db.Database.build: {"inputs": "FASTA", "output": "OUTPUT"},
    db.build_database: {"inputs": "FASTA", "output": "OUTPUT"},
    db.append_database: {"path": "FASTA", "inputs": "FASTA"},
    db.remove_records: {"path": "FASTA", "identifiers": ["x"]},
    db.merge_databases: {"databases": "FASTA", "output": "OUTPUT"},
    db.split_database: {"database": "FASTA", "output": "OUTPUT", "volume_size": 1},
    db.verify_database: {"path": "FASTA"},
    db.convert_database: {"path": "FASTA", "output": "OUTPUT"},
    db.write_manifest: {"path": "OUTPUT", "volumes": ["FASTA"]},
    db.read_fasta: {"source": "FASTA"},
    db.is_database: {"path": "FASTA"},
    db.Database.chunks: {"max_bytes": 1000},
    db.Database.share: {"index": 0, "count": 1},
    db.Database.codes: {"index": 0},
    db.Database.masked_runs: {"index": 0, "mask": "none"},
    db.Database.lengths_of: {"subjects": [0]},
    db.Database.codes_of: {"subjects": [0], "threads": 1},
    db.Database.headers_of: {"subjects": [0]},
    db.Database.masked_runs_of: {"subjects": [0], "mask": "none"},
    db.Database.sequence: {"index": 0},
    db.Database.header: {"index": 0},
    db.Database.identifier: {"index": 0},
    db.Database.description: {"index": 0},
    db.Database.find: {"identifier": "x"},
    db.Database.find_many: {"identifiers": ["x"]},
    db.Database.taxids_of: {"subjects": []},
    db.Database.taxa_of: {"subjects": []},
    db.Database.subjects_of: {"taxids": []},
    db.Database.subset: {"taken": np.array([True])},
    db.Database.find_many_as_arrays: {"identifiers": ["x"]},
}
"""Every public function and method that takes arguments, with arguments that it takes."""


def arguments():
    for function in FIRST:
        for argument in inspect.signature(function).parameters:
            if argument != "self":
                yield pytest.param(function, argument, id=f"{function.__qualname__}-{argument}")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make values for arguments: a FASTA file, a file that can be written, and an open database."""
    folder = tmp_path_factory.mktemp("api")
    (folder / "a.fasta").write_text(f">a\n{A}\n")
    (folder / "a.sto").write_text(f"# STOCKHOLM 1.0\na {A}\n//\n")
    profile = swsearch.Profile.from_alignment(folder / "a.sto")
    profile.save(folder / "a.json")
    with db.Database.from_records([A]) as database:
        yield {
            "FASTA": folder / "a.fasta", "OUTPUT": folder / "a.h5", "self": database, "ALIGNMENT": folder / "a.sto",
            "PROFILE": folder / "a.json", "profile": profile,
        }  # fmt: skip


def call(function, given, made):
    """Call a function to its end: take all that it yields, and close what it opens."""
    options = {
        name: made[value] if isinstance(value, str) and value in made else value for name, value in given.items()
    }
    if "self" in inspect.signature(function).parameters and function is not swsearch.Scoring:
        options["self"] = made["profile" if function is swsearch.Profile.save else "self"]
    done = function(**options)
    if isinstance(done, db.Database | swsearch.Searcher):
        done.close()
    elif hasattr(done, "__next__"):
        list(done)


def test_the_functions_are_all_there():
    names = {
        name for module in (swsearch, db) for name in module.__all__ if inspect.isfunction(getattr(module, name))
    }
    assert names <= {function.__name__ for function in FIRST}
    methods = {
        name for name, one in inspect.getmembers(db.Database, callable)
        if not name.startswith("_") and set(inspect.signature(one).parameters) - {"self"}
    }  # fmt: skip
    assert methods <= {function.__name__ for function in FIRST}


@pytest.mark.parametrize(("function", "argument"), list(arguments()))
def test_a_wrong_argument_gets_one_sentence(function, argument, made):
    for kind, value in WRONG.items():
        try:
            call(function, {**FIRST[function], argument: value}, made)
        except (SwsearchError, IndexError) as error:  # IndexError: there is no such subject
            said = str(error)
        except TypeError as error:
            said = str(error)
            assert "expected" in said or "should be" in said, (kind, said)
        else:
            continue
        assert "\n" not in said, kind
        assert 0 < len(said) < 400, (kind, said)


READING = (
    "chunks", "codes", "masked_runs", "sequence", "header", "identifier", "description", "find", "find_many",
    "sources", "lengths_of", "codes_of", "headers_of", "masked_runs_of", "share", "identity", "info",
    "check_open", "duplicate", "__enter__",
)  # fmt: skip


@pytest.mark.parametrize("name", READING)
def test_a_database_that_was_closed_says_so(name):
    database = db.Database.from_records([A], name="mine")
    database.close()
    database.close()
    given = {"self": database, **FIRST.get(getattr(db.Database, name), {})}
    with pytest.raises(SwsearchError, match="mine: this Database was closed; open it again"):
        call(getattr(db.Database, name), given, given)
    with pytest.raises(SwsearchError, match="mine: this Database was closed"):
        _ = database.lengths
    assert (len(database), database.n_residues, database.length_runs.longest) == (1, 10, 10)
    assert repr(database) == "<Database 'mine': 1 subjects, 10 residues>"


def test_a_database_in_memory_is_not_pickled(made):
    with pytest.raises(TypeError, match="in memory cannot be pickled or copied; build a file"):
        pickle.dumps(made["self"])


@pytest.mark.parametrize(
    ("results", "words"),
    [
        (None, "results: got None, expected what swsearch.search returns"),
        ([], "results: got none"),
        ([5], "results: got 5, expected what"),
        ("hits.tsv", "results: got 'hits.tsv', expected what"),
    ],
)
def test_what_is_no_results(results, words):
    with pytest.raises(SwsearchError, match=words):
        swsearch.write(results, io.StringIO())


def test_a_single_result_is_written():
    (result,) = swsearch.search(A, [("s", A)], evalue=1e6, engine="cpu")
    streams = io.StringIO(), io.StringIO()
    swsearch.write(result, streams[0])
    swsearch.write([result], streams[1])
    assert streams[0].getvalue() == streams[1].getvalue() != ""
    with pytest.raises(SwsearchError, match="results: got a Hit, expected what"):
        swsearch.write([result, result[0]], io.StringIO())


def test_what_is_given_in_the_place_of_a_scoring_or_an_engine():
    for call_ in (swsearch.search, swsearch.score, swsearch.align):
        with pytest.raises(
            SwsearchError, match=r"scoring: got 'BLOSUM62', expected a swsearch.Scoring, such as Scoring\("
        ):
            call_(A, A, scoring="BLOSUM62")
        with pytest.raises(SwsearchError, match="engine: got None, expected"):
            call_(A, A, engine=None)
