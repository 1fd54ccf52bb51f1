"""A device without a GPU: memory is an array, and the kernels are written once more, plainly, in numpy.

It proves the Python side: what is laid out, uploaded, launched and fetched, and that 16-bit values stay where
`swsearch.engines.gpu.limits` says: lanes wrap here as they do there, and everything that a kernel may overwrite
(boundaries between passes) is overwritten. The CUDA kernels themselves are proved on a GPU (tests marked ``gpu``),
and their logic on the CPU (test_host_cuda.py).
"""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from swsearch.engines.gpu import engine as engine_module
from swsearch.engines.gpu import kernels as kernels_module
from swsearch.engines.gpu.device import DeviceInfo, GpuMemoryError
from swsearch.engines.gpu.engine import GpuEngine
from swsearch.engines.gpu.limits import UNCERTAIN
from swsearch.engines.gpu.tracks import QUERY, STRIP

INFO = DeviceInfo(0, "Fake GPU", (9, 0), 4, 1 << 30, 227 << 10, (13, 0))
LOCAL, GLOBAL, SEMIGLOBAL = 0, 1, 2
PAD_LETTER = 31
GARBAGE = 0xA5
BOUNDARY_BYTES = 8
LANES = 64


class Launched(NamedTuple):
    """A kernel that was launched, with its arguments by name."""

    name: str
    defines: dict
    blocks: int
    threads: int
    arguments: dict


class Memory:
    """A piece of device memory."""

    def __init__(self, device, address, n_bytes):
        self.device, self.address, self.n_bytes = device, address, n_bytes

    def __int__(self):
        return self.address

    def free(self):
        assert self.device.pieces.pop(self.address, None) == self.n_bytes, "freed twice"


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
    is_here = True
    asked: list = []  # noqa: RUF012  # sizes of all allocations that were tried
    launches: list = []  # noqa: RUF012

    def __init__(self, info):
        self.info = info
        self.bytes = np.empty(self.start + self.free, dtype=np.uint8)
        self.depth, self.closed = 0, 0
        self.pieces: dict[int, int] = {}  # bytes of what is allocated, by address
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
        self.asked.append(n_bytes)
        at = -(-max([self.start, *(start + size for start, size in self.pieces.items())]) // 256) * 256
        if n_bytes > min(self.fails_above, self.start + self.free - at):
            raise GpuMemoryError(f"no {n_bytes} bytes")
        self.pieces[at] = n_bytes
        self.bytes[at : at + n_bytes] = GARBAGE
        return Memory(self, at, n_bytes)

    @property
    def allocated(self):
        return sum(self.pieces.values())

    def pinned(self, n_bytes):
        return np.full(max(n_bytes, 1), GARBAGE, dtype=np.uint8)

    def stream(self):
        return Stream()

    def event(self, timing=False):
        return Event(self)

    def view(self, address, dtype, count):
        """Return device memory as an array."""
        n_bytes = np.dtype(dtype).itemsize * int(count)
        inside = [start <= address and address + n_bytes <= start + size for start, size in self.pieces.items()]
        assert any(inside), "outside what is allocated"
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
        self.name, self.table = name, kernels_module.ALL[name]
        assert signature == self.table.signature
        assert shared_bytes <= self.device.info.shared_limit

    def launch(self, blocks, threads, stream, arguments):
        assert self.device.depth
        assert blocks >= 1
        assert 32 <= threads <= 512
        named = self.table.by_name(arguments)
        FakeDevice.launches.append(Launched(self.name, self.defines, blocks, threads, named))
        KERNELS[self.name](Grid(self.device, self.defines, blocks, threads // 32), SimpleNamespace(**named))


class Grid(NamedTuple):
    """Where an emulated kernel runs."""

    device: FakeDevice
    defines: dict
    blocks: int
    warps: int


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


def _arrange(grid, given):
    tiles = grid.device.view(given.residues, np.uint8, given.n_tiles * 512).reshape(given.n_tiles, 8, 64)
    tiles.reshape(-1)[:] = (tiles * 8).transpose(0, 2, 1).reshape(-1)


def _letters(device, residues, tiles, places):
    """Return the letters of some subjects, shape (n, most columns); after a block's end stands padding."""
    blocks = sorted(set((places // LANES).tolist()))
    bounds = {block: device.view(tiles + 4 * block, np.uint32, 2).tolist() for block in blocks}
    longest = max(last - first for first, last in bounds.values()) * 8
    letters = np.full((len(places), longest), PAD_LETTER, dtype=np.uint8)
    for block, (first, last) in bounds.items():
        rows = np.flatnonzero(places // LANES == block)
        data = device.view(residues + first * 512, np.uint8, (last - first) * 512).reshape(-1, LANES, 8)
        arranged = data.transpose(1, 0, 2).reshape(LANES, -1)
        letters[rows, : arranged.shape[1]] = arranged[places[rows] % LANES] // 8
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


def _lane_halves(grid, given, table):
    """Return the scores of the strips' rows, shape (n_strips, rows, 32), for one or both halves of the lanes."""
    rows, queries = grid.defines["SWSEARCH_ROWS"], grid.defines["SWSEARCH_QUERIES"]
    lines = -(-rows * queries // 4)
    data = grid.device.view(given.profile, np.int8, given.n_strips * lines * 128)
    if queries == 2:
        both = data.reshape(given.n_strips, lines, 32, 2, 2).transpose(0, 1, 3, 2, 4).reshape(-1, rows, 32, 2)
        assert given.n_jobs % 2 == 0
        return [both[..., 0], both[..., 1]]
    assert all((table[name][:, 0] == table[name][:, 1]).all() for name in ("query", "row", "last"))
    by_row = data.reshape(given.n_strips, lines, 32, 4).transpose(0, 1, 3, 2).reshape(given.n_strips, lines * 4, 32)
    return [by_row[:, :rows]]


def _queries_of(table, half, rows):
    """Yield the number of each query in a half of the lanes, its first and its last strip."""
    for at, query in enumerate(table["query"][:, half].tolist()):
        if query < 0 or table["row"][at, half] > 0:
            continue
        end = at
        while table["last"][end, half] < 0:
            end += 1
            assert table["query"][end, half] == query
            assert table["row"][end, half] == table["row"][end - 1, half] + rows
        yield query, at, end


def _batch(grid, given):
    device, warps, stages = grid.device, grid.warps, given.pipeline_warps
    rows, mode, queries = (grid.defines[f"SWSEARCH_{name}"] for name in ("ROWS", "MODE", "QUERIES"))
    assert given.one == 1
    assert warps % stages == 0
    assert device.view(given.counter, np.uint32, 1)[0] == 0
    device.view(given.counter, np.uint32, 1)[0] = given.n_jobs
    table = device.view(given.strips, STRIP, given.n_strips)
    halves = _lane_halves(grid, given, table)
    n_blocks = given.n_jobs // queries
    bits = 11 if grid.defines["SWSEARCH_HALF"] else 16
    found = []
    places = np.arange(given.first_block * LANES, min((given.first_block + n_blocks) * LANES, given.n_subjects))
    n = device.view(given.lengths, np.int32, given.n_subjects)[places]
    letters = _letters(device, given.residues, given.tile_offsets, places)
    gaps = grid.defines["SWSEARCH_GAP_OPEN"], grid.defines["SWSEARCH_GAP_EXTEND"]
    for half, every in enumerate(halves):
        for query, at, end in _queries_of(table, half, rows):
            own = every[at : end + 1].reshape(-1, 32).astype(np.int64)
            real = slice(-int(table["row"][at, half]), (end - at) * rows + int(table["last"][end, half]) + 1)
            values = _fill(own, letters, n, mode, gaps, given.bias, real, bits)
            found.append((query, np.where(values < given.limit, values, UNCERTAIN), end + 1 - at))
    jobs = _taken_jobs(device, given, (places - places[0]) * queries // LANES, found)
    for query, values, _ in found:
        row = device.view(given.scores + 4 * query * given.score_stride, np.int32, given.n_subjects)
        some = jobs & (n > 0)
        row[places[some]] = values[some] if mode == GLOBAL else np.maximum(row[places], values)[some]
    if given.n_strips > stages:
        _keep_between_passes(grid, given, n_blocks)


def _taken_jobs(device, given, jobs, found):
    """Say which subjects belong to jobs that the kernel takes, until too much is uncertain."""
    strips = sum(n_strips * (values == UNCERTAIN) for _, values, n_strips in found)
    total = np.cumsum(np.bincount(jobs, strips, given.n_jobs))
    taken = np.searchsorted(total, given.most_uncertain, "right") + 1
    device.view(given.uncertain, np.uint32, 1)[0] = total[min(taken, given.n_jobs) - 1]
    return jobs < taken


def _keep_between_passes(grid, given, n_blocks):
    """Check the room for what the kernel keeps between passes, and overwrite it."""
    tiles = grid.device.view(given.tile_offsets + 4 * given.first_block, np.uint32, n_blocks + 1)
    assert max(np.diff(tiles)) * 8 <= given.pipeline_columns
    assert grid.warps // given.pipeline_warps * given.pipeline_columns <= given.region_columns
    assert grid.blocks <= given.n_regions, "blocks would wait for each other"
    taken = grid.device.view(given.taken, np.uint32, given.n_regions)
    assert not taken.any(), "a region was not given back"
    n_bytes = given.n_regions * given.region_columns * 32 * BOUNDARY_BYTES
    grid.device.keep("batch", given.boundary, n_bytes)


def _tasks(grid, given, step):
    """Return the query and the first subject of each task, shape (n_tasks, 2)."""
    if given.tasks:
        count = int(grid.device.view(given.n_listed, np.uint32, 1)[0])
        count *= count <= given.n_tasks
        return grid.device.view(given.tasks, np.int32, 2 * count).reshape(-1, 2).copy()
    listed, n = grid.device.view(given.query_list, np.int32, given.n_queries), given.n_queries
    return np.array([(listed[k % n], k // n * step) for k in range(given.n_tasks)])


def _wavefront(grid, given):
    device = grid.device
    rows, mode, bits = (grid.defines[f"SWSEARCH_{name}"] for name in ("ROWS", "MODE", "BITS"))
    step = 2 if bits == 16 else 1
    assert given.one == 1
    assert device.view(given.counter, np.uint32, 1)[0] == 0
    device.view(given.counter, np.uint32, 1)[0] = 1
    todo = _tasks(grid, given, step)
    every = device.view(given.lengths, np.int32, given.n_subjects)
    gaps = grid.defines["SWSEARCH_GAP_OPEN"], grid.defines["SWSEARCH_GAP_EXTEND"]
    for query in sorted(set(todo[:, 0].tolist())):
        entry = device.view(given.queries + QUERY.itemsize * query, QUERY, 1)[0]
        n_rows = int(entry["passes"]) * 32 * rows
        words = device.view(given.profiles + 4 * int(entry["profile"]), np.int8, n_rows * 32).reshape(-1, 32, 4)
        own = words.transpose(0, 2, 1).reshape(-1, 32).astype(np.int64)
        first = todo[todo[:, 0] == query, 1]
        places = np.unique(np.concatenate([first + k for k in range(step)]))
        places = places[places < given.n_subjects]
        n = every[places]
        letters = _letters(device, given.residues, given.tile_offsets, places)[:, : max(n)]
        real = slice(int(entry["padding"]), int(entry["padding"]) + int(entry["length"]))
        values = _fill(own, letters, n, mode, gaps, given.bias, real, bits)
        values = np.where(values < given.limit, values, UNCERTAIN)
        row = device.view(given.scores + 4 * query * given.score_stride, np.int32, given.n_subjects)
        row[places[n > 0]] = values[n > 0]
        if entry["passes"] > 1:
            _keep_of_warps(grid, given, np.flatnonzero(todo[:, 0] == query), every[todo[:, 1]])


def _keep_of_warps(grid, given, tasks, columns):
    """Check the room that the warps of some tasks have between passes, and overwrite it."""
    starts = grid.device.view(given.boundary_offsets, np.uint32, grid.blocks * grid.warps).astype(np.int64)
    for number in tasks.tolist():
        # a warp's first task is the one of its number; a later one may go anywhere, as it is no longer
        warp = number % len(starts)
        n_columns = int(columns[number])
        if warp + 1 < len(starts):
            assert starts[warp] + n_columns <= starts[warp + 1], "two warps would share boundaries"
        kernel = "rescore" if given.tasks else "wavefront"
        address = given.boundary + BOUNDARY_BYTES * int(starts[warp])
        grid.device.keep(kernel, address, BOUNDARY_BYTES * n_columns)


def _collect(size, grid, given):
    if given.end <= given.begin:
        return
    device, n_subjects = grid.device, given.n_subjects
    query, place = np.divmod(np.arange(given.begin, given.end), n_subjects)
    n_queries = int(query[-1]) + 1
    score = device.view(given.scores, np.int32, n_queries * given.score_stride)[query * given.score_stride + place]
    needed = device.view(given.least, np.int32, n_queries)[query]
    if given.thresholds:
        length = device.view(given.lengths, np.int32, n_subjects)[place]
        table = device.view(given.thresholds, np.int32, n_queries * given.n_lengths)
        needed = np.maximum(needed, table[query * given.n_lengths + length])
    # in no order, as from a GPU: the last comes first
    found = np.flatnonzero(score >= needed)[::-1]
    total = device.view(given.count, np.uint32, 1)
    kept = found[: max(given.capacity - int(total[0]), 0)]
    rows = np.stack((query, place, score), axis=1)[kept, :size].astype(np.int32)
    device.view(given.list + 4 * size * int(total[0]), np.int32, rows.size)[:] = rows.reshape(-1)
    total[0] += len(found)


def _collect_hits(grid, given):
    _collect(3, grid, given)


def _collect_tasks(grid, given):
    _collect(2, grid, given)


KERNELS = {
    "swsearch_arrange": _arrange,
    "swsearch_batch": _batch,
    "swsearch_wavefront": _wavefront,
    "swsearch_collect_hits": _collect_hits,
    "swsearch_collect_tasks": _collect_tasks,
}
