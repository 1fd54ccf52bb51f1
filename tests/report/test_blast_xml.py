"""BLAST XML, read by Biopython's two parsers, held to NCBI's DTD and to blastp's own."""

from __future__ import annotations

import io
import math
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from Bio import Blast, Entrez, SearchIO

from support.report_cases import (
    CASES,
    EMPTY,
    HOSTILE,
    NOTHING,
    QUERY,
    SUBJECT,
    hostile_result,
    make_result,
    report,
)
from swsearch.options.kinds import Mode
from swsearch.report import headers
from swsearch.results import SearchResult

cases = pytest.mark.parametrize("results", CASES.values(), ids=CASES)


@cases
def test_it_is_valid_by_ncbis_dtd(results: list[SearchResult]) -> None:
    etree = pytest.importorskip("lxml.etree", reason="lxml is not installed")
    dtd = etree.DTD(str(Path(Entrez.__file__).parent / "DTDs" / "NCBI_BlastOutput.dtd"))
    document = etree.fromstring(report("5", *results).encode("ascii"))
    assert dtd.validate(document), dtd.error_log
    assert document.getroottree().docinfo.doctype.endswith('dtd/NCBI_BlastOutput.dtd">')


@cases
def test_bio_blast_reads_it(results: list[SearchResult]) -> None:
    with Blast.parse(io.BytesIO(report("5", *results).encode("ascii"))) as records:
        assert records.version == "swsearch 0.1.0"
        assert records.db == "some/db.h5"
        assert records.param["gap-open"] == results[0].scoring.gap_open
        read = list(records)
    assert len(read) == len(results)
    for record, result in zip(read, results, strict=True):
        title = headers.one_line(f"{result.query_id} {result.query_description}").strip()
        assert (record.query.description, len(record.query.seq)) == (title, result.query_length)
        assert record.stat["db-num"] == 3000
        assert record.stat["eff-space"] == result.query_length * 1_000_000
        assert len(record) == len(result)
        for theirs, hit in zip(record, result, strict=True):
            identifier = headers.identifier(hit.subject_id)
            assert [theirs.target.id, theirs.target.name] == [identifier, *headers.accessions([identifier], False)]
            assert len(theirs.target.seq) == hit.subject_length
            for alignment, hsp in zip(theirs, hit.hsps, strict=True):
                notes, pair = alignment.annotations, hsp.pair
                assert alignment.score == hsp.score
                assert is_number(notes["bit score"], hsp.bit_score)
                assert is_number(notes["evalue"], hsp.evalue)
                assert (notes["identity"], notes["positive"]) == (pair.identities, pair.positives)
                assert notes["midline"] == pair.rows()[1]
                if any(op == "M" for _, op in pair.cigar):
                    assert (alignment[1], alignment[0]) == pair.rows()[::2]
                    assert alignment.coordinates[:, 0].tolist() == [pair.subject_start, pair.query_start]


def is_number(theirs: float, ours: float | None) -> bool:
    return math.isnan(theirs) if ours is None else math.isclose(theirs, ours, rel_tol=1e-5)


def test_searchio_finds_hostile_and_merged_headers_again() -> None:
    text = report("5", hostile_result())
    assert text.isascii()
    (query,) = SearchIO.parse(io.StringIO(text), "blast-xml")
    assert (query.id, query.description) == ("q<1>", 'tab here <b>"bold"</b> & \u00fc \ufffd')
    descriptions = {hit.id: hit.description for hit in query}
    assert list(descriptions) == [headers.identifier(name) for name, _ in HOSTILE]
    assert descriptions["sp|P1|X"] == HOSTILE[1][1]
    assert descriptions["letters"] == "Sch\u00fctzenpanzer \u4e2d\u6587 \U0001f9ec not\ufffd\ufffd characters"
    assert descriptions["one"] == "first protein"
    merged = query["one"]
    assert merged.id_all == ["one", "two", "", "three"]  # blastp's format cannot tell " >" in a title from its own


@pytest.mark.parametrize("mode", ["global", "semiglobal"])
def test_what_is_not_there_is_nan_and_a_message_says_why(mode: Mode) -> None:
    root = ElementTree.fromstring(report("5", make_result(mode=mode)))
    for name in ("Parameters_expect", "Hsp_bit-score", "Hsp_evalue"):
        assert [element.text for element in root.iter(name)] == ["NaN"]
    assert root.findtext(".//Statistics_kappa") == "-1"
    assert str(root.findtext(".//Iteration_message")).startswith("no E-values: no statistics are published for")


def test_messages() -> None:
    def message(result: SearchResult) -> str | None:
        return ElementTree.fromstring(report("5", result)).findtext(".//Iteration_message")

    assert message(make_result()) is None
    assert message(NOTHING) == "No hits found"
    assert message(EMPTY) == "Sequence contains no data; No hits found"


@pytest.mark.peer
@pytest.mark.skipif(not shutil.which("blastp"), reason="blastp is not installed")
def test_elements_and_values_are_blastps(tmp_path: Path) -> None:
    """A hit and a query without one, against what blastp prints of the same with ids parsed."""
    (tmp_path / "q.fa").write_text(f">q1 the <query>\n{QUERY}\n>q2\nWWW\n")
    (tmp_path / "s.fa").write_text(f">s1 a 'subject'\n{SUBJECT}\n")
    line = "makeblastdb -in s.fa -dbtype prot -out db -parse_seqids"
    subprocess.run(line.split(), cwd=tmp_path, check=True, capture_output=True)
    line = "blastp -query q.fa -db db -outfmt 5 -comp_based_stats 0 -seg no"
    done = subprocess.run(line.split(), cwd=tmp_path, check=True, capture_output=True, text=True)
    size = {"residues": len(SUBJECT)}
    ours = report(
        "5", make_result(("q1", "the <query>", QUERY), [("s1", "a 'subject'", SUBJECT)], **size),
        make_result(("q2", "", "WWW"), [], **size),
    )  # fmt: skip
    assert ours.split("<BlastOutput>")[0] == done.stdout.split("<BlastOutput>")[0]
    mine, theirs = ([(e.tag, e.text) for e in ElementTree.fromstring(t).iter()] for t in (ours, done.stdout))
    assert [tag for tag, _ in mine] == [tag for tag, _ in theirs]
    differing = {tag for (tag, a), (_, b) in zip(mine, theirs, strict=True) if (a or "").strip() != (b or "").strip()}
    assert differing <= {
        "BlastOutput_version", "BlastOutput_reference", "BlastOutput_db", "Statistics_db-num", "Statistics_hsp-len",
        "Statistics_eff-space",
    }  # fmt: skip
