"""The committed results: each is read or shown somewhere, plots are small, and what can be made again is made so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from conftest import ROOT

from benchmarks.speed.gpu_report import report

RESULTS = ROOT / "benchmarks" / "results"
FILES = sorted(RESULTS.iterdir())

LARGEST_PLOT = 150_000
"""Bytes."""


def texts(*patterns: str) -> str:
    """Return all files of the checkout that match, one after the other."""
    paths = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


DOCUMENTS = texts("*.md", "docs/**/*.md", "packaging/*.md")
README = texts("benchmarks/README.md")
ROWS = re.findall(r"\| `(\w+)\.(\w+)` \|$", README, re.MULTILINE)
GONE = {f"benchmarks/{room}/{script}.py" for room, script in ROWS}
"""Scripts that printed some of the results, and are in an older commit alone."""
READERS = {
    ".png": DOCUMENTS,
    ".json": README + texts("benchmarks/*/*.py"),
    ".txt": DOCUMENTS + README + texts("benchmarks/*/*.py", "tests/docs/*.py", "swsearch/**/*.py"),
}
"""Where the files of each kind are named: plots are shown, numbers read, reports linked to or made."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_read_or_shown(path: Path) -> None:
    assert path.suffix in READERS, "expected a report (.txt), numbers (.json) or a plot (.png)"
    assert re.search(rf"\b{re.escape(path.name)}\b", READERS[path.suffix]), "no script, test or document names it"


def test_what_documents_link_to_is_there() -> None:
    linked = set(re.findall(r"benchmarks/results/([\w.-]+\w)", DOCUMENTS))
    assert linked
    assert linked <= {path.name for path in FILES}


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix == ".png"], ids=lambda path: path.name)
def test_a_plot_is_a_small_png(path: Path) -> None:
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert path.stat().st_size <= LARGEST_PLOT


def test_reports_and_documents_name_scripts_that_are_there() -> None:
    script, there = r"benchmarks/[\w/]+\.py", lambda name: (ROOT / name).is_file()
    named = {*re.findall(script, DOCUMENTS + texts("swsearch/**/*.py"))}
    assert len(named) > 3
    assert [name for name in named if not there(name)] == []
    assert {name for name in re.findall(script, texts("benchmarks/results/*.txt")) if not there(name)} <= GONE
    assert [name for name in GONE if there(name)] == []


def test_the_gpu_report_is_that_of_the_numbers() -> None:
    results = json.loads((RESULTS / "gpu.json").read_text(encoding="utf-8"))
    assert "\n".join(report(results)) + "\n" == (RESULTS / "gpu.txt").read_text(encoding="utf-8")


def test_the_plotted_counts_are_those_of_the_calibration_table() -> None:
    text = (RESULTS / "calibration.txt").read_text(encoding="utf-8")
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    heads, *rows = table
    levels = [float(head.removeprefix("E <= ")) for head in heads[4:8]]
    stored = json.loads((RESULTS / "calibration.json").read_text(encoding="utf-8"))
    assert stored["about"]["what"] in text
    at = [stored["levels"].index(level) for level in levels]
    found = [
        [
            f"{row['mode']} {row['scoring']}", row["queries"], row["statistics"], f"{row['searches']:,}",
            *(f"{row['hits'][place] / row['searches']:.3g}" for place in at),
        ]
        for row in stored["rows"]
    ]  # fmt: skip
    assert sorted(found) == sorted(row[:8] for row in rows)
