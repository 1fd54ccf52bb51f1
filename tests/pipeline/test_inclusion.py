"""What may enter a profile: each rule at its limits, and real sequences of either kind."""

from __future__ import annotations

import numpy as np
import pytest

from swsearch.alignment import PairAlignment
from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import PROTEIN
from swsearch.errors import OptionError
from swsearch.pipeline.inclusion import (
    ENTROPY_WINDOW,
    HEPTADS_WINDOW,
    Inclusion,
    coiled_coil,
    covering,
    low_complexity,
    passing,
    shares,
)
from swsearch.scoring import Scoring

TROPOMYOSIN = (
    "MDAIKKKMQMLKLDKENALDRAEQAEADKKAAEDRSKQLEDELVSLQKKLKGTEDELDKYSEALKDAQEKLELAEKKATDAEADVASLNRRIQLVEEELDRAQERLATALQKLEEAE"
    "KAADESERGMKVIESRAQKDEEKMEIQEIQLKEAKHIAEDADRKYEEVARKLVIIESDLERAEERAELSEGKCAELEEELKTVTNNLKSLEAQAEKYSQKEDRYEEEIKVLSDKLKEA"
    "ETRAEFAERSVTKLEKSIDDLEDELYAQKLKYKAISEELDHALNDMTSI"
)
MYOGLOBIN = (
    "MGLSDGEWQLVLNVWGKVEADIPGHGQEVLIRLFKGHPETLEKFDKFKHLKSEDEMKASEDLKKHGATVLTALGGILKKKGHHEAEIKPLAQSHATKHKIPVKYLEFISECIIQVLQS"
    "KHPGDFGADAQGAMNKALELFRKDMASNYKELGFQG"
)
UBIQUITIN = "MQIFVKTLTGKTITLEVEPSDTIENVKAKIQDKEGIPPDQQRLIFAGKQLEDGRTLSDYNIQKESTLHLVLRLRGG"
COLLAGEN = "GPPGPPGPPGPPGAPGPPGPPGPPGPAGPPGPPGPPGPPG"


def share(of_windows, window, letters):
    codes = PROTEIN.encode(letters)
    return float(shares(of_windows, window, codes, np.array([0]), np.array([len(codes)]))[0])


@pytest.mark.parametrize(
    ("letters", "low", "coiled"),
    [(TROPOMYOSIN, (0, 20), (50, 100)), (MYOGLOBIN, (0, 25), (0, 0)), (UBIQUITIN, (0, 25), (0, 0)),
     (COLLAGEN, (100, 100), (0, 0)), ("Q" * 60, (100, 100), (0, 0))],
)  # fmt: skip
def test_real_sequences(letters, low, coiled):
    assert low[0] <= share(low_complexity, ENTROPY_WINDOW, letters) <= low[1]
    assert coiled[0] <= share(coiled_coil, HEPTADS_WINDOW, letters) <= coiled[1]


@pytest.mark.parametrize("length", [0, 1, ENTROPY_WINDOW - 1])
def test_what_is_shorter_than_a_window_has_no_share(length):
    assert share(low_complexity, ENTROPY_WINDOW, "Q" * length) == 0
    assert share(coiled_coil, HEPTADS_WINDOW, "Q" * length) == 0


def test_the_entropy_of_a_window():
    def entropy(letters):
        counts = np.unique(list(letters), return_counts=True)[1] / len(letters)
        return -(counts * np.log2(counts)).sum()

    windows = ["AAAACCCCDDDD", "AAACCCDDDEEE", "AACCDDEEFFGG", "AAAACCCDDDEE", "AAAAACCDDEEF"]
    for letters in windows:
        assert low_complexity(PROTEIN.encode(letters)).tolist() == [entropy(letters) < 2.2]


def test_shares_of_neighbours_do_not_mix():
    codes = PROTEIN.encode("Q" * 11 + "Q" * 11 + "Q" * 12)
    found = shares(low_complexity, ENTROPY_WINDOW, codes, np.array([0, 11, 22]), np.array([11, 22, 34]))
    assert found.tolist() == [0, 0, 100]


def table_of(query, subject, cigar, query_start=0, subject_start=0):
    scoring = Scoring()
    return AlignmentTable.of([PairAlignment(query, subject, scoring, 1, query_start, subject_start, cigar)])


@pytest.mark.parametrize(
    ("rules", "expected"),
    [({}, True), ({"coverage": 40}, True), ({"coverage": 40.1}, False), ({"columns": 40}, True),
     ({"columns": 41}, False)],
)  # fmt: skip
def test_coverage_counts_positions_that_are_paired(rules, expected):
    codes = np.arange(100, dtype=np.uint8) % 20
    table = table_of(codes, codes, ((20, "M"), (10, "I"), (7, "D"), (20, "M")))
    assert covering(Inclusion(**rules), 100, table).tolist() == [expected]


def test_a_short_query_needs_no_more_columns_than_it_has():
    codes = np.arange(9, dtype=np.uint8)
    assert covering(Inclusion(columns=20), 9, table_of(codes, codes, ((9, "M"),))).tolist() == [True]


@pytest.mark.parametrize("name", ["low_complexity", "coiled_coil"])
@pytest.mark.parametrize("side", ["query", "subject"])
def test_either_side_keeps_an_alignment_out_unless_the_rule_is_off(name, side):
    odd = PROTEIN.encode(COLLAGEN if name == "low_complexity" else TROPOMYOSIN[30:70])
    usual = PROTEIN.encode(UBIQUITIN)[: len(odd)]
    query, subject = (odd, usual) if side == "query" else (usual, odd)
    table, starts = table_of(query, subject, ((len(odd), "M"),)), np.zeros(1, dtype=np.int64)
    assert passing(Inclusion(), query, subject, starts, table).tolist() == [False]
    assert passing(Inclusion(**{name: None}), query, subject, starts, table).tolist() == [True]


def test_nothing_passes_nothing():
    table = AlignmentTable.of([])
    nothing = np.zeros(0, dtype=np.int64)
    assert not len(passing(Inclusion(), PROTEIN.encode(UBIQUITIN), np.zeros(0, dtype=np.uint8), nothing, table))


@pytest.mark.parametrize(
    ("rules", "said"),
    [({"evalue": 0}, "inclusion_evalue"), ({"evalue": "x"}, "inclusion_evalue"), ({"most": 0}, "max_included"),
     ({"coverage": 101}, "inclusion_coverage"), ({"coverage": -1}, "inclusion_coverage"),
     ({"most": 2.5}, "max_included")],
)  # fmt: skip
def test_what_cannot_be_asked_for(rules, said):
    with pytest.raises(OptionError, match=said):
        Inclusion(**rules)
