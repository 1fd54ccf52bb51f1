"""What a search was asked for, by long names of the options of ``swsearch search``, so that it can be asked again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from swsearch.job.filters import HitFilters
from swsearch.job.inclusion import Inclusion
from swsearch.job.options import SearchOptions
from swsearch.job.taxa import TAXON_OPTIONS
from swsearch.matrices import GAP_COSTS
from swsearch.run_info import MISSING_SETTINGS, OptionValues
from swsearch.scoring import Matrix, load_matrix, usable_matrices

LISTS = ("include_ids", "exclude_ids")
"""Filters that the command line has files for."""

_INCLUSION = {"inclusion_evalue": "evalue", "inclusion_coverage": "coverage", "max_included": "most"}


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
    scoring, filters, missing = options.scoring, options.filters, []
    found: dict[str, object] = {}
    if _is_known(scoring.matrix):
        found["matrix"] = scoring.matrix.name
    elif "matrix" in files:
        found["matrix"] = files["matrix"]
    else:
        missing.append("matrix")
    found |= {"gap_open": scoring.gap_open, "gap_extend": scoring.gap_extend, "mode": options.mode}
    found |= {"evalue": options.threshold, "max_hits": options.max_hits, "sort": options.sort}
    found |= {"dbsize": options.dbsize, "statistics": options.statistics_method}
    found["max_alignments"] = options.max_alignments
    for name in (each.name for each in fields(HitFilters)):
        value = getattr(filters, name)
        if name in LISTS and value is not None:
            if name not in files:
                missing.append(name)
            value = files.get(name)
        if name in TAXON_OPTIONS and value is not None:
            value = ",".join(map(str, value))
        found[name] = value
    if options.query_loc is not None:
        found["query_loc"] = "{}-{}".format(*options.query_loc)
    found |= {"query_mask": options.query_mask, "subject_mask": options.subject_mask}
    if options.translation is not None:
        found |= {"translate": True, **vars(options.translation)}
    if options.allow_dna:
        found["allow_dna"] = True
    if options.makes_profiles:
        found["iterations"] = options.iterations
        found |= {name: getattr(options.inclusion, known) for name, known in _INCLUSION.items()}
        rules = [each for each in fields(Inclusion) if each.name not in _INCLUSION.values()]
        if any(getattr(options.inclusion, each.name) != each.default for each in rules):
            missing.append("inclusion")
    settings = {name.replace("_", "-"): value for name, value in found.items() if value is not None}
    return {**settings, **({MISSING_SETTINGS: [name.replace("_", "-") for name in missing]} if missing else {})}


def _is_known(matrix: Matrix) -> bool:
    """Say whether a matrix's name gives it again."""
    known = matrix.name in GAP_COSTS or matrix.name in usable_matrices(matrix.alphabet)  # imports Biopython
    return known and np.array_equal(load_matrix(matrix.name, matrix.alphabet).scores, matrix.scores)
