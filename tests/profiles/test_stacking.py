"""Alignments as rows below a query: against the rows of each pair."""

from __future__ import annotations

import numpy as np
import pytest

from swsearch import reference
from swsearch.alignment import PairAlignment
from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import PROTEIN
from swsearch.engines.pools import make_pool
from swsearch.options.kinds import MODES, Mode
from swsearch.profiles import construction
from swsearch.profiles.construction import AlignedSubjects, build_alignment
from swsearch.profiles.query_alignment import QueryAlignment
from swsearch.scoring import Scoring
from tests.support.cases import random_codes
from tests.support.query_alignments import a3m_rows

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


@pytest.mark.parametrize("together", [1, 7, construction.PAIRS_PER_BATCH])
@pytest.mark.parametrize("mode", MODES)
def test_rows_are_those_of_the_pairs(mode: Mode, together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(construction, "PAIRS_PER_BATCH", together)
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
