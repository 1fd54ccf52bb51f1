"""Every kernel of the study: its whole matrices under the emulation of CUDA, and what compilers make of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import sass
from support.compiled import folder
from support.host_cuda import HostLaunchError
from support.host_machine import HostMachine
from support.samples import first_of_each, sample
from swsearch.bench.study import diagonals
from swsearch.bench.study.checks import LARGER, SMALL, MismatchError, check_variant
from swsearch.bench.study.expected import GAPS
from swsearch.bench.study.machine import STUDY_SOURCES, StudyCompiler, StudyLaunch, open_machine, study_compiler
from swsearch.bench.study.variants import APPROACHES, Variant, all_variants, variants_of
from swsearch.engines.gpu.compiler import Kernel
from swsearch.engines.gpu.device import choose_device
from swsearch.engines.gpu.toolchain import CompilationError, Nvcc, nvcc_places
from swsearch.errors import GpuUnavailableError

REGISTERS = 65_536
"""Of a multiprocessor."""

ENTRIES = {
    "boundary": {"study_boundary"},
    "diagonal_blocks": {"study_diagonal_blocks"},
    "element_diagonals": {"study_warp", "study_block", "study_grid"},
    "skewed": {"study_launch", "study_barrier"},
    "strips": {"study_strip"},
    "inter_task": {"study_inter_task"},
}


def small(variant: Variant) -> Variant:
    """Return a variant for the emulation: few threads, so that small matrices make several blocks or strips."""
    if variant.approach == "inter-task":
        return replace(variant, threads=32, blocks=2)
    if variant.approach == "strips":
        return replace(variant, threads=32, blocks=3)
    return replace(variant, threads=64) if variant.approach == "skewed" else variant


def different() -> list[Variant]:
    """Return one variant for each piece of code: those that differ in the grid alone are left out."""
    found: dict[object, Variant] = {}
    for variant in all_variants():
        found.setdefault((variant.source, variant.constants, variant.mode, variant.launches), variant)
    return list(found.values())


WAITING = [one for one in different() if one.launches == "barrier" or one.approach == "strips"]
"""Variants whose blocks wait for each other."""


def cases() -> list[Any]:
    """Every piece of code with both gap costs; the first of each approach with affine gaps stands for the others."""
    seen: set[str] = set()
    marked = []
    for variant in different():
        for gaps in GAPS:
            kind = variant.approach if gaps == "affine" else gaps
            marks = [pytest.mark.exhaustive] if kind in seen else []
            seen.add(kind)
            marked.append(pytest.param(variant, gaps, marks=marks, id=f"{variant}-{gaps}".replace(" ", "")))
    return marked


@pytest.mark.parametrize(("variant", "gaps"), cases())
def test_every_cell(variant: Variant, gaps: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagonals, "BLOCK", 64)  # so that diagonals of these sizes need all three kernels
    cells = check_variant(HostMachine(), small(variant), gaps, SMALL)
    assert cells > 6_000


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("variant", first_of_each(WAITING, lambda one: one.approach), ids=str)
def test_hand_over_under_shuffled_schedules(variant: Variant, seed: int) -> None:
    cells = check_variant(HostMachine(seed, multiprocessors=5), small(variant), "affine", ((70, 90), (33, 31)))
    assert cells >= 70 * 90 + 33 * 31


def test_sizes_that_are_checked_reach_every_kernel_of_element_diagonals() -> None:
    assert min(LARGER) > diagonals.BLOCK


class SkippingMachine(HostMachine):
    """Leaves a launch out."""

    def kernel(self, code: Kernel, name: str, signature: str, shared_bytes: int = 0) -> StudyLaunch:
        launch = super().kernel(code, name, signature, shared_bytes)
        count = 0

        def sometimes(blocks: int, threads: int, arguments: Sequence[int], stream: Any = None) -> None:
            nonlocal count
            count += 1
            if name == "study_boundary" or count != 3:
                launch(blocks, threads, arguments, stream)

        return sometimes


@pytest.mark.parametrize("approach", ["diagonal-blocks", "skewed"])
def test_a_launch_left_out_is_seen(approach: str) -> None:
    variant = small(variants_of(approach)[0])
    with pytest.raises(MismatchError) as caught:
        check_variant(SkippingMachine(), variant, "affine", ((100, 90),))
    assert str(variant) in str(caught.value)


def test_a_strip_waits_for_the_one_before() -> None:
    with pytest.raises(HostLaunchError, match="deadlock"):
        check_variant(SkippingMachine(), small(variants_of("strips")[0]), "affine", ((200, 90),))


def test_a_wrong_cell_is_named() -> None:
    class Machine(HostMachine):
        def download(self, buffer: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
            data = super().download(buffer, dtype, shape)
            data[3, 2] += 1
            return data

    with pytest.raises(MismatchError, match=r"8x8, global, linear gaps, 5 x 140: H of cell \(3, 2\).*1 of 846 cells"):
        check_variant(Machine(), variants_of("diagonal-blocks")[0], "linear", ((5, 140),))


def test_the_table() -> None:
    variants = all_variants()
    assert len({str(one) for one in variants}) == len(variants)
    assert {one.approach for one in variants} == set(APPROACHES)
    assert {one.source for one in variants} | {"boundary"} == {path.stem for path in STUDY_SOURCES.glob("*.cu")}
    for variant in variants:
        assert variant.threads % 32 == 0 and variant.threads <= 1024, variant


def compiled_kernels(every: bool) -> list[Kernel]:
    chosen = different() if every else [variants_of(approach)[-1] for approach in APPROACHES]
    return list(dict.fromkeys(code for variant in chosen for code in variant.kernels(GAPS if every else ["affine"])))


@pytest.mark.parametrize(
    ("architecture", "every"),
    sample(
        [("sm_90", False), ("sm_90", True), ("sm_80", False), ("sm_120", False)],
        lambda case: case[0] == "sm_90" and not case[1],
    ),
)
def test_every_variant_compiles_within_the_registers(architecture: str, every: bool) -> None:
    try:
        compiler = study_compiler(architecture, None, folder("study"))
    except GpuUnavailableError as error:
        pytest.skip(str(error))
    codes = compiled_kernels(every)
    for code, cubin in zip(codes, compiler.compile_all(codes), strict=True):
        found = sass.resources(cubin)
        assert set(found) == ENTRIES[code.source], f"{architecture} {code}"
        threads = max(one.threads for one in all_variants() if code.source in (one.source, "boundary"))
        for name, needs in found.items():
            assert needs.frame == 0, f"{architecture} {code} {name}: {needs}"
            assert needs.registers * threads <= REGISTERS, f"{architecture} {code} {name}: {needs}"


def test_nvcc_takes_the_sources_too() -> None:
    places = nvcc_places()
    if not places:
        pytest.skip("nvcc was not found")
    compiler = StudyCompiler(Nvcc(places[0]), "sm_90", sources=STUDY_SOURCES, cache_folder=folder("study"))
    try:
        assert all(compiler.compile_all(compiled_kernels(every=False)))
    except CompilationError as error:
        pytest.fail(str(error))


@pytest.mark.parametrize(
    ("kind", "every"), sample([("chosen", False), ("chosen", True), ("nvcc", True)], lambda case: not case[1])
)
def test_no_maximum_tells_which_operand_it_was(kind: str, every: bool) -> None:
    # ptxas 12.9 and 13.0 read that predicate wrongly, so that directions were wrong on a GPU and right in emulation
    if sass.find_disassembler() is None:
        pytest.skip("nvdisasm was not found; pip install nvidia-cuda-nvdisasm")
    places = nvcc_places()
    if kind == "nvcc" and not places:
        pytest.skip("nvcc was not found")
    try:
        compiler = (
            study_compiler("sm_90", None, folder("study"))
            if kind == "chosen"
            else StudyCompiler(Nvcc(places[0]), "sm_90", sources=STUDY_SOURCES, cache_folder=folder("study"))
        )
    except GpuUnavailableError as error:
        pytest.skip(str(error))
    codes = [code for code in compiled_kernels(every) if code.source in ("skewed", "strips")]
    for code, cubin in zip(codes, compiler.compile_all(codes), strict=True):
        for function in sass.disassemble(cubin).values():
            told = [one for one in function.instructions if re.match(r"\w*MNMX\S* U?R\w+, (?:U?PT, )*U?P\d", one)]
            assert not told, f"{code}: {told}"


def test_the_cache_knows_all_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        compiler = study_compiler("sm_90", None, tmp_path)
    except GpuUnavailableError as error:
        pytest.skip(str(error))
    code = variants_of("strips")[0].kernel("affine")
    before = compiler.key(code)
    (tmp_path / "recurrence.cuh").write_text("// another")
    monkeypatch.setattr("swsearch.bench.study.machine.SOURCES", tmp_path)
    assert compiler.key(code) != before


@pytest.mark.gpu
@pytest.mark.parametrize("gaps", GAPS)
def test_every_variant_on_a_gpu(gaps: str) -> None:
    try:
        choose_device(None)
    except GpuUnavailableError as error:
        pytest.skip(str(error))
    with open_machine() as machine:
        machine.compile(list(dict.fromkeys(code for one in all_variants() for code in one.kernels([gaps]))))
        checked = {variant: check_variant(machine, variant, gaps) for variant in all_variants()}
    assert np.all(np.array(list(checked.values())) > 0)
