"""From candidates to hits: the best by their own E-values, in order, within what is asked for."""

import numpy as np
import pytest

import swsearch
from support.cases import random_codes
from swsearch import Database
from swsearch.alphabet import PROTEIN
from swsearch.options.kinds import MODES
from swsearch.pipeline import evalues as rated
from swsearch.pipeline import null_models
from swsearch.profiles.profile import Profile
from swsearch.scoring import Scoring

LETTERS = "ACDEFGHIKLMNPQRSTVWY"


def of_kinds(generator, kinds, n, share=0.8):
    """Draw a sequence most of whose residues are of few kinds."""
    few = generator.choice(list(kinds), n)
    return "".join(np.where(generator.random(n) < share, few, generator.choice(list(LETTERS), n)))


@pytest.fixture(scope="module")
def query():
    """Half of it is of few kinds of residues."""
    generator = np.random.default_rng(20)
    return PROTEIN.decode(random_codes(generator, 80, 20)) + of_kinds(generator, "EK", 120)


@pytest.fixture(scope="module")
def database(query):
    """Strangers, relatives of the query's usual half, and sequences that are charged as its other half is."""
    generator = np.random.default_rng(21)
    records = [(f"stranger{k}", PROTEIN.decode(random_codes(generator, 150, 20))) for k in range(80)]
    for k in range(40):
        codes = PROTEIN.encode(query[:80]).copy()
        changed = generator.random(80) < 0.55 + k / 200
        codes[changed] = random_codes(generator, int(changed.sum()), 20)
        records.append((f"relative{k}", PROTEIN.decode(codes)))
    records += [(f"charged{k}", of_kinds(generator, "EK", 250)) for k in range(60)]
    with Database.from_records([records[k] for k in generator.permutation(len(records))]) as made:
        yield made


@pytest.fixture(scope="module")
def everything(query, database):
    """Every subject, by mode."""
    return {mode: search(query, database, mode=mode, evalue=1e6, max_hits=1000).hits for mode in MODES}


def search(query, database, **options):
    (result,) = swsearch.search(query, database, **{"engine": "cpu", **options})
    return result


def listed(hits):
    return [(hit.subject_id, hit.score, hit.evalue) for hit in hits]


@pytest.mark.parametrize("mode", MODES)
def test_all_candidates_are_in_the_order_of_their_own_evalues(everything, mode):
    hits = everything[mode]
    assert len(hits) >= 175  # semi-global ones have scores above 0
    keys = [(hit.evalue, -hit.score, hit.subject_index) for hit in hits]
    assert keys == sorted(keys)
    assert [hit.score for hit in hits] != sorted((hit.score for hit in hits), reverse=True)


def test_composition_is_known(everything):
    """By score and by published statistics what is charged comes first; by fitted ones the relatives do."""
    hits = everything["local"]
    charged = [hit for hit in hits if hit.subject_id.startswith("charged")]
    assert sum(hit.evalue_published < 1e-6 for hit in charged) > 40
    assert min(hit.evalue for hit in charged) > 1e-3
    assert sum(hit.subject_id.startswith("relative") for hit in hits[:20]) > 15


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("max_hits", [1, 5, 17])
def test_the_best_of_all_are_kept(query, database, everything, mode, max_hits):
    assert listed(search(query, database, mode=mode, max_hits=max_hits).hits) == listed(everything[mode][:max_hits])


@pytest.mark.parametrize(
    "options", [{}, {"mode": "global"}, {"sort": "score", "max_hits": 7}, {"mode": "semiglobal"}]
)
def test_keeping_the_distribution_changes_no_hit(query, database, options):
    plain, kept = (search(query, database, distribution=asked, **options) for asked in (False, True))
    assert listed(plain.hits) == listed(kept.hits)
    assert plain.warning == kept.warning
    assert plain.distribution is None
    assert kept.distribution.expected is not None


def test_what_composition_explains_is_doubted(query, database):
    doubted = search(query, database)
    assert doubted.warning.startswith("query 'query_1': ")
    assert "a published E-value <= 1e-06 but a fitted one > 0.01, e.g. 'charged" in doubted.warning
    assert "most of the score is composition or a repeated pattern" in doubted.warning
    assert doubted.warning == search(query, database, max_hits=1).warning
    codes = PROTEIN.encode(query)
    scores = Scoring().matrix.scores[codes][:, :27].astype(np.int8)
    assert search(Profile("q", "", codes, scores), database).warning == ""  # constants are those of a matrix
    for options in (
        {"statistics": "published"},
        {"statistics": "none"},
        {"mode": "global"},
        {"scoring": Scoring(gap_open=3)},
    ):
        assert search(query, database, **options).warning == ""
    assert search(query[:80], database).warning == ""


@pytest.mark.parametrize("most", [1, 3, 10**9])
def test_queries_that_are_rated_together_have_the_hits_of_each_alone(query, database, monkeypatch, most):
    """In rounds, some of which are over for some of the queries."""
    generator = np.random.default_rng(22)
    queries = [query, "WWWWW", query[:80], PROTEIN.decode(random_codes(generator, 60, 20)), query, query[90:]]
    plain = [listed(search(each, database, max_hits=6).hits) for each in queries]
    monkeypatch.setattr(rated, "MIN_BATCH_SIZE", 5)
    monkeypatch.setattr(rated, "MAX_BATCH_SIZE", 7)
    alone = [search(each, database, max_hits=6) for each in queries]
    monkeypatch.setattr(rated, "MAX_CANDIDATES", most)
    monkeypatch.setattr(rated, "PROBABILITIES_PER_BATCH", most)
    monkeypatch.setattr(null_models, "MAX_RESIDUES", 700)
    together = list(swsearch.search(queries, database, engine="cpu", max_hits=6))
    assert [listed(each.hits) for each in together] == [listed(each.hits) for each in alone] == plain
    warnings = [[each.warning.partition(": ")[2] for each in results] for results in (together, alone)]
    assert warnings[0] == warnings[1]
    assert any(warnings[0])
    assert not all(warnings[0])
