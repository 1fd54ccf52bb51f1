"""Keyword arguments of `swsearch.search`, `Searcher` and `Client`, and how they become `SearchOptions`."""

from __future__ import annotations

import difflib
import inspect
import re
import textwrap
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, Unpack

from swsearch.alphabet import PROTEIN
from swsearch.engines import create_engine
from swsearch.engines.base import Engine
from swsearch.engines.devices import Devices
from swsearch.errors import InputError, OptionError, SwsearchWarning
from swsearch.options.row import Interface, Option, rows_of
from swsearch.options.words import ENGINES, Preset
from swsearch.pipeline.inclusion import INCLUSION_OPTIONS, Inclusion
from swsearch.pipeline.options import SearchOptions, check_is_whole
from swsearch.pipeline.table.search import SearchTable, TableKeywords
from swsearch.scoring import Scoring

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

DOCSTRING_WIDTH = 116

KEYWORD_ROWS = rows_of(SearchTable, Interface.PYTHON)
"""Options that Python takes by name."""

ENGINE_KEYWORDS = ("engine", "threads", "device", "gpu_memory", "progress", "checkpoint", "query_format", "client")
"""Other keywords of `swsearch.search`."""


class SearchKeywords(TableKeywords, total=False):
    """Keywords of a search: the options of the table, and two objects that only Python has."""

    scoring: Scoring | None
    inclusion: Inclusion | None


OBJECTS = {
    "scoring": "Scoring, optional\n    Matrix and gap costs, in place of ``preset``, ``matrix``, ``gap_open`` and "
    "``gap_extend``.",
    "inclusion": "Inclusion, optional\n    All inclusion rules, see `swsearch.pipeline.inclusion`; options of their "
    "own override them.",
}
"""Types and descriptions of the objects of `SearchKeywords`."""


def takes_options(function: Decorated) -> Decorated:
    """Give a function with ``**options`` the signature and the docstring of all keywords.

    The docstring holds ``**options`` in its parameters, which the options replace.
    """
    own = inspect.signature(function)
    named = [each for each in own.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    first = [each for each in named if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, known in SearchKeywords.__annotations__.items()
        for annotation in [getattr(known, "__forward_arg__", known)]
        for default in [KEYWORD_ROWS[name].default if name in KEYWORD_ROWS else None]
    ]
    function.__signature__ = own.replace(parameters=[*first, *options, *named[len(first) :]])  # type: ignore[attr-defined]
    entries = "".join(
        [*map(_entry, KEYWORD_ROWS.values()), *(f"{name} : {text}\n" for name, text in OBJECTS.items())]
    )
    if function.__doc__:
        place = re.compile(r"^( *)\*\*options\n(?:\1 +.*\n)*", re.MULTILINE)
        function.__doc__ = place.sub(lambda found: textwrap.indent(entries, found[1]), function.__doc__)
    return function


def _entry(row: Option) -> str:
    """Return a parameter of a docstring, in numpydoc's form."""
    meaning = row.python or re.sub(r"--([a-z][a-z-]*)", lambda found: f"``{found[1].replace('-', '_')}``", row.help)
    default = f" By default: {row.unset}." if row.unset else ""
    text = textwrap.fill(meaning + default, DOCSTRING_WIDTH - 8, initial_indent="    ", subsequent_indent="    ")
    return f"{row.name} : {row.kind.python_type}, optional\n{text}\n"


def check_keywords(function: str, given: Mapping[str, Any]) -> None:
    """Raise TypeError, as Python does, for a keyword that is no option; name the option that is meant."""
    known = SearchKeywords.__annotations__
    for name in given:
        if name not in known:
            meant = _same_option(name) or next(
                iter(difflib.get_close_matches(name, [*known, *ENGINE_KEYWORDS], n=1)), ""
            )
            hint = f"; did you mean {meant}?" if meant else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")


def _same_option(name: str) -> str:
    """Return the option that BLAST or another program calls so."""
    if name == "task":
        return "preset"
    key = name.replace("_", "-")
    keys = {key, key.lower()}
    return next((row.name for row in KEYWORD_ROWS.values() if keys & {*row.blast.split(), *row.others.split()}), "")


def protein_scoring(scoring: Scoring | None, preset: Preset | None) -> Scoring:
    """Return the scoring of a search."""
    chosen = checked_scoring(scoring, preset)
    if chosen.matrix.alphabet is not PROTEIN:
        raise InputError(
            f"scoring: got matrix {chosen.matrix.name} for {chosen.matrix.alphabet.name}, expected a matrix for "
            "protein; align DNA with swsearch.align"
        )
    check_is_whole(chosen)
    return chosen


def checked_scoring(scoring: Scoring | None, preset: Preset | None) -> Scoring:
    """Return what scores: what is given, else the preset's, which is BLOSUM62, 11, 1 where nothing is given."""
    if scoring is None:
        return Scoring.of_preset("default" if preset is None else preset)
    if not isinstance(scoring, Scoring):
        raise OptionError("scoring", scoring, "a swsearch.Scoring, such as Scoring('BLOSUM62', 11, 1)")
    if preset is not None:
        raise OptionError("preset", preset, "none together with scoring, which sets matrix and gap costs")
    return scoring


def options_of(function: str = "search", **asked: Unpack[SearchKeywords]) -> SearchOptions:
    """Return the options that keywords of a function ask for."""
    check_keywords(function, asked)
    given: dict[str, Any] = {**asked}
    for name in ("preset", "scoring", "inclusion"):
        if given.get(name) is None:
            given.pop(name, None)
    if "scoring" in given:
        given |= {"scoring": protein_scoring(given["scoring"], None), "has_named_costs": True}
    if (rules := given.pop("inclusion", None)) is not None:
        if not isinstance(rules, Inclusion):
            raise OptionError("inclusion", rules, "a swsearch.pipeline.inclusion.Inclusion")
        given = {name: getattr(rules, known) for name, known in INCLUSION_OPTIONS.items()} | given | {"rules": rules}
    options = SearchOptions(**given)
    for doubt in options.filters.doubts():
        warnings.warn(doubt, SwsearchWarning, stacklevel=4)
    return options


def engine_of(
    engine: str | Engine, threads: int | None, device: Devices | None, gpu_memory: int | None, cpu_only: str = ""
) -> Engine | None:
    """Make the engine that a name stands for; None if an engine was given. ``cpu_only`` as of `create_engine`."""
    if not isinstance(engine, (str, Engine)):
        raise OptionError("engine", engine, f"an Engine, or one of {', '.join(ENGINES)}")
    if isinstance(engine, str):
        return create_engine(engine, threads=threads, device=device, gpu_memory=gpu_memory, cpu_only=cpu_only)
    if device is not None or gpu_memory is not None:
        raise InputError(
            "device and gpu_memory: got an Engine object, expected the name of an engine; pass both to "
            "create_engine instead"
        )
    return None
