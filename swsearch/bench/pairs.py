"""Time and memory of one random pair: ``swsearch bench align``."""

from __future__ import annotations

import resource
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from swsearch.alphabet import DNA, Alphabet, ByteArray
from swsearch.engines.base import PairAligner
from swsearch.errors import OptionError
from swsearch.output_files import open_output
from swsearch.recurrence import Recurrence

TwoSequences = tuple[ByteArray, ByteArray]
"""Codes of a query and a subject, each of shape (n,), uint8."""

UNRELATED = "unrelated"
"""Value of --identity for two sequences that have nothing to do with each other."""

GAPS_PER_CHANGE = 0.05
"""Gaps made for each residue that is to differ; the other differences are substitutions."""

MEAN_GAP = 3
"""Mean length of the gaps made; lengths are geometric."""

WARM_UP = 100
"""Residues aligned before the clock starts, so that libraries are loaded and kernels compiled."""


@dataclass(frozen=True)
class Timing:
    """Time and memory of aligning a pair.

    Parameters
    ----------
    score : int
        Matrix units.
    cells : int
        Query length times subject length.
    seconds : list of float
        Of each run.
    peak_bytes : int
        Most memory that the process has held, Python and its libraries included.
    """

    score: int
    cells: int
    seconds: list[float]
    peak_bytes: int

    @property
    def median(self) -> float:
        """Median of the seconds."""
        return statistics.median(self.seconds)

    @property
    def gcups(self) -> float:
        """Thousand million cells per second, by the median."""
        return self.cells / self.median / 1e9


def parse_identity(text: str) -> float | None:
    """Read ``unrelated`` (None) or a share above 0 and up to 1."""
    if text == UNRELATED:
        return None
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise OptionError("identity", text, f"a number above 0 and up to 1, or {UNRELATED}")
    return share


def random_pair(length: int, alphabet: Alphabet, identity: float | None, seed: int) -> TwoSequences:
    """Make two sequences; the same arguments give the same pair.

    Parameters
    ----------
    length : int
        Residues of the first.
    alphabet : Alphabet
        Bases or the 20 amino acids are drawn, all equally often.
    identity : float or None
        About this share of the first is found again in the second; the rest is substituted, deleted, or has
        something inserted. None makes the second on its own, of the same length.

    Returns
    -------
    first, second : ndarray, shape (n,), uint8
        Codes of the alphabet.
    """
    generator = np.random.default_rng(seed)
    letters = 4 if alphabet is DNA else 20
    first = generator.integers(0, letters, length).astype(np.uint8)
    if identity is None:
        return first, generator.integers(0, letters, length).astype(np.uint8)
    changed = 1 - identity
    gaps = int(length * changed * GAPS_PER_CHANGE)
    # half of the gaps delete
    substituted = generator.random(length) < changed * (1 - GAPS_PER_CHANGE * MEAN_GAP / 2)
    step = generator.integers(1, letters, length)  # never back to the same letter
    second = np.where(substituted, (first + step) % letters, first).astype(np.uint8)
    places = generator.integers(0, length, gaps) if gaps else np.zeros(0, dtype=np.int64)
    sizes = generator.geometric(1 / MEAN_GAP, gaps)
    deletes = np.arange(gaps) % 2 == 0
    inserted_at = np.repeat(places[~deletes], sizes[~deletes])
    is_kept = np.ones(length, dtype=bool)
    for place, size in zip(places[deletes].tolist(), sizes[deletes].tolist(), strict=True):
        is_kept[place : place + size] = False
    new = generator.integers(0, letters, len(inserted_at)).astype(np.uint8)
    return first, np.insert(second, inserted_at, new)[np.insert(is_kept, inserted_at, True)]


def peak_memory() -> int:
    """Return the most bytes that this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10  # macOS counts bytes, Linux KiB


def measure(aligner: PairAligner, pair: TwoSequences, recurrence: Recurrence, runs: int, score_only: bool) -> Timing:
    """Align a pair several times."""
    query, subject = pair

    def run(a: ByteArray, b: ByteArray) -> int:
        return aligner.score(a, b, recurrence) if score_only else aligner.align(a, b, recurrence).score

    run(query[:WARM_UP], subject[:WARM_UP])
    seconds, score = [], 0
    for _ in range(runs):
        started = time.perf_counter()
        score = run(query, subject)
        seconds.append(time.perf_counter() - started)
    return Timing(score, len(query) * len(subject), seconds, peak_memory())


def write_pair(folder: Path, pair: TwoSequences, alphabet: Alphabet, label: str) -> list[Path]:
    """Write a pair as ``a.fasta`` and ``b.fasta`` into a folder, which is made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, codes in zip("ab", pair, strict=True):
        letters = alphabet.decode(codes)
        path = folder / f"{name}.fasta"
        with open_output(str(path)) as stream:
            lines = (letters[start : start + 60] for start in range(0, len(letters), 60))
            stream.write("\n".join([f">{name} {label}", *lines]) + "\n")
        paths.append(path)
    return paths


def print_timing(timing: Timing, pair: TwoSequences, label: str, how: str, engine: str) -> None:
    """Print the measurement on stdout, one line per fact."""
    low, high = min(timing.seconds), max(timing.seconds)
    facts = {
        "pair": f"{len(pair[0]):,} x {len(pair[1]):,}; {label}",
        "alignment": how,
        "engine": engine,
        "cells": f"{timing.cells:,}",
        "score": f"{timing.score:,}",
        "seconds": f"{timing.median:.3f} (median of {len(timing.seconds)}, {low:.3f} to {high:.3f})",
        "GCUPS": f"{timing.gcups:.3f}",
        "peak memory": f"{timing.peak_bytes / (1 << 20):,.0f} MiB (the process, Python included)",
    }
    for topic, text in facts.items():
        print(f"{topic:<12} {text}")
