"""How hits by iteration are read from what programs print, and which queries they are of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas")

from benchmarks.statistics import iterated
from benchmarks.statistics import sensitivity_measures as measures
from benchmarks.support.iterations import jackhmmer_hits, psiblast_hits, read_hits, table_of

PSIBLAST = """# PSIBLAST 2.12.0+
# Iteration: 1
# Query: q7
# Database: db
# Fields: query id, subject id, evalue, score
# 3 hits found
q7\ts7\t1.77e-43\t332
q7\ts2\t0.71\t53
q7\ts2\t7.1\t45
# PSIBLAST 2.12.0+
# Iteration: 2
# Query: q7
# 1 hits found
q7\ts2\t1e-05\t77

Search has CONVERGED!
# PSIBLAST 2.12.0+
# Iteration: 1
# Query: q9
# 0 hits found
"""

JACKHMMER = """Query:       q1153  [L=66]

Scores for complete sequences (score includes all domains):
   --- full sequence ---   --- best 1 domain ---    -#dom-
    E-value  score  bias    E-value  score  bias    exp  N  Sequence Description
    ------- ------ -----    ------- ------ -----   ---- --  -------- -----------
+   3.6e-41  136.9   1.9    3.9e-41  136.8   1.9    1.0  1  s1153
+     1e-08   34.9   0.3    1.3e-08   34.6  -0.3    1.1  1  s1181
  ------ inclusion threshold ------
      0.014   14.9   0.3      0.033   13.6   0.0    1.1  1  s22

Domain annotation for each sequence:
>> s1153
   #    score  bias  c-Evalue  i-Evalue hmmfrom  hmm to    alifrom  ali to    envfrom  env to     acc
   1 !  136.8   1.9   1.5e-43   3.9e-41       1      66 []       1      66 []       1      66 [] 0.99
@@
@@ Round:                  2
Scores for complete sequences (score includes all domains):
-       0.5   14.9   0.3      0.033   13.6   0.0    1.1  1  s22
//
"""


def test_what_psiblast_prints(tmp_path: Path) -> None:
    path = tmp_path / "found"
    path.write_text(PSIBLAST)
    hits = list(psiblast_hits(path))
    assert hits == [(1, 7, 7, 1.77e-43), (1, 7, 2, 0.71), (1, 7, 2, 7.1), (2, 7, 2, 1e-5)]


def test_what_jackhmmer_prints(tmp_path: Path) -> None:
    path = tmp_path / "found"
    path.write_text(JACKHMMER)
    first, second, third, again = jackhmmer_hits(path)
    assert [first, second] == [(1, 1153, 1153, 3.6e-41), (1, 1153, 1181, 1e-8)]
    assert [third, again] == [(1, 1153, 22, 0.014), (2, 1153, 22, 0.5)]


def test_a_query_that_stopped_is_carried_on() -> None:
    found = table_of([(1, 7, 2, 0.71), (1, 7, 7, 1e-40), (1, 7, 2, 0.1), (1, 9, 9, 0.0), (2, 7, 2, 1e-5)], 3)
    rows = list(found.itertuples(index=False, name=None))
    assert rows == [
        (1, 7, 7, 1e-40), (1, 7, 2, 0.1), (1, 9, 9, 0.0),
        (2, 7, 2, 1e-5), (2, 9, 9, 0.0),
        (3, 7, 2, 1e-5), (3, 9, 9, 0.0),
    ]  # fmt: skip


def test_hits_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "found"
    path.write_text("1\tq7\ts2\t0.5\n2\tq7\ts3\t1e-9\n1\tq8\ts3\t2\n")
    rows = list(read_hits(path).itertuples(index=False, name=None))
    assert rows == [(1, 7, 2, 0.5), (1, 8, 3, 2.0), (2, 7, 3, 1e-9), (2, 8, 3, 2.0)]


def test_queries_of_one_half() -> None:
    labels = measures.Labels.of([f"a.{place // 9}.{place // 3}.{place}" for place in range(300)])
    first, other = (measures.drawn_queries(labels, half, 100) for half in measures.HALVES)
    assert len(first) == len(other) == 100
    assert not set(labels.superfamily[first]) & set(labels.superfamily[other])
    fewer = measures.drawn_queries(labels, "choice", 10)
    assert set(fewer) <= set(first)
    assert (np.diff(fewer) > 0).all()


def test_a_program_is_timed_by_its_runs() -> None:
    hits = table_of([(1, 7, 2, 0.5), (2, 7, 2, 0.5), (3, 7, 2, 0.5)], 3)
    once = iterated.Found("psiblast", hits, np.array([7]), [9.0], [12.0])
    assert [once.time(k) for k in (1, 2, 3)] == [["", ""], ["", ""], ["9.0", "12.0"]]
    thrice = iterated.Found("mmseqs2", hits, np.array([7]), [1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    assert [thrice.time(k) for k in (1, 3)] == [["1.0", "2.0"], ["3.0", "6.0"]]
    assert iterated.Found("other", hits, np.array([7]), [], []).time(3) == ["", ""]
