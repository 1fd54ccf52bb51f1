"""Structure of the site: eight groups, each page in one of them, and guides that are short."""

import re
from pathlib import Path

import pytest

from support.docs_blocks import DOCS, PAGES

GROUPS = [
    "Start",
    "Search",
    "Results and databases",
    "Run it",
    "Coming from",
    "Reference",
    "Background",
    "Developers",
]

MAX_GUIDE_LINES = 130

LISTS = {"glossary.md"}
"""Pages of the group Start that are looked up, not read."""


TOCTREE = re.compile(r"^```\{toctree\}\n:hidden:\n(?::caption: ([^\n]+)\n)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def toctrees(name):
    """Return the pages of each table of contents in a page, by its caption."""
    text = (DOCS / name).read_text(encoding="utf-8")
    found = TOCTREE.findall(text)
    assert len(found) == text.count("{toctree}")
    folder = Path(name).parent
    return {caption: [(folder / page_of(line)).as_posix() for line in lines.splitlines()] for caption, lines in found}


def page_of(line):
    """Return the page that a line of a table of contents names, with or without a title."""
    return re.fullmatch(r"(?:.* <)?([\w/-]+)>?", line)[1] + ".md"


def test_the_navigation_has_eight_groups():
    assert list(toctrees("index.md")) == GROUPS


def test_each_page_is_in_one_group():
    listed = sorted(page for name in PAGES for pages in toctrees(name).values() for page in pages)
    assert listed == [name for name in PAGES if name != "index.md"]


STARTS = set(toctrees("index.md")["Start"]) - LISTS


@pytest.mark.parametrize("name", sorted(STARTS | {name for name in PAGES if name.startswith("howto/")}))
def test_a_guide_is_short(name):
    count = len((DOCS / name).read_text(encoding="utf-8").splitlines())
    assert count <= MAX_GUIDE_LINES
