"""The README says what is: examples run, output is what comes out, numbers stand in benchmarks/results."""

import re
import shlex

from conftest import ROOT

from support import command_line
from support.results_numbers import check_sections, unknown_numbers

HELP = ROOT / "tests" / "golden" / "help"
"""Folder with the --help output of each command, which tests/test_golden.py compares."""

README = (ROOT / "README.md").read_text(encoding="utf-8")


def block_after(marker):
    """Return the first fenced block after a marker."""
    return re.search(re.escape(marker) + r".*?```\w*\n(.*?)```", README, re.DOTALL)[1]


def run(line):
    done = command_line.run(*shlex.split(line)[1:], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_quick_starts_output_is_what_it_prints():
    command = block_after("<!-- ci:install -->").strip().splitlines()[-1]
    shown = block_after("It prints tab-separated hits").splitlines()
    assert shown[-1] == "..."
    assert len(shown) > 5
    assert run(command).splitlines()[: len(shown) - 1] == shown[:-1]


def test_the_python_example_runs(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    exec(block_after("From Python:"), {})
    out = capsys.readouterr().out
    assert "P04637 P04637 2121" in out
    assert "(2, 3575)" in out
    assert "P56423" in out  # the alignment


def test_the_commands_use_options_that_exist():
    lines = [line.split("#")[0].strip() for line in block_after("## Use it").splitlines()]
    assert len(lines) > 6
    for line in lines:
        words = shlex.split(line)
        command = words[1:3] if words[1] == "db" else words[1:2]
        if command == ["bench"]:
            command = words[1:3] if words[2] in ("align", "study") else ["bench", "search"]
        options = [word for word in words if word.startswith("--")]
        for name in command[-1].split("|"):
            text = (HELP / f"{'-'.join([*command[:-1], name])}.txt").read_text(encoding="utf-8")
            assert all(option in text for option in options), line


def test_every_measured_number_stands_in_the_results_that_its_section_links_to():
    assert check_sections(README.replace(what_exact_buys(), ""), "README.md") > 12


def what_exact_buys():
    return re.search(r"\*\*What does exact buy\?\*\*(.*?)\n\n", README, re.DOTALL)[1]


def test_what_exact_buys_stands_in_the_results():
    said = re.sub(r"\((?:benchmarks|docs)/[^)]*\)|E <= \d+|MMseqs2", "", what_exact_buys())
    unknown, count = unknown_numbers(said, ["sensitivity", "sensitivity_default", "exactness", "iterated"])
    assert count > 6
    assert not unknown
