"""``--config FILE``: options from a file, which the command line overrides."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from swsearch.cli.other_programs import normalize_option
from swsearch.errors import InputError, OptionError, format_value
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
    known = {name: each for name, each in options.items() if name.startswith("--") and name not in NOT_IN_A_FILE}
    replaced = {rows[other].flag for row in rows.values() if row.flag in given for other in row.resets.split()}
    taken = given | replaced
    missing = settings.pop(UNSAVED_OPTIONS, [])
    if not isinstance(missing, list) or not all(isinstance(each, str) for each in missing):
        raise OptionError(f"{path}: missing", missing, "a list of names of options")
    for name in missing:
        if f"--{name}" not in taken:
            raise InputError(f"{path}: {UNSAVED_OPTIONS}: the search had --{name}, which is not in the file; give it")
    seen: dict[str, str] = {}
    for key, value in settings.items():
        name = f"--{normalize_option(key)}"
        option = known.get(name)
        if option is None:
            close = difflib.get_close_matches(name, known, n=1)
            remedy = f"; did you mean {close[0][2:]}?" if close else ""
            raise InputError(f"{path}: {format_value(key)} is no option of swsearch search{remedy}")
        if seen.setdefault(option.opts[0], key) != key:
            raise InputError(f"{path}: got {seen[option.opts[0]]} and {key}, which are the same; leave one out")
        if option.opts[0] not in taken:
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
