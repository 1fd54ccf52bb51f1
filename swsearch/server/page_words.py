"""Messages in the words of the page: labels of fields in place of options, parameters and their values."""

from __future__ import annotations

import re
from collections.abc import Iterable

from swsearch.options.row import FormField, rows_of
from swsearch.pipeline.table.scoring import QueryTable
from swsearch.pipeline.table.search import SearchTable

FORM_ROWS = {
    row.name: row for table in (QueryTable, SearchTable) for row in rows_of(table).values() if row.form is not None
}
"""Options with a field in the form."""

_FORMS: dict[str, FormField] = {name: row.form for name, row in FORM_ROWS.items() if row.form is not None}

LABELS = {"queries": "Queries", "database": "Databases", "title": "Name", "matrix_text": "Custom matrix"} | {
    name: form.label for name, form in _FORMS.items()
}
"""Labels of the form's fields."""

LOOKS_LIKE_DNA = (
    f'This looks like DNA. Tick "{LABELS["translate"]}" for a translated search, or tick "{LABELS["allow_dna"]}".'
)

_CHOICES = {
    name: {word: label for word, label in (form.choices or {}).items() if word} for name, form in _FORMS.items()
}


def _any_of(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


_WORDS = _any_of({word for choices in _CHOICES.values() for word in choices})

_OPTION = re.compile(
    r"(?:(?P<verb>add|pass|use|leave out|name it:) )?--(?P<name>[a-z][a-z-]+)"
    rf"(?: (?P<values>(?:{_WORDS})(?: or (?:{_WORDS}))*)(?![\w-]))?"
    r"(?: \(in Python [^()]*(?:\([^()]*\)[^()]*)*\))?"
)
"""An option of the command line, with its value, and as Python has it."""

_PARAMETER = re.compile(
    rf"(?<!['\w])(?:({_any_of(LABELS)}) '({_WORDS})'|"
    rf"({_any_of({name for name in LABELS if '_' in name} | {'evalue', 'dbsize'})})(?![\w'.-]))"
)
"""A parameter of Python and JSON with a word as its value, or one that is no word of English."""

_REWRITES = (
    (re.compile(r", or its text: \{.*?\}"), ""),
    (re.compile(r"; [^;]*(?:--[a-z]|swsearch [a-z]+ )[^;]*"), ""),  # advice for administrators
)


def in_page_words(message: str) -> str:
    """Return a message with labels in place of options, without advice that needs another interface."""
    if "holds only letters of DNA" in message:
        return LOOKS_LIKE_DNA
    message = _OPTION.sub(_label_option, message)
    for pattern, instead in _REWRITES:
        message = pattern.sub(instead, message)
    return _PARAMETER.sub(_label_parameter, message)


def _label_option(found: re.Match[str]) -> str:
    name, verb = found["name"].replace("-", "_"), found["verb"] or ""
    if name not in FORM_ROWS:
        return found[0]
    if found["values"]:
        values = " or ".join(f'"{_CHOICES[name].get(word, word)}"' for word in found["values"].split(" or "))
        return f'choose {values} in "{LABELS[name]}"'
    if FORM_ROWS[name].kind.widget == "flag" and verb:
        verb = "untick" if verb == "leave out" else "tick"
    return f'{verb} "{LABELS[name]}"'.lstrip()


def _label_parameter(found: re.Match[str]) -> str:
    name, value = found[1] or found[3], found[2]
    return f'"{LABELS[name]}"' + (f' set to "{_CHOICES[name].get(value, value)}"' if value else "")


def with_choices(message: str, name: str) -> str:
    """Return a message about a field with the labels of its choices: quoted words, and all of what was expected."""
    choices = _CHOICES.get(name)
    if not choices:
        return message
    words = _any_of(choices)
    got, separator, remedy = message.partition("; ")
    if got.startswith("got "):
        got = re.sub(rf"(?<![\w'-])({words})(?![\w'-])", lambda found: choices[found[1]], got)
    return re.sub(rf"'({words})'", lambda found: f'"{choices[found[1]]}"', got + separator + remedy)
