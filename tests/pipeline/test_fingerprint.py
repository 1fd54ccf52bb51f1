"""All that results depend on is in the manifest, by name, and nothing else."""

from dataclasses import fields, replace

import pytest

from swsearch import Database
from swsearch.alphabet import PROTEIN
from swsearch.inputs import Query, read_queries
from swsearch.pipeline.fingerprint import differences, search_fingerprint
from swsearch.pipeline.inclusion import Inclusion
from swsearch.pipeline.options import SearchOptions
from swsearch.scoring import Matrix, Scoring, load_matrix

OPTIONS = SearchOptions()

ITERATION = ["iterations", "inclusion_evalue", "inclusion_coverage", "max_included", "inclusion"]

CHANGED = {
    "scoring": (Scoring("BLOSUM45", 11, 1), ["matrix"]),
    "mode": ("global", ["mode"]),
    "alphabet": ("tea", ["matrix", "gap_open", "gap_extend", "alphabet"]),
    "max_hits": (7, ["max_hits"]),
    "evalue": (0.5, ["evalue"]),
    "dbsize": (10_000, ["dbsize"]),
    "statistics": ("published", ["statistics"]),
    "query_loc": ((2, 3), ["query_loc"]),
    "max_alignments": (3, ["max_alignments"]),
    "query_mask": ("lower", ["query_mask"]),
    "sort": ("score", ["sort"]),
    "distribution": (True, ["distribution"]),
    "allow_dna": (True, []),  # what may be read; what is read stands under queries and database
    "subject_mask": ("none", []),  # in force is what the job found out
    "min_score": (5, ["min_score"]),
    "min_identity": (50.0, ["min_identity"]),
    "min_query_coverage": (50.0, ["min_query_coverage"]),
    "min_subject_coverage": (50.0, ["min_subject_coverage"]),
    "include_ids": (("subject_1",), ["include_ids"]),
    "exclude_ids": (("subject_1",), ["exclude_ids"]),
    "ignore_missing_ids": (True, ["ignore_missing_ids"]),
    "taxids": ((9606,), ["taxids"]),
    "exclude_taxids": ((9606,), ["exclude_taxids"]),
    "iterations": (
        3,
        ["matrix", "gap_open", "contexts", *ITERATION],
    ),
    "inclusion_evalue": (1.0, []),  # without iterations
    "inclusion_coverage": (50.0, []),
    "max_included": (5, []),
    "rules": (Inclusion(columns=5), []),
    "keep_profiles": (
        True,
        [*ITERATION[:-1], "keep_profiles", ITERATION[-1]],
    ),
    "translate": (True, ["translate", "genetic_code", "strand"]),
    "task": ("short", ["matrix", "gap_open", "evalue"]),
    "preset": ("short", ["matrix", "gap_open"]),
    "contexts": (True, ["matrix", "gap_open", "contexts"]),
    "matrix": (load_matrix("PAM30"), ["matrix", "gap_open"]),
    "gap_open": (5, ["gap_open"]),
    "gap_extend": (5, ["gap_extend"]),
    "has_named_costs": (True, []),
    "profile_from": (None, []),  # a checkpoint knows the profiles of the queries
}
"""Another value of each option, and the names that differ."""

TRANSLATED = {"genetic_code": 4, "strand": "plus", "frame_shift": 15}
"""Values of options that translation has."""

ITERATED = {
    "inclusion_evalue": (1.0, ["inclusion_evalue", "inclusion"]),
    "inclusion_coverage": (50.0, ["inclusion_coverage", "inclusion"]),
    "max_included": (5, ["max_included", "inclusion"]),
    "rules": (Inclusion(columns=5), ["inclusion"]),
}
"""The same of options that iterations have."""


@pytest.fixture(scope="module")
def database():
    with Database.from_records(["MKVWW", "MKLWW"]) as opened:
        yield opened


def names(was, now):
    return [line.split(" was ")[0] for line in differences(was, now)]


def queries(*letters):
    return read_queries([(f"q{n}", each) for n, each in enumerate(letters)], PROTEIN)


def test_every_option_is_known():
    assert {*CHANGED, *TRANSLATED} == {each.name for each in fields(SearchOptions)}


@pytest.mark.parametrize("name", list(CHANGED))
def test_each_option_that_changes_results_is_named(database, name):
    value, expected = CHANGED[name]
    was = search_fingerprint(queries("MKV"), database, "none", OPTIONS)
    assert (
        names(was, search_fingerprint(queries("MKV"), database, "none", SearchOptions(**{name: value}))) == expected
    )
    assert names(was, was) == []


@pytest.mark.parametrize("name", list(TRANSLATED))
def test_each_option_of_translation_is_named(database, name):
    options = replace(OPTIONS, translate=True)
    was = search_fingerprint(queries("MKV"), database, "none", options)
    changed = replace(options, **{name: TRANSLATED[name]})
    assert names(was, search_fingerprint(queries("MKV"), database, "none", changed)) == [name]


@pytest.mark.parametrize("name", list(ITERATED))
def test_each_option_of_iterations_is_named(database, name):
    value, expected = ITERATED[name]
    options = replace(OPTIONS, iterations=3)
    was = search_fingerprint(queries("MKV"), database, "none", options)
    assert (
        names(was, search_fingerprint(queries("MKV"), database, "none", replace(options, **{name: value})))
        == expected
    )


def test_inputs_are_named(database):
    was = search_fingerprint(queries("MKV", "WW"), database, "none", OPTIONS)
    for other in (queries("MKV"), queries("WW", "MKV"), queries("MKVW", "W"), queries("MKV", "WV")):
        assert names(was, search_fingerprint(other, database, "none", OPTIONS)) == ["queries"]
    renamed = [Query("a", "", each.codes) for each in queries("MKV", "WW")]
    assert names(was, search_fingerprint(renamed, database, "none", OPTIONS)) == ["queries"]
    assert names(was, search_fingerprint(queries("MKV", "WW"), database, "tantan", OPTIONS)) == ["subject_mask"]
    with Database.from_records(["MKVWW", "MKLWV"]) as other:
        assert names(was, search_fingerprint(queries("MKV", "WW"), other, "none", OPTIONS)) == ["database"]


def test_a_matrix_is_known_by_its_scores(database):
    scoring = Scoring()
    scores = scoring.matrix.scores.copy()
    scores[0, 0] += 1
    other = replace(OPTIONS, scoring=Scoring(Matrix("BLOSUM62", PROTEIN, scores), 11, 1))
    same = replace(OPTIONS, scoring=Scoring(Matrix("BLOSUM62", PROTEIN, scoring.matrix.scores, True), 11, 1))
    was = search_fingerprint(queries("MKV"), database, "none", OPTIONS)
    assert names(was, search_fingerprint(queries("MKV"), database, "none", other)) == ["matrix"]
    assert names(was, search_fingerprint(queries("MKV"), database, "none", same)) == []


def test_ids_are_known_by_their_content_in_any_order(database):
    def of(*ids):
        asked = replace(OPTIONS, exclude_ids=ids)
        return search_fingerprint(queries("MKV"), database, "none", asked)

    assert differences(of("a", "b"), of("b", "a")) == []
    (line,) = differences(of("a", "b"), of("a", "\udce4"))
    assert line.startswith("exclude_ids was 2 identifiers, sha256 ")
    assert ", is 2 identifiers, sha256 " in line
