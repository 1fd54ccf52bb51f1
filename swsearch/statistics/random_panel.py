"""Fixed panel of random sequences, for the null of a query.

Random sequences have the background composition of proteins, with independent residues. Some copies of each, shuffled
in windows, are scored as copies of subjects are (`swsearch.pipeline.null_models`), so that both kinds of chance
scores vary alike. The panel depends on nothing: a query has the same null with every database, engine and machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import FloatArray
from swsearch.options.kinds import Mode
from swsearch.statistics import portable_math

WINDOW = 20
"""Residues of a window within which a copy is shuffled. Windows keep what is local in a composition, such as
stretches of few kinds of residues: with copies shuffled as a whole, queries of biased composition have four times the
chance hits of E <= 1 that they have with windows, and reversed ones half as many again."""

COPIES = 4
"""Shuffled copies of each random sequence."""

_FREQUENCIES = {
    "A": 7805, "R": 5129, "N": 4487, "D": 5364, "C": 1925, "Q": 4264, "E": 6295, "G": 7377, "H": 2199, "I": 5142,
    "L": 9019, "K": 5744, "M": 2243, "F": 3856, "P": 5203, "S": 7120, "T": 5841, "W": 1330, "Y": 3216, "V": 6441,
}  # fmt: skip
"""Residues of each kind per 100,000: Robinson and Robinson, PNAS 88:8880, 1991, as BLAST has them."""

_SEED = np.uint64(0x5357)

_FIXED = ((16, 24), (32, 32), (64, 48), (128, 64), (256, 64), (512, 40), (1024, 24))
"""Lengths in residues, and random sequences of each, for local and semi-global mode. Means and variances change
smoothly with log length, and most proteins have 128 to 1,024 residues."""

_RATIOS = (1 / 16, 1 / 8, 1 / 4, 0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0)
"""Lengths for global mode, in those of the query: the score turns where both are equally long."""

_OF_EACH_RATIO = 32
"""Most random sequences of each length for global mode."""

_RESIDUES_OF_RATIO = 1 << 17
"""Residues of the random sequences of a length for global mode; longer ones are fewer, but one at least."""


@dataclass(frozen=True)
class Panel:
    """Random sequences of some lengths, ascending.

    Parameters
    ----------
    lengths : tuple of int
        Residues, each once.
    sequences : tuple of int
        How many random sequences of each length there are; each is scored as `COPIES` shuffled copies.
    sample : bytes, optional
        Codes from which sequences are cut, which are scored backwards; by default they are random.
    """

    lengths: tuple[int, ...]
    sequences: tuple[int, ...]
    sample: bytes = b""

    def codes(self) -> list[ByteArray]:
        """Return the random sequences, by length: arrays of shape (length,), uint8.

        Those of a length are cut from one and the same run of random residues, whatever other lengths there are. Of a
        sample, pieces stand for the copies as well; those of one sequence are far from each other in it.
        """
        sequences: list[ByteArray] = []
        for length, n in zip(self.lengths, self.sequences, strict=True):
            if self.sample:
                run = np.frombuffer(self.sample, dtype=np.uint8)
                run = np.resize(run, max(len(run), length))
                starts = np.arange(COPIES * n) * (len(run) - length + 1) // (COPIES * n)
                sequences += [run[begin : begin + length] for begin in starts.reshape(COPIES, n).T.ravel().tolist()]
            else:
                sequences += list(random_codes(length, length * n).reshape(n, length))
        return sequences

    @property
    def copies(self) -> range:
        """Numbers of the copies of each sequence: of a sample, it backwards."""
        return range(-1, 0) if self.sample else range(COPIES)

    @property
    def n_scores(self) -> int:
        """Scores of a query with all copies."""
        return COPIES * sum(self.sequences)

    @property
    def n_residues(self) -> int:
        """Residues of all random sequences, each once."""
        return sum(length * n for length, n in zip(self.lengths, self.sequences, strict=True))

    def split_scores(self, scores: npt.NDArray[np.integer]) -> Sequence[npt.NDArray[np.integer]]:
        """Split the scores of queries by length of the sequences.

        Parameters
        ----------
        scores : ndarray, shape (n_queries, n_scores), integer
            Sequence by sequence in the order of `codes`, copy by copy.

        Returns
        -------
        list of ndarray, shape (n_queries, n_sequences, COPIES), integer
        """
        parts = np.split(scores, COPIES * np.cumsum(self.sequences)[:-1], axis=1)
        return [part.reshape(len(scores), -1, COPIES) for part in parts]


def choose_panel(mode: Mode, query_length: int, sample: bytes = b"") -> Panel:
    """Return the random sequences that a query is scored with.

    Parameters
    ----------
    mode : {"local", "global", "semiglobal"}
        In global mode the lengths follow the query's.
    query_length : int
        Residues, at least 1.
    sample : bytes, optional
        As of `Panel`.
    """
    if mode != "global":
        fixed_lengths, fixed_numbers = zip(*_FIXED, strict=True)
        return Panel(fixed_lengths, fixed_numbers, sample)
    lengths = sorted({max(1, round(query_length * ratio)) for ratio in _RATIOS})
    numbers = tuple(min(max(_RESIDUES_OF_RATIO // n, 1), _OF_EACH_RATIO) for n in lengths)
    return Panel(tuple(lengths), numbers, sample)


@lru_cache(maxsize=64)
def random_codes(seed: int, n: int) -> ByteArray:
    """Return random residues.

    Parameters
    ----------
    seed : int
        At least 0; another seed gives other residues.

    Returns
    -------
    ndarray, shape (n,), uint8
        Codes, the same on every machine.
    """
    of_number = _code_of_number()
    state = _splitmix(np.array([seed], dtype=np.uint64) + (_SEED << np.uint64(32)))
    with np.errstate(over="ignore"):
        states = state + np.arange(1, n + 1, dtype=np.uint64) * _GOLDEN
    drawn = ((_mix(states) >> np.uint64(32)) * np.uint64(len(of_number))) >> np.uint64(32)
    codes: ByteArray = of_number[drawn.astype(np.int64)]
    codes.flags.writeable = False
    return codes


def background() -> FloatArray:
    """Return the frequencies of the amino acids in proteins, in the order of their codes, shape (20,), float64."""
    counts = [_FREQUENCIES[letter] for letter in PROTEIN.letters[: len(_FREQUENCIES)]]
    return np.array(counts, dtype=np.float64) / sum(counts)


@lru_cache(maxsize=1)
def _code_of_number() -> ByteArray:
    """Return the codes, each as often as it occurs in 100,000 residues: a number that is drawn is a place here."""
    counts = [_FREQUENCIES.get(letter, 0) for letter in PROTEIN.letters]
    return np.repeat(np.arange(len(counts), dtype=np.uint8), counts)


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _splitmix(states: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the next value of generators splitmix64 in some states."""
    with np.errstate(over="ignore"):
        return _mix(states + _GOLDEN)


def _mix(states: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return what splitmix64 makes of its state."""
    with np.errstate(over="ignore"):
        mixed = (states ^ (states >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


def probability_of(codes: ByteArray) -> float:
    """Return the probability that random residues equal these codes; ambiguous letters equal any residue.

    Parameters
    ----------
    codes : ndarray, shape (n,), uint8
        Codes of proteins.
    """
    counts = np.bincount(codes, minlength=len(PROTEIN.letters))
    total = sum(_FREQUENCIES.values())
    logs = portable_math.log(np.array([_FREQUENCIES.get(letter, total) / total for letter in PROTEIN.letters]))
    exponent = 0.0
    for count, log in zip(counts.tolist(), logs.tolist(), strict=False):
        exponent += count * log
    return float(portable_math.exp(exponent))
