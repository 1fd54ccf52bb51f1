"""A protein database, open for reading: it gives a search its subjects and names its hits."""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import LANES, Chunk, IntArray, RunLengths
from swsearch.db import bulk
from swsearch.db.build import (
    BUILD_MEMORY,
    Inputs,
    PathLike,
    build_database,
    checked_inputs,
    checked_memory,
    fill,
    output_errors,
    read_inputs,
    root_attributes,
    segment_attributes,
    total_attributes,
)
from swsearch.db.contents import Contents, planned, read_contents
from swsearch.db.dna import DnaWatch
from swsearch.db.fasta import ReadProgress, header_text
from swsearch.db.identity import identity_of
from swsearch.db.layout import Layout, MemorySink
from swsearch.db.records import record_batches
from swsearch.db.source import FileSource, MemorySource, Source
from swsearch.db.spool import Spool
from swsearch.db.stored import Segment
from swsearch.errors import DatabaseDamageError, DatabaseError, OptionError, check_choice, check_flag, shown
from swsearch.masking import MASKS, Mask, check_mask

Ordinals = Sequence[int] | npt.NDArray[np.integer]
"""Subjects by their places in the input."""

MOST_BYTES = 1 << 62
"""Most bytes of a chunk that can be asked for."""

SHORT_RUNS = 6
"""Chunks of short subjects after each one of long subjects, where they are mixed."""


def load_segments(source: Source, contents: Contents) -> list[Segment]:
    """Read and check the numbers of all segments."""
    segments: list[Segment] = []
    first = 0
    for each in contents.segments:
        segments.append(Segment(source, each, first))
        first += segments[-1].n_subjects
    for name in ("n_subjects", "n_residues"):
        total = sum(segment.counts()[name] for segment in segments)
        if contents.attributes.get(name) != total:
            found = contents.attributes.get(name)
            raise DatabaseDamageError(source.name, [f"attribute {name} is {found!r}, its segments have {total}"])
    return segments


def _mixed(runs: list[tuple[Segment, int, int]]) -> Iterator[tuple[Segment, int, int]]:
    """Take one run from the front, some from the back, and so on until they meet."""
    waiting = deque(runs)
    while waiting:
        yield waiting.popleft()
        for _ in range(min(SHORT_RUNS, len(waiting))):
            yield waiting.pop()


class Database:
    """A protein database.

    Made by `build`, `open`, `from_records` or `from_fasta`; a context manager. Subjects have ordinals: their
    place in the input, counted from 0 over all inputs and appends. After `close` it knows its name and its counts;
    all else raises `DatabaseError`.

    It keeps 4 bytes for each subject in memory, from when residues are first read; all else is read when it is asked
    for.

    Parameters
    ----------
    source : Source
        The bytes; the database closes it.
    contents : Contents
        Where they hold what.
    """

    def __init__(self, source: Source, contents: Contents) -> None:
        self.name = source.name
        self._contents = contents
        self._attributes, segments = contents.attributes, load_segments(source, contents)
        self._opened: tuple[Source, list[Segment]] | None = (source, segments)
        self.mask: Mask = contents.mask
        """What searches score as X unless they are told otherwise."""
        self._firsts = [segment.first for segment in self._segments]
        self.n_subjects: int = sum(segment.n_subjects for segment in self._segments)
        self.length_runs = RunLengths.counted([segment.lengths for segment in self._segments])
        """How many subjects have each length, the longest first: `RunLengths` of all subjects, sorted."""
        self.n_residues = self.length_runs.n_residues
        self.residue_bytes = sum(int(segment.block_offsets[-1]) * LANES for segment in self._segments)
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
    ) -> Database:
        """Build a database file from FASTA and open it; see `build_database`."""
        build_database(
            inputs, output, memory=memory, overwrite=overwrite, progress=progress, mask=mask, allow_dna=allow_dna
        )
        return cls.open(output)

    @classmethod
    def open(cls, path: PathLike) -> Database:
        """Open a database file.

        Parameters
        ----------
        path : path
            A file that `build` made.

        Returns
        -------
        Database

        Raises
        ------
        DatabaseError
            If there is no such file, or it is no database, or one of a later format.
        DatabaseDamageError
            If it is truncated or its numbers are not those that were written. Residues are checked later,
            when they are loaded; `verify_database` checks every byte.
        """
        return cls._of(FileSource(os.fspath(path)))

    @classmethod
    def _of(cls, source: FileSource) -> Database:
        try:
            return cls(source, read_contents(source))
        except BaseException:
            source.close()
            raise

    @classmethod
    def from_records(
        cls, records: Any, *, name: str = "<memory>", mask: Mask = "none", allow_dna: bool = False
    ) -> Database:
        """Make a database in memory from Python objects.

        Parameters
        ----------
        records : iterable, mapping or open file
            `Bio.SeqRecord.SeqRecord`, pairs (identifier, sequence), or strings, which are then called
            ``subject_1`` and so on; a mapping of names to sequences; or an open file that holds FASTA.
        name : str, optional
            What messages and reports call the database.
        mask, allow_dna : optional
            As for `build_database`.

        Returns
        -------
        Database

        Raises
        ------
        SequenceError
            If a sequence holds something else than residue letters, there is no residue at all, or all is DNA.
        """
        check_mask("mask", mask)
        check_flag("allow_dna", allow_dna)
        if not isinstance(name, str):
            raise OptionError("name", name, "a string")
        memory = 1 << 40  # the caller holds the records in memory already
        with output_errors(Path(tempfile.gettempdir())), Spool(None) as spool:
            batches = record_batches(records)
            spool.add(batches if allow_dna else DnaWatch(name).watch(batches))
            counts = {"bytes": 0, "records": spool.n_subjects, "residues": spool.n_residues}
            spool.sources.append({"path": name, "sha256": None, **counts})
            return cls._in_memory(Layout(spool, memory, mask), name)

    @classmethod
    def from_fasta(
        cls,
        inputs: Inputs,
        *,
        memory: int = BUILD_MEMORY,
        progress: ReadProgress | None = None,
        mask: Mask = "none",
        allow_dna: bool = False,
    ) -> Database:
        """Make a database from FASTA for this process alone.

        Parameters
        ----------
        inputs : path or iterable of paths
            FASTA files as for `build_database`.
        memory : int, optional
            Working memory in bytes. A database larger than that goes to a temporary file that vanishes with
            the process.
        progress, mask, allow_dna : optional
            As for `build_database`.

        Returns
        -------
        Database
        """
        names, memory = checked_inputs(inputs), checked_memory(memory)
        check_mask("mask", mask)
        check_flag("allow_dna", allow_dna)
        name = ", ".join("<stdin>" if each == "-" else each for each in names)
        folder = Path(tempfile.gettempdir())
        with output_errors(folder), Spool(None) as spool:
            read_inputs(spool, names, memory, progress, allow_dna)
            layout = Layout(spool, memory, mask)
            if layout.n_bytes <= memory:
                return cls._in_memory(layout, name)
            handle, temporary = tempfile.mkstemp(suffix=".h5", dir=folder)
            try:
                os.close(handle)
                fill(Path(temporary), layout)
                return cls._of(FileSource(temporary, name))
            finally:
                Path(temporary).unlink()

    @classmethod
    def _in_memory(cls, layout: Layout, name: str) -> Database:
        segment, n_bytes = planned(segment_attributes(layout.counts), layout.shapes())
        source = MemorySource(name, n_bytes)
        layout.write(MemorySink(source.bytes, {name: each.offset for name, each in segment.datasets.items()}))
        attributes = root_attributes(layout.mask) | total_attributes([segment.attributes])
        return cls(source, Contents(attributes, layout.mask, [segment]))

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
    def _held(self) -> tuple[Source, list[Segment]]:
        if self._opened is None:
            raise DatabaseError(f"{self.name}: this Database was closed; use it before that, or open it again")
        return self._opened

    @property
    def _source(self) -> Source:
        return self._held[0]

    @property
    def _segments(self) -> list[Segment]:
        return self._held[1]

    def shared(self) -> Database:
        """Return the same open database, to be closed on its own: its file is closed when both are."""
        self.check_open()
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

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
        runs: list[tuple[Segment, int, int]] = []
        for segment in self._segments:
            first, n_blocks = 0, len(segment.block_offsets) - 1
            while first < n_blocks:
                last = segment.next_block(first, max_bytes)
                runs.append((segment, first, last))
                first = last
        for segment, first, last in _mixed(runs) if mixed else runs:
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
        """Return the ordinals of all subjects with an identifier; none is an empty list."""
        if not isinstance(identifier, str):
            raise OptionError("identifier", identifier, "a string")
        return self.find_all([identifier])[0]

    def find_all(self, identifiers: Iterable[str]) -> list[list[int]]:
        """Return for each identifier what `find` returns."""
        if not isinstance(identifiers, Iterable):
            raise OptionError("identifiers", identifiers, "several strings")
        identifiers = list(identifiers)
        for each in identifiers:
            if not isinstance(each, str):
                raise OptionError("identifiers", each, "strings")
        found: list[list[int]] = [[] for _ in identifiers]
        for segment in self._segments:
            for places, inside in zip(found, segment.find(identifiers), strict=True):
                places += [segment.first + place for place in inside]
        return found

    def sources(self) -> list[dict[str, Any]]:
        """Return what is known of each file that the database was built from: path, sha256, bytes, records."""
        return [source for segment in self._segments for source in segment.sources()]

    def identity(self) -> str:
        """Return what tells its content from that of others, hexadecimal; name and age do not matter."""
        return identity_of(self._source, self._contents)

    def info(self) -> dict[str, Any]:
        """Describe the database in values that JSON can hold."""
        on_disk = isinstance(self._source, FileSource) and self._source.path == self.name
        names = ("format", "format_version", "alphabet", "letters", "created", "software")
        return {
            "name": self.name,
            **{name: self._attributes.get(name) for name in names},
            "n_subjects": self.n_subjects,
            "n_residues": self.n_residues,
            "n_empty": self.n_subjects - self.length_runs.n_filled,
            "mask": self.mask,
            "n_masked": self._n_masked("lower"),
            **({"n_tantan": self._n_masked("tantan")} if self.mask == "tantan" else {}),
            "longest": int(self.length_runs.values[0]),
            "shortest": int(self.length_runs.values[-1]),
            "n_segments": len(self._segments),
            "n_bytes": self._source.n_bytes if on_disk else None,
            "segments": [
                {
                    "n_subjects": segment.n_subjects,
                    "n_residues": segment.lengths.n_residues,
                    "n_blocks": len(segment.block_offsets) - 1,
                    "n_columns": int(segment.block_offsets[-1]),
                    "created": str(segment.attributes.get("created")),
                    "software": str(segment.attributes.get("software")),
                    "sources": segment.sources(),
                }
                for segment in self._segments
            ],
        }

    def _n_masked(self, mask: Mask) -> int:
        return sum(segment.n_masked(mask) for segment in self._segments)

    def close(self) -> None:
        """Close the database; chunks that were loaded stay valid.

        Hits outlive it: its file is closed with the last of those whose alignments were not asked for yet, and with
        the `SearchResults` that they came from.
        """
        self._opened = None  # a source closes its file when the last object that reads from it is gone

    def __len__(self) -> int:
        return self.n_subjects

    def __repr__(self) -> str:
        return f"<Database {self.name!r}: {self.n_subjects:,} subjects, {self.n_residues:,} residues>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"{self.name}: a Database cannot be pickled or copied; open its file in each process")

    def __enter__(self) -> Database:
        self.check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
