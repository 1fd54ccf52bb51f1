"""Nothing that acts on a terminal leaves through a message or a format, whatever names and headers hold."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

import swsearch
from support.command_line import SWSEARCH, run
from support.samples import sample
from support.terminal import HOSTILE, NAME, UNPRINTABLE, clean
from swsearch import errors, report
from swsearch.errors import printable
from swsearch.report import headers
from swsearch.report.alignments import ALIGNMENT_FORMATS
from swsearch.report.pairs import PAIR_FORMATS

TURNS = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
"""Classes of characters that turn the direction of the text around them."""

LETTERS = "ARNDCQEGHILKMFPSTWYV"
SEQUENCE = "MKVLAAGIVGWWPPMKVLAAGIVG"


def test_what_is_replaced() -> None:
    for code in (*range(0x2100), *range(0xD700, 0xE010)):  # beyond these there is no such character
        character = chr(code)
        category, turns = unicodedata.category(character), unicodedata.bidirectional(character)
        acts = category in ("Cc", "Cs", "Zl", "Zp") or turns in TURNS
        assert (printable(character) != character) is acts, hex(code)
    assert printable(NAME).startswith(r"e\x1b[2Jsc\x9b31m\x7f\x08\u202ertl\u2066iso")
    assert printable("a\tb\nc", keep="\n") == "a\\tb\nc"
    assert printable("a\tb\nc", " ") == "a b c"
    assert headers.one_line("a\x1b\u202e\udcffb") == "a  \ufffdb"
    for text in ("", "plain", "é 中文 שלום \u200f 😀 e\u0301", "C:\\x1b"):
        assert printable(text) is text or printable(text) == text


@pytest.mark.parametrize(
    "error",
    [
        errors.InputError(NAME),
        errors.OptionError(NAME, NAME, NAME, NAME),
        errors.SequenceError(NAME, NAME, NAME, 3),
        errors.DatabaseError(NAME),
        errors.DatabaseDamageError(NAME, [NAME, NAME]),
        errors.MemoryLimitError(NAME),
        errors.OutputError(NAME),
        errors.EngineError(HOSTILE + "\nnext line"),
        errors.GpuUnavailableError(HOSTILE + "\nnext line"),
    ],
)
def test_errors_of_every_class(error: errors.SwsearchError) -> None:
    assert UNPRINTABLE.search(str(error)) is None
    # a compiler's report has several lines, and is the only one
    assert str(error).count("\n") == isinstance(error, errors.EngineError)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in.fasta").write_text(f">{HOSTILE.replace(chr(0x2028), '')} and {HOSTILE}\n{SEQUENCE}\n")
    matrix = swsearch.Scoring().matrix
    rows = [f"{a} {' '.join(str(x) for x in row[:20])}" for a, row in zip(LETTERS, matrix.scores, strict=False)]
    for name in ("matrix.txt", f"{HOSTILE}.txt"):
        (tmp_path / name).write_text("\n".join(["  " + " ".join(LETTERS), *rows]) + "\n")
    return tmp_path


@pytest.mark.parametrize("outfmt", sample([*PAIR_FORMATS], lambda name: name[0] in "pj"))
def test_formats_of_align(folder: Path, outfmt: str) -> None:
    words = ["align", "in.fasta", "in.fasta", "--outfmt", outfmt, "--matrix", f"{HOSTILE}.txt"]
    done = run(*words, cwd=folder)
    clean(done.stderr, 1)
    if outfmt == "sam":  # which has rules of its own for names
        assert (done.returncode, done.stdout) == (1, "")
        return
    assert done.returncode == 0, done.stderr
    clean(done.stdout, None if outfmt == "pairwise" else 1)
    if outfmt == "jsonl":
        assert json.loads(done.stdout)["matrix"].startswith("e\x1b")
    elif outfmt != "pairwise":
        assert len(done.stdout.split("\t")) >= 3
        assert done.stdout.startswith("e [2Jsc 31m")


TITLED = {"6": "6 qseqid stitle score"}
SEARCHED = [TITLED.get(kind.key, kind.key) for kind in report.OUTPUT_FORMATS if not kind.writer.binary]


@pytest.mark.parametrize("outfmt", sample(SEARCHED, lambda outfmt: outfmt in ("0", "7", "toml")))
def test_formats_of_search(folder: Path, outfmt: str) -> None:
    words = ["search", "in.fasta", "in.fasta", "--outfmt", outfmt, "--matrix", f"{HOSTILE}.txt", "-v"]
    done = run(*words, "--progress", "lines", cwd=folder)
    assert done.returncode == 0, done.stderr
    clean(done.stdout)
    clean(done.stderr)


@pytest.mark.parametrize("outfmt", sample([*ALIGNMENT_FORMATS], lambda outfmt: outfmt == "stockholm"))
def test_alignments_of_msa(folder: Path, outfmt: str) -> None:
    done = run("msa", "in.fasta", "in.fasta", "-o", NAME, "--outfmt", outfmt, "--progress", "lines", cwd=folder)
    assert done.returncode == 0, done.stderr
    clean(done.stderr)
    (path,) = (folder / NAME).iterdir()
    clean(path.name, 0)
    clean(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sample(["msas", "msas.sto"], lambda name: name == "msas.sto"))
def test_what_an_iterated_search_saves(folder: Path, name: str) -> None:
    words = ["--iterations", "2", "--save-msa", name, "--save-profile", "-", "--save-config", "options.toml"]
    done = run("search", "in.fasta", "in.fasta", *words, "-o", "hits.tsv", "--progress", "json", cwd=folder)
    assert done.returncode == 0, done.stderr
    clean(done.stderr)
    clean(done.stdout, 1)
    saved = folder / name
    for path in [*(saved.iterdir() if saved.is_dir() else [saved]), folder / "options.toml", folder / "hits.tsv"]:
        clean(path.read_text(encoding="utf-8"))


def test_entries_are_cleaned_on_a_terminal_alone(folder: Path) -> None:
    path = folder / "bytes.fasta"
    path.write_bytes((folder / "in.fasta").read_bytes().replace(b" and ", b" and \x9b1m\x01\xc2\x9b1m \xc3\xa9 "))
    assert run("db", "build", path.name, "-o", "in.h5", cwd=folder).returncode == 0
    done = run("db", "fetch", "in.h5", "--all", cwd=folder, text=False)
    assert done.stdout == path.read_bytes()
    ours, theirs = pty.openpty()
    try:
        line = [*SWSEARCH, "db", "fetch", "in.h5", "--all"]
        subprocess.run(line, cwd=folder, stdout=theirs, stderr=subprocess.PIPE, check=True)
        shown = os.read(ours, 1 << 16).replace(b"\r\n", b"\n").decode("utf-8")
    finally:
        os.close(theirs)
        os.close(ours)
    clean(shown, 2)
    assert shown.startswith(">e [2Jsc 31m  ")
    assert " and \ufffd1m  1m é e [2J" in shown
    assert shown.endswith(f"\n{SEQUENCE}\n")


def test_messages_name_files(folder: Path) -> None:
    for words in (
        ["search", NAME, "in.fasta"],
        ["search", "in.fasta", NAME],
        ["search", "in.fasta", "in.fasta", "-o", f"{NAME}/x.tsv"],
        ["search", "in.fasta", "in.fasta", "--outfmt", NAME],
        ["align", NAME, "MKV"],
        ["align", "MKV", "MKV", "--matrix", NAME],
        ["db", "build", NAME, "-o", "x.h5"],
        ["db", "build", "in.fasta", "-o", f"{NAME}/x.h5"],
        ["db", "info", NAME],
        ["db", "verify", NAME],
    ):
        done = run(*words, cwd=folder)
        assert done.returncode in (1, 2, 6), (words, done.stderr)
        assert done.stdout == ""
        clean(done.stderr, 1)
        assert "swsearch: error: " in done.stderr


@pytest.mark.skipif(sys.platform == "darwin", reason="names of files are UTF-8 here")
def test_what_is_said_of_a_database(folder: Path) -> None:
    name = NAME + os.fsdecode(b"\xff")
    (folder / "in.fasta").rename(folder / name)
    words = ["db", "build", name, "-o", f"{name}.h5"]
    clean(run(*words, cwd=folder).stderr, 1)
    (folder / "empty.fa").write_text(">e\x1b[2J\n")
    for words, lines in (
        (["db", "append", f"{name}.h5", name, "--on-duplicate", "keep"], 1),
        (["db", "append", f"{name}.h5", name, "empty.fa", "--on-duplicate", "keep"], 2),
        (["db", "verify", f"{name}.h5"], 1),
    ):
        done = run(*words, cwd=folder)
        assert done.returncode == 0, done.stderr
        clean(done.stderr, lines)
    done = run("db", "info", f"{name}.h5", cwd=folder)
    assert done.returncode == 0, done.stderr
    clean(done.stdout)
    sources = [line for line in done.stdout.splitlines() if line.split()[:2] == ["source", "path"]]
    assert len(sources) == 4
    assert all(r"\x1b[2Jsc\x9b31m" in line and r"\nswsearch: all is well\r" in line for line in sources[:3])
    done = run("db", "info", f"{name}.h5", "--json", cwd=folder)
    assert json.loads(done.stdout)["segments"][0]["sources"][0]["path"] == name
    clean(done.stdout)


def test_a_word_that_can_be_no_name_is_cut():
    """Text pasted for a file's name does not fill the screen; a path of long folders stays whole."""
    path = "/".join(["d" * 255] * 4)
    assert str(errors.InputError(f"{path}: no")) == f"{path}: no"
    assert str(errors.InputError(f"--config {'1' * 256}: no")) == f"--config {'1' * 60}...: no"
