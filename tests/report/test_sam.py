"""SAM and PAF of a search, read back by pysam, Biopython, samtools and pafpy."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path

import pytest

from support.report_cases import CASES, QUERY, SUBJECT, make_result, report
from swsearch.report import headers
from swsearch.results import Hsp, SearchResult

cases = pytest.mark.parametrize("results", CASES.values(), ids=CASES)


def alignments(result: SearchResult) -> list[tuple[int, str, Hsp]]:
    """Return place, name and alignment of each line that has a place."""
    found = [(hit.subject_index, headers.identifier(hit.subject_id), hsp) for hit in result for hsp in hit.hsps]
    return [each for each in found if any(op == "M" for _, op in each[2].pair.cigar)]


@cases
def test_pysam_reads_it(results: list[SearchResult], tmp_path: Path) -> None:
    pysam = pytest.importorskip("pysam", reason="pysam is not installed")
    path = tmp_path / "x.sam"
    path.write_text(report("sam", *results), encoding="utf-8")
    before = pysam.set_verbosity(3)
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        references = dict(zip(file.references, file.lengths, strict=True))
        titles = [line.get("DS") for line in file.header.to_dict().get("SQ", [])]
        program = file.header.to_dict()["PG"][0]
        reads = list(file.fetch(until_eof=True))  # without references pysam refuses plain iteration
    pysam.set_verbosity(before)
    hits = {hit.subject_index: hit for result in results for hit in result}
    lengths = [hit.subject_length for _, hit in sorted(hits.items()) if hit.subject_length]
    assert list(references.values()) == lengths
    assert len(titles) == len(lengths)
    assert (program["ID"], program["VN"]) == ("swsearch", "0.1.0")
    assert program["DS"].startswith("search of some/db.h5, 3000 subjects, 1000000 residues; ")
    mapped = [read for read in reads if not read.is_unmapped]
    expected = [(result, each) for result in results for each in alignments(result)]
    assert len(mapped) == len(expected)
    for read, (result, (_, _, hsp)) in zip(mapped, expected, strict=True):
        pair = hsp.pair
        assert (read.query_alignment_start, read.query_alignment_end) == (pair.query_start, pair.query_end)
        assert (read.reference_start, read.reference_end) == (pair.subject_start, pair.subject_end)
        assert read.get_tag("AS") == hsp.score
        assert read.get_tag("NM") == pair.mismatches + pair.gaps
        assert read.get_tag("PI") == pytest.approx(100 * pair.identities / pair.length, abs=0.01)
        assert read.has_tag("EV") == read.has_tag("BS") == (hsp.evalue is not None)
        if hsp.evalue is not None:
            assert read.get_tag("EV") == pytest.approx(hsp.evalue, rel=1e-5)
            assert read.get_tag("BS") == pytest.approx(hsp.bit_score, rel=1e-5)
        assert read.infer_query_length() == result.query_length
        assert read.query_length == (0 if read.is_secondary else result.query_length)
    assert sum(not read.is_secondary for read in reads) == sum(bool(result.hits) for result in results)


@pytest.mark.peer
@pytest.mark.skipif(not shutil.which("samtools"), reason="samtools is not installed")
@cases
def test_samtools_reads_it_without_a_word(results: list[SearchResult], tmp_path: Path) -> None:
    path = tmp_path / "x.sam"
    path.write_text(report("sam", *results), encoding="utf-8")
    subprocess.run(["samtools", "quickcheck", "-u", path], check=True)
    done = subprocess.run(["samtools", "view", "-b", path], check=True, capture_output=True)
    assert done.stderr == b""
    counted = subprocess.run(["samtools", "view", "-c", "-F", "4", path], check=True, capture_output=True, text=True)
    assert int(counted.stdout) == sum(len(alignments(result)) for result in results)


def test_names_that_sam_does_not_allow() -> None:
    subjects = [("a,b", "x", SUBJECT), ("=c", "", SUBJECT), ("same", "first", SUBJECT), ("same", "second", SUBJECT)]
    lines = report("sam", make_result(("@q q" + "r" * 300, "", QUERY), subjects)).splitlines()
    names = [line.split("\t")[1:4] for line in lines if line.startswith("@SQ")]
    assert names == [
        ["SN:a_b", "LN:72", "DS:a,b x"], ["SN:_c", "LN:72", "DS:=c"], ["SN:same", "LN:72", "DS:same first"],
        ["SN:same#3", "LN:72", "DS:same second"],
    ]  # fmt: skip
    rows = [line.split("\t") for line in lines if not line.startswith("@SQ")][2:]
    assert {row[0] for row in rows} == {"_q_q" + "r" * 250}
    assert [row[2] for row in rows] == ["a_b", "_c", "same", "same#3"]
    assert [row[1] for row in rows] == ["0", "256", "256", "256"]


def test_a_stop_in_a_query_becomes_x() -> None:
    (row,) = report("sam", make_result(("q", "", QUERY[:30] + "*" + QUERY[30:]))).splitlines()[3:]
    assert row.split("\t")[9] == QUERY[:30] + "X" + QUERY[30:]


@cases
def test_pafpy_reads_it(results: list[SearchResult]) -> None:
    pafpy = pytest.importorskip("pafpy", reason="pafpy is not installed")
    text = report("paf", *results)
    with pafpy.PafFile(io.StringIO(text)) as file:
        read = [record for record in file if not record.is_unmapped()]
    expected = [(result, each) for result in results for each in alignments(result)]
    assert len(read) == len(expected)
    for record, (result, (_, subject, hsp)) in zip(read, expected, strict=True):
        pair = hsp.pair
        assert (record.qlen, record.qstart, record.qend) == (result.query_length, pair.query_start, pair.query_end)
        assert (record.tname, record.tstart, record.tend) == (subject, pair.subject_start, pair.subject_end)
        assert (record.mlen, record.blen, record.mapq) == (pair.identities, pair.length, 255)
        tags = {name: tag.value for name, tag in record.tags.items()}
        assert (tags["AS"], tags["cg"]) == (hsp.score, pair.cigar_string)
        assert ("EV" in tags) == (hsp.evalue is not None)
    assert text.count("tp:A:P") == sum(bool(result.hits) for result in results)
