"""Completion by a shell: the library that parses commands has the scripts of shells, and finds the words.

What is here lets it import only what a line needs: where the command is known, no other.
"""

from __future__ import annotations

import os
import shlex
from typing import Annotated, Literal

import typer

from swsearch.cli.commands import VARIABLE
from swsearch.cli.console import command


def words_to_complete() -> list[str]:
    """Return the words after the program's name that a shell has so far, for `swsearch.cli.commands.application`."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    try:
        return shlex.split(line)[1:]
    except ValueError:  # a quotation mark that is not closed yet
        return line.split()[1:]


def prepare() -> None:
    """Let the library answer shells in its own way."""
    from typer._completion_classes import completion_init

    completion_init()


@command
def completion_command(
    shell: Annotated[
        Literal["bash", "zsh", "fish"],
        typer.Argument(metavar="bash|zsh|fish", help="The shell that is to complete."),
    ],
) -> None:
    """Print the script by which a shell completes commands, options and their values.

    For bash: eval "$(swsearch completion bash)" in ~/.bashrc. For zsh: the same with zsh in ~/.zshrc, below compinit.
    For fish: swsearch completion fish > ~/.config/fish/completions/swsearch.fish.
    """
    from typer._completion_shared import get_completion_script

    typer.echo(get_completion_script(prog_name="swsearch", complete_var=VARIABLE, shell=shell))
