"""Whatever a search can be asked for here, a server is asked for the same."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swsearch
from support.small_searches import PARENT, QUERIES
from swsearch.alphabet import PROTEIN
from swsearch.client.search_request import (
    QUERY_LINES_FORMAT,
    SearchRequest,
    make_request,
    matrix_to_json,
    options_to_json,
)
from swsearch.errors import InputError
from swsearch.inputs import Query, read_queries
from swsearch.pipeline.inclusion import Inclusion
from swsearch.pipeline.options import make_search_options
from swsearch.profiles.json_profile import to_json_line
from swsearch.profiles.query_alignment import QueryAlignment
from swsearch.run_info import Origin
from swsearch.scoring import Matrix, Scoring, load_matrix

PROFILE = swsearch.Profile.from_alignment(QueryAlignment.from_query("p", "a profile", PROTEIN.encode(PARENT)))
OPTIONS: list[dict[str, Any]] = [
    {},
    {"preset": "sensitive"},
    {"preset": "default"},
    {"scoring": Scoring("BLOSUM62", 11, 1)},
    {"scoring": Scoring("FENG", 9, 3), "mode": "global", "sort": "score", "evalue": 0.1 + 0.2},
    {"scoring": Scoring(("ARNDCQEGHILKMFPSTWYV", np.random.default_rng(3).integers(-9, 12, (20, 20))), 7, 2)},
    {"statistics": "published", "max_hits": 3, "dbsize": 10**15, "distribution": True, "keep_profiles": True},
    {"min_score": -4, "min_identity": 0.5, "min_query_coverage": 1, "include_ids": ["a", "b"], "exclude_ids": ["ü"]},
    {"max_alignments": 9, "query_mask": "lower", "subject_mask": "none", "allow_dna": True},
    {"taxids": [10090, 9606], "exclude_taxids": "63221"},
    {"iterations": 4, "inclusion_evalue": 1e-5, "inclusion_coverage": 33.3, "max_included": 7},
    {"iterations": 2, "inclusion": Inclusion(0.1, 5, 1.5, 3, None, 12.5, None, False)},
]


@pytest.mark.parametrize("asked", OPTIONS)
@pytest.mark.filterwarnings("ignore")
def test_options_that_were_told_are_the_same(asked: dict[str, Any]) -> None:
    options = make_search_options(**asked)
    told = json.loads(json.dumps(options_to_json(options)))
    found = SearchRequest("db", QUERIES, options=told).search_options
    assert found == options
    np.testing.assert_array_equal(found.scoring.matrix.scores, options.scoring.matrix.scores)


def test_scores_under_a_name_that_is_known_are_told_in_full_or_not_at_all() -> None:
    known = load_matrix("BLOSUM62")
    other = Matrix("BLOSUM62", PROTEIN, load_matrix("BLOSUM45").scores)
    assert matrix_to_json(known) == "BLOSUM62"
    assert matrix_to_json(other) == {"name": "BLOSUM62", "text": matrix_to_json(replace(other, name="x"))["text"]}  # type: ignore[index]
    with pytest.raises(InputError, match="matrix BLOSUM62: cannot be sent to a server"):
        matrix_to_json(replace(other, published=True))


def facts(queries: list[Query]) -> list[Any]:
    return [
        (
            *(query.identifier, query.description, query.codes.tolist(), query.lower),
            None if query.profile is None else to_json_line(query.profile),
        )
        for query in queries
    ]


@pytest.mark.parametrize(
    "queries",
    [
        "MKVLAAGIVGllaq*XBZUOJ",
        [("name with blanks\tand tab", "MKVllaGIV"), "MKVLAAGIV", ("", "MKVLAAG"), ("\ud800", "MKV")],
        {"a": "MKVLAAG", "empty": ""},
        [PROFILE, ("s", "MKVLAAGIVG"), QueryAlignment.from_query("q", "", PROTEIN.encode("MKVLAAGIVGLLAQ"))],
        b"mkvMKVLAAGIVG",
    ],
)
def test_objects_arrive_as_they_are(queries: Any) -> None:
    options = make_search_options()
    stated = json.loads(json.dumps(make_request("db", queries, options, Origin()).to_json()))
    found, _ = SearchRequest.from_json(stated).read_queries()
    assert facts(found) == facts(read_queries(queries, scoring=Scoring()))
    assert stated["query_format"] == QUERY_LINES_FORMAT


def test_files_are_read_once_and_sent_decompressed(tmp_path: Path) -> None:
    path = tmp_path / "q.fa.gz"
    path.write_bytes(gzip.compress(QUERIES))
    request = make_request("db", path, make_search_options(), Origin(str(path)))
    assert (request.queries, request.query_format) == (QUERIES, "auto")
    assert facts(request.read_queries()[0]) == facts(read_queries(path))
    alignment = tmp_path / "family.a3m"
    alignment.write_text(f">q\n{PARENT}\n>r\n{PARENT[:50]}{'-' * (len(PARENT) - 50)}\n")
    expected = read_queries(alignment, scoring=Scoring())
    assert facts(
        make_request("db", alignment, make_search_options(), Origin(str(alignment))).read_queries()[0]
    ) == facts(expected)
    path.write_bytes(b">q\nMKV1\n")
    with pytest.raises(InputError, match=r"q\.fa\.gz: record 'q' line 2"):
        make_request("db", path, make_search_options(), Origin(str(path))).read_queries()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "line 1: no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", r"got an empty list|got \[\], expected identifier"),
        (b'{"sequence": "MKV", "more": 1}', "expected identifier, description, sequence and lower"),
        (b'{"sequence": 5}', "expected texts"),
        (b'{"sequence": "MK1"}', "line 1"),
        (b'{"sequence": "\\ud800"}', "line 1"),
        (b'{"sequence": "MKV", "lower": [[0, 4]]}', "lower: expected runs"),
        (b'{"sequence": "MKV", "lower": [[2, 1]]}', "lower: expected runs"),
        (b'{"sequence": "MKV", "lower": [[true, 2]]}', "lower: expected runs"),
        (b'{"sequence": "MKV", "lower": 3}', "lower: expected runs"),
        (b'{"swsearch": "profile", "version": 99}', "version 99"),
        (b"", "no query sequences were given"),
    ],
)
def test_lines_that_are_no_queries_are_refused(line: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        SearchRequest("db", line, QUERY_LINES_FORMAT).read_queries()


@pytest.mark.parametrize(
    ("inclusion", "message"),
    [
        ([], "inclusion: got"),
        ({"evalue": 1}, "inclusion: got 'evalue', expected columns"),
        ({"columns": -1}, "inclusion.columns: got -1"),
        ({"ends": "x"}, "inclusion.ends: got 'x'"),
        ({"several": 1}, "inclusion.several: got 1"),
    ],
)
def test_rules_that_are_none_are_refused(inclusion: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        SearchRequest("db", QUERIES, options={"inclusion": inclusion})
