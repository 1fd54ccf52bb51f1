"""Query-anchored alignments: taking some sequences, and putting rows below others."""

from __future__ import annotations

import numpy as np
import pytest

from swsearch.alphabet import PROTEIN
from swsearch.profiles.query_alignment import QueryAlignment, spread
from tests.support.query_alignments import a3m_rows, alignment_from

TEXTS = "MKTAY", "MkkKT--", "-----", "cM-TAYww", "aa-K---"


def test_a_query_alone_is_an_alignment() -> None:
    alone = QueryAlignment.of_query("q", "the query", PROTEIN.encode("MKTAY"))
    assert a3m_rows(alone) == ["MKTAY"] and len(alone) == 1 and alone.n_columns == 5
    assert alone.starts.tolist() == [0] and alone.ends.tolist() == [5] and alone.subjects.tolist() == [-1]
    assert a3m_rows(QueryAlignment.of_query("q", "", PROTEIN.encode(""))) == [""]


@pytest.mark.parametrize("chosen", [[0], [0, 3, 1], [0, 2], [0, 1, 1, 4, 3, 2], []])
def test_some_sequences_take_their_insertions_along(chosen: list[int]) -> None:
    some = alignment_from(*TEXTS).take(np.array(chosen, dtype=np.int64))
    assert a3m_rows(some) == [TEXTS[k] for k in chosen]
    assert some.identifiers == [f"s{k}" for k in chosen]
    assert len(some.inserted) == sum(letter.islower() for k in chosen for letter in TEXTS[k])
    assert some.insertion_offsets.tolist() == np.cumsum([0, *([0, 1, 0, 2, 1][k] for k in chosen)]).tolist()


def test_rows_are_put_below_others() -> None:
    whole = alignment_from(*TEXTS)
    joined = whole.take(np.array([0, 1])).followed_by(whole.take(np.array([2, 3, 4])))
    assert a3m_rows(joined) == list(TEXTS) and joined.identifiers == whole.identifiers
    assert joined.evalues.tolist() == whole.evalues.tolist()
    with pytest.raises(ValueError, match="rows of 3 columns, expected 5"):
        whole.followed_by(alignment_from("MKT"))


def test_spans_are_the_columns_with_residues() -> None:
    begins, ends = alignment_from(*TEXTS).spans
    assert list(zip(begins.tolist(), ends.tolist(), strict=True)) == [(0, 5), (0, 3), (0, 0), (0, 5), (1, 2)]
    begins, ends = QueryAlignment.of_query("q", "", PROTEIN.encode("")).spans
    assert begins.tolist() == ends.tolist() == [0]


def test_stretches_become_places() -> None:
    assert spread(np.array([5, 2, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]
    assert spread(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)).tolist() == []
