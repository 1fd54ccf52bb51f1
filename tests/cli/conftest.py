"""For the tests of this folder: the command line in this process, beside two files of sequences."""

import shutil
import sys

import pytest

from swsearch.cli import main
from swsearch.db import Database

SEQUENCE = "MKVLAAGIVGWWHHKDEFRTYPCNQS"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder of FASTA files, and two databases."""
    folder = tmp_path_factory.mktemp("files")
    texts = {
        "q": f">one\n{SEQUENCE}\n>two\n{SEQUENCE[5:]}\n",
        "empty": "",
        "bad": ">first\nMKV\n>second\nM-V\n",
        "dna": ">d\nACGE\n",
        "stop": ">s\nMK*\n",
        "twins": ">t\nMKV\n>t\nMKL\n",
    }
    for name, text in texts.items():
        (folder / f"{name}.fasta").write_text(text)
    for name in ("d.h5", "new.h5"):
        Database.build([folder / "q.fasta"], folder / name).close()
    return folder


@pytest.fixture
def swsearch(files, tmp_path, monkeypatch, capsys):
    """Run a command line in this process; returns its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    for each in files.iterdir():
        shutil.copy(each, each.name)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["swsearch", *words])
        try:
            code = main.main() or 0
        except SystemExit as ended:
            code = ended.code or 0
        return code, *capsys.readouterr()

    return run
