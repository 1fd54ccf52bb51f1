"""Docstrings begin with the thing they name or with a verb, never with a clause."""

import re

from conftest import ROOT

CLAUSE = re.compile(r'"""\s*(?:What|Who|Whoever|Be told|Take note|Let go|Give back) .*')

FOLDERS = ("swsearch", "db", "benchmarks", "packaging", "tests")


def test_no_docstring_begins_with_a_clause():
    assert CLAUSE.search('"""What it is."""')
    paths = [
        path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")) if path.name != "test_prose.py"
    ]
    assert len(paths) > 500
    assert [f"{path}: {line}" for path in paths for line in CLAUSE.findall(path.read_text(encoding="utf-8"))] == []
