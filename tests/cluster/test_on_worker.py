"""What a worker of Dask does around its tasks."""

import os
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy as np
from swsearch.cluster.on_worker import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(200):
        np.ones(512 << 10, dtype=np.int8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = faults()
keep_freed_memory()
faults()
print(first, faults())
"""
"""Prints how many pages the system gave for 200 arrays of 128 pages each, before and after."""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such setting")
@pytest.mark.parametrize(("trim", "is_kept"), [("65536", True), ("131072", False)])
def test_what_a_task_frees_is_kept_for_the_next_one_unless_the_user_set_something(trim, is_kept):
    environment = {**os.environ, "MALLOC_TRIM_THRESHOLD_": trim}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    before, after = map(int, done.stdout.split())
    assert before > 150 * 128
    assert (after < 10 * 128) == is_kept, (before, after)
