from __future__ import annotations

import csv
import dataclasses
import io
import random
import re
import shutil
import subprocess
import time
from pathlib import Path

import pandas
import pytest
from Bio import SearchIO

import swsearch
from support.report_cases import (
    QUERY,
    SUBJECT,
    TWO,
    make_result,
    mutated,
    report,
    table,
    with_two_alignments,
    write_all,
)
from swsearch.errors import InputError, OptionError
from swsearch.options.kinds import MODES, Mode
from swsearch.report import FORMATS, create_writer, find_format
from swsearch.report.tabular import COLUMNS, REFUSED, STANDARD
from swsearch.scoring import Scoring


def test_standard_table() -> None:
    assert report("6", make_result(subjects=TWO)) == (
        "q1\ts1\t92.754\t69\t2\t2\t1\t67\t3\t70\t7.36e-38\t117\n"
        "q1\ts2\t100.000\t40\t0\t0\t1\t40\t1\t40\t8.74e-23\t78.6\n"
    )


def test_names_and_std_give_the_same() -> None:
    result = make_result(subjects=TWO)
    assert report("6", result) == report("tabular", result) == report("6 std", result) == report(" 6  std ", result)
    assert table("6 std score", result)[0] == [*table("6", result)[0], str(result[0].score)]


def test_a_header_names_the_columns_of_lines_and_of_nothing_else(tmp_path: Path) -> None:
    with swsearch.search("MKVLAAGIVGWWHHKDEF", ["MKVLAAGIVGWWHHKDEF"], engine="cpu") as results:
        found = list(results)
    expected = {"a.tsv": "qaccver\tsaccver\t", "b.csv": "qaccver,saccver,", "c.jsonl": "{"}
    for header in (False, True):
        swsearch.write(found, [tmp_path / name for name in expected], header=header)
        for name, text in expected.items():
            assert (tmp_path / name).read_text().startswith(text) == (header or name == "c.jsonl")
    swsearch.write(found, tmp_path / "d.tsv", "6 sseqid std score", header=True)
    table = pandas.read_csv(tmp_path / "d.tsv", sep="\t")
    assert list(table)[:3] == ["sseqid", "qaccver", "saccver"]
    assert table.score.tolist() == [found[0][0].score]
    with pytest.raises(InputError, match="--header: got --outfmt jsonl, 7, expected 6 or 10"):
        swsearch.write(found, [tmp_path / "e.jsonl", tmp_path / "e.txt"], ["jsonl", "7"], header=True)
    assert not (tmp_path / "e.jsonl").exists()


def test_accessions_are_what_blastp_prints_of_databases_with_seqids() -> None:
    """blastp 2.12 with -parse_seqids and -parse_deflines; std keeps identifiers, as without."""
    headers = {
        "sp|Q28933|IGF1_SUNMU": ("Q28933", "Q28933"),
        "ref|NP_000001.1|": ("NP_000001", "NP_000001.1"),
        "NP_000002.1": ("NP_000002", "NP_000002.1"),
        "gi|12345|ref|NP_000003.1|": ("NP_000003", "NP_000003.1"),
        "pdb|1ABC|A": ("1ABC_A", "1ABC_A"),
        "gnl|mine|contig7": ("mine:contig7", "mine:contig7"),
        "UniRef100_P12345": ("UniRef100_P12345", "UniRef100_P12345"),
        "seq1": ("seq1", "seq1"),
    }
    letters = "MKVLAAGIVGWWHHKDEFMKVLAAGIVGWWHHKDEFMKVL"
    query, subjects = ("gb|AAA12345.1|", "", letters), [(name, "", letters) for name in headers]
    result = make_result(query, subjects)
    rows = table("6 sseqid sacc saccver sallacc qseqid qacc qaccver", result)
    assert [row[:4] for row in rows] == [[name, *known, known[0]] for name, known in headers.items()]
    assert {tuple(row[4:]) for row in rows} == {("gb|AAA12345.1|", "AAA12345", "AAA12345.1")}
    assert [row[:2] for row in table("6", result)] == [["gb|AAA12345.1|", name] for name in headers]
    assert "<Hit_id>ref|NP_000001.1|</Hit_id>" in report("5", result)
    assert "<Hit_accession>NP_000001</Hit_accession>" in report("5", result)
    assert '"id":"sp|Q28933|IGF1_SUNMU","accession":"Q28933"' in report("15", result)


def test_a_column_named_twice_is_printed_once_as_blastp_does() -> None:
    assert table("6 qseqid score qseqid std", make_result())[0][:3] == ["q1", "293", "q1"]
    assert len(table("6 evalue std evalue", make_result())[0]) == len(STANDARD)


def test_every_column() -> None:
    result = make_result(subjects=[("s1", "a subject", SUBJECT)])
    names = list(COLUMNS)
    row = dict(zip(names, table("6 " + " ".join(names), result)[0], strict=True))
    pair = result[0].pair
    top, _, bottom = pair.rows()
    of_taxa = [name for name in row if re.fullmatch(r"s(taxid|sciname|comname|blastname|skingdom)s?", name)]
    assert {name: row.pop(name) for name in of_taxa} == dict.fromkeys(of_taxa, "N/A") | {"staxids": "0"}
    assert row == {
        "qseqid": "q1", "qacc": "q1", "qaccver": "q1", "qtitle": "q1 the query",
        "sallseqid": "s1", "sallacc": "s1", "sseqid": "s1", "sacc": "s1", "saccver": "s1",
        "qlen": str(len(QUERY)), "slen": str(len(SUBJECT)), "stitle": "s1 a subject", "salltitles": "s1 a subject",
        "subject_index": "0", "score": "293", "bitscore": "117", "evalue": "7.36e-38",
        "zscore": "nan", "evalue_published": "nan", "iteration": "1",
        "qstart": "1", "qend": "67", "sstart": "3", "send": "70", "qseq": top, "sseq": bottom,
        "length": str(len(top)), "pident": "92.754", "nident": str(pair.identities),
        "mismatch": str(len(top) - pair.identities - pair.gaps), "positive": str(pair.positives),
        "ppos": f"{100 * pair.positives / len(top):.2f}", "gapopen": "2", "gaps": "3",
        "btop": "22L-ED11IL9-W-W22", "cigar": "22M1I22M2D22M", "qcovs": "96", "qcovhsp": "96", "scovhsp": "94",
        "qframe": "1", "sframe": "1", "frames": "1/1", "sstrand": "N/A",  # what blastp says of proteins
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_rows_and_btop_are_those_of_the_alignment(seed: int) -> None:
    generator = random.Random(seed)
    subject = mutated(QUERY, 0.6 * generator.random(), generator)
    for mode in MODES:
        result = make_result(subjects=[("s", "", subject)], mode=mode)
        pair = result[0].pair
        top, _, bottom = pair.rows()
        assert table("6 qseq sseq btop", result) == [[top, bottom, pair.btop()]], f"seed {seed}, {mode}: {subject}"


def test_alignments_are_asked_for_only_when_a_column_needs_them() -> None:
    outfmt = "6 qseqid sseqid qlen slen score evalue bitscore stitle salltitles subject_index"
    assert not create_writer(outfmt, io.StringIO()).needs_alignments
    assert table(outfmt, make_result(may_align=False))[0][:5] == ["q1", "s1", "70", "72", "293"]
    for name in ("6", "7", "10", "6 qseqid length", "0", "jsonl"):
        assert create_writer(name, io.StringIO()).needs_alignments
    for column in COLUMNS.values():
        if not column.needs_alignment:
            table(f"6 {column.name}", make_result(may_align=False))


def test_comments() -> None:
    nothing = make_result(("q2", "", "WWW"), [])
    assert report("7 qseqid sseqid score", make_result(), nothing) == (
        "# swsearch 0.1.0\n"
        "# Query: q1 the query\n"
        "# Database: some/db.h5\n"
        "# Fields: query id, subject id, score\n"
        "# 1 hits found\n"
        "q1\ts1\t293\n"
        "# swsearch 0.1.0\n"
        "# Query: q2\n"
        "# Database: some/db.h5\n"
        "# 0 hits found\n"
        "# swsearch processed 2 queries\n"
    )


def test_without_statistics_numbers_are_nan_and_a_comment_says_why() -> None:
    text = report("7 qseqid evalue bitscore score", make_result(mode="global"))
    assert "# Note: no E-values: no statistics are published for global alignment; hits are ranked by score\n" in text
    assert "\nq1\tnan\tnan\t" in text
    text = report("7", make_result(scoring=Scoring(gap_open=3)))
    assert "# Note: no E-values: no statistics are published for BLOSUM62, gap open 3" in text


@pytest.mark.parametrize("mode", ["local", "global"])
def test_searchio_reads_comments(mode: Mode) -> None:
    results = [make_result(subjects=TWO, mode=mode), make_result(("q2", "", "WWW"), [], mode=mode)]
    text = report("7 std qlen slen score nident positive gaps ppos btop qseq sseq stitle", *results, results[0])
    first, empty, last = SearchIO.parse(io.StringIO(text), "blast-tab", comments=True)
    assert (first.id, first.description, first.target) == ("q1", "the query", "some/db.h5")
    assert (empty.id, len(empty), last.id) == ("q2", 0, "q1")
    hit = results[0][0]
    hsp = first["s1"][0]
    assert (hsp.query_start, hsp.query_end) == hit.query_range
    assert (hsp.hit_start, hsp.hit_end) == hit.subject_range
    assert (str(hsp.query.seq), str(hsp.hit.seq)) == hit.pair.rows()[::2]
    assert hsp.aln_span == hit.pair.length
    assert hsp.mismatch_num == hit.pair.mismatches


def test_searchio_and_pandas_read_the_plain_table() -> None:
    result = make_result(subjects=TWO)
    (parsed,) = SearchIO.parse(io.StringIO(report("6", result)), "blast-tab")
    assert [hit.id for hit in parsed] == ["s1", "s2"]
    frame = pandas.read_csv(io.StringIO(report("6", result)), sep="\t", names=list(STANDARD))
    assert frame["qend"].tolist() == [67, 40]
    frame = pandas.read_csv(io.StringIO(report("6", make_result(mode="global"))), sep="\t", names=list(STANDARD))
    assert frame["evalue"].isna().all()
    assert frame["evalue"].dtype == float


def test_comma_separated_values_are_quoted_where_needed() -> None:
    subjects = [("s,1", 'says "hello", twice', QUERY), ("s2", "plain", QUERY)]
    text = report("10 qseqid sseqid stitle score", make_result(subjects=subjects))
    assert next(csv.reader(io.StringIO(text)))[:3] == ["q1", "s,1", 's,1 says "hello", twice']
    assert text.split("\n")[1].startswith("q1,s2,s2 plain,")
    assert "\r" not in text


def test_merged_headers() -> None:
    subjects = [("one", "first protein\x01two second\x01three", QUERY), ("a\x01b", "", QUERY)]
    rows = table("6 sseqid stitle salltitles", make_result(subjects=subjects))
    assert rows[0] == ["one", "one first protein", "one first protein<>two second<>three"]
    assert rows[1] == ["a", "a", "a<>b"]


@pytest.mark.parametrize("outfmt", ["6 " + " ".join(COLUMNS), "7", "10", "0", "jsonl"])
@pytest.mark.parametrize("subject", ["", "W"])
def test_alignments_without_pairs_do_not_crash(outfmt: str, subject: str) -> None:
    for mode in ("global", "semiglobal"):
        assert report(outfmt, make_result(("q", "", "PPPP"), [("s", "", subject)], mode=mode))


def test_a_side_without_residues_has_coordinates_0() -> None:
    (row,) = table(
        "6 qstart qend sstart send sseq length pident", make_result(subjects=[("s", "", "")], mode="global")
    )
    assert row == ["1", "70", "0", "0", "-" * 70, "70", "0.000"]


@pytest.mark.parametrize(
    ("outfmt", "words"),
    [
        ("", ["one of 0, pairwise, 5, xml, 6, tabular"]),
        ("8", ["one of 0, pairwise, 5, xml"]),
        ("6 qgi", ["GI numbers"]),
        ("10 delim=@ qseqid", ["10 is comma-separated"]),
        ("tabluar", ["did you mean tabular?"]),
        ("6 qseqid sseq_id", ["not 'sseq_id'", "did you mean", "sseqid", "subject_index"]),
        ("6 QSEQID", ["did you mean qseqid"]),
        ("6 qseqid,sseqid", ["not 'qseqid,sseqid'"]),
        ("0 qseqid", ["expected 0 without columns", "only tables"]),
        ("jsonl std", ["expected jsonl without columns"]),
    ],
)
def test_errors_list_what_there_is(outfmt: str, words: list[str]) -> None:
    with pytest.raises(OptionError) as caught:
        create_writer(outfmt, io.StringIO())
    assert str(caught.value).startswith(f"outfmt: got {outfmt!r}")
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_every_format_writes_line_feeds_only_and_is_not_flushed() -> None:
    class Stream(io.StringIO):
        def flush(self) -> None:
            raise AssertionError("flushed")

    for name in FORMATS:
        if find_format(name).writer.binary:
            continue
        stream = Stream(newline="")
        writer = create_writer(name, stream)
        write_all(writer, make_result())
        assert stream.getvalue().endswith("\n")
        assert "\r" not in stream.getvalue()


def test_a_line_an_alignment() -> None:
    result = with_two_alignments(make_result())
    best, second = result[0].hsps
    rows = table("6 sseqid qstart qend score evalue qcovhsp qcovs", result)
    assert rows[0] == ["s1", "1", "67", "293", "7.36e-38", "96", "96"]
    assert rows[1] == ["s1", "48", "67", str(second.score), "2.5", "29", "96"]
    assert second.score < best.score
    assert table("6 sseqid score", result) == [["s1", "293"], ["s1", str(second.score)]]
    table("6 sseqid score", make_result(may_align=False))  # no column asks for the one alignment, so it is not found
    assert len(list(SearchIO.read(io.StringIO(report("6", result)), "blast-tab").hsps)) == 2


@pytest.mark.peer
@pytest.mark.skipif(not shutil.which("blastp"), reason="blastp is not installed")
def test_every_column_of_blastps_is_there_or_refused() -> None:
    told = subprocess.run(["blastp", "-help"], check=True, capture_output=True, text=True).stdout
    part = told.split("The supported format specifiers are:")[1].split("When not provided")[0]
    names = re.findall(r"^\s+(\w+) means ", part, re.MULTILINE)
    assert len(names) >= 50
    assert not [name for name in names if (name in COLUMNS) == (name in REFUSED)]
    for name in REFUSED:
        with pytest.raises(OptionError, match=f"expected no column {name}; "):
            create_writer(f"6 std {name}", io.StringIO())


def test_ten_thousand_hits_are_written_in_time() -> None:
    # 0.15 s on one core of the development machine, a virtual Xeon, November 2026; this test's own number
    one = make_result()
    assert one[0].pair
    many = dataclasses.replace(one, hits=[one[0]] * 10_000)
    start = time.process_time()
    text = report("6 std qlen slen score nident positive", many)
    seconds = time.process_time() - start
    assert text.count("\n") == 10_000
    assert seconds < 1.5
