"""What a server is told when it is started."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ServerLimits:
    """What a server takes, and how long it keeps it.

    Parameters
    ----------
    queued : int
        Jobs that wait or run.
    client_jobs : int
        Those of one token or, without, of one address.
    residues : int
        Query residues of a job.
    hits : int
        Hits of a query that a job may ask for.
    body : int
        Bytes of a request.
    seconds : float
        That a job may run.
    days : float
        That a job is kept after its end.
    connections : int
        At a time.
    queries : int
        Queries of a job: many short ones take more memory than their residues say.
    """

    queued: int = 1000
    client_jobs: int = 100
    residues: int = 10_000_000
    hits: int = 5000
    body: int = 64 << 20
    seconds: float = 3600.0
    days: float = 7.0
    connections: int = 1000
    queries: int = 100_000


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
        Jobs that run at a time; those that run together are scored together.
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
