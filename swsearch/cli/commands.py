"""The command line as one object; each command is imported when it is run or described."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
import typer.main

from swsearch.cli.usage import CommandGroup, OneCommand

COMMANDS = {
    "align": "swsearch.cli.align:align_command",
    "search": "swsearch.cli.search:search_command",
    "msa": "swsearch.cli.msa:msa_command",
    "serve": "swsearch.cli.serve:serve_command",
    "doctor": "swsearch.cli.doctor:doctor_command",
    "completion": "swsearch.cli.completion:completion_command",
    "db": "swsearch.cli.database:db_app",
    "bench": "swsearch.cli.bench:bench_app",
}
"""Module and name of each command: a function, or an application with subcommands."""

COMPLETE = "_SWSEARCH_COMPLETE"
"""Set by a shell that asks for words to complete."""


class LazyGroup(CommandGroup):
    """The commands of `COMMANDS`. To import and describe them all takes 35 ms; ``search`` alone takes 10."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; return None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        found = getattr(import_module(module), name)
        if isinstance(found, typer.Typer):
            return typer.main.get_group(found)
        single = typer.Typer(add_completion=False)
        single.command(cmd_name, cls=OneCommand)(found)
        return typer.main.get_command(single)


app = typer.Typer(
    name="swsearch",
    cls=LazyGroup,
    help="Search protein databases exactly: Smith-Waterman with E-values and alignments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from swsearch.version import version

        typer.echo(f"swsearch {version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass
