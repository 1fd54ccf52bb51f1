"""Standard streams that are closed or full: results are complete, and the exit code says what was lost."""

import os
import subprocess
from pathlib import Path

import pytest

from support.command_line import SWSEARCH, run
from support.samples import sample

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")


@pytest.fixture(scope="module")
def fasta(tmp_path_factory):
    path = tmp_path_factory.mktemp("fasta") / "some.fasta"
    path.write_text(">a\nMKVLAAGIVGWW\n>nothing\n>b\nMKVLAWGIVGWWPP\n>c\nWWPPHHMKVLAAG\n")
    return path


@pytest.fixture(scope="module")
def database(fasta):
    path = fasta.with_name("some.h5")
    assert run("db", "build", fasta, "-o", path).returncode == 0
    return path


COMMANDS = {
    "search": ["search", "{fasta}", "{database}", "--evalue", "1000"],
    "help": ["--help"],
}
"""Commands that write to stdout, the same each time; ``tests/faults/streams.py`` draws from all."""

TO_FILES = {
    "search": ["search", "{fasta}", "{database}", "--evalue", "1000", "-o", "out.tsv"],
    "append": ["db", "append", "out.h5", "{fasta}", "--on-duplicate", "keep"],
}
"""Commands that do not."""


def filled(words, fasta, database):
    return [word.format(fasta=fasta, database=database) for word in words]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("lost", ["closed", "full"])
def test_messages_that_nobody_can_read_change_nothing(name, lost, fasta, database):
    words = filled(COMMANDS[name], fasta, database)
    expected = run(*words, text=False)
    assert expected.returncode == 0
    done = run(*words, text=False, **{lost: (2,)})
    assert (done.returncode, done.stdout, done.stderr) == (0, expected.stdout, b"")


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(("lost", "reason"), [("closed", "is closed"), ("full", "No space left on device")])
def test_data_that_cannot_be_written_are_an_error(name, lost, reason, fasta, database):
    done = run(*filled(COMMANDS[name], fasta, database), **{lost: (1,)})
    assert done.returncode == 6
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1] == f"swsearch: error: stdout: {reason}; the output is not complete"


@pytest.mark.parametrize("name", COMMANDS)
def test_errors_keep_their_codes_where_all_is_lost(name, fasta, database):
    assert run(*filled(COMMANDS[name], fasta, database), closed=(0, 1, 2)).returncode == 6
    assert run(*filled(COMMANDS[name], fasta, database), full=(1, 2)).returncode == 6


@pytest.mark.parametrize(("words", "code"), [(["nonsense"], 1), (["db", "info", "missing.h5"], 2), (["--odd"], 1)])
def test_the_code_of_an_error_stays_without_its_message(words, code):
    for lost in ({"closed": (2,)}, {"full": (2,)}, {"closed": (0, 1, 2)}):
        assert run(*words, **lost).returncode == code, lost


@pytest.mark.parametrize("name", TO_FILES)
def test_files_hold_what_they_hold_otherwise(name, fasta, database, tmp_path):
    """Each closed descriptor is the next that is opened: nothing but its own bytes may get into a file."""
    words = filled(TO_FILES[name], fasta, database)
    sizes = []
    for lost in ({}, {"closed": (0, 1, 2)}, {"closed": (2,)}, {"closed": (0,)}, {"full": (1, 2)}):
        folder = tmp_path / str(len(sizes))
        folder.mkdir()
        if name == "append":
            (folder / "out.h5").write_bytes(database.read_bytes())
        assert run(*words, cwd=folder, **lost).returncode == 0, lost
        for path in folder.iterdir():
            if path.suffix == ".h5":
                assert run("db", "verify", path).returncode == 0
        # a database holds the times when it was made, whose lengths do not differ
        sizes.append({path.name: path.stat().st_size for path in folder.iterdir()})
        if name == "search":
            first = tmp_path / "0"
            assert [path.read_bytes() for path in folder.iterdir()] == [path.read_bytes() for path in first.iterdir()]
    assert all(each == sizes[0] for each in sizes)


def test_stdin_that_is_closed_is_said(database):
    done = run("search", "-", database, closed=(0,))
    assert done.returncode == 1
    assert done.stderr == "swsearch: error: <stdin>: standard input is closed; give a file or pipe FASTA into it\n"


@pytest.mark.parametrize("words", sample(["--version", "--help", "search --help", "db --help"], "--version".__eq__))
def test_a_reader_of_help_that_has_gone_is_no_error(words):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*SWSEARCH, *words.split()], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
