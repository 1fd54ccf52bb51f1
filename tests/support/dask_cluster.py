"""One small Dask cluster that the tests of a folder share, in this process."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="package")
def dask_client() -> Iterator[Any]:
    """A client of two workers that are threads of this process."""
    distributed = pytest.importorskip("distributed")
    options = {"processes": False, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    here = {"dashboard_address": "127.0.0.1:0"}
    without_profiler = {"distributed.worker.profile.enabled": False}  # Python 3.11 can hang in it: cpython #106883
    with (
        pytest.importorskip("dask").config.set(without_profiler),
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, scheduler_kwargs=here, **options) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        gc = pytest.importorskip("distributed.gc")
        gc.disable_gc_diagnosis(force=True)  # a Ctrl-C of another test, while it looks at the time, would be lost
        yield client
