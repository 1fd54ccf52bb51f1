"""One writer a format: tables (BLAST's 6, 7 and 10), the pairwise report (0), JSON lines and HTML."""

from __future__ import annotations

import difflib
from typing import TextIO

from swsearch.errors import OptionError
from swsearch.report.base import Writer
from swsearch.report.columns import choose_columns
from swsearch.report.html import HtmlWriter
from swsearch.report.json_lines import JsonLinesWriter
from swsearch.report.pairwise import PairwiseWriter
from swsearch.report.tabular import CommaSeparatedWriter, CommentedWriter, TabularWriter

__all__ = ["FORMATS", "Writer", "create_writer"]

_TABLES: dict[str, type[TabularWriter]] = {
    "6": TabularWriter,
    "7": CommentedWriter,
    "10": CommaSeparatedWriter,
}
_REPORTS: dict[str, type[PairwiseWriter] | type[JsonLinesWriter] | type[HtmlWriter]] = {
    "0": PairwiseWriter,
    "json": JsonLinesWriter,
    "html": HtmlWriter,
}

FORMATS: dict[str, str] = {
    "0": "0", "pairwise": "0",
    "6": "6", "tabular": "6",
    "7": "7", "commented": "7",
    "10": "10", "csv": "10",
    "json": "json", "jsonl": "json",
    "html": "html",
}  # fmt: skip
"""Every name that a format goes by, and the one that stands for it."""


def create_writer(outfmt: str, stream: TextIO) -> Writer:
    """Make the writer of a format.

    Parameters
    ----------
    outfmt : str
        A format's number or name, then, for tables, columns: ``"6"``, ``"6 qseqid sseqid score"``, ``"json"``.
    stream : TextIO
        Where to write.

    Returns
    -------
    Writer

    Raises
    ------
    OptionError
        If there is no such format or column, or the format has no columns to choose.
    """
    name, *columns = outfmt.split() or [""]
    key = FORMATS.get(name.lower())
    if key is None:
        close = difflib.get_close_matches(name.lower(), FORMATS, n=2)
        remedy = f"did you mean {' or '.join(close)}?" if close else ""
        raise OptionError("outfmt", outfmt, f"one of {', '.join(FORMATS)}", remedy)
    if key in _TABLES:
        return _TABLES[key](stream, choose_columns(columns, outfmt))
    if columns:
        raise OptionError("outfmt", outfmt, f"{name} alone", "only tables (6, 7, 10) take columns")
    return _REPORTS[key](stream)
