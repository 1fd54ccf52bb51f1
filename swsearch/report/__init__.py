"""One writer per format, and the table of them: what each goes by, and which file names mean it.

A format is added by writing a `Writer` in a module of its own and by a line in `KINDS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import IO, Any

from swsearch.errors import OptionError
from swsearch.report.a3m import A3mWriter, AlignedFastaWriter
from swsearch.report.arrow import ArrowFileWriter, ParquetWriter
from swsearch.report.base import BinaryWriter, Writer, did_you_mean
from swsearch.report.blast_json import BlastJsonWriter
from swsearch.report.blast_xml import BlastXmlWriter
from swsearch.report.html import HtmlWriter
from swsearch.report.json_lines import JsonLinesWriter
from swsearch.report.paf import PafWriter
from swsearch.report.pairwise import PairwiseWriter
from swsearch.report.sam import SamWriter
from swsearch.report.settings_text import OptionsWriter
from swsearch.report.stockholm import StockholmWriter
from swsearch.report.tabular import CommaSeparatedWriter, CommentedWriter, TabularWriter

__all__ = ["FORMATS", "KINDS", "BinaryWriter", "Kind", "Writer", "create_writer", "kind_of", "kind_of_file"]


@dataclass(frozen=True)
class Kind:
    """A format.

    Parameters
    ----------
    key : str
        BLAST's number, or a name.
    names : tuple of str
        What else it goes by.
    extensions : tuple of str
        Ends of file names that mean it, lower case.
    family : str
        Kinds of one family may have each other's extensions: ``-o hits.txt --outfmt 0``.
    writer : type of Writer
        What writes it.
    """

    key: str
    names: tuple[str, ...]
    extensions: tuple[str, ...]
    family: str
    writer: type[Writer]


KINDS: tuple[Kind, ...] = (
    Kind("0", ("pairwise",), (), "text", PairwiseWriter),
    Kind("5", ("xml",), (".xml",), "xml", BlastXmlWriter),
    Kind("6", ("tabular",), (".tsv", ".tab", ".txt", ".m8", ".out"), "text", TabularWriter),
    Kind("7", ("commented",), (), "text", CommentedWriter),
    Kind("10", ("csv",), (".csv",), "text", CommaSeparatedWriter),
    Kind("15", ("json", "blast-json"), (".json",), "json", BlastJsonWriter),
    Kind("jsonl", ("ndjson",), (".jsonl", ".ndjson"), "jsonl", JsonLinesWriter),
    Kind("sam", (), (".sam",), "sam", SamWriter),
    Kind("paf", (), (".paf",), "paf", PafWriter),
    Kind("html", (), (".html", ".htm"), "html", HtmlWriter),
    Kind("a3m", (), (".a3m",), "a3m", A3mWriter),
    Kind("stockholm", ("sto",), (".sto", ".stk", ".stockholm"), "stockholm", StockholmWriter),
    Kind("fasta-aligned", ("afa",), (".afa", ".aln.fasta", ".aln.fa"), "fasta", AlignedFastaWriter),
    Kind("parquet", (), (".parquet", ".pq"), "parquet", ParquetWriter),
    Kind("arrow", ("feather",), (".arrow", ".feather"), "arrow", ArrowFileWriter),
    Kind("toml", ("options",), (".toml",), "toml", OptionsWriter),
)
"""Every format."""

FORMATS: dict[str, str] = {name: kind.key for kind in KINDS for name in (kind.key, *kind.names)}
"""Every name that a format goes by, and the one that stands for it."""

_BY_KEY = {kind.key: kind for kind in KINDS}


def kind_of(outfmt: str) -> Kind:
    """Find the format that an ``--outfmt`` begins with.

    Raises
    ------
    OptionError
        If there is no such format.
    """
    name = (outfmt.split() or [""])[0]
    key = FORMATS.get(name.lower())
    if key is None:
        remedy = did_you_mean(name.lower(), FORMATS, 2)
        raise OptionError("outfmt", outfmt, f"one of {', '.join(FORMATS)}", remedy)
    return _BY_KEY[key]


def kind_of_file(path: str) -> Kind | None:
    """Find the format that a file's name means by its extension; None if it has one that means none.

    A name without an extension means BLAST's table, as everything does that no format is given for.
    """
    suffixes = PurePath(path).suffixes
    if not suffixes:
        return _BY_KEY["6"]
    ends = {suffixes[-1].lower(), "".join(suffixes[-2:]).lower()}
    return next((kind for kind in KINDS if ends.intersection(kind.extensions)), None)


def create_writer(outfmt: str, stream: IO[Any], header: bool = False) -> Writer:
    """Make the writer of a format.

    Parameters
    ----------
    outfmt : str
        A format's number or name, then, for tables, columns: ``"6"``, ``"6 qseqid sseqid score"``, ``"jsonl"``.
    stream : file object
        Where to write: text, or bytes where the format's writer is a `BinaryWriter`.
    header : bool, optional
        Whether the first line is to name the columns, in formats that can have such a line.

    Returns
    -------
    Writer

    Raises
    ------
    OptionError
        If there is no such format or column, or the format has no columns to choose.
    """
    kind = kind_of(outfmt)
    made = kind.writer.create(stream, outfmt.split()[1:], outfmt)
    made.has_header = header and kind.writer.takes_header
    return made
