"""Every benchmark can be started, says how, and stands in the README."""

from __future__ import annotations

import importlib
import re
import sys
from types import ModuleType

import pytest
from conftest import ROOT

FOLDER = ROOT / "benchmarks"

NAMES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in FOLDER.glob("*/*.py")
    if path.name != "__init__.py"
)

SCRIPTS = [
    name for name in NAMES if '__name__ == "__main__"' in (ROOT / f"{name.replace('.', '/')}.py").read_text("utf-8")
]

OPTIONAL = {
    "pandas": "test",
    "parasail": "bench",
    "pyopal": "bench",
    "scoring_matrices": "bench",
    "matplotlib": "plot",
    "psutil": "cluster",
}
"""Packages that only some benchmarks need, and the extra that brings them."""


def imported(name: str) -> ModuleType:
    """Import a module; skip if a package of an extra is missing, and fail if anything else is."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in OPTIONAL:
            raise
        pytest.skip(f"{package} is not installed (swsearch[{OPTIONAL[package]}])")


def test_there_are_scripts_in_every_room() -> None:
    rooms = {path.parent.name for path in FOLDER.glob("*/__init__.py")}
    assert {name.split(".")[1] for name in SCRIPTS} == rooms - {"support"}


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(SCRIPTS)))
def test_a_module_can_be_imported(name: str) -> None:
    assert imported(name).__doc__


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_says_how_it_is_run(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = imported(name)
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as ended:
        module.main()
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith("usage: ")
    for part in ("\nNeeds: ", "\nRun:   ", f"python -m {name} "):
        assert part in text
    assert set(re.findall(r"python -m (benchmarks\.\S+)", text)) == {name}
    known = set(re.findall(r"--[a-z][\w-]*", text[: text.index(str(module.__doc__)[:40])]))
    lines = re.findall(rf"python -m {name} .*(?:\n {{8,}}.*)*", text)
    assert {option for line in lines for option in re.findall(r"--[a-z][\w-]*", line)} <= known


def test_the_readme_has_every_script() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+\.\w+)` \|", text, re.MULTILINE)
    assert sorted(rows) == sorted({name.removeprefix("benchmarks.") for name in SCRIPTS} | {"agreement.revisions"})
