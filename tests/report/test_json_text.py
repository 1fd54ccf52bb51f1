from __future__ import annotations

import json
import math

import numpy as np

from support.report_cases import make_result, report
from swsearch.report import json_text

FLOATS = [0.0, -0.5, 1.0, 1e-300, 5e-324, 1e16, 1e22, 0.1, 123456.789, 2.5e-38]


def test_floats_are_pythons() -> None:
    assert json_text.floats(np.array(FLOATS)) == [json.dumps(value) for value in FLOATS]
    assert json_text.floats(np.array([math.nan, 1.5, math.inf, -math.inf])) == ["null", "1.5", "null", "null"]
    assert json_text.floats(np.zeros(0)) == []


def test_objects_leave_out_what_is_absent() -> None:
    columns = {"a": [1, 2, 3], "b%": json_text.strings(["x", 'y"%s', "\u00fc"]), "c": [4, 5, 6]}
    some = json_text.objects(columns, {"b%": np.array([False, True, False])})
    assert [json.loads(each) for each in some] == [
        {"a": 1, "b%": "x", "c": 4},
        {"a": 2, "c": 5},
        {"a": 3, "b%": "ü", "c": 6},
    ]
    none = json_text.objects(columns, {"c": np.ones(3, dtype=np.bool_), "b%": np.zeros(3, dtype=np.bool_)})
    assert [json.loads(each) for each in none] == [{"a": 1, "b%": "x"}, {"a": 2, "b%": 'y"%s'}, {"a": 3, "b%": "ü"}]
    assert json_text.objects({"a": []}) == []


def test_hits_stand_in_their_place() -> None:
    value = {"title": '"hits":[] \\"hits\\":[]', "deep": {"hits": [], "after": [1]}}
    for hits in ([], [["1"]], [["1", "2"], ["3"]]):
        text = "".join(json_text.with_hits(value, hits))
        numbers = [int(each) for some in hits for each in some]
        assert json.loads(text) == {**value, "deep": {"hits": numbers, "after": [1]}}
        assert text == json_text.encode(json.loads(text))


def test_a_query_may_be_called_as_the_place_of_its_hits() -> None:
    result = make_result(('"hits":[]', '{"hits":[]}', "MKTAYIAKQRQISFVKSHFSRQ"))
    for outfmt in ("jsonl", "15"):
        text = report(outfmt, result)
        assert json.dumps(json.loads(text), separators=(",", ":")) == text.replace("\n", "")
