"""Calls of `GpuMachine` to a device, on one of host memory whose kernels the emulation runs."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.fake_gpu import INFO
from support.host_cuda import HostKernel
from support.host_machine import headers
from support.host_pairs import HostCompiler, HostDevice, HostMemory
from swsearch.bench.study import machine as machine_module
from swsearch.bench.study.checks import check_variant
from swsearch.bench.study.machine import POISON, STUDY_SOURCES, GpuMachine, open_machine
from swsearch.bench.study.runner import Settings, run_on
from swsearch.bench.study.timing import Timer
from swsearch.bench.study.variants import APPROACHES, Variant, variants_of
from swsearch.engines.gpu.compiler import Kernel
from swsearch.engines.gpu.device import GpuMemoryError


class AtOnce:
    """Stands for a stream, and for an event: everything is done at once, and an event knows that it was recorded."""

    recorded = False

    def record(self, stream: AtOnce) -> None:
        self.recorded = True

    def wait_for_event(self, event: AtOnce) -> None:
        assert event.recorded

    def synchronize(self) -> None:
        pass

    def time_since(self, other: AtOnce) -> float:
        assert self.recorded and other.recorded
        return 2.5


class StudyDevice(HostDevice):
    """Host memory of which one piece is no larger than ``largest``."""

    largest = 1 << 30

    def stream(self) -> AtOnce:
        return AtOnce()

    def event(self, timing: bool = False) -> AtOnce:
        return AtOnce()

    def allocate(self, n_bytes: int) -> HostMemory:
        assert n_bytes % 4 == 0
        if n_bytes > self.largest:
            raise GpuMemoryError(f"no {n_bytes} bytes")
        return super().allocate(n_bytes)

    def pinned(self, n_bytes: int) -> Any:
        return np.zeros(n_bytes, np.uint8)

    def download_async(self, pinned: Any, address: int, stream: AtOnce) -> None:
        assert pinned.flags.c_contiguous
        self.download(pinned, address)

    def close(self) -> None:
        assert self.depth == 0


class HostFunction:
    """Stands for `swsearch.engines.gpu.device.Function`."""

    def __init__(self, module: Kernel, name: str, signature: str, shared_bytes: int = 0) -> None:
        assert shared_bytes <= INFO.shared_limit
        source = STUDY_SOURCES / f"{module.source}.cu"
        self._kernel = HostKernel(source, name, signature, dict(module.defines), Path(headers().name))
        self._signature, self._shared = signature, shared_bytes

    def launch(self, blocks: int, threads: int, stream: AtOnce, arguments: Sequence[int]) -> None:
        assert isinstance(stream, AtOnce)
        letters = zip(self._signature, arguments, strict=True)
        values = [value or None if letter == "P" else value for letter, value in letters]
        self._kernel.launch(blocks, threads, values, self._shared)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[GpuMachine]:
    def fill(address: int, word: int, count: int, stream: AtOnce) -> None:
        assert isinstance(stream, AtOnce)
        np.ctypeslib.as_array((ctypes.c_uint32 * count).from_address(address))[:] = word

    monkeypatch.setattr(machine_module, "choose_device", lambda index: INFO)
    monkeypatch.setattr(machine_module, "Device", StudyDevice)
    monkeypatch.setattr(machine_module, "Function", HostFunction)
    monkeypatch.setattr(machine_module, "study_compiler", lambda *_: HostCompiler())
    monkeypatch.setattr(machine_module, "driver", lambda: SimpleNamespace(memset_d32_async=fill))
    with open_machine() as opened:
        yield opened


def small(approach: str) -> Variant:
    variant = variants_of(approach)[0]
    return replace(variant, threads=32, blocks=2) if approach in ("strips", "inter-task") else variant


@pytest.mark.parametrize("approach", APPROACHES)
def test_every_approach(machine: GpuMachine, approach: str) -> None:
    variant = small(approach)
    machine.compile(variant.kernels(["affine"]))
    assert check_variant(machine, variant, "affine", ((40, 50),)) > 0
    if approach != "inter-task":
        assert Timer(machine).pair(variant, "affine", 64, 1).runs == [0.0025] * 3


def test_fresh_memory_is_poisoned(machine: GpuMachine) -> None:
    buffer = machine.allocate(10)
    assert machine.download(buffer, np.uint8, (10,)).tolist() == [POISON & 0xFF] * 10


def test_streams_are_kept(machine: GpuMachine) -> None:
    first = machine.streams(2)
    assert machine.streams(3)[:2] == first and len(machine.streams(1)) == 1


def test_what_does_not_fit_the_memory_is_skipped(machine: GpuMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StudyDevice, "largest", 1_000)
    found = run_on(machine, Settings(["element-diagonals"], (64,), ("linear",), check_only=True), lambda _: None)
    assert not found.checks and len(found.skipped) == 2
    assert "no 2" in found.skipped[0]
