"""Option tables: data classes whose fields have rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from dataclasses import Field as DataclassField
from enum import Enum, Flag, auto
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self, TypeVar, dataclass_transform, get_args, get_origin

from swsearch.options import kinds
from swsearch.options.kinds import JsonSchema, ValueKind

OptionValue = TypeVar("OptionValue")


class Heading(Enum):
    """Headings of the help, in their order."""

    QUERIES = "Queries"
    SCORING = "Scoring"
    HITS = "Hits and E-values"
    FILTERS = "Filters"
    TRANSLATION = "Translated search"
    ITERATIONS = "Iterated search (as PSI-BLAST)"
    ALIGNMENTS = "Rows of an alignment"
    OUTPUT = "Output"
    RUNNING = "Running"
    LISTENING = "Network and access"
    LIMITS = "Limits"


class Interface(Flag):
    """Interfaces that have an option. TOML files take the options of the command line."""

    COMMAND = auto()
    PYTHON = auto()
    SERVER = auto()


class Header(Enum):
    """When headers of reports state an option."""

    NEVER = auto()
    """The header has another line for it, or the option does not affect hits."""
    CHANGED = auto()
    ALWAYS = auto()
    """Unless the option has no effect."""


EVERYWHERE = Interface.COMMAND | Interface.PYTHON | Interface.SERVER
ONLY_COMMAND = Interface.COMMAND
NO_SERVER = Interface.COMMAND | Interface.PYTHON
NO_COMMAND = Interface.PYTHON | Interface.SERVER


@dataclass(frozen=True, eq=False, repr=False)
class FormField:
    """An option on the server's page.

    ``help`` and ``unset`` default to those of the option. ``choices`` maps each word of a choice to its label, in the
    order of the menu. ``group`` is the group of fields; it defaults to that of the option's heading.
    """

    label: str
    help: str = ""
    unset: str = ""
    choices: Mapping[str, str] | None = None
    group: str = ""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Option:
    """A row: all that is known of an option."""

    name: str = ""
    """Name in ``snake_case``: the first of `spellings`, or else that of the field."""
    kind: ValueKind = ValueKind()
    default: Any = None
    help: str
    """Help text for the command line, the documentation and OpenAPI."""
    python: str
    """Help text for Python, if it differs."""
    unset: str
    """Meaning of a default of None."""
    metavar: str
    interfaces: Interface
    decides: bool
    """Whether results depend on it: then a checkpoint keeps it."""
    header: Header
    requires: str
    """Option without which this one has no effect."""
    resets: str
    """Options of a file that this one replaces on the command line."""
    spellings: str
    """Names on the command line, the longest first, where they are not just ``--name``."""
    blast: str
    """Names of the same option of BLAST, accepted as aliases."""
    others: str
    """Names of such options of other programs, for "did you mean"."""
    url: str
    """Name in BLAST's URL API."""
    form: FormField | None
    heading: Heading | None

    @property
    def key(self) -> str:
        """Name in a TOML file."""
        return self.name.replace("_", "-")

    @property
    def flag(self) -> str:
        """Name on the command line."""
        return f"--{self.key}"

    @property
    def description(self) -> str:
        """Help with the meaning of the default."""
        return f"{self.help} By default: {self.unset}." if self.unset else self.help

    def check(self, value: Any) -> Any:
        """Validate a Python value; None stands for a default of None."""
        name = self.flag if self.interfaces is Interface.COMMAND else self.name
        return None if value is None and self.default is None else self.kind.check(name, value)

    def schema(self) -> JsonSchema:
        """Return the JSON Schema with description and default."""
        schema = {**self.kind.schema(), "description": self.description}
        return schema if self.default is None else {**schema, "default": self.default}


def option(
    default: OptionValue,
    help: str,
    kind: ValueKind | None = None,
    *,
    python: str = "",
    unset: str = "",
    metavar: str = "",
    interfaces: Interface | None = None,
    decides: bool = True,
    header: Header = Header.CHANGED,
    requires: str = "",
    resets: str = "",
    spellings: str = "",
    blast: str = "",
    others: str = "",
    url: str = "",
    form: FormField | None = None,
    heading: Heading | None = None,
) -> OptionValue:
    """Declare the field of a table. The kind follows from the annotation unless it is given; see `Option`."""
    row = Option(
        help=help, python=python, unset=unset, metavar=metavar, interfaces=interfaces or Interface(0),
        decides=decides, header=header, requires=requires, resets=resets, spellings=spellings, blast=blast,
        others=others, url=url,
        form=form, heading=heading,
    )  # fmt: skip
    return field(default=default, metadata={"row": row, "kind": kind})


REQUIRED: Any = MISSING
"""Default of an option that must be given."""


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=False)
class OptionTable:
    """Options as fields: each subclass becomes a data class, frozen and with keywords only.

    Each value is checked by its kind; a subclass checks combinations. Annotations of fields must not be strings,
    unless the field names its kind.
    """

    HEADING: ClassVar[Heading | None] = None
    """Heading of options that name none."""
    INTERFACES: ClassVar[Interface] = EVERYWHERE
    """Interfaces of options that name none."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init_subclass__(cls, *, init: bool = True, eq: bool = False, repr: bool = False) -> None:
        dataclass(frozen=True, kw_only=True, init=init, eq=eq, repr=repr)(cls)

    def __post_init__(self) -> None:
        for name, row in rows_of(type(self)).items():
            object.__setattr__(self, name, row.check(getattr(self, name)))

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """Return a table with those of the values that it has options for."""
        return cls(**{name: values[row.name] for name, row in rows_of(cls).items() if row.name in values})


_ROWS: dict[tuple[type[OptionTable], Interface | None], Mapping[str, Option]] = {}


def rows_of(table: type[OptionTable], interface: Interface | None = None) -> Mapping[str, Option]:
    """Return the rows of a table by field, in its order; only those of an interface if one is given."""
    if (table, interface) not in _ROWS:
        if interface is None:
            rows = {each.name: _complete(table, each) for each in fields(table) if "row" in each.metadata}
        else:
            rows = {name: row for name, row in rows_of(table).items() if interface in row.interfaces}
        _ROWS[table, interface] = MappingProxyType(rows)
    return _ROWS[table, interface]


def _complete(table: type[OptionTable], declared: DataclassField[Any]) -> Option:
    """Complete a row from its field and its table."""
    row: Option = declared.metadata["row"]
    kind = declared.metadata["kind"] or _kind_of(declared.type)
    owner: Any = next(
        base for base in reversed(table.__mro__) if declared.name in vars(base).get("__annotations__", ())
    )
    name = row.spellings.partition(" ")[0].removeprefix("--").replace("-", "_") or declared.name
    return replace(
        row, name=name, kind=kind, default=declared.default, heading=row.heading or owner.HEADING,
        interfaces=row.interfaces or owner.INTERFACES,
    )  # fmt: skip


def _kind_of(annotation: Any) -> ValueKind:
    """Return the kind of values of a type."""
    if get_origin(annotation) is not Literal:
        annotation = next((each for each in get_args(annotation) if each is not type(None)), annotation)
    if get_origin(annotation) is Literal:
        return kinds.Choice(*get_args(annotation))
    return {bool: kinds.Flag(), int: kinds.Integer(), float: kinds.Real()}.get(annotation, ValueKind())
