"""``swsearch serve``: checks settings, opens databases, serves until a signal."""

# no postponed annotations: the kinds of the options follow from them
import ipaddress
import os
import re
import stat
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from swsearch.cli import memory_limit, signals
from swsearch.cli.console import limit_threads, print_message, size_of
from swsearch.cli.main import warm_up_gpu
from swsearch.cli.parameters import takes
from swsearch.cli.tables import CommandTable, EngineTable, FileName, MessageTable
from swsearch.errors import InputError, OptionError
from swsearch.options.kinds import Integer, Repeated
from swsearch.options.row import Heading, option
from swsearch.server.settings import ServerLimits, ServerSettings

if TYPE_CHECKING:
    import socket

    from swsearch.server.jobs import Jobs
    from swsearch.server.run import HttpServer

ARENAS, MAPPED_ALONE, KEPT_FREE = 2, 4 << 20, 64 << 20
"""Limits of glibc's memory: number of arenas, bytes from which a block is mapped by itself, and free bytes that
are kept. With an arena for each thread a server held twice as much under mixed load. With own mappings from 256
KiB on, the median search of 20,000 proteins took 59 to 67 ms on two cores, instead of 54 ms
(benchmarks/speed/server.py, 2026-11-23).
"""

NEEDED = ("fastapi", "uvicorn", "jinja2", "python_multipart", "prometheus_client")
"""Modules of the extra."""


MIN_TOKEN = 16
"""Characters of a token: fewer can be guessed."""

_TOKEN = re.compile(r"[A-Za-z0-9._~-]+")
"""Tokens that stand in a header and in a path as they are."""

OWN_PATHS = ("api", "blast", "jobs", "search", "static", "examples", "ticket", "tickets", "result", "queue")
"""Beginnings of the server's own paths: a proxy's that begins so could not be told from them."""


class ServeTable(CommandTable):
    """Address, access and folder of a server."""

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


@takes(
    ServeTable, EngineTable, ServerLimits, MessageTable,
    names="host port token_file allow_host root_path forwarded_allow_ips folder engine device gpu_memory threads "
    "workers max_queued max_client_jobs max_residues max_hits max_body time_limit keep_days max_connections "
    "quiet verbose",
    quiet={"help": "Print only warnings and errors."},
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
    """Serve DATABASEs until Ctrl-C or SIGTERM: a search page, an HTTP API, BLAST's URL API and an MSA API."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise InputError(f"swsearch serve needs {', '.join(missing)}; pip install 'swsearch[server]'")
    options, engine, messages = (
        ServeTable.from_values(given),
        EngineTable.from_values(given),
        MessageTable.from_values(given),
    )
    memory_limit.limit_malloc_arenas(ARENAS, MAPPED_ALONE, KEPT_FREE)
    if engine.engine in ("auto", "gpu"):
        warm_up_gpu(engine.device)
    from swsearch.server.run import bind, collect_garbage_rarely, is_for_others, logging_to

    limits = ServerLimits.from_values(given)
    file = options.token_file
    tokens, warning = (frozenset[str](), "") if file is None else read_tokens(Path(file))
    proxies = check_networks(options.forwarded_allow_ips) if options.forwarded_allow_ips is not None else []
    hosts = [check_host_name(name) for name in options.allow_host]
    settings = ServerSettings(
        tuple(databases), Path(options.folder) if options.folder else _default_folder(), limits, engine.engine,
        limit_threads(engine.threads, messages.quiet), engine.device, engine.gpu_memory, options.workers, tokens,
        _check_root(options.root_path), (options.host, *hosts),
    )  # fmt: skip
    if warning:
        print_message(f"warning: {warning}")
    with bind(options.host, options.port) as listener, logging_to(print_message, messages.verbose):
        from swsearch.server.jobs import open_jobs

        with open_jobs(settings) as jobs:
            server = _server(jobs, listener, proxies)
            signals.call_on_signal(server.end)
            server.listen()
            if not messages.quiet:
                for name, served in jobs.databases.items():
                    size = size_of(served.database.n_subjects, served.database.n_residues, served.is_dna)
                    print_message(f"{name}: {size}, engine {served.engine.description}")
                print_message(f"listening on {server.url}")
                if is_for_others(listener):
                    print_message("other machines use this machine's address, or a name of --allow-host, in that URL")
            collect_garbage_rarely()
            server.serve_until_ended()
            if not messages.quiet:
                print_message("ending; jobs that run go on at the next start")


def _server(jobs: "Jobs", listener: "socket.socket", proxies: list[str]) -> "HttpServer":
    from swsearch.server.app import create_app
    from swsearch.server.run import Connections, HttpServer, allow_connections, is_for_others

    settings = jobs.settings
    max_connections = allow_connections(settings.limits.connections)
    if max_connections < settings.limits.connections:
        print_message(
            f"warning: {max_connections:,} connections at a time: a process may open no more files here (ulimit -n)"
        )
    if is_for_others(listener) and not settings.tokens:
        print_message(
            "warning: every machine that reaches this one can search here, without a token and unencrypted; "
            "--token-file requires tokens, a proxy encrypts"
        )
    return HttpServer(create_app(jobs), listener, Connections(max_connections), forwarded=proxies)


def _check_root(path: str) -> str:
    root = path.rstrip("/")
    if not re.fullmatch(r"(/[A-Za-z0-9._~-]+)*", root):
        raise OptionError("--root-path", path, "a path such as /swsearch")
    if root.partition("/")[2].partition("/")[0] in OWN_PATHS:
        raise OptionError("--root-path", path, f"one that does not begin with {', '.join(OWN_PATHS)}")
    return root


def _default_folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return base / "swsearch" / "server"


def read_tokens(path: Path) -> tuple[frozenset[str], str]:
    """Read a file of tokens, one per line, with comments after #; return them and a doubt about the file's mode."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise InputError(f"--token-file {path}: cannot be read: {reason}") from None
    tokens = set()
    for number, line in enumerate(lines, 1):
        token = line.strip()
        if not token or token.startswith("#"):
            continue
        if len(token) < MIN_TOKEN or not _TOKEN.fullmatch(token):
            raise InputError(  # it may be a token but for a letter, and is not shown
                f"--token-file {path}: line {number} is no token, expected at least {MIN_TOKEN} letters, digits "
                "and -._~, such as openssl rand -hex 16 prints"
            )
        tokens.add(token)
    if not tokens:
        raise InputError(
            f"--token-file {path}: holds no token, expected one a line; without the option all are let in"
        )
    warning = ""
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        warning = f"--token-file {path}: others on this machine can read it; chmod 600 keeps it to you"
    return frozenset(tokens), warning


def check_host_name(name: str) -> str:
    """Return a value of --allow-host, or raise `OptionError`."""
    if not re.fullmatch(r"\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", name) or len(name) > 253:
        raise OptionError("--allow-host", name, "a host name such as blast.lab.org, *.lab.org, or * for any")
    return name


def check_networks(text: str) -> list[str]:
    """Return the addresses of --forwarded-allow-ips, or raise `OptionError`."""
    networks = [part.strip() for part in text.split(",") if part.strip()]
    for part in networks:
        try:
            ipaddress.ip_network(part)
        except ValueError:
            expected = "addresses or networks with commas between them, such as 127.0.0.1,10.0.0.0/8"
            raise OptionError("--forwarded-allow-ips", part, expected) from None
    return networks
