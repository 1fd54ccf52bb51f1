from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import numpy_traceback as traceback
from support.cases import any_codes, modes_with_ends, random_codes, random_profile, scorings
from support.pair_checks import biopython_aligner, biopython_score, parasail_align, read_genomes, relatives
from support.profiles import like_matrix
from support.samples import random_cases, sample
from swsearch import Profile, align, reference
from swsearch.alignment_table import ALIGNMENT_COLUMNS
from swsearch.alphabet import DNA, PROTEIN
from swsearch.blocks import apply_mask, letters_with_mask
from swsearch.engines.cpu import tracing
from swsearch.engines.cpu.pairs import ALONE_CELLS, CELLS_PER_CALL, PAIRS_PER_CALL, CpuPairAligner
from swsearch.engines.pools import PoolPairs, make_pool, rows_pool
from swsearch.engines.reference import ReferencePairAligner
from swsearch.errors import InputError, MemoryLimitError, OptionError
from swsearch.options.kinds import MODES
from swsearch.recurrence import Recurrence
from swsearch.scoring import Ends, PositionGapCosts, Scoring, codes_of, dna_matrix, load_matrix

ALIGNERS = {
    "cpu, one thread": lambda: CpuPairAligner(threads=1),
    "cpu, two threads": lambda: CpuPairAligner(threads=2),
    "reference": ReferencePairAligner,
}


@pytest.fixture(params=ALIGNERS)
def aligner(request):
    with ALIGNERS[request.param]() as made:
        yield made


@pytest.fixture(scope="module")
def cpu_pairs():
    with CpuPairAligner(threads=2) as made:
        yield made


def summary(pair):
    return pair.score, pair.query_start, pair.subject_start, pair.cigar


@random_cases(200)
@given(st.lists(st.tuples(any_codes(30), any_codes(30)), max_size=6), scorings, modes_with_ends)
def test_every_pair_is_the_references_in_order(cpu_pairs, several, scoring, mode_and_ends):
    mode, ends = mode_and_ends
    expected = [reference.align(query, subject, scoring, mode, ends) for query, subject in several]
    assert [summary(pair) for pair in cpu_pairs.align_many(several, Recurrence(scoring, mode, ends))] == expected
    scores = [one[0] for one in expected]
    assert list(cpu_pairs.score_many(several, Recurrence(scoring, mode, ends))) == scores
    assert [traceback.score(query, subject, scoring, mode, ends) for query, subject in several] == scores


def test_one_interface(aligner):
    pair, recurrence = (PROTEIN.encode("MKVLAAGIVGWW"), PROTEIN.encode("MKVAAGIVG")), Recurrence(Scoring(), "global")
    expected = reference.align(*pair, Scoring(), "global")
    assert summary(aligner.align(*pair, recurrence)) == expected
    assert aligner.score(*pair, recurrence) == expected[0]
    assert [summary(found) for found in aligner.align_many([pair] * 3, recurrence)] == [expected] * 3
    assert list(aligner.score_many(iter([pair] * 3), recurrence)) == [expected[0]] * 3
    assert list(aligner.align_many([], recurrence)) == []
    assert aligner.name in aligner.description
    with pytest.raises(OptionError, match="free_ends: got 'query-start', expected none in global mode"):
        aligner.score(*pair, Recurrence(Scoring(), "global", Ends.parse("query-start")))


@pytest.mark.parametrize("mode", MODES)
def test_pools_are_what_pairs_are_in_columns(aligner, mode):
    generator = np.random.default_rng(7)
    queries = [random_codes(generator, n) for n in (12, 0, 31)]
    subjects = [random_codes(generator, 5), queries[2][3:25], queries[0][::-1], queries[1], queries[0]]
    places = [(q, s) for s in (4, 3, 2, 1, 0, 1) for q in range(3)]
    pools = (make_pool(queries), make_pool(subjects))
    letters = (None, letters_with_mask(pools[1][0], [(3, 9), (20, 24)]))
    scored = (pools[0], (apply_mask(pools[1][0], [(3, 9), (20, 24)]), pools[1][1]))
    pairs, recurrence = np.array(places), Recurrence(Scoring(), mode)
    for known in (None, np.zeros(len(pairs), dtype=np.int64)):
        table = aligner.align_pools(PoolPairs(*scored, pairs, letters, known_scores=known), recurrence)
        for k, (q, s) in enumerate(places):
            part = slice(*scored[1][1][s : s + 2])
            one = aligner.align(queries[q], scored[1][0][part], recurrence)
            one = replace(one, subject_letters=letters[1][part])
            assert [getattr(table, name)[k] for name in ALIGNMENT_COLUMNS] == [
                getattr(one, name) for name in ALIGNMENT_COLUMNS
            ]
            assert table.cigar(k) == one.cigar
    assert len(aligner.align_pools(PoolPairs(*scored, pairs[:0]), recurrence)) == 0
    with pytest.raises(ValueError, match="expected places of sequences from 0 to 4 in the pairs' column 1"):
        aligner.align_pools(PoolPairs(*scored, np.array([[0, 5]])), recurrence)


def test_profiles_are_aligned_where_sequences_are(aligner):
    generator, scoring = np.random.default_rng(8), Scoring()
    gapped, ungapped = random_profile(generator, 20, most_cost=12), random_profile(generator, 25)
    queries = [ungapped, random_codes(generator, 18, 20), gapped]
    subjects = [random_codes(generator, n, 20) for n in (0, 15, 40)]
    for mode, some in (("local", queries), ("global", queries), ("semiglobal", queries[:2])):
        recurrence = Recurrence(scoring, mode)
        several = [(query, subject) for query in some for subject in subjects]
        expected = [reference.align(*pair, scoring, mode) for pair in several]
        found = list(aligner.align_many(several, recurrence))
        assert [summary(pair) for pair in found] == expected
        assert [pair.recompute_score() for pair in found] == [one[0] for one in expected]
        assert [pair.query_rows for pair in found[:3]] == [ungapped] * 3
        assert found[3].query_rows is None
        assert list(aligner.score_many(several, recurrence)) == [one[0] for one in expected]
        assert summary(aligner.align(*several[-1], recurrence)) == expected[-1]
        assert aligner.score(*several[-1], recurrence) == expected[-1][0]
        pool = make_pool([codes_of(query) for query in some])
        places = np.array([(q, s) for q in range(len(some)) for s in range(3)])
        rows = rows_pool(some, scoring)
        assert (rows.gaps is None) == (mode == "semiglobal")
        table = aligner.align_pools(PoolPairs(pool, make_pool(subjects), places, rows=rows), recurrence)
        columns = ALIGNMENT_COLUMNS[1:]  # letters are counted as of the sequence that a profile is shown as
        for k, pair in enumerate(found):
            assert (table.score[k], table.cigar(k)) == (pair.score, pair.cigar)
            assert [getattr(table, name)[k] for name in columns] == [getattr(pair, name) for name in columns]


def test_profiles_of_pools_that_take_much_are_alone():
    generator, scoring = np.random.default_rng(9), Scoring()
    queries = [random_profile(generator, 90, most_cost=12), random_profile(generator, 110)]
    subject, recurrence = random_codes(generator, 120, 20), Recurrence(scoring, "global")
    with CpuPairAligner(threads=2, memory=100_000) as aligner:  # a share would not be enough
        pool = make_pool([codes_of(query) for query in queries])
        places, rows = np.array([[0, 0], [1, 0]]), rows_pool(queries, scoring)
        table = aligner.align_pools(PoolPairs(pool, make_pool([subject]), places, rows=rows), recurrence)
        found = list(aligner.align_many([(query, subject) for query in queries], recurrence))
    for k, query in enumerate(queries):
        expected = reference.align(query, subject, scoring, "global")
        assert summary(found[k]) == (int(table.score[k]), 0, 0, table.cigar(k)) == expected


@pytest.mark.parametrize("mode", MODES)
def test_lengths_around_lanes_and_tiles(cpu_pairs, mode):
    generator, scoring = np.random.default_rng(17), Scoring(dna_matrix(), 3, 1)
    lengths = (0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65)
    for m in lengths:
        n = int(generator.choice(lengths))
        for a, b in ((m, n), (n, m), (m, m)):
            query, subject = random_codes(generator, a, 4), random_codes(generator, b, 4)
            expected = reference.align(query, subject, scoring, mode)
            assert summary(cpu_pairs.align(query, subject, Recurrence(scoring, mode))) == expected, (a, b, mode)
            assert cpu_pairs.score(query, subject, Recurrence(scoring, mode)) == expected[0], (a, b, mode)


@pytest.mark.parametrize("length", [127, 128, 129, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025])
def test_lengths_around_larger_tiles(cpu_pairs, length):
    generator = np.random.default_rng(length)
    query, subject = relatives(generator, length, 4)
    scoring = Scoring(dna_matrix(), 10, 1)
    for mode in MODES:
        expected = traceback.trace(query, subject, scoring, mode)
        assert summary(cpu_pairs.align(query, subject, Recurrence(scoring, mode))) == expected
        assert cpu_pairs.score(query, subject, Recurrence(scoring, mode)) == expected[0]


def draw_pairs(seed, count, longest, letters):
    generator = np.random.default_rng(seed)
    for k in range(count):
        if k % 2:
            yield relatives(generator, int(generator.integers(1, longest)), letters)
        else:
            sizes = generator.integers(1, longest, 2)
            yield tuple(random_codes(generator, int(size), letters) for size in sizes)


SYSTEMS = {
    "BLOSUM62 11/1": (Scoring(), 20),
    "BLOSUM62 0/7, linear": (Scoring(gap_open=0, gap_extend=7), 20),
    "PAM30 9/1": (Scoring(load_matrix("PAM30"), 9, 1), 20),
    "DNA 5/-4 10/1": (Scoring(dna_matrix(), 10, 1), 4),
    "DNA 1/-2 2/2": (Scoring(dna_matrix(1, -2), 2, 2), 4),
}


ONE_OF_EACH = dict(zip(SYSTEMS, MODES * 2, strict=False))
"""The mode in which a quick run looks at a scoring system."""


@pytest.mark.parametrize(
    ("name", "mode"), sample(product(SYSTEMS, MODES), lambda case: ONE_OF_EACH[case[0]] == case[1])
)
def test_scores_are_biopythons_and_parasails_on_random_pairs(cpu_pairs, name, mode):
    scoring, letters = SYSTEMS[name]
    several = [pair for pair in draw_pairs(2026, 300, 120, letters) if min(map(len, pair))]
    biopython = biopython_aligner(scoring, mode)
    decode = scoring.matrix.alphabet.decode
    for (query, subject), pair in zip(several, cpu_pairs.align_many(several, Recurrence(scoring, mode)), strict=True):
        case = (name, mode, decode(query), decode(subject))
        assert pair.score == pair.recompute_score() == biopython_score(biopython, *case[2:]), case
        score, added_up = parasail_align(query, subject, scoring, mode)
        # without a pair, parasail's semi-global score may lie below that of aligning nothing
        assert score == added_up == pair.score or (mode == "semiglobal" and score < pair.score == 0), case


ALL_ENDS = [Ends(*(bool(bits >> k & 1) for k in range(4))) for bits in range(16)]


@pytest.mark.parametrize("ends", ALL_ENDS, ids=lambda ends: ends.describe())
def test_alignments_with_any_free_ends_are_as_good_as_biopythons(cpu_pairs, ends):
    scoring = Scoring()
    biopython = biopython_aligner(scoring, "semiglobal", ends)
    several = [pair for pair in draw_pairs(16, 60, 60, 20) if min(map(len, pair))]
    for (query, subject), pair in zip(
        several, cpu_pairs.align_many(several, Recurrence(scoring, "semiglobal", ends)), strict=True
    ):
        case = (ends.describe(), PROTEIN.decode(query), PROTEIN.decode(subject))
        assert pair.score == pair.recompute_score() == biopython_score(biopython, *case[1:]), case
        # an end that is not free is part of the alignment
        assert pair.query_start == 0 or ends.query_start, case
        assert pair.subject_start == 0 or ends.subject_start, case
        assert pair.query_end == len(query) or ends.query_end, case
        assert pair.subject_end == len(subject) or ends.subject_end, case


def test_pairs_are_drawn_as_results_are_taken():
    drawn = []

    def endless():
        while True:
            drawn.append(1)
            yield np.zeros(5, dtype=np.uint8), np.zeros(5, dtype=np.uint8)

    with CpuPairAligner(threads=2) as aligner:
        found = aligner.align_many(endless(), Recurrence(Scoring(), "local"))
        assert drawn == []
        for _ in range(3):
            assert next(found).score == 20
        assert len(drawn) <= PAIRS_PER_CALL + 1
        found.close()


@pytest.fixture
def calls(monkeypatch):
    """Record how the extension is called: pairs and memory of each call for many, threads of each for one."""
    seen = []
    real_many, real_one = tracing.align_many, tracing.align

    def many(batch, recurrence, memory, *rest, **options):
        seen.append(("many", len(batch), memory))
        return real_many(batch, recurrence, memory, *rest, **options)

    def one(query, subject, recurrence, memory, threads):
        seen.append(("one", threads, memory))
        return real_one(query, subject, recurrence, memory, threads)

    monkeypatch.setattr(tracing, "align_many", many)
    monkeypatch.setattr(tracing, "align", one)
    return seen


def test_a_call_is_bounded_and_a_pair_that_takes_much_is_alone_with_all_threads(calls):
    def lengths(memory, *sizes, threads=4):
        several = [(np.zeros(size, dtype=np.uint8),) * 2 for size in sizes]
        with CpuPairAligner(memory=memory, threads=threads) as aligner:
            return [pair.length for pair in aligner.align_many(several, Recurrence(Scoring(), "global"))]

    assert 7_000**2 < ALONE_CELLS < min(CELLS_PER_CALL, 20_000**2)
    assert lengths(16 << 20, 100, 100, 20_000, 100) == [100, 100, 20_000, 100]
    assert calls == [("many", 2, 4 << 20), ("one", 4, 16 << 20), ("many", 1, 4 << 20)]
    calls.clear()
    assert len(lengths(1 << 20, 100, 100)) == 2  # its share would not be enough for any pair
    assert calls == [("one", 4, 1 << 20)] * 2
    calls.clear()
    assert len(lengths(8 << 20, *[100] * (PAIRS_PER_CALL + 5))) == PAIRS_PER_CALL + 5
    assert calls == [("many", PAIRS_PER_CALL, 2 << 20), ("many", 5, 2 << 20)]
    calls.clear()
    assert len(lengths(64 << 20, *[7_000] * 10, threads=1)) == 10
    assert [count for _, count, _ in calls] == [6, 4]


def test_pairs_of_pools_that_take_much_are_alone_with_all_threads(calls):
    long = np.zeros(100, dtype=np.uint8), np.full(90, 3, dtype=np.uint8), np.zeros(0, dtype=np.uint8)
    recurrence, pool = Recurrence(Scoring(), "global"), make_pool(list(long))
    pairs = np.array([[2, 2], [0, 1], [2, 0], [0, 0], [1, 1]])
    with CpuPairAligner(threads=2, memory=4 << 20) as aligner:
        expected = aligner.align_pools(PoolPairs(pool, pool, pairs), recurrence)
        assert calls == []
        small = tracing.memory_needed(0, 100) * 2  # the share of a thread is too little for the longer pairs
        aligner.memory = small
        table = aligner.align_pools(PoolPairs(pool, pool, pairs), recurrence)
    assert [call[0] for call in calls] == ["one"] * 3
    for name in ALIGNMENT_COLUMNS:
        assert getattr(table, name).tolist() == getattr(expected, name).tolist()
    assert table.cigar_strings() == expected.cigar_strings()


def test_an_error_in_one_pair_ends_all(aligner, monkeypatch):
    def fail(*_, **__):
        raise MemoryLimitError("too little")

    monkeypatch.setattr(tracing, "align_many", fail)
    monkeypatch.setattr(reference, "align", fail)
    several = [(np.zeros(3, dtype=np.uint8),) * 2] * 5
    with pytest.raises(MemoryLimitError, match="too little"):
        list(aligner.align_many(several, Recurrence(Scoring(), "local")))


def test_scores_pass_16_bits():
    query = np.full(4_000, PROTEIN.letters.index("W"), dtype=np.uint8)
    with CpuPairAligner() as aligner:
        for mode in MODES:
            assert aligner.score(query, query, Recurrence(Scoring(), mode)) == 44_000
        assert aligner.score(query, query[:3_000], Recurrence(Scoring(), "global")) == 33_000 - 1_011


# swsearch.align


def test_align_takes_ends_and_engines():
    for engine in ("auto", "cpu", "reference"):
        found = align("MKVLAAG", "WWWMKVLAAGWWW", mode="semiglobal", ends="subject", engine=engine)
        assert (found.score, found.coordinates.tolist()) == (32, [[3, 10], [0, 7]])
    with pytest.raises(InputError, match="free_ends: got 'middle', expected a list of query-start"):
        align("MKV", "MKV", mode="semiglobal", ends="middle")
    with pytest.raises(InputError, match="expected none in global mode; use semiglobal mode"):
        align("MKV", "MKV", ends=Ends.parse("query"))
    with pytest.raises(InputError, match="engine: got 'tpu'"):
        align("MKV", "MKV", engine="tpu")


def profile_like(letters, name="profile", **more):
    """Make a profile that scores as a sequence does, but for a W in its third place, which it wants."""
    codes = PROTEIN.encode(letters)
    scores = like_matrix(codes, Scoring()).scores[:, :27].copy()
    scores[2, PROTEIN.letters.index("W")] = 20
    return Profile(name, "", codes, scores, **more)


def test_align_takes_profiles():
    profile = profile_like("MKVLAAG")
    for engine in ("auto", "cpu", "reference"):
        found = align(profile, ("s", "WWWMKWLAAGWWW"), mode="semiglobal", ends="subject", engine=engine)
        assert (found.score, found.coordinates.tolist()) == (32 - 4 + 20, [[3, 10], [0, 7]])
        assert found.query.id == "profile"
        assert (str(found.query.seq), found.target.id) == ("MKVLAAG", "s")
    assert align("MKVLAAG", "MKWLAAG").score == 32 - 4 - 3
    assert align(profile, "MKWLAAG").score == 48


def test_align_takes_the_gap_costs_of_a_profile():
    with_gap = "MKVLAAG", "MKVLCAAG"
    assert align(profile_like(with_gap[0]), with_gap[1]).score == 32 - 12
    assert align(profile_like(with_gap[0], gap_open=3, gap_extend=2), with_gap[1]).score == 32 - 5
    assert align(profile_like(with_gap[0], gap_open=3, gap_extend=2), with_gap[1], scoring=Scoring()).score == 20
    gaps = PositionGapCosts.uniform(7, 11, 1)
    gaps.insertion_open[3] = 0
    for engine in ("auto", "cpu", "reference"):
        found = align(profile_like(with_gap[0], gaps=gaps), with_gap[1], engine=engine)
        assert (found.score, found.coordinates.tolist()) == (31, [[0, 4, 5, 8], [0, 4, 4, 7]])


def test_align_takes_a_profile_first_and_for_protein():
    profile = profile_like("MKVLAAG")
    with pytest.raises(InputError, match=r"b: got a Profile, expected a sequence; give the profile as a$"):
        align("MKV", profile)
    with pytest.raises(
        InputError, match=r"a: got a Profile with matrix DNA 5/-4 for dna, expected a matrix for protein;"
    ):
        align(profile, "ACGT", scoring=Scoring(dna_matrix(), 10, 1))
    with pytest.raises(InputError, match="a: got 2 sequences, expected one"):
        align([profile, profile], "MKV")


def test_align_reads_an_alignment_to_make_a_profile_of(tmp_path):
    path = tmp_path / "family.a3m"
    path.write_text(">q\nMKVLAAGIVG\n>a\nMKWLAAGIVG\n>b\nMKWLSAGIVG\n>c\nMRWLSAGLVG\n")
    found = align(path, "MKWLAAGIVG")
    assert found.query.id == "q" and str(found.query.seq) == "MKVLAAGIVG"
    assert found.score > align("MKVLAAGIVG", "MKWLAAGIVG").score


@pytest.fixture(scope="module")
def dna_parasail():
    """Return a function that scores two genomes with parasail's own interface."""
    import parasail

    matrix = parasail.matrix_create("ACGT", 5, -4)

    def score(query, subject, mode):
        assert max(query.max(), subject.max()) < 4, "only bases have scores here"
        scan = {"global": parasail.nw_scan_32, "local": parasail.sw_scan_32}[mode]
        return scan(DNA.decode(query), DNA.decode(subject), 11, 1, matrix).score

    return score


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", ["global", "local"])
def test_genomes_score_as_parasail_has_it(shared_data, cpu_pairs, dna_parasail, mode):
    """Isolates of a virus, and two viruses that are not related."""
    recurrence = Recurrence(Scoring(dna_matrix(), 10, 1), mode)
    files = ("sarscov2_wuhan-hu-1", "sarscov2_3variants_astar_msa", "lambda_NC_001416", "vzv_NC_001348")
    first, other, phage, herpes = (
        next(iter(read_genomes(shared_data, f"{name}.fasta.xz").values())) for name in files
    )
    pair = cpu_pairs.align(first, other, recurrence)
    assert pair.score == pair.recompute_score() == cpu_pairs.score(first, other, recurrence)
    assert pair.identities > 0.99 * pair.length
    assert dna_parasail(first, other, mode) == pair.score
    assert (len(phage), len(herpes)) == (48_502, 124_884)
    assert cpu_pairs.score(phage, herpes, recurrence) == dna_parasail(phage, herpes, mode)
