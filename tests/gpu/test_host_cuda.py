"""The emulation of `host_cuda`, and the kernels of cuda/ on it, against `swsearch.reference` and the CPU engine."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from support.cases import check, draw, make_chunk, plan_of, random_profile, scores_of
from support.fake_gpu import launched
from support.host_cuda import HostKernel, HostLaunchError, rewrite
from support.host_gpu import host_engine
from support.samples import sample
from swsearch import reference
from swsearch.engines.gpu import launch, queries, tracks, variants
from swsearch.engines.gpu.compiler import SOURCES
from swsearch.options.kinds import MODES
from swsearch.scoring import QueryProfile, Scoring

BATCHED, WAVEFRONT = 10**9, 0
SEEDS = pytest.mark.parametrize("seed", [0, 1, 2])
MANY_SEEDS = pytest.mark.parametrize("seed", range(8))

Build = Callable[[str, str], HostKernel]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Return a function that makes a kernel ``test`` of a signature and a body; its first argument is ``out``."""

    def make(parameters: str, body: str) -> HostKernel:
        source = tmp_path / "test.cu"
        source.write_text(
            '#include "recurrence.cuh"\n'
            f'extern "C" __global__ void test({parameters}) {{\n'
            "  const int lane = threadIdx.x % 32, thread = blockIdx.x * blockDim.x + threadIdx.x;\n"
            f"{body}\n}}\n"
        )
        letters = {"int*": "P", "int": "i", "u32": "I", "long": "q", "unsigned": "Q"}
        signature = "".join(letters[part.split()[0]] for part in parameters.split(", "))
        return HostKernel(source, "test", signature, {"UNUSED": 1}, SOURCES)

    return make


# the emulation


@SEEDS
def test_shuffles_and_votes(build: Build, seed: int) -> None:
    kernel = build(
        "int* out",
        """
  const int value = 100 * (thread / 32) + lane;
  const u32 odd = 0xaaaaaaaau, even = ~odd;
  int* to = out + thread * 8;
  to[0] = __shfl_sync(kAllLanes, value, 33);
  to[1] = __shfl_up_sync(kAllLanes, value, 2);
  to[2] = __shfl_down_sync(kAllLanes, value, 2, 8);
  to[3] = __shfl_xor_sync(kAllLanes, value, 5);
  to[4] = (int)__ballot_sync(kAllLanes, lane % 3 == 0);
  to[5] = __any_sync(kAllLanes, lane == 9) * 2 + __all_sync(kAllLanes, lane != 9);
  if (lane & 1) to[6] = __shfl_sync(odd, value, 7);
  else to[6] = __shfl_sync(even, value, 4);
  to[7] = (int)(__shfl_sync(kAllLanes, (long long)value << 40, 3) >> 40);
""",
    )
    out = np.zeros((2, 64, 8), np.int32)
    kernel.launch(2, 64, [out], seed=seed)
    lane, base = np.arange(128) % 32, np.arange(128) // 32 * 100
    expected = np.stack([
        base + 1,
        base + np.where(lane < 2, lane, lane - 2),
        base + np.where(lane % 8 >= 6, lane, lane + 2),
        base + (lane ^ 5),
        np.full(128, sum(1 << i for i in range(0, 32, 3)), np.uint32).view(np.int32),
        np.full(128, 2),
        base + np.where(lane % 2, 7, 4),
        base + 3,
    ])  # fmt: skip
    np.testing.assert_array_equal(out.reshape(128, 8), expected.T)


@SEEDS
def test_shared_memory_and_barriers_are_a_blocks_own(build: Build, seed: int) -> None:
    kernel = build(
        "int* out, int n",
        """
  extern __shared__ __align__(16) u32 words[];
  __shared__ int total;
  __shared__ int unused[3][4];
  if (threadIdx.x == 0) total = blockIdx.x;
  unused[2][3] = 7;
  words[threadIdx.x] = thread;
  for (int i = 0; i < n; ++i) {
    __syncthreads();
    const u32 next = words[(threadIdx.x + 1) % blockDim.x];
    __syncthreads();
    words[threadIdx.x] = next;
  }
  atomicAdd(&total, 1);
  if (threadIdx.x >= 64) return;  // the barrier goes on without these
  __syncthreads();
  while (atomicAdd(&total, 0) < (int)blockDim.x) {}
  out[thread] = 1000 * total + words[threadIdx.x];
""",
    )
    out = np.zeros(3 * 96, np.int32)
    kernel.launch(3, 96, [out, 5], shared_bytes=4 * 96, seed=seed)
    block, thread = np.arange(288) // 96, np.arange(288) % 96
    expected = np.where(thread < 64, 1000 * (96 + block) + block * 96 + (thread + 5) % 96, 0)
    np.testing.assert_array_equal(out, expected)


HAND_OVER = """
  // blocks in a row: each takes numbers from the one before and gives them on, as lanes of a warp
  for (int i = 1; i <= n; ++i) {
    if (blockIdx.x > 0) {
      while (load_acquire(flags + blockIdx.x - 1) < i) __nanosleep(20);
      __syncwarp();
    }
    const int value = blockIdx.x > 0 ? __ldcg(data + (blockIdx.x - 1) * 32 * n + (i - 1) * 32 + lane) : i * lane;
    __stcg(data + blockIdx.x * 32 * n + (i - 1) * 32 + lane, value + 1);
    SYNC;
    if (lane == 0) store_release(flags + blockIdx.x, i);
  }
"""


@MANY_SEEDS
def test_blocks_hand_over(build: Build, seed: int) -> None:
    kernel = build("int* flags, int* data, int n", HAND_OVER.replace("SYNC", "__syncwarp()"))
    flags, data = np.zeros(5, np.int32), np.zeros((5, 20, 32), np.int32)
    kernel.launch(5, 32, [flags, data, 20], seed=seed)
    expected = np.outer(np.arange(1, 21), np.arange(32)) + np.arange(1, 6)[:, None, None]
    np.testing.assert_array_equal(data, expected)


def test_a_missing_barrier_shows(build: Build) -> None:
    kernel = build("int* flags, int* data, int n", HAND_OVER.replace("SYNC", ""))
    expected = np.outer(np.arange(1, 21), np.arange(32)) + np.arange(1, 6)[:, None, None]
    wrong = 0
    for seed in range(8):
        flags, data = np.zeros(5, np.int32), np.zeros((5, 20, 32), np.int32)
        kernel.launch(5, 32, [flags, data, 20], seed=seed)
        wrong += not np.array_equal(data, expected)
    assert wrong, "8 schedules, and none showed that lane 0 does not wait for the others"


@SEEDS
def test_atomics(build: Build, seed: int) -> None:
    kernel = build(
        "int* out, u32 step, long big, unsigned long bigger",
        """
  atomicAdd(out, (int)step);
  atomicMax(out + 1, thread);
  atomicMin(out + 2, -thread);
  atomicOr(out + 3, 1 << lane);
  if (lane == 0) {
    while (atomicCAS(out + 4, 0, 1) != 0) {}
    const int old = __ldcg(out + 5);
    __nanosleep(10);
    __stcg(out + 5, old + 1);
    __threadfence();
    atomicExch(out + 4, 0);
  }
  if (thread == 0) out[6] = (int)(big >> 32), out[7] = (int)(bigger >> 60);
""",
    )
    out = np.zeros(8, np.int32)
    kernel.launch(4, 96, [out, 3, -(5 << 32), 9 << 60], seed=seed)
    assert out.tolist() == [3 * 384, 383, -383, -1, 0, 12, -5, 9]


@SEEDS
def test_a_deadlock_is_told(build: Build, seed: int) -> None:
    kernel = build(
        "int* flag",
        """
  if (blockIdx.x == 0) { while (load_acquire(flag) != 8) {} }
  if (lane < 5) __syncthreads(); else __syncwarp();
""",
    )
    flag = np.full(1, 7, np.int32)
    with pytest.raises(HostLaunchError) as caught:
        kernel.launch(2, 32, [flag], seed=seed)
    text = str(caught.value)
    assert f"test, seed {seed}: deadlock" in text
    assert f"polls in load_acquire, {flag.ctypes.data:#x}, where it saw 7" in text
    assert "block 1, threads 0 to 4: waits at __syncthreads" in text
    assert "block 1, threads 5 to 31: waits in __syncwarp (mask ffffffff) for lanes 0000001f" in text


def test_mistakes_are_told(build: Build) -> None:
    kernel = build("int* out, int n", "  extern __shared__ int words[]; words[n] = lane; if (n > 99) __syncwarp(1);")
    out = np.zeros(1, np.int32)
    with pytest.raises(HostLaunchError, match="block 0 wrote behind its 40 bytes of shared memory, at byte 40"):
        kernel.launch(1, 32, [out, 10], shared_bytes=40)
    with pytest.raises(HostLaunchError, match="thread 1: __syncwarp with a mask that the calling lane is not in"):
        kernel.launch(1, 32, [None, 100], shared_bytes=404)
    with pytest.raises(HostLaunchError, match="whole warps"):
        kernel.launch(1, 33, [out, 1])
    with pytest.raises(HostLaunchError, match="1 arguments for signature Pi"):
        kernel.launch(1, 32, [out])
    other = HostKernel(SOURCES / "scores.cu", "swsearch_arrange", "Pi", {}, SOURCES)
    with pytest.raises(HostLaunchError, match="argument 1 has 8 bytes, in the signature 4"):
        other.launch(1, 32, [out, 0])


def test_rewriting_keeps_lines() -> None:
    text = "__shared__ __align__(16) unsigned char\n  tiles[4][kTile * 2];\nwhile (*counter < (value)) {\n}\n"
    changed = rewrite(text)
    assert changed.count("\n") == text.count("\n")
    assert "static_shared<unsigned char[4][kTile * 2], __COUNTER__>" in changed
    assert "idle()" in changed.splitlines()[2]


# the kernels


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("rows", sample([4, 8], lambda rows: rows == 4))
def test_wavefront_equals_the_reference(mode, bits, rows, monkeypatch):
    monkeypatch.setattr(launch, "FAIR_SHARE", WAVEFRONT)
    monkeypatch.setattr(tracks, "choose_wavefront_rows", lambda lengths: rows)
    if bits == 32:
        monkeypatch.setattr(queries, "lane16", lambda *arguments: None)
    group, subjects = draw(rows, [2 * 32 * rows + 7, 40, 32 * rows]), draw(bits, [70, 33, 1, 0, 95])
    with host_engine(monkeypatch, seed=rows + bits) as engine:
        chunk = make_chunk(subjects)
        got = scores_of(engine, group, chunk, Scoring(), mode)
        assert {each.defines["SWSEARCH_BITS"] for each in launched("wavefront")} == {bits}
    expected = [
        [reference.score(query, subjects[i], Scoring(), mode) if len(subjects[i]) else got[q, s]
         for s, i in enumerate(chunk.subjects.tolist())]
        for q, query in enumerate(group)
    ]  # fmt: skip
    np.testing.assert_array_equal(got, expected)


BATCH = [variant for variant in variants.batch_variants() if variant.rows in {8, 16}]


@pytest.mark.parametrize("variant", sample(BATCH, lambda one: (one.rows == 8) == (one.queries == 1)), ids=str)
def test_batch_equals_the_cpu_engine(cpu, variant, monkeypatch):
    monkeypatch.setattr(queries, "plan_batches", plan_of(variant))
    monkeypatch.setattr(launch, "FAIR_SHARE", BATCHED)
    rows = variant.rows
    subjects = draw(rows, [0, 1, 7, 8, 9, 33, *np.random.default_rng(rows).integers(0, 33, 70)])
    with host_engine(monkeypatch, seed=rows) as engine:
        check(engine, cpu, draw(2, [1, rows - 1, rows, rows + 1, 17 * rows + 3]), subjects, mode=variant.mode)
        assert {each.defines["SWSEARCH_ROWS"] for each in launched("batch")} == {rows}


def around_the_half_limit() -> tuple[list[QueryProfile], list[np.ndarray]]:
    """Make two profiles and subjects: scores with one pass 2,047 one by one, with the other they go far beyond."""
    generator = np.random.default_rng(9)
    profile, steep = random_profile(generator, 100, -8, -1), random_profile(generator, 90, -127, 127)
    profile.scores[np.arange(100), profile.codes] = [100] * 20 + [1] * 80
    subjects = [profile.codes[:n] for n in (9, 20, *range(64, 74), 90, 100)]
    subjects += [np.concatenate((codes[:40], draw(n, [n + 1])[0], codes[40:])) for n, codes in enumerate(subjects)]
    return [profile, steep], [*subjects, steep.scores[:, :20].argmax(axis=1).astype(np.uint8)]


@pytest.mark.parametrize(
    ("fused", "n_queries", "certain"),
    sample(product((1, 0), (1, 2), (1, 10**9)), lambda case: case in {(1, 2, 1), (0, 1, 10**9)}),
)
def test_half_precision_around_its_limit(cpu, fused, n_queries, certain, monkeypatch):
    """Uncertain scores are computed again, as 32-bit integers, or all of them as 16-bit integers."""
    rows = {1: 9, 2: 10}[n_queries]
    gaps = variants._gap_defines
    monkeypatch.setattr(variants, "_gap_defines", lambda costs: (*gaps(costs), ("SWSEARCH_FUSED", fused)))
    monkeypatch.setattr(queries, "plan_batches", plan_of(variants.BatchVariant(rows, n_queries, "local", True)))
    monkeypatch.setattr(launch, "FAIR_SHARE", BATCHED)
    monkeypatch.setattr(launch, "PAIRS_PER_UNCERTAIN", certain)
    profiles, subjects = around_the_half_limit()
    with host_engine(monkeypatch, seed=rows) as engine:
        expected = check(engine, cpu, [*profiles, *draw(3, [70])], subjects)
        kinds = [each.defines["SWSEARCH_HALF"] for each in launched("batch")]
    assert kinds == [1] if certain == 1 else [1, 0]
    assert {*range(2044, 2054)} <= set(expected[0].tolist())
    assert expected[1].max() > 8_000
