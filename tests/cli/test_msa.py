"""``swsearch msa``: a file per query."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.command_line import run

OPTIONS = ("--engine", "cpu", "--quiet")
NAMES = sorted(["sp_P05093_CP17A_HUMAN", "sp_Q05639_EF1A2_HUMAN", "sp_P24723_KPCL_HUMAN", "sp_Q9Y6M0_TEST_HUMAN",
                "sp_Q9H853_TBA4B_HUMAN"])  # fmt: skip


@pytest.fixture(scope="module")
def data(examples: Path) -> tuple[Path, Path]:
    """Queries and a database."""
    return examples / "data" / "queries.fasta", examples / "data" / "swissprot_sample.fasta.gz"


def sequences(path: Path) -> dict[str, str]:
    """The rows of an A3M file, by name."""
    lines = path.read_text().splitlines()
    return dict(zip((line[1:].split()[0] for line in lines[::2]), lines[1::2], strict=True))


def test_an_alignment_for_each_query(data: tuple[Path, Path], tmp_path: Path) -> None:
    done = run("msa", *data, "-o", tmp_path / "msas", "--engine", "cpu", "--iterations", "2", "--progress", "none")
    assert done.returncode == 0 and done.stdout == "", done.stderr
    assert "swsearch: 5 alignments in" in done.stderr and "5 queries, 10 iterations" in done.stderr
    files = sorted((tmp_path / "msas").iterdir())
    assert [path.name for path in files] == [f"{name}.a3m" for name in NAMES]
    for path in files:
        rows = sequences(path)
        query = next(iter(rows.values()))
        assert next(iter(rows)).replace("|", "_") == path.stem and query.isupper() and len(rows) > 3
        assert {sum(not letter.islower() for letter in row) for row in rows.values()} == {len(query)}
        assert len(set(rows.values())) == len(rows)


def test_one_iteration_is_the_search(data: tuple[Path, Path], tmp_path: Path) -> None:
    options = ("--iterations", "1", "--evalue", "1e-5", *OPTIONS)
    assert run("msa", *data, "-o", tmp_path, *options).returncode == 0
    done = run("search", *data, "--evalue", "1e-5", "--outfmt", "6 sseqid sstart send", *OPTIONS)
    found = {f"{name}/{begin}-{end}" for name, begin, end in map(str.split, done.stdout.splitlines())}
    rows = [name for path in tmp_path.iterdir() for name in sequences(path)]
    queries = {name for name in rows if "/" not in name}
    assert len(queries) == 5 and set(rows) - queries <= found and len(rows) > 50


def test_rows_are_chosen(data: tuple[Path, Path], tmp_path: Path) -> None:
    options = ("--max-seqs", "4", "--max-identity", "90", "--min-coverage", "50", "--iterations", "1", *OPTIONS)
    assert run("msa", *data, "-o", tmp_path, *options, "--outfmt", "fasta-aligned").returncode == 0
    counts = [path.read_text().count(">") for path in tmp_path.glob("*.afa")]
    assert len(counts) == 5 and max(counts) == 4


@pytest.mark.peer
def test_hmmbuild_and_hmmsearch_find_the_family_again(data: tuple[Path, Path], tmp_path: Path) -> None:
    if not shutil.which("hmmbuild") or not shutil.which("hmmsearch"):
        pytest.skip("HMMER is not installed")
    assert run("msa", *data, "-o", tmp_path, "--outfmt", "stockholm", *OPTIONS).returncode == 0
    subjects = tmp_path / "subjects.fasta"
    with subjects.open("wb") as file:
        subprocess.run(["gzip", "-dc", str(data[1])], stdout=file, check=True)
    for path in tmp_path.glob("*.sto"):
        names = {line.split()[1].rpartition("/")[0] for line in path.read_text().splitlines() if "#=GS" in line}
        command = ["hmmbuild", "--amino", "--hand", str(path.with_suffix(".hmm")), str(path)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        table = path.with_suffix(".tbl")
        command = ["hmmsearch", "--cpu", "1", "-o", "/dev/null", "--tblout", str(table), "-E", "1e-3"]
        subprocess.run([*command, str(path.with_suffix(".hmm")), str(subjects)], check=True)
        found = {line.split()[0] for line in table.read_text().splitlines() if not line.startswith("#")}
        missing = names - found - {""}
        assert len(missing) <= len(names) // 10, (path.name, missing)
