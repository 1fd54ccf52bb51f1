"""What ``swsearch search`` says beside its results."""

import pytest

from support.command_line import run

SEQUENCE = "MKVLAAGIVGWWHHKDEFRTYPCNQS"


@pytest.fixture
def few(tmp_path):
    """Some subjects, too few for a fit."""
    path = tmp_path / "few.fasta"
    path.write_text(f">one\n{SEQUENCE}\n>two\n{SEQUENCE[5:]}\n")
    return path


@pytest.mark.parametrize("options", [["--mode", "global"], ["--statistics", "fitted"], ["--gap-open", "3"]])
@pytest.mark.parametrize("quiet", [[], ["-q"]])
def test_why_there_are_no_evalues_is_told_however_quiet(few, options, quiet):
    done = run("search", few, few, *options, *quiet, "--outfmt", "6 evalue")
    assert (done.returncode, set(done.stdout.split())) == (0, {"nan"})
    first, *others = done.stderr.splitlines()
    assert first.startswith("swsearch: 2 of 2 queries: no E-values: ")
    assert bool(others) != bool(quiet)


def test_where_none_were_asked_for_that_is_told_too(few):
    done = run("search", few, few, "--statistics", "none", "--quiet", "--outfmt", "6 evalue")
    assert done.stderr == "swsearch: no E-values: none were asked for; hits are ranked by score\n"


def test_quiet_is_quiet_where_there_are_evalues(few):
    assert run("search", few, few, "--quiet").stderr == ""


def test_warnings_are_told_however_quiet(tmp_path, few):
    odd = tmp_path / "odd.fasta"
    odd.write_text(f">one\n{SEQUENCE}\n>nothing\n")
    done = run("search", odd, few, "-q", "--min-identity", "0.5", "--min-query-coverage", "1%")
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "swsearch: warning: --min-identity 0.5 is 0.5 %; if 50 % are meant, give 50",
        "swsearch: warning: --min-query-coverage 1 is 1 %; if 100 % are meant, give 100",
        f"swsearch: warning: {odd}: 1 queries have no residues, such as 'nothing'",
    ]


def test_a_size_of_the_database_as_people_write_it(few):
    expected = run("search", few, few, "--dbsize", "5000000").stdout
    assert "e-" in expected
    for text in ("5M", "5m", "5e6", "5,000,000", "5_000_000", "5000k", "0.005G"):
        assert run("search", few, few, "--dbsize", text).stdout == expected
