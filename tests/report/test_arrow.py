"""Parquet and Arrow files, read back by pyarrow, polars and pandas."""

from __future__ import annotations

import io
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from support.report_cases import (
    NOTHING,
    QUERY,
    TWO,
    make_result,
    mutated,
    run_info,
    with_two_alignments,
    write_all,
)
from swsearch.errors import InputError, OptionError
from swsearch.report import arrow, create_writer
from swsearch.results import SearchResult
from swsearch.results.fields import fields_in
from swsearch.scoring import Scoring

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
from pyarrow import feather, parquet  # noqa: E402

FORMATS = pytest.mark.parametrize("outfmt", ["parquet", "arrow"])


def written(outfmt: str, *results: SearchResult) -> bytes:
    stream = io.BytesIO()
    write_all(create_writer(outfmt, stream), *results)
    return stream.getvalue()


def read(outfmt: str, *results: SearchResult) -> Any:
    source = pyarrow.BufferReader(written(outfmt, *results))
    return parquet.read_table(source) if outfmt.startswith("parquet") else pyarrow.ipc.open_file(source).read_all()


@FORMATS
def test_a_row_an_alignment_with_types(outfmt: str) -> None:
    results = [with_two_alignments(make_result(subjects=TWO)), NOTHING, make_result(("q3", "", QUERY), TWO)]
    table = read(outfmt, *results)
    assert table.schema.names == [field.name for field in fields_in("typed", "blastp")]
    assert {str(field.type) for field in table.schema} == {"int64", "double", "string"}
    rows = table.to_pylist()
    assert [(row["query_index"], row["hit_index"], row["alignment_index"]) for row in rows] == [
        (0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (2, 0, 0), (2, 1, 0),
    ]  # fmt: skip
    hsps = [(result, hit, hsp) for result in results for hit in result for hsp in hit.hsps]
    for row, (result, hit, hsp) in zip(rows, hsps, strict=True):
        pair = hsp.pair
        assert (row["query_id"], row["subject_id"]) == (result.query_id, hit.subject_id)
        assert (row["query_description"], row["subject_description"]) == (
            result.query_description,
            hit.subject_description,
        )
        assert (row["score"], row["bit_score"], row["evalue"]) == (hsp.score, hsp.bit_score, hsp.evalue)
        assert (row["query_start"], row["query_end"]) == (pair.query_start, pair.query_end)
        assert (row["subject_start"], row["subject_end"]) == (pair.subject_start, pair.subject_end)
        assert (row["identities"], row["mismatches"], row["gaps"]) == (pair.identities, pair.mismatches, pair.gaps)
        assert (row["alignment_length"], row["cigar"]) == (pair.length, pair.cigar_string)


@FORMATS
def test_it_has_the_columns_of_a_result(outfmt: str) -> None:
    result = make_result(subjects=TWO)
    table = read(outfmt, result)
    for name, values in result.to_columns().items():
        assert table.column(name).to_pylist() == values, name
    assert table.select(result.to_arrow().schema.names).cast(result.to_arrow().schema).equals(result.to_arrow())


@FORMATS
def test_provenance_is_in_the_metadata(outfmt: str) -> None:
    said = json.loads(read(outfmt, make_result()).schema.metadata[b"swsearch"])
    statistics = said.pop("statistics")
    assert said == {
        "program": "swsearch",
        "version": "0.1.0",
        "database": {"name": "some/db.h5", "subjects": 3000, "residues": 1_000_000, "sources": []},
        "parameters": {
            "mode": "local", "matrix": "BLOSUM62", "gap_open": 11, "gap_extend": 1, "evalue": 10.0, "max_hits": 500,
            "effective_residues": 1_000_000,
        },
    }  # fmt: skip
    assert (statistics["lambda"], statistics["k"]) == (0.267, 0.041)


@FORMATS
def test_what_is_not_there_is_null(outfmt: str) -> None:
    for result in (make_result(mode="global"), make_result(scoring=Scoring(gap_open=2))):
        table = read(outfmt, result)
        assert table.column("evalue").null_count == table.column("bit_score").null_count == 1
        assert json.loads(table.schema.metadata[b"swsearch"])["statistics"] is None


@FORMATS
def test_nothing_found_is_an_empty_table_with_types(outfmt: str) -> None:
    table = read(outfmt, NOTHING)
    assert table.num_rows == 0
    assert table.schema.equals(read(outfmt, make_result()).schema)


@FORMATS
def test_chosen_columns(outfmt: str) -> None:
    (row,) = read(f"{outfmt} evalue subject_row query_row evalue", make_result()).to_pylist()
    hit = make_result()[0]
    assert row == {"evalue": hit.evalue, "subject_row": hit.pair.rows()[2], "query_row": hit.pair.rows()[0]}
    outfmt += " query_id score evalue"
    assert not create_writer(outfmt, io.BytesIO()).needs_alignments
    assert read(outfmt, make_result(may_align=False)).to_pylist()[0]["score"] == 293
    with pytest.raises(OptionError, match="not 'qseqid'"):
        create_writer("parquet qseqid", io.BytesIO())


@FORMATS
def test_many_rows_are_written_in_groups(outfmt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "ROWS_PER_GROUP", 7)
    generator = random.Random(3)
    subjects = [(f"s{n}", "", mutated(QUERY, 0.2, generator)) for n in range(10)]
    results = [make_result((f"q{n}", "", QUERY), subjects) for n in range(3)]
    whole = written(outfmt, *results)
    table = read(outfmt, *results)
    assert table.column("query_index").to_pylist() == [0] * 10 + [1] * 10 + [2] * 10
    source = pyarrow.BufferReader(whole)
    if outfmt == "parquet":
        assert parquet.ParquetFile(source).num_row_groups == 5
    else:
        assert pyarrow.ipc.open_file(source).num_record_batches == 5
    assert whole == written(outfmt, *results)


def test_polars_and_pandas_read_them(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    result = make_result(subjects=TWO)
    for outfmt in ("parquet", "arrow"):
        (tmp_path / f"x.{outfmt}").write_bytes(written(outfmt, result, make_result(mode="global")))
    frames = [polars.read_parquet(tmp_path / "x.parquet"), polars.read_ipc(tmp_path / "x.arrow")]
    for frame in frames:
        assert frame.schema["evalue"] == polars.Float64
        assert frame.schema["query_start"] == polars.Int64
        assert frame["subject_id"].to_list() == ["s1", "s2", "s1"]
        assert frame["evalue"].to_list() == [result[0].evalue, result[1].evalue, None]
    assert json.loads(polars.read_parquet_metadata(tmp_path / "x.parquet")["swsearch"])["program"] == "swsearch"
    for frame in (pandas.read_parquet(tmp_path / "x.parquet"), pandas.read_feather(tmp_path / "x.arrow")):
        assert frame["score"].tolist() == [result[0].score, result[1].score, 263]
        assert frame["evalue"].isna().tolist() == [False, False, True]
    assert feather.read_table(tmp_path / "x.arrow").num_rows == 3


@FORMATS
def test_a_run_that_failed_closes_quietly_and_writes_no_more(outfmt: str) -> None:
    stream = io.BytesIO()
    writer = create_writer(outfmt, stream)
    writer.begin(run_info(make_result()))
    writer.write(make_result())
    size = len(stream.getvalue())
    writer.discard()
    assert len(stream.getvalue()) == size


def test_without_pyarrow_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install 'swsearch\[arrow\]', or use another --outfmt"):
        create_writer("parquet", io.BytesIO())
