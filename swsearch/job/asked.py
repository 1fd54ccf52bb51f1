"""What `swsearch.search` and `swsearch.Searcher` may be asked for, by name, and how it becomes options."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from swsearch.alphabet import PROTEIN
from swsearch.engines import create_engine
from swsearch.engines.base import Engine
from swsearch.engines.choice import ENGINES
from swsearch.engines.devices import Devices
from swsearch.errors import InputError, OptionError, SwsearchWarning, check_flag
from swsearch.job.costs import check_is_whole
from swsearch.job.filters import PERCENTAGES, HitFilters, named_ids
from swsearch.job.inclusion import Inclusion
from swsearch.job.options import SearchOptions, SortKey
from swsearch.job.taxa import TAXON_OPTIONS, Taxids, named_taxids
from swsearch.masking import Mask
from swsearch.matrices import Preset
from swsearch.scoring import Mode, Scoring
from swsearch.statistics.choice import StatisticsMethod
from swsearch.translation import Strand, asked_translation


def protein_scoring(scoring: Scoring | None, preset: Preset | None) -> Scoring:
    """Return the scoring of a search."""
    chosen = checked_scoring(scoring, preset)
    if chosen.matrix.alphabet is not PROTEIN:
        raise InputError(
            f"scoring: matrix {chosen.matrix.name} scores {chosen.matrix.alphabet.name}, expected one for protein: "
            "databases hold proteins; swsearch.align aligns DNA"
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
        raise OptionError("preset", preset, "no preset beside scoring, which says all that a preset would")
    return scoring


class SearchKeywords(TypedDict, total=False):
    """What `search` and `Searcher` may be asked for; see `search`."""

    scoring: Scoring | None
    preset: Preset | None
    mode: Mode
    max_hits: int
    evalue: float | None
    dbsize: int | None
    statistics: StatisticsMethod
    min_score: int | None
    min_identity: float | None
    min_query_coverage: float | None
    min_subject_coverage: float | None
    include_ids: Iterable[str] | str | Path | None
    exclude_ids: Iterable[str] | str | Path | None
    ignore_missing_ids: bool
    taxids: Taxids | None
    exclude_taxids: Taxids | None
    max_alignments: int
    query_mask: Mask
    subject_mask: Mask | Literal["database"]
    sort: SortKey
    distribution: bool
    allow_dna: bool
    iterations: int
    inclusion_evalue: float
    inclusion_coverage: float
    max_included: int
    inclusion: Inclusion | None
    keep_next: bool
    translate: bool
    genetic_code: int | None
    strand: Strand | None
    frame_shift: int | None
    query_loc: tuple[int, int] | str | None


def options_of(**asked: Unpack[SearchKeywords]) -> SearchOptions:
    """Check what is asked for."""
    given: dict[str, Any] = dict(asked)
    named: dict[str, Any] = {name: given.pop(name, None) for name in ("min_score", *PERCENTAGES)}
    named |= {name: named_ids(given.pop(name, None), name) for name in ("include_ids", "exclude_ids")}
    named |= {name: named_taxids(given.pop(name, None), name) for name in TAXON_OPTIONS}
    filters = HitFilters(**named, ignore_missing_ids=given.pop("ignore_missing_ids", False))
    for doubt in filters.doubts():
        warnings.warn(doubt, SwsearchWarning, stacklevel=4)
    scoring = protein_scoring(given.pop("scoring", None), given.pop("preset", None))
    method = given.pop("statistics", "auto")
    check_flag("distribution", given.get("distribution", False))
    check_flag("keep_next", given.get("keep_next", False))
    given["inclusion"] = _inclusion(given)
    translated = {name: given.pop(name, None) for name in ("genetic_code", "strand", "frame_shift")}
    given["translation"] = asked_translation(given.pop("translate", False), **translated)
    return SearchOptions(scoring, filters=filters, statistics_method=method, **given)


def _inclusion(given: dict[str, Any]) -> Inclusion:
    """Take from what is asked for the rules of what makes profiles."""
    names = {"inclusion_evalue": "evalue", "inclusion_coverage": "coverage", "max_included": "most"}
    asked = {names[name]: given.pop(name) for name in names if name in given}
    rules = given.pop("inclusion", None)
    if rules is not None and not isinstance(rules, Inclusion):
        raise OptionError("inclusion", rules, "a swsearch.job.inclusion.Inclusion")
    checked = Inclusion(**asked)
    if rules is None:
        return checked
    usual = Inclusion()
    changed = {name: value for name in asked if (value := getattr(checked, name)) != getattr(usual, name)}
    return replace(rules, **changed)


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
            "device and gpu_memory: got an engine that is made already, expected the name of one; give them to "
            "create_engine instead"
        )
    return None
