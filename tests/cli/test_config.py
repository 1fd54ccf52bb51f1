"""Options from a file: TOML, or a report, which holds those of its search."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import swsearch
from swsearch.report.headers import options_as_toml, settings_in

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
FILES = {"include_ids": "a.txt", "exclude_ids": "b.txt"}
SEQUENCE = "MKVLAAGIVGWWHHKDEFRTYPCNQS"


@pytest.fixture
def search(swsearch: Callable[..., tuple[int, str, str]]) -> Callable[..., str]:
    """Search in this process; returns stdout, or the error."""
    Path("q.fasta").write_text(f">one\n{SEQUENCE}\n>two\n{SEQUENCE[5:]}\n>three\n{SEQUENCE[:9]}WW{SEQUENCE[9:]}\n")

    def run(*words: str, code: int = 0) -> str:
        ended, out, err = swsearch("search", "q.fasta", "q.fasta", "--engine", "cpu", "--quiet", *words)
        assert ended == code, err
        return out if code == 0 else err.removeprefix("swsearch: error: ").rstrip()

    return run


def test_what_a_run_used_can_be_given_back(search: Callable[..., str]) -> None:
    Path("ids.txt").write_text("one\nthree\n")
    asked = ["--max-hits", "2", "--task", "short", "--min-identity", "10", "--include-ids", "ids.txt"]
    asked += ["--max-alignments", "2", "--sort", "score", "--query-mask", "lower"]
    outputs = ["-o", "a.tsv", "-o", "a.jsonl", "-o", "a.html", "--save-config", "a.toml"]
    search(*asked, *outputs)
    expected = Path("a.tsv").read_text()
    assert expected != search()
    for name in ("a.toml", "a.jsonl", "a.html"):
        assert search("--config", name) == expected, name
        again = search("--config", name, "--save-config", "-", "-o", "b.tsv")
        assert again == Path("a.toml").read_text(), name


def test_the_command_line_goes_before_the_file(search: Callable[..., str]) -> None:
    Path("o.toml").write_text('max-hits = 1\nmatrix = "PAM30"\ngap_open = 7\nheader = true\noutput = ["x.tsv"]\n')
    search("--config", "o.toml", "--save-config", "used.toml")
    used = settings_in(Path("used.toml").read_text(), "")
    assert (used["max-hits"], used["matrix"], used["gap-open"], used["gap-extend"]) == (1, "PAM30", 7, 1)
    assert Path("x.tsv").read_text().startswith("qaccver")
    search(
        "--config", "o.toml", "-o", "y.tsv", "--max-hits", "3", "--matrix", "BLOSUM45", "--save-config", "used.toml"
    )
    used = settings_in(Path("used.toml").read_text(), "")
    # a matrix brings its own gap costs
    assert (used["max-hits"], used["matrix"], used["gap-open"], used["gap-extend"]) == (3, "BLOSUM45", 14, 2)
    assert Path("y.tsv").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("max-hit = 3", "o.toml: 'max-hit' is no option of swsearch search; did you mean max-hits?"),
        ('max-hits = "many"', "o.toml: max-hits: got 'many', expected a whole number"),
        ("max-hits = true", "o.toml: max-hits: got True, expected a text or a number for N"),
        ("max-hits = [1]", "o.toml: max-hits: got [1], expected a text or a number for N"),
        ("quick = 1", "o.toml: 'quick' is no option of swsearch search; did you mean quiet?"),
        ("header = 1", "o.toml: header: got 1, expected true or false"),
        ('mode = "locl"', "o.toml: mode: got 'locl', expected one of local, global, semiglobal; did you mean local?"),
        ("mode = []", "o.toml: mode: got [], expected one of local, global, semiglobal"),
        ("evalue = -1", "o.toml: evalue: got -1.0, expected a number > 0"),
        ("evalue = nan", "o.toml: evalue: got 'nan', expected a number"),
        ("max-hits = 1\nmax_hits = 2", "o.toml: got max-hits and max_hits, which are the same; leave one out"),
        ("[search]\nmax-hits = 1", "o.toml: 'search' is no option of swsearch search"),
        ('config = "o.toml"', "o.toml: 'config' is no option of swsearch search"),
        ("max-hits 3", "o.toml: not TOML: Expected '=' after a key"),
        ('missing = ["include-ids"]', "o.toml: missing: the search had --include-ids, which is not"),
        ("missing = 1", "o.toml: missing: got 1, expected a list of names of options"),
        ("device = 1979-05-27", "o.toml: device: got a date"),
        ('{"hits": []}', "o.toml: got JSON without 'options'"),
        ("{", "o.toml: got JSON without 'options'"),
        ("<!DOCTYPE html><p>", "o.toml: got an HTML page without options, expected a report of swsearch search, or"),
        ("a = " + "[" * 3000, "o.toml: not TOML"),
        ("\0", "o.toml: not TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_by_its_name_and_key(
    search: Callable[..., str], text: str, told: str
) -> None:
    Path("o.toml").write_text(text)
    error = search("--config", "o.toml", "-o", "out.tsv", code=1)
    assert error.startswith(told)
    assert "\n" not in error
    assert not Path("out.tsv").exists()


def test_a_file_of_options_that_cannot_be_read_or_would_be_lost(search: Callable[..., str]) -> None:
    assert "--config nowhere: No such file" in search("--config", "nowhere", code=1)
    assert "--config .: Is a directory" in search("--config", ".", code=1)
    Path("o.toml").write_bytes(b"\xff")
    assert "is no text in UTF-8" in search("--config", "o.toml", code=1)
    Path("o.toml").write_text("max-hits = 1\n")
    assert "is one of the inputs" in search("--config", "o.toml", "--save-config", "o.toml", code=6)
    assert "expected different files" in search("-o", "x.toml", "--save-config", "x.toml", code=1)
    assert "the folder nowhere does not exist" in search("--save-config", "nowhere/x.toml", code=6)


def test_what_python_asked_for_and_no_file_holds_is_named() -> None:
    scoring = swsearch.Scoring({(a, b): 5 if a == b else -4 for a in AMINO_ACIDS for b in AMINO_ACIDS}, 9, 2)
    asked = {"include_ids": ["subject_1"], "scoring": scoring}
    with swsearch.search(SEQUENCE, [SEQUENCE], engine="cpu", **asked) as results:
        (found,) = results
    assert found.run is not None
    assert found.run.settings["missing"] == ["matrix", "include-ids"]
    assert settings_in(options_as_toml(found.run), "") == found.run.settings
    stated = json.loads(json.dumps(found.run.settings))
    assert stated["gap-open"] == 9
