"""Searches in iterations: what they find, in whatever groups and threads, and what ends them."""

from __future__ import annotations

import random

import pytest

import swsearch
from support.cases import flat_matrix
from support.samples import sample
from swsearch.alphabet import PROTEIN
from swsearch.backends.local import LocalBackend
from swsearch.engines import create_engine
from swsearch.errors import InputError, OptionError
from swsearch.inputs import Query, read_queries
from swsearch.pipeline import batch, iterate
from swsearch.pipeline import prefetch as ahead
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search_results import SearchResults
from swsearch.profiles.construction import USUAL
from swsearch.scoring import Scoring

AMINO_ACIDS = PROTEIN.letters[:20]
N_FAMILIES, N_MEMBERS = 3, 12


def mutated(rng, letters, rate):
    return "".join(rng.choice(AMINO_ACIDS) if rng.random() < rate else letter for letter in letters)


def records_of(seed=5):
    """Families whose members are ever less alike, and sequences of none."""
    rng = random.Random(seed)
    records = []
    for family in range(N_FAMILIES):
        founder = "".join(rng.choices(AMINO_ACIDS, k=60))
        for member in range(N_MEMBERS):
            records.append((f"f{family}-{member}", mutated(rng, founder, member * 0.06)))
    records += [(f"r{k}", "".join(rng.choices(AMINO_ACIDS, k=rng.randint(20, 90)))) for k in range(60)]
    records.append(("twice", records[0][1] + "".join(rng.choices(AMINO_ACIDS, k=40)) + records[1][1]))
    return records


RECORDS = records_of()
QUERIES = [RECORDS[0], RECORDS[N_MEMBERS], ("none", "WWWWWCCCCCWWWWW"), RECORDS[2 * N_MEMBERS], RECORDS[3]]


@pytest.fixture(scope="module")
def database():
    with swsearch.Database.from_records(RECORDS) as made:
        yield made


def facts_of(results):
    """Return all that is told of results, as values that can be compared."""
    return [
        (
            result.query_id, result.iteration, result.converged, result.steps, result.doubt,
            None if result.first_found is None else result.first_found.tolist(),
            None if result.profile is None else alignment_facts(result.profile),
            [(hit.subject_id, hit.score, hit.evalue, hit.pair.cigar, hit.pair.query_start) for hit in result.hits],
        )
        for result in results
    ]  # fmt: skip


def alignment_facts(profile):
    found = profile.alignment
    return (
        profile.iteration, profile.scores.tobytes(), list(found.identifiers), found.columns.tobytes(),
        found.starts.tolist(), found.subjects.tolist(), found.iterations.tolist(), found.insertions.tolist(),
    )  # fmt: skip


def search(database, queries=QUERIES, **asked):
    return list(swsearch.search(queries, database, engine="cpu", **{"threads": 2, **asked}))


def search_with(database, queries, **asked):
    """Search with queries as a job takes them, profiles among them."""
    options = SearchOptions(**asked)
    with (
        create_engine("cpu", threads=2) as engine,
        SearchResults(queries, database, options, lambda opened: LocalBackend(opened, engine)) as results,
    ):
        return list(results)


@pytest.mark.parametrize("asked", [{}, {"statistics": "published"}, {"mode": "semiglobal"}, {"mode": "global"}])
def test_iterations_are_searches_one_after_the_other(database, asked):
    queries = read_queries(QUERIES)
    at_once = search_with(database, queries, iterations=3, keep_next=True, **asked)
    for times in ([1, 2], [2, 1]):
        going = queries
        for n in times:
            results = search_with(database, going, iterations=n, keep_next=True, **asked)
            going = [Query.of_profile(result.next_profile) for result in results]
        for one, other in zip(at_once, results, strict=True):
            assert (one.iteration, one.converged) == (other.iteration, other.converged)
            assert [(hit.subject_id, hit.score, hit.evalue) for hit in one.hits] == [
                (hit.subject_id, hit.score, hit.evalue) for hit in other.hits
            ]
            if one.iteration > 1:
                assert alignment_facts(one.profile) == alignment_facts(other.profile)
            assert alignment_facts(one.next_profile) == alignment_facts(other.next_profile)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", sample([1, 130, 50_000], lambda rows: rows == 130))
def test_results_are_the_same_in_all_groups_and_with_all_threads(database, monkeypatch, rows, threads):
    expected = facts_of(search(database, iterations=3))
    monkeypatch.setattr(batch, "GROUP_RESIDUES", rows)
    monkeypatch.setattr(batch, "FIRST_GROUP_RESIDUES", (rows, rows))
    monkeypatch.setattr(iterate, "HITS_PER_PART", rows)
    assert facts_of(search(database, iterations=3, threads=threads)) == expected


def test_filters_and_limits_are_for_reports_alone(database):
    expected = [alignment_facts(result.profile) for result in search(database, QUERIES[:2], iterations=3)]
    for asked in (
        {"max_hits": 1},
        {"include_ids": ["r1", "f0-1"]},
        {"exclude_ids": ["f0-0"]},
        {"min_identity": 90},
        {"min_score": 10_000},
        {"evalue": 1e-30},
        {"sort": "score"},
        {"distribution": True},
        {"max_alignments": 3},
    ):
        found = search(database, QUERIES[:2], iterations=3, **asked)
        assert [alignment_facts(result.profile) for result in found] == expected, asked
    assert {hit.subject_id for result in search(database, QUERIES[:2], iterations=3, include_ids=["f0-1"])
            for hit in result.hits} == {"f0-1"}  # fmt: skip


def test_progress_counts_all_iterations(database):
    computed, spared = [], []
    options = SearchOptions(iterations=3)
    with (
        create_engine("cpu") as engine,
        SearchResults(
            read_queries(QUERIES),
            database,
            options,
            lambda opened: LocalBackend(opened, engine),
            progress=computed.append,
        ) as results,
    ):
        results.search.forgone = spared.append
        found = list(results)
    assert (
        sum(computed) + sum(spared)
        == results.search.cells
        == 3 * sum(len(q[1]) for q in QUERIES) * database.n_residues
    )
    assert sum(computed) == sum(len(r.steps) * r.query_length for r in found) * database.n_residues
    assert (results.iterated.queries, results.iterated.converged) == (5, sum(r.converged for r in found))
    assert results.iterated.describe().startswith("5 queries, ")


def test_a_search_may_be_given_up_at_any_time(database, monkeypatch):
    monkeypatch.setattr(batch, "FIRST_GROUP_RESIDUES", (1, 1))
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 1)
    results = swsearch.search(QUERIES * 3, database, engine="cpu", iterations=3)
    assert next(results).query_id == "f0-0"
    results.close()
    assert not ahead._running


@pytest.mark.parametrize(
    ("asked", "said"),
    [({"iterations": 0}, "iterations"), ({"iterations": 2, "statistics": "none"}, "statistics"),
     ({"iterations": 2, "inclusion": 3}, "inclusion"), ({"inclusion_evalue": -1}, "inclusion_evalue"),
     ({"keep_next": 2}, "keep_next")],
)  # fmt: skip
def test_what_cannot_be_asked_for(database, asked, said):
    with pytest.raises(OptionError, match=said):
        swsearch.search(QUERIES, database, **asked)


def test_a_matrix_that_can_make_no_profile_is_told_of_before_the_search(database):
    with pytest.raises(InputError, match="have no lambda"):
        swsearch.search(QUERIES, database, iterations=2, scoring=Scoring(flat_matrix(1, 1)))


def test_published_statistics_are_of_profiles_in_the_matrixs_units():
    """Profiles made for fitted statistics have larger scores, for which the constants would be far too small."""
    query = RECORDS[0]
    with swsearch.Database.from_records(RECORDS) as database:
        fitted = next(swsearch.search(query, database, iterations=2, keep_next=True, engine="cpu"))
        assert fitted.next_profile.scale == USUAL.scale != 1
        assert all(hit.evalue_published is None for hit in fitted.hits)
        with pytest.raises(OptionError, match="times the matrix's units"):
            next(swsearch.search(fitted.next_profile, database, statistics="published", engine="cpu"))
        asked = {"statistics": "published", "engine": "cpu"}
        with (
            swsearch.Searcher(database, **asked) as searcher,
            pytest.raises(OptionError, match="times the matrix's units"),
        ):
            searcher.search(fitted.next_profile)
        published = next(swsearch.search(query, database, iterations=2, keep_next=True, **asked))
        assert published.next_profile.scale == 1
        assert len(next(swsearch.search(published.next_profile, database, **asked)).hits)
