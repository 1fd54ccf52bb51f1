"""The commands by name, and the modules that they are in: a command that runs imports no other.

To import all of them, and to describe all of their options to the parser, takes 35 ms; `search` alone takes 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from swsearch.cli.console import command
from swsearch.cli.parameters import command_rows, takes
from swsearch.cli.tables import RunTable
from swsearch.cli.usage import CommandGroup, OneCommand
from swsearch.errors import OptionError

COMMANDS = {
    "align": "swsearch.cli.align:align_command",
    "search": "swsearch.cli.search:search_command",
    "msa": "swsearch.cli.msa:msa_command",
    "serve": "swsearch.cli.serve:serve_command",
    "doctor": "swsearch.cli.commands:doctor_command",
    "completion": "swsearch.cli.completion:completion_command",
}
"""Where the function of each command is."""

VARIABLE = "_SWSEARCH_COMPLETE"
"""Set by a shell that asks for words to complete."""

COMMAND_GROUPS = {"db": "swsearch.cli.database:db_app", "bench": "swsearch.cli.bench:bench_app"}
"""Where the application of each command with subcommands is."""


def application(words: Sequence[str] = ()) -> typer.Typer:
    """Make the command line, or as much of it as some words need.

    Parameters
    ----------
    words : sequence of str, optional
        What follows the program's name. If the first is a command, no other is made; else, as for ``--help`` or for a
        misspelt one, all are.
    """
    app = typer.Typer(
        name="swsearch",
        cls=CommandGroup,
        help="Search protein databases exactly: Smith-Waterman with E-values and alignments.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    chosen = [name for name in (*COMMAND_GROUPS, *COMMANDS) if name in words[:1]] or [*COMMAND_GROUPS, *COMMANDS]
    for name in chosen:
        if name in COMMAND_GROUPS:
            app.add_typer(_loaded(COMMAND_GROUPS[name]), name=name)
        else:
            app.command(name, cls=OneCommand)(_loaded(COMMANDS[name]))
    return app


def _loaded(place: str) -> typer.Typer:
    module, _, name = place.partition(":")
    loaded: typer.Typer = getattr(import_module(module), name)
    return loaded


def _show_version(wanted: bool) -> None:
    if wanted:
        from swsearch.version import version

        typer.echo(f"swsearch {version()}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@command
@takes(
    command_rows(
        RunTable,
        names="cluster",
        cluster={
            "help": "Examine the workers of a Dask cluster (scheduler address), e.g. tcp://host:8786.",
            "unset": "this machine",
            "metavar": "ADDRESS",
            "heading": None,
        },
    )
)
def doctor_command(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="DATABASE", help="With --cluster: a database that the workers must be able to read."),
    ] = None,
    **given: Any,
) -> None:
    """Report which engine runs here and why not a faster one, or what the workers of a cluster can do."""
    from swsearch.cli.doctor import examine
    from swsearch.cli.doctor_cluster import examine_cluster

    cluster = RunTable.of(given).cluster
    if cluster is None and path is not None:
        raise OptionError("DATABASE", str(path), "--cluster beside it", "swsearch db verify checks a database here")
    healthy = True
    for line in examine() if cluster is None else examine_cluster(cluster, path):
        healthy = healthy and line.good
        typer.echo(f"{line.topic:<12} {line.text}")
    if not healthy:
        raise typer.Exit(3)
