"""What a server is told when it is started."""

# no postponed annotations: the kinds of the options follow from them
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from swsearch.options.kinds import ByteSize, Integer, Real
from swsearch.options.row import ONLY_COMMAND, Heading, OptionTable, option


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ServerLimits(OptionTable):
    """What a server takes, and how long it keeps it."""

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
    """Queries of a job: many short ones take more memory than their residues say."""


@dataclass(frozen=True)
class ServerSettings:
    """How a server runs.

    Parameters
    ----------
    databases : tuple of Path
        Database files and manifests; each goes by its file's name without the extension.
    folder : Path
        Where jobs are kept.
    limits : ServerLimits
        What is taken.
    engine : str
        Name of what scores.
    threads : int or None
        Of the engine, and for alignments.
    device : int, sequence of int, "all" or None
        Which GPU.
    gpu_memory : int or None
        Bytes.
    workers : int
        Maximum number of jobs at a time. Concurrent jobs are scored together.
    tokens : frozenset of str
        Of which a request must bring one; empty lets everybody in.
    root_path : str
        What stands before all paths where a proxy serves them, such as ``/swsearch``.
    hosts : tuple of str
        Names that the server may be asked for under, beside its own address and localhost.
    """

    databases: tuple[Path, ...]
    folder: Path
    limits: ServerLimits = field(default_factory=ServerLimits)
    engine: str = "auto"
    threads: int | None = None
    device: Any = None
    gpu_memory: int | None = None
    workers: int = 8
    tokens: frozenset[str] = frozenset()
    root_path: str = ""
    hosts: tuple[str, ...] = ()
