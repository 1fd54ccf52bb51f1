"""A lazy value: computed on first access, or set before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """A lazy value: computed on first access, or set before, and then cached.

    Pickling finds it and pickles the value alone. Several threads may ask: all get the same value.

    Parameters
    ----------
    source : callable
        Finds the value; may hold what is needed to find several values at a time. Let go when the value is there.
    """

    __slots__ = ("_found", "source")

    def __init__(self, source: Callable[[], T] | None) -> None:
        self.source = source
        self._found: list[T] = []

    @classmethod
    def known(cls, value: T) -> Lazy[T]:
        """Return one that has its value."""
        made = cls(None)
        made.give(value)
        return made

    @property
    def is_known(self) -> bool:
        """Whether the value is cached."""
        return bool(self._found)

    def get(self) -> T:
        """Return the value."""
        source = self.source  # before looking for the value: another thread lets go of it when the value is there
        if not self._found:
            assert source is not None
            self.give(source())
        return self._found[0]

    def give(self, value: T) -> None:
        """Set the value, unless it is set already."""
        if not self._found:
            self._found.append(value)  # where two threads append, both then read the first
        self.source = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Lazy.known, (self.get(),)
