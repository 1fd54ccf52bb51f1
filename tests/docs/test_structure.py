"""Structure of the site: eight groups, each page in one of them, and guides that are short."""

import re

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

LISTS = {"glossary"}
"""Pages of the group Start that are looked up, not read."""


def toctrees():
    """Return the pages of each group of the navigation, by its caption."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    found = re.findall(r"^```\{toctree\}\n:hidden:\n:caption: ([^\n]+)\n\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(found) == text.count("{toctree}")
    return {caption: pages.split() for caption, pages in found}


def test_the_navigation_has_eight_groups():
    assert list(toctrees()) == GROUPS


def test_each_page_is_in_one_group():
    listed = sorted(page for pages in toctrees().values() for page in pages)
    assert listed == sorted(name.removesuffix(".md") for name in PAGES if name != "index.md")


STARTS = {f"{page}.md" for page in toctrees()["Start"] if page not in LISTS}


@pytest.mark.parametrize("name", sorted(STARTS | {name for name in PAGES if name.startswith("howto/")}))
def test_a_guide_is_short(name):
    count = len((DOCS / name).read_text(encoding="utf-8").splitlines())
    assert count <= MAX_GUIDE_LINES
