"""A device without a GPU: memory is an array, and the kernels are written once more, plainly, in numpy.

It proves the Python side: what is laid out, uploaded, launched and fetched, and that 16-bit values stay where
`swsearch.engines.gpu.limits` says. The CUDA kernels themselves are proved on a GPU (tests marked ``gpu``).
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

from swsearch.engines.gpu import engine as engine_module
from swsearch.engines.gpu import kernels as kernels_module
from swsearch.engines.gpu.device import DeviceInfo, GpuMemoryError
from swsearch.engines.gpu.engine import GpuEngine
from swsearch.engines.gpu.tracks import QUERY, STRIP

INFO = DeviceInfo(0, "Fake GPU", (9, 0), 4, 1 << 30, 227 << 10, (13, 0))
LOCAL, GLOBAL, SEMIGLOBAL = 0, 1, 2
LOWEST = -(1 << 40)


class Memory:
    """A piece of device memory."""

    def __init__(self, device, address, n_bytes):
        self.device, self.address, self.n_bytes = device, address, n_bytes

    def __int__(self):
        return self.address

    def free(self):
        self.device.allocated -= 0 if self.n_bytes < 4096 else self.n_bytes


class Event:
    """Everything is done at once, so an event has always happened."""

    def record(self, stream=None):
        pass

    def synchronize(self):
        pass

    def query(self):
        return True

    def time_since(self, other):
        return 1.0


class Stream:
    """Launches run when they are made."""

    def wait_for_event(self, event):
        pass

    def synchronize(self):
        pass


class FakeDevice:
    """Stands for `swsearch.engines.gpu.device.Device`."""

    free = 64 << 20
    fails_above = 1 << 40
    launches: list = []  # noqa: RUF012  # shared on purpose: tests look at it

    def __init__(self, info):
        self.info = info
        self.bytes = np.full(self.free + 65536, 0xA5, dtype=np.uint8)
        self.end, self.allocated = len(self.bytes), 0

    @contextmanager
    def active(self, doing):
        yield

    def close(self):
        pass

    def free_memory(self):
        return self.free

    def allocate(self, n_bytes):
        if n_bytes > self.fails_above:
            raise GpuMemoryError(f"no {n_bytes} bytes")
        small = n_bytes < 4096  # tables, which stay, stand at the end
        address = self.end - n_bytes if small else 256
        self.end -= n_bytes if small else 0
        assert address + n_bytes <= len(self.bytes)
        assert small or not self.allocated, "everything large is allocated at once"
        self.allocated += 0 if small else n_bytes
        return Memory(self, address, n_bytes)

    def pinned(self, n_bytes):
        return np.empty(max(n_bytes, 1), dtype=np.uint8)

    def stream(self):
        return Stream()

    def event(self, timing=False):
        return Event()

    def upload(self, address, data, stream):
        self.upload_async(address, data, stream)

    def upload_async(self, address, pinned, stream):
        data = np.ascontiguousarray(pinned).reshape(-1).view(np.uint8)
        self.bytes[address : address + len(data)] = data

    def download(self, data, address):
        data.reshape(-1).view(np.uint8)[:] = self.bytes[address : address + data.nbytes]

    def download_async(self, pinned, address, stream):
        self.download(pinned, address)

    def clear_async(self, address, n_bytes, stream):
        assert n_bytes % 4 == 0
        self.bytes[address : address + n_bytes] = 0

    def load(self, cubin):
        return self, dict(cubin)

    def view(self, address, dtype, count):
        """Return device memory as an array."""
        n_bytes = np.dtype(dtype).itemsize * count
        return self.bytes[address : address + n_bytes].view(dtype)


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
        assert blocks >= 1
        assert 32 <= threads <= 512
        assert len(arguments) == self.n_arguments
        FakeDevice.launches.append((self.name, dict(self.defines), blocks, threads, arguments))
        globals()["_" + self.name.removeprefix("swsearch_")](
            self.device, self.defines, blocks * threads // 32, *arguments
        )


def fake_engine(monkeypatch, memory=None):
    """Make a GPU engine on the fake device."""
    monkeypatch.setattr(engine_module, "choose_device", lambda index: INFO)
    monkeypatch.setattr(engine_module, "find_compiler", lambda architecture, version: FakeCompiler())
    monkeypatch.setattr(engine_module, "Device", FakeDevice)
    monkeypatch.setattr(kernels_module, "Function", FakeFunction)
    FakeDevice.launches = []
    return GpuEngine(memory=memory)


def _arrange(device, defines, warps, residues, n_tiles):
    tiles = device.view(residues, np.uint8, n_tiles * 512).reshape(n_tiles, 8, 64)
    device.view(residues, np.uint8, n_tiles * 512)[:] = (tiles * 4).transpose(0, 2, 1).reshape(-1)


def _letters(device, residues, tiles, block, lanes):
    """Return the letters of some lanes of a block, shape (n_lanes, n_columns)."""
    first, last = device.view(tiles + 4 * block, np.uint32, 2).tolist()
    data = device.view(residues + first * 512, np.uint8, (last - first) * 512).reshape(-1, 64, 8)
    return (data[:, lanes] // 4).transpose(1, 0, 2).reshape(len(lanes), -1)


def _fill(scores, letters, lengths, mode, gaps, bias, real, bits):
    """Fill the score matrix of one query against several subjects; return the score of each.

    scores: (n_rows, 32); letters: (n, n_columns); real: the slice of rows that are the query's own.
    """
    gap_open, extend = gaps
    n, n_columns = letters.shape
    rows = len(scores)
    first = gap_open + extend

    def edge(steps):
        return -(gap_open + steps * extend) if mode == GLOBAL and steps > 0 else 0

    H = np.array([edge(max(i + 1 - real.start, 0)) for i in range(rows)])[:, None] * np.ones((1, n), dtype=np.int64)
    E = H - first
    best = np.zeros(n, dtype=np.int64)
    if mode == GLOBAL:
        best[:] = LOWEST
    last = real.stop - 1
    for j in range(n_columns):
        diagonal, above = np.full(n, edge(j)), np.full(n, edge(j + 1))
        F = above - first
        ends = lengths == j + 1
        for i in range(rows):
            t = np.maximum(diagonal + scores[i, letters[:, j]], E[i])
            h = np.maximum(t, F)
            if mode == LOCAL:
                h = np.maximum(h, 0)
                best = np.maximum(best, h)
            diagonal = H[i].copy()
            H[i] = h
            E[i] = np.maximum(E[i] - extend, h - first)
            F = np.maximum(F - extend, h - first)
            if bits == 16 and mode != LOCAL:
                assert (h + bias >= first).all(), "a subtraction would borrow"
                assert (h + bias <= 32_767).all(), "a lane would overflow"
            if mode == SEMIGLOBAL:
                best = np.where(ends | (i == last), np.maximum(best, h), best)
            elif mode == GLOBAL and i == last:
                best = np.where(ends, h, best)
    if mode != GLOBAL and bits == 16:
        best = np.minimum(best, 32_767 - bias)  # as a lane that saturates says something above the limit
    return best


def _store(device, scores, stride, query, places, values, lengths, n_subjects, mode):
    for place, value, length in zip(places, values.tolist(), lengths.tolist(), strict=True):
        if place < n_subjects and length > 0:
            cell = device.view(scores + 4 * (query * stride + place), np.int32, 1)
            cell[0] = value if mode == GLOBAL else max(int(cell[0]), value)


def _lengths(device, lengths, places, n_subjects):
    every = device.view(lengths, np.int32, n_subjects)
    return np.array([every[place] if place < n_subjects else 0 for place in places])


def _batch(
    device, defines, warps, residues, tiles, lengths, n_subjects, first_block, n_jobs, stages, profile, strips,
    n_strips, bias, gap_open, extend, one, boundary, boundary_columns, scores, stride, counter,
):  # fmt: skip
    defines = dict(defines)
    rows, mode, queries = (defines[f"SWSEARCH_{name}"] for name in ("ROWS", "MODE", "QUERIES"))
    assert one == 1
    assert 16 % stages == 0
    assert device.view(counter, np.uint32, 1)[0] == 0
    device.view(counter, np.uint32, 1)[0] = n_jobs
    table = device.view(strips, STRIP, n_strips)
    lines = -(-rows // 4) if queries == 1 else rows
    data = device.view(profile, np.int8, n_strips * lines * 128)
    if queries == 1:
        by_row = data.reshape(n_strips, lines, 32, 4).transpose(0, 1, 3, 2).reshape(n_strips, lines * 4, 32)
        halves = [by_row[:, :rows]] * 2
    else:
        both = data.view(np.int16).reshape(n_strips, rows, 32, 2)
        halves = [both[..., 0], both[..., 1]]
    if -(-n_strips // stages) > 1:
        most = max(np.diff(device.view(tiles + 4 * first_block, np.uint32, n_jobs // queries + 1))) * 8
        assert most <= boundary_columns
    for half in (0, 1):
        for at, query in enumerate(table["query"][:, half].tolist()):
            if query < 0 or table["row"][at, half] > 0:
                continue
            end = at
            while table["last"][end, half] < 0:
                end += 1
                assert table["query"][end, half] == query
                assert table["row"][end, half] == table["row"][end - 1, half] + rows
            own = halves[half][at : end + 1].reshape(-1, 32).astype(np.int64)
            start = -int(table["row"][at, half])
            stop = (end - at) * rows + int(table["last"][end, half]) + 1
            for job in range(n_jobs):
                block, part = (first_block + job, half) if queries == 1 else (first_block + job // 2, job % 2)
                lanes = list(range(part * 32, part * 32 + 32))
                places = [block * 64 + lane for lane in lanes]
                n = _lengths(device, lengths, places, n_subjects)
                values = _fill(
                    own, _letters(device, residues, tiles, block, lanes), n, mode, (gap_open, extend), bias,
                    slice(start, stop), 16,
                )  # fmt: skip
                _store(device, scores, stride, query, places, values, n, n_subjects, mode)


def _wavefront(
    device, defines, warps, residues, tiles, lengths, n_subjects, profiles, queries, tasks, n_listed, n_tasks,
    query_list, n_queries, bias, gap_open, extend, one, boundary, offsets, scores, stride, counter,
):  # fmt: skip
    defines = dict(defines)
    rows, mode, bits = (defines[f"SWSEARCH_{name}"] for name in ("ROWS", "MODE", "BITS"))
    step = 2 if bits == 16 else 1
    if tasks:
        count = min(int(device.view(n_listed, np.uint32, 1)[0]), n_tasks)
        todo = device.view(tasks, np.int32, 2 * count).reshape(-1, 2).tolist()
    else:
        listed = device.view(query_list, np.int32, n_queries).tolist()
        todo = [(listed[k % n_queries], k // n_queries * step) for k in range(n_tasks)]
    starts = device.view(offsets, np.uint32, warps).tolist()
    for number, (query, place) in enumerate(todo):
        entry = device.view(queries + QUERY.itemsize * query, QUERY, 1)[0]
        n_rows = int(entry["passes"]) * 32 * rows
        words = device.view(profiles + 4 * int(entry["profile"]), np.int8, n_rows * 32).reshape(-1, 32, 4)
        own = words.transpose(0, 2, 1).reshape(-1, 32).astype(np.int64)
        places = [place, place + 1][:step]
        n = _lengths(device, lengths, places, n_subjects)
        if entry["passes"] > 1 and number + 1 < warps:
            assert starts[number] + max(n) <= starts[number + 1] or tasks, "two warps would share boundaries"
        lanes = [each % 64 for each in places]
        letters = _letters(device, residues, tiles, place // 64, lanes)[:, : max(n)]
        real = slice(int(entry["padding"]), int(entry["padding"]) + int(entry["length"]))
        own = own[: real.stop]
        values = _fill(own, letters, n, mode, (gap_open, extend), bias, real, bits)
        for each, value, length in zip(places, values.tolist(), n.tolist(), strict=True):
            if length:
                device.view(scores + 4 * (query * stride + each), np.int32, 1)[0] = value


def _collect(
    device, scored, scores, stride, n_subjects, lengths, thresholds, n_lengths, least, begin, end, entries, capacity,
    count,
):  # fmt: skip
    total = device.view(count, np.uint32, 1)
    size = 3 if scored else 2
    for pair in range(begin, end):
        query, place = divmod(pair, n_subjects)
        score = int(device.view(scores + 4 * (query * stride + place), np.int32, 1)[0])
        needed = int(device.view(least + 4 * query, np.int32, 1)[0])
        if thresholds:
            length = int(device.view(lengths + 4 * place, np.int32, 1)[0])
            needed = max(needed, int(device.view(thresholds + 4 * (query * n_lengths + length), np.int32, 1)[0]))
        if score < needed:
            continue
        if total[0] < capacity:
            device.view(entries + 4 * size * int(total[0]), np.int32, size)[:] = (query, place, score)[:size]
        total[0] += 1


def _collect_hits(device, defines, warps, *arguments):
    _collect(device, True, *arguments)


def _collect_tasks(device, defines, warps, *arguments):
    _collect(device, False, *arguments)
