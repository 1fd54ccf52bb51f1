"""``swsearch db``: build and look after database files."""

# no postponed annotations: the kinds of the options follow from them
import json
import time
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from swsearch.cli.console import command, say
from swsearch.cli.database_edits import db_append, db_merge, db_remove
from swsearch.cli.database_fetch import db_fetch
from swsearch.cli.database_notes import reading, say_built
from swsearch.cli.database_tables import DatabaseArgument, TaxonTable, VolumeTable
from swsearch.cli.parameters import command_rows, takes
from swsearch.cli.tables import CommandTable, MessageTable
from swsearch.cli.usage import CommandGroup, OneCommand
from swsearch.errors import InputError, printable
from swsearch.options.row import option
from swsearch.options.words import Mask
from swsearch.pipeline.table.scoring import SequenceTable

db_app = typer.Typer(cls=CommandGroup, help="Build and look after database files.", no_args_is_help=True)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BuildTable(VolumeTable, TaxonTable):
    """How a database is built."""

    mask: Mask = option(
        "none",
        "Residues that searches score as X: none, lower (lower case) or tantan (low complexity). The database "
        "keeps every residue.",
    )
    translate: bool = option(
        False, "The inputs are DNA: searches compare proteins with their six reading frames, as tblastn."
    )
    genetic_code: int = option(1, "With --translate: NCBI number of the genetic code, e.g. 11 for bacteria.")


@db_app.command("build", cls=OneCommand)
@command
@takes(
    command_rows(
        SequenceTable,
        BuildTable,
        MessageTable,
        names="output volume_size mask translate genetic_code memory taxids taxonomy allow_dna progress quiet",
    )
)
def db_build(
    inputs: Annotated[
        list[str], typer.Argument(metavar="INPUT...", help="FASTA files; may be compressed; - reads stdin.")
    ],
    **given: Any,
) -> None:
    """Build a database from FASTA."""
    from swsearch.db import build_database

    begun, built, messages = time.monotonic(), BuildTable.of(given), MessageTable.of(given)
    with reading("building", messages) as done:
        build_database(inputs, progress=done.move_to, allow_dna=given["allow_dna"], **vars(built))
    say_built(built.output, begun, messages.quiet)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SplitTable(VolumeTable):
    """How a database is cut."""

    volumes: int | None = option(
        None,
        "Number of volumes of similar size, instead of --volume-size.",
        unset="by size",
    )


@db_app.command("split", cls=OneCommand)
@command
@takes(
    command_rows(
        SplitTable,
        MessageTable,
        names="output volume_size volumes memory progress quiet",
        output={"help": "The manifest; its volumes are written beside it.", "metavar": "DB.json"},
    )
)
def db_split(database: DatabaseArgument, **given: Any) -> None:
    """Split a database into volumes, without its FASTA files. Searches of the volumes find the same hits."""
    from swsearch.db import split_database

    begun, split, messages = time.monotonic(), SplitTable.of(given), MessageTable.of(given)
    if (split.volume_size is None) == (split.volumes is None):
        both = "both" if split.volumes is not None else "neither"
        raise InputError(f"--volume-size, --volumes: got {both}, expected one of them")
    with reading("splitting", messages) as done:
        split_database(database, progress=done.move_to, **vars(split))
    say_built(split.output, begun, messages.quiet)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class InfoTable(CommandTable):
    """How ``swsearch db info`` writes."""

    json: bool = option(False, "As JSON.")


@db_app.command("info", cls=OneCommand)
@command
@takes(command_rows(InfoTable))
def db_info(database: DatabaseArgument, **given: Any) -> None:
    """Show what a database holds and where it came from."""
    from swsearch.db import Database

    with Database.open(database) as opened:
        info = opened.info()
    if InfoTable.of(given).json:
        typer.echo(json.dumps(info, indent=2))
        return
    segments, volumes = info.pop("segments"), info.pop("volumes", None) or []
    for key, value in info.items():
        _show(key, value)
    for number, volume in enumerate(volumes):
        typer.echo(f"volume {number}")
        for key, value in volume.items():
            _show(f"  {key}", value)
    for number, segment in enumerate(segments):
        sources = segment.pop("sources")
        typer.echo(f"segment {number}")
        for key, value in segment.items():
            _show(f"  {key}", value)
        for source in sources:
            _show("  source", ", ".join(f"{name} {value}" for name, value in source.items()))


def _show(key: str, value: object) -> None:
    shown = f"{value:,}" if isinstance(value, int) else printable(str(value))
    typer.echo(f"{key.replace('_', ' '):<16} {shown}")


@db_app.command("verify", cls=OneCommand)
@command
@takes(command_rows(MessageTable, names="quiet"))
def db_verify(database: DatabaseArgument, **given: Any) -> None:
    """Check every checksum and every invariant; exit code 2 and the place if something is broken."""
    from swsearch.db import verify_database

    checked = verify_database(database)
    if not MessageTable.of(given).quiet:
        say(f"swsearch: {database}: sound ({', '.join(f'{n:,} {what}' for what, n in checked.items())})")


db_app.command("append", cls=OneCommand)(db_append)
db_app.command("remove", cls=OneCommand)(db_remove)
db_app.command("merge", cls=OneCommand)(db_merge)
db_app.command("fetch", cls=OneCommand)(db_fetch)
