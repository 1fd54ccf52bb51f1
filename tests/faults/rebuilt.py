"""Databases of another structure: what HDF5 can put in the place of a plain dataset, group or attribute."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from swsearch.db.format import DATASETS, checksums, version_of
from swsearch.db.writing import seal

Change = Callable[[random.Random, Any, str, Path], str]


def _taken(group: Any, name: str) -> Any:
    """Take a dataset out; return its values."""
    values = group[name][()]
    del group[name]
    return values


def _chunked(generator: random.Random, group: Any, name: str, folder: Path) -> str:
    values = _taken(group, name)
    squeezed = generator.choice([None, "gzip", "lzf"])
    group.create_dataset(name, data=values, chunks=True, compression=squeezed)
    return f"chunked, compression {squeezed}"


def _bomb(generator: random.Random, group: Any, name: str, folder: Path) -> str:
    values = _taken(group, name)
    rows = generator.choice([2**31, 2**38, 2**45]) // values.itemsize
    shape = (rows, *values.shape[1:])
    chunks = (1 << 20, *values.shape[1:]) if generator.random() < 0.5 else None
    group.create_dataset(name, shape=shape, dtype=values.dtype, chunks=chunks, compression="gzip" if chunks else None)
    if generator.random() < 0.5:
        del group[f"checksums/{name}"]
        count = min(rows * values.itemsize * max(values.shape[-1] if values.ndim > 1 else 1, 1) >> 20, 2**40)
        group.create_dataset(f"checksums/{name}", shape=(count,), dtype="<u4")
    return f"of shape {shape} without bytes"


def _virtual(generator: random.Random, group: Any, name: str, folder: Path) -> str:
    values = _taken(group, name)
    with h5py.File(folder / "other.h5", "w") as other:
        other["values"] = values
    layout = h5py.VirtualLayout(values.shape, values.dtype)
    layout[...] = h5py.VirtualSource("other.h5", "values", values.shape, values.dtype)
    group.create_virtual_dataset(name, layout)
    return "virtual"


def _external(generator: random.Random, group: Any, name: str, folder: Path) -> str:
    values = _taken(group, name)
    (folder / "other.bin").write_bytes(values.tobytes())
    size = max(values.nbytes, 1)
    group.create_dataset(name, values.shape, values.dtype, external=[("other.bin", 0, size)])
    if generator.random() < 0.5:
        (folder / "other.bin").unlink()
        os.mkfifo(folder / "other.bin")
    return "external"


def _linked(generator: random.Random, group: Any, name: str, folder: Path) -> str:
    kind = generator.randrange(5)
    if kind == 0:
        group.move(name, f"{name}_moved")
        group[name] = h5py.SoftLink(f"{group.name}/{name}_moved")
        return "a soft link"
    values = _taken(group, name)
    if kind == 1:
        group[name] = h5py.SoftLink(generator.choice(["/nothing", f"{group.name}/{name}", "/segments", "."]))
        return "a link to nothing"
    target = "other.h5"
    if kind == 2:
        with h5py.File(folder / target, "w") as other:
            other["values"] = values
    elif kind == 3:
        os.mkfifo(folder / target)
    else:
        target = "/dev/zero"
    group[name] = h5py.ExternalLink(target, "values")
    return f"an external link to {['a file', 'a FIFO', 'a device'][kind - 2]}"


def _group(generator: random.Random, group: Any, name: str, folder: Path) -> str:
    del group[name]
    if generator.random() < 0.5:
        group.create_group(name)
        return "a group"
    return "missing"


def _typed(generator: random.Random, group: Any, name: str, folder: Path) -> str:
    values = _taken(group, name)
    kinds = ["f8", ">i8", "u2", "S3", "c16", "O", "?", [("a", "i4"), ("b", "u1")]]
    kind = generator.choice(kinds)
    shape = generator.choice([values.shape, (), (0,), (3, 3), None])
    if shape is None:
        group[name] = h5py.Empty("i8")
        return "empty"
    dtype = h5py.string_dtype() if kind == "O" else np.dtype(kind)
    group.create_dataset(name, shape=shape, dtype=dtype)
    return f"of type {kind} and shape {shape}"


def _unwritten(generator: random.Random, group: Any, name: str, folder: Path) -> str:
    values = _taken(group, name)
    longer = generator.choice([0, 0, 1, 1000])
    group.create_dataset(name, (len(values) + longer, *values.shape[1:]), values.dtype)
    return "never written"


def _overlaid(generator: random.Random, group: Any, name: str, folder: Path) -> str:
    other = generator.choice([each for each in DATASETS if each != name])
    del group[name]
    group[name] = group[other]
    return f"the same as {other}"


STORED: list[Change] = [_chunked, _bomb, _virtual, _external, _linked, _group, _typed, _unwritten, _overlaid]


def _attributes(generator: random.Random, file: Any, group: Any) -> str:
    owner = generator.choice([file, file, group])
    name = generator.choice(sorted(owner.attrs))
    values: list[Any] = [
        -1, 2**62, 3.5, float("nan"), "text", b"\xff\xfe", "", np.arange(5), np.array([], "i8"), h5py.Empty("i4"),
        file.ref, np.True_, "\x1b[31mred", ["a", "b"], "x" * 60_000, np.zeros((3, 3)), np.array([(1, 2)], "i4,i4"),
    ]  # fmt: skip
    if generator.random() < 0.2:
        del owner.attrs[name]
        return f"attribute {name} missing"
    value = generator.choice(values)
    owner.attrs[name] = value
    return f"attribute {name} is {value!r:.40}"


def _sources(generator: random.Random, file: Any, group: Any) -> str:
    texts = [
        b"{}", b"3", b"null", b'"x"', b"[3]", b"[[]]", b"[{}]", b"", b"\xff", b"[" * 100_000, b'{"a":' * 50_000,
        b"[" * 100_000 + b"]" * 100_000, b'[{"path": 3}]', b'[{"path": "\\u001b[31m", "sha256": null}]',
        b"[1e999]", b"[" + b"9" * 5000 + b"]", b"[NaN]", b'[{"path": {"a": [1]}, "records": "many"}]',
        b'[{"path": "\\ud800"}]',
    ]  # fmt: skip
    text = generator.choice(texts)
    _write(group, "sources", np.frombuffer(text, dtype="u1"))
    return f"sources {text[:30]!r}"


def _write(group: Any, name: str, values: Any) -> None:
    del group[name], group[f"checksums/{name}"]
    group.create_dataset(name, data=values, dtype=DATASETS[name])
    group.create_dataset(f"checksums/{name}", data=np.array(checksums(values.tobytes()), dtype="<u4"))


def _segments(generator: random.Random, file: Any, group: Any) -> str:
    kind = generator.randrange(7)
    if kind == 0:
        del file["segments"]
        return "no segments"
    if kind == 1:
        file.move("segments/0", "segments/7")
        return "segment 0 is called 7"
    if kind == 2:
        for number in range(1, generator.choice([2, 50, 1000])):
            file[f"segments/{number}"] = group
        return "one segment many times"
    if kind == 3:
        file["segments/1"] = h5py.SoftLink("/segments/0")
        return "a segment is a link"
    if kind == 4:
        del file["segments/0"]
        file["segments/0"] = np.arange(4)
        return "a segment is a dataset"
    if kind == 5:
        del group["checksums"]
        group["checksums"] = generator.choice([np.arange(3), h5py.SoftLink("/segments/0")])
        return "checksums are no group"
    file["segments/x"] = file["segments/0"]
    return "a segment is called x"


def _lengthened(generator: random.Random, file: Any, group: Any) -> str:
    """Numbers that fit each other but not the rest."""
    name = generator.choice(["header_offsets", "mask_starts", "mask_ends", "lengths", "order", "block_offsets"])
    values = group[name][()]
    longer = np.append(values, values[-1:] if generator.random() < 0.5 else values[:1])
    _write(group, name, longer if generator.random() < 0.7 else values[:-1])
    return f"{name} has {len(longer)} numbers"


def rebuild(generator: random.Random, path: Path) -> str:
    """Change a database's structure and make its checksums right again; say what was done."""
    with h5py.File(path, "r+", libver=("v108", "v108"), locking=False) as file:
        mask = file.attrs.get("mask", b"none").decode()
        group = file["segments/0"]
        if generator.random() < 0.6:
            name = generator.choice([*DATASETS, "checksums/residues", "checksums/lengths"])
            try:
                what = f"{name} is {generator.choice(STORED)(generator, group, name, path.parent)}"
            except (KeyError, OSError, TypeError, ValueError) as error:  # what HDF5 itself does not let be written
                what = f"{name} is missing ({error})"
        else:
            change = generator.choice([_attributes, _sources, _segments, _lengthened])
            try:
                what = change(generator, file, group)
            except OSError:  # a database of two segments has that name already
                what = "as it was"
    seal(path, version_of(mask))
    return what
