"""Write a database file: a temporary file beside it, renamed when all is on disk."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from swsearch.alphabet import DNA, PAD, PROTEIN
from swsearch.blocks import COLUMN_MULTIPLE, LANES
from swsearch.db.format import (
    BYTES_PER_CHECKSUM,
    DATASET_TYPES,
    FORMAT_NAME,
    LIBVER,
    USER_BLOCK,
    Parts,
    UserBlock,
    fixed_text,
    hash_rest,
    is_manifest,
    n_checksums,
    read_user_block,
    software,
    version_of,
)
from swsearch.db.layout import FileSink, Sink
from swsearch.errors import OutputError
from swsearch.options.words import Mask
from swsearch.output_files import TemporaryFile, is_same_file, lock_for_change

PathLike = str | os.PathLike[str]


def now() -> str:
    """Return the time in UTC, ISO 8601, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def root_attributes(mask: str, parts: Parts = (), genetic_code: int | None = None) -> dict[str, int | str]:
    """Return the attributes that say what a database is; those that count come with its segments."""
    dna: dict[str, int | str] = {}
    if genetic_code is not None:
        dna = {"genetic_code": genetic_code, "dna_letters": DNA.letters}
    return {
        "format": FORMAT_NAME,
        "format_version": version_of(mask, parts, genetic_code),
        **({"mask": mask} if mask != "none" else {}),
        **({"parts": " ".join(parts)} if parts else {}),
        **dna,
        "alphabet": PROTEIN.name,
        "letters": PROTEIN.letters,
        "lanes": LANES,
        "pad": PAD,
        "column_multiple": COLUMN_MULTIPLE,
        "checksum_bytes": BYTES_PER_CHECKSUM,
        "created": now(),
    }


def segment_attributes(counts: dict[str, int]) -> dict[str, int | str]:
    """Return the attributes of a segment that is made now."""
    return {"created": now(), "software": software(), **counts}


def total_attributes(segments: Iterable[dict[str, int | str]]) -> dict[str, int | str]:
    """Return the root's attributes that count over the segments, from theirs."""
    every = list(segments)
    totals = {name: sum(int(each[name]) for each in every) for name in ("n_subjects", "n_residues", "n_empty")}
    return {**totals, "longest": max(int(each["longest"]) for each in every), "software": software()}


def write_attributes(place: Any, attributes: dict[str, int | str]) -> None:
    """Write attributes of an h5py group."""
    for name, value in attributes.items():
        place.attrs[name] = fixed_text(value) if isinstance(value, str) else value


class SegmentPart(Protocol):
    """What becomes a segment: all input of a build, or a segment of another database."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every dataset."""

    def write(self, sink: Sink) -> None:
        """Write every dataset and its checksums."""


class NewSegment(SegmentPart, Protocol):
    """All input of a build or an append: a `Layout`, or one of DNA."""

    mask: Mask
    """The one that is to be in force."""

    @property
    def parts(self) -> Parts:
        """The optional parts of the segment."""

    @property
    def genetic_code(self) -> int | None:
        """NCBI's number of the code that DNA is translated by; None of proteins."""

    @property
    def counts(self) -> dict[str, int]:
        """Return the attributes of the segment that count."""


def create_segment(
    segments: Any, shapes: dict[str, tuple[int, ...]], attributes: dict[str, int | str]
) -> dict[str, int]:
    """Make the next segment's group with empty datasets.

    Returns
    -------
    dict of str to int
        Where in the file the bytes of each dataset stand; no entry for an empty one.
    """
    import numpy as np
    from h5py import h5d, h5p, h5s, h5t

    group = segments.create_group(str(len(segments)))
    group.create_group("checksums")
    places: dict[str, int] = {}

    def create(name: str, kind: str, shape: tuple[int, ...]) -> None:
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_layout(h5d.CONTIGUOUS)
        # HDF5 gives it a place in the file now and writes no zeros there
        plist.set_alloc_time(h5d.ALLOC_TIME_EARLY)
        plist.set_fill_time(h5d.FILL_TIME_NEVER)
        kind_id = h5t.py_create(np.dtype(kind), logical=True)
        dataset = h5d.create(group.id, name.encode(), kind_id, h5s.create_simple(shape), plist)
        if np.prod(shape):
            places[name] = dataset.get_offset()

    for name, shape in shapes.items():
        create(name, DATASET_TYPES[name], shape)
        n_bytes = int(DATASET_TYPES[name][-1])
        for size in shape:
            n_bytes *= size
        create(f"checksums/{name}", "<u4", (n_checksums(n_bytes),))
    write_attributes(group, attributes)
    return places


def _reason(error: Exception) -> str:
    """Say why a file could not be written, and the remedy."""
    number = getattr(error, "errno", None)
    text = os.strerror(number) if number else str(error)
    if number in (errno.ENOSPC, errno.EDQUOT):
        return f"{text}; free space there or choose another folder"
    if number == errno.EFBIG:
        return f"{text}; raise the limit on file sizes (ulimit -f) or choose another file system"
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{text}; choose a folder that you may write to"
    return text


@contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """Turn errors of the operating system, which HDF5's are too, into ones that name the output."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {_reason(error)}") from error


def check_output(output: PathLike, inputs: list[str], overwrite: bool) -> Path:
    """Find out beforehand what would stop the work at its end; return the file to replace."""
    shown = os.fspath(output)
    path = Path(output).resolve()
    with output_errors(path):
        if not path.parent.is_dir():
            raise OutputError(f"{shown}: folder {path.parent} not found; create it or choose another name")
        if path.is_dir():
            raise OutputError(f"{shown}: is a directory, expected a file name for the database")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise OutputError(f"{shown}: no permission to write to {path.parent}; choose another folder")
        if path.exists():
            if any(name != "-" and is_same_file(path, name) for name in inputs):
                raise OutputError(f"{shown}: is one of the inputs; choose another name for the database")
            status = path.stat()
            ours = stat.S_ISREG(status.st_mode) and (status.st_size == 0 or read_user_block(path) is not None)
            if not ours and not is_manifest(path):
                raise OutputError(f"{shown}: exists and is not a swsearch database; choose another name")
            if not overwrite:
                raise OutputError(f"{shown}: exists; choose another name or allow to overwrite it")
    return path


@contextmanager
def replacement(path: Path, is_locked: bool = False) -> Iterator[Path]:
    """Give a temporary name beside a file; rename it at the end, or remove it on any exception.

    The renaming waits for commands that change the file, unless the caller holds their lock. They fail if it waited
    too long and comes first.
    """
    with output_errors(path):
        temporary = TemporaryFile(path)
    try:
        with output_errors(path):
            set_mode(temporary.path, existing_mode(path))
        yield temporary.path
        with output_errors(path), nullcontext() if is_locked else lock_for_change(path, is_needed=False):
            temporary.publish(path)
    finally:
        with suppress(OSError):
            temporary.discard()
    sync_folder(path.parent)


def existing_mode(path: Path) -> int | None:
    """Return a file's permissions, for what comes in its place; None if there is none."""
    return stat.S_IMODE(path.stat().st_mode) if path.exists() else None


def set_mode(path: Path, mode: int | None) -> None:
    """Set the permissions of a new file, unless it came in the place of none."""
    if mode is not None:
        path.chmod(mode)


def sync_folder(path: Path) -> None:
    """Make sure that the names in a folder are on disk, as far as its file system can."""
    with suppress(OSError):
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def fill(
    path: Path,
    layout: NewSegment,
    earlier: Sequence[tuple[SegmentPart, dict[str, int | str]]] = (),
    root: dict[str, int | str] | None = None,
) -> None:
    """Write a database file: structure, bytes, user block.

    Parameters
    ----------
    path : Path
        The file; what it holds is lost.
    layout : NewSegment
        The last segment.
    earlier : sequence of (SegmentPart, dict), optional
        The segments before it, with their attributes.
    root : dict, optional
        Attributes of the file, but for those that count; by default those of a database that is made now.
    """
    import h5py

    parts = [*earlier, (layout, segment_attributes(layout.counts))]
    try:
        with h5py.File(path, "w", libver=LIBVER, locking=False, userblock_size=USER_BLOCK) as file:
            made = root_attributes(layout.mask, layout.parts, layout.genetic_code)
            write_attributes(file, made if root is None else root)
            write_attributes(file, total_attributes(attributes for _, attributes in parts))
            segments = file.create_group("segments")
            places = [create_segment(segments, part.shapes(), attributes) for part, attributes in parts]
    except RuntimeError as error:  # h5py's choice of class for some failures of HDF5
        raise OSError(str(error)) from error
    with path.open("rb+", buffering=0) as raw:
        for (part, _), inside in zip(parts, places, strict=True):
            part.write(FileSink(raw.fileno(), inside))
    seal(path, version_of(layout.mask, layout.parts, layout.genetic_code))


def seal(path: Path, version: int) -> None:
    """Write the user block of a finished file and make sure that all of the file is on disk."""
    with path.open("rb+") as raw:
        raw.seek(0)
        block = UserBlock(version, *hash_rest(raw)).pack()
        raw.seek(0)
        raw.write(block)
        raw.flush()
        os.fsync(raw.fileno())
