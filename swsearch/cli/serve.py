"""``swsearch serve``: parse, check, open the databases, serve until a signal comes."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swsearch.cli import memory_watch, signals
from swsearch.cli.console import checked_threads, command, parse_size, say
from swsearch.cli.numbers import real, whole
from swsearch.cli.options import (
    OUTPUT,
    RUN,
    DeviceOption,
    EngineName,
    EngineOption,
    GpuMemoryOption,
    ThreadsOption,
    VerboseOption,
)
from swsearch.cli.warm_up import warm_up_gpu
from swsearch.errors import InputError, OptionError

if TYPE_CHECKING:
    from swsearch.server.house import House
    from swsearch.server.serving import LabServer

LISTENING, LIMITS = "Where it listens, and who may ask", "Limits: what is more is refused, with the reason"

ARENAS, MAPPED_ALONE, KEPT_FREE = 2, 4 << 20, 64 << 20
"""Of glibc's memory: arenas for all threads, from how many bytes on a block has pages of its own, and bytes that are
kept when they are free. With an arena for each thread a server held twice as much under mixed load. With pages of its
own for each block from 256 KiB on, it waited for them: the median search of 20,000 proteins took 59 to 67 ms on two
cores, in turns with 54 ms with these (benchmarks/speed/server.py, 2026-11-23)."""

NEEDED = ("fastapi", "uvicorn", "jinja2", "python_multipart", "prometheus_client")
"""Modules of the extra."""


OWN_PATHS = ("api", "blast", "jobs", "search", "static", "examples")
"""Beginnings of the server's own paths: a proxy's that begins so could not be told from them."""


def _limit(least: int, most: int, metavar: str, text: str) -> Any:
    """Make an option for a limit."""
    parser = whole(f"a whole number from {least:,} to {most:,}", least, most)
    return typer.Option(parser=parser, metavar=metavar, help=text, rich_help_panel=LIMITS)


@command
def serve_command(
    databases: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATABASE...",
            help="Databases, or manifests of such in volumes; each goes by its file's name without the extension.",
        ),
    ],
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Address to listen on; 0.0.0.0 is all of this machine's, for which --token-file is advised.",
            rich_help_panel=LISTENING,
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            parser=whole("a whole number from 0 to 65,535", 0, 65535),
            metavar="N",
            help="Port; 0 takes one that is free.",
            rich_help_panel=LISTENING,
        ),
    ] = 8080,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Let in only who brings a token of this file, one a line, read at the start.",
            show_default="all are let in",
            rich_help_panel=LISTENING,
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Name that the server may be asked for under, beside addresses and localhost, such as blast.lab.org "
            "or *.lab.org; again for more.",
            show_default="none",
            rich_help_panel=LISTENING,
        ),
    ] = None,
    root_path: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="What stands before all paths where a proxy serves them, such as /swsearch.",
            show_default="none",
            rich_help_panel=LISTENING,
        ),
    ] = "",
    forwarded_allow_ips: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS,...",
            help="Proxies whose X-Forwarded-For and X-Forwarded-Proto are believed: addresses or networks.",
            show_default="none",
            rich_help_panel=LISTENING,
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="A folder where jobs and their results are kept, for one server at a time.",
            show_default="$XDG_STATE_HOME/swsearch/server",
            rich_help_panel=RUN,
        ),
    ] = None,
    engine: EngineOption = EngineName.auto,
    device: DeviceOption = None,
    gpu_memory: GpuMemoryOption = None,
    threads: ThreadsOption = None,
    workers: Annotated[
        int,
        typer.Option(
            parser=whole("a whole number from 1 to 1,000", 1, 1000),
            metavar="N",
            help="Jobs that run at a time; those that run together are scored together.",
            rich_help_panel=RUN,
        ),
    ] = 8,
    max_queued: Annotated[int, _limit(1, 10**9, "N", "Most jobs that wait or run.")] = 1000,
    max_client_jobs: Annotated[int, _limit(1, 10**9, "N", "Most of them of one token or address.")] = 100,
    max_residues: Annotated[int, _limit(1, 10**15, "RESIDUES", "Most query residues of a job.")] = 10_000_000,
    max_hits: Annotated[int, _limit(1, 10**9, "N", "Most hits of a query that a job may ask for.")] = 5000,
    max_body: Annotated[
        str, typer.Option(metavar="SIZE", help="Most bytes of a request.", rich_help_panel=LIMITS)
    ] = "64M",
    time_limit: Annotated[
        float,
        typer.Option(
            parser=real("a number of seconds > 0, such as 3600"),
            metavar="SECONDS",
            help="That a job may run.",
            rich_help_panel=LIMITS,
        ),
    ] = 3600.0,
    keep_days: Annotated[
        float,
        typer.Option(
            parser=real("a number of days > 0, such as 7"),
            metavar="DAYS",
            help="That a job is kept after its end.",
            rich_help_panel=LIMITS,
        ),
    ] = 7.0,
    max_connections: Annotated[int, _limit(1, 10**6, "N", "Most connections at a time.")] = 1000,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print warnings and errors alone.", rich_help_panel=OUTPUT)
    ] = False,
    verbose: VerboseOption = False,
) -> None:
    """Serve DATABASEs: a page to search from, an HTTP API, and BLAST's URL API; until Ctrl-C or SIGTERM."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise InputError(f"swsearch serve needs {', '.join(missing)}; pip install 'swsearch[server]'")
    memory_watch.few_arenas(ARENAS, MAPPED_ALONE, KEPT_FREE)
    if engine in (EngineName.auto, EngineName.gpu):
        warm_up_gpu(device)
    from swsearch.server.auth import check_host_name, check_networks, read_tokens
    from swsearch.server.serving import bound
    from swsearch.server.settings import ServerLimits, ServerSettings

    _check_positive(time_limit=time_limit, keep_days=keep_days)
    limits = ServerLimits(
        max_queued, max_client_jobs, max_residues, max_hits, parse_size(max_body, "--max-body"), time_limit,
        keep_days, max_connections,
    )  # fmt: skip
    tokens, doubt = read_tokens(token_file) if token_file is not None else (frozenset[str](), "")
    proxies = check_networks(forwarded_allow_ips) if forwarded_allow_ips is not None else []
    hosts = [check_host_name(name) for name in allow_host or ()]
    settings = ServerSettings(
        tuple(databases), folder or _usual_folder(), limits, engine.value, checked_threads(threads, quiet), device,
        None if gpu_memory is None else parse_size(gpu_memory, "--gpu-memory"), workers, tokens,
        _checked_root(root_path), (host, *hosts),
    )  # fmt: skip
    if doubt:
        say(f"swsearch: warning: {doubt}")
    with bound(host, port) as made:
        from swsearch.server.house import House

        with House(settings, log=_log) as house:
            server = _server(house, made, proxies, verbose)
            signals.pass_on(server.end)
            server.listen()
            if not quiet:
                _say_what_is_served(house, server.url)
            server.serve_until_ended()
            if not quiet:
                say("swsearch: ending; jobs that run go on at the next start")


def _server(house: House, made: object, proxies: list[str], verbose: bool) -> LabServer:
    import socket

    from swsearch.server.app import create_app
    from swsearch.server.connections import Connections
    from swsearch.server.serving import LabServer, connections_for, is_for_others

    assert isinstance(made, socket.socket)
    settings = house.settings
    most = connections_for(settings.limits.connections)
    if most < settings.limits.connections:
        say(f"swsearch: warning: {most:,} connections at a time: a process may open no more files here (ulimit -n)")
    if is_for_others(made) and not settings.tokens:
        say(
            "swsearch: warning: whoever reaches this machine can search here, without a token and unencrypted; "
            "--token-file asks for one, a proxy encrypts"
        )
    app = create_app(house, log=_log, access_log=_log if verbose else None)
    return LabServer(app, made, Connections(most), forwarded=proxies, log=_log)


def _log(text: str) -> None:
    say(f"swsearch: {text}")


def _say_what_is_served(house: House, url: str) -> None:
    for name, place in house.places.items():
        database = place.database
        say(
            f"swsearch: {name}: {database.n_subjects:,} subjects, {database.n_residues:,} residues, "
            f"engine {place.engine.description}"
        )
    say(f"swsearch: listening on {url}")


def _check_positive(**given: float) -> None:
    for name, value in given.items():
        if not value > 0:
            raise OptionError(f"--{name.replace('_', '-')}", value, "a number > 0")


def _checked_root(given: str) -> str:
    import re

    root = given.rstrip("/")
    if not re.fullmatch(r"(/[A-Za-z0-9._~-]+)*", root):
        raise OptionError("--root-path", given, "a path such as /swsearch")
    if root.partition("/")[2].partition("/")[0] in OWN_PATHS:
        raise OptionError("--root-path", given, f"one that does not begin with {', '.join(OWN_PATHS)}")
    return root


def _usual_folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return base / "swsearch" / "server"
