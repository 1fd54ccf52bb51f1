"""Command-line parameters from the rows of option tables."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

import typer

from swsearch.cli.console import Command
from swsearch.errors import OptionError
from swsearch.options.kinds import Choice, Flag, Repeated, ValueKind
from swsearch.options.row import REQUIRED, Heading, Interface, Option, OptionTable, rows_of


class Refused(typer.BadParameter):
    """A value that an option does not take."""

    def __init__(self, expected: str, remedy: str = "") -> None:
        super().__init__(f"expected {expected}")
        self.expected, self.remedy = expected, remedy


def command_rows(*tables: type[OptionTable], names: str = "", **changes: Mapping[str, Any]) -> dict[str, Option]:
    """Return rows of tables, some with other attributes: those that are named, else all; sorted by their headings."""
    every = [row for table in tables for row in rows_of(table, Interface.COMMAND).values()]
    rows, headings = {row.name: row for row in every}, [None, *Heading]
    order = sorted(names.split() or rows, key=lambda name: headings.index(rows[name].heading))
    return {name: replace(rows[name], **changes.get(name, {})) for name in order}


def takes(rows: Mapping[str, Option]) -> Callable[[Command], Command]:
    """Give a command with ``**given`` its options."""
    parameters = [_parameter(row) for row in rows.values()]

    def decorate(function: Command) -> Command:
        function.rows = rows  # type: ignore[attr-defined]
        own = inspect.signature(function, eval_str=True)
        arguments = [each for each in own.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
        function.__signature__ = own.replace(parameters=[*arguments, *parameters])  # type: ignore[attr-defined]
        return function

    return decorate


def rows_taken(command: Any) -> Mapping[str, Option]:
    """Return the rows that a command of the parser was given by `takes`."""
    return getattr(command.callback, "rows", {})


def files_of(rows: Iterable[Option], given: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of files that hold values of options, by option."""
    return {row.name: given[row.name] for row in rows if row.kind.is_file and isinstance(given.get(row.name), str)}


def _parameter(row: Option) -> inspect.Parameter:
    """Return an option as typer reads it from a signature."""
    kind, is_word = row.kind, isinstance(row.kind, (Choice, Flag))
    is_text = type(kind).parse is ValueKind.parse
    names = row.spellings or (row.flag if isinstance(kind, Flag) and not row.default else "")
    declared = typer.Option(
        *names.split(),
        help=row.help,
        metavar=None if isinstance(kind, Flag) else row.metavar or kind.metavar or None,
        parser=None if is_word or is_text else _parser(row),
        show_default=row.unset or True,
        autocompletion=None if type(kind).complete is ValueKind.complete else kind.complete,
        rich_help_panel=row.heading.value if row.heading else None,
    )
    default: Any = inspect.Parameter.empty
    if row.default is not REQUIRED:
        default = None if row.default in (None, ()) else kind.format(row.default)
    annotation: Any = Annotated[_type_of(kind), declared]
    return inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _type_of(kind: ValueKind) -> Any:
    """Return the type of a parameter for typer, which takes no unions; a parser needs none."""
    if isinstance(kind, Choice):
        return Literal[kind.words]
    if isinstance(kind, Flag):
        return bool
    return list[str] if isinstance(kind, Repeated) else str


def _parser(row: Option) -> Callable[[Any], Any]:
    def parse(word: Any) -> Any:
        if not isinstance(word, str):  # a default
            return word
        try:
            return row.kind.parse_word(row.name, word)
        except OptionError as error:
            raise Refused(error.expected, error.remedy) from None

    return parse
