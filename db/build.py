"""Make a database of FASTA files: read them into a spool, then write what it holds."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from swsearch.alphabet import DNA, PROTEIN, Alphabet
from swsearch.db.cuts import ends_by_size, runs_of
from swsearch.db.disk import DiskWatch
from swsearch.db.dna import DnaWatch
from swsearch.db.dna_layout import DnaLayout
from swsearch.db.fasta import BUFFER_BYTES, FastaReader, ReadProgress, RecordBatch
from swsearch.db.inputs import Input, stream_of
from swsearch.db.layout import Layout, low_complexity, piece_budget
from swsearch.db.numbers import BUILD_MEMORY, MIB
from swsearch.db.parts import SpoolPart
from swsearch.db.spool import Spool
from swsearch.db.taxids import TaxonSources, check_taxa, take_taxa
from swsearch.db.volume_files import VolumeFiles, checked_volume_size, remove_volumes, volumes_beside
from swsearch.db.writing import PathLike, check_output, fill, output_errors, replacement
from swsearch.errors import OptionError, check_flag
from swsearch.masking import check_mask
from swsearch.options.words import Mask
from swsearch.translation.codes import STANDARD_CODE, checked_code

SMALLEST_MEMORY = 64 * MIB
"""Least memory that can be asked for; the interpreter and what reads the inputs take a little more."""

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
    alphabet: Alphabet = PROTEIN,
) -> None:
    """Read FASTA inputs into a spool; one that holds DNA is an error unless it is allowed or the alphabet.

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
            reader = FastaReader(source, alphabet, min(BUFFER_BYTES, memory // 32))
            batches = _reported(reader, source, done, total, progress)
            for batch in batches if allow_dna or alphabet is not PROTEIN else DnaWatch(source.name).watch(batches):
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
    volume_size : int, optional
        Bytes that a file may have. ``output`` is then a manifest, and the database stands beside it: ``trembl.json``
        has its volumes ``trembl.000.h5``, ``trembl.001.h5`` and so on, each with a run of the input. One that holds a
        single record may be larger.
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
        If the database cannot be written, or the disk has not as much room as it takes; nothing is left behind.
    MemoryLimitError
        If the 64 longest records need more than ``memory``.
    """
    names, memory = checked_inputs(inputs), checked_memory(memory)
    check_mask("mask", mask)
    check_flag("overwrite", overwrite)
    taxa = check_taxa(taxids, taxonomy)
    code = checked_translation(translate, genetic_code, mask, volume_size)
    if volume_size is not None:
        size = checked_volume_size(volume_size)
        with VolumeFiles(output, names, overwrite) as files:
            watch = DiskWatch(files.path, memory, volume=size)
            with output_errors(files.path), Spool(files.path.parent) as spool:
                read_inputs(spool, names, memory, progress, allow_dna, watch)
                _fill_volumes(files, spool, memory, mask, size, taxa)
        return
    path = check_output(output, names, overwrite)
    earlier = volumes_beside(path)
    with output_errors(path), Spool(path.parent) as spool, replacement(path) as temporary:
        letters = PROTEIN if code is None else DNA
        read_inputs(spool, names, memory, progress, allow_dna, DiskWatch(path, memory), letters)
        take_taxa(spool, taxa)
        fill(temporary, layout_of(spool, memory, mask, code))
    remove_volumes(earlier)


def checked_translation(translate: bool, genetic_code: int, mask: Mask, volume_size: int | None = None) -> int | None:
    """Return the genetic code that a database of DNA is to have; None for one of proteins.

    Raises
    ------
    OptionError
        If a code is given for proteins, or what DNA does not have is asked for.
    """
    check_flag("translate", translate)
    code = checked_code(genetic_code)
    if not translate:
        if code != STANDARD_CODE:
            raise OptionError("genetic_code", genetic_code, "none without translate", "proteins are not translated")
        return None
    if mask != "none":
        why = "replace repeats by N before the build, or mask the queries"
        raise OptionError("mask", mask, "none with translate", why)
    if volume_size is not None:
        why = "build several smaller DNA databases and search them together"
        raise OptionError("volume_size", volume_size, "none with translate", why)
    return code


def layout_of(spool: Spool, memory: int, mask: Mask, genetic_code: int | None) -> Layout | DnaLayout:
    """Return the plan of a segment of what was read: of proteins, or of DNA where there is a genetic code."""
    return Layout(spool, memory, mask) if genetic_code is None else DnaLayout(spool, genetic_code)


def _fill_volumes(
    files: VolumeFiles, spool: Spool, memory: int, mask: Mask, volume_size: int, taxa: TaxonSources | None
) -> None:
    """Write what was read in volumes, and their manifest."""
    spool.finish()
    take_taxa(spool, taxa)
    if mask == "tantan":
        spool.tantan = low_complexity(spool, piece_budget(memory))
    for run in runs_of(spool, ends_by_size(spool, volume_size)):
        with SpoolPart(spool, run) as part:
            fill(files.new(), Layout(part, memory, mask))
    files.publish(spool.sources)
