"""``swsearch search`` of a database on a server: the bytes of a search here, and what is said."""

from __future__ import annotations

import fcntl
import io
import re
import signal
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.command_line import SWSEARCH, fails, run
from support.processes import started
from support.samples import sample
from support.scripted_server import Canned, Script, scripted
from support.serving import Served, serving, until
from support.small_searches import LETTERS, PARENT, QUERIES, build, fasta
from swsearch.report import OUTPUT_FORMATS, find_format
from swsearch.server.settings import ServerSettings

ALL = [kind.key for kind in OUTPUT_FORMATS]
SEVERAL = [kind.key for kind in OUTPUT_FORMATS if not kind.writer.is_single_query]
FEW = ["0", "html", "jsonl"]

OPTIONS = {
    "usual": "--max-hits 20",
    "range": "--query-loc 5-60",
    "iterated": "--iterations 2 --matrix own.txt --gap-open 9 --save-profile next.json --save-msa rows.sto",
    "several": "--max-alignments 3 --evalue 1000 --query-mask lower --subject-mask lower --min-identity 20",
    "published": "--statistics published --matrix BLOSUM80 --exclude-ids ids.txt --dbsize 1e6 --save-msa rows",
    "global": "--mode global --sort score --max-hits 7 --min-score -200",
    "none": "--mode semiglobal --statistics none --include-ids ids.txt --preset sensitive",
}

SAVED = ("next.json", "rows", "rows.sto")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("there")
    build(made)
    (made / "q.fa").write_bytes(QUERIES)
    (made / "one.fa").write_bytes(fasta([("one", PARENT)]))
    (made / "ids.txt").write_text("s1\ns4\nother3\n")
    rows = [f"{a} " + " ".join("7" if a == b else "-3" if a < b else "-2" for b in LETTERS) for a in LETTERS]
    (made / "own.txt").write_text("\n".join([" ".join(LETTERS), *rows]) + "\n")
    return made


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    with serving(ServerSettings((folder / "db.h5",), folder / "state", engine="cpu", threads=1, workers=1)) as found:
        yield found


def written(folder: Path, out: str, keys: list[str], *words: str) -> dict[str, bytes]:
    """Run a search that writes some formats, and return the files."""
    place = folder / out
    place.mkdir()
    reports = []
    for key in keys:
        extension = (find_format(key).extensions or (".txt",))[-1]
        reports += ["-o", f"{out}/{key}{extension}", "--outfmt", key]
    done = run("search", *words, *reports, cwd=folder)
    assert done.returncode == 0, done.stderr
    found = {}
    for path in sorted(place.rglob("*")):
        if path.is_file():
            changes = rb"<dt>(Seconds|Begun|Command)</dt><dd>[^<]*</dd>"
            found[str(path.relative_to(place))] = re.sub(changes, b"", path.read_bytes())
    return found


@pytest.mark.parametrize(("name", "queries", "keys"), sample(
    [("usual", "q.fa", FEW), ("range", "one.fa", FEW), ("iterated", "one.fa", ALL), ("several", "q.fa", SEVERAL),
     ("iterated", "q.fa", FEW), ("published", "q.fa", FEW), ("global", "q.fa", FEW), ("none", "q.fa", FEW)],
    lambda case: case[0] in ("usual", "range"),
))  # fmt: skip
def test_the_same_options_give_the_same_bytes(
    name: str, queries: str, keys: list[str], folder: Path, served: Served
) -> None:
    found: list[dict[str, bytes]] = []
    for where, words in (("here", ["db.h5", "--engine", "cpu", "--threads", "1"]), ("there", [f"{served.url}/db"])):
        out = f"{name}-{queries}-{len(keys)}-{where}"
        options = [f"{out}/{word}" if word in SAVED else word for word in OPTIONS[name].split()]
        found.append(written(folder, out, keys, queries, *words, *options))
    here, there = found
    assert there.keys() == here.keys()
    for file in here:
        assert there[file] == here[file], file
    assert len(here) >= len(keys)
    assert served.get("/jobs").json == {"jobs": []}


def test_what_was_done_is_said(folder: Path, served: Served) -> None:
    done = run("search", "q.fa", served.url, "--max-hits", "1", "--verbose", "--progress", "json", cwd=folder)
    assert done.returncode == 0
    assert f"swsearch: {served.url}: db: 50 subjects, 7,511 residues; engine cpu" in done.stderr
    assert re.search(rf"4 queries x 50 subjects, .* GCUPS, engine cpu .*, at {served.url}/db\n", done.stderr)
    assert '"cells_done": 1404557, "cells": 1404557' in done.stderr
    assert "swsearch: q.fa: 1 query has no residues, e.g. 'q3'\n" in done.stderr
    assert len(done.stdout.splitlines()) == 3


WRONG = [
    (
        ["URL/db", "--engine", "gpu"],
        "got --engine gpu with URL/db, expected none: the server has its own engine",
    ),
    (["URL/db", "--device", "0"], "got --device 0 with URL/db, expected none: the server has its own devices"),
    (["URL/db", "--threads", "1"], "got --threads 1 with URL/db, expected none: the server has its own threads"),
    (["URL/db", "--cluster", "local:1"], "got --cluster local:1 with URL/db, expected none"),
    (["URL/other"], "got database 'other', expected one of db"),
    (["URL/db", "db.h5"], "subjects: got URL/db and 1 more, expected one database of a server alone"),
    (["db.h5", "URL/db"], "expected one database of a server alone"),
    (["http://me:secret@host/db", "db.h5"], "url: got a name or password for host"),
    (["URL/db", "--outfmt", "a3m"], "--outfmt a3m: got 4 queries, expected one"),
    (["URL/db", "--max-hits", "9999"], "max_hits: got 9,999, expected at most 5,000, this server's limit"),
    (["URL/db", "--outfmt", "nonsense"], "outfmt: got 'nonsense'"),
]


@pytest.mark.parametrize(
    ("line", "message"),
    [pytest.param(*each, marks=[pytest.mark.exhaustive] * (place > 1)) for place, each in enumerate(WRONG)],
)
def test_what_cannot_be_is_refused(line: list[str], message: str, folder: Path, served: Served) -> None:
    done = run("search", "q.fa", *(word.replace("URL", served.url) for word in line), cwd=folder)
    fails(done, 1, message.replace("URL", served.url))
    assert "secret" not in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.exhaustive
def test_what_is_read_is_not_written(folder: Path, served: Served) -> None:
    done = run("search", "one.fa", f"{served.url}/db", "-o", "ids.txt", "--include-ids", "ids.txt", cwd=folder)
    fails(done, 6, "ids.txt: is one of the inputs; choose another name for the output")
    assert (folder / "ids.txt").read_text().startswith("s1\n")


def test_other_commands_refuse_servers(folder: Path) -> None:
    done = run("msa", "q.fa", "http://host/db", "-o", "x", cwd=folder)
    fails(done, 1, "subjects: got http://host/db, expected files; of servers swsearch msa asks none, search does")


JOB = "ABCDEFGHJKLMNPQRSTUV"

RUNNING = {"id": JOB, "state": "running", "cells_done": 0, "cells": 5, "n_queries": 1, "outputs": ["6"]}


@contextmanager
def running(job: dict[str, object]) -> Iterator[Script]:
    """Start a server that has this job."""
    with scripted() as script:
        script.tell("GET /databases", Canned({"databases": [{"name": "db"}]}))
        script.tell("POST /jobs", Canned(job, 202))
        script.tell(f"GET /jobs/{JOB}", Canned(job))
        script.tell(f"DELETE /jobs/{JOB}", Canned(b"", 204))
        yield script


def test_a_killed_command_goes_on_with_its_job(folder: Path, served: Served) -> None:
    words = ["search", "one.fa", f"{served.url}/db", "--checkpoint", "kept", "--header", "-o", "resumed.tsv"]
    with running(RUNNING) as script:
        there = [word.replace(served.url, script.url) for word in words]
        for stop, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 128 + signal.SIGINT)):
            n_asked = script.count(f"GET /jobs/{JOB}")
            with started([*SWSEARCH, *there], cwd=folder) as process:
                until(lambda n=n_asked: script.count(f"GET /jobs/{JOB}") > n + 1 or process.poll() is not None)
                process.send_signal(stop)
                assert process.wait(60) == code
                assert process.stderr is not None
                said = process.stderr.read()
        assert b"job ABCDEFGHJKLMNPQRSTUV continues; run the same command to resume" in said
        assert script.count(f"DELETE /jobs/{JOB}") == 0
        keys = {headers["Idempotency-Key"] for what, headers, _ in script.asked if what.startswith("POST")}
    assert keys == {(folder / "kept" / "server-job").read_text()}
    done = run(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "resumed.tsv").read_text().startswith("qaccver\t")
    assert not list((folder / "kept").iterdir())
    assert served.get("/jobs").json == {"jobs": []}


@pytest.mark.parametrize("name", [".bashrc", "../x.a3m", "a/b.a3m", "x.txt"])
def test_files_that_a_server_may_not_write_are_refused(name: str, folder: Path) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr(name, "theirs")
    job = RUNNING | {"state": "done", "outputs": ["6", "msa a3m"]}
    with running(job) as script:
        script.tell(f"GET /jobs/{JOB}/outputs/0", Canned(b""))
        script.tell(f"GET /jobs/{JOB}/outputs/1", Canned(archive.getvalue()))
        words = ["search", "one.fa", f"{script.url}/db", "-o", "theirs.tsv", "--save-msa", "theirs"]
        fails(run(*words, cwd=folder), 3, "save-msa: the server sent other files than alignments")
        script.tell(f"GET /jobs/{JOB}/outputs/1", Canned(b"no zip"))
        fails(run(*words, cwd=folder), 3, "save-msa: the server sent a damaged archive")
        script.tell("POST /jobs", Canned(RUNNING, 202))
        fails(run(*words, cwd=folder), 3, "accepted other outputs; install the same version on both sides")
    assert not (folder / "theirs.tsv").exists()
    assert not list((folder / "theirs").iterdir())


def test_queries_are_not_overwritten_by_saved_alignments(folder: Path, served: Served) -> None:
    (folder / "rows9").mkdir()
    (folder / "rows9" / "one.a3m").write_bytes((folder / "one.fa").read_bytes())
    words = ["search", "rows9/one.a3m", f"{served.url}/db", "-o", "rows9.tsv", "--save-msa", "rows9"]
    fails(run(*words, cwd=folder), 6, "one.a3m: is one of the inputs; choose another name for the output")
    assert (folder / "rows9" / "one.a3m").read_bytes() == (folder / "one.fa").read_bytes()


def test_a_checkpoint_is_of_one_command_and_one_search(folder: Path, served: Served) -> None:
    words = ["search", "one.fa", f"{served.url}/db", "--checkpoint", "own", "-o", "own.tsv"]
    (folder / "own").mkdir()
    with (folder / "own" / "server-job").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        fails(run(*words, cwd=folder), 1, "checkpoint: own is in use by another command; choose another folder")
        file.write("0123456789abcdef" * 2)
    fails(run(*words[:4], "one.fa", "-o", "own.tsv", cwd=folder), 1, "checkpoint: got 'one.fa', expected a folder")
    request = {"database": "db", "queries": f">q\n{PARENT}\n", "options": {}}
    reply = served.post("/jobs", request, **{"Idempotency-Key": "0123456789abcdef" * 2})
    assert reply.status == 202
    fails(run(*words, cwd=folder), 1, "again for another search", "with --checkpoint choose another folder")
    served.ask("DELETE", f"/api/v1/jobs/{reply.json['id']}", None, {})


def test_an_interrupt_stops_the_search_there(folder: Path) -> None:
    with running(RUNNING) as script:
        words = ["search", "one.fa", f"{script.url}/db", "-o", "interrupted.tsv", "--quiet"]
        with started([*SWSEARCH, *words], cwd=folder) as process:
            until(lambda: script.count(f"GET /jobs/{JOB}") > 1 or process.poll() is not None)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 128 + signal.SIGINT
            assert process.stderr is not None
            assert process.stderr.read() == b""
        assert script.count(f"DELETE /jobs/{JOB}") == 1
    assert not list(folder.glob("*interrupted*"))
