"""A few cases of every kind of fault, and the tools that judge them."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from Bio.SeqIO.FastaIO import SimpleFastaParser
from conftest import ROOT

from faults import contents, fasta, hdf5
from faults.data import build_samples, write_samples
from faults.judging import check_end, check_left, check_refusal
from faults.run import Counted, kinds, report
from faults.running import Done, Wrong, copy
from support import command_line, forking
from support.db_helpers import rewrite
from support.samples import sample

SCRIPT = Path(__file__).with_name("__main__.py")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: /dev/full, limits of memory, FIFOs")


def passes(*words: str) -> None:
    if command_line.FORKED:
        done = forking.run([str(SCRIPT), *words], text=True)
    else:
        done = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("size", "name"), sample(product(("quick", "exhaustive"), sorted(kinds())), lambda each: each[0] == "quick")
)
def test_some_cases(size: str, name: str) -> None:
    passes("--only", name, "--size", size, "--workers", "1")


def test_the_table_of_the_last_long_run_has_all_kinds_and_nothing_open() -> None:
    lines = (ROOT / "benchmarks" / "results" / "faults.txt").read_text(encoding="utf-8").splitlines()
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    heads, *rows = table
    assert [row[0] for row in rows] == list(kinds())
    assert [row[1] for row in rows] == [kind.what for kind in kinds().values()]
    assert {row[heads.index("open")] for row in rows} == {"0"}


def test_some_kinds_may_be_run_again() -> None:
    known = list(kinds().values())
    first = report([Counted(kind, Counter(refused=7), 1.0) for kind in known], [], [])
    again = report([Counted(known[2], Counter(succeeded=9), 2.0)], ["--only", known[2].name], first)
    commands = [line for line in again if line.startswith("python -m ")]
    assert commands[0] in first and commands[1] == f"python -m tests.faults --only {known[2].name}: 9 cases"
    changed = [line for line in again if line.startswith("| ") and line not in first]
    assert changed == [f"| {known[2].name} | {known[2].what} | 9 | 0 | 9 | 0 | 2 |"]
    assert len([line for line in again if line.startswith("| ")]) == len(known) + 1


def test_a_case_is_the_same_whenever_it_is_made() -> None:
    made = [fasta.make(random.Random(f"fasta {seed}")) for seed in range(50)]
    assert made == [fasta.make(random.Random(f"fasta {seed}")) for seed in range(50)]
    assert len(set(made)) == 50


def test_the_reader_that_files_are_compared_with_reads_as_biopython_does(tmp_path: Path) -> None:
    generator = random.Random(3)
    for _ in range(50):
        data = fasta.text(generator).removeprefix(b"\xef\xbb\xbf")
        path = tmp_path / "text.fasta"
        path.write_bytes(data)
        with path.open(encoding="latin-1") as stream:
            theirs = [(title, letters.replace("\t", "")) for title, letters in SimpleFastaParser(stream)]
        ours = [(header.decode("latin-1").rstrip(), letters) for header, letters in fasta.read(data)]
        assert ours == theirs


def test_a_sealed_database_is_the_same(tmp_path: Path) -> None:
    write_samples(tmp_path)
    build_samples(tmp_path)
    raw = bytearray((tmp_path / "two.h5").read_bytes())
    assert contents.place_of(raw).at in range(len(raw)) and hdf5.metadata(raw)
    expected = contents.read_all(str(tmp_path / "two.h5"))
    for name in ("residues", "headers"):
        rewrite(raw, name, lambda values: None, 1)
    (tmp_path / "two.h5").write_bytes(raw)
    assert contents.read_all(str(tmp_path / "two.h5")) == expected


@pytest.mark.parametrize(
    ("err", "code", "words"),
    [
        ("swsearch: error: db.h5: damaged", 2, ""),
        ("swsearch: error: other.h5: damaged", 2, "does not name db.h5"),
        ("swsearch: error: db.h5: damaged\nswsearch: error: db.h5: damaged", 2, "2 sentences"),
        ("swsearch: error: db.h5: damaged", 3, "exit 3, expected 2"),
        ("", 2, "0 sentences"),
        ("Traceback (most recent call last):\nswsearch: error: db.h5: damaged", 2, "traceback"),
        ("swsearch: error: db.h5: \x1b[31m", 2, "control character"),
        ("swsearch: error: db.h5: killed", -11, "ended by signal 11"),
    ],
)
def test_what_may_not_happen_is_seen(err: str, code: int, words: str) -> None:
    done = Done(code, b"", err, 0.1, 0, False)

    def check() -> None:
        check_end(done)
        check_refusal(done, [2], "db.h5")

    if not words:
        check()
        return
    with pytest.raises(Wrong, match=words):
        check()


def test_a_file_that_is_left_is_seen(tmp_path: Path) -> None:
    (tmp_path / ".out.tmp").touch()
    with pytest.raises(Wrong, match=r"files left: \.out\.tmp; expected none"):
        check_left(tmp_path)


def test_what_hangs_is_ended() -> None:
    done = copy(lambda: time.sleep(60), limit=0.2)
    assert done.late
    assert done.seconds < 10
