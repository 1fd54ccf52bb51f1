"""Stockholm: columns for what stands between the query's, and what Biopython and HMMER read."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path

import pytest
from Bio import AlignIO

from swsearch.alphabet import PROTEIN
from swsearch.report import alignments
from tests.support.query_alignments import a3m_rows, alignment_from
from tests.support.report_cases import PARTS, QUERY, hostile_result, make_result, report, with_two_alignments


def text_of(*rows: str) -> str:
    """The Stockholm text of A3M rows."""
    return "".join(alignments.stockholm_texts(alignment_from(*rows), PROTEIN, "1.0"))


@pytest.mark.parametrize("together", [1, 1 << 22])
def test_inserted_residues_have_columns(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignments, "LETTERS_PER_BATCH", together)
    texts = "MKTAY", "MkkKT--", "-----", "cM-TAYww", "aaaM-K---"[:4] + "K---", "MpKTAYw"
    read = AlignIO.read(io.StringIO(text_of(*texts)), "stockholm")
    rows = [str(record.seq) for record in read]
    # Biopython makes "-" of "."
    assert rows[0] == "---M--KTAY--" and rows[1] == "---MkkKT----" and rows[3] == "c--M---TAYww"
    assert rows[4] == "aaaM--K-----" and rows[5] == "---Mp-KTAYw-"
    assert read.column_annotations["reference_annotation"] == "...x..xxxx.."
    assert [row.replace("-", "") for row in rows] == [
        row.replace("-", "") for row in a3m_rows(alignment_from(*texts))
    ]
    assert "".join(text_of(*texts)).splitlines()[-4].split()[1] == "aaaM..K---.."


def test_a_query_alone_is_an_alignment() -> None:
    assert text_of("MKT").splitlines()[-3:] == ["s0      MKT", "#=GC RF xxx", "//"]


def test_descriptions_and_evalues_are_told() -> None:
    result = make_result(subjects=PARTS)
    text = report("stockholm", result)
    read = AlignIO.read(io.StringIO(text), "stockholm")
    assert [record.description for record in read][:2] == ["the query", "a subject"]
    assert "#=GF ID q1\n#=GF DE the query\n" in text and "#=GS s1/3-" in text
    assert text.count(" EV ") == 3 and read[0].id == "q1"


def test_several_queries_are_several_alignments() -> None:
    results = [make_result(subjects=PARTS), make_result(("q2", "", QUERY[5:]), PARTS[:1])]
    read = list(AlignIO.parse(io.StringIO(report("stockholm", *results)), "stockholm"))
    assert [len(each) for each in read] == [4, 2] and read[1][0].id == "q2"


def test_what_has_no_residues_is_no_alignment() -> None:
    assert report("stockholm", make_result(("q", "", ""), [])) == ""


def hmmer(name: str) -> str:
    """Return where one of HMMER's programs is."""
    return shutil.which(name) or pytest.skip(f"{name} is not installed")


@pytest.mark.peer
def test_hmmbuild_takes_it(tmp_path: Path) -> None:
    odd = ("odd", "letters", QUERY[:20] + "BJZXUO" + QUERY[26:])
    results = [
        with_two_alignments(make_result(subjects=[*PARTS, odd])),
        make_result(("q2", "no hits but one", QUERY), PARTS[:1]),
        hostile_result(),
    ]
    (tmp_path / "all.sto").write_text(report("stockholm", *results), encoding="utf-8")
    command = [hmmer("hmmbuild"), "--amino", "--hand", "all.hmm", "all.sto"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / "all.hmm").read_text()
    assert text.count(f"LENG  {len(QUERY)}\n") == 3 and "NAME  q1" in text
