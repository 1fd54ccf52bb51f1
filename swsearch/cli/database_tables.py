"""Arguments and options that several commands of ``swsearch db`` have."""

# no postponed annotations: the kinds of the options follow from them
from dataclasses import dataclass
from typing import Annotated

import typer

from swsearch.cli.tables import CommandTable, FileName
from swsearch.options.kinds import ByteSize
from swsearch.options.row import REQUIRED, option

DatabaseArgument = Annotated[
    str, typer.Argument(metavar="DB.h5", help="A database that db build made, or the manifest of one in volumes.")
]
FileArgument = Annotated[str, typer.Argument(metavar="DB.h5", help="A database that db build made, in one file.")]
IdentifiersArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID...]", help="Identifiers, or other names such as accessions; all entries of each."),
]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MemoryTable(CommandTable):
    """Memory of what writes a database."""

    memory: int = option(512 << 20, "Memory to use, such as 512M or 2G.", ByteSize())


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class VolumeTable(MemoryTable):
    """A new database, or its volumes."""

    output: str = option(
        REQUIRED,
        "The database file to write, or the manifest.",
        metavar="DB.h5",
        spellings="--output -o",
        others="out db d outfile database",
    )
    volume_size: int | None = option(
        None,
        "Most bytes of a file, such as 8G: volumes DB.000.h5, DB.001.h5 and so on are written beside --output, which "
        "becomes a small manifest, DB.json, that stands for all of them.",
        ByteSize(),
        unset="no volumes",
        others="max-file-sz",
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TaxonTable(MemoryTable):
    """Taxa of sequences that are added to a database."""

    taxids: str | None = option(
        None,
        "Which taxa the sequences are of: a file of accessions and taxids, in two columns or in the four of NCBI's "
        "prot.accession2taxid.gz; or header, where headers say it (OX=9606, TaxID=9606).",
        unset="not known",
        metavar="FILE|header",
    )
    taxonomy: str | None = option(
        None,
        "NCBI's taxonomy, of which the database keeps what it needs: a folder with nodes.dmp and names.dmp, or "
        "taxdump.tar.gz.",
        unset="none: taxa have no names, and nothing stands below them",
        metavar="FOLDER",
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ListTable(CommandTable):
    """A list of identifiers."""

    ids: str | None = option(
        None,
        "A list, an identifier a line, plain or compressed; lines that begin with # are comments; - is stdin.",
        FileName(),
        unset="none",
        others="entry-batch id-file list-file f",
    )
