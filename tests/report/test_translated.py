"""Reports of translated DNA: coordinates on the DNA, frames, records as hits; held against BLAST+ and its readers."""

from __future__ import annotations

import copy
import dataclasses
import io
import json
import pickle
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from Bio import SearchIO
from Bio.Seq import Seq

from support.samples import sample
from support.translated_cases import (
    QUERY_IS_DNA,
    SUBJECT_IS_DNA,
    records_of,
    run_blast,
    search_records,
    write_translated,
)
from swsearch.errors import InputError
from swsearch.report import OUTPUT_FORMATS
from swsearch.report.outputs import Output, check_program
from swsearch.results import SearchResult
from swsearch.run_info import Program
from swsearch.translation import Frame

PROGRAMS: tuple[Program, ...] = ("blastx", "tblastn", "tblastx")

needs_blast = pytest.mark.skipif(
    not all(map(shutil.which, ("makeblastdb", *PROGRAMS))), reason="blastx, tblastn or tblastx is not installed"
)


@pytest.fixture(scope="module", params=PROGRAMS)
def case(request: pytest.FixtureRequest) -> tuple[Program, list[SearchResult]]:
    """The results of a program."""
    program: Program = request.param
    return program, search_records(program)


def lines(outfmt: str, results: Sequence[SearchResult]) -> list[list[str]]:
    """The cells of a table."""
    return [line.split("\t") for line in write_translated(outfmt, results).splitlines()]


def part(letters: str, first: int, last: int, frame: int) -> str:
    """Return a record's letters between two positions, counted from 1; of DNA, translated in a frame."""
    if not frame:
        return letters[first - 1 : last]
    dna = Seq(letters[min(first, last) - 1 : max(first, last)])
    return str((dna.reverse_complement() if frame < 0 else dna).translate())


OF_STATISTICS = re.compile(r"<Hsp_(?:evalue|bit-score)>.*?</Hsp|[\d.]+ bits|Expect.* = \S+")
"""Numbers that BLAST computes from lengths without their ends."""

OF_RUN = re.compile(r"<dd>[\d.]+, this|[\d:]+\+00:00")
"""The times of a search in its HTML report."""


def written_in(outfmt: str, results: Sequence[SearchResult]) -> object:
    text = write_translated(outfmt, results)
    return OF_RUN.sub("", text) if outfmt == "html" else text


def number_of(frame: Frame | None) -> int:
    """A frame's number, 0 of proteins."""
    return 0 if frame is None else frame.number


def test_coordinates_are_where_the_letters_are_read_from(case: tuple[Program, list[SearchResult]]) -> None:
    program, results = case
    letters = [{name: text for name, _, text in some} for some in records_of(program)]
    found = lines("6 qseqid sseqid qstart qend sstart send qframe sframe frames qseq sseq qlen slen", results)
    assert len(found) >= 4
    assert {row[6] for row in found} | {row[7] for row in found} >= {"1", "-3"}
    for query, subject, *numbers, frames, qseq, sseq, qlen, slen in found:
        qstart, qend, sstart, send, qframe, sframe = map(int, numbers)
        assert frames == f"{qframe}/{sframe}"
        assert (qstart > qend) == (qframe < 0)
        assert (sstart > send) == (sframe < 0)
        assert part(letters[0][query], qstart, qend, qframe) == qseq.replace("-", "")
        assert part(letters[1][subject], sstart, send, sframe) == sseq.replace("-", "")
        assert (int(qlen), int(slen)) == (len(letters[0][query]), len(letters[1][subject]))
    rows = [hsp for result in results for hit in result for hsp in hit.hsps]
    spans = {(*hsp.query_range, *hsp.subject_range) for hsp in rows}
    printed = {tuple(map(int, row[2:6])) for row in found}
    assert spans == {(min(a, b) - 1, max(a, b), min(c, d) - 1, max(c, d)) for a, b, c, d in printed}


def test_all_columns_of_python_have_coordinates_of_the_dna(case: tuple[Program, list[SearchResult]]) -> None:
    program, results = case
    columns = results[0].to_columns()
    frames = [program in QUERY_IS_DNA, program in SUBJECT_IS_DNA]
    assert ["query_frame" in columns, "subject_frame" in columns] == frames
    nothing = dataclasses.replace(results[0], hits=[])
    assert list(nothing.to_columns()) == list(columns) == results[0].to_arrow().column_names
    hsps = [hsp for hit in results[0] for hsp in hit.hsps]
    assert list(zip(columns["query_start"], columns["query_end"], strict=True)) == [each.query_range for each in hsps]
    ranges = list(zip(columns["subject_start"], columns["subject_end"], strict=True))
    assert ranges == [each.subject_range for each in hsps]
    for name in ("query_frame", "subject_frame"):
        assert name not in columns or columns[name] == [number_of(getattr(each, name)) for each in hsps]
    lengths = [len(letters) for _, _, letters in records_of(program)[1]]
    assert columns["subject_length"] == [lengths[place] for place in columns["subject_index"]]


def test_readers_find_one_hit_a_record_with_its_frames(case: tuple[Program, list[SearchResult]]) -> None:
    program, results = case
    expected: list[dict[str, list[tuple[int, ...]]]] = []
    for result in results:
        expected.append({})
        for hit in result:
            frames = [(number_of(hsp.query_frame), number_of(hsp.subject_frame)) for hsp in hit.hsps]
            spans = [(*hsp.query_range, *hsp.subject_range) for hsp in hit.hsps]
            of_record = expected[-1].setdefault(hit.subject_id, [])
            of_record += [(*span, *frame) for span, frame in zip(spans, frames, strict=True)]
            of_record.sort()
    assert max(len(spans) for of_query in expected for spans in of_query.values()) > 1
    xml = write_translated("5", results)
    assert f"<BlastOutput_program>{program}</BlastOutput_program>" in xml
    for query, hits in zip(SearchIO.parse(io.StringIO(xml), "blast-xml"), expected, strict=True):
        assert [hit.id for hit in query] == list(hits)
        for hit in query:
            found = [(*hsp.query_range, *hsp.hit_range, hsp.query_frame, hsp.hit_frame) for hsp in hit]
            assert sorted(found) == hits[hit.id]
    tables = SearchIO.parse(io.StringIO(write_translated("7", results)), "blast-tab", comments=True)
    for query, hits in zip(tables, expected, strict=True):
        assert [hit.id for hit in query] == list(hits)
        assert {hit.id: sorted((*hsp.query_range, *hsp.hit_range) for hsp in hit) for hit in query} == {
            name: [span[:4] for span in spans] for name, spans in hits.items()
        }
    reports = json.loads(write_translated("15", results))["BlastOutput2"]
    for each, hits in zip(reports, expected, strict=True):
        assert each["report"]["program"] == program
        of_query = each["report"]["results"]["search"]["hits"]
        assert [hit["description"][0]["id"] for hit in of_query] == list(hits)
        assert [hit["num"] for hit in of_query] == list(range(1, len(hits) + 1))
        for hit in of_query:
            assert [hsp["num"] for hsp in hit["hsps"]] == list(range(1, len(hit["hsps"]) + 1))
            assert ("hit_frame" in hit["hsps"][0]) == (program in SUBJECT_IS_DNA)


def test_a_table_without_alignments_has_the_same_lines(case: tuple[Program, list[SearchResult]]) -> None:
    _, results = case
    names = "qseqid sseqid slen score evalue subject_index"
    assert write_translated(f"6 {names}", results) == "".join(
        "\t".join(row[:-1]) + "\n" for row in lines(f"6 {names} qframe", results)
    )


FORMATS = ("0", "5", "7", "10", "15", "jsonl", "html", "arrow")


@pytest.mark.parametrize("program", sample(PROGRAMS[1:], lambda program: program == "tblastn"))
def test_results_that_were_found_together_or_pickled_make_the_same_bytes(program: Program) -> None:
    alone, together = search_records(program), search_records(program, aligned=True)
    for outfmt in FORMATS:
        copies = together, copy.deepcopy(together), pickle.loads(pickle.dumps(together))
        expected = written_in(outfmt, alone)
        assert all(written_in(outfmt, each) == expected for each in copies), outfmt
    assert [result.to_columns() for result in together] == [result.to_columns() for result in alone]


def test_formats_that_cannot_hold_frames_are_refused() -> None:
    refused = {kind.key: kind.writer.programs for kind in OUTPUT_FORMATS if len(kind.writer.programs) < 4}
    assert set(refused) == {"sam", "paf", "a3m", "fasta-aligned", "stockholm"}
    for key, programs in refused.items():
        for program in ("blastp", *PROGRAMS):
            if program in programs:
                check_program(program, [Output(None, key)])
                continue
            with pytest.raises(
                InputError,
                match=(
                    f"--outfmt {key}: got results of translated DNA .{program}., "
                    f"expected {' or '.join(programs)}; .*use "
                ),
            ):
                check_program(program, [Output(None, key)])


def test_paf_has_strands_and_nucleotides() -> None:
    results = search_records("blastx")
    rows = [line.split("\t") for line in write_translated("paf", results).splitlines()]
    table = lines("6 qseqid qlen qstart qend sseqid slen sstart send nident length", results)
    assert {row[4] for row in rows} == {"+", "-"}
    for row, (query, qlen, qstart, qend, subject, slen, sstart, send, nident, length) in zip(
        rows, table, strict=True
    ):
        low, high = sorted((int(qstart), int(qend)))
        strand = "-" if int(qstart) > int(qend) else "+"
        assert row[:6] == [query, qlen, str(low - 1), str(high), strand, subject]
        assert row[6:11] == [slen, str(int(sstart) - 1), send, str(3 * int(nident)), str(3 * int(length))]


SHIFT = 15


def test_frame_shifts_are_marked_and_numbers_go_on_behind_them() -> None:
    result = search_records("blastx", frame_shift=SHIFT)[0]
    dna = Seq(records_of("blastx")[0][0][2])
    outfmt = "6 sseqid qstart qend sstart send qframe qseq sseq length gaps cigar score qcovhsp"
    rows = {row[0]: row[1:] for row in lines(outfmt, [result])}
    qstart, qend, sstart, send, qframe, qseq, sseq, length, gaps, cigar, _, covered = rows["A"]
    # the protein is read from one frame, and after a nucleotide too many from the next
    assert (qstart, qend, sstart, send, qframe) == ("51", "321", "1", "90", "3")
    front, back = qseq.split("\\")
    assert front == str(dna[50 : 50 + 3 * len(front)].translate())
    assert back == str(dna[51 + 3 * len(front) : 321].translate())
    assert (sseq[len(front)], length, gaps) == ("-", str(len(qseq)), "1")
    assert (cigar, covered) == (f"{len(front)}M1F{len(back)}M", str(round(100 * 90 / 582)))
    assert rows["B"][:5] == ["562", "353", "1", "70", "-3"]
    for hit in result:
        (pair,) = [hsp.pair for hsp in hit.hsps]
        assert dataclasses.replace(pair, frame_shift=SHIFT).recompute_score() == pair.score
        alignment = hit.alignment
        assert alignment[1].replace("-", "") == pair.query_row().replace("-", "").replace("\\", "")
        first, last = sorted(map(int, rows[hit.subject_id][:2]))
        assert hit.query_range == (first - 1, last)
    assert sorted(result.to_columns()["query_frame"]) == [-3, 3]
    for each in ("0", "5", "7", "10", "15", "jsonl", "html", "paf", "arrow"):
        together = search_records("blastx", frame_shift=SHIFT, aligned=True)[:1]
        assert written_in(each, together) == written_in(each, [result]), each
    (report,) = json.loads(write_translated("15", [result]))["BlastOutput2"]
    assert report["report"]["results"]["search"]["hits"][0]["hsps"][0]["qseq"] in (qseq, rows["B"][5])
    numbers = re.findall(r"^Query +(\d+) +(\S+) +(\d+)$", write_translated("0", [result]), re.MULTILINE)
    for first, letters, last in numbers:
        if "\\" in letters:
            assert int(last) - int(first) + 1 == 3 * (len(letters) - 1) + 1


BLAST_COLUMNS = (
    "qseqid sseqid qlen slen qstart qend sstart send length pident qframe sframe frames sstrand qcovs qcovhsp btop "
    "qseq sseq nident gaps score positive ppos mismatch gapopen"
)


@pytest.mark.peer
@needs_blast
@pytest.mark.parametrize("program", sample(PROGRAMS, lambda program: program == "blastx"))
def test_lines_and_elements_are_those_of_blast(program: Program, tmp_path: Path) -> None:
    def both(outfmt: str) -> list[str]:
        texts = write_translated(outfmt, results), run_blast(tmp_path, program, outfmt)
        return [OF_STATISTICS.sub("", text) for text in texts]

    results = search_records(program)
    ours, theirs = (sorted(text.splitlines()) for text in both(f"6 {BLAST_COLUMNS}"))
    assert ours == theirs
    assert len(ours) >= 4
    ours, theirs = (sorted(re.findall("<Hsp_score>.*?</Hsp>", text, re.DOTALL)) for text in both("5"))
    assert ours == theirs
    for mine, other in zip(*(json.loads(text)["BlastOutput2"] for text in both("15")), strict=True):
        assert other["report"]["params"].items() <= mine["report"]["params"].items()
        found = [each["report"]["results"]["search"]["hits"] for each in (mine, other)]
        ours, theirs = (
            [
                (hit["len"], sorted(str(hsp | {"num": 0, "evalue": 0, "bit_score": 0}) for hsp in hit["hsps"]))
                for hit in hits
            ]
            for hits in found
        )
        assert ours == theirs
    if program != "tblastx":  # which leaves less room for numbers than it has digits
        ours, theirs = (re.findall(r"^ Score.*?(?=\n\n\n|\n>)", text, re.MULTILINE | re.DOTALL) for text in both("0"))
        assert ours == theirs
