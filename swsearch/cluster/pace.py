"""How long tasks take, and so how long one may take before its worker hangs."""

from __future__ import annotations

import math
from collections.abc import Hashable

FIRST_LIMIT = 3600.0
"""Seconds that a task may take of which nothing is known: it may bring a volume over a network first."""

LEAST_LIMIT = 300.0
"""Seconds that every task may take, however short those before it were."""

GENEROSITY = 20.0
"""How many times longer than expected a task may take."""


class Pace:
    """The longest times of tasks of one worker, by function and size."""

    def __init__(self) -> None:
        self._longest: dict[tuple[Hashable, int], float] = {}

    def add(self, function: Hashable, cells: int, seconds: float) -> None:
        """Take note of a task that ended."""
        kind = function, _size(cells)
        self._longest[kind] = max(self._longest.get(kind, 0.0), seconds)

    def expected(self, function: Hashable, cells: int) -> float | None:
        """Return how many seconds a task should take at most; None if no task of its function is known.

        A larger task takes at most as many times longer as it has more cells, since a part of the time is the same
        for all; a smaller one takes at most as long.
        """
        size = _size(cells)
        known = [
            seconds * 2.0 ** max(size - other, 0)
            for (name, other), seconds in self._longest.items()
            if name == function
        ]
        return min(known, default=None)

    def limit(self, function: Hashable, cells: int) -> float:
        """Return how many seconds a task may take."""
        expected = self.expected(function, cells)
        return FIRST_LIMIT if expected is None else max(LEAST_LIMIT, GENEROSITY * expected)


def _size(cells: int) -> int:
    return math.ceil(math.log2(max(cells, 1)))
