"""``swsearch serve``: what it prints, what it refuses, and how it ends."""

import json
import os
import resource
import signal
import sys
import urllib.error
import urllib.request

import pytest

from support.command_line import SWSEARCH
from support.processes import started
from support.serving import tiny_database
from swsearch.cli import main, serve
from swsearch.server.run import bind


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """A tiny database."""
    return tiny_database(tmp_path_factory.mktemp("serve") / "tiny.h5")


@pytest.fixture
def run(database, tmp_path, monkeypatch, capsys):
    """Run the command in this process up to where it would serve; returns its exit code and stderr."""
    monkeypatch.setattr("swsearch.server.run.HttpServer.serve_until_ended", lambda server: None)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(*words):
        line = ["swsearch", "serve", str(database), "--port", "0", "--engine", "cpu", *map(str, words)]
        monkeypatch.setattr(sys, "argv", line)
        code = main.main()
        out, err = capsys.readouterr()
        assert out == ""
        return code, err

    return run


def test_it_says_what_it_serves_and_where(run, tmp_path):
    code, err = run()
    assert code == 0
    assert "swsearch: tiny: 4 subjects, " in err
    assert "swsearch: listening on http://127.0.0.1:" in err
    assert "warning" not in err
    assert (tmp_path / "state" / "swsearch" / "server" / "jobs.sqlite").is_file()
    assert run("--quiet") == (0, "")


def test_who_may_reach_it_without_a_token_is_warned_of(run, tmp_path):
    assert "without a token and unencrypted; --token-file" in run("--host", "0.0.0.0")[1]
    tokens = tmp_path / "tokens"
    tokens.write_text("a-token-of-twenty-letters\n")
    tokens.chmod(0o600)
    assert "warning" not in run("--host", "0.0.0.0", "--token-file", tokens)[1]
    tokens.chmod(0o644)
    assert "others on this machine can read it" in run("--token-file", tokens)[1]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--root-path", "lab"], "--root-path: got 'lab'"),
        (["--token-file", "nothing"], "--token-file nothing: cannot be read"),
    ],
)
def test_what_is_wrong_is_told_before_a_database_is_opened(run, words, told, monkeypatch):
    monkeypatch.setattr("swsearch.server.jobs.open_jobs", lambda *_: pytest.fail("it was opened"))
    code, err = run(*words)
    assert code == 1
    assert told in err
    assert err.startswith("swsearch: error: ")


def test_a_port_that_is_taken_is_told(run):
    with bind("127.0.0.1", 0) as made:
        made.listen()
        code, err = run("--port", made.getsockname()[1])
    assert (code, "another program listens there" in err) == (1, True)


def test_a_database_that_is_none_is_told(run, tmp_path):
    (tmp_path / "bad.h5").write_text("nothing")
    code, err = run(tmp_path / "bad.h5")
    assert code == 2
    assert "bad.h5" in err


def test_without_the_extra_the_way_to_it_is_told(run, monkeypatch):
    monkeypatch.setattr(serve, "NEEDED", (*serve.NEEDED, "no_such_module"))
    assert run() == (1, "swsearch: error: swsearch serve needs no_such_module; pip install 'swsearch[server]'\n")


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.exhaustive)]
)  # fmt: skip
def test_a_signal_ends_it_in_good_order(database, tmp_path, number):
    line = [*SWSEARCH, "serve", str(database), "--port", "0", "--engine", "cpu", "--folder", str(tmp_path / "state")]
    with started(line, text=True, cwd=tmp_path, env=os.environ | {"PYTHONWARNINGS": "error"}) as process:
        said = []
        while not said or "listening on" not in said[-1]:
            said.append(process.stderr.readline())
            assert said[-1], said
        url = said[-1].split()[-1]
        with urllib.request.urlopen(f"{url}api/v1/health", timeout=60) as answer:
            assert json.load(answer)["ok"]
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (128 + number, "")
    assert err == "swsearch: ending; jobs that run go on at the next start\n"


def test_a_disk_without_room_for_a_job_is_told_and_survived(database, tmp_path):
    line = [*SWSEARCH, "serve", str(database), "--port", "0", "--engine", "cpu", "--folder", str(tmp_path / "state")]
    with started(line, text=True) as process:
        url = next(line for line in process.stderr if "listening on" in line).split()[-1].rstrip("/")
        size = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (200_000, size[1]))  # the table's files end there
        path = f"{url}/api/v1/jobs?database=tiny&wait=30"
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(urllib.request.Request(path, b">q\n" + b"MKVLAW" * 50_000), timeout=60)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, size)
        answer = json.load(urllib.request.urlopen(urllib.request.Request(path, b">q\nMKVLAWGKV"), timeout=60))
        jobs = json.load(urllib.request.urlopen(f"{url}/api/v1/jobs", timeout=60))["jobs"]
    assert (caught.value.code, json.load(caught.value)["error"]["code"]) == (507, "disk_full")
    assert (answer["state"], [each["id"] for each in jobs]) == ("done", [answer["id"]])
