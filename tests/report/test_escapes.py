"""The contract of every format with a terminal, as `swsearch.report.base.Writer` states it."""

from __future__ import annotations

import dataclasses
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support import report_cases
from support.terminal import NAME, clean
from swsearch.alphabet import PROTEIN
from swsearch.db.taxonomy import Taxon
from swsearch.engines.cpu.pairs import align_codes
from swsearch.errors import InputError
from swsearch.inputs import Query
from swsearch.recurrence import Recurrence
from swsearch.report import OUTPUT_FORMATS, create_writer
from swsearch.report.alignments import ALIGNMENT_FORMATS
from swsearch.report.headers import settings_in
from swsearch.report.pairs import PAIR_FORMATS, PairRun, ScoredPair, create_pair_writer
from swsearch.report.profile_output import file_names
from swsearch.report.tabular import COLUMNS
from swsearch.results import SearchResult, alignment_of
from swsearch.run_info import Checksum, Execution, RunInfo
from swsearch.scoring import Matrix, Scoring

TEXT = f"{NAME}\x85\t\x00\x1b]0;title\x07\x9d0;title\x9c\udc9b"
"""Besides, a title of the window, a tab, a NUL, and a byte that was no UTF-8."""

TAME = "".join(letter if letter.isprintable() and letter != " " else "_" for letter in TEXT)

TABLES = ("6", "7", "10")

BEGUN = datetime(2026, 11, 24, tzinfo=UTC)


def matrix_named(name: str) -> Matrix:
    return dataclasses.replace(Scoring().matrix, name=name)


def result_of(text: str) -> SearchResult:
    """Return a result in which every text from outside is this one."""
    subjects = [(text, text, report_cases.SUBJECT), (f"one\x01{text}", text, report_cases.SUBJECT)]
    made = report_cases.make_result((text, text, report_cases.QUERY), subjects)
    taxon = Taxon(9606, text, text, text, text)
    hits = [dataclasses.replace(hit, taxa=(taxon,)) for hit in made.hits]
    asked = {"min_identity": 1, "query_mask": text}
    changed = {"database_name": text, "no_evalue_reason": text, "statistics": None, "options": asked, "warning": text}
    made = dataclasses.replace(made, scoring=Scoring(matrix_named(text)))
    return dataclasses.replace(made, hits=hits, run=run_of(made, text), **changed)


def run_of(result: SearchResult, text: str) -> RunInfo:
    """Return a run in which every text from outside is this one."""
    return dataclasses.replace(
        report_cases.run_info(result),
        database_name=text,
        checksums=(Checksum("queries", text, "a" * 64),),
        execution=Execution(text, text, BEGUN, BEGUN),
        options={"min_identity": 1, "query_mask": text},
        database_sources=({"path": text, "sha256": "a" * 64},),
        queries=text,
        settings={"matrix": text, "include-ids": [text]},
    )


def written(key: str, result: SearchResult) -> Any:
    """Write a result in a format, tables with all columns and their names."""
    outfmt = " ".join([key, *COLUMNS]) if key in TABLES else key
    writer = create_writer(outfmt, stream := _stream_of(key), header=True)
    assert result.run is not None
    writer.begin(result.run)
    writer.write(result)
    writer.end()
    writer.discard()
    return stream.getvalue()


def _stream_of(key: str) -> Any:
    binary = next(kind for kind in OUTPUT_FORMATS if kind.key == key).writer.binary
    return io.BytesIO() if binary else io.StringIO()


@pytest.mark.parametrize("key", [kind.key for kind in OUTPUT_FORMATS if not kind.writer.binary])
def test_no_format_lets_a_header_act_on_a_terminal(key: str) -> None:
    hostile, tame = written(key, result_of(TEXT)), written(key, result_of(TAME))
    clean(hostile)
    marks = "\t" if key == "0" else "\n\t"  # the pairwise report wraps titles between words
    assert [hostile.count(mark) for mark in marks] == [tame.count(mark) for mark in marks]


@pytest.mark.parametrize("key", [kind.key for kind in OUTPUT_FORMATS if kind.writer.binary])
def test_a_binary_format_has_headers_as_they_were(key: str) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import feather, parquet

    read = parquet.read_table if key == "parquet" else feather.read_table
    table = read(io.BytesIO(written(key, result_of(TEXT))))
    whole = TEXT.replace("\udc9b", "\ufffd")
    assert table["query_id"].to_pylist() == [whole] * 2
    assert table["subject_description"].to_pylist() == [whole] * 2


def test_what_is_escaped_is_read_back() -> None:
    whole = TEXT.replace("\udc9b", "\ufffd")
    said = json.loads(written("jsonl", result_of(TEXT)))
    assert said["query"]["description"] == said["hits"][0]["subject"]["id"] == whole
    read = settings_in(written("toml", result_of(TEXT)), "")
    assert read == {"matrix": TEXT.replace("\udc9b", "?"), "include-ids": [TEXT.replace("\udc9b", "?")]}


@pytest.mark.parametrize("outfmt", ALIGNMENT_FORMATS)
def test_no_alignment_lets_a_header_act_on_a_terminal(outfmt: str) -> None:
    extension, texts = ALIGNMENT_FORMATS[outfmt]
    hostile, tame = ("".join(texts(alignment_of(result_of(text)), PROTEIN)) for text in (TEXT, TAME))
    clean(hostile)
    assert hostile.count("\n") == tame.count("\n")
    (name,) = file_names([TEXT], extension)
    clean(name, 0)
    assert Path(name).name == name


@pytest.mark.parametrize("name", PAIR_FORMATS)
def test_no_format_of_pairs_lets_a_header_act_on_a_terminal(name: str) -> None:
    recurrence = Recurrence(Scoring(matrix_named(TEXT)), "local")
    texts = []
    for text in (TEXT, TAME):
        codes = PROTEIN.encode(report_cases.QUERY)
        query, subject = Query(text, text, codes), Query(f"{text}2", text, codes)
        stream = io.StringIO()
        writer = create_pair_writer(name, stream)
        try:
            writer.begin(PairRun([query], [subject], "order", recurrence, "1.2.3"))
        except InputError as error:  # the format has rules of its own for names
            clean(str(error), 0)
            continue
        pair = align_codes(codes, codes, recurrence)
        writer.write(ScoredPair(query, subject, pair if writer.needs_alignments else pair.score))
        writer.end()
        texts.append(stream.getvalue())
        clean(texts[-1])
    assert texts or name == "sam"
    for mark in "\n\t":
        assert len({text.count(mark) for text in texts}) <= 1


def test_sam_of_pairs_says_which_matrix_was_used() -> None:
    codes = PROTEIN.encode(report_cases.QUERY)
    recurrence = Recurrence(Scoring(matrix_named(TEXT)), "local")
    run = PairRun([Query("q", TEXT, codes)], [Query("s", TEXT, codes)], "order", recurrence, "1.2.3")
    stream = io.StringIO()
    create_pair_writer("sam", stream).begin(run)
    clean(stream.getvalue(), 3)
    assert stream.getvalue().count("\t") == 9
