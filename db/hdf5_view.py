"""The structure of a database file as h5py sees it.

libhdf5 trusts a file: a damaged one can make it crash, hang or allocate without limit. So only a child process with
little memory and time opens an existing file. Its output is checked as the file itself. ``python -m
swsearch.db.hdf5_view N`` reads the first N bytes of its standard input, a file, and writes JSON.
"""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from swsearch.db.format import FORMAT_NAME, FORMAT_VERSION, LAYOUT
from swsearch.errors import MemoryLimitError

if TYPE_CHECKING:
    from swsearch.db.byte_source import FileSource
    from swsearch.db.file_contents import Contents

TIMEOUT_SECONDS = 60
MEMORY_BYTES = 2 << 30
MAX_ANSWER_BYTES = 64 << 20

Seen = dict[str, Any]
"""``attributes`` of the root; ``segments`` by name, each with ``attributes``, ``arrays`` and ``checksums``; and the
arrays ``contents``. An array is a list: type, shape, and offset in the file, -1 if its bytes are not in one place."""


def hdf5_view(source: FileSource, n_bytes: int) -> Seen:
    """Return the structure in the first bytes of an open file, as h5py sees it.

    It raises `DatabaseDamageError` if h5py fails, and `MemoryLimitError` if it fails under a limit below
    `MEMORY_BYTES`.
    """
    paths = os.pathsep.join(each or str(Path.cwd()) for each in sys.path)
    environment = os.environ | {"PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, "-P", "-m", __name__, str(n_bytes)]
    try:
        done = subprocess.run(
            words, stdin=source.fileno(), capture_output=True, timeout=TIMEOUT_SECONDS, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        raise source.damage_error([f"HDF5 does not read it within {TIMEOUT_SECONDS} s"]) from None
    if done.returncode or len(done.stdout) > MAX_ANSWER_BYTES:
        limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
        limit = min((each for each in limits if each != resource.RLIM_INFINITY), default=MEMORY_BYTES)
        if limit < MEMORY_BYTES:  # HDF5 does not say that memory is short
            raise MemoryLimitError(
                f"{source.name}: h5py could not look at it within {limit >> 20} MiB of memory; allow more (ulimit -v)"
            )
        lines = done.stderr.decode("ascii", "replace").split("\n")
        reason = next((line for line in reversed(lines) if line.strip()), f"ended with {done.returncode}")
        raise source.damage_error([f"HDF5 cannot read it ({reason[:200]})"])
    seen: Seen = json.loads(done.stdout)
    return seen


def differences(source: FileSource, contents: Contents) -> Iterator[str]:
    """Yield where h5py sees something else than the contents say."""
    seen = hdf5_view(source, contents.n_bytes)
    expected = {"format": FORMAT_NAME, "format_version": FORMAT_VERSION, **contents.kind.attributes, **LAYOUT}
    if seen["attributes"] != expected:
        yield "attributes of HDF5 are not those of the contents"
    pieces = {str(number): ["|u1", [each.n_bytes], each.at] for number, each in enumerate(contents.pieces)}
    if seen["contents"] != pieces:
        yield "/contents of HDF5 is not where the user block says"
    if list(seen["segments"]) != [str(number) for number in range(len(contents.segments))]:
        yield "segments of HDF5 are not those of the contents"
        return
    for (number, other), segment in zip(seen["segments"].items(), contents.segments, strict=True):
        if other["attributes"] != segment.attributes:
            yield f"/segments/{number}: attributes of HDF5 are not those of the contents"
        arrays = {name: [np.dtype(each.dtype).str, [*each.shape], each.at] for name, each in segment.arrays.items()}
        first, n_sums = next(iter(segment.arrays.values())), sum(each.n_pieces for each in segment.arrays.values())
        arrays["checksums"] = ["<u4", [n_sums], first.sums_at if n_sums else 0]
        for name in sorted({*arrays, *other["arrays"]}):
            if arrays.get(name) != other["arrays"].get(name):
                yield f"/segments/{number}/{name} of HDF5 is not as in the contents"


class _Beginning(io.FileIO):
    """The first bytes of a file, as if it had no more: HDF5 says where what it has written ends, as it opens one."""

    n_bytes = 0

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        return super().seek(offset + self.n_bytes) if whence == io.SEEK_END else super().seek(offset, whence)


def _inspect(opened: _Beginning) -> Seen:
    """Look at a file with h5py; only hard links are followed."""
    import h5py

    def members(group: Any) -> dict[str, Any]:
        links = {name: group.get(name, getlink=True) for name in group}
        return {name: group[name] for name, link in links.items() if isinstance(link, h5py.HardLink)}

    def attributes(place: Any) -> dict[str, Any]:
        """Return whole numbers and texts of fixed length; other programs may add attributes of other types."""
        values = {name: value for name, value in place.attrs.items() if isinstance(value, (bytes, np.integer))}
        return {name: value.decode() if isinstance(value, bytes) else int(value) for name, value in values.items()}

    def arrays(group: Any) -> dict[str, Any]:
        return {name: array(each) for name, each in members(group).items() if isinstance(each, h5py.Dataset)}

    def array(dataset: Any) -> list[Any]:
        properties = dataset.id.get_create_plist()
        is_in_one_place = properties.get_layout() == h5py.h5d.CONTIGUOUS and not properties.get_external_count()
        offset = dataset.id.get_offset() if is_in_one_place and dataset.size else 0
        return [dataset.dtype.str, list(dataset.shape), offset if is_in_one_place and offset is not None else -1]

    def segment(group: Any) -> dict[str, Any]:
        sums = members(group).get("checksums")
        values = arrays(sums) if isinstance(sums, h5py.Group) else {}
        return {"attributes": attributes(group), "arrays": arrays(group), "checksums": values}

    with h5py.File(opened, "r") as file:
        groups = members(members(file)["segments"])
        names = sorted(groups, key=lambda name: (len(name), name))
        segments = {name: segment(groups[name]) for name in names}
        pieces = members(file).get("contents")
        values = arrays(pieces) if isinstance(pieces, h5py.Group) else {}
        return {"attributes": attributes(file), "segments": segments, "contents": values}


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
    with suppress(ValueError, OSError):  # a system that cannot limit it
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    with _Beginning(0, closefd=False) as given:  # its name may lead to another file by now
        given.n_bytes = int(sys.argv[1])
        sys.stdout.write(json.dumps(_inspect(given)))
