"""The house as CONTRIBUTING.md states it: which room may import which, no circle, and sizes.

Imports are parsed: those inside functions and those for type checking alone count like all others.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

PACKAGES = {"swsearch": ROOT / "swsearch", "swsearch.db": ROOT / "db"}
"""Where the installed packages stand in the checkout."""

MOST_LINES, MOST_PARAMETERS, LONGEST_FILE = 60, 8, 600

PUBLIC = "the public API, whose options are its parameters"

EXCEPTIONS = {
    "swsearch.api.search": PUBLIC,
    "swsearch.api.score": PUBLIC,
    "swsearch.api.align": PUBLIC,
    "swsearch.db.building.build_database": PUBLIC,
    "swsearch.db.database.Database.build": PUBLIC,
    "swsearch.options.row.option": "declares a row: a parameter for each attribute",
}
"""Functions that may be longer or take more, and why."""

Imports = dict[str, set[str]]


def modules(packages: Mapping[str, Path] = PACKAGES) -> dict[str, Path]:
    """Every module by its name."""
    found: dict[str, Path] = {}
    for package, folder in packages.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join([package, *(part for part in parts if part != "__init__")])] = path
    return found


@cache
def parsed(path: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.AST, known: Mapping[str, Path]) -> set[str]:
    """The modules of ours that a module names in import statements, wherever they stand."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name what they import from the package's root"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                names.add(inner if inner in known else str(node.module))
    return names & known.keys()


def imports_of(found: Mapping[str, Path]) -> Imports:
    """Which module imports which."""
    return {name: imported(parsed(path), found) - {name} for name, path in found.items()}


def circle(arrows: Mapping[str, Iterable[str]]) -> list[str]:
    """Some modules, each of which imports the next and the last the first; none is an empty list."""
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return path[path.index(name) :]
        if name in done:
            return []
        for target in sorted(arrows.get(name, ())):
            if found := visit(target, [*path, name]):
                return found
        done.add(name)
        return []

    return next((found for name in sorted(arrows) if (found := visit(name, []))), [])


def room_of(module: str) -> str:
    """The folder or file at the top that a module is in."""
    return module.split(".")[1] if "." in module else module


def stated_order() -> list[list[str]]:
    """The floors of CONTRIBUTING.md, the lowest first."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    match = re.search(r"^## Order$.*?^```text$\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert match is not None, "CONTRIBUTING.md has no block under the heading Order"
    return [re.split(r",\s*", line.strip()) for line in match[1].splitlines() if line.strip()]


def against(order: list[list[str]], arrows: Imports) -> Iterator[str]:
    """The imports that do not lead to a lower floor."""
    floor = {room: number for number, rooms in enumerate(order) for room in rooms}
    for name, targets in arrows.items():
        for target in sorted(targets):
            here, there = room_of(name), room_of(target)
            if here != there and not floor.get(there, 99) < floor.get(here, -1):
                yield f"{name} imports {target}"


@pytest.fixture(scope="module")
def arrows() -> Imports:
    found = imports_of(modules())
    assert len(found) > 100
    assert "swsearch.db.format" in found
    # the package's own file names everything that is public, and is above all
    return {name: targets for name, targets in found.items() if name not in ("swsearch", "swsearch.__main__")}


def test_no_module_is_in_a_circle(arrows: Imports) -> None:
    assert circle(arrows) == []


def test_no_room_is_in_a_circle(arrows: Imports) -> None:
    rooms: Imports = {}
    for name, targets in arrows.items():
        rooms.setdefault(room_of(name), set()).update(room_of(target) for target in targets)
    assert circle({room: targets - {room} for room, targets in rooms.items()}) == []


def test_imports_follow_the_stated_order(arrows: Imports) -> None:
    order = stated_order()
    stated = [room for rooms in order for room in rooms]
    assert sorted(stated) == sorted({room_of(name) for name in arrows}), "every room stands in the order once"
    assert list(against(order, arrows)) == []


def test_nothing_imports_the_package_itself(arrows: Imports) -> None:
    assert [name for name, targets in arrows.items() if "swsearch" in targets] == []


def test_a_circle_and_an_upward_arrow_would_be_seen(tmp_path: Path) -> None:
    texts = {
        "low": "from __future__ import annotations\n",
        "middle": "def late():\n    from swsearch.high import x\n    return x\n",
        "high": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import swsearch.middle\nx = 1\n",
        "top": "from swsearch import low\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    found = imports_of(modules({"swsearch": tmp_path}))
    assert found["swsearch.top"] == {"swsearch.low"}
    assert sorted(circle(found)) == ["swsearch.high", "swsearch.middle"]
    order = [["low"], ["middle"], ["high"], ["top"]]
    assert list(against(order, found)) == ["swsearch.middle imports swsearch.high"]
    assert list(against([["top"], ["low"]], {"swsearch.top": {"swsearch.low"}})) == [
        "swsearch.top imports swsearch.low"
    ]


def functions(tree: ast.AST, inside: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every function with its full name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from functions(node, f"{inside}.{node.name}")
        elif isinstance(node, ast.FunctionDef):
            yield f"{inside}.{node.name}", node
            yield from functions(node, f"{inside}.{node.name}")


def code_lines(node: ast.FunctionDef) -> int:
    """Lines of a function's body, without its docstring."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return node.end_lineno - body[0].lineno + 1 if body and node.end_lineno else 0


def n_parameters(node: ast.FunctionDef) -> int:
    """Parameters, but for the object itself."""
    names = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def too_large() -> dict[str, str]:
    """The functions that are too long or take too much."""
    found: dict[str, str] = {}
    for module, path in modules().items():
        for name, node in functions(parsed(path), module):
            lines, parameters = code_lines(node), n_parameters(node)
            if lines > MOST_LINES or parameters > MOST_PARAMETERS:
                found[name] = f"{lines} lines, {parameters} parameters"
    return found


def test_functions_fit_a_screen() -> None:
    found = too_large()
    assert {name: size for name, size in found.items() if name not in EXCEPTIONS} == {}
    assert sorted(found) == sorted(EXCEPTIONS), "an exception that is none any more"


def test_files_are_short() -> None:
    long = {name: n for name, path in modules().items() if (n := len(path.read_text().splitlines())) > LONGEST_FILE}
    assert long == {}
