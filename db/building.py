"""Building of databases from FASTA, Python objects or other databases.

All inputs are streams of records, which are cut into segments when the memory is full. The module also finds records
with the same identifier.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from swsearch.alphabet import ALPHABETS, DNA, PROTEIN, STRUCTURAL, Alphabet
from swsearch.blocks import IntArray, check_mask, unique_with_places
from swsearch.db.arrays import Strips
from swsearch.db.byte_source import FileSource
from swsearch.db.container import SegmentFile
from swsearch.db.database_files import OpenFile, PathLike
from swsearch.db.fasta import BUFFER_BYTES, FastaReader, ReadProgress, RecordBatch, header_text, without_dna
from swsearch.db.file_contents import FileEntry
from swsearch.db.format import DatabaseKind
from swsearch.db.input_stream import Input, stream_identity
from swsearch.db.name_lookup import HeaderBatch, Sums, first_words, lines_of, map_in_order, pieces_of, sums_of
from swsearch.db.new_files import MAX_VOLUME_BYTES, NewDatabase, check_volume_size, output_errors
from swsearch.db.records import (
    BUILD_MEMORY,
    MAX_SEGMENT,
    MIB,
    InputOrigin,
    SegmentInput,
    check_memory,
    group_into_segments,
    segment_limit,
    whole_records,
)
from swsearch.db.segment_writer import find_low_complexity, write_segment
from swsearch.db.taxid_assignment import RecordTaxa, check_taxa
from swsearch.errors import OptionError, OutputError, SequenceError, check_choice, check_flag
from swsearch.options.kinds import Mask, OnDuplicate, SubjectAlphabet
from swsearch.translation.genetic_codes import STANDARD_CODE, check_genetic_code

Inputs = PathLike | Iterable[PathLike]


def check_inputs(inputs: Inputs) -> list[str]:
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
    streams = [stream for stream in map(stream_identity, names) if any(stream)]
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


def check_free_space(output: Path, inputs: list[str]) -> None:
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
) -> Iterator[SegmentInput]:  # fmt: skip
    """Read FASTA inputs; DNA is an error unless it is allowed or the alphabet is DNA."""
    check_flag("allow_dna", allow_dna)
    if progress is not None and not callable(progress):
        raise OptionError("progress", progress, "something that can be called with two numbers of bytes")
    return _read(inputs, memory, progress, allow_dna or alphabet is not PROTEIN, alphabet)


def _read(
    inputs: list[str], memory: int, progress: ReadProgress | None, allow_dna: bool, alphabet: Alphabet
) -> Iterator[SegmentInput]:
    total, done, n_records, n_residues = total_bytes(inputs), 0, 0, 0
    for name in inputs:
        with Input(name) as source:
            origin: InputOrigin = {"path": source.name}
            reader = FastaReader(source, alphabet, min(BUFFER_BYTES, memory // 128))
            batches = _report_progress(reader, source, done, total, progress)
            for records in read_batches(batches, memory, allow_dna, origin):
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


def _report_progress(
    batches: Iterable[RecordBatch], source: Input, done: int, total: int | None, progress: ReadProgress | None
) -> Iterator[RecordBatch]:
    for batch in batches:
        yield batch
        if progress is not None:
            progress(done + source.n_bytes, total)


def read_batches(
    batches: Iterable[RecordBatch], memory: int, allow_dna: bool, origin: InputOrigin
) -> Iterator[SegmentInput]:
    """Return the records of batches of one input; DNA is an error unless it is allowed."""
    return whole_records(batches if allow_dna else without_dna(origin["path"], batches), memory, origin)


def prepare_segments(
    stream: Iterable[SegmentInput], kind: DatabaseKind, taxa: RecordTaxa | None, limit: int
) -> Iterator[SegmentInput]:
    """Join records to segments, with low complexity and taxids as the database has them."""
    return group_into_segments(_prepare(stream, kind, taxa), limit)


def _prepare(stream: Iterable[SegmentInput], kind: DatabaseKind, taxa: RecordTaxa | None) -> Iterator[SegmentInput]:
    for records in stream:
        if kind.mask == "tantan" and "tantan" not in records.parts:
            records.parts["tantan"] = find_low_complexity(records.codes)
        elif kind.mask != "tantan":
            records.parts.pop("tantan", None)
        if taxa is not None:
            taxa.assign(records)
        yield records
        del records  # before the next are read


def write_database(
    new: NewDatabase,
    streams: Iterable[Iterable[SegmentInput] | FileEntry],
    memory: int,
    taxa: RecordTaxa | None = None,
) -> None:
    """Write records into a new database and give it its name.

    Each of ``streams`` has the records of one or more volumes, or is a volume that stays as it is. ``memory`` is in
    bytes.
    """
    limit = segment_limit(memory, new.volume_size)
    with output_errors(new.path):
        for stream in streams:
            if isinstance(stream, FileEntry):
                new.keep(stream)
                continue
            begins_file = True
            for records in prepare_segments(stream, new.kind, taxa, limit):
                new.add(records, begins_file)
                begins_file = False
                del records  # before the next are read
        new.publish(None if taxa is None else taxa.write)


def anonymous_file(
    stream: Iterator[SegmentInput], kind: DatabaseKind, name: str, memory: int = 3 * MAX_SEGMENT,
    in_memory: bool = True, folder: Path | None = None,
) -> OpenFile:  # fmt: skip
    """Write records into a file without a name, in memory or in a folder, for this process only."""
    with output_errors(folder or Path(tempfile.gettempdir())):
        fd = os.memfd_create("swsearch") if in_memory and hasattr(os, "memfd_create") else _unnamed(folder)
        try:
            file = SegmentFile(fd, kind)
            for records in prepare_segments(stream, kind, None, segment_limit(memory)):
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


def file_from_records(records: Any, name: str, kind: DatabaseKind, allow_dna: bool) -> OpenFile:
    """Make a file in memory of Python objects; see `Database.from_records`."""
    from swsearch.db.python_records import record_batches

    check_flag("allow_dna", allow_dna)
    if not isinstance(name, str):
        raise OptionError("name", name, "a string")
    batches = record_batches(records, alphabet_of(kind))
    # the caller holds the records in memory already
    origin: InputOrigin = {"path": name, "sha256": None, "bytes": 0}
    stream = read_batches(batches, MAX_VOLUME_BYTES, allow_dna or alphabet_of(kind) is not PROTEIN, origin)
    return anonymous_file(stream, kind, name)


def file_from_fasta(
    inputs: Inputs, kind: DatabaseKind, memory: int, progress: ReadProgress | None, allow_dna: bool
) -> OpenFile:
    """Make a file for this process alone; see `Database.from_fasta`."""
    names, memory = check_inputs(inputs), check_memory(memory)
    stream = read_inputs(names, memory, progress, allow_dna, alphabet_of(kind))
    # of a compressed input some times as many bytes are in the file
    in_memory = 4 * (total_bytes(names) or memory) <= memory
    return anonymous_file(stream, kind, ", ".join(map(_shown_name, names)), memory, in_memory)


def make_kind(
    mask: Mask, translate: bool, genetic_code: int, alphabet: SubjectAlphabet = "protein", has_taxids: bool = False
) -> DatabaseKind:
    """Return the kind of a new database; raise `OptionError` for options that do not go together."""
    check_mask("mask", mask)
    check_flag("translate", translate)
    code = check_genetic_code(genetic_code)
    if not translate and code != STANDARD_CODE:
        raise OptionError("genetic_code", genetic_code, "none without translate", "proteins are not translated")
    if translate and mask != "none":
        why = "replace repeats by N before the build, or mask the queries"
        raise OptionError("mask", mask, "none with translate", why)
    check_choice("alphabet", alphabet, ("protein", *STRUCTURAL))
    if alphabet in STRUCTURAL and (translate or mask == "tantan"):
        raise OptionError("alphabet", alphabet, f"protein with {'translate' if translate else 'mask tantan'}")
    return DatabaseKind(mask, code if translate else None, has_taxids, alphabet)


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
    alphabet: SubjectAlphabet = "protein",
) -> None:
    """Build a database file from FASTA, or several.

    Parameters
    ----------
    inputs : path or iterable of paths
        FASTA files, plain or compressed with gzip, bzip2, xz or zstd; ``-`` is standard input.
    output : path
        Database file to write; it gets this name when it is complete.
    memory : int, optional
        Working memory in bytes, at least 64 MiB, for any number of records. The records of a segment take a third of
        it.
    overwrite : bool, optional
        Replace a database that has this name. Other files are never replaced.
    progress : callable, optional
        Called now and then with the bytes of the inputs read so far and their total (None if not known).
    mask : {"none", "lower", "tantan"}, optional
        Residues that searches score as X by default; the database keeps every residue.
    allow_dna : bool, optional
        Accept an input that looks like DNA as protein. By default it raises `SequenceError`.
    volume_size : int, optional
        Maximum bytes of a file. ``output`` is then a manifest with the volumes beside it: ``trembl.json`` has the
        volumes ``trembl.000.h5``, ``trembl.001.h5`` and so on, each with a run of the input. A volume of a single
        record may be larger, and a taxonomy is added.
    taxids : path, optional
        Source of the taxids: ``"header"`` for headers such as UniProt's (``OX=9606``), or a file with two columns,
        accession and taxid, or with NCBI's four (``prot.accession2taxid.gz``). A file takes 20 bytes of memory for
        each name of a record, besides ``memory``.
    taxonomy : path, optional
        NCBI's taxonomy: a folder with ``nodes.dmp`` and ``names.dmp``, or ``taxdump.tar.gz``. The database keeps the
        part that it needs.
    translate : bool, optional
        Whether the inputs are DNA, whose six reading frames are compared with proteins. The file has the DNA, half a
        byte per nucleotide.
    genetic_code : int, optional
        NCBI's number of the genetic code of the translation.
    alphabet : {"protein", "3di", "tea"}, optional
        Meaning of the letters: amino acids, or letters of structure. Only queries of the same alphabet are compared.

    Raises
    ------
    SequenceError
        If an input cannot be read, or holds DNA that is not to be translated.
    OutputError
        If the database cannot be written, or less disk is free than the inputs have; nothing is left behind.
    MemoryLimitError
        If a record needs more than ``memory``.
    """
    names, memory = check_inputs(inputs), check_memory(memory)
    check_flag("overwrite", overwrite)
    taxa, size = check_taxa(taxids, taxonomy), check_volume_size(volume_size)
    kind = make_kind(mask, translate, genetic_code, alphabet, taxa is not None)
    with NewDatabase(output, names, kind, overwrite=overwrite, volume_size=size) as new:
        check_free_space(new.path, names)
        stream = read_inputs(names, memory, progress, allow_dna, alphabet_of(kind))
        write_database(new, [stream], memory, None if taxa is None else RecordTaxa(taxa))


def alphabet_of(kind: DatabaseKind) -> Alphabet:
    """Return the alphabet of the inputs of a database."""
    return ALPHABETS[kind.alphabet] if kind.genetic_code is None else DNA


DUPLICATE_RULES: tuple[OnDuplicate, ...] = get_args(OnDuplicate)

RECORD_BYTES_MET = 128
"""Bytes that a record takes in a pass that looks at it."""

SHOWN_IDENTIFIERS = 3
"""Maximum number of identifiers in a message."""

HeaderSource = Callable[[], Iterator[HeaderBatch]]
"""Yields all headers in batches, each time it is called."""


class Duplicates(NamedTuple):
    """Records whose identifier another record has."""

    dropped: IntArray
    """New ones whose identifier an earlier record has, ascending, shape (n,)."""
    n_identifiers: int
    """Number of identifiers that several records have, one of them a new one."""
    examples: tuple[str, ...]
    """Some of these."""


def find_duplicates(headers: HeaderSource, n: int, first_new: int, memory: int) -> Duplicates:
    """Find records with the identifier of another record, if one of both is at or after ordinal ``first_new``.

    ``n`` is the number of headers, ``memory`` the limit in bytes.
    """
    n_passes = -(-n * RECORD_BYTES_MET // max(memory, 16 * MIB))
    dropped, n_identifiers, examples = array("q"), 0, list[str]()
    for number in range(n_passes):
        is_counted: dict[bytes, bool] = {}
        for identifier, place in _proposed(headers, number, n_passes):
            if identifier not in is_counted:
                is_counted[identifier] = False
            elif place >= first_new:
                dropped.append(place)
                n_identifiers += not is_counted[identifier]
                examples += [] if is_counted[identifier] else [header_text(identifier)[0]]
                is_counted[identifier] = True
        examples = examples[:SHOWN_IDENTIFIERS]
    return Duplicates(np.sort(np.array(dropped, dtype=np.int64)), n_identifiers, tuple(examples))


def _identifiers(headers: Strips) -> Strips:
    """Return the identifiers of headers, with a bar after each."""
    words, owners = first_words(headers)
    return words.take(np.flatnonzero(np.diff(owners, prepend=-1) > 0))


def _proposed(headers: HeaderSource, number: int, n_passes: int) -> Iterator[tuple[bytes, int]]:
    """Yield identifiers and ordinals, ascending, of the records of this pass whose hash another record has."""

    def sums_of_some(piece: tuple[Strips, IntArray]) -> tuple[Sums, IntArray]:
        words = _identifiers(piece[0])
        sums = sums_of(words.data, words.offsets[:-1], words.offsets[1:])
        chosen = np.flatnonzero((sums >> np.uint64(32)) * np.uint64(n_passes) >> np.uint64(32) == number)
        return sums[chosen], piece[1][chosen]

    sums, places = map(np.concatenate, zip(*map_in_order(sums_of_some, pieces_of(headers())), strict=True))
    order = np.argsort(sums)
    again = np.flatnonzero(sums[order[1:]] == sums[order[:-1]])
    record_places = unique_with_places(places[order[np.append(again, again + 1)]])[0]
    del sums, places, order
    for strips, ordinals in pieces_of(headers()) if len(record_places) else ():
        low, high = np.searchsorted(record_places, [ordinals[0], ordinals[-1] + 1])
        words = _identifiers(strips.take(record_places[low:high] - ordinals[0]))
        for line, place in zip(lines_of(words), record_places[low:high].tolist(), strict=True):
            yield line[:-1], place
