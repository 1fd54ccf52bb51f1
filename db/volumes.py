"""The files that a database consists of, one or several, whose subjects follow each other."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from swsearch.alphabet import DNA
from swsearch.blocks import LANES
from swsearch.db.contents import Contents, planned, read_contents
from swsearch.db.format import is_manifest
from swsearch.db.identity import identity_of
from swsearch.db.layout import MemorySink
from swsearch.db.manifest import Manifest, VolumeEntry, read_manifest, write_entries
from swsearch.db.source import FileSource, MemorySource, Source, VolumeSource
from swsearch.db.stored import Segment, is_source
from swsearch.db.writing import NewSegment, PathLike, root_attributes, segment_attributes, total_attributes
from swsearch.errors import DatabaseDamageError, DatabaseError, OptionError, SwsearchWarning, check_flag
from swsearch.options.words import Mask

Paths = PathLike | Iterable[PathLike]
"""A database file or a manifest of volumes, or several of either."""

SHOWN_IDENTITY = 12
"""Digits of an identity that a message shows."""


def load_segments(source: Source, contents: Contents) -> list[Segment]:
    """Read and check the numbers of all segments."""
    kind = Segment
    if contents.genetic_code is not None:
        from swsearch.db.dna_stored import DnaSegment

        kind = DnaSegment
    segments: list[Segment] = []
    first = 0
    for each in contents.segments:
        segments.append(kind(source, each, first))
        first += segments[-1].n_subjects
    for name in ("n_subjects", "n_residues"):
        total = sum(segment.counts()[name] for segment in segments)
        if contents.attributes.get(name) != total:
            found = contents.attributes.get(name)
            raise DatabaseDamageError(source.name, [f"attribute {name} is {found!r}, its segments have {total}"])
    return segments


@dataclass(frozen=True)
class OpenFile:
    """One file of a database, or what is in memory, open for reading.

    Parameters
    ----------
    source : Source
        Its bytes.
    contents : Contents
        Where they hold what.
    segments : tuple of Segment
        Their ordinals begin where those of the file before end.
    """

    source: Source
    contents: Contents
    segments: tuple[Segment, ...]

    @classmethod
    def of(cls, source: Source, contents: Contents) -> OpenFile:
        """Read the segments of what is the first or only file."""
        return cls(source, contents, tuple(load_segments(source, contents)))

    @classmethod
    def read(cls, source: FileSource) -> OpenFile:
        """Read a file, which is closed if that fails."""
        try:
            return cls.of(source, read_contents(source))
        except BaseException:
            source.close()
            raise

    def placed(self, first: int) -> OpenFile:
        """Return the same with another ordinal for its first subject."""
        by = first - self.first
        if not by:
            return self
        return replace(self, segments=tuple(segment.placed(segment.first + by) for segment in self.segments))

    @property
    def first(self) -> int:
        """The ordinal of the first subject."""
        return self.segments[0].first

    @cached_property
    def n_subjects(self) -> int:
        """How many subjects it has."""
        return sum(segment.n_subjects for segment in self.segments)

    @cached_property
    def n_residues(self) -> int:
        """Residues of all of them."""
        return sum(segment.lengths.n_residues for segment in self.segments)

    @property
    def residue_bytes(self) -> int:
        """Bytes of the interleaved residues, padding included."""
        return sum(int(segment.block_offsets[-1]) for segment in self.segments) * LANES

    @property
    def path(self) -> str:
        """The file's absolute path; empty for what is in memory, or in a file without a name."""
        source = self.source
        if not isinstance(source, FileSource) or source.path != source.name:
            return ""
        return str(Path(source.path).absolute())

    def identity(self) -> str:
        """Return what tells its content from that of others, lower-case hexadecimal; see `identity_of`."""
        return self._identity

    @cached_property
    def _identity(self) -> str:
        return identity_of(self.source, self.contents)

    @property
    def n_bytes(self) -> int | None:
        """Length of the file; None for what has no file, or one without a name."""
        return self.source.n_bytes if self.path else None

    def described(self) -> dict[str, Any]:
        """Return what `Database.info` says of one file among several."""
        counts = {name: getattr(self, name) for name in ("n_subjects", "n_residues", "n_bytes")}
        return {"path": self.path or None, "identity": self.identity(), **counts}

    def sources(self) -> list[dict[str, Any]]:
        """Return what it says that it was built from."""
        return [source for segment in self.segments for source in segment.sources()]


@dataclass(frozen=True)
class Volume:
    """One of the files that a database consists of.

    Parameters
    ----------
    path : str
        Absolute; empty for what is in memory, or in a temporary file.
    first : int
        The ordinal of its first subject.
    n_subjects, n_residues : int
        Its size.
    residue_bytes : int
        Bytes of its interleaved residues, padding included.
    """

    path: str
    first: int
    n_subjects: int
    n_residues: int
    residue_bytes: int
    _file: OpenFile = field(repr=False, compare=False)

    @classmethod
    def of(cls, file: OpenFile) -> Volume:
        """Describe an open file."""
        return cls(file.path, file.first, file.n_subjects, file.n_residues, file.residue_bytes, file)

    def identity(self) -> str:
        """Return what tells its content from that of others, as `Database.identity` of the file alone does."""
        return self._file.identity()


@dataclass(frozen=True)
class Member:
    """A database as a part of another: a file, or the volumes of a manifest.

    Parameters
    ----------
    name : str
        What messages and reports call it.
    files : tuple of OpenFile
        In order.
    manifest : Manifest, optional
        What names them.
    """

    name: str
    files: tuple[OpenFile, ...]
    manifest: Manifest | None = None

    @classmethod
    def in_memory(cls, layout: NewSegment, name: str) -> Member:
        """Make one in memory, of what was read."""
        segment, n_bytes = planned(segment_attributes(layout.counts), layout.shapes())
        source = MemorySource(name, n_bytes)
        layout.write(MemorySink(source.bytes, {name: each.offset for name, each in segment.datasets.items()}))
        attributes = root_attributes(layout.mask, layout.parts, layout.genetic_code)
        attributes |= total_attributes([segment.attributes])
        contents = Contents(attributes, layout.mask, [segment], layout.parts, layout.genetic_code)
        return cls(name, (OpenFile.of(source, contents),))

    def sources(self) -> list[dict[str, Any]]:
        """Return what is known of the files that all of it was built from."""
        if self.manifest is not None:
            return [dict(source) for source in self.manifest.sources]
        return [source for file in self.files for source in file.sources()]


def check_members(given: Any) -> None:
    """Raise `OptionError` unless members make a `Database`: a caller may have given its class a path."""
    if isinstance(given, (list, tuple)) and all(isinstance(each, Member) for each in given):
        return
    if isinstance(given, (str, os.PathLike)):
        remedy = f"use Database.open({os.fspath(given)!r})"
    else:
        remedy = "use Database.open for files, Database.from_records for sequences"
    raise OptionError("Database", given, "a call of one of its class methods", remedy)


def open_members(paths: Paths) -> list[Member]:
    """Open database files and manifests.

    Raises
    ------
    DatabaseError, DatabaseDamageError
        As for `Database.open`.
    """
    names = [os.fsdecode(paths)] if isinstance(paths, (str, os.PathLike)) else checked_names("path", paths)
    with ExitStack() as held:
        members = [_member(name, held, is_alone=len(names) == 1) for name in names]
        check_together(members)
        held.pop_all()  # they stay open
    return members


def checked_names(argument: str, paths: Any) -> list[str]:
    """Return the names of several files, at least one, or raise `OptionError`."""
    names = list(paths) if isinstance(paths, Iterable) and not isinstance(paths, (str, bytes)) else []
    if not names or not all(isinstance(name, (str, os.PathLike)) for name in names):
        raise OptionError(argument, paths, "names of databases, at least one")
    return [os.fsdecode(name) for name in names]


def _member(name: str, held: ExitStack, is_alone: bool) -> Member:
    """Open a file or a manifest; what is opened is closed with ``held``."""
    if is_manifest(name):
        manifest = read_manifest(name)
        return Member(name, tuple(_open_volumes(manifest, held)), manifest)
    source = FileSource(name) if is_alone else VolumeSource(name)
    held.callback(source.close)
    return Member(name, (OpenFile.read(source),))


def _open_volumes(manifest: Manifest, held: ExitStack) -> Iterator[OpenFile]:
    """Open the volumes of a manifest, one after the other, and check that they are those that it names."""
    for entry in manifest.volumes:
        source = VolumeSource(manifest.path_of(entry))
        held.callback(source.close)
        if source.n_bytes != entry.n_bytes:
            raise replaced(manifest, entry, f"{source.n_bytes:,} bytes, expected {entry.n_bytes:,}")
        file = OpenFile.read(source)
        if file.identity() != entry.identity:
            shown = (each[:SHOWN_IDENTITY] for each in (file.identity(), entry.identity))
            raise replaced(manifest, entry, "identity {}, expected {}".format(*shown))
        for name in ("n_subjects", "n_residues"):
            if getattr(file, name) != getattr(entry, name):
                problem = f"volume {entry.path}: {name} is {getattr(entry, name)}, the file has {getattr(file, name)}"
                raise DatabaseDamageError(manifest.name, [problem])
        if file.contents.mask != manifest.mask:
            problem = f"mask is {manifest.mask}, volume {entry.path} has {file.contents.mask}"
            raise DatabaseDamageError(manifest.name, [problem])
        yield file


def replaced(manifest: Manifest, entry: VolumeEntry, problem: str) -> DatabaseError:
    """Make the error for a file that is not the volume that a manifest names."""
    return DatabaseError(
        f"{manifest.path_of(entry)}: is not the volume that {manifest.name} names ({problem}); restore that file, or "
        "build the volumes again"
    )


def check_together(members: Sequence[Member]) -> None:
    """Check that files can be one database; warn where two hold the same, which may be meant so.

    Raises
    ------
    DatabaseError
        If a file is there twice, or one has another mask than the first.
    """
    files = [file for member in members for file in member.files]
    first, seen, copies = files[0], set(), []
    held: dict[tuple[int, str], str] = {}
    for file in files:
        source = file.source
        if file.contents.mask != first.contents.mask:
            raise DatabaseError(
                f"{source.name}: was built with the mask {file.contents.mask}, {first.source.name} with "
                f"{first.contents.mask}; build both with the same --mask to search them together"
            )
        codes = [each.contents.genetic_code for each in (file, first)]
        if codes[0] != codes[1]:
            what = [_kind(code) for code in codes]
            raise DatabaseError(
                f"{source.name}: holds {what[0]}, {first.source.name} {what[1]}; search them separately"
            )
        key = source.file if isinstance(source, FileSource) else id(source)
        if key in seen:
            raise DatabaseError(f"{source.name}: is given twice; name each file once")
        seen.add(key)
        if isinstance(source, FileSource) and source.block is not None and source.block.sha256:
            other = held.setdefault((source.n_bytes, source.block.sha256), source.name)
            copies += [(source.name, other)] if other != source.name else []
    if copies:
        more = f", and {len(copies) - 1} more are copies" if len(copies) > 1 else ""
        text = f"{copies[0][0]}: is a copy of {copies[0][1]}{more}; their subjects are searched twice"
        warnings.warn(text, SwsearchWarning, stacklevel=2)


def _kind(genetic_code: int | None) -> str:
    return "proteins" if genetic_code is None else f"DNA to be translated by genetic code {genetic_code}"


def described_files(members: Sequence[Member], files: Sequence[OpenFile]) -> dict[str, Any]:
    """Return what `Database.info` says of the format of files, and of when they were made."""
    names = ("format", "format_version", "alphabet", "letters", "created", "software")
    said = {name: files[0].contents.attributes.get(name) for name in names}
    if files[0].contents.genetic_code is not None:
        said |= {"alphabet": "dna", "letters": DNA.letters}
    manifest = members[0].manifest
    if manifest is not None and len(members) == 1:
        said |= {"created": manifest.created, "software": manifest.software}
    elif len(members) > 1:
        created = [file.contents.attributes.get("created") for file in files]
        said |= {"created": max(filter(None, map(str, created)), default=None)}
    return said


def described_segment(segment: Segment) -> dict[str, Any]:
    """Return what `Database.info` says of a segment."""
    return {
        "n_subjects": segment.n_subjects,
        "n_residues": segment.lengths.n_residues,
        "n_blocks": len(segment.block_offsets) - 1,
        "n_columns": int(segment.block_offsets[-1]),
        "created": str(segment.attributes.get("created")),
        "software": str(segment.attributes.get("software")),
        "sources": segment.sources(),
    }


def identity_of_all(files: Sequence[OpenFile]) -> str:
    """Return what tells the content of files one after the other from that of others, lower-case hexadecimal.

    It is that of the file where there is one. Otherwise it follows from those of the files in their order: the same
    subjects in other volumes have another, for to know that they are the same all of them would have to be read.
    """
    if len(files) == 1:
        return files[0].identity()
    digest = hashlib.sha256(b"volumes\n")
    for file in files:
        digest.update(f"{file.identity()}\n".encode())
    return digest.hexdigest()


def write_manifest(
    path: PathLike,
    volumes: Iterable[PathLike],
    sources: Sequence[dict[str, Any]] | None = None,
    *,
    overwrite: bool = True,
) -> Manifest:
    """Write a manifest that makes one database of several files; little of them is read.

    Parameters
    ----------
    path : path
        The manifest; it appears under this name when it is complete.
    volumes : iterable of paths
        Database files, in order, in the manifest's folder or one below it.
    sources : sequence of dict, optional
        What the database as a whole was built from, as `Database.sources` gives it; by default the sources of the
        volumes, one after the other.
    overwrite : bool, optional
        Whether to replace a database or manifest of this name. Other files are never replaced.

    Returns
    -------
    Manifest
        As it was written.

    Raises
    ------
    DatabaseError
        If a volume cannot be read, is there twice, or has another mask than the first.
    OutputError
        If the manifest cannot be written.
    """
    check_flag("overwrite", overwrite)
    names = checked_names("volumes", volumes)
    if sources is not None and not (isinstance(sources, Sequence) and all(is_source(each) for each in sources)):
        raise OptionError("sources", sources, "a list as Database.sources gives it")
    files = [OpenFile.read(VolumeSource(name)) for name in names]
    member = Member(os.fsdecode(path), tuple(files))
    check_together([member])
    entries = [_entry(Path(path), name, file) for name, file in zip(names, files, strict=True)]
    said = member.sources() if sources is None else [dict(source) for source in sources]
    return write_entries(path, entries, mask_of(files), said, overwrite=overwrite)


def mask_of(files: Sequence[OpenFile]) -> Mask:
    """Return the mask that is in force in files that were checked to be together."""
    return files[0].contents.mask


def _entry(manifest: Path, name: str, file: OpenFile) -> VolumeEntry:
    """Describe a volume for a manifest."""
    source = file.source
    assert isinstance(source, FileSource)
    if source.block is None or not source.block.sha256:
        raise DatabaseError(f"{name}: has no SHA-256, expected one in a volume; build it again")
    # a volume may be a link; the folders are compared as they are
    folder, inside = manifest.resolve().parent, Path(name).parent.resolve() / Path(name).name
    if not inside.is_relative_to(folder):
        raise DatabaseError(f"{name}: is outside the folder of {manifest}; move it into that folder")
    relative = inside.relative_to(folder).as_posix()
    return VolumeEntry(
        relative, file.identity(), file.n_subjects, file.n_residues, source.n_bytes, source.block.sha256
    )
