"""Queries to try: what each is, and the sequences with their source in ``static/examples.fasta``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Example:
    """An example.

    Parameters
    ----------
    key : str
        In addresses.
    words : str
        What the link says.
    identifiers : tuple of str
        Of the records.
    options : dict of str to str
        What it is searched with, as it would be typed.
    """

    key: str
    words: str
    identifiers: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def fasta(self) -> str:
        """Its sequences."""
        return "".join(_records()[name] for name in self.identifiers)


EXAMPLES = (
    Example("insulin", "Insulin", ("P01308",)),
    Example("lysozyme", "Lysozyme", ("P00698",)),
    Example("globins", "Four globins", ("P69905", "P68871", "P02100", "P02144")),
    Example("glucagon", "A peptide: glucagon", ("P01275_53-81",), {"preset": "short"}),
)


@cache
def _records() -> dict[str, str]:
    """Return the records of the file by identifier; the lines before the first are about the file."""
    text = (files("swsearch.server") / "static" / "examples.fasta").read_text(encoding="ascii")
    records = [f">{each}" for each in text.split("\n>")[1:]]
    return {each[1:].split(maxsplit=1)[0]: each.rstrip("\n") + "\n" for each in records}
