"""DNA queries: what is found equals what their frames find as proteins, translated by Biopython and merged here."""

from __future__ import annotations

import random

import numpy as np
import pytest
from Bio.Seq import Seq

import swsearch
from support.samples import sample
from swsearch.errors import InputError, SequenceError
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search_queries import query_frames, search_queries
from swsearch.results import HitList
from swsearch.translation import FRAME_NUMBERS, QueryTranslation

STATISTICS = sample(("published", "fitted", "none"), lambda name: name != "none")


def dna(length: int, seed: int) -> str:
    return "".join(random.Random(seed).choices("ACGTN", [25, 25, 25, 25, 1], k=length))


def residues(letters: str, number: int) -> str:
    """A frame, by Biopython."""
    strand = (Seq(letters) if number > 0 else Seq(letters).reverse_complement())[abs(number) - 1 :]
    return str(strand[: len(strand) // 3 * 3].translate()).replace("B", "X").replace("Z", "X").replace("J", "X")


QUERIES = {
    "long": dna(600, 1),
    "reads": dna(150, 2),
    "odd": dna(299, 3),
    "codon": "ATG",
    "short": "AC",
    "n": "N" * 60,
}


def mutated(protein: str, seed: int) -> str:
    rng = random.Random(seed)
    letters = [rng.choice("ARNDCQEGHILKMFPSTWYV") if rng.random() < 0.25 else each for each in protein]
    return "".join(letters).replace("*", "W")


@pytest.fixture(scope="module")
def subjects() -> list[tuple[str, str]]:
    """Relatives of parts of several frames, some of two frames at once, and proteins of no relation."""
    rng, found = random.Random(20), []
    for seed, (name, letters) in enumerate(QUERIES.items()):
        for number in FRAME_NUMBERS:
            if len(frame := residues(letters, number)) > 30:
                found.append((f"{name}{number}", mutated(frame, seed)))
        if len(letters) > 200:
            halves = residues(letters, 1)[:60], residues(letters, -2)[-50:]
            found.append((f"{name}_shifted", mutated("".join(halves), seed)))
    alphabet = "ARNDCQEGHILKMFPSTWYV"
    found += [(f"chance{k}", "".join(rng.choices(alphabet, k=rng.randrange(20, 400)))) for k in range(40)]
    return found


def merged(letters: str, subjects, frames=FRAME_NUMBERS, max_hits: int = 500, evalue: float = 10.0, **options):
    """Return the frames' hits as proteins, each subject in its best frame: place, frame, score, part, E-value."""
    proteins = [(str(number), residues(letters, number)) for number in frames]
    has_evalues = options["statistics"] != "none"
    times = len(frames) if options["statistics"] == "fitted" else 1
    asked = {**options, "evalue": evalue / times} if has_evalues else options
    best: dict[int, tuple] = {}
    results = swsearch.search(proteins, subjects, allow_dna=True, engine="cpu", **asked)
    for place, (number, result) in enumerate(zip(frames, results, strict=True)):
        for hit in result:
            expected = None if hit.evalue is None else hit.evalue * times
            begin, end = (abs(number) - 1 + 3 * at for at in (hit.pair.query_start, hit.pair.query_end))
            part = (begin, end) if number > 0 else (len(letters) - end, len(letters) - begin)
            order = (0.0 if expected is None or options.get("sort") == "score" else expected, -hit.score)
            row = (hit.subject_index, number, hit.score, part, hit.subject_range, hit.cigar, expected)
            entry = (*order, hit.subject_index, place, row)
            best[hit.subject_index] = min(best.get(hit.subject_index, entry), entry)
    return [row for *_, row in sorted(best.values())][:max_hits]


def shown(result):
    """The same of a search with the DNA."""
    return [
        (
            hit.subject_index,
            hit.query_frame.number,
            hit.score,
            hit.query_range,
            hit.subject_range,
            hit.cigar,
            hit.evalue,
        )
        for hit in result
    ]


def check_same(found, wanted) -> None:
    assert [row[:-1] for row in found] == [row[:-1] for row in wanted]
    assert [row[-1] is None for row in found] == [row[-1] is None for row in wanted]
    assert [row[-1] or 0.0 for row in found] == pytest.approx([row[-1] or 0.0 for row in wanted], rel=1e-12)


@pytest.mark.parametrize("statistics", STATISTICS)
def test_a_dna_query_finds_what_its_frames_find(subjects, statistics: str) -> None:
    results = swsearch.search(QUERIES, subjects, translate=True, statistics=statistics, engine="cpu")
    found = {result.query_id: result for result in results}
    assert list(found) == list(QUERIES)
    for name, letters in QUERIES.items():
        result = found[name]
        assert (result.program, result.genetic_code, result.query_length) == ("blastx", 1, len(letters))
        check_same(shown(result), merged(letters, subjects, statistics=statistics))
    assert len(found["long"]) > 6
    assert {hit.query_frame.number for hit in found["long"]} == set(FRAME_NUMBERS)
    assert not found["short"]


@pytest.mark.parametrize("strand", ["plus", "minus"])
def test_a_strand_is_searched_with_alone(subjects, strand: str) -> None:
    frames = QueryTranslation(strand=strand).frames  # type: ignore[arg-type]
    (result,) = swsearch.search(
        [("q", QUERIES["long"])], subjects, translate=True, strand=strand, max_hits=5, engine="cpu",
        statistics="fitted",
    )  # fmt: skip
    assert result.options["strand"] == strand
    check_same(shown(result), merged(QUERIES["long"], subjects, frames, 5, statistics="fitted"))


@pytest.mark.parametrize(
    "options",
    sample([{"max_hits": 3}, {"sort": "score", "max_hits": 4}, {"evalue": 1e-5}], lambda each: "sort" in each),
)
def test_the_best_of_all_frames_are_kept(subjects, options) -> None:
    (result,) = swsearch.search([("q", QUERIES["long"])], subjects, translate=True, engine="cpu", **options)
    wanted = merged(QUERIES["long"], subjects, **{"statistics": "fitted", **options})
    check_same(shown(result), wanted)
    assert len(wanted) > 2


def test_coverage_is_that_of_the_nucleotides(subjects) -> None:
    asked = {"translate": True, "engine": "cpu", "statistics": "published"}
    (everything,) = swsearch.search([("q", QUERIES["long"])], subjects, **asked)
    (some,) = swsearch.search([("q", QUERIES["long"])], subjects, min_query_coverage=40, **asked)

    def share(hit) -> float:
        return 100 * (hit.query_range[1] - hit.query_range[0]) / hit.query_length

    best = [hit.subject_id for hit in everything if share(hit) >= 40]
    assert best
    assert set(best) <= {hit.subject_id for hit in some}
    assert all(share(hit) >= 40 for hit in some)
    (aligned,) = swsearch.search([("q", QUERIES["long"])], subjects, min_query_coverage=40, max_alignments=4, **asked)
    assert all(hsp.query_range[1] - hsp.query_range[0] >= 240 for hit in aligned for hsp in hit.hsps)


@pytest.mark.parametrize("statistics", STATISTICS)
def test_further_alignments_come_from_all_frames(subjects, statistics: str) -> None:
    """Those of a hit are the best of what each frame has of the subject alone, in one order."""
    letters, asked = QUERIES["long"], {"engine": "cpu", "statistics": statistics, "max_alignments": 4}
    if statistics != "none":
        asked["evalue"] = 1e-3
    (result,) = swsearch.search([("q", letters)], subjects, translate=True, **asked)
    times = len(FRAME_NUMBERS) if statistics == "fitted" else 1
    n_several = 0
    proteins = [(str(number), residues(letters, number)) for number in FRAME_NUMBERS]
    frames = [
        {hit.subject_index: hit.hsps for hit in each}
        for each in swsearch.search(
            proteins, subjects, allow_dna=True, **asked | ({"evalue": 1e-3 / times} if statistics != "none" else {})
        )
    ]
    for hit in list(result)[:8]:
        wanted = [
            ((hsp.evalue or 0.0) * times, -hsp.score, place, hsp.pair.cigar)
            for place, of_frame in enumerate(frames)
            for hsp in of_frame.get(hit.subject_index, [])
        ]
        wanted.sort(key=lambda each: each[:3])
        found = [
            ((hsp.evalue or 0.0), -hsp.score, FRAME_NUMBERS.index(hsp.query_frame.number), hsp.pair.cigar)
            for hsp in hit.hsps
        ]
        assert [each[1:] for each in found] == [each[1:] for each in wanted[:4]]
        assert [each[0] for each in found] == pytest.approx([each[0] for each in wanted[:4]], rel=1e-9)
        n_several += len({each[2] for each in found}) > 1
    assert n_several


def test_residues_are_masked_where_a_nucleotide_is() -> None:
    letters = "acgACGTACGTTGCAg"
    (query,) = search_queries([("q", letters)], SearchOptions(translate=True))
    runs = {frame.frame.number: frame.lower for frame in query_frames(query, QueryTranslation())}
    assert runs == {
        1: ((0, 1),), 2: ((0, 1), (4, 5)), 3: ((0, 1),), -1: ((0, 1), (4, 5)), -2: ((4, 5),), -3: ((3, 4),)
    }  # fmt: skip


@pytest.mark.parametrize("options", [{"strand": "plus"}, {}], ids=str)
def test_a_database_that_stays_finds_the_same(subjects, options) -> None:
    with swsearch.Searcher(subjects, engine="cpu", translate=True, **options) as searcher:
        kept = searcher.search(QUERIES)
    plain = list(swsearch.search(QUERIES, subjects, translate=True, engine="cpu", **options))
    assert [shown(each) for each in kept] == [shown(each) for each in plain]
    assert kept == plain


def test_what_is_done_is_kept_and_read_again(subjects, tmp_path) -> None:
    asked = {"translate": True, "engine": "cpu", "checkpoint": tmp_path / "kept", "distribution": True}
    first = list(swsearch.search(QUERIES, subjects, **asked))
    again = swsearch.search(QUERIES, subjects, **asked)
    assert list(again) == first
    assert again.search.checkpoint is not None
    with pytest.raises(InputError, match="genetic_code was 1, is 4"):
        list(swsearch.search(QUERIES, subjects, genetic_code=4, **asked))
    with pytest.raises(InputError, match="translate was on, is not given"):
        list(swsearch.search(QUERIES, subjects, **{**asked, "translate": False, "allow_dna": True}))


def test_the_distribution_is_that_of_all_frames(subjects) -> None:
    (result,) = swsearch.search(
        [("q", QUERIES["long"])], subjects, translate=True, distribution=True, engine="cpu", statistics="published"
    )
    assert result.distribution.n_subjects == 6 * len(subjects)


REFUSED = [
    ({"mode": "global"}, InputError, "mode: got 'global', expected local with --translate"),
    (
        {"iterations": 2},
        InputError,
        "translate: cannot be combined with --iterations 2; iterated searches need protein queries",
    ),
    ({"keep_profiles": True}, InputError, "translate: cannot be combined with a profile of the hits"),
    ({"query_format": "a3m"}, InputError, "query_format: got 'a3m', expected auto or fasta"),
    ({"translate": False, "strand": "plus"}, InputError, "strand: got 'plus', expected none without translation"),
    ({"translate": False, "genetic_code": 1}, InputError, "genetic_code: got 1, expected none without translation"),
    ({"translate": 1}, InputError, "translate: got 1"),
    ({"genetic_code": 7}, InputError, "genetic_code: got 7, expected an NCBI genetic code: 1, 2"),
]


@pytest.mark.parametrize(("options", "error", "message"), REFUSED, ids=str)
def test_what_cannot_be_done_is_refused(subjects, options, error, message: str) -> None:
    with pytest.raises(error, match=message):
        swsearch.search([("q", QUERIES["long"])], subjects, **{"translate": True, "engine": "cpu", **options})


@pytest.mark.parametrize(
    ("letters", "message"),
    [
        ("MKVLAAGIVGWWHHKDEFRTYPCNQS", "'L' is no residue letter.*leave out --translate .* for proteins"),
        ("MKVWWHHKDDRTYCNSMKVGSGSSHKR", "fewer than half of its 26 letters.*leave out --translate .* for proteins"),
        ("ACGT-ACGT", "is a gap character"),
    ],
)
def test_proteins_are_refused_where_dna_is_expected(subjects, letters: str, message: str) -> None:
    with pytest.raises(SequenceError, match=message):
        swsearch.search([("q", letters)], subjects, translate=True)


def test_dna_is_told_how_it_is_searched_with(subjects) -> None:
    with pytest.raises(SequenceError, match=r"add --translate \(in Python translate=True\)"):
        swsearch.search([("q", QUERIES["long"].replace("N", ""))], subjects)


def test_hits_of_frames_are_a_list_of_one_query(subjects) -> None:
    (result,) = swsearch.search([("q", QUERIES["long"])], subjects, translate=True, engine="cpu")
    hits = result.hits
    assert isinstance(hits, HitList)
    assert [query.frame.number for query in hits.queries] == list(FRAME_NUMBERS)
    columns = result.to_columns()
    assert columns["query_frame"] == [hit.query_frame.number for hit in hits]
    assert len(np.unique(columns["subject_index"])) == len(hits)
