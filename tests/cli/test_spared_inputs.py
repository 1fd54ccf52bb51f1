"""A command writes to no file that it reads."""

from __future__ import annotations

from pathlib import Path

import pytest

import swsearch
from support.command_line import fails, run
from support.samples import sample
from swsearch.db import build_database, split_database

LETTERS = "ARNDCQEGHILKMFPSTWYV"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def files(tmp_path):
    """Make queries, subjects, their database and its volumes; return the folder."""
    (tmp_path / "q.fasta").write_text(">q\nMKVLAAGIVGWW\n")
    (tmp_path / "s.fasta").write_text(">a OX=9606\nMKVLAAGIVGWW\n>b OX=562\nWWHHRKDE\n")
    (tmp_path / "q.a3m").write_text(">q\nMKVLAAGIVGWW\n>a\nMKVLAAGIVGWW\n")
    (tmp_path / "ids.txt").write_text("a\n")
    (tmp_path / "taxids.txt").write_text("9606\n")
    (tmp_path / "c.toml").write_text("max-hits = 3\n")
    rows = [f"{a} " + " ".join("7" if a == b else "-3" for b in LETTERS) for a in LETTERS]
    (tmp_path / "own.txt").write_text("\n".join(["  " + " ".join(LETTERS), *rows]) + "\n")
    for name in ("own.txt", "q.fasta"):  # an ending that profiles are written with
        (tmp_path / name).with_suffix(".json").write_bytes((tmp_path / name).read_bytes())
    build_database(tmp_path / "s.fasta", tmp_path / "s.h5", taxids="header")
    list(swsearch.search(tmp_path / "q.fasta", tmp_path / "s.h5", engine="cpu", checkpoint=tmp_path / "kept"))
    split_database(tmp_path / "s.h5", tmp_path / "s.json", volume_size=1)
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
    "search q.fasta s.h5 --exclude-ids ids.txt --save-config ids.txt",
    "search q.fasta s.h5 --matrix own.json --save-profile own.json",
    "search q.fasta s.h5 --taxids taxids.txt -o taxids.txt",
    "search q.fasta s.h5 --exclude-taxids taxids.txt -o taxids.txt --outfmt 6",
    "search q.fasta s.h5 --config c.toml -o c.toml",
    "search q.fasta s.h5 --checkpoint kept -o kept/manifest.json",
    "align q.fasta s.fasta --matrix own.txt -o own.txt",
    "db fetch s.h5 --ids ids.txt -o ids.txt",
    "search q.json s.h5 --save-profile q.json -o new.tsv",
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
    before = contents(files)
    fails(run(*line.split(), cwd=files), 6, ": is one of the inputs; choose another name for the output")
    assert contents(files) == before
