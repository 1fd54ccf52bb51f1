"""Tables with types, for programs: Parquet, and Arrow's IPC file (Feather). Takes pyarrow, the extra ``arrow``."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from swsearch.errors import InputError, OptionError
from swsearch.report import headers
from swsearch.report.base import BinaryWriter, did_you_mean
from swsearch.report.provenance import provenance
from swsearch.results import Hit, Hsp, SearchResult
from swsearch.run_info import RunInfo

if TYPE_CHECKING:
    import pyarrow

ROWS_TOGETHER = 65_536
"""Rows that are written together; a file that has more can be read in parts."""

METADATA_KEY = "swsearch"
"""Where the schema's metadata has what `swsearch.report.provenance` says, as JSON."""


class Place(NamedTuple):
    """Where an alignment stands: its query, and the numbers of query, hit and alignment, counted from 0."""

    result: SearchResult
    query: int
    hit: int
    hsp: int


@dataclass(frozen=True)
class TypedColumn:
    """A column of a table with types.

    Parameters
    ----------
    name : str
        As in `swsearch.results.SearchResult.to_columns`, where that has it.
    type : str
        Of `pyarrow`.
    value : callable
        Gives the value of a row.
    needs_alignment : bool
        Whether it takes the alignment to do so.
    """

    name: str
    type: str
    value: Callable[[Place, Hit, Any], Any]
    needs_alignment: bool = True


def _text(text: str) -> str:
    return headers.encodable(text)


ARROW_COLUMNS: dict[str, TypedColumn] = {
    column.name: column
    for column in (
        TypedColumn("query_index", "int64", lambda place, hit, hsp: place.query, False),
        TypedColumn("query_id", "string", lambda place, hit, hsp: _text(hit.query_id), False),
        TypedColumn(
            "query_description", "string", lambda place, hit, hsp: _text(place.result.query_description), False
        ),
        TypedColumn("query_length", "int64", lambda place, hit, hsp: hit.query_length, False),
        TypedColumn("hit_index", "int64", lambda place, hit, hsp: place.hit, False),
        TypedColumn("subject_id", "string", lambda place, hit, hsp: _text(hit.subject_id), False),
        TypedColumn("subject_description", "string", lambda place, hit, hsp: _text(hit.subject_description), False),
        TypedColumn("subject_index", "int64", lambda place, hit, hsp: hit.subject_index, False),
        TypedColumn("subject_length", "int64", lambda place, hit, hsp: hit.subject_length, False),
        TypedColumn("alignment_index", "int64", lambda place, hit, hsp: place.hsp),
        TypedColumn("score", "int64", lambda place, hit, hsp: hsp.score, False),
        TypedColumn("bit_score", "float64", lambda place, hit, hsp: hsp.bit_score, False),
        TypedColumn("evalue", "float64", lambda place, hit, hsp: hsp.evalue, False),
        TypedColumn("z_score", "float64", lambda place, hit, hsp: hsp.z_score, False),
        TypedColumn("evalue_published", "float64", lambda place, hit, hsp: hsp.evalue_published, False),
        TypedColumn("query_start", "int64", lambda place, hit, hsp: hsp.pair.query_start),
        TypedColumn("query_end", "int64", lambda place, hit, hsp: hsp.pair.query_end),
        TypedColumn("subject_start", "int64", lambda place, hit, hsp: hsp.pair.subject_start),
        TypedColumn("subject_end", "int64", lambda place, hit, hsp: hsp.pair.subject_end),
        TypedColumn("alignment_length", "int64", lambda place, hit, hsp: hsp.pair.length),
        TypedColumn("identities", "int64", lambda place, hit, hsp: hsp.pair.identities),
        TypedColumn("positives", "int64", lambda place, hit, hsp: hsp.pair.positives),
        TypedColumn("mismatches", "int64", lambda place, hit, hsp: hsp.pair.mismatches),
        TypedColumn("gaps", "int64", lambda place, hit, hsp: hsp.pair.gaps),
        TypedColumn("gap_openings", "int64", lambda place, hit, hsp: hsp.pair.gap_openings),
        TypedColumn("cigar", "string", lambda place, hit, hsp: hsp.pair.cigar_string),
        TypedColumn("query_row", "string", lambda place, hit, hsp: hsp.pair.query_row()),
        TypedColumn("subject_row", "string", lambda place, hit, hsp: hsp.pair.subject_row()),
    )
}
"""Every column by name."""

ASKED_FOR = ("query_row", "subject_row")
"""Columns that are not written unless they are asked for."""


class ArrowWriter(BinaryWriter):
    """Base of the formats with types: one row per alignment, coordinates 0-based half-open.

    Numbers that are not there (bit scores, E-values, z-scores) are null. Headers are as they were, merged ones (0x01)
    included; bytes that were not UTF-8 are U+FFFD. The schema's metadata has the run's provenance, as JSON under
    ``swsearch``. If no column that is asked for takes an alignment, none is found, and a hit has one row.

    Parameters
    ----------
    stream : file object
        Where to write bytes; neither flushed nor closed.
    columns : list of TypedColumn
        What to write.
    """

    def __init__(self, stream: IO[Any], columns: list[TypedColumn] | None = None) -> None:
        _check_pyarrow()
        super().__init__(stream)
        self._sink = _Counting(stream)
        self._columns = columns or [column for column in ARROW_COLUMNS.values() if column.name not in ASKED_FOR]
        self.needs_alignments = any(column.needs_alignment for column in self._columns)
        self._rows: list[tuple[Any, ...]] = []
        self._queries = 0
        self._schema: pyarrow.Schema = None
        self._file: Any = None

    @classmethod
    def create(cls, stream: IO[Any], columns: list[str], outfmt: str) -> ArrowWriter:
        """See `Writer.create`."""
        return cls(stream, _choose(columns, outfmt))

    def begin(self, run: RunInfo) -> None:
        """Write the schema."""
        import pyarrow

        fields = [pyarrow.field(column.name, getattr(pyarrow, column.type)()) for column in self._columns]
        said = json.dumps(provenance(run), ensure_ascii=True, sort_keys=True)
        self._schema = pyarrow.schema(fields, metadata={METADATA_KEY: said})
        self._file = self._open(self._schema)

    def write(self, result: SearchResult) -> None:
        """Take the rows of one query, and write a group of rows when it is full."""
        values = [column.value for column in self._columns]
        for number, hit in enumerate(result.hits):
            lines: Iterable[Hsp | Hit] = hit.hsps if self.needs_alignments else (hit,)
            for place, hsp in enumerate(lines):
                at = Place(result, self._queries, number, place)
                self._rows.append(tuple(value(at, hit, hsp) for value in values))
        self._queries += 1
        while len(self._rows) >= ROWS_TOGETHER:
            self._write_group(self._rows[:ROWS_TOGETHER])
            del self._rows[:ROWS_TOGETHER]

    def end(self) -> None:
        """Write the last rows, and what closes the file."""
        if self._rows:
            self._write_group(self._rows)
            self._rows = []
        self._close()

    def discard(self) -> None:
        """Close what pyarrow holds, and ignore what it still writes."""
        self._sink.deaf = True
        self._close()

    def _write_group(self, rows: list[tuple[Any, ...]]) -> None:
        import pyarrow

        arrays = [
            pyarrow.array(values, field.type)
            for values, field in zip(zip(*rows, strict=True), self._schema, strict=True)
        ]
        self._write(pyarrow.record_batch(arrays, schema=self._schema))

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    @abstractmethod
    def _open(self, schema: pyarrow.Schema) -> Any:
        """Return pyarrow's writer."""

    @abstractmethod
    def _write(self, batch: pyarrow.RecordBatch) -> None:
        """Write a group of rows."""


class ParquetWriter(ArrowWriter):
    """Parquet, compressed with Zstandard."""

    def _open(self, schema: pyarrow.Schema) -> Any:
        from pyarrow import parquet

        return parquet.ParquetWriter(self._sink, schema, compression="zstd")

    def _write(self, batch: pyarrow.RecordBatch) -> None:
        self._file.write_batch(batch, row_group_size=ROWS_TOGETHER)


class ArrowFileWriter(ArrowWriter):
    """Arrow's IPC file, which is Feather version 2, compressed with LZ4 as Feather is."""

    def _open(self, schema: pyarrow.Schema) -> Any:
        from pyarrow import ipc

        return ipc.new_file(self._sink, schema, options=ipc.IpcWriteOptions(compression="lz4"))

    def _write(self, batch: pyarrow.RecordBatch) -> None:
        self._file.write_batch(batch)


def _choose(names: list[str], outfmt: str) -> list[TypedColumn]:
    """Find columns by name; none at all means all but `ASKED_FOR`."""
    chosen: dict[str, TypedColumn] = {}
    for name in names:
        if name not in ARROW_COLUMNS:
            remedy = did_you_mean(name.lower(), ARROW_COLUMNS, 3)
            raise OptionError("outfmt", outfmt, f"columns out of {', '.join(ARROW_COLUMNS)}, not {name!r}", remedy)
        chosen.setdefault(name, ARROW_COLUMNS[name])
    return list(chosen.values())


def _check_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"outfmt parquet and arrow: expected pyarrow, which cannot be imported ({error}); "
            "pip install 'swsearch[arrow]', or use another --outfmt"
        ) from error


class _Counting:
    """A stream that counts its own place, since a pipe knows none, and that can be told to ignore what is written."""

    closed = False

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._place = 0
        self.deaf = False

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        if not self.deaf:
            self._stream.write(data)
        self._place += size
        return size

    def tell(self) -> int:
        return self._place

    def flush(self) -> None:
        """Nothing: whoever opened the stream flushes it."""

    def close(self) -> None:
        """Nothing: whoever opened the stream closes it."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False
