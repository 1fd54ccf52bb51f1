"""What goes to workers and comes back, as plain values: Dask pickles them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.db.frame_windows import Windows
from swsearch.errors import ClusterError
from swsearch.inputs import Query
from swsearch.options.words import Mask
from swsearch.pipeline.filters import Allowed
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.subjects import SubjectCounts

MAX_SHARE_BYTES = 1 << 28
"""Bytes that Dask takes a share for at most: results that fill a worker's memory would be written to disk."""


@dataclass(frozen=True)
class EngineRequest:
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


@dataclass(frozen=True)
class VolumeFile:
    """A volume as a worker is to find it: the client's absolute path, and what tells its content from others'."""

    path: str
    identity: str


@dataclass(frozen=True, eq=False)
class VolumeSearch:
    """What all tasks of a search on one volume have in common.

    Parameters
    ----------
    file : VolumeFile
        The volume.
    engine : EngineRequest
        What scores.
    options : SearchOptions
        What is asked for, without filters that name subjects.
    counts : SubjectCounts
        Of the whole database: thresholds and E-values refer to it.
    mask : {"none", "lower", "tantan"}
        What of the subjects is scored as X.
    windows : Windows or None
        How the frames of DNA are cut; None for proteins.
    allowed : ndarray of uint8, or None
        A bit for each place of the volume: which may be hits.
    first : int
        The place of the volume's first subject in the whole.
    largest : (int, int)
        Queries, and residues, of the largest group that is scored together.
    """

    file: VolumeFile
    engine: EngineRequest
    options: SearchOptions
    counts: SubjectCounts
    mask: Mask
    windows: Windows | None
    allowed: npt.NDArray[np.uint8] | None
    first: int
    largest: tuple[int, int]

    def allowed_of(self, n_places: int) -> Allowed | None:
        """Return which of the volume's places may be hits, shape (n_places,)."""
        return None if self.allowed is None else np.unpackbits(self.allowed, count=n_places).astype(np.bool_)


@dataclass(frozen=True)
class TaskFailure:
    """What a task raised, and on which worker: an error that is raised reaches the client as Dask's copy of it."""

    worker: str
    error: BaseException


class OtherProgramError(ClusterError):
    """A worker that runs another version of the program, and could find something else."""


def without_history(query: Query) -> Query:
    """Return a query without what neither scores nor alignments need."""
    profile = query.profile
    if profile is not None:
        profile = replace(profile, description="", background=None, frequencies=None, source="", alignment=None)
    return replace(query, description="", lower=(), profile=profile)


def one_line(error: BaseException) -> str:
    """Return an error's kind and text on one line, cut where it is long."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300] if text else type(error).__name__


def problem_of(error: Exception) -> str:
    """Return why a worker cannot be used that answered with an error when it was asked what it is."""
    if isinstance(error, OtherProgramError):
        return str(error)
    if isinstance(error, OSError):  # of a connection, or of time
        return "no answer; it is busy or hangs" if isinstance(error, TimeoutError) else one_line(error)
    return f"it cannot load swsearch ({one_line(error)})"


def listed(texts: dict[str, Any], most: int = 3) -> str:
    """Return what is said of workers as one text: of the first of them, where there are many."""
    said = [f"{address}: {text}" for address, text in texts.items()]
    return "; ".join(said[:most]) + (f"; and {len(said) - most:,} more" if len(said) > most else "")
