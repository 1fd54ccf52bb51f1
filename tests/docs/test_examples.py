"""Every example runs as its docstring says, and shows what it claims to show."""

import runpy
import subprocess
import sys

import pytest

EXAMPLES = ("search_to_pandas", "screen_peptides", "align_two_proteins")


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_runs_as_a_script(examples, name, tmp_path):
    done = subprocess.run(
        [sys.executable, str(examples / f"{name}.py")], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert list(tmp_path.iterdir()) == []


def test_no_example_is_left_out(examples):
    assert {path.stem for path in examples.glob("*.py")} == set(EXAMPLES)


def run(examples, name):
    return runpy.run_path(str(examples / f"{name}.py"))["main"]()


def test_search_to_pandas(examples):
    table = run(examples, "search_to_pandas")
    assert table.groupby("query_id").size().to_dict() == dict.fromkeys(
        ["P01308", "P69905", "P61626", "P00918", "P04637"], 3
    )
    best = table.groupby("query_id").first()
    assert (best["evalue"] < 1e-60).all()
    assert best.loc["P04637", "percent_identity"] == 100


def test_screen_peptides(examples):
    share = run(examples, "screen_peptides")
    assert share.shape == (5, 5)
    assert (share[:3, 0] == 1).all()  # the chains of insulin
    assert share[3].max() < 0.5  # hemorphin is in none
    assert share[4, 4] == 1  # p53


def test_align_two_proteins(examples):
    alignment = run(examples, "align_two_proteins")
    assert alignment.score == 474
    assert alignment.counts().gaps == 1
