"""Hits of many queries as one table of pandas, polars or Arrow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from swsearch.errors import OptionError
from swsearch.results.result import ColumnValues, SearchResult, arrow_table, join_columns, pandas_frame, polars_frame

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


def columns_of(results: Iterable[SearchResult]) -> dict[str, ColumnValues]:
    """Return the hits of several queries as columns.

    Parameters
    ----------
    results : iterable of SearchResult
        Taken one after the other; alignments that are not known are found.

    Returns
    -------
    dict of str to (list of str or ndarray, shape (n,))
        ``query_index``, the place of each row's query among the results, counted from 0, then what
        `SearchResult.to_columns` has: int64, or float64 that is NaN where there is none. One row per alignment; a
        query without hits has none. Without results there are the columns of proteins.

    Raises
    ------
    OptionError
        If something is no `SearchResult`, or results have different columns.
    """
    if isinstance(results, (str, bytes)) or not isinstance(results, Iterable):
        raise OptionError("results", results, "what swsearch.search returns, or results taken from it")
    parts: list[dict[str, ColumnValues]] = []
    for place, result in enumerate([results] if isinstance(results, SearchResult) else results):
        if not isinstance(result, SearchResult):
            raise OptionError("results", result, "what swsearch.search returns, or results taken from it")
        found = result.columns()
        if parts and list(found) != list(parts[0])[1:]:
            raise OptionError("results", result, f"columns as those of {place} before: results of one search")
        parts.append({"query_index": np.full(len(found["score"]), place, dtype=np.int64), **found})
    if not parts:
        return {"query_index": np.zeros(0, dtype=np.int64), **SearchResult.no_columns()}
    return {name: join_columns([part[name] for part in parts]) for name in parts[0]}


def to_pandas(results: Iterable[SearchResult]) -> pandas.DataFrame:
    """Return the hits of several queries as a pandas DataFrame, one row per alignment; see `columns_of`."""
    return pandas_frame(columns_of(results))


def to_arrow(results: Iterable[SearchResult]) -> pyarrow.Table:
    """Return the hits of several queries as a pyarrow Table, null where there is no number; see `columns_of`."""
    return arrow_table(columns_of(results))


def to_polars(results: Iterable[SearchResult]) -> polars.DataFrame:
    """Return the hits of several queries as a polars DataFrame, null where there is no number; see `columns_of`."""
    return polars_frame(columns_of(results))
