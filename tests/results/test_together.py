"""The hits of many queries as one table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import swsearch
from swsearch.errors import OptionError
from swsearch.results.result import to_pandas, to_polars

QUERIES = {"a": "MKVLAAGIVGWWHHKDEFRTYPCNQS", "none": "PPPPPPPPP", "b": "GWWHHKDEFRTYPCNQSMKV"}
SUBJECTS = {f"s{k}": QUERIES["a"][k:] + "WWHH" for k in range(12)}


@pytest.fixture
def search() -> Iterator[Any]:
    with swsearch.search(QUERIES, SUBJECTS, engine="cpu", statistics="none", min_score=20) as results:
        yield results


def test_all_hits_are_one_table(search: Any) -> None:
    results = list(search)
    table = to_pandas(results)
    assert [len(result) > 0 for result in results] == [True, False, True]
    assert table.query_index.unique().tolist() == [0, 2]  # a query without hits has no row
    for place in (0, 2):
        rows = table[table.query_index == place].drop(columns="query_index").reset_index(drop=True)
        assert rows.equals(results[place].to_pandas())
    assert to_pandas(results[0]).query_index.unique().tolist() == [0]


def test_a_search_gives_its_table(search: Any) -> None:
    arrow = search.to_arrow()
    with swsearch.search(QUERIES, SUBJECTS, engine="cpu", statistics="none", min_score=20) as again:
        assert to_pandas(list(again)).equals(arrow.to_pandas().fillna(float("nan")))
    assert arrow.schema.field("evalue").type == "double"
    assert arrow["evalue"].null_count == len(arrow)
    assert search.to_pandas().empty  # all were taken


def test_polars_has_the_same() -> None:
    pytest.importorskip("polars")
    with swsearch.search(QUERIES, SUBJECTS, engine="cpu") as results:
        found = list(results)
    table = to_polars(found)
    assert table["score"].to_list() == to_pandas(found).score.to_list() != []
    assert found[0].to_polars()["subject_id"].to_list() == [hit.subject_id for hit in found[0]]


def test_without_results_or_hits_there_are_the_same_columns(search: Any) -> None:
    some, none, _ = search
    for empty in (to_pandas([]), to_pandas([none])):
        full = to_pandas([some])
        assert len(empty) == 0
        assert list(empty.columns) == list(full.columns)
        assert empty.dtypes.equals(full.dtypes)


@pytest.mark.parametrize("given", [None, 5, "hits.tsv", [5], ["a"]])
def test_what_is_no_result_is_refused(given: Any) -> None:
    with pytest.raises(OptionError, match=r"results: got .*, expected what swsearch.search returns"):
        to_pandas(given)


def test_a_notebook_shows_the_best_hits() -> None:
    subjects = [(f"<s{k}>", QUERIES["a"]) for k in range(12)]
    with swsearch.search({"<q>": QUERIES["a"]}, subjects, engine="cpu") as results:
        (result,) = results
    shown = result._repr_html_()
    assert "<caption>&lt;q&gt;: 12 hits, the first 10 shown</caption>" in shown
    assert shown.count("<tr>") == 11
    assert "<td>&lt;s9&gt;</td>" in shown and "s10" not in shown
    assert not result[0].is_aligned
    with swsearch.search("PPPP", subjects, engine="cpu", statistics="none", min_score=99) as results:
        assert ": 0 hits</caption>" in next(results)._repr_html_()
