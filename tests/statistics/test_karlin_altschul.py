import gzip
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.number_texts import bit_score_text, evalue_table
from swsearch.scoring import BLASTP_MATRICES, Scoring, load_matrix
from swsearch.statistics.karlin_altschul import (
    KarlinAltschul,
    ScoreCutoffs,
    published_statistics,
    supported_gap_costs,
    supported_matrices,
    why_no_statistics,
)

SUPPORTED = [(name, *gaps) for name in BLASTP_MATRICES for gaps in supported_gap_costs(name)]


def test_the_supported_costs_are_blastps():
    # as `blastp -help` and PEERS list them
    assert set(supported_matrices()) == set(BLASTP_MATRICES)
    assert len(SUPPORTED) == 13 + 15 + 11 + 9 + 7 + 15 + 6 + 6
    assert set(supported_gap_costs("BLOSUM62")) == {(g, 2) for g in range(6, 12)} | {(g, 1) for g in range(9, 14)}
    assert (25, 2) in supported_gap_costs("BLOSUM80")


def test_bit_score_of_the_peers():
    # 533 raw is 209 bits in SWIPE, blastp and diamond
    assert published_statistics(Scoring(), "local").bit_score(533) == pytest.approx(209.92, abs=0.005)


@pytest.mark.parametrize(("name", "gap_open", "gap_extend"), SUPPORTED)
def test_values_fall_with_the_score_and_rise_with_the_database(name, gap_open, gap_extend):
    scoring = Scoring(load_matrix(name), gap_open, gap_extend)
    statistics = published_statistics(scoring, "local")
    scores = np.arange(30, 400)
    evalues = statistics.evalues(scores, 300, np.full(len(scores), 350), 10**8)
    assert (np.diff(evalues) < 0).all()
    assert statistics.evalues(scores, 300, np.full(len(scores), 350), 10**9) == pytest.approx(10 * evalues)


@given(st.sampled_from(SUPPORTED), st.integers(1, 5_000), st.floats(1e-30, 1e3), st.integers(10**3, 10**11))
def test_minimum_scores_are_the_threshold(supported, query_length, evalue, residues):
    name, gap_open, gap_extend = supported
    statistics = published_statistics(Scoring(load_matrix(name), gap_open, gap_extend), "local")
    lengths = np.array([1, 2, 10, 100, 1_000, 35_213])
    table = ScoreCutoffs(statistics, lengths, residues)
    assert np.array_equal(
        table.by_length(evalue, 1), table.by_length(evalue, 1)
    )  # what one query left behind changes nothing
    least = table.by_length(evalue, query_length)
    assert (least >= 1).all()
    assert (statistics.evalues(least, query_length, lengths, residues) <= evalue).all()
    below = least - 1
    tested = below >= 1
    assert (statistics.evalues(below, query_length, lengths, residues)[tested] > evalue).all()
    for first, last in ((0, 5), (1, 2), (3, 3)):
        assert table.min_score(evalue, query_length, lengths[first], lengths[last]) == least[first : last + 1].min()


def test_a_table_is_whole_whenever_another_thread_looks(monkeypatch):
    # a search's stages share it: whoever asks while it grows finds what there was before, or all of it
    statistics = published_statistics(Scoring(), "local")
    table, answers = ScoreCutoffs(statistics, np.array([50, 300]), 10**8), []
    room = KarlinAltschul.finite_size

    def watched(self, y, length):
        if np.size(y) > 2 and not answers:
            answers.append([])
            answers[0] = table.by_length(10.0, 120).tolist()  # as another thread would, in the middle
        return room(self, y, length)

    monkeypatch.setattr(KarlinAltschul, "finite_size", watched)
    found = table.by_length(10.0, 120).tolist()
    monkeypatch.undo()
    assert answers == [found] == [ScoreCutoffs(statistics, np.array([50, 300]), 10**8).by_length(10.0, 120).tolist()]


@pytest.mark.parametrize("highest", [0, 300, 2_047, 2_048, 90_000])
def test_tables_of_a_query_change_no_bit(highest):
    statistics, generator = published_statistics(Scoring(), "local"), np.random.default_rng(highest)
    table = ScoreCutoffs(statistics, np.array([1, 50, 7_000]), 10**8)
    lengths = generator.integers(1, 40_000, 200)
    for query_length in (1, 30, 3_000):
        scores = generator.integers(0, highest + 1, 200)
        expected = statistics.evalues(scores, query_length, lengths, 10**8)
        assert table.evalues(scores, query_length, lengths).tolist() == expected.tolist()
    assert table.evalues(scores[:0], 30, lengths[:0]).tolist() == []


@pytest.mark.parametrize(
    ("scoring", "mode", "reason"),
    [
        (Scoring(gap_open=3), "local", "BLOSUM62, gap open 3, gap extend 1; open/extend with statistics: 11/2"),
        (Scoring(), "global", "global alignment"),
        (Scoring(), "semiglobal", "semiglobal alignment"),
        (Scoring(load_matrix("RAO")), "local", "matrix RAO, only for BLOSUM45"),
    ],
)
def test_without_published_constants_there_is_a_reason_and_no_number(scoring, mode, reason):
    assert published_statistics(scoring, mode) is None
    assert reason in why_no_statistics(scoring, mode)


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("blastp") is None, reason="blastp is not installed")
def test_every_supported_scoring_system_prints_what_blastp_prints(tmp_path, examples):
    """Catches a wrong digit in any constant: raw score and lengths are blastp's, the rest must follow."""
    entries = gzip.decompress((examples / "data" / "swissprot_sample.fasta.gz").read_bytes()).decode().split(">")[1:]
    chosen = entries[::12]
    fasta, database = tmp_path / "s.fasta", tmp_path / "db"
    fasta.write_text("".join(f">{entry}" for entry in chosen))
    residues = sum(len("".join(entry.split("\n")[1:])) for entry in chosen)
    subprocess.run(
        ["makeblastdb", "-in", fasta, "-dbtype", "prot", "-out", database], check=True, capture_output=True
    )
    compared = 0
    for name, gap_open, gap_extend in SUPPORTED:
        done = subprocess.run(
            ["blastp", "-query", examples / "data" / "queries.fasta", "-db", database, "-matrix", name, "-gapopen",
             str(gap_open), "-gapextend", str(gap_extend), "-comp_based_stats", "0", "-seg", "no", "-evalue", "10",
             "-max_hsps", "1", "-outfmt", "6 qlen slen score evalue bitscore"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        statistics = published_statistics(Scoring(load_matrix(name), gap_open, gap_extend), "local")
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        assert len(rows) >= 5, (name, gap_open, gap_extend)
        for query_length, subject_length, score, evalue, bits in rows:
            ours = statistics.evalues([int(score)], int(query_length), [int(subject_length)], residues)[0]
            case = (name, gap_open, gap_extend, query_length, subject_length, score)
            assert evalue_table(float(ours)) == evalue, case
            assert bit_score_text(statistics.bit_score(int(score))).strip() == bits.strip(), case
        compared += len(rows)
    assert compared > 500
