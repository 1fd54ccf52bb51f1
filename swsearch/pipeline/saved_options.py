"""What a search was asked for, by long names of the options of ``swsearch search``, so that it can be asked again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from swsearch.matrices import GAP_COSTS
from swsearch.options.row import Interface, rows_of
from swsearch.pipeline.inclusion import Inclusion
from swsearch.pipeline.options import SCORING_OPTIONS, SearchOptions
from swsearch.pipeline.table.search import SearchTable
from swsearch.run_info import MISSING_SETTINGS, OptionValues
from swsearch.scoring import Matrix, load_matrix, usable_matrices

WRITTEN_WHEN_OFF = ("ignore_missing_ids",)
"""Flags that are written although they are off."""


def settings_of(options: SearchOptions, files: Mapping[str, str]) -> OptionValues:
    """Return the options of a search that decide what is found.

    Parameters
    ----------
    options : SearchOptions
        What is asked for.
    files : dict of str to str
        Files that a matrix and lists of identifiers were read from, by the option's name in Python.

    Returns
    -------
    dict of str to (bool, int, float, str or list of str)
        Names are as after ``--``; `MISSING_SETTINGS` lists options that the search had and that have no value here,
        such as identifiers that came from Python.
    """
    settings: dict[str, Any] = {}
    missing = []
    rows = rows_of(SearchTable, Interface.COMMAND)
    for name in (*SCORING_OPTIONS, *(name for name in rows if name not in SCORING_OPTIONS)):
        value, row = options.effective(name), rows[name]
        if value is None or (value is False and name not in WRITTEN_WHEN_OFF):
            continue
        written = row.kind.format(value) if name != "matrix" or _is_known(value) else None
        written = files.get(name) if written is None else written
        if written is None:
            missing.append(row.key)
        else:
            settings[row.key] = written
    if options.makes_profiles and options.rules != Inclusion():
        missing.append("inclusion")
    return {**settings, **({MISSING_SETTINGS: missing} if missing else {})}


def _is_known(matrix: Matrix) -> bool:
    """Say whether a matrix's name gives it again."""
    known = matrix.name in GAP_COSTS or matrix.name in usable_matrices(matrix.alphabet)  # imports Biopython
    return known and np.array_equal(load_matrix(matrix.name, matrix.alphabet).scores, matrix.scores)
