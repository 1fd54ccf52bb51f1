"""Further alignments of a hit: the reference's, in C++ and in bounded memory, in every format, and lalign36's."""

import json
import pickle
import re
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import swsearch
from support.additional_hsps import further_after
from support.cases import any_codes, random_codes, scorings
from support.samples import random_cases
from swsearch import extension, reference
from swsearch.alignment import PairAlignment
from swsearch.alphabet import PROTEIN
from swsearch.cli.main import app
from swsearch.engines.cpu.pairs import align_codes
from swsearch.errors import OptionError
from swsearch.pipeline.pairs import aligned_pairs, find_further_hsps
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring

UNIT = "MKVLAAGIVGWWHHRKDE"
REPEATS = ("repeats", UNIT + "PPGGPPGG" + UNIT[:12] + "STSTSTST" + UNIT[3:])


def numbers(pairs):
    return [(pair.score, pair.query_start, pair.subject_start, pair.cigar) for pair in pairs]


@random_cases(150)
@given(any_codes(30), any_codes(30), scorings, st.integers(1, 6), st.integers(1, 40))
def test_they_are_the_references(query, subject, scoring, most, least):
    expected = reference.align_with_hsps(query, subject, scoring, most, least)
    best = align_codes(query, subject, Recurrence(scoring))
    if best.score >= least:
        found = [best, *further_after(best, most - 1, least)]
        assert numbers(found) == expected
        used: set = set()
        for pair in found:
            pairs = {tuple(each) for each in aligned_pairs(pair).tolist()}
            assert pairs == reference.pairs_of(*numbers([pair])[0][1:])
            assert not used & pairs
            used |= pairs
            assert pair.recompute_score() == pair.score


@pytest.mark.parametrize("open_", [0, 11])
def test_long_gaps_and_alignments_through_many_kept_rows(open_):
    generator = np.random.default_rng(4)
    unit, scoring = random_codes(generator, 500, 20), Scoring(gap_open=open_)
    changed = np.where(generator.random(500) < 0.2, random_codes(generator, 500, 20), unit)
    query = np.concatenate([unit[:250], random_codes(generator, 40, 20), unit[250:]])
    subject = np.concatenate([unit, random_codes(generator, 90, 20), changed])
    best = align_codes(query, subject, Recurrence(scoring))
    (second,) = further_after(best, 1)
    # the reference in numpy's words: mask what the first used and ask the plain recurrence for the score
    expected = reference.align(query, subject, scoring, forbidden_pairs=reference.pairs_of(*numbers([best])[0][1:]))
    assert numbers([second]) == [expected]


def test_empty_sequences_have_none():
    nothing = np.zeros(0, dtype=np.uint8)
    pair = PairAlignment(nothing, nothing, Scoring(), 0, 0, 0, ())
    assert find_further_hsps(pair, 3) == []


def test_the_extension_checks_what_it_is_given():
    codes, scores = np.zeros(5, dtype=np.uint8), np.zeros((32, 32), dtype=np.int8)
    align_further = extension.load().align_further
    pairs = np.zeros((1, 2), dtype=np.int64)
    assert align_further(codes, codes, scores, pairs, 11, 1, 1, 1) == []
    for arguments in (
        (codes + 40, codes, scores, pairs, 11, 1, 1, 1),
        (codes, codes, scores[1:], pairs, 11, 1, 1, 1),
        (codes, codes, scores, pairs + 5, 11, 1, 1, 1),
        (codes, codes, scores, pairs, -1, 1, 1, 1),
        (codes, codes, scores, pairs, 11, 1, 0, 1),
    ):
        with pytest.raises(ValueError, match="expected"):
            align_further(*arguments)


def search(query=UNIT, subjects=(REPEATS, ("other", "PPGG" + UNIT)), **options):
    (result,) = swsearch.search(query, subjects, **{"evalue": 1e-3, "max_alignments": 9, "sort": "score", **options})
    return result


def test_a_hit_has_them_with_their_own_statistics():
    result = search(statistics="published")
    hit = next(hit for hit in result.hits if hit.subject_id == "repeats")
    assert [hsp.pair.cigar_string for hsp in hit.hsps] == ["18M", "15M", "12M"]
    assert hit.hsps[0].score == hit.score
    assert hit.hsps[0].pair is hit.pair
    for hsp in hit.hsps:
        expected = result.statistics.evalues([hsp.score], 18, [hit.subject_length], result.effective_residues)[0]
        assert hsp.evalue == pytest.approx(expected)
        assert hsp.evalue <= 1e-3
        assert hsp.bit_score == result.statistics.bit_score(hsp.score)
    assert [len(each.hsps) for each in search(statistics="published", max_alignments=2).hits] == [2, 1]
    assert [len(each.hsps) for each in search(statistics="published", max_alignments=1).hits] == [1, 1]
    copy = pickle.loads(pickle.dumps(hit))
    assert copy.may_have_more_hsps
    assert numbers(hsp.pair for hsp in copy.hsps) == numbers(hsp.pair for hsp in hit.hsps)
    assert [(hsp.evalue, hsp.bit_score) for hsp in copy.hsps] == [(hsp.evalue, hsp.bit_score) for hsp in hit.hsps]


def test_the_threshold_of_each_is_exact():
    scores = [hsp.score for hsp in search().hits[0].hsps]
    evalues = [hsp.evalue for hsp in search().hits[0].hsps]
    for count, evalue in enumerate(evalues, 1):
        assert [hsp.score for hsp in search(evalue=evalue).hits[0].hsps] == scores[:count]
    assert [hsp.score for hsp in search(min_score=scores[1]).hits[0].hsps] == scores[:2]


def test_filters_apply_to_each():
    assert [hsp.pair.cigar_string for hsp in search(min_query_coverage=80).hits[0].hsps] == ["18M", "15M"]
    assert search(min_query_coverage=80).options == {
        "sort": "score",
        "max_alignments": 9,
        "min_query_coverage": 80,
    }


@pytest.mark.parametrize("evalue", [1e-4, 10.0])
def test_all_alignments_of_a_hit_have_evalues_of_its_own_null(evalue):
    result = search(statistics="fitted", evalue=evalue)
    hit = next(hit for hit in result.hits if hit.subject_id == "repeats")
    assert len(hit.hsps) > 2
    scores, evalues = zip(*((hsp.score, hsp.evalue) for hsp in hit.hsps), strict=True)
    assert (hit.score, hit.evalue, hit.bit_score) == (scores[0], evalues[0], hit.hsps[0].bit_score)
    assert list(evalues) == sorted(evalues)
    assert evalues[-1] <= evalue
    assert all(hsp.evalue_published > 0 for hsp in hit.hsps)
    # z-scores are counted in the same standard deviations from the same mean
    slope, start = np.polyfit(scores, [hsp.z_score for hsp in hit.hsps], 1)
    assert [hsp.z_score for hsp in hit.hsps] == pytest.approx([slope * score + start for score in scores])
    # one alignment that scores as much with the same subject has the same E-value, asked for more or not
    alone = search(statistics="fitted", evalue=evalue, max_alignments=1)
    assert [(each.score, each.evalue) for each in alone.hits] == [(each.score, each.evalue) for each in result.hits]
    more = search(statistics="fitted", evalue=100 * evalue, max_alignments=50)
    wider = next(each for each in more.hits if each.subject_id == "repeats")
    assert [each.evalue for each in wider.hsps if each.evalue <= evalue][:9] == list(evalues)


def test_without_statistics_any_score_will_do():
    hit = search(statistics="none", evalue=None, max_alignments=50).hits[0]
    assert len(hit.hsps) > 3
    assert hit.hsps[-1].score >= 1
    assert {hsp.evalue for hsp in hit.hsps} == {None}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_alignments": 0}, "max_alignments: got 0, expected an integer >= 1"),
        (
            {"mode": "global", "evalue": None},
            "max_alignments: got 9, expected 1 in global mode; only local mode reports several alignments",
        ),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(OptionError, match=message):
        search(**options)


def test_tables_of_python_have_a_row_an_alignment():
    columns = search().to_columns()
    assert columns["subject_id"] == ["repeats"] * 3 + ["other"]
    assert columns["cigar"] == ["18M", "15M", "12M", "18M"]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "q.fasta").write_text(f">q\n{UNIT}\n")
    (tmp_path / "s.fasta").write_text("".join(f">{name}\n{letters}\n" for name, letters in [REPEATS, ("o", UNIT)]))
    return tmp_path / "q.fasta", tmp_path / "s.fasta"


def run(files, *options):
    line = ["search", *files, "--evalue", "1e-3", "--engine", "cpu", "--quiet", *options]
    done = CliRunner().invoke(app, list(map(str, line)))
    assert done.exit_code == 0, done.output
    return done.stdout


def test_every_format_shows_them(files):
    several = "--max-alignments", 5, "--sort", "score"
    rows = run(files, *several, "--outfmt", "6 sseqid score qstart qend qcovs qcovhsp").splitlines()
    assert [row.split("\t")[0] for row in rows] == ["repeats"] * 3 + ["o"]
    assert [row.split("\t")[2:] for row in rows[:3]] == [
        ["1", "18", "100", "100"],
        ["4", "18", "100", "83"],
        ["1", "12", "100", "67"],
    ]
    assert run(files, *several, "--outfmt", "6 sseqid score").splitlines() == [
        "\t".join(row.split("\t")[:2]) for row in rows
    ]
    commented = run(files, *several, "--outfmt", 7)
    assert "# Options: sort score, max_alignments 5\n" in commented
    assert "# 4 hits found\n" in commented
    hits = json.loads(run(files, *several, "--outfmt", "jsonl"))["hits"]
    assert [[each["cigar"] for each in hit["further_alignments"]] for hit in hits] == [["15M", "12M"], []]
    assert "further_alignments" not in run(files, "--outfmt", "jsonl")
    text = run(files, *several, "--outfmt", 0)
    assert (text.count(">repeats"), text.count(" Score = ")) == (1, 4)
    assert text.count("\n\n\n Score = ") == 2  # as blastp sets them apart


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("lalign36") is None, reason="lalign36 is not installed")
@pytest.mark.parametrize("seed", range(6))
def test_lalign36_finds_the_same_scores(seed, tmp_path):
    generator = np.random.default_rng(seed)
    unit = random_codes(generator, 60, 20)

    def repeats(times):
        parts = []
        for _ in range(times):
            parts += [np.where(generator.random(60) < 0.3, random_codes(generator, 60, 20), unit)]
            parts += [random_codes(generator, int(generator.integers(5, 40)), 20)]
        return np.concatenate(parts)

    query, subject = repeats(2), repeats(3)
    for name, codes in (("q", query), ("s", subject)):
        (tmp_path / f"{name}.fasta").write_text(f">{name}\n{PROTEIN.decode(codes)}\n")
    # its own statistics, of shuffled sequences, decide what it shows
    line = [
        "lalign36",
        "-p",
        "-q",
        "-s",
        "BP62",
        "-f",
        "-11",
        "-g",
        "-1",
        "-E",
        "1e-3",
        "-m",
        "10",
        "q.fasta",
        "s.fasta",
    ]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True)
    theirs = [int(score) for score in re.findall(r"^; lsw_s-w opt: +(\d+)", done.stdout, re.MULTILINE)]
    assert len(theirs) > 2
    best = align_codes(query, subject, Recurrence(Scoring()))
    ours = [pair.score for pair in [best, *further_after(best, len(theirs) - 1)]]
    assert sorted(ours) == sorted(theirs)
