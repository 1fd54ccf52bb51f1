import numpy as np
import pytest
from hypothesis import given

from support import numpy_traceback as traceback
from support.cases import any_codes, modes, modes_with_ends, scorings
from support.samples import random_cases
from swsearch import reference
from swsearch.alignment import PairAlignment
from swsearch.alphabet import DNA, PROTEIN
from swsearch.api import align
from swsearch.engines.cpu.pairs import align_codes
from swsearch.errors import InputError, OptionError
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring, dna_matrix


def summary(pair):
    return pair.score, pair.query_start, pair.subject_start, pair.cigar


@random_cases(300)
@given(any_codes(40), any_codes(40), scorings, modes_with_ends)
def test_it_is_the_references_alignment(query, subject, scoring, mode_and_ends):
    mode, ends = mode_and_ends
    expected = reference.align(query, subject, scoring, mode, ends)
    assert summary(align_codes(query, subject, Recurrence(scoring, mode, ends))) == expected
    assert traceback.trace(query, subject, scoring, mode, ends=ends) == expected


def test_16_bits_are_not_enough_for_a_long_homopolymer():
    query = np.full(4_000, PROTEIN.letters.index("W"), dtype=np.uint8)
    pair = align_codes(query, query[:3_500], Recurrence(Scoring(), "local"))
    assert (pair.score, pair.cigar_string) == (38_500, "3500M")
    assert pair.recompute_score() == pair.score


@pytest.fixture
def pair():
    query, subject = PROTEIN.encode("GGMKVLAAGIVGWW"), PROTEIN.encode("MRVAAGLVGPP")
    return align_codes(query, subject, Recurrence(Scoring(gap_open=5, gap_extend=1), "local"))


def test_counts_of_a_known_alignment(pair):
    # MKVLAAGIVG over MRV-AAGLVG
    assert pair.rows() == ("MKVLAAGIVG", "M+V AAG+VG", "MRV-AAGLVG")
    assert (pair.query_start, pair.query_end, pair.subject_start, pair.subject_end) == (2, 12, 0, 9)
    assert (pair.length, pair.identities, pair.positives) == (10, 7, 9)
    assert (pair.mismatches, pair.gaps, pair.gap_openings) == (2, 1, 1)
    assert pair.cigar_string == "3M1I6M"
    assert pair.btop() == "1KR1L-3IL2"
    assert pair.score == pair.recompute_score()


@given(any_codes(40), any_codes(40), scorings, modes)
def test_counts_agree_with_the_rows(query, subject, scoring, mode):
    pair = align_codes(query, subject, Recurrence(scoring, mode))
    top, middle, bottom = pair.rows()
    assert len(top) == len(middle) == len(bottom) == pair.length
    columns = list(zip(top, bottom, strict=True))
    assert pair.identities == sum(a == b for a, b in columns)
    assert pair.gaps == sum("-" in column for column in columns)
    assert pair.mismatches == sum(a != b and "-" not in (a, b) for a, b in columns)
    assert pair.positives == sum(mark != " " for mark in middle)
    assert top.replace("-", "") == PROTEIN.decode(query[pair.query_start : pair.query_end])
    assert bottom.replace("-", "") == PROTEIN.decode(subject[pair.subject_start : pair.subject_end])
    assert pair.recompute_score() == pair.score


def test_biopythons_alignment_says_the_same(pair):
    theirs = pair.to_biopython("q", "s")
    assert theirs.score == pair.score
    assert (theirs.target.id, theirs.query.id) == ("s", "q")
    assert (theirs[1], theirs[0]) == (pair.rows()[0], pair.rows()[2])
    counts = theirs.counts()
    assert (counts.identities, counts.mismatches, counts.gaps) == (pair.identities, pair.mismatches, pair.gaps)
    assert "2S3M1I6M2S" in theirs.format("sam")


def test_align_two_sequences():
    aligned = align("MKVLAAGIVG", ("subject", "MKVAAGIVG"))
    assert (aligned.score, aligned.target.id) == (30, "subject")
    dna = align("ACGTACGTTT", "ACGTCGTTT", scoring=Scoring(dna_matrix(), 10, 1))
    assert dna.score == 9 * 5 - 11
    with pytest.raises(InputError, match="b: got 2 sequences, expected one"):
        align("MKV", ["MKV", "MKL"])
    with pytest.raises(OptionError, match="mode: got 'glocal'"):
        align("MKV", "MKV", mode="glocal")


@pytest.mark.exhaustive
def test_titin_against_titin_stays_within_its_memory(shared_data):
    import lzma
    import tracemalloc

    records = {}
    text = lzma.decompress((shared_data / "extremes.fasta.xz").read_bytes()).decode()
    for entry in text.split(">")[1:]:
        header, _, letters = entry.partition("\n")
        records.setdefault(header.split()[0], letters.replace("\n", ""))
    query, subject = (PROTEIN.encode(records[name]) for name in ("Q8WZ42", "A2ASS6"))
    tracemalloc.start()
    pair = align_codes(query, subject, Recurrence(Scoring(), "local"), memory=256 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert pair.score == pair.recompute_score() == 165_552
    assert peak < 400 << 20


def test_nothing_aligned_has_no_columns():
    pair = PairAlignment(PROTEIN.encode("W"), PROTEIN.encode("A"), Scoring(), 0, 0, 0, ())
    assert (pair.length, pair.identities, pair.rows(), pair.btop()) == (0, 0, ("", "", ""), "")


def bases(mapping, text):
    return "".join(mapping.get(letter, letter) for letter in text)


@pytest.mark.parametrize("mode", ["global", "local", "semiglobal"])
def test_u_and_t_are_identical_in_dna(mode):
    read, genome = "GGAUUCUUGNNUA", "GGATTCAGTTGNNTACC"
    scoring = Scoring(dna_matrix(), 10, 1)

    def aligned(a, b):
        return align_codes(DNA.encode(a), DNA.encode(b), Recurrence(scoring, mode))

    plain = aligned(bases({"U": "T"}, read), genome)
    for query, subject in ((read, genome), (bases({"U": "T"}, read), bases({"T": "U"}, genome))):
        pair = aligned(query, subject)
        assert summary(pair) == summary(plain)
        assert (pair.identities, pair.positives, pair.mismatches) == (
            plain.identities,
            plain.positives,
            plain.mismatches,
        )
        assert bases({"U": "T"}, pair.btop()) == plain.btop()
        assert bases({"U": "T"}, pair.rows()[1]) == plain.rows()[1]
        assert {letter for row in pair.rows()[::2] for letter in row} <= set(query + subject + "-")


def test_u_and_t_are_two_amino_acids():
    pair = align_codes(PROTEIN.encode("MKU"), PROTEIN.encode("MKT"), Recurrence(Scoring(), "global"))
    assert pair.identities == 2
