"""Make databases: of FASTA, or of other databases. All are streams of records, cut when the memory is full."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from swsearch.alphabet import DNA, PROTEIN, Alphabet
from swsearch.db.container import SegmentFile
from swsearch.db.contents import FileEntry
from swsearch.db.database_files import OpenFile, PathLike
from swsearch.db.dna_detection import without_dna
from swsearch.db.fasta import BUFFER_BYTES, FastaReader, ReadProgress, RecordBatch
from swsearch.db.format import Kind
from swsearch.db.input_stream import Input, stream_of
from swsearch.db.new_files import MAX_VOLUME_BYTES, NewDatabase, checked_volume_size, output_errors
from swsearch.db.record_taxa import RecordTaxa
from swsearch.db.records import (
    BUILD_MEMORY,
    MAX_SEGMENT,
    InputOrigin,
    Records,
    checked_memory,
    in_segments,
    segment_limit,
    whole_records,
)
from swsearch.db.segment_writer import low_complexity, write_segment
from swsearch.db.source import FileSource
from swsearch.db.taxid_assignment import check_taxa
from swsearch.errors import OptionError, OutputError, SequenceError, check_flag
from swsearch.masking import check_mask
from swsearch.options.words import Mask
from swsearch.translation.codes import STANDARD_CODE, checked_code

Inputs = PathLike | Iterable[PathLike]


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


def _shown_name(name: str) -> str:
    return "<stdin>" if name == "-" else name


def total_bytes(inputs: list[str]) -> int | None:
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


def check_room(output: Path, inputs: list[str]) -> None:
    """Raise `OutputError` if less is free beside an output than its inputs have, which is less than a build takes."""
    usage, n_bytes = shutil.disk_usage(output.parent), total_bytes(inputs) or 0
    if usage.total and usage.free < n_bytes:  # some file systems say 0 for what they do not know
        raise OutputError(
            f"{output}: {usage.free / 1e6:,.1f} MB are free there, expected at least the {n_bytes / 1e6:,.1f} MB of "
            "the inputs; free space there or choose another folder"
        )


def read_inputs(
    inputs: list[str], memory: int, progress: ReadProgress | None, allow_dna: bool = False,
    alphabet: Alphabet = PROTEIN,
) -> Iterator[Records]:  # fmt: skip
    """Read FASTA inputs; one that begins with DNA is an error unless it is allowed or the alphabet.

    Raises
    ------
    SequenceError
        If an input cannot be read, is DNA, or none has a residue.
    """
    check_flag("allow_dna", allow_dna)
    if progress is not None and not callable(progress):
        raise OptionError("progress", progress, "something that can be called with two numbers of bytes")
    return _read(inputs, memory, progress, allow_dna or alphabet is not PROTEIN, alphabet)


def _read(
    inputs: list[str], memory: int, progress: ReadProgress | None, allow_dna: bool, alphabet: Alphabet
) -> Iterator[Records]:
    total, done, n_records, n_residues = total_bytes(inputs), 0, 0, 0
    for name in inputs:
        with Input(name) as source:
            origin: InputOrigin = {"path": source.name}
            reader = FastaReader(source, alphabet, min(BUFFER_BYTES, memory // 128))
            batches = _reported(reader, source, done, total, progress)
            for records in of_batches(batches, memory, allow_dna, origin):
                n_records, n_residues = n_records + len(records), n_residues + len(records.codes.data)
                yield records
                del records  # before the next are read
            done += source.n_bytes
            origin |= {"sha256": source.sha256, "bytes": source.n_bytes}
    if progress is not None:
        progress(done, total)
    check_residues(", ".join(map(_shown_name, inputs[:3])), n_records, n_residues)


def check_residues(where: str, n_records: int, n_residues: int) -> None:
    """Raise `SequenceError` if records have no residue at all."""
    if not n_residues:
        raise SequenceError(where, f"no residues in {n_records} records; expected a sequence below a header line")


def _reported(
    batches: Iterable[RecordBatch], source: Input, done: int, total: int | None, progress: ReadProgress | None
) -> Iterator[RecordBatch]:
    for batch in batches:
        yield batch
        if progress is not None:
            progress(done + source.n_bytes, total)


def of_batches(
    batches: Iterable[RecordBatch], memory: int, allow_dna: bool, origin: InputOrigin
) -> Iterator[Records]:
    """Return the records of batches of one input; DNA is an error unless it is allowed."""
    return whole_records(batches if allow_dna else without_dna(origin["path"], batches), memory, origin)


def ready_segments(stream: Iterable[Records], kind: Kind, taxa: RecordTaxa | None, limit: int) -> Iterator[Records]:
    """Put records together for segments, with what their database has of them: low complexity, taxids."""
    return in_segments(_ready(stream, kind, taxa), limit)


def _ready(stream: Iterable[Records], kind: Kind, taxa: RecordTaxa | None) -> Iterator[Records]:
    for records in stream:
        if kind.mask == "tantan" and "tantan" not in records.parts:
            records.parts["tantan"] = low_complexity(records.codes)
        elif kind.mask != "tantan":
            records.parts.pop("tantan", None)
        if taxa is not None:
            taxa.take(records)
        yield records
        del records  # before the next are read


def fill(
    new: NewDatabase, streams: Iterable[Iterable[Records] | FileEntry], memory: int, taxa: RecordTaxa | None = None
) -> None:
    """Write records into a new database and give it its name.

    Parameters
    ----------
    new : NewDatabase
        The database.
    streams : iterable of iterables of Records, or of FileEntry
        The records; each time those of volumes that others do not share, or a volume that stays as it is.
    memory : int
        Working memory in bytes.
    taxa : RecordTaxa, optional
        What says their taxa.
    """
    limit = segment_limit(memory, new.volume_size)
    with output_errors(new.path):
        for stream in streams:
            if isinstance(stream, FileEntry):
                new.keep(stream)
                continue
            begins_file = True
            for records in ready_segments(stream, new.kind, taxa, limit):
                new.add(records, begins_file)
                begins_file = False
                del records  # before the next are read
        new.publish(None if taxa is None else taxa.write)


def anonymous_file(
    stream: Iterator[Records], kind: Kind, name: str, memory: int = 3 * MAX_SEGMENT, in_memory: bool = True,
    folder: Path | None = None,
) -> OpenFile:  # fmt: skip
    """Write records into a file without a name, for this process alone.

    Parameters
    ----------
    stream : iterable of Records
        The records.
    kind : Kind
        What the file is to hold.
    name : str
        What messages call it.
    memory : int, optional
        Working memory in bytes.
    in_memory : bool, optional
        Whether the file itself may stand in memory.
    folder : path, optional
        Where it stands otherwise; the system's place if None.
    """
    with output_errors(folder or Path(tempfile.gettempdir())):
        fd = os.memfd_create("swsearch") if in_memory and hasattr(os, "memfd_create") else _unnamed(folder)
        try:
            file = SegmentFile(fd, kind)
            for records in ready_segments(stream, kind, None, segment_limit(memory)):
                write_segment(file, records)
                del records  # before the next are read
            contents = file.finish()
            check_residues(name, contents.total("n_subjects"), contents.total("n_residues"))
        except BaseException:
            os.close(fd)
            raise
        return OpenFile(FileSource("", name, fd), contents)


def _unnamed(folder: Path | None) -> int:
    with tempfile.TemporaryFile(dir=folder) as file:
        return os.dup(file.fileno())


def file_of_records(records: Any, name: str, kind: Kind, allow_dna: bool) -> OpenFile:
    """Make a file in memory of Python objects; see `Database.from_records`."""
    from swsearch.db.python_records import record_batches

    check_flag("allow_dna", allow_dna)
    if not isinstance(name, str):
        raise OptionError("name", name, "a string")
    batches = record_batches(records, alphabet_of(kind))
    # the caller holds the records in memory already
    origin: InputOrigin = {"path": name, "sha256": None, "bytes": 0}
    stream = of_batches(batches, MAX_VOLUME_BYTES, allow_dna or kind.genetic_code is not None, origin)
    return anonymous_file(stream, kind, name)


def file_of_fasta(
    inputs: Inputs, kind: Kind, memory: int, progress: ReadProgress | None, allow_dna: bool
) -> OpenFile:
    """Make a file for this process alone; see `Database.from_fasta`."""
    names, memory = checked_inputs(inputs), checked_memory(memory)
    stream = read_inputs(names, memory, progress, allow_dna, alphabet_of(kind))
    # of a compressed input some times as many bytes are in the file
    in_memory = 4 * (total_bytes(names) or memory) <= memory
    return anonymous_file(stream, kind, ", ".join(map(_shown_name, names)), memory, in_memory)


def checked_kind(mask: Mask, translate: bool, genetic_code: int, has_taxids: bool = False) -> Kind:
    """Return the kind of database that is to be made.

    Raises
    ------
    OptionError
        If a code is given for proteins, or a mask for DNA.
    """
    check_mask("mask", mask)
    check_flag("translate", translate)
    code = checked_code(genetic_code)
    if not translate and code != STANDARD_CODE:
        raise OptionError("genetic_code", genetic_code, "none without translate", "proteins are not translated")
    if translate and mask != "none":
        why = "replace repeats by N before the build, or mask the queries"
        raise OptionError("mask", mask, "none with translate", why)
    return Kind(mask, code if translate else None, has_taxids)


def build_database(
    inputs: Inputs,
    output: PathLike,
    *,
    memory: int = BUILD_MEMORY,
    overwrite: bool = True,
    progress: ReadProgress | None = None,
    mask: Mask = "none",
    allow_dna: bool = False,
    volume_size: int | None = None,
    taxids: PathLike | None = None,
    taxonomy: PathLike | None = None,
    translate: bool = False,
    genetic_code: int = STANDARD_CODE,
) -> None:
    """Build a database file from FASTA, or several.

    Parameters
    ----------
    inputs : path or iterable of paths
        FASTA files, plain or compressed with gzip, bzip2, xz or zstd; ``-`` is standard input.
    output : path
        The database; it appears under this name only when it is complete.
    memory : int, optional
        Working memory in bytes, at least 64 MiB, whatever the number of records. The database has a segment for each
        third of it that records take.
    overwrite : bool, optional
        Replace a database that has this name. Other files are never replaced.
    progress : callable, optional
        Called now and then with the bytes of the inputs read so far and their total (None if not known).
    mask : {"none", "lower", "tantan"}, optional
        What searches of this database score as X unless they are told otherwise; the letters stay as they are.
    allow_dna : bool, optional
        Accept an input that looks like DNA as protein. By default it raises `SequenceError`.
    volume_size : int, optional
        Bytes that a file may have. ``output`` is then a manifest, and the database stands beside it:
        ``trembl.json`` has its volumes ``trembl.000.h5``, ``trembl.001.h5`` and so on, each with a run of the input.
        One that holds a single record may be larger; a taxonomy comes on top.
    taxids : path, optional
        Which taxa the records are of: ``"header"`` where their headers say it, as UniProt's do (``OX=9606``), or a
        file with two columns, accession and taxid, or with NCBI's four (``prot.accession2taxid.gz``). Memory for such
        a file: 20 bytes for each name of a record, besides ``memory``.
    taxonomy : path, optional
        What stands above these taxa and what they are called: a folder with NCBI's ``nodes.dmp`` and ``names.dmp``,
        or ``taxdump.tar.gz``. What of it the database needs is kept inside.
    translate : bool, optional
        Whether the inputs are DNA, of which searches compare proteins with all six reading frames. The file has the
        DNA, half a byte a nucleotide.
    genetic_code : int, optional
        NCBI's number of the code that it is translated by.

    Raises
    ------
    SequenceError
        If an input cannot be read, or holds DNA that is not to be translated.
    OutputError
        If the database cannot be written, or less disk is free than the inputs have; nothing is left behind.
    MemoryLimitError
        If a record needs more than ``memory``.
    """
    names, memory = checked_inputs(inputs), checked_memory(memory)
    check_flag("overwrite", overwrite)
    taxa, size = check_taxa(taxids, taxonomy), checked_volume_size(volume_size)
    kind = checked_kind(mask, translate, genetic_code, taxa is not None)
    with NewDatabase(output, names, kind, overwrite=overwrite, volume_size=size) as new:
        check_room(new.path, names)
        stream = read_inputs(names, memory, progress, allow_dna, alphabet_of(kind))
        fill(new, [stream], memory, None if taxa is None else RecordTaxa(taxa))


def alphabet_of(kind: Kind) -> Alphabet:
    """Return the alphabet of the inputs of a database."""
    return PROTEIN if kind.genetic_code is None else DNA
