"""What goes to workers: plain values, as bytes.

What all tasks of a search on a volume have in common is made into bytes once, and so is each group of queries; a task
is these and a few numbers. Client and workers trust each other, as those of Dask do: bytes are pickles.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.blocks import IntArray
from swsearch.inputs import Query
from swsearch.options.words import Mask
from swsearch.pipeline.filters import Allowed
from swsearch.pipeline.options import SearchOptions
from swsearch.recurrence import Recurrence
from swsearch.statistics.fitted import Fit, FittedStatistics


@dataclass(frozen=True)
class VolumeWanted:
    """A volume as a worker is to find it.

    Parameters
    ----------
    path : str
        Where it is for the client, absolute.
    identity : str
        What tells its content from that of others; see `swsearch.db.volumes.Volume`.
    """

    path: str
    identity: str


@dataclass(frozen=True)
class EngineWanted:
    """What workers score with.

    Parameters
    ----------
    name : str
        As ``--engine`` takes it; each worker decides for itself what ``auto`` is.
    gpu_memory : int or None
        Bytes of a GPU's memory that a worker may use.
    """

    name: str = "auto"
    gpu_memory: int | None = None


@dataclass(frozen=True, eq=False)
class AllowedPart:
    """Which subjects of a volume may be hits, in whichever way takes the least memory.

    Parameters
    ----------
    n : int
        Subjects of the volume.
    rest : bool
        Whether those may that are not named.
    named : ndarray, shape (m,), integer, or None
        Places in the volume.
    bits : ndarray, shape (ceil(n / 8),), uint8, or None
        A bit for each, where that takes less.
    """

    n: int
    rest: bool
    named: npt.NDArray[np.integer] | None
    bits: npt.NDArray[np.uint8] | None

    @classmethod
    def of(cls, allowed: Allowed) -> AllowedPart:
        """Pack what is said of each subject, shape (n,), bool."""
        rest = bool(2 * np.count_nonzero(allowed) > len(allowed))
        named = np.flatnonzero(allowed != rest).astype(np.min_scalar_type(max(len(allowed) - 1, 0)))
        if 8 * named.nbytes > len(allowed):
            return cls(len(allowed), rest, None, np.packbits(allowed))
        return cls(len(allowed), rest, named, None)

    def array(self) -> Allowed:
        """Return what is said of each subject, shape (n,), bool."""
        if self.bits is not None:
            return np.unpackbits(self.bits, count=self.n).astype(np.bool_)
        allowed: Allowed = np.full(self.n, self.rest, dtype=np.bool_)
        allowed[self.named] = not self.rest
        return allowed


@dataclass(frozen=True, eq=False)
class VolumeWork:
    """What all tasks of a search on one volume have in common.

    Parameters
    ----------
    volume : VolumeWanted
        The volume.
    engine : EngineWanted
        What scores.
    options : SearchOptions
        What is asked for; E-values refer to the whole database, and filters name no identifiers.
    mask : {"none", "lower", "tantan"}
        What of the subjects is scored as X.
    fit : Fit or None
        How statistics are fitted, of the whole database.
    allowed : AllowedPart or None
        Which subjects may be hits.
    largest : (int, int)
        Queries, and residues, of the largest group that is scored together.
    includes : bool
        Whether the candidates of next profiles are wanted, too.
    """

    volume: VolumeWanted
    engine: EngineWanted
    options: SearchOptions
    mask: Mask
    fit: Fit | None
    allowed: AllowedPart | None
    largest: tuple[int, int]
    includes: bool

    @property
    def recurrence(self) -> Recurrence:
        """What is computed."""
        return self.options.recurrence


@dataclass(frozen=True, eq=False)
class GroupSent:
    """Queries that are scored together, with their nulls where statistics are fitted."""

    queries: list[Query]
    nulls: list[FittedStatistics | None]


@dataclass(frozen=True, eq=False)
class PairsSent:
    """Pairs of some queries, to get their nulls, as `PairsAsked` has them, query after query.

    Parameters
    ----------
    queries : list of Query
        With residues.
    statistics : list of FittedStatistics
        Their nulls.
    limits : list of float
        Probabilities by chance up to which pairs are hits.
    counts : list of int
        Pairs of each query.
    subjects, scores, lengths : ndarray, shape (sum of counts,), int64
        Places in the volume, matrix units, residues.
    """

    queries: list[Query]
    statistics: list[FittedStatistics]
    limits: list[float]
    counts: list[int]
    subjects: IntArray
    scores: IntArray
    lengths: IntArray


def to_bytes(value: object) -> bytes:
    """Return a value as bytes."""
    return pickle.dumps(value, protocol=5)


def of_bytes(data: bytes) -> Any:
    """Return the value that `to_bytes` made bytes of."""
    return pickle.loads(data)


def without_history(query: Query) -> Query:
    """Return a query without what neither scores nor alignments need: what it is called, and what a profile is of."""
    profile = query.profile
    if profile is not None:
        profile = replace(profile, description="", background=None, frequencies=None, source="", alignment=None)
    return replace(query, description="", lower=(), profile=profile)
