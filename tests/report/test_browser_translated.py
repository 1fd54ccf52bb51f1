"""The HTML report of translated DNA in headless Chromium: its numbers are the table's and the pairwise report's."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from support.browser import all_of, button, downloaded, drawn, one
from support.browsers import MARKS, Browser
from support.samples import sample
from support.translated_cases import search_records, write_translated
from swsearch.run_info import Program

pytestmark = MARKS

PROGRAMS: tuple[Program, ...] = ("blastx", "tblastn", "tblastx")


def blocks(text: str) -> list[list[str]]:
    """The words of the lines of alignments that have residues, without those that are alike."""
    return [line.split() for line in re.findall(r"^(?:Query|Sbjct) +\d+ .*$", text, re.MULTILINE)]


@pytest.mark.parametrize("case", sample([*PROGRAMS, "shifted"], lambda case: case == "tblastx"))
def test_numbers_frames_and_units(opened: Any, browser: Browser, case: str) -> None:
    browser.resize(800)  # where an alignment has 60 columns, as in the pairwise report
    program: Any = "blastx" if case == "shifted" else case
    options: Any = {"frame_shift": 15} if case == "shifted" else {}
    result = search_records(program, **options)[0]
    driver = opened(write_translated("html", [result]))
    button(driver, "Open all alignments").click()
    shown = "\n".join(pre.get_attribute("textContent") for pre in all_of(driver, "tr.detail pre"))
    assert blocks(shown) == blocks(write_translated("0", [result]))
    assert len(blocks(shown)) >= 4
    words = one(driver, "tr.detail").text
    columns = result.to_columns()
    frames = [f"{columns[name][0]:+d}" for name in ("query_frame", "subject_frame") if name in columns]
    assert f"frame {'/'.join(frames)}\n" in words
    unit = "residues" if program == "blastx" else "nucleotides"
    assert f"{result[0].subject_length} {unit}" in words
    if len(result[0].hsps) > 1:
        assert f"({unit.removesuffix('s')})" in drawn(driver)  # of the plot of query against subject
    button(driver, "Download TSV").click()
    rows = write_translated("6 std score qcovs stitle frames", [result]).splitlines()
    assert downloaded(driver, f"{result.query_id}.tsv").splitlines()[1:] == rows


def test_lines_of_the_plot_run_backwards_on_the_other_strand(opened: Any) -> None:
    result = search_records("tblastx", evalue=1e3)[0]
    hits = [hit for hit in result if hit.subject_index == 0 and hit.query_frame.number > 0]
    along, against = (next(hit for hit in hits if hit.subject_frame.number * sign > 0) for sign in (1, -1))
    driver = opened(write_translated("html", [dataclasses.replace(result, hits=[along, against])]))
    one(driver, ".open-hit").click()
    paths = [path.get_attribute("d") for path in all_of(driver, ".dot-line path:not(.near)")]
    ends = [[float(number) for number in re.findall(r"[\d.]+", path)] for path in paths]
    rises = [(each[-2] > each[0]) == (each[-1] < each[1]) for each in ends]  # y counts from the top
    assert rises == [True, False]
