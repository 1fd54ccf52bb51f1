"""``swsearch db append``, ``remove`` and ``merge``: databases that are changed, or made of others."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from swsearch.cli.console import command, parse_size, say
from swsearch.cli.database_notes import say_built, warn_of_empty
from swsearch.cli.options import (
    AllowDnaOption,
    DuplicateName,
    IdsOption,
    MemoryOption,
    ProgressName,
    ProgressOption,
    QuietOption,
    TaxidsOfOption,
    TaxonomyOption,
    VolumeSizeOption,
)
from swsearch.errors import InputError

FileArgument = Annotated[str, typer.Argument(metavar="DB.h5", help="A database that db build made, in one file.")]


@command
def db_append(
    database: FileArgument,
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT...", help="FASTA files; - is stdin.")],
    on_duplicate: Annotated[
        DuplicateName,
        typer.Option(
            help="A record whose identifier is there: error appends nothing, skip leaves it out, replace has it in "
            "place of the other, keep has both."
        ),
    ] = DuplicateName.error,
    memory: MemoryOption = "512M",
    taxids: TaxidsOfOption = None,
    taxonomy: TaxonomyOption = None,
    allow_dna: AllowDnaOption = False,
    progress: ProgressOption = ProgressName.auto,
    quiet: QuietOption = False,
) -> None:
    """Add the sequences of more FASTA files to a database."""
    from swsearch.cli.displays import display_of
    from swsearch.cli.progress import ReadingProgress
    from swsearch.db import append_database

    with ReadingProgress(display_of(progress.value, quiet), "appending") as done:
        budget = parse_size(memory, "memory")
        edited = append_database(
            database, inputs, on_duplicate=on_duplicate.value, memory=budget, progress=done.move_to,
            allow_dna=allow_dna, taxids=taxids, taxonomy=taxonomy,
        )  # fmt: skip
    more = "".join(
        f", {n:,} {what}" for n, what in ((edited.left_out, "left out"), (edited.removed, "replaced")) if n
    )
    _say_now(database, f"{edited.added:,} added{more}" if more else "", quiet)


@command
def db_remove(
    database: FileArgument,
    identifiers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID...]", help="Identifiers, or other names such as accessions; all entries of each."
        ),
    ] = None,
    ids: IdsOption = None,
    ignore_missing_ids: Annotated[
        bool, typer.Option("--ignore-missing-ids", help="Leave identifiers alone that are not there.")
    ] = False,
    memory: MemoryOption = "512M",
    progress: ProgressOption = ProgressName.auto,
    quiet: QuietOption = False,
) -> None:
    """Take entries out of a database; nothing is removed if one is not there."""
    from swsearch.cli.displays import display_of
    from swsearch.cli.progress import ReadingProgress
    from swsearch.db import remove_records
    from swsearch.db.lists import read_list

    if not identifiers and ids is None:
        raise InputError("ID..., --ids: got neither, expected identifiers, or a list of them")
    named = [*(identifiers or []), *(read_list(ids, "ids") if ids is not None else [])]
    with ReadingProgress(display_of(progress.value, quiet), "removing") as done:
        budget = parse_size(memory, "memory")
        edited = remove_records(
            database, named, ignore_missing=ignore_missing_ids, memory=budget, progress=done.move_to
        )
    _say_now(database, f"{edited.removed:,} removed", quiet)


@command
def db_merge(
    databases: Annotated[
        list[str], typer.Argument(metavar="DB.h5...", help="Databases that db build made, manifests of volumes too.")
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DB.h5", help="The database file to write, or the manifest.")
    ],
    on_duplicate: Annotated[
        DuplicateName,
        typer.Option(
            help="Records with the same identifier: error writes nothing, skip keeps the first, replace the last, "
            "keep all of them."
        ),
    ] = DuplicateName.error,
    volume_size: VolumeSizeOption = None,
    memory: MemoryOption = "512M",
    progress: ProgressOption = ProgressName.auto,
    quiet: QuietOption = False,
) -> None:
    """Make one database of several, whose entries follow each other; of one, a new copy sorted as a whole."""
    from swsearch.cli.displays import display_of
    from swsearch.cli.progress import ReadingProgress
    from swsearch.db import merge_databases

    begun = time.monotonic()
    size = None if volume_size is None else parse_size(volume_size, "volume_size")
    with ReadingProgress(display_of(progress.value, quiet), "merging") as done:
        budget = parse_size(memory, "memory")
        edited = merge_databases(
            databases, output, on_duplicate=on_duplicate.value, volume_size=size, memory=budget,
            progress=done.move_to,
        )  # fmt: skip
    if edited.left_out and not quiet:
        say(f"swsearch: {output}: {edited.left_out:,} records left out, whose identifiers others have")
    say_built(output, begun, quiet)


def _say_now(database: str, done: str, quiet: bool) -> None:
    """Say what a database holds now, and warn of records without residues."""
    from swsearch.db.contents import stored_attributes

    now = stored_attributes(database)
    warn_of_empty(now, database)
    if not quiet:
        holds = f"now {now['n_subjects']:,} subjects, {now['n_residues']:,} residues"
        say(f"swsearch: {database}: {f'{done}; ' if done else ''}{holds}")
