"""The command line as a user meets it: in a process of its own, with its exit codes and messages."""

import json
import os
import re
import subprocess
import sys

import h5py
import pytest

from support import fake_driver
from support.command_line import SWSEARCH, WITHOUT_CUDA, fails, run
from support.samples import sample
from swsearch.cli import main
from swsearch.engines.base import ChunkPlan
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.engines.gpu.device import GpuMemoryError
from swsearch.errors import EngineError, GpuUnavailableError
from swsearch.processors import available_processors

NAMES = [
    "sp|P05093|CP17A_HUMAN", "sp|Q05639|EF1A2_HUMAN", "sp|P24723|KPCL_HUMAN", "sp|Q9Y6M0|TEST_HUMAN",
    "sp|Q9H853|TBA4B_HUMAN",
]  # fmt: skip
"""Identifiers of the example's queries."""


@pytest.fixture(scope="module")
def queries(examples):
    return examples / "data" / "queries.fasta"


@pytest.fixture(scope="module")
def fasta(examples):
    return examples / "data" / "swissprot_sample.fasta.gz"


@pytest.fixture(scope="module")
def database(fasta, tmp_path_factory):
    path = tmp_path_factory.mktemp("db") / "sample.h5"
    done = run("db", "build", fasta, "-o", path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"sample.h5: 3,183 subjects, [\d,]+ residues, [\d.]+ s", done.stderr)
    assert done.stdout == ""
    return path


def test_search_prints_data_on_stdout_and_the_rest_on_stderr(queries, database):
    done = run("search", queries, database, "--max-hits", 2)
    assert done.returncode == 0
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [row[0] for row in rows] == [name for name in NAMES for _ in range(2)]
    assert all(len(row) == 12 for row in rows)
    assert rows[8][:3] == [NAMES[4], NAMES[4], "100.000"]
    assert re.search(
        r"5 queries x 3,183 subjects, [\d,]+ residues: 10 hits, [\d.]+ s, [\d.]+ GCUPS, engine (cpu|gpu) ",
        done.stderr,
    )
    assert run("search", queries, database, "--max-hits", 2, "--quiet").stderr == ""


def test_engine_gpu_without_pycuda(queries, database):
    line = [sys.executable, "-c", WITHOUT_CUDA, "search", queries, database, "--engine", "gpu"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    fails(done, 7)
    assert done.stderr == (
        "swsearch: error: engine gpu cannot be used: neither PyCUDA nor cuda-bindings is installed; "
        "pip install 'swsearch[gpu]' (guide: CPUs and GPUs), or use --engine cpu\n"
    )


def test_auto_without_pycuda_says_so_only_when_asked(queries, database):
    def stderr(*options):
        line = [sys.executable, "-c", WITHOUT_CUDA, "search", queries, database, "--max-hits", "1", *options]
        return subprocess.run(line, capture_output=True, text=True, check=True).stderr

    assert "PyCUDA" not in stderr()
    assert (
        stderr("--verbose").count(
            "running on the CPU: engine gpu cannot be used: neither PyCUDA nor cuda-bindings is installed"
        )
        == 1
    )
    assert stderr("--device", "0").count("neither PyCUDA nor cuda-bindings is installed") == 1


def test_auto_without_a_driver_says_so_once(queries, database, tmp_path):
    fake_driver.write_without_driver(tmp_path)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    expected = run("search", queries, database, "--engine", "cpu").stdout

    def stderr(*options):
        done = run("search", queries, database, *options, env=environment)
        assert (done.returncode, done.stdout) == (0, expected)
        return done.stderr.splitlines()

    reason = "swsearch: running on the CPU: engine gpu cannot be used: no NVIDIA driver was found (libcuda.so.1: "
    first, statistics, last = stderr()
    assert first.startswith(reason)
    assert statistics.startswith("swsearch: E-values: ")
    assert "engine cpu" in last
    assert [line.startswith(reason) for line in stderr("--verbose")].count(True) == 1
    assert stderr("--quiet") == []
    done = run("search", queries, database, "--engine", "gpu", env=environment)
    fails(done, 7, "no NVIDIA driver was found")


class _Planning(CpuEngine):
    """An engine that says what it will allocate, or cannot."""

    error = None

    def plan(self, workload):
        if self.error is not None:
            raise self.error
        return ChunkPlan(note="device 0, made up: 12 MiB of 100 MiB allowed")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (GpuMemoryError("gpu memory: 1 MiB are too little for this job"), 4),
        (EngineError("device 0, made up: scoring failed"), 3),
        (GpuUnavailableError("engine gpu cannot be used: device 0, made up, could not be opened"), 7),
        (None, 0),
    ],
)
def test_the_memory_plan_is_told_or_why_there_is_none(queries, database, monkeypatch, capsys, error, code):
    monkeypatch.setattr(_Planning, "error", error)
    monkeypatch.setattr("swsearch.engines.create_engine", lambda name, **options: _Planning(1))
    line = ["swsearch", "search", str(queries), str(database), "--outfmt", "7", "--max-hits", "1", "--verbose"]
    monkeypatch.setattr(sys, "argv", line)
    assert main.main() == code
    captured = capsys.readouterr()
    if error is None:
        assert "swsearch: device 0, made up: 12 MiB of 100 MiB allowed\n" in captured.err
        stages = re.findall(
            r"^swsearch: stage (\w+): worked [\d.]+ s, waited [\d.]+ \+ [\d.]+ s$", captured.err, re.M
        )
        assert stages == ["prepare", "score", "collect", "rate", "align"]
    else:
        assert captured.out == ""  # not even a header
        assert f"swsearch: error: {error}\n" in captured.err


@pytest.mark.parametrize(
    "words",
    sample(
        [["search", "{q}", "{d}"], ["align", "MKV", "MKV"], ["bench", "align", "--random", "9", "--runs", "1"]],
        lambda words: words[0] != "bench",
    ),
)
def test_more_threads_than_processors_are_not_started(words, queries, database):
    processors = available_processors()
    done = run(*(word.format(q=queries, d=database) for word in words), "--threads", 100_000)
    assert done.returncode == 0
    said = f"swsearch: --threads 100000: {processors} used, one for each processor that this process may run on"
    assert done.stderr.splitlines()[0] == said
    assert f" {processors} thread" in done.stderr + done.stdout
    if words[0] != "bench":
        done = run(*(word.format(q=queries, d=database) for word in words), "--threads", 100_000, "--quiet")
        assert (done.returncode, done.stderr) == (0, "")


def test_a_database_a_fasta_file_and_stdin_give_the_same(queries, database, fasta):
    expected = run("search", queries, database, "--max-hits", 3).stdout
    assert run("search", queries, fasta, "--max-hits", 3, "--threads", 1).stdout == expected
    for words, source in ((["-", database], queries), ([queries, "-"], fasta)):
        done = run("search", *words, "--max-hits", 3, text=False, input=source.read_bytes())
        assert (done.returncode, done.stdout.decode()) == (0, expected)


def test_a_database_of_a_newer_format(tmp_path, queries):
    path = tmp_path / "newer.h5"
    assert run("db", "build", queries, "-o", path).returncode == 0
    head, tail = path.read_bytes().split(b"format 4\n", 1)
    path.write_bytes(head + b"format 9\n" + tail)
    fails(run("search", queries, path), 2, "format version 9, this swsearch reads up to 4", "upgrade")


def test_a_damaged_database_is_never_searched(tmp_path, queries, database):
    path = tmp_path / "damaged.h5"
    data = bytearray(database.read_bytes())
    with h5py.File(database, "r") as file:
        place = file["segments/0/residues"].id.get_offset() + 100_000
    data[place] ^= 1
    path.write_bytes(data)
    fails(run("search", queries, path), 2, "damaged", "residues")
    fails(run("db", "verify", path), 2, "damaged", "residues")
    assert ", 1 segment, " in run("db", "verify", database).stderr


def test_head_ends_it_quietly(queries, database):
    line = f"{' '.join(SWSEARCH)} search {queries} {database} --outfmt 0 | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"
    assert "Traceback" not in done.stderr
    assert "rror" not in done.stderr


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path, queries, database, fasta):
    # the portable stand-in for a full disk: no file may grow beyond 20 kB
    limited = ["bash", "-c", "trap '' XFSZ; ulimit -f 20; exec \"$@\"", "limited", *SWSEARCH]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    for arguments in (
        ["search", queries, database, "-o", tmp_path / "x.h", "--outfmt", "0"],
        ["db", "build", fasta, "-o", tmp_path / "x.h5"],
        ["db", "merge", database, "-o", tmp_path / "x.h5"],
        ["db", "split", database, "-o", tmp_path / "x.h.json", "--volume-size", "1G"],
    ):
        line = [*limited, *map(str, arguments)]
        done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment)
        fails(done, 6, "swsearch: error:", "x.h")
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("mode", "name"), [("global", "Pearson's type III"), ("semiglobal", "Gumbel")])
def test_global_and_semiglobal_say_what_was_fitted(queries, database, mode, name):
    columns = "6 qseqid sseqid evalue bitscore score"
    done = run("search", queries, database, "--mode", mode, "--evalue", "1e-5", "--outfmt", columns)
    assert done.returncode == 0
    said = f"swsearch: E-values: {name} distribution fitted to scores with shuffled copies of each subject"
    assert said in done.stderr.splitlines()
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert {row[3] for row in rows} == {"nan"}
    assert all(float(row[2]) <= 1e-5 for row in rows)
    assert {query: subject for query, subject, *_ in reversed(rows)}[NAMES[4]] == NAMES[4]
    assert len(rows) > 40


def test_fitted_statistics_of_local_mode_stand_beside_published_ones(queries, database):
    columns = "6 qseqid sseqid evalue evalue_published bitscore zscore"
    done = run("search", queries, database, "--statistics", "fitted", "--evalue", "1e-5", "--outfmt", columns)
    assert done.returncode == 0
    assert "swsearch: E-values: Gumbel distribution fitted to scores with shuffled copies" in done.stderr
    assert done.stdout == run("search", queries, database, "--evalue", "1e-5", "--outfmt", columns).stdout
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) > 50
    assert all(0 <= float(row[2]) <= 1e-5 and float(row[3]) < 1e-3 and float(row[5]) > 9 for row in rows)


def test_database_commands(tmp_path, queries, fasta, database):
    path = tmp_path / "q.h5"
    assert run("db", "build", queries, "-o", path, "-q").stderr == ""
    info = json.loads(run("db", "info", path, "--json").stdout)
    assert info["n_subjects"] == 5
    assert "5" in run("db", "info", path).stdout
    odd = tmp_path / "odd.fasta"
    odd.write_text(">odd   three blanks\tand a tab\nMKVlaagMKV\n")
    assert run("db", "build", odd, "-o", tmp_path / "odd.h5").returncode == 0
    assert run("db", "fetch", tmp_path / "odd.h5", "odd").stdout == odd.read_text()
    empty = tmp_path / "empty.fasta"
    empty.write_text(">nothing\n>something\nMKV\n")
    assert "1 records have no residues; they are kept" in run("db", "build", empty, "-o", tmp_path / "e.h5").stderr
    done = run("db", "append", path, fasta, "--on-duplicate", "keep")
    assert "now 3,188 subjects" in done.stderr
    fetched = run("db", "fetch", path, "Q9Y6M0").stdout
    assert fetched.count(">") == fetched.count("MGARGALLLALLLARAGLRKPESQEAAPLSGPCGRRVITSRIVGGEDAELGRWPWQGSLR") == 2
    assert fetched.count(">sp|Q9Y6M0|TEST_HUMAN Testisin OS=Homo sapiens GN=PRSS21 PE=1 SV=1\n") == 2
    assert "sound" in run("db", "verify", path).stderr
    # appended subjects are found like the others, after those that came first
    hits = run("search", queries, path, "--max-hits", 2, "--outfmt", "6 qseqid sseqid").stdout.splitlines()
    assert hits[-2:] == [f"{NAMES[4]}\t{NAMES[4]}"] * 2


def test_doctor():
    done = run("doctor")
    assert done.returncode == 0
    assert re.search(r"^gpu          (not used|usable): ", done.stdout, re.MULTILINE)
    assert "self-test    cpu: 192 scores equal to the reference" in done.stdout
    assert re.search(r"^auto         --engine auto takes (cpu|gpu)$", done.stdout, re.MULTILINE)


def test_bench(queries, tmp_path):
    done = run("bench", queries, queries, "--no-peers", "--runs", 1)
    assert done.returncode == 0, done.stderr
    assert "swsearch cpu" in done.stdout
    assert "GCUPS" in done.stdout
