"""Which output gets which format, from the command line down to the files."""

import hashlib
import io
import json
import os
import pty
import re
import subprocess

import pytest

import swsearch
from support.command_line import SWSEARCH, run
from swsearch import report
from swsearch.errors import SwsearchError
from swsearch.report import outputs
from swsearch.report.outputs import Output, match_outputs_to_formats


@pytest.mark.parametrize(
    ("paths", "formats", "expected"),
    [
        ([], [], ["6"]),
        ([], ["7"], ["7"]),
        (["-"], [], ["6"]),
        (["hits"], [], ["6"]),
        (["/dev/null"], [], ["6"]),
        (["/dev/stdout"], ["jsonl"], ["jsonl"]),
        (["/dev/null", "/dev/null"], [], ["6", "6"]),
        (["a.tsv", "b.tab", "c.txt", "d.CSV"], [], ["6", "6", "6", "10"]),
        (["a.xml", "b.json", "c.jsonl", "d.sam", "e.paf"], [], ["5", "15", "jsonl", "sam", "paf"]),
        (["a.txt", "b.json", "c.unheard"], ["0", "json", "6 qseqid"], ["0", "json", "6 qseqid"]),
        (["-", "b.xml"], ["7", "xml"], ["7", "xml"]),
    ],
)
def test_formats_by_option_or_extension(paths, formats, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert match_outputs_to_formats(paths, formats) == [
        Output(path, outfmt) for path, outfmt in zip(paths or [None], expected, strict=True)
    ]
    assert list(tmp_path.iterdir()) == []


def test_every_extension_means_its_format_and_one_only():
    extensions = [extension for kind in report.OUTPUT_FORMATS for extension in kind.extensions]
    assert len(extensions) == len(set(extensions))
    for kind in report.OUTPUT_FORMATS:
        assert all(report.format_for_path(f"x{extension}") is kind for extension in kind.extensions)
    names = [name for kind in report.OUTPUT_FORMATS for name in (kind.key, *kind.names)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("paths", "formats", "message"),
    [
        ([], ["6", "7"], "got --outfmt 2 times and no --output, expected one --output for each"),
        (["a.tsv", "b.xml"], ["6"], "got --outfmt 1 times and --output 2 times, expected equal numbers"),
        (["a.tsv"], ["6", "5"], "got --outfmt 2 times and --output 1 times"),
        (["a.bam"], [], "output: got 'a.bam', expected an extension out of .xml, .tsv,"),
        (["a.tsv.gz"], [], "swsearch does not compress; write to stdout and pipe it"),
        (["a.tsv.gz"], ["6"], "--output a.tsv.gz means a compressed file, but got --outfmt 6"),
        (["a.xml"], ["6 qseqid"], "--output a.xml means --outfmt 5, but got --outfmt 6"),
        (["a.tsv"], ["sam"], "--output a.tsv means --outfmt 6, but got --outfmt sam"),
        (["a.tsv", "./a.tsv"], [], "got --output ./a.tsv and --output a.tsv, expected different files"),
        (["-", "-"], ["6", "7"], "got --output - and --output -, expected different"),
        (["a.tsv", "b.tsv"], ["6", "6 nonsense"], "outfmt: got '6 nonsense'"),
        (["a.tsv", "."], [], "is a directory"),
        (["a.tsv", "no/b.tsv"], [], "the folder no does not exist"),
    ],
)
def test_what_cannot_be_is_told_before_the_search(paths, formats, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SwsearchError, match=re.escape(message)):
        match_outputs_to_formats(paths, formats)
    assert list(tmp_path.iterdir()) == []


def search(examples, *arguments, cwd, subjects="swissprot_sample.fasta.gz"):
    line = ["search", examples / "data" / "queries.fasta", examples / "data" / subjects]
    return run(*line, "--engine", "cpu", "--max-hits", "3", *arguments, text=False, cwd=cwd)


def without_run(report_bytes):
    return re.sub(rb'<section id="run".*?</section>', b"", report_bytes, flags=re.S)


def test_one_search_writes_all(examples, tmp_path):
    kinds = [kind for kind in report.OUTPUT_FORMATS if kind.extensions and not kind.writer.is_single_query]
    names = [f"hits{kind.extensions[0]}" for kind in kinds]
    few = {"cwd": tmp_path, "subjects": "queries.fasta"}  # for a dozen searches
    outputs = (part for name in names for part in ("-o", name))
    done = search(examples, *outputs, "-o", "-", "-q", **few)
    assert (done.returncode, done.stderr) == (0, b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    assert done.stdout == (tmp_path / "hits.tsv").read_bytes()
    for name in names:
        kind = report.format_for_path(name)
        one = search(examples, "--outfmt", kind.key, "--threads", "1", **few)
        several = (tmp_path / name).read_bytes()
        if kind.key == "html":  # whose block on the run has the time and the command line
            assert several.count(b'<section id="run"') == 1
        assert without_run(one.stdout) == without_run(several) != b"", name


def test_one_file_that_cannot_be_written_takes_all_along(examples, tmp_path):
    # the portable stand-in for a full disk: no file may grow beyond 3 kB, which the table does not need
    limited = ["bash", "-c", "trap '' XFSZ; ulimit -f 3; exec \"$@\"", "limited"]
    data = examples / "data"
    database = tmp_path / "sample.h5"
    swsearch.Database.build(data / "swissprot_sample.fasta.gz", database).close()
    line = [*limited, *SWSEARCH, "search", data / "queries.fasta", database]
    line += ["--max-hits", "3", "--engine", "cpu", "-o", "a.tsv", "-o", "b.xml"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    words = [str(part) for part in line]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False, text=True, env=environment)
    assert done.returncode == 6, done.stderr
    assert "a.tsv, b.xml: cannot be written: File too large; nothing was left there" in done.stderr
    assert list(tmp_path.iterdir()) == [database]


def test_writers_let_go_of_what_they_hold(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    said = []
    monkeypatch.setattr(report.base.Writer, "discard", lambda self: said.append(type(self).__name__))

    def interrupted():
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        outputs.write_reports(interrupted(), [Output("a.xml", "5"), Output("b.tsv", "6 qseqid")])
    assert said == ["BlastXmlWriter", "TabularWriter"]
    assert list(tmp_path.iterdir()) == []


def test_bytes_go_to_no_terminal(examples, tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    ours, theirs = pty.openpty()
    line = [*SWSEARCH, "search", "q.fasta", "s.fasta", "--outfmt", "parquet"]
    done = subprocess.run(line, cwd=tmp_path, stdout=theirs, stderr=subprocess.PIPE, check=False, text=True)
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 1
    assert "--outfmt parquet is binary, and stdout is a terminal; write to a file with --output" in done.stderr


def test_bytes_go_through_a_pipe(examples, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    done = search(examples, "--outfmt", "parquet query_id score", "-q", cwd=tmp_path)
    table = parquet.read_table(io.BytesIO(done.stdout))
    assert table.num_rows == 15
    (source,) = json.loads(table.schema.metadata[b"swsearch"])["database"]["sources"]
    digest = hashlib.sha256((examples / "data" / "swissprot_sample.fasta.gz").read_bytes()).hexdigest()
    assert (source["sha256"], source["records"]) == (digest, 3183)


def test_a_name_and_the_extension_of_that_name_mean_the_same():
    from swsearch.report.pairs import PAIR_FORMATS, format_of_file

    for name in (*report.FORMATS, *PAIR_FORMATS):
        kind = report.format_for_path(f"hits.{name}")
        assert kind is None or kind is report.find_format(name)
        if name != "json":
            assert format_of_file(f"pairs.{name}") in (name if name in PAIR_FORMATS else "jsonl", "pairwise")
