"""The command line: parse, call, print; the work is done elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swsearch import output_files
from swsearch.cli import memory_watch, signals, streams
from swsearch.cli.align import align_command
from swsearch.cli.bench import bench_app
from swsearch.cli.console import Interrupted, PipeClosed, command, ending_of, finish
from swsearch.cli.database import db_app
from swsearch.cli.msa import msa_command
from swsearch.cli.search import search_command
from swsearch.cli.serve import serve_command
from swsearch.cli.usage import CommandGroup, OneCommand
from swsearch.errors import OptionError, SwsearchError

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
app.command("msa", cls=OneCommand)(msa_command)
app.command("serve", cls=OneCommand)(serve_command)


def main() -> int:
    """Run the command line and return the exit code, one of BLAST+'s."""
    if memory_watch.is_watched():
        output_files.watchers.append(memory_watch.tell_of_file)
    try:
        code = _run()
    except KeyboardInterrupt:
        code = finish(Interrupted())
    finally:
        output_files.remove_unfinished()
        signals.stop_listening()
    number = signals.received()
    if number is not None:
        return 128 + number
    error = streams.flush_stdout()
    return code if error is None or code else _finished(error)


def _run() -> int:
    try:
        app()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # the reader of --help has gone, which the parser met itself
            return finish(PipeClosed())
        # the parser ends with 2 for a bad option, which is BLAST's code for a bad database
        return 1 if end.code == 2 or isinstance(end.code, str) else end.code or 0
    except Exception as error:
        return _finished(error)
    return 0


def _finished(error: Exception) -> int:
    """Say an error that ends a command and return its exit code; raise what is none."""
    meant = ending_of(error)
    if not isinstance(meant, SwsearchError):
        raise error
    return finish(meant)


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
def doctor_command(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="DATABASE", help="With --cluster: a database that the workers are to read."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Look at the workers of a Dask cluster instead: its scheduler's address, such as tcp://host:8786.",
            show_default="this machine",
        ),
    ] = None,
) -> None:
    """Say which engine would run here, and why not a faster one, or what the workers of a cluster can do."""
    from swsearch.cli.doctor import examine
    from swsearch.cli.doctor_cluster import examine_cluster

    if cluster is None and path is not None:
        raise OptionError("DATABASE", str(path), "--cluster beside it", "swsearch db verify checks a database here")
    healthy = True
    for line in examine() if cluster is None else examine_cluster(cluster, path):
        healthy = healthy and line.good
        typer.echo(f"{line.topic:<12} {line.text}")
    if not healthy:
        raise typer.Exit(3)
