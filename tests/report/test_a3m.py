"""A3M and aligned FASTA: what rows hold, and what readers make of them."""

from __future__ import annotations

import io
import pickle
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from Bio import AlignIO, SeqIO

import swsearch
from support.command_line import fails, run
from swsearch.errors import InputError
from swsearch.report import alignments
from tests.support.query_alignments import a3m_rows, alignment_from
from tests.support.report_cases import PARTS, QUERY, SUBJECT, make_result, report, with_two_alignments


def rows(text: str) -> list[tuple[str, str]]:
    """Header and letters of each record, which has two lines."""
    lines = text.splitlines()
    assert all(line.startswith(">") for line in lines[::2])
    return list(zip(lines[::2], lines[1::2], strict=True))


def test_insertions_are_lower_case() -> None:
    found = rows(report("a3m", make_result(subjects=PARTS)))
    assert found[0] == (">q1 the query", QUERY)
    assert [title.split()[0] for title, _ in found[2:]] == [">s2/3-42", ">s3/1-69"]
    assert "TQwwDN" in found[1][1] and found[1][0].endswith(" a subject") and " E=" in found[1][0]
    assert found[2][1] == "-" * 10 + QUERY[10:50] + "-" * 20
    assert all(sum(letter in "-ABCDEFGHIJKLMNOPQRSTUVWXYZ" for letter in row) == len(QUERY) for _, row in found)


def test_aligned_fasta_has_the_columns_of_the_query_alone() -> None:
    result = make_result(subjects=PARTS)
    found = rows(report("fasta-aligned", result))
    expected = rows(report("a3m", result))
    assert found == [(title, "".join(a for a in row if not a.islower())) for title, row in expected]
    assert {len(row) for _, row in found} == {len(QUERY)}


def test_stops_are_x() -> None:
    found = rows(report("a3m", make_result(("q", "", QUERY + "*"), [("s", "", QUERY + "*")])))
    assert [row for _, row in found] == [QUERY + "X", QUERY + "-"] or found[1][1] == QUERY + "X"


@pytest.mark.parametrize("together", [1, 2, 3, 2048])
def test_rows_are_written_some_at_a_time(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignments, "TEXT_ROWS", together)
    whole = alignment_from("MKTAY", "MkkKT--", "-----", "cM-TAYww", "aa-K---", "ppMKTAY")
    text = "".join(alignments.a3m_texts(whole))
    assert [row for _, row in rows(text)] == a3m_rows(whole)


def test_every_alignment_of_a_subject_is_a_row() -> None:
    found = rows(report("a3m", with_two_alignments(make_result())))
    assert len(found) == 3 and len({title for title, _ in found}) == 3


@pytest.mark.parametrize("outfmt", ["a3m", "fasta-aligned", "stockholm"])
def test_names_are_unique_words_that_are_no_comments_and_titles_are_lines(outfmt: str) -> None:
    odd = ["#s", "a\x1bb", "//", "é\u2028x", "", "a\u00a0b", ">s", "bad\udcff", "s", "s"]
    subjects = [(name, "one\x01two second" if name == "s" else " \x00line\nend ", QUERY) for name in odd]
    text = report(outfmt, make_result(("s/1-70#2", "the query", QUERY), subjects))
    read = AlignIO.read(io.StringIO(text), "stockholm" if outfmt == "stockholm" else "fasta")
    clean = ["_s", "a_b", "_", "é_x", "N/A", "a_b", "_s", "bad\ufffd", "s", "s"]
    ends = ["", "", "", "", "", "#2", "#2", "", "", "#3"]
    names = [f"{name}/1-70{end}" for name, end in zip(clean, ends, strict=True)]
    assert [record.id for record in read] == ["s/1-70#2", *names]
    said = [re.sub(rf"^{re.escape(record.id)} (E=\S+ )?", "", record.description) for record in read]
    assert said == ["the query", *["line end"] * 8, "one", "one"]


def test_biopython_reads_both() -> None:
    result = make_result(subjects=PARTS)
    read = list(SeqIO.parse(io.StringIO(report("a3m", result)), "fasta"))
    assert read[0].id == "q1" and str(read[0].seq) == QUERY
    aligned = AlignIO.read(io.StringIO(report("fasta-aligned", result)), "fasta")
    assert aligned.get_alignment_length() == len(QUERY) and len(aligned) == 4


def test_nothing_found_is_the_query_alone() -> None:
    (result,) = swsearch.search({"q": QUERY}, {"s": "WWWW"}, evalue=1e-9)
    for each in (result, pickle.loads(pickle.dumps(result))):
        stream = io.StringIO()
        swsearch.write(each, stream, "a3m")
        assert stream.getvalue() == f">q\n{QUERY}\n"
    (empty,) = swsearch.search({"q": ""}, {"s": "WWWW"})
    assert report("a3m", empty) == ">q\n\n"


def test_several_queries_are_refused_before_the_search(tmp_path: Path) -> None:
    queries, subjects = tmp_path / "q.fasta", tmp_path / "s.fasta"
    queries.write_text(f">a\n{QUERY}\n>b\n{QUERY}\n")
    subjects.write_text(f">s\n{SUBJECT}\n")
    for name in ("out.a3m", "out.afa", "out.aln.fasta"):
        done = run("search", queries, subjects, "-q", "-o", tmp_path / name)
        fails(done, 1, "got 2 queries, expected one", "use swsearch msa")
    assert not list(tmp_path.glob("*out*"))
    results = list(swsearch.search(str(queries), str(subjects)))
    with pytest.raises(InputError, match="queries: got 'a' and 'b', expected one; use swsearch msa"):
        swsearch.write(results, tmp_path / "out.a3m")
    assert not list(tmp_path.glob("*out*"))
    assert run("search", queries, subjects, "-q", "-o", tmp_path / "out.sto").returncode == 0


def test_masked_residues_are_letters(tmp_path: Path) -> None:
    results = swsearch.search({"q": QUERY[:30].lower() + QUERY[30:]}, {"s": SUBJECT}, query_mask="lower", evalue=1e9)
    swsearch.write(results, tmp_path / "out.a3m")
    found = rows((tmp_path / "out.a3m").read_text())
    assert found[0][1] == QUERY and "X" not in found[1][1]


def hh_suite(name: str) -> str:
    """Return where one of HH-suite's programs is."""
    places = [shutil.which(name), f"/usr/share/hhsuite/scripts/{name}", f"/usr/lib/hhsuite/scripts/{name}"]
    found = next((place for place in places if place and Path(place).is_file()), None)
    return found or pytest.skip(f"{name} is not installed")


@pytest.mark.peer
def test_hh_suite_reads_it(tmp_path: Path) -> None:
    subjects = [*PARTS, ("odd", "letters", QUERY[:20] + "BJZXUO" + QUERY[26:])]
    result = with_two_alignments(make_result(subjects=subjects))
    (tmp_path / "q.a3m").write_text(report("a3m", result))
    command = [hh_suite("hhmake"), "-i", "q.a3m", "-o", "q.hhm", "-M", "a3m", "-v", "2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "rror" not in done.stderr, done.stderr
    text = (tmp_path / "q.hhm").read_text()
    assert f"LENG  {len(QUERY)} match states" in text


@pytest.mark.peer
def test_reformat_makes_the_same_of_it(tmp_path: Path) -> None:
    result = make_result(subjects=PARTS)
    (tmp_path / "q.a3m").write_text(report("a3m", result))
    command = ["perl", hh_suite("reformat.pl"), "-r", "a3m", "fas", "q.a3m", "q.fas"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    read = {
        record.id: str(record.seq) for record in SeqIO.parse(io.StringIO((tmp_path / "q.fas").read_text()), "fasta")
    }
    assert read == {title[1:].split()[0]: row for title, row in rows(report("fasta-aligned", result))}
