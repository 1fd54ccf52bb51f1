"""Arguments for queries and subjects: letters or the name of a file, and streams that are opened once."""

from __future__ import annotations

import contextlib
import gzip
import os
import subprocess
import threading
from pathlib import Path

import pytest

import swsearch
from support.command_line import SWSEARCH, fails, run
from support.samples import sample
from swsearch.alphabet import DNA
from swsearch.errors import InputError, SequenceError
from swsearch.inputs import MAX_WORD, check_distinct_inputs, input_path, open_subjects, read_queries

FASTA = ">one\nMKVLAAGIVG\n>two\nWWPPWWPPEE\n"

NAMES = ["human", "Human", "human_1", "sp|p1", "HUMAN.FA", "./HUMAN", "a/b", "..", "~/x", "data.fasta"]

QUICK = [("human", "A"), ("HUMAN.FA", "A"), ("Human", "B"), ("..", "B")]


@pytest.mark.parametrize(
    ("name", "place"), sample([(name, place) for place in "AB" for name in NAMES], lambda case: case in QUICK)
)
def test_a_mistyped_name_is_not_aligned(tmp_path: Path, name: str, place: str) -> None:
    words = [name, "MKV"] if place == "A" else ["MKV", name]
    done = run("align", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    last = done.stderr.splitlines()[-1]
    assert "no such file" in last or "is a directory" in last or f"{place}: file {name!r} not found" in last


def test_letters_are_said_to_be_letters(tmp_path: Path) -> None:
    done = run("align", "HUMAN", "X", "--score-only", cwd=tmp_path)
    lines = done.stderr.splitlines()
    assert lines[:2] == [
        "swsearch: A is taken as 5 letters, not as the name of a file",
        "swsearch: B is taken as 1 letter, not as the name of a file",
    ]
    assert run("align", "HUMAN", "X", "--score-only", "--quiet").stdout == done.stdout == "A_1\tB_1\t-16\n"
    (tmp_path / "HUMAN").write_text(FASTA)
    (tmp_path / "x").symlink_to(tmp_path / "nowhere")
    done = run("align", "HUMAN", "HUMAN", "--score-only", cwd=tmp_path)
    assert "taken" not in done.stderr
    fails(run("align", "x", "MKV", cwd=tmp_path), 1, "x: no such file; check the name")


def test_an_empty_name(tmp_path: Path) -> None:
    for place, words in {
        "A": ["align", "", "X"],
        "B": ["align", "X", " "],
        "queries": ["search", "", "X"],
        "subjects": ["search", "X", ""],
    }.items():
        fails(run(*words, cwd=tmp_path), 1, f"{place}: the name is empty, expected a file")


@pytest.mark.parametrize("letters", ["human", "mkvlaagivg", "MKVlaagivg", "human_1"])
def test_a_string_of_the_api_may_be_a_mistyped_name_too(letters: str) -> None:
    with pytest.raises(InputError, match=f"query: file '{letters}' not found; check the name, or give letters in"):
        swsearch.search(letters, [("s", "MKV")])
    with pytest.raises(InputError, match=f"a: file '{letters}' not found"):
        swsearch.align(letters, "MKV")
    with pytest.raises(swsearch.SwsearchError, match=f"subject: file '{letters}' not found"):
        swsearch.score("MKV", letters)
    with pytest.raises(InputError, match="query: the text is empty"):
        read_queries("")


def test_letters_in_lower_case_have_a_way() -> None:
    for sequences in (["mkvLAA"], ("id", "mkvLAA"), [("id", "mkvLAA")]):
        (query,) = read_queries(sequences)
        assert query.lower == ((0, 3),)
    (query,) = read_queries("MKVLaaGIVG")  # most of it is in upper case
    assert (query.identifier, query.lower) == ("query_1", ((4, 6),))
    assert MAX_WORD == 30
    for long in ("mkvlaagivg" * 3 + "w", "MKVlaagivg" * 500, "mkvlaagivg " * 3 + "*"):  # hardly a name
        (query,) = read_queries(long)
        assert (query.identifier, len(query.codes)) == ("query_1", len(long.replace(" ", "")))
        assert query.lower
    with pytest.raises(SequenceError, match=r"file .* not found"):
        read_queries("mkvlaagivg_" * 3)
    assert len(read_queries("ACGTN", DNA)[0].codes) == 5


def test_a_bad_letter_may_mean_a_missing_file() -> None:
    with pytest.raises(SequenceError, match=r"record 'query_1': '_' is no residue letter.*; no file has this name"):
        read_queries("HUMAN_1")
    assert input_path("A\0B") == input_path("M" * 5000) == input_path("\ud800") == ""


def test_stdout_is_the_same_for_letters_and_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(">A_1\nMKVLAAGIVG\n")
    (tmp_path / "b").write_text(">B_1\nMKVLGIVG\n")
    letters = run("align", "MKVLAAGIVG", "MKVLGIVG", "--outfmt", "jsonl")
    assert run("align", "a", "b", "--outfmt", "jsonl", cwd=tmp_path).stdout == letters.stdout != ""


# streams


class Writer(threading.Thread):
    """Writes to a named pipe once; who opens it again finds it empty, and does not wait for ever."""

    def __init__(self, path: Path, data: bytes) -> None:
        super().__init__(daemon=True)
        self.path, self.data, self.done = path, data, threading.Event()
        self.start()

    def run(self) -> None:
        self.path.write_bytes(self.data)
        while not self.done.wait(0.02):
            with contextlib.suppress(OSError):  # nobody has it open
                os.close(os.open(self.path, os.O_WRONLY | os.O_NONBLOCK))


@pytest.fixture
def pipe(tmp_path: Path):
    """Make named pipes that bring data once."""
    writers: list[Writer] = []

    def write(data: bytes) -> Path:
        path = tmp_path / f"pipe{len(writers)}"
        os.mkfifo(path)
        writers.append(Writer(path, data))
        return path

    yield write
    for writer in writers:
        writer.done.set()
        writer.join(10)


@pytest.mark.parametrize("suffix", ["", ".fa", ".h5"])
def test_a_pipe_of_subjects_is_opened_once(pipe, tmp_path: Path, suffix: str) -> None:
    for number, data in enumerate((FASTA.encode(), gzip.compress(FASTA.encode()))):
        given = tmp_path / f"link{number}{suffix}"
        given.symlink_to(pipe(data))
        with open_subjects(given) as database:
            assert [database.sequence(k) for k in range(2)] == ["MKVLAAGIVG", "WWPPWWPPEE"]


def test_a_database_through_a_pipe_is_refused(pipe, tmp_path: Path) -> None:
    swsearch.Database.build([_file(tmp_path)], tmp_path / "x.h5").close()
    data = (tmp_path / "x.h5").read_bytes()[:4096]
    with pytest.raises(swsearch.SwsearchError, match="comes through a pipe; give a database by its file name"):
        open_subjects(pipe(data))


def _file(folder: Path) -> Path:
    path = folder / "in.fasta"
    path.write_text(FASTA)
    return path


def test_queries_and_subjects_from_one_stream(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    fails(run("search", "pipe", "./pipe", cwd=tmp_path), 1, "queries and subjects cannot both come from pipe")
    fails(run("align", "-", "-"), 1, "A and B cannot both come from stdin; give one of them as a file")
    check_distinct_inputs("in.fasta", "in.fasta", ("A", "B"))  # a file can be read twice
    check_distinct_inputs(os.devnull, os.devnull, ("A", "B"))


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="no /dev/fd here")
@pytest.mark.parametrize(
    "subjects", sample(["-", "/dev/stdin", "<(cat in.fasta)", "<(gzip -c in.fasta)"], lambda words: "gzip" in words)
)
def test_shells_give_subjects_in_many_ways(tmp_path: Path, subjects: str) -> None:
    path = _file(tmp_path)
    expected = run("search", path, path, "--quiet").stdout
    line = f"cat in.fasta | {' '.join(SWSEARCH)} search in.fasta {subjects} --quiet"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")
