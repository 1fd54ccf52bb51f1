"""Profiles and alignments as queries: wherever queries are taken, alone and among sequences."""

from __future__ import annotations

import gzip
import io
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import swsearch
from swsearch import reference
from swsearch.alphabet import PROTEIN
from swsearch.errors import InputError, OptionError
from swsearch.inputs import read_queries
from swsearch.profiles.msa_readers import read_stockholm, rows_of
from swsearch.profiles.profile import Profile
from swsearch.profiles.text_lines import TextFile
from swsearch.scoring import Scoring
from tests.support.command_line import fails, run

DATA = Path(__file__).parent / "data"
SUBJECTS = [("same", "GKELVLALYDYQEKSPDEVTMKKGDILTLLNSTNKDWWKVEVNDRQGFVPAAYVKKLD"), ("other", "MKVLAAGIVGWW" * 3)]
SCORING = Scoring()


@pytest.fixture(scope="module")
def profile() -> Profile:
    return Profile.read(DATA / "sh3.asn.gz")


def expected(profile: Profile) -> list[int]:
    return [reference.score(profile.rows(SCORING), PROTEIN.encode(letters), SCORING) for _, letters in SUBJECTS]


def test_a_profile_is_a_query_everywhere(profile: Profile) -> None:
    wanted = expected(profile)
    assert swsearch.score(profile, SUBJECTS, engine="cpu").tolist() == [wanted]
    (result,) = swsearch.search(profile, SUBJECTS, engine="cpu", statistics="none")
    assert [hit.score for hit in result.hits] == wanted
    assert result.profile is profile
    with swsearch.Searcher(SUBJECTS, engine="cpu", statistics="none") as searcher:
        assert [hit.score for hit in searcher.search([profile])[0].hits] == wanted


def test_profiles_stand_among_sequences(profile: Profile) -> None:
    alignment = read_stockholm(TextFile.from_bytes("f", (DATA / "sh3.sto").read_bytes()))[0]
    found = swsearch.score([("a", "MKVLAAGIVG"), profile, alignment], SUBJECTS, engine="cpu")
    assert found[1].tolist() == expected(profile)
    assert found[0].tolist() == swsearch.score("MKVLAAGIVG", SUBJECTS, engine="cpu")[0].tolist()
    assert found[2].tolist() == expected(Profile.from_alignment(alignment))
    assert [query.identifier for query in read_queries({"a": "MKV", "b": profile}, scoring=SCORING)] == ["a", "b"]


@pytest.mark.parametrize("name", ["sh3.asn.gz", "sh3.sto", "sh3.hhm"])
def test_a_file_of_profiles_is_a_query(name: str) -> None:
    wanted = [expected(Profile.read(DATA / name))]
    assert swsearch.score(DATA / name, SUBJECTS, engine="cpu").tolist() == wanted
    data = (DATA / name).read_bytes()
    opened = io.BytesIO(gzip.decompress(data) if name.endswith(".gz") else data)
    assert swsearch.score(opened, SUBJECTS, engine="cpu").tolist() == wanted


def test_profiles_are_no_subjects(profile: Profile) -> None:
    with pytest.raises(InputError, match="got a Profile"):
        list(swsearch.search("MKV", [profile], engine="cpu"))
    with pytest.raises(InputError, match="got a Profile, expected a sequence; only queries may be profiles"):
        read_queries([profile], what="b")
    with pytest.raises(
        OptionError, match="query_format: got 'a3m', expected auto for queries that are not in a file"
    ):
        swsearch.score(["MKV"], SUBJECTS, query_format="a3m", engine="cpu")


def test_gap_costs_of_profiles_are_taken(profile: Profile) -> None:
    cheap = replace(profile, gap_open=7, gap_extend=2)
    (result,) = swsearch.search(cheap, SUBJECTS, engine="cpu", statistics="none")
    assert (result.scoring.gap_open, result.scoring.gap_extend) == (7, 2)
    (result,) = swsearch.search(cheap, SUBJECTS, engine="cpu", statistics="none", scoring=Scoring())
    assert (result.scoring.gap_open, result.scoring.gap_extend) == (11, 1)
    anything = replace(profile, gap_open=None, gap_extend=None, identifier="any")
    (*_, result) = swsearch.search([anything, cheap], SUBJECTS, engine="cpu", statistics="none")
    assert result.scoring.gap_open == 7
    message = "got BLOSUM62 7/2 from cheap and BLOSUM62 11/1 from {}, expected one matrix and equal gap costs"
    cheap = replace(cheap, identifier="cheap")
    for other, name in (([profile], "d3m0ra_"), ([("seq", "MKV")], "seq")):
        with pytest.raises(InputError, match=message.format(name)):
            swsearch.score([cheap, *other], SUBJECTS, engine="cpu")
        assert len(swsearch.score([cheap, *other], SUBJECTS, engine="cpu", scoring=Scoring())) == 2
    with swsearch.Searcher(SUBJECTS, engine="cpu", statistics="none") as searcher:
        assert searcher.search(cheap)[0].scoring == result.scoring
        assert searcher.search("MKV")[0].scoring == Scoring()


def test_a_profile_of_another_matrix_is_refused(profile: Profile) -> None:
    with pytest.raises(
        InputError, match=r"0.3176 nats, expected 0.2224 nats as in PFASUM60; search with --matrix BLOSUM62"
    ):
        swsearch.score(profile, SUBJECTS, preset="sensitive", engine="cpu")
    assert len(swsearch.score(replace(profile, lambda_=None), SUBJECTS, preset="sensitive", engine="cpu")) == 1


def test_masked_positions_of_a_profile_score_as_x(profile: Profile) -> None:
    (query,) = read_queries([profile], scoring=SCORING)
    lower = replace(query, lower=((1, 3),)).with_mask("lower")
    rows = lower.rows(SCORING).scores
    assert (rows[1:3, :20] == -1).all()
    assert np.array_equal(rows[3:, :27], profile.scores[3:])


def test_the_command_line_takes_them(tmp_path: Path) -> None:
    subjects = tmp_path / "s.fasta"
    subjects.write_text("".join(f">{name}\n{letters}\n" for name, letters in SUBJECTS))
    wanted = [str(score) for score in expected(Profile.read(DATA / "sh3.sto"))]
    options = [subjects, "--engine", "cpu", "--threads", "1", "--outfmt", "6 qseqid score", "--statistics", "none"]
    done = run("search", DATA / "sh3.sto", *options)
    assert done.returncode == 0, done.stderr
    assert [line.split("\t") for line in done.stdout.splitlines()] == [["d3m0ra_", score] for score in wanted]
    assert "d3m0ra_: made of the query and" in done.stderr
    fails(run("search", DATA / "sh3.sto", *options, "--query-format", "hhm"), 1, "line 1: expected 'HHsearch'")


@pytest.mark.peer
def test_psiblast_scores_its_own_matrix_the_same(tmp_path: Path) -> None:
    """Where its search found the alignment that is the best one, which it did for all of the family."""
    psiblast = shutil.which("psiblast")
    if psiblast is None:
        pytest.skip("psiblast is not installed")
    (alignment,) = read_stockholm(TextFile.from_bytes("f", (DATA / "sh3.sto").read_bytes()))
    subjects = tmp_path / "s.fasta"
    rows = [row.replace("-", "").upper() for row in rows_of(alignment)]
    subjects.write_text("".join(f">s{k}\n{letters}\n" for k, letters in enumerate(rows)))
    (tmp_path / "p.asn").write_bytes(gzip.decompress((DATA / "sh3.asn.gz").read_bytes()))
    options = ["-comp_based_stats", "0", "-seg", "no", "-outfmt", "6 sseqid score qstart qend sstart send"]
    command = [psiblast, "-in_pssm", tmp_path / "p.asn", "-subject", subjects, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    theirs = {line.split()[0]: [int(word) for word in line.split()[1:]] for line in done.stdout.splitlines() if line}
    (result,) = swsearch.search(tmp_path / "p.asn", subjects, engine="cpu", statistics="none")
    ours = {}
    for hit in result.hits:
        (query_start, query_end), (start, end) = hit.query_range, hit.subject_range
        ours[hit.subject_id] = [hit.score, query_start + 1, query_end, start + 1, end]
    assert len(theirs) >= 8
    assert {name: ours[name] for name in theirs} == theirs
