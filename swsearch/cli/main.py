"""The command line's entry point.

Modules of commands are imported on use. The GPU warm-up starts here: the CUDA driver needs 0.2 s, in which Python can
import other modules.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import threading
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Annotated, Any, Literal

import typer
import typer.main

from swsearch import output_files
from swsearch.cli import memory_limit, signals
from swsearch.cli.argument_checks import CheckedCommand, CommandGroup
from swsearch.cli.console import Interrupted, PipeClosed, command, print_error, to_cli_error
from swsearch.cuda_package import chosen_package
from swsearch.errors import SwsearchError

COMMANDS = {
    "align": "swsearch.cli.align:align_command",
    "search": "swsearch.cli.search:search_command",
    "msa": "swsearch.cli.msa:msa_command",
    "serve": "swsearch.cli.serve:serve_command",
    "doctor": "swsearch.cli.doctor:doctor_command",
    "completion": "swsearch.cli.main:completion_command",
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
        command = getattr(import_module(module), name)
        collect_garbage()
        if isinstance(command, typer.Typer):
            return typer.main.get_group(command)
        single = typer.Typer(add_completion=False)
        single.command(cmd_name, cls=CheckedCommand)(command)
        return typer.main.get_command(single)


def collect_garbage() -> None:
    """Collect garbage from now on, without what modules made; see `swsearch.__main__`."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


app = typer.Typer(
    name="swsearch",
    cls=LazyGroup,
    help="Search protein databases exactly: Smith-Waterman with E-values and alignments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_requested: bool) -> None:
    if is_requested:
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


def main(start: Callable[[], object] | None = None) -> int:
    """Run the command line, or another parser, and return the exit code, one of BLAST+'s."""
    if memory_limit.is_watched():
        output_files.temporary_file_listeners.append(memory_limit.report_file)
    try:
        try:
            code = _run(start or partial(app, prog_name="swsearch"))  # however it was started
        finally:
            signals.only_note()
    except KeyboardInterrupt:  # of the command, or of the moment before signals were only noted
        signals.only_note()
        code = print_error(Interrupted())
    finally:
        output_files.remove_unfinished()
        signals.stop_listening()
    number = signals.received()
    if number is not None:
        return 128 + number
    error = signals.flush_stdout()
    return code if error is None or code else _end_with_error(error)


def _run(start: Callable[[], object]) -> int:
    if COMPLETE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
    try:
        start()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # the reader of --help has gone, which the parser met itself
            return print_error(PipeClosed())
        # the parser ends with 2 for a bad option, which is BLAST's code for a bad database
        return 1 if end.code == 2 or isinstance(end.code, str) else end.code or 0
    except Exception as error:
        return _end_with_error(error)
    return 0


def _end_with_error(error: Exception) -> int:
    """Print an error that ends a command and return its exit code; raise other exceptions again."""
    meant = to_cli_error(error)
    if not isinstance(meant, SwsearchError):
        raise error
    return print_error(meant)


def warm_up_gpu(device: int | tuple[int, ...] | str | None) -> None:
    """Initialise the driver and open a device in the background, if a package for GPUs is installed.

    Of several devices, the first is opened; None opens the only one. An error here occurs again when the GPU engine
    is created, and is reported then.
    """
    if chosen_package():
        with contextlib.suppress(RuntimeError):  # no thread to be had
            first = 0 if isinstance(device, str) else device[0] if isinstance(device, tuple) else device
            threading.Thread(target=_open_device, args=(first,), name="swsearch-cuda", daemon=True).start()


def _open_device(device: int | None) -> None:
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return
    count, handle, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return
    if device is None and count.value > 1:
        return
    # the context is the process's own, shared with PyCUDA or cuda-bindings, and ends with the process
    if not cuda.cuDeviceGet(ctypes.byref(handle), device or 0):
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)


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
