"""Nulls of pairs: an E-value follows from the pair and the number of subjects alone."""

import numpy as np
import pytest

import swsearch
from support.cases import random_codes
from swsearch import Database
from swsearch.alphabet import PROTEIN
from swsearch.blocks import masked_codes
from swsearch.options.kinds import MODES


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
    codes = masked_codes(PROTEIN.encode(subject.upper()), [(12, 30)])
    assert masked.evalue == hits(query, [("one", PROTEIN.decode(codes))])["one"].evalue
    assert masked.evalue > hits(query, [("one", subject)])["one"].evalue
