"""BLAST's JSON, held to NCBI's schema of BlastOutput2 and to blastp's own."""

from __future__ import annotations

import json
import math
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from Bio import Entrez

from support.report_cases import (
    CASES,
    EMPTY,
    HOSTILE,
    NOTHING,
    QUERY,
    SUBJECT,
    TWO,
    hostile_result,
    make_result,
    report,
)
from swsearch.report import blast_json
from swsearch.results import SearchResult

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")

XS = "{http://www.w3.org/2001/XMLSchema}"
TYPES = {"xs:string": "string", "xs:integer": "integer", "xs:long": "integer", "xs:double": "number"}


def json_schema() -> dict[str, Any]:
    """Turn NCBI's XML schema of BlastOutput2, which Biopython ships, into a JSON schema as blastp's writer does.

    ``-`` becomes ``_``; an element that wraps one other is that other, one that wraps any number of it is a list.
    """
    path = Path(Entrez.__file__).parent / "XSDs" / "NCBI_BlastOutput2.mod.xsd"
    named = {str(element.get("name")): element for element in ElementTree.parse(path).getroot()}

    def schema(element: ElementTree.Element) -> dict[str, Any]:
        if element.get("type"):
            return {"type": TYPES[str(element.get("type"))]}
        group = element.find(f"{XS}complexType")[0]  # type: ignore[index]
        parts = list(group)
        if parts[0].get("ref"):
            inner = schema(named[str(parts[0].get("ref"))])
            return {"type": "array", "items": inner} if group.get("maxOccurs") else inner
        properties = {}
        for part in parts:
            one = schema(part)
            many = {"type": "array", "items": one} if part.get("maxOccurs") else one
            properties[str(part.get("name")).replace("-", "_")] = many
        optional = group.tag == f"{XS}choice"
        required = [str(p.get("name")).replace("-", "_") for p in parts if not optional and p.get("minOccurs") != "0"]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    one = schema(named["BlastOutput2"])
    return {
        "type": "object",
        "properties": {"BlastOutput2": {"type": "array", "items": one}},
        "required": ["BlastOutput2"],
        "additionalProperties": False,
    }


SCHEMA = json_schema()


def strict(constant: str) -> float:
    raise AssertionError(f"{constant} is not JSON")


def parsed(*results: SearchResult) -> list[dict[str, Any]]:
    document = json.loads(report("15", *results), parse_constant=strict)
    return [entry["report"] for entry in document["BlastOutput2"]]


@pytest.mark.parametrize("results", [CASES[name] for name in CASES if name not in ("global", "unpublished")])
def test_it_is_valid_by_ncbis_schema(results: list[SearchResult]) -> None:
    jsonschema.validate(json.loads(report("15", *results)), SCHEMA)
    assert len(parsed(*results)) == len(results)


@pytest.mark.parametrize("name", ["global", "unpublished"])
def test_without_statistics_only_numbers_that_are_not_there_are_null(name: str) -> None:
    results = CASES[name]
    errors = jsonschema.Draft202012Validator(SCHEMA).iter_errors(json.loads(report("15", *results)))
    places = {(error.absolute_path[-1], error.instance) for error in errors}
    assert places == {("expect", None), ("bit_score", None), ("evalue", None)}
    (one,) = parsed(*results)
    assert one["results"]["search"]["stat"]["kappa"] == -1
    assert one["results"]["search"]["message"].startswith("no E-values: no statistics are published")


def test_hits_and_alignments_are_those_of_the_result() -> None:
    for result, one in zip(CASES["two"], parsed(*CASES["two"]), strict=True):
        search = one["results"]["search"]
        assert (search["query_title"], search["query_len"]) == ("q1 the query", 70)
        for number, (theirs, hit) in enumerate(zip(search["hits"], result, strict=True), 1):
            assert (theirs["num"], theirs["len"]) == (number, hit.subject_length)
            (entry,) = theirs["description"]
            assert (entry["id"], entry["title"]) == (hit.subject_id, hit.subject_description)
            for hsp, ours in zip(theirs["hsps"], hit.hsps, strict=True):
                assert (hsp["qseq"], hsp["midline"], hsp["hseq"]) == ours.pair.rows()
                assert QUERY[hsp["query_from"] - 1 : hsp["query_to"]] == hsp["qseq"].replace("-", "")
                assert hsp["score"] == ours.score
                assert hsp["evalue"] == pytest.approx(ours.evalue, rel=1e-5)


def test_messages() -> None:
    plain, nothing, empty = (one["results"]["search"] for one in parsed(make_result(), NOTHING, EMPTY))
    assert "message" not in plain
    assert (nothing["message"], nothing["hits"]) == ("No hits found", [])
    assert empty["message"] == "Sequence contains no data; No hits found"


def test_hostile_and_merged_headers() -> None:
    text = report("15", hostile_result())
    assert text.isascii()
    assert len(text.splitlines()) == 3
    ((search,),) = ([one["results"]["search"]] for one in parsed(hostile_result()))
    entries = {hit["description"][0]["id"]: hit["description"] for hit in search["hits"]}
    assert len(entries) == len(HOSTILE)
    assert entries["sp|P1|X"][0]["title"] == HOSTILE[1][1]
    assert [(e["id"], e["title"]) for e in entries["one"]] == [
        ("one", "first protein"), ("two", "second > one"), ("three", ""),
    ]  # fmt: skip
    assert "N/A" in entries


@pytest.mark.peer
@pytest.mark.skipif(not shutil.which("blastp"), reason="blastp is not installed")
def test_keys_and_values_are_blastps(tmp_path: Path) -> None:
    (tmp_path / "q.fa").write_text(f">q1 the query\n{QUERY}\n>q2\nWWW\n")
    (tmp_path / "s.fa").write_text(f">s1 a subject\n{SUBJECT}\n>s2\n{QUERY[:40]}\n")
    line = "makeblastdb -in s.fa -dbtype prot -out db -parse_seqids"
    subprocess.run(line.split(), cwd=tmp_path, check=True, capture_output=True)
    line = "blastp -query q.fa -db db -outfmt 15 -comp_based_stats 0 -seg no"
    done = subprocess.run(line.split(), cwd=tmp_path, check=True, capture_output=True, text=True)
    theirs = json.loads(done.stdout)
    jsonschema.validate(theirs, SCHEMA)  # so the schema is the one that blastp follows
    size = {"residues": len(SUBJECT) + 40}
    ours = json.loads(report("15", make_result(subjects=TWO, **size), make_result(("q2", "", "WWW"), [], **size)))
    for document in (ours, theirs):
        for entry in document["BlastOutput2"]:
            one = entry["report"]
            for name in ("version", "reference", "search_target"):
                one[name] = ""
            statistics = one["results"]["search"]["stat"]
            for name in ("db_num", "hsp_len", "eff_space"):
                statistics[name] = 0
    assert json.dumps(ours, indent=1) == json.dumps(theirs, indent=1)


def test_numbers_are_written_as_python_writes_them() -> None:
    generator = random.Random(5)
    edges = [0.0, 1.0, -3.0, 999_998.4, 999_999.6, 1e6, 9.9999995e-5, 1e-300, 1.23456e-310, 5e-324, 1e15, 1e16, 1e22]
    values = [generator.uniform(-9, 9) * 10 ** generator.uniform(-320, 20) for _ in range(3000)]
    for value in [*edges, *values, *map(round, values), math.nan, math.inf]:
        assert blast_json._number_texts(np.array([value]))[0] == json.dumps(blast_json._number(value)), value
