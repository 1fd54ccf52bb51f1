"""Fields of the search form: the options of the table in groups, and a field for the text of a matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from swsearch.alphabet import PROTEIN
from swsearch.matrices import GAP_COSTS, OTHER_GAP_COSTS, PRESET_MATRICES
from swsearch.options.kinds import ValueKind, Widget
from swsearch.options.row import Heading, Option, rows_of
from swsearch.pipeline.table.scoring import QueryTable
from swsearch.pipeline.table.search import SearchTable
from swsearch.scoring import usable_matrices

NOT_ON_THE_PAGE = {
    "distribution": "always asked for, since the report draws it",
    "inclusion": "rules that the command line has no options for either",
    "keep_next": "saves profiles, which no page shows; iterations of one search have theirs inside",
}
"""Options that the form has no field for, and why."""

GROUP_TITLES = {
    each.name.lower(): each.value
    for each in (
        Heading.QUERIES, Heading.SCORING, Heading.HITS, Heading.FILTERS, Heading.TRANSLATION, Heading.ITERATIONS
    )
}  # fmt: skip
"""Groups of fields in their order; "main" stands above them."""


@dataclass(frozen=True)
class PageField:
    """A field of the form.

    ``default`` is what an empty field means; of a choice, the word that is selected first.
    """

    name: str
    label: str
    help: str
    widget: Widget
    default: str
    choices: tuple[tuple[str, str], ...]
    group: str
    kind: ValueKind

    @classmethod
    def of(cls, row: Option) -> PageField:
        """Return the field of an option."""
        form = row.form
        assert form is not None and row.heading is not None
        choices = tuple((form.choices or {}).items())
        default = f"{row.default:g}" if isinstance(row.default, float) else str(row.default)
        if isinstance(row.default, bool):
            default = ""
        elif row.default is None:
            default = form.unset or row.unset
        if row.name == "matrix":
            default = ""
        return cls(
            row.name, form.label, form.help or row.help, row.kind.widget, default, choices,
            form.group or row.heading.name.lower(), row.kind,
        )  # fmt: skip

    def value_of(self, text: str) -> Any:
        """Return typed text as a request has it; None where it is what an empty field means.

        Raises
        ------
        OptionError
            If it is no number where one is expected.
        """
        trimmed = text.strip()
        if not trimmed or (self.widget == "choice" and trimmed == self.default):
            return None
        value = text if self.widget == "text" else self.kind.parse(self.name, trimmed)
        return None if value == [] or value is False else value


FORM_FIELDS: Mapping[str, PageField] = {
    row.name: PageField.of(row)
    for row in (*rows_of(QueryTable).values(), *rows_of(SearchTable).values())
    if row.form is not None
} | {
    "matrix_text": PageField(
        "matrix_text",
        "Custom matrix",
        "In NCBI's format: letters above the columns and before the rows. It overrides all other matrices.",
        "text",
        "",
        (),
        "scoring",
        ValueKind(),
    )
}
"""Every field of an option, by name."""


def fields_of(group: str) -> list[PageField]:
    """Return the fields of a group, in their order."""
    return [each for each in FORM_FIELDS.values() if each.group == group]


def choices_of(field: PageField) -> tuple[tuple[str, str], ...]:
    """Return the words of a menu with their labels."""
    if field.name == "matrix":
        own = (("", "from the preset"),)
        return own + tuple((name, f"{name} ({opened}/{extended})") for name, opened, extended in costs())
    return field.choices


@cache
def costs() -> tuple[tuple[str, int, int], ...]:
    """Return every matrix with the gap costs that go with it, those that are shipped first."""
    names = (*GAP_COSTS, *(name for name in usable_matrices(PROTEIN) if name not in GAP_COSTS))
    return tuple((name, *GAP_COSTS.get(name, OTHER_GAP_COSTS)) for name in names)


def costs_of_preset(preset: str) -> tuple[int, int]:
    """Return the gap costs that go with a preset's matrix."""
    return GAP_COSTS[PRESET_MATRICES[preset]]  # type: ignore[index]  # the form has no other words
