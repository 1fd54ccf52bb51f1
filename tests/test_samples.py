"""Samples of a quick run: the same in every process and in every order of the tests."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers

from support.samples import draw_the_same_everywhere


def drawn() -> list[int]:
    values: list[int] = []

    @settings(settings.get_profile("quick"), max_examples=200)
    @given(st.integers())
    def collect(value: int) -> None:
        values.append(value)

    collect()
    return values


def test_what_is_imported_changes_no_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "_get_local_constants", providers._get_local_constants)  # as it was, afterwards
    draw_the_same_everywhere()
    before = drawn()
    (tmp_path / "many_numbers.py").write_text(f"NUMBERS = {[10**9 + n for n in range(1000)]}\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("many_numbers")
    assert drawn() == before


def collected(*options: str) -> set[str]:
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "-p", "no:cacheprovider", *options]
    files = ["tests/test_scoring.py", "tests/test_alignment.py", "tests/db/test_dna.py"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run([*words, *files], capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    return {line for line in done.stdout.splitlines() if "::" in line}


@pytest.mark.exhaustive
def test_a_quick_run_and_what_comes_after_it_are_all() -> None:
    quick, after, everything = collected(), collected("--exhaustive", "--after-quick"), collected("--exhaustive")
    assert quick | after == everything
    assert everything - quick <= after
    assert len(after) < len(everything)
    assert "tests/test_alignment.py::test_counts_agree_with_the_rows" in quick & after  # it draws cases anew
    assert any("tests/db/test_dna.py" in name for name in quick & after)  # commands, then in processes of their own
