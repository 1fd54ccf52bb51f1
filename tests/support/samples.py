"""Sample of many cases, for a quick run; ``pytest --exhaustive`` takes all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

FULL = settings.get_profile("exhaustive").max_examples


def sample(values: Iterable[Any], quick: Callable[[Any], bool]) -> list[Any]:
    """Return parameters for `pytest.mark.parametrize`, tuples for several; those not for a quick run are marked."""

    def marked(value: Any) -> Any:
        several = value if type(value) is tuple else (value,)
        return pytest.param(*several, marks=[pytest.mark.exhaustive])

    return [value if quick(value) else marked(value) for value in values]


def first_of_each(values: Iterable[Any], kind: Callable[[Any], object]) -> list[Any]:
    """Return parameters of which a quick run takes the first of each kind."""
    seen: set[object] = set()

    def first(value: Any) -> bool:
        known = kind(value) in seen
        seen.add(kind(value))
        return not known

    return sample(values, first)


def random_cases(count: int, **options: Any) -> settings:
    """Return settings for so many random cases; a quick run has as much less as where no number is given."""
    return settings(max_examples=max(count * settings.default.max_examples // FULL, 1), **options)


def draw_the_same_everywhere() -> None:
    """Keep hypothesis from drawing numbers and words that it reads in modules of ours that are imported already.

    Which ones are imported depends on the tests that ran before in the same process, and so, without this, would the
    cases of a run that is to be the same every time.
    """
    none = providers.Constants()
    providers._get_local_constants = lambda: none
