"""Make a database file: a temporary file beside it, renamed when all is on disk."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from swsearch.alphabet import PAD, PROTEIN
from swsearch.blocks import COLUMN_MULTIPLE, LANES
from swsearch.db.disk import DiskWatch
from swsearch.db.dna import DnaWatch
from swsearch.db.fasta import BUFFER_BYTES, FastaReader, ReadProgress, RecordBatch
from swsearch.db.format import (
    BYTES_PER_CHECKSUM,
    DATASET_TYPES,
    FORMAT_NAME,
    LIBVER,
    USER_BLOCK,
    UserBlock,
    fixed_text,
    hash_rest,
    n_checksums,
    read_user_block,
    software,
    version_of,
)
from swsearch.db.inputs import Input, stream_of
from swsearch.db.layout import FileSink, Layout, Sink
from swsearch.db.numbers import MIB
from swsearch.db.spool import Spool
from swsearch.errors import OptionError, OutputError, check_flag
from swsearch.masking import Mask, check_mask
from swsearch.output_files import TemporaryFile, umask

BUILD_MEMORY = 512 * MIB
"""Memory of a build in bytes."""

SMALLEST_MEMORY = 64 * MIB
"""Least memory that can be asked for; the interpreter and what reads the inputs take a little more."""

PathLike = str | os.PathLike[str]
Inputs = PathLike | Iterable[PathLike]


def checked_memory(memory: int) -> int:
    """Return the budget, or raise if a build cannot keep it."""
    if isinstance(memory, bool) or not isinstance(memory, int) or memory < SMALLEST_MEMORY:
        raise OptionError("memory", memory, f"a number of bytes, at least {SMALLEST_MEMORY} (64 MiB)")
    return memory


def checked_inputs(inputs: Inputs) -> list[str]:
    """Return the inputs as a list of names; at least one, standard input at most once."""
    if isinstance(inputs, (str, os.PathLike)):
        inputs = [inputs]
    expected = "paths of FASTA files; Database.from_records takes records and open files"
    if isinstance(inputs, (bytes, Mapping)) or hasattr(inputs, "read") or not isinstance(inputs, Iterable):
        raise OptionError("inputs", inputs, expected)
    inputs = list(inputs)
    for name in inputs:
        if not isinstance(name, (str, os.PathLike)):
            raise OptionError("inputs", name, expected)
    names = [os.fsdecode(name) for name in inputs]
    if not names:
        raise OptionError("inputs", names, "at least one FASTA file, or '-' for standard input")
    if names.count("-") > 1:
        raise OptionError("inputs", names, "'-' (standard input) at most once")
    streams = [stream for stream in map(stream_of, names) if any(stream)]
    if len(set(streams)) < len(streams):
        raise OptionError("inputs", names, "each pipe at most once")
    return names


def _total_bytes(inputs: list[str]) -> int | None:
    """Add up the sizes of the inputs; None if one is no regular file. `Input` reports what is missing."""
    total = 0
    for name in inputs:
        try:
            status = Path(name).stat()
        except (OSError, ValueError):
            return None
        if name == "-" or not stat.S_ISREG(status.st_mode):
            return None
        total += status.st_size
    return total


def read_inputs(
    spool: Spool,
    inputs: list[str],
    memory: int,
    progress: ReadProgress | None,
    allow_dna: bool = False,
    disk: DiskWatch | None = None,
) -> None:
    """Read FASTA inputs into a spool; one that holds DNA is an error unless it is allowed.

    Without a watch of the disk the database is one for this process alone, which may go to temporary files.
    """
    check_flag("allow_dna", allow_dna)
    if progress is not None and not callable(progress):
        raise OptionError("progress", progress, "something that can be called with two numbers of bytes")
    disk = DiskWatch(None, memory) if disk is None else disk
    disk.check_before(inputs)
    total = _total_bytes(inputs)
    done = 0
    for name in inputs:
        records, residues = spool.n_subjects, spool.n_residues
        with Input(name) as source:
            reader = FastaReader(source, PROTEIN, min(BUFFER_BYTES, memory // 32))
            batches = _reported(reader, source, done, total, progress)
            for batch in batches if allow_dna else DnaWatch(source.name).watch(batches):
                spool.add([batch])
                disk.check(spool)
            done += source.n_bytes
            spool.sources.append(
                {
                    "path": source.name,
                    "sha256": source.sha256,
                    "bytes": source.n_bytes,
                    "records": spool.n_subjects - records,
                    "residues": spool.n_residues - residues,
                }
            )
    if progress is not None:
        progress(done, total)


def _reported(
    batches: Iterable[RecordBatch], source: Input, done: int, total: int | None, progress: ReadProgress | None
) -> Iterator[RecordBatch]:
    for batch in batches:
        yield batch
        if progress is not None:
            progress(done + source.n_bytes, total)


def now() -> str:
    """Return the time in UTC, ISO 8601, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def root_attributes(mask: str) -> dict[str, int | str]:
    """Return the attributes that say what a database is; those that count come with its segments."""
    return {
        "format": FORMAT_NAME,
        "format_version": version_of(mask),
        **({"mask": mask} if mask != "none" else {}),
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


def _same_file(path: Path, name: str) -> bool:
    try:
        return name != "-" and path.samefile(name)
    except (OSError, ValueError):  # an input that cannot be examined is not the output, which was
        return False


def check_output(output: PathLike, inputs: list[str], overwrite: bool) -> Path:
    """Find out beforehand what would stop the work at its end; return the file to replace."""
    shown = os.fspath(output)
    path = Path(output).resolve()
    with output_errors(path):
        if not path.parent.is_dir():
            raise OutputError(f"{shown}: there is no folder {path.parent}; make it or choose another name")
        if path.is_dir():
            raise OutputError(f"{shown}: is a directory, expected a file name for the database")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise OutputError(f"{shown}: no permission to write to {path.parent}; choose another folder")
        if path.exists():
            if any(_same_file(path, name) for name in inputs):
                raise OutputError(f"{shown}: is one of the inputs; choose another name for the database")
            status = path.stat()
            ours = stat.S_ISREG(status.st_mode) and (status.st_size == 0 or read_user_block(path) is not None)
            if not ours:
                raise OutputError(f"{shown}: exists and is no swsearch database; choose another name")
            if not overwrite:
                raise OutputError(f"{shown}: exists; choose another name or allow to overwrite it")
    return path


@contextmanager
def replacement(path: Path) -> Iterator[Path]:
    """Give a temporary name beside a file; rename it at the end, or remove it on any exception."""
    with output_errors(path):
        temporary = TemporaryFile(path)
    try:
        with output_errors(path):
            mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~umask()
            temporary.path.chmod(mode)
        yield temporary.path
        with output_errors(path):
            temporary.publish(path)
    finally:
        with suppress(OSError):
            temporary.discard()
    with suppress(OSError):  # the rename is on disk when the folder is; some file systems refuse
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def fill(
    path: Path,
    layout: Layout,
    earlier: Sequence[tuple[SegmentPart, dict[str, int | str]]] = (),
    root: dict[str, int | str] | None = None,
) -> None:
    """Write a database file: structure, bytes, user block.

    Parameters
    ----------
    path : Path
        The file; what it holds is lost.
    layout : Layout
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
            write_attributes(file, root_attributes(layout.mask) if root is None else root)
            write_attributes(file, total_attributes(attributes for _, attributes in parts))
            segments = file.create_group("segments")
            places = [create_segment(segments, part.shapes(), attributes) for part, attributes in parts]
    except RuntimeError as error:  # h5py's choice of class for some failures of HDF5
        raise OSError(str(error)) from error
    with path.open("rb+", buffering=0) as raw:
        for (part, _), inside in zip(parts, places, strict=True):
            part.write(FileSink(raw.fileno(), inside))
    seal(path, version_of(layout.mask))


def seal(path: Path, version: int) -> None:
    """Write the user block of a finished file and make sure that all of the file is on disk."""
    with path.open("rb+") as raw:
        raw.seek(0)
        block = UserBlock(version, *hash_rest(raw)).pack()
        raw.seek(0)
        raw.write(block)
        raw.flush()
        os.fsync(raw.fileno())


def build_database(
    inputs: Inputs,
    output: PathLike,
    *,
    memory: int = BUILD_MEMORY,
    overwrite: bool = True,
    progress: ReadProgress | None = None,
    mask: Mask = "none",
    allow_dna: bool = False,
) -> None:
    """Build a database file from FASTA.

    Parameters
    ----------
    inputs : path or iterable of paths
        FASTA files, plain or compressed with gzip, bzip2, xz or zstd; ``-`` is standard input.
    output : path
        The database; it appears under this name only when it is complete. Temporary files stand in its folder while
        the build runs: with the database that is 2 bytes for each residue and each byte of a header, and 48 for each
        record.
    memory : int, optional
        Working memory in bytes, at least 64 MiB, whatever the number of records.
    overwrite : bool, optional
        Replace a database that has this name. Other files are never replaced.
    progress : callable, optional
        Called now and then with the bytes of the inputs read so far and their total (None if not known).
    mask : {"none", "lower", "tantan"}, optional
        What searches of this database score as X unless they are told otherwise; the letters stay as they are.
    allow_dna : bool, optional
        Whether to take an input that holds only letters of DNA for protein.

    Raises
    ------
    SequenceError
        If an input cannot be read, or holds DNA.
    OutputError
        If the database cannot be written, or the disk has not as much room as it takes; nothing is left behind.
    MemoryLimitError
        If the 64 longest records need more than ``memory``.
    """
    names, memory = checked_inputs(inputs), checked_memory(memory)
    check_mask("mask", mask)
    check_flag("overwrite", overwrite)
    path = check_output(output, names, overwrite)
    with output_errors(path), Spool(path.parent) as spool, replacement(path) as temporary:
        read_inputs(spool, names, memory, progress, allow_dna, DiskWatch(path, memory))
        fill(temporary, Layout(spool, memory, mask))
