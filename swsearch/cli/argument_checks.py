"""Checks of the words of a command line before they are parsed.

The error messages are ours, not the parser's. The parser takes ``-out=x`` for ``-o`` with the value ``ut=x``, as
POSIX has it. Here only ``-`` and paths that begin with ``.`` or ``/`` may follow a letter without a blank, so no name
of an option becomes the name of a file. typer takes the classes as ``cls``.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from swsearch.cli import other_programs
from swsearch.cli.console import print_message
from swsearch.cli.other_programs import normalize_option
from swsearch.cli.parameters import InvalidValue, rows_taken
from swsearch.errors import MAX_SHOWN_LENGTH, InputError, OptionError, format_value
from swsearch.options.kinds import Choice, Flag, Repeated
from swsearch.options.row import Option

CONFIG = "--config"
NOT_IN_A_FILE = (CONFIG, "--save-config", "--help")

MAX_CONFIG_BYTES = 4 << 20
"""Bytes of a file that are read; a report has its options at its beginning."""


def words_of_file(
    path: str, options: Mapping[str, Any], given: set[str], rows: Mapping[str, Option]
) -> Iterator[tuple[str, Any, list[str]]]:
    """Yield key, option and words of each option in a file of options.

    Options among ``given``, the first spellings of the command line, are left out, with the options that their rows
    reset. The file is TOML or a report.
    """
    from swsearch.report.headers import settings_in
    from swsearch.run_info import UNSAVED_OPTIONS

    settings = dict(settings_in(_text(path), path))
    accepted = {name: each for name, each in options.items() if name.startswith("--") and name not in NOT_IN_A_FILE}
    replaced = {rows[other].flag for row in rows.values() if row.flag in given for other in row.resets.split()}
    overridden = given | replaced
    missing = settings.pop(UNSAVED_OPTIONS, [])
    if not isinstance(missing, list) or not all(isinstance(each, str) for each in missing):
        raise OptionError(f"{path}: missing", missing, "a list of names of options")
    for name in missing:
        if f"--{name}" not in overridden:
            raise InputError(f"{path}: {UNSAVED_OPTIONS}: the search had --{name}, which is not in the file; give it")
    seen: dict[str, str] = {}
    for key, value in settings.items():
        name = f"--{normalize_option(key)}"
        option = accepted.get(name)
        if option is None:
            close = difflib.get_close_matches(name, accepted, n=1)
            remedy = f"; did you mean {close[0][2:]}?" if close else ""
            raise InputError(f"{path}: {format_value(key)} is no option of swsearch search{remedy}")
        if seen.setdefault(option.opts[0], key) != key:
            raise InputError(f"{path}: got {seen[option.opts[0]]} and {key}, which are the same; leave one out")
        if option.opts[0] not in overridden:
            yield key, option, _words(path, key, rows[option.name], value)


def _text(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_CONFIG_BYTES)
    except OSError as error:
        raise InputError(f"{CONFIG} {path}: {error.strerror or error}, expected a file of options") from None
    try:
        return data.decode("utf-8", "strict" if len(data) < MAX_CONFIG_BYTES else "replace")
    except UnicodeDecodeError:
        raise InputError(f"{CONFIG} {path}: is no text in UTF-8, expected TOML such as evalue = 1e-5") from None


def _words(path: str, key: str, row: Option, value: Any) -> list[str]:
    """Return an option with its value as words of a command line."""
    kind, place = row.kind, f"{path}: {key}"
    if isinstance(kind, Flag):
        if not isinstance(value, bool):
            raise OptionError(place, value, "true or false")
        return [row.flag] if value else []
    expected = f"a text or a number for {row.metavar or kind.metavar}"
    if isinstance(kind, Choice):
        expected = f"one of {', '.join(kind.words)}"
    elif isinstance(kind, Repeated):
        expected += ", or a list of such"
    several = value if isinstance(value, list) and isinstance(kind, Repeated) else [value]
    for each in several:
        if isinstance(each, bool) or not isinstance(each, (str, int, float)) or each == "":
            raise OptionError(place, each, expected)
    return [f"{row.flag}={each}" for each in several]


MIN_SIMILARITY = 0.8
"""Similarity, by `difflib`, from which a word is taken for a misspelt one."""

MIN_NAME_LENGTH = 3
"""Letters of an option's name from which it is recognized."""


class CheckedCommand(TyperCommand):
    """A command whose words are checked, with our error messages."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Check the words, then parse them."""
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        line = _Line(self, ctx)
        own = {spelling: _takes_value(option) for spelling, option in line.options.items()}
        words, notes = other_programs.translated(line.path, args, own, line.rows)
        line.check(words)
        if (file := line.given.get(CONFIG)) is not None:
            words = [*line.options_of_file(file), *words]
            ctx.meta[CONFIG] = line.keys
        try:
            left = super().parse_args(ctx, words)
        except typer.BadParameter as error:
            raise line.translated(error) from None
        if not ctx.params.get("quiet"):
            for note in notes:
                print_message(f"note: {note}")
        return left

    def invoke(self, ctx: Any) -> Any:
        """Run the command; errors name an option as it was typed, or where it stands in a file of options."""
        try:
            return super().invoke(ctx)
        except OptionError as error:
            flag = f"--{error.name.lstrip('-').replace('_', '-')}"
            spellings = {spelling for param in self.params for spelling in param.opts}
            name = ctx.meta.get(CONFIG, {}).get(flag, flag if flag in spellings else error.name)
            raise OptionError(name, error.value, error.expected, error.remedy) from None


class CommandGroup(TyperGroup):
    """A command with subcommands, with the same checks."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Check the words up to the subcommand, then parse them."""
        if args and not ctx.resilient_parsing:
            line = _Line(self, ctx)
            line.check(args)
            if line.words and line.words[0] not in line.commands:
                raise InputError(_no_such_command(line.path, line.words[0], line.commands))
            if not line.words and not line.helps:
                raise InputError(f"{line.path}: expected a command, one of {', '.join(line.commands)}")
        return super().parse_args(ctx, args)


class _Line:
    """The words after a command's name.

    ``path`` is the command with its parents, e.g. ``swsearch db build``. ``words`` are neither options nor their
    values. ``given`` has the last value of each option by its first spelling, empty for a flag. ``options`` has the
    command's options by every spelling. ``helps`` is set by an option that ends the command at once, e.g. ``--help``.
    """

    def __init__(self, command: Any, ctx: typer.Context) -> None:
        self.path = ctx.command_path
        self.rows = rows_taken(command)
        self.words: list[str] = []
        self.given: dict[str, str] = {}
        self.helps = False
        self.keys: dict[str, str] = {}
        """Options of a file, and where they stand there."""
        self.commands = command.list_commands(ctx) if isinstance(command, TyperGroup) else []
        params = command.get_params(ctx)
        self._arguments = [each for each in params if each.param_type_name == "argument"]
        self.options = {
            spelling: each
            for each in params
            if each.param_type_name == "option"
            for spelling in (*each.opts, *each.secondary_opts)
        }
        self._names = {other_programs.normalize_option(each): each for each in self.options if each.startswith("--")}

    def check(self, args: list[str]) -> None:
        """Raise `InputError` for the first word that cannot be meant, or if one is missing."""
        rest = list(args)
        while rest:
            word = rest.pop(0)
            if word == "--":
                self.words += rest
                break
            if word[:1] != "-" or word == "-":
                self.words.append(word)
                if self.commands:
                    break
                continue
            name, equals, value = word.partition("=")
            option = self.options.get(name)
            if option is None or (equals and not name.startswith("--")):
                self._check_short(word, rest)
            elif equals and not _takes_value(option):
                raise InputError(f"{self.path}: {name} takes no value, got {_shorten(value)!r}")
            else:
                self._take(name, option, value if equals else None, rest)
        if not self.helps and not self.commands:
            self._check_missing()

    def options_of_file(self, path: str) -> list[str]:
        """Return the options of a file of options that are not on the command line; raises `InputError`."""
        options: list[str] = []
        for key, option, words in words_of_file(path, self.options, {*self.given}, self.rows):
            self.keys[option.opts[0]] = f"{path}: {key}"
            for word in words:
                self.given[option.opts[0]] = word.partition("=")[2]
            options += words
        return options

    def translated(self, error: Any) -> Exception:
        """Return the parser's error in our words."""
        option = error.param
        if option is None:
            return InputError(f"{self.path}: {error.format_message()}")
        name = self.keys.get(option.opts[0]) or _longest(option.opts)
        arguments = {each.opts[0]: word for each, word in zip(self._arguments, self.words, strict=False)}
        value = (self.given | arguments).get(option.opts[0], "")
        if isinstance(error, InvalidValue):
            return OptionError(name, value, error.expected, error.remedy or _did_you_mean(value, error.choices))
        words = option.metavar.split("|")  # the shells of swsearch completion
        return OptionError(name, value, f"one of {', '.join(words)}", _did_you_mean(value, words))

    def _take(self, name: str, option: Any, value: str | None, rest: list[str]) -> None:
        """Record an option and its value, which may be the next of the remaining words."""
        self.helps = self.helps or option.is_eager
        got = ""
        if value is None and _takes_value(option):
            got = ", got nothing"
            value = rest.pop(0) if rest else ""
            if value in self.options:
                got, value = f", got the option {value}", ""
        if not value and _takes_value(option):
            raise InputError(f"{self.path}: {name} needs a value{got}; expected {_with_value(option)}")
        self.given[option.opts[0]] = value or ""

    def _check_short(self, word: str, rest: list[str]) -> None:
        """Record a word of one-letter options; the last may have a value attached that is - or a path."""
        if word.startswith("--"):
            raise InputError(self._no_such_option(word, rest))
        for place, letter in enumerate(word[1:], 1):
            option = self.options.get(f"-{letter}")
            if option is None:
                raise InputError(self._no_such_option(word, rest))
            attached = word[place + 1 :]
            if attached[:1] == "=":
                if not _takes_value(option):
                    raise InputError(f"{self.path}: -{letter} takes no value, got {_shorten(attached[1:])!r}")
                name, value = _longest(option.opts), shlex.quote(_shorten(attached[1:]))
                raise InputError(
                    f"{self.path}: got {_shorten(word)}; did you mean {name} {value}, or -{letter} {value}?"
                )
            if not _takes_value(option):
                self._take(f"-{letter}", option, None, rest)
                continue
            if attached and attached != "-" and attached[0] not in "./":
                raise InputError(self._not_attached(word, place, rest))
            self._take(f"-{letter}", option, attached or None, rest)
            break

    def _not_attached(self, word: str, place: int, rest: list[str]) -> str:
        """Return the message for a letter with a value attached, which could be another option's name."""
        if self._spells_a_name(word[1:].partition("=")[0]):
            return self._no_such_option(word, rest)
        separated = f"{word[: place + 1]} {shlex.quote(_shorten(word[place + 1 :]))}"
        return f"{self.path}: got {_shorten(word)}, expected a blank after -{word[place]}; did you mean {separated}?"

    def _spells_a_name(self, name: str) -> bool:
        """Return whether a word with one dash is the name of an option, ours or another program's."""
        others = other_programs.advice_of(self.path, self.rows)
        stem = other_programs.normalize_option(re.match("[A-Za-z_-]*", name)[0])  # type: ignore[index]
        if other_programs.normalize_option(name) in others or stem in others:
            return True
        return len(stem) >= MIN_NAME_LENGTH and any(
            each[:2] == stem[:2] for each in _similar_names(stem, self._names)
        )

    def _no_such_option(self, word: str, rest: list[str]) -> str:
        """Return the message for an unknown option, with the likely one."""
        name, equals, value = word.partition("=")
        following = rest[0] if not equals and rest and rest[0][:1] != "-" else value
        problem = f"{self.path} has no option {_shorten(name)}"
        normalized = other_programs.normalize_option(name)
        advice_by_name = other_programs.advice_of(self.path, self.rows)
        advice = advice_by_name.get(normalized, "")
        if not advice and re.fullmatch("-[A-Za-z][0-9].*", word):  # a letter with its number attached: -k10
            advice, following = advice_by_name.get(word[1], ""), word[2:]
        if normalized not in self._names and advice:
            option, *with_value = advice.split()
            if option not in self.options or len(with_value) > 1:
                return f"{problem}: {advice}"
            if with_value:
                return f"{problem}; did you mean {advice}?"
            meant = [advice]
        else:
            meant = [self._names[each] for each in _similar_names(normalized, self._names)]
        if not meant and self.commands:
            return f"{problem}; options follow a command, one of {', '.join(self.commands)}"
        if not meant:
            return f"{problem}; {self.path} --help lists what there is"
        one = self.options[meant[0]]
        value_text = (
            f" {shlex.quote(_shorten(following))}" if following and len(meant) == 1 and _takes_value(one) else ""
        )
        return f"{problem}; did you mean {' or '.join(meant)}{value_text}?"

    def _check_missing(self) -> None:
        """Raise `InputError` where a word is missing, or one is too many."""
        names = [(each.metavar or each.name.upper()).strip("[]").removesuffix("...") for each in self._arguments]
        if not any(each.nargs == -1 for each in self._arguments) and len(self.words) > len(names):
            further = shlex.quote(_shorten(self.words[len(names)]))
            expected = " and ".join(names) or "no arguments"
            raise InputError(f"{self.path}: got {further} in addition, expected {expected}; quote values with blanks")
        needed = [name for name, each in zip(names, self._arguments, strict=True) if each.required]
        if len(self.words) < len(needed):
            raise InputError(
                f"{self.path}: {needed[len(self.words)]} is missing, expected {self.path} {' '.join(needed)}; "
                f"{self.path} --help describes it"
            )
        for option in self.options.values():
            if option.required and option.opts[0] not in self.given:
                raise InputError(f"{self.path}: {_with_value(option)} is missing; {self.path} --help describes it")


def _shorten(text: str) -> str:
    """Return the beginning of what was typed, if it is long."""
    return text if len(text) <= MAX_SHOWN_LENGTH else f"{text[:MAX_SHOWN_LENGTH]}..."


def _takes_value(option: Any) -> bool:
    return not option.is_flag and not option.count


def _longest(spellings: Iterable[str]) -> str:
    """Return the name that says most: the first with two dashes, where there is one."""
    spelled = list(spellings)
    return next((each for each in spelled if each.startswith("--")), spelled[0])


def _with_value(option: Any) -> str:
    """Return an option and what its value is called; the words of a choice would be many."""
    return f"{_longest(option.opts)} {'VALUE' if option.metavar[0] == '<' else option.metavar}"


def _similar_names(word: str, words: Collection[str]) -> list[str]:
    """Return what a word may be meant for, the likeliest first: the same, a beginning, or much alike."""
    if word in words:
        return [word]
    if len(word) >= MIN_NAME_LENGTH and (started := [each for each in words if each.startswith(word)]):
        return started[:2]
    return difflib.get_close_matches(word, words, n=2, cutoff=MIN_SIMILARITY)


def _did_you_mean(word: str, words: Collection[str]) -> str:
    similar = _similar_names(word.lower(), words)
    return f"did you mean {' or '.join(similar)}?" if similar else ""


def _no_such_command(path: str, name: str, commands: list[str]) -> str:
    problem = f"{path} has no command {_shorten(name)!r}"
    if advice := other_programs.program(name):
        return f"{problem}; {advice}"
    other = other_programs.command(path, name)
    alike = [f"{path} {each}" for each in _similar_names(name.lower(), commands)]
    if meant := [other] if other else alike:
        return f"{problem}; did you mean {' or '.join(meant)}?"
    return f"{problem}; expected one of {', '.join(commands)}"
