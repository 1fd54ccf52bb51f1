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

    __slots__ = ("_value", "source")

    def __init__(self, source: Callable[[], T] | None) -> None:
        self.source = source
        self._value: list[T] = []

    @classmethod
    def of_value(cls, value: T) -> Lazy[T]:
        """Return one that has its value."""
        lazy = cls(None)
        lazy.set(value)
        return lazy

    @property
    def is_computed(self) -> bool:
        """Whether the value is cached."""
        return bool(self._value)

    def get(self) -> T:
        """Return the value."""
        source = self.source  # before looking for the value: another thread lets go of it when the value is there
        if not self._value:
            assert source is not None
            self.set(source())
        return self._value[0]

    def set(self, value: T) -> None:
        """Set the value, unless it is set already."""
        if not self._value:
            self._value.append(value)  # where two threads append, both then read the first
        self.source = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Lazy.of_value, (self.get(),)
