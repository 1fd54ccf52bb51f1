"""Shuffled copies, one residue after the other: what ``cpu/shuffle/shuffle.cpp`` is compared with."""

import numpy as np

MASK = (1 << 64) - 1


class Splitmix:
    """The generator splitmix64."""

    def __init__(self, state):
        self.state = state & MASK

    def next(self):
        """Return 64 random bits."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        mixed = self.state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        return mixed ^ (mixed >> 31)

    def below(self, limit):
        """Return a whole number from 0 to below a limit."""
        return ((self.next() >> 32) * limit) >> 32


def shuffled(codes, copy, window):
    """Return a copy of codes, shape (n,), uint8, with each window's residues in random order.

    Copy -1 is reversed, copy -2 unchanged.
    """
    if copy == -2:
        return codes
    if copy == -1:
        return np.ascontiguousarray(codes[::-1])
    seed = 0xCBF29CE484222325
    for code in codes.tolist():
        seed = ((seed ^ code) * 0x100000001B3) & MASK
    random = Splitmix(seed + copy * 0xD1342543DE82EF95)
    found = codes.copy()
    for start in range(0, len(codes), window):
        for k in range(min(start + window, len(codes)) - 1, start, -1):
            other = start + random.below(k - start + 1)
            found[k], found[other] = found[other], found[k]
    return np.asarray(found)
