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
    assert "sp|P05093|CP17A_HUMAN sp|P05093|CP17A_HUMAN 2648" in out
    assert "(2, 3183)" in out
    assert "sp|P09643" in out  # the alignment


def test_the_commands_use_options_that_exist():
    lines = [line.split("#")[0].strip() for line in block_after("## Common tasks").splitlines()]
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
    assert check_sections(README, "README.md") > 8


def test_the_table_of_sensitivity_stands_in_the_results():
    table = re.search(r"^\| Program .*?\n\n", README, re.DOTALL | re.MULTILINE)[0]
    unknown, count = unknown_numbers(table.replace("MMseqs2", ""), ["sensitivity"])
    assert count > 6
    assert not unknown


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 125
