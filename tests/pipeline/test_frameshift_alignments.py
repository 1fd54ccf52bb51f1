"""Searches with frame shifts: what is found is the reference's, and what is shown of it is what stands on the DNA."""

from __future__ import annotations

import io
import random
from dataclasses import replace

import pytest

import swsearch
from support.samples import sample
from swsearch.alignment_table import ALIGNMENT_COLUMNS, AlignmentTable
from swsearch.alphabet import PROTEIN
from swsearch.engines import create_engine
from swsearch.errors import InputError, OptionError
from swsearch.pipeline.hit_alignments import align_hits
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search_queries import query_frames, search_queries
from swsearch.report import OUTPUT_FORMATS
from swsearch.results import HitList
from swsearch.scoring import Scoring
from swsearch.translation import CODON, QueryTranslation
from swsearch.translation.frameshift_reference import shifted_align
from swsearch.translation.genetic_codes import codon_table, reverse_complement

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
SHIFTED = QueryTranslation(frame_shift=15)


def coding(protein: str, seed: int) -> str:
    """DNA that codes for a protein."""
    rng, table = random.Random(seed), codon_table(1)
    codons: dict[str, list[str]] = {}
    for first in range(4):
        for second in range(4):
            for third in range(4):
                residue = PROTEIN.letters[table[first, second, third]]
                codons.setdefault(residue, []).append("".join("ACGT"[k] for k in (first, second, third)))
    return "".join(rng.choice(codons[residue]) for residue in protein)


def other_strand(letters: str) -> str:
    return letters[::-1].translate(str.maketrans("ACGT", "TGCA"))


@pytest.fixture(scope="module")
def proteins() -> list[tuple[str, str]]:
    rng = random.Random(5)
    return [(f"p{k}", "".join(rng.choices(AMINO_ACIDS, k=rng.randrange(40, 60)))) for k in range(7)]


@pytest.fixture(scope="module")
def reads(proteins) -> list[tuple[str, str]]:
    """Reads of some proteins with a nucleotide lost and one too many, some of the other strand."""
    rng, found = random.Random(6), []
    for k, (name, protein) in enumerate(proteins[:4]):
        letters = coding(protein, k)
        lost, extra = len(letters) // 3, 2 * len(letters) // 3
        letters = letters[:lost] + letters[lost + 1 : extra] + rng.choice("ACGT") + letters[extra:]
        letters = "".join(rng.choices("ACGT", k=7 + k)) + letters + "".join(rng.choices("ACGT", k=11))
        found.append((f"read_{name}", other_strand(letters) if k % 2 else letters))
    return [*found, ("short", "AC"), ("codon", "ATG")]


@pytest.fixture(scope="module")
def results(reads, proteins):
    return list(swsearch.search(reads, proteins, translate=True, frame_shift=15, engine="cpu"))


def as_dna(letters: str):
    """The codes of both strands."""
    (query,) = search_queries([("q", letters)], SearchOptions(translate=True, frame_shift=15))
    return query.codes, reverse_complement(query.codes)


@pytest.mark.parametrize(
    ("shift", "n_proteins"), sample([(15, 7), (4, 7), (10_000, 7), (4, 2)], lambda case: case[1] == 2)
)
def test_scores_and_alignments_are_the_references(reads, proteins, shift, n_proteins) -> None:
    proteins = proteins[:n_proteins]
    asked = {"translate": True, "frame_shift": shift, "statistics": "none", "engine": "cpu"}
    for (_, letters), result in zip(reads, swsearch.search(reads, proteins, **asked), strict=True):
        found = {hit.subject_index: hit for hit in result}
        (query,) = search_queries([("q", letters)], SearchOptions(translate=True, frame_shift=15))
        strands = list(query_frames(query, SHIFTED))
        for place, (_, protein) in enumerate(proteins):
            both = [shifted_align(strand.codes, PROTEIN.encode(protein), Scoring(), shift) for strand in strands]
            best = max(both, key=lambda each: each[0])
            assert (found[place].score if place in found else 0) == best[0]
            if place not in found:
                continue
            hit, is_reverse = found[place], both[0][0] < best[0]
            pair = hit.pair
            assert (pair.score, pair.query_start, pair.subject_start, pair.cigar) == best
            assert replace(pair, frame_shift=shift).recompute_score() == best[0]
            assert hit.query_frame.number == (-1 if is_reverse else 1)


def test_counts_are_those_of_each_alignment(reads, proteins) -> None:
    asked = {"translate": True, "frame_shift": 4, "engine": "cpu", "statistics": "none"}
    results = list(swsearch.search(reads, proteins, **asked))
    align_hits(results, 2)
    n_shifted = 0
    for result in results:
        assert isinstance(result.hits, HitList)
        table = result.hits.alignments
        if table is None:
            continue
        alone = AlignmentTable.from_pairs([replace(hit.pair, counts=None) for hit in result])
        for name in (*ALIGNMENT_COLUMNS, "run_offsets", "run_lengths", "run_operations"):
            assert getattr(table, name).tolist() == getattr(alone, name).tolist(), name
        n_shifted += sum("F" in hit.cigar or "R" in hit.cigar for hit in result)
    assert n_shifted > 4


def test_what_an_alignment_reads_stands_on_the_dna(reads, results) -> None:
    table = codon_table(1)
    for (name, letters), result in zip(reads[:4], results, strict=False):
        hit, strands = result[0], as_dna(letters)
        frame, pair = hit.query_frame, hit.pair
        assert name == f"read_{hit.subject_id}"
        assert sorted(operation for _, operation in pair.cigar if operation in "FR") == ["F", "R"]
        assert pair.identities > 0.9 * len(pair.subject)
        (begin, end), n = hit.query_range, len(letters)
        strand = strands[1][n - end : n - begin] if frame.is_reverse else strands[0][begin:end]
        read, at = [], 0
        for length, operation in pair.cigar:
            for _ in range(length if operation in "MI" else 0):
                read.append(PROTEIN.letters[table[tuple(strand[at : at + 3])]])
                at += 3
            at += {"F": 1, "R": -1}.get(operation, 0)
        assert at == len(strand)
        top, _, bottom = pair.rows()
        assert top.translate({ord(mark): None for mark in "-/\\"}) == "".join(read)
        assert (top.count("\\"), top.count("/"), len(top)) == (1, 1, len(bottom))


def test_shifts_that_cost_too_much_leave_the_best_frame(reads, proteins) -> None:
    asked = {"translate": True, "statistics": "none", "engine": "cpu"}
    dear = swsearch.search(reads, proteins, frame_shift=10_000, **asked)
    for plain, shifted in zip(swsearch.search(reads, proteins, **asked), dear, strict=True):
        assert {hit.subject_index: hit.score for hit in plain} == {hit.subject_index: hit.score for hit in shifted}
        spans = [{hit.subject_index: hit.query_range for hit in each} for each in (plain, shifted)]
        assert sum(spans[0][k] != spans[1][k] for k in spans[0]) <= 2  # of equals another one may be shown


def test_evalues_count_both_strands(reads, proteins, results) -> None:
    ((_, letters), *_), whole = reads, results[0][0]
    (plus,) = swsearch.search([("q", letters)], proteins, translate=True, frame_shift=15, strand="plus", engine="cpu")
    assert plus[0].score == whole.score
    assert plus[0].evalue == pytest.approx(whole.evalue / 2)
    assert whole.evalue_published is None
    assert plus.options["frame_shift"] == 15


@pytest.mark.parametrize("kind", [kind.key for kind in OUTPUT_FORMATS if "blastx" in kind.writer.programs])
def test_every_format_takes_them(results, kind, tmp_path) -> None:
    path = tmp_path / "found"
    swsearch.write(results, path, kind)
    assert path.stat().st_size > 0


def test_a_table_has_their_places_on_the_dna(results) -> None:
    written = io.StringIO()
    swsearch.write(results, written, "6 qseqid sseqid qframe qstart qend length")
    rows = [line.split("\t") for line in written.getvalue().splitlines()]
    first = [next(row for row in rows if row[0] == result.query_id) for result in results[:4]]
    for row, result in zip(first, results, strict=False):
        begin, end = result[0].query_range
        is_reverse, start = result[0].query_frame.is_reverse, result[0].pair.query_start
        ends = (end, begin + 1) if is_reverse else (begin + 1, end)
        number = (start % CODON + 1) * (-1 if is_reverse else 1)
        assert row[2:] == [str(number), *map(str, ends), str(result[0].pair.length)]


def test_a_database_that_stays_and_a_checkpoint_have_the_same(reads, proteins, results, tmp_path) -> None:
    asked = {"translate": True, "frame_shift": 15, "engine": "cpu"}
    with swsearch.Searcher(proteins, **asked) as searcher:
        assert searcher.search(reads) == results
    kept = {**asked, "checkpoint": tmp_path / "kept"}
    assert list(swsearch.search(reads, proteins, **kept)) == results
    assert list(swsearch.search(reads, proteins, **kept)) == results
    with pytest.raises(InputError, match="frame_shift was 15, is 14"):
        list(swsearch.search(reads, proteins, **{**kept, "frame_shift": 14}))


def test_filters_go_by_what_was_read(reads, proteins, results) -> None:
    (some,) = swsearch.search(
        reads[:1], proteins, translate=True, frame_shift=15, engine="cpu", min_query_coverage=60, min_identity=80
    )
    assert [hit.subject_id for hit in some] == [results[0][0].subject_id]
    assert (some[0].cigar, some[0].query_frame) == (results[0][0].cigar, results[0][0].query_frame)


def test_lower_case_may_be_masked(proteins) -> None:
    letters = coding(proteins[0][1], 3)
    masked = letters[:60].lower() + letters[60:]
    asked = {"translate": True, "frame_shift": 15, "engine": "cpu", "statistics": "none"}
    (found,) = swsearch.search([("q", masked)], proteins[:1], query_mask="lower", **asked)
    assert found[0].query_range[0] >= 60
    (whole,) = swsearch.search([("q", masked)], proteins[:1], **asked)
    assert whole[0].query_range == (0, len(letters))


REFUSED = [
    ({"statistics": "published"}, "statistics: got 'published', expected fitted or none with --frame-shift"),
    ({"max_alignments": 2}, "max_alignments: got 2, expected 1 with --frame-shift"),
    ({"query_mask": "tantan"}, "query_mask: got 'tantan', expected none or lower with --frame-shift"),
    ({"frame_shift": 0}, "frame_shift: got 0, expected"),
    ({"translate": False}, "frame_shift: got 15, expected none without translation"),
    ({"engine": "gpu"}, "engine: got 'gpu', expected cpu or auto"),
    ({"engine": "cpu", "device": 0}, "device: got 0, expected none with engine cpu"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=str)
def test_what_cannot_be_done_is_refused(reads, proteins, options, message) -> None:
    with pytest.raises(OptionError, match=message):
        swsearch.search(reads, proteins, **{"translate": True, "frame_shift": 15, **options})


def test_auto_is_the_cpu() -> None:
    with create_engine("auto", cpu_only="alignments with frame shifts") as engine:
        assert engine.name == "cpu"
        assert "alignments with frame shifts are computed there alone" in engine.fallback
