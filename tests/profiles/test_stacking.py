"""Alignments as rows below a query: against the rows of each pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsearch import reference
from swsearch.alignment import PairAlignment
from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import PROTEIN
from swsearch.engines.pools import make_pool
from swsearch.options.kinds import MODES, Mode
from swsearch.profiles.construction import AlignedSubjects, build_alignment, lay_out
from swsearch.profiles.query_alignment import GAP, QueryAlignment
from swsearch.scoring import Scoring
from tests.support.cases import random_codes
from tests.support.query_alignments import a3m_rows
from tests.support.runs import Alignments, some_alignments
from tests.support.samples import random_cases

SCORING = Scoring(gap_open=2, gap_extend=1)


def found_of(subjects: list[np.ndarray], of_subject: list[int], places: list[int] | None = None) -> AlignedSubjects:
    """Subjects, and which of them alignments are of."""
    names = [f"s{k}" for k in range(len(subjects))]
    numbers = np.arange(len(subjects)) if places is None else np.array(places)
    evalues = np.arange(len(of_subject)) / 100
    return AlignedSubjects(
        names,
        [f"is {name}" for name in names],
        make_pool(subjects),
        numbers,
        np.array(of_subject, dtype=np.int64),
        evalues,
    )


def expected_row(pair: PairAlignment) -> str:
    """A pair's row as A3M has it: unaligned columns are gaps."""
    top, _, bottom = pair.rows()
    middle = "".join(b.lower() if a == "-" else b for a, b in zip(top, bottom, strict=True))
    return "-" * pair.query_start + middle + "-" * (len(pair.query) - pair.query_end)


@pytest.mark.parametrize("mode", MODES)
def test_rows_are_those_of_the_pairs(mode: Mode) -> None:
    generator = np.random.default_rng(5)
    query = random_codes(generator, 30, 3)
    subjects = [random_codes(generator, int(n), 3) for n in generator.integers(8, 50, 12)]
    pairs = []
    for subject in subjects:
        score, *ends, cigar = reference.align(query, subject, SCORING, mode)
        pairs.append(PairAlignment(query, subject, SCORING, score, ends[0], ends[1], cigar))
    alone = QueryAlignment.from_query("q", "", query)
    stacked = build_alignment(alone, found_of(subjects, list(range(12))), AlignmentTable.from_pairs(pairs), 2)
    assert a3m_rows(stacked)[1:] == [expected_row(pair) for pair in pairs]
    assert any(pair.gaps for pair in pairs) and len(stacked.insertions)
    assert stacked.starts.tolist() == [0, *(pair.subject_start for pair in pairs)]
    assert stacked.ends.tolist() == [30, *(pair.subject_end for pair in pairs)]
    assert stacked.identifiers == ["q", *(f"s{k}" for k in range(12))] and stacked.descriptions[1] == "is s0"
    assert stacked.subjects.tolist() == [-1, *range(12)] and stacked.iterations.tolist() == [0, *[2] * 12]
    assert stacked.evalues[-1] == 0.11
    for row, pair in enumerate(pairs, 1):
        whole = a3m_rows(stacked)[row].replace("-", "").upper()
        assert whole == PROTEIN.decode(pair.subject[pair.subject_start : pair.subject_end])


@random_cases(200)
@given(some_alignments(), st.data())
def test_rows_are_laid_out_column_by_column(some: Alignments, data: st.DataObject) -> None:
    m = len(some.table)
    # some alignments come twice, and subjects of no database have no place
    chosen = np.array(data.draw(st.lists(st.integers(0, m - 1), max_size=8)) if m else [], dtype=np.int64)
    subjects = [some.pool[0][begin:end] for begin, end in zip(some.pool[1], some.pool[1][1:], strict=False)]
    places = [data.draw(st.integers(-1, 2)) for _ in subjects]
    found = found_of(subjects, chosen.tolist(), places)
    stacked = build_alignment(QueryAlignment.from_query("q", "", some.query), found, some.table.take(chosen))

    spans_of = lay_out(some.table, some.pool, np.arange(m), len(some.query))[1].tolist()
    seen, rows, insertions, inserted = set(), [], [], []
    for k in chosen.tolist():
        row, between = np.full(len(some.query), GAP), {}
        for operation, a, b, is_first in some.columns(k):
            if operation == "M":
                row[a] = some.pool[0][b]
            elif operation == "D":
                between.setdefault((a, b) if is_first else list(between)[-1], []).append(int(some.pool[0][b]))
        filled = np.flatnonzero(row != GAP).tolist()
        spans = [filled[0], filled[-1] + 1] if filled else [0, 0]
        assert spans_of[k] == spans
        place = places[k] if places[k] >= 0 else -1 - k
        key = (place, int(some.table.subject_start[k]), int(some.table.subject_end[k]), *spans)
        if not filled or key in seen:
            continue
        seen.add(key)
        rows.append(row.tolist())
        for (a, _), codes in between.items():
            insertions.append([len(rows), a, len(inserted), len(inserted) + len(codes)])
            inserted += codes
    assert stacked.columns[1:].tolist() == rows
    assert stacked.insertions.tolist() == insertions
    assert stacked.inserted.tolist() == inserted
