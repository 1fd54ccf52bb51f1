"""Messages of ``swsearch search`` besides its results."""

import re

import numpy as np
import pytest

import swsearch
from support.command_line import run

AMINO = "ACDEFGHIKLMNPQRSTVWY"
SEQUENCE = "MKVLAAGIVGWWHHKDEFRTYPCNQS"


@pytest.fixture
def few(tmp_path):
    """Two subjects."""
    path = tmp_path / "few.fasta"
    path.write_text(f">one\n{SEQUENCE}\n>two\n{SEQUENCE[5:]}\n")
    return path


@pytest.mark.parametrize("options", [["--mode", "global"], ["--statistics", "fitted"], ["--gap-open", "3"]])
@pytest.mark.parametrize("quiet", [[], ["-q"]])
def test_why_there_are_no_evalues_is_told_however_quiet(tmp_path, few, options, quiet):
    odd = tmp_path / "odd.fasta"
    odd.write_text(f">nothing\n>one\n{SEQUENCE}\n")
    done = run("search", odd, few, *options, *quiet, "--outfmt", "6 qseqid evalue")
    assert done.returncode == 0
    evalues = {query: float(evalue) for query, evalue in map(str.split, reversed(done.stdout.splitlines()))}
    assert evalues["one"] < 1e-9
    assert str(evalues.get("nothing", "nan")) == "nan"
    said = done.stderr.splitlines()
    told = "swsearch: 1 of 2 queries: no E-values: the query has no residues; hits are ranked by score"
    assert said.count(told) == 1
    assert (len(said) > 2) != bool(quiet)


def test_few_subjects_have_evalues(few):
    for mode in ("local", "global", "semiglobal"):
        done = run("search", few, few, "--mode", mode, "--quiet", "--max-hits", "1", "--outfmt", "6 evalue")
        assert done.stderr == ""
        assert all(float(evalue) < 1e-9 for evalue in done.stdout.split())


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
        "swsearch: warning: --min-identity 0.5 means 0.5%; if you mean 50%, give 50",
        "swsearch: warning: --min-query-coverage 1 means 1%; if you mean 100%, give 100",
        f"swsearch: warning: {odd}: 1 query has no residues, e.g. 'nothing'",
        "swsearch: 1 of 2 queries: no E-values: the query has no residues; hits are ranked by score",
    ]


@pytest.mark.parametrize("quiet", [[], ["-q"]])
def test_what_composition_explains_is_told_once_for_each_query(tmp_path, quiet):
    """Published statistics take runs of few kinds of residues for relatives; shuffled they score as much."""
    generator = np.random.default_rng(15)
    queries, subjects = tmp_path / "runs.fasta", tmp_path / "others.fasta"

    def rich(n):
        letters = np.where(
            generator.random(n) < 0.8, generator.choice(list("EK"), n), generator.choice(list(AMINO), n)
        )
        return "".join(letters)

    queries.write_text(f">charged\n{rich(200)}\n>plain\n{SEQUENCE}\n>also\n{rich(150)}\n")
    subjects.write_text("".join(f">s{k}\n{rich(300)}\n" for k in range(20)) + f">itself\n{SEQUENCE}\n")
    done = run("search", queries, subjects, *quiet, "--outfmt", "6 qseqid sseqid evalue evalue_published")
    assert done.returncode == 0
    told = [line for line in done.stderr.splitlines() if " a published E-value <= " in line]
    assert [line.split("'")[1] for line in told] == ["charged", "also"]
    for line in told:
        assert re.match(r"swsearch: query '\w+': \d+ subjects? ha(ve|s) a published E-value <= 1e-06 but ", line)
        assert "most of the score is composition" in line
    if quiet:
        assert done.stderr.splitlines() == told
    assert "published statistics and" not in run("search", queries, subjects, "--statistics", "published").stderr
    results = {result.query_id: result for result in swsearch.search(queries, subjects, engine="cpu")}
    assert [f"swsearch: {results[name].warning}" for name in ("charged", "also")] == told
    assert not results["plain"].warning


def test_a_size_of_the_database_as_people_write_it(few):
    expected = run("search", few, few, "--dbsize", "5000000").stdout
    assert "e-" in expected
    for text in ("5M", "5m", "5e6", "5,000,000", "5_000_000", "5000k", "0.005G"):
        assert run("search", few, few, "--dbsize", text).stdout == expected
