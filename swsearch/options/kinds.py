"""Kinds of option values: checking, parsing, formatting and description.

Values have four sources: Python (`ValueKind.check`), JSON (`ValueKind.check_json`), the text of a form or query
string, which `ValueKind.parse` turns into JSON, and the words of the command line and of TOML files, which
`ValueKind.parse_word` turns into Python. Every method raises `OptionError` for a value that it cannot use. Numbers
may be written as ``5M``, ``1e9``, ``1,000,000``, ``50 %`` or ``2G``. Their readers return finite numbers, or None for
other text; each option checks its own range.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from swsearch.errors import OptionError, check_choice, check_finite, check_flag, check_integer

if TYPE_CHECKING:
    from decimal import Decimal


MAX_INTEGER = 10**18
"""Largest magnitude of an integer: it fits 64 bits, and no count comes near it."""

COUNT_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
"""Units of counts."""

BYTE_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
"""Units of sizes in bytes."""

_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:[,_]\d{3})+|\d{1,99})?(?:\.\d{1,99}|\.)?(?:e[+-]?\d{1,4})?", re.ASCII | re.I)


def parse_decimal(text: str) -> Decimal | None:
    """Parse digits with an optional point, exponent and groups of three."""
    from decimal import Decimal

    trimmed = text.strip()
    if not _NUMBER.fullmatch(trimmed) or not re.match(r"[+-]?\.?\d", trimmed):
        return None
    return Decimal(re.sub("[,_]", "", trimmed))


def parse_integer(text: str) -> int | None:
    """Parse an integer of at most 18 digits with an optional unit of counts."""
    number = _parse_scaled(text.strip().upper(), COUNT_UNITS)
    return None if number is None or number != int(number) else int(number)


def parse_size(text: str) -> int | None:
    """Parse a number of bytes, such as ``512M`` or ``1.5GiB``; a fraction of a byte is dropped."""
    number = _parse_scaled(text.strip().upper().removesuffix("B").removesuffix("I"), BYTE_UNITS)
    return None if number is None or number < 1 else int(number)


def parse_real(text: str) -> float | None:
    """Parse a finite number; None for one so small that it would become 0."""
    number = parse_decimal(text)
    if number is None or not math.isfinite(float(number)) or (number and not float(number)):
        return None
    return float(number)


def _parse_scaled(text: str, units: dict[str, int]) -> Decimal | None:
    unit = text[-1:] if text[-1:] in units else ""
    number = parse_decimal(text.removesuffix(unit))
    if number is None or not -MAX_INTEGER <= number * units[unit] <= MAX_INTEGER:
        return None
    return number * units[unit]


Widget = Literal["choice", "whole", "real", "percentage", "flag", "lines", "text", "words"]
"""Input of a form: a menu, a field for a kind of number, a tick box, a large or a small text field."""

JsonSchema = dict[str, Any]

YES, NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0", "")
"""Text that sets or clears a flag, in lower case."""

MAX_POSITION = 10**9
"""Largest position of a residue in an option; it fits a whole chromosome."""


class ValueKind:
    """Any text."""

    metavar: ClassVar[str] = "TEXT"
    python_type: ClassVar[str] = "str"
    """Type in a docstring."""
    widget: ClassVar[Widget] = "words"
    is_file: ClassVar[bool] = False
    """Whether text names a file that holds the value. A server never reads such a file for a request."""

    def check(self, name: str, value: Any) -> Any:
        """Validate a Python value and return it as options hold it."""
        if not isinstance(value, str):
            raise OptionError(name, value, "a text")
        return value

    def check_json(self, name: str, value: Any) -> Any:
        """Validate a JSON value without reading any file."""
        if self.is_file and isinstance(value, str):
            raise OptionError(name, value, "the value itself, not the name of a file")
        return self.check(name, value)

    def parse(self, name: str, text: str) -> Any:
        """Parse text of a form or query string."""
        return text.strip()

    def parse_word(self, name: str, word: str) -> Any:
        """Parse a word of the command line."""
        return word if self.is_file else self.parse(name, word)

    def format(self, value: Any) -> Any:
        """Return a TOML value that `parse_word` reads back; None if there is no such value."""
        return value

    def describe(self, value: Any) -> int | float | str:
        """Return what the header of a report says."""
        described: int | float | str = self.format(value)
        return described

    def fingerprint(self, value: Any) -> Any:
        """Return a short JSON value for a checkpoint, equal only for equal values."""
        return self.format(value)

    def schema(self) -> JsonSchema:
        """Return the JSON Schema of values that `check_json` accepts."""
        return {"type": "string"}

    def complete(self, prefix: str) -> list[str]:
        """Return completions for a shell."""
        return []


class Flag(ValueKind):
    """True or False."""

    python_type: ClassVar[str] = "bool"
    widget: ClassVar[Widget] = "flag"

    def check(self, name: str, value: Any) -> bool:
        check_flag(name, value)
        return bool(value)

    def parse(self, name: str, text: str) -> bool:
        word = text.strip().lower()
        if word not in (*YES, *NO):
            raise OptionError(name, text, "true or false")
        return word in YES

    def schema(self) -> JsonSchema:
        return {"type": "boolean"}


class Choice(ValueKind):
    """One of several words."""

    widget: ClassVar[Widget] = "choice"

    def __init__(self, *words: str) -> None:
        self.words = words

    @property
    def metavar(self) -> str:  # type: ignore[override]
        return f"<{'|'.join(self.words)}>"

    @property
    def python_type(self) -> str:  # type: ignore[override]
        return "{" + ", ".join(f'"{word}"' for word in self.words) + "}"

    def check(self, name: str, value: Any) -> str:
        check_choice(name, value, self.words)
        return str(value)

    def schema(self) -> JsonSchema:
        return {"type": "string", "enum": list(self.words)}

    def complete(self, prefix: str) -> list[str]:
        return [word for word in self.words if word.startswith(prefix)]


class Integer(ValueKind):
    """An integer from ``low`` to ``high``; ``expected`` is the range in words."""

    metavar: ClassVar[str] = "N"
    python_type: ClassVar[str] = "int"
    widget: ClassVar[Widget] = "whole"

    def __init__(self, low: int = -MAX_INTEGER, high: int = MAX_INTEGER, expected: str = "") -> None:
        self.low, self.high, self.expected = low, high, expected

    def check(self, name: str, value: Any) -> int:
        return check_integer(name, value, self.low, self.high, self._range)

    @property
    def _range(self) -> str:
        if self.expected or self.low == -MAX_INTEGER:
            return self.expected or "a whole number"
        return (
            f"an integer >= {self.low:,}"
            if self.high == MAX_INTEGER
            else f"a whole number from {self.low:,} to {self.high:,}"
        )

    def parse(self, name: str, text: str) -> int:
        number = parse_integer(text)
        if number is None:
            expected = self.expected or "a whole number of at most 18 digits, such as 500, 5k or 1e6"
            raise OptionError(name, text, expected)
        return number

    def schema(self) -> JsonSchema:
        ends = {"minimum": self.low, "maximum": self.high}
        return {"type": "integer", **{name: end for name, end in ends.items() if abs(end) < MAX_INTEGER}}


class ByteSize(Integer):
    """A number of bytes."""

    metavar: ClassVar[str] = "SIZE"

    def __init__(self) -> None:
        super().__init__(1)

    def parse(self, name: str, text: str) -> int:
        number = parse_size(text)
        if number is None:
            raise OptionError(name, text, "a size such as 512M or 2G")
        return number

    def format(self, value: int) -> str:
        unit = next(unit for unit, size in reversed(BYTE_UNITS.items()) if value % size == 0)
        return f"{value // BYTE_UNITS[unit]}{unit}"


class Real(ValueKind):
    """A finite number, optionally above 0; ``expected`` is the range in words."""

    metavar: ClassVar[str] = "NUMBER"
    python_type: ClassVar[str] = "float"
    widget: ClassVar[Widget] = "real"

    def __init__(self, is_positive: bool = False, expected: str = "") -> None:
        self.is_positive, self.expected = is_positive, expected

    def check(self, name: str, value: Any) -> float:
        expected = self.expected or ("a number > 0" if self.is_positive else "a number")
        number = check_finite(name, value, expected)
        if self.is_positive and number <= 0:
            raise OptionError(name, value, expected)
        return number

    def parse(self, name: str, text: str) -> float:
        number = parse_real(text)
        if number is None:
            raise OptionError(name, text, self.expected or "a number, such as 10, 0.001 or 1e-5")
        return number

    def schema(self) -> JsonSchema:
        return {"type": "number", "exclusiveMinimum": 0} if self.is_positive else {"type": "number"}


class Percentage(ValueKind):
    """A number from 0 to 100."""

    metavar: ClassVar[str] = "PERCENT"
    python_type: ClassVar[str] = "float"
    widget: ClassVar[Widget] = "percentage"
    expected: ClassVar[str] = "a percentage, 0 to 100"

    def check(self, name: str, value: Any) -> float:
        number = check_finite(name, value, self.expected)
        if not 0 <= number <= 100:
            raise OptionError(name, value, self.expected)
        return number

    def parse(self, name: str, text: str) -> float:
        number = parse_real(text.strip().removesuffix("%"))
        if number is None:
            raise OptionError(name, text, self.expected)
        return number

    def schema(self) -> JsonSchema:
        return {"type": "number", "minimum": 0, "maximum": 100}


class QueryRange(ValueKind):
    """The first and last residue of a part of a sequence, counted from 1."""

    metavar: ClassVar[str] = "FIRST-LAST"
    python_type: ClassVar[str] = "(int, int) or str"
    expected: ClassVar[str] = "first and last residue, counted from 1, such as 10-80"

    def check(self, name: str, value: Any) -> tuple[int, int]:
        ends = value
        if isinstance(value, str) and (match := re.fullmatch(r"\s*(\d{1,10})\s*-\s*(\d{1,10})\s*", value, re.ASCII)):
            ends = int(match[1]), int(match[2])
        is_pair = isinstance(ends, (list, tuple)) and len(ends) == 2
        if not is_pair or any(isinstance(end, bool) or not hasattr(end, "__index__") for end in ends):
            raise OptionError(name, value, self.expected)
        first, last = (end.__index__() for end in ends)
        if not 1 <= first <= last <= MAX_POSITION:
            raise OptionError(name, value, self.expected, "the first is above the last" if first > last else "")
        return first, last

    def format(self, value: tuple[int, int]) -> str:
        return f"{value[0]}-{value[1]}"

    def schema(self) -> JsonSchema:
        pair = {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 2, "maxItems": 2}
        return {"anyOf": [{"type": "string", "pattern": "^[0-9]+-[0-9]+$"}, pair]}


class Repeated(ValueKind):
    """Texts of an option that may be given several times."""

    def check(self, name: str, value: Any) -> tuple[str, ...]:
        return tuple(super(Repeated, self).check(name, text) for text in value or ())


Mode = Literal["local", "global", "semiglobal"]
"""Alignment mode: local (Smith-Waterman), global (Needleman-Wunsch) or semiglobal (end gaps are free)."""

MODES: tuple[Mode, ...] = get_args(Mode)

Preset = Literal["default", "sensitive", "short"]
"""Matrix and gap costs for a purpose: ``default`` as blastp, ``sensitive`` for distant homologs
(benchmarks/results/preset.txt), ``short`` as blastp-short, for peptides."""

PRESETS: tuple[Preset, ...] = get_args(Preset)

SearchPreset = Literal["default", "sensitive", "short", "context"]
"""Those of a search: with ``context`` each residue of a query is scored by its neighbours
(benchmarks/results/contexts.txt)."""

SearchTask = Literal["default", "short"]
"""``short`` combines the preset and the E-value threshold of blastp-short."""

JobState = Literal["queued", "running", "done", "failed", "cancelled"]
"""State of a job on a server."""

JOB_STATES: tuple[JobState, ...] = get_args(JobState)

AlphabetName = Literal["protein", "dna", "3di", "tea"]
"""Alphabet of sequences."""

SubjectAlphabet = Literal["protein", "3di", "tea"]
"""Alphabet of the subjects of a database: amino acids, or letters of structure, Foldseek's or TEA's."""

Mask = Literal["none", "lower", "tantan"]
"""Residues that are masked: none, those in lower case, or low complexity."""

MASKS: tuple[Mask, ...] = get_args(Mask)

SubjectMask = Literal["database", "none", "lower", "tantan"]
"""Mask of subjects; ``database`` is the mask that the database was built with."""

SortKey = Literal["evalue", "score"]
"""Order of hits: by E-value, or by score."""

StatisticsMethod = Literal["auto", "published", "fitted", "none"]
"""Source of E-values. ``published``: BLAST's Karlin-Altschul constants; ``fitted``: shuffled sequences
(`swsearch.statistics.null_model`); ``auto``: fitted, in every mode."""

Strand = Literal["both", "plus", "minus"]
"""Strands of DNA that are translated."""

PairStrategy = Literal["greedy", "complete"]
"""Whether a taxon needs hits of two chains, or of all, to pair rows of theirs."""

Predictor = Literal["af3", "boltz", "chai", "colabfold", "protenix", "openfold3"]
"""Structure predictors that files of alignments are written for."""

PairSelection = Literal["one", "order", "all"]
"""Pairs to align: the only two sequences, the i-th of one input with the i-th of the other, or every combination."""

QueryFormat = Literal[
    "auto", "fasta", "a3m", "fasta-aligned", "stockholm", "clustal", "pssm", "asn", "hmm", "hhm", "json"
]
"""Format of a query file; ``auto`` recognizes it by its content."""

QUERY_FORMATS: tuple[QueryFormat, ...] = get_args(QueryFormat)

OnDuplicate = Literal["error", "skip", "keep"]
"""Policy for records with the same identifier: reject them, keep the first, or keep all."""

EngineChoice = Literal["auto", "gpu", "cpu", "reference"]
"""Engine; ``reference`` is the slow oracle for tests."""

ENGINES: tuple[EngineChoice, ...] = get_args(EngineChoice)

ProgressKind = Literal["auto", "bar", "lines", "json", "none"]
"""Style of progress reports on stderr."""
