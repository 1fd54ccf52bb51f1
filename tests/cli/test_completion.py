"""Shells complete commands, options and their values by the script that they are given."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from swsearch.cli.main import COMPLETE

BASH = """
source script
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _swsearch_completion swsearch; printf '%s\\n' "${COMPREPLY[@]}"; }
complete -p swsearch
"""


@pytest.fixture
def run(tmp_path: Path):
    """Run a script of a shell that finds a swsearch; returns what it printed, line by line."""
    program = tmp_path / "swsearch"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m swsearch "$@"\n')
    program.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if name != COMPLETE}
    environment = {**kept, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}

    def run(shell: str, text: str, *options: str) -> list[str]:
        asked = [program, "completion", shell]
        made = subprocess.run(asked, capture_output=True, text=True, env=environment, check=True)
        (tmp_path / "script").write_text(made.stdout)
        done = subprocess.run(
            [shell, *options, "-c", text], capture_output=True, text=True, env=environment, cwd=tmp_path, check=True
        )
        assert done.stderr == ""
        return done.stdout.splitlines()

    return run


def test_bash_completes_by_the_script(run) -> None:
    lines = run(
        "bash", BASH + "try swsearch sea; try swsearch search q.fasta d.h5 --mode ''; try swsearch search q.f"
    )
    assert lines[0] == "complete -o default -F _swsearch_completion swsearch"  # files where there is nothing else
    assert lines[1:] == ["search", "local", "global", "semiglobal", ""]


@pytest.mark.exhaustive
def test_bash_completes_commands_options_and_values_of_all_kinds(run) -> None:
    tries = (
        "swsearch db ve",
        "swsearch search --ma",
        "swsearch search --matrix PAM3",
        "swsearch search --outfmt sto",
    )
    lines = run("bash", BASH + "\n".join(f"try {each}" for each in tries))[1:]
    assert lines[0] == "verify"
    assert {"--matrix", "--max-hits", "--max-alignments"} < set(lines[1:-3])
    assert lines[-3:] == ["PAM30", "stockholm", "sto"]


@pytest.mark.exhaustive
@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not there")
def test_fish_completes_by_the_script(run) -> None:
    lines = run("fish", "source script; complete -C 'swsearch search q.fasta d.h5 --mode '")
    assert [line.split("\t")[0] for line in lines] == ["global", "local", "semiglobal"]


@pytest.mark.exhaustive
@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not there")
def test_zsh_takes_the_script(run) -> None:
    asked = f"_TYPER_COMPLETE_ARGS='swsearch db ve' {COMPLETE}=complete_zsh swsearch"
    lines = run("zsh", f"autoload -Uz compinit; compinit -u; source script; echo $_comps[swsearch]; {asked}", "-f")
    assert lines[0] == "_swsearch_completion"
    assert "verify" in lines[1]
