"""Bare scans for `cpu.py`: one query against every subject, in memory, by the CPU engine, parasail and pyopal."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.support.common import Records
from benchmarks.support.timing import Timing, say, take_turn
from swsearch import Database, Scoring, extension
from swsearch.blocks import Chunk
from swsearch.engines.base import ChunkPlan, LoadedChunk
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.inputs import Query
from swsearch.options.kinds import Mode
from swsearch.pipeline.scorer import prepare
from swsearch.recurrence import Recurrence

Scores = npt.NDArray[np.int64]

ALGORITHMS: dict[str, dict[Mode, str]] = {
    "parasail": {"local": "sw", "global": "nw", "semiglobal": "sg"},
    "pyopal": {"local": "sw", "global": "nw", "semiglobal": "ov"},
}
GAPS = (12, 1)
"""Our 11/1: the libraries charge open + (k - 1) * extend."""

SLOW = ("scalar",)
"""Instruction sets for other processors than this, which get one query, that of a length near `SLOW_LENGTH`."""

SLOW_LENGTH = 375

SHORT, MORE_RUNS = 1000, 2
"""Queries below so many residues have so many turns more."""


@dataclass(frozen=True)
class Scan:
    """A way to score a query against all subjects.

    Parameters
    ----------
    run : callable
        A query's letters -> the library's own results; this is timed.
    scores : callable
        Those -> scores in the order of the input; this is not.
    """

    run: Callable[[str], Any]
    scores: Callable[[Any], Scores]


def _by_length(subjects: Records, threads: int) -> tuple[list[list[str]], npt.NDArray[np.int64]]:
    """Give each thread every n-th subject in order of length, with the places of all of them in the input."""
    lengths = np.array([len(letters) for _, letters in subjects])
    order = np.argsort(lengths, kind="stable")
    places = np.concatenate([order[part::threads] for part in range(threads)])
    return [[subjects[place][1] for place in order[part::threads]] for part in range(threads)], places


def _in_order(values: Sequence[int], places: npt.NDArray[np.int64]) -> Scores:
    scores = np.empty(len(places), dtype=np.int64)
    scores[places] = values
    return scores


def _in_parts(work: Callable[[str, int], list[int]], places: npt.NDArray[np.int64], threads: int) -> Scan:
    """Run ``work(query, part)`` for every part at once."""
    pool = ThreadPoolExecutor(threads)
    return Scan(
        lambda query: list(pool.map(partial(work, query), range(threads))),
        lambda found: _in_order([each for part in found for each in part], places),
    )


def parasail_scan(subjects: Records, threads: int, mode: Mode) -> Scan:
    """Call parasail's striped kernels by the package's own functions, in a Python loop for each thread."""
    import parasail

    parts, places = _by_length(subjects, threads)
    letters, scores = Scoring().matrix.alphabet.letters, Scoring().matrix.scores
    assert letters[-1] == "*"  # parasail adds it itself, as the last letter
    matrix = parasail.matrix_create(letters[:-1], 1, -1, case_sensitive=True)
    for i, j in np.ndindex(len(letters), len(letters)):
        matrix.set_value(i, j, int(scores[i, j]))
    align = getattr(parasail, f"{ALGORITHMS['parasail'][mode]}_striped_profile_sat")

    def work(query: str, part: int) -> list[int]:
        profile = parasail.profile_create_sat(query, matrix)
        return [align(profile, subject, *GAPS).score for subject in parts[part]]

    return _in_parts(work, places, threads)


def pyopal_scan(subjects: Records, threads: int, mode: Mode) -> Scan:
    """Call pyopal's score mode, an aligner and a database for each thread."""
    import pyopal
    from scoring_matrices import ScoringMatrix  # type: ignore[attr-defined]

    parts, places = _by_length(subjects, threads)
    letters = Scoring().matrix.alphabet.letters
    rows = Scoring().matrix.scores[: len(letters), : len(letters)].astype(float).tolist()
    aligners = [pyopal.Aligner(ScoringMatrix(rows, alphabet=letters), *GAPS) for _ in range(threads)]
    databases = [pyopal.Database(part, aligner.alphabet) for part, aligner in zip(parts, aligners, strict=True)]
    options = {"mode": "score", "overflow": "simple", "algorithm": ALGORITHMS["pyopal"][mode]}

    def work(query: str, part: int) -> list[int]:
        return [each.score for each in aligners[part].align(query, databases[part], **options)]

    return _in_parts(work, places, threads)


def library_scans(subjects: Records, threads: int, mode: Mode = "local") -> dict[str, Scan]:
    """Return the scans of the libraries that are installed."""
    scans = {"parasail": parasail_scan, "pyopal": pyopal_scan}
    return {name: make(subjects, threads, mode) for name, make in scans.items() if find_spec(name)}


def engine_for(instructions: str, threads: int) -> CpuEngine:
    """Make the CPU engine with an instruction set, which it looks for in the environment."""
    before = os.environ.get(extension.SIMD_VARIABLE)
    os.environ[extension.SIMD_VARIABLE] = instructions
    try:
        return CpuEngine(threads)
    finally:
        del os.environ[extension.SIMD_VARIABLE]
        if before is not None:
            os.environ[extension.SIMD_VARIABLE] = before


def swsearch_scan(chunks: Sequence[LoadedChunk], instructions: str, threads: int) -> Scan:
    """Call the CPU engine over chunks in memory."""
    engine, scoring = engine_for(instructions, threads), Scoring()

    def run(letters: str) -> list[npt.NDArray[np.int32]]:
        query = Query("query", "", scoring.matrix.alphabet.encode(letters))
        group = prepare(engine, [query], Recurrence(scoring, "local"))
        return [engine.score(group, loaded)[0] for loaded in chunks]

    places = np.concatenate([loaded.chunk.subjects for loaded in chunks])
    return Scan(run, lambda found: _in_order(np.concatenate(found).tolist(), places))


def read_chunks(database: Database) -> list[LoadedChunk]:
    """Read a database in the chunks that the CPU engine takes."""
    return [LoadedChunk(chunk) for chunk in database.chunks(ChunkPlan().chunk_bytes)]


def padding(chunks: Sequence[LoadedChunk]) -> float:
    """Return the cells that blocks of 64 subjects have, padding included, over those that the subjects have."""
    every: list[Chunk] = [loaded.chunk for loaded in chunks]
    return sum(chunk.residues.size for chunk in every) / sum(chunk.n_residues for chunk in every)


Turns = dict[tuple[str, int, int], Timing]
"""Scans by contender, query length and threads."""


def time_scans(
    queries: Sequence[str], subjects: Records, chunks: list[LoadedChunk], numbers: Sequence[int], runs: int
) -> tuple[Turns, list[str]]:
    """Time every scan on each number of threads; also say whose scores differ from the first contender's."""
    turns: Turns = {}
    differing = []
    for threads in numbers:
        scans = {f"swsearch {name}": swsearch_scan(chunks, name, threads) for name in extension.instruction_sets()}
        scans |= library_scans(subjects, threads)
        for scan in scans.values():  # the first touch of every page is not counted
            scan.run(queries[0][:10])
        only = min((len(query) for query in queries), key=lambda length: abs(length - SLOW_LENGTH))
        for turn in range(runs + MORE_RUNS):
            for query in [query for query in queries if turn < runs or len(query) < SHORT]:
                expected = None
                for name, scan in scans.items():
                    if name.endswith(SLOW) and len(query) != only:
                        continue
                    timing = turns.setdefault((name, len(query), threads), Timing())
                    scores = scan.scores(take_turn(timing, partial(scan.run, query)))
                    expected = scores if expected is None else expected
                    if not np.array_equal(scores, expected):
                        differing.append(f"{name}, {threads} threads, query of {len(query)}")
            say(f"scans, {threads} threads, turn {turn + 1}")
    return turns, differing
