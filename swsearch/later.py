"""A value that is found when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """A value that is found when it is first asked for, or handed in before that, and then kept.

    Pickling finds it and pickles the value alone.

    Parameters
    ----------
    source : callable
        Finds the value; may hold what is needed to find several values at a time.
    """

    __slots__ = ("_found", "source")

    def __init__(self, source: Callable[[], T]) -> None:
        self.source = source
        self._found: list[T] = []

    @classmethod
    def known(cls, value: T) -> Later[T]:
        """Return one that has its value."""
        made = cls(lambda: value)
        made.give(value)
        return made

    @property
    def is_known(self) -> bool:
        """Whether asking costs nothing."""
        return bool(self._found)

    def get(self) -> T:
        """Return the value."""
        if not self._found:
            self.give(self.source())
        return self._found[0]

    def give(self, value: T) -> None:
        """Hand in the value; the first one is kept."""
        self._found = self._found or [value]

    def __reduce__(self) -> tuple[Any, ...]:
        return Later.known, (self.get(),)
