"""Queries whose hits are chance, for `calibration.py` and `chance_profiles.py`: classes of them, from Swiss-Prot.

Some are made so that they have no relatives. Others are real proteins with a pattern, and the subjects are
backwards: reversed proteins keep composition and periodic patterns, and are related to nothing. Only proteins of the
twenty usual residues are drawn. Another seed gives other queries.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from benchmarks.support.common import Records
from swsearch.results import SearchResult

USUAL = frozenset("ACDEFGHIKLMNPQRSTVWY")

BIASED_OF = 20
"""Of so many proteins drawn for each biased query, the one in so many of least entropy is taken: the lowest 5 %."""

CLASSES = {
    "shuffled": "proteins of 100 to 600 residues, their residues shuffled",
    "reversed": "the same proteins, backwards, which keeps runs of few kinds of residues",
    "short": "the first 15 to 40 residues of such shuffled proteins",
    "peptides": "the first 8 to 14 residues of such shuffled proteins",
    "long": "proteins of 1,500 to 3,000 residues, shuffled",
    "biased": (
        "of 100 to 600 residues, shuffled: those whose composition has the least entropy, "
        f"one in {BIASED_OF} of what is drawn"
    ),
}
"""Descriptions of the classes of queries without relatives, by name."""

PATTERNS = {
    "coiled": "half of the residues or more, and 100 at least, in heptads of coiled coils (`coiled_residues`)",
    "collagen": "20 triplets or more in a row that begin with glycine",
    "low entropy": "10 windows of 24 residues or more, 6 apart, of less than 2.2 bits; no collagen",
    "poly-X": "12 or more times the same residue in a row",
    "transmembrane": "150 to 800 residues, with 7 stretches of 19 or more of a mean hydropathy of at least 1.6",
    "acidic": "100 to 600 residues, a quarter of them or more D or E",
    "proteins": "any, of 100 to 600 residues",
}
"""Descriptions of the classes of real proteins, by name: 60 to 2,000 residues, searched in reversed subjects."""

HYDROPATHY = dict(zip("ARNDCQEGHILKMFPSTWYV", (
    1.8, -4.5, -3.5, -3.5, 2.5, -3.5, -3.5, -0.4, -3.2, 4.5, 3.8, -3.9, 1.9, 2.8, -1.6, -0.8, -0.7, -0.9, -1.3, 4.2,
), strict=True))  # fmt: skip
"""Kyte and Doolittle, J. Mol. Biol. 157:105, 1982."""


def entropy(letters: str) -> float:
    """Return the entropy of a sequence's composition, in bits per residue."""
    return -sum(n / len(letters) * math.log2(n / len(letters)) for n in Counter(letters).values())


def usual_proteins(proteins: Records, shortest: int, longest: int) -> Records:
    """Return the proteins of some lengths that have only the twenty usual residues."""
    return [each for each in proteins if shortest <= len(each[1]) <= longest and USUAL.issuperset(each[1])]


def shuffled(letters: str, chance: random.Random) -> str:
    """Return a sequence of the same residues."""
    return "".join(chance.sample(letters, len(letters)))


def _windows(values: npt.NDArray[np.float64], width: int) -> npt.NDArray[np.float64]:
    """Return the sums of all windows, shape (n - width + 1,) or (0,)."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    found: npt.NDArray[np.float64] = sums[width:] - sums[:-width]
    return found


def coiled_residues(letters: str) -> int:
    """Count the residues in windows of 28 that are heptads of a coiled coil in one of the seven phases.

    Their first and fourth places are hydrophobic, the others charged or polar, and none is proline.
    """
    codes = np.frombuffer(letters.encode(), dtype=np.uint8)
    core, inner, polar = (np.isin(codes, list(kinds.encode())) for kinds in ("ILVMF", "YA", "EKRDQNS"))
    breaks = _windows((codes == ord("P")) + 0.5 * (codes == ord("G")), 28)
    heptads = np.zeros(len(breaks), dtype=bool)
    for phase in range(7):
        inside = np.isin((np.arange(len(codes)) - phase) % 7, (0, 3))
        likeness = np.where(inside, (core + 0.5 * inner) / 8, (0.5 * polar - 1.0 * core) / 20)
        heptads |= (_windows(likeness, 28) >= 0.8) & (breaks < 1)
    return int(np.count_nonzero(np.convolve(heptads, np.ones(28)) > 0)) if len(heptads) else 0


def transmembrane_stretches(letters: str) -> int:
    """Count the stretches of 19 residues that are hydrophobic on average, side by side."""
    means = _windows(np.array([HYDROPATHY[letter] for letter in letters]), 19) / 19
    found, place = 0, 0
    while place < len(means):
        place, found = (place + 19, found + 1) if means[place] >= 1.6 else (place + 1, found)
    return found


def _is_collagen(letters: str) -> bool:
    return re.search("(?:G..){20}", letters) is not None


def _is_low(letters: str) -> bool:
    low = sum(entropy(letters[place : place + 24]) < 2.2 for place in range(0, len(letters) - 23, 6))
    return low >= 10 and not _is_collagen(letters)


_HAS: dict[str, Callable[[str], bool]] = {
    "coiled": lambda letters: coiled_residues(letters) >= max(100, len(letters) / 2),
    "collagen": _is_collagen,
    "low entropy": _is_low,
    "poly-X": lambda letters: re.search(r"(.)\1{11}", letters) is not None,
    "transmembrane": lambda letters: 150 <= len(letters) <= 800 and transmembrane_stretches(letters) >= 7,
    "acidic": lambda letters: 100 <= len(letters) <= 600 and sum(map(letters.count, "DE")) >= len(letters) / 4,
    "proteins": lambda letters: 100 <= len(letters) <= 600,
}


def draw_patterns(proteins: Records, first: int, seed: int) -> dict[str, Records]:
    """Draw so many proteins of each class of `PATTERNS`, or as many as there are; as `draw_classes` does."""
    order = usual_proteins(proteins, 60, 2000)
    random.Random(seed).shuffle(order)
    drawn: dict[str, Records] = {kind: [] for kind in PATTERNS}
    for record in order:
        for kind, has in _HAS.items():
            if len(drawn[kind]) < first and has(record[1]):
                drawn[kind].append(record)
        if all(len(records) == first for records in drawn.values()):
            break
    return drawn


def draw_classes(proteins: Records, first: int, n_long: int, seed: int) -> dict[str, Records]:
    """Draw so many queries of each class.

    Parameters
    ----------
    proteins : list of (str, str)
        Swiss-Prot, or other proteins.
    first, n_long : int
        Queries of each class, and of the long ones, which cost as much as all others.
    seed : int
        Whatever else, the same queries are drawn of the same proteins.
    """
    chance = random.Random(seed)
    middle, large = usual_proteins(proteins, 100, 600), usual_proteins(proteins, 1500, 3000)
    drawn, others = chance.sample(middle, first), chance.sample(middle, first)
    long = chance.sample(large, n_long)
    biased = sorted(chance.sample(middle, BIASED_OF * first), key=lambda each: entropy(each[1]))[:first]
    return {
        "shuffled": [(name, shuffled(letters, chance)) for name, letters in drawn],
        "reversed": [(name, letters[::-1]) for name, letters in drawn],
        "short": [(name, shuffled(letters, chance)[: chance.randint(15, 40)]) for name, letters in others],
        "peptides": [(name, shuffled(letters, chance)[: chance.randint(8, 14)]) for name, letters in others],
        "long": [(name, shuffled(letters, chance)) for name, letters in long],
        "biased": [(name, shuffled(letters, chance)) for name, letters in biased],
    }


LEVELS = (0.001, 0.01, 0.1, 1.0, 10.0)
COLUMNS = ["searches", *(f"E <= {level:g}" for level in LEVELS), "error at 1", "most"]
"""Heads of the columns that `cells` returns."""


def counts_of(results: Iterable[SearchResult]) -> npt.NDArray[np.int64]:
    """Count the hits of each query at each of `LEVELS`, shape (n_queries, n_levels)."""
    evalues = (np.array([hit.evalue for hit in result.hits], dtype=np.float64) for result in results)
    return np.array([[int((each <= level).sum()) for level in LEVELS] for each in evalues])


def cells(counts: npt.NDArray[np.int64]) -> list[str]:
    """Return the last cells of a row: queries, hits per query at each level, the error at 1, and the most at 1."""
    at_one = counts[:, LEVELS.index(1.0)]
    error = float(at_one.std(ddof=1)) / math.sqrt(len(at_one)) if len(at_one) > 1 else math.nan
    means = (f"{mean:.3g}" for mean in counts.mean(axis=0))
    return [f"{len(counts):,}", *means, f"{error:.2g}", str(at_one.max())]
