"""``swsearch db fetch``: entries of a database as FASTA."""

# no postponed annotations: the kinds of the options follow from them
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swsearch.cli.console import command
from swsearch.cli.database_tables import DatabaseArgument, IdentifiersArgument, ListTable
from swsearch.cli.parameters import command_rows, takes
from swsearch.cli.tables import OneOutputTable
from swsearch.errors import InputError, printable, shown
from swsearch.options.row import option
from swsearch.output_files import check_spared, open_outputs

if TYPE_CHECKING:
    import numpy as np

    from swsearch.blocks import IntArray
    from swsearch.db import Database

MOST_NAMED = 20
"""Most missing identifiers that a message names."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FetchTable(ListTable):
    """What is fetched from a database."""

    all: bool = option(False, "All entries, in input order.")
    range: str | None = option(
        None,
        "Only these residues of each entry, counted from 1: 10-80, or 10- up to the end.",
        unset="all",
        metavar="FROM-TO",
    )


@command
@takes(command_rows(FetchTable, OneOutputTable, names="ids all range output"))
def db_fetch(database: DatabaseArgument, identifiers: IdentifiersArgument = None, **given: Any) -> None:
    """Write entries of a database as FASTA, unchanged. Exits with code 1 if one is not found."""
    from swsearch.db import Database
    from swsearch.db.entries import ResidueRange, fasta_of
    from swsearch.db.lists import read_list

    asked, output = FetchTable.of(given), OneOutputTable.of(given).output
    if asked.all == bool(identifiers or asked.ids):
        both = "both" if asked.all else "neither"
        raise InputError(f"ID..., --ids, --all: got {both}, expected identifiers, a list of them, or --all")
    residues = None if asked.range is None else ResidueRange.parse(asked.range)
    named = [*(identifiers or []), *(read_list(asked.ids, "ids") if asked.ids is not None else [])]
    with ExitStack() as stack:
        opened = stack.enter_context(Database.open(database))
        check_spared([output], [database, asked.ids, *(each.path for each in opened.volumes)])
        subjects, missing = _chosen(opened, None if asked.all else named)
        short = [] if residues is None else _too_short(opened, subjects, residues)
        (stream,) = stack.enter_context(open_outputs([(output, True)]))
        texts = fasta_of(opened, subjects, residues)
        for text in _for_terminal(texts) if stream.isatty() else texts:
            stream.write(text)
    problems = []
    if missing:
        problems.append(f"no entry named {_some(missing)}; expected an identifier")
    if short:
        problems.append(f"no residues in --range {asked.range}: {_some(short)}")
    if problems:
        raise InputError(f"{database}: {'; '.join(problems)}")


def _for_terminal(texts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield FASTA with a blank for each character of a header that would act on a terminal."""
    decoder = getincrementaldecoder("utf-8")("replace")
    for text in texts:
        yield printable(decoder.decode(text), " ", keep="\n").encode("utf-8")


def _chosen(database: "Database", names: list[str] | None) -> "tuple[IntArray, list[str]]":
    """Return the ordinals of the entries that names lead to, each once, and the names that lead to none."""
    import numpy as np

    if names is None:
        return np.arange(database.n_subjects), []
    asked, subjects = database.places_of(names)
    known = np.zeros(len(names), dtype=bool)
    known[asked] = True
    _, first = np.unique(subjects, return_index=True)
    return subjects[np.sort(first)], [names[place] for place in np.flatnonzero(~known).tolist()]


def _too_short(database: "Database", subjects: "np.ndarray", residues: tuple[int, int | None]) -> list[str]:
    """Return the identifiers of entries that end before a range begins."""
    lengths = database.lengths_of(subjects)
    return [database.identifier(each) for each in subjects[lengths <= residues[0]].tolist()]


def _some(names: list[str]) -> str:
    """Return names as a message has them."""
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(map(shown, names[:MOST_NAMED])) + more
