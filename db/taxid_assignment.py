"""Taxids of records, from their headers or from a file of accessions."""

from __future__ import annotations

import os
import re
import warnings
import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swsearch.blocks import IntArray
from swsearch.db.arrays import Strips, ranges
from swsearch.db.container import SegmentSink
from swsearch.db.fasta import split_header
from swsearch.db.input_stream import Input, stream_identity
from swsearch.db.records import SegmentInput
from swsearch.db.segment_writer import write_taxids
from swsearch.db.taxdump import TaxdumpFiles, read_taxonomy
from swsearch.db.taxonomy import MAX_TAXID, TaxidArray, Taxonomy
from swsearch.errors import InputError, OptionError, SwsearchWarning, format_value

FROM_HEADERS = "header"
"""Value that stands for taxids in headers, e.g. UniProt's."""

TAXID_KEYS = (b"OX=", b"TaxID=")
"""Keys of taxids in headers of UniProtKB (OX=9606) and UniRef (TaxID=9606)."""

_TAXID_PATTERN = re.compile(rb"=(?:(?<=[ \t\n]OX=)|(?<=[ \t\n]TaxID=))([0-9]{1,10})(?![0-9A-Za-z])")
_VERSION = re.compile(rb"\.[0-9]+$")

FILE_BYTES = 1 << 22
"""Bytes of a file of accessions that are looked at together."""

COLUMN_NAMES = b"accession"
"""Beginning of the header line of NCBI's files."""

ACCESSION_COLUMNS = {2: "accession and taxid", 4: "accession, accession.version, taxid and gi"}
"""Columns of a file of accessions, by their number."""

EXPECTED_FILE = f"expected lines of {ACCESSION_COLUMNS[2]}, or of {ACCESSION_COLUMNS[4]}"

NAMED_TAXIDS = 3
"""Maximum number of taxids in a message."""


class TaxonSources(NamedTuple):
    """Files with taxids and taxonomy."""

    taxids: str
    """A file, or `FROM_HEADERS`."""
    taxonomy: str | None
    """A folder or a tar file."""


def check_taxa(taxids: Any, taxonomy: Any) -> TaxonSources | None:
    """Return the sources of taxa, None without any; check that they exist before the work begins."""
    for name, value in (("taxids", taxids), ("taxonomy", taxonomy)):
        if value is not None and not isinstance(value, (str, os.PathLike)):
            raise OptionError(name, value, "the name of a file or a folder")
    if taxids is None:
        if taxonomy is not None:
            raise InputError(f"taxonomy: got no taxids, expected both; give taxids a file, or {FROM_HEADERS!r}")
        return None
    source = os.fsdecode(taxids)
    if source not in (FROM_HEADERS, "-") and stream_identity(source) == (
        0,
        0,
    ):  # a look would take bytes from a stream
        Input(source).close()
    if taxonomy is not None:
        TaxdumpFiles(taxonomy).close()
    return TaxonSources(source, None if taxonomy is None else os.fsdecode(taxonomy))


def taxid_warnings(
    sources: TaxonSources, n_records: int, n_with_taxid: int, taxids: TaxidArray, taxonomy: Taxonomy
) -> Iterator[str]:
    """Yield warnings about records without a taxid, and about taxids that a taxonomy lacks, unless it is empty.

    ``taxids`` are those of the records, ascending, each once, shape (n,), int32.
    """
    if n_with_taxid < n_records:
        where = "their header" if sources.taxids == FROM_HEADERS else sources.taxids
        yield f"taxids: {n_records - n_with_taxid:,} of {n_records:,} records have no taxid in {where}"
    lost = [taxid for taxid in taxids.tolist() if not taxonomy.has(taxid)] if len(taxonomy) else []
    if lost:
        named = ", ".join(map(str, lost[:NAMED_TAXIDS])) + (", ..." if len(lost) > NAMED_TAXIDS else "")
        where, remedy = (sources.taxonomy, "") if sources.taxonomy else ("the database's", "; give --taxonomy")
        yield f"taxonomy: {len(lost):,} of {len(taxids):,} taxids are not in {where}: {named}{remedy}"


def taxid_in_header(header: str) -> int:
    """Return the first taxid of a header, e.g. 9606 of ``P69905 Hemoglobin OX=9606``; 0 where there is none."""
    found = _TAXID_PATTERN.search(header.encode("utf-8", "replace"))
    return 0 if found is None else int(found[1])


def taxids_in_headers(headers: Strips) -> Strips:
    """Return the taxids that header lines say: int32, ascending within a record, each once."""
    pool, matches = headers.data.tobytes(), []
    if any(key in pool for key in TAXID_KEYS):
        lines = np.insert(headers.data, headers.offsets[:-1], ord("\n")).tobytes()
        matches = [(each.start(), int(each[1])) for each in _TAXID_PATTERN.finditer(lines)]
    places, taxids = np.array(matches, dtype=np.int64).reshape(-1, 2).T
    begins = headers.offsets[:-1] + np.arange(len(headers))
    owners, taxids_found = _pairs(np.searchsorted(begins, places) - 1, taxids)
    return Strips.from_counts(taxids_found, np.bincount(owners, minlength=len(headers)))


def _pairs(owners: IntArray, taxids: IntArray) -> tuple[IntArray, TaxidArray]:
    """Return records, ascending, and their taxids, ascending within a record; each pair once, and no wrong taxid."""
    fits = (taxids >= 1) & (taxids <= MAX_TAXID)
    pairs = np.unique(owners[fits] << 32 | taxids[fits])
    return pairs >> 32, (pairs & MAX_TAXID).astype(np.int32)


class TaxidFile:
    """A file of accessions and taxids, read once after all records; it takes 20 bytes for each name of a record."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._parts: list[tuple[npt.NDArray[Any], ...]] = []

    def add(self, headers: Strips, first: int) -> None:
        """Keep the names of records, of which the first is number ``first``."""
        pool, bounds = headers.data.tobytes(), headers.offsets.tolist()
        named = [searched_names(pool[begin:end]) for begin, end in pairwise(bounds)]
        names = [name for each in named for name in each]
        owners = np.repeat(np.arange(first, first + len(named)), [*map(len, named)])
        self._parts.append((_hashes(names), _checksums(names), owners))

    def find_taxids(self) -> tuple[IntArray, TaxidArray]:
        """Return records, ascending, and their taxids in the file, ascending within a record; both of shape (n,)."""
        hashes, checksums, owners = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        self._parts.clear()
        order = np.argsort(hashes, kind="stable")
        hashes, checksums, owners = hashes[order], checksums[order], owners[order]
        pairs = [np.empty((2, 0), dtype=np.int64)]
        for block in _blocks_of(self._path):
            for names in block.accessions():
                hashes_of_names = _hashes(names)
                begins = np.searchsorted(hashes[:-1], hashes_of_names)
                which = np.flatnonzero(hashes[begins] == hashes_of_names)
                counts = np.searchsorted(hashes, hashes_of_names[which], side="right") - begins[which]
                places, lines = ranges(begins[which], counts), np.repeat(which, counts)
                same = checksums[places] == _checksums([names[line] for line in lines.tolist()])
                taxids = [block.taxid(line) for line in lines[same].tolist()]
                pairs.append(np.array([owners[places[same]], taxids], dtype=np.int64))
        return _pairs(*np.concatenate(pairs, axis=1))


def _hashes(names: list[bytes]) -> IntArray:
    return np.fromiter(map(hash, names), np.int64, len(names))


def _checksums(names: list[bytes]) -> npt.NDArray[np.uint32]:
    return np.fromiter(map(zlib.crc32, names), np.uint32, len(names))


def searched_names(header: bytes) -> list[bytes]:
    """Return the names of a header line, each once: identifiers, accessions with and without version, entry names."""
    names = []
    for entry in header.split(b"\x01"):
        identifier = split_header(entry)[0]
        names += [identifier, *identifier.split(b"|")[1:]]
    return [*filter(None, dict.fromkeys([*names, *(_VERSION.sub(b"", name) for name in names)]))]


class _Block:
    """Lines of a file of accessions and taxids, from line number ``first``; blank ones are left out.

    ``width`` is the number of columns: 2, or 4 as in NCBI's files.
    """

    def __init__(self, name: str, first: int, every: list[bytes], width: int) -> None:
        self._name, self._first, self._every, self._width = name, first, every, width
        self._lines = [*filter(bytes.strip, every)]
        self._words = b"\n".join(self._lines).split()
        heads = self._words[::width]
        if len(self._words) != width * len(self._lines) or not all(map(bytes.startswith, self._lines, heads)):
            for place, line in enumerate(self._lines):
                if len(line.split()) != width:
                    raise self._error(place, f"expected {width} columns: {ACCESSION_COLUMNS[width]}")

    def _error(self, place: int, problem: str) -> InputError:
        number = [number for number, line in enumerate(self._every, self._first) if line.strip()][place]
        return InputError(f"taxids: {self._name}, line {number:,}: got {_format_line(self._lines[place])}, {problem}")

    def accessions(self) -> Iterator[list[bytes]]:
        """Yield the accession of each line, as it stands there; and where it has a version, without that."""
        words = self._words[:: self._width]
        yield words
        if self._width == 2 and any(b"." in word for word in words):  # the first of four columns has none
            yield [_VERSION.sub(b"", word) if b"." in word else b"" for word in words]

    def taxid(self, place: int) -> int:
        """Return the taxid of a line; 0 says that there is none."""
        column = self._width // 2
        word = self._words[place * self._width + column]
        if not word.isdigit() or int(word[:20]) > MAX_TAXID:
            raise self._error(place, f"expected a taxid, a number up to {MAX_TAXID:,}, in column {column + 1}")
        return int(word)


def _blocks_of(path: str) -> Iterator[_Block]:
    """Read a file, some lines at a time; a line that names the columns is left out."""
    with Input(path) as file:
        width = 0
        for first, lines in _lines_of(file):
            if not width and (head := next(filter(bytes.strip, lines), b"")):
                width = len(head.split())
                if width not in ACCESSION_COLUMNS:
                    raise InputError(f"taxids: {file.name}: got the first line {_format_line(head)}, {EXPECTED_FILE}")
                if head.startswith(COLUMN_NAMES):
                    lines[lines.index(head)] = b""
            if width:
                yield _Block(file.name, first, lines, width)
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


def _format_line(line: bytes) -> str:
    return format_value(line[:60].decode("utf-8", "replace"))


class RecordTaxa:
    """Finds the taxids of records, and writes them with their taxonomy.

    ``sources`` is None if the records have taxids, or if none are known. ``taxonomy`` is written if the sources have
    none.
    """

    def __init__(self, sources: TaxonSources | None, taxonomy: Taxonomy | None = None) -> None:
        self._sources, self._taxonomy = sources, taxonomy or Taxonomy.empty()
        self._file = TaxidFile(sources.taxids) if sources and sources.taxids != FROM_HEADERS else None
        self._n = self._n_filled = 0
        self._kinds: TaxidArray = np.empty(0, dtype=np.int32)
        self.there = Taxonomy.empty()
        """Taxonomy of the database that the records are appended to."""

    def assign(self, records: SegmentInput) -> None:
        """Add taxids to records, as far as they are known now."""
        if self._file is not None:
            self._file.add(records.headers, self._n)
        elif self._sources is not None:
            records.parts["taxids"] = taxids_in_headers(records.headers)
            self._count(records.parts["taxids"])
        else:
            nothing = Strips(np.empty(0, dtype=np.int32), np.zeros(len(records) + 1, dtype=np.int64))
            records.parts.setdefault("taxids", nothing)
        self._n += len(records)

    def _count(self, taxids: Strips) -> None:
        self._kinds = np.union1d(self._kinds, taxids.data).astype(np.int32)
        self._n_filled += int((taxids.counts > 0).sum())

    def write(self, files: list[list[SegmentSink]]) -> None:
        """Write the taxids of a file and the taxonomy into the segments of files; warn about missing taxids."""
        if self._file is not None:
            owners, taxids = self._file.find_taxids()
            every = Strips.from_counts(taxids, np.bincount(owners, minlength=self._n))
            self._count(every)
            first = 0
            for sink in (sink for sinks in files for sink in sinks):
                last = first + int(sink.attributes["n_subjects"])
                write_taxids(sink, every.part(first, last))
                first = last
        tree, nothing = self._taxonomy, Taxonomy.empty()
        if self._sources is not None and self._sources.taxonomy is not None:
            tree = read_taxonomy(self._sources.taxonomy, self._kinds)
        for sinks in files:
            for sink in sinks:
                for name, values in (tree if sink is sinks[0] else nothing).arrays().items():
                    sink.put(name, values)
        if self._sources is not None:
            known_taxids = tree if self._sources.taxonomy is not None else self.there
            for note in taxid_warnings(self._sources, self._n, self._n_filled, self._kinds, known_taxids):
                warnings.warn(note, SwsearchWarning, stacklevel=4)
