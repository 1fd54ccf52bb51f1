"""A command writes to no file that it reads."""

from __future__ import annotations

import pytest

from support.command_line import fails, run
from support.samples import sample
from swsearch.db import build_database, split_database


@pytest.fixture
def files(tmp_path):
    """Make queries, subjects, their database and its volumes; return the folder."""
    (tmp_path / "q.fasta").write_text(">q\nMKVLAAGIVGWW\n")
    (tmp_path / "s.fasta").write_text(">a\nMKVLAAGIVGWW\n>b\nWWHHRKDE\n")
    (tmp_path / "q.a3m").write_text(">q\nMKVLAAGIVGWW\n>a\nMKVLAAGIVGWW\n")
    (tmp_path / "ids.txt").write_text("a\n")
    build_database(tmp_path / "s.fasta", tmp_path / "s.h5")
    split_database(tmp_path / "s.h5", tmp_path / "s.json", volumes=2)
    (tmp_path / "link.h5").symlink_to("s.h5")
    return tmp_path


LINES = [
    "search q.fasta s.fasta -o q.fasta --outfmt 6",
    "search q.fasta s.fasta -o s.fasta --outfmt 6",
    "search q.fasta s.h5 -o s.h5 --outfmt 6",
    "search q.fasta link.h5 -o s.h5 --outfmt 6",
    "search q.fasta s.json -o s.json",
    "search q.fasta s.json -o new.tsv -o s.001.h5 --outfmt 6 --outfmt 6",
    "search q.fasta s.h5 --include-ids ids.txt -o ids.txt",
    "search q.fasta s.h5 --save-profile q.fasta -o new.tsv",
    "search q.a3m s.h5 --save-msa . -o new.tsv",
    "msa q.a3m s.h5 -o .",
    "align q.fasta s.fasta -o s.fasta",
    "align q.fasta s.fasta -o q.fasta",
    "db fetch s.h5 a -o s.h5",
    "db fetch s.json a -o s.001.h5",
]


@pytest.mark.parametrize(
    "line", sample(LINES, lambda line: line.endswith(("link.h5 -o s.h5 --outfmt 6", "s.001.h5")))
)
def test_an_input_is_no_output(line, files):
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    fails(run(*line.split(), cwd=files), 6, ": is one of the inputs; choose another name for the output")
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before
