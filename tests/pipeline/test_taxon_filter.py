"""Filters by taxon: taxids with all below them; unknown and merged ones; and what is said of each."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from Bio.Data.CodonTable import standard_dna_table

import swsearch
from support.taxa import SEQUENCE, write_subjects, write_taxonomy
from swsearch.db import Database
from swsearch.errors import InputError, OptionError, SwsearchWarning
from swsearch.pipeline.table.values import read_taxids


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("taxa")
    write_taxonomy(folder / "taxonomy")
    write_subjects(folder / "in.fasta")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SwsearchWarning)
        for name, options in {"db.h5": {"taxonomy": folder / "taxonomy"}, "flat.h5": {}}.items():
            Database.build(folder / "in.fasta", folder / name, taxids="header", **options).close()
        Database.build(folder / "in.fasta", folder / "plain.h5").close()
    return folder


def found(path: Path, **options: Any) -> list[int]:
    """Return which subjects are hits, each counted from 1."""
    with Database.open(path) as database:
        (result,) = swsearch.search(SEQUENCE, database, statistics="none", engine="cpu", threads=1, **options)
        return sorted(hit.subject_index + 1 for hit in result.hits)


CASES = [
    ({"taxids": 9606}, [1, 3], ""),
    ({"taxids": "40674"}, [1, 2, 3, 6], ""),
    ({"taxids": "83333, 9598"}, [5, 6], ""),
    ({"taxids": np.array([1])}, [1, 2, 3, 5, 6], ""),
    ({"taxids": 666}, [1, 3], "taxids: taxid 666 was merged into 9606; using 9606"),
    ({"taxids": [9605777, 562]}, [1, 3, 5], "taxids: taxid 9605777 was merged into 9606"),
    ({"taxids": [1423, 777, 9598], "ignore_missing_ids": True}, [6], ""),
    ({"taxids": [12345, 4242]}, [7, 8], ""),
    ({"exclude_taxids": 9443}, [2, 4, 5, 7, 8], ""),
    ({"taxids": 40674, "exclude_taxids": "9606"}, [2, 6], ""),
    ({"taxids": 9606, "include_ids": ["P00001", "P00002"]}, [1], ""),
    ({"exclude_taxids": 2759, "exclude_ids": ["P00004"]}, [5, 7, 8], ""),
    ({"taxids": [9606, 4243], "ignore_missing_ids": True}, [1, 3], ""),
]


@pytest.mark.parametrize(("options", "hits", "said"), CASES)
def test_taxids_with_all_below_them(folder: Path, options: dict[str, Any], hits: list[int], said: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SwsearchWarning)
        assert found(folder / "db.h5", **options) == hits
    if said:
        with pytest.warns(SwsearchWarning, match=said):
            found(folder / "db.h5", **options)
    assert len(caught) == bool(said)


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("db.h5", {"taxids": 4243}, "taxids: taxid 4243 is not in the taxonomy of .*db.h5; expected NCBI taxids of"),
        ("db.h5", {"taxids": [1423, 777, 9598]}, "taxids: taxids 777, 1423 are not in the taxonomy of .* taxa above"),
        ("db.h5", {"taxids": [9606, 4243, 4244]}, "taxids: taxids 4243, 4244 are not in the taxonomy"),
        ("db.h5", {"exclude_taxids": 4243}, "exclude_taxids: taxid 4243 is not in"),
        ("flat.h5", {"taxids": 40674}, "taxids: taxid 40674 is not among the taxids of .*flat.h5; .* subjects;"),
        ("db.h5", {"taxids": 4243, "ignore_missing_ids": True}, "taxids: no subject of .*db.h5 is left"),
        ("db.h5", {"taxids": 9606, "exclude_taxids": 40674}, "taxids, exclude_taxids: no subject of .* is left"),
        ("plain.h5", {"taxids": 9606}, "plain.h5 has no taxids; build it with"),
        ("db.h5", {"taxids": 0}, "taxids: got 0, expected a taxid, a number from 1 to 2,147,483,647"),
        ("db.h5", {"taxids": "9606,-1"}, "taxids: got '-1', expected a taxid"),
        ("db.h5", {"taxids": 2**31}, "taxids: got 2147483648, expected a taxid"),
        ("db.h5", {"taxids": [9606.5]}, "taxids: got 9606.5, expected a taxid"),
        ("db.h5", {"taxids": [True]}, "taxids: got True, expected a taxid"),
        ("db.h5", {"taxids": b"9606"}, "taxids: got b'9606', expected taxids"),
        ("db.h5", {"taxids": []}, "taxids: got no taxid"),
        (
            "db.h5",
            {"taxids": "human"},
            "taxids: human: cannot be read: No such file .* expected a file with taxids, one per line",
        ),
    ],
)
def test_what_is_wrong_with_a_taxid(folder: Path, name: str, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        found(folder / name, **options)


def test_lists(tmp_path: Path) -> None:
    path = tmp_path / "9606"
    path.write_text("# human\n9606\n\n 10090 \n9606\n")
    assert read_taxids(path, "taxids") == read_taxids(str(path), "taxids") == (9606, 10090)
    assert read_taxids("10090 9606,", "taxids") == read_taxids(("9606", 10090), "taxids") == (9606, 10090)
    path.write_text("9606\nhuman\n")
    with pytest.raises(OptionError, match="got 'human', expected a taxid"):
        read_taxids(path, "taxids")


@pytest.mark.parametrize(
    ("option", "hits"), [("taxids", [1, 3]), ("exclude_taxids", [2, 4, 5, 6, 7, 8, *range(9, 17)])]
)
def test_a_file_without_taxids_beside_one_with_them_is_told_of(folder: Path, option: str, hits: list[int]) -> None:
    said = rf"^{option}: 8 of 16 subjects have no taxids and belong to no taxon; rebuild their files"
    (folder / "copy.fasta").write_text((folder / "in.fasta").read_text().replace(">", ">other_"))
    with Database.build(folder / "copy.fasta", folder / "other.h5"):
        pass
    with Database.open([folder / "db.h5", folder / "other.h5"]) as both, pytest.warns(SwsearchWarning, match=said):
        results = swsearch.search(SEQUENCE, both, statistics="none", engine="cpu", threads=1, **{option: 9606})
        assert sorted(hit.subject_index + 1 for hit in next(results).hits) == hits


def test_hits_in_dna_have_the_taxa_of_their_records(tmp_path: Path) -> None:
    """Windows of frames are no records: each hit has its record's taxa, in two files as in one."""
    gene = "".join(standard_dna_table.back_table[residue] for residue in SEQUENCE)
    write_taxonomy(tmp_path / "taxonomy")
    owners = [("one", 9606, 0), ("two", 10090, 700), ("three", 0, 10), ("four", 83333, 3000)]
    records = [f">{name} OX={taxid}\n{'AC' * before}{gene}{'AC' * 400}\n" for name, taxid, before in owners]
    paths = [tmp_path / "first.h5", tmp_path / "second.h5"]
    for path, some in zip(paths, (records[:1], records[1:]), strict=True):
        path.with_suffix(".fasta").write_text("".join(some).replace(" OX=0", ""))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SwsearchWarning)
            Database.build(
                path.with_suffix(".fasta"), path, translate=True, taxids="header", taxonomy=tmp_path / "taxonomy"
            ).close()
    with Database.open(paths) as database:
        for options, expected in [
            ({}, {"one": (9606,), "two": (10090,), "three": (), "four": (83333,)}),
            ({"taxids": 40674}, {"one": (9606,), "two": (10090,)}),
            ({"exclude_taxids": 40674}, {"three": (), "four": (83333,)}),
        ]:
            (result,) = swsearch.search(SEQUENCE, database, evalue=1e-10, engine="cpu", threads=1, **options)
            found = {hit.subject_id: tuple(taxon.taxid for taxon in hit.taxa) for hit in result.hits}
            assert found == expected
            names = {hit.subject_id: [taxon.scientific for taxon in hit.taxa] for hit in result.hits}
            assert names.get("two", ["Mus musculus"]) == ["Mus musculus"]
