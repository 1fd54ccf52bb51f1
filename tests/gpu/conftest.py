"""Shared fixtures of GPU tests."""

from collections.abc import Iterator

import pytest

from swsearch.engines.gpu.engine import GpuEngine
from swsearch.errors import GpuUnavailableError


@pytest.fixture(scope="session")
def has_gpu() -> None:
    """Skip, and say why, without a GPU; what is only made for one asks for this first."""
    try:
        GpuEngine().close()
    except GpuUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def real_gpu(has_gpu: None) -> Iterator[GpuEngine]:
    """A GPU engine, or a skip that says why."""
    with GpuEngine() as engine:
        yield engine
