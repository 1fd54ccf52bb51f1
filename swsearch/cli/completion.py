"""``swsearch completion``: the scripts by which shells complete words."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from swsearch.cli.commands import COMPLETE
from swsearch.cli.console import command


@command
def completion_command(
    shell: Annotated[
        Literal["bash", "zsh", "fish"], typer.Argument(metavar="bash|zsh|fish", help="The shell that is to complete.")
    ],
) -> None:
    """Print the script by which a shell completes commands, options and their values.

    For bash: eval "$(swsearch completion bash)" in ~/.bashrc. For zsh: the same with zsh in ~/.zshrc, below compinit.
    For fish: swsearch completion fish > ~/.config/fish/completions/swsearch.fish.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    typer.echo(get_completion_script(prog_name="swsearch", complete_var=COMPLETE, shell=shell))
