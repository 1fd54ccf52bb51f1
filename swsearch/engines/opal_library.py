"""A thin layer over ``pyopal``: one query against many subjects, a subject a SIMD lane, in one call.

A call scores hundreds of subjects without the interpreter lock, which is what makes short queries fast on
several threads. It rescores in wider lanes by itself, so nothing is ever flagged. Its alphabet has at most 26
letters where ours has 27; since U scores as C and O as X in every matrix that follows blastp's rule, those share
a letter, and a matrix that says otherwise is not taken (see `can_score`).
"""

from __future__ import annotations

from functools import lru_cache
from importlib import metadata

import numpy as np
import pyopal
from scoring_matrices.lib import ScoringMatrix

from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import Chunk, deinterleave
from swsearch.scoring import Mode, Profile, Scoring, may_start_at

_LETTERS = "ARNDCQEGHILKMFPSTWYVBJZXO"
"""Opal's letters; O stands for the stop ``*``, which pyopal does not know."""

_CODES = [PROTEIN.letters.index(letter) for letter in _LETTERS[:-1]] + [PROTEIN.letters.index("*")]
"""Our code of each of Opal's letters."""

_SHARED = {"U": "C", "O": "X", "*": "O"}
"""Our letters that are written as another of Opal's."""


def version() -> str:
    """Return pyopal's version."""
    return metadata.version("pyopal")


def _table() -> ByteArray:
    table = np.full(256, ord("X"), dtype=np.uint8)
    for code, letter in enumerate(PROTEIN.letters):
        table[code] = ord(_SHARED.get(letter, letter))
    return table


_AS_LETTERS = _table()
"""Opal's letter, as a byte, for every code."""


def can_score(scoring: Scoring, mode: Mode) -> bool:
    """Say whether Opal's scores would be exact: local, small costs, U like C and O like X."""
    if mode != "local" or scoring.matrix.alphabet is not PROTEIN or not may_start_at(8, mode, scoring):
        return False
    scores = scoring.matrix.scores
    same = (("U", "C"), ("O", "X"))
    pairs = [(PROTEIN.letters.index(a), PROTEIN.letters.index(b)) for a, b in same]
    return all(np.array_equal(scores[a], scores[b]) and np.array_equal(scores[:, a], scores[:, b]) for a, b in pairs)


@lru_cache(maxsize=8)
def _matrix(scoring: Scoring, content: bytes) -> ScoringMatrix:
    del content  # two matrix files may have one name; their scores tell them apart
    rows = scoring.matrix.scores[np.ix_(_CODES, _CODES)].astype(float).tolist()
    return ScoringMatrix(rows, _LETTERS, name=scoring.matrix.name)


class Subjects:
    """Some blocks of a chunk, encoded once more as Opal wants them.

    Parameters
    ----------
    chunk : Chunk
        Where they are.
    first, last : int
        Blocks ``first`` to ``last`` (excluded).
    """

    def __init__(self, chunk: Chunk, first: int, last: int) -> None:
        letters: list[bytes] = []
        for index in range(first, last):
            block = chunk.block(index)
            # one bytes object, because slicing it costs less than slicing numpy rows
            text = deinterleave(block).tobytes().translate(_AS_LETTERS.tobytes())
            lengths = chunk.lengths[chunk.lanes(index)].tolist()
            starts = [lane * len(block) for lane in range(len(lengths))]
            letters += [text[start : start + n] for start, n in zip(starts, lengths, strict=True)]
        self._database = pyopal.Database(letters, _LETTERS)

    def score(self, query: Query, first: int, last: int) -> list[int]:
        """Score the subjects ``first`` to ``last`` (excluded), counted within these blocks; exact, matrix units."""
        found = query.aligner.align(
            query.letters, self._database, mode="score", overflow="simple", algorithm="sw", start=first, end=last
        )
        return [result.score for result in found]


class Query:
    """A query as Opal wants it."""

    def __init__(self, profile: Profile, scoring: Scoring) -> None:
        self.letters: bytes = _AS_LETTERS[profile.codes].tobytes()
        matrix = _matrix(scoring, scoring.matrix.scores.tobytes())
        self.aligner = pyopal.Aligner(matrix, gap_open=scoring.gap_first, gap_extend=scoring.gap_extend)
