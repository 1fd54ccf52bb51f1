from __future__ import annotations

import csv
import io
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.number_texts import bit_score_text, evalue_table, evalue_text, whole_percentage, z_score_text
from swsearch.extension import load
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


def number_text(value: float, form: base.Form) -> str:
    (text,) = base.number_texts(np.array([value]), form)
    return text


@pytest.mark.parametrize(("value", "text"), TABLE_EVALUES)
def test_evalue_in_tables(value: float, text: str) -> None:
    assert number_text(value, "evalue") == evalue_table(value) == text


@pytest.mark.parametrize(("value", "text"), TEXT_EVALUES)
def test_evalue_in_the_pairwise_report(value: float, text: str) -> None:
    assert number_text(value, "short_evalue") == evalue_text(value) == text


@pytest.mark.parametrize(("score", "text"), BIT_SCORES)
def test_bit_score(score: int, text: str) -> None:
    from swsearch.scoring import Scoring
    from swsearch.statistics.karlin_altschul import published_statistics

    statistics = published_statistics(Scoring(), "local")
    assert statistics is not None
    assert number_text(statistics.bit_score(score), "bit_score") == text


def test_bit_scores_are_cut_above_99_9() -> None:
    values = np.array([99.9, 99.91, 209.9, 9999.5, 10235.7, 99999.0, 99999.5])
    texts = ["99.9", "99", "209", "9999", "10235", "99999", "1.000e+05"]
    assert base.number_texts(values, "bit_score") == texts


FORMS: dict[base.Form, Callable[[float], str]] = {
    "evalue": evalue_table, "short_evalue": evalue_text, "bit_score": bit_score_text, ".1f": z_score_text,
    ".2f": "{:z.2f}".format, ".3f": "{:z.3f}".format,
}  # fmt: skip
HALVES = st.builds(lambda n, power: n / 2**power, st.integers(-(10**8), 10**8), st.integers(0, 12))
DOUBLES = st.one_of(
    st.floats(), HALVES, st.floats(-10, 200), st.floats(0, 1e-3), st.integers(0, 10**6).map(lambda n: n / 1000)
)
EDGES = [
    math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1e-308, 1e-180, 9.999e-181, 8.995e-4, 9e-4, 0.0995, 0.1, 0.995,
    1.0, 9.95, 9.995, 10.0, 99.5, 99.9, 99.95, 99.949999, 99999.0, 99999.5, 0.25, 0.125, 0.0625, 0.5, 1.5, 2.5,
    999999.5, 999999.9999, 1e6, 1e22, 1.7e308, -1.7e308, -0.04, -0.05, -0.06, -9.96, 2.0**52 + 0.5, 2.0**-11,
    3 * 2.0**-11,
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@given(values=st.lists(DOUBLES, max_size=20))
@example(values=EDGES)
def test_numbers_are_as_python_formats_them(form: base.Form, values: list[float]) -> None:
    assert base.number_texts(np.array(values, dtype=np.float64), form) == [FORMS[form](value) for value in values]


@pytest.mark.parametrize("name", ["de_DE", "ps_AF"])  # a comma, and a point of two bytes
def test_numbers_have_a_point_in_every_locale(tmp_path: Path, name: str) -> None:
    command = ["localedef", "-i", name, "-f", "UTF-8", str(tmp_path / f"{name}.UTF-8")]
    if not shutil.which("localedef") or subprocess.run(command, capture_output=True, check=False).returncode > 1:
        pytest.skip("locales cannot be made here")
    program = f"""
import locale
import numpy as np
from swsearch.report.base import number_texts
locale.setlocale(locale.LC_NUMERIC, "{name}.UTF-8")
assert locale.localeconv()["decimal_point"] != "."
print(*number_texts(np.array([2.5e-30, 0.5, 12.0]), "evalue"), *number_texts(np.array([1e6, 9.5]), "bit_score"))
"""
    environment = os.environ | {"LOCPATH": str(tmp_path)}
    text = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert text.stdout == "2.50e-30 0.50 12 1.000e+06  9.5\n"


TEXTS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=8)
ROWS = st.lists(st.tuples(TEXTS, st.integers(-(2**63), 2**63 - 1), DOUBLES, st.text('a",', max_size=3)), max_size=9)


@given(rows=ROWS)
def test_lines_are_those_of_plain_python(rows: list[tuple[str, int, float, str]]) -> None:
    texts, integers, evalues, quotes = ([row[k] for row in rows] for k in range(4))
    columns: list[tuple[base.Values, base.Form]] = [
        (texts, "string"), (np.array(integers, dtype=np.int64), "int64"),
        (np.repeat(np.array(evalues, dtype=np.float64), 2)[::2], "evalue"), (tuple(quotes), "string"),
    ]  # fmt: skip
    cells = [(a or "N/A", str(b), evalue_table(c), d or "N/A") for a, b, c, d in rows]
    assert base.write_table(columns) == "".join("\t".join(row) + "\n" for row in cells)
    expected = io.StringIO()
    csv.writer(expected, lineterminator="\n").writerows(cells)
    assert base.write_table(columns, ",") == expected.getvalue()


def test_wrong_columns_are_refused() -> None:
    numbers = np.zeros(2)
    for column, error in (
        ((numbers, "float64"), "name of a form, got 'float64'"),
        ((numbers.astype(np.float32)[:1], "evalue"), "int64 or float64"),
        ((["a"], "string"), "columns of one length"),
    ):
        with pytest.raises(ValueError, match=error):
            load().write_table([(numbers, "evalue"), column], "\t", "N/A")
    for wrong in ([1], None):
        with pytest.raises(TypeError):
            load().write_table([(wrong, "string")], "\t", "N/A")
    with pytest.raises(UnicodeEncodeError):
        load().write_table([(["\ud800"], "string")], "\t", "N/A")
    with pytest.raises(TypeError, match="pairs of values and a form"):
        load().write_table([[numbers, "evalue"]], "\t", "N/A")


# blastp -outfmt "6 qlen qstart qend qcovs" on sequences cut short at one end, and "Identities =" of -outfmt 0.
def test_whole_percentage() -> None:
    cases = [
        (399, 400, 99), (398, 400, 99), (397, 400, 99), (197, 200, 99), (194, 200, 97), (239, 240, 99),
        (400, 400, 100), (118, 127, 93), (9, 127, 7), (7, 12, 58), (0, 12, 0), (1, 8, 13), (0, 0, 0),
    ]  # fmt: skip
    parts, wholes, percentages = np.array(cases).T
    assert base.whole_percentages(parts, wholes).tolist() == percentages.tolist()
    assert [whole_percentage(part, whole) for part, whole, _ in cases] == percentages.tolist()


def test_percentage_in_tables() -> None:
    percentages = base.percentages(np.array([118, 4, 0]), np.array([127, 4, 0]))
    assert base.number_texts(percentages, ".3f") == ["92.913", "100.000", "0.000"]
