"""A job as everybody sees it: what was asked for, and what has become of it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Literal, get_args

from swsearch.pipeline.description import PROGRAM_NAMES
from swsearch.run_info import Program

JobState = Literal["queued", "running", "done", "failed", "cancelled"]
"""queued, running, then one of the others, which is the last."""

JOB_STATES: tuple[JobState, ...] = get_args(JobState)

ENDED: tuple[JobState, ...] = ("done", "failed", "cancelled")

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Of identifiers; none that is taken for another."""

IDENTIFIER_LENGTH = 20
"""A hundred bits: whoever knows one was told of it."""


def new_identifier() -> str:
    """Return an identifier that nobody can guess; it is the RID of BLAST's URL API too."""
    return "".join(secrets.choice(LETTERS) for _ in range(IDENTIFIER_LENGTH))


def is_identifier(text: str) -> bool:
    """Say whether a text can be one; any other may not come near a path."""
    return len(text) == IDENTIFIER_LENGTH and all(letter in LETTERS for letter in text)


def counted_for(client: str) -> str:
    """Return whom a client's jobs count for: its token or its address, whatever browser it says that it is."""
    return client.partition("/")[0]


@dataclass(frozen=True)
class Job:
    """A job at some time.

    Parameters
    ----------
    identifier : str
        Of `new_identifier`.
    group : str
        That of the first of several jobs that were submitted together, one for each database.
    client : str
        Who submitted it.
    database, title : str
        As in the request.
    state : str
        One of `JOB_STATES`.
    options : dict of str to object
        As in the request.
    n_queries, n_residues : int
        Of its queries.
    submitted : float
        Seconds of the Unix clock, as all times.
    begun, ended, expires : float or None
        None before.
    progress : float
        From 0 to 1.
    cells, cells_done : int
        Query residues times subject residues.
    place : int or None
        Jobs that come before, while it is queued.
    problem : dict or None
        Why it failed, as `ServerProblem.stated` has the inner part.
    n_hits : int or None
        When it is done.
    notes : tuple of str
        What is to be told of it: doubts, queries without E-values.
    """

    identifier: str
    group: str
    client: str
    database: str
    title: str
    state: JobState
    options: dict[str, Any]
    n_queries: int
    n_residues: int
    submitted: float
    begun: float | None = None
    ended: float | None = None
    expires: float | None = None
    progress: float = 0.0
    cells: int = 0
    cells_done: int = 0
    place: int | None = None
    problem: dict[str, Any] | None = None
    n_hits: int | None = None
    notes: tuple[str, ...] = ()

    def program(self, is_dna: bool) -> Program:
        """Return BLAST's name for what is searched with what, by whether the database is of DNA."""
        return PROGRAM_NAMES[bool(self.options.get("translate")), is_dna]

    @property
    def is_ended(self) -> bool:
        """Whether nothing more becomes of it."""
        return self.state in ENDED
