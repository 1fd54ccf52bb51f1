"""A device without a GPU: memory is an array, and the kernels are written once more, plainly, in numpy.

It proves the Python side: what is laid out, uploaded, launched and fetched, and that 16-bit values stay where
`swsearch.engines.gpu.limits` says: lanes wrap here as they do there, and everything that a kernel may overwrite
(boundaries between passes) is overwritten. The CUDA kernels themselves are proved on a GPU (tests marked ``gpu``),
and their logic on the CPU (test_host_cuda.py).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from swsearch.engines.gpu import engine as engine_module
from swsearch.engines.gpu import kernels as kernels_module
from swsearch.engines.gpu.device import DeviceInfo, GpuMemoryError
from swsearch.engines.gpu.engine import GpuEngine
from swsearch.engines.gpu.tracks import QUERY, STRIP

INFO = DeviceInfo(0, "Fake GPU", (9, 0), 4, 1 << 30, 227 << 10, (13, 0))
LOCAL, GLOBAL, SEMIGLOBAL = 0, 1, 2
PAD_LETTER = 31
GARBAGE = 0xA5
BOUNDARY_BYTES = 8
LANES = 64


class Launch(NamedTuple):
    """A kernel that was launched."""

    name: str
    defines: dict
    blocks: int
    threads: int
    arguments: tuple


class Memory:
    """A piece of device memory."""

    def __init__(self, device, address, n_bytes):
        self.device, self.address, self.n_bytes = device, address, n_bytes

    def __int__(self):
        return self.address

    def free(self):
        assert self.device.allocated == self.n_bytes, "freed twice"
        self.device.allocated = 0


class Event:
    """Everything is done at once, so an event has always happened; CUDA says so in its context alone."""

    def __init__(self, device):
        self.device = device

    def record(self, stream=None):
        assert self.device.depth

    def synchronize(self):
        assert self.device.depth

    def query(self):
        assert self.device.depth, "an event was asked for outside its context"
        return True

    def time_since(self, other):
        assert self.device.depth
        return 1.0


class Stream:
    """Launches run when they are made."""

    def wait_for_event(self, event):
        assert isinstance(event, Event)

    def synchronize(self):
        pass


class FakeDevice:
    """Stands for `swsearch.engines.gpu.device.Device`; tests read and set what stands here at the class."""

    start = 256
    free = 64 << 20
    fails_above = 1 << 40
    asked: list = []  # noqa: RUF012  # sizes of all allocations that were tried
    launches: list = []  # noqa: RUF012

    def __init__(self, info):
        self.info = info
        self.bytes = np.empty(self.start + self.free, dtype=np.uint8)
        self.allocated, self.depth, self.closed = 0, 0, 0
        self.kept: list = []  # (kernel, address, end) of what kernels keep between passes

    @contextmanager
    def active(self, doing):
        assert not self.closed, f"{doing}: the context is gone"
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def close(self):
        assert not self.depth
        self.closed += 1

    def free_memory(self):
        return self.free

    def allocate(self, n_bytes):
        assert self.depth
        assert not self.allocated, "everything is allocated at once"
        self.asked.append(n_bytes)
        if n_bytes > min(self.fails_above, self.free):
            raise GpuMemoryError(f"no {n_bytes} bytes")
        self.allocated = n_bytes
        self.bytes[self.start : self.start + n_bytes] = GARBAGE
        return Memory(self, self.start, n_bytes)

    def pinned(self, n_bytes):
        return np.full(max(n_bytes, 1), GARBAGE, dtype=np.uint8)

    def stream(self):
        return Stream()

    def event(self, timing=False):
        return Event(self)

    def view(self, address, dtype, count):
        """Return device memory as an array."""
        n_bytes = np.dtype(dtype).itemsize * int(count)
        assert self.start <= address, (address, count)
        assert address + n_bytes <= self.start + self.allocated, "outside what is allocated"
        return self.bytes[address : address + n_bytes].view(dtype)

    def keep(self, kernel, address, n_bytes):
        """Overwrite what a kernel may use between passes, and remember where."""
        self.view(address, np.uint8, n_bytes)[:] = GARBAGE
        self.kept.append((kernel, address, address + n_bytes))

    def upload(self, address, data, stream):
        self.upload_async(address, data, stream)

    def upload_async(self, address, pinned, stream):
        assert self.depth
        self.view(address, np.uint8, pinned.nbytes)[:] = np.ascontiguousarray(pinned).reshape(-1).view(np.uint8)

    def download(self, data, address):
        assert self.depth
        data.reshape(-1).view(np.uint8)[:] = self.view(address, np.uint8, data.nbytes)

    def download_async(self, pinned, address, stream):
        self.download(pinned, address)

    def clear_async(self, address, n_bytes, stream):
        assert self.depth
        assert n_bytes % 4 == 0
        self.view(address, np.uint8, n_bytes)[:] = 0

    def load(self, cubin):
        assert self.depth
        return self, dict(cubin)


class FakeCompiler:
    """Stands for the compiler: a cubin is the kernel's definitions."""

    description = "fake compiler"

    def compile_all(self, kernels):
        return [(("source", kernel.source), *kernel.defines) for kernel in kernels]


class FakeFunction:
    """Stands for `swsearch.engines.gpu.device.Function`."""

    def __init__(self, module, name, signature, shared_bytes=0):
        self.device, self.defines = module
        self.name, self.n_arguments = name, len(signature)
        assert shared_bytes <= self.device.info.shared_limit

    def launch(self, blocks, threads, stream, arguments):
        assert self.device.depth
        assert blocks >= 1
        assert 32 <= threads <= 512
        assert len(arguments) == self.n_arguments
        FakeDevice.launches.append(Launch(self.name, self.defines, blocks, threads, arguments))
        KERNELS[self.name](self.device, self.defines, blocks, threads // 32, *arguments)


def fake_engine(monkeypatch, memory=None):
    """Make a GPU engine on the fake device."""
    monkeypatch.setattr(engine_module, "choose_device", lambda index: INFO)
    monkeypatch.setattr(engine_module, "find_compiler", lambda architecture, version: FakeCompiler())
    monkeypatch.setattr(engine_module, "Device", FakeDevice)
    monkeypatch.setattr(engine_module, "STAGING_BYTES", 64 << 10)
    monkeypatch.setattr(kernels_module, "Function", FakeFunction)
    FakeDevice.launches, FakeDevice.asked = [], []
    return GpuEngine(memory=memory)


def launched(name):
    """Return the launches of one kernel, such as ``batch``, since the engine was made."""
    return [launch for launch in FakeDevice.launches if launch.name == f"swsearch_{name}"]


def _arrange(device, defines, blocks, warps, residues, n_tiles):
    tiles = device.view(residues, np.uint8, n_tiles * 512).reshape(n_tiles, 8, 64)
    tiles.reshape(-1)[:] = (tiles * 4).transpose(0, 2, 1).reshape(-1)


def _letters(device, residues, tiles, places):
    """Return the letters of some subjects, shape (n, most columns); behind a block's end stands padding."""
    blocks = sorted(set((places // LANES).tolist()))
    bounds = {block: device.view(tiles + 4 * block, np.uint32, 2).tolist() for block in blocks}
    longest = max(last - first for first, last in bounds.values()) * 8
    letters = np.full((len(places), longest), PAD_LETTER, dtype=np.uint8)
    for block, (first, last) in bounds.items():
        rows = np.flatnonzero(places // LANES == block)
        data = device.view(residues + first * 512, np.uint8, (last - first) * 512).reshape(-1, LANES, 8)
        arranged = data.transpose(1, 0, 2).reshape(LANES, -1)
        letters[rows, : arranged.shape[1]] = arranged[places[rows] % LANES] // 4
    return letters


def _fill(scores, letters, lengths, mode, gaps, bias, real, bits):
    """Fill the score matrix of one query against several subjects; return the score of each.

    scores: (n_rows, 32); letters: (n, n_columns); real: the slice of rows that are the query's own. Values are
    held with the bias; a column is filled at once, with F as a running maximum down the rows.
    """
    gap_open, extend = gaps
    n, n_columns = letters.shape
    n_rows, first = len(scores), gap_open + extend

    def edge(steps):
        return bias - (gap_open + steps * extend if mode == GLOBAL and steps > 0 else 0)

    H = np.array([edge(max(i + 1 - real.start, 0)) for i in range(n_rows)])[:, None] + np.zeros((1, n), dtype=int)
    E = H - first
    best = np.full(n, bias if mode == LOCAL else 0 if bits == 16 else -(1 << 30))
    down = np.arange(n_rows + 1)[:, None] * extend
    last = real.stop - 1
    for j in range(n_columns):
        t = np.concatenate((np.full((1, n), edge(j)), H[:-1])) + scores[:, letters[:, j]]
        if bits == 16:
            assert mode == LOCAL or (t <= 32_767).all(), "a lane would overflow"
            t = (t + 32_768) % 65_536 - 32_768
        t = np.maximum(t, E)
        if mode == LOCAL:
            t = np.maximum(t, bias)
        opened = np.concatenate((np.full((1, n), edge(j + 1) - first), t - first)) + down
        H = np.maximum(t, (np.maximum.accumulate(opened) - down)[:-1])
        E = np.maximum(E - extend, H - first)
        if bits == 16:
            assert (first <= H).all(), "a subtraction would borrow"
        ends = lengths == j + 1
        if mode == LOCAL:
            best = np.maximum(best, H.max(axis=0))
        elif mode == GLOBAL:
            best = np.where(ends, H[last], best)
        else:
            best = np.maximum(best, np.where(ends, H.max(axis=0), H[last]))
    return best - bias


def _batch(
    device, defines, blocks, warps, residues, tiles, lengths, n_subjects, first_block, n_jobs, stages, profile,
    strips, n_strips, bias, gap_open, extend, one, boundary, region_columns, n_regions,
    boundary_columns, taken, scores, stride, counter,
):  # fmt: skip
    rows, mode, queries = (defines[f"SWSEARCH_{name}"] for name in ("ROWS", "MODE", "QUERIES"))
    assert one == 1
    assert warps % stages == 0
    assert device.view(counter, np.uint32, 1)[0] == 0
    device.view(counter, np.uint32, 1)[0] = n_jobs
    table = device.view(strips, STRIP, n_strips)
    lines = -(-rows // 4) if queries == 1 else rows
    data = device.view(profile, np.int8, n_strips * lines * 128)
    if queries == 1:
        by_row = data.reshape(n_strips, lines, 32, 4).transpose(0, 1, 3, 2).reshape(n_strips, lines * 4, 32)
        halves = [by_row[:, :rows]]
        assert all((table[name][:, 0] == table[name][:, 1]).all() for name in ("query", "row", "last"))
    else:
        both = data.view(np.int16).reshape(n_strips, rows, 32, 2)
        halves = [both[..., 0], both[..., 1]]
        assert n_jobs % 2 == 0
    n_blocks = n_jobs // queries
    several_passes = n_strips > stages
    if several_passes:
        assert max(np.diff(device.view(tiles + 4 * first_block, np.uint32, n_blocks + 1))) * 8 <= boundary_columns
    places = np.arange(first_block * LANES, min((first_block + n_blocks) * LANES, n_subjects))
    n = device.view(lengths, np.int32, n_subjects)[places]
    letters = _letters(device, residues, tiles, places)
    for half, every in enumerate(halves):
        for at, query in enumerate(table["query"][:, half].tolist()):
            if query < 0 or table["row"][at, half] > 0:
                continue
            end = at
            while table["last"][end, half] < 0:
                end += 1
                assert table["query"][end, half] == query
                assert table["row"][end, half] == table["row"][end - 1, half] + rows
            own = every[at : end + 1].reshape(-1, 32).astype(np.int64)
            real = slice(-int(table["row"][at, half]), (end - at) * rows + int(table["last"][end, half]) + 1)
            values = _fill(own, letters, n, mode, (gap_open, extend), bias, real, 16)
            row = device.view(scores + 4 * query * stride, np.int32, n_subjects)
            row[places[n > 0]] = values[n > 0] if mode == GLOBAL else np.maximum(row[places], values)[n > 0]
    if several_passes:
        assert warps // stages * boundary_columns <= region_columns
        assert blocks <= n_regions, "blocks would wait for each other"
        assert not device.view(taken, np.uint32, n_regions).any(), "a region was not given back"
        device.keep("batch", boundary, n_regions * region_columns * 32 * BOUNDARY_BYTES)


def _wavefront(
    device, defines, blocks, warps, residues, tiles, lengths, n_subjects, profiles, queries, tasks, n_listed, n_tasks,
    query_list, n_queries, bias, gap_open, extend, one, boundary, offsets, scores, stride, counter,
):  # fmt: skip
    rows, mode, bits = (defines[f"SWSEARCH_{name}"] for name in ("ROWS", "MODE", "BITS"))
    step = 2 if bits == 16 else 1
    assert one == 1
    assert device.view(counter, np.uint32, 1)[0] == 0
    device.view(counter, np.uint32, 1)[0] = 1
    if tasks:
        count = min(int(device.view(n_listed, np.uint32, 1)[0]), n_tasks)
        todo = device.view(tasks, np.int32, 2 * count).reshape(-1, 2).copy()
    else:
        listed = device.view(query_list, np.int32, n_queries)
        todo = np.array([(listed[k % n_queries], k // n_queries * step) for k in range(n_tasks)])
    every = device.view(lengths, np.int32, n_subjects)
    starts = device.view(offsets, np.uint32, blocks * warps).astype(np.int64)
    for query in sorted(set(todo[:, 0].tolist())):
        entry = device.view(queries + QUERY.itemsize * query, QUERY, 1)[0]
        n_rows = int(entry["passes"]) * 32 * rows
        words = device.view(profiles + 4 * int(entry["profile"]), np.int8, n_rows * 32).reshape(-1, 32, 4)
        own = words.transpose(0, 2, 1).reshape(-1, 32).astype(np.int64)
        first = todo[todo[:, 0] == query, 1]
        places = np.unique(np.concatenate([first + k for k in range(step)]))
        places = places[places < n_subjects]
        n = every[places]
        letters = _letters(device, residues, tiles, places)[:, : max(n)]
        real = slice(int(entry["padding"]), int(entry["padding"]) + int(entry["length"]))
        values = _fill(own, letters, n, mode, (gap_open, extend), bias, real, bits)
        device.view(scores + 4 * query * stride, np.int32, n_subjects)[places[n > 0]] = values[n > 0]
        if entry["passes"] > 1:
            for number in np.flatnonzero(todo[:, 0] == query).tolist():
                # a warp's first task is the one of its number; a later one may go anywhere, as it is no longer
                warp = number % len(starts)
                n_columns = int(every[todo[number, 1]])
                if warp + 1 < len(starts):
                    assert starts[warp] + n_columns <= starts[warp + 1], "two warps would share boundaries"
                kernel = "rescore" if tasks else "wavefront"
                device.keep(kernel, boundary + BOUNDARY_BYTES * int(starts[warp]), BOUNDARY_BYTES * n_columns)


def _collect(
    size, device, defines, blocks, warps, scores, stride, n_subjects, lengths, thresholds, n_lengths, least, begin,
    end, entries, capacity, count,
):  # fmt: skip
    if end <= begin:
        return
    query, place = np.divmod(np.arange(begin, end), n_subjects)
    n_queries = int(query[-1]) + 1
    score = device.view(scores, np.int32, n_queries * stride)[query * stride + place]
    needed = device.view(least, np.int32, n_queries)[query]
    if thresholds:
        length = device.view(lengths, np.int32, n_subjects)[place]
        needed = np.maximum(
            needed, device.view(thresholds, np.int32, n_queries * n_lengths)[query * n_lengths + length]
        )
    # in no order, as from a GPU: the last comes first
    found = np.flatnonzero(score >= needed)[::-1]
    total = device.view(count, np.uint32, 1)
    kept = found[: max(capacity - int(total[0]), 0)]
    rows = np.stack((query, place, score), axis=1)[kept, :size].astype(np.int32)
    device.view(entries + 4 * size * int(total[0]), np.int32, rows.size)[:] = rows.reshape(-1)
    total[0] += len(found)


def _collect_hits(*arguments):
    _collect(3, *arguments)


def _collect_tasks(*arguments):
    _collect(2, *arguments)


KERNELS = {
    "swsearch_arrange": _arrange,
    "swsearch_batch": _batch,
    "swsearch_wavefront": _wavefront,
    "swsearch_collect_hits": _collect_hits,
    "swsearch_collect_tasks": _collect_tasks,
}
