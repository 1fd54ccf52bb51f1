"""Options of a search, validated on construction."""

from __future__ import annotations

import difflib
import inspect
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, TypeVar, Unpack

from swsearch.alphabet import ALPHABETS, DNA, PROTEIN, STRUCTURAL
from swsearch.blocks import tantan_finder
from swsearch.engines import create_engine
from swsearch.engines.base import Engine
from swsearch.engines.devices import Devices
from swsearch.errors import InputError, OptionError, SwsearchWarning
from swsearch.inputs import Query, apply_profile_scoring
from swsearch.matrices import ALPHABET_MATRICES, GAP_COSTS, PRESET_MATRICES, SHORT_EVALUE
from swsearch.options.kinds import ENGINES, AlphabetName, Preset
from swsearch.options.row import Interface, Option, rows_of
from swsearch.pipeline.filters import HitFilters
from swsearch.pipeline.inclusion import INCLUSION_OPTIONS, Inclusion
from swsearch.pipeline.table.hits import FilterTable
from swsearch.pipeline.table.search import SearchTable, TableKeywords
from swsearch.recurrence import Recurrence
from swsearch.scoring import Matrix, Scoring, load_matrix
from swsearch.statistics.karlin_altschul import DEFAULT_EVALUE, KarlinAltschul, published_statistics
from swsearch.statistics.methods import check_statistics, resolve_method
from swsearch.translation import QueryTranslation, make_translation
from swsearch.translation.genetic_codes import STANDARD_CODE

CANDIDATES_PER_HIT, MIN_CANDIDATES = 20, 1000
"""Candidates by the query's null that are kept for each hit that is asked for, and at least: their own nulls may
refuse most of them, where a query is of biased composition."""

INCLUSION_EVALUES = 0.002, 0.02
"""Maximum E-values to enter a profile, without and with contexts: psiblast's, and one at which SCOPe's domains have
fewer wrong hits than without contexts (benchmarks/results/contexts_iterated.txt)."""

SCORING_OPTIONS = ("task", "alphabet", "preset", "matrix", "gap_open", "gap_extend")
"""Options that `SearchOptions.scoring` is made of."""


class SearchOptions(SearchTable, eq=True, repr=True):
    """All options of a search; each value is checked alone, then in combination.

    Parameters
    ----------
    scoring : Scoring, optional
        Matrix and gap costs; by default those of the `SCORING_OPTIONS`, which are reset to their defaults.
    rules : Inclusion, optional
        Inclusion rules without an option of their own.
    has_named_costs : bool
        Whether gap costs were chosen: then those of a profile do not replace them.
    """

    scoring: Scoring = None  # type: ignore[assignment]  # set on construction
    rules: Inclusion = field(default_factory=Inclusion)
    has_named_costs: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if self.scoring is not None:
            for name in SCORING_OPTIONS:
                if (value := getattr(self, name)) != rows_of(SearchTable)[name].default:
                    raise OptionError(name, value, "none together with scoring, which sets matrix and gap costs")
        super().__post_init__()
        self._make_scoring()
        if self.inclusion_evalue is None:
            self._set(inclusion_evalue=INCLUSION_EVALUES[self.contexts])
        if self.scoring.matrix.alphabet.is_structural:
            self._check_structural(self.scoring.matrix.alphabet.name)
        self._set(
            rules=replace(self.rules, **{rule: getattr(Inclusion, rule) for rule in INCLUSION_OPTIONS.values()})
        )
        check_integer_gap_costs(self.scoring)
        if "tantan" in (self.query_mask, self.subject_mask):
            tantan_finder()  # raises if pytantan is missing
        wrong, why = self.max_alignments > 1 and self.mode != "local", "only local mode reports several alignments"
        self._refuse(wrong, "max_alignments", f"1 in {self.mode} mode", why)
        is_published, why = self.statistics == "published", "published constants are of a matrix's own scores"
        self._refuse(self.contexts and is_published, "statistics", "fitted or none with --preset context", why)
        check_statistics(self.statistics, self.scoring, self.mode, evalue=self.evalue, dbsize=self.dbsize)
        why = "the last iteration searches the subjects, those before it this database"
        self._refuse(
            self.profile_from is not None and self.iterations == 1, "profile_from", "--iterations 2 or more", why
        )
        if self.is_iterated:  # this takes E-values, and a matrix that has units
            why = f"{self.profile_option} needs E-values to choose hits"
            self._refuse(self.evalue_threshold is None, "statistics", "fitted or published", why)
        if self.is_iterated or self.contexts:
            from swsearch.profiles.calibration import lambda_of

            lambda_of(self.scoring.matrix)
        if self.translation is not None:
            self._check_translation()
        if self.query_loc is not None:
            beside = self.profile_option if self.is_iterated else self.translation and "--translate"
            if beside:
                remedy = "cut the queries beforehand, e.g. with swsearch db fetch --range"
                raise OptionError("query_loc", "{}-{}".format(*self.query_loc), f"none with {beside}", remedy)
        code, strand = self.effective("genetic_code"), self.effective("strand")
        self._set(genetic_code=None if code == STANDARD_CODE else code, strand=None if strand == "both" else strand)

    def _set(self, **values: Any) -> None:
        """Set fields during construction."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _make_scoring(self) -> None:
        """Resolve task, preset, matrix and gap costs, so that options with the same meaning are equal."""
        given = self.scoring, self.preset, self.matrix, self.gap_open, self.gap_extend
        is_unset = all(each is None for each in given) and self.task == "default"
        is_usual = self.mode == "local" and resolve_method(self.statistics) == "fitted"
        is_iteration = is_unset and is_usual and self.iterations > 1
        preset = self.preset or ("context" if is_iteration or (is_unset and self.contexts) else "default")
        contexts, evalue = self.contexts or preset == "context", self.evalue
        if self.task == "short":
            if preset not in ("default", "short"):
                raise InputError(f"got --task {self.task} and --preset {preset}, expected one of them")
            preset, evalue = "short", SHORT_EVALUE if evalue is None else evalue
        is_named = preset != "default" and not is_iteration
        has_explicit_scoring = is_named or self.gap_open is not None or self.gap_extend is not None
        matrix = PRESET_MATRICES[preset] if self.matrix is None else self.matrix
        if self.alphabet in STRUCTURAL:
            matrix = structural_matrix(self.alphabet, self.matrix)
        scoring = self.scoring or Scoring(matrix, self.gap_open, self.gap_extend)
        alphabet = scoring.matrix.alphabet
        is_wrong = self.preset not in (None, "default") and alphabet.is_structural
        self._refuse(is_wrong, "preset", "default", f"with {alphabet.name}")
        is_wrong = self.alphabet == "protein" and alphabet.is_structural
        self._refuse(is_wrong, "alphabet", alphabet.name, f"matrix {scoring.matrix.name} is of its letters")
        defaults = {name: rows_of(SearchTable)[name].default for name in SCORING_OPTIONS}
        self._set(
            **defaults, scoring=scoring, evalue=evalue, contexts=contexts,
            has_named_costs=self.has_named_costs or has_explicit_scoring,
        )  # fmt: skip

    def _refuse(self, is_wrong: bool, name: str, expected: str, why: str) -> None:
        """Raise `OptionError` of an option where it does not go with others."""
        if is_wrong:
            raise OptionError(name, getattr(self, name), expected, why)

    def _check_translation(self) -> None:
        """Check that DNA is searched with in a way that its frames can be, and alignments with frame shifts."""
        local = "local with --translate (in Python translate=True)"
        self._refuse(self.mode != "local", "mode", local, "translated queries are only aligned locally")
        if self.is_iterated:
            raise InputError(
                f"translate: cannot be combined with {self.profile_option}; iterated searches need protein queries"
            )
        if self.contexts:
            raise InputError("translate: cannot be combined with --preset context, which needs protein queries")
        if self.frame_shift is not None:
            is_published, is_tantan = self.statistics == "published", self.query_mask == "tantan"
            is_several = self.max_alignments > 1
            for is_wrong, name, expected, why in (
                (is_published, "statistics", "fitted or none", "published constants do not cover frameshifts"),
                (is_several, "max_alignments", "1", "frameshift searches find one alignment per strand"),
                (is_tantan, "query_mask", "none or lower", "tantan masks only proteins"),
            ):
                self._refuse(is_wrong, name, f"{expected} with --frame-shift", why)

    def _check_structural(self, alphabet: str) -> None:
        """Check that nothing is asked for that is known of amino acids alone."""
        for name, is_wrong, expected in (
            ("iterations", self.iterations > 1, "1"),
            ("keep_profiles", self.keep_profiles, "False"),
            ("contexts", self.contexts, "False"),
            ("translate", self.translate, "False"),
            ("query_mask", self.query_mask == "tantan", "none or lower"),
            ("subject_mask", self.subject_mask == "tantan", "database, none or lower"),
        ):
            self._refuse(is_wrong, name, f"{expected} with --alphabet {alphabet}", "it needs amino acids")

    @cached_property
    def filters(self) -> HitFilters:
        """Filters of hits; `max_hits` counts the hits that pass."""
        return HitFilters.from_values(vars(self))

    @cached_property
    def inclusion(self) -> Inclusion:
        """Rules for the hits that make profiles."""
        return replace(self.rules, **{rule: getattr(self, name) for name, rule in INCLUSION_OPTIONS.items()})

    @cached_property
    def translation(self) -> QueryTranslation | None:
        """Translation of DNA queries."""
        return make_translation(self.translate, self.genetic_code, self.strand, self.frame_shift)

    @property
    def published(self) -> KarlinAltschul | None:
        """Published statistics, if E-values come from them."""
        is_published = resolve_method(self.statistics) == "published"
        return published_statistics(self.scoring, self.mode) if is_published else None

    @property
    def cpu_only(self) -> str:
        """Name of a requested feature that only the CPU has; empty if any engine will do."""
        return "" if self.frame_shift is None else "alignments with frame shifts"

    @property
    def recurrence(self) -> Recurrence:
        """Scoring, mode and frameshift cost."""
        return Recurrence(self.scoring, self.mode, frame_shift=self.frame_shift)

    @property
    def n_frames(self) -> int:
        """Frames that are searched in place of each query; 1 where it is protein."""
        return 1 if self.translation is None else len(self.translation.frames)

    @property
    def is_iterated(self) -> bool:
        """Whether profiles are built from hits, of these subjects or of `profile_from`."""
        return self.iterations > 1 or self.keep_profiles

    @property
    def own_iterations(self) -> int:
        """Iterations that search these subjects."""
        return self.iterations if self.profile_from is None else 1

    @property
    def makes_profiles(self) -> bool:
        """Whether the search builds profiles from hits of these subjects."""
        return self.own_iterations > 1 or self.keep_profiles

    @property
    def profile_option(self) -> str:
        """Name of the option that requests profiles, for messages."""
        return f"--iterations {self.iterations}" if self.iterations > 1 else "a profile of the hits"

    def inclusion_options(self) -> SearchOptions:
        """Return what chooses the hits that make the next profile: one more than wanted, which tells of others."""
        return self._without_report(max_hits=self.max_included + 1, iterations=1, keep_profiles=False)

    def background_options(self) -> SearchOptions:
        """Return the options of the iterations that search `profile_from`."""
        return self._without_report(max_hits=1, iterations=self.iterations - 1, keep_profiles=True, dbsize=None)

    def _without_report(self, **values: Any) -> SearchOptions:
        """Return the options with other values, and without what is about reported hits alone."""
        filters = {name: row.default for name, row in rows_of(FilterTable).items()}
        return replace(
            self, **filters, **values, evalue=self.inclusion_evalue, max_alignments=1, sort="evalue",
            distribution=False, profile_from=None,
        )  # fmt: skip

    @property
    def uses_fitted_statistics(self) -> bool:
        """Whether E-values come from shuffled copies of each subject."""
        return resolve_method(self.statistics) == "fitted"

    @property
    def evalue_threshold(self) -> float | None:
        """The E-value threshold in force."""
        if self.published is None and not self.uses_fitted_statistics:
            return None
        return DEFAULT_EVALUE if self.evalue is None else self.evalue

    @property
    def max_candidates(self) -> int:
        """Subjects that may be needed for `max_hits` hits: more, where alignments or nulls may refuse some."""
        if self.filters.needs_alignments:
            return sys.maxsize
        return (
            max(MIN_CANDIDATES, CANDIDATES_PER_HIT * self.max_hits) if self.uses_fitted_statistics else self.max_hits
        )

    def with_profile_scoring(self, queries: Sequence[Query]) -> SearchOptions:
        """Return the options with the matrix and gap costs of profiles among the queries, unless they were chosen."""
        scoring = apply_profile_scoring(queries, self.scoring, self.has_named_costs)
        return self if scoring is self.scoring else replace(self, scoring=scoring)

    def effective(self, name: str) -> Any:
        """Return the value in force of an option; None where it has no effect."""
        requires = rows_of(SearchTable)[name].requires or name
        if not {"translate": self.translate, "iterations": self.is_iterated}.get(requires, True):
            return None
        if name in SCORING_OPTIONS:
            alphabet = self.scoring.matrix.alphabet
            own = alphabet.name if alphabet.is_structural else None
            return own if name == "alphabet" else getattr(self.scoring, name, None)
        if name in ("genetic_code", "strand"):
            return getattr(self.translation, name)
        return self.evalue_threshold if name == "evalue" else getattr(self, name)


def structural_matrix(alphabet: AlphabetName, matrix: Matrix | None) -> Matrix:
    """Return the matrix of an alphabet of structure; that of a file or table is taken for its letters."""
    if matrix is None and alphabet not in ALPHABET_MATRICES:
        raise InputError(
            f"alphabet: got {alphabet} without a matrix, expected --matrix FILE (in Python matrix=); give Foldseek's "
            "mat3di.out, whose licence does not let swsearch ship it"
        )
    chosen = load_matrix(ALPHABET_MATRICES[alphabet]) if matrix is None else matrix
    if chosen.alphabet.name != alphabet and (chosen.name in GAP_COSTS or chosen.alphabet is not PROTEIN):
        raise OptionError("matrix", chosen.name, f"a matrix for the letters of {alphabet}", "give its file")
    return replace(chosen, alphabet=ALPHABETS[alphabet])


def check_integer_gap_costs(scoring: Scoring, where: str = "in a search") -> None:
    """Raise `OptionError` if gap costs are fractions, which only pairs of sequences are aligned with."""
    if scoring.scale != 1:
        costs = f"{scoring.to_display(scoring.gap_open)}/{scoring.to_display(scoring.gap_extend)}"
        raise OptionError("gap costs", costs, f"whole numbers {where}", "only swsearch align takes fractions")


def check_profile_scales(queries: Sequence[Query], options: SearchOptions) -> None:
    """Raise `OptionError` if published statistics do not hold for the scores of a profile."""
    if options.published is None:
        return
    for query in queries:
        if query.profile is not None and query.profile.scale != 1:
            expected = (
                f"fitted: the scores of profile {query.identifier} are {query.profile.scale:g} times the matrix's"
            )
            raise OptionError("statistics", "published", f"{expected} units, which published constants are not of")


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
    """Set the signature and docstring of all keywords on a function with ``**options``.

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


def check_keywords(function: str, keywords: Mapping[str, Any]) -> None:
    """Raise TypeError, as Python does, for a keyword that is no option; name the option that is meant."""
    keywords_allowed = SearchKeywords.__annotations__
    for name in keywords:
        if name not in keywords_allowed:
            meant = _same_option(name) or next(
                iter(difflib.get_close_matches(name, [*keywords_allowed, *ENGINE_KEYWORDS], n=1)), ""
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
    chosen = resolve_scoring(scoring, preset)
    if chosen.matrix.alphabet is DNA:
        raise InputError(
            f"scoring: got matrix {chosen.matrix.name} for {chosen.matrix.alphabet.name}, expected a matrix for "
            "protein; align DNA with swsearch.align"
        )
    check_integer_gap_costs(chosen)
    return chosen


def resolve_scoring(scoring: Scoring | None, preset: Preset | None) -> Scoring:
    """Return the given scoring, else the preset's; BLOSUM62, 11, 1 by default."""
    if scoring is None:
        return Scoring.of_preset("default" if preset is None else preset)
    if not isinstance(scoring, Scoring):
        raise OptionError("scoring", scoring, "a swsearch.Scoring, such as Scoring('BLOSUM62', 11, 1)")
    if preset is not None:
        raise OptionError("preset", preset, "none together with scoring, which sets matrix and gap costs")
    return scoring


def make_search_options(function: str = "search", **asked: Unpack[SearchKeywords]) -> SearchOptions:
    """Return the options that keywords of a function ask for."""
    check_keywords(function, asked)
    values: dict[str, Any] = {**asked}
    for name in ("preset", "scoring", "inclusion"):
        if values.get(name) is None:
            values.pop(name, None)
    if "scoring" in values:
        values |= {"scoring": protein_scoring(values["scoring"], None), "has_named_costs": True}
    if (rules := values.pop("inclusion", None)) is not None:
        if not isinstance(rules, Inclusion):
            raise OptionError("inclusion", rules, "a swsearch.pipeline.inclusion.Inclusion")
        values = {name: getattr(rules, rule) for name, rule in INCLUSION_OPTIONS.items()} | values | {"rules": rules}
    options = SearchOptions(**values)
    for warning in options.filters.warnings():
        warnings.warn(warning, SwsearchWarning, stacklevel=4)
    return options


def make_engine_if_named(
    engine: str | Engine, threads: int | None, device: Devices | None, gpu_memory: int | None, cpu_only: str = ""
) -> tuple[Engine, Callable[[], None]]:
    """Return the engine of a name, or the given one, and a function that closes an engine opened here."""
    if isinstance(engine, str):
        new = create_engine(engine, threads=threads, device=device, gpu_memory=gpu_memory, cpu_only=cpu_only)
        return new, new.close
    if not isinstance(engine, Engine):
        raise OptionError("engine", engine, f"an Engine, or one of {', '.join(ENGINES)}")
    if device is not None or gpu_memory is not None:
        raise InputError(
            "device and gpu_memory: got an Engine object, expected the name of an engine; pass both to "
            "create_engine instead"
        )
    return engine, lambda: None
