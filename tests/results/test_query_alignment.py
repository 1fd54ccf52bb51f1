"""Results as query-anchored alignments."""

from __future__ import annotations

import dataclasses

import pytest

import swsearch
from swsearch.alphabet import PROTEIN
from swsearch.errors import InputError
from swsearch.results import alignment_of
from tests.support.query_alignments import column_rows as letters
from tests.support.report_cases import QUERY, SUBJECT, make_result

SUBJECTS = [("s1", "a subject", SUBJECT), ("s2", "", "GG" + QUERY[10:50] + "GG"), ("s3", "", QUERY)]


def test_a_result_is_its_query_and_its_hits() -> None:
    result = make_result(subjects=SUBJECTS)
    found = alignment_of(result)
    assert letters(found)[0] == letters(found)[3] == QUERY
    assert letters(found)[2] == "-" * 10 + QUERY[10:50] + "-" * 20
    assert found.identifiers == ["q1", "s1", "s2", "s3"] and found.descriptions[:2] == ["the query", "a subject"]
    assert found.evalues.tolist() == [0, *(hit.evalue for hit in result.hits)]
    assert found.subjects.tolist() == [-1, 0, 1, 2]
    assert PROTEIN.decode(found.inserted) == "WW" and found.insertions[0].tolist() == [1, 45, 0, 2]
    assert (found.starts[2], found.ends[2]) == (2, 42)


@pytest.mark.parametrize("together", [False, True])
def test_masked_residues_are_letters(together: bool) -> None:
    masked = SUBJECT[:20] + SUBJECT[20:40].lower() + SUBJECT[40:]
    results = swsearch.search(
        {"q": QUERY[:30].lower() + QUERY[30:]}, {"s": masked}, query_mask="lower", subject_mask="lower", evalue=1e9
    )
    with results:
        (result,) = next(results.batches(aligned=together))
    pair = result.hits[0].pair
    assert "x" not in PROTEIN.decode(pair.query).lower()[30:] and PROTEIN.decode(pair.query)[:30] == "X" * 30
    found = alignment_of(result)
    assert letters(found)[0] == QUERY
    assert "X" not in letters(found)[1]


def test_an_empty_result_is_its_query() -> None:
    results = list(swsearch.search({"q": QUERY}, {"s": "WWWW"}, evalue=1e-9))
    assert letters(alignment_of(results[0])) == [QUERY]
    bare = dataclasses.replace(results[0], hits=[])
    with pytest.raises(InputError, match="'q': the result has no hits and does not hold the query's letters"):
        alignment_of(bare)
    assert letters(alignment_of(dataclasses.replace(bare, query_length=0))) == [""]
