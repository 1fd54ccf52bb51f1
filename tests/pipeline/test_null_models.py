"""Nulls of pairs: an E-value follows from the pair and the number of subjects alone."""

from itertools import chain

import numpy as np
import pytest

import swsearch
from support.cases import random_codes
from swsearch import Database
from swsearch.alphabet import PROTEIN
from swsearch.backends.local import LocalBackend
from swsearch.blocks import apply_mask
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.engines.pools import make_pool
from swsearch.inputs import Query, read_queries
from swsearch.options.kinds import MODES
from swsearch.pipeline import null_models as module
from swsearch.pipeline.null_models import (
    N_COPIES,
    REVERSED,
    NullModelFitter,
    NullModelRequest,
    make_shuffled_chunk,
    scores_with_copies,
)
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search import Search
from swsearch.profiles.profile import PROFILE_LETTERS, Profile
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring
from swsearch.statistics.null_model import FitSettings, PairNullModels


def drawn(seed, *lengths):
    generator = np.random.default_rng(seed)
    return [PROTEIN.decode(random_codes(generator, n, 20)) for n in lengths]


def related(letters, seed, share=0.5):
    """Change a share of the residues."""
    generator = np.random.default_rng(seed)
    codes = PROTEIN.encode(letters).copy()
    changed = generator.random(len(codes)) < share
    codes[changed] = random_codes(generator, int(changed.sum()), 20)
    return PROTEIN.decode(codes)


def hits(query, subjects, **options):
    (result,) = swsearch.search(query, subjects, **{"engine": "cpu", **options})
    return {hit.subject_id: hit for hit in result.hits}


@pytest.mark.parametrize("mode", MODES)
def test_one_subject_alone_has_an_evalue(mode):
    (query,) = drawn(1, 120)
    (alone,) = hits(query, [("alone", related(query, 2))], mode=mode).values()
    assert 0 < alone.evalue < 1e-6
    (stranger,) = hits(query, [("stranger", drawn(3, 120)[0])], mode=mode).values()
    assert 0.01 < stranger.evalue <= 1  # of one subject there is at most one such hit


@pytest.mark.parametrize("mode", MODES)
def test_a_pair_has_the_same_evalue_in_every_database_for_its_size(mode):
    query, *strangers = drawn(4, 90, *range(40, 160, 4))
    pair = ("pair", related(query, 5, 0.7))
    relatives = [(f"r{k}", related(query, 10 + k, 0.3)) for k in range(25)]
    databases = {
        "alone": [pair],
        "of strangers": [*((f"s{k}", letters) for k, letters in enumerate(strangers)), pair],
        "of relatives": [pair, *relatives],
        "with what is empty": [("none", ""), pair, ("nothing", "")],
    }
    evalues = {}
    for name, records in databases.items():
        with Database.from_records(records) as database:
            n_subjects = np.count_nonzero(database.lengths)
            own = hits(query, database, mode=mode, evalue=1e3)["pair"]
            scaled = hits(query, database, mode=mode, evalue=1e5, dbsize=50 * database.n_residues)["pair"]
            evalues[name] = own.evalue / n_subjects
            assert scaled.evalue == pytest.approx(50 * own.evalue, rel=1e-12)
            assert (scaled.z_score, scaled.bit_score) == (own.z_score, own.bit_score)
    assert list(evalues.values()) == pytest.approx([evalues["alone"]] * len(databases), rel=1e-12)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", ["Q" * 60, "SP" * 40, "MK" + "QQQPQQQQH" * 12])
def test_what_is_identical_is_never_lost(query, mode):
    """Every shuffled copy of a run of one residue is the run itself."""
    others = [(f"s{k}", letters) for k, letters in enumerate(drawn(6, *[100] * 30))]
    found = hits(query, [*others, ("itself", query), ("other", query[:-1])], mode=mode, max_hits=1)
    assert list(found) == ["itself"]
    assert found["itself"].evalue < 1e-20


def test_the_threshold_and_other_candidates_change_no_evalue():
    query, *strangers = drawn(7, 150, *[150] * 60)
    subjects = [*strangers, *(related(query, k, 0.8) for k in range(20))]
    everything = hits(query, subjects, evalue=1e6)
    assert len(everything) == 80
    for options in ({}, {"evalue": 1e-3}, {"max_hits": 3}, {"min_score": 40}, {"sort": "score"}, {"threads": 1}):
        found = hits(query, subjects, **options)
        assert found
        assert all(everything[name].evalue == hit.evalue for name, hit in found.items()), options


def test_masked_residues_are_shuffled_as_what_they_count_as():
    query = "MKVLAAGIVGWWHHKDEFRTYPCNQSMKVLAAGIVG"
    subject = "MKVLAAGIVGWWhhkdefrtypcnqsmkvlAAGIVG"
    masked = hits(query, [("one", subject)], subject_mask="lower")["one"]
    codes = apply_mask(PROTEIN.encode(subject.upper()), [(12, 30)])
    assert masked.evalue == hits(query, [("one", PROTEIN.decode(codes))])["one"].evalue
    assert masked.evalue > hits(query, [("one", subject)])["one"].evalue


def maker(mode="local", threads=2):
    return NullModelFitter(FitSettings(mode, 1, 100, 10_000), Recurrence(Scoring(), mode), threads)


def fit_pairs(made, asked, null, scores, subjects, limit):
    """Return the nulls of a query's pairs with subjects that are at hand."""

    def read(places):
        return make_pool([subjects[place] for place in places.tolist()])

    lengths = np.array([len(each) for each in subjects])
    (found,) = made.fit_pairs([NullModelRequest(asked, null, np.arange(len(subjects)), scores, lengths, limit)], read)
    return found


def codes_of(*letters):
    return [PROTEIN.encode(each) for each in letters]


def levels_of(made, query, null, subjects):
    """Return the chance levels of pairs by each number of copies, shape (n_numbers, n_subjects)."""
    copies = range(REVERSED, N_COPIES[-1])
    chunk = make_shuffled_chunk(subjects, copies, 1)
    scores = scores_with_copies([query], made.recurrence, chunk, 1)[0].reshape(len(subjects), len(copies))
    pairs = PairNullModels(
        null, np.array([len(each) for each in subjects]), np.zeros(len(subjects)), np.ones(len(subjects))
    )
    return np.array([pairs.with_copies(scores[:, 1 : 1 + n].mean(axis=1), scores[:, 0]).levels for n in N_COPIES])


def assert_levels(found, levels):
    """Check that each pair has the level of one of the numbers of copies."""
    assert (np.isclose(found.levels, levels, rtol=1e-14, atol=0).any(axis=0)).all()


@pytest.mark.parametrize("mode", MODES)
def test_means_are_those_of_the_copies(mode):
    query, near, far, none = drawn(8, 70, 80, 90, 64)
    asked, made = Query("q", "", PROTEIN.encode(query)), maker(mode)
    (null,) = made.fit_queries([asked])
    subjects = codes_of(near, far, none, query)
    scores = np.array([60, -500, 30, 370], dtype=np.int64)
    found = fit_pairs(made, asked, null, scores, subjects, 1e-3)
    assert_levels(found, levels_of(made, asked.codes, null, subjects))
    assert found.bounds[:3].tolist() == [1.0] * 3
    assert found.bounds[3] < 1e-60
    # a pair that is no hit by a few copies is given up
    assert found.levels[1] == levels_of(made, asked.codes, null, subjects)[0][1]
    # what only makes E-values larger makes none smaller, but of what is identical
    assert (found.means >= null.moments(found.lengths)[0]).all()


def test_nulls_do_not_depend_on_threads_or_on_what_is_scored_at_a_time(monkeypatch):
    query, *letters = drawn(9, 100, *range(20, 200, 9))
    asked, subjects = Query("q", "", PROTEIN.encode(query)), codes_of(*letters)
    scores = np.full(len(subjects), 35, dtype=np.int64)

    def means(threads):
        made = maker(threads=threads)
        (null,) = made.fit_queries([asked])
        return null, fit_pairs(made, asked, null, scores, subjects, 0.1).levels.tolist()

    expected = means(1)
    assert means(2) == expected
    monkeypatch.setattr(module, "MAX_RESIDUES", 700)
    assert means(2) == expected


def test_a_query_without_residues_has_no_null():
    empty, full = Query("e", "", PROTEIN.encode("")), Query("f", "", PROTEIN.encode("MKV"))
    made = maker().fit_queries([empty, full, empty])
    assert [null is None for null in made] == [True, False, True]


def test_batches_may_be_asked_for_again():
    with (
        swsearch.Database.from_records(
            [("one", "MKVLAWGHKRWDEFGHIKLMNPQRSTVWY"), ("two", "ACDEFGHIKLMNPQRSTVWYAC")]
        ) as subjects,
        CpuEngine(1) as engine,
    ):
        queries = read_queries([subjects.sequence(0)], PROTEIN)
        job = Search(queries, SearchOptions(), LocalBackend(subjects, engine))
        first, again = (
            [(hit.subject_id, hit.evalue) for result in chain(*job.results()) for hit in result.hits]
            for _ in range(2)
        )
    assert first == again != []


@pytest.mark.parametrize("mode", MODES)
def test_a_profile_is_scored_by_its_own_rows(mode):
    query, near, far = drawn(12, 60, 70, 64)
    codes, scoring = PROTEIN.encode(query), Scoring()
    same = scoring.rows(codes).scores[:, :PROFILE_LETTERS]
    sequence = Query("q", "", codes)
    profiles = [Query.from_profile(Profile("q", "", codes, scores)) for scores in (same, np.clip(2 * same, -9, 16))]
    subjects, made = codes_of(near, far, query), maker(mode)
    scores = np.array([60, 30, 300], dtype=np.int64)
    nulls = made.fit_queries([sequence, *profiles])
    assert nulls[0] == nulls[1] != nulls[2]
    found = [
        fit_pairs(made, asked, null, scores, subjects, 1e-3)
        for asked, null in zip([sequence, *profiles], nulls, strict=True)
    ]
    assert found[0].levels.tolist() == found[1].levels.tolist()
    assert found[0].bounds.tolist() == found[1].bounds.tolist() == found[2].bounds.tolist()
    assert_levels(found[2], levels_of(made, profiles[1].rows(scoring), nulls[2], subjects))
