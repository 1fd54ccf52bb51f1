"""The table of report formats: `OUTPUT_FORMATS`.

The command line, the server with its page and API, and the documentation read it. CONTRIBUTING.md says how to add a
format.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import PurePath
from typing import IO, Any

from swsearch.errors import OptionError
from swsearch.report.base import Writer, did_you_mean


@dataclass(frozen=True)
class OutputFormat:
    """A format of reports.

    Parameters
    ----------
    key : str
        BLAST's number, or a name.
    names : tuple of str
        Other names.
    extensions : tuple of str
        Ends of file names that mean the format, lower case.
    media_type : str
        Media type over HTTP, without a charset.
    writer_name : str
        Module of this package, and class, of its writer.
    label, hint : str
        Name on the server's page, and the words beside it.
    download_extension : str
        End of the names of downloads; by default the first extension.
    is_blast_text : bool
        Whether it may have the extensions of other such formats: ``-o hits.txt --outfmt 0``.
    """

    key: str
    names: tuple[str, ...]
    extensions: tuple[str, ...]
    media_type: str
    writer_name: str
    label: str
    hint: str
    download_extension: str = ""
    is_blast_text: bool = False

    @cached_property
    def writer(self) -> type[Writer]:
        """Its attributes say whether the format is binary, holds one query, or has columns. Imports its module."""
        module, _, name = self.writer_name.partition(".")
        writer: type[Writer] = getattr(import_module(f"{__name__}.{module}"), name)
        return writer

    @property
    def description(self) -> str:
        """First line of the writer's docstring."""
        return (self.writer.__doc__ or "").partition("\n")[0]

    @property
    def content_type(self) -> str:
        """Media type, with the charset of text."""
        return f"{self.media_type}; charset=utf-8" if self.media_type.startswith("text/") else self.media_type

    def file_name(self, stem: str) -> str:
        """Return the name of a download."""
        return stem + (self.download_extension or self.extensions[0])

    def shares_extensions_with(self, other: OutputFormat) -> bool:
        """Return whether a file of the other format may have an extension of this one."""
        return other is self or (other.is_blast_text and self.is_blast_text)


OUTPUT_FORMATS: tuple[OutputFormat, ...] = (
    OutputFormat("0", ("pairwise",), (), "text/plain", "pairwise.PairwiseWriter",
                 "Text", "alignments for reading, as BLAST has them (0)", ".txt", is_blast_text=True),
    OutputFormat("5", ("xml",), (".xml",), "application/xml", "blast_xml.BlastXmlWriter",
                 "BLAST XML", "for programs that read BLAST's (5)"),
    OutputFormat("6", ("tabular",), (".tsv", ".tab", ".txt", ".m8", ".out"), "text/tab-separated-values",
                 "tabular.TabularWriter",
                 "Table", "columns separated by tabs, BLAST's twelve (6)", is_blast_text=True),
    OutputFormat("7", ("commented",), (), "text/plain", "tabular.CommentedWriter",
                 "Table with comments", "the same with query, database and columns named (7)", ".tsv",
                 is_blast_text=True),
    OutputFormat("10", ("csv",), (".csv",), "text/csv", "tabular.CommaSeparatedWriter",
                 "CSV", "the same columns separated by commas (10)", is_blast_text=True),
    OutputFormat("15", ("json", "blast-json"), (".json",), "application/json", "blast_json.BlastJsonWriter",
                 "JSON", "BLAST's (15)"),
    OutputFormat("jsonl", ("ndjson",), (".jsonl", ".ndjson"), "application/x-ndjson", "json_lines.JsonLinesWriter",
                 "JSON Lines", "one object a query, with alignments"),
    OutputFormat("sam", (), (".sam",), "text/plain", "sam.SamWriter", "SAM", "alignments, 1.6"),
    OutputFormat("paf", (), (".paf",), "text/plain", "sam.PafWriter", "PAF", "alignments, minimap2's"),
    OutputFormat("html", (), (".html", ".htm"), "text/html", "html.HtmlWriter",
                 "This report", "one file that works offline"),
    OutputFormat("a3m", (), (".a3m",), "text/plain", "alignments.A3mWriter",
                 "A3M", "the hits as an alignment below the query"),
    OutputFormat("stockholm", ("sto",), (".sto", ".stk", ".stockholm"), "text/plain", "alignments.StockholmWriter",
                 "Stockholm", "the hits as alignments, one a query"),
    OutputFormat("fasta-aligned", ("afa",), (".afa", ".aln.fasta", ".aln.fa"), "text/plain",
                 "alignments.AlignedFastaWriter", "Aligned FASTA", "the hits in the query's columns", ".aln.fasta"),
    OutputFormat("parquet", (), (".parquet", ".pq"), "application/vnd.apache.parquet", "arrow.ParquetWriter",
                 "Parquet", "columns with types, for pandas and others"),
    OutputFormat("arrow", ("feather",), (".arrow", ".feather"), "application/vnd.apache.arrow.file",
                 "arrow.ArrowFileWriter", "Arrow", "columns with types, Feather 2"),
    OutputFormat("toml", ("options",), (".toml",), "text/plain", "headers.OptionsWriter",
                 "Options", "what this search used, for search --config"),
)  # fmt: skip
"""Every format."""

FORMATS: dict[str, str] = {name: each.key for each in OUTPUT_FORMATS for name in (each.key, *each.names)}
"""Every name of a format, and its key."""

_BY_KEY = {each.key: each for each in OUTPUT_FORMATS}


def find_format(outfmt: str) -> OutputFormat:
    """Find the format that an ``--outfmt`` begins with."""
    name = (outfmt.split() or [""])[0]
    key = FORMATS.get(name.lower())
    if key is None:
        remedy = did_you_mean(name.lower(), FORMATS, 2)
        raise OptionError("outfmt", outfmt, f"one of {', '.join(FORMATS)}", remedy)
    return _BY_KEY[key]


def format_for_path(path: str) -> OutputFormat | None:
    """Find the format that a file's name means by its extension; None if it has one that means none.

    A name without an extension means BLAST's table, as everything does that no format is given for.
    """
    suffixes = PurePath(path).suffixes
    if not suffixes:
        return _BY_KEY["6"]
    ends = {suffixes[-1].lower(), "".join(suffixes[-2:]).lower()}
    return next((each for each in OUTPUT_FORMATS if ends.intersection(each.extensions)), None)


def create_writer(outfmt: str, stream: IO[Any], header: bool = False) -> Writer:
    """Make the writer of a format.

    Parameters
    ----------
    outfmt : str
        A format's number or name, then, for tables, columns: ``"6"``, ``"6 qseqid sseqid score"``, ``"jsonl"``.
    stream : file object
        Where to write: text, or bytes where the format's writer is binary.
    header : bool, optional
        Whether the first line is to name the columns, in formats that can have such a line.
    """
    output_format, (name, *columns) = find_format(outfmt), outfmt.split()
    if columns and not output_format.writer.has_columns:
        tables = ", ".join(each.key for each in OUTPUT_FORMATS if each.writer.has_columns)
        raise OptionError("outfmt", outfmt, f"{name} without columns", f"only tables ({tables}) take columns")
    writer = output_format.writer.create(stream, columns, outfmt)
    writer.has_header = header and output_format.writer.takes_header
    return writer
