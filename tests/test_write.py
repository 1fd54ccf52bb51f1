"""`swsearch.write`: every format, to paths and streams, with the bytes that the command line writes."""

import io
import json
import re

import pytest

import swsearch
from support.command_line import run
from swsearch import report
from swsearch.errors import InputError, OptionError, OutputError

KINDS = [kind for kind in report.OUTPUT_FORMATS if not kind.writer.is_single_query]
EXTENSION = {kind.key: kind.extensions[0] if kind.extensions else ".txt" for kind in KINDS}
OPTIONS = ("--max-hits", "3", "--engine", "cpu", "--quiet")


@pytest.fixture(scope="module")
def queries(examples):
    return examples / "data" / "queries.fasta"


@pytest.fixture(scope="module")
def database(examples, tmp_path_factory):
    path = tmp_path_factory.mktemp("db") / "sample.h5"
    swsearch.Database.build([examples / "data" / "swissprot_sample.fasta.gz"], path).close()
    return path


@pytest.fixture(scope="module")
def written(queries, database, tmp_path_factory):
    """Write every format with the command line, in one search."""
    folder = tmp_path_factory.mktemp("command")
    names = {kind.key: folder / f"hits-{kind.key}{EXTENSION[kind.key]}" for kind in KINDS}
    options = [each for key, path in names.items() for each in ("-o", path, "--outfmt", key)]
    done = run("search", queries, database, *OPTIONS, *options)
    assert done.returncode == 0, done.stderr
    return {key: path.read_bytes() for key, path in names.items()}


def search(queries, database, **options):
    return swsearch.search(queries, database, max_hits=3, engine="cpu", **options)


def comparable(report):
    """A report without what the HTML page says of the run: engine, time, command."""
    return re.sub(rb'<section id="run".*?</section>', b"", report, flags=re.DOTALL)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.key)
def test_a_search_is_written_as_the_command_line_writes_it(kind, queries, database, written, tmp_path):
    path = tmp_path / f"hits{EXTENSION[kind.key]}"
    swsearch.write(search(queries, database), path, kind.key)
    assert comparable(path.read_bytes()) == comparable(written[kind.key])


def test_the_extension_says_the_format(queries, database, written, tmp_path):
    paths = [tmp_path / name for name in ("hits.xml", "hits.tsv", "hits.json", "hits.sam")]
    swsearch.write(search(queries, database), paths)
    assert [path.read_bytes() for path in paths] == [written[key] for key in ("5", "6", "15", "sam")]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.key != "html"], ids=lambda kind: kind.key)
def test_results_that_were_taken_are_written_too(kind, queries, database, written):
    results = list(search(queries, database))
    stream = io.BytesIO() if kind.writer.binary else io.StringIO()
    swsearch.write(results, stream, kind.key)
    value = stream.getvalue()
    assert (value if isinstance(value, bytes) else value.encode()) == written[kind.key]


def test_what_is_left_of_a_search_is_written(queries, database, tmp_path):
    results = search(queries, database)
    first = next(results)
    stream = io.StringIO()
    swsearch.write(results, stream)
    rest = {line.split("\t")[0] for line in stream.getvalue().splitlines()}
    assert first.query_id not in rest
    assert len(rest) == 4
    assert list(results) == []


def test_the_page_gets_what_it_shows_of_the_whole_database(queries, database, written, tmp_path):
    page = tmp_path / "hits.html"
    swsearch.write(search(queries, database), page)
    text = page.read_text()
    assert "swsearch.search() from Python" in text
    assert "SHA-256, queries" in text
    assert '"histogram"' in text or '"distribution"' in text


def test_an_evalue_of_zero_has_no_sign(tmp_path):
    """Fitted statistics gave -0.0 where the probability of a score is below all floats."""
    sequence = "MKVLAAGIVGWWHHKDEFRTYPCNQS" * 40
    outputs = [tmp_path / f"hits-{kind.key}{EXTENSION[kind.key]}" for kind in KINDS]
    results = swsearch.search(sequence, sequence, engine="cpu")
    results.on_result(lambda result: watched.append(result.hits[0].evalue))
    watched = []
    swsearch.write(results, outputs, [kind.key for kind in KINDS])
    assert [str(evalue) for evalue in watched] == ["0.0"]
    for kind, path in zip(KINDS, outputs, strict=True):
        if not kind.writer.binary:
            data = re.sub("<script>.*?</script>", "", path.read_text(), flags=re.DOTALL)
            assert not re.search(r"(?<![\w.-])-0(\.0+)?(?![\w.])", data), kind.key
    for path in outputs:
        if path.suffix == ".parquet":
            pyarrow_parquet = pytest.importorskip("pyarrow.parquet")
            assert str(pyarrow_parquet.read_table(path)["evalue"][0].as_py()) == "0.0"


def test_chosen_columns_and_stdout(queries, database, capsys):
    swsearch.write(search(queries, database), "-", "6 qseqid score")
    assert capsys.readouterr().out.splitlines()[0] == "sp|P05093|CP17A_HUMAN\t2648"


def test_a_search_can_be_written_to_a_stream_and_a_file(queries, database, written, tmp_path):
    stream = io.StringIO()
    swsearch.write(search(queries, database), [stream, tmp_path / "hits.json"], ["10", "15"])
    assert stream.getvalue().encode() == written["10"]
    assert (tmp_path / "hits.json").read_bytes() == written["15"]


def test_searches_of_the_same_kind_go_together(queries, database):
    stream = io.StringIO()
    both = [*search("MKVLAAGIVGLWWPPK", database, evalue=1e9), *search("GLWWPPKMKVLAAGIV", database, evalue=1e9)]
    swsearch.write(both, stream, "jsonl")
    assert [json.loads(line)["query"]["id"] for line in stream.getvalue().splitlines()] == ["query_1", "query_1"]


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (lambda q, d: [], "results: got none, expected at least one"),
        (
            lambda q, d: [*search(q, d), *search(q, d, mode="global")],
            "from different databases or options, expected one search",
        ),
    ],
)
def test_what_cannot_be_one_report_is_refused(results, message, queries, database, tmp_path):
    with pytest.raises(InputError, match=message):
        swsearch.write(results(queries, database), tmp_path / "hits.tsv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("output", "outfmt", "error", "message"),
    [
        (io.StringIO(), "parquet", InputError, "expected a file object for bytes, such as open(path, 'wb')"),
        (io.BytesIO(), "6", InputError, "expected a file object for text, such as open(path, 'w')"),
        (7, None, InputError, "output: got 7, expected a path or a file object"),
        ("hits.unknown", None, OptionError, "output: got 'hits.unknown', expected an extension"),
        ("hits.xml", "15", InputError, "hits.xml means --outfmt 5, but got --outfmt 15"),
        (["hits.tsv", "hits.xml"], ["6"], InputError, "format: got 1 for 2 outputs, expected one for each, or none"),
        (["hits.tsv", "hits.tsv"], None, InputError, "expected different files"),
        ("missing/hits.tsv", None, OutputError, "the folder missing does not exist"),
        (io.StringIO(), "6 nonsense", OptionError, "nonsense"),
    ],
)
def test_wrong_outputs_are_told_before_the_search(output, outfmt, error, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    results = search("MKV", [("s", "MKV")])
    with pytest.raises(error, match=re.escape(message)):
        swsearch.write(results, output, outfmt)
    assert [result.query_id for result in results] == ["query_1"], "nothing was searched, nothing is lost"


def test_a_search_that_fails_leaves_no_file(tmp_path):
    results = search("MKV", "missing.h5")
    with pytest.raises(swsearch.SwsearchError, match=r"missing\.h5"):
        swsearch.write(results, tmp_path / "hits.tsv")
    assert not list(tmp_path.iterdir())


class EmptyAtFirst(io.StringIO):
    """A stream that counts what it holds, and so is false while it holds nothing."""

    def __len__(self):
        return len(self.getvalue())


def test_a_stream_that_is_false_is_written_to(queries, database, written):
    stream = EmptyAtFirst()
    assert not stream
    swsearch.write(search(queries, database), stream, "6")
    assert stream.getvalue().encode() == written["6"]
