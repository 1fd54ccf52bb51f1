"""Letters of structure: scores, E-values from reversed subjects, refusals, and databases that know their letters."""

import json
import random

import numpy as np
import pytest

import swsearch
from support.command_line import fails, run
from swsearch.alphabet import ALPHABETS
from swsearch.db import append_database, merge_databases
from swsearch.errors import DatabaseError, InputError, OptionError, SwsearchError
from swsearch.pipeline.criteria import SAMPLE_SUBJECTS
from swsearch.scoring import Scoring, load_matrix

LETTERS = "ACDEFGHIKLMNPQRSTVWY"

FOLDSEEK = """# 3Di bit/2
# Background (precomputed optional): 0.05 0.05 0.00001
# Lambda     (precomputed optional): 0.35
"""
"""How the matrix file of Foldseek begins."""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Write a matrix as Foldseek has it, with scores of its own."""
    draw, path = random.Random(3), tmp_path_factory.mktemp("matrix") / "own.out"
    scores = {}
    for i, a in enumerate(LETTERS):
        for b in LETTERS[i:]:
            scores[a, b] = scores[b, a] = draw.randint(5, 9) if a == b else draw.randint(-9, 1)
    rows = [f"{a} {' '.join(f'{scores[a, b]:3d}' for b in LETTERS)}   0" for a in LETTERS]
    head = f"    {'   '.join(LETTERS)}   X"
    path.write_text("\n".join([FOLDSEEK + head, *rows, f"X {'  0 ' * 20}  0"]) + "\n")
    return path


def chain(draw, n, stay=0.6):
    """Return letters with runs."""
    letters = [draw.choice(LETTERS)]
    while len(letters) < n:
        letters.append(letters[-1] if draw.random() < stay else draw.choice(LETTERS))
    return "".join(letters)


def changed(draw, letters, share=0.2):
    return "".join(draw.choice(LETTERS) if draw.random() < share else each for each in letters)


@pytest.fixture(scope="module")
def records():
    draw = random.Random(8)
    made = [(f"s{k}", chain(draw, draw.randint(40, 160))) for k in range(120)]
    return [*made, ("relative", "PPP" + changed(draw, made[7][1]) + "DD"), ("helix", "V" * 70)]


@pytest.fixture(scope="module")
def tea(records):
    with swsearch.Database.from_records(records, alphabet="tea") as database:
        yield database


def hits(queries, subjects, **options):
    return [
        [(hit.subject_id, hit.score, hit.evalue) for hit in result.hits]
        for result in swsearch.search(queries, subjects, **{"engine": "cpu"} | options)
    ]


@pytest.mark.parametrize("mode", ["local", "semiglobal", "global"])
def test_engines_agree_with_the_plain_recurrence(records, own, mode):
    queries, some = [("q", records[7][1][:50]), ("helix", "V" * 20)], records[5:12]
    for options in ({"alphabet": "tea"}, {"alphabet": "3di", "matrix": own}):
        asked = {**options, "mode": mode, "evalue": 1e9}
        found = hits(queries, some, **asked)
        assert found == hits(queries, some, **asked, engine="reference")
        assert "s7" in [name for name, *_ in found[0]]


def test_matcha_is_in_half_bits():
    # from the four decimals of matcha.out: 2 * 0.3217 * score / ln 2, rounded
    matrix = load_matrix("MATCHA")
    for pair, decimals in (("AA", 7.3675), ("LL", 9.6818), ("CK", -12.2671), ("HT", 1.7867), ("FT", 0.0047)):
        assert matrix[pair[0], pair[1]] == round(2 * 0.3217 * decimals / np.log(2))
    assert (Scoring(matrix).gap_open, Scoring(matrix).gap_extend) == (15, 3)


def test_case_does_not_matter(tea, records):
    query = records[7][1]
    assert hits(query, tea, alphabet="tea") == hits(query.lower(), tea, alphabet="tea")


def test_scores_are_those_of_the_matrix(own):
    matrix = load_matrix(own)
    query = "ACDVVVW"
    ((_, score, _),) = hits(query, [query], alphabet="3di", matrix=own, evalue=1e9)[0]
    assert score == sum(matrix[letter, letter] for letter in query)


def test_a_relative_is_found_and_a_helix_is_not(tea, records):
    related, helix = hits([("q", records[7][1]), ("h", "V" * 50)], tea, alphabet="tea", evalue=1000)
    evalues = {name: evalue for name, _, evalue in related}
    assert max(evalues["relative"], evalues["s7"]) < 1e-4
    # backwards a helix is itself, and scores as much: one helix more is what chance gives
    assert {name: evalue for name, _, evalue in helix}["helix"] > len(records) / 10
    assert all(evalue > 0.1 for _, _, evalue in helix)


def test_a_helix_finds_itself_by_score(tea):
    ((best, *_),) = hits("V" * 70, tea, alphabet="tea", statistics="none", max_hits=1)
    assert best[:2] == ("helix", 70 * load_matrix("MATCHA")["V", "V"])


def test_shuffling_would_take_every_run_for_a_relative(records):
    draw = random.Random(2)
    queries = [(f"q{k}", chain(draw, 120, 0.8)) for k in range(20)]
    subjects = [(f"s{k}", chain(draw, 150, 0.8)) for k in range(300)]
    as_letters = hits(queries, subjects, alphabet="tea", evalue=1)
    scoring = Scoring(load_matrix(("ARNDCQEGHILKMFPSTWYV", load_matrix("MATCHA").scores[:20, :20])), 15, 3)
    as_proteins = hits(queries, subjects, scoring=scoring, evalue=1, allow_dna=True)
    assert sum(map(len, as_letters)) <= 2 * len(queries)
    assert sum(map(len, as_proteins)) > 10 * sum(map(len, as_letters))


def test_evalues_do_not_follow_from_the_order_of_queries_or_threads(tea, records):
    queries = [(f"q{k}", letters) for k, (_, letters) in enumerate(records[:6])]
    asked = {"alphabet": "tea", "evalue": 50}
    found = hits(queries, tea, **asked)
    assert found == hits(queries[::-1], tea, **asked, threads=1)[::-1]
    assert [each[0] for each in found] == [hits([query], tea, **asked)[0][0] for query in queries]


def test_a_large_database_is_sampled():
    draw = random.Random(1)
    records = [(f"s{k}", chain(draw, 40)) for k in range(2 * SAMPLE_SUBJECTS + 1)]
    ((best, *_),) = hits(records[2000][1], records, alphabet="tea")
    assert best[0] == "s2000"


def test_a_checkpoint_keeps_the_null_models(tea, records, tmp_path):
    asked = {"alphabet": "tea", "evalue": 50, "max_alignments": 2, "checkpoint": tmp_path / "kept"}
    first = hits(records[3][1], tea, **asked)
    assert first == hits(records[3][1], tea, **asked) == hits(records[3][1], tea, **asked | {"checkpoint": None})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alphabet": "3di"}, r"got 3di without a matrix, expected --matrix FILE .* mat3di\.out"),
        (
            {"alphabet": "tea", "matrix": "BLOSUM62"},
            "matrix: got 'BLOSUM62', expected a matrix for the letters of tea",
        ),
        ({"alphabet": "3di", "matrix": "MATCHA"}, "matrix: got 'MATCHA', expected a matrix for the letters of 3di"),
        ({"alphabet": "protein", "matrix": "MATCHA"}, "alphabet: got 'protein', expected tea"),
        ({"alphabet": "tea", "preset": "sensitive"}, "preset: got 'sensitive', expected default"),
        ({"alphabet": "tea", "preset": "context"}, "preset: got 'context', expected default"),
        ({"alphabet": "tea", "contexts": True}, "contexts: got True, expected False with --alphabet tea"),
        ({"alphabet": "tea", "iterations": 2}, "iterations: got 2, expected 1 with --alphabet tea"),
        ({"alphabet": "tea", "keep_profiles": True}, "keep_profiles: got True"),
        ({"alphabet": "tea", "translate": True}, "translate: got True"),
        ({"alphabet": "tea", "query_mask": "tantan"}, "query_mask: got 'tantan', expected none or lower"),
        ({"alphabet": "tea", "subject_mask": "tantan"}, "subject_mask: got 'tantan', expected database, none or"),
        ({"alphabet": "tea", "statistics": "published"}, "no statistics are published for matrix MATCHA"),
        ({"alphabet": "tea", "scoring": Scoring()}, "alphabet: got 'tea', expected none together with scoring"),
        ({"alphabet": "rna"}, "alphabet: got 'rna', expected one of protein, 3di, tea"),
    ],
)
def test_what_is_of_amino_acids_is_refused(tea, options, message):
    with pytest.raises(SwsearchError, match=message):
        list(swsearch.search("ACDVVV", tea, **options))


def test_profiles_are_refused(tea, tmp_path):
    alignment = tmp_path / "rows.a3m"
    alignment.write_text(">q\nACDVVV\n>r\nACD-VV\n")
    with pytest.raises(OptionError, match="expected auto or fasta with --alphabet tea"):
        swsearch.search(alignment, tea, alphabet="tea", query_format="a3m")
    with pytest.raises(InputError, match="Profile"):
        swsearch.search(swsearch.Profile.read(alignment, "a3m"), tea, alphabet="tea")


def test_a_scoring_says_the_alphabet(tea, records, own):
    query = records[7][1]
    by_name = hits(query, tea, alphabet="tea")
    assert by_name == hits(query, tea, matrix="matcha") == hits(query, tea, scoring=Scoring("MATCHA"))
    scoring = Scoring(load_matrix(own, ALPHABETS["3di"]))
    assert hits(query, records, scoring=scoring) == hits(query, records, alphabet="3di", matrix=own)
    scores = swsearch.score([query], tea, scoring=Scoring("MATCHA"), engine="cpu")
    assert scores[0].max() == by_name[0][0][1]
    with pytest.raises(InputError, match="alphabet: got protein, expected tea"):
        swsearch.score([query], tea, engine="cpu")
    assert swsearch.align("AAAC", "AAAC", scoring=Scoring("MATCHA")).score == 28


def test_letters_of_different_kinds_are_not_compared(tea, records, tmp_path):
    with swsearch.Database.from_records(records) as proteins:
        with pytest.raises(InputError, match=r"got tea, expected protein, .* db build --alphabet tea"):
            list(swsearch.search("ACDVVV", proteins, alphabet="tea"))
        with pytest.raises(
            DatabaseError, match=r"holds letters of the alphabet tea.* proteins; search them separately"
        ):
            swsearch.Database.concatenate([proteins, tea])
    with pytest.raises(InputError, match=r"got protein, expected tea, .* search it with --alphabet tea"):
        list(swsearch.search("ACDVVV", tea))
    with pytest.raises(InputError, match="expected tea"):
        swsearch.Searcher(tea, engine="cpu")


@pytest.mark.parametrize("options", [{"translate": True}, {"mask": "tantan"}])
def test_databases_of_letters_have_no_amino_acids(options):
    with pytest.raises(OptionError, match="alphabet: got 'tea', expected protein with"):
        swsearch.Database.from_records(["ACGT"], alphabet="tea", **options)


def test_changed_databases_keep_their_letters(records, tmp_path):
    fasta = tmp_path / "in.fasta"
    fasta.write_text("".join(f">{name}\n{letters}\n" for name, letters in records[:5]))
    more = tmp_path / "more.fasta"
    more.write_text(">more\nVVVVVVVVACDE\n")
    swsearch.Database.build(fasta, tmp_path / "a.h5", alphabet="tea").close()
    append_database(tmp_path / "a.h5", more)
    merge_databases([tmp_path / "a.h5"], tmp_path / "b.h5")
    for name in ("a.h5", "b.h5"):
        with swsearch.Database.open(tmp_path / name) as database:
            assert (database.alphabet, len(database), database.info()["alphabet"]) == ("tea", 6, "tea")
    swsearch.Database.build(fasta, tmp_path / "p.h5").close()
    with swsearch.Database.open(tmp_path / "p.h5") as proteins, swsearch.Database.open(tmp_path / "a.h5") as database:
        assert proteins.identity() != database.identity()


def test_the_command_line(records, own, tmp_path):
    fasta = tmp_path / "in.fasta"
    fasta.write_text("".join(f">{name}\n{letters.lower()}\n" for name, letters in records))
    query = tmp_path / "q.fasta"
    query.write_text(f">q\n{records[7][1]}\n")
    assert run("db", "build", fasta, "-o", tmp_path / "t.h5", "--alphabet", "tea", "-q").returncode == 0
    info = json.loads(run("db", "info", tmp_path / "t.h5", "--json").stdout)
    assert info["alphabet"] == "tea"
    table = "6 sseqid score evalue"
    done = run("search", query, tmp_path / "t.h5", "--alphabet", "tea", "--outfmt", table, "--engine", "cpu")
    assert done.returncode == 0 and "reversed copies of each subject" in done.stderr
    found = [line.split("\t") for line in done.stdout.splitlines()]
    assert [name for name, *_ in found[:2]] == ["s7", "relative"]
    fails(run("search", query, tmp_path / "t.h5"), 1, "alphabet: got protein, expected tea", "--alphabet tea")
    fails(run("search", query, fasta, "--alphabet", "3di"), 1, "without a matrix", "mat3di.out")
    done = run("search", query, fasta, "--alphabet", "3di", "--matrix", own, "-q", "--outfmt", table)
    assert done.stdout.split()[0] == "s7"
    pair = run("align", query, query, "--alphabet", "tea", "--outfmt", "score", "-q")
    assert pair.stdout.split()[-1] == found[0][1]
    fails(run("align", "AAC", "AAC", "--alphabet", "3di"), 1, "mat3di.out")
