from __future__ import annotations

import numpy as np
import pytest

from swsearch.report import base

# From blastp 2.12.0+, -comp_based_stats 0 -seg no -max_hsps 1 -evalue 1e12 -dbsize 100, 1e4 or 1e12 -outfmt
# "6 score evalue bitscore qlen slen": its text beside the value that swsearch.statistics.karlin_altschul has for that
# score.
TABLE_EVALUES = [
    (2e-323, "0.0"), (4.916988095556951e-181, "0.0"), (1.1234191565230406e-180, "1.12e-180"),
    (8.331698778256027e-101, "8.33e-101"), (6.912724567065808e-100, "6.91e-100"), (8.331698778256026e-99, "8.33e-99"),
    (5.033640210982413e-98, "5.03e-98"), (1.6156325029026719e-80, "1.62e-80"), (1.5185874587822449e-06, "1.52e-06"),
    (0.00010539351323266637, "1.05e-04"), (0.0009208875719329521, "0.001"), (0.0012242957402031644, "0.001"),
    (0.012743495541084001, "0.013"), (0.11059190691134661, "0.11"), (1.1810863282280686, "1.2"),
    (10.951911463614296, "11"), (99.78157406332046, "100"),
    (1095.1911463614297, "1095"), (127434955.41084, "127434955"),
]  # fmt: skip

# The same command with -outfmt 0 and -dbsize 100 or 1e6: what stands after "Expect =".
TEXT_EVALUES = [
    (3.958500948756451e-218, "0.0"), (2.1274572312387175e-104, "2e-104"), (1.5185874587822449e-06, "2e-06"),
    (0.0005162802424172912, "5e-04"), (0.0008575318838392154, "9e-04"), (0.0009208875719329521, "0.001"),
    (0.005116199165338883, "0.005"), (0.08891085244011183, "0.089"), (0.10032998718174661, "0.10"),
    (0.93521422502083, "0.94"), (1.451330389044637, "1.5"), (9.27361831054363, "9.3"), (18.30964862287338, "18"),
    (293.4994766484806, "293"), (159412.0385234613, "159412"),
]  # fmt: skip

# Raw scores of BLOSUM62 11/1 and blastp's bit scores for them, the same in -outfmt 6 and 0.
BIT_SCORES = [
    (10, " 8.5"), (12, " 9.2"), (13, " 9.6"), (14, "10.0"), (18, "11.5"), (30, "16.2"), (62, "28.5"), (209, "85.1"),
    (256, "103"), (415, "164"), (571, "224"), (1224, "476"), (290739, "1.120e+05"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), TABLE_EVALUES)
def test_evalue_in_tables(value: float, text: str) -> None:
    assert base.evalue_table(value) == text


@pytest.mark.parametrize(("value", "text"), TEXT_EVALUES)
def test_evalue_in_the_pairwise_report(value: float, text: str) -> None:
    assert base.evalue_text(value) == text


@pytest.mark.parametrize(("score", "text"), BIT_SCORES)
def test_bit_score(score: int, text: str) -> None:
    from swsearch.scoring import Scoring
    from swsearch.statistics.karlin_altschul import published_statistics

    statistics = published_statistics(Scoring(), "local")
    assert statistics is not None
    assert base.bit_score_text(statistics.bit_score(score)) == text


def test_bit_scores_are_cut_above_99_9() -> None:
    values = (99.9, 99.91, 209.9, 9999.5, 10235.7, 99999.0, 99999.5)
    texts = ["99.9", "99", "209", "9999", "10235", "99999", "1.000e+05"]
    assert [base.bit_score_text(value) for value in values] == texts


@pytest.mark.parametrize("value", [None, float("nan")])
def test_no_number(value: float | None) -> None:
    assert base.evalue_table(value) == base.evalue_text(value) == base.bit_score_text(value) == "nan"


# blastp -outfmt "6 qlen qstart qend qcovs" on sequences cut short at one end, and "Identities =" of -outfmt 0.
@pytest.mark.parametrize(
    ("part", "whole", "percentage"),
    [(399, 400, 99), (398, 400, 99), (397, 400, 99), (197, 200, 99), (194, 200, 97), (239, 240, 99), (400, 400, 100),
     (118, 127, 93), (9, 127, 7), (7, 12, 58), (0, 12, 0), (1, 8, 13), (0, 0, 0)],
)  # fmt: skip
def test_whole_percentage(part: int, whole: int, percentage: int) -> None:
    assert base.whole_percentage(part, whole) == percentage


def test_what_rounds_to_zero_has_no_sign() -> None:
    assert base.bit_score_text(-0.04) == " 0.0"
    assert base.z_score_text(-0.04) == "0.0"


def test_percentage_in_tables() -> None:
    assert base.percentages(np.array([118, 4, 0]), np.array([127, 4, 0]), 3) == ["92.913", "100.000", "0.000"]
