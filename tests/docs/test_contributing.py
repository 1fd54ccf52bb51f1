"""CONTRIBUTING.md and the READMEs of the rooms name what is there: files, names in them, modules and commands."""

import importlib.util
import os
import re
import shlex
from configparser import ConfigParser
from itertools import pairwise

import pytest
from conftest import ROOT

PAGES = ("CONTRIBUTING.md", "cpu/README.md", "cuda/README.md", "benchmarks/README.md", "packaging/README.md")

SUFFIXES = r"py|pyi|cfg|toml|md|cpp|hpp|cu|cuh|sh|txt|json|js|css|png|c(?=$)"

PATH = re.compile(rf"(?:[\w.-]+/)+(?:[\w.-]+)?|[\w-]+\.(?:{SUFFIXES})")
"""A folder with its slash, a file with its folder, or a file's bare name."""

IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::)\w+)*")

ELSEWHERE = {"blast_stat.c", "build/docs/index.html"}
"""Files of other projects, and what is made."""


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def without_blocks(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def quoted(text):
    """Return what stands in backquotes, but for the labels of links, whose targets are tested with all links."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"\[`[^]]*\]\(", "", text))


def found(path, page, folders):
    """Return what a path may mean: from the root, from the page's room, or beside what was named before it."""
    home = (ROOT / page).parent
    bases = {ROOT, home, *folders}
    if home != ROOT:
        bases |= {folder for folder in home.rglob("*") if folder.is_dir()}
    if re.search(r"(NAME|toy)\.", path):  # a file to be written: its folder is there
        path = path.rpartition("/")[0] or "."
    return sorted({base / path for base in bases if (base / path).exists()})


def paths_of(section, page):
    """Yield the paths that a section names, each with what it means there."""
    folders = set()
    for token in quoted(section):
        if PATH.fullmatch(token) and token not in ELSEWHERE:
            there = found(token, page, folders)
            folders |= {each if each.is_dir() else each.parent for each in there}
            yield token, there


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_it_names_exists(page):
    named = [each for section in re.split(r"^#+ ", without_blocks(text_of(page)), flags=re.MULTILINE)
             for each in paths_of(section, page)]  # fmt: skip
    assert len(named) > 5
    assert [path for path, there in named if not there] == []


def items(section):
    """Return a section's numbered items, each as one text."""
    return re.findall(r"^\d+\. .*(?:\n   .*)*", section, re.MULTILINE)


def additions():
    """Return the sections that say how to add something, by their heading."""
    text = text_of("CONTRIBUTING.md").split("## How to add", 1)[1].split("\n## ", 1)[0]
    return {part.partition("\n")[0]: part for part in text.split("\n### ")[1:]}


@pytest.mark.parametrize("heading", [heading for heading, section in additions().items() if items(section)])
def test_what_is_to_be_edited_is_in_the_file_that_is_named(heading):
    section = additions()[heading]
    files = dict(paths_of(section, "CONTRIBUTING.md"))
    checked = 0
    for item in items(section):
        named = [each for token in quoted(item) for each in files.get(token, []) if each.is_file()]
        texts = [each.read_text(encoding="utf-8") for each in named]
        for token in quoted(item):
            if token in files or token in ELSEWHERE or not IDENTIFIER.fullmatch(token):
                continue
            last = re.split(r"\.|::", token)[-1]
            assert any(re.search(rf"\b{last}\b", text) for text in texts), f"{token} is in none of {named}"
            checked += 1
    assert checked


def test_the_homes_of_the_recurrence_have_their_functions():
    table = re.findall(r"^\| `(\S+)`(?:: `(\S+)`)? \|", text_of("CONTRIBUTING.md"), re.MULTILINE)
    functions = [(path, name) for path, name in table if name]
    assert len(functions) > 5
    for path, name in functions:
        assert re.search(rf"\b{name.rpartition('::')[2]}\(", text_of(path)), f"{path}: {name}"


@pytest.mark.parametrize("page", PAGES)
def test_every_module_that_it_runs_exists(page):
    for name in re.findall(r"python -m (benchmarks\.[\w.]+)", text_of(page)):
        assert importlib.util.find_spec(name) is not None, name


def test_the_list_of_benchmarks_is_whole():
    listed = re.findall(r"^\| `(\w+\.\w+)` \|", text_of("benchmarks/README.md"), re.MULTILINE)
    assert len(listed) == len(set(listed))
    for name in listed:
        assert (ROOT / "benchmarks" / f"{name.replace('.', '/')}.py").is_file(), name
    rooms = {name.partition(".")[0] for name in listed}
    scripts = {
        f"{room}.{path.stem}"
        for room in rooms
        for path in (ROOT / "benchmarks" / room).glob("*.py")
        if '\nif __name__ == "__main__":' in path.read_text(encoding="utf-8")
    }
    assert scripts == set(listed)


def commands(page):
    """Return the lines of a page's blocks, without comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL)
    return [words for block in blocks for line in block.splitlines() if (words := shlex.split(line, comments=True))]


@pytest.mark.parametrize("page", PAGES)
def test_every_script_that_it_runs_can_be_run(page):
    for words in commands(page):
        if "/" in words[0]:
            assert os.access(ROOT / words[0], os.X_OK), words[0]


PYTEST = [words[1:] for page in PAGES for words in commands(page) if words[0] == "pytest"]
"""Arguments of the test commands that are named."""


@pytest.mark.parametrize("arguments", [each for each in PYTEST if each and "tests" in each[0]], ids=" ".join)
def test_every_test_command_finds_tests(arguments):
    path, _, name = arguments[0].partition("::")
    assert (ROOT / path).exists()
    words = [name.partition("[")[0], *(word for option, word in pairwise(arguments) if option == "-k")]
    if any(words):
        text = (ROOT / path).read_text(encoding="utf-8")
        assert all(word in text for word in words)


def test_marks_that_are_named_exist():
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg")
    marks = {line.partition(":")[0] for line in settings["tool:pytest"]["markers"].strip().splitlines()}
    expressions = [words[words.index("-m") + 1] for words in PYTEST if "-m" in words]
    assert {name for text in expressions for name in re.findall(r"\w+", text)} <= {*marks, "not", "and", "or"}
    assert {mark for mark in marks if f"`{mark}`" in text_of("CONTRIBUTING.md")} == marks != set()
