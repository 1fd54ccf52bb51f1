"""What every format is to a search job: a writer that is told of the run, of each result, and of the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TextIO

from swsearch.results import RunInfo, SearchResult


class Writer(ABC):
    """Writes results in one format; called as ``begin``, ``write`` for each query in turn, ``end``.

    Parameters
    ----------
    stream : TextIO
        Where to write; neither flushed nor closed. Lines end in a bare line feed.

    Attributes
    ----------
    needs_alignments : bool
        False when nothing of what is written asks for the hits' alignments, so that a job need not find them.
    needs_distribution : bool
        True when results are to keep how the whole database scores (`SearchOptions.distribution`).
    needs_checksums : bool
        True when the run is to name the checksums of its files (`swsearch.provenance`).
    """

    needs_alignments: bool = True
    needs_distribution: bool = False
    needs_checksums: bool = False

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @abstractmethod
    def begin(self, run: RunInfo) -> None:
        """Write what stands before the first result."""

    @abstractmethod
    def write(self, result: SearchResult) -> None:
        """Write the result of one query."""

    @abstractmethod
    def end(self) -> None:
        """Write what stands behind the last result."""
