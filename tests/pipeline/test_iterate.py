"""Searches in iterations: what they find, in whatever groups and threads, and what ends them."""

from __future__ import annotations

import io
import json
import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import swsearch
from support.cases import flat_matrix
from swsearch.alphabet import PROTEIN
from swsearch.backends import local
from swsearch.backends.local import LocalBackend
from swsearch.engines import create_engine
from swsearch.errors import InputError, OptionError
from swsearch.inputs import Query, read_queries
from swsearch.pipeline import batch, iterate
from swsearch.pipeline import iterate as rounds
from swsearch.pipeline import prefetch as ahead
from swsearch.pipeline.inclusion import Inclusion
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search_results import SearchResults
from swsearch.profiles.calibration import lambda_of
from swsearch.profiles.construction import DEFAULT_SETTINGS
from swsearch.profiles.query_alignment import GAP
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


def text_of(results, fmt="jsonl"):
    stream = io.StringIO()
    swsearch.write(results, stream, fmt)
    return stream.getvalue()


def facts_of(results):
    """Return all that is told of results, as values that can be compared."""
    return [
        (
            result.query_id, result.iteration, result.converged, result.steps, result.warning,
            None if result.first_iterations is None else result.first_iterations.tolist(),
            None if result.profile is None else profile_facts(result.profile),
            [(hit.subject_id, hit.score, hit.evalue, hit.pair.cigar, hit.pair.query_start) for hit in result.hits],
        )
        for result in results
    ]  # fmt: skip


def profile_facts(profile):
    found = profile.alignment
    return (profile.iteration, profile.scores.tobytes()) + (() if found is None else alignment_facts(found))


def alignment_facts(found):
    return (
        list(found.identifiers), found.columns.tobytes(),
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


def only(results):
    (result,) = results
    return result


def test_a_family_is_found_from_the_end_to_the_end(database):
    plain, third = search(database, [RECORDS[8]]), search(database, [RECORDS[8]], iterations=3)
    found = only(third)
    assert found.iteration >= 2
    assert found.profile.iteration == found.iteration - 1
    assert [step.iteration for step in found.steps] == list(range(1, found.iteration + 1))
    assert found.steps[-1].included > found.steps[0].included or found.converged
    assert found.steps[0].included == found.steps[0].new
    members = {hit.subject_id for hit in found.hits if hit.evalue <= 0.002}
    assert members >= {hit.subject_id for hit in only(plain).hits if hit.evalue <= 0.002}
    alignment = found.profile.alignment
    assert alignment.identifiers[0] == "f0-8"
    assert set(alignment.identifiers[1:]) <= members
    assert np.array_equal(np.unique(alignment.subjects[1:]).size, found.steps[-2].included)


def test_one_iteration_is_a_plain_search(database):
    texts = text_of(search(database, iterations=1, keep_profiles=True)), text_of(search(database))
    kept, plain = (list(map(json.loads, text.splitlines())) for text in texts)
    for one, other in zip(kept, plain, strict=True):
        assert one.pop("options") != other.pop("options")
        assert one == other
    assert all(result.first_iterations is None and result.profile is None for result in search(database))


@pytest.mark.parametrize(
    "asked",
    [
        {"preset": "context"},
        {"preset": "default"},
        {"statistics": "published"},
        {"mode": "semiglobal"},
        {"mode": "global"},
    ],
)
def test_iterations_are_searches_one_after_the_other(database, asked):
    queries = read_queries(QUERIES)
    at_once = search_with(database, queries, iterations=3, keep_profiles=True, **asked)
    for times in ([1, 2], [2, 1]):
        going = queries
        for n in times:
            results = search_with(database, going, iterations=n, keep_profiles=True, **asked)
            going = [Query.from_profile(result.next_profile) for result in results]
        for one, other in zip(at_once, results, strict=True):
            assert (one.iteration, one.converged) == (other.iteration, other.converged)
            assert [(hit.subject_id, hit.score, hit.evalue) for hit in one.hits] == [
                (hit.subject_id, hit.score, hit.evalue) for hit in other.hits
            ]
            if one.iteration > 1:
                assert profile_facts(one.profile) == profile_facts(other.profile)
            assert profile_facts(one.next_profile) == profile_facts(other.next_profile)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [1, 130, 50_000])
def test_results_are_the_same_in_all_groups_and_with_all_threads(database, monkeypatch, rows, threads):
    expected = facts_of(search(database, iterations=3))
    monkeypatch.setattr(batch, "GROUP_RESIDUES", rows)
    monkeypatch.setattr(batch, "FIRST_GROUP_RESIDUES", (rows, rows))
    monkeypatch.setattr(iterate, "HITS_PER_BATCH", rows)
    monkeypatch.setattr(local, "PARALLEL_THREADS", 2)
    assert facts_of(search(database, iterations=3, threads=threads)) == expected


def test_results_are_the_same_where_no_thread_can_be_had(database, monkeypatch):
    expected = facts_of(search(database, iterations=3))
    monkeypatch.setattr(batch, "FIRST_GROUP_RESIDUES", (1, 1))
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 1)
    monkeypatch.setattr(ahead, "can_start_threads", lambda *_: False)
    assert facts_of(search(database, iterations=3)) == expected


def test_a_searcher_finds_the_same(database):
    expected = facts_of(search(database, iterations=3, max_alignments=2))
    with swsearch.Searcher(database, engine="cpu", threads=2, iterations=3, max_alignments=2) as searcher:
        for aligned in (True, False):
            assert facts_of(searcher.search(QUERIES, aligned=aligned)) == expected


def test_a_query_without_hits_converges_at_once_and_is_reported_as_by_a_plain_search(database):
    nothing = only(search(database, [("none", "WWWWWCCCCCWWWWW")], iterations=4))
    assert (nothing.iteration, nothing.converged, nothing.profile.iteration) == (1, True, 0)
    assert [(step.included, step.new) for step in nothing.steps] == [(0, 0)]
    plain = only(search(database, [("none", "WWWWWCCCCCWWWWW")], preset="context"))
    assert [(hit.subject_id, hit.evalue) for hit in nothing.hits] == [(hit.subject_id, hit.evalue) for hit in plain]


def test_queries_without_residues_and_no_database_to_speak_of():
    results = search(
        [("only", "MKVLAAGIVGLWWKDE")], [("empty", ""), ("q", "MKVLAAGIVGLWWKDE")], iterations=2, keep_profiles=True
    )
    assert [len(result.hits) for result in results] == [0, 1]
    assert [result.converged for result in results] == [True, True]
    assert results[0].next_profile is None


def test_a_query_that_found_nothing_goes_on_with_its_gap_costs(database):
    scoring = Scoring("BLOSUM62", 9, 2)
    profile = only(search(database, [("none", "WWWWWCCCCCWWWWW")], scoring=scoring, keep_profiles=True)).next_profile
    assert (profile.gap_open, profile.gap_extend) == (9, 2)
    assert profile.lambda_ == lambda_of(scoring.matrix)


def test_filters_and_limits_are_for_reports_alone(database):
    expected = [profile_facts(result.profile) for result in search(database, QUERIES[:2], iterations=3)]
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
        assert [profile_facts(result.profile) for result in found] == expected, asked
    assert {hit.subject_id for result in search(database, QUERIES[:2], iterations=3, include_ids=["f0-1"])
            for hit in result.hits} == {"f0-1"}  # fmt: skip


def test_the_limit_of_subjects_is_told_of(database):
    found = only(search(database, QUERIES[:1], iterations=2, max_included=3))
    assert found.steps[0].included == 3
    assert "more than 3 subjects" in found.warning
    assert "--max-included" in found.warning
    assert not only(search(database, QUERIES[:1], iterations=2)).warning


def test_several_parts_of_a_subject_enter_and_no_part_twice(database):
    for several, expected in ((True, 2), (False, 1)):
        found = only(search(database, QUERIES[:1], iterations=2, inclusion=Inclusion(several=several)))
        alignment = found.profile.alignment
        rows = [k for k, name in enumerate(alignment.identifiers) if name == "twice"]
        assert len(rows) == expected
        spans = sorted((int(alignment.starts[k]), int(alignment.ends[k])) for k in rows)
        assert all(one[1] <= other[0] for one, other in pairwise(spans))
        for k in rows:
            sequence = PROTEIN.encode(dict(RECORDS)["twice"])[alignment.starts[k] : alignment.ends[k]]
            residues = alignment.columns[k][alignment.columns[k] != GAP]
            assert len(residues) + (alignment.insertions[alignment.insertions[:, 0] == k][:, 3]
                                    - alignment.insertions[alignment.insertions[:, 0] == k][:, 2]).sum() == len(
                sequence
            )  # fmt: skip
        assert np.isfinite(alignment.evalues).all()


def test_a_last_profile_that_is_not_made_has_as_many_subjects():
    """The best alignment with a subject is of low complexity, and a further one is not."""
    domain = "".join(random.Random(2).choices(AMINO_ACIDS, k=50))
    query, subject = ("query", domain + "Q" * 60), ("turned", "Q" * 60 + domain)
    with swsearch.Database.from_records([query, subject, *RECORDS]) as made:
        asked = {"iterations": 2, "statistics": "published"}
        counted, kept = (only(search(made, [query], keep_profiles=keep, **asked)) for keep in (False, True))
    (hit,) = (hit for hit in counted.hits if hit.subject_id == "turned")
    assert (hit.pair.subject_start, hit.pair.subject_end) == (0, 60)
    assert list(kept.next_profile.alignment.identifiers) == ["query", "turned"]
    assert counted.steps == kept.steps and [step.included for step in counted.steps] == [1, 1]


def test_what_was_found_first_is_said(database):
    found = only(search(database, [RECORDS[8]], iterations=3))
    of_subject = dict(
        zip(found.profile.alignment.subjects.tolist(), found.profile.alignment.iterations.tolist(), strict=True)
    )
    for hit, first in zip(found.hits, found.first_iterations.tolist(), strict=True):
        assert first == of_subject.get(hit.subject_index, found.iteration)
    assert found.to_columns()["iteration"] == found.first_iterations[found.hsps.hits].tolist()
    assert "iteration" not in only(search(database, [RECORDS[8]])).to_columns()
    assert list(found.to_pandas()["iteration"]) == found.to_arrow()["iteration"].to_pylist()


def test_sequences_of_another_database_stay(database):
    first = only(search_with(database, read_queries(QUERIES[:1]), keep_profiles=True)).next_profile
    with swsearch.Database.from_records([("other", RECORDS[1][1]), *RECORDS[20:]]) as elsewhere:
        found = only(search_with(elsewhere, [Query.from_profile(first)], iterations=2))
    alignment = found.profile.alignment
    before = list(first.alignment.identifiers[1:])
    assert list(alignment.identifiers[1 : len(before) + 1]) == before
    assert (alignment.subjects[1 : len(before) + 1] == -1).all()
    assert "other" in alignment.identifiers
    assert found.steps[0].iteration == 2


def test_a_profile_without_an_alignment_begins_anew(database):
    made = only(search_with(database, read_queries(QUERIES[:1]), keep_profiles=True)).next_profile
    bare = replace(made, alignment=None, iteration=0)
    found = only(search_with(database, [Query.from_profile(bare)], iterations=2))
    assert found.steps[0].iteration == 1
    assert found.profile.alignment.identifiers[0] == QUERIES[0][0]


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
    assert (results.iteration_counts.queries, results.iteration_counts.converged) == (
        5,
        sum(r.converged for r in found),
    )
    assert results.iteration_counts.describe().startswith("5 queries, ")


def test_on_the_cpu_a_query_is_done_long_before_the_last_one(database):
    queries = [QUERIES[0]] * 24  # fewer residues than a group has
    done = []
    with swsearch.search(queries, database, engine="cpu", iterations=3, progress=done.append) as results:
        next(results)
        at_first = sum(done)
        assert len(list(results)) == 23
    assert at_first < sum(done) / 2


def test_errors_of_a_stage_reach_the_caller_and_the_threads_end(database, monkeypatch):
    def fails(*_):
        raise MemoryError("no room")

    monkeypatch.setattr(iterate, "build_profile", fails)
    with pytest.raises(MemoryError, match="no room"):
        search(database, iterations=2)


def test_a_search_may_be_given_up_at_any_time(database, monkeypatch):
    monkeypatch.setattr(batch, "FIRST_GROUP_RESIDUES", (1, 1))
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 1)
    results = swsearch.search(QUERIES * 3, database, engine="cpu", iterations=3)
    assert next(results).query_id == "f0-0"
    results.close()
    assert not ahead._running


def test_no_more_groups_are_under_way_than_memory_is_for(database, monkeypatch):
    monkeypatch.setattr(batch, "FIRST_GROUP_RESIDUES", (1, 1))
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 1)
    most = []
    real = rounds.IterationQueue.take

    def take(self):
        most.append(len(self._ends))
        return real(self)

    monkeypatch.setattr(rounds.IterationQueue, "take", take)
    assert len(search(database, QUERIES * 4, iterations=2)) == 20
    assert max(most) <= rounds.GROUPS_PER_BATCH


@pytest.mark.parametrize(
    ("asked", "said"),
    [({"iterations": 0}, "iterations"), ({"iterations": 2, "statistics": "none"}, "statistics"),
     ({"iterations": 2, "inclusion": 3}, "inclusion"), ({"inclusion_evalue": -1}, "inclusion_evalue"),
     ({"keep_profiles": 2}, "keep_profiles")],
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
        options = {"preset": "default", "iterations": 2, "keep_profiles": True, "engine": "cpu"}
        fitted = next(swsearch.search(query, database, **options))
        assert fitted.next_profile.scale == DEFAULT_SETTINGS.scale != 1
        assert all(hit.evalue_published is None for hit in fitted.hits)
        with pytest.raises(OptionError, match="times the matrix's units"):
            next(swsearch.search(fitted.next_profile, database, statistics="published", engine="cpu"))
        asked = {"statistics": "published", "engine": "cpu"}
        with (
            swsearch.Searcher(database, **asked) as searcher,
            pytest.raises(OptionError, match="times the matrix's units"),
        ):
            searcher.search(fitted.next_profile)
        published = next(swsearch.search(query, database, iterations=2, keep_profiles=True, **asked))
        assert published.next_profile.scale == 1
        assert len(next(swsearch.search(published.next_profile, database, **asked)).hits)


def test_profiles_bring_their_matrix():
    query = RECORDS[0]
    with swsearch.Database.from_records(RECORDS) as database:
        options = {"iterations": 2, "keep_profiles": True, "engine": "cpu"}
        own, plain = (next(swsearch.search(query, database, **options, preset=name)) for name in (None, "default"))
        for result, scoring in ((own, Scoring("PFASUM60")), (plain, Scoring())):
            assert result.scoring == scoring
            for iterations in (1, 2):
                more = {"iterations": iterations, "engine": "cpu"}
                found = next(swsearch.search(result.next_profile, database, **more))
                assert found.scoring == scoring
                assert len(found.hits)
                with swsearch.Searcher(database, **more) as searcher:
                    (again,) = searcher.search(result.next_profile)
                assert [hit.evalue for hit in again.hits] == [hit.evalue for hit in found.hits]
        both = [own.next_profile, plain.next_profile]
        with pytest.raises(InputError, match=r"got PFASUM60 15/1 from .* and BLOSUM62 11/1 from .* one matrix"):
            next(swsearch.search(both, database, engine="cpu"))
        with pytest.raises(InputError, match="search with --matrix PFASUM60"):
            next(swsearch.search(own.next_profile, database, matrix="PAM30", engine="cpu"))
