"""Docstrings begin with the thing they name or with a verb, never with a clause."""

import ast
import re

import pytest
from conftest import ROOT

CLAUSE = re.compile(r"(What|Who|Whoever|Be told|Take note|Let go|Give back) ")

FOLDERS = ("swsearch", "db", "benchmarks", "packaging", "tests")


def beginnings(folder):
    """Yield place and first line of each docstring, also of those below constants and fields."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", text.strip().partition("\n")[0]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_docstring_begins_with_a_clause(folder):
    found = list(beginnings(folder))
    assert len(found) > 10
    assert [f"{place}: {line}" for place, line in found if CLAUSE.match(line)] == []
