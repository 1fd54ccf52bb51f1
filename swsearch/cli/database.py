"""``swsearch db``: builds, changes, checks and reads database files."""

# no postponed annotations: the kinds of the options follow from them
import json
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swsearch.cli.argument_checks import CheckedCommand, CommandGroup
from swsearch.cli.console import print_message, size_of
from swsearch.cli.parameters import takes
from swsearch.cli.progress import ReadingProgress, make_display
from swsearch.cli.tables import CommandTable, FileName, MessageTable, OneOutputTable
from swsearch.errors import InputError, format_count, format_value, printable
from swsearch.options.kinds import ByteSize, Mask, OnDuplicate, SubjectAlphabet
from swsearch.options.row import REQUIRED, option
from swsearch.output_files import check_not_an_input, open_outputs
from swsearch.pipeline.table.scoring import SequenceTable

if TYPE_CHECKING:
    from swsearch.blocks import IntArray
    from swsearch.db import Database

MAX_NAMED = 20
"""Maximum number of missing identifiers in a message."""

db_app = typer.Typer(name="db", cls=CommandGroup, help="Build and look after database files.", no_args_is_help=True)


DatabaseArgument = Annotated[
    str, typer.Argument(metavar="DB.h5", help="A database of db build, or a volume manifest.")
]
FileArgument = Annotated[str, typer.Argument(metavar="DB.h5", help="A database of db build, in one file.")]
IdentifiersArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID...]", help="Identifiers or accessions; selects every entry with that name."),
]


class MemoryTable(CommandTable):
    """Memory of what writes a database."""

    memory: int = option(1 << 30, "Maximum memory, e.g. 512M or 2G.", ByteSize())


class VolumeTable(MemoryTable):
    """A new database, or its volumes."""

    output: str = option(
        REQUIRED,
        "Database file to write, or manifest.",
        metavar="DB.h5",
        spellings="--output -o",
        blast="out",
        others="db d outfile database",
    )
    volume_size: int | None = option(
        None,
        "Maximum size of a file, e.g. 8G. Volumes DB.000.h5, DB.001.h5, ... are written beside --output, which "
        "becomes their manifest, DB.json.",
        ByteSize(),
        unset="no volumes",
        others="max-file-sz",
    )


class TaxonTable(MemoryTable):
    """Taxa of sequences that are added to a database."""

    taxids: str | None = option(
        None,
        "Taxids of the sequences: a file of accessions and taxids (two columns, or the four of NCBI's "
        "prot.accession2taxid.gz), or header to read them from headers (OX=9606, TaxID=9606).",
        unset="no taxids",
        metavar="FILE|header",
        blast="taxid-map",
    )
    taxonomy: str | None = option(
        None,
        "NCBI taxonomy: a folder with nodes.dmp and names.dmp, or taxdump.tar.gz. The database keeps the part that "
        "it needs.",
        unset="none: taxa have no names and no descendants",
        metavar="FOLDER",
    )


class ListTable(CommandTable):
    """A list of identifiers."""

    ids: str | None = option(
        None,
        "File with one identifier per line; may be compressed; # starts a comment line; - reads stdin.",
        FileName(),
        unset="none",
        others="entry-batch id-file list-file f",
    )


class BuildTable(VolumeTable, TaxonTable):
    """Options of ``swsearch db build``."""

    mask: Mask = option(
        "none",
        "Residues that searches score as X: none, lower (lower case) or tantan (low complexity). The database "
        "keeps every residue.",
    )
    translate: bool = option(
        False, "The inputs are DNA: searches compare proteins with their six reading frames, as tblastn."
    )
    genetic_code: int = option(1, "With --translate: NCBI number of the genetic code, e.g. 11 for bacteria.")
    alphabet: SubjectAlphabet = option(
        "protein", "Letters of the inputs: protein, or letters of structure, 3di (Foldseek) or tea (TEA)."
    )


@db_app.command("build", cls=CheckedCommand)
@takes(
    SequenceTable,
    BuildTable,
    MessageTable,
    names="output volume_size mask translate genetic_code alphabet memory taxids taxonomy allow_dna progress quiet",
)
def db_build(
    inputs: Annotated[
        list[str], typer.Argument(metavar="INPUT...", help="FASTA files; may be compressed; - reads stdin.")
    ],
    **given: Any,
) -> None:
    """Build a database from FASTA."""
    from swsearch.db import build_database

    built, messages = BuildTable.from_values(given), MessageTable.from_values(given)
    with _reading_progress("building", messages) as done:
        build_database(inputs, progress=done.move_to, allow_dna=given["allow_dna"], **vars(built))
    _print_totals(built.output, messages.quiet, seconds=done.seconds)


@db_app.command("split", cls=CheckedCommand)
@takes(
    VolumeTable,
    MessageTable,
    names="output volume_size memory progress quiet",
    output={"help": "The manifest; its volumes are written beside it.", "metavar": "DB.json"},
    volume_size={"default": REQUIRED, "help": "Maximum size of a volume, e.g. 8G.", "unset": ""},
)
def db_split(database: DatabaseArgument, **given: Any) -> None:
    """Split a database into volumes, without its FASTA files. Searches of the volumes find the same hits."""
    from swsearch.db import split_database

    split, messages = VolumeTable.from_values(given), MessageTable.from_values(given)
    with _reading_progress("splitting", messages) as done:
        split_database(database, progress=done.move_to, **vars(split))
    _print_totals(split.output, messages.quiet, seconds=done.seconds)


class InfoTable(CommandTable):
    """Options of ``swsearch db info``."""

    json: bool = option(False, "As JSON.")


@db_app.command("info", cls=CheckedCommand)
@takes(InfoTable)
def db_info(database: DatabaseArgument, **given: Any) -> None:
    """Show what a database holds and where it came from."""
    from swsearch.db import Database

    with Database.open(database) as opened:
        info = opened.info()
    if InfoTable.from_values(given).json:
        typer.echo(json.dumps(info, indent=2))
        return
    parts = {"volume": info.pop("volumes", []), "segment": info.pop("segments")}
    _show(info)
    for name, several in parts.items():
        for number, part in enumerate(several):
            typer.echo(f"{name} {number}")
            sources = part.pop("sources", [])
            _show(part, "  ")
            for source in sources:
                _show({"source": ", ".join(f"{key} {value}" for key, value in source.items())}, "  ")


def _show(values: Mapping[str, object], indent: str = "") -> None:
    for key, value in values.items():
        text = f"{value:,}" if isinstance(value, int) else printable(str(value))
        typer.echo(f"{indent + key.replace('_', ' '):<16} {text}")


@db_app.command("verify", cls=CheckedCommand)
@takes(MessageTable, names="quiet")
def db_verify(database: DatabaseArgument, **given: Any) -> None:
    """Check every checksum and every invariant; exit code 2 and the place if something is broken."""
    from swsearch.db import verify_database

    checked = [format_count(number, what.removesuffix("s")) for what, number in verify_database(database).items()]
    if not MessageTable.from_values(given).quiet:
        print_message(f"{database}: sound ({', '.join(checked)})")


class AppendTable(TaxonTable):
    """Options of ``swsearch db append``."""

    on_duplicate: OnDuplicate = option(
        "error",
        "A record with an existing identifier: error appends nothing, skip drops the record, keep keeps both.",
    )


@db_app.command("append", cls=CheckedCommand)
@takes(AppendTable, SequenceTable, MessageTable, names="on_duplicate memory taxids taxonomy allow_dna progress quiet")
def db_append(
    database: FileArgument,
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT...", help="FASTA files; - reads stdin.")],
    **given: Any,
) -> None:
    """Add the sequences of more FASTA files to a database."""
    from swsearch.db import append_database

    messages, options = MessageTable.from_values(given), vars(AppendTable.from_values(given))
    with _reading_progress("appending", messages) as done:
        edited = append_database(database, inputs, progress=done.move_to, allow_dna=given["allow_dna"], **options)
    left_out = f"{edited.added:,} added, {edited.skipped:,} left out; " if edited.skipped else ""
    _print_totals(database, messages.quiet, changes=f"{left_out}now ")


class RemoveTable(ListTable, MemoryTable):
    """Options of ``swsearch db remove``."""

    ignore_missing_ids: bool = option(False, "Skip identifiers that the database does not have.")


@db_app.command("remove", cls=CheckedCommand)
@takes(RemoveTable, MessageTable, names="ids ignore_missing_ids memory progress quiet")
def db_remove(database: FileArgument, identifiers: IdentifiersArgument = None, **given: Any) -> None:
    """Remove entries from a database; removes nothing if one is not found."""
    from swsearch.db import remove_records

    options, messages = RemoveTable.from_values(given), MessageTable.from_values(given)
    if not identifiers and options.ids is None:
        raise InputError("ID..., --ids: got neither, expected identifiers, or a list of them")
    named = _all_identifiers(identifiers, options.ids)
    with _reading_progress("removing", messages) as done:
        edited = remove_records(
            database, named, ignore_missing=options.ignore_missing_ids, memory=options.memory, progress=done.move_to
        )
    _print_totals(database, messages.quiet, changes=f"{edited.removed:,} removed; now ")


class MergeTable(VolumeTable):
    """Options of ``swsearch db merge``."""

    on_duplicate: OnDuplicate = option(
        "error", "Records with the same identifier: error writes nothing, skip keeps the first, keep keeps all."
    )


@db_app.command("merge", cls=CheckedCommand)
@takes(MergeTable, MessageTable, names="output on_duplicate volume_size memory progress quiet")
def db_merge(
    databases: Annotated[
        list[str], typer.Argument(metavar="DB.h5...", help="Databases of db build, or volume manifests.")
    ],
    **given: Any,
) -> None:
    """Merge databases into one, in the given order; one database is copied and sorted as a whole."""
    from swsearch.db import merge_databases

    merged, messages = MergeTable.from_values(given), MessageTable.from_values(given)
    with _reading_progress("merging", messages) as done:
        edited = merge_databases(databases, progress=done.move_to, **vars(merged))
    if edited.skipped and not messages.quiet:
        print_message(f"{merged.output}: {edited.skipped:,} records left out, whose identifiers others have")
    _print_totals(merged.output, messages.quiet, seconds=done.seconds)


@db_app.command("convert", cls=CheckedCommand)
@takes(MemoryTable, MessageTable, names="memory progress quiet")
def db_convert(
    database: DatabaseArgument,
    output: Annotated[str, typer.Argument(metavar="NEW.h5", help="Database file to write, or manifest.")],
    **given: Any,
) -> None:
    """Convert a database of an earlier format. Searches of the new one find the same hits."""
    from swsearch.db import convert_database

    messages = MessageTable.from_values(given)
    with _reading_progress("converting", messages) as done:
        convert_database(database, output, memory=MemoryTable.from_values(given).memory, progress=done.move_to)
    _print_totals(output, messages.quiet, seconds=done.seconds)


class FetchTable(ListTable):
    """Options of ``swsearch db fetch``."""

    all: bool = option(False, "All entries, in input order.")
    range: str | None = option(
        None,
        "Only these residues of each entry, counted from 1: 10-80, or 10- up to the end.",
        unset="all",
        metavar="FROM-TO",
    )


@db_app.command("fetch", cls=CheckedCommand)
@takes(FetchTable, OneOutputTable, names="ids all range output")
def db_fetch(database: DatabaseArgument, identifiers: IdentifiersArgument = None, **given: Any) -> None:
    """Write entries of a database as FASTA, unchanged. Exits with code 1 if one is not found."""
    from swsearch.db import Database
    from swsearch.db.fetch import ResidueRange, fasta_of

    options, output = FetchTable.from_values(given), OneOutputTable.from_values(given).output
    if options.all == bool(identifiers or options.ids):
        both = "both" if options.all else "neither"
        raise InputError(f"ID..., --ids, --all: got {both}, expected identifiers, a list of them, or --all")
    residues = None if options.range is None else ResidueRange.parse(options.range)
    named = _all_identifiers(identifiers, options.ids)
    with ExitStack() as stack:
        opened = stack.enter_context(Database.open(database))
        check_not_an_input([output], [database, options.ids, *(each.path for each in opened.volumes)])
        subjects, missing = _find_entries(opened, None if options.all else named)
        short = [] if residues is None else _entries_before(opened, subjects, residues)
        (stream,) = stack.enter_context(open_outputs([(output, True)]))
        texts = fasta_of(opened, subjects, residues)
        for text in _for_terminal(texts) if stream.isatty() else texts:
            stream.write(text)
    expected = "expected identifiers or accessions, in upper and lower case as in the database"
    problems = [f"no entry named {_list_names(missing)}; {expected}"] if missing else []
    problems += [f"no residues in --range {options.range}: {_list_names(short)}"] if short else []
    if problems:
        raise InputError(f"{database}: {'; '.join(problems)}")


def _all_identifiers(identifiers: list[str] | None, ids: str | None) -> list[str]:
    """Return the identifiers of the command line, and those of a list."""
    from swsearch.db.name_lookup import read_list

    return [*(identifiers or []), *(read_list(ids, "ids") if ids is not None else [])]


def _for_terminal(texts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield FASTA with a blank for each character of a header that would act on a terminal."""
    decoder = getincrementaldecoder("utf-8")("replace")
    for text in texts:
        yield printable(decoder.decode(text), " ", keep="\n").encode("utf-8")


def _find_entries(database: "Database", names: list[str] | None) -> "tuple[IntArray, list[str]]":
    """Return the ordinals of the entries that names lead to, each once, and the names that lead to none."""
    import numpy as np

    if names is None:
        return np.arange(database.n_subjects), []
    places, subjects = database.find_many_as_arrays(names)
    missing = np.setdiff1d(np.arange(len(names)), places)
    _, first = np.unique(subjects, return_index=True)
    return subjects[np.sort(first)], [names[place] for place in missing.tolist()]


def _entries_before(database: "Database", subjects: "IntArray", residues: tuple[int, int]) -> list[str]:
    """Return the identifiers of entries that end before a range begins."""
    lengths = database.lengths_of(subjects)
    return [database.identifier(each) for each in subjects[lengths <= residues[0]].tolist()]


def _list_names(names: list[str]) -> str:
    """Return names as a message has them."""
    more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
    return ", ".join(map(format_value, names[:MAX_NAMED])) + more


def _reading_progress(label: str, messages: MessageTable) -> ReadingProgress:
    """Return what shows how much of the input is read."""
    return ReadingProgress(make_display(messages.progress, messages.quiet), label)


def _print_totals(path: str, quiet: bool, *, seconds: float = 0.0, changes: str = "") -> None:
    """Print the totals of a database, after changes if there are some, and warn of records without residues."""
    from swsearch.db.database_files import read_totals

    totals = read_totals(path)
    if totals["n_empty"]:
        print_message(f"warning: {path}: {totals['n_empty']} records have no residues; they are kept")
    if not quiet:
        size = size_of(totals["n_subjects"], totals["n_residues"], "genetic_code" in totals)
        volumes = f"{format_count(totals['volumes'], 'volume')}, " if "volumes" in totals else ""
        print_message(f"{path}: {changes}{size}" if changes else f"{path}: {volumes}{size}, {seconds:.2f} s")
