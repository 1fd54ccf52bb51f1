"""Masks: what is scored as X, in queries and subjects, by every way to make a database; and how it is shown."""

import gzip
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import swsearch
from support.cases import make_chunk
from support.db_helpers import change_contents
from support.samples import random_cases
from swsearch import blocks, reference
from swsearch.alphabet import PROTEIN
from swsearch.cli.main import app
from swsearch.db import append_database, segment, verify_database
from swsearch.errors import DatabaseDamageError, InputError, OptionError
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
            assert pair.recompute_score() == hit.score
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
    assert result.options == {"query_mask": "tantan"}
    assert result.hits[0].identities == len(QUERY)
    assert result.hits[0].score == reference.score(
        PROTEIN.encode(with_x(row)), PROTEIN.encode(QUERY), Scoring(gap_open=3)
    )
    of_subject = search(QUERY, [("s", QUERY)], subject_mask="tantan")
    assert of_subject.hits[0].pair.subject_row() == row
    assert of_subject.hits[0].score == result.hits[0].score
    assert of_subject.options == {"subject_mask": "tantan"}
    assert str(result.hits[0].alignment.query.seq) == row


def test_further_alignments_are_masked_too():
    query = "MKVLAAGIVGWWHHRKDE"
    hit = search(query, [("s", query + "ppgg" + query.lower())], subject_mask="lower", max_alignments=3).hits[0]
    assert hit.hsps[0].pair.subject_row() == query
    assert all(re.search("[a-z]", hsp.pair.subject_row()) is None for hsp in hit.hsps)
    hit = search(query, [("s", query + "ppgg" + query.lower())], max_alignments=2).hits[0]
    assert [hsp.score for hsp in hit.hsps] == [hit.score] * 2


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


@pytest.mark.parametrize("at_once", [1, 1 << 20])
@pytest.mark.parametrize("mask", blocks.MASKS)
@pytest.mark.parametrize("size", [1, 1 << 30])
def test_chunks_are_masked_and_nothing_else(database, mask, size, at_once, monkeypatch):
    monkeypatch.setattr(segment, "MASKED_RUNS_PER_BATCH", at_once)
    find = blocks.tantan_finder()
    for chunk in database.chunks(size, mask=mask):
        for place, subject in enumerate(chunk.subjects.tolist()):
            codes = database.codes(subject)
            runs = {"none": [], "tantan": find(codes), "lower": database.masked_runs(subject, "lower")}[mask]
            assert database.masked_runs(subject, mask) == runs
            assert np.array_equal(chunk.subject(place), blocks.apply_mask(codes, runs))
        unmasked = make_chunk([chunk.subject(place) for place in range(chunk.n_subjects)])
        assert np.array_equal(unmasked.residues, chunk.residues)  # padding is as it was
    assert sum(len(database.masked_runs(subject, "tantan")) for subject in range(database.n_subjects)) > 20
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
            assert opened.masked_runs(2, opened.mask) == opened.masked_runs(0, opened.mask)
            found = [chunk.residues[chunk.residues == X].size for chunk in opened.chunks(1 << 30)]
            assert sum(found) == {"none": 0, "lower": 6, "tantan": opened.info().get("n_tantan")}[mask]
            scores = swsearch.score(QUERY, opened)
            assert (scores[0, 0] == scores.max()) and scores[0, 0] == scores[0, 2]


def test_a_mask_that_was_written_wrongly_is_found(tmp_path):
    path, fasta = tmp_path / "d.h5", tmp_path / "s.fasta"
    fasta.write_text(f">one\n{QUERY}\n")
    swsearch.Database.build([fasta], path, mask="tantan").close()
    change_contents(path, lambda piece: piece.update(mask="dust"))
    with pytest.raises(DatabaseDamageError, match="mask is 'dust', expected one of none, lower, tantan"):
        swsearch.Database.open(path)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"query_mask": "seg"}, OptionError, "query_mask: got 'seg', expected one of none, lower, tantan"),
        (
            {"subject_mask": "seg"},
            OptionError,
            "subject_mask: got 'seg', expected one of database, none, lower, tantan",
        ),
    ],
)
def test_unknown_masks(options, error, message):
    with pytest.raises(error, match=message):
        search(QUERY, [("s", QUERY)], **options)


def test_tantan_of_every_letter():
    """It knows no ``*``, which ends many a translated sequence."""
    find = blocks.tantan_finder()
    assert find(PROTEIN.encode(PROTEIN.letters.encode())) == []
    assert find(PROTEIN.encode(b"M*" + b"AC" * 20 + b"*")) == find(PROTEIN.encode(b"MX" + b"AC" * 20 + b"X")) != []


def test_tantan_of_a_database_that_was_built_without_it():
    with swsearch.Database.from_records([("s", QUERY)]) as made:
        with pytest.raises(InputError, match="<memory> was built without tantan; build it with: swsearch db build"):
            search(QUERY, made, subject_mask="tantan")
        assert search(QUERY, made, subject_mask="lower").options == {"subject_mask": "lower"}


def test_without_pytantan(monkeypatch):
    monkeypatch.setitem(sys.modules, "pytantan", None)
    with pytest.raises(InputError, match=r"mask: tantan needs pytantan, .*pip install 'swsearch\[mask\]'"):
        search(QUERY, [("s", QUERY)], query_mask="tantan")
    assert search(QUERY.lower(), [("s", QUERY)], query_mask="lower").hits == []


def test_queries_know_their_lower_case(tmp_path):
    path = tmp_path / "q.fasta"
    path.write_text(">q\nMKvl\naaG*w\n")
    for given_ in (path, ("q", "MKvl\naa G*w"), [("q", "MKvlaaG*w")]):
        query = read_queries(given_)[0]
        assert query.lower == ((2, 6), (8, 9))
        masked = query.with_mask("lower")
        assert PROTEIN.decode(masked.codes) == "MKXXXXG*X"
        assert masked.letters.tobytes() == b"MKvlaaG*w"
        assert query.with_mask("none") is query
    assert read_queries("MKVL")[0].lower == ()


def run(*arguments, code=0):
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == code, done.output
    return done.stdout


def test_masks_on_the_command_line(tmp_path):
    (tmp_path / "q").write_text(f">q\n{QUERY[:20] + QUERY[20:26].lower() + QUERY[26:]}\n")
    (tmp_path / "s").write_text(f">s\n{QUERY}\n")
    path = tmp_path / "s.h5"
    run("db", "build", tmp_path / "s", "-o", path, "--mask", "tantan", "--quiet")
    assert re.search(r"^mask +tantan$", run("db", "info", path), re.MULTILINE)
    assert run("db", "fetch", path, "s").split("\n")[1] == QUERY
    files = "search", tmp_path / "q", path, "--engine", "cpu", "--quiet", "--evalue", "1e6"
    rows = {
        masks: run(*files, *masks, "--outfmt", "6 qseq sseq").split()
        for masks in [(), ("--subject-mask", "none"), ("--query-mask", "lower", "--subject-mask", "none")]
    }
    assert [[any(letter.islower() for letter in row) for row in pair] for pair in rows.values()] == [
        [False, True],
        [False, False],
        [True, False],
    ]
    assert "# Options: query_mask lower, subject_mask tantan\n" in run(*files, "--query-mask", "lower", "--outfmt", 7)
    parameters = json.loads(run(*files, "--outfmt", "jsonl"))["parameters"]
    assert parameters["subject_mask"] == "tantan"
    assert "subject_mask tantan" in run(*files, "--outfmt", 0)
    # a FASTA file is masked when it is read
    assert run("search", tmp_path / "q", tmp_path / "s", *files[3:], "--subject-mask", "tantan") == run(*files)


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("tantan") is None, reason="tantan is not installed")
def test_tantan_itself_masks_the_same(examples):
    with swsearch.Database.from_fasta([examples / "data" / "swissprot_sample.fasta.gz"], mask="tantan") as made:
        fasta = "".join(f">{place}\n{PROTEIN.decode(made.codes(place))}\n" for place in range(made.n_subjects))
        done = subprocess.run(["tantan", "-p", "-"], input=fasta, capture_output=True, text=True, check=True)
        theirs = ["".join(entry.split("\n")[1:]) for entry in done.stdout.split(">")[1:]]
        ours = [
            blocks.letters_with_mask(made.codes(place), made.masked_runs(place, "tantan")).tobytes().decode()
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
    find = blocks.tantan_finder()
    records = []
    for query in read_queries(examples / "data" / "queries.fasta"):
        third = len(query.codes) // 3
        letters = blocks.letters_with_mask(query.codes, [*find(query.codes), (third, third + 25)])
        records.append(f">{query.identifier}\n{letters.tobytes().decode()}\n")
    (tmp_path / "q.fasta").write_text("".join(records))
    subjects = examples / "data" / "swissprot_sample.fasta.gz"
    with gzip.open(subjects) as packed:
        (tmp_path / "s.fasta").write_bytes(packed.read())
    columns = "6 qseqid sseqid score evalue bitscore"
    # lower case is X to it where masking is not soft
    masks = ["-lcase_masking", "-soft_masking", "false", "-seg", "no", "-comp_based_stats", "0"]
    sizes = ["-dbsize", "1230410", "-max_hsps", "1"]
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
    differ = [(theirs[pair], own[pair]) for pair in both if theirs[pair] != own[pair]]
    assert len(differ) <= 1 and all(int(found[0]) < int(exact[0]) for found, exact in differ)  # what it misses


def test_every_format_says_what_was_masked_and_shows_the_letters(tmp_path):
    (tmp_path / "q.fasta").write_text(f">q\n{QUERY[:15].lower()}{QUERY[15:]}\n")
    (tmp_path / "s.fasta").write_text(f">s\n{QUERY}\n")
    names = [f"hits.{ending}" for ending in ("xml", "json", "jsonl", "html", "sam", "parquet", "tsv")]
    outputs = [part for name in names for part in ("-o", tmp_path / name)]
    run("search", tmp_path / "q.fasta", tmp_path / "s.fasta", "--query-mask", "lower", *outputs, "--quiet")
    text = {name[5:]: (tmp_path / name).read_bytes().decode("utf-8", "replace") for name in names}
    row = QUERY[:15].lower() + QUERY[15:]
    hit = json.loads(text["jsonl"])["hits"][0]
    row = row[hit["query_start"] : hit["query_end"]]
    assert hit["query_row"] == row
    assert "<Parameters_filter>query_mask lower</Parameters_filter>" in text["xml"]
    assert f"<Hsp_qseq>{row}</Hsp_qseq>" in text["xml"]
    found = json.loads(text["json"])["BlastOutput2"][0]["report"]
    assert found["params"]["filter"] == "query_mask lower"
    assert found["results"]["search"]["hits"][0]["hsps"][0]["qseq"] == row
    assert "<dd>query_mask lower</dd>" in text["html"]
    assert f'"sequence":"{QUERY[:15].lower()}{QUERY[15:]}"' in text["html"]
    assert f'"subject":"{QUERY[hit["subject_start"] : hit["subject_end"]]}"' in text["html"]
    assert "; query_mask lower;" in text["sam"]
    assert f"\t{QUERY}\t" in text["sam"]
    about = json.loads(pyarrow.parquet.read_schema(tmp_path / "hits.parquet").metadata[b"swsearch"])
    assert about["parameters"]["query_mask"] == "lower"
