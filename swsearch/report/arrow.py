"""Tables with types, for programs: Parquet, and Arrow's IPC file (Feather). Takes pyarrow, the extra ``arrow``."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from swsearch.blocks import FloatArray, IntArray
from swsearch.errors import InputError, OptionError
from swsearch.report import headers, taxa
from swsearch.report.base import BinaryWriter, did_you_mean
from swsearch.report.portions import aligned_portions, mismatches, portions
from swsearch.report.provenance import provenance
from swsearch.results import SearchResult
from swsearch.run_info import Program, RunInfo

if TYPE_CHECKING:
    import pyarrow

ROWS_TOGETHER = 65_536
"""Rows that are written together; a file that has more can be read in parts."""

METADATA_KEY = "swsearch"
"""Where the schema's metadata has what `swsearch.report.provenance` says, as JSON."""


Values = IntArray | FloatArray | list[str]
"""A column's part: integers, numbers that are NaN where they are null, or texts."""


class Place(NamedTuple):
    """What a column is made of: some lines of a result, and their query's number, counted from 0."""

    of: Any
    query: int


@dataclass(frozen=True)
class TypedColumn:
    """A column of a table with types.

    Parameters
    ----------
    name : str
        As in `swsearch.results.result.SearchResult.to_columns`, where that has it.
    type : str
        Of `pyarrow`.
    values : callable
        Gives the values of a `swsearch.report.portions.Portion`, one per line. One that needs alignments is given
        an `AlignedPortion`.
    needs_alignment : bool
        Whether it takes the alignment to do so.
    """

    name: str
    type: str
    values: Callable[[Place], Values]
    needs_alignment: bool = True


def _same(value: int, at: Place) -> IntArray:
    return np.full(len(at.of), value, dtype=np.int64)


def _same_text(text: str, at: Place) -> list[str]:
    return [headers.encodable(text)] * len(at.of)


def _of_hits(values: IntArray, at: Place) -> IntArray:
    found: IntArray = values[at.of.hit_of_line]
    return found


def _texts_of_hits(texts: list[str], at: Place) -> list[str]:
    found: list[str] = at.of.of_lines(headers.all_encodable(texts))
    return found


def _taxa_of_hits(of_taxon: str, at: Place) -> list[str]:
    found: list[str] = at.of.of_lines(taxa.all_texts(at.of, of_taxon))
    return found


ARROW_COLUMNS: dict[str, TypedColumn] = {
    column.name: column
    for column in (
        TypedColumn("query_index", "int64", lambda at: _same(at.query, at), False),
        TypedColumn("query_id", "string", lambda at: _same_text(at.of.result.query_id, at), False),
        TypedColumn("query_description", "string", lambda at: _same_text(at.of.result.query_description, at), False),
        TypedColumn("query_length", "int64", lambda at: _same(at.of.result.query_length, at), False),
        TypedColumn("hit_index", "int64", lambda at: at.of.hit_of_line + at.of.first, False),
        TypedColumn("subject_id", "string", lambda at: _texts_of_hits(at.of.identifiers, at), False),
        TypedColumn("subject_description", "string", lambda at: _texts_of_hits(at.of.descriptions, at), False),
        TypedColumn("subject_taxids", "string", lambda at: at.of.of_lines(taxa.all_texts(at.of, "taxid")), False),
        TypedColumn(
            "subject_scientific_names",
            "string",
            lambda at: at.of.of_lines(taxa.all_texts(at.of, "scientific")),
            False,
        ),
        TypedColumn("subject_index", "int64", lambda at: _of_hits(at.of.subjects, at), False),
        TypedColumn("subject_length", "int64", lambda at: _of_hits(at.of.subject_lengths, at), False),
        TypedColumn("iteration", "int64", lambda at: _of_hits(at.of.iterations, at), False),
        TypedColumn("alignment_index", "int64", lambda at: at.of.places),
        TypedColumn("score", "int64", lambda at: at.of.scores, False),
        TypedColumn("bit_score", "float64", lambda at: at.of.numbers.bit_scores, False),
        TypedColumn("evalue", "float64", lambda at: at.of.numbers.evalues, False),
        TypedColumn("z_score", "float64", lambda at: at.of.numbers.z_scores, False),
        TypedColumn("evalue_published", "float64", lambda at: at.of.numbers.evalues_published, False),
        TypedColumn("query_start", "int64", lambda at: at.of.query_spans[0]),
        TypedColumn("query_end", "int64", lambda at: at.of.query_spans[1]),
        TypedColumn("subject_start", "int64", lambda at: at.of.subject_spans[0]),
        TypedColumn("subject_end", "int64", lambda at: at.of.subject_spans[1]),
        TypedColumn("query_frame", "int64", lambda at: at.of.query_frames),
        TypedColumn("subject_frame", "int64", lambda at: at.of.subject_frames),
        TypedColumn("alignment_length", "int64", lambda at: at.of.alignments.length),
        TypedColumn("identities", "int64", lambda at: at.of.alignments.identities),
        TypedColumn("positives", "int64", lambda at: at.of.alignments.positives),
        TypedColumn("mismatches", "int64", lambda at: mismatches(at.of.alignments)),
        TypedColumn("gaps", "int64", lambda at: at.of.alignments.gaps),
        TypedColumn("gap_openings", "int64", lambda at: at.of.alignments.gap_openings),
        TypedColumn("cigar", "string", lambda at: at.of.alignments.cigar_strings()),
        TypedColumn("query_row", "string", lambda at: [top for top, _, _ in at.of.rows]),
        TypedColumn("subject_row", "string", lambda at: [bottom for _, _, bottom in at.of.rows]),
    )
}
"""Every column by name."""

ASKED_FOR = (
    "query_row", "subject_row", "iteration", "query_frame", "subject_frame", "subject_taxids",
    "subject_scientific_names",
)  # fmt: skip
"""Columns that are not written unless they are asked for, or `FRAMES_OF` has them."""

FRAMES_OF: dict[Program, tuple[str, ...]] = {
    "blastx": ("query_frame",),
    "tblastn": ("subject_frame",),
    "tblastx": ("query_frame", "subject_frame"),
}
"""Columns that are written of translated DNA; a protein's frame is 0."""


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

    has_columns = True
    package = "pyarrow"

    def __init__(self, stream: IO[Any], columns: list[TypedColumn] | None = None) -> None:
        _check_pyarrow()
        super().__init__(stream)
        self._sink = _Counting(stream)
        self._chosen = columns
        self._columns = columns or _usual_columns("blastp")
        self.needs_alignments = any(column.needs_alignment for column in self._columns)
        self._parts: list[list[Values]] = []
        self._n_rows = 0
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

        self._columns = self._chosen or _usual_columns(run.program)
        self._parts = [[] for _ in self._columns]
        fields = [pyarrow.field(column.name, getattr(pyarrow, column.type)()) for column in self._columns]
        said = json.dumps(provenance(run), ensure_ascii=True, sort_keys=True)
        self._schema = pyarrow.schema(fields, metadata={METADATA_KEY: said})
        self._file = self._open(self._schema)

    def write(self, result: SearchResult) -> None:
        """Take the rows of one query, and write a group of rows when it is full."""
        for portion in aligned_portions(result) if self.needs_alignments else portions(result):
            at = Place(portion, self._queries)
            for column, parts in zip(self._columns, self._parts, strict=True):
                parts.append(column.values(at))
            self._n_rows += len(portion)
            while self._n_rows >= ROWS_TOGETHER:
                self._write_group(ROWS_TOGETHER)
        self._queries += 1

    def end(self) -> None:
        """Write the last rows, and what closes the file."""
        if self._n_rows:
            self._write_group(self._n_rows)
        self._close()

    def discard(self) -> None:
        """Close what pyarrow holds, and ignore what it still writes."""
        self._sink.deaf = True
        self._close()

    def _write_group(self, rows: int) -> None:
        """Write the first of the rows that wait."""
        import pyarrow

        arrays = []
        for parts, field in zip(self._parts, self._schema, strict=True):
            values = _joined(parts)
            arrays.append(_array(values[:rows], field.type))
            parts[:] = [values[rows:]]
        self._n_rows -= rows
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


def _usual_columns(program: Program) -> list[TypedColumn]:
    """Return the columns that are written where none are asked for."""
    left_out = {*ASKED_FOR}.difference(FRAMES_OF.get(program, ()))
    return [column for column in ARROW_COLUMNS.values() if column.name not in left_out]


def _joined(parts: list[Any]) -> Values:
    """Return a column of its parts, which are all of a kind."""
    if isinstance(parts[0], list):
        return [text for part in parts for text in part]
    joined: IntArray | FloatArray = np.concatenate(parts)
    return joined


def _array(values: Values, kind: pyarrow.DataType) -> pyarrow.Array:
    """Return a column as pyarrow has it; NaN is null."""
    import pyarrow

    if isinstance(values, list) or values.dtype != np.float64:
        return pyarrow.array(values, kind)
    missing = np.isnan(values)
    return pyarrow.array(np.where(missing, 0.0, values), kind, mask=missing)


def _choose(names: list[str], outfmt: str) -> list[TypedColumn]:
    """Find columns by name; none at all means the usual ones."""
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
