"""Every relative link of the README, of CONTRIBUTING.md and of the documentation leads somewhere, anchors too."""

import re
import subprocess
import sys
from functools import cache

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "docs" / "extensions"))
from generated import PLACE, contributing, readme


def tracked():
    """Return the checkout's pages; without git all that are there."""
    listed = subprocess.run(["git", "ls-files", "*.md"], capture_output=True, text=True, cwd=ROOT, check=False)
    if listed.returncode == 0 and listed.stdout:
        return listed.stdout.split()
    folders = ("", "docs/**/", "cpu/", "cuda/", "benchmarks/", "examples/**/")
    return sorted({path.relative_to(ROOT).as_posix() for folder in folders for path in ROOT.glob(f"{folder}*.md")})


PAGES = tracked()

LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)")


WHOLE = {"readme": readme, "contributing": contributing}
"""The parts of generated pages that have the headings of another page."""


def prose(page):
    """Return a page without its blocks of code."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


@cache
def anchors(page):
    """Return what headings of a page are linked by, as GitHub and MyST make it."""
    text = (ROOT / page).read_text(encoding="utf-8")
    text = PLACE.sub(lambda place: WHOLE[place[1]]() if place[1] in WHOLE else "", text)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page, text):
    """Yield the links of a page that lead nowhere."""
    for target in LINK.findall(text):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        if not file.exists() or (anchor and anchor not in anchors(file.resolve().relative_to(ROOT).as_posix())):
            yield target


def test_the_pages_are_found():
    assert {"README.md", "CONTRIBUTING.md", "docs/reference/python.md", "cpu/README.md"} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page):
    assert list(broken(page, prose(page))) == []


def test_a_broken_link_would_be_seen():
    said = "[a](docs/nowhere.md) [b](README.md#nothing) [c](#quick-start) [d](docs/contributing.md#an-engine) [e](https://a.b/c)"
    assert list(broken("README.md", said)) == ["docs/nowhere.md", "README.md#nothing"]


FOLDERS = "benchmarks", "examples", "packaging", "tests"
SCRIPTS = [".ci/run", *(str(path.relative_to(ROOT)) for name in FOLDERS for path in (ROOT / name).rglob("*.sh"))]


@pytest.mark.parametrize("script", SCRIPTS)
def test_files_that_a_script_names_are_there(script):
    text = (ROOT / script).read_text(encoding="utf-8")
    names = re.findall(
        r"(?<![\w/.$\"*])(?:tests|benchmarks|docs|examples|packaging|swsearch|cuda|cpu)/[\w./-]+\.\w+", text
    )
    assert [name for name in names if not (ROOT / name).exists()] == []
