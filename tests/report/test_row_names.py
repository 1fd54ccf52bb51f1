"""Names and titles of the rows of alignments, whatever headers hold."""

from __future__ import annotations

import numpy as np

from swsearch.alphabet import DNA, PROTEIN
from swsearch.profiles.alignment import GAP, QueryAlignment
from swsearch.report.alignments import descriptions_of, evalues_of, fasta_headers, letters_of, row_names


def named(*identifiers: str, descriptions: list[str] | None = None) -> QueryAlignment:
    """Sequences of three residues, the n-th of which is aligned from its n-th residue on."""
    n = len(identifiers)
    starts = np.arange(n, dtype=np.int64)
    return QueryAlignment(
        identifiers, descriptions or [""] * n, np.zeros((n, 3), dtype=np.uint8), starts, starts + 3,
        np.zeros((0, 4), dtype=np.int64), np.zeros(0, dtype=np.uint8), starts, np.full(n, 1e-30), starts,
    )  # fmt: skip


def test_a_name_has_the_part_that_is_aligned() -> None:
    assert row_names(named("q", "sp|P1|X_HUMAN", "s2")) == ["q", "sp|P1|X_HUMAN/2-4", "s2/3-5"]


def test_names_are_unique() -> None:
    same = named("a/2-4", "a", "b", "b", "b", "b/3-5#2")
    same.starts[:], same.ends[:] = 1, 4
    same.starts[2:5], same.ends[2:5] = 2, 5
    names = row_names(same)
    assert names == ["a/2-4", "a/2-4#2", "b/3-5", "b/3-5#2", "b/3-5#3", "b/3-5#2/2-4"]
    taken = named("x/1-3#2", "x", "x")
    taken.starts[:], taken.ends[:] = 0, 3
    assert row_names(taken) == ["x/1-3#2", "x/1-3", "x/1-3#3"]


def test_names_are_one_word_that_is_no_comment() -> None:
    hostile = ["#q", "a\x1bb", "//", "é\u2028x", "", "a\u00a0b", ">s", "bad\udcff"]
    names = row_names(named(*hostile))
    assert names[:3] == ["_q", "a_b/2-4", "_/3-5"]
    assert names[4:7] == ["N/A/5-7", "a_b/6-8", "_s/7-9"]
    for name in names:
        assert name.split() == [name] and name[0] not in "#/>" and name.encode("utf-8")


def test_titles_are_one_line_each() -> None:
    texts = ["the query", "one\x01two second", " \x00line\nend ", ""]
    rows = named("q", "a", "b", "c", descriptions=texts)
    rows.evalues[2] = np.nan
    assert descriptions_of(rows) == ["the query", "one", "line end", ""]
    assert evalues_of(rows) == ["", "1.00e-30", "", "1.00e-30"]
    assert fasta_headers(rows) == [">q the query", ">a/2-4 E=1.00e-30 one", ">b/3-5 line end", ">c/4-6 E=1.00e-30"]


def test_letters_of_columns() -> None:
    letters = letters_of(PROTEIN)[[*range(27), GAP]].tobytes().decode()
    assert letters == PROTEIN.letters.replace("*", "X") + "-"
    assert letters_of(DNA)[[0, GAP]].tobytes() == b"A-"
