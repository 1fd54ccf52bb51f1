from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest

from support.report_cases import QUERY, SUBJECT, make_result, report, with_two_alignments
from swsearch.report import base
from swsearch.results import Hit, SearchResult
from swsearch.scoring import Scoring


def strict(constant: str) -> float:
    raise AssertionError(f"{constant} is not JSON")


def lines(*results: SearchResult, outfmt: str = "jsonl") -> list[dict[str, Any]]:
    text = report(outfmt, *results)
    return [json.loads(line, parse_constant=strict) for line in text.removesuffix("\n").split("\n")]


def test_an_object_a_query() -> None:
    result = make_result(effective=5_000_000)
    first, second = lines(result, make_result(("q2", "", "WWW"), []))
    hit = result[0]
    top, middle, bottom = hit.pair.rows()
    assert first == {
        "query": {"id": "q1", "description": "the query", "length": 70},
        "database": {"name": "some/db.h5", "subjects": 3000, "residues": 1_000_000},
        "parameters": {
            "matrix": "BLOSUM62", "gap_open": 11, "gap_extend": 1, "mode": "local",
            "statistics": result.statistics and result.statistics.name, "effective_residues": 5_000_000,
        },
        "hits": [
            {
                "subject": {"id": "s1", "description": "a subject", "length": 72, "index": 0},
                "score": 293, "bit_score": hit.bit_score, "evalue": hit.evalue,
                "query_start": 0, "query_end": 67, "subject_start": 2, "subject_end": 70,
                "alignment_length": len(top), "identities": hit.identities, "positives": hit.positives,
                "mismatches": hit.pair.mismatches, "gaps": hit.gaps, "gap_openings": 2, "cigar": hit.cigar,
                "query_row": top, "subject_row": bottom, "midline": middle,
            }
        ],
    }  # fmt: skip
    assert second["hits"] == []
    (again,) = lines(result, outfmt="ndjson")
    assert again == first


def test_coordinates_cut_what_was_aligned() -> None:
    (hit,) = lines(make_result())[0]["hits"]
    assert QUERY[hit["query_start"] : hit["query_end"]] == hit["query_row"].replace("-", "")
    assert SUBJECT[hit["subject_start"] : hit["subject_end"]] == hit["subject_row"].replace("-", "")


def test_no_statistics_is_null() -> None:
    for result in (make_result(mode="semiglobal"), make_result(scoring=Scoring(gap_open=2))):
        (parsed,) = lines(result)
        assert parsed["parameters"]["statistics"] is None
        assert parsed["hits"][0]["evalue"] is parsed["hits"][0]["bit_score"] is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_say_is_null(value: float) -> None:
    result = make_result()
    hits: list[Hit] = [dataclasses.replace(result[0], evalue=value, bit_score=value)]
    (parsed,) = lines(dataclasses.replace(result, hits=hits))
    assert parsed["hits"][0]["evalue"] is None


def test_hostile_headers_survive_or_are_replaced() -> None:
    description = 'tab\t \x1b[1m \x00 \x01two \u2028 \x85 \u00fc \U0001f9ec " \\ \udcff'
    text = report("jsonl", make_result(("q\udc80", "", QUERY), [("s", description, SUBJECT)]))
    assert text.isascii()
    assert len(text.splitlines()) == 1
    parsed = json.loads(text)
    assert parsed["hits"][0]["subject"]["description"] == description.replace("\udcff", "\ufffd")
    assert parsed["query"]["id"] == "q\ufffd"


def test_small_evalues_keep_their_digits() -> None:
    result = make_result(("q", "", QUERY * 6), [("s", "", QUERY * 6)])
    (parsed,) = lines(result)
    assert 0 < parsed["hits"][0]["evalue"] < 1e-180
    assert parsed["hits"][0]["evalue"] == result[0].evalue


def test_further_alignments() -> None:
    result = with_two_alignments(make_result())
    (hit,) = lines(result)[0]["hits"]
    assert {name: value for name, value in hit.items() if name != "further_alignments"} == lines(make_result())[0][
        "hits"
    ][0]
    (further,) = hit["further_alignments"]
    second = result[0].hsps[1]
    assert (further["score"], further["evalue"], further["query_row"]) == (second.score, 2.5, second.pair.query_row())


def test_a_query_may_be_called_as_the_place_of_its_hits() -> None:
    result = make_result(('"hits":[]', '{"hits":[]}', "MKTAYIAKQRQISFVKSHFSRQ"))
    for outfmt in ("jsonl", "15"):
        text = report(outfmt, result)
        assert json.dumps(json.loads(text), separators=(",", ":")) == text.replace("\n", "")


def test_hits_stand_in_their_place() -> None:
    value = {"title": '"hits":[] \\"hits\\":[]', "deep": {"hits": [], "after": [1]}}
    for hits in ([], [["1"]], [["1", "2"], ["3"]]):
        text = "".join(base.with_hits(value, hits))
        numbers = [int(each) for some in hits for each in some]
        assert json.loads(text) == {**value, "deep": {"hits": numbers, "after": [1]}}
        assert text == base.encode(json.loads(text))


def test_objects_leave_out_what_is_absent() -> None:
    columns = {"a": [1, 2, 3], "b%": base.strings(["x", 'y"%s', "\u00fc"]), "c": [4, 5, 6]}
    some = base.objects(columns, {"b%": np.array([False, True, False])})
    assert [json.loads(each) for each in some] == [
        {"a": 1, "b%": "x", "c": 4},
        {"a": 2, "c": 5},
        {"a": 3, "b%": "ü", "c": 6},
    ]
    none = base.objects(columns, {"c": np.ones(3, dtype=np.bool_), "b%": np.zeros(3, dtype=np.bool_)})
    assert [json.loads(each) for each in none] == [{"a": 1, "b%": "x"}, {"a": 2, "b%": 'y"%s'}, {"a": 3, "b%": "ü"}]
    assert base.objects({"a": []}) == []
