"""What this machine offers: which engine would run, and why not a faster one."""

from __future__ import annotations

import importlib
import platform
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

DEPENDENCIES = ("numpy", "Bio", "h5py", "typer", "parasail", "pyopal", "zstandard")
"""Modules that swsearch cannot do without."""


@dataclass(frozen=True)
class Finding:
    """One line of the examination."""

    topic: str
    text: str
    good: bool = True


def examine() -> Iterator[Finding]:
    """Yield findings, the most general first; one that is not good means that searching would fail."""
    from swsearch import __version__
    from swsearch.engines import NO_GPU_ENGINE

    yield Finding("swsearch", f"{__version__}, Python {platform.python_version()}, {platform.platform()}")
    yield Finding("libraries", ", ".join(_versions()))
    yield Finding("gpu", f"not used: {NO_GPU_ENGINE}")
    yield from _examine_cpu()


def _versions() -> Iterator[str]:
    for name in DEPENDENCIES:
        module = importlib.import_module(name)
        yield f"{name} {getattr(module, '__version__', '?')}"


def _examine_cpu() -> Iterator[Finding]:
    from swsearch.engines.cpu import CpuEngine

    try:
        with CpuEngine() as engine:
            yield Finding("cpu", f"usable: {engine.description}")
            wrong = self_test(engine)
    except Exception as error:
        yield Finding("cpu", f"failed: {error}; reinstall the parasail and pyopal packages", good=False)
        return
    if wrong:
        yield Finding("self-test", f"{wrong} scores differ from the reference; please report this", good=False)
    else:
        yield Finding("self-test", "192 scores equal to the reference, local, global and semi-global")
        yield Finding("auto", "--engine auto takes cpu")


def self_test(engine: object) -> int:
    """Score 64 made-up subjects in every mode and count the scores that differ from the reference."""
    from swsearch import reference
    from swsearch.db import Database
    from swsearch.engines.base import Engine, exact_scores
    from swsearch.scoring import MODES, Scoring

    assert isinstance(engine, Engine)
    generator = np.random.default_rng(1)
    scoring = Scoring()
    letters = scoring.matrix.alphabet.letters
    sequences = ["".join(letters[k] for k in generator.integers(0, 20, length)) for length in range(1, 65)]
    query = scoring.matrix.alphabet.encode(sequences[40] * 2)
    wrong = 0
    with Database.from_records(sequences) as database:
        for mode in MODES:
            group = engine.prepare([scoring.profile(query)], scoring, mode)
            for chunk in database.chunks(1 << 20):
                values = exact_scores(engine, group, engine.load(chunk))[0]
                for place in range(chunk.n_subjects):
                    wrong += int(values[place]) != reference.score(query, chunk.subject(place), scoring, mode)
    return wrong
