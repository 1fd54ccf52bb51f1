"""The command line: parse, call, print; the work is done elsewhere."""

from __future__ import annotations

import os

from swsearch import output_files
from swsearch.cli import memory_watch, signals, streams
from swsearch.cli.commands import COMPLETE, app
from swsearch.cli.console import Interrupted, PipeClosed, ending_of, finish
from swsearch.errors import SwsearchError


def main() -> int:
    """Run the command line and return the exit code, one of BLAST+'s."""
    if memory_watch.is_watched():
        output_files.watchers.append(memory_watch.tell_of_file)
    try:
        try:
            code = _run()
        finally:
            signals.only_note()
    except KeyboardInterrupt:  # of the command, or of the moment before signals were only noted
        signals.only_note()
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
    if COMPLETE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
    try:
        app(prog_name="swsearch")  # however it was started
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
