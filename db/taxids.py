"""Which taxa the subjects of a database are of: from their headers, or from a file that says it for accessions."""

from __future__ import annotations

import os
import re
import warnings
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swsearch.blocks import IntArray
from swsearch.db.fasta import split_header
from swsearch.db.inputs import Input
from swsearch.db.numbers import MIB, NUMBERS_AT_ONCE, NumberFile, NumberSequence, run_counts
from swsearch.db.spool import ExtraPart, Spool
from swsearch.db.taxdump import DumpFiles, read_taxonomy
from swsearch.db.taxonomy import MOST_TAXID, TaxidArray, Taxonomy
from swsearch.errors import InputError, OptionError, SwsearchWarning, shown

FROM_HEADERS = "header"
"""What is given in place of a file where headers say it, as UniProt's do."""

IN_HEADERS = re.compile(rb"(?:(?<=[ \t])|^)(?:OX|TaxID)=([0-9]{1,10})(?![0-9A-Za-z])")
"""How UniProtKB's headers (OX=9606) and UniRef's (TaxID=9606) say a taxid."""

FILE_BYTES = 4 * MIB
"""Bytes of a file of accessions that are looked at together."""

COLUMN_NAMES = b"accession"
"""How the line begins with which NCBI's files say what their columns are."""

DOTTED_VERSION = re.compile(rb"\.[0-9]+$")
"""The version of an accession."""

ACCESSION_COLUMNS = {2: "accession and taxid", 4: "accession, accession.version, taxid and gi"}
"""What columns a file of accessions may have."""

EXPECTED_FILE = f"expected lines of {ACCESSION_COLUMNS[2]}, or of {ACCESSION_COLUMNS[4]}"

NAMED_TAXIDS = 3
"""Most taxids that a message names."""

SUBJECT_HEADERS = 1 << 15
"""Headers that are read together."""


class SubjectTaxids:
    """The taxids of subjects on their way into a database, in temporary files, and the taxonomy that they are of.

    Parameters
    ----------
    owners, taxids : NumberSequence
        The record that each taxid is of, ascending, and the taxid, ascending within a record.
    records : (int, int)
        The first record, and the one after the last.
    taxonomy : Taxonomy
        What is stored with them.
    """

    name = "taxonomy"

    def __init__(
        self, owners: NumberSequence, taxids: NumberSequence, records: tuple[int, int], taxonomy: Taxonomy
    ) -> None:
        self._owners, self._taxids, self._records, self.taxonomy = owners, taxids, records, taxonomy
        self._first, self._last = (_place_of(owners, record) for record in records)

    def __len__(self) -> int:
        return self._last - self._first

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each dataset."""
        tree = self.taxonomy
        return {
            "taxid_offsets": (self._records[1] - self._records[0] + 1,),
            "taxids": (len(self),),
            "taxa": (len(tree.taxa),),
            "taxon_parents": (len(tree.taxa),),
            "taxon_names": (len(tree.names),),
            "merged_taxids": (len(tree.merged),),
            "merged_into": (len(tree.merged),),
            "known_taxids": (len(tree.known),),
        }

    def pieces(self) -> dict[str, Iterator[npt.NDArray[Any]]]:
        """Return what each dataset holds, some at a time; each piece of shape (n,)."""
        tree = self.taxonomy
        return {
            "taxid_offsets": self._offsets(),
            "taxids": self._all_taxids(),
            "taxa": iter([tree.taxa]),
            "taxon_parents": iter([tree.parents]),
            "taxon_names": iter([np.frombuffer(tree.names, dtype=np.uint8)]),
            "merged_taxids": iter([tree.merged]),
            "merged_into": iter([tree.merged_into]),
            "known_taxids": iter([np.frombuffer(tree.known, dtype=np.uint8)]),
        }

    def _offsets(self) -> Iterator[IntArray]:
        begin, end = self._records
        owners, total = _Part(self._owners, self._first, self._last), 0
        yield np.zeros(1, dtype=np.int64)
        for counts in run_counts(owners, begin, end - begin):
            sums = np.cumsum(counts) + total
            total = int(sums[-1])
            yield sums

    def _all_taxids(self) -> Iterator[npt.NDArray[Any]]:
        for start in range(self._first, self._last, NUMBERS_AT_ONCE):
            yield self._taxids.read(start, min(start + NUMBERS_AT_ONCE, self._last))

    def of(self, records: tuple[int, int]) -> SubjectTaxids:
        """Return those of a run of the records; the taxonomy stays whole."""
        return SubjectTaxids(self._owners, self._taxids, records, self.taxonomy)


class _Part:
    """Some numbers of a sequence."""

    def __init__(self, numbers: NumberSequence, first: int, last: int) -> None:
        self._numbers, self._first, self._last = numbers, first, last

    def __len__(self) -> int:
        return self._last - self._first

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        return self._numbers.read(self._first + start, self._first + stop)

    def pieces(self) -> Iterator[npt.NDArray[Any]]:
        yield self.read(0, len(self))

    def close(self) -> None:
        """Do nothing: others read the rest."""


def _place_of(owners: NumberSequence, record: int) -> int:
    """Return how many of some ascending numbers are less than one."""
    low, high = 0, len(owners)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if int(owners.read(middle, middle + 1)[0]) < record else (low, middle)
    return low


class TaxonSources(NamedTuple):
    """What says which taxa records are of, and what stands above these."""

    taxids: str
    """A file, or `FROM_HEADERS`."""
    taxonomy: str | None
    """A folder or a tar file."""


def check_taxa(taxids: Any, taxonomy: Any) -> TaxonSources | None:
    """Return what to read taxa from, None for nothing; what is missing is said before the work begins.

    Raises
    ------
    InputError
        If there is no such file, or a taxonomy without taxids.
    """
    for name, value in (("taxids", taxids), ("taxonomy", taxonomy)):
        if value is not None and not isinstance(value, (str, os.PathLike)):
            raise OptionError(name, value, "the name of a file or a folder")
    if taxids is None:
        if taxonomy is not None:
            raise InputError(f"taxonomy: got no taxids, expected both; give taxids a file, or {FROM_HEADERS!r}")
        return None
    source = os.fsdecode(taxids)
    if source != FROM_HEADERS:
        Input(source).close()
    if taxonomy is not None:
        DumpFiles(taxonomy).check()
    return TaxonSources(source, None if taxonomy is None else os.fsdecode(taxonomy))


def take_taxa(spool: Spool, sources: TaxonSources | None, there: Taxonomy | None = None) -> None:
    """Find which taxa the records of a spool are of, and keep it with them; no record can be added after that.

    Where the sources have no taxonomy, taxids are held against that of the database that the records come to
    (``there``), if it has one.

    Warns
    -----
    SwsearchWarning
        Of records without a taxid, and of taxids that the taxonomy lacks.
    """
    if sources is None:
        return
    spool.finish()
    owners, numbers = spool.hold(NumberFile(spool.folder, "<i8")), spool.hold(NumberFile(spool.folder, "<i4"))
    kinds = np.empty(0, dtype=np.int32)
    filled = 0
    for of, taxa in _in_headers(spool) if sources.taxids == FROM_HEADERS else _in_file(spool, sources.taxids):
        owners.write(of)
        numbers.write(taxa)
        kinds = np.union1d(kinds, taxa).astype(np.int32)
        filled += len(np.unique(of))
    tree = Taxonomy.empty() if sources.taxonomy is None else read_taxonomy(sources.taxonomy, kinds)
    add_part(spool, SubjectTaxids(owners, numbers, (0, spool.n_subjects), tree))
    held = (there or tree, "the database's") if sources.taxonomy is None else (tree, sources.taxonomy)
    for note in _notes(filled, spool.n_subjects, kinds, *held, sources.taxids):
        warnings.warn(note, SwsearchWarning, stacklevel=3)


def add_part(spool: Spool, part: ExtraPart) -> None:
    """Give a spool an optional part of the database."""
    spool.extras.append(part)
    spool.extras.sort(key=lambda each: each.name)


def without_taxa(spool: Spool) -> None:
    """Keep with the records of a spool that nothing is known of their taxa, as a database with taxa asks for."""
    spool.finish()
    owners, numbers = spool.hold(NumberFile(spool.folder, "<i8")), spool.hold(NumberFile(spool.folder, "<i4"))
    add_part(spool, SubjectTaxids(owners, numbers, (0, spool.n_subjects), Taxonomy.empty()))


def _notes(filled: int, n_subjects: int, kinds: TaxidArray, tree: Taxonomy, name: str, source: str) -> Iterator[str]:
    """Say how many records have no taxid, and which taxids are not in the taxonomy of this name."""
    if filled < n_subjects:
        where = "their header" if source == FROM_HEADERS else source
        yield f"taxids: {n_subjects - filled:,} of {n_subjects:,} records have no taxid in {where}"
    if not len(tree):
        return
    states = [(taxid, tree.state(taxid)) for taxid in kinds.tolist()]
    for state, text, remedy in (
        ("deleted", "deleted from", ""), ("unknown", "not in", ""),
        ("elsewhere", "without a name in", "; give --taxonomy"),
    ):  # fmt: skip
        lost = [str(taxid) for taxid, each in states if each == state]
        if lost:
            shown_ones = ", ".join(lost[:NAMED_TAXIDS]) + (", ..." if len(lost) > NAMED_TAXIDS else "")
            yield f"taxonomy: {len(lost):,} of {len(kinds):,} taxids are {text} {name}: {shown_ones}{remedy}"


def _headers(spool: Spool) -> Iterator[tuple[int, bytes, list[int]]]:
    """Yield the headers of some records together: the first, the headers one after the other, and their offsets."""
    spool.headers.seek(0)
    for first in range(0, spool.n_subjects, SUBJECT_HEADERS):
        lengths = spool.header_lengths.read(first, min(first + SUBJECT_HEADERS, spool.n_subjects))
        offsets = [0, *np.cumsum(lengths, dtype=np.int64).tolist()]
        yield first, spool.headers.read(offsets[-1]), offsets


def _in_headers(spool: Spool) -> Iterator[tuple[IntArray, TaxidArray]]:
    """Yield the taxids of records that their headers say: the records, ascending, and the taxids."""
    for first, pool, offsets in _headers(spool):
        pairs = [
            (first + place, taxid)
            for place, (begin, end) in enumerate(pairwise(offsets))
            for taxid in header_taxids(pool[begin:end])
        ]
        if pairs:
            both = np.array(pairs, dtype=np.int64)
            yield both[:, 0], both[:, 1].astype(np.int32)


def header_taxids(header: bytes) -> list[int]:
    """Return the taxids that a header line says, ascending, each once."""
    if b"OX=" not in header and b"TaxID=" not in header:
        return []
    return sorted({taxid for each in IN_HEADERS.findall(header) if 1 <= (taxid := int(each)) <= MOST_TAXID})


def names_of(header: bytes) -> list[bytes]:
    """Return the names of a header line, each once: identifiers, accessions with and without version, entry names."""
    found: dict[bytes, None] = {}
    for entry in header.split(b"\x01"):
        identifier = split_header(entry)[0]
        names = [identifier, *(part for part in identifier.split(b"|")[1:] if part)]
        found |= dict.fromkeys(name for name in [*names, *(DOTTED_VERSION.sub(b"", name) for name in names)] if name)
    return list(found)


class _Names:
    """The names that records are found by, as sums of 96 bits: 20 bytes for each name."""

    def __init__(self, spool: Spool) -> None:
        parts = []
        for first, pool, offsets in _headers(spool):
            names, owners = [], []
            for place, (begin, end) in enumerate(pairwise(offsets)):
                of_one = names_of(pool[begin:end])
                names += of_one
                owners += [first + place] * len(of_one)
            sums = np.fromiter(map(hash, names), np.int64, len(names))
            checks = np.fromiter(map(zlib.crc32, names), np.uint32, len(names))
            parts.append((sums, checks, np.array(owners, dtype=np.int64)))
        sums, self._checks, self._owners = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(sums, kind="stable")
        self._sums, self._checks, self._owners = sums[order], self._checks[order], self._owners[order]

    def find(self, names: list[bytes]) -> tuple[IntArray, IntArray]:
        """Return which of some names are names of a record, and that record; one may have several."""
        sums = np.fromiter(map(hash, names), np.int64, len(names))
        begins = np.searchsorted(self._sums, sums)
        near = self._sums[np.minimum(begins, len(self._sums) - 1)] == sums
        which = np.flatnonzero(near)
        begins = begins[which]
        counts = np.searchsorted(self._sums, sums[which], side="right") - begins
        of = np.repeat(which, counts)
        places = np.repeat(begins - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        checks = np.fromiter((zlib.crc32(names[place]) for place in of.tolist()), np.uint32, len(of))
        right = self._checks[places] == checks
        return of[right], self._owners[places[right]]


def _in_file(spool: Spool, path: str) -> Iterator[tuple[IntArray, TaxidArray]]:
    """Yield the taxids of records that a file says, once: the records, ascending, and the taxids."""
    names = _Names(spool)
    found: list[IntArray] = []
    for block in _blocks_of(path):
        for accessions in block.accessions():
            which, owners = names.find(accessions)
            if len(which):
                taxa = np.array([block.taxid(place) for place in which.tolist()], dtype=np.int64)
                found.append(np.stack([owners, taxa], axis=1)[taxa > 0])
    if found:
        both = np.unique(np.concatenate(found), axis=0)
        yield both[:, 0], both[:, 1].astype(np.int32)


class _Block:
    """Some lines of a file of accessions and their taxids.

    Parameters
    ----------
    name : str
        The file, for messages.
    numbers : sequence of int
        The number of each line.
    lines : list of bytes
        The lines; none is blank.
    width : int
        Columns: 2, or 4 as NCBI's files have.
    """

    def __init__(self, name: str, numbers: Sequence[int], lines: list[bytes], width: int) -> None:
        self._name, self._numbers, self._lines, self._width = name, numbers, lines, width
        self._words = b"\n".join(lines).split()
        heads = self._words[::width]
        if len(self._words) != width * len(lines) or not all(map(bytes.startswith, lines, heads)):
            for place, line in enumerate(lines):
                if len(line.split()) != width:
                    raise self._wrong(place, f"expected {width} columns: {ACCESSION_COLUMNS[width]}")

    def _wrong(self, place: int, problem: str) -> InputError:
        got = shown(self._lines[place][:60].decode("utf-8", "replace"))
        return InputError(f"taxids: {self._name}, line {self._numbers[place]:,}: got {got}, {problem}")

    def accessions(self) -> Iterator[list[bytes]]:
        """Yield the accession of each line, as it stands there; and where it has a version, without that."""
        words = self._words[:: self._width]
        yield words
        if self._width == 2 and any(b"." in word for word in words):  # the first of four columns has none
            yield [DOTTED_VERSION.sub(b"", word) if b"." in word else b"" for word in words]

    def taxid(self, place: int) -> int:
        """Return the taxid of a line; 0 says that there is none."""
        word = self._words[place * self._width + self._width // 2]
        if not word.isdigit() or int(word[:20]) > MOST_TAXID:
            raise self._wrong(
                place, f"expected a taxid, a number up to {MOST_TAXID:,}, in column {self._width // 2 + 1}"
            )
        return int(word)


def _blocks_of(path: str) -> Iterator[_Block]:
    """Read a file, some lines at a time; blank ones are left out, and one that names the columns."""
    with Input(path) as file:
        width = 0
        for first, every in _lines_of(file):
            lines: list[bytes] = every
            numbers: Sequence[int] = range(first, first + len(every))
            if not all(map(bytes.strip, every)):
                numbers = [first + place for place, line in enumerate(every) if line.strip()]
                lines = [line for line in every if line.strip()]
            if lines and not width:
                width = _width_of(lines[0], file.name)
                if lines[0].startswith(COLUMN_NAMES):
                    lines, numbers = lines[1:], numbers[1:]
            if lines:
                yield _Block(file.name, numbers, lines, width)
        if not width:
            raise InputError(f"taxids: {file.name}: is empty; {EXPECTED_FILE}")


def _lines_of(file: Input) -> Iterator[tuple[int, list[bytes]]]:
    """Yield lines some at a time, each time with the number of the first."""
    buffer, rest, number = bytearray(FILE_BYTES), b"", 1
    while n_bytes := file.read_into(memoryview(buffer)):
        *lines, rest = (rest + buffer[:n_bytes]).split(b"\n")
        if len(rest) > FILE_BYTES:
            raise InputError(f"taxids: {file.name}, line {number + len(lines):,}: is too long; {EXPECTED_FILE}")
        yield number, lines
        number += len(lines)
    yield number, [rest]


def _width_of(line: bytes, name: str) -> int:
    """Return how many columns a file has, by its first line."""
    width = len(line.split())
    if width not in ACCESSION_COLUMNS:
        got = shown(line[:60].decode("utf-8", "replace"))
        raise InputError(f"taxids: {name}: got the first line {got}, {EXPECTED_FILE}")
    return width
