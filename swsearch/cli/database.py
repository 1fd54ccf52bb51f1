"""``swsearch db``: build and look after database files."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from swsearch.cli.console import command, parse_size, say
from swsearch.cli.database_edits import db_append, db_merge, db_remove
from swsearch.cli.database_fetch import db_fetch
from swsearch.cli.database_notes import say_built
from swsearch.cli.numbers import whole
from swsearch.cli.options import (
    AllowDnaOption,
    DatabaseArgument,
    MaskName,
    MemoryOption,
    ProgressName,
    ProgressOption,
    QuietOption,
    TaxidsOfOption,
    TaxonomyOption,
    VolumeSizeOption,
)
from swsearch.cli.usage import CommandGroup, OneCommand
from swsearch.errors import InputError, printable

db_app = typer.Typer(cls=CommandGroup, help="Build and look after database files.", no_args_is_help=True)


@db_app.command("build", cls=OneCommand)
@command
def db_build(
    inputs: Annotated[
        list[str], typer.Argument(metavar="INPUT...", help="FASTA files, plain or compressed; - is stdin.")
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DB.h5", help="The database file to write, or the manifest.")
    ],
    volume_size: VolumeSizeOption = None,
    mask: Annotated[
        MaskName,
        typer.Option(
            help="What searches are to score as X: none (lower case is only remembered), lower case, or low "
            "complexity (tantan). No letter is lost."
        ),
    ] = MaskName.none,
    translate: Annotated[
        bool,
        typer.Option(
            "--translate",
            help="The inputs are DNA: searches compare proteins with their six reading frames (tblastn).",
        ),
    ] = False,
    genetic_code: Annotated[
        int,
        typer.Option(
            parser=whole(), metavar="N", help="Genetic code of --translate, by NCBI's number: 11 for bacteria."
        ),
    ] = 1,
    memory: MemoryOption = "512M",
    taxids: TaxidsOfOption = None,
    taxonomy: TaxonomyOption = None,
    allow_dna: AllowDnaOption = False,
    progress: ProgressOption = ProgressName.auto,
    quiet: QuietOption = False,
) -> None:
    """Build a database from FASTA."""
    from swsearch.cli.displays import display_of
    from swsearch.cli.progress import ReadingProgress
    from swsearch.db import build_database

    begun = time.monotonic()
    with ReadingProgress(display_of(progress.value, quiet), "building") as done:
        budget = parse_size(memory, "memory")
        size = None if volume_size is None else parse_size(volume_size, "volume_size")
        build_database(
            inputs, output, memory=budget, progress=done.move_to, mask=mask.value, allow_dna=allow_dna,
            volume_size=size, taxids=taxids, taxonomy=taxonomy, translate=translate, genetic_code=genetic_code,
        )  # fmt: skip
    say_built(output, begun, quiet)


@db_app.command("split", cls=OneCommand)
@command
def db_split(
    database: DatabaseArgument,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="DB.json", help="The manifest; its volumes are written beside it."),
    ],
    volume_size: VolumeSizeOption = None,
    volumes: Annotated[
        int | None,
        typer.Option(
            parser=whole(),
            metavar="N",
            help="How many volumes, with about as many residues each, instead of --volume-size.",
            show_default="by size",
        ),
    ] = None,
    memory: MemoryOption = "512M",
    progress: ProgressOption = ProgressName.auto,
    quiet: QuietOption = False,
) -> None:
    """Cut a database into volumes, without the FASTA files; searches of them find what searches of it find."""
    from swsearch.cli.displays import display_of
    from swsearch.cli.progress import ReadingProgress
    from swsearch.db import split_database

    begun = time.monotonic()
    if (volume_size is None) == (volumes is None):
        given = "both" if volumes is not None else "neither"
        raise InputError(f"--volume-size, --volumes: got {given}, expected one of them")
    size = None if volume_size is None else parse_size(volume_size, "volume_size")
    with ReadingProgress(display_of(progress.value, quiet), "splitting") as done:
        budget = parse_size(memory, "memory")
        split_database(database, output, volume_size=size, volumes=volumes, memory=budget, progress=done.move_to)
    say_built(output, begun, quiet)


@db_app.command("info", cls=OneCommand)
@command
def db_info(
    database: DatabaseArgument,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show what a database holds and where it came from."""
    from swsearch.db import Database

    with Database.open(database) as opened:
        info = opened.info()
    if as_json:
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
def db_verify(
    database: DatabaseArgument,
    quiet: QuietOption = False,
) -> None:
    """Check every checksum and every invariant; exit code 2 and the place if something is broken."""
    from swsearch.db import verify_database

    checked = verify_database(database)
    if not quiet:
        say(f"swsearch: {database}: sound ({', '.join(f'{n:,} {what}' for what, n in checked.items())})")


db_app.command("append", cls=OneCommand)(db_append)
db_app.command("remove", cls=OneCommand)(db_remove)
db_app.command("merge", cls=OneCommand)(db_merge)
db_app.command("fetch", cls=OneCommand)(db_fetch)
