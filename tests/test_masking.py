"""Masks: what is scored as X, in queries and subjects, by every way to make a database; and how it is shown."""

import gzip
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import swsearch
from support.cases import make_chunk
from support.samples import random_cases
from swsearch import blocks, reference
from swsearch.alphabet import PROTEIN
from swsearch.cli.main import app
from swsearch.db import append_database, segment, verify_database
from swsearch.errors import InputError
from swsearch.inputs import read_queries
from swsearch.pipeline.hit_alignments import align_hits
from swsearch.scoring import Scoring

QUERY = "MKVLTHEDWRNQYCFGIPSW" + "A" * 14 + "DTRHCENWVQYGFKLSPIMW"
X = PROTEIN.letters.index("X")


def with_x(letters):
    """Put X where letters are in lower case."""
    return re.sub("[a-z]", "X", letters)


def only(results):
    (result,) = results
    return result


UNRATED = {"scoring": Scoring(gap_open=3), "statistics": "none"}
"""So that every subject is a hit."""


def search(query, subjects, **options):
    return only(swsearch.search([query], subjects, **{**UNRATED, "threads": 2, **options}))


mixed = st.text("ARNDCarndc*", min_size=1, max_size=30)


@random_cases(60)
@given(mixed, st.lists(mixed, min_size=1, max_size=140), st.booleans(), st.booleans(), st.sampled_from(["a", "b"]))
def test_masked_letters_score_as_x_and_are_shown_in_lower_case(query, subjects, of_query, of_subjects, way):
    subjects = [f"{letters}A" for letters in subjects]  # a database without residues is an error
    records = [(f"s{place}", letters) for place, letters in enumerate(subjects)]
    masks = {"query_mask": "lower" if of_query else "none"}
    mask = "lower" if of_subjects else "none"
    if way == "a":
        database, masks["subject_mask"] = swsearch.Database.from_records(records), mask
    else:
        database = swsearch.Database.from_records(records, mask=mask)
    with database:
        result = search(query, database, max_hits=1000, **masks)
        seen = PROTEIN.encode(with_x(query) if of_query else query)
        scores = [
            reference.score(seen, PROTEIN.encode(with_x(letters) if of_subjects else letters), Scoring(gap_open=3))
            for letters in subjects
        ]
        assert {hit.subject_index: hit.score for hit in result.hits} == {k: s for k, s in enumerate(scores) if s > 0}
        before = [hit.pair.query_row() for hit in result.hits]
        again = search(query, database, max_hits=1000, **masks)
        align_hits([again], 2)
        for hit, row in zip(again.hits, before, strict=True):
            pair = hit.pair
            assert pair.query_row() == row
            assert pair.rescored() == hit.score
            shown = query if of_query else query.upper()
            assert pair.query_row().replace("-", "") == shown[pair.query_start : pair.query_end]
            letters = subjects[hit.subject_index] if of_subjects else subjects[hit.subject_index].upper()
            assert pair.subject_row().replace("-", "") == letters[pair.subject_start : pair.subject_end]
            top, middle, bottom = pair.rows()
            same = [a.upper() == b.upper() for a, b in zip(top, bottom, strict=True)]
            assert pair.identities == sum(same)
            assert all(m.upper() == a.upper() for a, m, one in zip(top, middle, same, strict=True) if one)
        assert [database.sequence(place) for place in range(len(subjects))] == subjects  # nothing is lost


def test_tantan_masks_low_complexity_of_queries_and_subjects():
    result = search(QUERY, [("s", QUERY)], query_mask="tantan")
    row = result.hits[0].pair.query_row()
    assert re.fullmatch("[A-Z]+a{13}d[A-Z]+", row)
    assert result.hits[0].pair.subject_row() == QUERY
    assert result.asked == {"query_mask": "tantan"}
    assert result.hits[0].identities == len(QUERY)
    assert result.hits[0].score == reference.score(
        PROTEIN.encode(with_x(row)), PROTEIN.encode(QUERY), Scoring(gap_open=3)
    )
    of_subject = search(QUERY, [("s", QUERY)], subject_mask="tantan")
    assert of_subject.hits[0].pair.subject_row() == row
    assert of_subject.hits[0].score == result.hits[0].score
    assert of_subject.asked == {"subject_mask": "tantan"}
    assert str(result.hits[0].alignment.query.seq) == row


@pytest.fixture(params=["file", "memory"])
def database(request, tmp_path):
    path = tmp_path / "s.fasta"
    generator = np.random.default_rng(8)
    lines = []
    for number in range(150):
        letters = list(PROTEIN.decode(generator.integers(0, 20, int(generator.integers(1, 300))).astype(np.uint8)))
        at = int(generator.integers(0, len(letters)))
        letters[at : at + 30] = list("".join(letters[at : at + 30]).lower()) + ["A"] * (30 if number % 3 == 0 else 0)
        lines.append(f">s{number}\n{''.join(letters)}\n")
    path.write_text("".join(lines) + ">empty\n")
    if request.param == "memory":
        made = swsearch.Database.from_fasta([path], mask="tantan")
    else:
        made = swsearch.Database.build([path], tmp_path / "s.h5", mask="tantan")
    with made:
        yield made


@pytest.mark.parametrize("mask", blocks.MASKS)
@pytest.mark.parametrize(("size", "at_once"), [(1, 1 << 20), (1 << 30, 1)])
def test_chunks_are_masked_and_nothing_else(database, mask, size, at_once, monkeypatch):
    monkeypatch.setattr(segment, "MASKED_AT_ONCE", at_once)
    find = blocks.tantan()
    for chunk in database.chunks(size, mask=mask):
        for place, subject in enumerate(chunk.subjects.tolist()):
            codes = database.codes(subject)
            runs = {"none": [], "tantan": find(codes), "lower": database.masked(subject, "lower")}[mask]
            assert database.masked(subject, mask) == runs
            assert np.array_equal(chunk.subject(place), blocks.masked_codes(codes, runs))
        unmasked = make_chunk([chunk.subject(place) for place in range(chunk.n_subjects)])
        assert np.array_equal(unmasked.residues, chunk.residues)  # padding is as it was
    assert sum(len(database.masked(subject, "tantan")) for subject in range(database.n_subjects)) > 20
    own = [chunk.residues for chunk in database.chunks(1 << 30)]
    assert np.array_equal(own[0], next(database.chunks(1 << 30, mask="tantan")).residues)


def test_a_database_says_what_is_in_force_and_append_keeps_it(tmp_path):
    path, fasta = tmp_path / "d.h5", tmp_path / "s.fasta"
    fasta.write_text(f">one\n{QUERY}\n>two\nMKVlaa\n")
    for mask in ("none", "lower", "tantan"):
        with swsearch.Database.build([fasta], path, mask=mask) as made:
            info = made.info()
            assert (info["mask"], info["n_masked"]) == (mask, 3)
            assert ("n_tantan" in info) == (mask == "tantan")
        append_database(path, [fasta], on_duplicate="keep")
        verify_database(path)
        with swsearch.Database.open(path) as opened:
            assert opened.mask == mask
            assert opened.sequence(3) == "MKVlaa"
            assert opened.masked(2, opened.mask) == opened.masked(0, opened.mask)
            found = [chunk.residues[chunk.residues == X].size for chunk in opened.chunks(1 << 30)]
            assert sum(found) == {"none": 0, "lower": 6, "tantan": opened.info().get("n_tantan")}[mask]
            scores = swsearch.score(QUERY, opened)
            assert (scores[0, 0] == scores.max()) and scores[0, 0] == scores[0, 2]


def test_without_pytantan(monkeypatch):
    monkeypatch.setitem(sys.modules, "pytantan", None)
    with pytest.raises(InputError, match=r"mask: tantan needs pytantan, .*pip install 'swsearch\[mask\]'"):
        search(QUERY, [("s", QUERY)], query_mask="tantan")
    assert search(QUERY.lower(), [("s", QUERY)], query_mask="lower").hits == []


def run(*arguments, code=0):
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == code, done.output
    return done.stdout


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("tantan") is None, reason="tantan is not installed")
def test_tantan_itself_masks_the_same(examples):
    with swsearch.Database.from_fasta([examples / "data" / "swissprot_sample.fasta.gz"], mask="tantan") as made:
        fasta = "".join(f">{place}\n{PROTEIN.decode(made.codes(place))}\n" for place in range(made.n_subjects))
        done = subprocess.run(["tantan", "-p", "-"], input=fasta, capture_output=True, text=True, check=True)
        theirs = ["".join(entry.split("\n")[1:]) for entry in done.stdout.split(">")[1:]]
        ours = [
            blocks.shown_letters(made.codes(place), made.masked(place, "tantan")).tobytes().decode()
            for place in range(made.n_subjects)
        ]
        # pytantan takes X for another letter than the program does
        plain = [place for place in range(len(ours)) if not re.search("[BJZXUO*]", theirs[place].upper())]
        assert len(plain) > 3000
        assert [place for place in plain if ours[place] != theirs[place]] == []
        assert sum(letter >= "a" for place in plain for letter in ours[place]) > 10_000


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("blastp") is None, reason="blastp is not installed")
def test_blastp_scores_masked_queries_the_same(examples, tmp_path):
    find = blocks.tantan()
    records = []
    for query in read_queries(examples / "data" / "queries.fasta"):
        third = len(query.codes) // 3
        letters = blocks.shown_letters(query.codes, [*find(query.codes), (third, third + 25)])
        records.append(f">{query.identifier}\n{letters.tobytes().decode()}\n")
    (tmp_path / "q.fasta").write_text("".join(records))
    subjects = examples / "data" / "swissprot_sample.fasta.gz"
    with gzip.open(subjects) as packed:
        (tmp_path / "s.fasta").write_bytes(packed.read())
    columns = "6 qseqid sseqid score evalue bitscore"
    # lower case is X to it where masking is not soft
    masks = ["-lcase_masking", "-soft_masking", "false", "-seg", "no", "-comp_based_stats", "0"]
    sizes = ["-dbsize", "1289928", "-max_hsps", "1"]
    found = subprocess.run(
        ["blastp", "-query", "q.fasta", "-subject", "s.fasta", *masks, *sizes, "-outfmt", columns],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    options = "--query-mask", "lower", "--statistics", "published", "--outfmt", columns, "--quiet"
    ours = run("search", tmp_path / "q.fasta", subjects, *options)
    theirs = {tuple(row.split("\t")[:2]): row.split("\t")[2:] for row in found.splitlines()}
    own = {tuple(row.split("\t")[:2]): row.split("\t")[2:] for row in ours.splitlines()}
    both = [pair for pair in theirs if pair in own]
    assert len(both) > 100
    assert [(pair, theirs[pair], own[pair]) for pair in both if theirs[pair] != own[pair]] == []
