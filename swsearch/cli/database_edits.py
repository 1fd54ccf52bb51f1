"""``swsearch db append``, ``remove`` and ``merge``: databases that are changed, or made of others."""

# no postponed annotations: the kinds of the options follow from them
import time
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from swsearch.cli.console import command, say
from swsearch.cli.database_notes import reading, say_built, warn_of_empty
from swsearch.cli.database_tables import (
    FileArgument,
    IdentifiersArgument,
    ListTable,
    MemoryTable,
    TaxonTable,
    VolumeTable,
)
from swsearch.cli.parameters import command_rows, takes
from swsearch.cli.tables import MessageTable
from swsearch.errors import InputError
from swsearch.options.row import option
from swsearch.options.words import OnDuplicate
from swsearch.pipeline.table.scoring import SequenceTable


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AppendTable(TaxonTable):
    """How sequences are appended."""

    on_duplicate: OnDuplicate = option(
        "error",
        "A record with an existing identifier: error appends nothing, skip drops the record, replace replaces the "
        "old one, keep keeps both.",
    )


@command
@takes(
    command_rows(
        AppendTable,
        SequenceTable,
        MessageTable,
        names="on_duplicate memory taxids taxonomy allow_dna progress quiet",
    )
)
def db_append(
    database: FileArgument,
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT...", help="FASTA files; - reads stdin.")],
    **given: Any,
) -> None:
    """Add the sequences of more FASTA files to a database."""
    from swsearch.db import append_database

    messages, options = MessageTable.of(given), vars(AppendTable.of(given))
    with reading("appending", messages) as done:
        edited = append_database(database, inputs, progress=done.move_to, allow_dna=given["allow_dna"], **options)
    more = "".join(
        f", {n:,} {what}" for n, what in ((edited.left_out, "left out"), (edited.removed, "replaced")) if n
    )
    _say_now(database, f"{edited.added:,} added{more}" if more else "", messages.quiet)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RemoveTable(ListTable, MemoryTable):
    """What is removed from a database."""

    ignore_missing_ids: bool = option(False, "Skip identifiers that the database does not have.")


@command
@takes(command_rows(RemoveTable, MessageTable, names="ids ignore_missing_ids memory progress quiet"))
def db_remove(database: FileArgument, identifiers: IdentifiersArgument = None, **given: Any) -> None:
    """Remove entries from a database; removes nothing if one is not found."""
    from swsearch.db import remove_records
    from swsearch.db.lists import read_list

    asked, messages = RemoveTable.of(given), MessageTable.of(given)
    if not identifiers and asked.ids is None:
        raise InputError("ID..., --ids: got neither, expected identifiers, or a list of them")
    named = [*(identifiers or []), *(read_list(asked.ids, "ids") if asked.ids is not None else [])]
    with reading("removing", messages) as done:
        edited = remove_records(
            database, named, ignore_missing=asked.ignore_missing_ids, memory=asked.memory, progress=done.move_to
        )
    _say_now(database, f"{edited.removed:,} removed", messages.quiet)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MergeTable(VolumeTable):
    """How databases become one."""

    on_duplicate: OnDuplicate = option(
        "error",
        "Records with the same identifier: error writes nothing, skip keeps the first, replace keeps the last, "
        "keep keeps all.",
    )


@command
@takes(command_rows(MergeTable, MessageTable, names="output on_duplicate volume_size memory progress quiet"))
def db_merge(
    databases: Annotated[
        list[str], typer.Argument(metavar="DB.h5...", help="Databases of db build, or volume manifests.")
    ],
    **given: Any,
) -> None:
    """Merge databases into one, in the given order; one database is copied and sorted as a whole."""
    from swsearch.db import merge_databases

    begun, merged, messages = time.monotonic(), MergeTable.of(given), MessageTable.of(given)
    with reading("merging", messages) as done:
        edited = merge_databases(databases, progress=done.move_to, **vars(merged))
    if edited.left_out and not messages.quiet:
        say(f"swsearch: {merged.output}: {edited.left_out:,} records left out, whose identifiers others have")
    say_built(merged.output, begun, messages.quiet)


def _say_now(database: str, done: str, quiet: bool) -> None:
    """Say what a database holds now, and warn of records without residues."""
    from swsearch.db.contents import stored_attributes

    now = stored_attributes(database)
    warn_of_empty(now, database)
    if not quiet:
        holds = f"now {now['n_subjects']:,} subjects, {now['n_residues']:,} residues"
        say(f"swsearch: {database}: {f'{done}; ' if done else ''}{holds}")
