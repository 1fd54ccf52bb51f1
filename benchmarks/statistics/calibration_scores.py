"""Scores of queries that have no relatives, for `calibration.py`: what is searched, with which scoring systems.

Queries are sequences of Swiss-Prot, of all lengths, once with their residues shuffled and once reversed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import swsearch
from benchmarks.support.common import Records
from swsearch.alphabet import PROTEIN
from swsearch.scoring import Matrix, Mode, Scoring, matrix_from_table

SEED = 2026

Scores = npt.NDArray[np.int32]


@dataclass(frozen=True)
class System:
    """A scoring system and mode whose statistics are judged.

    Parameters
    ----------
    name : str
        In tables and file names.
    scoring : Scoring
        Matrix and gap costs.
    mode : {"local", "global", "semiglobal"}
        Which ends are free.
    """

    name: str
    scoring: Scoring
    mode: Mode


def gonnet() -> Matrix:
    """Return the matrix of Gonnet, Cohen and Benner (1992), rounded to whole numbers: one without constants."""
    from Bio.Align import substitution_matrices

    array = substitution_matrices.load("GONNET1992")
    table = {(a, b): float(round(array[a, b])) for a in array.alphabet for b in array.alphabet}
    return matrix_from_table(table, "GONNET1992", PROTEIN)


def systems() -> list[System]:
    """Return what is judged: local mode with and without published constants, then the other modes."""
    return [
        System("local-BLOSUM62-11-1", Scoring(), "local"),
        System("local-BLOSUM62-13-3", Scoring(gap_open=13, gap_extend=3), "local"),
        System("local-GONNET1992-13-2", Scoring(gonnet(), 13, 2), "local"),
        System("local-BLOSUM62-4-1", Scoring(gap_open=4), "local"),
        System("global-BLOSUM62-11-1", Scoring(), "global"),
        System("semiglobal-BLOSUM62-11-1", Scoring(), "semiglobal"),
    ]


def null_queries(proteins: Records, first: int) -> dict[str, Records]:
    """Choose proteins by chance, and shuffle and reverse them."""
    chance = random.Random(SEED)
    chosen = chance.sample([each for each in proteins if each[1]], first)
    shuffled = [(name, "".join(chance.sample(letters, len(letters)))) for name, letters in chosen]
    return {"shuffled": shuffled, "reversed": [(name, letters[::-1]) for name, letters in chosen]}


def score_all(
    database: Any, queries: dict[str, Records], others: int, engine: str, keep: Path | None
) -> Iterator[tuple[System, str, Scores]]:
    """Yield every system's scores with every kind of queries, shape (n_queries, n_subjects).

    All queries are for the first system, and `others` of them for every other. Scores are read from the folder
    `keep`, if they are there, and left there.
    """
    for place, system in enumerate(systems()):
        for kind, chosen in queries.items():
            records = chosen[:others] if place else chosen
            path = keep / f"{system.name}-{kind}-{len(records)}.npy" if keep is not None else None
            if path is not None and path.is_file():
                yield system, kind, np.load(path)
                continue
            scores = swsearch.score(records, database, scoring=system.scoring, mode=system.mode, engine=engine)
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                np.save(path, scores)
            yield system, kind, scores
