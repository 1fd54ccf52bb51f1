"""A protein database, open for reading: it gives a search its subjects and names its hits."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import DNA, PROTEIN, ByteArray
from swsearch.blocks import Chunk, IntArray
from swsearch.db import bulk
from swsearch.db.collection import Collection
from swsearch.db.fasta import ReadProgress, header_text
from swsearch.db.finding import AskedNames, Matches, NamedHeaders, checked_identifiers, resolved
from swsearch.db.numbers import BUILD_MEMORY
from swsearch.db.shares import Run, all_blocks, chunks_of, lengths_in, n_bytes_of, share_of
from swsearch.db.source import FileSource
from swsearch.db.stored import INDEXED_SUBJECTS, Segment
from swsearch.db.stored_taxa import described_taxa
from swsearch.db.subset import Subset
from swsearch.db.taxa import TaxaOfSubjects
from swsearch.db.volumes import (
    Member,
    OpenFile,
    Paths,
    Volume,
    check_members,
    check_together,
    described_files,
    described_segment,
    identity_of_all,
    open_members,
)
from swsearch.db.writing import PathLike, fill, output_errors
from swsearch.errors import DatabaseError, OptionError, check_choice, check_flag, shown, whole_number
from swsearch.masking import check_mask
from swsearch.options.words import MASKS, Mask
from swsearch.translation.codes import STANDARD_CODE

if TYPE_CHECKING:
    from swsearch.db.build import Inputs

Ordinals = Sequence[int] | npt.NDArray[np.integer]
"""Subjects by their places in the input."""

MOST_BYTES = 1 << 62
"""Most bytes of a chunk that can be asked for."""


class _Opened(NamedTuple):
    """What a database reads from, until it is closed."""

    members: Sequence[Member]
    files: Sequence[OpenFile]
    segments: Sequence[Segment]
    runs: tuple[Run, ...]


class Database(Collection, TaxaOfSubjects):
    """A protein database, of one file or of several, whose subjects follow each other.

    Made by `build`, `open`, `from_records` or `from_fasta`; a context manager. Subjects have ordinals: their
    place in the input, counted from 0 over all inputs and appends. After `close` it knows its name and its counts;
    all else raises `DatabaseError`. ``database[i]``, a slice and iteration give an `Entry` for each subject,
    ``name in database`` looks for what `find` finds, and a pickled one opens its files again, wherever it is loaded.

    It keeps 4 bytes of memory for each subject once residues were read, and reads everything else on demand.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        check_members(members)
        self.name = ", ".join(member.name for member in members)
        """What messages and reports call it; a server, which tells nobody its folders, sets another one."""
        files, first = [], 0
        for file in (file for member in members for file in member.files):
            files.append(file.placed(first))
            first += file.n_subjects
        segments = [segment for file in files for segment in file.segments]
        self.mask: Mask = files[0].contents.mask
        """What searches score as X unless they are told otherwise."""
        self.genetic_code: int | None = files[0].contents.genetic_code
        """NCBI's number of the code that DNA is translated by, whose frames are searched; None of proteins."""
        self.n_subjects: int = first
        self._firsts = [segment.first for segment in segments]
        self._opened: _Opened | None = None
        self._take(_Opened(members, files, segments, all_blocks(segments)))

    def _take(self, opened: _Opened) -> None:
        """Take what is open, and the blocks of it that are loaded."""
        self._opened = opened
        self.length_runs = lengths_in(opened.runs)
        """How many subjects have each length, the longest first: `RunLengths` of all subjects, sorted."""
        self.n_residues = self.length_runs.n_residues
        self.residue_bytes = n_bytes_of(opened.runs)
        """Bytes of the interleaved residues, padding included."""

    @classmethod
    def build(
        cls,
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
    ) -> Database:
        """Build a database file from FASTA, or one in volumes, and open it; see `build_database`."""
        from swsearch.db.build import build_database

        build_database(
            inputs, output, memory=memory, overwrite=overwrite, progress=progress, mask=mask, allow_dna=allow_dna,
            volume_size=volume_size, taxids=taxids, taxonomy=taxonomy, translate=translate, genetic_code=genetic_code,
        )  # fmt: skip
        return cls.open(output)

    @classmethod
    def open(cls, path: Paths) -> Database:
        """Open a database file, a manifest of volumes, or several of either as one database.

        Parameters
        ----------
        path : path or iterable of paths
            Files that `build` made, or manifests that name such files. The subjects of several follow each other in
            the order that is given here.

        Returns
        -------
        Database

        Raises
        ------
        DatabaseError
            If there is no such file, or it is no database, or one of a later format; if a manifest's volume is
            missing or another one, a file is there twice, or the files have different masks.
        DatabaseDamageError
            If it is truncated or its numbers are not those that were written. Residues are checked later,
            when they are loaded; `verify_database` checks every byte.
        """
        return cls(open_members(path))

    @classmethod
    def joined(cls, databases: Iterable[Database]) -> Database:
        """Make one database of several that are open, whose subjects follow each other.

        It reads from their files and is closed on its own.

        Parameters
        ----------
        databases : iterable of Database
            At least one; shares count as the databases that they are of.

        Returns
        -------
        Database
            Its name is theirs, joined by commas.

        Raises
        ------
        DatabaseError
            If one was closed, a file is there twice, or they have different masks.
        """
        given = list(databases) if isinstance(databases, Iterable) else []
        if not given or not all(isinstance(each, Database) for each in given):
            raise OptionError("databases", databases, "open databases, at least one")
        members = [member for each in given for member in each._held.members]
        check_together(members)
        return cls(members)

    @classmethod
    def _of(cls, source: FileSource) -> Database:
        return cls([Member(source.name, (OpenFile.read(source),))])

    @classmethod
    def from_records(
        cls,
        records: Any,
        *,
        name: str = "<memory>",
        mask: Mask = "none",
        allow_dna: bool = False,
        translate: bool = False,
        genetic_code: int = STANDARD_CODE,
    ) -> Database:
        """Make a database in memory from Python objects.

        Parameters
        ----------
        records : iterable, mapping or open file
            `Bio.SeqRecord.SeqRecord`, pairs (identifier, sequence), or strings, which are then called
            ``subject_1`` and so on; a mapping of names to sequences; or an open file that holds FASTA.
        name : str, optional
            What messages and reports call the database.
        mask, allow_dna, translate, genetic_code : optional
            As for `build_database`.

        Returns
        -------
        Database

        Raises
        ------
        SequenceError
            If a sequence holds something else than residue letters, there is no residue at all, or all is DNA.
        """
        from swsearch.db.build import checked_translation, layout_of
        from swsearch.db.dna import DnaWatch
        from swsearch.db.records import record_batches
        from swsearch.db.spool import Spool

        check_mask("mask", mask)
        check_flag("allow_dna", allow_dna)
        if not isinstance(name, str):
            raise OptionError("name", name, "a string")
        code = checked_translation(translate, genetic_code, mask)
        memory = 1 << 40  # the caller holds the records in memory already
        with output_errors(Path(tempfile.gettempdir())), Spool(None) as spool:
            batches = record_batches(records, PROTEIN if code is None else DNA)
            spool.add(batches if allow_dna or code is not None else DnaWatch(name).watch(batches))
            counts = {"bytes": 0, "records": spool.n_subjects, "residues": spool.n_residues}
            spool.sources.append({"path": name, "sha256": None, **counts})
            return cls([Member.in_memory(layout_of(spool, memory, mask, code), name)])

    @classmethod
    def from_fasta(
        cls,
        inputs: Inputs,
        *,
        memory: int = BUILD_MEMORY,
        progress: ReadProgress | None = None,
        mask: Mask = "none",
        allow_dna: bool = False,
        translate: bool = False,
        genetic_code: int = STANDARD_CODE,
    ) -> Database:
        """Make a database from FASTA for this process alone.

        Parameters
        ----------
        inputs : path or iterable of paths
            FASTA files as for `build_database`.
        memory : int, optional
            Working memory in bytes. A database larger than that goes to a temporary file that vanishes with
            the process.
        progress, mask, allow_dna, translate, genetic_code : optional
            As for `build_database`.

        Returns
        -------
        Database
        """
        from swsearch.db.build import checked_inputs, checked_memory, checked_translation, layout_of, read_inputs
        from swsearch.db.spool import Spool

        names, memory = checked_inputs(inputs), checked_memory(memory)
        code = checked_translation(translate, genetic_code, mask)
        check_mask("mask", mask)
        check_flag("allow_dna", allow_dna)
        name = ", ".join("<stdin>" if each == "-" else each for each in names)
        folder = Path(tempfile.gettempdir())
        with output_errors(folder), Spool(None) as spool:
            letters = PROTEIN if code is None else DNA
            read_inputs(spool, names, memory, progress, allow_dna, alphabet=letters)
            layout = layout_of(spool, memory, mask, code)
            if layout.n_bytes <= memory:
                return cls([Member.in_memory(layout, name)])
            handle, temporary = tempfile.mkstemp(suffix=".h5", dir=folder)
            try:
                os.close(handle)
                fill(Path(temporary), layout)
                return cls._of(FileSource(temporary, name))
            finally:
                Path(temporary).unlink()

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        """Every subject's length, shape (n_subjects,), int32, in input order; made anew whenever it is asked for.

        A loop over subjects asks once, or for those it needs (`lengths_of`).
        """
        lengths = np.empty(self.n_subjects, dtype=np.int32)
        for segment in self._segments:
            lengths[segment.first : segment.first + segment.n_subjects] = segment.input_lengths()
        lengths.setflags(write=False)
        return lengths

    def check_open(self) -> None:
        """Raise `DatabaseError` if the database was closed."""
        _ = self._held

    @property
    def _held(self) -> _Opened:
        if self._opened is None:
            raise DatabaseError(f"{self.name}: this Database was closed; open it again")
        return self._opened

    @property
    def _segments(self) -> Sequence[Segment]:
        """What it consists of, in order."""
        return self._held.segments

    def shared(self) -> Database:
        """Return the same open database, to be closed on its own: its files are closed when both are."""
        self.check_open()
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    @property
    def volumes(self) -> tuple[Volume, ...]:
        """The files that it consists of, in order; one for what is in memory."""
        return tuple(Volume.of(file) for file in self._held.files)

    def share(self, place: int, of: int) -> Database:
        """Return the same open database with a part of its blocks, to be closed on its own.

        Its chunks, `length_runs`, `n_residues` and `residue_bytes` are those of the part; all else is that of the
        whole database, the ordinals and `n_subjects` too. The shares of a database are its blocks, one after the
        other, in parts of about as many bytes; where there are more shares than blocks some are empty.

        Parameters
        ----------
        place : int
            Which share, counted from 0.
        of : int
            How many there are.
        """
        of = whole_number("of", of, 1, MOST_BYTES)
        place = whole_number("place", place, 0, of - 1)
        twin = self.shared()
        held = self._held
        twin._take(held._replace(runs=share_of(held.runs, place, of)))
        twin._shares = (*self._shares, (place, of))
        return twin

    def subset(self, taken: npt.NDArray[np.bool_]) -> Subset:
        """Return some of the subjects as a search reads them; ``taken`` says which, shape (n_subjects,)."""
        if not isinstance(taken, np.ndarray) or taken.shape != (self.n_subjects,):
            raise OptionError("taken", taken, f"an array of shape ({self.n_subjects},)")
        return Subset(self._held.runs, taken, self.mask)

    def _locate(self, index: int) -> tuple[Segment, int]:
        """Return the segment of a subject and its place there."""
        if not isinstance(index, (int, np.integer)):
            raise TypeError(f"index: got {shown(index)}, expected an integer")
        if not 0 <= index < self.n_subjects:
            raise IndexError(f"subject {shown(index)}, expected 0 to {self.n_subjects - 1}")
        segment = self._segments[int(np.searchsorted(self._firsts, index, side="right")) - 1]
        return segment, int(index) - segment.first

    def chunks(self, max_bytes: int, *, mixed: bool = False, mask: Mask | None = None) -> Iterator[Chunk]:
        """Load the residues, some blocks at a time.

        Parameters
        ----------
        max_bytes : int
            Most bytes of interleaved residues in a chunk; a single block may be larger.
        mixed : bool, optional
            Whether chunks of long subjects come between chunks of short ones, not all of them first.
        mask : {"none", "lower", "tantan"}, optional
            What to replace by X; by default what is in force.

        Yields
        ------
        Chunk
            Whole blocks, longest subjects first within a chunk; ``subjects`` are ordinals.

        Raises
        ------
        DatabaseDamageError
            If the bytes are not those that were written.
        """
        if not isinstance(max_bytes, (int, np.integer)) or not 1 <= max_bytes <= MOST_BYTES:
            raise OptionError("max_bytes", max_bytes, "a positive number of bytes")
        check_flag("mixed", mixed)
        if mask is not None:
            check_choice("mask", mask, MASKS)
        for segment, first, last in chunks_of(self._held.runs, int(max_bytes), bool(mixed)):
            self.check_open()
            yield segment.chunk(first, last, self.mask if mask is None else mask)

    def codes(self, index: int) -> ByteArray:
        """Return one subject's residue codes, shape (n,), uint8, by ordinal, nothing masked."""
        segment, place = self._locate(index)
        return segment.codes(place)

    def masked(self, index: int, mask: Mask) -> list[tuple[int, int]]:
        """Return what a mask covers of one subject, by ordinal: 0-based half-open runs."""
        check_choice("mask", mask, MASKS)
        segment, place = self._locate(index)
        return segment.masked(place, mask)

    def lengths_of(self, subjects: Ordinals) -> npt.NDArray[np.int32]:
        """Return the lengths of many subjects.

        Parameters
        ----------
        subjects : sequence of int or ndarray, shape (n,), any integer type
            Ordinals, in any order; repeats are allowed. So it is with all methods that end in ``_of``.

        Returns
        -------
        ndarray, shape (n,), int32
            Residues of each.

        Raises
        ------
        IndexError
            If there is no such subject.
        DatabaseError
            If the bytes are not those that were written.
        """
        return bulk.lengths_of(self._segments, bulk.checked_subjects(subjects, self.n_subjects))

    def codes_of(self, subjects: Ordinals) -> tuple[ByteArray, IntArray]:
        """Return the residue codes of many subjects, nothing masked, each part of the file read once.

        Parameters
        ----------
        subjects : sequence of int or ndarray, shape (n,), any integer type
            As for `lengths_of`, which raises the same errors.

        Returns
        -------
        pool : ndarray, shape (sum of lengths,), uint8
            The subjects' codes one after the other, in the order of ``subjects``.
        offsets : ndarray, shape (n + 1,), int64
            Subject i is ``pool[offsets[i]:offsets[i + 1]]``.
        """
        return bulk.codes_of(self._segments, bulk.checked_subjects(subjects, self.n_subjects))

    def headers_of(self, subjects: Ordinals) -> tuple[ByteArray, IntArray]:
        """Return the header lines of many subjects, without ``>``, each part of the file read once.

        Parameters
        ----------
        subjects : sequence of int or ndarray, shape (n,), any integer type
            As for `lengths_of`, which raises the same errors.

        Returns
        -------
        pool : ndarray, shape (n_bytes,), uint8
            The header lines one after the other, in the order of ``subjects``.
        offsets : ndarray, shape (n + 1,), int64
            Header i is ``pool[offsets[i]:offsets[i + 1]]``.
        """
        return bulk.headers_of(self._segments, bulk.checked_subjects(subjects, self.n_subjects))

    def masked_of(
        self, subjects: Ordinals, mask: Mask
    ) -> tuple[IntArray, npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return what a mask covers of many subjects.

        Parameters
        ----------
        subjects : sequence of int or ndarray, shape (n,), any integer type
            As for `lengths_of`, which raises the same errors.
        mask : {"none", "lower", "tantan"}
            The mask.

        Returns
        -------
        offsets : ndarray, shape (n + 1,), int64
            Runs ``offsets[i]`` to ``offsets[i + 1]`` (excluded) are those of subject i.
        starts, ends : ndarray, shape (n_runs,), int32
            Residues of each run: 0-based, the end excluded; ascending within a subject.
        """
        check_choice("mask", mask, MASKS)
        return bulk.masked_of(self._segments, bulk.checked_subjects(subjects, self.n_subjects), mask)

    def sequence(self, index: int) -> str:
        """Return one subject's letters, soft-masked ones in lower case, by ordinal."""
        segment, place = self._locate(index)
        letters = PROTEIN.decode_table[segment.codes(place)]
        for start, end in segment.masked(place):
            letters[start:end] |= 0x20  # ASCII: lower case; a masked '*' has it set already
        return letters.tobytes().decode("ascii")

    def header(self, index: int) -> bytes:
        """Return one subject's header line without ``>``, by ordinal."""
        segment, place = self._locate(index)
        return segment.header(place)

    def identifier(self, index: int) -> str:
        """Return one subject's identifier, the first word of its header, by ordinal."""
        return header_text(self.header(index))[0]

    def description(self, index: int) -> str:
        """Return what follows one subject's identifier in its header, by ordinal."""
        return header_text(self.header(index))[1]

    def find(self, identifier: str) -> list[int]:
        """Return the ordinals of all subjects with an identifier; none is an empty list.

        What else than the first word of its header an entry is found by, such as ``Q28933`` for
        ``sp|Q28933|IGF1_SUNMU``, the documentation's page on identifiers lists. An identifier goes before such names.
        """
        if not isinstance(identifier, str):
            raise OptionError("identifier", identifier, "a string")
        return self.find_all([identifier])[0]

    def find_all(self, identifiers: Iterable[str]) -> list[list[int]]:
        """Return for each identifier what `find` returns."""
        names = checked_identifiers(identifiers)
        asked, subjects = self.places_of(names)
        return [part.tolist() for part in np.split(subjects, np.searchsorted(asked, np.arange(1, len(names))))][
            : len(names)
        ]

    def places_of(self, identifiers: Iterable[str]) -> tuple[IntArray, IntArray]:
        """Return what `find_all` does as arrays, for identifiers by the million; repeats are allowed.

        Returns
        -------
        asked, subjects : ndarray, shape (n,), int64
            For each subject that was found which identifier found it, ascending, and its ordinal. An identifier that
            is not there does not occur in ``asked``.
        """
        asked = AskedNames(checked_identifiers(identifiers))
        # the indexes of many files together may be as large as that of one file that is too large to keep its own
        keep = len(self._held.files) == 1 or self.n_subjects <= INDEXED_SUBJECTS
        found = Matches.joined([segment.matches(asked, keep) for segment in self._segments])
        return resolved(found, asked.n, self.n_subjects)

    def all_headers(self) -> Iterator[NamedHeaders]:
        """Yield all header lines, some at a time: their bytes, offsets, shape (n + 1,), and ordinals, shape (n,)."""
        for segment in self._segments:
            for pool, bounds, places in segment.all_headers():
                yield pool, bounds, places + segment.first

    def sources(self) -> list[dict[str, Any]]:
        """Return what is known of each file that the database was built from: path, sha256, bytes, records."""
        return [source for member in self._held.members for source in member.sources()]

    def identity(self) -> str:
        """Return what tells its content from that of others, hexadecimal; name and age do not matter.

        That of a database of several files depends on where it is cut, too.
        """
        return identity_of_all(self._held.files)

    def info(self) -> dict[str, Any]:
        """Describe the database in values that JSON can hold; what it consists of only if that is several files."""
        members, files, segments, _ = self._held
        sizes = [file.n_bytes for file in files]
        lengths = lengths_in(all_blocks(segments))
        described = {
            "name": self.name,
            **described_files(members, files),
            "n_subjects": self.n_subjects,
            "n_residues": lengths.n_residues,
            "n_empty": self.n_subjects - lengths.n_filled,
            **({} if self.genetic_code is None else {"genetic_code": self.genetic_code}),
            "mask": self.mask,
            "n_masked": self._n_masked("lower"),
            **({"n_tantan": self._n_masked("tantan")} if self.mask == "tantan" else {}),
            **described_taxa(segments),
            "longest": int(lengths.values[0]),
            "shortest": int(lengths.values[-1]),
            "n_segments": len(segments),
            "n_bytes": None if None in sizes else sum(size for size in sizes if size is not None),
            "segments": [described_segment(segment) for segment in segments],
        }
        if len(files) > 1 or members[0].manifest is not None:
            described["volumes"] = [file.described() for file in files]
        return described

    def _n_masked(self, mask: Mask) -> int:
        return sum(segment.n_masked(mask) for segment in self._segments)

    def close(self) -> None:
        """Close the database; chunks that were loaded stay valid.

        Hits outlive it: its files are closed with the last of those whose alignments were not asked for yet, and with
        the `SearchResults` that they came from.
        """
        self._opened = None  # a source closes its file when the last object that reads from it is gone

    def __enter__(self) -> Database:
        self.check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
