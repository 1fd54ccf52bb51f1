"""What a run was made from and where: checksums of what went in, and what may differ between runs of equal output."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swsearch.db import Database


@dataclass(frozen=True)
class Checksum:
    """A file that went into a run.

    Parameters
    ----------
    what : str
        Its part in the run.
    path : str
        Its name, as it was given.
    sha256 : str
        Lower-case hexadecimal.
    """

    what: str
    path: str
    sha256: str


@dataclass(frozen=True)
class Execution:
    """What may differ between two runs that find the same.

    Parameters
    ----------
    engine : str
        What scored.
    command : str
        The command line.
    begun : datetime
        With its time zone.
    """

    engine: str
    command: str
    begun: datetime

    def seconds(self) -> float:
        """Return the seconds since it began."""
        return (datetime.now(UTC) - self.begun).total_seconds()


def checksums(queries: str, database: Database) -> tuple[Checksum, ...]:
    """Return the checksums of the query file, the database file and the FASTA files that this was built from.

    Parameters
    ----------
    queries : str
        Path of the query file; what cannot be read twice, such as stdin, has no checksum.
    database : Database
        Open. Its own checksum (of all but its first 512 bytes, as ``db verify`` checks it) and those of its sources
        are the ones that were recorded when it was built.
    """
    from swsearch.db.format import is_database, read_user_block

    found: list[Checksum] = []
    if Path(queries).is_file():
        with Path(queries).open("rb") as file:
            found.append(Checksum("queries", queries, hashlib.file_digest(file, "sha256").hexdigest()))
    name = database.name  # where it was made in memory: that of a FASTA file, or no file's
    block = read_user_block(name) if Path(name).is_file() and is_database(name) else None
    if block is not None and block.sha256:
        found.append(Checksum("database", name, block.sha256))
    sources = (source for source in database.sources() if source.get("sha256"))
    found += [Checksum("built from", source["path"], source["sha256"]) for source in sources]
    return tuple(found)
