"""The table of kernel arguments against the sources in cuda/, and what a launch does with arguments by name."""

from __future__ import annotations

from pathlib import Path
from struct import calcsize
from typing import Any

import pytest

from support.cuda_sources import kernel_parameters
from swsearch.engines.gpu.compiler import SOURCES
from swsearch.engines.gpu.kernels import ALL, KernelArguments, LoadedKernel

TABLES = sorted(ALL.values(), key=lambda table: table.kernel)
FEW = KernelArguments("swsearch_few", "few", (("residues", "P"), ("n", "i"), ("one", "I")))


def test_the_table_has_every_kernel_in_its_source() -> None:
    found = {(path.stem, kernel) for path in SOURCES.glob("*.cu") for kernel in kernel_parameters(path)}
    assert found == {(table.source, table.kernel) for table in TABLES}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.kernel)
def test_the_table_is_that_of_the_source(table: KernelArguments) -> None:
    written = kernel_parameters(SOURCES / f"{table.source}.cu")[table.kernel]
    assert list(table.table) == written
    assert table.signature == "".join(kind for _, kind in written)
    assert len(set(table.names)) == len(table.names)
    assert calcsize(table.signature) < 4096, "what CUDA takes"


def test_parameters_are_read_whatever_they_look_like(tmp_path: Path) -> None:
    source = tmp_path / "some.cu"
    source.write_text(
        'extern "C" __global__ void __launch_bounds__(kWarps* 32, 1) one(\n'
        "    const uint2* __restrict__ residues,  // (n, 64): a comment, with (brackets)\n"
        "    int n, long long stride, u32 /* inside */ one, unsigned long long words, float4 *to) {\n}\n"
        'extern "C" __global__ void other(int*out) {}\n'
    )
    assert kernel_parameters(source) == {
        "one": [("residues", "P"), ("n", "i"), ("stride", "q"), ("one", "I"), ("words", "Q"), ("to", "P")],
        "other": [("out", "P")],
    }


class Recorder:
    """Stands for `swsearch.engines.gpu.device.Function`."""

    def __init__(self) -> None:
        self.launches: list[Any] = []

    def launch(self, *given: Any) -> None:
        self.launches.append(given)


def test_arguments_are_launched_in_the_kernels_order() -> None:
    recorder = Recorder()
    LoadedKernel(recorder, FEW).launch(3, 64, "stream", one=1, n=7, residues=4096)  # type: ignore[arg-type]
    assert recorder.launches == [(3, 64, "stream", (4096, 7, 1))]
    assert FEW.by_name((4096, 7, 1)) == {"residues": 4096, "n": 7, "one": 1}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n": 1, "one": 1}, r"arguments of swsearch_few: missing \['residues'\], unknown \[\]"),
        ({"n": 1, "one": 1, "residues": 0, "m": 2}, r"missing \[\], unknown \['m'\]"),
        ({"n": 1, "one": 1, "residue": 0}, r"missing \['residues'\], unknown \['residue'\]"),
        ({}, r"missing \['residues', 'n', 'one'\], unknown \[\]"),
    ],
)
def test_a_missing_or_unknown_argument_is_an_error(given: dict[str, int], message: str) -> None:
    recorder = Recorder()
    with pytest.raises(TypeError, match=message):
        LoadedKernel(recorder, FEW).launch(1, 32, None, **given)  # type: ignore[arg-type]
    assert not recorder.launches
