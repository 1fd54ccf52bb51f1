"""Arguments and options that several commands of ``swsearch db`` have."""

# no postponed annotations: the kinds of the options follow from them
from dataclasses import dataclass
from typing import Annotated

import typer

from swsearch.cli.tables import CommandTable, FileName
from swsearch.options.kinds import ByteSize
from swsearch.options.row import REQUIRED, option

DatabaseArgument = Annotated[
    str, typer.Argument(metavar="DB.h5", help="A database of db build, or a volume manifest.")
]
FileArgument = Annotated[str, typer.Argument(metavar="DB.h5", help="A database of db build, in one file.")]
IdentifiersArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID...]", help="Identifiers or accessions; selects every entry with that name."),
]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MemoryTable(CommandTable):
    """Memory of what writes a database."""

    memory: int = option(512 << 20, "Maximum memory, e.g. 512M or 2G.", ByteSize())


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ListTable(CommandTable):
    """A list of identifiers."""

    ids: str | None = option(
        None,
        "File with one identifier per line; may be compressed; # starts a comment line; - reads stdin.",
        FileName(),
        unset="none",
        others="entry-batch id-file list-file f",
    )
