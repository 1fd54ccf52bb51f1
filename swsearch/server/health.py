"""What a server says of itself: whether it works, and how much it has done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PlaceHealth:
    """How one database is.

    Parameters
    ----------
    name : str
        What requests call it.
    state : str
        ready, failed or replaced; see `swsearch.server.places`.
    engine : str
        What scores.
    device : str
        On what, such as a GPU's name; empty where that is not to be told apart from the engine.
    note : str
        What is wrong, or to be known; empty if nothing is.
    """

    name: str
    state: str
    engine: str
    device: str
    note: str


@dataclass(frozen=True)
class Health:
    """Whether a server works.

    Parameters
    ----------
    ok : bool
        Whether every database can be searched, and jobs can be kept.
    why : str
        Why not; empty if it is so.
    places : tuple of PlaceHealth
        Each database.
    """

    ok: bool
    why: str
    places: tuple[PlaceHealth, ...]

    def stated(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {"ok": self.ok, "why": self.why, "databases": [dict(vars(each)) for each in self.places]}


@dataclass(frozen=True)
class HouseCounts:
    """How much a server has done since it began, and has to do.

    Parameters
    ----------
    jobs : dict of str to int
        Jobs that are kept, by state.
    queued, running : int
        Jobs that wait, and that run.
    searches : int
        Searches that run and are not stored.
    renderings : int
        Results that are being written.
    cells : int
        Cells that were scored: query residues times subject residues.
    seconds : float
        That engines took to score them.
    ended : dict of str to int
        Jobs that ended since the server began, by state.
    """

    jobs: dict[str, int]
    queued: int
    running: int
    searches: int
    renderings: int
    cells: int
    seconds: float
    ended: dict[str, int]
