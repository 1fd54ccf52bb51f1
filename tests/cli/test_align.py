"""``swsearch align`` and ``swsearch bench align`` as a user meets them, in processes of their own."""

import json
import re
import signal
import sys
import time

import numpy as np
import pytest

from support.command_line import SWSEARCH, run
from support.pair_checks import write_fasta
from support.processes import started
from swsearch.alphabet import DNA, PROTEIN
from swsearch.bench.pairs import parse_identity, random_pair, write_pair
from swsearch.cli import main
from swsearch.engines.gpu.device import GpuMemoryError
from swsearch.engines.reference import ReferencePairAligner
from swsearch.errors import EngineError, GpuUnavailableError, InputError
from swsearch.recurrence import Recurrence

A = {"one": "MKVLAAGIVGWW", "two": "MKVAAGIVG", "three": "WWPPWWPP"}
B = {"x": "MKVAAGIVG", "y": "GWWMKVLAAG", "z": "PPWW"}


@pytest.fixture(scope="module")
def a(tmp_path_factory):
    return write_fasta(tmp_path_factory.mktemp("a") / "a.fasta", A)


@pytest.fixture(scope="module")
def b(tmp_path_factory):
    return write_fasta(tmp_path_factory.mktemp("b") / "b.fasta", B)


def names(done):
    return [tuple(line.split("\t")[:2]) for line in done.stdout.splitlines()]


def test_all_with_all_or_pair_by_pair(a, b):
    done = run("align", a, b, "--outfmt", "cigar")
    assert done.returncode == 0
    assert names(done) == [(one, other) for one in A for other in B]
    assert re.search(r"^swsearch: 9 pairs, 667 cells, [\d.]+ s, [\d.]+ GCUPS, engine cpu \(.*\)\n$", done.stderr), (
        done.stderr
    )
    paired = run("align", a, b, "--outfmt", "cigar", "--pairs", "--quiet")
    assert names(paired) == list(zip(A, B, strict=True))
    assert paired.stderr == ""
    assert set(paired.stdout.splitlines()) < set(done.stdout.splitlines())
    # the answer depends on neither threads nor engine
    for options in (["--threads", 1], ["--threads", 3], ["--engine", "reference"], ["--engine", "cpu"]):
        assert run("align", a, b, "--outfmt", "cigar", *options).stdout == done.stdout


def test_scores_alone(a, b):
    expected = [line.split("\t")[:3] for line in run("align", a, b, "--outfmt", "cigar").stdout.splitlines()]
    scores = run("align", a, b, "--score-only")
    assert [line.split("\t") for line in scores.stdout.splitlines()] == expected
    assert run("align", a, b, "--outfmt", "score").stdout == scores.stdout
    assert run("align", a, b, "--outfmt", "score", "--score-only").stdout == scores.stdout


def test_free_ends():
    def score(*options):
        done = run("align", "MKVLAAG", "GGGMKVLAAGWWW", "--score-only", "--quiet", *options)
        assert done.returncode == 0, done.stderr
        return int(done.stdout.split("\t")[2])

    semiglobal = ("--mode", "semiglobal")
    assert score(*semiglobal, "--free-ends", "subject") == score(*semiglobal) == score("--mode", "local") == 32
    assert score(*semiglobal, "--free-ends", "subject-start") == 32 - 14
    assert score(*semiglobal, "--free-ends", "subject-end, query-end") == 32 - 14
    assert score() == 32 - 28
    assert score("--gap-open", 0) == 32 - 6  # linear


def test_verbose_tells_the_work_before_it_is_done(a, b):
    done = run("align", a, b, "--verbose", "--mode", "semiglobal", "--free-ends", "subject", "--outfmt", "paf")
    lines = done.stderr.splitlines()
    assert lines[0] == "swsearch: running on the CPU: 9 pairs, 667 cells, are not worth starting a GPU"
    assert (
        "BLOSUM62, gap open 11, gap extend 1; semiglobal alignment, free ends: subject-start, subject-end" in lines[1]
    )
    assert lines[2] == "swsearch: 9 pairs, 667 cells to do"
    assert len(lines) == 4


def test_dna(tmp_path):
    reads = write_fasta(tmp_path / "r.fasta", {"r1": "acgtrynACGT", "r2": "UUUU"})
    found = run("align", reads, "ACGTAANACGT", "--alphabet", "dna", "--outfmt", "sam", "--mode", "semiglobal")
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["@HD", "@SQ", "@PG", "r1", "r2"]
    assert lines[3].split("\t")[5] == "11M"
    matrix = tmp_path / "m.txt"
    matrix.write_text("   A  C  G  T\nA  1 -1 -1 -1\nC -1  1 -1 -1\nG -1 -1  1 -1\nT -1 -1 -1  1\n")
    done = run("align", "ACGT", "ACGA", "--alphabet", "dna", "--matrix", matrix, "--score-only", "-q")
    assert done.stdout == "A_1\tB_1\t2\n"
    done = run("align", "ACGT", "ACGA", "--alphabet", "dna", "--match", 2, "--mismatch", -3, "--score-only", "-q")
    assert done.stdout == "A_1\tB_1\t3\n"


def test_stdin(a, b):
    expected = run("align", a, b, "--outfmt", "jsonl").stdout
    for first, second, source in (("-", b, a), (a, "-", b)):
        done = run("align", first, second, "--outfmt", "jsonl", input=source.read_text())
        assert done.stdout == expected
    assert json.loads(expected.splitlines()[0])["query"]["id"] == "one"


def test_output_to_a_file(a, b, tmp_path):
    done = run("align", a, b, "-o", tmp_path / "x.txt")
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "x.txt").read_text() == run("align", a, b).stdout
    assert [path.name for path in tmp_path.iterdir()] == ["x.txt"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (GpuMemoryError("gpu memory: 1 MiB are too little"), 4),
        (EngineError("device 0, made up: a kernel failed"), 3),
        (GpuUnavailableError("engine gpu cannot be used: device 0 could not be opened"), 7),
    ],
)
def test_what_an_engine_raises_is_told(a, b, monkeypatch, capsys, error, code, tmp_path):
    class Failing(ReferencePairAligner):
        def align(self, *_):
            raise error

    monkeypatch.setattr("swsearch.engines.factory._gpu_pairs", lambda device, memory, pairs: Failing())
    monkeypatch.setattr("swsearch.cli.align.warm_up_gpu", lambda device: None)
    line = ["swsearch", "align", str(a), str(b), "--engine", "gpu", "-o", str(tmp_path / "x.txt")]
    monkeypatch.setattr(sys, "argv", line)
    ended = main.main()
    captured = capsys.readouterr()
    assert (ended, captured.err) == (code, f"swsearch: error: {error}\n")
    assert list(tmp_path.iterdir()) == []


def test_results_are_written_as_they_come(tmp_path):
    # the second pair takes far longer than the test waits for the first
    generator = np.random.default_rng(3)
    long = DNA.decode(generator.integers(0, 4, 200_000).astype(np.uint8))
    queries = write_fasta(tmp_path / "q.fasta", {"short": "ACGT" * 2_000, "long": long})
    subjects = write_fasta(tmp_path / "s.fasta", {"short": "ACGT" * 2_000, "long": long})
    line = [
        *SWSEARCH,
        "align",
        queries,
        subjects,
        "--pairs",
        "--alphabet",
        "dna",
        "--engine",
        "cpu",
        "-o",
        tmp_path / "x",
    ]
    before = set(tmp_path.iterdir())
    with started(list(map(str, line))) as process:
        deadline = time.monotonic() + 30
        found = []
        while time.monotonic() < deadline and not any(path.stat().st_size for path in found):
            time.sleep(0.05)
            found = set(tmp_path.iterdir()) - before
        assert any(path.stat().st_size for path in found)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert set(tmp_path.iterdir()) == before


# bench align


def test_bench_align(tmp_path):
    done = run("bench", "align", "--random", 300, "--runs", 2, "--write", tmp_path / "pair", "--mode", "local")
    assert done.returncode == 0, done.stderr
    facts = dict(re.split(r"\s{2,}|(?<=peak memory) ", line, maxsplit=1) for line in done.stdout.splitlines())
    assert facts["pair"].endswith("random protein, identity 0.9, seed 1")
    assert facts["alignment"] == "local, BLOSUM62, gap open 11, gap extend 1"
    assert set(facts) == {"pair", "alignment", "engine", "cells", "score", "seconds", "GCUPS", "peak memory"}
    files = [tmp_path / "pair" / "a.fasta", tmp_path / "pair" / "b.fasta"]
    score = run("align", *files, "--mode", "local", "--score-only", "-q").stdout.split("\t")[2]
    assert f"{int(score):,}" == facts["score"]
    line = ["bench", "align", "--random", 200, "--runs", 1, "--alphabet", "dna", "--identity", "unrelated"]
    done = run(*line, "--score-only", "--engine", "cpu")
    assert done.returncode == 0, done.stderr
    assert "200 x 200; random dna, unrelated, seed 1" in done.stdout
    assert "score only" in done.stdout


@pytest.mark.parametrize("alphabet", [DNA, PROTEIN])
@pytest.mark.parametrize("identity", [None, 0.3, 0.9, 0.999, 1.0])
def test_random_pairs_are_what_they_say(alphabet, identity):
    first, second = random_pair(20_000, alphabet, identity, 5)
    again = random_pair(20_000, alphabet, identity, 5)
    assert (first == again[0]).all()
    assert (second == again[1]).all()
    assert not np.array_equal(first, random_pair(20_000, alphabet, identity, 6)[0])
    assert len(first) == 20_000
    assert max(first.max(), second.max()) < (4 if alphabet is DNA else 20)
    if identity == 1.0:
        assert np.array_equal(first, second)
    else:
        assert not np.array_equal(first, second)
        assert abs(len(second) - 20_000) < 1_000
    if identity == 0.9:
        from swsearch.engines.cpu.pairs import align_codes
        from swsearch.scoring import Scoring, dna_matrix

        scoring = Scoring() if alphabet is PROTEIN else Scoring(dna_matrix(), 10, 1)
        pair = align_codes(first[:3_000], second[:3_000], Recurrence(scoring, "global"))
        assert 0.85 < pair.identities / pair.length < 0.93


def test_one_residue_makes_a_pair(tmp_path):
    for identity in (None, 0.1, 1.0):
        first, second = random_pair(1, DNA, identity, 1)
        assert (len(first), len(second)) == (1, 1)
    assert [path.name for path in write_pair(tmp_path, (first, second), DNA, "label")] == ["a.fasta", "b.fasta"]
    assert (tmp_path / "a.fasta").read_text().startswith(">a label\n")


def test_identities():
    assert parse_identity("unrelated") is None
    assert parse_identity("0.25") == 0.25
    for wrong in ("", "0", "-1", "1.01", "90%", "nan"):
        with pytest.raises(InputError, match="identity: got"):
            parse_identity(wrong)
