"""The manifest of a database in volumes: a small JSON file that names them in order.

``format`` and ``format_version`` say what it is, ``n_subjects``, ``n_residues`` and ``mask`` what the database
holds, ``sources`` what all of it was built from, and ``volumes`` lists the files: ``path``, relative to the
manifest's folder; ``identity``, as `Database.identity` of the file gives it; ``n_subjects``, ``n_residues`` and
``n_bytes``; and ``sha256``, that of all but the file's first 512 bytes, which stands in these.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any

from swsearch.db.format import MANIFEST_FORMAT, software
from swsearch.db.stored import is_source
from swsearch.db.writing import PathLike, check_output, now
from swsearch.errors import DatabaseDamageError, DatabaseError, shown
from swsearch.options.words import MASKS, Mask
from swsearch.output_files import open_outputs

MANIFEST_VERSION = 1
"""The newest form of a manifest that is read, and the one that is written."""

MOST_VOLUMES = 100_000
"""Volumes of a manifest at most."""

MOST_MANIFEST_BYTES = 64 << 20
"""Length of a manifest at most."""

MOST_COUNTED = 1 << 62
"""Largest number in a manifest."""


@dataclass(frozen=True)
class VolumeEntry:
    """What a manifest says of a volume.

    Parameters
    ----------
    path : str
        Relative to the manifest's folder, with slashes.
    identity : str
        What tells its content from that of others.
    n_subjects, n_residues, n_bytes : int
        Its size.
    sha256 : str
        Of all but the file's first 512 bytes, lower-case hexadecimal.
    """

    path: str
    identity: str
    n_subjects: int
    n_residues: int
    n_bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What makes one database of several files.

    Parameters
    ----------
    name : str
        The manifest's path, as it was given.
    mask : {"none", "lower", "tantan"}
        The mask in force.
    volumes : tuple of VolumeEntry
        In order; at least one.
    sources : list of dict
        What the database as a whole was built from, as `Database.sources` gives it.
    created, software : str
        When and with what it was written.
    """

    name: str
    mask: Mask
    volumes: tuple[VolumeEntry, ...]
    sources: list[dict[str, Any]]
    created: str = ""
    software: str = ""

    @property
    def n_subjects(self) -> int:
        """Subjects of all volumes."""
        return sum(volume.n_subjects for volume in self.volumes)

    @property
    def n_residues(self) -> int:
        """Residues of all volumes."""
        return sum(volume.n_residues for volume in self.volumes)

    def path_of(self, volume: VolumeEntry) -> str:
        """Return where a volume stands: beside the manifest's name, or beside the file that it is a link to.

        Raises
        ------
        DatabaseError
            If it is at neither place.
        """
        beside = Path(self.name).parent / volume.path
        if _is_there(beside):
            return str(beside)
        behind = Path(self.name).resolve().parent / volume.path
        if _is_there(behind):
            return str(behind)
        raise DatabaseError(f"{self.name}: volume {beside} not found; restore it, or build the volumes again")


def _is_there(path: Path) -> bool:
    with suppress(OSError, ValueError):  # such as a name that is too long, which is not there either
        path.stat()
        return True
    return False


def read_manifest(path: PathLike) -> Manifest:
    """Read a manifest, and check all that it says; the volumes are not looked at.

    Raises
    ------
    DatabaseError
        If it cannot be read, is no manifest, or of a later version.
    DatabaseDamageError
        If it is not one that was written so.
    """
    name = os.fsdecode(path)
    try:
        with Path(name).open("rb") as file:
            text = file.read(MOST_MANIFEST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise DatabaseError(f"{name}: cannot be opened: {getattr(error, 'strerror', None) or error}") from error
    if len(text) > MOST_MANIFEST_BYTES:
        raise DatabaseDamageError(name, [f"more than {MOST_MANIFEST_BYTES:,} bytes, too long for a manifest"])
    try:
        said = json.loads(text.decode("utf-8-sig"), object_pairs_hook=_without_repeats)
        return _checked(name, said)
    except _ManifestError as error:
        raise DatabaseDamageError(name, [str(error)]) from None
    except json.JSONDecodeError as error:
        raise DatabaseDamageError(name, [f"line {error.lineno} is not JSON ({error.msg})"]) from None
    except (ValueError, RecursionError) as error:  # no UTF-8, or a number of thousands of digits
        raise DatabaseDamageError(name, ["it is not JSON"]) from error


class _ManifestError(Exception):
    """What is wrong with a manifest, in words that follow its name."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise _ManifestError(f"{shown(repeated)} is given twice")
    return found


def _checked(name: str, said: Any) -> Manifest:
    """Make a manifest of what JSON says."""
    if not isinstance(said, dict) or said.get("format") != MANIFEST_FORMAT:
        raise DatabaseError(f"{name}: is not a manifest of volumes; build one with: swsearch db build --volume-size")
    version = said.get("format_version")
    if type(version) is not int or version < 1:
        raise _ManifestError(f"format_version is {shown(version)}, expected {MANIFEST_VERSION}")
    if version > MANIFEST_VERSION:
        raise DatabaseError(
            f"{name}: manifest version {shown(version)}, this swsearch reads up to {MANIFEST_VERSION}; upgrade it"
        )
    mask = next((mask for mask in MASKS if mask == said.get("mask")), None)
    if mask is None:
        raise _ManifestError(f"mask is {shown(said.get('mask'))}, expected one of {', '.join(MASKS)}")
    volumes = said.get("volumes")
    if not isinstance(volumes, list) or not 1 <= len(volumes) <= MOST_VOLUMES:
        raise _ManifestError(f"volumes is not a list of 1 to {MOST_VOLUMES:,} volumes")
    sources = said.get("sources")
    if not isinstance(sources, list) or not all(is_source(each) for each in sources):
        raise _ManifestError("sources is not a list of files")
    texts = [said.get(each, "") for each in ("created", "software")]
    if not all(isinstance(text, str) for text in texts):
        raise _ManifestError("created or software is not text")
    entries = tuple(_entry_of(number, each) for number, each in enumerate(volumes))
    _check_once(entries)
    manifest = Manifest(name, mask, entries, sources, *texts)
    for each in ("n_subjects", "n_residues"):
        total = getattr(manifest, each)
        if type(said.get(each)) is not int or said[each] != total:
            raise _ManifestError(f"{each} is {shown(said.get(each))}, its volumes have {total}")
    return manifest


def _entry_of(number: int, said: Any) -> VolumeEntry:
    """Check what a manifest says of one volume."""
    where = f"volume {number}"
    if not isinstance(said, dict):
        raise _ManifestError(f"{where} is {shown(said)}, expected an object")
    for name in ("n_subjects", "n_residues", "n_bytes"):
        if type(said.get(name)) is not int or not 0 <= said[name] <= MOST_COUNTED:
            raise _ManifestError(f"{where}: {name} is {shown(said.get(name))}, expected a number from 0 on")
    for name in ("identity", "sha256"):
        if not isinstance(said.get(name), str) or not re.fullmatch("[0-9a-f]{64}", said[name]):
            raise _ManifestError(f"{where}: {name} is {shown(said.get(name))}, expected 64 hexadecimal digits")
    path = said.get("path")
    if not isinstance(path, str) or not path or "\0" in path:
        raise _ManifestError(f"{where}: path is {shown(path)}, expected the name of a file")
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise _ManifestError(
            f"{where}: path is {shown(path)}, expected a file in the manifest's folder or below it; it may be a link"
        )
    return VolumeEntry(**{each.name: said[each.name] for each in fields(VolumeEntry)})


def _check_once(volumes: tuple[VolumeEntry, ...]) -> None:
    seen: set[PurePosixPath] = set()
    for volume in volumes:
        path = PurePosixPath(volume.path)
        if path in seen:
            raise _ManifestError(f"volume {shown(volume.path)} is given twice")
        seen.add(path)


def write_entries(
    path: PathLike, volumes: list[VolumeEntry], mask: Mask, sources: list[dict[str, Any]], *, overwrite: bool
) -> Manifest:
    """Write a manifest of volumes that are known; see `swsearch.db.volumes.write_manifest`."""
    folder = Path(path).resolve().parent
    target = check_output(path, [str(folder / volume.path) for volume in volumes], overwrite)
    manifest = Manifest(os.fsdecode(path), mask, tuple(volumes), sources, now(), software())
    said = {
        "format": MANIFEST_FORMAT,
        "format_version": MANIFEST_VERSION,
        "created": manifest.created,
        "software": manifest.software,
        "mask": mask,
        "n_subjects": manifest.n_subjects,
        "n_residues": manifest.n_residues,
        "volumes": [asdict(volume) for volume in volumes],
        "sources": sources,
    }
    with open_outputs([(str(target), False)]) as (stream,):
        stream.write(json.dumps(said, indent=1) + "\n")
    return manifest
