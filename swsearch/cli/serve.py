"""``swsearch serve``: parse, check, open the databases, serve until a signal comes."""

# no postponed annotations: the kinds of the options follow from them
import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from swsearch.cli import memory_watch, signals
from swsearch.cli.console import checked_threads, command, say
from swsearch.cli.parameters import command_rows, takes
from swsearch.cli.tables import CommandTable, EngineTable, FileName, MessageTable
from swsearch.cli.warm_up import warm_up_gpu
from swsearch.errors import InputError, OptionError
from swsearch.options.kinds import Integer, Repeated
from swsearch.options.row import Heading, option
from swsearch.server.settings import ServerLimits, ServerSettings

if TYPE_CHECKING:
    from swsearch.server.house import House
    from swsearch.server.serving import LabServer

ARENAS, MAPPED_ALONE, KEPT_FREE = 2, 4 << 20, 64 << 20
"""Of glibc's memory: arenas for all threads, from how many bytes on a block has pages of its own, and bytes that are
kept when they are free. With an arena for each thread a server held twice as much under mixed load. With pages of its
own for each block from 256 KiB on, it waited for them: the median search of 20,000 proteins took 59 to 67 ms on two
cores, in turns with 54 ms with these (benchmarks/speed/server.py, 2026-11-23)."""

NEEDED = ("fastapi", "uvicorn", "jinja2", "python_multipart", "prometheus_client")
"""Modules of the extra."""


OWN_PATHS = ("api", "blast", "jobs", "search", "static", "examples")
"""Beginnings of the server's own paths: a proxy's that begins so could not be told from them."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ServeTable(CommandTable):
    """Where a server listens, and where its jobs are."""

    HEADING: ClassVar = Heading.LISTENING

    host: str = option(
        "127.0.0.1",
        "Address to listen on. Use --token-file with 0.0.0.0, which is every address of this machine.",
        metavar="ADDRESS",
    )
    port: int = option(8080, "Port; 0 chooses a free one.", Integer(0, 65535))
    token_file: str | None = option(
        None,
        "Require one of the tokens in this file, one per line. The file is read at the start.",
        FileName(),
        unset="no token required",
    )
    allow_host: tuple[str, ...] = option(
        (),
        "Host name that requests may use besides addresses and localhost, e.g. blast.lab.org or *.lab.org; repeat "
        "for several.",
        Repeated(),
        unset="none",
        metavar="NAME",
    )
    root_path: str = option("", "Path prefix behind a proxy, e.g. /swsearch.", unset="none", metavar="PATH")
    forwarded_allow_ips: str | None = option(
        None,
        "Proxies whose X-Forwarded-For and X-Forwarded-Proto headers are trusted: addresses or networks.",
        unset="none",
        metavar="ADDRESS,...",
    )
    folder: str | None = option(
        None,
        "Folder for jobs and their results, for one server at a time.",
        unset="$XDG_STATE_HOME/swsearch/server",
        metavar="PATH",
        heading=Heading.RUNNING,
    )
    workers: int = option(
        8,
        "Maximum number of jobs at a time. Concurrent jobs are scored together.",
        Integer(1, 1000),
        heading=Heading.RUNNING,
    )


@command
@takes(
    command_rows(
        ServeTable, EngineTable, ServerLimits, MessageTable,
        names="host port token_file allow_host root_path forwarded_allow_ips folder engine device gpu_memory threads "
        "workers max_queued max_client_jobs max_residues max_hits max_body time_limit keep_days max_connections "
        "quiet verbose",
        quiet={"help": "Print only warnings and errors."},
    )
)  # fmt: skip
def serve_command(
    databases: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATABASE...",
            help="Databases or volume manifests; each is named after its file, without the extension.",
        ),
    ],
    **given: Any,
) -> None:
    """Serve DATABASEs until Ctrl-C or SIGTERM: a search page, an HTTP API and BLAST's URL API."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise InputError(f"swsearch serve needs {', '.join(missing)}; pip install 'swsearch[server]'")
    asked, engine, messages = ServeTable.of(given), EngineTable.of(given), MessageTable.of(given)
    memory_watch.few_arenas(ARENAS, MAPPED_ALONE, KEPT_FREE)
    if engine.engine in ("auto", "gpu"):
        warm_up_gpu(engine.device)
    from swsearch.server.auth import check_host_name, check_networks, read_tokens
    from swsearch.server.serving import bound

    limits = ServerLimits.of(given)
    tokens, doubt = frozenset[str](), ""
    if asked.token_file is not None:
        tokens, doubt = read_tokens(Path(asked.token_file))
    proxies = check_networks(asked.forwarded_allow_ips) if asked.forwarded_allow_ips is not None else []
    hosts = [check_host_name(name) for name in asked.allow_host]
    settings = ServerSettings(
        tuple(databases), Path(asked.folder) if asked.folder else _usual_folder(), limits, engine.engine,
        checked_threads(engine.threads, messages.quiet), engine.device, engine.gpu_memory, asked.workers, tokens,
        _checked_root(asked.root_path), (asked.host, *hosts),
    )  # fmt: skip
    if doubt:
        say(f"swsearch: warning: {doubt}")
    with bound(asked.host, asked.port) as made:
        from swsearch.server.house import House

        with House(settings, log=_log) as house:
            server = _server(house, made, proxies, messages.verbose)
            signals.pass_on(server.end)
            server.listen()
            if not messages.quiet:
                _say_what_is_served(house, server.url)
            server.serve_until_ended()
            if not messages.quiet:
                say("swsearch: ending; jobs that run go on at the next start")


def _server(house: "House", made: object, proxies: list[str], verbose: bool) -> "LabServer":
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


def _say_what_is_served(house: "House", url: str) -> None:
    for name, place in house.places.items():
        database = place.database
        kinds = ("records of DNA", "nucleotides") if place.is_dna else ("subjects", "residues")
        say(
            f"swsearch: {name}: {database.n_subjects:,} {kinds[0]}, {database.n_residues:,} {kinds[1]}, "
            f"engine {place.engine.description}"
        )
    say(f"swsearch: listening on {url}")


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
