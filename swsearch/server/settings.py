"""Settings and limits of a server."""

# no postponed annotations: the kinds of the options follow from them
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from swsearch.options.kinds import ByteSize, Integer, Real
from swsearch.options.row import ONLY_COMMAND, Heading, OptionTable, option


class ServerLimits(OptionTable):
    """Limits of requests, jobs and connections."""

    HEADING: ClassVar = Heading.LIMITS
    INTERFACES: ClassVar = ONLY_COMMAND

    queued: int = option(
        1000, "Maximum number of jobs that wait or run.", Integer(1, 10**9), spellings="--max-queued"
    )
    client_jobs: int = option(
        100, "Maximum number of jobs per token or address.", Integer(1, 10**9), spellings="--max-client-jobs"
    )
    residues: int = option(
        10_000_000,
        "Maximum number of query residues of a job.",
        Integer(1, 10**15),
        metavar="RESIDUES",
        spellings="--max-residues",
    )
    hits: int = option(
        5000, "Maximum number of hits per query that a job may request.", Integer(1, 10**9), spellings="--max-hits"
    )
    body: int = option(64 << 20, "Maximum size of a request.", ByteSize(), spellings="--max-body")
    seconds: float = option(
        3600.0,
        "Maximum run time of a job, in seconds.",
        Real(is_positive=True, expected="a number of seconds > 0, such as 3600"),
        metavar="SECONDS",
        spellings="--time-limit",
    )
    days: float = option(
        7.0,
        "Days to keep a finished job.",
        Real(is_positive=True, expected="a number of days > 0, such as 7"),
        metavar="DAYS",
        spellings="--keep-days",
    )
    connections: int = option(
        1000, "Maximum number of connections at a time.", Integer(1, 10**6), spellings="--max-connections"
    )
    queries: int = 100_000
    """Maximum number of queries of a job: many short queries take more memory than their residues."""


@dataclass(frozen=True)
class ServerSettings:
    """Settings of a server."""

    databases: tuple[Path, ...]
    """Database files and manifests; the name of each is that of its file without the extension."""
    folder: Path
    """Folder of the jobs."""
    limits: ServerLimits = field(default_factory=ServerLimits)
    engine: str = "auto"
    threads: int | None = None
    """Threads of the engine and of alignments."""
    device: Any = None
    """GPUs: a number, a sequence of numbers, "all" or None."""
    gpu_memory: int | None = None
    """Bytes."""
    workers: int = 8
    """Maximum number of jobs at a time. Concurrent jobs are scored together."""
    tokens: frozenset[str] = frozenset()
    """Tokens, of which a request must have one; without tokens, everybody has access."""
    root_path: str = ""
    """Beginning of all paths behind a proxy, e.g. ``/swsearch``."""
    hosts: tuple[str, ...] = ()
    """Names of the server in requests, besides its address and localhost."""
