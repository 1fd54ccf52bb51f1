"""What tests of a GPU share."""

from collections.abc import Iterator

import pytest

from swsearch.engines.gpu.engine import GpuEngine
from swsearch.errors import GpuUnavailableError


@pytest.fixture
def real_gpu() -> Iterator[GpuEngine]:
    """A GPU engine, or a skip that says why."""
    try:
        engine = GpuEngine()
    except GpuUnavailableError as error:
        pytest.skip(str(error))
    with engine:
        yield engine
