"""Inclusion in a profile: each rule at its limits, and real sequences of either kind."""

from __future__ import annotations

import numpy as np
import pytest

from swsearch.alphabet import PROTEIN
from swsearch.errors import OptionError
from swsearch.pipeline.inclusion import (
    ENTROPY_WINDOW,
    HEPTADS_WINDOW,
    Inclusion,
    coiled_coil,
    low_complexity,
    shares,
)

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


@pytest.mark.parametrize(
    ("rules", "said"),
    [({"evalue": 0}, "inclusion_evalue"), ({"evalue": "x"}, "inclusion_evalue"), ({"most": 0}, "max_included"),
     ({"coverage": 101}, "inclusion_coverage"), ({"coverage": -1}, "inclusion_coverage"),
     ({"most": 2.5}, "max_included")],
)  # fmt: skip
def test_what_cannot_be_asked_for(rules, said):
    with pytest.raises(OptionError, match=said):
        Inclusion(**rules)


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
