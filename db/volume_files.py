"""The files of a database in volumes: their names, and how all of them appear at once or none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from swsearch.db.format import is_manifest
from swsearch.db.manifest import read_manifest
from swsearch.db.volumes import write_manifest
from swsearch.db.writing import PathLike, check_output, existing_mode, set_mode, sync_folder
from swsearch.errors import DatabaseError, OutputError, whole_number
from swsearch.output_files import TemporaryFile

ENDINGS = (".json", ".h5")
"""Endings of a manifest's name that the names of its volumes do not have before their numbers."""


MOST_VOLUME_BYTES = 1 << 62
"""Largest size of a volume that can be asked for."""


def checked_volume_size(volume_size: int) -> int:
    """Return the size that the files of volumes may have, or raise `OptionError` if it is none."""
    return whole_number("volume_size", volume_size, 1, MOST_VOLUME_BYTES, "a number of bytes")


def volume_path(manifest: Path, number: int) -> Path:
    """Return where a volume stands: ``trembl.json`` has ``trembl.000.h5``, ``trembl.001.h5`` and so on beside it."""
    return manifest.with_name(f"{_stem(manifest)}.{number:03d}.h5")


def _stem(manifest: Path) -> str:
    name = manifest.name
    return name.removesuffix(manifest.suffix) if manifest.suffix in ENDINGS else name


def volumes_beside(manifest: Path) -> list[Path]:
    """Return the volumes that a manifest names and that have the names of its volumes; none if it is no manifest."""
    if not is_manifest(manifest):
        return []
    try:
        named = read_manifest(manifest).volumes
    except DatabaseError:  # it is damaged, and about to be replaced
        return []
    return [manifest.with_name(each.path) for each in named if re.fullmatch(_pattern(manifest), each.path)]


def _pattern(manifest: Path) -> str:
    return re.escape(_stem(manifest)) + r"\.[0-9]{3,}\.h5"


def remove_volumes(volumes: Sequence[Path]) -> None:
    """Remove the volumes of a manifest that something else has replaced."""
    for each in volumes:
        with suppress(OSError):
            each.unlink()


class VolumeFiles:
    """The volumes and the manifest that are being made; a context manager, which leaves nothing unless `publish` ran.

    Parameters
    ----------
    output : path
        The manifest.
    inputs : list of str
        What is read, and can therefore not be replaced.
    overwrite : bool
        Whether to replace a database, in volumes or not, that has this name.

    Raises
    ------
    OutputError
        If a file cannot be written, or would be replaced that is not to be.
    """

    def __init__(self, output: PathLike, inputs: list[str], overwrite: bool) -> None:
        self.path = check_output(output, inputs, overwrite)
        self._earlier = volumes_beside(self.path)
        for each in sorted(self.path.parent.glob("*.h5")):
            if re.fullmatch(_pattern(self.path), each.name):
                if each not in self._earlier:
                    raise OutputError(
                        f"{each}: is named as a volume of {self.path.name} but does not belong to it; delete it or "
                        "choose another name"
                    )
                check_output(each, inputs, overwrite)
        self._made: list[TemporaryFile] = []

    def new(self) -> Path:
        """Return the temporary name of the next volume, an empty file."""
        place = volume_path(self.path, len(self._made))
        made = TemporaryFile(place, sweep=not self._made)
        self._made.append(made)
        set_mode(made.path, existing_mode(place))
        return made.path

    def publish(self, sources: Sequence[dict[str, Any]]) -> None:
        """Give every volume its name and write the manifest, in place of an earlier one with its volumes.

        Parameters
        ----------
        sources : sequence of dict
            What the database as a whole was built from.
        """
        names = [volume_path(self.path, number) for number in range(len(self._made))]
        mode = existing_mode(self.path)
        aside: list[tuple[TemporaryFile, Path]] = []
        published: list[Path] = []
        try:
            for each in (self.path, *self._earlier):
                if each.exists():
                    aside.append((TemporaryFile(each, sweep=False), each))
                    each.replace(aside[-1][0].path)
            for made, name in zip(self._made, names, strict=True):
                published.append(name)
                made.publish(name)
            write_manifest(self.path, names, sources)
            set_mode(self.path, mode)
        except BaseException:
            for name in published:
                name.unlink(missing_ok=True)
            for kept, each in aside:
                with suppress(OSError):
                    if kept.path.stat().st_size:  # what it was made for, not the empty file that it begins as
                        kept.path.replace(each)
            raise
        finally:
            for kept, _ in aside:
                with suppress(OSError):
                    kept.discard()
        sync_folder(self.path.parent)

    def __enter__(self) -> VolumeFiles:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._made:
            with suppress(OSError):
                each.discard()
