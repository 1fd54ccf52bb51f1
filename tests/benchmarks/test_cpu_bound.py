"""The model of the CPU engine's inner loop finds the sources and the machine code that it counts."""

from __future__ import annotations

import pytest

from benchmarks.speed import cpu_bound
from swsearch import extension


@pytest.mark.parametrize("instructions", cpu_bound.BITS)
def test_every_instruction_set_has_a_header_that_says_its_columns(instructions: str) -> None:
    assert cpu_bound._columns(instructions) > 0


def test_the_inner_loop_has_the_mix_of_a_cell() -> None:
    if reason := cpu_bound.why_not():
        pytest.skip(reason)
    for name in set(extension.instruction_sets()) - {"scalar"}:
        loop = cpu_bound.count_loop(name)
        if loop is None:
            pytest.skip("the extension has no symbols")
        sums = loop.kinds["sum"]
        assert sums >= loop.columns, name
        assert (loop.kinds["difference"], loop.kinds["maximum"]) == (3 * sums, 6 * sums), name
