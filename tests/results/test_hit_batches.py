"""Formats write the same of batches of hits as of each hit alone."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import random
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import pytest

from support.number_texts import bit_score_text, evalue_table, whole_percentage, z_score_text
from support.report_cases import HOSTILE, QUERY, as_columns, make_result, mutated, report, write_all
from swsearch.alignment import PairAlignment
from swsearch.alphabet import PROTEIN
from swsearch.blocks import apply_mask, letters_with_mask
from swsearch.engines.cpu.pairs import align_codes
from swsearch.lazy import Lazy
from swsearch.options.kinds import MODES
from swsearch.recurrence import Recurrence
from swsearch.report import OUTPUT_FORMATS, base, create_writer, headers
from swsearch.report.arrow import ARROW_COLUMNS
from swsearch.report.tabular import COLUMNS
from swsearch.results import Hit, Hsp, SearchResult, hit_batches
from swsearch.results.alignment_rows import PooledLetters, letters_of

EVALUES = [None, math.nan, 0.0, 1e-200, 1e-180, 3.21e-45, 8.99e-4, 9e-4, 0.0999, 0.1, 0.9999, 1.0, 9.96, 26.4, 1e11]
BITS = [None, math.nan, -1.25, 0.0, 7.77, 9.99, 99.9, 99.95, 100.0, 117.9, 99999.0, 112000.5, 1234567.0]
HEADERS = [*HOSTILE, ("sp|P2|Y", "OS=Homo sapiens GN=it's > that"), ("a", "b\x01c d\x01e")]
FORMATS = [kind.key for kind in OUTPUT_FORMATS] + [
    f"{name} {' '.join(columns)}"
    for name, columns in (("6", COLUMNS), ("7", COLUMNS), ("10", COLUMNS), ("arrow", ARROW_COLUMNS))
]
seeds = pytest.mark.parametrize("seed", range(8))


def _runs(length: int, generator: random.Random) -> list[tuple[int, int]]:
    """Return some stretches to be masked; mostly none."""
    if generator.random() < 0.6 or length < 4:
        return []
    start = generator.randrange(length - 2)
    return [(start, generator.randint(start + 1, length))]


def _further(pair: PairAlignment, generator: random.Random) -> list[Hsp]:
    """Return no, one or two more alignments: beginnings of the best one's first run."""
    if not pair.cigar or pair.cigar[0][1] != "M":
        return []
    lengths = generator.sample(range(1, pair.cigar[0][0] + 1), min(generator.randrange(3), pair.cigar[0][0]))
    found = [pair.with_path(n, pair.query_start, pair.subject_start, ((n, "M"),)) for n in lengths]
    return [Hsp(each, each.score, generator.choice(BITS), generator.choice(EVALUES)) for each in found]


def random_result(seed: int, name: str = "q1") -> SearchResult:
    """Make a result of whatever there may be."""
    generator = random.Random(seed)
    mode = generator.choice(MODES)
    empty = make_result((name, generator.choice(HEADERS)[1], QUERY), [], mode=mode)
    codes = PROTEIN.encode(QUERY)
    runs = _runs(len(codes), generator)
    query, letters = apply_mask(codes, runs), letters_with_mask(codes, runs) if runs else None
    several = mode == "local" and generator.random() < 0.5
    hits: list[Hit] = []
    for index in range(generator.randint(1, 7)):
        text = "" if generator.random() < 0.1 else mutated(QUERY[: generator.randint(1, 70)], 0.3, generator)
        subject = PROTEIN.encode(text)
        runs = _runs(len(subject), generator)
        pair = align_codes(query, apply_mask(subject, runs), Recurrence(empty.scoring, mode))
        pair = pair.with_letters(letters, letters_with_mask(subject, runs) if runs else None)
        hits.append(
            Hit(
                name,
                *generator.choice(HEADERS),
                index,
                len(query),
                len(subject),
                pair.score,
                generator.choice(BITS),
                generator.choice(EVALUES),
                Lazy.of_value(pair),
                generator.choice([None, 3.25]),
                generator.choice([None, *EVALUES]),
                Lazy.of_value(_further(pair, generator)) if several else None,
            )
        )
    return dataclasses.replace(empty, hits=hits or empty.hits)


def written(outfmt: str, results: Sequence[SearchResult]) -> str | bytes:
    writer = create_writer(outfmt, io.StringIO())
    if writer.is_single_query and len(results) > 1:
        return "".join(str(written(outfmt, [result])) for result in results if len(result))
    binary = writer.binary
    stream: Any = io.BytesIO() if binary else io.StringIO()
    write_all(create_writer(outfmt, stream), *results)
    text: str | bytes = stream.getvalue()
    return text


@seeds
def test_every_format_says_the_same_of_columns_and_of_hits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    results = [random_result(seed), make_result(("none", "", "WWW"), []), random_result(seed + 1000, "q2")]
    columns = [as_columns(result) for result in results]
    assert isinstance(letters_of(columns[0].hits), PooledLetters) != results[0].may_have_more_hsps
    expected = [written(outfmt, results) for outfmt in FORMATS]
    assert [written(outfmt, columns) for outfmt in FORMATS] == expected
    monkeypatch.setattr(hit_batches, "MAX_BATCH_HITS", 2)
    monkeypatch.setattr(hit_batches, "COLUMNS_PER_BATCH", 100)
    assert len(list(hit_batches.aligned_batches(columns[2]))) > 1 or len(columns[2]) < 3
    assert [written(outfmt, columns) for outfmt in FORMATS] == expected


def fields(result: SearchResult, hit: Hit, hsp: Hsp) -> dict[str, str]:
    """Return what a table says of an alignment, worked out of it alone."""
    pair, missing = hsp.pair, base.MISSING
    top, _, bottom = pair.rows()
    spans = sorted((each.pair.query_start, each.pair.query_end) for each in hit.hsps)
    covered = len({place for start, end in spans for place in range(start, end)})
    places = [
        (start + 1, end) if end > start else (0, 0)
        for start, end in ((pair.query_start, pair.query_end), (pair.subject_start, pair.subject_end))
    ]
    identifier, titles = hit.subject_id, headers.titles(hit.subject_id, hit.subject_description)
    share = whole_percentage
    return {
        "qseqid": headers.identifier(result.query_id), "sseqid": headers.identifier(identifier),
        "sallseqid": ";".join(name for name, _ in headers.entries_of(titles)),
        "stitle": titles[0], "salltitles": "<>".join(titles), "qlen": str(hit.query_length),
        "slen": str(hit.subject_length), "subject_index": str(hit.subject_index), "score": str(hsp.score),
        "bitscore": bit_score_text(hsp.bit_score), "evalue": evalue_table(hsp.evalue),
        "zscore": z_score_text(hsp.z_score), "evalue_published": evalue_table(hsp.evalue_published),
        "qstart": str(places[0][0]), "qend": str(places[0][1]), "sstart": str(places[1][0]),
        "send": str(places[1][1]), "qseq": top or missing, "sseq": bottom or missing, "length": str(pair.length),
        "pident": f"{100 * pair.identities / max(pair.length, 1):.3f}", "nident": str(pair.identities),
        "mismatch": str(pair.mismatches), "positive": str(pair.positives),
        "ppos": f"{100 * pair.positives / max(pair.length, 1):.2f}", "gapopen": str(pair.gap_openings),
        "gaps": str(pair.gaps), "btop": pair.btop() or missing, "cigar": pair.cigar_string or missing,
        "qcovs": str(share(covered, hit.query_length)),
        "qcovhsp": str(share(pair.query_end - pair.query_start, hit.query_length)),
        "scovhsp": str(share(pair.subject_end - pair.subject_start, hit.subject_length)),
    }  # fmt: skip


@seeds
def test_a_table_says_what_each_alignment_says(seed: int) -> None:
    result = random_result(seed)
    lines = [fields(result, hit, hsp) for hit in result.hits for hsp in hit.hsps]
    names = " ".join(lines[0])
    rows = [line.split("\t") for line in report(f"6 {names}", as_columns(result)).splitlines()]
    assert rows == [list(line.values()) for line in lines]


def described(hsp: Hsp) -> dict[str, Any]:
    """Return what JSON lines say of an alignment."""
    pair = hsp.pair
    top, middle, bottom = pair.rows()
    optional = {"z_score": hsp.z_score, "evalue_published": hsp.evalue_published}
    return {
        "score": hsp.score, "bit_score": base.finite(hsp.bit_score), "evalue": base.finite(hsp.evalue),
        **{name: value for name, value in optional.items() if value is not None and not math.isnan(value)},
        "query_start": pair.query_start, "query_end": pair.query_end, "subject_start": pair.subject_start,
        "subject_end": pair.subject_end, "alignment_length": pair.length, "identities": pair.identities,
        "positives": pair.positives, "mismatches": pair.mismatches, "gaps": pair.gaps,
        "gap_openings": pair.gap_openings, "cigar": pair.cigar_string, "query_row": top, "subject_row": bottom,
        "midline": middle,
    }  # fmt: skip


@seeds
def test_json_is_as_python_writes_it(seed: int) -> None:
    result = random_result(seed)
    expected = []
    for hit in result.hits:
        best, *further = [described(hsp) for hsp in hit.hsps]
        subject = {
            "id": headers.encodable(hit.subject_id), "description": headers.encodable(hit.subject_description),
            "length": hit.subject_length, "index": hit.subject_index,
        }  # fmt: skip
        several = {"further_alignments": further} if hit.may_have_more_hsps else {}
        expected.append({"subject": subject, **best, **several})
    for outfmt in ("jsonl", "15"):
        text = report(outfmt, as_columns(result))
        again = json.dumps(json.loads(text), separators=(",", ":"))
        assert again == text.replace("\n", "")
        if outfmt == "jsonl":
            assert json.loads(text)["hits"] == expected


@seeds
def test_xml_says_what_each_hit_says(seed: int) -> None:
    result = random_result(seed)
    root = ElementTree.fromstring(report("5", as_columns(result)))
    shown = [[element.text or "" for element in hsp] for hsp in root.iter("Hsp")]
    expected = []
    for hit in result.hits:
        for number, hsp in enumerate(hit.hsps, 1):
            pair = hsp.pair
            top, middle, bottom = pair.rows()
            floats = [
                "NaN" if value is None or math.isnan(value) else f"{value:g}" for value in (hsp.bit_score, hsp.evalue)
            ]
            counts = (
                pair.query_start + 1, pair.query_end, pair.subject_start + 1, pair.subject_end, 0, 0, pair.identities,
                pair.positives, pair.gaps, pair.length,
            )  # fmt: skip
            scores = [str(number), floats[0], str(hsp.score), floats[1]]
            expected.append([*scores, *map(str, counts), top, bottom, middle])
    assert shown == expected
