"""The measures of sensitivity, and the table of programs that it and exactness are compared with."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from benchmarks.agreement import exactness  # noqa: E402
from benchmarks.statistics import sensitivity  # noqa: E402
from benchmarks.statistics import sensitivity_measures as measures  # noqa: E402
from benchmarks.support import contenders  # noqa: E402
from support.samples import sample  # noqa: E402
from swsearch.matrices import GAP_COSTS, PRESET_MATRICES  # noqa: E402

NAMES = ["a.1.1.1", "a.1.1.2", "a.1.2.1", "b.1.1.1", "b.1.1.1", "b.2.1.1", "a.1.1.1"]
"""Domains 0, 1 and 6 are of one superfamily, 3 and 4 of another; 2 shares the fold of the first."""


def hits(*rows: tuple[int, int, float]) -> Any:
    """Make a table of (query, subject, E-value), each query's hits from the best to the worst."""
    return pd.DataFrame(rows, columns=["query", "subject", "evalue"]).assign(score=1)


def test_labels_are_equal_where_the_classes_are() -> None:
    labels = measures.Labels.of(NAMES)
    assert labels.relatives().tolist() == [2, 2, 0, 1, 1, 0, 2]
    assert len(set(labels.fold.tolist())) == 3
    assert labels.fold[3] != labels.fold[5] != labels.fold[0]


def test_a_shared_fold_and_the_query_itself_do_not_count() -> None:
    labels = measures.Labels.of(NAMES)
    rows = measures.judged(
        hits((0, 0, 1e-9), (0, 2, 1e-5), (0, 1, 1e-4), (0, 3, 0.1), (0, 6, 1.0), (0, 5, 2.0), (3, 0, 0.5)), labels
    )
    assert rows["subject"].tolist() == [2, 1, 3, 6, 5, 0]
    assert rows["right"].tolist() == [False, True, False, True, False, False]
    assert rows["wrong"].tolist() == [False, False, True, False, True, True]
    queries = np.array([0, 2, 3])  # 2 has no relatives
    assert measures.sensitivity(rows, queries, labels, 1).tolist() == [0.5, 0.0]
    assert measures.sensitivity(rows, queries, labels, 2).tolist() == [1.0, 0.0]

    curve = measures.curve_of(rows, queries, labels)
    assert curve.evalue.tolist() == [1e-5, 1e-4, 0.1, 0.5, 1.0, 2.0]
    assert curve.errors.tolist() == pytest.approx([0, 0, 1 / 3, 2 / 3, 2 / 3, 1])
    assert curve.coverage.tolist() == pytest.approx([0, 0.25, 0.25, 0.25, 0.5, 0.5])
    assert curve.coverage_at(0.5) == pytest.approx(0.25)
    assert curve.errors_at(0.3) == pytest.approx(1 / 3)


MANY = measures.Labels.of([f"a.{place // 9}.{place // 3}.{place}" for place in range(300)] + ["b.1.1.1"])
"""A hundred superfamilies of three domains, and one domain without relatives."""


def test_halves_share_no_superfamily() -> None:
    first, other = measures.halves(MANY, 1000)
    assert len(first) + len(other) == 300
    assert abs(len(first) - len(other)) <= 6
    assert not set(MANY.superfamily[first]) & set(MANY.superfamily[other])
    fewer = measures.halves(MANY, 10)
    assert [len(each) for each in fewer] == [10, 10]
    assert set(fewer[0]) <= set(first)


def test_a_domain_within_a_protein() -> None:
    one, two = made = measures.flanked([("a", "MKV"), ("b", "WW")], 90)
    assert made == measures.flanked([("a", "MKV"), ("b", "WW")], 90)
    assert (one[0], one[1][90:-90], len(two[1])) == ("a", "MKV", 182)
    assert set(one[1]) <= set("MKVW")


def test_members_of_a_superfamily_count_as_one() -> None:
    values, zeros = np.array([0.1, 0.1, -0.1, -0.1]), np.zeros(4)
    assert measures.difference(zeros, zeros, np.arange(4)) == ""
    assert measures.difference(values, zeros, np.array([0, 0, 1, 1])) == "+0.00% ± 5.77% (7.07%)"


def test_what_is_shipped_was_measured() -> None:
    assert all(GAP_COSTS[name] in sensitivity.SYSTEMS[name] for name in (PRESET_MATRICES["sensitive"], "VTML200"))


LEVELS = ["a.1.1.1"] * 3 + ["a.1.1.2", "a.1.2.1", "a.1.2.1", "b.1.1.1", "b.1.1.1"]
"""Domain 0 has two relatives in its family, another in its superfamily, two more in its fold; 6 has a family only."""


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([], [0, 0, 0]),
        ([0], [0, 0, 0]),  # the query itself
        ([0, 1, 2, 3, 4, 5], [1, 1 / 2, 2 / 3]),  # all relatives, and no wrong hit
        ([4, 3, 1, 6, 2, 5], [1 / 2, 1 / 2, 1 / 3]),
        ([6, 0, 1, 2, 3, 4, 5], [0, 0, 0]),
    ],
)
def test_foldseeks_measure_counts_each_level_apart(found: list[int], expected: list[float]) -> None:
    labels = measures.Labels.of(LEVELS)
    rows = measures.judged(hits(*((0, subject, 0.1) for subject in found), (6, 7, 1e-9)), labels)
    counted = measures.foldseek_sensitivity(rows, np.array([0, 6]), labels)  # 6 has no relatives beyond its family
    assert counted.tolist() == [pytest.approx(expected)]


def test_foldseeks_measure_takes_hits_of_equal_evalue_in_the_order_of_the_list() -> None:
    labels = measures.Labels.of(LEVELS)
    rows = [
        measures.judged(hits((0, 1, 0.1), *ties), labels) for ties in ([(0, 2, 1), (0, 6, 1)], [(0, 6, 1), (0, 2, 1)])
    ]
    assert [measures.foldseek_sensitivity(each, np.array([0]), labels)[0, 0] for each in rows] == [1, 0.5]


def test_foldseeks_measure_leaves_out_queries_without_relatives_at_a_level() -> None:
    labels = measures.Labels.of(LEVELS)
    rows = measures.judged(hits((3, 0, 0.1), (4, 5, 0.1)), labels)
    # 3 is alone in its family, 4 has none else in its superfamily
    assert measures.foldseek_sensitivity(rows, np.array([3, 4, 6]), labels).shape == (0, 3)


@pytest.mark.parametrize("seed", sample(range(20), lambda seed: seed < 2))
def test_random_lists_give_what_counting_one_by_one_gives(seed: int) -> None:
    generator = random.Random(seed)
    names = [f"a.{generator.randint(1, 4)}.{generator.randint(1, 3)}.1" for _ in range(30)]
    labels = measures.Labels.of(names)
    rows = [
        (query, subject, place * 0.1)
        for query in range(30)
        for place, subject in enumerate(generator.sample(range(30), generator.randint(1, 30)))
    ]
    judged = measures.judged(hits(*rows), labels)
    for k in (1, 2, 5):
        expected = []
        for query, name in enumerate(names):
            superfamily, fold = name.rsplit(".", 1)[0], name.rsplit(".", 2)[0]
            relatives = {place for place, other in enumerate(names) if other.rsplit(".", 1)[0] == superfamily} - {
                query
            }
            right = wrong = 0
            for _, subject, _ in (row for row in rows if row[0] == query):
                right += subject in relatives
                wrong += names[subject].rsplit(".", 2)[0] != fold
                if wrong == k:
                    break
            expected += [right / len(relatives)] if relatives else []
        found = measures.sensitivity(judged, np.arange(30), labels, k)
        assert found.tolist() == pytest.approx(expected), f"seed {seed}, k {k}"


def test_scope_headers_without_a_class_are_refused(tmp_path: Path) -> None:
    (tmp_path / "good.fa").write_text(">d1 a.1.1.1 x\nacd\n>d2 b.1.1.1\nKL\n")
    records, labels = measures.read_scope(tmp_path / "good.fa")
    assert records == [("d1", "ACD"), ("d2", "KL")]
    assert labels.superfamily.tolist() == [0, 1]
    (tmp_path / "bad.fa").write_text(">d1 hemoglobin\nACD\n")
    with pytest.raises(SystemExit, match=r"bad\.fa.*expected class\.fold\.superfamily\.family"):
        measures.read_scope(tmp_path / "bad.fa")


def test_missed_and_lower_scores_are_told_apart() -> None:
    exact = pd.DataFrame({"query": [0, 0, 1], "subject": [5, 6, 5], "score": [90, 80, 70], "evalue": [1e-9, 1e-6, 1]})
    theirs = pd.DataFrame({"query": [0, 1, 1], "subject": [5, 5, 9], "score": [90, 61, 40]})
    joined = exactness.differences(exact, theirs)
    assert joined["found"].isna().tolist() == [False, True, False]
    assert joined["lower"].dropna().tolist() == [0, 9]
    run = contenders.Run(exactness.PEERS[0], Path("x"), 1.0, 2.0, "2026-11-21")
    row = dict(zip(exactness.HEADS, exactness.row_of(run, joined), strict=True))
    assert (row["reported"], row["missed"], row["exact score"], row["lower score"]) == ("2", "1", "1", "1")
    assert (row["median difference"], row["in %"], row["largest"]) == ("9", "12.9%", "9")
    text = exactness.worst_line(run, joined, (["P0", "P1"], [f"S{place}" for place in range(7)]))
    assert "61 instead of 70 (P1 with S5)" in text
    assert "missed hit scores 80, E = 1e-06 (P0 with S6)" in text


def test_a_table_is_kept_until_something_else_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.fa").write_text(">q0\nMKWVTFISLLFLFSSAYS\n")
    (tmp_path / "s.fa").write_text(">s0\nMKWVTFISLLFLFSSAYSRG\n>s1\nGGGGGG\n>s2\nMKWVTFISLLFLF\n")
    contender = contenders.Contender("ours", "swsearch", "swsearch")
    comparison = contenders.Comparison(tmp_path, tmp_path / "q.fa", tmp_path / "s.fa", 10.0, 1)
    first = comparison.run(contender)
    assert first.table()["subject"].tolist() == [0, 2]
    assert first.table()["evalue"].is_monotonic_increasing
    capsys.readouterr()
    assert comparison.run(contender) == first
    assert capsys.readouterr().err == ""  # nothing ran
    best = first.table()["evalue"][0]
    stricter = contenders.Comparison(tmp_path, tmp_path / "q.fa", tmp_path / "s.fa", best * 2, 1).run(contender)
    assert "ours: " in capsys.readouterr().err
    assert stricter.table()["subject"].tolist() == [0]

    nothing = contenders.Comparison(tmp_path, tmp_path / "q.fa", tmp_path / "s.fa", best / 1e9, 1).run(contender)
    assert list(nothing.table().columns) == ["query", "subject", "evalue", "score"]
    assert nothing.table().empty

    monkeypatch.setattr(shutil, "which", lambda _: None)
    runs, skipped = contenders.run_all(comparison, [contenders.Contender("blastp", "blastp", "blastp")])
    assert (runs, skipped) == ([], ["SKIPPED: blastp: blastp is not installed"])
