"""Options and commands of other programs: aliases, options without effect, advice.

``other_programs.toml`` is read when a command line has an option or a command that is not ours; other names of our
options are in their rows. ``-max_target_seqs 5``, ``--max-target-seqs 5`` and ``--max_target_seqs=5`` are all
``--max-hits 5``. A name with another meaning here is not an alias.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from swsearch.errors import MAX_SHOWN_LENGTH, InputError, OptionError
from swsearch.options.kinds import parse_decimal
from swsearch.options.row import Option

FIRST_ARGUMENT, OTHER_ARGUMENTS, TASK = "QUERIES", "SUBJECTS", "--task"

NUMBER, ANY_VALUE = "a number", "a value"
"""Values of an option without effect that are no list of words."""

SEVERAL = ("db", "in")
"""Names whose value is a list of files, separated by blanks."""


@cache
def _tables() -> dict[str, Any]:
    """Return what ``other_programs.toml`` holds."""
    import tomllib
    from importlib.resources import files

    return tomllib.loads((files("swsearch.cli") / "other_programs.toml").read_text(encoding="utf-8"))


def normalize_option(name: str) -> str:
    """Return a name without what programs write differently: dashes before it, underscores, and case of words."""
    bare = name.lstrip("-").replace("_", "-")
    return bare.lower() if len(bare) > 1 else bare


@cache
def _options(path: str) -> dict[str, Any]:
    """Return what the table says of each option of others in a command."""
    own = dict(_tables().get(path, {}))
    tables = [*(_tables()[each] for each in own.pop("also", ())), own]
    return {
        normalize_option(name): entry for each in tables for names, entry in each.items() for name in names.split()
    }


def options_without_effect(path: str) -> dict[str, dict[str, str]]:
    """Return the options that a command takes and that do nothing, by name."""
    return {name: entry for name, entry in _options(path).items() if isinstance(entry, dict) and "no-effect" in entry}


def aliases_of(path: str, rows: Mapping[str, Option]) -> dict[str, str]:
    """Return what each name of BLAST that is taken is in a command with these options."""
    entries = {name: entry for name, entry in _options(path).items() if isinstance(entry, dict)}
    arguments = {name: entry["argument"] for name, entry in entries.items() if "argument" in entry}
    return arguments | {name: row.flag for row in rows.values() for name in row.blast.split()}


def advice_of(path: str, rows: Mapping[str, Option]) -> dict[str, str]:
    """Return what each option of other programs is in a command: an option of ours, or a sentence."""
    own = {row.key for row in rows.values()}
    ours = {
        name: row.flag
        for row in rows.values()
        for name in map(normalize_option, row.others.split())
        if name not in own
    }
    sentences = {name: entry for name, entry in _options(path).items() if isinstance(entry, str)}
    return dict.fromkeys(("version", "V"), "swsearch --version shows it") | ours | sentences


def command(path: str, name: str) -> str:
    """Return the command of ours that another's is; empty if there is none."""
    commands = _tables()["commands"].get(path, {})
    return next((ours for ours, theirs in commands.items() if normalize_option(name) in theirs.split()), "")


def program(name: str) -> str:
    """Return what to say of another program that no single command replaces; empty if there is nothing."""
    return next(
        (advice for theirs, advice in _tables()["programs"].items() if normalize_option(name) in theirs.split()), ""
    )


def translated(
    path: str, args: Sequence[str], own: Mapping[str, bool], rows: Mapping[str, Option]
) -> tuple[list[str], list[str]]:
    """Return a command line in our words, queries first and databases last, and notes on options without effect.

    ``own`` has the spellings of the command's options, and whether each takes a value, which is not changed.
    """
    queries, first = list[str](), ""
    subjects: list[str] = []
    words: list[str] = []
    notes: list[str] = []
    rest = list(args)
    while rest and rest[0] != "--":
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        ours = more = ""
        if name[:1] == "-" and name != "-" and (name not in own or name == TASK):
            if note := _note_of(path, word, rest):
                notes.append(note)
                continue
            ours, _, more = _ours(name, path, own, rows).partition(" ")
        if not equals and rest and (ours or own.get(name)):
            value, equals = rest.pop(0), " "
        if ours in (FIRST_ARGUMENT, OTHER_ARGUMENTS) and not value:
            raise InputError(f"{path}: {name} needs a value, expected the name of a file")
        if ours == FIRST_ARGUMENT:
            if queries:
                twice = f"{name} is there twice" if name == first else f"got {first} and {name}"
                raise InputError(f"{path}: {twice}, expected one file of queries")
            queries, first = [_path(value), *more.split()], name
        elif ours == OTHER_ARGUMENTS:
            subjects += [_path(each) for each in (value.split() if normalize_option(name) in SEVERAL else [value])]
        elif ours:
            words += [f"{ours}={_value(name, value)}" if equals else ours]
        else:
            words += [name, value] if equals == " " else [word]
    return [*queries, *words, *subjects, *rest], notes


def _note_of(path: str, word: str, rest: list[str]) -> str:
    """Return a note on an option without effect, and remove its value from `rest`; empty if it is another option."""
    name, equals, value = word.partition("=")
    entry = options_without_effect(path).get(normalize_option(name))
    if entry is None:
        return ""
    reason, values = entry["no-effect"], entry.get("values", "")
    if not values:
        if equals:
            raise InputError(f"{path}: {name} takes no value, got {value[:MAX_SHOWN_LENGTH]!r}")
        return f"{name} has no effect: {reason}"
    if not equals and rest and rest[0] != "--":
        value = rest.pop(0)
    expected = values if values in (NUMBER, ANY_VALUE) else values.split()[0]
    if not value:
        raise InputError(f"{path}: {name} needs a value, expected {expected}")
    is_fine = parse_decimal(value) is not None if values == NUMBER else value.lower() in values.split()
    if not is_fine and values != ANY_VALUE:
        raise OptionError(name, value, expected, entry.get("otherwise", ""))
    return f"{name} {value[:MAX_SHOWN_LENGTH]} has no effect: {reason}"


def _ours(name: str, path: str, own: Mapping[str, bool], rows: Mapping[str, Option]) -> str:
    """Return what an option is here; empty if it is no alias, such as a cluster of letters."""
    aliases = aliases_of(path, rows)
    if not aliases or len(name) < 3 or name != name.lower():
        return ""
    bare = normalize_option(name)
    if bare in aliases or name[:2] != "--":
        return aliases.get(bare, "")
    return next((each for each in own if own[each] and each[:2] == "--" and normalize_option(each) == bare), "")


def _path(value: str) -> str:
    """Return a file's name so that it is not taken for an option."""
    return f"./{value}" if value[:1] == "-" and value != "-" else value


def _value(name: str, value: str) -> str:
    """Return what a value of BLAST's is here."""
    bare = normalize_option(name)
    if bare == "task" and value in ("blastp-fast", "blastx-fast", "tblastn-fast"):
        raise OptionError(
            TASK, value, "default or short", f"no words are looked for, which {value} has longer ones of"
        )
    ours: str = _tables()["values"].get(bare, {}).get(value, value)
    return ours
