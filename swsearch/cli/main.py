"""The command line: parse, call, print; the work is done elsewhere."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer

from swsearch.cli.align import align_command
from swsearch.cli.bench import bench_app
from swsearch.cli.console import command, finish, terminate
from swsearch.cli.database import db_app
from swsearch.cli.search import search_command
from swsearch.cli.usage import CommandGroup, OneCommand
from swsearch.errors import SwsearchError

app = typer.Typer(
    name="swsearch",
    cls=CommandGroup,
    help="Search protein databases exactly: Smith-Waterman with E-values and alignments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(db_app, name="db")
app.add_typer(bench_app, name="bench")
app.command("align", cls=OneCommand)(align_command)
app.command("search", cls=OneCommand)(search_command)


def main() -> None:
    """Run the command line and exit with BLAST+'s codes."""
    signal.signal(signal.SIGTERM, terminate)  # so that temporary files are removed
    try:
        app()
    except SystemExit as end:
        # the parser ends with 2 for a bad option, which is BLAST's code for a bad database
        sys.exit(1 if end.code == 2 else end.code)
    except SwsearchError as error:
        sys.exit(finish(error))


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


@app.command("doctor", cls=OneCommand)
@command
def doctor_command() -> None:
    """Say which engine would run here, and why not a faster one."""
    from swsearch.cli.doctor import examine

    healthy = True
    for line in examine():
        healthy = healthy and line.good
        typer.echo(f"{line.topic:<12} {line.text}")
    if not healthy:
        raise typer.Exit(3)
