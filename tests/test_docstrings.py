"""What docstrings and comments promise: shapes of arrays, names that exist, and one meaning per name.

Sources are parsed; only what a docstring names is imported.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

PACKAGES = {"swsearch": ROOT / "swsearch", "swsearch.db": ROOT / "db"}
"""Where the installed packages stand in the checkout."""

ARRAY = re.compile(r"\bndarray\b|\bArrayLike\b|\bNDArray\b|\b\w*Array\b")
"""Annotations that mean an array: numpy's own, and the aliases, whose names end so."""

NO_SHAPE = {"swsearch.engines.gpu.pairs.handles.PairHandles.download"}
"""Functions of the GPU engine that name no shape yet."""

SHARED_NAMES = {
    "MIB": "the GPU's plan of memory and the builder of databases know no common module of sizes",
    "PAIR": "a kernel's table of pairs, and a direction of a trace",
    "STOP": "the direction of a trace that ends it, as the kernels of the search and of the study have it",
    "log": "the logger of a module",
    "router": "routes of a module, which the application includes",
}
"""Names that stand in several modules, and why."""

NAME = re.compile(r"(?<![`\w])`([A-Za-z_][\w.]*\w)(?:\(\))?`(?!`)")
"""A name in single backticks."""

PATH = re.compile(r"(?<![\w/.])((?:cpu|cuda|db|swsearch|tests|benchmarks|docs|examples)/[\w./-]*\w)")
"""A file or folder of the checkout."""

OTHERS = {"Bio", "bz2", "pytest", "recurrence", "struct", "subprocess"}
"""What `Names` does not hold: other people's modules, and a header of ``cuda/`` by its name alone."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def parsed(path: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def walked(tree: ast.Module) -> list[ast.AST]:
    """All nodes of a syntax tree."""
    return list(ast.walk(tree))


def trees(pattern: str = "*.py", packages: Mapping[str, Path] = PACKAGES) -> dict[str, ast.Module]:
    """Every module by its name, parsed."""
    found = {}
    for package, folder in packages.items():
        for path in sorted(folder.rglob(pattern)):
            parts = [part for part in path.relative_to(folder).with_suffix("").parts if part != "__init__"]
            found[".".join([package, *parts])] = parsed(path)
    return found


def public_functions(body: list[ast.stmt], name: str) -> Iterator[tuple[str, Function]]:
    """Functions and methods without a leading underscore, in classes without one."""
    for node in body:
        if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
            if isinstance(node, ast.ClassDef):
                yield from public_functions(node.body, f"{name}.{node.name}")
            else:
                yield f"{name}.{node.name}", node


def annotations(function: Function) -> str:
    """What a function takes and returns, as it is written."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    nodes = [each.annotation for each in every if each is not None] + [function.returns]
    return " ".join(ast.unparse(node) for node in nodes if node is not None)


def names_a_shape(docstring: str, known: dict[str, str]) -> bool:
    """Whether a docstring gives a shape, itself or in the docstring that it refers the reader to."""
    while match := re.match(r"See `(\w+\.\w+)`", docstring):
        docstring = known[match[1]]
    return "shape" in docstring


def test_arrays_have_shapes() -> None:
    functions = {name: node for module, tree in trees().items() for name, node in public_functions(tree.body, module)}
    known = {".".join(name.split(".")[-2:]): ast.get_docstring(node) or "" for name, node in functions.items()}
    takes_arrays = {name: node for name, node in functions.items() if ARRAY.search(annotations(node))}
    assert len(takes_arrays) > 100
    silent = {name for name, node in takes_arrays.items() if not names_a_shape(ast.get_docstring(node) or "", known)}
    assert silent == NO_SHAPE


def assigned(node: ast.stmt) -> list[str]:
    """The names that a statement binds."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    every = [each for one in targets for each in (one.elts if isinstance(one, ast.Tuple) else [one])]
    return [one.id for one in every if isinstance(one, ast.Name)]


def defined_names(tree: ast.Module) -> set[str]:
    """The classes and constants of a module, but for those of its own."""
    names = {name for node in tree.body for name in assigned(node)}
    names |= {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    return {name for name in names if not name.startswith("_")}


def test_a_class_or_constant_has_a_name_of_its_own() -> None:
    homes = defaultdict(set)
    for module, tree in trees().items():
        for name in defined_names(tree):
            homes[name].add(module)
    shared = {name: sorted(modules) for name, modules in homes.items() if len(modules) > 1}
    assert shared.keys() == SHARED_NAMES.keys(), shared


class Names:
    """What the sources define, by name: modules, what stands in them, and what their classes have."""

    def __init__(self) -> None:
        self.classes: dict[str, set[str]] = defaultdict(set)
        self.plain: set[str] = set()
        self.dotted: set[str] = set()
        self.endings: set[str] = set()
        """The last two parts of the dotted names."""
        bases: dict[str, list[str]] = {}
        for module, tree in {**trees(), **trees("*.pyi"), **trees(packages={"tests": ROOT / "tests"})}.items():
            self.dotted.add(module)
            self.plain |= set(module.split("."))
            for node in tree.body:
                names = [node.name] if isinstance(node, ast.ClassDef | Function) else assigned(node)
                self.dotted |= {f"{module}.{name}" for name in names}
            for node in walked(tree):
                if isinstance(node, ast.ImportFrom):
                    self.dotted |= {f"{module}.{alias.name}" for alias in node.names}
                self.plain |= names_in(node)
                if isinstance(node, ast.ClassDef):
                    self.classes[node.name] |= (own := members(node))
                    self.dotted |= {f"{module}.{node.name}.{name}" for name in own}
                    bases[node.name] = [base.id for base in node.bases if isinstance(base, ast.Name)]
        self.endings = {".".join(name.split(".")[-2:]) for name in self.dotted}
        for _ in range(3):  # as many generations of bases
            for name, parents in bases.items():
                for base in parents:
                    self.classes[name] |= self.classes.get(base, set())

    def know(self, name: str) -> bool:
        """Say whether a name is that of something: ``swsearch.blocks.LANES``, ``Chunk.lanes`` or ``lanes``."""
        first, _, rest = name.partition(".")
        if first == "swsearch":
            return name in self.dotted
        if first in self.classes and rest:
            return rest in self.classes[first]
        if name in self.endings:
            return True
        return first in OTHERS or (not rest and name in self.plain)


def members(node: ast.ClassDef) -> set[str]:
    """Methods and attributes of a class, those that methods give to self included."""
    found = {name for each in node.body for name in assigned(each)}
    found |= {each.name for each in node.body if isinstance(each, Function)}
    return found | {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == "self"
    }


def names_in(node: ast.AST) -> set[str]:
    """The names that a node defines or takes as parameters."""
    if isinstance(node, ast.ClassDef | Function):
        return {node.name}
    if isinstance(node, ast.arg):
        return {node.arg}
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return {node.id}
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return {node.attr}
    if isinstance(node, ast.alias):
        return {(node.asname or node.name).split(".")[0]}
    return set()


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The docstrings, attributes' too, and the comments of a file, with their lines."""
    for node in walked(parsed(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if "# " in line:
            yield number, line.split("# ", 1)[1]


@cache
def all_texts() -> list[tuple[str, str]]:
    """The same of every file, tests included, with their places."""
    paths = [path for folder in (*PACKAGES.values(), ROOT / "tests") for path in sorted(folder.rglob("*.py"))]
    return [(f"{path.relative_to(ROOT).as_posix()}:{line}", text) for path in paths for line, text in texts(path)]


def test_names_in_docstrings_exist() -> None:
    names = Names()
    assert names.know("swsearch.blocks.Chunk.lanes")
    assert not names.know("swsearch.blocks.Chunk.rows")
    named = [(place, name) for place, text in all_texts() for name in NAME.findall(text)]
    assert len(named) > 300
    unknown = [(place, name) for place, name in named if not names.know(name)]
    assert not unknown


def test_paths_in_docstrings_exist() -> None:
    named = [(place, path) for place, text in all_texts() for path in PATH.findall(text)]
    assert len(named) > 30
    missing = [(place, path) for place, path in named if not (ROOT / path).exists()]
    assert not missing
