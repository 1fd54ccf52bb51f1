"""Command-line parameters from the rows of option tables."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any

import typer

from swsearch.cli.console import Command, command
from swsearch.errors import OptionError
from swsearch.options.kinds import Choice, Flag, Repeated, ValueKind
from swsearch.options.row import REQUIRED, Heading, Interface, Option, OptionTable, rows_of


class InvalidValue(typer.BadParameter):
    """A value that an option or an argument does not take."""

    def __init__(self, kind: ValueKind, error: OptionError) -> None:
        super().__init__(f"expected {error.expected}")
        self.expected, self.remedy = error.expected, error.remedy
        self.choices = kind.words if isinstance(kind, Choice) else ()


def command_rows(*tables: type[OptionTable], names: str = "", **changes: Mapping[str, Any]) -> dict[str, Option]:
    """Return rows of tables, some with other attributes: those that are named, else all; sorted by their headings."""
    every = [row for table in tables for row in rows_of(table, Interface.COMMAND).values()]
    rows, headings = {row.name: row for row in every}, [None, *Heading]
    order = sorted(names.split() or rows, key=lambda name: headings.index(rows[name].heading))
    return {name: replace(rows[name], **changes.get(name, {})) for name in order}


def takes(*tables: type[OptionTable], names: str = "", **changes: Mapping[str, Any]) -> Callable[[Command], Command]:
    """Make a function with ``**given`` a command with options; the arguments are those of `command_rows`."""
    rows = command_rows(*tables, names=names, **changes)
    options = [_parameter(row) for row in rows.values()]

    def decorate(function: Command) -> Command:
        own = inspect.signature(function, eval_str=True)
        arguments = [each for each in own.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
        run: Any = command(function)
        run.rows, run.__signature__ = rows, own.replace(parameters=[*arguments, *options])
        return run  # type: ignore[no-any-return]

    return decorate


def rows_taken(command: Any) -> Mapping[str, Option]:
    """Return the rows that a command of the parser was given by `takes`."""
    return getattr(command.callback, "rows", {})


def _parameter(row: Option) -> inspect.Parameter:
    """Return an option as typer reads it from a signature."""
    kind, is_flag = row.kind, isinstance(row.kind, Flag)
    is_text = type(kind).parse is ValueKind.parse and not isinstance(kind, Choice)
    names = row.spellings or (row.flag if is_flag and not row.default else "")
    declared = typer.Option(
        *names.split(),
        help=row.help,
        metavar=None if is_flag else row.metavar or kind.metavar,
        parser=None if is_flag or is_text else _parser(row),
        show_default=row.unset or True,
        autocompletion=None if type(kind).complete is ValueKind.complete else kind.complete,
        rich_help_panel=row.heading.value if row.heading else None,
    )
    default: Any = inspect.Parameter.empty
    if row.default is not REQUIRED:
        default = None if row.default in (None, ()) else kind.format(row.default)
    value: Any = bool if is_flag else list[str] if isinstance(kind, Repeated) else str
    annotation: Any = Annotated[value, declared]
    return inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _parser(row: Option) -> Callable[[Any], Any]:
    """Return what typer reads the words of an option with."""
    read = row.kind.check if isinstance(row.kind, Choice) else row.kind.parse_word

    def parse(word: Any) -> Any:
        if not isinstance(word, str):  # a default
            return word
        try:
            return read(row.name, word)
        except OptionError as error:
            raise InvalidValue(row.kind, error) from None

    return parse
