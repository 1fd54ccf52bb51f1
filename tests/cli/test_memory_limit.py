"""Little memory: a command succeeds, or says in one sentence that it cannot, and leaves nothing."""

import os
import resource
import signal
import subprocess
import sys
import time

import pytest

from support.command_line import SWSEARCH, run
from support.processes import started
from support.samples import sample
from swsearch.cli import memory_limit
from swsearch.cli.console import command
from swsearch.errors import DatabaseDamageError, MemoryLimitError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not enforce limits of memory")

MIB = 1 << 20

LIMITED = """
import os, resource, sys
for word in sys.argv[1].split(","):
    kind, size = word.split("=")
    kind = getattr(resource, "RLIMIT_" + kind)
    resource.setrlimit(kind, (int(size), resource.getrlimit(kind)[1]))
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Sets limits and runs the rest."""


def limited(limits, *line, **options):
    """Run a program under limits, such as ``AS=1000000,STACK=1000``."""
    start = [sys.executable, "-S", "-E", "-c", LIMITED, limits, *map(str, line)]
    return subprocess.run(start, capture_output=True, text=True, check=False, timeout=120, **options)


@pytest.fixture(scope="module")
def work(examples, tmp_path_factory):
    """A folder with queries and a database, and what a search of them writes."""
    folder = tmp_path_factory.mktemp("work")
    queries, fasta = examples / "data" / "queries.fasta", examples / "data" / "swissprot_sample.fasta.gz"
    (folder / "queries.fasta").write_bytes(queries.read_bytes())
    assert run("db", "build", fasta, "-o", folder / "sample.h5").returncode == 0
    assert run(*TABLE, cwd=folder).returncode == 0
    (folder / "out.tsv").rename(folder / "expected.tsv")
    return folder


TABLE = ["search", "queries.fasta", "sample.h5", "--engine", "cpu", "-q", "--max-hits", "5", "-o", "out.tsv"]
FORMATS = [*TABLE, "-o", "out.html", "-o", "out.parquet", "-o", "out.xml"]
ALIGN = ["align", "queries.fasta", "queries.fasta", "-q", "-o", "out.txt"]
BUILD = ["db", "build", "queries.fasta", "-q", "-o", "out.h5"]


def succeeds(limits, words, work):
    """Say whether a command succeeds under a limit; it must do so, or say that it cannot, and leave nothing."""
    before = set(work.iterdir())
    done = limited(limits, *SWSEARCH, *words, cwd=work)
    left = sorted(path.name for path in set(work.iterdir()) - before)
    case = (limits, words, done.returncode, done.stdout, done.stderr, left)
    try:
        assert done.stdout == "", case
        if done.returncode == 0:
            assert done.stderr == "", case
            assert left == sorted(word for word in words if word.startswith("out.")), case
            if "out.tsv" in left:
                assert (work / "out.tsv").read_text() == (work / "expected.tsv").read_text(), case
        else:
            assert done.returncode == 4, case
            assert done.stderr.startswith("swsearch: error: out of memory"), case
            assert done.stderr.count("\n") == 1, case
            assert left == [], case
    finally:
        for name in left:
            (work / name).unlink()
    return done.returncode == 0


def test_it_succeeds_where_memory_is_enough(work):
    assert succeeds(f"AS={1024 * MIB}", FORMATS, work)
    assert not succeeds(f"AS={60 * MIB}", TABLE, work)


def test_no_threads_are_no_reason_to_fail(work):
    """Each thread would take a stack of 8 GiB, where 4 GiB are allowed."""
    limits = f"STACK={8192 * MIB},AS={4096 * MIB}"
    if resource.getrlimit(resource.RLIMIT_STACK)[1] != resource.RLIM_INFINITY:
        pytest.skip("the stack is limited here")
    program = "import threading; threading.Thread(target=int).start()"
    assert "can't start new thread" in limited(limits, sys.executable, "-c", program).stderr
    assert succeeds(limits, FORMATS, work)
    assert succeeds(limits, [*TABLE[:-1], "out.txt", "--outfmt", "6", "--max-alignments", "2"], work)
    assert succeeds(limits, ALIGN, work)


@pytest.mark.parametrize("number", sample(range(5, 14), (6, 7).__contains__))
def test_few_open_files_leave_none_behind(number, work):
    """The interpreter itself takes five: the standard streams, and two for an import within an import."""
    before = set(work.iterdir())
    done = limited(f"NOFILE={number}", *SWSEARCH, *FORMATS, cwd=work)
    left = set(work.iterdir()) - before
    case = (done.returncode, done.stderr, left)
    assert done.returncode in (0, 6, 255), case
    assert done.stderr.count("\n") == (done.returncode != 0), case
    assert len(left) == (4 if done.returncode == 0 else 0), case
    for path in left:
        path.unlink()


CRASH = """
import os, sys
from pathlib import Path
from swsearch import output_files
from swsearch.cli import main, memory_limit
from swsearch.__main__ import main as begin

def fail(_):
    raise SystemError("error return without exception set")

def crash():
    output_files.temporary_file_listeners.append(memory_limit.report_file)
    temporary = output_files.TemporaryFile(Path("out.tsv").absolute())
    {how}

main.main = crash
begin()
"""


@pytest.mark.parametrize(
    ("how", "ended"),
    [
        ("os.abort()", "SIGABRT"),
        ("os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("os.write(2, b'OpenBLAS error'); os._exit(1)", "exit code 1"),
        ("raise SystemError('no exception set')", "SystemError: no exception set"),
        ("raise SystemError('x' * 100000)", f"SystemError: {'x' * 987}"),
        ("memory_limit._watch.pipe = 'none'; raise SystemError", "exit code 4"),
        ("memory_limit.exit_if_out_of_memory = fail; raise MemoryError", "exit code 4"),
        ("memory_limit.end = fail; return 0", "exit code 4"),
    ],
)
def test_a_library_that_ends_the_process_is_told_in_a_sentence(how, ended, tmp_path):
    done = limited(f"AS={512 * MIB}", sys.executable, "-c", CRASH.format(how=how), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == (
        "swsearch: error: out of memory within the limit of 512 MiB for this process (ulimit -v); raise the limit, "
        f"use fewer threads, or a database instead of FASTA (it ended with {ended})\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_cannot_start_says_so_once(tmp_path):
    program = CRASH.format(how="raise OSError(24, 'Too many open files')")
    done = limited(f"AS={512 * MIB}", sys.executable, "-c", program, cwd=tmp_path)
    said = "swsearch: error: cannot start: [Errno 24] Too many open files\n"
    assert (done.returncode, done.stdout, done.stderr) == (255, "", said)


@pytest.mark.parametrize("how", ["raise MemoryError", "os.abort()"])
def test_an_error_is_said_once_whatever_fails_after_it(how, tmp_path):
    said = f"from swsearch.cli.console import print_error; print_error(DatabaseError('no')); {how}"
    program = "from swsearch.errors import DatabaseError\n" + CRASH.format(how=said)
    done = limited(f"AS={512 * MIB}", sys.executable, "-c", program, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "swsearch: error: no\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", sample([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], signal.SIGTERM.__eq__))
def test_signals_reach_the_copy(number, tmp_path):
    work = tmp_path / "work.fasta"
    work.write_text("".join(f">s{k}\n{'MKVLAAGIVGWWHH' * 300}\n" for k in range(1500)))
    words = ["search", "work.fasta", "work.fasta", "--engine", "cpu", "-o", "out.tsv"]
    line = [sys.executable, "-c", LIMITED, f"AS={2048 * MIB}", *SWSEARCH, *words]
    with started(line, cwd=tmp_path) as process:
        deadline = time.monotonic() + 20
        while len(list(tmp_path.iterdir())) == 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (128 + number, b"", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["work.fasta"]


def test_a_database_is_not_called_damaged_where_memory_is_short(monkeypatch):
    """As HDF5 cannot open what it has no memory for, and does not say why."""

    @command
    def fails():
        raise DatabaseDamageError("sample.h5", ["/segments/0/headers is missing or unreadable"])

    with pytest.raises(DatabaseDamageError):
        fails()
    monkeypatch.setattr(memory_limit._watch, "pipe", 1)
    for limit, expected in ((1 << 60, DatabaseDamageError), (1 << 20, MemoryLimitError)):
        for name in ("ulimit -v", "ulimit -d"):
            monkeypatch.setattr(memory_limit._watch, "limit", (limit, name))
            with pytest.raises(expected, match="headers is missing"):
                fails()


def test_without_a_limit_there_is_no_copy():
    if memory_limit.find_limit() is not None:
        pytest.skip("memory is limited here")
    before = os.getpid()
    memory_limit.begin()
    assert (os.getpid(), memory_limit.is_watched()) == (before, False)
    assert memory_limit.out_of_memory_message() == "out of memory; use fewer threads, or a database instead of FASTA"
