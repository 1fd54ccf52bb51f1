"""Searches with frame shifts: what is found is the reference's, and what is shown of it is what stands on the DNA."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

import swsearch
from support.samples import sample
from swsearch.alphabet import PROTEIN
from swsearch.errors import OptionError
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search_queries import query_frames, search_queries
from swsearch.scoring import Scoring
from swsearch.translation import QueryTranslation
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
            assert replace(pair, frame_shift=shift).rescored() == best[0]
            assert hit.query_frame.number == (-1 if is_reverse else 1)


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


def test_evalues_count_both_strands(reads, proteins, results) -> None:
    ((_, letters), *_), whole = reads, results[0][0]
    (plus,) = swsearch.search([("q", letters)], proteins, translate=True, frame_shift=15, strand="plus", engine="cpu")
    assert plus[0].score == whole.score
    assert plus[0].evalue == pytest.approx(whole.evalue / 2)
    assert whole.evalue_published is None
    assert plus.asked["frame_shift"] == 15


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
