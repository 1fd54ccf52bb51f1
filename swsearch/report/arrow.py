"""Typed tables for programs: Parquet, and Arrow's IPC file (Feather).

They need pyarrow, the extra ``arrow``.
"""

from __future__ import annotations

import io
import json
from abc import abstractmethod
from typing import IO, TYPE_CHECKING, Any

from swsearch.errors import InputError
from swsearch.report import headers
from swsearch.report.base import BinaryWriter, unknown_column
from swsearch.results import SearchResult
from swsearch.results.fields import HIT_FIELDS, TEXT, Field, fields_in
from swsearch.results.hit_batches import aligned_batches, hit_batches
from swsearch.results.result import ColumnValues, arrow_array, join_columns
from swsearch.run_info import RunInfo

if TYPE_CHECKING:
    import pyarrow

ROWS_PER_GROUP = 65_536
"""Rows that are written at once; readers can read the groups of a larger file one by one."""

METADATA_KEY = "swsearch"
"""Key of `swsearch.report.headers.provenance` in the schema's metadata, as JSON."""

ARROW_COLUMNS: dict[str, Field] = {
    field.name: field for field in HIT_FIELDS.values() if not {"typed", "asked"}.isdisjoint(field.shown_in.split())
}
"""Every column by name."""


class ArrowWriter(BinaryWriter):
    """Base of the formats with types: one row per alignment, coordinates 0-based half-open.

    Missing numbers (bit scores, E-values, z-scores) are null. Headers are as they were, merged ones (0x01) included;
    bytes that were not UTF-8 are U+FFFD. The schema's metadata has the run's provenance, as JSON under ``swsearch``.
    If no column needs an alignment, none is found, and a hit has one row.

    Parameters
    ----------
    stream : file object
        Where to write bytes; neither flushed nor closed.
    fields : list of Field
        What to write; if it is empty, all fields that are not for requests only.
    """

    has_columns = True
    package = "pyarrow"

    def __init__(self, stream: IO[Any], fields: list[Field]) -> None:
        check_pyarrow("outfmt parquet and arrow", "use another --outfmt")
        super().__init__(stream)
        self._sink = _CountingStream(stream)
        self._fields = fields
        self.needs_alignments = any(field.needs_alignment for field in fields or ARROW_COLUMNS.values())
        self._n_rows = 0
        self._queries = 0
        self._file: Any = None

    @classmethod
    def create(cls, stream: IO[Any], columns: list[str], outfmt: str) -> ArrowWriter:
        """Make a writer; raise `OptionError` if ``--outfmt`` names a column that does not exist."""
        for name in columns:
            if name not in ARROW_COLUMNS:
                raise unknown_column(name, ARROW_COLUMNS, outfmt)
        return cls(stream, [ARROW_COLUMNS[name] for name in dict.fromkeys(columns)])

    def begin(self, run: RunInfo) -> None:
        """Write the schema."""
        import pyarrow

        self._fields = self._fields or fields_in("typed", run.program)
        self._parts: list[list[ColumnValues]] = [[] for _ in self._fields]
        columns = [pyarrow.field(field.name, getattr(pyarrow, field.type)()) for field in self._fields]
        metadata = json.dumps(headers.provenance(run), ensure_ascii=True, sort_keys=True)
        self._schema = pyarrow.schema(columns, metadata={METADATA_KEY: metadata})
        self._file = self._open(self._schema)

    def write(self, result: SearchResult) -> None:
        """Keep the rows of one query, and write a group of rows when it is full."""
        for batch in aligned_batches(result) if self.needs_alignments else hit_batches(result):
            batch.query_index = self._queries
            for field, parts in zip(self._fields, self._parts, strict=True):
                values = field.line_values(batch)
                parts.append(headers.all_encodable(values) if field.type == TEXT else values)
            self._n_rows += len(batch)
            while self._n_rows >= ROWS_PER_GROUP:
                self._write_group(ROWS_PER_GROUP)
        self._queries += 1

    def end(self) -> None:
        """Write the last rows, and what closes the file."""
        if self._n_rows:
            self._write_group(self._n_rows)
        self._close()

    def discard(self) -> None:
        """Close pyarrow's writer, and ignore what it still writes."""
        self._sink.is_closing = True
        self._close()

    def _write_group(self, rows: int) -> None:
        """Write the first rows of those that are kept."""
        import pyarrow

        arrays = []
        for parts in self._parts:
            values = join_columns(parts)
            arrays.append(arrow_array(values[:rows]))
            parts[:] = [values[rows:]]
        self._n_rows -= rows
        self._file.write_batch(pyarrow.record_batch(arrays, schema=self._schema))

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    @abstractmethod
    def _open(self, schema: pyarrow.Schema) -> Any:
        """Return pyarrow's writer."""


class ParquetWriter(ArrowWriter):
    """Parquet, compressed with Zstandard."""

    def _open(self, schema: pyarrow.Schema) -> Any:
        from pyarrow import parquet

        return parquet.ParquetWriter(self._sink, schema, compression="zstd")


class ArrowFileWriter(ArrowWriter):
    """Arrow's IPC file, which is Feather version 2, compressed with LZ4 as Feather is."""

    def _open(self, schema: pyarrow.Schema) -> Any:
        from pyarrow import ipc

        return ipc.new_file(self._sink, schema, options=ipc.IpcWriteOptions(compression="lz4"))


def check_pyarrow(where: str, remedy: str) -> None:
    """Raise `InputError` if pyarrow cannot be imported."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"{where}: expected pyarrow, which cannot be imported ({error}); "
            f"pip install 'swsearch[arrow]', or {remedy}"
        ) from error


class _CountingStream(io.RawIOBase):
    """A stream that counts its position, since a pipe has none, and that ignores writes when it is closing.

    To close it leaves the stream below open.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._position = 0
        self.is_closing = False

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        if not self.is_closing:
            self._stream.write(data)
        self._position += size
        return size

    def tell(self) -> int:
        return self._position

    def writable(self) -> bool:
        return True
