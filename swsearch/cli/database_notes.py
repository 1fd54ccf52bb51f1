"""What ``swsearch db`` says on stderr of a database that it made."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from swsearch.cli.console import say

if TYPE_CHECKING:
    from swsearch.cli.progress import ReadingProgress
    from swsearch.cli.tables import MessageTable


def reading(label: str, messages: MessageTable) -> ReadingProgress:
    """Return what shows how much of the input is read."""
    from swsearch.cli.displays import display_of
    from swsearch.cli.progress import ReadingProgress

    return ReadingProgress(display_of(messages.progress, messages.quiet), label)


def say_built(path: str, begun: float, quiet: bool) -> None:
    """Say what was made, and warn of records without residues."""
    from swsearch.db.contents import stored_attributes
    from swsearch.db.format import is_manifest
    from swsearch.db.manifest import read_manifest

    if not is_manifest(path):
        made, volumes = [stored_attributes(path)], ""
    else:
        manifest = read_manifest(path)
        made = [stored_attributes(manifest.path_of(each)) for each in manifest.volumes]
        volumes = f"{len(made):,} volumes, " if len(made) != 1 else "1 volume, "
    totals = {name: sum(int(each[name]) for each in made) for name in ("n_subjects", "n_residues", "n_empty")}
    warn_of_empty(totals, path)
    if not quiet:
        kinds = ("records of DNA", "nucleotides") if "genetic_code" in made[0] else ("subjects", "residues")
        say(
            f"swsearch: {path}: {volumes}{totals['n_subjects']:,} {kinds[0]}, {totals['n_residues']:,} {kinds[1]}, "
            f"{time.monotonic() - begun:.2f} s"
        )


def warn_of_empty(info: Mapping[str, int | str], path: str) -> None:
    """Warn of records without residues."""
    if info["n_empty"]:
        say(f"swsearch: warning: {path}: {info['n_empty']} records have no residues; they are kept")
