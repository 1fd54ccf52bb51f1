"""``swsearch search --iterations``: what it writes, saves and says."""

from __future__ import annotations

import json
import random

import pytest

from support.command_line import fails, run
from swsearch.alphabet import PROTEIN

AMINO_ACIDS = PROTEIN.letters[:20]


def mutated(rng, letters, rate):
    return "".join(rng.choice(AMINO_ACIDS) if rng.random() < rate else letter for letter in letters)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A family, whose members are ever less alike, and random sequences; queries of it and of none."""
    rng = random.Random(11)
    founder = "".join(rng.choices(AMINO_ACIDS, k=70))
    records = [(f"f{k}", mutated(rng, founder, 0.06 * k)) for k in range(12)]
    records += [(f"r{k}", "".join(rng.choices(AMINO_ACIDS, k=50))) for k in range(40)]
    folder = tmp_path_factory.mktemp("iterations")
    subjects, queries = folder / "subjects.fasta", folder / "queries.fasta"
    subjects.write_text("".join(f">{name} a member\n{letters}\n" for name, letters in records))
    chosen = [records[9], ("none", "WWWWWCCCCCWWWWW"), records[0]]
    queries.write_text("".join(f">{name}\n{letters}\n" for name, letters in chosen))
    return queries, subjects, folder


def search(files, *arguments, queries=None):
    done = run("search", queries or files[0], files[1], *arguments)
    assert done.returncode == 0, done.stderr
    return done


def test_tables_say_which_iteration_found_a_hit_if_that_is_asked_for(files):
    done = search(files, "--iterations", 3, "--outfmt", "6 qseqid sseqid evalue iteration")
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert {int(row[3]) for row in rows} > {1}
    assert "3 queries, " in done.stderr
    assert " converged" in done.stderr
    plain = search(files, "--outfmt", "6 qseqid sseqid evalue iteration")
    assert {line.split("\t")[3] for line in plain.stdout.splitlines()} == {"1"}
    assert "iteration" not in plain.stderr


def test_a_checkpoint_keeps_what_profiles_are_made_of(files, tmp_path):
    def outputs(name, *more):
        folder = tmp_path / name
        folder.mkdir()
        wanted = ["-o", "hits.tsv", "--save-profile", "next.jsonl", "--save-msa", "msa"]
        done = run("search", *files[:2], "--iterations", 3, *wanted, *more, cwd=folder)
        assert done.returncode == 0, done.stderr
        paths = [folder / "hits.tsv", folder / "next.jsonl", *sorted((folder / "msa").iterdir())]
        return [path.read_bytes() for path in paths], done.stderr

    expected, _ = outputs("without")
    assert len(expected) > 2
    assert outputs("first", "--checkpoint", "../kept")[0] == expected
    found, said = outputs("second", "--checkpoint", "../kept")
    assert found == expected
    assert "checkpoint ../kept: 3 of 3 queries go on from where they were" in said
    done = run("search", *files[:2], "--iterations", 3, "--checkpoint", "kept", cwd=tmp_path)
    fails(done, 1, "keep_profiles was on, is not given")


@pytest.mark.parametrize("times", [(1, 2), (2, 1)])
def test_a_saved_profile_goes_on_where_it_stopped(files, tmp_path, times):
    columns = ["--outfmt", "6 std iteration qcovs btop"]
    saved = tmp_path / "saved.jsonl"
    preset = ["--preset", "context"]  # as by default, but with one iteration
    search(files, "--iterations", times[0], "--save-profile", saved, "-q", *preset)
    at_once = search(files, "--iterations", sum(times), *columns).stdout
    assert search(files, "--iterations", times[1], *columns, *preset, queries=saved).stdout == at_once
    lines = [json.loads(line) for line in saved.read_text().splitlines()]
    assert [line["identifier"] for line in lines] == ["f9", "none", "f0"]


def test_what_is_saved_is_the_same_whatever_saves_it(files, tmp_path):
    first, whole, parts = (tmp_path / name for name in ("first.jsonl", "whole.jsonl", "parts.jsonl"))
    search(files, "--iterations", 1, "--preset", "context", "--save-profile", first, "-q")
    search(files, "--iterations", 2, "--save-profile", parts, "-q", queries=first)
    search(files, "--iterations", 3, "--save-profile", whole, "-q", "--threads", 1)
    assert parts.read_bytes() == whole.read_bytes()


def test_alignments_are_saved_as_a_folder_or_as_stockholm(files, tmp_path):
    folder, file = tmp_path / "msa", tmp_path / "all.sto"
    search(files, "--iterations", 2, "--save-msa", folder, "-q")
    search(files, "--iterations", 2, "--save-msa", file, "-q")
    assert sorted(path.name for path in folder.iterdir()) == ["f0.a3m", "f9.a3m", "none.a3m"]
    text = (folder / "f0.a3m").read_text()
    assert text.startswith(">f0\n")
    assert text.count(">") > 5
    assert (folder / "none.a3m").read_text() == ">none\nWWWWWCCCCCWWWWW\n"
    assert file.read_text().count("# STOCKHOLM") == 3


def test_nothing_is_saved_where_a_report_fails(files, tmp_path):
    saved = tmp_path / "saved.jsonl"
    done = run("search", files[0], files[1], "--save-profile", saved, full=(1,))
    assert done.returncode == 6
    assert not list(tmp_path.iterdir())


def test_jsonl_and_html_say_what_iterations_did(files, tmp_path):
    done = search(files, "--iterations", 2, "--outfmt", "jsonl", "-q")
    first = json.loads(done.stdout.splitlines()[0])
    assert first["iterations"]["last"] == 2
    assert len(first["iterations"]["included"]) == len(first["iterations"]["new"]) == 2
    assert {hit["subject"]["iteration"] for hit in first["hits"]} == {1, 2}
    assert first["parameters"]["iterations"] == 2
    page = tmp_path / "report.html"
    search(files, "--iterations", 2, "-o", page, "-q")
    assert "Iteration 1 included " in page.read_text()


def test_parquet_has_the_iteration_where_it_is_asked_for(files, tmp_path):
    import pyarrow.parquet

    file = tmp_path / "hits.parquet"
    search(files, "--iterations", 2, "-o", file, "--outfmt", "parquet subject_id iteration", "-q")
    assert set(pyarrow.parquet.read_table(file)["iteration"].to_pylist()) == {1, 2}
    search(files, "--iterations", 2, "-o", file, "-q")
    assert "iteration" not in pyarrow.parquet.read_table(file).column_names


def test_progress_counts_what_is_not_needed(files):
    done = search(files, "--iterations", 50, "--progress", "json")
    last = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")][-1]
    assert last["cells_done"] == last["cells"]
    assert last["queries_done"] == 3
