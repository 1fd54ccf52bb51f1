"""Queries that have no relatives, for `calibration.py`: five classes of them, drawn from Swiss-Prot.

Only proteins of the twenty usual residues are drawn. Another seed gives other queries.
"""

from __future__ import annotations

import math
import random
from collections import Counter

from benchmarks.support.common import Records

USUAL = frozenset("ACDEFGHIKLMNPQRSTVWY")

BIASED_OF = 20
"""Of so many proteins drawn for each biased query, the one in so many of least entropy is taken: the lowest 5 %."""

CLASSES = {
    "shuffled": "proteins of 100 to 600 residues, their residues shuffled",
    "reversed": "the same proteins, backwards, which keeps runs of few kinds of residues",
    "short": "the first 15 to 40 residues of such shuffled proteins",
    "long": "proteins of 1,500 to 3,000 residues, shuffled",
    "biased": (
        "of 100 to 600 residues, shuffled: those whose composition has the least entropy, "
        f"one in {BIASED_OF} of what is drawn"
    ),
}
"""What each class is, by name."""


def entropy(letters: str) -> float:
    """Return the entropy of a sequence's composition, in bits per residue."""
    return -sum(n / len(letters) * math.log2(n / len(letters)) for n in Counter(letters).values())


def usual_proteins(proteins: Records, shortest: int, longest: int) -> Records:
    """Return the proteins of some lengths that have only the twenty usual residues."""
    return [each for each in proteins if shortest <= len(each[1]) <= longest and USUAL.issuperset(each[1])]


def shuffled(letters: str, chance: random.Random) -> str:
    """Return a sequence of the same residues."""
    return "".join(chance.sample(letters, len(letters)))


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
        "long": [(name, shuffled(letters, chance)) for name, letters in long],
        "biased": [(name, shuffled(letters, chance)) for name, letters in biased],
    }
