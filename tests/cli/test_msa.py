"""``swsearch msa``: a file per query."""

from __future__ import annotations

import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.command_line import SWSEARCH, fails, run
from support.processes import started

OPTIONS = ("--engine", "cpu", "--quiet")
NAMES = sorted(["sp_P05093_CP17A_HUMAN", "sp_Q05639_EF1A2_HUMAN", "sp_P24723_KPCL_HUMAN", "sp_Q9Y6M0_TEST_HUMAN",
                "sp_Q9H853_TBA4B_HUMAN"])  # fmt: skip

FOLDERS = ("whole", "parts", "more")


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


def files_in(folder: Path) -> dict[str, bytes]:
    """The content of the files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_rows_of_each_stretch(tmp_path: Path) -> None:
    """A stretch gets its most diverse rows, however many are at others."""
    rng = random.Random(54)
    query = "".join(rng.choices("ACDEFGHIKLMNPQRSTVWY", k=120))

    def mutant(begin: int, end: int, share: float) -> str:
        letters = (rng.choice("ACDEFGHIKLMNPQRSTVWY") if rng.random() < share else each for each in query[begin:end])
        return "".join(letters)

    rows = [mutant(0, 60, 0.05) for _ in range(60)] + [mutant(0, 60, 0.4) for _ in range(9)] + [
        mutant(60, 120, 0.2) for _ in range(5)
    ]  # fmt: skip
    (tmp_path / "q.fasta").write_text(f">q\n{query}\n")
    (tmp_path / "s.fasta").write_text("".join(f">s{k}\n{row}\n" for k, row in enumerate(rows)))
    words = (
        "msa",
        tmp_path / "q.fasta",
        tmp_path / "s.fasta",
        "--iterations",
        1,
        "--evalue",
        1,
        "--allow-dna",
        *OPTIONS,
    )
    assert run(*words, "-o", tmp_path / "all").returncode == 0
    assert run(*words, "-o", tmp_path / "some", "--diff", 8).returncode == 0
    every, kept = (sequences(tmp_path / name / "q.a3m") for name in ("all", "some"))
    assert len(every) >= 70 and list(kept) == [name for name in every if name in kept]
    columns = [re.sub("[a-z]", "", row) for row in kept.values()]
    halves = [sum(row[begin : begin + 60].count("-") <= 30 for row in columns) for begin in (0, 60)]
    assert halves == [8, 6]  # the query is one of them
    numbers = [int(re.sub("/.*|s", "", name)) for name in list(kept)[1:]]
    assert sum(60 <= number < 69 for number in numbers) == 7


def test_databases_are_searched_as_one(data: tuple[Path, Path], tmp_path: Path) -> None:
    """Rows that an earlier database has as well are left out."""
    queries, subjects = data
    done = subprocess.run(["gzip", "-dc", str(subjects)], capture_output=True, text=True, check=True)
    records = [f">{each}" for each in done.stdout.split(">")[1:]]
    (tmp_path / "one.fasta").write_text("".join(records[:2000]))
    (tmp_path / "two.fasta").write_text("".join(records[2000:]))
    (tmp_path / "copies.fasta").write_text("".join(f">copy_{each[1:]}" for each in records[1000:]))
    words = ("--iterations", 1, "--dbsize", "1230410", *OPTIONS)
    assert run("msa", *data, "-o", tmp_path / FOLDERS[0], *words).returncode == 0
    parts = [tmp_path / f"{name}.fasta" for name in ("one", "two", "copies")]
    assert run("msa", queries, *parts[:2], "-o", tmp_path / FOLDERS[1], *words).returncode == 0
    assert run("msa", queries, *parts, "-o", tmp_path / FOLDERS[2], *words).returncode == 0
    rows = [[list(sequences(tmp_path / name / f"{each}.a3m").items()) for each in NAMES] for name in FOLDERS]
    assert rows[0] == rows[1] == rows[2]
    done = run("msa", queries, parts[0], parts[0], "-o", tmp_path / "twice", *words)
    fails(done, 2, "one.fasta is given twice; name each file once")


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.exhaustive)])
def test_a_stopped_run_goes_on(data: tuple[Path, Path], tmp_path: Path, number: int) -> None:
    queries, subjects = tmp_path / "q.fasta", data[1]
    done = subprocess.run(["gzip", "-dc", str(subjects)], capture_output=True, text=True, check=True)
    queries.write_text("".join(f">{each}" for each in done.stdout.split(">")[1:21]))
    words = ("msa", queries, subjects, "--engine", "cpu", "--threads", 1, "--progress", "none")
    kept = ("--checkpoint", tmp_path / "kept")
    assert run(*words, "-o", tmp_path / "whole").returncode == 0
    whole, out = files_in(tmp_path / "whole"), tmp_path / "out"
    line = [*SWSEARCH, *map(str, (*words, "-o", out, *kept))]
    with started(line) as process:
        while process.poll() is None and (not out.is_dir() or len(list(out.glob("*.a3m"))) < 3):
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait() == (-number if number == signal.SIGKILL else 130)
    before = {name: each for name, each in files_in(out).items() if name.endswith(".a3m") and name[0] != "."}
    assert 3 <= len(before) < 20 and before.items() <= whole.items()
    done = run(*words, "-o", out, *kept)
    assert done.returncode == 0 and re.search(r"kept: [1-9]\d* of 20 queries go on", done.stderr), done.stderr
    assert files_in(out) == whole
    filtered = ("--max-seqs", 3, "--outfmt", "stockholm")
    done = run(*words, "-o", tmp_path / "few", *kept, *filtered)
    assert "20 of 20 queries" in done.stderr and " 0.00 GCUPS" in done.stderr, done.stderr
    assert run(*words, "-o", tmp_path / "again", *filtered).returncode == 0
    assert files_in(tmp_path / "few") == files_in(tmp_path / "again")
    fails(run(*words, "-o", out, *kept, "--evalue", 1), 1, "another search: evalue was 0.001, is 1.0")


def test_a_checkpoint_has_profiles_of_another_database(data: tuple[Path, Path], tmp_path: Path) -> None:
    words = ("msa", *data, "--profile-from", data[1], "--iterations", 2, "--engine", "cpu")
    assert run(*words, "-o", tmp_path / "plain").returncode == 0
    for name in ("first", "second"):
        done = run(*words, "-o", tmp_path / name, "--checkpoint", tmp_path / "kept")
        assert done.returncode == 0, done.stderr
        assert files_in(tmp_path / name) == files_in(tmp_path / "plain")
    assert "kept: 5 of 5 queries" in done.stderr


def test_a_folder_for_nothing_is_not_left(data: tuple[Path, Path], tmp_path: Path) -> None:
    words = ("msa", *data, "--engine", "cpu", "--iterations", 1, "-o", tmp_path / "new" / "folder")
    done = run(*words, "--pair", "greedy")
    fails(done, 1, "has a taxon")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "new").mkdir()
    assert run(*words, "--pair", "greedy").returncode == 1
    assert list(tmp_path.rglob("*")) == [tmp_path / "new"]
    fails(run(*words, "--checkpoint", tmp_path / "new" / "folder"), 1, "expected different folders")


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
