"""Shared fixtures; every random test prints its seed and case through hypothesis or the assertion message."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from support.fake_gpu import fake_engine
from swsearch.engines.cpu.engine import CpuEngine

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))  # for benchmarks; last, so that the swsearch that is installed is what is tested

settings.register_profile(
    "default", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow], max_examples=60
)
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=2000)
settings.load_profile(os.environ.get("SWSEARCH_HYPOTHESIS", "default"))


@pytest.fixture(scope="session")
def examples() -> Path:
    """Return the folder of the examples that ship with the project."""
    return ROOT / "examples"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of test data that does not ship with the project, or skip."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the shared test data are not here")
    return folder


@pytest.fixture
def gpu(monkeypatch):
    """The GPU engine on the fake device."""
    with fake_engine(monkeypatch) as engine:
        yield engine


@pytest.fixture(scope="module")
def cpu():
    """The CPU engine, itself compared with the reference in test_engines.py."""
    with CpuEngine(2) as engine:
        yield engine
