"""Alignment of pairs by the compiled extension `swsearch._simd`, whose sources are in ``cpu/``.

It finds the alignment that `swsearch.reference` states, in bounded memory, with SIMD lanes and threads.
Of similar pairs it leaves out the tiles that no alignment as good as one already found can pass.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from swsearch import simd
from swsearch.alphabet import ByteArray
from swsearch.engines.base import available_processors
from swsearch.errors import InputError, MemoryLimitError
from swsearch.reference import Cigar
from swsearch.scoring import Ends, Mode, Scoring, check_ends

Found = tuple[int, int, int, Cigar, int, int]
"""Score, start in the query and in the subject, CIGAR, cells computed and passes made."""

ScoreBytes = npt.NDArray[np.int8]

DEFAULT_MEMORY = 256 << 20
"""Bytes that the tables of a pair may take by default."""

BEAM = 700
"""How far below the best a first pass follows alignments, in matrix units. With 700 it bridges insertions of 4,000
bases in DNA (5, -4, 10, 1), with 350 of 500, and takes a fifth of the time where 1 % of the bases differ."""

REACH_LIMIT = 1 << 28
"""Scores are kept in 32 bits; this leaves room for minus infinity."""


def check_reach(query_length: int, subject_length: int, scoring: Scoring, mode: Mode) -> None:
    """Raise `InputError` where a pair of these lengths could have scores that 32 bits do not hold."""
    low, high = scoring.score_range(mode, query_length, subject_length)
    reach = max(-low, high) + scoring.gap_cost(subject_length) + scoring.gap_first
    if reach >= REACH_LIMIT:
        raise InputError(
            f"a pair of {query_length:,} and {subject_length:,} residues with {scoring.describe()}: scores may reach "
            f"{reach:,}, expected less than {REACH_LIMIT:,}; use smaller costs or shorter sequences"
        )


def trace(
    query: ByteArray,
    subject: ByteArray,
    scoring: Scoring,
    mode: Mode,
    memory: int = DEFAULT_MEMORY,
    ends: Ends | None = None,
    threads: int | None = None,
    *,
    tile: int = 0,
    beam: int = BEAM,
) -> tuple[int, int, int, Cigar]:
    """Align two encoded sequences in bounded memory.

    Parameters
    ----------
    query, subject : ndarray, shape (n,), uint8
        Codes of the scoring's alphabet; may be empty.
    scoring : Scoring
        Matrix and gap costs.
    mode : {"local", "global", "semiglobal"}
        Which ends are free.
    memory : int, optional
        Bytes to be used for tables; each thread takes up to a megabyte besides.
    ends : Ends, optional
        Which ends are free in semi-global mode; all four by default.
    threads : int, optional
        At most this many; by default all processors that this process may use.
    tile, beam : int, optional
        How to go about it: rows and columns that are computed at a time (0: the extension chooses), and `BEAM` (0:
        no first pass). They change nothing in the result.

    Returns
    -------
    score, query_start, subject_start : int
    cigar : tuple of (int, str)
        As `swsearch.reference.align` returns them.

    Raises
    ------
    MemoryLimitError
        If the pair does not fit ``memory``.
    InputError
        If scores could be beyond `REACH_LIMIT`.
    EngineError
        If the extension cannot be used.
    """
    return _run(query, subject, scoring, mode, memory, ends, threads, tile, beam, path=True)[:4]


def score(
    query: ByteArray,
    subject: ByteArray,
    scoring: Scoring,
    mode: Mode,
    memory: int = DEFAULT_MEMORY,
    ends: Ends | None = None,
    threads: int | None = None,
    *,
    tile: int = 0,
    beam: int = BEAM,
) -> int:
    """Score a pair; parameters and errors as for `trace`."""
    return _run(query, subject, scoring, mode, memory, ends, threads, tile, beam, path=False)[0]


def _run(
    query: ByteArray,
    subject: ByteArray,
    scoring: Scoring,
    mode: Mode,
    memory: int,
    ends: Ends | None,
    threads: int | None,
    tile: int,
    beam: int,
    *,
    path: bool,
) -> Found:
    """Call the extension, the path left out unless asked for."""
    ends = check_ends(mode, ends)
    check_reach(len(query), len(subject), scoring, mode)
    free = (ends.query_start, ends.query_end, ends.subject_start, ends.subject_end)
    found: Found | int = simd.extension().align(
        np.ascontiguousarray(query),
        np.ascontiguousarray(subject),
        np.ascontiguousarray(scoring.matrix.scores.astype(np.int8)),
        max(scoring.matrix.max, 0),
        int(scoring.gap_open),
        int(scoring.gap_extend),
        mode == "local",
        sum(flag << place for place, flag in enumerate(free)),
        path,
        memory,
        threads or available_processors(),
        tile,
        beam,
        simd.chosen(),
    )
    if isinstance(found, int):
        raise MemoryLimitError(
            f"aligning with a subject of {len(subject)} residues takes more memory than the {memory >> 20} MiB left "
            f"for it; allow at least {-(-found >> 20)} MiB"
        )
    return found
