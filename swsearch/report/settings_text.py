"""The options of a search as text: TOML, which ``swsearch search --config`` reads, and where reports hold it."""

from __future__ import annotations

import json
import re
from html import escape, unescape
from typing import Any

from swsearch.errors import InputError, printable
from swsearch.report.base import Writer
from swsearch.results import SearchResult
from swsearch.run_info import OptionValues, RunInfo

JSON_KEY = "options"
"""Of an object of JSON lines."""

_BLOCK = re.compile(r'<pre id="options">(.*?)</pre>', re.DOTALL)


class OptionsWriter(Writer):
    """The options of the search as TOML, which ``swsearch search --config`` takes; no hits."""

    needs_alignments = False

    def begin(self, run: RunInfo) -> None:
        """Write the options."""
        self._stream.write(toml_of(run))

    def write(self, result: SearchResult) -> None:
        """Write nothing of a query."""


def toml_of(run: RunInfo) -> str:
    """Return the options of a search as TOML."""
    lines = [f"# Options of a search by swsearch {run.version}: swsearch search QUERIES SUBJECTS --config FILE"]
    lines += [f"{name} = {_value(value)}" for name, value in run.settings.items()]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):  # as JSON has it; but TOML takes neither DEL nor halves of surrogate pairs
        text = json.dumps(value.encode("utf-8", "replace").decode("utf-8"), ensure_ascii=False)
        return text if printable(text) == text else "".join(map(_escaped, text))
    return json.dumps(value)


def _escaped(character: str) -> str:
    return character if printable(character) == character else f"\\u{ord(character):04X}"


def html_of(run: RunInfo) -> str:
    """Return the options of a search as a part of a page; empty where they are not known."""
    if not run.settings:
        return ""
    text = escape(toml_of(run)).encode("ascii", "xmlcharrefreplace").decode("ascii")
    return (
        "<details><summary>Options for another search</summary>\n"
        "<p>As a file, or by this report itself: <code>swsearch search QUERIES SUBJECTS --config FILE</code></p>\n"
        f'<pre id="options">{text}</pre>\n</details>\n'
    )


def settings_in(text: str, name: str) -> OptionValues:
    """Return the options that a file holds: TOML, or a report of ``html`` or ``jsonl``.

    Parameters
    ----------
    text : str
        The file, or enough of its beginning.
    name : str
        Of the file, for messages.

    Raises
    ------
    InputError
        If it is none of these.
    """
    if text.lstrip()[:1] == "{":
        return _of_json(text.lstrip().partition("\n")[0], name)
    if text.lstrip()[:9].lower() == "<!doctype":
        block = _BLOCK.search(text)
        if block is None:
            raise InputError(
                f"{name}: got an HTML page without options, expected a report of swsearch search, or TOML"
            )
        text = unescape(block[1])
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{name}: not TOML: {error}; expected lines such as evalue = 1e-5") from None


def _of_json(line: str, name: str) -> OptionValues:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    options = found.get(JSON_KEY) if isinstance(found, dict) else None
    if not isinstance(options, dict):
        raise InputError(f"{name}: got JSON without {JSON_KEY!r}, expected a report of --outfmt jsonl, or TOML")
    return options
