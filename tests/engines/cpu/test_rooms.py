"""How the rooms of cpu/ stand above each other, and that its README has a map of all of them."""

import re
from pathlib import Path

import pytest

CPU = Path(__file__).resolve().parents[3] / "cpu"
FILES = sorted(path for path in CPU.rglob("*") if path.suffix in (".cpp", ".hpp"))

MAY_INCLUDE = {
    "": {""},
    "search": {"", "search"},
    "pairs": {"", "pairs"},
    "shift": {"", "pairs", "shift"},
    "shuffle": {"", "search", "shuffle"},
    "statistics": {"statistics"},
    "profiles": {"", "profiles"},
    "isa": {"", "search", "pairs", "isa"},
    "store": {"", "pairs", "isa", "store"},
    "text": {"text"},
    "module": {"", "search", "pairs", "shift", "shuffle", "statistics", "isa", "store", "module", "profiles", "text"},
}
"""Folders whose files each folder may include; "" stands for the files above all folders."""

READ_INSIDE = {"scan_kernel.hpp", "striped_kernel.hpp", "shift_kernel.hpp", "kernel_table.hpp", "kernel.hpp"}
"""Headers that are read inside a namespace and under a target, apart from those of vectors."""


def room(path):
    """The folder of a file below cpu/."""
    return path.parent.relative_to(CPU).as_posix().removeprefix(".")


def name(path):
    """A file as others include it."""
    return path.relative_to(CPU).as_posix()


def included(path):
    """The project's own files that a file includes."""
    return [CPU / other for other in re.findall(r'^ *#include "(.*)"', path.read_text(), re.MULTILINE)]


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_room_includes_those_above_it_alone(path):
    for other in included(path):
        assert other in FILES, f"{name(path)} includes {name(other)}, which is not there"
        assert room(other) in MAY_INCLUDE[room(path)], f"{name(path)} includes {name(other)}"


def test_what_is_read_inside_a_namespace_includes_nothing():
    inside = [path for path in FILES if path.name in READ_INSIDE or path.name.startswith("vector")]
    assert len(inside) == len(READ_INSIDE) + 7
    assert {name(path) for path in inside if "#include" in path.read_text()} == set()


def test_every_file_begins_with_its_name():
    assert {name(path) for path in FILES if not path.read_text().startswith(f"// {path.stem}: ")} == set()


def test_the_readme_has_a_line_for_every_file():
    rows = [row for row in (CPU / "README.md").read_text().splitlines() if row.startswith("|")]
    mapped = [
        file
        for row in rows[: rows.index("| instruction set | kernels of searches | kernels of pairs |")]
        for file in re.findall(r"`(\w+\.[ch]pp)`", row.split("|")[1])
    ]
    assert sorted(mapped) == sorted(path.name for path in FILES)
