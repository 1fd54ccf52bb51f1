"""Subjects counted by length, of a list and of runs."""

import numpy as np
import pytest

from swsearch.blocks import RunLengths
from swsearch.statistics.distributions import Lengths


@pytest.mark.parametrize("lengths", [[5, 3, 3, 0], [0, 0], [9], [7, 7, 7], [4, 2, 1, 1]])
def test_runs_are_counted_as_a_list_is(lengths):
    listed, runs = Lengths(np.array(lengths)), Lengths.from_runs(RunLengths.from_lengths(np.array(lengths)))
    assert runs.distinct.tolist() == listed.distinct.tolist() and runs.counts.tolist() == listed.counts.tolist()
    assert runs.distinct.dtype == listed.distinct.dtype and runs.counts.dtype == listed.counts.dtype
    assert runs.n == listed.n == sum(map(bool, lengths))
