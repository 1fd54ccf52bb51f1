"""A database, open for reading: subjects for searches, names for hits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ALPHABETS, DNA, ByteArray
from swsearch.blocks import Chunk, IntArray, RunLengths
from swsearch.db.arrays import Strips
from swsearch.db.database_files import OpenFile, PathLike, Paths, Volume, check_compatible, check_files, open_files
from swsearch.db.database_taxa import TaxonomyMixin
from swsearch.db.fasta import ReadProgress, header_text
from swsearch.db.file_contents import MAX_NUMBER
from swsearch.db.format import FORMAT_NAME, FORMAT_VERSION
from swsearch.db.loaded_blocks import LoadedBlocks, Run, Subset, all_blocks, chunks_of, select_share
from swsearch.db.name_lookup import HeaderBatch, NameIndex, check_identifiers, find_without_index
from swsearch.db.records import BUILD_MEMORY
from swsearch.db.segment import MASK_COUNTS, Segment, by_segment, check_subjects, gather_strips
from swsearch.db.sequence_protocol import SequenceMixin, soft_mask
from swsearch.errors import DatabaseError, OptionError, check_choice, check_flag, check_integer
from swsearch.options.kinds import MASKS, Mask, SubjectAlphabet
from swsearch.processors import useful_thread_count
from swsearch.translation.genetic_codes import STANDARD_CODE

if TYPE_CHECKING:
    from swsearch.db.building import Inputs

Ordinals = Sequence[int] | npt.NDArray[np.integer]
"""Subjects by their places in the input."""

INDEXED_SUBJECTS, FEW_ASKED = 2 << 20, 8
"""Maximum number of subjects whose names are indexed, with 8 bytes for each of three names; subjects per requested
identifier below which an index is made.
"""


class _Opened(NamedTuple):
    """Files and segments of a database until it is closed."""

    files: Sequence[OpenFile]
    segments: Sequence[Segment]
    runs: tuple[Run[Segment], ...]


def segments_of(file: OpenFile, first: int = 0) -> list[Segment]:
    """Read the numbers of all segments of a file, whose first subject has an ordinal."""
    from swsearch.db.dna_segment import DnaSegment

    kind = Segment if file.contents.kind.genetic_code is None else DnaSegment
    segments: list[Segment] = []
    for number, entry in enumerate(file.contents.segments):
        segments.append(kind(file.source, entry, first, number))
        first += segments[-1].n_subjects
    return segments


class Database(SequenceMixin, TaxonomyMixin, LoadedBlocks):
    """A protein database, of one file or of several, whose subjects follow each other.

    Made by `build`, `open`, `from_records` or `from_fasta`; a context manager. Subjects have ordinals: their place in
    the input, counted from 0 over all inputs and appends. After `close` only its name and its counts are available;
    all else raises `DatabaseError`. ``database[i]``, a slice and iteration give an `Entry` for each subject, and
    ``name in database`` looks up a name as `find` does. A pickled database opens its files again.

    It uses 4 bytes of memory per subject once residues were read, and reads everything else on demand.

    Examples
    --------
    >>> with swsearch.Database.from_records(["MKVLAAGIVGW", "MALWMRLLPLL"]) as database:
    ...     len(database), database.n_residues
    (2, 22)
    """

    def __init__(self, files: Sequence[OpenFile], name: str = "", is_manifest: bool = False) -> None:
        check_files(files)
        self.name = name or ", ".join(file.source.name for file in files)
        """Name in messages and reports; a server sets one without folders."""
        self._is_manifest = is_manifest
        self.mask: Mask = files[0].contents.kind.mask
        """Mask that searches apply by default."""
        self.genetic_code: int | None = files[0].contents.kind.genetic_code
        """NCBI's number of the code that DNA is translated by, whose frames are searched; None of proteins."""
        self.alphabet: SubjectAlphabet = files[0].contents.kind.alphabet
        """Meaning of its letters: ``"protein"``, ``"3di"`` or ``"tea"``."""
        self.n_subjects: int = 0
        segments: list[Segment] = []
        for file in files:
            segments += segments_of(file, self.n_subjects)
            self.n_subjects += file.contents.total("n_subjects")
        self._index: NameIndex | None = None
        self._opened: _Opened | None = _Opened(files, segments, all_blocks(segments))
        self._count(self._opened.runs)

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
        alphabet: SubjectAlphabet = "protein",
    ) -> Database:
        """Build a database file from FASTA, or one in volumes, and open it; see `build_database`."""
        from swsearch.db.building import build_database

        build_database(
            inputs, output, memory=memory, overwrite=overwrite, progress=progress, mask=mask, allow_dna=allow_dna,
            volume_size=volume_size, taxids=taxids, taxonomy=taxonomy, translate=translate, genetic_code=genetic_code,
            alphabet=alphabet,
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
        names, files = open_files(path)
        return cls(files, ", ".join(names), [file.source.path for file in files] != names)

    @classmethod
    def concatenate(cls, databases: Iterable[Database]) -> Database:
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
        listed = list(databases) if isinstance(databases, Iterable) else []
        if not listed or not all(isinstance(each, Database) for each in listed):
            raise OptionError("databases", databases, "open databases, at least one")
        files = [file for each in listed for file in each._held.files]
        check_compatible(files)
        return cls(files, ", ".join(each.name for each in listed), any(each._is_manifest for each in listed))

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
        alphabet: SubjectAlphabet = "protein",
    ) -> Database:
        """Make a database in memory from Python objects.

        Parameters
        ----------
        records : iterable, mapping or open file
            `Bio.SeqRecord.SeqRecord`, pairs (identifier, sequence), or strings, which are then called
            ``subject_1`` and so on; a mapping of names to sequences; or an open file that holds FASTA.
        name : str, optional
            Name of the database in messages and reports.
        mask, allow_dna, translate, genetic_code, alphabet : optional
            As for `build_database`.

        Returns
        -------
        Database

        Raises
        ------
        SequenceError
            If a sequence holds something else than residue letters, there is no residue at all, or the first
            ones are DNA.
        """
        from swsearch.db.building import file_from_records, make_kind

        kind = make_kind(mask, translate, genetic_code, alphabet)
        return cls([file_from_records(records, name, kind, allow_dna)], name)

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
        alphabet: SubjectAlphabet = "protein",
    ) -> Database:
        """Make a database from FASTA for this process alone.

        Parameters
        ----------
        inputs : path or iterable of paths
            FASTA files as for `build_database`.
        memory : int, optional
            Working memory in bytes. A database larger than that goes to a temporary file that vanishes with
            the process.
        progress, mask, allow_dna, translate, genetic_code, alphabet : optional
            As for `build_database`.

        Returns
        -------
        Database
        """
        from swsearch.db.building import file_from_fasta, make_kind

        kind = make_kind(mask, translate, genetic_code, alphabet)
        return cls([file_from_fasta(inputs, kind, memory, progress, allow_dna)])

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        """Every subject's length, shape (n_subjects,), int32, in input order; made anew whenever it is asked for."""
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
        """Segments in order."""
        return self._held.segments

    def duplicate(self) -> Database:
        """Return the same open database, to be closed on its own: its files are closed when both are."""
        self.check_open()
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    @property
    def volumes(self) -> tuple[Volume, ...]:
        """The files that it consists of, in order; one for what is in memory."""
        files = self._held.files
        firsts = accumulate((file.contents.total("n_subjects") for file in files), initial=0)
        return tuple(map(Volume.from_file, files, firsts))

    def share(self, index: int, count: int) -> Database:
        """Return the same open database with a part of its blocks, to be closed on its own.

        Its chunks, `length_runs`, `n_residues` and `residue_bytes` are those of the part; all else is that of the
        whole database, the ordinals and `n_subjects` too. The shares of a database are its blocks, one after the
        other, in parts of about as many bytes; where there are more shares than blocks some are empty.

        Parameters
        ----------
        index : int
            Which share, counted from 0.
        count : int
            How many there are.
        """
        count = check_integer("count", count, 1, MAX_NUMBER)
        index = check_integer("index", index, 0, count - 1)
        twin = self.duplicate()
        opened = self._held
        twin._opened = opened._replace(runs=select_share(opened.runs, index, count))
        twin._count(twin._opened.runs)
        twin._shares = (*self._shares, (index, count))
        return twin

    def subset(self, taken: npt.NDArray[np.bool_]) -> Subset:
        """Return some of the subjects as a search reads them; ``taken`` says which, shape (n_subjects,)."""
        if not isinstance(taken, np.ndarray) or taken.shape != (self.n_subjects,):
            raise OptionError("taken", taken, f"an array of shape ({self.n_subjects},)")
        return Subset(self._runs, taken, self.mask)

    @property
    def _runs(self) -> tuple[Run[Segment], ...]:
        """The blocks that are scored; records of DNA are not, their frames are."""
        if self.genetic_code is None:
            return self._held.runs
        remedy = "search it with swsearch search, or swsearch.search in Python"
        raise DatabaseError(f"{self.name}: a DNA database has no protein residues to score; {remedy}")

    def chunks(self, max_bytes: int, *, mixed: bool = False, mask: Mask | None = None) -> Iterator[Chunk]:
        """Load the residues, some blocks at a time.

        Parameters
        ----------
        max_bytes : int
            Maximum bytes of interleaved residues in a chunk; a single block may be larger.
        mixed : bool, optional
            Whether chunks of long subjects come between chunks of short ones, not all of them first.
        mask : {"none", "lower", "tantan"}, optional
            Residues to replace by X; by default the database's own mask.

        Yields
        ------
        Chunk
            Whole blocks, longest subjects first within a chunk; ``subjects`` are ordinals.

        Raises
        ------
        DatabaseDamageError
            If the bytes are not those that were written.
        """
        if not isinstance(max_bytes, (int, np.integer)) or not 1 <= max_bytes <= MAX_NUMBER:
            raise OptionError("max_bytes", max_bytes, "a positive number of bytes")
        check_flag("mixed", mixed)
        if mask is not None:
            check_choice("mask", mask, MASKS)
        for segment, first, last in chunks_of(self._runs, int(max_bytes), bool(mixed)):
            self.check_open()
            yield segment.chunk(first, last, self.mask if mask is None else mask)

    def codes(self, index: int) -> ByteArray:
        """Return one subject's residue codes, shape (n,), uint8, by ordinal, nothing masked."""
        return self.codes_of([index])[0]

    def masked_runs(self, index: int, mask: Mask) -> list[tuple[int, int]]:
        """Return the masked runs of one subject, by ordinal: 0-based, half-open."""
        _, starts, ends = self.masked_runs_of([index], mask)
        return list(zip(starts.tolist(), ends.tolist(), strict=True))

    def _strips(self, subjects: Ordinals, read: Callable[[Segment, IntArray], Strips]) -> Strips:
        """Put together what segments give of subjects, in their order."""
        chosen = check_subjects(subjects, self.n_subjects)
        return gather_strips(self._segments, chosen, lambda segment, _, places: read(segment, places))

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
        chosen = check_subjects(subjects, self.n_subjects)
        lengths = np.empty(len(chosen), dtype=np.int32)
        for segment, which, places in by_segment(self._segments, chosen):
            lengths[which] = segment.lengths_of(places)
        return lengths

    def codes_of(self, subjects: Ordinals, *, threads: int = 1) -> tuple[ByteArray, IntArray]:
        """Return the residue codes of many subjects, nothing masked, each part of the file read once.

        Parameters
        ----------
        subjects : sequence of int or ndarray, shape (n,), any integer type
            As for `lengths_of`, which raises the same errors.
        threads : int
            Number of threads that read many proteins; DNA is read by one.

        Returns
        -------
        pool : ndarray, shape (sum of lengths,), uint8
            The subjects' codes one after the other, in the order of ``subjects``.
        offsets : ndarray, shape (n + 1,), int64
            Subject i is ``pool[offsets[i]:offsets[i + 1]]``.
        """
        n_threads = useful_thread_count(check_integer("threads", threads, 1, MAX_NUMBER))
        strips = self._strips(subjects, lambda segment, places: segment.codes_of(places, n_threads))
        return strips.data, strips.offsets

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
        strips = self._header_strips(subjects)
        return strips.data, strips.offsets

    def masked_runs_of(
        self, subjects: Ordinals, mask: Mask
    ) -> tuple[IntArray, npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return the masked runs of many subjects.

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
        strips = self._strips(subjects, lambda segment, places: segment.runs_of(places, mask))
        return strips.offsets, strips.data[:, 0], strips.data[:, 1]

    def sequence(self, index: int) -> str:
        """Return one subject's letters, soft-masked ones in lower case, by ordinal."""
        return soft_mask(self.codes(index), self.masked_runs(index, "lower"))

    def header(self, index: int) -> bytes:
        """Return one subject's header line without ``>``, by ordinal."""
        return self.headers_of([index])[0].tobytes()

    def identifier(self, index: int) -> str:
        """Return one subject's identifier, the first word of its header, by ordinal."""
        return header_text(self.header(index))[0]

    def description(self, index: int) -> str:
        """Return one subject's description, the rest of its header after the identifier, by ordinal."""
        return header_text(self.header(index))[1]

    def find(self, identifier: str) -> list[int]:
        """Return the ordinals of all subjects with an identifier; none is an empty list.

        An entry is also found by other names, e.g. ``Q28933`` for ``sp|Q28933|IGF1_SUNMU``; the documentation's page
        on identifiers lists them. An identifier has priority over other names.
        """
        if not isinstance(identifier, str):
            raise OptionError("identifier", identifier, "a string")
        return self.find_many([identifier])[0]

    def find_many(self, identifiers: Iterable[str]) -> list[list[int]]:
        """Return the ordinals of `find` for each identifier."""
        names = check_identifiers(identifiers)
        places, subjects = self.find_many_as_arrays(names)
        cuts = np.searchsorted(places, np.arange(1, len(names)))
        return [part.tolist() for part in np.split(subjects, cuts)][: len(names)]

    def find_many_as_arrays(self, identifiers: Iterable[str]) -> tuple[IntArray, IntArray]:
        """Return the ordinals of `find_many` as arrays, for millions of identifiers; repeats are allowed.

        Returns
        -------
        asked, subjects : ndarray, shape (n,), int64
            Place of an identifier, ascending, and ordinal of a subject, for each subject that was found. An
            identifier that is not found does not occur in ``asked``.
        """
        names = check_identifiers(identifiers)
        if self.n_subjects > INDEXED_SUBJECTS or (not self._index and len(names) * FEW_ASKED > self.n_subjects):
            return find_without_index(self.all_headers(), names)
        self._index = self._index or NameIndex(self.all_headers())
        return self._index.find(names, self._header_strips)

    def _header_strips(self, subjects: Ordinals) -> Strips:
        return self._strips(subjects, lambda segment, places: segment.headers_of(places))

    def all_headers(self) -> Iterator[HeaderBatch]:
        """Yield all header lines, some at a time, and the ordinal of the first."""
        return (batch for segment in self._segments for batch in segment.all_headers())

    def sources(self) -> list[dict[str, Any]]:
        """Return each file that the database was built from: path, sha256, bytes, records, residues."""
        sources: list[dict[str, Any]] = []
        for source in (each for segment in self._segments for each in segment.sources()):
            if sources and all(sources[-1][name] == source[name] for name in ("path", "sha256", "bytes")):
                for name in ("records", "residues"):  # segments have a part of its records each
                    sources[-1][name] += source[name]
            else:
                sources.append(source)
        return sources

    def identity(self) -> str:
        """Return a checksum of the content, hexadecimal; the name and the age do not matter.

        The checksum of a database of several files also depends on where it is cut.
        """
        files = self._held.files
        if len(files) == 1:
            return files[0].identity
        # that of the subjects, however they are cut, would take reading all of them
        return hashlib.sha256("\n".join(["volumes", *(file.identity for file in files), ""]).encode()).hexdigest()

    def info(self) -> dict[str, Any]:
        """Describe the database in values for JSON; its volumes only if it has several files."""
        files, segments, _ = self._held
        volumes = [volume.info() for volume in self.volumes]
        sizes = [volume["n_bytes"] for volume in volumes]
        lengths = RunLengths.from_unsorted([segment.lengths for segment in segments])
        alphabet = ALPHABETS[self.alphabet] if self.genetic_code is None else DNA
        masks = [(mask, MASK_COUNTS[mask]) for mask in MASKS if mask == "lower" or mask == self.mask != "none"]
        described = {
            "name": self.name,
            "format": FORMAT_NAME,
            "format_version": FORMAT_VERSION,
            "alphabet": alphabet.name,
            "letters": alphabet.letters,
            "created": max(str(file.contents.segments[0].attributes.get("created", "")) for file in files) or None,
            "software": str(segments[-1].attributes.get("software")),
            "n_subjects": self.n_subjects,
            "n_residues": lengths.n_residues,
            "n_empty": self.n_subjects - lengths.n_nonempty,
            **({} if self.genetic_code is None else {"genetic_code": self.genetic_code}),
            "mask": self.mask,
            **{name: sum(each.n_masked(mask) for each in segments) for mask, name in masks},
            **self._taxa_info(),
            "longest": int(lengths.values[0]),
            "shortest": int(lengths.values[-1]),
            "n_segments": len(segments),
            "n_bytes": None if None in sizes else sum(sizes),
            "segments": [segment.info() for segment in segments],
        }
        if len(files) > 1 or self._is_manifest:
            described["volumes"] = volumes
        return described

    def close(self) -> None:
        """Close the database; chunks that were loaded stay valid.

        Hits outlive it: its files are closed with the last of those whose alignments were not asked for yet, and with
        the `SearchResults` that they came from.
        """
        self._opened = self._index = None  # a source closes its file when the last object that reads from it is gone

    def __enter__(self) -> Database:
        self.check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
