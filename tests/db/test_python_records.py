"""Every kind of Python object that may stand for queries or subjects, and what is said to all others."""

import bz2
import gzip
import io
import pathlib
from collections import OrderedDict
from collections.abc import Callable
from contextlib import closing, contextmanager, nullcontext

import numpy as np
import pytest
from Bio import SeqIO
from Bio.Seq import MutableSeq, Seq
from Bio.SeqRecord import SeqRecord

import swsearch
from swsearch.alphabet import PROTEIN
from swsearch.db import Database, read_fasta
from swsearch.errors import DatabaseError, InputError, SwsearchError
from swsearch.inputs import open_subjects, read_queries

A, B = 4 * "MKVLaaGIVG", "WWPPWWPPWW"
FASTA = f">a one\n{A}\n>b\n{B}\n"
RECORDS = [SeqRecord(Seq(A), id="a", description="a one"), SeqRecord(Seq(B), id="b", description="")]
NAMED = [("a", "one", A), ("b", "", B)]
PLAIN = [("a", "", A), ("b", "", B)]
NAMELESS = [("_1", "", A), ("_2", "", B)]


class Plain:
    """A path that is no pathlib.Path."""

    def __init__(self, path):
        self._path = path

    def __fspath__(self):
        return str(self._path)


class Slow(io.BytesIO):
    """A file that gives little at a time."""

    def read(self, size=-1):
        return super().read(1)


KINDS = {
    "path": (lambda path: path, NAMED),
    "text of a path": (str, NAMED),
    "another path": (Plain, NAMED),
    "FASTA text": (lambda path: FASTA, NAMED),
    "FASTA text with a dot": (lambda path: ">a.1/x\nMKV", [("a.1/x", "", "MKV")]),
    "FASTA bytes": (lambda path: FASTA.encode(), NAMED),
    "text file": (lambda path: path.open(), NAMED),
    "binary file": (lambda path: path.open("rb"), NAMED),
    "unbuffered file": (lambda path: path.open("rb", buffering=0), NAMED),
    "gzip.open": (lambda path: gzip.GzipFile(path.with_suffix(".gz")), NAMED),
    "gzip.open as text": (lambda path: io.TextIOWrapper(gzip.GzipFile(path.with_suffix(".gz"))), NAMED),
    "StringIO": (lambda path: io.StringIO(FASTA), NAMED),
    "BytesIO": (lambda path: io.BytesIO(FASTA.encode()), NAMED),
    "slow file": (lambda path: Slow(FASTA.encode()), NAMED),
    "mapping": (lambda path: {"a": A, "b": B}, PLAIN),
    "mapping of Seq": (lambda path: OrderedDict(a=Seq(A), b=A.encode()), [("a", "", A), ("b", "", A)]),
    "mapping of records": (lambda path: SeqIO.to_dict(iter(RECORDS)), NAMED),
    "mapping that renames": (lambda path: {"c": RECORDS[0]}, [("c", "one", A)]),
    "SeqIO.index": (lambda path: SeqIO.index(str(path), "fasta"), NAMED),
    "SeqIO.parse": (lambda path: SeqIO.parse(io.StringIO(FASTA), "fasta"), NAMED),
    "read_fasta": (read_fasta, NAMED),
    "records": (lambda path: RECORDS, NAMED),
    "record": (lambda path: RECORDS[0], NAMED[:1]),
    "nameless record": (lambda path: SeqRecord(Seq(A)), NAMELESS[:1]),
    "pair": (lambda path: ("a", Seq(A)), PLAIN[:1]),
    "pairs": (lambda path: [("a", A), ["b", bytearray(B.encode())]], PLAIN),
    "zip": (lambda path: zip(["a", "b"], [A, B], strict=True), PLAIN),
    "generator": (lambda path: (each for each in (A, B)), NAMELESS),
    "text": (lambda path: A, NAMELESS[:1]),
    "bytes": (lambda path: A.encode(), NAMELESS[:1]),
    "bytearray": (lambda path: bytearray(A.encode()), NAMELESS[:1]),
    "memoryview": (lambda path: memoryview(A.encode()), NAMELESS[:1]),
    "Seq": (lambda path: Seq(A), NAMELESS[:1]),
    "MutableSeq": (lambda path: MutableSeq(A), NAMELESS[:1]),
    "array of text": (lambda path: np.array([A, B]), NAMELESS),
    "array of bytes": (lambda path: np.array([A.encode(), B.encode()]), NAMELESS),
    "array of objects": (lambda path: np.array([A, B], dtype=object), NAMELESS),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("inputs") / "two.fasta"
    path.write_text(FASTA)
    path.with_suffix(".gz").write_bytes(gzip.compress(FASTA.encode()))
    path.with_suffix(".bz2").write_bytes(bz2.compress(FASTA.encode()))
    return path


def lower(runs, letters):
    for start, end in runs:
        letters = letters[:start] + letters[start:end].lower() + letters[end:]
    return letters


@contextmanager
def opened(made):
    """Close in the end what a caller would have to close."""
    with closing(made) if isinstance(getattr(made, "close", None), Callable) else nullcontext(made):
        yield made


@pytest.mark.parametrize(("make", "expected"), KINDS.values(), ids=KINDS)
def test_kinds(make, expected, path):
    with opened(make(path)) as given:
        queries = [
            (each.identifier.removeprefix("query"), each.description, lower(each.lower, PROTEIN.decode(each.codes)))
            for each in read_queries(given)
        ]
    with opened(make(path)) as given, open_subjects(given) as found:
        subjects = [(each.identifier.removeprefix("subject"), each.description, each.sequence) for each in found]
    assert queries == subjects == expected


def test_a_mapping_is_names_to_sequences_everywhere(path):
    (result,) = swsearch.search({"q": A}, {"x": B, "y": A}, evalue=1e6, engine="cpu")
    assert (result.query_id, [hit.subject_id for hit in result]) == ("q", ["y"])
    assert swsearch.score({"q": A}, {"x": B, "y": A}, engine="cpu").shape == (1, 2)
    assert "q" in str(swsearch.align({"q": A}, {"y": A}))
    with Database.from_records({"x": B}) as database:
        assert database.identifier(0) == "x"
    with pytest.raises(InputError, match="b: got 2 sequences, expected one"):
        swsearch.align(A, {"x": B, "y": A})


def tables():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"name": ["a"], "seq": [A]})
    yield frame, r"zip\(table\['name'\], table\['seq'\]\)"
    yield frame[["seq"]], r"zip\(table\['id'\], table\['sequence'\]\)"
    yield frame["seq"], r"got a Series, .*list\(series\), or dict\(series\)"
    pyarrow = pytest.importorskip("pyarrow")
    yield pyarrow.table(frame), r"zip\(table\['name'\].to_pylist\(\), table\['seq'\].to_pylist\(\)\)"


def test_a_table_is_refused_with_the_way_to_give_its_columns():
    for table, words in tables():
        for refused in (
            lambda table=table: swsearch.search(table, {"a": A}),
            lambda table=table: swsearch.search(A, table),
            lambda table=table: swsearch.score(A, table),
            lambda table=table: swsearch.align(A, table),
            lambda table=table: Database.from_records(table),
        ):
            with pytest.raises(InputError, match=words):
                refused()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, "{}: got None, expected a path, sequences, or a mapping"),
        (5, "{}: got 5, expected"),
        (object(), "{}: got an object, expected"),
        (str, "{}: got a type, expected"),
        (np.arange(3), "{}: got an ndarray, .* letters as a string, such as ''.join"),
        (np.array(list(A)), "{}: got an ndarray, .* letters as a string, such as ''.join"),
        (np.array([["a", A]]), "{}: got an ndarray"),
        (np.array(A), "{}: got an ndarray"),
    ],
)
def test_what_is_no_sequences_at_all(given, words):
    with pytest.raises(InputError, match=words.format("queries")):
        swsearch.search(given, {"a": A})
    with pytest.raises(InputError, match=words.format("subjects")):
        swsearch.search(A, given)
    with pytest.raises(InputError, match=words.format("a")):
        swsearch.align(given, A)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([5], "1: got 5, expected a Bio.SeqRecord, an .id, sequence. pair or a string"),
        ([A, None], "2: got None, expected"),
        ([pathlib.Path("x.fa")], r"1: got P\w*Path\('x.fa'\), .*; search one file at a time"),
        ([("a", "one", A)], "1: got .*; it has 3 parts"),
        ([{"id": "a"}], "1: got a dict, expected"),
        ({1: A}, "1: got 1 as its identifier, expected a string"),
        ({"a": None}, "'a': got no sequence"),
        ({"a": 5}, r"'a': the sequence is not text \(got 5\)"),
        ([SeqRecord(Seq(None, 5), id="a")], "'a': the sequence is not text"),
        ([SeqRecord(None, id="a")], "'a': got no sequence"),
        (["MK\udc80"], "1': the sequence is not text"),
    ],
)
def test_what_is_no_sequence_in_an_iterable(given, words):
    with pytest.raises(InputError, match=f"query.* ?{words}"):
        swsearch.search(given, {"a": A})
    if "one file at a time" in words:  # subjects may come from several files
        words = "x.fa: no such file"
    with pytest.raises(SwsearchError, match=words):
        list(swsearch.search(A, given))


def test_open_files_that_cannot_be_read(path, tmp_path):
    closed = path.open()
    closed.close()
    compressed = [path.with_suffix(suffix).open("rb") for suffix in (".gz", ".bz2")]
    with compressed[0], compressed[1], (tmp_path / "new").open("w") as written:
        for given, words in (
            (closed, "two.fasta: cannot be read: I/O operation on closed file; give an open file, or its path"),
            (written, "new: cannot be read: not readable"),
            (compressed[0], "two.gz: holds compressed data; give the file's path, or open it with gzip.open"),
            (compressed[1], "two.bz2: holds compressed data"),
            (io.StringIO(""), "<StringIO>: no FASTA records"),
            (io.StringIO("MKV"), "<StringIO>: line 1: got 'M' before the first record"),
        ):
            with pytest.raises(InputError, match=words):
                read_queries(given)
    with pytest.raises(DatabaseError, match="<StringIO>: no FASTA records"):
        open_subjects(io.StringIO(""))


def test_an_open_file_stays_open_and_names_the_database(path):
    with path.open() as file, open_subjects(file) as found:
        assert not file.closed
        assert found.name == str(path)
