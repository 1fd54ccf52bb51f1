"""Taxa of hits in reports: columns and members as blastp 2.12 writes them for a database with taxonomy."""

from __future__ import annotations

import io
import json
import pickle
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import swsearch
from support.report_cases import make_result
from support.taxa import SEQUENCE, SUBJECTS, write_subjects, write_taxonomy
from swsearch.db import Database
from swsearch.db.taxonomy import Taxon
from swsearch.errors import SwsearchWarning
from swsearch.report.headers import hits_by_taxon
from swsearch.results import HitTable

COLUMNS = "staxid staxids ssciname sscinames scomname scomnames sblastname sblastnames sskingdom sskingdoms"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder = tmp_path_factory.mktemp("taxa")
    write_subjects(folder / "in.fasta")
    with (folder / "in.fasta").open("a") as file:
        file.write(f">P00009 OX=9606\x01P00010 OX=10090 OX=12345\n{SEQUENCE[:60]}\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SwsearchWarning)
        made = Database.build(
            folder / "in.fasta", folder / "db.h5", taxids="header", taxonomy=write_taxonomy(folder / "taxonomy")
        )
    with made:
        yield made


def written(database: Database, outfmt: str) -> str:
    text = io.StringIO()
    with swsearch.search(SEQUENCE, database, statistics="none", engine="cpu", threads=1) as results:
        swsearch.write(results, text, outfmt)
    return text.getvalue()


def test_columns(database: Database) -> None:
    rows = [line.split("\t") for line in written(database, f"6 subject_index {COLUMNS}").splitlines()]
    found = {int(index): row for index, *row in rows}
    human = ["9606"] * 2 + ["Homo sapiens"] * 2 + ["human"] * 2 + ["primates"] * 2 + ["Eukaryota"] * 2
    assert found[0] == human
    assert found[3] == ["N/A", "0", *["N/A"] * 8]
    assert (
        found[4]
        == ["83333"] * 2 + ["Escherichia coli K-12"] * 2 + ["N/A"] * 2 + ["eubacteria"] * 2 + ["Bacteria"] * 2
    )
    assert found[7] == ["4242"] * 2 + ["N/A"] * 8
    assert found[8] == [
        "9606", "9606;10090;12345", "Homo sapiens", "Homo sapiens;Mus musculus", "human", "human;house mouse",
        "primates", "primates;mammals", "Eukaryota", "Eukaryota",
    ]  # fmt: skip
    fields = next(line for line in written(database, f"7 {COLUMNS}").splitlines() if line.startswith("# Fields"))
    assert fields == (
        "# Fields: subject tax id, subject tax ids, subject sci name, subject sci names, subject com names, "
        "subject com names, subject blast name, subject blast names, subject super kingdom, subject super kingdoms"
    )


def test_json(database: Database) -> None:
    report = json.loads(written(database, "json"))["BlastOutput2"][0]["report"]
    entries = {hit["description"][0]["id"]: hit["description"] for hit in report["results"]["search"]["hits"]}
    assert entries["sp|P00002|A_MOUSE"][0]["taxid"] == 10090
    assert entries["sp|P00002|A_MOUSE"][0]["sciname"] == "Mus musculus"
    assert {*entries["P00004"][0]} == {"id", "accession", "title"}
    assert all("taxid" not in each for each in entries["P00009"])
    hits = {hit["subject"]["index"]: hit["subject"] for hit in json.loads(written(database, "jsonl"))["hits"]}
    assert hits[8]["taxids"] == [9606, 10090, 12345]
    assert hits[8]["scientific_names"] == ["Homo sapiens", "Mus musculus", None]
    assert hits[3]["taxids"] == []


def test_a_database_without_taxa(database: Database) -> None:
    with Database.from_records([(header, SEQUENCE) for header, _ in SUBJECTS[:2]]) as plain:
        assert written(plain, f"6 {COLUMNS}") == "\t".join(["N/A", "0", *["N/A"] * 8]) + "\n" + (
            "\t".join(["N/A", "0", *["N/A"] * 8]) + "\n"
        )
        assert "tax" not in written(plain, "jsonl") and "tax" not in written(plain, "json")


def html_data(text: str) -> dict[str, Any]:
    """Return the data of the first query of a page."""
    (found,) = re.findall(r'<script type="application/json" id="data-0">(.*)</script>', text)
    data: dict[str, Any] = json.loads(found)
    return data


def test_hits_are_counted_by_taxon(database: Database) -> None:
    counts = json.loads(written(database, "jsonl"))["taxa"]
    # one hit is of three taxa, and one of none
    assert [(each["taxid"], each["hits"]) for each in counts[:3]] == [(9606, 2), (10090, 2), (12345, 2)]
    assert {each["taxid"]: each["hits"] for each in counts[3:]} == {63221: 1, 83333: 1, 9598: 1, 4242: 1}
    assert counts[0] == {"taxid": 9606, "scientific_name": "Homo sapiens", "hits": 2, "evalue": None}
    assert counts[2]["scientific_name"] is None
    data = html_data(written(database, "html"))
    assert [(each["taxid"], each["hits"]) for each in data["taxa"]] == [(e["taxid"], e["hits"]) for e in counts]
    human = {"name": "Homo sapiens", "common": "human", "kingdom": "Eukaryota", "hits": 2, "evalue": None}
    assert data["taxa"][0] == {"taxid": 9606, **human}
    assert data["withoutTaxa"] == 1
    with Database.from_records([(header, SEQUENCE) for header, _ in SUBJECTS[:2]]) as plain:
        assert not {"taxa", "withoutTaxa"} & html_data(written(plain, "html")).keys()


@pytest.mark.exhaustive
def test_counts_take_the_best_evalue_and_the_name_of_whichever_database_has_it() -> None:
    subjects = [("a", "", SEQUENCE[:40]), ("b", "", SEQUENCE), ("c", "", SEQUENCE[:50])]
    result = make_result(("q", "", SEQUENCE), subjects)
    taxa = (Taxon(9606),), (Taxon(7), Taxon(9606, "Homo sapiens")), ()
    hits = [replace(hit, taxa=each) for hit, each in zip(result.hits, taxa, strict=True)]
    human, other = hits_by_taxon(HitTable.from_hits(hits))
    assert (human.taxon.scientific, human.n_hits, human.evalue) == ("Homo sapiens", 2, hits[1].evalue)
    assert (other.taxon.taxid, other.n_hits, other.evalue) == (7, 1, hits[1].evalue)
    assert (
        hits_by_taxon(HitTable.from_hits([replace(hits[2], taxa=())])) == hits_by_taxon(HitTable.from_hits([])) == []
    )
    assert hits_by_taxon(HitTable.from_hits(list(result.hits))) == []


def test_hits_know_their_taxa(database: Database) -> None:
    with swsearch.search(SEQUENCE, database, statistics="none", engine="cpu", threads=1) as results:
        (result,) = results
    hit = next(hit for hit in result.hits if hit.subject_index == 8)
    assert [each.taxid for each in hit.taxa or ()] == [9606, 10090, 12345]
    assert pickle.loads(pickle.dumps(hit)).taxa == hit.taxa
    table = HitTable.from_hits(list(result.hits)[::-1])
    assert table.headers.taxa == [hit.taxa for hit in result.hits][::-1]


@pytest.mark.exhaustive
def test_arrow(database: Database, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    with swsearch.search(SEQUENCE, database, statistics="none", engine="cpu", threads=1) as results:
        swsearch.write(results, tmp_path / "a.parquet", "parquet subject_index subject_taxids")
    table = pandas.read_parquet(tmp_path / "a.parquet").set_index("subject_index")
    assert table.subject_taxids[8] == "9606;10090;12345"
