"""Where the queries of an iterated search come from: new groups of them, and those that come back for more."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from swsearch.pipeline import groups
from swsearch.pipeline.batch import QueryState
from swsearch.pipeline.prefetch import Stopped

GROUPS_AT_ONCE = 3
"""Groups of queries that are begun and whose results are not yet taken: one is scored, one rated, and one makes its
profiles. More would only take more memory."""


class Rounds:
    """Hands out queries, those that came back first, and begins new groups while few are under way.

    Any thread may call; only `take` waits.

    Parameters
    ----------
    groups : iterator of list
        New queries, in order; used by whoever calls `take`.
    most : int or None
        Queries that are handed out together at most.
    """

    def __init__(self, groups: Iterator[list[QueryState]], most: int | None = None) -> None:
        self._groups, self._most = groups, most
        self._changed = threading.Condition()
        self._waiting: list[QueryState] = []
        self._ends: list[int] = []
        self._under_way = self._begun = 0
        self._is_closed = self._has_all = False

    def take(self) -> list[QueryState]:
        """Wait for queries that can be searched with now; none after the last."""
        while True:
            with self._changed:
                self._changed.wait_for(self._has_something)
                if self._is_closed:
                    raise Stopped
                if self._waiting:
                    return self._returned()
                if self._has_all:
                    return []
            group = next(self._groups, None)
            with self._changed:
                if group is None:
                    self._has_all = True
                    continue
                self._begun += len(group)
                self._under_way += len(group)
                self._ends.append(self._begun)
                return group

    def give_back(self, turns: Sequence[QueryState], n_ended: int) -> None:
        """Take queries back for another iteration, and note that others have ended."""
        with self._changed:
            self._waiting += turns
            self._under_way -= n_ended
            self._changed.notify_all()

    def passed_on(self, place: int) -> None:
        """Note that the results of all queries before a place were passed on."""
        with self._changed:
            self._ends = [end for end in self._ends if end > place]
            self._changed.notify_all()

    def close(self) -> None:
        """Let nobody wait any more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _has_something(self) -> bool:
        may_begin = not self._has_all and len(self._ends) < GROUPS_AT_ONCE
        return bool(self._is_closed or self._waiting or may_begin or (self._has_all and not self._under_way))

    def _returned(self) -> list[QueryState]:
        """Return those that came back, the first ones first, as many as are scored together."""
        self._waiting.sort(key=lambda turn: turn.place)
        rows = n = 0
        for turn in self._waiting:
            if n and (rows + len(turn) > groups.GROUP_RESIDUES or n == self._most):
                break
            rows, n = rows + len(turn), n + 1
        taken, self._waiting = self._waiting[:n], self._waiting[n:]
        return taken
