"""Signals that end a command, from its first moment to its last, and those that are ignored."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.samples import sample
from swsearch.cli import console, signals
from swsearch.cli.console import Interrupted, command

AT = """
import os, signal, sys

class Interrupter:
    '''Sends the signal when a module is imported.'''

    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), {number})
        return None

signal.signal(signal.SIGINT, signal.default_int_handler)  # as python has them, whatever was inherited
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
sys.meta_path.insert(0, Interrupter())
sys.argv = ["swsearch", *{words!r}]
from swsearch.__main__ import main
main()
"""
"""Runs the command line, and sends it a signal at a moment of its start."""

IMPORTED = (
    "swsearch.cli.memory_limit",
    "swsearch.cli.main",
    "typer",
    "numpy",
    "swsearch.db.database",
    "swsearch.pipeline.search",
)
"""Modules that a search imports, from the first after the signals are set to the last."""

WORDS = ["search", "queries.fasta", "queries.fasta", "-o", "out.tsv", "--engine", "cpu"]


def at(name, number, words, **options):
    program = AT.format(name=name, number=int(number), words=words)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=60, **options)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "queries.fasta").write_text(">a\nMKVLAAGIVGWW\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "number"),
    sample(
        [(name, number) for name in IMPORTED for number in signals.ENDING],
        lambda case: case in [("swsearch.cli.memory_limit", signal.SIGINT), ("typer", signal.SIGINT),
                              ("numpy", signal.SIGINT), ("swsearch.db.database", signal.SIGTERM),
                              ("typer", signal.SIGHUP)],
    ),
)  # fmt: skip
def test_no_import_prints_a_traceback(name, number, folder):
    done = at(name, number, WORDS, cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, b"", b"")
    assert [path.name for path in folder.iterdir()] == ["queries.fasta"]


def test_an_interruption_before_signals_are_set_prints_no_traceback(folder):
    done = at("swsearch.cli.signals", signal.SIGINT, WORDS, cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_the_package_itself_imports_next_to_nothing():
    """Until it is imported, Python's own handler prints a traceback: that time is kept short."""
    program = (
        f"import os, sys; sys.path = {sys.path!r}; before = set(sys.modules); import swsearch.__main__; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "swsearch swsearch.__main__\n"


SLOW = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
{before}
from swsearch.cli import main as commands
from swsearch.cli.console import command

commands.COMMANDS["wait"] = "__main__:wait"

@command
def wait() -> None:
    print("ready", flush=True)
    {body}

sys.argv = ["swsearch", "wait"]
from swsearch.__main__ import main as begin
begin()
"""


def slow(body="time.sleep(60)", before=""):
    """Start a command that waits, and return when it does."""
    program = SLOW.format(body=body.replace("\n", "\n    "), before=before)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    # without the buffer, which would take more than the line
    assert process.stdout.buffer.raw.readline() == b"ready\n"
    return process


def ended(process):
    try:
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    return process.returncode, out, err


@pytest.mark.parametrize("number", signals.ENDING)
def test_a_command_that_works_ends_quietly(number):
    process = slow()
    process.send_signal(number)
    assert ended(process) == (128 + number, "", "")


def test_the_second_signal_does_not_disturb_what_the_first_began():
    """As from a terminal and from ``timeout`` at once."""
    body = (
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(60)\n"
        "finally:\n    os.kill(os.getpid(), signal.SIGTERM)\n    print('removed', flush=True)"
    )
    assert ended(slow(body)) == (130, "removed\n", "")


@pytest.mark.parametrize(
    "body",
    [
        "class Dying:\n    def __del__(self):\n        os.kill(os.getpid(), signal.SIGINT)\n"
        "        time.sleep(0.01)\nDying()\ntime.sleep(60)",
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(60)\n"
        "except BaseException:\n    raise ImportError('half of it')",
        "exec('os.kill(os.getpid(), signal.SIGINT); time.sleep(60)', globals())",
    ],
    ids=["in a destructor", "turned into another error", "in a string"],
)
def test_it_is_heard_wherever_it_comes(body):
    assert ended(slow(body)) == (130, "", "")


@pytest.mark.parametrize("number", signals.ENDING)
@pytest.mark.parametrize("at", ["output_files.remove_unfinished", "cli.signals.only_note"])
def test_a_command_that_is_ending_cleans_up_whatever_comes(at, number):
    """A signal between a command's last line and its exit decides the exit code alone."""
    name = at.rpartition(".")[2]
    before = f"""
import swsearch.cli.signals, swsearch.output_files
from swsearch.{at.rpartition(".")[0]} import {name} as real
ending = []
def interrupted():
    if not ending:
        ending.append(1)
        os.kill(os.getpid(), {int(number)})
    real()
    if {name == "remove_unfinished"}:
        print("removed", flush=True)
swsearch.{at} = interrupted
"""
    expected = "removed\n" if name == "remove_unfinished" else ""
    assert ended(slow("print('done', flush=True)", before)) == (128 + number, f"done\n{expected}", "")


def test_an_interruption_that_was_to_be_repeated_is_forgotten_once_the_command_has_ended():
    """One that came in a destructor is raised again a moment later, which may be after the command's end."""
    body = (
        "class Dying:\n    def __del__(self):\n        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        [None for _ in range(9)]\nDying()"
    )
    before = "import swsearch.output_files\nswsearch.output_files.remove_unfinished = lambda: time.sleep(0.1)"
    assert ended(slow(body, before)) == (143, "", "")


@pytest.mark.parametrize("number", signals.ENDING)
def test_what_is_ignored_stays_ignored(number):
    """A shell has SIGINT ignored in its jobs in the background, and nohup SIGHUP: neither ends them."""
    process = slow("time.sleep(0.3)\nprint('done')", f"signal.signal({int(number)}, signal.SIG_IGN)")
    process.send_signal(number)
    assert ended(process) == (0, "done\n", "")


def test_a_process_that_is_not_ours_keeps_its_handlers():
    before = [signal.getsignal(number) for number in signals.ENDING]

    @command
    def work():
        assert [signal.getsignal(number) for number in signals.ENDING] == before

    work()
    signals.stop_listening()
    assert [signal.getsignal(number) for number in signals.ENDING] == before


@pytest.mark.parametrize("number", signals.ENDING)
def test_the_exit_code_names_the_signal(number, monkeypatch):
    monkeypatch.setattr(signals._received, "number", number)
    ending = console.to_cli_error(ImportError("cannot import name 'x'"))
    assert isinstance(ending, Interrupted)
    assert ending.exit_code == 128 + number


HEARD = ("ctrl_c", "started(", "LISTEN", "default_int_handler")
"""Texts in the source of a test that makes sure a signal is received."""


def test_tests_that_send_signals_see_to_it_that_they_are_heard():
    """A job in the background, and what runs under nohup, inherits signals that are ignored, but not SIGKILL."""
    tests = Path(__file__).parents[1]
    sending = re.compile(r"\b(os\.kill(?!\(.*SIGKILL\))|send_signal|raise_signal|interrupt_main)\b")
    senders = [path for path in sorted(tests.rglob("test_*.py")) if sending.search(path.read_text(encoding="utf-8"))]
    assert len(senders) >= 5
    deaf = [path for path in senders if not any(word in path.read_text(encoding="utf-8") for word in HEARD)]
    assert deaf == []
