"""Every example runs as its docstring says, and shows what it claims to show."""

import runpy
import subprocess
import sys

import pytest

from swsearch.db import append_database, build_database

EXAMPLES = ("search_to_pandas", "screen_peptides", "align_two_proteins")
READERS = ("read_with_h5py", "reciprocal_best_hits")
"""Examples that take files."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_runs_as_a_script(examples, name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(examples / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_no_example_is_left_out(examples):
    assert {path.stem for path in examples.glob("*.py")} == {*EXAMPLES, *READERS}


@pytest.mark.parametrize(
    ("text", "more", "options"),
    [
        (">a first\nMKVLaagIVGWWxx\n>b\n\n>c third\nMUOXBZJ*\n", f">d\n{'MKV' * 40}\n", {}),
        (">a\nACGTNacgtRYK\n>b\n\n>c\nT\n", ">d\nACGTA\n", {"translate": True}),
    ],
)
def test_the_reader_with_h5py_alone(examples, tmp_path, text, more, options):
    (tmp_path / "in.fasta").write_text(text)
    (tmp_path / "more.fasta").write_text(more)
    build_database(tmp_path / "in.fasta", tmp_path / "db.h5", **options)
    script = examples / "read_with_h5py.py"
    for expected in (text, text + more):
        done = subprocess.run(
            [sys.executable, script, tmp_path / "db.h5"], capture_output=True, text=True, check=True
        )
        assert done.stdout == expected
        append_database(tmp_path / "db.h5", tmp_path / "more.fasta", on_duplicate="keep")
    lines = script.read_text().splitlines()
    assert len(lines) <= 45 and not any("swsearch" in line for line in lines if "import" in line)


def run(examples, name):
    return runpy.run_path(str(examples / f"{name}.py"))["main"]()


def test_search_to_pandas(examples):
    table = run(examples, "search_to_pandas")
    assert list(table.groupby("query_id").size()) == [3] * 5
    best = table.groupby("query_id").first()
    assert (best["evalue"] < 1e-60).all() and (best["percent_identity"] == 100).all()


def test_screen_peptides(examples):
    share = run(examples, "screen_peptides")
    assert share.shape == (5, 5)
    assert share[:3].argmax(1).tolist() == [2, 1, 0] and (share[:3].max(1) == 1).all()
    assert 0.5 < share[3, 3] < 1 and share[3].argmax() == 3  # testisin's active site is like trypsin's
    assert share[4].max() < 0.6  # hemorphin is in none


def test_align_two_proteins(examples):
    alignment = run(examples, "align_two_proteins")
    assert alignment.score == 474
    assert alignment.counts().gaps == 1


@pytest.mark.exhaustive
def test_reciprocal_best_hits(examples, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(examples / "data" / "make_proteomes.py"), run_name="__main__")
    for species in "ab":  # the first proteins are enough
        records = (tmp_path / f"{species}.fasta").read_text().split(">")[:20]
        (tmp_path / f"{species}.fasta").write_text(">".join(records))
    find = runpy.run_path(str(examples / "reciprocal_best_hits.py"))["main"]
    outputs = ["--output", "pairs.tsv", "--figure", "identity.png"]
    pairs = find(["a.fasta", "b.fasta", "--orthologs", "orthologs.tsv", *outputs])
    known = {tuple(line.split("\t")) for line in (tmp_path / "orthologs.tsv").read_text().splitlines()}
    found = {(hit.query_id, hit.subject_id) for hit in pairs}
    assert len(found) >= 8
    assert len(found & known) >= len(found) - 1
    header, *rows = [line.split("\t") for line in (tmp_path / "pairs.tsv").read_text().splitlines()]
    assert header == ["a", "b", "identity", "evalue"]
    assert {tuple(row[:2]) for row in rows} == found and all(0 < float(row[2]) <= 100 for row in rows)
    assert (tmp_path / "identity.png").stat().st_size > 1000
