"""What a quick run draws is the same in every process and in every order of the tests."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
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
