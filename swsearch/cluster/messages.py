"""Messages between client and workers, as plain values that Dask pickles."""

from __future__ import annotations

import hashlib
import platform
import sys
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.db.frame_windows import Windows
from swsearch.errors import ClusterError
from swsearch.inputs import Query
from swsearch.options.kinds import Mask
from swsearch.pipeline.filters import SubjectMask
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.subjects import SubjectCounts
from swsearch.version import version

MAX_SHARE_BYTES = 1 << 28
"""Bytes that Dask takes a share for at most: results that fill a worker's memory would be written to disk."""


@dataclass(frozen=True)
class EngineRequest:
    """Engine that workers create. Each worker resolves ``auto`` itself."""

    name: str = "auto"
    gpu_memory: int | None = None
    """Maximum bytes of GPU memory."""


@dataclass(frozen=True)
class VolumeFile:
    """A volume as a worker is to find it: the client's absolute path, and what tells its content from others'."""

    path: str
    identity: str


@dataclass(frozen=True, eq=False)
class VolumeSearch:
    """Arguments that all tasks of a search on one volume share."""

    file: VolumeFile
    engine: EngineRequest
    options: SearchOptions
    """Options of the search, without filters that name subjects."""
    counts: SubjectCounts
    """Counts of the whole database, which thresholds and E-values refer to."""
    mask: Mask
    windows: Windows | None
    """Windows of DNA frames; None for proteins."""
    packed_mask: npt.NDArray[np.uint8] | None
    """One bit for each place of the volume, packed: whether it may be a hit."""
    first: int
    """Place of the volume's first subject in the whole database."""
    largest: tuple[int, int]
    """Number of queries and residues of the largest group that is scored together."""

    def subject_mask(self, n_places: int) -> SubjectMask | None:
        """Return which of the volume's places may be hits, shape (n_places,)."""
        return None if self.packed_mask is None else np.unpackbits(self.packed_mask, count=n_places).astype(np.bool_)


@dataclass(frozen=True)
class TaskFailure:
    """Error of a task with its worker's address. A raised error would reach the client as Dask's copy of it."""

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


def worker_problem(error: Exception) -> str:
    """Return why a worker cannot be used that answered with an error when it was asked what it is."""
    if isinstance(error, OtherProgramError):
        return str(error)
    if isinstance(error, OSError):  # of a connection, or of time
        return "no answer; it is busy or hangs" if isinstance(error, TimeoutError) else one_line(error)
    return f"it cannot load swsearch ({one_line(error)})"


def join_some(texts: dict[str, Any], max_count: int = 3) -> str:
    """Return what is said of workers as one text: of the first of them, where there are many."""
    lines = [f"{address}: {text}" for address, text in texts.items()]
    return "; ".join(lines[:max_count]) + (f"; and {len(lines) - max_count:,} more" if len(lines) > max_count else "")


SOURCE_SUFFIXES = (".py", ".txt", ".cu", ".cuh")
"""Ends of the names of files that decide what a search finds."""

MUST_EQUAL = {
    "swsearch": "swsearch",
    "digest": "the sources of swsearch",
    "python": "Python",
    "dask": "dask",
    "distributed": "distributed",
}
"""Names in messages of the values that must be equal on client and worker."""


@cache
def program_versions() -> dict[str, str]:
    """Return the versions that must be equal, and a digest of the package's sources."""
    return {
        "swsearch": version(),
        "digest": _digest(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "dask": _version("dask"),
        "distributed": _version("distributed"),
    }


def version_mismatch(theirs: dict[str, str], ours: dict[str, str]) -> str:
    """Return what differs, as text for people; nothing if all is equal."""
    differences = []
    for key, name in MUST_EQUAL.items():
        its, own = theirs.get(key, "none"), ours[key]
        if its != own:
            short = key == "digest"
            differences.append(f"{name} {its[:8]}, here {own[:8]}" if short else f"{name} {its}, here {own}")
    return "; ".join(differences)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        module = sys.modules.get(name)
        return str(getattr(module, "__version__", "unknown"))


def _digest() -> str:
    """Return the digest of what a wheel brings, in Python, CUDA and tables.

    It is that of a checkout of the same sources too, wherever they lie and whatever ends their lines. The extension's
    binary is no part of it: compilers make others of the same sources.
    """
    whole = hashlib.sha256()
    for package in ("swsearch", "swsearch.db", "swsearch.cuda"):
        folder = Path(str(resources.files(package).joinpath("x"))).parent
        for inside in sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")):
            # in an installed package these are folders of swsearch, in a checkout they stand beside it
            if package == "swsearch" and inside.startswith(("db/", "cuda/")):
                continue
            path = folder / inside
            is_hidden = inside.startswith(".") or "/." in inside  # as what editors leave
            if path.suffix not in SOURCE_SUFFIXES or is_hidden or not path.is_file():
                continue
            whole.update(f"{package}/{inside}\0".encode())
            whole.update(hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).digest())
    return whole.hexdigest()
