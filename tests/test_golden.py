"""Every interface says what it said when tests/golden was written; ``pytest --renew-golden`` writes it anew.

A word of another program is added to names.txt on a line of its own; what it means follows when the file is renewed.
With another version of typer than the one that wrote help/, which sets it otherwise, its words are compared.
"""

from __future__ import annotations

import difflib
import functools
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer import rich_utils

from support import interfaces
from swsearch.cli import main
from swsearch.cli.main import LazyGroup

GOLDEN = Path(__file__).resolve().parent / "golden"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> interfaces.Run:
    """Run a command in this process, in a folder of its own and for a plain terminal of 120 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setenv("COLUMNS", "120")
    for name, value in {"MAX_WIDTH": 120, "FORCE_TERMINAL": False, "COLOR_SYSTEM": None}.items():
        monkeypatch.setattr(rich_utils, name, value)

    # a parser takes longer to make than to parse with
    parser = functools.cache(functools.partial(LazyGroup.get_command, None, None))
    monkeypatch.setattr(LazyGroup, "get_command", lambda group, context, name: parser(name))

    def ran(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["swsearch", *map(str, words)])
        return (main.main(), *capsys.readouterr())

    return ran


@pytest.fixture
def compare(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Compare texts with the kept ones, or keep them."""
    renew = request.config.getoption("--renew-golden")

    def compared(made: dict[str, str], shape: Callable[[str], str] = str) -> None:
        changed: list[str] = []
        for name, text in made.items():
            path = GOLDEN / name
            if renew:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
                continue
            kept = shape(path.read_text(encoding="utf-8") if path.exists() else "").splitlines()
            changed += difflib.unified_diff(kept, shape(text).splitlines(), f"golden/{name}", "now", n=1, lineterm="")
        if changed:
            pytest.fail(
                "\n".join([*changed, "pytest tests/test_golden.py --renew-golden keeps it so"]), pytrace=False
            )

    return compared


def test_help(run: interfaces.Run, compare: Callable[..., None], request: pytest.FixtureRequest) -> None:
    made = {f"help/{name}.txt": text for name, text in interfaces.help_pages(run)}
    gone = {f"help/{path.name}" for path in GOLDEN.glob("help/*")} - made.keys()
    version = GOLDEN / "typer_version.txt"
    if request.config.getoption("--renew-golden"):
        version.write_text(f"{typer.__version__}\n")
        for each in gone:
            (GOLDEN / each).unlink()
        gone = set()
    same = version.read_text().strip() == typer.__version__
    compare(made | dict.fromkeys(gone, ""), str if same else interfaces.substance)


def test_http_api(compare: Callable[..., None]) -> None:
    compare({"openapi.json": interfaces.http_api()})


def test_python_api(compare: Callable[..., None]) -> None:
    compare({"signatures.txt": interfaces.signatures()})


def test_form(compare: Callable[..., None]) -> None:
    compare({"form.txt": interfaces.form()})


def test_names_of_other_programs(run: interfaces.Run, compare: Callable[..., None]) -> None:
    kept = (GOLDEN / "names.txt").read_text(encoding="utf-8")
    compare({"names.txt": interfaces.names(run, kept)})


def test_saved_options(run: interfaces.Run, compare: Callable[..., None]) -> None:
    compare({"toml.txt": interfaces.saved_options(run)})
