"""Searches of DNA: windows of frames find what whole frames hold, each once, and nothing is lost at an edge."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np
import pytest
from Bio.Seq import Seq

import swsearch
from support.samples import sample
from swsearch.alignment import PairAlignment
from swsearch.alphabet import PROTEIN
from swsearch.db.frame_windows import Windows, span_bound
from swsearch.engines.factory import create_pair_aligner
from swsearch.pipeline import windows as cutting
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring
from swsearch.translation import FRAME_NUMBERS, Frame

LEAST = 24
"""Score from which alignments are compared: chance has some, too."""


class Found(NamedTuple):
    """An alignment, in the order of hits: the best first, then by place."""

    worse: int
    record: int
    frame: int
    begin: int
    end: int


def aligned(query: str, subject: str, scoring: Scoring, engine: str) -> PairAlignment:
    """Return the best local alignment of two proteins."""
    with create_pair_aligner(engine) as aligner:
        return aligner.align(PROTEIN.encode(query), PROTEIN.encode(subject), Recurrence(scoring, "local"))


def whole_frames(records: list[str], query: str, scoring: Scoring, least: int) -> list[Found]:
    """Return the alignments that whole frames hold: of each the best, then the best beside it, and so on."""
    found = []
    for record, dna in enumerate(records):
        for place, number in enumerate(FRAME_NUMBERS):
            strand = str(Seq(dna).reverse_complement()) if number < 0 else dna
            letters = strand[abs(number) - 1 :]
            residues = str(Seq(letters[: len(letters) // 3 * 3]).translate())
            rest = [(0, len(residues))]
            while rest:
                begin, end = rest.pop()
                if begin == end:
                    continue
                pair = aligned(query, residues[begin:end], scoring, "reference" if end - begin < 40 else "cpu")
                if pair.score >= least:
                    first, last = begin + pair.subject_start, begin + pair.subject_end
                    span = Frame(number, len(dna)).dna_span(first, last)
                    found.append((Found(-pair.score, record, place, first, last), span))
                    rest += [(begin, first), (last, end)]
    return [(each, span) for each, span in sorted(found)]


def as_found(result: Any) -> list[tuple[int, str, int, tuple[int, int]]]:
    """Return the hits of a result: score, record, frame, and nucleotides."""
    return [(hit.score, hit.subject_id, hit.subject_frame.number, hit.subject_range) for hit in result.hits]


def random_protein(rng: random.Random, n: int) -> str:
    return "".join(rng.choice("ARNDCQEGHILKMFPSTWYV") for _ in range(n))


def coding(rng: random.Random, protein: str) -> str:
    """Return DNA that a protein is translated from."""
    from Bio.Data.CodonTable import standard_dna_table

    codons: dict[str, list[str]] = {}
    for codon, residue in standard_dna_table.forward_table.items():
        codons.setdefault(residue, []).append(codon)
    return "".join(rng.choice(codons[residue]) for residue in protein)


def random_genome(rng: random.Random, query: str, n: int) -> str:
    """Return DNA in which parts of a query are coded for on both strands, some in two parts with others between."""
    dna = ""
    while len(dna) < n:
        dna += "".join(rng.choice("ACGT") for _ in range(rng.randrange(1, 200)))
        a, b = sorted(rng.sample(range(len(query) + 1), 2))
        middle = rng.randrange(a, b + 1)
        gene = query[a:middle] + random_protein(rng, rng.choice([0, 0, 1, 5, 20])) + query[middle:b]
        piece = coding(rng, gene)
        dna += str(Seq(piece).reverse_complement()) if rng.random() < 0.5 else piece
        dna += rng.choice(["", "", "N", "RYN"])
    return dna[:n]


@pytest.mark.parametrize("seed", sample(range(40), lambda seed: seed < 2))
def test_windows_find_what_whole_frames_hold(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    query = random_protein(rng, rng.randrange(4, 40))
    scoring = Scoring(gap_open=rng.choice([2, 5, 11]), gap_extend=rng.choice([1, 2]))
    records = [random_genome(rng, query, rng.choice([0, 1, 2, 3, 4, 5, 200, 1500])) for _ in range(3)]
    records.append(random_genome(rng, query, 2000))
    expected = whole_frames(records, query, scoring, LEAST)
    database = swsearch.Database.from_records([(f"r{k}", dna) for k, dna in enumerate(records)], translate=True)
    monkeypatch.setattr(cutting, "window_sizes", lambda span, _: Windows(span + seed % 7, span))
    for most in (1, 3, 1000):
        result = next(
            swsearch.search(query, database, statistics="none", min_score=LEAST, max_hits=most, scoring=scoring)
        )
        wanted = [(-each.worse, f"r{each.record}", FRAME_NUMBERS[each.frame], span) for each, span in expected[:most]]
        assert as_found(result) == wanted, f"seed {seed}, query {query}, records {records}"


def test_a_hit_over_a_windows_edge_and_a_second_gene_are_found() -> None:
    rng = random.Random(5)
    query = random_protein(rng, 60)
    windows = cutting.choose_windows(
        swsearch.Database.from_records([("a", "ACGT" * 9)], translate=True), [], Scoring()
    )
    before = "".join(rng.choice("ACGT") for _ in range(3 * windows.core - 90))
    dna = before + coding(rng, query) + "ACGTAC" + coding(rng, query[:50])
    database = swsearch.Database.from_records([("chromosome", dna)], translate=True)
    result = next(swsearch.search(query, database))
    begin = len(before)
    assert [hit.subject_range for hit in result.hits[:2]] == [(begin, begin + 180), (begin + 186, begin + 336)]
    assert result.program == "tblastn"
    assert result.hits[0].subject_length == len(dna)
    assert result.hits[0].evalue is not None
    assert result.hits[0].evalue < 1e-20
    assert (result.database_subjects, result.database_residues) == (1, len(dna))


def test_an_alignment_spans_no_more_than_its_bound() -> None:
    query = "WWWWW"  # 11 each: a gap may cost as much as what is left of it, and the next as much as that leaves
    pair = aligned(query, f"WW{'A' * 20}WW{'A' * 20}W", Scoring(gap_open=1, gap_extend=1), "reference")
    assert (pair.score, pair.subject_end - pair.subject_start) == (23, 24)
    assert span_bound(55, 5, 1, 1) == 5 + 53
    assert span_bound(3, 5, 11, 1) == 5
    assert span_bound(55, 5, 5, 0) is None


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"mode": "global"}, "mode"),
        ({"subject_mask": "lower"}, "subject_mask"),
        ({"distribution": True}, "distribution"),
        ({"translate": True, "frame_shift": 15}, "frame_shift"),
    ],
)
def test_what_dna_cannot_have_is_refused(asked: dict[str, Any], named: str) -> None:
    database = swsearch.Database.from_records([("a", "ACGTTGCA" * 20)], translate=True)
    query = "ACGTAACCGGTTACGT" if "translate" in asked else "MKVLAAGIVG"
    with pytest.raises(swsearch.SwsearchError, match=rf"{named}: got .*<memory> is a DNA database"):
        next(iter(swsearch.search(query, database, **asked)))


@pytest.mark.parametrize(
    "ask",
    [
        lambda database: swsearch.score("MKVLAAGIVG", database),
        lambda database: swsearch.score("MKVLAAGIVG", database, top=1),
        lambda database: list(database.chunks(1 << 20)),
        lambda database: database.subset(np.ones(1, dtype=np.bool_)),
        lambda database: next(iter(swsearch.search("MKVLAAGIVG", database, iterations=2))),
    ],
)
def test_what_has_no_frames_says_so_and_finds_no_zeros(ask: Any) -> None:
    with (
        swsearch.Database.from_records([("a", "ACGTTGCA" * 20)], translate=True) as database,
        pytest.raises(swsearch.SwsearchError, match=r"^<memory>: a DNA database "),
    ):
        ask(database)


@pytest.mark.parametrize("seed", sample(range(12), lambda seed: seed < 1))
def test_dna_queries_find_what_their_frames_find(seed: int) -> None:
    rng = random.Random(seed)
    protein, scoring = random_protein(rng, 30), Scoring(gap_open=rng.choice([5, 11]), gap_extend=1)
    query = random_genome(rng, protein, rng.choice([3, 100, 150]))
    records = [(f"r{k}", random_genome(rng, protein, rng.choice([0, 5, 300, 700]))) for k in range(4)]
    database = swsearch.Database.from_records(records, translate=True)
    asked: dict[str, Any] = {"statistics": "none", "min_score": LEAST, "scoring": scoring}
    expected = []
    for place, number in enumerate(FRAME_NUMBERS):
        strand = str(Seq(query).reverse_complement()) if number < 0 else query
        letters = strand[abs(number) - 1 :]
        if residues := str(Seq(letters[: len(letters) // 3 * 3]).translate()):
            alone = next(swsearch.search(residues, database, max_hits=1000, **asked))
            span = Frame(number, len(query)).dna_span
            for rank, hit in enumerate(alone.hits):
                found = (*as_found(alone)[rank], number, span(*hit.query_range), *hit.pair.rows())
                expected.append((-hit.score, place, rank, found))
    wanted = [found for *_, found in sorted(expected)]
    for most in (2, 1000):
        result = next(swsearch.search(query, database, translate=True, max_hits=most, **asked))
        found = [
            (*each, hit.query_frame.number, hit.query_range, *hit.pair.rows())
            for each, hit in zip(as_found(result), result.hits, strict=True)
        ]
        assert found == wanted[:most], f"seed {seed}, query {query}, records {records}"
        assert result.program == "tblastx"
