"""Filters of hits: exactly the best that pass, by every engine and mode, and from the command line."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import swsearch
from support.cases import any_codes
from support.samples import random_cases
from swsearch.alphabet import PROTEIN
from swsearch.cli.main import app
from swsearch.errors import InputError, OptionError
from swsearch.options.kinds import MODES
from swsearch.pipeline import hits
from swsearch.pipeline.filters import HitFilters
from swsearch.pipeline.table.values import read_identifiers
from swsearch.scoring import Scoring

SUBJECTS = [
    ("a", "MKVLAAGIVGWW"),
    ("b", "WWPPWWPP"),
    ("c", "MKVLAAGIVGWW"),
    ("d", ""),
    ("e", "MKVAAGIVGW"),
    ("c", "MKV"),
]


def only(results):
    (result,) = results
    return result


def numbers(result):
    return [(hit.score, hit.subject_index) for hit in result.hits]


def search(query, subjects, **options):
    options = {"scoring": Scoring(gap_open=3), "statistics": "none", **options}  # every subject is a candidate
    return only(swsearch.search(query, subjects, threads=2, **options))


percentages = st.one_of(st.none(), st.sampled_from([0.0, 10.0, 50.0, 99.9, 100.0]))


@random_cases(60)
@given(
    any_codes(25, 1),
    st.lists(any_codes(25, 1), min_size=1, max_size=90),
    st.sampled_from(MODES),
    st.integers(1, 100),
    st.one_of(st.none(), st.integers(-20, 40)),
    percentages,
    percentages,
    percentages,
    st.lists(st.integers(0, 89), max_size=20),
    st.booleans(),
)
def test_the_best_that_pass_are_reported(
    query, subjects, mode, max_hits, score, identity, of_query, of_subject, named, excluded
):
    records = [(f"s{place}", PROTEIN.decode(codes)) for place, codes in enumerate(subjects)]
    ids = [f"s{place}" for place in named if place < len(records)]
    options = {
        "min_score": score,
        "min_identity": identity,
        "min_query_coverage": of_query,
        "min_subject_coverage": of_subject,
    }
    if ids and len(set(ids)) < len(records):
        options["exclude_ids" if excluded else "include_ids"] = ids
    everything = search(PROTEIN.decode(query), records, mode=mode, max_hits=1000).hits

    def passes(hit):
        pair = hit.pair
        return (
            (score is None or hit.score >= score)
            and 100 * pair.identities >= (identity or 0) * pair.length
            and 100 * (pair.query_end - pair.query_start) >= (of_query or 0) * hit.query_length
            and 100 * (pair.subject_end - pair.subject_start) >= (of_subject or 0) * hit.subject_length
            and ("include_ids" not in options or hit.subject_id in ids)
            and ("exclude_ids" not in options or hit.subject_id not in ids)
        )

    expected = [(hit.score, hit.subject_index) for hit in everything if passes(hit)][:max_hits]
    found = search(PROTEIN.decode(query), records, mode=mode, max_hits=max_hits, **options)
    assert numbers(found) == expected
    assert all(passes(hit) for hit in found.hits)


def test_candidates_behind_the_first_ones_are_found(monkeypatch):
    monkeypatch.setattr(hits, "MIN_ALIGNED", 2)
    monkeypatch.setattr(hits, "MAX_ALIGNED", 3)
    query = "MKVLAAGIVGWWHHRK"
    # long ones that score more, and are less alike; then short identical ones
    subjects = [query[:9] + "P" + query[10:] for _ in range(20)] + [query[:8]] * 5
    assert (
        numbers(search(query, subjects, max_hits=3, min_identity=100))
        == [(score, place) for score, place in numbers(search(query, subjects, max_hits=100)) if place >= 20][:3]
    )


def test_filters_go_with_fitted_statistics():
    generator = np.random.default_rng(5)
    letters = PROTEIN.letters
    subjects = ["".join(letters[k] for k in generator.integers(0, 20, n)) for n in generator.integers(20, 60, 600)]
    for mode in ("global", "semiglobal"):
        everything = only(swsearch.search(subjects[7], subjects, mode=mode, evalue=500, max_hits=600))
        assert everything.statistics is not None
        middle = everything.hits[len(everything.hits) // 2]
        found = only(
            swsearch.search(subjects[7], subjects, mode=mode, evalue=500, min_score=middle.score, max_hits=600)
        )
        assert numbers(found) == [pair for pair in numbers(everything) if pair[0] >= middle.score]
        kept = [hit.evalue for hit in everything.hits if hit.score >= middle.score]
        assert [hit.evalue for hit in found.hits] == kept
        name = everything.hits[0].subject_id
        found = only(swsearch.search(subjects[7], subjects, mode=mode, evalue=500, exclude_ids=[name], max_hits=600))
        assert numbers(found) == numbers(everything)[1:]


def test_ids_name_all_subjects_that_have_them(tmp_path):
    path = tmp_path / "ids.txt"
    path.write_bytes(b"\xef\xbb\xbfc\r\n\r\n  e \r\nc\r\n")
    assert read_identifiers(path, "include_ids") == ("c", "e")
    assert sorted(hit.subject_index for hit in search("MKVLAAGIVG", SUBJECTS, include_ids=str(path)).hits) == [
        2,
        4,
        5,
    ]
    assert sorted(hit.subject_index for hit in search("MKVLAAGIVG", SUBJECTS, exclude_ids=["c"]).hits) == [0, 4]


def test_ids_that_were_not_utf8(tmp_path):
    fasta, path = tmp_path / "s.fasta", tmp_path / "ids"
    fasta.write_bytes(b">pr\xe9 x\nMKVLAAGIVG\n>other\nMKVLAAGIVG\n")
    path.write_bytes(b"pr\xe9\n")
    assert [hit.subject_id for hit in search("MKVLAAGIVG", fasta, include_ids=path).hits] == ["pr\xe9"]
    with swsearch.Database.from_fasta([fasta]) as database:
        assert database.find_many(["other", "\ud800", "pr\xe9", ""]) == [[1], [], [0], []]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_identity": 101}, r"min_identity: got 101, expected a percentage, 0 to 100"),
        ({"min_query_coverage": float("nan")}, r"min_query_coverage: got nan"),
        ({"min_subject_coverage": -1}, r"min_subject_coverage: got -1"),
        ({"min_score": float("nan")}, r"min_score: got nan"),
        ({"include_ids": "no/such/file"}, r"include_ids: no/such/file: cannot be read: No such file"),
        ({"include_ids": []}, r"include_ids: no identifiers found, expected at least one"),
        (
            {"exclude_ids": ["x1", "a", "x2", "x3", "x4"]},
            r"exclude_ids: 4 of 5 identifiers not found in <memory>: 'x1', 'x2', 'x3', \.\.\.; "
            "expected identifiers or accessions; use --ignore-missing-ids to skip the missing ones",
        ),
        ({"include_ids": ["a"], "exclude_ids": ["a"]}, r"include_ids, exclude_ids: no subject of <memory> is left"),
    ],
)
def test_bad_filters(options, message):
    with pytest.raises(InputError, match=message):
        search("MKVLAAGIVG", SUBJECTS, **options)


def test_what_was_asked_for_is_described():
    assert only(swsearch.search("MKVLAAGIVG", SUBJECTS)).options == {}
    found = only(swsearch.search("MKVLAAGIVG", SUBJECTS, min_score=5, min_identity=30.5, include_ids=("a", "b")))
    assert found.options == {"min_score": 5, "min_identity": 30.5, "include_ids": "2 identifiers"}
    with pytest.raises(OptionError):
        HitFilters(min_identity=-0.5)


def run(*arguments):
    done = CliRunner().invoke(app, [*map(str, arguments), "--engine", "cpu", "--quiet"])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_command_line_filters_and_says_so(examples):
    data = examples / "data"
    files = "search", data / "queries.fasta", data / "swissprot_sample.fasta.gz", "--max-hits", 4
    filters = "--min-identity", 80, "--min-query-coverage", 99, "--min-subject-coverage", 50, "--min-score", 600
    rows = [line.split("\t") for line in run(*files, *filters, "--outfmt", "6 pident qcovs score").splitlines()]
    assert len(rows) > 4
    assert all(float(row[0]) >= 80 and int(row[1]) >= 99 and int(row[2]) >= 600 for row in rows)
    said = "min_score 600, min_identity 80.0, min_query_coverage 99.0, min_subject_coverage 50.0"
    assert f"\n# Options: {said}\n" in run(*files, *filters, "--outfmt", 7)
    assert f"Options: {said}"[:40] in run(*files, *filters, "--outfmt", 0)
    parameters = json.loads(run(*files, *filters, "--outfmt", "jsonl").splitlines()[0])["parameters"]
    assert parameters["min_query_coverage"] == 99.0
    assert "Options" not in run(*files, "--outfmt", 7)


def test_ids_on_the_command_line(examples, tmp_path):
    data = examples / "data"
    files = "search", data / "queries.fasta", data / "swissprot_sample.fasta.gz"
    ids = [line.split("\t")[0] for line in run(*files, "--outfmt", "6 sseqid").splitlines()]
    (tmp_path / "ids").write_text(f"{ids[0]}\n")
    included = run(*files, "--include-ids", tmp_path / "ids", "--outfmt", "6 sseqid").split()
    assert set(included) == {ids[0]}
    excluded = run(*files, "--exclude-ids", tmp_path / "ids", "--outfmt", "6 sseqid").split()
    assert excluded == [name for name in ids if name != ids[0]]
